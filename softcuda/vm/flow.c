/* SPDX-License-Identifier: Apache-2.0 */
/* Handlers of what is no work of a lane by itself: control flow, special registers, warp and block together.
 */
#include "softcuda/vm/alu.h"

#include <time.h>

#define HANDLER(name) const sc_code *sc__run_##name(sc_warp *warp, const sc_code *in)
#define EACH_LANE(lane, mask)                                                                \
    for (uint32_t left_ = (mask), lane; left_ && (lane = (uint32_t)__builtin_ctz(left_), 1); \
         left_ &= left_ - 1)

const sc_lane_bits sc__bit_of_lane = {
#define BITS4(i) 1ull << (i), 1ull << (i + 1), 1ull << (i + 2), 1ull << (i + 3)
#define BITS32 BITS4(0), BITS4(4), BITS4(8), BITS4(12), BITS4(16), BITS4(20), BITS4(24), BITS4(28)
    {BITS32},
    {BITS32},
};

static void *slot_at(const sc_warp *warp, sc_slot slot)
{
    return warp->bank[slot & 1] + (slot & ~3u);
}

/* The same value in every lane of the mask. */
static void fill(const sc_warp *warp, sc_slot slot, bool wide, uint64_t value)
{
    uint32_t *const words = slot_at(warp, slot);
    uint64_t *const doubles = slot_at(warp, slot);
    if (wide && warp->mask == SC_ALL_LANES) {
        for (unsigned i = 0; i < SC_LANES; i++)
            doubles[i] = value;
    } else if (wide) {
        EACH_LANE(lane, warp->mask) doubles[lane] = value;
    } else if (warp->mask == SC_ALL_LANES) {
        for (unsigned i = 0; i < SC_LANES; i++)
            words[i] = (uint32_t)value;
    } else {
        EACH_LANE(lane, warp->mask) words[lane] = (uint32_t)value;
    }
}

/* A word a lane, into the lanes of the mask. */
static void put_words(const sc_warp *warp, sc_slot slot, const uint32_t *from)
{
    uint32_t *const words = slot_at(warp, slot);
    if (warp->mask == SC_ALL_LANES) {
        memcpy(words, from, SC_LANES * sizeof *words);
    } else {
        EACH_LANE(lane, warp->mask) words[lane] = from[lane];
    }
}

static unsigned first_lane(const sc_warp *warp)
{
    return (unsigned)__builtin_ctz(warp->mask);
}

/* A 32-bit operand that must be the same in every lane. */
static uint32_t uniform(const sc_warp *warp, sc_slot slot)
{
    return ((const uint32_t *)slot_at(warp, slot))[first_lane(warp)];
}

/* ---- control flow ---- */

HANDLER(jump)
{
    return sc__jump(warp, in, in->more);
}

HANDLER(branch)
{
    return sc__branch(warp, in, in->more, sc_predicate(warp, in->a));
}

HANDLER(join)
{
    return sc__join(warp, in);
}

HANDLER(indexed)
{
    const sc_targets *targets = in->more;
    return sc__branch_indexed(warp, in, slot_at(warp, in->a), targets->to, targets->n);
}

HANDLER(return )
{
    return sc__return(warp, in);
}

HANDLER(exit)
{
    return sc__exit(warp, in);
}

HANDLER(trap)
{
    return sc__fault(warp, in, SC_FAULT_TRAP, first_lane(warp), 0, "trap");
}

HANDLER(nothing)
{
    (void)warp;
    return in + 1;
}

/* The next instruction for the lanes whose predicate holds. */
HANDLER(guard)
{
    const uint32_t mask = warp->mask, held = mask & sc_predicate(warp, in->a);
    if (held == 0)
        return in + 2;
    if (held == mask)
        return in[1].handler[warp->whole](warp, in + 1);
    warp->mask = held;
    const sc_code *next = in[1].handler[0](warp, in + 1);
    warp->mask = mask;
    return next;
}

static const sc_function *called(const sc_warp *warp, uint64_t address)
{
    if (SC_WINDOW_OF(address) != SC_WINDOW_CODE)
        return NULL;
    for (size_t i = 0; i < warp->kernel->n_functions; i++)
        if (warp->kernel->functions[i]->address == address)
            return warp->kernel->functions[i];
    return NULL;
}

HANDLER(call)
{
    const sc_call *call = in->more;
    if (call->callee)
        return sc__call(warp, in, call->callee, call);
    const uint64_t *address = slot_at(warp, in->a);
    const unsigned lane = first_lane(warp);
    const sc_function *callee = called(warp, address[lane]);
    if (!callee || !callee->code || !sc__takes(callee->ptx, call))
        return sc__fault(warp, in, SC_FAULT_ILLEGAL_INSTRUCTION, lane, address[lane],
                         "call through 0x%llx, which is no function with these parameters",
                         (unsigned long long)address[lane]);
    uint32_t same = 0;
    EACH_LANE(i, warp->mask)
    if (address[i] == address[lane])
        same |= 1u << i;
    if (same != warp->mask)
        sc__split(warp, in, same);
    return sc__call(warp, in, callee, call);
}

HANDLER(fence)
{
    (void)warp;
    atomic_thread_fence(memory_order_seq_cst);
    return in + 1;
}

HANDLER(sleep)
{
    return sc__yield(warp, in);
}

/* ---- special registers ---- */

static uint64_t timer_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static uint64_t clock_ticks(const sc_warp *warp)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    uint64_t ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    return ns * (uint64_t)(warp->kernel->clock_khz / 1000) / 1000;
}

/* Values that are the same in every lane. */
static uint64_t uniform_special(const sc_warp *warp, ptx_special which)
{
    const sc_block *block = warp->block;
    const sc_launch *launch = block->job->launch;
    switch (which) {
    case PTX_NTID_X:
    case PTX_NTID_Y:
    case PTX_NTID_Z:
        return launch->block[which - PTX_NTID_X];
    case PTX_CTAID_X:
    case PTX_CTAID_Y:
    case PTX_CTAID_Z:
        return block->id[which - PTX_CTAID_X];
    case PTX_NCTAID_X:
    case PTX_NCTAID_Y:
    case PTX_NCTAID_Z:
        return launch->grid[which - PTX_NCTAID_X];
    case PTX_CLUSTERID_X:
        return block->id[0];
    case PTX_CLUSTERID_Y:
        return block->id[1];
    case PTX_CLUSTERID_Z:
        return block->id[2];
    case PTX_NCLUSTERID_X:
        return launch->grid[0];
    case PTX_NCLUSTERID_Y:
        return launch->grid[1];
    case PTX_NCLUSTERID_Z:
        return launch->grid[2];
    case PTX_CLUSTER_NCTAID_X:
    case PTX_CLUSTER_NCTAID_Y:
    case PTX_CLUSTER_NCTAID_Z:
    case PTX_CLUSTER_NCTARANK:
        return 1;
    case PTX_CLUSTER_CTAID_X:
    case PTX_CLUSTER_CTAID_Y:
    case PTX_CLUSTER_CTAID_Z:
    case PTX_CLUSTER_CTARANK:
        return 0;
    case PTX_WARPID:
        return warp->index;
    case PTX_NWARPID:
        return (uint64_t)(warp->kernel->max_warps);
    case PTX_SMID:
        return block->linear % (unsigned)warp->kernel->multiprocessors;
    case PTX_NSMID:
        return (uint64_t)warp->kernel->multiprocessors;
    case PTX_GRIDID:
        return launch->grid_id;
    case PTX_CLOCK:
    case PTX_CLOCK64:
        return clock_ticks(warp);
    case PTX_CLOCK_HI:
        return clock_ticks(warp) >> 32;
    case PTX_GLOBALTIMER:
    case PTX_GLOBALTIMER_LO:
        return timer_ns();
    case PTX_GLOBALTIMER_HI:
        return timer_ns() >> 32;
    case PTX_DYNAMIC_SMEM_SIZE:
        return launch->dynamic_shared_bytes;
    case PTX_AGGR_SMEM_SIZE:
        return block->shared_bytes + block->job->program->limits.reserved_shared_bytes_per_block;
    case PTX_TOTAL_SMEM_SIZE:
        return block->shared_bytes;
    case PTX_ENVREG1: /* the workspace of a cooperative grid, upper half */
        return block->job->workspace >> 32;
    case PTX_ENVREG2:
        return (uint32_t)block->job->workspace;
    default:
        return 0;
    }
}

/* `room` is for those that are not kept. */
static const uint32_t *lane_special(const sc_warp *warp, ptx_special which, uint32_t room[SC_LANES])
{
    if (which <= PTX_TID_Z)
        return warp->thread[which - PTX_TID_X];
    for (unsigned lane = 0; lane < SC_LANES; lane++) {
        const uint32_t own = 1u << lane;
        room[lane] = which == PTX_LANEID        ? lane
                     : which == PTX_LANEMASK_EQ ? own
                     : which == PTX_LANEMASK_LT ? own - 1
                     : which == PTX_LANEMASK_LE ? own | (own - 1)
                     : which == PTX_LANEMASK_GE ? ~(own - 1)
                                                : ~(own | (own - 1));
    }
    return room;
}

static bool is_lane_special(ptx_special which)
{
    return which <= PTX_TID_Z || which == PTX_LANEID ||
           (which >= PTX_LANEMASK_EQ && which <= PTX_LANEMASK_GT);
}

HANDLER(special)
{
    const ptx_special which = (ptx_special)in->imm;
    if (!is_lane_special(which)) {
        fill(warp, in->d, in->e, uniform_special(warp, which));
        return in + 1;
    }
    uint32_t room[SC_LANES];
    const uint32_t *values = lane_special(warp, which, room);
    if (in->e) {
        uint64_t *const d = slot_at(warp, in->d);
        EACH_LANE(lane, warp->mask) d[lane] = values[lane];
    } else {
        put_words(warp, in->d, values);
    }
    return in + 1;
}

/* A kernel's parameter at a fixed place: one value for every lane. c: bytes of an element, and how many << 8.
 */
HANDLER(parameter)
{
    const char *at = (const char *)warp->block->job->launch->params + in->imm;
    const sc_slot slots[4] = {in->d, in->b, in->e, in->f};
    const unsigned bytes = in->c & 0xff, n = in->c >> 8;
    for (unsigned k = 0; k < n; k++, at += bytes) {
        uint64_t value = 0;
        memcpy(&value, at, bytes);
        if (slots[k] != SC_NO_SLOT)
            fill(warp, slots[k], bytes == 8, value);
    }
    return in + 1;
}

/* Where a local variable of this call lies. */
HANDLER(local_address)
{
    fill(warp, in->d, in->e, warp->frame->local_base + (uint64_t)in->imm);
    return in + 1;
}

/* Constants lie in global memory; only a variable tells them. */
static bool is_constant(const sc_program *program, uint64_t address)
{
    for (const ptx_variable *v = program->module->variables; v; v = v->next)
        if (v->space == PTX_SPACE_CONST && address - sc__variable_address(program, v) < v->bytes)
            return true;
    return false;
}

/* imm: the window; e: of constants. */
HANDLER(isspacep)
{
    const uint64_t *address = slot_at(warp, in->a);
    uint32_t inside = 0;
    EACH_LANE(lane, warp->mask)
    {
        const bool in_window = SC_WINDOW_OF(address[lane]) == (uint64_t)in->imm;
        const bool counts = in->imm != SC_WINDOW_GLOBAL ||
                            is_constant(warp->block->job->program, address[lane]) == (in->e == 1);
        inside |= (uint32_t)(in_window && counts) << lane;
    }
    sc_set_predicate(warp, in->d, inside);
    return in + 1;
}

/* ---- the stack ---- */

static uint32_t stack_top(const sc_frame *frame, unsigned lane)
{
    return frame->local_base + frame->function->local_bytes + frame->allocated[lane];
}

/* imm: the alignment. */
HANDLER(alloca)
{
    sc_frame *frame = warp->frame;
    const uint64_t *bytes = slot_at(warp, in->a);
    uint64_t *d = slot_at(warp, in->d);
    EACH_LANE(lane, warp->mask)
    {
        const uint64_t top = stack_top(frame, lane), alignment = (uint64_t)in->imm;
        const uint64_t start = (top + alignment - 1) / alignment * alignment;
        if (bytes[lane] > warp->stack_bytes || start + bytes[lane] > warp->stack_bytes)
            return sc__fault(warp, in, SC_FAULT_STACK, lane, 0,
                             "alloca of %llu bytes: the stack of %u bytes a thread is used up",
                             (unsigned long long)bytes[lane], warp->stack_bytes);
        frame->allocated[lane] += (uint32_t)(start + bytes[lane] - top);
        d[lane] = start;
    }
    return in + 1;
}

HANDLER(stack_save)
{
    uint64_t *d = slot_at(warp, in->d);
    EACH_LANE(lane, warp->mask)
    d[lane] = stack_top(warp->frame, lane);
    return in + 1;
}

HANDLER(stack_restore)
{
    const uint64_t *a = slot_at(warp, in->a);
    EACH_LANE(lane, warp->mask)
    {
        const uint32_t top = stack_top(warp->frame, lane), allocated = warp->frame->allocated[lane];
        if (a[lane] > top || top - a[lane] > allocated)
            return sc__fault(warp, in, SC_FAULT_STACK, lane, a[lane],
                             "stackrestore to 0x%llx, which stacksave never gave",
                             (unsigned long long)a[lane]);
        warp->frame->allocated[lane] = allocated - (uint32_t)(top - a[lane]);
    }
    return in + 1;
}

/* ---- predicates ---- */

HANDLER(predicate)
{
    const uint32_t a = sc_predicate(warp, in->a), b = sc_predicate(warp, in->b);
    sc_set_predicate(warp, in->d, in->imm == PTX_AND ? a & b : in->imm == PTX_OR ? a | b : a ^ b);
    return in + 1;
}

HANDLER(move_predicate)
{
    sc_set_predicate(warp, in->d, sc_predicate(warp, in->a));
    return in + 1;
}

/* ---- the block together ---- */

HANDLER(barrier)
{
    const uint32_t index = sc_barrier_of(uniform(warp, in->a));
    const uint32_t expected = in->b == SC_NO_SLOT ? 0 : uniform(warp, in->b);
    return sc__barrier(warp, in, index, expected, in->c == SC_NO_SLOT ? 0 : sc_predicate(warp, in->c));
}

/* ---- the warp together ---- */

/* Are all live lanes of the member mask here? If not, the caller waits (sc__wait_for). */
static bool all_here(sc_warp *warp, uint32_t members)
{
    const bool here = (members & warp->live & ~warp->mask) == 0 || (warp->met & warp->mask) == warp->mask;
    if (here)
        warp->met &= ~warp->mask;
    return here;
}

/* The first lane's. Lanes with another one meet among themselves. */
static uint32_t member_mask(sc_warp *warp, const sc_code *in)
{
    const uint32_t *masks = slot_at(warp, in->f), members = masks[first_lane(warp)];
    uint32_t same = warp->mask;
    if (!(in->f & SC_BANK_CONSTANT))
        EACH_LANE(lane, warp->mask)
    same &= ~((uint32_t)(masks[lane] != members) << lane);
    if (same != warp->mask)
        sc__split(warp, in, same);
    return members;
}

/* Those without .sync are about the lanes that happen to be here. */
#define GATHER(members)                                                                \
    const uint32_t members = in->f == SC_NO_SLOT ? warp->mask : member_mask(warp, in); \
    if (!all_here(warp, members))                                                      \
    return sc__wait_for(warp, in, members)

/* The lanes that take part. A mask that names none of those here is undefined in PTX: then all of them. */
static uint32_t participants(const sc_warp *warp, uint32_t members)
{
    return members & warp->mask ? members & warp->mask : warp->mask;
}

HANDLER(warp_sync)
{
    GATHER(members);
    return in + 1;
}

/* What each lane gets, and which lanes get another one's. */
static inline uint32_t exchange(ptx_sub mode, const uint32_t *a, const uint32_t *b, const uint32_t *c,
                                uint32_t result[SC_LANES])
{
    int32_t source[SC_LANES];
    uint32_t valid = 0;
    for (uint32_t i = 0; i < SC_LANES; i++) {
        const uint32_t segment = c[i] >> 8 & 31, clamp = c[i] & 31, by = b[i] & 31, lowest = i & segment;
        const int32_t lane = (int32_t)i, limit = (int32_t)(lowest | (clamp & ~segment));
        const int32_t from = mode == PTX_SUB_UP     ? lane - (int32_t)by
                             : mode == PTX_SUB_DOWN ? lane + (int32_t)by
                             : mode == PTX_SUB_BFLY ? lane ^ (int32_t)by
                                                    : (int32_t)(lowest | (by & ~segment));
        const bool inside = mode == PTX_SUB_UP ? from >= limit : from <= limit;
        source[i] = inside ? from : lane;
        valid |= inside ? sc__bit_of_lane.u32[i] : 0;
    }
    for (unsigned i = 0; i < SC_LANES; i++)
        result[i] = a[source[i] & 31];
    return valid;
}

HANDLER(shuffle)
{
    GATHER(members);
    const uint32_t *a = slot_at(warp, in->a), *b = slot_at(warp, in->b), *c = slot_at(warp, in->c);
    uint32_t result[SC_LANES], valid;
    switch ((ptx_sub)in->imm) {
    case PTX_SUB_UP:
        valid = exchange(PTX_SUB_UP, a, b, c, result);
        break;
    case PTX_SUB_DOWN:
        valid = exchange(PTX_SUB_DOWN, a, b, c, result);
        break;
    case PTX_SUB_BFLY:
        valid = exchange(PTX_SUB_BFLY, a, b, c, result);
        break;
    default:
        valid = exchange(PTX_SUB_IDX, a, b, c, result);
        break;
    }
    if (in->d != SC_NO_SLOT)
        put_words(warp, in->d, result);
    if (in->e != SC_NO_SLOT)
        sc_set_predicate(warp, in->e, valid);
    return in + 1;
}

HANDLER(vote)
{
    GATHER(members);
    const uint32_t here = members & warp->mask, ayes = sc_predicate(warp, in->a) & here;
    switch ((uint32_t)in->imm) {
    case PTX_BALLOT:
        fill(warp, in->d, false, ayes);
        break;
    case PTX_ALL:
        sc_set_predicate(warp, in->d, ayes == here ? SC_ALL_LANES : 0);
        break;
    case PTX_ANY:
        sc_set_predicate(warp, in->d, ayes ? SC_ALL_LANES : 0);
        break;
    default: /* .uni */
        sc_set_predicate(warp, in->d, ayes == here || ayes == 0 ? SC_ALL_LANES : 0);
        break;
    }
    return in + 1;
}

/* imm bit 0: .all; bit 1: the values have 64 bits. */
HANDLER(match)
{
    GATHER(members);
    const uint32_t here = members & warp->mask;
    uint64_t value[SC_LANES];
    uint32_t result[SC_LANES], all_equal = 0;
    EACH_LANE(lane, here)
    value[lane] = in->imm & 2 ? ((const uint64_t *)slot_at(warp, in->a))[lane]
                              : ((const uint32_t *)slot_at(warp, in->a))[lane];
    EACH_LANE(lane, here)
    {
        uint32_t same = 0;
        for (uint32_t others = here; others; others &= others - 1)
            same |= value[__builtin_ctz(others)] == value[lane] ? others & -others : 0;
        if (same == here)
            all_equal |= 1u << lane;
        result[lane] = (in->imm & 1) && same != here ? 0 : same;
    }
    if (in->d != SC_NO_SLOT)
        EACH_LANE(lane, here)
    ((uint32_t *)slot_at(warp, in->d))[lane] = result[lane];
    if (in->e != SC_NO_SLOT)
        sc_set_predicate(warp, in->e, all_equal);
    return in + 1;
}

static uint32_t reduce(ptx_sub sub, bool is_signed, uint32_t a, uint32_t b)
{
    const bool less = is_signed ? (int32_t)a < (int32_t)b : a < b;
    switch (sub) {
    case PTX_SUB_ADD:
        return a + b;
    case PTX_SUB_MIN:
        return less ? a : b;
    case PTX_SUB_MAX:
        return less ? b : a;
    case PTX_SUB_AND:
        return a & b;
    case PTX_SUB_OR:
        return a | b;
    default:
        return a ^ b;
    }
}

/* imm: the operation; b: signed. */
HANDLER(reduce)
{
    GATHER(members);
    const uint32_t here = participants(warp, members), *a = slot_at(warp, in->a);
    uint32_t sum = a[__builtin_ctz(here)];
    EACH_LANE(lane, here & (here - 1))
    sum = reduce((ptx_sub)in->imm, in->b != 0, sum, a[lane]);
    EACH_LANE(lane, here)
    ((uint32_t *)slot_at(warp, in->d))[lane] = sum;
    return in + 1;
}

HANDLER(activemask)
{
    fill(warp, in->d, false, warp->mask);
    return in + 1;
}

HANDLER(elect)
{
    GATHER(members);
    const uint32_t leader = (uint32_t)__builtin_ctz(participants(warp, members));
    if (in->d != SC_NO_SLOT)
        fill(warp, in->d, false, leader);
    if (in->e != SC_NO_SLOT)
        sc_set_predicate(warp, in->e, 1u << leader);
    return in + 1;
}

static bool is_shared(const sc_warp *warp, const char *at)
{
    return at >= warp->block->shared && at < warp->block->shared + warp->block->shared_bytes;
}

/* A quad's slot is two doubles'. */
static unsigned __int128 quad_at(const sc_warp *warp, sc_slot slot, unsigned lane)
{
    const uint64_t *at = slot_at(warp, slot);
    return (unsigned __int128)at[SC_LANES + lane] << 64 | at[lane];
}

/* ---- atomics: b and c the operands, d (if any) the old value ---- */

HANDLER(atomic)
{
    const sc_access *access = in->more;
    if (!sc__accesses()->translate(warp, in, access))
        return NULL;
    sc_set_csr(&warp->csr, SC_CSR_RN);
    const bool wide = access->bytes == 8;
    EACH_LANE(lane, warp->mask)
    {

        uint64_t b, c, old;
        if (wide) {
            b = ((const uint64_t *)slot_at(warp, in->b))[lane];
            c = ((const uint64_t *)slot_at(warp, in->c))[lane];
        } else {
            b = ((const uint32_t *)slot_at(warp, in->b))[lane];
            c = ((const uint32_t *)slot_at(warp, in->c))[lane];
        }
        old = (is_shared(warp, warp->pointers[lane]) ? access->operate_shared
                                                     : access->operate_global)(warp->pointers[lane], b, c);
        if (in->d == SC_NO_SLOT)
            continue;
        if (wide)
            ((uint64_t *)slot_at(warp, in->d))[lane] = old;
        else
            ((uint32_t *)slot_at(warp, in->d))[lane] = (uint32_t)old;
    }
    return in + 1;
}

/* of 128 bits; e: compares */
HANDLER(atomic_wide)
{
    const sc_access *access = in->more;
    if (!sc__accesses()->translate(warp, in, access))
        return NULL;
    EACH_LANE(lane, warp->mask)
    {
        const unsigned __int128 b = quad_at(warp, in->b, lane), c = quad_at(warp, in->c, lane);
        const unsigned __int128 old = sc__atomic_quad(warp->pointers[lane], in->e != 0, b, c);
        if (in->d == SC_NO_SLOT)
            continue;
        ((uint64_t *)slot_at(warp, in->d))[lane] = (uint64_t)old;
        ((uint64_t *)slot_at(warp, in->d))[SC_LANES + lane] = (uint64_t)(old >> 64);
    }
    return in + 1;
}
