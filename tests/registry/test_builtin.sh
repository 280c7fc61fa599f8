#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# test_builtin.sh BUILTIN OPS: what the generator does with good files, bad files, and without NVRTC.
set -eu
builtin=$1
ops=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail()
{
    echo "FAILED: $1"
    cat "$work/log"
    exit 1
}

# The bytes of the pack as they stand in the output, on one line.
pack_text()
{
    sed -n 's/^    "\(.*\)"$/\1/p' "$work/out.c" | tr -d '\n'
}

# refused WHAT MESSAGE ARG...: exits 1, says MESSAGE, writes nothing.
refused()
{
    what=$1
    message=$2
    shift 2
    rc=0
    "$builtin" "$@" >"$work/log" 2>&1 || rc=$?
    [ "$rc" -eq 1 ] || fail "$what: exit $rc"
    grep -q "$message" "$work/log" || fail "$what: no \"$message\""
    [ ! -e "$work/out.c" ] || fail "$what: wrote its output"
}

sed 's/T\[n\]  inout/T[m]  inout/' "$ops/axpy.cu" >"$work/bad.cu"
refused "a malformed descriptor" '^bad.cu:8: there is no size "m" before it$' "$work/out.c" "$work/bad.cu"
cp "$ops/axpy.cu" "$work/again.cu"
refused "a name twice" 'again.cu:1: the op name "axpy" is taken by axpy.cu' "$work/out.c" "$ops/axpy.cu" "$work/again.cu"
sed 's/KR_REFERENCE/KR_REFERENZ/' "$ops/axpy.cu" >"$work/bad.cu"
refused "no reference" '^bad.cu:1: there is no C reference' "$work/out.c" "$work/bad.cu"
# The compiler judges the reference's arguments, and names its line.
sed '/static void reference/s/uint64_t n/uint32_t n/' "$ops/axpy.cu" >"$work/bad.cu"
"$builtin" "$work/out.c" "$work/bad.cu" >"$work/log" 2>&1 || fail "a reference of other arguments"
root=$ops/../../..
"${CC:-cc}" -fsyntax-only -I"$root" -I"$root/include" -I"$work" "$work/out.c" >"$work/log" 2>&1 &&
    fail "a reference of other arguments compiles"
grep -q 'conflicting types' "$work/log" && grep -q 'bad.cu:19:' "$work/log" || fail "a reference of other arguments: no line"
rm "$work/out.c"
refused "a file that is not there" 'none.cu' "$work/out.c" "$work/none.cu"
refused "images without NVRTC" "$work/no_nvrtc" --images=required "--nvrtc=$work/no_nvrtc" "$work/out.c" "$ops/axpy.cu"

"$builtin" --images=auto "--nvrtc=$work/no_nvrtc" "$work/out.c" "$ops/axpy.cu" >"$work/log" 2>&1 || fail "auto without NVRTC"
grep -q 'no image is shipped' "$work/log" || fail "auto without NVRTC says nothing"
pack_text | grep -q '\.version' && fail "auto without NVRTC has images"
grep -q "$ops" "$work/out.c" && fail "the output names the machine's folders"

# What is there stays what it is: a pipe is written to, a link leads to the file that is replaced.
mkfifo "$work/pipe"
cat "$work/pipe" >"$work/read" &
reader=$!
"$builtin" "$work/pipe" "$ops/axpy.cu" >"$work/log" 2>&1 || fail "to a pipe"
[ -p "$work/pipe" ] || { kill "$reader"; fail "to a pipe: it was replaced"; }
wait "$reader"
[ -s "$work/read" ] || fail "to a pipe: nothing comes"
ln -s real.c "$work/link.c"
: >"$work/real.c"
"$builtin" "$work/link.c" "$ops/axpy.cu" >"$work/log" 2>&1 || fail "to a link"
[ -h "$work/link.c" ] && [ -s "$work/real.c" ] || fail "to a link: it was replaced"

# A folder: all of it, and Ninja is told of the folder too, so that it notices a file more.
mkdir "$work/folder"
cp "$ops/axpy.cu" "$work/folder"
cp "$ops/axpy.cu" "$work/folder/axpy.cu.orig"
"$builtin" "--depfile=$work/out.d" "$work/out.c" "$work/folder" >"$work/log" 2>&1 || fail "a folder"
grep -q '^    axpy_references,$' "$work/out.c" || fail "a folder: no op"
[ "$(cat "$work/out.d")" = "$work/out.c: $work/folder $work/folder/axpy.cu" ] || fail "a folder: $(cat "$work/out.d")"
rm "$work/out.c"

# A file of the folder that an op includes goes with it, once.
{ cat "$ops/axpy.cu"; printf '#include "more.cuh"\n  # include  "more.cuh"\n#include "elsewhere.h"\n'; } >"$work/folder/axpy.cu"
printf '#define KR_LOCAL_MORE 1\nstruct more { int x; };' >"$work/folder/more.cuh"
"$builtin" "--depfile=$work/out.d" "$work/out.c" "$work/folder" >"$work/log" 2>&1 || fail "an include"
[ "$(grep -c 'struct more' "$work/out.c")" = 1 ] || fail "an include: not once"
pack_text | grep -q '\\000more\.cuh\\000' || fail "an include: not by its name"
grep -q "/axpy.cu $work/folder/more.cuh" "$work/out.d" || fail "an include: not an input of the build"
rm "$work/out.c"
printf '\357\273\277struct more { int x; };' >"$work/folder/more.cuh"
refused "a byte-order mark in an include" '^more.cuh:1: the file begins with a byte-order mark' "$work/out.c" "$work/folder"

# Where there is NVRTC: a source that does not compile, and parameters that differ, end the build.
if "$builtin" --images=required "$work/out.c" "$ops/axpy.cu" >"$work/log" 2>&1; then
    pack_text | grep -q '\.version' || fail "no image"
    rm "$work/out.c"
    sed 's/y\[n - 1\] = a/oops = a/' "$ops/axpy.cu" >"$work/bad.cu"
    refused "a source that does not compile" 'oops' --images=auto "$work/out.c" "$work/bad.cu"
    { cat "$ops/axpy.cu"; echo '#include "broken.cuh"'; } >"$work/bad.cu"
    printf '\n\nstruct oops {\n' >"$work/broken.cuh"
    refused "an include that does not compile" 'broken.cuh(3)' --images=auto "$work/out.c" "$work/bad.cu"
    # Hidden by a comment, by the preprocessor, included twice: what the compiler sees counts.
    { cat "$ops/axpy.cu"; printf '/*\n#include "guarded.cuh"\n*/\n#if 0\n#include "guarded.cuh"\n#endif\n'
      printf '#include "guarded.cuh"\n#include "guarded.cuh" /* and\n more */\nstatic __device__ guarded g;\n'; } >"$work/folder/axpy.cu"
    printf '#pragma once\n#include "guarded.cuh"\nstruct guarded { int x; };\n' >"$work/folder/guarded.cuh"
    "$builtin" --images=required "$work/out.c" "$work/folder" >"$work/log" 2>&1 || fail "hidden includes"
    rm "$work/out.c"
    { cat "$ops/axpy.cu"; echo '#include "nowhere.cuh"'; } >"$work/folder/axpy.cu"
    refused "an include that is not there" 'Put the file beside axpy.cu' --images=auto "$work/out.c" "$work/folder/axpy.cu"
    sed 's/void plain(/void plian(/' "$ops/axpy.cu" >"$work/bad.cu"
    refused "a kernel that is not named as its variant" 'bad.cu has no kernel "plain"; it has ' --images=auto \
        "$work/out.c" "$work/bad.cu"
    sed 's/plain(uint64_t n/plain(uint32_t n/' "$ops/axpy.cu" >"$work/bad.cu"
    refused "a parameter that differs" "argument 1 'n' is u64 (8 bytes) in the descriptor, 4 bytes" --images=auto \
        "$work/out.c" "$work/bad.cu"
fi

rc=0
"$builtin" --fast "$work/out.c" >"$work/log" 2>&1 || rc=$?
[ "$rc" -eq 2 ] || fail "an unknown option: exit $rc"
