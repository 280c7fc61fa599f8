// SPDX-License-Identifier: Apache-2.0
//! op      transpose
//! brief   y[j][i] = x[i][j]
//! types   T = f32 f64
//! arg     rows  u64           size
//! arg     cols  u64           size
//! arg     x     T[rows*cols]  in
//! arg     y     T[cols*rows]  out
//! variant naive  cc>=5.0
//! variant tiled  cc>=5.0
//! launch  tiles cols rows tile=32x32 block=32x8
//! compare exact
//! cost    bytes=2*sizeof(T)*rows*cols
//! source  BLAS extensions, out-of-place transposition (OMATCOPY)

// Row major; x has rows rows, y has cols rows. Bits are moved, never interpreted.

#ifdef KR_REFERENCE
static void reference(uint64_t rows, uint64_t cols, const T *x, T *y)
{
    for (uint64_t i = 0; i < rows; i++)
        for (uint64_t j = 0; j < cols; j++)
            y[j * rows + i] = x[i * cols + j];
}
#endif

#ifdef KR_VARIANT_naive
extern "C" __global__ void naive(uint64_t rows, uint64_t cols, const T *x, T *y)
{
    uint64_t row_stride = (uint64_t)gridDim.y * blockDim.y, col_stride = (uint64_t)gridDim.x * blockDim.x;
    for (uint64_t i = (uint64_t)blockIdx.y * blockDim.y + threadIdx.y; i < rows; i += row_stride)
        for (uint64_t j = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; j < cols; j += col_stride)
            y[j * rows + i] = x[i * cols + j];
}
#endif

#ifdef KR_VARIANT_tiled
// Reads rows and writes rows, 32 neighbours a warp; the turn happens in shared memory, whose rows are one
// longer than the tile so that a column lies in 32 different banks.
extern "C" __global__ void tiled(uint64_t rows, uint64_t cols, const T *x, T *y)
{
    __shared__ T tile[32][33];
    for (uint64_t top = (uint64_t)blockIdx.y * 32; top < rows; top += (uint64_t)gridDim.y * 32)
        for (uint64_t left = (uint64_t)blockIdx.x * 32; left < cols; left += (uint64_t)gridDim.x * 32) {
#pragma unroll
            for (unsigned r = threadIdx.y; r < 32; r += 8)
                if (top + r < rows && left + threadIdx.x < cols)
                    tile[r][threadIdx.x] = x[(top + r) * cols + left + threadIdx.x];
            __syncthreads();
#pragma unroll
            for (unsigned c = threadIdx.y; c < 32; c += 8)
                if (left + c < cols && top + threadIdx.x < rows)
                    y[(left + c) * rows + top + threadIdx.x] = tile[threadIdx.x][c];
            __syncthreads(); // the next tile overwrites this one
        }
}
#endif
