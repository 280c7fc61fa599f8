/* SPDX-License-Identifier: Apache-2.0 */
/* How many thread instructions the machine executes a second of processor time. */
#include "vm_run.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

static double spent_s(void)
{
    struct timespec spent;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &spent);
    return (double)spent.tv_sec + 1e-9 * (double)spent.tv_nsec;
}

static void measure(vm_module *module, const char *kernel, const unsigned grid[3], const unsigned block[3],
                    const void *params)
{
    double best = 1e9;
    sc_run_stats stats = {0};
    for (int i = 0; i < 5; i++) {
        double start = spent_s();
        sc_fault fault;
        if (!vm_launch(module, kernel, grid, block, params, &fault, &stats)) {
            printf("%s: %s\n", kernel, fault.text);
            return;
        }
        double took = spent_s() - start;
        best = took < best ? took : best;
    }
    printf("%-10s %8.1f M thread instructions, %7.2f ms, %6.2f G/s a core\n", kernel,
           1e-6 * (double)stats.thread_instructions, 1e3 * best,
           1e-9 * (double)stats.thread_instructions / best);
}

int main(int argc, char **argv)
{
    vm_module module;
    if (argc != 2 || !vm_load(&module, argv[1])) {
        fprintf(stderr, "usage: bench_vm bench.ptx\n");
        return 2;
    }
    size_t n = 1u << 22;
    uint64_t x = vm_alloc(&module, n * 4), y = vm_alloc(&module, n * 4), z = vm_alloc(&module, n * 4);
    struct {
        uint64_t n;
        float a;
        uint64_t x, y;
    } saxpy = {n, 2.0f, x, y};
    measure(&module, "saxpy", (unsigned[3]){(unsigned)(n / 256), 1, 1}, (unsigned[3]){256, 1, 1}, &saxpy);
    struct {
        uint64_t a, b, c;
        int n;
    } mm = {x, y, z, 512};
    measure(&module, "mm", (unsigned[3]){32, 32, 1}, (unsigned[3]){16, 16, 1}, &mm);
    for (unsigned i = 0; i < 256; i++)
        ((unsigned *)(uintptr_t)x)[i] = 27 + i;
    uint64_t collatz[] = {x, y}; /* every warp diverges */
    measure(&module, "collatz", (unsigned[3]){1000, 1, 1}, (unsigned[3]){256, 1, 1}, collatz);
    vm_unload(&module);
    return 0;
}
