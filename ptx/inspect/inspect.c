/* SPDX-License-Identifier: Apache-2.0 */
/* Which images a file holds, and where. */
#include "ptx/inspect/inspect.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "ptx/image/bytes.h"

const char *kr_compression_name(kr_compression compression)
{
    static const char *const names[] = {[KR_STORED] = "none", [KR_LZ4] = "lz4", [KR_ZSTD] = "zstd"};
    return (size_t)compression < KR_COUNT(names) ? names[compression] : "?";
}

/* A stretch of the file: all of it, or a member of an archive. */
typedef struct stretch {
    size_t at, bytes;
    const char *member;
    unsigned depth; /* of archives around it */
} stretch;

static const char *data_of(const kr_inspection *in, const stretch *of)
{
    return (const char *)in->bytes + of->at;
}

/* Linux maps pages around the one that is read, so those before are left again; small images together. */
void kr__inspection_leave(const kr_inspection *in, size_t offset, size_t bytes)
{
    enum { AROUND = 1 << 20 }; /* a multiple of any page */
    const size_t begin = offset / AROUND * AROUND, end = (offset + bytes) / AROUND * AROUND;
    if (in->mapped && end > begin)
        madvise((char *)(uintptr_t)in->mapped + begin, end - begin, MADV_DONTNEED);
}

static kr_status add_image(kr_inspection *in, const kr_image_info *info, kr_error *err)
{
    kr_image_info *grown = kr__grow(in->images, in->n_images, sizeof *grown);
    if (!grown)
        return KR_FAIL(err, KR_OUT_OF_HOST_MEMORY, "no memory for image %zu", in->n_images);
    in->images = grown;
    grown[in->n_images++] = *info;
    return KR_OK;
}

/* ---- images by themselves ---- */

/* PTX, LTO-IR. */
static kr_status find_itself(kr_inspection *in, const stretch *of, kr_error *err)
{
    kr__image_facts facts;
    const kr_status status = kr__image_read(data_of(in, of), of->bytes, &facts, err);
    if (status)
        return status;
    const size_t bytes = facts.ptx_bytes ? facts.ptx_bytes : of->bytes;
    const kr_image_info info = {.kind = facts.kind,
                                .arch = facts.target,
                                .isa = facts.isa,
                                .offset = of->at,
                                .stored_bytes = bytes,
                                .bytes = bytes,
                                .member = of->member,
                                .section = "",
                                .name = "",
                                .options = "",
                                .flags = ""};
    return add_image(in, &info, err);
}

static kr_status find_cubin(kr_inspection *in, const stretch *of, kr_error *err)
{
    kr__cubin *cubin;
    const kr_status status = kr__cubin_read(data_of(in, of), of->bytes, &cubin, err);
    if (status)
        return status;
    const kr_image_info info = {.kind = KR_IMAGE_CUBIN,
                                .arch = cubin->arch,
                                .offset = of->at,
                                .stored_bytes = of->bytes,
                                .bytes = of->bytes,
                                .member = of->member,
                                .section = "",
                                .name = "",
                                .options = "",
                                .flags = ""};
    kr__cubin_free(&cubin);
    return add_image(in, &info, err);
}

/* ---- fatbins, and what holds them ---- */

static const char *keep(kr_inspection *in, kr__fatbin_text text)
{
    while (text.bytes && text.at[text.bytes - 1] == ' ')
        text.bytes--;
    while (text.bytes && *text.at == ' ')
        text.at++, text.bytes--;
    return text.bytes ? kr__arena_text(&in->arena, text.at, text.bytes) : "";
}

static kr_status add_entry(kr_inspection *in, const stretch *of, const char *section,
                           const kr__fatbin_entry *entry, kr_error *err)
{
    char flags[128];
    kr__fatbin_flags(entry->flags, flags, sizeof flags);
    const kr_image_info info = {
        .kind = entry->kind,
        .arch = entry->arch,
        .isa = entry->isa,
        .offset = (size_t)((const char *)entry->payload - (const char *)in->bytes),
        .stored_bytes = entry->payload_bytes,
        .bytes = entry->bytes,
        .compression = entry->compression,
        .member = of->member,
        .section = section,
        .name = keep(in, entry->name),
        .options = keep(in, entry->options),
        .flags = keep(in, (kr__fatbin_text){flags, strlen(flags)}),
        .fatbin_kind = entry->number,
    };
    if (!info.name || !info.options || !info.flags)
        return KR_FAIL(err, KR_OUT_OF_HOST_MEMORY, "no memory for the texts of a fatbin");
    return add_image(in, &info, err);
}

/* Of the fatbins between two offsets of the file. */
static kr_status find_entries(kr_inspection *in, const stretch *of, size_t at, size_t end,
                              const char *section, kr_error *err)
{
    kr_status status;
    do {
        const size_t begin = at;
        kr__fatbin fatbin = {0};
        status = kr__fatbin_next(in->bytes, &at, end, &fatbin, err);
        for (size_t i = 0; i < fatbin.n_entries && !status; i++)
            status = add_entry(in, of, section, &fatbin.entries[i], err);
        free(fatbin.entries);
        kr__inspection_leave(in, begin, at - begin);
    } while (!status && at < end);
    return status;
}

static kr_status find_fatbin(kr_inspection *in, const stretch *of, kr_error *err)
{
    return find_entries(in, of, of->at, of->at + of->bytes, "", err);
}

static kr_status find_in_host(kr_inspection *in, const stretch *of, kr_error *err)
{
    kr__host *host;
    kr_status status = kr__host_read(data_of(in, of), of->bytes, &host, err);
    if (status)
        return status;
    for (size_t i = 0; i < host->n_parts && !status; i++) {
        const kr__host_part *part = &host->parts[i];
        status = find_entries(in, of, of->at + part->at, of->at + part->end, part->section, err);
    }
    kr__host_free(&host);
    return status;
}

static kr_status find_in(kr_inspection *in, const stretch *of, kr_error *err);

static kr_status find_in_archive(kr_inspection *in, const stretch *of, kr_error *err)
{
    enum { DEEPEST = 8 };
    kr__archive *archive;
    if (of->depth == DEEPEST)
        return KR_FAIL(err, KR_CORRUPT, "at most %d archives in one another were expected, not one more",
                       DEEPEST);
    kr_status status = kr__archive_read(data_of(in, of), of->bytes, &archive, err);
    if (status)
        return status;
    for (size_t i = 0; i < archive->n_members && !status; i++) {
        const kr__archive_member *member = &archive->members[i];
        const stretch inside = {of->at + member->at, member->bytes,
                                kr__arena_text(&in->arena, member->name, strlen(member->name)),
                                of->depth + 1};
        status = inside.member ? find_in(in, &inside, err)
                               : KR_FAIL(err, KR_OUT_OF_HOST_MEMORY, "no memory for the name of a member");
        if (status)
            kr__while(err, status, "reading its member %s at offset 0x%zx", member->name, inside.at);
    }
    kr__archive_free(&archive);
    return status;
}

/* ---- kinds of files ---- */

/* A pack's images are the registry's to tell. */
static kr_status find_none(kr_inspection *in, const stretch *of, kr_error *err)
{
    (void)in, (void)of, (void)err;
    return KR_OK;
}

static bool is_cubin(const char *data, size_t bytes)
{
    enum { MACHINE_CUDA = 190 };
    kr__bytes elf = {(const uint8_t *)data, bytes, false};
    return kr__u16(&elf, offsetof(Elf64_Ehdr, e_machine)) == MACHINE_CUDA;
}

static bool is_ptx(const char *data, size_t bytes)
{
    kr__ptx_head head;
    return kr__ptx_head_read(data, bytes, &head);
}

/* The first row that fits. `find` NULL: it is refused. */
static const struct file_kind {
    const char *name;
    const char *magic;
    size_t magic_bytes;
    bool (*is)(const char *data, size_t bytes); /* beside the magic */
    kr_status (*find)(kr_inspection *in, const stretch *of, kr_error *err);
    const char *advice; /* where it is refused */
} kinds[] = {
    {"cubin", ELFMAG, SELFMAG, is_cubin, find_cubin, NULL},
    {"elf", ELFMAG, SELFMAG, NULL, find_in_host, NULL},
    {"fatbin", "\x50\xed\x55\xba", 4, NULL, find_fatbin, NULL},
    {"ltoir", "\xed\x43\x4e\x7f", 4, NULL, find_itself, NULL},
    {"ptx", "", 0, is_ptx, find_itself, NULL},
    {"archive", "!<arch>\n", 8, NULL, find_in_archive, NULL},
    {"pack", "KRPACK\x1a\n", 8, NULL, find_none, NULL},
    {"a thin archive", "!<thin>\n", 8, NULL, NULL, "Inspect the objects that it names."},
    {"a Windows program", "MZ", 2, NULL, NULL, "Extract its fatbins first."},
    {"a macOS program", "\xcf\xfa\xed\xfe", 4, NULL, NULL, "Extract its fatbins first."},
    {"LLVM bitcode", "BC\xc0\xde", 4, NULL, NULL, "Compile it first."},
    {"a zip archive or a Python wheel", "PK\3\4", 4, NULL, NULL, "Extract its files first."},
};

static const struct file_kind *kind_of(const char *data, size_t bytes)
{
    for (size_t i = 0; i < KR_COUNT(kinds); i++)
        if (kr__begins_with(data, bytes, kinds[i].magic, kinds[i].magic_bytes) &&
            (!kinds[i].is || kinds[i].is(data, bytes)))
            return &kinds[i];
    return NULL;
}

/* A member that is none of these holds no images. */
static kr_status find_in(kr_inspection *in, const stretch *of, kr_error *err)
{
    const struct file_kind *kind = kind_of(data_of(in, of), of->bytes);
    return kind && kind->find ? kind->find(in, of, err) : KR_OK;
}

static kr_status find_images(kr_inspection *in, kr_error *err)
{
    const stretch all = {.bytes = in->n_bytes, .member = ""};
    const struct file_kind *kind = in->n_bytes ? kind_of(in->bytes, in->n_bytes) : NULL;
    kr_image_kind unknown;
    if (!kind) /* says what it looks like */
        return kr__image_kind(in->bytes, in->n_bytes, &unknown, err);
    if (!kind->find) {
        KR_FAIL(err, KR_CORRUPT,
                "PTX, a cubin, a fatbin, or an ELF file or archive with fatbins was expected, not %s",
                kind->name);
        kr__error_advice(err, "%s", kind->advice);
        return KR_CORRUPT;
    }
    in->kind = kind->name;
    return kind->find(in, &all, err);
}

/* ---- inspections ---- */

static kr_status create(const void *bytes, size_t n_bytes, const void *mapped, const char *name,
                        kr_inspection **ret_inspection, kr_error *err)
{
    kr_inspection *in = kr__alloc(1, sizeof *in, err);
    if (!in)
        return KR_OUT_OF_HOST_MEMORY;
    *in = (kr_inspection){.bytes = bytes, .n_bytes = n_bytes, .mapped = mapped};
    in->name = kr__arena_text(&in->arena, name, strlen(name));
    kr_status status =
        in->name ? find_images(in, err) : KR_FAIL(err, KR_OUT_OF_HOST_MEMORY, "no memory for a name");
    if (status) {
        kr__error_image(err, name);
        kr__while(err, status, "inspecting %s", name);
        in->mapped = NULL; /* the caller's to unmap */
        kr_inspection_destroy(&in);
        return status;
    }
    *ret_inspection = in;
    return KR_OK;
}

kr_status kr_inspection_create(const void *bytes, size_t n_bytes, const char *name,
                               kr_inspection **ret_inspection, kr_error *err)
{
    KR_REQUIRE(err, bytes, ret_inspection);
    return create(bytes, n_bytes, NULL, name ? name : "the image", ret_inspection, err);
}

kr_status kr_inspection_open(const char *path, kr_inspection **ret_inspection, kr_error *err)
{
    KR_REQUIRE(err, path, ret_inspection);
    const void *data;
    size_t bytes;
    kr_status status = kr__file_map(path, &data, &bytes, err);
    if (status)
        return status;
    status = create(data, bytes, data, path, ret_inspection, err);
    if (status)
        kr__file_unmap(data, bytes);
    return status;
}

void kr_inspection_destroy(kr_inspection **inspection)
{
    if (!inspection || !*inspection)
        return;
    kr_inspection *in = *inspection;
    *inspection = NULL;
    kr__file_unmap(in->mapped, in->n_bytes);
    kr__arena_free(&in->arena);
    free(in->images);
    free(in);
}

const char *kr_inspection_kind(const kr_inspection *inspection)
{
    return inspection->kind;
}

size_t kr_inspection_n_images(const kr_inspection *inspection)
{
    return inspection->n_images;
}

const kr_image_info *kr_inspection_image(const kr_inspection *inspection, size_t index)
{
    return index < inspection->n_images ? &inspection->images[index] : NULL;
}
