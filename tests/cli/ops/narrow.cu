// SPDX-License-Identifier: Apache-2.0
//! op      narrow
//! brief   y[i] = 1, with a size that ends at 255
//! arg     n  u8      size
//! arg     y  f32[n]  out
//! variant grid
//! launch  elementwise n
//! compare exact
//! source  a size of its own kind

#ifdef KR_REFERENCE
static void reference(uint8_t n, float *y)
{
    for (uint8_t i = 0; i < n; i++)
        y[i] = 1;
}
#endif

#ifdef KR_VARIANT_grid
extern "C" __global__ void grid(uint8_t n, float *y)
{
    uint64_t step = (uint64_t)gridDim.x * blockDim.x;
    for (uint64_t i = blockIdx.x * (uint64_t)blockDim.x + threadIdx.x; i < n; i += step)
        y[i] = 1;
}
#endif
