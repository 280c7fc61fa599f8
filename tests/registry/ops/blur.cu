// SPDX-License-Identifier: Apache-2.0
//! op      blur
//! brief   y[r][c] = x[r-1][c] + x[r][c] + x[r+1][c], with zeros outside
//! arg     rows  u32             size>=1
//! arg     cols  u32             size>=1
//! arg     x     i32[rows*cols]  in
//! arg     y     i32[rows*cols]  out
//! variant tiled
//! launch  tiles cols rows tile=32x8 block=32x8
//! compare exact
//! split   rows halo=1
//! source  this test

#ifdef KR_REFERENCE
static void reference(uint32_t rows, uint32_t cols, const int32_t *x, int32_t *y)
{
    for (uint32_t r = 0; r < rows; r++)
        for (uint32_t c = 0; c < cols; c++)
            y[r * cols + c] = (r ? x[(r - 1) * cols + c] : 0) + x[r * cols + c] +
                              (r + 1 < rows ? x[(r + 1) * cols + c] : 0);
}
#endif

#ifdef KR_VARIANT_tiled
extern "C" __global__ void tiled(uint32_t rows, uint32_t cols, const int32_t *x, int32_t *y)
{
    const uint32_t c = blockIdx.x * 32 + threadIdx.x;
    for (uint32_t r = blockIdx.y * 8 + threadIdx.y; r < rows; r += gridDim.y * 8)
        if (c < cols)
            y[r * cols + c] = (r ? x[(r - 1) * cols + c] : 0) + x[r * cols + c] +
                              (r + 1 < rows ? x[(r + 1) * cols + c] : 0);
}
#endif
