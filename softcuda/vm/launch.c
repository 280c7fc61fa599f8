/* SPDX-License-Identifier: Apache-2.0 */
#include "softcuda/vm/check.h"
#include "softcuda/vm/fp.h"
#include "softcuda/vm/machine.h"

#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/*
 * Grids, blocks and host threads. A worker runs one block until it ends. A block that does not end soon may
 * wait for another one, so the worker then takes a further block, up to the resident limit of the launch, and
 * goes round its blocks.
 */

enum {
    SC_ALONE_QUANTUM = 20000, /* warp instructions a warp runs at once */
    SC_SHARED_QUANTUM = 1000, /* ... where blocks take turns */
    SC_ALONE_VISIT = 100000,  /* warp instructions a block runs before others are looked at */
    SC_SHARED_VISIT = 2000,
    SC_ROUNDS_BEFORE_MORE = 2
};

/* ---- one block ---- */

static uint32_t lanes_of_warp(unsigned n_threads, unsigned warp)
{
    unsigned left = n_threads - warp * SC_LANES;
    return left >= SC_LANES ? SC_ALL_LANES : (1u << left) - 1;
}

static size_t round64(size_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

static void free_block(sc_block *block)
{
    if (!block)
        return;
    for (unsigned i = 0; block->warps && i < block->n_warps; i++)
        sc__free_frames(&block->warps[i]);
    sc__check_block_free(block);
    free(block->warps);
    free(block->order);
    if (block->storage)
        munmap(block->storage, block->storage_bytes);
    free(block);
}

static void place_threads(sc_warp *warp, const unsigned size[3])
{
    for (unsigned lane = 0; lane < SC_LANES; lane++) {
        const unsigned thread = warp->index * SC_LANES + lane;
        warp->thread[0][lane] = thread % size[0];
        warp->thread[1][lane] = thread / size[0] % size[1];
        warp->thread[2][lane] = thread / size[0] / size[1];
    }
}

/* Room for any block of the job; used again for the next. */
static sc_block *create_block(sc_worker *worker)
{
    sc_job *job = worker->job;
    const sc_kernel *kernel = job->kernel;
    const unsigned *size = job->launch->block;
    sc_block *block = calloc(1, sizeof *block);
    if (!block)
        return NULL;
    block->job = job;
    block->worker = worker;
    block->n_threads = size[0] * size[1] * size[2];
    block->n_warps = (block->n_threads + SC_LANES - 1) / SC_LANES;
    block->shared_bytes = job->shared_bytes;
    size_t registers = kernel->functions[0]->frame_bytes, local = (size_t)job->stack_bytes * SC_LANES;
    block->storage_bytes =
        block->n_warps * (round64(registers) + round64(local)) + round64(block->shared_bytes) + 64;
    block->warps = aligned_alloc(64, block->n_warps * sizeof *block->warps);
    block->order = calloc(block->n_warps, sizeof *block->order);
    void *storage = mmap(NULL, block->storage_bytes, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    block->storage = storage == MAP_FAILED ? NULL : storage;
    if (!block->warps || !block->order || !block->storage || !sc__check_block_create(block)) {
        free(block->warps);
        block->warps = NULL;
        free_block(block);
        return NULL;
    }
    block->shared = block->storage; /* at the start of a page: any alignment a variable may ask for */
    char *at = block->storage + round64(block->shared_bytes);
    for (unsigned i = 0; i < block->n_warps; i++) {
        sc_warp *warp = &block->warps[i];
        memset(warp, 0, sizeof *warp);
        warp->bank[SC_BANK_CONSTANT] = kernel->constants;
        warp->csr = SC_CSR_RN;
        warp->sites = worker->sites;
        warp->stack_bytes = job->stack_bytes;
        warp->block = block;
        warp->kernel = kernel;
        warp->index = i;
        place_threads(warp, size);
        warp->root.registers = at;
        at += round64(registers);
        warp->local = at;
        at += round64(local);
        block->order[i] = i;
    }
    return block;
}

static uint64_t random_next(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15ull;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ z >> 27) * 0x94d049bb133111ebull;
    return z ^ z >> 31;
}

static void shuffle_warps(sc_block *block, uint64_t seed)
{
    uint64_t state = seed ^ block->linear;
    for (unsigned i = block->n_warps; i > 1; i--) {
        unsigned k = (unsigned)(random_next(&state) % i), held = block->order[i - 1];
        block->order[i - 1] = block->order[k];
        block->order[k] = held;
    }
}

static void start_block(sc_block *block, uint64_t linear)
{
    const sc_launch *launch = block->job->launch;
    block->linear = linear;
    block->id[0] = (uint32_t)(linear % launch->grid[0]);
    block->id[1] = (uint32_t)(linear / launch->grid[0] % launch->grid[1]);
    block->id[2] = (uint32_t)(linear / launch->grid[0] / launch->grid[1]);
    block->live_threads = block->n_threads;
    memset(block->barriers, 0, sizeof block->barriers);
    for (unsigned i = 0; i < block->n_warps; i++)
        sc__warp_start(&block->warps[i], lanes_of_warp(block->n_threads, i));
    if (launch->shuffle_seed)
        shuffle_warps(block, launch->shuffle_seed);
    sc__check_block_start(block);
}

typedef enum sc_visit { SC_VISIT_DONE, SC_VISIT_AGAIN, SC_VISIT_STOP } sc_visit;

/* Where a group is: at the barrier that it has come to, or before what it does next. */
static const sc_code *place_of(const sc_group *group)
{
    return group->state == SC_GROUP_BARRIER ? group->pc - 1 : group->pc;
}

/* A fault that no single instruction makes. Its place is that of the first thread that has not exited, if
 * there is one. */
static sc_fault fault_of_block(const sc_block *block, sc_fault_kind kind)
{
    sc_fault fault = {.kind = kind};
    memcpy(fault.block, block->id, sizeof fault.block);
    kr__format(fault.kernel, sizeof fault.kernel, "%s", block->job->kernel->facts.name);
    for (unsigned i = 0; i < block->n_warps && fault.line == 0; i++) {
        const sc_warp *warp = &block->warps[i];
        if (warp->n_groups == 0)
            continue;
        fault.line = place_of(warp->groups)->line;
        sc__thread_of(warp, (unsigned)__builtin_ctz(warp->groups->mask), fault.thread);
    }
    return fault;
}

/* Nobody in the block can run: say who waits where. */
static void report_deadlock(sc_block *block)
{
    sc_fault fault = fault_of_block(block, SC_FAULT_DEADLOCK);
    kr__text text = {0};
    kr__text_add(&text, "deadlock:");
    for (unsigned i = 0; i < block->n_warps; i++) {
        const sc_warp *warp = &block->warps[i];
        for (unsigned k = 0; k < warp->n_groups; k++) {
            const sc_group *group = &warp->groups[k];
            unsigned n = (unsigned)__builtin_popcount(group->mask);
            const sc_code *in = place_of(group);
            if (group->state == SC_GROUP_BARRIER) {
                const sc_barrier *barrier = &block->barriers[group->barrier];
                kr__text_add(&text,
                             " %u threads of warp %u at barrier %u (line %u; %u of %u threads have arrived);",
                             n, i, group->barrier, in->line, barrier->arrived,
                             barrier->expected ? barrier->expected : block->live_threads);
            } else {
                kr__text_add(&text, " %u threads of warp %u (mask 0x%08x) wait for lanes 0x%08x at line %u;",
                             n, i, group->mask, group->members & warp->live & ~group->mask, in->line);
            }
        }
    }
    if (text.bytes)
        text.data[text.bytes - 1] = '\0';
    kr__format(fault.text, sizeof fault.text, "%s", text.data ? text.data : "deadlock");
    kr__text_free(&text);
    sc__job_fault(block->job, &fault);
}

/* After each visit: what was done, and whether it may go on. */
static void collect_counts(sc_block *block)
{
    uint64_t threads = 0;
    for (unsigned i = 0; i < block->n_warps; i++) {
        sc_warp *warp = &block->warps[i];
        block->worker->warp_instructions += warp->warp_instructions;
        threads += warp->thread_instructions;
        warp->warp_instructions = warp->thread_instructions = 0;
    }
    block->worker->thread_instructions += threads;
    sc_job *job = block->job;
    if (job->launch->called_off && atomic_load_explicit(job->launch->called_off, memory_order_relaxed))
        sc__job_fault(job, &(sc_fault){.kind = SC_FAULT_CALLED_OFF});
    if (job->launch->budget && atomic_fetch_add(&job->spent, threads) + threads > job->launch->budget) {
        sc_fault fault = fault_of_block(block, SC_FAULT_TIMEOUT);
        kr__format(fault.text, sizeof fault.text, "the budget of %" PRIu64 " thread instructions is spent",
                   job->launch->budget);
        sc__job_fault(job, &fault);
    }
}

/* Runs the block's warps in turn until it ends or has had its share. */
static sc_visit visit_block(sc_block *block, bool alone)
{
    sc_job *job = block->job;
    const int64_t quantum = alone ? SC_ALONE_QUANTUM : SC_SHARED_QUANTUM;
    const uint64_t share = alone ? SC_ALONE_VISIT : SC_SHARED_VISIT;
    uint64_t executed = 0;
    do {
        bool any_ran = false;
        unsigned done = 0;
        for (unsigned i = 0; i < block->n_warps; i++) {
            sc_warp *warp = &block->warps[block->order[i]];
            if (warp->state == SC_WARP_READY) {
                any_ran = true;
                uint64_t before = warp->warp_instructions;
                sc__warp_run(warp, quantum);
                executed += warp->warp_instructions - before;
                if (warp->slept) {
                    warp->slept = false;
                    executed += SC_SHARED_VISIT / 4;
                }
            }
            if (atomic_load_explicit(&job->stop, memory_order_relaxed))
                return SC_VISIT_STOP;
            done += warp->state == SC_WARP_DONE;
        }
        if (done == block->n_warps)
            return SC_VISIT_DONE;
        if (!any_ran) {
            report_deadlock(block);
            return SC_VISIT_STOP;
        }
    } while (executed < share);
    return SC_VISIT_AGAIN;
}

/* ---- one worker ---- */

static void release_residence(sc_job *job)
{
    atomic_fetch_sub(&job->n_resident, 1);
}

static bool take_residence(sc_job *job)
{
    if (atomic_fetch_add(&job->n_resident, 1) < job->resident_limit)
        return true;
    release_residence(job);
    return false;
}

/* How many blocks a worker takes at once. Neighbours touch neighbouring memory: a run of them reads it as one
 * core alone would, in one stream, and does not share lines with another core. Blocks that may wait for each
 * other are started in the order of their numbers, and so one at a time. */
static uint64_t run_length(const sc_job *job, uint64_t n_left)
{
    enum { SC_MOST_IN_RUN = 16, SC_RUNS_OF_A_WORKER = 4 };
    const uint64_t share = n_left / (SC_RUNS_OF_A_WORKER * (job->most_helpers + 1));
    return job->kernel->blocks_may_wait || share < 1 ? 1 : share < SC_MOST_IN_RUN ? share : SC_MOST_IN_RUN;
}

static bool take_run(sc_worker *worker)
{
    sc_job *job = worker->job;
    uint64_t first = atomic_load(&job->next_block), n;
    do {
        if (first >= job->n_blocks)
            return false;
        n = run_length(job, job->n_blocks - first);
    } while (!atomic_compare_exchange_weak(&job->next_block, &first, first + n));
    worker->next_block = first;
    worker->end_block = first + n;
    return true;
}

static bool has_run(const sc_worker *worker)
{
    return worker->next_block < worker->end_block;
}

/* A worker with blocks yet to start keeps one residence: nobody else can start them, and it would leave. */
static bool keeps_residence(const sc_worker *worker)
{
    return worker->n_resident == 0 && has_run(worker);
}

/* The next block of the grid, if there is one and the launch may have one more resident. */
static bool take_number(sc_worker *worker, uint64_t *ret_linear)
{
    sc_job *job = worker->job;
    if (!keeps_residence(worker) && !take_residence(job))
        return false;
    if (!has_run(worker) && !take_run(worker)) {
        release_residence(job);
        return false;
    }
    const uint64_t number = worker->next_block++;
    *ret_linear = job->block_order ? job->block_order[number] : number;
    return true;
}

static bool take_block(sc_worker *worker)
{
    uint64_t linear;
    if (!take_number(worker, &linear))
        return false;
    sc_block *block = worker->spare;
    if (block)
        worker->spare = block->next;
    else
        block = create_block(worker);
    if (!block) {
        sc_fault fault = {.kind = SC_FAULT_NO_MEMORY};
        kr__format(fault.kernel, sizeof fault.kernel, "%s", worker->job->kernel->facts.name);
        kr__format(fault.text, sizeof fault.text, "out of host memory for a block");
        sc__job_fault(worker->job, &fault);
        release_residence(worker->job);
        return false;
    }
    start_block(block, linear);
    sc_block **last = &worker->blocks;
    while (*last)
        last = &(*last)->next;
    block->next = NULL;
    *last = block;
    worker->n_resident++;
    return true;
}

static void visit_blocks(sc_worker *worker, bool alone)
{
    for (sc_block **at = &worker->blocks; *at;) {
        sc_block *block = *at;
        sc_visit result = visit_block(block, alone);
        collect_counts(block);
        if (result == SC_VISIT_STOP)
            return;
        if (result == SC_VISIT_AGAIN) {
            at = &block->next;
            continue;
        }
        *at = block->next;
        block->next = worker->spare;
        worker->spare = block;
        worker->n_resident--;
        if (!keeps_residence(worker))
            release_residence(worker->job);
    }
}

static void free_blocks(sc_block *block)
{
    for (sc_block *next; block; block = next) {
        next = block->next;
        free_block(block);
    }
}

static void work(sc_job *job)
{
    sc_worker worker = {.job = job};
    unsigned csr = _mm_getcsr();
    _mm_setcsr(SC_CSR_RN);
    worker.sites = calloc(job->kernel->n_sites + 1, sizeof *worker.sites);
    if (!worker.sites)
        sc__job_fault(job,
                      &(sc_fault){.kind = SC_FAULT_NO_MEMORY, .text = "out of host memory for a worker"});
    for (uint64_t round = 0; !atomic_load(&job->stop); round++) {
        bool more = job->launch->cooperative || round % SC_ROUNDS_BEFORE_MORE == 1;
        if (worker.n_resident == 0 || more)
            take_block(&worker);
        if (worker.n_resident == 0)
            break;
        visit_blocks(&worker, worker.n_resident == 1 && !job->launch->cooperative);
        if (worker.n_resident == 0)
            round = UINT64_MAX; /* wraps to 0: blocks end by themselves so far */
        else if (worker.n_resident > 1)
            sched_yield(); /* they may wait for a worker that has no core now */
    }
    free_blocks(worker.blocks);
    free_blocks(worker.spare);
    free(worker.sites);
    pthread_mutex_lock(&job->mutex);
    job->warp_instructions += worker.warp_instructions;
    job->thread_instructions += worker.thread_instructions;
    pthread_mutex_unlock(&job->mutex);
    _mm_setcsr(csr);
}

/* ---- the pool ---- */

static pthread_mutex_t pool_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t pool_work = PTHREAD_COND_INITIALIZER, pool_left = PTHREAD_COND_INITIALIZER;
static sc_job *pool_jobs;
static unsigned pool_threads;

const sc_setting sc_settings[] = {
    [SC_SETTING_THREADS] = {"KREGISTRY_SOFTCUDA_THREADS", 1, 1024},
    [SC_SETTING_BUDGET] = {"KREGISTRY_SOFTCUDA_BUDGET", 0, UINT64_MAX},
    [SC_SETTING_SHUFFLE] = {"KREGISTRY_SOFTCUDA_SHUFFLE", 0, UINT64_MAX},
    [SC_SETTING_CHECK_EXITCODE] = {"KREGISTRY_SOFTCUDA_CHECK_EXITCODE", 1, 255},
    {NULL, 0, 0},
};

bool sc_setting_read(const sc_setting *setting, uint64_t *ret_value)
{
    const char *text = getenv(setting->name);
    *ret_value = 0;
    if (!text || !*text)
        return true;
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 0);
    if (*text < '0' || *text > '9' || *end || errno || value < setting->least || value > setting->most)
        return false;
    *ret_value = value;
    return true;
}

uint64_t sc_setting_value(sc_setting_id id)
{
    uint64_t value;
    sc_setting_read(&sc_settings[id], &value);
    return value;
}

unsigned sc_workers(void)
{
    uint64_t wanted = sc_setting_value(SC_SETTING_THREADS);
    if (wanted)
        return (unsigned)wanted;
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0)
        return (unsigned)CPU_COUNT(&set);
    return 1;
}

static sc_job *job_to_help(void)
{
    for (sc_job *job = pool_jobs; job; job = job->next)
        if (!atomic_load(&job->stop) && atomic_load(&job->next_block) < job->n_blocks &&
            job->n_helpers < job->most_helpers && atomic_load(&job->n_resident) < job->resident_limit)
            return job;
    return NULL;
}

static void *pool_thread(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&pool_mutex);
    for (;;) {
        sc_job *job = job_to_help();
        if (!job) {
            pthread_cond_wait(&pool_work, &pool_mutex);
            continue;
        }
        job->n_helpers++;
        pthread_mutex_unlock(&pool_mutex);
        work(job);
        pthread_mutex_lock(&pool_mutex);
        job->n_helpers--;
        pthread_cond_broadcast(&pool_left);
    }
    return NULL;
}

enum { SC_STACK_BYTES = 1 << 20 }; /* that a kernel may need: a product of matrices takes 200 KiB */

/* 0: as much as any thread has, but where that is little (ulimit -s) what a kernel needs. */
static bool set_stack(pthread_attr_t *attributes, size_t bytes)
{
    size_t usual;
    if (!bytes && !pthread_attr_getstacksize(attributes, &usual) && usual >= SC_STACK_BYTES)
        return true;
    return !pthread_attr_setstacksize(attributes, bytes ? bytes : SC_STACK_BYTES);
}

bool sc_thread_start(void *(*run)(void *), size_t stack_bytes)
{
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL,
                                 SIGTRAP}; /* a host function may have them */
    sigset_t all, before;
    pthread_t thread;
    pthread_attr_t attributes;
    if (pthread_attr_init(&attributes))
        return false;
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    sigfillset(&all);
    for (size_t i = 0; i < KR_COUNT(faults); i++)
        sigdelset(&all, faults[i]);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const bool started =
        set_stack(&attributes, stack_bytes) && pthread_create(&thread, &attributes, run, NULL) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return started;
}

/* The pool's threads live as long as the process: to start one takes longer than many a launch. None runs
 * code of the program, so their stacks are what the machine needs. */
static void grow_pool(unsigned n)
{
    while (pool_threads < n) {
        if (!sc_thread_start(pool_thread, SC_STACK_BYTES))
            return;
        pool_threads++;
    }
}

static void publish(sc_job *job)
{
    pthread_mutex_lock(&pool_mutex);
    grow_pool(job->most_helpers);
    job->next = pool_jobs;
    pool_jobs = job;
    pthread_cond_broadcast(&pool_work);
    pthread_mutex_unlock(&pool_mutex);
}

static void withdraw(sc_job *job)
{
    pthread_mutex_lock(&pool_mutex);
    sc_job **at = &pool_jobs;
    while (*at != job)
        at = &(*at)->next;
    *at = job->next;
    while (job->n_helpers)
        pthread_cond_wait(&pool_left, &pool_mutex);
    pthread_mutex_unlock(&pool_mutex);
}

/* ---- a launch ---- */

static bool order_blocks(sc_job *job)
{
    uint64_t state = job->launch->shuffle_seed;
    if (!state || job->n_blocks > 1u << 24)
        return true; /* larger grids stay in order */
    job->block_order = calloc(job->n_blocks, sizeof *job->block_order);
    if (!job->block_order)
        return false;
    for (uint64_t i = 0; i < job->n_blocks; i++)
        job->block_order[i] = (uint32_t)i;
    for (uint64_t i = job->n_blocks; i > 1; i--) {
        uint64_t k = random_next(&state) % i;
        uint32_t held = job->block_order[i - 1];
        job->block_order[i - 1] = job->block_order[k];
        job->block_order[k] = held;
    }
    return true;
}

/* Local memory of a thread. What has no bound gets more than a driver gives it before it is asked to. */
static uint32_t stack_bytes(const sc_kernel *kernel, size_t wanted)
{
    enum { LEAST_OPEN_BYTES = 32768 };
    if (!kernel->stack_is_open)
        return kernel->stack_bytes;
    return kernel->stack_bytes + (uint32_t)(wanted > LEAST_OPEN_BYTES ? wanted : LEAST_OPEN_BYTES);
}

static void write_whole(FILE *to, const kr__text *text)
{
    if (!text->bytes)
        return;
    fwrite(text->data, 1, text->bytes, to);
    fflush(to);
}

bool sc_run(const sc_launch *launch, sc_fault *ret_fault, sc_run_stats *ret_stats)
{
    enum { SC_WORKSPACE_BYTES = 256 };
    const sc_kernel *kernel = &launch->program->kernels[launch->kernel];
    sc_job job = {
        .launch = launch,
        .kernel = kernel,
        .program = launch->program,
        .n_blocks = (uint64_t)launch->grid[0] * launch->grid[1] * launch->grid[2],
        .shared_bytes = kernel->shared_bytes + (uint32_t)launch->dynamic_shared_bytes,
        .stack_bytes = stack_bytes(kernel, launch->stack_bytes),
        .resident_limit = launch->resident_blocks ? launch->resident_blocks : 1,
        .mutex = PTHREAD_MUTEX_INITIALIZER,
    };
    job.first_serial = sc__check_launch(job.n_blocks);
    bool ready = order_blocks(&job);
    if (ready && launch->cooperative) {
        job.workspace = sc_memory_alloc(launch->program->memory, SC_WORKSPACE_BYTES, 256);
        ready = job.workspace != 0;
        if (ready) {
            memset((void *)(uintptr_t)job.workspace, 0, SC_WORKSPACE_BYTES);
            sc_check_filled(job.workspace, SC_WORKSPACE_BYTES);
        }
    }
    if (!ready)
        sc__job_fault(&job, &(sc_fault){.kind = SC_FAULT_NO_MEMORY, .text = "out of memory for the launch"});
    unsigned workers = sc_workers();
    job.most_helpers = (unsigned)(job.n_blocks - 1 < workers - 1 ? job.n_blocks - 1 : workers - 1);
    if (job.most_helpers && ready)
        publish(&job);
    work(&job);
    if (job.most_helpers && ready)
        withdraw(&job);
    sc__write_prints(&job);
    write_whole(stderr, &job.errors);
    kr__text_free(&job.errors);
    if (job.workspace)
        sc_memory_free(launch->program->memory, job.workspace);
    free(job.block_order);
    pthread_mutex_destroy(&job.mutex);
    if (ret_stats)
        *ret_stats = (sc_run_stats){job.warp_instructions, job.thread_instructions};
    if (job.fault.kind == SC_FAULT_NONE)
        return true;
    sc__report_fault(kernel, &job.fault);
    *ret_fault = job.fault;
    return false;
}
