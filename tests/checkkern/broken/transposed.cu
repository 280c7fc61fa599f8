// SPDX-License-Identifier: Apache-2.0
//! op      transposed
//! brief   y[j][i] = x[i][j]
//! arg     rows  u64             size
//! arg     cols  u64             size
//! arg     x     f32[rows*cols]  in
//! arg     y     f32[cols*rows]  out
//! variant broken
//! launch  elementwise rows*cols
//! compare exact
//! source  broken on purpose

// Rows and columns are mixed up: right for squares alone.

#ifdef KR_REFERENCE
static void reference(uint64_t rows, uint64_t cols, const float *x, float *y)
{
    for (uint64_t i = 0; i < rows; i++)
        for (uint64_t j = 0; j < cols; j++)
            y[j * rows + i] = x[i * cols + j];
}
#endif

#ifdef KR_VARIANT_broken
extern "C" __global__ void broken(uint64_t rows, uint64_t cols, const float *x, float *y)
{
    uint64_t stride = (uint64_t)gridDim.x * blockDim.x;
    for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < rows * cols; i += stride)
        y[i % rows * cols + i / rows] = x[i];
}
#endif
