// SPDX-License-Identifier: Apache-2.0
//! op      serial_sum
//! brief   total = x[0] + ... + x[n-1]
//! arg     n      u64     size
//! arg     x      f32[n]  in
//! arg     total  f32[1]  out
//! variant broken
//! launch  elementwise 1
//! compare condition 1
//! source  broken on purpose

// One after the other in f32: the error grows with n.

#ifdef KR_REFERENCE
static void reference(uint64_t n, const float *x, float *total)
{
    double sum = 0;
    for (uint64_t i = 0; i < n; i++)
        sum += x[i];
    *total = (float)sum;
}
#endif

#ifdef KR_VARIANT_broken
extern "C" __global__ void broken(uint64_t n, const float *x, float *total)
{
    float sum = 0;
    if (blockIdx.x > 0 || threadIdx.x > 0)
        return;
    for (uint64_t i = 0; i < n; i++)
        sum += x[i];
    *total = sum;
}
#endif
