#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# files.sh ROOT: every folder has a README.md of at most a page, and every source begins with its licence.
set -eu
cd "$1"
bad=0
for folder in . abi docs examples include kernels_src ptx ptx/front ptx/image ptx/inspect ptx/relevel ptx/cache ptx/compile registry runtime runtime/base \
    runtime/driver scripts softcuda softcuda/vm softcuda/driver tests tools; do
    [ -d "$folder" ] || continue
    if [ ! -f "$folder/README.md" ]; then
        echo "$folder has no README.md"
        bad=1
    elif [ "$folder" != . ] && [ "$(wc -l <"$folder/README.md")" -gt 60 ]; then
        echo "$folder/README.md is longer than a page"
        bad=1
    fi
done
without=$(find abi examples include ptx registry runtime scripts softcuda tests tools .ci -type f \
    \( -name '*.[chS]' -o -name '*.sh' -o -name '*.def' -o -path 'scripts/*' -o -path '.ci/*' \) ! -name '*.md' |
    while read -r file; do
        head -n 3 "$file" | grep -q 'SPDX-License-Identifier: Apache-2.0' || echo "$file"
    done)
if [ -n "$without" ]; then
    printf 'without an SPDX line:\n%s\n' "$without"
    bad=1
fi
exit $bad
