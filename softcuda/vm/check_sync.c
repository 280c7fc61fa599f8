/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Barriers and the rendezvous of a warp, observed before the machine does them: for racecheck, what they
 * order; for synccheck, whether those who should take part do.
 *
 * Whether the whole of a warp came to a barrier shows when it is over: its lanes may come in several groups,
 * which is no fault of the program.
 */
#include "softcuda/vm/check.h"

#include <stdlib.h>
#include <string.h>

#define EACH_LANE(lane, mask)                                                                \
    for (uint32_t left_ = (mask), lane; left_ && (lane = (uint32_t)__builtin_ctz(left_), 1); \
         left_ &= left_ - 1)

/* A warp's arrivals at a barrier that is not yet over. */
typedef struct sc_arrival {
    uint32_t lanes, line;
    bool elsewhere; /* some came through another instruction */
    bool again;     /* some came twice */
    bool waits;
} sc_arrival;

struct sc_arrivals {
    uint32_t warps[SC_BARRIERS]; /* that have come, a bit each */
    sc_arrival of[][SC_BARRIERS];
};

bool sc__arrivals_create(sc_block *block)
{
    block->check->arrivals =
        calloc(1, sizeof *block->check->arrivals + block->n_warps * sizeof block->check->arrivals->of[0]);
    return block->check->arrivals != NULL;
}

void sc__arrivals_start(sc_block *block)
{
    sc_arrivals *arrivals = block->check->arrivals;
    memset(arrivals, 0, sizeof *arrivals + block->n_warps * sizeof arrivals->of[0]);
}

void sc__arrivals_free(sc_block *block)
{
    free(block->check->arrivals);
}

static const uint32_t *words(const sc_warp *warp, sc_slot slot)
{
    return (const uint32_t *)(warp->bank[slot & 1] + (slot & ~3u));
}

static unsigned first_of(uint32_t lanes)
{
    return (unsigned)__builtin_ctz(lanes);
}

static unsigned count(uint32_t lanes)
{
    return (unsigned)__builtin_popcount(lanes);
}

static uint32_t lanes_at_start(const sc_warp *warp)
{
    unsigned n = warp->block->n_threads - warp->index * SC_LANES;
    return n >= SC_LANES ? SC_ALL_LANES : (1u << n) - 1;
}

static void KR_PRINTF(4, 5) report(const sc_warp *warp, unsigned lane, uint32_t line, const char *format, ...)
{
    char text[400];
    va_list args;
    if (!sc__is_first(SC_CHECK_SYNC, warp->kernel, line))
        return;
    va_start(args, format);
    kr__format_list(text, sizeof text, format, args);
    va_end(args);
    sc__tell(SC_CHECK_SYNC, warp, lane, line, NULL, "%s", text);
}

/* ---- barriers ---- */

/* The whole of the warp must execute an .aligned barrier, and the same one. */
static void check_whole(const sc_warp *warp, const sc_arrival *arrival, unsigned barrier)
{
    const ptx_instr *instr = sc__instr_at(warp->kernel, arrival->line, PTX_OP_BAR);
    const uint32_t whole = lanes_at_start(warp);
    unsigned lane = first_of(arrival->lanes);
    if (arrival->again)
        report(warp, lane, arrival->line,
               "threads of warp %u came to barrier %u again before those it waits for", warp->index, barrier);
    else if (!instr || !(instr->flags & PTX_ALIGNED) || (arrival->lanes == whole && !arrival->elsewhere))
        return;
    else if (arrival->elsewhere)
        report(warp, lane, arrival->line,
               "threads of warp %u came to barrier %u through different instructions", warp->index, barrier);
    else
        report(warp, lane, arrival->line,
               "barrier %u by %u of the %u threads of warp %u (mask 0x%08x); %u of the others have exited",
               barrier, count(arrival->lanes), count(whole), warp->index, arrival->lanes,
               count(whole & ~warp->live));
}

/* Barriers that are over since they were last looked at. */
static void settle(sc_block *block)
{
    sc_arrivals *arrivals = block->check->arrivals;
    for (unsigned i = 0; i < SC_BARRIERS; i++) {
        if (!arrivals->warps[i] || block->barriers[i].arrived)
            continue;
        uint32_t waiting = 0;
        EACH_LANE(w, arrivals->warps[i])
        {
            sc_arrival *arrival = &arrivals->of[w][i];
            if (sc__checking(SC_CHECK_SYNC))
                check_whole(&block->warps[w], arrival, i);
            waiting |= (uint32_t)arrival->waits << w;
            *arrival = (sc_arrival){0};
        }
        arrivals->warps[i] = 0;
        if (block->check->clocks)
            sc__race_release(block, i, waiting);
    }
}

static void check_count(const sc_warp *warp, const sc_code *in, unsigned index, uint32_t expected)
{
    const sc_barrier *barrier = &warp->block->barriers[sc_barrier_of(index)];
    const unsigned lane = first_of(warp->mask);
    if (index >= SC_BARRIERS)
        report(warp, lane, in->line, "barrier %u: a block has %u of them, and this is taken for number %u",
               index, SC_BARRIERS, sc_barrier_of(index));
    else if (in->b != SC_NO_SLOT && (expected == 0 || expected % SC_LANES))
        report(warp, lane, in->line, "barrier %u for %u threads, which is no multiple of a warp's 32", index,
               expected);
    else if (barrier->arrived && barrier->expected != expected)
        report(warp, lane, in->line, "barrier %u for %u threads (0: all), where %u have come to it for %u",
               index, expected, barrier->arrived, barrier->expected);
    EACH_LANE(other, warp->mask)
    if (words(warp, in->a)[other] != index ||
        (in->b != SC_NO_SLOT && words(warp, in->b)[other] != expected)) {
        report(warp, other, in->line, "threads of one warp name different barriers or numbers of threads");
        break;
    }
}

static const sc_code *run_barrier(sc_warp *warp, const sc_code *in)
{
    sc_block *block = warp->block;
    const unsigned lane = first_of(warp->mask), number = words(warp, in->a)[lane],
                   index = sc_barrier_of(number);
    sc_arrival *arrival = &block->check->arrivals->of[warp->index][index];
    if (sc__checking(SC_CHECK_SYNC))
        check_count(warp, in, number, in->b == SC_NO_SLOT ? 0 : words(warp, in->b)[lane]);
    arrival->again |= (arrival->lanes & warp->mask) != 0;
    arrival->elsewhere |= arrival->lanes && arrival->line != in->line;
    arrival->lanes |= warp->mask;
    arrival->line = in->line;
    arrival->waits |= in->imm != SC_BARRIER_ARRIVE;
    block->check->arrivals->warps[index] |= 1u << warp->index;
    if (block->check->clocks)
        sc__race_arrive(warp, index);
    const sc_code *next = sc__run_barrier(warp, in);
    settle(block);
    return next;
}

/* The last thread that a barrier waited for may leave. */
static const sc_code *run_exit(sc_warp *warp, const sc_code *in)
{
    const sc_code *next = sc__run_exit(warp, in);
    settle(warp->block);
    return next;
}

static const sc_code *run_return(sc_warp *warp, const sc_code *in)
{
    const sc_code *next = sc__run_return(warp, in);
    settle(warp->block);
    return next;
}

/* ---- the warp together ---- */

/* Those of the lanes that have this mask. */
static uint32_t of_mask(const uint32_t *members, uint32_t lanes, uint32_t mask)
{
    uint32_t same = 0;
    EACH_LANE(lane, lanes)
    same |= (uint32_t)(members[lane] == mask) << lane;
    return same;
}

static void check_members(const sc_warp *warp, const sc_code *in, const uint32_t *members)
{
    EACH_LANE(lane, warp->mask)
    {
        if (!(members[lane] >> lane & 1)) {
            report(warp, lane, in->line, "lane %u takes part under the mask 0x%08x, which does not name it",
                   lane, members[lane]);
            return;
        }
        uint32_t others = members[lane] & warp->mask & ~of_mask(members, warp->mask, members[lane]);
        if (others) {
            unsigned other = first_of(others);
            report(warp, lane, in->line, "lane %u names lane %u in its mask 0x%08x, but that one's is 0x%08x",
                   lane, other, members[lane], members[other]);
            return;
        }
    }
}

/* What flow.c's handlers do: wait until the first lane's members are here. */
static bool over(const sc_warp *warp, uint32_t members)
{
    return (members & warp->live & ~warp->mask) == 0 || (warp->met & warp->mask) == warp->mask;
}

/* `exchanges`: lanes give each other values, so they must be at the same instruction. */
static bool observe(sc_warp *warp, const sc_code *in, bool exchanges)
{
    static const uint32_t no_mask[SC_LANES] = {0};
    const uint32_t *members = in->f == SC_NO_SLOT ? no_mask : words(warp, in->f);
    const unsigned first = first_of(warp->mask);
    const uint32_t lanes = in->f == SC_NO_SLOT ? warp->mask : members[first];
    if (sc__checking(SC_CHECK_SYNC) && in->f != SC_NO_SLOT)
        check_members(warp, in, members);
    if (!over(warp, lanes))
        return false;
    if (sc__checking(SC_CHECK_SYNC) && exchanges && lanes & warp->live & ~warp->mask)
        report(warp, first, in->line,
               "the lanes of the mask 0x%08x are at different instructions; here are those of 0x%08x", lanes,
               warp->mask);
    if (warp->block->check->clocks)
        for (uint32_t left = warp->mask, these; left; left &= ~these) {
            these = in->f == SC_NO_SLOT ? left : members[first_of(left)] | (left & -left);
            sc__race_sync_lanes(warp, these & warp->live);
        }
    return true;
}

/* The lane a shuffle reads from: its own where the wanted one is outside its segment (PTX ISA, shfl.sync). */
static unsigned source_of(ptx_sub mode, unsigned lane, uint32_t b, uint32_t c)
{
    const uint32_t segment = c >> 8 & 31, clamp = c & 31, by = b & 31;
    const int here = (int)lane, limit = (int)((lane & segment) | (clamp & ~segment));
    const int from = mode == PTX_SUB_UP     ? here - (int)by
                     : mode == PTX_SUB_DOWN ? here + (int)by
                     : mode == PTX_SUB_BFLY ? here ^ (int)by
                                            : (int)((lane & segment) | (by & ~segment));
    return (mode == PTX_SUB_UP ? from >= limit : from <= limit) ? (unsigned)from : lane;
}

static const sc_code *run_shuffle(sc_warp *warp, const sc_code *in)
{
    if (observe(warp, in, true) && sc__checking(SC_CHECK_SYNC))
        EACH_LANE(lane, warp->mask)
        {
            unsigned from =
                source_of((ptx_sub)in->imm, lane, words(warp, in->b)[lane], words(warp, in->c)[lane]);
            if (warp->mask >> from & 1)
                continue;
            report(warp, lane, in->line,
                   "lane %u reads from lane %u, which takes no part (here are the lanes of 0x%08x)", lane,
                   from, warp->mask);
            break;
        }
    return sc__run_shuffle(warp, in);
}

#define OBSERVED(name, exchanges)                                      \
    static const sc_code *run_##name(sc_warp *warp, const sc_code *in) \
    {                                                                  \
        observe(warp, in, exchanges);                                  \
        return sc__run_##name(warp, in);                               \
    }
OBSERVED(warp_sync, false)
OBSERVED(vote, true)
OBSERVED(match, true)
OBSERVED(reduce, true)
OBSERVED(elect, true)

static const sc_code *run_fence(sc_warp *warp, const sc_code *in)
{
    if (warp->block->check->clocks)
        sc__race_fence(warp);
    return sc__run_fence(warp, in);
}

/* ---- their place ---- */

void sc__check_code(sc_code *code, size_t n)
{
    static const struct {
        sc_handler *plain, *observing;
    } places[] = {
        {sc__run_barrier, run_barrier}, {sc__run_exit, run_exit},   {sc__run_return, run_return},
        {sc__run_shuffle, run_shuffle}, {sc__run_vote, run_vote},   {sc__run_match, run_match},
        {sc__run_reduce, run_reduce},   {sc__run_elect, run_elect}, {sc__run_warp_sync, run_warp_sync},
        {sc__run_fence, run_fence},
    };
    for (size_t i = 0; i < n && sc__checking(SC_CHECK_RACE | SC_CHECK_SYNC); i++)
        for (size_t k = 0; k < KR_COUNT(places); k++)
            if (code[i].handler[0] == places[k].plain)
                code[i].handler[0] = code[i].handler[1] = places[k].observing;
}
