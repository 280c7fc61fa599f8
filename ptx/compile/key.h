/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KR_COMPILE_KEY_H
#define KR_COMPILE_KEY_H

/* What the files share that make the key of a compile. */

#include "ptx/compile/job.h"

/* A text that NVRTC reads. */
typedef struct scanned {
    char *place;    /* of a file: its folder's real path and its name; else NULL */
    char *folder;   /* where "name" is looked for first */
    char *data;     /* without lines that go on in the next */
    size_t n_words; /* that it was looked at for */
} scanned;

/* What texts are looked at for: __has_include and macros of it, which ask for a header in parentheses; and
 * the words of a name that such a macro is given, which must be no macros themselves. */
typedef struct sought {
    char *text;
    bool asks;
} sought;

typedef struct keying {
    const compile_job *job;
    kr__sha256 sha;
    scanned *texts;
    sought *words;
    size_t n_texts, n_files, n_words, n_looks, file_bytes;
    bool failed; /* no key */
} keying;

/* ---- what is hashed (key.c) ---- */

void kr__key_add(keying *k, const void *data, size_t bytes);
void kr__key_add_text(keying *k, const char *text);

/* ---- texts that NVRTC reads (key_texts.c) ---- */

/* `data` of `path`, to be scanned; `place` becomes the list's. */
void kr__key_add_scanned(keying *k, const char *path, char *place, const char *data, size_t bytes);

/* <name> or "name": in every folder that is searched. False: no such thing begins there. */
bool kr__key_add_header(keying *k, const char *at, const char *folder);

/* ---- what they ask for (key_scan.c) ---- */

/* Of all texts, and of those that they lead to. */
void kr__key_scan(keying *k);

#endif
