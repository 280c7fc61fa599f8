/* SPDX-License-Identifier: Apache-2.0 */
/* Which driver, which devices, which ops. */

#include <fnmatch.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "checkkern.h"
#include "cli.h"

/* ---- the driver ---- */

static void print_log(void *user, kr_log_level level, const char *text)
{
    (void)user, (void)level;
    fprintf(stderr, "kregistry: %s\n", text);
}

static kr_status open_runtime(session *s, const invocation *cli, const char *driver, kr_error *err)
{
    kr_runtime_options options = {.struct_size = sizeof options, .driver = driver};
    if (cli_has(cli, OPT_VERBOSE))
        options.log = print_log;
    return kr_runtime_create(&options, &s->runtime, err);
}

/* The first of the places, told from this program's folder, that is there. */
static bool find_beside(const char *const *places, size_t n_places, char *path, size_t bytes)
{
    char program[2048];
    ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);
    if (n <= 0)
        return false;
    program[n] = '\0';
    *strrchr(program, '/') = '\0';
    for (size_t i = 0; i < n_places; i++) {
        snprintf(path, bytes, "%s/%s", program, places[i]);
        if (access(path, R_OK) == 0)
            return true;
    }
    return false;
}

/* softcuda's place: told, installed, or in the build tree. */
static bool find_softcuda(char *path, size_t bytes)
{
    static const char *const places[] = {
        "../lib/kregistry/softcuda/libcuda.so.1", "../lib64/kregistry/softcuda/libcuda.so.1",
        "../lib/x86_64-linux-gnu/kregistry/softcuda/libcuda.so.1",
        "../lib/aarch64-linux-gnu/kregistry/softcuda/libcuda.so.1", "../softcuda/driver/libcuda.so.1"};
    const char *told = getenv("KREGISTRY_SOFTCUDA");
    if (!told || !*told)
        return find_beside(places, sizeof places / sizeof *places, path, bytes);
    snprintf(path, bytes, "%s", told);
    return true;
}

static kr_status open_softcuda(session *s, const invocation *cli, kr_error *err)
{
    s->driver = s->driver_path;
    const char *simulated = getenv("KREGISTRY_SOFTCUDA_DEVICES");
    if (find_softcuda(s->driver_path, sizeof s->driver_path)) {
        kr_status status = open_runtime(s, cli, s->driver_path, err);
        if (status == KR_NOT_ON_THIS_MACHINE && simulated && !*simulated)
            tool_advice(err,
                        "KREGISTRY_SOFTCUDA_DEVICES is empty: no devices. Name some, as sm_90, or unset it.");
        return status;
    }
    tool_fail(err, KR_NOT_ON_THIS_MACHINE, "softcuda's libcuda.so.1 is not beside this program");
    tool_advice(err, "Set KREGISTRY_SOFTCUDA to its path.");
    return err->status;
}

static kr_status open_any(session *s, const invocation *cli, kr_error *err)
{
    kr_error second;
    s->driver = "nvidia";
    kr_status status = open_runtime(s, cli, NULL, err);
    if (status != KR_NOT_ON_THIS_MACHINE)
        return status;
    if (open_softcuda(s, cli, &second)) {
        /* What softcuda itself answered is the one to act on; that it is not there is not. */
        if (getenv("KREGISTRY_SOFTCUDA") || second.api == KR_API_CUDA)
            *err = second;
        return err->status;
    }
    static const char said[] = "no NVIDIA driver: ";
    const char *reason = err->message;
    if (strncmp(reason, said, strlen(said)) == 0)
        reason += strlen(said);
    fprintf(stderr, "%s%s; running on softcuda\n", said, reason);
    if (cli_has(cli, OPT_VERBOSE))
        fputs(err->log, stderr);
    return KR_OK;
}

static kr_status open_driver(session *s, const invocation *cli, kr_error *err)
{
    const char *which = cli_value(cli, OPT_DRIVER);
    if (!which)
        which = getenv("KREGISTRY_DRIVER");
    if (!which || !*which || strcmp(which, "auto") == 0)
        return open_any(s, cli, err);
    if (strcmp(which, "softcuda") == 0)
        return open_softcuda(s, cli, err);
    s->driver = which;
    return open_runtime(s, cli, strcmp(which, "nvidia") == 0 ? NULL : which, err);
}

/* ---- NVRTC ---- */

static bool by_variable(void)
{
    const char *told = getenv("KREGISTRY_NVRTC");
    return told && *told;
}

/* NULL: where the library looks, which knows KREGISTRY_NVRTC. */
static const char *nvrtc_path(const invocation *cli)
{
    static const char *const fetched = "../../.deps/nvrtc"; /* by scripts/quickstart, into the checkout */
    static char beside[2100];
    const char *told = cli_value(cli, OPT_NVRTC);
    if (told || by_variable())
        return told;
    return find_beside(&fetched, 1, beside, sizeof beside) ? beside : NULL;
}

bool wants_no_nvrtc(const invocation *cli)
{
    const char *told = cli_has(cli, OPT_NVRTC) ? cli_value(cli, OPT_NVRTC) : getenv("KREGISTRY_NVRTC");
    return told && strcmp(told, "none") == 0;
}

/* One that is named must do; the library looks for another only where none is. */
static bool names_nvrtc(const invocation *cli)
{
    return !wants_no_nvrtc(cli) && (cli_has(cli, OPT_NVRTC) || by_variable());
}

kr_status open_nvrtc(const invocation *cli, int driver_version, kr_nvrtc **ret_nvrtc, kr_error *err)
{
    if (wants_no_nvrtc(cli)) {
        tool_fail(err, KR_NOT_ON_THIS_MACHINE, "NVRTC is switched off");
        tool_advice(err, "Leave out --nvrtc none and KREGISTRY_NVRTC=none.");
        return err->status;
    }
    kr_status status = kr_nvrtc_open_for(driver_version, nvrtc_path(cli), ret_nvrtc, err);
    if (status != KR_NOT_ON_THIS_MACHINE || !names_nvrtc(cli))
        return status;
    const char *line_end = strchr(err->log, '\n');
    if (line_end && !line_end[1]) /* one place was tried, and the message says how that went */
        err->log[0] = '\0';
    if (cli_has(cli, OPT_NVRTC))
        tool_advice(
            err, "Give --nvrtc the libnvrtc.so file of CUDA 11.2 or later, or its folder, or leave it out.");
    else
        tool_advice(
            err,
            "Set KREGISTRY_NVRTC to the libnvrtc.so file of CUDA 11.2 or later, or its folder, or unset it.");
    return err->status = KR_INVALID_ARGUMENT;
}

kr_status open_cache(const invocation *cli, kr_cache **ret_cache, kr_error *err)
{
    *ret_cache = NULL;
    if (cli_has(cli, OPT_NO_CACHE))
        return KR_OK;
    kr_status status = kr_cache_create(cli_value(cli, OPT_CACHE_DIR), NULL, ret_cache, err);
    return status == KR_NOT_FOUND ? KR_OK : status;
}

/* ---- devices ---- */

static bool is_device(const kr_device_info *info, const char *name)
{
    char ordinal[16];
    snprintf(ordinal, sizeof ordinal, "%d", info->ordinal);
    if (strcmp(name, ordinal) == 0 || strcasecmp(name, info->uuid) == 0 || strcasecmp(name, info->pci) == 0)
        return true;
    /* as nvidia-smi and lspci shorten them: eight digits of domain, or none */
    const char *bus = strchr(info->pci, ':');
    const char *given = strlen(name) > 8 ? strchr(name, ':') : name;
    return bus && given && strcasecmp(given + (*given == ':'), bus + 1) == 0;
}

static kr_device *find_device(const session *s, const char *name)
{
    for (size_t i = 0; i < kr_runtime_n_devices(s->runtime); i++) {
        kr_device *device = kr_runtime_device(s->runtime, i);
        if (is_device(kr_device_get_info(device), name))
            return device;
    }
    return NULL;
}

static kr_status no_such_device(const session *s, const char *name, kr_error *err)
{
    char text[300], all[900] = "";
    for (size_t i = 0; i < kr_runtime_n_devices(s->runtime); i++) {
        size_t used = strlen(all);
        device_text(kr_runtime_device(s->runtime, i), text, sizeof text);
        snprintf(all + used, sizeof all - used, "%s%s", i ? ", " : "", text);
    }
    tool_fail(err, KR_NOT_FOUND, "no device \"%s\"; there is %s", name, all);
    tool_advice(err, "`kregistry devices` lists ordinals, UUIDs and PCI ids.");
    return err->status;
}

kr_status no_device(kr_error *err)
{
    tool_fail(err, KR_NOT_ON_THIS_MACHINE, "the driver has no device");
    tool_advice(err, "Make one visible (CUDA_VISIBLE_DEVICES), or use --driver softcuda.");
    return err->status;
}

static kr_status choose_devices(session *s, const invocation *cli, kr_error *err)
{
    size_t n = kr_runtime_n_devices(s->runtime);
    const char *list = cli_value(cli, OPT_DEVICE);
    s->devices = tool_alloc((n + (list ? strlen(list) : 0)) * sizeof *s->devices);
    if (!list || strcmp(list, "all") == 0) {
        for (; s->n_devices < n; s->n_devices++)
            s->devices[s->n_devices] = kr_runtime_device(s->runtime, s->n_devices);
        return KR_OK;
    }
    for (const char *at = list;; at++) {
        char name[64];
        size_t length = strcspn(at, ",");
        snprintf(name, sizeof name, "%.*s", (int)length, at);
        if (strcmp(name, "all") == 0)
            return tool_refuse(err, "Give --device all, or a list.", "--device %s: all is no part of a list",
                               list);
        kr_device *device = find_device(s, name);
        if (!device)
            return no_such_device(s, name, err);
        for (size_t i = 0; i < s->n_devices; i++)
            if (s->devices[i] == device)
                return tool_refuse(err, "Name each once.", "--device %s: device %d is named twice", list,
                                   kr_device_get_info(device)->ordinal);
        s->devices[s->n_devices++] = device;
        at += length;
        if (!*at)
            return KR_OK;
    }
}

char *device_text(const kr_device *device, char *to, size_t bytes)
{
    char cc[KR_CC_TEXT_BYTES];
    const kr_device_info *info = kr_device_get_info(device);
    snprintf(to, bytes, "%d %s (%s%s)", info->ordinal, info->name, kr_cc_format(info->cc, cc),
             info->simulated ? ", softcuda" : "");
    return to;
}

/* ---- ops ---- */

static kr_status add_ops(kr_registry *registry, const invocation *cli, kr_error *err)
{
    for (size_t i = 0; i < cli->n_values[OPT_OPS]; i++) {
        struct stat info;
        const char *path = cli->values[OPT_OPS][i];
        if (stat(path, &info))
            return tool_fail_errno(err, KR_IO, "--ops %s", path);
        size_t length = strlen(path);
        bool is_source = length > 3 && strcmp(path + length - 3, ".cu") == 0;
        kr_status status = S_ISDIR(info.st_mode) ? kr_registry_add_directory(registry, path, err)
                           : is_source           ? kr_registry_add_file(registry, path, err)
                                                 : kr_registry_add_pack_file(registry, path, err);
        if (status)
            return status;
    }
    return KR_OK;
}

static kr_status open_registry(session *s, const invocation *cli, bool no_builtin_ops, kr_error *err)
{
    bool none = wants_no_nvrtc(cli);
    kr_registry_options options = {.struct_size = sizeof options,
                                   .no_builtin_ops = no_builtin_ops,
                                   .no_nvrtc = none,
                                   .no_cache = s->compiles_anew || cli_has(cli, OPT_NO_CACHE),
                                   .cache = cli_value(cli, OPT_CACHE_DIR),
                                   .nvrtc = none ? NULL : nvrtc_path(cli)};
    kr_status status = kr_registry_create(s->runtime, &options, &s->registry, err);
    return status ? status : add_ops(s->registry, cli, err);
}

kr_status session_open_registry(session *s, const invocation *cli, kr_error *err)
{
    return open_registry(s, cli, false, err);
}

kr_status session_open_shipped(session *s, const invocation *cli, kr_error *err)
{
    return open_registry(s, cli, cli_has(cli, OPT_OPS) && cli->n_operands == 0, err);
}

kr_status session_open_driver(session *s, const invocation *cli, kr_error *err)
{
    kr_status status = cli->json || cli_has(cli, OPT_WORKER) ? claim_stdout(err) : KR_OK;
    if (!status)
        status = open_driver(s, cli, err);
    return status ? status : choose_devices(s, cli, err);
}

kr_status session_open(session *s, const invocation *cli, bool needs_driver, kr_error *err)
{
    kr_nvrtc *nvrtc = NULL;
    kr_status status = needs_driver ? session_open_driver(s, cli, err) : KR_OK;
    if (!status && names_nvrtc(cli)) /* the registry would do without it */
        status = open_nvrtc(cli, 0, &nvrtc, err);
    kr_nvrtc_close(&nvrtc);
    return status ? status : session_open_registry(s, cli, err);
}

void session_close(session *s)
{
    kr_registry_destroy(&s->registry);
    kr_runtime_destroy(&s->runtime);
    free(s->devices);
    *s = (session){0};
}

static kr_status check_type(const kr_op *op, const char *name, kr_error *err)
{
    const char *names[KR_MAX_OP_TYPES];
    for (size_t i = 0; i < op->n_types; i++) {
        names[i] = kr_type_name(op->types[i]);
        if (strcmp(name, names[i]) == 0)
            return KR_OK;
    }
    tool_fail(err, KR_INVALID_ARGUMENT, "%s has no type \"%s\"", op->name, name);
    if (op->n_types)
        list_all(err, names, op->n_types); /* every type is near every other */
    else
        tool_advice(err, "%s has one type; leave --type out.", op->name);
    return err->status;
}

/* `name` may be an op's plain name, where it has several types: the first of them is meant. */
static const kr_op *op_by_plain_name(kr_registry *registry, const char *name)
{
    const kr_op *op;
    for (size_t i = 0; (op = kr_registry_op(registry, i)); i++)
        if (strcmp(op->name, name) == 0)
            return op;
    return NULL;
}

/* The registry compares full names; a plain one is near another plain one. */
static void suggest_op(kr_registry *registry, const char *name, kr_error *err)
{
    size_t n = kr_registry_n_ops(registry);
    const char **names = tool_alloc(n * sizeof *names);
    for (size_t i = 0; i < n; i++)
        names[i] = kr_registry_op(registry, i)->name;
    const char *near = strchr(name, '.') ? NULL : nearest(name, names, n);
    if (near)
        tool_advice(err, "Did you mean \"%s\"?", near);
    free(names);
}

/* kr_registry_find with a better suggestion for plain names. */
static kr_status find_full_name(kr_registry *registry, const char *name, const kr_op **ret_op,
                                kr_type *ret_type, kr_error *err)
{
    kr_status status = kr_registry_find(registry, name, ret_op, ret_type, err);
    if (status == KR_NOT_FOUND)
        suggest_op(registry, name, err);
    return status;
}

kr_status find_op(const invocation *cli, kr_registry *registry, const char *name, const kr_op **ret_op,
                  kr_type *ret_type, kr_error *err)
{
    char full_name[128];
    const char *dot = strchr(name, '.');
    if (dot && !dot[1])
        return tool_refuse(err, "Give a type behind the dot, or leave the dot out.", "%s: no type", name);
    const char *type = cli_value(cli, OPT_TYPE);
    const kr_op *op = op_by_plain_name(registry, name);
    if (!op || (!op->n_types && !type)) {
        kr_status status = find_full_name(registry, name, ret_op, ret_type, err);
        if (!status && type && strcmp(type, kr_type_name(*ret_type)) != 0)
            status =
                tool_refuse(err, "Leave out --type, or the name's own.", "%s is not of type %s", name, type);
        return status;
    }
    kr_status status = type ? check_type(op, type, err) : KR_OK;
    if (status)
        return status;
    snprintf(full_name, sizeof full_name, "%s.%s", name, type ? type : kr_type_name(op->types[0]));
    return kr_registry_find(registry, full_name, ret_op, ret_type, err);
}

kr_status check_variant(const kr_op *op, const char *variant, kr_error *err)
{
    const char *names[KR_MAX_OP_VARIANTS];
    for (size_t i = 0; i < op->n_variants; i++) {
        names[i] = op->variants[i].name;
        if (!variant || strcmp(variant, names[i]) == 0)
            return KR_OK;
    }
    tool_fail(err, KR_INVALID_ARGUMENT, "%s has no variant \"%s\"", op->name, variant);
    suggest(err, variant, names, op->n_variants);
    return err->status;
}

bool instance_matches(const kr_op *op, kr_type type, const char *glob)
{
    char name[64];
    return !glob || fnmatch(glob, op->name, 0) == 0 ||
           fnmatch(glob, ck_full_name(op, type, name, sizeof name), 0) == 0;
}

bool op_matches(const kr_op *op, const char *glob)
{
    for (size_t i = 0; i < (op->n_types ? op->n_types : 1); i++)
        if (instance_matches(op, op->types[i], glob))
            return true;
    return false;
}

/* A plain name gets the registry's answer, which suggests the nearest. */
kr_status none_matches(kr_registry *registry, const char *glob, kr_error *err)
{
    const kr_op *op;
    if (!strpbrk(glob, "*?[") && find_full_name(registry, glob, &op, NULL, err))
        return err->status;
    tool_fail(err, KR_NOT_FOUND, "no op matches \"%s\"", glob);
    tool_advice(err, "`kregistry list` shows all ops.");
    return err->status;
}

/* ---- sizes ---- */

/* Elements a side, by how many sizes there are: the work of a first run stays small. */
static uint64_t first_size(size_t n_free)
{
    return n_free <= 1 ? 1 << 20 : n_free == 2 ? 1 << 9 : 1 << 6;
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t most(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static bool has_word(const char *text, const char *word)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
    for (text += strcspn(text, letters); *text; text += strcspn(text, letters)) {
        size_t n = strspn(text, letters);
        if (n == strlen(word) && strncmp(text, word, n) == 0)
            return true;
        text += n;
    }
    return false;
}

/* Is its minimum a matter of other sizes? A pitch is, of a width. */
static bool follows(const kr_op *op, size_t arg)
{
    for (size_t i = 0; op->args[arg].minimum && i < op->n_args; i++)
        if (has_word(op->args[arg].minimum, op->args[i].name))
            return true;
    return false;
}

static kr_status too_small(const kr_op *op, size_t arg, uint64_t value, uint64_t minimum, kr_error *err)
{
    char number[24];
    const char *text = op->args[arg].minimum, *name = op->args[arg].name;
    snprintf(number, sizeof number, "%" PRIu64, minimum);
    bool same = strcmp(text, number) == 0;
    tool_fail(err, KR_INVALID_ARGUMENT, "%s is %" PRIu64 " but must be at least %s%s%s", name, value, text,
              same ? "" : " = ", same ? "" : number);
    about_op(err, op->name);
    tool_advice(err, "Give %s %s or more.", name, number);
    return err->status;
}

/* How many sizes an op has, and how many of them the others do not give. */
static size_t count_sizes(const kr_op *op, size_t *ret_n_free)
{
    size_t n = 0;
    *ret_n_free = 0;
    for (size_t i = 0; i < op->n_args; i++) {
        n += op->args[i].role == KR_ROLE_SIZE;
        *ret_n_free += op->args[i].role == KR_ROLE_SIZE && !follows(op, i);
    }
    return n;
}

static kr_status wrong_count(const invocation *cli, const kr_op *op, size_t n_sizes, size_t n_free,
                             kr_error *err)
{
    char names[256] = "";
    for (size_t i = 0; i < op->n_args; i++)
        if (op->args[i].role == KR_ROLE_SIZE)
            snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s", *names ? ", " : "",
                     op->args[i].name);
    tool_fail(err, KR_INVALID_ARGUMENT, "--shape %s: %s has %zu size%s%s%s", cli_value(cli, OPT_SHAPE),
              op->name, n_sizes, n_sizes == 1 ? "" : "s", n_sizes ? ": " : "", names);
    if (n_free < n_sizes)
        tool_advice(err, "Give all, with x between them, or the %zu that do not follow from others.", n_free);
    else
        tool_advice(err, n_sizes ? "Give a number for each, with x between them." : "Leave --shape out.");
    return err->status;
}

/* Numbers for all sizes, or for those that do not follow from others. */
kr_status read_sizes(const invocation *cli, const kr_op *op, kr_type type, uint64_t *ret_sizes,
                     bool *ret_given, kr_error *err)
{
    uint64_t given[KR_MAX_OP_ARGS], n_value = 0, minimum;
    size_t n_given = 0, elements, bytes, n_free, n_sizes = count_sizes(op, &n_free), taken = 0;
    kr_status status = cli_numbers(cli, OPT_SHAPE, 'x', given, KR_MAX_OP_ARGS, &n_given, err);
    if (!status)
        status = cli_number(cli, OPT_N, &n_value, err);
    if (status)
        return status;
    if (cli_has(cli, OPT_SHAPE) && cli_has(cli, OPT_N))
        return tool_refuse(err, "Leave one of them out.",
                           "--n %s and --shape %s: only one of them can give the sizes",
                           cli_value(cli, OPT_N), cli_value(cli, OPT_SHAPE));
    if (cli_has(cli, OPT_N) && !n_sizes)
        return tool_refuse(err, "Leave --n out.", "--n %s: %s has no size", cli_value(cli, OPT_N), op->name);
    if (cli_has(cli, OPT_SHAPE) && n_given != n_free && n_given != n_sizes)
        return wrong_count(cli, op, n_sizes, n_free, err);
    for (size_t i = 0; i < op->n_args; i++) {
        if (op->args[i].role != KR_ROLE_SIZE)
            continue;
        status = kr_op_arg_minimum(op, i, ret_sizes, &minimum, err);
        if (status)
            return status;
        ret_sizes[i] = follows(op, i) && n_given != n_sizes ? minimum
                       : n_given                            ? given[taken++]
                       : cli_has(cli, OPT_N)
                           ? n_value
                           : most(minimum, least(first_size(n_free), ck_size_limit(op, i, type)));
        if (ret_sizes[i] < minimum)
            return too_small(op, i, ret_sizes[i], minimum, err);
    }
    for (size_t i = 0; i < op->n_args && !status; i++)
        if (op->args[i].role != KR_ROLE_WORK)
            status = ck_measure(op, i, type, ret_sizes, &elements, &bytes, err);
    *ret_given = n_given || cli_has(cli, OPT_N);
    return status;
}
