/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KR_SELECT_H
#define KR_SELECT_H

/* Choosing, as a pure function: from facts of a machine to the variants and images to try, in order. */

#include <kregistry/registry.h>

#include "registry/descriptor.h"
#include "registry/policy.h"
#include "registry/shipped.h"

typedef struct kr__candidate {
    size_t variant;
    bool variant_is_out; /* the variant's requirements do not hold: no image was looked at */
    bool usable;
    const kr__shipped *shipped; /* NULL: compiled by NVRTC, */
    bool as_ptx;                /* to PTX alone */
    kr_image_kind kind;
    kr_cc arch;
    const char *how;      /* as kr_candidate.how */
    const char *variable; /* of the environment, which alone refuses it; else NULL */
    int needs_driver;     /* 13000: an older driver alone refuses it, or takes it releveled; else 0 */
    char reason[256];
} kr__candidate;

typedef struct kr__selection {
    size_t n;
    kr__candidate list[]; /* later variants first; within one, the usable first, in the order to try them */
} kr__selection;

typedef struct kr__question {
    const kr__op_def *def;
    size_t type_index;
    const kr_machine *machine;
    const kr__policy *policy;
    size_t variant;            /* the one that KREGISTRY_VARIANT names; SIZE_MAX: any */
    const kr__shipped *images; /* all that are shipped for the op */
    size_t n_images;
} kr__question;

/* *ret_selection is to be freed. */
kr_status kr__select(const kr__question *question, kr__selection **ret_selection, kr_error *err);

/* What is found only by reading the images, which choosing leaves to loading: who asks why is told before.
 * Those that are damaged, and PTX that cannot be releveled, are usable no more. */
void kr__selection_look(const kr__question *question, kr__selection *selection);

/* One thing to do where nothing of a selection can run, or nothing of one variant (SIZE_MAX: any): to the
 * environment, the variants, the driver, or (true) what is shipped and compiled. */
bool kr__selection_advise(const kr__question *question, const kr__selection *selection, size_t only_variant,
                          kr_error *err);

/* "cubin sm_90", "nvrtc sm_90", "ptx compute_75", "nvrtc compute_120"; "" where the variant is out. */
char *kr__candidate_image(const kr__candidate *candidate, char text[64]);

#endif
