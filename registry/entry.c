/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "registry/internal.h"

kr_status kr__entry_create(kr_registry *registry, kr__op_def *def, kr__entry **ret_entry, kr_error *err)
{
    kr__entry *entry = kr__alloc(1, sizeof *entry, err);
    kr_status status = entry ? KR_OK : KR_OUT_OF_HOST_MEMORY;
    if (!entry) {
        kr__op_free(&def);
    } else {
        entry->def = def;
        const size_t n = kr__op_n_instances(&entry->def->op), n_variants = entry->def->op.n_variants;
        entry->n_devices = registry->runtime ? kr_runtime_n_devices(registry->runtime) : 0;
        entry->chains = kr__alloc(n * entry->n_devices, sizeof *entry->chains, err);
        entry->slots = kr__alloc(n * n_variants * entry->n_devices, sizeof *entry->slots, err);
        entry->built = kr__alloc(n * n_variants, sizeof *entry->built, err);
        status = entry->chains && entry->slots && entry->built ? KR_OK : KR_OUT_OF_HOST_MEMORY;
        if (!status)
            status = kr__shipped_list(def->images, def->n_images, &entry->images, &entry->n_images, err);
        if (!status)
            status = kr__policy_variant(&registry->policy, &def->op, &entry->asked_variant, err);
    }
    if (status)
        kr__entry_free(&entry);
    else
        *ret_entry = entry;
    return status;
}

static void free_slot(kr__slot *slot)
{
    kr__loaded *loaded = (kr__loaded *)atomic_load_explicit(&slot->loaded, memory_order_acquire);
    if (loaded)
        kr_module_destroy(&loaded->module);
    free(loaded);
    free(slot->failure);
}

static void free_built(kr__built *built)
{
    for (kr__built *next; built; built = next) {
        next = built->next;
        kr__code_release(&built->code);
        kr_compiled_destroy(&built->compiled);
        free(built->made);
        kr_releveled_destroy(&built->releveled);
        free(built->failure);
        free(built);
    }
}

void kr__entry_free(kr__entry **entry)
{
    kr__entry *e = *entry;
    if (!e)
        return;
    const size_t n = e->def ? kr__op_n_instances(&e->def->op) : 0,
                 n_variants = e->def ? e->def->op.n_variants : 0;
    for (size_t i = 0; e->chains && i < n * e->n_devices; i++)
        free((kr__chain *)atomic_load_explicit(&e->chains[i], memory_order_acquire));
    for (size_t i = 0; e->slots && i < n * n_variants * e->n_devices; i++)
        free_slot(&e->slots[i]);
    for (size_t i = 0; e->built && i < n * n_variants; i++)
        free_built(e->built[i]);
    free(e->images);
    free(e->chains);
    free(e->slots);
    free(e->built);
    kr__op_free(&e->def);
    kr__entry_free(&e->before);
    free(e);
    *entry = NULL;
}
