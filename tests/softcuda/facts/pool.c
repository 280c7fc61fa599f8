/* SPDX-License-Identifier: Apache-2.0 */
/* Memory pools and what is allocated in the order of a stream. */
#include "tests/softcuda/facts/memory.h"

enum { BYTES = 1000 };

static const CUmemPoolProps on_first = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                        .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};

static CUmemoryPool pool_of(CUdevice ordinal)
{
    CUmemoryPool pool;
    CUmemPoolProps props = on_first;
    props.location.id = ordinal;
    MUST(cuMemPoolCreate(&pool, &props));
    return pool;
}

static CUmemoryPool default_pool(void)
{
    CUmemoryPool pool;
    MUST(cuDeviceGetDefaultMemPool(&pool, 0));
    return pool;
}

static CUmemoryPool destroyed(void)
{
    CUmemoryPool pool = pool_of(0);
    MUST(cuMemPoolDestroy(pool));
    return pool;
}

static void each_call(CUmemoryPool pool, CUdeviceptr p)
{
    CUmemoryPool out = NULL;
    CUdeviceptr address = UNSET;
    unsigned long long value = 0;
    CUmemLocation here = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    const CUmemAccessDesc access = {here, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUmemAccess_flags flags = 0;
    CUmemPoolPtrExportData data;
    int fd;
    ASK(cuDeviceGetDefaultMemPool(&out, 0));
    ASK(cuDeviceGetDefaultMemPool(NULL, 99));
    ASK(cuDeviceGetMemPool(&out, 0));
    ASK(cuDeviceSetMemPool(0, pool));
    ASK(cuDeviceSetMemPool(99, NULL));
    ASK(cuMemPoolCreate(&out, &on_first));
    ASK(cuMemPoolCreate(NULL, NULL));
    ASK(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &value));
    ASK(cuMemPoolGetAttribute(pool, 0, NULL));
    ASK(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &value));
    ASK(cuMemPoolSetAccess(pool, &access, 1));
    ASK(cuMemPoolGetAccess(&flags, pool, &here));
    ASK(cuMemPoolTrimTo(pool, 0));
    ASK(cuMemPoolExportToShareableHandle(&fd, pool, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    ASK(cuMemPoolExportPointer(&data, p));
    ASK(cuMemAllocAsync(&address, BYTES, NULL));
    ASK(cuMemAllocAsync(NULL, 0, NULL));
    ASK(cuMemAllocFromPoolAsync(&address, BYTES, pool, NULL));
    ASK(cuMemAllocFromPoolAsync(NULL, BYTES, NULL, NULL));
    ASK(cuMemFreeAsync(0, NULL));
    ASK(cuMemFreeAsync(p, NULL));
    ASK(cuMemPoolDestroy(pool));
    ASK(cuMemPoolDestroy(NULL));
}

static void before_init(void)
{
    each_call(NULL, GARBAGE);
}

static void without_context(void)
{
    begin();
    CUmemoryPool pool = pool_of(0);
    CUdeviceptr p = pooled(BYTES);
    MUST(cuCtxSetCurrent(NULL));
    each_call(pool, p);
}

static void without_memory(void)
{
    MUST(cuInit(0));
    each_call(pool_of(0), GARBAGE);
}

static void after_context(void)
{
    CUcontext context;
    MUST(cuInit(0));
    MUST(cuCtxCreate_v2(&context, 0, 0));
    CUmemoryPool pool = pool_of(0);
    CUdeviceptr p = pooled(BYTES);
    MUST(cuCtxPushCurrent_v2(context));
    MUST(cuCtxDestroy_v2(context));
    each_call(pool, p);
    begin();
    say(" another");
    ASK(cuMemFreeAsync(p, NULL));
    ASK(cuMemFree_v2(p));
}

static void after_fault(void)
{
    begin();
    CUmemoryPool pool = pool_of(0);
    CUdeviceptr p = pooled(BYTES);
    fault_here();
    each_call(pool, p);
}

/* A real driver crashes on a pool that never was and takes one that was destroyed; cuMemPoolSetAttribute
 * crashes on a value of NULL. None is asked. */
static void current_pool(void)
{
    static const CUdevice devices[] = {0, 1, 2, -1};
    CUmemoryPool first, out;
    begin();
    for (size_t i = 0; i < COUNT(devices); i++) {
        first = out = POINTER(UNSET);
        ASK(cuDeviceGetDefaultMemPool(&first, devices[i]));
        ASK(cuDeviceGetMemPool(&out, devices[i]));
        say_is(ADDRESS(out), ADDRESS(first));
    }
    ASK(cuDeviceGetDefaultMemPool(NULL, 0));
    ASK(cuDeviceGetMemPool(NULL, 0));
    say(" set");
    CUmemoryPool own = pool_of(0);
    ASK(cuDeviceSetMemPool(0, NULL));
    ASK(cuDeviceSetMemPool(0, pool_of(1)));
    ASK(cuDeviceSetMemPool(2, own));
    ASK(cuDeviceSetMemPool(0, own));
    ASK(cuDeviceGetMemPool(&out, 0));
    say_is(ADDRESS(out), ADDRESS(own));
    CUdeviceptr p = pooled(BYTES);
    ASK(cuPointerGetAttribute(&out, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, p));
    say_is(ADDRESS(out), ADDRESS(own));
    ASK(cuMemPoolDestroy(own));
    ASK(cuDeviceGetMemPool(&out, 0));
    say_is(ADDRESS(out), ADDRESS(default_pool()));
    ASK(cuMemFree_v2(p));
}

/* CUDA 13's forms. Managed pools and those of the host are refused by softcuda, so they are not asked. */
static void pool_of_location(void)
{
    static const CUmemLocationType types[] = {CU_MEM_LOCATION_TYPE_INVALID, CU_MEM_LOCATION_TYPE_DEVICE};
    begin();
    for (size_t i = 0; i < COUNT(types); i++)
        for (int id = -1; id <= 2; id++)
            for (int kind = 0; kind <= 1; kind++) {
                CUmemoryPool first = POINTER(UNSET), out = POINTER(UNSET);
                CUmemLocation place = {types[i], id};
                ASK(cuMemGetDefaultMemPool(&first, &place, kind));
                ASK(cuMemGetMemPool(&out, &place, kind));
                say_is(ADDRESS(out), ADDRESS(first));
            }
    CUmemoryPool out = POINTER(UNSET);
    CUmemLocation here = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    say(" wrong");
    ASK(cuMemGetDefaultMemPool(NULL, &here, CU_MEM_ALLOCATION_TYPE_PINNED));
    ASK(cuMemGetDefaultMemPool(&out, NULL, CU_MEM_ALLOCATION_TYPE_PINNED));
    ASK(cuMemGetMemPool(NULL, &here, CU_MEM_ALLOCATION_TYPE_PINNED));
    ASK(cuMemGetMemPool(&out, NULL, CU_MEM_ALLOCATION_TYPE_PINNED));
    ASK(cuMemGetMemPool(&out, &here, CU_MEM_ALLOCATION_TYPE_PINNED));
    say_is(ADDRESS(out), ADDRESS(default_pool()));
    say(" set");
    CUmemoryPool own = pool_of(0);
    ASK(cuMemSetMemPool(&here, CU_MEM_ALLOCATION_TYPE_PINNED, own));
    ASK(cuMemGetMemPool(&out, &here, CU_MEM_ALLOCATION_TYPE_PINNED));
    say_is(ADDRESS(out), ADDRESS(own));
    ASK(cuMemSetMemPool(&here, CU_MEM_ALLOCATION_TYPE_INVALID, own));
    ASK(cuMemSetMemPool(&here, CU_MEM_ALLOCATION_TYPE_MANAGED, own));
    ASK(cuMemSetMemPool(&here, CU_MEM_ALLOCATION_TYPE_PINNED, NULL));
    ASK(cuMemSetMemPool(NULL, CU_MEM_ALLOCATION_TYPE_PINNED, own));
    here.id = 1;
    ASK(cuMemSetMemPool(&here, CU_MEM_ALLOCATION_TYPE_PINNED, own));
}

static void say_attributes(CUmemoryPool pool)
{
    for (int attribute = 1; attribute <= CU_MEMPOOL_ATTR_USED_MEM_HIGH; attribute++) {
        unsigned long long value = UNSET;
        say(" %d:", cuMemPoolGetAttribute(pool, attribute, &value));
        if (value >> 32 == UNSET >> 32)
            say("%d", (int)value);
        else
            say("%llu", value);
    }
    say(",");
}

static void attributes(void)
{
    unsigned long long value = UNSET;
    begin();
    CUmemoryPool first = default_pool(), own = pool_of(0);
    say_attributes(first);
    say_attributes(own);
    say(" wrong");
    ASK(cuMemPoolGetAttribute(first, 0, &value));
    ASK(cuMemPoolGetAttribute(first, 20, &value));
    ASK(cuMemPoolGetAttribute(first, 1, NULL));
    ASK(cuMemPoolGetAttribute(NULL, 1, &value));
    ASK(cuMemPoolSetAttribute(first, 0, &value));
    ASK(cuMemPoolSetAttribute(first, 20, &value));
}

static void attributes_set(void)
{
    static const unsigned long long values[] = {0, 1, 2, 1 << 20, ~0ull};
    begin();
    CUmemoryPool own = pool_of(0);
    for (int attribute = 1; attribute <= CU_MEMPOOL_ATTR_USED_MEM_HIGH; attribute++)
        for (size_t i = 0; i < COUNT(values); i++) {
            unsigned long long value = values[i], got = 0;
            ASK(cuMemPoolSetAttribute(own, attribute, &value));
            MUST(cuMemPoolGetAttribute(own, attribute, &got));
            say(":%llu", got);
        }
}

static void ask_use(CUmemoryPool pool)
{
    CUdeviceptr p, q, big;
    unsigned long long zero = 0;
    CUstream s = stream();
    MUST(cuMemAllocFromPoolAsync(&p, BYTES, pool, s));
    MUST(cuStreamSynchronize(s));
    say_attributes(pool);
    MUST(cuMemAllocFromPoolAsync(&q, 4 * MIB, pool, s));
    MUST(cuStreamSynchronize(s));
    say_attributes(pool);
    MUST(cuMemFreeAsync(p, s));
    MUST(cuStreamSynchronize(s));
    say_attributes(pool);
    ASK(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &zero));
    ASK(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH, &zero));
    say_attributes(pool);
    MUST(cuMemAllocFromPoolAsync(&big, 40 * MIB, pool, s));
    MUST(cuStreamSynchronize(s));
    say_attributes(pool);
    ASK(cuMemPoolTrimTo(pool, 0));
    say_attributes(pool);
    MUST(cuMemFreeAsync(q, s));
    MUST(cuMemFreeAsync(big, s));
    MUST(cuStreamSynchronize(s));
    say_attributes(pool);
    ASK(cuMemPoolTrimTo(pool, 1));
    say_attributes(pool);
    ASK(cuMemPoolTrimTo(pool, 0));
    say_attributes(pool);
}

static void use_of_default(void)
{
    begin();
    ask_use(default_pool());
}

static void use_of_own(void)
{
    begin();
    ask_use(pool_of(0));
}

static void use_with_threshold(void)
{
    unsigned long long all = ~0ull;
    begin();
    CUmemoryPool pool = pool_of(0);
    MUST(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &all));
    ask_use(pool);
}

static void trim_wrong(void)
{
    begin();
    ASK(cuMemPoolTrimTo(NULL, 0));
    ASK(cuMemPoolTrimTo(default_pool(), SIZE_MAX));
}

static CUresult create(const CUmemPoolProps *props)
{
    CUmemoryPool pool;
    return cuMemPoolCreate(&pool, props);
}

/* Without what softcuda refuses: managed memory, the host's, and handles to share. */
static void create_types(void)
{
    begin();
    for (int type = 0; type <= 3; type++) {
        CUmemPoolProps props = on_first;
        props.allocType = type;
        if (type != CU_MEM_ALLOCATION_TYPE_MANAGED)
            ASK(create(&props));
    }
    say(" handles");
    for (int handles = 2; handles <= 7; handles++) {
        CUmemPoolProps props = on_first;
        props.handleTypes = handles;
        ASK(create(&props));
    }
    say(" places");
    for (int type = 0; type <= 5; type++)
        for (int id = -1; id <= 2; id++) {
            CUmemPoolProps props = on_first;
            props.location = (CUmemLocation){type, id};
            if (type != CU_MEM_LOCATION_TYPE_HOST && type != CU_MEM_LOCATION_TYPE_HOST_NUMA)
                ASK(create(&props));
        }
}

static void create_wrong(void)
{
    CUmemoryPool pool;
    begin();
    ASK(cuMemPoolCreate(NULL, &on_first));
    ASK(cuMemPoolCreate(&pool, NULL));
    CUmemPoolProps props = on_first;
    props.maxSize = 1;
    ASK(create(&props));
    props = on_first;
    props.reserved[0] = 1;
    ASK(create(&props));
    props = on_first;
    for (unsigned short usage = 1; usage <= 8; usage *= 2) {
        props.usage = usage;
        ASK(create(&props));
    }
    props = on_first;
    props.win32SecurityAttributes = &props;
    ASK(create(&props));
}

/* 2^64 - 1 bytes. One machine with H200s answers at once, another was still at it after a minute. */
static void create_of_everything(void)
{
    CUmemPoolProps props = on_first;
    begin();
    props.maxSize = SIZE_MAX;
    ASK(create(&props));
}

static void destroy(void)
{
    CUdeviceptr p;
    unsigned long long value;
    begin();
    ASK(cuMemPoolDestroy(NULL));
    ASK(cuMemPoolDestroy(default_pool()));
    CUmemoryPool pool = pool_of(0);
    ASK(cuMemPoolDestroy(pool));
    say(" with memory");
    pool = pool_of(0);
    MUST(cuMemAllocFromPoolAsync(&p, BYTES, pool, NULL));
    MUST(cuStreamSynchronize(NULL));
    ASK(cuMemPoolDestroy(pool));
    ASK(cuMemsetD8_v2(p, 1, BYTES));
    ASK(cuMemFreeAsync(p, NULL));
    ASK(cuStreamSynchronize(NULL));
    (void)value;
}

static void destroy_twice(void)
{
    begin();
    ASK(cuMemPoolDestroy(destroyed()));
}

static void destroyed_attribute(void)
{
    unsigned long long value;
    begin();
    ASK(cuMemPoolGetAttribute(destroyed(), CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &value));
}

static void destroyed_alloc(void)
{
    CUdeviceptr p;
    begin();
    ASK(cuMemAllocFromPoolAsync(&p, 4, destroyed(), NULL));
}

static void access(void)
{
    CUmemAccess_flags flags;
    begin();
    CUmemoryPool pool = pool_of(0);
    say(" get");
    for (int type = 0; type <= 4; type++)
        for (int id = -1; id <= 2; id++) {
            CUmemLocation place = {type, id};
            flags = 77;
            ASK(cuMemPoolGetAccess(&flags, pool, &place));
            say(":%d", flags);
        }
    say(" set");
    for (int type = 0; type <= 4; type++)
        for (int id = -1; id <= 2; id++)
            for (int to = 0; to <= 3; to++) {
                CUmemAccessDesc desc = {{type, id}, to};
                ASK(cuMemPoolSetAccess(pool, &desc, 1));
            }
    for (int id = 0; id < 2; id++) {
        CUmemLocation place = {CU_MEM_LOCATION_TYPE_DEVICE, id};
        ASK(cuMemPoolGetAccess(&flags, pool, &place));
        say(":%d", flags);
    }
    CUmemLocation second = {CU_MEM_LOCATION_TYPE_DEVICE, 1};
    CUmemAccessDesc none = {second, CU_MEM_ACCESS_FLAGS_PROT_NONE};
    ASK(cuMemPoolSetAccess(pool, &none, 1));
    ASK(cuMemPoolGetAccess(&flags, pool, &second));
    say(":%d", flags);
    say(" wrong");
    ASK(cuMemPoolGetAccess(NULL, pool, &second));
    ASK(cuMemPoolGetAccess(&flags, NULL, &second));
    ASK(cuMemPoolGetAccess(&flags, pool, NULL));
    ASK(cuMemPoolSetAccess(pool, NULL, 1));
    ASK(cuMemPoolSetAccess(pool, NULL, 0));
    ASK(cuMemPoolSetAccess(pool, &none, 0));
    ASK(cuMemPoolSetAccess(NULL, &none, 1));
    const CUmemAccessDesc twice[2] = {none, none};
    ASK(cuMemPoolSetAccess(pool, twice, 2));
    ASK(cuMemPoolSetAccess(default_pool(), &none, 1));
}

static void access_flags(void)
{
    begin();
    CUdeviceptr p = pooled(BYTES);
    CUmemAccessDesc desc = {{CU_MEM_LOCATION_TYPE_DEVICE, 1}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUdeviceptr q = second_device(BYTES);
    ASK(cuMemcpyDtoD_v2(q, p, BYTES));
    MUST(cuMemPoolSetAccess(default_pool(), &desc, 1));
    ASK(cuMemcpyDtoD_v2(q, p, BYTES));
    begin_second();
    int value = 77;
    ASK(cuPointerGetAttribute(&value, CU_POINTER_ATTRIBUTE_ACCESS_FLAGS, p));
    say(":%d", value);
    ASK(cuMemsetD8_v2(p, 0, 4));
    ASK(cuMemFreeAsync(p, NULL));
    ASK(cuStreamSynchronize(NULL));
}

static void alloc(void)
{
    static const size_t sizes[] = {1, 511, 512, 513, 2 * MIB};
    begin();
    for (size_t i = 0; i < COUNT(sizes); i++) {
        CUdeviceptr p = UNSET;
        size_t bytes = 0;
        ASK(cuMemAllocAsync(&p, sizes[i], NULL));
        ASK(cuMemGetAddressRange_v2(NULL, &bytes, p));
        say(" %zu %d", bytes, (int)(p % 512));
    }
}

static void alloc_wrong(void)
{
    CUdeviceptr p = UNSET;
    begin();
    ASK(cuMemAllocAsync(&p, 0, NULL));
    say_is(p, 0);
    ASK(cuMemAllocAsync(NULL, 4, NULL));
    ASK(cuMemAllocAsync(NULL, 0, NULL));
    ASK(cuMemAllocAsync(&p, SIZE_MAX, NULL));
    ASK(cuMemAllocAsync(&p, (size_t)1 << 50, NULL));
    ASK(cuMemAllocAsync(&p, (size_t)1 << 40, NULL));
    say_is(p, 0);
    say(" from pool");
    p = UNSET;
    ASK(cuMemAllocFromPoolAsync(&p, 0, default_pool(), NULL));
    say_is(p, 0);
    ASK(cuMemAllocFromPoolAsync(NULL, 4, default_pool(), NULL));
    ASK(cuMemAllocFromPoolAsync(&p, 4, NULL, NULL));
    ASK(cuMemAllocFromPoolAsync(&p, SIZE_MAX, default_pool(), NULL));
    ASK(cuMemAllocFromPoolAsync(&p, (size_t)1 << 40, default_pool(), NULL));
    ASK(cuMemAllocFromPoolAsync(&p, 4, pool_of(1), NULL));
    ASK(cuMemFreeAsync(p, NULL));
}

static void alloc_to_the_most(void)
{
    CUmemoryPool pool;
    CUmemPoolProps props = on_first;
    CUdeviceptr p;
    props.maxSize = 40 * MIB;
    begin();
    MUST(cuMemPoolCreate(&pool, &props));
    ASK(cuMemAllocFromPoolAsync(&p, 30 * MIB, pool, NULL));
    ASK(cuMemAllocFromPoolAsync(&p, 20 * MIB, pool, NULL));
    ASK(cuMemAllocFromPoolAsync(&p, 80 * MIB, pool, NULL));
}

static void free_wrong(void)
{
    begin();
    CUdeviceptr p = pooled(BYTES);
    ASK(cuMemFreeAsync(0, NULL));
    ASK(cuMemFreeAsync(GARBAGE, NULL));
    ASK(cuMemFreeAsync(p + 4, NULL));
    ASK(cuMemFreeAsync(p, NULL));
    ASK(cuMemFreeAsync(p, NULL));
    ASK(cuStreamSynchronize(NULL));
    ASK(cuMemFreeAsync(p, NULL));
    ASK(cuMemFreeAsync(device(4), NULL));
    ASK(cuMemFreeAsync(pinned(4), NULL));
    ASK(cuMemFreeAsync(managed(4), NULL));
    ASK(cuMemFreeAsync(registered(4), NULL));
    ASK(cuMemFreeAsync(plain(4), NULL));
    ASK(cuMemFreeAsync(second_device(4), NULL));
    ASK(cuMemFreeHost(POINTER(pooled(4))));
}

static void free_in_another_stream(void)
{
    begin();
    CUdeviceptr p = pooled(BYTES);
    ASK(cuMemFreeAsync(p, stream()));
    p = pooled(BYTES);
    begin_second();
    ASK(cuMemFreeAsync(p, NULL));
    ASK(cuStreamSynchronize(NULL));
}

static void export_pool(void)
{
    int fd = -1;
    begin();
    CUmemoryPool pool = pool_of(0);
    for (int type = 0; type <= 8; type++)
        ASK(cuMemPoolExportToShareableHandle(&fd, pool, type, 0));
    ASK(cuMemPoolExportToShareableHandle(&fd, default_pool(), CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    ASK(cuMemPoolExportToShareableHandle(&fd, NULL, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    ASK(cuMemPoolExportToShareableHandle(NULL, pool, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    ASK(cuMemPoolExportToShareableHandle(&fd, pool, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 1));
    say(" import");
    ASK(cuMemPoolImportFromShareableHandle(&pool, POINTER(-1), CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    ASK(cuMemPoolImportFromShareableHandle(&pool, POINTER(0), CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    ASK(cuMemPoolImportFromShareableHandle(NULL, POINTER(0), CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    ASK(cuMemPoolImportFromShareableHandle(&pool, NULL, CU_MEM_HANDLE_TYPE_NONE, 0));
}

static void export_pointer(void)
{
    CUmemPoolPtrExportData data;
    CUdeviceptr p = UNSET;
    begin();
    memset(&data, 0, sizeof data);
    ASK(cuMemPoolExportPointer(&data, pooled(4)));
    ASK(cuMemPoolExportPointer(&data, device(4)));
    ASK(cuMemPoolExportPointer(&data, plain(4)));
    ASK(cuMemPoolExportPointer(&data, 0));
    ASK(cuMemPoolExportPointer(NULL, pooled(4)));
    say(" import");
    ASK(cuMemPoolImportPointer(&p, default_pool(), &data));
    ASK(cuMemPoolImportPointer(NULL, default_pool(), &data));
    ASK(cuMemPoolImportPointer(&p, default_pool(), NULL));
    ASK(cuMemPoolImportPointer(&p, NULL, &data));
}

#define CASE(name)  \
    {               \
#name, name \
    }
static const fact facts[] = {
    CASE(before_init),          CASE(without_context), CASE(without_memory),
    CASE(after_context),        CASE(after_fault),     CASE(current_pool),
    CASE(pool_of_location),     CASE(attributes),      CASE(attributes_set),
    CASE(use_of_default),       CASE(use_of_own),      CASE(use_with_threshold),
    CASE(trim_wrong),           CASE(create_types),    CASE(create_wrong),
    CASE(create_of_everything), CASE(destroy),         CASE(destroy_twice),
    CASE(destroyed_attribute),  CASE(destroyed_alloc), CASE(access),
    CASE(access_flags),         CASE(alloc),           CASE(alloc_wrong),
    CASE(alloc_to_the_most),    CASE(free_wrong),      CASE(free_in_another_stream),
    CASE(export_pool),          CASE(export_pointer),
};

FACTS_MAIN(facts)
