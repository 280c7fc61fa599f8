/* SPDX-License-Identifier: Apache-2.0 */
#include "softcuda/vm/decode.h"
#include "softcuda/vm/check.h"

#include <stdlib.h>
#include <string.h>

/*
 * From a kernel's PTX to sc_code: the entry and everything it may call, once a kernel, since places of shared
 * variables differ from kernel to kernel. One PTX instruction becomes one sc_code, with helpers before it for
 * operands that are no plain register (a special register, a local variable's address) and after it for
 * results wider than the operation.
 */

/* ---- one function ---- */

static bool falls_through(const ptx_function *function, const sc_block_info *block)
{
    const ptx_instr *last = &function->instrs[block->end - 1];
    return last->guard || !sc__ends_block(last);
}

static void emit_blocks(sc_decoder *decoder)
{
    const ptx_function *function = decoder->function;
    const sc_layout *layout = &decoder->layout;
    bool falls = false;
    for (uint32_t i = 0; i < layout->n_order && !decoder->failed; i++) {
        uint32_t index = layout->order[i];
        const sc_block_info *block = &layout->blocks[index];
        decoder->instr = &function->instrs[block->first];
        if (falls && block->n_predecessors > 1)
            sc__emit_bare(decoder, sc__run_join, sc__run_join);
        decoder->block_at[index] = decoder->n_code;
        for (uint32_t k = block->first; k < block->end && !decoder->failed; k++)
            sc__decode_instr(decoder, &function->instrs[k]);
        uint32_t next = index + 1 < layout->n_blocks ? index + 1 : UINT32_MAX;
        falls = falls_through(function, block);
        if (falls && (i + 1 == layout->n_order || layout->order[i + 1] != next)) {
            sc__emit_jump(decoder, next);
            falls = false;
        }
    }
    decoder->instr = function->n_instrs ? &function->instrs[function->n_instrs - 1] : NULL;
    decoder->block_at[layout->n_blocks] = decoder->n_code;
    sc__emit_bare(decoder, sc__run_return, sc__run_return);
    sc__emit_bare(decoder, sc__run_return, sc__run_return); /* never reached: what comes after the last */
}

static void apply_fixups(sc_decoder *decoder)
{
    for (size_t i = 0; i < decoder->n_code; i++) {
        sc_code *code = &decoder->code[i];
        if (code->handler[0] == sc__run_branch && code->imm)
            code->more = code + code->imm;
    }
    for (size_t i = 0; i < decoder->n_fixups; i++) {
        const sc_fixup *fixup = &decoder->fixups[i];
        uint32_t block = fixup->block == UINT32_MAX ? decoder->layout.n_blocks : fixup->block;
        const sc_code *to = &decoder->code[decoder->block_at[block]];
        if (fixup->where)
            *fixup->where = to;
        else
            decoder->code[fixup->code].more = to;
    }
}

static uint32_t align_up(uint32_t value, uint32_t to)
{
    return to > 1 ? (value + to - 1) / to * to : value;
}

/* The assembler holds static shared memory to a limit. Local memory it does not, but a thread has no more on
 * any device (CUDA programming guide, technical specifications). */
enum { SC_MOST_SHARED_BYTES = 48 << 10, SC_MOST_LOCAL_BYTES = 512 << 10 };

static void refuse_too_much(sc_decoder *decoder, ptx_problem_kind kind, const char *space, uint64_t bytes,
                            unsigned most)
{
    if (decoder->failed)
        return;
    const ptx_function *entry = decoder->kernel->functions[0]->ptx;
    decoder->problem->kind = kind;
    decoder->problem->line = entry->line;
    decoder->problem->n_errors++;
    kr__text_add(&decoder->problem->log,
                 "ptxas error   : Entry function '%s' uses too much %s data (0x%llx bytes, 0x%x max)\n",
                 entry->name, space, (unsigned long long)bytes, most);
    decoder->failed = true;
}

static uint32_t place_local(sc_decoder *decoder, uint32_t at, const ptx_variable *variable)
{
    at = align_up(at, variable->alignment);
    const uint64_t end = at + (uint64_t)variable->bytes;
    if (end > SC_MOST_LOCAL_BYTES) {
        refuse_too_much(decoder, PTX_PROBLEM_UNSUPPORTED, "local", end, SC_MOST_LOCAL_BYTES);
        return at;
    }
    if (!sc__map_put(&decoder->locals, decoder->arena, (uintptr_t)variable, at))
        sc__out_of_memory(decoder);
    return (uint32_t)end;
}

static void refuse_registers(sc_decoder *decoder, const ptx_function *function, const ptx_variable *parameter)
{
    decoder->problem->kind = PTX_PROBLEM_UNSUPPORTED;
    decoder->problem->line = parameter->line;
    decoder->problem->n_errors++;
    kr__text_add(
        &decoder->problem->log,
        "ptxas application ptx input, line %u; error   : softcuda cannot execute '%s': its parameter '%s' "
        "is in a register\n",
        parameter->line, function->name, parameter->name);
    decoder->failed = true;
}

/* Formal parameters of a function and its local and .param variables. */
static void place_locals(sc_decoder *decoder, sc_function *function)
{
    const ptx_function *ptx = function->ptx;
    uint32_t at = 0;
    decoder->locals = (sc_map){0};
    if (!ptx->is_entry) {
        function->param_offset = kr__arena_alloc(decoder->arena, (ptx->n_params + 1) * sizeof(uint32_t));
        function->return_offset = kr__arena_alloc(decoder->arena, (ptx->n_returns + 1) * sizeof(uint32_t));
        if (!function->param_offset || !function->return_offset) {
            sc__out_of_memory(decoder);
            return;
        }
        for (size_t i = 0; i < ptx->n_params + ptx->n_returns; i++) {
            const ptx_variable *v = i < ptx->n_params ? ptx->params[i] : ptx->returns[i - ptx->n_params];
            if (v->space == PTX_SPACE_REG)
                refuse_registers(decoder, ptx, v);
        }
        for (size_t i = 0; i < ptx->n_params; i++) {
            at = place_local(decoder, at, ptx->params[i]);
            function->param_offset[i] = at - (uint32_t)ptx->params[i]->bytes;
        }
        for (size_t i = 0; i < ptx->n_returns; i++) {
            at = place_local(decoder, at, ptx->returns[i]);
            function->return_offset[i] = at - (uint32_t)ptx->returns[i]->bytes;
        }
    }
    for (const ptx_variable *v = ptx->variables; v; v = v->next)
        if (v->space == PTX_SPACE_LOCAL || v->space == PTX_SPACE_PARAM)
            at = place_local(decoder, at, v);
    function->local_bytes = align_up(at, 16);
}

static void decode_function(sc_decoder *decoder, sc_function *function)
{
    decoder->function = function->ptx;
    decoder->instr = NULL;
    decoder->n_code = decoder->n_fixups = 0;
    if (!sc__layout_create(function->ptx, &decoder->layout)) {
        sc__out_of_memory(decoder);
        return;
    }
    decoder->doubles_at = (decoder->layout.n_words + SC_TEMPORARIES) * SC_WORD_BYTES;
    decoder->quads_at = decoder->doubles_at + (decoder->layout.n_doubles + SC_TEMPORARIES) * SC_DOUBLE_BYTES;
    decoder->predicates_at = decoder->quads_at + decoder->layout.n_quads * SC_QUAD_BYTES;
    function->frame_bytes =
        align_up(decoder->predicates_at + (decoder->layout.n_predicates + SC_TEMPORARIES) * 4, 64);
    function->pressure = decoder->layout.pressure;
    decoder->block_at = calloc(decoder->layout.n_blocks + 1, sizeof *decoder->block_at);
    if (!decoder->block_at)
        sc__out_of_memory(decoder);
    if (!decoder->failed)
        emit_blocks(decoder);
    if (!decoder->failed) {
        apply_fixups(decoder);
        sc__check_code(decoder->code, decoder->n_code);
        function->code = decoder->code;
        function->n_code = decoder->n_code;
        decoder->code = NULL;
        decoder->code_capacity = 0;
    }
    free(decoder->block_at);
    sc__layout_free(&decoder->layout);
}

/* ---- the kernel's closure ---- */

sc_function *sc__function_of(const sc_decoder *decoder, const ptx_function *function)
{
    function = kr__ptx_called(function);
    for (size_t i = 0; i < decoder->kernel->n_functions; i++)
        if (decoder->kernel->functions[i]->ptx == function)
            return decoder->kernel->functions[i];
    return NULL;
}

static void add_function(sc_decoder *decoder, const ptx_function *ptx)
{
    sc_kernel *kernel = decoder->kernel;
    ptx = kr__ptx_called(ptx);
    if (!ptx->has_body || sc__function_of(decoder, ptx))
        return;
    sc_function *function = kr__arena_alloc(decoder->arena, sizeof *function);
    if (!function) {
        sc__out_of_memory(decoder);
        return;
    }
    function->ptx = ptx;
    function->address = sc__function_address(decoder->program, ptx);
    if (sc__grow(decoder, &kernel->functions, kernel->n_functions, &decoder->functions_capacity,
                 sizeof *kernel->functions))
        kernel->functions[kernel->n_functions++] = function;
}

static void place_shared(sc_decoder *decoder, const ptx_variable *variable)
{
    uint64_t at;
    sc_kernel *kernel = decoder->kernel;
    if (variable->space != PTX_SPACE_SHARED || sc__map_get(&decoder->shared, (uintptr_t)variable, &at))
        return;
    kernel->shared_bytes = align_up(kernel->shared_bytes, variable->alignment);
    if (!sc__map_put(&decoder->shared, decoder->arena, (uintptr_t)variable, kernel->shared_bytes))
        sc__out_of_memory(decoder);
    kernel->shared_bytes += (uint32_t)variable->bytes;
}

/* Shared variables an operand names: those with a size first; the unsized ones all begin where they end. */
static void place_shared_operand(sc_decoder *decoder, const ptx_operand *operand, bool sized)
{
    if (operand->variable && (operand->variable->bytes != 0) == sized)
        place_shared(decoder, operand->variable);
    for (unsigned i = 0; operand->kind == PTX_OPERAND_VECTOR && i < operand->n_elements; i++)
        place_shared_operand(decoder, &operand->elements[i], sized);
}

static void collect(sc_decoder *decoder, const ptx_function *entry)
{
    add_function(decoder, entry);
    for (size_t i = 0; i < decoder->kernel->n_functions; i++) {
        const ptx_function *function = decoder->kernel->functions[i]->ptx;
        for (size_t k = 0; k < function->n_instrs; k++) {
            const ptx_instr *instr = &function->instrs[k];
            if (instr->op != PTX_OP_CALL)
                continue;
            if (instr->callee)
                add_function(decoder, instr->callee);
            else
                for (size_t a = 0; a < decoder->program->n_addressable; a++)
                    add_function(decoder, decoder->program->addressable[a]);
        }
    }
    for (int sized = 1; sized >= 0; sized--)
        for (size_t i = 0; i < decoder->kernel->n_functions; i++) {
            const ptx_function *function = decoder->kernel->functions[i]->ptx;
            for (size_t k = 0; k < function->n_instrs; k++)
                for (unsigned o = 0; o < function->instrs[k].n_operands; o++)
                    place_shared_operand(decoder, &function->instrs[k].operands[o], sized);
        }
}

/* Local bytes of the deepest chain of calls from a function. false: a cycle, or a call through a pointer, so
 * that it has no bound; or more than a thread has. */
static bool find_chain(const sc_decoder *decoder, sc_function *function)
{
    enum { SC_CHAIN_OPEN = 1, SC_CHAIN_KNOWN };
    if (function->chain_state != 0)
        return function->chain_state == SC_CHAIN_KNOWN;
    function->chain_state = SC_CHAIN_OPEN;
    uint32_t most = 0;
    for (size_t k = 0; k < function->ptx->n_instrs; k++) {
        const ptx_instr *instr = &function->ptx->instrs[k];
        if (instr->op != PTX_OP_CALL || (instr->callee && !kr__ptx_called(instr->callee)->has_body))
            continue;
        sc_function *callee = instr->callee ? sc__function_of(decoder, instr->callee) : NULL;
        if (!callee || !find_chain(decoder, callee))
            return false;
        most = callee->chain_bytes > most ? callee->chain_bytes : most;
    }
    function->chain_bytes = align_up(function->local_bytes, 16) + most;
    if (function->chain_bytes > SC_MOST_LOCAL_BYTES)
        return false;
    function->chain_state = SC_CHAIN_KNOWN;
    return true;
}

static bool allocates(const sc_kernel *kernel)
{
    for (size_t i = 0; i < kernel->n_functions; i++)
        for (size_t k = 0; k < kernel->functions[i]->ptx->n_instrs; k++)
            if (kernel->functions[i]->ptx->instrs[k].op == PTX_OP_ALLOCA)
                return true;
    return false;
}

/* ---- facts ---- */

enum { MOST_THREADS = 1024 };

/* The largest block that the kernel's directives allow; 0: they say nothing. */
static unsigned bound_of(const ptx_function *entry)
{
    const unsigned *most = entry->reqntid[0] ? entry->reqntid : entry->maxntid;
    uint64_t bound = (uint64_t)most[0] * (most[1] ? most[1] : 1) * (most[2] ? most[2] : 1);
    return bound < MOST_THREADS ? (unsigned)bound : MOST_THREADS;
}

/* ptxas keeps to as many as let the blocks run that the directives name (one, if a multiprocessor cannot hold
 * so many): each of its four parts has a fourth of the warps and of the registers, and gives a warp 256 at a
 * time. */
static unsigned most_registers(const ptx_function *entry, const sc_device_limits *limits)
{
    unsigned most = entry->maxnreg ? entry->maxnreg : 255, bound = bound_of(entry);
    uint64_t threads = (uint64_t)bound * entry->minnctapersm;
    if (threads < bound || threads > (uint64_t)limits->max_threads_per_multiprocessor)
        threads = bound;
    if (threads == 0 || limits->registers_per_multiprocessor == 0)
        return most;
    unsigned fit =
        (unsigned)limits->registers_per_multiprocessor / align_up((uint32_t)threads, 4 * SC_LANES) / 8 * 8;
    return fit < most ? fit : most;
}

static int estimate_registers(const sc_decoder *decoder, const ptx_function *entry)
{
    const sc_kernel *kernel = decoder->kernel;
    uint32_t most = 0;
    for (size_t i = 0; i < kernel->n_functions; i++)
        if (kernel->functions[i]->pressure > most)
            most = kernel->functions[i]->pressure;
    unsigned maximum = most_registers(entry, &decoder->program->limits);
    uint32_t registers = align_up(most + 2, 2);
    uint32_t least = kernel->n_functions > 1 ? 24 : 16; /* the calling convention takes more */
    registers = registers < least ? least : registers;
    return (int)(registers < maximum ? registers : maximum);
}

static void fill_facts(sc_decoder *decoder, const ptx_function *entry)
{
    sc_kernel *kernel = decoder->kernel;
    sc_kernel_facts *facts = &kernel->facts;
    const unsigned bound = bound_of(entry);
    facts->name = entry->name;
    facts->registers = estimate_registers(decoder, entry);
    facts->static_shared_bytes = kernel->shared_bytes;
    facts->local_bytes = 0;
    for (const ptx_variable *v = entry->variables; v; v = v->next)
        if (v->space == PTX_SPACE_LOCAL)
            facts->local_bytes += v->bytes;
    for (const ptx_variable *v = decoder->program->module->variables; v; v = v->next)
        if (v->space == PTX_SPACE_CONST)
            facts->const_bytes += v->bytes;
    facts->max_threads = bound ? (int)bound : MOST_THREADS;
    memcpy(facts->reqntid, entry->reqntid, sizeof facts->reqntid);
    facts->n_params = entry->n_params;
    facts->function = entry;
    facts->param_bytes = entry->param_bytes;
}

bool sc__kernel_create(sc_program *program, const ptx_function *entry, sc_kernel *kernel,
                       ptx_problem *problem)
{
    sc_decoder decoder = {.program = program,
                          .kernel = kernel,
                          .problem = problem,
                          .arena = &program->arena,
                          .function = entry};
    const sc_device_limits *limits = &program->limits;
    kernel->device = limits->ordinal;
    kernel->files = program->module->files;
    kernel->multiprocessors = limits->multiprocessors > 0 ? limits->multiprocessors : 1;
    kernel->max_warps = limits->max_threads_per_multiprocessor / SC_LANES;
    kernel->clock_khz = limits->clock_khz > 0 ? limits->clock_khz : 1000000;
    collect(&decoder, entry);
    if (!decoder.failed && kernel->shared_bytes > SC_MOST_SHARED_BYTES)
        refuse_too_much(&decoder, PTX_PROBLEM_SYNTAX, "shared", kernel->shared_bytes, SC_MOST_SHARED_BYTES);
    for (size_t i = 0; i < kernel->n_functions && !decoder.failed; i++) {
        decoder.function = kernel->functions[i]->ptx;
        place_locals(&decoder, kernel->functions[i]);
        decode_function(&decoder, kernel->functions[i]);
    }
    if (!decoder.failed) {
        sc_function *root = kernel->functions[0];
        const bool is_known = find_chain(&decoder, root);
        kernel->stack_bytes = align_up(is_known ? root->chain_bytes : root->local_bytes, 16);
        kernel->stack_is_open = !is_known || allocates(kernel);
        fill_facts(&decoder, entry);
    }
    free(decoder.code);
    free(decoder.fixups);
    return !decoder.failed;
}

void sc__kernel_free(sc_kernel *kernel)
{
    for (size_t i = 0; i < kernel->n_functions; i++)
        free(kernel->functions[i]->code);
    free(kernel->functions);
    free(kernel->constants);
}
