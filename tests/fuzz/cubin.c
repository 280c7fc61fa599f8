/* SPDX-License-Identifier: Apache-2.0 */
/* A cubin: what it says of itself, and each of its sections by name. */
#include "fuzz.h"

#include <stdlib.h>

#include "ptx/image/image.h"

/* Reads every byte, so that a sanitizer sees those that are not there. */
static void touch(const void *data, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        (void)((const volatile char *)data)[i];
}

static void touch_text(const char *text)
{
    while (*(const volatile char *)text)
        text++;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    kr__cubin *cubin;
    kr_error err;
    const void *section;
    size_t section_bytes;
    if (kr__image_bytes(bytes, n) > n)
        abort();
    if (kr__cubin_section(bytes, n, ".nv.info", &section, &section_bytes))
        touch(section, section_bytes);
    if (kr__cubin_read(bytes, n, &cubin, &err)) {
        if (!err.status || !err.message[0])
            abort();
        return 0;
    }
    for (size_t i = 0; i < cubin->n_kernels; i++) {
        touch_text(cubin->kernels[i].name);
        touch(cubin->kernels[i].params, cubin->kernels[i].n_params * sizeof *cubin->kernels[i].params);
    }
    for (size_t i = 0; i < cubin->n_variables; i++)
        touch_text(cubin->variables[i].name);
    kr__cubin_free(&cubin);
    return 0;
}
