/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SC_DECODE_H
#define SC_DECODE_H

/* What the decoder's files share: decode.c (kernels, functions, blocks), operand.c (slots of operands,
 * emitting code), instr.c (which of the decode_*.c decodes an instruction). After a failure `failed` is set
 * and what is emitted never runs. */

#include "softcuda/vm/machine.h"

enum { SC_TEMPORARIES = 8, SC_WORD_BYTES = 128, SC_DOUBLE_BYTES = 256, SC_QUAD_BYTES = 512 };

typedef struct sc_fixup {
    size_t code;           /* whose `more` is the address of */
    const sc_code **where; /* or, not NULL: this place */
    uint32_t block;        /* ... this block; UINT32_MAX: the end of the function */
} sc_fixup;

typedef struct sc_decoder {
    sc_program *program;
    sc_kernel *kernel;
    ptx_problem *problem;
    kr__arena *arena;
    bool failed;

    sc_map constants; /* bits and width to slot */
    sc_map shared;    /* variable to offset */
    size_t constants_capacity;
    size_t functions_capacity;

    const ptx_function *function;
    const ptx_instr *instr;
    sc_layout layout;
    sc_map locals; /* variable to offset in the frame's local bytes */
    uint32_t doubles_at, quads_at, predicates_at;
    sc_code *code;
    size_t n_code, code_capacity;
    size_t *block_at;
    sc_fixup *fixups;
    size_t n_fixups, fixups_capacity;
    uint32_t ordinal;
    unsigned words_used, doubles_used, predicates_used; /* temporaries, for this instruction */
    sc_slot guard;                                      /* SC_NO_SLOT: none */
    sc_slot widen_from, widen_to;                       /* a result that goes to a wider register */
    const char *widen_name;
} sc_decoder;

/* ---- operand.c ---- */

extern sc_code sc__dropped; /* what is emitted after memory ran out; never run */

void sc__out_of_memory(sc_decoder *decoder);
void sc__unsupported(sc_decoder *decoder, const char *why);
bool sc__grow(sc_decoder *decoder, void *list, size_t n, size_t *capacity, size_t size);
sc_code *sc__emit_bare(sc_decoder *decoder, sc_handler *some, sc_handler *all);
sc_code *sc__emit_pair(sc_decoder *decoder, sc_handler *some, sc_handler *all);
sc_code *sc__emit(sc_decoder *decoder, sc_handler *handler);
void sc__fix_to_block(sc_decoder *decoder, size_t code, const sc_code **where, uint32_t block);
void sc__emit_jump(sc_decoder *decoder, uint32_t block);
sc_slot sc__new_word(sc_decoder *decoder);
sc_slot sc__new_double(sc_decoder *decoder);
sc_slot sc__new_predicate(sc_decoder *decoder);
sc_slot sc__new_temporary(sc_decoder *decoder, char width);
char sc__width_of_type(ptx_type type);
sc_slot sc__slot_of(const sc_decoder *decoder, const ptx_register *reg);
sc_slot sc__constant(sc_decoder *decoder, char width, uint64_t bits);
const sc_form *sc__form(sc_decoder *decoder, const char *name);
sc_code *sc__emit_form(sc_decoder *decoder, const char *name, sc_slot d, sc_slot a, sc_slot b);
bool sc__is_entry_parameter(const sc_decoder *decoder, const ptx_variable *variable);
sc_slot sc__address_of(sc_decoder *decoder, const ptx_variable *variable, int64_t offset, char width);
sc_slot sc__special(sc_decoder *decoder, ptx_special which, sc_slot to, char width);
sc_slot sc__source(sc_decoder *decoder, const ptx_operand *operand, char width, ptx_type type);
sc_slot sc__destination(sc_decoder *decoder, const ptx_operand *operand, char width, const char *widen_name);
void sc__finish(sc_decoder *decoder);
sc_slot sc__pack(sc_decoder *decoder, const ptx_operand *operand, ptx_type type, sc_slot to);
void sc__unpack(sc_decoder *decoder, const ptx_operand *operand, ptx_type type, sc_slot from);
sc_function *sc__function_of(const sc_decoder *decoder, const ptx_function *function);

/* ---- instr.c ---- */

void sc__decode_instr(sc_decoder *decoder, const ptx_instr *instr);
bool sc__executes(ptx_op op, const char *name); /* any form of it */

/* ---- decode_alu.c ---- */

const char *sc__widening(ptx_type type);
uint32_t sc__csr_of(const ptx_instr *instr); /* its MXCSR */
void sc__decode_form(sc_decoder *decoder);
void sc__decode_carry(sc_decoder *decoder);
void sc__decode_setp(sc_decoder *decoder);
void sc__decode_set(sc_decoder *decoder);
void sc__decode_logic(sc_decoder *decoder);
void sc__decode_lop3(sc_decoder *decoder);
void sc__decode_mov(sc_decoder *decoder);
void sc__decode_cvta(sc_decoder *decoder);
void sc__decode_isspacep(sc_decoder *decoder);
void sc__decode_policy(sc_decoder *decoder);
void sc__decode_alloca(sc_decoder *decoder);
void sc__decode_stack(sc_decoder *decoder);

/* ---- decode_memory.c ---- */

void sc__fill_access(sc_decoder *decoder, const ptx_operand *operand, ptx_space space, sc_access *access,
                     sc_slot *ret_slot, int64_t *ret_offset);
void sc__set_bytes(sc_access *access, size_t bytes, unsigned n_elements, const char *verb);
unsigned sc__elements_of(const ptx_operand *operand, const ptx_operand *ret_elements[8]);
void sc__decode_load(sc_decoder *decoder);
void sc__decode_store(sc_decoder *decoder);
void sc__decode_atomic(sc_decoder *decoder);
void sc__decode_copy(sc_decoder *decoder);

/* ---- decode_matrix.c ---- */

void sc__decode_load_matrix(sc_decoder *decoder);
void sc__decode_mma(sc_decoder *decoder);
void sc__decode_store_matrix(sc_decoder *decoder);
void sc__decode_move_matrix(sc_decoder *decoder);
void sc__decode_load_tiles(sc_decoder *decoder);
void sc__decode_store_tiles(sc_decoder *decoder);

/* ---- decode_video.c ---- */

void sc__decode_video(sc_decoder *decoder);

/* ---- decode_flow.c ---- */

void sc__value_and_predicate(sc_decoder *decoder, const ptx_operand *operand, sc_slot *d, sc_slot *p);
void sc__decode_barrier(sc_decoder *decoder);
void sc__decode_shuffle(sc_decoder *decoder);
void sc__decode_vote(sc_decoder *decoder);
void sc__decode_match(sc_decoder *decoder);
void sc__decode_redux(sc_decoder *decoder);
void sc__decode_elect(sc_decoder *decoder);
void sc__decode_activemask(sc_decoder *decoder);
void sc__decode_branch(sc_decoder *decoder);
void sc__decode_indexed(sc_decoder *decoder);
void sc__decode_call(sc_decoder *decoder);

#endif
