// SPDX-License-Identifier: Apache-2.0
// Double and single precision functions: long inlined code with constant tables.
extern "C" __global__ void doubles(double *x, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    double v = x[i];
    v = sin(v) + cos(v) * tan(v) + pow(v, 1.7) + exp(v) - log(fabs(v) + 1) + cbrt(v) + tgamma(v) + erf(v);
    v += fmod(v, 3.0) + atan2(v, 2.0) + hypot(v, 1.0) + j0(v) + rint(v) + floor(v) + ceil(v) + trunc(v) + round(v);
    v = fma(v, v, 1 / v) + sqrt(v) + rsqrt(v) + __dmul_rz(v, v) + __ddiv_ru(v, 3.0) + copysign(v, x[0]) + ldexp(v, 3);
    x[i] = isnan(v) || isinf(v) ? fmin(v, 0.0) : fmax(v, 1.0);
}

extern "C" __global__ void singles(float *x, int *y, unsigned long long *z)
{
    const int i = threadIdx.x;
    float v = x[i];
    v = sinf(v) + __sinf(v) + __expf(v) + powf(v, 2.5f) + __logf(v) + tanhf(v) + erfcf(v) + lgammaf(v) + fdividef(v, 3.0f);
    v += __fsqrt_rd(v) + __frcp_rn(v) + __fmaf_rz(v, v, v) + __saturatef(v) + fminf(v, fmaxf(v, 1.0f)) + fabsf(-v) + normcdff(v);
    y[i] = __float2int_rd(v) + __float2int_ru(v) + lrintf(v) + __float_as_int(v) + __float2uint_rz(v) + (short)v + (signed char)v;
    z[i] = __float2ull_rn(v) + (unsigned long long)(long long)v + __double2ll_rz(v);
    x[i] = v + __int2float_rd(y[i]) + __ull2float_rz(z[i]) + (float)(short)y[i] + (float)(unsigned char)y[i];
}

extern "C" __global__ void integers(int *a, unsigned *b, long long *c, unsigned long long *d, short *e, unsigned char *f)
{
    const int i = threadIdx.x;
    a[i] = a[i] / 7 + a[i] % b[i] + __mulhi(a[i], 3) + __mul24(a[i], 5) + min(a[i], 3) + max(a[i], 9) + abs(a[i]) + __sad(a[i], 1, 2u);
    b[i] = b[i] / a[i] + __umulhi(b[i], 3) + __popc(b[i]) + __clz(b[i]) + __ffs(b[i]) + __brev(b[i]) + __byte_perm(b[i], a[i], 0x1234);
    b[i] += __funnelshift_l(b[i], a[i], 5) + __funnelshift_rc(b[i], a[i], i) + __usad(b[i], 2, 3) + __vaddss4(b[i], 5) + __dp4a(a[i], (int)b[i], 1);
    c[i] = c[i] / 13 + c[i] % (a[i] | 1) + __mul64hi(c[i], 77) + (c[i] << i) + (c[i] >> i) + llabs(c[i]);
    d[i] = d[i] * 5 + __popcll(d[i]) + __clzll(d[i]) + __brevll(d[i]) + __umul64hi(d[i], 3) + (d[i] >> i);
    e[i] = e[i] * 3 + (e[i] >> 2) - f[i];
    f[i] = f[i] * 3 + (f[i] >> 2) + (e[i] ^ 5) + (unsigned char)~f[i];
}

extern "C" __global__ void wide(__int128 *a, unsigned __int128 *b)
{
    a[0] = a[1] * a[2] + a[3] / a[4];
    b[0] = b[1] + b[2] - b[3] * b[4];
}
