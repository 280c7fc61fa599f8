/* SPDX-License-Identifier: Apache-2.0 */
/* One image: unpacked, read, and what it needs. */
#include <stdlib.h>
#include <string.h>

#include "ptx/front/ptx.h"
#include "ptx/inspect/inspect.h"
#include "runtime/driver/driver.h"

typedef struct contents {
    kr_image_contents public; /* first: what callers have is this */
    kr__cubin *cubin;         /* what it points into */
    kr__ptx_outline *outline;
} contents;

/* ---- which driver ---- */

/* The lowest .version of PTX text, and of .target what it needs at that; 0: the parser does not know it
 * whole. */
static kr_status needs_of(const char *text, size_t bytes, int *ret_isa, kr_cc *ret_target, kr_error *err)
{
    ptx_module *module = NULL;
    ptx_problem problem = {0};
    ptx_needs needs = {0};
    if (kr__ptx_parse(text, bytes, NULL, &module, &problem))
        needs = module->needs;
    const bool no_memory = problem.kind == PTX_PROBLEM_MEMORY;
    *ret_isa = needs.isa;
    if (!needs.target || kr_cc_parse(needs.target, ret_target, NULL))
        *ret_target = (kr_cc){0};
    kr__ptx_module_free(&module);
    kr__text_free(&problem.log);
    return no_memory ? KR_FAIL(err, KR_OUT_OF_HOST_MEMORY, "no memory for what PTX needs") : KR_OK;
}

/* The one for the toolkit, where it knows the GPU: the .version that first had its target says which first
 * did. 0: not known. */
static int driver_of_cubin(const kr__cubin *cubin)
{
    char target[KR_CC_TEXT_BYTES];
    const kr_cc arch = cubin->arch;
    kr__format(target, sizeof target, "sm_%d%d%.1s", arch.major, arch.minor, &arch.suffix);
    const int isa = kr__ptx_target_isa(target), by_target = isa ? kr__isa_driver(isa) : 0,
              by_toolkit = kr__toolkit_driver(cubin->toolkit);
    return by_toolkit && by_target > by_toolkit ? by_target : by_toolkit;
}

/* ---- kinds ---- */

static kr_status needs_of_abridged(const char *text, size_t bytes, bool all_kernels, kr_image_contents *c,
                                   kr_error *err)
{
    kr__text abridged = {0};
    const kr_status status = kr__ptx_abridge(text, bytes, all_kernels, &abridged)
                                 ? needs_of(abridged.data, abridged.bytes, &c->min_isa, &c->min_target, err)
                                 : KR_FAIL(err, KR_OUT_OF_HOST_MEMORY, "no memory for what PTX needs");
    kr__text_free(&abridged);
    return status;
}

/* Where nothing is known without the kernels that add nothing, one of them may be launched by another. */
static kr_status read_needs(const char *text, size_t bytes, kr_image_contents *c, kr_error *err)
{
    kr_status status = needs_of_abridged(text, bytes, false, c, err);
    if (!status && !c->min_isa)
        status = needs_of_abridged(text, bytes, true, c, err);
    c->min_driver = c->min_isa ? kr__isa_driver(c->min_isa) : 0;
    return status;
}

static kr_status read_ptx(const char *text, size_t bytes, contents *c, kr_error *err)
{
    const kr_status status = kr__ptx_outline_read(text, bytes, &c->outline, err);
    if (status)
        return status;
    const kr__ptx_outline *outline = c->outline;
    c->public.n_kernels = outline->n_kernels;
    c->public.kernels = outline->kernels;
    c->public.n_variables = outline->n_variables;
    c->public.variables = outline->variables;
    c->public.address_bits = outline->address_bits;
    c->public.driver = kr__isa_driver(outline->head.isa);
    return read_needs(text, bytes, &c->public, err);
}

static kr_status read_cubin(const char *image, size_t bytes, contents *c, kr_error *err)
{
    const kr_status status = kr__cubin_read(image, bytes, &c->cubin, err);
    if (status)
        return status;
    const kr__cubin *cubin = c->cubin;
    c->public.n_kernels = cubin->n_kernels;
    c->public.kernels = cubin->kernels;
    c->public.n_variables = cubin->n_variables;
    c->public.variables = cubin->variables;
    c->public.abi = cubin->abi;
    c->public.toolkit = cubin->toolkit;
    c->public.is_relocatable = !cubin->linked;
    c->public.min_target = cubin->arch;
    c->public.driver = c->public.min_driver = driver_of_cubin(cubin);
    return KR_OK;
}

/* PTX ends with a NUL or more; one before its end is for the reader to refuse. */
static size_t text_bytes(const char *text, size_t bytes)
{
    while (bytes && text[bytes - 1] == '\0')
        bytes--;
    return bytes;
}

static kr_status read_unpacked(const kr_image_info *info, const char *data, contents *c, kr_error *err)
{
    return info->kind == KR_IMAGE_PTX ? read_ptx(data, text_bytes(data, info->bytes), c, err)
                                      : read_cubin(data, info->bytes, c, err);
}

/* What is stored as it is is read in place. */
static kr_status read_image(const kr_inspection *in, const kr_image_info *info, contents *c, kr_error *err)
{
    const char *stored = (const char *)in->bytes + info->offset;
    if (info->kind != KR_IMAGE_PTX && info->kind != KR_IMAGE_CUBIN) /* LTO-IR is scrambled, packed or not */
        return KR_OK;
    if (info->compression == KR_STORED)
        return read_unpacked(info, stored, c, err);
    const kr__fatbin_entry entry = {.kind = info->kind,
                                    .compression = info->compression,
                                    .payload = stored,
                                    .payload_bytes = info->stored_bytes,
                                    .bytes = info->bytes};
    char *data;
    size_t bytes;
    kr_status status = kr__fatbin_unpack(&entry, &data, &bytes, err);
    if (status)
        return status;
    status = read_unpacked(info, data, c, err);
    free(data);
    return status;
}

kr_status kr_inspection_read(const kr_inspection *inspection, size_t index, kr_image_contents **ret_contents,
                             kr_error *err)
{
    KR_REQUIRE(err, inspection, ret_contents);
    const kr_image_info *info = kr_inspection_image(inspection, index);
    if (!info)
        return KR_FAIL(err, KR_NOT_FOUND, "%s has %zu images, so none of index %zu", inspection->name,
                       inspection->n_images, index);
    contents *c = kr__alloc(1, sizeof *c, err);
    if (!c)
        return KR_OUT_OF_HOST_MEMORY;
    const kr_status status = read_image(inspection, info, c, err);
    kr__inspection_leave(inspection, info->offset, info->stored_bytes);
    kr_image_contents *public = &c->public;
    if (status) {
        kr_image_contents_destroy(&public);
        kr__error_image(err, inspection->name);
        return kr__while(err, status, "reading image %zu (%s%s) at offset 0x%zx of %s", index,
                         kr_image_kind_name(info->kind), info->compression ? ", unpacked" : "", info->offset,
                         inspection->name);
    }
    *ret_contents = public;
    return KR_OK;
}

void kr_image_contents_destroy(kr_image_contents **public)
{
    if (!public || !*public)
        return;
    contents *c = (contents *)*public;
    *public = NULL;
    kr__cubin_free(&c->cubin);
    kr__ptx_outline_free(&c->outline);
    free(c);
}
