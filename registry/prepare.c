/* SPDX-License-Identifier: Apache-2.0 */
/* Loading many ops on many devices before they are launched. */
#include <stdlib.h>

#include "registry/internal.h"

typedef struct job {
    kr__entry *entry;
    size_t type_index;
    kr_device *device;
} job;

typedef struct crew {
    kr_registry *registry;
    const kr_prepare_options *options;
    job *jobs;
    size_t n_jobs;
    pthread_mutex_t lock; /* guards the rest, and calls to the caller's functions */
    size_t next, done, failed;
    kr_error *first;
} crew;

static void report(crew *c, const job *j, kr_status status, const kr_error *err)
{
    char name[KR__MAX_FULL_NAME];
    kr__op_full_name(&j->entry->def->op, j->type_index, name);
    pthread_mutex_lock(&c->lock);
    c->done++;
    if (status && c->failed++ == 0)
        *c->first = *err;
    if (status && c->options->failed)
        c->options->failed(c->options->failed_user, err);
    if (c->options->progress)
        c->options->progress(c->options->progress_user, c->done, c->n_jobs, name);
    pthread_mutex_unlock(&c->lock);
}

static void *work(void *user)
{
    crew *c = user;
    for (;;) {
        pthread_mutex_lock(&c->lock);
        const size_t at = c->next < c->n_jobs ? c->next++ : c->n_jobs;
        pthread_mutex_unlock(&c->lock);
        if (at == c->n_jobs)
            return NULL;
        const job *j = &c->jobs[at];
        const kr__loaded *loaded;
        size_t variant;
        kr_error err;
        const kr_status status = kr__op_load(c->registry, j->entry, j->type_index, NULL, UINT64_MAX,
                                             j->device, &variant, &loaded, &err);
        report(c, j, status, &err);
    }
}

static void run_crew(crew *c)
{
    enum { MOST = 8 };
    pthread_t threads[MOST];
    size_t n = 0;
    while (n < MOST && n + 1 < c->n_jobs && !pthread_create(&threads[n], NULL, work, c))
        n++;
    work(c); /* at least this thread does */
    while (n)
        pthread_join(threads[--n], NULL);
}

/* The jobs in the order op, type, device, so that one compile serves neighbours. NULL list: counts only. */
static size_t list_jobs(kr_registry *registry, const kr__ops *ops, const char *glob,
                        const kr_prepare_options *options, job *list)
{
    const size_t n_devices = options->devices ? options->n_devices : kr_runtime_n_devices(registry->runtime);
    size_t n = 0;
    for (size_t i = 0; i < ops->n; i++)
        for (size_t t = 0; t < kr__op_n_instances(&ops->list[i]->def->op); t++) {
            char name[KR__MAX_FULL_NAME];
            if (!kr__glob(glob, kr__op_full_name(&ops->list[i]->def->op, t, name)))
                continue;
            for (size_t d = 0; d < n_devices; d++, n++)
                if (list)
                    list[n] = (job){ops->list[i], t,
                                    options->devices ? options->devices[d]
                                                     : kr_runtime_device(registry->runtime, d)};
        }
    return n;
}

kr_status kr_registry_prepare(kr_registry *registry, const char *glob, const kr_prepare_options *options,
                              kr_error *err)
{
    KR_REQUIRE(err, registry, glob);
    kr_prepare_options own;
    kr_status status = KR_OPTIONS(err, options, own);
    if (!status)
        status = kr__require_list(err, "devices", own.devices, own.n_devices);
    if (status)
        return status;
    if (!registry->runtime)
        return KR_FAIL(err, KR_INVALID_ARGUMENT,
                       "this registry has no runtime, so there is no device to prepare for");
    crew c = {.registry = registry, .options = &own};
    const kr__ops *ops = atomic_load_explicit(&registry->ops, memory_order_acquire);
    c.n_jobs = list_jobs(registry, ops, glob, &own, NULL);
    if (!c.n_jobs)
        return KR_FAIL(err, KR_NOT_FOUND, "no op matches \"%s\"", glob);
    c.jobs = kr__alloc(c.n_jobs, sizeof *c.jobs, err);
    c.first = c.jobs ? kr__alloc(1, sizeof *c.first, err) : NULL;
    if (c.first) {
        list_jobs(registry, ops, glob, &own, c.jobs);
        pthread_mutex_init(&c.lock, NULL);
        run_crew(&c);
        pthread_mutex_destroy(&c.lock);
        status = c.failed ? c.first->status : KR_OK;
        if (status) {
            if (err)
                *err = *c.first;
            kr__while(err, status, "preparing %s: %zu of %zu failed, this one first", glob, c.failed,
                      c.n_jobs);
        }
    } else {
        status = KR_OUT_OF_HOST_MEMORY;
    }
    free(c.jobs);
    free(c.first);
    return status;
}
