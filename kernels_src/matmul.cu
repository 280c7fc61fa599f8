// SPDX-License-Identifier: Apache-2.0
//! op      matmul
//! brief   c[i][j] = a[i][0] * b[0][j] + ... + a[i][k-1] * b[k-1][j]
//! types   T = f32 f64
//! arg     m  u64     size
//! arg     n  u64     size
//! arg     k  u64     size
//! arg     a  T[m*k]  in
//! arg     b  T[k*n]  in
//! arg     c  T[m*n]  out
//! variant naive  cc>=5.0
//! variant tiled  cc>=5.0
//! launch  tiles n m tile=32x32 block=32x8
//! compare condition 16
//! cost    bytes=sizeof(T)*(m*k+k*n+m*n) flops=2*m*n*k
//! split   m
//! source  BLAS level 3, GEMM with alpha = 1, beta = 0

// Row major, no padding. Fused multiply-adds in T, summed 32 at a time: the error grows with 32 + k/32
// terms, not with k. k = 0 gives zeros.

#ifdef KR_REFERENCE
static void reference(uint64_t m, uint64_t n, uint64_t k, const T *a, const T *b, T *c)
{
    for (uint64_t i = 0; i < m; i++)
        for (uint64_t j = 0; j < n; j++) {
            long double sum = 0;
            for (uint64_t l = 0; l < k; l++)
                sum += (long double)a[i * k + l] * b[l * n + j];
            c[i * n + j] = (T)sum;
        }
}
#endif

#ifdef KR_VARIANT_naive
extern "C" __global__ void naive(uint64_t m, uint64_t n, uint64_t k, const T *a, const T *b, T *c)
{
    uint64_t row_stride = (uint64_t)gridDim.y * blockDim.y, col_stride = (uint64_t)gridDim.x * blockDim.x;
    for (uint64_t i = (uint64_t)blockIdx.y * blockDim.y + threadIdx.y; i < m; i += row_stride)
        for (uint64_t j = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; j < n; j += col_stride) {
            T sum = 0;
            for (uint64_t l = 0; l < k;) {
                uint64_t end = k - l < 32 ? k : l + 32;
                T part = 0;
                for (; l < end; l++)
                    part = fma(a[i * k + l], b[l * n + j], part);
                sum += part;
            }
            c[i * n + j] = sum;
        }
}
#endif

#ifdef KR_VARIANT_tiled
// A block makes 32 x 32 elements of c, a thread four of one column, from tiles of a and b in shared memory.
// Outside the matrices the tiles hold zeros, which is why the tail along k needs no test in the inner loop.
static __device__ void load(T tile[32][32], const T *x, uint64_t rows, uint64_t cols, uint64_t top,
                            uint64_t left)
{
    uint64_t col = left + threadIdx.x;
    for (unsigned r = threadIdx.y; r < 32; r += 8)
        tile[r][threadIdx.x] = top + r < rows && col < cols ? x[(top + r) * cols + col] : 0;
}

extern "C" __global__ void tiled(uint64_t m, uint64_t n, uint64_t k, const T *a, const T *b, T *c)
{
    __shared__ T a_tile[32][32], b_tile[32][32];
    for (uint64_t top = (uint64_t)blockIdx.y * 32; top < m; top += (uint64_t)gridDim.y * 32)
        for (uint64_t left = (uint64_t)blockIdx.x * 32; left < n; left += (uint64_t)gridDim.x * 32) {
            T sum[4] = {};
            for (uint64_t l = 0; l < k; l += 32) {
                load(a_tile, a, m, k, top, l);
                load(b_tile, b, k, n, l, left);
                __syncthreads();
                T part[4] = {};
                for (unsigned t = 0; t < 32; t++)
                    for (unsigned r = 0; r < 4; r++)
                        part[r] = fma(a_tile[threadIdx.y + 8 * r][t], b_tile[t][threadIdx.x], part[r]);
                for (unsigned r = 0; r < 4; r++)
                    sum[r] += part[r];
                __syncthreads(); // the next tiles overwrite these
            }
            for (unsigned r = 0; r < 4; r++)
                if (top + threadIdx.y + 8 * r < m && left + threadIdx.x < n)
                    c[(top + threadIdx.y + 8 * r) * n + left + threadIdx.x] = sum[r];
        }
}
#endif
