// SPDX-License-Identifier: Apache-2.0
// State spaces, vectors, atomics, barriers, warps.
#include <cooperative_groups.h>
namespace cg = cooperative_groups;

__constant__ float table[256] = {1.0f, 2.5f, -3.0f};
__constant__ struct { int a; double b; const char *c; } record = {3, 4.5, "text"};
__device__ int counter = 7;
__device__ int *pointer = &counter;
__device__ volatile unsigned flag;
__managed__ double managed;
static __device__ short grid2[4][3] = {{1, 2, 3}, {4, 5}};

template <typename T, int N> __global__ void reduce(const T *__restrict__ in, T *out, int n)
{
    __shared__ T part[N];
    T sum = 0;
    for (int i = threadIdx.x; i < n; i += N)
        sum += in[i];
    part[threadIdx.x] = sum;
    __syncthreads();
#pragma unroll
    for (int k = N / 2; k > 0; k /= 2) {
        if (threadIdx.x < k)
            part[threadIdx.x] += part[threadIdx.x + k];
        __syncthreads();
    }
    if (!threadIdx.x)
        atomicAdd(out, part[0]);
}
template __global__ void reduce<float, 128>(const float *, float *, int);
template __global__ void reduce<double, 64>(const double *, double *, int);
template __global__ void reduce<int, 256>(const int *, int *, int);

extern __shared__ int dynamic[];

__global__ void __launch_bounds__(256, 2) atomics(int *a, unsigned *b, unsigned long long *c, float *f, double *g)
{
    atomicAdd(a, 1); atomicSub(a, 2); atomicExch(a, 3); atomicMin(a, 4); atomicMax(a, 5); atomicCAS(a, 6, 7);
    atomicAnd(a, 8); atomicOr(a, 9); atomicXor(a, 10); atomicInc(b, 11); atomicDec(b, 12);
    a[1] = atomicAdd(a, 1) + atomicExch(a, 3) + atomicMin(a, 4) + atomicCAS(a, 6, 7) + atomicXor(a, 10);
    b[1] = atomicInc(b, 11) + atomicDec(b, 12) + atomicMax(b, 3u) + atomicAdd_system(b, 3u) + atomicOr_block(b, 1u);
    c[1] = atomicAdd(c, 1ull) + atomicCAS(c, 2ull, 3ull) + atomicMax(c, 4ull) + atomicAnd(c, 5ull) + atomicExch(c, 1ull);
    f[1] = atomicAdd(f, 1.0f) + atomicExch(f, 2.0f);
    g[1] = atomicAdd(g, 1.0);
    atomicAdd(&dynamic[threadIdx.x], 1);
    dynamic[5] = atomicExch(&dynamic[7], 3);
}

__global__ void warps(int *a, double *d, unsigned *m)
{
    int v = a[threadIdx.x];
    v += __shfl_sync(~0u, v, 3) + __shfl_up_sync(~0u, v, 1) + __shfl_down_sync(~0u, v, 2, 16) + __shfl_xor_sync(~0u, v, 4);
    d[threadIdx.x] = __shfl_xor_sync(~0u, d[threadIdx.x], 8);
    m[0] = __ballot_sync(~0u, v > 3) + __activemask() + __match_any_sync(~0u, v) + __any_sync(~0u, v) + __all_sync(~0u, v);
    int all;
    m[1] = __match_all_sync(~0u, v, &all) + all;
    __syncwarp();
    a[threadIdx.x] = __syncthreads_count(v) + __syncthreads_and(v) + __syncthreads_or(v);
    __threadfence(); __threadfence_block(); __threadfence_system();
#if __CUDA_ARCH__ >= 800
    a[1] = __reduce_add_sync(~0u, v) + __reduce_max_sync(~0u, v) + __reduce_xor_sync(~0u, (unsigned)v);
#endif
    __nanosleep(100);
}

__global__ void groups(int *a)
{
    cg::thread_block block = cg::this_thread_block();
    cg::thread_block_tile<8> tile = cg::tiled_partition<8>(block);
    a[block.thread_rank()] = tile.shfl_down(a[0], 1) + cg::coalesced_threads().size();
    tile.sync();
    cg::this_grid().sync();
}

__global__ void vectors(float4 *a, uchar4 *b, short2 *c, double2 *d, int3 *e, const ulonglong2 *__restrict__ g, ulonglong2 *h)
{
    const int i = threadIdx.x;
    a[i] = make_float4(a[i].y, a[i].x, table[i], record.a);
    b[i] = make_uchar4(b[i].w, 1, b[i].x, 2);
    c[i] = make_short2(c[i].y, grid2[i & 3][1]);
    d[i] = make_double2(__ldg(&d[i].y), record.b);
    e[i].z = e[i].x + *pointer + flag;
    h[i] = __ldcs(&g[i]);
    __stwt(&h[i + 1], __ldcg(&h[i]));
    int local[32];
    for (int k = 0; k < 32; k++)
        local[k] = e[k].x;
    e[0].x = local[e[1].y & 31];
    flag = clock() + clock64() + managed;
    asm volatile("prefetch.global.L2 [%0];" ::"l"(a));
    unsigned lane, smid;
    asm("mov.u32 %0, %%laneid; mov.u32 %1, %%smid;" : "=r"(lane), "=r"(smid));
    e[2].x = lane + smid + warpSize + gridDim.y + blockIdx.z;
}
