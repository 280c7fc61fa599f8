/* SPDX-License-Identifier: Apache-2.0 */
/* Virtual memory: addresses reserved, memory created, the one mapped to the other. Not asked: access for
 * reading alone, which softcuda refuses, and a mapping over the end of a reservation, which a real driver
 * makes. */
#include "tests/softcuda/facts/memory.h"

enum { G = 2 * MIB }; /* the granularity, which the first case records */

typedef CUmemGenericAllocationHandle handle;

static const CUmemAllocationProp on_first = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                             .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
static const CUmemAllocationProp on_second = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                              .location = {CU_MEM_LOCATION_TYPE_DEVICE, 1}};

static handle created(const CUmemAllocationProp *prop, size_t bytes)
{
    handle h;
    MUST(cuMemCreate(&h, bytes, prop, 0));
    return h;
}

static CUdeviceptr reserved(size_t bytes)
{
    CUdeviceptr p;
    MUST(cuMemAddressReserve(&p, bytes, 0, 0, 0));
    return p;
}

static CUresult set_access(CUdeviceptr p, size_t bytes, CUdevice ordinal, CUmemAccess_flags flags)
{
    const CUmemAccessDesc desc = {{CU_MEM_LOCATION_TYPE_DEVICE, ordinal}, flags};
    return cuMemSetAccess(p, bytes, &desc, 1);
}

/* Memory of the first device, mapped and within its reach. */
static CUdeviceptr mapped(size_t bytes, handle *ret_handle)
{
    CUdeviceptr p = reserved(bytes);
    *ret_handle = created(&on_first, bytes);
    MUST(cuMemMap(p, bytes, 0, *ret_handle, 0));
    MUST(set_access(p, bytes, 0, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
    return p;
}

static void granularity(void)
{
    begin();
    for (int type = 0; type <= 3; type++)
        for (int place = 0; place <= 4; place++)
            for (int id = -1; id <= 2; id++) {
                CUmemAllocationProp prop = on_first;
                size_t least = 77, best = 77;
                prop.type = type;
                prop.location = (CUmemLocation){place, id};
                CUresult a = cuMemGetAllocationGranularity(&least, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
                CUresult b =
                    cuMemGetAllocationGranularity(&best, &prop, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED);
                say(" %d:%zu:%d:%zu", a, least, b, best);
            }
    size_t out = 77;
    say(" wrong");
    ASK(cuMemGetAllocationGranularity(NULL, &on_first, 0));
    ASK(cuMemGetAllocationGranularity(&out, NULL, 0));
    ASK(cuMemGetAllocationGranularity(&out, &on_first, 2));
    CUmemAllocationProp prop = on_first;
    for (int handles = 0; handles <= 16; handles++) {
        prop.requestedHandleTypes = handles;
        ASK(cuMemGetAllocationGranularity(&out, &prop, 0));
    }
}

static void create_sizes(void)
{
    static const size_t sizes[] = {0,     1,       PAGE,  MIB,      G - 1,          G,
                                   G + 1, 3 * MIB, 3 * G, SIZE_MAX, (size_t)1 << 40};
    begin();
    for (size_t i = 0; i < COUNT(sizes); i++) {
        handle h = UNSET;
        ASK(cuMemCreate(&h, sizes[i], &on_first, 0));
        say(" %s", h == UNSET ? "unset" : h ? "handle" : "null");
        if (h != UNSET)
            ASK(cuMemRelease(h));
    }
}

static CUresult create(const CUmemAllocationProp *prop)
{
    handle h;
    CUresult result = cuMemCreate(&h, G, prop, 0);
    if (!result)
        MUST(cuMemRelease(h));
    return result;
}

/* Without memory of the host, which softcuda refuses. */
static void create_wrong(void)
{
    handle h = UNSET;
    begin();
    ASK(cuMemCreate(NULL, G, &on_first, 0));
    ASK(cuMemCreate(&h, G, NULL, 0));
    ASK(cuMemCreate(&h, G, &on_first, 1));
    say(" types");
    for (int type = 0; type <= 3; type++) {
        CUmemAllocationProp prop = on_first;
        prop.type = type;
        ASK(create(&prop));
    }
    say(" places");
    for (int place = 0; place <= 5; place++)
        for (int id = -1; id <= 2; id++) {
            CUmemAllocationProp prop = on_first;
            prop.location = (CUmemLocation){place, id};
            if (place != CU_MEM_LOCATION_TYPE_HOST && place != CU_MEM_LOCATION_TYPE_HOST_NUMA)
                ASK(create(&prop));
        }
    say(" handles");
    for (int handles = 0; handles <= 15; handles++) {
        CUmemAllocationProp prop = on_first;
        prop.requestedHandleTypes = handles;
        ASK(create(&prop));
    }
    say(" flags");
    for (int i = 0; i < 4; i++) {
        CUmemAllocationProp prop = on_first;
        prop.allocFlags.compressionType = (unsigned char)i;
        ASK(create(&prop));
        prop = on_first;
        prop.allocFlags.gpuDirectRDMACapable = (unsigned char)i;
        ASK(create(&prop));
        prop = on_first;
        prop.allocFlags.usage = (unsigned short)(1 << i >> 1);
        ASK(create(&prop));
        prop = on_first;
        prop.allocFlags.reserved[i] = 1;
        ASK(create(&prop));
    }
    CUmemAllocationProp prop = on_first;
    prop.win32HandleMetaData = &prop;
    ASK(create(&prop));
}

static void properties(void)
{
    CUmemAllocationProp got;
    begin();
    memset(&got, 0xee, sizeof got);
    handle h = created(&on_second, G);
    ASK(cuMemGetAllocationPropertiesFromHandle(&got, h));
    say(" %d %d %d %d %d %d %d", got.type, got.requestedHandleTypes, got.location.type, got.location.id,
        got.allocFlags.compressionType, got.allocFlags.gpuDirectRDMACapable, got.allocFlags.usage);
    say(" %d", got.win32HandleMetaData != NULL);
    ASK(cuMemGetAllocationPropertiesFromHandle(NULL, h));
    ASK(cuMemGetAllocationPropertiesFromHandle(&got, 0));
    CUmemAllocationProp prop = on_first;
    prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    prop.allocFlags.gpuDirectRDMACapable = 1;
    h = created(&prop, G);
    ASK(cuMemGetAllocationPropertiesFromHandle(&got, h));
    say(" %d %d", got.requestedHandleTypes, got.allocFlags.gpuDirectRDMACapable);
}

/* A handle that was released is still read by a real driver, or ends the process. */
static void release(void)
{
    begin();
    ASK(cuMemRelease(0));
    handle h = created(&on_first, G);
    ASK(cuMemRelease(h));
    ASK(cuMemRelease(h));
}

static void reserve(void)
{
    static const size_t sizes[] = {0, 1, PAGE, MIB, G - 1, G, G + 1, 3 * MIB, 64 * (size_t)G, SIZE_MAX};
    static const size_t alignments[] = {
        1, 3, 512, PAGE, G - 1, G, G + 1, 2 * G, (size_t)1 << 30, (size_t)1 << 50};
    begin();
    for (size_t i = 0; i < COUNT(sizes); i++) {
        CUdeviceptr p = UNSET;
        ASK(cuMemAddressReserve(&p, sizes[i], 0, 0, 0));
        say_is(p, 0);
        if (p != UNSET && p)
            say(" %d", (int)(p % G));
    }
    say(" alignment");
    for (size_t i = 0; i < COUNT(alignments); i++) {
        CUdeviceptr p = UNSET;
        ASK(cuMemAddressReserve(&p, G, alignments[i], 0, 0));
        if (p != UNSET)
            say(" %d", (int)(p % alignments[i] == 0));
    }
    say(" wrong");
    CUdeviceptr p = UNSET;
    ASK(cuMemAddressReserve(NULL, G, 0, 0, 0));
    for (unsigned long long bit = 1; bit <= 8; bit *= 2)
        ASK(cuMemAddressReserve(&p, G, 0, 0, bit));
}

static void reserve_at(void)
{
    CUdeviceptr p, q = UNSET;
    begin();
    p = reserved(4 * G);
    MUST(cuMemAddressFree(p, 4 * G));
    ASK(cuMemAddressReserve(&q, G, 0, p + G, 0));
    say_is(q, p + G);
    q = UNSET;
    ASK(cuMemAddressReserve(&q, G, 0, p + G, 0)); /* taken: elsewhere */
    say(" %d", q != p + G);
    ASK(cuMemAddressReserve(&q, G, 0, p + 1, 0));
    ASK(cuMemAddressReserve(&q, G, 0, PAGE, 0));
}

static void address_free(void)
{
    begin();
    CUdeviceptr p = reserved(4 * G);
    ASK(cuMemAddressFree(p, 0));
    ASK(cuMemAddressFree(p, G));
    ASK(cuMemAddressFree(p + G, 3 * G));
    ASK(cuMemAddressFree(p + G, G));
    ASK(cuMemAddressFree(p, 8 * G));
    ASK(cuMemAddressFree(0, G));
    ASK(cuMemAddressFree(GARBAGE, G));
    ASK(cuMemAddressFree(device(G), G));
    MUST(cuMemMap(p + G, G, 0, created(&on_first, G), 0));
    ASK(cuMemAddressFree(p, 4 * G));
    MUST(cuMemUnmap(p + G, G));
    ASK(cuMemAddressFree(p, 4 * G));
    ASK(cuMemAddressFree(p, 4 * G));
}

static void map(void)
{
    begin();
    CUdeviceptr p = reserved(8 * G);
    handle h = created(&on_first, 2 * G);
    say(" sizes");
    ASK(cuMemMap(p, 0, 0, h, 0));
    ASK(cuMemMap(p, 1, 0, h, 0));
    ASK(cuMemMap(p, G, 0, h, 0));
    ASK(cuMemMap(p, G, G, h, 0));
    ASK(cuMemMap(p, 3 * G, 0, h, 0));
    ASK(cuMemMap(p, 4 * G, 0, h, 0));
    ASK(cuMemMap(p + 1, 2 * G, 0, h, 0));
    ASK(cuMemMap(p, 2 * G, 0, h, 1));
    ASK(cuMemMap(p, 2 * G, 0, 0, 0));
    ASK(cuMemMap(0, 2 * G, 0, h, 0));
    ASK(cuMemMap(GARBAGE, 2 * G, 0, h, 0));
    ASK(cuMemMap(device(4 * G), 2 * G, 0, h, 0));
    ASK(cuMemMap(SIZE_MAX - G + 1, 2 * G, 0, h, 0));
}

static void map_again(void)
{
    begin();
    CUdeviceptr p = reserved(8 * G);
    handle h = created(&on_first, 2 * G), other = created(&on_second, G);
    ASK(cuMemMap(p, 2 * G, 0, h, 0));
    ASK(cuMemMap(p, 2 * G, 0, h, 0));
    ASK(cuMemMap(p + G, 2 * G, 0, h, 0));
    ASK(cuMemMap(p + G, G, 0, other, 0));
    ASK(cuMemMap(p + 2 * G, G, 0, other, 0));
    ASK(cuMemMap(p + 4 * G, 2 * G, 0, h, 0)); /* the same memory twice */
    ASK(set_access(p, 3 * G, 0, 3));
    ASK(set_access(p + 4 * G, 2 * G, 0, 3));
    ASK(cuMemsetD8_v2(p, 5, G));
    unsigned char got = 0;
    ASK(cuMemcpyDtoH_v2(&got, p + 4 * G + 7, 1));
    say(" %u", got);
    say(" unmap");
    ASK(cuMemUnmap(p, G));
    ASK(cuMemUnmap(p + 1, 2 * G));
    ASK(cuMemUnmap(p, 3 * G));
    ASK(cuMemUnmap(p, 2 * G));
    ASK(cuMemUnmap(p + 2 * G, G));
    ASK(cuMemUnmap(p, 0));
    ASK(cuMemUnmap(p, 8 * G));
    ASK(cuMemUnmap(p + 4 * G, 2 * G));
    ASK(cuMemUnmap(p + 4 * G, 2 * G));
    ASK(cuMemUnmap(0, G));
    ASK(cuMemUnmap(GARBAGE, G));
    ASK(cuMemUnmap(device(G), G));
    ASK(cuMemRelease(h));
}

static void access(void)
{
    begin();
    CUdeviceptr p = reserved(4 * G);
    handle h = created(&on_first, 2 * G);
    say(" unmapped");
    ASK(set_access(p, 4 * G, 0, 3));
    MUST(cuMemMap(p, 2 * G, 0, h, 0));
    ASK(set_access(p, 4 * G, 0, 3));
    ASK(set_access(p + 2 * G, G, 0, 3));
    say(" sizes");
    ASK(set_access(p, 0, 0, 3));
    ASK(set_access(p, 1, 0, 3));
    ASK(set_access(p, G, 0, 3));
    ASK(set_access(p + G, G, 0, 3));
    ASK(set_access(p + 1, G, 0, 3));
    ASK(set_access(0, G, 0, 3));
    ASK(set_access(device(G), G, 0, 3));
    say(" who");
    for (int place = 0; place <= 5; place++)
        for (int id = -1; id <= 2; id++) {
            const CUmemAccessDesc desc = {{place, id}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
            ASK(cuMemSetAccess(p, 2 * G, &desc, 1));
        }
    say(" flags");
    for (int flags = 0; flags <= 4; flags++)
        if (flags != CU_MEM_ACCESS_FLAGS_PROT_READ)
            ASK(set_access(p, 2 * G, 0, flags));
    say(" wrong");
    const CUmemAccessDesc desc = {{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    ASK(cuMemSetAccess(p, 2 * G, NULL, 1));
    ASK(cuMemSetAccess(p, 2 * G, &desc, 0));
    const CUmemAccessDesc twice[2] = {desc, desc};
    ASK(cuMemSetAccess(p, 2 * G, twice, 2));
}

static void say_access(CUdeviceptr p)
{
    for (int id = 0; id < 2; id++) {
        unsigned long long flags = 77;
        const CUmemLocation place = {CU_MEM_LOCATION_TYPE_DEVICE, id};
        ASK(cuMemGetAccess(&flags, &place, p));
        say(":%llu", flags);
    }
}

static void access_got(void)
{
    handle h;
    begin();
    CUdeviceptr p = reserved(4 * G);
    say_access(p);
    MUST(cuMemMap(p, 2 * G, 0, h = created(&on_first, 2 * G), 0));
    say_access(p);
    MUST(set_access(p, 2 * G, 0, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
    say_access(p);
    say_access(p + G + 5);
    say_access(p + 2 * G);
    say(" others");
    say_access(device(4));
    say_access(pinned(4));
    say_access(managed(4));
    say_access(plain(4));
    say_access(0);
    say(" wrong");
    unsigned long long flags = 77;
    CUmemLocation place = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    ASK(cuMemGetAccess(NULL, &place, p));
    ASK(cuMemGetAccess(&flags, NULL, p));
    for (int type = 0; type <= 4; type++)
        for (int id = -1; id <= 2; id++) {
            place = (CUmemLocation){type, id};
            ASK(cuMemGetAccess(&flags, &place, p));
        }
    (void)h;
}

static void use(void)
{
    handle h;
    unsigned char got = 0;
    begin();
    CUdeviceptr p = mapped(2 * G, &h), q = reserved(2 * G);
    ASK(cuMemsetD8_v2(p, 7, 2 * G));
    ASK(cuMemcpyDtoH_v2(&got, p + G + 1, 1));
    say(" %u", got);
    ASK(cuMemsetD8_v2(p, 7, 2 * G + 1));
    say(" moved");
    MUST(cuMemUnmap(p, 2 * G));
    MUST(cuMemMap(q, 2 * G, 0, h, 0));
    MUST(set_access(q, 2 * G, 0, 3));
    got = 0;
    ASK(cuMemcpyDtoH_v2(&got, q + G + 1, 1));
    say(" %u", got);
    say(" released");
    ASK(cuMemRelease(h));
    ASK(cuMemcpyDtoH_v2(&got, q + G + 1, 1));
    ASK(cuMemFree_v2(q));
    ASK(cuMemUnmap(q, 2 * G));
}

static void use_across(void)
{
    unsigned char got = 0;
    begin();
    CUdeviceptr p = reserved(2 * G);
    MUST(cuMemMap(p, G, 0, created(&on_first, G), 0));
    MUST(cuMemMap(p + G, G, 0, created(&on_first, G), 0));
    ASK(set_access(p, 2 * G, 0, 3));
    ASK(cuMemsetD8_v2(p, 7, 2 * G));
    ASK(cuMemcpyDtoH_v2(&got, p + G + 1, 1));
    say(" %u", got);
    CUdeviceptr base = UNSET;
    size_t bytes = 0;
    ASK(cuMemGetAddressRange_v2(&base, &bytes, p + G + 1));
    say(" %lld %zu", (long long)(base - p), bytes);
    ASK(cuMemUnmap(p, 2 * G));
}

static void use_unmapped(void)
{
    begin();
    ASK(cuMemsetD8_v2(reserved(G), 0, 4));
}

static void use_unmapped_copy(void)
{
    char got;
    begin();
    ASK(cuMemcpyDtoH_v2(&got, reserved(G), 1));
}

static void use_without_access(void)
{
    begin();
    CUdeviceptr p = reserved(G);
    MUST(cuMemMap(p, G, 0, created(&on_first, G), 0));
    ASK(cuMemsetD8_v2(p, 0, 4));
    ASK(cuCtxSynchronize());
}

static void use_of_second(void)
{
    unsigned char got = 0;
    begin();
    CUdeviceptr p = reserved(G);
    MUST(cuMemMap(p, G, 0, created(&on_second, G), 0));
    ASK(set_access(p, G, 0, 3));
    ASK(cuMemsetD8_v2(p, 9, G));
    ASK(cuMemcpyDtoH_v2(&got, p + 5, 1));
    say(" %u", got);
    int ordinal = 77;
    ASK(cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, p));
    say(":%d", ordinal);
}

static void retain(void)
{
    handle h, got = UNSET;
    begin();
    CUdeviceptr p = mapped(2 * G, &h);
    ASK(cuMemRetainAllocationHandle(&got, POINTER(p)));
    say_is(got, h);
    ASK(cuMemRetainAllocationHandle(&got, POINTER(p + G + 5)));
    say_is(got, h);
    ASK(cuMemRelease(h));
    ASK(cuMemRelease(h));
    ASK(cuMemRelease(h));
    say(" wrong");
    ASK(cuMemRetainAllocationHandle(NULL, POINTER(p)));
    ASK(cuMemRetainAllocationHandle(&got, POINTER(p + 2 * G)));
    ASK(cuMemRetainAllocationHandle(&got, NULL));
    ASK(cuMemRetainAllocationHandle(&got, POINTER(device(4))));
    ASK(cuMemRetainAllocationHandle(&got, POINTER(plain(4))));
    ASK(cuMemRetainAllocationHandle(&got, POINTER(reserved(G))));
}

static void pointer_attributes(void)
{
    handle h;
    CUcontext context = begin();
    CUdeviceptr p = mapped(2 * G, &h) + 8;
    for (int attribute = 1; attribute <= 21; attribute++) {
        unsigned long long value[2] = {UNSET, UNSET};
        if (attribute == CU_POINTER_ATTRIBUTE_P2P_TOKENS) /* softcuda gives none */
            continue;
        say(" %d:%d:", attribute, cuPointerGetAttribute(value, attribute, p));
        if (attribute == CU_POINTER_ATTRIBUTE_BUFFER_ID || attribute == CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID)
            say("%s", value[0] == UNSET ? "unset" : value[0] ? "id" : "0");
        else if (value[0] == UNSET)
            say("unset");
        else if (attribute == CU_POINTER_ATTRIBUTE_SYNC_MEMOPS) /* see pointer.c */
            say("machine");
        else if (value[0] >> 32 == UNSET >> 32)
            say("%d", value[0] >> 8 == UNSET >> 8 ? (int)(value[0] & 255) : (int)value[0]);
        else
            say("%s%lld",
                value[0] == ADDRESS(context) ? "context"
                : value[0] > G * 2           ? "p"
                                             : "",
                value[0] == ADDRESS(context) ? 0
                : value[0] > G * 2           ? (long long)(value[0] - p)
                                             : (long long)value[0]);
    }
}

static void range_of_reserved(void)
{
    handle h;
    size_t bytes = 0;
    CUdeviceptr base = UNSET;
    begin();
    CUdeviceptr p = mapped(2 * G, &h);
    ASK(cuMemGetAddressRange_v2(&base, &bytes, p + 5));
    say_is(base, p);
    say(" %zu", bytes);
    ASK(cuMemGetAddressRange_v2(&base, &bytes, reserved(G)));
    CUmemorytype type = 77;
    ASK(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, reserved(G)));
}

static void memory(void)
{
    size_t before, created_free, mapped_free, after;
    begin();
    CUdeviceptr p = reserved(32 * G);
    MUST(cuMemGetInfo_v2(&before, NULL));
    handle h = created(&on_first, 32 * G);
    MUST(cuMemGetInfo_v2(&created_free, NULL));
    MUST(cuMemMap(p, 32 * G, 0, h, 0));
    MUST(cuMemGetInfo_v2(&mapped_free, NULL));
    say(" %d %d", before - created_free == 32 * (size_t)G, created_free == mapped_free);
    MUST(cuMemRelease(h));
    MUST(cuMemGetInfo_v2(&after, NULL));
    say(" %d", after == mapped_free);
    MUST(cuMemUnmap(p, 32 * G));
    MUST(cuMemGetInfo_v2(&after, NULL));
    say(" %d", after == before);
}

static void export_handle(void)
{
    int fd = -1;
    handle got = UNSET;
    begin();
    handle h = created(&on_first, G);
    for (int type = 0; type <= 8; type++)
        ASK(cuMemExportToShareableHandle(&fd, h, type, 0));
    ASK(cuMemExportToShareableHandle(NULL, h, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    ASK(cuMemExportToShareableHandle(&fd, 0, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    ASK(cuMemExportToShareableHandle(&fd, h, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 1));
    say(" import");
    ASK(cuMemImportFromShareableHandle(&got, POINTER(-1), CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
    ASK(cuMemImportFromShareableHandle(&got, POINTER(0), CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
    ASK(cuMemImportFromShareableHandle(NULL, POINTER(0), CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
    ASK(cuMemImportFromShareableHandle(&got, POINTER(0), CU_MEM_HANDLE_TYPE_NONE));
}

static void export_right(void)
{
    int fd = -1;
    handle got = UNSET;
    CUmemAllocationProp prop = on_first;
    prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    begin();
    handle h = created(&prop, G);
    ASK(cuMemExportToShareableHandle(&fd, h, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    say(" %d", fd >= 0);
    ASK(cuMemImportFromShareableHandle(&got, POINTER(fd), CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
    say_is(got, h);
}

/* ---- the order of calls ---- */

static void each_call(CUdeviceptr p, handle h)
{
    CUdeviceptr out = UNSET;
    handle made = UNSET;
    size_t bytes;
    unsigned long long flags;
    int fd;
    CUmemAllocationProp got;
    const CUmemLocation place = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    ASK(cuMemGetAllocationGranularity(&bytes, &on_first, 0));
    ASK(cuMemAddressReserve(&out, G, 0, 0, 0));
    ASK(cuMemAddressReserve(NULL, 0, 0, 0, 0));
    ASK(cuMemCreate(&made, G, &on_first, 0));
    ASK(cuMemCreate(NULL, 0, NULL, 0));
    ASK(cuMemMap(out, G, 0, made, 0));
    ASK(cuMemMap(0, 0, 0, 0, 0));
    ASK(set_access(out, G, 0, 3));
    ASK(cuMemSetAccess(0, 0, NULL, 0));
    ASK(cuMemGetAccess(&flags, &place, p));
    ASK(cuMemGetAccess(NULL, NULL, 0));
    ASK(cuMemRetainAllocationHandle(&made, POINTER(p)));
    ASK(cuMemRetainAllocationHandle(NULL, NULL));
    ASK(cuMemGetAllocationPropertiesFromHandle(&got, h));
    ASK(cuMemGetAllocationPropertiesFromHandle(NULL, 0));
    ASK(cuMemExportToShareableHandle(&fd, h, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    ASK(cuMemUnmap(p, G));
    ASK(cuMemUnmap(0, 0));
    ASK(cuMemRelease(h));
    ASK(cuMemRelease(0));
    ASK(cuMemAddressFree(p, G));
    ASK(cuMemAddressFree(0, 0));
}

static void before_init(void)
{
    each_call(0, 0);
}

static void without_context(void)
{
    handle h;
    begin();
    CUdeviceptr p = mapped(G, &h);
    MUST(cuCtxSetCurrent(NULL));
    each_call(p, h);
}

static void without_memory(void)
{
    MUST(cuInit(0));
    each_call(0, 0);
}

static void after_context(void)
{
    handle h;
    CUcontext context;
    MUST(cuInit(0));
    MUST(cuCtxCreate_v2(&context, 0, 0));
    CUdeviceptr p = mapped(G, &h);
    MUST(cuCtxPushCurrent_v2(context));
    MUST(cuCtxDestroy_v2(context));
    each_call(p, h);
}

static void after_fault(void)
{
    handle h;
    begin();
    CUdeviceptr p = mapped(G, &h);
    fault_here();
    each_call(p, h);
}

#define CASE(name)  \
    {               \
#name, name \
    }
static const fact facts[] = {
    CASE(granularity),
    CASE(create_sizes),
    CASE(create_wrong),
    CASE(properties),
    CASE(release),
    CASE(reserve),
    CASE(reserve_at),
    CASE(address_free),
    CASE(map),
    CASE(map_again),
    CASE(access),
    CASE(access_got),
    CASE(use),
    CASE(use_across),
    CASE(use_unmapped),
    CASE(use_unmapped_copy),
    CASE(use_without_access),
    CASE(use_of_second),
    CASE(retain),
    CASE(pointer_attributes),
    CASE(range_of_reserved),
    CASE(memory),
    CASE(export_handle),
    CASE(export_right),
    CASE(before_init),
    CASE(without_context),
    CASE(without_memory),
    CASE(after_context),
    CASE(after_fault),
};

FACTS_MAIN(facts)
