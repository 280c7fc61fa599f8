/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/shipped.h"

#include <stdlib.h>
#include <string.h>

#include "ptx/image/image.h"
#include "registry/pack.h"

/* list NULL: counts only. */
static kr_status add(const kr__image *image, kr__shipped *list, size_t *n, kr_error *err)
{
    kr__fatbin *fatbin = NULL;
    if (image->kind != KR_IMAGE_FATBIN) {
        if (list)
            list[*n] = (kr__shipped){image, 0, image->kind, image->arch, image->isa};
        ++*n;
        return KR_OK;
    }
    const kr_status status = kr__fatbin_read(image->stored.bytes, image->stored.n_bytes, &fatbin, err);
    for (size_t i = 0; !status && i < fatbin->n_entries; i++, ++*n)
        if (list)
            list[*n] = (kr__shipped){image, i, fatbin->entries[i].kind, fatbin->entries[i].arch,
                                     fatbin->entries[i].isa};
    kr__fatbin_free(&fatbin);
    return status;
}

kr_status kr__shipped_list(const kr__image *images, size_t n_images, kr__shipped **ret_list, size_t *ret_n,
                           kr_error *err)
{
    size_t n = 0;
    kr_status status = KR_OK;
    for (size_t i = 0; i < n_images && !status; i++)
        status = add(&images[i], NULL, &n, err);
    kr__shipped *list = !status && n ? kr__alloc(n, sizeof *list, err) : NULL;
    if (!status && n && !list)
        status = KR_OUT_OF_HOST_MEMORY;
    n = 0;
    for (size_t i = 0; list && i < n_images && !status; i++)
        status = add(&images[i], list, &n, err);
    if (status) {
        free(list);
        return status;
    }
    *ret_list = list;
    *ret_n = n;
    return KR_OK;
}

kr_status kr__shipped_bytes(const kr__shipped *shipped, char **ret_data, size_t *ret_bytes, kr_error *err)
{
    const kr__stored *stored = &shipped->image->stored;
    kr_status status = kr__stored_check(stored, err);
    if (status)
        return status;
    if (shipped->image->kind != KR_IMAGE_FATBIN) {
        char *data = kr__alloc(stored->n_bytes + 1, 1, err);
        if (!data)
            return KR_OUT_OF_HOST_MEMORY;
        memcpy(data, stored->bytes, stored->n_bytes);
        *ret_data = data;
        *ret_bytes = stored->n_bytes;
        return KR_OK;
    }
    kr__fatbin *fatbin;
    status = kr__fatbin_read(stored->bytes, stored->n_bytes, &fatbin, err);
    if (status)
        return status;
    status = kr__fatbin_unpack(&fatbin->entries[shipped->entry], ret_data, ret_bytes, err);
    kr__fatbin_free(&fatbin);
    return status;
}

int kr__shipped_toolkit(const kr__shipped *shipped)
{
    char *data;
    size_t bytes;
    kr__cubin *cubin;
    if (kr__shipped_bytes(shipped, &data, &bytes, NULL))
        return 0;
    int toolkit = 0;
    if (!kr__cubin_read(data, bytes, &cubin, NULL)) {
        toolkit = cubin->toolkit;
        kr__cubin_free(&cubin);
    }
    free(data);
    return toolkit;
}
