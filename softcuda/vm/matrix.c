/* SPDX-License-Identifier: Apache-2.0 */
/* ldmatrix, mma and cp.async: what a tiled matrix product is made of on sm_75 and later. */
#include "softcuda/vm/alu.h"

#define EACH_LANE(lane, mask)                                                                \
    for (uint32_t left_ = (mask), lane; left_ && (lane = (uint32_t)__builtin_ctz(left_), 1); \
         left_ &= left_ - 1)

static uint32_t *word_slot(const sc_warp *warp, sc_slot slot)
{
    return (uint32_t *)(warp->bank[slot & 1] + (slot & ~3u));
}

/* Copies are done at once: waiting for them later is then no work. */
const sc_code *sc__run_copy(sc_warp *warp, const sc_code *in)
{
    const sc_transfer *transfer = in->more;
    const uint32_t mask = warp->mask, bytes = transfer->to.total_bytes;
    const uint32_t *sizes = in->c == SC_NO_SLOT ? NULL : word_slot(warp, in->c);
    sc_code from = *in, to = *in;
    char piece[SC_LANES][16] = {{0}};
    from.a = in->b;
    from.imm = transfer->from_offset;
    uint32_t reading = 0;
    EACH_LANE(lane, mask)
    reading |= (uint32_t)(!sizes || sizes[lane] > 0) << lane;
    warp->mask = reading;
    bool ok = reading == 0 || sc__accesses()->translate(warp, &from, &transfer->from);
    if (ok)
        EACH_LANE(lane, reading)
    memcpy(piece[lane], warp->pointers[lane], sizes && sizes[lane] < bytes ? sizes[lane] : bytes);
    warp->mask = mask;
    if (!ok || !sc__accesses()->translate(warp, &to, &transfer->to))
        return NULL;
    EACH_LANE(lane, mask)
    memcpy(warp->pointers[lane], piece[lane], bytes);
    return in + 1;
}

/* Waits for the lanes that are elsewhere; of a warp that has fewer than 32 nothing is defined. */
static const sc_code *wait_for_warp(sc_warp *warp, const sc_code *in)
{
    if (warp->live & ~warp->mask)
        return sc__wait_for(warp, in, SC_ALL_LANES);
    return sc__fault(warp, in, SC_FAULT_ILLEGAL_INSTRUCTION, (unsigned)__builtin_ctz(warp->mask), 0,
                     "a matrix instruction in a warp of %u threads",
                     (unsigned)__builtin_popcount(warp->live));
}

/* Lane 8j + r has the address of row r of matrix j; a lane gets two neighbours of row lane / 4 (.trans: of
 * column). */
const sc_code *sc__run_load_matrix(sc_warp *warp, const sc_code *in)
{
    const sc_matrices *matrices = in->more;
    const uint32_t mask = warp->mask;
    if (mask != SC_ALL_LANES)
        return wait_for_warp(warp, in);
    warp->mask = matrices->n == 4 ? SC_ALL_LANES : (1u << 8 * matrices->n) - 1;
    bool ok = sc__accesses()->translate(warp, in, &matrices->access);
    warp->mask = mask;
    if (!ok)
        return NULL;
    uint16_t rows[4][8][8];
    for (unsigned i = 0; i < 8u * matrices->n; i++)
        memcpy(rows[i / 8][i % 8], warp->pointers[i], sizeof rows[0][0]);
    for (unsigned j = 0; j < matrices->n; j++)
        for (unsigned lane = 0; lane < SC_LANES; lane++) {
            unsigned line = lane / 4, at = 2 * (lane % 4);
            uint32_t low = matrices->transposed ? rows[j][at][line] : rows[j][line][at];
            uint32_t high = matrices->transposed ? rows[j][at + 1][line] : rows[j][line][at + 1];
            word_slot(warp, matrices->to[j])[lane] = low | high << 16;
        }
    return in + 1;
}

/* An operand's element as a number: `index` counts those in a register. */
static double element(ptx_type type, uint32_t bits, unsigned index)
{
    switch (type) {
    case PTX_F16:
        return sc_from_half((uint16_t)(bits >> 16 * index));
    case PTX_BF16:
        return sc_from_bfloat((uint16_t)(bits >> 16 * index));
    case PTX_S8:
        return (int8_t)(bits >> 8 * index);
    case PTX_U8:
        return (uint8_t)(bits >> 8 * index);
    default: /* tf32: the upper 19 bits count */
        return sc_float(bits & ~0x1fffu);
    }
}

static unsigned per_register(ptx_type type)
{
    return type == PTX_F16 || type == PTX_BF16 ? 2 : type == PTX_S8 || type == PTX_U8 ? 4 : 1;
}

/* D = A B + C of 16 x k, k x 8 and 16 x 8. Lane 4g + t holds, of A, rows g and g + 8 and of B, column g,
 * elements t * e and on of each group of 4 e, where e elements share a register; of C and D, rows g and g +
 * 8, columns 2t, 2t + 1. Products are exact and summed in double precision, rounded once. */
const sc_code *sc__run_mma(sc_warp *warp, const sc_code *in)
{
    const sc_mma *mma = in->more;
    if (warp->mask != SC_ALL_LANES)
        return wait_for_warp(warp, in);
    double a[16][32], b[32][8], d[16][8];
    const unsigned ea = per_register(mma->a_type), eb = per_register(mma->b_type);
    const bool integer = mma->d_type == PTX_S32, half_c = mma->c_type == PTX_F16,
               half_d = mma->d_type == PTX_F16;
    sc_set_csr(&warp->csr, SC_CSR_RN);
    for (unsigned lane = 0; lane < SC_LANES; lane++) {
        const unsigned g = lane / 4, t = lane % 4;
        for (unsigned r = 0; r < mma->n_a; r++)
            for (unsigned i = 0; i < ea; i++)
                a[g + 8 * (r & 1)][ea * t + i + 4 * ea * (r >> 1)] =
                    element(mma->a_type, word_slot(warp, mma->a[r])[lane], i);
        for (unsigned r = 0; r < mma->n_b; r++)
            for (unsigned i = 0; i < eb; i++)
                b[eb * t + i + 4 * eb * r][g] = element(mma->b_type, word_slot(warp, mma->b[r])[lane], i);
        for (unsigned k = 0; k < 4; k++) {
            uint32_t bits = word_slot(warp, mma->c[half_c ? k / 2 : k])[lane];
            d[g + 8 * (k / 2)][2 * t + k % 2] = half_c
                                                    ? (double)sc_from_half((uint16_t)(bits >> 16 * (k % 2)))
                                                : integer ? (double)(int32_t)bits
                                                          : (double)sc_float(bits);
        }
    }
    for (unsigned m = 0; m < 16; m++)
        for (unsigned n = 0; n < 8; n++)
            for (unsigned k = 0; k < mma->k; k++)
                d[m][n] += a[m][k] * b[k][n];
    for (unsigned lane = 0; lane < SC_LANES; lane++) {
        const unsigned g = lane / 4, t = lane % 4;
        for (unsigned k = 0; k < 4; k++) {
            const double value = d[g + 8 * (k / 2)][2 * t + k % 2];
            if (half_d)
                ((uint16_t *)&word_slot(warp, mma->d[k / 2])[lane])[k % 2] = sc_to_half(value, SC_CSR_RN);
            else
                word_slot(warp, mma->d[k])[lane] =
                    integer ? (uint32_t)(int64_t)value : sc_bits32(sc_nan32((float)value));
        }
    }
    return in + 1;
}
