/* SPDX-License-Identifier: Apache-2.0 */
#include "ptx/compile/nvrtc.h"

#include <dlfcn.h>
#include <errno.h>
#include <libgen.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

const char *kr__nvrtc_result_name(int result)
{
    switch (result) {
#define NVRTC_NAME_CASE(name, number) \
    case number:                      \
        return #name;
        NVRTC_RESULT_LIST(NVRTC_NAME_CASE)
#undef NVRTC_NAME_CASE
    }
    return "NVRTC_ERROR_?";
}

/* The first required function that the library lacks, or NULL. */
static const char *fill_table(nvrtc_table *table, void *library)
{
    const char *missing = NULL;
#define NVRTC_LOOK_UP(name, parameters) *(void **)&table->name = dlsym(library, #name);
#define NVRTC_LOOK_UP_REQUIRED(name, parameters) \
    NVRTC_LOOK_UP(name, parameters)              \
    if (!table->name && !missing)                \
        missing = #name;
    NVRTC_REQUIRED_LIST(NVRTC_LOOK_UP_REQUIRED)
    NVRTC_OPTIONAL_LIST(NVRTC_LOOK_UP)
#undef NVRTC_LOOK_UP
#undef NVRTC_LOOK_UP_REQUIRED
    return missing;
}

/* The first calls are made here, on the thread that opens: first used on a thread that has ended since, NVRTC
 * 10.2 crashed the process at exit. */
static nvrtcResult ask_facts(kr_nvrtc *nvrtc)
{
    const nvrtc_table *table = &nvrtc->table;
    kr_nvrtc_info *info = &nvrtc->info;
    int n = 0;
    nvrtcResult result = table->nvrtcVersion(&info->major, &info->minor);
    if (!result)
        result = table->nvrtcGetNumSupportedArchs(&n);
    if (result)
        return result;
    int *archs = kr__arena_alloc(&nvrtc->arena, (size_t)n * sizeof *archs);
    if (!archs)
        return NVRTC_ERROR_OUT_OF_MEMORY;
    info->archs = archs;
    info->n_archs = (size_t)n;
    return table->nvrtcGetSupportedArchs(archs);
}

/* The file that the library was mapped from, as /proc/self/maps has it: its path may lead to another by now.
 */
static void look_at(void *library, kr__file_facts *ret)
{
    struct link_map *map = NULL;
    struct stat facts;
    char start[32], *maps = NULL;
    size_t bytes;
    if (dlinfo(library, RTLD_DI_LINKMAP, &map) || kr__file_read("/proc/self/maps", &maps, &bytes, NULL))
        return;
    kr__format(start, sizeof start, "%lx-", (unsigned long)map->l_addr);
    for (char *line = maps, *end; (end = strchr(line, '\n')); line = end + 1) {
        *end = '\0';
        char *path = strncmp(line, start, strlen(start)) ? NULL : strchr(line, '/');
        if (path && !stat(path, &facts)) /* none ends in " (deleted)" */
            *ret = (kr__file_facts){true, facts.st_size, facts.st_mtim, facts.st_ctim};
    }
    free(maps);
}

/* NVRTC opens its builtins by bare name, which the program's search path need not lead to; it finds them when
 * they are loaded already. That they are not there matters only if NVRTC then says that it misses them. 0, or
 * an errno of the moment. */
static int open_builtins(kr_nvrtc *nvrtc, const char *folder, const char *file_name)
{
    const char *alternative = strncmp(file_name, "libnvrtc.alt", 12) == 0 ? ".alt" : "";
    int number = 0;
    kr__text file = {0};
    kr__text_add(&file, "%s/libnvrtc-builtins%s.so.%d.%d", folder, alternative, nvrtc->info.major,
                 nvrtc->info.minor);
    nvrtc->builtins = file.failed ? NULL : kr__arena_text(&nvrtc->arena, file.data, file.bytes);
    kr__text_free(&file);
    if (!nvrtc->builtins)
        return ENOMEM;
    void *builtins = dlopen(nvrtc->builtins, RTLD_NOW | RTLD_LOCAL);
    if (builtins) {
        look_at(builtins, &nvrtc->facts[1]);
    } else {
        const char *why = dlerror();
        number = kr__toolkit_dlerror_moment(why);
        if (!number && !(nvrtc->builtins_problem = kr__arena_text(&nvrtc->arena, why, strlen(why))))
            number = ENOMEM;
    }
    return number;
}

/* What lies beside the library: its real file, not the link it was opened by. 0, or an errno. */
static int look_around(kr_nvrtc *nvrtc, void *library)
{
    struct link_map *map = NULL;
    if (dlinfo(library, RTLD_DI_LINKMAP, &map))
        return ENOENT;
    errno = ENOMEM; /* realpath says otherwise */
    nvrtc->info.path = kr__arena_text(&nvrtc->arena, map->l_name, strlen(map->l_name));
    char *real = realpath(map->l_name, NULL), *again = real ? strdup(real) : NULL;
    int number = nvrtc->info.path && again ? 0 : errno;
    if (!number) {
        const char *folder = dirname(real);
        number = open_builtins(nvrtc, folder, basename(again));
        look_at(library, &nvrtc->facts[0]);
        if (!number && !kr__toolkit_include(folder, &nvrtc->arena, &nvrtc->info.include))
            number = ENOMEM;
        if (!number && nvrtc->info.include)
            nvrtc->info.include_version = kr__toolkit_headers_version(nvrtc->info.include);
    }
    free(again);
    free(real);
    return number;
}

static bool version_of(void *library, int *ret_major, int *ret_minor)
{
    nvrtcResult (*version)(int *, int *);
    *(void **)&version = dlsym(library, "nvrtcVersion");
    return version && !version(ret_major, ret_minor);
}

static const kr__toolkit_library what;

static kr_status take(void *user, void *library, const char *file, kr__text *tried, kr_error *err)
{
    kr_nvrtc *nvrtc = user;
    const char *missing = fill_table(&nvrtc->table, library);
    if (missing) {
        kr__text_add(tried, "  %s: has no %s: not NVRTC, or older than 11.2\n", file, missing);
        return KR_NOT_FOUND;
    }
    const nvrtcResult result = ask_facts(nvrtc);
    const int number = result == NVRTC_ERROR_OUT_OF_MEMORY ? ENOMEM
                       : result                            ? 0
                                                           : look_around(nvrtc, library);
    if (kr__toolkit_moment(number))
        return kr__toolkit_fail_moment(err, &what, number, file);
    if (result)
        kr__text_add(tried, "  %s: does not work: %s (%d)\n", file, kr__nvrtc_result_name(result), result);
    else if (number)
        kr__text_add(tried, "  %s: its own path cannot be told\n", file);
    return result || number ? KR_NOT_FOUND : KR_OK;
}

static const kr__toolkit_library what = {
    .name = "NVRTC",
    .file = "libnvrtc.so",
    .sonames =
        (const char *const[]){"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2", "libnvrtc.so", NULL},
    .package = "cuda_nvrtc",
    .wheel = "nvidia-cuda-nvrtc",
    .variable = "KREGISTRY_NVRTC",
    .least = "11.2",
    .version = version_of,
    .take = take,
};

kr_status kr_nvrtc_open_for(int driver_version, const char *path, kr_nvrtc **ret_nvrtc, kr_error *err)
{
    KR_REQUIRE(err, ret_nvrtc);
    kr_nvrtc *nvrtc = kr__alloc(1, sizeof *nvrtc, err);
    if (!nvrtc)
        return KR_OUT_OF_HOST_MEMORY;
    kr_status status = KR_OK;
    nvrtc->c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (!nvrtc->c_locale)
        status = KR_FAIL(err, KR_OUT_OF_HOST_MEMORY, "no host memory for a locale");
    else
        status = kr__toolkit_open(&what, driver_version, path, nvrtc, err);
    if (status)
        kr_nvrtc_close(&nvrtc);
    else
        *ret_nvrtc = nvrtc;
    return status;
}

kr_status kr_nvrtc_open(const char *path, kr_nvrtc **ret_nvrtc, kr_error *err)
{
    KR_REQUIRE(err, ret_nvrtc);
    return kr_nvrtc_open_for(0, path, ret_nvrtc, err);
}

void kr_nvrtc_close(kr_nvrtc **nvrtc)
{
    if (!nvrtc || !*nvrtc)
        return;
    if ((*nvrtc)->c_locale)
        freelocale((*nvrtc)->c_locale);
    kr__arena_free(&(*nvrtc)->arena);
    free(*nvrtc);
    *nvrtc = NULL;
}

kr_nvrtc_info kr_nvrtc_get_info(const kr_nvrtc *nvrtc)
{
    return nvrtc ? nvrtc->info : (kr_nvrtc_info){0};
}
