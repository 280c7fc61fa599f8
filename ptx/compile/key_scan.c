/* SPDX-License-Identifier: Apache-2.0 */
/* What a text asks for: headers that it includes, and whether there are such. */
#include "ptx/compile/key.h"

#include <stdlib.h>
#include <string.h>

enum {
    N_FIRST_WORDS = 2,
    MOST_WORDS = 256,
    MOST_LINE = 4096 /* before a question */
};

static const char blanks[] = " \t\v\f\r";

static bool is_of_word(char c)
{
    return c == '_' || (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

/* The next `word` from `at` that is no part of a longer one, or NULL. */
static const char *find_word(const char *from, const char *at, const char *word)
{
    const size_t n = strlen(word);
    for (; (at = strstr(at, word)); at++)
        if ((at == from || !is_of_word(at[-1])) && !is_of_word(at[n]))
            return at;
    return NULL;
}

static const char *back_over_blanks(const char *from, const char *at)
{
    while (at > from && strchr(blanks, at[-1]))
        at--;
    return at;
}

static bool ends(const char *from, const char *at, const char *word)
{
    const size_t n = strlen(word);
    return (size_t)(at - from) >= n && !strncmp(at - n, word, n) &&
           (!is_of_word(*word) || (size_t)(at - from) == n || !is_of_word(at[-(ptrdiff_t)n - 1]));
}

/* "#include" that names its header by a macro has no key, nor has one with a comment within. */
static void scan_includes(keying *k, const char *data, const char *folder)
{
    for (const char *at = data; !k->failed && (at = strstr(at, "include"));) {
        const char *before = back_over_blanks(data, at);
        at += strlen("include");
        k->failed |= ends(data, before, "*/");
        if (!ends(data, before, "#"))
            continue;
        at += strncmp(at, "_next", 5) ? 0 : 5;
        at += strspn(at, blanks);
        k->failed |= !kr__key_add_header(k, at, folder);
    }
}

static bool add_word(keying *k, const char *text, size_t n, bool asks)
{
    for (size_t i = 0; i < k->n_words; i++)
        if (k->words[i].asks == asks && !strncmp(k->words[i].text, text, n) && !k->words[i].text[n])
            return true;
    sought *words = kr__grow(k->words, k->n_words, sizeof *words);
    k->words = words ? words : k->words;
    char *copy = words && k->n_words < MOST_WORDS ? strndup(text, n) : NULL;
    if (copy)
        words[k->n_words++] = (sought){copy, asks};
    return copy;
}

static size_t word_bytes(const char *at)
{
    size_t n = 0;
    while (is_of_word(at[n]))
        n++;
    return n;
}

/* "#define NAME(X) ... QUESTION(X)", where `at` is behind QUESTION: NAME is a question too. */
static bool add_question(keying *k, const char *name, const char *at)
{
    name += strspn(name, blanks);
    const size_t n = word_bytes(name);
    const char *argument = name + n + 1;
    const size_t n_argument = name[n] == '(' ? word_bytes(argument) : 0;
    return n_argument && argument[n_argument] == ')' && *at == '(' &&
           !strncmp(at + 1, argument, n_argument) && at[1 + n_argument] == ')' && add_word(k, name, n, true);
}

/* A macro is given <name> as words and marks: other blanks come out, and macros in it are replaced. */
static bool add_name(keying *k, const char *at)
{
    if (*at++ == '"')
        return true;
    for (size_t n; *at != '>'; at += n ? n : 1) {
        n = word_bytes(at);
        if (n ? !add_word(k, at, n, false) : !strchr("./-+", *at))
            return false;
    }
    return true;
}

/* Is a word at [at, behind) no macro, a question about a header that is named there, or no question? */
static bool ask(keying *k, size_t which, const char *data, const char *at, const char *folder)
{
    static const char *const no_questions[] = {"define", "undef", "ifdef", "ifndef", "defined"};
    const char *before = back_over_blanks(data, at), *line = at, *behind = at + strlen(k->words[which].text);
    if (!k->words[which].asks)
        return !ends(data, before, "define");
    if (before > data && before[-1] == '(' && ends(data, back_over_blanks(data, before - 1), "defined"))
        return true;
    for (size_t i = 0; i < KR_COUNT(no_questions); i++)
        if (ends(data, before, no_questions[i]))
            return true;
    while (line > data && line[-1] != '\n' && at - line < MOST_LINE)
        line--;
    if (at - line == MOST_LINE || memmem(line, (size_t)(at - line), "*/", 2))
        return false;
    behind += strspn(behind, blanks);
    for (; (line = memmem(line, (size_t)(at - line), "define", 6)); line += 6)
        if (!is_of_word(line[6]))
            return add_question(k, line + 6, behind);
    if (*behind != '(')
        return false;
    behind += 1 + strspn(behind + 1, blanks);
    return kr__key_add_header(k, behind, folder) && (which < N_FIRST_WORDS || add_name(k, behind));
}

static void scan_words(keying *k, const scanned *s)
{
    for (size_t i = s->n_words; i < k->n_words; i++) {
        const size_t n = strlen(k->words[i].text);
        for (const char *at = s->data; !k->failed && (at = find_word(s->data, at, k->words[i].text)); at += n)
            k->failed |= !ask(k, i, s->data, at, s->folder);
    }
}

/* Marks that are spelled otherwise could hide an include line; the time is another each time. */
static bool is_unknowable(const char *data)
{
    static const char *const words[] = {"%:", "?\?=", "?\?/", "__DATE__", "__TIME__"};
    for (size_t i = 0; i < KR_COUNT(words); i++)
        if (strstr(data, words[i]))
            return true;
    return false;
}

static void add_first_words(keying *k)
{
    static const char *const words[N_FIRST_WORDS] = {"__has_include", "__has_include_next"};
    for (size_t i = 0; i < KR_COUNT(words); i++)
        k->failed |= !add_word(k, words[i], strlen(words[i]), true);
}

/* A text may lead to more texts, and to words that others were not looked at for. */
void kr__key_scan(keying *k)
{
    size_t n_words;
    add_first_words(k);
    do {
        n_words = k->n_words;
        for (size_t i = 0; i < k->n_texts && !k->failed; i++) {
            const scanned s = k->texts[i];
            if (!s.n_words) {
                k->failed |= is_unknowable(s.data);
                scan_includes(k, s.data, s.folder);
            }
            scan_words(k, &s);
            k->texts[i].n_words = k->n_words;
        }
    } while (k->n_words > n_words && !k->failed);
}
