/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Images that are not PTX: cubins of other toolkits, relocatable ones, and what a fatbin may hold. The cubins
 * of images/ are ptxas' (CUDA 13.0, sm_90); here they are altered and put into fatbins.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "ptx/image/image.h"
#include "tests/softcuda/facts/kernels.h"

/* clang-format off */
#define IMAGE(name)                                                          \
    extern const unsigned char name[], name##_end[];                         \
    __asm__(".section .rodata\n" #name ":\n.incbin \"" IMAGES #name ".cubin\"\n" \
            #name "_end:\n.previous\n")
/* clang-format on */

IMAGE(linked);      /* k(u64, u32), which does nothing */
IMAGE(relocatable); /* the same, of ptxas -c */
IMAGE(caller);      /* k(u64), which calls twice, of ptxas -c */
IMAGE(callee);      /* twice, of ptxas -c */

static const char k_ptx[] = PTX(".visible .entry k(.param .u64 p, .param .u32 v) { ret; }\n");
static const char other_ptx[] = PTX(".visible .entry other() { ret; }\n");

#define PTX_OF(version, target) ".version " version "\n.target " target "\n.address_size 64\n"
#define K ".visible .entry k(.param .u64 p, .param .u32 v) { ret; }\n"

/* ---- cubins, altered ---- */

typedef struct bytes {
    size_t n;
    unsigned char *at;
} bytes;

static bytes copy_of(const void *from, size_t n)
{
    bytes copy = {n, calloc(n + 1, 1)};
    if (!copy.at)
        MUST(CUDA_ERROR_OUT_OF_MEMORY);
    memcpy(copy.at, from, n);
    return copy;
}

#define COPY(image) copy_of(image, (size_t)(image##_end - image))

static unsigned char *section(bytes cubin, const char *name)
{
    const void *data;
    size_t n;
    if (!kr__cubin_section(cubin.at, cubin.n, name, &data, &n))
        MUST(CUDA_ERROR_INVALID_IMAGE);
    return cubin.at + ((const unsigned char *)data - cubin.at);
}

/* Where a linked cubin tells which toolkit made it, as 130 for 13.0. */
static void set_note(bytes cubin, unsigned toolkit)
{
    enum { NOTE_HEAD = 12, OWNER = 12, TOOLKIT = 4 };
    const uint16_t number = (uint16_t)toolkit;
    memcpy(section(cubin, ".note.nv.cuinfo") + NOTE_HEAD + OWNER + TOOLKIT, &number, sizeof number);
}

/* The first record of the kernel's. */
static void set_record(bytes cubin, unsigned toolkit)
{
    unsigned char *info = section(cubin, ".nv.info.k");
    if (info[1] != 0x37)
        MUST(CUDA_ERROR_INVALID_IMAGE);
    memcpy(info + 4, &toolkit, 4);
}

static void set_everywhere(bytes cubin, unsigned toolkit)
{
    set_note(cubin, toolkit);
    set_record(cubin, toolkit);
}

enum { ELF_OSABI = 7, ELF_ABI = 8, ELF_TYPE = 16, ELF_VERSION = 20, ELF_FLAGS = 48 };

static void set_abi(bytes cubin, unsigned abi)
{
    cubin.at[ELF_ABI] = (unsigned char)abi;
}

static void set_os_abi(bytes cubin, unsigned abi)
{
    cubin.at[ELF_OSABI] = (unsigned char)abi;
}

static void set_elf_version(bytes cubin, unsigned version)
{
    memcpy(cubin.at + ELF_VERSION, &version, 4);
}

static void set_type(bytes cubin, unsigned type)
{
    cubin.at[ELF_TYPE] = (unsigned char)type;
}

static void set_sm(bytes cubin, unsigned sm)
{
    cubin.at[ELF_FLAGS + 1] = (unsigned char)sm;
}

/* The record by which sm_90a differs from sm_90. */
static void set_specific(bytes cubin, unsigned specific)
{
    unsigned char *compat = section(cubin, ".nv.compat");
    if (compat[1] != 0x09)
        MUST(CUDA_ERROR_INVALID_IMAGE);
    compat[2] = (unsigned char)specific;
}

/* ---- what becomes of an image ---- */

/* As a module: loading it, k in it, the level that its code is of. */
static void load_module(const void *image)
{
    CUmodule module;
    CUfunction f;
    CUresult result = cuModuleLoadData(&module, image);
    say(" %d", (int)result);
    if (result)
        return;
    result = cuModuleGetFunction(&f, module, "k");
    say(",%d", (int)result);
    int level = NO_SUCH;
    if (!result)
        result = cuFuncGetAttribute(&level, CU_FUNC_ATTRIBUTE_PTX_VERSION, f);
    say(",%d", result ? (int)result : level);
}

/* As a library: the same. */
static void load_library(const void *image)
{
    CUlibrary library;
    CUkernel kernel;
    CUfunction f;
    int level = NO_SUCH;
    CUresult result = cuLibraryLoadData(&library, image, NULL, NULL, 0, NULL, NULL, 0);
    say(" %d", (int)result);
    if (result)
        return;
    result = cuLibraryGetKernel(&kernel, library, "k");
    say(",%d", (int)result);
    if (result)
        return;
    result = cuKernelGetFunction(&f, kernel);
    if (!result)
        result = cuFuncGetAttribute(&level, CU_FUNC_ATTRIBUTE_PTX_VERSION, f);
    say(",%d", result ? (int)result : level);
}

static void load_both(const void *image)
{
    load_module(image);
    load_library(image);
}

/* ---- cubins ---- */

#define COUNT(array) (sizeof(array) / sizeof *(array))

static void each(void (*set)(bytes, unsigned), const unsigned *values, size_t n)
{
    begin();
    for (size_t i = 0; i < n; i++) {
        bytes cubin = COPY(linked);
        set(cubin, values[i]);
        say(" %u:", values[i]);
        load_both(cubin.at);
    }
}

#define EACH(name, set, ...)                     \
    static void name(void)                       \
    {                                            \
        const unsigned values[] = {__VA_ARGS__}; \
        each(set, values, COUNT(values));        \
    }
EACH(cubin_note, set_note, 0, 100, 118, 129, 130, 131, 139, 140, 200, 999)
EACH(cubin_record, set_record, 0, 100, 118, 129, 130, 131, 139, 140, 200, 999)
EACH(cubin_toolkit, set_everywhere, 0, 100, 118, 129, 130, 131, 139, 140, 200, 999)
EACH(cubin_abi, set_abi, 8, 9, 10)
EACH(cubin_os_abi, set_os_abi, 0, 0x33, 0x41, 0x42)
EACH(cubin_elf_version, set_elf_version, 0, 1, 2, 130, 140)
EACH(cubin_sm, set_sm, 75, 80, 86, 89, 90, 91, 100, 120)
EACH(cubin_specific, set_specific, 0, 1, 2)
EACH(cubin_type, set_type, 0, 1, 2, 3)

#define LOADED(name, image)           \
    static void name##_module(void)   \
    {                                 \
        begin();                      \
        load_module(COPY(image).at);  \
    }                                 \
    static void name##_library(void)  \
    {                                 \
        begin();                      \
        load_library(COPY(image).at); \
    }
LOADED(relocatable, relocatable)
LOADED(relocatable_caller, caller)
LOADED(relocatable_callee, callee)

/* ---- linking ---- */

typedef struct input {
    CUjitInputType type;
    const void *data;
    size_t n;
} input;

#define CUBIN(image)                                             \
    (input)                                                      \
    {                                                            \
        CU_JIT_INPUT_CUBIN, image, (size_t)(image##_end - image) \
    }
#define TEXT(ptx)                          \
    (input)                                \
    {                                      \
        CU_JIT_INPUT_PTX, ptx, sizeof(ptx) \
    }

/* Adds them one after another, completes, and says the log. */
static void link_inputs(const input *inputs, size_t n)
{
    static char log[512];
    void *cubin = NULL;
    size_t n_bytes;
    CUlinkState link;
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {log, (void *)sizeof log};
    begin();
    MUST(cuLinkCreate_v2(2, options, values, &link));
    for (size_t i = 0; i < n; i++)
        ASK(cuLinkAddData_v2(link, inputs[i].type, (void *)(uintptr_t)inputs[i].data, inputs[i].n,
                             i ? "second" : "first", 0, NULL, NULL));
    CUresult result = cuLinkComplete(link, &cubin, &n_bytes);
    say(" %d", (int)result);
    if (!result)
        load_module(cubin);
    say(" (%s)", log);
}

#define LINKED(name, ...)                     \
    static void name(void)                    \
    {                                         \
        const input inputs[] = {__VA_ARGS__}; \
        link_inputs(inputs, COUNT(inputs));   \
    }
LINKED(link_linked, CUBIN(linked))
LINKED(link_linked_twice, CUBIN(linked), CUBIN(linked))
LINKED(link_linked_ptx, CUBIN(linked), TEXT(other_ptx))
LINKED(link_ptx_linked, TEXT(other_ptx), CUBIN(linked))

/* ---- fatbins ---- */

enum {
    KIND_PTX = 1,
    KIND_ELF = 2,
    FLAGS = 0x11,
    SPECIFIC = 0x100000,
    FAMILY = 0x200000,
};

typedef struct entry {
    unsigned kind, sm, isa; /* isa: of PTX, 70 for 7.0 */
    uint64_t flags;         /* besides those of every entry */
    bytes data;
} entry;

static void put(unsigned char *to, size_t at, uint64_t value, size_t n)
{
    memcpy(to + at, &value, n);
}

static size_t padded(size_t n)
{
    return (n + 7) / 8 * 8;
}

/* PTX has a block of options; a driver does not look whether it is there. */
enum { ENTRY = 64, OPTIONS = 16 };

static size_t head_bytes(const entry *e)
{
    return ENTRY + (e->kind == KIND_PTX ? OPTIONS : 0);
}

static void put_entry(unsigned char *to, const entry *e)
{
    put(to, 0x00, e->kind, 2);
    put(to, 0x02, 0x0101, 2);
    put(to, 0x04, head_bytes(e), 4);
    put(to, 0x08, padded(e->data.n), 8);
    put(to, 0x18, e->isa ? e->isa % 10 : 8, 2);
    put(to, 0x1a, e->isa ? e->isa / 10 : 1, 2);
    put(to, 0x1c, e->sm, 4);
    put(to, 0x28, e->flags | FLAGS, 8);
    if (e->kind == KIND_PTX) {
        put(to, 0x14, ENTRY, 4);
        put(to, ENTRY, ENTRY + 8, 4); /* where the text of options is, which is empty */
    }
    memcpy(to + head_bytes(e), e->data.at, e->data.n);
}

/* A fatbin as fatbinary writes it. */
static bytes fatbin(const entry *entries, size_t n)
{
    enum { HEAD = 16 };
    bytes made = {HEAD, NULL};
    for (size_t i = 0; i < n; i++)
        made.n += head_bytes(&entries[i]) + padded(entries[i].data.n);
    made.at = calloc(made.n, 1);
    if (!made.at)
        MUST(CUDA_ERROR_OUT_OF_MEMORY);
    put(made.at, 0, 0xba55ed50, 4);
    put(made.at, 4, 1, 2);
    put(made.at, 6, HEAD, 2);
    put(made.at, 8, made.n - HEAD, 8);
    unsigned char *to = made.at + HEAD;
    for (const entry *e = entries; e < entries + n; e++) {
        put_entry(to, e);
        to += head_bytes(e) + padded(e->data.n);
    }
    return made;
}

static entry ptx_entry(const char *text, unsigned sm, unsigned isa)
{
    return (entry){KIND_PTX, sm, isa, 0, copy_of(text, strlen(text) + 1)};
}

static entry cubin_entry(unsigned sm)
{
    bytes cubin = COPY(linked);
    set_sm(cubin, sm);
    return (entry){KIND_ELF, sm, 0, 0, cubin};
}

#define LOAD(...)                                        \
    do {                                                 \
        const entry entries_[] = {__VA_ARGS__};          \
        load_both(fatbin(entries_, COUNT(entries_)).at); \
        say(";");                                        \
    } while (0)

#define PTX_75 ptx_entry(k_ptx, 75, 70)

static void fatbin_empty(void)
{
    begin();
    load_both(fatbin(NULL, 0).at);
}

static void fatbin_other_machine(void)
{
    begin();
    LOAD(cubin_entry(80));
    LOAD(cubin_entry(100));
    LOAD(cubin_entry(80), cubin_entry(100), cubin_entry(120));
    LOAD(ptx_entry(PTX_OF("8.6", "sm_100") K, 100, 86));
    LOAD(cubin_entry(80), ptx_entry(PTX_OF("8.6", "sm_100") K, 100, 86));
}

/* The entry says one machine, the cubin in it another. */
static void fatbin_wrong_machine(void)
{
    begin();
    entry e = cubin_entry(80);
    e.sm = 90;
    LOAD(e);
    LOAD(e, PTX_75);
    e = cubin_entry(90);
    e.sm = 80;
    LOAD(e);
}

/* What is no code in the entry that is chosen, and beside it what is right. */
static void fatbin_damaged(void)
{
    begin();
    entry cubin = cubin_entry(90);
    cubin.data.at[0] = 'x';
    LOAD(cubin);
    LOAD(cubin, PTX_75);
}

/* sm_90a: what the entry says of it, and what the cubin. */
static void fatbin_specific(void)
{
    begin();
    for (unsigned told = 0; told < 2; told++)
        for (unsigned is = 0; is < 2; is++) {
            entry e = cubin_entry(90);
            set_specific(e.data, is);
            e.flags = told ? SPECIFIC : 0;
            LOAD(e);
        }
    entry cubin = cubin_entry(90);
    cubin.flags = SPECIFIC;
    set_specific(cubin.data, 1);
    LOAD(cubin, cubin_entry(90));
    LOAD(cubin_entry(90), cubin);
    LOAD(cubin, PTX_75);
}

/* PTX for what this device is not: another one alone, another family. */
static void fatbin_foreign_ptx(void)
{
    begin();
    entry other = ptx_entry(PTX_OF("8.6", "sm_100a") K, 100, 86),
          family = ptx_entry(PTX_OF("8.8", "sm_100f") K, 100, 88);
    other.flags = SPECIFIC;
    family.flags = FAMILY;
    LOAD(other);
    LOAD(family);
}

/* A newer toolkit's cubin, a relocatable one: beside PTX. */
static void fatbin_beside_ptx(void)
{
    begin();
    entry e = cubin_entry(90);
    set_everywhere(e.data, 140);
    LOAD(e);
    LOAD(e, PTX_75);
    e.data.at[ELF_ABI] = 9;
    LOAD(e);
    LOAD(e, PTX_75);
    e.data = COPY(relocatable);
    LOAD(e);
    LOAD(e, PTX_75);
}

static void fatbin_caller_beside_ptx(void)
{
    begin();
    entry e = cubin_entry(90);
    e.data = COPY(caller);
    LOAD(e, PTX_75);
    LOAD(e);
}

static const fact facts[] = {
    FACT(cubin_note),
    FACT(cubin_record),
    FACT(cubin_toolkit),
    FACT(cubin_abi),
    FACT(cubin_os_abi),
    FACT(cubin_elf_version),
    FACT(cubin_sm),
    FACT(cubin_specific),
    FACT(cubin_type),
    FACT(relocatable_module),
    FACT(relocatable_library),
    FACT(relocatable_caller_module),
    FACT(relocatable_caller_library),
    FACT(relocatable_callee_module),
    FACT(relocatable_callee_library),
    FACT(link_linked),
    FACT(link_linked_twice),
    FACT(link_linked_ptx),
    FACT(link_ptx_linked),
    FACT(fatbin_empty),
    FACT(fatbin_other_machine),
    FACT(fatbin_wrong_machine),
    FACT(fatbin_damaged),
    FACT(fatbin_specific),
    FACT(fatbin_foreign_ptx),
    FACT(fatbin_beside_ptx),
    FACT(fatbin_caller_beside_ptx),
};
FACTS_MAIN(facts)
