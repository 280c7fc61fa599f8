/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The set of live handles, a hash table from key to object; and how long an object lasts: while somebody has
 * a reference, and then until all calls have ended that may have found it before.
 */
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
    object->finish = finish;
    object->context = context ? sc_retain(context) : NULL;
    if (object->context == context)
        return object;
    free(object); /* the context is gone */
    return NULL;
}

void sc_object_discard(void *of)
{
    sc_object *object = of;
    if (object)
        sc_release(object->context);
    free(object);
}

bool sc_object_publish(void *of, uintptr_t key)
{
    sc_object *object = of;
    object->key = key;
    pthread_rwlock_wrlock(&set_lock);
    /* What ends with its context must be here to be found when it does. */
    bool fits = !(object->context && atomic_load(&object->context->is_ending)) && make_room();
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

bool sc_object_retract(void *of)
{
    sc_object *object = of;
    pthread_rwlock_wrlock(&set_lock);
    sc_object **slot = find(object->key);
    bool was_there = slot && *slot == object;
    if (was_there)
        *slot = GONE;
    pthread_rwlock_unlock(&set_lock);
    return was_there;
}

void sc_object_drop(void *object)
{
    if (sc_object_retract(object))
        sc_release(object);
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

/* ---- what was found lasts until the call ends ---- */

/*
 * Calls are counted by the parity of the epoch in which they began. An epoch ends when no call of the one
 * before it is in flight any more; so what ended two epochs ago nobody can know. A call that goes on for long
 * holds this up, but nothing waits for it.
 */
static atomic_uint epoch, n_calls[2];
static pthread_mutex_t retired_lock = PTHREAD_MUTEX_INITIALIZER;
static sc_object *retired[2]; /* by the parity of the epoch in which the last reference went */
static atomic_bool any_retired;

unsigned sc_call_begin(void)
{
    for (;;) {
        unsigned now = atomic_load(&epoch);
        atomic_fetch_add(&n_calls[now & 1], 1);
        if (atomic_load(&epoch) == now)
            return now;
        atomic_fetch_sub(&n_calls[now & 1], 1); /* it was counted too late */
    }
}

/* Ends the epoch if it can be ended; then *ret_past is what nobody can know. */
static bool next_epoch(sc_object **ret_past)
{
    unsigned next = atomic_load(&epoch) + 1;
    if (atomic_load(&n_calls[next & 1]))
        return false;
    atomic_store(&epoch, next);
    *ret_past = retired[next & 1];
    retired[next & 1] = NULL;
    atomic_store(&any_retired, retired[0] || retired[1]);
    return true;
}

/* To finish an object may end others: until there are none, or they must stay. */
static void finish_retired(void)
{
    bool go_on = true;
    while (go_on && atomic_load(&any_retired)) {
        sc_object *past = NULL;
        pthread_mutex_lock(&retired_lock);
        go_on = next_epoch(&past);
        pthread_mutex_unlock(&retired_lock);
        while (past) {
            sc_object *object = past;
            sc_context *context = object->context;
            past = object->next_retired;
            object->finish(object);
            sc_release(context);
        }
    }
}

void sc_call_end(unsigned begun)
{
    atomic_fetch_sub(&n_calls[begun & 1], 1);
    if (atomic_load(&any_retired))
        finish_retired();
}

void sc_objects_in_child(void)
{
    atomic_store(&any_retired, false);
}

void *sc_retain(void *of)
{
    sc_object *object = of;
    unsigned refs = atomic_load(&object->refs);
    while (refs && !atomic_compare_exchange_weak(&object->refs, &refs, refs + 1))
        ;
    return refs ? object : NULL;
}

bool sc_has_ended(const void *object)
{
    return !atomic_load(&((const sc_object *)object)->refs);
}

void sc_release(void *of)
{
    sc_object *object = of;
    if (!object || atomic_fetch_sub(&object->refs, 1) != 1)
        return;
    if (object->end)
        object->end(object);
    pthread_mutex_lock(&retired_lock);
    sc_object **list = &retired[atomic_load(&epoch) & 1];
    object->next_retired = *list;
    *list = object;
    atomic_store(&any_retired, true);
    pthread_mutex_unlock(&retired_lock);
}
