// SPDX-License-Identifier: Apache-2.0
//! op      uninitialised
//! brief   y[i] = x[i] + x[i] of the last lane of each 32, or of the last element
//! arg     n  u64     size
//! arg     x  f32[n]  in
//! arg     y  f32[n]  out
//! variant broken
//! launch  elementwise n block=32
//! compare exact
//! source  broken on purpose

// The last warp of all reads an element of shared memory that nobody wrote.

#ifdef KR_REFERENCE
static void reference(uint64_t n, const float *x, float *y)
{
    for (uint64_t i = 0; i < n; i++) {
        uint64_t last = i / 32 * 32 + 31;
        y[i] = x[i] + x[last < n ? last : n - 1];
    }
}
#endif

#ifdef KR_VARIANT_broken
extern "C" __global__ void broken(uint64_t n, const float *x, float *y)
{
    uint64_t stride = (uint64_t)gridDim.x * blockDim.x;
    uint64_t first = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
    __shared__ float tile[32];
    for (uint64_t start = first - threadIdx.x; start < n; start += stride) {
        uint64_t i = start + threadIdx.x;
        if (i < n)
            tile[threadIdx.x] = x[i];
        __syncthreads();
        if (i < n)
            y[i] = x[i] + tile[31];
        __syncthreads();
    }
}
#endif
