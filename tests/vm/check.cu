/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels for the checkers: those named bad_ have one fault each, the others none. All have blocks of one
 * dimension. check.ptx is what nvcc -ptx -arch=sm_75 makes of it. */
#include <cooperative_groups.h>
#define KERNEL extern "C" __global__ void
#define ARGS (int *a, int *b, int n)
namespace cg = cooperative_groups;

/* ---- shared memory ---- */

KERNEL exchange ARGS
{
    __shared__ int s[1024];
    unsigned t = threadIdx.x;
    s[t] = a[blockIdx.x * blockDim.x + t];
    __syncthreads();
    b[blockIdx.x * blockDim.x + t] = s[t ^ 33];
}

KERNEL bad_exchange ARGS
{
    __shared__ int s[1024];
    unsigned t = threadIdx.x;
    s[t] = a[blockIdx.x * blockDim.x + t];
    b[blockIdx.x * blockDim.x + t] = s[t ^ 33];
}

KERNEL bad_overwrite ARGS
{
    __shared__ int s[1024];
    unsigned t = threadIdx.x;
    s[t] = a[t];
    __syncthreads();
    int x = s[t ^ 32];
    s[t] = x + 1;
    __syncthreads();
    b[t] = s[t];
}

KERNEL bad_same_place ARGS
{
    __shared__ int s;
    s = threadIdx.x;
    __syncthreads();
    b[threadIdx.x] = s;
}

KERNEL same_value ARGS
{
    __shared__ int found;
    if (threadIdx.x == 0)
        found = 0;
    __syncthreads();
    if (a[threadIdx.x] >= 0)
        found = 1;
    __syncthreads();
    b[threadIdx.x] = found;
}

KERNEL warp_exchange ARGS
{
    __shared__ int s[1024];
    unsigned t = threadIdx.x;
    s[t] = a[t];
    __syncwarp();
    int x = s[t ^ 1];
    __syncwarp();
    s[t] = x;
    __syncwarp(0xffff0000u | 0xffffu);
    b[t] = s[t ^ 2];
}

KERNEL bad_warp_exchange ARGS
{
    __shared__ int s[1024];
    unsigned t = threadIdx.x;
    s[t] = a[t];
    b[t] = s[t ^ 1];
}

/* As before there was __syncwarp(). */
KERNEL volatile_exchange ARGS
{
    __shared__ volatile int s[64];
    unsigned t = threadIdx.x;
    s[t] = a[t];
    for (int by = 16; by; by /= 2)
        if (t < (unsigned)by)
            s[t] = s[t] + s[t + by];
    b[t] = s[t];
}

/* Halves of a warp, each with its own mask. */
KERNEL half_exchange ARGS
{
    __shared__ int s[1024];
    unsigned t = threadIdx.x, half = t & 16 ? 0xffff0000u : 0xffffu;
    s[t] = a[t];
    __syncwarp(half);
    b[t] = s[t ^ 8];
}

KERNEL bad_half_exchange ARGS
{
    __shared__ int s[1024];
    unsigned t = threadIdx.x, half = t & 16 ? 0xffff0000u : 0xffffu;
    s[t] = a[t];
    __syncwarp(half);
    b[t] = s[t ^ 24];
}

KERNEL bytes ARGS
{
    __shared__ char s[1024];
    unsigned t = threadIdx.x;
    s[t] = (char)t;
    ((char *)b)[blockIdx.x * blockDim.x + t] = s[t];
}

template <bool good> static __device__ void product(const int *a, int *b, int n)
{
    __shared__ int x[16][16], y[16][16];
    unsigned c = threadIdx.x % 16, r = threadIdx.x / 16;
    int sum = 0;
    for (int k = 0; k < n; k += 16) {
        x[r][c] = a[r * n + k + c];
        y[r][c] = a[(k + r) * n + c];
        __syncthreads();
        for (int i = 0; i < 16; i++)
            sum += x[r][i] * y[i][c];
        if (good)
            __syncthreads();
    }
    b[r * 16 + c] = sum;
}

KERNEL tiles ARGS
{
    product<true>(a, b, n);
}

KERNEL bad_tiles ARGS
{
    product<false>(a, b, n);
}

KERNEL double_buffer ARGS
{
    __shared__ int s[2][256];
    unsigned t = threadIdx.x;
    int sum = 0;
    s[0][t] = a[t];
    for (int i = 0; i < n; i++) {
        __syncthreads();
        s[(i + 1) & 1][t] = a[t] + i;
        sum += s[i & 1][t ^ 40];
    }
    b[t] = sum;
}

KERNEL bad_double_buffer ARGS
{
    __shared__ int s[2][256];
    unsigned t = threadIdx.x;
    int sum = 0;
    s[0][t] = a[t];
    for (int i = 0; i < n; i++) {
        if (i % 2 == 0)
            __syncthreads();
        s[(i + 1) & 1][t] = a[t] + i;
        sum += s[i & 1][t ^ 40];
    }
    b[t] = sum;
}

static __device__ int block_sum(int x)
{
    __shared__ int sums[32];
    for (int by = 16; by; by /= 2)
        x += __shfl_down_sync(0xffffffffu, x, by);
    if (threadIdx.x % 32 == 0)
        sums[threadIdx.x / 32] = x;
    __syncthreads();
    if (threadIdx.x < 32) {
        x = threadIdx.x < blockDim.x / 32 ? sums[threadIdx.x] : 0;
        for (int by = 16; by; by /= 2)
            x += __shfl_down_sync(0xffffffffu, x, by);
    }
    __syncthreads();
    return x;
}

KERNEL reduction ARGS
{
    int x = block_sum(a[blockIdx.x * blockDim.x + threadIdx.x]);
    if (threadIdx.x == 0)
        b[blockIdx.x] = x;
}

KERNEL histogram ARGS
{
    __shared__ int bins[64];
    unsigned t = threadIdx.x;
    if (t < 64)
        bins[t] = 0;
    __syncthreads();
    atomicAdd(&bins[a[blockIdx.x * blockDim.x + t] & 63], 1);
    __syncthreads();
    if (t < 64)
        atomicAdd(&b[t], bins[t]);
}

KERNEL bad_histogram ARGS
{
    __shared__ int bins[64];
    unsigned t = threadIdx.x;
    if (t < 64)
        bins[t] = 0;
    __syncthreads();
    bins[a[t] & 63] += 1;
    __syncthreads();
    if (t < 64)
        b[t] = bins[t];
}

/* Warp 0 makes, warp 1 takes, over two named barriers. */
KERNEL named_barriers ARGS
{
    __shared__ int s[32];
    unsigned lane = threadIdx.x % 32;
    for (int i = 0; i < n; i++)
        if (threadIdx.x < 32) {
            if (i)
                asm volatile("bar.sync 2, 64;" ::: "memory");
            s[lane] = a[lane] + i;
            asm volatile("bar.arrive 1, 64;" ::: "memory");
        } else {
            asm volatile("bar.sync 1, 64;" ::: "memory");
            b[i * 32 + lane] = s[lane ^ 3];
            if (i + 1 < n)
                asm volatile("bar.arrive 2, 64;" ::: "memory");
        }
}

KERNEL bad_named_barriers ARGS
{
    __shared__ int s[32];
    unsigned lane = threadIdx.x % 32;
    if (threadIdx.x < 32) {
        s[lane] = a[lane];
        asm volatile("bar.arrive 1, 64;" ::: "memory");
        s[lane] = n;
    } else {
        asm volatile("bar.sync 1, 64;" ::: "memory");
        b[lane] = s[lane ^ 3];
    }
}

/* Warp 0 comes twice, so the barrier is over without warp 1. */
KERNEL bad_arrivals ARGS
{
    for (int i = 0; i < 3; i++)
        if (threadIdx.x < 32)
            asm volatile("bar.arrive 1, 64;" ::: "memory");
    if (threadIdx.x >= 32)
        asm volatile("bar.sync 1, 64;" ::: "memory");
    b[threadIdx.x] = 1;
}

/* One warp tells another through a flag. */
KERNEL shared_flag ARGS
{
    __shared__ int data, flag;
    if (threadIdx.x == 0)
        flag = 0;
    __syncthreads();
    if (threadIdx.x == 0) {
        data = a[0];
        __threadfence_block();
        *(volatile int *)&flag = 1;
    }
    if (threadIdx.x == 32) {
        while (*(volatile int *)&flag == 0)
            ;
        __threadfence_block();
        b[0] = data;
    }
}

/* ---- global memory ---- */

KERNEL spin_lock ARGS
{
    if (threadIdx.x == 0) {
        while (atomicCAS(&b[0], 0, 1) != 0)
            ;
        __threadfence();
        b[1] += 1;
        __threadfence();
        atomicExch(&b[0], 0);
    }
}

/* Block 0 makes, block 1 takes; the flag is read past the caches that are not coherent. */
template <bool good> static __device__ void hand_over(const int *a, int *b)
{
    if (blockIdx.x == 0) {
        b[64 + threadIdx.x] = a[threadIdx.x];
        __threadfence();
        __syncthreads();
        if (threadIdx.x == 0)
            __stcg(&b[0], 1);
    } else {
        if (good)
            while (__ldcg(&b[0]) == 0)
                ;
        __syncthreads();
        b[128 + threadIdx.x] = b[64 + threadIdx.x];
    }
}

KERNEL global_flag ARGS
{
    hand_over<true>(a, b);
}

KERNEL bad_global_flag ARGS
{
    hand_over<false>(a, b);
}

KERNEL bad_unlocked ARGS
{
    if (threadIdx.x == 0)
        b[1] += a[0];
}

KERNEL bad_blocks ARGS
{
    b[threadIdx.x] = blockIdx.x;
}

KERNEL bad_halo ARGS
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    a[i] = i;
    b[i] = a[(i + blockDim.x) % (gridDim.x * blockDim.x)];
}

template <bool good> static __device__ void last_block(const int *a, int *b)
{
    __shared__ bool last;
    int x = block_sum(a[blockIdx.x * blockDim.x + threadIdx.x]);
    if (threadIdx.x == 0) {
        b[2 + blockIdx.x] = x;
        if (good)
            __threadfence();
        last = atomicAdd(&b[0], 1) == (int)gridDim.x - 1;
    }
    __syncthreads();
    if (last && threadIdx.x == 0) {
        int sum = 0;
        for (unsigned i = 0; i < gridDim.x; i++)
            sum += b[2 + i];
        b[1] = sum;
        b[0] = 0;
    }
}

KERNEL last_block_sum ARGS
{
    last_block<true>(a, b);
}

KERNEL bad_last_block_sum ARGS
{
    last_block<false>(a, b);
}

/* Single-pass scan of block sums: b[0] hands out the tiles; then for each an aggregate, a prefix and a state. */
template <bool good> static __device__ void lookback(const int *a, int *b)
{
    __shared__ int tile, before;
    unsigned t = threadIdx.x;
    if (t == 0)
        tile = atomicAdd(&b[0], 1);
    __syncthreads();
    int *states = b + 1, *aggregates = states + gridDim.x, *prefixes = aggregates + gridDim.x;
    int x = block_sum(a[tile * blockDim.x + t]);
    if (t == 0) {
        aggregates[tile] = x;
        __threadfence();
        *(volatile int *)&states[tile] = 1;
        int sum = 0;
        for (int i = tile - 1; i >= 0; i--) {
            int state;
            while ((state = *(volatile int *)&states[i]) == 0)
                ;
            __threadfence();
            if (state == 2) {
                sum += prefixes[i];
                break;
            }
            sum += aggregates[i];
        }
        prefixes[tile] = sum + x;
        if (good)
            __threadfence();
        *(volatile int *)&states[tile] = 2;
        before = sum;
    }
    __syncthreads();
    (b + 1 + 3 * gridDim.x)[tile * blockDim.x + t] = before;
}

KERNEL scan ARGS
{
    lookback<true>(a, b);
}

KERNEL bad_scan ARGS
{
    lookback<false>(a, b);
}

KERNEL grid_sync ARGS
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x, all = gridDim.x * blockDim.x;
    for (int k = 0; k < n; k++) {
        a[i] = i + k;
        cg::this_grid().sync();
        b[i] = a[(i + blockDim.x) % all];
        cg::this_grid().sync();
    }
}

KERNEL bad_grid_sync ARGS
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x, all = gridDim.x * blockDim.x;
    for (int k = 0; k < n; k++) {
        a[i] = i + k;
        b[i] = a[(i + blockDim.x) % all];
        cg::this_grid().sync();
    }
}

/* ---- what was never written ---- */

KERNEL bad_first_read ARGS
{
    a[1] = 1;
    b[threadIdx.x] = a[threadIdx.x];
}

KERNEL bad_first_read_shared ARGS
{
    __shared__ int s[64];
    if (threadIdx.x < 63)
        s[threadIdx.x] = 0;
    __syncthreads();
    b[threadIdx.x] = s[threadIdx.x];
}

KERNEL bad_first_byte ARGS
{
    ((char *)a)[4] = 1;
    ((char *)a)[5] = 1;
    ((char *)a)[6] = 1;
    b[0] = a[1];
}

KERNEL bad_heap ARGS
{
    int *p = (int *)malloc(16);
    p[0] = 1;
    b[0] = p[0] + p[2];
    free(p);
}

KERNEL heap ARGS
{
    int *p = (int *)malloc(16);
    for (int i = 0; i < 4; i++)
        p[i] = i;
    b[threadIdx.x] = p[threadIdx.x & 3];
    free(p);
}

/* ---- out of bounds ---- */

KERNEL bad_past_end ARGS
{
    b[n + threadIdx.x] = 1;
}

KERNEL bad_before ARGS
{
    b[-3] = 1;
}

KERNEL bad_alignment ARGS
{
    *(int *)((char *)b + 2) = 1;
}

KERNEL bad_shared ARGS
{
    __shared__ int s[8];
    s[threadIdx.x] = 1;
    __syncthreads();
    b[threadIdx.x] = s[7];
}

/* ---- who takes part ---- */

KERNEL bad_branches ARGS
{
    if (threadIdx.x % 2)
        asm volatile("bar.sync 0;" ::: "memory");
    else
        asm volatile("{ .reg .u32 r; mov.u32 r, 0; bar.sync r; }" ::: "memory");
    b[threadIdx.x] = 1;
}

KERNEL unaligned_branches ARGS
{
    if (threadIdx.x % 2)
        asm volatile("barrier.sync 0;" ::: "memory");
    else
        asm volatile("{ .reg .u32 r; mov.u32 r, 0; barrier.sync r; }" ::: "memory");
    b[threadIdx.x] = 1;
}

KERNEL bad_early_exit ARGS
{
    if (threadIdx.x % 32 >= 20)
        return;
    __syncthreads();
    b[threadIdx.x] = 1;
}

KERNEL warps_exit ARGS
{
    if (threadIdx.x >= 32)
        return;
    __syncthreads();
    b[threadIdx.x] = 1;
}

/* Lanes come to the barrier a long time after each other. */
KERNEL late_lanes ARGS
{
    int x = 0;
    for (unsigned i = 0; i < threadIdx.x * 500; i++)
        x = x * 3 + a[i & 31];
    __syncthreads();
    b[threadIdx.x] = x;
}

KERNEL bad_count ARGS
{
    asm volatile("bar.sync 1, %0;" ::"r"(threadIdx.x < 32 ? 64 : 96) : "memory");
    b[threadIdx.x] = 1;
}

KERNEL bad_number ARGS
{
    asm volatile("bar.sync %0;" ::"r"(a[0] + 16) : "memory");
    b[threadIdx.x] = 1;
}

KERNEL bad_mask ARGS
{
    b[threadIdx.x] = __shfl_sync(0xffffu, a[threadIdx.x], 3);
}

KERNEL bad_source ARGS
{
    if (threadIdx.x < 16)
        b[threadIdx.x] = __shfl_sync(0xffffu, a[threadIdx.x], threadIdx.x + 16);
}

KERNEL bad_deadlock ARGS
{
    if (threadIdx.x % 32 < 16)
        b[threadIdx.x] = __shfl_sync(0xffffffffu, a[threadIdx.x], 0);
    else
        __syncthreads();
}

/* Equal values find each other; each set has its own mask. */
KERNEL matches ARGS
{
    unsigned lane = threadIdx.x % 32;
    int x = a[threadIdx.x] & 3;
    unsigned same = __match_any_sync(0xffffffffu, x);
    int leader = __ffs(same) - 1, from = 0;
    if (lane == (unsigned)leader)
        from = atomicAdd(&b[x], __popc(same));
    from = __shfl_sync(same, from, leader);
    b[4 + x * 64 + from + __popc(same & ((1u << lane) - 1))] = 1;
}

KERNEL divergent_votes ARGS
{
    unsigned t = threadIdx.x;
    if (t % 32 < 10) {
        unsigned mask = __ballot_sync(0x3ffu, a[t] > 5);
        b[t] = mask;
    } else {
        unsigned mask = __ballot_sync(0xfffffc00u, a[t] > 7);
        b[t] = mask;
    }
    __syncwarp();
    b[t] += __shfl_xor_sync(0xffffffffu, t, 5);
}

/* ---- a full mask, and half a warp ---- */

/* PTX waits for the lanes of the mask that have not exited. */
KERNEL half_exits ARGS
{
    if (threadIdx.x % 32 >= 16)
        return;
    int x = __shfl_xor_sync(~0u, a[threadIdx.x], 1);
    x += __popc(__ballot_sync(~0u, x > 3)) + __all_sync(~0u, x) + __match_any_sync(~0u, x);
    __syncwarp();
    b[threadIdx.x] = x;
}

KERNEL half_works_and_exits ARGS
{
    if (threadIdx.x % 32 < 16)
        b[threadIdx.x] = __shfl_xor_sync(~0u, a[threadIdx.x], 1);
    b[threadIdx.x] += a[threadIdx.x];
}

KERNEL bad_half_exits ARGS
{
    if (threadIdx.x % 32 >= 16)
        return;
    b[threadIdx.x] = __shfl_xor_sync(~0u, a[threadIdx.x], 16);
}

KERNEL bad_half_shuffles ARGS
{
    if (threadIdx.x % 32 < 16)
        b[threadIdx.x] = __shfl_xor_sync(~0u, a[threadIdx.x], 1);
    else
        b[threadIdx.x] = __shfl_up_sync(~0u, a[threadIdx.x], 1);
}

KERNEL bad_half_votes ARGS
{
    int x = threadIdx.x;
    if (x % 32 >= 16)
        x = __ballot_sync(~0u, a[x] > 3);
    __syncwarp();
    b[threadIdx.x] = x;
}

KERNEL bad_half_matches ARGS
{
    int x = a[threadIdx.x];
    if (threadIdx.x % 32 < 16)
        x = __match_any_sync(~0u, x);
    else
        x = __any_sync(~0u, x > 3);
    b[threadIdx.x] = x;
}

KERNEL bad_half_waits ARGS
{
    int x = a[threadIdx.x];
    if (threadIdx.x % 32 < 16)
        x = __shfl_sync(~0u, x, 0);
    __syncthreads();
    b[threadIdx.x] = x;
}

KERNEL bad_half_mask ARGS
{
    b[threadIdx.x] = __shfl_sync(threadIdx.x % 32 < 16 ? ~0u : n, a[threadIdx.x], threadIdx.x);
}

/* Each lane's own copy of a __syncwarp() is one. */
KERNEL two_syncwarps ARGS
{
    __shared__ int s[64];
    unsigned t = threadIdx.x;
    if (t % 32 < 16) {
        s[t] = a[t];
        __syncwarp();
        b[t] = s[t ^ 16];
    } else {
        s[t] = a[t] + 1;
        __syncwarp();
        b[t] = s[t ^ 16] + 1;
    }
}
