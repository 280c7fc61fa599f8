/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every name that libcuda exports: those implemented elsewhere in this folder, and for all others a weak
 * function that says it is not supported.
 */
#include "softcuda/driver/driver.h"

#include <string.h>

/* Told once a name. */
static CUresult unsupported(const char *name, atomic_bool *told)
{
    if (sc_logging() && !atomic_exchange(told, true))
        sc_say("%s is not there", name);
    return CUDA_ERROR_NOT_SUPPORTED;
}

#define CU_SYMBOL(name, version, flag, symbol)             \
    SC_EXPORT __attribute__((weak)) CUresult symbol(void); \
    CUresult symbol(void)                                  \
    {                                                      \
        static atomic_bool told;                           \
        return unsupported(#symbol, &told);                \
    }
#include "abi/symbols.def"
#undef CU_SYMBOL

typedef struct symbol {
    const char *name;
    int version, flag;
    sc_procedure function;
} symbol;

static const symbol symbols[] = {
#define CU_SYMBOL(name, version, flag, symbol) {#name, version, flag, symbol},
#include "abi/symbols.def"
#undef CU_SYMBOL
};

sc_procedure sc_symbol_find(const char *name, int version, int flag)
{
    const symbol *best = NULL;
    for (size_t i = 0; i < KR_COUNT(symbols); i++) {
        const symbol *s = &symbols[i];
        if (s->version > version || (s->flag && s->flag != flag) || strcmp(s->name, name) != 0)
            continue;
        if (!best || s->flag > best->flag || (s->flag == best->flag && s->version >= best->version))
            best = s;
    }
    return best ? best->function : NULL;
}

/* What no other libcuda exports: by it a client can tell which one it has. */
SC_EXPORT extern const int kregistry_softcuda_version;
const int kregistry_softcuda_version = 1;
