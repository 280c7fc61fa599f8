# shellcheck shell=bash disable=SC2034,SC2317
# SPDX-License-Identifier: Apache-2.0
# What the scripts share: what is needed to build, and how it gets onto a Debian or Ubuntu machine. Sourced, not run.

set -euo pipefail

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
deps=$top/.deps

nvrtc_version=13.0.88
meson_least=1.0.1
meson_version=1.0.1

say() { printf '== %s\n' "$*"; }
die() { printf 'error: %s\n' "$*" >&2; exit 1; }

as_root() {
  if [ "$(id -u)" = 0 ]; then
    "$@"
  elif command -v sudo >/dev/null; then
    sudo "$@"
  else
    die "needs root or sudo: $*"
  fi
}

# A row: the package, and a command that succeeds where it is not needed any more.
build_packages=(
  'gcc           command -v gcc'
  'libc6-dev     test -e /usr/include/stdio.h'
  'binutils      command -v readelf'
  'python3       command -v python3'
  'ninja-build   command -v ninja'
  'pkg-config    command -v pkg-config'
  'libzstd-dev   pkg-config --exists libzstd'
  'liblz4-dev    pkg-config --exists liblz4'
  'libjansson-dev pkg-config --exists jansson'
)
test_packages=(
  'check         pkg-config --exists check'
  'libsubunit-dev pkg-config --exists libsubunit'
  'cmake         command -v cmake'
)

apt_is_fresh=

# need ROW...: installs the packages of the rows whose command fails.
need() {
  local row package probe missing=()
  for row in "$@"; do
    read -r package probe <<<"$row"
    bash -c "$probe" >/dev/null 2>&1 || missing+=("$package")
  done
  [ ${#missing[@]} -gt 0 ] || return 0
  command -v apt-get >/dev/null || die "install what Debian calls: ${missing[*]}"
  say "installing ${missing[*]}"
  if [ -z "$apt_is_fresh" ]; then
    as_root apt-get -qq update </dev/null
    apt_is_fresh=yes
  fi
  as_root env DEBIAN_FRONTEND=noninteractive \
    apt-get -qq install -y --no-install-recommends "${missing[@]}" </dev/null >/dev/null
}

# wheel NAME FOLDER: unpacks one Python package into .deps/FOLDER. Nothing is installed into the system's Python.
wheel() {
  local name=$1 folder=$deps/$2 work
  [ ! -d "$folder" ] || return 0
  need 'python3-pip python3 -m pip --version'
  say "fetching $name into .deps/$2"
  mkdir -p "$deps"
  work=$(mktemp -d "$deps/fetch.XXXXXX")
  if python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary :all: \
      -d "$work" "$name" </dev/null && python3 -m zipfile -e "$work"/*.whl "$work/whole"; then
    mv -T "$work/whole" "$folder"
  fi
  rm -rf "$work"
  [ -d "$folder" ]
}

version_is_least() { [ "$(printf '%s\n' "$1" "$2" | sort -V | head -n 1)" = "$2" ]; }

# The distribution's Meson where it is new enough (Ubuntu 22.04's is not).
need_meson() {
  if ! command -v meson >/dev/null && [ ! -d "$deps/meson" ]; then
    need 'meson command -v meson'
  fi
  if command -v meson >/dev/null && version_is_least "$(meson --version)" "$meson_least"; then
    return
  fi
  wheel "meson==$meson_version" meson || die "Meson $meson_least or later is needed: https://mesonbuild.com"
  export PYTHONPATH=$deps/meson${PYTHONPATH:+:$PYTHONPATH}
  meson() { python3 -m mesonbuild.mesonmain "$@"; }
}

toolkit_nvrtc() {
  compgen -G "${CUDA_HOME:-/nonexistent}/lib64/libnvrtc.so*" || compgen -G '/usr/local/cuda*/lib64/libnvrtc.so*' ||
    { PATH=$PATH:/sbin:/usr/sbin ldconfig -p | grep -o '/.*/libnvrtc\.so\.1[1-9].*' | xargs -r ls; } 2>/dev/null
}

# NVRTC: what KREGISTRY_NVRTC names, a toolkit's, or the Python package in .deps. Sets nvrtc to a path, or to nothing
# where the library finds it by itself.
nvrtc=
need_nvrtc() {
  if [ -n "${KREGISTRY_NVRTC:-}" ]; then
    nvrtc=$KREGISTRY_NVRTC
  elif [ -n "$(toolkit_nvrtc | head -n 1)" ]; then
    nvrtc=
  elif wheel "nvidia-cuda-nvrtc==$nvrtc_version" nvrtc; then
    nvrtc=$deps/nvrtc
    export KREGISTRY_NVRTC=$nvrtc
  else
    say "no NVRTC: kernels cannot be compiled on this machine"
  fi
}

# configure FOLDER OPTION...: once, and again when NVRTC is found elsewhere than the last time.
configure() {
  local folder=$top/$1 told
  told=$folder/nvrtc.told
  shift
  if [ ! -f "$folder/build.ninja" ]; then
    meson setup "$folder" "$top" --libdir=lib -Dnvrtc="$nvrtc" "$@" </dev/null
  elif [ "$(cat "$told" 2>/dev/null)" != "$nvrtc" ]; then
    meson setup --reconfigure "$folder" "$top" -Dnvrtc="$nvrtc" "$@" </dev/null
  fi
  printf '%s\n' "$nvrtc" >"$told"
}
