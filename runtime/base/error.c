/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/base/base.h"

#include <errno.h>
#include <string.h>

const char *kr_status_name(kr_status status)
{
    switch (status) {
#define KR_NAME_CASE(name, number, text)                                                           \
    case KR_##name:                                                                                \
        return "KR_" #name;
        KR_STATUS_LIST(KR_NAME_CASE)
#undef KR_NAME_CASE
    }
    return "KR_?";
}

const char *kr_status_text(kr_status status)
{
    switch (status) {
#define KR_TEXT_CASE(name, number, text)                                                           \
    case KR_##name:                                                                                \
        return text;
        KR_STATUS_LIST(KR_TEXT_CASE)
#undef KR_TEXT_CASE
    }
    return "unknown status";
}

/* What there is to do, as far as the status or the errno tells it. */
static const char *advice_of(kr_status status, int number)
{
    static const struct {
        int number;
        const char *advice;
    } of_errno[] = {
        {ENOENT, "Check the path."},
        {EISDIR, "Name a file: this is a folder."},
        {ENOTDIR, "Name a folder: this, or a part of the path, is a file."},
        {EACCES, "Grant access to the path, or use another."},
        {EPERM, "Grant access to the path, or use another."},
        {EROFS, "Use a path on a file system that may be written."},
        {ENOSPC, "Free room on the file system, or use another."},
        {EDQUOT, "Free room on the file system, or use another."},
        {EMFILE, "Close files, or raise the limit of open files (ulimit -n)."},
        {ENFILE, "Close files, or raise the system's limit of open files (fs.file-max)."},
    };
    static const char *const of_status[] = {
        [KR_INVALID_ARGUMENT] = "Correct what the message names.",
        [KR_NOT_FOUND] = "Check the name.",
        [KR_NOT_ON_THIS_MACHINE] = "`kregistry doctor` shows what this machine has.",
        [KR_NOT_ON_THIS_DEVICE] = "Use another device; `kregistry devices` lists them.",
        [KR_OUT_OF_HOST_MEMORY] = "Free host memory or raise the process's limit, and try again.",
        [KR_OUT_OF_DEVICE_MEMORY] =
            "Free buffers, use a smaller problem, or see with nvidia-smi who else uses the device.",
        [KR_COMPILE_FAILED] = "Correct the source; the log has the compiler's words.",
        [KR_LAUNCH_FAILED] = "Use a smaller block, or less shared memory.",
        [KR_PROCESS_LOST] = "End the process.",
        [KR_IO] = "Give a regular file that can be read and written.",
        [KR_CORRUPT] = "Make or copy the file again.",
        [KR_FOREIGN] = "Try again; where it lasts, `kregistry doctor` shows the driver and compiler to ask about.",
    };
    for (size_t i = 0; i < KR_COUNT(of_errno); i++)
        if (of_errno[i].number == number)
            return of_errno[i].advice;
    return (size_t)status < KR_COUNT(of_status) && of_status[status] ? of_status[status] : "";
}

static void begin(kr_error *err, kr_status status, const char *file, int line)
{
    memset(err, 0, offsetof(kr_error, message));
    err->message[0] = err->advice[0] = err->chain[0] = err->log[0] = '\0';
    err->status = status;
    err->file = file;
    err->line = line;
    err->device = -1;
}

kr_status kr__fail(kr_error *err, kr_status status, const char *file, int line, const char *format, ...)
{
    if (!err)
        return status;
    /* The message may quote the error it replaces, so it is made before that is cleared. */
    char message[sizeof err->message];
    va_list args;
    va_start(args, format);
    kr__format_list(message, sizeof message, format, args);
    va_end(args);
    begin(err, status, file, line);
    kr__error_advice(err, "%s", advice_of(status, 0));
    memcpy(err->message, message, sizeof message);
    return status;
}

kr_status kr__fail_null(kr_error *err, const char *file, int line, const char *function, const char *names,
                        size_t index)
{
    while (index--)
        names = strchr(names, ',') + 2;
    return kr__fail(err, KR_INVALID_ARGUMENT, file, line, "%s: %.*s is NULL", function,
                    (int)strcspn(names, ","), names);
}

kr_status kr__require_list(kr_error *err, const char *name, const void *list, size_t n)
{
    const void *const *items = list;
    if (n && !list)
        return KR_FAIL(err, KR_INVALID_ARGUMENT, "%s is NULL, but there are to be %zu", name, n);
    for (size_t i = 0; i < n; i++)
        if (!items[i])
            return KR_FAIL(err, KR_INVALID_ARGUMENT, "%s[%zu] is NULL", name, i);
    return KR_OK;
}

kr_status kr__fail_errno(kr_error *err, kr_status status, int number, const char *file, int line,
                         const char *format, ...)
{
    if (!err)
        return status;
    char message[sizeof err->message];
    va_list args;
    va_start(args, format);
    kr__format_list(message, sizeof message, format, args);
    va_end(args);
    begin(err, status, file, line);
    kr__error_advice(err, "%s", advice_of(status, number));
    kr__format(err->message, sizeof err->message, "%s: %s", message, strerrordesc_np(number));
    err->api = KR_API_ERRNO;
    err->code = number;
    const char *name = strerrorname_np(number);
    kr__format(err->code_name, sizeof err->code_name, "%s", name ? name : "");
    return status;
}

void kr__error_code(kr_error *err, kr_api api, int code, const char *code_name, const char *function)
{
    if (!err)
        return;
    err->api = api;
    err->code = code;
    err->function = function;
    kr__format(err->code_name, sizeof err->code_name, "%s", code_name ? code_name : "");
}

void kr__error_advice(kr_error *err, const char *format, ...)
{
    if (!err)
        return;
    va_list args;
    va_start(args, format);
    kr__format_list(err->advice, sizeof err->advice, format, args);
    va_end(args);
}

void kr__error_advice_if_none(kr_error *err, const char *format, ...)
{
    if (!err || strcmp(err->advice, advice_of(err->status, err->api == KR_API_ERRNO ? err->code : 0)) != 0)
        return;
    va_list args;
    va_start(args, format);
    kr__format_list(err->advice, sizeof err->advice, format, args);
    va_end(args);
}

void kr__error_log(kr_error *err, const char *log)
{
    if (!err || !log)
        return;
    const size_t bytes = strlen(log), room = sizeof err->log - 1;
    if (bytes <= room) {
        memcpy(err->log, log, bytes + 1);
        return;
    }
    /* Compilers say what is wrong first and how many errors there were last. */
    const size_t tail = room / 4, note = 64, head = room - tail - note;
    memcpy(err->log, log, head);
    int n = snprintf(err->log + head, note, "\n... %zu bytes left out ...\n", bytes - head - tail);
    memcpy(err->log + head + n, log + bytes - tail, tail + 1);
}

void kr__error_op(kr_error *err, const char *op)
{
    if (err && op)
        kr__format(err->op, sizeof err->op, "%s", op);
}

void kr__error_image(kr_error *err, const char *image)
{
    if (err && image)
        kr__format(err->image, sizeof err->image, "%s", image);
}

void kr__error_device(kr_error *err, int ordinal)
{
    if (err)
        err->device = ordinal;
}

kr_status kr__while(kr_error *err, kr_status status, const char *format, ...)
{
    if (!err)
        return status;
    size_t at = strlen(err->chain);
    if (at + 16 < sizeof err->chain) {
        at += (size_t)snprintf(err->chain + at, sizeof err->chain - at, "%swhile ", at ? "; " : "");
        va_list args;
        va_start(args, format);
        kr__format_list(err->chain + at, sizeof err->chain - at, format, args);
        va_end(args);
    }
    return status;
}

int kr_error_print(const kr_error *err, FILE *to)
{
    if (!err || !to)
        return 1;
    fprintf(to, "error: ");
    if (err->op[0])
        fprintf(to, "%s: ", err->op);
    if (err->device >= 0)
        fprintf(to, "device %d: ", err->device);
    if (err->image[0])
        fprintf(to, "%s: ", err->image);
    fprintf(to, "%s\n", err->message[0] ? err->message : kr_status_text(err->status));
    if (err->function)
        fprintf(to, "  %s answered %s (%d)\n", err->function, err->code_name, err->code);
    if (err->chain[0])
        fprintf(to, "  %s\n", err->chain);
    if (err->log[0])
        fprintf(to, "%s%s", err->log, err->log[strlen(err->log) - 1] == '\n' ? "" : "\n");
    if (err->advice[0])
        fprintf(to, "  %s\n", err->advice);
    return 1;
}
