/* SPDX-License-Identifier: Apache-2.0 */
#include "softcuda/vm/decode.h"

/* The warp and the block together; branches and calls. */

/* ---- the warp and the block together ---- */

void sc__decode_barrier(sc_decoder *decoder)
{
    const ptx_instr *instr = decoder->instr;
    const ptx_operand *operand = instr->operands;
    if (instr->flags & PTX_WARP) {
        sc_slot members = sc__source(decoder, operand, 'w', PTX_B32);
        sc__emit(decoder, sc__run_warp_sync)->f = members;
        return;
    }
    bool reduces = (instr->flags & PTX_RED) != 0;
    unsigned n = instr->n_operands;
    sc_slot d = SC_NO_SLOT, votes = SC_NO_SLOT, threads = SC_NO_SLOT;
    if (reduces) {
        d = sc__destination(decoder, &operand[0], instr->boolean == PTX_POPC ? 'w' : 'p', NULL);
        votes = sc__source(decoder, &operand[n - 1], 'p', PTX_PRED);
        operand++;
        n -= 2;
    }
    sc_slot index = sc__source(decoder, &operand[0], 'w', PTX_U32);
    if (n > 1)
        threads = sc__source(decoder, &operand[1], 'w', PTX_U32);
    sc_code *code = sc__emit(decoder, sc__run_barrier);
    code->a = index;
    code->b = threads;
    code->c = votes;
    code->d = d;
    code->imm = instr->flags & PTX_ARRIVE   ? SC_BARRIER_ARRIVE
                : !reduces                  ? SC_BARRIER_SYNC
                : instr->boolean == PTX_AND ? SC_BARRIER_AND
                : instr->boolean == PTX_OR  ? SC_BARRIER_OR
                                            : SC_BARRIER_POPC;
}

/* d or d|p, where d has 32 bits. */
void sc__value_and_predicate(sc_decoder *decoder, const ptx_operand *operand, sc_slot *d, sc_slot *p)
{
    const ptx_operand *value = operand;
    *d = *p = SC_NO_SLOT;
    if (operand->kind == PTX_OPERAND_VECTOR && operand->n_elements == 2) {
        value = &operand->elements[0];
        if (operand->elements[1].kind == PTX_OPERAND_REGISTER)
            *p = sc__slot_of(decoder, operand->elements[1].reg);
    }
    if (value->kind == PTX_OPERAND_REGISTER)
        *d = sc__slot_of(decoder, value->reg);
}

void sc__decode_shuffle(sc_decoder *decoder)
{
    const ptx_instr *instr = decoder->instr;
    sc_slot d, p;
    sc__value_and_predicate(decoder, &instr->operands[0], &d, &p);
    sc_slot a = sc__source(decoder, &instr->operands[1], 'w', PTX_B32),
            b = sc__source(decoder, &instr->operands[2], 'w', PTX_U32);
    sc_slot c = sc__source(decoder, &instr->operands[3], 'w', PTX_U32);
    sc_slot members =
        instr->n_operands > 4 ? sc__source(decoder, &instr->operands[4], 'w', PTX_B32) : SC_NO_SLOT;
    sc_code *code = sc__emit(decoder, sc__run_shuffle);
    code->d = d;
    code->e = p;
    code->a = a;
    code->b = b;
    code->c = c;
    code->f = members;
    code->imm = instr->sub;
}

void sc__decode_vote(sc_decoder *decoder)
{
    const ptx_instr *instr = decoder->instr;
    sc_slot a = sc__source(decoder, &instr->operands[1], 'p', PTX_PRED);
    sc_slot members =
        instr->n_operands > 2 ? sc__source(decoder, &instr->operands[2], 'w', PTX_B32) : SC_NO_SLOT;
    sc_code *code = sc__emit(decoder, sc__run_vote);
    code->d = sc__destination(decoder, &instr->operands[0], instr->flags & PTX_BALLOT ? 'w' : 'p', NULL);
    code->a = a;
    code->f = members;
    code->imm = instr->flags & (PTX_ALL | PTX_ANY | PTX_UNI_MODE | PTX_BALLOT);
}

void sc__decode_match(sc_decoder *decoder)
{
    const ptx_instr *instr = decoder->instr;
    bool wide = kr__ptx_type_bytes(instr->type) == 8;
    sc_slot d, p, a = sc__source(decoder, &instr->operands[1], wide ? 'd' : 'w', instr->type);
    sc__value_and_predicate(decoder, &instr->operands[0], &d, &p);
    sc_slot members = sc__source(decoder, &instr->operands[2], 'w', PTX_B32);
    sc_code *code = sc__emit(decoder, sc__run_match);
    code->d = d;
    code->e = p;
    code->a = a;
    code->f = members;
    code->imm = (instr->flags & PTX_ALL ? 1 : 0) | (wide ? 2 : 0);
}

void sc__decode_redux(sc_decoder *decoder)
{
    const ptx_instr *instr = decoder->instr;
    if (instr->type == PTX_F32) {
        sc__unsupported(decoder, NULL);
        return;
    }
    sc_slot a = sc__source(decoder, &instr->operands[1], 'w', instr->type);
    sc_slot members = sc__source(decoder, &instr->operands[2], 'w', PTX_B32);
    sc_code *code = sc__emit(decoder, sc__run_reduce);
    code->d = sc__destination(decoder, &instr->operands[0], 'w', NULL);
    code->a = a;
    code->b = instr->type == PTX_S32;
    code->f = members;
    code->imm = instr->sub;
}

void sc__decode_elect(sc_decoder *decoder)
{
    const ptx_instr *instr = decoder->instr;
    sc_slot d, p, members = sc__source(decoder, &instr->operands[1], 'w', PTX_B32);
    sc__value_and_predicate(decoder, &instr->operands[0], &d, &p);
    sc_code *code = sc__emit(decoder, sc__run_elect);
    code->d = d;
    code->e = p;
    code->f = members;
}

void sc__decode_activemask(sc_decoder *decoder)
{
    sc_slot d = sc__destination(decoder, &decoder->instr->operands[0], 'w', NULL);
    sc__emit(decoder, sc__run_activemask)->d = d;
}

/* ---- control flow ---- */

static uint32_t block_of_label(const sc_decoder *decoder, uint32_t label)
{
    return decoder->layout.block_of[decoder->function->labels[label].target];
}

void sc__decode_branch(sc_decoder *decoder)
{
    const ptx_instr *instr = decoder->instr;
    uint32_t to = block_of_label(decoder, instr->operands[0].label);
    if (!instr->guard) {
        sc__emit_jump(decoder, to);
        return;
    }
    sc__emit_bare(decoder, sc__run_branch, sc__run_branch)->a =
        sc__slot_of(decoder, instr->guard) | (instr->guard_negated ? SC_NEGATED : 0);
    sc__fix_to_block(decoder, decoder->n_code - 1, NULL, to);
}

void sc__decode_indexed(sc_decoder *decoder)
{
    const ptx_instr *instr = decoder->instr;
    sc_targets *targets =
        kr__arena_alloc(decoder->arena, sizeof *targets + instr->n_targets * sizeof targets->to[0]);
    if (!targets) {
        sc__out_of_memory(decoder);
        return;
    }
    sc_slot index = sc__source(decoder, &instr->operands[0], 'w', PTX_U32);
    targets->n = instr->n_targets;
    for (uint32_t i = 0; i < instr->n_targets; i++)
        sc__fix_to_block(decoder, 0, &targets->to[i], block_of_label(decoder, instr->targets[i]));
    sc_code *code = sc__emit(decoder, sc__run_indexed);
    code->a = index;
    code->more = targets;
}

/* Places of .param variables in the caller's local bytes. */
static bool places_of(sc_decoder *decoder, const ptx_operand *operands, uint32_t n, uint32_t **ret_offsets,
                      uint32_t **ret_bytes)
{
    uint32_t *offsets = kr__arena_alloc(decoder->arena, (n + 1) * sizeof *offsets);
    uint32_t *bytes = kr__arena_alloc(decoder->arena, (n + 1) * sizeof *bytes);
    if (!offsets || !bytes) {
        sc__out_of_memory(decoder);
        return false;
    }
    for (uint32_t i = 0; i < n; i++) {
        uint64_t at;
        if (!operands[i].variable || !sc__map_get(&decoder->locals, (uintptr_t)operands[i].variable, &at)) {
            sc__unsupported(decoder, "a call with arguments that are no .param variables");
            return false;
        }
        offsets[i] = (uint32_t)at;
        bytes[i] = (uint32_t)operands[i].variable->bytes;
    }
    *ret_offsets = offsets;
    *ret_bytes = bytes;
    return true;
}

void sc__decode_call(sc_decoder *decoder)
{
    const ptx_instr *instr = decoder->instr;
    sc_call *call = kr__arena_alloc(decoder->arena, sizeof *call);
    if (!call) {
        sc__out_of_memory(decoder);
        return;
    }
    call->n_arguments = instr->n_arguments;
    call->n_returns = instr->n_returns;
    if (!places_of(decoder, instr->arguments, call->n_arguments, &call->argument, &call->argument_bytes) ||
        !places_of(decoder, instr->returns, call->n_returns, &call->result, &call->result_bytes))
        return;
    sc_handler *handler = sc__run_call;
    sc_slot address = SC_NO_SLOT;
    if (!instr->callee) {
        address = sc__source(decoder, &instr->operands[0], 'd', PTX_U64);
    } else if (kr__ptx_called(instr->callee)->has_body) {
        call->callee = sc__function_of(decoder, instr->callee);
        if (!sc__takes(instr->callee, call)) {
            sc__unsupported(decoder, "a call with other arguments than the function has");
            return;
        }
    } else {
        handler = sc__find_builtin(instr->callee->name);
        if (!handler) {
            decoder->problem->kind = PTX_PROBLEM_UNSUPPORTED;
            decoder->problem->line = instr->line;
            decoder->problem->n_errors++;
            kr__text_add(&decoder->problem->log, "ptxas fatal   : Unresolved extern function '%s'\n",
                         instr->callee->name);
            decoder->failed = true;
            return;
        }
    }
    sc_code *code = sc__emit(decoder, handler);
    code->a = address;
    code->more = call;
}
