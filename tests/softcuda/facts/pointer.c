/* SPDX-License-Identifier: Apache-2.0 */
/* What a pointer is: every attribute of every kind of memory. */
#include "tests/softcuda/facts/memory.h"

enum { BYTES = 1000, LAST_ATTRIBUTE = 21 };

typedef struct asked {
    CUdeviceptr address, start;
} asked;

static asked at(CUdeviceptr start, size_t offset)
{
    return (asked){start + offset, start};
}

/* ---- the kinds ---- */

static CUdeviceptr host_of(unsigned flags)
{
    void *p;
    MUST(cuMemHostAlloc(&p, BYTES, flags));
    return ADDRESS(p);
}

static CUdeviceptr register_of(size_t offset, unsigned flags)
{
    CUdeviceptr p = plain(4 * PAGE) + offset;
    MUST(cuMemHostRegister_v2(POINTER(p), BYTES, flags));
    return p;
}

static CUdeviceptr managed_of_host(void)
{
    CUdeviceptr p;
    MUST(cuMemAllocManaged(&p, BYTES, CU_MEM_ATTACH_HOST));
    return p;
}

static CUdeviceptr pinned_freed(void)
{
    CUdeviceptr p = pinned(BYTES);
    MUST(cuMemFreeHost(POINTER(p)));
    return p;
}

static CUdeviceptr register_ended(void)
{
    CUdeviceptr p = registered(BYTES);
    MUST(cuMemHostUnregister(POINTER(p)));
    return p;
}

static CUdeviceptr managed_freed(void)
{
    CUdeviceptr p = managed(BYTES);
    MUST(cuMemFree_v2(p));
    return p;
}

static CUdeviceptr pooled_freed(void)
{
    CUdeviceptr p = pooled(BYTES);
    MUST(cuMemFreeAsync(p, NULL));
    MUST(cuStreamSynchronize(NULL));
    return p;
}

static CUmemoryPool own_pool(void)
{
    CUmemoryPool pool;
    const CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                  .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    MUST(cuMemPoolCreate(&pool, &props));
    return pool;
}

static CUdeviceptr of_own_pool(void)
{
    CUdeviceptr p;
    MUST(cuMemAllocFromPoolAsync(&p, BYTES, own_pool(), NULL));
    MUST(cuStreamSynchronize(NULL));
    return p;
}

static CUdeviceptr variable(void)
{
    CUmodule module;
    CUdeviceptr p;
    size_t bytes;
    MUST(cuModuleLoadData(&module, module_text));
    MUST(cuModuleGetGlobal_v2(&p, &bytes, module, "words"));
    return p;
}

static CUdeviceptr second_context(void)
{
    CUcontext context;
    MUST(cuCtxCreate_v2(&context, 0, 0));
    CUdeviceptr p = device(BYTES);
    MUST(cuCtxPopCurrent_v2(&context));
    return p;
}

static CUdeviceptr context_ended(void)
{
    CUcontext context;
    MUST(cuCtxCreate_v2(&context, 0, 0));
    CUdeviceptr p = device(BYTES);
    MUST(cuCtxDestroy_v2(context));
    return p;
}

#define KINDS(X)                                                      \
    X(device, at(device(BYTES), 0))                                   \
    X(device_inside, at(device(BYTES), 100))                          \
    X(device_last, at(device(BYTES), BYTES - 1))                      \
    X(device_past, at(device(BYTES), BYTES))                          \
    X(device_freed, at(device_freed(BYTES), 0))                       \
    X(device_large, at(device(5 * MIB), 3 * MIB))                     \
    X(device_second, at(second_device(BYTES), 4))                     \
    X(device_other_context, at(second_context(), 4))                  \
    X(device_of_ended_context, at(context_ended(), 4))                \
    X(variable, at(variable(), 8))                                    \
    X(pinned, at(pinned(BYTES), 0))                                   \
    X(pinned_inside, at(pinned(BYTES), 100))                          \
    X(pinned_past, at(pinned(BYTES), BYTES))                          \
    X(pinned_portable, at(host_of(CU_MEMHOSTALLOC_PORTABLE), 0))      \
    X(pinned_mapped, at(host_of(CU_MEMHOSTALLOC_DEVICEMAP), 0))       \
    X(pinned_combined, at(host_of(CU_MEMHOSTALLOC_WRITECOMBINED), 0)) \
    X(pinned_freed, at(pinned_freed(), 0))                            \
    X(registered, at(register_of(0, 0), 0))                           \
    X(registered_inside, at(register_of(0, 0), 100))                  \
    X(registered_past, at(register_of(0, 0), BYTES))                  \
    X(registered_offset, at(register_of(100, 0), 4))                  \
    X(registered_before, at(register_of(100, 0), (size_t)-4))         \
    X(registered_mapped, at(register_of(0, 2), 0))                    \
    X(register_ended, at(register_ended(), 0))                        \
    X(managed, at(managed(BYTES), 0))                                 \
    X(managed_inside, at(managed(BYTES), 100))                        \
    X(managed_of_host, at(managed_of_host(), 0))                      \
    X(managed_freed, at(managed_freed(), 0))                          \
    X(pooled, at(pooled(BYTES), 0))                                   \
    X(pooled_inside, at(pooled(BYTES), 100))                          \
    X(pooled_freed, at(pooled_freed(), 0))                            \
    X(of_own_pool, at(of_own_pool(), 8))                              \
    X(plain, at(plain(BYTES), 0))                                     \
    X(nothing, at(0, 0))                                              \
    X(garbage, at(GARBAGE, 0))

/* ---- the questions ---- */

typedef union answer {
    unsigned char bytes[16];
    unsigned word;
    unsigned long long wide;
} answer;

/* A value by what it is; addresses and ids differ from run to run. */
static void say_answer(CUpointer_attribute attribute, const answer *a, asked of, CUcontext context)
{
    unsigned char unset[16];
    memset(unset, 0xee, sizeof unset);
    CUmemoryPool pool = NULL;
    bool is_id =
        attribute == CU_POINTER_ATTRIBUTE_BUFFER_ID || attribute == CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID;
    cuDeviceGetDefaultMemPool(&pool, 0);
    if (!memcmp(a->bytes, unset, sizeof unset))
        say("unset");
    else if (!memcmp(a->bytes + 1, unset + 1, 15))
        say("%u", a->bytes[0]);
    else if (!memcmp(a->bytes + 4, unset + 4, 12))
        say("%d", (int)a->word);
    else if (is_id && a->wide)
        say("id");
    else if (of.address && a->wide == of.address)
        say("asked");
    else if (of.start && a->wide == of.start)
        say("start");
    else if (a->wide == ADDRESS(context))
        say("context");
    else if (a->wide == ADDRESS(pool))
        say("default");
    else if (a->wide < (1ull << 32))
        say("%llu", a->wide);
    else
        say("other");
}

/* What device memory that is not managed has of SYNC_MEMOPS before it is set differs between machines: of two
 * with H200s and driver 580.159.04, one answers 1 and the other 0. */
static bool differs_between_machines(CUpointer_attribute attribute, CUdeviceptr address)
{
    unsigned type = 0, is_managed = 0;
    cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address);
    cuPointerGetAttribute(&is_managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, address);
    return attribute == CU_POINTER_ATTRIBUTE_SYNC_MEMOPS && type == CU_MEMORYTYPE_DEVICE && !is_managed;
}

static void ask_each(asked of, CUcontext context)
{
    for (int attribute = 0; attribute <= LAST_ATTRIBUTE + 1; attribute++) {
        answer a;
        if (attribute == CU_POINTER_ATTRIBUTE_P2P_TOKENS) /* softcuda gives none */
            continue;
        memset(&a, 0xee, sizeof a);
        say(" %d:%d:", attribute, cuPointerGetAttribute(&a, attribute, of.address));
        if (differs_between_machines(attribute, of.address))
            say("machine");
        else
            say_answer(attribute, &a, of, context);
    }
}

static void ask_together(asked of, CUcontext context)
{
    answer a[LAST_ATTRIBUTE];
    void *data[LAST_ATTRIBUTE];
    CUpointer_attribute attributes[LAST_ATTRIBUTE];
    memset(a, 0xee, sizeof a);
    for (int i = 0; i < LAST_ATTRIBUTE; i++) {
        attributes[i] = i + 1;
        data[i] = &a[i];
    }
    ASK(cuPointerGetAttributes(LAST_ATTRIBUTE, attributes, data, of.address));
    for (int i = 0; i < LAST_ATTRIBUTE; i++) {
        say(" %d:", i + 1);
        say_answer(i + 1, &a[i], of, context);
    }
}

/* The attributes that may be set, and what is then read. */
static void ask_to_set(asked of)
{
    for (int attribute = 0; attribute <= LAST_ATTRIBUTE + 1; attribute++) {
        const unsigned long long value = 0;
        say(" %d:%d", attribute, cuPointerSetAttribute(&value, attribute, of.address));
    }
    for (unsigned value = 0; value <= 2; value++) {
        unsigned got = 77;
        ASK(cuPointerSetAttribute(&value, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, of.address));
        ASK(cuPointerGetAttribute(&got, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, of.address));
        say(":%u", got);
    }
    ASK(cuPointerSetAttribute(NULL, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, of.address));
}

#define ASKS(kind, make)             \
    static void ask_##kind(void)     \
    {                                \
        CUcontext context = begin(); \
        const asked of = make;       \
        ask_each(of, context);       \
        say(" together");            \
        ask_together(of, context);   \
        say(" set");                 \
        ask_to_set(of);              \
    }
KINDS(ASKS)

static void ids(void)
{
    unsigned long long a, b, c;
    begin();
    CUdeviceptr p = device(BYTES), q = device(BYTES);
    MUST(cuPointerGetAttribute(&a, CU_POINTER_ATTRIBUTE_BUFFER_ID, p));
    MUST(cuPointerGetAttribute(&b, CU_POINTER_ATTRIBUTE_BUFFER_ID, p + 4));
    MUST(cuPointerGetAttribute(&c, CU_POINTER_ATTRIBUTE_BUFFER_ID, q));
    say(" buffer %d %d", a == b, a < c);
    MUST(cuMemFree_v2(q));
    q = device(BYTES);
    MUST(cuPointerGetAttribute(&b, CU_POINTER_ATTRIBUTE_BUFFER_ID, q));
    say(" %d", c < b);
}

static void each_wrong(void)
{
    answer a;
    begin();
    CUdeviceptr p = device(BYTES);
    ASK(cuPointerGetAttribute(NULL, CU_POINTER_ATTRIBUTE_CONTEXT, p));
    ASK(cuPointerGetAttribute(NULL, CU_POINTER_ATTRIBUTE_CONTEXT, 0));
    ASK(cuPointerGetAttribute(&a, 0, p));
    ASK(cuPointerGetAttribute(&a, 22, p));
    ASK(cuPointerGetAttribute(&a, 99, 0));
    ASK(cuPointerGetAttribute(&a, (CUpointer_attribute)-1, p));
}

static void together_wrong(void)
{
    answer a[2];
    void *data[2] = {&a[0], &a[1]};
    CUpointer_attribute which[2] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL};
    CUcontext context = begin();
    CUdeviceptr p = device(BYTES);
    ASK(cuPointerGetAttributes(0, which, data, p));
    ASK(cuPointerGetAttributes(2, NULL, data, p));
    ASK(cuPointerGetAttributes(2, which, NULL, p));
    for (int wrong = 0; wrong < 30; wrong += 22) {
        memset(a, 0xee, sizeof a);
        which[1] = wrong;
        ASK(cuPointerGetAttributes(2, which, data, p));
        say_answer(which[0], &a[0], at(p, 0), context);
        ASK(cuPointerGetAttributes(2, which, data, 0));
    }
    which[1] = which[0];
    ASK(cuPointerGetAttributes(2, which, data, p));
    data[0] = NULL;
    ASK(cuPointerGetAttributes(2, which, data, p));
}

static void set_wrong(void)
{
    const unsigned on = 1;
    begin();
    CUdeviceptr p = device(BYTES);
    ASK(cuPointerSetAttribute(NULL, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, 0));
    ASK(cuPointerSetAttribute(&on, 99, p));
    ASK(cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, p + BYTES));
    ASK(cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, p + 4));
    unsigned got = 77;
    ASK(cuPointerGetAttribute(&got, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, p));
    say(" %u", got);
}

static void each_call(CUdeviceptr p)
{
    answer a;
    void *data[1] = {&a};
    const unsigned on = 1;
    CUpointer_attribute which[1] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE};
    ASK(cuPointerGetAttribute(&a, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p));
    ASK(cuPointerGetAttribute(NULL, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p));
    ASK(cuPointerGetAttribute(&a, 0, p));
    ASK(cuPointerGetAttribute(&a, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, 0));
    ASK(cuPointerGetAttributes(1, which, data, p));
    ASK(cuPointerGetAttributes(1, which, data, 0));
    ASK(cuPointerGetAttributes(0, NULL, NULL, 0));
    ASK(cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, p));
    ASK(cuPointerSetAttribute(NULL, 0, 0));
}

static void before_init(void)
{
    each_call(GARBAGE);
}

static void without_context(void)
{
    begin();
    CUdeviceptr p = device(BYTES);
    MUST(cuCtxSetCurrent(NULL));
    each_call(p);
    each_call(plain(4));
}

static void after_context(void)
{
    CUcontext context;
    begin();
    CUdeviceptr p = device(BYTES);
    MUST(cuCtxCreate_v2(&context, 0, 0));
    MUST(cuCtxDestroy_v2(context));
    MUST(cuCtxSetCurrent(NULL));
    MUST(cuCtxCreate_v2(&context, 0, 0));
    CUdeviceptr q = device(BYTES);
    MUST(cuCtxPushCurrent_v2(context));
    MUST(cuCtxDestroy_v2(context));
    each_call(p);
    each_call(q);
}

static void after_fault(void)
{
    begin();
    CUdeviceptr p = device(BYTES);
    fault_here();
    each_call(p);
    each_call(plain(4));
}

#define CASES(kind, make) {#kind, ask_##kind},
static const fact facts[] = {KINDS(CASES){"ids", ids},           {"each_wrong", each_wrong},
                             {"together_wrong", together_wrong}, {"set_wrong", set_wrong},
                             {"before_init", before_init},       {"without_context", without_context},
                             {"after_context", after_context},   {"after_fault", after_fault}};

FACTS_MAIN(facts)
