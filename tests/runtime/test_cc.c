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

/* Every target on every device, in this order of devices. PTX: what ptxas of CUDA 13.0 and, for what that has
 * no more, of 12.9 compiles for the device (its plain arch or one with a letter); '?': none of them knows
 * both. Machine code: the CUDA programming guide, binary compatibility; families as the PTX ISA has them. */
static const char devices[][5] = {"50", "52", "53", "60", "61",  "62",  "70",  "72",  "75",  "80", "86",
                                  "87", "88", "89", "90", "100", "101", "103", "110", "120", "121"};
static const struct {
    const char *target, *ptx, *cubin;
} matrix[] = {
    {"sm_50", "111111111111111111111", "110000000000000000000"},
    {"sm_52", "011111111111111111111", "010000000000000000000"},
    {"sm_53", "001111111111111111111", "001000000000000000000"},
    {"sm_60", "000111111111111111111", "000110000000000000000"},
    {"sm_61", "000011111111111111111", "000010000000000000000"},
    {"sm_62", "000001111111111111111", "000001000000000000000"},
    {"sm_70", "000000111111111111111", "000000101000000000000"},
    {"sm_72", "000000011111111111111", "000000010000000000000"},
    {"sm_75", "000000001111111111111", "000000001000000000000"},
    {"sm_80", "000000000111111111111", "000000000110110000000"},
    {"sm_86", "000000000011111111111", "000000000010110000000"},
    {"sm_87", "000000000001111111111", "000000000001000000000"},
    {"sm_88", "????????00001111?1111", "000000000000110000000"},
    {"sm_89", "000000000000011111111", "000000000000010000000"},
    {"sm_90", "000000000000001111111", "000000000000001000000"},
    {"sm_90a", "000000000000001000000", "000000000000001000000"},
    {"sm_100", "000000000000000111111", "000000000000000101000"},
    {"sm_100a", "000000000000000100000", "000000000000000100000"},
    {"sm_100f", "000000000000000101000", "000000000000000101000"},
    {"sm_101", "000000000000000011111", "000000000000000010000"},
    {"sm_101a", "000000000000000010100", "000000000000000010000"},
    {"sm_101f", "000000000000000010100", "000000000000000010000"},
    {"sm_103", "000000000000000001111", "000000000000000001000"},
    {"sm_103a", "000000000000000001000", "000000000000000001000"},
    {"sm_103f", "000000000000000001000", "000000000000000001000"},
    {"sm_110", "????????00000000?0111", "000000000000000000100"},
    {"sm_110a", "????????00000000?0100", "000000000000000000100"},
    {"sm_110f", "????????00000000?0100", "000000000000000000100"},
    {"sm_120", "000000000000000000011", "000000000000000000011"},
    {"sm_120a", "000000000000000000010", "000000000000000000010"},
    {"sm_120f", "000000000000000000011", "000000000000000000011"},
    {"sm_121", "000000000000000000001", "000000000000000000001"},
    {"sm_121a", "000000000000000000001", "000000000000000000001"},
    {"sm_121f", "000000000000000000001", "000000000000000000001"},
};

START_TEST(runs_on)
{
    const kr_cc target = cc_of(matrix[_i].target);
    for (size_t i = 0; i < sizeof devices / sizeof devices[0]; i++) {
        const kr_cc device = cc_of(devices[i]);
        ck_assert_msg(kr_cc_cubin_runs_on(target, device) == (matrix[_i].cubin[i] == '1'), "cubin %s on %s",
                      matrix[_i].target, devices[i]);
        ck_assert_msg(matrix[_i].ptx[i] == '?' ||
                          kr_cc_ptx_runs_on(target, device) == (matrix[_i].ptx[i] == '1'),
                      "PTX %s on %s", matrix[_i].target, devices[i]);
    }
}
END_TEST

/* What no table has does not match. */
START_TEST(unknown_families_do_not_match)
{
    static const char *const rows[][2] = {
        {"90f", "90"}, {"100f", "105"}, {"105f", "105"}, {"130f", "130"}, {"110f", "101"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ck_assert(!kr_cc_ptx_runs_on(cc_of(rows[i][0]), cc_of(rows[i][1])));
        ck_assert(!kr_cc_cubin_runs_on(cc_of(rows[i][0]), cc_of(rows[i][1])));
    }
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
    tcase_add_loop_test(tc, runs_on, 0, sizeof matrix / sizeof matrix[0]);
    tcase_add_test(tc, unknown_families_do_not_match);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
