/* SPDX-License-Identifier: Apache-2.0 */
/* A file of any kind that is inspected: what it holds, and what each image says of itself. */
#include "fuzz.h"

#include <kregistry/image.h>
#include <stdlib.h>
#include <string.h>

/* Reads every byte, so that a sanitizer sees those that are not there. */
static void touch(const void *data, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        (void)((const volatile char *)data)[i];
}

static void touch_text(const char *text)
{
    touch(text, strlen(text) + 1);
}

static void must_say_why(const kr_error *err)
{
    if ((err->status != KR_CORRUPT && err->status != KR_OUT_OF_HOST_MEMORY) || !err->message[0])
        abort();
}

static void look_at(const kr_image_contents *contents)
{
    for (size_t i = 0; i < contents->n_kernels; i++) {
        touch_text(contents->kernels[i].name);
        touch(contents->kernels[i].params,
              contents->kernels[i].n_params * sizeof *contents->kernels[i].params);
    }
    for (size_t i = 0; i < contents->n_variables; i++)
        touch_text(contents->variables[i].name);
}

static void look(const kr_inspection *inspection, size_t n)
{
    enum { MOST_IMAGES = 50 };
    kr_error err;
    for (size_t i = 0; i < MOST_IMAGES && i < kr_inspection_n_images(inspection); i++) {
        const kr_image_info *info = kr_inspection_image(inspection, i);
        kr_image_contents *contents;
        if (info->offset > n || info->stored_bytes > n - info->offset)
            abort();
        const char *texts[] = {info->member, info->section, info->name, info->options, info->flags};
        for (size_t t = 0; t < sizeof texts / sizeof *texts; t++)
            touch_text(texts[t]);
        if (kr_inspection_read(inspection, i, &contents, &err)) {
            must_say_why(&err);
            continue;
        }
        look_at(contents);
        kr_image_contents_destroy(&contents);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    kr_inspection *inspection;
    kr_error err;
    uint8_t *copy = malloc(n ? n : 1); /* no byte to spare */
    memcpy(copy, bytes, n);
    if (kr_inspection_create(copy, n, "fuzz", &inspection, &err)) {
        must_say_why(&err);
    } else {
        look(inspection, n);
        kr_inspection_destroy(&inspection);
    }
    free(copy);
    return 0;
}
