// SPDX-License-Identifier: Apache-2.0
//! op      dirty_scratch
//! brief   total = n
//! arg     n      u64     size
//! arg     total  u64[1]  out
//! arg     count  u64[1]  work
//! variant broken
//! launch  elementwise 1 block=32
//! compare exact
//! source  broken on purpose

// The scratch keeps the last launch's count.

#ifdef KR_REFERENCE
static void reference(uint64_t n, uint64_t *total, uint64_t *count)
{
    (void)count;
    *total = n;
}
#endif

#ifdef KR_VARIANT_broken
extern "C" __global__ void broken(uint64_t n, uint64_t *total, uint64_t *count)
{
    if (blockIdx.x == 0 && threadIdx.x == 0)
        *total = *count += n;
}
#endif
