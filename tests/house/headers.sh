#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# headers.sh ROOT CC: every public header compiles alone, as strict C11 and as C++11; so does README.md's program, as C.
set -eu
include=$1/include readme=$1/README.md
shift
bad=0
check() { # HEADER COMPILER...
    header=$1
    shift
    printf '#include <kregistry/%s>\nextern int not_empty;\n' "$header" | "$@" -I "$include" -fsyntax-only -pedantic -Wall -Wextra -Werror - || {
        echo "kregistry/$header: $*"
        bad=1
    }
}
cxx=
echo 'int x;' | "$@" -x c++ -fsyntax-only - 2>/dev/null && cxx=yes
[ -n "$cxx" ] || echo "skipped: $* compiles no C++"
for path in "$include"/kregistry/*.h; do
    header=${path##*/}
    check "$header" "$@" -x c -std=c11
    [ -z "$cxx" ] || check "$header" "$@" -x c++ -std=c++11
done
awk '/^```/ { inside = /^```c$/; next } inside' "$readme" | "$@" -x c -std=c11 -I "$include" -fsyntax-only -Wall -Wextra -Werror - || {
    echo "README.md: its program does not compile"
    bad=1
}
exit $bad
