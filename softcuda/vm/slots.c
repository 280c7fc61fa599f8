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

typedef struct sc_lives {
    size_t n_words;         /* of a set */
    uint64_t *in, *out;     /* a set a block */
    uint32_t *first, *last; /* of a register, in places of the order */
    uint64_t *now;
    uint32_t place;
    bool writes; /* which half of visit is wanted */
    uint32_t live_weight, most_weight;
    bool guarded;
    uint8_t *weight; /* of a register, in 32-bit ones of the hardware */
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

static void step_back(void *data, const ptx_register *reg, bool written)
{
    sc_lives *lives = data;
    uint64_t bit = 1ull << reg->index % 64, *word = &lives->now[reg->index / 64];
    if (written != lives->writes)
        return;
    if (written && !lives->guarded && (*word & bit)) {
        *word &= ~bit;
        lives->live_weight -= lives->weight[reg->index];
    } else if (!written && !(*word & bit)) {
        *word |= bit;
        lives->live_weight += lives->weight[reg->index];
    }
}

/* Walks a block backwards from what is live at its end: lives->now becomes what is live at its start. */
static void walk_block(const ptx_function *function, const sc_block_info *block, sc_lives *lives)
{
    for (uint32_t i = block->end; i-- > block->first;) {
        const ptx_instr *instr = &function->instrs[i];
        lives->guarded = instr->guard != NULL;
        lives->writes = true;
        visit_registers(instr, step_back, lives);
        lives->writes = false;
        visit_registers(instr, step_back, lives);
        if (lives->live_weight > lives->most_weight)
            lives->most_weight = lives->live_weight;
    }
}

static uint32_t set_weight(const sc_lives *lives, const uint64_t *set)
{
    uint32_t sum = 0;
    for (size_t w = 0; w < lives->n_words; w++)
        for (uint64_t bits = set[w]; bits; bits &= bits - 1)
            sum += lives->weight[w * 64 + (unsigned)__builtin_ctzll(bits)];
    return sum;
}

static void find_live(const ptx_function *function, sc_layout *layout, sc_lives *lives)
{
    size_t n = lives->n_words;
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t i = layout->n_order; i-- > 0;) {
            uint32_t block = layout->order[i], to;
            uint64_t *out = lives->out + block * n, *in = lives->in + block * n;
            for (uint32_t k = 0; (to = successor(function, layout, block, k)) != UINT32_MAX; k++)
                for (size_t w = 0; w < n; w++)
                    out[w] |= lives->in[to * n + w];
            memcpy(lives->now, out, n * sizeof *out);
            walk_block(function, &layout->blocks[block], lives);
            if (memcmp(in, lives->now, n * sizeof *in) != 0) {
                memcpy(in, lives->now, n * sizeof *in);
                changed = true;
            }
        }
    }
    lives->most_weight = 0;
    for (uint32_t i = 0; i < layout->n_order; i++) {
        uint32_t block = layout->order[i];
        memcpy(lives->now, lives->out + block * n, n * sizeof *lives->now);
        lives->live_weight = set_weight(lives, lives->now);
        if (lives->live_weight > lives->most_weight)
            lives->most_weight = lives->live_weight;
        walk_block(function, &layout->blocks[block], lives);
    }
    layout->pressure = lives->most_weight;
}

/* ---- intervals and slots ---- */

static void extend(sc_lives *lives, uint32_t index, uint32_t place)
{
    if (lives->first[index] > place)
        lives->first[index] = place;
    if (lives->last[index] < place)
        lives->last[index] = place;
}

static void mention(void *data, const ptx_register *reg, bool written)
{
    (void)written;
    sc_lives *lives = data;
    extend(lives, reg->index, lives->place);
}

static void extend_set(const ptx_function *function, sc_lives *lives, const uint64_t *set, uint32_t place)
{
    for (size_t w = 0; w < lives->n_words; w++)
        for (uint64_t bits = set[w]; bits; bits &= bits - 1) {
            size_t index = w * 64 + (unsigned)__builtin_ctzll(bits);
            if (index < function->n_registers)
                extend(lives, (uint32_t)index, place);
        }
}

static uint32_t find_intervals(const ptx_function *function, const sc_layout *layout, sc_lives *lives)
{
    memset(lives->first, 0xff, function->n_registers * sizeof *lives->first);
    uint32_t place = 1;
    for (uint32_t i = 0; i < layout->n_order; i++) {
        uint32_t block = layout->order[i];
        extend_set(function, lives, lives->in + block * lives->n_words, place);
        for (uint32_t k = layout->blocks[block].first; k < layout->blocks[block].end; k++) {
            lives->place = place++;
            visit_registers(&function->instrs[k], mention, lives);
        }
        extend_set(function, lives, lives->out + block * lives->n_words, place++);
    }
    return place;
}

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
    size_t n = function->n_registers, blocks = layout->n_blocks;
    sc_lives lives = {.n_words = (n + 63) / 64};
    layout->slot = calloc(n + 1, sizeof *layout->slot);
    lives.in = calloc(blocks * lives.n_words + 1, sizeof *lives.in);
    lives.out = calloc(blocks * lives.n_words + 1, sizeof *lives.out);
    lives.now = calloc(lives.n_words + 1, sizeof *lives.now);
    lives.first = calloc(n + 1, sizeof *lives.first);
    lives.last = calloc(n + 1, sizeof *lives.last);
    lives.weight = malloc(n + 1);
    bool ok = layout->slot && lives.in && lives.out && lives.now && lives.first && lives.last && lives.weight;
    if (ok) {
        weigh_registers(function, &lives);
        find_live(function, layout, &lives);
        find_intervals(function, layout, &lives);
        ok = colour(function, layout, &lives);
    }
    free(lives.in);
    free(lives.out);
    free(lives.now);
    free(lives.first);
    free(lives.last);
    free(lives.weight);
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
