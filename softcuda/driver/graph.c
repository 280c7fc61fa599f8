/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs: which nodes, the edges between them, copies, a picture. */
#include "softcuda/driver/graph.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- sets of nodes ---- */

bool sc_nodes_have(const sc_nodes *set, const sc_node *node)
{
    for (size_t i = 0; i < set->n; i++)
        if (set->items[i] == node)
            return true;
    return false;
}

bool sc_nodes_add(sc_nodes *set, sc_node *node)
{
    if (sc_nodes_have(set, node))
        return true;
    sc_node **grown = realloc(set->items, (set->n + 1) * sizeof(sc_node *));
    if (!grown)
        return false;
    set->items = grown;
    grown[set->n++] = node;
    return true;
}

bool sc_nodes_add_all(sc_nodes *set, const sc_nodes *others)
{
    for (size_t i = 0; i < others->n; i++)
        if (!sc_nodes_add(set, others->items[i]))
            return false;
    return true;
}

static void remove_from(sc_nodes *set, const sc_node *node)
{
    size_t n = 0;
    for (size_t i = 0; i < set->n; i++)
        if (set->items[i] != node)
            set->items[n++] = set->items[i];
    set->n = n;
}

void sc_nodes_clear(sc_nodes *set)
{
    free(set->items);
    *set = (sc_nodes){0};
}

/* ---- graphs ---- */

static void end_node(sc_object *object)
{
    sc_node *node = (sc_node *)object;
    if (node->child) {
        sc_object_retract(node->child);
        sc_release(node->child);
    }
}

static void finish_node(sc_object *object)
{
    sc_node *node = (sc_node *)object;
    sc_work_release(node->work);
    sc_nodes_clear(&node->before);
    free(node->attributes);
    free(node);
}

/* With the mutex held, where other threads can know the graph. */
static void end_graph(sc_object *object)
{
    sc_graph *graph = (sc_graph *)object;
    for (size_t i = 0; i < graph->nodes.n; i++)
        sc_object_retract(graph->nodes.items[i]);
}

static void finish_graph(sc_object *object)
{
    sc_graph *graph = (sc_graph *)object;
    for (size_t i = 0; i < graph->nodes.n; i++)
        sc_release(graph->nodes.items[i]);
    sc_nodes_clear(&graph->nodes);
    sc_uses_drop(&graph->uses);
    free(graph);
}

sc_graph *sc_graph_create(void)
{
    sc_graph *graph = sc_object_create(sizeof(sc_graph), SC_GRAPH, NULL, finish_graph);
    if (graph) {
        graph->object.end = end_graph;
        graph->id = sc_next_id();
    }
    return graph;
}

sc_graph *sc_graph_find(CUgraph handle)
{
    return sc_object_find(SC_GRAPH, (uintptr_t)handle);
}

sc_node *sc_node_find(CUgraphNode handle)
{
    return sc_object_find(SC_NODE, (uintptr_t)handle);
}

sc_node *sc_graph_add(sc_graph *graph, sc_work *work, const sc_nodes *before)
{
    sc_node *node = sc_has_ended(graph) ? NULL : sc_object_create(sizeof *node, SC_NODE, NULL, finish_node);
    if (!node) {
        sc_work_release(work);
        return NULL;
    }
    node->object.end = end_node;
    node->graph = graph;
    node->type = work->type;
    node->work = work;
    node->index = graph->nodes.n;
    node->id = sc_next_id();
    if (!sc_nodes_add_all(&node->before, before) || !sc_object_publish(node, (uintptr_t)node)) {
        sc_release(node);
        return NULL;
    }
    if (!sc_nodes_add(&graph->nodes, node)) {
        sc_object_drop(node);
        return NULL;
    }
    return node;
}

static bool are_placed(const sc_nodes *before, const bool *placed)
{
    for (size_t i = 0; i < before->n; i++)
        if (!placed[before->items[i]->index])
            return false;
    return true;
}

/* Again and again through the nodes: they mostly are in order already. */
bool sc_graph_order(const sc_graph *graph, sc_node ***ret_nodes)
{
    const sc_nodes *all = &graph->nodes;
    sc_node **order = calloc(all->n + 1, sizeof(sc_node *));
    bool *placed = calloc(all->n + 1, sizeof *placed);
    size_t n = 0, before = 1;
    while (order && placed && n < all->n && n != before) {
        before = n;
        for (size_t i = 0; i < all->n; i++)
            if (!placed[i] && are_placed(&all->items[i]->before, placed)) {
                placed[i] = true;
                order[n++] = all->items[i];
            }
        if (n == before)
            break;
    }
    bool whole = order && placed && n == all->n;
    free(placed);
    if (whole)
        *ret_nodes = order;
    else
        free(order);
    return whole;
}

CUresult sc_graph_nodes(const sc_graph *graph, const CUgraphNode *handles, size_t n, sc_nodes *ret_nodes)
{
    sc_nodes nodes = {0};
    if (n && !handles)
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < n; i++) {
        sc_node *node = sc_node_find(handles[i]);
        bool good = node && node->graph == graph && !sc_nodes_have(&nodes, node);
        if (!good || !sc_nodes_add(&nodes, node)) {
            sc_nodes_clear(&nodes);
            return good ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_INVALID_VALUE;
        }
    }
    *ret_nodes = nodes;
    return CUDA_SUCCESS;
}

/* Everything of a node but its place. */
static bool copy_node(sc_node *to, const sc_node *from)
{
    to->origin = from->id;
    to->has_params = from->has_params;
    to->params = from->params;
    if (from->attributes) {
        to->attributes = malloc(SC_N_ATTRIBUTES * sizeof *to->attributes);
        if (!to->attributes)
            return false;
        memcpy(to->attributes, from->attributes, SC_N_ATTRIBUTES * sizeof *to->attributes);
    }
    if (!from->child)
        return true;
    to->child = sc_graph_copy(from->child);
    if (to->child)
        to->child->is_child = true;
    return to->child && sc_object_publish(to->child, (uintptr_t)to->child);
}

sc_graph *sc_graph_copy(const sc_graph *graph)
{
    sc_graph *copy = sc_graph_create();
    bool good = copy && sc_uses_copy(&copy->uses, &graph->uses);
    for (size_t i = 0; good && i < graph->nodes.n; i++) {
        sc_work_retain(graph->nodes.items[i]->work);
        sc_node *node = sc_graph_add(copy, graph->nodes.items[i]->work, &(sc_nodes){0});
        good = node && copy_node(node, graph->nodes.items[i]);
    }
    for (size_t i = 0; good && i < graph->nodes.n; i++) {
        const sc_nodes *before = &graph->nodes.items[i]->before;
        for (size_t j = 0; good && j < before->n; j++)
            good = sc_nodes_add(&copy->nodes.items[i]->before, copy->nodes.items[before->items[j]->index]);
    }
    if (copy)
        copy->origin = graph->id;
    if (!good) {
        sc_release(copy);
        return NULL;
    }
    return copy;
}

API(cuGraphCreate, CUgraph *ret_graph, unsigned flags)
{
    TRY(sc_initialized());
    if (!ret_graph || flags)
        return CUDA_ERROR_INVALID_VALUE;
    sc_graph *graph = sc_graph_create();
    if (!graph || !sc_object_publish(graph, (uintptr_t)graph)) {
        sc_release(graph);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *ret_graph = (CUgraph)graph;
    return CUDA_SUCCESS;
}

API(cuGraphDestroy, CUgraph handle)
{
    TRY(sc_initialized());
    sc_graph *graph = sc_graph_find(handle);
    if (!graph)
        return CUDA_ERROR_INVALID_VALUE;
    sc_uses uses = {0};
    sc_lock();
    bool is_its_own = !graph->is_child;
    if (is_its_own) {
        sc_uses_take(&uses, graph);
        sc_object_drop(graph);
    }
    sc_unlock();
    sc_uses_drop(&uses);
    return is_its_own ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult sc_graph_clone(const sc_graph *graph, bool as_child, sc_graph **ret_copy)
{
    sc_lock();
    bool has_memory = sc_graph_has_memory(graph);
    sc_graph *copy = has_memory ? NULL : sc_graph_copy(graph);
    sc_unlock();
    if (has_memory)
        return CUDA_ERROR_NOT_SUPPORTED;
    if (copy)
        copy->is_child = as_child;
    if (!copy || !sc_object_publish(copy, (uintptr_t)copy)) {
        sc_release(copy);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *ret_copy = copy;
    return CUDA_SUCCESS;
}

API(cuGraphClone, CUgraph *ret_copy, CUgraph handle)
{
    TRY(sc_initialized());
    sc_graph *graph = sc_graph_find(handle);
    if (!ret_copy || !graph)
        return CUDA_ERROR_INVALID_VALUE;
    sc_graph *copy;
    TRY(sc_graph_clone(graph, false, &copy));
    *ret_copy = (CUgraph)copy;
    return CUDA_SUCCESS;
}

API(cuGraphNodeFindInClone, CUgraphNode *ret_node, CUgraphNode original, CUgraph handle)
{
    TRY(sc_initialized());
    sc_graph *copy = sc_graph_find(handle);
    const sc_node *node = sc_node_find(original);
    if (!ret_node || !copy || !node || copy->origin != node->graph->id)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = CUDA_ERROR_INVALID_VALUE;
    sc_lock();
    for (size_t i = 0; i < copy->nodes.n && result; i++)
        if (copy->nodes.items[i]->origin == node->id) {
            *ret_node = (CUgraphNode)copy->nodes.items[i];
            result = CUDA_SUCCESS;
        }
    sc_unlock();
    return result;
}

/* ---- what a graph is made of ---- */

/* Fills a caller's array, and its count: how many there are, or were written where it has less room. */
typedef struct answer {
    CUgraphNode *nodes, *others;
    size_t room, n;
} answer;

static void put(answer *a, const sc_node *node, const sc_node *other)
{
    if (a->n < a->room && a->nodes)
        a->nodes[a->n] = (CUgraphNode)(uintptr_t)node;
    if (a->n < a->room && a->others)
        a->others[a->n] = (CUgraphNode)(uintptr_t)other;
    a->n++;
}

static void finish_answer(answer *a, size_t *ret_n)
{
    for (size_t i = a->n; i < a->room && a->nodes; i++) {
        a->nodes[i] = NULL;
        if (a->others)
            a->others[i] = NULL;
    }
    *ret_n = a->nodes && a->n > a->room ? a->room : a->n;
}

static answer answer_in(CUgraphNode *nodes, CUgraphNode *others, const size_t *n)
{
    return (answer){nodes, others, nodes ? *n : 0, 0};
}

static CUresult list_nodes(CUgraph handle, CUgraphNode *nodes, size_t *n, bool roots)
{
    TRY(sc_initialized());
    const sc_graph *graph = sc_graph_find(handle);
    if (!graph || !n)
        return CUDA_ERROR_INVALID_VALUE;
    answer a = answer_in(nodes, NULL, n);
    sc_lock();
    for (size_t i = 0; i < graph->nodes.n; i++)
        if (!roots || !graph->nodes.items[i]->before.n)
            put(&a, graph->nodes.items[i], NULL);
    sc_unlock();
    finish_answer(&a, n);
    return CUDA_SUCCESS;
}

API(cuGraphGetNodes, CUgraph graph, CUgraphNode *nodes, size_t *n)
{
    return list_nodes(graph, nodes, n, false);
}

API(cuGraphGetRootNodes, CUgraph graph, CUgraphNode *nodes, size_t *n)
{
    return list_nodes(graph, nodes, n, true);
}

/* What is known of each edge: nothing special. */
static void clear_edges(CUgraphEdgeData *edges, size_t n)
{
    if (edges)
        memset(edges, 0, n * sizeof *edges);
}

API(cuGraphGetEdges_v2, CUgraph handle, CUgraphNode *from, CUgraphNode *to, CUgraphEdgeData *edges, size_t *n)
{
    TRY(sc_initialized());
    const sc_graph *graph = sc_graph_find(handle);
    if (!graph || !n || !from != !to)
        return CUDA_ERROR_INVALID_VALUE;
    answer a = answer_in(from, to, n);
    sc_lock();
    for (size_t k = 0; k < graph->nodes.n; k++)
        for (size_t i = 0; i < graph->nodes.n; i++)
            if (sc_nodes_have(&graph->nodes.items[i]->before, graph->nodes.items[k]))
                put(&a, graph->nodes.items[k], graph->nodes.items[i]);
    sc_unlock();
    finish_answer(&a, n);
    clear_edges(from ? edges : NULL, *n);
    return CUDA_SUCCESS;
}

API(cuGraphGetEdges, CUgraph graph, CUgraphNode *from, CUgraphNode *to, size_t *n)
{
    return cuGraphGetEdges_v2(graph, from, to, NULL, n);
}

API(cuGraphNodeGetDependencies_v2, CUgraphNode handle, CUgraphNode *nodes, CUgraphEdgeData *edges, size_t *n)
{
    TRY(sc_initialized());
    const sc_node *node = sc_node_find(handle);
    if (!node || !n)
        return CUDA_ERROR_INVALID_VALUE;
    answer a = answer_in(nodes, NULL, n);
    sc_lock();
    for (size_t i = 0; i < node->before.n; i++)
        put(&a, node->before.items[i], NULL);
    sc_unlock();
    finish_answer(&a, n);
    clear_edges(nodes ? edges : NULL, *n);
    return CUDA_SUCCESS;
}

API(cuGraphNodeGetDependencies, CUgraphNode node, CUgraphNode *nodes, size_t *n)
{
    return cuGraphNodeGetDependencies_v2(node, nodes, NULL, n);
}

API(cuGraphNodeGetDependentNodes_v2, CUgraphNode handle, CUgraphNode *nodes, CUgraphEdgeData *edges,
    size_t *n)
{
    TRY(sc_initialized());
    const sc_node *node = sc_node_find(handle);
    if (!node || !n)
        return CUDA_ERROR_INVALID_VALUE;
    answer a = answer_in(nodes, NULL, n);
    sc_lock();
    for (size_t i = 0; i < node->graph->nodes.n; i++)
        if (sc_nodes_have(&node->graph->nodes.items[i]->before, node))
            put(&a, node->graph->nodes.items[i], NULL);
    sc_unlock();
    finish_answer(&a, n);
    clear_edges(nodes ? edges : NULL, *n);
    return CUDA_SUCCESS;
}

API(cuGraphNodeGetDependentNodes, CUgraphNode node, CUgraphNode *nodes, size_t *n)
{
    return cuGraphNodeGetDependentNodes_v2(node, nodes, NULL, n);
}

API(cuGraphNodeGetType, CUgraphNode handle, CUgraphNodeType *type)
{
    TRY(sc_initialized());
    const sc_node *node = sc_node_find(handle);
    if (!node || !type)
        return CUDA_ERROR_INVALID_VALUE;
    *type = node->type;
    return CUDA_SUCCESS;
}

/* ---- changing it ---- */

static CUresult change_edge(sc_graph *graph, CUgraphNode from, CUgraphNode to, bool is_there)
{
    sc_node *a = sc_node_find(from), *b = sc_node_find(to);
    if (!a || !b || a == b || a->graph != graph || b->graph != graph ||
        sc_nodes_have(&b->before, a) != is_there)
        return CUDA_ERROR_INVALID_VALUE;
    if (is_there)
        remove_from(&b->before, a);
    else if (!sc_nodes_add(&b->before, a))
        return CUDA_ERROR_OUT_OF_MEMORY;
    return CUDA_SUCCESS;
}

/* Those before the first wrong one stay changed. */
static CUresult change_edges(CUgraph handle, const CUgraphNode *from, const CUgraphNode *to, size_t n,
                             bool are_there)
{
    TRY(sc_initialized());
    sc_graph *graph = sc_graph_find(handle);
    if (!graph || (n && (!from || !to)))
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = CUDA_SUCCESS;
    sc_lock();
    for (size_t i = 0; i < n && !result; i++)
        result = change_edge(graph, from[i], to[i], are_there);
    sc_unlock();
    return result;
}

API(cuGraphAddDependencies, CUgraph graph, const CUgraphNode *from, const CUgraphNode *to, size_t n)
{
    return change_edges(graph, from, to, n, false);
}

API(cuGraphRemoveDependencies, CUgraph graph, const CUgraphNode *from, const CUgraphNode *to, size_t n)
{
    return change_edges(graph, from, to, n, true);
}

/* Edges from a part of a node on (programmatic launches) are not there. */
static bool are_plain(const CUgraphEdgeData *edges, size_t n)
{
    static const CUgraphEdgeData plain;
    for (size_t i = 0; edges && i < n; i++)
        if (memcmp(&edges[i], &plain, sizeof plain) != 0)
            return false;
    return true;
}

API(cuGraphAddDependencies_v2, CUgraph graph, const CUgraphNode *from, const CUgraphNode *to,
    const CUgraphEdgeData *edges, size_t n)
{
    return are_plain(edges, n) ? cuGraphAddDependencies(graph, from, to, n)
                               : sc_lacks("edges between parts of nodes");
}

API(cuGraphRemoveDependencies_v2, CUgraph graph, const CUgraphNode *from, const CUgraphNode *to,
    const CUgraphEdgeData *edges, size_t n)
{
    return are_plain(edges, n) ? cuGraphRemoveDependencies(graph, from, to, n)
                               : sc_lacks("edges between parts of nodes");
}

API(cuGraphDestroyNode, CUgraphNode handle)
{
    TRY(sc_initialized());
    sc_node *node = sc_node_find(handle);
    if (!node)
        return CUDA_ERROR_INVALID_VALUE;
    sc_graph *graph = node->graph;
    sc_uses uses = {0};
    sc_lock();
    bool is_captured = graph->n_captures; /* streams go on from its nodes */
    bool good = !is_captured && !sc_graph_has_memory(graph);
    if (good && sc_object_retract(node)) {
        if (node->child)
            sc_uses_take(&uses, node->child);
        remove_from(&graph->nodes, node);
        for (size_t i = 0; i < graph->nodes.n; i++) {
            graph->nodes.items[i]->index = i;
            remove_from(&graph->nodes.items[i]->before, node);
        }
        sc_release(node);
    }
    sc_unlock();
    sc_uses_drop(&uses);
    if (is_captured)
        sc_say("a node of a graph that is being captured cannot be destroyed");
    return good ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED;
}

/* ---- a picture ---- */

API(cuGraphDebugDotPrint, CUgraph handle, const char *path, unsigned flags)
{
    (void)flags; /* they ask for more than the shape */
    TRY(sc_initialized());
    const sc_graph *graph = sc_graph_find(handle);
    if (!graph || !path)
        return CUDA_ERROR_INVALID_VALUE;
    FILE *out = fopen(path, "we");
    if (!out)
        return CUDA_ERROR_OPERATING_SYSTEM;
    sc_lock();
    fprintf(out, "digraph dot {\n");
    for (size_t i = 0; i < graph->nodes.n; i++) {
        const sc_node *node = graph->nodes.items[i];
        fprintf(out, "node%zu [label=\"%zu, type %d\"];\n", i, i, (int)node->type);
        for (size_t j = 0; j < node->before.n; j++)
            fprintf(out, "node%zu -> node%zu;\n", node->before.items[j]->index, i);
    }
    sc_unlock();
    fprintf(out, "}\n");
    bool written = !ferror(out);
    return fclose(out) == 0 && written ? CUDA_SUCCESS : CUDA_ERROR_OPERATING_SYSTEM;
}
