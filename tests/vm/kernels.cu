// SPDX-License-Identifier: Apache-2.0
// Source of kernels.ptx: nvcc -arch=compute_90 -ptx kernels.cu -o kernels.ptx (CUDA 13.0). The tests need the PTX only.
#include <cassert>
#include <cooperative_groups.h>
#include <cstdio>

extern "C" {

__global__ void saxpy(size_t n, float a, const float *x, float *y)
{
    size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = a * x[i] + y[i];
}

__global__ void mm(const float *A, const float *B, float *C, int n)
{
    __shared__ float s[16][16], t[16][16];
    int r = blockIdx.y * 16 + threadIdx.y, c = blockIdx.x * 16 + threadIdx.x;
    float acc = 0;
    for (int k = 0; k < n; k += 16) {
        s[threadIdx.y][threadIdx.x] = A[r * n + k + threadIdx.x];
        t[threadIdx.y][threadIdx.x] = B[(k + threadIdx.y) * n + c];
        __syncthreads();
        for (int j = 0; j < 16; j++)
            acc += s[threadIdx.y][j] * t[j][threadIdx.x];
        __syncthreads();
    }
    C[r * n + c] = acc;
}

__global__ void say(int x)
{
    printf("%d %5.2f|%-6s|%lld %x %c %p %%\n", x + (int)threadIdx.x, 1.5 * x, "str", -5000000000ll, 255u, 'z', (void *)0x10);
}

__global__ void must(int x)
{
    assert(x == 0);
}

__device__ __noinline__ int fib(int n)
{
    return n < 2 ? n : fib(n - 1) + fib(n - 2);
}

__global__ void recursion(int *o)
{
    o[threadIdx.x] = fib(threadIdx.x);
}

__device__ __noinline__ int endless(int n)
{
    return n == -1 ? 0 : (endless(n + 1) * 3) ^ n;
}

__global__ void overflow(int *o)
{
    o[0] = endless(o[0]);
}

__global__ void collatz(const unsigned *n, unsigned *steps)
{
    unsigned v = n[threadIdx.x], s = 0;
    while (v != 1) {
        v = v % 2 ? 3 * v + 1 : v / 2;
        s++;
    }
    steps[threadIdx.x] = s;
}

__global__ void choose(int *o, int x)
{
    switch (o[threadIdx.x]) {
    case 0: x = o[x]; break;
    case 1: x = 3 * x + 9; break;
    case 2: x = x * x; break;
    case 3: x ^= 55; break;
    case 4: x = x / 7; break;
    case 5: x = x % 5; break;
    case 6: x = -x; break;
    case 7: return;
    }
    o[threadIdx.x] = x;
}

__global__ void grid_sum(int *o, int *total)
{
    o[blockIdx.x] = blockIdx.x + 1;
    cooperative_groups::this_grid().sync();
    int sum = 0;
    for (int i = 0; i < gridDim.x; i++)
        sum += o[i];
    total[blockIdx.x] = sum;
}

// Every lane of a warp takes the lock in turn: needs forward progress of diverged lanes.
__global__ void spin_lock(int *lock, int *count)
{
    bool done = false;
    while (!done)
        if (atomicCAS(lock, 0, 1) == 0) {
            *(volatile int *)count += 1;
            __threadfence();
            atomicExch(lock, 0);
            done = true;
        }
}

__global__ void naive_lock(int *lock, int *count)
{
    while (atomicCAS(lock, 0, 1) != 0)
        ;
    *(volatile int *)count += 1;
    __threadfence();
    atomicExch(lock, 0);
}

// Each block waits for the one before it.
__global__ void chain(volatile int *flag, int *o)
{
    if (threadIdx.x == 0) {
        while (blockIdx.x > 0 && flag[blockIdx.x - 1] == 0)
            ;
        o[blockIdx.x] = blockIdx.x ? o[blockIdx.x - 1] + blockIdx.x : 0;
        __threadfence();
        flag[blockIdx.x] = 1;
    }
}

// Each block waits for the one after it: all must be resident.
__global__ void reverse_chain(volatile int *flag)
{
    if (threadIdx.x == 0) {
        while (blockIdx.x + 1 < gridDim.x && flag[blockIdx.x + 1] == 0)
            __nanosleep(20);
        flag[blockIdx.x] = 1;
    }
}

__global__ void block_sum(const int *x, int *o)
{
    extern __shared__ int tile[];
    __shared__ int sums[32];
    int v = x[blockIdx.x * blockDim.x + threadIdx.x];
    tile[threadIdx.x] = v;
    for (int d = 16; d > 0; d /= 2)
        v += __shfl_down_sync(~0u, v, d);
    if (threadIdx.x % 32 == 0)
        sums[threadIdx.x / 32] = v;
    __syncthreads();
    if (threadIdx.x < 32) {
        v = threadIdx.x < blockDim.x / 32 ? sums[threadIdx.x] : 0;
        for (int d = 16; d > 0; d /= 2)
            v += __shfl_xor_sync(~0u, v, d);
        if (threadIdx.x == 0)
            o[blockIdx.x] = v + tile[blockDim.x - 1];
    }
}

__global__ void votes(unsigned *o)
{
    unsigned t = threadIdx.x;
    o[t] = __ballot_sync(~0u, t % 3 == 0);
    o[32 + t] = __any_sync(~0u, t == 5) * 2 + __all_sync(~0u, t < 32);
    o[64 + t] = __match_any_sync(~0u, t % 4);
    int equal;
    o[96 + t] = __match_all_sync(~0u, 7, &equal) + equal;
    o[128 + t] = __reduce_add_sync(~0u, t) + __reduce_max_sync(~0u, t);
    o[160 + t] = __shfl_sync(~0u, t, t + 1, 8);
    o[192 + t] = __shfl_up_sync(~0u, t, 3, 16);
    if (t < 10)
        o[224 + t] = __ballot_sync(0x3ff, t & 1) | __activemask() << 16;
    o[256 + t] = __syncthreads_count(t < 7) * 4 + __syncthreads_and(t < 32) * 2 + __syncthreads_or(t == 40);
}

// Both sides of a branch call the same rendezvous.
__global__ void two_places(int *o)
{
    if (threadIdx.x & 1) {
        o[threadIdx.x] = 1;
        __syncwarp();
        o[32 + threadIdx.x] = o[threadIdx.x ^ 1];
    } else {
        o[threadIdx.x] = 2;
        __syncwarp();
        o[32 + threadIdx.x] = o[threadIdx.x ^ 1];
    }
}

__global__ void atomics(int *i, unsigned *u, float *f, double *d, unsigned long long *l)
{
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    atomicAdd(&i[0], 1);
    atomicMin(&i[1], -t);
    atomicMax(&i[2], t);
    atomicSub(&i[3], 2);
    atomicInc(&u[0], 9);
    atomicDec(&u[1], 9);
    atomicOr(&u[2], 1u << (t & 31));
    atomicAnd(&u[3], ~(1u << (t & 15)));
    atomicXor(&u[4], t);
    atomicAdd(f, 1.0f);
    atomicAdd(d, 0.5);
    atomicAdd(l, 1ull << 33);
    atomicMax(l + 1, (unsigned long long)t << 34);
    __shared__ int s;
    if (threadIdx.x == 0)
        s = 0;
    __syncthreads();
    atomicAdd(&s, threadIdx.x);
    __syncthreads();
    if (threadIdx.x == 0)
        atomicAdd(&i[4], s);
}

__device__ int plus(int a) { return a + 100; }
__device__ int times(int a) { return a * 100; }
__device__ int (*const table[2])(int) = {plus, times};
__global__ void pointers(int *o)
{
    o[threadIdx.x] = table[threadIdx.x & 1](threadIdx.x);
}

struct pair { double a; int b[5]; };
__device__ __noinline__ pair make(pair p, int k)
{
    p.a *= k;
    p.b[k % 5] += k;
    return p;
}
__global__ void structs(double *o, pair p)
{
    pair q = make(p, threadIdx.x);
    o[threadIdx.x] = q.a + q.b[0] + 10 * q.b[1] + 100 * q.b[2] + 1000 * q.b[3] + 10000 * q.b[4];
}

__constant__ int weights[4] = {1, 10, 100, 1000};
__device__ int total = 5;
__global__ void variables(int *o, int k)
{
    int local[8];
    for (int i = 0; i < 8; i++)
        local[(i * 3 + k) % 8] = i * weights[i % 4];
    int *p = k ? local : o;
    o[threadIdx.x] = p[threadIdx.x % 8] + total;
}

__global__ void heap(int **o, int *sum)
{
    if (threadIdx.x == 0) {
        int *p = (int *)malloc(64 * sizeof(int));
        for (int i = 0; i < 64; i++)
            p[i] = i;
        int s = 0;
        for (int i = 0; i < 64; i++)
            s += p[i];
        free(p);
        *sum = s;
    }
}

__global__ void store_at(int *p, long i)
{
    p[i + threadIdx.x] = 1;
}

__global__ void store_unaligned(char *p)
{
    if (threadIdx.x == 3)
        *(int *)(p + 2) = 1;
}

__global__ void shared_past_end(int *o, int i)
{
    __shared__ int s[4];
    s[threadIdx.x + i] = 7;
    __syncthreads();
    o[0] = s[0];
}

__global__ void trap_one(int t)
{
    if (threadIdx.x == t)
        __trap();
}

__global__ void stuck(int *o)
{
    if (threadIdx.x < 32)
        asm volatile("bar.sync 1, 64;");
    else
        asm volatile("bar.sync 2, 64;");
    o[0] = 1;
}

__global__ void producer_consumer(int *o)
{
    __shared__ int box;
    if (threadIdx.x < 32) {
        if (threadIdx.x == 0)
            box = 42;
        __threadfence_block();
        asm volatile("bar.arrive 3, 64;");
    } else {
        asm volatile("bar.sync 3, 64;");
        o[threadIdx.x - 32] = box;
    }
}

__global__ void forever(int *o)
{
    while (*(volatile int *)o == 0)
        ;
}

__global__ void early_exit(int *o)
{
    if (threadIdx.x % 2)
        return;
    __syncthreads();
    o[threadIdx.x] = 1;
}

__global__ void place(int *o)
{
    int i = ((blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x);
    int t = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
    o[i * blockDim.x * blockDim.y * blockDim.z + t] = threadIdx.x + 10 * threadIdx.y + 100 * threadIdx.z +
        1000 * blockIdx.x + 10000 * blockIdx.y + 100000 * blockIdx.z;
}

__global__ void big(unsigned *o, const unsigned *a, const unsigned *b)
{ // 128-bit product and sum through carry chains
    unsigned __int128 x = 0, y = 0;
    for (int i = 3; i >= 0; i--) {
        x = x << 32 | a[4 * threadIdx.x + i];
        y = y << 32 | b[4 * threadIdx.x + i];
    }
    unsigned __int128 r = x * y + (x - y) + (x >> 7);
    for (int i = 0; i < 4; i++)
        o[4 * threadIdx.x + i] = (unsigned)(r >> 32 * i);
}

// Counts in shared memory first; blocks add theirs to the bins at the end.
__global__ void histogram(size_t n, const unsigned char *x, unsigned *bins)
{
    __shared__ unsigned counts[256];
    for (unsigned i = threadIdx.x; i < 256; i += blockDim.x)
        counts[i] = 0;
    __syncthreads();
    size_t stride = (size_t)gridDim.x * blockDim.x;
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += stride)
        atomicAdd(&counts[x[i]], 1u);
    __syncthreads();
    for (unsigned i = threadIdx.x; i < 256; i += blockDim.x)
        atomicAdd(&bins[i], counts[i]);
}

__device__ unsigned warp_scan(unsigned v)
{
    for (unsigned d = 1; d < 32; d *= 2) {
        unsigned left = __shfl_up_sync(~0u, v, d);
        if (threadIdx.x % 32 >= d)
            v += left;
    }
    return v;
}

// Inclusive sums over the block, of four elements a thread. Returns the sum of all.
__device__ unsigned block_scan(uint4 *v)
{
    __shared__ unsigned warps[32];
    v->y += v->x;
    v->z += v->y;
    v->w += v->z;
    unsigned through = warp_scan(v->w);
    if (threadIdx.x % 32 == 31)
        warps[threadIdx.x / 32] = through;
    __syncthreads();
    if (threadIdx.x < 32)
        warps[threadIdx.x] = warp_scan(threadIdx.x < blockDim.x / 32 ? warps[threadIdx.x] : 0);
    __syncthreads();
    unsigned before = through - v->w + (threadIdx.x < 32 ? 0 : warps[threadIdx.x / 32 - 1]);
    v->x += before;
    v->y += before;
    v->z += before;
    v->w += before;
    return warps[blockDim.x / 32 - 1];
}

__global__ void scan_blocks(const uint4 *x, uint4 *o, unsigned *totals)
{
    size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    uint4 v = x[i];
    unsigned total = block_scan(&v);
    o[i] = v;
    if (threadIdx.x == 0)
        totals[blockIdx.x] = total;
}

// One pass: a block publishes its own sum, then looks back, 32 blocks at a time and spinning on those that have
// published nothing yet, until one of them knows the sum of all before it.
// D. Merrill, M. Garland: Single-pass Parallel Prefix Scan with Decoupled Look-back (2016).
__global__ void scan(const uint4 *x, uint4 *o, volatile unsigned long long *state)
{
    enum : unsigned long long { OWN = 1ull << 32, ALL = 2ull << 32 };
    __shared__ unsigned before;
    size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    uint4 v = x[i];
    unsigned total = block_scan(&v);
    if (threadIdx.x < 32) {
        if (threadIdx.x == 0 && blockIdx.x > 0)
            state[blockIdx.x] = OWN | total;
        unsigned sum = 0, ends = blockIdx.x == 0;
        for (int at = (int)blockIdx.x - 1 - (int)threadIdx.x; !ends; at -= 32) {
            unsigned long long s;
            do
                s = at < 0 ? ALL : state[at];
            while (__any_sync(~0u, s < OWN));
            ends = __ballot_sync(~0u, s >= ALL);
            sum += __reduce_add_sync(~0u, threadIdx.x <= (unsigned)__ffs(ends) - 1 ? (unsigned)s : 0);
        }
        if (threadIdx.x == 0) {
            before = sum;
            state[blockIdx.x] = ALL | (sum + total);
        }
    }
    __syncthreads();
    o[i] = make_uint4(v.x + before, v.y + before, v.z + before, v.w + before);
}

// Writes all of its shared memory; then, if told to, waits for the block after it, so that all are resident.
__global__ void fill_shared(volatile int *flag, size_t n, size_t waits)
{
    extern __shared__ int tile[];
    for (unsigned i = threadIdx.x; i < n; i += blockDim.x)
        tile[i] = i;
    __syncthreads();
    while (waits && blockIdx.x + 1 < gridDim.x && flag[blockIdx.x + 1] == 0)
        ;
    __syncthreads();
    if (threadIdx.x == 0)
        flag[blockIdx.x] = 1;
}
}
