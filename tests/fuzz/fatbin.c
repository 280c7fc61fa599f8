/* SPDX-License-Identifier: Apache-2.0 */
/* A fatbin, or several one after another: its entries, unpacked; and what of them can be written again. */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "ptx/image/image.h"

static void unpack(const kr__fatbin_entry *entry)
{
    char *data;
    size_t bytes;
    kr_error err;
    if (kr__fatbin_unpack(entry, &data, &bytes, &err)) {
        if (!err.message[0])
            abort();
        return;
    }
    if (data[bytes] != '\0')
        abort();
    const kr__fatbin_part part = {entry->kind, entry->arch, entry->isa, data, bytes};
    void *image;
    size_t image_bytes;
    if (!kr__fatbin_write(&part, 1, &image, &image_bytes, &err)) {
        kr__fatbin *again;
        if (kr__fatbin_read(image, image_bytes, &again, &err))
            abort(); /* what we write we read */
        kr__fatbin_free(&again);
        free(image);
    }
    free(data);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    kr__fatbin *fatbin;
    kr_error err;
    kr_image_kind kind;
    kr__image_kind(bytes, n, &kind, NULL);
    if (kr__image_bytes(bytes, n) > n)
        abort();
    if (kr__fatbin_read(bytes, n, &fatbin, &err)) {
        if (!err.message[0])
            abort();
        return 0;
    }
    for (size_t i = 0; i < fatbin->n_entries; i++)
        unpack(&fatbin->entries[i]);
    kr__fatbin_free(&fatbin);
    return 0;
}
