// SPDX-License-Identifier: Apache-2.0
//! op      index32
//! brief   y[i] = x[i * step mod n]
//! arg     n     u64     size
//! arg     step  u64     size>=1048583
//! arg     x     f32[n]  in
//! arg     y     f32[n]  out
//! variant broken
//! launch  elementwise n
//! compare exact
//! source  broken on purpose

// The product passes 2^32 from element 4096 on.

#ifdef KR_REFERENCE
static void reference(uint64_t n, uint64_t step, const float *x, float *y)
{
    for (uint64_t i = 0; i < n; i++)
        y[i] = x[i * step % n];
}
#endif

#ifdef KR_VARIANT_broken
extern "C" __global__ void broken(uint64_t n, uint64_t step, const float *x, float *y)
{
    unsigned stride = gridDim.x * blockDim.x;
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride)
        y[i] = x[i * (unsigned)step % (unsigned)n];
}
#endif
