// SPDX-License-Identifier: Apache-2.0
//! op      add
//! brief   c[i] = a[i] + b[i]
//! types   T = f32 f64
//! arg     n  u64   size
//! arg     a  T[n]  in
//! arg     b  T[n]  in
//! arg     c  T[n]  out
//! variant grid  cc>=5.0
//! variant vec4  cc>=5.0 align=16
//! launch  elementwise n
//! launch  vec4: elementwise n per_thread=4
//! compare exact
//! cost    bytes=3*sizeof(T)*n flops=n
//! split   n
//! source  IEEE 754, addition

// One correctly rounded addition. c may be a or b.

#ifdef KR_REFERENCE
static void reference(uint64_t n, const T *a, const T *b, T *c)
{
    for (uint64_t i = 0; i < n; i++)
        c[i] = a[i] + b[i];
}
#endif

#ifdef KR_VARIANT_grid
extern "C" __global__ void grid(uint64_t n, const T *a, const T *b, T *c)
{
    uint64_t stride = (uint64_t)gridDim.x * blockDim.x;
    for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride)
        c[i] = a[i] + b[i];
}
#endif

#ifdef KR_VARIANT_vec4
struct alignas(16) Vec4 {
    T v[4];
};

extern "C" __global__ void vec4(uint64_t n, const T *a, const T *b, T *c)
{
    uint64_t first = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
    uint64_t stride = (uint64_t)gridDim.x * blockDim.x;
    const Vec4 *a4 = reinterpret_cast<const Vec4 *>(a);
    const Vec4 *b4 = reinterpret_cast<const Vec4 *>(b);
    Vec4 *c4 = reinterpret_cast<Vec4 *>(c);
    for (uint64_t i = first; i < n / 4; i += stride) {
        Vec4 x = a4[i], y = b4[i];
        for (int j = 0; j < 4; j++)
            x.v[j] += y.v[j];
        c4[i] = x;
    }
    for (uint64_t i = n / 4 * 4 + first; i < n; i += stride)
        c[i] = a[i] + b[i];
}
#endif
