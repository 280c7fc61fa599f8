/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_H
#define CLI_H

/* The command's frame: its options, its session with a driver, its output. One file a subcommand. */

#include <jansson.h>
#include <kregistry/kregistry.h>

#include "tool.h"

/* ---- options ---- */

/* X(enumerator, name, letter or 0, value or NULL, help). One table for all commands; each says which it
 * takes. */
#define OPTION_LIST(X)                                                                                  \
    X(DRIVER, "driver", 0, "WHICH", "auto, nvidia, softcuda, or a libcuda file (KREGISTRY_DRIVER)")     \
    X(DEVICE, "device", 0, "LIST", "all, or ordinals, UUIDs, PCI ids, with commas")                     \
    X(NVJITLINK, "nvjitlink", 0, "WHERE", "an nvJitLink file or folder, or none (KREGISTRY_NVJITLINK)") \
    X(NVRTC, "nvrtc", 0, "WHERE", "an NVRTC file or folder, or none (KREGISTRY_NVRTC)")                 \
    X(CACHE_DIR, "cache-dir", 0, "DIR", "where what is compiled is kept (KREGISTRY_CACHE_DIR)")         \
    X(NO_CACHE, "no-cache", 0, NULL, "compile always, and keep nothing")                                \
    X(OPS, "ops", 0, "PATH", "more ops: a pack, a folder of .cu files, or one; may be repeated")        \
    X(JSON, "json", 0, NULL, "print one JSON document")                                                 \
    X(COLOR, "color", 0, "WHEN", "auto, always, never")                                                 \
    X(QUIET, "quiet", 'q', NULL, "no progress")                                                         \
    X(VERBOSE, "verbose", 'v', NULL, "log what the library does")                                       \
    X(HELP, "help", 'h', NULL, "this text")                                                             \
    X(RESOLVE, "resolve", 0, NULL, "what would run on each device, and how")                            \
    X(CC, "cc", 0, "X.Y", "of machines with this compute capability")                                   \
    X(DRIVER_VERSION, "driver-version", 0, "X.Y", "of a machine with this driver")                      \
    X(NVRTC_ARCHS, "nvrtc-archs", 0, "LIST", "of a machine whose NVRTC knows these: 75,80,90, or none") \
    X(NO_NVRTC, "no-nvrtc", 0, NULL, "from what is shipped alone")                                      \
    X(N, "n", 'n', "N", "every size that does not follow from others")                                  \
    X(SHAPE, "shape", 0, "AxBxC", "the sizes, one by one")                                              \
    X(TYPE, "type", 0, "TYPE", "the element type: f32, f64")                                            \
    X(VARIANT, "variant", 0, "NAME", "this variant alone")                                              \
    X(BLOCK, "block", 0, "XxYxZ", "this block size")                                                    \
    X(CLASS, "class", 0, "NAME", "data of this class alone: ordinary, nan, mixed, ...")                 \
    X(SHIFT, "shift", 0, "BYTES", "every buffer so far off a 256-byte boundary")                        \
    X(SEED, "seed", 0, "N", "of the made data")                                                         \
    X(REPEAT, "repeat", 0, "N", "timed launches")                                                       \
    X(SPLIT, "split", 0, NULL, "one problem over all devices")                                          \
    X(TRACE, "trace", 0, "FILE", "the launches as Chrome trace JSON")                                   \
    X(QUICK, "quick", 0, NULL, "fewer and smaller shapes")                                              \
    X(LIMIT, "limit", 0, "SECONDS", "the longest that one check may take: 120")                         \
    X(MAX_CC, "max-cc", 0, "X.Y", "no variant that asks for more")                                      \
    X(OUTPUT, "output", 'o', "FILE", "where the result goes")                                           \
    X(KIND, "kind", 0, "KIND", "ptx, cubin, fatbin or ltoir; else by the ending of the output")         \
    X(ARCH, "arch", 0, "ARCH", "sm_90, 90a, compute_75, ...; of a pack's machine code, with commas")    \
    X(PTX, "ptx", 0, "LIST", "PTX for these, which later devices take too: 75,90")                      \
    X(NO_SOURCE, "no-source", 0, NULL, "without the ops' sources")                                      \
    X(DEPFILE, "depfile", 0, "FILE", "what the output is made from, for Ninja and Make")                \
    X(INCLUDE, "include", 'I', "DIR", "a folder of headers")                                            \
    X(DEFINE, "define", 'D', "NAME[=VALUE]", "a macro")                                                 \
    X(OPTION, "option", 0, "TEXT", "a further option of NVRTC's or nvJitLink's")                        \
    X(ISA, "isa", 0, "X.Y", "this version of PTX")                                                      \
    X(LOWEST, "lowest", 0, NULL, "the lowest level that its instructions allow")                        \
    X(TARGET, "target", 0, "ARCH", "this target, sm_60")                                                \
    X(NAME, "name", 0, "EXPR", "a C++ name to be given its lowered name")                               \
    X(WORKER, "worker", 0, "PARENT", NULL)

typedef enum option_id {
#define OPTION_ENUM(id, name, letter, value, help) OPT_##id,
    OPTION_LIST(OPTION_ENUM)
#undef OPTION_ENUM
        N_OPTIONS
} option_id;

#define BIT(id) (UINT64_C(1) << OPT_##id)
#define GLOBAL_OPTIONS                                                                         \
    (BIT(DRIVER) | BIT(DEVICE) | BIT(NVRTC) | BIT(CACHE_DIR) | BIT(NO_CACHE) | BIT(OPS) | BIT(JSON) | BIT(COLOR) | BIT(QUIET) | \
     BIT(VERBOSE) | BIT(HELP))

enum { MAX_INPUTS = 256 }; /* of a link */
enum { EXIT_DONE = 0, EXIT_NOT_SO = 1, EXIT_USAGE = 2, EXIT_NO_DEVICE = 3 };

typedef struct cli_command cli_command;

typedef struct invocation {
    const cli_command *command;
    const char **values[N_OPTIONS]; /* as often as given */
    size_t n_values[N_OPTIONS];
    char **operands;
    size_t n_operands;
    bool json;
} invocation;

struct cli_command {
    const char *name;
    const char *summary;
    const char *operands; /* "[GLOB]", "OP", "" */
    const char *example;
    uint64_t options; /* beside the global ones */
    size_t min_operands, max_operands;
    int (*run)(const invocation *cli);
};

int run_list(const invocation *cli);
int run_devices(const invocation *cli);
int run_explain(const invocation *cli);
int run_run(const invocation *cli);
int run_verify(const invocation *cli);
int run_compile(const invocation *cli);
int run_link(const invocation *cli);
int run_pack(const invocation *cli);
int run_embed(const invocation *cli);
int run_relevel(const invocation *cli);
int run_version(const invocation *cli);
int run_check(const invocation *cli);
int run_inspect(const invocation *cli);
int run_doctor(const invocation *cli);
int run_completion(const invocation *cli);

/* The option's last value; a flag's is "". NULL: not given. */
const char *cli_value(const invocation *cli, option_id id);
bool cli_has(const invocation *cli, option_id id);
/* *ret_value is left alone where the option was not given. */
kr_status cli_number(const invocation *cli, option_id id, uint64_t *ret_value, kr_error *err);
/* "31x33": up to max numbers. */
kr_status cli_numbers(const invocation *cli, option_id id, char separator, uint64_t *ret_values, size_t max,
                      size_t *ret_n, kr_error *err);

/* The nearest of n names, or NULL when none is near. */
const char *nearest(const char *name, const char *const *names, size_t n);
/* Advice for a name that is none of n: all of them; the nearest, else all. */
void list_all(kr_error *err, const char *const *names, size_t n);
void suggest(kr_error *err, const char *name, const char *const *names, size_t n);

/* ---- output ---- */

/* What makes good words green and bad ones red, and ends that: "" where `to` is to have no colours. */
const char *color(FILE *to, bool good);
const char *plain(FILE *to);
void set_color(const char *when); /* auto, always, never */

/* Says which op it is about, where it does not. */
void about_op(kr_error *err, const char *full_name);
/* Prints the error (JSON on standard output, else text on standard error) and returns the exit code. */
int cli_fail(const invocation *cli, const kr_error *err);
/* Before anything else is said: `json` for errors too. */
void start_output(bool json);
/* Prints the document and frees it. Returns code. */
int cli_print(json_t *whole, int code);
/* The same, in jansson's words for how. */
void write_json(json_t *line, size_t flags);
/* A large document is made in pieces, so that one of them at a time is more than its text: writes a piece and
 * frees it; prints the whole. */
void add_json(FILE *to, json_t *piece, size_t flags);
int cli_print_text(const char *text, int code);
void flush_json(void); /* where somebody waits for the line */
/* At the start: no file that is opened later takes the place of a standard one that is closed. */
bool open_standard_files(void);
/* From here on standard output is JSON's alone: what kernels and libraries print goes to standard error. */
kr_status claim_stdout(kr_error *err);
/* At the end: the code, or that of an output that could not be written, which is told. */
int end_output(int code);
/* Any text: bytes that a terminal would obey, but for the ends of lines and tabs, and what is no UTF-8, as \xNN. */
void put_text(FILE *to, const char *text);
/* Any bytes: those that are not UTF-8 as \xNN. */
json_t *json_any_text(const char *text);
json_t *json_text(const char *text); /* the same; null where NULL or empty */
/* "sm_90a" for machine code, "compute_90a" for what a driver compiles. */
char *arch_text(kr_image_kind kind, kr_cc arch, char text[24]);
json_t *json_arch(kr_image_kind kind, kr_cc arch);
json_t *json_number(double value); /* null where it is not finite */
json_t *json_dim3(const unsigned dim[3]);
char *version_text(int version, char text[16]); /* 13000 as "13.0" */
char *isa_text(int isa, char text[16]);         /* 87 as "8.7"; "" of 0 */

/* ---- sessions ---- */

/* An opened driver with the devices asked for, and a registry on it. */
typedef struct session {
    kr_runtime *runtime; /* NULL: no driver was wanted */
    kr_registry *registry;
    const char *driver; /* as a --driver option would say it */
    char driver_path[4096];
    kr_device **devices;
    size_t n_devices;
    bool compiles_anew; /* whatever is kept */
} session;

/* `needs_driver` false: a registry that explains. An NVRTC that is named must do. *s may be finished after a
 * failure too. */
kr_status session_open(session *s, const invocation *cli, bool needs_driver, kr_error *err);
void session_close(session *s);
/* Its halves: the runtime with its devices; the registry. */
kr_status session_open_driver(session *s, const invocation *cli, kr_error *err);
kr_status session_open_registry(session *s, const invocation *cli, kr_error *err);
/* The registry that a pack is made from: of what --ops names alone, where there is such and no GLOB names
 * others. */
kr_status session_open_shipped(session *s, const invocation *cli, kr_error *err);

/* The NVRTC that --nvrtc or KREGISTRY_NVRTC names, else the one that is found, for a driver (0: any).
 * KR_NOT_ON_THIS_MACHINE: there is none, or none is wanted. KR_INVALID_ARGUMENT: the one named does not do.
 */
kr_status open_nvrtc(const invocation *cli, int driver_version, kr_nvrtc **ret_nvrtc, kr_error *err);
/* NULL: there is to be none, or no folder for it. */
kr_status open_cache(const invocation *cli, kr_cache **ret_cache, kr_error *err);
bool wants_no_nvrtc(const invocation *cli);
bool nvrtc_knows(const kr_nvrtc *nvrtc, kr_cc arch);

/* For a driver that has none. */
kr_status no_device(kr_error *err);
/* "0 NVIDIA H200 (9.0)" */
char *device_text(const kr_device *device, char *to, size_t bytes);

/* ---- machines that are not here ---- */

enum { MAX_CCS = 64 };

/* "7.5,9.0,120": compute capabilities of devices, which have no suffix. */
kr_status read_ccs(const char *list, kr_cc ccs[MAX_CCS], size_t *ret_n, kr_error *err);
/* "75,90a,sm_100f": targets of images. */
kr_status read_targets(const char *list, kr_cc targets[MAX_CCS], size_t *ret_n, kr_error *err);

/* A machine, and the memory that its description points into: not to be copied. */
typedef struct machine_facts {
    kr_machine machine;
    int archs[MAX_CCS];
} machine_facts;

/* The NVRTC of this machine, where it has one. */
kr_status find_nvrtc_archs(const invocation *cli, machine_facts *facts, kr_error *err);
/* --driver-version: 12040 for 12.4; left alone where it was not given. */
kr_status read_driver_version(const invocation *cli, int *ret_version, kr_error *err);
/* Each of --nvrtc-archs and --driver-version that is given replaces a fact. */
kr_status read_facts(const invocation *cli, machine_facts *facts, kr_error *err);

/* ---- ops by name ---- */

/* Does the glob (NULL: any) match the op's name, or its name with a type? */
bool op_matches(const kr_op *op, const char *glob);
/* The same of one of its types. */
bool instance_matches(const kr_op *op, kr_type type, const char *glob);
/* For a glob that matched nothing. */
kr_status none_matches(kr_registry *registry, const char *glob, kr_error *err);
/* The op and type that an operand and --type name. KR_NOT_FOUND and KR_INVALID_ARGUMENT say what there is. */
kr_status find_op(const invocation *cli, kr_registry *registry, const char *name, const kr_op **ret_op,
                  kr_type *ret_type, kr_error *err);
/* Is there such a variant (NULL: any)? */
kr_status check_variant(const kr_op *op, const char *variant, kr_error *err);
/* The sizes of --shape or --n. Without either *ret_given is false and ret_sizes holds what suits a first run.
 */
kr_status read_sizes(const invocation *cli, const kr_op *op, kr_type type, uint64_t *ret_sizes,
                     bool *ret_given, kr_error *err);

#endif
