/* SPDX-License-Identifier: Apache-2.0 */
#include "softcuda/vm/fp.h"
#include "softcuda/vm/machine.h"

#include <stdlib.h>
#include <string.h>

/*
 * A warp is a set of groups, each of lanes at one place of one call. The deepest call runs first, in it the
 * lowest place: groups that part meet again at the first place both reach. Places are laid out in reverse
 * post-order (slots.c), so that is where the branches join.
 *
 * A group that spins on what another lane of its warp must do would then run forever. So when a warp's
 * quantum is over, the next group in turn is pinned: it alone runs for one quantum.
 */

static unsigned count(uint32_t lanes)
{
    return SC_LIKELY(lanes == SC_ALL_LANES) ? SC_LANES : (unsigned)__builtin_popcount(lanes);
}

/* Books the straight run that ends before `end`. */
static void account(sc_warp *warp, const sc_code *end)
{
    uint32_t n = end->ordinal - warp->from->ordinal;
    warp->quantum -= n;
    warp->warp_instructions += n;
    warp->thread_instructions += (uint64_t)n * count(warp->mask);
}

static void drop_group(sc_warp *warp, unsigned index)
{
    warp->groups[index] = warp->groups[--warp->n_groups];
    if (warp->pinned && warp->current == warp->n_groups)
        warp->current = index;
}

/* The sync group can go on when every live lane it waits for is in it. */
static void wake_sync(sc_warp *warp, sc_group *group)
{
    if (group->state == SC_GROUP_SYNC && (group->members & warp->live & ~group->mask) == 0)
        group->state = SC_GROUP_READY;
}

/* Those that wait there for the same lanes are one group too; who comes later asks first for whom it waits. A
 * barrier's waiters stay as they arrived. */
static bool belong_together(const sc_group *a, const sc_group *b)
{
    return a->pc == b->pc && a->frame == b->frame && a->state == b->state &&
           (a->state == SC_GROUP_READY || (a->state == SC_GROUP_SYNC && a->members == b->members));
}

/* Groups at the same place of the same call become one. */
static void merge(sc_warp *warp)
{
    for (unsigned i = 0; i + 1 < warp->n_groups; i++) {
        sc_group *a = &warp->groups[i];
        for (unsigned k = i + 1; k < warp->n_groups;) {
            const sc_group *b = &warp->groups[k];
            if (!belong_together(a, b)) {
                k++;
                continue;
            }
            a->mask |= b->mask;
            if (warp->pinned && warp->current == k)
                warp->current = i;
            drop_group(warp, k);
        }
    }
    for (unsigned i = 0; i < warp->n_groups; i++)
        wake_sync(warp, &warp->groups[i]);
}

static bool runs_before(const sc_group *a, const sc_group *b)
{
    if (a->frame->depth != b->frame->depth)
        return a->frame->depth > b->frame->depth;
    return a->pc < b->pc;
}

static void load_group(sc_warp *warp, unsigned index)
{
    sc_group *group = &warp->groups[index];
    warp->current = index;
    warp->mask = group->mask;
    warp->frame = group->frame;
    warp->bank[SC_BANK_FRAME] = group->frame->registers;
    warp->whole = warp->n_groups == 1;
    warp->from = group->pc;
}

/* Lanes at different copies of a warp-level rendezvous: all of them have arrived, so bar.warp.sync is over.
 */
static bool release_rendezvous(sc_warp *warp)
{
    for (unsigned i = 0; i < warp->n_groups; i++) {
        sc_group *group = &warp->groups[i];
        if (group->state != SC_GROUP_SYNC)
            continue;
        uint32_t there = 0;
        for (unsigned k = 0; k < warp->n_groups; k++)
            if (warp->groups[k].state == SC_GROUP_SYNC && warp->groups[k].members == group->members)
                there |= warp->groups[k].mask;
        if ((group->members & warp->live & ~there) != 0)
            continue;
        uint32_t members = group->members;
        for (unsigned k = 0; k < warp->n_groups; k++)
            if (warp->groups[k].state == SC_GROUP_SYNC && warp->groups[k].members == members) {
                warp->groups[k].state = SC_GROUP_READY;
                warp->groups[k].members = 0;
                warp->met |= warp->groups[k].mask;
            }
        return true;
    }
    return false;
}

/* The next group to run, or NULL: the warp stops. */
static const sc_code *choose(sc_warp *warp)
{
    merge(warp);
    if (warp->n_groups == 0) {
        warp->state = SC_WARP_DONE;
        return NULL;
    }
    if (warp->quantum <= 0) {
        warp->state = SC_WARP_READY;
        return NULL;
    }
    if (warp->pinned && warp->groups[warp->current].state == SC_GROUP_READY) {
        load_group(warp, warp->current);
        return warp->groups[warp->current].pc;
    }
    warp->pinned = false;
    do {
        unsigned best = SC_LANES;
        for (unsigned i = 0; i < warp->n_groups; i++)
            if (warp->groups[i].state == SC_GROUP_READY &&
                (best == SC_LANES || runs_before(&warp->groups[i], &warp->groups[best])))
                best = i;
        if (best != SC_LANES) {
            load_group(warp, best);
            return warp->groups[best].pc;
        }
    } while (release_rendezvous(warp));
    warp->state = SC_WARP_BLOCKED;
    return NULL;
}

const sc_code *sc__yield(sc_warp *warp, const sc_code *in)
{
    account(warp, in + 1);
    warp->groups[warp->current].pc = in + 1;
    warp->quantum = 0;
    warp->slept = true;
    return choose(warp);
}

const sc_code *sc__jump(sc_warp *warp, const sc_code *in, const sc_code *to)
{
    account(warp, in + 1);
    warp->from = to;
    if (SC_LIKELY(warp->whole && warp->quantum > 0))
        return to;
    warp->groups[warp->current].pc = to;
    return choose(warp);
}

const sc_code *sc__join(sc_warp *warp, const sc_code *in)
{
    if (warp->whole)
        return in + 1;
    return sc__jump(warp, in, in + 1);
}

const sc_code *sc__branch(sc_warp *warp, const sc_code *in, const sc_code *to, uint32_t taken)
{
    taken &= warp->mask;
    if (taken == warp->mask)
        return sc__jump(warp, in, to);
    if (taken == 0)
        return sc__jump(warp, in, in + 1);
    account(warp, in + 1);
    sc_group *group = &warp->groups[warp->current];
    group->mask &= ~taken;
    group->pc = in + 1;
    warp->groups[warp->n_groups] = (sc_group){.pc = to, .frame = group->frame, .mask = taken};
    warp->n_groups++;
    return choose(warp);
}

const sc_code *sc__branch_indexed(sc_warp *warp, const sc_code *in, const uint32_t *index,
                                  const sc_code *const *targets, uint32_t n_targets)
{
    account(warp, in + 1);
    sc_frame *frame = warp->frame;
    unsigned at = warp->current; /* the first target's lanes stay in the running group */
    for (uint32_t left = warp->mask; left;) {
        uint32_t to = index[__builtin_ctz(left)], same = 0;
        for (uint32_t lanes = left; lanes; lanes &= lanes - 1)
            if (index[__builtin_ctz(lanes)] == to)
                same |= lanes & -lanes;
        if (to >= n_targets)
            return sc__fault(warp, in, SC_FAULT_ILLEGAL_INSTRUCTION, (unsigned)__builtin_ctz(left), to,
                             "brx.idx with index %u, but there are %u targets", to, n_targets);
        left &= ~same;
        warp->groups[at] = (sc_group){.pc = targets[to], .frame = frame, .mask = same};
        if (left)
            at = warp->n_groups++;
    }
    return choose(warp);
}

void sc__split(sc_warp *warp, const sc_code *in, uint32_t lanes)
{
    account(warp, in);
    warp->from = in;
    sc_group *group = &warp->groups[warp->current], *other = &warp->groups[warp->n_groups++];
    *other = (sc_group){.pc = in, .frame = group->frame, .mask = group->mask & ~lanes};
    group->mask = warp->mask = lanes;
    warp->whole = 0;
}

/* ---- waiting ---- */

const sc_code *sc__wait_for(sc_warp *warp, const sc_code *in, uint32_t members)
{
    sc_group *group = &warp->groups[warp->current];
    account(warp, in);
    group->pc = in;
    group->state = SC_GROUP_SYNC;
    group->members = members;
    return choose(warp);
}

/* What bar.red gives the group's threads; the barrier is the instruction before the place it goes on at. */
static void write_result(const sc_group *group, const uint32_t results[3])
{
    const sc_code *in = group->pc - 1;
    char *to = group->frame->registers + (in->d & ~3u);
    switch ((sc_barrier_kind)in->imm) {
    case SC_BARRIER_SYNC:
    case SC_BARRIER_ARRIVE:
        break;
    case SC_BARRIER_AND:
    case SC_BARRIER_OR: {
        uint32_t value = results[in->imm == SC_BARRIER_OR] ? SC_ALL_LANES : 0, *predicate = (uint32_t *)to;
        *predicate = (*predicate & ~group->mask) | (value & group->mask);
        break;
    }
    case SC_BARRIER_POPC:
        for (uint32_t lanes = group->mask; lanes; lanes &= lanes - 1)
            ((uint32_t *)to)[__builtin_ctz(lanes)] = results[2];
        break;
    }
}

/* Every thread that has arrived goes on. */
static void release(sc_block *block, unsigned index)
{
    sc_barrier *barrier = &block->barriers[index];
    uint32_t results[3] = {barrier->votes_count == barrier->arrived, barrier->votes_count != 0,
                           barrier->votes_count};
    for (unsigned i = 0; i < block->n_warps; i++) {
        sc_warp *warp = &block->warps[i];
        for (unsigned k = 0; k < warp->n_groups; k++) {
            sc_group *group = &warp->groups[k];
            if (group->state != SC_GROUP_BARRIER || group->barrier != index)
                continue;
            group->state = SC_GROUP_READY;
            write_result(group, results);
            if (warp->state == SC_WARP_BLOCKED)
                warp->state = SC_WARP_READY;
        }
    }
    *barrier = (sc_barrier){0};
}

static void check_barrier(sc_block *block, unsigned index)
{
    const sc_barrier *barrier = &block->barriers[index];
    unsigned expected = barrier->expected ? barrier->expected : block->live_threads;
    if (barrier->arrived && barrier->arrived >= expected)
        release(block, index);
}

const sc_code *sc__barrier(sc_warp *warp, const sc_code *in, unsigned index, unsigned expected,
                           uint32_t votes)
{
    sc_barrier *barrier = &warp->block->barriers[index];
    sc_group *group = &warp->groups[warp->current];
    account(warp, in + 1);
    group->pc = in + 1;
    if (in->imm != SC_BARRIER_ARRIVE) {
        group->state = SC_GROUP_BARRIER;
        group->barrier = index;
    }
    barrier->arrived += count(warp->mask);
    barrier->votes_count += count(votes & warp->mask);
    barrier->expected = expected;
    check_barrier(warp->block, index);
    return choose(warp);
}

/* ---- calls ---- */

static sc_frame *take_frame(sc_warp *warp, size_t bytes)
{
    sc_frame **at = &warp->free_frames;
    while (*at && (*at)->capacity < bytes)
        at = &(*at)->next_free;
    sc_frame *frame = *at;
    if (frame) {
        *at = frame->next_free;
        return frame;
    }
    size_t header = (sizeof *frame + 63) / 64 * 64;
    frame = aligned_alloc(64, header + (bytes + 63) / 64 * 64);
    if (!frame)
        return NULL;
    frame->registers = (char *)frame + header;
    frame->capacity = bytes;
    memset(frame->registers, 0, bytes);
    return frame;
}

static void give_frame(sc_warp *warp, sc_frame *frame)
{
    if (frame == &warp->root)
        return;
    frame->next_free = warp->free_frames;
    warp->free_frames = frame;
}

/* The lanes leave every call they are in. */
static void leave_frames(sc_warp *warp, sc_frame *frame, uint32_t lanes)
{
    for (sc_frame *caller; frame; frame = caller) {
        caller = frame->caller;
        frame->lanes &= ~lanes;
        if (frame->lanes == 0)
            give_frame(warp, frame);
    }
}

/* Ends the groups of a block that was given up. */
static void abandon(sc_warp *warp)
{
    for (; warp->n_groups; warp->n_groups--)
        leave_frames(warp, warp->groups[warp->n_groups - 1].frame, warp->groups[warp->n_groups - 1].mask);
}

void sc__free_frames(sc_warp *warp)
{
    abandon(warp);
    for (sc_frame *frame = warp->free_frames, *next; frame; frame = next) {
        next = frame->next_free;
        free(frame);
    }
    warp->free_frames = NULL;
}

static void copy_lanes(sc_warp *warp, uint32_t to, uint32_t from, uint32_t bytes)
{
    for (uint32_t lanes = warp->mask; lanes; lanes &= lanes - 1) {
        char *local = warp->local + (size_t)__builtin_ctz(lanes) * warp->stack_bytes;
        memcpy(local + to, local + from, bytes);
    }
}

static uint32_t round16(uint32_t bytes)
{
    return (bytes + 15) / 16 * 16;
}

bool sc__takes(const ptx_function *callee, const sc_call *call)
{
    bool takes =
        !callee->is_entry && callee->n_params == call->n_arguments && callee->n_returns >= call->n_returns;
    for (uint32_t i = 0; takes && i < call->n_arguments; i++)
        takes = callee->params[i]->bytes >= call->argument_bytes[i];
    for (uint32_t i = 0; takes && i < call->n_returns; i++)
        takes = callee->returns[i]->bytes >= call->result_bytes[i];
    return takes;
}

const sc_code *sc__call(sc_warp *warp, const sc_code *in, const sc_function *callee, const sc_call *call)
{
    sc_frame *caller = warp->frame;
    uint32_t allocated = 0;
    for (uint32_t lanes = warp->mask; lanes; lanes &= lanes - 1) {
        const uint32_t bytes = caller->allocated[__builtin_ctz(lanes)];
        allocated = bytes > allocated ? bytes : allocated;
    }
    uint32_t base = caller->local_base + round16(caller->function->local_bytes + allocated);
    const uint32_t most_depth = 4000 + warp->stack_bytes / 16; /* frames hold host memory too */
    if ((uint64_t)base + callee->local_bytes > warp->stack_bytes || caller->depth > most_depth)
        return sc__fault(warp, in, SC_FAULT_STACK, (unsigned)__builtin_ctz(warp->mask), 0,
                         "call of %s: the stack of %u bytes a thread is used up, %u calls deep",
                         callee->ptx->name, warp->stack_bytes, caller->depth);
    sc_frame *frame = take_frame(warp, callee->frame_bytes);
    if (!frame)
        return sc__fault(warp, in, SC_FAULT_NO_MEMORY, 0, 0, "call of %s: out of host memory",
                         callee->ptx->name);
    frame->caller = caller;
    frame->function = callee;
    frame->return_to = in + 1;
    frame->call = call;
    frame->lanes = warp->mask;
    frame->depth = caller->depth + 1;
    frame->local_base = base;
    memset(frame->allocated, 0, sizeof frame->allocated);
    for (uint32_t i = 0; i < call->n_arguments; i++)
        copy_lanes(warp, base + callee->param_offset[i], caller->local_base + call->argument[i],
                   call->argument_bytes[i]);
    account(warp, in + 1);
    sc_group *group = &warp->groups[warp->current];
    group->frame = frame;
    group->pc = callee->code;
    return choose(warp);
}

const sc_code *sc__return(sc_warp *warp, const sc_code *in)
{
    sc_frame *frame = warp->frame;
    if (!frame->caller)
        return sc__exit(warp, in);
    const sc_call *call = frame->call;
    for (uint32_t i = 0; i < call->n_returns; i++)
        copy_lanes(warp, frame->caller->local_base + call->result[i],
                   frame->local_base + frame->function->return_offset[i], call->result_bytes[i]);
    account(warp, in + 1);
    sc_group *group = &warp->groups[warp->current];
    group->frame = frame->caller;
    group->pc = frame->return_to;
    frame->lanes &= ~warp->mask;
    if (frame->lanes == 0)
        give_frame(warp, frame);
    return choose(warp);
}

const sc_code *sc__exit(sc_warp *warp, const sc_code *in)
{
    sc_block *block = warp->block;
    account(warp, in + 1);
    warp->live &= ~warp->mask;
    block->live_threads -= count(warp->mask);
    leave_frames(warp, warp->frame, warp->mask);
    warp->pinned = false;
    drop_group(warp, warp->current);
    if (block->live_threads)
        for (unsigned i = 0; i < SC_BARRIERS; i++)
            check_barrier(block, i);
    return choose(warp);
}

/* ---- running ---- */

void sc__warp_start(sc_warp *warp, uint32_t lanes)
{
    const sc_function *entry = warp->kernel->functions[0];
    abandon(warp);
    warp->live = lanes;
    warp->carry = warp->met = 0;
    warp->root.function = entry;
    warp->root.lanes = lanes;
    warp->n_groups = 1;
    warp->groups[0] = (sc_group){.pc = entry->code, .frame = &warp->root, .mask = lanes};
    warp->pinned = false;
    warp->next_pin = 0;
    warp->state = SC_WARP_READY;
}

/* Pins the next ready group in turn, every second quantum. */
static void rotate(sc_warp *warp)
{
    bool was_pinned = warp->pinned;
    warp->pinned = false;
    if (was_pinned || warp->n_groups < 2)
        return;
    for (unsigned i = 0; i < warp->n_groups; i++) {
        unsigned index = warp->next_pin++ % warp->n_groups;
        if (warp->groups[index].state == SC_GROUP_READY) {
            warp->pinned = true;
            warp->current = index;
            return;
        }
    }
}

void sc__warp_run(sc_warp *warp, int64_t quantum)
{
    enum { SC_DIVERGED_QUANTUM = 5000, SC_PINNED_QUANTUM = 200 };
    rotate(warp);
    int64_t most = warp->pinned ? SC_PINNED_QUANTUM : warp->n_groups > 1 ? SC_DIVERGED_QUANTUM : quantum;
    warp->quantum = quantum < most ? quantum : most;
    const sc_code *in = choose(warp);
    while (in)
        in = in->handler[warp->whole](warp, in);
    sc_set_csr(&warp->csr, SC_CSR_RN);
}
