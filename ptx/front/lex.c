/* SPDX-License-Identifier: Apache-2.0 */
#include "ptx/front/front.h"

#include <errno.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>

/* ctype.h asks the locale. */
static bool is_digit(int c)
{
    return c >= '0' && c <= '9';
}

static int hex_digit(int c)
{
    if (is_digit(c))
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool is_word(int c)
{
    return ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') || c == '_' || c == '$' || is_digit(c);
}

static bool is_word_start(int c)
{
    return c == '%' || (is_word(c) && !is_digit(c));
}

static int peek(const ptx_lexer *lexer, size_t ahead)
{
    return ahead < (size_t)(lexer->end - lexer->at) ? (unsigned char)lexer->at[ahead] : 0;
}

/* False: the text ends inside a comment. */
static bool skip_comment(ptx_lexer *lexer)
{
    for (lexer->at += 2; lexer->at < lexer->end; lexer->at++) {
        if (*lexer->at == '*' && peek(lexer, 1) == '/') {
            lexer->at += 2;
            return true;
        }
        lexer->line += *lexer->at == '\n';
    }
    return false;
}

static bool skip_blanks(ptx_lexer *lexer)
{
    for (;;) {
        const int c = peek(lexer, 0);
        if (c == '\n') {
            lexer->line++;
            lexer->at++;
        } else if (c == ' ' || (c >= '\t' && c <= '\r')) {
            lexer->at++;
        } else if (c == '/' && peek(lexer, 1) == '/') {
            while (lexer->at < lexer->end && *lexer->at != '\n')
                lexer->at++;
        } else if (c == '/' && peek(lexer, 1) == '*') {
            if (!skip_comment(lexer))
                return false;
        } else {
            return true;
        }
    }
}

/* A decimal fraction's bits as a double. strtod_l, because strtod reads what the process's locale says. Like
 * ptxas, out of range is what strtod calls so: what has no normal double. */
static void decimal(const char *text, size_t bytes, ptx_token *token)
{
    char small[64], *copy = bytes < sizeof small ? small : malloc(bytes + 1);
    const locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    double value = 0;
    errno = copy && c ? 0 : ERANGE;
    if (!errno) {
        memcpy(copy, text, bytes);
        copy[bytes] = '\0';
        value = strtod_l(copy, NULL, c);
    }
    token->overflow = errno == ERANGE;
    memcpy(&token->value, &value, sizeof value);
    if (c)
        freelocale(c);
    if (copy != small)
        free(copy);
}

static bool hex_float(ptx_lexer *lexer, ptx_token *token, uint8_t float_bytes)
{
    uint64_t value = 0;
    for (size_t i = 0; i < 2u * float_bytes; i++) {
        const int digit = hex_digit(peek(lexer, 2 + i));
        if (digit < 0)
            return false;
        value = value << 4 | (unsigned)digit;
    }
    lexer->at += 2 + 2u * float_bytes;
    token->kind = PTX_TOKEN_FLOAT;
    token->float_bytes = float_bytes;
    token->value = value;
    return true;
}

/* How many bytes of a decimal float begin here; 0: none. */
static size_t decimal_length(const ptx_lexer *lexer)
{
    size_t n = 0;
    bool is_float = false;
    while (is_digit(peek(lexer, n)))
        n++;
    if (peek(lexer, n) == '.') {
        is_float = true;
        for (n++; is_digit(peek(lexer, n));)
            n++;
    }
    if ((peek(lexer, n) | 0x20) == 'e') {
        size_t after = n + 1;
        after += peek(lexer, after) == '+' || peek(lexer, after) == '-';
        if (is_digit(peek(lexer, after))) {
            is_float = true;
            for (n = after; is_digit(peek(lexer, n));)
                n++;
        }
    }
    return is_float ? n : 0;
}

static void integer(ptx_lexer *lexer, ptx_token *token)
{
    unsigned base = 10;
    if (peek(lexer, 0) == '0') {
        const int second = peek(lexer, 1) | 0x20;
        if (second == 'x' && hex_digit(peek(lexer, 2)) >= 0) {
            base = 16;
            lexer->at += 2;
        } else if (second == 'b' && (peek(lexer, 2) == '0' || peek(lexer, 2) == '1')) {
            base = 2;
            lexer->at += 2;
        } else {
            base = 8;
        }
    }
    token->kind = PTX_TOKEN_INTEGER;
    for (;;) {
        const int digit = hex_digit(peek(lexer, 0));
        if (digit < 0 || (unsigned)digit >= base)
            break;
        token->overflow |= __builtin_mul_overflow(token->value, (uint64_t)base, &token->value);
        token->overflow |= __builtin_add_overflow(token->value, (uint64_t)digit, &token->value);
        lexer->at++;
    }
    if (peek(lexer, 0) == 'U')
        lexer->at++;
}

static void number(ptx_lexer *lexer, ptx_token *token)
{
    const int second = peek(lexer, 1) | 0x20;
    if (peek(lexer, 0) == '0' && second == 'f' && hex_float(lexer, token, 4))
        return;
    if (peek(lexer, 0) == '0' && second == 'd' && hex_float(lexer, token, 8))
        return;
    const size_t n = peek(lexer, 0) == '0' && second == 'x' ? 0 : decimal_length(lexer);
    if (!n) {
        integer(lexer, token);
        return;
    }
    token->kind = PTX_TOKEN_FLOAT;
    token->float_bytes = 8;
    decimal(lexer->at, n, token);
    lexer->at += n;
}

static void dotted(ptx_lexer *lexer)
{
    lexer->at++;
    while (is_word(peek(lexer, 0)) ||
           (peek(lexer, 0) == ':' && peek(lexer, 1) == ':' && is_word(peek(lexer, 2))))
        lexer->at += peek(lexer, 0) == ':' ? 2 : 1;
    lexer->word_end = lexer->at;
}

/* It may go over lines; one that does not end is a mark of its own. */
static void string(ptx_lexer *lexer, ptx_token *token)
{
    const char *begin = ++lexer->at, *end = memchr(begin, '"', (size_t)(lexer->end - begin));
    if (!end)
        return;
    for (; lexer->at < end; lexer->at++)
        lexer->line += *lexer->at == '\n';
    token->kind = PTX_TOKEN_STRING;
    lexer->at++;
}

static void mark(ptx_lexer *lexer, ptx_token *token, int c)
{
    static const char pairs[][3] = {"==", "!=", "<=", ">=", "&&", "||", "<<", ">>"};
    token->kind = c && strchr("@!,;:{}[]()<>=+-*/%&|^~?", c) ? PTX_TOKEN_MARK : PTX_TOKEN_WRONG;
    token->mark = c;
    lexer->at++;
    for (size_t i = 0; i < KR_COUNT(pairs); i++)
        if (c == pairs[i][0] && peek(lexer, 0) == pairs[i][1]) {
            token->mark = PTX_MARK2(pairs[i][0], pairs[i][1]);
            lexer->at++;
            return;
        }
}

void kr__ptx_next_token(ptx_lexer *lexer, ptx_token *token)
{
    const bool ok = skip_blanks(lexer);
    *token =
        (ptx_token){.kind = ok ? PTX_TOKEN_END : PTX_TOKEN_WRONG, .line = lexer->line, .text.at = lexer->at};
    const int c = peek(lexer, 0);
    if (lexer->at == lexer->end)
        return;
    if (is_word_start(c) && (c != '%' || is_word(peek(lexer, 1)))) {
        token->kind = PTX_TOKEN_WORD;
        do
            lexer->at++;
        while (is_word(peek(lexer, 0)));
        lexer->word_end = lexer->at;
    } else if (c == '.' && (is_word_start(peek(lexer, 1)) ||
                            (is_digit(peek(lexer, 1)) && lexer->word_end == lexer->at))) {
        token->kind = PTX_TOKEN_DOTTED;
        dotted(lexer);
    } else if (is_digit(c) || (c == '.' && is_digit(peek(lexer, 1)))) {
        number(lexer, token);
    } else if (c == '"') {
        token->kind = PTX_TOKEN_WRONG;
        string(lexer, token);
    } else {
        mark(lexer, token, c);
    }
    token->text.bytes = (size_t)(lexer->at - token->text.at);
    if (token->kind == PTX_TOKEN_STRING) {
        token->text.at++;
        token->text.bytes -= 2;
    }
}

bool kr__ptx_is_mark(const ptx_token *token, int wanted)
{
    return token->kind == PTX_TOKEN_MARK && token->mark == wanted;
}

bool kr__ptx_is_word(const ptx_token *token, ptx_text text)
{
    return (token->kind == PTX_TOKEN_WORD || token->kind == PTX_TOKEN_DOTTED) &&
           token->text.bytes == text.bytes && !memcmp(token->text.at, text.at, text.bytes);
}

bool kr__ptx_looks_like(const char *text, size_t bytes)
{
    ptx_lexer lexer = {.at = text, .end = text + bytes, .line = 1};
    ptx_token token;
    kr__ptx_next_token(&lexer, &token);
    return kr__ptx_is_word(&token, PTX_TEXT(".version"));
}
