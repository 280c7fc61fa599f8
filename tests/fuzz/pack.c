/* SPDX-License-Identifier: Apache-2.0 */
/* A pack, whose index is given the SHA-256 that it must have: what a liar would do. */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "registry/pack.h"

/* Reads every byte, so that a sanitizer sees those that are not there. */
static void touch(const void *data, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        (void)((const volatile char *)data)[i];
}

static void look(const kr_pack *pack)
{
    const kr_pack_info info = kr_pack_get_info(pack);
    kr_pack_image image;
    for (size_t i = 0; i < info.n_images; i++)
        if (!kr_pack_get_image(pack, i, &image, NULL)) {
            touch(image.op->variants[image.variant].name, 1);
            touch(image.data, image.bytes + 1);
        }
    for (size_t i = 0; i < info.n_ops; i++) {
        const kr__op_def *def = kr__op_def_of(kr_pack_op(pack, i));
        kr__source_check(def, NULL);
        touch(def->text, def->text ? def->text_bytes + 1 : 0);
        for (size_t k = 0; k < def->headers.n; k++)
            touch(def->headers.names[k], strlen(def->headers.names[k]) + 1);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    kr_pack *pack;
    kr_error err;
    kr__pack_header header;
    uint8_t *copy = malloc(n ? n : 1);
    memcpy(copy, bytes, n);
    if (n >= sizeof header) {
        memcpy(&header, copy, sizeof header);
        if (header.index_bytes >= sizeof header && header.index_bytes <= n)
            kr__pack_digest((const char *)copy, header.index_bytes, copy + offsetof(kr__pack_header, sha256));
    }
    if (!kr_pack_open_memory(copy, n, &pack, &err)) {
        look(pack);
        kr_pack_close(&pack);
    } else if ((err.status != KR_CORRUPT && err.status != KR_INVALID_ARGUMENT) || !err.message[0]) {
        abort();
    }
    free(copy);
    return 0;
}
