/* SPDX-License-Identifier: Apache-2.0 */
#include "softcuda/vm/decode.h"
#include "softcuda/vm/fp.h"

#include <string.h>

/* What works lane by lane: moves, and the instructions of alu.def by their spelling. */

/* ---- the instructions of alu.def ---- */

static bool is_float(ptx_type type)
{
    return type >= PTX_F16 && type <= PTX_F64;
}

static const char *operation_name(ptx_op op)
{
    static const char *const names[] = {
#define PTX_OPCODE(id, name, ...) [PTX_OP_##id] = name,
#include "ptx/front/opcodes.def"
#undef PTX_OPCODE
    };
    return names[op];
}

static const char *compare_name(ptx_compare compare)
{
    static const char *const names[] = {
        [PTX_EQ] = "eq",   [PTX_NE] = "ne",     [PTX_LT] = "lt",     [PTX_LE] = "le",     [PTX_GT] = "gt",
        [PTX_GE] = "ge",   [PTX_CMP_LO] = "lo", [PTX_CMP_LS] = "ls", [PTX_CMP_HI] = "hi", [PTX_CMP_HS] = "hs",
        [PTX_EQU] = "equ", [PTX_NEU] = "neu",   [PTX_LTU] = "ltu",   [PTX_LEU] = "leu",   [PTX_GTU] = "gtu",
        [PTX_GEU] = "geu", [PTX_NUM] = "num",   [PTX_NAN] = "nan"};
    return names[compare];
}

static const char *permute_name(ptx_sub sub)
{
    static const char *const names[] = {
        [PTX_SUB_F4E] = "f4e", [PTX_SUB_B4E] = "b4e", [PTX_SUB_RC8] = "rc8",
        [PTX_SUB_ECL] = "ecl", [PTX_SUB_ECR] = "ecr", [PTX_SUB_RC16] = "rc16"};
    return sub < KR_COUNT(names) ? names[sub] : NULL;
}

static const char *test_name(ptx_sub sub)
{
    static const char *const names[] = {[PTX_TEST_FINITE] = "finite", [PTX_TEST_INFINITE] = "infinite",
                                        [PTX_TEST_NUMBER] = "number", [PTX_TEST_NOTANUMBER] = "notanumber",
                                        [PTX_TEST_NORMAL] = "normal", [PTX_TEST_SUBNORMAL] = "subnormal"};
    return names[sub];
}

static const struct {
    uint64_t flag;
    const char *name;
} spelled_flags[] = {
    /* in the order alu.def spells them */
    {PTX_LEFT, "l"},
    {PTX_RIGHT, "r"},
    {PTX_HI, "hi"},
    {PTX_LO, "lo"},
    {PTX_WIDE, "wide"},
    {PTX_APPROX, "approx"},
    {PTX_FULL, "full"},
    {PTX_SAT, "sat"},
    {PTX_SATFINITE, "satfinite"},
    {PTX_RELU, "relu"},
    {PTX_OOB, "oob"}, /* no form has it: which NaN it means is not published */
    {PTX_NAN_FLAG, "nan"},
    {PTX_XORSIGN_ABS, "xorsign_abs"},
    {PTX_CLAMP, "clamp"},
    {PTX_WRAP, "wrap"},
    {PTX_SHIFTAMT, "shiftamt"},
};

typedef struct sc_name {
    char text[64];
    size_t n;
} sc_name;

static void add_part(sc_name *name, const char *part)
{
    size_t n = strlen(part);
    if (name->n + n + 2 > sizeof name->text)
        return;
    if (name->n)
        name->text[name->n++] = '.';
    memcpy(name->text + name->n, part, n + 1);
    name->n += n;
}

/* The spelling alu.def knows an instruction by: without rounding and .ftz, which are MXCSR's. */
static void spell(const ptx_instr *instr, const char *operation, sc_name *name)
{
    add_part(name, operation);
    if (instr->compare)
        add_part(name, compare_name(instr->compare));
    if (instr->op == PTX_OP_PRMT && permute_name(instr->sub))
        add_part(name, permute_name(instr->sub));
    if (instr->op == PTX_OP_TESTP && instr->sub) /* without one the assembler takes it; no form here does */
        add_part(name, test_name(instr->sub));
    if (instr->op == PTX_OP_CVT && instr->round >= PTX_RNI && is_float(instr->type))
        add_part(name, "rint");
    if (instr->round == PTX_RNA)
        add_part(name, "rna");
    if (instr->round == PTX_RS) /* no form has it */
        add_part(name, "rs");
    for (size_t i = 0; i < KR_COUNT(spelled_flags); i++)
        if (instr->flags & spelled_flags[i].flag)
            add_part(name, spelled_flags[i].name);
    add_part(name, kr__ptx_type_name(instr->type));
    if (instr->type2 != PTX_NONE)
        add_part(name, kr__ptx_type_name(instr->type2));
    if (instr->type3 != PTX_NONE)
        add_part(name, kr__ptx_type_name(instr->type3));
}

uint32_t sc__csr_of(const ptx_instr *instr)
{
    uint32_t csr = SC_CSR_RN;
    switch (instr->round) {
    case PTX_RZ:
    case PTX_RZI:
        csr = SC_CSR_RZ;
        break;
    case PTX_RM:
    case PTX_RMI:
        csr = SC_CSR_RM;
        break;
    case PTX_RP:
    case PTX_RPI:
        csr = SC_CSR_RP;
        break;
    default:
        break;
    }
    return csr | (instr->flags & PTX_FTZ ? SC_CSR_FTZ : 0);
}

/* The name of the conversion that widens a result of the type to 64 bits. */
const char *sc__widening(ptx_type type)
{
    switch (type) {
    case PTX_S8:
        return "cvt.s64.s8";
    case PTX_S16:
        return "cvt.s64.s16";
    case PTX_S32:
        return "cvt.s64.s32";
    case PTX_B8:
    case PTX_U8:
        return "cvt.u64.u8";
    case PTX_B16:
    case PTX_U16:
        return "cvt.u64.u16";
    default:
        return "cvt.u64.u32";
    }
}

/* Types of the operands, where a literal's meaning depends on them. */
static ptx_type operand_type(const ptx_instr *instr, unsigned index)
{
    if (instr->op == PTX_OP_CVT || instr->op == PTX_OP_SET)
        return instr->type2;
    if (instr->op == PTX_OP_SLCT && index == 3)
        return instr->type2;
    return instr->type;
}

static void decode_form_named(sc_decoder *decoder, const char *name)
{
    const ptx_instr *instr = decoder->instr;
    const sc_form *found = sc__form(decoder, name);
    if (!found)
        return;
    size_t n = strlen(found->shape);
    sc_slot slots[5] = {SC_NO_SLOT, SC_NO_SLOT, SC_NO_SLOT, SC_NO_SLOT, SC_NO_SLOT};
    if (n != instr->n_operands || n > KR_COUNT(slots)) { /* min and max of three are none of theirs */
        sc__unsupported(decoder, "another number of operands");
        return;
    }
    for (size_t i = 1; i < n; i++)
        slots[i] =
            sc__source(decoder, &instr->operands[i], found->shape[i], operand_type(instr, (unsigned)i));
    slots[0] = sc__destination(decoder, &instr->operands[0], found->shape[0], sc__widening(instr->type));
    sc_code *code = sc__emit_pair(decoder, found->handler[0], found->handler[1]);
    code->d = slots[0];
    code->a = slots[1];
    code->b = slots[2];
    code->c = slots[3];
    code->e = slots[4];
    code->f = sc__csr_of(instr);
    sc__finish(decoder);
}

void sc__decode_form(sc_decoder *decoder)
{
    sc_name name = {0};
    spell(decoder->instr, operation_name(decoder->instr->op), &name);
    decode_form_named(decoder, name.text);
}

/* add.cc, addc, mad.lo.cc ...: imm bit 0 writes the carry, bit 1 reads it. */
void sc__decode_carry(sc_decoder *decoder)
{
    const ptx_instr *instr = decoder->instr;
    bool reads = instr->op == PTX_OP_ADDC || instr->op == PTX_OP_SUBC || instr->op == PTX_OP_MADC;
    const char *operation = instr->op == PTX_OP_ADD || instr->op == PTX_OP_ADDC   ? "addc"
                            : instr->op == PTX_OP_SUB || instr->op == PTX_OP_SUBC ? "subc"
                                                                                  : "madc";
    sc_name name = {0};
    spell(instr, operation, &name);
    const sc_form *found = sc__form(decoder, name.text);
    if (!found)
        return;
    char width = found->shape[0];
    sc_slot a = sc__source(decoder, &instr->operands[1], width, instr->type);
    sc_slot b = sc__source(decoder, &instr->operands[2], width, instr->type);
    sc_slot c = instr->n_operands > 3 ? sc__source(decoder, &instr->operands[3], width, instr->type) : a;
    sc_code *code = sc__emit_pair(decoder, found->handler[0], found->handler[1]);
    code->d = sc__destination(decoder, &instr->operands[0], width, NULL);
    code->a = a;
    code->b = b;
    code->c = c;
    code->imm = (instr->flags & PTX_CC ? 1 : 0) | (reads ? 2 : 0);
}

/* p or p|q. */
static void predicate_pair(sc_decoder *decoder, const ptx_operand *operand, sc_slot *first, sc_slot *second)
{
    *second = SC_NO_SLOT;
    const ptx_operand *p = operand;
    if (operand->kind == PTX_OPERAND_VECTOR && operand->n_elements == 2) {
        p = &operand->elements[0];
        if (operand->elements[1].kind == PTX_OPERAND_REGISTER)
            *second = sc__slot_of(decoder, operand->elements[1].reg);
    }
    *first = p->kind == PTX_OPERAND_REGISTER ? sc__slot_of(decoder, p->reg) : sc__new_predicate(decoder);
}

static sc_code *emit_compare_slots(sc_decoder *decoder, ptx_type type, sc_slot a, sc_slot b)
{
    const ptx_instr *instr = decoder->instr;
    char text[32];
    kr__format(text, sizeof text, "setp.%s.%s", compare_name(instr->compare), kr__ptx_type_name(type));
    const sc_form *found = sc__form(decoder, text);
    if (!found)
        return &sc__dropped;
    sc_slot c = instr->boolean ? sc__source(decoder, &instr->operands[3], 'p', PTX_PRED) : SC_NO_SLOT;
    sc_code *code = sc__emit_pair(decoder, found->handler[0], found->handler[1]);
    code->a = a;
    code->b = b;
    code->c = c;
    code->f = sc__csr_of(instr);
    code->imm = instr->boolean;
    return code;
}

static sc_code *emit_compare(sc_decoder *decoder, ptx_type type)
{
    const ptx_operand *operands = decoder->instr->operands;
    sc_slot a = sc__source(decoder, &operands[1], sc__width_of_type(type), type);
    return emit_compare_slots(decoder, type, a,
                              sc__source(decoder, &operands[2], sc__width_of_type(type), type));
}

void sc__decode_setp(sc_decoder *decoder)
{
    sc_slot first, second;
    ptx_type type = decoder->instr->type;
    predicate_pair(decoder, &decoder->instr->operands[0], &first, &second);
    if (type == PTX_F16X2 || type == PTX_BF16X2) { /* p is of the lower halves, q of the upper */
        ptx_type half = type == PTX_F16X2 ? PTX_F16 : PTX_BF16;
        sc_slot a = sc__source(decoder, &decoder->instr->operands[1], 'w', type),
                high_a = sc__new_word(decoder);
        sc_slot b = sc__source(decoder, &decoder->instr->operands[2], 'w', type),
                high_b = sc__new_word(decoder);
        sc__emit_form(decoder, "high.32", high_a, a, 0);
        sc__emit_form(decoder, "high.32", high_b, b, 0);
        emit_compare_slots(decoder, half, a, b)->d = first;
        if (second != SC_NO_SLOT)
            emit_compare_slots(decoder, half, high_a, high_b)->d = second;
        return;
    }
    sc_code *code = emit_compare(decoder, type);
    code->d = first;
    code->e = second;
}

/* What set gives where the comparison holds. */
static uint32_t set_truth(ptx_type type, bool is_half)
{
    switch (type) {
    case PTX_F32:
        return 0x3f800000;
    case PTX_F16:
    case PTX_F16X2:
        return 0x3c00;
    case PTX_BF16:
    case PTX_BF16X2:
        return 0x3f80;
    default:
        return is_half ? 0xffff : UINT32_MAX;
    }
}

/* setp and a choice between truth and 0. */
static void emit_set(sc_decoder *decoder, ptx_type type, sc_slot d, sc_slot a, sc_slot b, uint32_t truth)
{
    sc_slot holds = sc__new_predicate(decoder);
    emit_compare_slots(decoder, type, a, b)->d = holds;
    sc__emit_form(decoder, "selp.b32", d, sc__constant(decoder, 'w', truth), sc__constant(decoder, 'w', 0))
        ->c = holds;
}

/* set.CMP.dtype.stype, of pairs of halves one half after the other. */
void sc__decode_set(sc_decoder *decoder)
{
    const ptx_instr *instr = decoder->instr;
    bool pair = instr->type2 == PTX_F16X2 || instr->type2 == PTX_BF16X2;
    char width = sc__width_of_type(instr->type2);
    sc_slot d = sc__destination(decoder, &instr->operands[0], 'w', NULL);
    sc_slot a = sc__source(decoder, &instr->operands[1], width, instr->type2);
    sc_slot b = sc__source(decoder, &instr->operands[2], width, instr->type2);
    uint32_t truth = set_truth(instr->type, pair);
    if (!pair) {
        emit_set(decoder, instr->type2, d, a, b, truth);
        return;
    }
    ptx_type half = instr->type2 == PTX_F16X2 ? PTX_F16 : PTX_BF16;
    sc_slot low = sc__new_word(decoder), high = sc__new_word(decoder), high_a = sc__new_word(decoder),
            high_b = sc__new_word(decoder);
    sc__emit_form(decoder, "high.32", high_a, a, 0);
    sc__emit_form(decoder, "high.32", high_b, b, 0);
    emit_set(decoder, half, low, a, b, truth);
    emit_set(decoder, half, high, high_a, high_b, truth);
    sc__emit_form(decoder, "pack.16", d, low, high);
}

/* lop3.BOOL d|p, a, b, c, table, q: p is whether d is not 0, joined with q. */
void sc__decode_lop3(sc_decoder *decoder)
{
    const ptx_instr *instr = decoder->instr;
    sc_slot d, p, slots[4];
    if (!instr->boolean) {
        sc__decode_form(decoder);
        return;
    }
    sc__value_and_predicate(decoder, &instr->operands[0], &d, &p);
    d = d == SC_NO_SLOT ? sc__new_word(decoder) : d;
    for (unsigned i = 0; i < 4; i++)
        slots[i] = sc__source(decoder, &instr->operands[i + 1], 'w', PTX_B32);
    const sc_slot q = sc__source(decoder, &instr->operands[5], 'p', PTX_PRED);
    sc_code *code = sc__emit_form(decoder, "lop3.b32", d, slots[0], slots[1]);
    code->c = slots[2];
    code->e = slots[3];
    code = sc__emit_form(decoder, "setp.ne.b32", p, d, sc__constant(decoder, 'w', 0));
    code->c = q;
    code->imm = instr->boolean;
}

void sc__decode_logic(sc_decoder *decoder)
{
    const ptx_instr *instr = decoder->instr;
    if (instr->type != PTX_PRED) {
        sc__decode_form(decoder);
        return;
    }
    sc_slot a = sc__source(decoder, &instr->operands[1], 'p', PTX_PRED);
    sc_slot b =
        instr->op == PTX_OP_NOT ? SC_NO_SLOT : sc__source(decoder, &instr->operands[2], 'p', PTX_PRED);
    sc_code *code = sc__emit(decoder, instr->op == PTX_OP_NOT ? sc__run_move_predicate : sc__run_predicate);
    code->d = sc__destination(decoder, &instr->operands[0], 'p', NULL);
    code->a = instr->op == PTX_OP_NOT ? a ^ SC_NEGATED : a;
    code->b = b;
    code->imm = instr->op == PTX_OP_AND ? PTX_AND : instr->op == PTX_OP_OR ? PTX_OR : PTX_XOR;
}

void sc__decode_mov(sc_decoder *decoder)
{
    const ptx_instr *instr = decoder->instr;
    const ptx_operand *to = &instr->operands[0], *from = &instr->operands[1];
    if (instr->vector > 1) {
        sc__unsupported(decoder, "it moves a vector");
    } else if (instr->type == PTX_PRED) {
        sc_slot a = sc__source(decoder, from, 'p', PTX_PRED);
        sc_code *code = sc__emit(decoder, sc__run_move_predicate);
        code->d = sc__destination(decoder, to, 'p', NULL);
        code->a = a;
    } else if (to->kind == PTX_OPERAND_VECTOR) {
        sc__unpack(decoder, to, instr->type,
                   sc__source(decoder, from, sc__width_of_type(instr->type), instr->type));
    } else if (from->kind == PTX_OPERAND_SPECIAL && to->kind == PTX_OPERAND_REGISTER) {
        sc__special(decoder, from->special, sc__slot_of(decoder, to->reg), sc__width_of_type(to->reg->type));
    } else if (from->kind == PTX_OPERAND_VECTOR && to->kind == PTX_OPERAND_REGISTER) {
        sc__pack(decoder, from, instr->type, sc__slot_of(decoder, to->reg));
    } else if (instr->type == PTX_B128) {
        const sc_slot a = sc__source(decoder, from, 'q', PTX_B128),
                      d = sc__destination(decoder, to, 'q', NULL);
        sc__emit_form(decoder, "mov.b64", d, a, 0);
        sc__emit_form(decoder, "mov.b64", d + SC_DOUBLE_BYTES, a + SC_DOUBLE_BYTES, 0);
    } else {
        sc__decode_form(decoder);
    }
}

static int window_of(ptx_space space)
{
    switch (space) {
    case PTX_SPACE_SHARED:
    case PTX_SPACE_SHARED_CLUSTER: /* a cluster is one block */
        return SC_WINDOW_SHARED;
    case PTX_SPACE_LOCAL:
        return SC_WINDOW_LOCAL;
    case PTX_SPACE_PARAM:
        return SC_WINDOW_PARAM;
    default:
        return SC_WINDOW_GLOBAL;
    }
}

void sc__decode_cvta(sc_decoder *decoder)
{
    const ptx_instr *instr = decoder->instr;
    int window = window_of(instr->space);
    if (window == SC_WINDOW_PARAM && !decoder->function->is_entry)
        window = SC_WINDOW_LOCAL;
    sc_slot a = sc__source(decoder, &instr->operands[1], 'd', PTX_U64);
    sc_slot d = sc__destination(decoder, &instr->operands[0], 'd', NULL);
    if (window == SC_WINDOW_GLOBAL)
        sc__emit_form(decoder, "mov.b64", d, a, 0);
    else if (instr->flags & PTX_TO)
        sc__emit_form(decoder, "and.b64", d, a, sc__constant(decoder, 'd', SC_IN_WINDOW(~0ull)));
    else
        sc__emit_form(decoder, "or.b64", d, a, sc__constant(decoder, 'd', SC_WINDOW(window)));
}

void sc__decode_isspacep(sc_decoder *decoder)
{
    const ptx_instr *instr = decoder->instr;
    sc_slot a = sc__source(decoder, &instr->operands[1], 'd', PTX_U64);
    sc_code *code = sc__emit(decoder, sc__run_isspacep);
    code->d = sc__destination(decoder, &instr->operands[0], 'p', NULL);
    code->a = a;
    code->e = instr->space == PTX_SPACE_CONST;
    code->imm = window_of(instr->space);
}

/* What an H200's driver makes of a policy: its kind, and a sixteenth of the lines to which it applies. Of a
 * range, where that lies in the cache is no matter here. */
void sc__decode_policy(sc_decoder *decoder)
{
    const ptx_instr *instr = decoder->instr;
    const sc_slot d = sc__destination(decoder, &instr->operands[0], 'd', NULL);
    if (instr->op == PTX_OP_CREATEPOLICY_CVT) {
        sc__emit_form(decoder, "mov.b64", d, sc__source(decoder, &instr->operands[1], 'd', PTX_B64), 0);
        return;
    }
    double fraction = 1;
    if (instr->op == PTX_OP_CREATEPOLICY_FRACTIONAL && instr->n_operands > 1 &&
        instr->operands[1].kind != PTX_OPERAND_IMMEDIATE) {
        sc__unsupported(decoder, "a fraction that is no constant");
        return;
    }
    if (instr->op == PTX_OP_CREATEPOLICY_FRACTIONAL && instr->n_operands > 1)
        fraction = instr->operands[1].float_bytes == 4 ? sc_float((uint32_t)instr->operands[1].bits)
                                                       : sc_double((uint64_t)instr->operands[1].bits);
    const uint64_t sixteenths = fraction <= 0.0625 ? 0 : (uint64_t)ceil(fraction * 16) - 1;
    const uint64_t policy =
        0x10 | (uint64_t)instr->priority[0] << 1 | (instr->priority[1] == PTX_EVICT_FIRST);
    sc__emit_form(decoder, "mov.b64", d, sc__constant(decoder, 'd', policy << 56 | sixteenths << 52), 0);
}
