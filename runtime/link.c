/* SPDX-License-Identifier: Apache-2.0 */
#include <kregistry/link.h>

#include <stdlib.h>
#include <string.h>

#include "ptx/link/linker.h"
#include "runtime/internal.h"

struct kr_linker {
    kr__nvjitlink *nvjitlink; /* NULL: the device's driver links */
    kr_device *device;        /* or NULL */
};

/* What kr_link gives, with the memory that it points to. */
typedef struct linked {
    kr_linked out;
    kr__link_result result;
} linked;

/* ---- the linker ---- */

static bool driver_links(const kr_device *device)
{
    const kr__driver *d = device->driver;
    return d->cuLinkCreate_v2 && d->cuLinkAddData_v2 && d->cuLinkComplete && d->cuLinkDestroy;
}

/* Where nvJitLink is to be; NULL: nobody said. */
static const char *given_path(const char *path)
{
    const char *variable = secure_getenv("KREGISTRY_NVJITLINK");
    return path ? path : variable && variable[0] ? variable : NULL;
}

kr_status kr_linker_create(const kr_linker_options *options, kr_linker **ret_linker, kr_error *err)
{
    KR_REQUIRE(err, ret_linker);
    kr_linker_options own;
    kr_status status = KR_OPTIONS(err, options, own);
    if (status != KR_OK)
        return status;
    kr_linker *linker = kr__alloc(1, sizeof *linker, err);
    if (!linker)
        return KR_OUT_OF_HOST_MEMORY;
    linker->device = own.device;
    const char *given = given_path(own.nvjitlink);
    if (!given || strcmp(given, "none") != 0)
        status = kr__nvjitlink_open(own.device ? own.device->driver->version : 0, own.nvjitlink,
                                    &linker->nvjitlink, err);
    else if (!own.device) {
        status = KR_FAIL(err, KR_NOT_ON_THIS_MACHINE,
                         "nothing links: no nvJitLink is wanted, and no device given");
        kr__error_advice(err, "Allow nvJitLink, or give a device whose driver links.");
    }
    /* One that was named must do; else a driver will. */
    if (status == KR_NOT_ON_THIS_MACHINE && !given && own.device && driver_links(own.device))
        status = KR_OK;
    if (status == KR_OK)
        *ret_linker = linker;
    else
        kr_linker_destroy(&linker);
    return status;
}

void kr_linker_destroy(kr_linker **linker)
{
    if (!linker || !*linker)
        return;
    kr__nvjitlink_close(&(*linker)->nvjitlink);
    free(*linker);
    *linker = NULL;
}

kr_linker_info kr_linker_get_info(const kr_linker *linker)
{
    kr_linker_info info = {0};
    if (!linker)
        return info;
    if (linker->nvjitlink) {
        info.path = kr__nvjitlink_path(linker->nvjitlink, &info.major, &info.minor);
        return info;
    }
    const kr__driver *driver = linker->device->driver;
    return (kr_linker_info){driver->path, true, driver->version / 1000, driver->version % 1000 / 10};
}

/* ---- by the driver ---- */

enum { LOG_BYTES = 64 << 10 };

static const CUjitInputType driver_types[] = {
    [KR_IMAGE_PTX] = CU_JIT_INPUT_PTX,
    [KR_IMAGE_CUBIN] = CU_JIT_INPUT_CUBIN,
    [KR_IMAGE_FATBIN] = CU_JIT_INPUT_FATBINARY,
};

static kr_status driver_failed(kr_device *device, CUresult result, const char *function, const char *target,
                               size_t n, const kr__text *log, kr_error *err)
{
    kr_status status = KR_DEVICE_FAIL(err, device, result, function, "linking %zu images for %s", n, target);
    const bool of_image =
        result == CUDA_ERROR_NO_BINARY_FOR_GPU || result == CUDA_ERROR_UNSUPPORTED_PTX_VERSION;
    if (status == KR_PROCESS_LOST || status == KR_OUT_OF_HOST_MEMORY || status == KR_OUT_OF_DEVICE_MEMORY ||
        of_image || !log->bytes) {
        kr__error_log(err, log->data);
        if (result == CUDA_ERROR_UNSUPPORTED_PTX_VERSION)
            kr__error_advice(
                err, "Give the PTX to kr_ptx_relevel or `kregistry relevel` first, or update the driver.");
        return status;
    }
    const char *name = err ? err->code_name : "";
    char code_name[sizeof err->code_name];
    kr__format(code_name, sizeof code_name, "%s", name);
    status = kr__link_failed("the driver", n, target, log, err);
    kr__error_code(err, KR_API_CUDA, result, code_name, function);
    kr__error_device(err, device->info.ordinal);
    return status;
}

/* Adds all and completes; on success the image is copied out of the link, which owns it. */
static CUresult link_parts(const kr__driver *d, CUlinkState link, const kr__link_part *parts, size_t n,
                           kr__link_result *result, const char **ret_function)
{
    CUresult answer = CUDA_SUCCESS;
    void *image = NULL;
    size_t bytes = 0;
    *ret_function = "cuLinkAddData_v2";
    for (size_t i = 0; i < n && !answer; i++) {
        /* PTX must end with a NUL, which the size counts. */
        char *ptx = parts[i].facts.kind == KR_IMAGE_PTX ? malloc(parts[i].bytes + 1) : NULL;
        if (ptx) {
            memcpy(ptx, parts[i].image, parts[i].bytes);
            ptx[parts[i].bytes] = '\0';
        } else if (parts[i].facts.kind == KR_IMAGE_PTX) {
            return CUDA_ERROR_OUT_OF_MEMORY;
        }
        answer = d->cuLinkAddData_v2(link, driver_types[parts[i].facts.kind],
                                     ptx ? ptx : (void *)(uintptr_t)parts[i].image,
                                     parts[i].bytes + (ptx != NULL), parts[i].name, 0, NULL, NULL);
        free(ptx);
    }
    if (answer)
        return answer;
    *ret_function = "cuLinkComplete";
    answer = d->cuLinkComplete(link, &image, &bytes);
    if (answer)
        return answer;
    result->image = malloc(bytes + 1);
    if (!result->image)
        return CUDA_ERROR_OUT_OF_MEMORY;
    memcpy(result->image, image, bytes);
    result->image[bytes] = '\0';
    result->bytes = bytes;
    return CUDA_SUCCESS;
}

static kr_status link_by_driver(kr_device *device, const kr__link_part *parts, size_t n,
                                kr__link_result *result, kr_error *err)
{
    const kr__driver *d = device->driver;
    char target[24];
    kr__format(target, sizeof target, "sm_%d%d", device->info.cc.major, device->info.cc.minor);
    char *logs = kr__alloc(2, LOG_BYTES, err); /* errors, remarks */
    if (!logs)
        return KR_OUT_OF_HOST_MEMORY;
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
                              CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {logs, (void *)(uintptr_t)(LOG_BYTES - 1), logs + LOG_BYTES,
                      (void *)(uintptr_t)(LOG_BYTES - 1)};
    kr__scope scope;
    kr_status status = kr__scope_begin(&scope, device, err);
    if (status == KR_OK) {
        CUlinkState link = NULL;
        const char *function = "cuLinkCreate_v2";
        kr__scope_relax(&scope);
        CUresult answer = d->cuLinkCreate_v2(KR_COUNT(options), options, values, &link);
        if (!answer) {
            answer = link_parts(d, link, parts, n, result, &function);
            d->cuLinkDestroy(link);
        }
        kr__scope_end(&scope);
        for (int i = 0; i < 2; i++)
            if (logs[i * LOG_BYTES])
                kr__text_add(&result->log, "%s\n", logs + i * LOG_BYTES);
        if (answer)
            status = driver_failed(device, answer, function, target, n, &result->log, err);
    }
    free(logs);
    return status;
}

/* ---- linking ---- */

static kr_status read_parts(const kr_link_input *inputs, size_t n, kr__link_part *parts, kr_error *err)
{
    for (size_t i = 0; i < n; i++) {
        kr__link_part *part = &parts[i];
        const kr_link_input *input = &inputs[i];
        if (input->name)
            kr__format(part->name, sizeof part->name, "%s", input->name);
        else
            kr__format(part->name, sizeof part->name, "image %zu", i);
        if (!input->image)
            return KR_FAIL(err, KR_INVALID_ARGUMENT, "%s is NULL", part->name);
        const kr_status status = kr__image_read(input->image, input->image_bytes, &part->facts, err);
        if (status != KR_OK)
            return kr__while(err, status, "linking %s", part->name);
        part->image = input->image;
        part->bytes = part->facts.kind == KR_IMAGE_PTX ? part->facts.ptx_bytes : input->image_bytes;
    }
    return KR_OK;
}

/* What only nvJitLink does. */
static kr_status check_driver(const kr_linker *linker, const kr__link_part *parts, size_t n, kr_cc arch,
                              const kr_link_options *options, kr_error *err)
{
    const kr_cc cc = linker->device->info.cc;
    const char *what = options->ptx ? "PTX as a result" : options->n_options ? "options" : NULL;
    for (size_t i = 0; i < n && !what; i++)
        if (parts[i].facts.kind == KR_IMAGE_LTOIR)
            what = parts[i].name;
    if (arch.major && (kr_cc_compare(arch, cc) || arch.suffix)) {
        KR_FAIL(err, KR_INVALID_ARGUMENT, "the driver links for its device's %d.%d, not for %d.%d%.1s",
                cc.major, cc.minor, arch.major, arch.minor, (char[]){arch.suffix, '\0'});
        kr__error_advice(err, "Link for %d.%d, or let nvJitLink be used, which links for any.", cc.major,
                         cc.minor);
        return KR_INVALID_ARGUMENT;
    }
    if (!what)
        return KR_OK;
    KR_FAIL(err, KR_NOT_ON_THIS_MACHINE, "%s: that takes nvJitLink, and the driver links here", what);
    kr__error_advice(
        err, "Install the Python package nvidia-nvjitlink or a CUDA toolkit, or set KREGISTRY_NVJITLINK "
             "to the libnvJitLink.so file.");
    return KR_NOT_ON_THIS_MACHINE;
}

kr_status kr_link(kr_linker *linker, const kr_link_input *inputs, size_t n_inputs, kr_cc arch,
                  const kr_link_options *options, kr_linked **ret_linked, kr_error *err)
{
    KR_REQUIRE(err, linker, inputs, ret_linked);
    kr_link_options own;
    kr_status status = KR_OPTIONS(err, options, own);
    if (status == KR_OK)
        status = kr__require_list(err, "options", own.options, own.n_options);
    if (status == KR_OK && !n_inputs)
        status = KR_FAIL(err, KR_INVALID_ARGUMENT, "there is nothing to link");
    if (status == KR_OK && linker->nvjitlink && !arch.major)
        status = KR_FAIL(err, KR_INVALID_ARGUMENT, "nvJitLink must be told the arch");
    if (status != KR_OK)
        return status;
    kr__link_part *parts = kr__alloc(n_inputs, sizeof *parts, err);
    linked *made = kr__alloc(1, sizeof *made, err);
    status = parts && made ? read_parts(inputs, n_inputs, parts, err) : KR_OUT_OF_HOST_MEMORY;
    if (status == KR_OK && linker->nvjitlink)
        status = kr__nvjitlink_link(linker->nvjitlink, parts, n_inputs, arch, &own, &made->result, err);
    else if (status == KR_OK && (status = check_driver(linker, parts, n_inputs, arch, &own, err)) == KR_OK)
        status = link_by_driver(linker->device, parts, n_inputs, &made->result, err);
    free(parts);
    kr_linked *out = made ? &made->out : NULL;
    if (status == KR_OK) {
        *out = (kr_linked){made->result.image, made->result.bytes, own.ptx ? KR_IMAGE_PTX : KR_IMAGE_CUBIN,
                           made->result.log.data ? made->result.log.data : ""};
        *ret_linked = out;
    } else {
        kr_linked_destroy(&out);
    }
    return status;
}

void kr_linked_destroy(kr_linked **linked_)
{
    if (!linked_ || !*linked_)
        return;
    linked *made = (linked *)*linked_; /* `out` stands first in it */
    kr__text_free(&made->result.log);
    free(made->result.image);
    free(made);
    *linked_ = NULL;
}
