/* SPDX-License-Identifier: Apache-2.0 */
/* PTX text that is run: each kernel on a small grid with little memory and a budget. Any fault is allowed. */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "softcuda/vm/vm.h"

enum { MEMORY_BYTES = 4 << 20, BUFFER_BYTES = 4096, SHARED_BYTES = 64, MOST_SHARED_BYTES = 227 << 10 };

static const sc_device_limits limits = {
    .cc = 90,
    .multiprocessors = 2,
    .max_threads_per_multiprocessor = 2048,
    .max_blocks_per_multiprocessor = 32,
    .registers_per_multiprocessor = 65536,
    .shared_bytes_per_multiprocessor = 233472,
    .reserved_shared_bytes_per_block = 1024,
    .clock_khz = 1000000,
};

/* Pointers to the buffer, small numbers otherwise. */
static void *make_params(const sc_kernel_facts *facts, uint64_t buffer)
{
    char *params = calloc(1, facts->param_bytes + 1);
    for (size_t i = 0; params && i < facts->n_params; i++) {
        const ptx_variable *param = facts->function->params[i];
        const uint64_t value = param->bytes == 8 ? buffer : 5 + i;
        memcpy(params + param->offset, &value, param->bytes < sizeof value ? param->bytes : sizeof value);
    }
    return params;
}

static void launch(const sc_program *program, int kernel, uint64_t buffer)
{
    const sc_kernel_facts *facts = sc_program_kernel(program, (size_t)kernel);
    sc_launch launch = {
        .program = program,
        .kernel = kernel,
        .grid = {2, 1, 1},
        .block = {40, 1, 1},
        .dynamic_shared_bytes = SHARED_BYTES,
        .cooperative = true, /* the budget is looked at soonest */
        .resident_blocks = 2,
        .printf_fifo_bytes = 4096,
        .malloc_heap_bytes = 64 << 10,
        .budget = 20000,
        .params = make_params(facts, buffer),
    };
    sc_fault fault = {0};
    memset((void *)(uintptr_t)buffer, 0, BUFFER_BYTES);
    if (facts->static_shared_bytes + SHARED_BYTES <= MOST_SHARED_BYTES && launch.params &&
        !sc_run(&launch, &fault, NULL) && (fault.kind == SC_FAULT_NONE || !fault.text[0]))
        abort();
    free((void *)launch.params);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    ptx_module *module = NULL;
    sc_program *program = NULL;
    ptx_problem problem = {0};
    setenv("KREGISTRY_SOFTCUDA_THREADS", "1", 1);
    if (kr__ptx_parse((const char *)bytes, n, NULL, &module, &problem)) {
        sc_memory *memory = sc_memory_create(0, MEMORY_BYTES);
        uint64_t buffer = sc_memory_alloc(memory, BUFFER_BYTES, 256);
        if (sc_program_create(module, memory, &limits, &program, &problem))
            for (size_t i = 0; i < sc_program_n_kernels(program); i++)
                launch(program, (int)i, buffer);
        else if (!problem.kind || !problem.log.bytes)
            abort();
        sc_program_destroy(&program);
        sc_memory_destroy(memory);
    }
    kr__text_free(&problem.log);
    kr__ptx_module_free(&module);
    return 0;
}
