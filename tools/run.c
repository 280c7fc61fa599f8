/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "checkkern.h"
#include "cli.h"

/* Without --repeat: at most so many timed launches, fewer once they have taken a second. */
enum { MAX_REPEAT = 100, MIN_REPEAT = 3 };

typedef struct request {
    const kr_op *op;
    kr_type type;
    char name[64];
    const char *variant;
    uint64_t sizes[KR_MAX_OP_ARGS];
    unsigned block[3];
    uint64_t seed;
    uint64_t repeat;
    bool repeat_given;
    json_t *trace; /* Chrome's trace events; NULL: none wanted */
} request;

typedef struct times {
    double median, p90, p99; /* ms */
} times;

typedef struct outcome {
    kr_resolution resolution;
    ck_result result;
    times ms;
    double gbps;
} outcome;

/* ---- timing ---- */

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static times summary(double *ms, size_t n)
{
    qsort(ms, n, sizeof *ms, by_size);
    return (times){ms[n / 2], ms[n * 9 / 10], ms[n * 99 / 100]};
}

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void add_trace(json_t *trace, const char *name, const kr_device *device, double start_s, double ms)
{
    if (trace)
        json_array_append_new(trace, json_pack("{s:s, s:s, s:i, s:i, s:f, s:f}", "name", name, "ph", "X",
                                               "pid", 0, "tid", kr_device_get_info(device)->ordinal, "ts",
                                               start_s * 1e6, "dur", ms * 1e3));
}

static kr_status time_one(kr_launcher *launcher, kr_stream *stream, kr_event *start, kr_event *end,
                          double *ret_ms, kr_error *err)
{
    kr_status status = kr_event_record(start, stream, err);
    if (!status)
        status = kr_launcher_run(launcher, err);
    if (!status)
        status = kr_event_record(end, stream, err);
    if (!status)
        status = kr_event_synchronize(end, err);
    return status ? status : kr_event_elapsed(start, end, ret_ms, err);
}

static kr_status time_launches(const request *r, kr_launcher *launcher, kr_stream *stream, times *ret_ms,
                               kr_error *err)
{
    size_t n = 0, most = r->repeat_given ? (size_t)r->repeat : MAX_REPEAT;
    double *ms = tool_alloc(most * sizeof *ms), until_s = now_s() + 1;
    kr_device *device = kr_stream_device(stream);
    kr_event *start = NULL, *end = NULL;
    kr_status status = kr_event_create(device, true, &start, err);
    if (!status)
        status = kr_event_create(device, true, &end, err);
    while (!status && n < most && (r->repeat_given || n < MIN_REPEAT || now_s() < until_s)) {
        double start_s = now_s();
        status = time_one(launcher, stream, start, end, &ms[n], err);
        add_trace(r->trace, r->name, device, start_s, ms[n++]);
    }
    if (!status)
        *ret_ms = summary(ms, n);
    kr_event_destroy(&start);
    kr_event_destroy(&end);
    free(ms);
    return status;
}

static kr_launch_options launch_options(const request *r)
{
    kr_launch_options options = {.struct_size = sizeof options, .variant = r->variant};
    memcpy(options.block, r->block, sizeof options.block);
    return options;
}

/* Fresh arguments of the same data, without red zones. */
static kr_status time_op(const request *r, session *s, kr_device *device, times *ret_ms, kr_error *err)
{
    ck_problem p;
    kr_buffer *buffers[KR_MAX_OP_ARGS] = {0};
    kr_arg args[KR_MAX_OP_ARGS];
    size_t n = 0;
    kr_stream *stream = kr_device_default_stream(device);
    kr_launcher *launcher = NULL;
    kr_launch_options options = launch_options(r);
    kr_status status = ck_problem_init(&p, r->op, r->type, NULL, r->sizes, CK_ORDINARY, r->seed, err);
    if (status)
        return status;
    for (size_t i = 0; !status && i < r->op->n_args; i++) {
        if (r->op->args[i].role == KR_ROLE_WORK)
            continue;
        if (!r->op->args[i].shape) {
            args[n++] = ck_scalar(kr_op_arg_type(r->op, i, r->type), p.given[i]);
            continue;
        }
        status = kr_buffer_create(device, p.bytes[i], NULL, &buffers[i], err);
        if (!status)
            status = kr_buffer_upload(buffers[i], 0, p.given[i], p.bytes[i], err);
        args[n++] = KR_BUF(buffers[i]);
    }
    if (!status)
        status =
            kr_launcher_create(s->registry, stream, r->name, (kr_args){args, n}, &options, &launcher, err);
    if (!status)
        status = time_launches(r, launcher, stream, ret_ms, err);
    kr_launcher_destroy(&launcher);
    for (size_t i = 0; i < KR_MAX_OP_ARGS; i++)
        kr_buffer_destroy(&buffers[i]);
    ck_problem_finish(&p);
    return status;
}

/* ---- one device ---- */

static kr_status run_on(const request *r, session *s, kr_device *device, outcome *o, kr_error *err)
{
    double bytes = 0, flops = 0;
    kr_launch_options options = launch_options(r);
    ck_case one = {.registry = s->registry,
                   .device = device,
                   .op = r->op,
                   .type = r->type,
                   .variant = r->variant,
                   .class = CK_ORDINARY,
                   .seed = r->seed};
    memcpy(one.sizes, r->sizes, sizeof one.sizes);
    memcpy(one.block, r->block, sizeof one.block);
    kr_status status =
        kr_registry_resolve(s->registry, r->name, device, r->sizes, &options, &o->resolution, err);
    if (!status)
        status = ck_check(&one, &o->result, err);
    if (!status && o->result.ok) /* a wrong kernel is not let out of its red zones */
        status = time_op(r, s, device, &o->ms, err);
    if (!status)
        status = kr_op_cost(r->op, r->type, r->sizes, &bytes, &flops, err);
    o->gbps = o->ms.median > 0 ? bytes / o->ms.median * 1e-6 : 0;
    return status;
}

static bool has_reference(const request *r)
{
    return kr_op_reference(r->op, r->type) != NULL;
}

/* Neither true nor false where nothing was there to hold it to. */
static json_t *verified_json(const request *r, const ck_result *result)
{
    return has_reference(r) || !result->ok ? json_boolean(result->ok) : json_null();
}

static json_t *run_json(const request *r, const kr_device *device, const outcome *o)
{
    char image[64], arch[24], shape[CK_SHAPE_BYTES];
    const kr_resolution *c = &o->resolution;
    uint64_t n = 1;
    for (size_t i = r->op->n_args; i-- > 0;)
        if (r->op->args[i].role == KR_ROLE_SIZE)
            n = r->sizes[i];
    snprintf(image, sizeof image, "%s %s (%s)", kr_image_kind_name(c->image_kind),
             arch_text(c->image_kind, c->image_arch, arch), c->image_origin);
    return json_pack("{s:i, s:s, s:o, s:s?, s:o, s:o, s:I, s:s, s:{s:f, s:f, s:f}, s:f, s:o, s:o}", "device",
                     kr_device_get_info(device)->ordinal, "variant", c->variant, "image",
                     json_any_text(image), "image_change", c->image_change, "block",
                     json_dim3(c->config.block), "grid", json_dim3(c->config.grid), "n", (json_int_t)n,
                     "shape", ck_shape_text(r->op, r->sizes, shape, sizeof shape), "ms", "median",
                     o->ms.median, "p90", o->ms.p90, "p99", o->ms.p99, "gbps", o->gbps, "verified",
                     verified_json(r, &o->result), "max_error", json_number(o->result.max_error));
}

static void print_verified(const request *r, const ck_result *result)
{
    if (!result->ok)
        printf("  %swrong%s: %s of %s at %" PRId64 ": expected %s, got %s\n", color(stdout, false),
               plain(stdout), result->what, result->arg, result->index, result->expected, result->got);
    else if (has_reference(r))
        printf("  %sverified%s (%s; largest error %.3g)\n", color(stdout, true), plain(stdout),
               r->op->compare, result->max_error);
    else
        printf("  not verified: the op has no reference\n");
}

static void print_run(const request *r, const kr_device *device, const outcome *o)
{
    char text[300], arch[24], shape[CK_SHAPE_BYTES];
    const kr_resolution *c = &o->resolution;
    printf("%s %s on %s\n", r->name, ck_shape_text(r->op, r->sizes, shape, sizeof shape),
           device_text(device, text, sizeof text));
    printf("  %s, %s %s (%s), block %ux%ux%u, grid %ux%ux%u\n", c->variant, kr_image_kind_name(c->image_kind),
           arch_text(c->image_kind, c->image_arch, arch), c->image_origin, c->config.block[0],
           c->config.block[1], c->config.block[2], c->config.grid[0], c->config.grid[1], c->config.grid[2]);
    if (c->image_change)
        printf("  %s\n", c->image_change);
    if (o->result.ok)
        printf("  median %.4g ms, P90 %.4g, P99 %.4g", o->ms.median, o->ms.p90, o->ms.p99);
    if (o->result.ok && o->gbps > 0) /* an op need not say what it costs */
        printf("; %.4g GB/s", o->gbps);
    if (o->result.ok)
        printf("\n");
    print_verified(r, &o->result);
}

/* ---- one problem over all devices ---- */

static kr_status run_split(const request *r, session *s, kr_group_part *parts, ck_result *result,
                           kr_error *err)
{
    ck_problem p;
    void *args[KR_MAX_OP_ARGS], *copies[KR_MAX_OP_ARGS] = {0};
    size_t n = 0;
    kr_group *group = NULL;
    kr_group_options options = {
        .struct_size = sizeof options, .devices = s->devices, .n_devices = s->n_devices};
    kr_status status = ck_problem_init(&p, r->op, r->type, NULL, r->sizes, CK_ORDINARY, r->seed, err);
    if (status)
        return status;
    for (size_t i = 0; i < r->op->n_args; i++) {
        if (r->op->args[i].role == KR_ROLE_WORK)
            continue;
        copies[i] = memcpy(tool_alloc(p.bytes[i]), p.given[i], p.bytes[i]);
        args[n++] = copies[i];
    }
    status = kr_group_create(s->runtime, &options, &group, err);
    double start_s = now_s();
    if (!status)
        status = kr_group_run(group, s->registry, r->name, args, n, parts, err);
    for (size_t i = 0; i < r->op->n_args; i++) {
        if (!status && p.want[i])
            ck_compare(&p, i, copies[i], result);
        free(copies[i]);
    }
    for (size_t i = 0; !status && i < s->n_devices; i++)
        add_trace(r->trace, r->name, parts[i].device, start_s, parts[i].ms);
    kr_group_destroy(&group);
    ck_problem_finish(&p);
    return status;
}

static json_t *split_json(const request *r, const session *s, const kr_group_part *parts,
                          const ck_result *result)
{
    json_t *list = json_array();
    for (size_t i = 0; i < s->n_devices; i++)
        json_array_append_new(list, json_pack("{s:i, s:I, s:I, s:f}", "device",
                                              kr_device_get_info(parts[i].device)->ordinal, "first",
                                              (json_int_t)parts[i].first, "count", (json_int_t)parts[i].count,
                                              "ms", parts[i].ms));
    return json_pack("{s:o, s:o, s:o}", "parts", list, "verified", verified_json(r, result), "max_error",
                     json_number(result->max_error));
}

static void print_split(const request *r, const session *s, const kr_group_part *parts,
                        const ck_result *result)
{
    printf("%s split over %zu devices by %s\n", r->name, s->n_devices, r->op->split);
    for (size_t i = 0; i < s->n_devices; i++)
        printf("  device %d: %" PRIu64 " from %" PRIu64 ", %.4g ms\n",
               kr_device_get_info(parts[i].device)->ordinal, parts[i].count, parts[i].first, parts[i].ms);
    print_verified(r, result);
}

/* ---- the command ---- */

static kr_status read_request(const invocation *cli, session *s, request *r, kr_error *err)
{
    uint64_t block[3] = {0};
    size_t n_block = 0;
    bool given;
    kr_status status = find_op(cli, s->registry, cli->operands[0], &r->op, &r->type, err);
    r->variant = cli_value(cli, OPT_VARIANT);
    r->seed = 1;
    if (status)
        return status;
    ck_full_name(r->op, r->type, r->name, sizeof r->name);
    status = check_variant(r->op, r->variant, err);
    if (!status)
        status = read_sizes(cli, r->op, r->type, r->sizes, &given, err);
    if (!status)
        status = cli_numbers(cli, OPT_BLOCK, 'x', block, 3, &n_block, err);
    if (!status)
        status = cli_number(cli, OPT_SEED, &r->seed, err);
    if (!status)
        status = cli_number(cli, OPT_REPEAT, &r->repeat, err);
    if (status)
        return status;
    r->repeat_given = cli_has(cli, OPT_REPEAT);
    if (r->repeat_given && (r->repeat == 0 || r->repeat > 1000000))
        return tool_refuse(err, "Give a number from 1 to 1000000.", "--repeat %s: none, or too many",
                           cli_value(cli, OPT_REPEAT));
    for (size_t i = 0; i < 3 && n_block; i++) {
        r->block[i] = i < n_block ? (unsigned)block[i] : 1;
        if (r->block[i] == 0 || block[i] > 1024)
            return tool_refuse(err, "Give each side from 1 to 1024.", "--block %s is no block of threads",
                               cli_value(cli, OPT_BLOCK));
    }
    if (cli_has(cli, OPT_SPLIT) && !r->op->split)
        return tool_refuse(err, "Leave out --split; `kregistry list` shows by what an op is split.",
                           "%s cannot be split over devices", r->op->name);
    const char *idle = r->variant ? "variant" : n_block ? "block" : r->repeat_given ? "repeat" : NULL;
    if (cli_has(cli, OPT_SPLIT) && idle) {
        tool_fail(err, KR_INVALID_ARGUMENT, "--split launches once, each device as suits it");
        tool_advice(err, "Leave out --split, or leave out --%s.", idle);
        return err->status;
    }
    return s->n_devices ? KR_OK : no_device(err);
}

/* A device that fails leaves the others alone; the first failure is told after all have had their turn. */
static kr_status run_devices_one_by_one(const invocation *cli, const request *r, session *s, json_t *runs,
                                        bool *all_ok, kr_error *err)
{
    kr_status first = KR_OK;
    for (size_t d = 0; d < s->n_devices; d++) {
        outcome o = {0};
        kr_error own;
        kr_status status = run_on(r, s, s->devices[d], &o, &own);
        if (status) {
            *err = first ? *err : own;
            first = first ? first : status;
            continue;
        }
        *all_ok = *all_ok && o.result.ok;
        if (cli->json)
            json_array_append_new(runs, run_json(r, s->devices[d], &o));
        else
            print_run(r, s->devices[d], &o);
    }
    return first;
}

static kr_status write_trace(const invocation *cli, json_t *events, kr_error *err)
{
    json_t *document = json_pack("{s:O, s:s}", "traceEvents", events, "displayTimeUnit", "ms");
    char *text = json_dumps(document, JSON_COMPACT);
    kr_status status = tool_write_file(cli_value(cli, OPT_TRACE), text, strlen(text), err);
    free(text);
    json_decref(document);
    return status;
}

int run_run(const invocation *cli)
{
    session s = {0};
    request r = {0};
    kr_error err;
    bool ok = true;
    json_t *document = json_pack("{s:[], s:n}", "runs", "split");
    kr_status status = session_open(&s, cli, true, &err);
    r.trace = cli_has(cli, OPT_TRACE) ? json_array() : NULL;
    if (!status)
        status = read_request(cli, &s, &r, &err);
    if (!status && cli_has(cli, OPT_SPLIT)) {
        ck_result result = {.ok = true};
        kr_group_part *parts = tool_alloc(s.n_devices * sizeof *parts);
        status = run_split(&r, &s, parts, &result, &err);
        ok = result.ok;
        if (!status && cli->json)
            json_object_set_new(document, "split", split_json(&r, &s, parts, &result));
        else if (!status)
            print_split(&r, &s, parts, &result);
        free(parts);
    } else if (!status) {
        status = run_devices_one_by_one(cli, &r, &s, json_object_get(document, "runs"), &ok, &err);
    }
    if (!status && r.trace)
        status = write_trace(cli, r.trace, &err);
    json_decref(r.trace);
    if (status)
        about_op(&err, r.name);
    int code = status ? cli_fail(cli, &err) : ok ? EXIT_DONE : EXIT_NOT_SO;
    if (!status && cli->json) {
        json_object_set_new(document, "driver", json_string(kr_runtime_driver(s.runtime).kind));
        json_object_set_new(document, "op", json_string(r.op->name));
        json_object_set_new(document, "type", json_text(r.op->n_types ? kr_type_name(r.type) : NULL));
        cli_print(json_incref(document), 0);
    }
    json_decref(document);
    session_close(&s);
    return code;
}
