/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "registry/internal.h"

/* A launch with everything found out: the kernel, its configuration, and where its parameters are. */
typedef struct prepared {
    kr_device *device;
    kr_kernel *kernel;
    CUstream custream;
    kr_launch_config config;
    void *params[KR_MAX_OP_ARGS];
} prepared;

/* The same with what it was found from. */
typedef struct request {
    kr__entry *entry;
    size_t type_index;
    size_t variant;
    const kr__loaded *loaded;
    kr__bound bound;
    prepared prepared;
} request;

static const kr__op_def *def_of(const request *r)
{
    return r->entry->def;
}

/* Everything but the work arguments. */
static kr_status prepare(kr_registry *registry, kr_stream *stream, const char *full_name, kr_args args,
                         const kr_launch_options *options, request *r, kr_error *err)
{
    kr_launch_options own;
    kr_device *device = kr_stream_device(stream);
    kr_launch_config config;
    kr_status status = KR_OPTIONS(err, options, own);
    if (!status)
        status = kr__registry_find(registry, full_name, &r->entry, &r->type_index, err);
    if (!status)
        status = kr__bind(def_of(r), r->type_index, device, args, &r->bound, err);
    if (!status)
        status = kr__op_load(registry, r->entry, r->type_index, own.variant, r->bound.align_bytes, device,
                             &r->variant, &r->loaded, err);
    if (!status)
        status = kr__configure(def_of(r), r->type_index, r->variant, r->loaded, r->bound.sizes, &own, &config,
                               err);
    prepared *p = &r->prepared;
    if (!status)
        status = kr__launch_check(r->loaded->kernel, &config, &p->config, err);
    if (status)
        return status;
    p->device = device;
    p->kernel = r->loaded->kernel;
    p->custream = stream->custream;
    for (size_t i = 0; i < def_of(r)->op.n_args; i++)
        p->params[i] = &r->bound.params[i];
    return KR_OK;
}

static kr_status run(const prepared *p, kr_error *err)
{
    kr__scope scope;
    const kr_status status = kr__scope_begin(&scope, p->device, err);
    if (status)
        return status;
    const CUresult result = kr__kernel_launch_raw(p->kernel, p->custream, &p->config, (void **)p->params);
    kr__scope_end(&scope);
    return result == CUDA_SUCCESS ? KR_OK : kr__launch_fail(p->kernel, &p->config, result, err);
}

/* ---- work arguments ---- */

static uint64_t n_blocks(const kr_launch_config *config)
{
    return (uint64_t)config->grid[0] * config->grid[1] * config->grid[2];
}

/* Calls `give` with the size of each work argument; what it gives becomes the parameter. */
static kr_status
for_each_work(request *r, kr_status (*give)(void *user, uint64_t bytes, uint64_t *ret_address, kr_error *),
              void *user, kr_error *err)
{
    const kr_op *op = &def_of(r)->op;
    kr_status status = KR_OK;
    for (size_t i = 0; i < op->n_args && !status; i++) {
        uint64_t bytes;
        if (op->args[i].role != KR_ROLE_WORK)
            continue;
        status = kr__arg_bytes(def_of(r), r->type_index, i, r->bound.sizes, n_blocks(&r->prepared.config),
                               &bytes, err);
        if (!status)
            status = give(user, bytes, &r->bound.params[i].u64, err);
        if (status)
            kr__while(err, status, "making the work buffer '%s' of %s", op->args[i].name, op->name);
    }
    return status;
}

/* Scratch for as long as its owner likes, zeroed in stream order. */
typedef struct scratch {
    kr_stream *stream;
    size_t n;
    kr_buffer *buffers[KR_MAX_OP_ARGS];
} scratch;

static kr_status give_buffer(void *user, uint64_t bytes, uint64_t *ret_address, kr_error *err)
{
    scratch *s = user;
    kr_buffer **buffer = &s->buffers[s->n];
    kr_status status = kr_buffer_create(s->stream->device, bytes, NULL, buffer, err);
    if (status)
        return status;
    s->n++;
    *ret_address = (*buffer)->pointer;
    return kr_buffer_set(*buffer, 0, 0, bytes, s->stream, err);
}

static void free_scratch(scratch *s)
{
    while (s->n)
        kr_buffer_destroy(&s->buffers[--s->n]);
}

/* Scratch for one launch, from the driver's pool: allocated and freed in stream order, so nobody waits. */
typedef struct pooled {
    kr_stream *stream;
    size_t n;
    CUdeviceptr pointers[KR_MAX_OP_ARGS];
} pooled;

static bool has_pools(const kr_device *device)
{
    return device->info.memory_pools && device->driver->cuMemAllocAsync && device->driver->cuMemFreeAsync;
}

/* In the device's scope. */
static kr_status give_pooled(void *user, uint64_t bytes, uint64_t *ret_address, kr_error *err)
{
    pooled *p = user;
    kr_device *device = p->stream->device;
    CUdeviceptr *pointer = &p->pointers[p->n];
    *ret_address = 0;
    if (!bytes)
        return KR_OK;
    CUresult result = device->driver->cuMemAllocAsync(pointer, bytes, p->stream->custream);
    if (result != CUDA_SUCCESS)
        return KR_DEVICE_FAIL(err, device, result, "cuMemAllocAsync", "%llu bytes of work memory asked for",
                              (unsigned long long)bytes);
    p->n++;
    *ret_address = *pointer;
    result = device->driver->cuMemsetD8Async(*pointer, 0, bytes, p->stream->custream);
    return result == CUDA_SUCCESS
               ? KR_OK
               : KR_DEVICE_FAIL(err, device, result, "cuMemsetD8Async",
                                "cannot clear %llu bytes of work memory", (unsigned long long)bytes);
}

static kr_status free_pooled(pooled *p, kr_error *err)
{
    kr_device *device = p->stream->device;
    CUresult result = CUDA_SUCCESS;
    while (p->n) {
        const CUresult one = device->driver->cuMemFreeAsync(p->pointers[--p->n], p->stream->custream);
        result = result == CUDA_SUCCESS ? one : result;
    }
    return result == CUDA_SUCCESS
               ? KR_OK
               : KR_DEVICE_FAIL(err, device, result, "cuMemFreeAsync", "cannot give work memory back");
}

static kr_status run_pooled(request *r, kr_stream *stream, kr_error *err)
{
    pooled p = {.stream = stream};
    kr__scope scope;
    kr_status status = kr__scope_begin(&scope, stream->device, err);
    if (status)
        return status;
    status = for_each_work(r, give_pooled, &p, err);
    if (!status)
        status = run(&r->prepared, err);
    const kr_status freed = free_pooled(&p, status ? NULL : err);
    kr__scope_end(&scope);
    return status ? status : freed;
}

static bool has_work(const kr_op *op)
{
    return kr__n_caller_args(op) < op->n_args;
}

/* Scratch that is not the stream's own is zeroed and freed outside any graph: a capture would keep the one
 * for later and know nothing of the other. */
static kr_status check_scratch(const request *r, kr_stream *stream, kr_error *err)
{
    return has_work(&def_of(r)->op) ? kr__stream_not_capturing(stream, "giving a kernel work memory", err)
                                    : KR_OK;
}

static kr_status run_with_scratch(request *r, kr_stream *stream, kr_error *err)
{
    scratch s = {.stream = stream};
    kr_status status = check_scratch(r, stream, err);
    if (status)
        return status;
    status = for_each_work(r, give_buffer, &s, err);
    if (!status)
        status = run(&r->prepared, err);
    const kr_status waited = kr_stream_synchronize(stream, status ? NULL : err);
    free_scratch(&s);
    return status ? status : waited;
}

static kr_status in_op(const request *r, kr_status status, kr_error *err)
{
    char name[KR__MAX_FULL_NAME];
    if (status)
        kr__error_op(err, kr__op_full_name(&def_of(r)->op, r->type_index, name));
    return status;
}

kr_status kr_launch(kr_registry *registry, kr_stream *stream, const char *full_name, kr_args args,
                    const kr_launch_options *options, kr_error *err)
{
    KR_REQUIRE(err, registry, stream, full_name);
    request r;
    kr_status status = prepare(registry, stream, full_name, args, options, &r, err);
    if (status)
        return status;
    if (!has_work(&def_of(&r)->op))
        status = run(&r.prepared, err);
    else if (has_pools(stream->device))
        status = run_pooled(&r, stream, err);
    else
        status = run_with_scratch(&r, stream, err);
    return in_op(&r, status, err);
}

/* ---- prepared launches ---- */

struct kr_launcher {
    request request;
    scratch scratch;
};

kr_status kr_launcher_create(kr_registry *registry, kr_stream *stream, const char *full_name, kr_args args,
                             const kr_launch_options *options, kr_launcher **ret_launcher, kr_error *err)
{
    KR_REQUIRE(err, registry, stream, full_name, ret_launcher);
    kr_launcher *launcher = kr__alloc(1, sizeof *launcher, err);
    if (!launcher)
        return KR_OUT_OF_HOST_MEMORY;
    request *r = &launcher->request;
    launcher->scratch.stream = stream;
    kr_status status = prepare(registry, stream, full_name, args, options, r, err);
    if (!status)
        status = in_op(r, check_scratch(r, stream, err), err);
    if (!status)
        status = in_op(r, for_each_work(r, give_buffer, &launcher->scratch, err), err);
    if (status) {
        kr_launcher_destroy(&launcher);
        return status;
    }
    *ret_launcher = launcher;
    return KR_OK;
}

void kr_launcher_destroy(kr_launcher **launcher)
{
    if (!launcher || !*launcher)
        return;
    scratch *s = &(*launcher)->scratch;
    /* Scratch may still be in use. */
    if (s->n)
        kr_stream_synchronize(s->stream, NULL);
    free_scratch(s);
    free(*launcher);
    *launcher = NULL;
}

static kr_status check_align(const request *r, size_t index, const kr__param *param, kr_error *err)
{
    const uint64_t needed = def_of(r)->variants[r->variant].align_bytes;
    const uint64_t address = def_of(r)->op.args[index].shape ? param->u64 : 0;
    if (!needed || address % needed == 0)
        return KR_OK;
    KR_FAIL(err, KR_INVALID_ARGUMENT,
            "argument %zu '%s' is at 0x%llx; this launcher's variant %s needs a multiple of %llu", index + 1,
            def_of(r)->op.args[index].name, (unsigned long long)address,
            def_of(r)->op.variants[r->variant].name, (unsigned long long)needed);
    kr__error_advice(err, "Make another launcher for such buffers.");
    return KR_INVALID_ARGUMENT;
}

kr_status kr_launcher_set(kr_launcher *launcher, size_t index, kr_arg value, kr_error *err)
{
    KR_REQUIRE(err, launcher);
    request *r = &launcher->request;
    const kr_op *op = &def_of(r)->op;
    const size_t at = kr__caller_arg(op, index);
    if (at == op->n_args)
        return in_op(r,
                     KR_FAIL(err, KR_INVALID_ARGUMENT, "there are %zu arguments; there is no index %zu",
                             kr__n_caller_args(op), index),
                     err);
    if (op->args[at].role == KR_ROLE_SIZE) {
        KR_FAIL(err, KR_INVALID_ARGUMENT,
                "argument %zu '%s' is a size, which the launch configuration follows from", at + 1,
                op->args[at].name);
        kr__error_advice(err, "Make another launcher for another size.");
        return in_op(r, KR_INVALID_ARGUMENT, err);
    }
    kr__bound bound = r->bound;
    kr_status status = kr__bind_one(def_of(r), r->type_index, at, r->prepared.device, &value, &bound, err);
    if (!status)
        status = check_align(r, at, &bound.params[at], err);
    if (!status)
        r->bound.params[at] = bound.params[at];
    return in_op(r, status, err);
}

kr_status kr_launcher_run(kr_launcher *launcher, kr_error *err)
{
    KR_REQUIRE(err, launcher);
    return in_op(&launcher->request, run(&launcher->request.prepared, err), err);
}

/* ---- what would run ---- */

static void default_sizes(const kr_op *op, uint64_t sizes[KR_MAX_OP_ARGS])
{
    enum { PLENTY = 1 << 20 };
    memset(sizes, 0, KR_MAX_OP_ARGS * sizeof sizes[0]);
    for (size_t i = 0; i < op->n_args; i++) {
        uint64_t least = 0;
        if (op->args[i].role == KR_ROLE_SIZE && !kr_op_arg_minimum(op, i, sizes, &least, NULL))
            sizes[i] = least ? least : PLENTY;
    }
}

static kr_status fill_resolution(const request *r, const kr_launch_config *config, kr_resolution *to,
                                 kr_error *err)
{
    const kr_device_info *device = kr_device_get_info(kr_kernel_device(r->loaded->kernel));
    const kr_kernel_info *kernel = kr_kernel_get_info(r->loaded->kernel);
    const unsigned threads = config->block[0] * config->block[1] * config->block[2];
    const kr__residency residency = kr__residency_of(device, kernel, threads, config->dynamic_shared_bytes);
    int blocks;
    const kr_status status =
        kr_kernel_occupancy(r->loaded->kernel, (int)threads, config->dynamic_shared_bytes, &blocks, err);
    if (status)
        return status;
    *to = (kr_resolution){.variant = def_of(r)->op.variants[r->variant].name,
                          .image_kind = r->loaded->kind,
                          .image_arch = r->loaded->arch,
                          .image_origin = r->loaded->origin,
                          .registers = kernel->registers,
                          .static_shared_bytes = kernel->static_shared_bytes,
                          .config = *config,
                          .occupancy = (double)blocks * threads / device->max_threads_per_multiprocessor,
                          .limiter = residency.limiter,
                          .kernel = r->loaded->kernel,
                          .image_change = r->loaded->change};
    return KR_OK;
}

kr_status kr_registry_resolve(kr_registry *registry, const char *full_name, kr_device *device,
                              const uint64_t *sizes, const kr_launch_options *options,
                              kr_resolution *ret_resolution, kr_error *err)
{
    KR_REQUIRE(err, registry, full_name, device, ret_resolution);
    kr_launch_options own;
    request r;
    uint64_t defaults[KR_MAX_OP_ARGS];
    kr_launch_config config;
    kr_status status = KR_OPTIONS(err, options, own);
    if (!status)
        status = kr__registry_find(registry, full_name, &r.entry, &r.type_index, err);
    if (!status)
        status = kr__op_load(registry, r.entry, r.type_index, own.variant, UINT64_MAX, device, &r.variant,
                             &r.loaded, err);
    if (status)
        return status;
    default_sizes(&def_of(&r)->op, defaults);
    status = kr__configure(def_of(&r), r.type_index, r.variant, r.loaded, sizes ? sizes : defaults, &own,
                           &config, err);
    return status ? status : fill_resolution(&r, &config, ret_resolution, err);
}
