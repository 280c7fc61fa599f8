/* SPDX-License-Identifier: Apache-2.0 */
/* The writer: what is asked for, compiled, and laid out in the one way that the reader takes. */
#include <kregistry/relevel.h>
#include <stdlib.h>
#include <string.h>

#include "ptx/compile/nvrtc.h"
#include "ptx/image/image.h"
#include "registry/pack.h"
#include "registry/preamble.h"
#include "registry/signature.h"

/* ---- what to compile ---- */

typedef struct target {
    kr_image_kind kind; /* CUBIN or PTX */
    kr_cc arch;
} target;

/* The targets of one variant. */
typedef struct target_list {
    size_t n;
    target *list; /* room for all that are asked for */
} target_list;

static void add_target(target_list *targets, kr_image_kind kind, kr_cc arch)
{
    for (size_t i = 0; i < targets->n; i++) {
        const target *there = &targets->list[i];
        if (there->kind == kind && !kr_cc_compare(there->arch, arch) && there->arch.suffix == arch.suffix)
            return;
    }
    targets->list[targets->n++] = (target){kind, arch};
}

/* The lowest arch from `least` on that NVRTC knows; false: none. */
static bool raise_to(const kr_nvrtc_info *nvrtc, kr_cc least, kr_cc *ret_arch)
{
    for (size_t i = 0; i < nvrtc->n_archs; i++) {
        *ret_arch = (kr_cc){nvrtc->archs[i] / 10, nvrtc->archs[i] % 10, 0};
        if (kr_cc_compare(*ret_arch, least) >= 0)
            return true;
    }
    return false;
}

static bool is_below(const kr__variant *variant, kr_cc arch)
{
    return !variant->below_cc.major || kr_cc_compare(arch, variant->below_cc) < 0;
}

/* A variant with a target of its own is compiled for that alone: where a GPU of it is asked for, and as PTX
 * where one that comes before is. */
static void list_own_target(const kr__variant *variant, const kr_pack_options *options,
                            const kr_nvrtc_info *nvrtc, target_list *targets)
{
    const kr_cc own = variant->target;
    const bool any = options->n_cubins || options->n_ptx;
    if (!kr__nvrtc_knows(nvrtc->archs, nvrtc->n_archs, nvrtc->major * 1000 + nvrtc->minor * 10, own))
        return;
    for (size_t i = 0; i < options->n_cubins; i++)
        if (kr_cc_cubin_runs_on(own, (kr_cc){options->cubins[i].major, options->cubins[i].minor, 0}))
            add_target(targets, KR_IMAGE_CUBIN, own);
    for (size_t i = 0; i < options->n_ptx; i++)
        if (kr_cc_compare(options->ptx[i], own) <= 0)
            add_target(targets, KR_IMAGE_PTX, own);
    if (!any)
        add_target(targets, KR_IMAGE_PTX, own);
}

static void list_targets(const kr__variant *variant, const kr_pack_options *options,
                         const kr_nvrtc_info *nvrtc, target_list *targets)
{
    static const kr_cc lowest = {0};
    const bool any = options->n_cubins || options->n_ptx;
    const kr_cc *ptx = any ? options->ptx : &lowest;
    targets->n = 0;
    if (variant->target.major) {
        list_own_target(variant, options, nvrtc, targets);
        return;
    }
    for (size_t i = 0; i < options->n_cubins; i++)
        if (kr_cc_compare(options->cubins[i], variant->least_cc) >= 0 &&
            is_below(variant, options->cubins[i]))
            add_target(targets, KR_IMAGE_CUBIN, options->cubins[i]);
    for (size_t i = 0; i < (any ? options->n_ptx : 1); i++) {
        kr_cc arch = ptx[i];
        const bool raised = kr_cc_compare(arch, variant->least_cc) < 0 || !arch.major;
        if ((!raised || raise_to(nvrtc, variant->least_cc, &arch)) && is_below(variant, arch))
            add_target(targets, KR_IMAGE_PTX, arch);
    }
}

/* ---- what is written, before it is known where ---- */

typedef struct draft {
    kr_nvrtc *nvrtc; /* NULL: no images */
    kr_cache *cache;
    kr_nvrtc_info info;
    const kr_pack_options *options;
    target_list targets;
    size_t n_done, n_total; /* images */
    kr__text ops, entries;  /* the rows; what they say of places is counted from the beginning of these: */
    kr__text texts, payloads;
    kr_error *err;
} draft;

static uint32_t add_text(draft *d, const char *text, size_t bytes)
{
    const size_t at = d->texts.bytes;
    kr__text_add_bytes(&d->texts, text, bytes);
    kr__text_add_bytes(&d->texts, "", 1);
    return (uint32_t)at;
}

static void pad(kr__text *text)
{
    static const char zeros[KR__PACK_ALIGN];
    kr__text_add_bytes(text, zeros, -text->bytes % KR__PACK_ALIGN);
}

static void add_entry(draft *d, kr__pack_entry entry, const void *data, size_t bytes)
{
    entry.offset = d->payloads.bytes;
    entry.bytes = bytes;
    kr__sha256_of(data, bytes, entry.sha256);
    kr__text_add_bytes(&d->payloads, data, bytes);
    kr__text_add_bytes(&d->payloads, "", 1);
    pad(&d->payloads);
    kr__text_add_bytes(&d->entries, (const char *)&entry, sizeof entry);
}

static void add_sources(draft *d, const kr__op_def *def)
{
    const kr__headers *headers = &def->headers;
    add_entry(d, (kr__pack_entry){.kind = KR__PACK_SOURCE}, def->text, def->text_bytes);
    for (size_t i = 0; i < headers->n; i++) {
        const uint32_t name = add_text(d, headers->names[i], strlen(headers->names[i]));
        add_entry(d, (kr__pack_entry){.kind = KR__PACK_HEADER, .name = name}, headers->texts[i],
                  strlen(headers->texts[i]));
    }
}

/* ---- images ---- */

static kr_status check_signature(const draft *d, const kr__op_def *def, size_t type, size_t variant,
                                 const kr_compiled *compiled)
{
    return compiled->kind == KR_IMAGE_PTX
               ? kr__signature_check_ptx(def, type, variant, compiled->image, compiled->image_bytes, d->err)
               : kr__signature_check_cubin(def, type, variant, compiled->image, compiled->image_bytes,
                                           d->err);
}

/* PTX says the oldest ISA that has all it uses, so that older drivers take it; the target stays. What the
 * reader of PTX does not know, as of an NVRTC newer than it, stays as NVRTC made it. */
static kr_status add_ptx(draft *d, kr__pack_entry entry, const kr_compiled *compiled)
{
    const kr_relevel_options options = {.struct_size = sizeof options, .target = compiled->arch};
    kr__ptx_head head = {0};
    kr_releveled *lower = NULL;
    const kr_status status = kr_ptx_relevel(compiled->image, compiled->image_bytes, &options, &lower, d->err);
    if (status && status != KR_COMPILE_FAILED && status != KR_NOT_ON_THIS_DEVICE)
        return status;
    const char *ptx = lower ? lower->ptx : compiled->image;
    const size_t bytes = lower ? lower->bytes : compiled->image_bytes;
    kr__ptx_head_read(ptx, bytes, &head);
    entry.isa = (uint16_t)head.isa;
    add_entry(d, entry, ptx, bytes);
    kr_releveled_destroy(&lower);
    return KR_OK;
}

static kr_status add_compiled(draft *d, size_t type, size_t variant, const kr_compiled *compiled)
{
    const bool is_ptx = compiled->kind == KR_IMAGE_PTX;
    const kr_cc arch = compiled->arch;
    const kr__pack_entry entry = {.kind = is_ptx ? KR__PACK_PTX : KR__PACK_CUBIN,
                                  .type = (uint8_t)type,
                                  .variant = (uint8_t)variant,
                                  .suffix = arch.suffix,
                                  .arch = (uint16_t)(arch.major * 10 + arch.minor)};
    if (is_ptx)
        return add_ptx(d, entry, compiled);
    add_entry(d, entry, compiled->image, compiled->image_bytes);
    return KR_OK;
}

static kr_status add_image(draft *d, const kr__op_def *def, size_t type, size_t variant, const target *to)
{
    kr_compiled *compiled = NULL;
    const kr__job job = {def, type, variant, to->arch, to->kind, d->cache, false};
    kr_status status = kr__op_compile(d->nvrtc, &job, &compiled, d->err);
    if (status)
        return status;
    if (compiled->kind != to->kind)
        status = KR_FAIL(d->err, KR_FOREIGN, "NVRTC makes no %s of %s", kr_image_kind_name(to->kind),
                         def->op.file);
    else
        status = check_signature(d, def, type, variant, compiled);
    if (!status)
        status = add_compiled(d, type, variant, compiled);
    kr_compiled_destroy(&compiled);
    return status;
}

static void report(draft *d, const kr__op_def *def, size_t type)
{
    char name[KR__MAX_FULL_NAME];
    d->n_done++;
    if (d->options->progress)
        d->options->progress(d->options->progress_user, d->n_done, d->n_total,
                             kr__op_full_name(&def->op, type, name));
}

static kr_status add_images(draft *d, const kr__op_def *def)
{
    kr_status status = KR_OK;
    for (size_t t = 0; t < kr__op_n_instances(&def->op); t++)
        for (size_t v = 0; v < def->op.n_variants; v++) {
            list_targets(&def->variants[v], d->options, &d->info, &d->targets);
            for (size_t i = 0; i < d->targets.n && !status; i++) {
                status = add_image(d, def, t, v, &d->targets.list[i]);
                report(d, def, t);
            }
        }
    return status;
}

static size_t count_images(draft *d, const kr__op_def *def)
{
    size_t n = 0;
    for (size_t v = 0; v < def->op.n_variants; v++) {
        list_targets(&def->variants[v], d->options, &d->info, &d->targets);
        n += d->targets.n;
    }
    return n * kr__op_n_instances(&def->op);
}

/* ---- ops ---- */

/* The lines of the descriptor alone, which is all that a reader needs of an op that it does not compile. */
static uint32_t add_descriptor(draft *d, const kr__op_def *def, uint32_t *ret_bytes)
{
    const size_t at = d->texts.bytes;
    for (const char *line = def->text, *end; *line; line = end) {
        end = line + strcspn(line, "\n");
        end += *end == '\n';
        if (strncmp(line, "//!", 3) == 0)
            kr__text_add_bytes(&d->texts, line, (size_t)(end - line));
    }
    *ret_bytes = (uint32_t)(d->texts.bytes - at);
    kr__text_add_bytes(&d->texts, "", 1);
    return (uint32_t)at;
}

static kr_status add_op(draft *d, const kr__op_def *def)
{
    kr__pack_op op = {.file = add_text(d, def->op.file, strlen(def->op.file))};
    op.descriptor = add_descriptor(d, def, &op.descriptor_bytes);
    kr__op_identity(def, op.identity);
    const size_t entries_before = d->entries.bytes;
    if (!d->options->no_source)
        add_sources(d, def);
    const kr_status status = d->nvrtc ? add_images(d, def) : KR_OK;
    op.n_entries = (uint32_t)((d->entries.bytes - entries_before) / sizeof(kr__pack_entry));
    kr__text_add_bytes(&d->ops, (const char *)&op, sizeof op);
    return status;
}

/* ---- the whole ---- */

/* Now that the sizes of the parts are known, so are their places. */
static void place(draft *d, size_t texts_at, size_t payloads_at)
{
    for (size_t i = 0; i < d->ops.bytes / sizeof(kr__pack_op); i++) {
        kr__pack_op *op = (kr__pack_op *)d->ops.data + i;
        op->file += (uint32_t)texts_at;
        op->descriptor += (uint32_t)texts_at;
    }
    for (size_t i = 0; i < d->entries.bytes / sizeof(kr__pack_entry); i++) {
        kr__pack_entry *entry = (kr__pack_entry *)d->entries.data + i;
        entry->offset += payloads_at;
        entry->name += entry->kind == KR__PACK_HEADER ? (uint32_t)texts_at : 0;
    }
}

static kr_status assemble(draft *d, kr__text *out)
{
    pad(&d->texts);
    const size_t texts_at = sizeof(kr__pack_header) + d->ops.bytes + d->entries.bytes;
    const size_t index_bytes = texts_at + d->texts.bytes;
    const kr__text *const parts[] = {&d->ops, &d->entries, &d->texts, &d->payloads};
    if (index_bytes > UINT32_MAX)
        return KR_FAIL(d->err, KR_INVALID_ARGUMENT,
                       "the index of the pack would have %zu bytes; the most is %u", index_bytes, UINT32_MAX);
    kr__pack_header header = {.magic = KR__PACK_MAGIC,
                              .version = KR__PACK_VERSION,
                              .n_ops = (uint32_t)(d->ops.bytes / sizeof(kr__pack_op)),
                              .n_entries = (uint32_t)(d->entries.bytes / sizeof(kr__pack_entry)),
                              .index_bytes = (uint32_t)index_bytes,
                              .bytes = index_bytes + d->payloads.bytes};
    for (size_t i = 0; i < KR_COUNT(parts); i++)
        out->failed |= parts[i]->failed;
    if (!out->failed)
        place(d, texts_at, index_bytes);
    kr__text_add_bytes(out, (const char *)&header, sizeof header);
    for (size_t i = 0; i < KR_COUNT(parts); i++)
        kr__text_add_bytes(out, parts[i]->data, parts[i]->bytes);
    if (out->failed)
        return KR_FAIL(d->err, KR_OUT_OF_HOST_MEMORY, "no host memory for a pack of %zu bytes",
                       index_bytes + d->payloads.bytes);
    kr__pack_digest(out->data, index_bytes, (uint8_t *)out->data + offsetof(kr__pack_header, sha256));
    return KR_OK;
}

static int by_name(const void *a, const void *b)
{
    return strcmp((*(const kr__op_def *const *)a)->op.name, (*(const kr__op_def *const *)b)->op.name);
}

static kr_status check_sources(const kr__op_def *const *defs, size_t n, kr_error *err)
{
    for (size_t i = 0; i < n; i++) {
        if (!defs[i]->text) {
            KR_FAIL(err, KR_INVALID_ARGUMENT,
                    "%s came in a pack without its source, so no image can be made of it", defs[i]->op.name);
            kr__error_advice(err, "Make the pack from the op's .cu file.");
            return KR_INVALID_ARGUMENT;
        }
        const kr_status status = kr__source_check(defs[i], err);
        if (status)
            return status;
    }
    return KR_OK;
}

kr_status kr__pack_write(const kr__op_def **defs, size_t n, kr_nvrtc *nvrtc, kr_cache *cache,
                         const kr_pack_options *options, char **ret_data, size_t *ret_bytes, kr_error *err)
{
    draft d = {
        .nvrtc = nvrtc, .cache = cache, .info = kr_nvrtc_get_info(nvrtc), .options = options, .err = err};
    kr__text out = {0};
    kr_status status = check_sources(defs, n, err);
    if (status)
        return status;
    d.targets.list = kr__alloc(options->n_cubins + options->n_ptx + 1, sizeof *d.targets.list, err);
    if (!d.targets.list)
        return KR_OUT_OF_HOST_MEMORY;
    qsort(defs, n, sizeof *defs, by_name);
    for (size_t i = 0; i < n; i++)
        d.n_total += count_images(&d, defs[i]);
    for (size_t i = 0; i < n && !status; i++)
        status = add_op(&d, defs[i]);
    if (!status)
        status = assemble(&d, &out);
    free(d.targets.list);
    kr__text_free(&d.ops);
    kr__text_free(&d.entries);
    kr__text_free(&d.texts);
    kr__text_free(&d.payloads);
    if (status) {
        kr__text_free(&out);
        return status;
    }
    *ret_data = out.data;
    *ret_bytes = out.bytes;
    return KR_OK;
}
