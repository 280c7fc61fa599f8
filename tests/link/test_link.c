/* SPDX-License-Identifier: Apache-2.0 */
/* Linking, by nvJitLink and by a driver.
 *     test_link PATH      with that libcuda ("-": the machine's); skipped where there is none */
#include <check.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <kregistry/buffer.h>
#include <kregistry/compile.h>
#include <kregistry/link.h>
#include <kregistry/runtime.h>

#include "abi/nvjitlink.h"
#include "ptx/image/image.h"

/* What nvJitLink and NVRTC keep for the life of the process is no leak of ours. */
const char *__lsan_default_suppressions(void) __attribute__((visibility("default")));
const char *__lsan_default_suppressions(void)
{
    return "leak:libnvJitLink\nleak:libnvrtc\n";
}

/* LeakSanitizer takes the size of a thread's storage of theirs from bytes before it that need not say it. */
const char *__asan_default_options(void) __attribute__((visibility("default")));
const char *__asan_default_options(void)
{
    return "intercept_tls_get_addr=0";
}

static const char *libcuda;
static kr_error err;
static kr_runtime *runtime;
static kr_device *device;

#define ck_ok(call)                                                                                      \
    do {                                                                                                 \
        const kr_status ok_ = (call);                                                                    \
        ck_assert_msg(ok_ == KR_OK, "%s: %s: %s\n%s", #call, kr_status_name(ok_), err.message, err.log); \
    } while (0)
#define ck_contains(text, part) ck_assert_msg(strstr(text, part), "\"%s\" is not in \"%s\"", part, text)

#define HEADER ".version 7.5\n.target sm_75\n.address_size 64\n"

/* k: p[i] = scale(p[i]); scale, which the second defines, doubles. */
static const char uses[] = HEADER
    ".extern .func (.param .b32 r) scale(.param .b32 x);\n"
    ".visible .entry k(.param .u64 p)\n{\n.reg .b32 %r<3>;\n.reg .f32 %f<3>;\n.reg .b64 %rd<4>;\n"
    "ld.param.u64 %rd1, [p];\nmov.u32 %r1, %tid.x;\nmul.wide.u32 %rd2, %r1, 4;\nadd.u64 %rd3, %rd1, %rd2;\n"
    "ld.global.f32 %f1, [%rd3];\n{\n.param .b32 a;\nst.param.f32 [a], %f1;\n.param .b32 b;\n"
    "call.uni (b), scale, (a);\nld.param.f32 %f2, [b];\n}\nst.global.f32 [%rd3], %f2;\nret;\n}\n";
#define SCALE(linkage, instruction)                                                     \
    HEADER linkage " .func (.param .b32 r) scale(.param .b32 x)\n{\n.reg .f32 %f<3>;\n" \
                   "ld.param.f32 %f1, [x];\n" instruction "st.param.f32 [r], %f2;\nret;\n}\n"
static const char defines[] = SCALE(".visible", "add.f32 %f2, %f1, %f1;\n");

static const kr_link_input pair[] = {{"uses.ptx", uses, sizeof uses - 1},
                                     {"defines.ptx", defines, sizeof defines}};

static void setup(void)
{
    const kr_runtime_options o = {.struct_size = sizeof o, .driver = libcuda};
    ck_ok(kr_runtime_create(&o, &runtime, &err));
    device = kr_runtime_device(runtime, 0);
}

static void teardown(void)
{
    kr_runtime_destroy(&runtime);
}

static kr_linker *nvjitlink(void)
{
    kr_linker *linker = NULL;
    const kr_status status = kr_linker_create(NULL, &linker, &err);
    ck_assert_msg(status == KR_OK, "%s\n%s", err.message, err.log);
    return linker;
}

static kr_linker *by_driver(void)
{
    kr_linker *linker = NULL;
    ck_ok(kr_linker_create(&(kr_linker_options){sizeof(kr_linker_options), "none", device}, &linker, &err));
    ck_assert(kr_linker_get_info(linker).is_driver);
    return linker;
}

/* Links what must not link, and gives the message. */
static const char *refused(kr_linker *linker, const kr_link_input *inputs, size_t n, kr_cc arch,
                           const kr_link_options *options, kr_status want)
{
    kr_linked *linked = NULL;
    memset(&err, 0, sizeof err);
    const kr_status status = kr_link(linker, inputs, n, arch, options, &linked, &err);
    ck_assert_msg(status == want, "%s, not %s: %s", kr_status_name(status), kr_status_name(want),
                  err.message);
    ck_assert_int_eq(err.status, want);
    ck_assert_ptr_null(linked);
    ck_assert_str_ne(err.advice, "");
    return err.message;
}

/* Doubles 0..31 by kernel k of the image. */
static void run_k(const void *image, size_t bytes)
{
    float values[32];
    for (int i = 0; i < 32; i++)
        values[i] = (float)i;
    kr_module *module;
    kr_kernel *kernel;
    kr_buffer *buffer;
    ck_ok(kr_module_load(device, image, bytes, "linked", &module, &err));
    ck_ok(kr_module_kernel(module, "k", &kernel, &err));
    ck_ok(kr_buffer_create(device, sizeof values, NULL, &buffer, &err));
    ck_ok(kr_buffer_upload(buffer, 0, values, sizeof values, &err));
    ck_ok(kr_kernel_launch(kernel, kr_default_stream(buffer), &(kr_launch_config){{1}, {32}, 0},
                           KR_ARGS(KR_BUF(buffer)), &err));
    ck_ok(kr_buffer_download(buffer, 0, values, sizeof values, &err));
    for (int i = 0; i < 32; i++)
        ck_assert_float_eq(values[i], 2.0f * (float)i);
    kr_buffer_destroy(&buffer);
    kr_module_destroy(&module);
}

/* Machine code: softcuda does not execute it, and says so elsewhere. */
static void run_cubin(const void *image, size_t bytes)
{
    if (strcmp(kr_runtime_driver(runtime).kind, "nvidia") == 0)
        run_k(image, bytes);
}

static void expect_kernel(const kr_linked *linked, kr_cc arch, const char *name)
{
    kr__cubin *cubin;
    ck_assert_int_eq(linked->kind, KR_IMAGE_CUBIN);
    ck_ok(kr__cubin_read(linked->image, linked->image_bytes, &cubin, &err));
    ck_assert_int_eq(kr_cc_compare(cubin->arch, arch), 0);
    ck_assert(cubin->linked);
    ck_assert_uint_eq(cubin->n_kernels, 1);
    ck_assert_str_eq(cubin->kernels[0].name, name);
    kr__cubin_free(&cubin);
}

/* ---- nvJitLink ---- */

START_TEST(header)
{
    static const char *const names[] = {
#define NAME(name, number) [number] = #name,
        NVJITLINK_RESULT_LIST(NAME)
#undef NAME
    };
    char *text;
    size_t bytes, n = 0;
    if (kr__file_read("/usr/local/cuda/include/nvJitLink.h", &text, &bytes, NULL) != KR_OK)
        return;
    char *end = strstr(text, "} nvJitLinkResult;");
    ck_assert_ptr_nonnull(end);
    *end = '\0';
    for (char *at = strstr(text, "  NVJITLINK_"); at; at = strstr(at, "  NVJITLINK_"), n++) {
        at += 2;
        ck_assert_uint_lt(n, KR_COUNT(names));
        ck_assert_uint_eq(strspn(at, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_"), strlen(names[n]));
        ck_assert_int_eq(strncmp(at, names[n], strlen(names[n])), 0);
    }
    ck_assert_uint_eq(n, KR_COUNT(names));
    free(text);
}
END_TEST

START_TEST(ptx)
{
    kr_linker *linker = nvjitlink();
    const kr_linker_info info = kr_linker_get_info(linker);
    const kr_cc cc = kr_device_get_info(device)->cc;
    kr_linked *linked = NULL;
    ck_assert(!info.is_driver && info.path[0] == '/');
    ck_ok(kr_link(linker, pair, 2, cc, NULL, &linked, &err));
    expect_kernel(linked, cc, "k");
    run_cubin(linked->image, linked->image_bytes);
    kr_linked_destroy(&linked);
    ck_assert_ptr_null(linked);
    kr_linker_destroy(&linker);
}
END_TEST

START_TEST(names_are_told)
{
    kr_linker *linker = nvjitlink();
    const kr_cc cc = {9, 0, 0};
    ck_contains(refused(linker, pair, 1, cc, NULL, KR_COMPILE_FAILED),
                "Undefined reference to 'scale' in 'uses.ptx'");
    ck_assert_int_eq(err.api, KR_API_NVJITLINK);
    ck_assert_str_ne(err.code_name, "");
    ck_contains(err.log, "Undefined reference");
    const kr_link_input twice[] = {pair[0], pair[1], pair[1]};
    ck_contains(refused(linker, twice, 3, cc, NULL, KR_COMPILE_FAILED), "Multiple definition of 'scale'");
    kr_linker_destroy(&linker);
}
END_TEST

/* Relocatable. */
static kr_compiled *cubin(kr_nvrtc *nvrtc, const char *source, kr_cc arch)
{
    kr_compiled *compiled = NULL;
    const char *const rdc = "-rdc=true";
    const kr_compile_options o = {
        .struct_size = sizeof o, .kind = KR_IMAGE_CUBIN, .options = &rdc, .n_options = 1};
    ck_ok(kr_compile(nvrtc, "b.cu", source, arch, &o, &compiled, &err));
    return compiled;
}

START_TEST(names_of_cubins_are_told)
{
    kr_nvrtc *nvrtc = NULL;
    kr_linker *linker = nvjitlink();
    const kr_cc cc = {9, 0, 0};
    if (kr_nvrtc_open(NULL, &nvrtc, &err) != KR_OK)
        return;
    kr_compiled *compiled = cubin(nvrtc, "extern \"C\" __device__ float scale(float x) { return x; }", cc);
    const kr_link_input twice[] = {pair[0], pair[1], {"b.cubin", compiled->image, compiled->image_bytes}};
    ck_contains(refused(linker, twice, 3, cc, NULL, KR_COMPILE_FAILED), "Multiple definition of 'scale'");
    ck_contains(err.message, "b.cubin");
    kr_compiled_destroy(&compiled);
    kr_nvrtc_close(&nvrtc);
    kr_linker_destroy(&linker);
}
END_TEST

/* nvJitLink 13.0 makes an empty cubin of these, and answers success. */
START_TEST(linked_code_is_not_left_out)
{
    static const char source[] = "extern \"C\" __global__ void left_out(int *p) { *p = 1; }";
    const kr_cc cc = {9, 0, 0}, other = {8, 0, 0};
    const kr_compile_options o[] = {{.struct_size = sizeof *o, .kind = KR_IMAGE_CUBIN},
                                    {.struct_size = sizeof *o, .kind = KR_IMAGE_FATBIN}};
    kr_nvrtc *nvrtc = NULL;
    kr_linker *linker = nvjitlink();
    if (kr_nvrtc_open(NULL, &nvrtc, &err) != KR_OK)
        return;
    for (size_t i = 0; i < 2; i++) {
        kr_compiled *compiled = NULL;
        ck_ok(kr_compile(nvrtc, "k.cu", source, cc, &o[i], &compiled, &err));
        const kr_link_input with[] = {pair[0], pair[1], {"k.image", compiled->image, compiled->image_bytes}};
        ck_contains(refused(linker, with, 3, cc, NULL, KR_INVALID_ARGUMENT),
                    "k.image holds machine code that is");
        ck_contains(err.advice, "-rdc=true");
        kr_compiled_destroy(&compiled);
    }
    kr_compiled *code = cubin(nvrtc, source, other); /* relocatable, but for another */
    const kr__fatbin_part part = {KR_IMAGE_CUBIN, other, 0, code->image, code->image_bytes};
    void *image;
    size_t bytes;
    ck_ok(kr__fatbin_write(&part, 1, &image, &bytes, &err));
    const kr_link_input with[] = {pair[0], pair[1], {"k.fatbin", image, bytes}};
    ck_contains(refused(linker, with, 3, cc, NULL, KR_NOT_ON_THIS_DEVICE),
                "k.fatbin holds nothing for sm_90");
    const kr_link_input alone[] = {pair[0], pair[1], {"k.cubin", code->image, code->image_bytes}};
    ck_contains(refused(linker, alone, 3, cc, NULL, KR_NOT_ON_THIS_DEVICE),
                "k.cubin: cubin for sm_80, which does not link for sm_90");
    free(image);
    kr_compiled_destroy(&code);
    kr_nvrtc_close(&nvrtc);
    kr_linker_destroy(&linker);
}
END_TEST

/* A weak name gives way: PTX says .weak, and templates are weak in cubins. */
START_TEST(weak_names_may_double)
{
    static const char weak[] = SCALE(".weak", "neg.f32 %f2, %f1;\n");
    static const char instance[] = "template <class T> __device__ T more(T x) { return x + 1; }\n"
                                   "template __device__ float more<float>(float);\n";
    kr_nvrtc *nvrtc = NULL;
    kr_linked *linked = NULL;
    kr_linker *linker = nvjitlink();
    const kr_cc cc = kr_device_get_info(device)->cc;
    const kr_link_input three[] = {pair[0], {"weak.ptx", weak, sizeof weak}, pair[1]};
    ck_ok(kr_link(linker, three, 3, cc, NULL, &linked, &err));
    run_cubin(linked->image, linked->image_bytes);
    kr_linked_destroy(&linked);
    if (kr_nvrtc_open(NULL, &nvrtc, &err) == KR_OK) {
        kr_compiled *compiled = cubin(nvrtc, instance, cc);
        const kr_link_input more = {"more.cubin", compiled->image, compiled->image_bytes};
        const kr_link_input four[] = {pair[0], pair[1], more, more};
        ck_ok(kr_link(linker, four, 4, cc, NULL, &linked, &err));
        kr_linked_destroy(&linked);
        kr_compiled_destroy(&compiled);
    }
    kr_nvrtc_close(&nvrtc);
    kr_linker_destroy(&linker);
}
END_TEST

START_TEST(wrong_input)
{
    kr_linker *linker = nvjitlink();
    const kr_cc cc = {9, 0, 0};
    static const char bad[] = HEADER ".visible .entry k()\n{\nfrob;\nret;\n}\n";
    static const char future[] = ".version 99.0\n.target sm_75\n.address_size 64\n";
    const kr_link_input inputs[] = {{"bad.ptx", bad, sizeof bad},
                                    {"future.ptx", future, sizeof future},
                                    {"text", "hello", 5},
                                    {"none", NULL, 5}};
    ck_contains(refused(linker, &inputs[0], 1, cc, NULL, KR_COMPILE_FAILED), "frob");
    ck_contains(refused(linker, &inputs[1], 1, cc, NULL, KR_COMPILE_FAILED), "Unsupported .version 99.0");
    ck_contains(err.advice, "kregistry relevel");
    ck_contains(refused(linker, pair, 2, (kr_cc){7, 0, 0}, NULL, KR_NOT_ON_THIS_DEVICE),
                "uses.ptx: PTX 7.5 for sm_75, which does not link for sm_70");
    ck_contains(err.advice, "Compile it for sm_70");
    refused(linker, &inputs[2], 1, cc, NULL, KR_CORRUPT);
    ck_contains(err.chain, "linking text");
    refused(linker, &inputs[3], 1, cc, NULL, KR_INVALID_ARGUMENT);
    refused(linker, inputs, 0, cc, NULL, KR_INVALID_ARGUMENT);
    kr_linker_destroy(&linker);
}
END_TEST

START_TEST(wrong_options)
{
    kr_linker *linker = nvjitlink();
    const char *option = "-nonsense";
    const kr_link_options options = {.struct_size = sizeof options, .options = &option, .n_options = 1};
    ck_contains(refused(linker, pair, 2, (kr_cc){9, 0, 0}, &options, KR_INVALID_ARGUMENT), "-nonsense");
    ck_contains(refused(linker, pair, 2, (kr_cc){99, 0, 0}, NULL, KR_INVALID_ARGUMENT), "-arch=sm_990");
    refused(linker, pair, 2, (kr_cc){0}, NULL, KR_INVALID_ARGUMENT);
    const kr_link_options as_ptx = {.struct_size = sizeof as_ptx, .ptx = true};
    ck_contains(refused(linker, pair, 2, (kr_cc){9, 0, 0}, &as_ptx, KR_INVALID_ARGUMENT), "LTO-IR");
    kr_linker_destroy(&linker);
}
END_TEST

START_TEST(path_that_is_none)
{
    kr_linker *linker = NULL;
    const kr_linker_options options = {sizeof options, "/nowhere/libnvJitLink.so", device};
    ck_assert_int_eq(kr_linker_create(&options, &linker, &err), KR_NOT_ON_THIS_MACHINE);
    ck_contains(err.message, "/nowhere");
    const kr_linker_options none = {sizeof none, "none", NULL};
    ck_assert_int_eq(kr_linker_create(&none, &linker, &err), KR_NOT_ON_THIS_MACHINE);
    ck_assert_ptr_null(linker);
}
END_TEST

/* For a driver, one whose machine code it takes; a newer one only where there is no other. */
static const struct {
    const char *driver; /* NULL: none counts */
    int major;
} drivers[] = {{NULL, 13}, {"13.0", 13}, {"12.4", 12}, {"12.0", 12}, {"11.8", 13}};

START_TEST(newest_for_a_driver)
{
    if (!libcuda) /* the machine's driver is of one version */
        return;
    char folder[] = "/tmp/kr_test_link_XXXXXX", command[1000];
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(command, sizeof command, "cp %s %s/libnvJitLink.so.12 && cp %s %s/libnvJitLink.so.13",
             FAKE_NVJITLINK, folder, FAKE_NVJITLINK, folder);
    ck_assert_int_eq(system(command), 0);
    if (drivers[_i].driver)
        setenv("KREGISTRY_SOFTCUDA_DRIVER", drivers[_i].driver, 1);
    setup();
    kr_linker *linker = NULL;
    ck_ok(kr_linker_create(
        &(kr_linker_options){sizeof(kr_linker_options), folder, drivers[_i].driver ? device : NULL}, &linker,
        &err));
    ck_assert_int_eq(kr_linker_get_info(linker).major, drivers[_i].major);
    kr_linker_destroy(&linker);
    teardown();
    snprintf(command, sizeof command, "rm -r %s", folder);
    ck_assert_int_eq(system(command), 0);
}
END_TEST

/* ---- LTO-IR ---- */

/* NULL: there is none of CUDA 12 or later, and no other makes LTO-IR. */
static kr_nvrtc *nvrtc_of_ltoir(void)
{
    kr_nvrtc *nvrtc = NULL;
    if (kr_nvrtc_open(NULL, &nvrtc, &err) != KR_OK || kr_nvrtc_get_info(nvrtc).major < 12) {
        puts("no NVRTC of CUDA 12 or later: LTO-IR is not tested");
        kr_nvrtc_close(&nvrtc);
    }
    return nvrtc;
}

static kr_compiled *ltoir(kr_nvrtc *nvrtc, const char *name, const char *source, kr_cc arch)
{
    kr_compiled *compiled = NULL;
    const char *const rdc = "-rdc=true";
    const kr_compile_options o = {
        .struct_size = sizeof o, .kind = KR_IMAGE_LTOIR, .options = &rdc, .n_options = 1};
    ck_ok(kr_compile(nvrtc, name, source, arch, &o, &compiled, &err));
    return compiled;
}

START_TEST(lto)
{
    kr_nvrtc *nvrtc = nvrtc_of_ltoir();
    kr_linked *linked = NULL;
    kr_linker *linker = nvjitlink();
    const kr_cc cc = kr_device_get_info(device)->cc;
    if (!nvrtc)
        return;
    kr_compiled *a = ltoir(nvrtc, "a.cu",
                           "__device__ float scale(float); extern \"C\" __global__ void k(float *p)"
                           "{ p[threadIdx.x] = scale(p[threadIdx.x]); }",
                           cc);
    kr_compiled *b = ltoir(nvrtc, "b.cu", "__device__ float scale(float x) { return x + x; }", cc);
    const kr_link_input inputs[] = {{"a", a->image, a->image_bytes}, {"b", b->image, b->image_bytes}};
    ck_ok(kr_link(linker, inputs, 2, cc, NULL, &linked, &err));
    expect_kernel(linked, cc, "k");
    run_cubin(linked->image, linked->image_bytes);
    kr_linked_destroy(&linked);
    /* to PTX, which softcuda runs too */
    const kr_link_options as_ptx = {.struct_size = sizeof as_ptx, .ptx = true};
    ck_ok(kr_link(linker, inputs, 2, cc, &as_ptx, &linked, &err));
    ck_assert_int_eq(linked->kind, KR_IMAGE_PTX);
    ck_contains((const char *)linked->image, ".entry k(");
    ck_assert_uint_eq(strlen(linked->image), linked->image_bytes);
    run_k(linked->image, linked->image_bytes);
    kr_linked_destroy(&linked);
    ck_contains(refused(linker, inputs, 1, cc, NULL, KR_COMPILE_FAILED), "scale");
    ck_contains(err.advice, "Link what defines");
    kr_linker *driver = by_driver();
    ck_contains(refused(driver, inputs, 2, cc, NULL, KR_NOT_ON_THIS_MACHINE), "nvJitLink");
    kr_linker_destroy(&driver);
    kr_linker_destroy(&linker);
    kr_compiled_destroy(&a);
    kr_compiled_destroy(&b);
    kr_nvrtc_close(&nvrtc);
}
END_TEST

/* kr_module_load takes LTO-IR too. */
START_TEST(lto_is_loaded)
{
    kr_nvrtc *nvrtc = nvrtc_of_ltoir();
    kr_module *module = NULL;
    kr_kernel *kernel;
    if (!nvrtc)
        return;
    kr_compiled *a = ltoir(nvrtc, "a.cu", "extern \"C\" __global__ void k(float *p) { p[threadIdx.x] *= 2; }",
                           kr_device_get_info(device)->cc);
    ck_ok(kr_module_load(device, a->image, a->image_bytes, "a.ltoir", &module, &err));
    ck_ok(kr_module_kernel(module, "k", &kernel, &err));
    kr_module_destroy(&module);
    run_cubin(a->image, a->image_bytes);
    setenv("KREGISTRY_NVJITLINK", "none", 1);
    ck_assert_int_eq(kr_module_load(device, a->image, a->image_bytes, "a.ltoir", &module, &err),
                     KR_NOT_ON_THIS_MACHINE);
    ck_contains(err.chain, "a.ltoir");
    kr_compiled_destroy(&a);
    kr_nvrtc_close(&nvrtc);
}
END_TEST

/* ---- threads ---- */

static void *link_many(void *linker)
{
    for (int i = 0; i < 4; i++) {
        kr_linked *linked = NULL;
        kr_error own;
        if (kr_link(linker, pair, 2, (kr_cc){9, 0, 0}, NULL, &linked, &own) != KR_OK)
            return linker;
        kr_linked_destroy(&linked);
    }
    return NULL;
}

START_TEST(threads)
{
    kr_linker *linker = nvjitlink();
    pthread_t thread[4];
    void *failed;
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(pthread_create(&thread[i], NULL, link_many, linker), 0);
    for (int i = 0; i < 4; i++) {
        pthread_join(thread[i], &failed);
        ck_assert_ptr_null(failed);
    }
    kr_linker_destroy(&linker);
}
END_TEST

/* ---- the driver ---- */

START_TEST(driver_links)
{
    kr_linker *linker = by_driver();
    kr_linked *linked = NULL;
    ck_ok(kr_link(linker, pair, 2, (kr_cc){0}, NULL, &linked, &err));
    expect_kernel(linked, kr_device_get_info(device)->cc, "k");
    run_k(linked->image, linked->image_bytes);
    kr_linked_destroy(&linked);
    kr_linker_destroy(&linker);
}
END_TEST

START_TEST(driver_refuses)
{
    kr_linker *linker = by_driver();
    const char *option = "-g";
    const kr_link_options options = {.struct_size = sizeof options, .options = &option, .n_options = 1};
    ck_contains(refused(linker, pair, 1, (kr_cc){0}, NULL, KR_COMPILE_FAILED),
                "Undefined reference to 'scale'");
    ck_assert_int_eq(err.api, KR_API_CUDA);
    refused(linker, pair, 2, (kr_cc){1, 2, 0}, NULL, KR_INVALID_ARGUMENT);
    refused(linker, pair, 2, (kr_cc){0}, &options, KR_NOT_ON_THIS_MACHINE);
    static const char future[] = ".version 99.0\n.target sm_75\n.address_size 64\n";
    const kr_link_input newer = {"future.ptx", future, sizeof future};
    refused(linker, &newer, 1, (kr_cc){0}, NULL, KR_NOT_ON_THIS_DEVICE);
    ck_contains(err.advice, "kregistry relevel");
    kr_linker_destroy(&linker);
}
END_TEST

static bool there_is_nvjitlink(void)
{
    kr_linker *linker = NULL;
    const bool there_is = kr_linker_create(NULL, &linker, &err) == KR_OK;
    kr_linker_destroy(&linker);
    if (!there_is)
        puts("no nvJitLink: the driver's linker alone is tested");
    return there_is;
}

int main(int argc, char **argv)
{
    if (argc != 2 || (strcmp(argv[1], "-") && access(argv[1], R_OK))) {
        printf("skipped: no %s\n", argc > 1 ? argv[1] : "libcuda named");
        return 77;
    }
    libcuda = strcmp(argv[1], "-") ? argv[1] : NULL;
    Suite *suite = suite_create("link");
    TCase *driver = tcase_create("driver"), *library = tcase_create("nvJitLink"),
          *finding = tcase_create("finding");
    tcase_set_timeout(driver, 60);
    tcase_set_timeout(library, 60);
    tcase_add_checked_fixture(driver, setup, teardown);
    tcase_add_checked_fixture(library, setup, teardown);
    tcase_add_loop_test(finding, newest_for_a_driver, 0, sizeof drivers / sizeof drivers[0]);
    tcase_add_test(driver, driver_links);
    tcase_add_test(driver, driver_refuses);
    tcase_add_test(driver, path_that_is_none);
    tcase_add_test(library, header);
    tcase_add_test(library, ptx);
    tcase_add_test(library, names_are_told);
    tcase_add_test(library, names_of_cubins_are_told);
    tcase_add_test(library, linked_code_is_not_left_out);
    tcase_add_test(library, weak_names_may_double);
    tcase_add_test(library, wrong_input);
    tcase_add_test(library, wrong_options);
    tcase_add_test(library, lto);
    tcase_add_test(library, lto_is_loaded);
    tcase_add_test(library, threads);
    suite_add_tcase(suite, finding);
    suite_add_tcase(suite, driver);
    if (there_is_nvjitlink())
        suite_add_tcase(suite, library);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
