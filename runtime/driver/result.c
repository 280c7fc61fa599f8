/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/driver/driver.h"

#include <pthread.h>
#include <string.h>
#include <unistd.h>

#define CAPTURE_ADVICE "End the capture first (cuStreamEndCapture)."
#define CONTEXT_ADVICE                                                                                    \
    "Somebody ended it (cuCtxDestroy, cuDevicePrimaryCtxReset, cudaDeviceReset): let it live as long as " \
    "the "                                                                                                \
    "runtime, or destroy what was made from the runtime and create it again."

/* X(code, status, sticky, text). Codes without a row are KR_FOREIGN and speak by their name. */
#define ANSWERS(X)                                                                                           \
    X(INVALID_VALUE, FOREIGN, 0, "the driver finds an argument invalid")                                     \
    X(OUT_OF_MEMORY, OUT_OF_DEVICE_MEMORY, 0, "out of memory")                                               \
    X(NOT_INITIALIZED, FOREIGN, 0, "the driver is not initialised")                                          \
    X(DEINITIALIZED, FOREIGN, 0, "the driver has shut down already: the process is ending")                  \
    X(STUB_LIBRARY, NOT_ON_THIS_MACHINE, 0, "this libcuda is the toolkit's link stub, not a driver")         \
    X(CALL_REQUIRES_NEWER_DRIVER, NOT_ON_THIS_MACHINE, 0, "the call needs a newer driver")                   \
    X(DEVICE_UNAVAILABLE, NOT_ON_THIS_DEVICE, 0, "the device is busy or not available")                      \
    X(NO_DEVICE, NOT_ON_THIS_MACHINE, 0, "there is no CUDA device")                                          \
    X(INVALID_DEVICE, INVALID_ARGUMENT, 0, "there is no such device")                                        \
    X(DEVICE_NOT_LICENSED, NOT_ON_THIS_DEVICE, 0, "the device's licence does not allow compute")             \
    X(INVALID_IMAGE, CORRUPT, 0, "the driver cannot read the image")                                         \
    X(INVALID_CONTEXT, INVALID_ARGUMENT, 0, "the context that the library works in is gone")                 \
    X(NO_BINARY_FOR_GPU, NOT_ON_THIS_DEVICE, 0, "the image holds no code for this device")                   \
    X(ECC_UNCORRECTABLE, PROCESS_LOST, 1, "an uncorrectable memory (ECC) error")                             \
    X(PEER_ACCESS_UNSUPPORTED, NOT_ON_THIS_DEVICE, 0, "these devices cannot reach each other's memory")      \
    X(INVALID_PTX, COMPILE_FAILED, 0, "the driver refuses the PTX")                                          \
    X(NVLINK_UNCORRECTABLE, PROCESS_LOST, 1, "an uncorrectable NVLink error")                                \
    X(JIT_COMPILER_NOT_FOUND, NOT_ON_THIS_MACHINE, 0, "the driver's PTX compiler library is missing")        \
    X(UNSUPPORTED_PTX_VERSION, NOT_ON_THIS_DEVICE, 0, "the PTX is newer than the driver")                    \
    X(JIT_COMPILATION_DISABLED, NOT_ON_THIS_MACHINE, 0, "compiling PTX is disabled (CUDA_DISABLE_PTX_JIT)")  \
    X(CONTAINED, PROCESS_LOST, 1, "a contained hardware error")                                              \
    X(INVALID_SOURCE, COMPILE_FAILED, 0, "the device code does not compile or link")                         \
    X(FILE_NOT_FOUND, NOT_FOUND, 0, "a file was not found")                                                  \
    X(INVALID_HANDLE, INVALID_ARGUMENT, 0, "a handle is not valid in this context")                          \
    X(NOT_FOUND, NOT_FOUND, 0, "the name was not found")                                                     \
    X(NOT_READY, INVALID_ARGUMENT, 0, "the work has not completed yet")                                      \
    X(ILLEGAL_ADDRESS, PROCESS_LOST, 1, "a kernel read or wrote an address that is not its own")             \
    X(LAUNCH_OUT_OF_RESOURCES, LAUNCH_FAILED, 0, "the launch needs more registers or memory than there are") \
    X(LAUNCH_TIMEOUT, PROCESS_LOST, 1, "a kernel ran longer than the display watchdog allows")               \
    X(LAUNCH_INCOMPATIBLE_TEXTURING, LAUNCH_FAILED, 0, "the launch's texturing mode does not fit")           \
    X(PEER_ACCESS_ALREADY_ENABLED, INVALID_ARGUMENT, 0, "peer access is enabled already")                    \
    X(PEER_ACCESS_NOT_ENABLED, INVALID_ARGUMENT, 0, "peer access is not enabled")                            \
    X(CONTEXT_IS_DESTROYED, INVALID_ARGUMENT, 0, "the context that the library works in is gone")            \
    X(ASSERT, PROCESS_LOST, 1, "an assert in a kernel failed")                                               \
    X(HARDWARE_STACK_ERROR, PROCESS_LOST, 1, "a kernel's call stack is corrupt or too small")                \
    X(ILLEGAL_INSTRUCTION, PROCESS_LOST, 1, "a kernel met an illegal instruction")                           \
    X(MISALIGNED_ADDRESS, PROCESS_LOST, 1, "a kernel used a misaligned address")                             \
    X(INVALID_ADDRESS_SPACE, PROCESS_LOST, 1, "a kernel used an address of the wrong memory space")          \
    X(INVALID_PC, PROCESS_LOST, 1, "a kernel jumped to an invalid address")                                  \
    X(LAUNCH_FAILED, PROCESS_LOST, 1, "a kernel trapped")                                                    \
    X(COOPERATIVE_LAUNCH_TOO_LARGE, LAUNCH_FAILED, 0, "more blocks than can be resident at once")            \
    X(TENSOR_MEMORY_LEAK, PROCESS_LOST, 1, "a kernel ended without freeing its tensor memory")               \
    X(NOT_PERMITTED, NOT_ON_THIS_MACHINE, 0, "the operation is not permitted")                               \
    X(NOT_SUPPORTED, NOT_ON_THIS_DEVICE, 0, "the device or driver does not support it")                      \
    X(SYSTEM_NOT_READY, NOT_ON_THIS_MACHINE, 0, "the system is not ready for CUDA")                          \
    X(SYSTEM_DRIVER_MISMATCH, NOT_ON_THIS_MACHINE, 0, "libcuda and the kernel driver do not match")          \
    X(COMPAT_NOT_SUPPORTED_ON_DEVICE, NOT_ON_THIS_MACHINE, 0,                                                \
      "no device here allows CUDA forward compatibility")                                                    \
    X(MPS_CONNECTION_FAILED, NOT_ON_THIS_MACHINE, 0, "the MPS server cannot be reached")                     \
    X(MPS_SERVER_NOT_READY, NOT_ON_THIS_MACHINE, 0, "the MPS server is not ready")                           \
    X(MPS_MAX_CLIENTS_REACHED, NOT_ON_THIS_MACHINE, 0, "the MPS server has no room for another client")      \
    X(STREAM_CAPTURE_UNSUPPORTED, INVALID_ARGUMENT, 0, "not allowed while a stream is capturing")            \
    X(STREAM_CAPTURE_INVALIDATED, INVALID_ARGUMENT, 0, "the stream's capture was invalidated")               \
    X(STREAM_CAPTURE_IMPLICIT, INVALID_ARGUMENT, 0, "the default stream would join a capture")               \
    X(CAPTURED_EVENT, INVALID_ARGUMENT, 0, "the event belongs to a capture")

/* What there is to do where the status does not tell it. */
static const struct {
    CUresult result;
    const char *advice;
} advices[] = {
    {CUDA_ERROR_DEVICE_UNAVAILABLE, "See with nvidia-smi who holds the device, or use another."},
    {CUDA_ERROR_INVALID_CONTEXT, CONTEXT_ADVICE},
    {CUDA_ERROR_CONTEXT_IS_DESTROYED, CONTEXT_ADVICE},
    {CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES,
     "Use a smaller block, or compile the kernel with __launch_bounds__ of its size."},
    {CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE, "Use a smaller grid."},
    {CUDA_ERROR_SYSTEM_DRIVER_MISMATCH,
     "Load the kernel module of libcuda's version: reboot after an update."},
    {CUDA_ERROR_MPS_CONNECTION_FAILED, "Start the MPS server again, or unset CUDA_MPS_PIPE_DIRECTORY."},
    {CUDA_ERROR_MPS_SERVER_NOT_READY, "Try again in a moment: the MPS server is starting or stopping."},
    {CUDA_ERROR_MPS_MAX_CLIENTS_REACHED, "End another client of the MPS server."},
    {CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, CAPTURE_ADVICE},
    {CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, CAPTURE_ADVICE},
    {CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, "Use a stream that does not block on the default stream."},
    {CUDA_ERROR_CAPTURED_EVENT, "Record the event again, outside the capture."},
};

typedef struct answer {
    CUresult result;
    kr_status status;
    bool sticky;
    const char *text;
} answer;

static const answer answers[] = {
#define ROW(code, status, sticky, text) {CUDA_ERROR_##code, KR_##status, sticky, text},
    ANSWERS(ROW)
#undef ROW
};

static const answer *answer_of(CUresult result)
{
    for (size_t i = 0; i < KR_COUNT(answers); i++)
        if (answers[i].result == result)
            return &answers[i];
    return NULL;
}

const char *kr__result_name(CUresult result, char text[KR_RESULT_TEXT_BYTES])
{
    switch ((int)result) {
#define NAME_CASE(name, number) \
    case number:                \
        return #name;
        CU_RESULT_LIST(NAME_CASE)
#undef NAME_CASE
    }
    kr__format(text, KR_RESULT_TEXT_BYTES, "unknown CUresult %d", (int)result);
    return text;
}

kr_status kr__result_status(CUresult result, const char *function)
{
    /* The library has checked its arguments, but addresses are the caller's, and nobody but the driver knows
     * them. */
    const bool takes_addresses =
        strncmp(function, "cuMemcpy", 8) == 0 || strncmp(function, "cuMemset", 8) == 0;
    if (result == CUDA_ERROR_INVALID_VALUE && takes_addresses)
        return KR_INVALID_ARGUMENT;
    const answer *a = answer_of(result);
    return result == CUDA_SUCCESS ? KR_OK : a ? a->status : KR_FOREIGN;
}

static void advise(kr_error *err, CUresult result)
{
    for (size_t i = 0; i < KR_COUNT(advices); i++)
        if (advices[i].result == result)
            kr__error_advice(err, "%s", advices[i].advice);
}

static void record_fault(kr__fault *fault, CUresult result, const char *function, int device,
                         const char *kernel)
{
    int none = 0;
    if (!atomic_compare_exchange_strong(&fault->state, &none, 1))
        return;
    fault->result = result;
    fault->function = function;
    fault->device = device;
    kr__format(fault->kernel, sizeof fault->kernel, "%s", kernel ? kernel : "");
    atomic_store(&fault->state, 2);
}

/* The first cause, for the call that noticed it and for every later one. */
static kr_status fail_lost(kr_error *err, kr__driver *driver, const char *file, int line)
{
    while (atomic_load(&driver->fault.state) == 1)
        ; /* another thread is writing the few words of it */
    const kr__fault *fault = &driver->fault;
    char text[KR_RESULT_TEXT_BYTES];
    const char *name = kr__result_name(fault->result, text);
    kr__fail(err, KR_PROCESS_LOST, file, line, "%s, noticed by %s%s%s; CUDA is lost for this process",
             answer_of(fault->result)->text, fault->function,
             fault->kernel[0] ? "; the kernel launched last was " : "", fault->kernel);
    kr__error_code(err, KR_API_CUDA, (int)fault->result, name, fault->function);
    kr__error_device(err, fault->device);
    kr__error_advice(
        err, "End the process: the driver refuses every call on every device until then. "
             "compute-sanitizer shows the faulting line; work that may fault belongs into a child process.");
    return KR_PROCESS_LOST;
}

kr_status kr__cuda_fail(kr_error *err, kr__driver *driver, CUresult result, const char *function, int device,
                        const char *kernel, const char *file, int line, const char *format, ...)
{
    const answer *a = answer_of(result);
    if (a && a->sticky)
        record_fault(&driver->fault, result, function, device, kernel);
    if (atomic_load(&driver->fault.state) != 0)
        return fail_lost(err, driver, file, line);
    char what[512], text[KR_RESULT_TEXT_BYTES];
    va_list args;
    va_start(args, format);
    kr__format_list(what, sizeof what, format, args);
    va_end(args);
    const char *name = kr__result_name(result, text);
    const kr_status status = kr__result_status(result, function);
    if (a)
        kr__fail(err, status, file, line, "%s: %s (%s)", what, a->text, name);
    else
        kr__fail(err, status, file, line, "%s: the driver answers %s (%d)", what, name, (int)result);
    kr__error_code(err, KR_API_CUDA, (int)result, name, function);
    kr__error_device(err, device);
    advise(err, result);
    return status;
}

static _Atomic unsigned forks; /* between the first process and this one */
static pthread_once_t forks_once = PTHREAD_ONCE_INIT;

static void count_fork(void)
{
    forks++;
}

static void watch_forks(void)
{
    pthread_atfork(NULL, NULL, count_fork);
}

void kr__driver_stamp(kr__driver *driver)
{
    pthread_once(&forks_once, watch_forks);
    driver->forks = forks;
    driver->pid = getpid();
}

bool kr__driver_forked(const kr__driver *driver)
{
    return driver->forks != atomic_load_explicit(&forks, memory_order_relaxed);
}

kr_status kr__driver_alive(kr__driver *driver, kr_error *err)
{
    if (atomic_load_explicit(&driver->fault.state, memory_order_acquire) != 0)
        return fail_lost(err, driver, __FILE__, __LINE__);
    if (kr__driver_forked(driver)) {
        KR_FAIL(err, KR_INVALID_ARGUMENT,
                "CUDA was initialised by process %d before it forked this one (%d); it does not work in the "
                "child",
                (int)driver->pid, (int)getpid());
        kr__error_advice(
            err, "Start the child with exec or posix_spawn, or create the runtime after the fork only.");
        return KR_INVALID_ARGUMENT;
    }
    return KR_OK;
}

/* PTX ISA and the CUDA version whose driver first took it (NVIDIA's release history), newest first. */
static const struct {
    int isa, version;
} isas[] = {
    {93, 13030}, {92, 13020}, {91, 13010}, {90, 13000}, {88, 12090}, {87, 12080}, {86, 12070},
    {85, 12050}, {84, 12040}, {83, 12030}, {82, 12020}, {81, 12010}, {80, 12000}, {78, 11080},
    {77, 11070}, {76, 11060}, {75, 11050}, {74, 11040}, {73, 11030}, {72, 11020}, {71, 11010},
    {70, 11000}, {65, 10020}, {64, 10010}, {63, 10000}, {62, 9020},  {61, 9010},  {60, 9000},
};

int kr__driver_isa(int driver_version)
{
    for (size_t i = 0; i < KR_COUNT(isas); i++)
        if (isas[i].version <= driver_version)
            return isas[i].isa;
    return isas[KR_COUNT(isas) - 1].isa;
}

int kr__isa_driver(int isa)
{
    int version = 0;
    for (size_t i = 0; i < KR_COUNT(isas) && isas[i].isa >= isa; i++)
        version = isas[i].version;
    return version;
}

int kr__toolkit_driver(int toolkit)
{
    return toolkit >= 11000 ? toolkit / 1000 * 1000 : toolkit;
}
