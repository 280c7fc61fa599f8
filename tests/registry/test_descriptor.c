/* SPDX-License-Identifier: Apache-2.0 */

/* The reader of descriptors: what it understands, and what it says of what it does not. */

#include <check.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "registry/descriptor.h"

static kr_status parse(const char *text, kr__op_def **ret_def, kr_error *err)
{
    return kr__op_parse("t.cu", text, strlen(text), ret_def, err);
}

static kr__op_def *parsed(const char *text)
{
    kr_error err = {0};
    kr__op_def *def = NULL;
    const kr_status status = parse(text, &def, &err);
    ck_assert_msg(status == KR_OK, "%s", err.message);
    return def;
}

/* ---- what is understood ---- */

static const char saxpy[] =
    "// a comment before\n"
    "//! op      saxpy\n"
    "//! brief   y[i] = a * x[i] + y[i]\n"
    "//! types   T = f32 f64\n"
    "//! arg     n  u64   size>=1\n"
    "//! arg     a  T     in\n"
    "//! arg     x  T[n]  in\n"
    "//! arg     y  T[n]  inout\r\n"
    "//!\n"
    "//! arg     w  u32[2*grid]  work\n"
    "//! variant grid  cc>=5.0\n"
    "//! variant vec4  cc>=7.0 cc<12.0  align=16 shared>=65536\n"
    "//! launch  vec4: elementwise n per_thread=4 block=128 waves=2 shared=32*sizeof(T)\n"
    "//! launch  elementwise n\n"
    "//! compare ulp 1\n"
    "//! cost    bytes=3*sizeof(T)*n flops=2*n\n"
    "//! split   n halo=2\n"
    "//! source  BLAS level 1, AXPY\n"
    "int code;\n";

START_TEST(everything_is_read)
{
    kr__op_def *def = parsed(saxpy);
    const kr_op *op = &def->op;
    ck_assert_str_eq(op->name, "saxpy");
    ck_assert_str_eq(op->brief, "y[i] = a * x[i] + y[i]");
    ck_assert_str_eq(op->source, "BLAS level 1, AXPY");
    ck_assert_str_eq(op->file, "t.cu");
    ck_assert_str_eq(op->compare, "ulp 1");
    ck_assert_str_eq(op->split, "n");
    ck_assert_uint_eq(def->split.halo, 2);
    ck_assert(!def->split.combine_add);
    ck_assert_uint_eq(op->n_types, 2);
    ck_assert_int_eq(op->types[1], KR_TYPE_F64);
    ck_assert_uint_eq(op->n_args, 5);
    ck_assert_int_eq(op->args[0].role, KR_ROLE_SIZE);
    ck_assert_str_eq(op->args[0].minimum, "1");
    ck_assert_ptr_null(op->args[1].shape);
    ck_assert_str_eq(op->args[2].type, "T");
    ck_assert_str_eq(op->args[2].shape, "n");
    ck_assert_int_eq(op->args[3].role, KR_ROLE_INOUT);
    ck_assert_int_eq(op->args[4].role, KR_ROLE_WORK);
    ck_assert_int_eq(def->arg_types[4], KR_TYPE_U32);
    ck_assert(def->arg_is_t[2] && !def->arg_is_t[4]);
    ck_assert_uint_eq(op->n_variants, 2);
    ck_assert_str_eq(op->variants[1].requirements, "cc>=7.0 cc<12.0  align=16 shared>=65536");
    ck_assert_int_eq(def->variants[0].least_cc.major, 5);
    ck_assert_int_eq(def->variants[1].below_cc.major, 12);
    ck_assert_uint_eq(def->variants[1].align_bytes, 16);
    ck_assert_uint_eq(def->variants[1].shared_bytes, 65536);
    ck_assert_uint_eq(def->variants[0].launch.per_thread, 1);
    ck_assert_uint_eq(def->variants[0].launch.waves, 64);
    ck_assert_uint_eq(def->variants[0].launch.block[0], 0);
    ck_assert_uint_eq(def->variants[1].launch.per_thread, 4);
    ck_assert_uint_eq(def->variants[1].launch.block[0], 128);
    ck_assert_ptr_nonnull(def->variants[1].launch.shared);
    ck_assert_uint_eq(def->text_bytes, sizeof saxpy - 1);
    char name[KR__MAX_FULL_NAME];
    ck_assert_str_eq(kr__op_full_name(op, 1, name), "saxpy.f64");
    kr__op_free(&def);
    ck_assert_ptr_null(def);
}
END_TEST

START_TEST(targets_and_drivers_are_read)
{
    kr__op_def *def = parsed("//! op t\n//! brief b\n//! source s\n//! compare exact\n//! arg n u64 size\n"
                             "//! variant v cc=9.0a driver>=12.4\n//! variant w cc=100f\n"
                             "//! launch elementwise n\n");
    ck_assert_int_eq(def->variants[0].target.major, 9);
    ck_assert_int_eq(def->variants[0].target.suffix, 'a');
    ck_assert_int_eq(def->variants[0].least_driver, 12040);
    ck_assert_int_eq(def->variants[1].target.major, 10);
    ck_assert_int_eq(def->variants[1].target.suffix, 'f');
    kr__op_free(&def);
}
END_TEST

START_TEST(tiles_are_read)
{
    kr__op_def *def = parsed("//! op t\n//! brief b\n//! source s\n//! compare exact\n"
                             "//! arg r u64 size\n//! arg c u32 size\n//! arg x u8[r*c] in\n"
                             "//! variant v\n//! launch tiles c r tile=32x8 block=32x4 shared=1024\n");
    const kr__launch_rule *rule = &def->variants[0].launch;
    ck_assert_int_eq(rule->kind, KR__LAUNCH_TILES);
    ck_assert_uint_eq(rule->n_extents, 2);
    ck_assert_uint_eq(rule->tile[1], 8);
    ck_assert_uint_eq(rule->tile[2], 1);
    ck_assert_uint_eq(rule->block[1], 4);
    char name[KR__MAX_FULL_NAME];
    ck_assert_str_eq(kr__op_full_name(&def->op, 0, name), "t");
    kr__op_free(&def);
}
END_TEST

/* ---- what is wrong ---- */

#define HEAD "//! op t\n//! brief b\n//! source s\n//! compare exact\n" /* lines 1 to 4 */
#define ARGS HEAD "//! arg n u64 size\n//! arg x f32[n] in\n"           /* 5, 6 */
#define FULL ARGS "//! variant v\n//! launch elementwise n\n"           /* 7, 8 */

static const struct {
    const char *text, *message;
} bad[] = {
    {"", "t.cu:1: there is no descriptor: no line begins with //!"},
    {"int x;\n", "t.cu:1: there is no descriptor"},
    {FULL "//! colour blue\n", "t.cu:9: there is no line \"colour\""},
    {"\n//! brief b\n", "t.cu:2: there is no op line"},
    {FULL "//! op again\n", "t.cu:9: there is a second op line"},
    {"//! op 1st\n", "t.cu:1: the op name \"1st\" is not a C identifier"},
    {"//! op a b\n", "t.cu:1: op takes one name, not 2 words"},
    {"//! op abcdefghijklmnopqrstuvwxyzabcdefghijklmnopq\n", "has 43 characters; the most is 40"},
    {"//! op a\n//! brief\n", "t.cu:2: brief has no text"},
    {HEAD "//! types f32\n", "t.cu:5: \"f32\" is not a list of types"},
    {HEAD "//! types T = f16\n", "t.cu:5: there is no type \"f16\""},
    {HEAD "//! types T = f32 f32\n", "t.cu:5: the type f32 is listed twice"},
    {HEAD "//! types T = u8 i8 u16 i16 u32 i32 u64 i64 f32\n", "t.cu:5: more than 8 types"},
    {HEAD, "t.cu:1: there is no arg line"},
    {HEAD "//! arg n u64\n", "t.cu:5: an argument has a name, a type and a role, not 2 words"},
    {HEAD "//! arg 0 u64 size\n", "t.cu:5: the argument name \"0\" is not"},
    {HEAD "//! arg grid u64 size\n", "t.cu:5: \"grid\" means something else in expressions"},
    {HEAD "//! arg n u64 size\n//! arg n f32 in\n", "t.cu:6: there are two arguments \"n\""},
    {HEAD "//! arg n u65 size\n", "t.cu:5: there is no type \"u65\""},
    {HEAD "//! arg x T in\n", "t.cu:5: argument \"x\" is T, but the op has no types line"},
    {HEAD "//! arg n u64 inn\n", "t.cu:5: there is no role \"inn\""},
    {HEAD "//! arg n i64 size\n", "t.cu:5: size \"n\" is not an unsigned integer scalar"},
    {HEAD "//! arg n u64[4] size\n", "t.cu:5: size \"n\" is not an unsigned integer scalar"},
    {HEAD "//! arg y f32 out\n", "t.cu:5: \"y\" is written by the kernel but is a scalar"},
    {HEAD "//! arg x f32[4 in\n", "t.cu:5: ']' is missing after \"[4\""},
    {HEAD "//! arg x f32[] in\n", "t.cu:5: \"\" ends where a number or a name is expected"},
    {HEAD "//! arg x f32[n] in\n//! arg n u64 size\n", "t.cu:5: there is no size \"n\" before it"},
    {HEAD "//! arg n u64 size\n//! arg a f32 in\n//! arg x f32[a] in\n",
     "t.cu:7: argument \"a\" is not a size"},
    {HEAD "//! arg n u64 size\n//! arg x f32[n*grid] in\n", "t.cu:6: \"n*grid\": only the shape of a work"},
    {HEAD "//! arg n u64 size\n//! arg x f32[n*sizeof(T)] in\n",
     "t.cu:6: \"n*sizeof(T)\": a shape counts elements"},
    {HEAD "//! arg n u64 size\n//! arg x f32[n+] in\n", "t.cu:6: \"n+\" ends where a number or a name"},
    {HEAD "//! arg n u64 size\n//! arg x f32[(n] in\n", "t.cu:6: ')' is missing at the end of \"(n\""},
    {HEAD "//! arg n u64 size\n//! arg x f32[n)] in\n", "t.cu:6: \")\" is left over in \"n)\""},
    {HEAD "//! arg n u64 size\n//! arg x f32[ceil(n)] in\n", "t.cu:6: ',' is expected before \")\""},
    {HEAD "//! arg n u64 size\n//! arg x f32[n&1] in\n", "t.cu:6: \"&1\" is left over"},
    {HEAD "//! arg n u64 size\n//! arg x f32[18446744073709551616] in\n", "t.cu:6: a number in"},
    {HEAD "//! arg m u64 size>=n\n//! arg n u64 size\n", "t.cu:5: there is no size \"n\" before it"},
    {ARGS "//! launch elementwise n\n", "t.cu:1: there is no variant line"},
    {ARGS "//! variant\n", "t.cu:7: a variant has a name"},
    {ARGS "//! variant v cc>=x\n", "t.cu:7: \"x\" is not a compute capability like 9.0"},
    {ARGS "//! variant v cc>=9.0a\n", "t.cu:7: \"9.0a\" is not a compute capability like 9.0"},
    {ARGS "//! variant v cc=9.0\n", "t.cu:7: cc=9.0 is no target with its letter, like cc=9.0a or cc=10.0f"},
    {ARGS "//! variant v driver>=12\n", "t.cu:7: driver>=12 is not a CUDA version like 12.4"},
    {ARGS "//! variant v driver>=12.40\n", "t.cu:7: driver>=12.40 is not a CUDA version"},
    {ARGS "//! variant v driver>=0.4\n", "t.cu:7: driver>=0.4 is not a CUDA version"},
    {ARGS "//! variant v driver>=12.x\n", "t.cu:7: driver>=12.x is not a CUDA version"},
    {ARGS "//! variant v driver>=1234.5\n", "t.cu:7: driver>=1234.5 is not a CUDA version"},
    {ARGS "//! variant v cc>=9.0a\n", "t.cu:7: \"9.0a\" is not a compute capability like 9.0"},
    {ARGS "//! variant v align=12\n", "t.cu:7: align=12 is not a power of two up to 4096"},
    {ARGS "//! variant v shared>=0\n", "t.cu:7: shared>=0 is not a number of bytes"},
    {ARGS "//! variant v fast\n", "t.cu:7: there is no requirement \"fast\""},
    {ARGS "//! variant v\n//! variant v\n", "t.cu:8: there are two variants \"v\""},
    {ARGS "//! variant v\n", "t.cu:1: there is no launch line"},
    {ARGS "//! variant v\n//! launch somehow n\n", "t.cu:8: there is no launch rule \"somehow\""},
    {ARGS "//! variant v\n//! launch w: elementwise n\n", "t.cu:8: there is no variant \"w\""},
    {ARGS "//! variant v\n//! variant w\n//! launch w: elementwise n\n", "variant \"v\" has no launch rule"},
    {FULL "//! launch elementwise n\n", "t.cu:9: there is a launch line for all variants already"},
    {FULL "//! launch v: elementwise n\n//! launch v: elementwise n\n",
     "t.cu:10: there is a launch line for variant"},
    {ARGS "//! variant v\n//! launch elementwise\n", "t.cu:8: elementwise has too few extents"},
    {ARGS "//! variant v\n//! launch elementwise n n\n", "t.cu:8: elementwise has too many extents"},
    {ARGS "//! variant v\n//! launch elementwise m\n", "t.cu:8: there is no size \"m\" before it"},
    {ARGS "//! variant v\n//! launch elementwise n per_thread=0\n",
     "t.cu:8: per_thread=0 is not a number from 1"},
    {ARGS "//! variant v\n//! launch elementwise n block=2048\n",
     "t.cu:8: block=2048 is more than 1024 threads"},
    {ARGS "//! variant v\n//! launch elementwise n block=32x2\n", "t.cu:8: block=32x2 has not 1 dimension"},
    {ARGS "//! variant v\n//! launch elementwise n tile=2\n",
     "t.cu:8: \"tile=2\" is no option of elementwise"},
    {ARGS "//! variant v\n//! launch tiles n tile=2x2 block=2x2\n", "t.cu:8: tiles has too few extents"},
    {ARGS "//! variant v\n//! launch tiles n n\n", "t.cu:8: tiles needs tile= and block="},
    {ARGS "//! variant v\n//! launch tiles n n tile=2 block=2x2\n", "t.cu:8: tile=2 has not 2 dimensions"},
    {ARGS "//! variant v\n//! launch tiles n n waves=2\n", "t.cu:8: \"waves=2\" is no option of tiles"},
    {ARGS "//! variant v\n//! launch elementwise n shared=sizeof(T)\n",
     "names T, but the op has no types line"},
    {"//! op t\n//! compare nearly\n//! brief b\n//! source s\n//! arg x f32[4] in\n//! variant v\n"
     "//! launch elementwise 4\n",
     "t.cu:2: \"nearly\" is no promise"},
    {"//! op t\n//! compare ulp\n//! brief b\n//! source s\n//! arg x f32[4] in\n//! variant v\n"
     "//! launch elementwise 4\n",
     "t.cu:2: \"ulp\" is no promise"},
    {FULL "//! cost time=n\n", "t.cu:9: \"time=n\" is neither bytes= nor flops="},
    {FULL "//! cost bytes=n/0\n", "t.cu:9: \"n/0\" divides by zero"},
    {FULL "//! cost flops=ceil(n,0)\n", "t.cu:9: \"ceil(n,0)\" divides by zero"},
    {FULL "//! cost\n", "t.cu:9: cost names neither bytes= nor flops="},
    {FULL "//! split\n", "t.cu:9: split names a size"},
    {FULL "//! split x\n", "t.cu:9: there is no size \"x\""},
    {FULL "//! split n halo=none\n", "t.cu:9: halo=none is not a number of rows"},
    {FULL "//! split n evenly\n", "t.cu:9: \"evenly\" is neither halo= nor combine=add"},
    {HEAD "//! arg n u64 size\n//! arg m u64 size\n//! arg x f32[m*n] in\n//! variant v\n//! launch "
          "elementwise n\n"
          "//! split n\n",
     "t.cu:10: x[m*n] cannot be cut by n: its shape is not n*..."},
    {HEAD "//! arg n u64 size\n//! arg x f32[n] in\n//! arg s f32[1] out\n//! variant v\n//! launch "
          "elementwise n\n"
          "//! split n\n",
     "t.cu:10: s[1] is not cut by n and is written: combine=add is missing"},
};

START_TEST(what_is_wrong_is_said_with_its_line)
{
    kr_error err = {0};
    kr__op_def *def = NULL;
    ck_assert_int_eq(parse(bad[_i].text, &def, &err), KR_INVALID_ARGUMENT);
    ck_assert_msg(strstr(err.message, bad[_i].message), "\"%s\" instead of \"%s\"", err.message,
                  bad[_i].message);
    ck_assert_msg(err.advice[0] && !strstr(err.advice, ".md"), "advice: %s", err.advice);
    ck_assert_ptr_null(def);
    ck_assert_int_eq(parse(bad[_i].text, &def, NULL), KR_INVALID_ARGUMENT);
}
END_TEST

START_TEST(full_is_good)
{
    kr__op_def *def = parsed(FULL);
    kr__op_free(&def);
}
END_TEST

START_TEST(a_zero_byte_is_no_text)
{
    kr_error err;
    kr__op_def *def = NULL;
    ck_assert_int_eq(kr__op_parse("t.cu", "//! op t\n\0x", 11, &def, &err), KR_INVALID_ARGUMENT);
    ck_assert(strstr(err.message, "zero byte"));
}
END_TEST

START_TEST(the_file_is_utf8_without_a_mark)
{
    static const struct {
        const char *text, *message;
    } rows[] = {
        {"//! op t\n//! brief a\xff"
         "b\n",
         "t.cu:2: the byte FF is not UTF-8"},
        {"//! op t\n\n\n// \xe9t\xe9\n", "t.cu:4: the byte E9 is not UTF-8"}, /* code counts, too */
        {"\xef\xbb\xbf//! op t\n", "t.cu:1: the file begins with a byte-order mark"},
        {"kernels/t.cu", "t.cu:1: the text looks like a file name"},
        {"//! op t.cu \xff", "t.cu:1: the byte FF is not UTF-8"},
    };
    for (size_t i = 0; i < KR_COUNT(rows); i++) {
        kr_error err = {0};
        kr__op_def *def = NULL;
        ck_assert_int_eq(parse(rows[i].text, &def, &err), KR_INVALID_ARGUMENT);
        ck_assert_msg(strstr(err.message, rows[i].message) == err.message, "%s", err.message);
        ck_assert_msg(err.advice[0] && !strstr(err.advice, "//!"), "%s", err.advice);
    }
}
END_TEST

START_TEST(too_many_lines)
{
    kr_error err;
    kr__op_def *def = NULL;
    char text[100 * 12 + 1] = "";
    for (int i = 0; i < 100; i++)
        memcpy(text + 12 * i, "//! brief b\n", 13);
    ck_assert_int_eq(parse(text, &def, &err), KR_INVALID_ARGUMENT);
    ck_assert(strstr(err.message, "t.cu:65: more than 64 lines"));
}
END_TEST

/* Damage anywhere is an error or another op, never a crash (run under the sanitizers). */
START_TEST(any_byte_may_be_damaged)
{
    for (size_t i = 0; i < sizeof saxpy - 1; i++)
        for (const char *c = "x[=*\n "; *c; c++) {
            char text[sizeof saxpy];
            memcpy(text, saxpy, sizeof saxpy);
            text[i] = *c;
            kr__op_def *def = NULL;
            parse(text, &def, NULL);
            kr__op_free(&def);
        }
    for (size_t bytes = 0; bytes < sizeof saxpy; bytes++) {
        kr__op_def *def = NULL;
        kr__op_parse("t.cu", saxpy, bytes, &def, NULL);
        kr__op_free(&def);
    }
}
END_TEST

/* ---- expressions ---- */

static const struct {
    const char *text;
    bool ok;
    uint64_t value;    /* with n=10 m=3 sizeof(T)=8 grid=5 */
    const char *wrong; /* in the problem */
} values[] = {
    {"7", true, 7, NULL},
    {"n", true, 10, NULL},
    {"n+m*2", true, 16, NULL},
    {"(n+m)*2", true, 26, NULL},
    {"n-m-2", true, 5, NULL},
    {"n/m", true, 3, NULL},
    {"n/m*m", true, 9, NULL},
    {"ceil(n,m)", true, 4, NULL},
    {"ceil(9,m)", true, 3, NULL},
    {"ceil(0,m)", true, 0, NULL},
    {"ceil(18446744073709551615,2)", true, 9223372036854775808u, NULL},
    {"3*sizeof(T)*n", true, 240, NULL},
    {"2*grid", true, 10, NULL},
    {"18446744073709551615", true, UINT64_MAX, NULL},
    {"18446744073709551615+1", false, 0, "overflows 64 bits"},
    {"n*9223372036854775807", false, 0, "overflows 64 bits with n=10"},
    {"m-n", false, 0, "\"m-n\" is below zero with n=10 m=3"},
    {"n/(m-3)", false, 0, "divides by zero"},
    {"ceil(n,m-3)", false, 0, "divides by zero"},
};

START_TEST(expressions_have_values)
{
    kr__op_def *def =
        parsed(HEAD "//! arg n u64 size\n//! arg m u64 size\n//! variant v\n//! launch elementwise n\n");
    kr__problem problem;
    const kr__expression *e =
        kr__expression_parse(&def->arena, &def->op, values[_i].text, strlen(values[_i].text), problem);
    ck_assert_msg(e != NULL, "%s", problem);
    const uint64_t sizes[KR_MAX_OP_ARGS] = {10, 3};
    uint64_t value = 99;
    const bool ok = kr__expression_value(e, &def->op, &(kr__values){sizes, 8, 5}, &value, problem);
    ck_assert_int_eq(ok, values[_i].ok);
    ck_assert_uint_eq(value, ok ? values[_i].value : 99);
    if (!ok)
        ck_assert_msg(strstr(problem, values[_i].wrong), "%s", problem);
    kr__op_free(&def);
}
END_TEST

static const struct {
    const char *text;
    bool cut;
} cuts[] = {{"n", true},      {"n*m", true},  {"n*m*4", true},   {"n*(m+1)", true},   {"m", false},
            {"m*n", false},   {"n+1", false}, {"n*n", false},    {"n*m*n", false},    {"4", false},
            {"n*m/2", false}, {"(n)", true},  {"(n*m)*2", true}, {"ceil(n,2)", false}};

START_TEST(rows_are_cut_along_the_first_factor)
{
    kr__op_def *def =
        parsed(HEAD "//! arg n u64 size\n//! arg m u64 size\n//! variant v\n//! launch elementwise n\n");
    kr__problem problem;
    const kr__expression *e =
        kr__expression_parse(&def->arena, &def->op, cuts[_i].text, strlen(cuts[_i].text), problem);
    ck_assert_ptr_nonnull(e);
    ck_assert_msg(kr__expression_is_cut_by(e, 0) == cuts[_i].cut, "%s", cuts[_i].text);
    kr__op_free(&def);
}
END_TEST

START_TEST(deep_and_long_expressions_are_bounded)
{
    kr__op_def *def = parsed(FULL);
    kr__problem problem;
    char text[600];
    memset(text, '(', sizeof text);
    ck_assert_ptr_null(kr__expression_parse(&def->arena, &def->op, text, 256, problem));
    ck_assert_ptr_null(kr__expression_parse(&def->arena, &def->op, text, sizeof text, problem));
    ck_assert_msg(strstr(problem, "600 bytes; the longest is 256"), "%s", problem);
    kr__op_free(&def);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("descriptor");
    TCase *c = tcase_create("descriptor");
    tcase_add_test(c, everything_is_read);
    tcase_add_test(c, targets_and_drivers_are_read);
    tcase_add_test(c, tiles_are_read);
    tcase_add_test(c, full_is_good);
    tcase_add_loop_test(c, what_is_wrong_is_said_with_its_line, 0, (int)KR_COUNT(bad));
    tcase_add_test(c, a_zero_byte_is_no_text);
    tcase_add_test(c, the_file_is_utf8_without_a_mark);
    tcase_add_test(c, too_many_lines);
    tcase_add_test(c, any_byte_may_be_damaged);
    tcase_add_loop_test(c, expressions_have_values, 0, (int)KR_COUNT(values));
    tcase_add_loop_test(c, rows_are_cut_along_the_first_factor, 0, (int)KR_COUNT(cuts));
    tcase_add_test(c, deep_and_long_expressions_are_bounded);
    tcase_set_timeout(c, 60);
    suite_add_tcase(suite, c);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
