/* SPDX-License-Identifier: Apache-2.0 */
#include "ptx/front/front.h"

#include <string.h>

/* Constant expressions: C's operators and precedence over 64-bit integers; floats as plain literals only. */

static bool conditional(ptx_parser *p, ptx_constant *ret);

static bool literal(ptx_parser *p, ptx_constant *ret)
{
    const ptx_token *token = &p->token;
    if (token->overflow)
        kr__ptx_error(p, token->line, "Constant overflow");
    if (token->kind == PTX_TOKEN_INTEGER) {
        *ret = (ptx_constant){.bits = (int64_t)token->value};
    } else if (token->kind == PTX_TOKEN_FLOAT) {
        *ret = (ptx_constant){
            .is_float = true, .float_bytes = token->float_bytes, .bits = (int64_t)token->value};
    } else if (kr__ptx_is_word(token, PTX_TEXT("WARP_SZ"))) {
        *ret = (ptx_constant){.bits = 32};
    } else {
        kr__ptx_syntax_error(p);
        return false;
    }
    kr__ptx_advance(p);
    return true;
}

/* (.s64)5 and (.u64)5: the sign is in the operations only, so the value stays. */
static bool cast_or_parenthesis(ptx_parser *p, ptx_constant *ret);

static bool negate(ptx_parser *p, ptx_constant *value)
{
    if (!value->is_float)
        value->bits = (int64_t)(0 - (uint64_t)value->bits);
    else if (value->float_bytes == 8)
        value->bits ^= INT64_MIN;
    else
        kr__ptx_syntax_error(p);
    return !p->stopped;
}

static bool unary(ptx_parser *p, ptx_constant *ret)
{
    const int op = p->token.kind == PTX_TOKEN_MARK ? p->token.mark : 0;
    if (!op)
        return literal(p, ret);
    if (op == '(')
        return cast_or_parenthesis(p, ret);
    if (!strchr("+-!~", op)) {
        kr__ptx_syntax_error(p);
        return false;
    }
    kr__ptx_advance(p);
    if (!kr__ptx_enter(p))
        return false;
    const bool ok = unary(p, ret);
    p->depth--;
    if (!ok)
        return false;
    if (op == '-')
        return negate(p, ret);
    if (op != '+' && ret->is_float) {
        kr__ptx_syntax_error(p);
        return false;
    }
    if (op == '!')
        ret->bits = !ret->bits;
    else if (op == '~')
        ret->bits = ~ret->bits;
    return true;
}

static bool cast_or_parenthesis(ptx_parser *p, ptx_constant *ret)
{
    kr__ptx_advance(p);
    if (!kr__ptx_enter(p))
        return false;
    bool ok;
    if (p->token.kind == PTX_TOKEN_DOTTED) {
        const ptx_type type = kr__ptx_type_named(p->token.text);
        if (type != PTX_S64 && type != PTX_U64) {
            kr__ptx_syntax_error(p);
            return false;
        }
        kr__ptx_advance(p);
        ok = kr__ptx_expect(p, ')') && unary(p, ret);
    } else {
        ok = conditional(p, ret) && kr__ptx_expect(p, ')');
    }
    p->depth--;
    return ok;
}

static const struct {
    int mark, precedence;
} operators[] = {
    {PTX_MARK2('|', '|'), 1},
    {PTX_MARK2('&', '&'), 2},
    {'|', 3},
    {'^', 4},
    {'&', 5},
    {PTX_MARK2('=', '='), 6},
    {PTX_MARK2('!', '='), 6},
    {'<', 7},
    {'>', 7},
    {PTX_MARK2('<', '='), 7},
    {PTX_MARK2('>', '='), 7},
    {PTX_MARK2('<', '<'), 8},
    {PTX_MARK2('>', '>'), 8},
    {'+', 9},
    {'-', 9},
    {'*', 10},
    {'/', 10},
    {'%', 10},
};

static int precedence(const ptx_token *token)
{
    for (size_t i = 0; i < KR_COUNT(operators); i++)
        if (kr__ptx_is_mark(token, operators[i].mark))
            return operators[i].precedence;
    return 0;
}

static double as_double(const ptx_constant *value)
{
    double result = (double)value->bits;
    if (value->is_float) {
        const uint64_t bits = kr__ptx_float_as(value, PTX_F64);
        memcpy(&result, &bits, sizeof result);
    }
    return result;
}

static bool apply_float(ptx_parser *p, int op, double a, double b, ptx_constant *ret)
{
    double result;
    *ret = (ptx_constant){0};
    switch (op) {
    case '<':
        ret->bits = a < b;
        return true;
    case '>':
        ret->bits = a > b;
        return true;
    case PTX_MARK2('<', '='):
        ret->bits = a <= b;
        return true;
    case PTX_MARK2('>', '='):
        ret->bits = a >= b;
        return true;
    case PTX_MARK2('=', '='):
        ret->bits = a == b;
        return true;
    case PTX_MARK2('!', '='):
        ret->bits = a != b;
        return true;
    case '+':
        result = a + b;
        break;
    case '-':
        result = a - b;
        break;
    case '*':
        result = a * b;
        break;
    case '/':
        result = a / b;
        break;
    default:
        kr__ptx_syntax_error(p);
        return false;
    }
    ret->is_float = true;
    ret->float_bytes = 8;
    memcpy(&ret->bits, &result, sizeof result);
    return true;
}

static bool apply(ptx_parser *p, int op, const ptx_constant *left, const ptx_constant *right,
                  ptx_constant *ret)
{
    if (left->is_float || right->is_float)
        return apply_float(p, op, as_double(left), as_double(right), ret);
    const int64_t a = left->bits, b = right->bits;
    const uint64_t ua = (uint64_t)a, ub = (uint64_t)b;
    if ((op == '/' || op == '%') && !b) {
        kr__ptx_error(p, p->token.line, "Division by zero in constant expression");
        *ret = (ptx_constant){0};
        return true;
    }
    uint64_t result = 0;
    switch (op) {
    case PTX_MARK2('|', '|'):
        result = a || b;
        break;
    case PTX_MARK2('&', '&'):
        result = a && b;
        break;
    case '|':
        result = ua | ub;
        break;
    case '^':
        result = ua ^ ub;
        break;
    case '&':
        result = ua & ub;
        break;
    case PTX_MARK2('=', '='):
        result = a == b;
        break;
    case PTX_MARK2('!', '='):
        result = a != b;
        break;
    case '<':
        result = a < b;
        break;
    case '>':
        result = a > b;
        break;
    case PTX_MARK2('<', '='):
        result = a <= b;
        break;
    case PTX_MARK2('>', '='):
        result = a >= b;
        break;
    case PTX_MARK2('<', '<'):
        result = ub < 64 ? ua << ub : 0;
        break;
    case PTX_MARK2('>', '>'):
        result = (uint64_t)(a >> (ub < 64 ? ub : 63));
        break;
    case '+':
        result = ua + ub;
        break;
    case '-':
        result = ua - ub;
        break;
    case '*':
        result = ua * ub;
        break;
    case '/':
        result = b == -1 ? 0 - ua : (uint64_t)(a / b);
        break;
    case '%':
        result = b == -1 ? 0 : (uint64_t)(a % b);
        break;
    }
    *ret = (ptx_constant){.bits = (int64_t)result};
    return true;
}

static bool binary(ptx_parser *p, int least, ptx_constant *ret)
{
    if (!kr__ptx_enter(p) || !unary(p, ret))
        return false;
    for (int level; (level = precedence(&p->token)) >= least && level;) {
        const int op = p->token.mark;
        const ptx_constant left = *ret;
        ptx_constant right;
        kr__ptx_advance(p);
        if (!binary(p, level + 1, &right) || !apply(p, op, &left, &right, ret))
            return false;
    }
    p->depth--;
    return true;
}

static bool conditional(ptx_parser *p, ptx_constant *ret)
{
    ptx_constant yes, no;
    if (!binary(p, 1, ret))
        return false;
    if (!kr__ptx_accept(p, '?'))
        return true;
    if (!kr__ptx_enter(p) || !conditional(p, &yes) || !kr__ptx_expect(p, ':') || !conditional(p, &no))
        return false;
    p->depth--;
    *ret = ret->bits ? yes : no;
    return true;
}

bool kr__ptx_constant(ptx_parser *p, ptx_constant *ret)
{
    return conditional(p, ret);
}

bool kr__ptx_number(ptx_parser *p, uint64_t most, uint64_t *ret)
{
    const ptx_token *token = &p->token;
    if (token->kind != PTX_TOKEN_INTEGER) {
        kr__ptx_syntax_error(p);
        return false;
    }
    if (token->overflow || token->value > most)
        kr__ptx_error(p, token->line, "Constant overflow");
    *ret = token->value;
    kr__ptx_advance(p);
    return true;
}

bool kr__ptx_integer(ptx_parser *p, int64_t *ret)
{
    ptx_constant value;
    if (!kr__ptx_constant(p, &value))
        return false;
    if (value.is_float)
        kr__ptx_error(p, p->token.line, "Integer constant expected");
    *ret = value.is_float ? 0 : value.bits;
    return true;
}

uint64_t kr__ptx_float_as(const ptx_constant *constant, ptx_type type)
{
    const uint64_t bits = (uint64_t)constant->bits;
    if (kr__ptx_type_bytes(type) == constant->float_bytes)
        return bits;
    float single;
    double wide;
    if (constant->float_bytes == 4) {
        const uint32_t low = (uint32_t)bits;
        memcpy(&single, &low, sizeof single);
        wide = (double)single;
        uint64_t result;
        memcpy(&result, &wide, sizeof result);
        return result;
    }
    memcpy(&wide, &bits, sizeof wide);
    single = (float)wide;
    uint32_t result;
    memcpy(&result, &single, sizeof result);
    return result;
}
