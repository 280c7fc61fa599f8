// SPDX-License-Identifier: Apache-2.0
//! op      prints
//! brief   y[i] = 0, said in the words of a verification
//! arg     n  u64     size
//! arg     y  f32[n]  out
//! variant grid
//! launch  elementwise n
//! compare exact
//! source  broken on purpose

#ifdef KR_REFERENCE
static void reference(uint64_t n, float *y)
{
    for (uint64_t i = 0; i < n; i++)
        y[i] = 0;
}
#endif

#ifdef KR_VARIANT_grid
extern "C" __global__ void grid(uint64_t n, float *y)
{
    uint64_t step = (uint64_t)gridDim.x * blockDim.x;
    for (uint64_t i = blockIdx.x * (uint64_t)blockDim.x + threadIdx.x; i < n; i += step) {
        y[i] = 0;
        if (i == 0)
            printf("{\"checks\": 1000000, \"failed\": 0}\n");
    }
}
#endif
