/* SPDX-License-Identifier: Apache-2.0 */
/* Texts that NVRTC reads, and where it may find more. */
#include "ptx/compile/key.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum {
    MOST_FILES = 4096,
    MOST_LOOKS = 1 << 18, /* for files */
    MOST_BYTES = 64 << 20 /* of all files */
};

/* A backslash at the end of a line goes on in the next: an include line may be written so. */
static char *joined(const char *data, size_t bytes)
{
    char *copy = malloc(bytes + 1), *to = copy;
    for (const char *at = data; copy && at < data + bytes;) {
        if (at[0] == '\\' && (at[1] == '\n' || (at[1] == '\r' && at[2] == '\n')))
            at += at[1] == '\n' ? 2 : 3;
        else
            *to++ = *at++;
    }
    if (copy)
        *to = '\0';
    return copy;
}

static char *folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? strndup(path, (size_t)(slash - path + 1)) : strdup("./");
}

void kr__key_add_scanned(keying *k, const char *path, char *place, const char *data, size_t bytes)
{
    scanned *texts = kr__grow(k->texts, k->n_texts, sizeof *texts);
    if (!texts) {
        free(place);
        k->failed = true;
        return;
    }
    k->texts = texts;
    const scanned added = {place, folder_of(path), joined(data, bytes), 0};
    texts[k->n_texts++] = added;
    k->failed |= !added.folder || !added.data || strlen(data) != bytes;
}

/* The folder's real path and the name: what is beside the file depends on the folder that it was found in,
 * not on where a link of it leads. */
static char *place_of(const char *path)
{
    kr__text place = {0};
    char *folder = folder_of(path), *real = folder ? realpath(folder, NULL) : NULL;
    if (real)
        kr__text_add(&place, "%s/%s", real, strrchr(path, '/') + 1);
    free(real);
    free(folder);
    if (place.failed)
        kr__text_free(&place);
    return place.data;
}

/* Where it is: its path and, the first time, its content. */
static void add_file(keying *k, const char *path)
{
    struct stat facts;
    if (stat(path, &facts)) {
        k->failed |= errno != ENOENT && errno != ENOTDIR && errno != EACCES;
        return;
    }
    kr__key_add_text(k, path);
    if (S_ISDIR(facts.st_mode))
        return;
    char *place = place_of(path), *data = NULL;
    size_t i = 0, bytes = 0;
    for (; place && i < k->n_texts; i++)
        if (k->texts[i].place && !strcmp(k->texts[i].place, place))
            break;
    kr__key_add(k, &i, sizeof i);
    if (place && i < k->n_texts) {
        free(place);
        return;
    }
    k->failed |= !place || k->n_files++ == MOST_FILES ||
                 kr__file_read_most(path, MOST_BYTES - k->file_bytes, &data, &bytes, NULL);
    if (k->failed) {
        free(place);
        return;
    }
    k->file_bytes += bytes;
    kr__key_add(k, data, bytes);
    kr__key_add_scanned(k, path, place, data, bytes);
    free(data);
}

static void add_named(keying *k, const char *folder, const char *name, size_t n)
{
    kr__text path = {0};
    k->failed |= k->n_looks++ == MOST_LOOKS;
    if (*name == '/')
        folder = "";
    else if (!*folder)
        k->failed = true;
    kr__text_add(&path, "%s%s%.*s", folder, *folder && folder[strlen(folder) - 1] != '/' ? "/" : "", (int)n,
                 name);
    k->failed |= path.failed;
    if (!k->failed)
        add_file(k, path.data);
    kr__text_free(&path);
}

bool kr__key_add_header(keying *k, const char *at, const char *folder)
{
    const char close = *at == '<' ? '>' : '"';
    const size_t n = *at == '<' || *at == '"' ? strcspn(at + 1, "<>\"\n()") : 0;
    if (!n || at[1 + n] != close)
        return false;
    add_named(k, folder, at + 1, n);
    for (size_t i = 0; i < k->job->n_options && !k->failed; i++) {
        const char *searched = kr__include_folder(k->job->options, i);
        if (searched)
            add_named(k, searched, at + 1, n);
    }
    return true;
}
