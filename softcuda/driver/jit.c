/* SPDX-License-Identifier: Apache-2.0 */
/* The options of the compiler in the driver: which are taken, what cannot be met, and the logs they ask for.
 */
#include "softcuda/driver/driver.h"

#include <string.h>

/* ---- logs ---- */

/* Puts text into the buffer that option `buffer` gives, as long as option `size` says; tells how much of it
 * was used. */
static void fill_log(const sc_jit *jit, CUjit_option buffer, CUjit_option size, const char *text)
{
    char *to = NULL;
    void **bytes = NULL;
    for (unsigned i = 0; i < jit->n; i++) {
        if (jit->options[i] == buffer)
            to = jit->values[i];
        if (jit->options[i] == size)
            bytes = &jit->values[i];
    }
    size_t capacity = bytes ? (size_t)(uintptr_t)*bytes & 0xffffffff : 0, whole = strlen(text);
    if (!to || !capacity)
        return;
    while (whole && text[whole - 1] == '\n')
        whole--;
    size_t n = whole < capacity ? whole : capacity - 1;
    memcpy(to, text, n);
    to[n] = '\0';
    *bytes = (void *)(uintptr_t)(n == whole || !n ? n : capacity);
}

void sc_jit_report(const sc_jit *jit, const char *info, const char *error)
{
    fill_log(jit, CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES, info ? info : "");
    fill_log(jit, CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, error ? error : "");
}

/* ---- options ---- */

static bool has_option(const sc_jit *jit, CUjit_option option, int *ret_value)
{
    for (unsigned i = 0; i < jit->n; i++)
        if (jit->options[i] == option) {
            if (ret_value)
                *ret_value = (int)(intptr_t)jit->values[i];
            return true;
        }
    return false;
}

static bool has_buffer(const sc_jit *jit, CUjit_option buffer)
{
    for (unsigned i = 0; i < jit->n; i++)
        if (jit->options[i] == buffer && jit->values[i])
            return true;
    return false;
}

/* CU_JIT_TARGET has the suffix above the number. */
enum { TARGET_NUMBER = 0xffff };

/* Numbers that the enumeration had at some time. */
static bool is_target(int target)
{
    static const int targets[] = {30, 32, 35, 37, 50, 52, 53,  60,  61,  62,  70,  72, 75,
                                  80, 86, 87, 88, 89, 90, 100, 101, 103, 110, 120, 121};
    for (size_t i = 0; i < KR_COUNT(targets); i++)
        if (targets[i] == target)
            return true;
    return target == 0 || target == 1;
}

static CUresult check_option(const sc_jit *jit, unsigned i)
{
    int value = (int)(intptr_t)jit->values[i];
    bool good = true;
    switch (jit->options[i]) {
    case CU_JIT_MAX_REGISTERS:
        good = value != 0;
        break;
    case CU_JIT_INFO_LOG_BUFFER:
        good = has_option(jit, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES, NULL);
        break;
    case CU_JIT_ERROR_LOG_BUFFER:
        good = has_option(jit, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, NULL);
        break;
    case CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES:
        good = has_buffer(jit, CU_JIT_INFO_LOG_BUFFER);
        break;
    case CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES:
        good = has_buffer(jit, CU_JIT_ERROR_LOG_BUFFER);
        break;
    case CU_JIT_TARGET:
        good = is_target(value & TARGET_NUMBER);
        break;
    case CU_JIT_CACHE_MODE:
        good = value >= 0 && value <= 2;
        break;
    default:
        good = jit->options[i] < CU_JIT_NUM_OPTIONS;
        break;
    }
    return good ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult sc_jit_check(const sc_jit *jit)
{
    if (jit->n && (!jit->options || !jit->values))
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < jit->n; i++)
        TRY(check_option(jit, i));
    return CUDA_SUCCESS;
}

/* Where PTX of `target` cannot be compiled as asked. Before Maxwell nothing is compiled for any more. */
static CUresult refuse_target_option(const sc_jit *jit, int target)
{
    enum { MAXWELL = 50 };
    int wanted;
    if (!has_option(jit, CU_JIT_TARGET, &wanted) || (wanted &= TARGET_NUMBER) == target)
        return CUDA_SUCCESS;
    return wanted < MAXWELL  ? CUDA_ERROR_INVALID_IMAGE
           : wanted < target ? CUDA_ERROR_INVALID_PTX
                             : CUDA_SUCCESS;
}

CUresult sc_jit_refusal(const sc_jit *jit, int target, int device)
{
    static const CUjit_option positive[] = {CU_JIT_OPTIMIZATION_LEVEL, CU_JIT_MIN_CTA_PER_SM,
                                            CU_JIT_SPLIT_COMPILE};
    int value, debug = 0, level = 0;
    for (size_t i = 0; i < KR_COUNT(positive); i++)
        if (has_option(jit, positive[i], &value) && value < 0)
            return CUDA_ERROR_INVALID_PTX;
    if (has_option(jit, CU_JIT_NEW_SM3X_OPT, NULL))
        return CUDA_ERROR_INVALID_PTX;
    if (has_option(jit, CU_JIT_GENERATE_DEBUG_INFO, &debug) && debug &&
        has_option(jit, CU_JIT_OPTIMIZATION_LEVEL, &level) && level)
        return CUDA_ERROR_INVALID_PTX;
    TRY(refuse_target_option(jit, target));
    if (device && has_option(jit, CU_JIT_TARGET, &value) && (value & TARGET_NUMBER) != device)
        return CUDA_ERROR_INVALID_SOURCE;
    return CUDA_SUCCESS;
}

int sc_jit_registers(const sc_jit *jit, int registers)
{
    enum { LEAST = 16 };
    for (unsigned i = 0; i < jit->n; i++) {
        int limit = (int)(uintptr_t)jit->values[i];
        if (jit->options[i] == CU_JIT_MAX_REGISTERS && limit >= LEAST && limit < registers)
            registers = limit;
    }
    return registers;
}
