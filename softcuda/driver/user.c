/* SPDX-License-Identifier: Apache-2.0 */
/* User objects: what is destroyed when no graph and no instance needs it any more. */
#include "softcuda/driver/graph.h"

#include <stdlib.h>

typedef struct sc_user {
    sc_object object;
    unsigned long long n; /* references, the graphs' included */
    CUhostFn destroy;
    void *pointer;
} sc_user;

static void finish_user(sc_object *object)
{
    free(object);
}

/* Gives references back; the last destroys what they were to. A client may give back more than it has: who
 * holds a share of the object still finds it, destroyed. */
static void drop(sc_user *user, unsigned long long n)
{
    sc_lock();
    user->n = user->n > n ? user->n - n : 0;
    bool last = !user->n;
    sc_unlock();
    if (!last || !sc_object_retract(user))
        return;
    user->destroy(user->pointer);
    sc_release(user);
}

bool sc_uses_copy(sc_uses *to, const sc_uses *from)
{
    if (!from->n)
        return true;
    to->items = malloc(from->n * sizeof *to->items);
    if (!to->items)
        return false;
    to->n = from->n;
    for (size_t i = 0; i < from->n; i++) {
        to->items[i] = from->items[i];
        sc_retain(to->items[i].user); /* which `from` holds */
        to->items[i].user->n += to->items[i].n;
    }
    return true;
}

void sc_uses_drop(sc_uses *uses)
{
    for (size_t i = 0; i < uses->n; i++) {
        drop(uses->items[i].user, uses->items[i].n);
        sc_release(uses->items[i].user);
    }
    free(uses->items);
    *uses = (sc_uses){0};
}

static bool add_use(sc_uses *uses, sc_user *user, unsigned long long n)
{
    for (size_t i = 0; i < uses->n; i++)
        if (uses->items[i].user == user) {
            uses->items[i].n += n;
            return true;
        }
    sc_use *grown = realloc(uses->items, (uses->n + 1) * sizeof *grown);
    if (!grown)
        return false;
    uses->items = grown;
    if (!sc_retain(user))
        return false;
    grown[uses->n++] = (sc_use){user, n};
    return true;
}

void sc_uses_move(sc_uses *to, sc_uses *from)
{
    for (size_t i = 0; i < from->n; i++) {
        add_use(to, from->items[i].user, from->items[i].n);
        sc_release(from->items[i].user);
    }
    free(from->items);
    *from = (sc_uses){0};
}

void sc_uses_take(sc_uses *to, sc_graph *graph)
{
    sc_uses_move(to, &graph->uses);
    for (size_t i = 0; i < graph->nodes.n; i++)
        if (graph->nodes.items[i]->child)
            sc_uses_take(to, graph->nodes.items[i]->child);
}

API(cuUserObjectCreate, CUuserObject *ret_object, void *pointer, CUhostFn destroy, unsigned n, unsigned flags)
{
    if (!ret_object || !destroy || !n || flags != CU_USER_OBJECT_NO_DESTRUCTOR_SYNC)
        return CUDA_ERROR_INVALID_VALUE;
    TRY(sc_initialized());
    sc_user *user = sc_object_create(sizeof *user, SC_USER, NULL, finish_user);
    if (!user)
        return CUDA_ERROR_OUT_OF_MEMORY;
    user->n = n;
    user->destroy = destroy;
    user->pointer = pointer;
    if (!sc_object_publish(user, (uintptr_t)user)) {
        sc_release(user);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *ret_object = (CUuserObject)user;
    return CUDA_SUCCESS;
}

static sc_user *find_user(CUuserObject handle)
{
    return sc_object_find(SC_USER, (uintptr_t)handle);
}

API(cuUserObjectRetain, CUuserObject handle, unsigned n)
{
    TRY(sc_initialized());
    sc_user *user = find_user(handle);
    if (!user || !n)
        return CUDA_ERROR_INVALID_VALUE;
    sc_lock();
    user->n += n;
    sc_unlock();
    return CUDA_SUCCESS;
}

API(cuUserObjectRelease, CUuserObject handle, unsigned n)
{
    TRY(sc_initialized());
    sc_user *user = find_user(handle);
    if (!user || !n)
        return CUDA_ERROR_INVALID_VALUE;
    drop(user, n);
    return CUDA_SUCCESS;
}

API(cuGraphRetainUserObject, CUgraph handle, CUuserObject object, unsigned n, unsigned flags)
{
    TRY(sc_initialized());
    sc_graph *graph = sc_graph_find(handle);
    sc_user *user = find_user(object);
    if (!graph || !user || !n || flags & ~(unsigned)CU_GRAPH_USER_OBJECT_MOVE)
        return CUDA_ERROR_INVALID_VALUE;
    sc_lock();
    bool added = add_use(&graph->uses, user, n);
    if (added && !(flags & CU_GRAPH_USER_OBJECT_MOVE))
        user->n += n;
    sc_unlock();
    return added ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

API(cuGraphReleaseUserObject, CUgraph handle, CUuserObject object, unsigned n)
{
    TRY(sc_initialized());
    sc_graph *graph = sc_graph_find(handle);
    sc_user *user = find_user(object);
    if (!graph || !user || !n)
        return CUDA_ERROR_INVALID_VALUE;
    bool held = false;
    sc_lock();
    for (size_t i = 0; i < graph->uses.n; i++)
        if (graph->uses.items[i].user == user && graph->uses.items[i].n >= n) {
            graph->uses.items[i].n -= n;
            held = true;
        }
    sc_unlock();
    if (held)
        drop(user, n);
    return held ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
