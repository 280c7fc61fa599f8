/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KR_ABI_NVRTC_H
#define KR_ABI_NVRTC_H

/*
 * NVRTC's binary interface, as far as the project speaks it: the same in 11.2 to 13. Source of the facts: the
 * NVRTC reference; tests/compile compares with the header where one is installed.
 */

#include <stddef.h>

typedef struct _nvrtcProgram *nvrtcProgram;

/* X(name, number) */
#define NVRTC_RESULT_LIST(X) \
    X(NVRTC_SUCCESS, 0) \
    X(NVRTC_ERROR_OUT_OF_MEMORY, 1) \
    X(NVRTC_ERROR_PROGRAM_CREATION_FAILURE, 2) \
    X(NVRTC_ERROR_INVALID_INPUT, 3) \
    X(NVRTC_ERROR_INVALID_PROGRAM, 4) \
    X(NVRTC_ERROR_INVALID_OPTION, 5) \
    X(NVRTC_ERROR_COMPILATION, 6) \
    X(NVRTC_ERROR_BUILTIN_OPERATION_FAILURE, 7) \
    X(NVRTC_ERROR_NO_NAME_EXPRESSIONS_AFTER_COMPILATION, 8) \
    X(NVRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION, 9) \
    X(NVRTC_ERROR_NAME_EXPRESSION_NOT_VALID, 10) \
    X(NVRTC_ERROR_INTERNAL_ERROR, 11) \
    X(NVRTC_ERROR_TIME_FILE_WRITE_FAILED, 12) \
    X(NVRTC_ERROR_NO_PCH_CREATE_ATTEMPTED, 13) \
    X(NVRTC_ERROR_PCH_CREATE_HEAP_EXHAUSTED, 14) \
    X(NVRTC_ERROR_PCH_CREATE, 15) \
    X(NVRTC_ERROR_CANCELLED, 16) \
    X(NVRTC_ERROR_TIME_TRACE_FILE_WRITE_FAILED, 17) \
    X(NVRTC_ERROR_BUSY, 18)

typedef enum nvrtcResult {
#define NVRTC_RESULT_ENUM(name, number) name = number,
    NVRTC_RESULT_LIST(NVRTC_RESULT_ENUM)
#undef NVRTC_RESULT_ENUM
} nvrtcResult;

/* X(name, parameters): every function returns nvrtcResult. REQUIRED: NVRTC 11.2 has it. */
#define NVRTC_REQUIRED_LIST(X) \
    X(nvrtcVersion, (int *major, int *minor)) \
    X(nvrtcGetNumSupportedArchs, (int *count)) \
    X(nvrtcGetSupportedArchs, (int *archs)) \
    X(nvrtcCreateProgram, (nvrtcProgram *program, const char *source, const char *name, int n_headers, \
                           const char *const *header_texts, const char *const *header_names)) \
    X(nvrtcDestroyProgram, (nvrtcProgram *program)) \
    X(nvrtcCompileProgram, (nvrtcProgram program, int n_options, const char *const *options)) \
    X(nvrtcGetPTXSize, (nvrtcProgram program, size_t *bytes)) \
    X(nvrtcGetPTX, (nvrtcProgram program, char *ptx)) \
    X(nvrtcGetCUBINSize, (nvrtcProgram program, size_t *bytes)) \
    X(nvrtcGetCUBIN, (nvrtcProgram program, char *cubin)) \
    X(nvrtcGetProgramLogSize, (nvrtcProgram program, size_t *bytes)) \
    X(nvrtcGetProgramLog, (nvrtcProgram program, char *log)) \
    X(nvrtcAddNameExpression, (nvrtcProgram program, const char *expression)) \
    X(nvrtcGetLoweredName, (nvrtcProgram program, const char *expression, const char **lowered))

#define NVRTC_OPTIONAL_LIST(X) /* 12.0 */ \
    X(nvrtcGetLTOIRSize, (nvrtcProgram program, size_t *bytes)) \
    X(nvrtcGetLTOIR, (nvrtcProgram program, char *ltoir))

#endif
