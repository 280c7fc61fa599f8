// SPDX-License-Identifier: Apache-2.0
//! op      tally
//! brief   bins[x[i]] += 1
//! arg     n     u32     size
//! arg     x     u8[n]   in
//! arg     bins  u32[4]  inout
//! variant atomic
//! launch  elementwise n
//! compare exact
//! split   n combine=add
//! source  this test

#ifdef KR_REFERENCE
static void reference(uint32_t n, const uint8_t *x, uint32_t *bins)
{
    for (uint32_t i = 0; i < n; i++)
        bins[x[i]]++;
}
#endif

#ifdef KR_VARIANT_atomic
extern "C" __global__ void atomic(uint32_t n, const uint8_t *x, uint32_t *bins)
{
    for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        atomicAdd(&bins[x[i]], 1u);
}
#endif
