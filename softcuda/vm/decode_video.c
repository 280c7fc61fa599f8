/* SPDX-License-Identifier: Apache-2.0 */
#include "softcuda/vm/decode.h"
#include "softcuda/vm/video.h"

/* vadd, vadd2, vadd4 and their like. */

static const struct {
    ptx_op op;
    sc_video_operation operation;
    uint8_t n_parts;
} rows[] = {
    {PTX_OP_VADD, SC_VIDEO_ADD, 1},          {PTX_OP_VADD2, SC_VIDEO_ADD, 2},
    {PTX_OP_VADD4, SC_VIDEO_ADD, 4},         {PTX_OP_VSUB, SC_VIDEO_SUB, 1},
    {PTX_OP_VSUB2, SC_VIDEO_SUB, 2},         {PTX_OP_VSUB4, SC_VIDEO_SUB, 4},
    {PTX_OP_VABSDIFF, SC_VIDEO_ABSDIFF, 1},  {PTX_OP_VABSDIFF2, SC_VIDEO_ABSDIFF, 2},
    {PTX_OP_VABSDIFF4, SC_VIDEO_ABSDIFF, 4}, {PTX_OP_VMIN, SC_VIDEO_MIN, 1},
    {PTX_OP_VMIN2, SC_VIDEO_MIN, 2},         {PTX_OP_VMIN4, SC_VIDEO_MIN, 4},
    {PTX_OP_VMAX, SC_VIDEO_MAX, 1},          {PTX_OP_VMAX2, SC_VIDEO_MAX, 2},
    {PTX_OP_VMAX4, SC_VIDEO_MAX, 4},         {PTX_OP_VAVRG2, SC_VIDEO_AVERAGE, 2},
    {PTX_OP_VAVRG4, SC_VIDEO_AVERAGE, 4},    {PTX_OP_VSHL, SC_VIDEO_SHL, 1},
    {PTX_OP_VSHR, SC_VIDEO_SHR, 1},          {PTX_OP_VSET, SC_VIDEO_SET, 1},
    {PTX_OP_VSET2, SC_VIDEO_SET, 2},         {PTX_OP_VSET4, SC_VIDEO_SET, 4},
    {PTX_OP_VMAD, SC_VIDEO_MAD, 1},
};

static bool is_signed(ptx_type type)
{
    return type == PTX_S32;
}

static sc_video_part part_of(const ptx_selector *selector, ptx_type type)
{
    const uint8_t width = selector->unit == 'b' ? 8 : selector->unit == 'h' ? 16 : 32;
    return (sc_video_part){.width = width,
                           .shift = (uint8_t)(selector->unit ? selector->at[0] * width : 0),
                           .is_signed = is_signed(type)};
}

/* ".h10": part 0 of the result from half 0, part 1 from half 1; not written, they are a's, or b's. */
static void choose(const ptx_selector *selector, unsigned n_parts, unsigned first, uint8_t choice[4])
{
    for (unsigned i = 0; i < n_parts; i++)
        choice[i] = (uint8_t)(selector->unit ? selector->at[selector->n - 1 - i] : first + i);
}

/* No device since sm_50 has these instructions: the driver makes others of them, and of some forms ones that
 * give something else than PTX says (recorded on an H200). Whatever was given here would be wrong for
 * someone. */
static bool is_disputed(const ptx_instr *instr, sc_video_operation operation)
{
    const bool chooses = instr->sub == PTX_SUB_MIN || instr->sub == PTX_SUB_MAX;
    switch (operation) {
    case SC_VIDEO_MAD:
        return (instr->flags & PTX_SAT) || (instr->scale & (PTX_SHR7 | PTX_SHR15));
    case SC_VIDEO_SHL:
        return (instr->flags & PTX_SAT) || chooses;
    case SC_VIDEO_SUB:
        return chooses;
    default:
        return false;
    }
}

void sc__decode_video(sc_decoder *decoder)
{
    const ptx_instr *instr = decoder->instr;
    const ptx_operand *operands = instr->operands;
    sc_video *video = kr__arena_alloc(decoder->arena, sizeof *video);
    size_t i = 0;
    while (i + 1 < KR_COUNT(rows) && rows[i].op != instr->op)
        i++;
    if (!video) {
        sc__out_of_memory(decoder);
        return;
    }
    if (is_disputed(instr, rows[i].operation) || (rows[i].n_parts == 1 && operands[0].selector.unit)) {
        sc__unsupported(decoder, "drivers do not agree with PTX about it");
        return;
    }
    const bool sets = rows[i].operation == SC_VIDEO_SET; /* has no type of its own: the result is unsigned */
    const ptx_type d_type = sets ? PTX_U32 : instr->type, a_type = sets ? instr->type : instr->type2,
                   b_type = sets ? instr->type2 : instr->type3;
    video->operation = rows[i].operation;
    video->compare = instr->compare;
    video->second = instr->sub;
    video->a = part_of(&operands[1].selector, a_type);
    video->b = part_of(&operands[2].selector, b_type);
    video->d_signed = is_signed(d_type);
    video->saturates = (instr->flags & PTX_SAT) != 0;
    video->wraps = (instr->flags & PTX_WRAP) != 0;
    video->negates_product = operands[1].negated != operands[2].negated;
    video->negates_addend = instr->n_operands > 3 && operands[3].negated;
    video->adds_one = (instr->scale & PTX_PLUS_ONE) != 0;
    if (rows[i].n_parts > 1) {
        const ptx_selector *written = &operands[0].selector;
        video->width = (uint8_t)(32 / rows[i].n_parts);
        choose(&operands[1].selector, rows[i].n_parts, 0, video->a_choice);
        choose(&operands[2].selector, rows[i].n_parts, rows[i].n_parts, video->b_choice);
        video->written = (uint8_t)(written->unit ? 0 : (1u << rows[i].n_parts) - 1);
        for (unsigned k = 0; k < written->n; k++)
            video->written |= (uint8_t)(1u << written->at[k]);
    }
    const sc_slot a = sc__source(decoder, &operands[1], 'w', PTX_U32) & ~(sc_slot)SC_NEGATED;
    const sc_slot b = sc__source(decoder, &operands[2], 'w', PTX_U32) & ~(sc_slot)SC_NEGATED;
    const sc_slot c =
        instr->n_operands > 3 ? sc__source(decoder, &operands[3], 'w', PTX_U32) & ~(sc_slot)SC_NEGATED : a;
    const sc_slot d = sc__destination(decoder, &operands[0], 'w', NULL);
    sc_code *code = sc__emit(decoder, sc__video_handler(video));
    code->d = d;
    code->a = a;
    code->b = b;
    code->c = c;
    code->more = video;
}
