/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What PTX needs follows from which instructions, directives and types it has, not from how often. So of
 * statements that differ in names and numbers alone the first is kept, and of kernels that add nothing, none:
 * what is left of a hundred megabytes is parsed in no time and little memory. Nor does it count how many
 * numbers a table has.
 */
#include <stdlib.h>
#include <string.h>

#include "ptx/image/image.h"
#include "ptx/image/scan.h"

typedef struct abridger {
    const char *at, *end;
    kr__text *to;
    uint64_t *seen; /* hashes of what was kept; 0: free */
    size_t n_seen, room;
    bool all_kernels; /* are kept */
    bool failed;      /* no memory */
} abridger;

/* ---- what was seen ---- */

static size_t slot_of(const uint64_t *seen, size_t room, uint64_t hash)
{
    size_t slot = hash & (room - 1);
    while (seen[slot] && seen[slot] != hash)
        slot = (slot + 1) & (room - 1);
    return slot;
}

static void grow(abridger *a)
{
    const size_t room = a->room ? 2 * a->room : 1024;
    uint64_t *seen = calloc(room, sizeof *seen);
    for (size_t i = 0; seen && i < a->room; i++)
        if (a->seen[i])
            seen[slot_of(seen, room, a->seen[i])] = a->seen[i];
    a->failed = a->failed || !seen;
    if (!seen)
        return;
    free(a->seen);
    a->seen = seen;
    a->room = room;
}

/* Is it the first of its kind? */
static bool is_new(abridger *a, uint64_t hash)
{
    hash |= !hash;
    if (2 * a->n_seen >= a->room)
        grow(a);
    if (a->failed)
        return true;
    const size_t slot = slot_of(a->seen, a->room, hash);
    const bool found = a->seen[slot] != 0;
    a->n_seen += !found;
    a->seen[slot] = hash;
    return !found;
}

/* ---- text ---- */

enum byte_class { OTHER, DIGIT, LETTER }; /* letters: what words are of, but digits */

static enum byte_class class_of(char c)
{
    static const uint8_t classes[256] = {
        ['0' ... '9'] = DIGIT, ['a' ... 'z'] = LETTER, ['A' ... 'Z'] = LETTER, ['_'] = LETTER,
        ['$'] = LETTER,        ['%'] = LETTER,         ['.'] = LETTER,
    };
    return (enum byte_class)classes[(unsigned char)c];
}

/* Past one thing that blanks do not stand in; a byte of what is not closed before `end`. */
static const char *past_one(const char *at, const char *end)
{
    const char *after = kr__scan_token(at, end);
    return after > at ? after : at + 1;
}

/* ".shared::cta" and "add.u32" are one word. */
static const char *word_end(const char *at, const char *end)
{
    for (;;) {
        while (at < end && class_of(*at) >= DIGIT)
            at++;
        if (end - at < 2 || at[0] != ':' || at[1] != ':')
            return at;
        at += 2;
    }
}

static uint64_t mix(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * 0x9e3779b97f4a7c15u;
    return hash ^ hash >> 32;
}

static uint64_t mix_text(uint64_t hash, const char *at, const char *end)
{
    uint64_t value;
    for (; end - at >= (ptrdiff_t)sizeof value; at += sizeof value) {
        memcpy(&value, at, sizeof value);
        hash = mix(hash, value);
    }
    for (value = 0; at < end; at++)
        value = value << 8 | (unsigned char)*at;
    return mix(hash, value);
}

/* Past a word. One that means something by itself counts as it is written: one with a dot or, as of special
 * registers, with %, but for the digits in that. Of names and numbers only that they are there counts. */
static const char *pass_word(const char *at, const char *end, uint64_t *hash)
{
    const char *begin = at;
    uint64_t letters = 0;
    if (*at == '%') {
        for (; at < end && class_of(*at) >= DIGIT; at++)
            letters = class_of(*at) == DIGIT ? letters : (letters << 8 | letters >> 56) ^ (unsigned char)*at;
        *hash = mix(*hash, letters);
    } else {
        at = word_end(at, end);
        *hash =
            *begin == '.' ? mix_text(*hash, begin, at) : mix(*hash, class_of(*begin) == DIGIT ? '0' : 'x');
    }
    return at;
}

static bool is_one_of(char c, const char *marks)
{
    for (; *marks; marks++)
        if (*marks == c)
            return true;
    return false;
}

/* Up to one of the marks outside of vectors, and what the text until there is like. */
static const char *measure(const char *at, const char *end, const char *marks, uint64_t *hash)
{
    size_t depth = 0;
    while ((at = kr__scan_blanks(at, end)) < end && (depth || !is_one_of(*at, marks))) {
        depth += *at == '{';
        depth -= depth && *at == '}';
        if (class_of(*at) >= DIGIT) {
            at = pass_word(at, end, hash);
        } else {
            *hash = mix(*hash, (unsigned char)*at);
            at = *at == '"' ? past_one(at, end) : at + 1;
        }
    }
    return at;
}

static void copy(abridger *a, const char *end)
{
    kr__text_add_bytes(a->to, a->at, (size_t)(end - a->at));
    a->at = end;
}

static void copy_line(abridger *a, const char *end)
{
    copy(a, end);
    kr__text_add_bytes(a->to, "\n", 1);
}

/* ---- bodies ---- */

static bool begins(const abridger *a, const char *word)
{
    const size_t n = strlen(word);
    return (size_t)(a->end - a->at) > n && memcmp(a->at, word, n) == 0 && class_of(a->at[n]) < DIGIT;
}

/* Past `@p` or `@!p`, which is before some instructions. */
static const char *skip_guard(const char *at, const char *end)
{
    if (*at != '@')
        return at;
    at = kr__scan_blanks(at + 1, end);
    if (at < end && *at == '!')
        at = kr__scan_blanks(at + 1, end);
    return kr__scan_blanks(word_end(at, end), end);
}

/* One instruction or `.loc`, which a line's end ends; `rest`: past its first word. Is it kept? */
static bool abridge_statement(abridger *a, const char *rest)
{
    const bool is_loc = *a->at == '.';
    const char *name = skip_guard(a->at, a->end);
    if (name != a->at)
        rest = word_end(name, a->end);
    uint64_t hash = mix_text(1 + (name != a->at), name, rest);
    const char *line_end = is_loc ? memchr(rest, '\n', (size_t)(a->end - rest)) : NULL;
    const char *end = measure(rest, line_end ? line_end : a->end, is_loc ? "" : ";", &hash);
    end += end < a->end;
    const bool kept = is_new(a, hash);
    if (kept)
        copy_line(a, end);
    a->at = end;
    return kept;
}

/* From its first brace to past its last. Was there something new? */
static bool abridge_body(abridger *a)
{
    bool any = false;
    size_t depth = 0;
    do {
        a->at = kr__scan_blanks(a->at, a->end);
        if (a->at == a->end)
            break;
        const char *word = word_end(a->at, a->end), *mark = kr__scan_blanks(word, a->end);
        uint64_t unused = 0;
        if (*a->at == '{' || *a->at == '}') {
            depth += *a->at == '{' ? 1 : -(size_t)1;
            copy_line(a, a->at + 1);
        } else if (mark < a->end && *mark == ':') { /* a label */
            copy_line(a, mark + 1);
        } else if (*a->at == '.' && !begins(a, ".loc")) {
            const char *end = measure(a->at, a->end, ";", &unused);
            copy_line(a, end + (end < a->end));
        } else {
            any = abridge_statement(a, word) || any;
        }
    } while (depth);
    return any;
}

/* ---- module scope ---- */

/* Does the text have the word, before its first bracket? */
static bool declares(const char *at, const char *end, const char *word)
{
    while ((at = kr__scan_blanks(at, end)) < end && *at != '(') {
        const char *next = past_one(at, end);
        if (kr__scan_is(at, next, word))
            return true;
        at = next;
    }
    return false;
}

/* Past all further numbers of a list. */
static const char *skip_numbers(const char *at, const char *end)
{
    for (;;) {
        const char *comma = kr__scan_blanks(at, end);
        const char *next = comma < end && *comma == ',' ? kr__scan_blanks(comma + 1, end) : end;
        if (next == end || class_of(*next) != DIGIT)
            return at;
        at = word_end(next, end);
    }
}

/* Of numbers in a row the first: what is left out of a list is zero. */
static void abridge_values(abridger *a)
{
    while ((a->at = kr__scan_blanks(a->at, a->end)) < a->end && *a->at != ';') {
        const bool is_number = class_of(*a->at) == DIGIT;
        const char *end = word_end(a->at, a->end);
        copy_line(a, end > a->at ? end : a->at + 1);
        if (is_number)
            a->at = skip_numbers(a->at, a->end);
    }
}

/* Debug data says nothing, but lines that were inlined name its labels. */
static void abridge_section(abridger *a, const char *end)
{
    while ((a->at = kr__scan_blanks(a->at, end)) < end) {
        const char *word = word_end(a->at, end), *mark = kr__scan_blanks(word, end);
        if (mark < end && *mark == ':')
            copy_line(a, mark + 1);
        else
            a->at = word > a->at ? word : a->at + 1;
    }
    kr__text_add_bytes(a->to, "}\n", 2);
}

static void abridge_module(abridger *a)
{
    while (a->at < a->end) {
        const size_t before = a->to->bytes;
        uint64_t hash = 2;
        const char *mark = measure(a->at, a->end, ";={", &hash);
        const bool has_block = mark < a->end && *mark == '{';
        const bool is_entry = has_block && declares(a->at, mark, ".entry");
        if (is_entry || (has_block && declares(a->at, mark, ".func"))) {
            copy(a, mark);
            const bool any = abridge_body(a), is_first = is_new(a, hash);
            if (is_entry && !any && !is_first && !a->all_kernels)
                a->to->bytes = before;
        } else if (has_block) { /* which ends where the next declaration begins */
            const char *end = measure(mark, a->end, ".", &hash);
            if (declares(a->at, mark, ".section")) {
                copy(a, mark + 1);
                abridge_section(a, end);
            }
            copy(a, end);
        } else {
            copy(a, mark);
            abridge_values(a);
            copy(a, a->at + (a->at < a->end));
        }
    }
}

bool kr__ptx_abridge(const char *text, size_t bytes, bool all_kernels, kr__text *to)
{
    abridger a = {.at = text, .end = text + bytes, .to = to, .all_kernels = all_kernels};
    abridge_module(&a);
    free(a.seen);
    return !a.failed && !to->failed;
}
