/* SPDX-License-Identifier: Apache-2.0 */
#include "softcuda/vm/shadow.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static bool is_user_address(uint64_t address)
{
    return address >> (SC_SHADOW_PIECE_BITS + 2 * SC_SHADOW_LEVEL_BITS) == 0;
}

static size_t top_index(uint64_t address)
{
    return address >> (SC_SHADOW_PIECE_BITS + SC_SHADOW_LEVEL_BITS);
}

static size_t middle_index(uint64_t address)
{
    return (address >> SC_SHADOW_PIECE_BITS) & (SC_SHADOW_LEVEL - 1);
}

static size_t in_piece(uint64_t address)
{
    return address & (SC_SHADOW_PIECE - 1);
}

char *sc__shadow_find(const sc_shadow *shadow, uint64_t address)
{
    if (!is_user_address(address))
        return NULL;
    _Atomic(void *) *middle = atomic_load(&shadow->top[top_index(address)]);
    char *piece = middle ? atomic_load(&middle[middle_index(address)]) : NULL;
    return piece ? piece + in_piece(address) * shadow->scale : NULL;
}

static void *map(size_t bytes)
{
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return at == MAP_FAILED ? NULL : at;
}

/* What the place holds, or zeroed memory put there. Who comes second drops what it brought. */
static void *fill_in(_Atomic(void *) *place, size_t bytes)
{
    void *there = atomic_load(place);
    if (there)
        return there;
    void *fresh = map(bytes);
    if (!fresh || atomic_compare_exchange_strong(place, &there, fresh))
        return fresh;
    munmap(fresh, bytes);
    return there;
}

char *sc__shadow_make(sc_shadow *shadow, uint64_t address)
{
    if (!is_user_address(address))
        return NULL;
    _Atomic(void *) *middle =
        fill_in(&shadow->top[top_index(address)], SC_SHADOW_LEVEL * sizeof(_Atomic(void *)));
    char *piece = middle ? fill_in(&middle[middle_index(address)], SC_SHADOW_PIECE * shadow->scale) : NULL;
    return piece ? piece + in_piece(address) * shadow->scale : NULL;
}

/* Whole pages go back to the system. */
static void zero(char *at, size_t bytes)
{
    enum { PAGE = 4096 };
    size_t before = -(uintptr_t)at & (PAGE - 1);
    if (bytes < before + PAGE) {
        memset(at, 0, bytes);
        return;
    }
    size_t pages = (bytes - before) / PAGE * PAGE;
    memset(at, 0, before);
    if (madvise(at + before, pages, MADV_DONTNEED))
        memset(at + before, 0, pages);
    memset(at + before + pages, 0, bytes - before - pages);
}

void sc__shadow_clear(const sc_shadow *shadow, uint64_t address, size_t bytes)
{
    for (size_t n; bytes; address += n, bytes -= n) {
        n = sc_shadow_piece(address, bytes);
        char *at = sc__shadow_find(shadow, address);
        if (at)
            zero(at, n * shadow->scale);
    }
}
