/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Products of small matrices, as the tensor cores of an H200 compute them, bit for bit (tests/vm/forms.tsv).
 *
 * Of f16, bf16 and tf32: the products are exact, and so is c. All are cut off, not rounded, two bits below
 * the last bit of a single-precision number of the largest term's exponent; where a product's exponent is the
 * sum of its factors', even if their significands' product is 2 or more. The sum of what is left is exact,
 * and cut to single precision or rounded to half precision.
 */
#include "softcuda/vm/fp.h"
#include "softcuda/vm/matrix.h"

/* mantissa * 2 ^ exponent */
typedef struct sc_term {
    int32_t mantissa;
    int16_t exponent;
    uint8_t special; /* SC_INFINITE, SC_NAN */
} sc_term;
enum { SC_INFINITE = 1, SC_NAN = 2, SC_ZERO_EXPONENT = -10000 };

typedef sc_term sc_terms[SC_LINES][SC_COLUMNS];

static const struct sc_format {
    ptx_type type;
    uint8_t mantissa, exponent, unused; /* bits */
} formats[] = {{PTX_F16, 10, 5, 0}, {PTX_BF16, 7, 8, 0}, {PTX_TF32, 10, 8, 13}, {PTX_F32, 23, 8, 0}};

static sc_term term_of(const struct sc_format *format, uint64_t bits)
{
    bits >>= format->unused;
    const unsigned n = format->mantissa;
    const int32_t top = (1 << format->exponent) - 1, fraction = (int32_t)(bits & ((1u << n) - 1));
    const int32_t exponent = (int32_t)(bits >> n) & top;
    const bool negative = bits >> (n + format->exponent) & 1;
    if (exponent == top)
        return (sc_term){.mantissa = negative ? -1 : 1, .special = fraction ? SC_NAN : SC_INFINITE};
    const int32_t mantissa = exponent ? fraction | 1 << n : fraction;
    return (sc_term){.mantissa = negative ? -mantissa : mantissa,
                     .exponent = (int16_t)((exponent ? exponent : 1) - (top >> 1) - (int)n)};
}

/* With single precision's 23 bits after the point. */
static sc_term as_single(sc_term term, unsigned mantissa)
{
    if (!term.special) {
        term.mantissa *= 1 << (23 - mantissa);
        term.exponent -= (int16_t)(23 - mantissa);
    }
    return term;
}

static const struct sc_format *format_of(ptx_type type)
{
    size_t i = 0;
    while (i + 1 < KR_COUNT(formats) && formats[i].type != type)
        i++;
    return &formats[i];
}

/* A sum under way: sum * 2 ^ unit, or what it is instead. */
typedef struct sc_total {
    int64_t sum;
    int unit;
    bool nan, positive, negative; /* infinities met */
} sc_total;

static void note_special(sc_total *total, const sc_term *a, const sc_term *b)
{
    if (a->special == SC_NAN || b->special == SC_NAN || a->mantissa == 0 || b->mantissa == 0)
        total->nan = true;
    else if ((a->mantissa < 0) != (b->mantissa < 0))
        total->negative = true;
    else
        total->positive = true;
}

static int64_t cut(int64_t mantissa, int shift)
{
    if (shift >= 0)
        return mantissa * (1ll << shift);
    const int64_t magnitude = shift < -62 ? 0 : (mantissa < 0 ? -mantissa : mantissa) >> -shift;
    return mantissa < 0 ? -magnitude : magnitude;
}

/* c and n products; `bits`: of a factor's mantissa. */
static sc_total total_of(const sc_term *a, const sc_term *b, unsigned n, sc_term c, int bits)
{
    static const sc_term one = {.mantissa = 1};
    sc_total total = {0};
    int64_t products[SC_COLUMNS];
    int exponents[SC_COLUMNS], most = c.mantissa && !c.special ? c.exponent + 23 : SC_ZERO_EXPONENT;
    if (c.special)
        note_special(&total, &c, &one);
    for (unsigned i = 0; i < n; i++) {
        if (a[i].special | b[i].special)
            note_special(&total, &a[i], &b[i]);
        products[i] = (int64_t)a[i].mantissa * b[i].mantissa;
        exponents[i] = a[i].exponent + b[i].exponent;
        const int exponent = products[i] ? exponents[i] + 2 * bits : SC_ZERO_EXPONENT;
        most = exponent > most ? exponent : most;
    }
    if (total.nan | total.positive | total.negative || most == SC_ZERO_EXPONENT)
        return total;
    total.unit = most - 25;
    total.sum = c.mantissa ? cut(c.mantissa, c.exponent - total.unit) : 0;
    for (unsigned i = 0; i < n; i++)
        total.sum += products[i] ? cut(products[i], exponents[i] - total.unit) : 0;
    return total;
}

/* Infinity or NaN, where the total is that. */
static bool special_single(const sc_total *total, uint32_t *ret_bits)
{
    const bool nan = total->nan || (total->positive && total->negative);
    *ret_bits = nan ? 0x7fffffff : total->positive ? 0x7f800000 : 0xff800000;
    return nan || total->positive || total->negative;
}

static uint32_t single_of(const sc_total *total)
{
    uint32_t bits;
    if (special_single(total, &bits))
        return bits;
    /* The sum has fewer than 53 bits; cutting is rounding toward zero. */
    const double value = ldexp((double)total->sum, total->unit);
    const uint32_t magnitude = (uint32_t)sc_round_magnitude(value, 23, 8, SC_CSR_RZ);
    if (value == 0)
        return 0;
    return (value < 0 ? 0x80000000 : 0) | (magnitude < 0x7f800000 ? magnitude : 0x7f800000);
}

static uint16_t half_of(const sc_total *total)
{
    uint32_t bits;
    if (special_single(total, &bits))
        return bits == 0x7fffffff ? 0x7fff : (uint16_t)(bits >> 16 & 0x8000) | 0x7c00;
    return total->sum ? sc_to_half(ldexp((double)total->sum, total->unit), SC_CSR_RN) : 0;
}

static void terms_of(const sc_fragment *fragment, unsigned columns, sc_elements from, sc_terms to)
{
    const struct sc_format *format = format_of(fragment->type);
    for (unsigned line = 0; line < fragment->lines; line++)
        for (unsigned column = 0; column < columns; column++)
            to[line][column] = term_of(format, from[line][column]);
}

/* Four products apart: the lines of B that go with a line of A. */
static unsigned first_line(const sc_mma *mma, unsigned line)
{
    return mma->a.order >= SC_QUAD_LINES ? line & ~7u : 0;
}

#define EACH_RESULT(mma, i, j)                    \
    for (unsigned i = 0; i < (mma)->a.lines; i++) \
        for (unsigned from_ = first_line(mma, i), n_ = (mma)->d.columns, j = 0; j < n_; j++)

void sc__multiply_float(const sc_mma *mma, sc_elements a, sc_elements b, sc_elements c)
{
    const unsigned k = mma->b.columns, step = mma->step;
    const int bits = format_of(mma->a.type)->mantissa;
    const struct sc_format *c_format = format_of(mma->c.type);
    sc_terms ta, tb;
    terms_of(&mma->a, k, a, ta);
    terms_of(&mma->b, k, b, tb);
    EACH_RESULT(mma, i, j)
    {
        sc_term sum = as_single(term_of(c_format, c[i][j]), c_format->mantissa);
        sc_total total = {0};
        for (unsigned at = 0; at < k; at += step) {
            total = total_of(ta[i] + at, tb[from_ + j] + at, step, sum, bits);
            sum = term_of(format_of(PTX_F32), single_of(&total));
        }
        if (mma->d.type == PTX_F32)
            c[i][j] = single_of(&total);
        else if (mma->c.type == PTX_F16)
            c[i][j] = half_of(&total);
        else /* cut to single precision first */
            c[i][j] = sc_to_half(sc_float(single_of(&total)), SC_CSR_RN);
    }
}

/* m8n8k4 of f16 is for sm_70's tensor cores; for later devices the assembler computes it with single
 * precision's instructions: to a half, two products at a time are added to c; to a float, c is added to all
 * four. */
void sc__multiply_quads(const sc_mma *mma, sc_elements a, sc_elements b, sc_elements c)
{
    EACH_RESULT(mma, i, j)
    {
        const float addend =
            mma->c.type == PTX_F16 ? sc_from_half((uint16_t)c[i][j]) : sc_float((uint32_t)c[i][j]);
        float x[4], y[4];
        for (unsigned k = 0; k < 4; k++) {
            x[k] = sc_from_half((uint16_t)a[i][k]);
            y[k] = sc_from_half((uint16_t)b[from_ + j][k]);
        }
        if (mma->d.type == PTX_F16) {
            const float low = fmaf(x[1], y[1], x[0] * y[0]), high = fmaf(x[3], y[3], x[2] * y[2]);
            c[i][j] = sc_to_half(addend + low + high, SC_CSR_RN);
        } else {
            float sum = 0;
            for (unsigned k = 0; k < 4; k++)
                sum = fmaf(x[k], y[k], sum);
            c[i][j] = sc_bits32(sc_nan32(sum + addend));
        }
    }
}

/*
 * fp8 has no tensor core instruction of its own on sm_90 outside wgmma: its numbers become halves, whose
 * products are summed as above in two steps, from 0: first columns 0 and 1 of each four, then 2 and 3. c is
 * added last, rounded.
 */
void sc__multiply_fp8(const sc_mma *mma, sc_elements a, sc_elements b, sc_elements c)
{
    const unsigned k = mma->b.columns, step = k / 2;
    const bool is_half = mma->d.type == PTX_F16;
    const sc_fragment *const fragments[] = {&mma->a, &mma->b};
    sc_terms terms[2];
    for (unsigned f = 0; f < 2; f++)
        for (unsigned line = 0; line < fragments[f]->lines; line++)
            for (unsigned column = 0; column < k; column++) {
                const uint8_t byte = (uint8_t)(f ? b : a)[line][column];
                const uint16_t half =
                    fragments[f]->type == PTX_E4M3 ? sc_half_of_e4m3(byte) : sc_half_of_e5m2(byte);
                terms[f][line][column % 4 / 2 * step + column / 4 * 2 + column % 2] =
                    term_of(&formats[0], half);
            }
    EACH_RESULT(mma, i, j)
    {
        sc_term sum = {0};
        sc_total total = {0};
        for (unsigned at = 0; at < k; at += step) {
            total = total_of(terms[0][i] + at, terms[1][from_ + j] + at, step, sum, 10);
            sum = is_half ? as_single(term_of(&formats[0], half_of(&total)), 10)
                          : term_of(format_of(PTX_F32), single_of(&total));
        }
        if (is_half)
            c[i][j] = sc_to_half(sc_from_half(half_of(&total)) + (double)sc_from_half((uint16_t)c[i][j]),
                                 SC_CSR_RN);
        else
            c[i][j] = sc_bits32(sc_nan32(sc_float(single_of(&total)) + sc_float((uint32_t)c[i][j])));
    }
}

void sc__multiply_double(const sc_mma *mma, sc_elements a, sc_elements b, sc_elements c)
{
    EACH_RESULT(mma, i, j)
    {
        double sum = sc_double(c[i][j]);
        for (unsigned k = 0; k < mma->b.columns; k++)
            sum = fma(sc_double(a[i][k]), sc_double(b[from_ + j][k]), sum);
        c[i][j] = sc_bits64(sum);
    }
}

static int64_t integer_of(const sc_fragment *fragment, uint64_t bits)
{
    const bool is_signed = fragment->type == PTX_S8 || fragment->type == PTX_S4;
    const unsigned above = 64u - fragment->bits;
    return is_signed ? (int64_t)(bits << above) >> above : (int64_t)bits;
}

void sc__multiply_integer(const sc_mma *mma, sc_elements a, sc_elements b, sc_elements c)
{
    EACH_RESULT(mma, i, j)
    {
        int64_t sum = (int32_t)c[i][j];
        for (unsigned k = 0; k < mma->b.columns; k++)
            sum += integer_of(&mma->a, a[i][k]) * integer_of(&mma->b, b[from_ + j][k]);
        if (mma->saturates)
            sum = sum > INT32_MAX ? INT32_MAX : sum < INT32_MIN ? INT32_MIN : sum;
        c[i][j] = (uint32_t)sum;
    }
}

void sc__multiply_bits(const sc_mma *mma, sc_elements a, sc_elements b, sc_elements c)
{
    EACH_RESULT(mma, i, j)
    {
        uint32_t sum = (uint32_t)c[i][j];
        for (unsigned k = 0; k < mma->b.columns; k++) {
            const uint64_t x = a[i][k], y = b[from_ + j][k];
            sum += (uint32_t)__builtin_popcountll(mma->ands ? x & y : x ^ y);
        }
        c[i][j] = sum;
    }
}
