/* SPDX-License-Identifier: Apache-2.0 */
#include "softcuda/vm/decode.h"
#include "softcuda/vm/fp.h"

#include <string.h>

/* How each instruction becomes code: those of alu.def by their spelling, the others by decode_of()'s table.
 */

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
    uint32_t flag;
    const char *name;
} spelled_flags[] = {
    /* in the order alu.def spells them */
    {PTX_LEFT, "l"},      {PTX_RIGHT, "r"},      {PTX_HI, "hi"},
    {PTX_LO, "lo"},       {PTX_WIDE, "wide"},    {PTX_APPROX, "approx"},
    {PTX_FULL, "full"},   {PTX_SAT, "sat"},      {PTX_SATFINITE, "satfinite"},
    {PTX_RELU, "relu"},   {PTX_NAN_FLAG, "nan"}, {PTX_XORSIGN_ABS, "xorsign_abs"},
    {PTX_CLAMP, "clamp"}, {PTX_WRAP, "wrap"},    {PTX_SHIFTAMT, "shiftamt"},
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
    if (instr->op == PTX_OP_TESTP)
        add_part(name, test_name(instr->sub));
    if (instr->op == PTX_OP_CVT && instr->round >= PTX_RNI && is_float(instr->type))
        add_part(name, "rint");
    for (size_t i = 0; i < KR_COUNT(spelled_flags); i++)
        if (instr->flags & spelled_flags[i].flag)
            add_part(name, spelled_flags[i].name);
    add_part(name, kr__ptx_type_name(instr->type));
    if (instr->type2 != PTX_NONE)
        add_part(name, kr__ptx_type_name(instr->type2));
}

static uint32_t csr_of(const ptx_instr *instr)
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
static const char *widening(ptx_type type)
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
    if (n > instr->n_operands || n > KR_COUNT(slots)) {
        sc__unsupported(decoder, "too few operands");
        return;
    }
    for (size_t i = 1; i < n; i++)
        slots[i] =
            sc__source(decoder, &instr->operands[i], found->shape[i], operand_type(instr, (unsigned)i));
    slots[0] = sc__destination(decoder, &instr->operands[0], found->shape[0], widening(instr->type));
    sc_code *code = sc__emit_pair(decoder, found->handler[0], found->handler[1]);
    code->d = slots[0];
    code->a = slots[1];
    code->b = slots[2];
    code->c = slots[3];
    code->e = slots[4];
    code->f = csr_of(instr);
    sc__finish(decoder);
}

static void decode_form(sc_decoder *decoder)
{
    sc_name name = {0};
    spell(decoder->instr, operation_name(decoder->instr->op), &name);
    decode_form_named(decoder, name.text);
}

/* add.cc, addc, mad.lo.cc ...: imm bit 0 writes the carry, bit 1 reads it. */
static void decode_carry(sc_decoder *decoder)
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
    code->f = csr_of(instr);
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

static void decode_setp(sc_decoder *decoder)
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
static void decode_set(sc_decoder *decoder)
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

static void decode_logic(sc_decoder *decoder)
{
    const ptx_instr *instr = decoder->instr;
    if (instr->type != PTX_PRED) {
        decode_form(decoder);
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

static void decode_mov(sc_decoder *decoder)
{
    const ptx_instr *instr = decoder->instr;
    const ptx_operand *to = &instr->operands[0], *from = &instr->operands[1];
    if (instr->type == PTX_PRED) {
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
    } else {
        decode_form(decoder);
    }
}

static int window_of(ptx_space space)
{
    switch (space) {
    case PTX_SPACE_SHARED:
        return SC_WINDOW_SHARED;
    case PTX_SPACE_LOCAL:
        return SC_WINDOW_LOCAL;
    case PTX_SPACE_PARAM:
        return SC_WINDOW_PARAM;
    default:
        return SC_WINDOW_GLOBAL;
    }
}

static void decode_cvta(sc_decoder *decoder)
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

static void decode_isspacep(sc_decoder *decoder)
{
    const ptx_instr *instr = decoder->instr;
    sc_slot a = sc__source(decoder, &instr->operands[1], 'd', PTX_U64);
    sc_code *code = sc__emit(decoder, sc__run_isspacep);
    code->d = sc__destination(decoder, &instr->operands[0], 'p', NULL);
    code->a = a;
    code->imm = window_of(instr->space);
}

/* ---- memory ---- */

static unsigned log2_of(size_t value)
{
    return (unsigned)__builtin_ctzll(value);
}

/* Space and address slot of a memory operand. */
static void fill_access(sc_decoder *decoder, const ptx_operand *operand, ptx_space space, sc_access *access,
                        sc_slot *ret_slot, int64_t *ret_offset)
{
    space = space == PTX_SPACE_CONST ? PTX_SPACE_GLOBAL : space;
    if (space == PTX_SPACE_PARAM && !decoder->function->is_entry)
        space = PTX_SPACE_LOCAL;
    *ret_offset = operand->offset;
    access->wide_address = true;
    if (operand->reg) {
        access->wide_address = sc__width_of_type(operand->reg->type) == 'd';
        *ret_slot = sc__slot_of(decoder, operand->reg);
        if (!access->wide_address && (space == PTX_SPACE_GLOBAL || space == PTX_SPACE_GENERIC)) {
            ptx_operand reg = {.kind = PTX_OPERAND_REGISTER, .reg = operand->reg};
            *ret_slot = sc__source(decoder, &reg, 'd', PTX_U64);
            access->wide_address = true;
        }
    } else if (operand->variable) {
        ptx_space own = operand->variable->space;
        if (space == PTX_SPACE_GENERIC)
            space = own == PTX_SPACE_CONST ? PTX_SPACE_GLOBAL : own;
        if (own == PTX_SPACE_PARAM)
            space = sc__is_entry_parameter(decoder, operand->variable) ? PTX_SPACE_PARAM : PTX_SPACE_LOCAL;
        access->wide_address = space != PTX_SPACE_SHARED;
        *ret_slot =
            sc__address_of(decoder, operand->variable, operand->offset, access->wide_address ? 'd' : 'w');
        *ret_offset = 0;
    } else {
        *ret_slot = sc__constant(decoder, 'd', (uint64_t)operand->offset);
        *ret_offset = 0;
    }
    access->space = space;
    access->site = decoder->kernel->n_sites++;
}

static sc_access *decode_address(sc_decoder *decoder, const ptx_operand *operand, sc_slot *ret_slot,
                                 int64_t *ret_offset)
{
    sc_access *access = kr__arena_alloc(decoder->arena, sizeof *access);
    if (access)
        fill_access(decoder, operand, decoder->instr->space, access, ret_slot, ret_offset);
    else
        sc__out_of_memory(decoder);
    return access;
}

static void set_bytes(sc_access *access, size_t bytes, unsigned n_elements, const char *verb)
{
    access->bytes = (uint8_t)bytes;
    access->total_bytes = (uint16_t)(bytes * n_elements);
    access->verb = verb;
}

/* The operands of a vector access, one slot an element. */
static unsigned elements_of(const ptx_operand *operand, const ptx_operand *ret_elements[8])
{
    if (operand->kind != PTX_OPERAND_VECTOR) {
        ret_elements[0] = operand;
        return 1;
    }
    unsigned n = operand->n_elements < 8 ? operand->n_elements : 8;
    for (unsigned i = 0; i < n; i++)
        ret_elements[i] = &operand->elements[i];
    return n;
}

static const char *sign_extension(ptx_type type)
{
    return type == PTX_S8 ? "cvt.s32.s8" : type == PTX_S16 ? "cvt.s32.s16" : NULL;
}

static void decode_load(sc_decoder *decoder)
{
    const ptx_instr *instr = decoder->instr;
    const ptx_operand *elements[8], *from = &instr->operands[1];
    unsigned n = elements_of(&instr->operands[0], elements);
    size_t bytes = kr__ptx_type_bytes(instr->type);
    if (bytes == 0 || bytes > 8 || n == 3 || n > 4) {
        sc__unsupported(decoder, NULL);
        return;
    }
    char width = bytes == 8 ? 'd' : 'w';
    sc_slot slots[4] = {SC_NO_SLOT, SC_NO_SLOT, SC_NO_SLOT, SC_NO_SLOT}, finals[4] = {0};
    for (unsigned i = 0; i < n; i++) {
        if (elements[i]->kind == PTX_OPERAND_SINK)
            continue;
        if (elements[i]->kind != PTX_OPERAND_REGISTER) {
            sc__unsupported(decoder, "a destination of this kind");
            return;
        }
        finals[i] = sc__slot_of(decoder, elements[i]->reg);
        bool widens = width == 'w' && sc__width_of_type(elements[i]->reg->type) == 'd';
        slots[i] = widens ? sc__new_word(decoder) : finals[i];
    }
    if (n == 1 && slots[0] == SC_NO_SLOT)
        slots[0] = sc__new_temporary(decoder, width);
    sc_code *code;
    if (from->variable && !from->reg && sc__is_entry_parameter(decoder, from->variable)) {
        if (from->offset < 0 || (uint64_t)from->offset + bytes * n > from->variable->bytes) {
            sc__unsupported(decoder, "it reads past the end of the parameter");
            return;
        }
        code = sc__emit(decoder, sc__run_parameter);
        code->imm = (int64_t)from->variable->offset + from->offset;
        code->c = (sc_slot)(bytes | n << 8);
    } else {
        sc_slot address = 0;
        int64_t offset = 0;
        sc_access *access = decode_address(decoder, from, &address, &offset);
        if (!access)
            return;
        set_bytes(access, bytes, n, "load");
        code = sc__emit(decoder, sc__accesses()->load[log2_of(bytes)][log2_of(n)]);
        code->a = address;
        code->imm = offset;
        code->more = access;
    }
    code->d = slots[0];
    code->b = slots[1];
    code->e = slots[2];
    code->f = slots[3];
    if (instr->order == PTX_ACQUIRE || instr->order == PTX_SC)
        sc__emit(decoder, sc__run_fence);
    for (unsigned i = 0; i < n; i++) {
        if (elements[i]->kind == PTX_OPERAND_SINK)
            continue;
        if (slots[i] != finals[i])
            sc__emit_form(decoder, widening(instr->type), finals[i], slots[i], 0);
        else if (sign_extension(instr->type))
            sc__emit_form(decoder, sign_extension(instr->type), slots[i], slots[i], 0);
    }
}

static void decode_store(sc_decoder *decoder)
{
    const ptx_instr *instr = decoder->instr;
    const ptx_operand *elements[8];
    unsigned n = elements_of(&instr->operands[1], elements);
    size_t bytes = kr__ptx_type_bytes(instr->type);
    if (bytes == 0 || bytes > 8 || n == 3 || n > 4) {
        sc__unsupported(decoder, NULL);
        return;
    }
    sc_slot slots[4] = {SC_NO_SLOT, SC_NO_SLOT, SC_NO_SLOT, SC_NO_SLOT}, address = 0;
    for (unsigned i = 0; i < n; i++)
        slots[i] = sc__source(decoder, elements[i], bytes == 8 ? 'd' : 'w', instr->type);
    int64_t offset = 0;
    sc_access *access = decode_address(decoder, &instr->operands[0], &address, &offset);
    if (!access)
        return;
    set_bytes(access, bytes, n, "store");
    if (instr->order == PTX_RELEASE || instr->order == PTX_SC)
        sc__emit(decoder, sc__run_fence);
    sc_code *code = sc__emit(decoder, sc__accesses()->store[log2_of(bytes)][log2_of(n)]);
    code->a = address;
    code->imm = offset;
    code->more = access;
    code->d = slots[0];
    code->b = slots[1];
    code->e = slots[2];
    code->f = slots[3];
}

static void decode_atomic(sc_decoder *decoder)
{
    const ptx_instr *instr = decoder->instr;
    bool has_result = instr->op == PTX_OP_ATOM;
    const ptx_operand *operands = instr->operands + has_result;
    sc_atomic *operate = sc__find_atomic(instr->sub, instr->type);
    if (!operate || instr->vector > 1 || instr->n_operands < 2u + has_result) {
        sc__unsupported(decoder, NULL);
        return;
    }
    size_t bytes = kr__ptx_type_bytes(instr->type);
    char width = bytes == 8 ? 'd' : 'w';
    sc_slot b = sc__source(decoder, &operands[1], width, instr->type), address = 0, d = SC_NO_SLOT;
    sc_slot c = instr->n_operands > 2u + has_result && instr->sub == PTX_SUB_CAS
                    ? sc__source(decoder, &operands[2], width, instr->type)
                    : b;
    if (has_result && instr->operands[0].kind != PTX_OPERAND_SINK)
        d = sc__destination(decoder, &instr->operands[0], width, NULL);
    int64_t offset = 0;
    sc_access *access = decode_address(decoder, &operands[0], &address, &offset);
    if (!access)
        return;
    set_bytes(access, bytes, 1, "atomic access");
    access->operate = operate;
    sc_code *code = sc__emit(decoder, sc__run_atomic);
    code->a = address;
    code->imm = offset;
    code->more = access;
    code->d = d;
    code->b = b;
    code->c = c;
}

/* ---- tiles of matrices ---- */

static void decode_copy(sc_decoder *decoder)
{
    const ptx_instr *instr = decoder->instr;
    const ptx_operand *operands = instr->operands;
    int64_t bytes = operands[2].bits, to_offset = 0;
    sc_transfer *transfer = kr__arena_alloc(decoder->arena, sizeof *transfer);
    if (!transfer || (bytes != 4 && bytes != 8 && bytes != 16)) {
        sc__unsupported(decoder, NULL);
        return;
    }
    sc_slot to = 0, from = 0, size = SC_NO_SLOT;
    if (instr->n_operands > 3) {
        bool is_size =
            operands[3].kind == PTX_OPERAND_IMMEDIATE ||
            (operands[3].kind == PTX_OPERAND_REGISTER && sc__width_of_type(operands[3].reg->type) == 'w');
        if (!is_size || instr->n_operands > 4) {
            sc__unsupported(decoder, NULL);
            return;
        }
        size = sc__source(decoder, &operands[3], 'w', PTX_U32);
    }
    fill_access(decoder, &operands[0], PTX_SPACE_SHARED, &transfer->to, &to, &to_offset);
    fill_access(decoder, &operands[1], PTX_SPACE_GLOBAL, &transfer->from, &from, &transfer->from_offset);
    set_bytes(&transfer->to, (size_t)bytes, 1, "store");
    set_bytes(&transfer->from, (size_t)bytes, 1, "load");
    sc_code *code = sc__emit(decoder, sc__run_copy);
    code->a = to;
    code->b = from;
    code->c = size;
    code->imm = to_offset;
    code->more = transfer;
}

static void decode_load_matrix(sc_decoder *decoder)
{
    const ptx_instr *instr = decoder->instr;
    const ptx_operand *elements[8];
    sc_matrices *matrices = kr__arena_alloc(decoder->arena, sizeof *matrices);
    unsigned n = elements_of(&instr->operands[0], elements);
    if (!matrices || instr->type != PTX_B16 || instr->shape[0] != 8 || instr->shape[1] != 8 || n == 3 ||
        n > 4) {
        sc__unsupported(decoder, NULL);
        return;
    }
    sc_slot address = 0;
    int64_t offset = 0;
    ptx_space space = instr->space == PTX_SPACE_GENERIC ? PTX_SPACE_GENERIC : PTX_SPACE_SHARED;
    fill_access(decoder, &instr->operands[1], space, &matrices->access, &address, &offset);
    set_bytes(&matrices->access, 16, 1, "load");
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

static void decode_mma(sc_decoder *decoder)
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
        if (elements_of(&instr->operands[o], elements) != wanted[o]) {
            sc__unsupported(decoder, NULL);
            return;
        }
        for (unsigned k = 0; k < wanted[o]; k++)
            slots[o][k] = o == 0 ? sc__destination(decoder, elements[k], 'w', NULL)
                                 : sc__source(decoder, elements[k], 'w', PTX_B32);
    }
    sc__emit(decoder, sc__run_mma)->more = mma;
}

/* ---- the warp and the block together ---- */

static void decode_barrier(sc_decoder *decoder)
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
static void value_and_predicate(sc_decoder *decoder, const ptx_operand *operand, sc_slot *d, sc_slot *p)
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

static void decode_shuffle(sc_decoder *decoder)
{
    const ptx_instr *instr = decoder->instr;
    sc_slot d, p;
    value_and_predicate(decoder, &instr->operands[0], &d, &p);
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

static void decode_vote(sc_decoder *decoder)
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

static void decode_match(sc_decoder *decoder)
{
    const ptx_instr *instr = decoder->instr;
    bool wide = kr__ptx_type_bytes(instr->type) == 8;
    sc_slot d, p, a = sc__source(decoder, &instr->operands[1], wide ? 'd' : 'w', instr->type);
    value_and_predicate(decoder, &instr->operands[0], &d, &p);
    sc_slot members = sc__source(decoder, &instr->operands[2], 'w', PTX_B32);
    sc_code *code = sc__emit(decoder, sc__run_match);
    code->d = d;
    code->e = p;
    code->a = a;
    code->f = members;
    code->imm = (instr->flags & PTX_ALL ? 1 : 0) | (wide ? 2 : 0);
}

static void decode_redux(sc_decoder *decoder)
{
    const ptx_instr *instr = decoder->instr;
    if (is_float(instr->type)) {
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

static void decode_elect(sc_decoder *decoder)
{
    const ptx_instr *instr = decoder->instr;
    sc_slot d, p, members = sc__source(decoder, &instr->operands[1], 'w', PTX_B32);
    value_and_predicate(decoder, &instr->operands[0], &d, &p);
    sc_code *code = sc__emit(decoder, sc__run_elect);
    code->d = d;
    code->e = p;
    code->f = members;
}

/* ---- control flow ---- */

static uint32_t block_of_label(const sc_decoder *decoder, uint32_t label)
{
    return decoder->layout.block_of[decoder->function->labels[label].target];
}

static void decode_branch(sc_decoder *decoder)
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

static void decode_indexed(sc_decoder *decoder)
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

static void decode_call(sc_decoder *decoder)
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
    } else if (instr->callee->has_body) {
        call->callee = sc__function_of(decoder, instr->callee);
        if (instr->callee->n_params != call->n_arguments || instr->callee->n_returns < call->n_returns) {
            sc__unsupported(decoder, "a call with another number of arguments than the function has");
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

/* ---- one instruction ---- */

typedef void sc_decode(sc_decoder *decoder);

static void decode_nothing(sc_decoder *decoder)
{
    sc__emit(decoder, sc__run_nothing);
}

static void decode_fence(sc_decoder *decoder)
{
    sc__emit(decoder, sc__run_fence);
}

static void decode_sleep(sc_decoder *decoder)
{
    sc__emit(decoder, sc__run_sleep);
}

static void decode_return(sc_decoder *decoder)
{
    sc__emit(decoder, sc__run_return);
}

static void decode_exit(sc_decoder *decoder)
{
    sc__emit(decoder, sc__run_exit);
}

static void decode_trap(sc_decoder *decoder)
{
    sc__emit(decoder, sc__run_trap);
}

static void decode_activemask(sc_decoder *decoder)
{
    sc_slot d = sc__destination(decoder, &decoder->instr->operands[0], 'w', NULL);
    sc__emit(decoder, sc__run_activemask)->d = d;
}

static sc_decode *decode_of(const ptx_instr *instr)
{
    switch (instr->op) {
    case PTX_OP_ADD:
    case PTX_OP_SUB:
    case PTX_OP_MAD:
        return instr->flags & PTX_CC ? decode_carry : decode_form;
    case PTX_OP_ADDC:
    case PTX_OP_SUBC:
    case PTX_OP_MADC:
        return decode_carry;
    case PTX_OP_SETP:
        return decode_setp;
    case PTX_OP_SET:
        return decode_set;
    case PTX_OP_AND:
    case PTX_OP_OR:
    case PTX_OP_XOR:
    case PTX_OP_NOT:
        return decode_logic;
    case PTX_OP_MOV:
        return decode_mov;
    case PTX_OP_CVTA:
        return decode_cvta;
    case PTX_OP_ISSPACEP:
        return decode_isspacep;
    case PTX_OP_LD:
    case PTX_OP_LDU:
        return decode_load;
    case PTX_OP_ST:
        return decode_store;
    case PTX_OP_ATOM:
    case PTX_OP_RED:
        return decode_atomic;
    case PTX_OP_CP_ASYNC:
        return decode_copy;
    case PTX_OP_CP_ASYNC_COMMIT_GROUP:
    case PTX_OP_CP_ASYNC_WAIT_GROUP:
    case PTX_OP_CP_ASYNC_WAIT_ALL:
        return decode_nothing;
    case PTX_OP_LDMATRIX:
        return decode_load_matrix;
    case PTX_OP_MMA:
        return decode_mma;
    case PTX_OP_BAR:
        return decode_barrier;
    case PTX_OP_SHFL:
        return decode_shuffle;
    case PTX_OP_VOTE:
        return decode_vote;
    case PTX_OP_MATCH:
        return decode_match;
    case PTX_OP_REDUX:
        return decode_redux;
    case PTX_OP_ELECT:
        return decode_elect;
    case PTX_OP_ACTIVEMASK:
        return decode_activemask;
    case PTX_OP_BRA:
        return decode_branch;
    case PTX_OP_BRX_IDX:
        return decode_indexed;
    case PTX_OP_CALL:
        return decode_call;
    case PTX_OP_RET:
        return decode_return;
    case PTX_OP_EXIT:
        return decode_exit;
    case PTX_OP_TRAP:
    case PTX_OP_BRKPT:
        return decode_trap;
    case PTX_OP_MEMBAR:
    case PTX_OP_FENCE:
        return decode_fence;
    case PTX_OP_NANOSLEEP:
        return decode_sleep;
    case PTX_OP_PREFETCH:
    case PTX_OP_PREFETCHU:
    case PTX_OP_APPLYPRIORITY:
    case PTX_OP_PMEVENT:
    case PTX_OP_GRIDDEPCONTROL:
    case PTX_OP_SETMAXNREG:
        return decode_nothing;
    default:
        return decode_form;
    }
}

/* Those that move the group: a guard becomes a branch around them. */
static bool moves_group(const ptx_instr *instr)
{
    switch (instr->op) {
    case PTX_OP_BRX_IDX:
    case PTX_OP_CALL:
    case PTX_OP_RET:
    case PTX_OP_EXIT:
    case PTX_OP_TRAP:
    case PTX_OP_BRKPT:
    case PTX_OP_BAR:
    case PTX_OP_NANOSLEEP:
    case PTX_OP_SHFL:
    case PTX_OP_VOTE:
    case PTX_OP_MATCH:
    case PTX_OP_REDUX:
    case PTX_OP_ELECT:
    case PTX_OP_ACTIVEMASK:
    case PTX_OP_LDMATRIX:
    case PTX_OP_MMA:
        return true;
    default:
        return false;
    }
}

void sc__decode_instr(sc_decoder *decoder, const ptx_instr *instr)
{
    decoder->instr = instr;
    decoder->words_used = decoder->doubles_used = decoder->predicates_used = 0;
    decoder->guard = SC_NO_SLOT;
    sc_slot guard = instr->guard
                        ? sc__slot_of(decoder, instr->guard) | (instr->guard_negated ? SC_NEGATED : 0)
                        : SC_NO_SLOT;
    if (instr->guard && moves_group(instr)) {
        size_t around = decoder->n_code;
        sc__emit_bare(decoder, sc__run_branch, sc__run_branch)->a = guard ^ SC_NEGATED;
        decode_of(instr)(decoder);
        sc__emit_bare(decoder, sc__run_join, sc__run_join);
        if (sc__grow(decoder, &decoder->fixups, decoder->n_fixups, &decoder->fixups_capacity,
                     sizeof *decoder->fixups))
            /* to the code after the join: a block's number cannot say it, so the distance does */
            decoder->code[around].imm = (int64_t)(decoder->n_code - around);
    } else {
        if (instr->op != PTX_OP_BRA)
            decoder->guard = guard;
        decode_of(instr)(decoder);
    }
    decoder->guard = SC_NO_SLOT;
    decoder->ordinal++;
}
