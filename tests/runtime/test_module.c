/* SPDX-License-Identifier: Apache-2.0 */
/* Images, modules, kernels and launches on a driver that does as it is told. */
#include "common.h"

#include <elf.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ptx/image/image.h"
#include "tests/image/small_cubin.h"

#define HEAD ".version 7.5\n.target sm_75\n.address_size 64\n"
static const char ptx[] =
    HEAD ".visible .entry saxpy(.param .u64 n, .param .f32 a, .param .u64 x, .param .u64 y)\n{\nret;\n}\n"
         ".visible .entry heavy(.param .u64 p)\n{\nret;\n}\n"
         ".visible .entry _Z5scalePf(.param .u64 p)\n{\nret;\n}\n"
         ".visible .entry mixed(.param .u8 a, .param .u16 b, .param .u32 c, .param .f64 d)\n{\nret;\n}\n";

static kr_runtime *runtime;
static kr_device *device;
static kr_module *module;
static fake *f;

static void setup(void)
{
    f = fake_of(FAKE);
    runtime = create();
    device = kr_runtime_device(runtime, 0);
    ck_ok(kr_module_load(device, ptx, strlen(ptx), "test.ptx", &module, &err));
}

static void teardown(void)
{
    kr_module_destroy(&module);
    kr_runtime_destroy(&runtime);
    ck_assert_int_eq(f->modules, 0);
    ck_assert_int_eq(f->libraries, 0);
    ck_assert_int_eq(f->retained, 0);
}

/* ---- images ---- */

static kr_status load(const void *image, size_t bytes)
{
    kr_module *m = NULL;
    const kr_status status = kr_module_load(device, image, bytes, "x", &m, &err);
    ck_assert(status == KR_OK || !m);
    kr_module_destroy(&m);
    return status;
}

START_TEST(one_library_for_all_devices)
{
    kr__code *code;
    kr_module *one, *two;
    kr_kernel *kernel;
    f->libraries = 0;
    ck_ok(kr__code_create(runtime->driver, ptx, strlen(ptx), "shared.ptx", &code, &err));
    ck_ok(kr__code_load(code, device, &one, &err));
    ck_ok(kr__code_load(code, kr_runtime_device(runtime, 1), &two, &err));
    ck_assert_int_eq(f->libraries, 1);
    ck_assert_int_eq(f->modules, 0);
    kr__code_release(&code);
    ck_assert_ptr_null(code);
    kr_module_destroy(&one);
    ck_assert_int_eq(f->libraries, 1);
    ck_ok(kr_module_kernel(two, "saxpy", &kernel, &err));
    kr_module_destroy(&two);
    ck_assert_int_eq(f->libraries, 0);
    f->libraries = 1; /* the fixture's */
}
END_TEST

START_TEST(modules_where_there_are_no_libraries)
{
    kr_module *m;
    f->no_libraries = 1;
    ck_ok(kr_module_load(device, ptx, strlen(ptx), "x", &m, &err));
    ck_assert_int_eq(f->modules, 1);
    kr_module_destroy(&m);
    ck_assert_int_eq(f->modules, 0);
}
END_TEST

START_TEST(ptx_needs_no_nul)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), n = strlen(ptx);
    char *map = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(map, MAP_FAILED);
    mprotect(map + page, page, PROT_NONE);
    memcpy(map + page - n, ptx, n);
    ck_assert_int_eq(load(map + page - n, n), KR_OK);
    ck_assert_int_eq(load(ptx, sizeof ptx), KR_OK); /* with it */
    munmap(map, 2 * page);
}
END_TEST

static const struct {
    const char *image;
    size_t bytes;
    kr_status status;
    const char *message;
} refusals[] = {
    {"", 0, KR_CORRUPT, "the image is empty"},
    {"kernels/saxpy.ptx", 17, KR_CORRUPT, "looks like a file name"},
    {"\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f\x10", 16, KR_CORRUPT, "01 02 03 04"},
    {".target sm_75\n.version 7.5\n", 27, KR_CORRUPT, "must begin with .version"},
    {"\xef\xbb\xbf.version 7.5\n", 16, KR_CORRUPT, "byte order mark"},
    {".version 7.5\n.target sm_75\0.address_size 64\n", 43, KR_CORRUPT, "NUL byte at offset 26"},
    {"\x7f"
     "ELF",
     4, KR_CORRUPT, "truncated"},
    {"\x50\xed\x55\xba\x01\x00\x10\x00\xff\x00\x00\x00\x00\x00\x00\x00", 16, KR_CORRUPT,
     "fatbin is truncated"},
    {"\x50\xed\x55\xba\x01\x00\x10\x00\x48\x00\x00\x00\x00\x00\x00\x00" /* PTX in LZ4, which it is not */
     "\x01\x00\x01\x01\x40\x00\x00\x00\x08\x00\x00\x00\x00\x00\x00\x00"
     "\x08\x00\x00\x00\x00\x00\x00\x00\x00\x00\x07\x00\x4b\x00\x00\x00"
     "\x00\x00\x00\x00\x00\x00\x00\x00\x11\x20\x00\x00\x00\x00\x00\x00"
     "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00........",
     88, KR_CORRUPT, "LZ4 payload of 8 bytes does not unpack to the 256 bytes promised"},
    {"\xed\x43\x4e\x7f....", 8, KR_NOT_ON_THIS_MACHINE, "that takes nvJitLink"},
    {"\xb1\x43\x62\x46....", 8, KR_CORRUPT, "wrapper"},
    {"\xff\xfe.\0v\0e\0", 8, KR_CORRUPT, "UTF-16"},
    {"KRPACK\x1a\n\x01\0\0\0", 12, KR_CORRUPT, "a pack is no image"},
    {"!<arch>\nk.o/   ", 16, KR_CORRUPT, "an archive is no image"},
    {"BC\xc0\xde\x35\x14\0\0", 8, KR_CORRUPT, "LLVM bitcode"},
    {"\x1f\x8b\x08\x08", 4, KR_CORRUPT, "packed by gzip"},
    {"\x28\xb5\x2f\xfd....", 8, KR_CORRUPT, "packed by zstd"},
    {"extern \"C\" __global__ void k(int *p)\n{\n}\n", 40, KR_CORRUPT, "CUDA source"},
    {"\x7e"
     "ELF\2\1\1\0\0 __global__",
     20, KR_CORRUPT, "20 bytes beginning 7e 45 4c 46"},
    {".version 9.3\n.target sm_75\n", 27, KR_NOT_ON_THIS_DEVICE,
     "PTX 9.3 for sm_75; the driver takes PTX up to 9.0"},
    {".version 8.7\n.target sm_120a\n", 29, KR_NOT_ON_THIS_DEVICE,
     "PTX 8.7 for sm_120a, which does not run on device 0"},
    {HEAD "frob;\n", sizeof HEAD "frob;\n" - 1, KR_COMPILE_FAILED, "the driver refuses the PTX"},
};

START_TEST(images_refused)
{
    f->calls = 0;
    setenv("KREGISTRY_NVJITLINK", "none", 1);
    ck_assert_msg(load(refusals[_i].image, refusals[_i].bytes) == refusals[_i].status, "%s", err.message);
    ck_contains(err.message, refusals[_i].message);
    ck_assert(err.advice[0]);
    if (refusals[_i].status == KR_CORRUPT || refusals[_i].status == KR_NOT_ON_THIS_MACHINE)
        ck_assert_int_eq(f->calls, 0); /* no driver was given it */
    else
        ck_assert_str_eq(err.function, "cuModuleLoadDataEx");
    if (refusals[_i].status == KR_COMPILE_FAILED)
        ck_contains(err.log, "line 7");
    if (strstr(refusals[_i].image, "sm_120a"))
        ck_contains(err.advice, "relevel --target sm_90");
    if (strstr(refusals[_i].image, "9.3"))
        ck_contains(err.advice, "a driver of CUDA 13.3");
}
END_TEST

/* What a driver may answer to any image, and what a person must be told. */
static const struct {
    int answer;
    kr_status status;
    const char *message, *advice;
} answers[] = {
    {200, KR_CORRUPT, "the driver cannot read the image", "copy the image again"},
    {209, KR_NOT_ON_THIS_DEVICE, "no code for this device", "Build it for sm_90"},
    {218, KR_COMPILE_FAILED, "the driver refuses the PTX", ""},
    {221, KR_NOT_ON_THIS_MACHINE, "PTX compiler library is missing", "libnvidia-ptxjitcompiler.so.1"},
    {222, KR_NOT_ON_THIS_DEVICE, "PTX 7.5 for sm_75; the driver takes PTX up to 9.0", "update this one"},
    {223, KR_NOT_ON_THIS_MACHINE, "compiling PTX is disabled", "CUDA_DISABLE_PTX_JIT"},
    {300, KR_COMPILE_FAILED, "does not compile or link", ""},
    {2, KR_OUT_OF_DEVICE_MEMORY, "out of memory", ""},
};

START_TEST(load_answers)
{
    f->no_libraries = 1;
    f->calls = 0;
    f->fail_at = 5; /* get current, push, relax, load a library, load a module */
    f->fail_with = answers[_i].answer;
    ck_assert_int_eq(load(ptx, sizeof ptx), answers[_i].status);
    ck_assert_str_eq(f->failed, "cuModuleLoadDataEx");
    ck_assert_int_eq(err.code, answers[_i].answer);
    ck_assert_int_eq(err.device, 0);
    ck_assert_str_eq(err.image, "x");
    ck_contains(err.message, answers[_i].message);
    ck_contains(err.message, "PTX 7.5 for sm_75");
    ck_contains(err.advice, answers[_i].advice);
}
END_TEST

/* A part that is for another device than its entry says, and one that zstd does not unpack. */
START_TEST(answers_to_a_fatbin)
{
    static const struct {
        int answer;
        const char *advice;
    } rows[] = {{300, "for another device than it says"}, {999, "does not unpack"}};
    const kr__fatbin_part part = {KR_IMAGE_PTX, {7, 5, 0}, 75, ptx, sizeof ptx};
    void *fatbin;
    size_t bytes;
    ck_ok(kr__fatbin_write(&part, 1, &fatbin, &bytes, &err));
    ck_ok(load(fatbin, bytes));
    f->no_libraries = 1;
    for (size_t i = 0; i < KR_COUNT(rows); i++) {
        f->calls = 0;
        f->fail_at = 5; /* as above */
        f->fail_with = rows[i].answer;
        load(fatbin, bytes);
        ck_assert_int_eq(err.code, rows[i].answer);
        ck_contains(err.advice, rows[i].advice);
    }
    free(fatbin);
}
END_TEST

START_TEST(cubins)
{
    struct {
        Elf64_Ehdr head;
        char code[32];
        Elf64_Shdr section; /* a cubin ends with its tables */
    } cubin = {0};
    memcpy(cubin.head.e_ident, ELFMAG, SELFMAG);
    cubin.head.e_ident[EI_CLASS] = ELFCLASS64;
    cubin.head.e_ident[EI_ABIVERSION] = 8;
    cubin.head.e_machine = 190;
    cubin.head.e_flags = 0x06006402;
    cubin.head.e_shoff = offsetof(__typeof__(cubin), section);
    cubin.head.e_shnum = 1;
    cubin.head.e_shentsize = sizeof cubin.section;
    cubin.section.sh_type = SHT_PROGBITS;
    cubin.section.sh_offset = offsetof(__typeof__(cubin), code);
    cubin.section.sh_size = sizeof cubin.code;
    kr_image_kind kind;
    ck_ok(kr_image_kind_of(&cubin, sizeof cubin, &kind, &err));
    ck_assert_int_eq(kind, KR_IMAGE_CUBIN);
    ck_assert_str_eq(kr_image_kind_name(kind), "cubin");
    ck_assert_int_eq(load(&cubin, sizeof cubin), KR_NOT_ON_THIS_DEVICE);
    ck_contains(err.message, "cubin for sm_100");
    ck_contains(err.message, "no code for this device");
    ck_contains(err.advice, "Build it for sm_90");
    ck_assert_int_eq(err.code, CUDA_ERROR_NO_BINARY_FOR_GPU);
    for (size_t n = 4; n < sizeof cubin; n++) /* cut anywhere: noticed, and no byte past the end read */
    {
        void *cut = malloc(n);
        memcpy(cut, &cubin, n);
        ck_assert_int_eq(load(cut, n), KR_CORRUPT);
        free(cut);
    }
    cubin.head.e_machine = 62;
    ck_assert_int_eq(load(&cubin, sizeof cubin), KR_CORRUPT);
    ck_contains(err.message, "not a cubin");
    ck_contains(err.advice, "kregistry inspect");
}
END_TEST

/* The header tells of CUDA 12.3. What an older driver answers to it: 200 (triton-lang/triton#2971). */
START_TEST(a_cubin_of_a_newer_cuda)
{
    const small_cubin cubin = small_cubin_of(0x5a055a);
    static const struct {
        int driver, answer;
        const char *advice;
    } rows[] = {
        {11040, 200, "made by CUDA 12.3: update the driver (CUDA 11.4) to one for CUDA 12.0"},
        {11040, 209, "made by CUDA 12.3: update the driver (CUDA 11.4) to one for CUDA 12.0"},
        {12000, 200, "copy the image again"},
        {12000, 209, "'a' or 'f' target"},
    };
    for (size_t i = 0; i < KR_COUNT(rows); i++) {
        device->driver->version = rows[i].driver;
        f->no_libraries = 1;
        f->calls = 0;
        f->fail_at = 5;
        f->fail_with = rows[i].answer;
        load(&cubin, sizeof cubin);
        ck_assert_int_eq(err.code, rows[i].answer);
        ck_contains(err.advice, rows[i].advice);
    }
}
END_TEST

/* What a fatbin has for the device is what the driver refused. */
START_TEST(fatbins_are_explained)
{
    const small_cubin cubin = small_cubin_of(0x5a055a);
    const kr__fatbin_part parts[] = {{KR_IMAGE_PTX, {7, 5, 0}, 75, ptx, sizeof ptx},
                                     {KR_IMAGE_PTX, {9, 0, 'a'}, 87, ptx, sizeof ptx},
                                     {KR_IMAGE_CUBIN, {9, 0, 0}, 0, &cubin, sizeof cubin},
                                     {KR_IMAGE_PTX, {10, 0, 0}, 90, ptx, sizeof ptx}};
    static const struct {
        size_t first, n;
        int answer;
        const char *advice;
    } rows[] = {
        {0, 4, 222,
         "Its PTX 8.7 needs a driver of CUDA 12.8: update this one (11.4), or build it with machine code "
         "for sm_90."},
        {0, 4, 200, "made by CUDA 12.3: update the driver (CUDA 11.4) to one for CUDA 12.0"},
        {0, 4, 209, "made by CUDA 12.3: update the driver (CUDA 11.4) to one for CUDA 12.0"},
        {3, 1, 209, "It holds compute_100. Build it for sm_90, or with PTX of at most compute_90."},
        {0, 2, 209, "It holds compute_75, compute_90a. Build it for sm_90"},
        {3, 1, 222, "Update the driver"},
        {0, 1, 200, "copy the image again"},
    };
    device->driver->version = 11040;
    for (size_t i = 0; i < KR_COUNT(rows); i++) {
        void *fatbin;
        size_t bytes;
        ck_ok(kr__fatbin_write(parts + rows[i].first, rows[i].n, &fatbin, &bytes, &err));
        f->no_libraries = 1;
        f->calls = 0;
        f->fail_at = 5;
        f->fail_with = rows[i].answer;
        load(fatbin, bytes);
        ck_assert_int_eq(err.code, rows[i].answer);
        ck_contains(err.advice, rows[i].advice);
        free(fatbin);
    }
}
END_TEST

/* Damaged heads of every kind: whatever the answer, no byte outside the image is read. */
START_TEST(damaged_images)
{
    static const unsigned char fatbin[48] = "\x50\xed\x55\xba\x01\x00\x10\x00\x20";
    static const char text[] = "/* k */ .version 7.5 // x\n.target sm_90a, debug\n";
    Elf64_Ehdr elf = {
        .e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64}, .e_machine = 190, .e_shnum = 1, .e_shentsize = 64};
    const struct {
        const void *image;
        size_t bytes;
    } seeds[] = {{fatbin, sizeof fatbin}, {text, sizeof text}, {&elf, sizeof elf}};
    unsigned random = 1;
    for (int round = 0; round < 60000; round++) {
        const size_t whole = seeds[round % 3].bytes;
        random = random * 1664525 + 1013904223;
        const size_t bytes = random >> 8 & 1 ? whole : (random >> 9) % (whole + 1);
        unsigned char *image = malloc(bytes ? bytes : 1);
        memcpy(image, seeds[round % 3].image, bytes);
        for (unsigned n = random >> 28; n && bytes; n--) {
            random = random * 1664525 + 1013904223;
            image[(random >> 16) % bytes] = (unsigned char)(random >> 8);
        }
        kr_image_kind kind;
        const kr_status status = kr_image_kind_of(image, bytes, &kind, &err);
        ck_assert(status == KR_OK || (status == KR_CORRUPT && err.message[0]));
        free(image);
    }
}
END_TEST

/* ---- kernels ---- */

START_TEST(kernels)
{
    kr_kernel *kernel = NULL, *again = NULL;
    ck_ok(kr_module_kernel(module, "heavy", &kernel, &err));
    ck_ok(kr_module_kernel(module, "heavy", &again, &err));
    ck_assert_ptr_eq(kernel, again);
    const kr_kernel_info *info = kr_kernel_get_info(kernel);
    ck_assert_str_eq(info->name, "heavy");
    ck_assert_int_eq(info->registers, 162);
    ck_assert_int_eq(info->static_shared_bytes, 16384);
    ck_assert_int_eq(info->max_threads_per_block, 384);
    ck_assert_int_eq(info->max_dynamic_shared_bytes, 32768);
    ck_assert_ptr_eq(kr_kernel_device(kernel), device);
    int blocks, threads, grid;
    ck_ok(kr_kernel_occupancy(kernel, 256, 0, &blocks, &err));
    ck_assert_int_eq(blocks, 8);
    ck_assert_int_eq(kr_kernel_occupancy(kernel, 0, 0, &blocks, &err), KR_INVALID_ARGUMENT);
    ck_ok(kr_kernel_suggest(kernel, 0, 256, &threads, &grid, &err));
    ck_assert(threads == 256 && grid == 264);
    uint64_t address;
    size_t bytes, offset;
    ck_ok(kr_module_global(module, "table", &address, &bytes, &err));
    ck_assert_uint_eq(bytes, 64);
    ck_assert_int_eq(kr_module_global(module, "nope", &address, &bytes, &err), KR_NOT_FOUND);
    ck_contains(err.message, "variable \"nope\" of test.ptx");
    ck_ok(kr_module_kernel(module, "saxpy", &kernel, &err));
    ck_ok(kr_kernel_param(kernel, 1, &offset, &bytes, &err));
    ck_assert(offset == 8 && bytes == 4);
    ck_assert_int_eq(kr_kernel_param(kernel, 4, &offset, &bytes, &err), KR_NOT_FOUND);
}
END_TEST

START_TEST(missing_kernel)
{
    kr_kernel *kernel = NULL;
    ck_assert_int_eq(kr_module_kernel(module, "saxpi", &kernel, &err), KR_NOT_FOUND);
    ck_contains(err.message, "test.ptx has no kernel \"saxpi\"; it has saxpy, heavy, _Z5scalePf, mixed");
    ck_contains(err.advice, "Did you mean \"saxpy\"?");
    ck_assert_int_eq(kr_module_kernel(module, "scale", &kernel, &err), KR_NOT_FOUND);
    ck_contains(err.advice, "extern \"C\"");
    ck_assert_int_eq(kr_module_kernel(module, "entirely_different", &kernel, &err), KR_NOT_FOUND);
    ck_contains(err.advice, "Name one of the image's kernels");
    ck_assert_ptr_null(kernel);
}
END_TEST

/* Drivers before 12.3 have none of these. */
START_TEST(older_driver)
{
    kr__driver *driver = runtime->driver;
    driver->cuFuncGetParamInfo = NULL;
    driver->cuModuleGetFunctionCount = NULL;
    driver->cuModuleEnumerateFunctions = NULL;
    driver->cuFuncGetName = NULL;
    driver->cuDeviceGetUuid_v2 = NULL;
    driver->version = 12000;
    kr_kernel *kernel = NULL;
    ck_assert_int_eq(kr_module_kernel(module, "saxpi", &kernel, &err), KR_NOT_FOUND);
    ck_assert_str_eq(err.message, "test.ptx has no kernel \"saxpi\"");
    ck_ok(kr_module_kernel(module, "saxpy", &kernel, &err));
    size_t offset, bytes;
    ck_assert_int_eq(kr_kernel_param(kernel, 0, &offset, &bytes, &err), KR_NOT_ON_THIS_DEVICE);
    ck_contains(err.message, "CUDA 12.0");
    ck_ok(kr_kernel_launch(kernel, kr_device_default_stream(device), &(kr_launch_config){{1}, {32}, 0},
                           KR_ARGS(KR_U64(1), KR_F32(2), KR_PTR(3), KR_PTR(4)), &err));
    ck_assert_uint_eq(f->params[3], 4);
    ck_assert_int_eq(load(".version 8.1\n.target sm_75\n.entry k()\n", 38),
                     KR_OK); /* the driver itself decides */
    kr_runtime *second = create();
    ck_contains(kr_device_get_info(kr_runtime_device(second, 0))->uuid, "GPU-a0a1");
    kr_runtime_destroy(&second);
}
END_TEST

/* ---- launching ---- */

START_TEST(launches)
{
    kr_kernel *kernel;
    kr_buffer *x;
    ck_ok(kr_buffer_create(device, 64, NULL, &x, &err));
    ck_ok(kr_module_kernel(module, "saxpy", &kernel, &err));
    ck_ok(kr_kernel_launch(kernel, kr_device_default_stream(device),
                           &(kr_launch_config){{7}, {128, 2}, 40000},
                           KR_ARGS(KR_U64(1ull << 40), KR_F32(1.5f), KR_BUF(x), KR_BUF_AT(x, 16)), &err));
    ck_assert_str_eq(f->launched, "saxpy");
    ck_assert(f->grid[0] == 7 && f->grid[1] == 1 && f->grid[2] == 1);
    ck_assert(f->block[0] == 128 && f->block[1] == 2 && f->block[2] == 1);
    ck_assert_uint_eq(f->shared, 40000);
    ck_assert_uint_eq(f->params[0], 1ull << 40);
    ck_assert_uint_eq(f->params[1], 0x3fc00000);
    ck_assert_uint_eq(f->params[2], kr_buffer_cudeviceptr(x));
    ck_assert_uint_eq(f->params[3], kr_buffer_cudeviceptr(x) + 16);
    void *context;
    ck_ok(kr_device_cucontext(device, &context, &err));
    ck_assert_ptr_eq(f->context, context);
    ck_ok(kr_module_kernel(module, "mixed", &kernel, &err));
    ck_ok(kr_kernel_launch(kernel, kr_device_default_stream(device), &(kr_launch_config){{0}, {0}, 0},
                           KR_ARGS(KR_I8(-1), KR_U16(65535), KR_I32(-2), KR_F64(1.0)), &err));
    ck_assert_uint_eq(f->params[0], 0xff);
    ck_assert_uint_eq(f->params[1], 0xffff);
    ck_assert_uint_eq(f->params[2], 0xfffffffe);
    ck_assert_uint_eq(f->params[3], 0x3ff0000000000000);
    ck_assert(f->grid[0] == 1 && f->block[0] == 1);
    kr_buffer_destroy(&x);
}
END_TEST

START_TEST(bad_configurations)
{
    static const struct {
        const char *kernel;
        kr_launch_config config;
        const char *message;
    } rows[] = {
        {"saxpy", {{2147483648u}, {1}, 0}, "grid.x is 2147483648; device 0 takes at most 2147483647"},
        {"saxpy", {{1, 65536}, {1}, 0}, "grid.y is 65536; device 0 takes at most 65535"},
        {"saxpy", {{1}, {1025}, 0}, "block.x is 1025"},
        {"saxpy", {{1}, {1, 1, 65}, 0}, "block.z is 65; device 0 takes at most 64"},
        {"saxpy", {{1}, {64, 32}, 0}, "64 x 32 x 1 = 2048 threads; device 0 takes at most 1024"},
        {"saxpy", {{1}, {4294967295u, 4294967295u, 4294967295u}, 0}, "block.x is 4294967295"},
        {"heavy",
         {{1}, {512}, 0},
         "162 registers x 512 threads = 82944 of the 65536 registers of a block; this kernel takes at most "
         "384"},
        {"heavy",
         {{1}, {400}, 0},
         "a block of 400 threads; this kernel, as it was compiled, takes at most 384"},
        {"heavy",
         {{1}, {32}, 232448 - 16384 + 1},
         "216065 bytes of dynamic shared memory; device 0 lets a block have 232448, of which the kernel's "
         "own take 16384"},
        {"saxpy", {{1}, {32}, 232449}, "232449 bytes"},
        {"saxpy", {{1}, {32}, 4294967295u}, "4294967295 bytes"},
    };
    kr_kernel *kernel;
    ck_ok(kr_module_kernel(module, rows[_i].kernel, &kernel, &err));
    f->calls = 0;
    const kr_args args =
        rows[_i].kernel[0] == 's' ? KR_ARGS(KR_U64(1), KR_F32(2), KR_PTR(3), KR_PTR(4)) : KR_ARGS(KR_PTR(1));
    ck_assert_int_eq(kr_kernel_launch(kernel, kr_device_default_stream(device), &rows[_i].config, args, &err),
                     KR_INVALID_ARGUMENT);
    ck_contains(err.message, rows[_i].message);
    ck_contains(err.message, rows[_i].kernel);
    ck_assert_int_eq(err.device, 0);
    ck_assert_int_eq(f->calls, 0);
}
END_TEST

START_TEST(bad_arguments)
{
    kr_kernel *kernel;
    kr_buffer *mine, *foreign;
    ck_ok(kr_module_kernel(module, "saxpy", &kernel, &err));
    ck_ok(kr_buffer_create(device, 64, NULL, &mine, &err));
    ck_ok(kr_buffer_create(kr_runtime_device(runtime, 1), 64, NULL, &foreign, &err));
    const kr_launch_config c = {{1}, {32}, 0};
    kr_stream *stream = kr_device_default_stream(device);
    f->launches = 0;
#define REFUSED(text, ...)                                                                 \
    do {                                                                                   \
        ck_assert_int_eq(kr_kernel_launch(kernel, stream, &c, KR_ARGS(__VA_ARGS__), &err), \
                         KR_INVALID_ARGUMENT);                                             \
        ck_contains(err.message, text);                                                    \
    } while (0)
    REFUSED("saxpy takes 4 arguments; 3 given", KR_U64(1), KR_F32(2), KR_BUF(mine));
    REFUSED("argument 0 has 4 bytes; the kernel's parameter has 8", KR_U32(1), KR_F32(2), KR_BUF(mine),
            KR_BUF(mine));
    REFUSED("argument 1 has 8 bytes; the kernel's parameter has 4", KR_U64(1), KR_F64(2), KR_BUF(mine),
            KR_BUF(mine));
    REFUSED("argument 2: the buffer is on device 1, the kernel on device 0", KR_U64(1), KR_F32(2),
            KR_BUF(foreign), KR_BUF(mine));
    kr__driver other = {.path = "other.so"};
    kr_device far = {.driver = &other};
    kr_buffer of_other = {.device = &far, .bytes = 64};
    REFUSED("argument 2: the buffer is of the driver other.so, the kernel of ", KR_U64(1), KR_F32(2),
            KR_BUF(&of_other), KR_BUF(mine));
    ck_contains(err.advice, "by way of the host");
    REFUSED("argument 3: the buffer is NULL", KR_U64(1), KR_F32(2), KR_BUF(mine), KR_BUF(NULL));
    REFUSED("argument 3: offset 65 lies outside a buffer of 64 bytes", KR_U64(1), KR_F32(2), KR_BUF(mine),
            KR_BUF_AT(mine, 65));
    REFUSED("does not fit into u8", KR_U8(256), KR_F32(2), KR_BUF(mine), KR_BUF(mine));
    REFUSED("does not fit into i16", KR_I16(-32769), KR_F32(2), KR_BUF(mine), KR_BUF(mine));
    REFUSED("does not fit into u32", KR_U32(1ull << 32), KR_F32(2), KR_BUF(mine), KR_BUF(mine));
    stream = kr_device_default_stream(kr_runtime_device(runtime, 1));
    REFUSED("loaded on device 0, the stream is of device 1", KR_U64(1), KR_F32(2), KR_BUF(mine),
            KR_BUF(mine));
    ck_assert_int_eq(f->launches, 0);
    kr_buffer_destroy(&mine);
    kr_buffer_destroy(&foreign);
}
END_TEST

START_TEST(shared_memory_is_only_raised)
{
    kr_kernel *kernel;
    ck_ok(kr_module_kernel(module, "heavy", &kernel, &err));
    ck_ok(kr_kernel_allow_shared(kernel, 32768, &err)); /* the default, less the kernel's own */
    ck_assert_int_eq(f->set_attributes, 0);
    ck_ok(kr_kernel_allow_shared(kernel, 32769, &err));
    ck_ok(kr_kernel_allow_shared(kernel, 100, &err));
    ck_assert_int_eq(f->set_attributes, 1);
    ck_ok(kr_kernel_allow_shared(kernel, 232448 - 16384, &err));
    ck_assert_int_eq(kr_kernel_allow_shared(kernel, 232448 - 16384 + 1, &err), KR_INVALID_ARGUMENT);
    ck_contains(err.advice, "at most 216064 bytes");
    ck_assert_int_eq(f->set_attributes, 2);
}
END_TEST

START_TEST(a_list_that_is_not_there)
{
    kr_kernel *kernel;
    ck_ok(kr_module_kernel(module, "heavy", &kernel, &err));
    ck_assert_int_eq(kr_kernel_launch(kernel, kr_device_default_stream(device),
                                      &(kr_launch_config){{1}, {256}, 0}, (kr_args){.n = 1}, &err),
                     KR_INVALID_ARGUMENT);
    ck_contains(err.message, "heavy: 1 arguments given, but their list is NULL");
}
END_TEST

/* The suspect of a fault is the kernel launched last, for as long as there is such a one. */
START_TEST(a_kernel_that_is_gone_is_not_suspected)
{
    kr_kernel *kernel;
    ck_ok(kr_module_kernel(module, "heavy", &kernel, &err));
    ck_ok(kr_kernel_launch(kernel, kr_device_default_stream(device), &(kr_launch_config){{1}, {32}, 0},
                           KR_ARGS(KR_PTR(1)), &err));
    ck_assert_ptr_eq(atomic_load(&device->launched), kernel);
    kr_module_destroy(&module);
    ck_assert_ptr_null(atomic_load(&device->launched));
    f->fault = CUDA_ERROR_ILLEGAL_ADDRESS;
    ck_assert_int_eq(kr_device_synchronize(device, &err), KR_PROCESS_LOST);
    ck_assert_ptr_null(strstr(err.message, "heavy"));
}
END_TEST

START_TEST(out_of_resources)
{
    kr_kernel *kernel;
    ck_ok(kr_module_kernel(module, "heavy", &kernel, &err));
    f->calls = 0;
    f->fail_at = 3; /* get current, push, launch */
    f->fail_with = CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
    ck_assert_int_eq(kr_kernel_launch(kernel, kr_device_default_stream(device),
                                      &(kr_launch_config){{1}, {256}, 64}, KR_ARGS(KR_PTR(1)), &err),
                     KR_LAUNCH_FAILED);
    ck_contains(err.message, "162 registers x 256 threads = 41472 of the 65536");
    ck_contains(err.message, "16384 + 64 bytes");
    ck_assert_int_eq(err.code, 701);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("module");
    TCase *tc = tcase_create("module");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, one_library_for_all_devices);
    tcase_add_test(tc, modules_where_there_are_no_libraries);
    tcase_add_test(tc, ptx_needs_no_nul);
    tcase_add_loop_test(tc, images_refused, 0, KR_COUNT(refusals));
    tcase_add_loop_test(tc, load_answers, 0, KR_COUNT(answers));
    tcase_add_test(tc, answers_to_a_fatbin);
    tcase_add_test(tc, cubins);
    tcase_add_test(tc, a_cubin_of_a_newer_cuda);
    tcase_add_test(tc, fatbins_are_explained);
    tcase_add_test(tc, damaged_images);
    tcase_add_test(tc, kernels);
    tcase_add_test(tc, missing_kernel);
    tcase_add_test(tc, older_driver);
    tcase_add_test(tc, launches);
    tcase_add_loop_test(tc, bad_configurations, 0, 11);
    tcase_add_test(tc, bad_arguments);
    tcase_add_test(tc, shared_memory_is_only_raised);
    tcase_add_test(tc, a_list_that_is_not_there);
    tcase_add_test(tc, a_kernel_that_is_gone_is_not_suspected);
    tcase_add_test(tc, out_of_resources);
    suite_add_tcase(suite, tc);
    return run(suite);
}
