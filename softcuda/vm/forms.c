/* SPDX-License-Identifier: Apache-2.0 */
/* Which of the two sets of handlers this processor runs, and the form of a spelling in it. */
#include "softcuda/vm/check.h"
#include "softcuda/vm/machine.h"
#include "softcuda/vm/map.h"

#include <stdlib.h>
#include <string.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static const sc_form *forms;
static size_t n_forms;
static const sc_accesses *accesses;

typedef struct sc_spelling {
    const char *text;
    size_t bytes;
    const sc_form *form;
} sc_spelling;
enum { SC_SPELLINGS = 4096 }; /* a power of two, well above their number */
static sc_spelling spellings[SC_SPELLINGS];

static sc_spelling *place_of(const char *text, size_t bytes)
{
    uint32_t hash = 2166136261u;
    for (size_t i = 0; i < bytes; i++)
        hash = (hash ^ (uint8_t)text[i]) * 16777619u;
    sc_spelling *at = &spellings[hash % SC_SPELLINGS];
    while (at->text && (at->bytes != bytes || memcmp(at->text, text, bytes) != 0))
        at = at == &spellings[SC_SPELLINGS - 1] ? spellings : at + 1;
    return at;
}

/* For tests of the other set. */
static const char *wanted_isa(void)
{
    const char *wanted = getenv("KREGISTRY_SOFTCUDA_ISA");
    return wanted ? wanted : "";
}

bool sc_isa_is_known(void)
{
    return !*wanted_isa() || strcmp(wanted_isa(), "baseline") == 0;
}

static bool has_avx2(void)
{
    if (strcmp(wanted_isa(), "baseline") == 0)
        return false;
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}

static void prepare(void)
{
    bool avx2 = has_avx2();
    forms = avx2 ? sc__forms_avx2 : sc__forms_baseline;
    n_forms = avx2 ? sc__n_forms_avx2 : sc__n_forms_baseline;
    accesses = sc__check_accesses(avx2 ? &sc__accesses_avx2 : &sc__accesses_baseline);
    for (size_t i = 0; i < n_forms; i++)
        for (const char *at = forms[i].names; *at;) {
            size_t bytes = strcspn(at, " ");
            *place_of(at, bytes) = (sc_spelling){at, bytes, &forms[i]};
            at += bytes + (at[bytes] == ' ');
        }
}

const sc_form *sc__find_form(const char *name)
{
    pthread_once(&once, prepare);
    return place_of(name, strlen(name))->form;
}

bool sc__has_form(const char *operation)
{
    const size_t bytes = strlen(operation);
    pthread_once(&once, prepare);
    for (size_t i = 0; i < SC_SPELLINGS; i++)
        if (spellings[i].text && spellings[i].bytes > bytes && spellings[i].text[bytes] == '.' &&
            memcmp(spellings[i].text, operation, bytes) == 0)
            return true;
    return false;
}

const sc_accesses *sc__accesses(void)
{
    pthread_once(&once, prepare);
    return accesses;
}
