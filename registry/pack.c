/* SPDX-License-Identifier: Apache-2.0 */
/* The reader. Nothing is followed before it is checked, and what the writer does not write is refused: there
 * is one way to lay a pack out, so no part can overlap another. */
#include "registry/pack.h"

#include <stdlib.h>
#include <string.h>

struct kr_pack {
    const char *data;
    size_t bytes;
    bool is_mapped; /* unmapped at the end */
    char *owned;    /* freed at the end */
    size_t n_ops, n_entries, n_images;
    kr__op_def **defs;
    kr__image *images; /* of all ops, in order */
    const kr_op **ops; /* of each image */
    kr__arena arena;   /* of the lists */
};

/* What is being read, and how far. */
typedef struct reader {
    kr_pack *pack;
    kr_error *err;
    kr__pack_header header;
    size_t texts;     /* where they begin: behind the rows */
    size_t entry;     /* the next row */
    uint64_t payload; /* where the next one begins */
} reader;

#define WRONG(r, at, format, ...) \
    KR_FAIL((r)->err, KR_CORRUPT, "the pack is damaged at byte %zu: " format, (size_t)(at), ##__VA_ARGS__)

#define FIELD(type, row, field) ((row) + offsetof(type, field))

static uint64_t next_place(uint64_t end)
{
    return (end + KR__PACK_ALIGN - 1) / KR__PACK_ALIGN * KR__PACK_ALIGN;
}

static bool is_zero(const void *data, size_t n)
{
    const char *bytes = data;
    while (n && !bytes[n - 1])
        n--;
    return !n;
}

/* ---- what is stored ---- */

kr_status kr__stored_check(const kr__stored *stored, kr_error *err)
{
    uint8_t digest[KR__SHA256_BYTES];
    if (!stored->sha256)
        return KR_OK;
    kr__sha256_of(stored->bytes, stored->n_bytes, digest);
    /* Zeros follow up to the next place: PTX and sources end with a NUL where they lie. */
    if (memcmp(digest, stored->sha256, sizeof digest) == 0 &&
        is_zero(stored->bytes + stored->n_bytes, next_place(stored->n_bytes + 1) - stored->n_bytes))
        return KR_OK;
    const uint8_t *wanted = stored->sha256;
    KR_FAIL(
        err, KR_CORRUPT,
        "the pack is damaged: the SHA-256 of its %zu bytes from byte %zu on begins %02x%02x%02x%02x, and was "
        "%02x%02x%02x%02x when it was made",
        stored->n_bytes, stored->offset, digest[0], digest[1], digest[2], digest[3], wanted[0], wanted[1],
        wanted[2], wanted[3]);
    kr__error_advice(err, "Make or copy the pack again.");
    return KR_CORRUPT;
}

kr_status kr__source_check(const kr__op_def *def, kr_error *err)
{
    kr_status status = KR_OK;
    for (size_t i = 0; i < def->n_sources && !status; i++)
        status = kr__stored_check(&def->sources[i], err);
    return status;
}

void kr__op_identity(const kr__op_def *def, uint8_t ret_digest[KR__SHA256_BYTES])
{
    if (def->identity) {
        memcpy(ret_digest, def->identity, KR__SHA256_BYTES);
        return;
    }
    kr__sha256 sha;
    kr__sha256_begin(&sha);
    kr__sha256_add(&sha, def->text, def->text_bytes + 1);
    for (size_t i = 0; i < def->headers.n; i++) {
        kr__sha256_add(&sha, def->headers.names[i], strlen(def->headers.names[i]) + 1);
        kr__sha256_add(&sha, def->headers.texts[i], strlen(def->headers.texts[i]) + 1);
    }
    kr__sha256_end(&sha, ret_digest);
}

/* ---- the header ---- */

void kr__pack_digest(const char *pack, size_t index_bytes, uint8_t ret_digest[KR__SHA256_BYTES])
{
    kr__sha256 sha;
    kr__sha256_begin(&sha);
    kr__sha256_add(&sha, pack, offsetof(kr__pack_header, sha256));
    kr__sha256_add(&sha, pack + sizeof(kr__pack_header), index_bytes - sizeof(kr__pack_header));
    kr__sha256_end(&sha, ret_digest);
}

bool kr_is_pack(const void *data, size_t bytes)
{
    const size_t n = sizeof KR__PACK_MAGIC - 1;
    return data && bytes >= n && memcmp(data, KR__PACK_MAGIC, n) == 0;
}

static kr_status check_version(const reader *r)
{
    const unsigned version = r->header.version;
    if (version == KR__PACK_VERSION)
        return KR_OK;
    const bool newer = version > KR__PACK_VERSION;
    KR_FAIL(r->err, KR_INVALID_ARGUMENT,
            "the pack's format is version %u, %s than the version %d that this kregistry reads", version,
            newer ? "newer" : "older", KR__PACK_VERSION);
    kr__error_advice(r->err, newer ? "Use a newer kregistry, or make the pack with this one."
                                   : "Make the pack again with this kregistry.");
    return KR_INVALID_ARGUMENT;
}

static kr_status check_index_hash(const reader *r)
{
    uint8_t digest[KR__SHA256_BYTES];
    kr__pack_digest(r->pack->data, r->header.index_bytes, digest);
    return memcmp(digest, r->header.sha256, sizeof digest) == 0
               ? KR_OK
               : WRONG(r, offsetof(kr__pack_header, sha256), "the SHA-256 of the index's %u bytes is another",
                       r->header.index_bytes);
}

static kr_status read_header(reader *r)
{
    const kr_pack *pack = r->pack;
    if (!kr_is_pack(pack->data, pack->bytes)) {
        const bool is_path = kr__is_like_a_path(pack->data, pack->bytes);
        KR_FAIL(r->err, KR_CORRUPT, "not a pack: the %zu bytes do not begin with KRPACK%s", pack->bytes,
                is_path ? " and look like a file name" : "");
        kr__error_advice(r->err, is_path ? "Name the file to kr_registry_add_pack_file."
                                         : "Name a file that `kregistry pack` made.");
        return KR_CORRUPT;
    }
    if (pack->bytes < sizeof r->header)
        return WRONG(r, pack->bytes, "it ends within its header of %zu bytes", sizeof r->header);
    memcpy(&r->header, pack->data, sizeof r->header);
    kr_status status = check_version(r);
    if (status)
        return status;
    const kr__pack_header *h = &r->header;
    if (h->bytes != pack->bytes)
        return WRONG(r, offsetof(kr__pack_header, bytes), "it is to have %llu bytes; there are %zu",
                     (unsigned long long)h->bytes, pack->bytes);
    const uint64_t texts = sizeof *h + h->n_ops * (uint64_t)sizeof(kr__pack_op) +
                           h->n_entries * (uint64_t)sizeof(kr__pack_entry);
    if (h->index_bytes < texts || h->index_bytes > h->bytes || h->index_bytes % KR__PACK_ALIGN)
        return WRONG(r, offsetof(kr__pack_header, index_bytes),
                     "the index of %u ops and %u entries is to have %u bytes; expected a multiple of %d from "
                     "%llu to %llu",
                     h->n_ops, h->n_entries, h->index_bytes, KR__PACK_ALIGN, (unsigned long long)texts,
                     (unsigned long long)h->bytes);
    r->texts = texts;
    r->payload = h->index_bytes;
    return check_index_hash(r);
}

/* ---- rows ---- */

/* A text of the index, n bytes long or (SIZE_MAX) up to its NUL; NULL: it leads out. */
static const char *text_at(const reader *r, size_t offset, size_t n)
{
    const char *data = r->pack->data;
    if (offset < r->texts || offset >= r->header.index_bytes)
        return NULL;
    const size_t room = r->header.index_bytes - offset;
    const bool ends =
        n == SIZE_MAX ? memchr(data + offset, '\0', room) != NULL : n < room && !data[offset + n];
    return ends ? data + offset : NULL;
}

/* at: where the row is. */
static kr_status check_place(reader *r, size_t at, const kr__pack_entry *entry)
{
    if (entry->offset != r->payload)
        return WRONG(r, FIELD(kr__pack_entry, at, offset), "the bytes of an entry are at %llu; expected %llu",
                     (unsigned long long)entry->offset, (unsigned long long)r->payload);
    if (r->payload >= r->pack->bytes || entry->bytes >= r->pack->bytes - r->payload)
        return WRONG(r, FIELD(kr__pack_entry, at, bytes),
                     "an entry's %llu bytes from %llu on do not fit into %zu",
                     (unsigned long long)entry->bytes, (unsigned long long)r->payload, r->pack->bytes);
    r->payload = next_place(r->payload + entry->bytes + 1);
    return is_zero(entry->zero, sizeof entry->zero)
               ? KR_OK
               : WRONG(r, FIELD(kr__pack_entry, at, zero), "what is not used is not zero");
}

static kr__stored stored_of(const reader *r, size_t at, const kr__pack_entry *entry)
{
    const char *data = r->pack->data;
    return (kr__stored){data + entry->offset, entry->bytes, entry->offset,
                        (const uint8_t *)data + FIELD(kr__pack_entry, at, sha256)};
}

/* The op's text first, then what it includes; images after them. */
static kr_status read_source(reader *r, size_t at, const kr__pack_entry *entry, kr__op_def *def,
                             kr__stored *sources, const char **names, const char **texts)
{
    const bool is_text = entry->kind == KR__PACK_SOURCE;
    const char *name = is_text ? def->op.file : text_at(r, entry->name, SIZE_MAX);
    if (is_text != !def->text || def->n_images)
        return WRONG(r, FIELD(kr__pack_entry, at, kind), "a source is out of order");
    if (!name)
        return WRONG(r, FIELD(kr__pack_entry, at, name),
                     "the name of a header is at %u, outside of the index's texts", entry->name);
    const bool is_bare = !entry->type && !entry->variant && !entry->suffix && !entry->arch && !entry->isa;
    if (!is_bare || (is_text && entry->name))
        return WRONG(r, FIELD(kr__pack_entry, at, type), "what a source does not use is not zero");
    sources[def->n_sources++] = stored_of(r, at, entry);
    if (is_text) {
        def->text = r->pack->data + entry->offset;
        def->text_bytes = entry->bytes;
        return KR_OK;
    }
    names[def->headers.n] = name;
    texts[def->headers.n++] = r->pack->data + entry->offset;
    return KR_OK;
}

static kr_status read_image(reader *r, size_t at, const kr__pack_entry *entry, kr__op_def *def)
{
    static const kr_image_kind kinds[] = {[KR__PACK_PTX] = KR_IMAGE_PTX,
                                          [KR__PACK_CUBIN] = KR_IMAGE_CUBIN,
                                          [KR__PACK_FATBIN] = KR_IMAGE_FATBIN};
    if (entry->kind < KR__PACK_PTX || entry->kind > KR__PACK_FATBIN)
        return WRONG(r, FIELD(kr__pack_entry, at, kind), "there is no kind %u of entry", entry->kind);
    if (entry->type >= kr__op_n_instances(&def->op) || entry->variant >= def->op.n_variants)
        return WRONG(r, FIELD(kr__pack_entry, at, type), "%s has no type %u or no variant %u", def->op.name,
                     entry->type, entry->variant);
    if (entry->name)
        return WRONG(r, FIELD(kr__pack_entry, at, name), "an image has a name");
    const bool has_suffix = entry->suffix == 'a' || entry->suffix == 'f';
    if (entry->arch < 10 || (entry->suffix && !has_suffix))
        return WRONG(r, FIELD(kr__pack_entry, at, suffix), "there is no arch %u with the suffix %u",
                     entry->arch, (unsigned char)entry->suffix);
    if ((entry->kind == KR__PACK_PTX) != (entry->isa > 0))
        return WRONG(r, FIELD(kr__pack_entry, at, isa), "the PTX ISA of an entry of kind %u is %u",
                     entry->kind, entry->isa);
    r->pack->ops[r->pack->n_images] = &def->op;
    kr__image *image = &r->pack->images[r->pack->n_images++];
    *image = (kr__image){.type = entry->type,
                         .variant = entry->variant,
                         .kind = kinds[entry->kind],
                         .arch = {entry->arch / 10, entry->arch % 10, entry->suffix},
                         .isa = entry->isa,
                         .stored = stored_of(r, at, entry)};
    if (!def->n_images++)
        def->images = image;
    return KR_OK;
}

static kr_status read_entries(reader *r, size_t n, kr__op_def *def)
{
    kr__arena *arena = &r->pack->arena;
    kr__stored *sources = kr__arena_alloc(arena, n * sizeof *sources);
    const char **names = kr__arena_alloc(arena, 2 * n * sizeof *names), **texts = names + n;
    kr_status status = sources && names ? KR_OK
                                        : KR_FAIL(r->err, KR_OUT_OF_HOST_MEMORY,
                                                  "no host memory for the entries of %s", def->op.name);
    def->sources = sources;
    def->headers = (kr__headers){0, names, texts};
    for (size_t i = 0; i < n && !status; i++, r->entry++) {
        kr__pack_entry entry;
        const size_t at = sizeof r->header + r->pack->n_ops * sizeof(kr__pack_op) + r->entry * sizeof entry;
        memcpy(&entry, r->pack->data + at, sizeof entry);
        const bool is_source = entry.kind == KR__PACK_SOURCE || entry.kind == KR__PACK_HEADER;
        status = check_place(r, at, &entry);
        if (!status)
            status = is_source ? read_source(r, at, &entry, def, sources, names, texts)
                               : read_image(r, at, &entry, def);
    }
    return status;
}

static kr_status read_descriptor(reader *r, size_t at, const kr__pack_op *row, kr__op_def **ret_def)
{
    const char *file = text_at(r, row->file, SIZE_MAX);
    const char *descriptor = text_at(r, row->descriptor, row->descriptor_bytes);
    if (!file)
        return WRONG(r, FIELD(kr__pack_op, at, file),
                     "the name of an op's file is at %u, outside of the index's texts", row->file);
    if (!descriptor)
        return WRONG(r, FIELD(kr__pack_op, at, descriptor),
                     "a descriptor has %u bytes from %u on, which are no text of the index",
                     row->descriptor_bytes, row->descriptor);
    const kr_status status = kr__op_parse(file, descriptor, row->descriptor_bytes, ret_def, r->err);
    if (status != KR_INVALID_ARGUMENT)
        return status;
    return WRONG(r, row->descriptor, "%s", r->err ? r->err->message : "");
}

static kr_status read_op(reader *r, size_t index)
{
    kr__pack_op row;
    kr_pack *pack = r->pack;
    const size_t at = sizeof r->header + index * sizeof row;
    memcpy(&row, pack->data + at, sizeof row);
    kr_status status = read_descriptor(r, at, &row, &pack->defs[index]);
    if (status)
        return status;
    kr__op_def *def = pack->defs[index];
    def->text = NULL; /* which was the descriptor */
    def->text_bytes = 0;
    def->identity = (const uint8_t *)pack->data + FIELD(kr__pack_op, at, identity);
    if (index && strcmp(pack->defs[index - 1]->op.name, def->op.name) >= 0)
        return WRONG(r, at, "the op %s comes after %s", def->op.name, pack->defs[index - 1]->op.name);
    if (row.n_entries > pack->n_entries - r->entry)
        return WRONG(r, FIELD(kr__pack_op, at, n_entries), "%s has %u entries; %zu are left", def->op.name,
                     row.n_entries, pack->n_entries - r->entry);
    if (!is_zero(row.zero, sizeof row.zero))
        return WRONG(r, FIELD(kr__pack_op, at, zero), "what is not used is not zero");
    return read_entries(r, row.n_entries, def);
}

static kr_status read_all(kr_pack *pack, kr_error *err)
{
    reader r = {.pack = pack, .err = err};
    kr_status status = read_header(&r);
    if (status)
        return status;
    pack->n_entries = r.header.n_entries;
    pack->images = kr__arena_alloc(&pack->arena, pack->n_entries * sizeof *pack->images);
    pack->ops = kr__arena_alloc(&pack->arena, pack->n_entries * sizeof *pack->ops);
    pack->defs = kr__arena_alloc(&pack->arena, r.header.n_ops * sizeof *pack->defs);
    if (!pack->images || !pack->ops || !pack->defs)
        return KR_FAIL(err, KR_OUT_OF_HOST_MEMORY, "no host memory for the %u entries of a pack",
                       r.header.n_entries);
    pack->n_ops = r.header.n_ops;
    for (size_t i = 0; i < pack->n_ops && !status; i++)
        status = read_op(&r, i);
    if (status)
        return status;
    if (r.entry < pack->n_entries)
        return WRONG(&r, offsetof(kr__pack_header, n_entries), "%zu of %zu entries are no op's",
                     pack->n_entries - r.entry, pack->n_entries);
    if (r.payload != pack->bytes)
        return WRONG(&r, r.payload, "the last entry ends here; there are %zu bytes", pack->bytes);
    return KR_OK;
}

/* ---- life ---- */

/* Takes a new pack with its bytes. */
static kr_status open_pack(kr_pack *pack, kr_pack **ret_pack, kr_error *err)
{
    const kr_status status = read_all(pack, err);
    if (status)
        kr_pack_close(&pack);
    else
        *ret_pack = pack;
    return status;
}

kr_status kr_pack_open(const char *path, kr_pack **ret_pack, kr_error *err)
{
    KR_REQUIRE(err, path, ret_pack);
    kr_pack *pack = kr__alloc(1, sizeof *pack, err);
    if (!pack)
        return KR_OUT_OF_HOST_MEMORY;
    const void *data;
    kr_status status = kr__file_map(path, &data, &pack->bytes, err);
    if (status) {
        free(pack);
        return status;
    }
    pack->data = data;
    pack->is_mapped = true;
    status = open_pack(pack, ret_pack, err);
    return status ? kr__while(err, status, "opening %s", path) : KR_OK;
}

kr_status kr_pack_open_memory(const void *data, size_t bytes, kr_pack **ret_pack, kr_error *err)
{
    KR_REQUIRE(err, data, ret_pack);
    kr_pack *pack = kr__alloc(1, sizeof *pack, err);
    if (!pack)
        return KR_OUT_OF_HOST_MEMORY;
    pack->data = data;
    pack->bytes = bytes;
    return open_pack(pack, ret_pack, err);
}

/* How long the pack is that begins here; 0: none does. Programs that read packs hold the first eight bytes
 * too, but no numbers that fit. */
static uint64_t promised_bytes(const char *at, size_t left)
{
    enum { MOST_VERSIONS = 256 };
    kr__pack_header h;
    if (left < sizeof h)
        return 0;
    memcpy(&h, at, sizeof h); /* it may lie anywhere */
    const bool fits =
        h.version && h.version < MOST_VERSIONS && h.index_bytes >= sizeof h && h.index_bytes <= h.bytes;
    return fits && h.index_bytes % KR__PACK_ALIGN == 0 && h.bytes % KR__PACK_ALIGN == 0 ? h.bytes : 0;
}

kr_status kr_pack_find(const void *data, size_t bytes, size_t *ret_at, kr_pack **ret_pack, kr_error *err)
{
    KR_REQUIRE(err, data, ret_at, ret_pack);
    const char *const begin = data, *found;
    *ret_pack = NULL;
    for (; *ret_at < bytes; ++*ret_at) {
        found = memmem(begin + *ret_at, bytes - *ret_at, KR__PACK_MAGIC, sizeof KR__PACK_MAGIC - 1);
        if (!found)
            break;
        *ret_at = (size_t)(found - begin);
        const size_t left = bytes - *ret_at;
        const uint64_t promised = promised_bytes(found, left);
        if (promised)
            return kr_pack_open_memory(found, promised < left ? (size_t)promised : left, ret_pack, err);
    }
    return KR_OK;
}

kr_status kr__pack_adopt(char *data, size_t bytes, kr_pack **ret_pack, kr_error *err)
{
    kr_pack *pack = kr__alloc(1, sizeof *pack, err);
    if (!pack) {
        free(data);
        return KR_OUT_OF_HOST_MEMORY;
    }
    pack->data = pack->owned = data;
    pack->bytes = bytes;
    return open_pack(pack, ret_pack, err);
}

void kr_pack_close(kr_pack **pack)
{
    if (!pack || !*pack)
        return;
    kr_pack *p = *pack;
    for (size_t i = 0; i < p->n_ops; i++)
        kr__op_free(&p->defs[i]);
    kr__arena_free(&p->arena);
    if (p->is_mapped)
        kr__file_unmap(p->data, p->bytes);
    free(p->owned);
    free(p);
    *pack = NULL;
}

kr__op_def *kr__pack_take_op(kr_pack *pack, size_t index)
{
    kr__op_def *def = pack->defs[index];
    pack->defs[index] = NULL;
    return def;
}

/* ---- what is in it ---- */

kr_pack_info kr_pack_get_info(const kr_pack *pack)
{
    return !pack ? (kr_pack_info){0}
                 : (kr_pack_info){.data = pack->data,
                                  .bytes = pack->bytes,
                                  .version = KR__PACK_VERSION,
                                  .n_ops = pack->n_ops,
                                  .n_images = pack->n_images};
}

const kr_op *kr_pack_op(const kr_pack *pack, size_t index)
{
    return pack && index < pack->n_ops ? &pack->defs[index]->op : NULL;
}

bool kr_pack_has_source(const kr_pack *pack, const kr_op *op)
{
    return pack && op && kr__op_def_of(op)->text;
}

kr_status kr_pack_get_image(const kr_pack *pack, size_t index, kr_pack_image *ret_image, kr_error *err)
{
    KR_REQUIRE(err, pack, ret_image);
    if (index >= pack->n_images)
        return KR_FAIL(err, KR_NOT_FOUND, "the pack has %zu images; there is no index %zu", pack->n_images,
                       index);
    const kr__image *image = &pack->images[index];
    const kr_status status = kr__stored_check(&image->stored, err);
    if (status)
        return status;
    *ret_image = (kr_pack_image){.op = pack->ops[index],
                                 .type_index = image->type,
                                 .variant = image->variant,
                                 .kind = image->kind,
                                 .arch = image->arch,
                                 .isa = image->isa,
                                 .data = image->stored.bytes,
                                 .bytes = image->stored.n_bytes};
    return KR_OK;
}
