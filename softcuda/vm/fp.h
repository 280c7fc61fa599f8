/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SC_FP_H
#define SC_FP_H

/*
 * Floating point as PTX defines it, on a host that does IEEE 754.
 *
 * Rounding modes and .ftz are the host's own: every floating-point instruction carries the MXCSR it wants
 * (rounding, flush to zero, denormals are zero) and sets it when it is not in force.
 */

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#ifdef __x86_64__
#include <xmmintrin.h>
#else
#error "the machine sets rounding and flushing through MXCSR: x86-64 only"
#endif

enum { SC_CSR_RN = 0x1f80, SC_CSR_RM = 0x3f80, SC_CSR_RP = 0x5f80, SC_CSR_RZ = 0x7f80, SC_CSR_FTZ = 0x8040 };

/* Nothing that computes may move across the change: memory is where its inputs and results are. */
static inline void sc_set_csr(uint32_t *in_force, uint32_t wanted)
{
    if (*in_force != wanted) {
        *in_force = wanted;
        _mm_setcsr(wanted);
        __asm__ volatile("" ::: "memory");
    }
}

static inline uint32_t sc_bits32(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline float sc_float(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline uint64_t sc_bits64(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline double sc_double(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* The NaN every single-precision operation gives. Double precision passes the first NaN operand on, or gives
 * the negative quiet NaN: what the host does too. (Both as an H200 does it, tests/vm/forms.tsv.) */
static inline float sc_nan32(float x)
{
    return x != x ? __builtin_nanf("0x3fffff") : x;
}

static inline double sc_nan64(double x)
{
    return x;
}

static inline float sc_sat32(float x)
{
    return x > 0.0f ? (x < 1.0f ? x : 1.0f) : 0.0f;
}

static inline double sc_sat64(double x)
{
    return x > 0.0 ? (x < 1.0 ? x : 1.0) : 0.0;
}

/* For operations the host's flushing does not reach: `ftz` is the instruction's MXCSR. */
static inline float sc_flush32(float x, uint32_t csr)
{
    uint32_t bits = sc_bits32(x);
    return (csr & SC_CSR_FTZ) && (bits & 0x7f800000) == 0 ? sc_float(bits & 0x80000000) : x;
}

/* IEEE 754 minNum and maxNum, -0 below +0. */
#define SC_MIN_MAX(name, type, bits_type, bits_of, of_bits, less, join, canon) \
    static inline type name(type a, type b)                                    \
    {                                                                          \
        type r = a less b ? a : b;                                             \
        r = a == b ? of_bits((bits_type)(bits_of(a) join bits_of(b))) : r;     \
        r = b != b ? a : r;                                                    \
        r = a != a ? b : r;                                                    \
        return canon(r);                                                       \
    }
SC_MIN_MAX(sc_min32, float, uint32_t, sc_bits32, sc_float, <, |, sc_nan32)
SC_MIN_MAX(sc_max32, float, uint32_t, sc_bits32, sc_float, >, &, sc_nan32)
SC_MIN_MAX(sc_min64, double, uint64_t, sc_bits64, sc_double, <, |, sc_nan64)
SC_MIN_MAX(sc_max64, double, uint64_t, sc_bits64, sc_double, >, &, sc_nan64)

static inline float sc_or_nan32(float r, float a, float b) /* .NaN: a NaN wins */
{
    return a != a || b != b ? __builtin_nanf("0x3fffff") : r;
}

/* .xorsign.abs: of the magnitudes; the sign is the exclusive or of the signs. */
static inline float sc_xorsign(float choose(float, float), float a, float b)
{
    float r = choose(sc_float(sc_bits32(a) & INT32_MAX), sc_float(sc_bits32(b) & INT32_MAX));
    return r != r ? r : sc_float(sc_bits32(r) | ((sc_bits32(a) ^ sc_bits32(b)) & 0x80000000u));
}

static inline double sc_relu(double x)
{
    return x <= 0 ? 0 : x;
}

/* ---- half and bfloat16: bits in the low 16 of an integer ---- */

enum { SC_ROUNDING = 0x6000 }; /* the MXCSR's two bits */

/* The magnitude of a finite x with `mantissa` explicit bits and `exponent` exponent bits, rounded as the
 * MXCSR value says; exponents beyond the format go on counting. */
static inline uint64_t sc_round_magnitude(double x, unsigned mantissa, unsigned exponent, uint32_t csr)
{
    const uint64_t bits = sc_bits64(x) & INT64_MAX;
    const bool negative = signbit(x);
    const int bias = (1 << (exponent - 1)) - 1;
    const int e = (int)(bits >> 52) - 1023 + bias; /* biased in the narrow format */
    uint64_t whole = bits >> 52 ? (bits & ((1ull << 52) - 1)) | 1ull << 52 : bits != 0;
    int shift = 52 - (int)mantissa + (e < 1 ? 1 - e : 0);
    if (shift > 62) { /* far below the smallest: only that it is not zero counts */
        shift = 62;
        whole = whole != 0;
    }
    uint64_t kept = whole >> shift;
    const uint64_t rest = whole & ((1ull << shift) - 1), half = 1ull << (shift - 1);
    switch (csr & SC_ROUNDING) {
    case SC_CSR_RN &SC_ROUNDING:
        kept += rest > half || (rest == half && (kept & 1));
        break;
    case SC_CSR_RM &SC_ROUNDING:
        kept += rest && negative;
        break;
    case SC_CSR_RP &SC_ROUNDING:
        kept += rest && !negative;
        break;
    default:
        break;
    }
    /* The hidden bit, if there, adds one to the exponent field. */
    return kept + ((uint64_t)(e < 1 ? 0 : e - 1) << mantissa);
}

/* x in an IEEE format; a NaN has all bits but the sign set. */
static inline uint32_t sc_narrow(double x, unsigned mantissa, unsigned exponent, uint32_t csr)
{
    const uint32_t sign = (uint32_t)signbit(x) << (mantissa + exponent), mode = csr & SC_ROUNDING;
    const uint32_t infinity = ((1u << exponent) - 1) << mantissa;
    if (x != x)
        return (1u << (mantissa + exponent)) - 1;
    if (isinf(x))
        return sign | infinity;
    const uint64_t magnitude = sc_round_magnitude(x, mantissa, exponent, csr);
    if (magnitude < infinity)
        return sign | (uint32_t)magnitude;
    const bool to_infinity = mode == (SC_CSR_RN & SC_ROUNDING) ||
                             (mode == (SC_CSR_RM & SC_ROUNDING) && sign) ||
                             (mode == (SC_CSR_RP & SC_ROUNDING) && !sign);
    return sign | (to_infinity ? infinity : infinity - 1);
}

/* The 8-bit formats: e4m3 (no infinity, largest 0x7e) and e5m2 (largest 0x7b). .satfinite: never beyond the
 * largest. */
static inline uint8_t sc_to_fp8(double x, unsigned mantissa, uint8_t largest)
{
    if (x != x)
        return 0x7f;
    const uint64_t magnitude = isinf(x) ? largest : sc_round_magnitude(x, mantissa, 7 - mantissa, SC_CSR_RN);
    return (uint8_t)((unsigned)signbit(x) << 7 | (magnitude < largest ? magnitude : largest));
}

static inline uint16_t sc_half_of_e4m3(uint8_t b)
{
    const uint32_t sign = (uint32_t)(b & 0x80) << 8, magnitude = b & 0x7f;
    if (magnitude == 0x7f)
        return 0x7fff;
    if (magnitude >= 8)
        return (uint16_t)(sign | ((magnitude << 7) + (8u << 10)));
    return (uint16_t)(sign | (sc_narrow(magnitude * 0x1p-9, 10, 5, SC_CSR_RN)));
}

static inline uint16_t sc_half_of_e5m2(uint8_t b)
{
    return (b & 0x7f) > 0x7c ? 0x7fff : (uint16_t)(b << 8);
}

static inline uint16_t sc_flush16(uint16_t h, uint32_t csr)
{
    return (csr & SC_CSR_FTZ) && (h & 0x7c00) == 0 ? h & 0x8000 : h;
}

/* A half's .ftz looks at the result as if its exponent had no bound: the last term is what rounds up to
 * 2^-14. */
static inline double sc_flush_below_half(double x, uint32_t csr)
{
    return (csr & SC_CSR_FTZ) && fabs(x) < 0x1p-14 - 0x1p-26 ? copysign(0, x) : x;
}

static inline uint16_t sc_to_half(double x, uint32_t csr)
{
    return (uint16_t)sc_narrow(x, 10, 5, csr);
}

static inline uint16_t sc_to_bfloat(double x, uint32_t csr)
{
    return (uint16_t)sc_narrow(x, 7, 8, csr);
}

static inline float sc_from_half(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000) << 16, magnitude = h & 0x7fff;
    if (magnitude >= 0x7c00)
        return sc_float(sign | 0x7f800000 | (magnitude & 0x3ff) << 13);
    if (magnitude >= 0x400)
        return sc_float(sign | ((magnitude << 13) + (112u << 23)));
    return sc_float(sign | sc_bits32((float)magnitude * 0x1p-24f));
}

static inline float sc_from_bfloat(uint16_t b)
{
    return sc_float((uint32_t)b << 16);
}

/* a * b + c rounded to odd: a narrower rounding after it is then as if there had been only one. */
static inline double sc_fma_odd(double a, double b, double c)
{
    double product = a * b, sum = product + c; /* of narrow factors: the product is exact */
    double back = sum - product, error = (product - (sum - back)) + (c - back);
    if (error != 0 && isfinite(sum)) {
        uint64_t bits = sc_bits64(sum);
        if (!(bits & 1)) {
            bool away = (error > 0) == (sum > 0);
            bits = away ? bits + 1 : bits - 1;
            sum = sc_double(bits);
        }
    }
    return sum;
}

#endif
