/* SPDX-License-Identifier: Apache-2.0 */
/* How a client finds the other functions, and what it is told of errors. */
#include "softcuda/driver/driver.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

bool sc_logging(void)
{
    const char *log = getenv("KREGISTRY_SOFTCUDA_LOG");
    return log && *log;
}

API(cuGetProcAddress_v2, const char *name, void **ret_function, int version, unsigned long long flags,
    CUdriverProcAddressQueryResult *ret_status)
{
    if (!name || !ret_function || version < 0 ||
        flags > (CU_GET_PROC_ADDRESS_LEGACY_STREAM | CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM))
        return CUDA_ERROR_INVALID_VALUE;
    int driver = sc_driver_version(), flag = (int)flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
    sc_procedure found = sc_symbol_find(name, version < driver ? version : driver, flag);
    CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SUCCESS;
    if (!found)
        status = sc_symbol_find(name, driver, flag) ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
                                                    : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    memcpy(ret_function, &found, sizeof *ret_function);
    if (ret_status)
        *ret_status = status;
    return CUDA_SUCCESS; /* found or not: *ret_status tells */
}

API(cuGetProcAddress, const char *name, void **ret_function, int version, unsigned long long flags)
{
    TRY(cuGetProcAddress_v2(name, ret_function, version, flags, NULL));
    return *ret_function ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

/* The private tables of the CUDA runtime library. */
API(cuGetExportTable, const void **ret_table, const CUuuid *id)
{
    (void)ret_table, (void)id;
    return CUDA_ERROR_NOT_FOUND;
}

/* ---- errors ---- */

static const struct {
    CUresult code;
    const char *name;
} results[] = {
#define CU_RESULT_ROW(name, number) {name, #name},
    CU_RESULT_LIST(CU_RESULT_ROW)
#undef CU_RESULT_ROW
};

bool sc_result_named(const char *name, CUresult *ret_code)
{
    for (size_t i = 0; i < KR_COUNT(results); i++) {
        if (strcmp(results[i].name, name) == 0) {
            *ret_code = results[i].code;
            return true;
        }
    }
    return false;
}

const char *sc_result_name(CUresult code)
{
    for (size_t i = 0; i < KR_COUNT(results); i++)
        if (results[i].code == code)
            return results[i].name;
    return NULL;
}

API(cuGetErrorName, CUresult code, const char **name)
{
    if (!name)
        return CUDA_ERROR_INVALID_VALUE;
    *name = sc_result_name(code);
    return *name ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* The name in words: "illegal address". */
static char texts[KR_COUNT(results)][64];

static void make_texts(void)
{
    for (size_t i = 0; i < KR_COUNT(results); i++) {
        const char *name = results[i].code ? results[i].name + strlen("CUDA_ERROR_") : "no error";
        for (size_t j = 0; name[j] && j + 1 < sizeof texts[i]; j++)
            texts[i][j] = (char)(name[j] == '_' ? ' ' : tolower((unsigned char)name[j]));
    }
}

API(cuGetErrorString, CUresult code, const char **text)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    if (!text)
        return CUDA_ERROR_INVALID_VALUE;
    pthread_once(&once, make_texts);
    *text = NULL;
    for (size_t i = 0; i < KR_COUNT(results); i++)
        if (results[i].code == code)
            *text = texts[i];
    return *text ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
