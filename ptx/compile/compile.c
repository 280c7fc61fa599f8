/* SPDX-License-Identifier: Apache-2.0 */
#include "ptx/cache/cache.h"
#include "ptx/compile/job.h"
#include "ptx/image/image.h"
#include "runtime/internal.h"

#include <stdlib.h>
#include <string.h>

static void *job_alloc(compile_job *job, size_t bytes)
{
    void *memory = kr__arena_alloc(&job->arena, bytes ? bytes : 1);
    if (!memory)
        KR_FAIL(job->err, KR_OUT_OF_HOST_MEMORY, "cannot allocate %zu bytes of host memory to compile %s",
                bytes, job->name);
    return memory;
}

/* Calls a function of NVRTC with the job's program; leaves with its failure. */
#define NVRTC_TRY(job, function, ...)                                          \
    do {                                                                       \
        const nvrtcResult result_ = (job)->nvrtc->table.function(__VA_ARGS__); \
        if (result_)                                                           \
            return kr__nvrtc_failed((job), result_, #function);                \
    } while (0)

/* ---- before ---- */

static bool is_option(const char *option, const char *name)
{
    const size_t n = strlen(name);
    return strncmp(option, name, n) == 0 && (!option[n] || option[n] == '=');
}

static bool gives_option(const kr_compile_options *given, const char *name, const char *short_name)
{
    for (size_t i = 0; i < given->n_options; i++)
        if (is_option(given->options[i], name) || is_option(given->options[i], short_name))
            return true;
    return false;
}

const char *kr__include_folder(const char *const *options, size_t i)
{
    const char *option = options[i];
    if (strncmp(option, "-I", 2) == 0 && option[2])
        return option[2] == '=' ? option + 3 : option + 2 + strspn(option + 2, " ");
    if (strncmp(option, "--include-path=", 15) == 0)
        return option + 15;
    const char *before = i ? options[i - 1] : "";
    return strcmp(before, "-I") == 0 || strcmp(before, "--include-path") == 0 ? option : NULL;
}

/* NVRTC lists numbers; the letters came with CUDA 12.0 ('a') and 12.9 ('f'). */
bool kr__nvrtc_knows(const int *archs, size_t n_archs, int version, kr_cc arch)
{
    const int least = arch.suffix == 'a' ? 12000 : arch.suffix == 'f' ? 12090 : 0;
    for (size_t i = 0; i < n_archs && version >= least; i++)
        if (archs[i] == arch.major * 10 + arch.minor)
            return true;
    return false;
}

static kr_status check_lists(const compile_job *job)
{
    const kr_compile_options *given = &job->given;
    const struct {
        const char *name;
        const char *const *list;
        size_t n;
    } lists[] = {
        {"options", given->options, given->n_options},
        {"name_expressions", given->name_expressions, given->n_name_expressions},
        {"header_names", given->header_names, given->n_headers},
        {"header_texts", given->header_texts, given->n_headers},
    };
    kr_status status = KR_OK;
    for (size_t i = 0; i < KR_COUNT(lists) && !status; i++)
        status = kr__require_list(job->err, lists[i].name, lists[i].list, lists[i].n);
    return status;
}

/* NVRTC reads options without the blanks around them; so does who looks at them here. */
static kr_status trim_options(compile_job *job)
{
    static const char blanks[] = " \t\n\v\f\r";
    const size_t n = job->given.n_options;
    const char **trimmed = job_alloc(job, n * sizeof *trimmed);
    for (size_t i = 0; i < n && trimmed; i++) {
        const char *option = job->given.options[i] + strspn(job->given.options[i], blanks);
        size_t bytes = strlen(option);
        while (bytes && strchr(blanks, option[bytes - 1]))
            bytes--;
        if (!(trimmed[i] = kr__arena_text(&job->arena, option, bytes)))
            return KR_FAIL(job->err, KR_OUT_OF_HOST_MEMORY, "no host memory for the options of %s",
                           job->name);
    }
    job->given.options = trimmed;
    return trimmed ? KR_OK : KR_OUT_OF_HOST_MEMORY;
}

static kr_status check_call(const compile_job *job)
{
    const kr_compile_options *given = &job->given;
    if ((unsigned)given->kind > KR_IMAGE_LTOIR)
        return KR_FAIL(job->err, KR_INVALID_ARGUMENT, "%d is no kind of image", (int)given->kind);
    if (gives_option(given, "--gpu-architecture", "-arch")) {
        KR_FAIL(job->err, KR_INVALID_ARGUMENT, "an option gives the arch, beside %s", job->target);
        kr__error_advice(job->err, "Leave the option out: the arch is given already.");
        return KR_INVALID_ARGUMENT;
    }
    if (given->kind == KR_IMAGE_LTOIR && !job->nvrtc->table.nvrtcGetLTOIR) {
        KR_FAIL(job->err, KR_NOT_ON_THIS_MACHINE, "NVRTC %d.%d (%s) has no nvrtcGetLTOIR",
                job->nvrtc->info.major, job->nvrtc->info.minor, job->nvrtc->info.path);
        kr__error_advice(job->err, "Use NVRTC 12.0 or later.");
        return KR_NOT_ON_THIS_MACHINE;
    }
    const kr_nvrtc_info *info = &job->nvrtc->info;
    return kr__nvrtc_knows(info->archs, info->n_archs, info->major * 1000 + info->minor * 10,
                           job->compiled.arch)
               ? KR_OK
               : kr__arch_unknown(job);
}

static const char *printed(compile_job *job, const char *before, const char *middle, const char *after)
{
    kr__text text = {0};
    kr__text_add(&text, "%s%s%s", before, middle, after);
    const char *copy = text.failed ? NULL : kr__arena_text(&job->arena, text.data, text.bytes);
    kr__text_free(&text);
    return copy;
}

/* The caller's options come before ours, so that their include folders are searched first. The language is
 * the same whatever NVRTC is found: left alone, 11 takes C++03 and 12 takes C++17. */
static kr_status list_options(compile_job *job)
{
    const kr_compile_options *given = &job->given;
    const char *include = job->nvrtc->info.include;
    job->options = job_alloc(job, (given->n_options + 5) * sizeof *job->options);
    if (!job->options)
        return KR_OUT_OF_HOST_MEMORY;
    size_t n = 0;
    job->options[n++] = printed(job, "--gpu-architecture=", job->target, "");
    for (size_t i = 0; i < given->n_options; i++)
        job->options[n++] = given->options[i];
    if (!gives_option(given, "--std", "-std"))
        job->options[n++] = "--std=c++17";
    if (given->kind == KR_IMAGE_LTOIR)
        job->options[n++] = "-dlto";
    if (include) {
        job->options[n++] = printed(job, "-I", include, "");
        const char *cccl = printed(job, "-I", include, "/cccl"); /* CUDA 13 keeps libcu++ apart */
        if (!cccl || kr__file_exists(cccl + 2))
            job->options[n++] = cccl;
    }
    job->n_options = n;
    for (size_t i = 0; i < n; i++)
        if (!job->options[i])
            return KR_FAIL(job->err, KR_OUT_OF_HOST_MEMORY, "no host memory for the options of %s",
                           job->name);
    return KR_OK;
}

/* As text, or in a folder: NVRTC looks for a header among the texts first, so ours would hide the file.
 * `path` is room for a path, and remembers where there was none. */
static bool gives_header(const kr_compile_options *given, const char *name, kr__text *path)
{
    for (size_t i = 0; i < given->n_headers; i++)
        if (strcmp(given->header_names[i], name) == 0)
            return true;
    for (size_t i = 0; i < given->n_options; i++) {
        const char *folder = kr__include_folder(given->options, i);
        if (!folder)
            continue;
        path->bytes = 0;
        kr__text_add(path, "%s/%s", folder, name);
        if (!path->failed && kr__file_exists(path->data))
            return true;
    }
    return false;
}

static kr_status list_headers(compile_job *job)
{
    const kr_compile_options *given = &job->given;
    const size_t most = given->n_headers + kr__n_virtual_headers;
    job->header_names = job_alloc(job, most * sizeof *job->header_names);
    job->header_texts = job_alloc(job, most * sizeof *job->header_texts);
    if (!job->header_names || !job->header_texts)
        return KR_OUT_OF_HOST_MEMORY;
    size_t n = given->n_headers;
    kr__text path = {0};
    for (size_t i = 0; i < n; i++) {
        job->header_names[i] = given->header_names[i];
        job->header_texts[i] = given->header_texts[i];
    }
    for (size_t i = 0; i < kr__n_virtual_headers; i++) {
        if (gives_header(given, kr__virtual_headers[i].name, &path))
            continue;
        job->header_names[n] = kr__virtual_headers[i].name;
        job->header_texts[n++] = kr__virtual_headers[i].text;
    }
    job->n_headers = n;
    const bool failed = path.failed;
    kr__text_free(&path);
    return failed ? KR_FAIL(job->err, KR_OUT_OF_HOST_MEMORY, "no host memory to look for headers of %s",
                            job->name)
                  : KR_OK;
}

/* ---- the compile ---- */

static kr_status fetch_log(compile_job *job)
{
    size_t bytes = 0;
    NVRTC_TRY(job, nvrtcGetProgramLogSize, job->program, &bytes);
    char *log = job_alloc(job, bytes + 1);
    if (!log)
        return KR_OUT_OF_HOST_MEMORY;
    if (bytes)
        NVRTC_TRY(job, nvrtcGetProgramLog, job->program, log);
    job->compiled.log = log;
    return KR_OK;
}

static kr_status compile_program(compile_job *job)
{
    const nvrtc_table *table = &job->nvrtc->table;
    for (size_t i = 0; i < job->given.n_name_expressions; i++)
        NVRTC_TRY(job, nvrtcAddNameExpression, job->program, job->given.name_expressions[i]);
    const nvrtcResult result = table->nvrtcCompileProgram(job->program, (int)job->n_options, job->options);
    const kr_status status = fetch_log(job);
    return result ? kr__nvrtc_failed(job, result, "nvrtcCompileProgram") : status;
}

/* One kind of output: 0 bytes where this compile made none. There is always a NUL behind it. */
#define FETCH(job, WHAT, ret_data, ret_bytes)                            \
    do {                                                                 \
        NVRTC_TRY(job, nvrtcGet##WHAT##Size, (job)->program, ret_bytes); \
        if (!(*(ret_data) = job_alloc(job, *(ret_bytes) + 1)))           \
            return KR_OUT_OF_HOST_MEMORY;                                \
        if (*(ret_bytes))                                                \
            NVRTC_TRY(job, nvrtcGet##WHAT, (job)->program, *(ret_data)); \
    } while (0)

static kr_status join(compile_job *job, const char *cubin, size_t cubin_bytes, const char *ptx,
                      size_t ptx_bytes)
{
    kr__ptx_head head = {0};
    kr__ptx_head_read(ptx, ptx_bytes, &head);
    const kr__fatbin_part parts[] = {
        {.kind = KR_IMAGE_CUBIN, .arch = job->compiled.arch, .data = cubin, .bytes = cubin_bytes},
        {.kind = KR_IMAGE_PTX, .arch = job->compiled.arch, .isa = head.isa, .data = ptx, .bytes = ptx_bytes},
    };
    void *image;
    size_t bytes;
    const kr_status status = kr__fatbin_write(parts, KR_COUNT(parts), &image, &bytes, job->err);
    if (status)
        return kr__while(job->err, status, "joining cubin and PTX of %s", job->name);
    char *copy = job_alloc(job, bytes);
    if (copy)
        memcpy(copy, image, bytes);
    free(image);
    if (!copy)
        return KR_OUT_OF_HOST_MEMORY;
    job->compiled.image = copy;
    job->compiled.image_bytes = bytes;
    return KR_OK;
}

/* The kind is that of what came back: asked for a cubin, NVRTC may have PTX alone. */
static kr_status fetch_image(compile_job *job)
{
    kr_compiled *compiled = &job->compiled;
    const kr_image_kind kind = job->given.kind;
    char *cubin = NULL, *ptx = NULL;
    size_t cubin_bytes = 0, ptx_bytes = 0;
    compiled->kind = kind;
    if (kind == KR_IMAGE_LTOIR) {
        FETCH(job, LTOIR, &cubin, &cubin_bytes);
    } else {
        FETCH(job, PTX, &ptx, &ptx_bytes);
        ptx_bytes = strlen(ptx);
        if (kind != KR_IMAGE_PTX)
            FETCH(job, CUBIN, &cubin, &cubin_bytes);
    }
    if (!cubin_bytes && !ptx_bytes) {
        KR_FAIL(job->err, KR_FOREIGN, "NVRTC made no %s of %s for %s", kr_image_kind_name(kind), job->name,
                job->target);
        kr__error_advice(job->err, "Look for an option that changes what NVRTC makes, such as -dlto.");
        return KR_FOREIGN;
    }
    if (ptx && !(compiled->entries = kr__ptx_entries(ptx, &job->arena, &compiled->n_entries)))
        return KR_FAIL(job->err, KR_OUT_OF_HOST_MEMORY, "no host memory for the entries of %s", job->name);
    compiled->ptx = kind == KR_IMAGE_CUBIN && cubin_bytes ? NULL : ptx;
    if (kind == KR_IMAGE_FATBIN && cubin_bytes && ptx_bytes)
        return join(job, cubin, cubin_bytes, ptx, ptx_bytes);
    if (kind != KR_IMAGE_LTOIR)
        compiled->kind = cubin_bytes ? KR_IMAGE_CUBIN : KR_IMAGE_PTX;
    compiled->image = cubin_bytes ? cubin : ptx;
    compiled->image_bytes = cubin_bytes ? cubin_bytes : ptx_bytes;
    return KR_OK;
}

/* NVRTC owns the strings until the program is destroyed. */
static kr_status fetch_lowered_names(compile_job *job)
{
    const kr_compile_options *given = &job->given;
    const char **names = job_alloc(job, given->n_name_expressions * sizeof *names);
    if (!names)
        return KR_OUT_OF_HOST_MEMORY;
    for (size_t i = 0; i < given->n_name_expressions; i++) {
        const char *lowered = NULL;
        NVRTC_TRY(job, nvrtcGetLoweredName, job->program, given->name_expressions[i], &lowered);
        if (!lowered || !lowered[0]) {
            KR_FAIL(job->err, KR_INVALID_ARGUMENT, "NVRTC has no lowered name for \"%s\" of %s",
                    given->name_expressions[i], job->name);
            kr__error_advice(job->err, "Name the kernel or variable itself, without an alias.");
            return KR_INVALID_ARGUMENT;
        }
        names[i] = kr__arena_text(&job->arena, lowered, strlen(lowered));
        if (!names[i])
            return KR_FAIL(job->err, KR_OUT_OF_HOST_MEMORY, "no host memory for a lowered name");
    }
    job->compiled.lowered_names = names;
    return KR_OK;
}

static kr_status run(compile_job *job)
{
    NVRTC_TRY(job, nvrtcCreateProgram, &job->program, job->source, job->name, (int)job->n_headers,
              job->header_texts, job->header_names);
    kr_status status = compile_program(job);
    if (!status)
        status = fetch_image(job);
    if (!status)
        status = fetch_lowered_names(job);
    job->nvrtc->table.nvrtcDestroyProgram(&job->program);
    return status;
}

static bool find(compile_job *job, const kr__cache_key key)
{
    char *data;
    size_t bytes;
    if (!kr__cache_find(job->given.cache, key, &data, &bytes, job->cache_note, sizeof job->cache_note))
        return false;
    const bool ok = kr__compiled_unpack(job, data, bytes);
    free(data);
    return ok;
}

static void keep(compile_job *job, const kr__cache_key key)
{
    kr__text packed = {0};
    kr__cache_key now;
    if (!kr__compile_key(job, now) || memcmp(now, key, sizeof now))
        kr__format(job->cache_note, sizeof job->cache_note,
                   "%s is not kept: what it is made from changed meanwhile", job->name);
    else if (kr__compiled_pack(job, &packed))
        kr__cache_keep(job->given.cache, key, packed.data, packed.bytes, job->cache_note,
                       sizeof job->cache_note);
    else
        kr__format(job->cache_note, sizeof job->cache_note, "no host memory to keep it");
    kr__text_free(&packed);
}

static kr_status run_or_find(compile_job *job)
{
    kr__cache_key key;
    const bool has_key = job->given.cache && kr__compile_key(job, key);
    if (has_key && find(job, key))
        return KR_OK;
    if (job->given.only_find) {
        KR_FAIL(job->err, KR_NOT_FOUND, "%s for %s is not in the cache", job->name, job->target);
        kr__error_advice(job->err, "Compile it without only_find.");
        return KR_NOT_FOUND;
    }
    if (job->given.cache && !has_key)
        kr__format(job->cache_note, sizeof job->cache_note,
                   "%s is not kept: what it is made from cannot be read off its text and options", job->name);
    const kr_status status = run(job);
    if (!status && has_key)
        keep(job, key);
    return status;
}

kr_status kr_compile(kr_nvrtc *nvrtc, const char *name, const char *source, kr_cc arch,
                     const kr_compile_options *options, kr_compiled **ret_compiled, kr_error *err)
{
    KR_REQUIRE(err, nvrtc, source, ret_compiled);
    compile_job *job = kr__alloc(1, sizeof *job, err);
    if (!job)
        return KR_OUT_OF_HOST_MEMORY;
    job->nvrtc = nvrtc;
    job->name = name ? name : "kernel.cu";
    job->source = source;
    job->compiled.arch = arch;
    job->compiled.log = "";
    job->err = err;
    kr_status status = KR_OPTIONS(err, options, job->given);
    /* PTX is for a virtual architecture; a real one gives the cubin, and its PTX too. */
    const bool real = job->given.kind == KR_IMAGE_CUBIN || job->given.kind == KR_IMAGE_FATBIN;
    kr__format(job->target, sizeof job->target, "%s_%d%d%.1s", real ? "sm" : "compute", arch.major,
               arch.minor, &arch.suffix);

    if (!status)
        status = check_lists(job);
    if (!status)
        status = trim_options(job);
    if (!status)
        status = check_call(job);
    if (!status)
        status = list_options(job);
    if (!status)
        status = list_headers(job);
    if (!status) {
        const locale_t before = uselocale(nvrtc->c_locale);
        status = run_or_find(job);
        uselocale(before);
    }
    kr_compiled *compiled = &job->compiled;
    compiled->cache_note = job->cache_note;
    if (status)
        kr_compiled_destroy(&compiled);
    else
        *ret_compiled = compiled;
    return status;
}

void kr_compiled_destroy(kr_compiled **compiled)
{
    if (!compiled || !*compiled)
        return;
    compile_job *job = (compile_job *)*compiled;
    kr__arena_free(&job->arena);
    free(job);
    *compiled = NULL;
}
