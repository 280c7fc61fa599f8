// SPDX-License-Identifier: Apache-2.0
//! op      bad
//! brief   y[i] = 0, at an address that nobody has
//! arg     n  u64     sizes
//! arg     y  f31[n]  out
//! variant wild
//! launch  elementwise n
//! compare exact
//! source  broken on purpose

#ifdef KR_REFERENCE
static void reference(uint64_t n, float *y)
{
    for (uint64_t i = 0; i < n; i++)
        y[i] = 0;
}
#endif

#ifdef KR_VARIANT_wild
extern "C" __global__ void wild(uint64_t n, float *y)
{
    (void)y;
    if (n > 0)
        *(volatile float *)16 = 0;
}
#endif
