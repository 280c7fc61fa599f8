// SPDX-License-Identifier: Apache-2.0
// Functions: calls, recursion, function pointers, virtual functions, switches, printf, assert, malloc.
#include <assert.h>
#include <stdio.h>

struct pair { int a; double b; char c[7]; };

__device__ __noinline__ pair swap(pair p, float x)
{
    p.a += x;
    p.c[2] = p.a;
    return p;
}
__device__ __noinline__ int fib(int n)
{
    return n < 2 ? n : fib(n - 1) + fib(n - 2);
}
__device__ __noinline__ char narrow(char a, short b, unsigned char c)
{
    return a + b * c;
}
typedef int (*unary)(int);
__device__ int twice(int x) { return x * 2; }
__device__ int square(int x) { return x * x; }
__device__ unary table[3] = {twice, square, fib};

struct shape { __device__ virtual float area() const = 0; float w; };
struct box : shape { __device__ float area() const override { return w * w; } };
struct disc : shape { __device__ float area() const override { return 3.14f * w * w; } };

extern "C" __device__ int elsewhere(int, const void *);

extern "C" __global__ void calls(pair *p, int *x, unary f)
{
    p[0] = swap(p[1], 2.0f);
    x[0] = fib(x[1]) + table[x[2] & 1](x[3]) + f(x[4]) + narrow(x[5], x[6], x[7]);
    box b;
    disc d;
    b.w = x[5];
    d.w = x[6];
    const shape *s = x[7] ? (const shape *)&b : (const shape *)&d;
    x[8] = s->area();
}

extern "C" __global__ void switches(int *x)
{
    switch (x[0]) {
    case 0: x[1] = 5; break;
    case 1: x[2] = 7; break;
    case 2: x[3] = 8; x[9] = 1; break;
    case 3: x[4]++; break;
    case 4: x[5] *= x[6]; break;
    case 5: x[6] = x[7] / x[8]; break;
    case 6: x[7] -= 3; break;
    case 7: __threadfence(); break;
    default: x[8] = 2;
    }
    asm volatile("{ .reg .b32 t; .reg .pred q; setp.ne.s32 q, %1, 0; @q bra L; mov.b32 t, %1; add.s32 %0, t, 1; L: }"
                 : "=r"(x[10]) : "r"(x[11]));
    for (int i = 0; i < x[0]; i++)
        x[i] = x[x[i]] + i;
}

extern "C" __global__ void output(int n, const char *name, double v)
{
    printf("%d %s %f\n", n, name, v);
    assert(n > 3);
    int *heap = (int *)malloc(n);
    heap[0] = 1;
    free(heap);
    if (n == 77)
        __trap();
    if (n == 78)
        asm("exit;");
}
