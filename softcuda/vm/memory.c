/* SPDX-License-Identifier: Apache-2.0 */
#include "softcuda/vm/check.h"
#include "softcuda/vm/machine.h"
#include "softcuda/vm/shadow.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/*
 * Device memory is host memory in one reserved range a device. Its pages up to a mark are committed, in one
 * mapping, since the system gives a process no more than 65530. Between allocations lies a gap, so that the
 * first byte past one belongs to nobody.
 */
enum {
    SC_MAX_DEVICES = 64,
    SC_GAP_BYTES = 512,
    SC_CHECK_GAP_BYTES = 1 << 16, /* for memcheck: who misses one allocation is not to hit the next */
    SC_ROUND_BYTES = 512,
    SC_PAGE_BYTES = 4096,
    SC_FREED = 1024
};

typedef struct sc_list { /* sorted by start */
    sc_allocation *items;
    size_t n;
} sc_list;

struct sc_memory {
    unsigned ordinal;
    size_t bytes; /* of the device */
    size_t used;
    size_t heap_used; /* by the kernels' own malloc */
    uint64_t base;
    size_t range_bytes;
    uint64_t top;       /* where the next allocation is tried */
    uint64_t committed; /* so far */
    sc_list list;
    sc_memory *next;
};

static pthread_rwlock_t memory_lock = PTHREAD_RWLOCK_INITIALIZER;
static sc_memory *memories;
static sc_list host_list;
static uint64_t last_id;
static bool peers[SC_MAX_DEVICES][SC_MAX_DEVICES];
static sc_allocation freed[SC_FREED]; /* the last ones, for memcheck, in a ring */
static size_t n_freed;

static size_t gap_bytes(void)
{
    return sc__checking(SC_CHECK_MEMORY) ? SC_CHECK_GAP_BYTES : SC_GAP_BYTES;
}

static size_t round_up(size_t value, size_t to)
{
    return (value + to - 1) / to * to;
}

/* Index of the first item whose start is above the address. */
static size_t list_above(const sc_list *list, uint64_t address)
{
    size_t low = 0, high = list->n;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (list->items[middle].start > address)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static sc_allocation *list_find(const sc_list *list, uint64_t address)
{
    size_t above = list_above(list, address);
    if (above == 0)
        return NULL;
    sc_allocation *item = &list->items[above - 1];
    return address - item->start < item->bytes ? item : NULL;
}

static bool list_insert(sc_list *list, sc_allocation item)
{
    sc_allocation *grown = kr__grow(list->items, list->n, sizeof *grown);
    if (!grown)
        return false;
    list->items = grown;
    size_t at = list_above(list, item.start);
    memmove(&list->items[at + 1], &list->items[at], (list->n - at) * sizeof item);
    list->items[at] = item;
    list->n++;
    return true;
}

static void list_remove(sc_list *list, sc_allocation *item)
{
    size_t at = (size_t)(item - list->items);
    memmove(item, item + 1, (list->n - at - 1) * sizeof *item);
    list->n--;
}

/* Whole pieces of what the checkers track, so that none holds the host's memory too. NULL: does not fit. */
static void *reserve(size_t bytes)
{
    size_t more = bytes + SC_SHADOW_PIECE;
    char *start = mmap(NULL, more, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (start == MAP_FAILED)
        return NULL;
    size_t before = -(uintptr_t)start & (SC_SHADOW_PIECE - 1);
    if (before)
        munmap(start, before);
    munmap(start + before + bytes, SC_SHADOW_PIECE - before);
    return start + before;
}

sc_memory *sc_memory_create(unsigned ordinal, size_t bytes)
{
    sc_memory *memory = calloc(1, sizeof *memory);
    if (!memory || ordinal >= SC_MAX_DEVICES) {
        free(memory);
        return NULL;
    }
    memory->range_bytes = round_up(SC_RESERVED_FOR_A_BYTE * bytes + (16u << 20), SC_SHADOW_PIECE);
    void *range = reserve(memory->range_bytes);
    if (!range) {
        free(memory);
        return NULL;
    }
    memory->ordinal = ordinal;
    memory->bytes = bytes;
    memory->base = memory->top = memory->committed = (uint64_t)(uintptr_t)range;
    pthread_rwlock_wrlock(&memory_lock);
    memory->next = memories;
    memories = memory;
    pthread_rwlock_unlock(&memory_lock);
    return memory;
}

void sc_memory_destroy(sc_memory *memory)
{
    if (!memory)
        return;
    pthread_rwlock_wrlock(&memory_lock);
    sc_memory **at = &memories;
    while (*at != memory)
        at = &(*at)->next;
    *at = memory->next;
    pthread_rwlock_unlock(&memory_lock);
    munmap((void *)(uintptr_t)memory->base, memory->range_bytes);
    free(memory->list.items);
    free(memory);
}

/* A start for `bytes` in the range, or 0. */
static uint64_t find_place(const sc_memory *memory, size_t bytes, size_t alignment)
{
    const size_t gap = gap_bytes();
    uint64_t end = memory->base + memory->range_bytes;
    uint64_t start = round_up(memory->top, alignment);
    if (start + bytes + gap <= end)
        return start;
    start = round_up(memory->base, alignment);
    for (size_t i = 0; i < memory->list.n; i++) {
        const sc_allocation *item = &memory->list.items[i];
        if (start + bytes + gap <= item->start)
            return start;
        start = round_up(item->start + item->bytes + gap, alignment);
    }
    return start + bytes + gap <= end ? start : 0;
}

static bool commit(sc_memory *memory, uint64_t end)
{
    end = round_up(end, SC_PAGE_BYTES);
    if (end <= memory->committed)
        return true;
    if (mprotect((void *)(uintptr_t)memory->committed, end - memory->committed, PROT_READ | PROT_WRITE))
        return false;
    memory->committed = end;
    return true;
}

static uint64_t alloc_locked(sc_memory *memory, size_t bytes, size_t alignment)
{
    size_t rounded = round_up(bytes, SC_ROUND_BYTES);
    if (bytes == 0 || rounded < bytes)
        return 0;
    if (alignment < 256)
        alignment = 256;
    uint64_t start = 0;
    if (rounded <= memory->bytes - memory->used)
        start = find_place(memory, bytes, alignment);
    if (start && (!commit(memory, start + bytes) ||
                  !list_insert(&memory->list, (sc_allocation){start, bytes, memory->ordinal, 0, ++last_id,
                                                              false, false, 0})))
        start = 0;
    if (start) {
        memory->used += rounded;
        if (start >= memory->top)
            memory->top = start + bytes + gap_bytes();
        sc__check_allocated(start, bytes);
    }
    return start;
}

uint64_t sc_memory_alloc(sc_memory *memory, size_t bytes, size_t alignment)
{
    pthread_rwlock_wrlock(&memory_lock);
    uint64_t start = alloc_locked(memory, bytes, alignment);
    pthread_rwlock_unlock(&memory_lock);
    return start;
}

static void note_freed(const sc_allocation *item)
{
    sc__check_freed(item->start, item->bytes);
    freed[n_freed++ % SC_FREED] = *item;
}

/* Gives the system back the pages on which no other allocation is. */
static void decommit(const sc_memory *memory, const sc_allocation *item)
{
    const sc_allocation *last = &memory->list.items[memory->list.n - 1];
    uint64_t first = item->start / SC_PAGE_BYTES * SC_PAGE_BYTES;
    uint64_t end = round_up(item->start + item->bytes, SC_PAGE_BYTES);
    if (item != memory->list.items && first < item[-1].start + item[-1].bytes)
        first += SC_PAGE_BYTES;
    if (item != last && end > item[1].start)
        end -= SC_PAGE_BYTES;
    if (end > first)
        madvise((void *)(uintptr_t)first, end - first, MADV_DONTNEED);
}

static bool free_allocation(sc_memory *memory, uint64_t address, bool from_heap)
{
    pthread_rwlock_wrlock(&memory_lock);
    sc_allocation *item = list_find(&memory->list, address);
    bool found = item && item->start == address && item->in_heap == from_heap;
    if (found) {
        memory->heap_used -= from_heap ? item->bytes : 0;
        note_freed(item);
        decommit(memory, item);
        memory->used -= round_up(item->bytes, SC_ROUND_BYTES);
        list_remove(&memory->list, item);
    }
    pthread_rwlock_unlock(&memory_lock);
    return found;
}

bool sc_memory_free(sc_memory *memory, uint64_t address)
{
    return free_allocation(memory, address, false);
}

uint64_t sc__heap_alloc(sc_memory *memory, size_t bytes, size_t limit)
{
    pthread_rwlock_wrlock(&memory_lock);
    bool fits = memory->heap_used <= limit && bytes <= limit - memory->heap_used;
    uint64_t start = fits ? alloc_locked(memory, bytes, 0) : 0;
    if (start) {
        memory->heap_used += bytes;
        list_find(&memory->list, start)->in_heap = true;
    }
    pthread_rwlock_unlock(&memory_lock);
    return start;
}

bool sc__heap_free(sc_memory *memory, uint64_t address)
{
    return free_allocation(memory, address, true);
}

static sc_allocation *find_locked(uint64_t address)
{
    for (sc_memory *memory = memories; memory; memory = memory->next)
        if (address - memory->base < memory->range_bytes)
            return list_find(&memory->list, address);
    return list_find(&host_list, address);
}

bool sc_memory_find(uint64_t address, sc_allocation *ret_allocation)
{
    pthread_rwlock_rdlock(&memory_lock);
    const sc_allocation *item = find_locked(address);
    if (item)
        *ret_allocation = *item;
    pthread_rwlock_unlock(&memory_lock);
    return item != NULL;
}

size_t sc_memory_used(const sc_memory *memory)
{
    pthread_rwlock_rdlock(&memory_lock);
    size_t used = memory->used;
    pthread_rwlock_unlock(&memory_lock);
    return used;
}

/* Memory outside the devices' ranges; its id is given here. */
static bool insert_outside(sc_allocation item)
{
    if (item.bytes == 0)
        return false;
    pthread_rwlock_wrlock(&memory_lock);
    size_t above = list_above(&host_list, item.start + item.bytes - 1);
    bool fits =
        above == 0 || host_list.items[above - 1].start + host_list.items[above - 1].bytes <= item.start;
    item.id = ++last_id;
    fits = fits && list_insert(&host_list, item);
    pthread_rwlock_unlock(&memory_lock);
    return fits;
}

bool sc_memory_register_host(void *start, size_t bytes, unsigned flags)
{
    return insert_outside(
        (sc_allocation){(uintptr_t)start, bytes, SC_HOST_ORDINAL, flags, 0, false, false, 0});
}

bool sc_memory_map(unsigned ordinal, void *start, size_t bytes)
{
    return insert_outside((sc_allocation){(uintptr_t)start, bytes, ordinal, 0, 0, false, true, 0});
}

bool sc_memory_charge(sc_memory *memory, size_t bytes)
{
    pthread_rwlock_wrlock(&memory_lock);
    bool fits = bytes <= memory->bytes - memory->used;
    memory->used += fits ? bytes : 0;
    pthread_rwlock_unlock(&memory_lock);
    return fits;
}

void sc_memory_discharge(sc_memory *memory, size_t bytes)
{
    pthread_rwlock_wrlock(&memory_lock);
    memory->used -= bytes;
    pthread_rwlock_unlock(&memory_lock);
}

bool sc_memory_unregister_host(void *start)
{
    pthread_rwlock_wrlock(&memory_lock);
    sc_allocation *item = list_find(&host_list, (uint64_t)(uintptr_t)start);
    bool found = item && item->start == (uint64_t)(uintptr_t)start;
    if (found) {
        note_freed(item);
        list_remove(&host_list, item);
    }
    if (host_list.n == 0) {
        free(host_list.items);
        host_list = (sc_list){0};
    }
    pthread_rwlock_unlock(&memory_lock);
    return found;
}

bool sc_memory_host_between(uint64_t first, uint64_t last, sc_allocation *ret_allocation)
{
    pthread_rwlock_rdlock(&memory_lock);
    size_t above = list_above(&host_list, last);
    const sc_allocation *item = above ? &host_list.items[above - 1] : NULL;
    bool found = item && item->start + item->bytes > first;
    if (found)
        *ret_allocation = *item;
    pthread_rwlock_unlock(&memory_lock);
    return found;
}

void sc_memory_allow_peer(unsigned device, unsigned peer, bool allow)
{
    if (device >= SC_MAX_DEVICES || peer >= SC_MAX_DEVICES)
        return;
    pthread_rwlock_wrlock(&memory_lock);
    peers[device][peer] = allow;
    pthread_rwlock_unlock(&memory_lock);
}

static bool may_touch(unsigned device, const sc_allocation *item)
{
    bool is_granted = item->granted >> device & 1;
    return is_granted || (!item->mapped && (item->ordinal == device || item->ordinal == SC_HOST_ORDINAL ||
                                            peers[device][item->ordinal]));
}

void sc_memory_grant(uint64_t start, uint64_t devices)
{
    pthread_rwlock_wrlock(&memory_lock);
    sc_allocation *item = find_locked(start);
    if (item)
        item->granted = devices;
    pthread_rwlock_unlock(&memory_lock);
}

bool sc_memory_reaches(unsigned device, uint64_t address)
{
    sc_span span;
    return sc__memory_span(device, address, &span);
}

bool sc__memory_span(unsigned device, uint64_t address, sc_span *ret_span)
{
    pthread_rwlock_rdlock(&memory_lock);
    const sc_allocation *item = find_locked(address);
    bool found = item && may_touch(device, item);
    if (found)
        *ret_span = (sc_span){item->start, item->start + item->bytes};
    pthread_rwlock_unlock(&memory_lock);
    return found;
}

/* The list the address would be in. */
static const sc_list *list_of(uint64_t address)
{
    for (const sc_memory *memory = memories; memory; memory = memory->next)
        if (address - memory->base < memory->range_bytes)
            return &memory->list;
    return NULL;
}

/* The allocation last freed that held the address. */
static const sc_allocation *find_freed(uint64_t address)
{
    for (size_t i = n_freed; i > 0 && i + SC_FREED > n_freed; i--) {
        const sc_allocation *item = &freed[(i - 1) % SC_FREED];
        if (address - item->start < item->bytes)
            return item;
    }
    return NULL;
}

void sc__memory_describe(unsigned device, uint64_t address, size_t bytes, char *to, size_t to_bytes)
{
    pthread_rwlock_rdlock(&memory_lock);
    const sc_allocation *item = find_locked(address);
    const sc_list *list = list_of(address);
    size_t above = list ? list_above(list, address) : 0;
    const sc_allocation *below = above ? &list->items[above - 1] : NULL;
    const sc_allocation *next = list && above < list->n ? &list->items[above] : NULL;
    if (item && !may_touch(device, item))
        kr__format(to, to_bytes, "in memory of device %u, which device %u has no peer access to",
                   item->ordinal, device);
    else if (item)
        kr__format(to, to_bytes,
                   "its last %" PRIu64 " bytes past the end of the allocation of %zu bytes at 0x%" PRIx64,
                   address + bytes - item->start - item->bytes, item->bytes, item->start);
    else if ((item = find_freed(address)) != NULL)
        kr__format(to, to_bytes,
                   "%" PRIu64 " bytes into the allocation of %zu bytes at 0x%" PRIx64 " (number %" PRIu64
                   "), which was freed",
                   address - item->start, item->bytes, item->start, item->id);
    else if (next && (!below || next->start - address < address - below->start - below->bytes))
        kr__format(to, to_bytes, "%" PRIu64 " bytes before the allocation of %zu bytes at 0x%" PRIx64,
                   next->start - address, next->bytes, next->start);
    else if (below)
        kr__format(to, to_bytes,
                   "%" PRIu64 " bytes past the end of the allocation of %zu bytes at 0x%" PRIx64,
                   address - below->start - below->bytes, below->bytes, below->start);
    else
        kr__format(to, to_bytes, "in no allocation");
    pthread_rwlock_unlock(&memory_lock);
}
