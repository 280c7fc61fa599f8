/* SPDX-License-Identifier: Apache-2.0 */
/* Atomics: the host's own, one function an operation and type. Operands and result are bits. */
#include "softcuda/vm/fp.h"
#include "softcuda/vm/machine.h"

/* NEXT: the new value, from the old value `a` and the operands b and c. */
#define ATOMIC(name, type, bits, next)                                                                    \
    static uint64_t name(void *at, uint64_t b_, uint64_t c_)                                              \
    {                                                                                                     \
        bits *place = at, old = __atomic_load_n(place, __ATOMIC_RELAXED), wanted;                         \
        do {                                                                                              \
            const type a = (type)old, b = (type)(bits)b_, c = (type)(bits)c_;                             \
            (void)a, (void)b, (void)c;                                                                    \
            wanted = (bits)(next);                                                                        \
        } while (                                                                                         \
            !__atomic_compare_exchange_n(place, &old, wanted, true, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)); \
        return old;                                                                                       \
    }
#define DIRECT(name, bits, call)                             \
    static uint64_t name(void *at, uint64_t b_, uint64_t c_) \
    {                                                        \
        bits *place = at, b = (bits)b_;                      \
        (void)c_;                                            \
        return call(place, b, __ATOMIC_SEQ_CST);             \
    }

/* On global memory: a NaN stays as it is, and single precision flushes subnormals. */
static uint64_t add_double_global(uint64_t a, uint64_t b)
{
    return sc_double(b) != sc_double(b)   ? b
           : sc_double(a) != sc_double(a) ? a
                                          : sc_bits64(sc_double(a) + sc_double(b));
}

static uint32_t add_single_global(uint32_t a, uint32_t b)
{
    const uint32_t ftz = SC_CSR_FTZ;
    return sc_bits32(sc_flush32(sc_nan32(sc_flush32(sc_float(a), ftz) + sc_flush32(sc_float(b), ftz)), ftz));
}

DIRECT(add_32, uint32_t, __atomic_fetch_add)
DIRECT(add_64, uint64_t, __atomic_fetch_add)
DIRECT(and_32, uint32_t, __atomic_fetch_and)
DIRECT(and_64, uint64_t, __atomic_fetch_and)
DIRECT(or_32, uint32_t, __atomic_fetch_or)
DIRECT(or_64, uint64_t, __atomic_fetch_or)
DIRECT(xor_32, uint32_t, __atomic_fetch_xor)
DIRECT(xor_64, uint64_t, __atomic_fetch_xor)
DIRECT(exch_32, uint32_t, __atomic_exchange_n)
DIRECT(exch_64, uint64_t, __atomic_exchange_n)
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
ATOMIC(add_f32, uint32_t, uint32_t, sc_bits32(sc_nan32(sc_float(a) + sc_float(b))))
ATOMIC(add_f64, uint64_t, uint64_t, sc_bits64(sc_double(a) + sc_double(b)))
ATOMIC(add_f32_global, uint32_t, uint32_t, add_single_global(a, b))
ATOMIC(add_f64_global, uint64_t, uint64_t, add_double_global(a, b))

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
    sc_atomic *function;
} atomics[] = {
    {PTX_SUB_ADD, PTX_U32, add_32},      {PTX_SUB_ADD, PTX_S32, add_32},
    {PTX_SUB_ADD, PTX_U64, add_64},      {PTX_SUB_ADD, PTX_S64, add_64},
    {PTX_SUB_ADD, PTX_F32, add_f32},     {PTX_SUB_ADD, PTX_F64, add_f64},
    {PTX_SUB_ADD, PTX_F16, add_f16},     {PTX_SUB_ADD, PTX_BF16, add_bf16},
    {PTX_SUB_ADD, PTX_F16X2, add_f16x2}, {PTX_SUB_ADD, PTX_BF16X2, add_bf16x2},
    {PTX_SUB_MIN, PTX_F16, min_f16},     {PTX_SUB_MIN, PTX_F16X2, min_f16x2},
    {PTX_SUB_MAX, PTX_F16, max_f16},     {PTX_SUB_MAX, PTX_F16X2, max_f16x2},
    {PTX_SUB_MIN, PTX_BF16, min_bf16},   {PTX_SUB_MIN, PTX_BF16X2, min_bf16x2},
    {PTX_SUB_MAX, PTX_BF16, max_bf16},   {PTX_SUB_MAX, PTX_BF16X2, max_bf16x2},
    {PTX_SUB_MIN, PTX_U32, min_u32},     {PTX_SUB_MIN, PTX_S32, min_s32},
    {PTX_SUB_MIN, PTX_U64, min_u64},     {PTX_SUB_MIN, PTX_S64, min_s64},
    {PTX_SUB_MAX, PTX_U32, max_u32},     {PTX_SUB_MAX, PTX_S32, max_s32},
    {PTX_SUB_MAX, PTX_U64, max_u64},     {PTX_SUB_MAX, PTX_S64, max_s64},
    {PTX_SUB_INC, PTX_U32, inc_32},      {PTX_SUB_DEC, PTX_U32, dec_32},
    {PTX_SUB_AND, PTX_B32, and_32},      {PTX_SUB_AND, PTX_B64, and_64},
    {PTX_SUB_OR, PTX_B32, or_32},        {PTX_SUB_OR, PTX_B64, or_64},
    {PTX_SUB_XOR, PTX_B32, xor_32},      {PTX_SUB_XOR, PTX_B64, xor_64},
    {PTX_SUB_EXCH, PTX_B32, exch_32},    {PTX_SUB_EXCH, PTX_B64, exch_64},
    {PTX_SUB_CAS, PTX_B16, cas_16},      {PTX_SUB_CAS, PTX_B32, cas_32},
    {PTX_SUB_CAS, PTX_B64, cas_64},      {PTX_SUB_CAS, PTX_U32, cas_32},
    {PTX_SUB_CAS, PTX_U64, cas_64},      {PTX_SUB_CAS, PTX_S32, cas_32},
    {PTX_SUB_EXCH, PTX_U32, exch_32},    {PTX_SUB_EXCH, PTX_S32, exch_32},
    {PTX_SUB_EXCH, PTX_U64, exch_64},    {PTX_SUB_EXCH, PTX_F32, exch_32},
};

sc_atomic *sc__find_atomic(ptx_sub sub, ptx_type type, bool global)
{
    if (global && sub == PTX_SUB_ADD && (type == PTX_F32 || type == PTX_F64))
        return type == PTX_F32 ? add_f32_global : add_f64_global;
    for (size_t i = 0; i < KR_COUNT(atomics); i++)
        if (atomics[i].sub == sub && atomics[i].type == type)
            return atomics[i].function;
    return NULL;
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
