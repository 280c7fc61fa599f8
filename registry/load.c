/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "registry/internal.h"
#include "registry/preamble.h"

/* Who wants which kernel where. */
typedef struct want {
    kr_registry *registry;
    kr__entry *entry;
    size_t type_index;
    size_t variant;
    kr_device *device;
    size_t device_index;
} want;

static size_t place_of(const want *w)
{
    return w->type_index * w->entry->def->op.n_variants + w->variant;
}

/* Is the failure one of this image alone, so that another may do? The driver's answers are those that say so
 * of an image; a source that does not compile is the op's fault and is told. */
static bool another_may_do(const kr_error *err, kr_status status)
{
    if (err->api == KR_API_CUDA)
        switch (err->code) {
        case CUDA_ERROR_INVALID_IMAGE:
        case CUDA_ERROR_NO_BINARY_FOR_GPU:
        case CUDA_ERROR_INVALID_PTX:
        case CUDA_ERROR_JIT_COMPILER_NOT_FOUND:
        case CUDA_ERROR_UNSUPPORTED_PTX_VERSION:
        case CUDA_ERROR_JIT_COMPILATION_DISABLED:
            return true;
        default:
            return false;
        }
    if (err->api == KR_API_NVRTC)
        return status != KR_COMPILE_FAILED;
    return status == KR_NOT_ON_THIS_MACHINE || status == KR_NOT_ON_THIS_DEVICE || status == KR_CORRUPT;
}

/* Will asking again give the same answer? Then it is kept. */
static bool is_lasting(const kr_error *err, kr_status status)
{
    if (err->api ==
        KR_API_CUDA) /* the driver's other answers are of the moment: a capture, a context, memory */
        return err->code == CUDA_ERROR_NOT_FOUND || another_may_do(err, status);
    return status == KR_COMPILE_FAILED || status == KR_INVALID_ARGUMENT || status == KR_NOT_FOUND ||
           status == KR_NOT_ON_THIS_DEVICE;
}

static kr_error *keep(const kr_error *err, kr_status status)
{
    kr_error *kept = is_lasting(err, status) ? malloc(sizeof *kept) : NULL;
    if (kept)
        *kept = *err;
    return kept;
}

static void tell(const kr_error *from, kr_error *to)
{
    if (to)
        *to = *from;
}

/* ---- an image, made once ---- */

static kr_status compile(const want *w, kr_cc arch, kr_image_kind kind, kr_compiled **ret_compiled,
                         kr_error *err)
{
    kr_nvrtc *nvrtc;
    const kr_status status = kr__registry_nvrtc(w->registry, &nvrtc, err);
    if (status)
        return status;
    if (!nvrtc) {
        KR_FAIL(err, KR_NOT_ON_THIS_MACHINE, "there is no NVRTC");
        kr__registry_tell_nvrtc(w->registry, err);
        return KR_NOT_ON_THIS_MACHINE;
    }
    return kr__op_compile(nvrtc, w->entry->def, w->type_index, w->variant, arch, kind, ret_compiled, err);
}

static kr__built *find_built(kr__built *list, const kr__candidate *c)
{
    while (list && (list->shipped != c->shipped || kr_cc_compare(list->arch, c->arch) ||
                    list->arch.suffix != c->arch.suffix || list->kind != c->kind))
        list = list->next;
    return list;
}

static kr_status fill(const want *w, kr__built *built, const char *name, kr_error *err)
{
    kr_status status = built->shipped ? KR_OK : compile(w, built->arch, built->kind, &built->compiled, err);
    if (!status)
        status = kr__code_create(
            w->registry->runtime->driver, built->shipped ? built->shipped->bytes : built->compiled->image,
            built->shipped ? built->shipped->n_bytes : built->compiled->image_bytes, name, &built->code, err);
    return status;
}

/* The candidate's image, made by one thread whoever else asks meanwhile. */
static kr_status build(const want *w, const kr__candidate *c, const char *name, const kr__built **ret_built,
                       kr_error *err)
{
    kr_registry *registry = w->registry;
    kr__built **list = &w->entry->built[place_of(w)];
    kr_status status = KR_OK;
    pthread_mutex_lock(&registry->lock);
    kr__built *built = find_built(*list, c);
    if (!built && (built = kr__alloc(1, sizeof *built, err))) {
        *built = (kr__built){.shipped = c->shipped, .arch = c->arch, .kind = c->kind, .next = *list};
        *list = built;
    }
    while (built && built->busy)
        pthread_cond_wait(&registry->landed, &registry->lock);
    if (!built) {
        status = KR_OUT_OF_HOST_MEMORY;
    } else if (built->failure) {
        tell(built->failure, err);
        status = built->failure->status;
    } else if (!built->code) {
        built->busy = true;
        pthread_mutex_unlock(&registry->lock);
        status = fill(w, built, name, err);
        pthread_mutex_lock(&registry->lock);
        built->busy = false;
        built->failure = status ? keep(err, status) : NULL;
        if (status)
            kr_compiled_destroy(&built->compiled);
        pthread_cond_broadcast(&registry->landed);
    }
    if (!status)
        *ret_built = built;
    pthread_mutex_unlock(&registry->lock);
    return status;
}

/* ---- loading one candidate ---- */

/* The PTX that the image is or was made with, where it is at hand. */
static const char *ptx_of(const kr__built *built, size_t *ret_bytes)
{
    const char *ptx = built->compiled                        ? built->compiled->ptx
                      : built->shipped->kind == KR_IMAGE_PTX ? built->shipped->bytes
                                                             : NULL;
    *ret_bytes = !ptx ? 0 : built->compiled ? strlen(ptx) : built->shipped->n_bytes;
    return ptx;
}

static kr_status load_image(const want *w, const kr__candidate *c, const kr__built *built, kr__loaded *loaded,
                            kr_error *err)
{
    const kr__op_def *def = w->entry->def;
    const kr__launch_rule *rule = &def->variants[w->variant].launch;
    size_t ptx_bytes;
    const char *ptx = ptx_of(built, &ptx_bytes);
    kr_status status = kr__code_load(built->code, w->device, &loaded->module, err);
    if (!status)
        status = kr_module_kernel(loaded->module, def->op.variants[w->variant].name, &loaded->kernel, err);
    if (!status)
        status = kr__signature_check(def, w->type_index, w->variant, loaded->kernel, ptx, ptx_bytes, err);
    if (!status && rule->kind == KR__LAUNCH_ELEMENTWISE && !rule->shared)
        status = kr__fit_of(loaded->kernel, rule->block[0], 0, &loaded->usual, err);
    loaded->kind = c->kind;
    loaded->arch = c->arch;
    loaded->origin = c->shipped ? "shipped" : "nvrtc";
    return status;
}

static kr_status load_candidate(const want *w, const kr__candidate *c, kr__loaded **ret_loaded, kr_error *err)
{
    char op_name[KR__MAX_FULL_NAME], image_name[64], name[160];
    kr__op_full_name(&w->entry->def->op, w->type_index, op_name);
    kr__candidate_image(c, image_name);
    kr__format(name, sizeof name, "%s %s (%s)", op_name, w->entry->def->op.variants[w->variant].name,
               image_name);
    const kr__built *built;
    kr_status status = build(w, c, name, &built, err);
    kr__loaded *loaded = status ? NULL : kr__alloc(1, sizeof *loaded, err);
    if (!status)
        status = loaded ? load_image(w, c, built, loaded, err) : KR_OUT_OF_HOST_MEMORY;
    if (!status) {
        *ret_loaded = loaded;
        return KR_OK;
    }
    if (loaded)
        kr_module_destroy(&loaded->module);
    free(loaded);
    kr__error_op(err, op_name);
    kr__error_image(err, image_name);
    return status;
}

/* ---- one variant ---- */

static void note(kr__text *reasons, const char *what, const char *image_name, const char *reason)
{
    kr__text_add(reasons, "%s%s%s%s: %s", reasons->bytes ? "; " : "", what, image_name[0] ? " " : "",
                 image_name, reason);
}

/* `reasons` may be err's own message; NULL: out of memory. */
static kr_status none_will_do(const want *w, const char *reasons, kr_error *err)
{
    kr_nvrtc *nvrtc;
    if (!reasons)
        return KR_FAIL(err, KR_OUT_OF_HOST_MEMORY, "no host memory to say why nothing of it can run");
    const kr_status status = kr__registry_nvrtc(w->registry, &nvrtc, err);
    if (status)
        return status;
    char op_name[KR__MAX_FULL_NAME], cc[KR_CC_TEXT_BYTES];
    const kr_device_info *info = kr_device_get_info(w->device);
    KR_FAIL(err, KR_NOT_ON_THIS_DEVICE, "nothing of it can run on %s (%s): %s", info->name,
            kr_cc_format(info->cc, cc), reasons);
    kr__error_op(err, kr__op_full_name(&w->entry->def->op, w->type_index, op_name));
    kr__error_device(err, info->ordinal);
    if (nvrtc)
        kr__error_advice(err, "`kregistry explain %s` shows every choice.", op_name);
    else if (w->registry->no_nvrtc)
        kr__error_advice(err, "Let NVRTC be used, or ship an image for this device.");
    else
        kr__registry_tell_nvrtc(w->registry, err);
    return KR_NOT_ON_THIS_DEVICE;
}

static kr_status try_candidates(const want *w, const kr__selection *selection, kr__loaded **ret_loaded,
                                kr__text *reasons, kr_error *err)
{
    const char *variant = w->entry->def->op.variants[w->variant].name;
    for (size_t i = 0; i < selection->n; i++) {
        const kr__candidate *c = &selection->list[i];
        char image_name[64];
        if (c->variant != w->variant)
            continue;
        kr__candidate_image(c, image_name);
        if (!c->usable) {
            note(reasons, variant, image_name, c->reason);
            continue;
        }
        const kr_status status = load_candidate(w, c, ret_loaded, err);
        if (!status || !another_may_do(err, status))
            return status;
        kr__log_text(&w->registry->runtime->log, KR_LOG_INFO, "%s %s passed over: %s", err->op, image_name,
                     err->message);
        note(reasons, variant, image_name, err->message);
    }
    return reasons->failed
               ? KR_FAIL(err, KR_OUT_OF_HOST_MEMORY, "no host memory to say why nothing of it can run")
               : KR_FAIL(err, KR_NOT_ON_THIS_DEVICE, "%s", reasons->data);
}

/* err is not NULL. */
static kr_status make(const want *w, kr__loaded **ret_loaded, kr_error *err)
{
    kr_machine machine;
    kr_status status = kr_registry_machine(w->registry, w->device, &machine, err);
    kr__selection *selection = status ? NULL : kr__alloc(1, sizeof *selection, err);
    if (!selection)
        return status ? status : KR_OUT_OF_HOST_MEMORY;
    size_t n_images;
    const kr__embedded_image *images = kr__shipped_images(w->entry->def, &n_images);
    kr__select(w->entry->def, w->type_index, &machine, images, n_images, selection);
    kr__text reasons = {0};
    status = try_candidates(w, selection, ret_loaded, &reasons, err);
    kr__text_free(&reasons);
    free(selection);
    return status;
}

/* The kernel of one variant; without a lock once it is there. err is not NULL. */
static kr_status load_variant(const want *w, const kr__loaded **ret_loaded, kr_error *err)
{
    kr_registry *registry = w->registry;
    kr__slot *slot = &w->entry->slots[place_of(w) * w->entry->n_devices + w->device_index];
    const kr__loaded *there = atomic_load_explicit(&slot->loaded, memory_order_acquire);
    kr_status status = KR_OK;
    if (!there) {
        pthread_mutex_lock(&registry->lock);
        while (slot->busy)
            pthread_cond_wait(&registry->landed, &registry->lock);
        there = atomic_load_explicit(&slot->loaded, memory_order_relaxed);
        if (slot->failure) {
            tell(slot->failure, err);
            status = slot->failure->status;
        } else if (!there) {
            kr__loaded *made = NULL;
            slot->busy = true;
            pthread_mutex_unlock(&registry->lock);
            status = make(w, &made, err);
            pthread_mutex_lock(&registry->lock);
            slot->busy = false;
            slot->failure = status ? keep(err, status) : NULL;
            atomic_store_explicit(&slot->loaded, made, memory_order_release);
            pthread_cond_broadcast(&registry->landed);
            there = made;
        }
        pthread_mutex_unlock(&registry->lock);
    }
    if (!status)
        *ret_loaded = there;
    return status;
}

/* ---- all variants ---- */

/* Down from the preferred variant to the first that asks nothing of the buffers. */
static kr_status fill_chain(want *w, kr__chain *chain, kr__text *reasons, kr_error *err)
{
    const kr__op_def *def = w->entry->def;
    for (size_t v = def->op.n_variants; v-- > 0;) {
        const kr__loaded *loaded;
        w->variant = v;
        const kr_status status = load_variant(w, &loaded, err);
        if (status && !another_may_do(err, status))
            return status; /* no fault of its images: the device is busy, memory is short, ... */
        if (status) {
            kr__text_add(reasons, "%s%s", reasons->bytes ? "; " : "", err->message);
            continue;
        }
        chain->links[chain->n].variant = v;
        chain->links[chain->n].align_bytes = def->variants[v].align_bytes;
        chain->links[chain->n++].loaded = loaded;
        if (!def->variants[v].align_bytes)
            break;
    }
    return chain->n ? KR_OK : none_will_do(w, reasons->failed ? NULL : reasons->data, err);
}

static kr_status get_chain(want *w, const kr__chain **ret_chain, kr_error *err)
{
    _Atomic(const kr__chain *) *place =
        &w->entry->chains[w->type_index * w->entry->n_devices + w->device_index];
    if ((*ret_chain = atomic_load_explicit(place, memory_order_acquire)))
        return KR_OK;
    kr__chain *chain = kr__alloc(1, sizeof *chain, err);
    if (!chain)
        return KR_OUT_OF_HOST_MEMORY;
    kr__text reasons = {0};
    const kr_status status = fill_chain(w, chain, &reasons, err);
    kr__text_free(&reasons);
    const kr__chain *other = NULL;
    if (status) {
        free(chain);
        return status;
    }
    if (!atomic_compare_exchange_strong(place, &other, chain)) {
        free(chain); /* another thread was first; its chain says the same */
        chain = NULL;
    }
    *ret_chain = chain ? chain : other;
    return KR_OK;
}

static kr_status not_aligned(const want *w, uint64_t align_bytes, kr_error *err)
{
    char op_name[KR__MAX_FULL_NAME];
    const uint64_t needed = w->entry->def->variants[w->variant].align_bytes;
    KR_FAIL(err, KR_INVALID_ARGUMENT,
            "variant %s needs every buffer aligned to %llu bytes; these are to %llu",
            w->entry->def->op.variants[w->variant].name, (unsigned long long)needed,
            (unsigned long long)align_bytes);
    kr__error_op(err, kr__op_full_name(&w->entry->def->op, w->type_index, op_name));
    kr__error_advice(err, "Begin every buffer at a multiple of %llu bytes.", (unsigned long long)needed);
    return KR_INVALID_ARGUMENT;
}

static kr_status load_any(want *w, uint64_t align_bytes, const kr__loaded **ret_loaded, kr_error *err)
{
    const kr__chain *chain;
    const kr_status status = get_chain(w, &chain, err);
    if (status)
        return status;
    for (size_t i = 0; i < chain->n; i++) {
        w->variant = chain->links[i].variant;
        if (chain->links[i].align_bytes <= align_bytes) {
            *ret_loaded = chain->links[i].loaded;
            return KR_OK;
        }
    }
    return not_aligned(w, align_bytes, err);
}

static kr_status load_named(want *w, const char *variant, uint64_t align_bytes, const kr__loaded **ret_loaded,
                            kr_error *err)
{
    kr_status status = kr__variant_find(&w->entry->def->op, variant, &w->variant, err);
    if (status)
        return status;
    if (w->entry->def->variants[w->variant].align_bytes > align_bytes)
        return not_aligned(w, align_bytes, err);
    status = load_variant(w, ret_loaded, err);
    return status && another_may_do(err, status) ? none_will_do(w, err->message, err) : status;
}

kr_status kr__op_load(kr_registry *registry, kr__entry *entry, size_t type_index, const char *variant,
                      uint64_t align_bytes, kr_device *device, size_t *ret_variant,
                      const kr__loaded **ret_loaded, kr_error *err)
{
    want w = {registry, entry,  type_index,
              0,        device, registry->runtime ? kr__device_index(registry, device) : SIZE_MAX};
    if (w.device_index == SIZE_MAX)
        return KR_FAIL(err, KR_INVALID_ARGUMENT, "the device is not one of the registry's runtime");
    kr_error own; /* choices are made from the error, so there is one even where the caller wants none */
    err = err ? err : &own;
    const kr_status status = variant ? load_named(&w, variant, align_bytes, ret_loaded, err)
                                     : load_any(&w, align_bytes, ret_loaded, err);
    if (!status)
        *ret_variant = w.variant;
    return status;
}

/* ---- preparing ---- */

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
        tell(err, c->first);
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
            tell(c.first, err);
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
