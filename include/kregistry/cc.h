/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KREGISTRY_CC_H
#define KREGISTRY_CC_H

#include <stdbool.h>
#include <stddef.h>

#include <kregistry/error.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * A compute capability: of a device (suffix 0), or the target of an image (suffix 0, 'a' or 'f').
 * Compared as numbers, never as text: 10.0 > 9.0.
 */
typedef struct kr_cc {
    int major;
    int minor;
    char suffix; /* 0, 'a' (that CC alone) or 'f' (that family) */
} kr_cc;

#define KR_CC_TEXT_BYTES 16

/* Reads "sm_90a", "compute_100f", "lto_90", "90a", "9.0", "9.0a". The whole text must be one CC;
 * anything else is KR_INVALID_ARGUMENT, never a guess. */
KR_API kr_status kr_cc_parse(const char *text, kr_cc *ret_cc, kr_error *err);

/* Writes "9.0", "9.0a". Returns text. */
KR_API char *kr_cc_format(kr_cc cc, char text[KR_CC_TEXT_BYTES]);

/* < 0, 0, > 0 by major, then minor; the suffix does not count. */
KR_API int kr_cc_compare(kr_cc a, kr_cc b);

/* Does machine code built for `target` run on a device of `device`? 'a': that CC alone; 'f': the
 * members of its family from the target on, by an explicit table; otherwise same major and target
 * minor <= device minor, except that Tegra parts (5.3, 6.2, 7.2, 8.7, 11.0, once 10.1) share none with
 * others. */
KR_API bool kr_cc_cubin_runs_on(kr_cc target, kr_cc device);

/* Can a driver that knows `device` compile PTX of `target` for it? 'a' and 'f' as above; otherwise
 * target <= device. */
KR_API bool kr_cc_ptx_runs_on(kr_cc target, kr_cc device);

#ifdef __cplusplus
}
#endif
#endif
