/* SPDX-License-Identifier: Apache-2.0 */
/* Coverage: which op runs on which compute capability, and by what. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checkkern.h"
#include "cli.h"

typedef struct coverage {
    kr_registry *registry;
    machine_facts facts;
    kr_cc ccs[MAX_CCS];
    size_t n_ccs;
    size_t missing;
    size_t untried; /* to be compiled by NVRTC */
} coverage;

static const kr_candidate *chosen_of(const kr_explanation *e)
{
    for (size_t i = 0; i < e->n; i++)
        if (e->considered[i].chosen)
            return &e->considered[i];
    return NULL;
}

/* Why everything is refused. */
static json_t *refusals(const kr_explanation *e)
{
    char *text;
    size_t bytes;
    FILE *to = tool_memory_file(&text, &bytes);
    for (size_t i = 0; i < e->n; i++) {
        const kr_candidate *c = &e->considered[i];
        fprintf(to, "%s%s%s%s: %s", i ? "; " : "", c->variant, *c->image ? " " : "", c->image, c->reason);
    }
    fclose(to);
    json_t *string = json_any_text(text);
    free(text);
    return string;
}

static kr_status add_cell(coverage *c, const char *name, kr_cc cc, json_t *cells, kr_error *err)
{
    char text[KR_CC_TEXT_BYTES];
    c->facts.machine.cc = cc;
    kr_explanation *explanation = NULL;
    kr_status status = kr_registry_explain(c->registry, name, &c->facts.machine, NULL, &explanation, err);
    if (status)
        return status;
    const kr_candidate *chosen = chosen_of(explanation);
    c->missing += !chosen;
    c->untried += chosen && strcmp(chosen->how, "nvrtc") == 0;
    json_array_append_new(cells, json_pack("{s:s, s:s, s:o, s:o}", "cc", kr_cc_format(cc, text), "how",
                                           chosen ? chosen->how : "none", "reason",
                                           chosen ? json_any_text(chosen->reason) : refusals(explanation),
                                           "advice", json_text(explanation->advice)));
    kr_explanation_destroy(&explanation);
    return KR_OK;
}

static kr_status add_op(coverage *c, const kr_op *op, kr_type type, json_t *ops, kr_error *err)
{
    char name[64];
    kr_status status = KR_OK;
    json_t *cells = json_array();
    ck_full_name(op, type, name, sizeof name);
    for (size_t i = 0; i < c->n_ccs && !status; i++)
        status = add_cell(c, name, c->ccs[i], cells, err);
    json_array_append_new(ops, json_pack("{s:s, s:o}", "name", name, "cells", cells));
    return status;
}

static kr_status add_ops(coverage *c, const char *glob, json_t *ops, kr_error *err)
{
    const kr_op *op;
    kr_status status = KR_OK;
    for (size_t i = 0; !status && (op = kr_registry_op(c->registry, i)); i++)
        for (size_t t = 0; !status && t < (op->n_types ? op->n_types : 1); t++)
            if (instance_matches(op, op->types[t], glob))
                status = add_op(c, op, op->types[t], ops, err);
    if (!status && json_array_size(ops) == 0 && glob)
        status = none_matches(c->registry, glob, err);
    return status;
}

static void print_table(const coverage *c, const json_t *ops)
{
    char text[KR_CC_TEXT_BYTES];
    size_t i, j;
    json_t *op, *cell;
    printf("%-20s", "");
    for (i = 0; i < c->n_ccs; i++)
        printf(" %-10s", kr_cc_format(c->ccs[i], text));
    printf("\n");
    json_array_foreach(ops, i, op)
    {
        printf("%-20s", json_string_value(json_object_get(op, "name")));
        json_array_foreach(json_object_get(op, "cells"), j, cell)
            printf(" %-10s", json_string_value(json_object_get(cell, "how")));
        printf("\n");
    }
    json_array_foreach(ops, i, op)
    {
        json_array_foreach(json_object_get(op, "cells"), j,
                           cell) if (strcmp(json_string_value(json_object_get(cell, "how")), "none") == 0)
            printf("%s on %s: %s\n  %s\n", json_string_value(json_object_get(op, "name")),
                   json_string_value(json_object_get(cell, "cc")),
                   json_string_value(json_object_get(cell, "reason")),
                   json_string_value(json_object_get(cell, "advice")));
    }
    printf("%zu missing\n", c->missing);
    if (c->untried)
        printf("nvrtc: not compiled here; `kregistry verify` compiles and runs\n");
}

static json_t *coverage_json(const coverage *c, json_t *ops)
{
    char text[KR_CC_TEXT_BYTES];
    json_t *ccs = json_array();
    for (size_t i = 0; i < c->n_ccs; i++)
        json_array_append_new(ccs, json_string(kr_cc_format(c->ccs[i], text)));
    return json_pack("{s:o, s:O, s:I}", "ccs", ccs, "ops", ops, "missing", (json_int_t)c->missing);
}

int run_check(const invocation *cli)
{
    session s = {0};
    kr_error err;
    json_t *ops = json_array();
    coverage *c = tool_alloc(sizeof *c);
    kr_status status = session_open_shipped(&s, cli, &err);
    c->registry = s.registry;
    if (!status && !cli_has(cli, OPT_CC))
        status =
            tool_refuse(&err, "Give the compute capabilities, as --cc 7.5,9.0 does.", "check needs --cc");
    if (!status)
        status = read_ccs(cli_value(cli, OPT_CC), c->ccs, &c->n_ccs, &err);
    if (!status && !cli_has(cli, OPT_NO_NVRTC))
        status = find_nvrtc_archs(cli, &c->facts, &err);
    if (!status)
        status = read_facts(cli, &c->facts, &err);
    if (!status)
        status = add_ops(c, cli->n_operands ? cli->operands[0] : NULL, ops, &err);
    int code = status ? cli_fail(cli, &err) : c->missing ? EXIT_NOT_SO : EXIT_DONE;
    if (!status && cli->json)
        cli_print(coverage_json(c, ops), 0);
    else if (!status)
        print_table(c, ops);
    json_decref(ops);
    free(c);
    session_close(&s);
    return code;
}
