/* SPDX-License-Identifier: Apache-2.0 */
/* Every instruction form over 2048 operands against what an H200 gives (forms.tsv). With a file of raw
 * results (from record_forms) as argument: prints the first differences instead. */
#include "forms.h"
#include "ptx/front/front.h"
#include "softcuda/vm/decode.h"
#include "vm_run.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FORM_RESULTS = FORM_REGISTERS * FORM_THREADS };

typedef enum form_result { FORM_SAME, FORM_DIFFERS, FORM_NOT_DONE } form_result;

/* The driver's code for a fault. */
static uint64_t code_of(sc_fault_kind kind)
{
    static const uint64_t codes[] = {[SC_FAULT_OUT_OF_BOUNDS] = 700,
                                     [SC_FAULT_MISALIGNED] = 716,
                                     [SC_FAULT_ASSERT] = 710,
                                     [SC_FAULT_TRAP] = 719,
                                     [SC_FAULT_STACK] = 719,
                                     [SC_FAULT_TIMEOUT] = 702,
                                     [SC_FAULT_ILLEGAL_INSTRUCTION] = 715,
                                     [SC_FAULT_ADDRESS_SPACE] = 717,
                                     [SC_FAULT_DEADLOCK] = 702};
    return (size_t)kind < KR_COUNT(codes) ? codes[kind] : 0;
}

static form_result run_form(const form_line *form, uint64_t *results, char *why, size_t why_bytes)
{
    static char ptx[FORM_PTX_BYTES];
    vm_module module;
    sc_fault fault;
    form_ptx(form, ptx, sizeof ptx);
    if (!vm_load_text(&module, ptx, strlen(ptx))) {
        kr__format(why, why_bytes, "%s", module.problem);
        return FORM_NOT_DONE;
    }
    const size_t bytes = FORM_RESULTS * sizeof(uint64_t);
    const uint64_t params[3] = {vm_alloc(&module, bytes), vm_alloc(&module, bytes),
                                vm_alloc(&module, FORM_THREADS * FORM_MEMORY)};
    form_fill(form, (uint64_t *)(uintptr_t)params[1], (uint64_t *)(uintptr_t)params[2]);
    bool ok = vm_launch(&module, "form", (unsigned[3]){FORM_THREADS / FORM_BLOCK, 1, 1},
                        (unsigned[3]){FORM_BLOCK, 1, 1}, params, &fault, NULL);
    kr__format(why, why_bytes, "%s", ok ? "other results" : fault.text);
    memcpy(results, (void *)(uintptr_t)params[0], bytes);
    vm_unload(&module);
    const bool same = form->faults ? !ok && code_of(fault.kind) == form->hash
                                   : ok && form_hash(form, results) == form->hash;
    return same ? FORM_SAME : FORM_DIFFERS;
}

/* Approximations may differ from the hardware's inside their documented error: see test_ptx. */
static bool is_approximation(const form_line *form)
{
    return strstr(form->spelling, ".approx") || strstr(form->spelling, ".full");
}

static void print_differences(const form_line *form, const uint64_t *mine, const uint64_t *theirs)
{
    unsigned n = 0, shown = 0;
    for (unsigned i = 0; i < form->n_results * FORM_THREADS; i++)
        n += mine[i] != theirs[i];
    printf("%s: %u differ\n", form->spelling, n);
    for (unsigned i = 0; i < form->n_results * FORM_THREADS && shown < 4; i++) {
        if (mine[i] == theirs[i])
            continue;
        shown++;
        printf("   thread %u, result %u:", i % FORM_THREADS, i / FORM_THREADS);
        for (unsigned k = form->n_results; k < form->n_types && k < form->n_results + 6; k++)
            printf(" %llx", (unsigned long long)form_operand(form, k, i % FORM_THREADS));
        printf(" -> %llx, hardware %llx\n", (unsigned long long)mine[i], (unsigned long long)theirs[i]);
    }
}

static unsigned failures, not_done, same;

static void each_form(FILE *raw)
{
    static uint64_t mine[FORM_RESULTS], theirs[FORM_RESULTS];
    FILE *list = fopen(VM_DATA "/forms.tsv", "r");
    char line[1024], why[400];
    form_line form;
    while (list && fgets(line, sizeof line, list)) {
        if (!form_parse(line, &form))
            continue;
        const size_t n = form.faults ? 0 : (size_t)form.n_results * FORM_THREADS;
        if (raw && fread(theirs, sizeof theirs[0], n, raw) != n)
            break;
        if (form.hash == 0 || is_approximation(&form))
            continue;
        form_result result = run_form(&form, mine, why, sizeof why);
        same += result == FORM_SAME;
        if (result == FORM_NOT_DONE) {
            not_done++;
            fprintf(stderr, "%s: %s", form.spelling, why);
        } else if (result == FORM_DIFFERS) {
            failures++;
            if (raw && !form.faults)
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
    ck_assert_uint_eq(not_done, 0);
    ck_assert_uint_ge(same, 2821);
}
END_TEST

/* ---- every instruction ---- */

static bool is_recorded[PTX_OP_COUNT];

/* The row with the longest name that the instruction's begins with. */
static void mark(const char *instruction)
{
    size_t best = PTX_OP_COUNT, most = 0;
    for (size_t op = 0; op < PTX_OP_COUNT; op++) {
        const char *name = kr__ptx_opcodes[op].name;
        const size_t bytes = strlen(name);
        if (strncmp(instruction, name, bytes) == 0 && strchr(". ;", instruction[bytes]) && bytes > most) {
            best = op;
            most = bytes;
        }
    }
    if (best < PTX_OP_COUNT)
        is_recorded[best] = true;
}

/* Each instruction of a piece of code: past labels, guards and braces. */
static void mark_all(char *code)
{
    char *rest = NULL;
    for (char *at = strtok_r(code, ";", &rest); at; at = strtok_r(NULL, ";", &rest))
        for (char *word = strtok(at, " "); word; word = strtok(NULL, " ")) {
            const size_t bytes = strlen(word);
            if (word[0] == '@' || word[0] == '{' || word[0] == '}' || word[bytes - 1] == ':')
                continue;
            mark(word);
            break;
        }
}

/* A row of the table that softcuda executes says where the instruction is described, and some line of
 * forms.tsv is about it. */
START_TEST(rows_are_cited_and_recorded)
{
    FILE *list = fopen(VM_DATA "/forms.tsv", "r");
    char line[1024];
    form_line form;
    unsigned missing = 0;
    while (list && fgets(line, sizeof line, list))
        if (form_parse(line, &form) && form.hash)
            mark_all(form.spelling);
    ck_assert_ptr_nonnull(list);
    fclose(list);
    for (size_t op = 0; op < PTX_OP_COUNT; op++) {
        const ptx_opcode *row = &kr__ptx_opcodes[op];
        const bool is_cited = row->sections && row->sections[0];
        if (is_cited && (is_recorded[op] || !sc__executes((ptx_op)op, row->name)))
            continue;
        fprintf(stderr, "%s: %s\n", row->name, is_cited ? "no recorded form" : "no citation");
        missing++;
    }
    ck_assert_uint_eq(missing, 0);
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
    tcase_add_test(tests, rows_are_cited_and_recorded);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
