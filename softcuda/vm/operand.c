/* SPDX-License-Identifier: Apache-2.0 */
#include "softcuda/vm/decode.h"
#include "softcuda/vm/fp.h"

#include <stdlib.h>
#include <string.h>

/* Emitting code, and the slots that operands are read from and results go to. */

/* ---- problems ---- */

void sc__out_of_memory(sc_decoder *decoder)
{
    if (!decoder->failed) {
        decoder->problem->kind = PTX_PROBLEM_MEMORY;
        kr__text_add(&decoder->problem->log, "softcuda: out of host memory\n");
    }
    decoder->failed = true;
}

void sc__unsupported(sc_decoder *decoder, const char *why)
{
    if (decoder->failed)
        return;
    kr__text text = {0};
    kr__ptx_print_instr(decoder->function, decoder->instr, &text);
    decoder->problem->kind = PTX_PROBLEM_UNSUPPORTED;
    decoder->problem->line = decoder->instr->line;
    decoder->problem->n_errors++;
    kr__text_add(&decoder->problem->log,
                 "ptxas application ptx input, line %u; error   : softcuda cannot execute '%s'%s%s\n",
                 decoder->instr->line, text.data ? text.data : "?", why ? ": " : "", why ? why : "");
    kr__text_free(&text);
    decoder->failed = true;
}

bool sc__grow(sc_decoder *decoder, void *list, size_t n, size_t *capacity, size_t size)
{
    if (n < *capacity)
        return true;
    size_t larger = *capacity ? 2 * *capacity : 64;
    void *moved = realloc(*(void **)list, larger * size);
    if (!moved) {
        sc__out_of_memory(decoder);
        return false;
    }
    *(void **)list = moved;
    *capacity = larger;
    return true;
}

/* ---- emitting ---- */

sc_code sc__dropped;

sc_code *sc__emit_bare(sc_decoder *decoder, sc_handler *some, sc_handler *all)
{
    if (!sc__grow(decoder, &decoder->code, decoder->n_code, &decoder->code_capacity, sizeof *decoder->code))
        return &sc__dropped;
    sc_code *code = &decoder->code[decoder->n_code++];
    *code = (sc_code){.handler = {some, all},
                      .d = SC_NO_SLOT,
                      .b = SC_NO_SLOT,
                      .c = SC_NO_SLOT,
                      .e = SC_NO_SLOT,
                      .f = SC_NO_SLOT,
                      .ordinal = decoder->ordinal,
                      .line = decoder->instr ? decoder->instr->line : decoder->function->line};
    return code;
}

sc_code *sc__emit_pair(sc_decoder *decoder, sc_handler *some, sc_handler *all)
{
    if (decoder->guard != SC_NO_SLOT)
        sc__emit_bare(decoder, sc__run_guard, sc__run_guard)->a = decoder->guard;
    return sc__emit_bare(decoder, some, all);
}

sc_code *sc__emit(sc_decoder *decoder, sc_handler *handler)
{
    return sc__emit_pair(decoder, handler, handler);
}

void sc__fix_to_block(sc_decoder *decoder, size_t code, const sc_code **where, uint32_t block)
{
    if (sc__grow(decoder, &decoder->fixups, decoder->n_fixups, &decoder->fixups_capacity,
                 sizeof *decoder->fixups))
        decoder->fixups[decoder->n_fixups++] = (sc_fixup){code, where, block};
}

void sc__emit_jump(sc_decoder *decoder, uint32_t block)
{
    sc__emit_bare(decoder, sc__run_jump, sc__run_jump);
    sc__fix_to_block(decoder, decoder->n_code - 1, NULL, block);
}

/* ---- slots ---- */

sc_slot sc__new_word(sc_decoder *decoder)
{
    if (decoder->words_used == SC_TEMPORARIES) {
        sc__unsupported(decoder, "too many operands");
        return 0;
    }
    return (decoder->layout.n_words + decoder->words_used++) * SC_WORD_BYTES;
}

sc_slot sc__new_double(sc_decoder *decoder)
{
    if (decoder->doubles_used == SC_TEMPORARIES) {
        sc__unsupported(decoder, "too many operands");
        return 0;
    }
    return decoder->doubles_at + (decoder->layout.n_doubles + decoder->doubles_used++) * SC_DOUBLE_BYTES;
}

sc_slot sc__new_predicate(sc_decoder *decoder)
{
    if (decoder->predicates_used == SC_TEMPORARIES) {
        sc__unsupported(decoder, "too many operands");
        return 0;
    }
    return decoder->predicates_at + (decoder->layout.n_predicates + decoder->predicates_used++) * 4;
}

sc_slot sc__new_temporary(sc_decoder *decoder, char width)
{
    return width == 'd'   ? sc__new_double(decoder)
           : width == 'p' ? sc__new_predicate(decoder)
                          : sc__new_word(decoder);
}

char sc__width_of_type(ptx_type type)
{
    return type == PTX_PRED                ? 'p'
           : kr__ptx_type_bytes(type) == 8 ? 'd'
           : kr__ptx_type_bytes(type) <= 4 ? 'w'
                                           : 'q';
}

sc_slot sc__slot_of(const sc_decoder *decoder, const ptx_register *reg)
{
    uint32_t slot = decoder->layout.slot[reg->index];
    switch (sc__width_of_type(reg->type)) {
    case 'p':
        return decoder->predicates_at + slot * 4;
    case 'd':
        return decoder->doubles_at + slot * SC_DOUBLE_BYTES;
    case 'q':
        return decoder->quads_at + slot * SC_QUAD_BYTES;
    default:
        return slot * SC_WORD_BYTES;
    }
}

/* The slot that holds the bits in every lane. */
sc_slot sc__constant(sc_decoder *decoder, char width, uint64_t bits)
{
    uint64_t slot, key;
    if (width != 'd')
        bits = (uint32_t)bits;
    key = bits * 2 + (width == 'd') + (bits >> 63) * 0x9e3779b97f4a7c15ull;
    sc_kernel *kernel = decoder->kernel;
    if (sc__map_get(&decoder->constants, key, &slot)) {
        const char *at = kernel->constants + slot;
        if (width == 'd' ? *(const uint64_t *)at == bits : *(const uint32_t *)at == bits)
            return (sc_slot)slot | SC_BANK_CONSTANT;
    }
    size_t bytes = width == 'd' ? SC_DOUBLE_BYTES : SC_WORD_BYTES;
    if (kernel->constants_bytes + bytes > decoder->constants_capacity) {
        size_t capacity = decoder->constants_capacity ? 2 * decoder->constants_capacity : 8192;
        char *moved = aligned_alloc(64, capacity);
        if (!moved) {
            sc__out_of_memory(decoder);
            return 0;
        }
        if (kernel->constants)
            memcpy(moved, kernel->constants, kernel->constants_bytes);
        free(kernel->constants);
        kernel->constants = moved;
        decoder->constants_capacity = capacity;
    }
    slot = kernel->constants_bytes;
    for (unsigned lane = 0; lane < SC_LANES; lane++)
        if (width == 'd')
            ((uint64_t *)(kernel->constants + slot))[lane] = bits;
        else
            ((uint32_t *)(kernel->constants + slot))[lane] = (uint32_t)bits;
    kernel->constants_bytes += bytes;
    if (!sc__map_put(&decoder->constants, decoder->arena, key, slot))
        sc__out_of_memory(decoder);
    return (sc_slot)slot | SC_BANK_CONSTANT;
}

const sc_form *sc__form(sc_decoder *decoder, const char *name)
{
    const sc_form *found = sc__find_form(name);
    if (!found)
        sc__unsupported(decoder, NULL);
    return found;
}

sc_code *sc__emit_form(sc_decoder *decoder, const char *name, sc_slot d, sc_slot a, sc_slot b)
{
    const sc_form *found = sc__form(decoder, name);
    if (!found)
        return &sc__dropped;
    sc_code *code = sc__emit_pair(decoder, found->handler[0], found->handler[1]);
    code->d = d;
    code->a = a;
    code->b = b;
    code->f = SC_CSR_RN;
    return code;
}

/* ---- addresses of variables ---- */

bool sc__is_entry_parameter(const sc_decoder *decoder, const ptx_variable *variable)
{
    const ptx_function *function = decoder->function;
    return function->is_entry && variable->space == PTX_SPACE_PARAM && variable->index < function->n_params &&
           function->params[variable->index] == variable;
}

/* The address in the variable's own space; for a local one, the slot it is computed into. */
sc_slot sc__address_of(sc_decoder *decoder, const ptx_variable *variable, int64_t offset, char width)
{
    uint64_t at;
    switch (variable->space) {
    case PTX_SPACE_SHARED:
        if (!sc__map_get(&decoder->shared, (uintptr_t)variable, &at))
            at = 0;
        return sc__constant(decoder, width, at + (uint64_t)offset);
    case PTX_SPACE_LOCAL:
    case PTX_SPACE_PARAM: {
        if (sc__is_entry_parameter(decoder, variable))
            return sc__constant(decoder, width, variable->offset + (uint64_t)offset);
        if (!sc__map_get(&decoder->locals, (uintptr_t)variable, &at)) {
            sc__unsupported(decoder, "a variable of another function");
            return 0;
        }
        sc_slot slot = sc__new_temporary(decoder, width);
        sc_code *code = sc__emit(decoder, sc__run_local_address);
        code->d = slot;
        code->e = width == 'd';
        code->imm = (int64_t)at + offset;
        return slot;
    }
    default:
        at = sc__variable_address(decoder->program, variable);
        if (!at)
            sc__unsupported(decoder, "its variable is declared but defined nowhere");
        return sc__constant(decoder, width, at + (uint64_t)offset);
    }
}

/* ---- operands ---- */

static uint64_t immediate_bits(const ptx_operand *operand, ptx_type type)
{
    if (!operand->is_float)
        return (uint64_t)operand->bits;
    double value =
        operand->float_bytes == 4 ? sc_float((uint32_t)operand->bits) : sc_double((uint64_t)operand->bits);
    if (type == PTX_F32 && operand->float_bytes != 4)
        return sc_bits32((float)value);
    if (type == PTX_F64 && operand->float_bytes == 4)
        return sc_bits64(value);
    return (uint64_t)operand->bits;
}

sc_slot sc__special(sc_decoder *decoder, ptx_special which, sc_slot to, char width)
{
    sc_code *code = sc__emit(decoder, sc__run_special);
    code->d = to;
    code->e = width == 'd';
    code->imm = which;
    return to;
}

/* The slot an operand is read from, as a value of `width` and `type`. */
sc_slot sc__source(sc_decoder *decoder, const ptx_operand *operand, char width, ptx_type type)
{
    switch (operand->kind) {
    case PTX_OPERAND_REGISTER: {
        sc_slot slot = sc__slot_of(decoder, operand->reg);
        char have = sc__width_of_type(operand->reg->type);
        if (have == width)
            return slot | (operand->negated ? SC_NEGATED : 0);
        if (have == 'd' && width == 'w') {
            sc_slot low = sc__new_word(decoder);
            sc__emit_form(decoder, "low.64", low, slot, 0);
            return low;
        }
        if (have == 'w' && width == 'd') {
            sc_slot wide = sc__new_double(decoder);
            sc__emit_form(decoder, "cvt.u64.u32", wide, slot, 0);
            return wide;
        }
        break;
    }
    case PTX_OPERAND_IMMEDIATE:
        if (width == 'p')
            return sc__constant(decoder, 'w', operand->bits ? SC_ALL_LANES : 0) |
                   (operand->negated ? SC_NEGATED : 0);
        return sc__constant(decoder, width, immediate_bits(operand, type));
    case PTX_OPERAND_SPECIAL:
        return sc__special(decoder, operand->special, sc__new_temporary(decoder, width), width);
    case PTX_OPERAND_SYMBOL:
        if (operand->function)
            return sc__constant(decoder, width, sc__function_address(decoder->program, operand->function));
        if (operand->variable)
            return sc__address_of(decoder, operand->variable, operand->offset, width);
        break;
    case PTX_OPERAND_VECTOR:
        return sc__pack(decoder, operand, type, sc__new_temporary(decoder, width));
    case PTX_OPERAND_SINK:
        return sc__constant(decoder, width == 'd' ? 'd' : 'w', 0);
    default:
        break;
    }
    sc__unsupported(decoder, "an operand of this kind");
    return 0;
}

/* The slot a result goes to. A register wider than the result gets it by sc__finish(). */
sc_slot sc__destination(sc_decoder *decoder, const ptx_operand *operand, char width, const char *widen_name)
{
    if (operand->kind == PTX_OPERAND_SINK)
        return sc__new_temporary(decoder, width);
    if (operand->kind != PTX_OPERAND_REGISTER) {
        sc__unsupported(decoder, "a destination of this kind");
        return 0;
    }
    sc_slot slot = sc__slot_of(decoder, operand->reg);
    char have = sc__width_of_type(operand->reg->type);
    if (have == width)
        return slot;
    if (have == 'd' && width == 'w' && widen_name) {
        decoder->widen_from = sc__new_word(decoder);
        decoder->widen_to = slot;
        decoder->widen_name = widen_name;
        return decoder->widen_from;
    }
    sc__unsupported(decoder, "a destination of another size");
    return 0;
}

void sc__finish(sc_decoder *decoder)
{
    if (decoder->widen_name)
        sc__emit_form(decoder, decoder->widen_name, decoder->widen_to, decoder->widen_from, 0);
    decoder->widen_name = NULL;
}

/* {a, b}: the value whose lower part is a. */
sc_slot sc__pack(sc_decoder *decoder, const ptx_operand *operand, ptx_type type, sc_slot to)
{
    size_t bytes = kr__ptx_type_bytes(type);
    const ptx_operand *e = operand->elements;
    if (bytes == operand->n_elements && bytes <= 4) { /* of bytes */
        sc_slot pair[2];
        for (unsigned i = 0; i < bytes / 2; i++) {
            const sc_slot low = sc__source(decoder, &e[2 * i], 'w', PTX_B8);
            const sc_slot high = sc__source(decoder, &e[2 * i + 1], 'w', PTX_B8);
            pair[i] = bytes == 2 ? to : sc__new_word(decoder);
            sc__emit_form(decoder, "prmt.b32", pair[i], low, high)->c = sc__constant(decoder, 'w', 0x7640);
        }
        if (bytes == 4)
            sc__emit_form(decoder, "pack.16", to, pair[0], pair[1]);
    } else if (bytes == 16 && operand->n_elements <= 4) {
        for (unsigned i = 0; i < 2; i++) {
            const sc_slot half = to + i * SC_DOUBLE_BYTES;
            if (operand->n_elements == 2) {
                sc__emit_form(decoder, "mov.b64", half, sc__source(decoder, &e[i], 'd', PTX_B64), 0);
            } else {
                const sc_slot low = sc__source(decoder, &e[2 * i], 'w', PTX_B32);
                sc__emit_form(decoder, "pack.32", half, low,
                              sc__source(decoder, &e[2 * i + 1], 'w', PTX_B32));
            }
        }
    } else if (operand->n_elements == 2 && (bytes == 4 || bytes == 8)) {
        sc_slot low = sc__source(decoder, &e[0], 'w', PTX_B32),
                high = sc__source(decoder, &e[1], 'w', PTX_B32);
        sc__emit_form(decoder, bytes == 8 ? "pack.32" : "pack.16", to, low, high);
    } else if (operand->n_elements == 4 && bytes == 8) {
        sc_slot half[2];
        for (unsigned i = 0; i < 2; i++) {
            sc_slot low = sc__source(decoder, &e[2 * i], 'w', PTX_B16),
                    high = sc__source(decoder, &e[2 * i + 1], 'w', PTX_B16);
            half[i] = sc__new_word(decoder);
            sc__emit_form(decoder, "pack.16", half[i], low, high);
        }
        sc__emit_form(decoder, "pack.32", to, half[0], half[1]);
    } else {
        sc__unsupported(decoder, "a vector of this shape");
    }
    return to;
}

void sc__unpack(sc_decoder *decoder, const ptx_operand *operand, ptx_type type, sc_slot from)
{
    size_t bytes = kr__ptx_type_bytes(type), n = operand->n_elements;
    const ptx_operand *e = operand->elements;
    if (n == bytes && n <= 4) { /* of bytes */
        for (size_t i = 0; i < n; i++)
            if (e[i].kind != PTX_OPERAND_SINK)
                sc__emit_form(decoder, "shr.b32", sc__destination(decoder, &e[i], 'w', NULL), from,
                              sc__constant(decoder, 'w', 8 * i));
    } else if ((n == 2 && bytes == 4) || (n == 4 && bytes == 8)) {
        for (size_t i = 0; i < n; i++) {
            if (e[i].kind == PTX_OPERAND_SINK)
                continue;
            sc_slot word = from;
            if (bytes == 8) {
                word = sc__new_word(decoder);
                sc__emit_form(decoder, i < 2 ? "low.64" : "high.64", word, from, 0);
            }
            sc__emit_form(decoder, i % 2 ? "high.32" : "mov.b32", sc__destination(decoder, &e[i], 'w', NULL),
                          word, 0);
        }
    } else if (bytes == 16 && n <= 4) {
        for (size_t i = 0; i < n; i++) {
            const sc_slot half = from + (sc_slot)(i * 2 / n) * SC_DOUBLE_BYTES;
            if (e[i].kind != PTX_OPERAND_SINK)
                sc__emit_form(decoder,
                              n == 2  ? "mov.b64"
                              : i % 2 ? "high.64"
                                      : "low.64",
                              sc__destination(decoder, &e[i], n == 2 ? 'd' : 'w', NULL), half, 0);
        }
    } else if (n == 2 && bytes == 8) {
        for (size_t i = 0; i < n; i++)
            if (e[i].kind != PTX_OPERAND_SINK)
                sc__emit_form(decoder, i ? "high.64" : "low.64", sc__destination(decoder, &e[i], 'w', NULL),
                              from, 0);
    } else {
        sc__unsupported(decoder, "a vector of this shape");
    }
}
