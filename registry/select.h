/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KR_SELECT_H
#define KR_SELECT_H

/* Choosing, as a pure function: from facts of a machine to the variants and images to try, in order. */

#include <kregistry/registry.h>

#include "registry/descriptor.h"
#include "registry/embedded.h"

typedef struct kr__candidate {
    size_t variant;
    bool variant_is_out; /* the variant's requirements do not hold: no image was looked at */
    bool usable;
    const kr__embedded_image *shipped; /* NULL: compiled by NVRTC */
    kr_image_kind kind;
    kr_cc arch;
    const char *how; /* as kr_candidate.how */
    char reason[256];
} kr__candidate;

typedef struct kr__selection {
    size_t n;
    kr__candidate list[KR_MAX_CANDIDATES]; /* usable ones in the order to try them, per variant */
} kr__selection;

/* images: all that are shipped for the op. Later variants come first; within one, the usable come first. */
void kr__select(const kr__op_def *def, size_t type_index, const kr_machine *machine,
                const kr__embedded_image *images, size_t n_images, kr__selection *ret_selection);

/* "cubin sm_90", "nvrtc sm_90", "ptx compute_75", "nvrtc compute_120"; "" where the variant is out. */
char *kr__candidate_image(const kr__candidate *candidate, char text[64]);

#endif
