/* SPDX-License-Identifier: Apache-2.0 */
/* The checkers: what they must find, and beside it what they must leave alone. */
#include "vm_run.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define AT(type, address) ((type *)(uintptr_t)(address))

typedef struct sc_case {
    const char *kernel, *checks;
    unsigned grid, block, n;
    const char *finding; /* part of what is said; NULL: nothing is found */
    enum { PLAIN, COOPERATIVE, UNWRITTEN } how;
    size_t out_bytes; /* 0: enough */
} sc_case;

static const sc_case cases[] = {
    /* racecheck, shared memory */
    {"exchange", "all", 3, 256, 0, NULL, PLAIN, 0},
    {"bad_exchange", "all", 1, 256, 0, "no barrier between them", PLAIN, 0},
    {"bad_overwrite", "all", 1, 256, 0, "race: write of 4 bytes at offset", PLAIN, 0},
    {"bad_same_place", "all", 1, 64, 0, "race: write of 4 bytes at offset 0 of the shared memory", PLAIN, 0},
    {"bad_same_place", "all", 1, 32, 0, "no __syncwarp() between them", PLAIN, 0},
    {"same_value", "all", 1, 256, 0, NULL, PLAIN, 0},
    {"warp_exchange", "all", 1, 256, 0, NULL, PLAIN, 0},
    {"bad_warp_exchange", "all", 1, 256, 0, "no __syncwarp() between them", PLAIN, 0},
    {"volatile_exchange", "all", 1, 32, 0, NULL, PLAIN, 0},
    {"half_exchange", "all", 1, 64, 0, NULL, PLAIN, 0},
    {"bad_half_exchange", "all", 1, 64, 0, "no __syncwarp() between them", PLAIN, 0},
    {"bytes", "all", 4, 256, 0, NULL, PLAIN, 0},
    {"tiles", "all", 1, 256, 32, NULL, PLAIN, 0},
    {"bad_tiles", "all", 1, 256, 32, "no barrier between them", PLAIN, 0},
    {"double_buffer", "all", 1, 256, 5, NULL, PLAIN, 0},
    {"bad_double_buffer", "all", 1, 256, 5, "no barrier between them", PLAIN, 0},
    {"reduction", "all", 4, 256, 0, NULL, PLAIN, 0},
    {"histogram", "all", 8, 128, 0, NULL, PLAIN, 0},
    {"bad_histogram", "all", 1, 256, 0, "racecheck", PLAIN, 0},
    {"named_barriers", "all", 1, 64, 4, NULL, PLAIN, 0},
    {"bad_named_barriers", "all", 1, 64, 4, "no barrier between them", PLAIN, 0},
    {"shared_flag", "all", 1, 64, 0, NULL, PLAIN, 0},
    /* racecheck, global memory */
    {"spin_lock", "all", 16, 64, 0, NULL, PLAIN, 0},
    {"global_flag", "all", 2, 64, 0, NULL, PLAIN, 0},
    {"bad_global_flag", "all", 2, 64, 0, "no atomic access and fence orders the two blocks", PLAIN, 0},
    {"bad_unlocked", "all", 16, 64, 0, "no atomic access and fence orders the two blocks", PLAIN, 0},
    {"bad_blocks", "all", 2, 64, 0, "race: write of 4 bytes at 0x", PLAIN, 0},
    {"bad_halo", "all", 4, 64, 0, "racecheck", PLAIN, 0},
    {"last_block_sum", "all", 20, 64, 0, NULL, PLAIN, 0},
    {"bad_last_block_sum", "all", 20, 64, 0, "racecheck", PLAIN, 0},
    {"scan", "all", 20, 64, 0, NULL, PLAIN, 0},
    {"bad_scan", "all", 20, 64, 0, "racecheck", PLAIN, 0},
    {"grid_sync", "all", 5, 64, 3, NULL, COOPERATIVE, 0},
    {"bad_grid_sync", "all", 5, 64, 3, "racecheck", COOPERATIVE, 0},
    /* initcheck */
    {"bad_first_read", "all", 1, 64, 0, "load of 4 bytes at 0x", UNWRITTEN, 0},
    {"bad_first_read", "racecheck,synccheck", 1, 2, 0, NULL, UNWRITTEN, 0},
    {"bad_first_read_shared", "initcheck", 1, 64, 0,
     "thread (63,0,0): load of 4 bytes at offset 252 of the shared memory", PLAIN, 0},
    {"bad_first_byte", "all", 1, 1, 0, "of which byte 3 was never written", UNWRITTEN, 0},
    {"bad_heap", "all", 1, 1, 0, "8 bytes into the allocation of 16 bytes", PLAIN, 0},
    {"heap", "all", 4, 64, 0, NULL, PLAIN, 0},
    /* memcheck */
    {"bad_past_end", "all", 1, 32, 128, "0 bytes past the end of the allocation of 512 bytes", PLAIN, 512},
    {"bad_past_end", "memcheck", 1, 32, 16384, "past the end of the allocation of 512 bytes", PLAIN, 512},
    {"bad_before", "memcheck", 1, 1, 0, "12 bytes before the allocation of 4096 bytes", PLAIN, 4096},
    {"bad_alignment", "memcheck", 1, 1, 0, "no multiple of 4", PLAIN, 0},
    {"bad_shared", "memcheck", 1, 64, 0, "of the shared memory of the block, which has 32 bytes", PLAIN, 0},
    /* synccheck */
    {"bad_branches", "synccheck", 1, 64, 0, "through different instructions", PLAIN, 0},
    {"unaligned_branches", "synccheck", 1, 64, 0, NULL, PLAIN, 0},
    {"bad_early_exit", "all", 1, 64, 0, "barrier 0 by 20 of the 32 threads of warp 0 (mask 0x000fffff)",
     PLAIN, 0},
    {"warps_exit", "all", 1, 64, 0, NULL, PLAIN, 0},
    {"late_lanes", "all", 1, 64, 0, NULL, PLAIN, 0},
    {"bad_arrivals", "synccheck", 1, 64, 0, "came to barrier 1 again before those it waits for", PLAIN, 0},
    {"bad_count", "synccheck", 1, 64, 0, "where 32 have come to it for", PLAIN, 0},
    {"bad_number", "all", 1, 64, 0, "barrier 16: a block has 16 of them, and this is taken for number 0",
     PLAIN, 0},
    {"bad_mask", "all", 1, 32, 0, "lane 16 takes part under the mask 0x0000ffff", PLAIN, 0},
    {"bad_source", "all", 1, 32, 0, "lane 0 reads from lane 16, which takes no part", PLAIN, 0},
    {"bad_deadlock", "synccheck", 1, 32, 0, "deadlock:", PLAIN, 0},
    {"matches", "all", 1, 64, 0, NULL, PLAIN, 0},
    {"divergent_votes", "all", 1, 64, 0, NULL, PLAIN, 0},
    {"half_exits", "all", 1, 64, 0, NULL, PLAIN, 0},
    {"half_works_and_exits", "all", 1, 64, 0, NULL, PLAIN, 0},
    {"bad_half_exits", "all", 1, 64, 0, "lane 0 reads from lane 16, which takes no part", PLAIN, 0},
    {"bad_half_shuffles", "all", 1, 64, 0, "the lanes of the mask 0xffffffff are at different instructions",
     PLAIN, 0},
    {"bad_half_votes", "all", 1, 64, 0, "the lanes of the mask 0xffffffff are at different instructions",
     PLAIN, 0},
    {"bad_half_matches", "all", 1, 64, 0, "the lanes of the mask 0xffffffff are at different instructions",
     PLAIN, 0},
    {"bad_half_waits", "all", 1, 64, 0, "deadlock:", PLAIN, 0},
    {"bad_half_mask", "all", 1, 64, 0xffff0000,
     "lane 0 names lane 16 in its mask 0xffffffff, but that one's is 0xffff0000", PLAIN, 0},
    {"bad_half_mask", "all", 1, 64, 0xffff0001,
     "lane 0 names lane 16 in its mask 0xffffffff, but that one's is 0xffff0001", PLAIN, 0},
    {"two_syncwarps", "all", 1, 64, 0, NULL, PLAIN, 0},
};

enum { N = 16384 };

/* How a case is run: by how many host threads, and in what order. */
static const struct {
    const char *threads;
    uint64_t seed;
} ways[] = {{"1", 0}, {"3", 0}, {"1", 1}, {"4", 2}};

static void run_case(const sc_case *of, uint64_t seed)
{
    static vm_module module;
    if (!vm_load(&module, VM_DATA "/check.ptx"))
        exit(2);
    uint64_t params[3] = {0, 0, of->n};
    for (int i = 0; i < 2; i++) {
        size_t bytes = i == 1 && of->out_bytes ? of->out_bytes : N * 4;
        params[i] =
            of->how == UNWRITTEN ? sc_memory_alloc(module.memory, bytes, 256) : vm_alloc(&module, bytes);
        for (unsigned k = 0; i == 0 && of->how != UNWRITTEN && k < N; k++)
            AT(int, params[0])[k] = (int)(k * 7 % 31);
    }
    module.seed = seed;
    module.cooperative = of->how == COOPERATIVE;
    sc_fault fault;
    vm_launch(&module, of->kernel, (unsigned[3]){of->grid, 1, 1}, (unsigned[3]){of->block, 1, 1}, params,
              &fault, NULL);
    vm_unload(&module);
}

/* What a process of its own says on standard error. */
static const char *told(const sc_case *of, size_t way)
{
    static char text[1 << 16];
    FILE *file = tmpfile();
    ck_assert_ptr_nonnull(file);
    pid_t child = fork();
    if (child == 0) {
        setenv("KREGISTRY_SOFTCUDA_CHECK", of->checks, 1);
        setenv("KREGISTRY_SOFTCUDA_THREADS", ways[way].threads, 1);
        dup2(fileno(file), STDERR_FILENO);
        run_case(of, ways[way].seed);
        fflush(NULL);
        _exit(0);
    }
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    rewind(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%s: status %x: %s", of->kernel,
                  (unsigned)status, text);
    return text;
}

START_TEST(finds)
{
    const sc_case *of = &cases[_i];
    char name[80];
    kr__format(name, sizeof name, ": %s, PTX line", of->kernel);
    for (size_t way = 0; way < KR_COUNT(ways); way++) {
        const char *text = told(of, way);
        if (of->finding)
            ck_assert_msg(strstr(text, of->finding) && strstr(text, name), "%s, way %zu: not found, but: %s",
                          of->kernel, way, text);
        else
            ck_assert_msg(!*text, "%s, way %zu: %s", of->kernel, way, text);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("check");
    TCase *tests = tcase_create("check");
    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, finds, 0, KR_COUNT(cases));
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
