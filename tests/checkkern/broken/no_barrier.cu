// SPDX-License-Identifier: Apache-2.0
//! op      no_barrier
//! brief   each 256 elements in reverse, where there are 256
//! arg     n  u64     size
//! arg     x  f32[n]  in
//! arg     y  f32[n]  out
//! variant broken
//! launch  elementwise n block=256
//! compare exact
//! source  broken on purpose

// Threads read what others have not written yet.

#ifdef KR_REFERENCE
static void reference(uint64_t n, const float *x, float *y)
{
    for (uint64_t i = 0; i < n; i++)
        y[i] = i < n / 256 * 256 ? x[i / 256 * 256 + 255 - i % 256] : 0;
}
#endif

#ifdef KR_VARIANT_broken
extern "C" __global__ void broken(uint64_t n, const float *x, float *y)
{
    uint64_t stride = (uint64_t)gridDim.x * blockDim.x;
    uint64_t first = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
    __shared__ float tile[256];
    for (uint64_t i = first; i < n; i += stride) {
        tile[threadIdx.x] = x[i];
        y[i] = i < n / 256 * 256 ? ((volatile float *)tile)[255 - threadIdx.x] : 0;
    }
}
#endif
