/* SPDX-License-Identifier: Apache-2.0 */
#include <kregistry/group.h>

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "registry/internal.h"

typedef struct member {
    kr_device *device;
    kr_stream *stream;
    kr_event *start, *end;
} member;

struct kr_group {
    size_t n;
    member members[];
};

/* ---- life ---- */

void kr_group_destroy(kr_group **group)
{
    if (!group || !*group)
        return;
    for (size_t i = 0; i < (*group)->n; i++) {
        member *m = &(*group)->members[i];
        kr_event_destroy(&m->start);
        kr_event_destroy(&m->end);
        kr_stream_destroy(&m->stream);
    }
    free(*group);
    *group = NULL;
}

kr_status kr_group_create(kr_runtime *runtime, const kr_group_options *options, kr_group **ret_group,
                          kr_error *err)
{
    KR_REQUIRE(err, runtime, ret_group);
    kr_group_options own;
    kr_status status = KR_OPTIONS(err, options, own);
    if (!status)
        status = kr__require_list(err, "devices", own.devices, own.n_devices);
    if (status)
        return status;
    const size_t n = own.devices ? own.n_devices : kr_runtime_n_devices(runtime);
    if (!n)
        return KR_FAIL(err, KR_INVALID_ARGUMENT, "a group of no devices");
    kr_group *group = kr__alloc(1, sizeof *group + n * sizeof group->members[0], err);
    if (!group)
        return KR_OUT_OF_HOST_MEMORY;
    group->n = n;
    for (size_t i = 0; i < n && !status; i++) {
        member *m = &group->members[i];
        m->device = own.devices ? own.devices[i] : kr_runtime_device(runtime, i);
        if (m->device->runtime != runtime)
            status =
                KR_FAIL(err, KR_INVALID_ARGUMENT, "device %zu of the list is not one of the runtime's", i);
        if (!status)
            status = kr_stream_create(m->device, NULL, &m->stream, err);
        if (!status)
            status = kr_event_create(m->device, true, &m->start, err);
        if (!status)
            status = kr_event_create(m->device, true, &m->end, err);
    }
    if (status)
        kr_group_destroy(&group);
    else
        *ret_group = group;
    return status;
}

size_t kr_group_n_devices(const kr_group *group)
{
    return group ? group->n : 0;
}

kr_device *kr_group_device(const kr_group *group, size_t index)
{
    return group && index < group->n ? group->members[index].device : NULL;
}

/* ---- dividing ---- */

/* False: some part came out smaller than `least`. */
static bool divide(uint64_t total, uint64_t least, const uint64_t *weights, size_t n, uint64_t *counts)
{
    unsigned __int128 all = 0, before = 0;
    for (size_t i = 0; i < n; i++)
        all += weights[i];
    uint64_t first = 0;
    bool enough = true;
    for (size_t i = 0; i < n; i++) {
        before += weights[i];
        const uint64_t end = (uint64_t)(total * before / all);
        counts[i] = end - first;
        enough = enough && (counts[i] >= least || !weights[i]);
        first = end;
    }
    return enough;
}

/* Takes the weakest out, unless it is the only one left. */
static bool drop_weakest(uint64_t *weights, size_t n)
{
    size_t weakest = n, left = 0;
    for (size_t i = 0; i < n; i++) {
        left += weights[i] > 0;
        if (weights[i] && (weakest == n || weights[i] <= weights[weakest]))
            weakest = i;
    }
    if (left > 1)
        weights[weakest] = 0;
    return left > 1;
}

void kr__split_parts(uint64_t total, uint64_t least, uint64_t *weights, size_t n, uint64_t *ret_counts)
{
    while (!divide(total, least, weights, n, ret_counts) && drop_weakest(weights, n))
        continue;
}

/* ---- one run ---- */

/* What one device works on: rows [first - above, first + count + below) of the split size. */
typedef struct part {
    member *member;
    uint64_t first, count, above, below;
    uint64_t sizes[KR_MAX_OP_ARGS];
    kr_buffer *buffers[KR_MAX_OP_ARGS];
    void *summands[KR_MAX_OP_ARGS]; /* host memory: this device's share of a combined output */
    kr_launcher *launcher;
    double ms;
} part;

typedef struct run {
    kr_registry *registry;
    const char *full_name;
    kr__entry *entry;
    size_t type_index;
    uint64_t sizes[KR_MAX_OP_ARGS]; /* of the whole */
    void *host[KR_MAX_OP_ARGS];     /* by the descriptor's index; NULL for work */
    size_t n_parts;
    part *parts;
    part *first; /* that has something to do */
} run;

static const kr__op_def *def_of(const run *r)
{
    return r->entry->def;
}

static kr_type type_of(const run *r, size_t arg)
{
    const kr_op *op = &def_of(r)->op;
    return kr_op_arg_type(op, arg, op->n_types ? op->types[r->type_index] : KR_TYPE_U8);
}

static bool is_buffer(const run *r, size_t arg)
{
    return def_of(r)->op.args[arg].shape && def_of(r)->op.args[arg].role != KR_ROLE_WORK;
}

static bool is_cut(const run *r, size_t arg)
{
    return kr__expression_is_cut_by(def_of(r)->shapes[arg], def_of(r)->split.size_arg);
}

static bool is_read(const run *r, size_t arg)
{
    return def_of(r)->op.args[arg].role != KR_ROLE_OUT;
}

static bool is_written(const run *r, size_t arg)
{
    return def_of(r)->op.args[arg].role != KR_ROLE_IN;
}

static kr_arg scalar_at(kr_type type, const void *at)
{
    switch (type) {
    case KR_TYPE_U8:
        return KR_U8(*(const uint8_t *)at);
    case KR_TYPE_I8:
        return KR_I8(*(const int8_t *)at);
    case KR_TYPE_U16:
        return KR_U16(*(const uint16_t *)at);
    case KR_TYPE_I16:
        return KR_I16(*(const int16_t *)at);
    case KR_TYPE_U32:
        return KR_U32(*(const uint32_t *)at);
    case KR_TYPE_I32:
        return KR_I32(*(const int32_t *)at);
    case KR_TYPE_U64:
        return KR_U64(*(const uint64_t *)at);
    case KR_TYPE_I64:
        return KR_I64(*(const int64_t *)at);
    case KR_TYPE_F32:
        return KR_F32(*(const float *)at);
    case KR_TYPE_F64:
        return KR_F64(*(const double *)at);
    }
    return KR_U64(0);
}

/* Bytes of one row: of the buffer where the split size is 1. */
static kr_status row_bytes(const run *r, size_t arg, uint64_t *ret_bytes, kr_error *err)
{
    uint64_t sizes[KR_MAX_OP_ARGS];
    memcpy(sizes, r->sizes, sizeof sizes);
    sizes[def_of(r)->split.size_arg] = 1;
    return kr__arg_bytes(def_of(r), r->type_index, arg, sizes, 0, ret_bytes, err);
}

static kr_status read_args(run *r, void *const args[], size_t n_args, kr_error *err)
{
    const kr_op *op = &def_of(r)->op;
    if (n_args != kr__n_caller_args(op))
        return KR_FAIL(err, KR_INVALID_ARGUMENT, "%zu arguments are given; there are %zu", n_args,
                       kr__n_caller_args(op));
    for (size_t i = 0; i < n_args; i++) {
        const size_t at = kr__caller_arg(op, i);
        r->host[at] = args[i];
        if (op->args[at].role == KR_ROLE_SIZE && args[i])
            r->sizes[at] = scalar_at(type_of(r, at), args[i]).value.u64;
    }
    for (size_t i = 0; i < op->n_args; i++) {
        uint64_t bytes = 1;
        const kr_status status =
            is_buffer(r, i) ? kr__arg_bytes(def_of(r), r->type_index, i, r->sizes, 0, &bytes, err) : KR_OK;
        if (status)
            return status;
        if (op->args[i].role != KR_ROLE_WORK && bytes && !r->host[i])
            return KR_FAIL(err, KR_INVALID_ARGUMENT, "argument %zu '%s' is NULL", i + 1, op->args[i].name);
    }
    return KR_OK;
}

static kr_status make_parts(run *r, kr_group *group, kr_error *err)
{
    const kr__split *split = &def_of(r)->split;
    const uint64_t total = r->sizes[split->size_arg];
    uint64_t least;
    kr_status status = kr_op_arg_minimum(&def_of(r)->op, split->size_arg, r->sizes, &least, err);
    if (status)
        return status;
    r->parts = kr__alloc(group->n, sizeof *r->parts, err);
    uint64_t *numbers = r->parts ? kr__alloc(group->n, 2 * sizeof *numbers, err) : NULL;
    if (!numbers)
        return KR_OUT_OF_HOST_MEMORY;
    uint64_t *weights = numbers, *counts = numbers + group->n, first = 0;
    /* Not clocks: they change while one looks. */
    for (size_t i = 0; i < group->n; i++)
        weights[i] = (uint64_t)kr_device_get_info(group->members[i].device)->multiprocessors;
    kr__split_parts(total, least ? least : 1, weights, group->n, counts);
    for (size_t i = 0; i < group->n; i++) {
        part *p = &r->parts[i];
        const uint64_t after = total - first - counts[i];
        *p = (part){.member = &group->members[i], .first = first, .count = counts[i]};
        p->above = first < split->halo ? first : split->halo;
        p->below = after < split->halo ? after : split->halo;
        memcpy(p->sizes, r->sizes, sizeof p->sizes);
        p->sizes[split->size_arg] = p->above + p->count + p->below;
        first += counts[i];
        if (!r->first && (p->count || !total))
            r->first = p; /* even where the whole is empty: sums of nothing are to be written */
    }
    r->n_parts = group->n;
    free(numbers);
    return KR_OK;
}

static bool has_work(const run *r, const part *p)
{
    return p->count || p == r->first;
}

static kr_status give_buffer(run *r, part *p, size_t arg, kr_error *err)
{
    kr_stream *stream = p->member->stream;
    uint64_t bytes, row = 0;
    kr_status status = kr__arg_bytes(def_of(r), r->type_index, arg, p->sizes, 0, &bytes, err);
    if (!status && is_cut(r, arg))
        status = row_bytes(r, arg, &row, err);
    if (!status)
        status = kr_buffer_create(p->member->device, bytes, NULL, &p->buffers[arg], err);
    if (status || !is_read(r, arg) || !bytes)
        return status;
    /* What is added up in the end counts once. */
    if (is_written(r, arg) && !is_cut(r, arg) && p != r->first)
        return kr_buffer_set(p->buffers[arg], 0, 0, bytes, stream, err);
    const char *from = (const char *)r->host[arg] + (p->first - p->above) * row;
    return kr_buffer_upload_async(p->buffers[arg], 0, from, bytes, stream, err);
}

static kr_status start_part(run *r, part *p, kr_error *err)
{
    const kr_op *op = &def_of(r)->op;
    kr_arg args[KR_MAX_OP_ARGS];
    size_t n = 0;
    kr_status status = KR_OK;
    for (size_t i = 0; i < op->n_args && !status; i++) {
        if (op->args[i].role == KR_ROLE_WORK)
            continue;
        if (is_buffer(r, i)) {
            status = give_buffer(r, p, i, err);
            args[n++] = KR_BUF(p->buffers[i]);
        } else {
            args[n++] = op->args[i].role == KR_ROLE_SIZE ? kr_arg_unsigned(type_of(r, i), p->sizes[i])
                                                         : scalar_at(type_of(r, i), r->host[i]);
        }
    }
    /* Compiling and loading are over before the clock starts. */
    if (!status)
        status = kr_launcher_create(r->registry, p->member->stream, r->full_name, (kr_args){args, n}, NULL,
                                    &p->launcher, err);
    if (!status)
        status = kr_event_record(p->member->start, p->member->stream, err);
    if (!status)
        status = kr_launcher_run(p->launcher, err);
    if (!status)
        status = kr_event_record(p->member->end, p->member->stream, err);
    return status;
}

/* Only rows that this device owns: what it computed at the edges of its halo is not true. */
static kr_status fetch(run *r, part *p, size_t arg, kr_error *err)
{
    kr_stream *stream = p->member->stream;
    if (is_cut(r, arg)) {
        uint64_t row;
        const kr_status status = row_bytes(r, arg, &row, err);
        if (status || !p->count || !row)
            return status;
        return kr_buffer_download_async(p->buffers[arg], p->above * row,
                                        (char *)r->host[arg] + p->first * row, p->count * row, stream, err);
    }
    const size_t bytes = kr_buffer_bytes(p->buffers[arg]);
    p->summands[arg] = kr__alloc(1, bytes, err);
    if (!p->summands[arg])
        return KR_OUT_OF_HOST_MEMORY;
    return bytes ? kr_buffer_download_async(p->buffers[arg], 0, p->summands[arg], bytes, stream, err) : KR_OK;
}

static kr_status fetch_part(run *r, part *p, kr_error *err)
{
    kr_status status = KR_OK;
    for (size_t i = 0; i < def_of(r)->op.n_args && !status; i++)
        if (is_buffer(r, i) && is_written(r, i))
            status = fetch(r, p, i, err);
    return status;
}

/* ---- adding up ---- */

/* Rounded once, in a wider type where there is one: a device's own rounding of its part remains. Signed
 * integers are added as unsigned: they wrap as the device's do. */
static void add_up(kr_type type, void *to, size_t n, const void *const *from, size_t n_from)
{
    switch (type) {
#define ADD_CASE(type, c_type, wide)                 \
    case type:                                       \
        for (size_t i = 0; i < n; i++) {             \
            wide sum = ((const c_type *)from[0])[i]; \
            for (size_t k = 1; k < n_from; k++)      \
                sum += ((const c_type *)from[k])[i]; \
            ((c_type *)to)[i] = (c_type)sum;         \
        }                                            \
        return
        ADD_CASE(KR_TYPE_U8, uint8_t, uint64_t);
        ADD_CASE(KR_TYPE_I8, uint8_t, uint64_t);
        ADD_CASE(KR_TYPE_U16, uint16_t, uint64_t);
        ADD_CASE(KR_TYPE_I16, uint16_t, uint64_t);
        ADD_CASE(KR_TYPE_U32, uint32_t, uint64_t);
        ADD_CASE(KR_TYPE_I32, uint32_t, uint64_t);
        ADD_CASE(KR_TYPE_U64, uint64_t, uint64_t);
        ADD_CASE(KR_TYPE_I64, uint64_t, uint64_t);
        ADD_CASE(KR_TYPE_F32, float, double);
        ADD_CASE(KR_TYPE_F64, double, long double);
#undef ADD_CASE
    }
}

static kr_status combine(run *r, kr_error *err)
{
    const void **from = kr__alloc(r->n_parts, sizeof *from, err);
    if (!from)
        return KR_OUT_OF_HOST_MEMORY;
    for (size_t arg = 0; arg < def_of(r)->op.n_args; arg++) {
        size_t n_from = 0, bytes = 0;
        for (part *p = r->parts; p < r->parts + r->n_parts; p++)
            if (p->summands[arg]) {
                from[n_from++] = p->summands[arg];
                bytes = kr_buffer_bytes(p->buffers[arg]);
            }
        const kr_type type = type_of(r, arg);
        if (n_from)
            add_up(type, r->host[arg], bytes / kr_type_bytes(type), from, n_from);
    }
    free(from);
    return KR_OK;
}

/* ---- the whole ---- */

static kr_status work(run *r, kr_group_part *ret_parts, kr_error *err)
{
    kr_status status = KR_OK;
    part *const end = r->parts + r->n_parts;
    for (part *p = r->parts; p < end && !status; p++)
        if (has_work(r, p))
            status = start_part(r, p, err);
    for (part *p = r->parts; p < end && !status; p++)
        if (has_work(r, p))
            status = fetch_part(r, p, err);
    /* Also after a failure: nothing may be freed under a copy. */
    for (part *p = r->parts; p < end; p++) {
        const kr_status waited = kr_stream_synchronize(p->member->stream, status ? NULL : err);
        status = status ? status : waited;
    }
    for (part *p = r->parts; p < end && !status; p++)
        if (has_work(r, p))
            status = kr_event_elapsed(p->member->start, p->member->end, &p->ms, err);
    if (!status)
        status = combine(r, err);
    if (status)
        return status;
    for (part *p = r->parts; ret_parts && p < end; p++)
        *ret_parts++ = (kr_group_part){p->member->device, p->first, p->count, p->ms};
    return KR_OK;
}

static void free_parts(run *r)
{
    for (size_t i = 0; i < r->n_parts; i++) {
        kr_launcher_destroy(&r->parts[i].launcher);
        for (size_t arg = 0; arg < KR_MAX_OP_ARGS; arg++) {
            kr_buffer_destroy(&r->parts[i].buffers[arg]);
            free(r->parts[i].summands[arg]);
        }
    }
    free(r->parts);
}

kr_status kr_group_run(kr_group *group, kr_registry *registry, const char *full_name, void *const args[],
                       size_t n_args, kr_group_part *ret_parts, kr_error *err)
{
    KR_REQUIRE(err, group, registry, full_name);
    if (n_args)
        KR_REQUIRE(err, args);
    run r = {.registry = registry, .full_name = full_name};
    kr_status status = kr__registry_find(registry, full_name, &r.entry, &r.type_index, err);
    if (status)
        return status;
    const kr_op *op = &def_of(&r)->op;
    if (!op->split) {
        KR_FAIL(err, KR_INVALID_ARGUMENT, "%s has no split line: it cannot be divided over devices",
                op->name);
        kr__error_op(err, full_name);
        kr__error_advice(err, "Run it on one device with kr_launch.");
        return KR_INVALID_ARGUMENT;
    }
    status = read_args(&r, args, n_args, err);
    if (!status)
        status = make_parts(&r, group, err);
    if (!status)
        status = work(&r, ret_parts, err);
    free_parts(&r);
    if (status)
        kr__error_op(err, full_name);
    return status;
}
