/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SC_MAP_H
#define SC_MAP_H

/* A hash table from 64-bit keys to 64-bit values, in an arena. Zero-initialised is empty. */

#include "runtime/base/base.h"

typedef struct sc_map_entry {
    uint64_t key, value;
    bool used;
} sc_map_entry;

typedef struct sc_map {
    sc_map_entry *entries;
    size_t n, capacity; /* a power of two */
} sc_map;

static inline sc_map_entry *sc__map_place(const sc_map *map, uint64_t key)
{
    size_t at = (size_t)(key * 0x9e3779b97f4a7c15ull >> 20) & (map->capacity - 1);
    while (map->entries[at].used && map->entries[at].key != key)
        at = (at + 1) & (map->capacity - 1);
    return &map->entries[at];
}

static inline bool sc__map_get(const sc_map *map, uint64_t key, uint64_t *ret_value)
{
    if (map->n == 0)
        return false;
    const sc_map_entry *entry = sc__map_place(map, key);
    if (entry->used)
        *ret_value = entry->value;
    return entry->used;
}

static inline bool sc__map_put(sc_map *map, kr__arena *arena, uint64_t key, uint64_t value)
{
    if (2 * map->n >= map->capacity) {
        sc_map larger = {.capacity = map->capacity ? 2 * map->capacity : 64};
        larger.entries = kr__arena_alloc(arena, larger.capacity * sizeof *larger.entries);
        if (!larger.entries)
            return false;
        for (size_t i = 0; i < map->capacity; i++)
            if (map->entries[i].used)
                *sc__map_place(&larger, map->entries[i].key) = map->entries[i];
        larger.n = map->n;
        *map = larger;
    }
    sc_map_entry *entry = sc__map_place(map, key);
    map->n += !entry->used;
    *entry = (sc_map_entry){key, value, true};
    return true;
}

#endif
