// SPDX-License-Identifier: Apache-2.0
//! op      conv3x3
//! brief   dst[i][j] = sum over u, v of kuv * src[i+u-1][j+v-1]
//! types   T = f32
//! arg     rows  u64           size
//! arg     cols  u64           size
//! arg     k00   T             in
//! arg     k01   T             in
//! arg     k02   T             in
//! arg     k10   T             in
//! arg     k11   T             in
//! arg     k12   T             in
//! arg     k20   T             in
//! arg     k21   T             in
//! arg     k22   T             in
//! arg     src   T[rows*cols]  in
//! arg     dst   T[rows*cols]  out
//! variant direct  cc>=5.0
//! variant tiled   cc>=5.0
//! launch  tiles cols rows tile=32x32 block=32x8
//! compare condition 5
//! cost    bytes=2*sizeof(T)*rows*cols flops=18*rows*cols
//! split   rows halo=1
//! source  ONNX, Conv (a cross-correlation) with pads = 1

// Row major. Pixels outside are zeros and are multiplied like all others, so an infinite coefficient makes
// the border NaN. Nine roundings at most half an ulp each: condition 5 is a theorem. The coefficients are
// scalars: they lie in the constant bank that holds the parameters, with nothing to upload. dst must not be
// src.

#ifdef KR_REFERENCE
static void reference(uint64_t rows, uint64_t cols, T k00, T k01, T k02, T k10, T k11, T k12, T k20, T k21,
                      T k22, const T *src, T *dst)
{
    const T k[9] = {k00, k01, k02, k10, k11, k12, k20, k21, k22};
    for (uint64_t i = 0; i < rows; i++)
        for (uint64_t j = 0; j < cols; j++) {
            double sum = 0;
            for (uint64_t u = 0; u < 3; u++)
                for (uint64_t v = 0; v < 3; v++) {
                    uint64_t row = i + u - 1,
                             col = j + v - 1; /* left of and above 0 wraps to a large number */
                    double pixel = row < rows && col < cols ? src[row * cols + col] : 0;
                    sum += k[3 * u + v] * pixel;
                }
            dst[i * cols + j] = (T)sum;
        }
}
#endif

#ifdef KR_VARIANT_direct
extern "C" __global__ void direct(uint64_t rows, uint64_t cols, T k00, T k01, T k02, T k10, T k11, T k12,
                                  T k20, T k21, T k22, const T *src, T *dst)
{
    auto at = [=](uint64_t row, uint64_t col) { // left of and above 0 wraps to a large number
        return row < rows && col < cols ? src[row * cols + col] : T(0);
    };
    uint64_t row_stride = (uint64_t)gridDim.y * blockDim.y, col_stride = (uint64_t)gridDim.x * blockDim.x;
    for (uint64_t i = (uint64_t)blockIdx.y * blockDim.y + threadIdx.y; i < rows; i += row_stride)
        for (uint64_t j = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; j < cols; j += col_stride) {
            T sum = k00 * at(i - 1, j - 1);
            sum = fma(k01, at(i - 1, j), sum);
            sum = fma(k02, at(i - 1, j + 1), sum);
            sum = fma(k10, at(i, j - 1), sum);
            sum = fma(k11, at(i, j), sum);
            sum = fma(k12, at(i, j + 1), sum);
            sum = fma(k20, at(i + 1, j - 1), sum);
            sum = fma(k21, at(i + 1, j), sum);
            sum = fma(k22, at(i + 1, j + 1), sum);
            dst[i * cols + j] = sum;
        }
}
#endif

#ifdef KR_VARIANT_tiled
// Each pixel is read once a block: 32 x 32 results from 34 x 34 pixels in shared memory.
extern "C" __global__ void tiled(uint64_t rows, uint64_t cols, T k00, T k01, T k02, T k10, T k11, T k12,
                                 T k20, T k21, T k22, const T *src, T *dst)
{
    __shared__ T tile[34][34];
    for (uint64_t top = (uint64_t)blockIdx.y * 32; top < rows; top += (uint64_t)gridDim.y * 32)
        for (uint64_t left = (uint64_t)blockIdx.x * 32; left < cols; left += (uint64_t)gridDim.x * 32) {
            for (unsigned r = threadIdx.y; r < 34; r += 8)
                for (unsigned c = threadIdx.x; c < 34; c += 32) {
                    uint64_t row = top + r - 1,
                             col = left + c - 1; // left of and above 0 wraps to a large number
                    tile[r][c] = row < rows && col < cols ? src[row * cols + col] : 0;
                }
            __syncthreads();
            unsigned c = threadIdx.x;
            for (unsigned r = threadIdx.y; r < 32; r += 8) {
                T sum = k00 * tile[r][c];
                sum = fma(k01, tile[r][c + 1], sum);
                sum = fma(k02, tile[r][c + 2], sum);
                sum = fma(k10, tile[r + 1][c], sum);
                sum = fma(k11, tile[r + 1][c + 1], sum);
                sum = fma(k12, tile[r + 1][c + 2], sum);
                sum = fma(k20, tile[r + 2][c], sum);
                sum = fma(k21, tile[r + 2][c + 1], sum);
                sum = fma(k22, tile[r + 2][c + 2], sum);
                if (top + r < rows && left + c < cols)
                    dst[(top + r) * cols + left + c] = sum;
            }
            __syncthreads(); // the next tile overwrites this one
        }
}
#endif
