/* SPDX-License-Identifier: Apache-2.0 */
/* The set of live handles: a hash table from key to object. */
#include "softcuda/driver/driver.h"

#include <stdlib.h>

static pthread_rwlock_t set_lock = PTHREAD_RWLOCK_INITIALIZER;
static sc_object **slots;      /* NULL: free; GONE: was taken out */
static size_t n_slots, n_used; /* n_slots is a power of two; used counts GONE too */
static sc_object gone;
#define GONE (&gone)

static size_t slot_of(uintptr_t key, size_t n)
{
    return (size_t)(((uint64_t)key >> 4) * 0x9e3779b97f4a7c15u >> 20) & (n - 1);
}

static void put(sc_object **table, size_t n, sc_object *object)
{
    size_t i = slot_of(object->key, n);
    while (table[i])
        i = (i + 1) & (n - 1);
    table[i] = object;
}

static bool make_room(void)
{
    if (n_used * 2 < n_slots)
        return true;
    size_t n_live = 0;
    for (size_t i = 0; i < n_slots; i++)
        n_live += slots[i] && slots[i] != GONE;
    size_t n = 256;
    while (n < n_live * 4)
        n *= 2;
    sc_object **grown = calloc(n, sizeof(sc_object *));
    if (!grown)
        return false;
    for (size_t i = 0; i < n_slots; i++)
        if (slots[i] && slots[i] != GONE)
            put(grown, n, slots[i]);
    free(slots);
    slots = grown;
    n_slots = n;
    n_used = n_live;
    return true;
}

void *sc_object_create(size_t bytes, sc_kind kind, sc_context *context, void (*finish)(sc_object *))
{
    sc_object *object = calloc(1, bytes);
    if (!object)
        return NULL;
    static atomic_ullong last_number;
    object->kind = kind;
    object->number = atomic_fetch_add(&last_number, 1) + 1;
    object->refs = 1;
    object->context = context;
    object->finish = finish;
    return object;
}

bool sc_object_publish(void *of, uintptr_t key)
{
    sc_object *object = of;
    object->key = key;
    pthread_rwlock_wrlock(&set_lock);
    bool fits = make_room();
    if (fits) {
        put(slots, n_slots, object);
        n_used++;
    }
    pthread_rwlock_unlock(&set_lock);
    return fits;
}

static sc_object **find(uintptr_t key)
{
    for (size_t i = n_slots ? slot_of(key, n_slots) : 0; n_slots && slots[i]; i = (i + 1) & (n_slots - 1))
        if (slots[i] != GONE && slots[i]->key == key)
            return &slots[i];
    return NULL;
}

void sc_object_retract(void *of)
{
    sc_object *object = of;
    pthread_rwlock_wrlock(&set_lock);
    sc_object **slot = find(object->key);
    if (slot && *slot == object)
        *slot = GONE;
    pthread_rwlock_unlock(&set_lock);
}

void *sc_object_find(sc_kind kind, uintptr_t key)
{
    pthread_rwlock_rdlock(&set_lock);
    sc_object **slot = find(key);
    sc_object *object = slot && (*slot)->kind == kind ? *slot : NULL;
    pthread_rwlock_unlock(&set_lock);
    return object;
}

void *sc_object_of(sc_context *context, sc_kind kind)
{
    sc_object *found = NULL;
    pthread_rwlock_rdlock(&set_lock);
    for (size_t i = 0; i < n_slots && !found; i++)
        if (slots[i] && slots[i] != GONE && slots[i]->context == context && slots[i]->kind == kind)
            found = slots[i];
    pthread_rwlock_unlock(&set_lock);
    return found;
}

void sc_objects_each(sc_kind kind, void (*visit)(void *object, void *user), void *user)
{
    pthread_rwlock_rdlock(&set_lock);
    for (size_t i = 0; i < n_slots; i++)
        if (slots[i] && slots[i] != GONE && slots[i]->kind == kind)
            visit(slots[i], user);
    pthread_rwlock_unlock(&set_lock);
}

void *sc_retain(void *of)
{
    sc_object *object = of;
    atomic_fetch_add(&object->refs, 1);
    return object;
}

void sc_release(void *of)
{
    sc_object *object = of;
    if (object && atomic_fetch_sub(&object->refs, 1) == 1)
        object->finish(object);
}
