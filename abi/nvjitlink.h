/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KR_ABI_NVJITLINK_H
#define KR_ABI_NVJITLINK_H

/*
 * nvJitLink's binary interface, as far as the project speaks it: the same in 12.0 to 13. Source of the facts: the
 * nvJitLink reference; tests/link compares with the header where one is installed.
 */

#include <stddef.h>
#include <stdint.h>

typedef struct nvJitLink *nvJitLinkHandle;

/* X(name, number) */
#define NVJITLINK_RESULT_LIST(X) \
    X(NVJITLINK_SUCCESS, 0) \
    X(NVJITLINK_ERROR_UNRECOGNIZED_OPTION, 1) \
    X(NVJITLINK_ERROR_MISSING_ARCH, 2) \
    X(NVJITLINK_ERROR_INVALID_INPUT, 3) \
    X(NVJITLINK_ERROR_PTX_COMPILE, 4) \
    X(NVJITLINK_ERROR_NVVM_COMPILE, 5) \
    X(NVJITLINK_ERROR_INTERNAL, 6) \
    X(NVJITLINK_ERROR_THREADPOOL, 7) \
    X(NVJITLINK_ERROR_UNRECOGNIZED_INPUT, 8) \
    X(NVJITLINK_ERROR_FINALIZE, 9) \
    X(NVJITLINK_ERROR_NULL_INPUT, 10) \
    X(NVJITLINK_ERROR_INCOMPATIBLE_OPTIONS, 11) \
    X(NVJITLINK_ERROR_INCORRECT_INPUT_TYPE, 12) \
    X(NVJITLINK_ERROR_ARCH_MISMATCH, 13) \
    X(NVJITLINK_ERROR_OUTDATED_LIBRARY, 14) \
    X(NVJITLINK_ERROR_MISSING_FATBIN, 15) \
    X(NVJITLINK_ERROR_UNRECOGNIZED_ARCH, 16) \
    X(NVJITLINK_ERROR_UNSUPPORTED_ARCH, 17) \
    X(NVJITLINK_ERROR_LTO_NOT_ENABLED, 18)

typedef enum nvJitLinkResult {
#define NVJITLINK_RESULT_ENUM(name, number) name = number,
    NVJITLINK_RESULT_LIST(NVJITLINK_RESULT_ENUM)
#undef NVJITLINK_RESULT_ENUM
} nvJitLinkResult;

typedef enum nvJitLinkInputType {
    NVJITLINK_INPUT_CUBIN = 1,
    NVJITLINK_INPUT_PTX = 2,
    NVJITLINK_INPUT_LTOIR = 3,
    NVJITLINK_INPUT_FATBIN = 4,
} nvJitLinkInputType;

/* X(name, parameters): every function returns nvJitLinkResult. The library exports each as nvJitLinkNAME from 13
 * on, and as __nvJitLinkNAME_12_0 in every 12. */
#define NVJITLINK_FUNCTION_LIST(X) \
    X(Create, (nvJitLinkHandle *link, uint32_t n_options, const char **options)) \
    X(Destroy, (nvJitLinkHandle *link)) \
    X(AddData, (nvJitLinkHandle link, nvJitLinkInputType type, const void *data, size_t bytes, const char *name)) \
    X(Complete, (nvJitLinkHandle link)) \
    X(GetLinkedCubinSize, (nvJitLinkHandle link, size_t *bytes)) \
    X(GetLinkedCubin, (nvJitLinkHandle link, void *cubin)) \
    X(GetLinkedPtxSize, (nvJitLinkHandle link, size_t *bytes)) \
    X(GetLinkedPtx, (nvJitLinkHandle link, char *ptx)) \
    X(GetErrorLogSize, (nvJitLinkHandle link, size_t *bytes)) \
    X(GetErrorLog, (nvJitLinkHandle link, char *log)) \
    X(GetInfoLogSize, (nvJitLinkHandle link, size_t *bytes)) \
    X(GetInfoLog, (nvJitLinkHandle link, char *log))

#endif
