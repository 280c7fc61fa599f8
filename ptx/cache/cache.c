/* SPDX-License-Identifier: Apache-2.0 */
/* One entry a file, named by its key: written under another name and then renamed, so it is there whole or
 * not at all. */
#include "ptx/cache/cache.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/internal.h"

enum {
    DEFAULT_LIMIT = 256 << 20, /* bytes */
    SWEEP_EVERY = 64,          /* entries kept: a sweep looks at each file of the folder */
    NAME_BYTES = 2 * KR__SHA256_BYTES + 40
};

struct kr_cache {
    char *folder;
    uint64_t limit_bytes;
    atomic_uint n_kept; /* by this handle */
};

/* Before the data of an entry. */
typedef struct entry_head {
    char magic[8];
    kr__cache_key key;
    uint8_t sha256[KR__SHA256_BYTES]; /* of the data */
    uint64_t data_bytes;
} entry_head;

static const char magic[8] = "KRKEPT1";

/* ---- the handle ---- */

/* "VALUE/rest" of a variable that is an absolute path. False: it is not. */
static bool below(kr__text *to, const char *variable, const char *rest)
{
    const char *value = secure_getenv(variable);
    if (!value || *value != '/')
        return false;
    kr__text_add(to, "%s%s", value, rest);
    return true;
}

static kr_status place(const char *folder, kr__text *to, kr_error *err)
{
    const char *told = folder ? folder : secure_getenv("KREGISTRY_CACHE_DIR");
    if (told && !strcmp(told, "none")) {
        KR_FAIL(err, KR_NOT_FOUND, "%s is none: nothing that is compiled is kept",
                folder ? "the folder" : "KREGISTRY_CACHE_DIR");
        kr__error_advice(err, "Unset KREGISTRY_CACHE_DIR, or name a folder.");
        return KR_NOT_FOUND;
    }
    if (told && *told)
        kr__text_add(to, "%s", told);
    else if (!below(to, "XDG_CACHE_HOME", "/kregistry") && !below(to, "HOME", "/.cache/kregistry")) {
        KR_FAIL(err, KR_NOT_FOUND, "there is no folder to keep what is compiled in");
        kr__error_advice(err, "Set KREGISTRY_CACHE_DIR, XDG_CACHE_HOME or HOME.");
        return KR_NOT_FOUND;
    }
    return to->failed ? KR_FAIL(err, KR_OUT_OF_HOST_MEMORY, "no host memory for the name of a folder")
                      : KR_OK;
}

kr_status kr_cache_create(const char *folder, const kr_cache_options *options, kr_cache **ret_cache,
                          kr_error *err)
{
    KR_REQUIRE(err, ret_cache);
    kr_cache_options own;
    kr__text path = {0};
    kr_status status = KR_OPTIONS(err, options, own);
    if (!status)
        status = place(folder, &path, err);
    kr_cache *cache = status ? NULL : kr__alloc(1, sizeof *cache, err);
    if (!cache) {
        kr__text_free(&path);
        return status ? status : KR_OUT_OF_HOST_MEMORY;
    }
    cache->folder = path.data;
    cache->limit_bytes = own.limit_bytes ? own.limit_bytes : DEFAULT_LIMIT;
    *ret_cache = cache;
    return KR_OK;
}

void kr_cache_destroy(kr_cache **cache)
{
    if (!cache || !*cache)
        return;
    free((*cache)->folder);
    free(*cache);
    *cache = NULL;
}

const char *kr_cache_folder(const kr_cache *cache)
{
    return cache->folder;
}

/* ---- entries ---- */

static void name_of(const kr__cache_key key, const char *ending, char name[NAME_BYTES])
{
    for (size_t i = 0; i < KR__SHA256_BYTES; i++)
        sprintf(name + 2 * i, "%02x", key[i]);
    strcpy(name + 2 * KR__SHA256_BYTES, ending);
}

static bool read_all(int fd, void *to, size_t bytes)
{
    for (char *at = to; bytes;) {
        const ssize_t n = read(fd, at, bytes);
        if (n == 0)
            errno = EIO; /* shorter than it was */
        if (n == 0 || (n < 0 && errno != EINTR))
            return false;
        at += n > 0 ? n : 0;
        bytes -= n > 0 ? (size_t)n : 0;
    }
    return true;
}

static bool write_all(int fd, const void *from, size_t bytes)
{
    for (const char *at = from; bytes;) {
        const ssize_t n = write(fd, at, bytes);
        if (n < 0 && errno != EINTR)
            return false;
        at += n > 0 ? n : 0;
        bytes -= n > 0 ? (size_t)n : 0;
    }
    return true;
}

/* A file of this user's with that key and whole data, malloc'ed into *ret_data; NULL: it is not. */
static bool read_entry(int fd, const kr__cache_key key, uint64_t limit_bytes, char **ret_data,
                       size_t *ret_bytes)
{
    struct stat facts;
    entry_head head;
    uint8_t sha256[KR__SHA256_BYTES];
    *ret_data = NULL;
    if (fstat(fd, &facts) || !S_ISREG(facts.st_mode) || facts.st_uid != geteuid() ||
        (uint64_t)facts.st_size > limit_bytes || (size_t)facts.st_size < sizeof head ||
        !read_all(fd, &head, sizeof head) || memcmp(head.magic, magic, sizeof magic) ||
        memcmp(head.key, key, sizeof head.key) || head.data_bytes != (size_t)facts.st_size - sizeof head)
        return false;
    char *data = malloc(head.data_bytes + 1);
    bool ok = data && read_all(fd, data, head.data_bytes);
    if (ok) {
        kr__sha256_of(data, head.data_bytes, sha256);
        ok = !memcmp(sha256, head.sha256, sizeof sha256);
    }
    if (!ok) {
        free(data);
        return false;
    }
    *ret_data = data;
    *ret_bytes = head.data_bytes;
    return true;
}

bool kr__cache_find(const kr_cache *cache, const kr__cache_key key, char **ret_data, size_t *ret_bytes,
                    char *why, size_t why_bytes)
{
    char name[NAME_BYTES];
    name_of(key, KR__CACHE_ENDING, name);
    why[0] = '\0';
    const int folder = kr__cache_folder_open(cache->folder, why, why_bytes);
    if (folder < 0)
        return false;
    const int fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    const bool is_there = fd >= 0 || errno != ENOENT;
    const bool ok = fd >= 0 && read_entry(fd, key, cache->limit_bytes, ret_data, ret_bytes);
    if (ok)
        futimens(fd, NULL); /* used now, says the sweep by it; one of which it cannot be said goes earlier */
    else if (is_there)
        kr__format(why, why_bytes, "%s/%s is damaged or not readable, and is compiled again", cache->folder,
                   name);
    if (fd >= 0)
        close(fd);
    close(folder);
    return ok;
}

static bool write_entry(int fd, const kr__cache_key key, const void *data, size_t bytes)
{
    entry_head head = {.data_bytes = bytes};
    memcpy(head.magic, magic, sizeof magic);
    memcpy(head.key, key, sizeof head.key);
    kr__sha256_of(data, bytes, head.sha256);
    return write_all(fd, &head, sizeof head) && write_all(fd, data, bytes);
}

bool kr__cache_keep(kr_cache *cache, const kr__cache_key key, const void *data, size_t bytes, char *why,
                    size_t why_bytes)
{
    static atomic_uint serial;
    char name[NAME_BYTES], unfinished[NAME_BYTES], ending[40];
    if (bytes >= cache->limit_bytes / 4) {
        kr__format(why, why_bytes, "%zu bytes are more than a quarter of the cache", bytes);
        return false;
    }
    const int folder = kr__cache_folder_open(cache->folder, why, why_bytes);
    if (folder < 0)
        return false;
    name_of(key, KR__CACHE_ENDING, name);
    int fd;
    do { /* a process of this number that was killed may have left one */
        kr__format(ending, sizeof ending, ".%ld.%u" KR__CACHE_UNFINISHED, (long)getpid(),
                   atomic_fetch_add(&serial, 1));
        name_of(key, ending, unfinished);
        fd = openat(folder, unfinished, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    } while (fd < 0 && errno == EEXIST);
    bool ok = fd >= 0 && write_entry(fd, key, data, bytes);
    if (fd >= 0)
        ok = !close(fd) && ok; /* a full disk may be told of here */
    ok = ok && !renameat(folder, unfinished, folder, name);
    if (!ok) {
        const int number = errno;
        if (fd >= 0)
            unlinkat(folder, unfinished, 0);
        kr__format(why, why_bytes, "it is not kept in %s: %s", cache->folder, strerror(number));
    } else if (atomic_fetch_add(&cache->n_kept, 1) % SWEEP_EVERY == 0) {
        kr__cache_sweep(folder, cache->limit_bytes);
    }
    close(folder);
    return ok;
}
