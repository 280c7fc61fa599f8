/* SPDX-License-Identifier: Apache-2.0 */

/* Packs: what is written is what is read; packs/v1.pack, which `kregistry pack` made once of the sources
 * beside it
 * (--arch 80,90a --ptx 75), stays readable; and whatever is done to a byte of it is noticed. */

#include <check.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "registry/internal.h"
#include "registry/pack.h"
#include "registry/source.h"

enum { N_IMAGES = 8 };

static kr_error err;
static char *golden;
static size_t golden_bytes;

static void ok(kr_status status)
{
    ck_assert_msg(!status, "%s", err.message);
}

static void setup(void)
{
    memset(&err, 0, sizeof err);
    ok(kr__file_read(PACKS "/v1.pack", &golden, &golden_bytes, &err));
}

static void teardown(void)
{
    free(golden);
}

static void says(const char *text)
{
    ck_assert_msg(strstr(err.message, text) != NULL, "no \"%s\" in \"%s\"", text, err.message);
}

/* ---- writing and reading ---- */

static const char *const sources[] = {PACKS "/scale.cu", PACKS "/invert.cu"};

static void write_pack(const kr_pack_options *options, char **ret_data, size_t *ret_bytes)
{
    kr__op_def *defs[KR_COUNT(sources)];
    const kr__op_def *sorted[KR_COUNT(sources)];
    for (size_t i = 0; i < KR_COUNT(sources); i++) {
        ok(kr__op_read(sources[i], &defs[i], NULL, &err));
        sorted[i] = defs[i];
    }
    ok(kr__pack_write(sorted, KR_COUNT(sources), NULL, NULL, options, ret_data, ret_bytes, &err));
    for (size_t i = 0; i < KR_COUNT(sources); i++)
        kr__op_free(&defs[i]);
}

START_TEST(what_is_written_is_read)
{
    const kr_pack_options options = {.no_source = _i};
    char *data, *again;
    size_t bytes, again_bytes;
    kr_pack *pack;
    write_pack(&options, &data, &bytes);
    write_pack(&options, &again, &again_bytes);
    ck_assert(bytes == again_bytes && memcmp(data, again, bytes) == 0);
    free(again);
    ok(kr__pack_adopt(data, bytes, &pack, &err));
    ck_assert_uint_eq(kr_pack_get_info(pack).n_ops, 2);
    for (size_t i = 0; i < 2; i++) {
        kr__op_def *file, *read;
        uint8_t of_file[KR__SHA256_BYTES], of_read[KR__SHA256_BYTES];
        ck_assert_int_eq(kr_pack_has_source(pack, kr_pack_op(pack, i)), !options.no_source);
        ok(kr__op_read(sources[1 - i], &file, NULL, &err)); /* in name order */
        read = kr__pack_take_op(pack, i);
        ck_assert_str_eq(read->op.name, file->op.name);
        ck_assert_str_eq(read->op.file, file->op.file);
        ck_assert_str_eq(read->op.brief, file->op.brief);
        ck_assert_uint_eq(read->op.n_args, file->op.n_args);
        ck_assert_str_eq(read->op.variants[0].name, file->op.variants[0].name);
        ck_assert_uint_eq(read->headers.n, options.no_source ? 0 : 1);
        if (!options.no_source) {
            ck_assert_str_eq(read->text, file->text);
            ck_assert_str_eq(read->headers.names[0], "scale.cuh");
            ck_assert_str_eq(read->headers.texts[0], file->headers.texts[0]);
        }
        kr__op_identity(file, of_file);
        kr__op_identity(read, of_read);
        ck_assert_mem_eq(of_file, of_read, sizeof of_file);
        kr__op_free(&file);
        kr__op_free(&read);
    }
    kr_pack_close(&pack);
    ck_assert_ptr_null(pack);
}
END_TEST

static const struct {
    const char *op, *variant;
    kr_image_kind kind;
    kr_cc arch;
} images[N_IMAGES] = {
    {"invert", "plain", KR_IMAGE_CUBIN, {8, 0, 0}},  {"invert", "plain", KR_IMAGE_CUBIN, {9, 0, 'a'}},
    {"invert", "plain", KR_IMAGE_PTX, {7, 5, 0}},    {"invert", "late", KR_IMAGE_CUBIN, {9, 0, 'a'}},
    {"invert", "late", KR_IMAGE_PTX, {9, 0, 0}},     {"scale", "plain", KR_IMAGE_CUBIN, {8, 0, 0}},
    {"scale", "plain", KR_IMAGE_CUBIN, {9, 0, 'a'}}, {"scale", "plain", KR_IMAGE_PTX, {7, 5, 0}},
};

START_TEST(the_first_version_stays_readable)
{
    kr_pack *pack;
    kr_pack_image image;
    ok(kr_pack_open(PACKS "/v1.pack", &pack, &err));
    const kr_pack_info info = kr_pack_get_info(pack);
    ck_assert(info.version == 1 && info.n_ops == 2 && info.n_images == N_IMAGES &&
              info.bytes == golden_bytes);
    ck_assert_mem_eq(info.data, golden, golden_bytes);
    for (size_t i = 0; i < N_IMAGES; i++) {
        kr_image_kind kind;
        ok(kr_pack_get_image(pack, i, &image, &err));
        ck_assert_str_eq(image.op->name, images[i].op);
        ck_assert_str_eq(image.op->variants[image.variant].name, images[i].variant);
        ck_assert_uint_eq(image.type_index, 0);
        ck_assert_int_eq(image.kind, images[i].kind);
        ck_assert(!kr_cc_compare(image.arch, images[i].arch) && image.arch.suffix == images[i].arch.suffix);
        ck_assert_int_eq(image.isa, image.kind == KR_IMAGE_PTX ? 90 : 0);
        ok(kr_image_kind_of(image.data, image.bytes, &kind, &err)); /* as other tools know them */
        ck_assert_int_eq(kind, image.kind);
        ck_assert_uint_eq((uintptr_t)image.data % KR__PACK_ALIGN, 0);
        ck_assert_int_eq(((const char *)image.data)[image.bytes], '\0');
        if (image.kind == KR_IMAGE_PTX)
            ck_assert_uint_eq(strlen(image.data), image.bytes);
    }
    ck_assert_int_eq(kr_pack_get_image(pack, N_IMAGES, &image, &err), KR_NOT_FOUND);
    ck_assert_ptr_null(kr_pack_op(pack, 2));
    kr_pack_close(&pack);
}
END_TEST

/* ---- damage ---- */

/* Opens the bytes and looks at all that is in them. */
static kr_status use(const char *data, size_t bytes)
{
    kr_pack *pack;
    kr_pack_image image;
    kr_status status = kr_pack_open_memory(data, bytes, &pack, &err);
    if (status)
        return status;
    for (size_t i = 0; i < kr_pack_get_info(pack).n_images && !status; i++)
        status = kr_pack_get_image(pack, i, &image, &err);
    for (size_t i = 0; i < kr_pack_get_info(pack).n_ops && !status; i++)
        status = kr__source_check(kr__op_def_of(kr_pack_op(pack, i)), &err);
    kr_pack_close(&pack);
    return status;
}

START_TEST(no_byte_can_change)
{
    ok(use(golden, golden_bytes));
    for (size_t i = 0; i < golden_bytes; i++) {
        const char bit = (char)(1 << i % 8);
        const bool is_version = i >= 8 && i < 12;
        golden[i] ^= bit;
        const kr_status status = use(golden, golden_bytes);
        golden[i] ^= bit;
        ck_assert_msg(status == (is_version ? KR_INVALID_ARGUMENT : KR_CORRUPT), "byte %zu: %d %s", i, status,
                      err.message);
        ck_assert(err.message[0] && err.advice[0]);
    }
}
END_TEST

START_TEST(no_byte_can_be_missing)
{
    for (size_t n = 0; n < golden_bytes; n += n < 2048 ? 1 : 61) {
        char *part = malloc(n ? n : 1); /* so that a sanitizer sees a read past it */
        memcpy(part, golden, n);
        ck_assert_int_eq(kr_pack_open_memory(part, n, &(kr_pack *){NULL}, &err), KR_CORRUPT);
        free(part);
    }
    says("it is to have 26368 bytes");
}
END_TEST

/* Changes that a liar makes, who also makes the index's SHA-256 again: in rows[] of the pack, at the field.
 */
#define HEADER(field) offsetof(kr__pack_header, field)
#define OP(i, field) (sizeof(kr__pack_header) + (i) * sizeof(kr__pack_op) + offsetof(kr__pack_op, field))
#define ENTRY(i, field) (OP(2, file) + (i) * sizeof(kr__pack_entry) + offsetof(kr__pack_entry, field))

static const struct {
    size_t at, n; /* bytes */
    uint64_t value;
    const char *says;
} lies[] = {
    {HEADER(bytes), 8, 0, "at byte 24: it is to have 0 bytes; there are 26368"},
    {HEADER(bytes), 8, UINT64_MAX, "at byte 24: it is to have"},
    {HEADER(index_bytes), 4, 64, "at byte 20: the index of 2 ops and 12 entries is to have 64 bytes"},
    {HEADER(index_bytes), 4, UINT32_MAX, "at byte 20"},
    {HEADER(index_bytes), 4, 0x601, "at byte 20"},
    {HEADER(index_bytes), 4, 0x5c0, "at byte 192: the bytes of an entry are at 1536; expected 1472"},
    {HEADER(n_ops), 4, UINT32_MAX, "at byte 20: the index of 4294967295 ops"},
    {HEADER(n_entries), 4, UINT32_MAX, "at byte 20"},
    {HEADER(n_entries), 4, 11, "scale has 5 entries; 4 are left"},
    {HEADER(n_entries), 4, 13, "at byte 64: the name of an op's file is at 960"},
    {OP(0, file), 4, 0, "at byte 64: the name of an op's file is at 0"},
    {OP(0, file), 4, UINT32_MAX, "at byte 64: the name of an op's file is at 4294967295"},
    {OP(0, descriptor), 4, 192, "at byte 68: a descriptor has 235 bytes from 192 on"},
    {OP(0, descriptor), 4, UINT32_MAX, "at byte 68"},
    {OP(0, descriptor_bytes), 4, UINT32_MAX, "at byte 68"},
    {OP(0, descriptor_bytes), 4, 3, "at byte 68"}, /* no NUL there */
    {OP(0, descriptor_bytes), 4, 0xf5, "at byte 970: invert.cu:1: the file holds a zero byte"},
    {OP(1, n_entries), 4, UINT32_MAX, "scale has 4294967295 entries; 5 are left"},
    {OP(0, n_entries), 4, 0, "at byte 16: 7 of 12 entries are no op's"},
    {OP(1, zero), 1, 1, "at byte 144: what is not used is not zero"},
    {ENTRY(0, offset), 8, 0x640, "at byte 192: the bytes of an entry are at 1600; expected 1536"},
    {ENTRY(0, offset), 8, 0, "at byte 192"},       /* over the header */
    {ENTRY(3, offset), 8, 0x940, "expected 5888"}, /* over another image */
    {ENTRY(3, offset), 8, UINT64_MAX - 63, "expected 5888"},
    {ENTRY(11, bytes), 8, UINT64_MAX, "do not fit into 26368"},
    {ENTRY(11, bytes), 8, UINT64_MAX - 25088, "do not fit into 26368"}, /* wraps */
    {ENTRY(11, bytes), 8, 26368 - 0x6200, "do not fit into 26368"},     /* no room for the NUL */
    {ENTRY(11, bytes), 8, 100, "the last entry ends here"},
    {ENTRY(0, kind), 1, 0, "there is no kind 0 of entry"},
    {ENTRY(0, kind), 1, 6, "there is no kind 6 of entry"},
    {ENTRY(0, kind), 1, KR__PACK_HEADER, "a source is out of order"},
    {ENTRY(1, kind), 1, KR__PACK_SOURCE, "a source is out of order"},
    {ENTRY(2, kind), 1, KR__PACK_HEADER, "the name of a header is at 0"},
    {ENTRY(6, kind), 1, KR__PACK_HEADER, "a source is out of order"},
    {ENTRY(1, name), 4, UINT32_MAX, "the name of a header is at 4294967295"},
    {ENTRY(0, variant), 1, 1, "what a source does not use is not zero"},
    {ENTRY(0, isa), 2, 90, "what a source does not use is not zero"},
    {ENTRY(0, name), 4, 960, "what a source does not use is not zero"},
    {ENTRY(1, suffix), 1, 'a', "what a source does not use is not zero"},
    {ENTRY(2, name), 4, 960, "an image has a name"},
    {ENTRY(2, type), 1, 1, "invert has no type 1 or no variant 0"},
    {ENTRY(2, variant), 1, 2, "invert has no type 0 or no variant 2"},
    {ENTRY(2, suffix), 1, 'b', "there is no arch 80 with the suffix 98"},
    {ENTRY(2, arch), 2, 9, "there is no arch 9"},
    {ENTRY(2, isa), 2, 90, "the PTX ISA of an entry of kind 4 is 90"},
    {ENTRY(4, isa), 2, 0, "the PTX ISA of an entry of kind 3 is 0"},
    {ENTRY(4, zero), 1, 1, "what is not used is not zero"},
};

static kr_status open_lie(void)
{
    kr__pack_header header;
    memcpy(&header, golden, sizeof header);
    if (header.index_bytes >= sizeof header && header.index_bytes <= golden_bytes)
        kr__pack_digest(golden, header.index_bytes, (uint8_t *)golden + HEADER(sha256));
    return kr_pack_open_memory(golden, golden_bytes, &(kr_pack *){NULL}, &err);
}

START_TEST(liars_are_told_what_was_expected)
{
    memcpy(golden + lies[_i].at, &lies[_i].value, lies[_i].n);
    ck_assert_int_eq(open_lie(), KR_CORRUPT);
    says(lies[_i].says);
    ck_assert_str_eq(err.advice, "Make or copy the file again.");
}
END_TEST

START_TEST(a_name_ends_within_the_index)
{
    const uint32_t index_bytes = 1536, at = index_bytes - 4;
    memcpy(golden + at, "name", 4); /* where zeros fill it up */
    memcpy(golden + OP(0, file), &at, sizeof at);
    ck_assert_int_eq(open_lie(), KR_CORRUPT);
    says("at byte 64: the name of an op's file is at 1532");
}
END_TEST

START_TEST(a_name_is_no_pack)
{
    static const char name[] = "my_kernels.pack";
    kr_pack *pack = NULL;
    ck_assert_int_eq(kr_pack_open_memory(name, strlen(name), &pack, &err), KR_CORRUPT);
    says("15 bytes do not begin with KRPACK and look like a file name");
    ck_assert_str_eq(err.advice, "Name the file to kr_registry_add_pack_file.");
}
END_TEST

START_TEST(an_op_is_there_once)
{
    memcpy(golden + OP(1, descriptor), golden + OP(0, descriptor), 8); /* and its size */
    ck_assert_int_eq(open_lie(), KR_CORRUPT);
    says("at byte 128: the op invert comes after invert");
}
END_TEST

START_TEST(other_versions_are_named)
{
    kr_pack *pack = NULL;
    golden[HEADER(version)] = 2;
    ck_assert_int_eq(kr_pack_open_memory(golden, golden_bytes, &pack, &err), KR_INVALID_ARGUMENT);
    says("version 2, newer than the version 1 that this kregistry reads");
    golden[HEADER(version)] = 0;
    ck_assert_int_eq(kr_pack_open_memory(golden, golden_bytes, &pack, &err), KR_INVALID_ARGUMENT);
    says("version 0, older than");
    ck_assert_int_eq(kr_pack_open(PACKS "/scale.cu", &pack, &err), KR_CORRUPT);
    says("not a pack");
    ck_assert_int_eq(kr_pack_open(PACKS "/none.pack", &pack, &err), KR_NOT_FOUND);
    ck_assert(kr_is_pack(golden, golden_bytes) && !kr_is_pack(golden, 7) && !kr_is_pack("KRPACK", 6));
    ck_assert_ptr_null(pack);
}
END_TEST

/* ---- in a registry ---- */

static kr_registry *open_registry(void)
{
    const kr_registry_options options = {.struct_size = sizeof options, .no_builtin_ops = true};
    kr_registry *registry;
    ok(kr_registry_create(NULL, &options, &registry, &err));
    return registry;
}

static kr_status add_source(kr_registry *registry, const char *old, const char *new)
{
    kr__text text = {0};
    char *source;
    size_t bytes;
    ok(kr__file_read(PACKS "/scale.cu", &source, &bytes, &err));
    char *at = strstr(source, old);
    kr__text_add(&text, "%.*s%s%s", (int)(at - source), source, new, at + strlen(old));
    const kr_status status = kr_registry_add_source(registry, "other.cu", text.data, text.bytes, &err);
    kr__text_free(&text);
    free(source);
    return status;
}

static size_t n_shipped(kr_registry *registry, const char *name)
{
    const kr_op *op;
    size_t n = 0;
    ok(kr_registry_find(registry, name, &op, NULL, &err));
    for (size_t v = 0; v < op->n_variants; v++)
        n += kr_registry_shipped(registry, op, v, NULL, 0);
    return n;
}

START_TEST(packs_and_files_stand_side_by_side)
{
    kr_registry *registry = open_registry();
    ok(add_source(registry, "op      scale", "op      other"));
    ok(kr_registry_add_pack(registry, golden, golden_bytes, &err));
    ck_assert_uint_eq(kr_registry_n_ops(registry), 3);
    ck_assert_uint_eq(n_shipped(registry, "scale"), 3);
    ck_assert_uint_eq(n_shipped(registry, "other"), 0);
    kr_registry_destroy(&registry);
}
END_TEST

START_TEST(a_name_is_taken_by_another_source)
{
    kr_registry *registry = open_registry();
    ok(add_source(registry, "a * x[i];", "x[i] * a;"));
    ck_assert_int_eq(kr_registry_add_pack(registry, golden, golden_bytes, &err), KR_INVALID_ARGUMENT);
    says("scale.cu: the op name \"scale\" is taken by other.cu, which is another source");
    ck_assert_uint_eq(kr_registry_n_ops(registry), 1); /* none of the pack */
    kr_registry_destroy(&registry);
    registry = open_registry();
    ok(kr_registry_add_pack_file(registry, PACKS "/v1.pack", &err));
    ck_assert_int_eq(kr_registry_add_file(registry, PACKS "/scale.cu", &err), KR_INVALID_ARGUMENT);
    says("taken by scale.cu");
    kr_registry_destroy(&registry);
}
END_TEST

START_TEST(two_packs_with_two_ops_of_one_name)
{
    static const char text[] =
        "//! op scale\n//! brief b\n//! source s\n//! compare exact\n//! arg n u64 size\n"
        "//! arg x f32[n] out\n//! variant v\n//! launch elementwise n\n";
    kr__op_def *def;
    char *data;
    size_t bytes;
    kr_registry *registry = open_registry();
    ok(kr__op_parse("theirs.cu", text, sizeof text - 1, &def, &err));
    ok(kr__pack_write((const kr__op_def *[]){def}, 1, NULL, NULL, &(kr_pack_options){0}, &data, &bytes,
                      &err));
    ok(kr_registry_add_pack(registry, golden, golden_bytes, &err));
    ck_assert_int_eq(kr_registry_add_pack(registry, data, bytes, &err), KR_INVALID_ARGUMENT);
    says("theirs.cu: the op name \"scale\" is taken by scale.cu, which is another source");
    kr_registry_destroy(&registry);
    registry = open_registry();
    ok(kr_registry_add_pack(registry, data, bytes, &err));
    ck_assert_int_eq(kr_registry_add_pack(registry, golden, golden_bytes, &err), KR_INVALID_ARGUMENT);
    ck_assert_uint_eq(kr_registry_n_ops(registry), 1); /* invert neither */
    kr_registry_destroy(&registry);
    kr__op_free(&def);
    free(data);
}
END_TEST

/* One pack has the sources, the other the images. */
START_TEST(the_same_source_gains_the_images)
{
    char *bare;
    size_t bare_bytes;
    kr_registry *registry = open_registry();
    const kr_op *before, *op;
    write_pack(&(kr_pack_options){0}, &bare, &bare_bytes);
    ok(kr_registry_add_pack(registry, bare, bare_bytes, &err));
    ok(kr_registry_find(registry, "scale", &before, NULL, &err));
    ck_assert_uint_eq(n_shipped(registry, "scale"), 0);
    for (int i = 0; i < 2; i++) { /* the second time there is nothing to gain */
        ok(kr_registry_add_pack(registry, golden, golden_bytes, &err));
        ck_assert_uint_eq(kr_registry_n_ops(registry), 2);
        ck_assert_uint_eq(n_shipped(registry, "scale"), 3);
        ck_assert_uint_eq(n_shipped(registry, "invert"), 5);
    }
    ok(kr_registry_find(registry, "scale", &op, NULL, &err));
    ck_assert_ptr_ne(op, before);
    ck_assert_str_eq(before->name, "scale"); /* what was given out stays */
    kr_registry_destroy(&registry);
    registry = open_registry(); /* a file, then a pack of it */
    ok(kr_registry_add_file(registry, PACKS "/scale.cu", &err));
    ok(kr_registry_add_pack(registry, golden, golden_bytes, &err));
    ck_assert_uint_eq(n_shipped(registry, "scale"), 3);
    kr_registry_destroy(&registry);
    free(bare);
}
END_TEST

START_TEST(without_its_source_nothing_is_compiled)
{
    char *data;
    size_t bytes;
    const int archs[] = {75, 90};
    const kr_machine machine = {
        .cc = {9, 0, 0}, .nvrtc_archs = archs, .n_nvrtc_archs = 2, .nvrtc_version = 13000};
    kr_explanation *explanation;
    kr_registry *registry = open_registry();
    write_pack(&(kr_pack_options){.no_source = true}, &data, &bytes);
    ok(kr_registry_add_pack(registry, data, bytes, &err));
    ok(kr_registry_explain(registry, "scale", &machine, NULL, &explanation, &err));
    ck_assert_uint_eq(explanation->n, 1);
    ck_assert(!explanation->considered[0].usable);
    ck_assert_str_eq(explanation->considered[0].reason, "it came in a pack without its source");
    kr_explanation_destroy(&explanation);
    ok(kr_registry_add_file(registry, PACKS "/../ops/blur.cu", &err));
    ck_assert_int_ne(kr_pack_build(registry, "scale", NULL, &(kr_pack *){NULL}, &err), KR_OK);
    kr_registry_destroy(&registry);
    registry = open_registry(); /* with another pack that has it, it is */
    ok(kr_registry_add_pack(registry, golden, golden_bytes, &err));
    ok(kr_registry_add_pack(registry, data, bytes, &err));
    ok(kr_registry_explain(registry, "scale", &machine, NULL, &explanation, &err));
    ck_assert_str_eq(explanation->considered[0].image, "cubin sm_90a");
    ck_assert(explanation->considered[1].usable && !strcmp(explanation->considered[1].how, "nvrtc"));
    kr_explanation_destroy(&explanation);
    kr_registry_destroy(&registry);
    free(data);
}
END_TEST

/* ---- threads: one adds, others look ---- */

typedef struct watched {
    kr_registry *registry;
    atomic_bool stop;
} watched;

/* Returns NULL where all was as it must be. */
static void *look(void *user)
{
    watched *w = user;
    const kr_machine machine = {.cc = {8, 6, 0}};
    while (!atomic_load(&w->stop)) {
        kr_explanation *explanation;
        const kr_op *op;
        if (kr_registry_find(w->registry, "scale", &op, NULL, NULL) || strcmp(op->name, "scale") != 0 ||
            kr_registry_explain(w->registry, "scale", &machine, NULL, &explanation, NULL))
            return w;
        const size_t n = explanation->n, n_shipped = kr_registry_shipped(w->registry, op, 0, NULL, 0);
        kr_explanation_destroy(&explanation);
        if ((n != 1 && n != 4) || (n_shipped != 0 && n_shipped != 3)) /* NVRTC, and the images */
            return w;
    }
    return NULL;
}

START_TEST(packs_are_added_while_others_look)
{
    watched w = {.registry = open_registry()};
    pthread_t threads[4];
    ok(kr_registry_add_file(w.registry, PACKS "/scale.cu", &err));
    for (size_t i = 0; i < KR_COUNT(threads); i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, look, &w), 0);
    for (int i = 0; i < 50; i++)
        ok(kr_registry_add_pack(w.registry, golden, golden_bytes, &err));
    atomic_store(&w.stop, true);
    for (size_t i = 0; i < KR_COUNT(threads); i++) {
        void *failed;
        pthread_join(threads[i], &failed);
        ck_assert_ptr_null(failed);
    }
    kr_registry_destroy(&w.registry);
}
END_TEST

/* ---- on a device ---- */

static kr_status run_scale(kr_runtime *runtime, kr_registry *registry)
{
    enum { N = 100 };
    float x[N], y[N];
    kr_buffer *in, *out;
    kr_device *device = kr_runtime_device(runtime, 0);
    for (int i = 0; i < N; i++)
        x[i] = (float)i;
    ok(kr_buffer_create(device, sizeof x, NULL, &in, &err));
    ok(kr_buffer_create(device, sizeof y, NULL, &out, &err));
    ok(kr_buffer_upload(in, 0, x, sizeof x, &err));
    const kr_status status = kr_launch(registry, kr_default_stream(in), "scale",
                                       KR_ARGS(KR_U64(N), KR_F32(3), KR_BUF(in), KR_BUF(out)), NULL, &err);
    if (!status) {
        ok(kr_buffer_download(out, 0, y, sizeof y, &err));
        for (int i = 0; i < N; i++)
            ck_assert(y[i] == 3 * x[i]);
    }
    kr_buffer_destroy(&in);
    kr_buffer_destroy(&out);
    return status;
}

/* Neither NVRTC nor anything but the pack: its PTX runs on a device that no cubin of it is for. */
START_TEST(a_pack_alone_runs)
{
    kr_runtime *runtime;
    kr_registry *registry;
    ok(kr_runtime_create(
        &(kr_runtime_options){.struct_size = sizeof(kr_runtime_options), .driver = KR_SOFTCUDA}, &runtime,
        &err));
    const kr_registry_options options = {
        .struct_size = sizeof options, .no_builtin_ops = true, .no_nvrtc = true};
    ok(kr_registry_create(runtime, &options, &registry, &err));
    ok(kr_registry_add_pack_file(registry, PACKS "/v1.pack", &err));
    ok(run_scale(runtime, registry));
    kr_registry_destroy(&registry);

    /* The same with a byte of that PTX changed. */
    ok(kr_registry_create(runtime, &options, &registry, &err));
    golden[golden_bytes - 200] ^= 1;
    ok(kr_registry_add_pack(registry, golden, golden_bytes, &err));
    ck_assert_int_eq(run_scale(runtime, registry), KR_NOT_ON_THIS_DEVICE);
    says("plain ptx compute_75: the pack is damaged: the SHA-256 of its ");
    const kr_machine machine = {.cc = {7, 5, 0}};
    kr_explanation *explanation;
    size_t n_damaged = 0;
    ok(kr_registry_explain(registry, "scale", &machine, NULL, &explanation, &err));
    for (size_t i = 0; i < explanation->n; i++) {
        const kr_candidate *c = &explanation->considered[i];
        ck_assert(!c->chosen);
        n_damaged += !c->usable && !strcmp(c->how, "none") && strstr(c->reason, "the pack is damaged");
    }
    ck_assert_uint_eq(n_damaged, 1);
    ck_assert_str_ne(explanation->advice, "");
    kr_explanation_destroy(&explanation);
    kr_registry_destroy(&registry);
    kr_runtime_destroy(&runtime);
}
END_TEST

/* ---- making one ---- */

static void count(void *user, size_t done, size_t total, const char *full_name)
{
    size_t *n = user;
    ck_assert_uint_eq(done, ++*n);
    ck_assert_uint_eq(total, N_IMAGES);
    ck_assert(!strcmp(full_name, "invert") || !strcmp(full_name, "scale.f32"));
}

START_TEST(targets_follow_the_requirements)
{
    const kr_cc cubins[] = {{8, 0, 0}, {9, 0, 'a'}, {8, 0, 0}}, ptx[] = {{7, 5, 0}, {8, 0, 0}};
    size_t n_told = 0;
    kr_pack_options options = {.struct_size = sizeof options,
                               .cubins = cubins,
                               .n_cubins = 3,
                               .ptx = ptx,
                               .n_ptx = 1,
                               .progress = count,
                               .progress_user = &n_told};
    kr_pack *pack;
    kr_nvrtc *nvrtc;
    kr_registry *registry = open_registry();
    ok(kr_registry_add_directory(registry, PACKS, &err));
    ok(kr__registry_nvrtc(registry, &nvrtc, &err));
    if (!nvrtc) {
        ck_assert_int_eq(kr_pack_build(registry, NULL, &options, &pack, &err), KR_NOT_ON_THIS_MACHINE);
        kr_registry_destroy(&registry);
        return;
    }
    if (kr_nvrtc_get_info(nvrtc).major < 12) { /* it does not know sm_90a */
        kr_registry_destroy(&registry);
        return;
    }
    ok(kr_pack_build(registry, NULL, &options, &pack, &err));
    ck_assert_uint_eq(n_told, N_IMAGES);
    ck_assert_uint_eq(kr_pack_get_info(pack).n_images, N_IMAGES);
    for (size_t i = 0; i < N_IMAGES; i++) {
        kr_pack_image image;
        ok(kr_pack_get_image(pack, i, &image, &err));
        ck_assert_str_eq(image.op->name, images[i].op);
        ck_assert_str_eq(image.op->variants[image.variant].name, images[i].variant);
        ck_assert(image.kind == images[i].kind && !kr_cc_compare(image.arch, images[i].arch));
        if (image.kind == KR_IMAGE_PTX) /* the first that has sm_75, sm_90 (PTX ISA, release notes) */
            ck_assert_int_eq(image.isa, image.arch.major == 7 ? 63 : 78);
    }
    kr_pack_close(&pack);
    options = (kr_pack_options){.struct_size = sizeof options, .ptx = ptx, .n_ptx = 2};
    ok(kr_pack_build(registry, "*.f32", &options, &pack, &err)); /* scale alone has a type */
    ck_assert(kr_pack_get_info(pack).n_ops == 1 && kr_pack_get_info(pack).n_images == 2);
    kr_pack_close(&pack);
    ok(kr_pack_build(registry, "invert", &options, &pack, &err)); /* 90 once, for the variant that needs it */
    ck_assert_uint_eq(kr_pack_get_info(pack).n_images, 3);
    kr_pack_close(&pack);
    ok(kr_pack_build(registry, "scale", NULL, &pack,
                     &err)); /* PTX for the lowest, where nothing is asked for */
    ck_assert_uint_eq(kr_pack_get_info(pack).n_images, 1);
    kr_pack_close(&pack);
    ck_assert_int_eq(kr_pack_build(registry, "none", NULL, &pack, &err), KR_NOT_FOUND);
    options = (kr_pack_options){.struct_size = sizeof options, .cubins = &(kr_cc){99, 0, 0}, .n_cubins = 1};
    ck_assert_int_eq(kr_pack_build(registry, "scale", &options, &pack, &err), KR_NOT_ON_THIS_MACHINE);
    options.cubins = &(kr_cc){0};
    ck_assert_int_eq(kr_pack_build(registry, "scale", &options, &pack, &err), KR_INVALID_ARGUMENT);
    kr_registry_destroy(&registry);
}
END_TEST

/* A variant with a target of its own has images for that alone, where a GPU of it is asked for. */
START_TEST(targets_of_ones_own)
{
    static const char text[] =
        "//! op own\n//! brief b\n//! source s\n//! compare exact\n//! arg n u64 size\n"
        "//! arg x f32[n] out\n//! variant wide cc=9.0a\n//! launch elementwise n\n"
        "extern \"C\" __global__ void wide(uint64_t n, float *x) {}\n";
    static const struct {
        kr_cc cubin, ptx; /* asked for; major 0: not */
        bool has_cubin, has_ptx;
    } asked[] = {
        {{9, 0, 0}, {0}, true, false},  {{9, 0, 'a'}, {7, 5, 0}, true, true},
        {{8, 0, 0}, {0}, false, false}, {{0}, {10, 0, 0}, false, false},
        {{0}, {0}, false, true},
    };
    kr_nvrtc *nvrtc;
    kr_registry *registry = open_registry();
    ok(kr_registry_add_source(registry, "own.cu", text, sizeof text - 1, &err));
    ok(kr__registry_nvrtc(registry, &nvrtc, &err));
    const bool knows_90a = nvrtc && kr_nvrtc_get_info(nvrtc).major >= 12;
    for (size_t i = 0; knows_90a && i < KR_COUNT(asked); i++) {
        const kr_pack_options options = {.struct_size = sizeof options,
                                         .cubins = &asked[i].cubin,
                                         .n_cubins = asked[i].cubin.major > 0,
                                         .ptx = &asked[i].ptx,
                                         .n_ptx = asked[i].ptx.major > 0};
        kr_pack *pack;
        kr_pack_image image;
        bool has[2] = {false, false};
        ok(kr_pack_build(registry, NULL, &options, &pack, &err));
        for (size_t k = 0; k < kr_pack_get_info(pack).n_images; k++) {
            ok(kr_pack_get_image(pack, k, &image, &err));
            ck_assert(image.arch.major == 9 && image.arch.minor == 0 && image.arch.suffix == 'a');
            has[image.kind == KR_IMAGE_PTX] = true;
        }
        ck_assert(has[0] == asked[i].has_cubin && has[1] == asked[i].has_ptx);
        kr_pack_close(&pack);
    }
    kr_registry_destroy(&registry);
}
END_TEST

static kr_status run_twice(kr_runtime *runtime, kr_registry *registry)
{
    enum { N = 10 };
    double x[N];
    kr_buffer *buffer;
    for (int i = 0; i < N; i++)
        x[i] = i + 0x1p-40;
    ok(kr_buffer_create(kr_runtime_device(runtime, 1), sizeof x, NULL, &buffer, &err));
    ok(kr_buffer_upload(buffer, 0, x, sizeof x, &err));
    const kr_status status = kr_launch(registry, kr_default_stream(buffer), "twice.f64",
                                       KR_ARGS(KR_U64(N), KR_BUF(buffer)), NULL, &err);
    if (!status)
        ok(kr_buffer_download(buffer, 0, x, sizeof x, &err));
    for (int i = 0; i < N && !status; i++)
        ck_assert(x[i] == 2 * (i + 0x1p-40));
    kr_buffer_destroy(&buffer);
    return status;
}

/* softcuda executes the PTX: that of the same type. Where that is damaged the machine code is there still. */
START_TEST(machine_code_goes_with_its_own_ptx)
{
    static const char text[] = "//! op twice\n//! brief b\n//! source s\n//! compare exact\n//! types T = "
                               "f32 f64\n//! arg n u64 size\n"
                               "//! arg x T[n] inout\n//! variant plain\n//! launch elementwise n\n"
                               "extern \"C\" __global__ void plain(uint64_t n, T *x)\n"
                               "{ for (uint64_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += "
                               "gridDim.x * blockDim.x) x[i] += x[i]; }\n";
    static const kr_cc cubin = {9, 0, 0}, ptx = {7, 5, 0};
    const kr_registry_options none = {.struct_size = sizeof none, .no_builtin_ops = true, .no_nvrtc = true};
    const kr_pack_options options = {
        .struct_size = sizeof options, .cubins = &cubin, .n_cubins = 1, .ptx = &ptx, .n_ptx = 1};
    kr_nvrtc *nvrtc;
    kr_runtime *runtime;
    kr_pack *pack;
    kr_pack_image image;
    kr_registry *registry = open_registry();
    ok(kr__registry_nvrtc(registry, &nvrtc, &err));
    ok(kr_registry_add_source(registry, "twice.cu", text, sizeof text - 1, &err));
    if (nvrtc) {
        ok(kr_runtime_create(
            &(kr_runtime_options){.struct_size = sizeof(kr_runtime_options), .driver = KR_SOFTCUDA}, &runtime,
            &err));
        ok(kr_pack_build(registry, NULL, &options, &pack, &err));
        const kr_pack_info info = kr_pack_get_info(pack);
        ck_assert_uint_eq(info.n_images, 4);
        kr_registry_destroy(&registry);
        ok(kr_registry_create(runtime, &none, &registry, &err));
        ok(kr_registry_add_pack(registry, info.data, info.bytes, &err));
        ok(run_twice(runtime, registry));
        kr_registry_destroy(&registry);

        ok(kr_pack_get_image(pack, 3, &image, &err));
        ck_assert(image.type_index == 1 && image.kind == KR_IMAGE_PTX);
        char *damaged = malloc(info.bytes);
        memcpy(damaged, info.data, info.bytes);
        damaged[(const char *)image.data - (const char *)info.data] ^= 1;
        ok(kr_registry_create(runtime, &none, &registry, &err));
        ok(kr_registry_add_pack(registry, damaged, info.bytes, &err));
        kr_device *device = kr_runtime_device(runtime, 1);
        const kr_prepare_options there = {.struct_size = sizeof there, .devices = &device, .n_devices = 1};
        ok(kr_registry_prepare(registry, "twice.f64", &there, &err));
        ck_assert_int_ne(run_twice(runtime, registry), KR_OK);
        ck_assert_int_eq(err.code, CUDA_ERROR_NOT_SUPPORTED); /* machine code alone */
        ck_assert_ptr_nonnull(strstr(err.advice, "softcuda executes nothing else"));
        kr_registry_destroy(&registry);
        free(damaged);
        kr_pack_close(&pack);
        kr_runtime_destroy(&runtime);
    }
    kr_registry_destroy(&registry);
}
END_TEST

/* A built-in op that gains images is verified against its reference as before. */
START_TEST(the_reference_stays)
{
    const kr_pack_options options = {.struct_size = sizeof options};
    char *data;
    size_t bytes;
    kr_registry *registry;
    ok(kr_registry_create(NULL, NULL, &registry, &err));
    const kr__op_def *def = kr__op_def_of(kr_registry_op(registry, 0));
    const kr_reference_fn *const references = def->references;
    ck_assert_ptr_nonnull(references);
    ok(kr__pack_write(&def, 1, NULL, NULL, &options, &data, &bytes, &err));
    ok(kr_registry_add_pack(registry, data, bytes, &err));
    def = kr__op_def_of(kr_registry_op(registry, 0));
    ck_assert_ptr_eq(def->references, references);
    kr_registry_destroy(&registry);
    free(data);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("pack");
    TCase *tc = tcase_create("pack");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 120);
    tcase_add_loop_test(tc, what_is_written_is_read, 0, 2);
    tcase_add_test(tc, the_first_version_stays_readable);
    tcase_add_test(tc, no_byte_can_change);
    tcase_add_test(tc, no_byte_can_be_missing);
    tcase_add_loop_test(tc, liars_are_told_what_was_expected, 0, KR_COUNT(lies));
    tcase_add_test(tc, a_name_ends_within_the_index);
    tcase_add_test(tc, a_name_is_no_pack);
    tcase_add_test(tc, an_op_is_there_once);
    tcase_add_test(tc, other_versions_are_named);
    tcase_add_test(tc, packs_and_files_stand_side_by_side);
    tcase_add_test(tc, a_name_is_taken_by_another_source);
    tcase_add_test(tc, two_packs_with_two_ops_of_one_name);
    tcase_add_test(tc, the_same_source_gains_the_images);
    tcase_add_test(tc, without_its_source_nothing_is_compiled);
    tcase_add_test(tc, a_pack_alone_runs);
    tcase_add_test(tc, targets_follow_the_requirements);
    tcase_add_test(tc, targets_of_ones_own);
    tcase_add_test(tc, machine_code_goes_with_its_own_ptx);
    tcase_add_test(tc, the_reference_stays);
    suite_add_tcase(suite, tc);
    TCase *threads = tcase_create("threads"); /* for ThreadSanitizer: scripts/test */
    tcase_add_checked_fixture(threads, setup, teardown);
    tcase_add_test(threads, packs_are_added_while_others_look);
    suite_add_tcase(suite, threads);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
