// SPDX-License-Identifier: Apache-2.0
//! op      saxpy
//! brief   y[i] = a * x[i] + y[i]
//! types   T = f32 f64
//! arg     n  u64   size
//! arg     a  T     in
//! arg     x  T[n]  in
//! arg     y  T[n]  inout
//! variant grid  cc>=5.0
//! variant vec4  cc>=5.0 align=16
//! launch  elementwise n
//! launch  vec4: elementwise n per_thread=4
//! compare ulp 1
//! cost    bytes=3*sizeof(T)*n flops=2*n
//! split   n
//! source  BLAS level 1, AXPY

// One fused multiply-add an element: rounded once, so cancellation costs nothing. Unlike some BLAS, a = 0
// is no special case: an infinity or NaN in x shows. x may be y.

#ifdef KR_REFERENCE
static void reference(uint64_t n, T a, const T *x, T *y)
{
    for (uint64_t i = 0; i < n; i++)
        y[i] = (T)fma(a, x[i], y[i]);
}
#endif

#ifdef KR_VARIANT_grid
extern "C" __global__ void grid(uint64_t n, T a, const T *x, T *y)
{
    uint64_t stride = (uint64_t)gridDim.x * blockDim.x;
    for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride)
        y[i] = fma(a, x[i], y[i]);
}
#endif

#ifdef KR_VARIANT_vec4
struct alignas(16) Vec4 {
    T v[4];
};

extern "C" __global__ void vec4(uint64_t n, T a, const T *x, T *y)
{
    uint64_t first = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
    uint64_t stride = (uint64_t)gridDim.x * blockDim.x;
    const Vec4 *x4 = reinterpret_cast<const Vec4 *>(x);
    Vec4 *y4 = reinterpret_cast<Vec4 *>(y);
    for (uint64_t i = first; i < n / 4; i += stride) {
        Vec4 p = x4[i], q = y4[i];
        for (int j = 0; j < 4; j++)
            q.v[j] = fma(a, p.v[j], q.v[j]);
        y4[i] = q;
    }
    for (uint64_t i = n / 4 * 4 + first; i < n; i += stride)
        y[i] = fma(a, x[i], y[i]);
}
#endif
