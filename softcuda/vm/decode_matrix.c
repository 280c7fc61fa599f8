/* SPDX-License-Identifier: Apache-2.0 */
#include "softcuda/vm/decode.h"

/* Matrices: ldmatrix and mma. */

void sc__decode_load_matrix(sc_decoder *decoder)
{
    const ptx_instr *instr = decoder->instr;
    const ptx_operand *elements[8];
    sc_matrices *matrices = kr__arena_alloc(decoder->arena, sizeof *matrices);
    unsigned n = sc__elements_of(&instr->operands[0], elements);
    if (!matrices || instr->type != PTX_B16 || instr->shape[0] != 8 || instr->shape[1] != 8 || n == 3 ||
        n > 4) {
        sc__unsupported(decoder, NULL);
        return;
    }
    sc_slot address = 0;
    int64_t offset = 0;
    ptx_space space = instr->space == PTX_SPACE_GENERIC ? PTX_SPACE_GENERIC : PTX_SPACE_SHARED;
    sc__fill_access(decoder, &instr->operands[1], space, &matrices->access, &address, &offset);
    sc__set_bytes(&matrices->access, 16, 1, "load");
    matrices->n = n;
    matrices->transposed = (instr->flags & PTX_TRANS) != 0;
    for (unsigned i = 0; i < n; i++)
        matrices->to[i] = sc__destination(decoder, elements[i], 'w', NULL);
    sc_code *code = sc__emit(decoder, sc__run_load_matrix);
    code->a = address;
    code->imm = offset;
    code->more = matrices;
}

static const struct {
    ptx_type d, a, b, c;
    uint8_t k, n_a, n_b; /* and registers of A and B */
} products[] = {
    /* all of 16 x 8 */
    {PTX_F32, PTX_F16, PTX_F16, PTX_F32, 16, 4, 2},   {PTX_F32, PTX_F16, PTX_F16, PTX_F32, 8, 2, 1},
    {PTX_F16, PTX_F16, PTX_F16, PTX_F16, 16, 4, 2},   {PTX_F16, PTX_F16, PTX_F16, PTX_F16, 8, 2, 1},
    {PTX_F32, PTX_BF16, PTX_BF16, PTX_F32, 16, 4, 2}, {PTX_F32, PTX_BF16, PTX_BF16, PTX_F32, 8, 2, 1},
    {PTX_F32, PTX_TF32, PTX_TF32, PTX_F32, 8, 4, 2},  {PTX_F32, PTX_TF32, PTX_TF32, PTX_F32, 4, 2, 1},
    {PTX_S32, PTX_S8, PTX_S8, PTX_S32, 32, 4, 2},     {PTX_S32, PTX_S8, PTX_S8, PTX_S32, 16, 2, 1},
    {PTX_S32, PTX_U8, PTX_U8, PTX_S32, 32, 4, 2},     {PTX_S32, PTX_U8, PTX_U8, PTX_S32, 16, 2, 1},
};

void sc__decode_mma(sc_decoder *decoder)
{
    const ptx_instr *instr = decoder->instr;
    sc_mma *mma = kr__arena_alloc(decoder->arena, sizeof *mma);
    size_t i = 0;
    while (i < KR_COUNT(products) &&
           (products[i].d != instr->type || products[i].a != instr->type2 || products[i].b != instr->type3 ||
            products[i].c != instr->type4 || products[i].k != instr->shape[2]))
        i++;
    if (!mma || i == KR_COUNT(products) || instr->shape[0] != 16 || instr->shape[1] != 8 ||
        instr->layout != 2 || (instr->flags & (PTX_SATFINITE | PTX_SAT))) {
        sc__unsupported(decoder, NULL);
        return;
    }
    *mma = (sc_mma){.d_type = instr->type,
                    .a_type = instr->type2,
                    .b_type = instr->type3,
                    .c_type = instr->type4,
                    .k = products[i].k,
                    .n_a = products[i].n_a,
                    .n_b = products[i].n_b};
    sc_slot *const slots[] = {mma->d, mma->a, mma->b, mma->c};
    const unsigned wanted[] = {instr->type == PTX_F16 ? 2 : 4, mma->n_a, mma->n_b,
                               instr->type4 == PTX_F16 ? 2 : 4};
    for (unsigned o = 0; o < 4; o++) {
        const ptx_operand *elements[8];
        if (sc__elements_of(&instr->operands[o], elements) != wanted[o]) {
            sc__unsupported(decoder, NULL);
            return;
        }
        for (unsigned k = 0; k < wanted[o]; k++)
            slots[o][k] = o == 0 ? sc__destination(decoder, elements[k], 'w', NULL)
                                 : sc__source(decoder, elements[k], 'w', PTX_B32);
    }
    sc__emit(decoder, sc__run_mma)->more = mma;
}
