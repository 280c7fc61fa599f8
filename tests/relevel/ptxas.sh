#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# ptxas.sh TEST PTXAS...: what TEST (test_relevel_rules) makes of each form, to the first of these assemblers that knows its version.
# Assemblers of old toolkits: the Python packages nvidia-cuda-nvcc-cu11 and -cu12.
set -eu
test=$1
shift
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$test" "$folder" >/dev/null
[ -n "$(ls "$folder")" ] || { echo "$test has written nothing"; exit 1; }
bad=0 n=0
for ptx in "$folder"/*.ptx; do
    sm=$(sed -n 's/^\.target //p' "$ptx")
    taken=
    for ptxas; do
        if "$ptxas" -arch "$sm" "$ptx" -o /dev/null 2>"$folder/log"; then
            taken=yes
        elif grep -q 'Unsupported .version' "$folder/log"; then
            continue
        fi
        break
    done
    n=$((n + 1))
    if [ -z "$taken" ]; then
        echo "${ptx##*/}: $(head -n 1 "$folder/log")"
        bad=1
    fi
done
echo "$n kernels"
exit $bad
