// SPDX-License-Identifier: Apache-2.0
// Cooperative groups and clusters; virtual, recursive and indirect calls; printf, assert, new.
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
#include <cuda/barrier>
#include <cassert>
#include <cstdio>
namespace cg = cooperative_groups;

__global__ void groups(int *a, float *f, int n)
{
    auto block = cg::this_thread_block();
    auto grid = cg::this_grid();
    auto warp = cg::tiled_partition<32>(block);
    auto quad = cg::tiled_partition<4>(warp);
    const int i = grid.thread_rank();
    a[i] = cg::reduce(warp, a[i], cg::plus<int>()) + cg::reduce(quad, a[i], cg::bit_xor<int>()) + cg::exclusive_scan(quad, a[i]);
    f[i] = cg::reduce(warp, f[i], cg::greater<float>()) + cg::inclusive_scan(warp, f[i], cg::plus<float>());
    if (i & 1) {
        auto some = cg::coalesced_threads();
        a[i] = some.shfl(a[i], 0) + some.any(a[i]) + some.ballot(i) + cg::reduce(some, i, cg::less<int>());
        auto same = cg::labeled_partition(some, a[i] & 3);
        auto half = cg::binary_partition(some, a[i] > 3);
        a[i] += same.match_any(i) + half.num_threads();
    }
    __shared__ int tile[256];
    cg::memcpy_async(block, tile, a, cuda::aligned_size_t<16>(sizeof tile));
    cg::wait(block);
#if __CUDACC_VER_MAJOR__ >= 12
    auto token = block.barrier_arrive();
    block.barrier_wait(cuda::std::move(token));
#endif
    grid.sync();
#if __CUDA_ARCH__ >= 900
    auto cluster = cg::this_cluster();
    *cluster.map_shared_rank(tile, 1) = (int)cluster.block_rank();
    cluster.sync();
#endif
}

#if __CUDA_ARCH__ >= 900 || !defined __CUDA_ARCH__
__global__ void __cluster_dims__(2, 1, 1) clusters(int *a)
{
    a[0] = cg::this_cluster().num_blocks();
}
__global__ void __launch_bounds__(128, 1, 4) bounded(int *a)
{
    a[0] = cg::cluster_group::thread_rank();
}
#endif

struct shape {
    __device__ virtual float area() const = 0;
    __device__ virtual ~shape() {}
};
struct square : shape {
    float side;
    __device__ square(float s) : side(s) {}
    __device__ float area() const override { return side * side; }
};
struct circle : shape {
    float radius;
    __device__ circle(float r) : radius(r) {}
    __device__ float area() const override { return 3.14f * radius * radius; }
};

__device__ int deep(int n, int (*next)(int)) { return n ? deep(n - 1, next) + next(n) : 0; }
__device__ __noinline__ int twice(int n) { return 2 * n; }
[[noreturn]] __device__ __noinline__ void give_up() { __trap(); }

__global__ void __maxnreg__(64) calls(float *f, int n, const __grid_constant__ int4 wide)
{
    shape *s = n & 1 ? (shape *)new square(f[0]) : new circle(f[0]);
    f[1] = s->area();
    delete s;
    assert(n > 0);
    printf("%d %f %s\n", n, f[1], "text");
    if (n == 17)
        give_up();
    if (n == 18)
        __brkpt();
#ifdef __CUDACC_RTC__
    float memory[64];
#else
    float *memory = (float *)alloca(n * sizeof *memory);
#endif
    memory[n - 1] = deep(n, twice);
    f[2] = memory[n / 2] + wide.y;
    switch (n) {
    case 0: f[3] = 1; break;
    case 1: f[3] = expf(f[0]); break;
    case 2: f[3] = sinf(f[0]); break;
    case 3: f[3] = 7; break;
    case 4: f[3] = f[4] / f[5]; break;
    case 5: f[3] = atan2f(f[4], f[5]); break;
    case 6: f[3] = f[9]; break;
    case 7: f[3] = fmodf(f[4], f[5]); break;
    }
    __builtin_assume(n > 5);
    __nanosleep(n);
}
