/* SPDX-License-Identifier: Apache-2.0 */
#include "ptx/image/scan.h"

#include <stdint.h>
#include <string.h>

enum byte_class { OTHER, BLANK, WORD, MARK };

static enum byte_class class_of(char c)
{
    static const uint8_t classes[256] = {['\t' ... '\r'] = BLANK,
                                         [' '] = BLANK,
                                         ['!' ... '#'] = MARK,
                                         ['$' ... '%'] = WORD,
                                         ['&' ... '-'] = MARK,
                                         ['.'] = MARK,
                                         ['/'] = MARK,
                                         ['0' ... '9'] = WORD,
                                         [':' ... '@'] = MARK,
                                         ['A' ... 'Z'] = WORD,
                                         ['[' ... '^'] = MARK,
                                         ['_'] = WORD,
                                         ['`'] = MARK,
                                         ['a' ... 'z'] = WORD,
                                         ['{' ... '~'] = MARK};
    return (enum byte_class)classes[(unsigned char)c];
}

/* Past a comment that begins at `at`; `at` where none does that is closed. */
static const char *skip_comment(const char *at, const char *end)
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

const char *kr__scan_blanks(const char *at, const char *end)
{
    for (const char *after; at < end; at = after) {
        after = class_of(*at) == BLANK ? at + 1 : skip_comment(at, end);
        if (after == at)
            break;
    }
    return at;
}

static const char *skip_word(const char *at, const char *end)
{
    while (at < end && (class_of(*at) == WORD || (*at == ':' && end - at >= 2 && at[1] == ':')))
        at += *at == ':' ? 2 : 1;
    return at;
}

const char *kr__scan_token(const char *at, const char *end)
{
    const char *close;
    if (at == end || class_of(*at) != MARK)
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
        return at + 1;
    }
}

bool kr__scan_block(const char **at, const char *end)
{
    static const bool stops[256] = {['{'] = true,
                                    ['}'] = true,
                                    ['"'] = true,
                                    ['/'] = true,
                                    [0 ... '\t' - 1] = true,
                                    ['\r' + 1 ... ' ' - 1] = true,
                                    [0x7f ... 0xff] = true};
    size_t depth = 0;
    for (const char *mark = *at, *after;; mark = after) {
        while (mark < end && !stops[(unsigned char)*mark])
            mark++;
        after = skip_comment(mark, end);
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

bool kr__scan_is_word(char c)
{
    return class_of(c) == WORD;
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
