// SPDX-License-Identifier: Apache-2.0
//! op      relu
//! brief   y[i] = x[i] < 0 ? 0 : x[i]
//! types   T = f32 f64
//! arg     n  u64   size
//! arg     x  T[n]  in
//! arg     y  T[n]  out
//! variant grid  cc>=5.0
//! variant vec4  cc>=5.0 align=16
//! launch  elementwise n
//! launch  vec4: elementwise n per_thread=4
//! compare exact
//! cost    bytes=2*sizeof(T)*n
//! split   n
//! source  V. Nair, G. Hinton: Rectified linear units improve restricted Boltzmann machines (2010)

// The comparison is written so that a NaN stays NaN and -0 stays -0; fmax would drop the one and may turn
// the other. y may be x.

#ifdef KR_REFERENCE
static void reference(uint64_t n, const T *x, T *y)
{
    for (uint64_t i = 0; i < n; i++)
        y[i] = x[i] < 0 ? 0 : x[i];
}
#else
static __device__ T relu(T x)
{
    return x < 0 ? 0 : x;
}
#endif

#ifdef KR_VARIANT_grid
extern "C" __global__ void grid(uint64_t n, const T *x, T *y)
{
    uint64_t stride = (uint64_t)gridDim.x * blockDim.x;
    for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride)
        y[i] = relu(x[i]);
}
#endif

#ifdef KR_VARIANT_vec4
struct alignas(16) Vec4 {
    T v[4];
};

extern "C" __global__ void vec4(uint64_t n, const T *x, T *y)
{
    uint64_t first = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
    uint64_t stride = (uint64_t)gridDim.x * blockDim.x;
    const Vec4 *x4 = reinterpret_cast<const Vec4 *>(x);
    Vec4 *y4 = reinterpret_cast<Vec4 *>(y);
    for (uint64_t i = first; i < n / 4; i += stride) {
        Vec4 p = x4[i];
        for (int j = 0; j < 4; j++)
            p.v[j] = relu(p.v[j]);
        y4[i] = p;
    }
    for (uint64_t i = n / 4 * 4 + first; i < n; i += stride)
        y[i] = relu(x[i]);
}
#endif
