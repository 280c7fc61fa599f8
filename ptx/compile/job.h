/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KR_COMPILE_JOB_H
#define KR_COMPILE_JOB_H

#include "ptx/compile/nvrtc.h"

/* One call of kr_compile. What it gives away and what it needs meanwhile lie in one arena, which becomes the
 * result's. */
typedef struct compile_job {
    kr_compiled compiled; /* first: kr_compiled_destroy finds the job by it */
    kr__arena arena;
    kr_nvrtc *nvrtc;
    const char *name, *source;
    kr_compile_options given;
    const char **options, **header_names, **header_texts;
    size_t n_options, n_headers;
    nvrtcProgram program;
    char target[24]; /* "sm_90a" */
    char cache_note[400];
    kr_error *err;
} compile_job;

/* The folder that options[i] adds to the include path, or NULL. (compile.c) */
const char *kr__include_folder(const char *const *options, size_t i);

/* ---- what is kept of it ---- */

/* What the result depends on; false: not all of it is known. (key.c) */
bool kr__compile_key(const compile_job *job, uint8_t ret_key[KR__SHA256_BYTES]);

/* false: out of memory. (kept.c) */
bool kr__compiled_pack(const compile_job *job, kr__text *to);
/* false: that is no result of this job, or out of memory. */
bool kr__compiled_unpack(compile_job *job, const char *data, size_t bytes);

/* ---- failures (failure.c): each fills job->err for a person and returns its status ---- */

/* What an answer of NVRTC's `function` other than NVRTC_SUCCESS means. */
kr_status kr__nvrtc_failed(const compile_job *job, nvrtcResult result, const char *function);

/* This NVRTC does not list the job's arch. */
kr_status kr__arch_unknown(const compile_job *job);

#endif
