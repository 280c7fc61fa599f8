/* SPDX-License-Identifier: Apache-2.0 */
/* Which kind of image, and how long it is. */
#include "ptx/image/image.h"

#include <string.h>

#include "ptx/image/sections.h"

enum { ELF_HEADER_BYTES = 64, FATBIN_HEADER_BYTES = 16 };

#define ELF_MAGIC "\177ELF"
#define FATBIN_MAGIC "\x50\xed\x55\xba"
#define FATBIN_WRAPPER_MAGIC "\xb1\x43\x62\x46"
#define LTOIR_MAGIC "\xed\x43\x4e\x7f"

/* What is given for an image and is none. */
static const struct {
    const char *begins, *message, *advice;
} others[] = {
    {".target", "PTX must begin with .version", "Write .version first, then .target."},
    {".visible", "PTX must begin with .version", "Write .version and .target before all else."},
    {"\xef\xbb\xbf", "the text begins with a byte order mark, which drivers refuse",
     "Save it as UTF-8 without the mark."},
    {"\xff\xfe", "the text is UTF-16, which drivers refuse", "Save it as UTF-8 without a mark."},
    {"\xfe\xff", "the text is UTF-16, which drivers refuse", "Save it as UTF-8 without a mark."},
    {FATBIN_WRAPPER_MAGIC, "a fatbin wrapper holds an address, not an image",
     "Pass what its data points at."},
    {"KRPACK\x1a\n", "a pack is no image, but holds some", "Give it to kr_registry_add_pack."},
    {"!<arch>\n", "an archive is no image, but may hold some", "See `kregistry inspect` for what it holds."},
    {"BC\xc0\xde", "LLVM bitcode, which drivers do not read", "Compile it to PTX first."},
    {"\x1f\x8b", "the bytes are packed by gzip", "Unpack them first."},
    {"\x28\xb5\x2f\xfd", "the bytes are packed by zstd", "Unpack them first."},
};

static kr_status fail_other(kr_error *err, const char *message, const char *advice)
{
    KR_FAIL(err, KR_CORRUPT, "%s", message);
    kr__error_advice(err, "%s", advice);
    return KR_CORRUPT;
}

/* No image: say what it looks like. */
static kr_status fail_unknown(const char *image, size_t bytes, kr_error *err)
{
    enum { LONGEST_NAME = 256, SHOWN = 80 };
    for (size_t i = 0; i < KR_COUNT(others); i++)
        if (kr__begins_with(image, bytes, others[i].begins, strlen(others[i].begins)))
            return fail_other(err, others[i].message, others[i].advice);
    const size_t shown = bytes < LONGEST_NAME ? bytes : LONGEST_NAME, n = strnlen(image, shown);
    if (n + 1 >= shown && memmem(image, bytes, "__global__", 10))
        return fail_other(err, "the text is CUDA source, which no driver reads", "Compile it first.");
    bool text = n > 0 && n < LONGEST_NAME && kr__utf8_good(image, n) == n;
    for (size_t i = 0; i < n; i++)
        text = text && (unsigned char)image[i] >= ' ';
    if (text) {
        KR_FAIL(err, KR_CORRUPT, "not an image but the text \"%.*s\"%s", (int)(n < SHOWN ? n : SHOWN), image,
                kr__is_like_a_path(image, bytes) ? ": it looks like a file name" : "");
        kr__error_advice(err, "Pass the bytes of the file, not its name.");
        return KR_CORRUPT;
    }
    kr__bytes found = {(const uint8_t *)image, bytes, false};
    return KR_FAIL(err, KR_CORRUPT,
                   "%zu bytes beginning %02x %02x %02x %02x are no PTX, cubin, fatbin or LTO-IR", bytes,
                   kr__u8(&found, 0), kr__u8(&found, 1), kr__u8(&found, 2), kr__u8(&found, 3));
}

kr_status kr__image_kind(const void *image, size_t image_bytes, kr_image_kind *ret_kind, kr_error *err)
{
    kr__ptx_head head;
    if (!image || !image_bytes)
        return KR_FAIL(err, KR_CORRUPT, "the image is empty");
    if (kr__begins_with(image, image_bytes, ELF_MAGIC, 4))
        *ret_kind = KR_IMAGE_CUBIN;
    else if (kr__begins_with(image, image_bytes, FATBIN_MAGIC, 4))
        *ret_kind = KR_IMAGE_FATBIN;
    else if (kr__begins_with(image, image_bytes, LTOIR_MAGIC, 4))
        *ret_kind = KR_IMAGE_LTOIR;
    else if (kr__ptx_head_read(image, image_bytes, &head))
        *ret_kind = KR_IMAGE_PTX;
    else
        return fail_unknown(image, image_bytes, err);
    return KR_OK;
}

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* Where `count` records of `size` bytes at `start` end. */
static uint64_t table_end(uint64_t start, uint64_t count, uint64_t size)
{
    uint64_t end;
    return __builtin_add_overflow(start, count * size, &end) ? UINT64_MAX : end;
}

/* A cubin ends with its header tables, so that they alone say how long it is; a section that lies past them
 * is damage. */
static size_t elf_bytes(kr__bytes *elf)
{
    if (!kr__bytes_hold(elf, 0, ELF_HEADER_BYTES))
        return 0;
    uint64_t sections = kr__u64(elf, 0x28);
    const unsigned machine = kr__u16(elf, 0x12);
    unsigned section_bytes = kr__u16(elf, 0x3a), n_sections = kr__u16(elf, 0x3c);
    uint64_t end = larger(ELF_HEADER_BYTES, table_end(sections, n_sections, section_bytes));
    end = larger(end, table_end(kr__u64(elf, 0x20), kr__u16(elf, 0x38), kr__u16(elf, 0x36)));
    bool inside = end <= elf->n;
    for (unsigned i = 0; i < n_sections && inside && section_bytes >= 64; i++) {
        uint64_t at = sections + (uint64_t)i * section_bytes;
        if (kr__elf_takes_room(machine, kr__u32(elf, at + 4)))
            inside = table_end(kr__u64(elf, at + 0x18), kr__u64(elf, at + 0x20), 1) <= end;
    }
    return inside && !elf->failed ? end : 0;
}

size_t kr__image_bytes(const void *image, size_t limit)
{
    kr__bytes bytes = {image, limit, false};
    if (kr__begins_with(image, limit, ELF_MAGIC, 4))
        return elf_bytes(&bytes);
    if (!kr__begins_with(image, limit, FATBIN_MAGIC, 4))
        return strnlen(image, limit);
    const unsigned header_bytes = kr__u16(&bytes, 6);
    const uint64_t end = table_end(header_bytes, kr__u64(&bytes, 8), 1);
    return !bytes.failed && header_bytes >= FATBIN_HEADER_BYTES && end <= limit ? end : 0;
}
