/* SPDX-License-Identifier: Apache-2.0 */
/* What PTX says of itself before its first declaration. */
#include "ptx/image/image.h"

#include <stdio.h>
#include <string.h>

static bool is_blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* Past blanks and comments; a comment that is not closed goes on to the end. */
static const char *skip_blanks(const char *at, const char *end)
{
    while (at < end) {
        if (is_blank(*at)) {
            at++;
        } else if (end - at >= 2 && at[0] == '/' && at[1] == '/') {
            const char *line_end = memchr(at, '\n', (size_t)(end - at));
            at = line_end ? line_end : end;
        } else if (end - at >= 2 && at[0] == '/' && at[1] == '*') {
            const char *close = memmem(at + 2, (size_t)(end - at - 2), "*/", 2);
            at = close ? close + 2 : end;
        } else {
            break;
        }
    }
    return at;
}

/* Past a directive that must come next, to its word; NULL when it does not. */
static const char *directive(const char *at, const char *end, const char *name)
{
    at = skip_blanks(at, end);
    const size_t n = strlen(name);
    if ((size_t)(end - at) < n || memcmp(at, name, n) != 0)
        return NULL;
    at += n;
    return at == end || is_blank(*at) ? skip_blanks(at, end) : NULL;
}

static const char *read_word(const char *at, const char *end, char *to, size_t bytes)
{
    size_t n = 0;
    while (at < end && !is_blank(*at) && *at != ',' && n + 1 < bytes)
        to[n++] = *at++;
    to[n] = '\0';
    return at;
}

bool kr__ptx_head_read(const char *text, size_t bytes, kr__ptx_head *ret_head)
{
    const char *end = text + bytes, *at = directive(text, end, ".version");
    if (!at)
        return false;
    kr__ptx_head head = {0};
    char word[24];
    int major, minor;
    at = read_word(at, end, word, sizeof word);
    if (sscanf(word, "%2d.%1d", &major, &minor) == 2)
        head.isa = major * 10 + minor;
    at = directive(at, end, ".target");
    if (at)
        read_word(at, end, word, sizeof word);
    if (!at || kr_cc_parse(word, &head.target, NULL) != KR_OK)
        head.target = (kr_cc){0};
    *ret_head = head;
    return true;
}
