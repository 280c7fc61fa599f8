/* SPDX-License-Identifier: Apache-2.0 */
/* Streams, events, host functions: what comes after what. */
#include "softcuda/driver/driver.h"

#include <stdlib.h>
#include <string.h>

uint64_t sc_next_id(void)
{
    static _Atomic uint64_t last;
    return atomic_fetch_add(&last, 1) + 1;
}

uint64_t sc_thread_id(void)
{
    static _Thread_local uint64_t id;
    id = id ? id : sc_next_id();
    return id;
}

/* ---- streams ---- */

static bool is_legacy(const sc_stream *stream)
{
    return stream == stream->object.context->legacy;
}

static void finish_stream(sc_object *object)
{
    sc_stream *stream = (sc_stream *)object;
    sc_task_release(stream->last);
    free(stream->edges);
    free(stream->tails.items);
    free(stream);
}

static sc_stream *make(sc_context *context, unsigned flags, int priority, uint64_t thread)
{
    sc_stream *stream = sc_object_create(sizeof *stream, SC_STREAM, context, finish_stream);
    if (!stream)
        return NULL;
    stream->flags = flags;
    stream->priority = priority;
    stream->sync_policy = (CUsynchronizationPolicy)-1; /* none of its own */
    stream->domain_map.remote = 1;
    stream->id = sc_next_id();
    stream->thread = thread;
    sc_lock();
    stream->next = context->streams;
    context->streams = stream;
    sc_unlock();
    return stream;
}

/* With the mutex held. */
static void unlink_stream(sc_stream *stream)
{
    sc_stream **link = &stream->object.context->streams;
    while (*link && *link != stream)
        link = &(*link)->next;
    if (*link)
        *link = stream->next;
}

sc_stream *sc_stream_create_legacy(sc_context *context)
{
    return make(context, CU_STREAM_DEFAULT, 0, 0);
}

sc_stream *sc_stream_create(sc_context *context, unsigned flags, int priority, uint64_t thread)
{
    sc_stream *stream = make(context, flags, priority, thread);
    if (!stream || sc_object_publish(stream, (uintptr_t)stream))
        return stream;
    sc_lock();
    unlink_stream(stream);
    sc_unlock();
    sc_release(stream);
    return NULL;
}

/* Work already given to it still completes: the tasks do not need the stream. */
void sc_stream_destroy(sc_stream *stream)
{
    sc_lock();
    if (is_legacy(stream) || sc_object_retract(stream)) {
        sc_capture_leave(stream);
        unlink_stream(stream);
        sc_release(stream);
    }
    sc_unlock();
}

CUresult sc_stream_check(const sc_stream *stream)
{
    if (stream->object.context->is_ending)
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    return sc_has_ended(stream) ? CUDA_ERROR_INVALID_HANDLE : CUDA_SUCCESS;
}

/* ---- threads' own default streams ---- */

static bool is_done(const sc_stream *stream)
{
    return !stream->last || stream->last->state == SC_TASK_DONE;
}

typedef struct thread_search {
    uint64_t thread;
    sc_stream *idle; /* one that its thread has left */
} thread_search;

static void leave_stream(void *object, void *user)
{
    sc_stream *stream = object;
    thread_search *search = user;
    stream->is_left |= stream->thread && stream->thread == search->thread;
    if (stream->is_left && is_done(stream))
        search->idle = stream;
}

/* The legacy stream comes after what such a stream still has to do, so until then it is not destroyed.
 * `thread` has ended; 0: none more has. */
static void destroy_left(uint64_t thread)
{
    thread_search search = {thread, NULL};
    do {
        search.idle = NULL;
        sc_lock();
        sc_objects_each(SC_STREAM, leave_stream, &search);
        sc_unlock();
        if (search.idle)
            sc_stream_destroy(search.idle);
    } while (search.idle);
}

static _Thread_local uint64_t own_streams; /* this thread's id, where it may have any */

void sc_stream_end_thread(void)
{
    if (own_streams)
        destroy_left(own_streams);
}

/* The calling thread's own default stream in the context. */
static sc_stream *per_thread(sc_context *context)
{
    uint64_t thread = sc_thread_id();
    sc_stream *found = NULL;
    sc_lock();
    for (sc_stream *s = context->streams; s && !found; s = s->next)
        found = s->thread == thread ? s : NULL;
    sc_unlock();
    if (found)
        return found;
    destroy_left(0);
    own_streams = thread;
    sc_thread_begin();
    return sc_stream_create(context, CU_STREAM_DEFAULT, 0, thread);
}

CUresult sc_stream_enter(CUstream handle, sc_stream **ret_stream)
{
    sc_context *context;
    sc_stream *stream;
    if (!handle || handle == CU_STREAM_LEGACY) {
        TRY(sc_enter(&context));
        stream = context->legacy;
    } else if (handle == CU_STREAM_PER_THREAD) {
        TRY(sc_enter(&context));
        stream = per_thread(context);
        if (!stream)
            return CUDA_ERROR_OUT_OF_MEMORY;
    } else {
        TRY(sc_initialized());
        stream = sc_object_find(SC_STREAM, (uintptr_t)handle);
        if (!stream)
            return CUDA_ERROR_INVALID_HANDLE;
        TRY(sc_working());
    }
    *ret_stream = stream;
    return CUDA_SUCCESS;
}

static bool blocks(const sc_stream *stream)
{
    return !(stream->flags & CU_STREAM_NON_BLOCKING);
}

/* Its own last task; the legacy stream comes after every blocking stream, and they after it. */
CUresult sc_stream_before(sc_stream *stream, sc_task ***ret_before, size_t *ret_n)
{
    sc_context *context = stream->object.context;
    const sc_stream *legacy = context->legacy;
    TRY(sc_stream_check(stream));
    size_t n = 2;
    for (sc_stream *s = context->streams; s; s = s->next)
        n++;
    sc_task **before = calloc(n, sizeof(sc_task *));
    if (!before)
        return CUDA_ERROR_OUT_OF_MEMORY;
    n = 0;
    if (stream->last)
        before[n++] = stream->last;
    if (is_legacy(stream)) {
        for (sc_stream *s = context->streams; s; s = s->next)
            if (s != stream && blocks(s) && s->last)
                before[n++] = s->last;
    } else if (blocks(stream) && legacy->last) {
        before[n++] = legacy->last;
    }
    *ret_before = before;
    *ret_n = n;
    return CUDA_SUCCESS;
}

/* The stream's next task, which is its `last` then; with the mutex held. Consumes the work (NULL: out of
 * memory). */
static CUresult append(sc_stream *stream, sc_work *work, sc_task *extra)
{
    sc_task **before;
    size_t n;
    if (!work)
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = sc_stream_before(stream, &before, &n);
    if (result) {
        sc_work_release(work);
        return result;
    }
    if (extra)
        before[n++] = extra;
    sc_task *task = sc_task_submit(stream->object.context, work, before, n);
    free(before);
    if (!task)
        return CUDA_ERROR_OUT_OF_MEMORY;
    sc_task_release(stream->last);
    stream->last = task;
    return CUDA_SUCCESS;
}

static CUresult submit(sc_stream *stream, sc_work *work, bool wait)
{
    CUresult result = is_legacy(stream) ? sc_capture_implicit(stream->object.context) : CUDA_SUCCESS;
    if (result) {
        sc_work_release(work);
        return result;
    }
    if (stream->capture && wait) {
        sc_work_release(work);
        return sc_capture_invalidate(stream->capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    }
    if (stream->capture)
        return sc_capture_add(stream, work);
    const bool waits = wait || work->waits;
    TRY(append(stream, work, NULL));
    if (waits)
        sc_task_wait(stream->last);
    return waits ? atomic_load(&sc_lost) : CUDA_SUCCESS;
}

CUresult sc_stream_submit(sc_stream *stream, sc_work *work, bool wait)
{
    if (!work)
        return CUDA_ERROR_OUT_OF_MEMORY;
    sc_lock();
    CUresult result = submit(stream, work, wait);
    sc_unlock();
    return result;
}

CUresult sc_stream_permitted(void)
{
    sc_lock();
    CUresult result = sc_capture_forbids();
    sc_unlock();
    return result;
}

int sc_priority(int asked)
{
    enum { GREATEST = -5, LEAST = 0 };
    return asked < GREATEST ? GREATEST : asked > LEAST ? LEAST : asked;
}

static CUresult create_stream(CUstream *ret_stream, unsigned flags, int priority)
{
    sc_context *context;
    TRY(sc_enter(&context));
    if (!ret_stream || flags & ~(unsigned)CU_STREAM_NON_BLOCKING)
        return CUDA_ERROR_INVALID_VALUE;
    sc_stream *stream = sc_stream_create(context, flags, sc_priority(priority), 0);
    if (!stream)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *ret_stream = (CUstream)stream;
    return CUDA_SUCCESS;
}

API(cuStreamCreate, CUstream *stream, unsigned flags)
{
    return create_stream(stream, flags, 0);
}

API(cuStreamCreateWithPriority, CUstream *stream, unsigned flags, int priority)
{
    return create_stream(stream, flags, priority);
}

API(cuStreamDestroy_v2, CUstream handle)
{
    if (!handle)
        return CUDA_ERROR_INVALID_HANDLE;
    TRY(sc_initialized());
    sc_stream *stream = sc_object_find(SC_STREAM, (uintptr_t)handle);
    if (!stream || is_legacy(stream) || stream->thread)
        return CUDA_ERROR_INVALID_HANDLE;
    TRY(sc_working());
    sc_stream_destroy(stream);
    return CUDA_SUCCESS;
}

API(cuStreamDestroy, CUstream handle)
{
    return cuStreamDestroy_v2(handle);
}

/* Enters and finds the stream that the parameter `stream` names. */
#define FIND_STREAM \
    sc_stream *s;   \
    TRY(sc_stream_enter(stream, &s))

/* May a caller wait for the stream, or ask whether it is done? Not while something is being captured. */
static CUresult check_idle(sc_stream *stream)
{
    if (is_legacy(stream))
        TRY(sc_capture_implicit(stream->object.context));
    if (stream->capture)
        return sc_capture_invalidate(stream->capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    return sc_capture_forbids();
}

/* What must be done for the stream to be: its own last task, and for the legacy one the blocking streams'
 * too. */
static CUresult last_of(sc_stream *stream, sc_task ***ret_before, size_t *ret_n)
{
    TRY(sc_stream_before(stream, ret_before, ret_n));
    if (!is_legacy(stream))
        *ret_n = stream->last != NULL;
    return CUDA_SUCCESS;
}

API_STREAM(cuStreamSynchronize, (CUstream stream), (stream))
{
    FIND_STREAM;
    sc_lock();
    CUresult result = check_idle(s);
    sc_task **before;
    size_t n = 0;
    if (!result)
        result = last_of(s, &before, &n);
    if (!result) {
        for (size_t i = 0; i < n; i++)
            sc_task_retain(before[i]);
        for (size_t i = 0; i < n; i++) {
            sc_task_wait(before[i]);
            sc_task_release(before[i]);
        }
        free(before);
    }
    sc_unlock();
    return result ? result : atomic_load(&sc_lost);
}

API_STREAM(cuStreamQuery, (CUstream stream), (stream))
{
    FIND_STREAM;
    sc_lock();
    CUresult result = check_idle(s);
    sc_task **before = NULL;
    size_t n = 0;
    if (!result)
        result = last_of(s, &before, &n);
    for (size_t i = 0; i < n && !result; i++)
        if (before[i]->state != SC_TASK_DONE)
            result = CUDA_ERROR_NOT_READY;
    free(before);
    sc_unlock();
    return result ? result : atomic_load(&sc_lost);
}

API_STREAM(cuStreamGetPriority, (CUstream stream, int *priority), (stream, priority))
{
    FIND_STREAM;
    if (!priority)
        return CUDA_ERROR_INVALID_VALUE;
    sc_lock();
    *priority = s->priority;
    sc_unlock();
    return CUDA_SUCCESS;
}

API_STREAM(cuStreamGetFlags, (CUstream stream, unsigned *flags), (stream, flags))
{
    FIND_STREAM;
    if (!flags)
        return CUDA_ERROR_INVALID_VALUE;
    *flags = s->flags;
    return CUDA_SUCCESS;
}

API_STREAM(cuStreamGetId, (CUstream stream, unsigned long long *id), (stream, id))
{
    FIND_STREAM;
    if (!id)
        return CUDA_ERROR_INVALID_VALUE;
    *id = s->id;
    return CUDA_SUCCESS;
}

API_STREAM(cuStreamGetCtx, (CUstream stream, CUcontext *ret_context), (stream, ret_context))
{
    FIND_STREAM;
    if (!ret_context)
        return CUDA_ERROR_INVALID_VALUE;
    *ret_context = (CUcontext)s->object.context;
    return CUDA_SUCCESS;
}

API_STREAM(cuStreamGetCtx_v2, (CUstream stream, CUcontext *ret_context, void **ret_green),
           (stream, ret_context, ret_green))
{
    FIND_STREAM;
    if (!ret_context)
        return CUDA_ERROR_INVALID_VALUE;
    *ret_context = (CUcontext)s->object.context;
    if (ret_green)
        *ret_green = NULL;
    return CUDA_SUCCESS;
}

API_STREAM(cuStreamGetDevice, (CUstream stream, CUdevice *device), (stream, device))
{
    FIND_STREAM;
    if (!device)
        return CUDA_ERROR_INVALID_VALUE;
    *device = s->object.context->device->ordinal;
    return CUDA_SUCCESS;
}

/* ---- attributes ---- */

static CUresult check_window(const CUaccessPolicyWindow *window)
{
    const size_t most = 134217728; /* CU_DEVICE_ATTRIBUTE_MAX_ACCESS_POLICY_WINDOW_SIZE */
    bool good = window->hitRatio >= 0 && window->hitRatio <= 1 && window->num_bytes <= most &&
                window->missProp != CU_ACCESS_PROPERTY_PERSISTING;
    return good ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult sc_attribute_check(CUlaunchAttributeID id, const CUlaunchAttributeValue *value)
{
    enum { DOMAINS = 4 };
    switch (id) {
    case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
        return check_window(&value->accessPolicyWindow);
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
        return value->memSyncDomainMap.default_ < DOMAINS && value->memSyncDomainMap.remote < DOMAINS
                   ? CUDA_SUCCESS
                   : CUDA_ERROR_INVALID_VALUE;
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
        return value->memSyncDomain <= CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE ? CUDA_SUCCESS
                                                                        : CUDA_ERROR_INVALID_VALUE;
    default:
        return CUDA_SUCCESS;
    }
}

/* With the mutex held. */
static CUresult get_attribute(const sc_stream *s, CUlaunchAttributeID id, CUlaunchAttributeValue *value)
{
    switch (id) {
    case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
        value->accessPolicyWindow = s->window;
        return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
        value->syncPolicy = s->sync_policy;
        return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_PRIORITY:
        value->priority = s->priority;
        return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
        value->memSyncDomainMap = s->domain_map;
        return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
        value->memSyncDomain = s->domain;
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

API_STREAM(cuStreamGetAttribute, (CUstream stream, CUlaunchAttributeID id, CUlaunchAttributeValue *value),
           (stream, id, value))
{
    FIND_STREAM;
    if (!value)
        return CUDA_ERROR_INVALID_VALUE;
    sc_lock();
    CUresult result = get_attribute(s, id, value);
    sc_unlock();
    return result;
}

/* With the mutex held. */
static CUresult set_attribute(sc_stream *s, CUlaunchAttributeID id, const CUlaunchAttributeValue *value)
{
    switch (id) {
    case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
        s->window = value->accessPolicyWindow;
        return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
        if (value->syncPolicy < CU_SYNC_POLICY_AUTO || value->syncPolicy > CU_SYNC_POLICY_BLOCKING_SYNC)
            return CUDA_ERROR_INVALID_VALUE;
        s->sync_policy = value->syncPolicy;
        return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_PRIORITY:
        s->priority = sc_priority(value->priority);
        return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
        s->domain_map = value->memSyncDomainMap;
        return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
        s->domain = value->memSyncDomain;
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

API_STREAM(cuStreamSetAttribute,
           (CUstream stream, CUlaunchAttributeID id, const CUlaunchAttributeValue *value),
           (stream, id, value))
{
    FIND_STREAM;
    if (!value)
        return CUDA_ERROR_INVALID_VALUE;
    TRY(sc_attribute_check(id, value));
    sc_lock();
    CUresult result = set_attribute(s, id, value);
    sc_unlock();
    return result;
}

static CUresult copy_attributes(CUstream to, CUstream from)
{
    sc_stream *a, *b;
    TRY(sc_stream_enter(to, &a));
    TRY(sc_stream_enter(from, &b));
    sc_lock();
    a->window = b->window;
    a->sync_policy = b->sync_policy;
    a->domain_map = b->domain_map;
    a->domain = b->domain;
    sc_unlock();
    return CUDA_SUCCESS;
}

API(cuStreamCopyAttributes, CUstream to, CUstream from)
{
    return copy_attributes(to, from);
}

API(cuStreamCopyAttributes_ptsz, CUstream to, CUstream from)
{
    return copy_attributes(to ? to : CU_STREAM_PER_THREAD, from ? from : CU_STREAM_PER_THREAD);
}

/* ---- host functions ---- */

typedef struct host_work {
    sc_work work;
    CUhostFn function;
    CUstreamCallback callback;
    CUstream stream;
    void *user;
} host_work;

static CUresult run_host(sc_work *work)
{
    host_work *host = (host_work *)work;
    sc_in_callback = true;
    if (host->callback)
        host->callback(host->stream, atomic_load(&sc_lost), host->user);
    else
        host->function(host->user);
    sc_in_callback = false;
    return CUDA_SUCCESS;
}

sc_work *sc_host_work_create(CUhostFn function, void *user)
{
    host_work *host = sc_work_create(sizeof *host, CU_GRAPH_NODE_TYPE_HOST, run_host, NULL);
    if (host) {
        host->function = function;
        host->user = user;
    }
    return (sc_work *)host;
}

CUDA_HOST_NODE_PARAMS sc_host_params(const sc_work *work)
{
    const host_work *host = (const host_work *)work;
    return (CUDA_HOST_NODE_PARAMS){host->function, host->user};
}

API_STREAM(cuLaunchHostFunc, (CUstream stream, CUhostFn function, void *user), (stream, function, user))
{
    if (!function)
        return CUDA_ERROR_INVALID_VALUE;
    FIND_STREAM;
    return sc_stream_submit(s, sc_host_work_create(function, user), false);
}

API_STREAM(cuStreamAddCallback, (CUstream stream, CUstreamCallback callback, void *user, unsigned flags),
           (stream, callback, user, flags))
{
    FIND_STREAM;
    if (!callback || flags)
        return CUDA_ERROR_INVALID_VALUE;
    sc_lock();
    CUresult result =
        s->capture ? sc_capture_invalidate(s->capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED) : CUDA_SUCCESS;
    sc_unlock();
    TRY(result);
    host_work *host = sc_work_create(sizeof *host, CU_GRAPH_NODE_TYPE_HOST, run_host, NULL);
    if (host) {
        host->work.always = true; /* it is told of the fault */
        host->callback = callback;
        host->stream = stream;
        host->user = user;
    }
    return sc_stream_submit(s, (sc_work *)host, false);
}

/* ---- events ---- */

static void finish_event(sc_object *object)
{
    sc_event *event = (sc_event *)object;
    sc_task_release(event->task);
    free(event->nodes.items);
    free(event);
}

API(cuEventCreate, CUevent *ret_event, unsigned flags)
{
    sc_context *context;
    TRY(sc_enter(&context));
    unsigned all = CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS;
    if (!ret_event || flags & ~all)
        return CUDA_ERROR_INVALID_VALUE;
    if (flags & CU_EVENT_INTERPROCESS && !(flags & CU_EVENT_DISABLE_TIMING))
        return CUDA_ERROR_INVALID_VALUE;
    sc_event *event = sc_object_create(sizeof *event, SC_EVENT, context, finish_event);
    if (!event)
        return CUDA_ERROR_OUT_OF_MEMORY;
    event->flags = flags;
    if (!sc_object_publish(event, (uintptr_t)event)) {
        sc_object_discard(event);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *ret_event = (CUevent)event;
    return CUDA_SUCCESS;
}

/* Enters and finds the event that the parameter `handle` names. */
#define FIND_EVENT                                                 \
    if (!handle)                                                   \
        return CUDA_ERROR_INVALID_HANDLE;                          \
    TRY(sc_initialized());                                         \
    sc_event *event = sc_object_find(SC_EVENT, (uintptr_t)handle); \
    if (!event)                                                    \
        return CUDA_ERROR_INVALID_HANDLE;                          \
    TRY(sc_working())

API(cuEventDestroy_v2, CUevent handle)
{
    FIND_EVENT;
    sc_lock();
    sc_capture_forget_event(event);
    sc_object_drop(event);
    sc_unlock();
    return CUDA_SUCCESS;
}

API(cuEventDestroy, CUevent handle)
{
    return cuEventDestroy_v2(handle);
}

static CUresult record(sc_stream *stream, sc_event *event)
{
    if (stream->capture)
        return sc_capture_record(stream, event);
    TRY(is_legacy(stream) ? sc_capture_implicit(stream->object.context) : CUDA_SUCCESS);
    TRY(append(stream, sc_work_nothing(CU_GRAPH_NODE_TYPE_EVENT_RECORD), NULL));
    sc_capture_forget_event(event);
    sc_task_release(event->task);
    event->task = sc_task_retain(stream->last);
    return CUDA_SUCCESS;
}

API_STREAM(cuEventRecord, (CUevent handle, CUstream stream), (handle, stream))
{
    FIND_STREAM;
    FIND_EVENT;
    if (s->object.context != event->object.context)
        return CUDA_ERROR_INVALID_HANDLE;
    sc_lock();
    CUresult result = record(s, event);
    sc_unlock();
    return result;
}

static void finish_event_work(sc_work *work)
{
    sc_release(((sc_event_work *)work)->event);
}

static CUresult run_event_work(sc_work *work)
{
    (void)work; /* what comes before and after it is all there is to it */
    return CUDA_SUCCESS;
}

sc_work *sc_event_work_create(sc_event *event, CUgraphNodeType type)
{
    sc_event *held = sc_retain(event);
    sc_event_work *work = held ? sc_work_create(sizeof *work, type, run_event_work, finish_event_work) : NULL;
    if (work)
        work->event = held;
    else
        sc_release(held);
    return (sc_work *)work;
}

/* May a launch record this event when it is done? Not where its time would be that of another moment. */
CUresult sc_event_check(CUevent handle, int flags)
{
    enum { EXTERNAL = 1 };
    sc_event *event = sc_object_find(SC_EVENT, (uintptr_t)handle);
    if (!event)
        return CUDA_ERROR_INVALID_HANDLE;
    if (flags & ~EXTERNAL)
        return CUDA_ERROR_INVALID_VALUE;
    return event->flags & CU_EVENT_DISABLE_TIMING ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED;
}

CUresult sc_event_record(CUevent handle, sc_stream *stream)
{
    sc_event *event = sc_object_find(SC_EVENT, (uintptr_t)handle);
    if (!event || event->object.context != stream->object.context)
        return CUDA_ERROR_INVALID_HANDLE;
    sc_lock();
    CUresult result = record(stream, event);
    sc_unlock();
    return result;
}

/* With the mutex held. An external node is one that a graph has and a stream outside a capture has not. */
static CUresult check_external(const sc_stream *stream, unsigned flags)
{
    enum { EXTERNAL = 1 };
    if (flags & ~(unsigned)EXTERNAL)
        return CUDA_ERROR_INVALID_VALUE;
    return flags && !stream->capture ? CUDA_ERROR_ILLEGAL_STATE : CUDA_SUCCESS;
}

static CUresult record_with_flags(sc_stream *stream, sc_event *event, unsigned flags)
{
    TRY(check_external(stream, flags));
    if (stream->object.context != event->object.context)
        return CUDA_ERROR_INVALID_HANDLE;
    return flags ? sc_capture_add(stream, sc_event_work_create(event, CU_GRAPH_NODE_TYPE_EVENT_RECORD))
                 : record(stream, event);
}

API_STREAM(cuEventRecordWithFlags, (CUevent handle, CUstream stream, unsigned flags), (handle, stream, flags))
{
    FIND_STREAM;
    FIND_EVENT;
    sc_lock();
    CUresult result = record_with_flags(s, event, flags);
    sc_unlock();
    return result;
}

static CUresult wait_for(sc_stream *stream, sc_event *event, unsigned flags)
{
    TRY(check_external(stream, flags));
    if (event->capture_ended)
        return CUDA_ERROR_INVALID_VALUE;
    if (flags)
        return sc_capture_add(stream, sc_event_work_create(event, CU_GRAPH_NODE_TYPE_WAIT_EVENT));
    if (event->capture)
        return sc_capture_wait(stream, event);
    if (stream->capture)
        return event->task ? sc_capture_invalidate(stream->capture, CUDA_ERROR_STREAM_CAPTURE_ISOLATION)
                           : CUDA_SUCCESS;
    if (event->task && event->task->state != SC_TASK_DONE)
        return append(stream, sc_work_nothing(CU_GRAPH_NODE_TYPE_WAIT_EVENT), event->task);
    return CUDA_SUCCESS;
}

API_STREAM(cuStreamWaitEvent, (CUstream stream, CUevent handle, unsigned flags), (stream, handle, flags))
{
    FIND_STREAM;
    FIND_EVENT;
    sc_lock();
    CUresult result = wait_for(s, event, flags);
    sc_unlock();
    return result;
}

bool sc_stream_is_captured(const sc_stream *stream)
{
    sc_lock();
    bool is_captured = stream->capture != NULL;
    sc_unlock();
    return is_captured;
}

CUresult sc_stream_follow(sc_stream *stream, sc_stream *other)
{
    CUresult result = CUDA_SUCCESS;
    sc_lock();
    if (stream->capture || other->capture)
        result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    else if (!is_done(other))
        result = append(stream, sc_work_nothing(CU_GRAPH_NODE_TYPE_WAIT_EVENT), other->last);
    sc_unlock();
    return result;
}

/* The tasks that the streams of a context have been given last; with the mutex held. The caller frees them.
 */
static bool last_tasks(sc_context *context, sc_task ***ret_tasks, size_t *ret_n)
{
    size_t n = 1;
    for (sc_stream *s = context->streams; s; s = s->next)
        n++;
    sc_task **tasks = calloc(n, sizeof(sc_task *));
    if (!tasks)
        return false;
    n = 0;
    for (sc_stream *s = context->streams; s; s = s->next)
        if (s->last)
            tasks[n++] = s->last;
    *ret_tasks = tasks;
    *ret_n = n;
    return true;
}

/* An event after all work of a context. */
API(cuCtxRecordEvent, CUcontext context_handle, CUevent handle)
{
    TRY(sc_initialized());
    sc_context *context = sc_context_find(context_handle);
    if (!context)
        return CUDA_ERROR_INVALID_CONTEXT;
    FIND_EVENT;
    if (event->object.context != context)
        return CUDA_ERROR_INVALID_HANDLE;
    sc_task **before = NULL, *task = NULL;
    size_t n;
    sc_lock();
    CUresult result = context->is_ending ? CUDA_ERROR_CONTEXT_IS_DESTROYED : sc_capture_context(context);
    if (!result) {
        sc_work *work = sc_work_nothing(CU_GRAPH_NODE_TYPE_EVENT_RECORD);
        if (work && last_tasks(context, &before, &n))
            task = sc_task_submit(context, work, before, n);
        else if (work)
            sc_work_release(work);
        free(before);
        result = task ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (task) {
        sc_capture_forget_event(event);
        sc_task_release(event->task);
        event->task = task;
    }
    sc_unlock();
    return result;
}

/* All work that a context is given from now on comes after the event. */
API(cuCtxWaitEvent, CUcontext context_handle, CUevent handle)
{
    TRY(sc_initialized());
    sc_context *context = sc_context_find(context_handle);
    if (!context)
        return CUDA_ERROR_INVALID_CONTEXT;
    FIND_EVENT;
    sc_lock();
    CUresult result = sc_capture_context(context);
    bool pending = event->task && event->task->state != SC_TASK_DONE;
    for (sc_stream *s = context->streams; s && pending && !result; s = s->next)
        result = append(s, sc_work_nothing(CU_GRAPH_NODE_TYPE_WAIT_EVENT), event->task);
    sc_unlock();
    return result;
}

/* May a caller wait for the event, or ask whether it is done? */
static CUresult check_event(sc_event *event)
{
    if (event->capture)
        return sc_capture_invalidate(event->capture, CUDA_ERROR_CAPTURED_EVENT);
    return event->capture_ended ? CUDA_ERROR_INVALID_VALUE : sc_capture_forbids();
}

API(cuEventQuery, CUevent handle)
{
    FIND_EVENT;
    sc_lock();
    CUresult result = check_event(event);
    if (!result && event->task && event->task->state != SC_TASK_DONE)
        result = CUDA_ERROR_NOT_READY;
    sc_unlock();
    return result ? result : atomic_load(&sc_lost);
}

API(cuEventSynchronize, CUevent handle)
{
    FIND_EVENT;
    sc_lock();
    CUresult result = check_event(event);
    if (!result && event->task)
        sc_task_wait(event->task);
    sc_unlock();
    return result ? result : atomic_load(&sc_lost);
}

static bool is_timed(const sc_event *event)
{
    return event && !(event->flags & CU_EVENT_DISABLE_TIMING) && event->task;
}

API(cuEventElapsedTime_v2, float *ms, CUevent start, CUevent stop)
{
    TRY(sc_working());
    sc_event *a = sc_object_find(SC_EVENT, (uintptr_t)start), *b = sc_object_find(SC_EVENT, (uintptr_t)stop);
    CUresult result = CUDA_SUCCESS;
    sc_lock();
    if (a && b && (a->capture || b->capture))
        result = CUDA_ERROR_CAPTURED_EVENT;
    else if (a && b && (a->capture_ended || b->capture_ended))
        result = CUDA_ERROR_INVALID_VALUE;
    else if (!ms || !is_timed(a) || !is_timed(b) || a->object.context != b->object.context)
        result = CUDA_ERROR_INVALID_HANDLE;
    else if (a->task->state != SC_TASK_DONE || b->task->state != SC_TASK_DONE)
        result = CUDA_ERROR_NOT_READY;
    else
        *ms = (float)((double)(int64_t)(b->task->end_ns - a->task->end_ns) / 1e6);
    sc_unlock();
    return result;
}

API(cuEventElapsedTime, float *ms, CUevent start, CUevent stop)
{
    return cuEventElapsedTime_v2(ms, start, stop);
}
