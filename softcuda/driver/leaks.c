/* SPDX-License-Identifier: Apache-2.0 */
/* leakcheck: what a program made and did not destroy; and what all checkers found, at the end of the process.
 */
#include "softcuda/driver/driver.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

typedef struct leaks {
    const sc_context *context;
    sc_object **items;
    size_t n;
} leaks;

/* Did the program make it? Default streams and pools, the modules of libraries and the variables of modules,
 * it did not. */
static bool is_made(const sc_object *object)
{
    switch (object->kind) {
    case SC_STREAM: {
        const sc_stream *stream = (const sc_stream *)object;
        return stream != object->context->legacy && !stream->thread;
    }
    case SC_BLOCK:
        return ((const sc_block *)object)->kind != SC_BLOCK_VARIABLE;
    case SC_MODULE:
        return !((const sc_module *)object)->library;
    case SC_POOL:
        for (int i = 0; i < sc_n_devices; i++)
            if ((const sc_object *)sc_devices[i].default_pool == object)
                return false;
        return true;
    default:
        return true;
    }
}

static void add(void *of, void *user)
{
    sc_object *object = of;
    leaks *found = user;
    if ((found->context && object->context != found->context) || !is_made(object))
        return;
    sc_object **grown = kr__grow(found->items, found->n, sizeof *grown);
    if (!grown)
        return;
    found->items = grown;
    grown[found->n++] = sc_retain(object);
}

static int by_number(const void *a, const void *b)
{
    uint64_t x = (*(sc_object *const *)a)->number, y = (*(sc_object *const *)b)->number;
    return x < y ? -1 : x > y;
}

static void tell(const sc_object *object, const char *when)
{
    static const char *const blocks[] = {
        [SC_BLOCK_DEVICE] = "device memory",
        [SC_BLOCK_HOST] = "pinned host memory",
        [SC_BLOCK_REGISTERED] = "registered host memory",
        [SC_BLOCK_MANAGED] = "managed memory",
        [SC_BLOCK_MAPPED] = "a mapping",
    };
    static const char *const kinds[] = {
        [SC_STREAM] = "stream",           [SC_EVENT] = "event",      [SC_MODULE] = "module",
        [SC_LIBRARY] = "library",         [SC_POOL] = "memory pool", [SC_RANGE] = "reserved addresses",
        [SC_PHYSICAL] = "created memory", [SC_ARRAY] = "array",
    };
    if (object->kind == SC_BLOCK) {
        const sc_block *block = (const sc_block *)object;
        sc_finding(SC_CHECK_LEAK, "%s of %zu bytes at 0x%" PRIx64 " (object %" PRIu64 ") %s",
                   block->pool ? "device memory of a pool" : blocks[block->kind], block->bytes, block->start,
                   object->number, when);
    } else {
        sc_finding(SC_CHECK_LEAK, "%s 0x%" PRIxPTR " (object %" PRIu64 ") %s", kinds[object->kind],
                   object->key, object->number, when);
    }
}

void sc_leaks_tell(const sc_context *context)
{
    static const sc_kind kinds[] = {SC_BLOCK, SC_STREAM, SC_EVENT,    SC_MODULE, SC_LIBRARY,
                                    SC_POOL,  SC_RANGE,  SC_PHYSICAL, SC_ARRAY};
    leaks found = {.context = context};
    if (!(sc_checks() & SC_CHECK_LEAK) || atomic_load(&sc_lost))
        return; /* after a fault nothing can be freed */
    for (size_t i = 0; i < KR_COUNT(kinds); i++)
        sc_objects_each(kinds[i], add, &found);
    if (found.n)
        qsort(found.items, found.n, sizeof *found.items, by_number);
    for (size_t i = 0; i < found.n; i++) {
        tell(found.items[i],
             context ? "lives when its context is destroyed" : "lives at the end of the process");
        sc_release(found.items[i]);
    }
    free(found.items);
}

static pid_t process; /* that called cuInit: not its forked children */

void sc_leaks_begin(void)
{
    process = getpid();
}

/* After all that the program left for its end (atexit), which may free things. */
static __attribute__((destructor)) void at_end(void)
{
    if (getpid() != process)
        return;
    sc_leaks_tell(NULL);
    uint64_t n = sc_findings(), code = sc_setting_value(SC_SETTING_CHECK_EXITCODE);
    sc_say("%" PRIu64 " finding%s", n, n == 1 ? "" : "s");
    if (!n || !code)
        return;
    fflush(NULL);
    _exit((int)code);
}
