/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the result of a compile depends on, as one hash. Files that may be included are hashed whole: those
 * that any include line leads to in any folder that is searched, also where the preprocessor would leave it
 * out. What cannot be read off the text so (#include of a macro, options that name files) has no key, and is
 * not kept.
 */
#include <kregistry/version.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "ptx/compile/job.h"

enum {
    KEPT_FORM = 1, /* grows with what is kept, and how */
    MOST_FILES = 4096,
    MOST_FILE_BYTES = 16 << 20
};

typedef struct keying {
    const compile_job *job;
    kr__sha256 sha;
    char **files; /* real paths that were hashed */
    size_t n_files;
    bool failed; /* no key */
} keying;

static void add(keying *k, const void *data, size_t bytes)
{
    const uint64_t n = bytes;
    kr__sha256_add(&k->sha, &n, sizeof n);
    kr__sha256_add(&k->sha, data, bytes);
}

static void add_text(keying *k, const char *text)
{
    add(k, text, strlen(text));
}

static void add_list(keying *k, const char *const *list, size_t n)
{
    add(k, &n, sizeof n);
    for (size_t i = 0; i < n; i++)
        add_text(k, list[i]);
}

/* ---- the compiler ---- */

/* A library is too long to be read each time: it is the one of that place, length and time. False: it is not
 * there. */
static bool add_library(keying *k, const char *path)
{
    struct stat facts;
    if (!path || stat(path, &facts))
        return false;
    add_text(k, path);
    add(k, &facts.st_size, sizeof facts.st_size);
    add(k, &facts.st_mtim, sizeof facts.st_mtim);
    return true;
}

static bool is_given(const compile_job *job, const char *header)
{
    for (size_t i = 0; i < job->n_headers; i++)
        if (!strcmp(job->header_names[i], header))
            return true;
    return false;
}

/* Options that have NVRTC read or write files besides those of include lines. */
static bool names_file(const compile_job *job, const char *option)
{
    static const char pre_include[] = "--pre-include=";
    static const char *const words[] = {"pch",          "time",  "pre-include", "-include",
                                        "options-file", "-optf", "trace"};
    if (!strncmp(option, pre_include, sizeof pre_include - 1))
        return !is_given(job, option + sizeof pre_include - 1);
    for (size_t i = 0; i < KR_COUNT(words); i++)
        if (strstr(option, words[i]) && strncmp(option, "--include-path", 14) && strncmp(option, "-I", 2) &&
            strncmp(option, "-D", 2))
            return true;
    return false;
}

/* ---- include lines ---- */

static void add_includes(keying *k, const char *text, size_t bytes, const char *folder);

static void add_file(keying *k, const char *path)
{
    char *real = realpath(path, NULL), *data = NULL;
    size_t bytes;
    if (!real) {
        k->failed |= errno == ENOMEM;
        return;
    }
    for (size_t i = 0; i < k->n_files; i++)
        if (!strcmp(k->files[i], real)) {
            free(real);
            return;
        }
    char **files = kr__grow(k->files, k->n_files, sizeof *files);
    k->files = files ? files : k->files;
    k->failed |=
        !files || k->n_files == MOST_FILES || kr__file_read_most(path, MOST_FILE_BYTES, &data, &bytes, NULL);
    if (k->failed) {
        free(real);
        return;
    }
    k->files[k->n_files++] = real;
    add_text(k, path);
    add(k, data, bytes);
    *strrchr(real, '/') = '\0';
    char *folder = strdup(real[0] ? real : "/");
    real[strlen(real)] = '/';
    if (folder)
        add_includes(k, data, bytes, folder);
    k->failed |= !folder;
    free(folder);
    free(data);
}

static void add_named(keying *k, const char *folder, const char *name, size_t n)
{
    kr__text path = {0};
    if (*name == '/')
        kr__text_add(&path, "%.*s", (int)n, name);
    else
        kr__text_add(&path, "%s/%.*s", folder, (int)n, name);
    if (path.failed)
        k->failed = true;
    else if (kr__file_exists(path.data))
        add_file(k, path.data);
    kr__text_free(&path);
}

/* <name> or "name": in every folder that is searched. False: no such thing begins there. */
static bool add_header(keying *k, const char *at, const char *folder)
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

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

/* Does the line that ends at `end` define a macro? */
static bool defines(const char *text, const char *end)
{
    const char *line = end;
    while (line > text && line[-1] != '\n')
        line--;
    const char *word = strstr(line, "define");
    return word && word < end;
}

/* A directive of "#include" or "__has_include" that names its header by a macro has no key, except where that
 * is a macro's own parameter: then its callers name the header, in parentheses. */
static void add_include(keying *k, const char *text, const char *word, const char *folder)
{
    static const char asks[] = "__has_";
    const char *before = word, *at = word + strlen("include");
    while (before > text && is_blank(before[-1]))
        before--;
    const bool is_directive = before > text && before[-1] == '#';
    const bool is_question =
        word - text >= (ptrdiff_t)strlen(asks) && !strncmp(word - strlen(asks), asks, strlen(asks));
    if (before - text >= 2 && before[-1] == '/' && before[-2] == '*')
        k->failed = true; /* a comment may stand between */
    if (!is_directive && !is_question)
        return;
    at += strncmp(at, "_next", 5) ? 0 : 5;
    while (is_blank(*at) || (is_question && *at == '('))
        at++;
    const bool is_asked = is_directive || (at[-1] == '(' && !defines(text, word));
    if (!add_header(k, at, folder))
        k->failed |= is_asked;
}

/* Words that go over a line's end, and marks that are spelled otherwise, could hide an include line. */
static bool may_hide(const char *text)
{
    for (const char *at = text; (at = strstr(at, "\\\n")); at += 2)
        if (at > text && (at[-1] == '#' || (at[-1] >= 'a' && at[-1] <= 'z')) && at[2] >= 'a' && at[2] <= 'z')
            return true;
    return strstr(text, "%:") || strstr(text, "?\?=") || strstr(text, "?\?/");
}

static void add_includes(keying *k, const char *text, size_t bytes, const char *folder)
{
    static const char *const passed[] = {"(<", "(\""};
    k->failed |= strlen(text) != bytes || may_hide(text);
    for (const char *at = text; !k->failed && (at = strstr(at, "include")); at++)
        add_include(k, text, at, folder);
    for (size_t i = 0; i < KR_COUNT(passed); i++)
        for (const char *at = text; !k->failed && (at = strstr(at, passed[i])); at++)
            add_header(k, at + 1, folder);
}

/* ---- the whole ---- */

bool kr__compile_key(const compile_job *job, uint8_t ret_key[KR__SHA256_BYTES])
{
    const kr_compile_options *given = &job->given;
    keying k = {.job = job};
    const int form = KEPT_FORM;
    const char *slash = strrchr(job->name, '/');
    char *folder = slash ? strndup(job->name, (size_t)(slash - job->name + 1)) : strdup(".");
    kr__sha256_begin(&k.sha);
    k.failed = !folder;
    add(&k, &form, sizeof form);
    add_text(&k, kr_version());
    add(&k, &job->nvrtc->info.major, sizeof job->nvrtc->info.major);
    add(&k, &job->nvrtc->info.minor, sizeof job->nvrtc->info.minor);
    k.failed |= !add_library(&k, job->nvrtc->info.path);
    add_library(&k, job->nvrtc->builtins); /* without it NVRTC compiles nothing */
    add(&k, &given->kind, sizeof given->kind);
    add_text(&k, job->target);
    add_text(&k, job->name);
    add_text(&k, job->source);
    add_list(&k, job->options, job->n_options);
    add_list(&k, given->name_expressions, given->n_name_expressions);
    add_list(&k, job->header_names, job->n_headers);
    add_list(&k, job->header_texts, job->n_headers);
    for (size_t i = 0; i < job->n_options; i++)
        k.failed |= names_file(job, job->options[i]);
    if (!k.failed)
        add_includes(&k, job->source, strlen(job->source), folder);
    for (size_t i = 0; i < job->n_headers && !k.failed; i++)
        add_includes(&k, job->header_texts[i], strlen(job->header_texts[i]), folder);
    kr__sha256_end(&k.sha, ret_key);
    for (size_t i = 0; i < k.n_files; i++)
        free(k.files[i]);
    free(k.files);
    free(folder);
    return !k.failed;
}
