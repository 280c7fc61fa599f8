// SPDX-License-Identifier: Apache-2.0
//! op      work_sum
//! brief   y[0] = x[0] + ... + x[n-1], by way of scratch
//! arg     n     u32        size
//! arg     x     u32[n]     in
//! arg     y     u32[1]     out
//! arg     part  u32[grid]  work
//! arg     done  u32[1]     work
//! variant atomic
//! launch  elementwise n block=64 waves=2
//! compare exact
//! split   n combine=add
//! source  this test

#ifdef KR_REFERENCE
static void reference(uint32_t n, const uint32_t *x, uint32_t *y, uint32_t *part, uint32_t *done)
{
    (void)part, (void)done;
    y[0] = 0;
    for (uint32_t i = 0; i < n; i++)
        y[0] += x[i];
}
#endif

#ifdef KR_VARIANT_atomic
// The last block to arrive adds up what each has left, and leaves the scratch zeroed.
extern "C" __global__ void atomic(uint32_t n, const uint32_t *x, uint32_t *y, uint32_t *part, uint32_t *done)
{
    for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        atomicAdd(&part[blockIdx.x], x[i]);
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0 && atomicAdd(done, 1u) == gridDim.x - 1) {
        uint32_t sum = 0;
        for (uint32_t b = 0; b < gridDim.x; b++)
            sum += atomicExch(&part[b], 0u);
        y[0] = sum;
        atomicExch(done, 0u);
    }
}
#endif
