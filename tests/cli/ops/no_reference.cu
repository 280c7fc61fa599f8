// SPDX-License-Identifier: Apache-2.0
//! op      no_reference
//! brief   y[i] = 1, and nothing that says so
//! arg     n  u64     size
//! arg     y  f32[n]  out
//! variant grid
//! launch  elementwise n
//! compare exact
//! split   n
//! source  broken on purpose

#ifdef KR_VARIANT_grid
extern "C" __global__ void grid(uint64_t n, float *y)
{
    uint64_t step = (uint64_t)gridDim.x * blockDim.x;
    for (uint64_t i = blockIdx.x * (uint64_t)blockDim.x + threadIdx.x; i < n; i += step)
        y[i] = 1;
}
#endif
