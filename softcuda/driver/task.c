/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asynchronous work: tasks that become ready when the tasks before them are done, and threads that run ready
 * tasks. A thread is started whenever a task is ready and none is idle, so a host function that blocks
 * never keeps another stream from going on. A thread that waits for a ready task runs it itself, if it has
 * the stack for it. Where the system gives no more threads, the caller that made a task ready runs it before
 * it leaves.
 */
#include "softcuda/driver/driver.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

pthread_mutex_t sc_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t became_ready = PTHREAD_COND_INITIALIZER;
static pthread_cond_t became_done = PTHREAD_COND_INITIALIZER;
static sc_task *first_ready, *last_ready;
static unsigned n_ready, n_waiters;
static unsigned n_idle; /* threads that will look at the ready list */
static _Thread_local bool executing;

static void execute(sc_task *task);

_Atomic CUresult sc_lost;
_Thread_local bool sc_in_callback;

void sc_lock(void)
{
    pthread_mutex_lock(&sc_mutex);
}

/* A thread was asked for and not given. */
static bool short_of_threads(void)
{
    return n_idle < n_ready;
}

void sc_unlock(void)
{
    while (short_of_threads() && !executing)
        execute(first_ready);
    pthread_mutex_unlock(&sc_mutex);
}

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void sleep_ns(uint64_t ns)
{
    struct timespec left = {(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
    while (nanosleep(&left, &left) && errno == EINTR)
        ;
}

/* ---- pages that a running task may touch ---- */

/*
 * Memory can go while a task runs that knows it: a mapping, or what is another context's. A task that begins
 * later does not find it, but that one may touch the pages until it is done, and so they stay that long.
 */
typedef struct left_pages {
    struct left_pages *next;
    void *start;
    size_t bytes;
} left_pages;

static pthread_mutex_t pages_lock = PTHREAD_MUTEX_INITIALIZER; /* taken last */
static unsigned n_running;
static left_pages *all_left;

bool sc_tasks_run(void)
{
    pthread_mutex_lock(&pages_lock);
    bool any = n_running > 0;
    pthread_mutex_unlock(&pages_lock);
    return any;
}

void sc_pages_leave(void *start, size_t bytes)
{
    pthread_mutex_lock(&pages_lock);
    left_pages *left = n_running ? malloc(sizeof *left) : NULL;
    if (left) {
        *left = (left_pages){all_left, start, bytes};
        all_left = left;
    }
    if (n_running) /* out of memory: the addresses stay for good */
        madvise(start, bytes, MADV_DONTNEED);
    else
        munmap(start, bytes);
    pthread_mutex_unlock(&pages_lock);
}

static void begin_running(void)
{
    pthread_mutex_lock(&pages_lock);
    n_running++;
    pthread_mutex_unlock(&pages_lock);
}

static void end_running(void)
{
    pthread_mutex_lock(&pages_lock);
    left_pages *left = --n_running ? NULL : all_left;
    if (left)
        all_left = NULL;
    pthread_mutex_unlock(&pages_lock);
    for (left_pages *next; left; left = next) {
        next = left->next;
        munmap(left->start, left->bytes);
        free(left);
    }
}

/* ---- work ---- */

void *sc_work_create(size_t bytes, CUgraphNodeType type, CUresult (*run)(sc_work *),
                     void (*finish)(sc_work *))
{
    sc_work *work = calloc(1, bytes);
    if (!work)
        return NULL;
    work->refs = 1;
    work->type = type;
    work->run = run;
    work->finish = finish;
    return work;
}

void sc_work_retain(sc_work *work)
{
    atomic_fetch_add(&work->refs, 1);
}

void sc_work_release(sc_work *work)
{
    if (atomic_fetch_sub(&work->refs, 1) != 1)
        return;
    if (work->finish)
        work->finish(work);
    free(work);
}

static CUresult run_nothing(sc_work *work)
{
    (void)work;
    return CUDA_SUCCESS;
}

sc_work *sc_work_nothing(CUgraphNodeType type)
{
    return sc_work_create(sizeof(sc_work), type, run_nothing, NULL);
}

/* ---- tasks ---- */

sc_task *sc_task_retain(sc_task *task)
{
    atomic_fetch_add(&task->refs, 1);
    return task;
}

void sc_task_release(sc_task *task)
{
    if (!task || atomic_fetch_sub(&task->refs, 1) != 1)
        return;
    free(task->after);
    free(task);
}

static void unlink_ready(sc_task *task)
{
    *(task->previous ? &task->previous->next : &first_ready) = task->next;
    *(task->next ? &task->next->previous : &last_ready) = task->previous;
    task->next = task->previous = NULL;
    n_ready--;
}

static void *worker(void *unused);

static void make_ready(sc_task *task)
{
    task->state = SC_TASK_READY;
    task->previous = last_ready;
    *(last_ready ? &last_ready->next : &first_ready) = task;
    last_ready = task;
    n_ready++;
    if (n_idle >= n_ready) {
        pthread_cond_signal(&became_ready);
        return;
    }
    if (sc_thread_start(worker, 0))
        n_idle++;
}

static void call_off(void *object, void *device)
{
    sc_context *context = object;
    if (context->device == device)
        context->called_off = true;
}

/* After a fault every call answers it, but kernels of other devices run on until their contexts end. */
static void lose(sc_device *device, CUresult fault)
{
    CUresult none = CUDA_SUCCESS;
    atomic_compare_exchange_strong(&sc_lost, &none, fault);
    sc_objects_each(SC_CONTEXT, call_off, device);
}

/* Runs a ready task. Called and left with the mutex held. */
static void execute(sc_task *task)
{
    unlink_ready(task);
    task->state = SC_TASK_RUNNING;
    pthread_mutex_unlock(&sc_mutex);
    bool inside = executing;
    executing = true;
    CUresult result = CUDA_SUCCESS;
    if (sc_asked.delay_ns)
        sleep_ns(sc_asked.delay_ns);
    begin_running();
    if (!atomic_load(&sc_lost) || task->work->always)
        result = task->work->run(task->work);
    end_running();
    if (result)
        lose(task->context->device, result);
    sc_work_release(task->work);
    task->work = NULL;
    executing = inside;
    sc_lock();
    task->end_ns = now_ns();
    task->state = SC_TASK_DONE;
    task->context->n_pending--;
    for (size_t i = 0; i < task->n_after; i++) {
        if (--task->after[i]->n_before == 0)
            make_ready(task->after[i]);
        sc_task_release(task->after[i]);
    }
    task->n_after = 0;
    if (n_waiters)
        pthread_cond_broadcast(&became_done);
    sc_task_release(task);
}

static void *worker(void *unused)
{
    (void)unused;
    sc_lock();
    for (;;) {
        while (!first_ready)
            pthread_cond_wait(&became_ready, &sc_mutex);
        n_idle--;
        execute(first_ready);
        n_idle++;
    }
    return NULL;
}

static bool run_after(sc_task *task, sc_task *before)
{
    sc_task **grown = kr__grow(before->after, before->n_after, sizeof *grown);
    if (!grown)
        return false;
    before->after = grown;
    grown[before->n_after++] = sc_task_retain(task);
    task->n_before++;
    return true;
}

sc_task *sc_task_submit(sc_context *context, sc_work *work, sc_task *const *before, size_t n_before)
{
    sc_task *task = calloc(1, sizeof *task);
    if (!task) {
        sc_work_release(work);
        return NULL;
    }
    task->refs = 2; /* the caller's, and until it is done */
    task->context = context;
    task->work = work;
    task->n_before = 1; /* held back while it is being built */
    context->n_pending++;
    for (size_t i = 0; i < n_before; i++)
        if (before[i]->state != SC_TASK_DONE && !run_after(task, before[i]))
            sc_task_wait(before[i]); /* out of memory: in order all the same */
    if (--task->n_before == 0)
        make_ready(task);
    return task;
}

static void wait_for_change(void)
{
    if (short_of_threads()) {
        execute(first_ready);
        return;
    }
    n_waiters++;
    pthread_cond_wait(&became_done, &sc_mutex);
    n_waiters--;
}

/* Is there room on this thread's stack for a kernel, the largest of whose frames hold matrices? */
static bool has_room(void)
{
    enum { LEAST = 512 << 10 };
    static _Thread_local char *lowest; /* a kernel may begin there and above */
    if (!lowest) {
        pthread_attr_t attr;
        void *start;
        size_t bytes;
        if (pthread_getattr_np(pthread_self(), &attr))
            return false;
        lowest = pthread_attr_getstack(&attr, &start, &bytes) ? (char *)UINTPTR_MAX : (char *)start + LEAST;
        pthread_attr_destroy(&attr);
    }
    return (char *)__builtin_frame_address(0) > lowest;
}

void sc_task_wait(sc_task *task)
{
    sc_task_retain(task);
    while (task->state != SC_TASK_DONE) {
        if (task->state == SC_TASK_READY && (has_room() || short_of_threads()))
            execute(task);
        else
            wait_for_change();
    }
    sc_task_release(task);
}

void sc_task_wait_all(sc_context *context)
{
    while (context->n_pending)
        wait_for_change();
}
