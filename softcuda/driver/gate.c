/* SPDX-License-Identifier: Apache-2.0 */
/* What every call passes on its way in and out (gate.S). */
#include "softcuda/driver/driver.h"

#include <stdlib.h>

/* Both in one register: 0, or the answer instead of the call; and what its end is to be told. */
typedef struct sc_pass {
    CUresult answer;
    unsigned epoch;
} sc_pass;

sc_pass sc_gate_enter(const sc_gate *gate);
void sc_gate_leave(unsigned epoch);

static atomic_bool is_over;

sc_pass sc_gate_enter(const sc_gate *gate)
{
    if (atomic_load_explicit(&is_over, memory_order_relaxed))
        return (sc_pass){.answer = CUDA_ERROR_DEINITIALIZED};
    CUresult answer = sc_answer_asked(&sc_symbols[gate - sc_gates]);
    if (answer)
        return (sc_pass){.answer = answer};
    return (sc_pass){.epoch = sc_call_begin()};
}

void sc_gate_leave(unsigned epoch)
{
    sc_call_end(epoch);
}

static void end(void)
{
    atomic_store(&is_over, true);
}

/* The real driver leaves a handler of its own for the end of the process when cuInit first succeeds: every
 * call after that handler is answered so, even one that is wrong, and no call is where cuInit was never
 * called (exit.tsv). */
bool sc_gates_close_at_end(void)
{
    return atexit(end) == 0;
}
