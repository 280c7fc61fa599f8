/* SPDX-License-Identifier: Apache-2.0 */
#include "softcuda/vm/decode.h"
#include "softcuda/vm/matrix.h"

/* Addresses, loads and stores, atomics, asynchronous copies. */

/* ---- memory ---- */

static unsigned log2_of(size_t value)
{
    return (unsigned)__builtin_ctzll(value);
}

/* Space and address slot of a memory operand. */
void sc__fill_access(sc_decoder *decoder, const ptx_operand *operand, ptx_space space, sc_access *access,
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
        sc__fill_access(decoder, operand, decoder->instr->space, access, ret_slot, ret_offset);
    else
        sc__out_of_memory(decoder);
    return access;
}

void sc__set_bytes(sc_access *access, size_t bytes, unsigned n_elements, const char *verb)
{
    access->bytes = (uint8_t)bytes;
    access->total_bytes = (uint16_t)(bytes * n_elements);
    access->verb = verb;
}

/* The operands of a vector access, one slot an element. */
unsigned sc__elements_of(const ptx_operand *operand, const ptx_operand *ret_elements[8])
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

void sc__decode_load(sc_decoder *decoder)
{
    const ptx_instr *instr = decoder->instr;
    const ptx_operand *elements[8], *from = &instr->operands[1];
    unsigned n = sc__elements_of(&instr->operands[0], elements);
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
        sc__set_bytes(access, bytes, n, "load");
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
            sc__emit_form(decoder, sc__widening(instr->type), finals[i], slots[i], 0);
        else if (sign_extension(instr->type))
            sc__emit_form(decoder, sign_extension(instr->type), slots[i], slots[i], 0);
    }
}

void sc__decode_store(sc_decoder *decoder)
{
    const ptx_instr *instr = decoder->instr;
    const ptx_operand *elements[8];
    unsigned n = sc__elements_of(&instr->operands[1], elements);
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
    sc__set_bytes(access, bytes, n, "store");
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

void sc__decode_atomic(sc_decoder *decoder)
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
    sc__set_bytes(access, bytes, 1, "atomic access");
    access->operate = operate;
    sc_code *code = sc__emit(decoder, sc__run_atomic);
    code->a = address;
    code->imm = offset;
    code->more = access;
    code->d = d;
    code->b = b;
    code->c = c;
}

void sc__decode_copy(sc_decoder *decoder)
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
    sc__fill_access(decoder, &operands[0], PTX_SPACE_SHARED, &transfer->to, &to, &to_offset);
    sc__fill_access(decoder, &operands[1], PTX_SPACE_GLOBAL, &transfer->from, &from, &transfer->from_offset);
    sc__set_bytes(&transfer->to, (size_t)bytes, 1, "store");
    sc__set_bytes(&transfer->from, (size_t)bytes, 1, "load");
    sc_code *code = sc__emit(decoder, sc__run_copy);
    code->a = to;
    code->b = from;
    code->c = size;
    code->imm = to_offset;
    code->more = transfer;
}
