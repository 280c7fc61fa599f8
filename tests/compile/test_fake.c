/* SPDX-License-Identifier: Apache-2.0 */

/* What only an NVRTC that misbehaves can show; fake_nvrtc.c is that. Needs no real one. */

#include <check.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ptx/compile/nvrtc.h"

static const kr_cc sm_80 = {8, 0, 0};
static kr_nvrtc *fake;
static kr_error err;

static void open_fake(void)
{
    memset(&err, 0, sizeof err);
    ck_assert_int_eq(kr_nvrtc_open(FAKE_NVRTC, &fake, &err), KR_OK);
}

static void close_fake(void)
{
    kr_nvrtc_close(&fake);
    ck_assert_ptr_null(fake);
    kr_nvrtc_close(&fake);
}

static kr_compiled *compile(const char *source, const kr_compile_options *options)
{
    kr_compiled *compiled = NULL;
    const kr_status status = kr_compile(fake, "fake.cu", source, sm_80, options, &compiled, &err);
    ck_assert_msg(status == KR_OK, "%s", err.message);
    return compiled;
}

static void refuse(const char *source, const kr_compile_options *options, kr_status want)
{
    kr_compiled *compiled = NULL;
    ck_assert_int_eq(kr_compile(fake, "fake.cu", source, sm_80, options, &compiled, &err), want);
    ck_assert_ptr_null(compiled);
    ck_assert_str_ne(err.message, "");
    ck_assert_str_ne(err.advice, "");
}

START_TEST(facts)
{
    const kr_nvrtc_info info = kr_nvrtc_get_info(fake);
    ck_assert_str_eq(info.path, FAKE_NVRTC);
    ck_assert_int_eq(info.major * 10 + info.minor, 130);
    ck_assert_uint_eq(info.n_archs, 3);
    ck_assert_int_eq(info.archs[2], 120);
}
END_TEST

START_TEST(a_named_file_that_will_not_do_is_told)
{
    kr_nvrtc *none = NULL;
    ck_assert_int_eq(kr_nvrtc_open("/etc/passwd", &none, &err), KR_NOT_ON_THIS_MACHINE);
    ck_assert_ptr_nonnull(strstr(err.message, "the path is no usable NVRTC: /etc/passwd: "));
    ck_assert_int_eq(kr_nvrtc_open("", &none, &err), KR_INVALID_ARGUMENT);
    setenv("KREGISTRY_NVRTC", "/nonexistent", 1);
    ck_assert_int_eq(kr_nvrtc_open(NULL, &none, &err), KR_NOT_ON_THIS_MACHINE);
    ck_assert_ptr_nonnull(
        strstr(err.message, "what KREGISTRY_NVRTC names is no usable NVRTC: /nonexistent: "));
    ck_assert_ptr_null(none);
    unsetenv("KREGISTRY_NVRTC");
}
END_TEST

START_TEST(none_is_wanted)
{
    kr_nvrtc *none = NULL;
    ck_assert_int_eq(kr_nvrtc_open("none", &none, &err), KR_NOT_ON_THIS_MACHINE);
    ck_assert_str_eq(err.message, "NVRTC is switched off: the path is none");
    setenv("KREGISTRY_NVRTC", "none", 1);
    ck_assert_int_eq(kr_nvrtc_open(NULL, &none, &err), KR_NOT_ON_THIS_MACHINE);
    ck_assert_str_eq(err.message, "NVRTC is switched off: KREGISTRY_NVRTC is none");
    ck_assert_ptr_null(none);
    unsetenv("KREGISTRY_NVRTC");
}
END_TEST

/* Of what is installed it says nothing, so it must not read like it. */
START_TEST(no_descriptor_left_is_not_no_nvrtc)
{
    static const char *const paths[] = {FAKE_NVRTC, FAKE_FOLDER, NULL};
    kr_nvrtc *none = NULL;
    struct rlimit before;
    getrlimit(RLIMIT_NOFILE, &before);
    setrlimit(RLIMIT_NOFILE, &(struct rlimit){3, before.rlim_max});
    const kr_status status = kr_nvrtc_open(paths[_i], &none, &err);
    setrlimit(RLIMIT_NOFILE, &before);
    ck_assert_int_eq(status, KR_IO);
    ck_assert_ptr_null(none);
    ck_assert_int_eq(err.api, KR_API_ERRNO);
    ck_assert_str_eq(err.code_name, "EMFILE");
}
END_TEST

START_TEST(lists_have_what_their_counts_say)
{
    static const char *const gap[] = {NULL};
    const struct {
        kr_compile_options options;
        const char *message;
    } rows[] = {
        {{.n_options = 1}, "options is NULL, but there are to be 1"},
        {{.n_options = 1, .options = gap}, "options[0] is NULL"},
        {{.n_name_expressions = 2}, "name_expressions is NULL, but there are to be 2"},
        {{.n_headers = 1, .header_texts = gap}, "header_names is NULL, but there are to be 1"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        kr_compile_options options = rows[i].options;
        kr_compiled *compiled = NULL;
        options.struct_size = sizeof options;
        ck_assert_int_eq(kr_compile(fake, "t.cu", "", sm_80, &options, &compiled, &err), KR_INVALID_ARGUMENT);
        ck_assert_str_eq(err.message, rows[i].message);
    }
}
END_TEST

START_TEST(builtins_missing)
{
    refuse("builtins", NULL, KR_NOT_ON_THIS_MACHINE);
    ck_assert_int_eq(err.api, KR_API_NVRTC);
    ck_assert_int_eq(err.code, 7);
    ck_assert_str_eq(err.code_name, "NVRTC_ERROR_BUILTIN_OPERATION_FAILURE");
    ck_assert_ptr_nonnull(strstr(err.message, "libnvrtc-builtins.so.13.0"));
    ck_assert_ptr_nonnull(strstr(err.message, FAKE_NVRTC));
    ck_assert_ptr_nonnull(strstr(err.log, "failed to open"));
}
END_TEST

START_TEST(internal_error)
{
    refuse("internal", NULL, KR_FOREIGN);
    ck_assert_int_eq(err.code, 11);
    ck_assert_str_eq(err.function, "nvrtcCompileProgram");
}
END_TEST

START_TEST(an_assembler_without_memory_is_no_fault_of_the_source)
{
    refuse("memory", NULL, KR_OUT_OF_HOST_MEMORY);
    ck_assert_str_eq(err.code_name, "NVRTC_ERROR_COMPILATION");
    ck_assert_ptr_nonnull(strstr(err.log, "Memory allocation failure"));
}
END_TEST

/* There is no toolkit beside the fake. */
START_TEST(a_missing_header_lists_those_that_are_there)
{
    refuse("missing vector", NULL, KR_COMPILE_FAILED);
    ck_assert_ptr_nonnull(strstr(err.log, "headers that need no folder: stdint.h, cstdint, "));
}
END_TEST

/* The advice is about the header that is missing. */
static const struct {
    const char *source, *advice;
} missing[] = {
    {"missing cuda_fp16.h", "install those of CUDA 13.0"},
    {"missing cub/cub.cuh", "install those of CUDA 13.0"},
    {"missing vector", "keep <vector> out"},
    {"missing mine.h", "Add the header's folder"},
    {"missing cudnn/mine", "Add the header's folder"},
};

START_TEST(a_missing_header_is_known)
{
    refuse(missing[_i].source, NULL, KR_COMPILE_FAILED);
    ck_assert_msg(strstr(err.advice, missing[_i].advice), "%s", err.advice);
}
END_TEST

START_TEST(lowered_name_is_copied)
{
    const char *const expression = "f<int>";
    kr_compiled *compiled = compile("", &(kr_compile_options){.struct_size = sizeof(kr_compile_options),
                                                              .name_expressions = &expression,
                                                              .n_name_expressions = 1});
    ck_assert_str_eq(compiled->lowered_names[0], "_Zf<int>");
    kr_compiled_destroy(&compiled);
    ck_assert_ptr_null(compiled);
    kr_compiled_destroy(&compiled);
}
END_TEST

START_TEST(lowered_name_is_empty)
{
    const char *const expression = "alias";
    refuse("",
           &(kr_compile_options){.struct_size = sizeof(kr_compile_options),
                                 .name_expressions = &expression,
                                 .n_name_expressions = 1},
           KR_INVALID_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(err.message, "\"alias\""));
}
END_TEST

START_TEST(kind_is_what_came_back)
{
    const kr_compile_options cubin = {.struct_size = sizeof cubin, .kind = KR_IMAGE_CUBIN};
    kr_compiled *compiled = compile("", &cubin);
    ck_assert_int_eq(compiled->kind, KR_IMAGE_CUBIN);
    ck_assert_mem_eq(compiled->image, "\177ELF", 4);
    ck_assert_ptr_null(compiled->ptx);
    kr_compiled_destroy(&compiled);

    compiled = compile("no cubin", &cubin);
    ck_assert_int_eq(compiled->kind, KR_IMAGE_PTX);
    ck_assert_ptr_eq(compiled->image, compiled->ptx);
    ck_assert_uint_eq(compiled->image_bytes, strlen(compiled->ptx));
    kr_compiled_destroy(&compiled);

    refuse("nothing", &cubin, KR_FOREIGN);
}
END_TEST

START_TEST(entries)
{
    kr_compiled *compiled = compile("", NULL);
    ck_assert_uint_eq(compiled->n_entries, 2);
    ck_assert_str_eq(compiled->entries[0], "first");
    ck_assert_str_eq(compiled->entries[1], "second$1");
    kr_compiled_destroy(&compiled);
}
END_TEST

START_TEST(locale_is_c_meanwhile)
{
    if (!setlocale(LC_ALL, "C.UTF-8")) {
        fprintf(stderr, "skipped: no locale C.UTF-8\n");
        return;
    }
    const locale_t before = uselocale((locale_t)0);
    kr_compiled *compiled = compile("locale", NULL);
    ck_assert_str_eq(compiled->log, "ANSI_X3.4-1968");
    ck_assert_ptr_eq(uselocale((locale_t)0), before);
    kr_compiled_destroy(&compiled);
}
END_TEST

START_TEST(no_ltoir_function)
{
    refuse("", &(kr_compile_options){.struct_size = sizeof(kr_compile_options), .kind = KR_IMAGE_LTOIR},
           KR_NOT_ON_THIS_MACHINE);
    ck_assert_ptr_nonnull(strstr(err.message, "nvrtcGetLTOIR"));
}
END_TEST

START_TEST(bad_arguments)
{
    const char *const option = "-arch=sm_90";
    refuse(
        "",
        &(kr_compile_options){.struct_size = sizeof(kr_compile_options), .options = &option, .n_options = 1},
        KR_INVALID_ARGUMENT);
    kr_compiled *compiled = NULL;
    ck_assert_int_eq(kr_compile(fake, "fake.cu", NULL, sm_80, NULL, &compiled, &err), KR_INVALID_ARGUMENT);
    ck_assert_int_eq(
        kr_compile(fake, "fake.cu", "", sm_80, &(kr_compile_options){.kind = KR_IMAGE_PTX}, &compiled, &err),
        KR_INVALID_ARGUMENT);
    ck_assert_int_eq(kr_compile(fake, "fake.cu", "", (kr_cc){6, 1, 0}, NULL, &compiled, NULL),
                     KR_NOT_ON_THIS_MACHINE);
}
END_TEST

/* ---- finding ---- */

static char folder[64];

static void make_folder(void)
{
    strcpy(folder, "/tmp/kr_test_compile_XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
}

static void remove_folder(void)
{
    char command[128];
    snprintf(command, sizeof command, "rm -r '%s'", folder);
    ck_assert_int_eq(system(command), 0);
}

/* <folder>/<where>/<name> is a copy of the fake, or a file that is no library. */
static void put(const char *where, const char *name, bool good)
{
    char command[1024];
    snprintf(command, sizeof command, "mkdir -p '%s/%s' && cp %s '%s/%s/%s'", folder, where,
             good ? FAKE_NVRTC : "/etc/passwd", folder, where, name);
    ck_assert_int_eq(system(command), 0);
}

static void expect_found(const char *path, const char *want)
{
    kr_nvrtc *nvrtc = NULL;
    char whole[512];
    const kr_status status = kr_nvrtc_open(path, &nvrtc, &err);
    ck_assert_msg(status == KR_OK, "%s\n%s", err.message, err.log);
    snprintf(whole, sizeof whole, "%s/%s", folder, want);
    ck_assert_str_eq(kr_nvrtc_get_info(nvrtc).path, whole);
    kr_nvrtc_close(&nvrtc);
}

START_TEST(nothing_there)
{
    kr_nvrtc *nvrtc = NULL;
    ck_assert_int_eq(kr_nvrtc_open(folder, &nvrtc, &err), KR_NOT_ON_THIS_MACHINE);
    ck_assert_ptr_null(nvrtc);
    ck_assert_ptr_nonnull(strstr(err.message, folder));
    ck_assert_ptr_nonnull(strstr(err.log, "no libnvrtc.so"));
    ck_assert_str_ne(err.advice, "");

    put("", "libnvrtc.so.13", false);
    ck_assert_int_eq(kr_nvrtc_open(folder, &nvrtc, &err), KR_NOT_ON_THIS_MACHINE);
    ck_assert_ptr_nonnull(strstr(err.log, "libnvrtc.so.13"));

    char path[128];
    snprintf(path, sizeof path, "%s/libnvrtc.so.14", folder); /* nobody writes to it */
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    ck_assert_int_eq(kr_nvrtc_open(folder, &nvrtc, &err), KR_NOT_ON_THIS_MACHINE);
    ck_assert_ptr_nonnull(strstr(err.log, "libnvrtc.so.14: not a regular file"));

    ck_assert_int_eq(kr_nvrtc_open("libm.so.6", &nvrtc, &err), KR_NOT_ON_THIS_MACHINE);
    ck_assert_ptr_nonnull(strstr(err.log, "has no nvrtcVersion"));

    /* The variable is as binding as the argument. */
    setenv("KREGISTRY_NVRTC", folder, 1);
    ck_assert_int_eq(kr_nvrtc_open(NULL, &nvrtc, &err), KR_NOT_ON_THIS_MACHINE);
    ck_assert_ptr_nonnull(strstr(err.message, folder));
    ck_assert_int_eq(kr_nvrtc_open(NULL, &nvrtc, NULL), KR_NOT_ON_THIS_MACHINE);
}
END_TEST

/* Each layout is found, whatever lies beside it that cannot be opened. */
static const char *const layouts[] = {
    "", "lib64", "lib", "targets/x86_64-linux/lib", "nvidia/cu13/lib", "nvidia/cuda_nvrtc/lib",
};

START_TEST(layout)
{
    char want[256];
    put(layouts[_i], "libnvrtc.so.12", true);
    put(layouts[_i], "libnvrtc.so.13", false);
    snprintf(want, sizeof want, "%s%slibnvrtc.so.12", layouts[_i], layouts[_i][0] ? "/" : "");
    expect_found(folder, want);
}
END_TEST

/* The toolkit's headers that belong to a library in `folder`. */
static const struct {
    const char *folder, *include;
} toolkits[] = {
    {"lib64", "include"},
    {"targets/x86_64-linux/lib", "targets/x86_64-linux/include"},
    {"nvidia/cu13/lib", "nvidia/cu13/include"},
    {"nvidia/cuda_nvrtc/lib", "nvidia/cuda_runtime/include"},
};

START_TEST(toolkit_headers)
{
    char command[512], want[256];
    put(toolkits[_i].folder, "libnvrtc.so.12", true);
    ck_assert_int_eq(kr_nvrtc_open(folder, &fake, &err), KR_OK);
    ck_assert_ptr_null(kr_nvrtc_get_info(fake).include);
    kr_compiled *compiled = compile("options", NULL);
    ck_assert_str_eq(compiled->log, "--gpu-architecture=compute_80\n--std=c++17\n");
    kr_compiled_destroy(&compiled);
    kr_nvrtc_close(&fake);

    snprintf(command, sizeof command,
             "cd %s && mkdir -p %s/cccl && cd %s && touch cuda_fp16.h && echo '#define CUDA_VERSION 12010' "
             ">cuda.h",
             folder, toolkits[_i].include, toolkits[_i].include);
    ck_assert_int_eq(system(command), 0);
    ck_assert_int_eq(kr_nvrtc_open(folder, &fake, &err), KR_OK);
    snprintf(want, sizeof want, "%s/%s", folder, toolkits[_i].include);
    ck_assert_str_eq(kr_nvrtc_get_info(fake).include, want);
    ck_assert_int_eq(kr_nvrtc_get_info(fake).include_version, 12010);
    const char *const option = "-I/mine";
    compiled = compile(
        "options",
        &(kr_compile_options){.struct_size = sizeof(kr_compile_options), .options = &option, .n_options = 1});
    snprintf(want, sizeof want, "-I/mine\n--std=c++17\n-I%s/%s\n-I%s/%s/cccl\n", folder, toolkits[_i].include,
             folder, toolkits[_i].include);
    ck_assert_ptr_nonnull(strstr(compiled->log, want));
    kr_compiled_destroy(&compiled);
    snprintf(command, sizeof command, "cd %s/%s/cccl && mkdir -p cuda/std && touch cuda/std/tuple", folder,
             toolkits[_i].include);
    ck_assert_int_eq(system(command), 0);
    refuse("missing tuple", NULL, KR_COMPILE_FAILED);
    ck_assert_msg(strstr(err.advice, "include <cuda/std/tuple>"), "%s", err.advice);
    refuse("missing vector", NULL, KR_COMPILE_FAILED);
    ck_assert_msg(strstr(err.advice, "keep <vector> out"), "%s", err.advice);
    kr_nvrtc_close(&fake);
}
END_TEST

START_TEST(odd_folder_name)
{
    put("a[b]*", "libnvrtc.so.12", true);
    char path[128];
    snprintf(path, sizeof path, "%s/a[b]*", folder);
    expect_found(path, "a[b]*/libnvrtc.so.12");
}
END_TEST

START_TEST(newest_of_a_folder)
{
    put("", "libnvrtc.so.11.2", true);
    put("", "libnvrtc.so.9", true);
    put("", "libnvrtc.so.12", true);
    expect_found(folder, "libnvrtc.so.12");
}
END_TEST

/* For a driver, one whose machine code it takes; a newer one only where there is no other. */
static const struct {
    int driver;
    const char *found;
} drivers[] = {{0, "13"}, {13000, "13"}, {12040, "12"}, {12000, "12"}, {11080, "11.2"}, {10020, "13"}};

START_TEST(newest_for_a_driver)
{
    kr_nvrtc *nvrtc = NULL;
    char want[128];
    put("", "libnvrtc.so.11.2", true);
    put("", "libnvrtc.so.12", true);
    put("", "libnvrtc.so.13", true);
    const kr_status status = kr_nvrtc_open_for(drivers[_i].driver, folder, &nvrtc, &err);
    ck_assert_msg(!status, "%s\n%s", err.message, err.log);
    snprintf(want, sizeof want, "%s/libnvrtc.so.%s", folder, drivers[_i].found);
    ck_assert_str_eq(kr_nvrtc_get_info(nvrtc).path, want);
    kr_nvrtc_close(&nvrtc);
}
END_TEST

START_TEST(environment)
{
    unsetenv("KREGISTRY_NVRTC");
    put("venv/lib/python3.11/site-packages/nvidia/cu13/lib", "libnvrtc.so.13", true);
    char path[128];
    snprintf(path, sizeof path, "%s/venv", folder);
    unsetenv("CUDA_HOME");
    unsetenv("CUDA_PATH");
    setenv("VIRTUAL_ENV", path, 1);
    expect_found(NULL, "venv/lib/python3.11/site-packages/nvidia/cu13/lib/libnvrtc.so.13");

    put("toolkit/lib64", "libnvrtc.so.12", true);
    snprintf(path, sizeof path, "%s/toolkit", folder);
    setenv("CUDA_HOME", path, 1);
    expect_found(NULL, "toolkit/lib64/libnvrtc.so.12");

    put("mine", "any_name.so", true);
    snprintf(path, sizeof path, "%s/mine/any_name.so", folder);
    setenv("KREGISTRY_NVRTC", path, 1);
    expect_found(NULL, "mine/any_name.so");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("compile: a fake NVRTC");
    TCase *compiling = tcase_create("compiling");
    tcase_add_checked_fixture(compiling, open_fake, close_fake);
    tcase_add_test(compiling, facts);
    tcase_add_test(compiling, a_named_file_that_will_not_do_is_told);
    tcase_add_test(compiling, none_is_wanted);
    tcase_add_loop_test(compiling, no_descriptor_left_is_not_no_nvrtc, 0, 3);
    tcase_add_test(compiling, lists_have_what_their_counts_say);
    tcase_add_test(compiling, builtins_missing);
    tcase_add_test(compiling, internal_error);
    tcase_add_test(compiling, an_assembler_without_memory_is_no_fault_of_the_source);
    tcase_add_test(compiling, a_missing_header_lists_those_that_are_there);
    tcase_add_loop_test(compiling, a_missing_header_is_known, 0, sizeof missing / sizeof missing[0]);
    tcase_add_test(compiling, lowered_name_is_copied);
    tcase_add_test(compiling, lowered_name_is_empty);
    tcase_add_test(compiling, kind_is_what_came_back);
    tcase_add_test(compiling, entries);
    tcase_add_test(compiling, locale_is_c_meanwhile);
    tcase_add_test(compiling, no_ltoir_function);
    tcase_add_test(compiling, bad_arguments);
    suite_add_tcase(suite, compiling);
    TCase *finding = tcase_create("finding");
    tcase_add_checked_fixture(finding, make_folder, remove_folder);
    tcase_add_test(finding, nothing_there);
    tcase_add_loop_test(finding, layout, 0, (int)(sizeof layouts / sizeof layouts[0]));
    tcase_add_loop_test(finding, toolkit_headers, 0, (int)(sizeof toolkits / sizeof toolkits[0]));
    tcase_add_test(finding, odd_folder_name);
    tcase_add_test(finding, newest_of_a_folder);
    tcase_add_loop_test(finding, newest_for_a_driver, 0, (int)(sizeof drivers / sizeof drivers[0]));
    tcase_add_test(finding, environment);
    suite_add_tcase(suite, finding);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
