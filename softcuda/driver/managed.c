/* SPDX-License-Identifier: Apache-2.0 */
/* Managed memory: host memory that every device may touch. Advice and prefetches move nothing here; they are
 * kept by the page, since they can be asked for. */
#include "softcuda/driver/driver.h"

#include <stdlib.h>
#include <string.h>

enum { PAGE = 4096, NOWHERE = -2 };

typedef struct advice {
    bool read_mostly, accessed_by_host;
    uint64_t accessed_by; /* a bit a device */
    CUmemLocation preferred, prefetched;
} advice;

/* A run of pages of which the same was said. A block's runs follow each other, the last to its end. */
struct sc_pages {
    size_t end; /* from the block's start */
    advice advice;
};

API(cuMemAllocManaged, CUdeviceptr *ret_address, size_t bytes, unsigned flags)
{
    const CUmemLocation nowhere = {CU_MEM_LOCATION_TYPE_INVALID, NOWHERE};
    if (!ret_address)
        return CUDA_ERROR_INVALID_VALUE;
    *ret_address = 0;
    if (!bytes || (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST))
        return CUDA_ERROR_INVALID_VALUE;
    void *start;
    sc_pages *pages = malloc(sizeof *pages);
    if (!pages)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *pages = (sc_pages){bytes, {.preferred = nowhere, .prefetched = nowhere}};
    const sc_block wish = {
        .kind = SC_BLOCK_MANAGED, .bytes = bytes, .flags = flags, .pages = pages, .n_pages = 1};
    CUresult result = sc_host_alloc(&wish, &start);
    if (result) {
        free(pages);
        return result;
    }
    *ret_address = (uintptr_t)start;
    return CUDA_SUCCESS;
}

/* The managed block that a range lies in, and the pages from `first` to `last` (offsets) that it touches. */
static CUresult find_range(CUdeviceptr address, size_t bytes, sc_block **ret_block, size_t *ret_first,
                           size_t *ret_last)
{
    TRY(sc_entered());
    sc_block *block = sc_block_around(address);
    if (!block || block->kind != SC_BLOCK_MANAGED || !bytes || bytes > block->start + block->bytes - address)
        return CUDA_ERROR_INVALID_VALUE;
    size_t first = address - block->start, end = first + bytes;
    *ret_block = block;
    *ret_first = first / PAGE * PAGE;
    end = (end + PAGE - 1) / PAGE * PAGE;
    *ret_last = end < block->bytes ? end : block->bytes;
    return CUDA_SUCCESS;
}

/* Makes runs begin and end at `at`. */
static bool split(sc_block *block, size_t at)
{
    size_t i = 0;
    while (i < block->n_pages && block->pages[i].end < at)
        i++;
    if (at == 0 || i == block->n_pages || block->pages[i].end == at)
        return true;
    sc_pages *pages = realloc(block->pages, (block->n_pages + 1) * sizeof *pages);
    if (!pages)
        return false;
    memmove(&pages[i + 1], &pages[i], (block->n_pages - i) * sizeof *pages);
    pages[i].end = at;
    block->pages = pages;
    block->n_pages++;
    return true;
}

enum { PREFETCH = 100 }; /* beside the CUmem_advise */

static void apply(advice *of, int what, CUmemLocation place)
{
    const bool set = what == CU_MEM_ADVISE_SET_ACCESSED_BY;
    const uint64_t bit = (uint64_t)1 << (place.id & 63);
    switch (what) {
    case PREFETCH:
        of->prefetched = place;
        break;
    case CU_MEM_ADVISE_SET_READ_MOSTLY:
    case CU_MEM_ADVISE_UNSET_READ_MOSTLY:
        of->read_mostly = what == CU_MEM_ADVISE_SET_READ_MOSTLY;
        break;
    case CU_MEM_ADVISE_SET_PREFERRED_LOCATION:
        of->preferred = place;
        break;
    case CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION:
        of->preferred = (CUmemLocation){CU_MEM_LOCATION_TYPE_INVALID, NOWHERE};
        break;
    default:
        if (place.type == CU_MEM_LOCATION_TYPE_HOST)
            of->accessed_by_host = set;
        else
            of->accessed_by = set ? of->accessed_by | bit : of->accessed_by & ~bit;
    }
}

static CUresult change_range(CUdeviceptr address, size_t bytes, int what, CUmemLocation place)
{
    sc_block *block;
    size_t first, last;
    TRY(find_range(address, bytes, &block, &first, &last));
    if (place.type == CU_MEM_LOCATION_TYPE_HOST)
        place.id = CU_DEVICE_CPU;
    if (place.type == CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT)
        place = (CUmemLocation){CU_MEM_LOCATION_TYPE_HOST_NUMA, 0};
    sc_lock();
    bool fits = split(block, first) && split(block, last);
    for (size_t i = 0; fits && i < block->n_pages; i++)
        if (block->pages[i].end > first && block->pages[i].end <= last)
            apply(&block->pages[i].advice, what, place);
    sc_unlock();
    return fits ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/* The place that the forms without a location mean. */
static CUmemLocation place_of(CUdevice device)
{
    return (CUmemLocation){device == CU_DEVICE_CPU ? CU_MEM_LOCATION_TYPE_HOST : CU_MEM_LOCATION_TYPE_DEVICE,
                           device};
}

/* There is one NUMA node. `no_device`: the answer to a device that is not there. */
static CUresult check_place(CUmemLocation place, CUresult no_device)
{
    sc_device *device;
    bool valid =
        place.type == CU_MEM_LOCATION_TYPE_HOST || place.type == CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT;
    if (place.type == CU_MEM_LOCATION_TYPE_DEVICE)
        return sc_device_find(place.id, &device) ? no_device : CUDA_SUCCESS;
    if (place.type == CU_MEM_LOCATION_TYPE_HOST_NUMA)
        valid = place.id == 0;
    return valid ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult advise(CUdeviceptr address, size_t bytes, CUmem_advise what, CUmemLocation place,
                       CUresult no_device)
{
    TRY(sc_entered());
    switch (what) {
    case CU_MEM_ADVISE_SET_READ_MOSTLY:
    case CU_MEM_ADVISE_UNSET_READ_MOSTLY:
    case CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION: /* wherever */
        if (place.type < CU_MEM_LOCATION_TYPE_DEVICE || place.type > CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT)
            return CUDA_ERROR_INVALID_VALUE;
        break;
    case CU_MEM_ADVISE_SET_ACCESSED_BY:
    case CU_MEM_ADVISE_UNSET_ACCESSED_BY:
        if (place.type > CU_MEM_LOCATION_TYPE_HOST)
            return CUDA_ERROR_INVALID_VALUE;
        TRY(check_place(place, no_device));
        break;
    case CU_MEM_ADVISE_SET_PREFERRED_LOCATION:
        TRY(check_place(place, no_device));
        break;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
    return change_range(address, bytes, (int)what, place);
}

API(cuMemAdvise, CUdeviceptr address, size_t bytes, CUmem_advise what, CUdevice device)
{
    return advise(address, bytes, what, place_of(device), CUDA_ERROR_INVALID_DEVICE);
}

API(cuMemAdvise_v2, CUdeviceptr address, size_t bytes, CUmem_advise what, CUmemLocation place)
{
    return advise(address, bytes, what, place, CUDA_ERROR_INVALID_VALUE);
}

static CUresult prefetch(CUdeviceptr address, size_t bytes, CUmemLocation place, CUstream handle)
{
    sc_stream *stream;
    TRY(sc_stream_enter(handle, &stream));
    TRY(check_place(place, CUDA_ERROR_INVALID_DEVICE));
    return change_range(address, bytes, PREFETCH, place);
}

API_STREAM(cuMemPrefetchAsync, (CUdeviceptr address, size_t bytes, CUdevice device, CUstream stream),
           (address, bytes, device, stream))
{
    return prefetch(address, bytes, place_of(device), stream);
}

API_STREAM(cuMemPrefetchAsync_v2,
           (CUdeviceptr address, size_t bytes, CUmemLocation place, unsigned flags, CUstream stream),
           (address, bytes, place, flags, stream))
{
    return flags ? CUDA_ERROR_INVALID_VALUE : prefetch(address, bytes, place, stream);
}

API_STREAM(cuStreamAttachMemAsync, (CUstream stream, CUdeviceptr address, size_t bytes, unsigned flags),
           (stream, address, bytes, flags))
{
    TRY(sc_entered());
    sc_block *block = sc_block_around(address);
    bool valid = block && block->kind == SC_BLOCK_MANAGED && address == block->start &&
                 (!bytes || bytes == block->bytes) && flags <= CU_MEM_ATTACH_SINGLE &&
                 (stream || flags != CU_MEM_ATTACH_SINGLE);
    return valid ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* ---- what was said of a range ---- */

static bool same_place(CUmemLocation a, CUmemLocation b)
{
    return a.type == b.type && a.id == b.id;
}

static void agree(CUmemLocation *all, CUmemLocation one)
{
    if (!same_place(*all, one))
        *all = (CUmemLocation){CU_MEM_LOCATION_TYPE_INVALID, NOWHERE};
}

/* What holds for every page. */
static advice common(const sc_block *block, size_t first, size_t last)
{
    advice all = {0};
    bool is_first = true;
    size_t start = 0;
    for (size_t i = 0; i < block->n_pages; start = block->pages[i++].end) {
        const advice *one = &block->pages[i].advice;
        if (block->pages[i].end <= first || start >= last)
            continue;
        if (is_first)
            all = *one;
        is_first = false;
        all.read_mostly &= one->read_mostly;
        all.accessed_by_host &= one->accessed_by_host;
        all.accessed_by &= one->accessed_by;
        agree(&all.preferred, one->preferred);
        agree(&all.prefetched, one->prefetched);
    }
    return all;
}

static int device_of(CUmemLocation place)
{
    bool told = place.type == CU_MEM_LOCATION_TYPE_DEVICE || place.type == CU_MEM_LOCATION_TYPE_HOST;
    return told ? place.id : NOWHERE;
}

static void list_accessing(const advice *of, int *to, size_t n)
{
    size_t got = 0;
    for (int i = 0; i < SC_MAX_DEVICES && got < n; i++)
        if (of->accessed_by >> i & 1)
            to[got++] = i;
    if (of->accessed_by_host && got < n)
        to[got++] = CU_DEVICE_CPU;
    while (got < n)
        to[got++] = NOWHERE;
}

static bool attribute_valid(CUmem_range_attribute attribute, const void *data, size_t bytes)
{
    bool fits = attribute == CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY ? bytes && bytes % sizeof(int) == 0
                                                                : bytes == sizeof(int);
    return data && fits && attribute >= CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY &&
           attribute <= CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID;
}

static void range_attribute(const advice *of, CUmem_range_attribute attribute, int *to, size_t bytes)
{
    switch (attribute) {
    case CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY:
        *to = of->read_mostly;
        break;
    case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION:
        *to = device_of(of->preferred);
        break;
    case CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY:
        list_accessing(of, to, bytes / sizeof(int));
        break;
    case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION:
        *to = device_of(of->prefetched);
        break;
    case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE:
        *to = of->preferred.type;
        break;
    case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_ID:
        *to = of->preferred.id;
        break;
    case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE:
        *to = of->prefetched.type;
        break;
    case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID:
        *to = of->prefetched.id;
        break;
    }
}

static CUresult range_attributes(size_t n, void **data, const size_t *sizes,
                                 const CUmem_range_attribute *attributes, CUdeviceptr address, size_t bytes)
{
    sc_block *block;
    size_t first, last;
    TRY(find_range(address, bytes, &block, &first, &last));
    for (size_t i = 0; i < n; i++)
        if (!attribute_valid(attributes[i], data[i], sizes[i]))
            return CUDA_ERROR_INVALID_VALUE;
    sc_lock();
    const advice all = common(block, first, last);
    sc_unlock();
    for (size_t i = 0; i < n; i++)
        range_attribute(&all, attributes[i], data[i], sizes[i]);
    return CUDA_SUCCESS;
}

API(cuMemRangeGetAttribute, void *data, size_t data_bytes, CUmem_range_attribute attribute,
    CUdeviceptr address, size_t bytes)
{
    return range_attributes(1, &data, &data_bytes, &attribute, address, bytes);
}

API(cuMemRangeGetAttributes, void **data, size_t *sizes, CUmem_range_attribute *attributes, size_t n,
    CUdeviceptr address, size_t bytes)
{
    TRY(sc_entered());
    if (!data || !sizes || !attributes || !n)
        return CUDA_ERROR_INVALID_VALUE;
    return range_attributes(n, data, sizes, attributes, address, bytes);
}
