/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KR_NVRTC_H
#define KR_NVRTC_H

/* What the files of this room share. */

#include <locale.h>
#include <time.h>

#include <kregistry/compile.h>

#include "abi/nvrtc.h"
#include "ptx/toolkit/toolkit.h"
#include "runtime/base/base.h"

/* One pointer a function of NVRTC, under its own name. */
typedef struct nvrtc_table {
#define NVRTC_POINTER(name, parameters) nvrtcResult(*name) parameters;
    NVRTC_REQUIRED_LIST(NVRTC_POINTER)
    NVRTC_OPTIONAL_LIST(NVRTC_POINTER)
#undef NVRTC_POINTER
} nvrtc_table;

/* A library is too long to be read each time: it is the one of that length and these times. */
typedef struct kr__file_facts {
    bool is_there;
    int64_t bytes;
    struct timespec written, changed;
} kr__file_facts;

struct kr_nvrtc {
    kr__arena arena; /* of every string below */
    nvrtc_table table;
    kr_nvrtc_info info;
    char *builtins;          /* the file that NVRTC needs beside itself */
    char *builtins_problem;  /* why it could not be opened, or NULL */
    kr__file_facts facts[2]; /* of the library and its builtins, when they were opened */
    locale_t c_locale;       /* NVRTC reads numbers with the thread's locale */
};

const char *kr__nvrtc_result_name(int result); /* "NVRTC_ERROR_COMPILATION"; "NVRTC_ERROR_?" */

/* Does the NVRTC of that version (13000) which lists these archs compile for `arch`, with its letter?
 * (compile.c) */
bool kr__nvrtc_knows(const int *archs, size_t n_archs, int version, kr_cc arch);

/* ---- headers (standard.c, headers.c) ---- */

/* The standard headers that a kernel may include where there is no C library. */
typedef struct kr__header {
    const char *name, *text;
} kr__header;
extern const kr__header kr__virtual_headers[];
extern const size_t kr__n_virtual_headers;

/* Where the toolkit's headers for the NVRTC in `folder` are: in the arena, or NULL. False: out of memory. */
bool kr__toolkit_include(const char *folder, kr__arena *arena, const char **ret_include);

/* CUDA_VERSION of <folder>/cuda.h (12080 for 12.8), or 0. */
int kr__toolkit_headers_version(const char *folder);

/* ---- messages (log.c) ---- */

/* Adds the compiler's log with the source lines round each error, numbered:
 *         3 |     int i = threadIdx.x;
 *     >   4 |     y[i] = q;
 * A diagnostic of another file than `name` gets none. */
void kr__log_with_source(kr__text *to, const char *log, const char *name, const char *source);

/* ---- PTX that NVRTC made (entries.c) ---- */

/* The names of the kernels, in order, in the arena; NULL when out of memory. */
const char *const *kr__ptx_entries(const char *ptx, kr__arena *arena, size_t *ret_n);

#endif
