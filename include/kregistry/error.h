/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KREGISTRY_ERROR_H
#define KREGISTRY_ERROR_H

/*
 * Errors are values. Every function that can fail returns a kr_status and takes a caller-owned
 * kr_error * as its last argument (NULL: not wanted). On success the error is left untouched.
 * On failure it is filled whole. No allocation, no thread-local state; any thread may fill its own.
 *
 * A pointer may be NULL only where its function's comment, or its options struct, says so: else the answer is
 * KR_INVALID_ARGUMENT with the argument's name. `options` and `err` always may. A function that cannot fail
 * answers NULL with 0, NULL or an empty struct.
 *
 * What a function's comment does not repeat: whatever calls the driver may answer KR_PROCESS_LOST (a kernel's
 * fault before it), KR_OUT_OF_DEVICE_MEMORY and KR_FOREIGN; whatever allocates, KR_OUT_OF_HOST_MEMORY.
 *
 * A failing function leaves every `ret_` argument as it was and nothing half done, unless its own
 * comment says otherwise.
 */

#include <stdio.h>

#include <kregistry/export.h>

#ifdef __cplusplus
extern "C" {
#endif

/* X(name, number, text). The status says who can act. Numbers never change. */
#define KR_STATUS_LIST(X)                                                \
    X(OK, 0, "done")                                                     \
    X(INVALID_ARGUMENT, 1, "an argument is wrong")                       \
    X(NOT_FOUND, 2, "there is no such thing")                            \
    X(NOT_ON_THIS_MACHINE, 3, "this machine lacks what it takes")        \
    X(NOT_ON_THIS_DEVICE, 4, "this device or driver cannot do it")       \
    X(OUT_OF_HOST_MEMORY, 5, "out of host memory")                       \
    X(OUT_OF_DEVICE_MEMORY, 6, "out of device memory")                   \
    X(COMPILE_FAILED, 7, "the source does not compile")                  \
    X(LAUNCH_FAILED, 8, "this launch failed")                            \
    X(PROCESS_LOST, 9, "a kernel fault has ended CUDA for this process") \
    X(IO, 10, "reading or writing failed")                               \
    X(CORRUPT, 11, "the data is damaged")                                \
    X(FOREIGN, 12, "the driver or the compiler failed for a reason of its own")

typedef enum kr_status {
#define KR_STATUS_ENUM(name, number, text) KR_##name = number,
    KR_STATUS_LIST(KR_STATUS_ENUM)
#undef KR_STATUS_ENUM
} kr_status;

/* Whose number kr_error.code is. */
typedef enum kr_api {
    KR_API_NONE = 0,     /* code is 0: the library itself found the fault */
    KR_API_CUDA = 1,     /* code is a CUresult */
    KR_API_NVRTC = 2,    /* code is an nvrtcResult */
    KR_API_ERRNO = 3,    /* code is an errno */
    KR_API_NVJITLINK = 4 /* code is an nvJitLinkResult */
} kr_api;

typedef struct kr_error {
    kr_status status;
    kr_api api;
    int code;
    int line;             /* of `file`: where in the library the fault was noticed */
    const char *file;     /* static string */
    const char *function; /* static string: the foreign function that answered `code`, or NULL */
    char code_name[56];   /* "CUDA_ERROR_INVALID_PTX", "ENOSPC", ... or empty */
    int device;           /* ordinal, or -1 */
    char op[64];          /* "saxpy.f32", or empty */
    char image[128];      /* "cubin sm_90 from NVRTC 13.0", a file name, ... or empty */
    char message[1024];   /* one sentence with the numbers in it */
    char advice[384];     /* one thing to do */
    char chain[512];      /* "while preparing saxpy.f32; while ...", innermost first, or empty */
    char log[12288];      /* a compiler's log; a log that does not fit keeps its head and its tail */
} kr_error;

/* "KR_NOT_FOUND"; "KR_STATUS_99" style text is never needed: an unknown number gives "KR_?". */
KR_API const char *kr_status_name(kr_status status);

/* The text of KR_STATUS_LIST, or "unknown status". */
KR_API const char *kr_status_text(kr_status status);

/* Writes the error for a person: message, where, foreign code, chain, log, advice. Returns 1, so that
 * `return kr_error_print(&err, stderr);` ends a main(). */
KR_API int kr_error_print(const kr_error *err, FILE *to);

#ifdef __cplusplus
}
#endif
#endif
