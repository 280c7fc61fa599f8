/* SPDX-License-Identifier: Apache-2.0 */
/* nvJitLink 13.0 takes machine code that is linked already, and fatbins without code for the arch, leaves
 * them out without a word, and answers success. So they are refused here. */
#include "ptx/link/linker.h"

#include <stdlib.h>

static kr_status check_cubin(const kr__link_part *part, const void *image, size_t bytes, kr_error *err)
{
    kr__cubin *cubin;
    kr_status status = kr__cubin_read(image, bytes, &cubin, err);
    if (status)
        return kr__while(err, status, "linking %s", part->name);
    const bool linked = cubin->linked;
    kr__cubin_free(&cubin);
    if (!linked)
        return KR_OK;
    KR_FAIL(err, KR_INVALID_ARGUMENT, "%s holds machine code that is linked already", part->name);
    kr__error_advice(err, "Give its PTX, or compile it with -rdc=true.");
    return KR_INVALID_ARGUMENT;
}

static kr_status check_entry(const kr__link_part *part, const kr__fatbin_entry *entry, kr_error *err)
{
    char *data;
    size_t bytes;
    kr_status status = kr__fatbin_unpack(entry, &data, &bytes, err);
    if (status)
        return kr__while(err, status, "linking %s", part->name);
    status = check_cubin(part, data, bytes, err);
    free(data);
    return status;
}

static kr_status check_fatbin(const kr__link_part *part, kr_cc device, const char *target, kr_error *err)
{
    kr__fatbin *fatbin;
    kr_status status = kr__fatbin_read(part->image, part->bytes, &fatbin, err);
    if (status)
        return kr__while(err, status, "linking %s", part->name);
    bool fits = false;
    for (size_t i = 0; i < fatbin->n_entries && !status; i++) {
        const kr__fatbin_entry *entry = &fatbin->entries[i];
        const bool is_code = entry->kind == KR_IMAGE_CUBIN && kr_cc_cubin_runs_on(entry->arch, device);
        fits |= is_code || entry->kind == KR_IMAGE_LTOIR ||
                (entry->kind == KR_IMAGE_PTX && kr_cc_ptx_runs_on(entry->arch, device));
        if (is_code)
            status = check_entry(part, entry, err);
    }
    kr__fatbin_free(&fatbin);
    if (!status && !fits)
        status = KR_FAIL(err, KR_NOT_ON_THIS_DEVICE, "%s holds nothing for %s", part->name, target);
    return status;
}

/* A fatbin has entries for several; what LTO-IR is for nvJitLink alone can tell. */
static kr_status check_arch(const kr__link_part *part, kr_cc device, const char *target, kr_error *err)
{
    const kr__image_facts *facts = &part->facts;
    const bool links = facts->kind == KR_IMAGE_PTX     ? kr_cc_ptx_runs_on(facts->target, device)
                       : facts->kind == KR_IMAGE_CUBIN ? kr_cc_cubin_runs_on(facts->target, device)
                                                       : true;
    if (links || !facts->target.major)
        return KR_OK;
    KR_FAIL(err, KR_NOT_ON_THIS_DEVICE, "%s: %s, which does not link for %s", part->name, facts->text,
            target);
    kr__error_advice(err, KR__LINK_ARCH_ADVICE, target);
    return KR_NOT_ON_THIS_DEVICE;
}

kr_status kr__link_check_code(const kr__link_part *parts, size_t n, kr_cc arch, const char *target,
                              kr_error *err)
{
    const kr_cc device = {arch.major, arch.minor, 0};
    kr_status status = KR_OK;
    for (size_t i = 0; i < n && !status; i++) {
        status = check_arch(&parts[i], device, target, err);
        if (!status && parts[i].facts.kind == KR_IMAGE_CUBIN)
            status = check_cubin(&parts[i], parts[i].image, parts[i].bytes, err);
        else if (!status && parts[i].facts.kind == KR_IMAGE_FATBIN)
            status = check_fatbin(&parts[i], device, target, err);
    }
    return status;
}
