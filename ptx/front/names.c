/* SPDX-License-Identifier: Apache-2.0 */
#include "ptx/front/front.h"

#include <string.h>

uint32_t kr__ptx_hash(ptx_text text)
{
    uint32_t hash = 2166136261u; /* FNV-1a */
    for (size_t i = 0; i < text.bytes; i++)
        hash = (hash ^ (unsigned char)text.at[i]) * 16777619u;
    return hash;
}

static ptx_name *slot(ptx_name *slots, uint32_t capacity, ptx_text text, uint32_t hash)
{
    for (uint32_t i = hash & (capacity - 1);; i = (i + 1) & (capacity - 1)) {
        ptx_name *name = &slots[i];
        if (name->kind == PTX_NAME_FREE || (name->hash == hash && name->text.bytes == text.bytes &&
                                            !memcmp(name->text.at, text.at, text.bytes)))
            return name;
    }
}

ptx_name *kr__ptx_find_name(const ptx_names *names, ptx_text text, uint32_t hash)
{
    if (!names->capacity)
        return NULL;
    ptx_name *name = slot(names->slots, names->capacity, text, hash);
    return name->kind == PTX_NAME_FREE ? NULL : name;
}

static bool grow(kr__arena *arena, ptx_names *names)
{
    const uint32_t capacity = names->capacity ? names->capacity * 4 : 8;
    ptx_name *slots = capacity ? kr__arena_alloc(arena, capacity * sizeof *slots) : NULL;
    if (!slots)
        return false;
    for (uint32_t i = 0; i < names->capacity; i++) {
        const ptx_name *name = &names->slots[i];
        if (name->kind != PTX_NAME_FREE)
            *slot(slots, capacity, name->text, name->hash) = *name;
    }
    names->slots = slots;
    names->capacity = capacity;
    return true;
}

ptx_name *kr__ptx_add_name(kr__arena *arena, ptx_names *names, ptx_text text, uint32_t hash,
                           ptx_name_kind kind)
{
    if (names->n_names >= names->capacity / 4 * 3 && !grow(arena, names))
        return NULL;
    ptx_name *name = slot(names->slots, names->capacity, text, hash);
    *name = (ptx_name){.text = text, .hash = hash, .kind = kind};
    names->n_names++;
    return name;
}
