/* SPDX-License-Identifier: Apache-2.0 */
#include <elf.h>
#include <stdio.h>
#include <string.h>

#include "runtime/internal.h"

/* As much of the formats as it takes to give a driver nothing that it would read past the end of. The readers
 * of what is inside are in ptx/image. */

enum {
    FATBIN_MAGIC = 0xba55ed50,
    FATBIN_WRAPPER_MAGIC = 0x466243b1,
    LTOIR_MAGIC = 0x7f4e43ed,
    ELF_MACHINE_CUDA = 190,
    FATBIN_HEADER_BYTES = 16
};

const char *kr_image_kind_name(kr_image_kind kind)
{
    switch (kind) {
    case KR_IMAGE_PTX:
        return "ptx";
    case KR_IMAGE_CUBIN:
        return "cubin";
    case KR_IMAGE_FATBIN:
        return "fatbin";
    case KR_IMAGE_LTOIR:
        return "ltoir";
    }
    return "?";
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* Past blanks and comments. */
static const char *skip_blanks(const char *at, const char *end)
{
    while (at < end) {
        if (is_blank(*at)) {
            at++;
        } else if (end - at >= 2 && at[0] == '/' && at[1] == '/') {
            const char *line_end = memchr(at, '\n', (size_t)(end - at));
            at = line_end ? line_end : end;
        } else if (end - at >= 2 && at[0] == '/' && at[1] == '*') {
            const char *close = memmem(at + 2, (size_t)(end - at - 2), "*/", 2);
            at = close ? close + 2 : end;
        } else {
            break;
        }
    }
    return at;
}

/* The word after a directive that must come next; NULL when it does not. */
static const char *directive(const char *at, const char *end, const char *name)
{
    at = skip_blanks(at, end);
    const size_t n = strlen(name);
    return (size_t)(end - at) > n && memcmp(at, name, n) == 0 && is_blank(at[n]) ? skip_blanks(at + n, end)
                                                                                 : NULL;
}

static const char *read_word(const char *at, const char *end, char *to, size_t bytes)
{
    size_t n = 0;
    while (at < end && !is_blank(*at) && *at != ',' && n + 1 < bytes)
        to[n++] = *at++;
    to[n] = '\0';
    return at;
}

static void read_ptx_head(const char *text, size_t bytes, kr__image_facts *facts)
{
    const char *end = text + bytes, *at = directive(text, end, ".version");
    char word[24] = "";
    int major, minor;
    at = read_word(at, end, word, sizeof word);
    if (sscanf(word, "%2d.%1d", &major, &minor) == 2)
        facts->isa = major * 10 + minor;
    const char *target = directive(at, end, ".target");
    char arch[24] = "";
    if (target)
        read_word(target, end, arch, sizeof arch);
    if (kr_cc_parse(arch, &facts->target, NULL) != KR_OK)
        facts->target = (kr_cc){0};
    kr__format(facts->text, sizeof facts->text, "PTX %s for %s", word, arch[0] ? arch : "?");
}

static kr_status read_ptx(const char *text, size_t bytes, kr__image_facts *facts, kr_error *err)
{
    while (bytes && text[bytes - 1] == '\0')
        bytes--;
    const char *nul = memchr(text, '\0', bytes);
    if (nul)
        return KR_FAIL(err, KR_CORRUPT,
                       "the PTX has a NUL byte at offset %zu of %zu: a driver would ignore the rest",
                       (size_t)(nul - text), bytes);
    facts->kind = KR_IMAGE_PTX;
    facts->ptx_bytes = bytes;
    read_ptx_head(text, bytes, facts);
    return KR_OK;
}

static bool inside(uint64_t offset, uint64_t bytes, size_t whole)
{
    return offset <= whole && bytes <= whole - offset;
}

static kr_status fail_truncated(const char *what, size_t bytes, kr_error *err)
{
    KR_FAIL(err, KR_CORRUPT, "the %s is truncated: what it holds goes on past its %zu bytes", what, bytes);
    kr__error_advice(err, "Build or copy it again.");
    return KR_CORRUPT;
}

static kr_status read_cubin(const unsigned char *image, size_t bytes, kr__image_facts *facts, kr_error *err)
{
    Elf64_Ehdr head;
    if (bytes < sizeof head)
        return fail_truncated("cubin", bytes, err);
    memcpy(&head, image, sizeof head);
    if (head.e_ident[EI_CLASS] != ELFCLASS64 || head.e_machine != ELF_MACHINE_CUDA)
        return KR_FAIL(err, KR_CORRUPT, "an ELF file, but not a cubin: its machine is %u, a cubin's %d",
                       head.e_machine, ELF_MACHINE_CUDA);
    if ((head.e_shnum && head.e_shentsize != sizeof(Elf64_Shdr)) ||
        !inside(head.e_shoff, (uint64_t)head.e_shnum * head.e_shentsize, bytes) ||
        !inside(head.e_phoff, (uint64_t)head.e_phnum * head.e_phentsize, bytes))
        return fail_truncated("cubin", bytes, err);
    for (unsigned i = 0; i < head.e_shnum; i++) {
        Elf64_Shdr section;
        memcpy(&section, image + head.e_shoff + i * sizeof section, sizeof section);
        const bool in_file = section.sh_type != SHT_NOBITS && section.sh_type != SHT_NULL;
        if (in_file && !inside(section.sh_offset, section.sh_size, bytes))
            return fail_truncated("cubin", bytes, err);
    }
    /* From ABI 8 (CUDA 13) on, the SM number is in the second byte. */
    const unsigned sm = head.e_ident[EI_ABIVERSION] >= 8 ? head.e_flags >> 8 & 0xff : head.e_flags & 0xff;
    facts->kind = KR_IMAGE_CUBIN;
    facts->target = (kr_cc){(int)sm / 10, (int)sm % 10, 0};
    kr__format(facts->text, sizeof facts->text, "cubin for sm_%u", sm);
    return KR_OK;
}

static kr_status read_fatbin(const unsigned char *image, size_t bytes, kr__image_facts *facts, kr_error *err)
{
    uint16_t header_bytes;
    uint64_t payload_bytes;
    if (bytes < FATBIN_HEADER_BYTES)
        return fail_truncated("fatbin", bytes, err);
    memcpy(&header_bytes, image + 6, sizeof header_bytes);
    memcpy(&payload_bytes, image + 8, sizeof payload_bytes);
    if (header_bytes < FATBIN_HEADER_BYTES || !inside(header_bytes, payload_bytes, bytes))
        return fail_truncated("fatbin", bytes, err);
    facts->kind = KR_IMAGE_FATBIN;
    kr__format(facts->text, sizeof facts->text, "fatbin");
    return KR_OK;
}

/* No image: say what it looks like. */
static kr_status fail_unknown(const char *image, size_t bytes, kr_error *err)
{
    const size_t n = strnlen(image, bytes < 256 ? bytes : 256);
    bool text = n > 0;
    for (size_t i = 0; i < n; i++)
        text = text && (unsigned char)image[i] >= ' ';
    if (text && n < 256) {
        KR_FAIL(err, KR_CORRUPT, "not an image but the text \"%.*s\"%s", (int)(n < 80 ? n : 80), image,
                strchr("./", image[0]) || memchr(image, '.', n) ? ": it looks like a file name" : "");
        kr__error_advice(err, "Pass the bytes of the file, not its name.");
        return KR_CORRUPT;
    }
    const char *at = skip_blanks(image, image + bytes);
    if (image + bytes - at >= 8 && (memcmp(at, ".target ", 8) == 0 || memcmp(at, ".visible", 8) == 0))
        return KR_FAIL(err, KR_CORRUPT, "PTX must begin with .version");
    if (bytes >= 3 && memcmp(image, "\xef\xbb\xbf", 3) == 0)
        return KR_FAIL(err, KR_CORRUPT, "the text begins with a byte order mark, which drivers refuse");
    unsigned char first[4] = {0};
    memcpy(first, image, bytes < 4 ? bytes : 4);
    KR_FAIL(err, KR_CORRUPT, "%zu bytes beginning %02x %02x %02x %02x are no PTX, cubin, fatbin or LTO-IR",
            bytes, first[0], first[1], first[2], first[3]);
    return KR_CORRUPT;
}

kr_status kr__image_read(const void *image, size_t image_bytes, kr__image_facts *ret_facts, kr_error *err)
{
    uint32_t magic = 0;
    if (!image || !image_bytes)
        return KR_FAIL(err, KR_CORRUPT, "the image is empty");
    memcpy(&magic, image, image_bytes < 4 ? image_bytes : 4);
    kr__image_facts facts = {0};
    kr_status status = KR_OK;
    if (image_bytes >= SELFMAG && memcmp(image, ELFMAG, SELFMAG) == 0) {
        status = read_cubin(image, image_bytes, &facts, err);
    } else if (magic == FATBIN_MAGIC) {
        status = read_fatbin(image, image_bytes, &facts, err);
    } else if (magic == LTOIR_MAGIC) {
        facts.kind = KR_IMAGE_LTOIR;
        kr__format(facts.text, sizeof facts.text, "LTO-IR");
    } else if (magic == FATBIN_WRAPPER_MAGIC) {
        return KR_FAIL(err, KR_CORRUPT,
                       "a fatbin wrapper holds an address, not an image: pass what its data points at");
    } else if (directive(image, (const char *)image + image_bytes, ".version")) {
        status = read_ptx(image, image_bytes, &facts, err);
    } else {
        return fail_unknown(image, image_bytes, err);
    }
    if (status == KR_OK)
        *ret_facts = facts;
    return status;
}

kr_status kr_image_kind_of(const void *image, size_t image_bytes, kr_image_kind *ret_kind, kr_error *err)
{
    KR_REQUIRE(err, image, ret_kind);
    kr__image_facts facts;
    const kr_status status = kr__image_read(image, image_bytes, &facts, err);
    if (status == KR_OK)
        *ret_kind = facts.kind;
    return status;
}
