/* SPDX-License-Identifier: Apache-2.0 */

/* Launch rules, residency and splitting as arithmetic, against numbers worked out by hand or published. */

#include <check.h>
#include <string.h>

#include "registry/internal.h"

/* ---- rules ---- */

#define MAX_X 2147483647u

static const struct {
    const char *what;
    kr__launch_rule rule;
    kr__geometry geometry;
    unsigned grid[3], block[3];
} rules[] = {
#define ELEMENTWISE(per, w)                                                           \
    {                                                                                 \
        .kind = KR__LAUNCH_ELEMENTWISE, .n_extents = 1, .per_thread = per, .waves = w \
    }
#define ON(n, threads, resident, sms) \
    {                                 \
        {n}, threads, resident, sms,  \
        {                             \
            MAX_X, 65535, 65535       \
        }                             \
    }
    {"nothing is one block", ELEMENTWISE(1, 64), ON(0, 256, 8, 132), {1, 1, 1}, {256, 1, 1}},
    {"one element", ELEMENTWISE(1, 64), ON(1, 256, 8, 132), {1, 1, 1}, {256, 1, 1}},
    {"exactly a block", ELEMENTWISE(1, 64), ON(256, 256, 8, 132), {1, 1, 1}, {256, 1, 1}},
    {"one more", ELEMENTWISE(1, 64), ON(257, 256, 8, 132), {2, 1, 1}, {256, 1, 1}},
    {"four a thread", ELEMENTWISE(4, 64), ON(1000000, 256, 8, 132), {977, 1, 1}, {256, 1, 1}},
    {"64 waves at most", ELEMENTWISE(1, 64), ON(1ull << 40, 256, 8, 132), {64 * 8 * 132, 1, 1}, {256, 1, 1}},
    {"4 waves at most", ELEMENTWISE(1, 4), ON(1ull << 40, 1024, 2, 10), {80, 1, 1}, {1024, 1, 1}},
    {"rounding up does not wrap", ELEMENTWISE(1, 64), ON(UINT64_MAX, 2, 1, 1), {64, 1, 1}, {2, 1, 1}},
    {"the device's grid at most",
     ELEMENTWISE(1, 1u << 20),
     ON(UINT64_MAX, 1, 32, 1000),
     {MAX_X, 1, 1},
     {1, 1, 1}},
#define TILES(n, tx, ty, tz, bx, by)                                                           \
    {                                                                                          \
        .kind = KR__LAUNCH_TILES, .n_extents = n, .tile = {tx, ty, tz}, .block = { bx, by, 1 } \
    }
    {"tiles",
     TILES(2, 32, 8, 1, 32, 4),
     {{33, 17, 0}, 0, 0, 1, {MAX_X, 65535, 65535}},
     {2, 3, 1},
     {32, 4, 1}},
    {"no tiles",
     TILES(2, 32, 8, 1, 32, 4),
     {{0, 0, 0}, 0, 0, 1, {MAX_X, 65535, 65535}},
     {1, 1, 1},
     {32, 4, 1}},
    {"tiles past the grid's limit",
     TILES(2, 32, 8, 1, 32, 4),
     {{1, 1 << 20, 0}, 0, 0, 1, {MAX_X, 65535, 65535}},
     {1, 65535, 1},
     {32, 4, 1}},
    {"tiles in depth",
     TILES(3, 8, 8, 4, 8, 8),
     {{8, 9, 5}, 0, 0, 1, {MAX_X, 65535, 65535}},
     {1, 2, 2},
     {8, 8, 1}},
};

START_TEST(rules_give_grids)
{
    kr_launch_config config;
    kr__config_by_rule(&rules[_i].rule, &rules[_i].geometry, &config);
    for (size_t i = 0; i < 3; i++) {
        ck_assert_msg(config.grid[i] == rules[_i].grid[i], "%s: grid[%zu] is %u", rules[_i].what, i,
                      config.grid[i]);
        ck_assert_msg(config.block[i] == rules[_i].block[i], "%s: block[%zu] is %u", rules[_i].what, i,
                      config.block[i]);
    }
}
END_TEST

/* ---- residency: the rows are of NVIDIA's occupancy calculator ---- */

static const kr_device_info h100 = {.warp_size = 32,
                                    .max_threads_per_multiprocessor = 2048,
                                    .max_blocks_per_multiprocessor = 32,
                                    .registers_per_multiprocessor = 65536,
                                    .shared_bytes_per_multiprocessor = 233472,
                                    .reserved_shared_bytes_per_block = 1024};
static const kr_device_info t4 = {.warp_size = 32,
                                  .max_threads_per_multiprocessor = 1024,
                                  .max_blocks_per_multiprocessor = 16,
                                  .registers_per_multiprocessor = 65536,
                                  .shared_bytes_per_multiprocessor = 65536};

static const struct {
    const char *what;
    const kr_device_info *device;
    int registers, static_shared;
    unsigned threads;
    size_t dynamic;
    int blocks;
    kr_limiter limiter;
} residencies[] = {
    {"threads", &h100, 32, 0, 256, 0, 8, KR_LIMIT_THREADS},
    {"blocks", &h100, 16, 0, 32, 0, 32, KR_LIMIT_BLOCKS},
    {"registers", &h100, 64, 0, 256, 0, 4, KR_LIMIT_REGISTERS},
    {"registers in units of 256 a warp", &h100, 33, 0, 1024, 0, 1, KR_LIMIT_REGISTERS},
    {"registers over four schedulers", &h100, 200, 0, 64, 0, 4, KR_LIMIT_REGISTERS},
    {"shared memory", &h100, 32, 0, 256, 100 * 1024, 2, KR_LIMIT_SHARED},
    {"the system's kilobyte counts", &h100, 32, 0, 64, 114 * 1024, 1, KR_LIMIT_SHARED},
    {"static and dynamic", &h100, 32, 16384, 64, 32768, 4, KR_LIMIT_SHARED},
    {"half the threads of a T4", &t4, 32, 0, 256, 0, 4, KR_LIMIT_THREADS},
    {"shared memory of a T4", &t4, 32, 32768, 64, 0, 2, KR_LIMIT_SHARED},
    {"a block of one thread", &h100, 32, 0, 1, 0, 32, KR_LIMIT_BLOCKS},
    {"a block that does not fit", &h100, 128, 0, 1024, 0, 0, KR_LIMIT_REGISTERS},
};

START_TEST(residency_is_bounded_by_the_scarcest)
{
    const kr_kernel_info kernel = {.registers = residencies[_i].registers,
                                   .static_shared_bytes = residencies[_i].static_shared};
    const kr__residency r =
        kr__residency_of(residencies[_i].device, &kernel, residencies[_i].threads, residencies[_i].dynamic);
    ck_assert_msg(r.blocks == residencies[_i].blocks, "%s: %d blocks", residencies[_i].what, r.blocks);
    ck_assert_msg(r.limiter == residencies[_i].limiter, "%s: %s", residencies[_i].what,
                  kr_limiter_name(r.limiter));
}
END_TEST

/* ---- splitting ---- */

static const struct {
    uint64_t total, least;
    size_t n;
    uint64_t weights[4], counts[4];
} splits[] = {
    {100, 1, 1, {132}, {100}},
    {100, 1, 2, {132, 132}, {50, 50}},
    {101, 1, 2, {132, 132}, {50, 51}},
    {100, 1, 2, {100, 300}, {25, 75}},
    {0, 1, 3, {1, 1, 1}, {0, 0, 0}},
    {1, 1, 3, {1, 1, 1}, {1, 0, 0}},
    {2, 1, 3, {1, 1, 1}, {1, 1, 0}},
    {3, 1, 4, {1, 1, 1, 1}, {1, 1, 1, 0}},
    {10, 4, 4, {1, 1, 1, 1}, {5, 5, 0, 0}},
    {3, 4, 2, {1, 1}, {3, 0}},
    {UINT64_MAX, 1, 2, {UINT32_MAX, UINT32_MAX}, {UINT64_MAX / 2, UINT64_MAX / 2 + 1}},
    {1000, 1, 2, {1, 1000000}, {0, 1000}},
    {10, 4, 3, {10, 1, 10}, {5, 0, 5}},
};

START_TEST(parts_are_proportional_and_whole)
{
    uint64_t weights[4], counts[4] = {99, 99, 99, 99}, sum = 0;
    memcpy(weights, splits[_i].weights, sizeof weights);
    kr__split_parts(splits[_i].total, splits[_i].least, weights, splits[_i].n, counts);
    for (size_t i = 0; i < splits[_i].n; i++) {
        ck_assert_msg(counts[i] == splits[_i].counts[i], "row %d part %zu: %llu", _i, i,
                      (unsigned long long)counts[i]);
        sum += counts[i];
    }
    ck_assert_uint_eq(sum, splits[_i].total);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("config");
    TCase *c = tcase_create("config");
    tcase_add_loop_test(c, rules_give_grids, 0, (int)KR_COUNT(rules));
    tcase_add_loop_test(c, residency_is_bounded_by_the_scarcest, 0, (int)KR_COUNT(residencies));
    tcase_add_loop_test(c, parts_are_proportional_and_whole, 0, (int)KR_COUNT(splits));
    suite_add_tcase(suite, c);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
