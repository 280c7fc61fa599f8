/* SPDX-License-Identifier: Apache-2.0 */
#include "softcuda/vm/machine.h"

#include <stdlib.h>
#include <string.h>

/*
 * Blocks, their order, and which register lies in which slot.
 *
 * Blocks are laid out in reverse post-order, earlier text first where there is a choice: a warp that runs
 * its lowest place first then meets again at the end of an if, and leaves no lane of a loop behind.
 * A slot is shared by registers whose lives do not overlap in that order. Only registers of one width share:
 * a lane's column must be the same bytes for both, since lanes may be at different places.
 */

bool sc__ends_block(const ptx_instr *instr)
{
    switch (instr->op) {
    case PTX_OP_BRA:
    case PTX_OP_BRX_IDX:
    case PTX_OP_RET:
    case PTX_OP_EXIT:
    case PTX_OP_TRAP:
        return true;
    default:
        return false;
    }
}

/* ---- blocks ---- */

static bool find_blocks(const ptx_function *function, sc_layout *layout)
{
    size_t n = function->n_instrs;
    uint8_t *starts = calloc(n + 1, 1);
    layout->block_of = calloc(n + 1, sizeof *layout->block_of);
    if (!starts || !layout->block_of) {
        free(starts);
        return false;
    }
    starts[0] = 1;
    for (size_t i = 0; i < function->n_labels; i++)
        starts[function->labels[i].target] = 1;
    for (size_t i = 0; i < n; i++)
        if (sc__ends_block(&function->instrs[i]))
            starts[i + 1] = 1;
    for (size_t i = 0; i < n; i++)
        layout->n_blocks += starts[i];
    layout->blocks = calloc(layout->n_blocks + 1, sizeof *layout->blocks);
    if (layout->blocks) {
        uint32_t block = 0;
        for (size_t i = 0; i < n; i++) {
            if (starts[i] && i > 0)
                layout->blocks[block++].end = (uint32_t)i;
            if (starts[i])
                layout->blocks[block].first = (uint32_t)i;
            layout->block_of[i] = block;
        }
        layout->blocks[block].end = (uint32_t)n;
        layout->block_of[n] = UINT32_MAX;
    }
    free(starts);
    return layout->blocks != NULL;
}

/* A label at the very end has no block: a branch there is a return. */
static uint32_t block_of_label(const ptx_function *function, const sc_layout *layout, uint32_t label)
{
    return layout->block_of[function->labels[label].target];
}

static void add_successor(sc_block_info *block, uint32_t to)
{
    if (to != UINT32_MAX)
        block->successors[block->n_successors++] = to;
}

static void find_successors(const ptx_function *function, sc_layout *layout)
{
    for (uint32_t i = 0; i < layout->n_blocks; i++) {
        sc_block_info *block = &layout->blocks[i];
        const ptx_instr *last = &function->instrs[block->end - 1];
        bool falls = last->guard || !sc__ends_block(last);
        if (last->op == PTX_OP_BRA)
            add_successor(block, block_of_label(function, layout, last->operands[0].label));
        if (falls && i + 1 < layout->n_blocks)
            add_successor(block, i + 1);
    }
}

/* Successor number k of a block, brx.idx's targets after the others; UINT32_MAX: no more. */
static uint32_t successor(const ptx_function *function, const sc_layout *layout, uint32_t block, uint32_t k)
{
    const sc_block_info *info = &layout->blocks[block];
    if (k < info->n_successors)
        return info->successors[k];
    const ptx_instr *last = &function->instrs[info->end - 1];
    k -= info->n_successors;
    while (last->op == PTX_OP_BRX_IDX && k < last->n_targets) {
        uint32_t to = block_of_label(function, layout, last->targets[k]);
        if (to != UINT32_MAX)
            return to;
        k++;
    }
    return UINT32_MAX;
}

/* The successor not yet visited that stands last in the text. */
static uint32_t last_unvisited(const ptx_function *function, const sc_layout *layout, uint32_t block,
                               const uint8_t *visited)
{
    uint32_t best = UINT32_MAX, to;
    for (uint32_t k = 0; (to = successor(function, layout, block, k)) != UINT32_MAX; k++)
        if (!visited[to] && (best == UINT32_MAX || to > best))
            best = to;
    return best;
}

static bool find_order(const ptx_function *function, sc_layout *layout)
{
    uint32_t n = layout->n_blocks;
    uint8_t *visited = calloc(n + 1, 1);
    uint32_t *stack = calloc(n + 1, sizeof *stack), *post = calloc(n + 1, sizeof *post);
    layout->order = calloc(n + 1, sizeof *layout->order);
    bool ok = visited && stack && post && layout->order;
    if (ok && n > 0) {
        uint32_t depth = 0, n_post = 0;
        for (uint32_t i = 0; i < n; i++)
            layout->blocks[i].order = UINT32_MAX;
        stack[depth++] = 0;
        visited[0] = 1;
        while (depth > 0) {
            uint32_t to = last_unvisited(function, layout, stack[depth - 1], visited);
            if (to == UINT32_MAX) {
                post[n_post++] = stack[--depth];
            } else {
                visited[to] = 1;
                stack[depth++] = to;
            }
        }
        layout->n_order = n_post;
        for (uint32_t i = 0; i < n_post; i++) {
            layout->order[i] = post[n_post - 1 - i];
            layout->blocks[layout->order[i]].order = i;
        }
        for (uint32_t i = 0, to; i < n_post; i++)
            for (uint32_t k = 0; (to = successor(function, layout, layout->order[i], k)) != UINT32_MAX; k++)
                layout->blocks[to].n_predecessors++;
    }
    free(visited);
    free(stack);
    free(post);
    return ok;
}

/* ---- who reads and writes what ---- */

static bool has_destination(const ptx_instr *instr)
{
    switch (instr->op) {
    case PTX_OP_ST:
    case PTX_OP_RED:
    case PTX_OP_BRA:
    case PTX_OP_BRX_IDX:
    case PTX_OP_RET:
    case PTX_OP_EXIT:
    case PTX_OP_TRAP:
    case PTX_OP_CALL:
    case PTX_OP_MEMBAR:
    case PTX_OP_FENCE:
    case PTX_OP_NANOSLEEP:
    case PTX_OP_PREFETCH:
    case PTX_OP_PREFETCHU:
    case PTX_OP_CP_ASYNC:
    case PTX_OP_CP_ASYNC_COMMIT_GROUP:
    case PTX_OP_CP_ASYNC_WAIT_GROUP:
    case PTX_OP_CP_ASYNC_WAIT_ALL:
    case PTX_OP_DISCARD:
    case PTX_OP_APPLYPRIORITY:
    case PTX_OP_STACKRESTORE:
    case PTX_OP_STMATRIX:
        return false;
    case PTX_OP_BAR:
        return (instr->flags & PTX_RED) != 0;
    default:
        return true;
    }
}

typedef void visit(void *data, const ptx_register *reg, bool written);

static void visit_operand(const ptx_operand *operand, bool written, visit *call, void *data)
{
    switch (operand->kind) {
    case PTX_OPERAND_REGISTER:
        call(data, operand->reg, written);
        break;
    case PTX_OPERAND_ADDRESS:
        if (operand->reg)
            call(data, operand->reg, false);
        break;
    case PTX_OPERAND_VECTOR:
        for (unsigned i = 0; i < operand->n_elements; i++)
            visit_operand(&operand->elements[i], written, call, data);
        break;
    default:
        break;
    }
}

/* Every register of an instruction; those written first. */
static void visit_registers(const ptx_instr *instr, visit *call, void *data)
{
    unsigned first = has_destination(instr) ? 1 : 0;
    if (first && instr->n_operands)
        visit_operand(&instr->operands[0], true, call, data);
    for (unsigned i = 0; i < instr->n_returns; i++)
        visit_operand(&instr->returns[i], true, call, data);
    for (unsigned i = first; i < instr->n_operands; i++)
        visit_operand(&instr->operands[i], false, call, data);
    for (unsigned i = 0; i < instr->n_arguments; i++)
        visit_operand(&instr->arguments[i], false, call, data);
    if (instr->guard)
        call(data, instr->guard, false);
}

/* ---- liveness ---- */

/*
 * Time is counted in places: one an instruction, in the order of the blocks, and one for each block's end. A
 * register is live at a place if its value is needed there or later.
 *
 * Registers are looked at one by one, each from its uses back to where it was written: most live in few
 * blocks, while a set of registers a block would grow with the square of the function.
 */

typedef enum sc_use { SC_USE_READ, SC_USE_WRITE, SC_USE_GUARDED_WRITE } sc_use;

typedef struct sc_mention {
    uint32_t place, block;
    sc_use use;
} sc_mention;

/* The register (its index + 1) for which each was last found so. */
typedef struct sc_mark {
    uint32_t mentioned, written, live_in, live_out;
} sc_mark;

typedef struct sc_lives {
    const ptx_function *function;
    const sc_layout *layout;
    uint8_t *weight;          /* of a register, in 32-bit ones of the hardware */
    uint32_t *first, *last;   /* places of a register's life */
    uint32_t *n_mentions;     /* of the registers up to and including this one */
    sc_mention *mentions;     /* a register's after the other's, last place first */
    uint32_t *start;          /* place of a block */
    uint32_t *n_predecessors; /* of the blocks up to and including this one */
    uint32_t *predecessors;
    sc_mark *marks;  /* of a block */
    uint32_t *stack; /* blocks where the register is live, not yet followed */
    int32_t *change; /* of the weight of what is live, at a place */
    uint32_t n_places, n_stack;
    /* the instruction being visited */
    uint32_t place, block;
    bool guarded;
} sc_lives;

static uint8_t weight_of(ptx_type type)
{
    return type == PTX_PRED ? 0 : kr__ptx_type_bytes(type) == 8 ? 2 : kr__ptx_type_bytes(type) == 16 ? 4 : 1;
}

/* Will the instruction's result be had without a register? Kernel parameters stay where they are, in constant
 * memory, and numbers in the instruction that uses them. */
static bool is_constant(const sc_lives *lives, const ptx_instr *instr)
{
    const ptx_operand *from = &instr->operands[1];
    if (instr->guard)
        return false;
    if (instr->op == PTX_OP_LD)
        return instr->space == PTX_SPACE_PARAM && from->variable && from->variable->is_parameter;
    if (instr->op != PTX_OP_MOV && instr->op != PTX_OP_CVTA)
        return false;
    return from->kind == PTX_OPERAND_REGISTER
               ? lives->weight[from->reg->index] == 0 && from->reg->type != PTX_PRED
               : from->kind == PTX_OPERAND_IMMEDIATE || from->kind == PTX_OPERAND_SYMBOL;
}

static void weigh_registers(const ptx_function *function, sc_lives *lives)
{
    enum { UNWRITTEN = 0xff };
    memset(lives->weight, UNWRITTEN, function->n_registers);
    for (size_t i = 0; i < function->n_instrs && function->is_entry; i++) {
        const ptx_instr *instr = &function->instrs[i];
        const ptx_operand *to = &instr->operands[0];
        if (!instr->n_operands || !has_destination(instr) || to->kind != PTX_OPERAND_REGISTER)
            continue;
        uint8_t *weight = &lives->weight[to->reg->index];
        *weight = *weight == UNWRITTEN && is_constant(lives, instr) ? 0 : weight_of(to->reg->type);
    }
    for (size_t i = 0; i < function->n_registers; i++)
        if (lives->weight[i] == UNWRITTEN)
            lives->weight[i] = weight_of(function->registers[i]->type);
}

static uint32_t end_of(const sc_lives *lives, uint32_t block)
{
    const sc_block_info *info = &lives->layout->blocks[block];
    return lives->start[block] + info->end - info->first;
}

static void extend(sc_lives *lives, uint32_t index, uint32_t place)
{
    if (lives->first[index] > place)
        lives->first[index] = place;
    if (lives->last[index] < place)
        lives->last[index] = place;
}

static void count_mention(void *data, const ptx_register *reg, bool written)
{
    (void)written;
    sc_lives *lives = data;
    lives->n_mentions[reg->index]++;
}

static void add_mention(void *data, const ptx_register *reg, bool written)
{
    sc_lives *lives = data;
    lives->mentions[lives->n_mentions[reg->index]++] = (sc_mention){
        .place = lives->place,
        .block = lives->block,
        .use = !written         ? SC_USE_READ
               : lives->guarded ? SC_USE_GUARDED_WRITE
                                : SC_USE_WRITE,
    };
    extend(lives, reg->index, lives->place);
}

/* Last instruction first; of one instruction, what it writes first. */
static void visit_backwards(sc_lives *lives, visit *call)
{
    const sc_layout *layout = lives->layout;
    for (uint32_t i = layout->n_order; i-- > 0;) {
        lives->block = layout->order[i];
        const sc_block_info *block = &layout->blocks[lives->block];
        for (uint32_t k = block->end; k-- > block->first;) {
            const ptx_instr *instr = &lives->function->instrs[k];
            lives->place = lives->start[lives->block] + k - block->first;
            lives->guarded = instr->guard != NULL;
            visit_registers(instr, call, lives);
        }
    }
}

/* Counts become where each one's part of a common list begins. Returns the length of the list. */
static uint32_t counts_to_starts(uint32_t *counts, size_t n)
{
    uint32_t sum = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t count = counts[i];
        counts[i] = sum;
        sum += count;
    }
    return sum;
}

static bool collect_mentions(sc_lives *lives)
{
    const size_t n = lives->function->n_registers;
    visit_backwards(lives, count_mention);
    lives->mentions = calloc(counts_to_starts(lives->n_mentions, n) + 1, sizeof *lives->mentions);
    if (!lives->mentions)
        return false;
    memset(lives->first, 0xff, n * sizeof *lives->first);
    visit_backwards(lives, add_mention);
    return true;
}

static bool collect_predecessors(sc_lives *lives)
{
    const sc_layout *layout = lives->layout;
    for (uint32_t i = 0; i < layout->n_blocks; i++)
        lives->n_predecessors[i] = layout->blocks[i].n_predecessors;
    lives->predecessors =
        calloc(counts_to_starts(lives->n_predecessors, layout->n_blocks) + 1, sizeof *lives->predecessors);
    if (!lives->predecessors)
        return false;
    for (uint32_t i = 0, to; i < layout->n_order; i++)
        for (uint32_t k = 0, from = layout->order[i];
             (to = successor(lives->function, layout, from, k)) != UINT32_MAX; k++)
            lives->predecessors[lives->n_predecessors[to]++] = from;
    return true;
}

static void weigh(sc_lives *lives, uint32_t index, uint32_t from, uint32_t to)
{
    lives->change[from] += lives->weight[index];
    lives->change[to + 1] -= lives->weight[index];
}

static void enter_live(sc_lives *lives, uint32_t index, uint32_t block)
{
    sc_mark *mark = &lives->marks[block];
    if (mark->live_in == index + 1)
        return;
    mark->live_in = index + 1;
    lives->stack[lives->n_stack++] = block;
}

/* What the block does with the register, whatever comes after it. Returns the next block's first mention. */
static const sc_mention *mark_block(sc_lives *lives, uint32_t index, const sc_mention *at,
                                    const sc_mention *end)
{
    const uint32_t block = at->block;
    sc_mark *mark = &lives->marks[block];
    bool needed = false;
    mark->mentioned = index + 1;
    for (; at < end && at->block == block; at++) {
        if (at->use == SC_USE_READ)
            needed = true;
        if (at->use == SC_USE_WRITE) {
            needed = false;
            mark->written = index + 1;
        }
    }
    if (needed)
        enter_live(lives, index, block);
    return at;
}

/* Back from the blocks that need the register, up to those that write it. */
static void follow(sc_lives *lives, uint32_t index)
{
    while (lives->n_stack) {
        const uint32_t block = lives->stack[--lives->n_stack];
        extend(lives, index, lives->start[block]);
        for (uint32_t i = block ? lives->n_predecessors[block - 1] : 0; i < lives->n_predecessors[block];
             i++) {
            const uint32_t from = lives->predecessors[i];
            sc_mark *mark = &lives->marks[from];
            if (mark->live_out == index + 1)
                continue;
            mark->live_out = index + 1;
            extend(lives, index, end_of(lives, from));
            if (mark->mentioned != index + 1)
                weigh(lives, index, lives->start[from], end_of(lives, from));
            if (mark->written != index + 1)
                enter_live(lives, index, from);
        }
    }
}

/* The places in the block where the register is live. */
static const sc_mention *weigh_block(sc_lives *lives, uint32_t index, const sc_mention *at,
                                     const sc_mention *end)
{
    const uint32_t block = at->block;
    uint32_t until = lives->marks[block].live_out == index + 1 ? end_of(lives, block) : 0; /* 0: not live */
    for (; at < end && at->block == block; at++) {
        if (at->use == SC_USE_READ && !until)
            until = at->place;
        if (at->use == SC_USE_WRITE && until) {
            weigh(lives, index, at->place + 1, until);
            until = 0;
        }
    }
    if (until)
        weigh(lives, index, lives->start[block], until);
    return at;
}

static void find_live(sc_lives *lives)
{
    for (uint32_t index = 0; index < lives->function->n_registers; index++) {
        const sc_mention *first = lives->mentions + (index ? lives->n_mentions[index - 1] : 0),
                         *end = lives->mentions + lives->n_mentions[index];
        for (const sc_mention *at = first; at < end;)
            at = mark_block(lives, index, at, end);
        follow(lives, index);
        for (const sc_mention *at = first; at < end;)
            at = weigh_block(lives, index, at, end);
    }
}

static uint32_t most_live(const sc_lives *lives)
{
    int32_t now = 0, most = 0;
    for (uint32_t place = 0; place < lives->n_places; place++) {
        now += lives->change[place];
        most = now > most ? now : most;
    }
    return (uint32_t)most;
}

static void free_lives(sc_lives *lives)
{
    free(lives->weight);
    free(lives->first);
    free(lives->last);
    free(lives->n_mentions);
    free(lives->mentions);
    free(lives->start);
    free(lives->n_predecessors);
    free(lives->predecessors);
    free(lives->marks);
    free(lives->stack);
    free(lives->change);
}

static bool create_lives(const ptx_function *function, const sc_layout *layout, sc_lives *lives)
{
    const size_t n = function->n_registers + 1, blocks = layout->n_blocks + 1;
    *lives = (sc_lives){.function = function, .layout = layout, .n_places = 1};
    lives->weight = malloc(n);
    lives->first = calloc(n, sizeof *lives->first);
    lives->last = calloc(n, sizeof *lives->last);
    lives->n_mentions = calloc(n, sizeof *lives->n_mentions);
    lives->start = calloc(blocks, sizeof *lives->start);
    lives->n_predecessors = calloc(blocks, sizeof *lives->n_predecessors);
    lives->marks = calloc(blocks, sizeof *lives->marks);
    lives->stack = calloc(blocks, sizeof *lives->stack);
    if (!lives->weight || !lives->first || !lives->last || !lives->n_mentions || !lives->start ||
        !lives->n_predecessors || !lives->marks || !lives->stack)
        return false;
    for (uint32_t i = 0; i < layout->n_order; i++) {
        lives->start[layout->order[i]] = lives->n_places;
        lives->n_places = end_of(lives, layout->order[i]) + 1;
    }
    lives->change = calloc(lives->n_places + 1, sizeof *lives->change);
    return lives->change && collect_mentions(lives) && collect_predecessors(lives);
}

/* ---- slots ---- */

typedef struct sc_pool { /* slots of one width */
    uint32_t *free;
    uint32_t n_free, n_slots;
} sc_pool;

static unsigned pool_of(ptx_type type)
{
    const size_t bytes = kr__ptx_type_bytes(type);
    return type == PTX_PRED ? 2 : bytes == 16 ? 3 : bytes == 8 ? 1 : 0;
}

typedef struct sc_event {
    uint32_t place, index;
} sc_event;

static int by_place(const void *a, const void *b)
{
    const sc_event *x = a, *y = b;
    return x->place != y->place ? (x->place < y->place ? -1 : 1)
                                : (x->index > y->index) - (x->index < y->index);
}

/* A slot is free again after the last place of its register's life; sources and destination of one
 * instruction that share a slot would overlap in a handler that writes its second result early, so they
 * don't. */
static bool colour(const ptx_function *function, sc_layout *layout, const sc_lives *lives)
{
    size_t n = function->n_registers, n_used = 0;
    sc_pool pools[4] = {{0}};
    sc_event *begin = calloc(n + 1, sizeof *begin), *end = calloc(n + 1, sizeof *end);
    bool ok = begin && end;
    for (unsigned i = 0; i < KR_COUNT(pools); i++)
        ok = (pools[i].free = calloc(n + 1, sizeof(uint32_t))) && ok;
    for (size_t i = 0; ok && i < n; i++) {
        layout->slot[i] = SC_NO_SLOT;
        if (lives->first[i] == UINT32_MAX)
            continue;
        begin[n_used] = (sc_event){lives->first[i], (uint32_t)i};
        end[n_used++] = (sc_event){lives->last[i], (uint32_t)i};
    }
    if (ok) {
        qsort(begin, n_used, sizeof *begin, by_place);
        qsort(end, n_used, sizeof *end, by_place);
        size_t ended = 0;
        for (size_t i = 0; i < n_used; i++) {
            for (; ended < n_used && end[ended].place < begin[i].place; ended++) {
                uint32_t index = end[ended].index;
                sc_pool *pool = &pools[pool_of(function->registers[index]->type)];
                pool->free[pool->n_free++] = layout->slot[index];
            }
            sc_pool *pool = &pools[pool_of(function->registers[begin[i].index]->type)];
            layout->slot[begin[i].index] = pool->n_free ? pool->free[--pool->n_free] : pool->n_slots++;
        }
        layout->n_words = pools[0].n_slots;
        layout->n_doubles = pools[1].n_slots;
        layout->n_predicates = pools[2].n_slots;
        layout->n_quads = pools[3].n_slots;
    }
    for (unsigned i = 0; i < KR_COUNT(pools); i++)
        free(pools[i].free);
    free(begin);
    free(end);
    return ok;
}

static bool assign_slots(const ptx_function *function, sc_layout *layout)
{
    sc_lives lives;
    layout->slot = calloc(function->n_registers + 1, sizeof *layout->slot);
    bool ok = create_lives(function, layout, &lives) && layout->slot;
    if (ok) {
        weigh_registers(function, &lives);
        find_live(&lives);
        layout->pressure = most_live(&lives);
        ok = colour(function, layout, &lives);
    }
    free_lives(&lives);
    return ok;
}

bool sc__layout_create(const ptx_function *function, sc_layout *ret_layout)
{
    *ret_layout = (sc_layout){0};
    if (find_blocks(function, ret_layout)) {
        find_successors(function, ret_layout);
        if (find_order(function, ret_layout) && assign_slots(function, ret_layout))
            return true;
    }
    sc__layout_free(ret_layout);
    return false;
}

void sc__layout_free(sc_layout *layout)
{
    free(layout->blocks);
    free(layout->order);
    free(layout->block_of);
    free(layout->slot);
    *layout = (sc_layout){0};
}
