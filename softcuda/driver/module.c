/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Modules: PTX, cubins and fatbins made ready in a context. Code is PTX alone; a cubin gives the answers
 * about its kernels, and their code comes from the PTX beside it in the fatbin, or that it carries.
 */
#include "softcuda/driver/driver.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- which code runs where ---- */

static kr_cc cc_of(int number, char suffix)
{
    return (kr_cc){number / 10, number % 10, suffix};
}

static bool runs(kr_image_kind kind, kr_cc target, const sc_device *device)
{
    const kr_cc own = cc_of(device->chip->cc, 0);
    return kind == KR_IMAGE_CUBIN ? kr_cc_cubin_runs_on(target, own) : kr_cc_ptx_runs_on(target, own);
}

/* The driver knows a cubin by its operating system's ABI, of which CUDA has had two, and looks at the machine
 * it is for; which toolkit made it is the same to it. */
static bool cubin_runs(const unsigned char *image, const kr__cubin *cubin, const sc_device *device)
{
    enum { OS_ABI = 7, UP_TO_ABI_7 = 0x33, FROM_ABI_8 = 0x41 };
    return image[OS_ABI] == (cubin->abi < 8 ? UP_TO_ABI_7 : FROM_ABI_8) &&
           runs(KR_IMAGE_CUBIN, cubin->arch, device);
}

/* An older driver does not read machine code of a later major version of CUDA (470 of 12.3's:
 * triton-lang/triton#2971); of the newest that is played, what is asked of a real one is known better. */
static bool is_of_its_time(const kr__cubin *cubin)
{
    enum { NEWEST_MAJOR = 13 };
    const int major = sc_driver_version() / 1000;
    return major >= NEWEST_MAJOR || cubin->toolkit / 1000 <= major;
}

/* ---- loading ---- */

typedef struct loader {
    sc_context *context;
    const sc_jit *jit;
    sc_module *module;
    bool for_cubin; /* PTX stands for machine code, which no driver would hold to its ISA */
} loader;

static CUresult problem_code(const ptx_problem *problem)
{
    switch (problem->kind) {
    case PTX_PROBLEM_VERSION:
        return CUDA_ERROR_UNSUPPORTED_PTX_VERSION;
    case PTX_PROBLEM_MEMORY:
        return CUDA_ERROR_OUT_OF_MEMORY;
    default:
        return CUDA_ERROR_INVALID_PTX;
    }
}

static sc_device_limits limits_of(const sc_context *context)
{
    const sc_chip *chip = context->device->chip;
    return (sc_device_limits){
        .ordinal = (unsigned)context->device->ordinal,
        .cc = chip->cc,
        .multiprocessors = chip->multiprocessors,
        .max_threads_per_multiprocessor = chip->threads_per_multiprocessor,
        .max_blocks_per_multiprocessor = chip->blocks_per_multiprocessor,
        .registers_per_multiprocessor = 65536,
        .shared_bytes_per_multiprocessor = chip->shared_per_multiprocessor,
        .reserved_shared_bytes_per_block = chip->shared_reserved,
        .clock_khz = chip->clock_khz,
    };
}

/* Legal PTX that softcuda cannot do is said aloud: the JIT log alone would often be lost. */
static CUresult refuse_ptx(const loader *load, const ptx_problem *problem)
{
    const char *log = problem->log.data ? problem->log.data : "";
    sc_jit_report(load->jit, NULL, log);
    if (problem->kind == PTX_PROBLEM_UNSUPPORTED)
        sc_say("not supported: %.*s", (int)strcspn(log, "\n"), log);
    return problem_code(problem);
}

static CUresult refuse_target(const loader *load, const ptx_module *ptx)
{
    char text[160];
    kr__format(text, sizeof text, "ptxas fatal   : Module of %d-bit code for target %s cannot run on sm_%d",
               ptx->address_bits, ptx->target, load->context->device->chip->cc);
    sc_jit_report(load->jit, NULL, text);
    return CUDA_ERROR_INVALID_PTX;
}

static bool ptx_runs(const ptx_module *ptx, const sc_device *device)
{
    return ptx->address_bits == 64 && runs(KR_IMAGE_PTX, cc_of(ptx->sm, ptx->suffix), device);
}

static CUresult read_ptx(const loader *load, const char *text, size_t bytes, ptx_module **ret_ptx)
{
    ptx_problem problem = {0};
    ptx_module *ptx = NULL;
    CUresult result = CUDA_SUCCESS;
    const ptx_options options = {.max_isa = load->for_cubin ? 0 : sc_driver_isa(), .linked = load->for_cubin};
    if (!kr__ptx_parse(text, bytes, &options, &ptx, &problem))
        result = refuse_ptx(load, &problem);
    else if (!ptx_runs(ptx, load->context->device))
        result = refuse_target(load, ptx);
    if (result)
        kr__ptx_module_free(&ptx);
    else
        *ret_ptx = ptx;
    kr__text_free(&problem.log);
    return result;
}

/* Code to execute, of PTX. */
static CUresult load_ptx(const loader *load, const char *text, size_t bytes)
{
    sc_module *module = load->module;
    if (!load->for_cubin)
        TRY(sc_jit_refused());
    TRY(read_ptx(load, text, bytes, &module->ptx));
    TRY(sc_jit_refusal(load->jit, module->ptx->sm, load->context->device->chip->cc));
    ptx_problem problem = {0};
    sc_device_limits limits = limits_of(load->context);
    CUresult result = CUDA_SUCCESS;
    if (!sc_program_create(module->ptx, load->context->device->memory, &limits, &module->program, &problem))
        result = refuse_ptx(load, &problem);
    kr__text_free(&problem.log);
    return result;
}

/* Beside a cubin, PTX that cannot be executed is no reason not to load; launching then says why. */
static CUresult refuse_ptx_of_cubin(const loader *load, CUresult why, const char *log)
{
    sc_module *module = load->module;
    kr__format(module->refusal, sizeof module->refusal, "its PTX was refused (%d): %s", (int)why, log);
    return CUDA_SUCCESS;
}

static void load_ptx_of_cubin(const loader *load, const char *text, size_t bytes)
{
    char log[400] = "";
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {log, (void *)(uintptr_t)sizeof log};
    loader quiet = *load;
    quiet.for_cubin = true;
    quiet.jit = &(sc_jit){2, options, values};
    CUresult result = load_ptx(&quiet, text, bytes);
    if (result)
        refuse_ptx_of_cubin(load, result, log);
}

static CUresult corrupt_or_memory(kr_status status)
{
    return status == KR_OUT_OF_HOST_MEMORY ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_INVALID_IMAGE;
}

/* What is packed in a fatbin, as it was: malloc'ed. */
static CUresult unpack(const kr__fatbin_entry *entry, char **ret_data, size_t *ret_bytes)
{
    const kr_status status = kr__fatbin_unpack(entry, ret_data, ret_bytes, NULL);
    return status == KR_CORRUPT              ? CUDA_ERROR_UNKNOWN
           : status == KR_OUT_OF_HOST_MEMORY ? CUDA_ERROR_OUT_OF_MEMORY
                                             : CUDA_SUCCESS;
}

/* A function of its own, as the next reader is: an error is large, and a caller's stack may be small. */
static __attribute__((noinline)) CUresult read_cubin(const loader *load, const void *image, size_t bytes)
{
    kr_error err;
    kr_status status = kr__cubin_read(image, bytes, &load->module->cubin, &err);
    if (!status)
        return CUDA_SUCCESS;
    sc_jit_report(load->jit, NULL, err.message);
    return corrupt_or_memory(status);
}

static __attribute__((noinline)) CUresult read_fatbin(const loader *load, const void *image, size_t bytes,
                                                      kr__fatbin **ret_fatbin)
{
    kr_error err;
    kr_status status = kr__fatbin_read(image, bytes, ret_fatbin, &err);
    if (!status)
        return CUDA_SUCCESS;
    sc_jit_report(load->jit, NULL, err.message);
    return corrupt_or_memory(status);
}

static CUresult load_cubin(const loader *load, const void *image, size_t bytes)
{
    sc_module *module = load->module;
    TRY(read_cubin(load, image, bytes));
    if (!is_of_its_time(module->cubin))
        return CUDA_ERROR_INVALID_IMAGE;
    if (!cubin_runs(image, module->cubin, load->context->device))
        return CUDA_ERROR_NO_BINARY_FOR_GPU;
    const void *ptx;
    size_t ptx_bytes;
    if (kr__cubin_section(image, bytes, SC_PTX_SECTION, &ptx, &ptx_bytes))
        load_ptx_of_cubin(load, ptx, ptx_bytes);
    else
        kr__format(module->refusal, sizeof module->refusal,
                   "it is machine code alone; load a fatbin that holds its PTX too");
    return CUDA_SUCCESS;
}

/* The best entry of a kind for the device, or NULL. */
static const kr__fatbin_entry *choose(const kr__fatbin *fatbin, kr_image_kind kind, const sc_device *device)
{
    const kr__fatbin_entry *best = NULL;
    int best_target = 0;
    for (size_t i = 0; i < fatbin->n_entries; i++) {
        const kr__fatbin_entry *entry = &fatbin->entries[i];
        int target = entry->arch.major * 10 + entry->arch.minor;
        char suffix = entry->arch.suffix;
        if (entry->kind != kind || !runs(kind, entry->arch, device))
            continue;
        /* Of the same level the specialised one. */
        int rank = target * 4 + (suffix == 'a' ? 2 : suffix == 'f' ? 1 : 0);
        if (!best || rank > best_target) {
            best = entry;
            best_target = rank;
        }
    }
    return best;
}

static const kr__fatbin_entry *choose_cubin(const kr__fatbin *fatbin, const sc_device *device)
{
    return sc_jit_is_forced() ? NULL : choose(fatbin, KR_IMAGE_CUBIN, device);
}

static CUresult load_entries(const loader *load, const kr__fatbin *fatbin)
{
    const kr__fatbin_entry *cubin = choose_cubin(fatbin, load->context->device);
    const kr__fatbin_entry *ptx = choose(fatbin, KR_IMAGE_PTX, load->context->device);
    if (!cubin && !ptx)
        return CUDA_ERROR_NO_BINARY_FOR_GPU;
    CUresult result = CUDA_SUCCESS;
    char *data;
    size_t bytes;
    if (cubin) {
        TRY(unpack(cubin, &data, &bytes));
        result = load_cubin(load, data, bytes);
        if (result == CUDA_ERROR_NO_BINARY_FOR_GPU)
            result = CUDA_ERROR_INVALID_SOURCE; /* the entry says that it is for this one */
        free(data);
    }
    if (result || !ptx || load->module->program)
        return result;
    result = unpack(ptx, &data, &bytes);
    if (result)
        return cubin ? refuse_ptx_of_cubin(load, result, "it does not unpack") : result;
    if (cubin)
        load_ptx_of_cubin(load, data, bytes);
    else
        result = load_ptx(load, data, bytes);
    free(data);
    return result;
}

static CUresult load_fatbin(const loader *load, const void *image, size_t bytes)
{
    kr__fatbin *fatbin;
    TRY(read_fatbin(load, image, bytes, &fatbin));
    CUresult result = load_entries(load, fatbin);
    kr__fatbin_free(&fatbin);
    return result;
}

size_t sc_mapped_bytes(const void *address, bool writable)
{
    FILE *maps = fopen("/proc/self/maps", "re");
    if (!maps)
        return SIZE_MAX / 2;
    char line[512], mode[5];
    unsigned long start, end, at = (unsigned long)(uintptr_t)address, reached = at;
    while (fgets(line, sizeof line, maps))
        if (sscanf(line, "%lx-%lx %4s", &start, &end, mode) == 3 && start <= reached && reached < end &&
            mode[0] == 'r' && (!writable || mode[1] == 'w'))
            reached = end;
    fclose(maps);
    return reached - at;
}

/* A pointer alone says nothing of its size: what can be read bounds it. */
static CUresult load_image(const loader *load, const void *image, size_t bytes)
{
    size_t readable = bytes ? bytes : sc_mapped_bytes(image, false);
    const void *wrapped = readable >= 24 ? kr__fatbin_unwrap(image) : NULL;
    if (wrapped) {
        image = wrapped;
        bytes = 0;
        readable = sc_mapped_bytes(image, false);
    }
    size_t own = kr__image_bytes(image, readable);
    bytes = bytes ? bytes : own;
    kr_image_kind kind;
    if (!own || kr__image_kind(image, bytes, &kind, NULL)) {
        sc_jit_report(load->jit, NULL, "error   : Binary format for key='0', ident='' is not recognized");
        return CUDA_ERROR_INVALID_IMAGE;
    }
    switch (kind) {
    case KR_IMAGE_PTX:
        return load_ptx(load, image, bytes);
    case KR_IMAGE_CUBIN:
        return load_cubin(load, image, bytes);
    case KR_IMAGE_FATBIN:
        return load_fatbin(load, image, bytes);
    default:
        return CUDA_ERROR_INVALID_IMAGE;
    }
}

/* ---- functions of a module ---- */

static void finish_function(sc_object *object)
{
    sc_function *function = (sc_function *)object;
    free(function->params);
    free(function->old);
    free(function);
}

static int threads_for_registers(int registers)
{
    enum { FILE_REGISTERS = 65536, WARP = 32, UNIT = 256, MOST = 1024 };
    int a_warp = (registers * WARP + UNIT - 1) / UNIT * UNIT;
    int threads = a_warp ? FILE_REGISTERS / a_warp / 4 * 4 * WARP : MOST;
    return threads < MOST ? threads : MOST;
}

static void limit_threads(sc_function *function, int registers, uint64_t bound)
{
    int threads = threads_for_registers(registers);
    function->registers = registers;
    function->bound = bound && bound < 1024 ? (int)bound : 1024;
    function->max_threads = function->bound < threads ? function->bound : threads;
}

static void describe_by_cubin(sc_function *function, const kr__cubin *cubin, const kr_image_kernel *kernel)
{
    const unsigned *limit = kernel->max_threads;
    limit_threads(function, kernel->registers,
                  (uint64_t)limit[0] * (limit[1] ? limit[1] : 1) * (limit[2] ? limit[2] : 1));
    function->shared_bytes = kernel->shared_bytes;
    function->const_bytes = cubin->const_bytes;
    function->local_bytes = kernel->local_bytes;
    memcpy(function->reqntid, kernel->required_threads, sizeof function->reqntid);
    function->ptx_version = cubin->virtual_arch;
    function->binary_version = cubin->arch.major * 10 + cubin->arch.minor;
    function->n_params = kernel->n_params;
    function->param_bytes = kernel->param_bytes;
    for (size_t i = 0; i < kernel->n_params; i++)
        function->params[i] = kernel->params[i];
}

enum { SHARED_UNIT = 16 };

static void describe_by_program(sc_function *function, const loader *load, const sc_kernel_facts *facts)
{
    limit_threads(function, sc_jit_registers(load->jit, facts->registers),
                  facts->reqntid[0] ? 0 : (uint64_t)facts->max_threads);
    function->shared_bytes = (facts->static_shared_bytes + SHARED_UNIT - 1) / SHARED_UNIT * SHARED_UNIT;
    function->const_bytes = facts->const_bytes;
    function->local_bytes = facts->local_bytes;
    memcpy(function->reqntid, facts->reqntid, sizeof function->reqntid);
    function->ptx_version = function->module->ptx->sm;
    function->binary_version = load->context->device->chip->cc;
    function->n_params = facts->n_params;
    function->param_bytes = facts->param_bytes;
    for (size_t i = 0; i < facts->n_params; i++)
        function->params[i] =
            (kr_image_param){facts->function->params[i]->offset, facts->function->params[i]->bytes};
}

/* A machine-code kernel and the PTX it is executed from must agree on the parameters. */
static bool same_params(const kr_image_kernel *kernel, const sc_kernel_facts *facts)
{
    if (kernel->n_params != facts->n_params)
        return false;
    for (size_t i = 0; i < kernel->n_params; i++)
        if (kernel->params[i].offset != facts->function->params[i]->offset ||
            kernel->params[i].bytes != facts->function->params[i]->bytes)
            return false;
    return true;
}

/* Whether functions are loaded when they are first asked for. It shows in cuFuncIsLoaded alone. */
static bool is_lazy(void)
{
    const char *mode = getenv("CUDA_MODULE_LOADING");
    return !mode || strcmp(mode, "EAGER") != 0;
}

/* Does a relocatable cubin's kernel ask for what only a linker could give? */
static bool is_open(const kr__cubin *cubin, const kr_image_kernel *kernel)
{
    const size_t number = (size_t)(kernel - cubin->kernels);
    for (size_t i = 0; i < cubin->n_references; i++)
        if (cubin->references[i].kernel == number && !sc_is_builtin(cubin->references[i].function))
            return true;
    return false;
}

static CUresult add_function(const loader *load, const kr_image_kernel *kernel, const sc_kernel_facts *facts,
                             int index)
{
    sc_module *module = load->module;
    sc_function *function = sc_object_create(sizeof *function, SC_FUNCTION, load->context, finish_function);
    size_t n_params = kernel ? kernel->n_params : facts->n_params;
    if (function)
        function->params = calloc(n_params + 1, sizeof *function->params);
    if (!function || !function->params) {
        sc_object_discard(function);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    function->module = module;
    function->index = kernel && facts && !same_params(kernel, facts) ? -1 : index;
    function->is_open = kernel && is_open(module->cubin, kernel);
    function->name = kernel ? kernel->name : facts->name;
    if (kernel)
        describe_by_cubin(function, module->cubin, kernel);
    else
        describe_by_program(function, load, facts);
    enum { DEFAULT_SHARED = 48 * 1024 };
    function->max_dynamic_shared =
        function->shared_bytes < DEFAULT_SHARED ? DEFAULT_SHARED - (int)function->shared_bytes : 0;
    function->carveout = -1;
    function->loaded = !is_lazy();
    if (!sc_object_publish(function, (uintptr_t)function)) {
        sc_release(function);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    module->functions[module->n_functions++] = function;
    return CUDA_SUCCESS;
}

static CUresult add_functions(const loader *load)
{
    sc_module *module = load->module;
    sc_program *program = module->program;
    size_t n = module->cubin ? module->cubin->n_kernels : sc_program_n_kernels(program);
    module->functions = calloc(n + 1, sizeof(sc_function *));
    if (!module->functions)
        return CUDA_ERROR_OUT_OF_MEMORY;
    for (size_t i = 0; i < n; i++) {
        const kr_image_kernel *kernel = module->cubin ? &module->cubin->kernels[i] : NULL;
        int index = kernel ? (program ? sc_program_find(program, kernel->name) : -1) : (int)i;
        TRY(add_function(load, kernel, index < 0 ? NULL : sc_program_kernel(program, (size_t)index), index));
    }
    return CUDA_SUCCESS;
}

/* ---- modules ---- */

static void end_module(sc_object *object)
{
    sc_module *module = (sc_module *)object;
    for (size_t i = 0; i < module->n_functions; i++)
        sc_object_retract(module->functions[i]);
    for (size_t i = 0; i < module->n_variables; i++)
        sc_object_drop(module->variables[i]);
}

static void finish_module(sc_object *object)
{
    sc_module *module = (sc_module *)object;
    for (size_t i = 0; i < module->n_functions; i++)
        sc_release(module->functions[i]);
    free(module->functions);
    free(module->variables);
    sc_program_destroy(&module->program);
    kr__ptx_module_free(&module->ptx);
    kr__cubin_free(&module->cubin);
    free(module);
}

static bool add_variable(uint64_t address, size_t bytes, void *user)
{
    sc_module *module = user;
    sc_context *context = module->object.context;
    size_t n = module->n_variables;
    sc_block **grown = realloc(module->variables, (n + 1) * sizeof *grown);
    if (!grown)
        return false;
    module->variables = grown;
    const sc_block wish = {
        .kind = SC_BLOCK_VARIABLE, .device = context->device, .context = context, .bytes = bytes};
    bool ok = !sc_block_create(&wish, (void *)(uintptr_t)address, &grown[n]);
    module->n_variables += ok;
    return ok;
}

/* Variables are blocks too: pointers to them can be asked about. */
static CUresult add_variables(sc_module *module)
{
    bool ok = !module->program || sc_program_variables(module->program, add_variable, module);
    return ok ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult sc_module_load(sc_context *context, const void *image, size_t bytes, const sc_jit *jit,
                        struct sc_library *library, sc_module **ret_module)
{
    sc_module *module = sc_object_create(sizeof *module, SC_MODULE, context, finish_module);
    if (!module)
        return CUDA_ERROR_OUT_OF_MEMORY;
    module->object.end = end_module;
    module->library = library;
    loader load = {.context = context, .jit = jit, .module = module};
    CUresult result = load_image(&load, image, bytes);
    if (!result)
        result = add_functions(&load);
    if (!result)
        result = add_variables(module);
    if (!result && !sc_object_publish(module, (uintptr_t)module))
        result = CUDA_ERROR_OUT_OF_MEMORY;
    if (result) {
        sc_release(module);
        return result;
    }
    sc_jit_report(jit, "", "");
    *ret_module = module;
    return CUDA_SUCCESS;
}

/* Launches that are still to run keep the code. */
void sc_module_unload(sc_module *module)
{
    if (!sc_object_retract(module))
        return;
    for (size_t i = 0; i < module->n_functions; i++)
        sc_object_retract(module->functions[i]);
    sc_release(module);
}

CUresult sc_module_file(const char *path, char **ret_data, size_t *ret_bytes)
{
    const size_t most_bytes = INT32_MAX; /* no image is so large */
    kr_error err;
    const kr_status status = kr__file_read_most(path, most_bytes, ret_data, ret_bytes, &err);
    if (status == KR_OK)
        return CUDA_SUCCESS;
    return err.code == EISDIR || err.code == EFBIG || status == KR_OUT_OF_HOST_MEMORY
               ? CUDA_ERROR_OUT_OF_MEMORY
               : CUDA_ERROR_FILE_NOT_FOUND;
}

sc_function *sc_module_function(sc_module *module, const char *name)
{
    for (size_t i = 0; i < module->n_functions; i++)
        if (!module->functions[i]->is_open && strcmp(module->functions[i]->name, name) == 0)
            return module->functions[i];
    return NULL;
}

CUresult sc_module_global(sc_module *module, const char *name, CUdeviceptr *ret_address, size_t *ret_bytes)
{
    uint64_t address;
    size_t bytes;
    if (!module->program || !sc_program_global(module->program, name, &address, &bytes))
        return CUDA_ERROR_NOT_FOUND;
    if (ret_address)
        *ret_address = address;
    if (ret_bytes)
        *ret_bytes = bytes;
    return CUDA_SUCCESS;
}

static CUresult load_data(CUmodule *ret_module, const void *image, size_t bytes, const sc_jit *jit)
{
    sc_context *context;
    sc_module *module;
    TRY(sc_enter(&context));
    if (!ret_module || !image)
        return CUDA_ERROR_INVALID_VALUE;
    TRY(sc_jit_check(jit));
    TRY(sc_module_load(context, image, bytes, jit, NULL, &module));
    *ret_module = (CUmodule)module;
    return CUDA_SUCCESS;
}

API(cuModuleLoadDataEx, CUmodule *module, const void *image, unsigned n, CUjit_option *options, void **values)
{
    return load_data(module, image, 0, &(sc_jit){n, options, values});
}

API(cuModuleLoadData, CUmodule *module, const void *image)
{
    return load_data(module, image, 0, &(sc_jit){0});
}

API(cuModuleLoadFatBinary, CUmodule *module, const void *image)
{
    return load_data(module, image, 0, &(sc_jit){0});
}

API(cuModuleLoad, CUmodule *module, const char *path)
{
    TRY(sc_entered());
    if (!module || !path || !*path)
        return CUDA_ERROR_INVALID_VALUE;
    char *data;
    size_t bytes;
    TRY(sc_module_file(path, &data, &bytes));
    CUresult result = bytes ? load_data(module, data, bytes, &(sc_jit){0}) : CUDA_ERROR_INVALID_IMAGE;
    free(data);
    return result;
}

static sc_module *find_module(CUmodule handle)
{
    return sc_object_find(SC_MODULE, (uintptr_t)handle);
}

API(cuModuleUnload, CUmodule handle)
{
    TRY(sc_working());
    sc_module *module = find_module(handle);
    if (!module)
        return CUDA_ERROR_INVALID_HANDLE;
    if (module->library)
        return CUDA_ERROR_NOT_PERMITTED;
    TRY(sc_stream_permitted());
    sc_module_unload(module);
    return CUDA_SUCCESS;
}

API(cuModuleGetFunction, CUfunction *ret_function, CUmodule handle, const char *name)
{
    TRY(sc_initialized());
    if (!ret_function || !name || !*name)
        return CUDA_ERROR_INVALID_VALUE;
    sc_module *module = find_module(handle);
    if (!module)
        return CUDA_ERROR_INVALID_HANDLE;
    TRY(sc_working());
    sc_function *function = sc_module_function(module, name);
    if (!function)
        return CUDA_ERROR_NOT_FOUND;
    function->loaded = true;
    *ret_function = (CUfunction)function;
    return CUDA_SUCCESS;
}

API(cuModuleGetGlobal_v2, CUdeviceptr *address, size_t *bytes, CUmodule handle, const char *name)
{
    TRY(sc_working());
    if (!name || !*name || (!address && !bytes))
        return CUDA_ERROR_INVALID_VALUE;
    sc_module *module = find_module(handle);
    if (!module)
        return CUDA_ERROR_INVALID_HANDLE;
    if (sc_module_function(module, name))
        return CUDA_ERROR_INVALID_VALUE;
    return sc_module_global(module, name, address, bytes);
}

API(cuModuleGetFunctionCount, unsigned *n, CUmodule handle)
{
    TRY(sc_working());
    sc_module *module = find_module(handle);
    if (!module)
        return CUDA_ERROR_INVALID_HANDLE;
    if (!n)
        return CUDA_ERROR_INVALID_VALUE;
    *n = (unsigned)module->n_functions;
    return CUDA_SUCCESS;
}

API(cuModuleEnumerateFunctions, CUfunction *functions, unsigned n, CUmodule handle)
{
    TRY(sc_working());
    sc_module *module = find_module(handle);
    if (!module)
        return CUDA_ERROR_INVALID_HANDLE;
    if (!functions)
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < n && i < module->n_functions; i++)
        functions[i] = (CUfunction)module->functions[i];
    return CUDA_SUCCESS;
}

API(cuModuleGetLoadingMode, int *mode)
{
    enum { EAGER = 1, LAZY = 2 };
    TRY(sc_initialized());
    if (!mode)
        return CUDA_ERROR_INVALID_VALUE;
    *mode = is_lazy() ? LAZY : EAGER;
    return CUDA_SUCCESS;
}

/* ---- names alone ---- */

static bool ptx_runs_somewhere(const ptx_module *ptx)
{
    for (int i = 0; i < sc_n_devices; i++)
        if (ptx_runs(ptx, &sc_devices[i]))
            return true;
    return false;
}

static CUresult names_of_ptx(const char *text, size_t bytes, kr__text *names, size_t *n)
{
    ptx_problem problem = {0};
    ptx_module *ptx;
    CUresult result = CUDA_SUCCESS;
    if (!kr__ptx_parse(text, bytes, &(ptx_options){.max_isa = sc_driver_isa()}, &ptx, &problem)) {
        result = problem_code(&problem);
    } else {
        for (const ptx_function *f = ptx->functions; f; f = f->next)
            if (f->is_entry && ++*n)
                kr__text_add_bytes(names, f->name, strlen(f->name) + 1);
        result = ptx_runs_somewhere(ptx) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_PTX;
        kr__ptx_module_free(&ptx);
    }
    kr__text_free(&problem.log);
    return result;
}

/* `alone`: no fatbin says which machine it is for. */
static CUresult names_of_cubin(const void *image, size_t bytes, bool alone, kr__text *names, size_t *n)
{
    kr__cubin *cubin;
    if (kr__cubin_read(image, bytes, &cubin, NULL))
        return CUDA_ERROR_INVALID_IMAGE;
    bool runs_here = !alone;
    for (int i = 0; i < sc_n_devices && !runs_here; i++)
        runs_here = cubin_runs(image, cubin, &sc_devices[i]);
    for (size_t i = 0; i < cubin->n_kernels && runs_here; i++, ++*n)
        kr__text_add_bytes(names, cubin->kernels[i].name, strlen(cubin->kernels[i].name) + 1);
    kr__cubin_free(&cubin);
    return runs_here ? CUDA_SUCCESS : CUDA_ERROR_NO_BINARY_FOR_GPU;
}

/* The entry that the first device takes which takes one, or NULL. */
static const kr__fatbin_entry *choose_for_any(const kr__fatbin *fatbin)
{
    const kr__fatbin_entry *found = NULL;
    for (int i = 0; i < sc_n_devices && !found; i++)
        if (!(found = choose_cubin(fatbin, &sc_devices[i])))
            found = choose(fatbin, KR_IMAGE_PTX, &sc_devices[i]);
    return found;
}

static CUresult names_of_entries(const kr__fatbin *fatbin, kr__text *names, size_t *n)
{
    char *data;
    size_t bytes;
    const kr__fatbin_entry *entry = choose_for_any(fatbin);
    if (!entry)
        return CUDA_ERROR_NO_BINARY_FOR_GPU;
    TRY(unpack(entry, &data, &bytes));
    CUresult result = entry->kind == KR_IMAGE_PTX ? names_of_ptx(data, bytes, names, n)
                                                  : names_of_cubin(data, bytes, false, names, n);
    free(data);
    return result;
}

/* Of a library's image the driver looks early at one thing alone: that the cubin it would take is one. */
CUresult sc_image_check(const void *image, size_t bytes)
{
    kr_image_kind kind;
    kr__fatbin *fatbin;
    if (kr__image_kind(image, bytes, &kind, NULL) || kind != KR_IMAGE_FATBIN ||
        kr__fatbin_read(image, bytes, &fatbin, NULL))
        return CUDA_SUCCESS;
    const kr__fatbin_entry *entry = choose_for_any(fatbin);
    const bool fails =
        entry && entry->kind == KR_IMAGE_CUBIN && entry->compression == KR_STORED &&
        (kr__image_kind(entry->payload, entry->payload_bytes, &kind, NULL) || kind != KR_IMAGE_CUBIN);
    kr__fatbin_free(&fatbin);
    return fails ? CUDA_ERROR_INVALID_IMAGE : CUDA_SUCCESS;
}

static CUresult names_of(const void *image, size_t bytes, kr__text *names, size_t *n)
{
    kr_image_kind kind;
    if (kr__image_kind(image, bytes, &kind, NULL))
        return CUDA_ERROR_INVALID_IMAGE;
    if (kind == KR_IMAGE_PTX)
        return names_of_ptx(image, bytes, names, n);
    if (kind == KR_IMAGE_CUBIN)
        return names_of_cubin(image, bytes, true, names, n);
    kr__fatbin *fatbin;
    if (kind != KR_IMAGE_FATBIN || kr__fatbin_read(image, bytes, &fatbin, NULL))
        return CUDA_ERROR_INVALID_IMAGE;
    CUresult result = names_of_entries(fatbin, names, n);
    kr__fatbin_free(&fatbin);
    return result;
}

CUresult sc_image_kernels(const void *image, size_t bytes, char ***ret_names, size_t *ret_n)
{
    kr__text text = {0};
    size_t n = 0;
    CUresult result = names_of(image, bytes, &text, &n);
    size_t pointers = (n + 1) * sizeof(char *);
    char **names = result || text.failed ? NULL : malloc(pointers + text.bytes);
    if (!result && !names)
        result = CUDA_ERROR_OUT_OF_MEMORY;
    if (!result) {
        char *at = (char *)names + pointers;
        if (text.bytes)
            memcpy(at, text.data, text.bytes);
        for (size_t i = 0; i < n; i++, at += strlen(at) + 1)
            names[i] = at;
        *ret_names = names;
        *ret_n = n;
    }
    kr__text_free(&text);
    return result;
}
