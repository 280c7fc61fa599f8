/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loads and stores. Compiled twice, as alu.c is.
 *
 * The lanes' addresses are checked exactly but all at once: their minimum and maximum against the allocation
 * the instruction touched last. Lanes in a row, and lanes at one address, never become 32 accesses.
 */
#include "softcuda/vm/alu.h"

#include <emmintrin.h>

#ifdef __AVX2__
#define SC_ACCESSES sc__accesses_avx2
#else
#define SC_ACCESSES sc__accesses_baseline
#endif

static inline void *slot_at(const sc_warp *warp, sc_slot slot)
{
    return __builtin_assume_aligned(warp->bank[slot & 1] + (slot & ~3u), 64);
}

/* ---- addresses ---- */

static uint64_t lane_address(const sc_warp *warp, const sc_code *in, const sc_access *access, unsigned lane)
{
    const void *slot = slot_at(warp, in->a);
    uint64_t address = access->wide_address ? ((const uint64_t *)slot)[lane] : ((const uint32_t *)slot)[lane];
    return address + (uint64_t)in->imm;
}

static void fault_out_of_bounds(sc_warp *warp, const sc_code *in, const sc_access *access, unsigned lane,
                                uint64_t address)
{
    char where[200];
    sc__memory_describe(warp->kernel->device, address, access->total_bytes, where, sizeof where);
    sc__fault(warp, in, SC_FAULT_OUT_OF_BOUNDS, lane, address, "%s of %u bytes at 0x%llx, %s", access->verb,
              access->total_bytes, (unsigned long long)address, where);
}

static bool fault_misaligned(sc_warp *warp, const sc_code *in, const sc_access *access, unsigned lane,
                             uint64_t address)
{
    sc__fault(warp, in, SC_FAULT_MISALIGNED, lane, address,
              "%s of %u bytes at 0x%llx, which is no multiple of %u", access->verb, access->total_bytes,
              (unsigned long long)address, access->total_bytes);
    return false;
}

/* No sum of these can wrap: the address may be anything a kernel can make. */
static inline bool holds(const sc_span *span, uint64_t address, uint64_t bytes)
{
    return address >= span->start && address < span->end && bytes <= span->end - address;
}

/* One lane, whatever its window; the slow way, which also says what is wrong. */
static bool translate_lane(sc_warp *warp, const sc_code *in, const sc_access *access, unsigned lane,
                           uint64_t address, ptx_space space)
{
    uint64_t bytes = access->total_bytes, offset = address;
    char *base = NULL;
    uint64_t limit = 0;
    const char *what = "";
    if (space == PTX_SPACE_GENERIC) {
        static const ptx_space windows[] = {PTX_SPACE_GLOBAL, PTX_SPACE_SHARED, PTX_SPACE_LOCAL,
                                            PTX_SPACE_PARAM};
        uint64_t window = SC_WINDOW_OF(address);
        space = window < KR_COUNT(windows) ? windows[window] : PTX_SPACE_GLOBAL;
        if (space != PTX_SPACE_GLOBAL)
            offset = SC_IN_WINDOW(address);
    } else if (space != PTX_SPACE_GLOBAL) {
        offset = (uint32_t)address;
    }
    if (offset & (bytes - 1))
        return fault_misaligned(warp, in, access, lane, address);
    switch (space) {
    case PTX_SPACE_SHARED:
        base = warp->block->shared;
        limit = warp->block->shared_bytes;
        what = "shared memory of the block";
        break;
    case PTX_SPACE_LOCAL:
        base = warp->local + (size_t)lane * warp->stack_bytes;
        limit = warp->stack_bytes;
        what = "local memory of the thread";
        break;
    case PTX_SPACE_PARAM:
        base = (char *)(uintptr_t)warp->block->job->launch->params;
        limit = warp->kernel->facts.param_bytes;
        what = "kernel's parameters";
        break;
    default: {
        sc_span *span = &warp->sites[access->site];
        if (!holds(span, offset, bytes) &&
            (!sc__memory_span(warp->kernel->device, offset, span) || !holds(span, offset, bytes))) {
            *span = (sc_span){0, 0};
            fault_out_of_bounds(warp, in, access, lane, address);
            return false;
        }
        warp->pointers[lane] = (char *)(uintptr_t)offset;
        return true;
    }
    }
    if (offset + bytes > limit) {
        sc__fault(warp, in, SC_FAULT_OUT_OF_BOUNDS, lane, address,
                  "%s of %u bytes at offset %llu of the %s, which has %llu bytes", access->verb,
                  access->total_bytes, (unsigned long long)offset, what, (unsigned long long)limit);
        return false;
    }
    warp->pointers[lane] = base + offset;
    return true;
}

static bool translate_each(sc_warp *warp, const sc_code *in, const sc_access *access)
{
    for (uint32_t lanes = warp->mask; lanes; lanes &= lanes - 1) {
        unsigned lane = (unsigned)__builtin_ctz(lanes);
        if (!translate_lane(warp, in, access, lane, lane_address(warp, in, access, lane), access->space))
            return false;
    }
    return true;
}

/* Every lane in the remembered allocation (or in host address windows that are none): 64-bit addresses. */
static bool translate_global(sc_warp *warp, const sc_code *in, const sc_access *access)
{
    const uint64_t *address = slot_at(warp, in->a);
    const sc_span *span = &warp->sites[access->site];
    const uint64_t offset = (uint64_t)in->imm, size = access->total_bytes;
    /* Signed comparisons vectorise; addresses of the host are below 2^47, others fail either way. */
    int64_t low = INT64_MAX, high = INT64_MIN;
    uint64_t joined = 0;
    if (SC_LIKELY(warp->mask == SC_ALL_LANES)) {
        for (unsigned i = 0; i < SC_LANES; i++) {
            int64_t at = (int64_t)(address[i] + offset);
            low = at < low ? at : low;
            high = at > high ? at : high;
            joined |= (uint64_t)at;
            warp->pointers[i] = (char *)(uintptr_t)at;
        }
    } else {
        for (uint32_t lanes = warp->mask; lanes; lanes &= lanes - 1) {
            unsigned i = (unsigned)__builtin_ctz(lanes);
            int64_t at = (int64_t)(address[i] + offset);
            low = at < low ? at : low;
            high = at > high ? at : high;
            joined |= (uint64_t)at;
            warp->pointers[i] = (char *)(uintptr_t)at;
        }
    }
    return low >= (int64_t)span->start && high <= (int64_t)(span->end - size) && (joined & (size - 1)) == 0 &&
           span->end >= size;
}

static bool translate_shared(sc_warp *warp, const sc_code *in, const sc_access *access)
{
    const uint32_t *narrow = slot_at(warp, in->a);
    const uint64_t *wide = slot_at(warp, in->a);
    char *const shared = warp->block->shared;
    const uint32_t offset = (uint32_t)in->imm, size = access->total_bytes;
    uint32_t high = 0, joined = 0;
    if (warp->block->shared_bytes < size)
        return false;
    for (uint32_t lanes = warp->mask; lanes; lanes &= lanes - 1) {
        unsigned i = (unsigned)__builtin_ctz(lanes);
        uint32_t at = (access->wide_address ? (uint32_t)wide[i] : narrow[i]) + offset;
        high = at > high ? at : high;
        joined |= at;
        warp->pointers[i] = shared + at;
    }
    return high <= warp->block->shared_bytes - size && (joined & (size - 1)) == 0;
}

static bool translate(sc_warp *warp, const sc_code *in, const sc_access *access)
{
    bool all_fit = false;
    if (access->space == PTX_SPACE_GLOBAL || access->space == PTX_SPACE_GENERIC)
        all_fit = translate_global(warp, in, access);
    else if (access->space == PTX_SPACE_SHARED)
        all_fit = translate_shared(warp, in, access);
    return SC_LIKELY(all_fit) || translate_each(warp, in, access);
}

/* ---- lanes in a row, lanes at one address ---- */

static inline bool in_steps(const sc_warp *warp, const sc_code *in, const sc_access *access, unsigned step)
{
    if (access->wide_address) {
        const uint64_t *at = slot_at(warp, in->a);
        const uint64_t first = at[0];
        uint64_t differs = at[1] ^ (first + step);
        if (differs)
            return false;
        LANES differs |= at[i] ^ (first + i * (uint64_t)step);
        return differs == 0;
    }
    const uint32_t *at = slot_at(warp, in->a);
    const uint32_t first = at[0];
    uint32_t differs = at[1] ^ (first + step);
    if (differs)
        return false;
    LANES differs |= at[i] ^ (first + i * step);
    return differs == 0;
}

/* Where lane 0 is when every lane is `step` bytes past the one before it and all are inside; else NULL. */
static inline char *in_a_row(sc_warp *warp, const sc_code *in, const sc_access *access, unsigned bytes,
                             unsigned step)
{
    const unsigned size = (SC_LANES - 1) * step + bytes;
    if (warp->mask != SC_ALL_LANES || !in_steps(warp, in, access, step))
        return NULL;
    uint64_t start = lane_address(warp, in, access, 0);
    if (start & (bytes - 1))
        return NULL;
    if (access->space == PTX_SPACE_SHARED) {
        start = (uint32_t)start;
        return start + size <= warp->block->shared_bytes ? warp->block->shared + start : NULL;
    }
    if (access->space != PTX_SPACE_GLOBAL && access->space != PTX_SPACE_GENERIC)
        return NULL;
    return holds(&warp->sites[access->site], start, size) ? (char *)(uintptr_t)start : NULL;
}

/* ---- lanes anywhere in shared memory ---- */

/* Addresses of shared memory have 32 bits: of a wide register the lower half. */
static inline const uint32_t *shared_addresses(const sc_warp *warp, const sc_code *in,
                                               const sc_access *access, uint32_t narrowed[SC_LANES])
{
    if (!access->wide_address)
        return slot_at(warp, in->a);
    const uint64_t *wide = slot_at(warp, in->a);
    LANES narrowed[i] = (uint32_t)wide[i];
    return narrowed;
}

/* Where offset 0 of the access is when every lane is inside; else NULL. Lane i is at (int32_t)at[i] past it:
 * with an offset beyond 2^30 the sum might not be what it is in 32 bits. */
static inline char *all_in_shared(const sc_warp *warp, const sc_code *in, const uint32_t *at, unsigned bytes)
{
    if (in->imm < -(1 << 30) || in->imm > 1 << 30)
        return NULL;
    const uint32_t offset = (uint32_t)in->imm;
    uint32_t high = 0, joined = offset;
    LANES
    {
        const uint32_t start = at[i] + offset;
        high = start > high ? start : high;
        joined |= at[i];
    }
    if ((joined & (bytes - 1)) || (uint64_t)high + bytes > warp->block->shared_bytes)
        return NULL;
    return warp->block->shared + (int32_t)offset;
}

/* ---- elements ---- */

/* One lane's bytes move in one piece, so that a 16-byte vector is never seen half written. */
static inline void copy_whole(void *to, const void *from, unsigned bytes)
{
    switch (bytes) {
    case 1:
        *(uint8_t *)to = __atomic_load_n((const uint8_t *)from, __ATOMIC_RELAXED);
        break;
    case 2:
        *(uint16_t *)to = __atomic_load_n((const uint16_t *)from, __ATOMIC_RELAXED);
        break;
    case 4:
        *(uint32_t *)to = __atomic_load_n((const uint32_t *)from, __ATOMIC_RELAXED);
        break;
    case 8:
        *(uint64_t *)to = __atomic_load_n((const uint64_t *)from, __ATOMIC_RELAXED);
        break;
    case 16:
        _mm_store_si128((__m128i *)to, _mm_load_si128((const __m128i *)from));
        break;
    default:
        memcpy(to, from, bytes);
        break;
    }
}

#define ELEMENT_1 uint8_t
#define ELEMENT_2 uint16_t
#define ELEMENT_4 uint32_t
#define ELEMENT_8 uint64_t
#define PLACE_1 uint32_t
#define PLACE_2 uint32_t
#define PLACE_4 uint32_t
#define PLACE_8 uint64_t

#define SCALARS(bytes)                                                                      \
    static const sc_code *load_##bytes(sc_warp *warp, const sc_code *in)                    \
    {                                                                                       \
        const sc_access *access = in->more;                                                 \
        PLACE_##bytes *const d = slot_at(warp, in->d);                                      \
        const ELEMENT_##bytes *at = (const void *)in_a_row(warp, in, access, bytes, bytes); \
        if (at) {                                                                           \
            LANES d[i] = at[i];                                                             \
            return in + 1;                                                                  \
        }                                                                                   \
        at = (const void *)in_a_row(warp, in, access, bytes, 0);                            \
        if (at) {                                                                           \
            const ELEMENT_##bytes value = *at;                                              \
            LANES d[i] = value;                                                             \
            return in + 1;                                                                  \
        }                                                                                   \
        if (access->space == PTX_SPACE_SHARED && warp->mask == SC_ALL_LANES) {              \
            uint32_t narrowed[SC_LANES];                                                    \
            const uint32_t *const offset = shared_addresses(warp, in, access, narrowed);    \
            const char *shared = all_in_shared(warp, in, offset, bytes);                    \
            if (shared) {                                                                   \
                LANES d[i] = *(const ELEMENT_##bytes *)(shared + (int32_t)offset[i]);       \
                return in + 1;                                                              \
            }                                                                               \
        }                                                                                   \
        if (!translate(warp, in, access))                                                   \
            return NULL;                                                                    \
        if (warp->mask == SC_ALL_LANES)                                                     \
            for (unsigned i = 0; i < SC_LANES; i++)                                         \
                d[i] = *(const volatile ELEMENT_##bytes *)warp->pointers[i];                \
        else                                                                                \
            for (uint32_t lanes = warp->mask; lanes; lanes &= lanes - 1) {                  \
                unsigned i = (unsigned)__builtin_ctz(lanes);                                \
                d[i] = *(const volatile ELEMENT_##bytes *)warp->pointers[i];                \
            }                                                                               \
        return in + 1;                                                                      \
    }                                                                                       \
    static const sc_code *store_##bytes(sc_warp *warp, const sc_code *in)                   \
    {                                                                                       \
        const sc_access *access = in->more;                                                 \
        const PLACE_##bytes *const d = slot_at(warp, in->d);                                \
        ELEMENT_##bytes *row = (void *)in_a_row(warp, in, access, bytes, bytes);            \
        if (row) {                                                                          \
            LANES row[i] = (ELEMENT_##bytes)d[i];                                           \
            return in + 1;                                                                  \
        }                                                                                   \
        if (!translate(warp, in, access))                                                   \
            return NULL;                                                                    \
        for (uint32_t lanes = warp->mask; lanes; lanes &= lanes - 1) {                      \
            unsigned i = (unsigned)__builtin_ctz(lanes);                                    \
            *(volatile ELEMENT_##bytes *)warp->pointers[i] = (ELEMENT_##bytes)d[i];         \
        }                                                                                   \
        return in + 1;                                                                      \
    }
SCALARS(1)
SCALARS(2)
SCALARS(4)
SCALARS(8)

#define VECTORS(bytes, n)                                                                        \
    static const sc_code *load_##bytes##_##n(sc_warp *warp, const sc_code *in)                   \
    {                                                                                            \
        const sc_slot slots[4] = {in->d, in->b, in->e, in->f};                                   \
        if (!translate(warp, in, in->more))                                                      \
            return NULL;                                                                         \
        for (uint32_t lanes = warp->mask; lanes; lanes &= lanes - 1) {                           \
            unsigned i = (unsigned)__builtin_ctz(lanes);                                         \
            ELEMENT_##bytes piece[n] __attribute__((aligned(32)));                               \
            copy_whole(piece, warp->pointers[i], bytes *n);                                      \
            for (unsigned k = 0; k < n; k++)                                                     \
                if (slots[k] != SC_NO_SLOT)                                                      \
                    ((PLACE_##bytes *)slot_at(warp, slots[k]))[i] = piece[k];                    \
        }                                                                                        \
        return in + 1;                                                                           \
    }                                                                                            \
    static const sc_code *store_##bytes##_##n(sc_warp *warp, const sc_code *in)                  \
    {                                                                                            \
        const sc_slot slots[4] = {in->d, in->b, in->e, in->f};                                   \
        if (!translate(warp, in, in->more))                                                      \
            return NULL;                                                                         \
        for (uint32_t lanes = warp->mask; lanes; lanes &= lanes - 1) {                           \
            unsigned i = (unsigned)__builtin_ctz(lanes);                                         \
            ELEMENT_##bytes piece[n] __attribute__((aligned(32)));                               \
            for (unsigned k = 0; k < n; k++)                                                     \
                piece[k] = (ELEMENT_##bytes)((const PLACE_##bytes *)slot_at(warp, slots[k]))[i]; \
            copy_whole(warp->pointers[i], piece, bytes *n);                                      \
        }                                                                                        \
        return in + 1;                                                                           \
    }
VECTORS(1, 2)
VECTORS(1, 4)
VECTORS(2, 2)
VECTORS(2, 4)
VECTORS(4, 2)
VECTORS(4, 4)
VECTORS(8, 2)
VECTORS(8, 4)

const sc_accesses SC_ACCESSES = {
    .load = {{load_1, load_1_2, load_1_4},
             {load_2, load_2_2, load_2_4},
             {load_4, load_4_2, load_4_4},
             {load_8, load_8_2, load_8_4}},
    .store = {{store_1, store_1_2, store_1_4},
              {store_2, store_2_2, store_2_4},
              {store_4, store_4_2, store_4_4},
              {store_8, store_8_2, store_8_4}},
    .translate = translate,
    .translate_lane = translate_lane,
};
