// SPDX-License-Identifier: Apache-2.0
//! op      no_bounds
//! brief   y[i] = 1
//! arg     n  u64     size
//! arg     x  f32[n]  in
//! arg     y  f32[n]  out
//! variant broken
//! launch  elementwise n block=256
//! compare exact
//! source  broken on purpose

// The last block writes past the end.

#ifdef KR_REFERENCE
static void reference(uint64_t n, const float *x, float *y)
{
    (void)x;
    for (uint64_t i = 0; i < n; i++)
        y[i] = 1;
}
#endif

#ifdef KR_VARIANT_broken
extern "C" __global__ void broken(uint64_t n, const float *x, float *y)
{
    uint64_t stride = (uint64_t)gridDim.x * blockDim.x;
    uint64_t first = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
    (void)x;
    for (uint64_t i = first; i < (n + 255) / 256 * 256; i += stride)
        y[i] = 1;
}
#endif
