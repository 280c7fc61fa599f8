/* SPDX-License-Identifier: Apache-2.0 */
/* What an image says of itself, and whether a driver may be given it. */
#include "ptx/image/image.h"

#include <elf.h>
#include <string.h>

#include "ptx/image/bytes.h"

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
    case KR_IMAGE_OTHER:
        return "other";
    }
    return "?";
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
    kr__ptx_head head = {0};
    kr__ptx_head_read(text, bytes, &head);
    char target[16] = "?";
    if (head.target.major)
        kr__format(target, sizeof target, "sm_%d%d%.1s", head.target.major, head.target.minor,
                   &head.target.suffix);
    facts->ptx_bytes = bytes;
    facts->isa = head.isa;
    facts->target = head.target;
    kr__format(facts->text, sizeof facts->text, "PTX %d.%d for %s", head.isa / 10, head.isa % 10, target);
    return KR_OK;
}

static kr_status read_cubin(const void *image, size_t bytes, kr__image_facts *facts, kr_error *err)
{
    enum { MACHINE_CUDA = 190 };
    kr__bytes elf = {image, bytes, false};
    const unsigned machine = kr__u16(&elf, offsetof(Elf64_Ehdr, e_machine));
    if (!elf.failed && (machine != MACHINE_CUDA || kr__u8(&elf, EI_CLASS) != ELFCLASS64)) {
        KR_FAIL(err, KR_CORRUPT, "an ELF file, but not a cubin: its machine is %u, a cubin's %d", machine,
                MACHINE_CUDA);
        kr__error_advice(err, "See `kregistry inspect` for the images that it may hold.");
        return KR_CORRUPT;
    }
    const unsigned sm = kr__cubin_sm(image, bytes);
    facts->target = (kr_cc){(int)sm / 10, (int)sm % 10, 0};
    kr__format(facts->text, sizeof facts->text, "cubin for sm_%u", sm);
    return KR_OK;
}

static kr_status check_whole(const void *image, size_t bytes, const char *what, kr_error *err)
{
    if (kr__image_bytes(image, bytes))
        return KR_OK;
    KR_FAIL(err, KR_CORRUPT, "the %s is truncated: what it holds goes on past its %zu bytes", what, bytes);
    kr__error_advice(err, "Build or copy it again.");
    return KR_CORRUPT;
}

kr_status kr__image_read(const void *image, size_t image_bytes, kr__image_facts *ret_facts, kr_error *err)
{
    kr__image_facts facts = {0};
    kr_status status = kr__image_kind(image, image_bytes, &facts.kind, err);
    if (status)
        return status;
    const char *name = kr_image_kind_name(facts.kind);
    if (facts.kind == KR_IMAGE_PTX) {
        status = read_ptx(image, image_bytes, &facts, err);
    } else if (facts.kind == KR_IMAGE_LTOIR) {
        kr__format(facts.text, sizeof facts.text, "LTO-IR");
    } else {
        kr__format(facts.text, sizeof facts.text, "%s", name);
        if (facts.kind == KR_IMAGE_CUBIN)
            status = read_cubin(image, image_bytes, &facts, err);
        if (!status)
            status = check_whole(image, image_bytes, name, err);
    }
    if (!status)
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
