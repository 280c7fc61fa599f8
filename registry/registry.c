/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "registry/internal.h"
#include "registry/pack.h"
#include "registry/preamble.h"
#include "registry/source.h"

/* ---- names ---- */

static kr__ops *ops_of(kr_registry *registry)
{
    return atomic_load_explicit(&registry->ops, memory_order_acquire);
}

/* Where the name is, or would be. */
static size_t place_of(const kr__ops *ops, const char *name, size_t bytes)
{
    size_t low = 0, high = ops->n;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        const char *there = ops->list[middle]->def->op.name;
        const int order = strncmp(there, name, bytes);
        if (order < 0)
            low = middle + 1;
        else
            high = middle; /* a longer name sorts behind, too */
    }
    return low;
}

static kr__entry *entry_of(const kr__ops *ops, const char *name, size_t bytes)
{
    const size_t at = place_of(ops, name, bytes);
    if (at == ops->n)
        return NULL;
    const char *there = ops->list[at]->def->op.name;
    return strncmp(there, name, bytes) || there[bytes] ? NULL : ops->list[at];
}

/* A name without a type is compared with names without one. */
static void suggest(const kr__ops *ops, const char *full_name, kr_error *err)
{
    const bool typed = strchr(full_name, '.');
    char best[KR__MAX_FULL_NAME] = "";
    size_t distance = SIZE_MAX;
    for (size_t i = 0; i < ops->n; i++) {
        const kr_op *op = &ops->list[i]->def->op;
        for (size_t t = 0; t < (typed ? kr__op_n_instances(op) : 1); t++) {
            char name[KR__MAX_FULL_NAME];
            kr__op_full_name(op, t, name);
            if (kr__nearer(full_name, typed ? name : op->name, &distance))
                kr__format(best, sizeof best, "%s", typed ? name : op->name);
        }
    }
    if (best[0])
        kr__error_advice(err, "Did you mean \"%s\"?", best);
    else
        kr__error_advice(err, "`kregistry list` shows the ops.");
}

static void list_types(const kr_op *op, char *to, size_t bytes)
{
    to[0] = '\0';
    for (size_t i = 0; i < op->n_types; i++)
        kr__append(to, bytes, "%s%s", i ? ", " : "", kr_type_name(op->types[i]));
}

static kr_status find_type(const kr_op *op, const char *type, size_t *ret_type_index, kr_error *err)
{
    char types[128];
    list_types(op, types, sizeof types);
    if (!type && op->n_types > 1) {
        KR_FAIL(err, KR_NOT_FOUND, "%s has several types: %s", op->name, types);
        kr__error_advice(err, "Name one: %s.%s.", op->name, kr_type_name(op->types[0]));
        return KR_NOT_FOUND;
    }
    *ret_type_index = 0;
    if (!type)
        return KR_OK;
    for (size_t i = 0; i < op->n_types; i++)
        if (!strcmp(type, kr_type_name(op->types[i]))) {
            *ret_type_index = i;
            return KR_OK;
        }
    KR_FAIL(err, KR_NOT_FOUND,
            op->n_types ? "%s has no type %s; its types are %s" : "%s has no types, so no %s%s", op->name,
            type, types);
    if (op->n_types)
        kr__error_advice(err, "Did you mean \"%s.%s\"?", op->name, kr_type_name(op->types[0]));
    else
        kr__error_advice(err, "Did you mean \"%s\"?", op->name);
    return KR_NOT_FOUND;
}

kr_status kr__registry_find(kr_registry *registry, const char *full_name, kr__entry **ret_entry,
                            size_t *ret_type_index, kr_error *err)
{
    const kr__ops *ops = ops_of(registry);
    const char *dot = strchr(full_name, '.');
    kr__entry *entry = entry_of(ops, full_name, dot ? (size_t)(dot - full_name) : strlen(full_name));
    if (!entry) {
        KR_FAIL(err, KR_NOT_FOUND, "there is no op \"%s\"", full_name);
        suggest(ops, full_name, err);
        return KR_NOT_FOUND;
    }
    const kr_status status = find_type(&entry->def->op, dot ? dot + 1 : NULL, ret_type_index, err);
    if (!status)
        *ret_entry = entry;
    return status;
}

kr_status kr__variant_find(const kr_op *op, const char *name, size_t *ret_variant, kr_error *err)
{
    char names[512] = "";
    for (size_t i = 0; i < op->n_variants; i++) {
        if (!strcmp(op->variants[i].name, name)) {
            *ret_variant = i;
            return KR_OK;
        }
        kr__append(names, sizeof names, "%s%s", i ? ", " : "", op->variants[i].name);
    }
    KR_FAIL(err, KR_NOT_FOUND, "%s has no variant \"%s\"", op->name, name);
    kr__error_op(err, op->name);
    kr__error_advice(err, "Its variants are %s.", names);
    return KR_NOT_FOUND;
}

size_t kr__device_index(const kr_registry *registry, const kr_device *device)
{
    for (size_t i = 0; i < kr_runtime_n_devices(registry->runtime); i++)
        if (kr_runtime_device(registry->runtime, i) == device)
            return i;
    return SIZE_MAX;
}

kr_status kr_registry_find(kr_registry *registry, const char *full_name, const kr_op **ret_op,
                           kr_type *ret_type, kr_error *err)
{
    KR_REQUIRE(err, registry, full_name, ret_op);
    kr__entry *entry;
    size_t type_index;
    const kr_status status = kr__registry_find(registry, full_name, &entry, &type_index, err);
    if (status)
        return status;
    *ret_op = &entry->def->op;
    if (ret_type && entry->def->op.n_types)
        *ret_type = entry->def->op.types[type_index];
    return KR_OK;
}

size_t kr_registry_n_ops(kr_registry *registry)
{
    return registry ? ops_of(registry)->n : 0;
}

const kr_op *kr_registry_op(kr_registry *registry, size_t index)
{
    return index < kr_registry_n_ops(registry) ? &ops_of(registry)->list[index]->def->op : NULL;
}

kr_status kr__registry_check_policy(kr_registry *registry, kr_error *err)
{
    if (atomic_load_explicit(&registry->policy_ops_exist, memory_order_relaxed))
        return KR_OK;
    const kr__ops *ops = ops_of(registry);
    const char *at = registry->policy.variants, *name;
    size_t bytes;
    while ((name = kr__policy_next_op(&at, &bytes))) {
        char text[KR__MAX_FULL_NAME];
        kr__format(text, sizeof text, "%.*s", bytes < sizeof text ? (int)bytes : KR__MAX_NAME, name);
        if (entry_of(ops, name, bytes))
            continue;
        KR_FAIL(err, KR_NOT_FOUND, "KREGISTRY_VARIANT: there is no op \"%s\"", text);
        suggest(ops, text, err);
        return KR_NOT_FOUND;
    }
    atomic_store_explicit(&registry->policy_ops_exist, true, memory_order_relaxed);
    return KR_OK;
}

size_t kr_registry_shipped(kr_registry *registry, const kr_op *op, size_t variant,
                           kr_shipped_image *ret_images, size_t max)
{
    if (!registry || !op)
        return 0;
    size_t n = 0;
    const kr__entry *entry = entry_of(ops_of(registry), op->name, strlen(op->name));
    for (size_t i = 0; entry && i < entry->n_images; i++) {
        const kr__shipped *shipped = &entry->images[i];
        if (shipped->image->variant != variant)
            continue;
        if (ret_images && n < max)
            ret_images[n] = (kr_shipped_image){shipped->kind, shipped->arch, shipped->isa,
                                               op->n_types ? op->types[shipped->image->type] : KR_TYPE_U8};
        n++;
    }
    return n;
}

/* ---- adding ---- */

static bool is_same_image(const kr__image *a, const kr__image *b)
{
    return a->type == b->type && a->variant == b->variant && a->kind == b->kind &&
           !kr_cc_compare(a->arch, b->arch) && a->arch.suffix == b->arch.suffix &&
           memcmp(a->stored.sha256, b->stored.sha256, KR__SHA256_BYTES) == 0;
}

/* The images of `there` before those of `def` that are others. */
static kr_status join_images(kr__op_def *def, const kr__op_def *there, kr_error *err)
{
    kr__image *images = kr__arena_alloc(&def->arena, (there->n_images + def->n_images) * sizeof *images);
    size_t n = there->n_images;
    if (!images)
        return KR_FAIL(err, KR_OUT_OF_HOST_MEMORY, "no host memory for the images of %s", def->op.name);
    for (size_t i = 0; i < n; i++)
        images[i] = there->images[i];
    for (size_t i = 0; i < def->n_images; i++) {
        size_t same = 0;
        while (same < there->n_images && !is_same_image(&there->images[same], &def->images[i]))
            same++;
        if (same == there->n_images)
            images[n++] = def->images[i];
    }
    def->images = images;
    def->n_images = n;
    return KR_OK;
}

/* An op of a pack takes the place of the one that was made of the same source, and what that had. */
static kr_status take_place(kr__entry *entry, kr__entry *there, kr_error *err)
{
    kr__op_def *def = entry->def;
    const kr__op_def *old = there->def;
    uint8_t digest[KR__SHA256_BYTES];
    kr__op_identity(old, digest);
    if (!def->identity || memcmp(digest, def->identity, sizeof digest) != 0) {
        KR_FAIL(err, KR_INVALID_ARGUMENT, "%s: the op name \"%s\" is taken by %s%s", def->op.file,
                def->op.name, old->op.file, def->identity ? ", which is another source" : "");
        kr__error_advice(err, "Give one of the two another name.");
        return KR_INVALID_ARGUMENT;
    }
    const kr_status status = join_images(def, old, err);
    if (status)
        return status;
    if (!def->text) {
        def->text = old->text;
        def->text_bytes = old->text_bytes;
        def->headers = old->headers;
        def->sources = old->sources;
        def->n_sources = old->n_sources;
    }
    def->references = old->references;
    entry->before = there;
    free(entry->images);
    entry->images = NULL;
    entry->n_images = 0;
    return kr__shipped_list(def->images, def->n_images, &entry->images, &entry->n_images, err);
}

/* A new snapshot with the entries added: all, or none where a name is taken. */
static kr_status publish(kr_registry *registry, kr__entry *const *entries, size_t n, kr_error *err)
{
    pthread_mutex_lock(&registry->lock);
    kr__ops *old = atomic_load_explicit(&registry->ops, memory_order_relaxed);
    kr__ops *ops = kr__alloc(1, sizeof *ops + (old->n + n) * sizeof ops->list[0], err);
    kr_status status = ops ? KR_OK : KR_OUT_OF_HOST_MEMORY;
    if (ops) {
        ops->older = old;
        ops->n = old->n;
        memcpy(ops->list, old->list, old->n * sizeof ops->list[0]);
    }
    for (size_t i = 0; i < n && !status; i++) {
        const char *name = entries[i]->def->op.name;
        const size_t bytes = strlen(name), at = place_of(ops, name, bytes);
        kr__entry *taken = entry_of(ops, name, bytes);
        if (taken && (status = take_place(entries[i], taken, err)))
            break;
        if (!taken) {
            memmove(&ops->list[at + 1], &ops->list[at], (ops->n - at) * sizeof ops->list[0]);
            ops->n++;
        }
        ops->list[at] = entries[i];
    }
    if (!status)
        atomic_store_explicit(&registry->ops, ops, memory_order_release);
    else
        free(ops);
    for (size_t i = 0; status && i < n; i++)
        entries[i]->before = NULL; /* which is there still */
    pthread_mutex_unlock(&registry->lock);
    return status;
}

kr_status kr_registry_add_source(kr_registry *registry, const char *file, const char *text, size_t text_bytes,
                                 kr_error *err)
{
    KR_REQUIRE(err, registry, file, text);
    kr__entry *entry = NULL;
    kr__op_def *def;
    kr_status status = kr__op_parse(file, text, text_bytes, &def, err);
    if (!status)
        status = kr__entry_create(registry, def, &entry, err);
    if (!status)
        status = publish(registry, &entry, 1, err);
    if (status)
        kr__entry_free(&entry);
    return status;
}

static kr_status entry_from_file(kr_registry *registry, const char *path, kr__entry **ret_entry,
                                 kr_error *err)
{
    kr__op_def *def;
    const kr_status status = kr__op_read(path, &def, NULL, err);
    return status ? status : kr__entry_create(registry, def, ret_entry, err);
}

/* All or none. */
static kr_status add_files(kr_registry *registry, char *const *paths, size_t n, kr_error *err)
{
    size_t n_made = 0;
    kr__entry **entries = kr__alloc(n, sizeof(kr__entry *), err);
    kr_status status = entries ? KR_OK : KR_OUT_OF_HOST_MEMORY;
    for (; n_made < n && !status; n_made += !status)
        status = entry_from_file(registry, paths[n_made], &entries[n_made], err);
    if (!status)
        status = publish(registry, entries, n_made, err);
    while (status && n_made)
        kr__entry_free(&entries[--n_made]);
    free(entries);
    return status;
}

kr_status kr_registry_add_file(kr_registry *registry, const char *path, kr_error *err)
{
    KR_REQUIRE(err, registry, path);
    return add_files(registry, (char *const[]){(char *)path}, 1, err);
}

kr_status kr_registry_add_directory(kr_registry *registry, const char *path, kr_error *err)
{
    KR_REQUIRE(err, registry, path);
    char **paths = NULL;
    size_t n = 0;
    kr_status status = kr__source_list(path, &paths, &n, err);
    if (!status)
        status = add_files(registry, paths, n, err);
    free(paths);
    return status ? kr__while(err, status, "adding the ops of %s", path) : KR_OK;
}

/* Takes the pack, also where it fails. references: a list for each of its ops; NULL: there are none. */
static kr_status add_pack(kr_registry *registry, kr_pack *pack, const kr_reference_fn *const *references,
                          kr_error *err)
{
    const size_t n = kr_pack_get_info(pack).n_ops;
    size_t n_made = 0;
    kr__entry **entries = kr__alloc(n, sizeof *entries, err);
    kr__held *held = kr__alloc(1, sizeof *held, err);
    kr_status status = entries && held ? KR_OK : KR_OUT_OF_HOST_MEMORY;
    for (; n_made < n && !status; n_made += !status) {
        kr__op_def *def = kr__pack_take_op(pack, n_made);
        def->references = references ? references[n_made] : NULL;
        status = kr__entry_create(registry, def, &entries[n_made], err);
    }
    if (!status)
        status = publish(registry, entries, n, err);
    while (status && n_made)
        kr__entry_free(&entries[--n_made]);
    free(entries);
    if (status) {
        kr_pack_close(&pack);
        free(held);
        return status;
    }
    pthread_mutex_lock(&registry->lock);
    *held = (kr__held){pack, registry->packs};
    registry->packs = held;
    pthread_mutex_unlock(&registry->lock);
    return KR_OK;
}

kr_status kr_registry_add_pack(kr_registry *registry, const void *pack, size_t pack_bytes, kr_error *err)
{
    KR_REQUIRE(err, registry, pack);
    kr_pack *opened;
    const kr_status status = kr_pack_open_memory(pack, pack_bytes, &opened, err);
    return status ? status : add_pack(registry, opened, NULL, err);
}

kr_status kr_registry_add_pack_file(kr_registry *registry, const char *path, kr_error *err)
{
    KR_REQUIRE(err, registry, path);
    kr_pack *opened;
    kr_status status = kr_pack_open(path, &opened, err);
    if (status)
        return status;
    status = add_pack(registry, opened, NULL, err);
    return status ? kr__while(err, status, "adding the ops of %s", path) : KR_OK;
}

static kr_status add_builtin(kr_registry *registry, kr_error *err)
{
    kr_pack *pack;
    const kr_status status = kr_pack_open_memory(kr__builtin_pack, kr__builtin_pack_bytes, &pack, err);
    return status ? status : add_pack(registry, pack, kr__builtin_references, err);
}

/* ---- life ---- */

/* A machine without a folder for it is right too. */
static kr_status open_cache(kr_registry *registry, const kr_registry_options *options, kr_error *err)
{
    if (options->no_cache || options->no_nvrtc)
        return KR_OK;
    const kr_status status = kr_cache_create(options->cache, NULL, &registry->cache, err);
    return status == KR_NOT_FOUND ? KR_OK : status;
}

kr_status kr_registry_create(kr_runtime *runtime, const kr_registry_options *options,
                             kr_registry **ret_registry, kr_error *err)
{
    KR_REQUIRE(err, ret_registry);
    kr_registry_options own;
    kr_status status = KR_OPTIONS(err, options, own);
    if (status)
        return status;
    kr_registry *registry = kr__alloc(1, sizeof *registry, err);
    if (!registry)
        return KR_OUT_OF_HOST_MEMORY;
    registry->runtime = runtime;
    registry->no_nvrtc = own.no_nvrtc;
    atomic_init(&registry->policy_ops_exist, false);
    pthread_mutex_init(&registry->lock, NULL);
    pthread_mutex_init(&registry->nvrtc_lock, NULL);
    pthread_cond_init(&registry->landed, NULL);
    kr__ops *none = kr__alloc(1, sizeof *none, err);
    atomic_init(&registry->ops, none);
    if (!none || (own.nvrtc && !(registry->nvrtc_path = strdup(own.nvrtc))))
        status = KR_FAIL(err, KR_OUT_OF_HOST_MEMORY, "no host memory for a registry");
    else
        status = kr__policy_read(&registry->policy, &registry->policy_texts, err);
    if (!status)
        status = open_cache(registry, &own, err);
    if (!status && !own.no_builtin_ops)
        status = add_builtin(registry, err);
    if (status)
        kr_registry_destroy(&registry);
    else
        *ret_registry = registry;
    return status;
}

void kr_registry_destroy(kr_registry **registry)
{
    if (!registry || !*registry)
        return;
    kr_registry *r = *registry;
    kr__ops *ops = atomic_load_explicit(&r->ops, memory_order_acquire);
    for (size_t i = 0; ops && i < ops->n; i++)
        kr__entry_free(&ops->list[i]);
    for (kr__ops *older; ops; ops = older) {
        older = ops->older;
        free(ops);
    }
    for (kr__held *held = r->packs, *next; held; held = next) {
        next = held->next;
        kr_pack_close(&held->pack);
        free(held);
    }
    kr_nvrtc_close(&r->nvrtc);
    kr_cache_destroy(&r->cache);
    free(r->nvrtc_path);
    free(r->nvrtc_failure);
    kr__arena_free(&r->policy_texts);
    pthread_cond_destroy(&r->landed);
    pthread_mutex_destroy(&r->nvrtc_lock);
    pthread_mutex_destroy(&r->lock);
    free(r);
    *registry = NULL;
}

/* ---- choosing ---- */

/* Only that there is none, or that its path is none, is remembered. */
static kr_status open_nvrtc(kr_registry *registry, kr_error *err)
{
    kr_error *why = kr__alloc(1, sizeof *why, err);
    if (!why)
        return KR_OUT_OF_HOST_MEMORY;
    const int driver = registry->runtime ? registry->runtime->driver->version : 0;
    const kr_status status = kr_nvrtc_open_for(driver, registry->nvrtc_path, &registry->nvrtc, why);
    if (status == KR_NOT_ON_THIS_MACHINE || status == KR_INVALID_ARGUMENT) {
        registry->nvrtc_failure = why;
        size_t n = strlen(why->log);
        n -= n && why->log[n - 1] == '\n';
        if (registry->runtime)
            kr__log_text(&registry->runtime->log, KR_LOG_WARNING, "no op can be compiled: %s%s%.*s",
                         why->message, n ? "\n" : "", (int)n, why->log);
        return KR_OK;
    }
    if (status && err)
        *err = *why;
    free(why);
    return status;
}

kr_status kr__registry_nvrtc(kr_registry *registry, kr_nvrtc **ret_nvrtc, kr_error *err)
{
    kr_status status = KR_OK;
    pthread_mutex_lock(&registry->nvrtc_lock);
    if (!registry->no_nvrtc && !registry->nvrtc && !registry->nvrtc_failure)
        status = open_nvrtc(registry, err);
    if (!status)
        *ret_nvrtc = registry->nvrtc;
    pthread_mutex_unlock(&registry->nvrtc_lock);
    return status;
}

void kr__registry_tell_nvrtc(const kr_registry *registry, kr_error *err)
{
    const kr_error *why = registry->nvrtc_failure;
    if (!why || !err)
        return;
    kr__append(err->message, sizeof err->message, "; %s", why->message);
    kr__error_log(err, why->log);
    kr__error_advice(err, "%s", why->advice);
}

kr_status kr_registry_machine(kr_registry *registry, kr_device *device, kr_machine *ret_machine,
                              kr_error *err)
{
    KR_REQUIRE(err, registry, device, ret_machine);
    if (!registry->runtime || kr__device_index(registry, device) == SIZE_MAX)
        return KR_FAIL(err, KR_INVALID_ARGUMENT, "the device is not one of the registry's runtime");
    const kr_device_info *info = kr_device_get_info(device);
    kr_machine machine = {.cc = info->cc,
                          .driver_version = kr_runtime_driver(registry->runtime).version,
                          .shared_bytes_per_block_optin = info->shared_bytes_per_block_optin};
    kr_nvrtc *nvrtc;
    const kr_status status = kr__registry_nvrtc(registry, &nvrtc, err);
    if (status)
        return status;
    if (nvrtc) {
        const kr_nvrtc_info n = kr_nvrtc_get_info(nvrtc);
        machine.nvrtc_archs = n.archs;
        machine.n_nvrtc_archs = n.n_archs;
        machine.nvrtc_version = n.major * 1000 + n.minor * 10;
    }
    *ret_machine = machine;
    return KR_OK;
}

static kr_nvrtc *open_already(kr_registry *registry)
{
    pthread_mutex_lock(&registry->nvrtc_lock);
    kr_nvrtc *nvrtc = registry->nvrtc;
    pthread_mutex_unlock(&registry->nvrtc_lock);
    return nvrtc;
}

/* What NVRTC would make: was it made before? */
static bool is_kept(kr_registry *registry, const kr__question *question, const kr__candidate *c)
{
    const kr__job job = {question->def, question->type_index, c->variant, c->arch,
                         c->kind,       registry->cache,      true};
    kr_compiled *compiled = NULL;
    kr_nvrtc *nvrtc = open_already(registry); /* where the machine is this one */
    const bool is_here = nvrtc && kr_nvrtc_get_info(nvrtc).archs == question->machine->nvrtc_archs;
    const bool ok = is_here && registry->cache && !kr__op_compile(nvrtc, &job, &compiled, NULL);
    kr_compiled_destroy(&compiled);
    return ok;
}

static const char *what_is_known(kr_registry *registry, const kr__question *question, const kr__candidate *c)
{
    if (!c->usable || c->shipped)
        return "";
    return is_kept(registry, question, c) ? "; compiled before: in the cache" : "; not tried";
}

static kr_explanation *explanation_of(kr_registry *registry, const kr__question *question,
                                      const kr__selection *selection, size_t only, kr_error *err)
{
    kr_explanation *e = kr__alloc(1, sizeof *e + selection->n * sizeof(kr_candidate), err);
    if (!e)
        return NULL;
    kr_candidate *list = (kr_candidate *)(e + 1);
    bool chosen = false;
    e->considered = list;
    for (size_t i = 0; i < selection->n; i++) {
        const kr__candidate *c = &selection->list[i];
        if (only != SIZE_MAX && c->variant != only)
            continue;
        kr_candidate *to = &list[e->n++];
        kr__format(to->variant, sizeof to->variant, "%s", question->def->op.variants[c->variant].name);
        kr__candidate_image(c, to->image);
        to->usable = c->usable;
        to->chosen = c->usable && !chosen;
        to->how = c->how;
        kr__format(to->reason, sizeof to->reason, "%s%s", c->reason, what_is_known(registry, question, c));
        chosen |= to->chosen;
    }
    if (!chosen) {
        kr_error advised = {0};
        kr__selection_advise(question, selection, only, &advised);
        kr__format(e->advice, sizeof e->advice, "%s", advised.advice);
    }
    return e;
}

kr_status kr_registry_explain(kr_registry *registry, const char *full_name, const kr_machine *machine,
                              const char *variant, kr_explanation **ret_explanation, kr_error *err)
{
    KR_REQUIRE(err, registry, full_name, machine, ret_explanation);
    if (machine->n_nvrtc_archs)
        KR_REQUIRE(err, machine->nvrtc_archs);
    kr__entry *entry;
    size_t type_index, only = SIZE_MAX;
    kr_status status = kr__registry_find(registry, full_name, &entry, &type_index, err);
    if (!status && variant)
        status = kr__variant_find(&entry->def->op, variant, &only, err);
    if (!status)
        status = kr__registry_check_policy(registry, err);
    if (status)
        return status;
    kr__selection *selection;
    const kr__question question = {
        entry->def,    type_index,     machine, &registry->policy, variant ? SIZE_MAX : entry->asked_variant,
        entry->images, entry->n_images};
    status = kr__select(&question, &selection, err);
    if (status)
        return status;
    kr__selection_look(&question, selection);
    kr_explanation *explanation = explanation_of(registry, &question, selection, only, err);
    free(selection);
    if (!explanation)
        return KR_OUT_OF_HOST_MEMORY;
    *ret_explanation = explanation;
    return KR_OK;
}

void kr_explanation_destroy(kr_explanation **explanation)
{
    if (!explanation)
        return;
    free(*explanation);
    *explanation = NULL;
}
