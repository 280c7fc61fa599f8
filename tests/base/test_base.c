/* SPDX-License-Identifier: Apache-2.0 */
#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/base.h"

static kr_error err;

START_TEST(statuses)
{
    ck_assert_str_eq(kr_status_name(KR_NOT_FOUND), "KR_NOT_FOUND");
    ck_assert_str_eq(kr_status_name((kr_status)99), "KR_?");
    ck_assert_str_eq(kr_status_text(KR_IO), "reading or writing failed");
    ck_assert_str_eq(kr_status_text((kr_status)-1), "unknown status");
}
END_TEST

START_TEST(failing_fills_the_error)
{
    memset(&err, 0xaa, sizeof err);
    ck_assert_int_eq(KR_FAIL(&err, KR_CORRUPT, "%d of %s", 3, "x"), KR_CORRUPT);
    ck_assert_int_eq(err.status, KR_CORRUPT);
    ck_assert_str_eq(err.message, "3 of x");
    ck_assert_int_eq(err.device, -1);
    ck_assert_int_gt(err.line, 0);
    ck_assert(!err.chain[0] && !err.log[0] && !err.op[0] && !err.image[0] && !err.code_name[0]);
    ck_assert(err.api == KR_API_NONE && err.code == 0 && !err.function);
    ck_assert_int_eq(KR_FAIL(NULL, KR_IO, "nobody asked"), KR_IO);
    KR_FAIL(&err, KR_IO, "again: %s", err.message); /* a message may quote the one it replaces */
    ck_assert_str_eq(err.message, "again: 3 of x");
}
END_TEST

START_TEST(long_messages_are_cut_visibly)
{
    char text[5000];
    memset(text, 'm', sizeof text);
    text[sizeof text - 1] = '\0';
    KR_FAIL(&err, KR_IO, "%s", text);
    ck_assert_uint_eq(strlen(err.message), sizeof err.message - 1);
    ck_assert_str_eq(err.message + sizeof err.message - 4, "...");
}
END_TEST

START_TEST(errno_has_its_name)
{
    KR_FAIL_ERRNO(&err, KR_IO, ENOSPC, "cannot write %s", "f");
    ck_assert_str_eq(err.message, "cannot write f: No space left on device");
    ck_assert_str_eq(err.code_name, "ENOSPC");
    ck_assert(err.api == KR_API_ERRNO && err.code == ENOSPC);
}
END_TEST

START_TEST(every_failure_has_advice)
{
#define HAS_ADVICE(name, number, text)  \
    if (KR_FAIL(&err, KR_##name, "it")) \
        ck_assert_msg(err.advice[0], "no advice for KR_%s", #name);
    KR_STATUS_LIST(HAS_ADVICE)
    KR_FAIL_ERRNO(&err, KR_IO, ENOSPC, "it");
    ck_assert_ptr_nonnull(strstr(err.advice, "Free room"));
    kr__error_advice_if_none(&err, "Of the place.");
    ck_assert_str_eq(err.advice, "Of the place.");
    kr__error_advice_if_none(&err, "Of another.");
    ck_assert_str_eq(err.advice, "Of the place.");
    kr__error_advice(&err, "Better.");
    ck_assert_str_eq(err.advice, "Better.");
}
END_TEST

START_TEST(chains_grow_innermost_first)
{
    KR_FAIL(&err, KR_IO, "x");
    ck_assert_int_eq(kr__while(&err, KR_IO, "reading %d", 1), KR_IO);
    kr__while(&err, KR_IO, "preparing");
    ck_assert_str_eq(err.chain, "while reading 1; while preparing");
    for (int i = 0; i < 200; i++)
        kr__while(&err, KR_IO, "filling up");
    ck_assert_uint_lt(strlen(err.chain), sizeof err.chain);
}
END_TEST

START_TEST(long_logs_keep_head_and_tail)
{
    static char log[40000];
    memset(log, 'l', sizeof log - 1);
    memcpy(log, "first", 5);
    memcpy(log + sizeof log - 6, "last!", 5);
    KR_FAIL(&err, KR_COMPILE_FAILED, "x");
    kr__error_log(&err, log);
    ck_assert_uint_lt(strlen(err.log), sizeof err.log);
    ck_assert(strncmp(err.log, "first", 5) == 0);
    ck_assert_str_eq(err.log + strlen(err.log) - 5, "last!");
    ck_assert_ptr_nonnull(strstr(err.log, "bytes left out"));
}
END_TEST

START_TEST(texts_grow)
{
    kr__text text = {0};
    for (int i = 0; i < 1000; i++)
        kr__text_add(&text, "%d,", i);
    ck_assert(!text.failed);
    ck_assert_uint_eq(text.bytes, 10 * 2 + 90 * 3 + 900 * 4);
    ck_assert_uint_eq(strlen(text.data), text.bytes);
    kr__text_free(&text);
    ck_assert(!text.data && !text.bytes);
}
END_TEST

START_TEST(what_is_appended_is_cut_too)
{
    char text[12] = "";
    kr__append(text, sizeof text, "%s", "one");
    kr__append(text, sizeof text, ", %d", 2);
    ck_assert_str_eq(text, "one, 2");
    kr__append(text, sizeof text, "%s", ", three");
    ck_assert_str_eq(text, "one, 2, ...");
    kr__append(text, sizeof text, "more");
    ck_assert_str_eq(text, "one, 2, ...");
}
END_TEST

START_TEST(distances)
{
    static const struct {
        const char *a, *b;
        size_t distance;
    } rows[] = {{"", "", 0},         {"", "abc", 3},        {"kitten", "sitting", 3},
                {"flaw", "lawn", 2}, {"saxpy", "saxpi", 1}, {"a", "a", 0}};
    for (size_t i = 0; i < KR_COUNT(rows); i++) {
        ck_assert_uint_eq(kr__distance(rows[i].a, rows[i].b), rows[i].distance);
        ck_assert_uint_eq(kr__distance(rows[i].b, rows[i].a), rows[i].distance);
    }
    char long_name[200];
    memset(long_name, 'x', sizeof long_name);
    long_name[sizeof long_name - 1] = '\0';
    ck_assert_uint_eq(kr__distance(long_name, "x"), 62); /* only the first 63 count */
}
END_TEST

/* A row is asked `name` of `others`, one after the other. */
START_TEST(suggestions)
{
    static const struct {
        const char *name, *others[4], *nearest;
    } rows[] = {
        {"saxpi", {"saxpy"}, "saxpy"},
        {"lst", {"list", "last"}, "list"}, /* the first of equals */
        {"reduce", {"redce", "reduce_", "reduce"}, "reduce"},
        {"frob", {"run", "fill"}, NULL},
        {"bogus", {"ops"}, NULL},
        {"f23", {"f32"}, NULL},
        {"matmul", {"matrix"}, NULL},
        {"f33", {"f32", "f64"}, "f32"},
        {"a", {"b"}, "b"},
        {"matmull_tiled", {"matmul_tile"}, "matmul_tile"},
        {"", {"list"}, NULL},
    };
    for (size_t i = 0; i < KR_COUNT(rows); i++) {
        size_t best = SIZE_MAX;
        const char *nearest = NULL;
        for (size_t j = 0; j < 4 && rows[i].others[j]; j++)
            if (kr__nearer(rows[i].name, rows[i].others[j], &best))
                nearest = rows[i].others[j];
        ck_assert_pstr_eq(nearest, rows[i].nearest);
    }
}
END_TEST

START_TEST(globs)
{
    ck_assert(kr__glob("*", "saxpy.f32") && kr__glob("saxpy.*", "saxpy.f32") &&
              kr__glob("s?xpy.f[36]*", "saxpy.f32"));
    ck_assert(!kr__glob("axpy", "saxpy") && !kr__glob("saxpy", "saxpy.f32"));
}
END_TEST

START_TEST(allocations_that_overflow)
{
    /* A product that wraps must not become a small block. */
    ck_assert_ptr_null(kr__alloc(SIZE_MAX / 2, 4, &err));
    ck_assert_int_eq(err.status, KR_OUT_OF_HOST_MEMORY);
    void *none = kr__alloc(0, 8, &err);
    ck_assert_ptr_nonnull(none);
    free(none);
}
END_TEST

START_TEST(lists_grow)
{
    size_t *list = NULL;
    for (size_t n = 0; n < 1000; n++) {
        list = kr__grow(list, n, sizeof *list);
        ck_assert_ptr_nonnull(list);
        list[n] = n;
    }
    for (size_t i = 0; i < 1000; i++)
        ck_assert_uint_eq(list[i], i);
    ck_assert_ptr_null(kr__grow(list, (size_t)1 << 62, sizeof *list)); /* and the list stays */
    ck_assert_uint_eq(list[999], 999);
    free(list);
}
END_TEST

START_TEST(arenas)
{
    kr__arena arena = {0};
    char *first = kr__arena_text(&arena, "hello, world", 5);
    for (size_t i = 0; i < 500; i++) {
        unsigned char *memory = kr__arena_alloc(&arena, i * 7);
        size_t zeros = 0;
        while (zeros < i * 7 && memory[zeros] == 0)
            zeros++;
        ck_assert_uint_eq(zeros, i * 7);
        ck_assert_uint_eq((uintptr_t)memory % 16, 0);
        memset(memory, 0xff, i * 7);
    }
    ck_assert_str_eq(first, "hello");
    ck_assert_ptr_null(kr__arena_alloc(&arena, SIZE_MAX));
    kr__arena_free(&arena);
    kr__arena_free(&arena);
}
END_TEST

static void put(const char *path, const char *data, size_t bytes)
{
    FILE *file = fopen(path, "w");
    ck_assert(file && fwrite(data, 1, bytes, file) == bytes && fclose(file) == 0);
}

START_TEST(files)
{
    char folder[] = "/tmp/kr_base_XXXXXX", path[64], *data;
    size_t bytes;
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/f", folder);
    ck_assert(!kr__file_exists(path));
    ck_assert_int_eq(kr__file_read(path, &data, &bytes, &err), KR_NOT_FOUND);
    ck_assert_str_eq(err.code_name, "ENOENT");
    put(path, "c\0\0de", 5);
    ck_assert(kr__file_exists(path));
    ck_assert_int_eq(kr__file_read(path, &data, &bytes, &err), KR_OK);
    ck_assert_uint_eq(bytes, 5);
    ck_assert_mem_eq(data, "c\0\0de", 6); /* and a NUL after it */
    free(data);
    ck_assert_int_eq(kr__file_read(folder, &data, &bytes, &err), KR_IO);
    ck_assert_str_eq(err.code_name, "EISDIR");
    unlink(path);
    rmdir(folder);
}
END_TEST

START_TEST(only_regular_files_of_a_size)
{
    char folder[] = "/tmp/kr_base_XXXXXX", path[64], *data = NULL;
    size_t bytes;
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/fifo", folder);
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    ck_assert_int_eq(kr__file_read(path, &data, &bytes, &err), KR_IO); /* at once: nobody writes to it */
    ck_assert_ptr_nonnull(strstr(err.message, "/fifo is not a regular file"));
    unlink(path);
    ck_assert_int_eq(kr__file_read("/dev/zero", &data, &bytes, &err), KR_IO);
    ck_assert_ptr_nonnull(strstr(err.message, "/dev/zero is not a regular file"));
    snprintf(path, sizeof path, "%s/f", folder);
    put(path, "12345", 5);
    ck_assert_int_eq(kr__file_read_most(path, 4, &data, &bytes, &err), KR_IO);
    ck_assert_ptr_nonnull(strstr(err.message, "/f has more than 4 bytes"));
    ck_assert_int_eq(kr__file_read_most(path, 5, &data, &bytes, &err), KR_OK);
    ck_assert_uint_eq(bytes, 5);
    free(data);
    /* Its size is not told: it is counted. */
    ck_assert_int_eq(kr__file_read_most("/proc/self/maps", 100, &data, &bytes, &err), KR_IO);
    unlink(path);
    rmdir(folder);
}
END_TEST

/* The longest good beginning, by the table of well-formed sequences (Unicode, table 3-7). */
START_TEST(utf8_is_told_from_other_bytes)
{
    static const struct {
        const char *text;
        size_t good, bytes;
    } rows[] = {
        {"", 0, 0},
        {"abc", 3, 3},
        {"\xc3\xa9", 2, 2},         /* U+00E9 */
        {"\xe2\x82\xac", 3, 3},     /* U+20AC */
        {"\xf0\x9f\x98\x80", 4, 4}, /* U+1F600 */
        {"\xf4\x8f\xbf\xbf", 4, 4}, /* U+10FFFF */
        {"a\xff"
         "b",
         1, 3},
        {"ab\x80", 2, 3},   /* goes on with nothing begun */
        {"\xc3", 0, 1},     /* cut */
        {"\xe2\x82", 0, 2}, /* cut */
        {"\xc3"
         "a",
         0, 2},
        {"\xc0\xaf", 0, 2},         /* overlong */
        {"\xe0\x9f\xbf", 0, 3},     /* overlong */
        {"\xf0\x8f\xbf\xbf", 0, 4}, /* overlong */
        {"\xed\xa0\x80", 0, 3},     /* a surrogate */
        {"\xed\x9f\xbf", 3, 3},     /* the last before them */
        {"\xf4\x90\x80\x80", 0, 4}, /* past U+10FFFF */
        {"\xf5\x80\x80\x80", 0, 4},
    };
    for (size_t i = 0; i < KR_COUNT(rows); i++)
        ck_assert_uint_eq(kr__utf8_good(rows[i].text, rows[i].bytes), rows[i].good);
}
END_TEST

START_TEST(paths_are_told_from_contents)
{
    ck_assert(kr__is_like_a_path("my.pack", 7));
    ck_assert(kr__is_like_a_path("/tmp/x\0y", 8));
    ck_assert(!kr__is_like_a_path("my\n.pack", 8));
    ck_assert(!kr__is_like_a_path("", 0));
    ck_assert(!kr__is_like_a_path(NULL, 0)); /* what an empty file is mapped to */
}
END_TEST

START_TEST(prints)
{
    KR_FAIL(&err, KR_LAUNCH_FAILED, "too big");
    kr__error_code(&err, KR_API_CUDA, 701, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", "cuLaunchKernel");
    kr__error_op(&err, "saxpy.f32");
    kr__error_device(&err, 1);
    kr__error_advice(&err, "Use %d threads.", 128);
    kr__while(&err, KR_LAUNCH_FAILED, "running");
    kr__error_log(&err, "a log");
    char *text = NULL;
    size_t bytes;
    FILE *to = open_memstream(&text, &bytes);
    ck_assert_int_eq(kr_error_print(&err, to), 1);
    fclose(to);
    ck_assert_str_eq(text, "error: saxpy.f32: device 1: too big\n"
                           "  cuLaunchKernel answered CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES (701)\n"
                           "  while running\na log\n  Use 128 threads.\n");
    free(text);
}
END_TEST

/* FIPS 180-4's examples (NIST, "SHA-256 examples") and those of its CAVP that lie at the edges of a block. */
START_TEST(sha256)
{
    static const struct {
        const char *text;
        size_t n; /* of its first character, where that is repeated; else 0 */
        const char *digest;
    } rows[] = {
        {"", 0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
        {"abc", 0, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 0,
         "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
        {"abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmno"
         "pqrstn"
         "opqrstu",
         0, "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1"},
        {"a", 1000000, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"},
        {"\0", 55, "02779466cdec163811d078815c633f21901413081449002f24aa3e80f0b88ef7"},
        {"\0", 56, "d4817aa5497628e7c77e6b606107042bbba3130888c5f47a375e6179be789fbb"},
        {"\0", 57, "65a16cb7861335d5ace3c60718b5052e44660726da4cd13bb745381b235a1785"},
        {"\0", 64, "f5a5fd42d16a20302798ef6ed309979b43003d2320d9f0e8ea9831a92759fb4b"},
    };
    static const size_t steps[] = {1, 63, 64, 65, 1000};
    for (size_t i = 0; i < KR_COUNT(rows); i++)
        for (size_t k = 0; k < KR_COUNT(steps); k++) {
            const size_t n = rows[i].n ? rows[i].n : strlen(rows[i].text);
            char *data = malloc(n + 1), hex[2 * KR__SHA256_BYTES + 1];
            uint8_t digest[KR__SHA256_BYTES];
            kr__sha256 sha;
            memcpy(data, rows[i].text, rows[i].n ? 0 : n);
            memset(data, rows[i].text[0], rows[i].n);
            kr__sha256_begin(&sha);
            for (size_t at = 0; at < n; at += steps[k])
                kr__sha256_add(&sha, data + at, n - at < steps[k] ? n - at : steps[k]);
            kr__sha256_end(&sha, digest);
            for (size_t b = 0; b < sizeof digest; b++)
                snprintf(hex + 2 * b, 3, "%02x", digest[b]);
            ck_assert_str_eq(hex, rows[i].digest);
            free(data);
        }
}
END_TEST

START_TEST(files_are_mapped)
{
    char path[] = "/tmp/kr_test_base_XXXXXX";
    const int fd = mkstemp(path);
    const void *data = "unchanged";
    size_t bytes = 1;
    ck_assert_int_eq(kr__file_map(path, &data, &bytes, &err), KR_OK);
    ck_assert(!data && !bytes);
    kr__file_unmap(data, bytes);
    ck_assert_int_eq(write(fd, "four", 4), 4);
    close(fd);
    ck_assert_int_eq(kr__file_map(path, &data, &bytes, &err), KR_OK);
    ck_assert(bytes == 4 && memcmp(data, "four", 4) == 0);
    kr__file_unmap(data, bytes);
    unlink(path);
    ck_assert_int_eq(kr__file_map(path, &data, &bytes, &err), KR_NOT_FOUND);
    ck_assert_int_eq(kr__file_map("/dev/zero", &data, &bytes, &err), KR_IO);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("base");
    TCase *tc = tcase_create("base");
    tcase_add_test(tc, statuses);
    tcase_add_test(tc, failing_fills_the_error);
    tcase_add_test(tc, long_messages_are_cut_visibly);
    tcase_add_test(tc, errno_has_its_name);
    tcase_add_test(tc, every_failure_has_advice);
    tcase_add_test(tc, chains_grow_innermost_first);
    tcase_add_test(tc, long_logs_keep_head_and_tail);
    tcase_add_test(tc, texts_grow);
    tcase_add_test(tc, only_regular_files_of_a_size);
    tcase_add_test(tc, sha256);
    tcase_add_test(tc, files_are_mapped);
    tcase_add_test(tc, utf8_is_told_from_other_bytes);
    tcase_add_test(tc, paths_are_told_from_contents);
    tcase_add_test(tc, what_is_appended_is_cut_too);
    tcase_add_test(tc, distances);
    tcase_add_test(tc, suggestions);
    tcase_add_test(tc, globs);
    tcase_add_test(tc, allocations_that_overflow);
    tcase_add_test(tc, lists_grow);
    tcase_add_test(tc, arenas);
    tcase_add_test(tc, files);
    tcase_add_test(tc, prints);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
