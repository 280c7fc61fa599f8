// SPDX-License-Identifier: Apache-2.0
// Floats of eight, six and four bits; wmma; textures and surfaces; packed integers.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#if __has_include(<cuda_fp4.h>)
#include <cuda_fp4.h>
#include <cuda_fp6.h>
#endif
#include <mma.h>

template <typename T, typename V> __global__ void converts(T *t, float *f, double *d, __half *h, __nv_bfloat16 *b, int *n)
{
    t[0] = T(f[0]);
    t[1] = T(d[0]);
    t[2] = T(h[0]);
    t[3] = T(b[0]);
    f[1] = (float)t[4];
    h[1] = (__half)t[5];
    b[1] = (__nv_bfloat16)t[6];
    V *v = (V *)(t + 16);
    v[0] = V(*(float2 *)(f + 2));
    v[1] = V(*(__half2 *)(h + 2));
    v[2] = V(*(__nv_bfloat162 *)(b + 2));
    *(float2 *)(f + 4) = (float2)v[3];
    *(__half2 *)(h + 4) = (__half2)v[4];
}
#define CONVERTS(T, V) template __global__ void converts<T, V>(T *, float *, double *, __half *, __nv_bfloat16 *, int *);
CONVERTS(__nv_fp8_e4m3, __nv_fp8x2_e4m3)
CONVERTS(__nv_fp8_e5m2, __nv_fp8x2_e5m2)
#if __has_include(<cuda_fp4.h>)
CONVERTS(__nv_fp6_e2m3, __nv_fp6x2_e2m3)
CONVERTS(__nv_fp6_e3m2, __nv_fp6x2_e3m2)
CONVERTS(__nv_fp4_e2m1, __nv_fp4x2_e2m1)
__global__ void scales(__nv_fp8_e8m0 *s, float *f, __nv_bfloat162 *b)
{
    s[0] = __nv_fp8_e8m0(f[0]);
    f[1] = (float)s[1];
    b[0] = (__nv_bfloat162)((__nv_fp8x2_e8m0 *)s)[1];
}
#endif

using namespace nvcuda;
template <typename A, typename C, int M, int N, int K> __global__ void tiles(const A *a, const A *b, C *c)
{
    wmma::fragment<wmma::matrix_a, M, N, K, A, wmma::row_major> fa;
    wmma::fragment<wmma::matrix_b, M, N, K, A, wmma::col_major> fb;
    wmma::fragment<wmma::accumulator, M, N, K, C> fc;
    wmma::load_matrix_sync(fa, a, K);
    wmma::load_matrix_sync(fb, b, K);
    wmma::fill_fragment(fc, C(0));
    wmma::mma_sync(fc, fa, fb, fc);
    wmma::store_matrix_sync(c, fc, N, wmma::mem_row_major);
}
#define TILES(A, C, M, N, K) template __global__ void tiles<A, C, M, N, K>(const A *, const A *, C *);
TILES(__half, float, 16, 16, 16)
TILES(__half, __half, 8, 32, 16)
TILES(signed char, int, 16, 16, 16)
TILES(unsigned char, int, 32, 8, 16)
#if __CUDA_ARCH__ >= 800 || !defined __CUDA_ARCH__
TILES(__nv_bfloat16, float, 16, 16, 16)
TILES(double, double, 8, 8, 4)
#endif

__global__ void pictures(cudaTextureObject_t t, cudaSurfaceObject_t s, float4 *f, uint2 *u, int x)
{
    f[0] = tex1D<float4>(t, 1.5f);
    f[1] = tex2DLod<float4>(t, 1.5f, 2.5f, 3.f);
    f[2] = tex3DGrad<float4>(t, 1.f, 2.f, 3.f, f[3], f[4]);
    f[3] = tex2DLayered<float4>(t, 1.f, 2.f, x);
    f[4] = texCubemapLayered<float4>(t, 1.f, 2.f, 3.f, x);
    f[5] = tex2Dgather<float4>(t, 1.f, 2.f, 2);
    f[6].x = tex1Dfetch<float>(t, x);
    surf2Dread(&u[0], s, x * 8, 3);
    surf1Dwrite(u[1], s, x * 8, cudaBoundaryModeZero);
    surf3Dwrite(u[2], s, x * 8, 1, 2, cudaBoundaryModeClamp);
    surf2DLayeredread(&u[3], s, x, 1, 2);
}

__global__ void packed(unsigned *a, int *b, long long *c)
{
    a[0] = __vadd4(a[1], a[2]) + __vabsdiffs2(a[1], a[2]) + __vcmpgtu4(a[1], a[2]) + __vmaxs2(a[1], a[2]) + __vsads4(a[1], a[2]);
    b[0] = __dp4a(b[1], b[2], b[3]) + __dp2a_lo(b[1], b[2], b[3]);
#if __CUDACC_VER_MAJOR__ >= 12
    b[0] += __viaddmax_s32_relu(b[1], b[2], b[3]) + __vimin3_s16x2(b[1], b[2], b[3]);
#endif
    c[0] = __mul64hi(c[1], c[2]) + __brevll(c[3]) + __popcll(c[4]) + __ffsll(c[5]) + __clzll(c[6]) + __funnelshift_lc(a[1], a[2], a[3]);
    a[3] = __byte_perm(a[1], a[2], 0x3254) + __usad(a[1], a[2], a[3]) + __fns(a[1], 2, 3) + __umulhi(a[1], a[2]) + __uhadd(a[4], a[5]);
}
