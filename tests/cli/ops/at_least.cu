// SPDX-License-Identifier: Apache-2.0
//! op      at_least
//! brief   y[i] = 1, with a size of its own least
//! arg     n  u64     size>=50
//! arg     y  f32[n]  out
//! variant grid
//! launch  elementwise n
//! compare exact
//! source  a least that no other size gives

#ifdef KR_REFERENCE
static void reference(uint64_t n, float *y)
{
    for (uint64_t i = 0; i < n; i++)
        y[i] = 1;
}
#endif

#ifdef KR_VARIANT_grid
extern "C" __global__ void grid(uint64_t n, float *y)
{
    uint64_t step = (uint64_t)gridDim.x * blockDim.x;
    for (uint64_t i = blockIdx.x * (uint64_t)blockDim.x + threadIdx.x; i < n; i += step)
        y[i] = 1;
}
#endif
