/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SC_DRIVER_H
#define SC_DRIVER_H

/*
 * The inside of softcuda's libcuda. Every CUDA handle is the address of an object of a known kind, kept in
 * one set: a handle that is not there is answered CUDA_ERROR_INVALID_HANDLE, never followed.
 *
 * sc_mutex guards every field of contexts, streams, events, tasks and graphs. The set of objects has a lock
 * of its own, taken last. A reference may be given up under any of them: what then happens at once (an
 * object's `end`, a work's `finish`) takes no lock but such last ones.
 */

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi/cuda.h"
#include "ptx/image/image.h"
#include "softcuda/vm/vm.h"

/* ---- exported functions ---- */

#define SC_EXPORT __attribute__((visibility("default")))

/* What a program calls is an entry of gate.S, which goes on to the function whose name in the object file
 * this is. Calls inside this folder go there at once. A declaration ahead of API() needs it too. */
#define SC_ENTRY(name) __asm__("sc_do_" #name)
#define SC_UNPACK(...) __VA_ARGS__

/* Begins an exported function. */
#define API(name, ...)                         \
    CUresult name(__VA_ARGS__) SC_ENTRY(name); \
    CUresult name(__VA_ARGS__)

/* Begins a function with a parameter `stream` that exists twice: NULL is the legacy default stream, or
 * (_ptsz) the thread's own. */
#define API_STREAM(name, params, args)                   \
    static CUresult name##_on params;                    \
    CUresult name params SC_ENTRY(name);                 \
    CUresult name##_ptsz params SC_ENTRY(name##_ptsz);   \
    CUresult name params                                 \
    {                                                    \
        return name##_on args;                           \
    }                                                    \
    CUresult name##_ptsz params                          \
    {                                                    \
        stream = stream ? stream : CU_STREAM_PER_THREAD; \
        return name##_on args;                           \
    }                                                    \
    static CUresult name##_on params

/* Begins a synchronous function that works in the default stream, and so exists twice (_ptds). Its body has
 * `stream` beside the parameters. */
#define API_SYNC(name, params, args)                              \
    static CUresult name##_on(SC_UNPACK params, CUstream stream); \
    CUresult name params SC_ENTRY(name);                          \
    CUresult name##_ptds params SC_ENTRY(name##_ptds);            \
    CUresult name params                                          \
    {                                                             \
        return name##_on(SC_UNPACK args, CU_STREAM_LEGACY);       \
    }                                                             \
    CUresult name##_ptds params                                   \
    {                                                             \
        return name##_on(SC_UNPACK args, CU_STREAM_PER_THREAD);   \
    }                                                             \
    static CUresult name##_on(SC_UNPACK params, CUstream stream)

#define TRY(call)                  \
    do {                           \
        CUresult result_ = (call); \
        if (result_)               \
            return result_;        \
    } while (0)

extern pthread_mutex_t sc_mutex;
void sc_lock(void);
void sc_unlock(void);

/* ---- objects (object.c) ---- */

typedef enum sc_kind {
    SC_CONTEXT = 1,
    SC_STREAM,
    SC_EVENT,
    SC_MODULE,
    SC_FUNCTION,
    SC_LIBRARY,
    SC_KERNEL,
    SC_BLOCK, /* keyed by the address of the memory, not its own */
    SC_POOL,
    SC_LINK,
    SC_GRAPH,
    SC_NODE,
    SC_EXEC,
    SC_RANGE,
    SC_PHYSICAL,
    SC_USER,
    SC_ARRAY
} sc_kind;

typedef struct sc_context sc_context;

typedef struct sc_object {
    sc_kind kind;
    atomic_uint refs;
    uint64_t number; /* in the order of creation */
    uintptr_t key;
    sc_context *context; /* ends with it; NULL: belongs to the process */
    /* When the last reference goes: gives back what shows, such as memory. NULL: nothing. */
    void (*end)(struct sc_object *object);
    /* Frees it, when no call can know it any more. No lock is held. */
    void (*finish)(struct sc_object *object);
    struct sc_object *next_retired;
} sc_object;

/* A zeroed object of `bytes` with one reference, not yet in the set. NULL: out of memory. */
void *sc_object_create(size_t bytes, sc_kind kind, sc_context *context, void (*finish)(sc_object *));
/* Puts it into the set: from here on other threads may find it, so all else is done before. false: out of
 * memory, or its context is ending. */
bool sc_object_publish(void *object, uintptr_t key);
/* Takes it out, if nobody else has; the set's reference goes to the caller. */
bool sc_object_retract(void *object);
/* The same, and releases it. */
void sc_object_drop(void *object);
/* Frees one that was never published. */
void sc_object_discard(void *object); /* accepts NULL */
/* NULL: not in the set. What is found can be read until the call ends, whatever other threads do; to use it
 * for longer, retain it. */
void *sc_object_find(sc_kind kind, uintptr_t key);
void *sc_retain(void *object); /* NULL: it has ended meanwhile */
bool sc_has_ended(const void *object);
void sc_release(void *object); /* accepts NULL */
/* Around all that finds objects: the gates do it, and what runs outside of a call has to. */
unsigned sc_call_begin(void);
void sc_call_end(unsigned begun);
/* In a forked child: what was to be freed stays, since a lock may be held by a thread that is not there. */
void sc_objects_in_child(void);
/* One object of the context and kind, still in the set, or NULL. */
void *sc_object_of(sc_context *context, sc_kind kind);
/* Calls visit for every object of the kind; it must not change the set. */
void sc_objects_each(sc_kind kind, void (*visit)(void *object, void *user), void *user);

/* ---- chips and devices (chip.c, device.c) ---- */

typedef struct sc_chip {
    const char *key, *alias; /* as KREGISTRY_SOFTCUDA_DEVICES names it */
    const char *name;
    int cc;
    int multiprocessors;
    int clock_khz, memory_clock_khz, memory_bus_bits;
    int l2_bytes, persisting_l2_bytes;
    int threads_per_multiprocessor, blocks_per_multiprocessor;
    int shared_per_multiprocessor, shared_optin, shared_reserved;
    int double_ratio;
    int async_engines;
    bool integrated;
    size_t memory_bytes;
} sc_chip;

const sc_chip *sc_chip_find(const char *name, size_t bytes);
/* false: no such attribute. */
bool sc_chip_attribute(const sc_chip *chip, int number, CUdevice_attribute attribute, int *ret_value);

typedef struct sc_pool sc_pool;

typedef struct sc_device {
    const sc_chip *chip;
    int ordinal;
    int number; /* among KREGISTRY_SOFTCUDA_DEVICES, of which CUDA_VISIBLE_DEVICES chooses */
    CUuuid uuid;
    sc_memory *memory;
    size_t memory_bytes;         /* the chip's, or what the process may have */
    size_t usable_bytes;         /* of them; the rest is taken by others (KREGISTRY_SOFTCUDA_FAIL) */
    sc_context *_Atomic primary; /* one for the life of the process; alive while retained */
    unsigned primary_refs;
    unsigned primary_flags;
    sc_pool *default_pool, *_Atomic pool;
    uint64_t graph_memory[4]; /* by CUgraphMem_attribute (graphmem.c) */
} sc_device;

enum { SC_MAX_DEVICES = 64 };
extern sc_device sc_devices[SC_MAX_DEVICES];
extern int sc_n_devices;

/* CUDA_ERROR_NOT_INITIALIZED before cuInit and in a forked child. */
CUresult sc_initialized(void);
CUresult sc_device_find(CUdevice ordinal, sc_device **ret_device);
/* The CUDA version played: 13000, or KREGISTRY_SOFTCUDA_DRIVER's. */
int sc_driver_version(void);
void sc_driver_version_read(void);
/* The newest PTX that such a driver knows: 90 for 13.0. */
int sc_driver_isa(void);
const char *sc_result_name(CUresult code);                  /* NULL: not one of the header's */
bool sc_result_named(const char *name, CUresult *ret_code); /* "CUDA_ERROR_OUT_OF_MEMORY" */
/* Is KREGISTRY_SOFTCUDA_LOG set: are faults and calls that are not there to be told? */
bool sc_logging(void);
/* CUDA_ERROR_NOT_SUPPORTED for what a real driver can do; the log tells it. Where a real driver answers so
 * too, nothing is told. */
CUresult sc_lacks(const char *what);
/* One line on standard error that begins "softcuda: ". */
void sc_say(const char *format, ...) KR_PRINTF(1, 2);

/* ---- names (symbols.c, gate.S, gate.c) ---- */

enum {
    SC_N_SYMBOLS = 0
#define CU_SYMBOL(name, version, flag, symbol) +1
#include "abi/symbols.def"
#undef CU_SYMBOL
};

/* A row of abi/symbols.def, and what stands behind it. */
typedef struct sc_symbol {
    const char *name;
    int version, flag;
    const char *exported;
} sc_symbol;
typedef CUresult (*sc_procedure)(void);
typedef struct sc_gate {
    sc_procedure function, entry;
} sc_gate;
extern const sc_symbol sc_symbols[SC_N_SYMBOLS];
extern const sc_gate sc_gates[SC_N_SYMBOLS];

/* Is it one form of the function `name`, or exported as `name`? */
bool sc_symbol_is(const sc_symbol *symbol, const char *name);
/* The newest form of a name that a client of `version` knows, the per-thread one (flag 2) where there is one.
 * NULL: none. */
sc_procedure sc_symbol_find(const char *name, int version, int flag);

/* Once cuInit has succeeded: from some time in the end of the process on, every call is answered
 * CUDA_ERROR_DEINITIALIZED. false: out of memory. */
bool sc_gates_close_at_end(void);

/* ---- unhelpfulness on request (unhelpful.c) ---- */

/* What KREGISTRY_SOFTCUDA_FAIL asks for, and the other variables that are read with it. They are read when
 * the library is loaded, for the names that dlsym then finds, and again when the first call is made. */
typedef struct sc_unhelpful {
    size_t memory_bytes, pinned_bytes; /* SIZE_MAX: as much as there is */
    uint64_t delay_ns;                 /* of each task */
    bool peers_refused;
    bool jit_is_missing; /* the library that compiles PTX */
} sc_unhelpful;
extern sc_unhelpful sc_asked;

void sc_environment_read(void);
/* false: it says what is not understood; told on standard error. */
bool sc_unhelpful_is_good(void);
bool sc_is_missing(const sc_symbol *symbol);
/* Changes an attribute's value to the one asked for. */
void sc_attribute_asked(CUdevice_attribute which, int *value);
/* Before a call goes on to its function: 0, or the answer instead. */
CUresult sc_answer_asked(const sc_symbol *call);
/* 0, or the code that this launch of the kernel is to end with. */
CUresult sc_launch_fault(const char *kernel);
/* 0, or why no PTX is compiled: CUDA_DISABLE_PTX_JIT and CUDA_DISABLE_JIT count too. */
CUresult sc_jit_refused(void);
/* CUDA_FORCE_PTX_JIT or CUDA_FORCE_JIT: machine code beside PTX is passed over. */
bool sc_jit_is_forced(void);

/* ---- contexts (context.c) ---- */

typedef struct sc_stream sc_stream;
enum { SC_N_LIMITS = CU_LIMIT_MAX };

struct sc_context {
    sc_object object;
    sc_device *device;
    bool is_primary;
    atomic_bool alive;
    atomic_bool is_ending; /* or has ended: nothing is made in it any more */
    /* Its kernels stop: one of the device's had a fault, or after a fault elsewhere the context ends. */
    atomic_bool called_off;
    unsigned n_holders; /* itself while it lives, threads that have it current, and `buried` in context.c */
    /* Asked and set without the mutex; a primary context that begins again sets them anew. */
    _Atomic unsigned flags, api_version;
    _Atomic uint64_t id;
    _Atomic size_t limits[SC_N_LIMITS];
    _Atomic CUfunc_cache cache_config;
    _Atomic CUsharedconfig shared_config;
    unsigned n_attached; /* by cuCtxAttach */
    sc_context **peers;  /* whose memory kernels here may touch */
    size_t n_peers;
    unsigned n_pending; /* tasks not yet done */
    sc_stream *streams; /* all, the default ones included */
    sc_stream *_Atomic legacy;
};

/* The calling thread's context, ready to work in: initialised, alive, no fault in the process. For calls that
 * name no handle: a handle brings its own context, and the current one does not matter then. */
CUresult sc_enter(sc_context **ret_context);
/* The same without a need for the context itself. */
CUresult sc_entered(void);
/* For calls that name a handle: initialised, and no fault in the process. */
CUresult sc_working(void);
/* For calls that name memory: the current context, where there is one, is alive and without a fault. */
CUresult sc_working_here(void);
/* Sees to it that what is kept for this thread is given back when it ends. */
void sc_thread_begin(void);
/* The current context as it is, or NULL. */
sc_context *sc_current(void);
/* A live context from a handle; NULL: not one. */
sc_context *sc_context_find(CUcontext handle);

/* The code of the first kernel fault, which ends every context of the process; CUDA_SUCCESS before. */
extern _Atomic CUresult sc_lost;

/* True while this thread runs a host function of a stream. */
extern _Thread_local bool sc_in_callback;

/* ---- work and tasks (task.c) ---- */

/* What a stream executes or a graph holds. Its fields do not change once it is submitted, so that a graph
 * can run it again and again. */
typedef struct sc_work {
    atomic_uint refs;
    CUgraphNodeType type;
    bool always; /* runs after a fault too */
    bool waits;  /* who submits it returns when it is done, but not in a capture */
    CUresult (*run)(struct sc_work *work);
    void (*finish)(struct sc_work *work); /* drops what it holds; NULL: nothing */
} sc_work;

void *sc_work_create(size_t bytes, CUgraphNodeType type, CUresult (*run)(sc_work *),
                     void (*finish)(sc_work *));
void sc_work_retain(sc_work *work);
void sc_work_release(sc_work *work);
sc_work *sc_work_nothing(CUgraphNodeType type);
/* What a graph's instance asks of a copy or fill when it is made (copy.c). NULL: of a child. */
CUresult sc_work_instantiate(sc_work *work);

/* One execution of a work, after other tasks. */
typedef struct sc_task {
    atomic_uint refs;
    sc_context *context;
    sc_work *work;
    enum { SC_TASK_BLOCKED, SC_TASK_READY, SC_TASK_RUNNING, SC_TASK_DONE } state;
    unsigned n_before; /* tasks that must be done first */
    struct sc_task **after;
    size_t n_after;
    struct sc_task *next, *previous; /* in the ready list */
    uint64_t end_ns;
} sc_task;

/* All three with sc_mutex held. Submit consumes the caller's reference to work; NULL: out of memory. */
sc_task *sc_task_submit(sc_context *context, sc_work *work, sc_task *const *before, size_t n_before);
void sc_task_wait(sc_task *task);
void sc_task_wait_all(sc_context *context);
sc_task *sc_task_retain(sc_task *task);
void sc_task_release(sc_task *task); /* accepts NULL */

/* Is any task being run? What was made unknown to the machine before, none that begins later knows. */
bool sc_tasks_run(void);
/* Unmaps pages, when no task runs any more that may know them. */
void sc_pages_leave(void *start, size_t bytes);

/* ---- streams and events (stream.c) ---- */

typedef struct sc_capture sc_capture;
typedef struct sc_node sc_node;
typedef struct sc_nodes {
    sc_node **items;
    size_t n;
} sc_nodes;

struct sc_stream {
    sc_object object;
    unsigned flags;
    int priority;
    uint64_t id;
    uint64_t thread;             /* of a per-thread default stream; else 0 */
    bool is_left;                /* that thread has ended */
    CUaccessPolicyWindow window; /* this and the next three steer hardware: kept, without effect */
    CUsynchronizationPolicy sync_policy;
    CUlaunchMemSyncDomainMap domain_map;
    CUlaunchMemSyncDomain domain;
    sc_task *last;
    sc_capture *capture;
    CUgraphEdgeData *edges; /* of the tails, when they were last asked for */
    sc_nodes tails;         /* while capturing: what the next node comes after */
    sc_stream *next;        /* in the context's list */
};

typedef struct sc_event {
    sc_object object;
    unsigned flags;
    sc_task *task; /* of the last record; NULL: never recorded */
    sc_capture *capture;
    bool capture_ended; /* recorded last in a capture that is no more */
    sc_nodes nodes;
} sc_event;

/* A graph's node that records an event, or waits for one. */
typedef struct sc_event_work {
    sc_work work;
    sc_event *event;
} sc_event_work;
sc_work *sc_event_work_create(sc_event *event, CUgraphNodeType type); /* NULL: out of memory */

/* The stream of a handle; a default one is the current context's. sc_enter or sc_working is part of it. */
CUresult sc_stream_enter(CUstream handle, sc_stream **ret_stream);
/* thread: whose own default stream it is (sc_thread_id); 0: an ordinary one. */
sc_stream *sc_stream_create(sc_context *context, unsigned flags, int priority, uint64_t thread);
/* A context's legacy stream is in no set: it has no handle of its own. */
sc_stream *sc_stream_create_legacy(sc_context *context);
void sc_stream_destroy(sc_stream *stream);
/* Destroys what is idle of the calling thread's own default streams, and leaves the others to those that come
 * later. */
void sc_stream_end_thread(void);
/* Consumes the reference to work (NULL: out of memory was met before). `wait`: returns when it is done, with
 * the fault if there is one. */
CUresult sc_stream_submit(sc_stream *stream, sc_work *work, bool wait);
/* Is it being captured? Another thread may begin or end that: what must not go wrong then asks again with the
 * mutex held. */
bool sc_stream_is_captured(const sc_stream *stream);
/* What the stream is given next comes after all that `other` was given. */
CUresult sc_stream_follow(sc_stream *stream, sc_stream *other);
/* sc_capture_forbids for callers that do not hold the mutex. */
CUresult sc_stream_permitted(void);
int sc_priority(int asked);
/* Can the hardware be steered so? For the attributes that streams and launches have in common. */
CUresult sc_attribute_check(CUlaunchAttributeID id, const CUlaunchAttributeValue *value);
/* Records an event that a launch asks for. */
CUresult sc_event_record(CUevent handle, sc_stream *stream);
CUresult sc_event_check(CUevent handle, int flags);
/* With sc_mutex held: what a task in this stream comes after, with room for one more. The caller frees
 * *ret_before. */
CUresult sc_stream_before(sc_stream *stream, sc_task ***ret_before, size_t *ret_n);
/* With sc_mutex held: has it been destroyed since it was found? */
CUresult sc_stream_check(const sc_stream *stream);
uint64_t sc_thread_id(void);
uint64_t sc_next_id(void);

sc_work *sc_host_work_create(CUhostFn function, void *user);
CUDA_HOST_NODE_PARAMS sc_host_params(const sc_work *work);

/* ---- capture and graphs (capture.c, graph.c, exec.c). With sc_mutex held. ---- */

/* Adds the work to the graph that the stream is being captured into; consumes the reference. */
CUresult sc_capture_add(sc_stream *stream, sc_work *work);
CUresult sc_capture_record(sc_stream *stream, sc_event *event);
CUresult sc_capture_wait(sc_stream *stream, sc_event *event);
/* An operation that a capture cannot hold: ends its hope and returns `code`. */
CUresult sc_capture_invalidate(sc_capture *capture, CUresult code);
/* Before a call that a capture in progress cannot bear, such as cuMemAlloc: spoils it and returns 900. */
CUresult sc_capture_forbids(void);
/* Would legacy-stream work tie into a capture? Then 906. */
CUresult sc_capture_implicit(sc_context *context);
/* A synchronisation of the whole context while one of its streams is being captured: 900. */
CUresult sc_capture_context(sc_context *context);
void sc_capture_forget_event(sc_event *event);
void sc_capture_leave(sc_stream *stream);

/* ---- memory (memory.c) ---- */

typedef enum sc_block_kind {
    SC_BLOCK_DEVICE,
    SC_BLOCK_HOST,
    SC_BLOCK_REGISTERED,
    SC_BLOCK_MANAGED,
    SC_BLOCK_MAPPED,
    SC_BLOCK_VARIABLE
} sc_block_kind;

typedef struct sc_pages sc_pages;
typedef struct sc_physical sc_physical;

typedef struct sc_block {
    sc_object object; /* context: NULL where it does not end with one (pools, mappings, variables) */
    sc_block_kind kind;
    sc_context *context; /* whose it is; NULL: of a pool, or mapped */
    uint64_t start;
    size_t bytes;
    unsigned flags; /* cuMemHostAlloc's or cuMemHostRegister's */
    sc_device *device;
    sc_pool *pool;
    sc_pages *pages; /* of managed memory: what was advised */
    size_t n_pages;
    sc_physical *physical;   /* what is mapped */
    bool in_graph, is_out;   /* of an allocation node; by a launch of it, and not freed since (graphmem.c) */
    atomic_bool sync_memops; /* kept, without effect */
    uint64_t id;
} sc_block;

/* A block as wished: its kind, device, context, bytes, flags and what else is known of it before others can
 * find it. Device memory; or memory that is there already, from `start` on. */
CUresult sc_block_create(const sc_block *wish, void *start, sc_block **ret_block);
/* The same in two steps: one that nobody can find yet (NULL: out of memory), then sc_object_publish. */
sc_block *sc_block_make(const sc_block *wish, void *start);
sc_block *sc_block_at(uint64_t start); /* NULL: none begins there */
sc_block *sc_block_around(uint64_t address);
bool sc_block_of_host(const sc_block *block);
/* Zeroed host memory of the current context, as a block as wished. */
CUresult sc_host_alloc(const sc_block *wish, void **ret_start);
/* May kernels of the context touch what is there? */
bool sc_memory_within_reach(const sc_context *context, uint64_t address);
/* Ends a block or an array once its context has come to rest. */
CUresult sc_end_at_rest(sc_object *object);

/* ---- arrays (array.c) ---- */

typedef struct sc_array {
    sc_object object;
    CUDA_ARRAY3D_DESCRIPTOR descriptor;
    uint64_t start; /* 0: nothing is mapped */
    size_t row_bytes, rows, layers;
} sc_array;

sc_array *sc_array_find(CUarray handle); /* NULL: not one */

/* ---- virtual memory (virtual.c) ---- */

/* Leaves the addresses reserved. */
void sc_mapping_end(sc_block *block);

/* Allocating and freeing while a stream is captured, and freeing what a launched graph left out. (graphmem.c)
 */
CUresult sc_graph_alloc(sc_stream *stream, sc_device *device, size_t bytes, CUdeviceptr *ret_address);
/* False: the stream is not captured. */
bool sc_graph_free(sc_stream *stream, sc_block *block, CUresult *ret_result);
/* The same where no stream is captured; false: it is no graph's memory. */
bool sc_graph_give_back(sc_block *block, CUresult *ret_result);

/* ---- pools (pool.c) ---- */

/* Memory of a pool was freed. */
void sc_pool_take_back(sc_pool *pool, size_t bytes);
/* most_bytes: that it may hold; 0: as much as there is. */
sc_pool *sc_pool_create(sc_device *device, bool is_default, uint64_t most_bytes);

/* ---- modules, functions, libraries (module.c, jit.c, function.c, library.c) ---- */

typedef struct sc_function sc_function;

typedef struct sc_module {
    sc_object object;
    ptx_module *ptx;     /* NULL: machine code alone */
    sc_program *program; /* NULL: cannot be executed, `refusal` says why */
    char refusal[512];
    struct sc_library *library; /* that it was loaded for; NULL: by cuModuleLoad */
    kr__cubin *cubin;           /* what the real driver would load; NULL: PTX alone */
    size_t n_functions;
    sc_function **functions;
    size_t n_variables;
    struct sc_block **variables;
} sc_module;

/* What the driver answers of a kernel: by the cubin where there is one, else by the machine's estimate. */
struct sc_function {
    sc_object object; /* context: the module's */
    sc_module *module;
    const char *name;
    int index;    /* in the program, -1: cannot be executed */
    bool is_open; /* asks for what only a linker could give: counted, and not found by its name */
    int registers;
    int bound, max_threads; /* by the kernel's directives; by its registers too */
    size_t shared_bytes, const_bytes, local_bytes;
    unsigned reqntid[3];
    int ptx_version, binary_version;
    size_t n_params, param_bytes;
    kr_image_param *params;
    atomic_int max_dynamic_shared;
    atomic_int carveout, cluster_scheduling;
    atomic_int cluster[3]; /* required dimensions; 0: none */
    atomic_bool non_portable_cluster;
    atomic_bool loaded;
    struct sc_old_launch *old; /* what cuParamSet and its kin were told; NULL: nothing (launch.c) */
};

typedef struct sc_jit {
    unsigned n;
    const CUjit_option *options;
    void **values;
} sc_jit;

/* Are these options and values that the compiler knows? Where they are, but cannot be met, the code that
 * loading answers. */
CUresult sc_jit_check(const sc_jit *jit);
CUresult sc_jit_refusal(const sc_jit *jit, int target, int device);
/* CU_JIT_MAX_REGISTERS applied to an estimate. */
int sc_jit_registers(const sc_jit *jit, int registers);
/* Texts for the caller's log buffers. */
void sc_jit_report(const sc_jit *jit, const char *info, const char *error);

/* `bytes` 0: the image's own headers say how long it is. `library`: that it is loaded for, or NULL. */
CUresult sc_module_load(sc_context *context, const void *image, size_t bytes, const sc_jit *jit,
                        struct sc_library *library, sc_module **ret_module);
void sc_module_unload(sc_module *module);
CUresult sc_module_file(const char *path, char **ret_data, size_t *ret_bytes);
sc_function *sc_module_function(sc_module *module, const char *name);
CUresult sc_module_global(sc_module *module, const char *name, CUdeviceptr *ret_address, size_t *ret_bytes);
/* What is looked at of a library's image before anything of it is asked for. */
CUresult sc_image_check(const void *image, size_t bytes);
/* The names of the kernels in an image of any kind, as the first device has them that takes it. Both freed by
 * the caller: free(*ret_names). */
CUresult sc_image_kernels(const void *image, size_t bytes, char ***ret_names, size_t *ret_n);
/* How many bytes from the address on can be read, and written. */
size_t sc_mapped_bytes(const void *address, bool writable);
/* A CUfunction, or a CUkernel cast to one: then its function in `context`. */
CUresult sc_function_in(sc_context *context, CUfunction handle, sc_function **ret_function);

CUresult sc_function_attribute(const sc_function *function, CUfunction_attribute attribute, int *ret_value);
CUresult sc_function_set_attribute(sc_function *function, CUfunction_attribute attribute, int value);
CUresult sc_kernel_function(sc_context *context, CUkernel handle, sc_function **ret_function);

/* Resident blocks a multiprocessor. */
int sc_occupancy(const sc_function *function, int block_threads, size_t dynamic_shared_bytes);

/* A launch as a graph's node, and what it was made of: valid as long as the work is. (launch.c) */
CUresult sc_launch_node(const CUDA_KERNEL_NODE_PARAMS *params, bool cooperative, sc_work **ret_work);
CUresult sc_launch_params(sc_work *work, CUDA_KERNEL_NODE_PARAMS *ret_params);
bool sc_launch_is_cooperative(const sc_work *work);

/* Is a cluster of these blocks one that the function may have, in whole numbers in the grid? (launch.c) */
CUresult sc_cluster_check(const sc_function *function, const unsigned dims[3], const unsigned grid[3]);

/* ---- what the checkers say at the end (leaks.c) ---- */

void sc_leaks_begin(void); /* at its end this process tells what was found */
/* Tells what was made in the context and still is, just before it ends. NULL: in all of them. */
void sc_leaks_tell(const sc_context *context);

/* ---- linking (link.c) ---- */

/* The section of a linked cubin that carries the PTX it was made of. */
#define SC_PTX_SECTION ".softcuda.ptx"

#endif
