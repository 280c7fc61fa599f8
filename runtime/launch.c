/* SPDX-License-Identifier: Apache-2.0 */
#include <kregistry/launch.h>

#include <inttypes.h>
#include <string.h>

#include "runtime/internal.h"

const char *kr_type_name(kr_type type)
{
    switch (type) {
#define NAME_CASE(name, text, bytes) \
    case name:                       \
        return text;
        KR_TYPE_LIST(NAME_CASE)
#undef NAME_CASE
    }
    return "?";
}

size_t kr_type_bytes(kr_type type)
{
    switch (type) {
#define BYTES_CASE(name, text, bytes) \
    case name:                        \
        return bytes;
        KR_TYPE_LIST(BYTES_CASE)
#undef BYTES_CASE
    }
    return 0;
}

/* ---- arguments ---- */

static bool pack_scalar(const kr_arg *arg, kr__param *param)
{
    const int64_t i = arg->value.i64;
    const uint64_t u = arg->value.u64;
    switch (arg->type) {
    case KR_TYPE_U8:
        param->u8 = (uint8_t)u;
        return u <= UINT8_MAX;
    case KR_TYPE_I8:
        param->u8 = (uint8_t)u;
        return i >= INT8_MIN && i <= INT8_MAX;
    case KR_TYPE_U16:
        param->u16 = (uint16_t)u;
        return u <= UINT16_MAX;
    case KR_TYPE_I16:
        param->u16 = (uint16_t)u;
        return i >= INT16_MIN && i <= INT16_MAX;
    case KR_TYPE_U32:
        param->u32 = (uint32_t)u;
        return u <= UINT32_MAX;
    case KR_TYPE_I32:
        param->u32 = (uint32_t)u;
        return i >= INT32_MIN && i <= INT32_MAX;
    case KR_TYPE_U64:
    case KR_TYPE_I64:
        param->u64 = u;
        return true;
    case KR_TYPE_F32:
        param->f32 = arg->value.f32;
        return true;
    case KR_TYPE_F64:
        param->f64 = arg->value.f64;
        return true;
    }
    return false;
}

/* "argument 3 'x'", or "argument 3" where the kernel alone is known. */
#define ARGUMENT "argument %zu%s%s%s"
#define ARGUMENT_IS(index, name) (index), (name) ? " '" : "", (name) ? (name) : "", (name) ? "'" : ""

static kr_status pack_buffer(const kr_arg *arg, size_t index, const char *name, kr_device *device,
                             kr__param *param, kr_error *err)
{
    const kr_buffer *buffer = arg->value.buffer;
    if (!buffer)
        return KR_FAIL(err, KR_INVALID_ARGUMENT, ARGUMENT ": the buffer is NULL", ARGUMENT_IS(index, name));
    if (buffer->device->driver != device->driver) {
        KR_FAIL(err, KR_INVALID_ARGUMENT, ARGUMENT ": the buffer is of the driver %s, the kernel of %s",
                ARGUMENT_IS(index, name), buffer->device->driver->path, device->driver->path);
        kr__error_advice(err, "Copy it by way of the host: kr_buffer_download, then kr_buffer_upload.");
        return KR_INVALID_ARGUMENT;
    }
    if (buffer->device != device) {
        KR_FAIL(err, KR_INVALID_ARGUMENT, ARGUMENT ": the buffer is on device %d, the kernel on device %d",
                ARGUMENT_IS(index, name), buffer->device->info.ordinal, device->info.ordinal);
        kr__error_advice(
            err, "Copy it with kr_buffer_copy, or enable peer access and pass its address with KR_PTR.");
        return KR_INVALID_ARGUMENT;
    }
    if (arg->offset_bytes > buffer->bytes)
        return KR_FAIL(err, KR_INVALID_ARGUMENT, ARGUMENT ": offset %zu lies outside a buffer of %zu bytes",
                       ARGUMENT_IS(index, name), arg->offset_bytes, buffer->bytes);
    param->u64 = buffer->pointer + arg->offset_bytes;
    return KR_OK;
}

kr_status kr__param_pack(const kr_arg *arg, size_t index, const char *name, kr_device *device,
                         kr__param *ret_param, size_t *ret_bytes, kr_error *err)
{
    kr__param param = {.u64 = 0};
    size_t bytes = sizeof param.u64;
    switch (arg->kind) {
    case KR_ARG_SCALAR:
        bytes = kr_type_bytes(arg->type);
        if (!bytes)
            return KR_FAIL(err, KR_INVALID_ARGUMENT, ARGUMENT ": there is no type %d",
                           ARGUMENT_IS(index, name), (int)arg->type);
        if (!pack_scalar(arg, &param)) {
            const bool is_signed = kr_type_name(arg->type)[0] == 'i';
            return KR_FAIL(err, KR_INVALID_ARGUMENT,
                           is_signed ? ARGUMENT ": %" PRId64 " does not fit into %s"
                                     : ARGUMENT ": %" PRIu64 " does not fit into %s",
                           ARGUMENT_IS(index, name), arg->value.u64, kr_type_name(arg->type));
        }
        break;
    case KR_ARG_POINTER:
        param.u64 = arg->value.pointer;
        break;
    case KR_ARG_BUFFER: {
        const kr_status status = pack_buffer(arg, index, name, device, &param, err);
        if (status != KR_OK)
            return status;
        break;
    }
    default:
        return KR_FAIL(err, KR_INVALID_ARGUMENT, ARGUMENT ": there is no kind %d", ARGUMENT_IS(index, name),
                       (int)arg->kind);
    }
    *ret_param = param;
    *ret_bytes = bytes;
    return KR_OK;
}

/* ---- the configuration ---- */

static kr_status check_dimensions(const kr_kernel *kernel, const kr_launch_config *c, kr_error *err)
{
    static const char axis[] = "xyz";
    const kr_device_info *info = &kernel->device->info;
    for (int i = 0; i < 3; i++) {
        if (c->grid[i] > (unsigned)info->max_grid[i])
            return KR_FAIL(err, KR_INVALID_ARGUMENT, "%s: grid.%c is %u; device %d takes at most %d",
                           kernel->name, axis[i], c->grid[i], info->ordinal, info->max_grid[i]);
        if (c->block[i] > (unsigned)info->max_block[i])
            return KR_FAIL(err, KR_INVALID_ARGUMENT, "%s: block.%c is %u; device %d takes at most %d",
                           kernel->name, axis[i], c->block[i], info->ordinal, info->max_block[i]);
    }
    /* Each factor is at most 1024 here: the product fits. */
    const unsigned threads = c->block[0] * c->block[1] * c->block[2];
    if (threads > (unsigned)info->max_threads_per_block)
        return KR_FAIL(err, KR_INVALID_ARGUMENT,
                       "%s: a block of %u x %u x %u = %u threads; device %d takes at most %d", kernel->name,
                       c->block[0], c->block[1], c->block[2], threads, info->ordinal,
                       info->max_threads_per_block);
    const unsigned registers = (unsigned)kernel->info.registers * threads;
    if (threads > (unsigned)kernel->info.max_threads_per_block) {
        if (registers > (unsigned)info->registers_per_block)
            KR_FAIL(err, KR_INVALID_ARGUMENT,
                    "%s: %d registers x %u threads = %u of the %d registers of a block; this kernel takes at "
                    "most %d threads",
                    kernel->name, kernel->info.registers, threads, registers, info->registers_per_block,
                    kernel->info.max_threads_per_block);
        else /* its launch bounds, or registers that are handed out by the warp */
            KR_FAIL(err, KR_INVALID_ARGUMENT,
                    "%s: a block of %u threads; this kernel, as it was compiled, takes at most %d",
                    kernel->name, threads, kernel->info.max_threads_per_block);
        kr__error_advice(err, "Use a smaller block, or compile the kernel with __launch_bounds__(%u).",
                         threads);
        return KR_INVALID_ARGUMENT;
    }
    return KR_OK;
}

kr_status kr__launch_check(kr_kernel *kernel, const kr_launch_config *config, kr_launch_config *ret_config,
                           kr_error *err)
{
    kr_launch_config c = *config;
    for (int i = 0; i < 3; i++) {
        c.grid[i] += c.grid[i] == 0;
        c.block[i] += c.block[i] == 0;
    }
    kr_status status = check_dimensions(kernel, &c, err);
    if (status == KR_OK)
        status = kr_kernel_allow_shared(kernel, c.dynamic_shared_bytes, err);
    if (status == KR_OK)
        *ret_config = c;
    else
        kr__error_device(err, kernel->device->info.ordinal);
    return status;
}

kr_status kr__launch_fail(const kr_kernel *kernel, const kr_launch_config *c, CUresult result, kr_error *err)
{
    const kr_kernel_info *k = &kernel->info;
    const unsigned threads = c->block[0] * c->block[1] * c->block[2];
    if (result == CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES)
        return KR_DEVICE_FAIL(
            err, kernel->device, result, "cuLaunchKernel",
            "%s: %d registers x %u threads = %u of the %d of a block, %d + %u bytes of shared memory",
            kernel->name, k->registers, threads, (unsigned)k->registers * threads,
            kernel->device->info.registers_per_block, k->static_shared_bytes, c->dynamic_shared_bytes);
    const kr_status status = KR_DEVICE_FAIL(
        err, kernel->device, result, "cuLaunchKernel",
        "cannot launch %s: grid %u x %u x %u, block %u x %u x %u, %u bytes of dynamic shared memory",
        kernel->name, c->grid[0], c->grid[1], c->grid[2], c->block[0], c->block[1], c->block[2],
        c->dynamic_shared_bytes);
    if (result == CUDA_ERROR_NOT_SUPPORTED && kernel->device->info.simulated)
        kr__error_advice(err,
                         "Load PTX, or a fatbin or pack that has it too: softcuda executes nothing else.");
    return status;
}

/* ---- launching ---- */

/* The driver's own list, where it has one, judges the arguments; where it has none, anything goes. */
static kr_status pack_all(const kr_kernel *kernel, kr_args args, kr__param *values, void **params,
                          kr_error *err)
{
    if (kernel->n_params >= 0 && args.n != (size_t)kernel->n_params)
        return KR_FAIL(err, KR_INVALID_ARGUMENT, "%s takes %d arguments; %zu given", kernel->name,
                       kernel->n_params, args.n);
    for (size_t i = 0; i < args.n; i++) {
        size_t bytes;
        kr_status status = kr__param_pack(&args.list[i], i, NULL, kernel->device, &values[i], &bytes, err);
        if (status != KR_OK)
            return kr__while(err, status, "launching %s", kernel->name);
        if (kernel->n_params >= 0 && kernel->params[i].bytes != bytes)
            return KR_FAIL(err, KR_INVALID_ARGUMENT,
                           "%s: argument %zu has %zu bytes; the kernel's parameter has %zu", kernel->name, i,
                           bytes, kernel->params[i].bytes);
        params[i] = &values[i];
    }
    return KR_OK;
}

kr_status kr_kernel_launch(kr_kernel *kernel, kr_stream *stream, const kr_launch_config *config, kr_args args,
                           kr_error *err)
{
    KR_REQUIRE(err, kernel, stream, config);
    enum { MAX_PARAMS = 512 }; /* 8 bytes each: the 4 KiB that every device takes */
    kr_device *device = kernel->device;
    if (stream->device != device)
        return KR_FAIL(err, KR_INVALID_ARGUMENT, "%s is loaded on device %d, the stream is of device %d",
                       kernel->name, device->info.ordinal, stream->device->info.ordinal);
    if (args.n && !args.list)
        return KR_FAIL(err, KR_INVALID_ARGUMENT, "%s: %zu arguments given, but their list is NULL",
                       kernel->name, args.n);
    if (args.n > MAX_PARAMS)
        return KR_FAIL(err, KR_INVALID_ARGUMENT, "%s: %zu arguments given; %d is the most", kernel->name,
                       args.n, MAX_PARAMS);
    kr__param values[MAX_PARAMS];
    void *params[MAX_PARAMS];
    kr_launch_config c;
    kr_status status = kr__driver_alive(device->driver, err);
    if (status == KR_OK)
        status = pack_all(kernel, args, values, params, err);
    if (status == KR_OK)
        status = kr__launch_check(kernel, config, &c, err);
    kr__scope scope;
    if (status == KR_OK)
        status = kr__scope_begin(&scope, device, err);
    if (status != KR_OK)
        return status;
    const CUresult result = kr__kernel_launch_raw(kernel, stream->custream, &c, params);
    kr__scope_end(&scope);
    return result == CUDA_SUCCESS ? KR_OK : kr__launch_fail(kernel, &c, result, err);
}
