#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2016
# test_house.sh ROOT CC: the checks of this folder find what they are there to find.
set -eu
here=$1/tests/house
shift
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
mkdir -p runtime/base registry tests/house include/kregistry
printf 'runtime/base include\nregistry runtime\n' >tests/house/layers.txt
refuses() {
    if "$@" >out 2>&1; then
        echo "passed, and must not: $*"
        exit 1
    fi
}

printf '#include "runtime/base/a.h"\n' >registry/a.c
sh "$here/layers.sh" "$work"
printf '#include "registry/a.h"\n' >runtime/base/a.c
refuses sh "$here/layers.sh" "$work"
grep -q 'runtime/base/a.c:1: runtime/base must not include registry/a.h' out
printf '# include <cuda.h>\n' >runtime/base/a.c
refuses sh "$here/layers.sh" "$work"
rm runtime/base/a.c

printf 'int kr_a; int other;\n' >b.c
"$@" -shared -fPIC -o b.so b.c
refuses sh "$here/exports.sh" b.so '^kr_'
grep -q other out
sh "$here/exports.sh" b.so '^(kr_|other$)'
"$@" -shared -fPIC -o libnvrtc.so.13 b.c -Wl,-soname,libnvrtc.so.13
"$@" -shared -fPIC -o c.so b.c -Wl,--no-as-needed ./libnvrtc.so.13
refuses sh "$here/exports.sh" c.so ''

printf '```c\nint main(void) { return 0; }\n```\n' >README.md
printf 'size_t x;\n' >include/kregistry/a.h
refuses sh "$here/headers.sh" "$work" "$@"
printf '#include <stddef.h>\ntypedef size_t x;\n' >include/kregistry/a.h
sh "$here/headers.sh" "$work" "$@"
printf '```c\nint main(void) { return no; }\n```\n' >README.md
refuses sh "$here/headers.sh" "$work" "$@"
printf '```c\nint main(void) { return 0; }\n```\n' >README.md
printf 'static int class;\n' >include/kregistry/a.h
refuses sh "$here/headers.sh" "$work" "$@"

refuses sh "$here/files.sh" "$work"
grep -q 'has no README.md' out
