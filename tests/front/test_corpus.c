/* SPDX-License-Identifier: Apache-2.0 */
/* All PTX that nvcc makes of the files in cuda/ and of the ops is read, for three targets and with debug
 * information; and ptxas agrees on the least .version and .target that it needs. Skipped without nvcc.
 * With files of PTX as arguments: those, without the least; corpus.py makes them. */
#include "same.h"

#include <elf.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SKIPPED = 77 };

static const char *nvcc, *ptxas;
static char folder[] = "/tmp/front_XXXXXX";

/* ---- ptxas ---- */

static bool run(const char *format, ...) KR_PRINTF(1, 2);
static bool run(const char *format, ...)
{
    char command[4096];
    va_list args;
    va_start(args, format);
    kr__format_list(command, sizeof command, format, args);
    va_end(args);
    return system(command) == 0;
}

/* Does ptxas accept the text under another .version and .target? It compiles for nothing below sm_75. */
static bool accepts(const char *text, int isa, const char *target)
{
    const char *version = strstr(text, ".version") + 9, *named = strstr(text, ".target") + 8;
    char path[64];
    kr__format(path, sizeof path, "%s/asked.ptx", folder);
    FILE *file = fopen(path, "w");
    if (!file)
        return false;
    fprintf(file, "%.*s%d.%d%.*s%s%s", (int)(version - text), text, isa / 10, isa % 10,
            (int)(named - version - 3), version + 3, target, named + strcspn(named, ",\n"));
    fclose(file);
    const bool ok = run("'%s' -arch=%s -O0 -c -o /dev/null %s 2>/dev/null", ptxas,
                        atoi(target + 3) < 75 ? "sm_75" : target, path);
    remove(path);
    return ok;
}

/* The last before it that ptxas knows. */
static int older(int isa)
{
    static const int versions[] = {62, 63, 64, 65, 70, 71, 72, 73, 74, 75, 76, 77,
                                   78, 80, 81, 82, 83, 84, 85, 86, 87, 88, 90};
    size_t i = KR_COUNT(versions) - 1;
    while (i && versions[i] >= isa)
        i--;
    return versions[i];
}

static const char *lower(const char *target)
{
    static const char *const targets[] = {"sm_13", "sm_20", "sm_30", "sm_35",  "sm_52",
                                          "sm_53", "sm_60", "sm_61", "sm_70",  "sm_75",
                                          "sm_80", "sm_86", "sm_90", "sm_90a", "sm_100"};
    const char *best = targets[0];
    for (size_t i = 0; i < KR_COUNT(targets) && strcmp(targets[i], target); i++)
        best = targets[i];
    return best;
}

static bool needs_exactly(const ptx_module *module, const char *text)
{
    const ptx_needs needs = module->needs;
    const bool ok = needs.target && accepts(text, needs.isa, module->target) &&
                    !accepts(text, older(needs.isa), module->target) &&
                    accepts(text, module->isa, needs.target) &&
                    !accepts(text, module->isa, lower(needs.target));
    printf("  %s .version %d for %s (line %u), %s for %s (line %u)\n", ok ? "needs" : "does not need",
           needs.isa, needs.isa_form, needs.isa_line, needs.target, needs.target_form, needs.target_line);
    return ok;
}

/* ---- a printed module is the same machine code ---- */

static bool assemble(const char *text, size_t bytes, const char *target, char **ret_cubin)
{
    char ptx[64], cubin[64];
    size_t n;
    kr__format(ptx, sizeof ptx, "%s/text.ptx", folder);
    kr__format(cubin, sizeof cubin, "%s/text.cubin", folder);
    FILE *file = fopen(ptx, "w");
    bool ok = file && fwrite(text, 1, bytes, file) == bytes;
    ok = file && !fclose(file) && ok && run("'%s' -arch=%s -c -o %s %s", ptxas, target, cubin, ptx) &&
         kr__file_read(cubin, ret_cubin, &n, NULL) == KR_OK;
    remove(ptx);
    remove(cubin);
    return ok;
}

/* All sections but those of symbols: in the names of shared variables ptxas counts what is declared before
 * them. And debug information has the lines of the text. */
static bool same_cubin(const char *a, const char *b)
{
    enum { CUDA_SHARED = SHT_LOPROC + 0xa, CUDA_SHARED_RESERVED = SHT_LOPROC + 0x15 };
    const Elf64_Ehdr *head = (const void *)a, *other = (const void *)b;
    const Elf64_Shdr *s = (const void *)(a + head->e_shoff), *t = (const void *)(b + other->e_shoff);
    bool ok = head->e_shnum == other->e_shnum;
    for (size_t i = 1; ok && i < head->e_shnum; i++) {
        const char *name = a + s[head->e_shstrndx].sh_offset + s[i].sh_name;
        if (s[i].sh_type == SHT_STRTAB || s[i].sh_type == SHT_SYMTAB || strstr(name, "symtab") ||
            strstr(name, "debug_"))
            continue;
        const bool is_empty =
            s[i].sh_type == SHT_NOBITS || s[i].sh_type == CUDA_SHARED || s[i].sh_type == CUDA_SHARED_RESERVED;
        ok = s[i].sh_size == t[i].sh_size &&
             (is_empty || !memcmp(a + s[i].sh_offset, b + t[i].sh_offset, s[i].sh_size));
        if (!ok)
            printf("  section %s differs\n", name);
    }
    return ok;
}

static bool prints_the_same(const ptx_module *module, const char *text, size_t bytes)
{
    kr__text printed = {0};
    char *one = NULL, *other = NULL;
    bool ok = survives_printing(module, &printed);
    /* for a debugger ptxas numbers symbols as they are declared, and code has the numbers */
    if (!module->debug)
        ok = ok && assemble(text, bytes, module->target, &one) &&
             assemble(printed.data, printed.bytes, module->target, &other) && same_cubin(one, other);
    kr__text_free(&printed);
    free(one);
    free(other);
    return ok;
}

static bool prove(const char *path, bool with_needs)
{
    char *text;
    size_t bytes;
    if (kr__file_read(path, &text, &bytes, NULL) != KR_OK)
        return false;
    ptx_module *module = NULL;
    ptx_problem problem;
    bool ok = kr__ptx_parse(text, bytes, NULL, &module, &problem);
    size_t n = 0;
    for (const ptx_function *function = ok ? module->functions : NULL; function; function = function->next)
        n += function->n_instrs;
    printf("%s: %zu instructions\n%s", path, n, problem.log.data ? problem.log.data : "");
    if (ok)
        ok = (!with_needs || needs_exactly(module, text)) && prints_the_same(module, text, bytes);
    kr__text_free(&problem.log);
    kr__ptx_module_free(&module);
    free(text);
    return ok && n;
}

/* ---- what is compiled ---- */

static bool compile(const char *source, const char *options)
{
    char path[64];
    kr__format(path, sizeof path, "%s/made.ptx", folder);
    printf("%s %s\n", source, options);
    const bool ok = run("'%s' -ptx -w -std=c++17 -rdc=true %s '%s' -o '%s'", nvcc, options, source, path) &&
                    prove(path, true);
    remove(path);
    return ok;
}

/* An op, all its variants, for a float. */
static bool compile_op(const char *source)
{
    static const char *const targets[] = {"sm_75", "sm_90"};
    char options[1024], types[64];
    bool ok = true;
    kr__format(types, sizeof types, "%s/types.h", folder);
    FILE *file = fopen(types, "w");
    if (!file || fputs("#include <cmath>\n#include <cstdint>\ntypedef float T;\n", file) < 0 || fclose(file))
        return false;
    for (size_t i = 0; i < KR_COUNT(targets); i++) {
        kr__format(options, sizeof options,
                   "-arch=%s -include %s $(grep -o 'KR_VARIANT_[a-z0-9_]*' '%s' | sort -u | sed 's/^/-D/')",
                   targets[i], types, source);
        ok &= compile(source, options);
    }
    remove(types);
    return ok;
}

static bool compile_file(const char *name, const char *options)
{
    char source[512];
    kr__format(source, sizeof source, "%s/%s.cu", KR_TEST_CUDA, name);
    return compile(source, options);
}

static bool compile_all(void)
{
    static const char *const files[] = {"calls", "half", "math", "memory"};
    static const char *const options[] = {"-arch=sm_75", "-arch=sm_90", "-arch=sm_120", "-arch=sm_90 -G",
                                          "-arch=sm_80 -lineinfo"};
    static const char *const of_libraries[][2] = {
        {"algorithms", "-arch=sm_90"}, {"atomics", "-arch=sm_75"},  {"atomics", "-arch=sm_90"},
        {"bulk", "-arch=sm_90a"},      {"bulk", "-arch=sm_100a"},   {"groups", "-arch=sm_90a"},
        {"narrow", "-arch=sm_80"},     {"narrow", "-arch=sm_100a"}, {"random", "-arch=sm_120f"}};
    bool ok = true;
    for (size_t i = 0; i < KR_COUNT(files); i++)
        for (size_t k = 0; k < KR_COUNT(options); k++)
            ok &= compile_file(files[i], options[k]);
    for (size_t i = 0; i < KR_COUNT(of_libraries); i++)
        ok &= compile_file(of_libraries[i][0], of_libraries[i][1]);
    glob_t ops;
    if (glob(KR_TEST_KERNELS "/*.cu", 0, NULL, &ops))
        return false;
    for (size_t i = 0; i < ops.gl_pathc; i++)
        ok &= compile_op(ops.gl_pathv[i]);
    globfree(&ops);
    return ok;
}

int main(int argc, char **argv)
{
    nvcc = getenv("NVCC") ? getenv("NVCC") : "/usr/local/cuda/bin/nvcc";
    ptxas = getenv("PTXAS") ? getenv("PTXAS") : "/usr/local/cuda/bin/ptxas";
    if (!kr__file_exists(nvcc) || !kr__file_exists(ptxas)) {
        printf("no nvcc: skipped\n");
        return SKIPPED;
    }
    unsetenv("MALLOC_PERTURB_"); /* meson sets it, and nvcc's parts may fall over it */
    if (!mkdtemp(folder))
        return EXIT_FAILURE;
    bool ok = argc > 1 || compile_all();
    for (int i = 1; i < argc; i++)
        ok &= prove(argv[i], false);
    remove(folder);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
