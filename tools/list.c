/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>

#include "checkkern.h"
#include "cli.h"

/* ---- what is shipped ---- */

static json_t *image_json(const kr_op *op, const kr_shipped_image *image)
{
    char isa[16];
    return json_pack("{s:s, s:o, s:o, s:o}", "kind", kr_image_kind_name(image->kind), "arch",
                     json_arch(image->kind, image->arch), "isa", json_text(isa_text(image->isa, isa)), "type",
                     json_text(op->n_types ? kr_type_name(image->type) : NULL));
}

static json_t *variants_json(kr_registry *registry, const kr_op *op)
{
    json_t *variants = json_array();
    for (size_t v = 0; v < op->n_variants; v++) {
        size_t n = kr_registry_shipped(registry, op, v, NULL, 0);
        kr_shipped_image *shipped = tool_alloc(n * sizeof *shipped);
        json_t *images = json_array();
        n = kr_registry_shipped(registry, op, v, shipped, n);
        for (size_t i = 0; i < n; i++)
            json_array_append_new(images, image_json(op, &shipped[i]));
        free(shipped);
        json_array_append_new(variants,
                              json_pack("{s:s, s:o, s:o}", "name", op->variants[v].name, "requires",
                                        json_any_text(op->variants[v].requirements), "images", images));
    }
    return variants;
}

static json_t *args_json(const kr_op *op)
{
    json_t *args = json_array();
    for (size_t i = 0; i < op->n_args; i++)
        json_array_append_new(args, json_pack("{s:s, s:s, s:o, s:s}", "name", op->args[i].name, "type",
                                              op->args[i].type, "shape", json_text(op->args[i].shape), "role",
                                              kr_arg_role_name(op->args[i].role)));
    return args;
}

static json_t *op_json(kr_registry *registry, const kr_op *op)
{
    json_t *types = json_array();
    for (size_t i = 0; i < op->n_types; i++)
        json_array_append_new(types, json_string(kr_type_name(op->types[i])));
    return json_pack("{s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "name", op->name, "brief",
                     json_text(op->brief), "types", types, "args", args_json(op), "variants",
                     variants_json(registry, op), "compare", json_text(op->compare), "split",
                     json_text(op->split), "source", json_text(op->source));
}

static void print_op(kr_registry *registry, const kr_op *op)
{
    printf("%s", op->name);
    for (size_t i = 0; i < op->n_types; i++)
        printf("%s%s", i ? " " : ".", kr_type_name(op->types[i]));
    printf("\n    ");
    put_text(stdout, op->brief);
    printf("\n");
    for (size_t i = 0; i < op->n_args; i++) {
        const kr_op_arg *a = &op->args[i];
        printf("    arg      %s %s%s%s%s %s\n", a->name, a->type, a->shape ? "[" : "",
               a->shape ? a->shape : "", a->shape ? "]" : "", kr_arg_role_name(a->role));
    }
    printf("    promise  %s\n", op->compare);
    if (op->split)
        printf("    split    by %s\n", op->split);
    for (size_t v = 0; v < op->n_variants; v++)
        printf("    variant  %s%s%s (%zu images shipped)\n", op->variants[v].name,
               op->variants[v].requirements[0] ? " " : "", op->variants[v].requirements,
               kr_registry_shipped(registry, op, v, NULL, 0));
}

/* ---- what would run ---- */

static void add_resolution(session *s, const kr_op *op, kr_type type, kr_device *device, json_t *devices)
{
    char name[64];
    kr_error err;
    kr_resolution r;
    const kr_device_info *info = kr_device_get_info(device);
    json_t *type_json = json_text(op->n_types ? kr_type_name(type) : NULL);
    ck_full_name(op, type, name, sizeof name);
    json_t *row;
    if (kr_registry_resolve(s->registry, name, device, NULL, NULL, &r, &err))
        row = json_pack("{s:i, s:o, s:n, s:o}", "device", info->ordinal, "type", type_json, "variant",
                        "reason", json_text(err.message));
    else
        row =
            json_pack("{s:i, s:o, s:s, s:{s:s, s:o, s:o, s:s?}, s:i, s:i, s:o, s:o, s:f, s:s}", "device",
                      info->ordinal, "type", type_json, "variant", r.variant, "image", "kind",
                      kr_image_kind_name(r.image_kind), "arch", json_arch(r.image_kind, r.image_arch),
                      "origin", json_any_text(r.image_origin), "change", r.image_change, "registers",
                      r.registers, "shared_bytes", r.static_shared_bytes + (int)r.config.dynamic_shared_bytes,
                      "block", json_dim3(r.config.block), "grid", json_dim3(r.config.grid), "occupancy",
                      r.occupancy, "limiter", kr_limiter_name(r.limiter));
    json_array_append_new(devices, row);
}

static json_t *resolutions(session *s, const kr_op *op)
{
    json_t *devices = json_array();
    for (size_t d = 0; d < s->n_devices; d++)
        for (size_t t = 0; t < (op->n_types ? op->n_types : 1); t++)
            add_resolution(s, op, op->types[t], s->devices[d], devices);
    return devices;
}

static void print_resolutions(session *s, const kr_op *op)
{
    char name[64], arch[24];
    for (size_t d = 0; d < s->n_devices; d++)
        for (size_t t = 0; t < (op->n_types ? op->n_types : 1); t++) {
            kr_error err;
            kr_resolution r;
            int ordinal = kr_device_get_info(s->devices[d])->ordinal;
            ck_full_name(op, op->types[t], name, sizeof name);
            if (kr_registry_resolve(s->registry, name, s->devices[d], NULL, NULL, &r, &err)) {
                printf("    device %d %s: none: %s\n", ordinal, name, err.message);
                continue;
            }
            printf(
                "    device %d %s: %s, %s %s (%s%s%s), %d registers, block %ux%ux%u, occupancy %.0f%% (%s)\n",
                ordinal, name, r.variant, kr_image_kind_name(r.image_kind),
                arch_text(r.image_kind, r.image_arch, arch), r.image_origin, r.image_change ? ": " : "",
                r.image_change ? r.image_change : "", r.registers, r.config.block[0], r.config.block[1],
                r.config.block[2], 100 * r.occupancy, kr_limiter_name(r.limiter));
        }
}

int run_list(const invocation *cli)
{
    session s = {0};
    kr_error err;
    bool resolve = cli_has(cli, OPT_RESOLVE);
    const char *glob = cli->n_operands ? cli->operands[0] : NULL;
    json_t *ops = json_array();
    kr_status status = resolve ? session_open(&s, cli, true, &err) : session_open_registry(&s, cli, &err);
    size_t n = 0;
    for (size_t i = 0; !status && i < kr_registry_n_ops(s.registry); i++) {
        const kr_op *op = kr_registry_op(s.registry, i);
        if (!op_matches(op, glob))
            continue;
        n++;
        if (!cli->json) {
            print_op(s.registry, op);
            if (resolve)
                print_resolutions(&s, op);
            continue;
        }
        json_t *row = op_json(s.registry, op);
        if (resolve)
            json_object_set_new(row, "devices", resolutions(&s, op));
        json_array_append_new(ops, row);
    }
    if (!status && n == 0 && glob)
        status = none_matches(s.registry, glob, &err);
    int code = status ? cli_fail(cli, &err) : EXIT_DONE;
    if (!status && cli->json)
        cli_print(json_pack("{s:O}", "ops", ops), 0);
    json_decref(ops);
    session_close(&s);
    return code;
}
