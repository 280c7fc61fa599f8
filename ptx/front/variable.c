/* SPDX-License-Identifier: Apache-2.0 */
/* Declarations of variables and registers, with their initial values. */
#include "ptx/front/front.h"

#define BIT(type) (1ull << PTX_##type)

static const struct {
    const char *text;
    ptx_space space;
} spaces[] = {
    {".reg", PTX_SPACE_REG},     {".const", PTX_SPACE_CONST}, {".global", PTX_SPACE_GLOBAL},
    {".local", PTX_SPACE_LOCAL}, {".param", PTX_SPACE_PARAM}, {".shared", PTX_SPACE_SHARED},
};

ptx_space kr__ptx_space_at(const ptx_parser *p)
{
    for (size_t i = 0; i < KR_COUNT(spaces); i++)
        if (kr__ptx_at_dotted(p, spaces[i].text))
            return spaces[i].space;
    return PTX_SPACE_GENERIC;
}

static bool alignment(ptx_parser *p, unsigned *ret)
{
    const unsigned line = p->token.line;
    int64_t value;
    if (!kr__ptx_integer(p, &value))
        return false;
    if (value < 1 || value > 1 << 20 || value & (value - 1)) {
        kr__ptx_error(p, line, "Alignment must be a power of two");
        value = 1;
    }
    *ret = (unsigned)value;
    return true;
}

/* .ptr .global .align N: a promise about what a kernel's parameter points to. The assembler also takes .align
 * alone. */
bool kr__ptx_pointer(ptx_parser *p, ptx_declaration *to)
{
    const unsigned line = p->token.line;
    if (!kr__ptx_at_dotted(p, ".align") && !kr__ptx_accept_dotted(p, ".ptr"))
        return true;
    kr__ptx_has(p, line, "kernel parameter pointer attribute", 22, 0);
    to->is_pointer = true;
    to->pointer_space = kr__ptx_space_at(p);
    if (to->pointer_space == PTX_SPACE_REG || to->pointer_space == PTX_SPACE_PARAM) {
        kr__ptx_syntax_error(p);
        return false;
    }
    if (to->pointer_space != PTX_SPACE_GENERIC)
        kr__ptx_advance(p);
    return !kr__ptx_accept_dotted(p, ".align") || alignment(p, &to->pointer_alignment);
}

/* .attribute(.managed, .unified(19, 95)) */
bool kr__ptx_attributes(ptx_parser *p, bool of_variable, ptx_declaration *to)
{
    if (!kr__ptx_expect(p, '('))
        return false;
    do {
        const unsigned line = p->token.line;
        uint64_t half[2];
        if (of_variable && kr__ptx_accept_dotted(p, ".managed")) {
            to->is_managed = true;
            kr__ptx_has(p, line, ".managed", 40, 30);
        } else if (kr__ptx_accept_dotted(p, ".unified")) {
            if (!kr__ptx_expect(p, '(') || !kr__ptx_number(p, UINT64_MAX, &half[0]) ||
                !kr__ptx_expect(p, ',') || !kr__ptx_number(p, UINT64_MAX, &half[1]) ||
                !kr__ptx_expect(p, ')'))
                return false;
            to->is_unified = true;
            to->uuid[0] = half[0];
            to->uuid[1] = half[1];
            kr__ptx_has(p, line, ".unified", 80, 90);
        } else {
            kr__ptx_syntax_error(p);
            return false;
        }
    } while (kr__ptx_accept(p, ','));
    return kr__ptx_expect(p, ')');
}

/* Types that the assembler knows as modifiers of instructions alone. */
static const uint64_t words_of_instructions = BIT(BF16) | BIT(BF16X2) | BIT(TF32) | BIT(B1) | BIT(U2) |
                                              BIT(S2) | BIT(U4) | BIT(S4) | BIT(E2M1) | BIT(E2M3) |
                                              BIT(E3M2) | BIT(UE8M0) | BIT(UE4M3);

/* .align N, .attribute(...): in any number; .v4; then the type */
bool kr__ptx_qualifiers(ptx_parser *p, ptx_declaration *to)
{
    while (p->token.kind == PTX_TOKEN_DOTTED) {
        const ptx_type type = kr__ptx_type_named(p->token.text);
        if (type && !(words_of_instructions >> type & 1)) {
            to->type = type;
            kr__ptx_advance(p);
            return true;
        }
        if (to->vector)
            break;
        if (kr__ptx_accept_dotted(p, ".align")) {
            if (!alignment(p, &to->alignment))
                return false;
        } else if (kr__ptx_accept_dotted(p, ".attribute")) {
            if (!kr__ptx_attributes(p, true, to))
                return false;
        } else if (kr__ptx_at_dotted(p, ".v2") || kr__ptx_at_dotted(p, ".v4")) {
            to->vector = (unsigned)(p->token.text.at[2] - '0');
            kr__ptx_advance(p);
        } else {
            break;
        }
    }
    kr__ptx_syntax_error(p);
    return false;
}

ptx_variable *kr__ptx_new_variable(ptx_parser *p, const ptx_declaration *of, ptx_text name, unsigned line)
{
    ptx_variable *variable = kr__ptx_new(p, sizeof *variable);
    char *copy = variable ? kr__arena_text(&p->module->arena, name.at, name.bytes) : NULL;
    if (!copy) {
        kr__ptx_no_memory(p);
        return NULL;
    }
    const size_t bytes = kr__ptx_type_bytes(of->type) * (of->vector ? of->vector : 1);
    *variable = (ptx_variable){.name = copy,
                               .space = of->space,
                               .linkage = of->linkage,
                               .type = of->type,
                               .vector = (uint8_t)of->vector,
                               .is_managed = of->is_managed,
                               .is_unified = of->is_unified,
                               .uuid = {of->uuid[0], of->uuid[1]},
                               .is_pointer = of->is_pointer,
                               .pointer_space = of->pointer_space,
                               .pointer_alignment = of->pointer_alignment,
                               .bytes = bytes,
                               .line = line};
    variable->alignment = of->alignment ? of->alignment : bytes ? (unsigned)bytes : 1;
    return variable;
}

/* [64], [2][3], []: multiplies variable->bytes */
bool kr__ptx_dimensions(ptx_parser *p, ptx_variable *variable, ptx_shape *ret)
{
    enum { MOST_BYTES = 1 << 30 };
    const size_t element = variable->bytes;
    *ret = (ptx_shape){0};
    while (kr__ptx_accept(p, '[')) {
        if (ret->n == KR_COUNT(ret->bytes)) {
            kr__ptx_fatal(p, p->token.line, "Array with more than %zu dimensions", ret->n);
            return false;
        }
        const size_t n_before = ret->n++;
        variable->is_array = true;
        if (!n_before && kr__ptx_accept(p, ']')) {
            ret->is_open = true;
            ret->bytes[0] = variable->bytes;
            continue;
        }
        const uint64_t n = p->token.value; /* a plain number, not an expression */
        size_t bytes;
        if (p->token.kind != PTX_TOKEN_INTEGER) {
            kr__ptx_syntax_error(p);
            return false;
        }
        if (p->token.overflow || __builtin_mul_overflow(variable->bytes, n, &bytes) || bytes > MOST_BYTES) {
            kr__ptx_fatal(p, p->token.line, "Array size '%llu' out of range", (unsigned long long)n);
            return false;
        }
        kr__ptx_advance(p);
        if (!kr__ptx_expect(p, ']'))
            return false;
        variable->bytes = bytes;
        for (size_t i = 0; i < n_before; i++)
            ret->bytes[i] *= n;
        ret->bytes[n_before] = n * element;
    }
    ret->n_levels = ret->n + (element > kr__ptx_type_bytes(variable->type));
    return true;
}

/* ---- initial values ---- */

typedef struct filling {
    ptx_variable *variable;
    const ptx_shape *shape;
    uint8_t *bytes;
    size_t at, capacity; /* bytes */
    ptx_relocation **last;
    unsigned mismatch; /* line of an address that the type cannot hold: said at the end */
} filling;

/* Bytes beyond the value's eight are zero, those of a negative one too, as ptxas has them. */
static void put(ptx_parser *p, filling *to, uint64_t value, size_t bytes)
{
    if (to->at + bytes > to->capacity) {
        kr__ptx_fatal(p, p->token.line, "Greater number of elements in array initializer");
        return;
    }
    for (size_t i = 0; i < bytes; i++)
        to->bytes[to->at + i] = i < sizeof value ? (uint8_t)(value >> 8 * i) : 0;
    to->at += bytes;
}

/* What the name of an initial value is, into a relocation. */
static void name_address(ptx_parser *p, ptx_text text, unsigned line, ptx_relocation *to)
{
    const ptx_name *name = kr__ptx_lookup(p, text);
    const ptx_variable *variable = name && name->kind == PTX_NAME_VARIABLE ? name->thing : NULL;
    const ptx_function *function = name && name->kind == PTX_NAME_FUNCTION ? name->thing : NULL;
    if (!name)
        kr__ptx_fatal(p, line, "Invalid initial value symbol '%.*s'", (int)text.bytes, text.at);
    else if (variable && variable->space != PTX_SPACE_GLOBAL && variable->space != PTX_SPACE_CONST)
        kr__ptx_fatal(p, line, "Variable used as initial value not in .global or .const state space");
    else if (variable)
        to->variable = variable;
    else if (function && to->addend)
        kr__ptx_fatal(p, line, "Initial value type mismatch");
    else if (function && !to->generic)
        to->function = name->thing;
    else
        kr__ptx_fatal(p, line, "Invalid initial value expression");
}

/* sym+4, generic(sym)+4 */
static bool address(ptx_parser *p, filling *to, uint64_t mask)
{
    const unsigned line = p->token.line;
    const ptx_type type = to->variable->type;
    ptx_text text;
    ptx_relocation *relocation = kr__ptx_new(p, sizeof *relocation);
    if (!relocation)
        return false;
    *relocation =
        (ptx_relocation){.offset = to->at, .bytes = (uint8_t)kr__ptx_type_bytes(type), .mask = mask};
    if (kr__ptx_is_word(&p->token, PTX_TEXT("generic"))) {
        kr__ptx_advance(p);
        relocation->generic = true;
        if (!kr__ptx_expect(p, '('))
            return false;
    }
    if (!kr__ptx_expect_word(p, &text) || (relocation->generic && !kr__ptx_expect(p, ')')))
        return false;
    if (kr__ptx_accept(p, '+') && !kr__ptx_integer(p, &relocation->addend))
        return false;
    name_address(p, text, line, relocation);
    if (type != PTX_U64 && type != PTX_U32 && !(mask && type == PTX_U8))
        to->mismatch = line;
    kr__ptx_has(p, line, "addresses as initial values", 21, 0);
    put(p, to, 0, relocation->bytes);
    *to->last = relocation;
    to->last = &relocation->next;
    return !p->stopped;
}

/* 0xff00(sym+4): a byte of an address, or of a number. */
static bool masked(ptx_parser *p, filling *to)
{
    const unsigned line = p->token.line;
    const uint64_t mask = p->token.value;
    int64_t value;
    kr__ptx_advance(p);
    kr__ptx_advance(p); /* the parenthesis */
    kr__ptx_has(p, line, "mask operator in initializer", 71, 0);
    if (p->token.kind != PTX_TOKEN_WORD)
        kr__ptx_has(p, line, "Integer immediate in mask operator", 72, 0);
    const int shift = mask ? __builtin_ctzll(mask) : 0;
    if (mask >> shift != 0xff || shift % 8) {
        kr__ptx_error(p, line, "Invalid mask value '0x%llx' used in initializer", (unsigned long long)mask);
        return false;
    }
    if (p->token.kind == PTX_TOKEN_WORD)
        return address(p, to, mask) && kr__ptx_expect(p, ')');
    if (!kr__ptx_integer(p, &value) || !kr__ptx_expect(p, ')'))
        return false;
    if (to->variable->type == PTX_F32 || to->variable->type == PTX_F64)
        kr__ptx_fatal(p, line, "Initial value type mismatch");
    put(p, to, ((uint64_t)value & mask) >> shift, kr__ptx_type_bytes(to->variable->type));
    return !p->stopped;
}

static bool begins_mask(const ptx_parser *p)
{
    ptx_lexer ahead = p->lexer;
    ptx_token after;
    if (p->token.kind != PTX_TOKEN_INTEGER)
        return false;
    kr__ptx_next_token(&ahead, &after);
    return kr__ptx_is_mark(&after, '(');
}

static bool number(ptx_parser *p, filling *to)
{
    const ptx_type type = to->variable->type;
    const unsigned line = p->token.line;
    ptx_constant value;
    if (!kr__ptx_constant(p, &value))
        return false;
    const bool is_float = type == PTX_F32 || type == PTX_F64;
    if (value.is_float != is_float && !(value.is_float && type >= PTX_B8 && type <= PTX_B128)) {
        kr__ptx_fatal(p, line, "Initial value type mismatch");
        return false;
    }
    put(p, to, value.is_float ? kr__ptx_float_as(&value, type) : (uint64_t)value.bits,
        kr__ptx_type_bytes(type));
    return !p->stopped;
}

static bool values(ptx_parser *p, filling *to, size_t level);

/* {1, 2}: what is left out of a row is zero */
static bool braces(ptx_parser *p, filling *to, size_t level)
{
    const size_t begin = to->at;
    if (!kr__ptx_enter(p))
        return false;
    if (!kr__ptx_is_mark(&p->token, '}'))
        do {
            if (!values(p, to, level + 1))
                return false;
        } while (kr__ptx_accept(p, ','));
    p->depth--;
    if (level && level < to->shape->n) {
        const size_t end = begin + to->shape->bytes[level];
        if (to->at > end || end > to->capacity) {
            kr__ptx_fatal(p, p->token.line, "Greater number of elements in array initializer");
            return false;
        }
        to->at = end;
    }
    return kr__ptx_expect(p, '}');
}

static bool values(ptx_parser *p, filling *to, size_t level)
{
    if (kr__ptx_is_mark(&p->token, '{') != (level < to->shape->n_levels)) {
        kr__ptx_fatal(p, p->token.line, "Initial value type mismatch");
        return false;
    }
    if (kr__ptx_accept(p, '{'))
        return braces(p, to, level);
    if (p->token.kind == PTX_TOKEN_WORD)
        return address(p, to, 0);
    return begins_mask(p) ? masked(p, to) : number(p, to);
}

/* Elements of an initialiser from here to its end, for `.b8 s[] = {...};`: an upper bound is enough. */
static size_t count_elements(const ptx_parser *p)
{
    ptx_lexer lexer = p->lexer;
    ptx_token token = p->token;
    size_t n = 1;
    for (; token.kind != PTX_TOKEN_END && !kr__ptx_is_mark(&token, ';'); kr__ptx_next_token(&lexer, &token))
        n += kr__ptx_is_mark(&token, ',');
    return n;
}

bool kr__ptx_skip_opaque(ptx_parser *p)
{
    while (p->token.kind != PTX_TOKEN_END && !kr__ptx_is_mark(&p->token, ';'))
        kr__ptx_advance(p);
    return !p->stopped;
}

static bool initialiser(ptx_parser *p, ptx_variable *variable, const ptx_shape *of)
{
    if (variable->space != PTX_SPACE_GLOBAL && variable->space != PTX_SPACE_CONST) {
        kr__ptx_error(p, p->token.line, "No initial value is allowed for '%s' in this state space",
                      variable->name);
        return kr__ptx_skip_opaque(p);
    }
    if (variable->linkage == PTX_LINK_EXTERN)
        kr__ptx_error(p, p->token.line, "No initial value is allowed for external symbol '%s'",
                      variable->name);
    if (variable->type >= PTX_TEXREF) {
        const char *begin = p->token.text.at;
        if (kr__ptx_skip_opaque(p))
            variable->opaque = kr__arena_text(&p->module->arena, begin, (size_t)(p->last_end - begin));
        return variable->opaque;
    }
    filling to = {.variable = variable, .shape = of, .capacity = variable->bytes};
    if (of->is_open)
        to.capacity *= count_elements(p);
    to.bytes = kr__ptx_new(p, to.capacity);
    to.last = &variable->relocations;
    if (!to.bytes || !values(p, &to, 0))
        return false;
    if (to.mismatch)
        kr__ptx_fatal(p, to.mismatch, "Initial value type mismatch");
    if (of->is_open)
        variable->bytes = to.at;
    variable->initial = to.bytes;
    return true;
}

static void append(ptx_parser *p, ptx_variable *variable)
{
    variable->index = p->n_variables++;
    *p->last_variable = variable;
    p->last_variable = &variable->next;
}

/* Types of instructions only: no variable has them. */
static const uint64_t instruction_types = BIT(E4M3) | BIT(E5M2) | BIT(E4M3X2) | BIT(E5M2X2) | BIT(U16X2) |
                                          BIT(S16X2) | BIT(F32X2) | BIT(E2M1X2) | BIT(E2M3X2) | BIT(E3M2X2) |
                                          BIT(UE8M0X2) | BIT(E2M1X4) | BIT(E2M3X4) | BIT(E3M2X4) |
                                          BIT(E4M3X4) | BIT(E5M2X4);
static const uint64_t opaque_types = BIT(TEXREF) | BIT(SAMPLERREF) | BIT(SURFREF);

/* May something in this space have the type? */
void kr__ptx_check_type(ptx_parser *p, const ptx_declaration *of, ptx_text name, unsigned line)
{
    const bool is_opaque = opaque_types >> of->type & 1;
    if (of->space == PTX_SPACE_PARAM && (of->vector || of->type == PTX_F16X2))
        kr__ptx_error(p, line, "Variable '%.*s' cannot be allocated in .param state space", (int)name.bytes,
                      name.at);
    if (of->type == PTX_B128)
        kr__ptx_has(p, line, "Type .b128", 83, 70);
    if (of->type == PTX_F16X2)
        kr__ptx_has(p, line, ".f16x2 packed data-type", 42, 53);
    if (of->type == PTX_PRED && of->vector)
        kr__ptx_error(p, line, "Predicate type can only be used to define scalar register variables");
    else if (of->vector * kr__ptx_type_bytes(of->type) > 16)
        kr__ptx_error(p, line, "Vector type too large, exceeds 128 bit limit");
    else if (of->type == PTX_PRED && of->space != PTX_SPACE_REG)
        kr__ptx_error(p, line, "Predicate variable '%.*s' must be in register state space", (int)name.bytes,
                      name.at);
    else if (instruction_types >> of->type & 1)
        kr__ptx_error(p, line, "Type .%s may only be used as an instruction type",
                      kr__ptx_type_name(of->type));
    else if (is_opaque && (p->function || of->space == PTX_SPACE_REG))
        kr__ptx_error(p, line, "Texture/surface variable must be at module or entry parameter scope");
    else if (of->type == PTX_SAMPLERREF && !p->module->texmode_independent)
        kr__ptx_error(p, line, "Instruction or declaration violates .target texmode_unified setting");
}

/* What else the space asks of a variable or register that is no parameter. */
static void check_declaration(ptx_parser *p, const ptx_declaration *of, ptx_text name, unsigned line)
{
    const bool is_register = of->space == PTX_SPACE_REG;
    kr__ptx_check_type(p, of, name, line);
    if ((of->is_managed || of->is_unified) && of->space != PTX_SPACE_GLOBAL)
        kr__ptx_error(p, line, "Illegal attribute '.%s' for symbol '%.*s'",
                      of->is_managed ? "managed" : "unified", (int)name.bytes, name.at);
    if (p->function)
        return;
    if (of->linkage == PTX_LINK_COMMON && of->space != PTX_SPACE_GLOBAL)
        kr__ptx_error(p, line, ".common variables must be declared in .global space");
    if (is_register || of->space == PTX_SPACE_LOCAL)
        kr__ptx_error(p, line, "Module-scoped variables in %s state space are not allowed with ABI",
                      is_register ? ".reg" : ".local");
    else if (of->space == PTX_SPACE_PARAM)
        kr__ptx_error(p, line, "Parameter variables may not be declared at module scope");
}

static void registers(ptx_parser *p, const ptx_declaration *of)
{
    do {
        const unsigned line = p->token.line;
        ptx_text text;
        if (!kr__ptx_expect_word(p, &text))
            return;
        check_declaration(p, of, text, line);
        const bool is_range = kr__ptx_accept(p, '<');
        ptx_name *name = kr__ptx_declare(p, text, line, is_range ? PTX_NAME_RANGE : PTX_NAME_REGISTER);
        if (!is_range) {
            if (name)
                kr__ptx_make_register(p, name, of->type, of->vector);
            continue;
        }
        /* a plain number: in an expression '>' would compare */
        const int64_t n = p->token.kind == PTX_TOKEN_INTEGER ? (int64_t)p->token.value : -1;
        if (n < 0) {
            kr__ptx_syntax_error(p);
            return;
        }
        if (p->token.overflow || n > INT32_MAX)
            kr__ptx_error(p, line, "Constant overflow");
        kr__ptx_advance(p);
        ptx_range *range = kr__ptx_new(p, sizeof *range);
        if (!range || !kr__ptx_expect(p, '>'))
            return;
        *range = (ptx_range){.type = of->type, .vector = of->vector, .n = (uint64_t)n};
        if (name)
            name->thing = range;
    } while (kr__ptx_accept(p, ','));
    kr__ptx_expect(p, ';');
}

/* Is it a declaration of what is declared already? One of the two must be .extern, or weak where texts are
 * linked.
 */
static bool is_declared(ptx_parser *p, ptx_text text, ptx_variable *variable)
{
    const ptx_name *name = p->function ? NULL : kr__ptx_module_name(p, text, variable->linkage);
    ptx_variable *before = name && name->kind == PTX_NAME_VARIABLE ? name->thing : NULL;
    if (!before || !kr__ptx_may_meet(p, before->linkage, variable->linkage))
        return false;
    if (before->linkage == PTX_LINK_EXTERN && variable->linkage == PTX_LINK_NONE)
        kr__ptx_error(p, variable->line, "'.extern' variable '%s' cannot be resolved by a '.static'",
                      variable->name);
    const bool is_common = before->linkage == PTX_LINK_COMMON && variable->linkage == PTX_LINK_COMMON;
    if (before->space != variable->space ||
        (!is_common && (before->type != variable->type ||
                        (before->bytes && variable->bytes && before->bytes != variable->bytes)))) {
        kr__ptx_error(p, variable->line, "Inconsistent redefinition of variable '%s'", variable->name);
        return true;
    }
    if (is_common ? variable->bytes <= before->bytes
                  : kr__ptx_strength(variable->linkage) <= kr__ptx_strength(before->linkage))
        return true;
    variable->next = before->next;
    variable->index = before->index;
    *before = *variable;
    if (!variable->next)
        p->last_variable = &before->next;
    return true;
}

void kr__ptx_variables(ptx_parser *p, ptx_linkage linkage)
{
    ptx_declaration of = {.space = kr__ptx_space_at(p), .linkage = linkage};
    kr__ptx_advance(p);
    if (!kr__ptx_qualifiers(p, &of) || kr__ptx_accept(p, ';')) /* of nothing: to the assembler no mistake */
        return;
    if (of.space == PTX_SPACE_REG) {
        registers(p, &of);
        return;
    }
    do {
        const unsigned line = p->token.line;
        ptx_text text;
        ptx_shape array;
        if (!kr__ptx_expect_word(p, &text))
            return;
        ptx_variable *variable = kr__ptx_new_variable(p, &of, text, line);
        if (!variable || !kr__ptx_dimensions(p, variable, &array))
            return;
        if (kr__ptx_accept(p, '=')) {
            if (!initialiser(p, variable, &array))
                return;
        } else if (array.is_open) {
            variable->bytes = 0;
        }
        check_declaration(p, &of, text, line);
        if (!variable->bytes && linkage != PTX_LINK_EXTERN && of.type != PTX_PRED)
            kr__ptx_error(p, line, "Non-external variable '%s' has incomplete type", variable->name);
        if (is_declared(p, text, variable))
            continue;
        ptx_name *name = kr__ptx_declare(p, text, line, PTX_NAME_VARIABLE);
        if (!name)
            continue;
        name->thing = variable;
        append(p, variable);
    } while (kr__ptx_accept(p, ','));
    kr__ptx_expect(p, ';');
}
