/* SPDX-License-Identifier: Apache-2.0 */
/* Cubins: ELF64 files of machine 190. Layout as measured on the output of CUDA 11 (ABI 7) and 13.0 (ABI 8).
 */
#include "ptx/image/image.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "ptx/image/sections.h"

enum {
    MACHINE_CUDA = 190,
    STO_CUDA_ENTRY = 0x10,
    STT_CUDA_OBJECT = 13,          /* what relocatable ones have for STT_OBJECT */
    RESERVED_SHARED_BYTES = 0x400, /* part of .nv.shared.* from sm_90 on, once it is linked */
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
    INFO_CUDA_API_VERSION = 0x37,
    INFO_CTA_PER_CLUSTER = 0x3d,
    INFO_MAX_CLUSTER_RANK = 0x3f,
    INFO_KPARAM_V2 = 0x45,
    INFO_NUM_BARRIERS = 0x4c,
    COMPAT_ACCELERATED = 0x09,
};
enum { FORMAT_NONE = 1, FORMAT_BYTE = 2, FORMAT_HALF = 3, FORMAT_SIZED = 4 };

typedef struct reader {
    kr__elf elf;
    kr__cubin *cubin;
    kr_image_kernel *kernels; /* the cubin's, to be filled */
    kr_image_variable *variables;
    size_t n_symbols;
    uint32_t *kernel_of; /* a symbol's kernel + 1; 0: it is none */
    kr_status status;    /* of what answers no status itself */
    kr_error *err;
} reader;

/* From ABI 8 (all of CUDA 13, and 12.8 for sm_100 and later) on it is in the second byte of the flags. */
static unsigned sm_of(unsigned abi, uint32_t flags)
{
    return abi >= 8 ? flags >> 8 & 0xff : flags & 0xff;
}

/* The bit of an architecture-specific target, which CUDA 13 does not use any more. */
static char suffix_of(unsigned abi, uint32_t flags)
{
    return flags & (abi >= 8 ? 1u << 3 : 1u << 11) ? 'a' : 0;
}

unsigned kr__cubin_sm(const void *image, size_t image_bytes)
{
    kr__bytes elf = {image, image_bytes, false};
    const unsigned abi = kr__u8(&elf, EI_ABIVERSION);
    return sm_of(abi, kr__u32(&elf, offsetof(Elf64_Ehdr, e_flags)));
}

/* As 130 for 13.0; what is no version is not known. */
static int toolkit_of(uint32_t number)
{
    return number >= 100 && number < 1000 ? (int)(number / 10 * 1000 + number % 10 * 10) : 0;
}

static kr_status read_elf(const void *image, size_t image_bytes, reader *r)
{
    kr__elf *elf = &r->elf;
    kr__cubin *cubin = r->cubin;
    const kr_status status = kr__elf_read("cubin", image, image_bytes, &cubin->arena, elf, r->err);
    if (status)
        return status;
    if (!elf->wide)
        return KR_FAIL(r->err, KR_CORRUPT, "cubin: class 2 (64-bit) was expected at offset 4, not 1");
    if (elf->machine != MACHINE_CUDA)
        return KR_FAIL(r->err, KR_CORRUPT, "cubin: machine %d was expected at offset 0x12, not %u",
                       MACHINE_CUDA, elf->machine);
    const unsigned sm = sm_of(elf->abi, elf->flags);
    if (sm < 10)
        return KR_FAIL(r->err, KR_CORRUPT,
                       "cubin: an SM number was expected in the flags at offset 0x30 (0x%08x)", elf->flags);
    cubin->abi = (int)elf->abi;
    cubin->toolkit = elf->abi < 8 ? toolkit_of(elf->version) : 0; /* its kernels say it too */
    cubin->linked = elf->type == ET_EXEC;
    cubin->virtual_arch = (int)(elf->abi >= 8 ? sm : elf->flags >> 16 & 0xff);
    cubin->arch = (kr_cc){(int)sm / 10, (int)sm % 10, suffix_of(elf->abi, elf->flags)};
    return KR_OK;
}

/* A section's contents, where it is there and has some. */
static const kr__elf_section *find_contents(const reader *r, const char *prefix, const char *name)
{
    const kr__elf_section *found = kr__elf_find(&r->elf, prefix, name);
    return found && found->has_contents ? found : NULL;
}

/* One record of .nv.info or .nv.compat. `data` is at the payload; its offset is in the image. */
typedef struct info_record {
    unsigned format, attribute;
    uint64_t data;
    unsigned value; /* of the short formats */
    unsigned bytes; /* of the sized one */
} info_record;

/* The next record before `end`. false: there is none; then r->status says whether it was damage. */
static bool next_record(reader *r, uint64_t *at, uint64_t end, info_record *ret)
{
    kr__bytes *bytes = &r->elf.bytes;
    const uint64_t left = end - *at;
    if (left == 0)
        return false;
    *ret = (info_record){kr__u8(bytes, *at), kr__u8(bytes, *at + 1), *at + 4, kr__u16(bytes, *at + 2), 0};
    const bool known = ret->format >= FORMAT_NONE && ret->format <= FORMAT_SIZED;
    ret->bytes = ret->format == FORMAT_SIZED ? ret->value : 0;
    if (!known || left < 4 || left - 4 < ret->bytes) {
        r->status =
            KR_FAIL(r->err, KR_CORRUPT,
                    "cubin: a record of format %d to %d was expected at offset 0x%llx in the %llu bytes "
                    "left, not one of format %u with %u bytes",
                    FORMAT_NONE, FORMAT_SIZED, (unsigned long long)*at, (unsigned long long)left, ret->format,
                    ret->bytes);
        return false;
    }
    if (ret->format == FORMAT_BYTE)
        ret->value &= 0xff;
    *at += 4 + ret->bytes;
    return true;
}

#define FOR_RECORDS(r, section, record)    \
    for (uint64_t at_ = (section)->offset; \
         next_record((r), &at_, (section)->offset + (section)->bytes, &(record));)

static bool is_param(const info_record *record)
{
    return (record->attribute == INFO_KPARAM || record->attribute == INFO_KPARAM_V2) && record->bytes >= 12;
}

/* The parameters: records come in any order, one for each. */
static kr_status read_params(reader *r, const kr__elf_section *info, kr_image_kernel *kernel)
{
    info_record record;
    kr__bytes *bytes = &r->elf.bytes;
    FOR_RECORDS(r, info, record)
    kernel->n_params += is_param(&record);
    kr_image_param *params = kr__arena_alloc(&r->cubin->arena, (kernel->n_params + 1) * sizeof *params);
    if (!params)
        return KR_FAIL(r->err, KR_OUT_OF_HOST_MEMORY, "no memory for %zu parameters", kernel->n_params);
    kernel->params = params;
    FOR_RECORDS(r, info, record)
    {
        if (!is_param(&record))
            continue;
        const unsigned ordinal = kr__u16(bytes, record.data + 4);
        const uint32_t last = kr__u32(bytes, record.data + 8);
        if (ordinal >= kernel->n_params)
            return KR_FAIL(r->err, KR_CORRUPT,
                           "cubin: the number of one of %zu parameters was expected at offset 0x%llx, not %u",
                           kernel->n_params, (unsigned long long)record.data + 4, ordinal);
        params[ordinal] = (kr_image_param){kr__u16(bytes, record.data + 6),
                                           record.attribute == INFO_KPARAM ? last >> 18 : last};
    }
    return r->status;
}

static void read_three(reader *r, const info_record *record, unsigned ret[3])
{
    for (unsigned i = 0; i < 3 && record->bytes >= 12; i++)
        ret[i] = kr__u32(&r->elf.bytes, record->data + 4 * i);
}

static void read_kernel_record(reader *r, const info_record *record, kr_image_kernel *kernel)
{
    switch (record->attribute) {
    case INFO_MAX_THREADS:
        read_three(r, record, kernel->max_threads);
        break;
    case INFO_REQNTID:
        read_three(r, record, kernel->required_threads);
        break;
    case INFO_CUDA_API_VERSION:
        r->cubin->toolkit = record->bytes >= 4 ? toolkit_of(kr__u32(&r->elf.bytes, record->data)) : 0;
        break;
    case INFO_CTA_PER_CLUSTER:
        read_three(r, record, kernel->cluster);
        break;
    case INFO_MAX_CLUSTER_RANK:
        kernel->max_cluster = record->bytes >= 4 ? kr__u32(&r->elf.bytes, record->data) : 0;
        break;
    case INFO_CBANK_PARAM_SIZE:
        kernel->param_bytes = record->value;
        break;
    case INFO_MAXREG_COUNT:
        kernel->max_registers = record->value < 0xff ? (int)record->value : 0;
        break;
    case INFO_NUM_BARRIERS:
        kernel->barriers = (int)record->value;
        break;
    }
}

static kr_status read_kernel_info(reader *r, kr_image_kernel *kernel)
{
    const kr__elf_section *info = find_contents(r, ".nv.info.", kernel->name);
    if (!info)
        return KR_OK;
    info_record record;
    r->status = kr__elf_spend(&r->elf, info->bytes, r->err);
    if (r->status)
        return r->status;
    FOR_RECORDS(r, info, record)
    read_kernel_record(r, &record, kernel);
    return r->status ? r->status : read_params(r, info, kernel);
}

/* .nv.info of the whole image: pairs of a symbol and a number. */
static kr_status read_symbol_facts(reader *r)
{
    const kr__elf_section *info = find_contents(r, ".nv.info", "");
    info_record record;
    if (!info)
        return KR_OK;
    FOR_RECORDS(r, info, record)
    {
        const uint32_t symbol = record.bytes >= 8 ? kr__u32(&r->elf.bytes, record.data) : UINT32_MAX;
        if (symbol >= r->n_symbols || !r->kernel_of[symbol])
            continue;
        kr_image_kernel *kernel = &r->kernels[r->kernel_of[symbol] - 1];
        const uint32_t value = kr__u32(&r->elf.bytes, record.data + 4);
        if (record.attribute == INFO_REGCOUNT)
            kernel->registers = (int)(value & 0xffff);
        else if (record.attribute == INFO_FRAME_SIZE || record.attribute == INFO_MIN_STACK_SIZE)
            kernel->local_bytes = value > kernel->local_bytes ? value : kernel->local_bytes;
    }
    return r->status;
}

static size_t shared_bytes(const reader *r, const char *name)
{
    const kr__elf_section *shared = kr__elf_find(&r->elf, ".nv.shared.", name);
    if (!shared)
        return 0;
    const size_t reserved = r->cubin->linked && r->cubin->arch.major >= 9 ? RESERVED_SHARED_BYTES : 0;
    return shared->bytes > reserved ? shared->bytes - reserved : 0;
}

static kr_status read_kernel(reader *r, kr_image_kernel *kernel)
{
    const kr__elf_section *text = kr__elf_find(&r->elf, ".text.", kernel->name);
    if (text && r->cubin->abi < 8) {
        kernel->registers = (int)(text->info >> 24);
        kernel->barriers = (int)(text->flags >> 20 & 0x7f);
    }
    kernel->shared_bytes = shared_bytes(r, kernel->name);
    return read_kernel_info(r, kernel);
}

typedef enum symbol_kind { SYMBOL_OTHER, SYMBOL_KERNEL, SYMBOL_VARIABLE, SYMBOL_CONSTANT } symbol_kind;

static symbol_kind kind_of(reader *r, uint64_t at)
{
    kr__bytes *bytes = &r->elf.bytes;
    const unsigned type = kr__u8(bytes, at + offsetof(Elf64_Sym, st_info)) & 0xf;
    const unsigned index = kr__u16(bytes, at + offsetof(Elf64_Sym, st_shndx));
    if (type == STT_FUNC)
        return kr__u8(bytes, at + offsetof(Elf64_Sym, st_other)) & STO_CUDA_ENTRY ? SYMBOL_KERNEL
                                                                                  : SYMBOL_OTHER;
    if ((type != STT_OBJECT && type != STT_CUDA_OBJECT) || !index || index >= r->elf.n_sections)
        return SYMBOL_OTHER;
    const char *of = r->elf.sections[index].name;
    return strncmp(of, ".nv.constant3", 13) == 0 ? SYMBOL_CONSTANT
           : strncmp(of, ".nv.global", 10) == 0  ? SYMBOL_VARIABLE
                                                 : SYMBOL_OTHER;
}

/* A symbol's name, copied. NULL: r->status says why. */
static const char *name_of(reader *r, uint64_t at, const kr__elf_section *names)
{
    const char *name = kr__elf_text(&r->elf, names, kr__u32(&r->elf.bytes, at));
    const size_t n = name ? strlen(name) : 0;
    if ((r->status = kr__elf_spend(&r->elf, n, r->err)))
        return NULL;
    const char *copy = name ? kr__arena_text(&r->cubin->arena, name, n) : NULL;
    if (!name)
        r->status =
            KR_FAIL(r->err, KR_CORRUPT,
                    "cubin: the name of the symbol at offset 0x%llx is not in its table of %llu bytes",
                    (unsigned long long)at, (unsigned long long)names->bytes);
    else if (!copy)
        r->status = KR_FAIL(r->err, KR_OUT_OF_HOST_MEMORY, "no memory for the name of a symbol");
    return copy;
}

static kr_status make_room(reader *r, const kr__elf_section *table)
{
    size_t n_kernels = 0, n_variables = 0;
    r->n_symbols = table->bytes / sizeof(Elf64_Sym);
    for (size_t i = 0; i < r->n_symbols; i++) {
        const symbol_kind kind = kind_of(r, table->offset + i * sizeof(Elf64_Sym));
        n_kernels += kind == SYMBOL_KERNEL;
        n_variables += kind == SYMBOL_VARIABLE || kind == SYMBOL_CONSTANT;
    }
    r->kernels = kr__arena_alloc(&r->cubin->arena, (n_kernels + 1) * sizeof *r->kernels);
    r->variables = kr__arena_alloc(&r->cubin->arena, (n_variables + 1) * sizeof *r->variables);
    r->kernel_of = kr__arena_alloc(&r->cubin->arena, (r->n_symbols + 1) * sizeof *r->kernel_of);
    r->cubin->kernels = r->kernels;
    r->cubin->variables = r->variables;
    return r->kernels && r->variables && r->kernel_of
               ? KR_OK
               : KR_FAIL(r->err, KR_OUT_OF_HOST_MEMORY, "no memory for %zu symbols", r->n_symbols);
}

static kr_status read_symbol(reader *r, size_t i, uint64_t at, const kr__elf_section *names)
{
    const unsigned index = kr__u16(&r->elf.bytes, at + offsetof(Elf64_Sym, st_shndx));
    if (index >= r->elf.n_sections && index < SHN_LORESERVE)
        return KR_FAIL(r->err, KR_CORRUPT,
                       "cubin: the symbol at offset 0x%llx was expected in one of %zu sections, not in %u",
                       (unsigned long long)at, r->elf.n_sections, index);
    const symbol_kind kind = kind_of(r, at);
    const size_t bytes = kr__u64(&r->elf.bytes, at + offsetof(Elf64_Sym, st_size));
    const char *name = kind == SYMBOL_OTHER ? NULL : name_of(r, at, names);
    if (!name)
        return r->status;
    if (kind != SYMBOL_KERNEL) {
        r->variables[r->cubin->n_variables++] = (kr_image_variable){name, bytes, kind == SYMBOL_CONSTANT};
        return KR_OK;
    }
    kr_image_kernel *kernel = &r->kernels[r->cubin->n_kernels++];
    kernel->name = name;
    kernel->code_bytes = bytes;
    r->kernel_of[i] = (uint32_t)r->cubin->n_kernels;
    return read_kernel(r, kernel);
}

/* What is relocated in a kernel's code, NULL: nothing. */
static const kr__elf_section *relocations_of(const reader *r, const kr_image_kernel *kernel)
{
    return find_contents(r, ".rela.text.", kernel->name);
}

static bool is_undefined_function(reader *r, uint64_t at)
{
    const unsigned info = kr__u8(&r->elf.bytes, at + offsetof(Elf64_Sym, st_info));
    return ELF64_ST_BIND(info) == STB_GLOBAL && ELF64_ST_TYPE(info) == STT_FUNC &&
           kr__u16(&r->elf.bytes, at + offsetof(Elf64_Sym, st_shndx)) == SHN_UNDEF;
}

static kr_status read_references(reader *r, const kr__elf_section *table, kr__cubin_reference *to)
{
    kr__cubin *cubin = r->cubin;
    const kr__elf_section *names = &r->elf.sections[table->link];
    for (size_t k = 0; k < cubin->n_kernels; k++) {
        const kr__elf_section *rows = relocations_of(r, &cubin->kernels[k]);
        const size_t n = rows ? rows->bytes / sizeof(Elf64_Rela) : 0;
        for (size_t i = 0; i < n; i++) {
            const uint64_t row = rows->offset + i * sizeof(Elf64_Rela);
            const size_t symbol = ELF64_R_SYM(kr__u64(&r->elf.bytes, row + offsetof(Elf64_Rela, r_info)));
            const uint64_t at = table->offset + symbol * sizeof(Elf64_Sym);
            if (symbol >= r->n_symbols || !is_undefined_function(r, at))
                continue;
            to[cubin->n_references] = (kr__cubin_reference){k, name_of(r, at, names)};
            if (!to[cubin->n_references++].function)
                return r->status;
        }
    }
    return KR_OK;
}

/* A linked cubin has all it needs but the driver's own functions. */
static kr_status find_references(reader *r, const kr__elf_section *table)
{
    size_t most = 0;
    for (size_t k = 0; k < r->cubin->n_kernels && !r->cubin->linked; k++) {
        const kr__elf_section *rows = relocations_of(r, &r->cubin->kernels[k]);
        most += rows ? rows->bytes / sizeof(Elf64_Rela) : 0;
    }
    kr__cubin_reference *room = most ? kr__arena_alloc(&r->cubin->arena, most * sizeof *room) : NULL;
    if (most && !room)
        return KR_FAIL(r->err, KR_OUT_OF_HOST_MEMORY, "no memory for %zu relocations", most);
    r->cubin->references = room;
    return most ? read_references(r, table, room) : KR_OK;
}

static kr_status read_symbols(reader *r, const kr__elf_section *table)
{
    const kr__elf *elf = &r->elf;
    if (table->link >= elf->n_sections || !elf->sections[table->link].has_contents)
        return KR_FAIL(r->err, KR_CORRUPT,
                       "cubin: the symbol table at offset 0x%llx names section %u of %zu for its texts",
                       (unsigned long long)table->offset, table->link, elf->n_sections);
    kr_status status = make_room(r, table);
    for (size_t i = 0; i < r->n_symbols && !status; i++)
        status = read_symbol(r, i, table->offset + i * sizeof(Elf64_Sym), &elf->sections[table->link]);
    if (!status)
        status = find_references(r, table);
    return status ? status : read_symbol_facts(r);
}

/* From CUDA 13.0 on the 'a' of an architecture-specific target is kept in .nv.compat. */
static kr_status read_compat(reader *r)
{
    const kr__elf_section *compat = find_contents(r, ".nv.compat", "");
    info_record record;
    if (!compat)
        return KR_OK;
    FOR_RECORDS(r, compat, record)
    if (record.attribute == COMPAT_ACCELERATED && record.format != FORMAT_SIZED && (record.value & 0xff) == 1)
        r->cubin->arch.suffix = 'a';
    return r->status;
}

/* A note of .note.nv.tkinfo (CUDA 12.8 and later, one a tool that had a hand in it): the bytes of its owner,
 * of its contents, and a number; the owner; the contents, which are a version, the places of five texts and
 * these. */
enum { NOTE_HEAD = 12, NOTE_OPTIONS = 20, NOTE_TEXTS = 24 };

/* The options of the tool, the last of its texts. NULL: r->status says what is wrong. */
static const char *next_options(reader *r, uint64_t *at, uint64_t end)
{
    kr__bytes *bytes = &r->elf.bytes;
    const uint64_t left = end - *at, owner = ((uint64_t)kr__u32(bytes, *at) + 3) / 4 * 4,
                   n = ((uint64_t)kr__u32(bytes, *at + 4) + 3) / 4 * 4, contents = *at + NOTE_HEAD + owner;
    const char *options = NULL;
    if (left >= NOTE_HEAD && owner + n <= left - NOTE_HEAD && n >= NOTE_TEXTS) {
        const kr__elf_section texts = {.offset = contents + NOTE_TEXTS, .bytes = n - NOTE_TEXTS};
        options = kr__elf_text(&r->elf, &texts, kr__u32(bytes, contents + NOTE_OPTIONS));
    }
    if (!options)
        r->status = KR_FAIL(
            r->err, KR_CORRUPT,
            "cubin: a note with a tool's options was expected at offset 0x%llx in the %llu bytes left",
            (unsigned long long)*at, (unsigned long long)left);
    *at = contents + n;
    return options;
}

/* "-arch sm_100f". */
static bool read_target(const char *options, kr_cc *ret_target)
{
    static const char option[] = "-arch ";
    char word[KR_CC_TEXT_BYTES];
    const char *at = strstr(options, option);
    kr__format(word, sizeof word, "%s", at ? at + strlen(option) : "");
    word[strcspn(word, " ")] = '\0';
    return at && !kr_cc_parse(word, ret_target, NULL);
}

/* The 'f' of a family's target is told nowhere else in a cubin: it is otherwise, byte for byte, the one for
 * the plain target. What was linked has the linker's note before those of its parts. */
static kr_status read_notes(reader *r)
{
    const kr__elf_section *notes = find_contents(r, ".note.nv.tkinfo", "");
    const uint64_t end = notes ? notes->offset + notes->bytes : 0;
    for (uint64_t at = notes ? notes->offset : 0; at < end;) {
        kr_cc target;
        const char *options = next_options(r, &at, end);
        if (!options)
            return r->status;
        if (read_target(options, &target) && !kr_cc_compare(target, r->cubin->arch)) {
            r->cubin->arch.suffix = target.suffix;
            return KR_OK;
        }
    }
    return KR_OK;
}

static kr_status read_cubin(const void *image, size_t image_bytes, reader *r)
{
    kr_status status = read_elf(image, image_bytes, r);
    if (!status)
        status = read_compat(r);
    if (!status && !r->cubin->arch.suffix)
        status = read_notes(r);
    if (status)
        return status;
    const kr__elf_section *constants = kr__elf_find(&r->elf, ".nv.constant3", "");
    r->cubin->const_bytes = constants ? constants->bytes : 0;
    for (size_t i = 0; i < r->elf.n_sections; i++)
        if (r->elf.sections[i].type == SHT_SYMTAB)
            return read_symbols(r, &r->elf.sections[i]);
    return KR_FAIL(r->err, KR_CORRUPT, "cubin: a symbol table was expected among %zu sections",
                   r->elf.n_sections);
}

kr_status kr__cubin_read(const void *image, size_t image_bytes, kr__cubin **ret_cubin, kr_error *err)
{
    kr__cubin *cubin = kr__alloc(1, sizeof *cubin, err);
    if (!cubin)
        return KR_OUT_OF_HOST_MEMORY;
    reader r = {.cubin = cubin, .err = err};
    kr_status status = read_cubin(image, image_bytes, &r);
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
    reader r = {.cubin = &cubin};
    const kr__elf_section *found = NULL;
    if (!read_elf(image, image_bytes, &r))
        found = find_contents(&r, name, "");
    if (found) {
        *ret_data = (const uint8_t *)image + found->offset;
        *ret_bytes = found->bytes;
    }
    kr__arena_free(&cubin.arena);
    return found != NULL;
}
