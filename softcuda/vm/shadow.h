/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SC_SHADOW_H
#define SC_SHADOW_H

/*
 * What the checkers remember about bytes of memory: for each piece of 2 MiB that is tracked, as many bytes as
 * `scale` says a byte of it, zeros at first. Committed page by page, as it is touched.
 */

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

enum {
    SC_SHADOW_PIECE_BITS = 21,
    SC_SHADOW_LEVEL_BITS = 13, /* two levels of tables: addresses of 47 bits */
    SC_SHADOW_PIECE = 1 << SC_SHADOW_PIECE_BITS,
    SC_SHADOW_LEVEL = 1 << SC_SHADOW_LEVEL_BITS
};

typedef struct sc_shadow {
    size_t scale;
    _Atomic(void *) top[SC_SHADOW_LEVEL];
} sc_shadow;

/* What is remembered about the byte; up to the end of its piece what follows is about the next bytes. NULL:
 * not tracked. */
char *sc__shadow_find(const sc_shadow *shadow, uint64_t address);
/* The same, tracked from now on. NULL: out of memory. */
char *sc__shadow_make(sc_shadow *shadow, uint64_t address);
/* Zeros again, what is tracked of it. */
void sc__shadow_clear(const sc_shadow *shadow, uint64_t address, size_t bytes);

/* How many of the bytes from the address on lie in its piece. */
static inline size_t sc_shadow_piece(uint64_t address, size_t bytes)
{
    size_t left = SC_SHADOW_PIECE - (address & (SC_SHADOW_PIECE - 1));
    return bytes < left ? bytes : left;
}

#endif
