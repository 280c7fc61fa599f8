/* SPDX-License-Identifier: Apache-2.0 */
#include "tool.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void fill(kr_error *err, kr_status status, const char *format, va_list args)
{
    memset(err, 0, sizeof *err);
    err->status = status;
    err->device = -1;
    vsnprintf(err->message, sizeof err->message, format, args);
}

kr_status tool_fail(kr_error *err, kr_status status, const char *format, ...)
{
    if (!err)
        return status;
    va_list args;
    va_start(args, format);
    fill(err, status, format, args);
    va_end(args);
    return status;
}

kr_status tool_while(kr_error *err, kr_status status, const char *format, ...)
{
    const size_t at = strlen(err->chain), room = sizeof err->chain - at;
    const int n = snprintf(err->chain + at, room, "%swhile ", at ? "; " : "");
    va_list args;
    va_start(args, format);
    if ((size_t)n < room)
        vsnprintf(err->chain + at + n, room - (size_t)n, format, args);
    va_end(args);
    return status;
}

kr_status tool_refuse(kr_error *err, const char *advice, const char *format, ...)
{
    if (!err)
        return KR_INVALID_ARGUMENT;
    va_list args;
    va_start(args, format);
    fill(err, KR_INVALID_ARGUMENT, format, args);
    va_end(args);
    tool_advice(err, "%s", advice);
    return KR_INVALID_ARGUMENT;
}

void tool_advice(kr_error *err, const char *format, ...)
{
    if (!err)
        return;
    va_list args;
    va_start(args, format);
    vsnprintf(err->advice, sizeof err->advice, format, args);
    va_end(args);
}

static const char *errno_advice(int number)
{
    switch (number) {
    case ENOENT:
    case ENOTDIR:
        return "Correct the path.";
    case EISDIR:
        return "Name a file; this is a folder.";
    case EACCES:
    case EPERM:
    case EROFS:
        return "Name a file that this user may use.";
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
        return "Make room there, or name another place.";
    case EMFILE:
    case ENFILE:
        return "Let this process open more files (ulimit -n).";
    case ENOMEM:
        return "Let this process have more memory.";
    default:
        return "";
    }
}

kr_status tool_fail_errno(kr_error *err, kr_status status, const char *format, ...)
{
    const int number = errno;
    char message[sizeof err->message];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    tool_fail(err, status, "%s: %s", message, strerrordesc_np(number));
    if (!err)
        return status;
    const char *name = strerrorname_np(number);
    err->api = KR_API_ERRNO;
    err->code = number;
    snprintf(err->code_name, sizeof err->code_name, "%s", name ? name : "");
    tool_advice(err, "%s", errno_advice(number));
    return status;
}

bool tool_same_file(const char *a, const char *b)
{
    struct stat one, other;
    return stat(a, &one) == 0 && stat(b, &other) == 0 && one.st_dev == other.st_dev &&
           one.st_ino == other.st_ino;
}

kr_status tool_read_bytes(const char *path, char **ret_data, size_t *ret_bytes, kr_error *err)
{
    struct stat facts = {0};
    /* Devices and pipes have no end, or keep one waiting. */
    if (stat(path, &facts) == 0 && !S_ISREG(facts.st_mode)) {
        tool_fail(err, KR_IO, "cannot read %s: it is not a regular file", path);
        tool_advice(err, "Copy what it holds into a file first.");
        return KR_IO;
    }
    if (facts.st_size > INT_MAX) {
        tool_fail(err, KR_IO, "cannot read %s: its %lld bytes are more than %d", path,
                  (long long)facts.st_size, INT_MAX);
        tool_advice(err, "Name a smaller file.");
        return KR_IO;
    }
    FILE *file = fopen(path, "rb");
    if (!file)
        return tool_fail_errno(err, KR_IO, "cannot open %s", path);
    char *text = NULL;
    size_t bytes = 0, got;
    do {
        text = tool_realloc(text, bytes + 65536 + 1);
        got = fread(text + bytes, 1, 65536, file);
        bytes += got;
    } while (got > 0);
    text[bytes] = '\0';
    const kr_status status = ferror(file) ? tool_fail_errno(err, KR_IO, "cannot read %s", path) : KR_OK;
    fclose(file);
    if (status) {
        free(text);
        return status;
    }
    *ret_data = text;
    *ret_bytes = bytes;
    return KR_OK;
}

kr_status tool_read_file(const char *path, char **ret_text, size_t *ret_bytes, kr_error *err)
{
    char *text;
    size_t bytes;
    const kr_status status = tool_read_bytes(path, &text, &bytes, err);
    if (status)
        return status;
    if (strlen(text) < bytes) {
        tool_fail(err, KR_CORRUPT, "%s is not text: the byte at %zu is a NUL", path, strlen(text));
        tool_advice(err, "Name a CUDA source.");
        free(text);
        return KR_CORRUPT;
    }
    *ret_text = text;
    *ret_bytes = bytes;
    return KR_OK;
}

static bool write_all(int fd, const char *data, size_t bytes)
{
    while (bytes > 0) {
        ssize_t n = write(fd, data, bytes);
        if (n < 0 && errno != EINTR)
            return false;
        data += n > 0 ? n : 0;
        bytes -= n > 0 ? (size_t)n : 0;
    }
    return true;
}

static bool write_in_place(const char *path, const void *data, size_t bytes)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    bool ok = fd >= 0 && write_all(fd, data, bytes);
    return fd >= 0 && close(fd) == 0 && ok;
}

/* By a new file beside it that takes its place, whose name begins with as much of its name as leaves room. */
static bool write_beside(const char *path, mode_t mode, const void *data, size_t bytes)
{
    enum { ENDING = 48 };
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
    int kept = (int)(base - path + (ptrdiff_t)strnlen(base, NAME_MAX - ENDING));
    size_t room = (size_t)kept + ENDING;
    char *name = tool_alloc(room);
    int fd = -1;
    for (unsigned i = 0; fd < 0 && (i == 0 || errno == EEXIST); i++) {
        snprintf(name, room, "%.*s.%ld-%u.tmp", kept, path, (long)getpid(), i);
        fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    }
    bool made = fd >= 0, ok = made && (!mode || fchmod(fd, mode) == 0) && write_all(fd, data, bytes);
    ok = made && close(fd) == 0 && ok && rename(name, path) == 0;
    int why = errno;
    if (made && !ok)
        unlink(name);
    errno = why;
    free(name);
    return ok;
}

kr_status tool_write_file(const char *path, const void *data, size_t bytes, kr_error *err)
{
    struct stat there = {0}, itself;
    bool exists = stat(path, &there) == 0, dangles = !exists && lstat(path, &itself) == 0;
    char *real = exists ? realpath(path, NULL) : NULL;
    bool ok = dangles || (exists && !S_ISREG(there.st_mode)) ? write_in_place(path, data, bytes)
              : exists && !real                              ? false
                                : write_beside(real ? real : path, there.st_mode & 0777, data, bytes);
    kr_status status = ok ? KR_OK : tool_fail_errno(err, KR_IO, "cannot write %s", path);
    free(real);
    return status;
}

/* A string literal, which compilers read many times faster than a list of numbers. */
static void print_literal(FILE *to, const unsigned char *data, size_t bytes)
{
    enum { LINE_BYTES = 64 };
    for (size_t i = 0; i < bytes; i++) {
        bool begins = i % LINE_BYTES == 0, ends = i + 1 == bytes || (i + 1) % LINE_BYTES == 0;
        if (begins)
            fputs("    \"", to);
        if (data[i] < ' ' || data[i] > '~' || strchr("\"\\?", data[i]))
            fprintf(to, "\\%03o", data[i]);
        else
            fputc(data[i], to);
        if (ends)
            fputs("\"\n", to);
    }
}

void tool_print_bytes(FILE *to, const char *name, const void *data, size_t bytes)
{
    fprintf(to,
            "#include <stddef.h>\n"
            "#pragma GCC diagnostic ignored \"-Woverlength-strings\"\n"
            "extern const unsigned char %s[];\nextern const size_t %s_bytes;\n"
            "const unsigned char %s[] __attribute__((aligned(64))) =\n",
            name, name, name);
    print_literal(to, data, bytes);
    fprintf(to, "    \"\";\nconst size_t %s_bytes = sizeof %s - 1;\n", name, name);
}

static void print_no_memory(size_t bytes)
{
    fprintf(stderr, "error: out of host memory: %zu bytes asked for\n  %s\n", bytes, errno_advice(ENOMEM));
}

void (*tool_no_memory)(size_t bytes) = print_no_memory;

static void *held(void *data, size_t bytes)
{
    if (data)
        return data;
    tool_no_memory(bytes);
    exit(1);
}

void *tool_try_alloc(size_t bytes)
{
    return calloc(bytes ? bytes : 1, 1);
}

void *tool_alloc(size_t bytes)
{
    return held(tool_try_alloc(bytes), bytes);
}

void *tool_realloc(void *data, size_t bytes)
{
    return held(realloc(data, bytes), bytes);
}

/* ---- a file in memory ---- */

typedef struct memory {
    char **text;
    size_t *bytes, room;
    bool is_growing;
} memory;

static ssize_t write_memory(void *cookie, const char *data, size_t n)
{
    memory *m = cookie;
    if (m->is_growing) /* there is no memory, and what ends the program writes out its files */
        return 0;
    if (n >= m->room - *m->bytes) {
        m->is_growing = true;
        m->room = 2 * (*m->bytes + n + 1);
        *m->text = tool_realloc(*m->text, m->room);
        m->is_growing = false;
    }
    memcpy(*m->text + *m->bytes, data, n);
    *m->bytes += n;
    (*m->text)[*m->bytes] = '\0';
    return (ssize_t)n;
}

/* For ftell alone. */
static int tell_memory(void *cookie, off64_t *place, int whence)
{
    const memory *m = cookie;
    if (whence != SEEK_CUR || *place)
        return -1;
    *place = (off64_t)*m->bytes;
    return 0;
}

static int close_memory(void *cookie)
{
    free(cookie);
    return 0;
}

FILE *tool_memory_file(char **text, size_t *bytes)
{
    memory *m = tool_alloc(sizeof *m);
    *m = (memory){.text = text, .bytes = bytes, .room = 1};
    *text = tool_alloc(m->room);
    *bytes = 0;
    return held(fopencookie(m, "w",
                            (cookie_io_functions_t){
                                .write = write_memory, .seek = tell_memory, .close = close_memory}),
                0);
}
