// SPDX-License-Identifier: Apache-2.0
//! op      parts
//! brief   total = x[0] + ... + x[n-1], by one thread
//! arg     n      u64     size
//! arg     x      f32[n]  in
//! arg     total  f32[1]  out
//! variant plain
//! launch  elementwise 1 block=32
//! compare condition 1
//! split   n combine=add
//! source  for tests: each device rounds its part

#ifdef KR_REFERENCE
static void reference(uint64_t n, const float *x, float *total)
{
    double sum = 0;
    for (uint64_t i = 0; i < n; i++)
        sum += x[i];
    *total = (float)sum;
}
#endif

#ifdef KR_VARIANT_plain
extern "C" __global__ void plain(uint64_t n, const float *x, float *total)
{
    float sum = 0;
    if (threadIdx.x == 0) {
        for (uint64_t i = 0; i < n; i++)
            sum += x[i];
        *total = sum;
    }
}
#endif
