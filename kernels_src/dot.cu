// SPDX-License-Identifier: Apache-2.0
//! op      dot
//! brief   total = x[0] * y[0] + ... + x[n-1] * y[n-1]
//! types   T = f32 f64
//! arg     n         u64          size
//! arg     x         T[n]         in
//! arg     y         T[n]         in
//! arg     total     T[1]         out
//! arg     partials  f64[2*grid]  work
//! arg     arrived   u32[1]       work
//! variant grid  cc>=5.0
//! variant vec4  cc>=5.0 align=16
//! launch  elementwise n block=256 waves=4
//! launch  vec4: elementwise n per_thread=4 block=256 waves=4
//! compare condition 1
//! cost    bytes=2*sizeof(T)*n flops=2*n
//! split   n combine=add
//! source  BLAS level 1, DOT

// Accurate as if computed exactly and rounded at the end: f32 multiplies and adds in f64, f64 keeps the
// rounding errors of both aside. The order depends on n and the grid alone, so a device gives the same bits
// each time. The empty product is +0.

#ifdef KR_REFERENCE
static void reference(uint64_t n, const T *x, const T *y, T *total, double *partials, uint32_t *arrived)
{
    (void)partials, (void)arrived;
    long double sum = 0;
    for (uint64_t i = 0; i < n; i++)
        sum += (long double)x[i] * y[i];
    *total = (T)sum;
}
#endif

#ifndef KR_REFERENCE
#include "exact_sum.cuh"

static __device__ Wide plus_product(Wide s, double x, double y)
{
    double product = x * y;
    s = plus(s, product);
    if (sizeof(T) == sizeof(double)) // the product of two f32 is exact in f64
        s.low += fma(x, y, -product);
    return s;
}
#endif

#ifdef KR_VARIANT_grid
extern "C" __global__ void grid(uint64_t n, const T *x, const T *y, T *total, double *partials,
                                uint32_t *arrived)
{
    uint64_t stride = (uint64_t)gridDim.x * blockDim.x;
    Wide s = {0, 0};
    for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride)
        s = plus_product(s, x[i], y[i]);
    finish(s, total, partials, arrived);
}
#endif

#ifdef KR_VARIANT_vec4
struct alignas(16) Vec4 {
    T v[4];
};

extern "C" __global__ void vec4(uint64_t n, const T *x, const T *y, T *total, double *partials,
                                uint32_t *arrived)
{
    uint64_t first = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
    uint64_t stride = (uint64_t)gridDim.x * blockDim.x;
    const Vec4 *x4 = reinterpret_cast<const Vec4 *>(x);
    const Vec4 *y4 = reinterpret_cast<const Vec4 *>(y);
    Wide s = {0, 0};
    for (uint64_t i = first; i < n / 4; i += stride) {
        Vec4 p = x4[i], q = y4[i];
        for (int j = 0; j < 4; j++)
            s = plus_product(s, p.v[j], q.v[j]);
    }
    for (uint64_t i = n / 4 * 4 + first; i < n; i += stride)
        s = plus_product(s, x[i], y[i]);
    finish(s, total, partials, arrived);
}
#endif
