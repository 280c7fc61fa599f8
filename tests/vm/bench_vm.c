/* SPDX-License-Identifier: Apache-2.0 */
/* How many thread instructions the machine executes a second of processor time, the best of several launches;
 * and what further cores give. */
#include "vm_run.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "registry/pack.h"

enum { N = 1 << 22, SIDE = 512, WORK_BYTES = 1 << 20, LAUNCHES = 9, MOST_WORDS = 8 };

typedef struct bench_row {
    const char *name;
    const char *op; /* file of a shipped op; NULL: kernels.ptx */
    size_t variant; /* of the op */
    const char *kernel;
    unsigned grid_x, grid_y, block_x, block_y;
    uint64_t params[MOST_WORDS]; /* as the driver packs them */
} bench_row;

typedef struct bench_result {
    double cpu_s, wall_s;         /* the least of any launch */
    uint64_t thread_instructions; /* of the one that took the least cpu_s */
} bench_result;
#define BENCH_NOTHING                         \
    {                                         \
        .cpu_s = HUGE_VAL, .wall_s = HUGE_VAL \
    }

static double now_s(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* The op's PTX for its first type; none where the build found no NVRTC. */
static bool load_op(vm_module *module, const char *file, size_t variant)
{
    kr_pack *pack;
    kr_pack_image image;
    bool found = false, loaded;
    if (kr_pack_open_memory(kr__builtin_pack, kr__builtin_pack_bytes, &pack, NULL))
        return false;
    for (size_t i = 0; !found && !kr_pack_get_image(pack, i, &image, NULL); i++)
        found = image.kind == KR_IMAGE_PTX && image.type_index == 0 && image.variant == variant &&
                strcmp(image.op->file, file) == 0;
    loaded = found && vm_load_text(module, image.data, image.bytes);
    kr_pack_close(&pack);
    return loaded;
}

/* Further launches of the row; `work` is zeros before each. */
static bool measure(vm_module *module, const bench_row *row, void *work, unsigned launches,
                    bench_result *result)
{
    const unsigned grid[3] = {row->grid_x, row->grid_y, 1}, block[3] = {row->block_x, row->block_y, 1};
    sc_fault fault;
    sc_run_stats stats;
    for (unsigned i = 0; i < launches; i++) {
        memset(work, 0, WORK_BYTES);
        double cpu = now_s(CLOCK_PROCESS_CPUTIME_ID), wall = now_s(CLOCK_MONOTONIC);
        if (!vm_launch(module, row->kernel, grid, block, row->params, &fault, &stats)) {
            printf("%-28s %s\n", row->name, fault.text);
            return false;
        }
        wall = now_s(CLOCK_MONOTONIC) - wall;
        cpu = now_s(CLOCK_PROCESS_CPUTIME_ID) - cpu;
        if (wall < result->wall_s)
            result->wall_s = wall;
        if (cpu < result->cpu_s) {
            result->cpu_s = cpu;
            result->thread_instructions = stats.thread_instructions;
        }
    }
    return true;
}

static void print_rate(vm_module *own, const bench_row *row, void *work)
{
    vm_module op;
    bench_result result = BENCH_NOTHING;
    if (row->op && !load_op(&op, row->op, row->variant)) {
        printf("%-28s not shipped in this build\n", row->name);
        return;
    }
    if (measure(row->op ? &op : own, row, work, LAUNCHES, &result))
        printf("%-28s %10.1f %12.2f\n", row->name, 1e-6 * (double)result.thread_instructions,
               1e-9 * (double)result.thread_instructions / result.cpu_s);
    if (row->op)
        vm_unload(&op);
}

static void use_threads(const char *n)
{
    setenv("KREGISTRY_SOFTCUDA_THREADS", n, 1);
}

/* The same launch with one host thread and with one a core, in turn. */
static void print_cores(vm_module *own, const bench_row *row, void *work)
{
    bench_result one = BENCH_NOTHING, all = BENCH_NOTHING;
    bool ok = true;
    for (unsigned i = 0; i < LAUNCHES && ok; i++) {
        use_threads("1");
        ok = measure(own, row, work, 1, &one);
        use_threads("");
        ok = ok && measure(own, row, work, 1, &all);
    }
    if (ok)
        printf("%-28s %10u %12.2f %12.2f\n", row->name, sc_workers(), one.wall_s / all.wall_s,
               all.cpu_s / one.cpu_s);
}

int main(int argc, char **argv)
{
    vm_module own;
    if (argc != 2 || !vm_load(&own, argv[1])) {
        fprintf(stderr, "usage: bench_vm kernels.ptx\n");
        return 2;
    }
    own.dynamic_shared_bytes = 1024; /* of block_sum */
    const uint64_t x = vm_alloc(&own, N * 4), y = vm_alloc(&own, N * 4), z = vm_alloc(&own, N * 4);
    const uint64_t bytes = vm_alloc(&own, N * 4), counts = vm_alloc(&own, 1024);
    const uint64_t work_at = vm_alloc(&own, WORK_BYTES), arrived = work_at + WORK_BYTES - 256;
    const uint64_t two = 0x40000000; /* 2.0f */
    void *work = (void *)(uintptr_t)work_at;
    for (unsigned i = 0; i < N; i++) {
        ((float *)(uintptr_t)x)[i] = 1.0f / (float)(i + 1);
        ((uint32_t *)(uintptr_t)bytes)[i] = i * 2654435761u;
    }
    for (unsigned i = 0; i < 256; i++)
        ((uint32_t *)(uintptr_t)counts)[i] = 27 + i;
    const bench_row rows[] = {
        {"saxpy", NULL, 0, "saxpy", N / 256, 1, 256, 1, {N, two, x, y}},
        {"matrix product, tiled", NULL, 0, "mm", 32, 32, 16, 16, {x, y, z, SIDE}},
        {"divergent loop", NULL, 0, "collatz", 1000, 1, 256, 1, {counts, y}},
        {"histogram", NULL, 0, "histogram", 256, 1, 256, 1, {4 * N, bytes, work_at}},
        {"scan of blocks", NULL, 0, "scan_blocks", N / 1024, 1, 256, 1, {x, y, work_at}},
        {"scan, looking back", NULL, 0, "scan", N / 1024, 1, 256, 1, {x, y, work_at}},
        {"reduction", NULL, 0, "block_sum", N / 256, 1, 256, 1, {x, work_at}},
        {"op matmul.f32, tiled", "matmul.cu", 1, "tiled", 16, 16, 32, 8, {SIDE, SIDE, SIDE, x, y, z}},
        {"op histogram, grid", "histogram.cu", 0, "grid", 528, 1, 256, 1, {4 * N, bytes, work_at}},
        {"op histogram, vec16", "histogram.cu", 1, "vec16", 528, 1, 256, 1, {4 * N, bytes, work_at}},
        {"op sum.f32, grid", "sum.cu", 0, "grid", 528, 1, 256, 1, {N, x, y, work_at, arrived}},
    };
    printf("%-28s %10s %12s\n", "thread instructions", "millions", "G/s a core");
    use_threads("1");
    for (size_t i = 0; i < KR_COUNT(rows); i++)
        print_rate(&own, &rows[i], work);
    printf("\n%-28s %10s %12s %12s\n", "one core, then all", "cores", "times faster", "times work");
    for (size_t i = 0; i < KR_COUNT(rows); i++)
        if (!rows[i].op)
            print_cores(&own, &rows[i], work);
    vm_unload(&own);
    return 0;
}
