/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KREGISTRY_CACHE_H
#define KREGISTRY_CACHE_H

#include <stdint.h>

#include <kregistry/error.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * kr_cache: a folder with what NVRTC compiled. It never hurts: what is damaged, stale, not to be read or not
 * to be written is compiled again. Thread-safe; many processes may use one folder at once, or remove it.
 *
 * What is kept is found by all that it was made from: source, headers with their content, options, arch,
 * kind, that very NVRTC and what it reads of the environment, and the version of this library. It is used
 * only where its SHA-256 is right.
 */
typedef struct kr_cache kr_cache;

typedef struct kr_cache_options {
    size_t struct_size;
    uint64_t limit_bytes; /* the oldest used go first; 0: 256 MiB */
} kr_cache_options;

/* folder NULL: KREGISTRY_CACHE_DIR, else kregistry in XDG_CACHE_HOME, else .cache/kregistry in HOME. Nothing
 * is made or opened before something is to be kept or found. KR_NOT_FOUND: folder or KREGISTRY_CACHE_DIR is
 * "none", or none of the variables is set. */
KR_API kr_status kr_cache_create(const char *folder, const kr_cache_options *options, kr_cache **ret_cache,
                                 kr_error *err);
/* After the last compile with it. Accepts NULL; nulls the handle. What is kept stays. */
KR_API void kr_cache_destroy(kr_cache **cache);

KR_API const char *kr_cache_folder(const kr_cache *cache);

#ifdef __cplusplus
}
#endif
#endif
