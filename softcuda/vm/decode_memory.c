/* SPDX-License-Identifier: Apache-2.0 */
#include "softcuda/vm/decode.h"
#include "softcuda/vm/matrix.h"

#include <string.h>

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

/* What goes past the caches that are not coherent is as good as volatile. */
static ptx_order order_of(const ptx_instr *instr)
{
    bool past_caches = strstr(instr->name, ".cg") || strstr(instr->name, ".cv");
    return instr->order == PTX_ORDER_NONE && past_caches ? PTX_VOLATILE : instr->order;
}

static sc_access *decode_address(sc_decoder *decoder, const ptx_operand *operand, sc_slot *ret_slot,
                                 int64_t *ret_offset)
{
    sc_access *access = kr__arena_alloc(decoder->arena, sizeof *access);
    if (!access) {
        sc__out_of_memory(decoder);
        return NULL;
    }
    sc__fill_access(decoder, operand, decoder->instr->space, access, ret_slot, ret_offset);
    access->order = order_of(decoder->instr);
    const bool is_strong = access->order > PTX_WEAK || decoder->instr->op == PTX_OP_ATOM;
    decoder->kernel->blocks_may_wait |= is_strong && access->space != PTX_SPACE_SHARED;
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
    const bool is_quad = bytes == 16 && n == 1;
    if (bytes == 0 || (bytes > 8 && !is_quad) || n == 3 || n > 4) {
        sc__unsupported(decoder, NULL);
        return;
    }
    char width = bytes == 8 ? 'd' : 'w';
    sc_slot slots[4] = {SC_NO_SLOT, SC_NO_SLOT, SC_NO_SLOT, SC_NO_SLOT}, finals[4] = {0};
    if (is_quad) { /* two doubles */
        slots[0] = finals[0] = sc__destination(decoder, elements[0], 'q', NULL);
        slots[1] = finals[1] = slots[0] + SC_DOUBLE_BYTES;
        elements[1] = elements[0];
        bytes = 8;
        n = 2;
    }
    for (unsigned i = 0; i < n && !is_quad; i++) {
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
    const bool is_quad = bytes == 16 && n == 1;
    if (bytes == 0 || (bytes > 8 && !is_quad) || n == 3 || n > 4) {
        sc__unsupported(decoder, NULL);
        return;
    }
    for (unsigned i = 0; i < n; i++)
        if (elements[i]->kind == PTX_OPERAND_SINK) {
            sc__unsupported(decoder, "an element that is not stored");
            return;
        }
    sc_slot slots[4] = {SC_NO_SLOT, SC_NO_SLOT, SC_NO_SLOT, SC_NO_SLOT}, address = 0;
    if (is_quad) { /* two doubles */
        slots[0] = sc__source(decoder, elements[0], 'q', PTX_B128);
        slots[1] = slots[0] + SC_DOUBLE_BYTES;
        bytes = 8;
        n = 2;
    }
    for (unsigned i = 0; i < n && !is_quad; i++)
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

/* An operand of an element of a vector, or of all that there is. */
static sc_slot element_slot(sc_decoder *decoder, const ptx_operand *operand, unsigned i, char width)
{
    const ptx_operand *elements[8];
    sc__elements_of(operand, elements);
    return sc__source(decoder, elements[i], width, decoder->instr->type);
}

/* atom.exch.b128 and atom.cas.b128 */
static void decode_wide_atomic(sc_decoder *decoder)
{
    const ptx_instr *instr = decoder->instr;
    const ptx_operand *operands = instr->operands;
    const bool compares = instr->sub == PTX_SUB_CAS;
    const sc_slot b = sc__source(decoder, &operands[2], 'q', PTX_B128);
    const sc_slot c = compares ? sc__source(decoder, &operands[3], 'q', PTX_B128) : b;
    const sc_slot d =
        operands[0].kind == PTX_OPERAND_SINK ? SC_NO_SLOT : sc__destination(decoder, &operands[0], 'q', NULL);
    sc_slot address = 0;
    int64_t offset = 0;
    sc_access *access = decode_address(decoder, &operands[1], &address, &offset);
    if (!access)
        return;
    sc__set_bytes(access, 16, 1, "atomic access");
    sc_code *code = sc__emit(decoder, sc__run_atomic_wide);
    code->a = address;
    code->imm = offset;
    code->more = access;
    code->d = d;
    code->b = b;
    code->c = c;
    code->e = compares;
}

/* Each element of a vector is an atomic of its own; the first looks after the alignment of all. */
void sc__decode_atomic(sc_decoder *decoder)
{
    const ptx_instr *instr = decoder->instr;
    const bool has_result = instr->op == PTX_OP_ATOM, compares = instr->sub == PTX_SUB_CAS;
    const ptx_operand *operands = instr->operands + has_result;
    if (instr->type == PTX_B128) {
        decode_wide_atomic(decoder);
        return;
    }
    if (!sc__find_atomic(instr->sub, instr->type, &(sc_access){0}) || instr->n_operands < 2u + has_result) {
        sc__unsupported(decoder, NULL);
        return;
    }
    const size_t bytes = kr__ptx_type_bytes(instr->type);
    const char width = bytes == 8 ? 'd' : 'w';
    for (unsigned i = 0; i < instr->vector; i++) {
        const sc_slot b = element_slot(decoder, &operands[1], i, width);
        const sc_slot c = compares ? element_slot(decoder, &operands[2], i, width) : b;
        sc_slot address = 0, d = SC_NO_SLOT;
        int64_t offset = 0;
        if (has_result && instr->operands[0].kind != PTX_OPERAND_SINK) {
            const ptx_operand *results[8];
            sc__elements_of(&instr->operands[0], results);
            d = results[i]->kind == PTX_OPERAND_SINK ? SC_NO_SLOT
                                                     : sc__destination(decoder, results[i], width, NULL);
        }
        sc_access *access = decode_address(decoder, &operands[0], &address, &offset);
        if (!access)
            return;
        sc__set_bytes(access, bytes, i ? 1 : instr->vector, "atomic access");
        sc__find_atomic(instr->sub, instr->type, access);
        sc_code *code = sc__emit(decoder, sc__run_atomic);
        code->a = address;
        code->imm = offset + (int64_t)(i * bytes);
        code->more = access;
        code->d = d;
        code->b = b;
        code->c = c;
    }
}

/* ---- alloca ---- */

void sc__decode_alloca(sc_decoder *decoder)
{
    const ptx_instr *instr = decoder->instr;
    const sc_slot bytes = sc__source(decoder, &instr->operands[1], 'd', PTX_U64);
    const sc_slot d = sc__destination(decoder, &instr->operands[0], 'd', NULL);
    sc_code *code = sc__emit(decoder, sc__run_alloca);
    code->d = d;
    code->a = bytes;
    code->imm = instr->n_operands > 2 ? instr->operands[2].bits : 8;
}

/* stacksave, stackrestore */
void sc__decode_stack(sc_decoder *decoder)
{
    const ptx_operand *operand = &decoder->instr->operands[0];
    if (decoder->instr->op == PTX_OP_STACKSAVE) {
        const sc_slot d = sc__destination(decoder, operand, 'd', NULL);
        sc__emit(decoder, sc__run_stack_save)->d = d;
    } else {
        const sc_slot a = sc__source(decoder, operand, 'd', PTX_U64);
        sc__emit(decoder, sc__run_stack_restore)->a = a;
    }
}

/* ---- cp.async ---- */

/* How many bytes come from the source, or a predicate that says none do. */
static sc_slot copied_bytes(sc_decoder *decoder, int64_t bytes)
{
    const ptx_instr *instr = decoder->instr;
    const ptx_operand *operand = &instr->operands[3];
    const bool is_hint = operand->kind == PTX_OPERAND_REGISTER && kr__ptx_type_bytes(operand->reg->type) == 8;
    if (instr->n_operands < 4 || is_hint)
        return SC_NO_SLOT;
    if (operand->kind != PTX_OPERAND_REGISTER || operand->reg->type != PTX_PRED)
        return sc__source(decoder, operand, 'w', PTX_U32);
    const sc_slot size = sc__new_word(decoder), ignored = sc__source(decoder, operand, 'p', PTX_PRED);
    sc__emit_form(decoder, "selp.b32", size, sc__constant(decoder, 'w', 0),
                  sc__constant(decoder, 'w', (uint64_t)bytes))
        ->c = ignored;
    return size;
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
    const sc_slot size = copied_bytes(decoder, bytes);
    sc_slot to = 0, from = 0;
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
