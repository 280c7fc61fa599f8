/* SPDX-License-Identifier: Apache-2.0 */
/* Every instruction form over 2048 operands against what an H200 gives (forms.tsv). With a file of raw
 * results (from record_forms) as argument: prints the first differences instead. */
#include "forms.h"
#include "vm_run.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef enum form_result { FORM_SAME, FORM_DIFFERS, FORM_NOT_DONE } form_result;

static form_result run_form(const form_line *form, uint64_t results[FORM_THREADS], char *why,
                            size_t why_bytes)
{
    char ptx[4096];
    vm_module module;
    sc_fault fault;
    form_ptx(form, ptx, sizeof ptx);
    if (!vm_load_text(&module, ptx, strlen(ptx))) {
        kr__format(why, why_bytes, "%s", module.problem);
        return FORM_NOT_DONE;
    }
    uint64_t params[5];
    for (unsigned k = 0; k < 5; k++)
        params[k] = vm_alloc(&module, FORM_THREADS * 8);
    for (unsigned k = 1; k < form->n_types; k++)
        for (unsigned i = 0; i < FORM_THREADS; i++)
            ((uint64_t *)(uintptr_t)params[k])[i] = form_operand(form, k, i);
    bool ok = vm_launch(&module, "form", (unsigned[3]){FORM_THREADS / 256, 1, 1}, (unsigned[3]){256, 1, 1},
                        params, &fault, NULL);
    kr__format(why, why_bytes, "%s", ok ? "other results" : fault.text);
    if (ok)
        memcpy(results, (void *)(uintptr_t)params[0], FORM_THREADS * 8);
    vm_unload(&module);
    return ok && form_hash(form, results) == form->hash ? FORM_SAME : FORM_DIFFERS;
}

/* Approximations may differ from the hardware's inside their documented error: see test_approx. */
static bool is_approximation(const form_line *form)
{
    return strstr(form->spelling, ".approx") || strstr(form->spelling, ".full");
}

static void print_differences(const form_line *form, const uint64_t *mine, const uint64_t *theirs)
{
    unsigned n = 0, shown = 0;
    for (unsigned i = 0; i < FORM_THREADS; i++)
        n += mine[i] != theirs[i];
    printf("%s: %u differ\n", form->spelling, n);
    for (unsigned i = 0; i < FORM_THREADS && shown < 4; i++) {
        if (mine[i] == theirs[i])
            continue;
        shown++;
        printf("   ");
        for (unsigned k = 1; k < form->n_types; k++)
            printf(" %llx", (unsigned long long)form_operand(form, k, i));
        printf(" -> %llx, hardware %llx\n", (unsigned long long)mine[i], (unsigned long long)theirs[i]);
    }
}

static unsigned failures, not_done, same;

static void each_form(FILE *raw)
{
    static uint64_t mine[FORM_THREADS], theirs[FORM_THREADS];
    FILE *list = fopen(VM_DATA "/forms.tsv", "r");
    char line[256], why[400];
    form_line form;
    while (list && fgets(line, sizeof line, list)) {
        if (!form_parse(line, &form))
            continue;
        if (raw && fread(theirs, 1, sizeof theirs, raw) != sizeof theirs)
            break;
        if (form.hash == 0 || is_approximation(&form))
            continue;
        form_result result = run_form(&form, mine, why, sizeof why);
        same += result == FORM_SAME;
        if (result == FORM_NOT_DONE) {
            not_done++;
            if (raw)
                printf("%s: %s", form.spelling, why);
        } else if (result == FORM_DIFFERS) {
            failures++;
            if (raw)
                print_differences(&form, mine, theirs);
            else
                fprintf(stderr, "%s: %s\n", form.spelling, why);
        }
    }
    if (list)
        fclose(list);
}

START_TEST(as_hardware)
{
    each_form(NULL);
    ck_assert_uint_eq(failures, 0);
    ck_assert_uint_ge(same, 965);
}
END_TEST

int main(int argc, char **argv)
{
    if (argc > 1) {
        FILE *raw = fopen(argv[1], "rb");
        each_form(raw);
        printf("%u as on hardware, %u differ, %u not done\n", same, failures, not_done);
        return 0;
    }
    Suite *suite = suite_create("forms");
    TCase *tests = tcase_create("forms");
    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, as_hardware);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
