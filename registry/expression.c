/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/expression.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

typedef enum node_kind { NUMBER, SIZE, SIZEOF_T, GRID, ADD, SUBTRACT, MULTIPLY, DIVIDE, CEIL } node_kind;

struct kr__node {
    node_kind kind;
    uint64_t number; /* NUMBER: its value; SIZE: the argument's index */
    const kr__node *a, *b;
};

typedef struct reader {
    kr__arena *arena;
    const kr_op *op;
    const char *at, *end;
    kr__expression *expression;
    char *problem; /* a kr__problem; empty while all is well */
} reader;

static const kr__node *read_sum(reader *r);

static const kr__node *wrong(reader *r, const char *format, ...)
{
    if (!r->problem[0]) { /* the first problem is the one to tell */
        va_list args;
        va_start(args, format);
        kr__format_list(r->problem, sizeof(kr__problem), format, args);
        va_end(args);
    }
    return NULL;
}

static const kr__node *node(reader *r, node_kind kind, uint64_t number, const kr__node *a, const kr__node *b)
{
    if ((kind == DIVIDE || kind == CEIL) && b->kind == NUMBER && !b->number)
        return wrong(r, "\"%s\" divides by zero", r->expression->text);
    kr__node *made = kr__arena_alloc(r->arena, sizeof *made);
    if (!made)
        return wrong(r, "out of host memory");
    *made = (kr__node){kind, number, a, b};
    return made;
}

static void skip_blanks(reader *r)
{
    while (r->at < r->end && (*r->at == ' ' || *r->at == '\t'))
        r->at++;
}

static bool accept(reader *r, char c)
{
    skip_blanks(r);
    if (r->at == r->end || *r->at != c)
        return false;
    r->at++;
    return true;
}

static bool expect(reader *r, char c)
{
    if (accept(r, c))
        return true;
    if (r->at == r->end)
        wrong(r, "'%c' is missing at the end of \"%s\"", c, r->expression->text);
    else
        wrong(r, "'%c' is expected before \"%.*s\"", c, (int)(r->end - r->at), r->at);
    return false;
}

static const kr__node *read_number(reader *r)
{
    uint64_t value = 0;
    for (; r->at < r->end && isdigit((unsigned char)*r->at); r->at++)
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, (uint64_t)(*r->at - '0'), &value))
            return wrong(r, "a number in \"%s\" is past 2^64", r->expression->text);
    return node(r, NUMBER, value, NULL, NULL);
}

static const kr__node *read_ceil(reader *r)
{
    const kr__node *a = NULL, *b = NULL;
    if (!expect(r, '(') || !(a = read_sum(r)) || !expect(r, ',') || !(b = read_sum(r)) || !expect(r, ')'))
        return NULL;
    return node(r, CEIL, 0, a, b);
}

static const kr__node *read_sizeof(reader *r)
{
    if (!expect(r, '(') || !expect(r, 'T') || !expect(r, ')'))
        return NULL;
    r->expression->uses_sizeof = true;
    return node(r, SIZEOF_T, 0, NULL, NULL);
}

static const kr__node *read_name(reader *r)
{
    const char *name = r->at;
    while (r->at < r->end && (isalnum((unsigned char)*r->at) || *r->at == '_'))
        r->at++;
    const int bytes = (int)(r->at - name);
#define IS(text) (bytes == (int)sizeof(text) - 1 && !memcmp(name, text, sizeof(text) - 1))
    if (IS("ceil"))
        return read_ceil(r);
    if (IS("sizeof"))
        return read_sizeof(r);
    if (IS("grid")) {
        r->expression->uses_grid = true;
        return node(r, GRID, 0, NULL, NULL);
    }
#undef IS
    for (size_t i = 0; i < r->op->n_args; i++)
        if (!strncmp(r->op->args[i].name, name, (size_t)bytes) && !r->op->args[i].name[bytes])
            return r->op->args[i].role == KR_ROLE_SIZE
                       ? node(r, SIZE, i, NULL, NULL)
                       : wrong(r, "argument \"%.*s\" is not a size", bytes, name);
    return wrong(r, "there is no size \"%.*s\" before it", bytes, name);
}

static const kr__node *read_factor(reader *r)
{
    if (accept(r, '(')) {
        const kr__node *inner = read_sum(r);
        return inner && expect(r, ')') ? inner : NULL;
    }
    if (r->at == r->end)
        return wrong(r, "\"%s\" ends where a number or a name is expected", r->expression->text);
    if (isdigit((unsigned char)*r->at))
        return read_number(r);
    if (isalpha((unsigned char)*r->at) || *r->at == '_')
        return read_name(r);
    return wrong(r, "a number or a name is expected before \"%.*s\"", (int)(r->end - r->at), r->at);
}

static const kr__node *read_product(reader *r)
{
    const kr__node *a = read_factor(r);
    while (a) {
        const node_kind kind = accept(r, '*') ? MULTIPLY : accept(r, '/') ? DIVIDE : NUMBER;
        if (kind == NUMBER)
            return a;
        const kr__node *b = read_factor(r);
        a = b ? node(r, kind, 0, a, b) : NULL;
    }
    return NULL;
}

static const kr__node *read_sum(reader *r)
{
    const kr__node *a = read_product(r);
    while (a) {
        const node_kind kind = accept(r, '+') ? ADD : accept(r, '-') ? SUBTRACT : NUMBER;
        if (kind == NUMBER)
            return a;
        const kr__node *b = read_product(r);
        a = b ? node(r, kind, 0, a, b) : NULL;
    }
    return NULL;
}

const kr__expression *kr__expression_parse(kr__arena *arena, const kr_op *op, const char *text, size_t bytes,
                                           kr__problem problem)
{
    problem[0] = '\0';
    kr__expression *expression = kr__arena_alloc(arena, sizeof *expression);
    reader r = {arena, op, text, text + bytes, expression, problem};
    if (!expression || !(expression->text = kr__arena_text(arena, text, bytes)))
        wrong(&r, "out of host memory");
    else if (bytes > KR__MAX_EXPRESSION_BYTES)
        wrong(&r, "an expression of %zu bytes; the longest is %d", bytes, KR__MAX_EXPRESSION_BYTES);
    else if ((expression->root = read_sum(&r)) && (skip_blanks(&r), r.at != r.end))
        wrong(&r, "\"%.*s\" is left over in \"%s\"", (int)(r.end - r.at), r.at, expression->text);
    return problem[0] ? NULL : expression;
}

typedef struct machine {
    const kr__expression *expression;
    const kr_op *op;
    const kr__values *values;
    char *problem;
} machine;

/* "rows*cols with rows=3 cols=4": so that a message needs no second look at the arguments. */
static bool refuse(const machine *m, const char *what)
{
    kr__text text = {0};
    const char *before = " with ";
    for (size_t i = 0; i < m->op->n_args; i++)
        if (kr__expression_names(m->expression, i)) {
            kr__text_add(&text, "%s%s=%" PRIu64, before, m->op->args[i].name, m->values->sizes[i]);
            before = " ";
        }
    kr__format(m->problem, sizeof(kr__problem), "\"%s\" %s%s", m->expression->text, what,
               text.data ? text.data : "");
    kr__text_free(&text);
    return false;
}

static bool value_of(const machine *m, const kr__node *n, uint64_t *ret)
{
    uint64_t a = 0, b = 0;
    if ((n->a && !value_of(m, n->a, &a)) || (n->b && !value_of(m, n->b, &b)))
        return false;
    switch (n->kind) {
    case NUMBER:
        *ret = n->number;
        return true;
    case SIZE:
        *ret = m->values->sizes[n->number];
        return true;
    case SIZEOF_T:
        *ret = m->values->sizeof_t;
        return true;
    case GRID:
        *ret = m->values->grid;
        return true;
    case ADD:
        return !__builtin_add_overflow(a, b, ret) || refuse(m, "overflows 64 bits");
    case SUBTRACT:
        return !__builtin_sub_overflow(a, b, ret) || refuse(m, "is below zero");
    case MULTIPLY:
        return !__builtin_mul_overflow(a, b, ret) || refuse(m, "overflows 64 bits");
    case DIVIDE:
    case CEIL:
        if (!b)
            return refuse(m, "divides by zero");
        *ret = a / b + (n->kind == CEIL && a % b != 0);
        return true;
    }
    return false;
}

bool kr__expression_value(const kr__expression *expression, const kr_op *op, const kr__values *values,
                          uint64_t *ret_value, kr__problem problem)
{
    const machine m = {expression, op, values, problem};
    uint64_t value;
    if (!value_of(&m, expression->root, &value))
        return false;
    *ret_value = value;
    return true;
}

static bool names(const kr__node *n, size_t size_arg)
{
    return n &&
           ((n->kind == SIZE && n->number == size_arg) || names(n->a, size_arg) || names(n->b, size_arg));
}

bool kr__expression_names(const kr__expression *expression, size_t size_arg)
{
    return names(expression->root, size_arg);
}

bool kr__expression_is_cut_by(const kr__expression *expression, size_t size_arg)
{
    const kr__node *n = expression->root;
    for (; n->kind == MULTIPLY; n = n->a)
        if (names(n->b, size_arg))
            return false;
    return n->kind == SIZE && n->number == size_arg;
}
