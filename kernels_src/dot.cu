// SPDX-License-Identifier: Apache-2.0
//! op      dot
//! brief   total = x[0] * y[0] + ... + x[n-1] * y[n-1]
//! types   T = f32 f64
//! arg     n         u64          size
//! arg     x         T[n]         in
//! arg     y         T[n]         in
//! arg     total     T[1]         out
//! arg     partials  f64[2*grid]  work
//! arg     arrived   u32[1]       work
//! variant grid  cc>=5.0
//! variant vec4  cc>=5.0 align=16
//! launch  elementwise n block=256 waves=4
//! launch  vec4: elementwise n per_thread=4 block=256 waves=4
//! compare condition 1
//! cost    bytes=2*sizeof(T)*n flops=2*n
//! split   n combine=add
//! source  BLAS level 1, DOT

// Accurate as if computed exactly and rounded at the end: f32 multiplies and adds in f64, f64 keeps the
// rounding errors of both aside. The order depends on n and the grid alone, so a device gives the same bits
// each time. The empty product is +0.

#ifdef KR_REFERENCE
static void reference(uint64_t n, const T *x, const T *y, T *total, double *partials, uint32_t *arrived)
{
    (void)partials, (void)arrived;
    long double sum = 0;
    for (uint64_t i = 0; i < n; i++)
        sum += (long double)x[i] * y[i];
    *total = (T)sum;
}
#endif

#ifndef KR_REFERENCE
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

static __device__ Wide plus_product(Wide s, double x, double y)
{
    double product = x * y;
    s = plus(s, product);
    if (sizeof(T) == sizeof(double)) // the product of two f32 is exact in f64
        s.low += fma(x, y, -product);
    return s;
}
#endif

#ifdef KR_VARIANT_grid
extern "C" __global__ void grid(uint64_t n, const T *x, const T *y, T *total, double *partials,
                                uint32_t *arrived)
{
    uint64_t stride = (uint64_t)gridDim.x * blockDim.x;
    Wide s = {0, 0};
    for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride)
        s = plus_product(s, x[i], y[i]);
    finish(s, total, partials, arrived);
}
#endif

#ifdef KR_VARIANT_vec4
struct alignas(16) Vec4 {
    T v[4];
};

extern "C" __global__ void vec4(uint64_t n, const T *x, const T *y, T *total, double *partials,
                                uint32_t *arrived)
{
    uint64_t first = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
    uint64_t stride = (uint64_t)gridDim.x * blockDim.x;
    const Vec4 *x4 = reinterpret_cast<const Vec4 *>(x);
    const Vec4 *y4 = reinterpret_cast<const Vec4 *>(y);
    Wide s = {0, 0};
    for (uint64_t i = first; i < n / 4; i += stride) {
        Vec4 p = x4[i], q = y4[i];
        for (int j = 0; j < 4; j++)
            s = plus_product(s, p.v[j], q.v[j]);
    }
    for (uint64_t i = n / 4 * 4 + first; i < n; i += stride)
        s = plus_product(s, x[i], y[i]);
    finish(s, total, partials, arrived);
}
#endif
