/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the result of a compile depends on, as one hash. Files that may be included are hashed whole: those
 * that any include line leads to in any folder that is searched, also where the preprocessor would leave it
 * out. What cannot be read off the text so (#include of a macro, options that name files, the time) has no
 * key, and is not kept.
 */
#include <kregistry/version.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ptx/compile/job.h"

enum {
    N_FIRST_WORDS = 2,
    KEPT_FORM = 2, /* grows with what is kept, and how */
    MOST_FILES = 4096,
    MOST_LOOKS = 1 << 18, /* for files */
    MOST_WORDS = 256,
    MOST_LINE = 4096,     /* before a question */
    MOST_BYTES = 64 << 20 /* of all files */
};

/* A text that NVRTC reads. */
typedef struct scanned {
    char *place;    /* of a file: its folder's real path and its name; else NULL */
    char *folder;   /* where "name" is looked for first */
    char *data;     /* without lines that go on in the next */
    size_t n_words; /* that it was looked at for */
} scanned;

/* What texts are looked at for: __has_include and macros of it, which ask for a header in parentheses; and
 * the words of a name that such a macro is given, which must be no macros themselves. */
typedef struct sought {
    char *text;
    bool asks;
} sought;

typedef struct keying {
    const compile_job *job;
    kr__sha256 sha;
    scanned *texts;
    sought *words;
    size_t n_texts, n_files, n_words, n_looks, file_bytes;
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

/* Where its builtins are not beside it, NVRTC finds them by itself: nobody knows which. */
static void add_libraries(keying *k)
{
    const kr_nvrtc *nvrtc = k->job->nvrtc;
    add_text(k, nvrtc->info.path);
    for (size_t i = 0; i < KR_COUNT(nvrtc->facts); i++) {
        const kr__file_facts *facts = &nvrtc->facts[i];
        add(k, &facts->bytes, sizeof facts->bytes);
        add(k, &facts->written, sizeof facts->written);
        add(k, &facts->changed, sizeof facts->changed);
        k->failed |= !facts->is_there;
    }
}

/* What NVRTC 13.0 reads of the environment, as far as it could change what comes out. */
static void add_environment(keying *k)
{
    static const char *const names[] = {
        "NVRTC_APPEND_FLAGS", "NVRTCWIZ",         "NV_NVVM_VERSION",    "NVVM_IR_VER_CHK",
        "EDG_BASE",           "EDG_MODULES_PATH", "DUMP_KNOBS_TO_FILE", "LLVM_OVERRIDE_PRODUCER"};
    for (size_t i = 0; i < KR_COUNT(names); i++) {
        const char *value = getenv(names[i]);
        add_text(k, value ? names[i] : "");
        add_text(k, value ? value : "");
    }
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

/* Options that write into the result where the compile ran, as LTO-IR has it always. */
static bool tells_place(const char *option)
{
    static const char *const words[] = {"-G", "--device-debug", "-lineinfo", "--generate-line-info"};
    for (size_t i = 0; i < KR_COUNT(words); i++)
        if (!strncmp(option, words[i], strlen(words[i])))
            return true;
    return false;
}

static void add_options(keying *k)
{
    bool is_told = k->job->given.kind == KR_IMAGE_LTOIR;
    add_list(k, k->job->options, k->job->n_options);
    for (size_t i = 0; i < k->job->n_options; i++) {
        k->failed |= names_file(k->job, k->job->options[i]);
        is_told |= tells_place(k->job->options[i]);
    }
    char *here = is_told ? get_current_dir_name() : NULL;
    k->failed |= is_told && !here;
    add_text(k, here ? here : "");
    free(here);
}

/* ---- texts ---- */

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

/* `data` of `path`, to be scanned; `place` becomes the list's. */
static void add_scanned(keying *k, const char *path, char *place, const char *data, size_t bytes)
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
    add_text(k, path);
    if (S_ISDIR(facts.st_mode))
        return;
    char *place = place_of(path), *data = NULL;
    size_t i = 0, bytes = 0;
    for (; place && i < k->n_texts; i++)
        if (k->texts[i].place && !strcmp(k->texts[i].place, place))
            break;
    add(k, &i, sizeof i);
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
    add(k, data, bytes);
    add_scanned(k, path, place, data, bytes);
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

/* ---- what a text asks for ---- */

static const char blanks[] = " \t\v\f\r";

static bool is_of_word(char c)
{
    return c == '_' || (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

/* The next `word` from `at` that is no part of a longer one, or NULL. */
static const char *find_word(const char *from, const char *at, const char *word)
{
    const size_t n = strlen(word);
    for (; (at = strstr(at, word)); at++)
        if ((at == from || !is_of_word(at[-1])) && !is_of_word(at[n]))
            return at;
    return NULL;
}

static const char *back_over_blanks(const char *from, const char *at)
{
    while (at > from && strchr(blanks, at[-1]))
        at--;
    return at;
}

static bool ends(const char *from, const char *at, const char *word)
{
    const size_t n = strlen(word);
    return (size_t)(at - from) >= n && !strncmp(at - n, word, n) &&
           (!is_of_word(*word) || (size_t)(at - from) == n || !is_of_word(at[-(ptrdiff_t)n - 1]));
}

/* "#include" that names its header by a macro has no key, nor has one with a comment within. */
static void scan_includes(keying *k, const char *data, const char *folder)
{
    for (const char *at = data; !k->failed && (at = strstr(at, "include"));) {
        const char *before = back_over_blanks(data, at);
        at += strlen("include");
        k->failed |= ends(data, before, "*/");
        if (!ends(data, before, "#"))
            continue;
        at += strncmp(at, "_next", 5) ? 0 : 5;
        at += strspn(at, blanks);
        k->failed |= !add_header(k, at, folder);
    }
}

static bool add_word(keying *k, const char *text, size_t n, bool asks)
{
    for (size_t i = 0; i < k->n_words; i++)
        if (k->words[i].asks == asks && !strncmp(k->words[i].text, text, n) && !k->words[i].text[n])
            return true;
    sought *words = kr__grow(k->words, k->n_words, sizeof *words);
    k->words = words ? words : k->words;
    char *copy = words && k->n_words < MOST_WORDS ? strndup(text, n) : NULL;
    if (copy)
        words[k->n_words++] = (sought){copy, asks};
    return copy;
}

static size_t word_bytes(const char *at)
{
    size_t n = 0;
    while (is_of_word(at[n]))
        n++;
    return n;
}

/* "#define NAME(X) ... QUESTION(X)", where `at` is behind QUESTION: NAME is a question too. */
static bool add_question(keying *k, const char *name, const char *at)
{
    name += strspn(name, blanks);
    const size_t n = word_bytes(name);
    const char *argument = name + n + 1;
    const size_t n_argument = name[n] == '(' ? word_bytes(argument) : 0;
    return n_argument && argument[n_argument] == ')' && *at == '(' &&
           !strncmp(at + 1, argument, n_argument) && at[1 + n_argument] == ')' && add_word(k, name, n, true);
}

/* A macro is given <name> as words and marks: other blanks come out, and macros in it are replaced. */
static bool add_name(keying *k, const char *at)
{
    if (*at++ == '"')
        return true;
    for (size_t n; *at != '>'; at += n ? n : 1) {
        n = word_bytes(at);
        if (n ? !add_word(k, at, n, false) : !strchr("./-+", *at))
            return false;
    }
    return true;
}

/* Is a word at [at, behind) no macro, a question about a header that is named there, or no question? */
static bool ask(keying *k, size_t which, const char *data, const char *at, const char *folder)
{
    static const char *const no_questions[] = {"define", "undef", "ifdef", "ifndef", "defined"};
    const char *before = back_over_blanks(data, at), *line = at, *behind = at + strlen(k->words[which].text);
    if (!k->words[which].asks)
        return !ends(data, before, "define");
    if (before > data && before[-1] == '(' && ends(data, back_over_blanks(data, before - 1), "defined"))
        return true;
    for (size_t i = 0; i < KR_COUNT(no_questions); i++)
        if (ends(data, before, no_questions[i]))
            return true;
    while (line > data && line[-1] != '\n' && at - line < MOST_LINE)
        line--;
    if (at - line == MOST_LINE || memmem(line, (size_t)(at - line), "*/", 2))
        return false;
    behind += strspn(behind, blanks);
    for (; (line = memmem(line, (size_t)(at - line), "define", 6)); line += 6)
        if (!is_of_word(line[6]))
            return add_question(k, line + 6, behind);
    if (*behind != '(')
        return false;
    behind += 1 + strspn(behind + 1, blanks);
    return add_header(k, behind, folder) && (which < N_FIRST_WORDS || add_name(k, behind));
}

static void scan_words(keying *k, const scanned *s)
{
    for (size_t i = s->n_words; i < k->n_words; i++) {
        const size_t n = strlen(k->words[i].text);
        for (const char *at = s->data; !k->failed && (at = find_word(s->data, at, k->words[i].text)); at += n)
            k->failed |= !ask(k, i, s->data, at, s->folder);
    }
}

/* Marks that are spelled otherwise could hide an include line; the time is another each time. */
static bool is_unknowable(const char *data)
{
    static const char *const words[] = {"%:", "?\?=", "?\?/", "__DATE__", "__TIME__"};
    for (size_t i = 0; i < KR_COUNT(words); i++)
        if (strstr(data, words[i]))
            return true;
    return false;
}

/* A text may lead to more texts, and to words that others were not looked at for. */
static void scan(keying *k)
{
    size_t n_words;
    do {
        n_words = k->n_words;
        for (size_t i = 0; i < k->n_texts && !k->failed; i++) {
            const scanned s = k->texts[i];
            if (!s.n_words) {
                k->failed |= is_unknowable(s.data);
                scan_includes(k, s.data, s.folder);
            }
            scan_words(k, &s);
            k->texts[i].n_words = k->n_words;
        }
    } while (k->n_words > n_words && !k->failed);
}

/* ---- the whole ---- */

static void add_scanned_list(keying *k, const char *const *names, const char *const *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        add_scanned(k, names ? names[i] : "", NULL, list[i], strlen(list[i]));
}

/* As the definitions that some of them are. */
static void add_scanned_options(keying *k)
{
    static const char *const defines[] = {"--define-macro=", "-D"};
    for (size_t i = 0; i < k->job->n_options; i++) {
        const char *option = k->job->options[i];
        kr__text line = {0};
        for (size_t j = 0; j < KR_COUNT(defines); j++)
            if (!strncmp(option, defines[j], strlen(defines[j])))
                option += strlen(defines[j]);
        kr__text_add(&line, "#define %s", option);
        if (!line.failed)
            add_scanned(k, "", NULL, line.data, line.bytes);
        k->failed |= line.failed;
        kr__text_free(&line);
    }
}

static void add_first_words(keying *k)
{
    static const char *const words[N_FIRST_WORDS] = {"__has_include", "__has_include_next"};
    for (size_t i = 0; i < KR_COUNT(words); i++)
        k->failed |= !add_word(k, words[i], strlen(words[i]), true);
}

bool kr__compile_key(const compile_job *job, uint8_t ret_key[KR__SHA256_BYTES])
{
    const kr_compile_options *given = &job->given;
    keying k = {.job = job};
    const int form = KEPT_FORM;
    kr__sha256_begin(&k.sha);
    add(&k, &form, sizeof form);
    add_text(&k, kr_version());
    add(&k, &job->nvrtc->info.major, sizeof job->nvrtc->info.major);
    add(&k, &job->nvrtc->info.minor, sizeof job->nvrtc->info.minor);
    add_libraries(&k);
    add_environment(&k);
    add(&k, &given->kind, sizeof given->kind);
    add_text(&k, job->target);
    add_text(&k, job->name);
    add_text(&k, job->source);
    add_options(&k);
    add_list(&k, given->name_expressions, given->n_name_expressions);
    add_list(&k, job->header_names, job->n_headers);
    add_list(&k, job->header_texts, job->n_headers);
    add_first_words(&k);
    add_scanned(&k, job->name, NULL, job->source, strlen(job->source));
    add_scanned_list(&k, job->header_names, job->header_texts, job->n_headers);
    add_scanned_options(&k);
    add_scanned_list(&k, NULL, given->name_expressions, given->n_name_expressions);
    if (!k.failed)
        scan(&k);
    kr__sha256_end(&k.sha, ret_key);
    for (size_t i = 0; i < k.n_texts; i++) {
        free(k.texts[i].place);
        free(k.texts[i].folder);
        free(k.texts[i].data);
    }
    for (size_t i = 0; i < k.n_words; i++)
        free(k.words[i].text);
    free(k.texts);
    free(k.words);
    return !k.failed;
}
