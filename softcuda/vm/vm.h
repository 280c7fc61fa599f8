/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SC_VM_H
#define SC_VM_H

/*
 * The machine that executes PTX. The driver half (softcuda/driver) owns contexts, streams and API answers
 * and talks to the machine through this header alone. The machine knows nothing of CUDA handles.
 *
 * sc_memory   one device's memory: a reserved range of addresses, allocations with exact bounds
 * sc_program  a PTX module made ready to run on one device: decoded code, placed variables
 * sc_launch   one grid; sc_run executes it on the host's cores and returns when it has ended
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ptx/front/ptx.h"

/* ---- memory ---- */

typedef struct sc_memory sc_memory;

/* Twice the device's bytes are reserved: gaps and fragments must not make an allocation fail that fits by its
 * size. */
enum { SC_RESERVED_FOR_A_BYTE = 2 };
/* Reserves address space for a device of `bytes` (mapped lazily; nothing is committed). NULL: no memory. */
sc_memory *sc_memory_create(unsigned ordinal, size_t bytes);
void sc_memory_destroy(sc_memory *memory);

/* Addresses are host addresses: *(int *)(uintptr_t)address works on the host side of the driver. 256-aligned.
 * 0: does not fit.
 * `zero`: contents are zeros; otherwise undefined. Thread-safe. */
uint64_t sc_memory_alloc(sc_memory *memory, size_t bytes, size_t alignment);
bool sc_memory_free(sc_memory *memory, uint64_t address); /* false: not the start of an allocation */

/* The allocation that holds the address: start and size. Any device's; false: none. */
typedef struct sc_allocation {
    uint64_t start;
    size_t bytes;
    unsigned ordinal; /* of the device; SC_HOST_ORDINAL for registered host memory */
    unsigned flags;   /* of registered host memory: the driver's own */
    uint64_t id;      /* unique in the process */
    bool in_heap;     /* by a kernel's malloc */
    bool mapped;      /* by sc_memory_map: for kernels of `granted` devices alone */
    uint64_t granted; /* sc_memory_grant */
} sc_allocation;
enum { SC_HOST_ORDINAL = 0xffff };
bool sc_memory_find(uint64_t address, sc_allocation *ret_allocation);
size_t sc_memory_used(const sc_memory *memory); /* bytes allocated, rounded as the device rounds */

/* Host memory that kernels of every device may touch (pinned, registered, managed). */
bool sc_memory_register_host(void *start, size_t bytes, unsigned flags);
bool sc_memory_unregister_host(void *start);
/* Registered host memory of which a byte lies from first to last; false: none. */
bool sc_memory_host_between(uint64_t first, uint64_t last, sc_allocation *ret_allocation);

/* Memory of a device that the driver mapped somewhere itself; no kernel may touch it before sc_memory_grant.
 * sc_memory_unregister_host ends it. */
bool sc_memory_map(unsigned ordinal, void *start, size_t bytes);
/* Counts such memory among what is allocated. false: the device has not so much left. */
bool sc_memory_charge(sc_memory *memory, size_t bytes);
void sc_memory_discharge(sc_memory *memory, size_t bytes);

/* May kernels on `device` touch memory of `peer`? The driver sets this for peer access. */
void sc_memory_allow_peer(unsigned device, unsigned peer, bool allow);
/* Which further devices, a bit each, may touch the allocation that begins there. */
void sc_memory_grant(uint64_t start, uint64_t devices);
/* May kernels on the device touch what is there? */
bool sc_memory_reaches(unsigned device, uint64_t address);

/* ---- programs ---- */

typedef struct sc_device_limits {
    unsigned ordinal;
    int cc; /* 90 */
    int multiprocessors;
    int max_threads_per_multiprocessor;
    int max_blocks_per_multiprocessor;
    int registers_per_multiprocessor;
    int shared_bytes_per_multiprocessor;
    int reserved_shared_bytes_per_block;
    int clock_khz;
} sc_device_limits;

typedef struct sc_program sc_program;

typedef struct sc_kernel_facts {
    const char *name;
    int registers; /* estimated from liveness and launch bounds; at least 16 and even, as ptxas would */
    size_t static_shared_bytes;
    size_t const_bytes;
    size_t local_bytes;
    int max_threads;     /* .maxntid/.reqntid product, or 1024 */
    unsigned reqntid[3]; /* 0: not given */
    size_t n_params;
    const ptx_function *function; /* parameters: function->params[i]->offset, ->bytes */
    size_t param_bytes;
} sc_kernel_facts;

/* Makes a module ready for one device: verifies that every instruction can be executed, allocates and
 * initialises its variables in `memory`. The module must outlive the program. false: problem says why
 * (unsupported instruction with name and line; unresolved external function; out of memory). */
bool sc_program_create(const ptx_module *module, sc_memory *memory, const sc_device_limits *limits,
                       sc_program **ret_program, ptx_problem *problem);
void sc_program_destroy(sc_program **program);
size_t sc_program_n_kernels(const sc_program *program);
const sc_kernel_facts *sc_program_kernel(const sc_program *program, size_t index);
int sc_program_find(const sc_program *program, const char *name); /* index or -1 */
/* Each .global and .const variable, until visit says false; then that. */
bool sc_program_variables(const sc_program *program,
                          bool (*visit)(uint64_t address, size_t bytes, void *user), void *user);
/* Address and size of a .global or .const variable; false: no such one. */
bool sc_program_global(const sc_program *program, const char *name, uint64_t *ret_address, size_t *ret_bytes);

/* ---- launches ---- */

typedef enum sc_fault_kind {
    SC_FAULT_NONE,
    SC_FAULT_OUT_OF_BOUNDS,       /* 700 */
    SC_FAULT_MISALIGNED,          /* 716 */
    SC_FAULT_ASSERT,              /* 710 */
    SC_FAULT_TRAP,                /* 719 (the driver's answer to trap) */
    SC_FAULT_ILLEGAL_INSTRUCTION, /* 715 */
    SC_FAULT_ADDRESS_SPACE,       /* 717 */
    SC_FAULT_STACK,               /* 719 */
    SC_FAULT_TIMEOUT,             /* 702: instruction budget spent */
    SC_FAULT_DEADLOCK,            /* nobody can run: 702 with the waiters in text */
    SC_FAULT_NO_MEMORY,
    SC_FAULT_CALLED_OFF
} sc_fault_kind;

typedef struct sc_fault {
    sc_fault_kind kind;
    uint64_t address;
    unsigned block[3], thread[3];
    unsigned line; /* in the PTX */
    char kernel[128];
    char text[512]; /* "store of 4 bytes at 0x... , 12 bytes past the end of the allocation ..." */
} sc_fault;

typedef struct sc_launch {
    const sc_program *program;
    int kernel;
    unsigned grid[3], block[3];
    size_t dynamic_shared_bytes;
    const void *params; /* the parameter block, facts->param_bytes of it */
    bool cooperative;
    unsigned resident_blocks; /* at most this many at once: occupancy x multiprocessors */
    size_t printf_fifo_bytes; /* a ring: what does not fit overwrites the oldest */
    size_t malloc_heap_bytes;
    size_t stack_bytes; /* where the program does not tell how much a thread takes */
    uint64_t grid_id;
    uint64_t budget;               /* thread-instructions; 0: no limit */
    uint64_t shuffle_seed;         /* 0: natural order; else blocks and warps run in a shuffled order */
    const atomic_bool *called_off; /* ends the grid when it is set; NULL: nothing does */
} sc_launch;

/* Is it a function that no module has to define? */
bool sc_is_builtin(const char *name);

typedef struct sc_run_stats {
    uint64_t warp_instructions;
    uint64_t thread_instructions;
} sc_run_stats;

/* Executes the grid on up to sc_workers() host threads (the caller's included) and returns when it has
 * ended. false: it faulted; memory may be half written, as on hardware. Thread-safe: several launches
 * run at once. printf output is written to stdout at the end of the launch. */
bool sc_run(const sc_launch *launch, sc_fault *ret_fault, sc_run_stats *ret_stats /* or NULL */);

/* ---- checkers: KREGISTRY_SOFTCUDA_CHECK ---- */

typedef enum sc_check {
    SC_CHECK_MEMORY = 1,
    SC_CHECK_INIT = 2,
    SC_CHECK_RACE = 4,
    SC_CHECK_SYNC = 8,
    SC_CHECK_LEAK = 16
} sc_check;

unsigned sc_checks(void);            /* those that are on, together */
const char *sc_checks_unknown(void); /* a word in the variable that names none; NULL: there is none */
/* Tells a finding on standard error. */
void sc_finding(sc_check check, const char *format, ...) KR_PRINTF(2, 3);
uint64_t sc_findings(void); /* how many there were */
/* Memory was copied, or filled, by other means than a kernel. */
void sc_check_copied(uint64_t to, uint64_t from, size_t bytes);
void sc_check_filled(uint64_t to, size_t bytes);

/* KREGISTRY_SOFTCUDA_ISA: not set, or "baseline". */
bool sc_isa_is_known(void);

/* ---- numbers from the environment ---- */

typedef enum sc_setting_id {
    SC_SETTING_THREADS,
    SC_SETTING_BUDGET,
    SC_SETTING_SHUFFLE,
    SC_SETTING_CHECK_EXITCODE
} sc_setting_id;
typedef struct sc_setting {
    const char *name;
    uint64_t least, most;
} sc_setting;
extern const sc_setting sc_settings[]; /* by id; a NULL name ends them */

/* *ret_value: 0 where it is not set. false: no number from least to most. */
bool sc_setting_read(const sc_setting *setting, uint64_t *ret_value);
uint64_t sc_setting_value(sc_setting_id id); /* 0: not set, or no such number */

/* Host threads used a launch: KREGISTRY_SOFTCUDA_THREADS, else the cores this process may use. */
unsigned sc_workers(void);
/* Starts a thread that nobody joins, with that stack or, for 0, the usual one. The program's signals are for
 * its own threads. false: there is none to be had. */
bool sc_thread_start(void *(*run)(void *), size_t stack_bytes);

#endif
