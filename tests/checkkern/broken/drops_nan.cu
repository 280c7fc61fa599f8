// SPDX-License-Identifier: Apache-2.0
//! op      drops_nan
//! brief   y[i] = x[i] < 0 ? 0 : x[i]
//! arg     n  u64     size
//! arg     x  f32[n]  in
//! arg     y  f32[n]  out
//! variant broken
//! launch  elementwise n
//! compare exact
//! source  broken on purpose

// A NaN is not greater than 0.

#ifdef KR_REFERENCE
static void reference(uint64_t n, const float *x, float *y)
{
    for (uint64_t i = 0; i < n; i++)
        y[i] = x[i] < 0 ? 0 : x[i];
}
#endif

#ifdef KR_VARIANT_broken
extern "C" __global__ void broken(uint64_t n, const float *x, float *y)
{
    uint64_t stride = (uint64_t)gridDim.x * blockDim.x;
    uint64_t first = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
    for (uint64_t i = first; i < n; i += stride)
        y[i] = x[i] > 0 || x[i] == 0 ? x[i] : 0;
}
#endif
