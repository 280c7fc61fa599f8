/* SPDX-License-Identifier: Apache-2.0 */
#include "forms.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

int form_may_differ(const form_line *form)
{
    static const char *const undefined[] = {"createpolicy", "shfl.sync.idx.b32 $0, $1, 0, 31, %x1"};
    for (size_t i = 0; i < COUNT(undefined); i++)
        if (strstr(form->spelling, undefined[i]))
            return 1;
    return 0;
}

int form_parse(const char *line, form_line *to)
{
    char types[400], hash[32] = "";
    memset(to, 0, sizeof *to);
    if (line[0] == '#' || sscanf(line, "%511[^\t]\t%399[^\t\n]\t%31s", to->spelling, types, hash) < 2)
        return 0;
    to->n_results = 1;
    to->faults = strcmp(types, "fault") == 0;
    for (char *at = strtok(types, " "); at && !to->faults; at = strtok(NULL, " "))
        if (strcmp(at, "=") == 0)
            to->n_results = to->n_types;
        else if (to->n_types < FORM_REGISTERS)
            snprintf(to->types[to->n_types++], sizeof to->types[0], "%s", at);
    to->hash = strtoull(hash, NULL, 16);
    return 1;
}

/* Bits of the register a value of the type is held in. */
static unsigned width(const char *type)
{
    if (strcmp(type, "pred") == 0)
        return 1;
    if (strstr(type, "x2"))
        return 32;
    unsigned bits = (unsigned)atoi(type + strcspn(type, "0123456789"));
    return bits < 16 ? 32 : bits;
}

static const char *class_of(unsigned bits)
{
    return bits == 1 ? "p" : bits == 16 ? "h" : bits == 32 ? "r" : "d";
}

/* Text that grows in the caller's memory. */
typedef struct text {
    char *at, *end;
} text;

static void add(text *to, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void add(text *to, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    if (to->at < to->end)
        to->at += vsnprintf(to->at, (size_t)(to->end - to->at), format, list);
    va_end(list);
}

/* $3 and $0-3 become registers. */
static void add_code(text *to, const form_line *form)
{
    for (const char *at = form->spelling; *at;) {
        if (*at != '$') {
            add(to, "%c", *at++);
            continue;
        }
        char *end;
        unsigned long first = strtoul(at + 1, &end, 10), last = first;
        if (*end == '-')
            last = strtoul(end + 1, &end, 10);
        for (unsigned long i = first; i <= last && i < FORM_REGISTERS; i++)
            add(to, "%s%%%s%lu", i > first ? "," : "", class_of(width(form->types[i])), i + 10);
        at = end;
    }
    add(to, ";\n");
}

static void add_instruction(text *to, const form_line *form)
{
    add(to, "%s ", form->spelling);
    for (unsigned i = 0; i < form->n_types; i++)
        add(to, "%s%%%s%u", i ? ", " : "", class_of(width(form->types[i])), i + 10);
    add(to, ";\n");
}

static const char before[] =
    ".version 9.0\n.target sm_90\n.address_size 64\n"
    ".const .align 16 .b32 kc[4] = {7, 11, 13, 17};\n"
    ".func (.param .b32 o) twice(.param .b32 a)\n{\n.reg .b32 %r<3>;\nld.param.b32 %r1, [a];\n"
    "mad.lo.u32 %r2, %r1, 2, 1;\nst.param.b32 [o], %r2;\nret;\n}\n"
    ".visible .entry form(.param .u64 o, .param .u64 a, .param .u64 b)\n{\n"
    ".reg .pred %p<64>; .reg .b16 %h<64>; .reg .b32 %r<64>, %x<8>, %t, %i, %s, %w;\n"
    ".reg .b64 %d<64>, %y<8>, %m, %n; .shared .align 128 .b8 sh[16384];\n"
    "mov.u32 %i, %tid.x;\nmov.u32 %t, %laneid;\nmov.u32 %r0, %ntid.x;\nmov.u32 %r1, %ctaid.x;\n"
    "mad.lo.u32 %r0, %r0, %r1, %i;\nmul.wide.u32 %d0, %r0, 8;\n";
static const char memory[] = /* and its copy, in shared memory */
    "ld.param.u64 %m, [b];\nmul.wide.u32 %d1, %r0, 64;\nadd.u64 %m, %m, %d1;\n"
    "mov.u32 %s, sh;\nmad.lo.u32 %s, %i, 64, %s;\nmul.lo.u32 %r1, %t, 64;\nsub.u32 %w, %s, %r1;\n"
    "cvt.u64.u32 %d1, %r1;\nsub.u64 %n, %m, %d1;\n"
    "ld.global.v4.u32 {%r2,%r3,%r4,%r5}, [%m];\nst.shared.v4.u32 [%s], {%r2,%r3,%r4,%r5};\n"
    "ld.global.v4.u32 {%r2,%r3,%r4,%r5}, [%m+16];\nst.shared.v4.u32 [%s+16], {%r2,%r3,%r4,%r5};\n"
    "ld.global.v4.u32 {%r2,%r3,%r4,%r5}, [%m+32];\nst.shared.v4.u32 [%s+32], {%r2,%r3,%r4,%r5};\n"
    "ld.global.v4.u32 {%r2,%r3,%r4,%r5}, [%m+48];\nst.shared.v4.u32 [%s+48], {%r2,%r3,%r4,%r5};\n"
    "bar.sync 0;\n";

void form_ptx(const form_line *form, char *to_text, size_t bytes)
{
    text to = {to_text, to_text + bytes};
    const int is_code = strpbrk(form->spelling, "$%") != NULL || form->faults;
    add(&to, "%s%s%s", before, strstr(form->spelling, "%q") ? ".reg .b128 %q<4>;\n" : "",
        is_code ? memory : "");
    add(&to, "ld.param.u64 %%d9, [a];\nadd.u64 %%d9, %%d9, %%d0;\n");
    for (unsigned i = form->n_results; i < form->n_types; i++) {
        unsigned bits = width(form->types[i]);
        add(&to, "ld.global.u64 %%d%u, [%%d9+%u];\n", i + 10, (i - form->n_results) * FORM_THREADS * 8);
        if (bits == 1)
            add(&to, "and.b64 %%d%u, %%d%u, 1;\nsetp.ne.u64 %%p%u, %%d%u, 0;\n", i + 10, i + 10, i + 10,
                i + 10);
        else if (bits != 64)
            add(&to, "cvt.u%u.u64 %%%s%u, %%d%u;\n", bits, class_of(bits), i + 10, i + 10);
    }
    if (is_code)
        add_code(&to, form);
    else
        add_instruction(&to, form);
    add(&to, "ld.param.u64 %%d9, [o];\nadd.u64 %%d9, %%d9, %%d0;\n");
    for (unsigned i = 0; i < form->n_results && i < form->n_types; i++) {
        unsigned bits = width(form->types[i]);
        if (bits == 1)
            add(&to, "selp.u64 %%d%u, 1, 0, %%p%u;\n", i + 10, i + 10);
        else if (bits != 64)
            add(&to, "cvt.u64.u%u %%d%u, %%%s%u;\n", bits, i + 10, class_of(bits), i + 10);
        add(&to, "st.global.u64 [%%d9+%u], %%d%u;\n", i * FORM_THREADS * 8, i + 10);
    }
    add(&to, "ret;\n}\n");
}

/* ---- operands ---- */

static uint64_t mix(uint64_t z)
{
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ z >> 27) * 0x94d049bb133111ebull;
    return z ^ z >> 31;
}

static const uint32_t singles[] = {
    0x00000000, 0x80000000, 0x00000001, 0x80000001, 0x007fffff, 0x807fffff, 0x00800000, 0x80800000,
    0x00800001, 0x3f800000, 0xbf800000, 0x3f800001, 0x3f7fffff, 0x3f000000, 0x3fc00000, 0x40200000,
    0xc0200000, 0x33800000, 0x4b000000, 0x4b7fffff, 0x4b800000, 0x4effffff, 0x4f000000, 0xcf000000,
    0x4f7fffff, 0x4f800000, 0x5f000000, 0x7f7fffff, 0xff7fffff, 0x7f800000, 0xff800000, 0x7fc00000,
    0xffc12345, 0x7f800001, 0x42ff0000, 0x477fe000,
};
static const uint64_t doubles[] = {
    0x0000000000000000, 0x8000000000000000, 0x0000000000000001, 0x800fffffffffffff, 0x0010000000000000,
    0x3ff0000000000000, 0xbff0000000000000, 0x3ff0000000000001, 0x3fefffffffffffff, 0x3fe0000000000000,
    0x3ff8000000000000, 0x4004000000000000, 0xc004000000000000, 0x3ca0000000000000, 0x4330000000000000,
    0x433fffffffffffff, 0x41dfffffffc00000, 0x41e0000000000000, 0xc1e0000000000000, 0x41efffffffe00000,
    0x43e0000000000000, 0xc3e0000000000000, 0x43f0000000000000, 0x7fefffffffffffff, 0xffefffffffffffff,
    0x7ff0000000000000, 0xfff0000000000000, 0x7ff8000000000000, 0xfff8000000012345, 0x7ff0000000000001,
    0x47efffffe0000000, 0x47effffff0000000, 0x36a0000000000000, 0x380fffffe0000000, 0x3810000000000000,
};
static const uint16_t halves[] = {
    0x0000, 0x8000, 0x0001, 0x8001, 0x03ff, 0x0400, 0x8400, 0x3c00, 0xbc00, 0x3c01,
    0x3bff, 0x3800, 0x3e00, 0x4100, 0xc100, 0x1400, 0x6400, 0x67ff, 0x7bff, 0xfbff,
    0x7c00, 0xfc00, 0x7e00, 0xfe12, 0x7c01, 0x5640, 0x3555, 0x77ff, 0x0201, 0x87ff,
};
static const uint64_t integers[] = {
    0,
    1,
    2,
    3,
    7,
    8,
    15,
    16,
    31,
    32,
    33,
    63,
    64,
    65,
    127,
    128,
    255,
    256,
    0x7fff,
    0x8000,
    0xffff,
    0x10000,
    0x7fffffff,
    0x80000000,
    0xfffffffe,
    0xffffffff,
    0x100000000,
    0x7fffffffffffffff,
    0x8000000000000000,
    0xffffffffffffffff,
    0xfffffffffffffffe,
    0x0102030405060708,
    0x123456789abcdef0,
    0x1000000,
    0x1000001,
    0x20000000000001,
};

/* ---- operands of matrix instructions ---- */

/* A number with that many bits of mantissa and exponent. What a warp's are like depends on its class, so that
 * sums of products meet carries, shifts, cancellation, subnormals and the ends of the range. */
static uint32_t matrix_number(unsigned mantissa, unsigned exponent, unsigned class, uint64_t random)
{
    static const uint8_t steps[] = {0, 5, 11, 13};
    const unsigned bias = (1u << (exponent - 1)) - 1, span = bias - 1 < 24 ? bias - 1 : 24;
    const unsigned pick = (unsigned)(random >> 40) & 255;
    uint32_t fraction = (uint32_t)random & ((1u << mantissa) - 1), e = bias - 2 + pick % 4;
    switch (class) {
    case 1: /* any exponent */
        e = bias - span + pick % (2 * span + 1);
        break;
    case 2: /* mostly zeros */
        e = pick % 8 ? 0 : e;
        fraction = pick % 8 ? 0 : fraction;
        break;
    case 3: /* far from each other */
        e = bias - (steps[pick % 4] < span ? steps[pick % 4] : span);
        break;
    case 4: /* subnormal and not */
        e = pick % 2 ? 0 : bias + pick / 2 % 4;
        break;
    case 5: /* few bits, or all */
        fraction = pick & 16 ? 0 : pick & 32 ? (1u << mantissa) - 1 : 1u << (mantissa - 1);
        e = mantissa == 23 ? bias - span + pick % (2 * span + 1) : e;
        break;
    case 6: /* infinities, NaN, the largest */
        if (pick % 64 == 0) {
            e = (1u << exponent) - 1 - (pick >> 6) % 2;
            fraction = pick & 128 ? 0 : fraction;
        }
        break;
    case 7: /* powers of two */
        e = bias - span + pick % (2 * span + 1);
        fraction = 0;
        break;
    default: /* near each other */
        break;
    }
    return (uint32_t)(random >> 63) << (mantissa + exponent) | e << mantissa | fraction;
}

static const struct {
    const char *type;
    unsigned mantissa, exponent;
} matrix_types[] = {{"mf16x2", 10, 5}, {"mbf16x2", 7, 8}, {"mtf32", 23, 8},
                    {"mf32", 23, 8},   {"me4m3", 3, 4},   {"me5m2", 2, 5}};

static uint64_t matrix_operand(const char *type, unsigned thread, uint64_t random)
{
    const unsigned class = thread / 32 % 8;
    uint64_t bits = 0;
    if (strcmp(type, "mf64") == 0) /* single precision's range with all of double's bits */
        return (random & 0x800fffffffffffff) | (0x3ffull - 8 + (random >> 56) % 16) << 52;
    if (strcmp(type, "mb32") == 0) /* of integers: any, or each byte one of the extremes */
        return class & 1 ? random & 0xffffffff
                         : (random & 0x80808080) | (((random >> 32) & 0x01010101) * 0x7f);
    if (strncmp(type, "meta", 4) == 0) { /* which two of four elements, or which one of two, are not zero */
        static const char pairs[] = {0x4, 0x8, 0xc, 0x9, 0xd, 0xe}, singles_of_two[] = {0xe, 0x4};
        for (unsigned at = 0; at < 32; at += 4, random >>= 4)
            bits |= (uint64_t)(type[4] ? singles_of_two[random & 1] : pairs[(random & 15) % 6]) << at;
        return bits;
    }
    for (size_t i = 0; i < COUNT(matrix_types); i++) {
        if (strcmp(matrix_types[i].type, type) != 0)
            continue;
        const unsigned each = 1 + matrix_types[i].mantissa + matrix_types[i].exponent;
        for (unsigned at = 0; at < 32; at += each)
            bits |= (uint64_t)matrix_number(matrix_types[i].mantissa, matrix_types[i].exponent, class,
                                            mix(random + at))
                    << at;
    }
    return bits;
}

uint64_t form_memory(unsigned word)
{
    return mix(word + 0x5851f42d4c957f2dull);
}

uint64_t form_operand(const form_line *form, unsigned index, unsigned thread)
{
    const char *type = form->types[index];
    const unsigned operand = index - form->n_results + 1;
    const unsigned n = 36; /* of tricky values taken in turn */
    uint64_t random = mix(thread * 8 + operand + 0x9e3779b97f4a7c15ull);
    unsigned choice = operand == 1   ? thread % n
                      : operand == 2 ? thread / n % n
                                     : (unsigned)(random >> 32) % n;
    int tricky = thread < n * n;
    if (type[0] == 'm')
        return matrix_operand(type, thread, mix(random + operand));
    if (strcmp(type, "f32") == 0 || strcmp(type, "tf32") == 0)
        /* Random ones have exponents near each other, so that results are rounded. */
        return tricky ? singles[choice % COUNT(singles)]
                      : (random & 0x807fffff) | (0x3f000000 + (random >> 40 & 15) * 0x00800000);
    if (strcmp(type, "f64") == 0)
        return tricky ? doubles[choice % COUNT(doubles)]
                      : (random & 0x800fffffffffffff) |
                            (0x3fe0000000000000 + (random >> 53 & 31) * 0x0010000000000000);
    if (strstr(type, "f16"))
        return tricky ? halves[choice % COUNT(halves)] | (uint64_t)halves[(choice + 7) % COUNT(halves)] << 16
                      : random;
    return tricky ? integers[choice % COUNT(integers)] : random >> (random & 63);
}

/* Which of two double NaN an operation passes on is hardware's business. */
static int is_open(const form_line *form, unsigned thread)
{
    unsigned n = 0;
    for (unsigned i = form->n_results; i < form->n_types; i++)
        n += strcmp(form->types[i], "f64") == 0 && (form_operand(form, i, thread) & INT64_MAX) > 0x7ffull
                                                                                                     << 52;
    return n > 1;
}

uint64_t form_hash(const form_line *form, const uint64_t *results)
{
    uint64_t hash = 14695981039346656037ull;
    for (unsigned i = 0; i < form->n_results * FORM_THREADS; i++)
        for (unsigned k = 0; k < 64 && !is_open(form, i % FORM_THREADS); k += 8)
            hash = (hash ^ (results[i] >> k & 255)) * 1099511628211ull;
    return hash ? hash : 1;
}

void form_fill(const form_line *form, uint64_t *operands, uint64_t *words)
{
    for (unsigned k = form->n_results; k < form->n_types; k++)
        for (unsigned i = 0; i < FORM_THREADS; i++)
            operands[(k - form->n_results) * FORM_THREADS + i] = form_operand(form, k, i);
    for (unsigned i = 0; i < FORM_THREADS * FORM_MEMORY / 8; i++)
        words[i] = form_memory(i);
}
