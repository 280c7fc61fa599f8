/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SC_GRAPH_H
#define SC_GRAPH_H

/* The inside of graphs: what capture.c, graph.c, node.c, graphmem.c and exec.c share. All of it with sc_mutex
 * held, but what finds an object and what never changes of it: a node's graph and type, an id. */

#include "softcuda/driver/driver.h"

typedef struct sc_graph sc_graph;

enum { SC_N_ATTRIBUTES = CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING + 1 };

typedef union sc_node_params {
    CUDA_MEMCPY3D copy;
    CUDA_MEMSET_NODE_PARAMS fill;
} sc_node_params;

/* A node is a work, and the nodes before it. A child graph is a node whose work is nothing. */
struct sc_node {
    sc_object object;
    sc_graph *graph;
    CUgraphNodeType type; /* for good, whatever its work becomes */
    sc_work *work;
    sc_nodes before;
    size_t index;    /* in the graph */
    uint64_t id;     /* what instances know it by */
    uint64_t origin; /* of a node of a clone: the id of the node that it was made from */
    sc_graph *child;
    bool has_params; /* of a copy or fill that was added by hand: */
    sc_node_params params;
    CUlaunchAttributeValue *attributes; /* of a kernel, by number; NULL: none was set */
};

/* A graph's or an instance's share of a user object, with a reference to it. */
typedef struct sc_use {
    struct sc_user *user;
    unsigned long long n;
} sc_use;

typedef struct sc_uses {
    sc_use *items;
    size_t n;
} sc_uses;

struct sc_graph {
    sc_object object;
    sc_nodes nodes;
    sc_uses uses;
    bool is_child;       /* a node's, which alone ends it */
    uint64_t id, origin; /* of a clone: the id of the graph that it was made from */
    unsigned n_captures; /* in progress */
    uint64_t instance;   /* id of the last one */
};

sc_graph *sc_graph_create(void);
sc_graph *sc_graph_find(CUgraph handle);
sc_graph *sc_graph_copy(const sc_graph *graph); /* NULL: out of memory */
/* A copy that has a handle. Without the mutex. */
CUresult sc_graph_clone(const sc_graph *graph, bool as_child, sc_graph **ret_copy);
/* Consumes the work. NULL: out of memory. */
sc_node *sc_graph_add(sc_graph *graph, sc_work *work, const sc_nodes *before);
/* The same for a caller's handles: `made` is why there is no work, `like` has the parameters or the
 * child graph of the node; NULL: it has neither. */
CUresult sc_graph_add_handle(CUgraphNode *ret_handle, CUgraph graph, const CUgraphNode *before,
                             size_t n_before, CUresult made, sc_work *work, const sc_node *like);
/* Such graphs can be neither copied nor instantiated twice, and lose no nodes. */
bool sc_graph_has_memory(const sc_graph *graph);
bool sc_memory_work_is_out(const sc_work *work);
void sc_memory_work_launch(sc_work *work);
sc_graph *sc_capture_graph(const sc_capture *capture);
/* The nodes in an order in which each comes after those before it; false: there is none. The caller frees it.
 */
bool sc_graph_order(const sc_graph *graph, sc_node ***ret_nodes);
/* Nodes of this graph, none twice, from handles. */
CUresult sc_graph_nodes(const sc_graph *graph, const CUgraphNode *handles, size_t n, sc_nodes *ret_nodes);
sc_node *sc_node_find(CUgraphNode handle);

bool sc_nodes_have(const sc_nodes *set, const sc_node *node);
bool sc_nodes_add(sc_nodes *set, sc_node *node); /* false: out of memory */
bool sc_nodes_add_all(sc_nodes *set, const sc_nodes *others);
void sc_nodes_clear(sc_nodes *set);

/* Another holder of the same user objects; and none of them any more, which may destroy them. The mutex is
 * not held for the second. */
bool sc_uses_copy(sc_uses *to, const sc_uses *from);
void sc_uses_move(sc_uses *to, sc_uses *from);
void sc_uses_take(sc_uses *to, sc_graph *graph); /* its own and its children's */
void sc_uses_drop(sc_uses *uses);

/* What a call would add to a capture, as a work. */
typedef CUresult (*sc_capturable)(const void *params, CUstream stream);
CUresult sc_copy_node(const CUDA_MEMCPY3D *params, CUcontext context, sc_work **ret_work);
CUresult sc_fill_node(const CUDA_MEMSET_NODE_PARAMS *params, CUcontext context, sc_work **ret_work);
CUresult sc_capture_work(sc_context *context, sc_capturable call, const void *params, sc_work **ret_work);

#endif
