/* SPDX-License-Identifier: Apache-2.0 */
#include "softcuda/vm/decode.h"
#include "softcuda/vm/fp.h"
#include "softcuda/vm/matrix.h"

/* Matrices: ldmatrix, stmatrix, movmatrix, mma and wmma. */

/* ---- ldmatrix and its like ---- */

/* Addresses of rows and the registers of a lane. */
static sc_matrices *matrices_of(sc_decoder *decoder, const ptx_operand *at, const ptx_operand *registers,
                                sc_slot *ret_address, int64_t *ret_offset)
{
    const ptx_instr *instr = decoder->instr;
    const ptx_operand *elements[8];
    const unsigned n = sc__elements_of(registers, elements);
    sc_matrices *matrices = kr__arena_alloc(decoder->arena, sizeof *matrices);
    if (!matrices) {
        sc__out_of_memory(decoder);
        return NULL;
    }
    if (instr->type != PTX_B16 || instr->shape[0] != 8 || instr->shape[1] != 8 || n == 3 || n > 4) {
        sc__unsupported(decoder, NULL);
        return NULL;
    }
    matrices->n = n;
    matrices->transposed = (instr->flags & PTX_TRANS) != 0;
    const bool loads = instr->op != PTX_OP_STMATRIX;
    for (unsigned i = 0; i < n; i++)
        matrices->slot[i] = loads && at ? sc__destination(decoder, elements[i], 'w', NULL)
                                        : sc__source(decoder, elements[i], 'w', PTX_B32);
    if (at) {
        const ptx_space space = instr->space == PTX_SPACE_GENERIC ? PTX_SPACE_GENERIC : PTX_SPACE_SHARED;
        sc__fill_access(decoder, at, space, &matrices->access, ret_address, ret_offset);
        sc__set_bytes(&matrices->access, 16, 1, loads ? "load" : "store");
    }
    return matrices;
}

static void emit_rows(sc_decoder *decoder, sc_handler *handler, unsigned at, unsigned registers)
{
    const ptx_operand *operands = decoder->instr->operands;
    sc_slot address = 0;
    int64_t offset = 0;
    const sc_matrices *matrices =
        matrices_of(decoder, &operands[at], &operands[registers], &address, &offset);
    if (!matrices)
        return;
    sc_code *code = sc__emit(decoder, handler);
    code->a = address;
    code->imm = offset;
    code->more = matrices;
}

void sc__decode_load_matrix(sc_decoder *decoder)
{
    emit_rows(decoder, sc__run_load_matrix, 1, 0);
}

void sc__decode_store_matrix(sc_decoder *decoder)
{
    emit_rows(decoder, sc__run_store_matrix, 0, 1);
}

void sc__decode_move_matrix(sc_decoder *decoder)
{
    const ptx_operand *operands = decoder->instr->operands;
    const sc_matrices *matrices = matrices_of(decoder, NULL, &operands[1], NULL, NULL);
    if (!matrices)
        return;
    const sc_slot d = sc__destination(decoder, &operands[0], 'w', NULL);
    sc_code *code = sc__emit(decoder, sc__run_move_matrix);
    code->d = d;
    code->more = matrices;
}

/* ---- fragments ---- */

static unsigned bits_of(ptx_type type)
{
    switch (type) {
    case PTX_U4:
    case PTX_S4:
        return 4;
    case PTX_U8:
    case PTX_S8:
    case PTX_E4M3:
    case PTX_E5M2:
        return 8;
    case PTX_F16:
    case PTX_BF16:
        return 16;
    case PTX_F64:
        return 64;
    default:
        return 32;
    }
}

/* Of lines x columns; a result's tiles have pairs of columns in a lane. */
static sc_fragment fragment_of(ptx_type type, sc_tile_order order, unsigned lines, unsigned columns,
                               bool is_result)
{
    sc_fragment fragment = {.type = type, .order = order, .lines = (uint16_t)lines};
    const unsigned bits = bits_of(type), reg = bits == 64 ? 64 : 32;
    columns = type == PTX_B1 ? columns / 32 : columns;
    fragment.columns = (uint16_t)columns;
    fragment.bits = (uint8_t)bits;
    fragment.each = (uint8_t)(is_result ? 2 : reg / bits);
    fragment.n_elements = (uint8_t)(lines * columns / SC_LANES);
    fragment.n_registers = (uint8_t)(fragment.n_elements * bits / reg);
    return fragment;
}

/* Registers of a fragment; wmma's of f16 have more than it needs. */
static void take_registers(sc_decoder *decoder, const ptx_operand *operand, bool writes,
                           sc_fragment *fragment)
{
    const ptx_operand *elements[8];
    const unsigned n = sc__elements_of(operand, elements);
    const char width = fragment->bits == 64 ? 'd' : 'w';
    if (n < fragment->n_registers) {
        sc__unsupported(decoder, "too few registers for its shape");
        return;
    }
    for (unsigned i = 0; i < n; i++)
        fragment->slot[i] = writes ? sc__destination(decoder, elements[i], width, NULL)
                                   : sc__source(decoder, elements[i], width, fragment->type);
}

/* ---- mma and wmma.mma ---- */

static void choose_product(sc_mma *mma)
{
    switch (mma->a.type) {
    case PTX_E4M3:
    case PTX_E5M2:
        mma->multiply = sc__multiply_fp8;
        break;
    case PTX_F64:
        mma->multiply = sc__multiply_double;
        break;
    case PTX_B1:
        mma->multiply = sc__multiply_bits;
        break;
    case PTX_U8:
    case PTX_S8:
    case PTX_U4:
    case PTX_S4:
        mma->multiply = sc__multiply_integer;
        break;
    default:
        mma->multiply = mma->a.order >= SC_QUAD_LINES ? sc__multiply_quads : sc__multiply_float;
        break;
    }
}

void sc__decode_mma(sc_decoder *decoder)
{
    const ptx_instr *instr = decoder->instr;
    if ((instr->flags & PTX_SPARSE) || instr->kind) {
        sc__unsupported(decoder, NULL);
        return;
    }
    sc_mma *mma = kr__arena_alloc(decoder->arena, sizeof *mma);
    if (!mma) {
        sc__out_of_memory(decoder);
        return;
    }
    const bool halves = instr->type3 == PTX_NONE; /* wmma.mma of f16 says the types of D and C alone */
    const ptx_type a_type = halves ? PTX_F16 : instr->type2, b_type = halves ? PTX_F16 : instr->type3,
                   c_type = halves ? instr->type2 : instr->type4;
    const unsigned m = instr->shape[0], n = instr->shape[1], k = instr->shape[2];
    const bool quads = m == 8 && k == 4 && a_type == PTX_F16, swapped = n == 32;
    const unsigned lines = quads ? 32 : swapped ? n : m, columns = swapped ? m : n;
    sc_tile_order a_order = lines == 8 ? SC_TILES_FLAT : SC_TILES_TALL, b_order = SC_TILES_FLAT,
                  c_order = SC_TILES_TALL, d_order = SC_TILES_TALL;
    if (quads) {
        a_order = instr->layout & 1 ? SC_QUAD_COLUMNS : SC_QUAD_LINES;
        b_order = instr->layout & 2 ? SC_QUAD_LINES : SC_QUAD_COLUMNS;
        c_order = c_type == PTX_F32 ? SC_QUAD_PAIRS : SC_QUAD_LINES;
        d_order = instr->type == PTX_F32 ? SC_QUAD_PAIRS : SC_QUAD_LINES;
    }
    mma->a = fragment_of(a_type, a_order, lines, k, false);
    mma->b = fragment_of(b_type, b_order, quads ? 32 : columns, k, false);
    mma->c = fragment_of(c_type, c_order, lines, columns, true);
    mma->d = fragment_of(instr->type, d_order, lines, columns, true);
    take_registers(decoder, &instr->operands[swapped ? 2 : 1], false, &mma->a);
    take_registers(decoder, &instr->operands[swapped ? 1 : 2], false, &mma->b);
    take_registers(decoder, &instr->operands[3], false, &mma->c);
    take_registers(decoder, &instr->operands[0], true, &mma->d);
    choose_product(mma);
    mma->step = (uint8_t)(a_type == PTX_TF32 && instr->op == PTX_OP_WMMA_MMA ? 4 : k);
    mma->csr = sc__csr_of(instr);
    mma->saturates = (instr->flags & PTX_SATFINITE) != 0;
    mma->ands = instr->sub == PTX_SUB_AND;
    sc__emit(decoder, sc__run_mma)->more = mma;
}

/* ---- wmma.load and wmma.store ---- */

/* m x k of A, n x k of B, m x n of C and D; of m8n32 all of them with m and n exchanged. */
static void place_tiles(const ptx_instr *instr, sc_tile_access *tiles)
{
    const bool swapped = instr->shape[1] == 32, by_row = (instr->layout & 1) == 0;
    const unsigned m = instr->shape[0], n = instr->shape[1], k = instr->shape[2];
    const bool is_a = instr->op == PTX_OP_WMMA_LOAD_A, is_b = instr->op == PTX_OP_WMMA_LOAD_B;
    const unsigned lines = is_a ? m : is_b ? n : swapped ? n : m;
    if (is_a || is_b) {
        const bool tall = lines >= 16 && is_a != swapped;
        tiles->fragment = fragment_of(instr->type, tall ? SC_TILES_TALL : SC_TILES_FLAT, lines, k, false);
        tiles->by_lines = by_row == is_a;
    } else {
        tiles->fragment = fragment_of(instr->type, SC_TILES_TALL, lines, swapped ? m : n, true);
        tiles->by_lines = by_row != swapped;
    }
}

/* Elements smaller than a byte come and go in words. */
static void use_words(sc_tile_access *tiles)
{
    sc_fragment *fragment = &tiles->fragment;
    const unsigned in_word = fragment->type == PTX_B1 ? 32 : 32u / fragment->bits;
    if (fragment->bits >= 8 && fragment->type != PTX_B1)
        return;
    tiles->stride_shift = (uint8_t)__builtin_ctz(in_word);
    if (fragment->bits == 32)
        return;
    fragment->columns /= (uint16_t)in_word;
    fragment->n_elements /= (uint8_t)in_word;
    fragment->bits = 32;
    fragment->each = 1;
}

/* As CUDA 13.0's assembler has it for sm_90 (seen with nvdisasm): of A and B in shared memory, rows of 16
 * bytes by ldmatrix; else what a register holds, and of C and D a pair; or an element, where neighbours in
 * memory are none in a register and no transposition follows, as it does for elements of 16 bits. */
static uint8_t piece_bytes_of(const sc_tile_access *tiles, bool is_result, ptx_space space)
{
    const sc_fragment *fragment = &tiles->fragment;
    const bool is_wide = fragment->type == PTX_TF32 || fragment->type == PTX_F64;
    const bool together = tiles->by_lines || fragment->bits == 16;
    if (!is_result && !is_wide && together && space == PTX_SPACE_SHARED)
        return 16;
    return (uint8_t)(fragment->bits / 8 * (together ? fragment->each : 1));
}

static void decode_tiles(sc_decoder *decoder, bool loads)
{
    const ptx_instr *instr = decoder->instr;
    const ptx_operand *at = &instr->operands[loads], *registers = &instr->operands[!loads];
    sc_tile_access *tiles = kr__arena_alloc(decoder->arena, sizeof *tiles);
    if (!tiles) {
        sc__out_of_memory(decoder);
        return;
    }
    place_tiles(instr, tiles);
    sc_fragment *fragment = &tiles->fragment;
    const unsigned across = tiles->by_lines ? fragment->columns : fragment->lines;
    const unsigned tight = fragment->type == PTX_B1 ? across * 32 : across;
    use_words(tiles);
    const bool is_ab = instr->op == PTX_OP_WMMA_LOAD_A || instr->op == PTX_OP_WMMA_LOAD_B;
    tiles->piece_bytes = piece_bytes_of(tiles, !is_ab, instr->space);
    take_registers(decoder, registers, loads, fragment);
    if (loads && fragment->type == PTX_F16 && registers->n_elements == 8)
        fragment->n_elements = 16; /* what is left over repeats the others */
    tiles->stride = instr->n_operands > 2 ? sc__source(decoder, &instr->operands[2], 'w', PTX_U32)
                                          : sc__constant(decoder, 'w', tight);
    sc_slot address = 0;
    int64_t offset = 0;
    sc__fill_access(decoder, at, instr->space, &tiles->access, &address, &offset);
    sc__set_bytes(&tiles->access, fragment->bits / 8, 1, loads ? "load" : "store");
    if (!tiles->access.wide_address) {
        const sc_slot wide = sc__new_double(decoder);
        sc__emit_form(decoder, "cvt.u64.u32", wide, address, 0);
        address = wide;
        tiles->access.wide_address = true;
    }
    tiles->address = sc__new_double(decoder);
    sc_code *code = sc__emit(decoder, loads ? sc__run_load_tiles : sc__run_store_tiles);
    code->a = address;
    code->imm = offset;
    code->more = tiles;
}

void sc__decode_load_tiles(sc_decoder *decoder)
{
    decode_tiles(decoder, true);
}

void sc__decode_store_tiles(sc_decoder *decoder)
{
    decode_tiles(decoder, false);
}
