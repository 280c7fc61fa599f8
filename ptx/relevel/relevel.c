/* SPDX-License-Identifier: Apache-2.0 */
/* The text is edited, not printed anew; the verifier at the level to get to is the judge of it. */
#include <kregistry/relevel.h>

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "ptx/front/ptx.h"
#include "ptx/image/image.h"
#include "ptx/image/scan.h"
#include "ptx/relevel/relevel.h"
#include "runtime/driver/driver.h"
#include "runtime/internal.h"

enum {
    LOWEST_ISA = 60,      /* of the oldest driver that is known: who asks for the lowest gets no less */
    OWN_PROGRESS_SM = 70, /* from here on the threads of a warp progress on their own */
    LABELED_ISA = 70,     /* debug data may have labels: the names that inlined_at has */
    INLINED_ISA = 72,     /* .loc says what was inlined */
    NAME_BYTES = 24
};

typedef struct header {
    int isa;
    int sm;
    char target[NAME_BYTES]; /* "sm_90a" */
} header;

typedef struct job {
    ptx_slice input;
    kr__ptx_head head; /* the input's */
    header from, to;
    kr__text output;
    size_t n_rewritten;
    bool spells_older; /* also where the level has the younger spelling */
    kr_error *err;
} job;

/* ---- the header ---- */

static header header_of(int isa, kr_cc target)
{
    header h = {.isa = isa, .sm = target.major * 10 + target.minor};
    kr__format(h.target, sizeof h.target, "sm_%d%.1s", h.sm, &target.suffix);
    return h;
}

static header at_target(int isa, int sm)
{
    return header_of(isa, (kr_cc){sm / 10, sm % 10, 0});
}

/* What runs on fewer devices is higher: sm_90a than sm_90. */
static int rank(int sm, char suffix)
{
    return 3 * sm + (suffix == 'a' ? 2 : suffix == 'f');
}

/* The header's target where the ISA has it, else the highest below it that the ISA has. */
static header highest_target(int isa, header of)
{
    const int needs = kr__ptx_target_isa(of.target);
    header h = of;
    h.isa = isa;
    for (int sm = of.sm; (!needs || needs > isa) && sm > 0; sm--) {
        const header lower = at_target(isa, sm);
        const int since = kr__ptx_target_isa(lower.target);
        if (since && since <= isa)
            return lower;
    }
    return h;
}

/* ---- editing ---- */

typedef struct editor {
    const ptx_rules *rules;
    header to;
    unsigned serial;
    size_t n_rewritten;
    kr__text *output;
    ptx_level needs; /* of the first instruction that there is no way for; isa 0: none */
    const char *needed_at;
} editor;

static void copy(const editor *e, const char *at, const char *end)
{
    kr__text_add_bytes(e->output, at, (size_t)(end - at));
}

static bool edit_instruction(editor *e, const ptx_statement *s, unsigned depth);

/* What a rule makes may need rules itself. */
static void edit_made(editor *e, const kr__text *made, unsigned depth)
{
    ptx_reader reader = {.at = made->data, .end = made->data + made->bytes, .depth = 1};
    const char *copied = reader.at;
    ptx_statement s;
    for (kr__ptx_next_statement(&reader, &s); s.kind; kr__ptx_next_statement(&reader, &s)) {
        copy(e, copied, s.whole.at);
        if (s.kind != PTX_STATEMENT_INSTRUCTION || !edit_instruction(e, &s, depth))
            copy(e, s.whole.at, reader.at);
        copied = reader.at;
    }
    copy(e, copied, reader.end);
}

static bool edit_instruction(editor *e, const ptx_statement *s, unsigned depth)
{
    enum { MAX_DEPTH = 8 };
    kr__text text = {0};
    const ptx_made made = depth < MAX_DEPTH ? kr__ptx_rewrite(e->rules, s, &e->serial, &text) : (ptx_made){0};
    if (made.needs.isa && !e->needs.isa)
        e->needs = made.needs;
    if (text.data)
        edit_made(e, &text, depth + 1);
    e->output->failed |= text.failed;
    kr__text_free(&text);
    return made.rule;
}

static void copy_without_labels(const editor *e, const char *at, const char *end)
{
    const char *copied = at;
    for (const char *begin, *after, *colon;; at = after) {
        begin = kr__scan_blanks(at, end);
        after = kr__scan_token(begin, end);
        if (after == begin)
            break;
        colon = kr__scan_blanks(after, end);
        if (colon < end && *colon == ':') {
            copy(e, copied, begin);
            copied = after = colon + 1;
        }
    }
    copy(e, copied, end);
}

static void edit_statement(editor *e, const ptx_statement *s)
{
    const char *end = s->whole.at + s->whole.bytes;
    switch (s->kind) {
    case PTX_STATEMENT_SECTION:
        copy(e, s->whole.at, e->to.isa < LABELED_ISA ? s->value.at : end);
        if (e->to.isa < LABELED_ISA)
            copy_without_labels(e, s->value.at, end);
        break;
    case PTX_STATEMENT_LOCATION:
        copy(e, s->whole.at, e->to.isa < INLINED_ISA ? s->value.at : end);
        break;
    case PTX_STATEMENT_PRAGMA:
        if (!kr__ptx_drops_pragma(e->rules, s->value))
            copy(e, s->whole.at, end);
        else
            e->n_rewritten++;
        break;
    default:
        if (!edit_instruction(e, s, 0))
            copy(e, s->whole.at, end);
        else if (e->needs.isa && !e->needed_at)
            e->needed_at = s->whole.at;
        else
            e->n_rewritten++;
    }
}

/* Names that were made before are not made again. */
static unsigned first_serial(ptx_slice text)
{
    static const char prefix[] = "$kr";
    unsigned next = 0;
    const char *at = text.at, *const end = text.at + text.bytes;
    while ((at = memmem(at, (size_t)(end - at), prefix, sizeof prefix - 1))) {
        at += sizeof prefix - 1;
        unsigned serial = 0;
        for (; at < end && *at >= '0' && *at <= '9' && serial < UINT_MAX / 20; at++)
            serial = 10 * serial + (unsigned)(*at - '0');
        next = serial >= next ? serial + 1 : next;
    }
    return next;
}

/* ---- judging ---- */

/* "ptxas application ptx input, line 7; error   : what", or "fatal   : what", without what stands before the
 * what */
static ptx_slice first_error(const kr__text *log)
{
    static const char before[] = "   : ";
    const char *at = log->data ? strstr(log->data, before) : NULL;
    at = at ? at + sizeof before - 1 : log->data ? log->data : "";
    return (ptx_slice){at, strcspn(at, "\n")};
}

static ptx_slice line_of(ptx_slice text, unsigned line)
{
    const char *at = text.at, *const end = text.at + text.bytes, *stop;
    for (; line > 1 && (stop = memchr(at, '\n', (size_t)(end - at))); line--)
        at = stop + 1;
    at = at < end ? kr__scan_blanks(at, end) : at;
    stop = at < end ? memchr(at, '\n', (size_t)(end - at)) : NULL;
    stop = stop ? stop : end;
    while (stop > at && (stop[-1] == ' ' || stop[-1] == '\t' || stop[-1] == '\r'))
        stop--;
    return (ptx_slice){at, (size_t)(stop - at)};
}

static kr_status refuse(job *j, unsigned line_at, ptx_slice why, const char *log)
{
    static const char lacks[] = "not supported on .target"; /* the assembler does not say which has it */
    const ptx_slice line = line_of(j->input, line_at);
    const bool is_named = !memmem(why.at, why.bytes, lacks, sizeof lacks - 1);
    KR_FAIL(j->err, KR_NOT_ON_THIS_DEVICE, "line %u, \"%.*s\", cannot be said in PTX %d.%d for %s: %.*s%s%s",
            line_at, (int)(line.bytes < 200 ? line.bytes : 200), line.at, j->to.isa / 10, j->to.isa % 10,
            j->to.target, (int)why.bytes, why.at, is_named ? "" : "; the PTX is for one that has it, ",
            is_named ? "" : j->from.target);
    kr__error_log(j->err, log);
    kr__error_advice(j->err, "Relevel to a newer driver or target, or compile the source for an older one.");
    return KR_NOT_ON_THIS_DEVICE;
}

static kr_status refuse_level(job *j, unsigned line_at, ptx_level needs)
{
    char why[80], target[32] = "";
    if (needs.sm)
        kr__format(target, sizeof target, " and .target sm_%d", needs.sm);
    kr__format(why, sizeof why, "it needs PTX ISA .version %d.%d%s or later", needs.isa / 10, needs.isa % 10,
               target);
    return refuse(j, line_at, (ptx_slice){why, strlen(why)}, "");
}

/* What is behind it. */
static const char *edit_head(job *j, header to)
{
    const char *text = j->input.at;
    const kr__ptx_head *head = &j->head;
    kr__text_add_bytes(&j->output, text, head->isa_at);
    kr__text_add(&j->output, "%d.%d", to.isa / 10, to.isa % 10);
    kr__text_add_bytes(&j->output, text + head->isa_end, head->target_at - head->isa_end);
    kr__text_add(&j->output, "%s", to.target);
    return text + head->target_end;
}

/* The input at that level. */
static kr_status edit(job *j, header to)
{
    ptx_rules *rules = kr__ptx_rules_create((ptx_level){to.isa, to.sm}, j->spells_older);
    if (!rules)
        return KR_FAIL(j->err, KR_OUT_OF_HOST_MEMORY, "no memory for the rules of relevelling");
    kr__text_free(&j->output);
    editor e = {.rules = rules, .to = to, .serial = first_serial(j->input), .output = &j->output};
    ptx_reader reader = {.at = edit_head(j, to), .end = j->input.at + j->input.bytes};
    const char *copied = reader.at;
    ptx_statement s;
    for (kr__ptx_next_statement(&reader, &s); s.kind; kr__ptx_next_statement(&reader, &s)) {
        copy(&e, copied, s.whole.at);
        edit_statement(&e, &s);
        copied = reader.at;
    }
    copy(&e, copied, reader.end);
    j->to = to;
    j->n_rewritten = e.n_rewritten;
    kr__ptx_rules_destroy(&rules);
    if (e.needs.isa && !j->output.failed)
        return refuse_level(j, (unsigned)kr__scan_line(j->input.at, e.needed_at), e.needs);
    return j->output.failed
               ? KR_FAIL(j->err, KR_OUT_OF_HOST_MEMORY, "no memory for %zu bytes of PTX", j->input.bytes)
               : KR_OK;
}

/* Is the text right? *ret_module may be NULL: not wanted. */
static kr_status judge(job *j, const char *text, size_t bytes, ptx_needs *ret_needs, ptx_problem *problem)
{
    ptx_module *module = NULL;
    if (kr__ptx_parse(text, bytes, NULL, &module, problem)) {
        if (ret_needs) {
            *ret_needs = module->needs;
            ret_needs->isa_form = ret_needs->target_form = NULL; /* they go with the module */
        }
        kr__ptx_module_free(&module);
        return KR_OK;
    }
    return problem->kind == PTX_PROBLEM_MEMORY
               ? KR_FAIL(j->err, KR_OUT_OF_HOST_MEMORY, "no memory to read the PTX")
               : KR_NOT_ON_THIS_DEVICE;
}

/* Of the output; where it is wrong, the input may already be. */
static kr_status judge_output(job *j, ptx_needs *ret_needs)
{
    ptx_problem problem = {0}, own = {0};
    kr_status status = judge(j, j->output.data, j->output.bytes, ret_needs, &problem);
    if (status == KR_NOT_ON_THIS_DEVICE &&
        judge(j, j->input.at, j->input.bytes, NULL, &own) == KR_NOT_ON_THIS_DEVICE &&
        own.kind != PTX_PROBLEM_VERSION) {
        const ptx_slice what = first_error(&own.log);
        status = KR_FAIL(j->err, KR_COMPILE_FAILED, "line %u of the PTX is wrong: %.*s", own.line,
                         (int)what.bytes, what.at);
        kr__error_log(j->err, own.log.data ? own.log.data : "");
    } else if (status == KR_NOT_ON_THIS_DEVICE) {
        status = refuse(j, problem.line, first_error(&problem.log), problem.log.data ? problem.log.data : "");
    }
    kr__text_free(&problem.log);
    kr__text_free(&own.log);
    return status;
}

/* ---- which level ---- */

static int least(int a, int b)
{
    return a < b ? a : b;
}

static int most(int a, int b)
{
    return a > b ? a : b;
}

static kr_status needs_at(job *j, header at, ptx_needs *ret_needs)
{
    const kr_status status = edit(j, at);
    return status ? status : judge_output(j, ret_needs);
}

/* A younger spelling asks for no level where the older will do; where it will not, its instruction is younger
 * yet. */
static kr_status needs_of(job *j, header at, ptx_needs *ret_needs)
{
    kr_error *const err = j->err;
    j->err = NULL;
    j->spells_older = true;
    kr_status status = needs_at(j, at, ret_needs);
    j->err = err;
    j->spells_older = false;
    return status ? needs_at(j, at, ret_needs) : KR_OK;
}

/* The lowest .target, and then .version, that does without rewriting. */
static kr_status lowest(job *j, bool has_target, header *to)
{
    ptx_needs needs;
    to->isa = least(j->from.isa, PTX_NEWEST_ISA);
    kr_status status = needs_of(j, *to, &needs);
    if (status)
        return status;
    const int sm = j->from.sm >= OWN_PROGRESS_SM ? most(needs.sm, OWN_PROGRESS_SM) : needs.sm;
    const char last = needs.target ? needs.target[strlen(needs.target) - 1] : 0;
    const bool is_plain = last >= '0' && last <= '9'; /* what only a family has stays with its own */
    if (!has_target && is_plain && sm < to->sm) {
        *to = at_target(to->isa, sm);
        status = needs_of(j, *to, &needs);
    }
    to->isa = most(needs.isa, least(LOWEST_ISA, j->from.isa));
    return status;
}

static kr_status choose(job *j, const kr_relevel_options *options, header *to)
{
    const bool has_target = options->target.major;
    const int isa = options->isa              ? options->isa
                    : options->driver_version ? kr__driver_isa(options->driver_version)
                                              : 0;
    if (isa && !options->isa && kr__isa_driver(isa) > options->driver_version) {
        KR_FAIL(j->err, KR_INVALID_ARGUMENT, "which PTX drivers of CUDA %d.%d take is not known here",
                options->driver_version / 1000, options->driver_version % 1000 / 10);
        kr__error_advice(j->err, "Name a driver of CUDA %d.%d or later, or the PTX ISA itself.",
                         kr__isa_driver(isa) / 1000, kr__isa_driver(isa) % 1000 / 10);
        return KR_INVALID_ARGUMENT;
    }
    *to = j->from;
    if (has_target) {
        const kr_cc cc = options->target;
        const int sm = cc.major * 10 + cc.minor;
        const header wanted = header_of(0, cc);
        if (!kr__ptx_target_isa(wanted.target))
            return KR_FAIL(j->err, KR_INVALID_ARGUMENT, "there is no target %s", wanted.target);
        if (rank(sm, cc.suffix) < rank(j->from.sm, j->head.target.suffix))
            *to = wanted;
    }
    if (!isa)
        return lowest(j, has_target, to);
    to->isa = least(isa, j->from.isa);
    if (!has_target)
        *to = highest_target(to->isa, *to);
    return KR_OK;
}

/* ---- the whole ---- */

static kr_cc cc_of(const header *h)
{
    const char suffix = h->target[strlen(h->target) - 1];
    return (kr_cc){h->sm / 10, h->sm % 10, suffix == 'a' || suffix == 'f' ? suffix : 0};
}

static kr_status deliver(job *j, kr_releveled **ret, kr_error *err)
{
    kr_releveled *r = kr__alloc(1, sizeof *r, err);
    if (!r)
        return KR_OUT_OF_HOST_MEMORY;
    *r = (kr_releveled){.ptx = j->output.data,
                        .bytes = j->output.bytes,
                        .from_isa = j->from.isa,
                        .to_isa = j->to.isa,
                        .from_target = cc_of(&j->from),
                        .to_target = cc_of(&j->to),
                        .min_driver = kr__isa_driver(j->to.isa),
                        .n_rewritten = j->n_rewritten};
    if (j->from.sm >= OWN_PROGRESS_SM && j->to.sm < OWN_PROGRESS_SM)
        r->caution =
            "below sm_70 the threads of a warp do not progress on their own: they must reach each .sync of "
            "theirs together, and none may wait for another";
    j->output = (kr__text){0};
    *ret = r;
    return KR_OK;
}

/* At that level, and right. */
static kr_status rewrite(job *j, header to)
{
    ptx_needs needs;
    kr_status status = needs_at(j, to, &needs);
    if (!status && needs.isa > to.isa &&
        to.isa < j->from.isa) /* what only the newest assembler takes there */
        status = refuse_level(j, needs.isa_line, (ptx_level){needs.isa, needs.sm});
    return status;
}

/* The lowest level follows from one of the statements that are alike, most often: then the whole is read
 * once. false: ask the whole. */
static bool rewrite_as_abridged(job *j, const kr_relevel_options *options)
{
    kr__text text = {0};
    header to;
    job few = {.from = j->from};
    bool done = kr__ptx_abridge(j->input.at, j->input.bytes, true, &text) && !text.failed &&
                kr__ptx_head_read(text.data, text.bytes, &few.head);
    few.input = (ptx_slice){text.data, text.bytes};
    done = done && !choose(&few, options, &to);
    kr__text_free(&few.output);
    kr__text_free(&text);
    kr_error *const err = j->err;
    j->err = NULL; /* why it will not do is for the whole to say */
    done = done && !rewrite(j, to);
    j->err = err;
    return done;
}

kr_status kr_ptx_relevel(const char *ptx, size_t bytes, const kr_relevel_options *options,
                         kr_releveled **ret_releveled, kr_error *err)
{
    KR_REQUIRE(err, ptx, ret_releveled);
    kr_relevel_options own;
    kr_status status = KR_OPTIONS(err, options, own);
    kr__image_facts facts = {0};
    if (!status)
        status = kr__image_read(ptx, bytes, &facts, err);
    if (!status && facts.kind != KR_IMAGE_PTX) {
        status = KR_FAIL(err, KR_CORRUPT, "%s is not PTX, which alone can be relevelled", facts.text);
        kr__error_advice(err, "Give the PTX that it was made from.");
    }
    job j = {.input = {ptx, facts.ptx_bytes}, .err = err};
    header to;
    if (!status) {
        kr__ptx_head_read(ptx, facts.ptx_bytes, &j.head);
        j.from = header_of(j.head.isa, j.head.target);
        if (!j.head.isa || !j.head.target.major)
            status = KR_FAIL(err, KR_CORRUPT, "no PTX: it has no .version or no .target");
    }
    const bool is_lowest = !own.isa && !own.driver_version;
    if (!status && !(is_lowest && rewrite_as_abridged(&j, &own))) {
        status = choose(&j, &own, &to);
        if (!status)
            status = rewrite(&j, to);
    }
    if (!status)
        status = deliver(&j, ret_releveled, err);
    kr__text_free(&j.output);
    return status;
}

void kr_releveled_destroy(kr_releveled **releveled)
{
    if (!releveled || !*releveled)
        return;
    free((char *)(*releveled)->ptx);
    free(*releveled);
    *releveled = NULL;
}
