/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/base/base.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool reserve(kr__text *text, size_t more)
{
    if (text->failed || more > SIZE_MAX / 4 - text->bytes) {
        text->failed = true;
        return false;
    }
    const size_t need = text->bytes + more + 1;
    if (need <= text->capacity)
        return true;
    size_t capacity = text->capacity ? text->capacity * 2 : 256;
    while (capacity < need)
        capacity *= 2;
    char *data = realloc(text->data, capacity);
    if (!data) {
        text->failed = true;
        return false;
    }
    text->data = data;
    text->capacity = capacity;
    return true;
}

void kr__text_add_bytes(kr__text *text, const char *bytes, size_t n)
{
    if (!reserve(text, n))
        return;
    if (n)
        memcpy(text->data + text->bytes, bytes, n);
    text->bytes += n;
    text->data[text->bytes] = '\0';
}

void kr__text_add(kr__text *text, const char *format, ...)
{
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    const int n = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (n >= 0 && reserve(text, (size_t)n)) {
        vsnprintf(text->data + text->bytes, (size_t)n + 1, format, again);
        text->bytes += (size_t)n;
    } else {
        text->failed = true;
    }
    va_end(again);
}

void kr__text_free(kr__text *text)
{
    free(text->data);
    memset(text, 0, sizeof *text);
}

void kr__format_list(char *to, size_t bytes, const char *format, va_list args)
{
    const int n = vsnprintf(to, bytes, format, args);
    if (n < 0)
        to[0] = '\0';
    else if ((size_t)n >= bytes && bytes > 4)
        memcpy(to + bytes - 4, "...", 4);
}

void kr__format(char *to, size_t bytes, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    kr__format_list(to, bytes, format, args);
    va_end(args);
}

void kr__append(char *to, size_t bytes, const char *format, ...)
{
    const size_t used = strlen(to);
    va_list args;
    va_start(args, format);
    kr__format_list(to + used, bytes - used, format, args);
    va_end(args);
}

/* Bytes of the character at the head of the text; 0: there is none (overlong, a surrogate, cut off). */
static size_t utf8_character(const unsigned char *text, size_t bytes)
{
    /* The first byte tells how many follow; the second has bounds of its own where the first is at an edge.
     */
    static const struct {
        unsigned char first, last, low, high;
        size_t bytes;
    } rows[] = {
        {0x00, 0x7f, 0, 0, 1},       {0xc2, 0xdf, 0x80, 0xbf, 2}, {0xe0, 0xe0, 0xa0, 0xbf, 3},
        {0xe1, 0xec, 0x80, 0xbf, 3}, {0xed, 0xed, 0x80, 0x9f, 3}, {0xee, 0xef, 0x80, 0xbf, 3},
        {0xf0, 0xf0, 0x90, 0xbf, 4}, {0xf1, 0xf3, 0x80, 0xbf, 4}, {0xf4, 0xf4, 0x80, 0x8f, 4},
    };
    for (size_t i = 0; i < KR_COUNT(rows); i++) {
        if (text[0] < rows[i].first || text[0] > rows[i].last)
            continue;
        if (rows[i].bytes > bytes || (rows[i].bytes > 1 && (text[1] < rows[i].low || text[1] > rows[i].high)))
            return 0;
        for (size_t k = 2; k < rows[i].bytes; k++)
            if (text[k] < 0x80 || text[k] > 0xbf)
                return 0;
        return rows[i].bytes;
    }
    return 0;
}

size_t kr__utf8_good(const char *text, size_t bytes)
{
    size_t good = 0, n;
    while (good < bytes && (n = utf8_character((const unsigned char *)text + good, bytes - good)))
        good += n;
    return good;
}

bool kr__is_like_a_path(const char *text, size_t bytes)
{
    enum { LONGEST = 255 };
    const size_t n = bytes ? strnlen(text, bytes < LONGEST ? bytes : LONGEST) : 0; /* an empty file is NULL */
    bool printable = n > 0 && n < LONGEST;
    for (size_t i = 0; i < n; i++)
        printable = printable && (unsigned char)text[i] >= ' ';
    return printable && (memchr(text, '.', n) || memchr(text, '/', n));
}

size_t kr__distance(const char *a, const char *b)
{
    enum { LONGEST = 63 };
    size_t row[LONGEST + 1];
    const size_t na = strnlen(a, LONGEST), nb = strnlen(b, LONGEST);
    for (size_t j = 0; j <= nb; j++)
        row[j] = j;
    for (size_t i = 1; i <= na; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= nb; j++) {
            const size_t change = diagonal + (a[i - 1] != b[j - 1]);
            diagonal = row[j];
            const size_t step = (row[j] < row[j - 1] ? row[j] : row[j - 1]) + 1;
            row[j] = change < step ? change : step;
        }
    }
    return row[nb];
}

bool kr__nearer(const char *name, const char *other, size_t *best)
{
    const size_t distance = kr__distance(name, other), third = strlen(name) / 3;
    if (distance >= *best || distance > (third > 1 ? third : 1))
        return false;
    *best = distance;
    return true;
}

bool kr__glob(const char *pattern, const char *name)
{
    return fnmatch(pattern, name, 0) == 0;
}
