/* SPDX-License-Identifier: Apache-2.0 */
/* What relevelling makes of an instruction gives what the instruction gave an H200 (tests/vm/forms.tsv), at
 * every level that takes it; where none is recorded (further), what it gives on softcuda. With a folder as
 * argument: the PTX goes there, for the assembler of that level (ptxas.sh). */
#include <kregistry/relevel.h>

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ptx/relevel/relevel.h"
#include "tests/vm/forms.h"
#include "tests/vm/vm_run.h"

enum { RESULTS = FORM_REGISTERS * FORM_THREADS };

static const struct goal {
    int isa;
    kr_cc target;
} goals[] = {{80, {9, 0, 0}}, {78, {8, 0, 0}}, {78, {7, 5, 0}}, {70, {7, 5, 0}},
             {63, {7, 0, 0}}, {60, {6, 0, 0}}, {50, {6, 0, 0}}};

/* Lines as of forms.tsv: those that rules are for and that were not recorded. */
static const char *const further[] = {
    "ld.global.L1::evict_normal.L2::64B.b32 $0, [%m]\tb32 =",
    "ld.global.L1::evict_unchanged.L2::128B.b32 $0, [%m]\tb32 =",
    "st.global.L1::evict_first.b32 [%m], $1; ld.global.b32 $0, [%m]\tb32 = b32",
    "atom.add.acquire.cta.global.u32 $0, [%m], $1; atom.add.acquire.sys.global.u32 $0, [%m], $1\tb32 = b32",
    "atom.add.release.gpu.global.u32 $0, [%m], $1; atom.acq_rel.sys.global.add.u32 $0, [%m], $1\tb32 = b32",
    "red.release.gpu.global.add.u32 [%m], $1; ld.relaxed.gpu.global.u32 $0, [%m]\tb32 = b32",
    "atom.acq_rel.cta.global.add.u32 $0, [%m], $1; atom.add.release.global.u32 $0, [%m], $1\tb32 = b32",
    "cp.async.ca.shared.global [%s], [%m], 4, 4; cp.async.wait_all; ld.shared.b32 $0, [%s]\tb32 =",
    "cp.async.ca.shared.global [%s], [%m], 8, 8; cp.async.wait_all; ld.shared.b32 $0, [%s+4]\tb32 =",
    "cp.async.cg.shared.global.L2::128B [%s], [%m+16], 16, 16; cp.async.commit_group; cp.async.wait_group 0; "
    "ld.shared.b32 $0, [%s+12]\tb32 =",
    "createpolicy.fractional.L2::evict_last.b64 %y0; ld.global.L2::cache_hint.b32 $0, [%m], %y0; "
    "cp.async.ca.shared.global.L2::cache_hint [%s+4], [%m], 4, %y0; cp.async.wait_all; ld.shared.b32 $1, "
    "[%s+4]\tb32 b32 =",
    "{.param .b32 p, q; st.param::func.b32 [p], $1; call (q), twice, (p); ld.param::func.b32 %x0, [q];} "
    "mov.b32 $0, %x0\tb32 "
    "= b32",
    "red.global.add.noftz.bf16x2 [%m], $1; ld.global.b32 $0, [%m]\tb32 = bf16x2",
    "@%p0 abs.bf16 $0, $1; @!%p0 redux.sync.add.u32 %x0, %t, -1; fence.acq_rel.gpu; cvt.u16.u32 $0, %x0\tb16 "
    "= bf16",
    "setp.lt.u32 %p0, %t, 16; @%p0 redux.sync.add.u32 $0, $1, 0xffff; @!%p0 redux.sync.max.u32 $0, $1, "
    "0xffff0000\tb32 = b32",
    "setp.lt.s32 %p1, $1, $2; @%p1 min.s16x2 $0, $1, $2; @!%p1 max.s16x2.relu $0, $1, $2\tb32 = b32 b32",
/* a mask may name lanes that have exited: they have no part in it */
#define EXITED "setp.lt.u32 %p0, %t, 5; @%p0 exit; setp.gt.s32 %p1, $1, 0; setp.ne.s32 %p2, $1, $1; "
    EXITED "redux.sync.add.u32 $0, $1, -1\tb32 = b32",
    EXITED "redux.sync.min.s32 $0, $1, -1\tb32 = b32",
    EXITED "match.any.sync.b32 $0, $1, -1\tb32 = b32",
    EXITED "match.all.sync.b32 $0|%p1, 7, -1; @!%p1 not.b32 $0, $0\tb32 = b32",
    EXITED "match.all.sync.b32 $0|%p1, $1, -1; @!%p1 not.b32 $0, $0\tb32 = b32",
    EXITED "elect.sync %x0|%p1, -1; selp.b32 $0, %x0, -1, %p1\tb32 = b32",
    EXITED "vote.sync.ballot.b32 $0, %p1, -1\tb32 = b32",
    EXITED "vote.sync.all.pred %p1, !%p2, -1; selp.b32 $0, 1, 2, %p1\tb32 = b32",
    EXITED "vote.sync.any.pred %p1, %p2, -1; selp.b32 $0, 1, 2, %p1\tb32 = b32",
    EXITED "vote.sync.uni.pred %p1, !%p2, -1; selp.b32 $0, 1, 2, %p1\tb32 = b32",
};
/* Those of sm_100, which neither had, and what PTX says they are. */
#define EACH_FLOAT(op)                                                        \
    "mov.b64 {%x0,%x1}, $1; mov.b64 {%x2,%x3}, $2; " op " %x0, %x0, %x2; " op \
    " %x1, %x1, %x3; mov.b64 $0, {%x0,%x1}"
static const char *const wide[][2] = {
    {"add.rz.ftz.f32x2 $0, $1, $2\tb64 = b64 b64", EACH_FLOAT("add.rz.ftz.f32") "\tb64 = b64 b64"},
    {"sub.rn.f32x2 $0, $1, $2\tb64 = b64 b64", EACH_FLOAT("sub.rn.f32") "\tb64 = b64 b64"},
    {"mul.f32x2 $0, $1, $2\tb64 = b64 b64", EACH_FLOAT("mul.rn.f32") "\tb64 = b64 b64"},
    {"fma.rn.f32x2 $0, $1, $2, $1\tb64 = b64 b64", "mov.b64 {%x0,%x1}, $1; mov.b64 {%x2,%x3}, $2; fma.rn.f32 "
                                                   "%x2, %x0, %x2, %x0; fma.rn.f32 %x3, %x1, %x3, %x1;"
                                                   " mov.b64 $0, {%x2,%x3}\tb64 = b64 b64"},
    {"max.NaN.f32 $0, $1, $2, $3\tf32 = f32 f32 f32",
     "max.NaN.f32 %x0, $2, $3; max.NaN.f32 $0, $1, %x0\tf32 = f32 f32 f32"},
    {"min.ftz.f32 $0, $1, $2, $3\tf32 = f32 f32 f32",
     "min.ftz.f32 %x0, $2, $3; min.ftz.f32 $0, $1, %x0\tf32 = f32 f32 f32"},
};

static const char *const rules[] = {
#define HINT(isa, sm, word) word,
#define SPELLING(isa, sm, from, to) from,
#define FORM(isa, sm, from, to) from,
#define PRAGMA(isa, sm, word)
#define REFUSE(isa, sm, from)
#include "ptx/relevel/rules.def"
};
static unsigned n_used[KR_COUNT(rules)];

/* Which rules are for what stands in the text, and in what they make of it. */
static void note_rules(const ptx_rules *table, const char *text, size_t bytes, unsigned depth)
{
    ptx_reader reader = {.at = text, .end = text + bytes, .depth = depth};
    ptx_statement s;
    unsigned serial = 0;
    for (kr__ptx_next_statement(&reader, &s); s.kind; kr__ptx_next_statement(&reader, &s)) {
        kr__text made = {0};
        const char *rule =
            s.kind == PTX_STATEMENT_INSTRUCTION ? kr__ptx_rewrite(table, &s, &serial, &made).rule : NULL;
        for (size_t i = 0; rule && i < KR_COUNT(rules); i++)
            n_used[i] += !strcmp(rules[i], rule);
        if (rule && made.data)
            note_rules(table, made.data, made.bytes, 1);
        kr__text_free(&made);
    }
}

static const char *folder; /* where the PTX goes; NULL: it is run */

static void save(const kr_releveled *r, unsigned number)
{
    char path[512];
    kr__format(path, sizeof path, "%s/%d-%d%d-%u.ptx", folder, r->to_isa, r->to_target.major,
               r->to_target.minor, number);
    FILE *to = fopen(path, "w");
    ck_assert_ptr_nonnull(to);
    ck_assert_uint_eq(fwrite(r->ptx, 1, r->bytes, to), r->bytes);
    fclose(to);
}

/* The hash of its results; 0: why. */
static uint64_t run(const form_line *form, const char *ptx, size_t bytes, char *why, size_t why_bytes)
{
    static uint64_t results[RESULTS];
    vm_module module;
    sc_fault fault;
    if (!vm_load_text(&module, ptx, bytes)) {
        kr__format(why, why_bytes, "%s", module.problem);
        return 0;
    }
    const uint64_t params[3] = {vm_alloc(&module, sizeof results), vm_alloc(&module, sizeof results),
                                vm_alloc(&module, FORM_THREADS * FORM_MEMORY)};
    form_fill(form, (uint64_t *)(uintptr_t)params[1], (uint64_t *)(uintptr_t)params[2]);
    const bool ok = vm_launch(&module, "form", (unsigned[3]){FORM_THREADS / FORM_BLOCK, 1, 1},
                              (unsigned[3]){FORM_BLOCK, 1, 1}, params, &fault, NULL);
    kr__format(why, why_bytes, "%s", ok ? "other results" : fault.text);
    memcpy(results, (void *)(uintptr_t)params[0], sizeof results);
    vm_unload(&module);
    return ok ? form_hash(form, results) : 0;
}

static unsigned n_same, n_wrong;

static void check_releveled(const form_line *form, const char *ptx, const kr_releveled *r)
{
    const kr_cc to = r->to_target;
    char why[400];
    ptx_rules *table = kr__ptx_rules_create((ptx_level){r->to_isa, to.major * 10 + to.minor}, false);
    note_rules(table, ptx, strlen(ptx), 0);
    kr__ptx_rules_destroy(&table);
    if (form_may_differ(form))
        return;
    const uint64_t hash = run(form, r->ptx, r->bytes, why, sizeof why);
    n_same += hash == form->hash;
    n_wrong += hash != form->hash;
    if (hash != form->hash)
        fprintf(stderr, "%s at PTX %d for sm_%d%d: %s\n", form->spelling, r->to_isa, to.major, to.minor, why);
}

/* At every level that takes it. */
static void check_form(const form_line *form, const char *ptx, unsigned number)
{
    for (size_t g = 0; g < KR_COUNT(goals); g++) {
        const kr_relevel_options options = {
            .struct_size = sizeof options, .isa = goals[g].isa, .target = goals[g].target};
        kr_releveled *r = NULL;
        if (kr_ptx_relevel(ptx, strlen(ptx), &options, &r, NULL))
            continue;
        if (folder && r->n_rewritten)
            save(r, number);
        else if (r->n_rewritten)
            check_releveled(form, ptx, r);
        kr_releveled_destroy(&r);
    }
}

static void each_recorded(void)
{
    static char ptx[FORM_PTX_BYTES];
    FILE *list = fopen(VM_DATA "/forms.tsv", "r");
    char line[1024];
    form_line form;
    ck_assert_ptr_nonnull(list);
    for (unsigned number = 1; fgets(line, sizeof line, list); number++)
        if (form_parse(line, &form) && form.hash && !form.faults) {
            form_ptx(&form, ptx, sizeof ptx);
            check_form(&form, ptx, number);
        }
    fclose(list);
}

/* `line`, relevelled, gives what `equal` does. */
static void check_line(const char *line, const char *equal, const char *target)
{
    static char made[FORM_PTX_BYTES], ptx[FORM_PTX_BYTES + 64];
    static unsigned number = 10000;
    char why[400] = "";
    form_line form;
    ck_assert(form_parse(equal, &form));
    form_ptx(&form, made, sizeof made);
    const uint64_t hash = run(&form, made, strlen(made), why, sizeof why);
    ck_assert_msg(hash, "%s: %s", equal, why);
    ck_assert(form_parse(line, &form));
    form.hash = hash;
    form_ptx(&form, made, sizeof made);
    kr__format(ptx, sizeof ptx, ".version 9.0\n.target %s\n%s", target, strstr(made, ".address_size"));
    check_form(&form, ptx, number++);
}

static void each_form(void)
{
    each_recorded();
    for (size_t i = 0; i < KR_COUNT(further); i++)
        check_line(further[i], further[i], "sm_90");
    for (size_t i = 0; i < KR_COUNT(wide); i++)
        check_line(wide[i][0], wide[i][1], "sm_100");
}

START_TEST(same_bits)
{
    each_form();
    if (folder)
        return;
    for (size_t i = 0; i < KR_COUNT(rules); i++)
        if (!n_used[i]) {
            fprintf(stderr, "no form is for the rule %s\n", rules[i]);
            n_wrong++;
        }
    ck_assert_uint_eq(n_wrong, 0);
    ck_assert_uint_ge(n_same, 1000);
}
END_TEST

int main(int argc, char **argv)
{
    folder = argc > 1 ? argv[1] : NULL;
    Suite *suite = suite_create("relevel rules");
    TCase *all = tcase_create("all");
    tcase_set_timeout(all, 0);
    tcase_add_test(all, same_bits);
    suite_add_tcase(suite, all);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
