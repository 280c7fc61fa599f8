/* SPDX-License-Identifier: Apache-2.0 */
/* One instruction by the rows of rules.def. */
#include "ptx/relevel/relevel.h"

#include <stdlib.h>
#include <string.h>

#include "ptx/image/scan.h"

enum { MAX_WORDS = 16, MAX_OPERANDS = 8, MAX_CAPTURES = 6, MAX_ALTERNATIVES = 4 };

static const struct row {
    int isa, sm;
    enum { HINT, SPELLING, PRAGMA, FORM } kind;
    const char *from, *to; /* to NULL: there is no way */
} rows[] = {
#define HINT(isa, sm, word) {isa, sm, HINT, word, ""},
#define SPELLING(isa, sm, from, to) {isa, sm, SPELLING, from, to},
#define PRAGMA(isa, sm, word) {isa, sm, PRAGMA, word, ""},
#define FORM(isa, sm, from, to) {isa, sm, FORM, from, to},
#define REFUSE(isa, sm, from) {isa, sm, FORM, from, NULL},
#include "ptx/relevel/rules.def"
#undef REFUSE
#undef HINT
#undef SPELLING
#undef PRAGMA
#undef FORM
};

/* A form's name, taken apart. */
typedef struct form {
    const struct row *row;
    ptx_slice parts[MAX_WORDS]; /* "ld", "(cta|gpu=gl)", "[NaN]" */
    size_t n_parts;
    bool is_open; /* further words may stand there */
    int n_operands;
    const char *value; /* what those from $2 on are; NULL: anything */
} form;

/* "ld" and "st", of a form that begins with (ld|st) */
typedef struct first_word {
    ptx_slice word;
    const form *form;
} first_word;

struct ptx_rules {
    const struct row *words[KR_COUNT(rows)];
    form forms[KR_COUNT(rows)];
    first_word firsts[KR_COUNT(rows) * MAX_ALTERNATIVES]; /* by word, then in the rows' order */
    size_t n_words, n_forms, n_firsts;
};

/* Of the words between the dots of a name. */
static bool is_word_char(char c)
{
    return c == ':' || kr__scan_is_word(c);
}

static ptx_slice slice(const char *at, const char *end)
{
    return (ptx_slice){at, (size_t)(end - at)};
}

static bool equal(ptx_slice a, ptx_slice b)
{
    return a.bytes == b.bytes && !memcmp(a.at, b.at, a.bytes);
}

static void add(kr__text *to, ptx_slice text)
{
    kr__text_add_bytes(to, text.at, text.bytes);
}

/* ---- the table, ready for use ---- */

static form read_form(const struct row *row)
{
    form f = {.row = row};
    const char *at = row->from;
    while (*at && *at != '/' && strncmp(at, "...", 3)) {
        const char close = *at == '(' ? ')' : ']';
        const char *end = *at == '(' || *at == '[' ? strchr(at, close) + 1 : at + strcspn(at, "./");
        if (f.n_parts < MAX_WORDS)
            f.parts[f.n_parts++] = slice(at, end);
        at = end + (*end == '.' && strncmp(end, "...", 3));
    }
    f.is_open = !strncmp(at, "...", 3);
    at += f.is_open ? 3 : 0;
    if (*at == '/') {
        f.n_operands = at[1] - '0';
        f.value = at[2] == ':' ? at + 3 : NULL;
    }
    return f;
}

static int compare_words(ptx_slice a, ptx_slice b)
{
    const int order = memcmp(a.at, b.at, a.bytes < b.bytes ? a.bytes : b.bytes);
    return order ? order : (a.bytes > b.bytes) - (a.bytes < b.bytes);
}

static int compare_firsts(const void *left, const void *right)
{
    const first_word *a = left, *b = right;
    const int order = compare_words(a->word, b->word);
    return order ? order : (a->form > b->form) - (a->form < b->form);
}

static void add_firsts(ptx_rules *rules, const form *f)
{
    const bool is_plain = *f->parts[0].at != '(';
    const char *at = f->parts[0].at + !is_plain, *const end = f->parts[0].at + f->parts[0].bytes - !is_plain;
    while (at < end) {
        const char *bar = memchr(at, '|', (size_t)(end - at)), *stop = bar ? bar : end;
        rules->firsts[rules->n_firsts++] = (first_word){slice(at, stop), f};
        at = stop + 1;
    }
}

/* The first of the forms that begin with this word, or where it would be. */
static const first_word *find_first(const ptx_rules *rules, ptx_slice word)
{
    const first_word *at = rules->firsts;
    for (size_t n = rules->n_firsts; n;) {
        const size_t half = n / 2;
        const bool is_before = compare_words(at[half].word, word) < 0;
        at += is_before ? half + 1 : 0;
        n = is_before ? n - half - 1 : half;
    }
    return at;
}

ptx_rules *kr__ptx_rules_create(ptx_level goal, bool spells_older)
{
    ptx_rules *rules = calloc(1, sizeof *rules);
    for (size_t i = 0; rules && i < KR_COUNT(rows); i++) {
        const struct row *row = &rows[i];
        const bool is_there = row->isa <= goal.isa && row->sm <= goal.sm;
        if (row->kind == FORM && !is_there)
            rules->forms[rules->n_forms++] = read_form(row);
        else if (!is_there || (spells_older && row->kind == SPELLING))
            rules->words[rules->n_words++] = row;
    }
    for (size_t i = 0; rules && i < rules->n_forms; i++)
        add_firsts(rules, &rules->forms[i]);
    if (rules)
        qsort(rules->firsts, rules->n_firsts, sizeof *rules->firsts, compare_firsts);
    return rules;
}

void kr__ptx_rules_destroy(ptx_rules **rules)
{
    free(*rules);
    *rules = NULL;
}

/* ---- an instruction's name ---- */

typedef struct name {
    ptx_slice words[MAX_WORDS];
    size_t n_words;
    const char *end;
} name;

/* The first word and the dotted ones after it, which blanks may stand between. False: more than any has. */
static bool read_name(ptx_slice text, name *n)
{
    const char *at = text.at, *const end = text.at + text.bytes;
    for (n->n_words = 0; n->n_words < MAX_WORDS;) {
        const char *begin = at;
        while (at < end && is_word_char(*at))
            at++;
        n->words[n->n_words++] = slice(begin, at);
        n->end = at;
        at = kr__scan_blanks(at, end);
        if (at == end || *at != '.')
            return true;
        at = kr__scan_blanks(at + 1, end);
    }
    return false;
}

typedef struct match {
    const form *form;
    ptx_slice captures[MAX_CAPTURES];
    char dotted[MAX_CAPTURES]; /* '.' before it, or 0 */
    size_t n_captures;
    uint32_t used;    /* of the name's words */
    size_t next_type; /* types stand in the row's order: the first word that the next may be */
} match;

/* Does one of "a|b=c" fit the word? *ret is what to write for it. */
static bool alternative(const char *at, const char *end, ptx_slice word, ptx_slice *ret)
{
    while (at < end) {
        const char *bar = memchr(at, '|', (size_t)(end - at));
        const char *stop = bar ? bar : end, *equals = memchr(at, '=', (size_t)(stop - at));
        if (equal(slice(at, equals ? equals : stop), word)) {
            *ret = equals ? slice(equals + 1, stop) : word;
            return true;
        }
        at = stop + 1;
    }
    return false;
}

/* "f32", "bf16x2", "e4m3x2": not "v2" or "m16n8k8" */
static bool is_type(ptx_slice word)
{
    const char last = word.bytes ? word.at[word.bytes - 1] : 0;
    return last >= '0' && last <= '9' && memchr("befstu", *word.at, 6);
}

static bool match_part(match *m, const name *n, ptx_slice part, bool is_first)
{
    const bool is_plain = *part.at != '(' && *part.at != '[', is_optional = *part.at == '[';
    const char *at = part.at + !is_plain, *end = part.at + part.bytes - !is_plain;
    ptx_slice found = {part.at, 0};
    bool ok = false;
    for (size_t i = is_first ? 0 : 1; i < (is_first ? 1 : n->n_words) && !ok; i++)
        if (!(m->used >> i & 1) && (i >= m->next_type || !is_type(n->words[i])) &&
            alternative(at, end, n->words[i], &found)) {
            ok = true;
            m->used |= 1u << i;
            m->next_type = is_type(n->words[i]) ? i + 1 : m->next_type;
        }
    if (!is_plain && m->n_captures < MAX_CAPTURES) {
        m->dotted[m->n_captures] = is_optional && ok ? '.' : 0;
        m->captures[m->n_captures++] = found;
    }
    return ok || is_optional;
}

static bool match_form(const form *f, const name *n, match *m)
{
    *m = (match){.form = f};
    if (n->n_words > f->n_parts && !f->is_open)
        return false;
    for (size_t i = 0; i < f->n_parts; i++)
        if (!match_part(m, n, f->parts[i], i == 0))
            return false;
    return f->is_open || m->used == (1u << n->n_words) - 1;
}

/* ---- its operands ---- */

typedef struct operands {
    kr__text text; /* without comments and line ends */
    ptx_slice all, list[MAX_OPERANDS];
    size_t n;
} operands;

static ptx_slice trim(ptx_slice s)
{
    while (s.bytes && *s.at == ' ')
        s.at++, s.bytes--;
    while (s.bytes && s.at[s.bytes - 1] == ' ')
        s.bytes--;
    return s;
}

static void add_plain(kr__text *to, const char *at, const char *end)
{
    while (at < end) {
        const char *blank_end = kr__scan_blanks(at, end);
        if (blank_end > at)
            kr__text_add_bytes(to, " ", 1);
        at = blank_end;
        const char *begin = at;
        while (at < end && kr__scan_blanks(at, at + 1) == at && *at != '/')
            at++;
        at += at == begin && at < end; /* a '/' that begins no comment */
        kr__text_add_bytes(to, begin, (size_t)(at - begin));
    }
}

/* What stands between commas outside of braces and brackets. */
static void split(operands *o)
{
    const char *at = o->text.data, *const end = at + o->text.bytes, *begin = at;
    unsigned depth = 0;
    o->all = trim(slice(at, end));
    for (; at < end; at++) {
        depth += *at == '{' || *at == '[' || *at == '(';
        depth -= (*at == '}' || *at == ']' || *at == ')') && depth;
        if (*at == ',' && !depth) {
            if (o->n < MAX_OPERANDS)
                o->list[o->n] = trim(slice(begin, at));
            o->n++;
            begin = at + 1;
        }
    }
    if (o->all.bytes && o->n < MAX_OPERANDS)
        o->list[o->n] = trim(slice(begin, end));
    o->n += o->all.bytes > 0;
}

/* False: out of memory, or more operands than any row has. */
static bool read_operands(const char *at, const char *end, operands *o)
{
    *o = (operands){0};
    add_plain(&o->text, at, end);
    if (o->text.failed)
        return false;
    if (o->text.data)
        split(o);
    return o->n <= MAX_OPERANDS;
}

static bool operands_fit(const form *f, const operands *o)
{
    if (f->n_operands && (size_t)f->n_operands != o->n)
        return false;
    for (size_t i = 2; f->value && i < o->n; i++)
        if (!equal(o->list[i], (ptx_slice){f->value, strlen(f->value)}))
            return false;
    return true;
}

/* ---- writing the replacement ---- */

typedef struct writer {
    kr__text *to;
    const match *m;
    const name *n;
    const operands *o;
    ptx_slice guard;
    bool is_negated;
    unsigned serial;
    bool is_dropped; /* the statement that is being written */
    bool ok;         /* the row asks for nothing that the instruction lacks */
} writer;

static void add_slices(writer *w, size_t first, size_t end)
{
    for (size_t i = first; i < end; i++) {
        kr__text_add_bytes(w->to, ", ", i > first || first ? 2 : 0);
        add(w->to, w->o->list[i]);
    }
}

static void add_rest(writer *w)
{
    for (size_t i = 0; i < w->n->n_words; i++)
        if (!(w->m->used >> i & 1)) {
            kr__text_add_bytes(w->to, ".", 1);
            add(w->to, w->n->words[i]);
        }
}

/* p|q */
static void add_half(writer *w, bool is_left)
{
    const ptx_slice first = w->o->n ? w->o->list[0] : (ptx_slice){"", 0};
    const char *bar = first.bytes ? memchr(first.at, '|', first.bytes) : NULL;
    const char *end = first.at + first.bytes;
    w->ok &= bar || is_left;
    if (!bar)
        bar = end;
    const ptx_slice half = trim(is_left ? slice(first.at, bar) : slice(bar < end ? bar + 1 : end, end));
    w->is_dropped |= equal(half, (ptx_slice){"_", 1});
    add(w->to, half);
}

static void add_variable(writer *w, char c)
{
    const size_t capture = (size_t)(c - 'A');
    if (c >= '0' && c <= '9') {
        if ((size_t)(c - '0') < w->o->n)
            add(w->to, w->o->list[c - '0']);
        else
            w->ok = false;
    } else if (c == '@') {
        add(w->to, w->o->all);
    } else if (c == '-') {
        w->ok &= w->o->n > 0;
        add_slices(w, 0, w->o->n ? w->o->n - 1 : 0);
    } else if (c == '+') {
        add_slices(w, 3, w->o->n);
    } else if (c == '*') {
        add_rest(w);
    } else if (c == '<' || c == '>') {
        add_half(w, c == '<');
    } else if (capture < w->m->n_captures) {
        kr__text_add_bytes(w->to, ".", w->m->dotted[capture] != 0);
        add(w->to, w->m->captures[capture]);
    }
}

static void add_guard(writer *w, bool is_negated)
{
    kr__text_add(w->to, "@%s%.*s ", is_negated ? "!" : "", (int)w->guard.bytes, w->guard.at);
}

/* One statement of a replacement, or a brace or label before one. Returns what is behind it. */
static const char *add_piece(writer *w, const char *at, bool is_guarded)
{
    const size_t before = w->to->bytes;
    w->is_dropped = false;
    for (; *at == ' ' || *at == '{' || *at == '}'; at++)
        kr__text_add_bytes(w->to, at, 1);
    if (!*at)
        return at;
    if (is_guarded && *at != '.') {
        add_guard(w, w->is_negated);
    }
    for (bool is_end = false; *at && !is_end; at++) {
        is_end = *at == ';' || *at == ':';
        if (*at == '$')
            add_variable(w, *++at);
        else if (*at == '#')
            kr__text_add(w->to, "$kr%u_", w->serial);
        else
            kr__text_add_bytes(w->to, at, 1);
    }
    if (w->is_dropped && !w->to->failed)
        w->to->data[w->to->bytes = before] = '\0';
    return at;
}

/* The guard with the other sign, as the condition on which all is left out. */
static void add_detour(writer *w)
{
    kr__text_add_bytes(w->to, "{", 1);
    add_guard(w, !w->is_negated);
    kr__text_add(w->to, "bra $kr%u_end; ", w->serial);
}

static void add_replacement(writer *w, const char *text)
{
    const bool is_guarded = w->guard.bytes, has_branches = strstr(text, "bra #");
    if (is_guarded && has_branches)
        add_detour(w);
    while (*text)
        text = add_piece(w, text, is_guarded && !has_branches);
    if (is_guarded && has_branches)
        kr__text_add(w->to, " $kr%u_end: }", w->serial);
}

/* The message of an error names the line: so it stays the same one. */
static void add_line_ends(kr__text *to, ptx_slice whole)
{
    const char *at = whole.at, *const end = at + whole.bytes;
    while (at < end && (at = memchr(at, '\n', (size_t)(end - at)))) {
        kr__text_add_bytes(to, "\n", 1);
        at++;
    }
}

/* By this row; false: it asks for operands that are not there. */
static bool replace(const match *m, const name *n, const operands *o, const ptx_statement *s,
                    unsigned *serial, kr__text *to)
{
    const size_t before = to->bytes;
    writer w = {.to = to,
                .m = m,
                .n = n,
                .o = o,
                .guard = s->guard,
                .is_negated = s->is_negated,
                .serial = *serial,
                .ok = true};
    add_replacement(&w, m->form->row->to);
    if (!w.ok && !to->failed)
        to->data[to->bytes = before] = '\0';
    if (!w.ok)
        return false;
    add_line_ends(to, s->whole);
    ++*serial;
    return true;
}

static ptx_made rewrite_form(const ptx_rules *rules, const ptx_statement *s, const name *n, unsigned *serial,
                             kr__text *to)
{
    match m;
    operands o = {0};
    bool has_operands = false;
    ptx_made made = {0};
    const first_word *end = rules->firsts + rules->n_firsts;
    for (const first_word *first = find_first(rules, n->words[0]);
         first < end && equal(first->word, n->words[0]) && !made.rule; first++) {
        const form *f = first->form;
        if (!match_form(f, n, &m))
            continue;
        if (!has_operands && !(has_operands = read_operands(n->end, s->value.at + s->value.bytes, &o))) {
            to->failed |= o.text.failed;
            break;
        }
        if (!operands_fit(f, &o))
            continue;
        if (!f->row->to)
            made = (ptx_made){f->row->from, {f->row->isa, f->row->sm}};
        else if (replace(&m, n, &o, s, serial, to))
            made.rule = f->row->from;
    }
    kr__text_free(&o.text);
    return made;
}

/* NULL: no row is for it */
static const struct row *find_word(const ptx_rules *rules, ptx_slice word)
{
    for (size_t i = 0; i < rules->n_words; i++)
        if (equal(word, (ptx_slice){rules->words[i]->from, strlen(rules->words[i]->from)}))
            return rules->words[i];
    return NULL;
}

/* The first of them: what is made may have another. */
static const char *rewrite_word(const ptx_rules *rules, const ptx_statement *s, const name *n, kr__text *to)
{
    for (size_t i = 1; i < n->n_words; i++) {
        const ptx_slice word = n->words[i], before = n->words[i - 1];
        const struct row *row = memchr(word.at, ':', word.bytes) ? find_word(rules, word) : NULL;
        if (!row)
            continue;
        add(to,
            slice(s->whole.at, *row->to ? word.at : before.at + before.bytes)); /* with the dot, or without */
        kr__text_add_bytes(to, row->to, strlen(row->to));
        add(to, slice(word.at + word.bytes, s->whole.at + s->whole.bytes));
        return row->from;
    }
    return NULL;
}

bool kr__ptx_drops_pragma(const ptx_rules *rules, ptx_slice string)
{
    for (size_t i = 0; i < rules->n_words; i++) {
        const size_t n = strlen(rules->words[i]->from);
        if (rules->words[i]->kind == PRAGMA && string.bytes > n + 1 && *string.at == '"' &&
            !memcmp(string.at + 1, rules->words[i]->from, n) && !is_word_char(string.at[n + 1]))
            return true;
    }
    return false;
}

ptx_made kr__ptx_rewrite(const ptx_rules *rules, const ptx_statement *statement, unsigned *serial,
                         kr__text *to)
{
    name n;
    if (!read_name(statement->value, &n))
        return (ptx_made){0};
    ptx_made made = rewrite_form(rules, statement, &n, serial, to);
    if (!made.rule)
        made.rule = rewrite_word(rules, statement, &n, to);
    return made;
}
