// SPDX-License-Identifier: Apache-2.0
// cuRAND's device functions.
#include <curand_kernel.h>

template <typename S> __global__ void numbers(S *states, float *f, double *d, unsigned *u)
{
    S state = states[threadIdx.x];
    f[0] = curand_uniform(&state) + curand_normal(&state) + curand_log_normal(&state, 1.f, 2.f);
    d[0] = curand_uniform_double(&state) + curand_normal_double(&state);
    u[0] = curand(&state) + curand_poisson(&state, 3.5);
    states[threadIdx.x] = state;
}
template __global__ void numbers(curandStateXORWOW_t *, float *, double *, unsigned *);
template __global__ void numbers(curandStatePhilox4_32_10_t *, float *, double *, unsigned *);
template __global__ void numbers(curandStateMRG32k3a_t *, float *, double *, unsigned *);
template __global__ void numbers(curandStateSobol32_t *, float *, double *, unsigned *);

__global__ void begin(curandStateXORWOW_t *a, curandStatePhilox4_32_10_t *b, curandStateMRG32k3a_t *c)
{
    curand_init(1234, threadIdx.x, 0, a);
    curand_init(1234, threadIdx.x, 5, b);
    curand_init(1234, threadIdx.x, 7, c);
}
