/* SPDX-License-Identifier: Apache-2.0 */
/* What a launch costs: the bare driver call beside the library's ways, in one run, in turns. Not a test.
 *     bench_launch [LIBCUDA]      default: the machine's driver */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <kregistry/kregistry.h>

#include "runtime/internal.h"

enum { LAUNCHES = 2000, ROUNDS = 31, N = 32 };

static double now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

typedef struct bench {
    kr_registry *registry;
    kr_stream *stream;
    kr_buffer *x, *y;
    kr_launcher *launcher;
    kr_resolution resolution;
    kr_error err;
} bench;

static kr_args args_of(bench *b, kr_arg list[4])
{
    list[0] = KR_U64(N);
    list[1] = KR_F32(2.0f);
    list[2] = KR_BUF(b->x);
    list[3] = KR_BUF(b->y);
    return (kr_args){list, 4};
}

static kr_status bare(bench *b)
{
    static unsigned long long n = N;
    static float a = 2.0f;
    uint64_t x = kr_buffer_cudeviceptr(b->x), y = kr_buffer_cudeviceptr(b->y);
    void *params[] = {&n, &a, &x, &y};
    const kr_launch_config *c = &b->resolution.config;
    return (kr_status)b->stream->device->driver->cuLaunchKernel(
        kr_kernel_cufunction(b->resolution.kernel), c->grid[0], c->grid[1], c->grid[2], c->block[0],
        c->block[1], c->block[2], c->dynamic_shared_bytes, b->stream->custream, params, NULL);
}

static kr_status launcher(bench *b)
{
    return kr_launcher_run(b->launcher, &b->err);
}

static kr_status kernel(bench *b)
{
    kr_arg list[4];
    return kr_kernel_launch(b->resolution.kernel, b->stream, &b->resolution.config, args_of(b, list),
                            &b->err);
}

static kr_status by_name(bench *b)
{
    kr_arg list[4];
    return kr_launch(b->registry, b->stream, "saxpy.f32", args_of(b, list), NULL, &b->err);
}

static const struct {
    const char *name;
    kr_status (*run)(bench *b);
} ways[] = {{"cuLaunchKernel", bare},
            {"kr_launcher_run", launcher},
            {"kr_kernel_launch", kernel},
            {"kr_launch", by_name}};

int main(int argc, char **argv)
{
    const kr_runtime_options options = {.struct_size = sizeof options, .driver = argc > 1 ? argv[1] : NULL};
    const uint64_t sizes[KR_MAX_OP_ARGS] = {N};
    bench b = {0};
    kr_runtime *runtime = NULL;
    kr_arg list[4];
    void *context;
    if (kr_runtime_create(&options, &runtime, &b.err) ||
        kr_registry_create(runtime, NULL, &b.registry, &b.err) ||
        kr_buffer_create(kr_runtime_device(runtime, 0), N * sizeof(float), NULL, &b.x, &b.err) ||
        kr_buffer_create(kr_runtime_device(runtime, 0), N * sizeof(float), NULL, &b.y, &b.err))
        return kr_error_print(&b.err, stderr);
    b.stream = kr_default_stream(b.x);
    if (kr_registry_resolve(b.registry, "saxpy.f32", kr_runtime_device(runtime, 0), sizes, NULL,
                            &b.resolution, &b.err) ||
        kr_launcher_create(b.registry, b.stream, "saxpy.f32", args_of(&b, list), NULL, &b.launcher, &b.err) ||
        kr_device_cucontext(kr_runtime_device(runtime, 0), &context, &b.err))
        return kr_error_print(&b.err, stderr);
    b.stream->device->driver->cuCtxSetCurrent(context);
    static double us[KR_COUNT(ways)][ROUNDS];
    for (int round = 0; round < ROUNDS; round++)
        for (size_t w = 0; w < KR_COUNT(ways); w++) {
            const double start = now_us();
            for (int i = 0; i < LAUNCHES; i++)
                if (ways[w].run(&b))
                    return kr_error_print(&b.err, stderr);
            us[w][round] = (now_us() - start) / LAUNCHES;
            if (kr_stream_synchronize(b.stream, &b.err))
                return kr_error_print(&b.err, stderr);
        }
    for (size_t w = 0; w < KR_COUNT(ways); w++)
        qsort(us[w], ROUNDS, sizeof us[w][0], by_value);
    for (size_t w = 0; w < KR_COUNT(ways); w++)
        printf("%-18s %6.3f us a launch, %.3f of the bare call\n", ways[w].name, us[w][ROUNDS / 2],
               us[w][ROUNDS / 2] / us[0][ROUNDS / 2]);
    b.stream->device->driver->cuCtxSetCurrent(NULL);
    kr_launcher_destroy(&b.launcher);
    kr_buffer_destroy(&b.x);
    kr_buffer_destroy(&b.y);
    kr_registry_destroy(&b.registry);
    kr_runtime_destroy(&runtime);
    return 0;
}
