// SPDX-License-Identifier: Apache-2.0
//! op      invert
//! brief   y[i] = ~x[i]
//! arg     n  u64     size
//! arg     x  u32[n]  in
//! arg     y  u32[n]  out
//! variant plain
//! variant late  cc>=9.0
//! launch  elementwise n
//! compare exact
//! source  this test

#include "scale.cuh"

#ifdef KR_VARIANT_plain
extern "C" __global__ void plain(uint64_t n, const uint32_t *x, uint32_t *y)
#else
extern "C" __global__ void late(uint64_t n, const uint32_t *x, uint32_t *y)
#endif
{
    for (uint64_t i = first(); i < n; i += step())
        y[i] = ~x[i];
}
