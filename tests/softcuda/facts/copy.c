/* SPDX-License-Identifier: Apache-2.0 */
/* Copies in one, two and three dimensions, between devices, and in batches. */
#include "tests/softcuda/facts/memory.h"

enum { BYTES = 1000 };

/* ---- one dimension ---- */

enum { N_KINDS = 8 };

/* One of each kind of memory. */
static void make_kinds(CUdeviceptr *kinds)
{
    CUdeviceptr made[N_KINDS] = {device(BYTES),  second_device(BYTES), pinned(BYTES), registered(BYTES),
                                 managed(BYTES), pooled(BYTES),        plain(BYTES),  0};
    memcpy(kinds, made, sizeof made);
}

static CUresult h_to_d(CUdeviceptr to, CUdeviceptr from, size_t bytes)
{
    return cuMemcpyHtoD_v2(to, POINTER(from), bytes);
}

static CUresult d_to_h(CUdeviceptr to, CUdeviceptr from, size_t bytes)
{
    return cuMemcpyDtoH_v2(POINTER(to), from, bytes);
}

static CUresult asynchronous(CUdeviceptr to, CUdeviceptr from, size_t bytes)
{
    return cuMemcpyAsync(to, from, bytes, NULL);
}

static CUresult h_to_d_asynchronous(CUdeviceptr to, CUdeviceptr from, size_t bytes)
{
    return cuMemcpyHtoDAsync_v2(to, POINTER(from), bytes, NULL);
}

static CUresult d_to_h_asynchronous(CUdeviceptr to, CUdeviceptr from, size_t bytes)
{
    return cuMemcpyDtoHAsync_v2(POINTER(to), from, bytes, NULL);
}

static CUresult d_to_d_asynchronous(CUdeviceptr to, CUdeviceptr from, size_t bytes)
{
    return cuMemcpyDtoDAsync_v2(to, from, bytes, NULL);
}

/* From each kind to each. */
static void ask_kinds(CUresult (*copy)(CUdeviceptr, CUdeviceptr, size_t))
{
    CUdeviceptr to[N_KINDS], from[N_KINDS];
    begin();
    make_kinds(to);
    make_kinds(from);
    for (int i = 0; i < N_KINDS; i++) {
        say(" |");
        for (int j = 0; j < N_KINDS; j++)
            ASK(copy(to[i], from[j], BYTES));
    }
    ASK(cuCtxSynchronize());
}

#define BETWEEN_KINDS(name, copy)          \
    static void name##_between_kinds(void) \
    {                                      \
        ask_kinds(copy);                   \
    }
BETWEEN_KINDS(any, cuMemcpy)
BETWEEN_KINDS(h_to_d, h_to_d)
BETWEEN_KINDS(d_to_h, d_to_h)
BETWEEN_KINDS(d_to_d, cuMemcpyDtoD_v2)
BETWEEN_KINDS(any_async, asynchronous)
BETWEEN_KINDS(h_to_d_async, h_to_d_asynchronous)
BETWEEN_KINDS(d_to_h_async, d_to_h_asynchronous)
BETWEEN_KINDS(d_to_d_async, d_to_d_asynchronous)

/* cuMemcpy takes freed memory for the host's, and the process ends. */
#define WITH_FREED(name, call)                   \
    static void name(void)                       \
    {                                            \
        begin();                                 \
        CUdeviceptr freed = device_freed(BYTES); \
        CUdeviceptr p = managed(BYTES);          \
        ASK(call);                               \
    }
WITH_FREED(h_to_freed, cuMemcpyHtoD_v2(freed, POINTER(p), BYTES))
WITH_FREED(freed_to_h, cuMemcpyDtoH_v2(POINTER(p), freed, BYTES))
WITH_FREED(d_to_freed, cuMemcpyDtoD_v2(freed, p, BYTES))
WITH_FREED(freed_to_d, cuMemcpyDtoD_v2(p, freed, BYTES))

static void sizes(void)
{
    static const size_t asked[] = {0, 1, BYTES, BYTES + 1, 1024, 1025, 2 * MIB, 3 * MIB};
    begin();
    CUdeviceptr p = device(BYTES), host = plain(4 * MIB), q = device(5 * MIB);
    for (size_t i = 0; i < COUNT(asked); i++) {
        ASK(cuMemcpyHtoD_v2(p, POINTER(host), asked[i]));
        ASK(cuMemcpyDtoH_v2(POINTER(host), p, asked[i]));
        ASK(cuMemcpyDtoD_v2(q, p, asked[i]));
        say(",");
    }
    say(" inside");
    ASK(cuMemcpyHtoD_v2(p + 999, POINTER(host), 1));
    ASK(cuMemcpyHtoD_v2(p + 999, POINTER(host), 2));
    ASK(cuMemcpyHtoD_v2(p + 1000, POINTER(host), 1));
    ASK(cuMemcpyHtoD_v2(p - 1, POINTER(host), 2));
    ASK(cuMemcpyHtoD_v2(q + 5 * MIB - 1, POINTER(host), 2));
    ASK(cuMemcpyDtoH_v2(POINTER(host), p, SIZE_MAX));
    ASK(cuMemcpyDtoD_v2(p, q, (size_t)1 << 60));
    say(" nothing");
    ASK(cuMemcpyHtoD_v2(0, NULL, 0));
    ASK(cuMemcpyDtoH_v2(NULL, 0, 0));
    ASK(cuMemcpyDtoD_v2(0, 0, 0));
    ASK(cuMemcpy(0, 0, 0));
    ASK(cuMemcpyHtoD_v2(GARBAGE, NULL, 0));
    ASK(cuMemcpyDtoD_v2(p + BYTES, q, 0));
}

static void sizes_on_host(void)
{
    begin();
    CUdeviceptr p = device(4 * PAGE), host = pinned(BYTES), m = managed(BYTES);
    say(" pinned");
    ASK(cuMemcpy(p, host, BYTES + 1));
    ASK(cuMemcpyHtoD_v2(p, POINTER(host), BYTES + 1));
    ASK(cuMemcpyHtoD_v2(p, POINTER(host), PAGE));
    ASK(cuMemcpyDtoH_v2(POINTER(host), p, BYTES + 1));
    ASK(cuMemcpyDtoD_v2(p, host, BYTES + 1));
    say(" managed");
    ASK(cuMemcpy(p, m, BYTES + 1));
    ASK(cuMemcpyHtoD_v2(p, POINTER(m), BYTES + 1));
    ASK(cuMemcpyDtoH_v2(POINTER(m), p, BYTES + 1));
    ASK(cuMemcpyDtoD_v2(p, m, BYTES + 1));
    say(" registered");
    CUdeviceptr r = plain(4 * PAGE);
    MUST(cuMemHostRegister_v2(POINTER(r + PAGE), PAGE, 0));
    ASK(cuMemcpyHtoD_v2(p, POINTER(r + PAGE), PAGE));
    ASK(cuMemcpyHtoD_v2(p, POINTER(r + PAGE), 2 * PAGE));
    ASK(cuMemcpyHtoD_v2(p, POINTER(r), 2 * PAGE));
    ASK(cuMemcpyHtoD_v2(p, POINTER(r), 3 * PAGE));
    ASK(cuMemcpyDtoH_v2(POINTER(r), p, 3 * PAGE));
    ASK(cuMemcpy(p, r, 3 * PAGE));
    ASK(cuMemcpy(p, r + PAGE, 2 * PAGE));
    ASK(cuMemcpyDtoD_v2(p, r + PAGE, 2 * PAGE));
    ASK(cuMemcpyHtoDAsync_v2(p, POINTER(r + PAGE), 2 * PAGE, NULL));
    ASK(cuCtxSynchronize());
}

static void bytes_arrive(void)
{
    begin();
    CUdeviceptr p = device(256), q = second_device(256), m = managed(256);
    unsigned char in[256], out[256];
    for (int i = 0; i < 256; i++)
        in[i] = (unsigned char)(i * 7);
    MUST(cuMemcpyHtoD_v2(p, in, 256));
    MUST(cuMemcpyDtoD_v2(m, p, 256));
    MUST(cuMemcpy(q, m, 256));
    MUST(cuMemcpyDtoH_v2(out, q, 256));
    say(" %d", memcmp(in, out, 256) == 0);
    MUST(cuMemcpyDtoD_v2(p, p + 64, 128)); /* overlapping, downwards */
    MUST(cuMemcpyDtoH_v2(out, p, 256));
    say(" %d", memcmp(in + 64, out, 64) == 0);
}

static void streams_right(void)
{
    begin();
    CUdeviceptr p = device(BYTES), host = pinned(BYTES);
    CUstream all[] = {NULL, CU_STREAM_LEGACY, CU_STREAM_PER_THREAD, stream()};
    for (size_t i = 0; i < COUNT(all); i++) {
        ASK(cuMemcpyHtoDAsync_v2(p, POINTER(host), BYTES, all[i]));
        ASK(cuMemcpyAsync(host, p, BYTES, all[i]));
        ASK(cuMemsetD32Async(p, 1, 4, all[i]));
        ASK(cuStreamSynchronize(all[i]));
    }
}

/* A stream of the second device, whose context is not current. */
static void streams_of_second(void)
{
    CUcontext first = begin();
    CUdeviceptr p = device(BYTES), host = pinned(BYTES), q = second_device(BYTES);
    begin_second();
    CUstream s = stream();
    MUST(cuCtxSetCurrent(first));
    ASK(cuMemcpyHtoDAsync_v2(p, POINTER(host), BYTES, s));
    ASK(cuMemcpyDtoDAsync_v2(p, q, BYTES, s));
    ASK(cuMemcpyDtoDAsync_v2(q, p, BYTES, s));
    ASK(cuMemsetD8Async(p, 0, BYTES, s));
    ASK(cuMemsetD8Async(q, 0, BYTES, s));
    ASK(cuMemsetD8Async(q, 0, BYTES, NULL));
    ASK(cuStreamSynchronize(s));
}

/* A stream that was destroyed, or a small number, ends the process on a real driver; so do a context that
 * ended, given to cuMemcpyPeer, and NULL to cuMemcpy3DPeer. */
static void stream_of_zeros(void)
{
    begin();
    ASK(cuMemcpyHtoDAsync_v2(device(4), POINTER(pinned(4)), 4, POINTER(plain(PAGE))));
}

/* ---- between devices ---- */

static void peers(void)
{
    CUcontext first = begin(), second = begin_second();
    CUdeviceptr q = device(BYTES), m = managed(BYTES);
    MUST(cuCtxSetCurrent(first));
    CUdeviceptr p = device(BYTES), host = plain(BYTES), h = pinned(BYTES);
    ASK(cuMemcpyPeer(q, second, p, first, BYTES));
    ASK(cuMemcpyPeer(p, first, q, second, BYTES));
    ASK(cuMemcpyPeer(p, first, p + 500, first, 500));
    say(" swapped");
    ASK(cuMemcpyPeer(q, first, p, second, BYTES));
    ASK(cuMemcpyPeer(p, second, p, second, BYTES));
    say(" none");
    ASK(cuMemcpyPeer(q, NULL, p, first, BYTES));
    ASK(cuMemcpyPeer(q, second, p, NULL, BYTES));
    ASK(cuMemcpyPeer(q, NULL, p, NULL, BYTES));
    say(" sizes");
    ASK(cuMemcpyPeer(q, second, p, first, 0));
    ASK(cuMemcpyPeer(0, second, 0, first, 0));
    ASK(cuMemcpyPeer(0, NULL, 0, NULL, 0));
    ASK(cuMemcpyPeer(q, second, p, first, BYTES + 1));
    ASK(cuMemcpyPeer(q, second, p, first, 4 * MIB));
    say(" kinds");
    ASK(cuMemcpyPeer(m, second, p, first, BYTES));
    ASK(cuMemcpyPeer(host, second, p, first, BYTES));
    ASK(cuMemcpyPeer(q, second, h, first, BYTES));
    ASK(cuMemcpyPeer(0, second, p, first, BYTES));
    say(" async");
    ASK(cuMemcpyPeerAsync(q, second, p, first, BYTES, NULL));
    ASK(cuMemcpyPeerAsync(q, second, p, first, BYTES, stream()));
    ASK(cuMemcpyPeerAsync(q, NULL, p, first, BYTES, NULL));
    ASK(cuMemcpyPeerAsync(q, second, p, first, 4 * MIB, NULL));
    say(" no context");
    MUST(cuCtxSetCurrent(NULL));
    ASK(cuMemcpyPeer(q, second, p, first, BYTES));
    ASK(cuMemcpyPeerAsync(q, second, p, first, BYTES, NULL));
    ASK(cuMemcpyPeer(q, second, p, first, 0));
}

/* ---- two dimensions. A real driver's sums of pitches and heights wrap; such boxes are not asked. ---- */

enum { WIDTH = 64, HEIGHT = 8, PITCH = 128 };

static CUDA_MEMCPY2D box(CUmemorytype to_type, CUdeviceptr to, CUmemorytype from_type, CUdeviceptr from)
{
    return (CUDA_MEMCPY2D){.srcMemoryType = from_type,
                           .srcHost = POINTER(from_type == CU_MEMORYTYPE_HOST ? from : 0),
                           .srcDevice = from_type != CU_MEMORYTYPE_HOST ? from : 0,
                           .srcPitch = PITCH,
                           .dstMemoryType = to_type,
                           .dstHost = POINTER(to_type == CU_MEMORYTYPE_HOST ? to : 0),
                           .dstDevice = to_type != CU_MEMORYTYPE_HOST ? to : 0,
                           .dstPitch = PITCH,
                           .WidthInBytes = WIDTH,
                           .Height = HEIGHT};
}

/* ---- offsets that lead out of the memory that the address names ---- */

typedef struct offsets {
    size_t x, y, pitch, z, height; /* height 0: two dimensions */
} offsets;

static CUresult copy_outside(CUdeviceptr p, CUdeviceptr other, const offsets *o, bool out)
{
    CUDA_MEMCPY3D b = {.srcMemoryType = CU_MEMORYTYPE_UNIFIED,
                       .srcDevice = out ? p : other,
                       .dstMemoryType = CU_MEMORYTYPE_UNIFIED,
                       .dstDevice = out ? other : p,
                       .WidthInBytes = WIDTH,
                       .Height = 1,
                       .Depth = 1};
    if (out)
        b.srcXInBytes = o->x, b.srcY = o->y, b.srcPitch = o->pitch, b.srcZ = o->z, b.srcHeight = o->height;
    else
        b.dstXInBytes = o->x, b.dstY = o->y, b.dstPitch = o->pitch, b.dstZ = o->z, b.dstHeight = o->height;
    if (o->height)
        return cuMemcpy3D_v2(&b);
    CUDA_MEMCPY2D flat = {b.srcXInBytes, b.srcY, b.srcMemoryType, NULL, b.srcDevice, NULL, b.srcPitch,
                          b.dstXInBytes, b.dstY, b.dstMemoryType, NULL, b.dstDevice, NULL, b.dstPitch,
                          WIDTH,         1};
    return cuMemcpy2D_v2(&flat);
}

static const offsets beside = {0, 1, 4 * MIB, 0, 0}, far = {0, 1 << 20, 1 << 20, 0, 0},
                     along = {1 << 30, 0, 0, 0, 0}, deep = {0, 0, 1 << 20, 1, 1 << 20},
                     before = {0, (size_t)-1, 4 * MIB, 0, 0};

/* From there and to there, with the device's memory at the other end. */
#define OUTSIDE(kind, where)                                            \
    static void outside_##kind##_##where##_read(void)                   \
    {                                                                   \
        begin();                                                        \
        ASK(copy_outside(kind(BYTES), device(BYTES), &(where), true));  \
        ASK(cuCtxSynchronize());                                        \
    }                                                                   \
    static void outside_##kind##_##where##_written(void)                \
    {                                                                   \
        begin();                                                        \
        ASK(copy_outside(kind(BYTES), device(BYTES), &(where), false)); \
        ASK(cuCtxSynchronize());                                        \
    }
OUTSIDE(device, beside)
OUTSIDE(device, far)
OUTSIDE(device, along)
OUTSIDE(device, deep)
OUTSIDE(device, before)
OUTSIDE(pinned, beside)
OUTSIDE(pinned, far)
OUTSIDE(pinned, along)
OUTSIDE(pinned, deep)
OUTSIDE(pinned, before)
OUTSIDE(managed, beside)
OUTSIDE(managed, far)
OUTSIDE(managed, along)
OUTSIDE(managed, deep)
OUTSIDE(managed, before)

static void boxes_of_types(void)
{
    begin();
    CUdeviceptr p = device(PITCH * HEIGHT), host = plain(PITCH * HEIGHT);
    for (int to = 0; to <= 5; to++)
        for (int from = 0; from <= 5; from++) {
            CUDA_MEMCPY2D b =
                box(to, to == CU_MEMORYTYPE_HOST ? host : p, from, from == CU_MEMORYTYPE_HOST ? host : p);
            ASK(cuMemcpy2D_v2(&b));
        }
}

/* The box of types by what lies there. */
static void boxes_of_kinds(void)
{
    CUdeviceptr kinds[] = {0, 0, 0, 0, 0, 0, 0, 0};
    begin();
    CUdeviceptr p = device(PITCH * HEIGHT);
    kinds[0] = device(PITCH * HEIGHT);
    kinds[1] = second_device(PITCH * HEIGHT);
    kinds[2] = pinned(PITCH * HEIGHT);
    kinds[3] = registered(PITCH * HEIGHT);
    kinds[4] = managed(PITCH * HEIGHT);
    kinds[5] = pooled(PITCH * HEIGHT);
    kinds[6] = plain(PITCH * HEIGHT);
    for (int type = 1; type <= 4; type++) {
        if (type == CU_MEMORYTYPE_ARRAY)
            continue;
        say(" |");
        for (size_t i = 0; i < COUNT(kinds); i++) {
            CUDA_MEMCPY2D b = box(CU_MEMORYTYPE_DEVICE, p, type, kinds[i]);
            ASK(cuMemcpy2D_v2(&b));
            b = box(type, kinds[i], CU_MEMORYTYPE_DEVICE, p);
            ASK(cuMemcpy2D_v2(&b));
        }
    }
}

/* A change of one field of a box from host to device. */
#define CHANGED(change)                                                           \
    do {                                                                          \
        CUDA_MEMCPY2D b = box(CU_MEMORYTYPE_DEVICE, p, CU_MEMORYTYPE_HOST, host); \
        change;                                                                   \
        ASK(cuMemcpy2D_v2(&b));                                                   \
        ASK(cuMemcpy2DUnaligned_v2(&b));                                          \
        ASK(cuMemcpy2DAsync_v2(&b, NULL));                                        \
        say(",");                                                                 \
    } while (0)

static void boxes(void)
{
    begin();
    CUdeviceptr p = device(PITCH * HEIGHT), host = plain(16 * PITCH * HEIGHT);
    CHANGED((void)b);
    say(" pitch");
    CHANGED(b.srcPitch = 0);
    CHANGED(b.dstPitch = 0);
    CHANGED(b.srcPitch = b.dstPitch = 0);
    CHANGED(b.srcPitch = WIDTH);
    CHANGED(b.srcPitch = WIDTH - 1);
    CHANGED(b.dstPitch = WIDTH - 1);
    CHANGED(b.dstPitch = WIDTH + 1);
    CHANGED(b.dstPitch = (size_t)1 << 31);
    CHANGED((b.dstPitch = (size_t)1 << 31, b.Height = 1));
    CHANGED((b.dstPitch = ((size_t)1 << 31) - 1, b.Height = 1));
    CHANGED((b.srcPitch = (size_t)1 << 31, b.Height = 1));
    CHANGED((b.srcPitch = b.dstPitch = 1, b.WidthInBytes = 1));
    CHANGED((b.srcPitch = 1, b.Height = 1));
    say(" size");
    CHANGED(b.WidthInBytes = 0);
    CHANGED(b.Height = 0);
    CHANGED((b.WidthInBytes = 0, b.dstDevice = 0));
    CHANGED((b.Height = 0, b.dstDevice = GARBAGE));
    CHANGED((b.Height = 0, b.dstPitch = 1));
    CHANGED((b.Height = 0, b.srcMemoryType = 9));
    CHANGED(b.WidthInBytes = PITCH);
    CHANGED(b.WidthInBytes = PITCH + 1);
    CHANGED(b.Height = HEIGHT + 1);
    CHANGED(b.WidthInBytes = SIZE_MAX);
    CHANGED(b.Height = SIZE_MAX);
    say(" offset");
    CHANGED(b.srcXInBytes = PITCH - WIDTH);
    CHANGED(b.srcXInBytes = PITCH - WIDTH + 1);
    CHANGED(b.dstXInBytes = PITCH - WIDTH);
    CHANGED(b.dstXInBytes = PITCH - WIDTH + 1);
    CHANGED(b.dstXInBytes = SIZE_MAX);
    CHANGED(b.srcY = 1);
    CHANGED(b.dstY = 1);
    CHANGED((b.dstY = 1, b.Height = HEIGHT - 1));
    CHANGED((b.dstY = HEIGHT, b.Height = 0));
    CHANGED((b.dstPitch = 0, b.dstXInBytes = 8));
    CHANGED((b.dstPitch = 0, b.dstXInBytes = 8, b.dstY = 2));
    say(" pointers");
    CHANGED(b.srcHost = NULL);
    CHANGED(b.dstDevice = 0);
    CHANGED(b.dstDevice = p + 1);
    CHANGED(b.dstDevice = p + PITCH);
    CHANGED((b.dstDevice = p + PITCH - WIDTH, b.Height = 8));
    ASK(cuMemcpy2D_v2(NULL));
    ASK(cuMemcpy2DAsync_v2(NULL, NULL));
    ASK(cuMemcpy2DUnaligned_v2(NULL));
    ASK(cuCtxSynchronize());
}

static void boxes_arrive(void)
{
    begin();
    CUdeviceptr p = device(PITCH * HEIGHT);
    unsigned char in[PITCH * HEIGHT], out[PITCH * HEIGHT];
    for (int i = 0; i < PITCH * HEIGHT; i++)
        in[i] = (unsigned char)(i * 13 + i / PITCH);
    memset(out, 0, sizeof out);
    MUST(cuMemsetD8_v2(p, 0, PITCH * HEIGHT));
    CUDA_MEMCPY2D b = box(CU_MEMORYTYPE_DEVICE, p, CU_MEMORYTYPE_HOST, ADDRESS(in));
    b.dstXInBytes = 16;
    b.dstY = 2;
    b.Height = 5;
    b.srcXInBytes = 3;
    b.srcY = 1;
    MUST(cuMemcpy2D_v2(&b));
    MUST(cuMemcpyDtoH_v2(out, p, sizeof out));
    unsigned sum = 0;
    for (int i = 0; i < PITCH * HEIGHT; i++)
        sum = sum * 31 + out[i];
    say(" %u %d", sum, memcmp(out + 2 * PITCH + 16, in + PITCH + 3, WIDTH) == 0);
}

/* ---- three dimensions ---- */

enum { DEPTH = 3 };

static CUDA_MEMCPY3D solid(CUdeviceptr to, CUdeviceptr from)
{
    return (CUDA_MEMCPY3D){.srcMemoryType = CU_MEMORYTYPE_HOST,
                           .srcHost = POINTER(from),
                           .srcPitch = PITCH,
                           .srcHeight = HEIGHT,
                           .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                           .dstDevice = to,
                           .dstPitch = PITCH,
                           .dstHeight = HEIGHT,
                           .WidthInBytes = WIDTH,
                           .Height = HEIGHT,
                           .Depth = DEPTH};
}

#undef CHANGED
#define CHANGED(change)                    \
    do {                                   \
        CUDA_MEMCPY3D b = solid(p, host);  \
        change;                            \
        ASK(cuMemcpy3D_v2(&b));            \
        ASK(cuMemcpy3DAsync_v2(&b, NULL)); \
        say(",");                          \
    } while (0)

static void solids(void)
{
    begin();
    CUdeviceptr p = device(PITCH * HEIGHT * DEPTH), host = plain(16 * PITCH * HEIGHT * DEPTH);
    CHANGED((void)b);
    say(" pitch");
    CHANGED(b.srcPitch = 0);
    CHANGED(b.dstPitch = 0);
    CHANGED(b.srcPitch = WIDTH);
    CHANGED(b.srcPitch = WIDTH - 1);
    CHANGED(b.dstPitch = WIDTH - 1);
    CHANGED((b.dstPitch = (size_t)1 << 31, b.Height = b.Depth = 1));
    say(" height");
    CHANGED(b.srcHeight = 0);
    CHANGED(b.dstHeight = 0);
    CHANGED((b.srcHeight = 0, b.Depth = 1));
    CHANGED((b.srcHeight = b.dstHeight = 0, b.Depth = 1));
    CHANGED(b.srcHeight = HEIGHT - 1);
    CHANGED(b.dstHeight = HEIGHT - 1);
    CHANGED((b.dstHeight = HEIGHT - 1, b.Depth = 1));
    CHANGED(b.dstHeight = HEIGHT + 1);
    say(" size");
    CHANGED(b.WidthInBytes = 0);
    CHANGED(b.Height = 0);
    CHANGED(b.Depth = 0);
    CHANGED((b.Depth = 0, b.dstDevice = 0));
    CHANGED(b.Depth = DEPTH + 1);
    CHANGED(b.WidthInBytes = PITCH + 1);
    CHANGED(b.Depth = SIZE_MAX);
    say(" offset");
    CHANGED(b.srcXInBytes = PITCH - WIDTH);
    CHANGED(b.srcXInBytes = PITCH - WIDTH + 1);
    CHANGED(b.dstXInBytes = PITCH - WIDTH + 1);
    CHANGED(b.srcY = 1);
    CHANGED(b.dstY = 1);
    CHANGED((b.dstY = 1, b.Height = HEIGHT - 1));
    CHANGED(b.srcZ = 1);
    CHANGED(b.dstZ = 1);
    CHANGED((b.dstZ = 1, b.Depth = DEPTH - 1));
    CHANGED(b.srcLOD = 1);
    CHANGED(b.dstLOD = 1);
    CHANGED(b.reserved0 = &b);
    CHANGED(b.reserved1 = &b);
    say(" pointers");
    CHANGED(b.srcHost = NULL);
    CHANGED(b.dstDevice = 0);
    CHANGED(b.dstDevice = GARBAGE);
    ASK(cuMemcpy3D_v2(NULL));
    ASK(cuMemcpy3DAsync_v2(NULL, NULL));
    say(" types");
    for (int type = 0; type <= 5; type++) {
        CHANGED(b.srcMemoryType = type);
        CHANGED(b.dstMemoryType = type);
        CHANGED((b.srcMemoryType = type, b.srcDevice = host));
        CHANGED((b.srcMemoryType = type, b.srcDevice = p));
    }
    ASK(cuCtxSynchronize());
}

static void solids_arrive(void)
{
    begin();
    CUdeviceptr p = device(PITCH * HEIGHT * DEPTH);
    static unsigned char in[PITCH * HEIGHT * DEPTH], out[PITCH * HEIGHT * DEPTH];
    for (int i = 0; i < PITCH * HEIGHT * DEPTH; i++)
        in[i] = (unsigned char)(i * 13 + i / PITCH);
    MUST(cuMemsetD8_v2(p, 0, sizeof in));
    CUDA_MEMCPY3D b = solid(p, ADDRESS(in));
    b.dstXInBytes = 16;
    b.dstY = 2;
    b.dstZ = 1;
    b.Height = 5;
    b.Depth = 2;
    b.srcXInBytes = 3;
    b.srcY = 1;
    b.srcHeight = 6;
    MUST(cuMemcpy3D_v2(&b));
    MUST(cuMemcpyDtoH_v2(out, p, sizeof out));
    unsigned sum = 0;
    for (size_t i = 0; i < sizeof out; i++)
        sum = sum * 31 + out[i];
    say(" %u", sum);
}

static void solids_between(void)
{
    CUcontext first = begin(), second = begin_second();
    CUdeviceptr q = device(PITCH * HEIGHT * DEPTH);
    MUST(cuCtxSetCurrent(first));
    CUdeviceptr p = device(PITCH * HEIGHT * DEPTH);
    const CUDA_MEMCPY3D_PEER right = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                                      .srcDevice = p,
                                      .srcContext = first,
                                      .srcPitch = PITCH,
                                      .srcHeight = HEIGHT,
                                      .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                                      .dstDevice = q,
                                      .dstContext = second,
                                      .dstPitch = PITCH,
                                      .dstHeight = HEIGHT,
                                      .WidthInBytes = WIDTH,
                                      .Height = HEIGHT,
                                      .Depth = DEPTH};
    CUDA_MEMCPY3D_PEER b = right;
    ASK(cuMemcpy3DPeer(&b));
    ASK(cuMemcpy3DPeerAsync(&b, NULL));
    b.srcContext = NULL;
    ASK(cuMemcpy3DPeer(&b));
    b = right;
    b.dstContext = NULL;
    ASK(cuMemcpy3DPeer(&b));
    b = right;
    b.dstContext = first;
    ASK(cuMemcpy3DPeer(&b));
    b = right;
    b.srcPitch = 1;
    ASK(cuMemcpy3DPeer(&b));
    b = right;
    b.Depth = DEPTH + 1;
    ASK(cuMemcpy3DPeer(&b));
    b = right;
    b.Depth = 0;
    ASK(cuMemcpy3DPeer(&b));
    b = right;
    b.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
    b.dstContext = NULL;
    ASK(cuMemcpy3DPeer(&b));
    b.dstDevice = 0;
    ASK(cuMemcpy3DPeer(&b));
    b.srcMemoryType = 9;
    ASK(cuMemcpy3DPeer(&b));
}

/* ---- batches ---- */

static void batches(void)
{
    begin();
    CUdeviceptr p = device(256), q = device(256), host = pinned(256);
    CUstream s = stream();
    CUdeviceptr to[2] = {p, host}, from[2] = {q, q};
    size_t bytes[2] = {256, 256}, firsts[1] = {0};
    CUmemcpyAttributes plainly = {.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM};
    MUST(cuMemsetD8_v2(q, 9, 256));
    ASK(cuMemcpyBatchAsync_v2(to, from, bytes, 2, &plainly, firsts, 1, s));
    ASK(cuStreamSynchronize(s));
    say(" %d", *(unsigned char *)POINTER(host));
    say(" streams");
    ASK(cuMemcpyBatchAsync_v2(to, from, bytes, 2, &plainly, firsts, 1, NULL));
    ASK(cuMemcpyBatchAsync_v2(to, from, bytes, 2, &plainly, firsts, 1, CU_STREAM_LEGACY));
    ASK(cuMemcpyBatchAsync_v2(to, from, bytes, 2, &plainly, firsts, 1, CU_STREAM_PER_THREAD));
    say(" wrong");
    ASK(cuMemcpyBatchAsync_v2(to, from, bytes, 0, &plainly, firsts, 1, s));
    ASK(cuMemcpyBatchAsync_v2(NULL, from, bytes, 2, &plainly, firsts, 1, s));
    ASK(cuMemcpyBatchAsync_v2(to, NULL, bytes, 2, &plainly, firsts, 1, s));
    ASK(cuMemcpyBatchAsync_v2(to, from, NULL, 2, &plainly, firsts, 1, s));
    ASK(cuMemcpyBatchAsync_v2(to, from, bytes, 2, NULL, firsts, 1, s));
    ASK(cuMemcpyBatchAsync_v2(to, from, bytes, 2, &plainly, NULL, 1, s));
    ASK(cuMemcpyBatchAsync_v2(to, from, bytes, 2, &plainly, firsts, 0, s));
    firsts[0] = 1;
    ASK(cuMemcpyBatchAsync_v2(to, from, bytes, 2, &plainly, firsts, 1, s));
    firsts[0] = 0;
    say(" orders");
    for (int order = 0; order <= 4; order++) {
        CUmemcpyAttributes a = {.srcAccessOrder = order};
        ASK(cuMemcpyBatchAsync_v2(to, from, bytes, 2, &a, firsts, 1, s));
    }
    for (unsigned flags = 1; flags <= 4; flags++) {
        CUmemcpyAttributes a = {.srcAccessOrder = 1, .flags = flags};
        ASK(cuMemcpyBatchAsync_v2(to, from, bytes, 2, &a, firsts, 1, s));
    }
    say(" elements");
    bytes[1] = 0;
    ASK(cuMemcpyBatchAsync_v2(to, from, bytes, 2, &plainly, firsts, 1, s));
    bytes[1] = 4 * MIB;
    ASK(cuMemcpyBatchAsync_v2(to, from, bytes, 2, &plainly, firsts, 1, s));
    bytes[1] = 4;
    from[1] = 0;
    ASK(cuMemcpyBatchAsync_v2(to, from, bytes, 2, &plainly, firsts, 1, s));
    from[1] = plain(4);
    ASK(cuMemcpyBatchAsync_v2(to, from, bytes, 2, &plainly, firsts, 1, s));
    ASK(cuStreamSynchronize(s));
}

/* ---- the order of calls ---- */

static void each_call(CUdeviceptr p, CUdeviceptr host)
{
    int word = 0;
    CUDA_MEMCPY2D b = box(CU_MEMORYTYPE_DEVICE, p, CU_MEMORYTYPE_HOST, host);
    CUDA_MEMCPY3D c = solid(p, host);
    CUcontext context = NULL;
    cuCtxGetCurrent(&context);
    ASK(cuMemcpy(p, host, 4));
    ASK(cuMemcpyHtoD_v2(p, &word, 4));
    ASK(cuMemcpyDtoH_v2(&word, p, 4));
    ASK(cuMemcpyDtoD_v2(p, p + 16, 4));
    ASK(cuMemcpyHtoD_v2(0, NULL, 4));
    ASK(cuMemcpyHtoD_v2(0, NULL, 0));
    ASK(cuMemcpyAsync(p, host, 4, NULL));
    ASK(cuMemcpyHtoDAsync_v2(p, &word, 4, NULL));
    ASK(cuMemcpyHtoDAsync_v2(0, NULL, 0, NULL));
    ASK(cuMemcpyPeer(p, context, p + 16, context, 4));
    ASK(cuMemcpyPeer(p, context, p + 16, context, 0));
    ASK(cuMemcpy2D_v2(&b));
    ASK(cuMemcpy2D_v2(NULL));
    ASK(cuMemcpy2DAsync_v2(&b, NULL));
    ASK(cuMemcpy3D_v2(&c));
    ASK(cuMemcpy3D_v2(NULL));
    ASK(cuMemsetD8_v2(p, 0, 4));
    ASK(cuMemsetD32_v2(p + 1, 0, 4));
    ASK(cuMemsetD8_v2(0, 0, 0));
    ASK(cuMemsetD2D16_v2(p, 64, 0, 4, 4));
    ASK(cuMemsetD32Async(p, 0, 4, NULL));
}

static void before_init(void)
{
    each_call(GARBAGE, plain(PAGE));
}

static void without_context(void)
{
    begin();
    CUdeviceptr p = device(PITCH * HEIGHT * DEPTH), host = pinned(PITCH * HEIGHT * DEPTH);
    MUST(cuCtxSetCurrent(NULL));
    each_call(p, host);
}

static void after_context(void)
{
    CUcontext context;
    begin();
    CUdeviceptr p = device(PITCH * HEIGHT * DEPTH), host = pinned(PITCH * HEIGHT * DEPTH);
    MUST(cuCtxCreate_v2(&context, 0, 0));
    MUST(cuCtxPushCurrent_v2(context));
    MUST(cuCtxDestroy_v2(context));
    each_call(p, host);
}

static void after_fault(void)
{
    begin();
    CUdeviceptr p = device(PITCH * HEIGHT * DEPTH), host = pinned(PITCH * HEIGHT * DEPTH);
    fault_here();
    each_call(p, host);
}

#define CASE(name)  \
    {               \
#name, name \
    }
static const fact facts[] = {
    CASE(any_between_kinds),
    CASE(h_to_d_between_kinds),
    CASE(d_to_h_between_kinds),
    CASE(d_to_d_between_kinds),
    CASE(any_async_between_kinds),
    CASE(h_to_d_async_between_kinds),
    CASE(d_to_h_async_between_kinds),
    CASE(d_to_d_async_between_kinds),
    CASE(h_to_freed),
    CASE(freed_to_h),
    CASE(d_to_freed),
    CASE(freed_to_d),
    CASE(sizes),
    CASE(sizes_on_host),
    CASE(bytes_arrive),
    CASE(streams_right),
    CASE(streams_of_second),
    CASE(stream_of_zeros),
    CASE(peers),
    CASE(boxes_of_types),
    CASE(boxes_of_kinds),
    CASE(boxes),
    CASE(boxes_arrive),
    CASE(solids),
    CASE(solids_arrive),
    CASE(solids_between),
    CASE(outside_device_beside_read),
    CASE(outside_device_beside_written),
    CASE(outside_device_far_read),
    CASE(outside_device_far_written),
    CASE(outside_device_along_read),
    CASE(outside_device_along_written),
    CASE(outside_device_deep_read),
    CASE(outside_device_deep_written),
    CASE(outside_device_before_read),
    CASE(outside_device_before_written),
    CASE(outside_pinned_beside_read),
    CASE(outside_pinned_beside_written),
    CASE(outside_pinned_far_read),
    CASE(outside_pinned_far_written),
    CASE(outside_pinned_along_read),
    CASE(outside_pinned_along_written),
    CASE(outside_pinned_deep_read),
    CASE(outside_pinned_deep_written),
    CASE(outside_pinned_before_read),
    CASE(outside_pinned_before_written),
    CASE(outside_managed_beside_read),
    CASE(outside_managed_beside_written),
    CASE(outside_managed_far_read),
    CASE(outside_managed_far_written),
    CASE(outside_managed_along_read),
    CASE(outside_managed_along_written),
    CASE(outside_managed_deep_read),
    CASE(outside_managed_deep_written),
    CASE(outside_managed_before_read),
    CASE(outside_managed_before_written),
    CASE(batches),
    CASE(before_init),
    CASE(without_context),
    CASE(after_context),
    CASE(after_fault),
};

FACTS_MAIN(facts)
