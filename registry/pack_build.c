/* SPDX-License-Identifier: Apache-2.0 */
/* A pack of a registry's ops. */
#include <stdlib.h>

#include "registry/internal.h"
#include "registry/pack.h"

static bool is_asked_for(const kr_op *op, const char *glob)
{
    bool matches = !glob || kr__glob(glob, op->name);
    for (size_t i = 0; i < op->n_types && !matches; i++) {
        char name[KR__MAX_FULL_NAME];
        matches = kr__glob(glob, kr__op_full_name(op, i, name));
    }
    return matches;
}

static kr_status check_targets(const kr_cc *targets, size_t n, const char *name, kr_error *err)
{
    for (size_t i = 0; i < n; i++)
        if (targets[i].major < 1 || targets[i].minor < 0 || targets[i].minor > 9)
            return KR_FAIL(err, KR_INVALID_ARGUMENT, "%s[%zu] is %d.%d, which is no compute capability", name,
                           i, targets[i].major, targets[i].minor);
    return KR_OK;
}

static kr_status needed_nvrtc(kr_registry *registry, kr_nvrtc **ret_nvrtc, kr_error *err)
{
    const kr_status status = kr__registry_nvrtc(registry, ret_nvrtc, err);
    if (status || *ret_nvrtc)
        return status;
    KR_FAIL(err, KR_NOT_ON_THIS_MACHINE, "a pack is compiled by NVRTC, and there is none");
    kr__registry_tell_nvrtc(registry, err);
    return KR_NOT_ON_THIS_MACHINE;
}

kr_status kr_pack_build(kr_registry *registry, const char *glob, const kr_pack_options *options,
                        kr_pack **ret_pack, kr_error *err)
{
    KR_REQUIRE(err, registry, ret_pack);
    kr_pack_options own;
    kr_nvrtc *nvrtc;
    kr_status status = KR_OPTIONS(err, options, own);
    if (status)
        return status;
    if (own.n_cubins)
        KR_REQUIRE(err, options->cubins);
    if (own.n_ptx)
        KR_REQUIRE(err, options->ptx);
    status = check_targets(own.cubins, own.n_cubins, "cubins", err);
    if (!status)
        status = check_targets(own.ptx, own.n_ptx, "ptx", err);
    if (!status)
        status = needed_nvrtc(registry, &nvrtc, err);
    if (status)
        return status;
    const kr__ops *ops = atomic_load_explicit(&registry->ops, memory_order_acquire);
    const kr__op_def **defs = kr__alloc(ops->n, sizeof *defs, err);
    if (!defs)
        return KR_OUT_OF_HOST_MEMORY;
    size_t n = 0, bytes;
    char *data;
    for (size_t i = 0; i < ops->n; i++)
        if (is_asked_for(&ops->list[i]->def->op, glob))
            defs[n++] = ops->list[i]->def;
    status = n ? kr__pack_write(defs, n, nvrtc, registry->cache, &own, &data, &bytes, err)
               : KR_FAIL(err, KR_NOT_FOUND, "no op matches \"%s\"", glob ? glob : "*");
    free(defs);
    return status ? status : kr__pack_adopt(data, bytes, ret_pack, err);
}
