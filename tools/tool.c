/* SPDX-License-Identifier: Apache-2.0 */
#include "tool.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

kr_status tool_fail(kr_error *err, kr_status status, const char *format, ...)
{
    if (!err)
        return status;
    va_list args;
    memset(err, 0, sizeof *err);
    err->status = status;
    err->device = -1;
    va_start(args, format);
    vsnprintf(err->message, sizeof err->message, format, args);
    va_end(args);
    return status;
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

kr_status tool_read_file(const char *path, char **ret_text, size_t *ret_bytes, kr_error *err)
{
    FILE *file = fopen(path, "rb");
    if (!file)
        return tool_fail(err, KR_IO, "cannot open %s: %m", path);
    char *text = NULL;
    size_t bytes = 0, got;
    do {
        text = tool_realloc(text, bytes + 65536 + 1);
        got = fread(text + bytes, 1, 65536, file);
        bytes += got;
    } while (got > 0);
    text[bytes] = '\0';
    kr_status status = ferror(file) ? tool_fail(err, KR_IO, "cannot read %s: %m", path) : KR_OK;
    fclose(file);
    if (status) {
        free(text);
        return status;
    }
    *ret_text = text;
    *ret_bytes = bytes;
    return KR_OK;
}

static void *held(void *data, size_t bytes)
{
    if (data)
        return data;
    fprintf(stderr, "kregistry: out of host memory for %zu bytes\n", bytes);
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
