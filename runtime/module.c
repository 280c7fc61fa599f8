/* SPDX-License-Identifier: Apache-2.0 */
#include <kregistry/link.h>

#include <stdlib.h>
#include <string.h>

#include "runtime/internal.h"

struct kr__code {
    kr__driver *driver;
    atomic_uint holders;
    kr__image_facts facts;
    const void *image;
    size_t image_bytes;
    char *ptx; /* the image with the NUL that the driver looks for */
    pthread_mutex_t lock;
    bool tried; /* under the lock: library is what it will be */
    CUlibrary library;
    char name[128]; /* for messages */
};

/* ---- why a driver refused an image ---- */

/* What of a fatbin is for the device, the highest; NULL: nothing of that kind is. */
static const kr__fatbin_entry *entry_for(const kr__fatbin *fatbin, kr_image_kind kind, kr_cc cc)
{
    const kr__fatbin_entry *best = NULL;
    for (size_t i = 0; i < fatbin->n_entries; i++) {
        const kr__fatbin_entry *e = &fatbin->entries[i];
        if (e->kind == kind &&
            (kind == KR_IMAGE_CUBIN ? kr_cc_cubin_runs_on : kr_cc_ptx_runs_on)(e->arch, cc) &&
            (!best || kr_cc_compare(e->arch, best->arch) > 0))
            best = e;
    }
    return best;
}

/* The ISA of the PTX that was refused; 0: not known. */
static int isa_for(const kr__code *code, kr_cc cc)
{
    kr__fatbin *fatbin;
    if (code->facts.kind != KR_IMAGE_FATBIN || kr__fatbin_read(code->image, code->image_bytes, &fatbin, NULL))
        return code->facts.isa;
    const kr__fatbin_entry *ptx = entry_for(fatbin, KR_IMAGE_PTX, cc);
    const int isa = ptx ? ptx->isa : 0;
    kr__fatbin_free(&fatbin);
    return isa;
}

/* The toolkit of the machine code that was refused, as 13000; 0: not known. */
static int toolkit_for(const kr__code *code, kr_cc cc)
{
    kr__fatbin *fatbin = NULL;
    kr__cubin *cubin = NULL;
    char *unpacked = NULL;
    const void *image = code->image;
    size_t bytes = code->image_bytes;
    if (code->facts.kind == KR_IMAGE_FATBIN && !kr__fatbin_read(image, bytes, &fatbin, NULL)) {
        const kr__fatbin_entry *entry = entry_for(fatbin, KR_IMAGE_CUBIN, cc);
        image = entry && !kr__fatbin_unpack(entry, &unpacked, &bytes, NULL) ? unpacked : NULL;
        kr__fatbin_free(&fatbin);
    } else if (code->facts.kind != KR_IMAGE_CUBIN) {
        image = NULL;
    }
    const int toolkit = image && !kr__cubin_read(image, bytes, &cubin, NULL) ? cubin->toolkit : 0;
    kr__cubin_free(&cubin);
    free(unpacked);
    return toolkit;
}

/* false: there is no machine code for the device, or none for later drivers than this one. */
static bool explain_toolkit(kr_device *device, const kr__code *code, kr_error *err)
{
    const int toolkit = toolkit_for(code, device->info.cc), needed = kr__toolkit_driver(toolkit),
              driver = device->driver->version;
    if (needed <= driver)
        return false;
    kr__error_advice(
        err,
        "It was made by CUDA %d.%d: update the driver (CUDA %d.%d) to one for CUDA %d.%d, or give "
        "it PTX.",
        toolkit / 1000, toolkit % 1000 / 10, driver / 1000, driver % 1000 / 10, needed / 1000,
        needed % 1000 / 10);
    return true;
}

/* "It holds sm_75 and compute_100. " of a fatbin; "" of another image. */
static const char *what_it_holds(const kr__code *code, char *text, size_t bytes)
{
    kr__fatbin *fatbin;
    *text = '\0';
    if (code->facts.kind != KR_IMAGE_FATBIN || kr__fatbin_read(code->image, code->image_bytes, &fatbin, NULL))
        return text;
    enum { LONGEST = 32 }; /* of a name, with what ends the text */
    size_t i = 0;
    for (; i < fatbin->n_entries && strlen(text) + LONGEST < bytes; i++) {
        const kr__fatbin_entry *e = &fatbin->entries[i];
        const char *prefix = e->kind == KR_IMAGE_PTX ? "compute" : e->kind == KR_IMAGE_LTOIR ? "lto" : "sm";
        kr__append(text, bytes, "%s %s_%d%d%.1s", i ? "," : "It holds", prefix, e->arch.major, e->arch.minor,
                   &e->arch.suffix);
    }
    kr__append(text, bytes, "%s", !i ? "" : i < fatbin->n_entries ? ", ... " : ". ");
    kr__fatbin_free(&fatbin);
    return text;
}

static void explain_no_binary(kr_device *device, const kr__code *code, kr_error *err)
{
    const kr_cc cc = device->info.cc;
    const bool fits = code->facts.kind == KR_IMAGE_CUBIN && kr_cc_cubin_runs_on(code->facts.target, cc);
    if ((fits || code->facts.kind == KR_IMAGE_FATBIN) && explain_toolkit(device, code, err))
        return;
    char holds[128];
    if (fits)
        kr__error_advice(err, "The target fits: the cubin may be for an 'a' or 'f' target.");
    else
        kr__error_advice(err, "%sBuild it for sm_%d%d, or with PTX of at most compute_%d%d.",
                         what_it_holds(code, holds, sizeof holds), cc.major, cc.minor, cc.major, cc.minor);
}

static void explain_version(kr_device *device, const kr__code *code, kr_error *err)
{
    const int isa = isa_for(code, device->info.cc), needed = isa ? kr__isa_driver(isa) : 0,
              driver = device->driver->version;
    if (needed && code->facts.kind == KR_IMAGE_FATBIN)
        kr__error_advice(
            err,
            "Its PTX %d.%d needs a driver of CUDA %d.%d: update this one (%d.%d), or build it with machine "
            "code for sm_%d%d.",
            isa / 10, isa % 10, needed / 1000, needed % 1000 / 10, driver / 1000, driver % 1000 / 10,
            device->info.cc.major, device->info.cc.minor);
    else if (needed)
        kr__error_advice(err,
                         "It needs a driver of CUDA %d.%d: update this one (%d.%d), or give the PTX to "
                         "kr_ptx_relevel or to "
                         "`kregistry relevel --driver-version %d.%d` first.",
                         needed / 1000, needed % 1000 / 10, driver / 1000, driver % 1000 / 10, driver / 1000,
                         driver % 1000 / 10);
    else
        kr__error_advice(err, "Update the driver, or compile to a cubin for sm_%d%d.", device->info.cc.major,
                         device->info.cc.minor);
}

static kr_status fail_load(kr_device *device, const kr__code *code, CUresult result, const char *function,
                           const char *log, kr_error *err)
{
    const kr__image_facts *facts = &code->facts;
    const int isa = kr__driver_isa(device->driver->version);
    char cc[KR_CC_TEXT_BYTES];
    kr_cc_format(device->info.cc, cc);
    const bool too_new = result == CUDA_ERROR_UNSUPPORTED_PTX_VERSION && facts->isa;
    const bool too_high = result == CUDA_ERROR_INVALID_PTX && facts->target.major &&
                          !kr_cc_ptx_runs_on(facts->target, device->info.cc);
    kr_status status = KR_NOT_ON_THIS_DEVICE;
    if (too_high) {
        KR_FAIL(err, status, "%s, which does not run on device %d (%s), %s", facts->text,
                device->info.ordinal, device->info.name, cc);
        kr__error_code(err, KR_API_CUDA, result, "CUDA_ERROR_INVALID_PTX", function);
        kr__error_device(err, device->info.ordinal);
    } else if (too_new) {
        status = KR_DEVICE_FAIL(err, device, result, function, "%s; the driver takes PTX up to %d.%d",
                                facts->text, isa / 10, isa % 10);
    } else {
        status = KR_DEVICE_FAIL(err, device, result, function, "%s; device %d (%s) is %s", facts->text,
                                device->info.ordinal, device->info.name, cc);
    }
    if (status == KR_PROCESS_LOST)
        return status;
    kr__error_log(err, log);
    kr__error_image(err, code->name);
    if (too_high)
        kr__error_advice(
            err,
            "Compile it for compute_%d%d or lower, or give it to kr_ptx_relevel or to `kregistry "
            "relevel --target sm_%d%d` first.",
            device->info.cc.major, device->info.cc.minor, device->info.cc.major, device->info.cc.minor);
    switch ((int)result) {
    case CUDA_ERROR_NO_BINARY_FOR_GPU:
        explain_no_binary(device, code, err);
        break;
    case CUDA_ERROR_UNSUPPORTED_PTX_VERSION:
        explain_version(device, code, err);
        break;
    case CUDA_ERROR_JIT_COMPILER_NOT_FOUND:
        kr__error_advice(
            err, "Install the libnvidia-ptxjitcompiler.so.1 that belongs to the driver (in containers: "
                 "NVIDIA_DRIVER_CAPABILITIES=compute,utility), or use a cubin.");
        break;
    case CUDA_ERROR_JIT_COMPILATION_DISABLED:
        kr__error_advice(err, "Unset CUDA_DISABLE_PTX_JIT and CUDA_DISABLE_JIT, or use a cubin for sm_%d%d.",
                         device->info.cc.major, device->info.cc.minor);
        break;
    case CUDA_ERROR_INVALID_IMAGE:
        if (!explain_toolkit(device, code, err))
            kr__error_advice(err, "Build or copy the image again.");
        break;
    case CUDA_ERROR_INVALID_SOURCE:
        if (facts->kind == KR_IMAGE_FATBIN)
            kr__error_advice(err, "A part of it is for another device than it says: build the image again.");
        break;
    case CUDA_ERROR_UNKNOWN:
        if (facts->kind == KR_IMAGE_FATBIN)
            kr__error_advice(err, "If a part of it does not unpack, build or copy the image again.");
        break;
    }
    return status;
}

/* ---- loading ---- */

kr_status kr__code_create(kr__driver *driver, const void *image, size_t image_bytes, const char *name,
                          kr__code **ret_code, kr_error *err)
{
    kr__image_facts facts;
    kr_status status = kr__image_read(image, image_bytes, &facts, err);
    if (status == KR_OK && facts.kind == KR_IMAGE_LTOIR)
        status = KR_FAIL(err, KR_INVALID_ARGUMENT, "LTO-IR is not loaded but linked first");
    if (status == KR_OK && facts.kind == KR_IMAGE_FATBIN)
        status = kr__fatbin_check(image, image_bytes, err);
    if (status != KR_OK)
        return kr__while(err, status, "loading %s", name ? name : "an image");
    kr__code *code = kr__alloc(1, sizeof *code, err);
    char *ptx = code && facts.kind == KR_IMAGE_PTX ? kr__alloc(1, facts.ptx_bytes + 1, err) : NULL;
    if (!code || (facts.kind == KR_IMAGE_PTX && !ptx)) {
        free(code);
        return KR_OUT_OF_HOST_MEMORY;
    }
    if (ptx)
        memcpy(ptx, image, facts.ptx_bytes);
    code->driver = driver;
    code->facts = facts;
    code->ptx = ptx;
    code->image = ptx ? ptx : image;
    code->image_bytes = image_bytes;
    atomic_init(&code->holders, 1);
    pthread_mutex_init(&code->lock, NULL);
    kr__format(code->name, sizeof code->name, "%s", name ? name : "the image");
    *ret_code = code;
    return KR_OK;
}

void kr__code_release(kr__code **code)
{
    kr__code *c = *code;
    *code = NULL;
    if (!c || atomic_fetch_sub(&c->holders, 1) != 1)
        return;
    if (c->library && kr__driver_alive(c->driver, NULL) == KR_OK) {
        kr__scope scope = {.driver = c->driver};
        kr__scope_relax(&scope);
        c->driver->cuLibraryUnload(c->library);
        kr__scope_end(&scope);
    }
    pthread_mutex_destroy(&c->lock);
    free(c->ptx);
    free(c);
}

/* The image's library; NULL where there is none. A context is current. */
static CUlibrary library_of(kr__code *code)
{
    kr__driver *driver = code->driver;
    pthread_mutex_lock(&code->lock);
    if (!code->tried && driver->cuLibraryLoadData && driver->cuLibraryGetModule && driver->cuLibraryUnload &&
        driver->cuLibraryLoadData(&code->library, code->image, NULL, NULL, 0, NULL, NULL, 0) != CUDA_SUCCESS)
        code->library = NULL;
    code->tried = true;
    pthread_mutex_unlock(&code->lock);
    return code->library;
}

/* A driver of CUDA 13.0 takes PTX that does not compile into a library without a word, refuses a module of it
 * without a log, and keeps no reason for another device. So where the library gives no module, the device's
 * own load is asked: it fails for the same reason, and says it. */
static kr_status load(kr_module *module, kr_error *err)
{
    enum { LOG_BYTES = 16 << 10 };
    kr__code *code = module->code;
    kr_device *device = module->device;
    char *log = kr__alloc(1, LOG_BYTES + 1, err);
    if (!log)
        return KR_OUT_OF_HOST_MEMORY;
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {log, (void *)(uintptr_t)LOG_BYTES};
    kr__scope scope;
    kr_status status = kr__scope_begin(&scope, device, err);
    if (status == KR_OK) {
        kr__scope_relax(&scope);
        const CUlibrary library = library_of(code);
        CUresult result = CUDA_SUCCESS;
        module->in_library =
            library && device->driver->cuLibraryGetModule(&module->cumodule, library) == CUDA_SUCCESS;
        if (!module->in_library)
            result = device->driver->cuModuleLoadDataEx(&module->cumodule, code->image, KR_COUNT(options),
                                                        options, values);
        kr__scope_end(&scope);
        if (result != CUDA_SUCCESS) {
            module->cumodule = NULL;
            status = fail_load(device, code, result, "cuModuleLoadDataEx", log, err);
        }
    }
    free(log);
    return status;
}

kr_status kr__code_load(kr__code *code, kr_device *device, kr_module **ret_module, kr_error *err)
{
    kr_module *module = kr__alloc(1, sizeof *module, err);
    if (!module)
        return KR_OUT_OF_HOST_MEMORY;
    module->device = device;
    module->code = code;
    atomic_fetch_add(&code->holders, 1);
    module->name = code->name;
    pthread_mutex_init(&module->lock, NULL);
    const kr_status status = load(module, err);
    if (status == KR_OK)
        *ret_module = module;
    else
        kr_module_destroy(&module);
    return status;
}

/* LTO-IR: linked for the device, then loaded. */
static kr_status load_linked(kr_device *device, const void *image, size_t image_bytes, const char *name,
                             kr_module **ret_module, kr_error *err)
{
    const kr_link_input input = {name, image, image_bytes};
    const kr_linker_options options = {.struct_size = sizeof options, .device = device};
    kr_linker *linker = NULL;
    kr_linked *linked = NULL;
    kr_status status = kr_linker_create(&options, &linker, err);
    if (status == KR_OK)
        status = kr_link(linker, &input, 1, device->info.cc, NULL, &linked, err);
    if (status == KR_OK)
        status = kr_module_load(device, linked->image, linked->image_bytes, name, ret_module, err);
    else
        kr__while(err, status, "linking %s, which is LTO-IR", name ? name : "an image");
    kr_linked_destroy(&linked);
    kr_linker_destroy(&linker);
    return status;
}

kr_status kr_module_load(kr_device *device, const void *image, size_t image_bytes, const char *name,
                         kr_module **ret_module, kr_error *err)
{
    KR_REQUIRE(err, device, image, ret_module);
    kr_image_kind kind;
    if (kr__image_kind(image, image_bytes, &kind, NULL) == KR_OK && kind == KR_IMAGE_LTOIR)
        return load_linked(device, image, image_bytes, name, ret_module, err);
    kr__code *code;
    kr_status status = kr__code_create(device->driver, image, image_bytes, name, &code, err);
    if (status != KR_OK)
        return status;
    status = kr__code_load(code, device, ret_module, err);
    kr__code_release(&code);
    return status;
}

void kr_module_destroy(kr_module **module)
{
    if (!module || !*module)
        return;
    kr_module *m = *module;
    *module = NULL;
    kr__scope scope;
    if (m->cumodule && !m->in_library && kr__scope_begin_destroy(&scope, m->device)) {
        kr__scope_relax(&scope);
        m->device->driver->cuModuleUnload(m->cumodule);
        kr__scope_end(&scope);
    }
    for (kr_kernel *kernel = m->kernels, *next; kernel; kernel = next) {
        next = kernel->next;
        kr__kernel_free(kernel);
    }
    pthread_mutex_destroy(&m->lock);
    kr__code_release(&m->code);
    free(m);
}

kr_status kr_module_kernel(kr_module *module, const char *name, kr_kernel **ret_kernel, kr_error *err)
{
    KR_REQUIRE(err, module, name, ret_kernel);
    kr_status status = KR_OK;
    pthread_mutex_lock(&module->lock);
    kr_kernel *kernel = module->kernels;
    while (kernel && strcmp(kernel->name, name) != 0)
        kernel = kernel->next;
    if (!kernel) {
        kr__scope scope;
        status = kr__scope_begin(&scope, module->device, err);
        if (status == KR_OK) {
            kr__scope_relax(&scope); /* a lazy driver loads the kernel now */
            status = kr__kernel_create(module, name, &kernel, err);
            kr__scope_end(&scope);
        }
        if (status == KR_OK) {
            kernel->next = module->kernels;
            module->kernels = kernel;
        }
    }
    pthread_mutex_unlock(&module->lock);
    if (status == KR_OK)
        *ret_kernel = kernel;
    return status;
}

kr_status kr_module_global(kr_module *module, const char *name, uint64_t *ret_cudeviceptr, size_t *ret_bytes,
                           kr_error *err)
{
    KR_REQUIRE(err, module, name, ret_cudeviceptr, ret_bytes);
    CUdeviceptr pointer;
    size_t bytes;
    const kr_status status =
        KR_CALL(err, module->device, cuModuleGetGlobal_v2, (&pointer, &bytes, module->cumodule, name),
                "variable \"%.200s\" of %s", name, module->name);
    if (status == KR_OK) {
        *ret_cudeviceptr = pointer;
        *ret_bytes = bytes;
    }
    return status;
}
