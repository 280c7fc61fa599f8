/* SPDX-License-Identifier: Apache-2.0 */
#include "softcuda/vm/decode.h"

/* What decodes each instruction. */

typedef struct sc_row {
    void (*decode)(sc_decoder *decoder);
    sc_handler *handler; /* instead, of one without operands */
    bool moves;          /* the group: a guard becomes a branch around it */
} sc_row;

/* Those that are not here work lane by lane and are in alu.def. */
static const sc_row rows[PTX_OP_COUNT] = {
    [PTX_OP_ADDC] = {.decode = sc__decode_carry},
    [PTX_OP_SUBC] = {.decode = sc__decode_carry},
    [PTX_OP_MADC] = {.decode = sc__decode_carry},
    [PTX_OP_SETP] = {.decode = sc__decode_setp},
    [PTX_OP_SET] = {.decode = sc__decode_set},
    [PTX_OP_AND] = {.decode = sc__decode_logic},
    [PTX_OP_OR] = {.decode = sc__decode_logic},
    [PTX_OP_XOR] = {.decode = sc__decode_logic},
    [PTX_OP_NOT] = {.decode = sc__decode_logic},
    [PTX_OP_LOP3] = {.decode = sc__decode_lop3},
    [PTX_OP_MOV] = {.decode = sc__decode_mov},
    [PTX_OP_CVTA] = {.decode = sc__decode_cvta},
    [PTX_OP_ISSPACEP] = {.decode = sc__decode_isspacep},
    [PTX_OP_LD] = {.decode = sc__decode_load},
    [PTX_OP_LDU] = {.decode = sc__decode_load},
    [PTX_OP_ST] = {.decode = sc__decode_store},
    [PTX_OP_ATOM] = {.decode = sc__decode_atomic},
    [PTX_OP_RED] = {.decode = sc__decode_atomic},
    [PTX_OP_PREFETCH] = {.handler = sc__run_nothing},
    [PTX_OP_PREFETCHU] = {.handler = sc__run_nothing},
    [PTX_OP_APPLYPRIORITY] = {.handler = sc__run_nothing},
    [PTX_OP_DISCARD] = {.handler = sc__run_nothing}, /* what was there may stay there */
    [PTX_OP_CREATEPOLICY_FRACTIONAL] = {.decode = sc__decode_policy},
    [PTX_OP_CREATEPOLICY_RANGE] = {.decode = sc__decode_policy},
    [PTX_OP_CREATEPOLICY_CVT] = {.decode = sc__decode_policy},
    [PTX_OP_ALLOCA] = {.decode = sc__decode_alloca},
    [PTX_OP_STACKSAVE] = {.decode = sc__decode_stack},
    [PTX_OP_STACKRESTORE] = {.decode = sc__decode_stack},
    [PTX_OP_CP_ASYNC] = {.decode = sc__decode_copy},
    [PTX_OP_CP_ASYNC_COMMIT_GROUP] = {.handler = sc__run_nothing},
    [PTX_OP_CP_ASYNC_WAIT_GROUP] = {.handler = sc__run_nothing},
    [PTX_OP_CP_ASYNC_WAIT_ALL] = {.handler = sc__run_nothing},
    [PTX_OP_LDMATRIX] = {.decode = sc__decode_load_matrix, .moves = true},
    [PTX_OP_STMATRIX] = {.decode = sc__decode_store_matrix, .moves = true},
    [PTX_OP_MOVMATRIX] = {.decode = sc__decode_move_matrix, .moves = true},
    [PTX_OP_MMA] = {.decode = sc__decode_mma, .moves = true},
    [PTX_OP_WMMA_LOAD_A] = {.decode = sc__decode_load_tiles, .moves = true},
    [PTX_OP_WMMA_LOAD_B] = {.decode = sc__decode_load_tiles, .moves = true},
    [PTX_OP_WMMA_LOAD_C] = {.decode = sc__decode_load_tiles, .moves = true},
    [PTX_OP_WMMA_STORE] = {.decode = sc__decode_store_tiles, .moves = true},
    [PTX_OP_WMMA_MMA] = {.decode = sc__decode_mma, .moves = true},
    [PTX_OP_VADD] = {.decode = sc__decode_video},
    [PTX_OP_VADD2] = {.decode = sc__decode_video},
    [PTX_OP_VADD4] = {.decode = sc__decode_video},
    [PTX_OP_VSUB] = {.decode = sc__decode_video},
    [PTX_OP_VSUB2] = {.decode = sc__decode_video},
    [PTX_OP_VSUB4] = {.decode = sc__decode_video},
    [PTX_OP_VABSDIFF] = {.decode = sc__decode_video},
    [PTX_OP_VABSDIFF2] = {.decode = sc__decode_video},
    [PTX_OP_VABSDIFF4] = {.decode = sc__decode_video},
    [PTX_OP_VMIN] = {.decode = sc__decode_video},
    [PTX_OP_VMIN2] = {.decode = sc__decode_video},
    [PTX_OP_VMIN4] = {.decode = sc__decode_video},
    [PTX_OP_VMAX] = {.decode = sc__decode_video},
    [PTX_OP_VMAX2] = {.decode = sc__decode_video},
    [PTX_OP_VMAX4] = {.decode = sc__decode_video},
    [PTX_OP_VAVRG2] = {.decode = sc__decode_video},
    [PTX_OP_VAVRG4] = {.decode = sc__decode_video},
    [PTX_OP_VSHL] = {.decode = sc__decode_video},
    [PTX_OP_VSHR] = {.decode = sc__decode_video},
    [PTX_OP_VSET] = {.decode = sc__decode_video},
    [PTX_OP_VSET2] = {.decode = sc__decode_video},
    [PTX_OP_VSET4] = {.decode = sc__decode_video},
    [PTX_OP_VMAD] = {.decode = sc__decode_video},
    [PTX_OP_BAR] = {.decode = sc__decode_barrier, .moves = true}, /* barrier too */
    [PTX_OP_MEMBAR] = {.handler = sc__run_fence},
    [PTX_OP_FENCE] = {.handler = sc__run_fence},
    [PTX_OP_SHFL] = {.decode = sc__decode_shuffle, .moves = true},
    [PTX_OP_VOTE] = {.decode = sc__decode_vote, .moves = true},
    [PTX_OP_MATCH] = {.decode = sc__decode_match, .moves = true},
    [PTX_OP_REDUX] = {.decode = sc__decode_redux, .moves = true},
    [PTX_OP_ELECT] = {.decode = sc__decode_elect, .moves = true},
    [PTX_OP_ACTIVEMASK] = {.decode = sc__decode_activemask, .moves = true},
    [PTX_OP_BRA] = {.decode = sc__decode_branch},
    [PTX_OP_BRX_IDX] = {.decode = sc__decode_indexed, .moves = true},
    [PTX_OP_CALL] = {.decode = sc__decode_call, .moves = true},
    [PTX_OP_RET] = {.handler = sc__run_return, .moves = true},
    [PTX_OP_EXIT] = {.handler = sc__run_exit, .moves = true},
    [PTX_OP_TRAP] = {.handler = sc__run_trap, .moves = true},
    [PTX_OP_BRKPT] = {.handler = sc__run_trap, .moves = true},
    [PTX_OP_NANOSLEEP] = {.handler = sc__run_sleep, .moves = true},
    [PTX_OP_PMEVENT] = {.handler = sc__run_nothing},
    [PTX_OP_PMEVENT_MASK] = {.handler = sc__run_nothing},
    [PTX_OP_GRIDDEPCONTROL_WAIT] = {.handler = sc__run_nothing},
    [PTX_OP_GRIDDEPCONTROL_LAUNCH] = {.handler = sc__run_nothing},
};

/* add, sub and mad are those of extended precision where they write the carry. */
static void decode(sc_decoder *decoder)
{
    const ptx_instr *instr = decoder->instr;
    const sc_row *row = &rows[instr->op];
    if (row->handler)
        sc__emit(decoder, row->handler);
    else if (instr->flags & PTX_CC)
        sc__decode_carry(decoder);
    else if (row->decode)
        row->decode(decoder);
    else
        sc__decode_form(decoder);
}

void sc__decode_instr(sc_decoder *decoder, const ptx_instr *instr)
{
    decoder->instr = instr;
    decoder->words_used = decoder->doubles_used = decoder->predicates_used = 0;
    decoder->guard = SC_NO_SLOT;
    sc_slot guard = instr->guard
                        ? sc__slot_of(decoder, instr->guard) | (instr->guard_negated ? SC_NEGATED : 0)
                        : SC_NO_SLOT;
    if (instr->guard && rows[instr->op].moves) {
        size_t around = decoder->n_code;
        sc__emit_bare(decoder, sc__run_branch, sc__run_branch)->a = guard ^ SC_NEGATED;
        decode(decoder);
        sc__emit_bare(decoder, sc__run_join, sc__run_join);
        if (sc__grow(decoder, &decoder->fixups, decoder->n_fixups, &decoder->fixups_capacity,
                     sizeof *decoder->fixups))
            /* to the code after the join: a block's number cannot say it, so the distance does */
            decoder->code[around].imm = (int64_t)(decoder->n_code - around);
    } else {
        if (instr->op != PTX_OP_BRA)
            decoder->guard = guard;
        decode(decoder);
    }
    decoder->guard = SC_NO_SLOT;
    decoder->ordinal++;
}

bool sc__executes(ptx_op op, const char *name)
{
    return rows[op].decode || rows[op].handler || sc__has_form(name);
}
