/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays: their making, their descriptors, and copies through them. */
#include "tests/softcuda/facts/memory.h"

static CUarray array(size_t width, size_t height, CUarray_format format, unsigned channels)
{
    CUarray a;
    const CUDA_ARRAY_DESCRIPTOR d = {width, height, format, channels};
    MUST(cuArrayCreate_v2(&a, &d));
    return a;
}

static CUarray bytes_of(size_t width, size_t height)
{
    return array(width, height, CU_AD_FORMAT_UNSIGNED_INT8, 1);
}

static CUarray solid(size_t width, size_t height, size_t depth, unsigned flags)
{
    CUarray a;
    const CUDA_ARRAY3D_DESCRIPTOR d = {width, height, depth, CU_AD_FORMAT_UNSIGNED_INT8, 1, flags};
    MUST(cuArray3DCreate_v2(&a, &d));
    return a;
}

/* Creates and says what the descriptors then are. */
static void ask_array(CUDA_ARRAY3D_DESCRIPTOR d)
{
    CUarray a = NULL;
    CUDA_ARRAY_DESCRIPTOR flat = {77, 77, 77, 77};
    CUDA_ARRAY3D_DESCRIPTOR got = {77, 77, 77, 77, 77, 77};
    CUresult result = cuArray3DCreate_v2(&a, &d);
    say(" %d", result);
    if (result)
        return;
    say(":%d", cuArray3DGetDescriptor_v2(&got, a));
    say(":%zux%zux%zu %d %u %u", got.Width, got.Height, got.Depth, got.Format, got.NumChannels, got.Flags);
    say(":%d", cuArrayGetDescriptor_v2(&flat, a));
    say(":%zux%zu %d %u", flat.Width, flat.Height, flat.Format, flat.NumChannels);
    say(":%d", cuArrayDestroy(a));
}

static void formats(void)
{
    begin();
    for (int format = 0; format <= 33; format++)
        for (unsigned channels = 0; channels <= 5; channels++) {
            CUarray a;
            const CUDA_ARRAY_DESCRIPTOR d = {8, 8, format, channels};
            CUresult result = cuArrayCreate_v2(&a, &d);
            say("%s%d", channels ? "" : " ", result);
            if (!result)
                MUST(cuArrayDestroy(a));
        }
}

static void shapes(void)
{
    static const size_t sides[] = {0, 1, 6, 7, 12};
    begin();
    for (unsigned flags = 0; flags <= 5; flags++) {
        say(" flags %u:", flags);
        for (size_t x = 0; x < COUNT(sides); x++)
            for (size_t y = 0; y < COUNT(sides); y++)
                for (size_t z = 0; z < COUNT(sides); z++) {
                    CUarray a;
                    const CUDA_ARRAY3D_DESCRIPTOR d = {sides[x],           sides[y], sides[z],
                                                       CU_AD_FORMAT_FLOAT, 1,        flags};
                    CUresult result = cuArray3DCreate_v2(&a, &d);
                    say("%d", result);
                    if (!result)
                        MUST(cuArrayDestroy(a));
                }
    }
}

static void flags(void)
{
    begin();
    for (unsigned bit = 0; bit < 12; bit++) {
        ask_array((CUDA_ARRAY3D_DESCRIPTOR){16, 16, 0, CU_AD_FORMAT_UNSIGNED_INT8, 1, 1u << bit});
        ask_array((CUDA_ARRAY3D_DESCRIPTOR){16, 16, 6, CU_AD_FORMAT_FLOAT, 4, 1u << bit});
        say(",");
    }
}

static void descriptors(void)
{
    begin();
    ask_array((CUDA_ARRAY3D_DESCRIPTOR){10, 0, 0, CU_AD_FORMAT_UNSIGNED_INT8, 1, 0});
    ask_array((CUDA_ARRAY3D_DESCRIPTOR){10, 5, 0, CU_AD_FORMAT_SIGNED_INT16, 2, 0});
    ask_array((CUDA_ARRAY3D_DESCRIPTOR){10, 5, 3, CU_AD_FORMAT_HALF, 4, 0});
    ask_array((CUDA_ARRAY3D_DESCRIPTOR){10, 5, 3, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_LAYERED});
    ask_array((CUDA_ARRAY3D_DESCRIPTOR){10, 0, 3, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_LAYERED});
    ask_array((CUDA_ARRAY3D_DESCRIPTOR){10, 10, 6, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_CUBEMAP});
    ask_array((CUDA_ARRAY3D_DESCRIPTOR){10, 5, 0, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_SURFACE_LDST});
    CUDA_ARRAY_DESCRIPTOR d = {77, 77, 77, 77};
    CUarray a = array(10, 0, CU_AD_FORMAT_FLOAT, 2);
    CUDA_ARRAY3D_DESCRIPTOR e = {77, 77, 77, 77, 77, 77};
    ASK(cuArrayGetDescriptor_v2(&d, a));
    say(":%zux%zu %d %u", d.Width, d.Height, d.Format, d.NumChannels);
    ASK(cuArray3DGetDescriptor_v2(&e, a));
    say(":%zux%zux%zu %d %u %u", e.Width, e.Height, e.Depth, e.Format, e.NumChannels, e.Flags);
}

static void limits(void)
{
    static const size_t sizes[][4] = {
        {131072, 0, 0, 0}, {131073, 0, 0, 0},    {131072, 65536, 0, 0}, {131072, 65537, 0, 0},
        {131073, 1, 0, 0}, {16384, 16384, 1, 0}, {16385, 1, 1, 0},      {1, 16385, 1, 0},
        {1, 1, 16384, 0},  {1, 1, 16385, 0},     {32768, 0, 2048, 1},   {32769, 0, 1, 1},
        {1, 0, 2049, 1},   {32768, 1, 1, 1},     {1, 32769, 1, 1},      {SIZE_MAX, SIZE_MAX, 0}};
    begin();
    for (size_t i = 0; i < COUNT(sizes); i++) {
        CUarray a;
        const CUDA_ARRAY3D_DESCRIPTOR d = {
            sizes[i][0], sizes[i][1], sizes[i][2], CU_AD_FORMAT_UNSIGNED_INT8, 1, (unsigned)sizes[i][3]};
        CUresult result = cuArray3DCreate_v2(&a, &d);
        say(" %d", result);
        if (!result)
            MUST(cuArrayDestroy(a));
    }
}

static void wrong(void)
{
    CUarray a = POINTER(UNSET);
    CUDA_ARRAY_DESCRIPTOR d = {8, 8, CU_AD_FORMAT_FLOAT, 1};
    CUDA_ARRAY3D_DESCRIPTOR e = {8, 8, 8, CU_AD_FORMAT_FLOAT, 1, 0};
    begin();
    ASK(cuArrayCreate_v2(NULL, &d));
    ASK(cuArrayCreate_v2(&a, NULL));
    ASK(cuArray3DCreate_v2(NULL, &e));
    ASK(cuArray3DCreate_v2(&a, NULL));
    d.Width = 0;
    ASK(cuArrayCreate_v2(&a, &d));
    say_is(ADDRESS(a), 0);
    ASK(cuArrayGetDescriptor_v2(&d, NULL));
    ASK(cuArray3DGetDescriptor_v2(&e, NULL));
    ASK(cuArrayDestroy(NULL));
    a = bytes_of(8, 8);
    ASK(cuArrayGetDescriptor_v2(NULL, a));
    ASK(cuArray3DGetDescriptor_v2(NULL, a));
    CUarray plane = POINTER(UNSET);
    ASK(cuArrayGetPlane(&plane, a, 0));
    ASK(cuArrayGetPlane(&plane, a, 1));
    ASK(cuArrayGetPlane(NULL, a, 0));
}

static void destroy_elsewhere(void)
{
    begin();
    CUarray a = bytes_of(8, 8);
    begin_second();
    CUDA_ARRAY_DESCRIPTOR d;
    ASK(cuArrayGetDescriptor_v2(&d, a));
    ASK(cuArrayDestroy(a));
}

static void of_zeros(void)
{
    begin();
    ASK(cuArrayDestroy(POINTER(plain(PAGE))));
}

/* ---- copies by offset ---- */

static void ask_offsets(CUarray a)
{
    char host[512];
    CUdeviceptr p = device(512);
    CUarray other = bytes_of(64, 4);
    memset(host, 0, sizeof host);
    say(" host");
    ASK(cuMemcpyHtoA_v2(a, 0, host, 64));
    ASK(cuMemcpyHtoA_v2(a, 10, host, 54));
    ASK(cuMemcpyHtoA_v2(a, 10, host, 55));
    ASK(cuMemcpyHtoA_v2(a, 63, host, 1));
    ASK(cuMemcpyHtoA_v2(a, 64, host, 1));
    ASK(cuMemcpyHtoA_v2(a, 0, host, 128));
    ASK(cuMemcpyHtoA_v2(a, 0, host, 256));
    ASK(cuMemcpyHtoA_v2(a, 0, host, 257));
    ASK(cuMemcpyHtoA_v2(a, 256, host, 0));
    ASK(cuMemcpyHtoA_v2(a, SIZE_MAX, host, 1));
    ASK(cuMemcpyHtoA_v2(a, 0, NULL, 4));
    ASK(cuMemcpyHtoA_v2(NULL, 0, host, 4));
    ASK(cuMemcpyHtoA_v2(NULL, 0, NULL, 0));
    ASK(cuMemcpyAtoH_v2(host, a, 0, 64));
    ASK(cuMemcpyAtoH_v2(host, a, 0, 256));
    ASK(cuMemcpyAtoH_v2(host, a, 1, 64));
    ASK(cuMemcpyAtoH_v2(NULL, a, 0, 64));
    ASK(cuMemcpyAtoH_v2(host, NULL, 0, 64));
    say(" device");
    ASK(cuMemcpyDtoA_v2(a, 0, p, 64));
    ASK(cuMemcpyDtoA_v2(a, 0, p, 256));
    ASK(cuMemcpyDtoA_v2(a, 0, p, 257));
    ASK(cuMemcpyDtoA_v2(a, 0, 0, 4));
    ASK(cuMemcpyDtoA_v2(NULL, 0, p, 4));
    ASK(cuMemcpyDtoA_v2(a, 0, ADDRESS(host), 4));
    ASK(cuMemcpyAtoD_v2(p, a, 0, 64));
    ASK(cuMemcpyAtoD_v2(p, a, 5, 64));
    ASK(cuMemcpyAtoD_v2(p + 500, a, 0, 64));
    ASK(cuMemcpyAtoD_v2(p, NULL, 0, 64));
    say(" array");
    ASK(cuMemcpyAtoA_v2(other, 0, a, 0, 64));
    ASK(cuMemcpyAtoA_v2(other, 4, a, 8, 4));
    ASK(cuMemcpyAtoA_v2(other, 0, a, 0, 256));
    ASK(cuMemcpyAtoA_v2(a, 0, a, 0, 4));
    ASK(cuMemcpyAtoA_v2(NULL, 0, a, 0, 4));
    say(" async");
    ASK(cuMemcpyHtoAAsync_v2(a, 0, host, 64, NULL));
    ASK(cuMemcpyAtoHAsync_v2(host, a, 0, 64, stream()));
    ASK(cuMemcpyAtoHAsync_v2(host, a, 0, 65, NULL));
    ASK(cuCtxSynchronize());
}

static void offsets_of_line(void)
{
    begin();
    ask_offsets(bytes_of(64, 0));
}

static void offsets_of_plane(void)
{
    begin();
    ask_offsets(bytes_of(64, 4));
}

static void offsets_of_solid(void)
{
    begin();
    ask_offsets(solid(64, 4, 2, 0));
}

static void offsets_of_layers(void)
{
    begin();
    ask_offsets(solid(64, 4, 2, CUDA_ARRAY3D_LAYERED));
}

static void offsets_of_floats(void)
{
    char host[512];
    begin();
    CUarray a = array(16, 0, CU_AD_FORMAT_FLOAT, 1);
    for (size_t offset = 0; offset <= 4; offset++)
        for (size_t bytes = 0; bytes <= 4; bytes++)
            ASK(cuMemcpyHtoA_v2(a, offset, host, bytes));
}

static void offsets_arrive(void)
{
    unsigned char in[256], out[256];
    begin();
    for (int i = 0; i < 256; i++)
        in[i] = (unsigned char)(i * 7);
    CUarray line = bytes_of(64, 0), plane = bytes_of(64, 4);
    CUdeviceptr p = device(256);
    MUST(cuMemcpyHtoA_v2(line, 0, in, 64));
    MUST(cuMemcpyAtoH_v2(out, line, 8, 48));
    say(" %d", memcmp(in + 8, out, 48) == 0);
    MUST(cuMemcpyAtoA_v2(plane, 0, line, 0, 64));
    MUST(cuMemcpyAtoD_v2(p, plane, 4, 32));
    MUST(cuMemcpyDtoH_v2(out, p, 32));
    say(" %d", memcmp(in + 4, out, 32) == 0);
}

/* ---- copies of boxes ---- */

static CUDA_MEMCPY2D to_array(CUarray a, const void *host)
{
    return (CUDA_MEMCPY2D){.srcMemoryType = CU_MEMORYTYPE_HOST,
                           .srcHost = host,
                           .srcPitch = 64,
                           .dstMemoryType = CU_MEMORYTYPE_ARRAY,
                           .dstArray = a,
                           .WidthInBytes = 64,
                           .Height = 4};
}

#define CHANGED(change)                    \
    do {                                   \
        CUDA_MEMCPY2D b = to_array(a, in); \
        change;                            \
        ASK(cuMemcpy2D_v2(&b));            \
        ASK(cuMemcpy2DAsync_v2(&b, NULL)); \
        say(",");                          \
    } while (0)

static void boxes(void)
{
    static unsigned char in[4096];
    begin();
    CUarray a = bytes_of(64, 4), deep = solid(64, 4, 2, 0);
    CHANGED((void)b);
    CHANGED(b.dstArray = NULL);
    CHANGED(b.dstPitch = 3);
    CHANGED(b.dstDevice = GARBAGE);
    CHANGED(b.WidthInBytes = 65);
    CHANGED((b.WidthInBytes = 65, b.srcPitch = 128));
    CHANGED(b.Height = 5);
    CHANGED(b.WidthInBytes = 0);
    CHANGED(b.Height = 0);
    CHANGED(b.dstXInBytes = 1);
    CHANGED((b.dstXInBytes = 1, b.WidthInBytes = 63));
    CHANGED(b.dstY = 1);
    CHANGED((b.dstY = 1, b.Height = 3));
    CHANGED((b.dstY = 4, b.Height = 0));
    CHANGED((b.dstXInBytes = 64, b.WidthInBytes = 0));
    CHANGED(b.srcPitch = 0);
    say(" line");
    a = bytes_of(64, 0);
    CHANGED((void)b);
    CHANGED(b.Height = 1);
    CHANGED((b.Height = 1, b.dstY = 1));
    CHANGED(b.Height = 0);
    say(" floats");
    a = array(16, 4, CU_AD_FORMAT_FLOAT, 1);
    CHANGED((void)b);
    CHANGED((b.dstXInBytes = 1, b.WidthInBytes = 4));
    CHANGED((b.dstXInBytes = 4, b.WidthInBytes = 3));
    CHANGED((b.dstXInBytes = 4, b.WidthInBytes = 4));
    say(" solid");
    a = deep;
    CHANGED((void)b);
    ASK(cuCtxSynchronize());
}

static void boxes_arrive(void)
{
    unsigned char in[256], out[256];
    begin();
    for (int i = 0; i < 256; i++)
        in[i] = (unsigned char)(i * 7 + i / 64);
    CUarray a = bytes_of(64, 4), c = bytes_of(64, 4);
    CUDA_MEMCPY2D b = to_array(a, in);
    MUST(cuMemcpy2D_v2(&b));
    b = (CUDA_MEMCPY2D){.srcMemoryType = CU_MEMORYTYPE_ARRAY,
                        .srcArray = a,
                        .dstMemoryType = CU_MEMORYTYPE_ARRAY,
                        .dstArray = c,
                        .WidthInBytes = 64,
                        .Height = 4};
    MUST(cuMemcpy2D_v2(&b));
    memset(out, 0, sizeof out);
    b = (CUDA_MEMCPY2D){.srcMemoryType = CU_MEMORYTYPE_ARRAY,
                        .srcArray = c,
                        .srcXInBytes = 3,
                        .srcY = 1,
                        .dstMemoryType = CU_MEMORYTYPE_HOST,
                        .dstHost = out,
                        .dstPitch = 32,
                        .WidthInBytes = 20,
                        .Height = 3};
    MUST(cuMemcpy2D_v2(&b));
    unsigned sum = 0;
    for (int i = 0; i < 256; i++)
        sum = sum * 31 + out[i];
    say(" %u %d", sum, memcmp(out, in + 64 + 3, 20) == 0);
}

static CUDA_MEMCPY3D to_solid(CUarray a, const void *host)
{
    return (CUDA_MEMCPY3D){.srcMemoryType = CU_MEMORYTYPE_HOST,
                           .srcHost = host,
                           .srcPitch = 64,
                           .srcHeight = 4,
                           .dstMemoryType = CU_MEMORYTYPE_ARRAY,
                           .dstArray = a,
                           .WidthInBytes = 64,
                           .Height = 4,
                           .Depth = 2};
}

#undef CHANGED
#define CHANGED(change)                    \
    do {                                   \
        CUDA_MEMCPY3D b = to_solid(a, in); \
        change;                            \
        ASK(cuMemcpy3D_v2(&b));            \
        ASK(cuMemcpy3DAsync_v2(&b, NULL)); \
        say(",");                          \
    } while (0)

static void ask_solids(CUarray a)
{
    static unsigned char in[1 << 16];
    CHANGED((void)b);
    CHANGED(b.dstArray = NULL);
    CHANGED(b.dstPitch = 3);
    CHANGED(b.dstHeight = 3);
    CHANGED(b.WidthInBytes = 65);
    CHANGED(b.Height = 5);
    CHANGED((b.Height = 5, b.srcHeight = 5));
    CHANGED(b.Depth = 3);
    CHANGED(b.Depth = 0);
    CHANGED(b.Depth = 1);
    CHANGED((b.Depth = 1, b.dstZ = 1));
    CHANGED(b.dstZ = 1);
    CHANGED(b.dstY = 1);
    CHANGED((b.dstY = 1, b.Height = 3));
    CHANGED(b.dstLOD = 1);
    CHANGED(b.Height = 1);
    CHANGED((b.Height = 1, b.Depth = 1));
    ASK(cuCtxSynchronize());
}

static void solids(void)
{
    begin();
    ask_solids(solid(64, 4, 2, 0));
    say(" layers");
    ask_solids(solid(64, 4, 2, CUDA_ARRAY3D_LAYERED));
    say(" plane");
    ask_solids(bytes_of(64, 4));
    say(" line");
    ask_solids(bytes_of(64, 0));
}

static void solids_arrive(void)
{
    unsigned char in[512], out[512];
    begin();
    for (int i = 0; i < 512; i++)
        in[i] = (unsigned char)(i * 7 + i / 64);
    CUarray a = solid(64, 4, 2, 0);
    CUDA_MEMCPY3D b = to_solid(a, in);
    MUST(cuMemcpy3D_v2(&b));
    memset(out, 0, sizeof out);
    b = (CUDA_MEMCPY3D){.srcMemoryType = CU_MEMORYTYPE_ARRAY,
                        .srcArray = a,
                        .srcXInBytes = 3,
                        .srcY = 1,
                        .srcZ = 1,
                        .dstMemoryType = CU_MEMORYTYPE_HOST,
                        .dstHost = out,
                        .dstPitch = 32,
                        .dstHeight = 5,
                        .dstZ = 1,
                        .WidthInBytes = 20,
                        .Height = 3,
                        .Depth = 1};
    MUST(cuMemcpy3D_v2(&b));
    unsigned sum = 0;
    for (int i = 0; i < 512; i++)
        sum = sum * 31 + out[i];
    say(" %u", sum);
}

static void memory(void)
{
    size_t before, during, after;
    begin();
    MUST(cuMemGetInfo_v2(&before, NULL));
    CUarray a = array(4096, 4096, CU_AD_FORMAT_FLOAT, 1);
    MUST(cuMemGetInfo_v2(&during, NULL));
    MUST(cuArrayDestroy(a));
    MUST(cuMemGetInfo_v2(&after, NULL));
    say(" %d %d", before - during >= 64 * MIB, before == after);
}

/* ---- the order of calls ---- */

static void each_call(CUarray a)
{
    char host[8] = {0};
    CUarray out;
    CUDA_ARRAY_DESCRIPTOR d = {8, 8, CU_AD_FORMAT_FLOAT, 1};
    CUDA_ARRAY3D_DESCRIPTOR e = {8, 8, 8, CU_AD_FORMAT_FLOAT, 1, 0};
    ASK(cuArrayCreate_v2(&out, &d));
    ASK(cuArrayCreate_v2(NULL, NULL));
    ASK(cuArray3DCreate_v2(&out, &e));
    ASK(cuArrayGetDescriptor_v2(&d, a));
    ASK(cuArrayGetDescriptor_v2(NULL, NULL));
    ASK(cuArray3DGetDescriptor_v2(&e, a));
    ASK(cuMemcpyHtoA_v2(a, 0, host, 8));
    ASK(cuMemcpyHtoA_v2(NULL, 0, NULL, 0));
    ASK(cuMemcpyAtoH_v2(host, a, 0, 8));
    ASK(cuArrayDestroy(a));
    ASK(cuArrayDestroy(NULL));
}

static void before_init(void)
{
    each_call(NULL);
}

static void without_context(void)
{
    begin();
    CUarray a = bytes_of(8, 0);
    MUST(cuCtxSetCurrent(NULL));
    each_call(a);
}

static void after_context(void)
{
    CUcontext context;
    begin();
    MUST(cuCtxCreate_v2(&context, 0, 0));
    MUST(cuCtxDestroy_v2(context));
    CUarray a = bytes_of(8, 0);
    MUST(cuCtxCreate_v2(&context, 0, 0));
    MUST(cuCtxPushCurrent_v2(context));
    MUST(cuCtxDestroy_v2(context));
    each_call(a);
}

static void after_fault(void)
{
    begin();
    CUarray a = bytes_of(8, 0);
    fault_here();
    each_call(a);
}

#define CASE(name)  \
    {               \
#name, name \
    }
static const fact facts[] = {
    CASE(formats),
    CASE(shapes),
    CASE(flags),
    CASE(descriptors),
    CASE(limits),
    CASE(wrong),
    CASE(destroy_elsewhere),
    CASE(of_zeros),
    CASE(offsets_of_line),
    CASE(offsets_of_plane),
    CASE(offsets_of_solid),
    CASE(offsets_of_layers),
    CASE(offsets_of_floats),
    CASE(offsets_arrive),
    CASE(boxes),
    CASE(boxes_arrive),
    CASE(solids),
    CASE(solids_arrive),
    CASE(memory),
    CASE(before_init),
    CASE(without_context),
    CASE(after_context),
    CASE(after_fault),
};

FACTS_MAIN(facts)
