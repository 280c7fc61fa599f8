/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <string.h>

#include "registry/internal.h"

const char *kr_limiter_name(kr_limiter limiter)
{
    static const char *const names[] = {"none", "registers", "shared memory", "threads", "blocks"};
    return (size_t)limiter < KR_COUNT(names) ? names[limiter] : "?";
}

static uint64_t ceil_div(uint64_t a, uint64_t b)
{
    return a / b + (a % b != 0);
}

static unsigned clamp(uint64_t value, uint64_t most)
{
    value = value < most ? value : most;
    return (unsigned)(value ? value : 1);
}

void kr__config_by_rule(const kr__launch_rule *rule, const kr__geometry *g, kr_launch_config *config)
{
    for (size_t i = 0; i < 3; i++)
        config->grid[i] = config->block[i] = 1;
    if (rule->kind == KR__LAUNCH_TILES) {
        for (size_t i = 0; i < rule->n_extents; i++) {
            config->grid[i] = clamp(ceil_div(g->extents[i], rule->tile[i]), g->max_grid[i]);
            config->block[i] = rule->block[i];
        }
        return;
    }
    const uint64_t blocks = ceil_div(g->extents[0], (uint64_t)g->block_threads * rule->per_thread);
    const uint64_t waves = (uint64_t)rule->waves * g->resident_blocks * g->multiprocessors;
    config->block[0] = g->block_threads;
    config->grid[0] = clamp(blocks < waves ? blocks : waves, g->max_grid[0]);
}

/* CUDA's occupancy arithmetic for CC 3.0 and later: registers are handed out to warps by 256, warps sit on
 * four schedulers, shared memory is handed out by 128 bytes (256 before CC 7.0, which changes no bound
 * below). */
kr__residency kr__residency_of(const kr_device_info *device, const kr_kernel_info *kernel,
                               unsigned block_threads, size_t dynamic_shared_bytes)
{
    enum { REGISTER_UNIT = 256, SCHEDULERS = 4, SHARED_UNIT = 128 };
    const int warp = device->warp_size ? device->warp_size : 32;
    const int warps = (int)ceil_div(block_threads, (uint64_t)warp);
    const int per_warp =
        (int)ceil_div((uint64_t)kernel->registers * (uint64_t)warp, REGISTER_UNIT) * REGISTER_UNIT;
    const size_t shared_asked = (size_t)kernel->static_shared_bytes + dynamic_shared_bytes +
                                (size_t)device->reserved_shared_bytes_per_block;
    const size_t shared = ceil_div(shared_asked, SHARED_UNIT) * SHARED_UNIT;
    const int resident_warps =
        per_warp ? device->registers_per_multiprocessor / per_warp / SCHEDULERS * SCHEDULERS : 0;
    const struct {
        kr_limiter limiter;
        int blocks; /* -1: no limit */
    } limits[] = {
        {KR_LIMIT_THREADS, device->max_threads_per_multiprocessor / warp / (warps ? warps : 1)},
        {KR_LIMIT_BLOCKS, device->max_blocks_per_multiprocessor ? device->max_blocks_per_multiprocessor : -1},
        {KR_LIMIT_REGISTERS, per_warp ? resident_warps / (warps ? warps : 1) : -1},
        {KR_LIMIT_SHARED, shared ? (int)((size_t)device->shared_bytes_per_multiprocessor / shared) : -1},
    };
    kr__residency least = {limits[0].blocks, limits[0].limiter};
    for (size_t i = 1; i < KR_COUNT(limits); i++)
        if (limits[i].blocks >= 0 && limits[i].blocks < least.blocks)
            least = (kr__residency){limits[i].blocks, limits[i].limiter};
    return least;
}

/* ---- overrides ---- */

static bool given(const unsigned dims[3])
{
    return dims[0] || dims[1] || dims[2];
}

static unsigned at_least_1(unsigned n)
{
    return n ? n : 1;
}

static kr_status check_block(const kr__launch_rule *rule, const unsigned block[3],
                             const kr_kernel_info *kernel, kr_error *err)
{
    if (rule->block[0]) {
        for (size_t i = 0; i < 3; i++)
            if (at_least_1(block[i]) != at_least_1(rule->block[i])) {
                KR_FAIL(err, KR_INVALID_ARGUMENT,
                        "a block of %ux%ux%u is asked for, but this kernel is written for %ux%ux%u",
                        at_least_1(block[0]), at_least_1(block[1]), at_least_1(block[2]),
                        at_least_1(rule->block[0]), at_least_1(rule->block[1]), at_least_1(rule->block[2]));
                kr__error_advice(err, "Leave the block out.");
                return KR_INVALID_ARGUMENT;
            }
        return KR_OK;
    }
    if (at_least_1(block[1]) != 1 || at_least_1(block[2]) != 1) {
        KR_FAIL(err, KR_INVALID_ARGUMENT,
                "a block of %ux%ux%u is asked for, but this kernel is one-dimensional", at_least_1(block[0]),
                at_least_1(block[1]), at_least_1(block[2]));
        kr__error_advice(err, "Give the block one dimension.");
        return KR_INVALID_ARGUMENT;
    }
    if (block[0] > (unsigned)kernel->max_threads_per_block) {
        KR_FAIL(err, KR_INVALID_ARGUMENT,
                "a block of %u threads is asked for; with %d registers a thread this kernel takes at most %d",
                block[0], kernel->registers, kernel->max_threads_per_block);
        kr__error_advice(err, "Ask for a block of at most %d threads.", kernel->max_threads_per_block);
        return KR_INVALID_ARGUMENT;
    }
    return KR_OK;
}

/* More blocks than the rule has work for would be wrong for kernels of a fixed number of blocks. Fewer are
 * right because kernels loop, elementwise ones over x, tiled ones over y and z: a tiled rule's grid in x is
 * all of it. */
static kr_status check_grid(const kr__launch_rule *rule, const kr__geometry *g, const unsigned grid[3],
                            kr_error *err)
{
    for (size_t i = 0; i < 3; i++) {
        uint64_t most = 1;
        if (rule->kind == KR__LAUNCH_TILES && i < rule->n_extents)
            most = ceil_div(g->extents[i], rule->tile[i]);
        else if (rule->kind == KR__LAUNCH_ELEMENTWISE && i == 0)
            most = ceil_div(g->extents[0], (uint64_t)g->block_threads * rule->per_thread);
        most = most ? most : 1;
        const uint64_t least = rule->kind == KR__LAUNCH_TILES && i == 0 ? most : 1;
        const unsigned asked = at_least_1(grid[i]);
        if (asked >= least && asked <= most && asked <= g->max_grid[i])
            continue;
        KR_FAIL(err, KR_INVALID_ARGUMENT,
                "%u blocks in %c are asked for; the work has %" PRIu64 " to %" PRIu64 ", the device takes %u",
                asked, "xyz"[i], least, most, g -> max_grid[i]);
        kr__error_advice(err, "Leave the grid out.");
        return KR_INVALID_ARGUMENT;
    }
    return KR_OK;
}

/* ---- the whole ---- */

kr_status kr__fit_of(kr_kernel *kernel, unsigned block_threads, size_t dynamic_shared_bytes, kr__fit *ret_fit,
                     kr_error *err)
{
    int threads = (int)block_threads, min_grid, resident;
    kr_status status = KR_OK;
    if (!threads)
        status = kr_kernel_suggest(kernel, dynamic_shared_bytes, 0, &threads, &min_grid, err);
    if (!status)
        status = kr_kernel_occupancy(kernel, threads, dynamic_shared_bytes, &resident, err);
    if (!status)
        *ret_fit = (kr__fit){(unsigned)threads, resident > 0 ? (unsigned)resident : 1};
    return status;
}

static kr_status fill_geometry(const kr__op_def *def, const kr__launch_rule *rule, const kr__loaded *loaded,
                               const kr__values *values, const unsigned block[3], kr__geometry *g,
                               size_t *ret_shared_bytes, kr_error *err)
{
    const kr_device_info *device = kr_device_get_info(kr_kernel_device(loaded->kernel));
    kr__problem problem;
    uint64_t shared = 0;
    *g = (kr__geometry){.multiprocessors = (unsigned)device->multiprocessors};
    for (size_t i = 0; i < 3; i++)
        g->max_grid[i] = (unsigned)device->max_grid[i];
    for (size_t i = 0; i < rule->n_extents; i++)
        if (!kr__expression_value(rule->extents[i], &def->op, values, &g->extents[i], problem))
            return KR_FAIL(err, KR_INVALID_ARGUMENT, "%s", problem);
    if (rule->shared && !kr__expression_value(rule->shared, &def->op, values, &shared, problem))
        return KR_FAIL(err, KR_INVALID_ARGUMENT, "%s", problem);
    *ret_shared_bytes = shared;
    /* Checks the limit, with numbers; the occupancy calls below count on it. */
    kr_status status = shared ? kr_kernel_allow_shared(loaded->kernel, shared, err) : KR_OK;
    if (status || rule->kind == KR__LAUNCH_TILES)
        return status;
    kr__fit fit = loaded->usual;
    if (block != rule->block || rule->shared)
        status = kr__fit_of(loaded->kernel, block[0], shared, &fit, err);
    g->block_threads = fit.block_threads;
    g->resident_blocks = fit.resident_blocks;
    return status;
}

kr_status kr__configure(const kr__op_def *def, size_t type_index, size_t variant, const kr__loaded *loaded,
                        const uint64_t *sizes, const kr_launch_options *options, kr_launch_config *ret_config,
                        kr_error *err)
{
    const kr__launch_rule *rule = &def->variants[variant].launch;
    const kr_op *op = &def->op;
    const kr__values values = {.sizes = sizes,
                               .sizeof_t = op->n_types ? kr_type_bytes(op->types[type_index]) : 0};
    const unsigned *block = options && given(options->block) ? options->block : rule->block;
    kr__geometry geometry;
    size_t shared_bytes = 0;
    kr_status status = KR_OK;
    if (block != rule->block)
        status = check_block(rule, block, kr_kernel_get_info(loaded->kernel), err);
    if (!status)
        status = fill_geometry(def, rule, loaded, &values, block, &geometry, &shared_bytes, err);
    if (!status && options && given(options->grid))
        status = check_grid(rule, &geometry, options->grid, err);
    if (status) {
        char name[KR__MAX_FULL_NAME];
        kr__error_op(err, kr__op_full_name(op, type_index, name));
        return status;
    }
    kr_launch_config config;
    kr__config_by_rule(rule, &geometry, &config);
    config.dynamic_shared_bytes = (unsigned)shared_bytes;
    if (options && given(options->grid))
        for (size_t i = 0; i < 3; i++)
            config.grid[i] = at_least_1(options->grid[i]);
    *ret_config = config;
    return KR_OK;
}
