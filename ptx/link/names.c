/* SPDX-License-Identifier: Apache-2.0 */
/* nvJitLink 13.0 takes the first of two definitions of a name, complains on standard error, and answers
 * success. So names are compared here first. LTO-IR says nothing of its names, and is held to them by the
 * linker itself. */
#include "ptx/link/linker.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "ptx/front/ptx.h"

typedef struct definition {
    const char *name; /* in the arena */
    const char *part;
} definition;

typedef struct definitions {
    kr__arena arena;
    definition *list;
    size_t n;
    bool failed; /* out of memory */
} definitions;

static void define(definitions *to, const char *name, const kr__link_part *part)
{
    definition *grown = kr__grow(to->list, to->n, sizeof *grown);
    const char *copy = grown ? kr__arena_text(&to->arena, name, strlen(name)) : NULL;
    if (grown)
        to->list = grown;
    if (copy)
        grown[to->n++] = (definition){copy, part->name};
    to->failed |= !copy;
}

/* PTX that does not parse is the linker's to refuse. */
static void add_ptx(definitions *to, const kr__link_part *part)
{
    ptx_module *module = NULL;
    ptx_problem problem = {0};
    if (kr__ptx_parse(part->image, part->bytes, &(ptx_options){0}, &module, &problem)) {
        for (const ptx_function *f = module->functions; f; f = f->next)
            if (kr__ptx_called(f)->has_body && f->linkage == PTX_LINK_VISIBLE)
                define(to, f->name, part);
        for (const ptx_variable *v = module->variables; v; v = v->next)
            if (v->linkage == PTX_LINK_VISIBLE)
                define(to, v->name, part);
        kr__ptx_module_free(&module);
    }
    kr__text_free(&problem.log);
}

static void add_cubin(definitions *to, const kr__link_part *part)
{
    const void *symbols, *names;
    size_t symbol_bytes, name_bytes;
    if (!kr__cubin_section(part->image, part->bytes, ".symtab", &symbols, &symbol_bytes) ||
        !kr__cubin_section(part->image, part->bytes, ".strtab", &names, &name_bytes))
        return;
    for (size_t at = 0; at + sizeof(Elf64_Sym) <= symbol_bytes; at += sizeof(Elf64_Sym)) {
        Elf64_Sym symbol;
        memcpy(&symbol, (const char *)symbols + at, sizeof symbol);
        const unsigned char type = ELF64_ST_TYPE(symbol.st_info);
        if (ELF64_ST_BIND(symbol.st_info) == STB_GLOBAL && symbol.st_shndx != SHN_UNDEF &&
            (type == STT_FUNC || type == STT_OBJECT) && symbol.st_name < name_bytes &&
            memchr((const char *)names + symbol.st_name, '\0', name_bytes - symbol.st_name))
            define(to, (const char *)names + symbol.st_name, part);
    }
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const definition *)a)->name, ((const definition *)b)->name);
}

kr_status kr__link_check_names(const kr__link_part *parts, size_t n, const char *target, kr_error *err)
{
    definitions all = {0};
    kr__text log = {0};
    for (size_t i = 0; i < n; i++)
        if (parts[i].facts.kind == KR_IMAGE_PTX)
            add_ptx(&all, &parts[i]);
        else if (parts[i].facts.kind == KR_IMAGE_CUBIN)
            add_cubin(&all, &parts[i]);
    if (all.n)
        qsort(all.list, all.n, sizeof *all.list, by_name);
    for (size_t i = 1; i < all.n; i++)
        if (by_name(&all.list[i - 1], &all.list[i]) == 0)
            kr__text_add(&log, "error   : Multiple definition of '%s' in '%s' and '%s'\n", all.list[i].name,
                         all.list[i - 1].part, all.list[i].part);
    kr_status status = KR_OK;
    if (all.failed || log.failed)
        status = KR_FAIL(err, KR_OUT_OF_HOST_MEMORY, "no host memory to compare the names of %zu images", n);
    else if (log.bytes)
        status = kr__link_failed("the link", n, target, &log, err);
    kr__text_free(&log);
    free(all.list);
    kr__arena_free(&all.arena);
    return status;
}
