/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KR_BASE_H
#define KR_BASE_H

/* The floor of the house: errors, memory, text, files. Knows nothing of CUDA. */

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <kregistry/error.h>

#define KR_COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define KR_PRINTF(at, first) __attribute__((format(printf, at, first)))

/* ---- errors (error.c) ---- */

/* Fills *err (if wanted) and returns `status`: `return KR_FAIL(err, KR_NOT_FOUND, "no op \"%s\"", name);` */
#define KR_FAIL(err, status, ...) kr__fail((err), (status), __FILE__, __LINE__, __VA_ARGS__)
kr_status kr__fail(kr_error *err, kr_status status, const char *file, int line, const char *format, ...)
    KR_PRINTF(5, 6);

/* The same with errno's number, name and text: "cannot open X: No such file or directory". */
#define KR_FAIL_ERRNO(err, status, number, ...)                                                    \
    kr__fail_errno((err), (status), (number), __FILE__, __LINE__, __VA_ARGS__)
kr_status kr__fail_errno(kr_error *err, kr_status status, int number, const char *file, int line,
                         const char *format, ...) KR_PRINTF(6, 7);

/* Leaves the function with KR_INVALID_ARGUMENT where a pointer is NULL: KR_REQUIRE(err, device, name); */
#define KR_REQUIRE(err, ...)                                                                       \
    do {                                                                                           \
        const void *const pointers_[] = {__VA_ARGS__};                                             \
        for (size_t i_ = 0; i_ < KR_COUNT(pointers_); i_++)                                        \
            if (!pointers_[i_])                                                                    \
                return kr__fail_null((err), __FILE__, __LINE__, __func__, #__VA_ARGS__, i_);       \
    } while (0)
/* names: "device, name"; index: of the one that is NULL. */
kr_status kr__fail_null(kr_error *err, const char *file, int line, const char *function, const char *names,
                        size_t index);

/* The same for a list of n pointers and for each of them. */
kr_status kr__require_list(kr_error *err, const char *name, const void *list, size_t n);

/* Puts a foreign code beside an error already filled. `function` must be a static string. */
void kr__error_code(kr_error *err, kr_api api, int code, const char *code_name, const char *function);

/* The rest of an error already filled. All accept err NULL. Advice is one sentence, as people write them:
 * "Use a smaller block." or "Did you mean \"saxpy\"?" Every error has one: KR_FAIL gives that of its status or
 * errno, KR_CUDA_FAIL that of the driver's answer. Who knows better says so after it. */
void kr__error_advice(kr_error *err, const char *format, ...) KR_PRINTF(2, 3);
/* Says so only where nobody knew better than the status or errno. */
void kr__error_advice_if_none(kr_error *err, const char *format, ...) KR_PRINTF(2, 3);
void kr__error_log(kr_error *err, const char *log);
void kr__error_op(kr_error *err, const char *op);
void kr__error_image(kr_error *err, const char *image);
void kr__error_device(kr_error *err, int ordinal);

/* Adds "while ..." to the chain and returns err->status, so that a caller can
 * `return kr__while(err, status, "preparing %s", op);` on its way out. */
kr_status kr__while(kr_error *err, kr_status status, const char *format, ...) KR_PRINTF(3, 4);

/* ---- memory (memory.c) ---- */

/* calloc with an overflow check; NULL fills err (KR_OUT_OF_HOST_MEMORY, with the bytes). */
void *kr__alloc(size_t n, size_t size, kr_error *err);

/* A list of n with room for one more: itself or, where n is 0 or a power of two, what it was moved to. NULL:
 * out of memory, and the list is as it was. For lists that grow by this alone. */
void *kr__grow(void *list, size_t n, size_t size);

/* An arena: many small allocations freed at once. Zero-initialised is empty. Not thread-safe. */
typedef struct kr__arena_block kr__arena_block;
typedef struct kr__arena {
    kr__arena_block *last;
} kr__arena;
void *kr__arena_alloc(kr__arena *arena, size_t bytes); /* zeroed, 16-aligned; NULL when out of memory */
char *kr__arena_text(kr__arena *arena, const char *text, size_t bytes); /* a NUL-terminated copy */
void kr__arena_free(kr__arena *arena);

/* ---- text (text.c) ---- */

/* A growing string. Zero-initialised is empty. Running out of memory is remembered in `failed` and
 * checked once, at the end. `data` is NUL-terminated or NULL. */
typedef struct kr__text {
    char *data;
    size_t bytes;
    size_t capacity;
    bool failed;
} kr__text;
void kr__text_add(kr__text *text, const char *format, ...) KR_PRINTF(2, 3);
void kr__text_add_bytes(kr__text *text, const char *bytes, size_t n);
void kr__text_free(kr__text *text);

/* snprintf that always terminates and cuts with "..." at the end when it does not fit. */
void kr__format(char *to, size_t bytes, const char *format, ...) KR_PRINTF(3, 4);
void kr__format_list(char *to, size_t bytes, const char *format, va_list args);
/* The same behind the text that is there; bytes are of both. */
void kr__append(char *to, size_t bytes, const char *format, ...) KR_PRINTF(3, 4);

/* How many bytes from the beginning are UTF-8. */
size_t kr__utf8_good(const char *text, size_t bytes);

/* Does the text look like the name of a file, given where its bytes were wanted? */
bool kr__is_like_a_path(const char *text, size_t bytes);

/* Edit distance. */
size_t kr__distance(const char *a, const char *b);

/* For "did you mean": is `other` like `name` (at most a third of it differs), and more so than *best, which
 * is SIZE_MAX at first? Then *best is its distance. */
bool kr__nearer(const char *name, const char *other, size_t *best);

/* Does `name` match the shell pattern (*, ?, [...]) whole? */
bool kr__glob(const char *pattern, const char *name);

/* ---- files (file.c) ---- */

/* Reads a whole file, a regular one; *ret_data is malloc'ed and has one further NUL byte. */
kr_status kr__file_read(const char *path, char **ret_data, size_t *ret_bytes, kr_error *err);
/* The same, of at most so many bytes. */
kr_status kr__file_read_most(const char *path, size_t most_bytes, char **ret_data, size_t *ret_bytes,
                             kr_error *err);
bool kr__file_exists(const char *path);
/* Something that is no regular file, such as a pipe, which would keep dlopen waiting. A bare name is none. */
bool kr__file_is_strange(const char *path);

/* A regular file as memory that is read alone. Empty: NULL and 0. */
kr_status kr__file_map(const char *path, const void **ret_data, size_t *ret_bytes, kr_error *err);
void kr__file_unmap(const void *data, size_t bytes); /* accepts NULL */

/* ---- SHA-256 (sha256.c) ---- */

enum { KR__SHA256_BYTES = 32 };

typedef struct kr__sha256 {
    uint32_t state[8];
    uint64_t bytes; /* so far */
    uint8_t block[64];
} kr__sha256;
void kr__sha256_begin(kr__sha256 *sha);
void kr__sha256_add(kr__sha256 *sha, const void *data, size_t bytes);
void kr__sha256_end(kr__sha256 *sha, uint8_t ret_digest[KR__SHA256_BYTES]);
void kr__sha256_of(const void *data, size_t bytes, uint8_t ret_digest[KR__SHA256_BYTES]);

#endif
