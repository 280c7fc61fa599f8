/* SPDX-License-Identifier: Apache-2.0 */
/* Streams, events, waiting for values, attributes. */
#include <semaphore.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tests/softcuda/facts/kernels.h"

/* A host function that holds its stream until the gate opens. */
static sem_t gate;

static void hold(void *unused)
{
    (void)unused;
    while (sem_wait(&gate))
        ;
}

static void block(CUstream stream)
{
    sem_init(&gate, 0, 0);
    MUST(cuLaunchHostFunc(stream, hold, NULL));
}

static void open_gate(void)
{
    sem_post(&gate);
}

/* ---- streams ---- */

static void create(void)
{
    CUstream stream;
    begin();
    static const unsigned flags[] = {0, 1, 2, 3, 4, 8, 0x80000000};
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
        ASK(cuStreamCreate(&stream, flags[i]));
        ASK(cuStreamCreateWithPriority(&stream, flags[i], 0));
    }
    ASK(cuStreamCreate(NULL, 0));
    ASK(cuStreamCreateWithPriority(NULL, 0, 0));
}

static void priorities(void)
{
    begin();
    for (int asked = -8; asked < 4; asked++) {
        CUstream stream;
        int priority = NO_SUCH;
        ASK(cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, asked));
        ASK(cuStreamGetPriority(stream, &priority));
        say(":%d", priority);
    }
}

static void properties(void)
{
    CUcontext context = begin(), of = NULL;
    CUstream stream = new_stream(CU_STREAM_NON_BLOCKING), plain = new_stream(0);
    CUstream all[] = {stream, plain, NULL, CU_STREAM_LEGACY, CU_STREAM_PER_THREAD};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        unsigned flags = NO_SUCH;
        int priority = NO_SUCH;
        CUdevice device = NO_SUCH;
        void *green = (void *)1;
        say(" |");
        ASK(cuStreamGetFlags(all[i], &flags));
        say(":%u", flags);
        ASK(cuStreamGetPriority(all[i], &priority));
        say(":%d", priority);
        ASK(cuStreamGetDevice(all[i], &device));
        say(":%d", device);
        ASK(cuStreamGetCtx(all[i], &of));
        say(":%d", of == context);
        ASK(cuStreamGetCtx_v2(all[i], &of, &green));
        say(":%d,%d", of == context, green == NULL);
        ASK(cuStreamQuery(all[i]));
        ASK(cuStreamSynchronize(all[i]));
    }
    say(" |");
    ASK(cuStreamGetFlags(stream, NULL));
    ASK(cuStreamGetPriority(stream, NULL));
    ASK(cuStreamGetDevice(stream, NULL));
    ASK(cuStreamGetCtx(stream, NULL));
    ASK(cuStreamGetId(stream, NULL));
}

static void ids(void)
{
    unsigned long long a = 0, b = 0, c = 0, d = 0, e = 0;
    begin();
    CUstream one = new_stream(0), two = new_stream(0);
    ASK(cuStreamGetId(one, &a));
    ASK(cuStreamGetId(two, &b));
    ASK(cuStreamGetId(NULL, &c));
    ASK(cuStreamGetId(CU_STREAM_LEGACY, &d));
    ASK(cuStreamGetId(CU_STREAM_PER_THREAD, &e));
    say(" %d %d %d %d", a != b, b != c, c == d, e != d);
}

static void destroy(void)
{
    begin();
    ASK(cuStreamDestroy_v2(NULL));
    ASK(cuStreamDestroy_v2(CU_STREAM_LEGACY));
    ASK(cuStreamDestroy_v2(CU_STREAM_PER_THREAD));
    CUstream stream = new_stream(0);
    block(stream);
    ASK(cuStreamQuery(stream));
    ASK(cuStreamDestroy_v2(stream));
    open_gate();
    ASK(cuCtxSynchronize());
}

static void query(void)
{
    begin();
    CUfunction f = kernel("nul");
    ASK(run(f, NULL, NULL));
    MUST(cuCtxSynchronize());
    CUstream stream = new_stream(CU_STREAM_NON_BLOCKING), plain = new_stream(0);
    ASK(cuStreamQuery(stream));
    block(stream);
    ASK(cuStreamQuery(stream));
    ASK(cuStreamQuery(NULL));
    open_gate();
    ASK(cuStreamSynchronize(stream));
    ASK(cuStreamQuery(stream));
    block(plain);
    ASK(cuStreamQuery(NULL));
    ASK(cuStreamQuery(stream));
    ASK(run(f, NULL, NULL));
    ASK(cuStreamQuery(NULL));
    ASK(cuStreamQuery(CU_STREAM_PER_THREAD));
    open_gate();
    ASK(cuCtxSynchronize());
    ASK(cuStreamQuery(NULL));
}

static void other_device(void)
{
    CUcontext a = begin(), b;
    CUstream here = new_stream(0);
    CUevent event = new_event(0);
    MUST(cuDevicePrimaryCtxRetain(&b, 1));
    MUST(cuCtxSetCurrent(b));
    CUstream there = new_stream(0);
    CUevent other = new_event(0);
    ASK(cuStreamQuery(here));
    ASK(cuStreamSynchronize(here));
    ASK(cuEventRecord(event, here));
    ASK(cuEventRecord(event, there));
    ASK(cuEventRecord(event, NULL));
    ASK(cuStreamWaitEvent(there, event, 0));
    ASK(cuEventRecord(other, there));
    ASK(cuStreamWaitEvent(here, other, 0));
    float ms;
    ASK(cuCtxSynchronize());
    ASK(cuEventElapsedTime_v2(&ms, event, other));
    MUST(cuCtxSetCurrent(a));
    ASK(cuEventSynchronize(other));
    ASK(cuStreamDestroy_v2(there));
    MUST(cuStreamSynchronize(here));
    MUST(cuCtxSetCurrent(NULL));
    ASK(cuStreamQuery(here));
    ASK(cuEventQuery(event));
    ASK(cuEventRecord(event, here));
    ASK(cuStreamDestroy_v2(here));
    ASK(cuEventDestroy_v2(event));
}

/* ---- events ---- */

static void event_flags(void)
{
    begin();
    for (unsigned flags = 0; flags < 18; flags++) {
        CUevent event;
        ASK(cuEventCreate(&event, flags));
    }
    ASK(cuEventCreate(NULL, 0));
}

static void event_states(void)
{
    float ms = -1;
    begin();
    CUstream stream = new_stream(0);
    CUevent a = new_event(0), b = new_event(0);
    ASK(cuEventQuery(a));
    ASK(cuEventRecord(a, stream));
    block(stream);
    ASK(cuEventRecord(b, stream));
    ASK(cuEventQuery(b));
    ASK(cuEventElapsedTime_v2(&ms, a, b));
    ASK(cuEventElapsedTime(&ms, a, b));
    ASK(cuStreamWaitEvent(NULL, b, 0));
    open_gate();
    ASK(cuEventSynchronize(b));
    ASK(cuEventQuery(b));
    ASK(cuEventElapsedTime_v2(&ms, a, b));
    say(" %d", ms >= 0);
    ASK(cuEventElapsedTime_v2(&ms, b, a));
    say(" %d", ms <= 0);
    ASK(cuEventElapsedTime_v2(&ms, a, a));
    say(" %d", ms == 0);
}

static void event_wrong(void)
{
    float ms = -1;
    begin();
    CUstream stream = new_stream(0);
    CUevent a = new_event(0), b = new_event(0), untimed = new_event(CU_EVENT_DISABLE_TIMING);
    ASK(cuEventElapsedTime_v2(&ms, a, b));
    ASK(cuEventRecord(a, stream));
    ASK(cuEventSynchronize(a));
    ASK(cuEventElapsedTime_v2(&ms, a, b));
    ASK(cuEventElapsedTime_v2(&ms, b, a));
    ASK(cuEventElapsedTime_v2(&ms, a, untimed));
    ASK(cuEventRecord(untimed, stream));
    ASK(cuEventSynchronize(untimed));
    ASK(cuEventElapsedTime_v2(&ms, a, untimed));
    ASK(cuEventElapsedTime_v2(&ms, untimed, a));
    ASK(cuEventElapsedTime_v2(NULL, a, a));
    ASK(cuEventElapsedTime_v2(&ms, NULL, a));
    ASK(cuEventElapsedTime_v2(&ms, a, NULL));
    ASK(cuEventQuery(NULL));
    ASK(cuEventSynchronize(NULL));
    ASK(cuEventRecord(NULL, stream));
    ASK(cuEventDestroy_v2(NULL));
    ASK(cuStreamWaitEvent(stream, NULL, 0));
    ASK(cuStreamWaitEvent(stream, a, 1));
    ASK(cuStreamWaitEvent(stream, a, 2));
    ASK(cuStreamWaitEvent(stream, a, 3));
    ASK(cuEventRecordWithFlags(a, stream, 0));
    ASK(cuEventRecordWithFlags(a, stream, 1));
    ASK(cuEventRecordWithFlags(a, stream, 2));
    ASK(cuEventRecordWithFlags(NULL, stream, 0));
}

static void event_destroyed_while_recorded(void)
{
    begin();
    CUstream stream = new_stream(0), other = new_stream(CU_STREAM_NON_BLOCKING);
    CUevent event = new_event(0);
    block(stream);
    ASK(cuEventRecord(event, stream));
    ASK(cuStreamWaitEvent(other, event, 0));
    ASK(cuEventDestroy_v2(event));
    ASK(cuStreamQuery(other));
    open_gate();
    ASK(cuStreamSynchronize(other));
    ASK(cuCtxSynchronize());
}

static void event_recorded_again(void)
{
    begin();
    CUstream stream = new_stream(CU_STREAM_NON_BLOCKING), other = new_stream(CU_STREAM_NON_BLOCKING);
    CUevent event = new_event(0);
    ASK(cuEventRecord(event, stream));
    ASK(cuStreamSynchronize(stream));
    block(other);
    ASK(cuEventRecord(event, other));
    ASK(cuEventQuery(event));
    ASK(cuEventRecord(event, stream));
    ASK(cuEventSynchronize(event));
    ASK(cuEventQuery(event));
    open_gate();
    ASK(cuCtxSynchronize());
}

static void event_after_stream(void)
{
    begin();
    CUstream stream = new_stream(0);
    CUevent event = new_event(0);
    ASK(cuEventRecord(event, stream));
    ASK(cuStreamDestroy_v2(stream));
    ASK(cuEventSynchronize(event));
    ASK(cuEventQuery(event));
    ASK(cuEventDestroy_v2(event));
}

/* ---- attributes ---- */

static void attributes_get(void)
{
    begin();
    CUstream stream = new_stream(CU_STREAM_NON_BLOCKING);
    for (int id = -1; id < 20; id++) {
        CUlaunchAttributeValue value;
        memset(&value, 0x55, sizeof value);
        say(" %d:%d", id, (int)cuStreamGetAttribute(stream, (CUlaunchAttributeID)id, &value));
        if (id == CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY)
            say("(%d)", (int)value.syncPolicy);
        if (id == CU_LAUNCH_ATTRIBUTE_PRIORITY)
            say("(%d)", value.priority);
        if (id == CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN)
            say("(%d)", (int)value.memSyncDomain);
        if (id == CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP)
            say("(%d,%d)", value.memSyncDomainMap.default_, value.memSyncDomainMap.remote);
        if (id == CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW)
            say("(%d,%zu,%d,%d,%d)", value.accessPolicyWindow.base_ptr == NULL,
                value.accessPolicyWindow.num_bytes, value.accessPolicyWindow.hitRatio == 0,
                (int)value.accessPolicyWindow.hitProp, (int)value.accessPolicyWindow.missProp);
    }
}

static void attributes_set(void)
{
    begin();
    CUstream stream = new_stream(CU_STREAM_NON_BLOCKING);
    for (int id = -1; id < 20; id++) {
        CUlaunchAttributeValue value;
        memset(&value, 0, sizeof value);
        say(" %d:%d", id, (int)cuStreamSetAttribute(stream, (CUlaunchAttributeID)id, &value));
    }
    for (int policy = 0; policy < 6; policy++) {
        CUlaunchAttributeValue value = {.syncPolicy = (CUsynchronizationPolicy)policy}, after = {{0}};
        ASK(cuStreamSetAttribute(stream, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value));
        ASK(cuStreamGetAttribute(stream, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, &after));
        say(":%d", (int)after.syncPolicy);
    }
    for (int priority = -7; priority < 3; priority++) {
        CUlaunchAttributeValue value = {.priority = priority}, after = {{0}};
        ASK(cuStreamSetAttribute(stream, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value));
        ASK(cuStreamGetAttribute(stream, CU_LAUNCH_ATTRIBUTE_PRIORITY, &after));
        say(":%d", after.priority);
    }
}

static void attributes_domain(void)
{
    begin();
    CUstream stream = new_stream(CU_STREAM_NON_BLOCKING);
    for (int domain = -1; domain < 3; domain++) {
        CUlaunchAttributeValue value = {.memSyncDomain = (CUlaunchMemSyncDomain)domain}, after = {{0}};
        ASK(cuStreamSetAttribute(stream, CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN, &value));
        ASK(cuStreamGetAttribute(stream, CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN, &after));
        say(":%d", (int)after.memSyncDomain);
    }
    static const unsigned char maps[][2] = {{1, 2}, {3, 3}, {4, 0}, {0, 4}};
    for (size_t i = 0; i < sizeof maps / sizeof *maps; i++) {
        CUlaunchAttributeValue value = {.memSyncDomainMap = {maps[i][0], maps[i][1]}}, after = {{0}};
        ASK(cuStreamSetAttribute(stream, CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP, &value));
        ASK(cuStreamGetAttribute(stream, CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP, &after));
        say(":%d,%d", after.memSyncDomainMap.default_, after.memSyncDomainMap.remote);
    }
}

static void attributes_window(void)
{
    begin();
    CUstream stream = new_stream(CU_STREAM_NON_BLOCKING), other = new_stream(CU_STREAM_NON_BLOCKING);
    CUdeviceptr p = memory(4096);
    const float ratios[] = {0.0f, 0.5f, 1.0f, 1.5f, -0.5f};
    for (size_t i = 0; i < sizeof ratios / sizeof *ratios; i++) {
        CUlaunchAttributeValue value = {.accessPolicyWindow = {(void *)(uintptr_t)p, 4096, ratios[i],
                                                               CU_ACCESS_PROPERTY_PERSISTING,
                                                               CU_ACCESS_PROPERTY_STREAMING}},
                               after = {{0}};
        ASK(cuStreamSetAttribute(stream, CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW, &value));
        ASK(cuStreamGetAttribute(stream, CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW, &after));
        say(":%zu,%d,%d", after.accessPolicyWindow.num_bytes, (int)after.accessPolicyWindow.hitProp,
            (int)(after.accessPolicyWindow.hitRatio * 100));
    }
    ASK(cuStreamCopyAttributes(other, stream));
    CUlaunchAttributeValue after = {{0}};
    ASK(cuStreamGetAttribute(other, CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW, &after));
    say(":%zu", after.accessPolicyWindow.num_bytes);
}

static void attributes_wrong(void)
{
    CUlaunchAttributeValue value = {.syncPolicy = CU_SYNC_POLICY_SPIN};
    begin();
    CUstream stream = new_stream(CU_STREAM_NON_BLOCKING), other = new_stream(0);
    ASK(cuStreamGetAttribute(NULL, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value));
    value.syncPolicy = CU_SYNC_POLICY_SPIN;
    ASK(cuStreamSetAttribute(NULL, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value));
    ASK(cuStreamSetAttribute(stream, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value));
    ASK(cuStreamCopyAttributes(other, stream));
    ASK(cuStreamGetAttribute(other, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value));
    say(":%d", (int)value.syncPolicy);
    ASK(cuStreamCopyAttributes(stream, stream));
    ASK(cuStreamCopyAttributes(NULL, stream));
    ASK(cuStreamCopyAttributes(stream, NULL));
}

/* ---- values in memory ---- */

static void write_values(void)
{
    begin();
    CUstream stream = new_stream(CU_STREAM_NON_BLOCKING);
    CUdeviceptr p = memory(64);
    ASK(cuStreamWriteValue32_v2(stream, p, 5, 0));
    ASK(cuStreamWriteValue64_v2(stream, p + 8, 0x100000007ull, 0));
    ASK(cuStreamWriteValue32_v2(stream, p + 4, 6, CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER));
    ASK(cuStreamWaitValue32_v2(stream, p, 5, CU_STREAM_WAIT_VALUE_EQ));
    ASK(cuStreamWaitValue32_v2(stream, p, 3, CU_STREAM_WAIT_VALUE_GEQ));
    ASK(cuStreamWaitValue32_v2(stream, p, 1, CU_STREAM_WAIT_VALUE_AND));
    ASK(cuStreamWaitValue32_v2(stream, p, 0, CU_STREAM_WAIT_VALUE_NOR));
    ASK(cuStreamWaitValue64_v2(stream, p + 8, 0x100000000ull, CU_STREAM_WAIT_VALUE_GEQ));
    ASK(cuStreamSynchronize(stream));
}

static void write_values_wrong(void)
{
    begin();
    CUstream stream = new_stream(CU_STREAM_NON_BLOCKING);
    CUdeviceptr p = memory(64);
    ASK(cuStreamWriteValue32_v2(stream, p + 1, 5, 0));
    ASK(cuStreamWriteValue32_v2(stream, p + 2, 5, 0));
    ASK(cuStreamWriteValue64_v2(stream, p + 4, 5, 0));
    ASK(cuStreamWriteValue32_v2(stream, 0, 5, 0));
    ASK(cuStreamWriteValue32_v2(stream, 4096, 5, 0));
    ASK(cuStreamWriteValue32_v2(stream, p, 5, 2));
    ASK(cuStreamWriteValue32_v2(stream, p, 5, 16));
    ASK(cuStreamWaitValue32_v2(stream, p + 1, 0, 0));
    ASK(cuStreamWaitValue32_v2(stream, 0, 0, 0));
    ASK(cuStreamWaitValue32_v2(stream, p, 0, 4));
    ASK(cuStreamWaitValue32_v2(stream, p, 0, 8));
    ASK(cuStreamWaitValue32_v2(stream, p, 0, CU_STREAM_WAIT_VALUE_FLUSH));
    ASK(cuStreamWaitValue64_v2(stream, p + 4, 0, 0));
    ASK(cuStreamSynchronize(stream));
    say(" %u", word_at(p));
    ASK(cuStreamWriteValue32_v2(NULL, p, 7, 0));
    ASK(cuStreamWaitValue32_v2(NULL, p, 7, CU_STREAM_WAIT_VALUE_EQ));
    ASK(cuCtxSynchronize());
    say(" %u", word_at(p));
}

static void wait_values(void)
{
    void *host;
    CUdeviceptr p;
    begin();
    CUstream waiting = new_stream(CU_STREAM_NON_BLOCKING), writing = new_stream(CU_STREAM_NON_BLOCKING);
    MUST(cuMemHostAlloc(&host, 4096, CU_MEMHOSTALLOC_DEVICEMAP));
    MUST(cuMemHostGetDevicePointer_v2(&p, host, 0));
    memset(host, 0, 4096);
    ASK(cuStreamWaitValue32_v2(waiting, p, 1, CU_STREAM_WAIT_VALUE_EQ));
    ASK(cuStreamQuery(waiting));
    *(volatile unsigned *)host = 1;
    ASK(cuStreamSynchronize(waiting));
    ASK(cuStreamWaitValue32_v2(waiting, p, 2, CU_STREAM_WAIT_VALUE_AND));
    ASK(cuStreamQuery(waiting));
    ASK(cuStreamWriteValue32_v2(writing, p, 6, 0));
    ASK(cuStreamSynchronize(waiting));
    ASK(cuStreamWaitValue32_v2(waiting, p, 10, CU_STREAM_WAIT_VALUE_GEQ));
    ASK(cuStreamWriteValue32_v2(writing, p, 0x80000000u, 0));
    ASK(cuStreamSynchronize(writing));
    ASK(cuStreamSynchronize(waiting));
    ASK(cuStreamWriteValue32_v2(writing, p, 12, 0));
    ASK(cuStreamSynchronize(writing));
    say(" %u", *(volatile unsigned *)host);
}

static void batch(void)
{
    begin();
    CUstream stream = new_stream(CU_STREAM_NON_BLOCKING);
    CUdeviceptr p = memory(64);
    CUstreamBatchMemOpParams ops[3];
    memset(ops, 0, sizeof ops);
    ops[0].writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
    ops[0].writeValue.address = p;
    ops[0].writeValue.value64 = 9;
    ops[1].waitValue.operation = CU_STREAM_MEM_OP_WAIT_VALUE_32;
    ops[1].waitValue.address = p;
    ops[1].waitValue.value64 = 9;
    ops[1].waitValue.flags = CU_STREAM_WAIT_VALUE_EQ;
    ops[2].memoryBarrier.operation = CU_STREAM_MEM_OP_BARRIER;
    ASK(cuStreamBatchMemOp_v2(stream, 3, ops, 0));
    ASK(cuStreamSynchronize(stream));
    say(" %u", word_at(p));
    ASK(cuStreamBatchMemOp_v2(stream, 0, ops, 0));
    ASK(cuStreamBatchMemOp_v2(stream, 1, ops, 1));
    ASK(cuStreamBatchMemOp_v2(stream, 257, ops, 0));
    ops[0].operation = (CUstreamBatchMemOpType)0;
    ASK(cuStreamBatchMemOp_v2(stream, 1, ops, 0));
    ops[0].operation = (CUstreamBatchMemOpType)77;
    ASK(cuStreamBatchMemOp_v2(stream, 1, ops, 0));
    ops[0].operation = CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES;
    ASK(cuStreamBatchMemOp_v2(stream, 1, ops, 0));
    ops[2].memoryBarrier.flags = 1;
    ASK(cuStreamBatchMemOp_v2(stream, 1, ops + 2, 0));
    ops[2].memoryBarrier.flags = 2;
    ASK(cuStreamBatchMemOp_v2(stream, 1, ops + 2, 0));
    ASK(cuStreamSynchronize(stream));
}

static void attach(void)
{
    CUdeviceptr managed;
    begin();
    CUstream stream = new_stream(0);
    CUdeviceptr p = memory(64);
    MUST(cuMemAllocManaged(&managed, 4096, CU_MEM_ATTACH_GLOBAL));
    ASK(cuStreamAttachMemAsync(stream, managed, 0, CU_MEM_ATTACH_SINGLE));
    ASK(cuStreamAttachMemAsync(stream, managed, 4096, CU_MEM_ATTACH_HOST));
    ASK(cuStreamAttachMemAsync(stream, managed, 4096, CU_MEM_ATTACH_GLOBAL));
    ASK(cuStreamAttachMemAsync(stream, managed, 100, CU_MEM_ATTACH_GLOBAL));
    ASK(cuStreamAttachMemAsync(stream, managed + 64, 0, CU_MEM_ATTACH_GLOBAL));
    ASK(cuStreamAttachMemAsync(stream, p, 0, CU_MEM_ATTACH_GLOBAL));
    ASK(cuStreamAttachMemAsync(stream, 0, 0, CU_MEM_ATTACH_GLOBAL));
    ASK(cuStreamAttachMemAsync(NULL, managed, 0, CU_MEM_ATTACH_SINGLE));
    ASK(cuStreamAttachMemAsync(NULL, managed, 0, CU_MEM_ATTACH_GLOBAL));
    ASK(cuCtxSynchronize());
}

static const fact facts[] = {
    FACT(create),
    FACT(priorities),
    FACT(properties),
    FACT(ids),
    FACT(destroy),
    FACT(query),
    FACT(other_device),
    FACT(event_flags),
    FACT(event_states),
    FACT(event_wrong),
    FACT(event_destroyed_while_recorded),
    FACT(event_recorded_again),
    FACT(event_after_stream),
    FACT(attributes_get),
    FACT(attributes_set),
    FACT(attributes_domain),
    FACT(attributes_window),
    FACT(attributes_wrong),
    FACT(write_values),
    FACT(write_values_wrong),
    FACT(wait_values),
    FACT(batch),
    FACT(attach),
};
FACTS_MAIN(facts)
