// SPDX-License-Identifier: Apache-2.0
// libcu++'s <cuda/ptx>: barriers in memory, clusters, bulk and tensor copies, multimem, tensor memory.
// What has no architecture for it there is guarded by what the compiler says of the target.
#if !defined __has_include
#elif __has_include(<cuda/ptx>)
#include <cuda/ptx>
#endif
#if __cccl_ptx_isa >= 870 && (__CUDA_ARCH__ >= 900 || !defined __CUDA_ARCH__)
#include <cuda_bf16.h>
#include <cuda_fp16.h>
namespace ptx = cuda::ptx;
using ptx::cta_group_1;
using ptx::cta_group_2;
using ptx::n32_t;
using ptx::scope_cluster;
using ptx::scope_cta;
using ptx::scope_gpu;
using ptx::scope_sys;
using ptx::sem_acq_rel;
using ptx::sem_acquire;
using ptx::sem_relaxed;
using ptx::sem_release;
using ptx::sem_sc;
using ptx::sem_weak;
using ptx::space_cluster;
using ptx::space_global;
using ptx::space_shared;

__global__ void barriers(uint64_t *out, uint32_t n)
{
    __shared__ uint64_t bar;
    ptx::mbarrier_init(&bar, n);
    ptx::fence_mbarrier_init(sem_release, scope_cluster);
    uint64_t state = ptx::mbarrier_arrive(&bar);
    state += ptx::mbarrier_arrive(&bar, n);
    state += ptx::mbarrier_arrive(sem_release, scope_cta, space_shared, &bar);
    state += ptx::mbarrier_arrive(sem_release, scope_cluster, space_shared, &bar, n);
    state += ptx::mbarrier_arrive_no_complete(&bar, n);
    state += ptx::mbarrier_arrive_expect_tx(sem_release, scope_cta, space_shared, &bar, n);
    ptx::mbarrier_arrive(sem_release, scope_cluster, space_cluster, &bar);
    ptx::mbarrier_arrive(sem_release, scope_cluster, space_cluster, &bar, n);
    ptx::mbarrier_arrive_expect_tx(sem_release, scope_cluster, space_cluster, &bar, n);
    ptx::cp_async_mbarrier_arrive(&bar);
    ptx::cp_async_mbarrier_arrive_noinc(&bar);
    out[0] = ptx::mbarrier_test_wait(&bar, state);
    out[1] = ptx::mbarrier_test_wait(sem_acquire, scope_cluster, &bar, state);
    out[2] = ptx::mbarrier_test_wait_parity(&bar, n & 1);
    out[3] = ptx::mbarrier_test_wait_parity(sem_acquire, scope_cta, &bar, n & 1);
    while (!ptx::mbarrier_try_wait(&bar, state) || !ptx::mbarrier_try_wait(&bar, state, n))
        ;
    while (!ptx::mbarrier_try_wait(sem_acquire, scope_cluster, &bar, state, n))
        ;
    while (!ptx::mbarrier_try_wait_parity(&bar, n & 1) || !ptx::mbarrier_try_wait_parity(sem_acquire, scope_cta, &bar, n & 1, n))
        ;
}

__global__ void barriers_relaxed(uint64_t *out, uint32_t n)
{
    __shared__ uint64_t bar;
    uint64_t state = ptx::mbarrier_arrive(sem_relaxed, scope_cta, space_shared, &bar);
    state += ptx::mbarrier_arrive(sem_relaxed, scope_cluster, space_shared, &bar, n);
    state += ptx::mbarrier_arrive_expect_tx(sem_relaxed, scope_cluster, space_shared, &bar, n);
    ptx::mbarrier_arrive(sem_relaxed, scope_cluster, space_cluster, &bar, n);
    ptx::mbarrier_arrive_expect_tx(sem_relaxed, scope_cluster, space_cluster, &bar, n);
    ptx::mbarrier_expect_tx(sem_relaxed, scope_cta, space_shared, &bar, n);
    ptx::mbarrier_expect_tx(sem_relaxed, scope_cluster, space_cluster, &bar, n);
    out[0] = ptx::mbarrier_test_wait(sem_relaxed, scope_cta, &bar, state);
    out[1] = ptx::mbarrier_try_wait(sem_relaxed, scope_cluster, &bar, state);
    out[2] = ptx::mbarrier_try_wait_parity(sem_relaxed, scope_cta, &bar, n & 1, n);
}

__global__ void __cluster_dims__(2, 1, 1) clusters(uint32_t *out, uint32_t n)
{
    __shared__ uint32_t data[8];
    __shared__ uint64_t bar, wide;
    ptx::barrier_cluster_arrive();
    ptx::barrier_cluster_wait();
    ptx::barrier_cluster_arrive(sem_release);
    ptx::barrier_cluster_arrive(sem_relaxed);
    ptx::barrier_cluster_wait(sem_acquire);
    out[0] = ptx::getctarank(space_cluster, data) + ptx::get_sreg_cluster_ctarank() + ptx::get_sreg_cluster_nctarank();
    out[1] = ptx::get_sreg_cluster_ctaid_x() + ptx::get_sreg_clusterid_y() + ptx::get_sreg_nclusterid_z() + ptx::get_sreg_is_explicit_cluster();
    out[2] = ptx::get_sreg_aggr_smem_size() + ptx::get_sreg_total_smem_size() + ptx::get_sreg_dynamic_smem_size();
    const uint32_t two[2] = {n, 1}, four[4] = {n, 1, 2, 3};
    ptx::st_async(data, n, &bar);
    ptx::st_async(data, two, &bar);
    ptx::st_async(data, four, &bar);
    ptx::st_async(&wide, (uint64_t)n, &bar);
    ptx::red_async(ptx::op_inc, data, n, &bar);
    ptx::red_async(ptx::op_dec, data, n, &bar);
    ptx::red_async(ptx::op_min, data, n, &bar);
    ptx::red_async(ptx::op_max, (int32_t *)data, (int32_t)n, &bar);
    ptx::red_async(ptx::op_xor_op, data, n, &bar);
    ptx::red_async(ptx::op_add, &wide, (uint64_t)n, &bar);
    ptx::red_async(ptx::op_add, (int64_t *)&wide, (int64_t)n, (int64_t *)&bar);
}

__global__ void fences(int *a)
{
    ptx::fence(sem_sc, scope_gpu);
    ptx::fence(sem_sc, scope_cluster);
    ptx::fence(sem_acq_rel, scope_sys);
    ptx::fence(sem_acq_rel, scope_cluster);
    ptx::fence_proxy_alias();
    ptx::fence_proxy_async();
    ptx::fence_proxy_async(space_global);
    ptx::fence_proxy_async(space_shared);
    ptx::fence_proxy_async(space_cluster);
    ptx::fence_proxy_tensormap_generic(sem_release, scope_gpu);
    ptx::fence_proxy_tensormap_generic(sem_acquire, scope_sys, a, n32_t<128>());
}

__global__ void fences_of_one_way(int *a)
{
    ptx::fence(sem_acquire, scope_gpu);
    ptx::fence(sem_release, scope_cluster);
    ptx::fence_sync_restrict(sem_acquire, space_cluster, scope_cluster);
    ptx::fence_sync_restrict(sem_release, space_shared, scope_cluster);
    ptx::fence_proxy_async_generic_sync_restrict(sem_acquire, space_cluster, scope_cluster);
    ptx::fence_proxy_async_generic_sync_restrict(sem_release, space_shared, scope_cluster);
    a[0] = 1;
}

__global__ void copies(char *to, const char *from, uint32_t n)
{
    __shared__ alignas(128) char tile[1024];
    __shared__ uint64_t bar;
    ptx::cp_async_bulk(space_cluster, space_global, tile, from, n, &bar);
    ptx::cp_async_bulk(space_cluster, space_shared, tile, tile + 512, n, &bar);
    ptx::cp_async_bulk(space_global, space_shared, to, tile, n);
    ptx::cp_async_bulk_commit_group();
    ptx::cp_async_bulk_wait_group(n32_t<1>());
    ptx::cp_async_bulk_wait_group_read(n32_t<0>());
    asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(from), "r"(n));
}

__global__ void copies_to_own(const char *from, uint32_t n)
{
    __shared__ alignas(128) char tile[1024];
    __shared__ uint64_t bar;
    ptx::cp_async_bulk(space_shared, space_global, tile, from, n, &bar);
}

template <typename T> __device__ void reduced(T *to, T *tile, uint32_t n)
{
    ptx::cp_reduce_async_bulk(space_global, space_shared, ptx::op_min, to, tile, n);
    ptx::cp_reduce_async_bulk(space_global, space_shared, ptx::op_max, to, tile, n);
    ptx::cp_reduce_async_bulk(space_global, space_shared, ptx::op_add, to, tile, n);
}

__global__ void reductions(void *to, uint32_t n)
{
    __shared__ alignas(128) uint32_t tile[256];
    __shared__ uint64_t bar;
    ptx::cp_reduce_async_bulk(space_cluster, space_shared, ptx::op_and_op, tile, tile + 64, n, &bar);
    ptx::cp_reduce_async_bulk(space_cluster, space_shared, ptx::op_add, tile, tile + 64, n, &bar);
    ptx::cp_reduce_async_bulk(space_cluster, space_shared, ptx::op_inc, tile, tile + 64, n, &bar);
    ptx::cp_reduce_async_bulk(space_cluster, space_shared, ptx::op_min, (int32_t *)tile, (int32_t *)tile + 64, n, &bar);
    ptx::cp_reduce_async_bulk(space_cluster, space_shared, ptx::op_add, (uint64_t *)tile, (uint64_t *)tile + 64, n, &bar);
    ptx::cp_reduce_async_bulk(space_global, space_shared, ptx::op_xor_op, (uint64_t *)to, (uint64_t *)tile, n);
    ptx::cp_reduce_async_bulk(space_global, space_shared, ptx::op_dec, (uint32_t *)to, tile, n);
    ptx::cp_reduce_async_bulk(space_global, space_shared, ptx::op_add, (float *)to, (float *)tile, n);
    ptx::cp_reduce_async_bulk(space_global, space_shared, ptx::op_add, (double *)to, (double *)tile, n);
    reduced((int32_t *)to, (int32_t *)tile, n);
    reduced((int64_t *)to, (int64_t *)tile, n);
    reduced((__half *)to, (__half *)tile, n);
    reduced((__nv_bfloat16 *)to, (__nv_bfloat16 *)tile, n);
}

template <int N> __device__ void tensor(const void *map, char *tile, uint64_t *bar)
{
    const int32_t at[N] = {};
    ptx::cp_async_bulk_tensor(space_cluster, space_global, tile, map, at, bar);
    ptx::cp_async_bulk_tensor(space_global, space_shared, map, at, tile);
    ptx::cp_reduce_async_bulk_tensor(space_global, space_shared, ptx::op_add, map, at, tile);
    ptx::cp_reduce_async_bulk_tensor(space_global, space_shared, ptx::op_xor_op, map, at, tile);
}

__global__ void tensors(const __grid_constant__ char4 map)
{
    __shared__ alignas(128) char tile[1024];
    __shared__ uint64_t bar;
    tensor<1>(&map, tile, &bar);
    tensor<2>(&map, tile, &bar);
    tensor<3>(&map, tile, &bar);
    tensor<4>(&map, tile, &bar);
    tensor<5>(&map, tile, &bar);
    const uint32_t to = (uint32_t)__cvta_generic_to_shared(tile), full = (uint32_t)__cvta_generic_to_shared(&bar);
    asm volatile("prefetch.tensormap [%0];" ::"l"(&map));
    asm volatile("cp.async.bulk.prefetch.tensor.2d.L2.global.tile [%0, {%1, %1}];" ::"l"(&map), "r"(0));
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%0], [%1, {%2, %2, %2}], [%3], {%4};" ::"r"(to),
                 "l"(&map), "r"(0), "r"(full), "h"((short)1));
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster.L2::cache_hint "
                 "[%0], [%1, {%2, %2}], [%3], %4, %5;" ::"r"(to), "l"(&map), "r"(0), "r"(full), "h"((short)3), "l"(0x1000000000000000ull));
}

__global__ void tensors_to_own(const __grid_constant__ char4 map)
{
    __shared__ alignas(128) char tile[1024];
    __shared__ uint64_t bar;
    ptx::cp_async_bulk_tensor(space_shared, space_global, tile, &map, {0, 1, 2}, &bar);
}

__global__ void multimem(uint32_t *a, uint64_t *b)
{
    ptx::multimem_st(sem_weak, a, 3u);
    ptx::multimem_st(sem_release, scope_gpu, b, (uint64_t)3);
    ptx::multimem_red(sem_relaxed, scope_sys, ptx::op_min, a, 3u);
    ptx::multimem_red(sem_release, scope_cluster, ptx::op_add, b, (uint64_t)3);
    ptx::multimem_red(sem_relaxed, scope_gpu, ptx::op_or_op, a, 3u);
    a[1] = ptx::multimem_ld_reduce(sem_weak, ptx::op_max, (int32_t *)a);
    a[2] = ptx::multimem_ld_reduce(sem_acquire, scope_sys, ptx::op_add, a);
    b[1] = ptx::multimem_ld_reduce(sem_relaxed, scope_gpu, ptx::op_xor_op, b);
    float f;
    asm volatile("multimem.ld_reduce.relaxed.gpu.global.add.f32 %0, [%1];" : "=f"(f) : "l"(a));
    asm volatile("multimem.red.relaxed.sys.global.add.v4.f32 [%0], {%1, %1, %1, %1};" ::"l"(a), "f"(f));
}

__global__ void elected(uint32_t *a)
{
    uint32_t lane, is_one;
    asm volatile("{ .reg .pred p; elect.sync %0|p, 0xffffffff; selp.u32 %1, 1, 0, p; }" : "=r"(lane), "=r"(is_one));
    a[lane] = is_one;
    asm volatile("griddepcontrol.wait; griddepcontrol.launch_dependents;" ::: "memory");
}

// ---- tensor maps in memory: sm_90a and sm_100a by libcu++, and families by themselves ----

#if __CUDA_ARCH_FEAT_SM90_ALL || __CUDA_ARCH_FEAT_SM100_ALL
template <typename SPACE> __device__ void replaced(SPACE space, void *map)
{
    ptx::tensormap_replace_global_address(space, map, (uint64_t)128);
    ptx::tensormap_replace_rank(space, map, 2);
    ptx::tensormap_replace_box_dim(space, map, n32_t<0>(), 16);
    ptx::tensormap_replace_global_dim(space, map, n32_t<1>(), 64);
    ptx::tensormap_replace_global_stride(space, map, n32_t<0>(), (uint64_t)256);
    ptx::tensormap_replace_element_size(space, map, n32_t<0>(), 1);
    ptx::tensormap_replace_elemtype(space, map, n32_t<7>());
    ptx::tensormap_replace_interleave_layout(space, map, n32_t<0>());
    ptx::tensormap_replace_swizzle_mode(space, map, n32_t<3>());
    ptx::tensormap_replace_fill_mode(space, map, n32_t<1>());
}

__global__ void maps(void *to, const char *from)
{
    __shared__ alignas(128) char map[128], tile[128];
    __shared__ uint64_t bar;
    replaced(space_global, to);
    replaced(space_shared, map);
    ptx::tensormap_cp_fenceproxy(sem_release, scope_gpu, to, map, n32_t<128>());
    ptx::cp_async_bulk(space_cluster, space_global, tile, from, 64, &bar, 3);
    ptx::cp_async_bulk_tensor(space_cluster, space_global, tile, to, {0, 1}, &bar, 3);
}
#endif

// ---- sm_100 and on ----

#if __CUDA_ARCH__ >= 1000
__global__ void masked(char *to, uint32_t n, uint64_t *out)
{
    __shared__ alignas(128) char tile[1024];
    __shared__ uint64_t bar;
    __shared__ alignas(16) longlong2 response;
    ptx::cp_async_bulk_cp_mask(space_global, space_shared, to, tile, n, 0x5555);
    ptx::st_bulk(tile, 1024, n32_t<0>());
    ptx::clusterlaunchcontrol_try_cancel(&response, &bar);
    const longlong2 got = response;
    if (ptx::clusterlaunchcontrol_query_cancel_is_canceled(got)) {
        int of[4];
        ptx::clusterlaunchcontrol_query_cancel_get_first_ctaid(of, got);
        out[0] = of[0] + ptx::clusterlaunchcontrol_query_cancel_get_first_ctaid_x<int>(got);
        out[1] = of[1] + ptx::clusterlaunchcontrol_query_cancel_get_first_ctaid_z<int>(got);
    }
}
#endif

#if __CUDA_ARCH_FEAT_SM100_ALL
template <typename GROUP> __device__ void tensor_memory(GROUP group, uint32_t *at, uint64_t *bar, uint64_t desc)
{
    ptx::tcgen05_alloc(group, at, 64);
    ptx::tcgen05_relinquish_alloc_permit(group);
    ptx::tcgen05_cp_128x256b(group, *at, desc);
    ptx::tcgen05_cp_64x128b_warpx2_02_13(group, *at, desc);
    ptx::tcgen05_cp_32x128b_warpx4_b8x16_b6x16_p32(group, *at, desc);
    ptx::tcgen05_shift_down(group, *at);
    ptx::tcgen05_mma(ptx::kind_f16, group, *at, desc, desc, 1, true);
    ptx::tcgen05_mma(ptx::kind_tf32, group, *at, desc, desc, 1, true, n32_t<3>());
    ptx::tcgen05_mma_tmem_a(ptx::kind_i8, group, *at, *at, desc, 1, false);
    ptx::tcgen05_mma_block_scale_vec_1x(ptx::kind_mxf8f6f4, group, *at, desc, desc, 1, *at, *at, true);
    ptx::tcgen05_mma_block_scale_vec_2x_collector_a_lastuse(ptx::kind_mxf4, group, *at, desc, desc, 1, *at, *at, true);
    ptx::tcgen05_mma_block_scale_vec_4x_tmem_a(ptx::kind_mxf4nvf4, group, *at, *at, desc, 1, *at, *at, true);
    ptx::tcgen05_commit(group, bar);
    ptx::tcgen05_commit_multicast(group, bar, 3);
    ptx::tcgen05_dealloc(group, *at, 64);
}

__global__ void tensor_memory_of_one(uint64_t desc)
{
    __shared__ uint32_t at;
    __shared__ uint64_t bar;
    tensor_memory(cta_group_1, &at, &bar, desc);
    const uint32_t lanes[4] = {};
    ptx::tcgen05_mma(ptx::kind_f8f6f4, cta_group_1, at, desc, desc, 1, lanes, true);
    ptx::tcgen05_mma_ws_collector_b0_fill(cta_group_1, ptx::kind_f16, at, desc, desc, 1, true);
    ptx::tcgen05_mma_ws_tmem_a_collector_b3_lastuse(cta_group_1, ptx::kind_i8, at, at, desc, 1, true, desc);
}

__global__ void tensor_memory_of_two(uint64_t desc)
{
    __shared__ uint32_t at;
    __shared__ uint64_t bar;
    tensor_memory(cta_group_2, &at, &bar, desc);
}

__global__ void tensor_memory_read(uint32_t *out, uint32_t at)
{
    uint32_t one[1], two[2], four[4], eight[8], many[128];
    ptx::tcgen05_ld_16x64b(one, at);
    ptx::tcgen05_ld_16x128b(two, at);
    ptx::tcgen05_ld_16x256b_pack_16b(four, at);
    ptx::tcgen05_ld_16x32bx2(eight, at, n32_t<16>());
    ptx::tcgen05_ld_32x32b(many, at);
    ptx::tcgen05_wait_ld();
    for (int i = 0; i < 128; i++)
        out[i] = many[i] + one[0] + two[i & 1] + four[i & 3] + eight[i & 7];
    ptx::tcgen05_st_32x32b(at, many);
    ptx::tcgen05_st_16x64b_unpack_16b(at, one);
    ptx::tcgen05_st_16x32bx2(at, n32_t<8>(), eight);
    ptx::tcgen05_wait_st();
    ptx::tcgen05_fence_before_thread_sync();
    ptx::tcgen05_fence_after_thread_sync();
}

__global__ void gathered(const __grid_constant__ char4 map)
{
    __shared__ alignas(128) char tile[1024];
    __shared__ uint64_t bar;
    const int32_t at[5] = {};
    ptx::cp_async_bulk_tensor(space_shared, space_global, cta_group_2, tile, &map, {0, 1}, &bar);
    ptx::cp_async_bulk_tensor_tile_gather4(space_shared, space_global, tile, &map, at, &bar);
    ptx::cp_async_bulk_tensor_tile_gather4(space_cluster, space_global, cta_group_1, tile, &map, at, &bar, 3);
    ptx::cp_async_bulk_tensor_tile_scatter4(space_global, space_shared, &map, at, tile);
    ptx::clusterlaunchcontrol_try_cancel_multicast(tile, &bar);
}
#elif __CUDA_ARCH_FAMILY_SPECIFIC__ >= 1000 && __CUDA_ARCH_FAMILY_SPECIFIC__ < 1100
__global__ void tensor_memory_of_a_family(uint32_t *out, uint64_t desc, void *map)
{
    __shared__ uint32_t at;
    __shared__ uint64_t bar;
    const uint32_t where = (uint32_t)__cvta_generic_to_shared(&at), full = (uint32_t)__cvta_generic_to_shared(&bar);
    asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], 64;" ::"r"(where));
    asm volatile("{ .reg .pred p; setp.ne.u32 p, %3, 0; tcgen05.mma.cta_group::1.kind::f16 [%0], %1, %1, %2, p; }" ::"r"(at), "l"(desc), "r"(1), "r"(at));
    asm volatile("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];" ::"r"(full));
    asm volatile("tcgen05.cp.cta_group::1.128x256b [%0], %1;" ::"r"(at), "l"(desc));
    asm volatile("tcgen05.ld.sync.aligned.32x32b.x2.b32 {%0, %1}, [%2];" : "=r"(out[0]), "=r"(out[1]) : "r"(at));
    asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory");
    asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, 64;" ::"r"(at));
    asm volatile("tensormap.replace.tile.rank.global.b1024.b32 [%0], %1;" ::"l"(map), "r"(2));
}
#endif
#else
__global__ void none() {}
#endif
