// SPDX-License-Identifier: Apache-2.0
#pragma once
// A sum over the whole grid in one launch, as if computed exactly and rounded at the end. The terms are T's.
// Each block leaves its part in `partials` (2 a block); the last to come adds them in their order, so the
// result depends on the terms and the grid alone. `partials` and `arrived` are zeros before and after.

// A sum and, where T is f64, what rounding took from it.
struct Wide {
    double high, low;
};

static __device__ Wide plus(Wide a, double x)
{
    Wide s = {a.high + x, a.low};
    if (sizeof(T) == sizeof(double)) { // f32 terms leave a double 29 bits to spare
        double part = s.high - a.high;
        s.low += (a.high - (s.high - part)) + (x - part);
    }
    return s;
}

static __device__ Wide plus(Wide a, Wide b)
{
    Wide s = plus(a, b.high);
    s.low += b.low;
    return s;
}

static __device__ T rounded(Wide s)
{
    bool finite = s.high - s.high == 0;
    return (T)(finite ? s.high + s.low : s.high);
}

static __device__ Wide warp_sum(Wide s)
{
    for (int distance = 16; distance > 0; distance /= 2) {
        Wide other = {__shfl_down_sync(0xffffffff, s.high, distance),
                      __shfl_down_sync(0xffffffff, s.low, distance)};
        s = plus(s, other);
    }
    return s;
}

// The result is thread 0's.
static __device__ Wide block_sum(Wide s)
{
    __shared__ Wide warps[32];
    unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    s = warp_sum(s);
    if (lane == 0)
        warps[warp] = s;
    __syncthreads();
    if (warp == 0)
        s = warp_sum(lane < blockDim.x / 32 ? warps[lane] : Wide{0, 0});
    __syncthreads(); // warps is used again
    return s;
}

// Each block leaves its sum in partials; the last one to come adds them, in their order, and clears the
// scratch.
static __device__ void finish(Wide s, T *total, double *partials, uint32_t *arrived)
{
    __shared__ bool last;
    s = block_sum(s);
    if (threadIdx.x == 0) {
        partials[2 * (uint64_t)blockIdx.x] = s.high;
        partials[2 * (uint64_t)blockIdx.x + 1] = s.low;
        __threadfence();
        last = atomicInc(arrived, gridDim.x - 1) == gridDim.x - 1; // which wraps arrived to 0
        __threadfence();
    }
    __syncthreads();
    if (!last)
        return;
    s = Wide{0, 0};
    for (uint64_t i = threadIdx.x; i < gridDim.x; i += blockDim.x) {
        s = plus(s, Wide{__ldcg(&partials[2 * i]), __ldcg(&partials[2 * i + 1])});
        partials[2 * i] = partials[2 * i + 1] = 0;
    }
    s = block_sum(s);
    if (threadIdx.x == 0)
        *total = rounded(s);
}
