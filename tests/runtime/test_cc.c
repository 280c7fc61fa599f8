/* SPDX-License-Identifier: Apache-2.0 */
/* kr_cc against the published tables: the CUDA programming guide on binary compatibility and the PTX ISA's
 * .target families, as ptxas of CUDA 13.0 applies them. */
#include <check.h>
#include <regex.h>
#include <stdlib.h>
#include <string.h>

#include <kregistry/cc.h>

static kr_cc cc_of(const char *text)
{
    kr_cc cc = {0};
    ck_assert_msg(kr_cc_parse(text, &cc, NULL) == KR_OK, "%s", text);
    return cc;
}

START_TEST(reads)
{
    static const struct {
        const char *text;
        kr_cc cc;
    } rows[] = {
        {"sm_90a", {9, 0, 'a'}}, {"compute_100f", {10, 0, 'f'}}, {"lto_90", {9, 0, 0}},  {"90a", {9, 0, 'a'}},
        {"9.0", {9, 0, 0}},      {"9.0a", {9, 0, 'a'}},          {"sm_75", {7, 5, 0}},   {"12.1", {12, 1, 0}},
        {"121", {12, 1, 0}},     {"sm_103f", {10, 3, 'f'}},      {"10.3f", {10, 3, 'f'}}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const kr_cc cc = cc_of(rows[i].text);
        ck_assert_int_eq(cc.major, rows[i].cc.major);
        ck_assert_int_eq(cc.minor, rows[i].cc.minor);
        ck_assert_int_eq(cc.suffix, rows[i].cc.suffix);
    }
}
END_TEST

START_TEST(refuses)
{
    static const char *const rows[] = {"",           "sm_",      "sm_9", "9",       "90b", "sm_90 ", " 90",
                                       "sm_9.0",     "9.10",     "1000", "-90",     "9.",  ".0",     "90aa",
                                       "sm_90a+PTX", "SM_90",    "0.5",  "0x90",    "090", "09.0",   "100.0",
                                       "sm_-1",      "compute_", "9,0",  "sm_sm_90"};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        kr_cc cc = {1, 2, 'x'};
        kr_error err;
        ck_assert_msg(kr_cc_parse(rows[i], &cc, &err) == KR_INVALID_ARGUMENT, "\"%s\"", rows[i]);
        ck_assert(cc.major == 1 && cc.minor == 2 && cc.suffix == 'x'); /* untouched */
    }
    ck_assert_int_eq(kr_cc_parse(NULL, &(kr_cc){0}, NULL), KR_INVALID_ARGUMENT);
}
END_TEST

/* Every text of up to five characters of an alphabet, with and without prefixes, against a regular
 * expression. */
START_TEST(reads_what_the_grammar_says)
{
    static const char alphabet[] = "019.afx_", *const prefixes[] = {"", "sm_", "compute_", "lto_", "sm"};
    regex_t grammar;
    ck_assert_int_eq(regcomp(&grammar, "^((sm_|compute_|lto_)?[1-9][0-9]{1,2}|[1-9][0-9]?\\.[0-9])[af]?$",
                             REG_EXTENDED | REG_NOSUB),
                     0);
    const unsigned base = sizeof alphabet - 1;
    for (size_t p = 0; p < sizeof prefixes / sizeof prefixes[0]; p++)
        for (unsigned n = 0; n < base * base * base * base * (p ? 1 : base); n++) {
            char text[16];
            size_t at = strlen(strcpy(text, prefixes[p]));
            for (unsigned rest = n; rest; rest /= base)
                text[at++] = alphabet[rest % base];
            text[at] = '\0';
            kr_cc cc;
            const int accepted = kr_cc_parse(text, &cc, NULL) == KR_OK,
                      right = regexec(&grammar, text, 0, NULL, 0) == 0;
            ck_assert_msg(accepted == right, "\"%s\"", text);
        }
    regfree(&grammar);
}
END_TEST

START_TEST(writes)
{
    char text[KR_CC_TEXT_BYTES];
    ck_assert_str_eq(kr_cc_format((kr_cc){9, 0, 'a'}, text), "9.0a");
    ck_assert_str_eq(kr_cc_format((kr_cc){12, 1, 0}, text), "12.1");
}
END_TEST

START_TEST(compares_as_numbers)
{
    ck_assert_int_gt(kr_cc_compare(cc_of("10.0"), cc_of("9.0")), 0);
    ck_assert_int_lt(kr_cc_compare(cc_of("8.6"), cc_of("8.9")), 0);
    ck_assert_int_eq(kr_cc_compare(cc_of("9.0a"), cc_of("9.0")), 0);
}
END_TEST

static const struct {
    const char *target, *device;
    int cubin, ptx;
} runs[] = {
    {"7.5", "7.5", 1, 1},   {"8.0", "8.6", 1, 1},   {"8.6", "8.0", 0, 0},    {"7.5", "8.0", 0, 1},
    {"8.0", "8.7", 0, 1},   {"8.7", "8.7", 1, 1},   {"8.7", "8.9", 0, 1},    {"8.6", "8.9", 1, 1},
    {"7.0", "7.2", 0, 1},   {"5.2", "5.3", 0, 1},   {"6.1", "6.2", 0, 1},    {"9.0", "10.0", 0, 1},
    {"9.0a", "9.0", 1, 1},  {"9.0a", "10.0", 0, 0}, {"10.0a", "10.3", 0, 0}, {"10.0", "10.3", 1, 1},
    {"100f", "10.0", 1, 1}, {"100f", "10.3", 1, 1}, {"100f", "10.1", 0, 0},  {"100f", "11.0", 0, 0},
    {"100f", "12.0", 0, 0}, {"103f", "10.0", 0, 0}, {"103f", "10.3", 1, 1},  {"120f", "12.1", 1, 1},
    {"120f", "12.0", 1, 1}, {"121f", "12.0", 0, 0}, {"121f", "12.1", 1, 1},  {"110f", "11.0", 1, 1},
    {"101f", "11.0", 1, 1}, {"90f", "9.0", 0, 0},   {"11.0", "11.0", 1, 1},  {"12.0", "12.1", 1, 1},
    {"10.0", "9.0", 0, 0},  {"10.0", "11.0", 0, 1},
};

START_TEST(runs_on)
{
    const kr_cc target = cc_of(runs[_i].target), device = cc_of(runs[_i].device);
    ck_assert_msg(kr_cc_cubin_runs_on(target, device) == runs[_i].cubin, "cubin %s on %s", runs[_i].target,
                  runs[_i].device);
    ck_assert_msg(kr_cc_ptx_runs_on(target, device) == runs[_i].ptx, "PTX %s on %s", runs[_i].target,
                  runs[_i].device);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cc");
    TCase *tc = tcase_create("cc");
    tcase_add_test(tc, reads);
    tcase_add_test(tc, refuses);
    tcase_add_test(tc, reads_what_the_grammar_says);
    tcase_add_test(tc, writes);
    tcase_add_test(tc, compares_as_numbers);
    tcase_add_loop_test(tc, runs_on, 0, sizeof runs / sizeof runs[0]);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
