/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/source.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_BYTES = 16 << 20, MOST_INCLUDES = 64 }; /* no source is longer; what else might be there can be */

typedef struct source {
    const char *folder; /* up to and with its last slash */
    size_t folder_bytes;
    kr__text text;
    kr__text *files;
    char *included[MOST_INCLUDES];
    size_t n_included;
    kr_error *err;
} source;

/* The name in a line `#include "name"`; NULL: it is no such line, or the name leads out of the folder. */
static const char *included_name(const char *line, const char *end, size_t *ret_bytes)
{
    static const char *const words[] = {"#", "include", "\""};
    for (size_t i = 0; i < KR_COUNT(words); i++) {
        while (line < end && (*line == ' ' || *line == '\t'))
            line++;
        const size_t n = strlen(words[i]);
        if ((size_t)(end - line) < n || memcmp(line, words[i], n) != 0)
            return NULL;
        line += n;
    }
    const char *quote = memchr(line, '"', (size_t)(end - line));
    if (!quote || quote == line || memchr(line, '/', (size_t)(quote - line)))
        return NULL;
    *ret_bytes = (size_t)(quote - line);
    return line;
}

static bool is_included(const source *s, const char *name)
{
    for (size_t i = 0; i < s->n_included; i++)
        if (strcmp(s->included[i], name) == 0)
            return true;
    return false;
}

static kr_status add_file(source *s, const char *path, const char *name);

/* false: the folder has no such file, and the line stays. */
static bool add_include(source *s, const char *name, kr_status *ret_status)
{
    kr__text path = {0};
    kr__text_add(&path, "%.*s%s", (int)s->folder_bytes, s->folder, name);
    const bool there = !path.failed && kr__file_exists(path.data);
    if (path.failed)
        *ret_status = KR_FAIL(s->err, KR_OUT_OF_HOST_MEMORY, "no host memory for the name of %s", name);
    else if (there && !is_included(s, name))
        *ret_status = add_file(s, path.data, name);
    kr__text_free(&path);
    return there;
}

static kr_status add_lines(source *s, const char *name, const char *text, size_t bytes)
{
    kr_status status = KR_OK;
    size_t line = 1;
    for (const char *at = text, *end = text + bytes, *next; at < end && !status; at = next, line++) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        next = newline ? newline + 1 : end;
        size_t n = 0;
        const char *wanted = included_name(at, next, &n);
        char *copy = wanted ? strndup(wanted, n) : NULL;
        if (wanted && !copy)
            status = KR_FAIL(s->err, KR_OUT_OF_HOST_MEMORY, "no host memory to read %s", name);
        else if (copy && add_include(s, copy, &status))
            kr__text_add(&s->text, "#line %zu \"%s\"\n", line + 1, name);
        else
            kr__text_add_bytes(&s->text, at, (size_t)(next - at));
        free(copy);
    }
    return status;
}

static kr_status add_file(source *s, const char *path, const char *name)
{
    char *text = NULL;
    size_t bytes = 0;
    if (s->n_included == MOST_INCLUDES)
        return KR_FAIL(s->err, KR_INVALID_ARGUMENT, "%s: more than %d files are included", name,
                       MOST_INCLUDES);
    if (!(s->included[s->n_included] = strdup(name)))
        return KR_FAIL(s->err, KR_OUT_OF_HOST_MEMORY, "no host memory to read %s", path);
    s->n_included++;
    kr_status status = kr__file_read_most(path, MOST_BYTES, &text, &bytes, s->err);
    if (!status && s->files)
        kr__text_add(s->files, " %s", path);
    if (!status && s->n_included > 1)
        kr__text_add(&s->text, "#line 1 \"%s\"\n", name);
    if (!status)
        status = add_lines(s, name, text, bytes);
    if (!status && bytes && text[bytes - 1] != '\n' && s->n_included > 1)
        kr__text_add(&s->text, "\n");
    free(text);
    return status;
}

kr_status kr__source_read(const char *path, char **ret_text, size_t *ret_bytes, kr__text *files,
                          kr_error *err)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    source s = {.folder = path, .folder_bytes = (size_t)(name - path), .files = files, .err = err};
    kr_status status = add_file(&s, path, name);
    kr__text_add_bytes(&s.text, "", 0);
    if (!status && s.text.failed)
        status = KR_FAIL(err, KR_OUT_OF_HOST_MEMORY, "no host memory to read %s", path);
    while (s.n_included)
        free(s.included[--s.n_included]);
    if (status)
        return kr__text_free(&s.text), status;
    *ret_text = s.text.data;
    *ret_bytes = s.text.bytes;
    return KR_OK;
}

/* ---- folders ---- */

static int is_cu(const struct dirent *file)
{
    const size_t bytes = strlen(file->d_name);
    return bytes > 3 && !strcmp(file->d_name + bytes - 3, ".cu");
}

/* Not alphasort: the order must not depend on the locale. */
static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

/* NULL: out of memory. */
static char **make_paths(const char *folder, struct dirent *const *files, size_t n)
{
    size_t bytes = n * sizeof(char *);
    for (size_t i = 0; i < n; i++)
        bytes += strlen(folder) + strlen(files[i]->d_name) + 2;
    char **paths = malloc(bytes);
    char *text = (char *)(paths + n);
    for (size_t i = 0; paths && i < n; i++) {
        paths[i] = text;
        text += sprintf(text, "%s/%s", folder, files[i]->d_name) + 1;
    }
    return paths;
}

kr_status kr__source_list(const char *folder, char ***ret_paths, size_t *ret_n, kr_error *err)
{
    struct dirent **files = NULL;
    const int n = scandir(folder, &files, is_cu, by_name);
    if (n < 0)
        return KR_FAIL_ERRNO(err, errno == ENOENT ? KR_NOT_FOUND : KR_IO, errno, "cannot read the folder %s",
                             folder);
    char **paths = n ? make_paths(folder, files, (size_t)n) : NULL;
    for (int i = 0; i < n; i++)
        free(files[i]);
    free(files);
    if (paths) {
        *ret_paths = paths;
        *ret_n = (size_t)n;
        return KR_OK;
    }
    if (n)
        return KR_FAIL(err, KR_OUT_OF_HOST_MEMORY, "no host memory for the names of %d files", n);
    KR_FAIL(err, KR_NOT_FOUND, "the folder %s has no .cu file", folder);
    kr__error_advice(err, "Give a folder of .cu files with descriptors");
    return KR_NOT_FOUND;
}
