/* SPDX-License-Identifier: Apache-2.0 */
#include "ptx/toolkit/toolkit.h"

#include <dlfcn.h>
#include <errno.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Where a library lies below a root: the folder itself, a toolkit, a folder of Python packages: one for all
 * since CUDA 13, its own before. */
static const char *const folders[] = {
    "", "/lib64", "/lib", "/targets/*/lib", "/nvidia/cu[0-9]*/lib", "/nvidia/%s/lib"};

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

/* A search that is going on. */
typedef struct search {
    const kr__toolkit_library *what;
    void *user;
    kr__text *tried;  /* a line for every place */
    int most_major;   /* 0: any */
    bool passed_over; /* was a newer one */
    kr_error *err;
} search;

static kr_status fail_moment(const search *s, int number, const char *place)
{
    return kr__toolkit_fail_moment(s->err, s->what, number, place);
}

/* Is it of a newer major than is wanted? */
static bool is_too_new(search *s, void *library, const char *file)
{
    int major, minor;
    if (!s->most_major || !s->what->version(library, &major, &minor) || major <= s->most_major)
        return false;
    kr__text_add(s->tried, "  %s: of CUDA %d.%d, newer than the driver\n", file, major, minor);
    return s->passed_over = true;
}

/* `file`: a path, or a soname for the dynamic linker to find. `flags` are further ones of dlopen. Never
 * closed again: NVRTC does not survive that. */
static kr_status try_file(search *s, const char *file, int flags)
{
    if (kr__file_is_strange(file)) {
        kr__text_add(s->tried, "  %s: not a regular file\n", file);
        return KR_NOT_FOUND;
    }
    void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL | flags);
    if (library)
        return is_too_new(s, library, file) ? KR_NOT_FOUND
                                            : s->what->take(s->user, library, file, s->tried, s->err);
    const char *why = dlerror();
    const int number = kr__toolkit_dlerror_moment(why);
    if (number)
        return fail_moment(s, number, file);
    if (why && !(flags & RTLD_NOLOAD))
        kr__text_add(s->tried, "  %s%s%s\n", strstr(why, file) ? "" : file, strstr(why, file) ? "" : ": ",
                     why);
    return KR_NOT_FOUND;
}

static int newest_first(const void *a, const void *b)
{
    return strverscmp(*(char *const *)b, *(char *const *)a);
}

/* glob's: goes on past a folder that cannot be read, unless the reason is of the moment. */
static int is_of_the_moment(const char *path, int number)
{
    (void)path;
    return kr__toolkit_moment(number);
}

/* Takes the first file that will do of those matching `pattern`. *ret_n: how many matched. */
static kr_status try_pattern(search *s, const char *pattern, size_t *ret_n)
{
    glob_t found = {0};
    kr_status status = KR_NOT_FOUND;
    const int result = glob(pattern, GLOB_NOSORT, is_of_the_moment, &found);
    if (result == GLOB_NOSPACE)
        status = fail_moment(s, ENOMEM, pattern);
    else if (result == GLOB_ABORTED)
        status = fail_moment(s, errno, pattern);
    else if (!result)
        qsort(found.gl_pathv, found.gl_pathc, sizeof *found.gl_pathv, newest_first);
    for (size_t i = 0; i < found.gl_pathc && status == KR_NOT_FOUND; i++)
        status = try_file(s, found.gl_pathv[i], 0);
    *ret_n = found.gl_pathc;
    globfree(&found);
    return status;
}

/* `root` is a pattern itself. */
static kr_status try_root(search *s, const kr__text *root)
{
    size_t n_files = 0;
    kr_status status = root->failed ? fail_moment(s, ENOMEM, "a folder") : KR_NOT_FOUND;
    for (size_t i = 0; i < KR_COUNT(folders) && status == KR_NOT_FOUND; i++) {
        kr__text pattern = {0};
        size_t n = 0;
        kr__text_add(&pattern, "%s", root->data);
        kr__text_add(&pattern, folders[i], s->what->package);
        kr__text_add(&pattern, "/%s*", s->what->file);
        status = pattern.failed ? fail_moment(s, ENOMEM, root->data) : try_pattern(s, pattern.data, &n);
        n_files += n;
        kr__text_free(&pattern);
    }
    if (!n_files && status == KR_NOT_FOUND)
        kr__text_add(s->tried, "  %s: no %s there or below\n", root->data, s->what->file);
    return status;
}

/* Unset variables name no place. */
static kr_status try_row(search *s, const struct root *row)
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
    const kr_status status = try_root(s, &root);
    kr__text_free(&root);
    return status;
}

static kr_status try_path(search *s, const char *path)
{
    struct stat facts;
    if (stat(path, &facts) || !S_ISDIR(facts.st_mode))
        return try_file(s, path, 0);
    kr__text root = {0};
    add_escaped(&root, path);
    const kr_status status = try_root(s, &root);
    kr__text_free(&root);
    return status;
}

static kr_status try_sonames(search *s, int flags)
{
    kr_status status = KR_NOT_FOUND;
    for (size_t i = 0; s->what->sonames[i] && status == KR_NOT_FOUND; i++)
        status = try_file(s, s->what->sonames[i], flags);
    return status;
}

/* KR_NOT_FOUND, and err as it was: none will do. */
static kr_status find(search *s, const char *path)
{
    if (path)
        return try_path(s, path);
    kr_status status = try_sonames(s, RTLD_NOLOAD);
    if (status == KR_NOT_FOUND)
        kr__text_add(s->tried, "  none is loaded already\n");
    for (size_t i = 0; i < KR_COUNT(roots) && status == KR_NOT_FOUND; i++)
        status = try_row(s, &roots[i]);
    return status == KR_NOT_FOUND ? try_sonames(s, 0) : status;
}

/* source: who gave the path, whose failure is the first line of `tried` and names it; NULL: nobody did. */
static kr_status not_found(const kr__toolkit_library *what, const char *source, const kr__text *tried,
                           kr_error *err)
{
    if (tried->failed)
        return KR_FAIL(err, KR_OUT_OF_HOST_MEMORY, "no host memory to say where %s was looked for",
                       what->name);
    const char *reason = tried->data + strspn(tried->data, " ");
    if (source)
        KR_FAIL(err, KR_NOT_ON_THIS_MACHINE, "%s is no usable %s: %.*s", source, what->name,
                (int)strcspn(reason, "\n"), reason);
    else
        KR_FAIL(err, KR_NOT_ON_THIS_MACHINE, "no usable %s on this machine", what->name);
    kr__error_log(err, tried->data);
    if (source)
        kr__error_advice(err, "Give the %s file of CUDA %s or later, or a folder that holds it.", what->file,
                         what->least);
    else
        kr__error_advice(err, "Install the Python package %s or a CUDA toolkit, or set %s to the %s file.",
                         what->wheel, what->variable, what->file);
    return KR_NOT_ON_THIS_MACHINE;
}

kr_status kr__toolkit_open(const kr__toolkit_library *what, int driver_version, const char *path, void *user,
                           kr_error *err)
{
    if (path && !path[0]) /* the dynamic linker would take the program itself */
        return KR_FAIL(err, KR_INVALID_ARGUMENT, "the path of %s is empty", what->name);
    char source[64] = "the path";
    const char *given = secure_getenv(what->variable);
    const bool is_named = path || (given && given[0]);
    if (!path && is_named) {
        path = given;
        kr__format(source, sizeof source, "what %s names", what->variable);
    }
    if (is_named && strcmp(path, "none") == 0) {
        KR_FAIL(err, KR_NOT_ON_THIS_MACHINE, "%s is switched off: %s is none", what->name,
                path == given ? what->variable : "the path");
        kr__error_advice(err, "Name the %s file of CUDA %s or later, or nothing.", what->file, what->least);
        return KR_NOT_ON_THIS_MACHINE;
    }
    kr__text tried = {0};
    search s = {what, user, &tried, driver_version / 1000, false, err};
    kr_status status = find(&s, path);
    if (status == KR_NOT_FOUND && s.passed_over) {
        s.most_major = 0;
        kr__text_free(&tried);
        status = find(&s, path);
    }
    if (status == KR_NOT_FOUND)
        status = not_found(what, is_named ? source : NULL, &tried, err);
    kr__text_free(&tried);
    return status;
}

/* ---- failures of the moment ---- */

static const int moments[] = {ENOMEM, EMFILE, ENFILE};

bool kr__toolkit_moment(int number)
{
    for (size_t i = 0; i < KR_COUNT(moments); i++)
        if (moments[i] == number)
            return true;
    return false;
}

int kr__toolkit_dlerror_moment(const char *why)
{
    for (size_t i = 0; i < KR_COUNT(moments) && why; i++) {
        const char *text = strerror(moments[i]);
        const size_t bytes = strlen(why), n = strlen(text);
        if (bytes >= n && strcmp(why + bytes - n, text) == 0)
            return moments[i];
    }
    return 0;
}

kr_status kr__toolkit_fail_moment(kr_error *err, const kr__toolkit_library *what, int number,
                                  const char *place)
{
    return KR_FAIL_ERRNO(err, number == ENOMEM ? KR_OUT_OF_HOST_MEMORY : KR_IO, number,
                         "looking for %s at %s", what->name, place);
}
