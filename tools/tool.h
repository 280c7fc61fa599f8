/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_H
#define TOOL_H

#include <kregistry/error.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Fills *err (if wanted) as the library does and returns status. */
kr_status tool_fail(kr_error *err, kr_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void tool_advice(kr_error *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The same with KR_INVALID_ARGUMENT and one thing to do. */
kr_status tool_refuse(kr_error *err, const char *advice, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The same for a system call that failed: errno's number, name and text, and one thing to do about it. */
kr_status tool_fail_errno(kr_error *err, kr_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Says what was being done when it failed, after what *err says of that, and returns status. */
kr_status tool_while(kr_error *err, kr_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Are both there, and one? */
bool tool_same_file(const char *a, const char *b);

/* The whole file, malloc'ed, with a NUL behind it. One above 2 GiB is refused before it is read. */
kr_status tool_read_bytes(const char *path, char **ret_data, size_t *ret_bytes, kr_error *err);
/* The same of text. A NUL in it is refused: what follows would be lost. */
kr_status tool_read_file(const char *path, char **ret_text, size_t *ret_bytes, kr_error *err);
/* Whole or not at all where the path is a file or nothing yet; links are followed, pipes and devices written
 * to. */
kr_status tool_write_file(const char *path, const void *data, size_t bytes, kr_error *err);

/* Defines in C and C++: const unsigned char NAME[], aligned as a pack asks, and const size_t NAME_bytes. */
void tool_print_bytes(FILE *to, const char *name, const void *data, size_t bytes);

/* How it is told that there is no memory, before the program ends with exit code 1. Allocates nothing. */
extern void (*tool_no_memory)(size_t bytes);

/* As open_memstream, whose files drop without a word what there is no memory for; this ends the program. */
FILE *tool_memory_file(char **text, size_t *bytes);

/* Zeroed; at least one byte. The first ends the program when there is no memory, the second answers NULL. */
void *tool_alloc(size_t bytes);
void *tool_try_alloc(size_t bytes);
void *tool_realloc(void *data, size_t bytes); /* ends the program when there is no memory */

#endif
