#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# pack.sh BUILD SOURCE PREFIX LIBDIR SOFTCUDA MESON CMAKE NINJA: examples/pack is built with CMake and with Meson against an
# installed kregistry, and with Meson where kregistry is its subproject, and runs without NVRTC. A tool that is not there
# is given as "none".
set -eu
build=$1 source=$2 prefix=$3 libdir=$4 softcuda=$5 meson=$6 cmake=$7 ninja=$8
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
exec 3>&1 >"$work/log" 2>&1

fail() {
    cat "$work/log" >&3
    echo "FAILED: $1" >&3
    exit 1
}

skip() {
    echo "skipped: $1" >&3
    exit 77
}

[ "$meson" != none ] || skip 'there is no Meson to install with'
"$meson" install -C "$build" --no-rebuild --destdir "$work/root" || fail 'installing'
root=$work/root$prefix
# Moved: nothing may remember where it was installed.
mv "$root" "$work/moved"
root=$work/moved
export PATH="$root/bin:$PATH" LD_LIBRARY_PATH="$root/$libdir" PKG_CONFIG_PATH="$root/$libdir/pkgconfig"
export KREGISTRY_EXAMPLE_DRIVER="$softcuda" KREGISTRY_SOFTCUDA_DEVICES=sm_75
sed -i "s|^prefix=.*|prefix=$root|" "$root/$libdir/pkgconfig/kregistry.pc"
echo 'extern "C" __global__ void k() {}' >"$work/k.cu"
kregistry compile "$work/k.cu" -o "$work/k.ptx" --arch sm_90a || skip 'there is no NVRTC that knows sm_90a'
app=$work/app
cp -r "$source/examples/pack" "$app"
mkdir "$work/wrong"

# runs PROGRAM TEXT: with its pack alone.
runs() {
    KREGISTRY_NVRTC=none "$1" >"$work/out" || fail "$1 does not run"
    grep -q "$2" "$work/out" || fail "$1 says no \"$2\" but $(cat "$work/out")"
}

# again WHAT COMMAND...: builds, and again after each change, which the pack must follow.
again() {
    what=$1 program=$2
    shift 2
    "$@" || fail "$what"
    runs "$program" '^1 ops, y\[1\] = 500$'
    sed 's/^\/\/! op .*/\/\/! op more/' "$app/kernels/mix.cu" >"$app/kernels/more.cu"
    "$@" || fail "$what: a file more"
    runs "$program" '^2 ops, y\[1\] = 500$'
    rm "$app/kernels/more.cu"
    echo '#error changed' >>"$app/kernels/grid.cuh"
    "$@" && fail "$what: an included file that changed is not noticed"
    sed -i '$d' "$app/kernels/grid.cuh"
    "$@" || fail "$what: a file less"
    runs "$program" '^1 ops, y\[1\] = 500$'
}

built=
if [ "$ninja" != none ]; then
    "$meson" setup "$work/with_meson" "$app" || fail 'Meson: setup'
    again Meson "$work/with_meson/app" "$ninja" -C "$work/with_meson"
    built="$built, with Meson"
    # As a subproject: the wrap is that of docs/shipping.md, and what is installed has no part in it.
    mkdir "$app/subprojects"
    ln -s "$source" "$app/subprojects/kregistry"
    # shellcheck disable=SC2016
    sed -n '/^\[wrap-file\]/,/^```/{/^```/!p}' "$source/docs/shipping.md" >"$app/subprojects/kregistry.wrap"
    (
        unset LD_LIBRARY_PATH
        "$meson" setup "$work/with_subproject" "$app" --wrap-mode=forcefallback -Dkregistry:tests=disabled \
            -Dkregistry:shipped_ptx=disabled || fail 'Meson, a subproject: setup'
        again 'Meson, a subproject' "$work/with_subproject/app" "$ninja" -C "$work/with_subproject" app
        ldd "$work/with_subproject/app" | grep -q "$work/with_subproject/.*/libkregistry" || fail 'Meson, a subproject: another libkregistry'
    ) || exit 1
    rm -r "$app/subprojects"
    built="$built, as a subproject of Meson's"
fi
if [ "$cmake" != none ]; then
    for generator in 'Ninja' 'Unix Makefiles'; do
        case $generator in
        Ninja) [ "$ninja" != none ] || continue ;;
        *) command -v make || continue ;;
        esac
        "$cmake" -G "$generator" -S "$app" -B "$work/with_$generator" -DCMAKE_PREFIX_PATH="$root" || fail "CMake, $generator"
        again "CMake, $generator" "$work/with_$generator/app" "$cmake" --build "$work/with_$generator"
        built="$built, with CMake and $generator"
    done
    # Without the language C.
    mkdir "$work/cxx"
    sed 's/project(app C)/project(app CXX)/; s/app\.c/app.cpp/; s/OPS kernels/OPS app\/kernels/' "$app/CMakeLists.txt" >"$work/cxx/CMakeLists.txt"
    cp -r "$app" "$work/cxx/app"
    cat >"$work/cxx/app.cpp" <<'END'
#include <kregistry/kregistry.h>

extern "C" const unsigned char my_kernels_pack[];
extern "C" const size_t my_kernels_pack_bytes;

int main()
{
    kr_error err;
    kr_pack *pack = nullptr;
    if (kr_pack_open_memory(my_kernels_pack, my_kernels_pack_bytes, &pack, &err))
        return kr_error_print(&err, stderr);
    printf("%zu ops\n", kr_pack_get_info(pack).n_ops);
    kr_pack_close(&pack);
}
END
    if command -v "${CXX:-c++}"; then
        "$cmake" -S "$work/cxx" -B "$work/cxx/build" -DCMAKE_PREFIX_PATH="$root" || fail 'CMake, C++ alone'
        "$cmake" --build "$work/cxx/build" || fail 'CMake, C++ alone: building'
        runs "$work/cxx/build/app" '^1 ops$'
    fi
    # What is asked for wrongly is said where the project is configured.
    sed 's/OPS kernels/KERNELS kernels/' "$app/CMakeLists.txt" >"$work/wrong/CMakeLists.txt"
    "$cmake" -S "$work/wrong" -B "$work/wrong/build" -DCMAKE_PREFIX_PATH="$root" && fail 'a call without OPS is taken'
    grep -q 'kregistry_add_pack(TARGET NAME OPS PATH' "$work/log" || fail 'a call without OPS: no word of it'
fi
# By hand, with an object.
(
    cd "$work"
    kregistry pack --ops "$app/kernels" -o my_kernels.pack --ptx 75 && kregistry embed my_kernels.pack -o my_kernels_pack.o
    # shellcheck disable=SC2046
    "${CC:-cc}" "$app/app.c" my_kernels_pack.o $(pkg-config --cflags --libs kregistry) -o by_hand
    kregistry embed my_kernels.pack -o my_kernels_pack.c
    "${CC:-cc}" -std=c99 -Wall -Wextra -Wpedantic -Werror -c my_kernels_pack.c -o c.o
    ! command -v "${CXX:-c++}" || "${CXX:-c++}" -Wall -Wextra -Wpedantic -Werror -x c++ -c my_kernels_pack.c -o cxx.o
) || fail 'by hand'
runs "$work/by_hand" '^1 ops, y\[1\] = 500$'
echo "built by hand$built" >&3
