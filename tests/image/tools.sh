#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Fills the folder $1 with cubins and fatbins made by the CUDA toolkit in $2.
set -eu
mkdir -p "$1"
cd "$1"
PATH=$2:$PATH
cat >k.cu <<'C'
extern "C" __global__ void saxpy(float a, const float *x, float *y, unsigned long long n)
{
    unsigned long long i = blockIdx.x * (unsigned long long)blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = a * x[i] + y[i];
}
extern "C" __global__ void __launch_bounds__(256) tile(float *p, int n)
{
    __shared__ float s[2048];
    s[threadIdx.x] = p[threadIdx.x];
    __syncthreads();
    p[threadIdx.x] = s[255 - threadIdx.x] * n;
}
C
for arch in 75 80 90 90a 100 100f 120; do
    nvcc -arch=compute_$arch -ptx k.cu -o $arch.ptx
    ptxas -v -arch=sm_$arch $arch.ptx -o $arch.cubin 2>$arch.log
done
for mode in none speed balance size; do
    for arch in 90 90a 100f 120; do
        fatbinary -64 --create=$arch.$mode.fatbin --compress-mode=$mode \
            --image3=kind=elf,sm=$arch,file=$arch.cubin --image3=kind=ptx,sm=$arch,file=$arch.ptx
    done
done
