/* SPDX-License-Identifier: Apache-2.0 */
/* PTX text, statement by statement. It is not verified: that is the front end's. */
#include "ptx/relevel/relevel.h"

#include <string.h>

#include "ptx/image/scan.h"

/* ---- directives: from behind their names ---- */

/* To past its semicolon, or to the brace that begins a function's body: one that no '=' stands before. */
static const char *skip_directive(const char *at, const char *end)
{
    bool is_initial = false;
    for (;;) {
        const char *begin = kr__scan_blanks(at, end);
        at = kr__scan_token(begin, end);
        if (at == begin || *begin == ';')
            return at;
        if (*begin == '{') {
            at = begin;
            if (!is_initial)
                return at;
            kr__scan_block(&at, end);
        }
        is_initial |= *begin == '=';
    }
}

/* Past what begins so: 1 "a.cu", 1733, 20 */
static const char *skip_values(const char *at, const char *end, const char *beginnings)
{
    for (;;) {
        const char *begin = kr__scan_blanks(at, end), *after = kr__scan_token(begin, end);
        if (after == begin || !strchr(beginnings, *begin))
            return at;
        at = after;
    }
}

static bool is_mark(const char *at, const char *end, char mark)
{
    return at < end && *at == mark;
}

/* 1 20 3, function_name $L__info + 8, inlined_at 1 40 5: what ends it is that no more of this follows */
static const char *location(const char *at, const char *end, ptx_statement *s)
{
    at = s->value.at = skip_values(at, end, "0123456789");
    for (const char *next; is_mark(next = kr__scan_blanks(at, end), end, ',');) {
        at = kr__scan_token(kr__scan_blanks(next + 1, end), end);
        next = kr__scan_blanks(at, end);
        if (next < end && kr__scan_is_word(*next) && !(*next >= '0' && *next <= '9'))
            at = kr__scan_token(next, end);
        at = skip_values(at, end, "0123456789+");
    }
    s->kind = PTX_STATEMENT_LOCATION;
    s->value.bytes = (size_t)(at - s->value.at);
    return at;
}

/* "nounroll"; */
static const char *pragma(const char *at, const char *end, ptx_statement *s)
{
    s->kind = PTX_STATEMENT_PRAGMA;
    s->value.at = kr__scan_blanks(at, end);
    s->value.bytes = (size_t)(kr__scan_token(s->value.at, end) - s->value.at);
    return skip_directive(at, end);
}

static const char *directive(const char *begin, const char *name_end, const char *end, ptx_statement *s)
{
    const char *at = name_end;
    if (kr__scan_is(begin, name_end, ".loc"))
        at = location(at, end, s);
    else if (kr__scan_is(begin, name_end, ".pragma"))
        at = pragma(at, end, s);
    else if (kr__scan_is(begin, name_end, ".file") || kr__scan_is(begin, name_end, ".address_size"))
        at = skip_values(at, end, "0123456789\",");
    else
        at = skip_directive(at, end);
    if (kr__scan_is(begin, name_end, ".section") && is_mark(at, end, '{')) {
        s->kind = PTX_STATEMENT_SECTION;
        s->value.at = at;
        kr__scan_block(&at, end);
        s->value.bytes = (size_t)(at - s->value.at);
    }
    s->whole = (ptx_slice){begin, (size_t)(at - begin)};
    return at;
}

/* ---- instructions ---- */

/* The semicolon; the text's end where there is none. */
static const char *find_semicolon(const char *at, const char *end)
{
    const char *semicolon = at < end ? memchr(at, ';', (size_t)(end - at)) : NULL;
    const char *stop = semicolon ? semicolon : end;
    if (at >= stop || !memchr(at, '/', (size_t)(stop - at)))
        return stop;
    for (const char *after; (at = kr__scan_blanks(at, end)) < end && *at != ';'; at = after)
        if ((after = kr__scan_token(at, end)) == at)
            return end;
    return at;
}

/* A label, or an instruction; it begins with a token that ends at `after`. */
static const char *label_or_instruction(const char *begin, const char *after, const char *end,
                                        ptx_statement *s)
{
    const char *at = begin;
    if (*at == '@') {
        at = kr__scan_blanks(after, end);
        s->is_negated = is_mark(at, end, '!');
        s->guard.at = at = kr__scan_blanks(at + s->is_negated, end);
        at = kr__scan_token(at, end);
        s->guard.bytes = (size_t)(at - s->guard.at);
        at = kr__scan_blanks(at, end);
        after = kr__scan_token(at, end);
    }
    after = kr__scan_blanks(after, end);
    if (after < end && *after == ':')
        return after + 1;
    const char *stop = find_semicolon(at, end);
    if (stop == end)
        return end;
    s->kind = PTX_STATEMENT_INSTRUCTION;
    s->whole = (ptx_slice){begin, (size_t)(stop + 1 - begin)};
    s->value = (ptx_slice){at, (size_t)(stop - at)};
    return stop + 1;
}

void kr__ptx_next_statement(ptx_reader *reader, ptx_statement *s)
{
    const char *begin, *end = reader->end, *after;
    do {
        *s = (ptx_statement){.kind = PTX_STATEMENT_END};
        begin = kr__scan_blanks(reader->at, end);
        after = kr__scan_token(begin, end);
        if (after == begin)
            return;
        if (*begin == '.')
            after = directive(begin, after, end, s);
        else if (reader->depth && (*begin == '@' || kr__scan_is_word(*begin)))
            after = label_or_instruction(begin, after, end, s);
        reader->depth += *begin == '{';
        reader->depth -= *begin == '}' && reader->depth;
        reader->at = after;
    } while (!s->kind);
}
