/* SPDX-License-Identifier: Apache-2.0 */
#include "ptx/image/scan.h"

#include <string.h>

bool kr__scan_is_word(char c)
{
    static const bool words[256] = {['0' ... '9'] = true, ['A' ... 'Z'] = true, ['a' ... 'z'] = true,
                                    ['_'] = true,         ['$'] = true,         ['%'] = true};
    return words[(unsigned char)c];
}

const char *kr__scan_comment(const char *at, const char *end)
{
    const size_t left = (size_t)(end - at);
    const char *close = NULL;
    if (left < 2 || at[0] != '/')
        return at;
    if (at[1] == '/')
        return (close = memchr(at, '\n', left)) ? close : end;
    if (at[1] == '*')
        close = memmem(at + 2, left - 2, "*/", 2);
    return close ? close + 2 : at;
}

static const char *skip_word(const char *at, const char *end)
{
    while (at < end && (kr__scan_is_word(*at) || (*at == ':' && end - at >= 2 && at[1] == ':')))
        at += *at == ':' ? 2 : 1;
    return at;
}

const char *kr__scan_token(const char *at, const char *end)
{
    const char *close;
    if (at == end || kr__scan_is_word(*at))
        return skip_word(at, end);
    switch (*at) {
    case '.':
        return skip_word(at + 1, end);
    case '"':
        close = memchr(at + 1, '"', (size_t)(end - at - 1));
        return close ? close + 1 : at;
    case '/':
        return end - at >= 2 && at[1] == '*' ? at : at + 1;
    default:
        return *at > ' ' && *at < 0x7f ? at + 1 : at;
    }
}

/* Where a block may end, or what only a token's reader understands. */
static bool is_stop(unsigned char c)
{
    return c == '{' || c == '}' || c == '"' || c == '/' || c >= 0x7f || (c < ' ' && (c < '\t' || c > '\r'));
}

/* Most of a body is none of these: many bytes are asked at once. */
static const char *find_stop(const char *at, const char *end)
{
    enum { AT_ONCE = 32 };
    for (unsigned char any = 0; end - at >= AT_ONCE; at += AT_ONCE) {
        for (size_t i = 0; i < AT_ONCE; i++)
            any |= is_stop((unsigned char)at[i]);
        if (any)
            break;
    }
    while (at < end && !is_stop((unsigned char)*at))
        at++;
    return at;
}

bool kr__scan_block(const char **at, const char *end)
{
    size_t depth = 0;
    for (const char *mark = *at, *after;; mark = after) {
        mark = find_stop(mark, end);
        after = kr__scan_comment(mark, end);
        if (after == mark)
            after = kr__scan_token(mark, end);
        *at = after;
        if (after == mark)
            return false;
        depth += *mark == '{';
        depth -= *mark == '}';
        if (!depth)
            return true;
    }
}

bool kr__scan_is(const char *at, const char *end, const char *text)
{
    const size_t n = strlen(text);
    return (size_t)(end - at) == n && memcmp(at, text, n) == 0;
}

size_t kr__scan_line(const char *text, const char *at)
{
    size_t line = 1;
    while ((text = memchr(text, '\n', (size_t)(at - text)))) {
        line++;
        text++;
    }
    return line;
}
