# shellcheck shell=bash disable=SC2154
# SPDX-License-Identifier: Apache-2.0
# Programs that nobody here wrote, on softcuda. Sourced by scripts/test, after scripts/lib.sh.

client_packages=(
  'python3-numba  test -d /usr/lib/python3/dist-packages/numba'
  'hashcat        command -v hashcat'
)
nvvm_version=13.0.88
cudart_version=13.0.96

# part PATTERN...: the first file of a toolkit, or of the wheels in .deps, that is one of them.
part() {
  local folder pattern file
  for folder in "${CUDA_HOME:-/usr/local/cuda}" /usr/local/cuda-* "$deps"/*/nvidia/cu*; do
    for pattern; do
      file=$(compgen -G "$folder/$pattern" | head -n 1) || continue
      readlink -f "$file"
      return
    done
  done
  return 1
}

# find_parts: sets libnvvm, libdevice, libcudart, libcudadevrt and libnvrtc.
find_parts() {
  libnvvm=$(part 'nvvm/lib64/libnvvm.so.4' 'lib64/libnvvm.so.4' 'lib/libnvvm.so.4') &&
    libdevice=$(part 'nvvm/libdevice/libdevice.10.bc') &&
    libcudart=$(part 'lib64/libcudart.so.1[23]' 'lib/libcudart.so.1[23]') &&
    libcudadevrt=$(part 'lib64/libcudadevrt.a' 'lib/libcudadevrt.a') &&
    libnvrtc=$(part 'lib64/libnvrtc.so.1[23]' 'lib/libnvrtc.so.1[23]')
}

# cuda_home FOLDER: what Numba and hashcat want of a CUDA toolkit, where they look for it.
cuda_home() {
  local libnvvm libdevice libcudart libcudadevrt libnvrtc
  find_parts || {
    wheel "nvidia-nvvm==$nvvm_version" nvvm && wheel "nvidia-cuda-runtime==$cudart_version" cudart &&
      wheel "nvidia-cuda-nvrtc==$nvrtc_version" nvrtc && find_parts
  } || return 1
  mkdir -p "$1/nvvm/lib64" "$1/nvvm/libdevice" "$1/lib64"
  ln -s "$libnvvm" "$1/nvvm/lib64/libnvvm.so.4"
  ln -s "$libdevice" "$1/nvvm/libdevice/"
  ln -s "$libcudart" "$libcudadevrt" "${libnvrtc%/*}"/libnvrtc-builtins.so* "$1/lib64/"
  ln -s "$libnvrtc" "$1/lib64/libnvrtc.so"
}

# numba_copy FOLDER: Debian's package with one line changed: it writes down a version of NVVM IR that CUDA 13's NVVM refuses,
# and now the one that NVVM tells.
numba_copy() {
  local nvvm_py=$1/numba/cuda/cudadrv/nvvm.py
  mkdir "$1"
  cp -rs /usr/lib/python3/dist-packages/numba "$1/"
  sed -i 's/ir_versions = \[i32(1), i32(6), i32(3), i32(0)\]/ir_versions = [i32(n) for n in NVVM().get_ir_version()]/' "$nvvm_py"
  grep -q 'NVVM().get_ir_version()]$' "$nvvm_py" || die "this Numba is not the one that is known here: $nvvm_py"
}

# run_numba LIBCUDA_FOLDER WORK: on two chips that Numba 0.56 knows. All code is compiled for the older, also where a test
# asks for a chip that NVVM has forgotten.
run_numba() {
  numba_copy "$2/python"
  env PYTHONPATH="$2/python" CUDA_HOME="$2/cuda" NUMBA_CUDA_DRIVER="$1/libcuda.so.1" NUMBA_FORCE_CUDA_CC=8.0 \
    KREGISTRY_SOFTCUDA_DEVICES=sm_80,sm_86 TMPDIR="$2" \
    /usr/bin/python3 "$top/tests/clients/numba_suite.py" "$top/tests/clients/numba_left_out.txt" "$(nproc)"
}

# hash_info MODE KEY: what hashcat says of a mode.
hash_info() {
  hashcat -m "$1" --hash-info --machine-readable | python3 -c '
import json, sys
text = sys.stdin.read()
print(json.loads(text[text.index("{"):])[sys.argv[1]][sys.argv[2]])' "$@"
}

# crack MODE WORK: hashcat finds the password of its own example hash, after its self-test of the mode on the device.
crack() {
  local password
  password=$(hash_info "$1" example_pass)
  printf '%s\n' "$password" >"$2/words"
  rm -f "$2/found"
  hashcat -m "$1" -n 1 -u 1 -T 32 --backend-ignore-opencl --potfile-disable --force --outfile "$2/found" \
    "$(hash_info "$1" example_hash)" "$2/words" </dev/null >"$2/hashcat.log" 2>&1 &&
    grep -qF ":$password" "$2/found" && ! grep -qi 'self-test failed' "$2/hashcat.log"
}

# run_hashcat LIBCUDA_FOLDER WORK
run_hashcat() (
  passed=0 failed=0
  mkdir "$2/cache" "$2/data"
  export XDG_CACHE_HOME=$2/cache XDG_DATA_HOME=$2/data LD_LIBRARY_PATH=$1:$2/cuda/lib64
  while read -r mode name; do
    began=$SECONDS
    if crack "$mode" "$2"; then
      passed=$((passed + 1))
    else
      failed=$((failed + 1))
      cat "$2/hashcat.log"
      printf 'failed\thashcat -m %s\t%s\n' "$mode" "$name"
    fi
    say "hashcat -m $mode: $name, $((SECONDS - began)) s"
  done < <(grep -v '^#' "$top/tests/clients/hashcat_modes.txt")
  printf '%d passed, %d failed\n' "$passed" "$failed"
)

# run_clients: the last line is "N passed, N failed".
run_clients() {
  local folder=$top/build-test-gcc client work
  need "${build_packages[@]}" "${test_packages[@]}" "${client_packages[@]}"
  need_meson
  need_nvrtc
  work=$(mktemp -d)
  # shellcheck disable=SC2064
  trap "rm -rf '$work'" EXIT
  if ! cuda_home "$work/cuda"; then
    say "skipped: there is no libnvvm, libdevice, libcudart, libcudadevrt and NVRTC of CUDA 12 or 13 in a toolkit here, and none to be fetched"
    printf '0 passed, 0 failed\n'
    return
  fi
  configure "${folder##*/}" -Dwerror=true -Dtests=enabled >/dev/null
  ninja -C "$folder" softcuda/driver/libcuda.so.1 >/dev/null
  for client in numba hashcat; do
    say "$client"
    "run_$client" "$folder/softcuda/driver" "$work" | tee "$work/$client.out" || true # counted below
  done
  cat "$work"/*.out | awk '/^[0-9]+ passed, [0-9]+ failed$/ { passed += $1; failed += $3; told++ }
    END { failed += 2 - told; print passed " passed, " failed " failed"; exit failed > 0 }'
}
