/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/source.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* No source is longer; what else might be there can be. */
enum { MOST_BYTES = 16 << 20, MOST_HEADERS = 64 };

typedef struct source {
    const char *folder; /* up to and with its last slash */
    size_t folder_bytes;
    kr__text *files;
    char *names[MOST_HEADERS], *texts[MOST_HEADERS];
    size_t n_headers;
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

static bool is_there(const source *s, const char *name, const char *path)
{
    struct stat facts;
    for (size_t i = 0; i < s->n_headers; i++)
        if (strcmp(s->names[i], name) == 0)
            return false; /* already read */
    return stat(path, &facts) == 0 && S_ISREG(facts.st_mode);
}

static kr_status read_text(source *s, const char *path, char **ret_text, size_t *ret_bytes)
{
    const kr_status status = kr__file_read_most(path, MOST_BYTES, ret_text, ret_bytes, s->err);
    if (!status && s->files)
        kr__text_add(s->files, " %s", path);
    return status;
}

/* Takes name. */
static kr_status add_header(source *s, char *name)
{
    kr__text path = {0};
    kr_status status = KR_OK;
    char *text = NULL;
    size_t bytes = 0;
    kr__text_add(&path, "%.*s%s", (int)s->folder_bytes, s->folder, name);
    if (path.failed)
        status = KR_FAIL(s->err, KR_OUT_OF_HOST_MEMORY, "no host memory for the name of %s", name);
    else if (is_there(s, name, path.data)) {
        if (s->n_headers == MOST_HEADERS)
            status = KR_FAIL(s->err, KR_INVALID_ARGUMENT, "%s: more than %d files are included", name,
                             MOST_HEADERS);
        else
            status = read_text(s, path.data, &text, &bytes);
        if (!status && strlen(text) < bytes)
            status = KR_FAIL(s->err, KR_INVALID_ARGUMENT, "%s: the byte at %zu is zero; it is no source text",
                             name, strlen(text));
        else if (!status && text && strncmp(text, "\xef\xbb\xbf", 3) == 0)
            status = KR_FAIL(
                s->err, KR_INVALID_ARGUMENT,
                "%s:1: the file begins with a byte-order mark (EF BB BF): save it as UTF-8 without one",
                name);
    }
    kr__text_free(&path);
    if (status || !text) {
        free(text);
        free(name);
        return status;
    }
    s->names[s->n_headers] = name;
    s->texts[s->n_headers++] = text;
    return KR_OK;
}

static kr_status add_headers_of(source *s, const char *text, size_t bytes)
{
    kr_status status = KR_OK;
    for (const char *at = text, *end = text + bytes, *next; at < end && !status; at = next) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        size_t n = 0;
        next = newline ? newline + 1 : end;
        const char *wanted = included_name(at, next, &n);
        if (!wanted)
            continue;
        char *name = strndup(wanted, n);
        status = name ? add_header(s, name)
                      : KR_FAIL(s->err, KR_OUT_OF_HOST_MEMORY, "no host memory to read what is included");
    }
    return status;
}

kr_status kr__op_read(const char *path, kr__op_def **ret_def, kr__text *files, kr_error *err)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    source s = {.folder = path, .folder_bytes = (size_t)(name - path), .files = files, .err = err};
    kr__op_def *def = NULL;
    char *text = NULL;
    size_t bytes = 0;
    kr_status status = read_text(&s, path, &text, &bytes);
    if (!status)
        status = kr__op_parse(name, text, bytes, &def, err);
    if (!status)
        status = add_headers_of(&s, text, bytes);
    for (size_t i = 0; i < s.n_headers && !status; i++) /* which grow meanwhile */
        status = add_headers_of(&s, s.texts[i], strlen(s.texts[i]));
    if (!status)
        status = kr__op_set_headers(
            def, &(kr__headers){s.n_headers, (const char *const *)s.names, (const char *const *)s.texts},
            err);
    while (s.n_headers) {
        free(s.names[--s.n_headers]);
        free(s.texts[s.n_headers]);
    }
    free(text);
    if (status)
        kr__op_free(&def);
    else
        *ret_def = def;
    return status;
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

/* Of all but the folders, whatever they are called. NULL: out of memory. */
static char **make_paths(const char *folder, struct dirent *const *files, size_t *n)
{
    size_t bytes = *n * sizeof(char *), n_taken = 0;
    for (size_t i = 0; i < *n; i++)
        bytes += strlen(folder) + strlen(files[i]->d_name) + 2;
    char **paths = malloc(bytes ? bytes : 1);
    if (!paths)
        return NULL;
    char *text = (char *)(paths + *n);
    for (size_t i = 0; i < *n; i++) {
        struct stat facts;
        const size_t room = strlen(folder) + strlen(files[i]->d_name) + 2;
        kr__format(text, room, "%s/%s", folder, files[i]->d_name);
        if (stat(text, &facts) == 0 && S_ISDIR(facts.st_mode))
            continue;
        paths[n_taken++] = text;
        text += room;
    }
    *n = n_taken;
    return paths;
}

kr_status kr__source_list(const char *folder, char ***ret_paths, size_t *ret_n, kr_error *err)
{
    struct dirent **files = NULL;
    const int n = scandir(folder, &files, is_cu, by_name);
    if (n < 0)
        return KR_FAIL_ERRNO(err, errno == ENOENT ? KR_NOT_FOUND : KR_IO, errno, "cannot read the folder %s",
                             folder);
    size_t n_paths = (size_t)n;
    char **paths = make_paths(folder, files, &n_paths);
    for (int i = 0; i < n; i++)
        free(files[i]);
    free(files);
    if (!paths)
        return KR_FAIL(err, KR_OUT_OF_HOST_MEMORY, "no host memory for the names of %d files", n);
    if (n_paths) {
        *ret_paths = paths;
        *ret_n = n_paths;
        return KR_OK;
    }
    free(paths);
    KR_FAIL(err, KR_NOT_FOUND, "the folder %s has no .cu file", folder);
    kr__error_advice(err, "Give a folder of .cu files with descriptors.");
    return KR_NOT_FOUND;
}
