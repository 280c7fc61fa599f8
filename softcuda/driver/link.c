/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Linking: PTX texts become one module. The result is a cubin that tells of its kernels as any cubin does and
 * carries the joined PTX, so that it can be kept in a file and loaded again.
 */
#include "softcuda/driver/driver.h"

#include <stdlib.h>
#include <string.h>

typedef struct sc_link {
    sc_object object;
    pthread_mutex_t lock; /* guards all that follows */
    sc_jit jit;
    kr__text ptx; /* of the inputs, one after another */
    struct link_symbol *symbols;
    bool completed;
    CUresult failed; /* an input that cannot be linked, or a name that does not resolve: nothing mends it */
    kr__text cubin;  /* when complete */
} sc_link;

/* A function that an input defines or asks for. */
typedef struct link_symbol {
    struct link_symbol *next;
    bool defined, strong;
    char *input; /* the input's name, after the function's */
    char name[];
} link_symbol;

static void finish_link(sc_object *object)
{
    sc_link *link = (sc_link *)object;
    for (link_symbol *next, *s = link->symbols; s; s = next) {
        next = s->next;
        free(s);
    }
    kr__text_free(&link->ptx);
    kr__text_free(&link->cubin);
    pthread_mutex_destroy(&link->lock);
    free(link);
}

/* ---- inputs ---- */

static const link_symbol *find_defined(const sc_link *link, const char *name)
{
    for (const link_symbol *s = link->symbols; s; s = s->next)
        if (s->defined && strcmp(s->name, name) == 0)
            return s;
    return NULL;
}

static const link_symbol *find_strong(const sc_link *link, const char *name)
{
    for (const link_symbol *s = link->symbols; s; s = s->next)
        if (s->strong && strcmp(s->name, name) == 0)
            return s;
    return NULL;
}

/* The code for a name that is defined twice or not at all, with its line in the log. */
static CUresult fail_name(sc_link *link, const char *format, const char *name, const char *input,
                          const char *first)
{
    kr__text line = {0};
    kr__text_add(&line, format, name, input, first);
    sc_jit_report(&link->jit, NULL, line.data ? line.data : "");
    kr__text_free(&line);
    return link->failed = CUDA_ERROR_INVALID_SOURCE;
}

static CUresult add_symbols(sc_link *link, const ptx_module *ptx, const char *input)
{
    for (const ptx_function *f = ptx->functions; f; f = f->next) {
        const bool defined = kr__ptx_called(f)->has_body, strong = defined && f->linkage == PTX_LINK_VISIBLE;
        const link_symbol *other = strong ? find_strong(link, f->name) : NULL;
        if (f->linkage == PTX_LINK_NONE)
            continue; /* its own text's alone */
        if (other)
            return fail_name(link, "error   : Multiple definition of '%s' in '%s', first defined in '%s'",
                             f->name, input, other->input);
        size_t bytes = strlen(f->name) + 1;
        link_symbol *symbol = calloc(1, sizeof *symbol + bytes + strlen(input) + 1);
        if (!symbol)
            return CUDA_ERROR_OUT_OF_MEMORY;
        memcpy(symbol->name, f->name, bytes);
        symbol->input = symbol->name + bytes;
        memcpy(symbol->input, input, strlen(input) + 1);
        symbol->defined = defined;
        symbol->strong = strong;
        symbol->next = link->symbols;
        link->symbols = symbol;
    }
    return CUDA_SUCCESS;
}

/* The text must be PTX by itself; what it leaves open is judged when the link is complete. */
static CUresult add_ptx(sc_link *link, const char *text, size_t bytes, const char *name, const sc_jit *jit)
{
    ptx_problem problem = {0};
    ptx_module *ptx = NULL;
    CUresult result = CUDA_SUCCESS;
    bytes = strnlen(text, bytes);
    if (!kr__ptx_parse(text, bytes, &(ptx_options){.max_isa = sc_driver_isa()}, &ptx, &problem)) {
        result = problem.kind == PTX_PROBLEM_NOT_PTX   ? CUDA_ERROR_INVALID_IMAGE
                 : problem.kind == PTX_PROBLEM_VERSION ? CUDA_ERROR_UNSUPPORTED_PTX_VERSION
                                                       : CUDA_ERROR_INVALID_PTX;
        sc_jit_report(jit->n ? jit : &link->jit, NULL, problem.log.data);
    } else if (!(result = sc_jit_refusal(&link->jit, ptx->sm, 0)) &&
               !(result = add_symbols(link, ptx, name))) {
        kr__text_add_bytes(&link->ptx, text, bytes);
        kr__text_add_bytes(&link->ptx, "\n", 1);
        if (link->ptx.failed)
            result = CUDA_ERROR_OUT_OF_MEMORY;
    }
    kr__ptx_module_free(&ptx);
    kr__text_free(&problem.log);
    return result;
}

static bool is_linked(const void *image, size_t bytes)
{
    kr__cubin *cubin;
    if (kr__cubin_read(image, bytes, &cubin, NULL))
        return false;
    const bool linked = cubin->linked;
    kr__cubin_free(&cubin);
    return linked;
}

/* What is linked is not linked again, and what a compiler makes for a linker cannot be here. */
static CUresult add_cubin(const void *image, size_t bytes)
{
    kr_image_kind kind;
    if (kr__image_kind(image, bytes, &kind, NULL) || kind != KR_IMAGE_CUBIN)
        return CUDA_ERROR_INVALID_IMAGE;
    return is_linked(image, bytes) ? CUDA_ERROR_NO_BINARY_FOR_GPU : sc_lacks("linking machine code");
}

static CUresult add_fatbin(sc_link *link, const void *image, size_t bytes, const char *name,
                           const sc_jit *jit)
{
    kr__fatbin *fatbin;
    if (kr__fatbin_read(image, bytes, &fatbin, NULL))
        return CUDA_ERROR_INVALID_IMAGE;
    const kr__fatbin_entry *best = NULL;
    int device = link->object.context->device->chip->cc, best_target = 0;
    for (size_t i = 0; i < fatbin->n_entries; i++) {
        int target = fatbin->entries[i].arch.major * 10 + fatbin->entries[i].arch.minor;
        if (fatbin->entries[i].kind == KR_IMAGE_PTX && target <= device && target > best_target) {
            best = &fatbin->entries[i];
            best_target = target;
        }
    }
    CUresult result = best ? CUDA_SUCCESS : CUDA_ERROR_NO_BINARY_FOR_GPU;
    char *text;
    size_t n;
    if (best && kr__fatbin_unpack(best, &text, &n, NULL)) {
        result = CUDA_ERROR_INVALID_IMAGE;
    } else if (best) {
        result = add_ptx(link, text, n, name, jit);
        free(text);
    }
    kr__fatbin_free(&fatbin);
    return result;
}

/* What kernels ask of libcudadevrt.a for grid.sync(). The library has machine code, so here it is in PTX: the
 * handle of scope 1, the grid, is the workspace of a cooperative launch; without one the answer is 999.
 * Arrivals are counted in its third word and ended barriers in its fourth; the first two are what nvcc's own
 * grid.sync() works on. */
static const char device_runtime[] =
    ".version 6.0\n.target sm_60\n.address_size 64\n"
    ".weak .func (.param .b64 handle) cudaCGGetIntrinsicHandle(.param .b32 scope)\n"
    "{\n"
    "    .reg .b32 %scope, %high, %low; .reg .b64 %handle; .reg .pred %none;\n"
    "    ld.param.b32 %scope, [scope];\n"
    "    mov.b32 %high, %envreg1;\n"
    "    mov.b32 %low, %envreg2;\n"
    "    mov.b64 %handle, {%low, %high};\n"
    "    setp.ne.s32 %none, %scope, 1;\n"
    "    @%none mov.b64 %handle, 0;\n"
    "    st.param.b64 [handle], %handle;\n"
    "    ret;\n"
    "}\n"
    ".weak .func (.param .b32 result) cudaCGSynchronize(.param .b64 handle, .param .b32 flags)\n"
    "{\n"
    "    .reg .b64 %at; .reg .b32 %x, %y, %z, %blocks, %ended, %now; .reg .pred %skip, %waits;\n"
    "    ld.param.b64 %at, [handle];\n"
    "    setp.eq.s64 %skip, %at, 0;\n"
    "    mov.b32 %now, 999;\n"
    "    @%skip bra END;\n"
    "    bar.sync 0;\n"
    "    mov.u32 %x, %tid.x;\n"
    "    mov.u32 %y, %tid.y;\n"
    "    mov.u32 %z, %tid.z;\n"
    "    or.b32 %x, %x, %y;\n"
    "    or.b32 %x, %x, %z;\n"
    "    setp.ne.s32 %skip, %x, 0;\n"
    "    @%skip bra TOGETHER;\n"
    "    mov.u32 %x, %nctaid.x;\n"
    "    mov.u32 %y, %nctaid.y;\n"
    "    mov.u32 %z, %nctaid.z;\n"
    "    mul.lo.u32 %blocks, %x, %y;\n"
    "    mul.lo.u32 %blocks, %blocks, %z;\n"
    "    ld.volatile.u32 %ended, [%at+12];\n"
    "    membar.gl;\n"
    "    atom.add.u32 %x, [%at+8], 1;\n"
    "    add.u32 %x, %x, 1;\n"
    "    setp.ne.u32 %waits, %x, %blocks;\n"
    "    @%waits bra WAIT;\n"
    "    st.volatile.u32 [%at+8], 0;\n"
    "    membar.gl;\n"
    "    add.u32 %now, %ended, 1;\n"
    "    st.volatile.u32 [%at+12], %now;\n"
    "WAIT:\n"
    "    ld.volatile.u32 %now, [%at+12];\n"
    "    setp.eq.u32 %waits, %now, %ended;\n"
    "    @%waits bra WAIT;\n"
    "    membar.gl;\n"
    "TOGETHER:\n"
    "    bar.sync 0;\n"
    "    mov.b32 %now, 0;\n"
    "END:\n"
    "    st.param.b32 [result], %now;\n"
    "    ret;\n"
    "}\n";

static CUresult add_input(sc_link *link, CUjitInputType type, const void *data, size_t bytes,
                          const char *name, const sc_jit *jit)
{
    switch (type) {
    case CU_JIT_INPUT_PTX:
        return add_ptx(link, data, bytes, name, jit);
    case CU_JIT_INPUT_CUBIN:
        return add_cubin(data, bytes);
    case CU_JIT_INPUT_FATBINARY:
        return add_fatbin(link, data, bytes, name, jit);
    case CU_JIT_INPUT_LIBRARY: /* gives what the others ask for; what then is missing is told at the end */
        return add_ptx(link, device_runtime, sizeof device_runtime, name, jit);
    case CU_JIT_INPUT_OBJECT:
    case CU_JIT_INPUT_NVVM:
        return sc_lacks("linking objects and NVVM IR");
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

/* ---- the cubin ---- */

enum { SHT_PROGBITS = 1, SHT_SYMTAB = 2, SHT_STRTAB = 3, SHT_NOBITS = 8, SHT_NV_INFO = 0x70000000 };
enum { SECTION_NAMES = 1, SYMBOL_NAMES = 2, SYMBOLS = 3, ELF_HEADER = 64 };

/* An ELF under construction. The first sections are null, names of sections, names of symbols, symbols. */
typedef struct elf {
    kr__text body, headers, section_names, symbol_names, symbols;
    unsigned n_sections, n_symbols;
} elf;

static void add_number(kr__text *to, uint64_t value, size_t bytes)
{
    kr__text_add_bytes(to, (const char *)&value, bytes);
}

static uint32_t add_name(kr__text *table, const char *first, const char *second)
{
    size_t at = table->bytes;
    kr__text_add_bytes(table, first, strlen(first));
    kr__text_add_bytes(table, second, strlen(second) + 1);
    return (uint32_t)at;
}

static void add_header(elf *e, uint32_t name, uint32_t type, uint64_t offset, uint64_t bytes, uint32_t link,
                       uint32_t info)
{
    enum { ALLOC = 2 };
    add_number(&e->headers, name, 4);
    add_number(&e->headers, type, 4);
    add_number(&e->headers, type == SHT_NOBITS ? ALLOC : 0, 8);
    add_number(&e->headers, 0, 8);
    add_number(&e->headers, offset, 8);
    add_number(&e->headers, bytes, 8);
    add_number(&e->headers, link, 4);
    add_number(&e->headers, info, 4);
    add_number(&e->headers, 16, 8);
    add_number(&e->headers, type == SHT_SYMTAB ? 24 : 0, 8);
    e->n_sections++;
}

static unsigned add_section(elf *e, const char *first, const char *second, uint32_t type,
                            const kr__text *data, uint64_t bytes)
{
    while (e->body.bytes % 16)
        add_number(&e->body, 0, 1);
    add_header(e, add_name(&e->section_names, first, second), type, ELF_HEADER + e->body.bytes, bytes,
               type == SHT_SYMTAB ? SYMBOL_NAMES : 0, type == SHT_SYMTAB ? 1 : 0);
    if (data && data->bytes)
        kr__text_add_bytes(&e->body, data->data, data->bytes);
    return e->n_sections - 1;
}

static void add_symbol(elf *e, const char *name, unsigned section, uint64_t bytes)
{
    enum { GLOBAL_FUNCTION = 0x12, ENTRY = 0x10 };
    add_number(&e->symbols, add_name(&e->symbol_names, "", name), 4);
    add_number(&e->symbols, GLOBAL_FUNCTION, 1);
    add_number(&e->symbols, ENTRY, 1);
    add_number(&e->symbols, section, 2);
    add_number(&e->symbols, 0, 8);
    add_number(&e->symbols, bytes, 8);
    e->n_symbols++;
}

/* Records of .nv.info; see ptx/image/cubin.c for the numbers. */
static void add_record(kr__text *info, unsigned attribute, const uint32_t *words, unsigned n)
{
    add_number(info, 4, 1);
    add_number(info, attribute, 1);
    add_number(info, 4 * n, 2);
    kr__text_add_bytes(info, (const char *)words, 4 * n);
}

static void add_kernel(elf *e, const sc_jit *jit, const sc_kernel_facts *facts, kr__text *module_info)
{
    enum { CODE_BYTES = 16, RESERVED_SHARED = 0x400 };
    static const char no_code[CODE_BYTES];
    kr__text code = {0}, info = {0};
    kr__text_add_bytes(&code, no_code, sizeof no_code);
    unsigned section = add_section(e, ".text.", facts->name, SHT_PROGBITS, &code, CODE_BYTES);
    add_record(module_info, 0x2f,
               (uint32_t[]){e->n_symbols, (uint32_t)sc_jit_registers(jit, facts->registers)}, 2);
    add_record(module_info, 0x11, (uint32_t[]){e->n_symbols, (uint32_t)facts->local_bytes}, 2);
    add_symbol(e, facts->name, section, CODE_BYTES);
    for (size_t i = facts->n_params; i-- > 0;) {
        const ptx_variable *param = facts->function->params[i];
        add_record(&info, 0x45,
                   (uint32_t[]){0, (uint32_t)i | (uint32_t)param->offset << 16, (uint32_t)param->bytes}, 3);
    }
    add_number(&info, 3 | 0x19 << 8 | (facts->param_bytes & 0xffff) << 16, 4);
    if (facts->function->maxntid[0])
        add_record(&info, 0x05, facts->function->maxntid, 3);
    if (facts->reqntid[0])
        add_record(&info, 0x10, facts->reqntid, 3);
    add_section(e, ".nv.info.", facts->name, SHT_NV_INFO, &info, info.bytes);
    if (facts->static_shared_bytes)
        add_section(e, ".nv.shared.", facts->name, SHT_NOBITS, NULL,
                    facts->static_shared_bytes + RESERVED_SHARED);
    e->body.failed |= code.failed || info.failed;
    kr__text_free(&code);
    kr__text_free(&info);
}

static void add_elf_header(kr__text *to, const elf *e, int cc)
{
    static const char ident[16] = "\177ELF\2\1\1\x41\x08";
    enum { EXECUTABLE = 2, MACHINE_CUDA = 190 };
    kr__text_add_bytes(to, ident, sizeof ident);
    add_number(to, EXECUTABLE, 2);
    add_number(to, MACHINE_CUDA, 2);
    add_number(to, 1, 4);
    add_number(to, 0, 8);
    add_number(to, 0, 8);
    add_number(to, ELF_HEADER + e->body.bytes, 8);
    add_number(to, 0x06000000u | (unsigned)cc << 8 | (cc >= 100 ? 2 : 4), 4);
    add_number(to, ELF_HEADER, 2);
    add_number(to, 56, 2);
    add_number(to, 0, 2);
    add_number(to, 64, 2);
    add_number(to, e->n_sections, 2);
    add_number(to, SECTION_NAMES, 2);
}

/* Patches the header of a table that was still growing when its header was written. */
static void place_table(elf *e, unsigned section, const kr__text *table)
{
    while (e->body.bytes % 16)
        add_number(&e->body, 0, 1);
    uint64_t place[2] = {ELF_HEADER + e->body.bytes, table->bytes};
    if (!e->headers.failed)
        memcpy(e->headers.data + section * 64 + 0x18, place, sizeof place);
    kr__text_add_bytes(&e->body, table->data, table->bytes);
}

static void write_cubin(kr__text *to, const sc_jit *jit, const sc_program *program, int cc,
                        const kr__text *ptx)
{
    elf e = {0};
    kr__text info = {0};
    add_name(&e.section_names, "", "");
    add_name(&e.symbol_names, "", "");
    add_header(&e, 0, 0, 0, 0, 0, 0);
    add_section(&e, ".shstrtab", "", SHT_STRTAB, NULL, 0);
    add_section(&e, ".strtab", "", SHT_STRTAB, NULL, 0);
    add_section(&e, ".symtab", "", SHT_SYMTAB, NULL, 0);
    static const char no_symbol[24];
    kr__text_add_bytes(&e.symbols, no_symbol, sizeof no_symbol);
    e.n_symbols = 1;
    size_t const_bytes = 0;
    for (size_t i = 0; i < sc_program_n_kernels(program); i++) {
        add_kernel(&e, jit, sc_program_kernel(program, i), &info);
        const_bytes = sc_program_kernel(program, i)->const_bytes;
    }
    add_section(&e, ".nv.info", "", SHT_NV_INFO, &info, info.bytes);
    if (const_bytes)
        add_section(&e, ".nv.constant3", "", SHT_NOBITS, NULL, const_bytes);
    add_section(&e, SC_PTX_SECTION, "", SHT_PROGBITS, ptx, ptx->bytes);
    place_table(&e, SECTION_NAMES, &e.section_names);
    place_table(&e, SYMBOL_NAMES, &e.symbol_names);
    place_table(&e, SYMBOLS, &e.symbols);
    while (e.body.bytes % 8)
        add_number(&e.body, 0, 1);
    add_elf_header(to, &e, cc);
    kr__text_add_bytes(to, e.body.data, e.body.bytes);
    kr__text_add_bytes(to, e.headers.data, e.headers.bytes);
    kr__text *parts[] = {&e.body, &e.headers, &e.section_names, &e.symbol_names, &e.symbols, &info};
    for (size_t i = 0; i < KR_COUNT(parts); i++) {
        to->failed |= parts[i]->failed;
        kr__text_free(parts[i]);
    }
}

/* ---- the calls ---- */

/* A function that is declared alone and that the log complains of, or NULL. */
static const link_symbol *find_undefined(const sc_link *link, const char *log)
{
    for (const link_symbol *s = link->symbols; s && log; s = s->next) {
        char quoted[256];
        kr__format(quoted, sizeof quoted, "'%s'", s->name);
        if (!s->defined && !find_defined(link, s->name) && strstr(log, quoted))
            return s;
    }
    return NULL;
}

/* The texts together must stand by themselves: nothing declared may be missing. */
static CUresult complete(sc_link *link)
{
    sc_device *device = link->object.context->device;
    if (!link->ptx.bytes)
        kr__text_add(&link->ptx, ".version %d.%d\n.target sm_%d\n", sc_driver_isa() / 10,
                     sc_driver_isa() % 10, device->chip->cc);
    ptx_problem problem = {0};
    ptx_module *module = NULL;
    sc_program *program = NULL;
    sc_device_limits limits = {
        .ordinal = (unsigned)device->ordinal, .cc = device->chip->cc, .multiprocessors = 1};
    bool linked =
        !link->ptx.failed &&
        kr__ptx_parse(link->ptx.data, link->ptx.bytes, &(ptx_options){.linked = true}, &module, &problem) &&
        sc_program_create(module, device->memory, &limits, &program, &problem);
    if (linked)
        write_cubin(&link->cubin, &link->jit, program, device->chip->cc, &link->ptx);
    const link_symbol *undefined = linked ? NULL : find_undefined(link, problem.log.data);
    if (undefined)
        fail_name(link, "error   : Undefined reference to '%s' in '%s'", undefined->name, undefined->input,
                  "");
    else
        sc_jit_report(&link->jit, NULL, problem.log.data);
    bool failed = link->ptx.failed || link->cubin.failed || problem.kind == PTX_PROBLEM_MEMORY;
    sc_program_destroy(&program);
    kr__ptx_module_free(&module);
    kr__text_free(&problem.log);
    return failed ? CUDA_ERROR_OUT_OF_MEMORY : linked ? CUDA_SUCCESS : CUDA_ERROR_INVALID_SOURCE;
}

API(cuLinkCreate_v2, unsigned n, CUjit_option *options, void **values, CUlinkState *ret_state)
{
    sc_context *context;
    TRY(sc_enter(&context));
    if (sc_asked.jit_is_missing)
        return CUDA_ERROR_JIT_COMPILER_NOT_FOUND;
    if (!ret_state)
        return CUDA_ERROR_INVALID_VALUE;
    TRY(sc_jit_check(&(sc_jit){n, options, values}));
    for (unsigned i = 0; i < n; i++)
        if (options[i] == CU_JIT_FALLBACK_STRATEGY)
            return CUDA_ERROR_INVALID_VALUE;
    sc_link *link = sc_object_create(sizeof *link, SC_LINK, context, finish_link);
    if (!link)
        return CUDA_ERROR_OUT_OF_MEMORY;
    pthread_mutex_init(&link->lock, NULL);
    link->jit = (sc_jit){n, options, values}; /* the caller keeps them until the link is destroyed */
    if (!sc_object_publish(link, (uintptr_t)link)) {
        sc_release(link);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *ret_state = (CUlinkState)link;
    return CUDA_SUCCESS;
}

API(cuLinkCreate, unsigned n, CUjit_option *options, void **values, CUlinkState *ret_state)
{
    return cuLinkCreate_v2(n, options, values, ret_state);
}

static sc_link *find_link(CUlinkState handle)
{
    return sc_object_find(SC_LINK, (uintptr_t)handle);
}

static CUresult add_data(sc_link *link, CUjitInputType type, void *data, size_t bytes, const char *name,
                         const sc_jit *jit)
{
    if (!data || !bytes || link->completed || type < CU_JIT_INPUT_CUBIN || type >= CU_JIT_NUM_INPUT_TYPES)
        return CUDA_ERROR_INVALID_VALUE;
    TRY(sc_jit_check(jit));
    TRY(link->failed);
    CUresult result = add_input(link, type, data, bytes, name ? name : "", jit);
    if (result == CUDA_ERROR_NO_BINARY_FOR_GPU || result == CUDA_ERROR_NOT_SUPPORTED ||
        (result == CUDA_ERROR_INVALID_IMAGE && type != CU_JIT_INPUT_PTX))
        link->failed = result;
    return result;
}

API(cuLinkAddData_v2, CUlinkState handle, CUjitInputType type, void *data, size_t bytes, const char *name,
    unsigned n, CUjit_option *options, void **values)
{
    TRY(sc_working());
    sc_link *link = find_link(handle);
    if (!link)
        return CUDA_ERROR_INVALID_HANDLE;
    const sc_jit jit = {n, options, values};
    pthread_mutex_lock(&link->lock);
    CUresult result = add_data(link, type, data, bytes, name, &jit);
    pthread_mutex_unlock(&link->lock);
    return result;
}

API(cuLinkAddData, CUlinkState handle, CUjitInputType type, void *data, size_t bytes, const char *name,
    unsigned n, CUjit_option *options, void **values)
{
    return cuLinkAddData_v2(handle, type, data, bytes, name, n, options, values);
}

API(cuLinkAddFile_v2, CUlinkState handle, CUjitInputType type, const char *path, unsigned n,
    CUjit_option *options, void **values)
{
    TRY(sc_working());
    if (!find_link(handle))
        return CUDA_ERROR_INVALID_HANDLE;
    if (!path)
        return CUDA_ERROR_INVALID_VALUE;
    char *data;
    size_t bytes;
    TRY(sc_module_file(path, &data, &bytes));
    CUresult result = cuLinkAddData_v2(handle, type, data, bytes, path, n, options, values);
    free(data);
    return result;
}

API(cuLinkAddFile, CUlinkState handle, CUjitInputType type, const char *path, unsigned n,
    CUjit_option *options, void **values)
{
    return cuLinkAddFile_v2(handle, type, path, n, options, values);
}

static CUresult complete_once(sc_link *link)
{
    TRY(link->failed);
    if (link->completed)
        return CUDA_ERROR_INVALID_HANDLE;
    link->completed = true;
    return link->failed = complete(link);
}

API(cuLinkComplete, CUlinkState handle, void **ret_cubin, size_t *ret_bytes)
{
    TRY(sc_working());
    sc_link *link = find_link(handle);
    if (!link)
        return CUDA_ERROR_INVALID_HANDLE;
    if (!ret_cubin)
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&link->lock);
    CUresult result = complete_once(link);
    pthread_mutex_unlock(&link->lock);
    TRY(result);
    *ret_cubin = link->cubin.data; /* nothing changes it any more */
    if (ret_bytes)
        *ret_bytes = link->cubin.bytes;
    return CUDA_SUCCESS;
}

API(cuLinkDestroy, CUlinkState handle)
{
    TRY(sc_initialized());
    sc_link *link = find_link(handle);
    if (!link)
        return CUDA_ERROR_INVALID_HANDLE;
    sc_object_drop(link);
    return CUDA_SUCCESS;
}
