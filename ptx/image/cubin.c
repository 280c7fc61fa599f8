/* SPDX-License-Identifier: Apache-2.0 */
/* Cubins: ELF64 files of machine 190. Layout as measured on the output of CUDA 11 (ABI 7) and 13.0 (ABI 8).
 */
#include "ptx/image/image.h"

#include <stdlib.h>
#include <string.h>

#include "ptx/image/bytes.h"

enum {
    ELF_HEADER_BYTES = 64,
    MACHINE_CUDA = 190,
    SECTION_BYTES = 64,
    SYMBOL_BYTES = 24,
    SHT_SYMTAB = 2,
    SHT_NOBITS = 8,
    STT_OBJECT = 1,
    STT_FUNC = 2,
    STO_CUDA_ENTRY = 0x10,
    RESERVED_SHARED_BYTES = 0x400, /* part of .nv.shared.* from sm_90 on */
};

/* The records of .nv.info that are read, by number. */
enum {
    INFO_MAX_THREADS = 0x05,
    INFO_REQNTID = 0x10,
    INFO_FRAME_SIZE = 0x11,
    INFO_MIN_STACK_SIZE = 0x12,
    INFO_KPARAM = 0x17,
    INFO_CBANK_PARAM_SIZE = 0x19,
    INFO_MAXREG_COUNT = 0x1b,
    INFO_REGCOUNT = 0x2f,
    INFO_KPARAM_V2 = 0x45,
    INFO_NUM_BARRIERS = 0x4c,
    COMPAT_ACCELERATED = 0x09,
};
enum { FORMAT_NONE = 1, FORMAT_BYTE = 2, FORMAT_HALF = 3, FORMAT_SIZED = 4 };

typedef struct section {
    const char *name;
    uint32_t type;
    uint64_t flags;
    uint64_t offset, bytes;
    uint32_t link, info;
} section;

typedef struct reader {
    kr__bytes elf;
    kr__cubin *cubin;
    unsigned n_sections;
    section *sections;
    kr_error *err;
} reader;

/* A NUL-terminated text at `offset` of a string table; NULL where it leaves the table. */
static const char *text_at(const reader *r, const section *table, uint64_t offset)
{
    if (offset >= table->bytes)
        return NULL;
    const char *text = (const char *)r->elf.data + table->offset + offset;
    return memchr(text, 0, table->bytes - offset) ? text : NULL;
}

/* From ABI 8 (CUDA 13) on it is in the second byte of the flags. */
static unsigned sm_of(kr__bytes *elf)
{
    const uint32_t flags = kr__u32(elf, 0x30);
    return kr__u8(elf, 8) >= 8 ? flags >> 8 & 0xff : flags & 0xff;
}

unsigned kr__cubin_sm(const void *image, size_t image_bytes)
{
    return sm_of(&(kr__bytes){image, image_bytes, false});
}

static kr_status read_header(reader *r)
{
    kr__bytes *elf = &r->elf;
    kr_error *err = r->err;
    if (elf->n < ELF_HEADER_BYTES)
        return KR_FAIL(err, KR_CORRUPT,
                       "cubin: an ELF header of %d bytes was expected at offset 0, %zu are there",
                       ELF_HEADER_BYTES, elf->n);
    if (memcmp(elf->data, "\177ELF\2\1\1", 7))
        return KR_FAIL(err, KR_CORRUPT,
                       "cubin: a little-endian ELF64 file (7f 45 4c 46 02 01 01) was expected at offset 0");
    unsigned machine = kr__u16(elf, 0x12), section_bytes = kr__u16(elf, 0x3a);
    if (machine != MACHINE_CUDA)
        return KR_FAIL(err, KR_CORRUPT, "cubin: machine %d was expected at offset 0x12, not %u", MACHINE_CUDA,
                       machine);
    r->cubin->abi = kr__u8(elf, 8);
    r->cubin->linked = kr__u16(elf, 0x10) == 2;
    uint32_t flags = kr__u32(elf, 0x30);
    unsigned sm = sm_of(elf);
    if (sm < 10)
        return KR_FAIL(err, KR_CORRUPT,
                       "cubin: an SM number was expected in the flags at offset 0x30 (0x%08x)", flags);
    r->cubin->virtual_arch = (int)(r->cubin->abi >= 8 ? sm : flags >> 16 & 0xff);
    r->cubin->arch = (kr_cc){(int)sm / 10, (int)sm % 10, r->cubin->abi < 8 && flags & 1u << 11 ? 'a' : 0};
    if (section_bytes != SECTION_BYTES)
        return KR_FAIL(err, KR_CORRUPT,
                       "cubin: section headers of %d bytes were expected at offset 0x3a, not %u",
                       SECTION_BYTES, section_bytes);
    r->n_sections = kr__u16(elf, 0x3c);
    if (!r->n_sections || !kr__bytes_hold(elf, kr__u64(elf, 0x28), (uint64_t)r->n_sections * SECTION_BYTES))
        return KR_FAIL(err, KR_CORRUPT,
                       "cubin: %u section headers were expected at offset 0x%llx of %zu bytes", r->n_sections,
                       (unsigned long long)kr__u64(elf, 0x28), elf->n);
    uint64_t programs = kr__u64(elf, 0x20), program_bytes = (uint64_t)kr__u16(elf, 0x36) * kr__u16(elf, 0x38);
    if (!kr__bytes_hold(elf, programs, program_bytes))
        return KR_FAIL(err, KR_CORRUPT,
                       "cubin: program headers of %llu bytes were expected at offset 0x%llx of %zu bytes",
                       (unsigned long long)program_bytes, (unsigned long long)programs, elf->n);
    return KR_OK;
}

static kr_status read_sections(reader *r)
{
    kr__bytes *elf = &r->elf;
    kr_error *err = r->err;
    r->sections = kr__arena_alloc(&r->cubin->arena, r->n_sections * sizeof *r->sections);
    if (!r->sections)
        return KR_FAIL(err, KR_OUT_OF_HOST_MEMORY, "no memory for %u sections", r->n_sections);
    uint64_t headers = kr__u64(elf, 0x28);
    for (unsigned i = 0; i < r->n_sections; i++) {
        uint64_t at = headers + (uint64_t)i * SECTION_BYTES;
        section *s = &r->sections[i];
        *s = (section){NULL,
                       kr__u32(elf, at + 4),
                       kr__u64(elf, at + 8),
                       kr__u64(elf, at + 0x18),
                       kr__u64(elf, at + 0x20),
                       kr__u32(elf, at + 0x28),
                       kr__u32(elf, at + 0x2c)};
        if (s->type != SHT_NOBITS && !kr__bytes_hold(elf, s->offset, s->bytes))
            return KR_FAIL(err, KR_CORRUPT,
                           "cubin: section %u (header at offset 0x%llx) is at 0x%llx, %llu bytes long, in an "
                           "image of %zu",
                           i, (unsigned long long)at, (unsigned long long)s->offset,
                           (unsigned long long)s->bytes, elf->n);
    }
    unsigned names = kr__u16(elf, 0x3e);
    if (names >= r->n_sections || r->sections[names].type == SHT_NOBITS)
        return KR_FAIL(err, KR_CORRUPT,
                       "cubin: the section of names was expected at offset 0x3e below %u, not %u",
                       r->n_sections, names);
    for (unsigned i = 0; i < r->n_sections; i++) {
        uint32_t name = kr__u32(elf, headers + (uint64_t)i * SECTION_BYTES);
        r->sections[i].name = text_at(r, &r->sections[names], name);
        if (!r->sections[i].name)
            return KR_FAIL(err, KR_CORRUPT,
                           "cubin: the name of section %u was expected inside %llu bytes, not at %u", i,
                           (unsigned long long)r->sections[names].bytes, name);
    }
    return KR_OK;
}

static const section *find_section(const reader *r, const char *prefix, const char *name)
{
    size_t n = strlen(prefix);
    for (unsigned i = 0; i < r->n_sections; i++)
        if (strncmp(r->sections[i].name, prefix, n) == 0 && strcmp(r->sections[i].name + n, name) == 0)
            return &r->sections[i];
    return NULL;
}

/* One record of .nv.info or .nv.compat. `data` is at the payload; its offset is in the image. */
typedef struct info_record {
    unsigned format, attribute;
    uint64_t data;
    unsigned value; /* of the short formats */
    unsigned bytes; /* of the sized one */
} info_record;

static bool next_record(reader *r, uint64_t *at, uint64_t end, info_record *ret)
{
    if (end - *at < 4)
        return false;
    *ret =
        (info_record){kr__u8(&r->elf, *at), kr__u8(&r->elf, *at + 1), *at + 4, kr__u16(&r->elf, *at + 2), 0};
    *at += 4;
    if (ret->format == FORMAT_BYTE)
        ret->value &= 0xff;
    if (ret->format != FORMAT_SIZED)
        return true;
    ret->bytes = ret->value;
    if (end - *at < ret->bytes)
        return false;
    *at += ret->bytes;
    return true;
}

static void set_param(kr__cubin_kernel *kernel, kr__image_param *params, unsigned ordinal, size_t offset,
                      size_t bytes)
{
    if (ordinal >= kernel->n_params)
        return;
    params[ordinal] = (kr__image_param){offset, bytes};
}

/* The parameters: records come in any order; their number is the highest ordinal + 1. */
static kr_status read_params(reader *r, const section *info, kr__cubin_kernel *kernel)
{
    info_record record;
    for (uint64_t at = info->offset; next_record(r, &at, info->offset + info->bytes, &record);) {
        bool is_param = record.attribute == INFO_KPARAM || record.attribute == INFO_KPARAM_V2;
        if (record.format == FORMAT_SIZED && is_param && record.bytes >= 12) {
            size_t ordinal = kr__u16(&r->elf, record.data + 4);
            kernel->n_params = ordinal + 1 > kernel->n_params ? ordinal + 1 : kernel->n_params;
        }
    }
    kr__image_param *params = kr__arena_alloc(&r->cubin->arena, (kernel->n_params + 1) * sizeof *params);
    if (!params)
        return KR_FAIL(r->err, KR_OUT_OF_HOST_MEMORY, "no memory for %zu parameters", kernel->n_params);
    kernel->params = params;
    for (uint64_t at = info->offset; next_record(r, &at, info->offset + info->bytes, &record);) {
        if (record.format != FORMAT_SIZED || record.bytes < 12)
            continue;
        unsigned ordinal = kr__u16(&r->elf, record.data + 4), offset = kr__u16(&r->elf, record.data + 6);
        uint32_t last = kr__u32(&r->elf, record.data + 8);
        if (record.attribute == INFO_KPARAM)
            set_param(kernel, params, ordinal, offset, last >> 18);
        else if (record.attribute == INFO_KPARAM_V2)
            set_param(kernel, params, ordinal, offset, last);
    }
    return KR_OK;
}

static void read_three(reader *r, const info_record *record, unsigned ret[3])
{
    for (unsigned i = 0; i < 3 && record->bytes >= 12; i++)
        ret[i] = kr__u32(&r->elf, record->data + 4 * i);
}

static kr_status read_kernel_info(reader *r, kr__cubin_kernel *kernel)
{
    const section *info = find_section(r, ".nv.info.", kernel->name);
    if (!info || info->type == SHT_NOBITS)
        return KR_OK;
    info_record record;
    for (uint64_t at = info->offset; next_record(r, &at, info->offset + info->bytes, &record);) {
        switch (record.attribute) {
        case INFO_MAX_THREADS:
            read_three(r, &record, kernel->max_threads);
            break;
        case INFO_REQNTID:
            read_three(r, &record, kernel->reqntid);
            break;
        case INFO_CBANK_PARAM_SIZE:
            kernel->param_bytes = record.value;
            break;
        case INFO_MAXREG_COUNT:
            kernel->max_registers = record.value < 0xff ? (int)record.value : 0;
            break;
        case INFO_NUM_BARRIERS:
            kernel->barriers = (int)record.value;
            break;
        }
    }
    return read_params(r, info, kernel);
}

/* .nv.info of the whole image: pairs of a symbol and a number. */
static void read_symbol_facts(reader *r, uint32_t symbol, kr__cubin_kernel *kernel)
{
    const section *info = find_section(r, ".nv.info", "");
    if (!info || info->type == SHT_NOBITS)
        return;
    info_record record;
    for (uint64_t at = info->offset; next_record(r, &at, info->offset + info->bytes, &record);) {
        if (record.format != FORMAT_SIZED || record.bytes < 8 || kr__u32(&r->elf, record.data) != symbol)
            continue;
        uint32_t value = kr__u32(&r->elf, record.data + 4);
        if (record.attribute == INFO_REGCOUNT)
            kernel->registers = (int)(value & 0xffff);
        else if (record.attribute == INFO_FRAME_SIZE || record.attribute == INFO_MIN_STACK_SIZE)
            kernel->local_bytes = value > kernel->local_bytes ? value : kernel->local_bytes;
    }
}

static size_t shared_bytes(const reader *r, const char *name)
{
    const section *shared = find_section(r, ".nv.shared.", name);
    if (!shared)
        return 0;
    size_t reserved = r->cubin->arch.major >= 9 ? RESERVED_SHARED_BYTES : 0;
    return shared->bytes > reserved ? shared->bytes - reserved : 0;
}

static kr_status read_kernel(reader *r, uint32_t symbol, const char *name, kr__cubin_kernel *kernel)
{
    kernel->name = kr__arena_text(&r->cubin->arena, name, strlen(name));
    if (!kernel->name)
        return KR_FAIL(r->err, KR_OUT_OF_HOST_MEMORY, "no memory for a kernel's name");
    const section *text = find_section(r, ".text.", name);
    if (text && r->cubin->abi < 8) {
        kernel->registers = (int)(text->info >> 24);
        kernel->barriers = (int)(text->flags >> 20 & 0x7f);
    }
    kernel->shared_bytes = shared_bytes(r, name);
    read_symbol_facts(r, symbol, kernel);
    return read_kernel_info(r, kernel);
}

static kr_status read_symbols(reader *r, const section *table)
{
    if (table->link >= r->n_sections || r->sections[table->link].type == SHT_NOBITS)
        return KR_FAIL(r->err, KR_CORRUPT,
                       "cubin: the symbol table at offset 0x%llx names section %u of %u for its texts",
                       (unsigned long long)table->offset, table->link, r->n_sections);
    const section *names = &r->sections[table->link];
    size_t n = table->bytes / SYMBOL_BYTES;
    r->cubin->kernels = kr__arena_alloc(&r->cubin->arena, (n + 1) * sizeof *r->cubin->kernels);
    r->cubin->variables = kr__arena_alloc(&r->cubin->arena, (n + 1) * sizeof *r->cubin->variables);
    if (!r->cubin->kernels || !r->cubin->variables)
        return KR_FAIL(r->err, KR_OUT_OF_HOST_MEMORY, "no memory for %zu symbols", n);
    for (size_t i = 0; i < n; i++) {
        uint64_t at = table->offset + i * SYMBOL_BYTES;
        const char *name = text_at(r, names, kr__u32(&r->elf, at));
        unsigned type = kr__u8(&r->elf, at + 4) & 0xf, other = kr__u8(&r->elf, at + 5);
        unsigned index = kr__u16(&r->elf, at + 6);
        uint64_t bytes = kr__u64(&r->elf, at + 16);
        if (!name)
            return KR_FAIL(r->err, KR_CORRUPT,
                           "cubin: the name of symbol %zu (offset 0x%llx) is not in its table of %llu bytes",
                           i, (unsigned long long)at, (unsigned long long)names->bytes);
        if (type == STT_FUNC && other & STO_CUDA_ENTRY) {
            kr__cubin_kernel *kernel = &r->cubin->kernels[r->cubin->n_kernels++];
            kernel->code_bytes = bytes;
            kr_status status = read_kernel(r, (uint32_t)i, name, kernel);
            if (status)
                return status;
        } else if (type == STT_OBJECT && index && index < r->n_sections) {
            const char *of = r->sections[index].name;
            bool is_const = strncmp(of, ".nv.constant3", 13) == 0;
            if (!is_const && strncmp(of, ".nv.global", 10) != 0)
                continue;
            kr__cubin_variable *variable = &r->cubin->variables[r->cubin->n_variables++];
            *variable =
                (kr__cubin_variable){kr__arena_text(&r->cubin->arena, name, strlen(name)), bytes, is_const};
            if (!variable->name)
                return KR_FAIL(r->err, KR_OUT_OF_HOST_MEMORY, "no memory for a variable's name");
        }
    }
    return KR_OK;
}

/* ABI 8 keeps the 'a' of an architecture-specific target in .nv.compat. */
static void read_compat(reader *r)
{
    const section *compat = find_section(r, ".nv.compat", "");
    if (!compat || compat->type == SHT_NOBITS)
        return;
    info_record record;
    for (uint64_t at = compat->offset; next_record(r, &at, compat->offset + compat->bytes, &record);)
        if (record.attribute == COMPAT_ACCELERATED && record.format != FORMAT_SIZED &&
            (record.value & 0xff) == 1)
            r->cubin->arch.suffix = 'a';
}

static kr_status read_cubin(reader *r)
{
    kr_status status = read_header(r);
    if (!status)
        status = read_sections(r);
    if (status)
        return status;
    read_compat(r);
    const section *constants = find_section(r, ".nv.constant3", "");
    r->cubin->const_bytes = constants ? constants->bytes : 0;
    for (unsigned i = 0; i < r->n_sections; i++)
        if (r->sections[i].type == SHT_SYMTAB)
            return read_symbols(r, &r->sections[i]);
    return KR_FAIL(r->err, KR_CORRUPT, "cubin: a symbol table was expected among %u sections", r->n_sections);
}

kr_status kr__cubin_read(const void *image, size_t image_bytes, kr__cubin **ret_cubin, kr_error *err)
{
    kr__cubin *cubin = kr__alloc(1, sizeof *cubin, err);
    if (!cubin)
        return KR_OUT_OF_HOST_MEMORY;
    reader r = {.elf = {image, image_bytes, false}, .cubin = cubin, .err = err};
    kr_status status = read_cubin(&r);
    if (status)
        kr__cubin_free(&cubin);
    else
        *ret_cubin = cubin;
    return status;
}

void kr__cubin_free(kr__cubin **cubin)
{
    if (!cubin || !*cubin)
        return;
    kr__arena_free(&(*cubin)->arena);
    free(*cubin);
    *cubin = NULL;
}

bool kr__cubin_section(const void *image, size_t image_bytes, const char *name, const void **ret_data,
                       size_t *ret_bytes)
{
    kr__cubin cubin = {0};
    reader r = {.elf = {image, image_bytes, false}, .cubin = &cubin};
    const section *found = NULL;
    if (!read_header(&r) && !read_sections(&r))
        found = find_section(&r, name, "");
    bool usable = found && found->type != SHT_NOBITS;
    if (usable) {
        *ret_data = (const uint8_t *)image + found->offset;
        *ret_bytes = found->bytes;
    }
    kr__arena_free(&cubin.arena);
    return usable;
}
