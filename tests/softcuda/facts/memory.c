/* SPDX-License-Identifier: Apache-2.0 */
/* Allocations of every kind: device, pitched, pinned, registered, managed. */
#include <sys/mman.h>

#include "tests/softcuda/facts/memory.h"

enum { BYTES = 1000 };

/* ---- the order of calls ---- */

/* Each call once, on memory that was made before. */
static void each_call(CUdeviceptr p, CUdeviceptr host, CUdeviceptr of_registered, CUdeviceptr of_managed)
{
    CUdeviceptr out = UNSET;
    size_t bytes = 0;
    void *start = NULL;
    unsigned flags = 0;
    int number = 0;
    static char fresh[2 * PAGE];
    const CUmemLocation here = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    say(" alloc");
    ASK(cuMemAlloc_v2(&out, BYTES));
    ASK(cuMemAlloc_v2(NULL, BYTES));
    ASK(cuMemAlloc_v2(&out, 0));
    ASK(cuMemAllocPitch_v2(&out, &bytes, 100, 10, 4));
    ASK(cuMemAllocPitch_v2(NULL, NULL, 0, 0, 0));
    ASK(cuMemGetInfo_v2(&bytes, &bytes));
    ASK(cuMemGetInfo_v2(NULL, NULL));
    ASK(cuMemGetAddressRange_v2(&out, &bytes, p));
    ASK(cuMemGetAddressRange_v2(NULL, NULL, 0));
    say(" host");
    ASK(cuMemHostAlloc(&start, BYTES, 0));
    ASK(cuMemHostAlloc(NULL, 0, 0));
    ASK(cuMemHostAlloc(&start, BYTES, 99));
    ASK(cuMemAllocHost_v2(&start, BYTES));
    ASK(cuMemHostGetFlags(&flags, POINTER(host)));
    ASK(cuMemHostGetFlags(NULL, NULL));
    ASK(cuMemHostGetDevicePointer_v2(&out, POINTER(host), 0));
    ASK(cuMemHostGetDevicePointer_v2(NULL, NULL, 1));
    ASK(cuMemHostRegister_v2(fresh, BYTES, 0));
    ASK(cuMemHostRegister_v2(NULL, 0, 99));
    ASK(cuMemHostUnregister(POINTER(of_registered)));
    ASK(cuMemHostUnregister(NULL));
    say(" managed");
    ASK(cuMemAllocManaged(&out, BYTES, CU_MEM_ATTACH_GLOBAL));
    ASK(cuMemAllocManaged(NULL, 0, 0));
    ASK(cuMemAdvise(of_managed, BYTES, CU_MEM_ADVISE_SET_READ_MOSTLY, 0));
    ASK(cuMemAdvise(0, 0, 0, 0));
    ASK(cuMemAdvise_v2(of_managed, BYTES, CU_MEM_ADVISE_SET_READ_MOSTLY, here));
    ASK(cuMemPrefetchAsync(of_managed, BYTES, 0, NULL));
    ASK(cuMemPrefetchAsync_v2(of_managed, BYTES, here, 0, NULL));
    ASK(cuMemPrefetchAsync_v2(0, 0, here, 1, NULL));
    ASK(cuMemRangeGetAttribute(&number, 4, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, of_managed, BYTES));
    ASK(cuMemRangeGetAttribute(NULL, 0, 0, 0, 0));
    ASK(cuStreamAttachMemAsync(NULL, of_managed, 0, CU_MEM_ATTACH_HOST));
    say(" free");
    ASK(cuMemFree_v2(0));
    ASK(cuMemFree_v2(GARBAGE));
    ASK(cuMemFree_v2(p));
    ASK(cuMemFree_v2(of_managed));
    ASK(cuMemFreeHost(NULL));
    ASK(cuMemFreeHost(POINTER(GARBAGE)));
    ASK(cuMemFreeHost(POINTER(host)));
}

static void before_init(void)
{
    each_call(GARBAGE, GARBAGE, GARBAGE, GARBAGE);
}

static void without_context(void)
{
    begin();
    CUdeviceptr p = device(BYTES), host = pinned(BYTES), r = registered(BYTES), m = managed(BYTES);
    MUST(cuCtxSetCurrent(NULL));
    each_call(p, host, r, m);
}

static void without_memory(void)
{
    MUST(cuInit(0));
    each_call(GARBAGE, GARBAGE, GARBAGE, GARBAGE);
}

static void after_context(void)
{
    CUcontext context;
    MUST(cuInit(0));
    MUST(cuCtxCreate_v2(&context, 0, 0));
    CUdeviceptr p = device(BYTES), host = pinned(BYTES), r = registered(BYTES), m = managed(BYTES);
    MUST(cuCtxDestroy_v2(context));
    each_call(p, host, r, m);
}

static void after_fault(void)
{
    begin();
    CUdeviceptr p = device(BYTES), host = pinned(BYTES), r = registered(BYTES), m = managed(BYTES);
    fault_here();
    each_call(p, host, r, m);
    MUST(cuCtxSetCurrent(NULL));
    say(" without context");
    each_call(p, host, r, m);
}

/* ---- device memory ---- */

static void alloc_right(void)
{
    static const size_t sizes[] = {1, 255, 256, 511, 512, 513, 2 * MIB - 1, 2 * MIB, 2 * MIB + 1, 5 * MIB};
    begin();
    for (size_t i = 0; i < COUNT(sizes); i++) {
        CUdeviceptr p = UNSET, start = UNSET;
        size_t bytes = 0;
        ASK(cuMemAlloc_v2(&p, sizes[i]));
        say(" %% %d", (int)(p % 512));
        ASK(cuMemGetAddressRange_v2(&start, &bytes, p + sizes[i] - 1));
        say_is(start, p);
        say(" %zu", bytes);
    }
}

static void alloc_wrong(void)
{
    static const size_t sizes[] = {
        0, SIZE_MAX, SIZE_MAX - 511, (size_t)1 << 63, (size_t)1 << 50, (size_t)1 << 40};
    begin();
    ASK(cuMemAlloc_v2(NULL, 4));
    for (size_t i = 0; i < COUNT(sizes); i++) {
        CUdeviceptr p = UNSET;
        ASK(cuMemAlloc_v2(&p, sizes[i]));
        say_is(p, 0);
    }
}

static void alloc_all(void)
{
    size_t free_bytes, total;
    CUdeviceptr p = UNSET;
    begin();
    MUST(cuMemGetInfo_v2(&free_bytes, &total));
    ASK(cuMemAlloc_v2(&p, total + 1));
    ASK(cuMemAlloc_v2(&p, free_bytes + 2 * MIB));
    ASK(cuMemAlloc_v2(&p, free_bytes / 2));
    ASK(cuMemAlloc_v2(&p, free_bytes / 2 + 64 * MIB));
}

static void info(void)
{
    enum { BIG = 64 * MIB };
    size_t before, during, after, total = 0, again = 0;
    begin();
    ASK(cuMemGetInfo_v2(&before, &total));
    CUdeviceptr p = device(BIG);
    ASK(cuMemGetInfo_v2(&during, &again));
    MUST(cuMemFree_v2(p));
    ASK(cuMemGetInfo_v2(&after, NULL));
    ASK(cuMemGetInfo_v2(NULL, &again));
    ASK(cuMemGetInfo_v2(NULL, NULL));
    say(" %d %d %d %d", before - during == BIG, before == after, total == again, before <= total);
    MUST(cuDeviceTotalMem_v2(&again, 0));
    say(" %d", total == again);
    MUST(cuMemAllocHost_v2((void **)&p, BIG));
    MUST(cuMemGetInfo_v2(&during, NULL));
    say(" host %d", before == during);
    p = managed(BIG);
    MUST(cuMemGetInfo_v2(&during, NULL));
    say(" managed %d", before == during);
    MUST(cuMemsetD8_v2(p, 0, BIG));
    p = second_device(BIG);
    CUcontext second = begin_second();
    MUST(cuMemGetInfo_v2(&before, NULL));
    (void)second;
    MUST(cuMemFree_v2(p));
    MUST(cuMemGetInfo_v2(&after, NULL));
    say(" second %d", after - before == BIG);
}

static void free_wrong(void)
{
    begin();
    CUdeviceptr p = device(BYTES);
    int local = 0;
    ASK(cuMemFree_v2(0));
    ASK(cuMemFree_v2(1));
    ASK(cuMemFree_v2(GARBAGE));
    ASK(cuMemFree_v2(p + 1));
    ASK(cuMemFree_v2(p + 512));
    ASK(cuMemFree_v2(p));
    ASK(cuMemFree_v2(p));
    ASK(cuMemFree_v2(ADDRESS(&local)));
    ASK(cuMemFree_v2(plain(BYTES)));
    ASK(cuMemFree_v2(registered(BYTES)));
    ASK(cuMemFree_v2(~0ull));
    say(" pinned");
    p = pinned(BYTES);
    ASK(cuMemFree_v2(p));
    ASK(cuMemFreeHost(POINTER(p)));
    say(" managed");
    p = managed(BYTES);
    ASK(cuMemFree_v2(p + 4));
    ASK(cuMemFree_v2(p));
    ASK(cuMemFree_v2(p));
    say(" pooled");
    p = pooled(BYTES);
    ASK(cuMemFree_v2(p + 4));
    ASK(cuMemFree_v2(p));
    ASK(cuMemFree_v2(p));
}

static void free_elsewhere(void)
{
    begin();
    CUdeviceptr p = device(BYTES), host = pinned(BYTES), r = registered(BYTES), m = managed(BYTES);
    begin_second();
    ASK(cuMemFree_v2(p));
    ASK(cuMemFree_v2(m));
    ASK(cuMemFreeHost(POINTER(host)));
    ASK(cuMemHostUnregister(POINTER(r)));
}

static void free_of_variable(void)
{
    CUmodule module;
    CUdeviceptr p, start = UNSET;
    size_t bytes;
    begin();
    MUST(cuModuleLoadData(&module, module_text));
    MUST(cuModuleGetGlobal_v2(&p, &bytes, module, "words"));
    ASK(cuMemGetAddressRange_v2(&start, &bytes, p + 8));
    say_is(start, p);
    say(" %zu", bytes);
    ASK(cuMemFree_v2(p));
}

static void pitch_right(void)
{
    static const size_t widths[] = {1, 4, 511, 512, 513, 1024, 5000};
    begin();
    for (size_t i = 0; i < COUNT(widths); i++) {
        CUdeviceptr p = UNSET;
        size_t pitch = 0, bytes = 0;
        ASK(cuMemAllocPitch_v2(&p, &pitch, widths[i], 3, i % 3 == 0 ? 4 : i % 3 == 1 ? 8 : 16));
        ASK(cuMemGetAddressRange_v2(NULL, &bytes, p));
        say(" %zu %zu %d", pitch, bytes, (int)(p % 512));
    }
}

static void pitch_wrong(void)
{
    static const unsigned elements[] = {0, 1, 2, 3, 5, 12, 32, 64};
    CUdeviceptr p = UNSET;
    size_t pitch = UNSET;
    begin();
    ASK(cuMemAllocPitch_v2(NULL, &pitch, 4, 4, 4));
    ASK(cuMemAllocPitch_v2(&p, NULL, 4, 4, 4));
    ASK(cuMemAllocPitch_v2(&p, &pitch, 0, 4, 4));
    say_is(p, 0);
    ASK(cuMemAllocPitch_v2(&p, &pitch, 4, 0, 4));
    say_is(p, 0);
    ASK(cuMemAllocPitch_v2(&p, &pitch, SIZE_MAX, 1, 4));
    ASK(cuMemAllocPitch_v2(&p, &pitch, SIZE_MAX / 2, 4, 4));
    ASK(cuMemAllocPitch_v2(&p, &pitch, (size_t)1 << 32, 1, 4));
    ASK(cuMemAllocPitch_v2(&p, &pitch, (size_t)1 << 31, 1, 4));
    ASK(cuMemAllocPitch_v2(&p, &pitch, ((size_t)1 << 31) - 512, 1, 4));
    ASK(cuMemAllocPitch_v2(&p, &pitch, 512, (size_t)1 << 40, 4));
    say(" elements");
    for (size_t i = 0; i < COUNT(elements); i++)
        ASK(cuMemAllocPitch_v2(&p, &pitch, 100, 4, elements[i]));
}

static void say_range(CUdeviceptr asked, CUdeviceptr start)
{
    CUdeviceptr base = UNSET;
    size_t bytes = 77;
    ASK(cuMemGetAddressRange_v2(&base, &bytes, asked));
    say_is(base, start);
    say(" %zu", bytes);
}

static void address_range(void)
{
    CUdeviceptr p;
    size_t bytes;
    begin();
    p = device(BYTES);
    ASK(cuMemGetAddressRange_v2(NULL, NULL, p));
    ASK(cuMemGetAddressRange_v2(NULL, &bytes, p));
    ASK(cuMemGetAddressRange_v2(NULL, NULL, 0));
    say_range(p + BYTES - 1, p);
    say_range(p + BYTES, p);
    say_range(p - 1, p);
    say_range(0, 0);
    say_range(GARBAGE, 0);
    say(" pinned");
    p = pinned(BYTES);
    say_range(p, p);
    say_range(p + 10, p);
    say_range(p + BYTES, p);
    say(" registered");
    p = registered(BYTES);
    say_range(p, p);
    say_range(p + 10, p);
    say_range(p + BYTES, p);
    say(" managed");
    p = managed(BYTES);
    say_range(p, p);
    say_range(p + 10, p);
    say(" plain");
    say_range(plain(BYTES), 0);
    say(" pooled");
    p = pooled(BYTES);
    say_range(p, p);
    say_range(p + 10, p);
    say(" second");
    p = second_device(BYTES);
    say_range(p + 1, p);
    say(" freed");
    p = device_freed(BYTES);
    say_range(p, p);
}

/* ---- host memory ---- */

static void host_flags(void)
{
    static const unsigned asked[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 16, 0x80000000};
    begin();
    for (size_t i = 0; i < COUNT(asked); i++) {
        void *start = POINTER(UNSET);
        CUdeviceptr p = UNSET;
        unsigned flags = 77;
        CUresult result = cuMemHostAlloc(&start, BYTES, asked[i]);
        say(" %d", result);
        say_is(ADDRESS(start), 0);
        if (result)
            continue;
        ASK(cuMemHostGetFlags(&flags, start));
        say(" %u", flags);
        ASK(cuMemHostGetDevicePointer_v2(&p, start, 0));
        say_is(p, ADDRESS(start));
        say(" %d", (int)(ADDRESS(start) % 512));
    }
}

static void host_alloc_wrong(void)
{
    void *start = POINTER(UNSET);
    begin();
    ASK(cuMemHostAlloc(NULL, 4, 0));
    ASK(cuMemHostAlloc(&start, 0, 0));
    say_is(ADDRESS(start), 0);
    start = POINTER(UNSET);
    ASK(cuMemHostAlloc(&start, 0, 8));
    ASK(cuMemHostAlloc(&start, SIZE_MAX, 0));
    say_is(ADDRESS(start), 0);
    ASK(cuMemHostAlloc(&start, (size_t)1 << 62, 0));
    ASK(cuMemHostAlloc(&start, (size_t)1 << 46, 0));
    say_is(ADDRESS(start), 0);
    ASK(cuMemAllocHost_v2(NULL, 4));
    start = POINTER(UNSET);
    ASK(cuMemAllocHost_v2(&start, 0));
    say_is(ADDRESS(start), 0);
}

static void host_free_wrong(void)
{
    int local = 0;
    begin();
    CUdeviceptr p = pinned(BYTES);
    ASK(cuMemFreeHost(NULL));
    ASK(cuMemFreeHost(POINTER(1)));
    ASK(cuMemFreeHost(POINTER(GARBAGE)));
    ASK(cuMemFreeHost(POINTER(p + 4)));
    ASK(cuMemFreeHost(POINTER(p)));
    ASK(cuMemFreeHost(POINTER(p)));
    ASK(cuMemFreeHost(POINTER(plain(4))));
    ASK(cuMemFreeHost(POINTER(registered(4))));
    ASK(cuMemFreeHost(POINTER(device(4))));
    ASK(cuMemFreeHost(POINTER(managed(4))));
    ASK(cuMemFreeHost(&local));
}

static void say_host(CUdeviceptr host)
{
    unsigned flags = 77;
    CUdeviceptr p = UNSET;
    ASK(cuMemHostGetFlags(&flags, POINTER(host)));
    say(" %u", flags);
    ASK(cuMemHostGetDevicePointer_v2(&p, POINTER(host), 0));
    say_is(p, host);
    say(",");
}

static void host_questions(void)
{
    CUdeviceptr out = UNSET;
    begin();
    CUdeviceptr p = pinned(BYTES);
    ASK(cuMemHostGetFlags(NULL, POINTER(p)));
    ASK(cuMemHostGetDevicePointer_v2(NULL, POINTER(p), 0));
    ASK(cuMemHostGetDevicePointer_v2(&out, POINTER(p), 1));
    say_is(out, p);
    ASK(cuMemHostGetDevicePointer_v2(&out, POINTER(p), 2));
    say_host(p);
    say_host(p + 7);
    say_host(p + BYTES);
    say_host(p - 1);
    say_host(0);
    say_host(plain(4));
    say_host(device(4));
    say_host(managed(4));
    say_host(pooled(4));
    p = registered(BYTES);
    say_host(p);
    say_host(p + 7);
    say_host(p + BYTES);
    p = pinned(4);
    MUST(cuMemFreeHost(POINTER(p)));
    say_host(p);
    p = registered(4);
    MUST(cuMemHostUnregister(POINTER(p)));
    say_host(p);
}

static void register_flags(void)
{
    begin();
    for (unsigned asked = 0; asked <= 16; asked++) {
        unsigned flags = 77;
        CUdeviceptr p = plain(2 * PAGE), out = UNSET;
        CUresult result = cuMemHostRegister_v2(POINTER(p), 2 * PAGE, asked);
        say(" %d", result);
        if (result)
            continue;
        ASK(cuMemHostGetFlags(&flags, POINTER(p)));
        say(" %u", flags);
        ASK(cuMemHostGetDevicePointer_v2(&out, POINTER(p), 0));
        say_is(out, p);
        ASK(cuMemHostUnregister(POINTER(p)));
        say(",");
    }
    ASK(cuMemHostRegister_v2(POINTER(plain(4)), 4, 0x80000000));
}

static void register_wrong(void)
{
    begin();
    CUdeviceptr p = plain(4 * PAGE);
    ASK(cuMemHostRegister_v2(NULL, 4, 0));
    ASK(cuMemHostRegister_v2(POINTER(p), 0, 0));
    ASK(cuMemHostRegister_v2(NULL, 0, 0));
    ASK(cuMemHostRegister_v2(POINTER(p), SIZE_MAX, 0));
    ASK(cuMemHostRegister_v2(POINTER(p + 1), 3, 0));
    ASK(cuMemHostUnregister(POINTER(p)));
    ASK(cuMemHostUnregister(POINTER(p + 1)));
    ASK(cuMemHostUnregister(POINTER(p + 1)));
    ASK(cuMemHostUnregister(NULL));
    ASK(cuMemHostUnregister(POINTER(p)));
    ASK(cuMemHostUnregister(POINTER(GARBAGE)));
    say(" device");
    p = device(BYTES);
    ASK(cuMemHostRegister_v2(POINTER(p), BYTES, 0));
    ASK(cuMemHostUnregister(POINTER(p)));
    say(" pinned");
    p = pinned(4 * PAGE);
    ASK(cuMemHostRegister_v2(POINTER(p), BYTES, 0));
    ASK(cuMemHostRegister_v2(POINTER(p + PAGE), BYTES, 0));
    ASK(cuMemHostUnregister(POINTER(p)));
    ASK(cuMemHostUnregister(POINTER(p + PAGE)));
    say(" managed");
    p = managed(4 * PAGE);
    ASK(cuMemHostRegister_v2(POINTER(p), BYTES, 0));
    ASK(cuMemHostUnregister(POINTER(p)));
}

static void register_overlap(void)
{
    begin();
    CUdeviceptr p = plain(16 * PAGE);
    MUST(cuMemHostRegister_v2(POINTER(p + 4 * PAGE), 4 * PAGE, 0));
    ASK(cuMemHostRegister_v2(POINTER(p + 4 * PAGE), 4 * PAGE, 0));
    ASK(cuMemHostRegister_v2(POINTER(p + 5 * PAGE), PAGE, 0));
    ASK(cuMemHostRegister_v2(POINTER(p + 3 * PAGE), 2 * PAGE, 0));
    ASK(cuMemHostRegister_v2(POINTER(p + 7 * PAGE), 2 * PAGE, 0));
    ASK(cuMemHostRegister_v2(POINTER(p), 16 * PAGE, 0));
    ASK(cuMemHostRegister_v2(POINTER(p + 3 * PAGE), PAGE, 0));
    ASK(cuMemHostRegister_v2(POINTER(p + 8 * PAGE), PAGE, 0));
    say(" unregister");
    ASK(cuMemHostUnregister(POINTER(p + 5 * PAGE)));
    ASK(cuMemHostUnregister(POINTER(p + 4 * PAGE + 8)));
    ASK(cuMemHostUnregister(POINTER(p + 4 * PAGE)));
    ASK(cuMemHostUnregister(POINTER(p + 4 * PAGE)));
    say(" within a page");
    ASK(cuMemHostRegister_v2(POINTER(p + 10 * PAGE + 8), 16, 0));
    ASK(cuMemHostRegister_v2(POINTER(p + 10 * PAGE + 100), 16, 0));
    ASK(cuMemHostRegister_v2(POINTER(p + 10 * PAGE + 16), 16, 0));
    ASK(cuMemHostUnregister(POINTER(p + 10 * PAGE + 100)));
    ASK(cuMemHostUnregister(POINTER(p + 10 * PAGE + 8)));
}

static void register_of_pages(void)
{
    begin();
    char *pages = mmap(NULL, 8 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(pages + PAGE, PAGE, PROT_READ);
    mprotect(pages + 3 * PAGE, PAGE, PROT_NONE);
    munmap(pages + 5 * PAGE, PAGE);
    say(" read");
    ASK(cuMemHostRegister_v2(pages + PAGE, PAGE, 0));
    ASK(cuMemHostRegister_v2(pages + PAGE, PAGE, CU_MEMHOSTREGISTER_READ_ONLY));
    say(" none");
    ASK(cuMemHostRegister_v2(pages + 3 * PAGE, PAGE, 0));
    ASK(cuMemHostRegister_v2(pages + 3 * PAGE, PAGE, CU_MEMHOSTREGISTER_READ_ONLY));
    say(" unmapped");
    ASK(cuMemHostRegister_v2(pages + 5 * PAGE, PAGE, 0));
    ASK(cuMemHostRegister_v2(pages + 4 * PAGE, 2 * PAGE, 0));
    ASK(cuMemHostRegister_v2(POINTER(PAGE), PAGE, 0));
    say(" stack");
    char local[64];
    ASK(cuMemHostRegister_v2(local, sizeof local, 0));
    ASK(cuMemHostUnregister(local));
}

/* ---- managed memory ---- */

static void managed_alloc(void)
{
    static const unsigned flags[] = {0, 1, 2, 3, 4, 5, 8, 16};
    CUdeviceptr p;
    begin();
    for (size_t i = 0; i < COUNT(flags); i++) {
        p = UNSET;
        ASK(cuMemAllocManaged(&p, BYTES, flags[i]));
        say_is(p, 0);
    }
    p = UNSET;
    ASK(cuMemAllocManaged(NULL, BYTES, 1));
    ASK(cuMemAllocManaged(&p, 0, 1));
    say_is(p, 0);
    ASK(cuMemAllocManaged(&p, SIZE_MAX, 1));
    ASK(cuMemAllocManaged(&p, (size_t)1 << 50, 1));
    p = managed(BYTES);
    say(" %% %d", (int)(p % 512));
    *(int *)POINTER(p) = 7;
    ASK(cuMemsetD32_v2(p + 4, 9, 1));
    say(" %d %d", *(int *)POINTER(p), *(int *)POINTER(p + 4));
}

static void managed_prefetch(void)
{
    static const CUdevice devices[] = {0, 1, 2, -1, -2, 99};
    begin();
    CUdeviceptr p = managed(4 * MIB);
    for (size_t i = 0; i < COUNT(devices); i++)
        ASK(cuMemPrefetchAsync(p, 4 * MIB, devices[i], NULL));
    say(" ranges");
    ASK(cuMemPrefetchAsync(p, 0, 0, NULL));
    ASK(cuMemPrefetchAsync(p + 100, 100, 0, NULL));
    ASK(cuMemPrefetchAsync(p, 4 * MIB + 1, 0, NULL));
    ASK(cuMemPrefetchAsync(p, 4 * MIB + PAGE, 0, NULL));
    ASK(cuMemPrefetchAsync(0, 4, 0, NULL));
    ASK(cuMemPrefetchAsync(device(4), 4, 0, NULL));
    ASK(cuMemPrefetchAsync(pinned(4), 4, 0, NULL));
    ASK(cuMemPrefetchAsync(registered(4), 4, 0, NULL));
    ASK(cuMemPrefetchAsync(plain(PAGE), PAGE, 0, NULL));
    ASK(cuMemPrefetchAsync(GARBAGE, 4, 0, NULL));
    say(" streams");
    ASK(cuMemPrefetchAsync(p, 4, 0, stream()));
    ASK(cuMemPrefetchAsync(p, 4, 0, CU_STREAM_PER_THREAD));
    ASK(cuCtxSynchronize());
}

static void managed_prefetch_v2(void)
{
    begin();
    CUdeviceptr p = managed(4 * MIB);
    for (int type = 0; type <= 5; type++)
        for (int id = -1; id <= 2; id++)
            ASK(cuMemPrefetchAsync_v2(p, 4 * MIB, (CUmemLocation){type, id}, 0, NULL));
    say(" flags");
    ASK(cuMemPrefetchAsync_v2(p, 4 * MIB, (CUmemLocation){CU_MEM_LOCATION_TYPE_DEVICE, 0}, 1, NULL));
    say(" ranges");
    const CUmemLocation here = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    ASK(cuMemPrefetchAsync_v2(p, 0, here, 0, NULL));
    ASK(cuMemPrefetchAsync_v2(p, 4 * MIB + 1, here, 0, NULL));
    ASK(cuMemPrefetchAsync_v2(device(4), 4, here, 0, NULL));
    ASK(cuMemPrefetchAsync_v2(plain(PAGE), PAGE, here, 0, NULL));
    ASK(cuCtxSynchronize());
}

static void managed_advise(void)
{
    static const CUdevice devices[] = {0, 1, 2, -1, -2};
    begin();
    CUdeviceptr p = managed(4 * MIB);
    for (int advice = 0; advice <= 7; advice++) {
        say(" %d:", advice);
        for (size_t i = 0; i < COUNT(devices); i++)
            ASK(cuMemAdvise(p, 4 * MIB, advice, devices[i]));
    }
    say(" ranges");
    ASK(cuMemAdvise(p, 0, 1, 0));
    ASK(cuMemAdvise(p + 100, 100, 1, 0));
    ASK(cuMemAdvise(p, 4 * MIB + 1, 1, 0));
    ASK(cuMemAdvise(p, 4 * MIB + PAGE, 1, 0));
    ASK(cuMemAdvise(0, 4, 1, 0));
    ASK(cuMemAdvise(device(4), 4, 1, 0));
    ASK(cuMemAdvise(pinned(4), 4, 1, 0));
    ASK(cuMemAdvise(registered(4), 4, 1, 0));
    ASK(cuMemAdvise(plain(PAGE), PAGE, 1, 0));
}

static void managed_advise_v2(void)
{
    begin();
    CUdeviceptr p = managed(4 * MIB);
    for (int advice = 1; advice <= 6; advice++) {
        say(" %d:", advice);
        for (int type = 0; type <= 5; type++)
            for (int id = -1; id <= 2; id++)
                ASK(cuMemAdvise_v2(p, 4 * MIB, advice, (CUmemLocation){type, id}));
    }
}

static void say_range_attributes(CUdeviceptr p, size_t bytes)
{
    for (int attribute = 0; attribute <= 9; attribute++) {
        int value = 77;
        say(" %d", cuMemRangeGetAttribute(&value, 4, attribute, p, bytes));
        say(":%d", value);
    }
    say(",");
}

static void managed_attributes(void)
{
    begin();
    CUdeviceptr p = managed(4 * MIB);
    say_range_attributes(p, 4 * MIB);
    MUST(cuMemAdvise(p, 2 * MIB, CU_MEM_ADVISE_SET_READ_MOSTLY, 0));
    MUST(cuMemAdvise(p, 2 * MIB, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, 1));
    MUST(cuMemAdvise(p, 2 * MIB, CU_MEM_ADVISE_SET_ACCESSED_BY, 0));
    MUST(cuMemPrefetchAsync(p, 2 * MIB, 0, NULL));
    MUST(cuCtxSynchronize());
    say_range_attributes(p, 2 * MIB);
    say_range_attributes(p + 100, 1);
    say_range_attributes(p, 4 * MIB);
    say_range_attributes(p + 2 * MIB, 2 * MIB);
    MUST(cuMemAdvise(p, 4 * MIB, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, CU_DEVICE_CPU));
    MUST(cuMemAdvise(p, 4 * MIB, CU_MEM_ADVISE_SET_ACCESSED_BY, CU_DEVICE_CPU));
    MUST(cuMemPrefetchAsync(p, 4 * MIB, CU_DEVICE_CPU, NULL));
    say_range_attributes(p, 4 * MIB);
    MUST(cuMemAdvise(p, 4 * MIB, CU_MEM_ADVISE_UNSET_READ_MOSTLY, 0));
    MUST(cuMemAdvise(p, 4 * MIB, CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION, 0));
    MUST(cuMemAdvise(p, 4 * MIB, CU_MEM_ADVISE_UNSET_ACCESSED_BY, 0));
    MUST(cuMemAdvise(p, 4 * MIB, CU_MEM_ADVISE_UNSET_ACCESSED_BY, CU_DEVICE_CPU));
    say_range_attributes(p, 4 * MIB);
}

static void managed_attributes_wrong(void)
{
    int values[4] = {77, 77, 77, 77};
    begin();
    CUdeviceptr p = managed(4 * MIB);
    say(" sizes");
    for (size_t bytes = 0; bytes <= 16; bytes += 2) {
        ASK(cuMemRangeGetAttribute(values, bytes, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, p, 4 * MIB));
        ASK(cuMemRangeGetAttribute(values, bytes, CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY, p, 4 * MIB));
        say(" %d %d %d %d,", values[0], values[1], values[2], values[3]);
    }
    say(" ranges");
    ASK(cuMemRangeGetAttribute(NULL, 4, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, p, 4 * MIB));
    ASK(cuMemRangeGetAttribute(values, 4, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, p, 0));
    ASK(cuMemRangeGetAttribute(values, 4, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, p, 4 * MIB + 1));
    ASK(cuMemRangeGetAttribute(values, 4, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, 0, 4));
    ASK(cuMemRangeGetAttribute(values, 4, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, device(4), 4));
    ASK(cuMemRangeGetAttribute(values, 4, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, pinned(4), 4));
    ASK(cuMemRangeGetAttribute(values, 4, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, plain(4), 4));
}

static void managed_attributes_many(void)
{
    int first = 77, second[2] = {77, 77};
    void *data[2] = {&first, second};
    size_t sizes[2] = {4, 8};
    CUmem_range_attribute which[2] = {CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY};
    begin();
    CUdeviceptr p = managed(4 * MIB);
    MUST(cuMemAdvise(p, 4 * MIB, CU_MEM_ADVISE_SET_ACCESSED_BY, 0));
    ASK(cuMemRangeGetAttributes(data, sizes, which, 2, p, 4 * MIB));
    say(" %d %d %d", first, second[0], second[1]);
    ASK(cuMemRangeGetAttributes(data, sizes, which, 0, p, 4 * MIB));
    ASK(cuMemRangeGetAttributes(NULL, sizes, which, 2, p, 4 * MIB));
    ASK(cuMemRangeGetAttributes(data, NULL, which, 2, p, 4 * MIB));
    ASK(cuMemRangeGetAttributes(data, sizes, NULL, 2, p, 4 * MIB));
    ASK(cuMemRangeGetAttributes(data, sizes, which, 2, p, 0));
    ASK(cuMemRangeGetAttributes(data, sizes, which, 2, device(4), 4));
    sizes[1] = 6;
    first = 77;
    ASK(cuMemRangeGetAttributes(data, sizes, which, 2, p, 4 * MIB));
    say(" %d", first);
    which[1] = 99;
    ASK(cuMemRangeGetAttributes(data, sizes, which, 2, p, 4 * MIB));
    data[1] = NULL;
    ASK(cuMemRangeGetAttributes(data, sizes, which, 2, p, 4 * MIB));
}

/* cuStreamAttachMemAsync with flags 0 ends the process on a real driver, so its wrong use is not asked. */

/* ---- between processes: wrong use; what is right, softcuda refuses ---- */

static void handle_for_range(void)
{
    int fd = -1;
    begin();
    CUdeviceptr p = device(4 * MIB);
    ASK(cuMemGetHandleForAddressRange(NULL, p, 4 * MIB, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0));
    ASK(cuMemGetHandleForAddressRange(&fd, p, 0, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0));
    ASK(cuMemGetHandleForAddressRange(&fd, p + 1, PAGE, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0));
    ASK(cuMemGetHandleForAddressRange(&fd, p, 100, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0));
    ASK(cuMemGetHandleForAddressRange(&fd, p, 8 * MIB, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0));
    ASK(cuMemGetHandleForAddressRange(&fd, p, 4 * MIB, 0, 0));
    ASK(cuMemGetHandleForAddressRange(&fd, p, 4 * MIB, 2, 0));
    ASK(cuMemGetHandleForAddressRange(&fd, p, 4 * MIB, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 8));
    ASK(cuMemGetHandleForAddressRange(&fd, 0, PAGE, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0));
    ASK(cuMemGetHandleForAddressRange(&fd, plain(PAGE), PAGE, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0));
    ASK(cuMemGetHandleForAddressRange(&fd, pinned(PAGE), PAGE, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0));
}

static void ipc_wrong(void)
{
    CUipcMemHandle handle;
    CUdeviceptr out = UNSET;
    begin();
    CUdeviceptr p = device(BYTES);
    memset(&handle, 0, sizeof handle);
    say(" get");
    ASK(cuIpcGetMemHandle(NULL, p));
    ASK(cuIpcGetMemHandle(&handle, 0));
    ASK(cuIpcGetMemHandle(&handle, GARBAGE));
    ASK(cuIpcGetMemHandle(&handle, plain(4)));
    ASK(cuIpcGetMemHandle(&handle, pinned(4)));
    ASK(cuIpcGetMemHandle(&handle, registered(4)));
    ASK(cuIpcGetMemHandle(&handle, managed(4)));
    ASK(cuIpcGetMemHandle(&handle, pooled(4)));
    ASK(cuIpcGetMemHandle(&handle, device_freed(4 * MIB)));
    say(" open");
    ASK(cuIpcOpenMemHandle_v2(&out, handle, 0));
    ASK(cuIpcOpenMemHandle_v2(&out, handle, 1));
    ASK(cuIpcOpenMemHandle_v2(&out, handle, 2));
    ASK(cuIpcOpenMemHandle_v2(NULL, handle, 1));
    say_is(out, 0);
    say(" close");
    ASK(cuIpcCloseMemHandle(0));
    ASK(cuIpcCloseMemHandle(p));
    ASK(cuIpcCloseMemHandle(p + 4));
    ASK(cuIpcCloseMemHandle(GARBAGE));
    ASK(cuIpcCloseMemHandle(plain(4)));
}

#define CASE(name)  \
    {               \
#name, name \
    }
static const fact facts[] = {
    CASE(before_init),
    CASE(without_context),
    CASE(without_memory),
    CASE(after_context),
    CASE(after_fault),
    CASE(alloc_right),
    CASE(alloc_wrong),
    CASE(alloc_all),
    CASE(info),
    CASE(free_wrong),
    CASE(free_elsewhere),
    CASE(free_of_variable),
    CASE(pitch_right),
    CASE(pitch_wrong),
    CASE(address_range),
    CASE(host_flags),
    CASE(host_alloc_wrong),
    CASE(host_free_wrong),
    CASE(host_questions),
    CASE(register_flags),
    CASE(register_wrong),
    CASE(register_overlap),
    CASE(register_of_pages),
    CASE(managed_alloc),
    CASE(managed_prefetch),
    CASE(managed_prefetch_v2),
    CASE(managed_advise),
    CASE(managed_advise_v2),
    CASE(managed_attributes),
    CASE(managed_attributes_wrong),
    CASE(managed_attributes_many),
    CASE(handle_for_range),
    CASE(ipc_wrong),
};

FACTS_MAIN(facts)
