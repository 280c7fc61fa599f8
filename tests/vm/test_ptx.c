/* SPDX-License-Identifier: Apache-2.0 */
/* Single instructions and shapes of code written by hand. Every kernel has one parameter: an array of words.
 */
#include "vm_run.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HEAD ".version 8.5\n.target sm_90\n.address_size 64\n"
#define ENTRY                                                                                               \
    ".visible .entry k(.param .u64 o)\n{\n.reg .b32 %r<32>; .reg .b64 %d<16>; .reg .pred %p<8>; .reg .b16 " \
    "%h<8>;\n"                                                                                              \
    "mov.u32 %r0, %tid.x;\nld.param.u64 %d0, [o];\nmul.wide.u32 %d1, %r0, 4;\nadd.u64 %d1, %d0, %d1;\n"

static vm_module module;
static sc_fault fault;
static uint32_t *words;

static void load(const char *text)
{
    ck_assert_msg(vm_load_text(&module, text, strlen(text)), "%s", module.problem);
    words = (uint32_t *)(uintptr_t)vm_alloc(&module, 4096);
}

static bool run(unsigned threads)
{
    uint64_t params[] = {(uint64_t)(uintptr_t)words};
    return vm_launch(&module, "k", (unsigned[3]){1, 1, 1}, (unsigned[3]){threads, 1, 1}, params, &fault,
                     NULL);
}

static void unload(void)
{
    vm_unload(&module);
}

#define RUN(threads) ck_assert_msg(run(threads), "%s", fault.text)

START_TEST(guards)
{
    load(HEAD ENTRY
         "mov.u32 %r1, 5;\nsetp.lt.u32 %p0, %r0, 3;\n@%p0 add.u32 %r1, %r1, %r0;\n@!%p0 mov.u32 %r1, "
         "%laneid;\n"
         "@%p0 st.global.u32 [%d1], %r1;\n@!%p0 bra L;\nret;\nL: setp.eq.u32 %p1, %r0, 7;\n@%p1 ret;\n"
         "add.u32 %r1, %r1, 100;\nst.global.u32 [%d1], %r1;\nret;\n}\n");
    memset(words, 0xff, 4096);
    RUN(20);
    for (unsigned i = 0; i < 20; i++)
        ck_assert_uint_eq(words[i], i < 3 ? 5 + i : i == 7 ? 0xffffffff : i + 100);
    ck_assert_uint_eq(words[20], 0xffffffff);
}
END_TEST

START_TEST(indexed_branch)
{
    load(HEAD ENTRY "and.b32 %r1, %r0, 3;\nts: .branchtargets A, B, C, A;\nbrx.idx %r1, ts;\n"
                    "A: mov.u32 %r2, 10; bra E;\nB: mov.u32 %r2, 20; bra E;\nC: mov.u32 %r2, 30;\nE: "
                    "st.global.u32 [%d1], %r2;\nret;\n}\n");
    RUN(32);
    const unsigned wanted[] = {10, 20, 30, 10};
    for (unsigned i = 0; i < 32; i++)
        ck_assert_uint_eq(words[i], wanted[i % 4]);
}
END_TEST

START_TEST(vectors)
{
    load(HEAD ENTRY
         "mul.wide.u32 %d2, %r0, 16;\nadd.u64 %d2, %d0, %d2;\nld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%d2];\n"
         "st.global.v2.b32 [%d2], {%r4, %r3};\nmov.b64 %d3, {%r2, %r1};\nst.global.b64 [%d2+8], "
         "%d3;\nret;\n}\n");
    for (unsigned i = 0; i < 128; i++)
        words[i] = i;
    RUN(32);
    for (unsigned i = 0; i < 32; i++) {
        ck_assert_uint_eq(words[4 * i], 4 * i + 3);
        ck_assert_uint_eq(words[4 * i + 1], 4 * i + 2);
        ck_assert_uint_eq(words[4 * i + 2], 4 * i + 1);
        ck_assert_uint_eq(words[4 * i + 3], 4 * i);
    }
    ck_assert(!run(257)); /* past the end: 16 bytes a thread */
    ck_assert_int_eq(fault.kind, SC_FAULT_OUT_OF_BOUNDS);
    ck_assert_uint_eq(fault.thread[0], 256);
}
END_TEST

/* A vector register by name, by component, and as the halves of a wider one. */
START_TEST(vector_registers)
{
    load(HEAD ENTRY
         ".reg .v4 .b32 %v; .reg .v2 .b32 %w<2>;\nmul.wide.u32 %d2, %r0, 16;\nadd.u64 %d2, %d0, %d2;\n"
         "ld.global.v4.u32 %v, [%d2];\nadd.u32 %w1.x, %v.w, %v.r;\nsub.u32 %w1.y, %v.b, %v.g;\n"
         "mov.b64 %d3, %w1;\nst.global.v2.b32 [%d2], %w1;\nst.global.b64 [%d2+8], %d3;\nret;\n}\n");
    for (unsigned i = 0; i < 128; i++)
        words[i] = i * i;
    RUN(32);
    for (unsigned i = 0; i < 32; i++)
        for (unsigned k = 0; k < 4; k++) {
            const unsigned a = 4 * i, b = a + 1, c = a + 2, d = a + 3;
            ck_assert_uint_eq(words[4 * i + k], k % 2 ? c * c - b * b : d * d + a * a);
        }
}
END_TEST

/* An alias is its function: called, and as an address. Bytes and words of addresses are theirs. */
START_TEST(aliases_and_addresses)
{
    load(
        HEAD
        ".visible .func (.param .b32 r) f(.param .b32 a)\n{ .reg .b32 %x; ld.param.b32 %x, [a];"
        " add.u32 %x, %x, 7; st.param.b32 [r], %x; ret; }\n.visible .func (.param .b32 r) g(.param .b32 a);\n"
        ".global .u32 x[2] = {5, 6}; .global .u64 whole = x+4; .global .u32 low = x+4;\n"
        ".global .align 8 .u8 bytes[8] = {0xff(x+4), 0xff00(x+4), 0xff0000(x+4), 0xff000000(x+4), "
        "0xff00000000(x+4),"
        " 0xff0000000000(x+4), 0xff000000000000(x+4), 0xff00000000000000(x+4)};\n.alias g, f;\n" ENTRY
        ".param .b32 a, b;\nst.param.b32 [a], 35;\ncall (b), g, (a);\nld.param.b32 %r1, [b];\n"
        "st.global.b32 [%d0], %r1;\nmov.u64 %d2, g;\nmov.u64 %d3, f;\nP: .callprototype (.param .b32 _) _ "
        "(.param .b32 _);\ncall (b), %d2, (a), P;\nld.param.b32 %r1, [b];\nst.global.b32 [%d0+4], %r1;\n"
        "sub.u64 %d2, %d2, %d3;\nst.global.b64 [%d0+8], %d2;\nld.global.u64 %d4, [whole];\n"
        "ld.global.u32 %r2, [low];\ncvt.u32.u64 %r6, %d4;\nsub.u32 %r2, %r2, %r6;\nst.global.b32 [%d0+16], "
        "%r2;\n"
        "mov.u64 %d5, bytes;\nld.global.u32 %r3, [bytes];\nld.global.u32 %r4, [bytes+4];\n"
        "mov.b64 %d6, {%r3, %r4};\nld.u32 %r5, [%d6];\nst.global.b32 [%d0+20], %r5;\nret;\n}\n");
    RUN(1);
    const unsigned wanted[] = {42, 42, 0, 0, 0, 6};
    for (unsigned i = 0; i < 6; i++)
        ck_assert_uint_eq(words[i], wanted[i]);
}
END_TEST

/* Addresses whose end lies past the end of all addresses: NULL - 4, and lanes in a row there after a good
 * access at the same place. */
START_TEST(addresses_that_wrap)
{
    static const char *const accesses[] = {"ld.global.u32 %r1, [%d2];", "st.global.u32 [%d2], %r1;",
                                           "atom.global.add.u32 %r1, [%d2], 1;", "ld.global.f32 %r1, [%d2];",
                                           "ld.u32 %r1, [%d2];"};
    char text[2000];
    snprintf(text, sizeof text, "%s%s%s%d%s",
             HEAD ENTRY "mul.wide.u32 %d3, %r0, 4;\nadd.u64 %d2, %d0, %d3;\nmov.u32 %r2, 0;\nagain:\n",
             accesses[_i / 2], "\nadd.s64 %d2, %d3, -", _i % 2 ? 128 : 4,
             ";\nadd.u32 %r2, %r2, 1;\nsetp.lt.u32 %p1, %r2, 2;\n@%p1 bra again;\nret;\n}\n");
    load(text);
    ck_assert(!run(_i % 2 ? 32 : 1));
    ck_assert_int_eq(fault.kind, SC_FAULT_OUT_OF_BOUNDS);
}
END_TEST

/* Lanes in a row, at one address, backwards and scattered, up to the end of the memory, past it, and
 * misaligned; twice, so that the second access knows the allocation. */
static const struct {
    const char *load;
    unsigned bytes; /* of the memory: shared, or the words */
} loads[] = {
    {"ld.shared.u32 %r8, [%r7+16];", 512},
    {"ld.shared.u32 %r8, [%d5+16];", 512},
    {"mov.u64 %d6, s;\ncvta.shared.u64 %d6, %d6;\nadd.s64 %d6, %d6, %d3;\nld.u32 %r8, [%d6+16];", 512},
    {"ld.global.u32 %r8, [%d4+16];", 4096},
};

static void check_lanes(unsigned bytes, int step, int first)
{
    enum { STEP = 512, FIRST, RESULT = 768 };
    for (unsigned i = 0; i < RESULT; i++)
        words[i] = 1000 + i;
    words[STEP] = (unsigned)step;
    words[FIRST] = (unsigned)(first - 16);
    const bool ran = run(32);
    for (unsigned lane = 0; lane < 32; lane++) {
        const int at = first + (int)lane * step;
        const bool misaligned = at % 4 != 0, outside = at < 0 || at + 4 > (int)bytes;
        if (!misaligned && !outside)
            continue;
        ck_assert_msg(!ran, "step %d, first %d", step, first);
        ck_assert_int_eq(fault.kind, misaligned ? SC_FAULT_MISALIGNED : SC_FAULT_OUT_OF_BOUNDS);
        ck_assert_uint_eq(fault.thread[0], lane);
        return;
    }
    ck_assert_msg(ran, "%s", fault.text);
    for (unsigned lane = 0; lane < 32; lane++)
        ck_assert_uint_eq(words[RESULT + lane], words[(first + (int)lane * step) / 4]);
}

START_TEST(shapes_of_addresses)
{
    static const int steps[] = {0, 4, 8, -4, 12, 2, 1};
    kr__text text = {0};
    kr__text_add(&text, "%s",
                 HEAD ENTRY
                 ".shared .align 16 .b8 s[512];\n"
                 "ld.global.s32 %r1, [%d0+2048];\nld.global.s32 %r2, [%d0+2052];\n"
                 "mad.lo.s32 %r3, %r0, %r1, %r2;\ncvt.s64.s32 %d3, %r3;\nadd.s64 %d4, %d0, %d3;\n"
                 "mov.u64 %d5, s;\nadd.s64 %d5, %d5, %d3;\nmov.u32 %r4, s;\nadd.s32 %r7, %r4, %r3;\n"
                 "mad.lo.s32 %r4, %r0, 4, %r4;\nadd.u32 %r5, %r0, 1000;\nst.shared.u32 [%r4], %r5;\n"
                 "add.u32 %r5, %r0, 1032;\nst.shared.u32 [%r4+128], %r5;\n"
                 "add.u32 %r5, %r0, 1064;\nst.shared.u32 [%r4+256], %r5;\n"
                 "add.u32 %r5, %r0, 1096;\nst.shared.u32 [%r4+384], %r5;\n"
                 "mov.u32 %r6, 0;\nagain: bar.sync 0;\n");
    kr__text_add(&text, "%s%s", loads[_i].load,
                 "\nadd.u32 %r6, %r6, 1;\nsetp.lt.u32 %p1, %r6, 2;\n@%p1 bra again;\n"
                 "st.global.u32 [%d1+3072], %r8;\nret;\n}\n");
    load(text.data);
    kr__text_free(&text);
    const int bytes = (int)loads[_i].bytes;
    for (unsigned i = 0; i < KR_COUNT(steps); i++) {
        const int last = bytes - 4 - 31 * (steps[i] > 0 ? steps[i] : 0);
        const int firsts[] = {0, 128, 126, last, last + 4, -4, bytes, bytes - 4};
        for (unsigned k = 0; k < KR_COUNT(firsts); k++)
            check_lanes((unsigned)bytes, steps[i], firsts[k]);
    }
}
END_TEST

/* Every atomic gives in shared memory what it gives in global memory. */
static const struct {
    const char *name, *type;
} shared_atomics[] = {
    {"add.u32", "b32"},  {"add.u64", "b64"},  {"add.f32", "b32"},         {"add.f64", "b64"},
    {"min.s32", "b32"},  {"min.u32", "b32"},  {"min.s64", "b64"},         {"min.u64", "b64"},
    {"max.s32", "b32"},  {"max.u32", "b32"},  {"max.s64", "b64"},         {"max.u64", "b64"},
    {"inc.u32", "b32"},  {"dec.u32", "b32"},  {"and.b32", "b32"},         {"and.b64", "b64"},
    {"or.b32", "b32"},   {"or.b64", "b64"},   {"xor.b32", "b32"},         {"xor.b64", "b64"},
    {"exch.b32", "b32"}, {"exch.b64", "b64"}, {"add.noftz.f16x2", "b32"}, {"cas.b32", "b32"},
    {"cas.b64", "b64"},
};

/* Words: 2 a thread, the second operands; at 256 the old values; at 600 the place before, at 602 after. */
static void run_atomics(const char *space, unsigned which)
{
    const bool wide = !strcmp(shared_atomics[which].type, "b64"),
               cas = !strncmp(shared_atomics[which].name, "cas", 3);
    kr__text text = {0};
    kr__text_add(&text, "%s%s",
                 HEAD ENTRY ".shared .align 8 .b64 s;\nmul.wide.u32 %d2, %r0, 8;\nadd.u64 %d2, %d0, %d2;\n"
                            "ld.global.b64 %d3, [%d2];\ncvt.u32.u64 %r3, %d3;\nadd.u64 %d4, %d3, 1;\n"
                            "cvt.u32.u64 %r4, %d4;\nld.global.b64 %d5, [%d0+2400];\nmov.u64 %d7, s;\n"
                            "st.shared.b64 [%d7], %d5;\nst.global.b64 [%d0+2408], %d5;\n",
                 strcmp(space, "shared") ? "add.u64 %d7, %d0, 2408;\n" : "");
    kr__text_add(&text, "atom.%s.%s %s, [%%d7], %s%s%s;\n", space, shared_atomics[which].name,
                 wide ? "%d6" : "%r6", wide ? "%d3" : "%r3", cas ? ", " : "",
                 !cas   ? ""
                 : wide ? "%d4"
                        : "%r4");
    kr__text_add(&text,
                 "st.global.%s [%%d2+1024], %s;\nld.%s.b64 %%d5, [%%d7];\nst.global.b64 [%%d0+2408], %%d5;\n",
                 shared_atomics[which].type, wide ? "%d6" : "%r6", space);
    kr__text_add(&text, "ret;\n}\n");
    load(text.data);
    kr__text_free(&text);
    for (unsigned i = 0; i < 32; i++)
        ((uint64_t *)words)[i] = cas ? i : 0x3ff0100080402010u * (i + 1) >> (i & 3);
    ((uint64_t *)words)[300] = cas ? 3 : 0x3000000030000001u;
    RUN(32);
}

START_TEST(atomics_in_shared_memory)
{
    uint32_t in_global[1024];
    run_atomics("global", (unsigned)_i);
    memcpy(in_global, words, sizeof in_global);
    vm_unload(&module);
    run_atomics("shared", (unsigned)_i);
    ck_assert_mem_eq(words, in_global, sizeof in_global);
    ck_assert_msg(words[602] != words[600] || words[603] != words[601], "nothing was written");
}
END_TEST

/* shfl.sync with every lane's own distance, clamp and segment, as the PTX ISA's pseudocode has it. Words: b
 * and c of each lane, then its result and whether it came from another lane. */
static const char *const shuffles[] = {"up", "down", "bfly", "idx"};

START_TEST(shuffle)
{
    kr__text text = {0};
    kr__text_add(
        &text, "%s%s%s%s",
        HEAD ENTRY "ld.global.u32 %r1, [%d1];\nld.global.u32 %r2, [%d1+128];\nadd.u32 %r3, %r0, 100;\n"
                   "mov.u32 %r4, 7;\nshfl.sync.",
        shuffles[_i], ".b32 %r4|%p1, %r3, %r1, %r2, -1;\n",
        "st.global.u32 [%d1+256], %r4;\nselp.u32 %r5, 1, 0, %p1;\nst.global.u32 [%d1+384], %r5;\nret;\n}\n");
    load(text.data);
    kr__text_free(&text);
    for (unsigned round = 0; round < 500; round++) {
        for (unsigned i = 0; i < 64; i++)
            words[i] = (round * 64 + i) * 2654435761u >> (round & 15);
        RUN(32);
        for (int lane = 0; lane < 32; lane++) {
            const int b = words[lane] & 31, clamp = words[32 + lane] & 31,
                      segment = words[32 + lane] >> 8 & 31;
            const int most = (lane & segment) | (clamp & ~segment), least = lane & segment;
            const int from[] = {lane - b, lane + b, lane ^ b, least | (b & ~segment)};
            const bool valid = _i == 0 ? from[0] >= most : from[_i] <= most;
            ck_assert_int_eq(words[64 + lane], 100 + (valid ? from[_i] : lane));
            ck_assert_int_eq(words[96 + lane], valid);
        }
    }
}
END_TEST

/* An address and an offset that only together are inside: 2^31 each, in 32 bits. */
START_TEST(shared_addresses_wrap)
{
    load(HEAD ENTRY
         ".shared .align 4 .b8 s[256];\nshl.b32 %r1, %r0, 2;\nmov.u32 %r2, s;\nadd.u32 %r1, %r1, %r2;\n"
         "st.shared.u32 [%r1], %r0;\nxor.b32 %r3, %r0, 1;\nshl.b32 %r3, %r3, 2;\nadd.u32 %r3, %r3, %r2;\n"
         "add.u32 %r3, %r3, 0x80000000;\nld.shared.u32 %r4, [%r3+-2147483648];\n"
         "st.global.u32 [%d1], %r4;\nret;\n}\n");
    RUN(32);
    for (unsigned i = 0; i < 32; i++)
        ck_assert_uint_eq(words[i], i ^ 1);
}
END_TEST

/* A function that takes and gives less than the call through the pointer says: nothing is copied past its
 * end. */
START_TEST(calls_of_another_shape)
{
    static const char *const shapes[][2] = {
        {"", "_ (.param .align 16 .b8 _[65536]);\nmov.u64 %d1, f;\ncall %d1, (big), t;\n"},
        {"(.param .b32 r) ", "(.param .align 16 .b8 _[65536]) _ (.param .b32 _);\n"
                             "mov.u64 %d1, f;\ncall (big), %d1, (word), t;\n"}};
    char text[2000];
    snprintf(text, sizeof text,
             HEAD
             ".func %sf(.param .b32 a) { ret; }\n.visible .entry k(.param .u64 o)\n{\n.reg .b64 %%d<2>;\n"
             ".param .align 16 .b8 big[65536];\n.param .b32 word;\nt: .callprototype %sret;\n}\n",
             shapes[_i][0], shapes[_i][1]);
    load(text);
    ck_assert(!run(32));
    ck_assert_int_eq(fault.kind, SC_FAULT_ILLEGAL_INSTRUCTION);
}
END_TEST

/* Shared memory in the words of ptxas 13.0, which holds local memory to no limit; the programming guide does.
 */
START_TEST(too_much_memory)
{
    static const struct {
        const char *body, *problem;
    } cases[] = {
        {".shared .b8 s[49152];\nst.shared.u8 [s], 1;\n", NULL},
        {".shared .b8 s[49153];\nst.shared.u8 [s], 1;\n",
         "ptxas error   : Entry function 'k' uses too much shared data (0xc001 bytes, 0xc000 max)\n"},
        {".local .b8 l[524288];\nst.local.u8 [l+524287], 1;\n", NULL},
        {".local .b8 l[524288], m;\nst.local.u8 [l+524287], 1;\n",
         "too much local data (0x80001 bytes, 0x80000 max)"},
        {".param .b8 a[900000000], b[900000000];\ncall f, (a, b);\n", "uses too much local data"},
    };
    char text[2000];
    snprintf(text, sizeof text,
             HEAD ".func f(.param .b8 a[900000000], .param .b8 b[900000000]) { ret; }\n"
                  ".visible .entry k(.param .u64 o)\n{\n%sret;\n}\n",
             cases[_i].body);
    if (!cases[_i].problem) {
        load(text);
        RUN(32);
        return;
    }
    ck_assert(!vm_load_text(&module, text, strlen(text)));
    ck_assert_msg(strstr(module.problem, cases[_i].problem), "%s", module.problem);
}
END_TEST

/* The n-th set bit, where -n is no number (0 on an H200); and a test that the assembler lets one leave out.
 */
START_TEST(least_and_nothing)
{
    load(
        HEAD ENTRY
        "mov.u32 %r1, -1;\nmov.u32 %r2, 31;\nfns.b32 %r3, %r1, %r2, -2147483648;\nst.global.u32 [%d1], %r3;\n"
        "fns.b32 %r3, %r1, %r2, -32;\nst.global.u32 [%d1+4], %r3;\nret;\n}\n");
    RUN(1);
    ck_assert_uint_eq(words[0], 0);
    ck_assert_uint_eq(words[1], 0);
    unload();
    const char *text = HEAD ENTRY "testp.f32 %p0, %r0;\nret;\n}\n";
    ck_assert(!vm_load_text(&module, text, strlen(text)));
    ck_assert_int_eq(module.problem_kind, PTX_PROBLEM_UNSUPPORTED);
    ck_assert_msg(strstr(module.problem, "testp.f32"), "%s", module.problem);
}
END_TEST

START_TEST(narrow_values)
{
    load(HEAD ENTRY "ld.global.s8 %r1, [%d1];\nld.global.u8 %r2, [%d1+1];\nld.global.s16 %r3, "
                    "[%d1+2];\nld.global.s8 %d2, [%d1];\n"
                    "cvt.u32.u64 %r4, %d2;\nshr.u64 %d2, %d2, 32;\ncvt.u32.u64 %r5, %d2;\nadd.s32 %r1, %r1, "
                    "%r2;\nadd.s32 %r1, %r1, %r3;\n"
                    "add.s32 %r1, %r1, %r4;\nadd.s32 %r1, %r1, %r5;\nst.global.u32 [%d1], %r1;\nret;\n}\n");
    words[0] = 0xfffe80f0; /* -16, 0x80, -2 */
    RUN(1);
    ck_assert_int_eq((int)words[0], -16 + 0x80 - 2 - 16 - 1);
}
END_TEST

START_TEST(pairs_of_predicates)
{
    load(HEAD ENTRY "setp.gt.u32 %p0, %r0, 3;\nsetp.lt.and.u32 %p1|%p2, %r0, 8, %p0;\nselp.u32 %r1, 1, 0, "
                    "%p1;\nselp.u32 %r2, 2, 0, %p2;\n"
                    "setp.eq.or.u32 %p3, %r0, 30, !%p0;\nxor.pred %p4, %p3, %p1;\nnot.pred %p5, "
                    "%p4;\nselp.u32 %r3, 4, 0, %p5;\n"
                    "or.b32 %r1, %r1, %r2;\nor.b32 %r1, %r1, %r3;\nst.global.u32 [%d1], %r1;\nret;\n}\n");
    RUN(32);
    for (unsigned t = 0; t < 32; t++) {
        bool p0 = t > 3, p1 = t < 8 && p0, p2 = !(t < 8) && p0, p3 = t == 30 || !p0;
        ck_assert_uint_eq(words[t], (p1 ? 1u : 0) | (p2 ? 2u : 0) | (p3 != p1 ? 0 : 4u));
    }
}
END_TEST

START_TEST(windows)
{
    load(HEAD ".visible .entry k(.param .u64 o)\n{\n.reg .b32 %r<8>; .reg .b64 %d<8>; .reg .pred "
              "%p<8>;\n.shared .align 4 .b8 s[64];\n"
              ".local .align 4 .b8 l[16];\nld.param.u64 %d0, [o];\nmov.u64 %d1, s;\ncvta.shared.u64 %d1, "
              "%d1;\nmov.u64 %d2, l;\n"
              "cvta.local.u64 %d2, %d2;\nst.u32 [%d1+4], 11;\nst.u32 [%d2+8], 22;\nld.shared.u32 %r1, "
              "[s+4];\nld.local.u32 %r2, [l+8];\n"
              "isspacep.shared %p0, %d1;\nisspacep.local %p1, %d1;\nisspacep.global %p2, %d0;\nselp.u32 %r3, "
              "100, 0, %p0;\n"
              "selp.u32 %r4, 1000, 0, %p1;\nselp.u32 %r5, 10000, 0, %p2;\nadd.u32 %r1, %r1, %r2;\nadd.u32 "
              "%r1, %r1, %r3;\nadd.u32 %r1, %r1, %r4;\n"
              "add.u32 %r1, %r1, %r5;\nst.u32 [%d0], %r1;\nret;\n}\n");
    RUN(1);
    ck_assert_uint_eq(words[0], 11 + 22 + 100 + 10000);
}
END_TEST

START_TEST(set_of_halves)
{
    load(HEAD ENTRY "mov.b32 %r1, 0x3c004000;\nmov.b32 %r2, 0x3c003c00;\nset.eq.f16x2.f16x2 %r3, %r1, "
                    "%r2;\nset.gt.u32.f16x2 %r4, %r1, %r2;\n"
                    "st.global.u32 [%d0], %r3;\nst.global.u32 [%d0+4], %r4;\nset.lt.u32.s32 %r5, -1, "
                    "1;\nst.global.u32 [%d0+8], %r5;\nret;\n}\n");
    RUN(1);
    ck_assert_uint_eq(words[0], 0x3c000000);
    ck_assert_uint_eq(words[1], 0x0000ffff);
    ck_assert_uint_eq(words[2], 0xffffffff);
}
END_TEST

/* A diverged call inside a loop: lanes return together. */
START_TEST(calls_of_some_lanes)
{
    load(HEAD ".func (.param .b32 r) f(.param .b32 a)\n{\n.reg .b32 %r<4>;\nld.param.b32 %r0, "
              "[a];\nmul.lo.u32 %r0, %r0, 3;\nactivemask.b32 %r1;\n"
              "popc.b32 %r1, %r1;\nmul.lo.u32 %r1, %r1, 1000;\nadd.u32 %r0, %r0, %r1;\nst.param.b32 [r], "
              "%r0;\nret;\n}\n" ENTRY "mov.u32 %r3, 0;\nmov.u32 %r5, 0;\nL: setp.le.u32 %p0, %r0, %r3;\n@%p0 "
              "bra D;\n{\n.param .b32 x;\n.param .b32 y;\nst.param.b32 [x], %r3;\n"
              "call.uni (y), f, (x);\nld.param.b32 %r4, [y];\n}\nadd.u32 %r5, %r5, %r4;\nadd.u32 %r3, %r3, "
              "1;\nbra L;\nD: st.global.u32 [%d1], %r5;\nret;\n}\n");
    RUN(8);
    for (unsigned t = 0; t < 8; t++) {
        unsigned sum = 0;
        for (unsigned i = 0; i < t; i++)
            sum += 3 * i + 1000 * (7 - i);
        ck_assert_uint_eq(words[t], sum);
    }
}
END_TEST

START_TEST(activemask_after_join)
{
    load(HEAD ENTRY "setp.lt.u32 %p0, %r0, 9;\n@%p0 bra A;\nactivemask.b32 %r1;\nbra J;\nA: activemask.b32 "
                    "%r1;\nJ: activemask.b32 %r2;\n"
                    "xor.b32 %r1, %r1, %r2;\nst.global.u32 [%d1], %r1;\nret;\n}\n");
    RUN(32);
    for (unsigned t = 0; t < 32; t++)
        ck_assert_uint_eq(words[t], t < 9 ? ~0x1ffu : 0x1ff);
}
END_TEST

START_TEST(lanes_that_never_come)
{
    load(HEAD ENTRY
         "setp.eq.u32 %p0, %r0, 0;\n@%p0 bra S;\nbar.warp.sync 0xffffffff;\nret;\nS: bar.sync 0;\nret;\n}\n");
    ck_assert(!run(32));
    ck_assert_int_eq(fault.kind, SC_FAULT_DEADLOCK);
    ck_assert_ptr_nonnull(strstr(fault.text, "wait for lanes 0x00000001"));
}
END_TEST

/* Blocks that wait for the one before come to their end however few may be resident, though a worker takes
 * several at once: no access here says that they wait. */
START_TEST(blocks_that_wait_in_silence)
{
    enum { BLOCKS = 200 };
    setenv("KREGISTRY_SOFTCUDA_THREADS", "3", 1);
    load(HEAD ENTRY "mov.u32 %r1, %ctaid.x;\nmul.wide.u32 %d2, %r1, 4;\nadd.u64 %d2, %d0, %d2;\n"
                    "L: ld.global.u32 %r2, [%d2];\nsetp.eq.u32 %p0, %r2, 0;\n@%p0 bra L;\n"
                    "add.u32 %r2, %r2, 1;\nst.global.u32 [%d2+4], %r2;\nret;\n}\n");
    module.resident = (unsigned)_i;
    words[0] = 1;
    uint64_t params[] = {(uint64_t)(uintptr_t)words};
    ck_assert(
        vm_launch(&module, "k", (unsigned[3]){BLOCKS, 1, 1}, (unsigned[3]){1, 1, 1}, params, &fault, NULL));
    ck_assert_uint_eq(words[BLOCKS], BLOCKS + 1);
    setenv("KREGISTRY_SOFTCUDA_THREADS", "", 1);
}
END_TEST

/* Each block runs once, whoever took it in a run and however few may be resident. One of 4096 takes several
 * visits. */
START_TEST(each_block_once)
{
    enum { BLOCKS = 40000 };
    setenv("KREGISTRY_SOFTCUDA_THREADS", "3", 1);
    load(HEAD ENTRY
         "mov.u32 %r1, %ctaid.x;\nmul.wide.u32 %d2, %r1, 4;\nadd.u64 %d2, %d0, %d2;\n"
         "and.b32 %r2, %r1, 4095;\nsetp.ne.u32 %p0, %r2, 16;\n@%p0 bra S;\nmov.u32 %r3, 200000;\n"
         "L: add.u32 %r3, %r3, -1;\nsetp.ne.u32 %p1, %r3, 0;\n@%p1 bra L;\n"
         "S: ld.global.u32 %r4, [%d2];\nadd.u32 %r4, %r4, 1;\nst.global.u32 [%d2], %r4;\nret;\n}\n");
    module.resident = (unsigned)_i;
    const uint64_t params[] = {vm_alloc(&module, BLOCKS * 4)};
    const uint32_t *counts = (const uint32_t *)(uintptr_t)params[0];
    ck_assert(
        vm_launch(&module, "k", (unsigned[3]){BLOCKS, 1, 1}, (unsigned[3]){1, 1, 1}, params, &fault, NULL));
    for (size_t i = 0; i < BLOCKS; i++)
        ck_assert_msg(counts[i] == 1, "block %zu ran %u times", i, counts[i]);
    setenv("KREGISTRY_SOFTCUDA_THREADS", "", 1);
}
END_TEST

/* Four blocks that wait for each other are resident together where four may be, since blocks start in their
 * order. */
START_TEST(blocks_that_wait_for_later_ones)
{
    enum { BLOCKS = 512 };
    setenv("KREGISTRY_SOFTCUDA_THREADS", "3", 1);
    load(HEAD ENTRY
         "mov.u32 %r1, %ctaid.x;\nshr.u32 %r1, %r1, 2;\nmul.wide.u32 %d2, %r1, 4;\n"
         "add.u64 %d2, %d0, %d2;\nred.release.gpu.global.add.u32 [%d2], 1;\n"
         "L: ld.acquire.gpu.global.u32 %r2, [%d2];\nsetp.lt.u32 %p0, %r2, 4;\n@%p0 bra L;\nret;\n}\n");
    module.resident = 4;
    module.budget = 1 << 28; /* they would wait for ever */
    uint64_t params[] = {(uint64_t)(uintptr_t)words};
    ck_assert_msg(
        vm_launch(&module, "k", (unsigned[3]){BLOCKS, 1, 1}, (unsigned[3]){1, 1, 1}, params, &fault, NULL),
        "%s", fault.text);
    for (size_t i = 0; i < BLOCKS / 4; i++)
        ck_assert_uint_eq(words[i], 4);
    setenv("KREGISTRY_SOFTCUDA_THREADS", "", 1);
}
END_TEST

/* Rounding and flushing are one instruction's, whatever ran before it. */
START_TEST(modes_do_not_leak)
{
    load(HEAD ENTRY "mov.b32 %r1, 0x00000123;\nmov.b32 %r2, 0;\nmov.b16 %h1, 0x0012;\nmov.b16 %h2, "
                    "0;\nmov.b64 %d2, 0d4000000000000000;\n"
                    "add.rz.ftz.f32 %r3, %r1, %r2;\nadd.f32 %r4, %r1, %r2;\nadd.rp.ftz.f32 %r5, %r1, "
                    "%r2;\nsetp.eq.bf16 %p1, %h1, %h2;\n"
                    "add.rz.ftz.f32 %r5, %r1, %r2;\nrsqrt.approx.f64 %d3, %d2;\nadd.rm.ftz.f32 %r6, %r1, "
                    "%r2;\ncvt.rn.f32.f64 %r7, %d3;\n"
                    "add.rm.ftz.f32 %r6, %r1, %r2;\nsin.approx.f32 %r8, %r1;\nselp.u32 %r9, 1, 0, "
                    "%p1;\nst.global.v4.b32 [%d0], {%r3, %r4, %r7, %r8};\n"
                    "st.global.b32 [%d0+16], %r9;\nst.global.b64 [%d0+24], %d3;\nret;\n}\n");
    RUN(1);
    double root;
    memcpy(&root, words + 6, sizeof root);
    ck_assert_uint_eq(words[0], 0);
    ck_assert_uint_eq(words[1], 0x123);
    ck_assert_uint_eq(words[2], 0x3f3504f3); /* the float nearest to 2^-1/2 */
    ck_assert_uint_eq(words[3], 0x123);
    ck_assert_uint_eq(words[4], 0);
    ck_assert_double_le(fabs(root - M_SQRT1_2), 0x1p-53);
}
END_TEST

/* Loads, stores, atomics and the rest in every form that the kernels of five applications have. */
START_TEST(forms_met_in_the_wild)
{
    char *text;
    size_t bytes;
    ck_assert_int_eq(kr__file_read(VM_DATA "/wild.ptx", &text, &bytes, NULL), KR_OK);
    load(text);
    free(text);
    struct {
        uint64_t g;
        char more[32];
    } params = {(uint64_t)(uintptr_t)words, {0}};
    ck_assert_msg(
        vm_launch(&module, "wild", (unsigned[3]){2, 1, 1}, (unsigned[3]){64, 1, 1}, &params, &fault, NULL),
        "%s", fault.text);
}
END_TEST

START_TEST(integer_division)
{
    load(HEAD ENTRY "ld.global.u32 %r1, [%d0];\nld.global.u32 %r2, [%d0+4];\ndiv.s32 %r3, %r1, %r2;\nrem.s32 "
                    "%r4, %r1, %r2;\ndiv.u32 %r5, %r1, %r2;\n"
                    "rem.u32 %r6, %r1, %r2;\nst.global.u32 [%d0+8], %r3;\nst.global.u32 [%d0+12], "
                    "%r4;\nst.global.u32 [%d0+16], %r5;\n"
                    "st.global.u32 [%d0+20], %r6;\nret;\n}\n");
    const int32_t values[] = {0, 1, -1, 7, -7, 100, INT32_MAX, INT32_MIN};
    for (unsigned i = 0; i < KR_COUNT(values); i++)
        for (unsigned k = 0; k < KR_COUNT(values); k++) {
            int64_t a = values[i], b = values[k];
            words[0] = (uint32_t)a;
            words[1] = (uint32_t)b;
            RUN(1); /* by 0 too: no result is promised, but it must not harm */
            if (b == 0)
                continue;
            ck_assert_uint_eq(words[2], (uint32_t)(a / b));
            ck_assert_uint_eq(words[3], (uint32_t)(a % b));
            ck_assert_uint_eq(words[4], (uint32_t)a / (uint32_t)b);
            ck_assert_uint_eq(words[5], (uint32_t)a % (uint32_t)b);
        }
}
END_TEST

START_TEST(refused)
{
    const char *text = HEAD ENTRY
        "ret;\n}\n.visible .entry t(.param .u64 x)\n{\n.reg .b32 %r<8>; .reg .b64 %d<4>; .reg .f32 "
        "%f<8>;\nld.param.u64 %d0, [x];\n"
        "mov.f32 %f0, 0f00000000;\ntex.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%d0, {%f0, %f0}];\nret;\n}\n";
    ck_assert(!vm_load_text(&module, text, strlen(text)));
    ck_assert_int_eq(module.problem_kind, PTX_PROBLEM_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(module.problem, "tex.2d.v4.f32.f32"));
    ck_assert_uint_eq(module.problem_line, 18);
}
END_TEST

START_TEST(refused_by_what_it_is)
{
    static const struct {
        const char *functions, *body, *problem;
    } cases[] = {
        {".func f(.reg .b32 a)\n{ ret; }\n", ".param .b32 p;\ncall f, (p);\n",
         "softcuda cannot execute 'f': its parameter 'a' is in a register"},
        {".func f(.param .b32 a)\n{ ret; }\n", "call f, (%r1);\n",
         "a call with arguments that are no .param variables"},
        {"", "mov.v2.b32 {%r1, %r2}, {%r2, %r1};\n", "it moves a vector"},
    };
    for (size_t i = 0; i < KR_COUNT(cases); i++) {
        char text[2000];
        snprintf(text, sizeof text, "%s%s%s%sret;\n}\n", HEAD, cases[i].functions, ENTRY, cases[i].body);
        ck_assert(!vm_load_text(&module, text, strlen(text)));
        ck_assert_int_eq(module.problem_kind, PTX_PROBLEM_UNSUPPORTED);
        ck_assert_msg(strstr(module.problem, cases[i].problem) != NULL, "%s", module.problem);
    }
}
END_TEST

/* The products and moves of matrices that nothing here executes are refused by name, however they look like
 * those that are executed. */
START_TEST(matrices_refused)
{
#define D "{%f0, %f1, %f2, %f3}"
#define FOUR "{%r0, %r1, %r2, %r3}"
    static const struct {
        const char *target, *instr;
    } cases[] = {
        {"sm_90", "mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 " D ", {%r0, %r1}, {%r2, %r3}, " D
                  ", %r4, 0;"},
        {"sm_90", "mma.sp::ordered_metadata.sync.aligned.m16n8k64.row.col.f32.e4m3.e5m2.f32 " D ", " FOUR
                  ", " FOUR ", " D ", %r4, 0;"},
        {"sm_120a", "mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.f32.e4m3.e4m3.f32 " D ", " FOUR
                    ", {%r4, %r5}, " D ";"},
        {"sm_120a", "mma.sync.aligned.m16n8k64.row.col.kind::mxf4.block_scale.f32.e2m1.e2m1.f32.ue8m0 " D
                    ", " FOUR ", {%r4, %r5}, " D ", %r6, {0, 1}, %r7, {2, 3};"},
        {"sm_120a", "ldmatrix.sync.aligned.m16n16.x1.trans.b8 {%r0, %r1}, [%d0];"},
        {"sm_120a", "ldmatrix.sync.aligned.m8n16.x4.b8x16.b4x16_p64 " FOUR ", [%d0];"},
        {"sm_120a", "stmatrix.sync.aligned.m16n8.x4.trans.b8 [%d0], " FOUR ";"},
        {"sm_100a", "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r0], 512;"},
        {"sm_100a", "tcgen05.mma.cta_group::1.kind::f16 [%r0], %d1, %d2, %r1, %p0;"},
        {"sm_100a", "tcgen05.ld.sync.aligned.16x256b.x1.b32 " FOUR ", [%r4];"},
        {"sm_100a", "tcgen05.wait::ld.sync.aligned;"},
        {"sm_100a", "tcgen05.fence::before_thread_sync;"},
    };
    for (size_t i = 0; i < KR_COUNT(cases); i++) {
        kr__text text = {0};
        kr__text_add(&text,
                     ".version 8.8\n.target %s\n.address_size 64\n.visible .entry t()\n{\n.reg .b32 %%r<8>; "
                     ".reg .b64 %%d<4>; .reg .f32 %%f<8>; .reg .pred %%p<2>;\n%s\nret;\n}\n",
                     cases[i].target, cases[i].instr);
        ck_assert_msg(!vm_load_text(&module, text.data, text.bytes), "%s", cases[i].instr);
        ck_assert_int_eq(module.problem_kind, PTX_PROBLEM_UNSUPPORTED);
        ck_assert_uint_eq(module.problem_line, 7);
        text.bytes = 0;
        kr__text_add(&text, "softcuda cannot execute '%s'\n", cases[i].instr);
        ck_assert_msg(strstr(module.problem, text.data), "%s%s", text.data, module.problem);
        kr__text_free(&text);
    }
#undef D
#undef FOUR
}
END_TEST

START_TEST(unresolved)
{
    const char *text = HEAD ".extern .func nowhere;\n" ENTRY "call.uni nowhere;\nret;\n}\n";
    ck_assert(!vm_load_text(&module, text, strlen(text)));
    ck_assert_str_eq(module.problem, "ptxas fatal   : Unresolved extern function 'nowhere'\n");
}
END_TEST

/* 8 MiB of heap: a second 5 MiB are not there, and are again when the first are freed. */
START_TEST(malloc_keeps_to_its_limit)
{
#define MALLOC(bytes, to)                                                                      \
    "{ .param .b64 n; .param .b64 p; st.param.b64 [n], " bytes "; call.uni (p), malloc, (n); " \
    "ld.param.b64 " to ", [p]; }\n"
#define FREE(from) "{ .param .b64 p; st.param.b64 [p], " from "; call.uni free, (p); }\n"
#define TELL(from, at) \
    "setp.ne.s64 %p0, " from ", 0;\nselp.u32 %r1, 1, 0, %p0;\nst.global.u32 [%d0+" at "], %r1;\n"
    load(HEAD
         ".extern .func (.param .b64 p) malloc(.param .b64 n);\n.extern .func free(.param .b64 p);\n" ENTRY
             MALLOC("9437184", "%d2") TELL("%d2", "0") MALLOC("5242880", "%d3") TELL("%d3", "4")
                 MALLOC("5242880", "%d4") TELL("%d4", "8") FREE("%d3") MALLOC("5242880", "%d5")
                     TELL("%d5", "12") FREE("%d5") "ret;\n}\n");
    RUN(1);
    static const uint32_t expected[] = {0, 1, 0, 1};
    ck_assert_mem_eq(words, expected, sizeof expected);

    /* What malloc did not give is not free's to take. */
    vm_unload(&module);
    load(HEAD ".extern .func free(.param .b64 p);\n" ENTRY FREE("%d0") "ret;\n}\n");
    ck_assert(!run(1));
    ck_assert_int_eq(fault.kind, SC_FAULT_TRAP);
}
END_TEST

/* A kernel's parameters stay in constant memory: ptxas 13.0 gives this one 10 registers for sm_75. */
START_TEST(parameters_take_no_registers)
{
    load(HEAD
         ".visible .entry k(.param .u64 n, .param .u64 a, .param .u64 b, .param .u64 c)\n{\n"
         ".reg .pred %p<3>; .reg .f32 %f<4>; .reg .b32 %r<5>; .reg .b64 %d<21>;\n"
         "ld.param.u64 %d9, [n];\nld.param.u64 %d10, [a];\nld.param.u64 %d11, [b];\n"
         "ld.param.u64 %d12, [c];\nmov.u32 %r1, %ntid.x;\ncvt.u64.u32 %d1, %r1;\nmov.u32 %r2, %ctaid.x;\n"
         "mul.wide.u32 %d13, %r2, %r1;\nmov.u32 %r3, %tid.x;\ncvt.u64.u32 %d14, %r3;\n"
         "add.s64 %d20, %d13, %d14;\nsetp.ge.u64 %p1, %d20, %d9;\n@%p1 bra E;\nmov.u32 %r4, %nctaid.x;\n"
         "cvt.u64.u32 %d15, %r4;\nmul.lo.s64 %d3, %d15, %d1;\ncvta.to.global.u64 %d4, %d10;\n"
         "cvta.to.global.u64 %d5, %d11;\ncvta.to.global.u64 %d6, %d12;\n"
         "L: shl.b64 %d16, %d20, 2;\nadd.s64 %d17, %d5, %d16;\nld.global.f32 %f1, [%d17];\n"
         "add.s64 %d18, %d4, %d16;\nld.global.f32 %f2, [%d18];\nadd.f32 %f3, %f2, %f1;\n"
         "add.s64 %d19, %d6, %d16;\nst.global.f32 [%d19], %f3;\nadd.s64 %d20, %d20, %d3;\n"
         "setp.lt.u64 %p2, %d20, %d9;\n@%p2 bra L;\nE: ret;\n}\n");
    ck_assert_int_le(abs(sc_program_kernel(module.program, 0)->registers - 10), 8);
}
END_TEST

/* C = A B as kernels do it: cp.async to shared memory, ldmatrix, mma. */
START_TEST(matrix_tile)
{
    load(HEAD
         ".visible .entry k(.param .u64 o)\n{\n.reg .b32 %r<32>; .reg .b64 %d<8>; .reg .f32 %f<8>;\n.shared "
         ".align 16 .b8 a[512];\n"
         ".shared .align 16 .b8 b[256];\nmov.u32 %r0, %tid.x;\nld.param.u64 %d0, [o];\nmul.wide.u32 %d1, "
         "%r0, 16;\nadd.u64 %d1, %d0, %d1;\n"
         "shl.b32 %r1, %r0, 4;\nmov.u32 %r2, a;\nadd.u32 %r3, %r2, %r1;\ncp.async.cg.shared.global [%r3], "
         "[%d1], 16;\n"
         "mov.u32 %r4, b;\nshr.u32 %r5, %r1, 1;\nadd.u32 %r6, %r4, %r5;\nmul.wide.u32 %d2, %r0, 8;\nadd.u64 "
         "%d2, %d0, %d2;\n"
         "cp.async.ca.shared.global [%r6], [%d2+512], 8;\ncp.async.commit_group;\ncp.async.wait_group "
         "0;\nbar.sync 0;\n"
         /* of A, lane l: row l % 16, half-row l / 16; of B (k by n), lane l: row l % 16 */
         "and.b32 %r7, %r0, 15;\nshl.b32 %r8, %r7, 5;\nshr.u32 %r9, %r0, 4;\nshl.b32 %r9, %r9, 4;\nadd.u32 "
         "%r8, %r8, %r9;\nadd.u32 %r8, %r8, %r2;\n"
         "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r10, %r11, %r12, %r13}, [%r8];\nshl.b32 %r14, %r7, "
         "4;\nadd.u32 %r14, %r14, %r4;\n"
         "ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%r15, %r16}, [%r14];\nmov.f32 %f0, 0f3F000000;\n"
         "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1, %f2, %f3, %f4}, {%r10, %r11, %r12, %r13}, "
         "{%r15, %r16}, {%f0, %f0, %f0, %f0};\n"
         /* rows l / 4 and l / 4 + 8, columns 2 (l % 4) and the next */
         "shr.u32 %r17, %r0, 2;\nshl.b32 %r17, %r17, 5;\nand.b32 %r18, %r0, 3;\nshl.b32 %r18, %r18, "
         "3;\nadd.u32 %r17, %r17, %r18;\ncvt.u64.u32 %d3, %r17;\n"
         "add.u64 %d3, %d0, %d3;\nst.global.v2.f32 [%d3+1024], {%f1, %f2};\nst.global.v2.f32 [%d3+1280], "
         "{%f3, %f4};\nret;\n}\n");
    uint16_t *a = (uint16_t *)words, *b = a + 256;
    const uint16_t halves[] = {0x0000, 0x3c00, 0x4000, 0x4200,
                               0x4400, 0xbc00, 0xc000, 0x3800}; /* 0 1 2 3 4 -1 -2 0.5 */
    const float values[] = {0, 1, 2, 3, 4, -1, -2, 0.5f};
    for (unsigned i = 0; i < 256; i++)
        a[i] = halves[i * 7 / 3 % 8];
    for (unsigned i = 0; i < 128; i++)
        b[i] = halves[i * 5 / 2 % 8];
    ck_assert(!run(24));
    ck_assert_int_eq(fault.kind, SC_FAULT_ILLEGAL_INSTRUCTION);
    RUN(32);
    const float *c = (const float *)(words + 256);
    for (unsigned m = 0; m < 16; m++)
        for (unsigned n = 0; n < 8; n++) {
            float sum = 0.5f;
            for (unsigned k = 0; k < 16; k++)
                sum += values[(m * 16 + k) * 7 / 3 % 8] * values[(k * 8 + n) * 5 / 2 % 8];
            ck_assert_float_eq(c[m * 8 + n], sum);
        }
}
END_TEST

/* What ptxas 13.0 makes of each for sm_90 decides how far its address must be aligned; a stride that breaks
 * the alignment of the next line is as bad as a base. */
#define EIGHT "{%r0, %r1, %r2, %r3, %r4, %r5, %r6, %r7}"
static const struct {
    const char *code;
    bool misaligned;
} tiles[] = {
    {"wmma.load.a.sync.aligned.row.m16n16k16.global.f16 " EIGHT ", [%d0+2];", true},
    {"wmma.load.a.sync.aligned.row.m16n16k16.global.f16 " EIGHT ", [%d0+4];", false},
    {"wmma.load.a.sync.aligned.row.m16n16k16.global.f16 " EIGHT ", [%d0], 17;", true},
    {"wmma.load.a.sync.aligned.row.m16n16k16.global.f16 " EIGHT ", [%d0], 18;", false},
    {"wmma.load.a.sync.aligned.col.m16n16k16.global.f16 " EIGHT ", [%d0+2];", true},
    {"wmma.load.a.sync.aligned.row.m16n16k16.shared.f16 " EIGHT ", [%r9+4];", true},
    {"wmma.load.a.sync.aligned.row.m16n16k16.shared.f16 " EIGHT ", [%r9], 20;", true},
    {"wmma.load.b.sync.aligned.row.m16n16k16.shared.f16 " EIGHT ", [%r9], 20;", true},
    {"wmma.load.b.sync.aligned.row.m16n16k16.shared.f16 " EIGHT ", [%r9+16], 24;", false},
    {"wmma.load.a.sync.aligned.row.m16n16k16.f16 " EIGHT ", [%d4+4], 18;", false}, /* generic: no ldmatrix */
    {"wmma.load.b.sync.aligned.row.m16n16k16.shared.u8 {%r0, %r1}, [%r9+1], 17;", false},
    {"wmma.load.b.sync.aligned.col.m16n16k16.global.u8 {%r0, %r1}, [%d0+2];", true},
    {"wmma.load.a.sync.aligned.row.m16n16k8.shared.tf32 {%r0, %r1, %r2, %r3}, [%r9+4];", false},
    {"wmma.load.c.sync.aligned.row.m16n16k16.global.s32 " EIGHT ", [%d0+4];", true},
    {"wmma.load.c.sync.aligned.col.m16n16k16.global.s32 " EIGHT ", [%d0+4];", false},
    {"wmma.load.c.sync.aligned.row.m8n32k16.global.s32 " EIGHT ", [%d0+4];", false},
    {"wmma.store.d.sync.aligned.row.m16n16k16.global.s32 [%d0+4], " EIGHT ";", true},
    {"wmma.store.d.sync.aligned.col.m16n16k16.global.s32 [%d0+4], " EIGHT ";", false},
};

START_TEST(alignment_of_tiles)
{
    char text[2000];
    kr__format(text, sizeof text, "%s%s\nret;\n}\n",
               HEAD ENTRY ".shared .align 16 .b8 s[2048];\nmov.u32 %r9, s;\ncvt.u64.u32 %d4, %r9;\n"
                          "cvta.shared.u64 %d4, %d4;\n",
               tiles[_i].code);
    load(text);
    ck_assert_msg(run(32) != tiles[_i].misaligned, "%s %s", tiles[_i].code, fault.text);
    ck_assert_int_eq(fault.kind, tiles[_i].misaligned ? SC_FAULT_MISALIGNED : SC_FAULT_NONE);
}
END_TEST

/* Assembled code takes a barrier's number modulo 16 (seen with nvdisasm), and an H200 does not mind 16. */
START_TEST(numbers_of_barriers)
{
    load(HEAD ENTRY
         "shr.u32 %r1, %r0, 1;\nand.b32 %r1, %r1, 16;\nbar.sync %r1;\nst.global.u32 [%d1], 1;\nret;\n}\n");
    RUN(64);
    ck_assert_uint_eq(words[63], 1);
}
END_TEST

/* The approximations' documented bounds (PTX ISA, floating point instructions). */
static double reciprocal(double x)
{
    return 1 / x;
}

static double reciprocal_root(double x)
{
    return 1 / sqrt(x);
}

static const struct {
    const char *name;
    double (*exact)(double);
    double relative, absolute; /* either is enough */
    double low, high;
} approximations[] = {
    {"rcp.approx.f32", reciprocal, 0x1p-23, 0, 1e-3, 1e3},
    {"sqrt.approx.f32", sqrt, 0x1p-23, 0, 1e-3, 1e6},
    {"rsqrt.approx.f32", reciprocal_root, 0x1.74p-23, 0, 1e-3, 1e3},
    {"sin.approx.f32", sin, 0, 0x1p-20, -3.14, 3.14},
    {"cos.approx.f32", cos, 0, 0x1p-20, -3.14, 3.14},
    {"lg2.approx.f32", log2, 0x1p-22, 0x1p-22, 1e-3, 1e3},
    {"ex2.approx.f32", exp2, 0x1p-22, 0, -20, 20},
    {"tanh.approx.f32", tanh, 0x1p-11, 0, -5, 5},
};

START_TEST(approximation)
{
    kr__text text = {0};
    kr__text_add(&text, "%s%s", HEAD ENTRY "ld.global.b32 %r1, [%d1];\n", approximations[_i].name);
    kr__text_add(&text, "%s", " %r2, %r1;\nst.global.b32 [%d1], %r2;\nret;\n}\n");
    load(text.data);
    kr__text_free(&text);
    float in[1000];
    for (unsigned i = 0; i < 1000; i++)
        in[i] =
            (float)(approximations[_i].low + (approximations[_i].high - approximations[_i].low) * i / 999);
    memcpy(words, in, sizeof in);
    RUN(1000);
    for (unsigned i = 0; i < 1000; i++) {
        float got;
        memcpy(&got, &words[i], 4);
        double exact = approximations[_i].exact((double)in[i]), error = fabs((double)got - exact);
        ck_assert_msg(error <= approximations[_i].absolute ||
                          error <= approximations[_i].relative * fabs(exact),
                      "%s of %g: %g, exactly %g", approximations[_i].name, (double)in[i], (double)got, exact);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("ptx");
    TCase *tests = tcase_create("ptx");
    tcase_set_timeout(tests, 60);
    tcase_add_checked_fixture(tests, NULL, unload);
    tcase_add_test(tests, guards);
    tcase_add_test(tests, indexed_branch);
    tcase_add_test(tests, vectors);
    tcase_add_test(tests, vector_registers);
    tcase_add_test(tests, aliases_and_addresses);
    tcase_add_loop_test(tests, shapes_of_addresses, 0, KR_COUNT(loads));
    tcase_add_loop_test(tests, shuffle, 0, KR_COUNT(shuffles));
    tcase_add_loop_test(tests, atomics_in_shared_memory, 0, KR_COUNT(shared_atomics));
    tcase_add_test(tests, narrow_values);
    tcase_add_test(tests, pairs_of_predicates);
    tcase_add_test(tests, windows);
    tcase_add_test(tests, set_of_halves);
    tcase_add_test(tests, calls_of_some_lanes);
    tcase_add_test(tests, activemask_after_join);
    tcase_add_test(tests, matrix_tile);
    tcase_add_loop_test(tests, alignment_of_tiles, 0, KR_COUNT(tiles));
    tcase_add_test(tests, numbers_of_barriers);
    tcase_add_test(tests, lanes_that_never_come);
    tcase_add_loop_test(tests, blocks_that_wait_in_silence, 1, 5);
    tcase_add_loop_test(tests, each_block_once, 1, 4);
    tcase_add_test(tests, blocks_that_wait_for_later_ones);
    tcase_add_test(tests, modes_do_not_leak);
    tcase_add_loop_test(tests, addresses_that_wrap, 0, 10);
    tcase_add_test(tests, shared_addresses_wrap);
    tcase_add_loop_test(tests, calls_of_another_shape, 0, 2);
    tcase_add_test(tests, least_and_nothing);
    tcase_add_loop_test(tests, too_much_memory, 0, 5);
    tcase_add_test(tests, forms_met_in_the_wild);
    tcase_add_test(tests, integer_division);
    tcase_add_test(tests, refused);
    tcase_add_test(tests, refused_by_what_it_is);
    tcase_add_test(tests, matrices_refused);
    tcase_add_test(tests, unresolved);
    tcase_add_test(tests, parameters_take_no_registers);
    tcase_add_test(tests, malloc_keeps_to_its_limit);
    tcase_add_loop_test(tests, approximation, 0, KR_COUNT(approximations));
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
