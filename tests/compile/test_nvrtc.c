/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Against a real NVRTC: the one that is found, and those that KR_TEST_NVRTC names. The image readers of
 * ptx/image say whether what it made is what was asked for.
 */

#include <check.h>
#include <locale.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <kregistry/compile.h>

#include "abi/nvrtc.h"
#include "ptx/image/image.h"

/* What NVRTC keeps for the life of the process is no leak of ours. */
const char *__lsan_default_suppressions(void) __attribute__((visibility("default")));
const char *__lsan_default_suppressions(void)
{
    return "leak:libnvrtc\n";
}

enum { MOST = 8 };
static const char *paths[MOST] = {NULL};
static int n_paths = 1;

static const kr_cc sm_80 = {8, 0, 0};
static kr_nvrtc *nvrtc;
static kr_error err;

static const char saxpy[] =
    "extern \"C\" __global__ void saxpy(unsigned long long n, float a, const float *x, float *y)\n"
    "{\n"
    "    unsigned long long i = blockIdx.x * (unsigned long long)blockDim.x + threadIdx.x;\n"
    "    if (i < n)\n"
    "        y[i] = a * x[i] + y[i];\n"
    "}\n";

static void open_path(int index)
{
    const kr_status status = kr_nvrtc_open(paths[index], &nvrtc, &err);
    ck_assert_msg(status == KR_OK, "%s\n%s", err.message, err.log);
}

static kr_compiled *compile(const char *source, const kr_compile_options *options)
{
    kr_compiled *compiled = NULL;
    const kr_status status = kr_compile(nvrtc, "t.cu", source, sm_80, options, &compiled, &err);
    ck_assert_msg(status == KR_OK, "%s\n%s", err.message, err.log);
    return compiled;
}

static void refuse(const char *source, const kr_compile_options *options, kr_cc arch, kr_status want)
{
    kr_compiled *compiled = NULL;
    memset(&err, 0, sizeof err);
    ck_assert_int_eq(kr_compile(nvrtc, "t.cu", source, arch, options, &compiled, &err), want);
    ck_assert_ptr_null(compiled);
    ck_assert_str_ne(err.message, "");
    ck_assert_str_ne(err.advice, "");
}

static void expect_text(const char *where, const char *what)
{
    ck_assert_msg(strstr(where, what) != NULL, "\"%s\" is not in:\n%s", what, where);
}

START_TEST(facts)
{
    open_path(_i);
    const kr_nvrtc_info info = kr_nvrtc_get_info(nvrtc);
    fprintf(stderr, "NVRTC %d.%d at %s\n", info.major, info.minor, info.path);
    ck_assert_int_ge(info.major, 11);
    ck_assert_uint_gt(info.n_archs, 0);
    for (size_t i = 1; i < info.n_archs; i++)
        ck_assert_int_lt(info.archs[i - 1], info.archs[i]);
    kr_nvrtc_close(&nvrtc);
}
END_TEST

/* The header beside the library is the truth about the numbers. */
START_TEST(result_numbers)
{
    static const struct {
        const char *name;
        int number;
    } results[] = {
#define RESULT_ROW(name, number) {#name, number},
        NVRTC_RESULT_LIST(RESULT_ROW)
#undef RESULT_ROW
    };
    open_path(_i);
    char path[4096];
    snprintf(path, sizeof path, "%s", kr_nvrtc_get_info(nvrtc).path);
    kr_nvrtc_close(&nvrtc);
    *strrchr(path, '/') = '\0';
    strncat(path, "/../include/nvrtc.h", sizeof path - strlen(path) - 1);
    char *header = NULL;
    size_t bytes;
    if (kr__file_read(path, &header, &bytes, NULL) != KR_OK) {
        fprintf(stderr, "skipped: no %s\n", path);
        return;
    }
    int n = 0;
    for (const char *at = header; (at = strstr(at, "  NVRTC_ERROR_")); at++) {
        char name[64];
        int number;
        if (sscanf(at, " %63[A-Z0-9_] = %d", name, &number) != 2)
            continue;
        size_t i = 0;
        while (i < KR_COUNT(results) && strcmp(results[i].name, name) != 0)
            i++;
        ck_assert_msg(i < KR_COUNT(results), "%s is not in abi/nvrtc.h", name);
        ck_assert_int_eq(results[i].number, number);
        n++;
    }
    ck_assert_int_ge(n, 11);
    free(header);
}
END_TEST

START_TEST(ptx)
{
    open_path(_i);
    kr_compiled *compiled = compile(saxpy, NULL);
    ck_assert_int_eq(compiled->kind, KR_IMAGE_PTX);
    ck_assert_ptr_eq(compiled->ptx, compiled->image);
    ck_assert_uint_eq(compiled->image_bytes, strlen(compiled->ptx));
    expect_text(compiled->ptx, ".target sm_80");
    ck_assert_uint_eq(compiled->n_entries, 1);
    ck_assert_str_eq(compiled->entries[0], "saxpy");
    ck_assert_str_eq(compiled->log, "");
    kr_compiled_destroy(&compiled);
    kr_nvrtc_close(&nvrtc);
}
END_TEST

START_TEST(cubin)
{
    open_path(_i);
    kr_compiled *compiled =
        compile("__global__ void b(int *x) { *x = 1; }\n"
                "extern \"C\" __global__ void a(int *x) { *x = 2; }\n",
                &(kr_compile_options){.struct_size = sizeof(kr_compile_options), .kind = KR_IMAGE_CUBIN});
    ck_assert_int_eq(compiled->kind, KR_IMAGE_CUBIN);
    ck_assert_ptr_null(compiled->ptx);
    kr__cubin *read = NULL;
    ck_assert_int_eq(kr__cubin_read(compiled->image, compiled->image_bytes, &read, &err), KR_OK);
    ck_assert_int_eq(read->arch.major * 10 + read->arch.minor, 80);
    ck_assert_uint_eq(read->n_kernels, compiled->n_entries);
    for (size_t i = 0; i < read->n_kernels; i++) {
        size_t same = 0;
        for (size_t k = 0; k < compiled->n_entries; k++)
            same += strcmp(read->kernels[i].name, compiled->entries[k]) == 0;
        ck_assert_uint_eq(same, 1);
    }
    kr__cubin_free(&read);
    kr_compiled_destroy(&compiled);
    kr_nvrtc_close(&nvrtc);
}
END_TEST

START_TEST(fatbin)
{
    open_path(_i);
    kr_compiled *compiled = compile(
        saxpy, &(kr_compile_options){.struct_size = sizeof(kr_compile_options), .kind = KR_IMAGE_FATBIN});
    ck_assert_int_eq(compiled->kind, KR_IMAGE_FATBIN);
    expect_text(compiled->ptx, ".target sm_80");
    kr__fatbin *read = NULL;
    ck_assert_int_eq(kr__fatbin_read(compiled->image, compiled->image_bytes, &read, &err), KR_OK);
    ck_assert_uint_eq(read->n_entries, 2);
    ck_assert_int_eq(read->entries[0].kind, KR_IMAGE_CUBIN);
    ck_assert_int_eq(read->entries[1].kind, KR_IMAGE_PTX);
    int major, minor;
    ck_assert_int_eq(sscanf(strstr(compiled->ptx, ".version"), ".version %d.%d", &major, &minor), 2);
    ck_assert_int_eq(read->entries[1].isa, major * 10 + minor);
    char *text = NULL;
    size_t bytes;
    ck_assert_int_eq(kr__fatbin_unpack(&read->entries[1], &text, &bytes, &err), KR_OK);
    ck_assert_str_eq(text, compiled->ptx);
    free(text);
    kr__fatbin_free(&read);
    kr_compiled_destroy(&compiled);
    kr_nvrtc_close(&nvrtc);
}
END_TEST

START_TEST(ltoir)
{
    open_path(_i);
    const kr_compile_options options = {.struct_size = sizeof options, .kind = KR_IMAGE_LTOIR};
    if (kr_nvrtc_get_info(nvrtc).major < 12) {
        refuse(saxpy, &options, sm_80, KR_NOT_ON_THIS_MACHINE);
    } else {
        kr_compiled *compiled = compile(saxpy, &options);
        ck_assert_int_eq(compiled->kind, KR_IMAGE_LTOIR);
        ck_assert_uint_gt(compiled->image_bytes, 0);
        kr_compiled_destroy(&compiled);
    }
    kr_nvrtc_close(&nvrtc);
}
END_TEST

/* Every kind, and that it is what a compile makes. */
START_TEST(kept_in_a_cache)
{
    char folder[] = "/tmp/kr_compile_XXXXXX", command[60];
    open_path(_i);
    kr_cache *cache = NULL;
    ck_assert_ptr_nonnull(mkdtemp(folder));
    ck_assert_int_eq(kr_cache_create(folder, NULL, &cache, &err), KR_OK);
    for (kr_image_kind kind = KR_IMAGE_PTX; kind <= KR_IMAGE_LTOIR; kind++) {
        kr_compile_options options = {.struct_size = sizeof options, .kind = kind, .cache = cache};
        if (kind == KR_IMAGE_LTOIR && kr_nvrtc_get_info(nvrtc).major < 12)
            continue;
        kr_compiled *first = compile(saxpy, &options), *second = compile(saxpy, &options);
        ck_assert(!first->is_found && second->is_found);
        ck_assert_int_eq(first->kind, second->kind);
        ck_assert_uint_eq(first->image_bytes, second->image_bytes);
        ck_assert_mem_eq(first->image, second->image, first->image_bytes);
        ck_assert_pstr_eq(first->ptx, second->ptx);
        ck_assert_uint_eq(first->n_entries, second->n_entries);
        kr_compiled_destroy(&first);
        kr_compiled_destroy(&second);
        ck_assert_int_eq(chdir(folder), 0); /* where LTO-IR is another */
        first = compile(saxpy, &options);
        options.cache = NULL;
        second = compile(saxpy, &options);
        ck_assert_int_eq(chdir("/"), 0);
        ck_assert_uint_eq(first->image_bytes, second->image_bytes);
        ck_assert_mem_eq(first->image, second->image, first->image_bytes);
        kr_compiled_destroy(&first);
        kr_compiled_destroy(&second);
    }
    kr_cache_destroy(&cache);
    kr_nvrtc_close(&nvrtc);
    snprintf(command, sizeof command, "rm -r %s", folder);
    ck_assert_int_eq(system(command), 0);
}
END_TEST

START_TEST(name_expressions)
{
    open_path(_i);
    const char *const expressions[] = {"f<float>", "ns::table"};
    kr_compiled *compiled = compile("template <class T> __global__ void f(T *x) { *x = 1; }\n"
                                    "namespace ns { __constant__ int table[4]; }\n",
                                    &(kr_compile_options){.struct_size = sizeof(kr_compile_options),
                                                          .name_expressions = expressions,
                                                          .n_name_expressions = 2});
    ck_assert_str_eq(compiled->lowered_names[0], "_Z1fIfEvPT_");
    ck_assert_str_eq(compiled->lowered_names[1], "_ZN2ns5tableE");
    ck_assert_str_eq(compiled->entries[0], "_Z1fIfEvPT_");
    kr_compiled_destroy(&compiled);
    refuse(saxpy,
           &(kr_compile_options){.struct_size = sizeof(kr_compile_options),
                                 .name_expressions = expressions,
                                 .n_name_expressions = 1},
           sm_80, KR_COMPILE_FAILED);
    expect_text(err.log, "name expression");
    expect_text(err.message, "\"f < float >\" names nothing in ");
    expect_text(err.message, "identifier \"f\" is undefined");
    expect_text(err.advice, "Correct the name expression");
    kr_nvrtc_close(&nvrtc);
}
END_TEST

START_TEST(standard_headers)
{
    open_path(_i);
    kr_compiled *compiled =
        compile("#include <stdint.h>\n#include <stddef.h>\n#include <limits.h>\n#include <float.h>\n"
                "#include <cstdint>\n#include <cstddef>\n#include <climits>\n#include <cfloat>\n"
                "#include <stdbool.h>\n"
                "struct s { char a; double b; };\n"
                "static_assert(sizeof(std::int64_t) == 8 && sizeof(uint16_t) == 2, \"\");\n"
                "static_assert(sizeof(intptr_t) == sizeof(void *) && sizeof(std::size_t) == 8, \"\");\n"
                "static_assert(INT64_MAX == 9223372036854775807 && UINT8_MAX == 255, \"\");\n"
                "static_assert(INT_MIN == -2147483647 - 1 && CHAR_BIT == 8, \"\");\n"
                "static_assert(LONG_MAX == 9223372036854775807 && SIZE_MAX == ~0ull, \"\");\n"
                "static_assert(FLT_MAX * 2.0 > FLT_MAX && 1 + DBL_EPSILON > 1, \"\");\n"
                "static_assert(offsetof(s, b) == 8, \"\");\n"
                "static_assert((float)FLT_MAX == 0x1.fffffep127f && FLT_MIN == 0x1p-126f, \"\");\n"
                "static_assert(DBL_MAX == 0x1.fffffffffffffp1023 && DBL_MIN == 0x1p-1022, \"\");\n"
                "static_assert(FLT_EPSILON == 0x1p-23f && DBL_EPSILON == 0x1p-52, \"\");\n"
                "extern \"C\" __global__ void k(uint64_t n, std::ptrdiff_t *p) { *p = n; }\n",
                NULL);
    ck_assert_uint_eq(compiled->n_entries, 1);
    kr_compiled_destroy(&compiled);
    char *text;
    size_t bytes;
    ck_assert(!kr__file_read(STANDARD_CU, &text, &bytes, &err));
    compiled = compile(text, NULL);
    ck_assert_str_eq(compiled->entries[0], "standard");
    kr_compiled_destroy(&compiled);
    free(text);
    static const char *const languages[] = {"--std=c++11", "--std=c++14"};
    for (size_t i = 0; i < KR_COUNT(languages); i++) {
        compiled =
            compile("#include <cmath>\n#include <limits>\n#include <type_traits>\n"
                    "static_assert(std::is_same<std::conditional_t<true, int, char>, int>::value, \"\");\n"
                    "static_assert(std::numeric_limits<int>::max() == 2147483647, \"\");\n",
                    &(kr_compile_options){
                        .struct_size = sizeof(kr_compile_options), .options = &languages[i], .n_options = 1});
        kr_compiled_destroy(&compiled);
    }
    kr_nvrtc_close(&nvrtc);
}
END_TEST

START_TEST(given_headers)
{
    open_path(_i);
    const char *const names[] = {"mine.h", "stdint.h"}, *const texts[] = {"#define MINE 7\n",
                                                                          "#define OURS 1\n"};
    const kr_compile_options options = {
        .struct_size = sizeof options, .header_names = names, .header_texts = texts, .n_headers = 2};
    kr_compiled *compiled = compile("#include \"mine.h\"\n#include <stdint.h>\n"
                                    "static_assert(MINE == 7 && OURS == 1, \"\");\n__global__ void k() {}\n",
                                    &options);
    kr_compiled_destroy(&compiled);
    kr_nvrtc_close(&nvrtc);
}
END_TEST

/* A file of the caller's is not hidden by the header of that name which is there without it. */
static void put(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    ck_assert(file && fputs(text, file) >= 0 && fclose(file) == 0);
}

START_TEST(headers_in_a_folder)
{
    open_path(_i);
    static const char text[] = "#define OURS 1\n";
    static const char source[] =
        "#include \"limits.h\"\n#include <stdint.h>\n"
        "static_assert(OURS == 1 && INT8_MAX == 127, \"\");\n__global__ void k() {}\n";
    char folder[] = "/tmp/kr_test_include_XXXXXX", path[64], joined[64];
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/limits.h", folder);
    snprintf(joined, sizeof joined, "-I%s", folder);
    put(path, text);
    const char *const spellings[][2] = {{joined, "-DX"}, {"-I", folder}, {"--include-path", folder}};
    for (size_t i = 0; i < 3; i++) {
        const kr_compile_options options = {
            .struct_size = sizeof options, .options = spellings[i], .n_options = 2};
        kr_compiled *compiled = compile(source, &options);
        kr_compiled_destroy(&compiled);
    }
    remove(path);
    remove(folder);
    kr_nvrtc_close(&nvrtc);
}
END_TEST

/* Where the toolkit's headers lie beside NVRTC a half is at hand; elsewhere the message says what is missing.
 */
START_TEST(toolkit_headers)
{
    open_path(_i);
    const char source[] =
        "#include <cuda_fp16.h>\nextern \"C\" __global__ void k(__half *x) { *x = __float2half(2.0f); }\n";
    kr_compiled *compiled = NULL;
    const kr_status status = kr_compile(nvrtc, "t.cu", source, sm_80, NULL, &compiled, &err);
    if (status) {
        ck_assert_int_eq(status, KR_COMPILE_FAILED);
        expect_text(err.log, "include folders searched");
        expect_text(err.advice, "do not lie beside this NVRTC");
    }
    kr_compiled_destroy(&compiled);
    kr_nvrtc_close(&nvrtc);
}
END_TEST

START_TEST(numbered_lines)
{
    open_path(_i);
    refuse("// one\n"
           "extern \"C\" __global__ void k(float *y)\n"
           "{\n"
           "    int i = threadIdx.x;\n"
           "    y[i] = undeclared;\n"
           "    y[i] += 1;\n"
           "}\n"
           "// eight\n",
           NULL, sm_80, KR_COMPILE_FAILED);
    ck_assert_int_eq(err.code, 6);
    expect_text(err.message, "t.cu(5): error: identifier \"undeclared\" is undefined");
    expect_text(err.log, "\n        3 | {\n"
                         "        4 |     int i = threadIdx.x;\n"
                         "  >     5 |     y[i] = undeclared;\n"
                         "        6 |     y[i] += 1;\n"
                         "        7 | }\n");
    ck_assert_ptr_null(strstr(err.log, "// one"));
    ck_assert_ptr_null(strstr(err.log, "// eight"));
    kr_nvrtc_close(&nvrtc);
}
END_TEST

START_TEST(missing_header)
{
    open_path(_i);
    const char *const options[] = {"-I/no/such/folder", "-I", "/another"};
    refuse(
        "#include <no_such.h>\n",
        &(kr_compile_options){.struct_size = sizeof(kr_compile_options), .options = options, .n_options = 3},
        sm_80, KR_COMPILE_FAILED);
    expect_text(err.message, "t.cu(1)");
    expect_text(err.message, "no_such.h");
    expect_text(err.log, "include folders searched:\n  /no/such/folder\n  /another\n");
    kr_nvrtc_close(&nvrtc);
}
END_TEST

START_TEST(other_headers_version)
{
    open_path(_i);
    char folder[] = "/tmp/kr_test_include_XXXXXX", path[64], option[64];
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/cuda.h", folder);
    snprintf(option, sizeof option, "-I%s", folder);
    static const char cuda_h[] = "#define CUDA_VERSION 10020\n";
    put(path, cuda_h);
    const char *const options[] = {option};
    refuse(
        "int x = y;\n",
        &(kr_compile_options){.struct_size = sizeof(kr_compile_options), .options = options, .n_options = 1},
        sm_80, KR_COMPILE_FAILED);
    expect_text(err.log, "are of CUDA 10.2, this NVRTC is ");
    remove(path);
    remove(folder);
    kr_nvrtc_close(&nvrtc);
}
END_TEST

START_TEST(refused_option)
{
    open_path(_i);
    const char *const options[] = {"--use_fast_math", "--bogus"};
    refuse(
        saxpy,
        &(kr_compile_options){.struct_size = sizeof(kr_compile_options), .options = options, .n_options = 2},
        sm_80, KR_INVALID_ARGUMENT);
    ck_assert_int_eq(err.code, 5);
    expect_text(err.message, "--bogus");
    expect_text(err.message, kr_nvrtc_get_info(nvrtc).path);
    expect_text(err.log, "  --gpu-architecture=compute_80\n  --use_fast_math\n  --bogus\n");
    kr_nvrtc_close(&nvrtc);
}
END_TEST

START_TEST(unknown_arch)
{
    open_path(_i);
    refuse(saxpy, NULL, (kr_cc){99, 9, 0}, KR_NOT_ON_THIS_MACHINE);
    expect_text(err.message, "compute_999");
    expect_text(err.message, "80, 86");
    expect_text(err.advice, "newer");
    refuse(saxpy, NULL, (kr_cc){2, 0, 0}, KR_NOT_ON_THIS_MACHINE);
    expect_text(err.advice, "older");
    /* A base that is known with a suffix that it does not have. */
    refuse(saxpy, NULL, (kr_cc){8, 0, 'a'}, KR_NOT_ON_THIS_MACHINE);
    expect_text(err.message, "compute_80a");
    kr_nvrtc_close(&nvrtc);
}
END_TEST

START_TEST(suffix)
{
    open_path(_i);
    if (kr_nvrtc_get_info(nvrtc).major >= 12) {
        kr_compiled *compiled = NULL;
        const kr_status status = kr_compile(nvrtc, "t.cu", saxpy, (kr_cc){9, 0, 'a'}, NULL, &compiled, &err);
        ck_assert_msg(status == KR_OK, "%s", err.message);
        expect_text(compiled->ptx, ".target sm_90a");
        ck_assert_int_eq(compiled->arch.suffix, 'a');
        kr_compiled_destroy(&compiled);
    }
    kr_nvrtc_close(&nvrtc);
}
END_TEST

/* One language, whichever NVRTC: 11 takes C++03 when not told. */
START_TEST(language)
{
    open_path(_i);
    const char source[] = "static_assert(__cplusplus == WANT, \"\");\n__global__ void k() {}\n";
    const char *options[] = {"-DWANT=201703L", NULL};
    kr_compile_options given = {.struct_size = sizeof given, .options = options, .n_options = 1};
    kr_compiled *compiled = compile(source, &given);
    kr_compiled_destroy(&compiled);
    options[0] = "-DWANT=201402L";
    options[1] = "--std=c++14";
    given.n_options = 2;
    compiled = compile(source, &given);
    kr_compiled_destroy(&compiled);
    kr_nvrtc_close(&nvrtc);
}
END_TEST

START_TEST(warnings_are_kept)
{
    open_path(_i);
    kr_compiled *compiled = compile("extern \"C\" __global__ void k() { int unused; }\n", NULL);
    expect_text(compiled->log, "\"unused\"");
    kr_compiled_destroy(&compiled);
    kr_nvrtc_close(&nvrtc);
}
END_TEST

START_TEST(locale_is_no_matter)
{
    static const char source[] = "extern \"C\" __global__ void k(double *x) { *x *= 123.456; }\n";
    open_path(_i);
    kr_compiled *plain = compile(source, NULL);
    if (!setlocale(LC_ALL, "de_DE.UTF-8"))
        ck_assert_ptr_nonnull(setlocale(LC_ALL, "C.UTF-8"));
    kr_compiled *other = compile(source, NULL);
    ck_assert_str_eq(plain->ptx, other->ptx);
    expect_text(plain->ptx, "0d405EDD2F1A9FBE77"); /* 123.456 in IEEE 754 */
    kr_compiled_destroy(&plain);
    kr_compiled_destroy(&other);
    kr_nvrtc_close(&nvrtc);
}
END_TEST

/* Without its builtins: some work, where the dynamic linker knows others; the rest say what is missing. */
START_TEST(without_builtins)
{
    open_path(_i);
    char folder[] = "/tmp/kr_test_alone_XXXXXX", path[64];
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/libnvrtc.so.13", folder);
    char *real = realpath(kr_nvrtc_get_info(nvrtc).path, NULL);
    kr_nvrtc_close(&nvrtc);
    if (link(real, path) == 0) {
        kr_compiled *compiled = NULL;
        ck_assert_int_eq(kr_nvrtc_open(folder, &nvrtc, &err), KR_OK);
        const kr_status status = kr_compile(nvrtc, "t.cu", saxpy, sm_80, NULL, &compiled, &err);
        if (status) {
            ck_assert_int_eq(status, KR_NOT_ON_THIS_MACHINE);
            expect_text(err.message, "libnvrtc-builtins");
            ck_assert_ptr_null(strstr(err.log, "blockIdx"));
        }
        kr_compiled_destroy(&compiled);
        kr_nvrtc_close(&nvrtc);
    } else {
        fprintf(stderr, "skipped: %s is on another file system\n", real);
    }
    free(real);
    remove(path);
    remove(folder);
}
END_TEST

static void *compile_some(void *user)
{
    const int number = *(int *)user;
    for (int round = 0; round < 3; round++) {
        char source[256], name[32];
        snprintf(name, sizeof name, "k%d_%d", number % 2, round);
        snprintf(source, sizeof source,
                 "extern \"C\" __global__ void %s(float *x) { x[threadIdx.x] *= %d; }\n", name, round);
        kr_compiled *compiled = NULL;
        kr_error own;
        const bool fails = number == 3;
        if (fails)
            strcat(source, "int x = y;\n");
        const kr_status status = kr_compile(nvrtc, "t.cu", source, sm_80, NULL, &compiled, &own);
        if (fails ? status != KR_COMPILE_FAILED || !strstr(own.log, "\"y\"")
                  : status != KR_OK || strcmp(compiled->entries[0], name) != 0)
            return "wrong";
        kr_compiled_destroy(&compiled);
    }
    return NULL;
}

/* Opened here, used by threads that have ended when the process ends. */
START_TEST(many_threads)
{
    open_path(_i);
    pthread_t threads[8];
    int numbers[8];
    for (int i = 0; i < 8; i++) {
        numbers[i] = i;
        ck_assert_int_eq(pthread_create(&threads[i], NULL, compile_some, &numbers[i]), 0);
    }
    for (int i = 0; i < 8; i++) {
        void *wrong;
        pthread_join(threads[i], &wrong);
        ck_assert_ptr_null(wrong);
    }
    kr_nvrtc_close(&nvrtc);
}
END_TEST

/* Loaded already, it is taken before any other place is looked at. */
START_TEST(loaded_already)
{
    open_path(_i);
    unsetenv("KREGISTRY_NVRTC");
    char path[4096];
    snprintf(path, sizeof path, "%s", kr_nvrtc_get_info(nvrtc).path);
    kr_nvrtc_close(&nvrtc);
    setenv("CUDA_HOME", "/nowhere", 1);
    ck_assert_int_eq(kr_nvrtc_open(NULL, &nvrtc, &err), KR_OK);
    ck_assert_str_eq(kr_nvrtc_get_info(nvrtc).path, path);
    kr_nvrtc_close(&nvrtc);
}
END_TEST

/* In a process of its own, so that the tests' begin without an NVRTC. */
static bool any_nvrtc(void)
{
    const pid_t child = fork();
    if (child == 0)
        _exit(kr_nvrtc_open(NULL, &nvrtc, &err) == KR_OK ? 0 : kr_error_print(&err, stderr));
    int status = 1;
    waitpid(child, &status, 0);
    return status == 0;
}

int main(void)
{
    char *more = getenv("KR_TEST_NVRTC");
    for (char *path = more ? strtok(more, ":") : NULL; path && n_paths < MOST; path = strtok(NULL, ":"))
        paths[n_paths++] = path;
    if (!any_nvrtc())
        return 77;
    Suite *suite = suite_create("compile: NVRTC");
    TCase *tests = tcase_create("all");
    tcase_set_timeout(tests, 60);
#define ADD(test) tcase_add_loop_test(tests, test, 0, n_paths)
    ADD(facts);
    ADD(result_numbers);
    ADD(ptx);
    ADD(cubin);
    ADD(fatbin);
    ADD(ltoir);
    ADD(kept_in_a_cache);
    ADD(name_expressions);
    ADD(standard_headers);
    ADD(given_headers);
    ADD(headers_in_a_folder);
    ADD(toolkit_headers);
    ADD(numbered_lines);
    ADD(missing_header);
    ADD(other_headers_version);
    ADD(refused_option);
    ADD(unknown_arch);
    ADD(suffix);
    ADD(language);
    ADD(warnings_are_kept);
    ADD(locale_is_no_matter);
    ADD(without_builtins);
    ADD(many_threads);
    ADD(loaded_already);
#undef ADD
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
