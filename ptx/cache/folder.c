/* SPDX-License-Identifier: Apache-2.0 */
/* A folder that nobody else can write, of a bounded size. */
#include "ptx/cache/cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { UNFINISHED_SECONDS = 3600 }; /* nobody writes for so long */

/* Each folder of the path that is not there. False: errno of the first that cannot be made. */
static bool make_folders(const char *path)
{
    char *copy = strdup(path);
    bool is_made = copy != NULL;
    for (char *at = copy; is_made && at && *at;) {
        at = strchr(at + 1, '/');
        if (at)
            *at = '\0';
        is_made = !mkdir(copy, 0700) || errno == EEXIST;
        if (at)
            *at = '/';
    }
    free(copy);
    return is_made;
}

int kr__cache_folder_open(const char *path, char *why, size_t why_bytes)
{
    const int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
    struct stat facts;
    int folder = open(path, flags);
    if (folder < 0 && errno == ENOENT && make_folders(path))
        folder = open(path, flags);
    if (folder < 0) {
        kr__format(why, why_bytes, "the cache %s cannot be used: %s", path, strerror(errno));
        return -1;
    }
    if (!fstat(folder, &facts) && facts.st_uid == geteuid() && !(facts.st_mode & (S_IWGRP | S_IWOTH)))
        return folder;
    kr__format(why, why_bytes, "the cache %s is not used: others than this user can write to it", path);
    close(folder);
    return -1;
}

/* ---- the sweep ---- */

typedef struct kept {
    char *name;
    uint64_t bytes;
    struct timespec used;
} kept;

typedef struct listing {
    kept *list;
    size_t n;
    uint64_t bytes; /* of all */
    bool failed;
} listing;

/* A name that begins with a key, and ends so: somebody's own files may lie in the folder. */
static bool is_ours(const char *name, const char *ending)
{
    const size_t n = strlen(name), n_ending = strlen(ending), n_key = 2 * KR__SHA256_BYTES;
    return n >= n_key + n_ending && strspn(name, "0123456789abcdef") == n_key && name[n_key] == '.' &&
           !strcmp(name + n - n_ending, ending);
}

static void add(listing *l, const char *name, const struct stat *facts)
{
    kept *list = kr__grow(l->list, l->n, sizeof *list);
    char *copy = strdup(name);
    if (list)
        l->list = list;
    if (!list || !copy) {
        free(copy);
        l->failed = true;
        return;
    }
    l->list[l->n++] = (kept){copy, (uint64_t)facts->st_size, facts->st_mtim};
    l->bytes += (uint64_t)facts->st_size;
}

/* Entries into *ret; unfinished ones that are old go. */
static void look(int folder, listing *ret)
{
    const time_t now = time(NULL);
    const int own = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *directory = own < 0 ? NULL : fdopendir(own);
    struct stat facts;
    if (!directory && own >= 0)
        close(own);
    for (struct dirent *file; directory && (file = readdir(directory));) {
        const bool is_unfinished = is_ours(file->d_name, KR__CACHE_UNFINISHED);
        if ((!is_unfinished && !is_ours(file->d_name, KR__CACHE_ENDING)) ||
            fstatat(folder, file->d_name, &facts, AT_SYMLINK_NOFOLLOW))
            continue;
        if (!is_unfinished)
            add(ret, file->d_name, &facts);
        else if (facts.st_mtim.tv_sec + UNFINISHED_SECONDS < now)
            unlinkat(folder, file->d_name, 0);
    }
    if (directory)
        closedir(directory);
}

static int longer_ago(const void *left, const void *right)
{
    const struct timespec *a = &((const kept *)left)->used, *b = &((const kept *)right)->used;
    if (a->tv_sec != b->tv_sec)
        return a->tv_sec < b->tv_sec ? -1 : 1;
    return (a->tv_nsec > b->tv_nsec) - (a->tv_nsec < b->tv_nsec);
}

void kr__cache_sweep(int folder, uint64_t limit_bytes)
{
    listing l = {0};
    look(folder, &l);
    if (l.bytes > limit_bytes && !l.failed) {
        qsort(l.list, l.n, sizeof *l.list, longer_ago);
        for (size_t i = 0; i < l.n && l.bytes > limit_bytes / 4 * 3; i++)
            if (!unlinkat(folder, l.list[i].name, 0))
                l.bytes -= l.list[i].bytes;
    }
    for (size_t i = 0; i < l.n; i++)
        free(l.list[i].name);
    free(l.list);
}
