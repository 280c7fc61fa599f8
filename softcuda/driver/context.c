/* SPDX-License-Identifier: Apache-2.0 */
/* Contexts: each thread's stack of them, the primary ones, and what ends with them. */
#include "softcuda/driver/driver.h"

#include <stdlib.h>

enum { MAX_DEPTH = 256, N_BURIED = 64 };
static _Thread_local sc_context *stack[MAX_DEPTH];
static _Thread_local unsigned depth;
static sc_context
    *buried[N_BURIED]; /* the last ones that ended: as a real driver, this one still knows them */
static unsigned next_buried;

sc_context *sc_current(void)
{
    return depth ? stack[depth - 1] : NULL;
}

CUresult sc_enter(sc_context **ret_context)
{
    TRY(sc_initialized());
    sc_context *context = sc_current();
    if (!context)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (!context->alive)
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    TRY(atomic_load(&sc_lost));
    *ret_context = context;
    return CUDA_SUCCESS;
}

CUresult sc_entered(void)
{
    sc_context *context;
    return sc_enter(&context);
}

CUresult sc_working(void)
{
    TRY(sc_initialized());
    return atomic_load(&sc_lost);
}

CUresult sc_working_here(void)
{
    sc_context *context = sc_current();
    TRY(sc_initialized());
    if (context && !context->alive)
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    return context ? atomic_load(&sc_lost) : CUDA_SUCCESS;
}

/* Dead contexts stay in the set for as long as somebody holds them. */
static sc_context *find_any(CUcontext handle)
{
    return handle ? sc_object_find(SC_CONTEXT, (uintptr_t)handle) : NULL;
}

/* With the mutex held. */
static void let_go(sc_context *context)
{
    if (context && --context->n_holders == 0)
        sc_object_drop(context);
}

static void bury(sc_context *context)
{
    let_go(buried[next_buried]);
    buried[next_buried] = context;
    next_buried = (next_buried + 1) % N_BURIED;
}

sc_context *sc_context_find(CUcontext handle)
{
    sc_context *context = find_any(handle);
    return context && context->alive ? context : NULL;
}

static CUresult wait_all(sc_context *context)
{
    sc_lock();
    CUresult result = sc_capture_context(context);
    if (!result)
        sc_task_wait_all(context);
    sc_unlock();
    return result ? result : atomic_load(&sc_lost);
}

/* ---- each thread's stack ---- */

/* With the mutex held. */
static void hold(sc_context *context)
{
    sc_thread_begin();
    context->n_holders++;
}

static sc_context *find_and_hold(CUcontext handle)
{
    sc_lock();
    sc_context *context = find_any(handle);
    if (context)
        hold(context);
    sc_unlock();
    return context;
}

/* Where nothing is current, nothing is done. */
static void pop(void)
{
    if (!depth)
        return;
    sc_lock();
    let_go(stack[--depth]);
    sc_unlock();
}

static pthread_key_t end_of_thread;
static bool end_is_told;

static void end_thread(void *unused)
{
    (void)unused;
    if (sc_initialized() == CUDA_ERROR_NOT_INITIALIZED) /* a forked child, which has no locks to take */
        return;
    unsigned begun = sc_call_begin();
    while (depth)
        pop();
    sc_stream_end_thread();
    sc_call_end(begun);
}

static void make_key(void)
{
    end_is_told = pthread_key_create(&end_of_thread, end_thread) == 0;
}

void sc_thread_begin(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_key);
    if (end_is_told)
        pthread_setspecific(end_of_thread, &end_of_thread);
}

/* ---- life and death ---- */

static void finish_context(sc_object *object)
{
    free(((sc_context *)object)->peers);
    free(object);
}

static void begin(sc_context *context, unsigned flags, unsigned api_version)
{
    static const size_t limits[SC_N_LIMITS] = {
        [CU_LIMIT_STACK_SIZE] = 1024,
        [CU_LIMIT_PRINTF_FIFO_SIZE] = 8650752,
        [CU_LIMIT_MALLOC_HEAP_SIZE] = 8388608,
        [CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT] = 2048,
        [CU_LIMIT_MAX_L2_FETCH_GRANULARITY] = 64,
    };
    for (unsigned i = 0; i < SC_N_LIMITS; i++)
        context->limits[i] = limits[i];
    context->limits[CU_LIMIT_PERSISTING_L2_CACHE_SIZE] =
        (size_t)context->device->chip->persisting_l2_bytes / 10 * 3;
    context->flags = flags;
    context->api_version = api_version;
    context->cache_config = CU_FUNC_CACHE_PREFER_NONE;
    context->shared_config = CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE;
    context->id = sc_next_id();
    context->legacy = sc_stream_create_legacy(context);
    context->is_ending = context->legacy == NULL;
    context->alive = context->legacy != NULL;
}

static sc_context *create(sc_device *device, unsigned flags, unsigned api_version, bool is_primary)
{
    sc_context *context = sc_object_create(sizeof *context, SC_CONTEXT, NULL, finish_context);
    if (!context)
        return NULL;
    context->device = device;
    context->is_primary = is_primary;
    context->n_holders = 1;
    begin(context, flags, api_version);
    if (context->alive && sc_object_publish(context, (uintptr_t)context))
        return context;
    sc_release(context->legacy);
    sc_release(context);
    return NULL;
}

/* ---- peers: contexts of other devices whose memory kernels here may touch ---- */

/* NULL: not enabled. */
static sc_context **find_peer(sc_context *context, const sc_context *peer)
{
    for (size_t i = 0; i < context->n_peers; i++)
        if (context->peers[i] == peer)
            return &context->peers[i];
    return NULL;
}

static bool add_peer(sc_context *context, sc_context *peer)
{
    sc_context **grown = realloc(context->peers, (context->n_peers + 1) * sizeof(sc_context *));
    if (!grown)
        return false;
    context->peers = grown;
    grown[context->n_peers++] = peer;
    sc_memory_allow_peer((unsigned)context->device->ordinal, (unsigned)peer->device->ordinal, true);
    return true;
}

/* The device's memory stays open while another of its contexts is a peer. */
static void remove_peer(sc_context *context, sc_context **peer)
{
    const sc_device *device = (*peer)->device;
    *peer = context->peers[--context->n_peers];
    for (size_t i = 0; i < context->n_peers; i++)
        if (context->peers[i]->device == device)
            return;
    sc_memory_allow_peer((unsigned)context->device->ordinal, (unsigned)device->ordinal, false);
}

static void forget_peer(void *context, void *ended)
{
    sc_context **peer = find_peer(context, ended);
    if (peer)
        remove_peer(context, peer);
}

/* Ends everything that lives in the context. false: another thread does. */
static bool end(sc_context *context)
{
    sc_lock();
    if (atomic_load(&sc_lost))
        context->called_off = true;
    sc_task_wait_all(context);
    bool is_mine = !atomic_exchange(&context->is_ending, true);
    context->alive = false;
    sc_unlock();
    if (!is_mine)
        return false;
    sc_leaks_tell(context);
    static const sc_kind kinds[] = {SC_STREAM, SC_EVENT, SC_MODULE, SC_LINK, SC_ARRAY, SC_BLOCK};
    for (size_t i = 0; i < KR_COUNT(kinds); i++) {
        for (sc_object *object; (object = sc_object_of(context, kinds[i]));) {
            if (kinds[i] == SC_MODULE)
                sc_module_unload((sc_module *)object);
            else if (kinds[i] == SC_STREAM)
                sc_stream_destroy((sc_stream *)object);
            else
                sc_object_drop(object);
        }
    }
    sc_stream_destroy(context->legacy);
    sc_lock();
    while (context->n_peers)
        remove_peer(context, context->peers);
    sc_objects_each(SC_CONTEXT, forget_peer, context);
    if (!context->is_primary)
        bury(context);
    sc_unlock();
    return true;
}

/* At most one way to wait, and bits that there are. */
static bool are_flags(unsigned flags)
{
    unsigned wait = flags & CU_CTX_SCHED_MASK;
    return !(flags & ~(unsigned)CU_CTX_FLAGS_MASK) && !(wait & (wait - 1));
}

static CUresult create_current(CUcontext *ret_context, unsigned flags, CUdevice ordinal, unsigned api_version)
{
    sc_device *device;
    TRY(sc_initialized());
    if (!ret_context)
        return CUDA_ERROR_INVALID_VALUE;
    TRY(sc_device_find(ordinal, &device));
    if (!are_flags(flags))
        return CUDA_ERROR_INVALID_VALUE;
    TRY(atomic_load(&sc_lost));
    if (depth == MAX_DEPTH)
        return CUDA_ERROR_OUT_OF_MEMORY;
    sc_context *context = create(device, flags, api_version, false);
    if (!context)
        return CUDA_ERROR_OUT_OF_MEMORY;
    sc_lock();
    hold(context);
    sc_unlock();
    stack[depth++] = context;
    *ret_context = (CUcontext)context;
    return CUDA_SUCCESS;
}

API(cuCtxCreate_v2, CUcontext *context, unsigned flags, CUdevice device)
{
    return create_current(context, flags, device, 3020);
}

/* Execution affinity is for servers that share a device. */
API(cuCtxCreate_v3, CUcontext *context, CUexecAffinityParam *affinities, int n_affinities, unsigned flags,
    CUdevice device)
{
    if (n_affinities > 0)
        return affinities ? CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY : CUDA_ERROR_INVALID_VALUE;
    return create_current(context, flags, device, 3020);
}

API(cuCtxCreate_v4, CUcontext *context, const CUctxCreateParams *params, unsigned flags, CUdevice device)
{
    if (params && params->cigParams)
        return sc_lacks("contexts shared with a graphics API");
    return params ? cuCtxCreate_v3(context, params->execAffinityParams, params->numExecAffinityParams, flags,
                                   device)
                  : create_current(context, flags, device, 3020);
}

API(cuCtxDestroy_v2, CUcontext handle)
{
    if (!handle)
        return CUDA_ERROR_INVALID_VALUE;
    TRY(sc_initialized());
    sc_context *context = find_any(handle);
    if (!context || context->is_primary)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (!context->alive || !end(context))
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    if (sc_current() == context)
        pop();
    return CUDA_SUCCESS;
}

API(cuCtxDestroy, CUcontext handle)
{
    return cuCtxDestroy_v2(handle);
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice) SC_ENTRY(cuDevicePrimaryCtxRelease_v2);

API(cuCtxAttach, CUcontext *ret_context, unsigned flags)
{
    sc_context *context;
    TRY(sc_enter(&context));
    if (!ret_context || flags)
        return CUDA_ERROR_INVALID_VALUE;
    sc_lock();
    context->n_attached++;
    sc_unlock();
    *ret_context = (CUcontext)context;
    return CUDA_SUCCESS;
}

/* Undoes an attachment, or else the creation. */
API(cuCtxDetach, CUcontext handle)
{
    TRY(sc_initialized());
    sc_context *context = find_any(handle);
    if (!context)
        return CUDA_ERROR_INVALID_CONTEXT;
    sc_lock();
    bool attached = context->n_attached > 0;
    context->n_attached -= attached;
    sc_unlock();
    if (attached)
        return CUDA_SUCCESS;
    return context->is_primary ? cuDevicePrimaryCtxRelease_v2(context->device->ordinal)
                               : cuCtxDestroy_v2(handle);
}

API(cuCtxPushCurrent_v2, CUcontext handle)
{
    TRY(sc_initialized());
    if (!handle)
        return CUDA_ERROR_INVALID_VALUE;
    if (depth == MAX_DEPTH)
        return find_any(handle) ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_INVALID_CONTEXT;
    sc_context *context = find_and_hold(handle);
    if (!context)
        return CUDA_ERROR_INVALID_CONTEXT;
    stack[depth++] = context;
    return CUDA_SUCCESS;
}

API(cuCtxPushCurrent, CUcontext handle)
{
    return cuCtxPushCurrent_v2(handle);
}

API(cuCtxPopCurrent_v2, CUcontext *ret_context)
{
    TRY(sc_initialized());
    if (!depth)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (ret_context)
        *ret_context = (CUcontext)sc_current();
    pop();
    return CUDA_SUCCESS;
}

API(cuCtxPopCurrent, CUcontext *ret_context)
{
    return cuCtxPopCurrent_v2(ret_context);
}

API(cuCtxSetCurrent, CUcontext handle)
{
    TRY(sc_initialized());
    sc_context *context = handle ? find_and_hold(handle) : NULL;
    if (handle && !context)
        return CUDA_ERROR_INVALID_CONTEXT;
    pop();
    if (context)
        stack[depth++] = context;
    return CUDA_SUCCESS;
}

API(cuCtxGetCurrent, CUcontext *ret_context)
{
    TRY(sc_initialized());
    if (!ret_context)
        return CUDA_ERROR_INVALID_VALUE;
    *ret_context = (CUcontext)sc_current();
    return CUDA_SUCCESS;
}

/* ---- primary contexts ---- */

static pthread_mutex_t primary_lock = PTHREAD_MUTEX_INITIALIZER;

static CUresult retain_primary(sc_device *device)
{
    if (!device->primary || !device->primary->alive)
        TRY(atomic_load(&sc_lost)); /* one that lives may still be retained */
    if (!device->primary)
        device->primary = create(device, device->primary_flags, 3020, true);
    else if (!device->primary->alive)
        begin(device->primary, device->primary_flags, 3020);
    if (!device->primary || !device->primary->alive)
        return CUDA_ERROR_OUT_OF_MEMORY;
    device->primary_refs++;
    return CUDA_SUCCESS;
}

API(cuDevicePrimaryCtxRetain, CUcontext *ret_context, CUdevice ordinal)
{
    sc_device *device;
    TRY(sc_initialized());
    if (!ret_context)
        return CUDA_ERROR_INVALID_VALUE;
    TRY(sc_device_find(ordinal, &device));
    pthread_mutex_lock(&primary_lock);
    CUresult result = retain_primary(device);
    pthread_mutex_unlock(&primary_lock);
    if (!result)
        *ret_context = (CUcontext)device->primary;
    return result;
}

static void end_primary(sc_device *device)
{
    if (device->primary && device->primary->alive)
        end(device->primary);
}

API(cuDevicePrimaryCtxRelease_v2, CUdevice ordinal)
{
    sc_device *device;
    TRY(sc_device_find(ordinal, &device));
    pthread_mutex_lock(&primary_lock);
    bool retained = device->primary_refs > 0;
    if (retained && --device->primary_refs == 0)
        end_primary(device);
    pthread_mutex_unlock(&primary_lock);
    return retained ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

API(cuDevicePrimaryCtxRelease, CUdevice ordinal)
{
    return cuDevicePrimaryCtxRelease_v2(ordinal);
}

/* Ends the context; who retained it still has to release it. */
API(cuDevicePrimaryCtxReset_v2, CUdevice ordinal)
{
    sc_device *device;
    TRY(sc_device_find(ordinal, &device));
    pthread_mutex_lock(&primary_lock);
    end_primary(device);
    device->primary_flags = 0;
    pthread_mutex_unlock(&primary_lock);
    return CUDA_SUCCESS;
}

API(cuDevicePrimaryCtxReset, CUdevice ordinal)
{
    return cuDevicePrimaryCtxReset_v2(ordinal);
}

API(cuDevicePrimaryCtxSetFlags_v2, CUdevice ordinal, unsigned flags)
{
    sc_device *device;
    TRY(sc_device_find(ordinal, &device));
    if (!are_flags(flags) || flags & CU_CTX_MAP_HOST)
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&primary_lock);
    device->primary_flags = flags;
    if (device->primary)
        device->primary->flags = flags;
    pthread_mutex_unlock(&primary_lock);
    return CUDA_SUCCESS;
}

API(cuDevicePrimaryCtxSetFlags, CUdevice ordinal, unsigned flags)
{
    return cuDevicePrimaryCtxSetFlags_v2(ordinal, flags);
}

API(cuDevicePrimaryCtxGetState, CUdevice ordinal, unsigned *flags, int *active)
{
    sc_device *device;
    TRY(sc_device_find(ordinal, &device));
    if (!flags || !active)
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&primary_lock);
    *active = device->primary && device->primary->alive;
    *flags = *active ? (device->primary_flags & ~(unsigned)CU_CTX_SYNC_MEMOPS) |
                           (device->primary->flags & CU_CTX_SYNC_MEMOPS)
                     : device->primary_flags;
    pthread_mutex_unlock(&primary_lock);
    return CUDA_SUCCESS;
}

/* ---- questions ---- */

/* The context named, or the current one for NULL. */
static CUresult named_or_current(CUcontext handle, sc_context **ret_context)
{
    if (!handle)
        return sc_enter(ret_context);
    TRY(sc_initialized());
    *ret_context = sc_context_find(handle);
    return *ret_context ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

API(cuCtxGetDevice, CUdevice *device)
{
    TRY(sc_initialized());
    sc_context *context = sc_current();
    if (!context)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (!device)
        return CUDA_ERROR_INVALID_VALUE;
    *device = context->device->ordinal;
    return CUDA_SUCCESS;
}

/* Programs older than CUDA 13 that try "_v2" after every name (Numba) call this one and cuCtxSynchronize_v2
 * without the context. So what is no context stands for the current one, under every version played. */
API(cuCtxGetDevice_v2, CUdevice *device, CUcontext handle)
{
    TRY(sc_initialized());
    sc_context *context = sc_driver_version() < 13000 ? NULL : sc_context_find(handle);
    if (!context)
        return cuCtxGetDevice(device);
    if (!device)
        return CUDA_ERROR_INVALID_VALUE;
    *device = context->device->ordinal;
    return CUDA_SUCCESS;
}

API(cuCtxSynchronize, void)
{
    sc_context *context;
    TRY(sc_enter(&context));
    return wait_all(context);
}

API(cuCtxSynchronize_v2, CUcontext handle)
{
    TRY(sc_initialized());
    sc_context *context = sc_driver_version() < 13000 ? NULL : sc_context_find(handle);
    if (!context)
        return cuCtxSynchronize();
    TRY(atomic_load(&sc_lost));
    return wait_all(context);
}

API(cuCtxGetFlags, unsigned *flags)
{
    TRY(sc_initialized());
    sc_context *context = sc_current();
    if (!context)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (!flags)
        return CUDA_ERROR_INVALID_VALUE;
    *flags = context->flags | (context->is_primary ? CU_CTX_MAP_HOST : 0);
    return CUDA_SUCCESS;
}

API(cuCtxSetFlags, unsigned flags)
{
    sc_context *context;
    TRY(sc_initialized());
    if (!sc_current())
        return CUDA_ERROR_INVALID_CONTEXT;
    context = sc_current();
    if (!are_flags(flags))
        return CUDA_ERROR_INVALID_VALUE;
    context->flags = flags & ~(unsigned)CU_CTX_MAP_HOST;
    return CUDA_SUCCESS;
}

API(cuCtxGetId, CUcontext handle, unsigned long long *id)
{
    sc_context *context = find_any(handle);
    if (context && !context->alive)
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    TRY(named_or_current(handle, &context));
    if (!id)
        return CUDA_ERROR_INVALID_VALUE;
    *id = context->id;
    return CUDA_SUCCESS;
}

API(cuCtxGetApiVersion, CUcontext handle, unsigned *version)
{
    sc_context *context;
    TRY(named_or_current(handle, &context));
    if (!version)
        return CUDA_ERROR_INVALID_VALUE;
    *version = context->api_version;
    return CUDA_SUCCESS;
}

/* Limits that the chips since sm_70 do not have. */
static bool is_limit_gone(CUlimit limit)
{
    return limit == CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH || limit == CU_LIMIT_CIG_SHMEM_FALLBACK_ENABLED;
}

API(cuCtxGetLimit, size_t *value, CUlimit limit)
{
    sc_context *context;
    TRY(sc_enter(&context));
    if (!value || limit >= CU_LIMIT_MAX)
        return CUDA_ERROR_INVALID_VALUE;
    if (is_limit_gone(limit))
        return CUDA_ERROR_UNSUPPORTED_LIMIT;
    *value =
        limit == CU_LIMIT_SHMEM_SIZE ? (size_t)context->device->chip->shared_optin : context->limits[limit];
    return CUDA_SUCCESS;
}

/* What each limit may be: from the least, in units, below the end. */
static CUresult adjust_limit(const sc_chip *chip, CUlimit limit, size_t *value)
{
    enum { PERSISTING_UNITS = 10 };
    static const struct {
        size_t least, unit, end;
    } rules[SC_N_LIMITS] = {
        [CU_LIMIT_STACK_SIZE] = {0, 16, 524288},
        [CU_LIMIT_PRINTF_FIFO_SIZE] = {524288, 256, SIZE_MAX},
        [CU_LIMIT_MALLOC_HEAP_SIZE] = {4194304, 65536, SIZE_MAX},
        [CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT] = {32, 1, SIZE_MAX},
        [CU_LIMIT_MAX_L2_FETCH_GRANULARITY] = {0, 1, 129},
    };
    size_t least = rules[limit].least, unit = rules[limit].unit, end = rules[limit].end;
    if (limit == CU_LIMIT_PERSISTING_L2_CACHE_SIZE) {
        unit = (size_t)chip->persisting_l2_bytes / PERSISTING_UNITS;
        end = (size_t)chip->persisting_l2_bytes + 1;
        unit = unit ? unit : 1;
    }
    if (*value >= end)
        return CUDA_ERROR_INVALID_VALUE;
    *value = *value > least ? *value : least;
    size_t over = *value % unit;
    if (over && __builtin_add_overflow(*value, unit - over, value))
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

API(cuCtxSetLimit, CUlimit limit, size_t value)
{
    sc_context *context;
    TRY(sc_enter(&context));
    if (limit >= CU_LIMIT_MAX)
        return CUDA_ERROR_INVALID_VALUE;
    if (is_limit_gone(limit))
        return CUDA_ERROR_UNSUPPORTED_LIMIT;
    if (limit == CU_LIMIT_SHMEM_SIZE || limit == CU_LIMIT_CIG_ENABLED)
        return CUDA_ERROR_NOT_PERMITTED;
    TRY(adjust_limit(context->device->chip, limit, &value));
    TRY(sc_stream_permitted());
    context->limits[limit] = value;
    return CUDA_SUCCESS;
}

API(cuCtxGetCacheConfig, CUfunc_cache *config)
{
    sc_context *context;
    TRY(sc_enter(&context));
    if (!config)
        return CUDA_ERROR_INVALID_VALUE;
    *config = context->cache_config;
    return CUDA_SUCCESS;
}

API(cuCtxSetCacheConfig, CUfunc_cache config)
{
    sc_context *context;
    TRY(sc_enter(&context));
    if (config > CU_FUNC_CACHE_PREFER_EQUAL)
        return CUDA_ERROR_INVALID_VALUE;
    context->cache_config = config;
    return CUDA_SUCCESS;
}

API(cuCtxGetSharedMemConfig, CUsharedconfig *config)
{
    sc_context *context;
    TRY(sc_enter(&context));
    if (!config)
        return CUDA_ERROR_INVALID_VALUE;
    *config = context->shared_config;
    return CUDA_SUCCESS;
}

API(cuCtxSetSharedMemConfig, CUsharedconfig config)
{
    sc_context *context;
    TRY(sc_enter(&context));
    if (config > CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE)
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS; /* no chip since sm_5x lets it be changed */
}

API(cuCtxGetStreamPriorityRange, int *least, int *greatest)
{
    TRY(sc_entered());
    if (least)
        *least = 0;
    if (greatest)
        *greatest = -5;
    return CUDA_SUCCESS;
}

API(cuCtxResetPersistingL2Cache, void)
{
    return sc_entered();
}

API(cuCtxGetExecAffinity, CUexecAffinityParam *affinity, CUexecAffinityType type)
{
    sc_context *context;
    TRY(sc_enter(&context));
    if (!affinity)
        return CUDA_ERROR_INVALID_VALUE;
    if (type != CU_EXEC_AFFINITY_TYPE_SM_COUNT)
        return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
    affinity->type = type;
    affinity->param.val = (unsigned)context->device->chip->multiprocessors;
    return CUDA_SUCCESS;
}

/* The current context, and another that lives. */
static CUresult find_peers(CUcontext handle, sc_context **ret_context, sc_context **ret_peer)
{
    TRY(sc_enter(ret_context));
    *ret_peer = find_any(handle);
    if (!*ret_peer)
        return CUDA_ERROR_INVALID_CONTEXT;
    return (*ret_peer)->alive ? CUDA_SUCCESS : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

API(cuCtxEnablePeerAccess, CUcontext handle, unsigned flags)
{
    sc_context *context, *peer;
    TRY(find_peers(handle, &context, &peer));
    if (flags)
        return CUDA_ERROR_INVALID_VALUE;
    if (peer->device == context->device || sc_asked.peers_refused)
        return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
    sc_lock();
    CUresult result = peer->is_ending            ? CUDA_ERROR_CONTEXT_IS_DESTROYED
                      : find_peer(context, peer) ? CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED
                      : add_peer(context, peer)  ? CUDA_SUCCESS
                                                 : CUDA_ERROR_OUT_OF_MEMORY;
    sc_unlock();
    return result;
}

API(cuCtxDisablePeerAccess, CUcontext handle)
{
    sc_context *context, *peer;
    TRY(find_peers(handle, &context, &peer));
    sc_lock();
    sc_context **enabled = find_peer(context, peer);
    if (enabled)
        remove_peer(context, enabled);
    sc_unlock();
    return enabled ? CUDA_SUCCESS : CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
}

/* ---- profiling: there is no profiler to talk to ---- */

API(cuProfilerInitialize, const char *config, const char *output, int mode)
{
    (void)config, (void)output, (void)mode;
    return CUDA_ERROR_NOT_SUPPORTED;
}

API(cuProfilerStart, void)
{
    return sc_entered();
}

API(cuProfilerStop, void)
{
    return sc_entered();
}
