/* SPDX-License-Identifier: Apache-2.0 */
#include "softcuda/vm/machine.h"

#include <string.h>

void sc__thread_of(const sc_warp *warp, unsigned lane, unsigned ret_thread[3])
{
    for (unsigned i = 0; i < 3; i++)
        ret_thread[i] = warp->thread[i][lane];
}

/* The first fault of a launch is the one that is told; everyone stops. */
void sc__job_fault(sc_job *job, const sc_fault *fault)
{
    pthread_mutex_lock(&job->mutex);
    if (job->fault.kind == SC_FAULT_NONE)
        job->fault = *fault;
    pthread_mutex_unlock(&job->mutex);
    job->stop = true;
}

const sc_code *sc__fault(sc_warp *warp, const sc_code *in, sc_fault_kind kind, unsigned lane,
                         uint64_t address, const char *format, ...)
{
    sc_fault fault = {.kind = kind, .address = address, .line = in->line};
    memcpy(fault.block, warp->block->id, sizeof fault.block);
    sc__thread_of(warp, lane, fault.thread);
    kr__format(fault.kernel, sizeof fault.kernel, "%s", warp->kernel->facts.name);
    va_list args;
    va_start(args, format);
    kr__format_list(fault.text, sizeof fault.text, format, args);
    va_end(args);
    sc__job_fault(warp->block->job, &fault);
    warp->state = SC_WARP_FAULT;
    return NULL;
}
