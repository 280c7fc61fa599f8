/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "ptx/image/image.h"
#include "registry/internal.h"
#include "registry/pack.h"
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
        case CUDA_ERROR_INVALID_SOURCE: /* of a fatbin: machine code for another device than its entry says */
        case CUDA_ERROR_JIT_COMPILER_NOT_FOUND:
        case CUDA_ERROR_UNSUPPORTED_PTX_VERSION:
        case CUDA_ERROR_JIT_COMPILATION_DISABLED:
            return true;
        default:
            return false;
        }
    if (err->api == KR_API_NVRTC)
        return status != KR_COMPILE_FAILED;
    return status == KR_NOT_ON_THIS_MACHINE || status == KR_NOT_ON_THIS_DEVICE || status == KR_CORRUPT ||
           status == KR_COMPILE_FAILED; /* PTX that cannot be releveled */
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
    kr_status status = kr__registry_nvrtc(w->registry, &nvrtc, err);
    if (!status)
        status = kr__source_check(w->entry->def, err);
    if (status)
        return status;
    if (!nvrtc) {
        KR_FAIL(err, KR_NOT_ON_THIS_MACHINE, "there is no NVRTC");
        kr__registry_tell_nvrtc(w->registry, err);
        return KR_NOT_ON_THIS_MACHINE;
    }
    const kr__job job = {w->entry->def, w->type_index, w->variant, arch, kind, w->registry->cache, false};
    status = kr__op_compile(nvrtc, &job, ret_compiled, err);
    if (!status && (*ret_compiled)->cache_note[0])
        kr__log_text(&w->registry->runtime->log, KR_LOG_INFO, "%s", (*ret_compiled)->cache_note);
    return status;
}

static kr__built *find_built(kr__built *list, const kr__candidate *c)
{
    while (list && (list->shipped != c->shipped || kr_cc_compare(list->arch, c->arch) ||
                    list->arch.suffix != c->arch.suffix || list->kind != c->kind))
        list = list->next;
    return list;
}

static bool is_beside(const want *w, const kr__shipped *s)
{
    const kr_cc most = w->registry->policy.max_cc;
    return s->kind == KR_IMAGE_PTX && s->image->variant == w->variant && s->image->type == w->type_index &&
           (!most.major || kr_cc_compare(s->arch, most) <= 0);
}

/* Images to be joined, and those that were unpacked for it. */
typedef struct parts {
    size_t n;
    kr__fatbin_part *list;
    char **made;
} parts;

/* The cubin, and what PTX beside it can be read: the rest is a candidate of its own, which says why. */
static kr_status gather(const want *w, const kr__shipped *cubin, parts *to, kr_error *err)
{
    for (size_t i = 0; i < w->entry->n_images; i++) {
        const kr__shipped *s = &w->entry->images[i];
        const char *data;
        size_t bytes;
        kr__image_facts facts;
        if (s != cubin && !is_beside(w, s))
            continue;
        kr_status status = kr__shipped_bytes(s, &data, &bytes, &to->made[to->n], err);
        if (!status && (status = kr__image_read(data, bytes, &facts, err)))
            free(to->made[to->n]);
        if (!status)
            to->list[to->n++] = (kr__fatbin_part){s->kind, s->arch, s->isa, data, bytes};
        else if (s == cubin || status != KR_CORRUPT)
            return status;
    }
    return KR_OK;
}

/* Machine code goes to the driver with the PTX that is shipped beside it, as NVRTC's does: what cannot
 * execute machine code takes that. */
static kr_status join(const want *w, const kr__shipped *cubin, kr__built *built, const char **ret_image,
                      size_t *ret_bytes, kr_error *err)
{
    parts all = {.list = kr__alloc(w->entry->n_images, sizeof *all.list, err),
                 .made = kr__alloc(w->entry->n_images, sizeof *all.made, err)};
    void *joined = NULL;
    kr_status status = all.list && all.made ? gather(w, cubin, &all, err) : KR_OUT_OF_HOST_MEMORY;
    if (!status && all.n == 1) { /* alone it goes as it is */
        built->made = all.made[--all.n];
        *ret_image = all.list[0].data;
        *ret_bytes = all.list[0].bytes;
    } else if (!status && !(status = kr__fatbin_write(all.list, all.n, &joined, ret_bytes, err))) {
        *ret_image = built->made = joined;
    }
    while (all.n)
        free(all.made[--all.n]);
    free(all.list);
    free(all.made);
    return status;
}

static kr_status open_shipped(const want *w, kr__built *built, const char **ret_image, size_t *ret_bytes,
                              kr_error *err)
{
    const kr__shipped *shipped = built->shipped;
    const bool is_ptx = shipped->kind == KR_IMAGE_PTX;
    const kr_status status = is_ptx ? kr__shipped_bytes(shipped, ret_image, ret_bytes, &built->made, err)
                                    : join(w, shipped, built, ret_image, ret_bytes, err);
    built->ptx = is_ptx && !status ? *ret_image : NULL;
    built->ptx_bytes = built->ptx ? *ret_bytes : 0;
    return status;
}

static kr_status open_compiled(const want *w, kr__built *built, const char **ret_image, size_t *ret_bytes,
                               kr_error *err)
{
    const kr_status status = compile(w, built->arch, built->kind, &built->compiled, err);
    if (status)
        return status;
    *ret_image = built->compiled->image;
    *ret_bytes = built->compiled->image_bytes;
    built->ptx = built->compiled->ptx;
    built->ptx_bytes = built->ptx ? strlen(built->ptx) : 0;
    return KR_OK;
}

/* PTX that is newer than the driver, as the driver reads it. */
static kr_status relevel(const want *w, kr__built *built, const char *name, const char **image, size_t *bytes,
                         kr_error *err)
{
    const int driver = w->registry->runtime->driver->version;
    const kr_relevel_options options = {.struct_size = sizeof options, .driver_version = driver};
    kr__image_facts facts;
    kr_status status = kr__image_read(*image, *bytes, &facts, err);
    if (status || facts.kind != KR_IMAGE_PTX || facts.isa <= kr__driver_isa(driver))
        return status;
    status = kr_ptx_relevel(*image, *bytes, &options, &built->releveled, err);
    if (status)
        return kr__while(err, status, "releveling PTX %d.%d for the driver (CUDA %d.%d)", facts.isa / 10,
                         facts.isa % 10, driver / 1000, driver % 1000 / 10);
    *image = built->releveled->ptx;
    *bytes = built->releveled->bytes;
    kr__format(built->change, sizeof built->change,
               "PTX %d.%d releveled to %d.%d for the driver (CUDA %d.%d)", facts.isa / 10, facts.isa % 10,
               built->releveled->to_isa / 10, built->releveled->to_isa % 10, driver / 1000,
               driver % 1000 / 10);
    kr__log_text(&w->registry->runtime->log, KR_LOG_INFO, "%s: %s", name, built->change);
    return KR_OK;
}

static kr_status fill(const want *w, kr__built *built, const char *name, kr_error *err)
{
    const char *image;
    size_t bytes;
    kr_status status = (built->shipped ? open_shipped : open_compiled)(w, built, &image, &bytes, err);
    if (!status)
        status = relevel(w, built, name, &image, &bytes, err);
    if (!status)
        status = kr__code_create(w->registry->runtime->driver, image, bytes, name, &built->code, err);
    if (status) {
        kr_releveled_destroy(&built->releveled);
        kr_compiled_destroy(&built->compiled);
        free(built->made);
        built->made = NULL;
    }
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
        pthread_cond_broadcast(&registry->landed);
    }
    if (!status)
        *ret_built = built;
    pthread_mutex_unlock(&registry->lock);
    return status;
}

/* ---- loading one candidate ---- */

static kr_status load_image(const want *w, const kr__candidate *c, const kr__built *built, kr__loaded *loaded,
                            kr_error *err)
{
    const kr__op_def *def = w->entry->def;
    const kr__launch_rule *rule = &def->variants[w->variant].launch;
    kr_status status = kr__code_load(built->code, w->device, &loaded->module, err);
    if (!status)
        status = kr_module_kernel(loaded->module, def->op.variants[w->variant].name, &loaded->kernel, err);
    if (!status)
        status = kr__signature_check(def, w->type_index, w->variant, loaded->kernel, built->ptx,
                                     built->ptx_bytes, err);
    if (!status && rule->kind == KR__LAUNCH_ELEMENTWISE && !rule->shared)
        status = kr__fit_of(loaded->kernel, rule->block[0], 0, &loaded->usual, err);
    loaded->kind = c->kind;
    loaded->arch = c->arch;
    loaded->origin = c->shipped ? "shipped" : built->compiled->is_found ? "cache" : "nvrtc";
    loaded->change = built->releveled ? built->change : NULL;
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

/* ---- why not ---- */

/* Why nothing will do: in a sentence, and line by line with what compilers said. */
typedef struct reasons {
    kr__text sentence, lines;
    kr_error first; /* what the driver or NVRTC failed with first; status KR_OK: neither did */
} reasons;

static void forget(reasons *r)
{
    kr__text_free(&r->sentence);
    kr__text_free(&r->lines);
    free(r);
}

static void note(reasons *r, const char *variant, const char *image_name, const char *reason, const char *log)
{
    const char *gap = image_name[0] ? " " : "";
    kr__text_add(&r->sentence, "%s%s%s%s: %s", r->sentence.bytes ? "; " : "", variant, gap, image_name,
                 reason);
    kr__text_add(&r->lines, "%s%s%s: %s\n", variant, gap, image_name, reason);
    for (size_t n; *log; log += n + (log[n] == '\n')) {
        n = strcspn(log, "\n");
        kr__text_add(&r->lines, "    %.*s\n", (int)n, log);
    }
}

/* What another variant's error says. */
static void note_error(reasons *r, const kr_error *err)
{
    kr__text_add(&r->sentence, "%s%s", r->sentence.bytes ? "; " : "", err->message);
    kr__text_add(&r->lines, "%s", err->log);
    if (!r->first.status && err->api)
        r->first = *err;
}

/* The foreign code and the advice are those of the first failure. */
static kr_status fail_for(const reasons *r, kr_error *err)
{
    if (r->sentence.failed || r->lines.failed)
        return KR_FAIL(err, KR_OUT_OF_HOST_MEMORY, "no host memory to say why nothing of it can run");
    KR_FAIL(err, KR_NOT_ON_THIS_DEVICE, "%s", r->sentence.data);
    kr__error_log(err, r->lines.data);
    if (r->first.status) {
        kr__error_code(err, r->first.api, r->first.code, r->first.code_name, r->first.function);
        kr__error_advice(err, "%s", r->first.advice);
    }
    return KR_NOT_ON_THIS_DEVICE;
}

/* *ret_question is of *ret_machine. */
static kr_status choose(const want *w, kr_machine *ret_machine, kr__question *ret_question,
                        kr__selection **ret_selection, kr_error *err)
{
    const kr__entry *entry = w->entry;
    const kr_status status = kr_registry_machine(w->registry, w->device, ret_machine, err);
    if (status)
        return status;
    *ret_question = (kr__question){entry->def, w->type_index, ret_machine,    &w->registry->policy,
                                   SIZE_MAX,   entry->images, entry->n_images};
    return kr__select(ret_question, ret_selection, err);
}

/* `only`: the one variant that was wanted; SIZE_MAX: any. The log is for what the message cannot hold. err is
 * not NULL. */
static kr_status none_will_do(const want *w, size_t only, const reasons *r, kr_error *err)
{
    kr_machine machine;
    kr__question question;
    kr__selection *selection;
    kr_status status = choose(w, &machine, &question, &selection, err);
    if (status)
        return status;
    char op_name[KR__MAX_FULL_NAME], cc[KR_CC_TEXT_BYTES];
    const kr_device_info *info = kr_device_get_info(w->device);
    status = fail_for(r, err);
    if (status != KR_NOT_ON_THIS_DEVICE) {
        free(selection);
        return status;
    }
    kr__format(err->message, sizeof err->message, "nothing of it can run on %s (%s): %s", info->name,
               kr_cc_format(info->cc, cc), r->sentence.data);
    if (strlen(err->message) + 1 < sizeof err->message && !strstr(err->log, "\n    "))
        err->log[0] = '\0';
    kr__error_op(err, kr__op_full_name(&w->entry->def->op, w->type_index, op_name));
    kr__error_device(err, info->ordinal);
    if (!r->first.status && kr__selection_advise(&question, selection, only, err) && w->entry->def->text)
        kr__registry_tell_nvrtc(w->registry, err);
    free(selection);
    return status;
}

/* ---- one variant ---- */

static void tell_choice(const want *w, const kr__candidate *c)
{
    char op_name[KR__MAX_FULL_NAME], image_name[64];
    const kr_op *op = &w->entry->def->op;
    kr__log_text(&w->registry->runtime->log, KR_LOG_INFO, "%s on device %d: %s %s: %s",
                 kr__op_full_name(op, w->type_index, op_name), kr_device_get_info(w->device)->ordinal,
                 op->variants[w->variant].name, kr__candidate_image(c, image_name), c->reason);
}

static kr_status try_candidates(const want *w, const kr__selection *selection, kr__loaded **ret_loaded,
                                reasons *r, kr_error *err)
{
    const char *variant = w->entry->def->op.variants[w->variant].name;
    for (size_t i = 0; i < selection->n; i++) {
        const kr__candidate *c = &selection->list[i];
        char image_name[64];
        if (c->variant != w->variant)
            continue;
        kr__candidate_image(c, image_name);
        if (!c->usable) {
            note(r, variant, image_name, c->reason, "");
            continue;
        }
        const kr_status status = load_candidate(w, c, ret_loaded, err);
        if (!status)
            tell_choice(w, c);
        if (!status || !another_may_do(err, status))
            return status;
        kr__log_text(&w->registry->runtime->log, KR_LOG_INFO, "%s %s passed over: %s", err->op, image_name,
                     err->message);
        note(r, variant, image_name, err->message, err->log);
        if (!r->first.status && err->api)
            r->first = *err;
    }
    return fail_for(r, err);
}

/* err is not NULL. */
static kr_status make(const want *w, kr__loaded **ret_loaded, kr_error *err)
{
    kr_machine machine;
    kr__question question;
    kr__selection *selection;
    kr_status status = choose(w, &machine, &question, &selection, err);
    if (status)
        return status;
    reasons *r = kr__alloc(1, sizeof *r, err);
    status = r ? try_candidates(w, selection, ret_loaded, r, err) : KR_OUT_OF_HOST_MEMORY;
    if (r)
        forget(r);
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
static kr_status fill_chain(want *w, kr__chain *chain, reasons *r, kr_error *err)
{
    const kr__op_def *def = w->entry->def;
    for (size_t v = def->op.n_variants; v-- > 0;) {
        const kr__loaded *loaded;
        w->variant = v;
        const kr_status status = load_variant(w, &loaded, err);
        if (status && !another_may_do(err, status))
            return status; /* no fault of its images: the device is busy, memory is short, ... */
        if (status) {
            note_error(r, err);
            continue;
        }
        chain->links[chain->n].variant = v;
        chain->links[chain->n].align_bytes = def->variants[v].align_bytes;
        chain->links[chain->n++].loaded = loaded;
        if (!def->variants[v].align_bytes)
            break;
    }
    return chain->n ? KR_OK : none_will_do(w, SIZE_MAX, r, err);
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
    reasons *r = kr__alloc(1, sizeof *r, err);
    const kr_status status = r ? fill_chain(w, chain, r, err) : KR_OUT_OF_HOST_MEMORY;
    if (r)
        forget(r);
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

static kr_status load_one(want *w, size_t variant, uint64_t align_bytes, const kr__loaded **ret_loaded,
                          kr_error *err)
{
    w->variant = variant;
    if (w->entry->def->variants[variant].align_bytes > align_bytes)
        return not_aligned(w, align_bytes, err);
    const kr_status status = load_variant(w, ret_loaded, err);
    if (!status || !another_may_do(err, status))
        return status;
    reasons *r = kr__alloc(1, sizeof *r, err);
    if (!r)
        return KR_OUT_OF_HOST_MEMORY;
    note_error(r, err);
    none_will_do(w, variant, r, err);
    forget(r);
    return err->status;
}

/* The variant that the caller names, else that of KREGISTRY_VARIANT, else the best. */
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
    size_t only = entry->asked_variant;
    kr_status status = kr__registry_check_policy(registry, err);
    if (!status && variant)
        status = kr__variant_find(&entry->def->op, variant, &only, err);
    if (status)
        return status;
    status = only == SIZE_MAX ? load_any(&w, align_bytes, ret_loaded, err)
                              : load_one(&w, only, align_bytes, ret_loaded, err);
    if (!status)
        *ret_variant = w.variant;
    else if (!variant && only != SIZE_MAX)
        kr__while(err, status, "obeying KREGISTRY_VARIANT");
    return status;
}
