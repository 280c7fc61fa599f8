/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every name that libcuda exports: the functions implemented elsewhere in this folder, and for all others a
 * weak one that says it is not supported. Which of the names are there is up to the driver played.
 */
#include "softcuda/driver/driver.h"

#include <dlfcn.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Told once a name. */
static CUresult unsupported(const char *name, atomic_bool *told)
{
    if (sc_logging() && !atomic_exchange(told, true))
        sc_say("the whole of %s is not there", name);
    return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult sc_lacks(const char *what)
{
    if (sc_logging())
        sc_say("of a call that is there, this is not: %s", what);
    return CUDA_ERROR_NOT_SUPPORTED;
}

#define CU_SYMBOL(name, version, flag, symbol)                       \
    __attribute__((weak)) CUresult symbol(void) SC_ENTRY(symbol); \
    CUresult symbol(void)                                            \
    {                                                                \
        static atomic_bool told;                                     \
        return unsupported(#symbol, &told);                          \
    }
#include "abi/symbols.def"
#undef CU_SYMBOL

const sc_symbol sc_symbols[SC_N_SYMBOLS] = {
#define CU_SYMBOL(name, version, flag, symbol) {#name, version, flag, #symbol},
#include "abi/symbols.def"
#undef CU_SYMBOL
};

bool sc_symbol_is(const sc_symbol *symbol, const char *name)
{
    return strcmp(symbol->name, name) == 0 || strcmp(symbol->exported, name) == 0;
}

static bool is_there(const sc_symbol *symbol)
{
    return symbol->version <= sc_driver_version() && !sc_is_missing(symbol);
}

sc_procedure sc_symbol_find(const char *name, int version, int flag)
{
    const sc_symbol *best = NULL;
    for (size_t i = 0; i < SC_N_SYMBOLS; i++) {
        const sc_symbol *s = &sc_symbols[i];
        if (s->version > version || (s->flag && s->flag != flag) || strcmp(s->name, name) != 0 ||
            !is_there(s))
            continue;
        if (!best || s->flag > best->flag || (s->flag == best->flag && s->version >= best->version))
            best = s;
    }
    return best ? sc_gates[best - sc_symbols].entry : NULL;
}

/* ---- what dlsym finds ---- */

/* Makes a name undefined in this library's own symbol table, in memory: a linker then does not find it. */
static bool undefine(sc_procedure entry)
{
    Dl_info info;
    ElfW(Sym) *symbol = NULL;
    void *address;
    memcpy(&address, &entry, sizeof address);
    if (!dladdr1(address, &info, (void **)&symbol, RTLD_DL_SYMENT) || !symbol)
        return false;
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), first = (uintptr_t)symbol / page * page;
    size_t bytes = (uintptr_t)(symbol + 1) - first;
    if (mprotect((void *)first, bytes, PROT_READ | PROT_WRITE))
        return false;
    symbol->st_shndx = SHN_UNDEF;
    symbol->st_value = 0;
    mprotect((void *)first, bytes, PROT_READ);
    return true;
}

/* As the library is loaded, so before a client can look. */
__attribute__((constructor)) static void hide_what_is_not_there(void)
{
    sc_environment_read();
    for (size_t i = 0; i < SC_N_SYMBOLS; i++)
        if (!is_there(&sc_symbols[i]) && !undefine(sc_gates[i].entry))
            sc_say("%s cannot be hidden from dlsym", sc_symbols[i].exported);
}

/* What no other libcuda exports: by it a client can tell which one it has. */
SC_EXPORT extern const int kregistry_softcuda_version;
const int kregistry_softcuda_version = 1;
