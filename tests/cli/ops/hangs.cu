// SPDX-License-Identifier: Apache-2.0
//! op      hangs
//! brief   y[i] = 0, after a wait for a word that nobody writes
//! arg     n  u64     size
//! arg     y  f32[n]  out
//! variant waits
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

#ifdef KR_VARIANT_waits
extern "C" __global__ void waits(uint64_t n, float *y)
{
    if (n > 0)
        y[0] = 0;
    while (n > 0 && *(volatile float *)y == 0)
        ;
}
#endif
