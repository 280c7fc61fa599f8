/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_REGISTRY_IMAGES_H
#define TESTS_REGISTRY_IMAGES_H

#include "registry/internal.h"

/* Is no image of the op shipped, and is there no NVRTC to make one? A shipped image that does not run is no
 * reason to skip. */
static inline bool has_no_image(kr_registry *registry, const char *full_name)
{
    const kr_op *op;
    kr_nvrtc *nvrtc;
    return kr_registry_find(registry, full_name, &op, NULL, NULL) == KR_OK &&
           !kr_registry_shipped(registry, op, 0, NULL, 0) &&
           kr__registry_nvrtc(registry, &nvrtc, NULL) == KR_OK && !nvrtc;
}

#endif
