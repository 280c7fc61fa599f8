/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KREGISTRY_RELEVEL_H
#define KREGISTRY_RELEVEL_H

#include <kregistry/cc.h>

#ifdef __cplusplus
extern "C" {
#endif

/* PTX for older drivers and devices: the same kernels, at an older .version and .target. */

typedef struct kr_relevel_options {
    size_t struct_size;
    int isa;            /* the PTX ISA to get to: 63 for 6.3; 0: as the others say */
    int driver_version; /* that of this driver: 11080 for CUDA 11.8, 9000 or later; 0 and no isa: the lowest
                           that does without rewriting, at least 6.0 */
    kr_cc target; /* major 0: left alone where the ISA has it, else the highest that it has; with neither isa
                     nor driver_version the lowest that does without rewriting */
} kr_relevel_options;

typedef struct kr_releveled {
    const char *ptx; /* NUL-terminated */
    size_t bytes;    /* without the NUL */
    int from_isa, to_isa;
    kr_cc from_target, to_target;
    int min_driver;      /* the CUDA version whose driver takes it: 11080; 9000 for all PTX to 6.0 */
    size_t n_rewritten;  /* instructions */
    const char *caution; /* what it asks of the kernels; NULL: nothing */
} kr_releveled;

/* Everything but the header, and what the level lacks, stays as it is: comments, lines, debug sections. What
 * is rewritten gives the same bits; hints about caches are left out. Nothing is ever raised to a higher
 * level. bytes: with or without the final NUL. KR_CORRUPT: no PTX. KR_NOT_ON_THIS_DEVICE: something cannot be
 * said at that level; the message has its line, itself and its need, err->log all of them. KR_COMPILE_FAILED:
 * the PTX is wrong at its own level. */
KR_API kr_status kr_ptx_relevel(const char *ptx, size_t bytes, const kr_relevel_options *options,
                                kr_releveled **ret_releveled, kr_error *err);
KR_API void kr_releveled_destroy(kr_releveled **releveled);

#ifdef __cplusplus
}
#endif
#endif
