/* SPDX-License-Identifier: Apache-2.0 */
#include "softcuda/vm/machine.h"
#include "softcuda/vm/map.h"

#include <stdlib.h>
#include <string.h>

/* ---- addresses ---- */

uint64_t sc__variable_address(const sc_program *program, const ptx_variable *variable)
{
    uint64_t address;
    return sc__map_get(&program->addresses, (uintptr_t)variable, &address) ? address : 0;
}

uint64_t sc__function_address(const sc_program *program, const ptx_function *function)
{
    uint64_t address;
    return sc__map_get(&program->addresses, (uintptr_t)kr__ptx_called(function), &address) ? address : 0;
}

static bool out_of_memory(ptx_problem *problem, const char *what)
{
    problem->kind = PTX_PROBLEM_MEMORY;
    kr__text_add(&problem->log, "softcuda: out of %s memory\n", what);
    return false;
}

/* ---- functions whose address is taken ---- */

static bool add_addressable(sc_program *program, const ptx_function *function)
{
    uint64_t address;
    function = function ? kr__ptx_called(function) : NULL;
    if (!function || sc__map_get(&program->addresses, (uintptr_t)function, &address))
        return true;
    const ptx_function **grown =
        kr__grow((void *)program->addressable, program->n_addressable, sizeof *grown);
    if (!grown)
        return false;
    program->addressable = grown;
    grown[program->n_addressable++] = function;
    return sc__map_put(&program->addresses, &program->arena, (uintptr_t)function,
                       SC_WINDOW(SC_WINDOW_CODE) | program->n_addressable << 4);
}

static bool find_addressable(sc_program *program)
{
    bool ok = true;
    for (const ptx_variable *v = program->module->variables; v; v = v->next)
        for (const ptx_relocation *r = v->relocations; r; r = r->next)
            ok = ok && add_addressable(program, r->function);
    for (const ptx_function *f = program->module->functions; f; f = f->next)
        for (size_t i = 0; i < f->n_instrs; i++)
            for (unsigned k = 0; k < f->instrs[i].n_operands; k++)
                if (f->instrs[i].operands[k].kind == PTX_OPERAND_SYMBOL)
                    ok = ok && add_addressable(program, f->instrs[i].operands[k].function);
    return ok;
}

/* ---- variables ---- */

static bool is_placed(const ptx_variable *variable)
{
    return (variable->space == PTX_SPACE_GLOBAL || variable->space == PTX_SPACE_CONST) &&
           variable->bytes > 0 && variable->linkage != PTX_LINK_EXTERN;
}

static bool place_list(sc_program *program, const ptx_variable *list)
{
    for (const ptx_variable *v = list; v; v = v->next) {
        if (!is_placed(v))
            continue;
        uint64_t address = sc_memory_alloc(program->memory, v->bytes, v->alignment);
        if (!address || !sc__map_put(&program->addresses, &program->arena, (uintptr_t)v, address))
            return false;
        if (v->initial)
            memcpy((void *)(uintptr_t)address, v->initial, v->bytes);
        else
            memset((void *)(uintptr_t)address, 0, v->bytes);
        sc_check_filled(address, v->bytes);
    }
    return true;
}

static void relocate_list(sc_program *program, const ptx_variable *list)
{
    for (const ptx_variable *v = list; v; v = v->next) {
        if (!is_placed(v))
            continue;
        char *at = (char *)(uintptr_t)sc__variable_address(program, v);
        for (const ptx_relocation *r = v->relocations; r; r = r->next) {
            uint64_t value = r->variable ? sc__variable_address(program, r->variable)
                                         : sc__function_address(program, r->function);
            value += (uint64_t)r->addend;
            if (r->mask)
                value = (value & r->mask) >> __builtin_ctzll(r->mask);
            memcpy(at + r->offset, &value, r->bytes);
        }
    }
}

static bool place_variables(sc_program *program)
{
    bool ok = place_list(program, program->module->variables);
    for (const ptx_function *f = program->module->functions; f && ok; f = f->next)
        ok = place_list(program, f->variables);
    if (!ok)
        return false;
    relocate_list(program, program->module->variables);
    for (const ptx_function *f = program->module->functions; f; f = f->next)
        relocate_list(program, f->variables);
    return true;
}

/* ---- the program ---- */

static bool create_kernels(sc_program *program, ptx_problem *problem)
{
    program->kernels = calloc(program->module->n_entries + 1, sizeof *program->kernels);
    if (!program->kernels)
        return out_of_memory(problem, "host");
    for (const ptx_function *f = program->module->functions; f; f = f->next) {
        if (!f->is_entry || !f->has_body)
            continue;
        if (!sc__kernel_create(program, f, &program->kernels[program->n_kernels++], problem))
            return false;
    }
    return true;
}

bool sc_program_create(const ptx_module *module, sc_memory *memory, const sc_device_limits *limits,
                       sc_program **ret_program, ptx_problem *problem)
{
    sc_program *program = calloc(1, sizeof *program);
    if (!program)
        return out_of_memory(problem, "host");
    program->module = module;
    program->memory = memory;
    program->limits = *limits;
    bool ok = true;
    if (!find_addressable(program))
        ok = out_of_memory(problem, "host");
    else if (!place_variables(program))
        ok = out_of_memory(problem, "device");
    else
        ok = create_kernels(program, problem);
    if (!ok)
        sc_program_destroy(&program);
    else
        *ret_program = program;
    return ok;
}

void sc_program_destroy(sc_program **handle)
{
    sc_program *program = *handle;
    if (!program)
        return;
    for (size_t i = 0; i < program->n_kernels; i++)
        sc__kernel_free(&program->kernels[i]);
    free(program->kernels);
    for (size_t i = 0; i < program->addresses.capacity; i++) {
        const sc_map_entry *entry = &program->addresses.entries[i];
        if (entry->used && SC_WINDOW_OF(entry->value) == SC_WINDOW_GLOBAL)
            sc_memory_free(program->memory, entry->value);
    }
    free(program->addressable);
    kr__arena_free(&program->arena);
    free(program);
    *handle = NULL;
}

size_t sc_program_n_kernels(const sc_program *program)
{
    return program->n_kernels;
}

const sc_kernel_facts *sc_program_kernel(const sc_program *program, size_t index)
{
    return &program->kernels[index].facts;
}

int sc_program_find(const sc_program *program, const char *name)
{
    for (size_t i = 0; i < program->n_kernels; i++)
        if (strcmp(program->kernels[i].facts.name, name) == 0)
            return (int)i;
    return -1;
}

static bool visit_list(const sc_program *program, const ptx_variable *list,
                       bool (*visit)(uint64_t address, size_t bytes, void *user), void *user)
{
    bool go_on = true;
    for (const ptx_variable *v = list; v && go_on; v = v->next)
        go_on = !is_placed(v) || visit(sc__variable_address(program, v), v->bytes, user);
    return go_on;
}

bool sc_program_variables(const sc_program *program,
                          bool (*visit)(uint64_t address, size_t bytes, void *user), void *user)
{
    bool go_on = visit_list(program, program->module->variables, visit, user);
    for (const ptx_function *f = program->module->functions; f && go_on; f = f->next)
        go_on = visit_list(program, f->variables, visit, user);
    return go_on;
}

bool sc_program_global(const sc_program *program, const char *name, uint64_t *ret_address, size_t *ret_bytes)
{
    for (const ptx_variable *v = program->module->variables; v; v = v->next)
        if (is_placed(v) && strcmp(v->name, name) == 0) {
            *ret_address = sc__variable_address(program, v);
            *ret_bytes = v->bytes;
            return true;
        }
    return false;
}
