/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/base/base.h"

#include <stdlib.h>
#include <string.h>

void *kr__alloc(size_t n, size_t size, kr_error *err)
{
    void *memory = calloc(n ? n : 1, size ? size : 1);
    if (!memory)
        KR_FAIL(err, KR_OUT_OF_HOST_MEMORY, "cannot allocate %zu x %zu bytes of host memory", n, size);
    return memory;
}

void *kr__grow(void *list, size_t n, size_t size)
{
    return n & (n - 1) ? list : reallocarray(list, n ? 2 * n : 1, size);
}

struct kr__arena_block {
    kr__arena_block *previous;
    size_t used, capacity; /* bytes of data */
    _Alignas(16) unsigned char data[];
};

/* Blocks grow: many arenas stay small. */
enum { LEAST_BLOCK_BYTES = 4 << 10, MOST_BLOCK_BYTES = 64 << 10 };

static size_t next_capacity(const kr__arena_block *last, size_t least)
{
    size_t capacity = last ? 2 * last->capacity : LEAST_BLOCK_BYTES;
    if (capacity > MOST_BLOCK_BYTES)
        capacity = MOST_BLOCK_BYTES;
    return least > capacity ? least : capacity;
}

void *kr__arena_alloc(kr__arena *arena, size_t bytes)
{
    if (bytes > SIZE_MAX / 2)
        return NULL;
    bytes = (bytes + 15) & ~(size_t)15;
    kr__arena_block *block = arena->last;
    if (!block || block->capacity - block->used < bytes) {
        const size_t capacity = next_capacity(block, bytes);
        block = calloc(1, sizeof *block + capacity);
        if (!block)
            return NULL;
        block->capacity = capacity;
        block->previous = arena->last;
        arena->last = block;
    }
    void *memory = block->data + block->used;
    block->used += bytes;
    return memory;
}

char *kr__arena_text(kr__arena *arena, const char *text, size_t bytes)
{
    char *copy = kr__arena_alloc(arena, bytes + 1);
    if (copy && bytes)
        memcpy(copy, text, bytes);
    return copy;
}

void kr__arena_free(kr__arena *arena)
{
    for (kr__arena_block *block = arena->last, *previous; block; block = previous) {
        previous = block->previous;
        free(block);
    }
    arena->last = NULL;
}
