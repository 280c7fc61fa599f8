/* SPDX-License-Identifier: Apache-2.0 */
#include "forms.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

int form_parse(const char *line, form_line *to)
{
    char types[80], hash[32] = "";
    memset(to, 0, sizeof *to);
    if (line[0] == '#' || sscanf(line, "%63[^\t]\t%79[^\t\n]\t%31s", to->spelling, types, hash) < 2)
        return 0;
    for (char *at = strtok(types, " "); at && to->n_types < COUNT(to->types); at = strtok(NULL, " "))
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

void form_ptx(const form_line *form, char *to, size_t bytes)
{
    char *at = to, *end = to + bytes;
#define ADD(...) at += snprintf(at, at < end ? (size_t)(end - at) : 0, __VA_ARGS__)
    ADD(".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry form(.param .u64 o, .param .u64 a, "
        ".param .u64 b, "
        ".param .u64 c, .param .u64 d)\n{\n.reg .b16 %%h<8>; .reg .b32 %%r<16>; .reg .b64 %%d<16>; .reg "
        ".pred %%p<8>;\n"
        "mov.u32 %%r8, %%tid.x;\nmov.u32 %%r9, %%ntid.x;\nmov.u32 %%r10, %%ctaid.x;\nmad.lo.u32 %%r8, %%r9, "
        "%%r10, %%r8;\n"
        "mul.wide.u32 %%d8, %%r8, 8;\n");
    for (unsigned i = 1; i < form->n_types; i++) {
        ADD("ld.param.u64 %%d9, [%c];\nadd.u64 %%d9, %%d9, %%d8;\nld.global.u64 %%d%u, [%%d9];\n",
            "abcd"[i - 1], i);
        unsigned bits = width(form->types[i]);
        if (bits == 1)
            ADD("and.b64 %%d%u, %%d%u, 1;\nsetp.ne.u64 %%p%u, %%d%u, 0;\n", i, i, i, i);
        else if (bits != 64)
            ADD("cvt.u%u.u64 %%%c%u, %%d%u;\n", bits, bits == 16 ? 'h' : 'r', i, i);
    }
    ADD("%s ", form->spelling);
    for (unsigned i = 0; i < form->n_types; i++) {
        unsigned bits = width(form->types[i]);
        ADD("%s%%%c%u", i ? ", " : "", bits == 1 ? 'p' : bits == 16 ? 'h' : bits == 32 ? 'r' : 'd', i);
    }
    unsigned bits = width(form->types[0]);
    ADD(";\n");
    if (bits == 1)
        ADD("selp.u64 %%d0, 1, 0, %%p0;\n");
    else if (bits != 64)
        ADD("cvt.u64.u%u %%d0, %%%c0;\n", bits, bits == 16 ? 'h' : 'r');
    ADD("ld.param.u64 %%d9, [o];\nadd.u64 %%d9, %%d9, %%d8;\nst.global.u64 [%%d9], %%d0;\nret;\n}\n");
#undef ADD
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

uint64_t form_operand(const form_line *form, unsigned operand, unsigned thread)
{
    const char *type = form->types[operand];
    const unsigned n = 36; /* of tricky values taken in turn */
    uint64_t random = mix(thread * 8 + operand + 0x9e3779b97f4a7c15ull);
    unsigned choice = operand == 1   ? thread % n
                      : operand == 2 ? thread / n % n
                                     : (unsigned)(random >> 32) % n;
    int tricky = thread < n * n;
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
    for (unsigned i = 1; i < form->n_types; i++)
        n += strcmp(form->types[i], "f64") == 0 && (form_operand(form, i, thread) & INT64_MAX) > 0x7ffull
                                                                                                     << 52;
    return n > 1;
}

uint64_t form_hash(const form_line *form, const uint64_t results[FORM_THREADS])
{
    uint64_t hash = 14695981039346656037ull;
    for (unsigned i = 0; i < FORM_THREADS; i++)
        for (unsigned k = 0; k < 64 && !is_open(form, i); k += 8)
            hash = (hash ^ (results[i] >> k & 255)) * 1099511628211ull;
    return hash ? hash : 1;
}
