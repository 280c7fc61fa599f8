/* SPDX-License-Identifier: Apache-2.0 */
/* PTX text, statement by statement. It is not verified: that is the front end's. */
#include "ptx/relevel/relevel.h"

#include <string.h>

static bool is_word(int c)
{
    return ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '$' ||
           c == '%';
}

static bool is_blank(int c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static const char *skip_line(const char *at, const char *end)
{
    const char *line_end = at < end ? memchr(at, '\n', (size_t)(end - at)) : NULL;
    return line_end ? line_end : end;
}

/* `at` is at a comment: past it. Else NULL. */
static const char *skip_comment(const char *at, const char *end)
{
    if (end - at < 2 || at[0] != '/' || (at[1] != '/' && at[1] != '*'))
        return NULL;
    if (at[1] == '/')
        return skip_line(at, end);
    for (at += 2; end - at >= 2; at++)
        if (at[0] == '*' && at[1] == '/')
            return at + 2;
    return end;
}

const char *kr__ptx_skip_blanks(const char *at, const char *end)
{
    for (const char *after; at < end;) {
        if (is_blank(*at))
            at++;
        else if ((after = skip_comment(at, end)))
            at = after;
        else
            break;
    }
    return at;
}

static const char *skip_word(const char *at, const char *end)
{
    while (at < end && is_word(*at))
        at++;
    return at;
}

static const char *skip_string(const char *at, const char *end)
{
    const char *quote = end - at > 1 ? memchr(at + 1, '"', (size_t)(end - at - 1)) : NULL;
    return quote ? quote + 1 : end;
}

/* Past one thing, whatever it is. */
static const char *skip_one(const char *at, const char *end)
{
    const char *after = skip_comment(at, end);
    return after ? after : *at == '"' ? skip_string(at, end) : at + 1;
}

static bool begins(const ptx_reader *reader, const char *word)
{
    const size_t n = strlen(word);
    return (size_t)(reader->end - reader->at) > n && !memcmp(reader->at, word, n) && !is_word(reader->at[n]);
}

/* ---- directives ---- */

/* From `open` on to past the brace that closes it. */
static const char *skip_braces(const char *at, const char *end)
{
    unsigned depth = 0;
    while (at < end) {
        depth += *at == '{';
        if (*at == '}' && depth-- <= 1)
            return at + 1;
        at = skip_one(at, end);
    }
    return end;
}

/* To past its semicolon, or to the brace that begins a function's body: one that no '=' stands before. */
static void skip_directive(ptx_reader *reader)
{
    bool is_initial = false;
    while (reader->at < reader->end) {
        const char c = *reader->at;
        if (c == ';') {
            reader->at++;
            return;
        }
        if (c == '{' && !is_initial)
            return;
        is_initial |= c == '=';
        reader->at = c == '{' ? skip_braces(reader->at, reader->end) : skip_one(reader->at, reader->end);
    }
}

static void skip_section(ptx_reader *reader)
{
    const char *open = memchr(reader->at, '{', (size_t)(reader->end - reader->at));
    reader->at = open ? skip_braces(open, reader->end) : reader->end;
}

/* "9.0" behind .version */
static void version(ptx_reader *reader, ptx_statement *s)
{
    const char *at = kr__ptx_skip_blanks(reader->at + strlen(".version"), reader->end), *begin = at;
    while (at < reader->end && ((*at >= '0' && *at <= '9') || *at == '.'))
        at++;
    s->kind = PTX_STATEMENT_VERSION;
    s->value = (ptx_slice){begin, (size_t)(at - begin)};
    reader->at = at;
}

/* .target sm_90a, debug: in any order */
static void target(ptx_reader *reader, ptx_statement *s)
{
    const char *at = reader->at + strlen(".target");
    s->kind = PTX_STATEMENT_TARGET;
    s->value = (ptx_slice){at, 0};
    do {
        const char *word = kr__ptx_skip_blanks(at, reader->end);
        at = skip_word(word, reader->end);
        if (at - word > 3 && !memcmp(word, "sm_", 3))
            s->value = (ptx_slice){word, (size_t)(at - word)};
        reader->at = at;
        at = kr__ptx_skip_blanks(at, reader->end);
    } while (at < reader->end && *at++ == ',');
}

/* .loc 1 20 3, function_name $L__info, inlined_at 1 40 5: to the line's end */
static void location(ptx_reader *reader, ptx_statement *s)
{
    const char *line_end = skip_line(reader->at, reader->end);
    const char *comma = memchr(reader->at, ',', (size_t)(line_end - reader->at));
    s->kind = PTX_STATEMENT_LOCATION;
    s->value = comma ? (ptx_slice){comma, (size_t)(line_end - comma)} : (ptx_slice){line_end, 0};
    reader->at = line_end;
}

/* .pragma "nounroll"; */
static void pragma(ptx_reader *reader, ptx_statement *s)
{
    const char *string = kr__ptx_skip_blanks(reader->at + strlen(".pragma"), reader->end);
    s->kind = PTX_STATEMENT_PRAGMA;
    s->value = (ptx_slice){string, (size_t)(skip_string(string, reader->end) - string)};
    skip_directive(reader);
}

static bool directive(ptx_reader *reader, ptx_statement *s)
{
    const char *begin = reader->at;
    if (begins(reader, ".version"))
        version(reader, s);
    else if (begins(reader, ".target"))
        target(reader, s);
    else if (begins(reader, ".loc"))
        location(reader, s);
    else if (begins(reader, ".pragma"))
        pragma(reader, s);
    else if (begins(reader, ".file") || begins(reader, ".address_size"))
        reader->at = skip_line(reader->at, reader->end);
    else if (begins(reader, ".section"))
        skip_section(reader);
    else
        skip_directive(reader);
    s->whole = (ptx_slice){begin, (size_t)(reader->at - begin)};
    return s->kind != PTX_STATEMENT_END;
}

/* ---- instructions ---- */

/* The semicolon; the text's end where there is none. */
static const char *find_semicolon(const char *at, const char *end)
{
    if (at >= end)
        return end;
    const char *semicolon = memchr(at, ';', (size_t)(end - at));
    const char *stop = semicolon ? semicolon : end;
    if (!memchr(at, '/', (size_t)(stop - at)))
        return stop;
    while (at < end && *at != ';')
        at = skip_one(at, end);
    return at;
}

/* A word: a label, or an instruction's first. */
static bool label_or_instruction(ptx_reader *reader, ptx_statement *s)
{
    const char *begin = reader->at, *end = reader->end, *at = begin;
    if (*at == '@') {
        at = kr__ptx_skip_blanks(at + 1, end);
        at = kr__ptx_skip_blanks(at + (at < end && *at == '!'), end);
        at = skip_word(at, end);
        s->guard = (ptx_slice){begin, (size_t)(at - begin)};
        at = kr__ptx_skip_blanks(at, end);
    }
    const char *after = kr__ptx_skip_blanks(skip_word(at, end), end);
    if (after < end && *after == ':') {
        reader->at = after + 1;
        return false;
    }
    const char *stop = find_semicolon(at, end);
    reader->at = stop < end ? stop + 1 : end;
    *s = (ptx_statement){.kind = PTX_STATEMENT_INSTRUCTION,
                         .whole = {begin, (size_t)(reader->at - begin)},
                         .value = {at, (size_t)(stop - at)},
                         .guard = s->guard};
    return reader->depth > 0 && stop < end;
}

void kr__ptx_next_statement(ptx_reader *reader, ptx_statement *s)
{
    for (;;) {
        *s = (ptx_statement){.kind = PTX_STATEMENT_END};
        reader->at = kr__ptx_skip_blanks(reader->at, reader->end);
        if (reader->at == reader->end)
            return;
        const char c = *reader->at;
        if (c == '.') {
            if (directive(reader, s))
                return;
        } else if (c == '@' || is_word(c)) {
            if (label_or_instruction(reader, s))
                return;
        } else {
            reader->depth += c == '{';
            reader->depth -= c == '}' && reader->depth;
            reader->at++;
        }
    }
}
