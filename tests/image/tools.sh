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
# Kernels with all that an image says of them, by every target that this toolkit knows; and by the assemblers of other
# toolkits in the folders that KREGISTRY_TEST_PTXAS names.
cat >all.cu <<'C'
#include <cstdio>
__device__ int g1;
__constant__ float c1[10];
__device__ double g2[4] = {1, 2, 3, 4};
__managed__ int m1;
struct mixed { char c; double d; short s[3]; };
struct big { char bytes[3000]; };
extern "C" __global__ void params(int *p, char c, short s, mixed m, big b, bool last)
{
    *p = c + s + m.s[1] + b.bytes[c] + last + g1 + (int)c1[s] + (int)g2[c] + m1;
}
extern "C" __global__ void __launch_bounds__(128, 2) bounded(int *p)
{
    extern __shared__ int dynamic[];
    __shared__ double fixed[100];
    fixed[threadIdx.x % 100] = dynamic[threadIdx.x] = *p;
    __syncthreads();
    p[threadIdx.x] = dynamic[3] + (int)fixed[*p];
}
extern "C" __global__ void local(int *p, int n)
{
    int a[100];
    for (int i = 0; i < n; i++)
        a[p[i]] = i;
    *p = a[n];
    printf("%d", n);
}
#if __CUDA_ARCH__ >= 900
extern "C" __global__ void __cluster_dims__(2, 2, 1) clustered(int *p) { *p = 1; }
extern "C" __global__ void __launch_bounds__(64, 1, 4) ranked(int *p) { *p = 2; }
#endif
#if __CUDA_ARCH__ >= 900 && !defined OLD
extern "C" __global__ void __block_size__((64, 1, 1), (2, 1, 1)) whole(int *p) { *p = 3; }
#endif
C
for code in $(nvcc --list-gpu-code) sm_90a sm_100a sm_120a sm_100f sm_103f sm_120f; do
    name=all.13.${code#sm_}
    nvcc -arch=compute_${code#sm_} -ptx all.cu -o $name.ptx
    ptxas --version | sed -n 's/.*release/release/p' >$name.log
    ptxas -v -arch=$code $name.ptx -o $name.cubin 2>>$name.log
done
for code in 80 90 100 100f; do # for a linker
    name=all.13.rdc.$code
    nvcc -rdc=true -arch=compute_$code -ptx all.cu -o $name.ptx
    ptxas --version | sed -n 's/.*release/release/p' >$name.log
    ptxas -v -c -arch=sm_$code $name.ptx -o $name.cubin 2>>$name.log
done
for folder in ${KREGISTRY_TEST_PTXAS:-}; do
    for code in 75:7.8 80:7.8 90:7.8 90a:8.0 100:8.7 100a:8.7 120a:8.7 100f:8.8 120f:8.8; do
        isa=${code#*:} code=${code%:*}
        name=all.$(basename "$folder").$code
        nvcc -DOLD -arch=compute_$code -ptx all.cu -o new.ptx
        sed "s/^\.version.*/.version $isa/" new.ptx >$name.ptx
        "$folder/ptxas" --version | sed -n 's/.*release/release/p' >$name.log
        "$folder/ptxas" -v -arch=sm_$code $name.ptx -o $name.cubin 2>>$name.log || rm -f $name.cubin # too old for it
    done
done
for mode in none speed balance size; do
    for arch in 90 90a 100f 120; do
        fatbinary -64 --create=$arch.$mode.fatbin --compress-mode=$mode \
            --image3=kind=elf,sm=$arch,file=$arch.cubin --image3=kind=ptx,sm=$arch,file=$arch.ptx
    done
done
