/* SPDX-License-Identifier: Apache-2.0 */
#include "checkkern.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tool.h"

/* Bytes before and after each buffer that no kernel may touch: a row of the widest tile fits. */
enum { RED_ZONE = 4096, BOUNDARY = 256 };

/* ---- one buffer between red zones ---- */

typedef struct fenced {
    kr_buffer *buffer;
    size_t start; /* of the payload in the allocation */
    size_t bytes; /* of the payload */
    size_t total;
    unsigned char *image; /* the whole allocation, as it was before the run */
} fenced;

static unsigned char red(size_t at)
{
    return (unsigned char)(0xa5 ^ at * 29);
}

static kr_status fenced_create(fenced *f, kr_device *device, size_t bytes, size_t shift_bytes, kr_error *err)
{
    f->start = RED_ZONE + shift_bytes;
    f->bytes = bytes;
    f->total = f->start + bytes + RED_ZONE;
    return kr_buffer_create(device, f->total, NULL, &f->buffer, err);
}

static kr_status fenced_fill(fenced *f, const void *payload, kr_error *err)
{
    f->image = tool_alloc(f->total);
    for (size_t i = 0; i < f->start; i++)
        f->image[i] = red(i);
    memcpy(f->image + f->start, payload, f->bytes);
    for (size_t i = f->start + f->bytes; i < f->total; i++)
        f->image[i] = red(i);
    return kr_buffer_upload(f->buffer, 0, f->image, f->total, err);
}

static void fenced_destroy(fenced *f)
{
    kr_buffer_destroy(&f->buffer);
    free(f->image);
}

static void spoiled(ck_result *result, const fenced *f, const kr_op_arg *arg, size_t element_bytes, size_t at,
                    unsigned char expected, unsigned char got, const char *what)
{
    if (!result->ok)
        return;
    int64_t distance = (int64_t)at - (int64_t)f->start, size = (int64_t)element_bytes;
    result->ok = false;
    result->what = what;
    result->arg = arg->name;
    result->index = distance >= 0 ? distance / size : (distance - size + 1) / size;
    snprintf(result->expected, sizeof result->expected, "byte 0x%02x", expected);
    snprintf(result->got, sizeof result->got, "byte 0x%02x", got);
}

/* Red zones must be as they were; inputs too. */
static void check_untouched(ck_result *result, const fenced *f, const kr_op_arg *arg, size_t element_bytes,
                            const unsigned char *after)
{
    if (arg->role == KR_ROLE_IN && memcmp(after, f->image, f->total) == 0)
        return;
    for (size_t i = 0; i < f->total; i++) {
        bool inside = i >= f->start && i < f->start + f->bytes;
        if (after[i] == f->image[i] || (inside && arg->role != KR_ROLE_IN))
            continue;
        spoiled(result, f, arg, element_bytes, i, f->image[i], after[i],
                inside ? "input changed" : "red zone");
        return;
    }
}

/* ---- one check ---- */

typedef struct bench {
    const ck_case *one;
    ck_problem problem;
    fenced buffers[KR_MAX_OP_ARGS];
    unsigned char *after[KR_MAX_OP_ARGS];
    kr_arg args[KR_MAX_OP_ARGS];
    size_t n_args;
} bench;

kr_arg ck_scalar(kr_type type, const void *value)
{
    kr_arg arg = {.kind = KR_ARG_SCALAR, .type = type};
    int64_t wide;
    switch (type) {
    case KR_TYPE_F32:
        memcpy(&arg.value.f32, value, sizeof arg.value.f32);
        break;
    case KR_TYPE_F64:
        memcpy(&arg.value.f64, value, sizeof arg.value.f64);
        break;
    default:
        wide = 0;
        memcpy(&wide, value, kr_type_bytes(type));
        if (type == KR_TYPE_I8 || type == KR_TYPE_I16 || type == KR_TYPE_I32) {
            unsigned unused = 64 - 8 * (unsigned)kr_type_bytes(type);
            wide = (int64_t)((uint64_t)wide << unused) >> unused;
        }
        arg.value.i64 = wide;
    }
    return arg;
}

/* Before any data is made: a device that is too small says so at once, and not after minutes. */
static kr_status create_buffers(bench *b, kr_error *err)
{
    const ck_case *one = b->one;
    kr_status status = KR_OK;
    for (size_t i = 0; !status && i < one->op->n_args; i++) {
        size_t elements, bytes;
        if (!one->op->args[i].shape || one->op->args[i].role == KR_ROLE_WORK)
            continue;
        status = ck_measure(one->op, i, one->type, one->sizes, &elements, &bytes, err);
        if (!status)
            status = fenced_create(&b->buffers[i], one->device, bytes, one->shift_bytes, err);
    }
    return status;
}

static kr_status place_arguments(bench *b, kr_error *err)
{
    const ck_problem *p = &b->problem;
    for (size_t i = 0; i < p->op->n_args; i++) {
        const kr_op_arg *arg = &p->op->args[i];
        if (arg->role == KR_ROLE_WORK)
            continue;
        if (!arg->shape) {
            b->args[b->n_args++] = ck_scalar(kr_op_arg_type(p->op, i, p->type), p->given[i]);
            continue;
        }
        fenced *f = &b->buffers[i];
        kr_status status = fenced_fill(f, p->given[i], err);
        if (status)
            return status;
        b->args[b->n_args++] = KR_BUF_AT(f->buffer, f->start);
    }
    return KR_OK;
}

static kr_launch_options launch_options(const ck_case *one)
{
    kr_launch_options options = {.struct_size = sizeof options, .variant = one->variant};
    memcpy(options.block, one->block, sizeof options.block);
    return options;
}

static kr_status launch(bench *b, kr_error *err)
{
    char name[64];
    const ck_case *one = b->one;
    kr_launch_options options = launch_options(one);
    kr_stream *stream = kr_device_default_stream(one->device);
    kr_status status = kr_launch(one->registry, stream, ck_full_name(one->op, one->type, name, sizeof name),
                                 (kr_args){b->args, b->n_args}, &options, err);
    return status ? status : kr_stream_synchronize(stream, err);
}

static kr_status examine(bench *b, ck_result *result, kr_error *err)
{
    const ck_problem *p = &b->problem;
    for (size_t i = 0; i < p->op->n_args; i++) {
        fenced *f = &b->buffers[i];
        if (!f->buffer)
            continue;
        b->after[i] = tool_alloc(f->total);
        kr_status status = kr_buffer_download(f->buffer, 0, b->after[i], f->total, err);
        if (status)
            return status;
        size_t element_bytes = kr_type_bytes(kr_op_arg_type(p->op, i, p->type));
        check_untouched(result, f, &p->op->args[i], element_bytes, b->after[i]);
        ck_compare(p, i, b->after[i] + f->start, result);
    }
    return KR_OK;
}

static bool has_role(const kr_op *op, kr_arg_role role)
{
    for (size_t i = 0; i < op->n_args; i++)
        if (op->args[i].role == role)
            return true;
    return false;
}

static void compare_again(bench *b, size_t arg, const unsigned char *again, ck_result *result)
{
    const ck_problem *p = &b->problem;
    const fenced *f = &b->buffers[arg];
    size_t element_bytes = kr_type_bytes(kr_op_arg_type(p->op, arg, p->type));
    for (size_t at = 0; at < f->total; at++)
        if (again[at] != b->after[arg][at]) {
            spoiled(result, f, &p->op->args[arg], element_bytes, at, b->after[arg][at], again[at],
                    "not repeatable");
            return;
        }
}

/* An op that keeps scratch must leave it as it found it: launched twice with the same scratch it gives the
 * same bits. */
static kr_status check_again(bench *b, ck_result *result, kr_error *err)
{
    char name[64];
    const ck_case *one = b->one;
    if (!has_role(one->op, KR_ROLE_WORK) || has_role(one->op, KR_ROLE_INOUT))
        return KR_OK;
    kr_launcher *launcher = NULL;
    kr_launch_options options = launch_options(one);
    kr_stream *stream = kr_device_default_stream(one->device);
    kr_status status =
        kr_launcher_create(one->registry, stream, ck_full_name(one->op, one->type, name, sizeof name),
                           (kr_args){b->args, b->n_args}, &options, &launcher, err);
    for (int i = 0; i < 2 && !status; i++)
        status = kr_launcher_run(launcher, err);
    for (size_t i = 0; !status && i < one->op->n_args; i++) {
        fenced *f = &b->buffers[i];
        if (one->op->args[i].role != KR_ROLE_OUT)
            continue;
        unsigned char *again = tool_alloc(f->total);
        status = kr_buffer_download(f->buffer, 0, again, f->total, err);
        if (!status)
            compare_again(b, i, again, result);
        free(again);
    }
    kr_launcher_destroy(&launcher);
    return status;
}

kr_status ck_check(const ck_case *one, ck_result *ret_result, kr_error *err)
{
    bench b = {.one = one};
    ck_result result = {.ok = true};
    kr_status status = create_buffers(&b, err);
    if (!status)
        status = ck_problem_init(&b.problem, one->op, one->type, one->reference, one->sizes, one->class,
                                 one->seed, err);
    if (!status)
        status = place_arguments(&b, err);
    if (!status)
        status = launch(&b, err);
    if (!status)
        status = examine(&b, &result, err);
    if (!status)
        status = check_again(&b, &result, err);
    for (size_t i = 0; i < KR_MAX_OP_ARGS; i++) {
        fenced_destroy(&b.buffers[i]);
        free(b.after[i]);
    }
    ck_problem_finish(&b.problem);
    if (!status)
        *ret_result = result;
    return status;
}

/* ---- names ---- */

char *ck_full_name(const kr_op *op, kr_type type, char *to, size_t bytes)
{
    snprintf(to, bytes, op->n_types ? "%s.%s" : "%s", op->name, kr_type_name(type));
    return to;
}

char *ck_shape_text(const kr_op *op, const uint64_t *sizes, char *to, size_t bytes)
{
    size_t used = 0;
    to[0] = '\0';
    for (size_t i = 0; i < op->n_args && used < bytes; i++)
        if (op->args[i].role == KR_ROLE_SIZE)
            used += (size_t)snprintf(to + used, bytes - used, used ? "x%" PRIu64 : "%" PRIu64, sizes[i]);
    return to;
}

static const char *requirements(const kr_op *op, const char *variant)
{
    for (size_t i = 0; i < op->n_variants; i++)
        if (strcmp(op->variants[i].name, variant) == 0)
            return op->variants[i].requirements;
    return "";
}

/* The bytes that its `align=` asks for, or 0. */
static size_t variant_align(const kr_op *op, const char *variant)
{
    const char *align = strstr(requirements(op, variant), "align=");
    return align ? (size_t)strtoull(align + strlen("align="), NULL, 10) : 0;
}

static size_t widest_element(const kr_op *op, kr_type type)
{
    size_t widest = 1;
    for (size_t i = 0; i < op->n_args; i++) {
        size_t bytes = kr_type_bytes(kr_op_arg_type(op, i, type));
        if (op->args[i].shape && op->args[i].role != KR_ROLE_WORK && bytes > widest)
            widest = bytes;
    }
    return widest;
}

/* Its buffers can be off a boundary by multiples of this. */
static size_t variant_step(const kr_op *op, kr_type type, const char *variant)
{
    size_t align = variant_align(op, variant), element = widest_element(op, type);
    return align > element ? align : element;
}

/* ---- the walk ---- */

/* Edge sizes, by how many of them the shape gives freely (sizes with a minimum follow from those). Rows end
 * at the first 0 after their sizes. */
static const uint64_t lines[] = {0,   1,   2,   3,    4,    5,    7,    8,    15,    16,     17,
                                 31,  32,  33,  63,   64,   65,   127,  128,  129,   255,    256,
                                 257, 511, 513, 1000, 1023, 1025, 4099, 5000, 65537, 1000003};
static const uint64_t planes[][2] = {{0, 0},    {0, 5},      {5, 0},    {1, 1},   {1, 2},    {2, 1},
                                     {1, 33},   {33, 1},     {31, 33},  {32, 32}, {33, 31},  {8, 32},
                                     {9, 33},   {3, 129},    {64, 65},  {7, 257}, {1, 1000}, {1000, 1},
                                     {129, 70}, {462, 1024}, {70000, 3}};
static const uint64_t solids[][3] = {{0, 3, 4},    {3, 0, 4},    {3, 4, 0},    {1, 1, 1},    {1, 1, 33},
                                     {31, 33, 17}, {32, 32, 32}, {33, 31, 65}, {1, 64, 5},   {64, 1, 7},
                                     {5, 7, 300},  {9, 40, 31},  {65, 33, 1},  {100, 65, 33}};
/* What sizes with a minimum have above it, in turn. */
static const uint64_t slack[] = {0, 1, 13};

enum { QUICK_ELEMENTS = 5000, ALL_CLASSES_ELEMENTS = 5000 };

static size_t n_free_sizes(const kr_op *op)
{
    size_t n = 0;
    for (size_t i = 0; i < op->n_args; i++)
        n += op->args[i].role == KR_ROLE_SIZE && !op->args[i].minimum;
    return n;
}

static size_t n_shapes(size_t n_free)
{
    switch (n_free) {
    case 0:
        return 1;
    case 1:
        return sizeof lines / sizeof *lines;
    case 2:
        return sizeof planes / sizeof *planes;
    default:
        return sizeof solids / sizeof *solids;
    }
}

static uint64_t edge_size(size_t n_free, size_t shape, size_t index)
{
    switch (n_free) {
    case 1:
        return lines[shape];
    case 2:
        return planes[shape][index];
    default:
        return index < 3 ? solids[shape][index] : 3;
    }
}

static kr_status make_shape(const kr_op *op, size_t shape, uint64_t *ret_sizes, kr_error *err)
{
    size_t n_free = n_free_sizes(op), taken = 0;
    for (size_t i = 0; i < op->n_args; i++) {
        if (op->args[i].role != KR_ROLE_SIZE)
            continue;
        if (!op->args[i].minimum) {
            ret_sizes[i] = edge_size(n_free, shape, taken++);
            continue;
        }
        uint64_t minimum;
        kr_status status = kr_op_arg_minimum(op, i, ret_sizes, &minimum, err);
        if (status)
            return status;
        ret_sizes[i] = minimum + slack[shape % (sizeof slack / sizeof *slack)];
    }
    return KR_OK;
}

static uint64_t largest_buffer(const kr_op *op, const uint64_t *sizes)
{
    uint64_t most = 0, elements;
    for (size_t i = 0; i < op->n_args; i++)
        if (op->args[i].shape && op->args[i].role != KR_ROLE_WORK &&
            kr_op_arg_elements(op, i, sizes, &elements, NULL) == KR_OK && elements > most)
            most = elements;
    return most;
}

typedef struct walk {
    const ck_walk_options *options;
    bool (*visit)(void *user, const ck_case *one);
    void *user;
    ck_case one;
    bool stopped;
} walk;

/* On a 256-byte boundary, and as far off it as the variant must bear. */
static void walk_shifts(walk *w)
{
    size_t step = variant_step(w->one.op, w->one.type, w->one.variant);
    size_t n = w->options->shift_bytes ? 1 : 2;
    for (size_t i = 0; i < n && !w->stopped; i++) {
        w->one.shift_bytes = w->options->shift_bytes ? *w->options->shift_bytes : i * step;
        w->stopped = !w->visit(w->user, &w->one);
    }
}

static void walk_classes(walk *w)
{
    const ck_walk_options *o = w->options;
    bool large = !o->sizes && largest_buffer(w->one.op, w->one.sizes) > ALL_CLASSES_ELEMENTS;
    for (int c = 0; c < CK_N_CLASSES && !w->stopped; c++) {
        w->one.class = (ck_class)c;
        if (o->class ? *o->class != w->one.class : !ck_class_fits(w->one.class, w->one.op, w->one.type))
            continue;
        if (!o->class && large && w->one.class != CK_ORDINARY && w->one.class != CK_POSITIVE)
            continue;
        walk_shifts(w);
    }
}

static bool sizes_fit(const kr_op *op, kr_type type, const uint64_t *sizes)
{
    for (size_t i = 0; i < op->n_args; i++)
        if (op->args[i].role == KR_ROLE_SIZE && sizes[i] > ck_size_limit(op, i, type))
            return false;
    return true;
}

static kr_status walk_shapes(walk *w, kr_error *err)
{
    const kr_op *op = w->one.op;
    if (w->options->sizes) {
        memcpy(w->one.sizes, w->options->sizes, sizeof w->one.sizes);
        walk_classes(w);
        return KR_OK;
    }
    for (size_t s = 0; s < n_shapes(n_free_sizes(op)) && !w->stopped; s++) {
        kr_status status = make_shape(op, s, w->one.sizes, err);
        if (status)
            return status;
        if (!sizes_fit(op, w->one.type, w->one.sizes))
            continue;
        if (w->options->quick && (s % 3 == 2 || largest_buffer(op, w->one.sizes) > QUICK_ELEMENTS))
            continue;
        walk_classes(w);
    }
    return KR_OK;
}

static bool within(const kr_op *op, const char *variant, const kr_cc *max_cc)
{
    kr_cc least;
    char text[16] = "";
    const char *requires = requirements(op, variant), *at = strstr(requires, "cc>=");
    at = at ? at : strstr(requires, "cc=");
    if (!max_cc || !at)
        return true;
    at = strchr(at, '=') + 1;
    snprintf(text, sizeof text, "%.*s", (int)strcspn(at, " "), at);
    return kr_cc_parse(text, &least, NULL) != KR_OK || kr_cc_compare(least, *max_cc) <= 0;
}

static kr_status walk_variants(walk *w, kr_error *err)
{
    char name[64];
    const kr_op *op = w->one.op;
    const ck_walk_options *options = w->options;
    ck_full_name(op, w->one.type, name, sizeof name);
    for (size_t v = 0; v < op->n_variants && !w->stopped; v++) {
        kr_resolution resolution;
        const char *variant = op->variants[v].name;
        kr_launch_options launch_options = {.struct_size = sizeof launch_options, .variant = variant};
        if ((options->variant && strcmp(options->variant, variant) != 0) ||
            !within(op, variant, options->max_cc))
            continue;
        size_t step = variant_step(op, w->one.type, variant);
        if (options->shift_bytes && *options->shift_bytes % step)
            return tool_refuse(err, "Give a multiple, or the variants that take it by --variant.",
                               "a shift by %zu: %s of %s takes multiples of %zu bytes", *options->shift_bytes,
                               variant, name, step);
        kr_status status = kr_registry_resolve(w->one.registry, name, w->one.device, NULL, &launch_options,
                                               &resolution, err);
        if (status == KR_NOT_ON_THIS_DEVICE && !options->variant)
            continue;
        w->one.variant = variant;
        if (!status)
            status = walk_shapes(w, err);
        if (status)
            return status;
    }
    return KR_OK;
}

kr_status ck_walk(kr_registry *registry, kr_device *const *devices, size_t n_devices, const kr_op *op,
                  kr_type type, const ck_walk_options *options, bool (*visit)(void *user, const ck_case *one),
                  void *user, kr_error *err)
{
    walk w = {options,
              visit,
              user,
              {.registry = registry,
               .op = op,
               .type = type,
               .reference = options->reference,
               .seed = options->seed},
              false};
    for (size_t d = 0; d < n_devices; d++) {
        void *context;
        w.one.device = devices[d];
        /* A busy device is not one that lacks what the variants need: it is told, not left out. */
        kr_status status = kr_device_cucontext(devices[d], &context, err);
        if (!status)
            status = walk_variants(&w, err);
        if (status)
            return status;
    }
    return KR_OK;
}
