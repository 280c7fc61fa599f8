/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every access of a kernel passes here when a checker is on, after its lanes' addresses were found good.
 *
 * initcheck keeps a byte a byte of device memory, 1 where something was written. What is not tracked (host
 * memory) counts as written.
 */
#include "softcuda/vm/check.h"
#include "softcuda/vm/shadow.h"

#include <inttypes.h>
#include <string.h>

enum { SC_OBSERVING = SC_CHECK_INIT | SC_CHECK_RACE };
static const sc_accesses *real;
static sc_accesses observing;
static sc_shadow written = {.scale = 1};
static _Atomic uint64_t n_frees;

/* ---- what is written ---- */

static void mark(uint64_t start, size_t bytes)
{
    for (size_t n; bytes; start += n, bytes -= n) {
        n = sc_shadow_piece(start, bytes);
        char *at = sc__shadow_find(&written, start);
        if (at)
            memset(at, 1, n);
    }
}

void sc_check_filled(uint64_t to, size_t bytes)
{
    if (sc__checking(SC_CHECK_INIT))
        mark(to, bytes);
}

void sc__check_allocated(uint64_t start, size_t bytes)
{
    if (!sc__checking(SC_CHECK_INIT))
        return;
    for (size_t n; bytes; start += n, bytes -= n) {
        n = sc_shadow_piece(start, bytes);
        sc__shadow_make(&written, start); /* out of memory: it counts as written */
    }
}

void sc__check_freed(uint64_t start, size_t bytes)
{
    atomic_fetch_add(&n_frees, 1);
    if (sc__checking(SC_CHECK_INIT))
        sc__shadow_clear(&written, start, bytes);
    if (sc__checking(SC_CHECK_RACE))
        sc__race_forget(start, bytes);
}

/* A copy takes along what is known of its source: to copy is not yet to use. */
void sc_check_copied(uint64_t to, uint64_t from, size_t bytes)
{
    if (!sc__checking(SC_CHECK_INIT))
        return;
    for (size_t n; bytes; to += n, from += n, bytes -= n) {
        n = sc_shadow_piece(from, sc_shadow_piece(to, bytes));
        char *at = sc__shadow_find(&written, to), *source = sc__shadow_find(&written, from);
        if (at && source)
            memmove(at, source, n);
        else if (at)
            memset(at, 1, n);
    }
}

/* ---- initcheck ---- */

static bool in_range(const char *at, const void *start, size_t bytes)
{
    return (size_t)(at - (const char *)start) < bytes;
}

static bool is_shared(const sc_block *block, const char *at)
{
    return in_range(at, block->shared, block->shared_bytes);
}

/* Local memory and parameters are a thread's own, and what is told apart by neither its space nor its place
 * (another block's shared memory) is left alone. */
static bool is_global(const sc_warp *warp, const sc_access *access, const char *at)
{
    if (access->space == PTX_SPACE_GLOBAL)
        return true;
    sc_span span;
    return access->space == PTX_SPACE_GENERIC &&
           !in_range(at, warp->block->storage, warp->block->storage_bytes) &&
           sc__memory_span(warp->kernel->device, (uintptr_t)at, &span);
}

void sc__where(const sc_warp *warp, const char *at, char *to, size_t to_bytes)
{
    sc_allocation found;
    if (is_shared(warp->block, at))
        kr__format(to, to_bytes, "offset %zu of the shared memory of the block",
                   (size_t)(at - warp->block->shared));
    else if (sc_memory_find((uintptr_t)at, &found))
        kr__format(to, to_bytes,
                   "0x%" PRIx64 ", %" PRIu64 " bytes into the allocation of %zu bytes at 0x%" PRIx64
                   " (number %" PRIu64 ")",
                   (uint64_t)(uintptr_t)at, (uintptr_t)at - found.start, found.bytes, found.start, found.id);
    else
        kr__format(to, to_bytes, "0x%" PRIx64, (uint64_t)(uintptr_t)at);
}

/* The bytes' marks, up to 32 of them from `at` on; NULL: they count as written. */
static char *marks_of(const sc_warp *warp, const char *at)
{
    const sc_block *block = warp->block;
    return is_shared(block, at) ? (char *)block->check->shared_written + (at - block->shared)
                                : sc__shadow_find(&written, (uintptr_t)at);
}

static void check_written(const sc_warp *warp, const sc_code *in, const sc_access *access, sc_touch touch,
                          unsigned lane)
{
    const char *at = warp->pointers[lane];
    char *marks = marks_of(warp, at);
    if (!marks)
        return;
    const char *unwritten = touch & SC_TOUCH_READ ? memchr(marks, 0, access->total_bytes) : NULL;
    if (unwritten && sc__is_first(SC_CHECK_INIT, warp->kernel, in->line)) {
        char where[300];
        sc__where(warp, at, where, sizeof where);
        sc__tell(SC_CHECK_INIT, warp, lane, in->line, NULL,
                 "%s of %u bytes at %s, of which byte %zu was never written", access->verb,
                 access->total_bytes, where, (size_t)(unwritten - marks));
    }
    if (touch & SC_TOUCH_WRITE)
        memset(marks, 1, access->total_bytes);
}

/* ---- observing ---- */

static sc_touch touch_of(const sc_access *access)
{
    return strcmp(access->verb, "store") == 0                                       ? SC_TOUCH_WRITE
           : strcmp(access->verb, "load") == 0 || strcmp(access->verb, "read") == 0 ? SC_TOUCH_READ
                                                                                    : SC_TOUCH_BOTH;
}

static bool orders(ptx_order order)
{
    return order == PTX_RELEASE || order == PTX_ACQ_REL || order == PTX_SC;
}

static void observe(sc_warp *warp, const sc_code *in, const sc_access *access, uint32_t lanes,
                    const uint8_t (*values)[32])
{
    if (!sc__checking(SC_OBSERVING))
        return;
    const sc_touch touch = touch_of(access);
    uint32_t seen = 0;
    for (uint32_t left = lanes; left; left &= left - 1) {
        unsigned lane = (unsigned)__builtin_ctz(left);
        const char *at = warp->pointers[lane];
        seen |= (uint32_t)(is_shared(warp->block, at) || is_global(warp, access, at)) << lane;
    }
    if (sc__checking(SC_CHECK_INIT))
        for (uint32_t left = seen; left; left &= left - 1)
            check_written(warp, in, access, touch, (unsigned)__builtin_ctz(left));
    if (warp->block->check->clocks && seen)
        sc__race_access(&(sc_seen){.warp = warp,
                                   .line = in->line,
                                   .touch = touch,
                                   .bytes = access->total_bytes,
                                   .strong = touch == SC_TOUCH_BOTH || access->order > PTX_WEAK,
                                   .releases = orders(access->order) ||
                                               (touch == SC_TOUCH_BOTH && !access->operate_global),
                                   .values = values},
                        seen);
}

/* An allocation that was freed may still be remembered as one. */
static void forget_freed(sc_warp *warp)
{
    uint64_t frees = atomic_load(&n_frees);
    if (warp->block->check->frees != frees)
        memset(warp->sites, 0, warp->kernel->n_sites * sizeof *warp->sites);
    warp->block->check->frees = frees;
}

static bool translate(sc_warp *warp, const sc_code *in, const sc_access *access)
{
    forget_freed(warp);
    if (!real->translate(warp, in, access))
        return false;
    observe(warp, in, access, warp->mask, NULL);
    return true;
}

static bool translate_lane(sc_warp *warp, const sc_code *in, const sc_access *access, unsigned lane,
                           uint64_t address, ptx_space space)
{
    forget_freed(warp);
    if (!real->translate_lane(warp, in, access, lane, address, space))
        return false;
    observe(warp, in, access, 1u << lane, NULL);
    return true;
}

static unsigned log2_of(unsigned value)
{
    return (unsigned)__builtin_ctz(value);
}

static const sc_code *run_load(sc_warp *warp, const sc_code *in)
{
    const sc_access *access = in->more;
    forget_freed(warp);
    if (sc__checking(SC_OBSERVING) && !translate(warp, in, access))
        return NULL;
    return real->load[log2_of(access->bytes)][log2_of(access->total_bytes / access->bytes)](warp, in);
}

/* What each lane is about to store. */
_Static_assert(KR_COUNT(((sc_accesses *)0)->store[0]) == 3, "of at most four elements");
static void gather(const sc_warp *warp, const sc_code *in, const sc_access *access, uint8_t (*values)[32])
{
    const sc_slot slots[4] = {in->d, in->b, in->e, in->f};
    const unsigned place = access->bytes == 8 ? 8 : 4;
    for (unsigned k = 0; k * access->bytes < access->total_bytes; k++) {
        const char *from = warp->bank[slots[k] & 1] + (slots[k] & ~3u);
        for (unsigned lane = 0; lane < SC_LANES; lane++)
            memcpy(values[lane] + k * access->bytes, from + lane * place, access->bytes);
    }
}

static const sc_code *run_store(sc_warp *warp, const sc_code *in)
{
    const sc_access *access = in->more;
    uint8_t values[SC_LANES][32];
    forget_freed(warp);
    if (sc__checking(SC_OBSERVING)) {
        if (!real->translate(warp, in, access))
            return NULL;
        gather(warp, in, access, values);
        observe(warp, in, access, warp->mask, (const uint8_t(*)[32])values);
    }
    return real->store[log2_of(access->bytes)][log2_of(access->total_bytes / access->bytes)](warp, in);
}

const sc_accesses *sc__check_accesses(const sc_accesses *plain)
{
    if (!sc__checking(SC_OBSERVING | SC_CHECK_MEMORY))
        return plain;
    real = plain;
    observing = (sc_accesses){.translate = translate, .translate_lane = translate_lane};
    for (size_t i = 0; i < KR_COUNT(observing.load); i++)
        for (size_t k = 0; k < KR_COUNT(observing.load[i]); k++) {
            observing.load[i][k] = run_load;
            observing.store[i][k] = run_store;
        }
    return &observing;
}
