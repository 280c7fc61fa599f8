/* SPDX-License-Identifier: Apache-2.0 */
#include "ptx/front/front.h"

#include <stdlib.h>
#include <string.h>

/* Module scope: header, variables, functions. */

/* ---- messages ---- */

/* Every further token is the end: all loops come to theirs. */
static void stop(ptx_parser *p)
{
    p->stopped = true;
    p->token = (ptx_token){.kind = PTX_TOKEN_END, .line = p->token.line, .text = p->token.text};
}

static void say(ptx_parser *p, unsigned line, ptx_problem_kind kind, const char *level, const char *format,
                va_list args)
{
    enum { MOST_ERRORS = 100 };
    ptx_problem *problem = p->problem;
    problem->n_errors++;
    if (!problem->kind) {
        problem->kind = kind;
        problem->line = line;
    }
    char text[512];
    kr__format_list(text, sizeof text, format, args);
    kr__text_add(&problem->log, "ptxas application ptx input, line %u; %s: %s\n", line, level, text);
    if (problem->n_errors == MOST_ERRORS)
        stop(p);
}

void kr__ptx_error(ptx_parser *p, unsigned line, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (!p->stopped)
        say(p, line, PTX_PROBLEM_SYNTAX, "error   ", format, args);
    va_end(args);
}

void kr__ptx_unsupported(ptx_parser *p, unsigned line, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (!p->stopped)
        say(p, line, PTX_PROBLEM_UNSUPPORTED, "error   ", format, args);
    va_end(args);
}

static void fatal_of(ptx_parser *p, ptx_problem_kind kind, unsigned line, const char *format, ...)
    KR_PRINTF(4, 5);
static void fatal_of(ptx_parser *p, ptx_problem_kind kind, unsigned line, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (!p->stopped)
        say(p, line, kind, "fatal   ", format, args);
    va_end(args);
    stop(p);
}

void kr__ptx_fatal(ptx_parser *p, unsigned line, const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    kr__format_list(text, sizeof text, format, args);
    va_end(args);
    fatal_of(p, PTX_PROBLEM_SYNTAX, line, "%s", text);
}

void kr__ptx_syntax_error(ptx_parser *p)
{
    const ptx_text text = p->token.text;
    const bool in_comment = p->token.kind == PTX_TOKEN_WRONG && !text.bytes;
    kr__ptx_fatal(p, p->token.line, "Parsing error near '%.*s': %s", text.bytes > 80 ? 80 : (int)text.bytes,
                  text.at, in_comment ? "unexpected EOF while scanning" : "syntax error");
}

void kr__ptx_no_memory(ptx_parser *p)
{
    fatal_of(p, PTX_PROBLEM_MEMORY, p->token.line, "Memory allocation failure");
}

void *kr__ptx_new(ptx_parser *p, size_t bytes)
{
    void *memory = kr__arena_alloc(&p->module->arena, bytes);
    if (!memory)
        kr__ptx_no_memory(p);
    return memory;
}

/* ---- tokens ---- */

void kr__ptx_advance(ptx_parser *p)
{
    if (!p->stopped)
        kr__ptx_next_token(&p->lexer, &p->token);
}

bool kr__ptx_accept(ptx_parser *p, int mark)
{
    if (!kr__ptx_is_mark(&p->token, mark))
        return false;
    kr__ptx_advance(p);
    return true;
}

bool kr__ptx_expect(ptx_parser *p, int mark)
{
    if (kr__ptx_accept(p, mark))
        return true;
    kr__ptx_syntax_error(p);
    return false;
}

bool kr__ptx_expect_word(ptx_parser *p, ptx_text *ret_text)
{
    if (p->token.kind != PTX_TOKEN_WORD) {
        kr__ptx_syntax_error(p);
        return false;
    }
    *ret_text = p->token.text;
    kr__ptx_advance(p);
    return true;
}

bool kr__ptx_enter(ptx_parser *p)
{
    enum { DEEPEST = 200 };
    if (++p->depth <= DEEPEST)
        return true;
    kr__ptx_fatal(p, p->token.line, "Memory exhausted: nested more than %d deep", DEEPEST);
    return false;
}

static bool at_dotted(const ptx_parser *p, const char *word)
{
    return p->token.kind == PTX_TOKEN_DOTTED && p->token.text.bytes == strlen(word) &&
           !memcmp(p->token.text.at, word, p->token.text.bytes);
}

static bool accept_dotted(ptx_parser *p, const char *word)
{
    if (!at_dotted(p, word))
        return false;
    kr__ptx_advance(p);
    return true;
}

/* ---- names ---- */

bool kr__ptx_push_block(ptx_parser *p)
{
    ptx_block *block = kr__ptx_enter(p) ? kr__ptx_new(p, sizeof *block) : NULL;
    if (!block)
        return false;
    block->outer = p->block;
    p->block = block;
    return true;
}

/* The register of a range in this block that the name is, made now. */
static ptx_name *materialise(ptx_parser *p, ptx_block *block, ptx_text text, uint32_t hash)
{
    size_t digits = 0;
    while (digits < text.bytes && text.at[text.bytes - 1 - digits] >= '0' &&
           text.at[text.bytes - 1 - digits] <= '9')
        digits++;
    /* "x12" may be 2 of `x1<9>` or 12 of `x<99>`, but "x02" is not 2 of `x<9>`. */
    for (size_t n = 1; n <= digits && n <= 9; n++) {
        const ptx_text prefix = {text.at, text.bytes - n};
        if (n > 1 && text.at[prefix.bytes] == '0')
            continue;
        ptx_name *name = kr__ptx_find_name(&block->names, prefix, kr__ptx_hash(prefix));
        if (!name || name->kind != PTX_NAME_RANGE)
            continue;
        uint64_t number = 0;
        for (size_t i = prefix.bytes; i < text.bytes; i++)
            number = number * 10 + (unsigned)(text.at[i] - '0');
        const ptx_range *range = name->thing;
        if (number >= range->n)
            continue;
        const ptx_type type = range->type;
        name = kr__ptx_add_name(&p->module->arena, &block->names, text, hash, PTX_NAME_REGISTER);
        if (name)
            name->thing = kr__ptx_new_register(p, text, type);
        return name && name->thing ? name : NULL;
    }
    return NULL;
}

static ptx_name *find_in(ptx_parser *p, ptx_block *block, ptx_text text, uint32_t hash)
{
    ptx_name *name = kr__ptx_find_name(&block->names, text, hash);
    return name ? name : materialise(p, block, text, hash);
}

ptx_name *kr__ptx_lookup(ptx_parser *p, ptx_text text)
{
    const uint32_t hash = kr__ptx_hash(text);
    ptx_name *name = NULL;
    for (ptx_block *block = p->block; block && !name; block = block->outer)
        name = find_in(p, block, text, hash);
    return name;
}

static const char *kind_word(ptx_name_kind kind)
{
    return kind == PTX_NAME_FUNCTION ? "function" : kind == PTX_NAME_LABEL ? "label" : "variable";
}

ptx_name *kr__ptx_declare(ptx_parser *p, ptx_text text, unsigned line, ptx_name_kind kind)
{
    if (text.bytes == 1 && *text.at == '_') {
        kr__ptx_fatal(p, line, "Parsing error near '_': syntax error");
        return NULL;
    }
    const uint32_t hash = kr__ptx_hash(text);
    if (find_in(p, p->block, text, hash)) {
        kr__ptx_error(p, line, "Duplicate definition of %s '%.*s'", kind_word(kind), (int)text.bytes,
                      text.at);
        return NULL;
    }
    ptx_name *name = kr__ptx_add_name(&p->module->arena, &p->block->names, text, hash, kind);
    if (!name)
        kr__ptx_no_memory(p);
    return name;
}

/* ---- names of the module, and of several texts that are linked ---- */

/* Of the definitions of a name the strongest counts, and of equal ones the first. */
static int strength(ptx_linkage linkage)
{
    return linkage == PTX_LINK_EXTERN ? 0 : linkage == PTX_LINK_COMMON ? 1 : linkage == PTX_LINK_WEAK ? 2 : 3;
}

static bool may_meet(const ptx_parser *p, ptx_linkage one, ptx_linkage other)
{
    const int weaker = strength(one) < strength(other) ? strength(one) : strength(other);
    return weaker == strength(PTX_LINK_EXTERN) || (p->linked && weaker < strength(PTX_LINK_VISIBLE));
}

/* What the module, or with linkage any text before this one, declares under the name. */
static ptx_name *module_name(ptx_parser *p, ptx_text text, ptx_linkage linkage)
{
    const uint32_t hash = kr__ptx_hash(text);
    ptx_name *name = kr__ptx_find_name(&p->block->names, text, hash);
    if (!name && p->block->outer && linkage != PTX_LINK_NONE)
        name = kr__ptx_find_name(&p->block->outer->names, text, hash);
    return name;
}

static bool is_seen_by_all(const ptx_name *name)
{
    if (name->kind == PTX_NAME_VARIABLE)
        return ((const ptx_variable *)name->thing)->linkage != PTX_LINK_NONE;
    return name->kind == PTX_NAME_FUNCTION && ((const ptx_function *)name->thing)->linkage != PTX_LINK_NONE;
}

/* Begins the next text: of what the last one declared, only what has linkage stays in sight. */
static bool begin_text(ptx_parser *p)
{
    ptx_block *const last = p->block, *all = last->outer, *next = kr__ptx_new(p, sizeof *next);
    for (uint32_t i = 0; next && i < last->names.capacity; i++) {
        const ptx_name *name = &last->names.slots[i];
        if (!name->thing || !is_seen_by_all(name) || kr__ptx_find_name(&all->names, name->text, name->hash))
            continue;
        ptx_name *copy = kr__ptx_add_name(&p->module->arena, &all->names, name->text, name->hash, name->kind);
        if (!copy) {
            kr__ptx_no_memory(p);
            return false;
        }
        copy->thing = name->thing;
    }
    if (next) {
        next->outer = all;
        p->block = next;
    }
    return next;
}

/* ---- variables ---- */

static const struct {
    const char *text;
    ptx_space space;
} spaces[] = {
    {".reg", PTX_SPACE_REG},     {".const", PTX_SPACE_CONST}, {".global", PTX_SPACE_GLOBAL},
    {".local", PTX_SPACE_LOCAL}, {".param", PTX_SPACE_PARAM}, {".shared", PTX_SPACE_SHARED},
};

static ptx_space space_at(const ptx_parser *p)
{
    for (size_t i = 0; i < KR_COUNT(spaces); i++)
        if (at_dotted(p, spaces[i].text))
            return spaces[i].space;
    return PTX_SPACE_GENERIC;
}

/* What a declaration says before its names. */
typedef struct declaration {
    ptx_space space;
    ptx_linkage linkage;
    ptx_type type;
    unsigned alignment; /* 0: the type's */
    unsigned vector;
} declaration;

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

/* .ptr .global .align N: what a parameter points to is nothing to us. */
static bool pointer(ptx_parser *p)
{
    unsigned ignored;
    if (!accept_dotted(p, ".ptr"))
        return true;
    if (space_at(p) != PTX_SPACE_GENERIC)
        kr__ptx_advance(p);
    return !accept_dotted(p, ".align") || alignment(p, &ignored);
}

/* .align N, .attribute(...), .v4: in any number; then the type, and .ptr */
static bool qualifiers(ptx_parser *p, declaration *to)
{
    while (p->token.kind == PTX_TOKEN_DOTTED) {
        const ptx_type type = kr__ptx_type_named(p->token.text);
        if (type) {
            to->type = type;
            kr__ptx_advance(p);
            return pointer(p);
        }
        if (accept_dotted(p, ".align")) {
            if (!alignment(p, &to->alignment))
                return false;
        } else if (accept_dotted(p, ".attribute")) {
            if (!kr__ptx_expect(p, '('))
                return false;
            while (p->token.kind != PTX_TOKEN_END && !kr__ptx_is_mark(&p->token, ')'))
                kr__ptx_advance(p);
            if (!kr__ptx_expect(p, ')'))
                return false;
        } else if (at_dotted(p, ".v2") || at_dotted(p, ".v4") || at_dotted(p, ".v8")) {
            to->vector = (unsigned)(p->token.text.at[2] - '0');
            kr__ptx_advance(p);
        } else {
            break;
        }
    }
    kr__ptx_syntax_error(p);
    return false;
}

static ptx_variable *new_variable(ptx_parser *p, const declaration *of, ptx_text name, unsigned line)
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
                               .bytes = bytes,
                               .line = line};
    variable->alignment = of->alignment ? of->alignment : bytes ? (unsigned)bytes : 1;
    return variable;
}

/* An array's dimensions. */
typedef struct shape {
    bool is_open; /* the first is [] */
    size_t n;
    size_t n_levels; /* of braces round a value: a vector has one more */
    size_t bytes[8]; /* of the whole (open: of a row), of a row, ... of the last dimension's */
} shape;

/* [64], [2][3], []: multiplies variable->bytes */
static bool dimensions(ptx_parser *p, ptx_variable *variable, shape *ret)
{
    enum { MOST_BYTES = 1 << 30 };
    const size_t element = variable->bytes;
    *ret = (shape){0};
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
    const shape *shape;
    uint8_t *bytes;
    size_t at, capacity; /* bytes */
    ptx_relocation **last;
} filling;

static void put(ptx_parser *p, filling *to, uint64_t value, size_t bytes)
{
    if (to->at + bytes > to->capacity) {
        kr__ptx_fatal(p, p->token.line, "Greater number of elements in array initializer");
        return;
    }
    for (size_t i = 0; i < bytes; i++)
        to->bytes[to->at + i] = (uint8_t)(value >> 8 * i);
    to->at += bytes;
}

static bool address(ptx_parser *p, filling *to, bool generic)
{
    const unsigned line = p->token.line;
    ptx_text text;
    int64_t addend = 0;
    if (!kr__ptx_expect_word(p, &text) || (generic && !kr__ptx_expect(p, ')')))
        return false;
    if (kr__ptx_accept(p, '+') && !kr__ptx_integer(p, &addend))
        return false;
    const ptx_name *name = kr__ptx_lookup(p, text);
    ptx_relocation *relocation = kr__ptx_new(p, sizeof *relocation);
    if (!relocation)
        return false;
    *relocation = (ptx_relocation){.offset = to->at, .addend = addend, .generic = generic};
    if (name && name->kind == PTX_NAME_VARIABLE)
        relocation->variable = name->thing;
    else if (name && name->kind == PTX_NAME_FUNCTION && !generic)
        relocation->function = kr__ptx_use(name);
    else if (name)
        kr__ptx_fatal(p, line, "Invalid initial value expression");
    else
        kr__ptx_fatal(p, line, "Invalid initial value symbol '%.*s'", (int)text.bytes, text.at);
    const size_t bytes = kr__ptx_type_bytes(to->variable->type);
    if (bytes != 8)
        kr__ptx_unsupported(p, line, "Address in a variable of type .%s is not supported",
                            kr__ptx_type_name(to->variable->type));
    put(p, to, 0, bytes);
    *to->last = relocation;
    to->last = &relocation->next;
    return !p->stopped;
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
    if (kr__ptx_is_word(&p->token, PTX_TEXT("generic"))) {
        kr__ptx_advance(p);
        return kr__ptx_expect(p, '(') && address(p, to, true);
    }
    if (p->token.kind == PTX_TOKEN_WORD)
        return address(p, to, false);
    return number(p, to);
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

static bool skip_opaque(ptx_parser *p)
{
    while (p->token.kind != PTX_TOKEN_END && !kr__ptx_is_mark(&p->token, ';'))
        kr__ptx_advance(p);
    return !p->stopped;
}

static bool initialiser(ptx_parser *p, ptx_variable *variable, const shape *of)
{
    if (variable->space != PTX_SPACE_GLOBAL && variable->space != PTX_SPACE_CONST) {
        kr__ptx_error(p, p->token.line, "No initial value is allowed for '%s' in this state space",
                      variable->name);
        return skip_opaque(p);
    }
    if (variable->linkage == PTX_LINK_EXTERN)
        kr__ptx_error(p, p->token.line, "No initial value is allowed for external symbol '%s'",
                      variable->name);
    if (variable->type >= PTX_TEXREF)
        return skip_opaque(p);
    filling to = {.variable = variable, .shape = of, .capacity = variable->bytes};
    if (of->is_open)
        to.capacity *= count_elements(p);
    to.bytes = kr__ptx_new(p, to.capacity);
    to.last = &variable->relocations;
    if (!to.bytes || !values(p, &to, 0))
        return false;
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

/* Which types the space has. */
static void check_declaration(ptx_parser *p, const declaration *of, ptx_text name, unsigned line)
{
    static const uint64_t everywhere =
        ((1ull << PTX_F16X2) - (1ull << PTX_B8)) | 1ull << PTX_F16X2 | 1ull << PTX_F32 | 1ull << PTX_F64;
    static const uint64_t opaque = 1ull << PTX_TEXREF | 1ull << PTX_SAMPLERREF | 1ull << PTX_SURFREF;
    const bool is_register = of->space == PTX_SPACE_REG;
    if (of->type == PTX_PRED && !is_register)
        kr__ptx_error(p, line, "Predicate variable '%.*s' must be in register state space", (int)name.bytes,
                      name.at);
    else if (!((everywhere | (is_register ? 1ull << PTX_PRED : opaque)) >> of->type & 1))
        kr__ptx_error(p, line, "Illegal type '.%s' for variable declaration", kr__ptx_type_name(of->type));
    else if (p->function)
        return;
    else if (of->space == PTX_SPACE_REG || of->space == PTX_SPACE_LOCAL)
        kr__ptx_error(p, line, "Module-scoped variables in %s state space are not allowed with ABI",
                      is_register ? ".reg" : ".local");
    else if (of->space == PTX_SPACE_PARAM)
        kr__ptx_error(p, line, "Parameter variables may not be declared at module scope");
}

static void registers(ptx_parser *p, const declaration *of)
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
                name->thing = kr__ptx_new_register(p, text, of->type);
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
        *range = (ptx_range){.type = of->type, .n = (uint64_t)n};
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
    const ptx_name *name = p->function ? NULL : module_name(p, text, variable->linkage);
    ptx_variable *before = name && name->kind == PTX_NAME_VARIABLE ? name->thing : NULL;
    if (!before || !may_meet(p, before->linkage, variable->linkage))
        return false;
    const bool is_common = before->linkage == PTX_LINK_COMMON && variable->linkage == PTX_LINK_COMMON;
    if (before->space != variable->space ||
        (!is_common && (before->type != variable->type ||
                        (before->bytes && variable->bytes && before->bytes != variable->bytes)))) {
        kr__ptx_error(p, variable->line, "Inconsistent redefinition of variable '%s'", variable->name);
        return true;
    }
    if (is_common ? variable->bytes <= before->bytes
                  : strength(variable->linkage) <= strength(before->linkage))
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
    declaration of = {.space = space_at(p), .linkage = linkage};
    const unsigned first_line = p->token.line;
    kr__ptx_advance(p);
    if (!qualifiers(p, &of))
        return;
    if (of.space == PTX_SPACE_REG) {
        if (of.vector)
            kr__ptx_unsupported(p, first_line, "Vector registers are not supported");
        registers(p, &of);
        return;
    }
    do {
        const unsigned line = p->token.line;
        ptx_text text;
        shape array;
        if (!kr__ptx_expect_word(p, &text))
            return;
        ptx_variable *variable = new_variable(p, &of, text, line);
        if (!variable || !dimensions(p, variable, &array))
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

/* ---- functions ---- */

static bool parameter(ptx_parser *p, ptx_function *function, bool is_last_open, bool declare,
                      ptx_variable **ret)
{
    declaration of = {.space = space_at(p)};
    const unsigned line = p->token.line;
    if (is_last_open)
        kr__ptx_error(p, line, "Only the last input parameter can be an incomplete array.");
    if (of.space != PTX_SPACE_PARAM && of.space != PTX_SPACE_REG) {
        kr__ptx_syntax_error(p);
        return false;
    }
    kr__ptx_advance(p);
    ptx_text text;
    shape array;
    if (!qualifiers(p, &of) || !kr__ptx_expect_word(p, &text))
        return false;
    ptx_variable *variable = new_variable(p, &of, text, line);
    if (!variable || !dimensions(p, variable, &array))
        return false;
    variable->is_parameter = true;
    if (of.type == PTX_PRED && of.space == PTX_SPACE_PARAM)
        check_declaration(p, &of, text, line);
    if (of.vector)
        kr__ptx_error(p, line, "Variable '%s' cannot be allocated in .param state space", variable->name);
    if (array.is_open)
        variable->bytes = 0;
    if (of.space == PTX_SPACE_REG && function->is_entry)
        kr__ptx_error(p, line, "Entry parameter '%s' must have .param state space", variable->name);
    else if (of.space == PTX_SPACE_REG)
        kr__ptx_unsupported(p, line, "Parameter '%s' in a register is not supported", variable->name);
    if (array.is_open && function->is_entry)
        kr__ptx_error(p, line, "Parameter to entry function cannot be an incomplete array.");
    if (declare && strcmp(variable->name, "_")) {
        ptx_name *name = kr__ptx_declare(p, text, line, PTX_NAME_VARIABLE);
        if (name)
            name->thing = variable;
    }
    *ret = variable;
    return true;
}

/* Each at the next multiple of its alignment: how the driver packs a kernel's. */
static size_t lay_out(ptx_variable *const *variables, size_t n)
{
    size_t at = 0;
    for (size_t i = 0; i < n; i++) {
        at = (at + variables[i]->alignment - 1) & ~(size_t)(variables[i]->alignment - 1);
        variables[i]->offset = at;
        at += variables[i]->bytes;
    }
    return at;
}

bool kr__ptx_parameters(ptx_parser *p, ptx_function *function, bool returns, bool declare)
{
    size_t n = 0;
    ptx_variable *first = NULL, **last = &first;
    bool open = false;
    if (!kr__ptx_expect(p, '('))
        return false;
    if (!kr__ptx_is_mark(&p->token, ')'))
        do {
            ptx_variable *variable;
            if (!parameter(p, function, open, declare, &variable))
                return false;
            open = !variable->bytes;
            variable->index = (unsigned)n++;
            *last = variable;
            last = &variable->next;
        } while (kr__ptx_accept(p, ','));
    ptx_variable **list = kr__ptx_new(p, (n ? n : 1) * sizeof *list);
    if (!list || !kr__ptx_expect(p, ')'))
        return false;
    size_t i = 0;
    for (ptx_variable *variable = first; variable; variable = variable->next)
        list[i++] = variable;
    const size_t bytes = lay_out(list, n);
    if (returns) {
        function->returns = list;
        function->n_returns = n;
    } else {
        function->params = list;
        function->n_params = n;
        function->param_bytes = bytes;
    }
    return true;
}

/* One to three numbers, those left out 1. */
static bool triple(ptx_parser *p, const char *name, unsigned to[3])
{
    to[0] = to[1] = to[2] = 1;
    for (size_t i = 0; i < 3; i++) {
        int64_t value;
        const unsigned line = p->token.line;
        if (i && !kr__ptx_accept(p, ','))
            break;
        if (!kr__ptx_integer(p, &value))
            return false;
        if (value < 1 || value > INT32_MAX)
            kr__ptx_error(p, line, "Positive non-zero value expected for %s", name + 1);
        else
            to[i] = (unsigned)value;
    }
    return true;
}

static void conflict(ptx_parser *p, const char *one, const char *other)
{
    kr__ptx_error(p, p->token.line, "Conflicting directives: %s and %s cannot both be specified", one, other);
}

static bool directives(ptx_parser *p, ptx_function *function)
{
    unsigned minimum[3] = {0}, maxnreg[3] = {0}, rank[3] = {0};
    const struct {
        const char *text;
        unsigned *to; /* NULL: says nothing more */
    } words[] = {
        {".maxntid", function->maxntid},
        {".reqntid", function->reqntid},
        {".reqnctapercluster", function->reqnctapercluster},
        {".minnctapersm", minimum},
        {".maxnreg", maxnreg},
        {".maxclusterrank", rank},
        {".explicitcluster", NULL},
        {".blocksareclusters", NULL},
    };
    while (p->token.kind == PTX_TOKEN_DOTTED) {
        size_t i = 0;
        while (i < KR_COUNT(words) && !at_dotted(p, words[i].text))
            i++;
        if (i < KR_COUNT(words)) {
            kr__ptx_advance(p);
            if (words[i].to && !triple(p, words[i].text, words[i].to))
                return false;
        } else if (at_dotted(p, ".pragma")) {
            kr__ptx_pragma(p);
        } else if (!function->is_entry && accept_dotted(p, ".noreturn")) {
            function->noreturn = true;
        } else {
            break;
        }
    }
    function->minnctapersm = minimum[0];
    function->maxnreg = maxnreg[0];
    if (function->maxntid[0] && function->reqntid[0])
        conflict(p, ".maxntid", ".reqntid");
    if (function->reqnctapercluster[0] && rank[0])
        conflict(p, ".reqnctapercluster", ".maxclusterrank");
    return !p->stopped;
}

static void check_prototypes(ptx_parser *p, const ptx_function *known, const ptx_function *again)
{
    const struct {
        ptx_variable **const *one, **const *other;
        size_t n, m;
        const char *text;
    } lists[] = {{&known->returns, &again->returns, known->n_returns, again->n_returns, "return parameter"},
                 {&known->params, &again->params, known->n_params, again->n_params, "parameter"}};
    for (size_t i = 0; i < KR_COUNT(lists); i++) {
        if (lists[i].n != lists[i].m) {
            kr__ptx_error(p, again->line, "Inconsistent prototypes of '%s', number of %ss differ",
                          known->name, lists[i].text);
            continue;
        }
        for (size_t k = 0; k < lists[i].n; k++)
            if ((*lists[i].one)[k]->bytes != (*lists[i].other)[k]->bytes) {
                kr__ptx_error(p, again->line, "Inconsistent prototypes of '%s', %s types differ", known->name,
                              lists[i].text);
                break;
            }
    }
}

/* The function object of a name: a definition fills that of its declarations, which calls already point to.
 */
static ptx_function *function_named(ptx_parser *p, ptx_text text, unsigned line, const ptx_function *as)
{
    ptx_name *name = module_name(p, text, as->linkage);
    if (name && name->kind == PTX_NAME_FUNCTION)
        return name->thing;
    name = kr__ptx_declare(p, text, line, PTX_NAME_FUNCTION);
    ptx_function *function = name ? kr__ptx_new(p, sizeof *function) : NULL;
    char *copy = function ? kr__arena_text(&p->module->arena, text.at, text.bytes) : NULL;
    if (!copy)
        return NULL;
    *function = *as;
    function->name = copy;
    function->line = line;
    name->thing = function;
    *p->last_function = function;
    p->last_function = &function->next;
    return function;
}

/* Where a second definition of a function goes: in its place where it is stronger, else nowhere. */
static ptx_function *redefined(ptx_parser *p, ptx_function *known, const ptx_function *head)
{
    ptx_function *to = known;
    if (!p->linked || !may_meet(p, known->linkage, head->linkage)) {
        kr__ptx_error(p, head->line, "Duplicate definition of function '%s'", known->name);
        return known;
    }
    if (strength(head->linkage) <= strength(known->linkage))
        to = kr__ptx_new(p, sizeof *to);
    if (to)
        *to = *head;
    return to;
}

static void body_or_end(ptx_parser *p, ptx_function *function, const ptx_function *head, bool was_defined)
{
    if (kr__ptx_accept(p, ';'))
        return;
    if (!kr__ptx_expect(p, '{'))
        return;
    if (was_defined)
        function = redefined(p, function, head);
    if (!function)
        return;
    ptx_variable **const last = p->last_variable;
    const unsigned n = p->n_variables;
    kr__ptx_body(p, function);
    p->last_variable = last;
    p->n_variables = n;
}

static void function(ptx_parser *p, ptx_linkage linkage)
{
    ptx_function head = {.is_entry = at_dotted(p, ".entry"), .linkage = linkage};
    kr__ptx_advance(p);
    ptx_text text;
    ptx_block *const module = p->block;
    if (!kr__ptx_push_block(p))
        return;
    ptx_block *const own = p->block;
    if (kr__ptx_is_mark(&p->token, '(') && !kr__ptx_parameters(p, &head, true, true))
        return;
    head.line = p->token.line;
    if (!kr__ptx_expect_word(p, &text))
        return;
    p->block = module;
    ptx_function *known = function_named(p, text, head.line, &head);
    p->block = own;
    if (kr__ptx_is_mark(&p->token, '(') && !kr__ptx_parameters(p, &head, false, true))
        return;
    if (!known) {
        kr__ptx_fatal(p, p->token.line, "Inconsistent redefinition of symbol '%.*s'", (int)text.bytes,
                      text.at);
        return;
    }
    if (!directives(p, &head))
        return;
    head.name = known->name;
    head.next = known->next;
    head.is_used = known->is_used;
    if (known->is_declared)
        check_prototypes(p, known, &head);
    head.is_declared = true;
    const bool was_defined = known->has_body;
    if (!was_defined)
        *known = head;
    body_or_end(p, known, &head, was_defined);
    p->block = module;
    p->depth--;
}

/* ---- directives that nothing follows from ---- */

void kr__ptx_pragma(ptx_parser *p)
{
    kr__ptx_advance(p);
    do {
        if (p->token.kind != PTX_TOKEN_STRING) {
            kr__ptx_syntax_error(p);
            return;
        }
        kr__ptx_advance(p);
    } while (kr__ptx_accept(p, ','));
    kr__ptx_expect(p, ';');
}

static void file(ptx_parser *p)
{
    int64_t index, ignored;
    ptx_file *entry = kr__ptx_new(p, sizeof *entry);
    if (!entry || !kr__ptx_integer(p, &index))
        return;
    if (p->token.kind != PTX_TOKEN_STRING) {
        kr__ptx_syntax_error(p);
        return;
    }
    entry->index = (unsigned)index;
    entry->name = kr__arena_text(&p->module->arena, p->token.text.at, p->token.text.bytes);
    if (!entry->name)
        entry->name = "";
    kr__ptx_advance(p);
    while (kr__ptx_accept(p, ',') && kr__ptx_integer(p, &ignored))
        ;
    *p->last_file = entry;
    p->last_file = &entry->next;
}

static void section(ptx_parser *p)
{
    if (p->token.kind != PTX_TOKEN_DOTTED && p->token.kind != PTX_TOKEN_WORD) {
        kr__ptx_syntax_error(p);
        return;
    }
    kr__ptx_advance(p);
    if (!kr__ptx_expect(p, '{'))
        return;
    while (p->token.kind != PTX_TOKEN_END && !kr__ptx_is_mark(&p->token, '}'))
        kr__ptx_advance(p);
    kr__ptx_expect(p, '}');
}

void kr__ptx_file_or_section(ptx_parser *p)
{
    if (accept_dotted(p, ".file"))
        file(p);
    else if (accept_dotted(p, ".section"))
        section(p);
}

/* ---- the header ---- */

static bool version(ptx_parser *p, int newest)
{
    if (!accept_dotted(p, ".version")) {
        fatal_of(p, PTX_PROBLEM_SYNTAX, p->token.line,
                 "Missing .version directive at start of file 'application ptx input'");
        return false;
    }
    const ptx_token token = p->token;
    const char *dot = token.text.bytes ? memchr(token.text.at, '.', token.text.bytes) : NULL;
    if (token.kind != PTX_TOKEN_FLOAT || token.text.bytes > 6 || !dot || dot == token.text.at ||
        dot + 2 != token.text.at + token.text.bytes) {
        kr__ptx_syntax_error(p);
        return false;
    }
    int isa = 0;
    for (size_t i = 0; i < token.text.bytes; i++)
        if (token.text.at[i] != '.')
            isa = isa * 10 + (token.text.at[i] - '0');
    if (!kr__ptx_version_known(isa) || isa > newest) {
        fatal_of(p, PTX_PROBLEM_VERSION, token.line, "Unsupported .version %.*s; current version is '%d.%d'",
                 (int)token.text.bytes, token.text.at, newest / 10, newest % 10);
        return false;
    }
    p->module->isa = isa;
    kr__ptx_advance(p);
    return true;
}

static bool target(ptx_parser *p)
{
    if (!accept_dotted(p, ".target")) {
        fatal_of(p, PTX_PROBLEM_SYNTAX, p->token.line,
                 "Missing .target directive at start of file 'application ptx input'");
        return false;
    }
    static const char *const others[] = {"texmode_unified", "texmode_independent", "map_f64_to_f32"};
    int isa = 0;
    unsigned line;
    do {
        ptx_text text;
        line = p->token.line;
        if (!kr__ptx_expect_word(p, &text))
            return false;
        int sm;
        char suffix;
        const int needs = kr__ptx_target_isa(text, &sm, &suffix);
        bool known = needs != 0;
        if (known) {
            isa = needs;
            p->module->sm = sm;
            p->module->suffix = suffix;
            kr__format(p->module->target, sizeof p->module->target, "%.*s", (int)text.bytes, text.at);
        } else if (text.bytes == 5 && !memcmp(text.at, "debug", 5)) {
            known = p->module->debug = true;
        }
        for (size_t i = 0; !known && i < KR_COUNT(others); i++)
            known = text.bytes == strlen(others[i]) && !memcmp(text.at, others[i], text.bytes);
        if (!known) {
            fatal_of(p, PTX_PROBLEM_TARGET, line, "Unsupported .target '%.*s'", (int)text.bytes, text.at);
            return false;
        }
    } while (kr__ptx_accept(p, ','));
    if (!p->module->sm) {
        fatal_of(p, PTX_PROBLEM_TARGET, line,
                 "Target architecture not defined at start of file 'application ptx input'");
        return false;
    }
    if (p->module->isa < isa) {
        fatal_of(p, PTX_PROBLEM_TARGET, line, "PTX .version %d.%d does not support .target %s",
                 p->module->isa / 10, p->module->isa % 10, p->module->target);
        return false;
    }
    return true;
}

static bool address_size(ptx_parser *p)
{
    p->module->address_bits = 64;
    if (!accept_dotted(p, ".address_size"))
        return true;
    const unsigned line = p->token.line;
    int64_t bits;
    if (!kr__ptx_integer(p, &bits))
        return false;
    if (bits == 32)
        fatal_of(p, PTX_PROBLEM_SYNTAX, line, "32-Bit compilation is no longer supported");
    else if (bits != 64)
        kr__ptx_error(p, line, "Illegal value for .address_size directive (must be 32 or 64)");
    return !p->stopped;
}

/* ---- the module ---- */

static ptx_linkage linkage(ptx_parser *p)
{
    static const struct {
        const char *text;
        ptx_linkage linkage;
    } words[] = {{".extern", PTX_LINK_EXTERN},
                 {".visible", PTX_LINK_VISIBLE},
                 {".weak", PTX_LINK_WEAK},
                 {".common", PTX_LINK_COMMON}};
    for (size_t i = 0; i < KR_COUNT(words); i++)
        if (accept_dotted(p, words[i].text))
            return words[i].linkage;
    return PTX_LINK_NONE;
}

/* The header of a text after the first. The module is held to the newest of them. */
static bool next_header(ptx_parser *p, int newest)
{
    ptx_module *const module = p->module;
    const int isa = module->isa, sm = module->sm;
    const char suffix = module->suffix;
    char name[sizeof module->target];
    memcpy(name, module->target, sizeof name);
    module->sm = 0;
    if (!begin_text(p) || !version(p, newest) || !target(p) || !address_size(p))
        return false;
    module->isa = isa > module->isa ? isa : module->isa;
    if (sm > module->sm) {
        module->sm = sm;
        module->suffix = suffix;
        memcpy(module->target, name, sizeof name);
    }
    return true;
}

static void statements(ptx_parser *p, int newest)
{
    while (!p->stopped && p->token.kind != PTX_TOKEN_END) {
        if (p->linked && at_dotted(p, ".version")) {
            if (!next_header(p, newest))
                return;
            continue;
        }
        const ptx_linkage link = linkage(p);
        if (at_dotted(p, ".entry") || at_dotted(p, ".func"))
            function(p, link);
        else if (space_at(p) != PTX_SPACE_GENERIC)
            kr__ptx_variables(p, link);
        else if (!link && (at_dotted(p, ".file") || at_dotted(p, ".section")))
            kr__ptx_file_or_section(p);
        else if (!link && at_dotted(p, ".pragma"))
            kr__ptx_pragma(p);
        else if (at_dotted(p, ".alias")) {
            kr__ptx_unsupported(p, p->token.line, ".alias is not supported");
            skip_opaque(p);
            kr__ptx_expect(p, ';');
        } else
            kr__ptx_syntax_error(p);
    }
}

static bool keywords(ptx_parser *p)
{
    kr__arena *arena = &p->module->arena;
    for (int op = 0; op < PTX_OP_COUNT; op++) {
        const ptx_opcode *opcode = &kr__ptx_opcodes[op];
        const ptx_text text = {opcode->name, strlen(opcode->name)};
        ptx_name *name = kr__ptx_add_name(arena, &p->keywords, text, kr__ptx_hash(text), PTX_NAME_OPCODE);
        if (!name)
            return false;
        name->index = (uint32_t)op;
        for (const ptx_form *form = opcode->forms; form->operands; form++)
            p->allowed[op] |= form->allowed;
    }
    for (size_t i = 0; i < kr__ptx_n_modifiers; i++) {
        if (i && !strcmp(kr__ptx_modifiers[i].text, kr__ptx_modifiers[i - 1].text))
            continue;
        char dotted[48];
        kr__format(dotted, sizeof dotted, ".%s", kr__ptx_modifiers[i].text);
        const size_t bytes = strlen(dotted);
        const ptx_text text = {kr__arena_text(arena, dotted, bytes), bytes};
        ptx_name *name =
            text.at ? kr__ptx_add_name(arena, &p->keywords, text, kr__ptx_hash(text), PTX_NAME_MODIFIER)
                    : NULL;
        if (!name)
            return false;
        name->index = (uint32_t)i;
    }
    for (int i = 0; i < PTX_SPECIAL_COUNT; i++) {
        const ptx_text text = {kr__ptx_specials[i].text, strlen(kr__ptx_specials[i].text)};
        ptx_name *name = kr__ptx_add_name(arena, &p->keywords, text, kr__ptx_hash(text), PTX_NAME_SPECIAL);
        if (!name)
            return false;
        name->index = (uint32_t)i;
    }
    return true;
}

static void unresolved(ptx_parser *p, const ptx_function *function)
{
    ptx_problem *problem = p->problem;
    problem->n_errors++;
    if (!problem->kind) {
        problem->kind = PTX_PROBLEM_SYNTAX;
        problem->line = function->line;
    }
    kr__text_add(&problem->log, "ptxas fatal   : Unresolved extern function '%s'\n", function->name);
}

static void parse(ptx_parser *p, const ptx_options *options)
{
    const int newest = options && options->max_isa ? options->max_isa : PTX_NEWEST_ISA;
    p->linked = options && options->linked;
    if (!keywords(p) || !kr__ptx_push_block(p) || (p->linked && !kr__ptx_push_block(p))) {
        kr__ptx_no_memory(p);
        return;
    }
    p->last_variable = &p->module->variables;
    p->last_function = &p->module->functions;
    p->last_file = &p->module->files;
    kr__ptx_advance(p);
    if (version(p, newest) && target(p) && address_size(p))
        statements(p, newest);
    for (const ptx_function *f = p->module->functions; f && !p->stopped; f = f->next) {
        p->module->n_entries += f->is_entry;
        if (!f->has_body && f->linkage != PTX_LINK_EXTERN && (f->is_used || f->is_entry))
            unresolved(p, f);
    }
}

bool kr__ptx_parse(const char *text, size_t bytes, const ptx_options *options, ptx_module **ret_module,
                   ptx_problem *problem)
{
    *problem = (ptx_problem){0};
    ptx_module *module = calloc(1, sizeof *module);
    if (!module) {
        problem->kind = PTX_PROBLEM_MEMORY;
        return false;
    }
    ptx_parser p = {.module = module, .problem = problem};
    p.lexer = (ptx_lexer){.at = text, .end = text + strnlen(text, bytes), .line = 1};
    if (!kr__ptx_looks_like(text, (size_t)(p.lexer.end - text)))
        problem->kind = PTX_PROBLEM_NOT_PTX;
    parse(&p, options);
    free(p.instrs);
    free(p.labels);
    free(p.registers);
    if (!problem->n_errors && !problem->kind) {
        *ret_module = module;
        return true;
    }
    kr__text_add(&problem->log, "ptxas fatal   : Ptx assembly aborted due to errors\n");
    kr__ptx_module_free(&module);
    return false;
}

void kr__ptx_module_free(ptx_module **module)
{
    if (!*module)
        return;
    kr__arena_free(&(*module)->arena);
    free(*module);
    *module = NULL;
}

const ptx_function *kr__ptx_find_function(const ptx_module *module, const char *name)
{
    for (const ptx_function *function = module->functions; function; function = function->next)
        if (!strcmp(function->name, name))
            return function;
    return NULL;
}
