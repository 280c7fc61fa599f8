/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/shipped.h"

#include <kregistry/relevel.h>

#include <stdlib.h>
#include <string.h>

#include "registry/pack.h"

typedef struct list {
    kr__shipped *items;
    size_t n;
} list;

static kr_status add(list *to, kr__shipped shipped, kr_error *err)
{
    kr__shipped *grown = kr__grow(to->items, to->n, sizeof *grown);
    if (!grown)
        return KR_FAIL(err, KR_OUT_OF_HOST_MEMORY, "no host memory for shipped image %zu", to->n);
    to->items = grown;
    grown[to->n++] = shipped;
    return KR_OK;
}

static kr_status add_image(list *to, const kr__image *image, kr_error *err)
{
    if (image->kind != KR_IMAGE_FATBIN)
        return add(to, (kr__shipped){image, image->kind, image->arch, image->isa, {0}}, err);
    kr__fatbin *fatbin = NULL;
    kr_status status = kr__fatbin_read(image->stored.bytes, image->stored.n_bytes, &fatbin, err);
    for (size_t i = 0; !status && i < fatbin->n_entries; i++) {
        const kr__fatbin_entry *entry = &fatbin->entries[i];
        status = add(to, (kr__shipped){image, entry->kind, entry->arch, entry->isa, *entry}, err);
    }
    kr__fatbin_free(&fatbin);
    return status;
}

kr_status kr__shipped_list(const kr__image *images, size_t n_images, kr__shipped **ret_list, size_t *ret_n,
                           kr_error *err)
{
    list all = {0};
    kr_status status = KR_OK;
    for (size_t i = 0; i < n_images && !status; i++)
        status = add_image(&all, &images[i], err);
    if (status) {
        free(all.items);
        return status;
    }
    *ret_list = all.items;
    *ret_n = all.n;
    return KR_OK;
}

/* What is stored as it is, as it lies; else unpacked. */
static kr_status view(const kr__shipped *shipped, const char **ret_data, size_t *ret_bytes, char **ret_made,
                      kr_error *err)
{
    const kr__stored *stored = &shipped->image->stored;
    const kr__fatbin_entry *packed = &shipped->packed;
    const bool is_in_fatbin = shipped->image->kind == KR_IMAGE_FATBIN;
    *ret_made = NULL;
    *ret_data = is_in_fatbin ? packed->payload : stored->bytes;
    *ret_bytes = !is_in_fatbin                   ? stored->n_bytes
                 : shipped->kind == KR_IMAGE_PTX ? strnlen(packed->payload, packed->payload_bytes)
                                                 : packed->payload_bytes;
    if (!is_in_fatbin || packed->compression == KR_STORED)
        return KR_OK;
    const kr_status status = kr__fatbin_unpack(packed, ret_made, ret_bytes, err);
    *ret_data = *ret_made;
    return status;
}

kr_status kr__shipped_bytes(const kr__shipped *shipped, const char **ret_data, size_t *ret_bytes,
                            char **ret_made, kr_error *err)
{
    const kr_status status = kr__stored_check(&shipped->image->stored, err);
    return status ? status : view(shipped, ret_data, ret_bytes, ret_made, err);
}

int kr__shipped_toolkit(const kr__shipped *shipped)
{
    const char *data;
    size_t bytes;
    char *made;
    kr__cubin *cubin;
    if (view(shipped, &data, &bytes, &made, NULL))
        return 0;
    int toolkit = 0;
    if (!kr__cubin_read(data, bytes, &cubin, NULL)) {
        toolkit = cubin->toolkit;
        kr__cubin_free(&cubin);
    }
    free(made);
    return toolkit;
}

bool kr__shipped_relevels(const kr__shipped *shipped, int driver_version, kr_error *err)
{
    const kr_relevel_options options = {.struct_size = sizeof options, .driver_version = driver_version};
    const char *data;
    size_t bytes;
    char *made;
    kr_releveled *releveled = NULL;
    if (view(shipped, &data, &bytes, &made, NULL))
        return true;
    const kr_status status = kr_ptx_relevel(data, bytes, &options, &releveled, err);
    kr_releveled_destroy(&releveled);
    free(made);
    return status != KR_NOT_ON_THIS_DEVICE && status != KR_COMPILE_FAILED;
}
