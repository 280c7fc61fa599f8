/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SC_MATRIX_H
#define SC_MATRIX_H

/*
 * Matrices that a warp holds together in registers.
 *
 * A fragment is a matrix of lines and columns. A of D = A B + C is m lines of k columns, B is n lines of k
 * (it is seen transposed), C and D are m lines of n. A register of each lane, or two of C, make a tile of 8
 * lines: lane 4g + t has line g and, of its columns, those from t * `each` on. wmma's m8n32 is m32n8 of the
 * transposed matrices.
 */

#include "softcuda/vm/machine.h"

enum { SC_LINES = 32, SC_COLUMNS = 128 };

typedef enum sc_tile_order {
    SC_TILES_TALL,   /* two tiles below each other, the next columns, the next two lines of tiles */
    SC_TILES_FLAT,   /* a line of tiles after the other */
    SC_QUAD_LINES,   /* m8n8k4 of f16: four matrices, one to each quad and the quad 16 lanes on; a lane has a
                        line */
    SC_QUAD_COLUMNS, /* ... a column */
    SC_QUAD_PAIRS    /* ... pairs, of C in f32 */
} sc_tile_order;

typedef struct sc_fragment {
    ptx_type type;
    sc_tile_order order;
    uint16_t lines, columns;
    uint8_t bits;       /* of an element; those of b1 are words */
    uint8_t each;       /* elements of a tile in a lane */
    uint8_t n_elements; /* in a lane */
    uint8_t n_registers;
    sc_slot slot[8];
} sc_fragment;

/* mma, wmma.mma */
typedef struct sc_mma sc_mma;
typedef uint64_t sc_elements[SC_LINES][SC_COLUMNS];
struct sc_mma {
    sc_fragment a, b, c, d;
    void (*multiply)(const sc_mma *mma, sc_elements a, sc_elements b, sc_elements c);
    uint8_t step;   /* columns whose products are summed at once, of f16, bf16 and tf32 */
    uint32_t csr;   /* of f64 */
    bool saturates; /* of integers */
    bool ands;      /* of bits: .and.popc, not .xor.popc */
};

/* wmma.load, wmma.store: a fragment in memory. */
typedef struct sc_tile_access {
    sc_access access;
    sc_fragment fragment;
    bool by_lines;        /* a line's columns are neighbours */
    uint8_t piece_bytes;  /* of neighbours that hardware moves at once, and so the alignment it asks for */
    sc_slot stride;       /* in elements */
    uint8_t stride_shift; /* from elements to words, of those smaller than a byte */
    sc_slot address;      /* of an element of each lane, for the while of the access */
} sc_tile_access;

/* ldmatrix, stmatrix */
typedef struct sc_matrices {
    sc_access access;
    unsigned n;
    bool transposed;
    sc_slot slot[4];
} sc_matrices;

/* cp.async: from in->b, to in->a; in->c, if any, the bytes that come from there, zeros after them. */
typedef struct sc_transfer {
    sc_access from, to;
    int64_t from_offset;
} sc_transfer;

sc_handler sc__run_copy, sc__run_load_matrix, sc__run_store_matrix, sc__run_move_matrix, sc__run_mma,
    sc__run_load_tiles, sc__run_store_tiles;
/* The product of matrices with elements of that type. */
void sc__multiply_float(const sc_mma *mma, sc_elements a, sc_elements b, sc_elements c);
void sc__multiply_quads(const sc_mma *mma, sc_elements a, sc_elements b, sc_elements c);
void sc__multiply_fp8(const sc_mma *mma, sc_elements a, sc_elements b, sc_elements c);
void sc__multiply_double(const sc_mma *mma, sc_elements a, sc_elements b, sc_elements c);
void sc__multiply_integer(const sc_mma *mma, sc_elements a, sc_elements b, sc_elements c);
void sc__multiply_bits(const sc_mma *mma, sc_elements a, sc_elements b, sc_elements c);

#endif
