// SPDX-License-Identifier: Apache-2.0
//! op      misaligned
//! brief   y[i] = x[i]
//! arg     n  u64     size
//! arg     x  f32[n]  in
//! arg     y  f32[n]  out
//! variant broken
//! launch  elementwise n per_thread=4
//! compare exact
//! source  broken on purpose

// Needs align=16 and does not say so: a fault.

#ifdef KR_REFERENCE
static void reference(uint64_t n, const float *x, float *y)
{
    for (uint64_t i = 0; i < n; i++)
        y[i] = x[i];
}
#endif

#ifdef KR_VARIANT_broken
extern "C" __global__ void broken(uint64_t n, const float *x, float *y)
{
    uint64_t stride = (uint64_t)gridDim.x * blockDim.x;
    uint64_t first = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
    for (uint64_t i = first; i < n / 4; i += stride)
        reinterpret_cast<float4 *>(y)[i] = reinterpret_cast<const float4 *>(x)[i];
    for (uint64_t i = n / 4 * 4 + first; i < n; i += stride)
        y[i] = x[i];
}
#endif
