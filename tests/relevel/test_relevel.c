/* SPDX-License-Identifier: Apache-2.0 */
/* What stays as it is, which level comes out, and what is refused in which words. */
#include <kregistry/relevel.h>

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HEAD(version, target) ".version " version "\n.target " target "\n.address_size 64\n"
#define BEGIN                                                                                    \
    ".visible .entry k(.param .u64 a)\n{\n.reg .pred %p<9>; .reg .b16 %h<9>; .reg .b32 %r<9>;\n" \
    ".reg .f32 %f<9>; .reg .b64 %d<9>;\nld.param.u64 %d1, [a];\n"
#define END "\nret;\n}\n"
#define BODY(statements) BEGIN statements END

static void write(char *to, size_t bytes, const char *version, const char *target, const char *statements)
{
    snprintf(to, bytes, ".version %s\n.target %s\n.address_size 64\n.file 1 \"a.cu\"\n%s%s%s", version,
             target, BEGIN, statements, END);
}

static const kr_cc any;

static kr_releveled *releveled(const char *ptx, int isa, kr_cc target)
{
    const kr_relevel_options options = {.struct_size = sizeof options, .isa = isa, .target = target};
    kr_releveled *r = NULL;
    kr_error err;
    ck_assert_msg(!kr_ptx_relevel(ptx, strlen(ptx), &options, &r, &err), "%s\n%s", err.message, ptx);
    ck_assert_uint_eq(r->bytes, strlen(r->ptx));
    return r;
}

static void becomes(const char *ptx, int isa, kr_cc target, const char *wanted)
{
    kr_releveled *r = releveled(ptx, isa, target);
    ck_assert_str_eq(r->ptx, wanted);
    kr_releveled_destroy(&r);
    ck_assert_ptr_null(r);
}

/* ---- the rest of the text stays ---- */

#define KEPT                                                                                               \
    "\n.file 1 \"a;b.cu\"\n.global .align 4 .b8 s[12] = {1, 2, 3}; // add.u16x2 %r1, %r2, %r3;\n"          \
    ".visible .entry k(\n\t.param .u64 .ptr .align 1 a)\n.maxntid 32, 1, 1\n{\n\t.reg .b32 \t%r<4>; .reg " \
    ".pred %p<2>;\n"                                                                                       \
    "\t.loc 1 7 3\n\t/* prefetch; \n { */ mov.u32 %r1, 0; .pragma \"nounroll; {\";\n$L: @%p1 bra $L;\n"    \
    "\tret;\n}\n.section .debug_str\n{\n\t.b8 0x41\n$L1:\n\t.b8 0\n}\n"

START_TEST(what_needs_nothing_stays)
{
    becomes("// by hand\n.version 9.0 .target sm_90, debug // all\n.address_size 64" KEPT, 78, any,
            "// by hand\n.version 7.8 .target sm_90, debug // all\n.address_size 64" KEPT);
}
END_TEST

/* As ptxas takes it. */
START_TEST(one_line)
{
    becomes(".version 9.0.target sm_90/**/,debug .address_size 64 .file 1 \"a.cu\", 7, 8 .entry k() {.reg "
            ".b32 %r<9>; "
            "L:neg.s32 %r1, /* ; } */ %r2; .loc 1 2 3 ld.shared::cta.b32 %r1, [%r2]; ret;} .section "
            ".debug_str {.b8 0}",
            77, (kr_cc){8, 0, 0},
            ".version 7.7.target sm_80/**/,debug .address_size 64 .file 1 \"a.cu\", 7, 8 .entry k() {.reg "
            ".b32 %r<9>; "
            "L:neg.s32 %r1, /* ; } */ %r2; .loc 1 2 3 ld.shared.b32 %r1, [%r2]; ret;} .section .debug_str "
            "{.b8 0}");
}
END_TEST

/* A statement keeps its lines, its guard and its neighbours. */
START_TEST(a_statement_in_its_place)
{
    becomes(HEAD("9.0", "sm_90")
                BODY("\t{ add .u16x2 %r1, // one\n %r2,\n/* two */ %r3; }\n\tmov.u32 %r4, 1;"),
            78, any,
            HEAD("7.8", "sm_90") BODY("\t{ {.reg .b32 $kr0_a, $kr0_b, $kr0_c; xor.b32 $kr0_c, %r2, %r3;"
                                      " and.b32 $kr0_c, $kr0_c, 0x80008000; and.b32 $kr0_a, %r2, 0x7FFF7FFF;"
                                      " and.b32 $kr0_b, %r3, 0x7FFF7FFF; add.u32 $kr0_a, $kr0_a, $kr0_b;"
                                      " xor.b32 %r1, $kr0_a, $kr0_c;}\n\n }\n\tmov.u32 %r4, 1;"));
    becomes(HEAD("9.0", "sm_90") BODY("@!%p1 ld.global.L1::no_allocate.L2::128B.v2.b32 {%r1, %r2}, [%d1+8];"),
            73, (kr_cc){7, 5, 0}, HEAD("7.3", "sm_75") BODY("@!%p1 ld.global.v2.b32 {%r1, %r2}, [%d1+8];"));
    becomes(HEAD("9.0", "sm_90") BODY("@%p1 neg.bf16 %h1, %h2;"), 78, (kr_cc){7, 5, 0},
            HEAD("7.8", "sm_75")
                BODY("{.reg .pred $kr0_p; .reg .b16 $kr0_a, $kr0_n; @%p1 and.b16 $kr0_a, %h2, 0x7FFF;"
                     " @%p1 setp.gt.u16 $kr0_p, $kr0_a, 0x7F80; @%p1 xor.b16 $kr0_a, %h2, 0x8000;"
                     " @%p1 mov.b16 $kr0_n, 0x7FFF; @%p1 selp.b16 %h1, $kr0_n, $kr0_a, $kr0_p;}"));
}
END_TEST

/* Bulk copies and what came later take the younger spelling alone. */
START_TEST(spellings_that_the_level_has)
{
    static const char both[] = "st.shared::cta.b32 [%r1], %r2;\n"
                               "cp.async.bulk.global.shared::cta.bulk_group [%d1], [%r1], 64;";
    char from[1000], to[1000];
    write(from, sizeof from, "9.0", "sm_90", both);
    write(to, sizeof to, "8.0", "sm_90", both);
    becomes(from, 80, any, to);
    becomes(from, 0, any, to); /* the lowest */
    becomes(from, 90, any, from);
}
END_TEST

START_TEST(pragmas)
{
    becomes(HEAD("9.0", "sm_90") BODY(".pragma \"used_bytes_mask 9\"; ld.global.b32 %r1, [%d1];"), 78, any,
            HEAD("7.8", "sm_90") BODY(" ld.global.b32 %r1, [%d1];"));
}
END_TEST

START_TEST(names_are_new)
{
    kr_releveled *once =
        releveled(HEAD("9.0", "sm_90") BODY("max.u16x2 %r1, %r2, %r3;\nmin.f16x2 %r1, %r2, %r3;"), 78, any);
    ck_assert_ptr_nonnull(strstr(once->ptx, "$kr0_a"));
    kr_releveled *twice = releveled(once->ptx, 78, (kr_cc){7, 5, 0});
    ck_assert_ptr_null(strstr(twice->ptx + (strstr(twice->ptx, "$kr1_") - twice->ptx), "$kr0_"));
    kr_releveled_destroy(&once);
    kr_releveled_destroy(&twice);
    once = releveled(HEAD("9.0", "sm_90") BODY("$kr123456_a: max.u16x2 %r1, %r2, %r3;"), 78, any);
    ck_assert_ptr_nonnull(strstr(once->ptx, "$kr123457_a"));
    kr_releveled_destroy(&once);
}
END_TEST

START_TEST(inlined_lines)
{
    const char *at = ".loc 1 9 2\n.loc 1 7 3, function_name $L, inlined_at 1 9 2";
    const char *section = ".section .debug_str\n{\n$L:\n.b8 102, 0\n}\n";
    char longer[600], shorter[600];
    write(longer, sizeof longer - strlen(section), "9.0", "sm_75", at);
    strcat(longer, section);
    kr_releveled *r = releveled(longer, 72, any);
    ck_assert_ptr_nonnull(strstr(r->ptx, at));
    kr_releveled_destroy(&r);
    write(shorter, sizeof shorter - strlen(section), "7.1", "sm_75", ".loc 1 9 2\n.loc 1 7 3");
    strcat(shorter, section);
    becomes(longer, 71, any, shorter);
    /* lines do not end it */
    write(longer, sizeof longer - strlen(section), "9.0", "sm_75",
          ".loc 1 9 2 .loc 1 7 3,\nfunction_name $L+0,/**/inlined_at 1 9 2 st.global.b32 [%d1], %r1; "
          "neg.s32 %r1, %r2;");
    strcat(longer, section);
    write(shorter, sizeof shorter - strlen(section), "7.1", "sm_75",
          ".loc 1 9 2 .loc 1 7 3 st.global.b32 [%d1], %r1; neg.s32 %r1, %r2;");
    strcat(shorter, section);
    becomes(longer, 71, any, shorter);
    /* before 7.0 their names are no labels, but the data keeps its offsets */
    write(longer, sizeof longer, "9.0", "sm_70", ".loc 1 7 3, function_name $L + 4, inlined_at 1 9 2");
    strcat(longer, ".section .debug_str {\n.b8 1, 2 $L /**/ :\n.b8 102 // $M:\n}\n");
    write(shorter, sizeof shorter, "6.5", "sm_70", ".loc 1 7 3");
    strcat(shorter, ".section .debug_str {\n.b8 1, 2 \n.b8 102 // $M:\n}\n");
    becomes(longer, 65, any, shorter);
}
END_TEST

START_TEST(guards_and_comments)
{
    becomes(HEAD("9.0", "sm_90") BODY("@/*!*/%p1 neg.bf16x2 %r1, %r2;"), 78, (kr_cc){8, 0, 0},
            HEAD("7.8", "sm_80") BODY("@/*!*/%p1 neg.bf16x2 %r1, %r2;"));
    kr_releveled *r = releveled(
        HEAD("9.0", "sm_90") BODY("@/*!*/%p1 // !\n redux.sync.add.u32 %r1, %r2, -1;"), 78, (kr_cc){7, 5, 0});
    ck_assert_ptr_nonnull(strstr(r->ptx, "{@!%p1 bra $kr0_end;"));
    kr_releveled_destroy(&r);
    r = releveled(HEAD("9.0", "sm_90") BODY("@! // one\n%p1 add.u16x2 %r1, %r2, %r3;"), 78, (kr_cc){7, 5, 0});
    ck_assert_ptr_nonnull(strstr(r->ptx, "@!%p1 xor.b32 $kr0_c, %r2, %r3; @!%p1 and"));
    kr_releveled_destroy(&r);
}
END_TEST

/* ---- levels ---- */

static const struct level {
    const char *version, *target, *statements;
    int isa, driver;
    kr_cc to;
    const char *header;
    int min_driver;
} levels[] = {
    {"9.0", "sm_90", "", 78, 0, {0}, HEAD("7.8", "sm_90"), 11080},
    {"9.0", "sm_90", "", 0, 11080, {0}, HEAD("7.8", "sm_90"), 11080},
    {"9.0", "sm_90", "", 0, 12060, {0}, HEAD("8.5", "sm_90"), 12050},
    {"7.0", "sm_75", "", 78, 0, {0}, HEAD("7.0", "sm_75"), 11000}, /* never raised */
    {"7.0", "sm_75", "", 78, 0, {8, 0, 0}, HEAD("7.0", "sm_75"), 11000},
    {"9.0", "sm_120a", "", 85, 0, {0}, HEAD("8.5", "sm_90"), 12050}, /* the highest target there was */
    {"9.0", "sm_90a", "", 78, 0, {0}, HEAD("7.8", "sm_90"), 11080},
    {"9.0", "sm_90a", "", 80, 0, {9, 0, 0}, HEAD("8.0", "sm_90"), 12000},
    {"9.0", "sm_103a", "", 90, 0, {10, 3, 'f'}, HEAD("9.0", "sm_103f"), 13000},
    {"9.0", "sm_100f", "", 90, 0, {10, 0, 'a'}, HEAD("9.0", "sm_100f"), 13000}, /* never raised */
    {"9.0", "sm_88", "", 88, 0, {0}, HEAD("8.8", "sm_87"), 12090}, /* ptxas 13.0 knows it at 7.3, 12.9's not
                                                                      at all */
    {"9.0", "sm_90", "", 70, 0, {0}, HEAD("7.0", "sm_80"), 11000},
    {"9.0", "sm_90", "", 63, 0, {7, 0, 0}, HEAD("6.3", "sm_70"), 10000},
    {"9.3", "sm_90", "", 78, 0, {0}, HEAD("7.8", "sm_90"), 11080}, /* newer than what is known here */
    /* the lowest */
    {"9.0", "sm_90", "", 0, 0, {0}, HEAD("6.0", "sm_70"), 9000},
    {"9.0", "sm_90", "", 0, 0, {7, 5, 0}, HEAD("6.3", "sm_75"), 10000},
    {"9.0", "sm_61", "", 0, 0, {0}, HEAD("6.0", "sm_10"), 9000},
    {"9.0", "sm_90", "tanh.approx.f32 %f1, %f2;", 0, 0, {0}, HEAD("7.0", "sm_75"), 11000},
    {"9.0",
     "sm_110a",
     "cvt.rn.satfinite.e2m3x2.f32 %h1, %f1, %f2;",
     0,
     0,
     {0},
     HEAD("9.0", "sm_110a"),
     13000},
    {"9.0", "sm_90", "add.u16x2 %r1, %r2, %r3;", 0, 0, {0}, HEAD("8.0", "sm_90"), 12000}, /* not rewritten for
                                                                                             it, */
    {"9.0", "sm_90", "st.shared::cta.b32 [%r1], %r2;", 0, 0, {0}, HEAD("6.0", "sm_70"), 9000}, /* but spelled
                                                                                                */
};

START_TEST(level_that_comes_out)
{
    const struct level *l = &levels[_i];
    char ptx[1000];
    write(ptx, sizeof ptx, l->version, l->target, l->statements);
    const kr_relevel_options options = {sizeof options, l->isa, l->driver, l->to};
    kr_releveled *r = NULL;
    kr_error err;
    ck_assert_msg(!kr_ptx_relevel(ptx, strlen(ptx), &options, &r, &err), "%s", err.message);
    ck_assert_msg(!strncmp(r->ptx, l->header, strlen(l->header)), "%.60s, not %s", r->ptx, l->header);
    ck_assert_int_eq(r->min_driver, l->min_driver);
    ck_assert_int_eq(r->caution != NULL, strcmp(l->target, "sm_61") && r->to_target.major < 7);
    kr_releveled_destroy(&r);
}
END_TEST

START_TEST(caution)
{
    kr_releveled *r = releveled(HEAD("9.0", "sm_75") BODY("bar.warp.sync -1;"), 60, (kr_cc){6, 1, 0});
    ck_assert_ptr_nonnull(strstr(r->caution, "below sm_70"));
    kr_releveled_destroy(&r);
}
END_TEST

/* ---- refusals ---- */

static const struct refusal {
    const char *ptx;
    int isa;
    kr_cc to;
    kr_status status;
    const char *says;
} refusals[] = {
    {HEAD("9.0", "sm_90") BODY("\ntanh.approx.f32 %f1, %f2; // here"),
     65,
     {7, 5, 0},
     KR_NOT_ON_THIS_DEVICE,
     "line 10, \"tanh.approx.f32 %f1, %f2; // here\", cannot be said in PTX 6.5 for sm_75: Feature 'tanh' "
     "requires PTX "
     "ISA .version 7.0 or later"},
    {HEAD("9.0", "sm_90") BODY("cvt.rna.satfinite.tf32.f32 %r1, %f1;"),
     80,
     {0},
     KR_NOT_ON_THIS_DEVICE,
     "line 9, \"cvt.rna.satfinite.tf32.f32 %r1, %f1;\", cannot be said in PTX 8.0 for sm_90: it needs PTX "
     "ISA .version "
     "8.1 and .target sm_80 or later"},
    {HEAD("9.0", "sm_90") BODY("mapa.s32 %r1, %r1, 0;"), /* ptxas 13.0 takes it, 12.4 does not */
     84,
     {0},
     KR_NOT_ON_THIS_DEVICE,
     "cannot be said in PTX 8.4 for sm_90: it needs PTX ISA .version 8.5 and .target sm_90 or later"},
    {HEAD("9.0", "sm_90") BODY("st.shared::cta.b32 [%r1], %r2;\n"
                               "cp.async.bulk.global.shared::cta.bulk_group [%d1], [%r1], 64;"),
     77,
     {8, 0, 0},
     KR_NOT_ON_THIS_DEVICE,
     "line 10, \"cp.async.bulk.global.shared::cta.bulk_group [%d1], [%r1], 64;\", cannot be said in PTX 7.7 "
     "for sm_80: it needs PTX ISA .version 8.0 or later"},
    {HEAD("9.0", "sm_90") BODY("mov.u32 %r1, %cluster_ctarank;"),
     80,
     {8, 0, 0},
     KR_NOT_ON_THIS_DEVICE,
     "line 9"},
    {HEAD("9.0", "sm_90") BODY(""),
     60,
     {7, 5, 0},
     KR_NOT_ON_THIS_DEVICE,
     "PTX .version 6.0 does not support .target sm_75"},
    {HEAD("9.0", "sm_90a") BODY("wgmma.fence.sync.aligned;"),
     80,
     {9, 0, 0},
     KR_NOT_ON_THIS_DEVICE,
     "not supported on .target 'sm_90'; the PTX is for one that has it, sm_90a"},
    {HEAD("9.0", "sm_90") BODY("mov.u32 %r1, %cluster_ctarank;"), /* the lowest .version for it */
     0,
     {8, 0, 0},
     KR_NOT_ON_THIS_DEVICE,
     "line 9"},
    {HEAD("9.0", "sm_90") BODY("ad.u32 %r1, %r1, 1;"),
     0,
     {0},
     KR_COMPILE_FAILED,
     "line 9 of the PTX is wrong"},
    {HEAD("9.0", "sm_90") BODY("ad.u32 %r1, %r1, 1;"),
     78,
     {0},
     KR_COMPILE_FAILED,
     "line 9 of the PTX is wrong"},
    {HEAD("9.0", "sm_90") BODY("/* tanh.approx.f32 %f1, %f2;"),
     65,
     {7, 5, 0},
     KR_COMPILE_FAILED,
     "unexpected EOF"},
    {HEAD("9.0", "sm_90") BODY(".pragma \"nounroll;"),
     78,
     {0},
     KR_COMPILE_FAILED,
     "line 9 of the PTX is wrong"},
    {".version 9.0\n.target debug, sm_90\n", 78, {0}, KR_CORRUPT, "no .target"},
    {HEAD("9.0", "sm_90") BODY("") "}", 78, {0}, KR_COMPILE_FAILED, "line 12 of the PTX is wrong"},
    {HEAD("9.0", "sm_90") BODY(""), 78, {7, 7, 0}, KR_INVALID_ARGUMENT, "there is no target sm_77"},
    {"", 78, {0}, KR_CORRUPT, "the image is empty"},
    {"int main(void) { return 0; }", 78, {0}, KR_CORRUPT, "not an image but the text"},
    {"\xef\xbb\xbf" HEAD("9.0", "sm_90"), 78, {0}, KR_CORRUPT, "byte order mark"},
    {"\x7f"
     "ELF and no more",
     78,
     {0},
     KR_CORRUPT,
     "truncated"},
    {"\xed\x43\x4e\x7f....", 78, {0}, KR_CORRUPT, "LTO-IR is not PTX"},
    {".version 9.0\n", 78, {0}, KR_CORRUPT, "no .target"},
};

START_TEST(what_cannot_be_said)
{
    const struct refusal *f = &refusals[_i];
    const kr_relevel_options options = {.struct_size = sizeof options, .isa = f->isa, .target = f->to};
    kr_releveled *r = NULL;
    kr_error err;
    ck_assert_int_eq(kr_ptx_relevel(f->ptx, strlen(f->ptx), &options, &r, &err), f->status);
    ck_assert_msg(strstr(err.message, f->says) != NULL, "%s, not %s", err.message, f->says);
    ck_assert_ptr_null(r);
    ck_assert_int_eq(kr_ptx_relevel(f->ptx, strlen(f->ptx), &options, &r, NULL), f->status);
}
END_TEST

START_TEST(arguments)
{
    kr_releveled *r = NULL;
    kr_error err;
    ck_assert_int_eq(kr_ptx_relevel(NULL, 0, NULL, &r, &err), KR_INVALID_ARGUMENT);
    ck_assert_int_eq(kr_ptx_relevel("", 0, NULL, NULL, &err), KR_INVALID_ARGUMENT);
    const kr_relevel_options none = {0};
    ck_assert_int_eq(kr_ptx_relevel("", 0, &none, &r, &err), KR_INVALID_ARGUMENT);
    /* what stands behind a NUL is not lost without a word */
    static const char nul[] = HEAD("9.0", "sm_90") "\0" BODY("");
    ck_assert_int_eq(kr_ptx_relevel(nul, sizeof nul, NULL, &r, &err), KR_CORRUPT);
    ck_assert_ptr_nonnull(strstr(err.message, "NUL byte"));
    kr_releveled_destroy(NULL);
    kr_releveled_destroy(&r);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("relevel");
    TCase *all = tcase_create("all");
    tcase_add_test(all, what_needs_nothing_stays);
    tcase_add_test(all, one_line);
    tcase_add_test(all, a_statement_in_its_place);
    tcase_add_test(all, spellings_that_the_level_has);
    tcase_add_test(all, pragmas);
    tcase_add_test(all, names_are_new);
    tcase_add_test(all, inlined_lines);
    tcase_add_test(all, guards_and_comments);
    tcase_add_loop_test(all, level_that_comes_out, 0, sizeof levels / sizeof *levels);
    tcase_add_test(all, caution);
    tcase_add_loop_test(all, what_cannot_be_said, 0, sizeof refusals / sizeof *refusals);
    tcase_add_test(all, arguments);
    suite_add_tcase(suite, all);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
