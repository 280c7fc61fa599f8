/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"

/* A full disk or table of files is nobody's wrong usage. */
static bool is_machines(const kr_error *err)
{
    static const int numbers[] = {ENOSPC, EDQUOT, EFBIG, EIO, ENOMEM, EMFILE, ENFILE, EAGAIN};
    for (size_t i = 0; err->api == KR_API_ERRNO && i < sizeof numbers / sizeof *numbers; i++)
        if (err->code == numbers[i])
            return true;
    return false;
}

/* The status says who can act; so does the exit code. */
static int exit_code(const kr_error *err)
{
    enum { DEVICE_UNAVAILABLE = 46, DEVICE_NOT_LICENSED = 102 }; /* there, and not to be used */
    if (err->api == KR_API_CUDA && (err->code == DEVICE_UNAVAILABLE || err->code == DEVICE_NOT_LICENSED))
        return EXIT_NO_DEVICE;
    switch (err->status) {
    case KR_OK:
        return EXIT_DONE;
    case KR_INVALID_ARGUMENT:
    case KR_NOT_FOUND:
    case KR_COMPILE_FAILED:
    case KR_CORRUPT:
        return EXIT_USAGE;
    case KR_IO:
        return is_machines(err) ? EXIT_NOT_SO : EXIT_USAGE;
    case KR_NOT_ON_THIS_MACHINE:
        return EXIT_NO_DEVICE;
    default:
        return EXIT_NOT_SO;
    }
}

static bool always_color, never_color;

void set_color(const char *when)
{
    always_color = strcmp(when, "always") == 0;
    never_color = strcmp(when, "never") == 0;
}

static bool has_color(FILE *to)
{
    const char *no_color = getenv("NO_COLOR"); /* no-color.org */
    return always_color || (!never_color && !(no_color && *no_color) && isatty(fileno(to)));
}

const char *color(FILE *to, bool good)
{
    return !has_color(to) ? "" : good ? "\033[32m" : "\033[31m";
}

const char *plain(FILE *to)
{
    return has_color(to) ? "\033[0m" : "";
}

/* ---- standard output ---- */

static FILE *document; /* NULL: standard output */
static bool unsaid;    /* a document could not be made */

/* The document of an error for which there is no memory to make one. */
static void print_no_memory_json(size_t bytes)
{
    fprintf(
        document ? document : stdout,
        "{\"error\": {\"status\": \"%s\", \"code\": 0, \"api\": null, \"message\": \"out of host memory: %zu "
        "bytes asked for\", \"advice\": \"Let this process have more memory.\", \"op\": null, "
        "\"device\": null}}\n",
        kr_status_name(KR_OUT_OF_HOST_MEMORY), bytes);
}

/* Jansson leaves out what it has no memory for. It is given memory or the program ends. */
void start_output(bool json)
{
    json_set_alloc_funcs(tool_alloc, free);
    if (json)
        tool_no_memory = print_no_memory_json;
}

bool open_standard_files(void)
{
    for (int fd = 0; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd == STDERR_FILENO ? O_WRONLY : O_RDONLY) < 0)
            return false;
    return true;
}

kr_status claim_stdout(kr_error *err)
{
    int fd;
    if (document)
        return KR_OK;
    fflush(stdout);
    fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    document = fd < 0 ? NULL : fdopen(fd, "w");
    if (!document || dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
        return tool_fail_errno(err, KR_IO, "cannot keep standard output");
    return KR_OK;
}

void write_json(json_t *line, size_t flags)
{
    char *text = json_dumps(line, flags); /* whole, before any of it is out */
    if (text)
        fprintf(document ? document : stdout, "%s\n", text);
    unsaid = unsaid || !text;
    free(text);
    json_decref(line);
}

void add_json(FILE *to, json_t *piece, size_t flags)
{
    char *text = json_dumps(piece, flags | JSON_ENCODE_ANY | JSON_REAL_PRECISION(6));
    if (text)
        fputs(text, to);
    unsaid = unsaid || !text;
    free(text);
    json_decref(piece);
}

int cli_print_text(const char *text, int code)
{
    fprintf(document ? document : stdout, "%s\n", text);
    return code;
}

void flush_json(void)
{
    fflush(document ? document : stdout);
}

static bool written(FILE *file)
{
    return !file || (fflush(file) == 0 && !ferror(file));
}

int end_output(int code)
{
    if (unsaid) {
        fprintf(stderr, "%serror%s: what was to be said is no JSON\n", color(stderr, false), plain(stderr));
        return EXIT_NOT_SO;
    }
    errno = 0;
    if (written(document) && written(stdout))
        return code;
    fprintf(stderr, "%serror%s: cannot write to standard output%s%s\n", color(stderr, false), plain(stderr),
            errno ? ": " : "", errno ? strerror(errno) : "");
    return EXIT_NOT_SO;
}

/* ---- JSON ---- */

/* Of the character at `at`, which is not a NUL; 0: it is none in UTF-8. */
static size_t character_bytes(const char *at)
{
    for (size_t n = 1; n <= 4 && at[n - 1]; n++) {
        json_t *one = json_stringn(at, n);
        json_decref(one);
        if (one)
            return n;
    }
    return 0;
}

json_t *json_any_text(const char *text)
{
    json_t *string = json_string(text);
    if (string)
        return string;
    char *escaped = tool_alloc(4 * strlen(text) + 1), *to = escaped;
    for (const char *at = text; *at;) {
        size_t n = character_bytes(at);
        to += n ? sprintf(to, "%.*s", (int)n, at) : sprintf(to, "\\x%02X", (unsigned char)*at);
        at += n ? n : 1;
    }
    string = json_string(escaped);
    free(escaped);
    return string;
}

json_t *json_text(const char *text)
{
    return text && *text ? json_any_text(text) : json_null();
}

static json_t *error_document(const kr_error *err)
{
    static const char *const apis[] = {[KR_API_NONE] = NULL,
                                       [KR_API_CUDA] = "cuda",
                                       [KR_API_NVRTC] = "nvrtc",
                                       [KR_API_ERRNO] = "errno",
                                       [KR_API_NVJITLINK] = "nvjitlink"};
    json_t *error = json_pack("{s:s, s:i, s:o, s:o, s:o, s:o, s:o}", "status", kr_status_name(err->status),
                              "code", err->code, "api", json_text(apis[err->api]), "message",
                              json_text(*err->message ? err->message : kr_status_text(err->status)), "advice",
                              json_text(err->advice), "op", json_text(err->op), "device",
                              err->device >= 0 ? json_integer(err->device) : json_null());
    if (err->api)
        json_object_set_new(error, "code_name", json_text(err->code_name));
    const struct {
        const char *key, *text;
    } rest[] = {{"function", err->function}, {"image", err->image}, {"chain", err->chain}, {"log", err->log}};
    for (size_t i = 0; i < sizeof rest / sizeof *rest; i++)
        if (rest[i].text && *rest[i].text)
            json_object_set_new(error, rest[i].key, json_text(rest[i].text));
    return json_pack("{s:o}", "error", error);
}

int cli_print(json_t *whole, int code)
{
    write_json(whole, JSON_INDENT(2) | JSON_REAL_PRECISION(6));
    return code;
}

void about_op(kr_error *err, const char *full_name)
{
    if (!*err->op)
        snprintf(err->op, sizeof err->op, "%s", full_name);
}

void put_text(FILE *to, const char *text)
{
    while (*text) {
        const unsigned char byte = (unsigned char)*text;
        const bool is_control = (byte < ' ' && byte != '\n' && byte != '\t') || byte == 127;
        const size_t n = is_control ? 0 : byte < 128 ? 1 : character_bytes(text);
        if (n)
            fwrite(text, 1, n, to);
        else
            fprintf(to, "\\x%02X", byte);
        text += n ? n : 1;
    }
}

/* The library prints "error: ..."; that word gets the colour. */
static void print_error(const kr_error *err)
{
    static const char word[] = "error";
    char *text = NULL;
    size_t bytes, n = strlen(word);
    FILE *memory = open_memstream(&text, &bytes);
    if (memory) {
        kr_error_print(err, memory);
        fclose(memory);
    }
    if (text && strncmp(text, word, n) == 0) {
        fprintf(stderr, "%s%s%s", color(stderr, false), word, plain(stderr));
        put_text(stderr, text + n);
    } else {
        kr_error_print(err, stderr);
    }
    free(text);
}

int cli_fail(const invocation *cli, const kr_error *err)
{
    if (cli->json) {
        cli_print(error_document(err), 0);
    } else {
        print_error(err);
    }
    return exit_code(err);
}

char *arch_text(kr_image_kind kind, kr_cc arch, char text[24])
{
    const char *prefix = kind == KR_IMAGE_PTX ? "compute" : kind == KR_IMAGE_LTOIR ? "lto" : "sm";
    snprintf(text, 24, "%s_%d%d%.1s", prefix, arch.major, arch.minor, (char[]){arch.suffix, '\0'});
    return text;
}

json_t *json_arch(kr_image_kind kind, kr_cc arch)
{
    char text[24];
    return json_string(arch_text(kind, arch, text));
}

json_t *json_number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

json_t *json_dim3(const unsigned dim[3])
{
    return json_pack("[i, i, i]", dim[0] ? dim[0] : 1, dim[1] ? dim[1] : 1, dim[2] ? dim[2] : 1);
}

char *version_text(int version, char text[16])
{
    snprintf(text, 16, "%d.%d", version / 1000, version % 1000 / 10);
    return text;
}

char *isa_text(int isa, char text[16])
{
    text[0] = '\0';
    if (isa)
        snprintf(text, 16, "%d.%d", isa / 10, isa % 10);
    return text;
}
