// SPDX-License-Identifier: Apache-2.0
//! op      mix
//! brief   y[i] = a[i] + t * (b[i] - a[i])
//! types   T = f32 f64
//! arg     n  u64   size
//! arg     t  T     in
//! arg     a  T[n]  in
//! arg     b  T[n]  in
//! arg     y  T[n]  out
//! variant grid
//! launch  elementwise n
//! compare ulp 1
//! source  linear interpolation

#include "grid.cuh"

#ifdef KR_VARIANT_grid
extern "C" __global__ void grid(uint64_t n, T t, const T *a, const T *b, T *y)
{
    for (uint64_t i = first(); i < n; i += step())
        y[i] = fma(t, b[i] - a[i], a[i]);
}
#endif
