// SPDX-License-Identifier: Apache-2.0
// libcu++: atomics of all orders and scopes, barriers, pipelines, asynchronous copies.
#include <cuda/atomic>
#include <cuda/barrier>
#include <cuda/latch>
#include <cuda/pipeline>
#include <cuda/semaphore>
#include <cuda/std/array>
#include <cuda/std/complex>
#include <cuda/std/tuple>
#include <cooperative_groups.h>

template <typename T, cuda::thread_scope scope> __device__ T all(T *at, cuda::std::memory_order order)
{
    cuda::atomic_ref<T, scope> a(*at);
    T seen = a.load(order == cuda::std::memory_order_release ? cuda::std::memory_order_relaxed : order);
    a.store(seen, cuda::std::memory_order_seq_cst);
    a.store(seen, cuda::std::memory_order_release);
    seen += a.exchange(1, order);
    a.compare_exchange_strong(seen, 3, order);
    return seen + a.fetch_add(2, order) + a.fetch_min(4, order) + a.fetch_max(5, order);
}

template <typename T> __device__ T bits(T *at)
{
    cuda::atomic_ref<T, cuda::thread_scope_device> a(*at);
    return a.fetch_and(1) | a.fetch_or(2) | a.fetch_xor(3, cuda::std::memory_order_acq_rel);
}

template <typename T> __global__ void orders(T *at)
{
    using namespace cuda::std;
    at[1] = all<T, cuda::thread_scope_system>(at, memory_order_seq_cst) + all<T, cuda::thread_scope_device>(at, memory_order_acquire) +
            all<T, cuda::thread_scope_block>(at, memory_order_acq_rel) + all<T, cuda::thread_scope_device>(at, memory_order_relaxed);
}
template __global__ void orders<int>(int *);
template __global__ void orders<unsigned>(unsigned *);
template __global__ void orders<unsigned long long>(unsigned long long *);
template __global__ void orders<long long>(long long *);
template __global__ void orders<float>(float *);
template __global__ void orders<double>(double *);

__global__ void small(unsigned char *a, unsigned short *b, int *c)
{
    c[0] = bits(a) + bits(b) + bits(c) + all<short, cuda::thread_scope_system>((short *)b, cuda::std::memory_order_seq_cst);
    cuda::atomic_thread_fence(cuda::std::memory_order_seq_cst, cuda::thread_scope_system);
    cuda::atomic_thread_fence(cuda::std::memory_order_acquire, cuda::thread_scope_block);
}

__global__ void pipelines(const int4 *in, int4 *out, int n)
{
    auto block = cooperative_groups::this_thread_block();
    __shared__ cuda::barrier<cuda::thread_scope_block> barrier;
    __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
    __shared__ int4 tile[2][128];
    if (!threadIdx.x)
        init(&barrier, blockDim.x);
    block.sync();
    cuda::memcpy_async(block, tile[0], in, cuda::aligned_size_t<16>(sizeof tile[0]), barrier);
    barrier.arrive_and_wait();
    barrier.wait_parity(0);
    auto pipe = cuda::make_pipeline(block, &state);
    for (int i = 0; i < n; i++) {
        pipe.producer_acquire();
        cuda::memcpy_async(block, tile[i & 1], in + i * 128, cuda::aligned_size_t<16>(sizeof tile[0]), pipe);
        pipe.producer_commit();
        pipe.consumer_wait();
        out[i * 128 + threadIdx.x] = tile[i & 1][threadIdx.x];
        pipe.consumer_release();
    }
    auto alone = cuda::make_pipeline();
    alone.producer_acquire();
    cuda::memcpy_async(&tile[0][threadIdx.x], in, cuda::aligned_size_t<16>(16), alone);
    alone.producer_commit();
    alone.consumer_wait();
    out[0] = tile[0][0];
}

__global__ void signals(cuda::latch<cuda::thread_scope_device> *latch, cuda::counting_semaphore<cuda::thread_scope_device> *semaphore,
                        cuda::std::complex<float> *c)
{
    latch->arrive_and_wait();
    semaphore->acquire();
    semaphore->release();
    cuda::std::array<cuda::std::complex<float>, 2> a = {c[0], c[1]};
    const auto t = cuda::std::make_tuple(a[0] * a[1], cuda::std::exp(a[0]));
    c[2] = cuda::std::get<0>(t) / cuda::std::get<1>(t);
}
