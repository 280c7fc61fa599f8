/* SPDX-License-Identifier: Apache-2.0 */
/* The words that have a meaning of their own: opcodes, modifiers, special registers. */
#include "ptx/front/front.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static _Atomic(ptx_words *) shared;

/* NULL: out of memory */
static ptx_name *add(ptx_words *words, const char *text, ptx_name_kind kind)
{
    const ptx_text name = {text, strlen(text)};
    return kr__ptx_add_name(&words->arena, &words->names, name, kr__ptx_hash(name), kind);
}

static bool add_opcodes(ptx_words *words)
{
    for (uint32_t op = 0; op < PTX_OP_COUNT; op++) {
        ptx_name *name = add(words, kr__ptx_opcodes[op].name, PTX_NAME_OPCODE);
        if (!name)
            return false;
        name->index = op;
        for (const ptx_form *form = kr__ptx_opcodes[op].forms; form->operands; form++)
            words->allowed[op] |= form->allowed;
    }
    return true;
}

static bool add_modifiers(ptx_words *words)
{
    for (uint32_t i = 0; i < kr__ptx_n_modifiers; i++) {
        if (i && !strcmp(kr__ptx_modifiers[i].text, kr__ptx_modifiers[i - 1].text))
            continue;
        char dotted[48];
        kr__format(dotted, sizeof dotted, ".%s", kr__ptx_modifiers[i].text);
        const char *text = kr__arena_text(&words->arena, dotted, strlen(dotted));
        ptx_name *name = text ? add(words, text, PTX_NAME_MODIFIER) : NULL;
        if (!name)
            return false;
        name->index = i;
    }
    return true;
}

static bool add_specials(ptx_words *words)
{
    for (uint32_t i = 0; i < PTX_SPECIAL_COUNT; i++) {
        const char *text = kr__ptx_specials[i].text;
        if (strchr(text, '.')) /* a component of a vector */
            continue;
        ptx_name *name = add(words, text, PTX_NAME_SPECIAL);
        if (!name)
            return false;
        name->index = i;
    }
    for (size_t i = 0; i < PTX_SPECIAL_VECTORS; i++) {
        ptx_name *name = add(words, kr__ptx_special_vectors[i].text, PTX_NAME_VECTOR);
        if (!name)
            return false;
        name->thing = (void *)&kr__ptx_special_vectors[i].operand;
    }
    return true;
}

static void destroy(ptx_words *words)
{
    if (words)
        kr__arena_free(&words->arena);
    free(words);
}

static ptx_words *create(void)
{
    ptx_words *words = calloc(1, sizeof *words);
    if (words && add_opcodes(words) && add_modifiers(words) && add_specials(words))
        return words;
    destroy(words);
    return NULL;
}

const ptx_words *kr__ptx_words(void)
{
    ptx_words *words = atomic_load(&shared), *other = NULL;
    if (words || !(words = create()))
        return words;
    if (atomic_compare_exchange_strong(&shared, &other, words))
        return words;
    destroy(words); /* another thread was first */
    return other;
}

/* When the library is unloaded. */
__attribute__((destructor)) static void end(void)
{
    destroy(atomic_exchange(&shared, NULL));
}
