/* SPDX-License-Identifier: Apache-2.0 */
/* Atomics, one function an operation and type, in two forms: on global memory the host's own; on a block's
 * shared memory, which the worker's host thread alone touches, plain ones. Operands and result are bits. */
#include "softcuda/vm/fp.h"
#include "softcuda/vm/machine.h"

/* next_NAME: the new value, from the old value `a` and the operands b and c. */
#define NEXT(name, type, bits, next)                                     \
    static inline bits next_##name(bits a_, uint64_t b_, uint64_t c_)    \
    {                                                                    \
        const type a = (type)a_, b = (type)(bits)b_, c = (type)(bits)c_; \
        (void)a, (void)b, (void)c;                                       \
        return (bits)(next);                                             \
    }
#define ON_SHARED(name, bits, next)                                 \
    static uint64_t name##_shared(void *at, uint64_t b, uint64_t c) \
    {                                                               \
        bits *place = at, old = *place;                             \
        *place = next(old, b, c);                                   \
        return old;                                                 \
    }
#define ON_GLOBAL(name, bits, next)                                                               \
    static uint64_t name##_global(void *at, uint64_t b, uint64_t c)                               \
    {                                                                                             \
        bits *place = at, old = __atomic_load_n(place, __ATOMIC_RELAXED);                         \
        while (!__atomic_compare_exchange_n(place, &old, next(old, b, c), true, __ATOMIC_SEQ_CST, \
                                            __ATOMIC_RELAXED))                                    \
            ;                                                                                     \
        return old;                                                                               \
    }
#define ATOMIC(name, type, bits, next) \
    NEXT(name, type, bits, next)       \
    ON_SHARED(name, bits, next_##name) \
    ON_GLOBAL(name, bits, next_##name)
/* Where the host has the operation. */
#define DIRECT(name, bits, call, next)                              \
    NEXT(name, bits, bits, next)                                    \
    ON_SHARED(name, bits, next_##name)                              \
    static uint64_t name##_global(void *at, uint64_t b, uint64_t c) \
    {                                                               \
        (void)c;                                                    \
        return call((bits *)at, (bits)b, __ATOMIC_SEQ_CST);         \
    }

DIRECT(add_32, uint32_t, __atomic_fetch_add, a + b)
DIRECT(add_64, uint64_t, __atomic_fetch_add, a + b)
DIRECT(and_32, uint32_t, __atomic_fetch_and, (a & b))
DIRECT(and_64, uint64_t, __atomic_fetch_and, (a & b))
DIRECT(or_32, uint32_t, __atomic_fetch_or, a | b)
DIRECT(or_64, uint64_t, __atomic_fetch_or, a | b)
DIRECT(xor_32, uint32_t, __atomic_fetch_xor, a ^ b)
DIRECT(xor_64, uint64_t, __atomic_fetch_xor, a ^ b)
DIRECT(exch_32, uint32_t, __atomic_exchange_n, b)
DIRECT(exch_64, uint64_t, __atomic_exchange_n, b)
ATOMIC(min_u32, uint32_t, uint32_t, a < b ? a : b)
ATOMIC(max_u32, uint32_t, uint32_t, a > b ? a : b)
ATOMIC(min_s32, int32_t, uint32_t, a < b ? a : b)
ATOMIC(max_s32, int32_t, uint32_t, a > b ? a : b)
ATOMIC(min_u64, uint64_t, uint64_t, a < b ? a : b)
ATOMIC(max_u64, uint64_t, uint64_t, a > b ? a : b)
ATOMIC(min_s64, int64_t, uint64_t, a < b ? a : b)
ATOMIC(max_s64, int64_t, uint64_t, a > b ? a : b)
ATOMIC(inc_32, uint32_t, uint32_t, a >= b ? 0 : a + 1)
ATOMIC(dec_32, uint32_t, uint32_t, a == 0 || a > b ? b : a - 1)
ATOMIC(cas_16, uint16_t, uint16_t, a == b ? c : a)
ATOMIC(cas_32, uint32_t, uint32_t, a == b ? c : a)
ATOMIC(cas_64, uint64_t, uint64_t, a == b ? c : a)

NEXT(add_f32, uint32_t, uint32_t, sc_bits32(sc_nan32(sc_float(a) + sc_float(b))))
NEXT(add_f64, uint64_t, uint64_t, sc_bits64(sc_double(a) + sc_double(b)))
ON_SHARED(add_f32, uint32_t, next_add_f32)
ON_SHARED(add_f64, uint64_t, next_add_f64)

/* On global memory a NaN stays as it is, and single precision flushes subnormals. */
static uint32_t add_single(uint32_t a, uint64_t b, uint64_t c)
{
    const uint32_t ftz = SC_CSR_FTZ;
    (void)c;
    return sc_bits32(
        sc_flush32(sc_nan32(sc_flush32(sc_float(a), ftz) + sc_flush32(sc_float((uint32_t)b), ftz)), ftz));
}

static uint64_t add_double(uint64_t a, uint64_t b, uint64_t c)
{
    (void)c;
    return sc_double(b) != sc_double(b)   ? b
           : sc_double(a) != sc_double(a) ? a
                                          : sc_bits64(sc_double(a) + sc_double(b));
}

ON_GLOBAL(add_f32, uint32_t, add_single)
ON_GLOBAL(add_f64, uint64_t, add_double)

static uint32_t add_half(uint32_t a, uint32_t b)
{
    return sc_to_half(sc_from_half((uint16_t)a) + (double)sc_from_half((uint16_t)b), SC_CSR_RN);
}

static uint32_t add_bfloat(uint32_t a, uint32_t b)
{
    return sc_to_bfloat(sc_from_bfloat((uint16_t)a) + (double)sc_from_bfloat((uint16_t)b), SC_CSR_RN);
}

static uint32_t least_half(uint32_t a, uint32_t b)
{
    return sc_to_half(sc_min32(sc_from_half((uint16_t)a), sc_from_half((uint16_t)b)), SC_CSR_RN);
}

static uint32_t most_half(uint32_t a, uint32_t b)
{
    return sc_to_half(sc_max32(sc_from_half((uint16_t)a), sc_from_half((uint16_t)b)), SC_CSR_RN);
}

static uint32_t least_bfloat(uint32_t a, uint32_t b)
{
    return sc_to_bfloat(sc_min32(sc_from_bfloat((uint16_t)a), sc_from_bfloat((uint16_t)b)), SC_CSR_RN);
}

static uint32_t most_bfloat(uint32_t a, uint32_t b)
{
    return sc_to_bfloat(sc_max32(sc_from_bfloat((uint16_t)a), sc_from_bfloat((uint16_t)b)), SC_CSR_RN);
}
#define HALVES(name, function)                       \
    ATOMIC(name, uint16_t, uint16_t, function(a, b)) \
    ATOMIC(name##x2, uint32_t, uint32_t, function(a, b) | function(a >> 16, b >> 16) << 16)
HALVES(min_f16, least_half)
HALVES(max_f16, most_half)
HALVES(min_bf16, least_bfloat)
HALVES(max_bf16, most_bfloat)
ATOMIC(add_f16, uint16_t, uint16_t, add_half(a, b))
ATOMIC(add_bf16, uint16_t, uint16_t, add_bfloat(a, b))
ATOMIC(add_f16x2, uint32_t, uint32_t, add_half(a, b) | add_half(a >> 16, b >> 16) << 16)
ATOMIC(add_bf16x2, uint32_t, uint32_t, add_bfloat(a, b) | add_bfloat(a >> 16, b >> 16) << 16)

static const struct {
    ptx_sub sub;
    ptx_type type;
    sc_atomic *on_global, *on_shared;
} atomics[] = {
#define ROW(sub, type, name)                                    \
    {                                                           \
        PTX_SUB_##sub, PTX_##type, name##_global, name##_shared \
    }
    ROW(ADD, U32, add_32),        ROW(ADD, S32, add_32),      ROW(ADD, U64, add_64),
    ROW(ADD, S64, add_64),        ROW(ADD, F32, add_f32),     ROW(ADD, F64, add_f64),
    ROW(ADD, F16, add_f16),       ROW(ADD, BF16, add_bf16),   ROW(ADD, F16X2, add_f16x2),
    ROW(ADD, BF16X2, add_bf16x2), ROW(MIN, F16, min_f16),     ROW(MIN, F16X2, min_f16x2),
    ROW(MAX, F16, max_f16),       ROW(MAX, F16X2, max_f16x2), ROW(MIN, BF16, min_bf16),
    ROW(MIN, BF16X2, min_bf16x2), ROW(MAX, BF16, max_bf16),   ROW(MAX, BF16X2, max_bf16x2),
    ROW(MIN, U32, min_u32),       ROW(MIN, S32, min_s32),     ROW(MIN, U64, min_u64),
    ROW(MIN, S64, min_s64),       ROW(MAX, U32, max_u32),     ROW(MAX, S32, max_s32),
    ROW(MAX, U64, max_u64),       ROW(MAX, S64, max_s64),     ROW(INC, U32, inc_32),
    ROW(DEC, U32, dec_32),        ROW(AND, B32, and_32),      ROW(AND, B64, and_64),
    ROW(OR, B32, or_32),          ROW(OR, B64, or_64),        ROW(XOR, B32, xor_32),
    ROW(XOR, B64, xor_64),        ROW(EXCH, B32, exch_32),    ROW(EXCH, B64, exch_64),
    ROW(CAS, B16, cas_16),        ROW(CAS, B32, cas_32),      ROW(CAS, B64, cas_64),
    ROW(CAS, U32, cas_32),        ROW(CAS, U64, cas_64),      ROW(CAS, S32, cas_32),
    ROW(EXCH, U32, exch_32),      ROW(EXCH, S32, exch_32),    ROW(EXCH, U64, exch_64),
    ROW(EXCH, F32, exch_32),
#undef ROW
};

bool sc__find_atomic(ptx_sub sub, ptx_type type, sc_access *ret_access)
{
    for (size_t i = 0; i < KR_COUNT(atomics); i++)
        if (atomics[i].sub == sub && atomics[i].type == type) {
            ret_access->operate_global = atomics[i].on_global;
            ret_access->operate_shared = atomics[i].on_shared;
            return true;
        }
    return false;
}

/* cmpxchg16b is there on every processor since 2006, but not in the compilers' baseline. */
__attribute__((target("cx16"))) unsigned __int128 sc__atomic_quad(void *at, bool compares,
                                                                  unsigned __int128 b, unsigned __int128 c)
{
    unsigned __int128 *place = at, old = *place;
    if (compares)
        return __sync_val_compare_and_swap(place, b, c);
    for (;;) {
        const unsigned __int128 seen = __sync_val_compare_and_swap(place, old, b);
        if (seen == old)
            return old;
        old = seen;
    }
}
