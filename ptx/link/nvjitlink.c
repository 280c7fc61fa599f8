/* SPDX-License-Identifier: Apache-2.0 */
#include "ptx/link/linker.h"

#include <dlfcn.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>

#include "abi/nvjitlink.h"
#include "ptx/toolkit/toolkit.h"

struct kr__nvjitlink {
    struct {
#define POINTER(name, parameters) nvJitLinkResult(*name) parameters;
        NVJITLINK_FUNCTION_LIST(POINTER)
#undef POINTER
    } table;
    char *path;
    int major, minor;
};

static const char *result_name(nvJitLinkResult result)
{
    switch (result) {
#define NAME_CASE(name, number) \
    case number:                \
        return #name;
        NVJITLINK_RESULT_LIST(NAME_CASE)
#undef NAME_CASE
    }
    return "NVJITLINK_ERROR_?";
}

/* ---- opening ---- */

static const char *fill_table(kr__nvjitlink *to, void *library)
{
    const char *missing = NULL;
#define LOOK_UP(name, parameters)                                                \
    *(void **)&to->table.name = dlsym(library, "nvJitLink" #name);               \
    if (!to->table.name)                                                         \
        *(void **)&to->table.name = dlsym(library, "__nvJitLink" #name "_12_0"); \
    if (!to->table.name && !missing)                                             \
        missing = "nvJitLink" #name;
    NVJITLINK_FUNCTION_LIST(LOOK_UP)
#undef LOOK_UP
    return missing;
}

/* There is one since 12.4. */
static bool version_of(void *library, int *ret_major, int *ret_minor)
{
    nvJitLinkResult (*version)(unsigned *, unsigned *);
    unsigned major, minor;
    *(void **)&version = dlsym(library, "nvJitLinkVersion");
    if (!version || version(&major, &minor))
        return false;
    *ret_major = (int)major;
    *ret_minor = (int)minor;
    return true;
}

static kr_status take(void *user, void *library, const char *file, kr__text *tried, kr_error *err)
{
    kr__nvjitlink *to = user;
    const char *missing = fill_table(to, library);
    struct link_map *map = NULL;
    if (missing) {
        kr__text_add(tried, "  %s: has no %s: not nvJitLink\n", file, missing);
        return KR_NOT_FOUND;
    }
    if (dlinfo(library, RTLD_DI_LINKMAP, &map)) {
        kr__text_add(tried, "  %s: its own path cannot be told\n", file);
        return KR_NOT_FOUND;
    }
    to->path = strdup(map->l_name);
    if (!to->path)
        return KR_FAIL(err, KR_OUT_OF_HOST_MEMORY, "no host memory for the path of nvJitLink");
    if (!version_of(library, &to->major, &to->minor))
        to->major = to->minor = 0;
    return KR_OK;
}

kr_status kr__nvjitlink_open(int driver_version, const char *path, kr__nvjitlink **ret_library, kr_error *err)
{
    static const char *const sonames[] = {"libnvJitLink.so.13", "libnvJitLink.so.12", "libnvJitLink.so",
                                          NULL};
    static const kr__toolkit_library what = {
        .name = "nvJitLink",
        .file = "libnvJitLink.so",
        .sonames = sonames,
        .package = "nvjitlink",
        .wheel = "nvidia-nvjitlink",
        .variable = "KREGISTRY_NVJITLINK",
        .least = "12.0",
        .version = version_of,
        .take = take,
    };
    kr__nvjitlink *library = kr__alloc(1, sizeof *library, err);
    if (!library)
        return KR_OUT_OF_HOST_MEMORY;
    const kr_status status = kr__toolkit_open(&what, driver_version, path, library, err);
    if (status)
        kr__nvjitlink_close(&library);
    else
        *ret_library = library;
    return status;
}

void kr__nvjitlink_close(kr__nvjitlink **library)
{
    if (*library)
        free((*library)->path);
    free(*library);
    *library = NULL;
}

const char *kr__nvjitlink_path(const kr__nvjitlink *library, int *ret_major, int *ret_minor)
{
    *ret_major = library->major;
    *ret_minor = library->minor;
    return library->path;
}

/* ---- linking ---- */

/* One link that is going on. */
typedef struct job {
    const kr__nvjitlink *library;
    nvJitLinkHandle handle;
    char target[24]; /* "sm_90a" */
    size_t n_parts;
    bool gives_ptx;
    kr__link_result *result;
    kr_error *err;
} job;

static const nvJitLinkInputType types[] = {
    [KR_IMAGE_PTX] = NVJITLINK_INPUT_PTX,
    [KR_IMAGE_CUBIN] = NVJITLINK_INPUT_CUBIN,
    [KR_IMAGE_FATBIN] = NVJITLINK_INPUT_FATBIN,
    [KR_IMAGE_LTOIR] = NVJITLINK_INPUT_LTOIR,
};

static kr_status no_memory(const job *j)
{
    return KR_FAIL(j->err, KR_OUT_OF_HOST_MEMORY, "no host memory to link %zu images", j->n_parts);
}

/* One of the logs, added to the result's. Neither may be there. */
static void add_log(job *j, nvJitLinkResult (*size)(nvJitLinkHandle, size_t *),
                    nvJitLinkResult (*get)(nvJitLinkHandle, char *))
{
    size_t bytes = 0;
    if (size(j->handle, &bytes) || bytes <= 1)
        return;
    char *text = calloc(bytes + 1, 1);
    if (text && !get(j->handle, text))
        kr__text_add(&j->result->log, "%s%s", text, text[strlen(text) - 1] == '\n' ? "" : "\n");
    j->result->log.failed |= !text;
    free(text);
}

static kr_status with_code(const job *j, kr_status status, nvJitLinkResult result, const char *function)
{
    if (j->err)
        j->err->status = status;
    kr__error_code(j->err, KR_API_NVJITLINK, result, result_name(result), function);
    return status;
}

/* An input that is refused, or the whole. */
static kr_status failed(job *j, nvJitLinkResult result, const char *function, const char *part)
{
    add_log(j, j->library->table.GetErrorLogSize, j->library->table.GetErrorLog);
    add_log(j, j->library->table.GetInfoLogSize, j->library->table.GetInfoLog);
    if (result == NVJITLINK_ERROR_ARCH_MISMATCH) {
        KR_FAIL(j->err, KR_NOT_ON_THIS_DEVICE, "%s is for another arch than %s", part ? part : "an image",
                j->target);
        kr__error_advice(j->err, KR__LINK_ARCH_ADVICE, j->target);
        return with_code(j, KR_NOT_ON_THIS_DEVICE, result, function);
    }
    kr__link_failed("nvJitLink", j->n_parts, j->target, &j->result->log, j->err);
    const char *const log = j->result->log.data;
    if (log && strstr(log, "nvvmAddNVVMContainerToProgram"))
        kr__error_advice(j->err,
                         "Use an nvJitLink that is not older than what made the LTO-IR (this one: %d.%d).",
                         j->library->major, j->library->minor);
    return with_code(j, KR_COMPILE_FAILED, result, function);
}

static kr_status create(job *j, const char **options, size_t n)
{
    const nvJitLinkResult result = j->library->table.Create(&j->handle, (uint32_t)n, options);
    if (!result)
        return KR_OK;
    kr__text all = {0};
    for (size_t i = 0; i < n; i++)
        kr__text_add(&all, "%s%s", i ? " " : "", options[i]);
    const bool of_arch =
        result == NVJITLINK_ERROR_UNRECOGNIZED_ARCH || result == NVJITLINK_ERROR_UNSUPPORTED_ARCH;
    KR_FAIL(j->err, KR_INVALID_ARGUMENT, "nvJitLink %d.%d (%s) refuses %s %s", j->library->major,
            j->library->minor, j->library->path, of_arch ? "the arch of" : "an option of",
            all.data ? all.data : "the link");
    kr__error_advice(j->err, of_arch ? "Use a newer nvJitLink, or an arch that this one knows."
                                     : "Give options that the nvJitLink reference names.");
    kr__text_free(&all);
    j->handle = NULL;
    return with_code(j, KR_INVALID_ARGUMENT, result, "nvJitLinkCreate");
}

static kr_status add(job *j, const kr__link_part *part)
{
    /* PTX must end with a NUL, which the size counts; the caller's need not have one. */
    char *text = part->facts.kind == KR_IMAGE_PTX ? malloc(part->bytes + 1) : NULL;
    if (part->facts.kind == KR_IMAGE_PTX && !text)
        return no_memory(j);
    if (text) {
        memcpy(text, part->image, part->bytes);
        text[part->bytes] = '\0';
    }
    const nvJitLinkResult result =
        j->library->table.AddData(j->handle, types[part->facts.kind], text ? text : part->image,
                                  part->bytes + (text != NULL), part->name);
    free(text);
    return result ? failed(j, result, "nvJitLinkAddData", part->name) : KR_OK;
}

static kr_status complete(job *j)
{
    const kr__nvjitlink *l = j->library;
    nvJitLinkResult result = l->table.Complete(j->handle);
    if (result)
        return failed(j, result, "nvJitLinkComplete", NULL);
    size_t bytes = 0;
    result = (j->gives_ptx ? l->table.GetLinkedPtxSize : l->table.GetLinkedCubinSize)(j->handle, &bytes);
    j->result->image = result ? NULL : malloc(bytes + 1);
    if (!result && !j->result->image)
        return no_memory(j);
    if (!result && j->gives_ptx)
        result = l->table.GetLinkedPtx(j->handle, j->result->image);
    else if (!result)
        result = l->table.GetLinkedCubin(j->handle, j->result->image);
    if (result)
        return failed(j, result, j->gives_ptx ? "nvJitLinkGetLinkedPtx" : "nvJitLinkGetLinkedCubin", NULL);
    j->result->image[bytes] = '\0';
    j->result->bytes = j->gives_ptx ? strlen(j->result->image) : bytes;
    add_log(j, l->table.GetErrorLogSize, l->table.GetErrorLog);
    add_log(j, l->table.GetInfoLogSize, l->table.GetInfoLog);
    return j->result->log.failed ? no_memory(j) : KR_OK;
}

kr_status kr__nvjitlink_link(const kr__nvjitlink *library, const kr__link_part *parts, size_t n, kr_cc arch,
                             const kr_link_options *options, kr__link_result *result, kr_error *err)
{
    enum { OWN_OPTIONS = 3 };
    job j = {.library = library, .n_parts = n, .gives_ptx = options->ptx, .result = result, .err = err};
    char arch_option[40];
    const char **list = kr__alloc(options->n_options + OWN_OPTIONS, sizeof *list, err);
    if (!list)
        return KR_OUT_OF_HOST_MEMORY;
    bool has_ltoir = false;
    for (size_t i = 0; i < n; i++)
        has_ltoir |= parts[i].facts.kind == KR_IMAGE_LTOIR;
    kr__format(j.target, sizeof j.target, "sm_%d%d%.1s", arch.major, arch.minor, (char[]){arch.suffix, '\0'});
    kr__format(arch_option, sizeof arch_option, "-arch=%s", j.target);
    size_t n_options = 0;
    list[n_options++] = arch_option;
    if (has_ltoir)
        list[n_options++] = "-lto";
    if (options->ptx)
        list[n_options++] = "-ptx";
    for (size_t i = 0; i < options->n_options; i++)
        list[n_options++] = options->options[i];
    kr_status status = KR_OK;
    if (options->ptx && !has_ltoir) {
        status = KR_FAIL(err, KR_INVALID_ARGUMENT,
                         "PTX comes of linking LTO-IR, and none of %zu images is LTO-IR", n);
        kr__error_advice(err, "Link to a cubin, or give LTO-IR.");
    }
    if (status == KR_OK)
        status = kr__link_check_code(parts, n, arch, j.target, err);
    if (status == KR_OK)
        status = kr__link_check_names(parts, n, j.target, err);
    if (status == KR_OK)
        status = create(&j, list, n_options);
    for (size_t i = 0; i < n && status == KR_OK; i++)
        status = add(&j, &parts[i]);
    if (status == KR_OK)
        status = complete(&j);
    if (j.handle)
        library->table.Destroy(&j.handle);
    free(list);
    return status;
}
