/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>

#include "checkkern.h"
#include "cli.h"

/* A machine, and what it is called. */
typedef struct asked {
    machine_facts facts;
    char name[300];
} asked;

/* A machine that is not here by --cc, or a device that is. Each option given replaces a fact. */
static kr_status describe(session *s, const invocation *cli, asked *a, kr_error *err)
{
    kr_status status = KR_OK;
    const char *cc = cli_value(cli, OPT_CC);
    char text[KR_CC_TEXT_BYTES];
    if (cc) {
        kr_cc ccs[MAX_CCS];
        size_t n = 0;
        status = read_ccs(cc, ccs, &n, err);
        if (!status && n > 1)
            status = tool_refuse(err, "`kregistry check` takes several.", "--cc %s: explain takes one", cc);
        a->facts.machine.cc = status ? (kr_cc){0} : ccs[0];
        snprintf(a->name, sizeof a->name, "cc %s", kr_cc_format(a->facts.machine.cc, text));
        if (!status)
            status = find_nvrtc_archs(cli, &a->facts, err);
    } else if (s->n_devices == 0) {
        tool_fail(err, KR_NOT_ON_THIS_MACHINE, "the driver has no device");
        tool_advice(err, "Ask of one that is not here with --cc X.Y.");
        return err->status;
    } else {
        status = kr_registry_machine(s->registry, s->devices[0], &a->facts.machine, err);
        device_text(s->devices[0], a->name, sizeof a->name);
    }
    if (!status)
        status = read_facts(cli, &a->facts, err);
    return status;
}

static const char *verdict(const kr_candidate *c)
{
    return c->chosen ? "chosen" : c->usable ? "usable" : "refused";
}

static const kr_candidate *chosen_of(const kr_explanation *e)
{
    for (size_t i = 0; i < e->n; i++)
        if (e->considered[i].chosen)
            return &e->considered[i];
    return NULL;
}

static json_t *explanation_json(const char *name, const asked *a, const kr_explanation *e)
{
    const kr_candidate *chosen = chosen_of(e);
    json_t *considered = json_array();
    for (size_t i = 0; i < e->n; i++) {
        const kr_candidate *c = &e->considered[i];
        json_array_append_new(considered, json_pack("{s:s, s:o, s:s, s:o}", "variant", c->variant, "image",
                                                    json_text(c->image), "verdict", verdict(c), "reason",
                                                    json_text(c->reason)));
    }
    return json_pack(
        "{s:s, s:o, s:o, s:o, s:o}", "op", name, "device", json_any_text(a->name), "chosen",
        chosen ? json_pack("{s:s, s:o}", "variant", chosen->variant, "image", json_any_text(chosen->image))
               : json_null(),
        "considered", considered, "advice", json_text(e->advice));
}

static void print_explanation(const char *name, const asked *a, const kr_explanation *e)
{
    printf("%s on %s\n", name, a->name);
    for (size_t i = 0; i < e->n; i++) {
        const kr_candidate *c = &e->considered[i];
        printf("  %s%-8s%s %-10s %-20s %s\n", c->chosen || !c->usable ? color(stdout, c->chosen) : "",
               verdict(c), plain(stdout), c->variant, c->image, c->reason);
    }
    if (!chosen_of(e))
        printf("  nothing can run here\n  %s\n", e->advice);
}

int run_explain(const invocation *cli)
{
    session s = {0};
    kr_error err;
    const kr_op *op;
    kr_type type;
    char name[64] = "";
    asked a = {0};
    kr_explanation *e = NULL;
    kr_status status = session_open(&s, cli, !cli_has(cli, OPT_CC), &err);
    if (!status)
        status = find_op(cli, s.registry, cli->operands[0], &op, &type, &err);
    if (!status) {
        ck_full_name(op, type, name, sizeof name);
        status = check_variant(op, cli_value(cli, OPT_VARIANT), &err);
    }
    if (!status)
        status = describe(&s, cli, &a, &err);
    if (!status)
        status =
            kr_registry_explain(s.registry, name, &a.facts.machine, cli_value(cli, OPT_VARIANT), &e, &err);
    if (status)
        about_op(&err, name);
    int code = status ? cli_fail(cli, &err) : chosen_of(e) ? EXIT_DONE : EXIT_NOT_SO;
    if (!status && cli->json)
        cli_print(explanation_json(name, &a, e), 0);
    else if (!status)
        print_explanation(name, &a, e);
    kr_explanation_destroy(&e);
    session_close(&s);
    return code;
}
