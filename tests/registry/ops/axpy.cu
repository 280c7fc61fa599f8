// SPDX-License-Identifier: Apache-2.0
//! op      axpy
//! brief   y[i] = a * x[i] + y[i]
//! types   T = f32 f64
//! arg     n  u64   size
//! arg     a  T     in
//! arg     x  T[n]  in
//! arg     y  T[n]  inout
//! variant plain
//! variant vec   align=16
//! launch  elementwise n
//! launch  vec: elementwise n per_thread=2
//! compare exact
//! cost    bytes=3*sizeof(T)*n flops=2*n
//! split   n
//! source  this test

#ifdef KR_REFERENCE
static void reference(uint64_t n, T a, const T *x, T *y)
{
    for (uint64_t i = 0; i < n; i++)
        y[i] = a * x[i] + y[i];
}
#endif

#ifdef KR_VARIANT_plain
extern "C" __global__ void plain(uint64_t n, T a, const T *x, T *y)
{
    for (uint64_t i = blockIdx.x * (uint64_t)blockDim.x + threadIdx.x; i < n; i += (uint64_t)gridDim.x * blockDim.x)
        y[i] = a * x[i] + y[i];
}
#endif

#ifdef KR_VARIANT_vec
struct alignas(2 * sizeof(T)) Pair {
    T low, high;
};

extern "C" __global__ void vec(uint64_t n, T a, const T *x, T *y)
{
    const uint64_t first = blockIdx.x * (uint64_t)blockDim.x + threadIdx.x, step = (uint64_t)gridDim.x * blockDim.x;
    for (uint64_t i = first; i < n / 2; i += step) {
        const Pair p = ((const Pair *)x)[i], q = ((Pair *)y)[i];
        ((Pair *)y)[i] = Pair{a * p.low + q.low, a * p.high + q.high};
    }
    if (first == 0 && n % 2 == 1)
        y[n - 1] = a * x[n - 1] + y[n - 1];
}
#endif
