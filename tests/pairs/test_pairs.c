/* SPDX-License-Identifier: Apache-2.0 */
/* Every target x kind x device: does it load where we say that it does?
 *     test_pairs PATH [-v]   with that libcuda ("-": the machine's); skipped where there is none, or no
 * NVRTC. -v prints the table */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <kregistry/buffer.h>
#include <kregistry/compile.h>
#include <kregistry/link.h>
#include <kregistry/runtime.h>

/* What NVRTC and nvJitLink keep for the life of the process is no leak of ours. */
const char *__lsan_default_suppressions(void) __attribute__((visibility("default")));
const char *__lsan_default_suppressions(void)
{
    return "leak:libnvrtc\nleak:libnvJitLink\n";
}

static const char source[] = "extern \"C\" __global__ void k(int *p) { *p = 42; }";
static const char letters[] = {0, 'a', 'f'};
static const kr_image_kind kinds[] = {KR_IMAGE_CUBIN, KR_IMAGE_PTX, KR_IMAGE_FATBIN, KR_IMAGE_LTOIR};
enum { N_KINDS = sizeof kinds / sizeof *kinds };

static kr_error err;
static bool verbose, has_linker;
static int n_pairs, n_wrong;

/* A fatbin of NVRTC's has both. LTO-IR is linked as PTX is compiled, but nvJitLink does not look at its
 * letter. */
static bool expected(kr_image_kind kind, kr_cc target, kr_cc device)
{
    const bool cubin = kr_cc_cubin_runs_on(target, device), ptx = kr_cc_ptx_runs_on(target, device);
    if (kind == KR_IMAGE_LTOIR)
        return kr_cc_ptx_runs_on((kr_cc){target.major, target.minor, 0}, device);
    return kind == KR_IMAGE_CUBIN ? cubin : kind == KR_IMAGE_FATBIN ? cubin || ptx : ptx;
}

static void wrong(kr_device *device, const kr_compiled *image, const char *what)
{
    char target[KR_CC_TEXT_BYTES], cc[KR_CC_TEXT_BYTES];
    printf("%s for %s on %s: %s: %s %s\n", kr_image_kind_name(image->kind), kr_cc_format(image->arch, target),
           kr_cc_format(kr_device_get_info(device)->cc, cc), what, err.code_name, err.message);
    n_wrong++;
}

/* Machine code is executed by an NVIDIA driver alone. */
static bool runs(kr_device *device, kr_module *module)
{
    kr_kernel *kernel = NULL;
    kr_buffer *buffer = NULL;
    int got = 0;
    const kr_status status =
        kr_module_kernel(module, "k", &kernel, &err) ||
        kr_buffer_create(device, sizeof got, NULL, &buffer, &err) ||
        kr_kernel_launch(kernel, kr_default_stream(buffer), &(kr_launch_config){{1}, {1}, 0},
                         KR_ARGS(KR_BUF(buffer)), &err) ||
        kr_buffer_download(buffer, 0, &got, sizeof got, &err);
    kr_buffer_destroy(&buffer);
    return !status && got == 42;
}

static char try(kr_device *device, const kr_compiled *image, bool executes)
{
    kr_module *module = NULL;
    memset(&err, 0, sizeof err);
    const bool want = expected(image->kind, image->arch, kr_device_get_info(device)->cc);
    const kr_status status = kr_module_load(device, image->image, image->image_bytes, NULL, &module, &err);
    n_pairs++;
    if (want != (status == KR_OK))
        wrong(device, image, want ? "must load" : "must not load");
    else if (status != KR_OK && image->kind != KR_IMAGE_LTOIR && status != KR_NOT_ON_THIS_DEVICE)
        wrong(device, image, "is refused for another reason");
    else if (status == KR_OK && (executes || image->kind == KR_IMAGE_PTX) && !runs(device, module))
        wrong(device, image, "loads and does not run");
    kr_module_destroy(&module);
    return status == KR_OK ? '+' : '-';
}

/* One line of the table: the kinds of one target, a column a device. */
static void try_target(kr_runtime *runtime, kr_nvrtc *nvrtc, kr_cc target, bool executes)
{
    for (int i = 0; i < N_KINDS; i++) {
        char line[64] = "", text[KR_CC_TEXT_BYTES];
        kr_compiled *image = NULL;
        const kr_compile_options options = {.struct_size = sizeof options, .kind = kinds[i]};
        if (kinds[i] == KR_IMAGE_LTOIR && !has_linker)
            continue;
        /* no such letter of this target */
        if (kr_compile(nvrtc, "k.cu", source, target, &options, &image, &err) != KR_OK)
            return;
        const size_t n = kr_runtime_n_devices(runtime);
        for (size_t d = 0; d < n && d < sizeof line - 1; d++)
            line[d] = try(kr_runtime_device(runtime, d), image, executes);
        if (verbose)
            printf("%-6s %-7s %s\n", kr_cc_format(target, text), kr_image_kind_name(kinds[i]), line);
        kr_compiled_destroy(&image);
    }
}

int main(int argc, char **argv)
{
    const char *path = argc > 1 ? argv[1] : "";
    verbose = argc > 2 && strcmp(argv[2], "-v") == 0;
    kr_runtime *runtime = NULL;
    kr_nvrtc *nvrtc = NULL;
    kr_linker *linker = NULL;
    if (strcmp(path, "-") && access(path, R_OK)) {
        printf("skipped: no %s\n", path);
        return 77;
    }
    if (kr_nvrtc_open(NULL, &nvrtc, &err) != KR_OK) {
        printf("skipped: %s\n", err.message);
        return 77;
    }
    has_linker = kr_linker_create(NULL, &linker, &err) == KR_OK;
    kr_linker_destroy(&linker);
    const kr_runtime_options options = {.struct_size = sizeof options,
                                        .driver = strcmp(path, "-") ? path : NULL};
    if (kr_runtime_create(&options, &runtime, &err) != KR_OK)
        return kr_error_print(&err, stderr);
    const bool executes = strcmp(kr_runtime_driver(runtime).kind, "nvidia") == 0;
    const kr_nvrtc_info info = kr_nvrtc_get_info(nvrtc);
    if (verbose) {
        printf("devices:");
        for (size_t d = 0; d < kr_runtime_n_devices(runtime); d++) {
            char cc[KR_CC_TEXT_BYTES];
            printf(" %s", kr_cc_format(kr_device_get_info(kr_runtime_device(runtime, d))->cc, cc));
        }
        printf("\n");
    }
    for (size_t i = 0; i < info.n_archs; i++)
        for (size_t s = 0; s < sizeof letters; s++)
            try_target(runtime, nvrtc, (kr_cc){info.archs[i] / 10, info.archs[i] % 10, letters[s]}, executes);
    printf("%d pairs, %d wrong\n", n_pairs, n_wrong);
    kr_runtime_destroy(&runtime);
    kr_nvrtc_close(&nvrtc);
    return n_wrong ? EXIT_FAILURE : EXIT_SUCCESS;
}
