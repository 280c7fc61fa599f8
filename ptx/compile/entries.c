/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "ptx/compile/nvrtc.h"
#include "ptx/image/scan.h"

/*
 * The compiler's own output is well formed, and newer than any parser of ours when NVRTC is: the names are
 * read without parsing the rest, so that a new instruction does not cost them.
 */

/* The next name behind ".entry": the text from there on, *ret_end past it. NULL: no more. */
static const char *next_entry(const char *at, const char *end, const char **ret_end)
{
    for (const char *after; (at = kr__scan_blanks(at, end)) < end; at = after + (after == at)) {
        after = kr__scan_token(at, end);
        if (kr__scan_is(at, after, ".entry")) {
            at = kr__scan_blanks(after, end);
            *ret_end = kr__scan_token(at, end);
            return at;
        }
    }
    return NULL;
}

const char *const *kr__ptx_entries(const char *ptx, kr__arena *arena, size_t *ret_n)
{
    size_t n = 0, i = 0;
    const char *const end = ptx + strlen(ptx), *name_end = ptx;
    while (next_entry(name_end, end, &name_end))
        n++;
    const char **names = kr__arena_alloc(arena, (n + 1) * sizeof *names);
    if (!names)
        return NULL;
    name_end = ptx;
    for (const char *name; (name = next_entry(name_end, end, &name_end)); i++)
        if (!(names[i] = kr__arena_text(arena, name, (size_t)(name_end - name))))
            return NULL;
    *ret_n = n;
    return names;
}
