/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the result of a compile depends on, as one hash. Files that may be included are hashed whole: those
 * that any include line leads to in any folder that is searched, also where the preprocessor would leave it
 * out. What cannot be read off the text so (#include of a macro, options that name files, the time) has no
 * key, and is not kept.
 */
#include "ptx/compile/key.h"

#include <kregistry/version.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { KEPT_FORM = 2 }; /* grows with what is kept, and how */

void kr__key_add(keying *k, const void *data, size_t bytes)
{
    const uint64_t n = bytes;
    kr__sha256_add(&k->sha, &n, sizeof n);
    kr__sha256_add(&k->sha, data, bytes);
}

void kr__key_add_text(keying *k, const char *text)
{
    kr__key_add(k, text, strlen(text));
}

static void add_list(keying *k, const char *const *list, size_t n)
{
    kr__key_add(k, &n, sizeof n);
    for (size_t i = 0; i < n; i++)
        kr__key_add_text(k, list[i]);
}

/* ---- the compiler ---- */

/* Where its builtins are not beside it, NVRTC finds them by itself: nobody knows which. */
static void add_libraries(keying *k)
{
    const kr_nvrtc *nvrtc = k->job->nvrtc;
    kr__key_add_text(k, nvrtc->info.path);
    for (size_t i = 0; i < KR_COUNT(nvrtc->facts); i++) {
        const kr__file_facts *facts = &nvrtc->facts[i];
        kr__key_add(k, &facts->bytes, sizeof facts->bytes);
        kr__key_add(k, &facts->written, sizeof facts->written);
        kr__key_add(k, &facts->changed, sizeof facts->changed);
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
        kr__key_add_text(k, value ? names[i] : "");
        kr__key_add_text(k, value ? value : "");
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
    kr__key_add_text(k, here ? here : "");
    free(here);
}

/* ---- the whole ---- */

static void add_scanned_list(keying *k, const char *const *names, const char *const *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        kr__key_add_scanned(k, names ? names[i] : "", NULL, list[i], strlen(list[i]));
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
            kr__key_add_scanned(k, "", NULL, line.data, line.bytes);
        k->failed |= line.failed;
        kr__text_free(&line);
    }
}

bool kr__compile_key(const compile_job *job, uint8_t ret_key[KR__SHA256_BYTES])
{
    const kr_compile_options *given = &job->given;
    keying k = {.job = job};
    const int form = KEPT_FORM;
    kr__sha256_begin(&k.sha);
    kr__key_add(&k, &form, sizeof form);
    kr__key_add_text(&k, kr_version());
    kr__key_add(&k, &job->nvrtc->info.major, sizeof job->nvrtc->info.major);
    kr__key_add(&k, &job->nvrtc->info.minor, sizeof job->nvrtc->info.minor);
    add_libraries(&k);
    add_environment(&k);
    kr__key_add(&k, &given->kind, sizeof given->kind);
    kr__key_add_text(&k, job->target);
    kr__key_add_text(&k, job->name);
    kr__key_add_text(&k, job->source);
    add_options(&k);
    add_list(&k, given->name_expressions, given->n_name_expressions);
    add_list(&k, job->header_names, job->n_headers);
    add_list(&k, job->header_texts, job->n_headers);
    kr__key_add_scanned(&k, job->name, NULL, job->source, strlen(job->source));
    add_scanned_list(&k, job->header_names, job->header_texts, job->n_headers);
    add_scanned_options(&k);
    add_scanned_list(&k, NULL, given->name_expressions, given->n_name_expressions);
    kr__key_scan(&k);
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
