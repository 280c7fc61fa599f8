// SPDX-License-Identifier: Apache-2.0
// CUB: of a warp, a block, a device.
#include <cub/cub.cuh>

template <typename T, int N> __global__ void blocks(const T *in, T *out, int n)
{
    using load = cub::BlockLoad<T, N, 4, cub::BLOCK_LOAD_TRANSPOSE>;
    using store = cub::BlockStore<T, N, 4, cub::BLOCK_STORE_WARP_TRANSPOSE>;
    using sort = cub::BlockRadixSort<T, N, 4>;
    using scan = cub::BlockScan<T, N>;
    using sum = cub::BlockReduce<T, N, cub::BLOCK_REDUCE_WARP_REDUCTIONS>;
    using bins = cub::BlockHistogram<unsigned char, N, 4, 256>;
    using runs = cub::BlockDiscontinuity<T, N>;
    using moved = cub::BlockExchange<T, N, 4>;
    __shared__ union {
        typename load::TempStorage load;
        typename store::TempStorage store;
        typename sort::TempStorage sort;
        typename scan::TempStorage scan;
        typename sum::TempStorage sum;
        typename bins::TempStorage bins;
        typename runs::TempStorage runs;
        typename moved::TempStorage moved;
    } t;
    __shared__ int count[256];
    T v[4];
    int head[4];
    unsigned char digit[4];
    load(t.load).Load(in, v, n, T());
    __syncthreads();
    sort(t.sort).SortDescending(v);
    __syncthreads();
    scan(t.scan).InclusiveSum(v, v);
    __syncthreads();
    runs(t.runs).FlagHeads(head, v, [](T x, T y) { return x != y; });
    __syncthreads();
    moved(t.moved).StripedToBlocked(v, v);
    __syncthreads();
    for (int i = 0; i < 4; i++)
        digit[i] = (unsigned char)head[i];
    bins(t.bins).Histogram(digit, count);
    __syncthreads();
    const T all = sum(t.sum).Sum(v);
    __syncthreads();
    for (int i = 0; i < 4; i++)
        v[i] += all + (T)count[i];
    store(t.store).Store(out, v, n);
}
template __global__ void blocks<int, 128>(const int *, int *, int);
template __global__ void blocks<float, 64>(const float *, float *, int);
template __global__ void blocks<unsigned long long, 32>(const unsigned long long *, unsigned long long *, int);

template <typename T> __global__ void warps(T *a)
{
    __shared__ union {
        typename cub::WarpReduce<T>::TempStorage reduce;
        typename cub::WarpScan<T>::TempStorage scan;
        typename cub::WarpMergeSort<T, 4, 32>::TempStorage sort;
    } t;
    T v[4] = {a[0], a[1], a[threadIdx.x], a[3]};
    v[0] = cub::WarpReduce<T>(t.reduce).Reduce(v[0], [](T x, T y) { return x > y ? x : y; });
    __syncwarp();
    cub::WarpScan<T>(t.scan).ExclusiveSum(v[1], v[1]);
    __syncwarp();
    cub::WarpMergeSort<T, 4, 32>(t.sort).Sort(v, [](T x, T y) { return x < y; });
    for (int i = 0; i < 4; i++)
        a[threadIdx.x * 4 + i] = v[i];
}
template __global__ void warps<short>(short *);
template __global__ void warps<double>(double *);

// The device's own kernels: what they are made of is compiled where they are called.
void device(int *keys, float *values, int n, void *memory, size_t bytes)
{
    cub::DeviceRadixSort::SortPairs(memory, bytes, keys, keys + n, values, values + n, n);
    cub::DeviceScan::InclusiveSum(memory, bytes, keys, keys + n, n);
    cub::DeviceReduce::Sum(memory, bytes, values, values + n, n);
    cub::DeviceSelect::Unique(memory, bytes, keys, keys + n, keys + 2 * n, n);
}
