/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KR_PTX_CACHE_H
#define KR_PTX_CACHE_H

#include <kregistry/cache.h>

#include "runtime/base/base.h"

typedef uint8_t kr__cache_key[KR__SHA256_BYTES];

/* What is kept under the key, malloc'ed. false: nothing is. Where something or the folder will not do, `why`
 * says so in a sentence; else it is "". */
bool kr__cache_find(const kr_cache *cache, const kr__cache_key key, char **ret_data, size_t *ret_bytes,
                    char *why, size_t why_bytes);

/* Keeps it; false: it is not kept, and `why` says why. */
bool kr__cache_keep(kr_cache *cache, const kr__cache_key key, const void *data, size_t bytes, char *why,
                    size_t why_bytes);

/* ---- the files of a folder (folder.c) ---- */

/* The folder of a cache, made where it is not there. -1: none that only this user can write, and `why` says
 * why. */
int kr__cache_folder_open(const char *path, char *why, size_t why_bytes);

/* Removes temporary files that nobody will finish and, where all are more than limit_bytes, those used
 * longest ago, down to three quarters of it. */
void kr__cache_sweep(int folder, uint64_t limit_bytes);

/* Names of entries and of files that will be entries. */
#define KR__CACHE_ENDING ".kept"
#define KR__CACHE_UNFINISHED ".new"

#endif
