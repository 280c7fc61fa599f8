/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KR_DRIVER_H
#define KR_DRIVER_H

/* The driver table: libcuda, opened at run time, one function pointer a row of driver.def. Knows no devices.
 */

#include <stdatomic.h>
#include <sys/types.h>

#include <kregistry/runtime.h>

#include "abi/cuda.h"
#include "runtime/base/base.h"

/* The first sticky fault of a driver: it has ended CUDA for the process (the driver answers every later call
 * on every device with it), so it is written once and then told by every later call. */
typedef struct kr__fault {
    atomic_int state; /* 0: none, 1: being written, 2: there to read */
    CUresult result;
    const char *function; /* that noticed it */
    int device;           /* ordinal, or -1 */
    char kernel[192];     /* the kernel given to the device last, or empty: the first to suspect */
} kr__fault;

/* One a loaded libcuda, for as long as the process lives: the library is never closed, because code of it may
 * run in other threads and at exit. */
typedef struct kr__driver {
#define KR_DRIVER_ROW(need, name, params) CUresult(*name) params;
#include "runtime/driver/driver.def"
#undef KR_DRIVER_ROW
    const char *path; /* as the dynamic linker knows it */
    const char *kind; /* "nvidia" or "softcuda" */
    int version;      /* 13000 for CUDA 13.0 */
    int n_devices;
    pid_t pid;      /* that initialised it, for messages */
    unsigned forks; /* of the process line then: CUDA does not survive fork() */
    kr__fault fault;
    void *handle;
    struct kr__driver *next;
} kr__driver;

/* Where the runtime's log goes. Zero-initialised: nowhere. */
typedef struct kr__log {
    kr_log_fn fn;
    void *user;
} kr__log;
void kr__log_text(const kr__log *log, kr_log_level level, const char *format, ...) KR_PRINTF(3, 4);

/* Opens and initialises a driver. path NULL: a libcuda that the process has already mapped, then where
 * drivers live; else that file alone. Opening the same library again gives the same kr__driver. */
kr_status kr__driver_open(const char *path, const kr__log *log, kr__driver **ret_driver, kr_error *err);

/* Where a libcuda.so.1 may be besides the linker's own search: NULL-terminated. And the folder of device
 * nodes, which advice looks at. Variables for the tests' sake. */
extern const char *const *kr__driver_folders;
extern const char *kr__driver_dev;

/* ---- answers (result.c) ---- */

/* "CUDA_ERROR_INVALID_VALUE", or "unknown CUresult 12345" written into text. */
#define KR_RESULT_TEXT_BYTES 40
const char *kr__result_name(CUresult result, char text[KR_RESULT_TEXT_BYTES]);

/* What that function's CUresult means for whoever must act on it. */
kr_status kr__result_status(CUresult result, const char *function);

/* Fills err from a driver's answer: "WHAT: text of the answer", its code and name. A sticky answer is
 * recorded as the driver's fault and becomes KR_PROCESS_LOST with the first cause. device: ordinal, or -1.
 * kernel: the one to suspect, or NULL. function: a static string. */
#define KR_CUDA_FAIL(err, driver, result, function, device, kernel, ...) \
    kr__cuda_fail((err), (driver), (result), (function), (device), (kernel), __FILE__, __LINE__, __VA_ARGS__)
kr_status kr__cuda_fail(kr_error *err, kr__driver *driver, CUresult result, const char *function, int device,
                        const char *kernel, const char *file, int line, const char *format, ...)
    KR_PRINTF(9, 10);

/* Notes a driver as opened by this process. */
void kr__driver_stamp(kr__driver *driver);

/* KR_OK, or why the driver can take no call of this process any more: a sticky fault, or a fork. */
kr_status kr__driver_alive(kr__driver *driver, kr_error *err);

/* Has the process been forked off the one that initialised the driver? No call may reach the driver then.
 * Costs a load. */
bool kr__driver_forked(const kr__driver *driver);

/* The PTX ISA that a driver version takes: 90 for 13000 (ISA 9.0). Between two known versions the lower
 * one's. */
int kr__driver_isa(int driver_version);
/* The CUDA version whose driver first took an ISA: 13000 for 90; 0: newer than this library. */
int kr__isa_driver(int isa);
/* The first driver that is promised to take the machine code of a toolkit: from CUDA 11 on every one of the
 * toolkit's major version and later (CUDA compatibility guide, minor version compatibility). An older one
 * answers 200 (470.x does to that of CUDA 12). 0: not known, as the toolkit is. */
int kr__toolkit_driver(int toolkit);

#endif
