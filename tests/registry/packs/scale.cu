// SPDX-License-Identifier: Apache-2.0
//! op      scale
//! brief   y[i] = a * x[i]
//! types   T = f32
//! arg     n  u64   size
//! arg     a  T     in
//! arg     x  T[n]  in
//! arg     y  T[n]  out
//! variant plain
//! launch  elementwise n
//! compare exact
//! source  this test

#include "scale.cuh"

#ifdef KR_VARIANT_plain
extern "C" __global__ void plain(uint64_t n, T a, const T *x, T *y)
{
    for (uint64_t i = first(); i < n; i += step())
        y[i] = a * x[i];
}
#endif
