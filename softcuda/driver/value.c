/* SPDX-License-Identifier: Apache-2.0 */
/* Streams that write words to memory, and that wait until a word has a value. */
#include "softcuda/driver/driver.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct value_work {
    sc_work work;
    unsigned n;
    CUstreamBatchMemOpParams ops[]; /* checked */
} value_work;

static uint64_t load(uint64_t address, size_t bytes)
{
    return bytes == 8 ? __atomic_load_n((uint64_t *)(uintptr_t)address, __ATOMIC_SEQ_CST)
                      : __atomic_load_n((uint32_t *)(uintptr_t)address, __ATOMIC_SEQ_CST);
}

static void store(uint64_t address, uint64_t value, size_t bytes)
{
    if (bytes == 8)
        __atomic_store_n((uint64_t *)(uintptr_t)address, value, __ATOMIC_SEQ_CST);
    else
        __atomic_store_n((uint32_t *)(uintptr_t)address, (uint32_t)value, __ATOMIC_SEQ_CST);
}

static bool is_met(uint64_t word, uint64_t value, unsigned flags, size_t bytes)
{
    switch (flags) {
    case CU_STREAM_WAIT_VALUE_EQ:
        return word == value;
    case CU_STREAM_WAIT_VALUE_AND:
        return (word & value) != 0;
    case CU_STREAM_WAIT_VALUE_NOR:
        return ~(word | value) << (64 - 8 * bytes) != 0;
    default: /* greater or equal, on a circle */
        return bytes == 8 ? (int64_t)(word - value) >= 0 : (int32_t)(word - value) >= 0;
    }
}

static void wait_for(const CUstreamBatchMemOpParams *op, size_t bytes)
{
    const struct timespec moment = {0, 20000};
    uint64_t value = bytes == 8 ? op->waitValue.value64 : (uint32_t)op->waitValue.value64;
    while (!is_met(load(op->waitValue.address, bytes), value, op->waitValue.flags, bytes) &&
           !atomic_load(&sc_lost))
        nanosleep(&moment, NULL);
}

/* Does the operation name memory, which devices do not know, or not any more? A graph's may run at any time.
 */
static bool is_gone(const CUstreamBatchMemOpParams *op)
{
    sc_allocation found;
    bool is_wait =
        op->operation == CU_STREAM_MEM_OP_WAIT_VALUE_32 || op->operation == CU_STREAM_MEM_OP_WAIT_VALUE_64;
    return op->operation != CU_STREAM_MEM_OP_BARRIER &&
           !sc_memory_find(is_wait ? op->waitValue.address : op->writeValue.address, &found);
}

static CUresult run_values(sc_work *work)
{
    const value_work *values = (const value_work *)work;
    for (unsigned i = 0; i < values->n; i++) {
        const CUstreamBatchMemOpParams *op = &values->ops[i];
        if (is_gone(op))
            return CUDA_ERROR_ILLEGAL_ADDRESS;
        switch (op->operation) {
        case CU_STREAM_MEM_OP_WAIT_VALUE_32:
            wait_for(op, 4);
            break;
        case CU_STREAM_MEM_OP_WAIT_VALUE_64:
            wait_for(op, 8);
            break;
        case CU_STREAM_MEM_OP_WRITE_VALUE_32:
            store(op->writeValue.address, op->writeValue.value64, 4);
            break;
        case CU_STREAM_MEM_OP_WRITE_VALUE_64:
            store(op->writeValue.address, op->writeValue.value64, 8);
            break;
        default: /* a barrier: every access above is one */
            break;
        }
    }
    return CUDA_SUCCESS;
}

/* ---- the checks ---- */

/* Inside memory that devices know; while capturing that is not asked. */
static CUresult check_address(uint64_t address, size_t bytes, bool capturing)
{
    sc_allocation found;
    if (!address || address % bytes)
        return CUDA_ERROR_INVALID_VALUE;
    return capturing || sc_memory_find(address, &found) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult check_op(const CUstreamBatchMemOpParams *op, bool capturing)
{
    size_t bytes = 4;
    switch (op->operation) {
    case CU_STREAM_MEM_OP_WAIT_VALUE_64:
        bytes = 8; /* fall through */
    case CU_STREAM_MEM_OP_WAIT_VALUE_32:
        TRY(check_address(op->waitValue.address, bytes, capturing));
        if (op->waitValue.flags & ~(unsigned)(CU_STREAM_WAIT_VALUE_NOR | CU_STREAM_WAIT_VALUE_FLUSH))
            return CUDA_ERROR_INVALID_VALUE;
        return op->waitValue.flags & CU_STREAM_WAIT_VALUE_FLUSH ? CUDA_ERROR_NOT_SUPPORTED : CUDA_SUCCESS;
    case CU_STREAM_MEM_OP_WRITE_VALUE_64:
        bytes = 8; /* fall through */
    case CU_STREAM_MEM_OP_WRITE_VALUE_32:
        TRY(check_address(op->writeValue.address, bytes, capturing));
        return op->writeValue.flags ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
    case CU_STREAM_MEM_OP_BARRIER:
        return op->memoryBarrier.flags > 1 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
    case CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES:
        return CUDA_ERROR_NOT_SUPPORTED;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

static CUresult submit(CUstream handle, unsigned n, const CUstreamBatchMemOpParams *ops)
{
    sc_stream *stream;
    TRY(sc_stream_enter(handle, &stream));
    bool is_captured = sc_stream_is_captured(stream);
    for (unsigned i = 0; i < n; i++)
        TRY(check_op(&ops[i], is_captured));
    value_work *work =
        sc_work_create(sizeof *work + n * sizeof *ops, CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, run_values, NULL);
    if (work) {
        work->n = n;
        if (n)
            memcpy(work->ops, ops, n * sizeof *ops);
    }
    return sc_stream_submit(stream, (sc_work *)work, false);
}

/* ---- the calls ---- */

#define VALUES(kind, field, operation_of, bits, type)                              \
    API_STREAM(cuStream##kind##Value##bits##_v2,                                   \
               (CUstream stream, CUdeviceptr address, type value, unsigned flags), \
               (stream, address, value, flags))                                    \
    {                                                                              \
        CUstreamBatchMemOpParams op = {0};                                         \
        op.field.operation = operation_of;                                         \
        op.field.address = address;                                                \
        op.field.value64 = value;                                                  \
        op.field.flags = flags;                                                    \
        return submit(stream, 1, &op);                                             \
    }

VALUES(Wait, waitValue, CU_STREAM_MEM_OP_WAIT_VALUE_32, 32, unsigned)
VALUES(Wait, waitValue, CU_STREAM_MEM_OP_WAIT_VALUE_64, 64, unsigned long long)
VALUES(Write, writeValue, CU_STREAM_MEM_OP_WRITE_VALUE_32, 32, unsigned)
VALUES(Write, writeValue, CU_STREAM_MEM_OP_WRITE_VALUE_64, 64, unsigned long long)

API_STREAM(cuStreamBatchMemOp_v2,
           (CUstream stream, unsigned n, CUstreamBatchMemOpParams *ops, unsigned flags),
           (stream, n, ops, flags))
{
    enum { MOST = 256 };
    if (flags || n > MOST || (n && !ops))
        return CUDA_ERROR_INVALID_VALUE;
    return submit(stream, n, ops);
}
