/* SPDX-License-Identifier: Apache-2.0 */
#include "vm_run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const sc_device_limits limits = {
    .ordinal = 0,
    .cc = 90,
    .multiprocessors = 132,
    .max_threads_per_multiprocessor = 2048,
    .max_blocks_per_multiprocessor = 32,
    .registers_per_multiprocessor = 65536,
    .shared_bytes_per_multiprocessor = 233472,
    .reserved_shared_bytes_per_block = 1024,
    .clock_khz = 1980000,
};

static bool create(vm_module *module, const char *text, size_t bytes)
{
    ptx_problem problem = {0};
    bool ok = kr__ptx_parse(text, bytes, NULL, &module->ptx, &problem);
    if (ok) {
        module->memory = sc_memory_create(0, (size_t)1 << 30);
        ok = module->memory &&
             sc_program_create(module->ptx, module->memory, &limits, &module->program, &problem);
    }
    kr__format(module->problem, sizeof module->problem, "%s", problem.log.data ? problem.log.data : "");
    module->problem_line = problem.line;
    module->problem_kind = problem.kind;
    kr__text_free(&problem.log);
    return ok;
}

bool vm_load_text(vm_module *module, const char *text, size_t bytes)
{
    *module = (vm_module){.resident = 264, .printf_fifo_bytes = 1 << 20};
    if (create(module, text, bytes))
        return true;
    vm_unload(module);
    return false;
}

bool vm_load(vm_module *module, const char *path)
{
    char *text;
    size_t bytes;
    if (kr__file_read(path, &text, &bytes, NULL) != KR_OK)
        return false;
    bool ok = vm_load_text(module, text, bytes);
    if (!ok)
        fprintf(stderr, "%s: %s\n", path, module->problem);
    free(text);
    return ok;
}

void vm_unload(vm_module *module)
{
    sc_program_destroy(&module->program);
    sc_memory_destroy(module->memory);
    module->memory = NULL;
    if (module->ptx)
        kr__ptx_module_free(&module->ptx);
}

uint64_t vm_alloc(vm_module *module, size_t bytes)
{
    uint64_t address = sc_memory_alloc(module->memory, bytes, 256);
    if (address) {
        memset((void *)(uintptr_t)address, 0, bytes);
        sc_check_filled(address, bytes);
    }
    return address;
}

bool vm_launch(vm_module *module, const char *kernel, const unsigned grid[3], const unsigned block[3],
               const void *params, sc_fault *ret_fault, sc_run_stats *ret_stats)
{
    sc_launch launch = {
        .program = module->program,
        .kernel = sc_program_find(module->program, kernel),
        .params = params,
        .grid = {grid[0], grid[1], grid[2]},
        .block = {block[0], block[1], block[2]},
        .dynamic_shared_bytes = module->dynamic_shared_bytes,
        .cooperative = module->cooperative,
        .resident_blocks = module->resident,
        .printf_fifo_bytes = module->printf_fifo_bytes,
        .malloc_heap_bytes = 8 << 20,
        .budget = module->budget,
        .shuffle_seed = module->seed,
    };
    *ret_fault = (sc_fault){0};
    if (launch.kernel < 0) {
        ret_fault->kind = SC_FAULT_ILLEGAL_INSTRUCTION;
        kr__format(ret_fault->text, sizeof ret_fault->text, "no kernel %s", kernel);
        return false;
    }
    return sc_run(&launch, ret_fault, ret_stats);
}
