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
IMAGE(caller);      /* k(u64), which calls twice, and plain(), of ptxas -c */
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

/* A kernel that needs nothing, beside one that needs what is not there. */
static void relocatable_beside(void)
{
    CUmodule module;
    CUlibrary library;
    CUfunction f, found[2] = {NULL};
    CUkernel kernel;
    unsigned n = NO_SUCH;
    begin();
    bytes cubin = COPY(caller);
    ASK(cuModuleLoadData(&module, cubin.at));
    ASK(cuModuleGetFunction(&f, module, "plain"));
    ASK(cuModuleGetFunctionCount(&n, module));
    say(":%u", n);
    ASK(cuModuleEnumerateFunctions(found, 2, module));
    say(":%d%d", found[0] != NULL, found[1] != NULL);
    ASK(cuLibraryLoadData(&library, cubin.at, NULL, NULL, 0, NULL, NULL, 0));
    ASK(cuLibraryGetKernelCount(&n, library));
    say(":%u", n);
    ASK(cuLibraryGetModule(&module, library));
    ASK(cuLibraryGetKernel(&kernel, library, "plain"));
    ASK(cuKernelGetFunction(&f, kernel));
}

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

/* What a link made, linked again. */
static void link_again(void)
{
    void *cubin = NULL;
    size_t n_bytes = 0;
    CUlinkState link;
    begin();
    MUST(cuLinkCreate_v2(0, NULL, NULL, &link));
    MUST(cuLinkAddData_v2(link, CU_JIT_INPUT_PTX, (void *)(uintptr_t)k_ptx, sizeof k_ptx, "first", 0, NULL,
                          NULL));
    MUST(cuLinkComplete(link, &cubin, &n_bytes));
    say(" %u", ((unsigned char *)cubin)[ELF_TYPE]);
    link_inputs(&(input){CU_JIT_INPUT_CUBIN, cubin, n_bytes}, 1);
}

/* ---- fatbins ---- */

enum {
    KIND_PTX = 1,
    KIND_ELF = 2,
    FLAGS = 0x11,
    LZ4 = 0x2000,
    ZSTD = 0x8000,
    SPECIFIC = 0x100000,
    FAMILY = 0x200000
};

typedef struct entry {
    unsigned kind, sm, isa; /* isa: of PTX, 70 for 7.0 */
    uint64_t flags;         /* besides those of every entry */
    bytes data;
    size_t unpacked; /* 0: stored as it is */
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
    put(to, 0x10, e->unpacked ? e->data.n : 0, 4);
    put(to, 0x18, e->isa ? e->isa % 10 : 8, 2);
    put(to, 0x1a, e->isa ? e->isa / 10 : 1, 2);
    put(to, 0x1c, e->sm, 4);
    put(to, 0x28, e->flags | FLAGS, 8);
    put(to, 0x38, e->unpacked, 8);
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

/* The bytes as one LZ4 block of literals alone. */
static bytes in_lz4(bytes plain)
{
    bytes packed = {0, malloc(plain.n + plain.n / 255 + 16)};
    if (!packed.at || plain.n < 15)
        MUST(CUDA_ERROR_OUT_OF_MEMORY);
    packed.at[packed.n++] = 0xf0;
    size_t left = plain.n - 15;
    for (; left >= 255; left -= 255)
        packed.at[packed.n++] = 255;
    packed.at[packed.n++] = (unsigned char)left;
    memcpy(packed.at + packed.n, plain.at, plain.n);
    packed.n += plain.n;
    return packed;
}

/* The bytes as a zstd frame of one block that is stored. */
static bytes in_zstd(bytes plain)
{
    enum { SINGLE_SEGMENT_OF_FOUR_BYTES = 0xa0, LAST = 1, HEAD = 12 };
    bytes packed = {HEAD + plain.n, calloc(HEAD + plain.n, 1)};
    if (!packed.at)
        MUST(CUDA_ERROR_OUT_OF_MEMORY);
    put(packed.at, 0, 0xfd2fb528, 4);
    put(packed.at, 4, SINGLE_SEGMENT_OF_FOUR_BYTES, 1);
    put(packed.at, 5, plain.n, 4);
    put(packed.at, 9, plain.n << 3 | LAST, 3);
    memcpy(packed.at + HEAD, plain.at, plain.n);
    return packed;
}

static entry ptx_entry(const char *text, unsigned sm, unsigned isa)
{
    return (entry){KIND_PTX, sm, isa, 0, copy_of(text, strlen(text) + 1), 0};
}

static entry cubin_entry(unsigned sm)
{
    bytes cubin = COPY(linked);
    set_sm(cubin, sm);
    return (entry){KIND_ELF, sm, 0, 0, cubin, 0};
}

static entry packed(entry e, uint64_t how)
{
    e.unpacked = e.data.n;
    e.flags |= how;
    e.data = how == LZ4 ? in_lz4(e.data) : in_zstd(e.data);
    return e;
}

#define LOAD(...)                                        \
    do {                                                 \
        const entry entries_[] = {__VA_ARGS__};          \
        load_both(fatbin(entries_, COUNT(entries_)).at); \
        say(";");                                        \
    } while (0)

#define PTX_75 ptx_entry(k_ptx, 75, 70)

static void fatbin_right(void)
{
    begin();
    LOAD(PTX_75);
    LOAD(cubin_entry(90));
    LOAD(PTX_75, cubin_entry(90));
    LOAD(PTX_75, ptx_entry(PTX_OF("8.0", "sm_90") K, 90, 80));
    LOAD(cubin_entry(80), PTX_75);
}

static void fatbin_empty(void)
{
    begin();
    load_both(fatbin(NULL, 0).at);
}

/* Kinds that are not known. A real driver crashes on a cubin that is said to be LTO-IR: it is not asked. */
static void fatbin_kinds(void)
{
    static const unsigned kinds[] = {0, 3, 4};
    begin();
    for (size_t i = 0; i < COUNT(kinds); i++) {
        say(" %u:", kinds[i]);
        entry e = cubin_entry(90);
        e.kind = kinds[i];
        LOAD(e);
        LOAD(e, PTX_75);
        LOAD(PTX_75, e);
    }
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
    LOAD(e, PTX_75);
    LOAD(ptx_entry(k_ptx, 100, 70));
    LOAD(ptx_entry(PTX_OF("8.6", "sm_100") K, 75, 86));
}

/* PTX of a version that this driver does not know yet. */
static void fatbin_newer_ptx(void)
{
    begin();
    LOAD(ptx_entry(PTX_OF("9.9", "sm_75") K, 75, 99));
    LOAD(ptx_entry(PTX_OF("9.9", "sm_90") K, 90, 99), PTX_75);
    LOAD(PTX_75, ptx_entry(PTX_OF("9.9", "sm_90") K, 90, 99));
    LOAD(ptx_entry(PTX_OF("9.9", "sm_75") K, 75, 99), PTX_75);
    LOAD(PTX_75, ptx_entry(PTX_OF("9.9", "sm_75") K, 75, 99));
    LOAD(ptx_entry(PTX_OF("9.9", "sm_90") K, 90, 99), cubin_entry(90));
    LOAD(ptx_entry(k_ptx, 75, 99));
    LOAD(ptx_entry(PTX_OF("9.9", "sm_75") K, 75, 70));
}

static void fatbin_packed(void)
{
    begin();
    LOAD(packed(PTX_75, LZ4));
    LOAD(packed(PTX_75, ZSTD));
    LOAD(packed(cubin_entry(90), LZ4));
    LOAD(packed(cubin_entry(90), ZSTD));
    LOAD(packed(cubin_entry(90), ZSTD), packed(PTX_75, LZ4));
}

/* What is packed and not what it should be, and beside it what is right. A real driver crashes on such LZ4:
 * it is not asked. */
static void fatbin_zstd_wrong(void)
{
    begin();
    entry e = packed(PTX_75, ZSTD);
    e.data.n -= 8;
    LOAD(e);
    e = packed(PTX_75, ZSTD);
    e.data.at[0] ^= 0xff;
    LOAD(e);
    LOAD(e, ptx_entry(PTX_OF("6.3", "sm_70") K, 70, 63));
    e = packed(PTX_75, ZSTD);
    e.unpacked += 8;
    LOAD(e);
}

/* What is no code in the entry that is chosen, and beside it what is right. */
static void fatbin_damaged(void)
{
    begin();
    entry cubin = cubin_entry(90), ptx = ptx_entry("no PTX at all", 90, 80),
          wrong = ptx_entry(PTX_OF("7.0", "sm_75") "frobnicate;\n", 75, 70);
    cubin.data.at[0] = 'x';
    LOAD(cubin);
    LOAD(cubin, PTX_75);
    LOAD(ptx);
    LOAD(ptx, PTX_75);
    LOAD(wrong);
    LOAD(wrong, cubin_entry(90));
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
    entry cubin = cubin_entry(90), ptx = ptx_entry(PTX_OF("8.0", "sm_90a") K, 90, 80);
    cubin.flags = ptx.flags = SPECIFIC;
    set_specific(cubin.data, 1);
    LOAD(cubin, cubin_entry(90));
    LOAD(cubin_entry(90), cubin);
    LOAD(cubin, PTX_75);
    LOAD(ptx);
    LOAD(ptx, PTX_75);
    ptx.flags = 0;
    LOAD(ptx);
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
    LOAD(other, PTX_75);
    LOAD(family, PTX_75);
    load_both(PTX_OF("8.0", "sm_90a") K);
    load_both(PTX_OF("8.6", "sm_100a") K);
    load_both(PTX_OF("8.8", "sm_100f") K);
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

/* The header: its size and version. */
static void fatbin_header(void)
{
    begin();
    const entry one[] = {PTX_75, cubin_entry(90)};
    for (unsigned version = 0; version < 4; version++) {
        bytes made = fatbin(one, COUNT(one));
        put(made.at, 4, version, 2);
        say(" %u:", version);
        load_both(made.at);
    }
    const bytes first = fatbin(one, 1), both = {first.n * 2, malloc(first.n * 2)};
    if (!both.at)
        MUST(CUDA_ERROR_OUT_OF_MEMORY);
    for (size_t at = 0; at < both.n; at += first.n)
        memcpy(both.at + at, first.at, first.n);
    load_both(both.at);
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
    FACT(relocatable_beside),
    FACT(link_linked),
    FACT(link_again),
    FACT(link_linked_twice),
    FACT(link_linked_ptx),
    FACT(link_ptx_linked),
    FACT(fatbin_right),
    FACT(fatbin_empty),
    FACT(fatbin_kinds),
    FACT(fatbin_other_machine),
    FACT(fatbin_wrong_machine),
    FACT(fatbin_newer_ptx),
    FACT(fatbin_packed),
    FACT(fatbin_zstd_wrong),
    FACT(fatbin_damaged),
    FACT(fatbin_specific),
    FACT(fatbin_foreign_ptx),
    FACT(fatbin_beside_ptx),
    FACT(fatbin_caller_beside_ptx),
    FACT(fatbin_header),
};
FACTS_MAIN(facts)
