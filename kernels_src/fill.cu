// SPDX-License-Identifier: Apache-2.0
//! op      fill
//! brief   y[i] = value
//! types   T = f32 f64
//! arg     n      u64   size
//! arg     value  T     in
//! arg     y      T[n]  out
//! variant grid  cc>=5.0
//! variant vec4  cc>=5.0 align=16
//! launch  elementwise n
//! launch  vec4: elementwise n per_thread=4
//! compare exact
//! cost    bytes=sizeof(T)*n
//! split   n
//! source  C++ standard library, std::fill_n

// The bits of value are kept, a NaN's payload and a zero's sign too.

#ifdef KR_REFERENCE
static void reference(uint64_t n, T value, T *y)
{
    for (uint64_t i = 0; i < n; i++)
        y[i] = value;
}
#endif

#ifdef KR_VARIANT_grid
extern "C" __global__ void grid(uint64_t n, T value, T *y)
{
    uint64_t stride = (uint64_t)gridDim.x * blockDim.x;
    for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride)
        y[i] = value;
}
#endif

#ifdef KR_VARIANT_vec4
struct alignas(16) Vec4 {
    T v[4];
};

extern "C" __global__ void vec4(uint64_t n, T value, T *y)
{
    uint64_t first = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
    uint64_t stride = (uint64_t)gridDim.x * blockDim.x;
    Vec4 *y4 = reinterpret_cast<Vec4 *>(y);
    for (uint64_t i = first; i < n / 4; i += stride)
        y4[i] = Vec4{{value, value, value, value}};
    for (uint64_t i = n / 4 * 4 + first; i < n; i += stride)
        y[i] = value;
}
#endif
