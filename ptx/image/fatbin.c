/* SPDX-License-Identifier: Apache-2.0 */
/* Fatbins: layout as in fatbinary_section.h and as measured on the output of CUDA 13.0's tools. */
#include "ptx/image/image.h"

#include <lz4.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>
#include <zstd_errors.h>

#include "ptx/image/bytes.h"

enum {
    HEADER_BYTES = 16,
    HEADER_VERSION = 1,
    ENTRY_BYTES = 64, /* the fixed part; a name and an option block may follow */
    ENTRY_VERSION = 0x0101,
    KIND_PTX = 1,
    KIND_ELF = 2,
    KIND_LTOIR = 8,
    FLAG_64BIT = 0x1,
    FLAG_DEBUG = 0x2,
    FLAG_CUDA = 0x4,
    FLAG_OPENCL = 0x8,
    FLAG_LINUX = 0x10,
    FLAG_MAC = 0x20,
    FLAG_WINDOWS = 0x40,
    FLAG_LZ4 = 0x2000,
    FLAG_ZSTD = 0x8000,
    FLAG_A = 0x100000,
    FLAG_F = 0x200000,
    FLAG_COMPAT = 0x1000000, /* the option block holds the cubin's .nv.compat */
};
static const uint32_t header_magic = 0xba55ed50;

/* No kernel image comes near this; a damaged size must not become an allocation of it. */
static const uint64_t largest_image = (uint64_t)1 << 31;

const void *kr__fatbin_unwrap(const void *image)
{
    kr__bytes bytes = {image, 24, false};
    if (!kr__begins_with(image, 4, "\xb1\x43\x62\x46", 4))
        return NULL;
    return (const void *)(uintptr_t)kr__u64(&bytes, 8);
}

static const struct {
    unsigned number;
    kr_image_kind kind;
} kinds[] = {{KIND_PTX, KR_IMAGE_PTX}, {KIND_ELF, KR_IMAGE_CUBIN}, {KIND_LTOIR, KR_IMAGE_LTOIR}};

static kr_image_kind kind_of(unsigned number)
{
    for (size_t i = 0; i < KR_COUNT(kinds); i++)
        if (kinds[i].number == number)
            return kinds[i].kind;
    return KR_IMAGE_OTHER;
}

/* A text whose offset in the entry and length are at `where`; both 0: none. */
static kr_status read_text(kr__bytes *bytes, size_t at, size_t head, size_t where, kr__fatbin_text *ret_text,
                           kr_error *err)
{
    const uint64_t offset = kr__u32(bytes, where), n = kr__u32(bytes, where + 4);
    if (offset + n > head)
        return KR_FAIL(
            err, KR_CORRUPT,
            "fatbin: a text inside the entry's header of %zu bytes was expected at offset %zu, not one at "
            "%llu and %llu bytes long",
            head, where, (unsigned long long)offset, (unsigned long long)n);
    const char *text = (const char *)bytes->data + at + offset;
    *ret_text = (kr__fatbin_text){text, strnlen(text, n)};
    return KR_OK;
}

/* The name, and the text of the option block. */
static kr_status read_texts(kr__bytes *bytes, size_t at, size_t head, kr__fatbin_entry *entry, kr_error *err)
{
    enum { AT_OPTIONS = 0x14, AT_NAME = 0x20 };
    const uint64_t options = kr__u32(bytes, at + AT_OPTIONS);
    kr_status status = read_text(bytes, at, head, at + AT_NAME, &entry->name, err);
    if (status || !options)
        return status;
    if (options + 8 > head)
        return KR_FAIL(
            err, KR_CORRUPT,
            "fatbin: entry at offset %zu: options inside its header of %zu bytes were expected, not at %llu",
            at, head, (unsigned long long)options);
    if (entry->flags & FLAG_COMPAT) /* bytes of the cubin, no text */
        return KR_OK;
    return read_text(bytes, at, head, at + options, &entry->options, err);
}

/* One entry, whose fixed part is inside `bytes`. *ret_next: where the next one begins. */
static kr_status read_entry(kr__bytes *bytes, size_t at, size_t end, kr__fatbin_entry *ret_entry,
                            size_t *ret_next, kr_error *err)
{
    if (end - at < ENTRY_BYTES)
        return KR_FAIL(err, KR_CORRUPT,
                       "fatbin: an entry of at least %d bytes was expected at offset %zu, %zu are left",
                       ENTRY_BYTES, at, end - at);
    unsigned kind = kr__u16(bytes, at);
    uint64_t head = kr__u32(bytes, at + 0x04);
    uint64_t payload = kr__u64(bytes, at + 0x08);
    uint64_t packed = kr__u32(bytes, at + 0x10);
    unsigned sm = kr__u32(bytes, at + 0x1c);
    uint64_t flags = kr__u64(bytes, at + 0x28);
    uint64_t unpacked = kr__u64(bytes, at + 0x38);
    if (head < ENTRY_BYTES || head > end - at)
        return KR_FAIL(err, KR_CORRUPT,
                       "fatbin: entry at offset %zu: a header of %d to %zu bytes was expected, not %llu", at,
                       ENTRY_BYTES, end - at, (unsigned long long)head);
    if (payload > end - at - head)
        return KR_FAIL(err, KR_CORRUPT,
                       "fatbin: entry at offset %zu: a payload of at most %llu bytes was expected, not %llu",
                       at, (unsigned long long)(end - at - head), (unsigned long long)payload);
    *ret_next = at + head + payload;

    bool is_packed = (flags & (FLAG_LZ4 | FLAG_ZSTD)) != 0;
    if (is_packed && (packed > payload || unpacked > largest_image))
        return KR_FAIL(
            err, KR_CORRUPT,
            "fatbin: entry at offset %zu: %llu compressed bytes of a payload of %llu, %llu unpacked", at,
            (unsigned long long)packed, (unsigned long long)payload, (unsigned long long)unpacked);
    const kr_image_kind known = kind_of(kind);
    if ((sm == 0 && known != KR_IMAGE_OTHER) || sm > 9999)
        return KR_FAIL(err, KR_CORRUPT, "fatbin: entry at offset %zu: an SM number was expected, not %u", at,
                       sm);
    *ret_entry = (kr__fatbin_entry){
        .kind = known,
        .number = kind,
        .arch = {(int)sm / 10, (int)sm % 10,
                 flags & FLAG_A   ? 'a'
                 : flags & FLAG_F ? 'f'
                                  : 0},
        .isa = kind == KIND_PTX ? kr__u16(bytes, at + 0x1a) * 10 + kr__u16(bytes, at + 0x18) : 0,
        .compression = flags & FLAG_ZSTD  ? KR_ZSTD
                       : flags & FLAG_LZ4 ? KR_LZ4
                                          : KR_STORED,
        .debug = (flags & FLAG_DEBUG) != 0,
        .flags = flags,
        .payload = bytes->data + at + head,
        .payload_bytes = is_packed ? packed : payload,
        .bytes = is_packed ? unpacked : payload,
    };
    return known == KR_IMAGE_OTHER ? KR_OK : read_texts(bytes, at, head, ret_entry, err);
}

static kr_status read_entries(kr__bytes *bytes, size_t at, size_t end, kr__fatbin *fatbin, kr_error *err)
{
    while (at < end) {
        kr__fatbin_entry entry;
        kr_status status = read_entry(bytes, at, end, &entry, &at, err);
        if (status)
            return status;
        kr__fatbin_entry *grown = kr__grow(fatbin->entries, fatbin->n_entries, sizeof *grown);
        if (!grown)
            return KR_FAIL(err, KR_OUT_OF_HOST_MEMORY, "no memory for fatbin entry %zu", fatbin->n_entries);
        fatbin->entries = grown;
        grown[fatbin->n_entries++] = entry;
    }
    return KR_OK;
}

static kr_status add_one(const void *file, size_t at, size_t end, kr__fatbin *fatbin, size_t *ret_end,
                         kr_error *err)
{
    kr__bytes bytes = {file, end, false};
    if (!kr__bytes_hold(&bytes, at, HEADER_BYTES))
        return KR_FAIL(err, KR_CORRUPT,
                       "fatbin: a header of %d bytes was expected at offset %zu, %zu are left", HEADER_BYTES,
                       at, end - at);
    uint32_t magic = kr__u32(&bytes, at);
    unsigned version = kr__u16(&bytes, at + 4), head = kr__u16(&bytes, at + 6);
    uint64_t size = kr__u64(&bytes, at + 8);
    if (magic != header_magic)
        return KR_FAIL(err, KR_CORRUPT, "fatbin: magic 0x%08x was expected at offset %zu, not 0x%08x",
                       header_magic, at, magic);
    if (version != HEADER_VERSION || head < HEADER_BYTES)
        return KR_FAIL(
            err, KR_CORRUPT,
            "fatbin: version %d and a header of %d bytes were expected at offset %zu, not %u and %u",
            HEADER_VERSION, HEADER_BYTES, at + 4, version, head);
    if (!kr__bytes_hold(&bytes, at + head, size))
        return KR_FAIL(err, KR_CORRUPT,
                       "fatbin: the header at offset %zu promises %llu bytes of entries, %zu are there", at,
                       (unsigned long long)size, end - at);
    *ret_end = at + head + size;
    return read_entries(&bytes, at + head, *ret_end, fatbin, err);
}

kr_status kr__fatbin_next(const void *file, size_t *at, size_t end, kr__fatbin *fatbin, kr_error *err)
{
    const kr_status status = add_one(file, *at, end, fatbin, at, err);
    while (!status && *at < end && ((const uint8_t *)file)[*at] == 0)
        ++*at;
    return status;
}

kr_status kr__fatbin_read(const void *image, size_t image_bytes, kr__fatbin **ret_fatbin, kr_error *err)
{
    kr__fatbin *fatbin = kr__alloc(1, sizeof *fatbin, err);
    if (!fatbin)
        return KR_OUT_OF_HOST_MEMORY;
    size_t at = 0;
    kr_status status;
    do
        status = kr__fatbin_next(image, &at, image_bytes, fatbin, err);
    while (!status && at < image_bytes);
    if (status)
        kr__fatbin_free(&fatbin);
    else
        *ret_fatbin = fatbin;
    return status;
}

void kr__fatbin_free(kr__fatbin **fatbin)
{
    if (!fatbin || !*fatbin)
        return;
    free((*fatbin)->entries);
    free(*fatbin);
    *fatbin = NULL;
}

void kr__fatbin_flags(uint64_t flags, char *to, size_t bytes)
{
    static const struct {
        uint64_t flag;
        const char *name;
    } names[] = {{FLAG_64BIT, "64bit"},
                 {FLAG_DEBUG, "debug"},
                 {FLAG_CUDA, "cuda"},
                 {FLAG_OPENCL, "opencl"},
                 {FLAG_LINUX, "linux"},
                 {FLAG_MAC, "mac"},
                 {FLAG_WINDOWS, "windows"},
                 {FLAG_LZ4, "lz4"},
                 {FLAG_ZSTD, "zstd"},
                 {FLAG_A, "a"},
                 {FLAG_F, "f"},
                 {FLAG_COMPAT, "compat"}};
    *to = '\0';
    for (size_t i = 0; i < KR_COUNT(names); i++) {
        if (flags & names[i].flag)
            kr__append(to, bytes, "%s%s", *to ? " " : "", names[i].name);
        flags &= ~names[i].flag;
    }
    if (flags)
        kr__append(to, bytes, "%s0x%llx", *to ? " " : "", (unsigned long long)flags);
}

/* How many bytes came out; anything but entry->bytes is a failure. */
static size_t unpack(const kr__fatbin_entry *entry, char *to)
{
    if (entry->compression == KR_ZSTD)
        return ZSTD_decompress(to, entry->bytes, entry->payload, entry->payload_bytes);
    if (entry->compression == KR_LZ4)
        return (size_t)LZ4_decompress_safe(entry->payload, to, (int)entry->payload_bytes, (int)entry->bytes);
    memcpy(to, entry->payload, entry->bytes);
    return entry->bytes;
}

/* Before memory is asked for: can so few bytes become so many? An LZ4 sequence adds a byte for each 255; a
 * zstd block of 4 bytes is 128 KiB at most, and its frame has the size. */
static bool is_possible(const kr__fatbin_entry *entry)
{
    switch (entry->compression) {
    case KR_LZ4:
        return entry->bytes / 255 <= entry->payload_bytes;
    case KR_ZSTD: {
        const unsigned long long size = ZSTD_getFrameContentSize(entry->payload, entry->payload_bytes);
        return (size == entry->bytes || size == ZSTD_CONTENTSIZE_UNKNOWN) &&
               entry->bytes / (32 << 10) <= entry->payload_bytes;
    }
    default:
        return true;
    }
}

/* n: what unpack() returned. zstd takes memory of its own. */
static kr_status fail_unpack(const kr__fatbin_entry *entry, size_t n, kr_error *err)
{
    if (entry->compression == KR_ZSTD && ZSTD_getErrorCode(n) == ZSTD_error_memory_allocation)
        return KR_FAIL(err, KR_OUT_OF_HOST_MEMORY, "no memory to unpack a zstd payload of %zu bytes",
                       entry->payload_bytes);
    return KR_FAIL(err, KR_CORRUPT,
                   "fatbin: the %s payload of %zu bytes does not unpack to the %zu bytes promised",
                   entry->compression == KR_ZSTD ? "zstd" : "LZ4", entry->payload_bytes, entry->bytes);
}

kr_status kr__fatbin_unpack(const kr__fatbin_entry *entry, char **ret_data, size_t *ret_bytes, kr_error *err)
{
    if (entry->bytes >= largest_image)
        return KR_FAIL(err, KR_CORRUPT, "fatbin: an image of %zu bytes", entry->bytes);
    if (!is_possible(entry))
        return fail_unpack(entry, 0, err);
    char *data = kr__alloc(entry->bytes + 1, 1, err);
    if (!data)
        return KR_OUT_OF_HOST_MEMORY;
    const size_t n = unpack(entry, data);
    if (n != entry->bytes) {
        free(data);
        return fail_unpack(entry, n, err);
    }
    *ret_bytes = entry->kind == KR_IMAGE_PTX ? strnlen(data, entry->bytes) : entry->bytes;
    *ret_data = data;
    return KR_OK;
}

static kr_status check_packed(const kr__fatbin_entry *entry, kr_error *err)
{
    char *data;
    size_t bytes;
    if (entry->compression != KR_LZ4)
        return KR_OK;
    const kr_status status = kr__fatbin_unpack(entry, &data, &bytes, err);
    if (!status)
        free(data);
    return status;
}

/* Driver 580.159.04 crashes on wrong LZ4, and answers 999 to wrong zstd. */
kr_status kr__fatbin_check(const void *image, size_t image_bytes, kr_error *err)
{
    kr__fatbin *fatbin;
    kr_status status = kr__fatbin_read(image, kr__image_bytes(image, image_bytes), &fatbin, err);
    if (status)
        return status;
    for (size_t i = 0; i < fatbin->n_entries && !status; i++)
        status = check_packed(&fatbin->entries[i], err);
    kr__fatbin_free(&fatbin);
    return status;
}

/* ---- writing ---- */

static void put(uint8_t *to, size_t offset, uint64_t value, size_t bytes)
{
    memcpy(to + offset, &value, bytes);
}

static size_t padded(size_t bytes)
{
    return (bytes + 7) & ~(size_t)7;
}

/* The option block of an entry: two words, an empty text of assembler options with its NUL, and from sm_100
 * on a copy of the cubin's .nv.compat, whose length the second word tells. A plain cubin before that has
 * none. */
enum { OPTION_BYTES = 8 + 1 };

typedef struct layout {
    bool has_options;
    const void *compat;
    size_t compat_bytes, head_bytes, payload_bytes;
} layout;

static layout plan(const kr__fatbin_part *part)
{
    layout plan = {.has_options = part->kind == KR_IMAGE_PTX};
    if (part->kind == KR_IMAGE_CUBIN && part->arch.major >= 10)
        plan.has_options =
            kr__cubin_section(part->data, part->bytes, ".nv.compat", &plan.compat, &plan.compat_bytes);
    plan.head_bytes = ENTRY_BYTES + (plan.has_options ? padded(OPTION_BYTES + plan.compat_bytes) : 0);
    bool needs_nul =
        part->kind == KR_IMAGE_PTX && (!part->bytes || ((const char *)part->data)[part->bytes - 1]);
    plan.payload_bytes = padded(part->bytes + needs_nul);
    return plan;
}

static void write_entry(uint8_t *to, const kr__fatbin_part *part, const layout *plan)
{
    bool is_ptx = part->kind == KR_IMAGE_PTX;
    uint64_t flags = FLAG_64BIT | FLAG_LINUX;
    flags |= part->arch.suffix == 'a' ? FLAG_A : part->arch.suffix == 'f' ? FLAG_F : 0;
    flags |= plan->compat ? FLAG_COMPAT : 0;
    put(to, 0x00, is_ptx ? KIND_PTX : KIND_ELF, 2);
    put(to, 0x02, ENTRY_VERSION, 2);
    put(to, 0x04, plan->head_bytes, 4);
    put(to, 0x08, plan->payload_bytes, 8);
    put(to, 0x14, plan->has_options ? ENTRY_BYTES : 0, 4);
    put(to, 0x18, is_ptx ? (unsigned)part->isa % 10 : ((const uint8_t *)part->data)[8],
        2); /* ELF: its ABI, 1 */
    put(to, 0x1a, is_ptx ? (unsigned)part->isa / 10 : 1, 2);
    put(to, 0x1c, (unsigned)(part->arch.major * 10 + part->arch.minor), 4);
    put(to, 0x28, flags, 8);
    if (plan->has_options) {
        put(to, 0x40, ENTRY_BYTES + 8, 4);
        put(to, 0x44, plan->compat_bytes, 4);
    }
    if (plan->compat)
        memcpy(to + ENTRY_BYTES + OPTION_BYTES, plan->compat, plan->compat_bytes);
    memcpy(to + plan->head_bytes, part->data, part->bytes);
}

kr_status kr__fatbin_write(const kr__fatbin_part *parts, size_t n_parts, void **ret_image, size_t *ret_bytes,
                           kr_error *err)
{
    size_t bytes = HEADER_BYTES;
    for (size_t i = 0; i < n_parts; i++) {
        if (parts[i].kind != KR_IMAGE_PTX &&
            (parts[i].kind != KR_IMAGE_CUBIN || parts[i].bytes < ENTRY_BYTES))
            return KR_FAIL(err, KR_INVALID_ARGUMENT, "part %zu of a fatbin must be PTX or a cubin", i);
        layout entry = plan(&parts[i]);
        bytes += entry.head_bytes + entry.payload_bytes;
    }
    uint8_t *image = kr__alloc(bytes, 1, err);
    if (!image)
        return KR_OUT_OF_HOST_MEMORY;
    put(image, 0, header_magic, 4);
    put(image, 4, HEADER_VERSION, 2);
    put(image, 6, HEADER_BYTES, 2);
    put(image, 8, bytes - HEADER_BYTES, 8);
    size_t at = HEADER_BYTES;
    for (size_t i = 0; i < n_parts; i++) {
        layout entry = plan(&parts[i]);
        write_entry(image + at, &parts[i], &entry);
        at += entry.head_bytes + entry.payload_bytes;
    }
    *ret_image = image;
    *ret_bytes = bytes;
    return KR_OK;
}
