/* SPDX-License-Identifier: Apache-2.0 */
#ifndef VM_RUN_H
#define VM_RUN_H

/* Loading and launching, in a line each. */

#include "runtime/base/base.h"
#include "softcuda/vm/vm.h"

typedef struct vm_module {
    ptx_module *ptx;
    sc_memory *memory;
    sc_program *program;
    char problem[2000]; /* why it did not load */
    unsigned problem_line;
    ptx_problem_kind problem_kind;
    bool cooperative;
    unsigned resident;
    size_t dynamic_shared_bytes, printf_fifo_bytes;
    uint64_t budget, seed;
} vm_module;

bool vm_load_text(vm_module *module, const char *text, size_t bytes);
bool vm_load(vm_module *module, const char *path);
void vm_unload(vm_module *module);
uint64_t vm_alloc(vm_module *module, size_t bytes); /* zeros */
bool vm_launch(vm_module *module, const char *kernel, const unsigned grid[3], const unsigned block[3],
               const void *params, sc_fault *ret_fault, sc_run_stats *ret_stats);

#endif
