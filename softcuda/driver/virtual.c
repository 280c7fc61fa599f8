/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Virtual memory: ranges of addresses that are reserved, memory that is created, and the one mapped to the
 * other. Memory is a shared mapping, its home, which is mapped again where it is to lie. What may be exported
 * is a file without a name too; all else needs no descriptor, of which a process has few. No context is
 * needed, and none takes anything along when it ends.
 */
#include "softcuda/driver/driver.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum { GRANULARITY = 2 << 20 };

/* One change at a time, of what is reserved, mapped, and named by handles. Taken before other locks. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Created memory. The set holds it while handles to it are out, each mapping as well. */
struct sc_physical {
    sc_object object;
    sc_device *device;
    size_t bytes;
    void *home;   /* NULL: not yet */
    int file;     /* -1: it cannot be exported */
    bool charged; /* to the device: it was not imported */
    unsigned handles;
    CUmemAllocationProp prop;
};

typedef struct range {
    sc_object object;
    uint64_t start;
    size_t bytes;
} range;

/* ---- reserved addresses ---- */

static void end_range(sc_object *object)
{
    const range *r = (const range *)object;
    sc_pages_leave((void *)(uintptr_t)r->start, r->bytes);
}

static void finish(sc_object *object)
{
    free(object);
}

static void *reserve_at(void *wish, size_t bytes, int flags)
{
    return mmap(wish, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | flags, -1, 0);
}

/* Aligned addresses, at the wish where they are free; MAP_FAILED: there are none. */
static void *reserve(size_t bytes, size_t alignment, CUdeviceptr wish)
{
    size_t padded;
    void *wished = (void *)(uintptr_t)wish;
    void *at = wish ? reserve_at(wished, bytes, MAP_FIXED_NOREPLACE) : MAP_FAILED;
    if (at == wished && wish)
        return at;
    if (at != MAP_FAILED)
        munmap(at, bytes); /* a kernel that does not know the flag */
    if (__builtin_add_overflow(bytes, alignment, &padded))
        return MAP_FAILED;
    at = reserve_at(NULL, padded, 0);
    if (at == MAP_FAILED)
        return at;
    uintptr_t first = (uintptr_t)at, start = (first + alignment - 1) / alignment * alignment;
    if (start > first)
        munmap(at, start - first);
    if (first + padded > start + bytes)
        munmap((void *)(start + bytes), first + padded - start - bytes);
    return (void *)start;
}

API(cuMemAddressReserve, CUdeviceptr *ret_address, size_t bytes, size_t alignment, CUdeviceptr wish,
    unsigned long long flags)
{
    TRY(sc_initialized());
    bool aligned = bytes && bytes % GRANULARITY == 0 && wish % GRANULARITY == 0;
    if (!ret_address || !aligned || flags || alignment & (alignment - 1))
        return CUDA_ERROR_INVALID_VALUE;
    void *at = reserve(bytes, alignment > GRANULARITY ? alignment : GRANULARITY, wish);
    if (at == MAP_FAILED)
        return CUDA_ERROR_OUT_OF_MEMORY;
    range *r = sc_object_create(sizeof *r, SC_RANGE, NULL, finish);
    if (!r) {
        munmap(at, bytes);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    r->object.end = end_range;
    r->start = (uintptr_t)at;
    r->bytes = bytes;
    if (!sc_object_publish(r, (uintptr_t)r)) {
        sc_release(r);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *ret_address = r->start;
    return CUDA_SUCCESS;
}

/* Addresses that are asked about, and what was found there. */
typedef struct search {
    uint64_t start;
    size_t bytes;
    range *range; /* in which they lie */
    bool crossed; /* the border of a mapping */
    size_t mapped_bytes;
    sc_block *block; /* a mapping that lies within */
} search;

static bool holds(uint64_t start, size_t bytes, uint64_t inner, size_t inner_bytes)
{
    return inner >= start && inner_bytes <= bytes && inner - start <= bytes - inner_bytes;
}

static void visit_range(void *object, void *user)
{
    range *r = object;
    search *s = user;
    if (holds(r->start, r->bytes, s->start, s->bytes))
        s->range = r;
}

static void visit_mapping(void *object, void *user)
{
    sc_block *block = object;
    search *s = user;
    bool apart = block->start >= s->start + s->bytes || s->start >= block->start + block->bytes;
    if (block->kind != SC_BLOCK_MAPPED || apart)
        return;
    if (!holds(s->start, s->bytes, block->start, block->bytes)) {
        s->crossed = true;
        return;
    }
    s->mapped_bytes += block->bytes;
    s->block = block;
}

/* false: no such addresses are reserved. */
static bool look(uint64_t start, size_t bytes, search *ret_search)
{
    *ret_search = (search){.start = start, .bytes = bytes};
    if (!bytes || start % GRANULARITY || bytes % GRANULARITY)
        return false;
    sc_objects_each(SC_RANGE, visit_range, ret_search);
    sc_objects_each(SC_BLOCK, visit_mapping, ret_search);
    return ret_search->range != NULL;
}

API(cuMemAddressFree, CUdeviceptr address, size_t bytes)
{
    search s;
    TRY(sc_initialized());
    pthread_mutex_lock(&lock);
    bool valid = look(address, bytes, &s) && s.range->bytes == bytes && !s.mapped_bytes;
    if (valid)
        sc_object_drop(s.range);
    pthread_mutex_unlock(&lock);
    return valid ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* ---- created memory ---- */

static void end_physical(sc_object *object)
{
    const sc_physical *physical = (const sc_physical *)object;
    if (physical->charged)
        sc_memory_discharge(physical->device->memory, physical->bytes);
    if (physical->home)
        munmap(physical->home, physical->bytes);
    if (physical->file >= 0)
        close(physical->file);
}

/* false: no room. */
static bool settle(sc_physical *physical)
{
    int flags = MAP_SHARED | MAP_NORESERVE | (physical->file < 0 ? MAP_ANONYMOUS : 0);
    void *home = mmap(NULL, physical->bytes, PROT_READ | PROT_WRITE, flags, physical->file, 0);
    if (home == MAP_FAILED)
        return false;
    physical->home = home;
    return true;
}

/* Takes the file over, if there is one. */
static CUresult publish(sc_device *device, int file, size_t bytes, const CUmemAllocationProp *prop,
                        bool charged, CUmemGenericAllocationHandle *ret_handle)
{
    sc_physical *physical = sc_object_create(sizeof *physical, SC_PHYSICAL, NULL, finish);
    if (!physical) {
        if (file >= 0)
            close(file);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    physical->object.end = end_physical;
    physical->device = device;
    physical->bytes = bytes;
    physical->file = file;
    physical->handles = 1;
    physical->prop = *prop;
    physical->charged = charged;
    if (!settle(physical) || !sc_object_publish(physical, (uintptr_t)physical)) {
        physical->charged = false; /* the caller gives that back */
        sc_release(physical);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *ret_handle = (uintptr_t)physical;
    return CUDA_SUCCESS;
}

static sc_physical *find_physical(CUmemGenericAllocationHandle handle)
{
    return sc_object_find(SC_PHYSICAL, (uintptr_t)handle);
}

API(cuMemGetAllocationGranularity, size_t *ret_bytes, const CUmemAllocationProp *prop,
    CUmemAllocationGranularity_flags option)
{
    TRY(sc_initialized());
    if (!ret_bytes || !prop || option > CU_MEM_ALLOC_GRANULARITY_RECOMMENDED)
        return CUDA_ERROR_INVALID_VALUE;
    *ret_bytes = GRANULARITY;
    return CUDA_SUCCESS;
}

static CUresult check_prop(const CUmemAllocationProp *prop, sc_device **ret_device)
{
    enum { GENERIC_COMPRESSION = 1 };
    unsigned known = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR | CU_MEM_HANDLE_TYPE_FABRIC;
    if (prop->type != CU_MEM_ALLOCATION_TYPE_PINNED || prop->requestedHandleTypes & ~known ||
        prop->win32HandleMetaData || prop->allocFlags.compressionType > GENERIC_COMPRESSION ||
        prop->allocFlags.reserved[0] || prop->allocFlags.reserved[1] || prop->allocFlags.reserved[2])
        return CUDA_ERROR_INVALID_VALUE;
    if (prop->requestedHandleTypes & CU_MEM_HANDLE_TYPE_FABRIC)
        return CUDA_ERROR_NOT_PERMITTED;
    switch (prop->location.type) {
    case CU_MEM_LOCATION_TYPE_DEVICE:
        return sc_device_find(prop->location.id, ret_device);
    case CU_MEM_LOCATION_TYPE_HOST:
    case CU_MEM_LOCATION_TYPE_HOST_NUMA:
        return sc_lacks("created memory on the host");
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

/* The file's name tells an importer whose memory it is, the seals that it keeps its size: pages of it that
 * went would end every process that touches them. */
#define FILE_NAME "softcuda.device."
enum { SEALS = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL };

/* A file that is larger than this process may write ends the process. */
static bool may_be_file(size_t bytes)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_FSIZE, &limit) == 0 && bytes <= limit.rlim_cur;
}

static int create_file(const sc_device *device, size_t bytes)
{
    char name[64];
    if (!may_be_file(bytes))
        return -1;
    kr__format(name, sizeof name, FILE_NAME "%d", device->number);
    int file = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (file >= 0 && (ftruncate(file, (off_t)bytes) || fcntl(file, F_ADD_SEALS, SEALS))) {
        close(file);
        return -1;
    }
    return file;
}

API(cuMemCreate, CUmemGenericAllocationHandle *ret_handle, size_t bytes, const CUmemAllocationProp *prop,
    unsigned long long flags)
{
    sc_device *device;
    TRY(sc_initialized());
    if (!ret_handle || !prop || flags || !bytes || bytes % GRANULARITY)
        return CUDA_ERROR_INVALID_VALUE;
    TRY(check_prop(prop, &device));
    if (!sc_memory_charge(device->memory, bytes))
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUmemAllocationProp kept = *prop;
    kept.allocFlags.compressionType = 0; /* asked for, not given */
    int file = prop->requestedHandleTypes ? create_file(device, bytes) : -1;
    CUresult result = prop->requestedHandleTypes && file < 0
                          ? CUDA_ERROR_OUT_OF_MEMORY
                          : publish(device, file, bytes, &kept, true, ret_handle);
    if (result)
        sc_memory_discharge(device->memory, bytes);
    return result;
}

API(cuMemRelease, CUmemGenericAllocationHandle handle)
{
    TRY(sc_initialized());
    pthread_mutex_lock(&lock);
    sc_physical *physical = find_physical(handle);
    if (physical && --physical->handles == 0)
        sc_object_drop(physical);
    pthread_mutex_unlock(&lock);
    return physical ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* One more handle to the memory that is mapped there. */
static CUresult retain_handle(CUmemGenericAllocationHandle *ret_handle, uint64_t address)
{
    sc_block *block = sc_block_around(address);
    if (!ret_handle || !block || block->kind != SC_BLOCK_MAPPED)
        return CUDA_ERROR_INVALID_VALUE;
    sc_physical *physical = block->physical; /* the mapping's reference keeps it */
    if (!physical->handles && !sc_object_publish(sc_retain(physical), (uintptr_t)physical)) {
        sc_release(physical);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    physical->handles++;
    *ret_handle = (uintptr_t)physical;
    return CUDA_SUCCESS;
}

API(cuMemRetainAllocationHandle, CUmemGenericAllocationHandle *ret_handle, void *address)
{
    TRY(sc_initialized());
    pthread_mutex_lock(&lock);
    CUresult result = retain_handle(ret_handle, (uintptr_t)address);
    pthread_mutex_unlock(&lock);
    return result;
}

API(cuMemGetAllocationPropertiesFromHandle, CUmemAllocationProp *ret_prop,
    CUmemGenericAllocationHandle handle)
{
    TRY(sc_initialized());
    const sc_physical *physical = find_physical(handle);
    if (!ret_prop || !physical)
        return CUDA_ERROR_INVALID_VALUE;
    *ret_prop = physical->prop;
    return CUDA_SUCCESS;
}

/* ---- for other processes ---- */

API(cuMemExportToShareableHandle, void *ret_file, CUmemGenericAllocationHandle handle,
    CUmemAllocationHandleType type, unsigned long long flags)
{
    TRY(sc_initialized());
    sc_physical *physical = find_physical(handle);
    if (!ret_file || !physical || flags || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR ||
        !(physical->prop.requestedHandleTypes & type))
        return CUDA_ERROR_INVALID_VALUE;
    if (!sc_retain(physical)) /* so that the file stays */
        return CUDA_ERROR_INVALID_VALUE;
    int file = dup(physical->file);
    sc_release(physical);
    if (file < 0)
        return CUDA_ERROR_OPERATING_SYSTEM;
    *(int *)ret_file = file;
    return CUDA_SUCCESS;
}

/* The device whose exported memory a file is; NULL: of none that is visible. */
static sc_device *exporter(int file)
{
    char path[64], name[128];
    int number = -1;
    kr__format(path, sizeof path, "/proc/self/fd/%d", file);
    ssize_t n = readlink(path, name, sizeof name - 1);
    name[n > 0 ? n : 0] = 0;
    if (sscanf(name, "/memfd:" FILE_NAME "%d", &number) != 1 || fcntl(file, F_GET_SEALS) != SEALS)
        return NULL;
    for (int i = 0; i < sc_n_devices; i++)
        if (sc_devices[i].number == number)
            return &sc_devices[i];
    return NULL;
}

API(cuMemImportFromShareableHandle, CUmemGenericAllocationHandle *ret_handle, void *shared,
    CUmemAllocationHandleType type)
{
    struct stat facts;
    TRY(sc_initialized());
    if (!ret_handle || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
        return CUDA_ERROR_INVALID_VALUE;
    int file = (int)(intptr_t)shared;
    if (fstat(file, &facts))
        return CUDA_ERROR_UNKNOWN;
    sc_device *device = exporter(file);
    if (!device)
        return CUDA_ERROR_INVALID_VALUE;
    const CUmemAllocationProp prop = {
        CU_MEM_ALLOCATION_TYPE_PINNED, type, {CU_MEM_LOCATION_TYPE_DEVICE, device->ordinal}, NULL, {0}};
    file = fcntl(file, F_DUPFD_CLOEXEC, 0);
    if (file < 0)
        return CUDA_ERROR_OPERATING_SYSTEM;
    return publish(device, file, (size_t)facts.st_size, &prop, false, ret_handle);
}

/* ---- mappings: blocks without a context ---- */

/* Leaves addresses reserved. A task that runs may touch them still: it finds pages of nobody's there, which
 * are the range's from then on. */
static void vacate(void *start, size_t bytes)
{
    int access = sc_tasks_run() ? PROT_READ | PROT_WRITE : PROT_NONE;
    mmap(start, bytes, access, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
}

void sc_mapping_end(sc_block *block)
{
    vacate((void *)(uintptr_t)block->start, block->bytes);
    sc_release(block->physical);
}

static CUresult map(CUdeviceptr address, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle,
                    unsigned long long flags)
{
    search s;
    sc_block *block;
    sc_physical *physical = find_physical(handle);
    if (!physical || !bytes || flags)
        return CUDA_ERROR_INVALID_VALUE;
    if (bytes != physical->bytes || offset)
        return CUDA_ERROR_NOT_SUPPORTED;
    if (!look(address, bytes, &s) || s.mapped_bytes || s.crossed)
        return CUDA_ERROR_INVALID_VALUE;
    void *start = (void *)(uintptr_t)address;
    /* Of a shared mapping, 0 bytes of it moved are the whole of it at one more place. */
    if (mremap(physical->home, 0, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, start) == MAP_FAILED) {
        vacate(start, bytes);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    const sc_block wish = {
        .kind = SC_BLOCK_MAPPED, .device = physical->device, .bytes = bytes, .physical = sc_retain(physical)};
    CUresult result = sc_block_create(&wish, start, &block);
    if (result) {
        sc_release(physical);
        vacate(start, bytes);
    }
    return result;
}

API(cuMemMap, CUdeviceptr address, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle,
    unsigned long long flags)
{
    TRY(sc_initialized());
    pthread_mutex_lock(&lock);
    CUresult result = map(address, bytes, offset, handle, flags);
    pthread_mutex_unlock(&lock);
    return result;
}

API(cuMemUnmap, CUdeviceptr address, size_t bytes)
{
    search s;
    TRY(sc_initialized());
    pthread_mutex_lock(&lock);
    bool valid = look(address, bytes, &s) && !s.crossed;
    for (; valid && s.block; look(address, bytes, &s))
        sc_object_drop(s.block);
    pthread_mutex_unlock(&lock);
    return valid ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult check_access(const CUmemAccessDesc *desc)
{
    sc_device *device;
    switch (desc->location.type) {
    case CU_MEM_LOCATION_TYPE_HOST:
    case CU_MEM_LOCATION_TYPE_HOST_NUMA:
        return CUDA_ERROR_NOT_SUPPORTED;
    case CU_MEM_LOCATION_TYPE_DEVICE:
        if (sc_device_find(desc->location.id, &device))
            return CUDA_ERROR_INVALID_VALUE;
        break;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (desc->flags == CU_MEM_ACCESS_FLAGS_PROT_READ)
        return sc_lacks("mappings that may only be read"); /* the machine does not tell the two apart */
    bool known =
        desc->flags == CU_MEM_ACCESS_FLAGS_PROT_NONE || desc->flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    return known ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult set_access(CUdeviceptr address, size_t bytes, const CUmemAccessDesc *descs, size_t n)
{
    search s;
    sc_allocation found;
    if (!descs || !n || !look(address, bytes, &s) || s.crossed || s.mapped_bytes != bytes)
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < n; i++)
        TRY(check_access(&descs[i]));
    for (uint64_t at = address; at < address + bytes && sc_memory_find(at, &found); at += found.bytes) {
        uint64_t devices = found.granted;
        for (size_t i = 0; i < n; i++) {
            uint64_t bit = (uint64_t)1 << descs[i].location.id;
            devices = descs[i].flags ? devices | bit : devices & ~bit;
        }
        sc_memory_grant(found.start, devices);
    }
    return CUDA_SUCCESS;
}

API(cuMemSetAccess, CUdeviceptr address, size_t bytes, const CUmemAccessDesc *descs, size_t n)
{
    TRY(sc_initialized());
    pthread_mutex_lock(&lock);
    CUresult result = set_access(address, bytes, descs, n);
    pthread_mutex_unlock(&lock);
    return result;
}

API(cuMemGetAccess, unsigned long long *flags, const CUmemLocation *place, CUdeviceptr address)
{
    sc_device *device = NULL;
    sc_allocation found;
    TRY(sc_initialized());
    if (!flags || !place || !address)
        return CUDA_ERROR_INVALID_VALUE;
    bool on_host = place->type == CU_MEM_LOCATION_TYPE_HOST || place->type == CU_MEM_LOCATION_TYPE_HOST_NUMA;
    if (!on_host && (place->type != CU_MEM_LOCATION_TYPE_DEVICE || sc_device_find(place->id, &device)))
        return CUDA_ERROR_INVALID_DEVICE;
    *flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
    if (!sc_memory_find(address, &found))
        return CUDA_ERROR_INVALID_VALUE;
    if (found.mapped && device && found.granted >> device->ordinal & 1)
        *flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    return CUDA_SUCCESS;
}
