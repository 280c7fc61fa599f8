/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SC_MACHINE_H
#define SC_MACHINE_H

/*
 * What the files of the machine share: decoded code, warps, groups, frames, blocks, jobs.
 *
 * A warp's registers are arrays of 32 lanes. A 32-bit (or narrower) register is a slot of 128 bytes, a
 * 64-bit one of 256, a predicate one 32-bit mask. A value narrower than 32 bits lies in its slot's low
 * bits; who reads it narrows it, so the high bits never matter.
 */

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "softcuda/vm/map.h"
#include "softcuda/vm/vm.h"

enum { SC_LANES = 32, SC_BARRIERS = 16, SC_CACHE_LINE = 64 };
#define SC_ALL_LANES 0xffffffffu
#define SC_LIKELY(x) __builtin_expect(!!(x), 1)

typedef struct sc_warp sc_warp;
typedef struct sc_code sc_code;
typedef struct sc_frame sc_frame;
typedef struct sc_block sc_block;
typedef struct sc_worker sc_worker;
typedef struct sc_job sc_job;
typedef struct sc_kernel sc_kernel;
typedef struct sc_check_block sc_check_block;

/* Executes one decoded instruction and returns the next, or NULL: the warp stops (see sc_warp.state). */
typedef const sc_code *sc_handler(sc_warp *warp, const sc_code *in);

/* An operand: the slot's byte offset in its bank. Bit 0: the bank (registers of the frame, constants of the
 * kernel). Bit 1, predicates only: negated. */
typedef uint32_t sc_slot;
enum { SC_BANK_FRAME = 0, SC_BANK_CONSTANT = 1, SC_NEGATED = 2 };

struct sc_code {
    sc_handler *handler[2]; /* [0]: some lanes; [1]: every lane that can ever run again, so lanes outside the
                               mask may be written */
    sc_slot d, a, b, c;
    sc_slot e, f;     /* further operands: second destination, vector elements */
    int64_t imm;      /* immediate, address offset */
    const void *more; /* branch target, call, access */
    uint32_t ordinal; /* PTX instructions decoded before this one: what a run of code counts */
    uint32_t line;    /* in the PTX */
};

/* ---- generic addresses ---- */

/* Host addresses have their upper 16 bits clear, so a window is told by them. */
enum {
    SC_WINDOW_GLOBAL = 0,
    SC_WINDOW_SHARED = 1,
    SC_WINDOW_LOCAL = 2,
    SC_WINDOW_PARAM = 3,
    SC_WINDOW_CODE = 4
};
#define SC_WINDOW(window) ((uint64_t)(window) << 48)
#define SC_WINDOW_OF(address) ((address) >> 48)
#define SC_IN_WINDOW(address) ((address)&0xffffffffffffull)

/* One memory access as decoded. */
typedef struct sc_access {
    ptx_space space;      /* generic, global (const too), local, param (of the kernel), shared */
    bool wide_address;    /* the address register has 64 bits */
    uint8_t bytes;        /* of an element */
    uint16_t total_bytes; /* also the alignment asked for */
    uint32_t site;        /* index of the remembered allocation */
    ptx_order order;
    const char *verb; /* "load" or "read", "store"; anything else reads and writes at once */
    uint64_t (*operate_global)(void *at, uint64_t b, uint64_t c); /* of an atomic */
    uint64_t (*operate_shared)(void *at, uint64_t b, uint64_t c); /* ... in the block's shared memory */
} sc_access;

/* A remembered allocation. */
typedef struct sc_span {
    uint64_t start, end;
} sc_span;

/* ---- code ---- */

typedef struct sc_function {
    const ptx_function *ptx;
    sc_code *code;
    size_t n_code;
    uint32_t frame_bytes;                   /* registers */
    uint32_t local_bytes;                   /* .local and .param variables */
    uint32_t pressure;                      /* 32-bit registers live at once */
    uint32_t *param_offset, *return_offset; /* in the function's local bytes */
    uint64_t address;                       /* generic; 0: never taken */
    uint32_t chain_bytes;                   /* local bytes of it and the deepest chain of calls below */
    uint8_t chain_state;                    /* while that is found */
} sc_function;

/* brx.idx */
typedef struct sc_targets {
    uint32_t n;
    const sc_code *to[];
} sc_targets;

typedef struct sc_call {
    const sc_function *callee; /* NULL: indirect, through sc_code.a */
    uint32_t n_arguments, n_returns;
    uint32_t *argument, *argument_bytes; /* caller's local offsets */
    uint32_t *result, *result_bytes;
} sc_call;

struct sc_kernel {
    sc_kernel_facts facts;
    unsigned device;
    int multiprocessors, max_warps, clock_khz;
    char *constants; /* broadcast slots */
    size_t constants_bytes;
    sc_function **functions; /* [0] the entry, then what it may call */
    size_t n_functions;
    uint32_t n_sites;
    uint32_t shared_bytes; /* static, all of the closure */
    uint32_t stack_bytes;  /* local memory of a thread, as far as it is known */
    bool stack_is_open;    /* recursion, calls through pointers or alloca take more */
    bool blocks_may_wait;  /* for each other: it has a strong access of global memory, or an atomic */
    const ptx_file *files; /* that .loc names */
};

struct sc_program {
    const ptx_module *module;
    sc_memory *memory;
    sc_device_limits limits;
    sc_kernel *kernels;
    size_t n_kernels;
    sc_map addresses;                 /* of variables and functions */
    const ptx_function **addressable; /* functions with an address */
    size_t n_addressable;
    kr__arena arena;
};

/* ---- execution ---- */

/* A call in progress: registers and the place of local variables. Lanes that called together share one. */
struct sc_frame {
    sc_frame *caller;
    const sc_function *function;
    const sc_code *return_to;
    const sc_call *call;
    char *registers;
    uint32_t lanes;
    uint32_t depth;
    uint32_t local_base;
    uint32_t allocated[SC_LANES]; /* alloca's bytes, after the function's own */
    sc_frame *next_free;
    size_t capacity;
};

typedef enum sc_group_state {
    SC_GROUP_READY,
    SC_GROUP_SYNC,   /* waits for further lanes of its member mask */
    SC_GROUP_BARRIER /* waits at a barrier of the block */
} sc_group_state;

/* Lanes at one place. */
typedef struct sc_group {
    const sc_code *pc;
    sc_frame *frame;
    uint32_t mask;
    sc_group_state state;
    uint32_t members; /* SC_GROUP_SYNC: the lanes waited for */
    uint32_t barrier;
} sc_group;

typedef enum sc_warp_state {
    SC_WARP_READY, /* yielded */
    SC_WARP_BLOCKED,
    SC_WARP_DONE,
    SC_WARP_FAULT
} sc_warp_state;

struct sc_warp {
    char *bank[2];
    uint32_t mask;       /* lanes of the running group, less those a guard holds back */
    uint32_t whole;      /* 1: the running group is the only one: sc_code.handler's index */
    uint32_t carry;      /* condition code, a bit a lane */
    uint32_t met;        /* lanes whose rendezvous is over though they are at different places */
    uint32_t csr;        /* the MXCSR in force */
    const sc_code *from; /* where the straight run being executed began */
    int64_t quantum;     /* instructions left before the warp must let others run */
    uint64_t warp_instructions, thread_instructions;
    sc_frame *frame;
    sc_span *sites;
    char *local; /* lane l's local memory: local + l * stack_bytes */
    uint32_t stack_bytes;
    uint32_t live;
    sc_block *block;
    const sc_kernel *kernel;
    sc_warp_state state;
    unsigned index;               /* in the block */
    uint32_t thread[3][SC_LANES]; /* %tid of each lane */
    unsigned n_groups, current;
    bool slept;  /* gave up its turn of its own will */
    bool pinned; /* the current group keeps running until its quantum is over */
    unsigned next_pin;
    sc_group groups[SC_LANES];
    sc_frame *free_frames;
    sc_frame root;
    char *pointers[SC_LANES]; /* host addresses of the access under way */
} __attribute__((aligned(SC_CACHE_LINE)));

typedef struct sc_barrier {
    uint32_t arrived, expected; /* threads; expected 0: all that live */
    uint32_t votes_count;       /* bar.red */
} sc_barrier;

/* Of a barrier's number the low bits count, as in assembled code; an H200 takes 16. */
static inline uint32_t sc_barrier_of(uint32_t number)
{
    return number % SC_BARRIERS;
}

struct sc_block {
    sc_job *job;
    sc_worker *worker;
    sc_warp *warps;
    unsigned n_warps, n_threads;
    unsigned live_threads;
    uint32_t id[3];
    uint64_t linear;
    char *shared; /* touched by the worker's host thread alone: atomics there are none for the host */
    uint32_t shared_bytes;
    sc_barrier barriers[SC_BARRIERS];
    unsigned *order; /* of warps */
    char *storage;   /* one piece: registers, local memory, shared memory */
    size_t storage_bytes;
    sc_check_block *check; /* NULL: no checker is on */
    sc_block *next;
};

/* One host thread's share of a job. */
struct sc_worker {
    sc_job *job;
    sc_span *sites;
    sc_block *blocks; /* resident */
    sc_block *spare;
    unsigned n_resident;
    uint64_t next_block, end_block; /* taken and not yet started */
    uint64_t warp_instructions, thread_instructions;
};

/* What one thread printed. */
typedef struct sc_print {
    struct sc_print *next;
    size_t ring_bytes; /* that it takes in the ring */
    size_t bytes;
    char text[];
} sc_print;

struct sc_job {
    const sc_launch *launch;
    const sc_kernel *kernel;
    const sc_program *program;
    uint64_t n_blocks;
    unsigned resident_limit;
    uint32_t shared_bytes;
    uint32_t stack_bytes;  /* local memory of a thread */
    uint32_t first_serial; /* for the checkers, of its blocks */
    _Atomic bool stop;     /* a fault: everyone leaves */
    pthread_mutex_t mutex; /* fault, output */
    sc_fault fault;
    sc_print *first_print, *last_print; /* printf's output, as much as the ring holds */
    size_t printed_bytes;               /* of the ring, in use */
    kr__text errors;                    /* assert's */
    uint64_t workspace;                 /* grid barrier of a cooperative launch */
    uint32_t *block_order;              /* shuffled, or NULL */
    unsigned n_helpers, most_helpers;   /* pool threads working on it; guarded by the pool */
    sc_job *next;
    uint64_t warp_instructions, thread_instructions;
    /* Written by every worker at every block: kept off the cache lines that every warp reads. */
    _Atomic uint64_t next_block __attribute__((aligned(SC_CACHE_LINE)));
    _Atomic uint64_t spent; /* thread-instructions, for the budget */
    _Atomic unsigned n_resident;
};

/* ---- between the files ---- */

/* memory.c */
bool sc__memory_span(unsigned device, uint64_t address, sc_span *ret_span);
/* The kernels' malloc, as long as all that is in use stays within `limit`; 0: it does not. */
uint64_t sc__heap_alloc(sc_memory *memory, size_t bytes, size_t limit);
bool sc__heap_free(sc_memory *memory, uint64_t address); /* false: not from there */
/* Says where an address is, for a fault's text. */
void sc__memory_describe(unsigned device, uint64_t address, size_t bytes, char *to, size_t to_bytes);

/* forms.c: the handler of an instruction that works lane by lane, by its spelling ("add.s32"). */
typedef struct sc_form {
    const char *names; /* one or more spellings, separated by spaces */
    const char *shape; /* a letter an operand, the result first: w 32 bits, d 64 bits, p predicate */
    sc_handler *handler[2];
} sc_form;
extern const sc_form sc__forms_baseline[], sc__forms_avx2[];
extern const size_t sc__n_forms_baseline, sc__n_forms_avx2;
const sc_form *sc__find_form(const char *name);
bool sc__has_form(const char *operation); /* any of "add" */

/* warp.c: what moves a group. `in` is the instruction being executed, the result where the warp goes on. */
/* A barrier's sc_code.imm. */
typedef enum sc_barrier_kind {
    SC_BARRIER_SYNC,
    SC_BARRIER_ARRIVE,
    SC_BARRIER_AND,
    SC_BARRIER_OR,
    SC_BARRIER_POPC
} sc_barrier_kind;
const sc_code *sc__jump(sc_warp *warp, const sc_code *in, const sc_code *to);
const sc_code *sc__join(sc_warp *warp, const sc_code *in); /* falls into a place where branches join */
const sc_code *sc__branch(sc_warp *warp, const sc_code *in, const sc_code *to, uint32_t taken);
const sc_code *sc__branch_indexed(sc_warp *warp, const sc_code *in, const uint32_t *index,
                                  const sc_code *const *targets, uint32_t n_targets);
/* These lanes go on; the group's others will execute `in` later. */
void sc__split(sc_warp *warp, const sc_code *in, uint32_t lanes);
const sc_code *sc__wait_for(sc_warp *warp, const sc_code *in, uint32_t members); /* then execute `in` again */
const sc_code *sc__yield(sc_warp *warp, const sc_code *in); /* lets other warps and blocks run first */
const sc_code *sc__barrier(sc_warp *warp, const sc_code *in, unsigned index, unsigned expected,
                           uint32_t votes);
const sc_code *sc__call(sc_warp *warp, const sc_code *in, const sc_function *callee, const sc_call *call);
/* Does the function have as many parameters, none smaller than what the call passes, and the results that it
 * takes? */
bool sc__takes(const ptx_function *callee, const sc_call *call);
const sc_code *sc__return(sc_warp *warp, const sc_code *in);
const sc_code *sc__exit(sc_warp *warp, const sc_code *in);
void sc__warp_start(sc_warp *warp, uint32_t lanes);
void sc__warp_run(sc_warp *warp, int64_t quantum);
void sc__free_frames(sc_warp *warp);

/* fault.c */
const sc_code *sc__fault(sc_warp *warp, const sc_code *in, sc_fault_kind kind, unsigned lane,
                         uint64_t address, const char *format, ...) KR_PRINTF(6, 7);
void sc__job_fault(sc_job *job, const sc_fault *fault);
void sc__thread_of(const sc_warp *warp, unsigned lane, unsigned ret_thread[3]);

/* ldst.c. load and store: by the logarithm of an element's bytes, and of the number of elements. translate:
 * host addresses of the lanes in warp->pointers; false: faulted. */
typedef struct sc_accesses {
    sc_handler *load[4][3], *store[4][3];
    bool (*translate)(sc_warp *warp, const sc_code *in, const sc_access *access);
    bool (*translate_lane)(sc_warp *warp, const sc_code *in, const sc_access *access, unsigned lane,
                           uint64_t address, ptx_space space);
} sc_accesses;
extern const sc_accesses sc__accesses_baseline, sc__accesses_avx2;
const sc_accesses *sc__accesses(void); /* those for this processor */

/* atom.c */
typedef uint64_t sc_atomic(void *at, uint64_t b, uint64_t c); /* gives the old value */
/* Sets the access's two operations. false: no such. */
bool sc__find_atomic(ptx_sub sub, ptx_type type, sc_access *ret_access);
/* c where b is there, or without `compares` b whatever is there; gives what was. */
unsigned __int128 sc__atomic_quad(void *at, bool compares, unsigned __int128 b, unsigned __int128 c);
sc_handler sc__run_atomic, sc__run_atomic_wide;

/* flow.c: handlers of control flow, special registers and what a warp does together. */
sc_handler sc__run_jump, sc__run_branch, sc__run_join, sc__run_indexed, sc__run_call, sc__run_return,
    sc__run_exit, sc__run_trap, sc__run_guard, sc__run_fence, sc__run_sleep, sc__run_nothing, sc__run_special,
    sc__run_barrier, sc__run_warp_sync, sc__run_shuffle, sc__run_vote, sc__run_match, sc__run_reduce,
    sc__run_activemask, sc__run_elect, sc__run_parameter, sc__run_local_address, sc__run_isspacep,
    sc__run_predicate, sc__run_move_predicate, sc__run_alloca, sc__run_stack_save, sc__run_stack_restore;

/* Writes what the kernel printed, and forgets it. */
void sc__write_prints(sc_job *job);

/* builtin.c: vprintf, __assertfail, malloc, free. NULL: no such. */
sc_handler *sc__find_builtin(const char *name);

/* slots.c */
typedef struct sc_block_info {
    uint32_t first, end; /* instructions */
    uint32_t successors[2];
    uint32_t n_successors; /* more than 2: brx.idx, see targets of the last instruction */
    uint32_t order;        /* in reverse post-order; UINT32_MAX: unreachable */
    uint32_t n_predecessors;
} sc_block_info;

typedef struct sc_layout {
    sc_block_info *blocks;
    uint32_t n_blocks;
    uint32_t *order; /* blocks in reverse post-order */
    uint32_t n_order;
    uint32_t *block_of; /* of an instruction */
    sc_slot *slot;      /* of a register, by its index; SC_NO_SLOT: never used */
    uint32_t n_words, n_doubles, n_quads, n_predicates; /* slots; a quad is of 128 bits, two doubles */
    uint32_t pressure;
} sc_layout;
enum { SC_NO_SLOT = 0xfffffffe };
bool sc__layout_create(const ptx_function *function, sc_layout *ret_layout);
void sc__layout_free(sc_layout *layout);
bool sc__ends_block(const ptx_instr *instr);

/* decode.c */
bool sc__kernel_create(sc_program *program, const ptx_function *entry, sc_kernel *kernel,
                       ptx_problem *problem);
void sc__kernel_free(sc_kernel *kernel);

/* program.c */
uint64_t sc__variable_address(const sc_program *program, const ptx_variable *variable);
uint64_t sc__function_address(const sc_program *program, const ptx_function *function);

#endif
