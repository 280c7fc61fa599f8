/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs made by hand: nodes of each kind, edges, clones, instances and their updates, user objects. */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/softcuda/facts/kernels.h"

static CUgraph new_graph(void)
{
    CUgraph graph;
    MUST(cuGraphCreate(&graph, 0));
    return graph;
}

static CUgraphNode empty_node(CUgraph graph, const CUgraphNode *before, size_t n)
{
    CUgraphNode node;
    MUST(cuGraphAddEmptyNode(&node, graph, before, n));
    return node;
}

static CUgraphExec instance(CUgraph graph)
{
    CUgraphExec exec;
    MUST(cuGraphInstantiateWithFlags(&exec, graph, 0));
    return exec;
}

static void launch_and_wait(CUgraphExec exec)
{
    ASK(cuGraphLaunch(exec, NULL));
    ASK(cuCtxSynchronize());
}

static void say_type(CUgraphNode node)
{
    CUgraphNodeType type = (CUgraphNodeType)NO_SUCH;
    CUresult result = cuGraphNodeGetType(node, &type);
    say(" %d(%d)", (int)result, (int)type);
}

static void graph_wrong(void)
{
    CUgraph graph, copy;
    CUgraphNode node;
    CUgraphExec exec;
    size_t n = 0;
    MUST(cuInit(0));
    ASK(cuGraphCreate(NULL, 0));
    ASK(cuGraphCreate(&graph, 1));
    ASK(cuGraphCreate(&graph, 0));
    ASK(cuGraphDestroy(NULL));
    ASK(cuGraphGetNodes(NULL, NULL, &n));
    ASK(cuGraphGetNodes(graph, NULL, NULL));
    ASK(cuGraphGetRootNodes(NULL, NULL, &n));
    ASK(cuGraphGetRootNodes(graph, NULL, NULL));
    ASK(cuGraphGetEdges(NULL, NULL, NULL, &n));
    ASK(cuGraphGetEdges(graph, NULL, NULL, NULL));
    ASK(cuGraphNodeGetType(NULL, NULL));
    ASK(cuGraphNodeGetDependencies(NULL, NULL, &n));
    ASK(cuGraphNodeGetDependentNodes(NULL, NULL, &n));
    ASK(cuGraphDestroyNode(NULL));
    ASK(cuGraphClone(NULL, graph));
    ASK(cuGraphClone(&copy, NULL));
    ASK(cuGraphNodeFindInClone(&node, NULL, graph));
    ASK(cuGraphInstantiateWithFlags(NULL, graph, 0));
    ASK(cuGraphInstantiateWithFlags(&exec, NULL, 0));
    ASK(cuGraphInstantiateWithFlags(&exec, graph, 16));
    ASK(cuGraphExecDestroy(NULL));
    ASK(cuGraphLaunch(NULL, NULL));
    ASK(cuGraphUpload(NULL, NULL));
    ASK(cuGraphAddEmptyNode(NULL, graph, NULL, 0));
    ASK(cuGraphAddEmptyNode(&node, NULL, NULL, 0));
    ASK(cuGraphAddEmptyNode(&node, graph, NULL, 1));
    ASK(cuGraphDestroy(graph));
}

/* ---- edges ---- */

static void edges(void)
{
    CUgraphNode from[8] = {NULL}, to[8] = {NULL}, nodes[8] = {NULL};
    size_t n = 0;
    begin();
    CUgraph graph = new_graph();
    CUgraphNode a = empty_node(graph, NULL, 0), b = empty_node(graph, &a, 1);
    CUgraphNode c = empty_node(graph, (CUgraphNode[]){a, b}, 2);
    empty_node(graph, NULL, 0);
    ASK(cuGraphGetNodes(graph, NULL, &n));
    say(":%zu", n);
    n = 2;
    ASK(cuGraphGetNodes(graph, nodes, &n));
    say(":%zu,%d%d%d", n, nodes[0] == a, nodes[1] == b, nodes[2] == NULL);
    n = 8;
    nodes[5] = a;
    ASK(cuGraphGetNodes(graph, nodes, &n));
    say(":%zu,%d", n, nodes[5] == NULL);
    ASK(cuGraphGetRootNodes(graph, NULL, &n));
    say(":%zu", n);
    n = 8;
    ASK(cuGraphGetRootNodes(graph, nodes, &n));
    say(":%zu,%d", n, nodes[0] != nodes[1]);
    ASK(cuGraphGetEdges(graph, NULL, NULL, &n));
    say(":%zu", n);
    n = 8;
    ASK(cuGraphGetEdges(graph, from, to, &n));
    say(":%zu", n);
    say(",%d%d%d%d%d%d", from[0] == a, to[0] == b, from[1] == a, to[1] == c, from[2] == b, to[2] == c);
    n = 1;
    ASK(cuGraphGetEdges(graph, from, to, &n));
    say(":%zu", n);
    ASK(cuGraphGetEdges(graph, from, NULL, &n));
    ASK(cuGraphNodeGetDependencies(c, NULL, &n));
    say(":%zu", n);
    n = 8;
    ASK(cuGraphNodeGetDependencies(c, nodes, &n));
    say(":%zu,%d%d", n, nodes[0] == a, nodes[1] == b);
    ASK(cuGraphNodeGetDependentNodes(a, NULL, &n));
    say(":%zu", n);
    n = 8;
    ASK(cuGraphNodeGetDependentNodes(a, nodes, &n));
    say(":%zu,%d%d", n, nodes[0] == b, nodes[1] == c);
    CUgraphEdgeData data[8];
    n = 8;
    memset(data, 0x55, sizeof data);
    ASK(cuGraphNodeGetDependencies_v2(c, nodes, data, &n));
    say(":%zu,%d,%d,%d", n, data[0].type, data[0].from_port, data[0].to_port);
}

static void edges_change(void)
{
    size_t n = 0;
    begin();
    CUgraph graph = new_graph(), other = new_graph();
    CUgraphNode a = empty_node(graph, NULL, 0), b = empty_node(graph, NULL, 0),
                c = empty_node(graph, NULL, 0);
    CUgraphNode foreign = empty_node(other, NULL, 0);
    ASK(cuGraphAddDependencies(graph, &a, &b, 1));
    ASK(cuGraphAddDependencies(graph, &a, &b, 1));
    ASK(cuGraphAddDependencies(graph, &b, &c, 1));
    ASK(cuGraphAddDependencies(graph, &c, &a, 1));
    ASK(cuGraphGetEdges(graph, NULL, NULL, &n));
    say(":%zu", n);
    ASK(cuGraphAddDependencies(graph, &a, &a, 1));
    ASK(cuGraphAddDependencies(graph, &a, &foreign, 1));
    ASK(cuGraphAddDependencies(graph, NULL, NULL, 0));
    ASK(cuGraphAddDependencies(graph, NULL, &b, 1));
    ASK(cuGraphAddDependencies(NULL, &a, &b, 1));
    ASK(cuGraphRemoveDependencies(graph, &a, &b, 1));
    ASK(cuGraphRemoveDependencies(graph, &a, &b, 1));
    ASK(cuGraphRemoveDependencies(graph, &a, &c, 1));
    ASK(cuGraphRemoveDependencies(graph, &a, &foreign, 1));
    ASK(cuGraphRemoveDependencies(NULL, &a, &b, 1));
    ASK(cuGraphGetEdges(graph, NULL, NULL, &n));
    say(":%zu", n);
    CUgraphNode froms[] = {a, b}, tos[] = {b, c};
    ASK(cuGraphAddDependencies(graph, froms, tos, 2));
    ASK(cuGraphGetEdges(graph, NULL, NULL, &n));
    say(":%zu", n);
}

static void edges_cycle(void)
{
    CUgraphExec exec;
    CUDA_GRAPH_INSTANTIATE_PARAMS with = {0};
    begin();
    CUgraph graph = new_graph();
    CUgraphNode a = empty_node(graph, NULL, 0), b = empty_node(graph, &a, 1);
    ASK(cuGraphAddDependencies(graph, &b, &a, 1));
    ASK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    ASK(cuGraphInstantiateWithParams(&exec, graph, &with));
    say(":%d,%d", with.result_out, with.hErrNode_out != NULL);
}

static void edges_when_adding(void)
{
    CUgraphNode node;
    begin();
    CUgraph graph = new_graph(), other = new_graph();
    CUgraphNode a = empty_node(graph, NULL, 0), foreign = empty_node(other, NULL, 0);
    ASK(cuGraphAddEmptyNode(&node, graph, (CUgraphNode[]){a, a}, 2));
    ASK(cuGraphAddEmptyNode(&node, graph, &foreign, 1));
    ASK(cuGraphAddEmptyNode(&node, graph, (CUgraphNode[]){a, NULL}, 2));
    ASK(cuGraphAddEmptyNode(&node, graph, &a, 0));
    size_t n = 0;
    ASK(cuGraphGetNodes(graph, NULL, &n));
    say(":%zu", n);
}

static void nodes_destroyed(void)
{
    size_t n = 0;
    begin();
    CUgraph graph = new_graph();
    CUgraphNode a = empty_node(graph, NULL, 0), b = empty_node(graph, &a, 1), c = empty_node(graph, &b, 1);
    ASK(cuGraphDestroyNode(b));
    ASK(cuGraphGetNodes(graph, NULL, &n));
    say(":%zu", n);
    ASK(cuGraphGetEdges(graph, NULL, NULL, &n));
    say(":%zu", n);
    ASK(cuGraphNodeGetDependencies(c, NULL, &n));
    say(":%zu", n);
    launch_and_wait(instance(graph));
}

/* ---- kernel nodes ---- */

static CUDA_KERNEL_NODE_PARAMS launch_of(CUfunction f, void **params)
{
    return (CUDA_KERNEL_NODE_PARAMS){.func = f,
                                     .gridDimX = 1,
                                     .gridDimY = 1,
                                     .gridDimZ = 1,
                                     .blockDimX = 2,
                                     .blockDimY = 1,
                                     .blockDimZ = 1,
                                     .kernelParams = params};
}

static void kernel_nodes(void)
{
    unsigned v = 3;
    CUgraphNode node;
    begin();
    CUdeviceptr p = memory(64);
    CUfunction f = kernel("add");
    CUDA_KERNEL_NODE_PARAMS made = launch_of(f, (void *[]){&p, &v}), got;
    CUgraph graph = new_graph();
    ASK(cuGraphAddKernelNode_v2(&node, graph, NULL, 0, &made));
    say_type(node);
    v = 50;
    memset(&got, 0x55, sizeof got);
    ASK(cuGraphKernelNodeGetParams_v2(node, &got));
    say(":%d,%u,%u,%u,%d,%d,%u", got.func == f, got.gridDimX, got.blockDimX, got.sharedMemBytes,
        got.kernelParams != NULL, got.extra == NULL, got.kernelParams ? *(unsigned *)got.kernelParams[1] : 0);
    say(",%d,%d", got.kern == NULL, got.ctx == NULL);
    CUgraphExec exec = instance(graph);
    launch_and_wait(exec);
    say(" %u", word_at(p));
    made.gridDimX = 10;
    ASK(cuGraphKernelNodeSetParams_v2(node, &made));
    launch_and_wait(exec);
    say(" %u", word_at(p));
    v = 1000;
    ASK(cuGraphExecKernelNodeSetParams_v2(exec, node, &made));
    launch_and_wait(exec);
    say(" %u", word_at(p));
    launch_and_wait(instance(graph));
    say(" %u", word_at(p));
}

static void kernel_nodes_wrong(void)
{
    unsigned v = 3;
    CUgraphNode node;
    CUDA_KERNEL_NODE_PARAMS got;
    begin();
    CUdeviceptr p = memory(64);
    CUmodule module = load(kernels_ptx);
    CUfunction f = function(module, "add"), nul = function(module, "nul");
    CUDA_KERNEL_NODE_PARAMS good = launch_of(f, (void *[]){&p, &v}), bad;
    CUgraph graph = new_graph();
    CUgraphNode empty = empty_node(graph, NULL, 0);
    ASK(cuGraphAddKernelNode_v2(NULL, graph, NULL, 0, &good));
    ASK(cuGraphAddKernelNode_v2(&node, NULL, NULL, 0, &good));
    ASK(cuGraphAddKernelNode_v2(&node, graph, NULL, 0, NULL));
    ASK(cuGraphAddKernelNode_v2(&node, graph, NULL, 1, &good));
    bad = good;
    bad.func = NULL;
    ASK(cuGraphAddKernelNode_v2(&node, graph, NULL, 0, &bad));
    bad = good;
    bad.gridDimX = 0;
    ASK(cuGraphAddKernelNode_v2(&node, graph, NULL, 0, &bad));
    bad = good;
    bad.blockDimX = 1025;
    ASK(cuGraphAddKernelNode_v2(&node, graph, NULL, 0, &bad));
    bad = good;
    bad.sharedMemBytes = 49153;
    ASK(cuGraphAddKernelNode_v2(&node, graph, NULL, 0, &bad));
    bad = good;
    bad.kernelParams = NULL;
    ASK(cuGraphAddKernelNode_v2(&node, graph, NULL, 0, &bad));
    size_t n = 0;
    MUST(cuGraphGetNodes(graph, NULL, &n));
    say(":%zu |", n);
    ASK(cuGraphAddKernelNode_v2(&node, graph, NULL, 0, &good));
    ASK(cuGraphKernelNodeGetParams_v2(NULL, &got));
    ASK(cuGraphKernelNodeGetParams_v2(node, NULL));
    ASK(cuGraphKernelNodeGetParams_v2(empty, &got));
    ASK(cuGraphKernelNodeSetParams_v2(NULL, &good));
    ASK(cuGraphKernelNodeSetParams_v2(node, NULL));
    ASK(cuGraphKernelNodeSetParams_v2(empty, &good));
    bad = good;
    bad.gridDimX = 0;
    ASK(cuGraphKernelNodeSetParams_v2(node, &bad));
    bad = launch_of(nul, NULL);
    ASK(cuGraphKernelNodeSetParams_v2(node, &bad));
    CUgraphExec exec = instance(graph);
    say(" |");
    ASK(cuGraphExecKernelNodeSetParams_v2(exec, node, &good));
    ASK(cuGraphExecKernelNodeSetParams_v2(NULL, node, &good));
    ASK(cuGraphExecKernelNodeSetParams_v2(exec, NULL, &good));
    ASK(cuGraphExecKernelNodeSetParams_v2(exec, node, NULL));
    ASK(cuGraphExecKernelNodeSetParams_v2(exec, empty, &good));
    bad = good;
    bad.blockDimX = 0;
    ASK(cuGraphExecKernelNodeSetParams_v2(exec, node, &bad));
}

static void kernel_nodes_extra(void)
{
    char block[12];
    size_t bytes = sizeof block;
    unsigned v = 4;
    CUgraphNode node;
    begin();
    CUdeviceptr p = memory(64);
    CUDA_KERNEL_NODE_PARAMS made = launch_of(kernel("add"), NULL), got;
    memcpy(block, &p, 8);
    memcpy(block + 8, &v, 4);
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, block, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
                     CU_LAUNCH_PARAM_END};
    made.extra = extra;
    CUgraph graph = new_graph();
    ASK(cuGraphAddKernelNode_v2(&node, graph, NULL, 0, &made));
    ASK(cuGraphKernelNodeGetParams_v2(node, &got));
    say(":%d,%d", got.kernelParams != NULL, got.extra != NULL);
    memset(block, 0, sizeof block);
    launch_and_wait(instance(graph));
    say(" %u", word_at(p));
}

static void kernel_nodes_of_library(void)
{
    CUlibrary library;
    CUkernel k;
    CUgraphNode node;
    begin();
    MUST(cuLibraryLoadData(&library, kernels_ptx, NULL, NULL, 0, NULL, NULL, 0));
    MUST(cuLibraryGetKernel(&k, library, "nul"));
    CUgraph graph = new_graph();
    CUDA_KERNEL_NODE_PARAMS made = launch_of(NULL, NULL), got;
    made.kern = k;
    ASK(cuGraphAddKernelNode_v2(&node, graph, NULL, 0, &made));
    ASK(cuGraphKernelNodeGetParams_v2(node, &got));
    say(":%d,%d,%d", got.func == NULL, got.kern == k, got.ctx == NULL);
    made.func = (CUfunction)k;
    made.kern = NULL;
    ASK(cuGraphAddKernelNode_v2(&node, graph, NULL, 0, &made));
    launch_and_wait(instance(graph));
}

static void kernel_attributes(void)
{
    CUgraphNode node, other;
    CUlaunchAttributeValue value = {{0}};
    begin();
    CUfunction f = kernel("nul");
    CUDA_KERNEL_NODE_PARAMS made = launch_of(f, NULL);
    CUgraph graph = new_graph();
    CUgraphNode empty = empty_node(graph, NULL, 0);
    MUST(cuGraphAddKernelNode_v2(&node, graph, NULL, 0, &made));
    MUST(cuGraphAddKernelNode_v2(&other, graph, NULL, 0, &made));
    for (int id = 0; id < 18; id++)
        say(" %d:%d", id, (int)cuGraphKernelNodeGetAttribute(node, (CUlaunchAttributeID)id, &value));
    value.cooperative = 1;
    ASK(cuGraphKernelNodeSetAttribute(node, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &value));
    value.cooperative = 0;
    ASK(cuGraphKernelNodeGetAttribute(node, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &value));
    say(":%d", value.cooperative);
    value.priority = -3;
    ASK(cuGraphKernelNodeSetAttribute(node, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value));
    ASK(cuGraphKernelNodeCopyAttributes(other, node));
    value.cooperative = 0;
    ASK(cuGraphKernelNodeGetAttribute(other, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &value));
    say(":%d", value.cooperative);
    ASK(cuGraphKernelNodeGetAttribute(other, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value));
    say(":%d", value.priority);
    ASK(cuGraphKernelNodeSetAttribute(node, (CUlaunchAttributeID)55, &value));
    ASK(cuGraphKernelNodeSetAttribute(empty, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value));
    ASK(cuGraphKernelNodeCopyAttributes(empty, node));
    launch_and_wait(instance(graph));
}

/* ---- copies and fills ---- */

static CUDA_MEMCPY3D copy_of(CUdeviceptr to, const void *from, size_t bytes)
{
    return (CUDA_MEMCPY3D){.srcMemoryType = CU_MEMORYTYPE_HOST,
                           .srcHost = from,
                           .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                           .dstDevice = to,
                           .WidthInBytes = bytes,
                           .Height = 1,
                           .Depth = 1};
}

static void memcpy_nodes(void)
{
    static unsigned source[16] = {7, 8, 9}, more[16] = {70};
    CUcontext context = begin();
    CUdeviceptr p = memory(64), q = memory(64);
    CUgraphNode first, second;
    CUgraph graph = new_graph();
    CUDA_MEMCPY3D made = copy_of(p, source, 64), got;
    ASK(cuGraphAddMemcpyNode(&first, graph, NULL, 0, &made, context));
    say_type(first);
    CUDA_MEMCPY3D along = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                           .srcDevice = p,
                           .dstMemoryType = CU_MEMORYTYPE_UNIFIED,
                           .dstDevice = q,
                           .WidthInBytes = 64,
                           .Height = 1,
                           .Depth = 1};
    ASK(cuGraphAddMemcpyNode(&second, graph, &first, 1, &along, context));
    memset(&got, 0x55, sizeof got);
    ASK(cuGraphMemcpyNodeGetParams(first, &got));
    say(":%d,%d,%d,%d,%zu,%zu,%zu", (int)got.srcMemoryType, got.srcHost == source, (int)got.dstMemoryType,
        got.dstDevice == p, got.WidthInBytes, got.Height, got.Depth);
    CUgraphExec exec = instance(graph);
    source[1] = 80;
    launch_and_wait(exec);
    say(" %u %u", word_at(q), word_at(q + 4));
    made.srcHost = more;
    ASK(cuGraphExecMemcpyNodeSetParams(exec, first, &made, context));
    launch_and_wait(exec);
    say(" %u", word_at(q));
    ASK(cuGraphMemcpyNodeSetParams(first, &made));
    made.WidthInBytes = 32;
    ASK(cuGraphExecMemcpyNodeSetParams(exec, first, &made, context));
    ASK(cuGraphExecMemcpyNodeSetParams(exec, first, &along, context));
}

static void memcpy_nodes_wrong(void)
{
    static unsigned source[16];
    CUcontext context = begin();
    CUdeviceptr p = memory(64);
    CUgraphNode node;
    CUgraph graph = new_graph();
    CUgraphNode empty = empty_node(graph, NULL, 0);
    CUDA_MEMCPY3D good = copy_of(p, source, 64), bad = good, got;
    ASK(cuGraphAddMemcpyNode(NULL, graph, NULL, 0, &good, context));
    ASK(cuGraphAddMemcpyNode(&node, NULL, NULL, 0, &good, context));
    ASK(cuGraphAddMemcpyNode(&node, graph, NULL, 0, NULL, context));
    ASK(cuGraphAddMemcpyNode(&node, graph, NULL, 0, &good, NULL));
    bad.WidthInBytes = 0;
    ASK(cuGraphAddMemcpyNode(&node, graph, NULL, 0, &bad, context));
    bad = good;
    bad.Depth = 0;
    ASK(cuGraphAddMemcpyNode(&node, graph, NULL, 0, &bad, context));
    bad = good;
    bad.WidthInBytes = (size_t)1 << 40;
    ASK(cuGraphAddMemcpyNode(&node, graph, NULL, 0, &bad, context));
    bad = good;
    bad.dstDevice = 0;
    ASK(cuGraphAddMemcpyNode(&node, graph, NULL, 0, &bad, context));
    bad = good;
    bad.srcMemoryType = (CUmemorytype)9;
    ASK(cuGraphAddMemcpyNode(&node, graph, NULL, 0, &bad, context));
    ASK(cuGraphAddMemcpyNode(&node, graph, NULL, 0, &good, context));
    ASK(cuGraphMemcpyNodeGetParams(node, NULL));
    ASK(cuGraphMemcpyNodeGetParams(empty, &got));
    ASK(cuGraphMemcpyNodeGetParams(NULL, &got));
    ASK(cuGraphMemcpyNodeSetParams(node, NULL));
    ASK(cuGraphMemcpyNodeSetParams(empty, &good));
}

static void memset_nodes(void)
{
    CUcontext context = begin();
    CUdeviceptr p = memory(64);
    CUgraphNode node;
    CUgraph graph = new_graph();
    CUDA_MEMSET_NODE_PARAMS made = {
        .dst = p, .pitch = 0, .value = 0x1ff, .elementSize = 1, .width = 4, .height = 1};
    CUDA_MEMSET_NODE_PARAMS got, bad;
    ASK(cuGraphAddMemsetNode(&node, graph, NULL, 0, &made, context));
    say_type(node);
    memset(&got, 0x55, sizeof got);
    ASK(cuGraphMemsetNodeGetParams(node, &got));
    say(":%d,%zu,%u,%u,%zu,%zu", got.dst == p, got.pitch, got.value, got.elementSize, got.width, got.height);
    CUgraphExec exec = instance(graph);
    launch_and_wait(exec);
    say(" %x", word_at(p));
    made.value = 0x12345678;
    made.elementSize = 4;
    made.width = 2;
    ASK(cuGraphExecMemsetNodeSetParams(exec, node, &made, context));
    made.elementSize = 1;
    made.value = 0x77;
    made.width = 4;
    ASK(cuGraphExecMemsetNodeSetParams(exec, node, &made, context));
    launch_and_wait(exec);
    say(" %x", word_at(p));
    ASK(cuGraphMemsetNodeSetParams(node, &made));
    bad = made;
    bad.elementSize = 3;
    ASK(cuGraphMemsetNodeSetParams(node, &bad));
    ASK(cuGraphAddMemsetNode(&node, graph, NULL, 0, &bad, context));
    bad = made;
    bad.width = 0;
    ASK(cuGraphAddMemsetNode(&node, graph, NULL, 0, &bad, context));
    bad = made;
    bad.height = 0;
    ASK(cuGraphAddMemsetNode(&node, graph, NULL, 0, &bad, context));
    bad = made;
    bad.dst = 0;
    ASK(cuGraphAddMemsetNode(&node, graph, NULL, 0, &bad, context));
    bad = made;
    bad.dst = p + 1;
    bad.elementSize = 4;
    ASK(cuGraphAddMemsetNode(&node, graph, NULL, 0, &bad, context));
    bad = made;
    bad.width = (size_t)1 << 40;
    ASK(cuGraphAddMemsetNode(&node, graph, NULL, 0, &bad, context));
    bad = made;
    bad.height = 2;
    ASK(cuGraphAddMemsetNode(&node, graph, NULL, 0, &bad, context));
    ASK(cuGraphAddMemsetNode(&node, graph, NULL, 0, &made, NULL));
    ASK(cuGraphAddMemsetNode(&node, graph, NULL, 0, NULL, context));
    ASK(cuGraphAddMemsetNode(NULL, graph, NULL, 0, &made, context));
}

/* ---- memory that is gone when a graph runs ---- */

enum { LARGE = 8 << 20 }; /* memory that shares no page with other memory */

static CUresult free_pinned(CUdeviceptr p)
{
    return cuMemFreeHost((void *)(uintptr_t)p);
}

static CUdeviceptr large(void)
{
    return memory(LARGE);
}

static CUdeviceptr pinned(void)
{
    void *p;
    MUST(cuMemHostAlloc(&p, LARGE, 0));
    return (CUdeviceptr)(uintptr_t)p;
}

static CUdeviceptr managed(void)
{
    CUdeviceptr p;
    MUST(cuMemAllocManaged(&p, LARGE, CU_MEM_ATTACH_GLOBAL));
    return p;
}

static void add_fill(CUgraph graph, CUcontext context, CUdeviceptr p)
{
    CUgraphNode node;
    CUDA_MEMSET_NODE_PARAMS fill = {.dst = p, .value = 5, .elementSize = 1, .width = LARGE, .height = 1};
    MUST(cuGraphAddMemsetNode(&node, graph, NULL, 0, &fill, context));
}

static void add_copy(CUgraph graph, CUcontext context, CUdeviceptr to, CUdeviceptr from)
{
    CUgraphNode node;
    CUDA_MEMCPY3D copy = {.srcMemoryType = CU_MEMORYTYPE_UNIFIED,
                          .srcDevice = from,
                          .dstMemoryType = CU_MEMORYTYPE_UNIFIED,
                          .dstDevice = to,
                          .WidthInBytes = LARGE,
                          .Height = 1,
                          .Depth = 1};
    MUST(cuGraphAddMemcpyNode(&node, graph, NULL, 0, &copy, context));
}

/* Frees the memory after the graph is instantiated, or before, and launches it. */
static void launch_without(CUgraph graph, CUdeviceptr p, CUresult (*give_back)(CUdeviceptr), bool early)
{
    CUgraphExec exec = early ? NULL : instance(graph);
    MUST(cuCtxSynchronize());
    MUST(give_back(p));
    CUresult result = exec ? CUDA_SUCCESS : cuGraphInstantiateWithFlags(&exec, graph, 0);
    say(" %d", (int)result);
    if (result)
        return;
    ASK(cuGraphLaunch(exec, NULL));
    ASK(cuStreamSynchronize(NULL));
    ASK(cuMemAlloc_v2(&p, 64));
}

static void add_copy_to(CUgraph graph, CUcontext context, CUdeviceptr p)
{
    add_copy(graph, context, p, large());
}

static void add_copy_from(CUgraph graph, CUcontext context, CUdeviceptr p)
{
    add_copy(graph, context, large(), p);
}

#define FREED(name, make, give_back, early, add)    \
    static void name(void)                          \
    {                                               \
        CUcontext context = begin();                \
        CUdeviceptr p = make();                     \
        CUgraph graph = new_graph();                \
        add(graph, context, p);                     \
        launch_without(graph, p, give_back, early); \
    }
FREED(fill_freed, large, cuMemFree_v2, false, add_fill)
FREED(fill_freed_early, large, cuMemFree_v2, true, add_fill)
FREED(copy_to_freed, large, cuMemFree_v2, false, add_copy_to)
FREED(copy_to_freed_early, large, cuMemFree_v2, true, add_copy_to)
FREED(copy_from_freed, large, cuMemFree_v2, false, add_copy_from)
FREED(copy_from_freed_early, large, cuMemFree_v2, true, add_copy_from)
FREED(copy_to_pinned_freed, pinned, free_pinned, false, add_copy_to)
FREED(copy_from_pinned_freed, pinned, free_pinned, false, add_copy_from)
FREED(copy_to_pinned_freed_early, pinned, free_pinned, true, add_copy_to)
FREED(copy_to_managed_freed, managed, cuMemFree_v2, false, add_copy_to)
FREED(copy_to_managed_freed_early, managed, cuMemFree_v2, true, add_copy_to)
FREED(fill_pinned_freed, pinned, free_pinned, false, add_fill)
FREED(fill_managed_freed, managed, cuMemFree_v2, false, add_fill)

/* ---- host, child, empty, event ---- */

static int total;

static void add_to_total(void *amount)
{
    total += *(int *)amount;
}

static void host_nodes(void)
{
    static int one = 1, ten = 10;
    CUgraphNode node;
    begin();
    CUgraph graph = new_graph();
    CUDA_HOST_NODE_PARAMS made = {add_to_total, &one}, got = {NULL, NULL}, bad = {NULL, &one};
    ASK(cuGraphAddHostNode(&node, graph, NULL, 0, &made));
    say_type(node);
    ASK(cuGraphHostNodeGetParams(node, &got));
    say(":%d%d", got.fn == add_to_total, got.userData == &one);
    CUgraphExec exec = instance(graph);
    launch_and_wait(exec);
    made.userData = &ten;
    ASK(cuGraphExecHostNodeSetParams(exec, node, &made));
    launch_and_wait(exec);
    say(" %d", total);
    ASK(cuGraphHostNodeSetParams(node, &made));
    ASK(cuGraphHostNodeSetParams(node, &bad));
    ASK(cuGraphHostNodeSetParams(node, NULL));
    ASK(cuGraphHostNodeGetParams(node, NULL));
    ASK(cuGraphAddHostNode(&node, graph, NULL, 0, &bad));
    ASK(cuGraphAddHostNode(&node, graph, NULL, 0, NULL));
    ASK(cuGraphAddHostNode(NULL, graph, NULL, 0, &made));
    ASK(cuGraphExecHostNodeSetParams(exec, node, &bad));
    ASK(cuGraphExecHostNodeSetParams(exec, node, NULL));
}

static void child_nodes(void)
{
    static int one = 1, ten = 10;
    CUgraphNode inner, node;
    CUgraph got = NULL;
    size_t n = 0;
    begin();
    CUgraph child = new_graph(), graph = new_graph(), changed = new_graph();
    CUDA_HOST_NODE_PARAMS host = {add_to_total, &one}, more = {add_to_total, &ten};
    MUST(cuGraphAddHostNode(&inner, child, NULL, 0, &host));
    ASK(cuGraphAddChildGraphNode(&node, graph, NULL, 0, child));
    say_type(node);
    ASK(cuGraphChildGraphNodeGetGraph(node, &got));
    say(":%d", got == child);
    ASK(cuGraphGetNodes(got, NULL, &n));
    say(":%zu", n);
    ASK(cuGraphHostNodeSetParams(inner, &more));
    CUgraphExec exec = instance(graph);
    launch_and_wait(exec);
    say(" %d", total);
    MUST(cuGraphAddHostNode(&inner, changed, NULL, 0, &more));
    ASK(cuGraphExecChildGraphNodeSetParams(exec, node, changed));
    launch_and_wait(exec);
    say(" %d", total);
    MUST(cuGraphAddHostNode(&inner, changed, NULL, 0, &more));
    ASK(cuGraphExecChildGraphNodeSetParams(exec, node, changed));
    ASK(cuGraphAddChildGraphNode(&node, graph, NULL, 0, NULL));
    ASK(cuGraphAddChildGraphNode(NULL, graph, NULL, 0, child));
    ASK(cuGraphChildGraphNodeGetGraph(NULL, &got));
    ASK(cuGraphDestroy(child));
    launch_and_wait(exec);
    say(" %d", total);
}

/* The graph in a child node is the node's own; what happens to it where a program destroys it. */
static void child_destroyed(void)
{
    CUgraphNode node, inner[2];
    CUgraph inside, got = NULL;
    size_t n = NO_SUCH;
    begin();
    CUgraph child = new_graph(), graph = new_graph();
    empty_node(child, NULL, 0);
    MUST(cuGraphAddChildGraphNode(&node, graph, NULL, 0, child));
    MUST(cuGraphChildGraphNodeGetGraph(node, &inside));
    ASK(cuGraphDestroy(inside));
    ASK(cuGraphChildGraphNodeGetGraph(node, &got));
    say(":%d", got == inside);
    ASK(cuGraphGetNodes(inside, NULL, &n));
    say(":%zu", n);
    n = 2;
    ASK(cuGraphGetNodes(inside, inner, &n));
    ASK(cuGraphAddEmptyNode(&inner[0], inside, NULL, 0));
    launch_and_wait(instance(graph));
    ASK(cuGraphDestroy(inside));
    ASK(cuGraphDestroyNode(node));
    ASK(cuGraphDestroy(graph));
}

/* The same of an inner child's graph, and of a clone's. */
static void child_destroyed_deep(void)
{
    CUgraphNode node, inner, found;
    CUgraph inside, deep, copy;
    begin();
    CUgraph leaf = new_graph(), middle = new_graph(), graph = new_graph();
    empty_node(leaf, NULL, 0);
    MUST(cuGraphAddChildGraphNode(&inner, middle, NULL, 0, leaf));
    MUST(cuGraphAddChildGraphNode(&node, graph, NULL, 0, middle));
    MUST(cuGraphClone(&copy, graph));
    MUST(cuGraphChildGraphNodeGetGraph(node, &inside));
    MUST(cuGraphNodeFindInClone(&inner, inner, inside));
    MUST(cuGraphChildGraphNodeGetGraph(inner, &deep));
    ASK(cuGraphDestroy(deep));
    MUST(cuGraphNodeFindInClone(&found, node, copy));
    MUST(cuGraphChildGraphNodeGetGraph(found, &inside));
    ASK(cuGraphDestroy(inside));
    ASK(cuGraphDestroy(middle));
    launch_and_wait(instance(graph));
    launch_and_wait(instance(copy));
}

static void event_nodes(void)
{
    CUgraphNode record, wait;
    CUevent got = NULL;
    begin();
    CUgraph graph = new_graph();
    CUevent event = new_event(0), other = new_event(CU_EVENT_DISABLE_TIMING);
    ASK(cuGraphAddEventRecordNode(&record, graph, NULL, 0, event));
    ASK(cuGraphAddEventWaitNode(&wait, graph, &record, 1, other));
    say_type(record);
    say_type(wait);
    ASK(cuGraphEventRecordNodeGetEvent(record, &got));
    say(":%d", got == event);
    ASK(cuGraphEventWaitNodeGetEvent(wait, &got));
    say(":%d", got == other);
    CUgraphExec exec = instance(graph);
    launch_and_wait(exec);
    ASK(cuEventQuery(event));
    ASK(cuGraphEventRecordNodeSetEvent(record, other));
    ASK(cuGraphEventWaitNodeSetEvent(wait, event));
    ASK(cuGraphExecEventRecordNodeSetEvent(exec, record, other));
    ASK(cuGraphExecEventWaitNodeSetEvent(exec, wait, event));
    launch_and_wait(exec);
    ASK(cuGraphAddEventRecordNode(&record, graph, NULL, 0, NULL));
    ASK(cuGraphAddEventWaitNode(&wait, graph, NULL, 0, NULL));
    ASK(cuGraphAddEventRecordNode(NULL, graph, NULL, 0, event));
    ASK(cuGraphEventRecordNodeGetEvent(wait, &got));
    ASK(cuGraphEventRecordNodeSetEvent(record, NULL));
    ASK(cuGraphExecEventRecordNodeSetEvent(exec, record, NULL));
}

/* ---- memory nodes ---- */

static CUDA_MEM_ALLOC_NODE_PARAMS allocation_of(size_t bytes)
{
    return (CUDA_MEM_ALLOC_NODE_PARAMS){.poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                                      .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}},
                                        .bytesize = bytes};
}

static void memory_nodes(void)
{
    CUgraphNode allocate, fill, release;
    CUdeviceptr p = 0;
    CUcontext context = begin();
    CUgraph graph = new_graph(), copy;
    CUgraphExec exec;
    CUDA_MEM_ALLOC_NODE_PARAMS made = allocation_of(4096), got;
    ASK(cuGraphAddMemAllocNode(&allocate, graph, NULL, 0, &made));
    say(":%d", made.dptr != 0);
    say_type(allocate);
    ASK(cuGraphMemAllocNodeGetParams(allocate, &got));
    say(":%d,%zu", got.dptr == made.dptr, got.bytesize);
    CUDA_MEMSET_NODE_PARAMS filled = {
        .dst = made.dptr, .value = 1, .elementSize = 4, .width = 16, .height = 1};
    ASK(cuGraphAddMemsetNode(&fill, graph, &allocate, 1, &filled, context));
    ASK(cuGraphAddMemFreeNode(&release, graph, &fill, 1, made.dptr));
    say_type(release);
    ASK(cuGraphMemFreeNodeGetParams(release, &p));
    say(":%d", p == made.dptr);
    ASK(cuGraphClone(&copy, graph));
    ASK(cuGraphDestroyNode(fill));
    ASK(cuGraphAddDependencies(graph, &allocate, &release, 1));
    ASK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    launch_and_wait(exec);
    launch_and_wait(exec);
    CUgraphExec again;
    ASK(cuGraphInstantiateWithFlags(&again, graph, 0));
}

static void memory_nodes_wrong(void)
{
    CUgraphNode node;
    begin();
    CUgraph graph = new_graph();
    CUDA_MEM_ALLOC_NODE_PARAMS good = allocation_of(64), bad;
    ASK(cuGraphAddMemAllocNode(NULL, graph, NULL, 0, &good));
    ASK(cuGraphAddMemAllocNode(&node, NULL, NULL, 0, &good));
    ASK(cuGraphAddMemAllocNode(&node, graph, NULL, 0, NULL));
    bad = allocation_of(0);
    ASK(cuGraphAddMemAllocNode(&node, graph, NULL, 0, &bad));
    bad = good;
    bad.poolProps.location.id = 5;
    ASK(cuGraphAddMemAllocNode(&node, graph, NULL, 0, &bad));
    bad = good;
    bad.poolProps.location.type = CU_MEM_LOCATION_TYPE_INVALID;
    ASK(cuGraphAddMemAllocNode(&node, graph, NULL, 0, &bad));
    bad = good;
    bad.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_INVALID;
    ASK(cuGraphAddMemAllocNode(&node, graph, NULL, 0, &bad));
    bad = good;
    bad.poolProps.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    ASK(cuGraphAddMemAllocNode(&node, graph, NULL, 0, &bad));
    CUdeviceptr p = memory(64);
    ASK(cuGraphAddMemFreeNode(&node, graph, NULL, 0, 0));
    ASK(cuGraphAddMemFreeNode(&node, graph, NULL, 0, p));
    ASK(cuGraphAddMemFreeNode(NULL, graph, NULL, 0, p));
    ASK(cuGraphMemAllocNodeGetParams(NULL, &good));
    ASK(cuGraphMemFreeNodeGetParams(NULL, &p));
}

static void memory_nodes_kept(void)
{
    CUgraphNode node;
    CUgraphExec exec;
    begin();
    CUgraph graph = new_graph();
    CUDA_MEM_ALLOC_NODE_PARAMS made = allocation_of(4096);
    ASK(cuGraphAddMemAllocNode(&node, graph, NULL, 0, &made));
    ASK(cuGraphInstantiateWithFlags(&exec, graph, CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH));
    ASK(cuGraphLaunch(exec, NULL));
    ASK(cuCtxSynchronize());
    ASK(cuMemsetD8_v2(made.dptr, 3, 4096));
    say(" %x", word_at(made.dptr));
    ASK(cuGraphLaunch(exec, NULL));
    ASK(cuCtxSynchronize());
    ASK(cuMemFree_v2(made.dptr));
}

static void memory_of_graphs(void)
{
    unsigned long long value = NO_SUCH;
    begin();
    for (int attribute = -1; attribute < 5; attribute++) {
        value = NO_SUCH;
        ASK(cuDeviceGetGraphMemAttribute(0, (CUgraphMem_attribute)attribute, &value));
        say(":%llu", value);
    }
    value = 0;
    for (int attribute = 0; attribute < 4; attribute++)
        ASK(cuDeviceSetGraphMemAttribute(0, (CUgraphMem_attribute)attribute, &value));
    value = 5;
    ASK(cuDeviceSetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_USED_MEM_HIGH, &value));
    ASK(cuDeviceGraphMemTrim(0));
    ASK(cuDeviceGraphMemTrim(2));
    ASK(cuDeviceGetGraphMemAttribute(2, CU_GRAPH_MEM_ATTR_USED_MEM_HIGH, &value));
    ASK(cuDeviceGetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_USED_MEM_HIGH, NULL));
}

/* ---- clones, instances ---- */

static void clones(void)
{
    CUgraph copy, second;
    CUgraphNode found = NULL, foreign;
    size_t n = 0;
    begin();
    CUgraph graph = new_graph(), other = new_graph();
    CUgraphNode a = empty_node(graph, NULL, 0), b = empty_node(graph, &a, 1);
    foreign = empty_node(other, NULL, 0);
    ASK(cuGraphClone(&copy, graph));
    ASK(cuGraphGetNodes(copy, NULL, &n));
    say(":%zu", n);
    ASK(cuGraphGetEdges(copy, NULL, NULL, &n));
    say(":%zu", n);
    ASK(cuGraphNodeFindInClone(&found, b, copy));
    say(":%d", found != b);
    say_type(found);
    ASK(cuGraphNodeFindInClone(&found, foreign, copy));
    ASK(cuGraphNodeFindInClone(&found, b, graph));
    ASK(cuGraphNodeFindInClone(NULL, b, copy));
    ASK(cuGraphNodeFindInClone(&found, b, NULL));
    ASK(cuGraphClone(&second, copy));
    ASK(cuGraphNodeFindInClone(&found, b, second));
    CUgraphNode later = empty_node(graph, NULL, 0);
    ASK(cuGraphNodeFindInClone(&found, later, copy));
    ASK(cuGraphNodeFindInClone(&found, a, copy));
    ASK(cuGraphDestroyNode(found));
    ASK(cuGraphNodeFindInClone(&found, a, copy));
    ASK(cuGraphDestroy(copy));
    ASK(cuGraphDestroy(graph));
}

static void instances(void)
{
    CUgraphExec exec;
    begin();
    CUgraph graph = new_graph();
    empty_node(graph, NULL, 0);
    for (unsigned long long flags = 0; flags < 18; flags++) {
        unsigned long long got = NO_SUCH;
        CUresult result = cuGraphInstantiateWithFlags(&exec, graph, flags);
        say(" %llu:%d", flags, (int)result);
        if (!result) {
            ASK(cuGraphExecGetFlags(exec, &got));
            say("(%llu)", got);
        }
    }
    unsigned long long got;
    ASK(cuGraphExecGetFlags(NULL, &got));
}

static void instances_with_params(void)
{
    CUgraphExec exec = NULL;
    begin();
    CUstream stream = new_stream(0);
    CUgraph graph = new_graph();
    empty_node(graph, NULL, 0);
    static const unsigned long long flags[] = {0, 1, 2, 3, 8, 16};
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
        CUDA_GRAPH_INSTANTIATE_PARAMS with = {flags[i], stream, (CUgraphNode)1, NO_SUCH};
        ASK(cuGraphInstantiateWithParams(&exec, graph, &with));
        say(":%d,%d", with.result_out, with.hErrNode_out == NULL);
    }
    CUDA_GRAPH_INSTANTIATE_PARAMS with = {0};
    ASK(cuGraphInstantiateWithParams(&exec, graph, NULL));
    ASK(cuGraphInstantiateWithParams(NULL, graph, &with));
    say(":%d", with.result_out);
    ASK(cuGraphInstantiateWithParams(&exec, NULL, &with));
    say(":%d", with.result_out);
}

static void launches(void)
{
    static int one = 1;
    CUgraphNode node;
    begin();
    CUstream stream = new_stream(CU_STREAM_NON_BLOCKING);
    CUgraph graph = new_graph();
    CUDA_HOST_NODE_PARAMS host = {add_to_total, &one};
    MUST(cuGraphAddHostNode(&node, graph, NULL, 0, &host));
    CUgraphExec exec = instance(graph);
    ASK(cuGraphUpload(exec, stream));
    ASK(cuGraphLaunch(exec, stream));
    ASK(cuGraphLaunch(exec, stream));
    ASK(cuGraphLaunch(exec, CU_STREAM_PER_THREAD));
    ASK(cuGraphLaunch(exec, CU_STREAM_LEGACY));
    ASK(cuGraphExecDestroy(exec));
    ASK(cuCtxSynchronize());
    say(" %d", total);
}

static void launches_elsewhere(void)
{
    CUcontext b;
    CUgraphNode node;
    begin();
    CUfunction f = kernel("nul");
    CUgraph graph = new_graph();
    CUDA_KERNEL_NODE_PARAMS made = launch_of(f, NULL);
    MUST(cuGraphAddKernelNode_v2(&node, graph, NULL, 0, &made));
    MUST(cuDevicePrimaryCtxRetain(&b, 1));
    MUST(cuCtxSetCurrent(b));
    CUstream there = new_stream(0);
    CUgraphExec exec;
    ASK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    ASK(cuGraphLaunch(exec, there));
    ASK(cuCtxSynchronize());
    CUDA_KERNEL_NODE_PARAMS got;
    ASK(cuGraphKernelNodeGetParams_v2(node, &got));
    ASK(cuGraphAddKernelNode_v2(&node, graph, NULL, 0, &made));
}

static void without_context(void)
{
    CUgraph graph, copy;
    CUgraphNode node;
    CUgraphExec exec;
    MUST(cuInit(0));
    ASK(cuGraphCreate(&graph, 0));
    ASK(cuGraphAddEmptyNode(&node, graph, NULL, 0));
    ASK(cuGraphClone(&copy, graph));
    ASK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    ASK(cuGraphDestroy(graph));
}

/* ---- updates ---- */

static void say_update(CUgraphExec exec, CUgraph graph)
{
    CUgraphExecUpdateResultInfo info = {(CUgraphExecUpdateResult)NO_SUCH, (CUgraphNode)1, (CUgraphNode)1};
    ASK(cuGraphExecUpdate_v2(exec, graph, &info));
    say("(%d,%d,%d)", (int)info.result, info.errorNode != NULL, info.errorFromNode != NULL);
}

static void updates(void)
{
    unsigned v = 1;
    CUgraphNode node;
    CUcontext context = begin();
    CUdeviceptr p = memory(64);
    CUmodule module = load(kernels_ptx);
    CUDA_KERNEL_NODE_PARAMS made = launch_of(function(module, "add"), (void *[]){&p, &v});
    CUgraph graph = new_graph(), same = new_graph(), longer = new_graph(), other = new_graph(),
            type = new_graph();
    MUST(cuGraphAddKernelNode_v2(&node, graph, NULL, 0, &made));
    CUgraphExec exec = instance(graph);
    v = 100;
    MUST(cuGraphAddKernelNode_v2(&node, same, NULL, 0, &made));
    say_update(exec, same);
    launch_and_wait(exec);
    say(" %u", word_at(p));
    MUST(cuGraphAddKernelNode_v2(&node, longer, NULL, 0, &made));
    empty_node(longer, &node, 1);
    say_update(exec, longer);
    CUDA_KERNEL_NODE_PARAMS changed = launch_of(function(module, "nul"), NULL);
    MUST(cuGraphAddKernelNode_v2(&node, other, NULL, 0, &changed));
    say_update(exec, other);
    CUDA_MEMSET_NODE_PARAMS fill = {.dst = p, .value = 5, .elementSize = 4, .width = 1, .height = 1};
    MUST(cuGraphAddMemsetNode(&node, type, NULL, 0, &fill, context));
    say_update(exec, type);
    launch_and_wait(exec);
    say(" %u", word_at(p));
    ASK(cuGraphExecUpdate_v2(NULL, same, &(CUgraphExecUpdateResultInfo){0}));
    ASK(cuGraphExecUpdate_v2(exec, NULL, &(CUgraphExecUpdateResultInfo){0}));
    ASK(cuGraphExecUpdate_v2(exec, same, NULL));
}

static void updates_edges(void)
{
    begin();
    CUgraph chain = new_graph(), loose = new_graph(), empty = new_graph(), again = new_graph();
    CUgraphNode a = empty_node(chain, NULL, 0);
    empty_node(chain, &a, 1);
    empty_node(loose, NULL, 0);
    empty_node(loose, NULL, 0);
    CUgraphExec exec = instance(chain);
    say_update(exec, loose);
    say_update(exec, empty);
    a = empty_node(again, NULL, 0);
    empty_node(again, &a, 1);
    say_update(exec, again);
    say_update(instance(empty), empty);
    say_update(instance(empty), chain);
}

static void enabled(void)
{
    static int one = 1;
    unsigned on = NO_SUCH, v = 1;
    CUgraphNode node, kernel_node, fill;
    CUcontext context = begin();
    CUdeviceptr p = memory(64);
    CUgraph graph = new_graph();
    CUDA_HOST_NODE_PARAMS host = {add_to_total, &one};
    CUDA_KERNEL_NODE_PARAMS made = launch_of(kernel("add"), (void *[]){&p, &v});
    CUDA_MEMSET_NODE_PARAMS filled = {.dst = p, .value = 5, .elementSize = 4, .width = 1, .height = 1};
    MUST(cuGraphAddHostNode(&node, graph, NULL, 0, &host));
    MUST(cuGraphAddMemsetNode(&fill, graph, &node, 1, &filled, context));
    MUST(cuGraphAddKernelNode_v2(&kernel_node, graph, &fill, 1, &made));
    CUgraphExec exec = instance(graph);
    ASK(cuGraphNodeGetEnabled(exec, kernel_node, &on));
    say(":%u", on);
    ASK(cuGraphNodeSetEnabled(exec, kernel_node, 0));
    ASK(cuGraphNodeGetEnabled(exec, kernel_node, &on));
    say(":%u", on);
    launch_and_wait(exec);
    say(" %u", word_at(p));
    ASK(cuGraphNodeSetEnabled(exec, kernel_node, 1));
    ASK(cuGraphNodeSetEnabled(exec, fill, 0));
    launch_and_wait(exec);
    say(" %u", word_at(p));
    ASK(cuGraphNodeSetEnabled(exec, node, 0));
    ASK(cuGraphNodeGetEnabled(exec, node, &on));
    ASK(cuGraphNodeSetEnabled(exec, fill, 7));
    ASK(cuGraphNodeSetEnabled(NULL, fill, 0));
    ASK(cuGraphNodeSetEnabled(exec, NULL, 0));
    ASK(cuGraphNodeGetEnabled(exec, kernel_node, NULL));
    ASK(cuGraphNodeGetEnabled(exec, NULL, &on));
}

static void nodes_destroyed_of_instance(void)
{
    unsigned v = 1, on;
    CUgraphNode node;
    begin();
    CUdeviceptr p = memory(64);
    CUgraph graph = new_graph();
    CUDA_KERNEL_NODE_PARAMS made = launch_of(kernel("add"), (void *[]){&p, &v});
    MUST(cuGraphAddKernelNode_v2(&node, graph, NULL, 0, &made));
    CUgraphExec exec = instance(graph);
    CUgraph other = new_graph();
    CUgraphNode foreign;
    MUST(cuGraphAddKernelNode_v2(&foreign, other, NULL, 0, &made));
    ASK(cuGraphExecKernelNodeSetParams_v2(exec, foreign, &made));
    ASK(cuGraphNodeGetEnabled(exec, foreign, &on));
    ASK(cuGraphDestroyNode(node));
    launch_and_wait(exec);
    say(" %u", word_at(p));
    ASK(cuGraphDestroy(graph));
    launch_and_wait(exec);
    say(" %u", word_at(p));
}

static void instances_gone(void)
{
    unsigned v = 1;
    CUgraphNode node;
    begin();
    CUdeviceptr p = memory(64);
    CUgraph graph = new_graph();
    CUDA_KERNEL_NODE_PARAMS made = launch_of(kernel("add"), (void *[]){&p, &v});
    MUST(cuGraphAddKernelNode_v2(&node, graph, NULL, 0, &made));
    CUgraphExec exec = instance(graph);
    launch_and_wait(exec);
    launch_and_wait(exec);
    say(" %u", word_at(p));
    ASK(cuGraphExecDestroy(exec));
}

/* ---- pictures and user objects ---- */

static void dot(void)
{
    char path[] = "/tmp/facts_graph_XXXXXX", line[256] = "";
    int fd = mkstemp(path);
    begin();
    CUgraph graph = new_graph();
    CUgraphNode a = empty_node(graph, NULL, 0);
    empty_node(graph, &a, 1);
    ASK(cuGraphDebugDotPrint(graph, path, 0));
    FILE *in = fopen(path, "r");
    say(" %.20s", in && fgets(line, sizeof line, in) ? line : "nothing");
    if (in)
        fclose(in);
    ASK(cuGraphDebugDotPrint(graph, path, 0x7fff));
    ASK(cuGraphDebugDotPrint(graph, path, 0x80000000));
    ASK(cuGraphDebugDotPrint(NULL, path, 0));
    ASK(cuGraphDebugDotPrint(graph, NULL, 0));
    ASK(cuGraphDebugDotPrint(graph, "/nonexistent/file", 0));
    close(fd);
    unlink(path);
}

static void user_objects(void)
{
    static int one = 1;
    CUuserObject object, second;
    begin();
    ASK(cuUserObjectCreate(&object, &one, add_to_total, 2, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
    ASK(cuUserObjectRelease(object, 1));
    say(":%d", total);
    ASK(cuUserObjectRetain(object, 3));
    ASK(cuUserObjectRelease(object, 4));
    usleep(200000);
    say(":%d", total);
    CUgraph graph = new_graph(), copy;
    ASK(cuUserObjectCreate(&second, &one, add_to_total, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
    ASK(cuGraphRetainUserObject(graph, second, 1, CU_GRAPH_USER_OBJECT_MOVE));
    ASK(cuGraphClone(&copy, graph));
    CUgraphExec exec = instance(graph);
    ASK(cuGraphDestroy(graph));
    usleep(200000);
    say(":%d", total);
    ASK(cuGraphDestroy(copy));
    ASK(cuGraphExecDestroy(exec));
    usleep(200000);
    say(":%d", total);
}

static void user_objects_wrong(void)
{
    static int one = 1;
    CUuserObject object;
    begin();
    CUgraph graph = new_graph();
    ASK(cuUserObjectCreate(NULL, &one, add_to_total, 1, 1));
    ASK(cuUserObjectCreate(&object, &one, NULL, 1, 1));
    ASK(cuUserObjectCreate(&object, &one, add_to_total, 0, 1));
    ASK(cuUserObjectCreate(&object, &one, add_to_total, 1, 0));
    ASK(cuUserObjectCreate(&object, &one, add_to_total, 1, 2));
    ASK(cuUserObjectCreate(&object, &one, add_to_total, 0x80000000u, 1));
    ASK(cuUserObjectCreate(&object, NULL, add_to_total, 2, 1));
    ASK(cuUserObjectRetain(NULL, 1));
    ASK(cuUserObjectRetain(object, 0));
    ASK(cuUserObjectRetain(object, 0x7fffffff));
    ASK(cuUserObjectRelease(NULL, 1));
    ASK(cuUserObjectRelease(object, 0));
    ASK(cuGraphRetainUserObject(NULL, object, 1, 0));
    ASK(cuGraphRetainUserObject(graph, NULL, 1, 0));
    ASK(cuGraphRetainUserObject(graph, object, 0, 0));
    ASK(cuGraphRetainUserObject(graph, object, 1, 2));
    ASK(cuGraphRetainUserObject(graph, object, 1, 0));
    ASK(cuGraphReleaseUserObject(graph, object, 0));
    ASK(cuGraphReleaseUserObject(graph, NULL, 1));
    ASK(cuGraphReleaseUserObject(graph, object, 1));
}

static const fact facts[] = {
    FACT(graph_wrong),
    FACT(edges),
    FACT(edges_change),
    FACT(edges_cycle),
    FACT(edges_when_adding),
    FACT(nodes_destroyed),
    FACT(kernel_nodes),
    FACT(kernel_nodes_wrong),
    FACT(kernel_nodes_extra),
    FACT(kernel_nodes_of_library),
    FACT(kernel_attributes),
    FACT(memcpy_nodes),
    FACT(memcpy_nodes_wrong),
    FACT(memset_nodes),
    FACT(fill_freed),
    FACT(fill_freed_early),
    FACT(copy_to_freed),
    FACT(copy_to_freed_early),
    FACT(copy_from_freed),
    FACT(copy_from_freed_early),
    FACT(copy_to_pinned_freed),
    FACT(copy_from_pinned_freed),
    FACT(copy_to_pinned_freed_early),
    FACT(copy_to_managed_freed),
    FACT(copy_to_managed_freed_early),
    FACT(fill_pinned_freed),
    FACT(fill_managed_freed),
    FACT(host_nodes),
    FACT(child_nodes),
    FACT(child_destroyed),
    FACT(child_destroyed_deep),
    FACT(event_nodes),
    FACT(memory_nodes),
    FACT(memory_nodes_wrong),
    FACT(memory_nodes_kept),
    FACT(memory_of_graphs),
    FACT(clones),
    FACT(instances),
    FACT(instances_with_params),
    FACT(launches),
    FACT(launches_elsewhere),
    FACT(without_context),
    FACT(updates),
    FACT(updates_edges),
    FACT(enabled),
    FACT(nodes_destroyed_of_instance),
    FACT(instances_gone),
    FACT(dot),
    FACT(user_objects),
    FACT(user_objects_wrong),
};
FACTS_MAIN(facts)
