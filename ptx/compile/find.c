/* SPDX-License-Identifier: Apache-2.0 */
#include "ptx/compile/nvrtc.h"

#include <dlfcn.h>
#include <errno.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const sonames[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2", "libnvrtc.so"};

/* Where the library lies below a root: the folder itself, a toolkit, a folder of Python packages. */
static const char *const folders[] = {
    "", "/lib64", "/lib", "/targets/*/lib", "/nvidia/cu[0-9]*/lib", "/nvidia/cuda_nvrtc/lib"};

static const char exe_prefix[] = "the prefix of /proc/self/exe";

/* The roots, in order of preference: the value of `variable` (if any) followed by the pattern. */
static const struct root {
    const char *variable, *pattern;
} roots[] = {
    {"CUDA_HOME", ""},
    {"CUDA_PATH", ""},
    {"VIRTUAL_ENV", "/lib/python3*/site-packages"},
    {"CONDA_PREFIX", ""},
    {"CONDA_PREFIX", "/lib/python3*/site-packages"},
    {exe_prefix, "/lib/python3*/site-packages"},
    {"HOME", "/.local/lib/python3*/site-packages"},
    {NULL, "/usr/local/lib/python3*/*-packages"},
    {NULL, "/usr/lib/python3*/*-packages"},
    {NULL, "/usr/local/cuda"},
    {NULL, "/usr/local/cuda-*"},
    {NULL, "/opt/cuda*"},
};

/* /opt/venv/bin/python3: the prefix is /opt/venv. False where there is none. */
static bool read_exe_prefix(char *to, size_t bytes)
{
    const ssize_t n = readlink("/proc/self/exe", to, bytes - 1);
    to[n < 0 ? 0 : n] = '\0';
    for (int level = 0; level < 2; level++) {
        char *slash = strrchr(to, '/');
        if (!slash)
            return false;
        *slash = '\0';
    }
    return to[0] != '\0';
}

static void add_escaped(kr__text *pattern, const char *path)
{
    for (; *path; path++)
        kr__text_add(pattern, strchr("*?[]\\", *path) ? "\\%c" : "%c", *path);
}

static int newest_first(const void *a, const void *b)
{
    return strverscmp(*(char *const *)b, *(char *const *)a);
}

/* glob's: goes on past a folder that cannot be read, unless the reason is of the moment. */
static int is_of_the_moment(const char *path, int number)
{
    (void)path;
    return kr__nvrtc_moment(number);
}

/* Loads the first file that will do of those matching `pattern`. *ret_n: how many matched. */
static kr_status try_pattern(kr_nvrtc *nvrtc, const char *pattern, kr__text *tried, size_t *ret_n,
                             kr_error *err)
{
    glob_t found = {0};
    kr_status status = KR_NOT_FOUND;
    const int result = glob(pattern, GLOB_NOSORT, is_of_the_moment, &found);
    if (result == GLOB_NOSPACE)
        status = kr__nvrtc_fail_moment(err, ENOMEM, pattern);
    else if (result == GLOB_ABORTED)
        status = kr__nvrtc_fail_moment(err, errno, pattern);
    else if (!result)
        qsort(found.gl_pathv, found.gl_pathc, sizeof *found.gl_pathv, newest_first);
    for (size_t i = 0; i < found.gl_pathc && status == KR_NOT_FOUND; i++)
        status = kr__nvrtc_load(nvrtc, found.gl_pathv[i], 0, tried, err);
    *ret_n = found.gl_pathc;
    globfree(&found);
    return status;
}

/* `root` is a pattern itself. */
static kr_status try_root(kr_nvrtc *nvrtc, const kr__text *root, kr__text *tried, kr_error *err)
{
    size_t n_files = 0;
    kr_status status = root->failed ? kr__nvrtc_fail_moment(err, ENOMEM, "a folder") : KR_NOT_FOUND;
    for (size_t i = 0; i < KR_COUNT(folders) && status == KR_NOT_FOUND; i++) {
        kr__text pattern = {0};
        size_t n = 0;
        kr__text_add(&pattern, "%s%s/libnvrtc.so*", root->data, folders[i]);
        status = pattern.failed ? kr__nvrtc_fail_moment(err, ENOMEM, root->data)
                                : try_pattern(nvrtc, pattern.data, tried, &n, err);
        n_files += n;
        kr__text_free(&pattern);
    }
    if (!n_files && status == KR_NOT_FOUND)
        kr__text_add(tried, "  %s: no libnvrtc.so there or below\n", root->data);
    return status;
}

/* Unset variables name no place. */
static kr_status try_row(kr_nvrtc *nvrtc, const struct root *row, kr__text *tried, kr_error *err)
{
    char prefix[4096];
    const char *value = prefix;
    if (!row->variable)
        value = "";
    else if (row->variable != exe_prefix)
        value = secure_getenv(row->variable);
    else if (!read_exe_prefix(prefix, sizeof prefix))
        value = NULL;
    if (!value || (row->variable && !value[0]))
        return KR_NOT_FOUND;
    kr__text root = {0};
    add_escaped(&root, value);
    kr__text_add(&root, "%s", row->pattern);
    const kr_status status = try_root(nvrtc, &root, tried, err);
    kr__text_free(&root);
    return status;
}

static kr_status try_path(kr_nvrtc *nvrtc, const char *path, kr__text *tried, kr_error *err)
{
    struct stat facts;
    if (stat(path, &facts) || !S_ISDIR(facts.st_mode))
        return kr__nvrtc_load(nvrtc, path, 0, tried, err);
    kr__text root = {0};
    add_escaped(&root, path);
    const kr_status status = try_root(nvrtc, &root, tried, err);
    kr__text_free(&root);
    return status;
}

static kr_status try_sonames(kr_nvrtc *nvrtc, int flags, kr__text *tried, kr_error *err)
{
    kr_status status = KR_NOT_FOUND;
    for (size_t i = 0; i < KR_COUNT(sonames) && status == KR_NOT_FOUND; i++)
        status = kr__nvrtc_load(nvrtc, sonames[i], flags, tried, err);
    return status;
}

kr_status kr__nvrtc_find(kr_nvrtc *nvrtc, const char *path, kr__text *tried, kr_error *err)
{
    if (path)
        return try_path(nvrtc, path, tried, err);
    kr_status status = try_sonames(nvrtc, RTLD_NOLOAD, tried, err);
    if (status == KR_NOT_FOUND)
        kr__text_add(tried, "  none is loaded already\n");
    for (size_t i = 0; i < KR_COUNT(roots) && status == KR_NOT_FOUND; i++)
        status = try_row(nvrtc, &roots[i], tried, err);
    return status == KR_NOT_FOUND ? try_sonames(nvrtc, 0, tried, err) : status;
}
