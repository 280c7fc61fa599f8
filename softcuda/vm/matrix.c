/* SPDX-License-Identifier: Apache-2.0 */
/* Matrices that a warp holds together: mma and wmma, ldmatrix and its like; and cp.async. */
#include "softcuda/vm/matrix.h"
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

/* ---- ldmatrix, stmatrix, movmatrix: matrices of 8 x 8 halves ---- */

typedef uint16_t sc_halves[4][8][8];

/* Addresses of the rows: lane 8j + r has that of row r of matrix j. */
static bool find_rows(sc_warp *warp, const sc_code *in, const sc_matrices *matrices)
{
    const uint32_t mask = warp->mask;
    warp->mask = matrices->n == 4 ? SC_ALL_LANES : (1u << 8 * matrices->n) - 1;
    const bool ok = sc__accesses()->translate(warp, in, &matrices->access);
    warp->mask = mask;
    return ok;
}

/* A lane has two neighbours of row lane / 4; transposed, of that column. */
static void from_lanes(const sc_warp *warp, const sc_matrices *matrices, sc_halves rows)
{
    for (unsigned j = 0; j < matrices->n; j++)
        for (unsigned lane = 0; lane < SC_LANES; lane++)
            for (unsigned i = 0; i < 2; i++) {
                const unsigned line = lane / 4, at = 2 * (lane % 4) + i;
                const uint32_t bits = word_slot(warp, matrices->slot[j])[lane] >> 16 * i;
                rows[j][matrices->transposed ? at : line][matrices->transposed ? line : at] = (uint16_t)bits;
            }
}

static void to_lanes(const sc_warp *warp, const sc_slot *slots, unsigned n, bool transposed, sc_halves rows)
{
    for (unsigned j = 0; j < n; j++)
        for (unsigned lane = 0; lane < SC_LANES; lane++) {
            const unsigned line = lane / 4, at = 2 * (lane % 4);
            const uint32_t low = transposed ? rows[j][at][line] : rows[j][line][at];
            const uint32_t high = transposed ? rows[j][at + 1][line] : rows[j][line][at + 1];
            word_slot(warp, slots[j])[lane] = low | high << 16;
        }
}

const sc_code *sc__run_load_matrix(sc_warp *warp, const sc_code *in)
{
    const sc_matrices *matrices = in->more;
    sc_halves rows;
    if (warp->mask != SC_ALL_LANES)
        return wait_for_warp(warp, in);
    if (!find_rows(warp, in, matrices))
        return NULL;
    for (unsigned i = 0; i < 8u * matrices->n; i++)
        memcpy(rows[i / 8][i % 8], warp->pointers[i], sizeof rows[0][0]);
    to_lanes(warp, matrices->slot, matrices->n, matrices->transposed, rows);
    return in + 1;
}

const sc_code *sc__run_store_matrix(sc_warp *warp, const sc_code *in)
{
    const sc_matrices *matrices = in->more;
    sc_halves rows;
    if (warp->mask != SC_ALL_LANES)
        return wait_for_warp(warp, in);
    if (!find_rows(warp, in, matrices))
        return NULL;
    from_lanes(warp, matrices, rows);
    for (unsigned i = 0; i < 8u * matrices->n; i++)
        memcpy(warp->pointers[i], rows[i / 8][i % 8], sizeof rows[0][0]);
    return in + 1;
}

/* in->more: the source; in->d: its transposed. */
const sc_code *sc__run_move_matrix(sc_warp *warp, const sc_code *in)
{
    sc_halves rows;
    if (warp->mask != SC_ALL_LANES)
        return wait_for_warp(warp, in);
    from_lanes(warp, in->more, rows);
    to_lanes(warp, &in->d, 1, false, rows);
    return in + 1;
}

/* ---- fragments ---- */

/* Where the lane's element is. */
static void place_of(const sc_fragment *fragment, unsigned lane, unsigned element, unsigned *line,
                     unsigned *column)
{
    const unsigned quad = lane / 4 % 4, high = lane / 16 * 4, each = fragment->each;
    const unsigned tile = element / each, across = fragment->columns / (4 * each);
    switch (fragment->order) {
    case SC_QUAD_LINES:
        *line = 8 * quad + lane % 4 + high;
        *column = element;
        return;
    case SC_QUAD_COLUMNS:
        *line = 8 * quad + element + high;
        *column = lane % 4;
        return;
    case SC_QUAD_PAIRS:
        *line = 8 * quad + (lane & 1) + (element & 2) + high;
        *column = (element & 4) + (lane & 2) + (element & 1);
        return;
    case SC_TILES_FLAT:
        *line = tile / across * 8;
        *column = tile % across * 4 * each;
        break;
    case SC_TILES_TALL:
        *line = (tile % 2 + tile / (2 * across) * 2) * 8;
        *column = tile / 2 % across * 4 * each;
        break;
    }
    *line += lane / 4;
    *column += lane % 4 * each + element % each;
}

static void *register_of(const sc_warp *warp, const sc_fragment *fragment, unsigned element, unsigned lane)
{
    const unsigned bits = fragment->bits == 64 ? 64 : 32, at = element * fragment->bits / bits;
    char *slot = (char *)word_slot(warp, fragment->slot[at]);
    return slot + lane * bits / 8;
}

static uint64_t read_element(const sc_warp *warp, const sc_fragment *fragment, unsigned element,
                             unsigned lane)
{
    const void *at = register_of(warp, fragment, element, lane);
    if (fragment->bits == 64)
        return *(const uint64_t *)at;
    const uint64_t bits = *(const uint32_t *)at >> element * fragment->bits % 32;
    return bits & (UINT64_MAX >> (64 - fragment->bits));
}

static void write_element(const sc_warp *warp, const sc_fragment *fragment, unsigned element, unsigned lane,
                          uint64_t value)
{
    void *at = register_of(warp, fragment, element, lane);
    const unsigned shift = element * fragment->bits % 32;
    const uint32_t mask = (uint32_t)(UINT64_MAX >> (64 - fragment->bits)) << shift;
    if (fragment->bits == 64)
        *(uint64_t *)at = value;
    else
        *(uint32_t *)at = (*(const uint32_t *)at & ~mask) | ((uint32_t)value << shift & mask);
}

static void gather(const sc_warp *warp, const sc_fragment *fragment, sc_elements to)
{
    for (unsigned element = 0; element < fragment->n_elements; element++)
        for (unsigned lane = 0; lane < SC_LANES; lane++) {
            unsigned line, column;
            place_of(fragment, lane, element, &line, &column);
            to[line][column] = read_element(warp, fragment, element, lane);
        }
}

static void scatter(const sc_warp *warp, const sc_fragment *fragment, sc_elements from)
{
    for (unsigned element = 0; element < fragment->n_elements; element++)
        for (unsigned lane = 0; lane < SC_LANES; lane++) {
            unsigned line, column;
            place_of(fragment, lane, element, &line, &column);
            write_element(warp, fragment, element, lane, from[line][column]);
        }
}

const sc_code *sc__run_mma(sc_warp *warp, const sc_code *in)
{
    const sc_mma *mma = in->more;
    sc_elements a, b, c;
    if (warp->mask != SC_ALL_LANES)
        return wait_for_warp(warp, in);
    sc_set_csr(&warp->csr, mma->csr);
    gather(warp, &mma->a, a);
    gather(warp, &mma->b, b);
    gather(warp, &mma->c, c);
    mma->multiply(mma, a, b, c);
    scatter(warp, &mma->d, c);
    return in + 1;
}

/* ---- wmma.load, wmma.store ---- */

/* Is the piece of memory aligned that the element at that line and column comes in? */
static bool is_aligned(const sc_tile_access *tiles, uint64_t address, unsigned line, unsigned column)
{
    const unsigned bytes = tiles->fragment.bits / 8, place = (tiles->by_lines ? column : line) * bytes;
    return (address - place % tiles->piece_bytes) % tiles->piece_bytes == 0;
}

/* Host addresses of an element of every lane. */
static bool find_elements(sc_warp *warp, const sc_code *in, unsigned element)
{
    const sc_tile_access *tiles = in->more;
    uint64_t *address = (uint64_t *)word_slot(warp, tiles->address);
    const uint64_t *base = (const uint64_t *)word_slot(warp, in->a);
    const uint32_t *stride = word_slot(warp, tiles->stride);
    const unsigned in_all = tiles->fragment.lines * tiles->fragment.columns / SC_LANES;
    for (unsigned lane = 0; lane < SC_LANES; lane++) {
        unsigned line, column;
        place_of(&tiles->fragment, lane, element % in_all, &line, &column);
        const uint64_t by = stride[lane] >> tiles->stride_shift;
        const uint64_t at = tiles->by_lines ? line * by + column : column * by + line;
        address[lane] = base[lane] + at * tiles->fragment.bits / 8;
        if (!is_aligned(tiles, address[lane] + (uint64_t)in->imm, line, column)) {
            sc__fault(warp, in, SC_FAULT_MISALIGNED, lane, address[lane] + (uint64_t)in->imm,
                      "%s of an element at 0x%llx, whose neighbours do not begin at a multiple of %u",
                      tiles->access.verb, (unsigned long long)(address[lane] + (uint64_t)in->imm),
                      tiles->piece_bytes);
            return false;
        }
    }
    sc_code access = *in;
    access.a = tiles->address;
    return sc__accesses()->translate(warp, &access, &tiles->access);
}

const sc_code *sc__run_load_tiles(sc_warp *warp, const sc_code *in)
{
    const sc_tile_access *tiles = in->more;
    const sc_fragment *fragment = &tiles->fragment;
    if (warp->mask != SC_ALL_LANES)
        return wait_for_warp(warp, in);
    for (unsigned element = 0; element < fragment->n_elements; element++) {
        if (!find_elements(warp, in, element))
            return NULL;
        for (unsigned lane = 0; lane < SC_LANES; lane++) {
            uint64_t value = 0;
            memcpy(&value, warp->pointers[lane], fragment->bits / 8);
            write_element(warp, fragment, element, lane, value);
        }
    }
    return in + 1;
}

const sc_code *sc__run_store_tiles(sc_warp *warp, const sc_code *in)
{
    const sc_tile_access *tiles = in->more;
    const sc_fragment *fragment = &tiles->fragment;
    if (warp->mask != SC_ALL_LANES)
        return wait_for_warp(warp, in);
    for (unsigned element = 0; element < fragment->n_elements; element++) {
        if (!find_elements(warp, in, element))
            return NULL;
        for (unsigned lane = 0; lane < SC_LANES; lane++) {
            const uint64_t value = read_element(warp, fragment, element, lane);
            memcpy(warp->pointers[lane], &value, fragment->bits / 8);
        }
    }
    return in + 1;
}
