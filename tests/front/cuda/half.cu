// SPDX-License-Identifier: Apache-2.0
// Sixteen-bit floats, packed arithmetic, matrix instructions.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#if __CUDACC_VER_MAJOR__ >= 13
#define TANH htanh
#else
#define TANH hexp2
#endif

extern "C" __global__ void halves(__half *a, __half2 *b, float *f, int *n)
{
    const int i = threadIdx.x;
    a[i] = __hadd(a[i], a[0]) * a[1] - __hdiv(a[2], a[3]) + hsin(a[4]) + hexp(a[5]) + hsqrt(a[6]) + TANH(a[7]);
    b[i] = __hfma2(b[i], b[1], b[2]) + __hmul2(b[3], h2exp2(b[4])) + __hmin2(b[5], b[6]) + __habs2(b[7]) + __hneg2(b[8]);
    f[i] = __half2float(a[i]) + __low2float(b[i]);
    n[i] = __half2int_rn(a[i]) + __half2short_rz(a[i]) + __hlt(a[0], a[1]) + __hbgt2(b[0], b[1]) + __half_as_short(a[2]);
    a[i + 1] = __float2half_rz(f[1]) + __int2half_rd(n[1]) + __double2half(f[2]);
    atomicAdd(&b[9], b[0]);
    a[9] = __shfl_xor_sync(~0u, a[i], 1);
    a[10] = __hmax_nan(a[1], a[2]);
    a[11] = __hfma_relu(a[1], a[2], a[3]);
}

extern "C" __global__ void bfloats(__nv_bfloat16 *a, __nv_bfloat162 *b, float2 *f)
{
    const int i = threadIdx.x;
    a[i] = __hadd(a[i], a[0]) * a[1];
#if __CUDA_ARCH__ >= 800
    b[i] = __hfma2(b[i], b[1], b[2]);
#endif
    f[i] = __bfloat1622float2(b[i]);
    b[i + 1] = __float22bfloat162_rn(f[1]);
    a[i + 1] = __float2bfloat16(f[2].x) + __hmax(a[3], a[4]);
    a[2] = a[1] < a[0] ? a[4] : hlog(a[5]);
}

extern "C" __global__ void eights(__nv_fp8_e4m3 *a, __nv_fp8x2_e5m2 *b, float2 *f)
{
    a[0] = __nv_fp8_e4m3(f[0].x);
    b[0] = __nv_fp8x2_e5m2(f[1]);
    f[2] = (float2)b[1];
    f[3].x = (float)a[1];
}

extern "C" __global__ void matrices(float *c, const unsigned *g)
{
    __shared__ unsigned tile[256];
    unsigned a[4], b[2];
    float d[4] = {};
    const unsigned at = (unsigned)__cvta_generic_to_shared(&tile[threadIdx.x]);
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.ca.shared.global [%0], [%1], 16; cp.async.commit_group; cp.async.wait_group 0;" ::"r"(at), "l"(g));
#endif
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(a[0]), "=r"(a[1]), "=r"(a[2]), "=r"(a[3]) : "r"(at));
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1}, [%2];" : "=r"(b[0]), "=r"(b[1]) : "r"(at));
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(a[0]), "r"(a[1]), "r"(b[0]));
    c[threadIdx.x] = d[0] + d[1] + d[2] + d[3];
}
