/* SPDX-License-Identifier: Apache-2.0 */
/* Which kind of image, and how long it is. */
#include "ptx/image/image.h"

#include <string.h>

#include "ptx/image/bytes.h"

enum { ELF_HEADER_BYTES = 64 };

#define ELF_MAGIC "\177ELF"
#define FATBIN_MAGIC "\x50\xed\x55\xba"
#define LTOIR_MAGIC "\xed\x43\x4e\x7f"

/* White space and comments, then ".version". */
static bool is_ptx(const char *text, size_t bytes)
{
    const char *end = text + bytes;
    while (text < end) {
        size_t left = (size_t)(end - text);
        if (memchr(" \t\r\n\f\v", *text, 6)) {
            text++;
        } else if (kr__begins_with(text, left, "//", 2)) {
            text = memchr(text, '\n', left);
            if (!text)
                return false;
        } else if (kr__begins_with(text, left, "/*", 2)) {
            text = memmem(text + 2, left - 2, "*/", 2);
            if (!text)
                return false;
            text += 2;
        } else {
            return kr__begins_with(text, left, ".version", 8);
        }
    }
    return false;
}

kr_status kr__image_kind(const void *image, size_t image_bytes, kr_image_kind *ret_kind, kr_error *err)
{
    if (kr__begins_with(image, image_bytes, ELF_MAGIC, 4))
        *ret_kind = KR_IMAGE_CUBIN;
    else if (kr__begins_with(image, image_bytes, FATBIN_MAGIC, 4))
        *ret_kind = KR_IMAGE_FATBIN;
    else if (kr__begins_with(image, image_bytes, LTOIR_MAGIC, 4))
        *ret_kind = KR_IMAGE_LTOIR;
    else if (is_ptx(image, image_bytes))
        *ret_kind = KR_IMAGE_PTX;
    else {
        kr__bytes bytes = {image, image_bytes, false};
        return KR_FAIL(
            err, KR_CORRUPT,
            "offset 0: PTX (.version), a cubin (7f 45 4c 46) or a fatbin (50 ed 55 ba) was expected; "
            "found %zu bytes that begin %02x %02x %02x %02x",
            image_bytes, kr__u8(&bytes, 0), kr__u8(&bytes, 1), kr__u8(&bytes, 2), kr__u8(&bytes, 3));
    }
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
    unsigned section_bytes = kr__u16(elf, 0x3a), n_sections = kr__u16(elf, 0x3c);
    uint64_t end = larger(ELF_HEADER_BYTES, table_end(sections, n_sections, section_bytes));
    end = larger(end, table_end(kr__u64(elf, 0x20), kr__u16(elf, 0x38), kr__u16(elf, 0x36)));
    bool inside = end <= elf->n;
    for (unsigned i = 0; i < n_sections && inside && section_bytes >= 64; i++) {
        uint64_t at = sections + (uint64_t)i * section_bytes;
        enum { NOBITS = 8 };
        if (kr__u32(elf, at + 4) != NOBITS)
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
    uint64_t end = table_end(kr__u16(&bytes, 6), kr__u64(&bytes, 8), 1);
    return !bytes.failed && end <= limit ? end : 0;
}
