/* SPDX-License-Identifier: Apache-2.0 */
#include "ptx/compile/job.h"

#include <string.h>

/* "cannot open source file" helps only with the folders that were searched; and headers of another toolkit
 * than NVRTC's fail far from the cause. */
static void add_include_notes(const compile_job *job, kr__text *log)
{
    const kr_nvrtc_info *info = &job->nvrtc->info;
    const bool missing = log->data && strstr(log->data, "open source file");
    size_t n = 0;
    for (size_t i = 0; i < job->n_options; i++) {
        const char *folder = kr__include_folder(job->options, i);
        const int version = folder ? kr__toolkit_headers_version(folder) : 0;
        if (folder && missing)
            kr__text_add(log, "%s%s\n", n++ ? "  " : "include folders searched:\n  ", folder);
        if (version && (version / 1000 != info->major || version / 10 % 100 != info->minor))
            kr__text_add(log, "note: the headers in %s are of CUDA %d.%d, this NVRTC is %d.%d\n", folder,
                         version / 1000, version / 10 % 100, info->major, info->minor);
    }
    if (missing && !n)
        kr__text_add(log, "include folders searched: none\n");
    for (size_t i = 0; i < kr__n_virtual_headers && missing && !job->nvrtc->info.include; i++)
        kr__text_add(log, "%s%s%s", i ? ", " : "headers that need no folder: ", kr__virtual_headers[i].name,
                     i + 1 < kr__n_virtual_headers ? "" : "\n");
}

static bool is_toolkit_header(const char *name)
{
    static const char *const beginnings[] = {
        "cuda.h",  "cuda_",   "cuda/",         "cub/", "thrust/", "nv/", "cooperative_groups",
        "curand_", "device_", "vector_types.", "crt/", "mma.h"};
    for (size_t i = 0; i < KR_COUNT(beginnings); i++)
        if (strncmp(name, beginnings[i], strlen(beginnings[i])) == 0)
            return true;
    return false;
}

/* libcu++ has many of the standard headers, for devices. */
static bool is_in_libcuxx(const kr_nvrtc *nvrtc, const char *name)
{
    static const char *const folders[] = {"cccl/cuda/std", "cuda/std"};
    bool found = false;
    for (size_t i = 0; i < KR_COUNT(folders) && nvrtc->info.include && !found; i++) {
        kr__text path = {0};
        kr__text_add(&path, "%s/%s/%s", nvrtc->info.include, folders[i], name);
        found = !path.failed && kr__file_exists(path.data);
        kr__text_free(&path);
    }
    return found;
}

/* Of all that can be missing, the toolkit's headers and the standard library's are known by name. */
static void advise_header(const compile_job *job, const char *error)
{
    const kr_nvrtc_info *info = &job->nvrtc->info;
    const char *quoted = strchr(error, '"');
    char name[128] = "";
    if (quoted)
        kr__format(name, sizeof name, "%.*s", (int)strcspn(quoted + 1, "\"\n"), quoted + 1);
    if (!job->nvrtc->info.include && is_toolkit_header(name))
        kr__error_advice(
            job->err,
            "It is of the CUDA toolkit, whose headers do not lie beside this NVRTC: install those of "
            "CUDA %d.%d there (Python packages cuda-runtime and cuda-cccl), or name their folder.",
            info->major, info->minor);
    else if (is_in_libcuxx(job->nvrtc, name))
        kr__error_advice(job->err, "NVRTC has no standard library: include <cuda/std/%s>.", name);
    else if (name[0] && !strpbrk(name, "./"))
        kr__error_advice(job->err,
                         "NVRTC has no standard library: keep <%s> out of what it compiles, with #ifndef "
                         "__CUDACC_RTC__.",
                         name);
    else
        kr__error_advice(job->err, "Add the header's folder with an -I option, or give the header as text.");
}

static int first_line_bytes(const char *text)
{
    return (int)strcspn(text, "\n");
}

static const char *first_error(const char *log)
{
    for (const char *line = log; *line; line += strcspn(line, "\n"), line += *line == '\n') {
        const char *error = strstr(line, "error");
        if (error && error < line + strcspn(line, "\n"))
            return line;
    }
    return log;
}

static kr_status memory_failed(const compile_job *job)
{
    KR_FAIL(job->err, KR_OUT_OF_HOST_MEMORY, "NVRTC ran out of host memory on %s", job->name);
    kr__error_log(job->err, job->compiled.log);
    return KR_OUT_OF_HOST_MEMORY;
}

/* NVRTC reads name expressions as lines of a file of its own, so its log speaks of no line of the source. */
static bool expression_failed(const compile_job *job, const char *error)
{
    static const char file[] = "__nv_name_map(", named[] = "Input name expression was: \"";
    const char *name = strstr(error, named), *why = strstr(error, "error: ");
    if (strncmp(error, file, strlen(file)) != 0 || !name || !why)
        return false;
    name += strlen(named) + strspn(name + strlen(named), " ");
    why += strlen("error: ");
    KR_FAIL(job->err, KR_COMPILE_FAILED, "\"%.*s\" names nothing in %s: %.*s", (int)strcspn(name, "\"\n"),
            name, job->name, first_line_bytes(why), why);
    kr__error_log(job->err, job->compiled.log);
    kr__error_advice(job->err, "Correct the name expression: the name as the source has it, with template "
                               "arguments.");
    return true;
}

static kr_status source_failed(const compile_job *job)
{
    const char *error = first_error(job->compiled.log);
    if (expression_failed(job, error))
        return KR_COMPILE_FAILED;
    KR_FAIL(job->err, KR_COMPILE_FAILED, "%s does not compile for %s: %.*s", job->name, job->target,
            first_line_bytes(error), error);
    kr__text log = {0};
    kr__log_with_source(&log, job->compiled.log, job->name, job->source);
    add_include_notes(job, &log);
    kr__error_log(job->err, log.data);
    if (log.data && strstr(log.data, "open source file"))
        advise_header(job, error);
    else
        kr__error_advice(job->err, "Correct the source; > marks the lines in the log.");
    kr__text_free(&log);
    return KR_COMPILE_FAILED;
}

static kr_status option_refused(const compile_job *job)
{
    const kr_nvrtc_info *info = &job->nvrtc->info;
    kr__text log = {0};
    kr__text_add(&log, "%s%soptions given:\n", job->compiled.log, job->compiled.log[0] ? "\n" : "");
    for (size_t i = 0; i < job->n_options; i++)
        kr__text_add(&log, "  %s\n", job->options[i]);
    /* The one --gpu-architecture is ours, so a complaint about it is about the arch. */
    const bool is_arch =
        strstr(job->compiled.log, "gpu-architecture") || strstr(job->compiled.log, "--nv_arch");
    kr_status status;
    if (is_arch) {
        status = KR_FAIL(job->err, KR_NOT_ON_THIS_MACHINE, "NVRTC %d.%d (%s) cannot compile for %s",
                         info->major, info->minor, info->path, job->target);
        kr__error_advice(job->err, "Use a newer NVRTC, or leave out the arch's suffix.");
    } else {
        status =
            KR_FAIL(job->err, KR_INVALID_ARGUMENT, "NVRTC %d.%d (%s) refuses an option: %.*s", info->major,
                    info->minor, info->path, first_line_bytes(job->compiled.log), job->compiled.log);
        kr__error_advice(job->err, "Remove the option, or spell it as this version of NVRTC does.");
    }
    kr__error_log(job->err, log.data);
    kr__text_free(&log);
    return status;
}

static kr_status builtins_missing(const compile_job *job)
{
    const kr_nvrtc *nvrtc = job->nvrtc;
    KR_FAIL(job->err, KR_NOT_ON_THIS_MACHINE, "NVRTC %d.%d (%s) cannot use its builtins library: %s",
            nvrtc->info.major, nvrtc->info.minor, nvrtc->info.path,
            nvrtc->builtins_problem ? nvrtc->builtins_problem : nvrtc->builtins);
    kr__error_log(job->err, job->compiled.log);
    kr__error_advice(job->err, "Install NVRTC whole: libnvrtc-builtins.so.%d.%d belongs beside libnvrtc.so.",
                     nvrtc->info.major, nvrtc->info.minor);
    return KR_NOT_ON_THIS_MACHINE;
}

kr_status kr__nvrtc_failed(const compile_job *job, nvrtcResult result, const char *function)
{
    const kr_nvrtc_info *info = &job->nvrtc->info;
    const char *result_name = kr__nvrtc_result_name(result);
    kr_status status;
    switch (result) {
    case NVRTC_ERROR_COMPILATION:
        /* The front end behind NVRTC refuses what NVRTC itself let pass: sm_80a. */
        if (strncmp(job->compiled.log, "Command-line error", 18) == 0)
            status = option_refused(job);
        else if (strstr(job->compiled.log, "Memory allocation failure")) /* the assembler's words */
            status = memory_failed(job);
        else
            status = source_failed(job);
        break;
    case NVRTC_ERROR_INVALID_OPTION:
        status = option_refused(job);
        break;
    case NVRTC_ERROR_BUILTIN_OPERATION_FAILURE:
        status = builtins_missing(job);
        break;
    case NVRTC_ERROR_OUT_OF_MEMORY:
        status = memory_failed(job);
        break;
    default:
        status = KR_FAIL(job->err, KR_FOREIGN, "NVRTC %d.%d (%s) failed on %s: %s", info->major, info->minor,
                         info->path, job->name, result_name);
        kr__error_log(job->err, job->compiled.log);
        kr__error_advice(job->err, "Try another version of NVRTC.");
    }
    kr__error_code(job->err, KR_API_NVRTC, result, result_name, function);
    return status;
}

/* The highest arch that is known and not above `number`; 0: none. */
static int highest_below(const kr_nvrtc_info *info, int number)
{
    int highest = 0;
    for (size_t i = 0; i < info->n_archs; i++)
        if (info->archs[i] <= number && info->archs[i] > highest)
            highest = info->archs[i];
    return highest;
}

kr_status kr__arch_unknown(const compile_job *job)
{
    const kr_nvrtc_info *info = &job->nvrtc->info;
    const kr_cc arch = job->compiled.arch;
    const int below = highest_below(info, arch.major * 10 + arch.minor);
    kr__text known = {0};
    for (size_t i = 0; i < info->n_archs; i++)
        kr__text_add(&known, "%s%d", i ? ", " : "", info->archs[i]);
    KR_FAIL(job->err, KR_NOT_ON_THIS_MACHINE, "NVRTC %d.%d (%s) does not know %s; it knows %s", info->major,
            info->minor, info->path, job->target, known.data ? known.data : "none");
    kr__text_free(&known);
    if (below)
        kr__error_advice(
            job->err, "Use a newer NVRTC, or compile to PTX for compute_%d, which newer devices run.", below);
    else
        kr__error_advice(job->err,
                         "%s is older than this NVRTC supports: use an earlier one, or ship a cubin or PTX.",
                         job->target);
    return KR_NOT_ON_THIS_MACHINE;
}
