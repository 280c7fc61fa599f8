/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handlers of the instructions that work lane by lane, from alu.def. Compiled twice: for any x86-64, and for
 * AVX2 with FMA; the decoder takes the table that the processor can run.
 */
#include "softcuda/vm/alu.h"

#ifdef __AVX2__
#define SC_FORMS sc__forms_avx2
#define SC_N_FORMS sc__n_forms_avx2
#else
#define SC_FORMS sc__forms_baseline
#define SC_N_FORMS sc__n_forms_baseline
#endif

#define FMA32 __builtin_fmaf
#define FMA64 __builtin_fma

/* To an integer as the MXCSR in force rounds. Without SSE 4.1 compilers expand rint for the default mode
 * alone. */
#ifdef __AVX2__
#define RINT32 __builtin_rintf
#define RINT64 __builtin_rint
#else
#define RINT(name, type, abs, copysign, large)                                         \
    static inline type name(type x)                                                    \
    {                                                                                  \
        const type magic = copysign(large, x);                                         \
        return abs(x) < large ? copysign((x + magic) - magic, x) : x != x ? x + x : x; \
    }
RINT(RINT32, float, __builtin_fabsf, __builtin_copysignf, 0x1p23f)
RINT(RINT64, double, __builtin_fabs, __builtin_copysign, 0x1p52)
#endif

/* A lane's value and the element of the slot it lies in. */
#define V_u8 uint8_t
#define V_s8 int8_t
#define V_u16 uint16_t
#define V_s16 int16_t
#define V_u32 uint32_t
#define V_s32 int32_t
#define V_u64 uint64_t
#define V_s64 int64_t
#define V_f32 float
#define V_f64 double
#define S_u8 uint32_t
#define S_s8 uint32_t
#define S_u16 uint32_t
#define S_s16 uint32_t
#define S_u32 uint32_t
#define S_s32 int32_t
#define S_u64 uint64_t
#define S_s64 int64_t
#define S_f32 float
#define S_f64 double
#define WIDTH_u8 w
#define WIDTH_s8 w
#define WIDTH_u16 w
#define WIDTH_s16 w
#define WIDTH_u32 w
#define WIDTH_s32 w
#define WIDTH_f32 w
#define WIDTH_u64 d
#define WIDTH_s64 d
#define WIDTH_f64 d

#define SLOT(T, slot) ((S_##T *)__builtin_assume_aligned(warp->bank[(slot)&1] + ((slot) & ~3u), 64))
#define USE(T, name) const S_##T *const name##_lanes = SLOT(T, in->name)
#define LANE(T, name)                          \
    const V_##T name = (V_##T)name##_lanes[i]; \
    (void)name

#define HANDLER(id) static const sc_code *run_##id(sc_warp *warp, const sc_code *in)
#define CSR                     \
    const uint32_t csr = in->f; \
    (void)csr
#define SET_CSR \
    CSR;        \
    sc_set_csr(&warp->csr, csr)
#define BODY(D, uses, lanes, expression)         \
    S_##D *const d_lanes = SLOT(D, in->d);       \
    uses;                                        \
    LANES                                        \
    {                                            \
        lanes;                                   \
        d_lanes[i] = (S_##D)(V_##D)(expression); \
    }                                            \
    return in + 1;

#define GENERIC1(id, first, D, A, expression)      \
    HANDLER(id)                                    \
    {                                              \
        first;                                     \
        BODY(D, USE(A, a), LANE(A, a), expression) \
    }
#define GENERIC2(id, first, D, A, B, expression)                          \
    HANDLER(id)                                                           \
    {                                                                     \
        first;                                                            \
        BODY(D, USE(A, a); USE(B, b), LANE(A, a); LANE(B, b), expression) \
    }
#define GENERIC3(id, first, D, A, B, C, expression)                                              \
    HANDLER(id)                                                                                  \
    {                                                                                            \
        first;                                                                                   \
        BODY(D, USE(A, a); USE(B, b); USE(C, c), LANE(A, a); LANE(B, b); LANE(C, c), expression) \
    }

#define ALU1(id, names, D, A, expression) GENERIC1(id, CSR, D, A, expression)
#define ALU2(id, names, D, A, B, expression) GENERIC2(id, CSR, D, A, B, expression)
#define ALU3(id, names, D, A, B, C, expression) GENERIC3(id, CSR, D, A, B, C, expression)
#define ALU4(id, names, D, A, B, C, E, expression)                                              \
    HANDLER(id)                                                                                 \
    {                                                                                           \
        BODY(D, USE(A, a); USE(B, b); USE(C, c); USE(E, e), LANE(A, a); LANE(B, b); LANE(C, c); \
             LANE(E, e), expression)                                                            \
    }
#define FALU1(id, names, D, A, expression) GENERIC1(id, SET_CSR, D, A, expression)
#define FALU2(id, names, D, A, B, expression) GENERIC2(id, SET_CSR, D, A, B, expression)
#define FALU3(id, names, D, A, B, C, expression) GENERIC3(id, SET_CSR, D, A, B, C, expression)

/* Functions of the host's mathematics library want the default mode; flushing is done by hand. */
#define ALU1F(id, names, expression)                               \
    static inline float compute_##id(float a)                      \
    {                                                              \
        return expression;                                         \
    }                                                              \
    GENERIC1(id, CSR; sc_set_csr(&warp->csr, SC_CSR_RN), f32, f32, \
                      sc_nan32(sc_flush32(compute_##id(sc_flush32(a, csr)), csr)))

/* The hardware's steps towards a double-precision quotient: whole doubles, whatever .ftz says of singles. */
#define ALU1D(id, names, expression) \
    GENERIC1(id, CSR; sc_set_csr(&warp->csr, SC_CSR_RN), f64, f64, expression)

/* Halves one by one and in pairs. The host does not know them: flushing is by hand here too. */
#define HALF_CSR \
    CSR;         \
    sc_set_csr(&warp->csr, SC_CSR_RN)
#define HALU1(id, H, name, expression)                               \
    static inline uint32_t compute_##id(uint16_t a, uint32_t csr)    \
    {                                                                \
        (void)csr;                                                   \
        return (uint16_t)(expression);                               \
    }                                                                \
    GENERIC1(id, HALF_CSR, u32, u32, compute_##id((uint16_t)a, csr)) \
    GENERIC1(id##x2, HALF_CSR, u32, u32,                             \
             compute_##id((uint16_t)a, csr) | compute_##id((uint16_t)(a >> 16), csr) << 16)
#define HALU2(id, H, name, expression)                                                 \
    static inline uint32_t compute_##id(uint16_t a, uint16_t b, uint32_t csr)          \
    {                                                                                  \
        (void)csr;                                                                     \
        return (uint16_t)(expression);                                                 \
    }                                                                                  \
    GENERIC2(id, HALF_CSR, u32, u32, u32, compute_##id((uint16_t)a, (uint16_t)b, csr)) \
    GENERIC2(id##x2, HALF_CSR, u32, u32, u32,                                          \
             compute_##id((uint16_t)a, (uint16_t)b, csr) |                             \
                 compute_##id((uint16_t)(a >> 16), (uint16_t)(b >> 16), csr) << 16)
#define HALU3(id, H, name, expression)                                                                   \
    static inline uint32_t compute_##id(uint16_t a, uint16_t b, uint16_t c, uint32_t csr)                \
    {                                                                                                    \
        (void)csr;                                                                                       \
        return (uint16_t)(expression);                                                                   \
    }                                                                                                    \
    GENERIC3(id, HALF_CSR, u32, u32, u32, u32, compute_##id((uint16_t)a, (uint16_t)b, (uint16_t)c, csr)) \
    GENERIC3(id##x2, HALF_CSR, u32, u32, u32, u32,                                                       \
             compute_##id((uint16_t)a, (uint16_t)b, (uint16_t)c, csr) |                                  \
                 compute_##id((uint16_t)(a >> 16), (uint16_t)(b >> 16), (uint16_t)(c >> 16), csr) << 16)

#define SELECT(id, names, T)                                                                         \
    HANDLER(id)                                                                                      \
    {                                                                                                \
        const uint32_t chosen = sc_predicate(warp, in->c);                                           \
        BODY(T, USE(T, a); USE(T, b), LANE(T, a); LANE(T, b), chosen & sc__bit_of_lane.T[i] ? a : b) \
    }

/* setp: the mask of the lanes where the condition holds, joined with the third operand, and its complement.
 */
#define TEST(id, first, A, B, condition)                                      \
    HANDLER(id)                                                               \
    {                                                                         \
        first;                                                                \
        USE(A, a);                                                            \
        USE(B, b);                                                            \
        S_##A##_bits true_lanes = 0;                                          \
        LANES                                                                 \
        {                                                                     \
            LANE(A, a);                                                       \
            LANE(B, b);                                                       \
            true_lanes |= (condition) ? sc__bit_of_lane.S_##A##_field[i] : 0; \
        }                                                                     \
        sc_set_predicates(warp, in, (uint32_t)true_lanes);                    \
        return in + 1;                                                        \
    }
#define TEST1(id, names, A, condition)                \
    HANDLER(id)                                       \
    {                                                 \
        USE(A, a);                                    \
        uint32_t true_lanes = 0;                      \
        for (unsigned i = 0; i < SC_LANES; i++) {     \
            LANE(A, a);                               \
            true_lanes |= (uint32_t)(condition) << i; \
        }                                             \
        sc_set_predicate(warp, in->d, true_lanes);    \
        return in + 1;                                \
    }
#define TEST2(id, names, A, B, condition) TEST(id, CSR, A, B, condition)
#define FTEST2(id, names, A, B, condition) TEST(id, SET_CSR, A, B, condition)
/* The bits are as wide as what is compared, so that both go through the same vector lanes. */
#define S_u16_bits uint32_t
#define S_s16_bits uint32_t
#define S_u32_bits uint32_t
#define S_s32_bits uint32_t
#define S_f32_bits uint32_t
#define S_u64_bits uint64_t
#define S_s64_bits uint64_t
#define S_f64_bits uint64_t
#define S_u16_field u32
#define S_s16_field u32
#define S_u32_field u32
#define S_s32_field u32
#define S_f32_field u32
#define S_u64_field u64
#define S_s64_field u64
#define S_f64_field u64

/* Extended precision: imm bit 0, the carry is written; bit 1, it is read. A borrow is a carry. */
#define CARRY(id, names, T, wide, expression)                                     \
    HANDLER(id)                                                                   \
    {                                                                             \
        USE(T, a);                                                                \
        USE(T, b);                                                                \
        USE(T, c);                                                                \
        S_##T *const d_lanes = SLOT(T, in->d);                                    \
        const uint32_t carry_in = in->imm & 2 ? warp->carry : 0;                  \
        uint32_t carry_out = 0;                                                   \
        for (unsigned i = 0; i < SC_LANES; i++) {                                 \
            LANE(T, a);                                                           \
            LANE(T, b);                                                           \
            LANE(T, c);                                                           \
            const uint32_t x = carry_in >> i & 1;                                 \
            const wide r = (expression);                                          \
            d_lanes[i] = (V_##T)r;                                                \
            carry_out |= (uint32_t)(r >> 8 * sizeof(V_##T) & 1) << i;             \
        }                                                                         \
        if (in->imm & 1)                                                          \
            warp->carry = (warp->carry & ~warp->mask) | (carry_out & warp->mask); \
        return in + 1;                                                            \
    }

#define LOW_u8 0
#define LOW_u16 0
#define LOW_u32 0
#define LOW_u64 0
#define LOW_s8 INT8_MIN
#define LOW_s16 INT16_MIN
#define LOW_s32 INT32_MIN
#define LOW_s64 INT64_MIN
#define HIGH_u8 UINT8_MAX
#define HIGH_u16 UINT16_MAX
#define HIGH_u32 UINT32_MAX
#define HIGH_u64 UINT64_MAX
#define HIGH_s8 INT8_MAX
#define HIGH_s16 INT16_MAX
#define HIGH_s32 INT32_MAX
#define HIGH_s64 INT64_MAX
#define CLAMP(d, s, a) clamp(a, LOW_##d, HIGH_##d)
#define TO_DOUBLE_u8 (double)
#define TO_DOUBLE_s8 (double)
#define TO_DOUBLE_u16 (double)
#define TO_DOUBLE_s16 (double)
#define TO_DOUBLE_u32 (double)
#define TO_DOUBLE_s32 (double)
#define TO_DOUBLE_u64 double_of
#define TO_DOUBLE_s64 (double)
/* What a NaN becomes: 0; or, from or to 64 bits, the sign bit alone (as an H200 does it). */
#define LOWEST_u8 0x80
#define LOWEST_s8 INT8_MIN
#define LOWEST_u16 0x8000
#define LOWEST_s16 INT16_MIN
#define LOWEST_u32 0x80000000
#define LOWEST_s32 INT32_MIN
#define LOWEST_u64 0x8000000000000000
#define LOWEST_s64 INT64_MIN
#define NAN_u8 0
#define NAN_s8 0
#define NAN_u16 0
#define NAN_s16 0
#define NAN_u32 0
#define NAN_s32 0
#define NAN_u64 LOWEST_u64
#define NAN_s64 LOWEST_s64
/* Saturates. `high` is the first value too large. */
#define TO_INTEGER(d, low, high, nan, rounded)                                                             \
    ({                                                                                                     \
        const __typeof__(rounded) r_ = (rounded);                                                          \
        r_ != r_ ? (V_##d)nan : r_ >= (high) ? (V_##d)HIGH_##d : r_ <= (low) ? (V_##d)LOW_##d : (V_##d)r_; \
    })

#include "softcuda/vm/alu.def"

/* Some lanes only: the other lanes of the result are put back. */
static const sc_code *some_w(sc_warp *warp, const sc_code *in)
{
    uint32_t *const d = SLOT(u32, in->d), old[SC_LANES] __attribute__((aligned(64)));
    const uint32_t mask = warp->mask;
    memcpy(old, d, sizeof old);
    in->handler[1](warp, in);
    LANES d[i] = mask & sc__bit_of_lane.u32[i] ? d[i] : old[i];
    return in + 1;
}

static const sc_code *some_d(sc_warp *warp, const sc_code *in)
{
    uint64_t *const d = SLOT(u64, in->d), old[SC_LANES] __attribute__((aligned(64)));
    const uint64_t mask = warp->mask;
    memcpy(old, d, sizeof old);
    in->handler[1](warp, in);
    LANES d[i] = mask & sc__bit_of_lane.u64[i] ? d[i] : old[i];
    return in + 1;
}

/* ---- the table ---- */

#undef ALU1
#undef ALU2
#undef ALU3
#undef ALU4
#undef FALU1
#undef FALU2
#undef FALU3
#undef ALU1F
#undef ALU1D
#undef HALU1
#undef HALU2
#undef HALU3
#undef SELECT
#undef TEST1
#undef TEST2
#undef FTEST2
#undef CARRY
#define TEXT2(x) #x
#define TEXT(x) TEXT2(x)
#define PASTE2(a, b) a##b
#define PASTE(a, b) PASTE2(a, b)
#define SHAPE(T) TEXT(WIDTH_##T)
#define ROW(id, names, D, shape) {names, SHAPE(D) shape, {PASTE(some_, WIDTH_##D), run_##id}},
#define ALU1(id, names, D, A, ...) ROW(id, names, D, SHAPE(A))
#define ALU2(id, names, D, A, B, ...) ROW(id, names, D, SHAPE(A) SHAPE(B))
#define ALU3(id, names, D, A, B, C, ...) ROW(id, names, D, SHAPE(A) SHAPE(B) SHAPE(C))
#define ALU4(id, names, D, A, B, C, E, ...) ROW(id, names, D, SHAPE(A) SHAPE(B) SHAPE(C) SHAPE(E))
#define FALU1 ALU1
#define FALU2 ALU2
#define FALU3 ALU3
#define ALU1F(id, names, ...) ROW(id, names, f32, "w")
#define ALU1D(id, names, ...) ROW(id, names, f64, "d")
#define HALVES_ROW(id, H, name, shape) \
    ROW(id, name "." H, u32, shape) ROW(id##x2, name "." H "x2", u32, shape)
#define HALU1(id, H, name, ...) HALVES_ROW(id, H, name, "w")
#define HALU2(id, H, name, ...) HALVES_ROW(id, H, name, "ww")
#define HALU3(id, H, name, ...) HALVES_ROW(id, H, name, "www")
#define SELECT(id, names, T) ROW(id, names, T, SHAPE(T) SHAPE(T) "p")
#define CARRY(id, names, T, ...) ROW(id, names, T, SHAPE(T) SHAPE(T) SHAPE(T))
#define TEST2(id, names, A, B, ...) {names, "p" SHAPE(A) SHAPE(B), {run_##id, run_##id}},
#define FTEST2 TEST2
#define TEST1(id, names, A, ...) {names, "p" SHAPE(A), {run_##id, run_##id}},

const sc_form SC_FORMS[] = {
#include "softcuda/vm/alu.def"
};
const size_t SC_N_FORMS = KR_COUNT(SC_FORMS);
