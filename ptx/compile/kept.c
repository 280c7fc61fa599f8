/* SPDX-License-Identifier: Apache-2.0 */
/* The result of a compile as bytes, and back. */
#include <limits.h>
#include <string.h>

#include "ptx/compile/job.h"

/* Before the texts: image, PTX, log, entries, lowered names. Each is its length, its bytes and a NUL. */
typedef struct kept_head {
    int32_t kind;
    uint32_t has_ptx; /* else there is none, or it is the image */
    uint64_t n_entries, n_lowered_names;
} kept_head;

static void add(kr__text *to, const void *data, size_t bytes)
{
    const uint64_t n = bytes;
    kr__text_add_bytes(to, (const char *)&n, sizeof n);
    kr__text_add_bytes(to, data, bytes);
    kr__text_add_bytes(to, "", 1);
}

bool kr__compiled_pack(const compile_job *job, kr__text *to)
{
    const kr_compiled *c = &job->compiled;
    const kept_head head = {(int32_t)c->kind, c->ptx != NULL, c->n_entries, job->given.n_name_expressions};
    kr__text_add_bytes(to, (const char *)&head, sizeof head);
    add(to, c->image, c->image_bytes);
    add(to, c->ptx ? c->ptx : "", c->ptx ? strlen(c->ptx) : 0);
    add(to, c->log, strlen(c->log));
    for (size_t i = 0; i < c->n_entries; i++)
        add(to, c->entries[i], strlen(c->entries[i]));
    for (size_t i = 0; i < job->given.n_name_expressions; i++)
        add(to, c->lowered_names[i], strlen(c->lowered_names[i]));
    return !to->failed;
}

typedef struct reader {
    const char *at, *end;
    bool failed;
} reader;

static const char *next(reader *r, size_t *ret_bytes)
{
    uint64_t n = 0;
    const char *data = r->at + sizeof n;
    r->failed |= (size_t)(r->end - r->at) < sizeof n + 1;
    if (!r->failed)
        memcpy(&n, r->at, sizeof n);
    r->failed |= r->failed || n > (size_t)(r->end - data) - 1 || data[n];
    if (r->failed)
        return "";
    r->at = data + n + 1;
    *ret_bytes = n;
    return data;
}

static const char *const *next_list(reader *r, kr__arena *arena, uint64_t n)
{
    size_t bytes;
    r->failed |= n > (size_t)(r->end - r->at) / 9;
    const char **list = r->failed ? NULL : kr__arena_alloc(arena, (n ? n : 1) * sizeof *list);
    r->failed |= !list;
    for (uint64_t i = 0; i < n && !r->failed; i++)
        list[i] = next(r, &bytes);
    return list;
}

bool kr__compiled_unpack(compile_job *job, const char *data, size_t bytes)
{
    kr_compiled c = {.arch = job->compiled.arch};
    kept_head head;
    if (bytes < sizeof head)
        return false;
    char *copy = kr__arena_alloc(&job->arena, bytes);
    if (!copy)
        return false;
    memcpy(copy, data, bytes);
    memcpy(&head, copy, sizeof head);
    reader r = {.at = copy + sizeof head, .end = copy + bytes};
    size_t ptx_bytes = 0, log_bytes;
    c.kind = (kr_image_kind)head.kind;
    c.image = next(&r, &c.image_bytes);
    c.ptx = next(&r, &ptx_bytes);
    c.log = next(&r, &log_bytes);
    c.n_entries = head.n_entries;
    c.entries = next_list(&r, &job->arena, head.n_entries);
    c.lowered_names = next_list(&r, &job->arena, head.n_lowered_names);
    if (!head.has_ptx)
        c.ptx = NULL;
    if (r.failed || r.at != r.end || head.n_lowered_names != job->given.n_name_expressions ||
        (unsigned)head.kind > KR_IMAGE_LTOIR)
        return false;
    c.is_found = true;
    job->compiled = c;
    return true;
}
