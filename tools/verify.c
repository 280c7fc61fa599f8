/* SPDX-License-Identifier: Apache-2.0 */

/*
 * verify runs each op in a child process, this program again with --worker: a kernel fault is fatal for every
 * device of a process, so it may end the checks of that op alone. The child tells its story on a pipe, one
 * JSON object a line: {"at": CASE} before each check, {"failure": FAILURE}, and at the end {"checks",
 * "failed", "unheld"}. What a kernel prints goes elsewhere (claim_stdout). A kernel that never ends is waited
 * for by a call that never returns; the alarm that every line winds up anew ends such a child, whatever has
 * become of its parent.
 */

#include <inttypes.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "checkkern.h"
#include "cli.h"

extern char **environ;

/* Failures told one by one for each op; the rest are counted. */
enum { MAX_TOLD = 20, LIMIT_S = 120, MAX_SHIFT = 1 << 20 };

/* ---- the command lines that check again ---- */

static void write_word(FILE *to, const char *word)
{
    static const char plain_bytes[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./:=,+@%-";
    if (*word && strspn(word, plain_bytes) == strlen(word)) {
        fprintf(to, " %s", word);
        return;
    }
    fputs(" '", to);
    for (; *word; word++)
        fputs(*word == '\'' ? "'\\''" : (char[]){*word, '\0'}, to);
    fputc('\'', to);
}

static void write_option(FILE *to, const invocation *cli, option_id id, const char *name)
{
    for (size_t i = 0; i < cli->n_values[id]; i++) {
        fprintf(to, " %s", name);
        write_word(to, cli->values[id][i]);
    }
}

/* Of one check, with the driver that was found. */
static json_t *repeat_check(const invocation *cli, const char *driver, const ck_case *one)
{
    char name[64], shape[CK_SHAPE_BYTES], *line = NULL;
    size_t bytes;
    FILE *to = tool_memory_file(&line, &bytes);
    fprintf(to,
            "kregistry verify %s --variant %s --shape %s --class %s --shift %zu --seed %" PRIu64
            " --device %d",
            ck_full_name(one->op, one->type, name, sizeof name), one->variant,
            ck_shape_text(one->op, one->sizes, shape, sizeof shape), ck_class_name(one->class),
            one->shift_bytes, one->seed, kr_device_get_info(one->device)->ordinal);
    fputs(" --driver", to);
    write_word(to, driver);
    write_option(to, cli, OPT_NVRTC, "--nvrtc");
    write_option(to, cli, OPT_OPS, "--ops");
    write_option(to, cli, OPT_LIMIT, "--limit");
    fclose(to);
    json_t *text = json_any_text(line);
    free(line);
    return text;
}

/* Of a whole op: what its child was told. */
static json_t *repeat_op(char *const *words)
{
    char *line = NULL;
    size_t bytes;
    FILE *to = tool_memory_file(&line, &bytes);
    fputs(words[0], to);
    for (size_t i = 1; words[i] && strcmp(words[i], "--worker") != 0; i++)
        write_word(to, words[i]);
    fclose(to);
    json_t *text = json_any_text(line);
    free(line);
    return text;
}

/* ---- the child: all checks of one op ---- */

typedef struct worker {
    const invocation *cli;
    const char *driver;
    size_t checks, failed;
    size_t unheld; /* runs with nothing wrong that no reference says more of */
    bool lost;     /* a fault ended CUDA for this process */
} worker;

static unsigned limit_s = LIMIT_S; /* between two lines */

static void tell(json_t *line)
{
    alarm(limit_s);
    write_json(line, JSON_COMPACT);
    flush_json();
}

static json_t *case_json(const worker *w, const ck_case *one)
{
    char shape[CK_SHAPE_BYTES];
    return json_pack("{s:s, s:o, s:s, s:i, s:s, s:s, s:I, s:I, s:o}", "op", one->op->name, "type",
                     json_text(one->op->n_types ? kr_type_name(one->type) : NULL), "variant", one->variant,
                     "device", kr_device_get_info(one->device)->ordinal, "shape",
                     ck_shape_text(one->op, one->sizes, shape, sizeof shape), "class",
                     ck_class_name(one->class), "seed", (json_int_t)one->seed, "shift",
                     (json_int_t)one->shift_bytes, "repeat", repeat_check(w->cli, w->driver, one));
}

static void tell_failure(worker *w, const ck_case *one, const char *what, const char *arg, json_t *index,
                         const char *expected, const char *got)
{
    json_t *failure = case_json(w, one);
    json_object_set_new(failure, "what", json_text(what));
    json_object_set_new(failure, "arg", json_text(arg));
    json_object_set_new(failure, "index", index);
    json_object_set_new(failure, "expected", json_text(expected));
    json_object_set_new(failure, "got", json_text(got));
    if (++w->failed <= MAX_TOLD)
        tell(json_pack("{s:o}", "failure", failure));
    else
        json_decref(failure);
}

static bool visit(void *user, const ck_case *one)
{
    worker *w = user;
    ck_result result;
    kr_error err;
    tell(json_pack("{s:o}", "at", case_json(w, one)));
    kr_status status = ck_check(one, &result, &err);
    if (!status && result.ok && !kr_op_reference(one->op, one->type)) {
        w->unheld++;
        return true;
    }
    w->checks++;
    if (status)
        tell_failure(w, one, status == KR_PROCESS_LOST ? "fault" : "no launch", NULL, json_null(), "done",
                     err.message);
    else if (!result.ok)
        tell_failure(w, one, result.what, result.arg, json_integer(result.index), result.expected,
                     result.got);
    w->lost = status == KR_PROCESS_LOST;
    return !w->lost;
}

static kr_status read_options(const invocation *cli, const kr_op *op, kr_type type, ck_walk_options *o,
                              ck_class *class, kr_cc *cc, uint64_t *sizes, size_t *shift, kr_error *err)
{
    uint64_t number = 0, limit = LIMIT_S;
    bool given = false;
    const char *names[CK_N_CLASSES], *name = cli_value(cli, OPT_CLASS), *max_cc = cli_value(cli, OPT_MAX_CC);
    *o = (ck_walk_options){
        .quick = cli_has(cli, OPT_QUICK), .variant = cli_value(cli, OPT_VARIANT), .seed = 1};
    for (int i = 0; i < CK_N_CLASSES; i++)
        names[i] = ck_class_name((ck_class)i);
    if (name && !ck_class_find(name, class)) {
        tool_fail(err, KR_INVALID_ARGUMENT, "unknown class \"%s\"", name);
        suggest(err, name, names, CK_N_CLASSES);
        return err->status;
    }
    kr_status status = max_cc ? kr_cc_parse(max_cc, cc, err) : KR_OK;
    if (!status)
        status = cli_number(cli, OPT_SEED, &o->seed, err);
    if (!status)
        status = cli_number(cli, OPT_SHIFT, &number, err);
    if (!status)
        status = cli_number(cli, OPT_LIMIT, &limit, err);
    if (!status && (limit < 1 || limit > 86400))
        status = tool_refuse(err, "Give 1 to 86400 seconds.", "--limit %s is no time to wait",
                             cli_value(cli, OPT_LIMIT));
    if (!status && number > MAX_SHIFT)
        status = tool_refuse(err, "Give a smaller one.", "--shift %" PRIu64 ": at most %d bytes", number,
                             MAX_SHIFT);
    if (!status && op && cli_has(cli, OPT_SHAPE))
        status = read_sizes(cli, op, type, sizes, &given, err);
    *shift = (size_t)number;
    limit_s = (unsigned)limit;
    o->class = name ? class : NULL;
    o->max_cc = max_cc ? cc : NULL;
    o->sizes = given ? sizes : NULL;
    o->shift_bytes = cli_has(cli, OPT_SHIFT) ? shift : NULL;
    return status;
}

/* A child whose parent has gone, however it went, would compute for nobody. */
static void end_with_parent(const invocation *cli)
{
    uint64_t parent = 0;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (cli_number(cli, OPT_WORKER, &parent, NULL) || (uint64_t)getppid() != parent)
        _exit(EXIT_NOT_SO);
}

static int work(const invocation *cli)
{
    session s = {0};
    worker w = {.cli = cli};
    kr_error err;
    const kr_op *op;
    kr_type type;
    ck_walk_options options;
    ck_class class;
    kr_cc max_cc;
    uint64_t sizes[KR_MAX_OP_ARGS] = {0};
    size_t shift;
    end_with_parent(cli);
    alarm(limit_s);
    kr_status status = session_open(&s, cli, true, &err);
    w.driver = s.driver;
    if (!status)
        status = kr_registry_find(s.registry, cli->operands[0], &op, &type, &err);
    if (!status)
        status = read_options(cli, op, type, &options, &class, &max_cc, sizes, &shift, &err);
    if (!status)
        status = ck_walk(s.registry, s.devices, s.n_devices, op, type, &options, visit, &w, &err);
    if (status)
        tell(json_pack("{s:{s:o, s:i, s:i, s:i, s:o}}", "error", "message", json_any_text(err.message),
                       "status", (int)err.status, "api", (int)err.api, "code", err.code, "advice",
                       json_any_text(err.advice)));
    tell(json_pack("{s:I, s:I, s:I, s:b}", "checks", (json_int_t)w.checks, "failed", (json_int_t)w.failed,
                   "unheld", (json_int_t)w.unheld, "lost", w.lost));
    if (!w.lost)
        session_close(&s);
    return EXIT_DONE;
}

/* ---- the parent ---- */

typedef struct tally {
    const invocation *cli;
    size_t checks, failed;
    size_t unheld; /* of the op at hand */
    json_t *failures, *skipped;
} tally;

static const char *word(const json_t *failure, const char *key)
{
    return json_string_value(json_object_get(failure, key));
}

static void print_failure(const json_t *f)
{
    const char *type = word(f, "type"), *arg = word(f, "arg"), *got = word(f, "got");
    printf("%sFAILED%s %s%s%s %s on device %d, shape %s, class %s\n", color(stdout, false), plain(stdout),
           word(f, "op"), type ? "." : "", type ? type : "", word(f, "variant"),
           (int)json_integer_value(json_object_get(f, "device")), word(f, "shape"), word(f, "class"));
    if (arg)
        printf("  %s of %s at %" JSON_INTEGER_FORMAT ": expected %s, got %s\n", word(f, "what"), arg,
               json_integer_value(json_object_get(f, "index")), word(f, "expected"), got);
    else
        printf("  %s: %s\n", word(f, "what"), got ? got : "");
    printf("  repeat: %s\n", word(f, "repeat"));
}

static void add_failure(tally *t, json_t *failure)
{
    json_array_append(t->failures, failure);
    if (!t->cli->json)
        print_failure(failure);
}

/* A failure that is no single check's: the op did not compile, or the child died. */
static void add_broken(tally *t, const char *name, char *const *words, const json_t *last, const char *what,
                       const char *got)
{
    char op[64];
    const char *dot = strchr(name, '.');
    json_t *failure = last ? json_deep_copy(last) : json_object();
    snprintf(op, sizeof op, "%.*s", (int)strcspn(name, "."), name);
    if (!last) {
        static const char *const empty[] = {"variant", "device", "shape", "class", "seed"};
        json_object_set_new(failure, "op", json_string(op));
        json_object_set_new(failure, "type", json_text(dot ? dot + 1 : NULL));
        for (size_t i = 0; i < sizeof empty / sizeof *empty; i++)
            json_object_set_new(failure, empty[i], json_null());
        json_object_set_new(failure, "repeat", repeat_op(words));
    }
    json_object_set_new(failure, "what", json_string(what));
    json_object_set_new(failure, "index", json_null());
    json_object_set_new(failure, "expected", json_null());
    json_object_set_new(failure, "got", json_text(got));
    t->failed++;
    json_array_append_new(t->failures, failure);
    if (!t->cli->json)
        printf("%sFAILED%s %s\n  %s: %s\n  repeat: %s\n", color(stdout, false), plain(stdout), name, what,
               got, word(failure, "repeat"));
}

/* What the child was told, with the driver that the parent found. */
static char **child_arguments(const invocation *cli, const char *driver, const char *name, const char *parent)
{
    static const struct {
        option_id id;
        const char *word;
    } passed[] = {{OPT_DEVICE, "--device"},       {OPT_NVRTC, "--nvrtc"},     {OPT_OPS, "--ops"},
                  {OPT_CACHE_DIR, "--cache-dir"}, {OPT_VARIANT, "--variant"}, {OPT_MAX_CC, "--max-cc"},
                  {OPT_SEED, "--seed"},           {OPT_SHAPE, "--shape"},     {OPT_CLASS, "--class"},
                  {OPT_SHIFT, "--shift"},         {OPT_LIMIT, "--limit"}};
    size_t most = 16 + 2 * cli->n_values[OPT_OPS], n = 0;
    for (size_t p = 0; p < sizeof passed / sizeof *passed; p++)
        most += 2 * cli->n_values[passed[p].id];
    const char **words = tool_alloc(most * sizeof *words);
    words[n++] = "kregistry";
    words[n++] = "verify";
    words[n++] = name;
    words[n++] = "--driver";
    words[n++] = driver;
    if (cli_has(cli, OPT_QUICK))
        words[n++] = "--quick";
    if (cli_has(cli, OPT_VERBOSE))
        words[n++] = "--verbose";
    if (cli_has(cli, OPT_NO_CACHE))
        words[n++] = "--no-cache";
    for (size_t p = 0; p < sizeof passed / sizeof *passed; p++)
        for (size_t i = 0; i < cli->n_values[passed[p].id]; i++) {
            words[n++] = passed[p].word;
            words[n++] = cli->values[passed[p].id][i];
        }
    words[n++] = "--worker";
    words[n++] = parent;
    return (char **)words;
}

static pid_t start_child(char **words, FILE **ret_story)
{
    int ends[2];
    pid_t child = -1;
    posix_spawn_file_actions_t actions;
    if (pipe(ends))
        return -1;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    posix_spawn_file_actions_addclose(&actions, ends[0]);
    posix_spawn_file_actions_addclose(&actions, ends[1]);
    if (posix_spawn(&child, "/proc/self/exe", &actions, NULL, words, environ))
        child = -1;
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    *ret_story = child < 0 ? NULL : fdopen(ends[0], "r");
    if (!*ret_story)
        close(ends[0]);
    return child;
}

/* Returns the status of an error that ends the whole command: wrong options are wrong for every op. */
static kr_status hear(tally *t, const char *name, char *const *words, FILE *story, pid_t child, kr_error *err)
{
    char *line = NULL, text[256];
    size_t room = 0;
    json_t *last = NULL;
    bool ended = false, garbled = false;
    kr_status status = KR_OK;
    while (getline(&line, &room, story) >= 0) {
        json_t *said = json_loads(line, 0, NULL), *part;
        garbled = garbled || !said;
        if ((part = json_object_get(said, "at"))) {
            json_decref(last);
            last = json_incref(part);
        } else if ((part = json_object_get(said, "failure"))) {
            add_failure(t, part);
        } else if ((part = json_object_get(said, "error"))) {
            kr_status why = (kr_status)json_integer_value(json_object_get(part, "status"));
            const char *message = json_string_value(json_object_get(part, "message"));
            if (why == KR_INVALID_ARGUMENT || why == KR_NOT_ON_THIS_DEVICE || why == KR_NOT_ON_THIS_MACHINE) {
                status = tool_fail(err, why, "%s", message);
                tool_advice(err, "%s", json_string_value(json_object_get(part, "advice")));
                about_op(err, name);
                err->api = (kr_api)json_integer_value(json_object_get(part, "api"));
                err->code = (int)json_integer_value(json_object_get(part, "code"));
            } else {
                add_broken(t, name, words, NULL,
                           why == KR_COMPILE_FAILED ? "does not compile" : "cannot be checked", message);
            }
        } else if (json_object_get(said, "checks")) {
            ended = true;
            t->checks += (size_t)json_integer_value(json_object_get(said, "checks"));
            t->failed += (size_t)json_integer_value(json_object_get(said, "failed"));
            t->unheld = (size_t)json_integer_value(json_object_get(said, "unheld"));
        }
        json_decref(said);
    }
    int result = 0;
    waitpid(child, &result, 0);
    if (!ended) {
        const bool timed_out = WIFSIGNALED(result) && WTERMSIG(result) == SIGALRM;
        if (timed_out)
            snprintf(text, sizeof text, "no end within %u seconds", limit_s);
        else if (WIFSIGNALED(result))
            snprintf(text, sizeof text, "the process ended by signal %d (%s)", WTERMSIG(result),
                     strsignal(WTERMSIG(result)));
        else
            snprintf(text, sizeof text, "the process ended early with exit code %d", WEXITSTATUS(result));
        add_broken(t, name, words, last, timed_out ? "hang" : "crash", text);
    } else if (garbled) {
        add_broken(t, name, words, NULL, "cannot be checked", "a part of what its process told is not JSON");
    }
    json_decref(last);
    free(line);
    return status;
}

/* An op that nothing was held against is told: a check that was not made is none that passed. */
static void add_skipped(tally *t, const char *name)
{
    const char *reason =
        t->unheld ? "no reference; an op of --ops has none" : "no variant to run on the devices here";
    json_array_append_new(t->skipped, json_pack("{s:s, s:s, s:I}", "name", name, "reason", reason, "runs",
                                                (json_int_t)t->unheld));
    if (!t->cli->json)
        printf("%-20s not verified: %s (%zu runs kept to their buffers)\n", name, reason, t->unheld);
}

static kr_status verify_op(tally *t, const session *s, const char *name, kr_error *err)
{
    FILE *story = NULL;
    char parent[16];
    size_t checks = t->checks, failed = t->failed;
    snprintf(parent, sizeof parent, "%ld", (long)getpid());
    t->unheld = 0;
    if (isatty(STDERR_FILENO) && !cli_has(t->cli, OPT_QUIET))
        fprintf(stderr, "%s ...\r", name);
    char **words = child_arguments(t->cli, s->driver, name, parent);
    pid_t child = start_child(words, &story);
    kr_status status = child < 0 || !story ? tool_fail_errno(err, KR_IO, "cannot start a child process")
                                           : hear(t, name, words, story, child, err);
    free(words);
    if (story)
        fclose(story);
    if (status)
        return status;
    if (t->checks == checks && t->failed == failed)
        add_skipped(t, name);
    else if (!t->cli->json)
        printf("%-20s %6zu checks, %zu failed\n", name, t->checks - checks, t->failed - failed);
    return KR_OK;
}

static bool has_variant(const kr_op *op, const char *variant)
{
    kr_error err;
    return check_variant(op, variant, &err) == KR_OK;
}

static kr_status nothing_to_verify(const invocation *cli, session *s, const char *glob, kr_error *err)
{
    const kr_op *op;
    const char *variant = cli_value(cli, OPT_VARIANT);
    kr_type type;
    kr_status status = find_op(cli, s->registry, glob ? glob : "*", &op, &type, err);
    if (status == KR_OK)
        return check_variant(op, variant, err);
    if (glob && !strpbrk(glob, "*?["))
        return status;
    tool_fail(err, KR_NOT_FOUND, "no op matches \"%s\"%s%s", glob ? glob : "*",
              variant ? " with a variant " : "", variant ? variant : "");
    tool_advice(err, "`kregistry list` shows all ops and their variants.");
    return err->status;
}

static kr_status verify_all(const invocation *cli, session *s, tally *t, kr_error *err)
{
    const char *glob = cli->n_operands ? cli->operands[0] : NULL;
    size_t n = 0;
    for (size_t i = 0; i < kr_registry_n_ops(s->registry); i++) {
        const kr_op *op = kr_registry_op(s->registry, i);
        for (size_t type = 0; type < (op->n_types ? op->n_types : 1); type++) {
            char name[64];
            ck_full_name(op, op->types[type], name, sizeof name);
            if (!instance_matches(op, op->types[type], glob))
                continue;
            if (!has_variant(op, cli_value(cli, OPT_VARIANT)))
                continue;
            n++;
            kr_status status = verify_op(t, s, name, err);
            if (status)
                return status;
        }
    }
    return n ? KR_OK : nothing_to_verify(cli, s, glob, err);
}

int run_verify(const invocation *cli)
{
    session s = {0};
    kr_error err;
    ck_walk_options options;
    ck_class class;
    kr_cc max_cc;
    size_t shift;
    if (cli_has(cli, OPT_WORKER))
        return work(cli);
    tally t = {.cli = cli, .failures = json_array(), .skipped = json_array()};
    kr_status status = read_options(cli, NULL, 0, &options, &class, &max_cc, NULL, &shift, &err);
    if (!status)
        status = session_open(&s, cli, true, &err);
    if (!status && s.n_devices == 0)
        status = no_device(&err);
    if (!status)
        status = verify_all(cli, &s, &t, &err);
    int code = status ? cli_fail(cli, &err) : t.failed || !t.checks ? EXIT_NOT_SO : EXIT_DONE;
    if (!status && cli->json)
        cli_print(json_pack("{s:I, s:I, s:O, s:O}", "checks", (json_int_t)t.checks, "failed",
                            (json_int_t)t.failed, "failures", t.failures, "skipped", t.skipped),
                  0);
    else if (!status && !t.checks && !t.failed)
        printf("nothing was checked\n");
    else if (!status)
        printf("%zu checks, %zu failed%s\n", t.checks, t.failed,
               json_array_size(t.skipped) ? "; the ops named above are not verified" : "");
    json_decref(t.failures);
    json_decref(t.skipped);
    session_close(&s);
    return code;
}
