/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SC_ALU_H
#define SC_ALU_H

/* What a lane computes, where it is more than an expression; and predicates. */

#include "softcuda/vm/fp.h"
#include "softcuda/vm/machine.h"

/* Two slots are the same bytes or have none in common, so no lane depends on another's store. */
#ifdef __clang__
#define LANES _Pragma("clang loop vectorize(assume_safety)") for (unsigned i = 0; i < SC_LANES; i++)
#else
#define LANES _Pragma("GCC ivdep") for (unsigned i = 0; i < SC_LANES; i++)
#endif

/* 1 << i in lane i. */
typedef struct sc_lane_bits {
    uint32_t u32[SC_LANES] __attribute__((aligned(64)));
    uint64_t u64[SC_LANES] __attribute__((aligned(64)));
} sc_lane_bits;
extern const sc_lane_bits sc__bit_of_lane;

static inline uint32_t sc_predicate(const sc_warp *warp, sc_slot slot)
{
    uint32_t lanes = *(const uint32_t *)(warp->bank[slot & 1] + (slot & ~3u));
    return slot & SC_NEGATED ? ~lanes : lanes;
}

static inline void sc_set_predicate(sc_warp *warp, sc_slot slot, uint32_t lanes)
{
    uint32_t *at = (uint32_t *)(warp->bank[SC_BANK_FRAME] + (slot & ~3u));
    *at = (*at & ~warp->mask) | (lanes & warp->mask);
}

/* setp's results: d, and e where there is a second; c and imm (a ptx_bool) join a further predicate. */
static inline void sc_set_predicates(sc_warp *warp, const sc_code *in, uint32_t lanes)
{
    uint32_t first = lanes, second = ~lanes;
    if (in->imm != PTX_BOOL_NONE) {
        uint32_t further = sc_predicate(warp, in->c);
        first = in->imm == PTX_AND ? first & further : in->imm == PTX_OR ? first | further : first ^ further;
        second = in->imm == PTX_AND  ? second & further
                 : in->imm == PTX_OR ? second | further
                                     : second ^ further;
    }
    sc_set_predicate(warp, in->d, first);
    if (in->e != SC_NO_SLOT)
        sc_set_predicate(warp, in->e, second);
}

/* The signed type as wide. */
typedef unsigned __int128 sc_u128;
#define S_uint64_t int64_t
#define S_sc_u128 __int128

static inline __int128 clamp(__int128 a, __int128 low, __int128 high)
{
    return a < low ? low : a > high ? high : a;
}

static inline int32_t clamp_s32(int64_t a)
{
    return a > INT32_MAX ? INT32_MAX : a < INT32_MIN ? INT32_MIN : (int32_t)a;
}

static inline uint32_t lop3(uint32_t a, uint32_t b, uint32_t c, uint32_t table)
{
    uint32_t r = 0;
    for (unsigned k = 0; k < 8; k++)
        r |= table >> k & 1 ? (k & 4 ? a : ~a) & (k & 2 ? b : ~b) & (k & 1 ? c : ~c) : 0;
    return r;
}

/* The upper half of b:a shifted left, the lower half of b:a shifted right. */
static inline uint32_t funnel_left(uint32_t a, uint32_t b, uint32_t n)
{
    return (uint32_t)(((uint64_t)b << 32 | a) << (n & 31) >> 32);
}

static inline uint32_t funnel_right(uint32_t a, uint32_t b, uint32_t n)
{
    return (uint32_t)(((uint64_t)b << 32 | a) >> (n & 31));
}

static inline uint32_t selectors(uint32_t c)
{
    return c & 0xffff;
}

static inline uint32_t permute(uint32_t a, uint32_t b, uint32_t selector)
{
    uint64_t bytes = (uint64_t)b << 32 | a;
    uint32_t r = 0;
    for (unsigned k = 0; k < 4; k++) {
        uint32_t s = selector >> 4 * k & 15, byte = (uint32_t)(bytes >> 8 * (s & 7)) & 0xff;
        if (s & 8)
            byte = byte & 0x80 ? 0xff : 0;
        r |= byte << 8 * k;
    }
    return r;
}

/* Position or length of a bit field: 8 bits of it count; hardware takes all of it where the field has 64. */
static inline unsigned field(uint32_t x, unsigned width)
{
    return width == 32 ? x & 0xff : x > 0xff ? 0xff : x;
}

static inline uint64_t extract(uint64_t a, uint32_t b, uint32_t c, unsigned width, bool is_signed)
{
    unsigned position = field(b, width), length = field(c, width);
    if (length == 0)
        return 0;
    if (is_signed && width == 32)
        a = (uint64_t)(int64_t)(int32_t)a;
    unsigned top = position + length - 1 < width - 1 ? position + length - 1 : width - 1;
    uint64_t sign = is_signed && (a >> top & 1) ? ~0ull : 0;
    uint64_t bits = position >= width ? sign : a >> position;
    unsigned kept = position >= width ? 0 : top - position + 1;
    uint64_t mask = kept >= 64 ? ~0ull : (1ull << kept) - 1;
    bits = (bits & mask) | (sign & ~mask);
    if (length < 64) /* the field is sign-extended, or has zeros above */
        bits = is_signed ? bits : bits & ((1ull << length) - 1);
    return bits;
}

static inline uint64_t insert(uint64_t a, uint64_t b, uint32_t c, uint32_t e, unsigned width)
{
    unsigned position = field(c, width), length = field(e, width);
    if (length == 0 || position >= width)
        return b;
    uint64_t mask = (length >= 64 ? ~0ull : (1ull << length) - 1) << position;
    return (b & ~mask) | (a << position & mask);
}

static inline uint32_t top_bit(uint32_t a)
{
    return a ? 31u - (unsigned)__builtin_clz(a) : UINT32_MAX;
}

static inline uint32_t top_shift(uint32_t a)
{
    return a ? (unsigned)__builtin_clz(a) : UINT32_MAX;
}

static inline uint32_t top_bit64(uint64_t a)
{
    return a ? 63u - (unsigned)__builtin_clzll(a) : UINT32_MAX;
}

static inline uint32_t top_shift64(uint64_t a)
{
    return a ? (unsigned)__builtin_clzll(a) : UINT32_MAX;
}

static inline uint64_t reverse(uint64_t a)
{
    a = (a & 0x5555555555555555) << 1 | (a >> 1 & 0x5555555555555555);
    a = (a & 0x3333333333333333) << 2 | (a >> 2 & 0x3333333333333333);
    a = (a & 0x0f0f0f0f0f0f0f0f) << 4 | (a >> 4 & 0x0f0f0f0f0f0f0f0f);
    return __builtin_bswap64(a);
}

static inline uint32_t bit_mask(uint32_t from, uint32_t length)
{
    if (from >= 32 || length == 0)
        return 0;
    return (length >= 32 ? UINT32_MAX : (1u << length) - 1) << from;
}

static inline uint32_t dot4(uint32_t a, uint32_t b, uint32_t c, bool signed_a, bool signed_b)
{
    for (unsigned k = 0; k < 32; k += 8) {
        int32_t x = signed_a ? (int8_t)(a >> k) : (uint8_t)(a >> k);
        int32_t y = signed_b ? (int8_t)(b >> k) : (uint8_t)(b >> k);
        c += (uint32_t)(x * y);
    }
    return c;
}

/* Two 16-bit parts of a times two bytes of b. */
static inline uint32_t dot2(uint32_t a, uint32_t b, uint32_t c, bool signed_a, bool signed_b, unsigned shift)
{
    for (unsigned k = 0; k < 2; k++) {
        int32_t x = signed_a ? (int16_t)(a >> 16 * k) : (uint16_t)(a >> 16 * k);
        int32_t y = signed_b ? (int8_t)(b >> (shift + 8 * k)) : (uint8_t)(b >> (shift + 8 * k));
        c += (uint32_t)(x * y);
    }
    return c;
}

/* Position of the n-th set bit counted from `base`, upwards for n > 0, downwards for n < 0. */
static inline uint32_t find_set(uint32_t mask, uint32_t base, int32_t n)
{
    if (n == INT32_MIN) /* has no magnitude */
        return 0;
    if (base > 31)
        return UINT32_MAX;
    if (n == 0)
        return mask >> base & 1 ? base : UINT32_MAX;
    int step = n > 0 ? 1 : -1;
    for (int at = (int)base, left = n; at >= 0 && at < 32; at += step)
        if (mask >> at & 1 && (left -= step) == 0)
            return (uint32_t)at;
    return UINT32_MAX;
}

/* rcp.approx.ftz.f64 and rsqrt see and give the upper 32 bits of a double only. */
static inline double clip64(double a)
{
    uint64_t bits = sc_bits64(a) & 0xffffffff00000000;
    return sc_double((bits & 0x7ff0000000000000) == 0 ? bits & 1ull << 63 : bits);
}

static inline double rough64(double r)
{
    return r != r ? sc_double(0x7fffffff00000000) : clip64(r);
}

/* For divisors above 2^126 the documented quotient is 0, of an infinity NaN. */
static inline float div_approx(float a, float b)
{
    float quotient = a / b;
    return __builtin_fabsf(b) > 0x1p126f && __builtin_fabsf(b) < INFINITY ? quotient * 0 : quotient;
}

/* One rounding, in whatever mode: compilers' own ways for 64 bits give -0 for 0 when rounding down. */
static inline double double_of(uint64_t a)
{
    return (double)(uint32_t)(a >> 32) * 0x1p32 + (double)(uint32_t)a;
}

/* With .ftz hardware takes a step that makes every NaN the single-precision one; without, the bits stay. */
static inline float sc_step32(float a, uint32_t csr)
{
    return csr & SC_CSR_FTZ ? sc_nan32(sc_flush32(a, csr)) : a;
}

/* From double precision the sign and the payload's upper bits stay. */
static inline uint16_t narrow_nan(double a, unsigned mantissa, unsigned exponent)
{
    uint64_t bits = sc_bits64(a);
    uint32_t ones = ((1u << exponent) - 1) << mantissa;
    return (uint16_t)((uint32_t)(bits >> 63) << (mantissa + exponent) | ones | 1u << (mantissa - 1) |
                      (uint32_t)(bits >> (52 - mantissa) & ((1u << mantissa) - 1)));
}

static inline uint16_t relu16(uint16_t h)
{
    return h & 0x8000 ? 0 : h; /* a NaN has no sign here */
}

static inline int16_t relu_s16(int16_t x)
{
    return x < 0 ? 0 : x;
}

/* Bits 16 and on of the product of two signed numbers of 24 bits. */
static inline int32_t high24(uint32_t a, uint32_t b)
{
    return (int32_t)((int64_t)((int32_t)(a << 8) >> 8) * ((int32_t)(b << 8) >> 8) >> 16);
}

static inline uint16_t half_nan(uint16_t h)
{
    return (h & 0x7fff) > 0x7c00 ? 0x7fff : h;
}

/* .satfinite: the largest number instead of infinity. */
static inline uint16_t finite16(uint16_t h, uint16_t infinity)
{
    return (h & 0x7fff) == infinity ? h - 1 : h;
}

static inline uint16_t sat_to_half(uint32_t a, uint32_t csr)
{
    const uint32_t one = 0x3f800000, infinity = 0x7f800000;
    if ((a >> 31) != 0 || a == 0 || a > infinity)
        return 0;
    if (a >= one)
        return 0x3c00;
    /* Of integers, which no flushing reaches: a subnormal is below half precision's last bit either way. */
    return (uint16_t)sc_narrow(sc_double(a < 0x00800000 ? 1 : (uint64_t)a * (1ull << 29) + (896ull << 52)),
                               10, 5, csr);
}

/* tf32 is a single whose last 13 bits do not count. */
static inline uint32_t to_tf32(uint32_t bits)
{
    return ((bits & 0x7f800000) != 0x7f800000 ? bits + 0x1000 : bits) & ~0x1fffu;
}

static inline uint32_t finite32(uint32_t bits)
{
    return (bits & 0x7f800000) == 0x7f800000 ? bits - 0x2000 : bits; /* of a NaN too */
}

static inline uint32_t round_tf32(uint32_t bits, uint32_t csr)
{
    if ((bits & INT32_MAX) > 0x7f800000)
        return 0x7fffe000;
    const uint32_t up = (csr & SC_ROUNDING) == (SC_CSR_RZ & SC_ROUNDING) ? 0 : 0xfff + (bits >> 13 & 1);
    return (bits + up) & ~0x1fffu;
}

static inline uint32_t relu_tf32(uint32_t bits)
{
    return bits >> 31 ? 0 : bits;
}

/* Through a double would round twice: beyond 53 bits, what is lost is kept as one sticky bit. */
static inline uint16_t integer_to_narrow(__int128 a, unsigned mantissa, unsigned exponent, uint32_t csr)
{
    bool negative = a < 0;
    uint64_t magnitude = (uint64_t)(negative ? -a : a);
    if (magnitude >> 53)
        magnitude = (magnitude & ~0xfffull) | ((magnitude & 0xfff) ? 0x1000 : 0);
    double value = (double)magnitude;
    return (uint16_t)sc_narrow(negative ? -value : value, mantissa, exponent, csr);
}

#endif
