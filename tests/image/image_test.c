/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Readers and writer of code images, against images made here by hand, and against the toolkit's own tools
 * where they are installed (KREGISTRY_TEST_IMAGES: a folder that tools.sh filled).
 */
#include "ptx/image/image.h"

#include <check.h>
#include <lz4.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>
#include <zstd_errors.h>

/* ---- a cubin by hand ---- */

typedef struct part {
    uint8_t data[4096];
    size_t n;
} part;

static void put(part *b, uint64_t value, size_t n)
{
    ck_assert(b->n + n <= sizeof b->data);
    memcpy(b->data + b->n, &value, n);
    b->n += n;
}

static void put_text(part *b, const char *text, size_t n)
{
    ck_assert(b->n + n <= sizeof b->data);
    memcpy(b->data + b->n, text, n);
    b->n += n;
}

/* What a tool of the toolkit leaves of itself: here its options alone. */
static void put_note(part *b, const char *options)
{
    const size_t n = strlen(options) + 1, padding = (4 - n % 4) % 4;
    put(b, 12, 4), put(b, 24 + n + padding, 4), put(b, 2000, 4), put_text(b, "NVIDIA Corp", 12);
    put(b, 2, 4), put(b, 0, 8), put(b, 0, 8), put(b, 0, 4);
    put_text(b, options, n), put(b, 0, padding);
}

/* One kernel `k` (f32 at 0, pointer at 8), 40 registers, 512 bytes of shared and 24 of local memory, at most
 * 128 x 2 x 1 threads, one barrier; one variable `g` of 64 bytes, and 32 bytes of constants `c`. */
static size_t make_cubin(part *out, int abi, int sm, char suffix)
{
    static const char names[] = "\0.shstrtab\0.strtab\0.symtab\0.text.k\0.nv.info\0.nv.info.k\0.nv.shared.k\0"
                                ".nv.constant3\0.nv.global\0.nv.compat\0.note.nv.tkinfo\0";
    enum {
        AT_SHSTRTAB = 1,
        AT_STRTAB = 11,
        AT_SYMTAB = 19,
        AT_TEXT = 27,
        AT_INFO = 35,
        AT_INFO_K = 44,
        AT_SHARED = 55,
        AT_CONST = 68,
        AT_GLOBAL = 82,
        AT_COMPAT = 93,
        AT_NOTES = 104
    };
    enum { NULLS, SHSTRTAB, STRTAB, SYMTAB, TEXT, INFO, INFO_K, SHARED, CONST, GLOBAL, COMPAT, NOTES, N };
    part parts[N] = {0};
    put_text(&parts[SHSTRTAB], names, sizeof names);
    put_text(&parts[STRTAB], "\0k\0g\0c", 7);
    put(&parts[SYMTAB], 0, 8), put(&parts[SYMTAB], 0, 8), put(&parts[SYMTAB], 0, 8);
    struct {
        unsigned name, info, other, section, size;
    } symbols[] = {{1, 0x12, 0x10, TEXT, 128}, {3, 0x11, 0, GLOBAL, 64}, {5, 0x11, 0, CONST, 32}};
    for (size_t i = 0; i < 3; i++) {
        put(&parts[SYMTAB], symbols[i].name, 4), put(&parts[SYMTAB], symbols[i].info, 1);
        put(&parts[SYMTAB], symbols[i].other, 1), put(&parts[SYMTAB], symbols[i].section, 2);
        put(&parts[SYMTAB], 0, 8), put(&parts[SYMTAB], symbols[i].size, 8);
    }
    parts[TEXT].n = 128;
    put(&parts[INFO], 0x00081104, 4), put(&parts[INFO], 1, 4), put(&parts[INFO], 24, 4); /* FRAME_SIZE */
    if (abi >= 8)
        put(&parts[INFO], 0x00082f04, 4), put(&parts[INFO], 1, 4), put(&parts[INFO], 40, 4); /* REGCOUNT */
    put(&parts[INFO_K], 0x000c1704, 4), put(&parts[INFO_K], 0, 4);                           /* parameter 1 */
    put(&parts[INFO_K], 1 | 8 << 16, 4), put(&parts[INFO_K], 8u << 18 | 0x1f000, 4);
    put(&parts[INFO_K], 0x00106804, 4), put(&parts[INFO_K], 0, 8), put(&parts[INFO_K], 0, 8); /* unknown */
    put(&parts[INFO_K], 0x000c4504, 4), put(&parts[INFO_K], 0, 4); /* parameter 0, V2 */
    put(&parts[INFO_K], 0, 4), put(&parts[INFO_K], 4, 4);
    put(&parts[INFO_K], 0x00101903, 4); /* 16 bytes of them */
    put(&parts[INFO_K], 0x000c0504, 4), put(&parts[INFO_K], 128, 4), put(&parts[INFO_K], 2, 4),
        put(&parts[INFO_K], 1, 4);
    put(&parts[INFO_K], 0x00801b03, 4); /* compiled for at most 128 registers */
    if (abi >= 8)
        put(&parts[INFO_K], 0x00014c02, 4);
    parts[SHARED].n = sm >= 90 ? 512 + 1024 : 512;
    parts[CONST].n = 32;
    parts[GLOBAL].n = 1 << 20; /* takes no room in the file */
    put(&parts[COMPAT], suffix == 'a' ? 0x00010902 : 0x00000902, 4);
    put_note(&parts[NOTES], "as it was linked"); /* says no target */
    put_note(&parts[NOTES], suffix == 'f' ? "-g -arch sm_100f -c " : "-arch sm_100 -c ");

    static const struct {
        unsigned name, type;
    } heads[N] = {{0, 0},        {AT_SHSTRTAB, 3},      {AT_STRTAB, 3},          {AT_SYMTAB, 2},
                  {AT_TEXT, 1},  {AT_INFO, 0x70000000}, {AT_INFO_K, 0x70000000}, {AT_SHARED, 8},
                  {AT_CONST, 1}, {AT_GLOBAL, 8},        {AT_COMPAT, 0x70000086}, {AT_NOTES, 7}};
    uint64_t at[N], end = 64;
    for (int i = 1; i < N; i++) {
        at[i] = end;
        end += heads[i].type == 8 ? 0 : (parts[i].n + 15) / 16 * 16;
    }
    uint32_t flags = abi >= 8 ? 0x06000004u | (unsigned)sm << 8 : 0x500u | (unsigned)sm | (unsigned)sm << 16;
    if (abi < 8 && suffix == 'a')
        flags |= 1u << 11;
    out->n = 0;
    put_text(out, "\177ELF\2\1\1", 7), put(out, abi >= 8 ? 0x41 : 0x33, 1), put(out, (unsigned)abi, 8);
    put(out, 2, 2), put(out, 190, 2), put(out, 1, 4), put(out, 0, 8), put(out, 0, 8), put(out, end, 8),
        put(out, flags, 4);
    put(out, 64, 2), put(out, 56, 2), put(out, 0, 2), put(out, 64, 2), put(out, N, 2), put(out, SHSTRTAB, 2);
    for (int i = 1; i < N; i++) {
        if (heads[i].type == 8)
            continue;
        out->n = at[i];
        put_text(out, (const char *)parts[i].data, parts[i].n);
    }
    out->n = end;
    for (int i = 0; i < N; i++) {
        put(out, heads[i].name, 4), put(out, heads[i].type, 4);
        put(out, i == TEXT && abi < 8 ? 1u << 20 : 0, 8), put(out, 0, 8);
        put(out, i ? at[i] : 0, 8), put(out, i ? parts[i].n : 0, 8);
        put(out, i == SYMTAB ? STRTAB : 0, 4), put(out, i == TEXT && abi < 8 ? 40u << 24 | 1 : 0, 4);
        put(out, 16, 8), put(out, 0, 8);
    }
    return out->n;
}

static void check_cubin(const part *image, int abi, int major, int minor, char suffix)
{
    kr__cubin *cubin;
    kr_error err;
    ck_assert_uint_eq(kr__image_bytes(image->data, sizeof image->data), image->n);
    kr_status status = kr__cubin_read(image->data, image->n, &cubin, &err);
    ck_assert_msg(status == KR_OK, "%s", err.message);
    ck_assert_int_eq(cubin->abi, abi);
    ck_assert_int_eq(cubin->arch.major, major);
    ck_assert_int_eq(cubin->arch.minor, minor);
    ck_assert_int_eq(cubin->arch.suffix, suffix);
    ck_assert(cubin->linked);
    ck_assert_uint_eq(cubin->const_bytes, 32);
    ck_assert_uint_eq(cubin->n_kernels, 1);
    const kr_image_kernel *k = &cubin->kernels[0];
    ck_assert_str_eq(k->name, "k");
    ck_assert_uint_eq(k->code_bytes, 128);
    ck_assert_int_eq(k->registers, 40);
    ck_assert_int_eq(k->barriers, 1);
    ck_assert_uint_eq(k->shared_bytes, 512);
    ck_assert_uint_eq(k->local_bytes, 24);
    ck_assert_uint_eq(k->max_threads[0] * k->max_threads[1] * k->max_threads[2], 256);
    ck_assert_uint_eq(k->required_threads[0], 0);
    ck_assert_int_eq(k->max_registers, 128);
    ck_assert_uint_eq(k->param_bytes, 16);
    ck_assert_uint_eq(k->n_params, 2);
    ck_assert_uint_eq(k->params[0].offset, 0);
    ck_assert_uint_eq(k->params[0].bytes, 4);
    ck_assert_uint_eq(k->params[1].offset, 8);
    ck_assert_uint_eq(k->params[1].bytes, 8);
    ck_assert_uint_eq(cubin->n_variables, 2);
    ck_assert_str_eq(cubin->variables[0].name, "g");
    ck_assert_uint_eq(cubin->variables[0].bytes, 64);
    ck_assert(!cubin->variables[0].is_const);
    ck_assert(cubin->variables[1].is_const);
    kr__cubin_free(&cubin);
    ck_assert_ptr_null(cubin);
}

START_TEST(cubins_of_both_abis)
{
    part image = {0};
    make_cubin(&image, 8, 90, 0);
    check_cubin(&image, 8, 9, 0, 0);
    make_cubin(&image, 8, 90, 'a');
    check_cubin(&image, 8, 9, 0, 'a');
    make_cubin(&image, 8, 121, 0);
    check_cubin(&image, 8, 12, 1, 0);
    make_cubin(&image, 8, 100, 'f');
    check_cubin(&image, 8, 10, 0, 'f');
    make_cubin(&image, 7, 75, 0);
    check_cubin(&image, 7, 7, 5, 0);
    make_cubin(&image, 7, 90, 'a');
    check_cubin(&image, 7, 9, 0, 'a');
}
END_TEST

/* The copy has no byte to spare, so that the sanitizer sees a read past the end. */
static kr_status read_copy(const void *data, size_t n, kr_error *err)
{
    char *copy = malloc(n ? n : 1);
    memcpy(copy, data, n);
    kr__cubin *cubin = NULL;
    kr__fatbin *fatbin = NULL;
    kr_status status;
    if (n >= 4 && memcmp(copy, "\177ELF", 4) == 0) {
        status = kr__cubin_read(copy, n, &cubin, err);
    } else {
        status = kr__fatbin_read(copy, n, &fatbin, err);
        for (size_t i = 0; !status && i < fatbin->n_entries; i++) {
            char *unpacked;
            size_t bytes;
            if (kr__fatbin_unpack(&fatbin->entries[i], &unpacked, &bytes, err) == KR_OK)
                free(unpacked);
        }
    }
    kr_image_kind kind;
    kr__image_kind(copy, n, &kind, NULL);
    ck_assert_uint_le(kr__image_bytes(copy, n), n);
    kr__cubin_free(&cubin);
    kr__fatbin_free(&fatbin);
    free(copy);
    return status;
}

/* Every cut loses something, and the reader says where; no flip does harm. */
static void damage(const uint8_t *data, size_t n)
{
    kr_error err;
    for (size_t cut = 0; cut < n; cut += cut % 64 == 0 && n > 8192 ? 64 : 1) {
        ck_assert_int_eq(read_copy(data, cut, &err), KR_CORRUPT);
        ck_assert_msg(strstr(err.message, "expected") || strstr(err.message, "promises") ||
                          strstr(err.message, "offset"),
                      "%s", err.message);
    }
    uint8_t *flipped = malloc(n);
    static const uint8_t masks[] = {0xff, 0x01, 0x80};
    size_t step = n > 8192 ? n / 4096 : 1;
    for (size_t at = 0; at < n; at += step) {
        for (size_t m = 0; m < KR_COUNT(masks); m++) {
            memcpy(flipped, data, n);
            flipped[at] ^= masks[m];
            read_copy(flipped, n, &err);
        }
    }
    free(flipped);
}

START_TEST(damaged_cubins_are_refused)
{
    part image = {0};
    make_cubin(&image, 8, 90, 'a');
    damage(image.data, image.n);
    make_cubin(&image, 7, 75, 0);
    damage(image.data, image.n);
}
END_TEST

/* A pointer alone says how long a cubin is by its header tables. A section that lies past them would be read
 * from what is not the image. */
START_TEST(no_section_lies_past_the_image)
{
    enum { SECTION_BYTES = 64, AT_TYPE = 4, AT_OFFSET = 0x18 };
    part image = {0};
    size_t n = make_cubin(&image, 8, 90, 0);
    uint64_t headers;
    memcpy(&headers, image.data + 0x28, sizeof headers);
    for (size_t at = headers; at < n; at += SECTION_BYTES) {
        part bad = image;
        memcpy(bad.data + at + AT_TYPE, &(uint32_t){0}, 4);
        memcpy(bad.data + at + AT_OFFSET, &(uint64_t){n + 100}, 8);
        ck_assert_uint_eq(kr__image_bytes(bad.data, sizeof bad.data), 0);
        kr__cubin *cubin;
        ck_assert_int_eq(kr__cubin_read(bad.data, n, &cubin, NULL), KR_CORRUPT);
    }
    for (size_t at = headers; at < n; at++)
        for (unsigned bit = 1; bit < 0x100; bit <<= 1) {
            part flipped = image;
            flipped.data[at] ^= (uint8_t)bit;
            size_t bytes = kr__image_bytes(flipped.data, sizeof flipped.data);
            ck_assert(bytes == 0 || bytes == n);
            read_copy(flipped.data, n, NULL);
        }
}
END_TEST

START_TEST(messages_name_the_offset)
{
    part image = {0};
    kr__cubin *cubin;
    kr_error err;
    make_cubin(&image, 8, 90, 0);
    image.data[0x12] = 62; /* x86-64 */
    ck_assert_int_eq(kr__cubin_read(image.data, image.n, &cubin, &err), KR_CORRUPT);
    ck_assert_str_eq(err.message, "cubin: machine 190 was expected at offset 0x12, not 62");
    image.data[0x12] = 190;
    uint64_t symbols;
    uint32_t sections;
    memcpy(&sections, image.data + 0x28, 4);
    memcpy(&symbols, image.data + sections + 3 * 64 + 0x18, 8);
    image.data[symbols + 24 + 6] = 13; /* of `k` */
    ck_assert_int_eq(kr__cubin_read(image.data, image.n, &cubin, &err), KR_CORRUPT);
    ck_assert_msg(strstr(err.message, "was expected in one of 12 sections, not in 13") != NULL, "%s",
                  err.message);
    kr_image_kind kind;
    ck_assert_int_eq(kr__image_kind("MZ\1\2", 4, &kind, &err), KR_CORRUPT);
    ck_assert_ptr_nonnull(strstr(err.message, "4 bytes beginning 4d 5a 01 02 are no PTX"));
    ck_assert_int_eq(kr__image_kind("P\355U", 3, &kind, &err), KR_CORRUPT); /* what is left of a fatbin */
    ck_assert_ptr_nonnull(strstr(err.message, "3 bytes beginning 50 ed 55"));
}
END_TEST

/* As ptxas 13.0 takes them. */
START_TEST(heads_of_ptx)
{
    static const char *const heads[] = {
        ".version 8.7\n.target sm_90a\n",
        "/* .version 1.0 */ .version\t8.7\r\n.target\r\nsm_90a, debug\n",
        ".version 8.7// a\n.target sm_90a// b\n",
        ".version 8.7/**/.target/* c */sm_90a/*/ */,debug",
        ".version 8.7.target sm_90a.address_size 64",
        ".version 8.7 .target sm_90a",
    };
    for (size_t i = 0; i < KR_COUNT(heads); i++) {
        kr__ptx_head head;
        ck_assert(kr__ptx_head_read(heads[i], strlen(heads[i]), &head));
        ck_assert_int_eq(head.isa, 87);
        ck_assert_int_eq(head.target.major * 10 + head.target.minor, 90);
        ck_assert_int_eq(head.target.suffix, 'a');
        ck_assert_int_eq(strncmp(heads[i] + head.isa_at, "8.7", head.isa_end - head.isa_at), 0);
        ck_assert_int_eq(strncmp(heads[i] + head.target_at, "sm_90a", head.target_end - head.target_at), 0);
    }
}
END_TEST

START_TEST(ptx_with_a_preamble)
{
    static const char text[] = "// made by hand\n/* and\n kept */\r\n\n.version 8.0\n.target sm_90a, debug\n";
    kr__image_facts facts;
    ck_assert_int_eq(kr__image_read(text, strlen(text), &facts, NULL), KR_OK);
    ck_assert_int_eq(facts.kind, KR_IMAGE_PTX);
    ck_assert_int_eq(facts.isa, 80);
    ck_assert(facts.target.major == 9 && facts.target.suffix == 'a');
    ck_assert_str_eq(facts.text, "PTX 8.0 for sm_90a");
}
END_TEST

START_TEST(kinds)
{
    part image = {0};
    kr_image_kind kind;
    make_cubin(&image, 8, 90, 0);
    ck_assert_int_eq(kr__image_kind(image.data, image.n, &kind, NULL), KR_OK);
    ck_assert_int_eq(kind, KR_IMAGE_CUBIN);
    static const char *const ptx[] = {".version 7.0", "\n\n /* .x */ // y\n.version 7.0"};
    for (size_t i = 0; i < 2; i++) {
        ck_assert_int_eq(kr__image_kind(ptx[i], strlen(ptx[i]), &kind, NULL), KR_OK);
        ck_assert_int_eq(kind, KR_IMAGE_PTX);
    }
    static const char *const none[] = {"", ".target sm_75", "/* .version", "\xef\xbb\xbf.version 7.0",
                                       "// only a comment"};
    for (size_t i = 0; i < KR_COUNT(none); i++)
        ck_assert_int_eq(kr__image_kind(none[i], strlen(none[i]), &kind, NULL), KR_CORRUPT);
}
END_TEST

/* ---- fatbins ---- */

static const char ptx[] = "\n.version 9.0\n.target sm_90a\n.address_size 64\n.visible .entry k() { ret; }\n";

START_TEST(what_is_written_is_read)
{
    part cubin = {0};
    make_cubin(&cubin, 8, 100, 0);
    kr__fatbin_part parts[] = {
        {KR_IMAGE_CUBIN, {10, 0, 'f'}, 0, cubin.data, cubin.n},
        {KR_IMAGE_PTX, {9, 0, 'a'}, 90, ptx, sizeof ptx - 1},
        {KR_IMAGE_PTX, {7, 5, 0}, 63, ptx, sizeof ptx}, /* its NUL counted */
    };
    void *image;
    size_t n;
    ck_assert_int_eq(kr__fatbin_write(parts, 3, &image, &n, NULL), KR_OK);
    ck_assert_uint_eq(kr__image_bytes(image, n), n);
    ck_assert_uint_eq(n % 8, 0);
    kr__fatbin *fatbin;
    ck_assert_int_eq(kr__fatbin_read(image, n, &fatbin, NULL), KR_OK);
    ck_assert_uint_eq(fatbin->n_entries, 3);
    for (size_t i = 0; i < 3; i++) {
        const kr__fatbin_entry *entry = &fatbin->entries[i];
        char *data;
        size_t bytes;
        ck_assert_int_eq(entry->kind, parts[i].kind);
        ck_assert_int_eq(entry->arch.major, parts[i].arch.major);
        ck_assert_int_eq(entry->arch.minor, parts[i].arch.minor);
        ck_assert_int_eq(entry->arch.suffix, parts[i].arch.suffix);
        ck_assert_int_eq(entry->isa, parts[i].isa);
        ck_assert_int_eq(entry->compression, KR_STORED);
        ck_assert_int_eq(kr__fatbin_unpack(entry, &data, &bytes, NULL), KR_OK);
        ck_assert_uint_ge(bytes, i ? sizeof ptx - 1 : cubin.n);
        ck_assert_mem_eq(data, parts[i].data, i ? sizeof ptx - 1 : cubin.n);
        free(data);
    }
    kr__fatbin_free(&fatbin);

    /* Two, one after the other. */
    char *twice = malloc(2 * n);
    memcpy(twice, image, n);
    memcpy(twice + n, image, n);
    ck_assert_int_eq(kr__fatbin_read(twice, 2 * n, &fatbin, NULL), KR_OK);
    ck_assert_uint_eq(fatbin->n_entries, 6);
    kr__fatbin_free(&fatbin);
    ck_assert_uint_eq(kr__image_bytes(twice, 2 * n), n); /* a pointer alone leads to the first */
    free(twice);

    /* An entry of a kind nobody knows is named as such. */
    ((uint8_t *)image)[16] = 0x40;
    ck_assert_int_eq(kr__fatbin_read(image, n, &fatbin, NULL), KR_OK);
    ck_assert_uint_eq(fatbin->n_entries, 3);
    ck_assert_int_eq(fatbin->entries[0].kind, KR_IMAGE_OTHER);
    ck_assert_uint_eq(fatbin->entries[0].number, 0x40);
    kr__fatbin_free(&fatbin);
    free(image);
}
END_TEST

/* One compressed PTX entry, laid out by hand. */
static size_t make_packed(uint8_t *to, kr_compression compression)
{
    uint8_t packed[1024];
    size_t n = compression == KR_ZSTD
                   ? ZSTD_compress(packed, sizeof packed, ptx, sizeof ptx, 3)
                   : (size_t)LZ4_compress_default(ptx, (char *)packed, sizeof ptx, sizeof packed);
    size_t padded = (n + 7) / 8 * 8;
    uint64_t flags = 0x11 | (compression == KR_ZSTD ? 0x8000 : 0x2000);
    memset(to, 0, 16 + 64 + padded);
    memcpy(to, &(uint32_t){0xba55ed50}, 4);
    memcpy(to + 0x04, (uint16_t[]){1, 16}, 4);
    memcpy(to + 0x08, &(uint64_t){64 + padded}, 8);
    memcpy(to + 0x10, (uint16_t[]){1, 0x0101}, 4); /* PTX */
    memcpy(to + 0x14, &(uint32_t){64}, 4);
    memcpy(to + 0x18, &padded, 8);
    memcpy(to + 0x20, &n, 4);
    memcpy(to + 0x28, (uint16_t[]){0, 9}, 4);
    memcpy(to + 0x2c, &(uint32_t){90}, 4);
    memcpy(to + 0x38, &flags, 8);
    memcpy(to + 0x48, &(uint64_t){sizeof ptx}, 8);
    memcpy(to + 16 + 64, packed, n);
    return 16 + 64 + padded;
}

START_TEST(compressed_entries)
{
    for (int c = KR_LZ4; c <= KR_ZSTD; c++) {
        uint8_t image[2048];
        size_t n = make_packed(image, (kr_compression)c);
        kr__fatbin *fatbin;
        kr_error err;
        kr_status status = kr__fatbin_read(image, n, &fatbin, &err);
        ck_assert_msg(status == KR_OK, "%s", err.message);
        ck_assert_uint_eq(fatbin->n_entries, 1);
        ck_assert_int_eq(fatbin->entries[0].compression, c);
        ck_assert_int_eq(fatbin->entries[0].isa, 90);
        char *data;
        size_t bytes;
        ck_assert_int_eq(kr__fatbin_unpack(&fatbin->entries[0], &data, &bytes, NULL), KR_OK);
        ck_assert_str_eq(data, ptx);
        ck_assert_uint_eq(bytes, sizeof ptx - 1);
        free(data);
        kr__fatbin_free(&fatbin);
        damage(image, n);
    }
}
END_TEST

/* Stands before zstd's (--wrap). */
static bool zstd_lacks_memory;
size_t __real_ZSTD_decompress(void *to, size_t room, const void *from, size_t bytes);
size_t __wrap_ZSTD_decompress(void *to, size_t room, const void *from, size_t bytes);
size_t __wrap_ZSTD_decompress(void *to, size_t room, const void *from, size_t bytes)
{
    return zstd_lacks_memory ? (size_t)-ZSTD_error_memory_allocation
                             : __real_ZSTD_decompress(to, room, from, bytes);
}

START_TEST(zstd_without_memory_is_no_damage)
{
    uint8_t image[2048];
    char *data;
    size_t bytes;
    kr__fatbin *fatbin;
    kr_error err;
    const size_t n = make_packed(image, KR_ZSTD);
    ck_assert_int_eq(kr__fatbin_read(image, n, &fatbin, NULL), KR_OK);
    zstd_lacks_memory = true;
    ck_assert_int_eq(kr__fatbin_unpack(&fatbin->entries[0], &data, &bytes, &err), KR_OUT_OF_HOST_MEMORY);
    zstd_lacks_memory = false;
    ck_assert_ptr_nonnull(strstr(err.message, "no memory to unpack a zstd payload"));
    kr__fatbin_free(&fatbin);
}
END_TEST

START_TEST(wrapper_leads_to_the_fatbin)
{
    struct {
        uint32_t magic, version;
        const void *data;
        void *file;
    } wrapper = {0x466243b1, 1, ptx, NULL};
    ck_assert_ptr_eq(kr__fatbin_unwrap(&wrapper), ptx);
    wrapper.magic = 0;
    ck_assert_ptr_null(kr__fatbin_unwrap(&wrapper));
}
END_TEST

START_TEST(writer_refuses_what_is_no_image)
{
    void *image;
    size_t n;
    kr_error err;
    ck_assert_int_eq(
        kr__fatbin_write(&(kr__fatbin_part){KR_IMAGE_CUBIN, {9, 0, 0}, 0, "x", 1}, 1, &image, &n, &err),
        KR_INVALID_ARGUMENT);
    ck_assert_int_eq(
        kr__fatbin_write(&(kr__fatbin_part){KR_IMAGE_FATBIN, {9, 0, 0}, 0, ptx, 64}, 1, &image, &n, &err),
        KR_INVALID_ARGUMENT);
}
END_TEST

/* ---- against the toolkit ---- */

static char *read_image(const char *name, size_t *ret_bytes)
{
    const char *folder = getenv("KREGISTRY_TEST_IMAGES");
    char path[512], *data = NULL;
    snprintf(path, sizeof path, "%s/%s", folder ? folder : "", name);
    return folder && kr__file_read(path, &data, ret_bytes, NULL) == KR_OK ? data : NULL;
}

/* fatbinary's file is what the writer makes of the entries in it, byte for byte. */
START_TEST(writes_as_fatbinary_does)
{
    static const char *const files[] = {"90.none.fatbin", "90a.none.fatbin", "100f.none.fatbin",
                                        "120.none.fatbin"};
    for (size_t f = 0; f < KR_COUNT(files); f++) {
        size_t n, written_bytes;
        char *image = read_image(files[f], &n);
        if (!image)
            return;
        kr__fatbin *fatbin;
        ck_assert_int_eq(kr__fatbin_read(image, n, &fatbin, NULL), KR_OK);
        ck_assert_uint_eq(fatbin->n_entries, 2);
        kr__fatbin_part parts[2];
        char *data[2];
        for (size_t i = 0; i < 2; i++) {
            const kr__fatbin_entry *entry = &fatbin->entries[i];
            parts[i] = (kr__fatbin_part){.kind = entry->kind, .arch = entry->arch, .isa = entry->isa};
            ck_assert_int_eq(kr__fatbin_unpack(entry, &data[i], &parts[i].bytes, NULL), KR_OK);
            parts[i].data = data[i];
        }
        void *written;
        ck_assert_int_eq(kr__fatbin_write(parts, 2, &written, &written_bytes, NULL), KR_OK);
        ck_assert_uint_eq(written_bytes, n);
        ck_assert_mem_eq(written, image, n);
        free(written);
        free(data[0]);
        free(data[1]);
        kr__fatbin_free(&fatbin);
        free(image);
    }
}
END_TEST

/* What the readers say of ptxas's cubin is what ptxas -v said when it made it: registers and shared memory.
 */
START_TEST(reads_what_ptxas_made)
{
    static const char *const archs[] = {"75", "80", "90", "90a", "100", "100f", "120"};
    for (size_t a = 0; a < KR_COUNT(archs); a++) {
        char name[32];
        size_t n, log_bytes;
        snprintf(name, sizeof name, "%s.cubin", archs[a]);
        char *image = read_image(name, &n);
        snprintf(name, sizeof name, "%s.log", archs[a]);
        char *log = read_image(name, &log_bytes);
        if (!image || !log)
            return;
        kr__cubin *cubin;
        kr_error err;
        ck_assert_msg(kr__cubin_read(image, n, &cubin, &err) == KR_OK, "%s", err.message);
        ck_assert_uint_eq(cubin->n_kernels, 2);
        const char last = archs[a][strlen(archs[a]) - 1];
        ck_assert_int_eq(cubin->arch.suffix, last > '9' ? last : 0);
        ck_assert_int_eq(cubin->arch.major * 10 + cubin->arch.minor, atoi(archs[a]));
        for (size_t i = 0; i < cubin->n_kernels; i++) {
            const kr_image_kernel *k = &cubin->kernels[i];
            char title[64];
            snprintf(title, sizeof title, "Compiling entry function '%s'", k->name);
            const char *at = strstr(log, title), *used = at ? strstr(at, "Used ") : NULL;
            ck_assert_ptr_nonnull(used);
            ck_assert_int_eq(k->registers, atoi(used + 5));
            const char *end = strchr(used, '\n'), *shared = strstr(used, " bytes smem");
            size_t expected = 0;
            if (shared && shared < end) {
                while (shared[-1] >= '0' && shared[-1] <= '9')
                    shared--;
                expected = (size_t)atoi(shared);
            }
            ck_assert_uint_eq(k->shared_bytes, expected);
            bool is_tile = strcmp(k->name, "tile") == 0;
            ck_assert_uint_eq(k->n_params, is_tile ? 2 : 4);
            ck_assert_uint_eq(k->max_threads[0], is_tile ? 256 : 0);
        }
        damage((const uint8_t *)image, n);
        kr__cubin_free(&cubin);
        free(image);
        free(log);
    }
}
END_TEST

START_TEST(reads_every_compression_of_fatbinary)
{
    static const char *const modes[] = {"none", "speed", "balance", "size"};
    for (size_t m = 0; m < KR_COUNT(modes); m++) {
        char name[32];
        size_t n;
        snprintf(name, sizeof name, "90.%s.fatbin", modes[m]);
        char *image = read_image(name, &n);
        if (!image)
            return;
        kr__fatbin *fatbin;
        ck_assert_int_eq(kr__fatbin_read(image, n, &fatbin, NULL), KR_OK);
        ck_assert_uint_eq(fatbin->n_entries, 2);
        for (size_t i = 0; i < 2; i++) {
            char *data;
            size_t bytes;
            ck_assert_int_eq(kr__fatbin_unpack(&fatbin->entries[i], &data, &bytes, NULL), KR_OK);
            kr_image_kind kind;
            ck_assert_int_eq(kr__image_kind(data, bytes, &kind, NULL), KR_OK);
            ck_assert_int_eq(kind, fatbin->entries[i].kind);
            free(data);
        }
        damage((const uint8_t *)image, n);
        kr__fatbin_free(&fatbin);
        free(image);
    }
}
END_TEST

int main(void)
{
    TCase *cases = tcase_create("image");
    tcase_set_timeout(cases, 120);
    tcase_add_test(cases, cubins_of_both_abis);
    tcase_add_test(cases, damaged_cubins_are_refused);
    tcase_add_test(cases, no_section_lies_past_the_image);
    tcase_add_test(cases, messages_name_the_offset);
    tcase_add_test(cases, heads_of_ptx);
    tcase_add_test(cases, ptx_with_a_preamble);
    tcase_add_test(cases, kinds);
    tcase_add_test(cases, what_is_written_is_read);
    tcase_add_test(cases, compressed_entries);
    tcase_add_test(cases, zstd_without_memory_is_no_damage);
    tcase_add_test(cases, wrapper_leads_to_the_fatbin);
    tcase_add_test(cases, writer_refuses_what_is_no_image);
    tcase_add_test(cases, writes_as_fatbinary_does);
    tcase_add_test(cases, reads_what_ptxas_made);
    tcase_add_test(cases, reads_every_compression_of_fatbinary);
    Suite *suite = suite_create("image");
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
