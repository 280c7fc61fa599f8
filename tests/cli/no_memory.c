/* SPDX-License-Identifier: Apache-2.0 */

/* To be loaded before everything else: of the allocations that the command and jansson make, the one whose
 * number NO_MEMORY_AT says is refused; of all, those of more bytes than NO_MEMORY_ABOVE says. */

#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

extern void *__libc_malloc(size_t bytes), *__libc_calloc(size_t n, size_t bytes),
    *__libc_realloc(void *data, size_t bytes);

static bool is_too_large(size_t bytes)
{
    const char *above = getenv("NO_MEMORY_ABOVE");
    return above && bytes > (size_t)atol(above);
}

static bool refused(const void *caller, size_t bytes)
{
    static __thread bool inside; /* what follows allocates */
    static long count;
    Dl_info info;
    if (inside)
        return false;
    inside = true;
    const char *at = getenv("NO_MEMORY_AT");
    const char *name = dladdr(caller, &info) && info.dli_fname ? strrchr(info.dli_fname, '/') : NULL;
    bool counted = name && (strcmp(name, "/kregistry") == 0 || strncmp(name, "/libjansson.", 12) == 0);
    bool no = counted && at && __atomic_add_fetch(&count, 1, __ATOMIC_RELAXED) == atol(at);
    no = no || is_too_large(bytes);
    inside = false;
    if (no)
        errno = ENOMEM;
    return no;
}

__attribute__((visibility("default"))) void *malloc(size_t bytes)
{
    return refused(__builtin_return_address(0), bytes) ? NULL : __libc_malloc(bytes);
}

__attribute__((visibility("default"))) void *calloc(size_t n, size_t bytes)
{
    return refused(__builtin_return_address(0), n * bytes) ? NULL : __libc_calloc(n, bytes);
}

__attribute__((visibility("default"))) void *realloc(void *data, size_t bytes)
{
    return refused(__builtin_return_address(0), bytes) ? NULL : __libc_realloc(data, bytes);
}
