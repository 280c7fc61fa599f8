#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# unhelpful.sh COMMAND [MOST]: the command on drivers that fail. One clear message, the right exit code, no crash and, where the
# command was built for it, no leak. Each call below is failed at its first to its MOST-th time (1; all: 1000).
set -u
command=$1 most=${2:-1}
# By shipped PTX, for speed, and since NVRTC is a client of the driver itself.
export KREGISTRY_SOFTCUDA_DEVICES=sm_90,sm_80 KREGISTRY_SOFTCUDA_LOG=1
export ASAN_OPTIONS=exitcode=99 LSAN_OPTIONS=exitcode=99 UBSAN_OPTIONS=halt_on_error=1:exitcode=99
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
bad=0 n=0

complain() { # what, and the last run
    bad=1
    printf '%s: kregistry %s (exit code %s)\n' "$1" "$words" "$code"
    sed 's/^/    /' "$out/stdout" "$out/stderr"
}

meet() { # FAIL, the command's words
    fail=$1
    shift
    words="$* with $fail"
    n=$((n + 1))
    KREGISTRY_SOFTCUDA_FAIL=$fail timeout 100 "$command" --driver softcuda "$@" >"$out/stdout" 2>"$out/stderr"
    code=$?
    errors=$(grep -c '^error: ' "$out/stderr")
    [ "$code" -le 3 ] || complain 'it crashed, hung or leaked'
    [ "$errors" -le 1 ] || complain 'more than one error'
}

# ---- presets: FAIL, exit code, a part of what is said, the command's words ----
expect() {
    fail=$1 expected=$2 says=$3
    shift 3
    meet "$fail" "$@"
    [ "$code" = "$expected" ] || complain "exit code $expected was due"
    cat "$out/stdout" "$out/stderr" | grep -q -e "$says" || complain "\"$says\" was due"
}
expect '' 0 verified run saxpy.f32 --n 100 --nvrtc none
expect preset=wsl 0 verified run saxpy.f32 --n 100 --nvrtc none
expect preset=full-gpu 0 verified run saxpy.f32 --n 100 --nvrtc none
expect preset=full-gpu 1 'bytes asked for, .* free of .*out of memory' run saxpy.f32 --n 20000000
expect memory=64M 1 'device 0: .* bytes asked for' run saxpy.f32 --n 1152921504606846976
expect preset=exclusive-gpu 3 'in exclusive-process mode: choose another device' run saxpy.f32 --n 100 --nvrtc none
expect preset=exclusive-gpu 1 'FAILED   device 1 .*busy' doctor
expect preset=mps-full 3 'no room for another client' run saxpy.f32 --n 100 --split --nvrtc none
expect preset=vgpu 0 verified run saxpy.f32 --n 100 --split --nvrtc none
expect preset=container-no-jit 1 'FAILED   device 0 .*PTX compiler library is missing' doctor --nvrtc none
expect preset=after-suspend 3 'CUDA_ERROR_UNKNOWN (999)' run saxpy.f32 --n 100 --nvrtc none
expect preset=after-suspend 0 '0 devices: .*CUDA_ERROR_UNKNOWN' devices
expect frob=1 3 'KREGISTRY_SOFTCUDA_FAIL: "frob=1"' run saxpy.f32 --n 100 --nvrtc none
expect symbol=cuMemAlloc 3 'lacks 1 of the functions needed: cuMemAlloc_v2' run saxpy.f32 --n 100 --nvrtc none
expect symbol=cuLibraryLoadData,symbol=cuFuncGetParamInfo,symbol=cuMemAllocAsync 0 verified run saxpy.f32 --n 100 --nvrtc none
expect slow=1ms 0 verified run saxpy.f32 --n 100 --nvrtc none
expect cuOccupancyMaxActiveBlocksPerMultiprocessor=UNKNOWN 1 'cannot compute the occupancy' run transpose.f32 --shape 10x10
for fault in 700 702 710 714 715 716 717 718 719; do
    expect "launch#2=$fault" 1 "CUDA is lost for this process" run saxpy.f32 --n 100 --nvrtc none
done

# ---- calls: every failure is told, but of those that end things or have another way ----
has_another_way() {
    case $1 in
    cuCtxPopCurrent | cuDevicePrimaryCtxRelease | cuEventDestroy | cuStreamDestroy | cuMemFree | cuModuleUnload | cuLibraryUnload) true ;;
    cuLibraryLoadData | cuLibraryGetModule) true ;; # modules are loaded instead
    cuThreadExchangeStreamCaptureMode) true ;; # only a capture of the caller's would notice
    cuCtxGetCurrent | cuCtxPushCurrent) [ "$time" -gt 1 ] ;; # inside one of the others
    *) false ;;
    esac
}

campaign() { # the command's words, `calls` in their turn
    for call in $calls; do
        time=1
        while [ "$time" -le "$most" ]; do
            meet "$call#$time=UNKNOWN" "$@"
            if ! grep -q 'as KREGISTRY_SOFTCUDA_FAIL asks' "$out/stderr"; then
                [ "$code" = 0 ] || complain 'nothing failed'
                break
            fi
            if [ "$code" = 0 ]; then
                has_another_way "$call" || complain 'the failure was swallowed'
            else
                cat "$out/stdout" "$out/stderr" | grep -v '^softcuda: ' | grep -q CUDA_ERROR_UNKNOWN ||
                    complain 'the code was not told'
            fi
            time=$((time + 1))
        done
    done
}
calls='cuInit cuDriverGetVersion cuDeviceGetCount cuDeviceGet cuDeviceGetName cuDeviceGetAttribute cuDeviceTotalMem
    cuDeviceGetUuid cuDevicePrimaryCtxRetain cuCtxGetCurrent cuCtxPushCurrent cuCtxPopCurrent cuLibraryLoadData
    cuLibraryGetModule cuModuleGetFunction cuFuncGetAttribute cuFuncGetParamInfo cuStreamCreateWithPriority
    cuOccupancyMaxPotentialBlockSize cuOccupancyMaxActiveBlocksPerMultiprocessor cuMemAlloc cuMemcpyHtoD cuLaunchKernel
    cuStreamSynchronize cuMemcpyDtoH cuMemFree cuEventCreate cuEventRecord cuEventSynchronize cuEventElapsedTime cuEventDestroy
    cuStreamDestroy cuDevicePrimaryCtxRelease'
campaign run saxpy.f32 --n 100 --nvrtc none
calls='cuMemAlloc cuMemcpyHtoDAsync cuMemcpyDtoHAsync cuStreamSynchronize cuLaunchKernel cuStreamCreateWithPriority'
campaign run saxpy.f32 --n 100 --split --nvrtc none
echo "$n runs"
exit $bad
