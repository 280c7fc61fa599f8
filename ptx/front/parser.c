/* SPDX-License-Identifier: Apache-2.0 */
/* Messages, tokens and names: what the rest of the parser stands on. */
#include "ptx/front/front.h"

#include <string.h>

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

void kr__ptx_fatal_of(ptx_parser *p, ptx_problem_kind kind, unsigned line, const char *format, ...)
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
    kr__ptx_fatal_of(p, PTX_PROBLEM_SYNTAX, line, "%s", text);
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
    kr__ptx_fatal_of(p, PTX_PROBLEM_MEMORY, p->token.line, "Memory allocation failure");
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
    if (p->stopped)
        return;
    p->last_end = p->lexer.at;
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

bool kr__ptx_is_text(ptx_text text, const char *other)
{
    return text.bytes == strlen(other) && !memcmp(text.at, other, text.bytes);
}

bool kr__ptx_at_dotted(const ptx_parser *p, const char *word)
{
    return p->token.kind == PTX_TOKEN_DOTTED && p->token.text.bytes == strlen(word) &&
           !memcmp(p->token.text.at, word, p->token.text.bytes);
}

bool kr__ptx_accept_dotted(ptx_parser *p, const char *word)
{
    if (!kr__ptx_at_dotted(p, word))
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

/* The register of a range in this block that the name is, made now. All digits at its end are its number:
 * "x12" is 12 of `x<99>`, never 2 of `x1<9>`; "x02" is not 2 of `x<9>`. */
static ptx_name *materialise(ptx_parser *p, ptx_block *block, ptx_text text, uint32_t hash)
{
    enum { MOST_DIGITS = 10 };
    size_t digits = 0;
    uint64_t number = 0;
    while (digits < text.bytes && text.at[text.bytes - 1 - digits] >= '0' &&
           text.at[text.bytes - 1 - digits] <= '9')
        digits++;
    const ptx_text prefix = {text.at, text.bytes - digits};
    if (!digits || digits > MOST_DIGITS || (digits > 1 && text.at[prefix.bytes] == '0'))
        return NULL;
    ptx_name *name = kr__ptx_find_name(&block->names, prefix, kr__ptx_hash(prefix));
    const ptx_range *range = name && name->kind == PTX_NAME_RANGE ? name->thing : NULL;
    for (size_t i = prefix.bytes; i < text.bytes; i++)
        number = number * 10 + (unsigned)(text.at[i] - '0');
    if (!range || number >= range->n)
        return NULL;
    name = kr__ptx_add_name(&p->module->arena, &block->names, text, hash, PTX_NAME_REGISTER);
    if (name)
        kr__ptx_make_register(p, name, range->type, range->vector);
    if (!name || !name->thing)
        return NULL;
    if (!range->vector)
        ((ptx_register *)name->thing)->is_of_range = true;
    return name;
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
int kr__ptx_strength(ptx_linkage linkage)
{
    return linkage == PTX_LINK_EXTERN ? 0 : linkage == PTX_LINK_COMMON ? 1 : linkage == PTX_LINK_WEAK ? 2 : 3;
}

bool kr__ptx_may_meet(const ptx_parser *p, ptx_linkage one, ptx_linkage other)
{
    const int weaker =
        kr__ptx_strength(one) < kr__ptx_strength(other) ? kr__ptx_strength(one) : kr__ptx_strength(other);
    return weaker == kr__ptx_strength(PTX_LINK_EXTERN) ||
           (p->linked && weaker < kr__ptx_strength(PTX_LINK_VISIBLE));
}

/* What the module, or with linkage any text before this one, declares under the name. */
ptx_name *kr__ptx_module_name(ptx_parser *p, ptx_text text, ptx_linkage linkage)
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
bool kr__ptx_begin_text(ptx_parser *p)
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
