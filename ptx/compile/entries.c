/* SPDX-License-Identifier: Apache-2.0 */
#include "ptx/compile/nvrtc.h"

#include <string.h>

/*
 * The compiler's own output is well formed, and newer than any parser of ours when NVRTC is: the names are
 * read without parsing the rest, so that a new instruction does not cost them.
 */

static const char name_bytes[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_$%";

/* Past white space, comments and strings (inline assembly puts anything in them); one byte where there is
 * none. */
static const char *skip(const char *at)
{
    const char *end = NULL;
    if (strncmp(at, "//", 2) == 0)
        return at + strcspn(at, "\n");
    if (strncmp(at, "/*", 2) == 0)
        end = strstr(at + 2, "*/"), end = end ? end + 2 : NULL;
    else if (*at == '"')
        end = strchr(at + 1, '"'), end = end ? end + 1 : NULL;
    else
        end = at + 1;
    return end ? end : at + strlen(at);
}

/* The next ".entry NAME" from `at`: the name, *ret_bytes long. NULL: no more. */
static const char *next_entry(const char *at, size_t *ret_bytes)
{
    for (; *at; at = skip(at)) {
        if (strncmp(at, ".entry", 6) != 0 || !strchr(" \t\n", at[6]))
            continue;
        at += 6 + strspn(at + 6, " \t\n");
        *ret_bytes = strspn(at, name_bytes);
        return at;
    }
    return NULL;
}

const char *const *kr__ptx_entries(const char *ptx, kr__arena *arena, size_t *ret_n)
{
    size_t n = 0, bytes = 0;
    for (const char *at = ptx; (at = next_entry(at, &bytes)); at += bytes)
        n++;
    const char **names = kr__arena_alloc(arena, (n + 1) * sizeof *names);
    if (!names)
        return NULL;
    size_t i = 0;
    for (const char *at = ptx; (at = next_entry(at, &bytes)); at += bytes)
        if (!(names[i++] = kr__arena_text(arena, at, bytes)))
            return NULL;
    *ret_n = n;
    return names;
}
