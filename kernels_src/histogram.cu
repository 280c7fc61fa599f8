// SPDX-License-Identifier: Apache-2.0
//! op      histogram
//! brief   bins[x[i]] += 1
//! arg     n     u64       size
//! arg     x     u8[n]     in
//! arg     bins  u64[256]  inout
//! variant grid   cc>=5.0
//! variant vec16  cc>=5.0 align=16
//! launch  elementwise n block=256 waves=4
//! launch  vec16: elementwise n per_thread=16 block=256 waves=4
//! compare exact
//! cost    bytes=n
//! split   n combine=add
//! source  NumPy, bincount

// Adds to what bins holds. Every 8-bit value has its bin. Blocks count in shared memory first; 2^31
// elements at a time, so that no 32-bit count can overflow.

#ifdef KR_REFERENCE
static void reference(uint64_t n, const uint8_t *x, uint64_t *bins)
{
    for (uint64_t i = 0; i < n; i++)
        bins[x[i]]++;
}
#else
enum : uint64_t { PASS = 1ull << 31 };

static __device__ void clear(unsigned *counts)
{
    for (unsigned i = threadIdx.x; i < 256; i += blockDim.x)
        counts[i] = 0;
    __syncthreads();
}

static __device__ void flush(const unsigned *counts, uint64_t *bins)
{
    __syncthreads();
    for (unsigned i = threadIdx.x; i < 256; i += blockDim.x)
        if (counts[i] > 0)
            atomicAdd((unsigned long long *)&bins[i], (unsigned long long)counts[i]);
    __syncthreads();
}
#endif

#ifdef KR_VARIANT_grid
extern "C" __global__ void grid(uint64_t n, const uint8_t *x, uint64_t *bins)
{
    __shared__ unsigned counts[256];
    uint64_t stride = (uint64_t)gridDim.x * blockDim.x;
    for (uint64_t start = 0; start < n; start += PASS) {
        uint64_t end = n - start < PASS ? n : start + PASS;
        clear(counts);
        for (uint64_t i = start + (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < end; i += stride)
            atomicAdd(&counts[x[i]], 1u);
        flush(counts, bins);
    }
}
#endif

#ifdef KR_VARIANT_vec16
extern "C" __global__ void vec16(uint64_t n, const uint8_t *x, uint64_t *bins)
{
    __shared__ unsigned counts[256];
    uint64_t first = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
    uint64_t stride = (uint64_t)gridDim.x * blockDim.x;
    const uint4 *x16 = reinterpret_cast<const uint4 *>(x);
    for (uint64_t start = 0; start < n; start += PASS) {
        uint64_t end = n - start < PASS ? n : start + PASS;
        clear(counts);
        for (uint64_t i = start / 16 + first; i < end / 16; i += stride) {
            uint4 v = x16[i];
            unsigned words[4] = {v.x, v.y, v.z, v.w};
            for (int j = 0; j < 16; j++)
                atomicAdd(&counts[words[j / 4] >> j % 4 * 8 & 255], 1u);
        }
        for (uint64_t i = end / 16 * 16 + first; i < end; i += stride)
            atomicAdd(&counts[x[i]], 1u);
        flush(counts, bins);
    }
}
#endif
