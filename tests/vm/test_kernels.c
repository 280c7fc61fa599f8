/* SPDX-License-Identifier: Apache-2.0 */
/* Whole kernels as the compiler emits them (kernels.ptx), against the same computed here. */
#include "vm_run.h"

#include <check.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static vm_module module;
static sc_fault fault;

static void load(void)
{
    ck_assert_msg(vm_load(&module, VM_DATA "/kernels.ptx"), "kernels.ptx did not load");
}

static void unload(void)
{
    vm_unload(&module);
}

#define AT(type, address) ((type *)(uintptr_t)(address))

static bool launch(const char *kernel, unsigned grid, unsigned block, const void *params)
{
    return vm_launch(&module, kernel, (unsigned[3]){grid, 1, 1}, (unsigned[3]){block, 1, 1}, params, &fault,
                     NULL);
}

#define RUN(kernel, grid, block, ...)                                                               \
    do {                                                                                            \
        uint64_t params_[] = {__VA_ARGS__};                                                         \
        ck_assert_msg(launch(kernel, grid, block, params_), "%s: %s (line %u)", kernel, fault.text, \
                      fault.line);                                                                  \
    } while (0)

START_TEST(saxpy)
{
    enum { N = 1000 };
    uint64_t x = vm_alloc(&module, N * 4), y = vm_alloc(&module, N * 4);
    for (int i = 0; i < N; i++) {
        AT(float, x)[i] = 0.5f * (float)i;
        AT(float, y)[i] = 1;
    }
    struct {
        uint64_t n;
        float a;
        uint64_t x, y;
    } params = {N, 3, x, y};
    sc_run_stats stats = {0};
    ck_assert(vm_launch(&module, "saxpy", (unsigned[3]){8, 1, 1}, (unsigned[3]){128, 1, 1}, &params, &fault,
                        &stats));
    for (int i = 0; i < N; i++)
        ck_assert_float_eq(AT(float, y)[i], 1.5f * (float)i + 1);
    /* 1000 threads run 22 instructions, 24 threads 12 and ret. */
    ck_assert_uint_eq(stats.thread_instructions, 1000 * 22 + 24 * 13);
}
END_TEST

START_TEST(matrix_product)
{
    enum { N = 64 };
    uint64_t a = vm_alloc(&module, N * N * 4), b = vm_alloc(&module, N * N * 4),
             c = vm_alloc(&module, N * N * 4);
    for (int i = 0; i < N * N; i++) {
        AT(float, a)[i] = (float)(i % 7);
        AT(float, b)[i] = (float)(i % 5) - 2;
    }
    struct {
        uint64_t a, b, c;
        int n;
    } params = {a, b, c, N};
    ck_assert(
        vm_launch(&module, "mm", (unsigned[3]){4, 4, 1}, (unsigned[3]){16, 16, 1}, &params, &fault, NULL));
    for (int r = 0; r < N; r++)
        for (int k = 0; k < N; k++) {
            float sum = 0;
            for (int j = 0; j < N; j++)
                sum += AT(float, a)[r * N + j] * AT(float, b)[j * N + k];
            ck_assert_float_eq(AT(float, c)[r * N + k], sum);
        }
}
END_TEST

/* What the function writes to a standard stream. */
static char *captured(FILE *stream, void (*run)(void))
{
    fflush(stream);
    FILE *file = tmpfile();
    int saved = dup(fileno(stream));
    dup2(fileno(file), fileno(stream));
    run();
    fflush(stream);
    dup2(saved, fileno(stream));
    close(saved);
    long bytes = lseek(fileno(file), 0, SEEK_END);
    char *text = calloc(1, (size_t)bytes + 1);
    ck_assert_int_eq(pread(fileno(file), text, (size_t)bytes, 0), bytes);
    fclose(file);
    return text;
}

static void run_say(void)
{
    RUN("say", 1, 2, 7);
}

START_TEST(print)
{
    char *text = captured(stdout, run_say);
    ck_assert_str_eq(text,
                     "7 10.50|str   |-5000000000 ff z 0x10 %\n8 10.50|str   |-5000000000 ff z 0x10 %\n");
    free(text);
}
END_TEST

static void run_say_often(void)
{
    RUN("say", 1, 5, 7);
}

/* The ring holds three lines of seven arguments: the last three. */
START_TEST(print_ring)
{
    module.printf_fifo_bytes = 3 * (2 + 7) * 8 + 8;
    char *text = captured(stdout, run_say_often);
    ck_assert_str_eq(text, "9 10.50|str   |-5000000000 ff z 0x10 %\n"
                           "10 10.50|str   |-5000000000 ff z 0x10 %\n"
                           "11 10.50|str   |-5000000000 ff z 0x10 %\n");
    free(text);
}
END_TEST

static void run_must(void)
{
    uint64_t params[] = {1};
    ck_assert(
        !vm_launch(&module, "must", (unsigned[3]){1, 1, 1}, (unsigned[3]){1, 2, 1}, params, &fault, NULL));
}

START_TEST(assertion)
{
    RUN("must", 1, 1, 0);
    char *text = captured(stderr, run_must);
    char *finding = strstr(text, "softcuda: memcheck: must, PTX line ");
    ck_assert(!finding == !getenv("KREGISTRY_SOFTCUDA_CHECK"));
    if (finding)
        *finding = '\0';
    ck_assert_str_eq(
        text, "kernels.cu:39: void must(int): block: [0,0,0], thread: [0,0,0] Assertion `x == 0` failed.\n"
              "kernels.cu:39: void must(int): block: [0,0,0], thread: [0,1,0] Assertion `x == 0` failed.\n");
    ck_assert_int_eq(fault.kind, SC_FAULT_ASSERT);
    ck_assert_str_eq(fault.kernel, "must");
    free(text);
}
END_TEST

static int fib(int n)
{
    return n < 2 ? n : fib(n - 1) + fib(n - 2);
}

START_TEST(recursion)
{
    uint64_t o = vm_alloc(&module, 20 * 4);
    RUN("recursion", 1, 20, o);
    for (int i = 0; i < 20; i++)
        ck_assert_int_eq(AT(int, o)[i], fib(i));
}
END_TEST

START_TEST(stack_overflow)
{
    uint64_t params[] = {vm_alloc(&module, 4)};
    ck_assert(!launch("overflow", 1, 1, params));
    ck_assert_int_eq(fault.kind, SC_FAULT_STACK);
    ck_assert_ptr_nonnull(strstr(fault.text, "endless"));
}
END_TEST

START_TEST(divergent_loop)
{
    enum { N = 200 };
    uint64_t n = vm_alloc(&module, N * 4), s = vm_alloc(&module, N * 4);
    for (unsigned i = 0; i < N; i++)
        AT(unsigned, n)[i] = 27 + i;
    RUN("collatz", 1, N, n, s);
    for (unsigned i = 0; i < N; i++) {
        unsigned v = 27 + i, steps = 0;
        for (; v != 1; steps++)
            v = v % 2 ? 3 * v + 1 : v / 2;
        ck_assert_uint_eq(AT(unsigned, s)[i], steps);
    }
}
END_TEST

START_TEST(switch_of_lanes)
{
    uint64_t o = vm_alloc(&module, 64 * 4);
    for (int i = 0; i < 64; i++)
        AT(int, o)[i] = i % 9;
    struct {
        uint64_t o;
        int x;
    } params = {o, 40};
    ck_assert(launch("choose", 1, 32, &params));
    for (int i = 0; i < 32; i++) {
        const int want[] = {40 % 9, 129, 1600, 40 ^ 55, 5, 0, -40, 7, 40};
        ck_assert_int_eq(AT(int, o)[i], want[i % 9]);
    }
}
END_TEST

START_TEST(grid_barrier)
{
    enum { BLOCKS = 40 };
    uint64_t o = vm_alloc(&module, BLOCKS * 4), t = vm_alloc(&module, BLOCKS * 4);
    module.cooperative = true;
    RUN("grid_sum", BLOCKS, 64, o, t);
    for (int i = 0; i < BLOCKS; i++)
        ck_assert_int_eq(AT(int, t)[i], BLOCKS * (BLOCKS + 1) / 2);
}
END_TEST

START_TEST(lock_in_a_warp)
{
    uint64_t lock = vm_alloc(&module, 4), count = vm_alloc(&module, 4);
    RUN("spin_lock", 3, 64, lock, count);
    ck_assert_int_eq(*AT(int, count), 3 * 64);
    RUN("naive_lock", 3, 64, lock, count);
    ck_assert_int_eq(*AT(int, count), 2 * 3 * 64);
}
END_TEST

START_TEST(blocks_wait_for_blocks)
{
    uint64_t flag = vm_alloc(&module, 400), o = vm_alloc(&module, 400);
    module.seed = _i ? 12345u + (unsigned)_i : 0;
    RUN("chain", 100, 32, flag, o);
    ck_assert_int_eq(AT(int, o)[99], 99 * 100 / 2);
    memset(AT(void, flag), 0, 400);
    RUN("reverse_chain", 100, 32, flag);
    ck_assert_int_eq(AT(int, flag)[0], 1);
}
END_TEST

START_TEST(reduction)
{
    enum { BLOCKS = 3, THREADS = 256 };
    uint64_t x = vm_alloc(&module, BLOCKS * THREADS * 4), o = vm_alloc(&module, BLOCKS * 4);
    for (int i = 0; i < BLOCKS * THREADS; i++)
        AT(int, x)[i] = i * i - 1000;
    module.dynamic_shared_bytes = THREADS * 4;
    module.seed = (unsigned)_i;
    RUN("block_sum", BLOCKS, THREADS, x, o);
    for (int b = 0; b < BLOCKS; b++) {
        int sum = 0;
        for (int i = 0; i < THREADS; i++)
            sum += AT(int, x)[b * THREADS + i];
        ck_assert_int_eq(AT(int, o)[b], sum + AT(int, x)[b * THREADS + THREADS - 1]);
    }
}
END_TEST

START_TEST(votes)
{
    uint64_t address = vm_alloc(&module, 288 * 4);
    unsigned *o = AT(unsigned, address);
    RUN("votes", 1, 32, address);
    for (unsigned t = 0; t < 32; t++) {
        ck_assert_uint_eq(o[t], 0x49249249);
        ck_assert_uint_eq(o[32 + t], 3);
        ck_assert_uint_eq(o[64 + t], 0x11111111u << t % 4);
        ck_assert_uint_eq(o[96 + t], 0xffffffffu + 1u);
        ck_assert_uint_eq(o[128 + t], 31 * 32 / 2 + 31);
        ck_assert_uint_eq(o[160 + t], (t & ~7u) | ((t + 1) & 7));
        ck_assert_uint_eq(o[192 + t], t % 16 >= 3 ? t - 3 : t);
        if (t < 10)
            ck_assert_uint_eq(o[224 + t], 0x2aa | 0x3ffu << 16);
        ck_assert_uint_eq(o[256 + t], 7 * 4 + 2);
    }
}
END_TEST

START_TEST(rendezvous_at_two_places)
{
    uint64_t o = vm_alloc(&module, 64 * 4);
    RUN("two_places", 1, 32, o);
    for (int t = 0; t < 32; t++)
        ck_assert_int_eq(AT(int, o)[32 + t], t & 1 ? 2 : 1);
}
END_TEST

START_TEST(atomics)
{
    enum { BLOCKS = 50, THREADS = 128, N = BLOCKS * THREADS };
    uint64_t i = vm_alloc(&module, 20), u = vm_alloc(&module, 20), f = vm_alloc(&module, 4),
             d = vm_alloc(&module, 8), l = vm_alloc(&module, 16);
    AT(unsigned, u)[3] = ~0u;
    RUN("atomics", BLOCKS, THREADS, i, u, f, d, l);
    unsigned inc = 0, dec = 0, all_xor = 0;
    for (unsigned k = 0; k < N; k++) {
        inc = inc >= 9 ? 0 : inc + 1;
        dec = dec == 0 || dec > 9 ? 9 : dec - 1;
        all_xor ^= k;
    }
    ck_assert_int_eq(AT(int, i)[0], N);
    ck_assert_int_eq(AT(int, i)[1], -(N - 1));
    ck_assert_int_eq(AT(int, i)[2], N - 1);
    ck_assert_int_eq(AT(int, i)[3], -2 * N);
    ck_assert_int_eq(AT(int, i)[4], BLOCKS * (THREADS * (THREADS - 1) / 2));
    ck_assert_uint_eq(AT(unsigned, u)[0], inc);
    ck_assert_uint_eq(AT(unsigned, u)[1], dec);
    ck_assert_uint_eq(AT(unsigned, u)[2], ~0u);
    ck_assert_uint_eq(AT(unsigned, u)[3], 0xffff0000);
    ck_assert_uint_eq(AT(unsigned, u)[4], all_xor);
    ck_assert_float_eq(*AT(float, f), N);
    ck_assert_double_eq(*AT(double, d), 0.5 * N);
    ck_assert_uint_eq(AT(uint64_t, l)[0], (uint64_t)N << 33);
    ck_assert_uint_eq(AT(uint64_t, l)[1], (uint64_t)(N - 1) << 34);
}
END_TEST

START_TEST(histogram)
{
    enum { N = 10000, BINS = 256 };
    uint64_t x = vm_alloc(&module, N), bins = vm_alloc(&module, BINS * 4);
    unsigned expected[BINS] = {0};
    for (unsigned i = 0; i < N; i++) {
        AT(uint8_t, x)[i] = (uint8_t)(i * i >> 3);
        expected[AT(uint8_t, x)[i]]++;
    }
    RUN("histogram", 7, 128, N, x, bins);
    ck_assert_mem_eq(AT(unsigned, bins), expected, sizeof expected);
}
END_TEST

/* The second kernel scans over all blocks, each of which spins until those before it have published their
 * sums; with few resident blocks, and with blocks in a shuffled order. */
enum { SCAN_WAYS = 4 };
START_TEST(scans)
{
    enum { BLOCKS = 100, THREADS = 96, A_BLOCK = 4 * THREADS, N = BLOCKS * A_BLOCK };
    static const struct {
        unsigned resident;
        uint64_t seed;
    } ways[SCAN_WAYS] = {{1, 0}, {3, 0}, {BLOCKS, 0}, {BLOCKS, 77}};
    uint64_t x = vm_alloc(&module, N * 4), o = vm_alloc(&module, N * 4),
             totals = vm_alloc(&module, BLOCKS * 4), state = vm_alloc(&module, BLOCKS * 8);
    for (unsigned i = 0; i < N; i++)
        AT(unsigned, x)[i] = i * 2654435761u;
    RUN("scan_blocks", BLOCKS, THREADS, x, o, totals);
    unsigned sum = 0;
    for (unsigned i = 0; i < N; i++) {
        sum = AT(unsigned, x)[i] + (i % A_BLOCK ? sum : 0);
        ck_assert_uint_eq(AT(unsigned, o)[i], sum);
        ck_assert_uint_eq(AT(unsigned, totals)[i / A_BLOCK],
                          AT(unsigned, o)[i / A_BLOCK * A_BLOCK + A_BLOCK - 1]);
    }
    module.resident = ways[_i].resident;
    module.seed = ways[_i].seed;
    RUN("scan", BLOCKS, THREADS, x, o, state);
    sum = 0;
    for (unsigned i = 0; i < N; i++)
        ck_assert_uint_eq(AT(unsigned, o)[i], sum += AT(unsigned, x)[i]);
}
END_TEST

static size_t most_bytes(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (size_t)usage.ru_maxrss * 1024;
}

/* Shared memory and registers are there for resident blocks, not for the grid. */
START_TEST(memory_of_resident_blocks)
{
    enum { SHARED = 64 << 10, MANY = 2000, RESIDENT = 128 };
    if (getenv("KREGISTRY_SOFTCUDA_CHECK"))
        return; /* which keep memory about memory */
    uint64_t flag = vm_alloc(&module, MANY * 4);
    module.dynamic_shared_bytes = SHARED;
    module.resident = RESIDENT;
    size_t before = most_bytes();
    RUN("fill_shared", MANY, 32, flag, SHARED / 4, 0);
    size_t in_turn = most_bytes() - before;
    ck_assert_uint_lt(in_turn, (size_t)RESIDENT * SHARED);
    memset(AT(void, flag), 0, MANY * 4);
    RUN("fill_shared", RESIDENT, 32, flag, SHARED / 4, 1);
    size_t all_at_once = most_bytes() - before;
    ck_assert_uint_ge(all_at_once, (size_t)RESIDENT * SHARED);
    ck_assert_uint_lt(all_at_once, (size_t)MANY * SHARED / 2);
}
END_TEST

static void *launch_often(void *unused)
{
    (void)unused;
    enum { BLOCKS = 20 };
    uint64_t o = vm_alloc(&module, BLOCKS * 4), t = vm_alloc(&module, BLOCKS * 4), params[] = {o, t};
    for (int i = 0; i < 20; i++) {
        sc_fault own;
        memset(AT(void, t), 0, BLOCKS * 4);
        if (!vm_launch(&module, "grid_sum", (unsigned[3]){BLOCKS, 1, 1}, (unsigned[3]){64, 1, 1}, params,
                       &own, NULL) ||
            AT(int, t)[BLOCKS - 1] != BLOCKS * (BLOCKS + 1) / 2)
            return &module;
    }
    return NULL;
}

START_TEST(launches_at_once)
{
    pthread_t threads[4];
    void *failed;
    module.cooperative = true;
    for (unsigned i = 0; i < KR_COUNT(threads); i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, launch_often, NULL), 0);
    for (unsigned i = 0; i < KR_COUNT(threads); i++) {
        pthread_join(threads[i], &failed);
        ck_assert_ptr_null(failed);
    }
}
END_TEST

START_TEST(function_pointers)
{
    uint64_t o = vm_alloc(&module, 128);
    RUN("pointers", 1, 32, o);
    for (int t = 0; t < 32; t++)
        ck_assert_int_eq(AT(int, o)[t], t & 1 ? t * 100 : t + 100);
}
END_TEST

START_TEST(structs_by_value)
{
    uint64_t o = vm_alloc(&module, 256);
    struct pair {
        double a;
        int b[5];
    };
    struct {
        uint64_t o;
        struct pair p;
    } params = {o, {1.25, {1, 2, 3, 4, 5}}};
    ck_assert(launch("structs", 1, 32, &params));
    for (int t = 0; t < 32; t++) {
        struct pair q = params.p;
        q.a *= t;
        q.b[t % 5] += t;
        ck_assert_double_eq(AT(double, o)[t],
                            q.a + q.b[0] + 10 * q.b[1] + 100 * q.b[2] + 1000 * q.b[3] + 10000 * q.b[4]);
    }
}
END_TEST

START_TEST(variables)
{
    const int weights[] = {1, 10, 100, 1000};
    uint64_t o = vm_alloc(&module, 128), total;
    size_t bytes;
    ck_assert(sc_program_global(module.program, "total", &total, &bytes));
    ck_assert_uint_eq(bytes, 4);
    ck_assert_int_eq(*AT(int, total), 5);
    *AT(int, total) = 9;
    struct {
        uint64_t o;
        int k;
    } params = {o, 2};
    ck_assert(launch("variables", 1, 32, &params));
    int local[8];
    for (int i = 0; i < 8; i++)
        local[(i * 3 + 2) % 8] = i * weights[i % 4];
    for (int t = 0; t < 32; t++)
        ck_assert_int_eq(AT(int, o)[t], local[t % 8] + 9);
}
END_TEST

START_TEST(heap)
{
    uint64_t sum = vm_alloc(&module, 4);
    size_t used = sc_memory_used(module.memory);
    RUN("heap", 1, 32, 0, sum);
    ck_assert_int_eq(*AT(int, sum), 63 * 64 / 2);
    ck_assert_uint_eq(sc_memory_used(module.memory), used);
}
END_TEST

START_TEST(wide_integers)
{
    uint64_t o = vm_alloc(&module, 512), a = vm_alloc(&module, 512), b = vm_alloc(&module, 512);
    for (unsigned i = 0; i < 128; i++) {
        AT(unsigned, a)[i] = i * 0x9e3779b9u;
        AT(unsigned, b)[i] = i % 5 ? ~(i * 0x85ebca6bu) : 0;
    }
    RUN("big", 1, 32, o, a, b);
    for (unsigned t = 0; t < 32; t++) {
        unsigned __int128 x, y, r;
        memcpy(&x, AT(char, a) + 16 * t, 16);
        memcpy(&y, AT(char, b) + 16 * t, 16);
        r = x * y + (x - y) + (x >> 7);
        ck_assert_mem_eq(AT(char, o) + 16 * t, &r, 16);
    }
}
END_TEST

START_TEST(places)
{
    uint64_t address = vm_alloc(&module, 12 * 30 * 4);
    uint64_t params[] = {address};
    ck_assert(
        vm_launch(&module, "place", (unsigned[3]){2, 3, 2}, (unsigned[3]){5, 3, 2}, params, &fault, NULL));
    const int *o = AT(int, address);
    for (int bz = 0; bz < 2; bz++)
        for (int by = 0; by < 3; by++)
            for (int bx = 0; bx < 2; bx++)
                for (int z = 0; z < 2; z++)
                    for (int y = 0; y < 3; y++)
                        for (int x = 0; x < 5; x++)
                            ck_assert_int_eq(*o++,
                                             x + 10 * y + 100 * z + 1000 * bx + 10000 * by + 100000 * bz);
}
END_TEST

START_TEST(named_barriers)
{
    uint64_t o = vm_alloc(&module, 128);
    RUN("producer_consumer", 1, 64, o);
    for (int t = 0; t < 32; t++)
        ck_assert_int_eq(AT(int, o)[t], 42);
    RUN("early_exit", 1, 32, o);
    ck_assert_int_eq(AT(int, o)[2], 1);
}
END_TEST

/* ---- faults ---- */

static unsigned line_of(const char *text)
{
    char *file;
    size_t bytes;
    ck_assert_int_eq(kr__file_read(VM_DATA "/kernels.ptx", &file, &bytes, NULL), KR_OK);
    unsigned line = 1;
    const char *at = strstr(file, text);
    ck_assert_ptr_nonnull(at);
    for (const char *p = file; p < at; p++)
        line += *p == '\n';
    free(file);
    return line;
}

/* The line of the first instruction of that name in the kernel. */
static unsigned line_in(const char *kernel, const char *instr)
{
    char *file, entry[64];
    size_t bytes;
    ck_assert_int_eq(kr__file_read(VM_DATA "/kernels.ptx", &file, &bytes, NULL), KR_OK);
    snprintf(entry, sizeof entry, ".entry %s(", kernel);
    const char *at = strstr(strstr(file, entry), instr);
    unsigned line = 1;
    for (const char *p = file; p < at; p++)
        line += *p == '\n';
    free(file);
    return line;
}

START_TEST(out_of_bounds)
{
    enum { N = 100 };
    uint64_t p = vm_alloc(&module, N * 4);
    struct {
        uint64_t p;
        int64_t i;
    } params = {p, N - 40};
    ck_assert(!launch("store_at", 2, 64, &params));
    ck_assert_int_eq(fault.kind, SC_FAULT_OUT_OF_BOUNDS);
    ck_assert_uint_eq(fault.address, p + N * 4);
    ck_assert_uint_eq(fault.thread[0], 40);
    ck_assert_uint_eq(fault.line, line_in("store_at", "st.global.u32"));
    ck_assert_str_eq(fault.kernel, "store_at");
    ck_assert_ptr_nonnull(strstr(fault.text, "store of 4 bytes"));
    ck_assert_ptr_nonnull(strstr(fault.text, "0 bytes past the end of the allocation of 400 bytes"));
    params.i = -1;
    ck_assert(!launch("store_at", 1, 64, &params));
    ck_assert_uint_eq(fault.address, p - 4);
    ck_assert_uint_eq(fault.thread[0], 0);
    params = (__typeof__(params)){0, 0};
    ck_assert(!launch("store_at", 1, 1, &params));
    ck_assert_int_eq(fault.kind, SC_FAULT_OUT_OF_BOUNDS);
    ck_assert_uint_eq(fault.address, 0);
    sc_memory_free(module.memory, p);
    params = (__typeof__(params)){p, 0};
    ck_assert(!launch("store_at", 1, 1, &params));
    ck_assert_uint_eq(fault.address, p);
}
END_TEST

START_TEST(misaligned)
{
    uint64_t params[] = {vm_alloc(&module, 64)};
    ck_assert(!launch("store_unaligned", 1, 32, params));
    ck_assert_int_eq(fault.kind, SC_FAULT_MISALIGNED);
    ck_assert_uint_eq(fault.address, params[0] + 2);
    ck_assert_uint_eq(fault.thread[0], 3);
}
END_TEST

START_TEST(shared_bounds)
{
    struct {
        uint64_t o;
        int i;
    } params = {vm_alloc(&module, 64), 0};
    ck_assert(launch("shared_past_end", 1, 4, &params));
    params.i = 1;
    ck_assert(!launch("shared_past_end", 1, 4, &params));
    ck_assert_int_eq(fault.kind, SC_FAULT_OUT_OF_BOUNDS);
    ck_assert_uint_eq(fault.thread[0], 3);
    ck_assert_uint_eq(fault.address, 16);
}
END_TEST

START_TEST(host_and_peer_memory)
{
    static int host[64];
    struct {
        uint64_t p;
        int64_t i;
    } params = {(uint64_t)(uintptr_t)host, 0};
    ck_assert(!launch("store_at", 1, 64, &params));
    ck_assert(sc_memory_register_host(host, sizeof host, 0));
    ck_assert(!sc_memory_register_host(host + 1, 4, 0));
    ck_assert(launch("store_at", 1, 64, &params));
    ck_assert_int_eq(host[63], 1);
    ck_assert(sc_memory_unregister_host(host));
    ck_assert(!sc_memory_unregister_host(host));
    sc_memory *other = sc_memory_create(1, 1 << 20);
    params.p = sc_memory_alloc(other, 256, 0);
    ck_assert(!launch("store_at", 1, 64, &params));
    ck_assert_ptr_nonnull(strstr(fault.text, "no peer access"));
    sc_memory_allow_peer(0, 1, true);
    ck_assert(launch("store_at", 1, 64, &params));
    sc_memory_allow_peer(0, 1, false);
    sc_memory_destroy(other);
}
END_TEST

START_TEST(trap)
{
    uint64_t params[] = {37};
    ck_assert(!launch("trap_one", 1, 64, params));
    ck_assert_int_eq(fault.kind, SC_FAULT_TRAP);
    ck_assert_uint_eq(fault.thread[0], 37);
    ck_assert_uint_eq(fault.line, line_in("trap_one", "trap;"));
}
END_TEST

START_TEST(deadlock)
{
    uint64_t params[] = {vm_alloc(&module, 4)};
    ck_assert(!launch("stuck", 1, 64, params));
    ck_assert_int_eq(fault.kind, SC_FAULT_DEADLOCK);
    ck_assert_ptr_nonnull(strstr(fault.text, "32 threads of warp 0 at barrier 1"));
    ck_assert_ptr_nonnull(strstr(fault.text, "32 threads of warp 1 at barrier 2"));
    ck_assert_uint_eq(fault.line, line_of("bar.sync 1, 64;"));
}
END_TEST

START_TEST(budget)
{
    uint64_t params[] = {vm_alloc(&module, 4)};
    module.budget = 100000;
    ck_assert(!launch("forever", 2, 64, params));
    ck_assert_int_eq(fault.kind, SC_FAULT_TIMEOUT);
    unsigned loop = line_of("@%p1 bra \t$L__BB32_1;");
    ck_assert_msg(fault.line >= loop - 2 && fault.line <= loop, "line %u", fault.line);
}
END_TEST

START_TEST(facts)
{
    const sc_kernel_facts *mm =
        sc_program_kernel(module.program, (size_t)sc_program_find(module.program, "mm"));
    ck_assert_uint_eq(mm->static_shared_bytes, 2048);
    ck_assert_uint_eq(mm->n_params, 4);
    ck_assert_uint_eq(mm->param_bytes, 28);
    ck_assert_int_eq(mm->max_threads, 1024);
    ck_assert_int_ge(mm->registers, 16);
    ck_assert_int_eq(mm->registers % 2, 0);
    ck_assert_int_eq(sc_program_find(module.program, "none"), -1);
}
END_TEST

START_TEST(memory_accounts)
{
    sc_memory *memory = sc_memory_create(5, 1 << 20);
    uint64_t a = sc_memory_alloc(memory, 1, 0), b = sc_memory_alloc(memory, 1 << 19, 4096);
    ck_assert_uint_eq(a % 256, 0);
    ck_assert_uint_eq(b % 4096, 0);
    ck_assert_uint_eq(sc_memory_used(memory), 512 + (1 << 19));
    ck_assert_uint_eq(sc_memory_alloc(memory, 1 << 19, 0), 0);
    sc_allocation found;
    ck_assert(sc_memory_find(b + 5, &found));
    ck_assert_uint_eq(found.start, b);
    ck_assert_uint_eq(found.ordinal, 5);
    ck_assert(!sc_memory_find(a + 1, &found));
    ck_assert(!sc_memory_free(memory, b + 1));
    ck_assert(sc_memory_free(memory, b));
    ck_assert(!sc_memory_free(memory, b));
    for (int i = 0; i < 1000; i++) { /* the range is used again */
        b = sc_memory_alloc(memory, 900000, 0);
        ck_assert_uint_ne(b, 0);
        *AT(char, b + 899999) = 1;
        ck_assert(sc_memory_free(memory, b));
    }
    sc_memory_destroy(memory);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("kernels");
    TCase *tests = tcase_create("kernels");
    tcase_set_timeout(tests, 60);
    tcase_add_checked_fixture(tests, load, unload);
    tcase_add_test(tests, saxpy);
    tcase_add_test(tests, matrix_product);
    tcase_add_test(tests, print);
    tcase_add_test(tests, print_ring);
    tcase_add_test(tests, assertion);
    tcase_add_test(tests, recursion);
    tcase_add_test(tests, stack_overflow);
    tcase_add_test(tests, divergent_loop);
    tcase_add_test(tests, switch_of_lanes);
    tcase_add_test(tests, lock_in_a_warp);
    tcase_add_test(tests, votes);
    tcase_add_test(tests, rendezvous_at_two_places);
    tcase_add_test(tests, histogram);
    tcase_add_loop_test(tests, scans, 0, SCAN_WAYS);
    tcase_add_test(tests, memory_of_resident_blocks);
    tcase_add_test(tests, function_pointers);
    tcase_add_test(tests, structs_by_value);
    tcase_add_test(tests, variables);
    tcase_add_test(tests, heap);
    tcase_add_test(tests, wide_integers);
    tcase_add_test(tests, places);
    tcase_add_test(tests, named_barriers);
    tcase_add_test(tests, out_of_bounds);
    tcase_add_test(tests, misaligned);
    tcase_add_test(tests, shared_bounds);
    tcase_add_test(tests, host_and_peer_memory);
    tcase_add_test(tests, trap);
    tcase_add_test(tests, deadlock);
    tcase_add_test(tests, budget);
    tcase_add_test(tests, facts);
    tcase_add_test(tests, memory_accounts);
    TCase *threads = tcase_create("threads"); /* for ThreadSanitizer: scripts/test */
    tcase_add_checked_fixture(threads, load, unload);
    tcase_set_timeout(threads, 60);
    tcase_add_test(threads, grid_barrier);
    tcase_add_loop_test(threads, blocks_wait_for_blocks, 0, 3);
    tcase_add_loop_test(threads, reduction, 0, 4);
    tcase_add_test(threads, atomics);
    tcase_add_test(threads, launches_at_once);
    suite_add_tcase(suite, tests);
    suite_add_tcase(suite, threads);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
