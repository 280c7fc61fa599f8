/* SPDX-License-Identifier: Apache-2.0 */
/* Functions: attributes, parameters, occupancy. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tests/softcuda/facts/kernels.h"

/* A kernel that passes its parameter through `bytes` of static shared memory. */
#define SHARED_KERNEL(name, bytes)                                        \
    ".visible .entry " name "(.param .u64 p)\n{\n"                        \
    ".shared .align 4 .b8 buffer_" name "[" bytes "];\n"                  \
    ".reg .u64 %a<2>; .reg .u32 %r<4>;\n"                                 \
    "ld.param.u64 %a1, [p];\nmov.u32 %r1, %tid.x;\n"                      \
    "mov.u32 %r2, buffer_" name ";\nst.volatile.shared.u32 [%r2], %r1;\n" \
    "ld.volatile.shared.u32 %r3, [%r2];\nst.global.u32 [%a1], %r3;\nret;\n}\n"

static const char ptx[] =
    PTX(".extern .shared .align 16 .b8 dynamic[];\n"
        ".visible .entry none() { ret; }\n"
        ".visible .entry lim32() .maxntid 32, 1, 1 { ret; }\n"
        ".visible .entry lim96() .maxntid 96, 1, 1 { ret; }\n"
        ".visible .entry lim512() .maxntid 16, 16, 2 { ret; }\n"
        ".visible .entry req64() .reqntid 64, 1, 1 { ret; }\n"
        ".visible .entry req100() .reqntid 10, 10, 1 { ret; }\n"
        ".visible .entry minblocks() .maxntid 256, 1, 1 .minnctapersm 4 { ret; }\n" //
        SHARED_KERNEL("s4", "4") SHARED_KERNEL("s1000", "1000") SHARED_KERNEL("s8k", "8192")
            SHARED_KERNEL("s24k", "24576") SHARED_KERNEL(
                "s48k",
                "49152") ".visible .entry dyn(.param .u64 p)\n{\n"
                         ".reg .u64 %a<2>; .reg .u32 %r<4>;\n"
                         "ld.param.u64 %a1, [p];\nmov.u32 %r1, %tid.x;\nmov.u32 %r2, dynamic;\n"
                         "st.volatile.shared.u32 [%r2], %r1;\nld.volatile.shared.u32 %r3, [%r2];\n"
                         "st.global.u32 [%a1], %r3;\nret;\n}\n"
                         ".visible .entry args(.param .u8 a, .param .u16 b, .param .u32 c, .param .f32 d, "
                         ".param .u64 e,"
                         " .param .align 16 .b8 f[24], .param .f64 g, .param .align 1 .b8 h[3]) { ret; }\n");

static CUfunction named(const char *name)
{
    return function(load(ptx), name);
}

static void attributes_get(void)
{
    static const char *const names[] = {"none", "lim32", "lim96", "lim512", "req64", "req100",
                                        "s4",   "s1000", "s48k",  "dyn",    "args"};
    begin();
    CUmodule module = load(ptx);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        CUfunction f = function(module, names[i]);
        say(" %s", names[i]);
        for (int a = 0; a < 16; a++) {
            int value = -1;
            if (a == CU_FUNC_ATTRIBUTE_NUM_REGS || a == CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES)
                continue; /* the assembler's choice */
            CUresult result = cuFuncGetAttribute(&value, (CUfunction_attribute)a, f);
            say(",%d", result ? -(int)result : value);
        }
    }
}

static void attributes_wrong(void)
{
    int value;
    begin();
    CUfunction f = named("none");
    ASK(cuFuncGetAttribute(NULL, CU_FUNC_ATTRIBUTE_NUM_REGS, f));
    ASK(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, NULL));
    ASK(cuFuncGetAttribute(&value, (CUfunction_attribute)16, f));
    ASK(cuFuncGetAttribute(&value, (CUfunction_attribute)17, f));
    ASK(cuFuncGetAttribute(&value, (CUfunction_attribute)-1, f));
    ASK(cuFuncSetAttribute(NULL, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 0));
    ASK(cuFuncSetAttribute(f, (CUfunction_attribute)16, 0));
}

static void attributes_set(void)
{
    static const int values[] = {-2, -1, 0, 1, 2, 3, 4, 8, 16, 50, 100, 101, 1000};
    begin();
    CUfunction f = named("none");
    for (int a = 0; a < 16; a++) {
        if (a == CU_FUNC_ATTRIBUTE_NUM_REGS || a == CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES)
            continue;
        say(" |%d", a);
        for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
            int after = NO_SUCH;
            CUresult result = cuFuncSetAttribute(f, (CUfunction_attribute)a, values[i]);
            MUST(cuFuncGetAttribute(&after, (CUfunction_attribute)a, f));
            say(" %d:%d(%d)", values[i], (int)result, after);
        }
    }
}

static void attributes_set_shared(void)
{
    static const int values[] = {0,      1,      48,     49151,  49152,  49153, 100000,
                                 207871, 207872, 207873, 232447, 232448, 232449};
    static const char *const names[] = {"none", "s24k", "s48k", "dyn"};
    begin();
    CUmodule module = load(ptx);
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        CUfunction f = function(module, names[k]);
        say(" %s", names[k]);
        for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
            int after = NO_SUCH;
            CUresult result =
                cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, values[i]);
            MUST(cuFuncGetAttribute(&after, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, f));
            say(" %d:%d(%d)", values[i], (int)result, after);
        }
    }
}

static void attributes_cluster(void)
{
    int value = NO_SUCH;
    begin();
    CUfunction f = named("none");
    ASK(cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH, 2));
    ASK(cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT, 2));
    ASK(cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH, 4));
    ASK(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET, f));
    say(":%d", value);
    ASK(cuLaunchKernel(f, 4, 4, 4, 32, 1, 1, 0, NULL, NULL, NULL));
    ASK(cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH, 1));
    ASK(cuLaunchKernel(f, 4, 4, 4, 32, 1, 1, 0, NULL, NULL, NULL));
    ASK(cuLaunchKernel(f, 3, 4, 4, 32, 1, 1, 0, NULL, NULL, NULL));
    ASK(cuCtxSynchronize());
}

static void cache_configs(void)
{
    begin();
    CUfunction f = named("none");
    for (int i = -1; i < 5; i++)
        ASK(cuFuncSetCacheConfig(f, (CUfunc_cache)i));
    ASK(cuFuncSetCacheConfig(NULL, CU_FUNC_CACHE_PREFER_L1));
    for (int i = -1; i < 4; i++)
        ASK(cuFuncSetSharedMemConfig(f, (CUsharedconfig)i));
    ASK(cuFuncSetSharedMemConfig(NULL, CU_SHARED_MEM_CONFIG_DEFAULT_BANK_SIZE));
}

static void module_and_name(void)
{
    CUmodule back = NULL;
    const char *name = "";
    begin();
    CUmodule module = load(ptx);
    CUfunction f = function(module, "args");
    ASK(cuFuncGetModule(&back, f));
    say(":%d", back == module);
    ASK(cuFuncGetName(&name, f));
    say(":%s", name);
    ASK(cuFuncGetModule(NULL, f));
    ASK(cuFuncGetModule(&back, NULL));
    ASK(cuFuncGetName(NULL, f));
    ASK(cuFuncGetName(&name, NULL));
}

static void loaded(void)
{
    int state = NO_SUCH;
    begin();
    CUfunction f = named("args");
    ASK(cuFuncIsLoaded(&state, f));
    say(":%d", state);
    ASK(cuFuncLoad(f));
    ASK(cuFuncIsLoaded(&state, f));
    say(":%d", state);
    ASK(cuFuncIsLoaded(NULL, f));
    ASK(cuFuncIsLoaded(&state, NULL));
    ASK(cuFuncLoad(NULL));
}

static void loaded_of_module(void)
{
    CUfunction found[32];
    unsigned n = 0;
    int state = NO_SUCH;
    begin();
    CUmodule module = load(ptx);
    MUST(cuModuleGetFunctionCount(&n, module));
    MUST(cuModuleEnumerateFunctions(found, n, module));
    say(" %u", n);
    ASK(cuFuncIsLoaded(&state, found[0]));
    say(":%d", state);
    ASK(cuFuncLoad(found[0]));
    ASK(cuFuncIsLoaded(&state, found[0]));
    say(":%d", state);
}

static void params(void)
{
    begin();
    CUfunction f = named("args");
    for (size_t i = 0; i < 9; i++) {
        size_t offset = NO_SUCH, bytes = NO_SUCH;
        ASK(cuFuncGetParamInfo(f, i, &offset, &bytes));
        say(":%zu+%zu", offset, bytes);
    }
    size_t offset, bytes;
    ASK(cuFuncGetParamInfo(f, 0, &offset, NULL));
    ASK(cuFuncGetParamInfo(f, 0, NULL, &bytes));
    ASK(cuFuncGetParamInfo(f, 0, NULL, NULL));
    ASK(cuFuncGetParamInfo(NULL, 0, &offset, &bytes));
    ASK(cuFuncGetParamInfo(f, SIZE_MAX, &offset, &bytes));
}

/* ---- occupancy ---- */

static void occupancy_table(const char *name, int allow)
{
    static const int blocks[] = {1,   31,  32,  33,  64,  96,  128,  160,  192,
                                 256, 320, 384, 512, 640, 768, 1000, 1024, 1025};
    static const size_t dynamic[] = {0,     1,     1024,  3000,   8192,   16384,  24576,
                                     32768, 49152, 65536, 100000, 116224, 200000, 232448};
    begin();
    CUfunction f = named(name);
    if (allow)
        MUST(cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, allow));
    for (size_t j = 0; j < sizeof dynamic / sizeof *dynamic; j++) {
        say(" %zu:", dynamic[j]);
        for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) {
            int n = -1;
            CUresult result = cuOccupancyMaxActiveBlocksPerMultiprocessor(&n, f, blocks[i], dynamic[j]);
            say("%d,", result ? -(int)result : n);
        }
    }
}

static void occupancy_none(void)
{
    occupancy_table("none", 0);
}
static void occupancy_none_all(void)
{
    occupancy_table("none", 232448);
}
static void occupancy_lim96(void)
{
    occupancy_table("lim96", 0);
}
static void occupancy_lim512(void)
{
    occupancy_table("lim512", 100000);
}
static void occupancy_req100(void)
{
    occupancy_table("req100", 0);
}
static void occupancy_minblocks(void)
{
    occupancy_table("minblocks", 0);
}
static void occupancy_s4(void)
{
    occupancy_table("s4", 0);
}
static void occupancy_s1000(void)
{
    occupancy_table("s1000", 200000);
}
static void occupancy_s8k(void)
{
    occupancy_table("s8k", 0);
}
static void occupancy_s24k(void)
{
    occupancy_table("s24k", 207872);
}
static void occupancy_s48k(void)
{
    occupancy_table("s48k", 0);
}
static void occupancy_dyn(void)
{
    occupancy_table("dyn", 232448);
}

static void occupancy_carveout(void)
{
    static const int carveouts[] = {-1, 0, 10, 50, 100};
    begin();
    CUfunction f = named("s8k");
    for (size_t i = 0; i < sizeof carveouts / sizeof *carveouts; i++) {
        int n = -1;
        ASK(cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, carveouts[i]));
        ASK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&n, f, 64, 0));
        say(":%d", n);
    }
}

static void occupancy_wrong(void)
{
    int n = NO_SUCH, grid = NO_SUCH;
    size_t bytes = NO_SUCH;
    begin();
    CUfunction f = named("none");
    ASK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&n, f, -1, 0));
    ASK(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&n, f, 32, 0, 1));
    ASK(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&n, f, 32, 0, 2));
    ASK(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(NULL, f, 32, 0, 0));
    ASK(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&n, NULL, 32, 0, 0));
    say(" |");
    ASK(cuOccupancyMaxPotentialBlockSize(NULL, &n, f, NULL, 0, 0));
    ASK(cuOccupancyMaxPotentialBlockSize(&grid, NULL, f, NULL, 0, 0));
    ASK(cuOccupancyMaxPotentialBlockSize(&grid, &n, NULL, NULL, 0, 0));
    ASK(cuOccupancyMaxPotentialBlockSizeWithFlags(&grid, &n, f, NULL, 0, 0, 2));
    ASK(cuOccupancyMaxPotentialBlockSizeWithFlags(&grid, &n, f, NULL, 0, 0, 1));
    ASK(cuOccupancyMaxPotentialBlockSize(&grid, &n, f, NULL, 0, -5));
    say(":%d,%d", grid, n);
    say(" |");
    ASK(cuOccupancyAvailableDynamicSMemPerBlock(&bytes, NULL, 1, 32));
    ASK(cuOccupancyAvailableDynamicSMemPerBlock(&bytes, f, 0, 32));
    ASK(cuOccupancyAvailableDynamicSMemPerBlock(&bytes, f, 1, 0));
    ASK(cuOccupancyAvailableDynamicSMemPerBlock(&bytes, f, -1, 32));
    ASK(cuOccupancyAvailableDynamicSMemPerBlock(&bytes, f, 1, 1025));
    ASK(cuOccupancyAvailableDynamicSMemPerBlock(&bytes, f, 33, 32));
    ASK(cuOccupancyAvailableDynamicSMemPerBlock(&bytes, f, 3, 1024));
}

static size_t linear(int block)
{
    return (size_t)block * 64;
}

static size_t stepped(int block)
{
    return block > 256 ? 40000 : 4000;
}

static void potential_block(void)
{
    static const char *const names[] = {"none",      "lim32", "lim96", "lim512", "req64", "req100",
                                        "minblocks", "s1000", "s8k",   "s24k",   "s48k",  "dyn"};
    static const int limits[] = {0, 1, 32, 100, 128, 500, 768, 1024, 2000};
    begin();
    CUmodule module = load(ptx);
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        CUfunction f = function(module, names[k]);
        say(" %s", names[k]);
        for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
            int grid = -1, block = -1;
            CUresult result = cuOccupancyMaxPotentialBlockSize(&grid, &block, f, NULL, 0, limits[i]);
            say(",%d:%d/%d", (int)result, grid, block);
        }
    }
}

static void potential_block_dynamic(void)
{
    static const size_t dynamic[] = {1, 1000, 10000, 20000, 49152, 60000, 100000};
    begin();
    CUfunction f = named("dyn");
    for (int allowed = 0; allowed < 2; allowed++) {
        int grid, block;
        if (allowed)
            MUST(cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 232448));
        for (size_t i = 0; i < sizeof dynamic / sizeof *dynamic; i++) {
            grid = block = -1;
            ASK(cuOccupancyMaxPotentialBlockSize(&grid, &block, f, NULL, dynamic[i], 0));
            say(":%d/%d", grid, block);
        }
        ASK(cuOccupancyMaxPotentialBlockSize(&grid, &block, f, linear, 0, 0));
        say(":%d/%d", grid, block);
        ASK(cuOccupancyMaxPotentialBlockSize(&grid, &block, f, stepped, 0, 0));
        say(":%d/%d", grid, block);
        ASK(cuOccupancyMaxPotentialBlockSize(&grid, &block, f, linear, 100000, 300));
        say(":%d/%d", grid, block);
    }
}

static void available_shared(void)
{
    static const char *const names[] = {"none", "s1000", "s24k", "dyn"};
    static const int blocks[] = {1, 2, 3, 4, 5, 7, 8, 12, 16, 31, 32}, threads[] = {1, 64, 1024};
    begin();
    CUmodule module = load(ptx);
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        CUfunction f = function(module, names[k]);
        for (int allowed = 0; allowed < 2; allowed++) {
            if (allowed)
                MUST(cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 200000));
            say(" %s", names[k]);
            for (size_t j = 0; j < sizeof threads / sizeof *threads; j++)
                for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) {
                    size_t bytes = 0;
                    CUresult result =
                        cuOccupancyAvailableDynamicSMemPerBlock(&bytes, f, blocks[i], threads[j]);
                    say(",%d:%zu", (int)result, bytes);
                }
        }
    }
}

/* ---- clusters ---- */

static CUlaunchConfig config_of(unsigned grid, unsigned block, unsigned dynamic)
{
    return (CUlaunchConfig){.gridDimX = grid,
                            .gridDimY = 1,
                            .gridDimZ = 1,
                            .blockDimX = block,
                            .blockDimY = 1,
                            .blockDimZ = 1,
                            .sharedMemBytes = dynamic};
}

static void cluster_size(void)
{
    static const unsigned threads[] = {1, 32, 128, 1024, 1025};
    int n = NO_SUCH;
    begin();
    CUfunction f = named("none");
    for (int allowed = 0; allowed < 2; allowed++) {
        ASK(cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, allowed));
        for (size_t i = 0; i < sizeof threads / sizeof *threads; i++) {
            CUlaunchConfig config = config_of(16, threads[i], 0);
            n = -1;
            ASK(cuOccupancyMaxPotentialClusterSize(&n, f, &config));
            say(":%d", n);
        }
    }
    CUlaunchConfig config = config_of(16, 32, 49153);
    ASK(cuOccupancyMaxPotentialClusterSize(&n, f, &config));
    config = config_of(0, 32, 0);
    ASK(cuOccupancyMaxPotentialClusterSize(&n, f, &config));
    config = config_of(16, 0, 0);
    ASK(cuOccupancyMaxPotentialClusterSize(&n, f, &config));
    config = config_of(16, 32, 0);
    ASK(cuOccupancyMaxPotentialClusterSize(NULL, f, &config));
    ASK(cuOccupancyMaxPotentialClusterSize(&n, NULL, &config));
    ASK(cuOccupancyMaxPotentialClusterSize(&n, f, NULL));
}

static void cluster_active(void)
{
    static const unsigned sizes[] = {0, 1, 2, 3, 4, 8, 16, 32};
    int n = NO_SUCH;
    begin();
    CUfunction f = named("none");
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        CUlaunchAttribute attribute = {.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
                                       .value.clusterDim = {sizes[i], 1, 1}};
        CUlaunchConfig config = config_of(96, 1024, 0);
        config.attrs = &attribute;
        config.numAttrs = 1;
        n = -1;
        ASK(cuOccupancyMaxActiveClusters(&n, f, &config));
        say(":%d", n > 0 ? 1 : n); /* how many multiprocessors a cluster finds together is the chip's own */
    }
    CUlaunchConfig config = config_of(96, 1024, 0);
    ASK(cuOccupancyMaxActiveClusters(&n, f, &config));
    ASK(cuOccupancyMaxActiveClusters(NULL, f, &config));
    ASK(cuOccupancyMaxActiveClusters(&n, NULL, &config));
    ASK(cuOccupancyMaxActiveClusters(&n, f, NULL));
    CUlaunchAttribute attribute = {.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
                                   .value.clusterDim = {2, 1, 1}};
    config.attrs = &attribute;
    config.numAttrs = 1;
    config.gridDimX = 3;
    ASK(cuOccupancyMaxActiveClusters(&n, f, &config));
    config.gridDimX = 4;
    config.blockDimX = 2048;
    ASK(cuOccupancyMaxActiveClusters(&n, f, &config));
    config.blockDimX = 32;
    config.sharedMemBytes = 100000;
    ASK(cuOccupancyMaxActiveClusters(&n, f, &config));
    say(":%d", n > 0);
}

static const fact facts[] = {
    FACT(attributes_get),     FACT(attributes_wrong),
    FACT(attributes_set),     FACT(attributes_set_shared),
    FACT(attributes_cluster), FACT(cache_configs),
    FACT(module_and_name),    FACT(loaded),
    FACT(loaded_of_module),   FACT(params),
    FACT(occupancy_none),     FACT(occupancy_none_all),
    FACT(occupancy_lim96),    FACT(occupancy_lim512),
    FACT(occupancy_req100),   FACT(occupancy_minblocks),
    FACT(occupancy_s4),       FACT(occupancy_s1000),
    FACT(occupancy_s8k),      FACT(occupancy_s24k),
    FACT(occupancy_s48k),     FACT(occupancy_dyn),
    FACT(occupancy_carveout), FACT(occupancy_wrong),
    FACT(potential_block),    FACT(potential_block_dynamic),
    FACT(available_shared),   FACT(cluster_size),
    FACT(cluster_active),
};
FACTS_MAIN(facts)
