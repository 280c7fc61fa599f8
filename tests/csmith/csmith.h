/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What csmith's programs ask of their runtime, for the host's compiler and for NVRTC: arithmetic that is
 * defined for all operands, and a checksum. What is undefined in C gives the first operand here, overflow
 * wraps; both sides must only agree.
 */
#ifndef CSMITH_H
#define CSMITH_H

#ifdef __CUDACC_RTC__
#include <cstdint>
#else
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#endif

static uint32_t crc32_context;

static inline void crc32_gentab(void)
{
    crc32_context = 0xffffffff;
}

static inline void transparent_crc(uint64_t value, const char *, int)
{
    for (int shift = 0; shift < 64; shift += 16)
        crc32_context =
            (crc32_context ^ (uint32_t)(value >> shift & 0xffff)) * 0x9e3779b1u + (crc32_context >> 13);
}

static uint32_t checksum;
static inline void platform_main_begin(void)
{
}
static inline void platform_main_end(uint32_t sum, int)
{
    checksum = sum;
}

/* The program is a struct: NVRTC takes no address of an element as a global variable's initial value, and
 * takes it as a member's. It lies in global memory, and one thread runs it. */
#ifdef __CUDACC_RTC__
#define CSMITH_RUN(program)                                                 \
    __align__(16) static char variables[sizeof(program)];                   \
    extern "C" __global__ void run(uint32_t *ret_checksum, unsigned thread) \
    {                                                                       \
        if (threadIdx.x != thread)                                          \
            return;                                                         \
        (new (variables) program)->main();                                  \
        *ret_checksum = checksum;                                           \
    }
#else
#define CSMITH_RUN(program)         \
    static program variables;       \
    int main(void)                  \
    {                               \
        variables.main();           \
        printf("%08x\n", checksum); \
    }
#endif

/* For one type T: what wraps is done with 64 bits and cut. */
#define SAFE_WRAP(name, T, tail, op)                       \
    static inline T safe_##name##_func_##T##tail(T a, T b) \
    {                                                      \
        return (T)((uint64_t)a op(uint64_t) b);            \
    }
#define SAFE_DIVIDE(name, T, tail, op)                     \
    static inline T safe_##name##_func_##T##tail(T a, T b) \
    {                                                      \
        const bool overflows = (T)-1 < 0 && b == (T)-1;    \
        return b == 0 || overflows ? a : (T)(a op b);      \
    }
#define SAFE_SHIFT(name, T, tail, by, shifted)                          \
    static inline T safe_##name##_func_##T##tail(T a, by b)             \
    {                                                                   \
        return b < 0 || b >= (by)(8 * sizeof a) || a < 0 ? a : shifted; \
    }
#define SAFE(T, sign)                                                   \
    SAFE_WRAP(add, T, _##sign##_##sign, +)                              \
    SAFE_WRAP(sub, T, _##sign##_##sign, -)                              \
    SAFE_WRAP(mul, T, _##sign##_##sign, *)                              \
    SAFE_DIVIDE(div, T, _##sign##_##sign, /)                            \
    SAFE_DIVIDE(mod, T, _##sign##_##sign, %)                            \
    SAFE_SHIFT(lshift, T, _##sign##_s, int, (T)((uint64_t)a << b))      \
    SAFE_SHIFT(lshift, T, _##sign##_u, unsigned, (T)((uint64_t)a << b)) \
    SAFE_SHIFT(rshift, T, _##sign##_s, int, (T)(a >> b))                \
    SAFE_SHIFT(rshift, T, _##sign##_u, unsigned, (T)(a >> b))           \
    static inline T safe_unary_minus_func_##T##_##sign(T a)             \
    {                                                                   \
        return (T)(0 - (uint64_t)a);                                    \
    }

SAFE(int8_t, s)
SAFE(int16_t, s)
SAFE(int32_t, s)
SAFE(int64_t, s)
SAFE(uint8_t, u)
SAFE(uint16_t, u)
SAFE(uint32_t, u)
SAFE(uint64_t, u)

#endif
