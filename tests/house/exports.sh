#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# exports.sh FILE PATTERN: the file exports names that match the pattern alone (PATTERN "": any), and needs no library
# of NVIDIA's.
set -eu
file=$1 pattern=$2
bad=0
others=
[ -z "$pattern" ] || others=$(nm -D --defined-only "$file" | awk '{ sub("@.*", "", $NF); print $NF }' | grep -Ev "$pattern" || true)
if [ -n "$others" ]; then
    printf '%s exports other names than %s:\n%s\n' "$file" "$pattern" "$others"
    bad=1
fi
if [ -n "$pattern" ] && ! nm -D --defined-only "$file" | grep -q .; then
    echo "$file exports nothing"
    bad=1
fi
if readelf -d "$file" | grep -E 'NEEDED.*lib(cuda|cudart|nvrtc|nvJitLink|nvidia)'; then
    echo "$file is linked with a library of NVIDIA's"
    bad=1
fi
exit $bad
