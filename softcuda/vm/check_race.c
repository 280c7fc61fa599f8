/* SPDX-License-Identifier: Apache-2.0 */
/*
 * racecheck: two accesses of different threads of a launch to the same bytes, at least one a write, not both
 * strong, and nothing that orders them.
 *
 * Each word of memory remembers its last write and two reads. What orders:
 *
 *   in a block     a vector clock a warp. Its own component ticks at every barrier; a barrier joins the
 * clocks of the warps that come to it. in a warp      the tick up to which a lane's accesses come before
 * another lane's: rendezvous set it. anywhere       fences and strong accesses. Fences count up one clock for
 * all; a fence makes the warp's `published` that count, a strong write leaves the writer's `published` in the
 * word, and who reads the word strongly knows all that happened before then (`acquired`): also what threads
 *                  did that it has not met. So a race can be missed after such a meeting, but what is found
 * is one.
 *
 * A word read is released before the write of it happens and acquired after the read did, since other host
 * threads run meanwhile: hence the pending acquisitions.
 */
#include "softcuda/vm/check.h"
#include "softcuda/vm/shadow.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

typedef struct sc_mark {
    uint32_t serial; /* of the block; 0: nothing */
    uint32_t tick;   /* of the warp */
    uint32_t time;   /* fences there had been */
    uint32_t line;
    uint8_t warp, lane;
    uint8_t bytes; /* a bit a byte of the word */
    bool strong;
} sc_mark;

typedef struct sc_cell {
    sc_mark write, read[2];
    uint32_t released;
} sc_cell;

enum { SC_WORD = 4, SC_MOST_WARPS = 32, SC_STRIPES = 4096, SC_STRIPE_BITS = 8 };
_Static_assert(sizeof(sc_cell) % SC_WORD == 0, "whole bytes of shadow a byte");

typedef struct sc_clock {
    uint32_t tick;
    uint32_t known[SC_MOST_WARPS]; /* up to which tick of each warp all comes before */
    uint32_t base; /* up to which tick of its own all lanes' accesses come before all lanes' */
    bool by_lane;  /* `lanes` says more */
    uint32_t lanes[SC_LANES][SC_LANES];
    uint32_t published, acquired;
    const char *pending[SC_LANES]; /* words to be acquired at */
    unsigned n_pending;
} sc_clock;

/* What those that come to a barrier know together. */
typedef struct sc_meeting {
    uint32_t known[SC_MOST_WARPS], published, acquired;
} sc_meeting;

struct sc_clocks {
    sc_meeting meetings[SC_BARRIERS];
    sc_cell *shared; /* a word of shared memory each */
    sc_clock of[];   /* warps */
};

static sc_shadow cells = {.scale = sizeof(sc_cell) / SC_WORD};
static _Atomic uint32_t n_fences = 1;

/* ---- a block's clocks ---- */

static size_t shared_cells(const sc_block *block)
{
    return block->shared_bytes / SC_WORD + 1;
}

bool sc__clocks_create(sc_block *block)
{
    sc_clocks *clocks = calloc(1, sizeof *clocks + block->n_warps * sizeof clocks->of[0]);
    if (!clocks)
        return false;
    block->check->clocks = clocks;
    clocks->shared = calloc(shared_cells(block), sizeof *clocks->shared);
    return clocks->shared != NULL;
}

void sc__clocks_start(sc_block *block)
{
    sc_clocks *clocks = block->check->clocks;
    memset(clocks->meetings, 0, sizeof clocks->meetings);
    memset(clocks->shared, 0, shared_cells(block) * sizeof *clocks->shared);
    memset(clocks->of, 0, block->n_warps * sizeof clocks->of[0]);
    for (unsigned i = 0; i < block->n_warps; i++)
        clocks->of[i].tick = 1;
}

void sc__clocks_free(sc_block *block)
{
    if (block->check->clocks)
        free(block->check->clocks->shared);
    free(block->check->clocks);
}

static void raise_to(uint32_t *value, uint32_t at_least)
{
    *value = *value > at_least ? *value : at_least;
}

/* ---- the words of memory ---- */

static atomic_flag stripes[SC_STRIPES]; /* each guards the cells of some pieces of global memory */

static atomic_flag *stripe_of(const char *at)
{
    return &stripes[((uintptr_t)at >> SC_STRIPE_BITS) % SC_STRIPES];
}

static void take(atomic_flag *stripe)
{
    while (atomic_flag_test_and_set_explicit(stripe, memory_order_acquire))
        sched_yield();
}

static void give(atomic_flag *stripe)
{
    if (stripe)
        atomic_flag_clear_explicit(stripe, memory_order_release);
}

/* The cell of the word at the address, its stripe taken and the one held before given back; NULL: out of
 * memory, it is not watched. Shared memory is its worker's own. */
static sc_cell *open_cell(const sc_warp *warp, const char *at, atomic_flag **held)
{
    const sc_block *block = warp->block;
    size_t offset = (size_t)(at - block->shared);
    if (offset < block->shared_bytes)
        return &block->check->clocks->shared[offset / SC_WORD];
    atomic_flag *stripe = stripe_of(at);
    if (stripe != *held) {
        give(*held);
        take(stripe);
        *held = stripe;
    }
    return (sc_cell *)sc__shadow_make(&cells, (uintptr_t)at & ~(uint64_t)(SC_WORD - 1));
}

void sc__race_forget(uint64_t start, size_t bytes)
{
    sc__shadow_clear(&cells, start, bytes);
}

/* ---- what comes before ---- */

static sc_clock *clock_of(const sc_warp *warp)
{
    return &warp->block->check->clocks->of[warp->index];
}

static void acquire_pending(const sc_warp *warp)
{
    sc_clock *clock = clock_of(warp);
    atomic_flag *held = NULL;
    for (unsigned i = 0; i < clock->n_pending; i++) {
        const sc_cell *cell = open_cell(warp, clock->pending[i], &held);
        if (cell)
            raise_to(&clock->acquired, cell->released);
    }
    give(held);
    clock->n_pending = 0;
}

static void publish(sc_clock *clock)
{
    clock->published = atomic_fetch_add(&n_fences, 1) + 1;
}

void sc__race_fence(sc_warp *warp)
{
    acquire_pending(warp);
    publish(clock_of(warp));
}

void sc__race_sync_lanes(sc_warp *warp, uint32_t lanes)
{
    sc_clock *clock = clock_of(warp);
    acquire_pending(warp);
    if ((warp->live & ~lanes) == 0) {
        clock->base = clock->tick++;
        return;
    }
    if (!clock->by_lane)
        memset(clock->lanes, 0, sizeof clock->lanes);
    clock->by_lane = true;
    uint32_t joined[SC_LANES] = {0};
    for (unsigned k = 0; k < SC_LANES; k++) {
        for (uint32_t left = lanes; left; left &= left - 1)
            raise_to(&joined[k], clock->lanes[__builtin_ctz(left)][k]);
        if (lanes >> k & 1)
            joined[k] = clock->tick;
    }
    for (uint32_t left = lanes; left; left &= left - 1)
        memcpy(clock->lanes[__builtin_ctz(left)], joined, sizeof joined);
    clock->tick++;
}

void sc__race_arrive(sc_warp *warp, unsigned barrier)
{
    sc_clock *clock = clock_of(warp);
    sc_meeting *meeting = &warp->block->check->clocks->meetings[barrier];
    acquire_pending(warp);
    for (unsigned i = 0; i < warp->block->n_warps; i++)
        raise_to(&meeting->known[i], i == warp->index ? clock->tick : clock->known[i]);
    raise_to(&meeting->published, clock->published);
    raise_to(&meeting->acquired, clock->acquired);
    clock->tick++;
}

void sc__race_release(sc_block *block, unsigned barrier, uint32_t waiting)
{
    sc_meeting *meeting = &block->check->clocks->meetings[barrier];
    for (; waiting; waiting &= waiting - 1) {
        sc_clock *clock = &block->check->clocks->of[__builtin_ctz(waiting)];
        for (unsigned i = 0; i < block->n_warps; i++)
            raise_to(&clock->known[i], meeting->known[i]);
        raise_to(&clock->published, meeting->published);
        raise_to(&clock->acquired, meeting->acquired);
        clock->base = clock->tick++;
    }
    *meeting = (sc_meeting){0};
}

static bool of_this_launch(const sc_warp *warp, const sc_mark *mark)
{
    const sc_job *job = warp->block->job;
    return mark->serial && (uint32_t)(mark->serial - job->first_serial) < job->n_blocks;
}

static bool comes_before(const sc_mark *mark, const sc_warp *warp, unsigned lane)
{
    const sc_clock *clock = clock_of(warp);
    if (!of_this_launch(warp, mark) || mark->time < clock->acquired)
        return true;
    if (mark->serial != warp->block->check->serial)
        return false;
    if (mark->warp != warp->index)
        return mark->tick <= clock->known[mark->warp];
    return mark->lane == lane || mark->tick <= clock->base ||
           (clock->by_lane && mark->tick <= clock->lanes[lane][mark->lane]);
}

/* ---- races ---- */

static void report(const sc_seen *seen, const sc_mark *mine, const sc_mark *other, bool other_wrote,
                   const char *at)
{
    const sc_warp *warp = seen->warp;
    if (!sc__is_first(SC_CHECK_RACE, warp->kernel, seen->line))
        return;
    const sc_job *job = warp->block->job;
    const unsigned *grid = job->launch->grid, *size = job->launch->block;
    uint32_t linear = other->serial - job->first_serial, thread = other->warp * SC_LANES + other->lane;
    const char *why = other->serial != mine->serial ? "no atomic access and fence orders the two blocks"
                      : other->warp != mine->warp   ? "no barrier between them"
                                                    : "no __syncwarp() between them";
    char where[300], source[300], detail[600];
    sc__where(warp, at, where, sizeof where);
    sc__source_of(warp->kernel, other->line, source, sizeof source);
    kr__format(detail, sizeof detail,
               "after the %s at PTX line %u%s by block (%u,%u,%u), thread (%u,%u,%u): %s",
               other_wrote ? "write" : "read", other->line, source, linear % grid[0],
               linear / grid[0] % grid[1], linear / grid[0] / grid[1], thread % size[0],
               thread / size[0] % size[1], thread / size[0] / size[1], why);
    sc__tell(SC_CHECK_RACE, warp, mine->lane, seen->line, detail, "race: %s of %u bytes at %s",
             seen->touch == SC_TOUCH_READ ? "read" : "write", seen->bytes, where);
}

/* Would this store leave the word as the other one did? `at`: the word's first byte that is stored. */
static bool same_value(const sc_seen *seen, unsigned lane, const sc_mark *other, const char *at, size_t bytes)
{
    const sc_warp *warp = seen->warp;
    if (!seen->values)
        return false;
    const uint8_t *mine = seen->values[lane] + (at - warp->pointers[lane]);
    size_t place = (size_t)(at - warp->pointers[other->lane]);
    bool at_once = other->serial == warp->block->check->serial && other->warp == warp->index &&
                   other->tick == clock_of(warp)->tick && other->line == seen->line &&
                   place + bytes <= seen->bytes;
    return memcmp(mine, at_once ? (const char *)seen->values[other->lane] + place : at, bytes) == 0;
}

static bool conflicts(const sc_seen *seen, const sc_mark *mine, const sc_mark *other)
{
    return (other->bytes & mine->bytes) && !(other->strong && seen->strong) &&
           !comes_before(other, seen->warp, mine->lane);
}

static bool same_thread(const sc_mark *a, const sc_mark *b)
{
    return a->serial == b->serial && a->warp == b->warp && a->lane == b->lane;
}

/* A thread's marks of one tick and kind become one. */
static void put(sc_mark *place, const sc_mark *mine)
{
    uint8_t before = same_thread(place, mine) && place->tick == mine->tick && place->strong == mine->strong
                         ? place->bytes
                         : 0;
    *place = *mine;
    place->bytes |= before;
}

/* Where this read is kept: in the place of one it makes needless, else of one of its warp. */
static sc_mark *place_of_read(sc_cell *cell, const sc_seen *seen, const sc_mark *mine)
{
    for (unsigned i = 0; i < 2; i++)
        if (same_thread(&cell->read[i], mine))
            return &cell->read[i];
    for (unsigned i = 0; i < 2; i++)
        if (comes_before(&cell->read[i], seen->warp, mine->lane))
            return &cell->read[i];
    return &cell->read[cell->read[0].serial != mine->serial || cell->read[0].warp != mine->warp];
}

static void touch_cell(sc_cell *cell, const sc_seen *seen, const sc_mark *mine, const char *at, size_t bytes)
{
    bool writes = seen->touch & SC_TOUCH_WRITE;
    if (conflicts(seen, mine, &cell->write) &&
        !(seen->touch == SC_TOUCH_WRITE && same_value(seen, mine->lane, &cell->write, at, bytes)))
        report(seen, mine, &cell->write, true, at);
    for (unsigned i = 0; writes && i < 2; i++)
        if (conflicts(seen, mine, &cell->read[i]))
            report(seen, mine, &cell->read[i], false, at);
    put(writes ? &cell->write : place_of_read(cell, seen, mine), mine);
    if (writes && seen->strong)
        raise_to(&cell->released, clock_of(seen->warp)->published);
}

void sc__race_access(const sc_seen *seen, uint32_t lanes)
{
    const sc_warp *warp = seen->warp;
    sc_clock *clock = clock_of(warp);
    acquire_pending(warp);
    if (seen->releases && seen->touch & SC_TOUCH_WRITE)
        publish(clock);
    sc_mark mine = {.serial = warp->block->check->serial,
                    .tick = clock->tick,
                    .time = atomic_load(&n_fences),
                    .line = seen->line,
                    .warp = (uint8_t)warp->index,
                    .strong = seen->strong};
    atomic_flag *held = NULL;
    for (uint32_t left = lanes; left; left &= left - 1) {
        const unsigned lane = (unsigned)__builtin_ctz(left);
        const char *at = warp->pointers[lane], *const end = at + seen->bytes;
        mine.lane = (uint8_t)lane;
        for (size_t n; at < end; at += n) {
            size_t within = (uintptr_t)at % SC_WORD;
            n = SC_WORD - within < (size_t)(end - at) ? SC_WORD - within : (size_t)(end - at);
            mine.bytes = (uint8_t)(((1u << n) - 1) << within);
            sc_cell *cell = open_cell(warp, at, &held);
            if (cell)
                touch_cell(cell, seen, &mine, at, n);
        }
    }
    give(held);
    for (uint32_t left = seen->strong && seen->touch & SC_TOUCH_READ ? lanes : 0; left; left &= left - 1)
        clock->pending[clock->n_pending++] = warp->pointers[__builtin_ctz(left)];
}
