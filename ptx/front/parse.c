/* SPDX-License-Identifier: Apache-2.0 */
/* Module scope: the header, and what stands there. */
#include "ptx/front/front.h"

#include <stdlib.h>
#include <string.h>

/* ---- directives that nothing follows from ---- */

ptx_mark **kr__ptx_mark(ptx_parser *p, const char *begin, ptx_mark **last)
{
    ptx_mark *mark = p->stopped ? NULL : kr__ptx_new(p, sizeof *mark);
    char *text = mark ? kr__arena_text(&p->module->arena, begin, (size_t)(p->last_end - begin)) : NULL;
    if (!text)
        return last;
    *mark = (ptx_mark){.text = text, .at = (uint32_t)p->n_instrs, .n_labels = (uint32_t)p->n_labels};
    *last = mark;
    return &mark->next;
}

/* Those that the assembler knows; in functions it lets others pass. */
static void check_pragma(ptx_parser *p)
{
    static const struct {
        const char *name;
        uint8_t isa, sm;
    } rows[] = {{"used_bytes_mask", 83, 50}, {"enable_smem_spilling", 87, 75}, {"frequency", 90, 0}};
    const ptx_text text = p->token.text;
    if (!p->function && !p->is_head && !kr__ptx_is_text(text, "nounroll"))
        kr__ptx_error(p, p->token.line, "Pragma '%.*s' not supported", (int)text.bytes, text.at);
    for (size_t i = 0; i < KR_COUNT(rows); i++) {
        const size_t n = strlen(rows[i].name);
        if (text.bytes < n || memcmp(text.at, rows[i].name, n) || (text.bytes > n && text.at[n] != ' '))
            continue;
        if (p->function)
            kr__ptx_has(p, p->token.line, rows[i].name, rows[i].isa, rows[i].sm);
        else
            kr__ptx_error(p, p->token.line, "Pragma '%.*s' is allowed only within function scope",
                          (int)text.bytes, text.at);
    }
}

ptx_mark **kr__ptx_pragma(ptx_parser *p, ptx_mark **last)
{
    const char *begin = p->token.text.at;
    kr__ptx_advance(p);
    do {
        if (p->token.kind != PTX_TOKEN_STRING) {
            kr__ptx_syntax_error(p);
            return last;
        }
        check_pragma(p);
        kr__ptx_advance(p);
    } while (kr__ptx_accept(p, ','));
    return kr__ptx_expect(p, ';') ? kr__ptx_mark(p, begin, last) : last;
}

/* Of each index there is one. */
static void note_file(ptx_parser *p, const ptx_file *file, unsigned line)
{
    const ptx_text key = {(const char *)&file->index, sizeof file->index};
    const uint32_t hash = kr__ptx_hash(key);
    if (kr__ptx_find_name(&p->files, key, hash))
        kr__ptx_error(p, line, "Duplicate file index #%u", file->index);
    else if (!kr__ptx_add_name(&p->module->arena, &p->files, key, hash, PTX_NAME_LABEL))
        kr__ptx_no_memory(p);
}

static void file(ptx_parser *p)
{
    const char *begin = p->token.text.at;
    const unsigned line = p->token.line;
    uint64_t index, ignored;
    kr__ptx_advance(p);
    ptx_file *entry = kr__ptx_new(p, sizeof *entry);
    if (!entry || !kr__ptx_number(p, UINT32_MAX, &index))
        return;
    if (p->token.kind != PTX_TOKEN_STRING) {
        kr__ptx_syntax_error(p);
        return;
    }
    entry->index = (unsigned)index;
    note_file(p, entry, line);
    entry->name = kr__arena_text(&p->module->arena, p->token.text.at, p->token.text.bytes);
    if (!entry->name)
        entry->name = "";
    kr__ptx_advance(p);
    if (kr__ptx_is_mark(&p->token, ','))
        kr__ptx_has(p, line, "timestamp and filesize in .file directive", 32, 0);
    while (kr__ptx_accept(p, ',') && kr__ptx_number(p, UINT64_MAX, &ignored))
        ;
    *p->last_file = entry;
    p->last_file = &entry->next;
    p->last_mark = kr__ptx_mark(p, begin, p->last_mark);
}

/* Of functions that .loc says were inlined. */
static void check_function_names(ptx_parser *p)
{
    for (const ptx_pending *name = p->function_names; name && !p->stopped; name = name->next)
        if (!kr__ptx_find_name(&p->section_labels, name->name, kr__ptx_hash(name->name)))
            kr__ptx_error(p, name->line, "Unresolved label '%.*s' used in function_name attribute.",
                          (int)name->name.bytes, name->name.at);
}

/* L: */
static void section_label(ptx_parser *p)
{
    const ptx_token token = p->token;
    const uint32_t hash = kr__ptx_hash(token.text);
    kr__ptx_has(p, token.line, "Defining labels in .section", 70, 0);
    if (kr__ptx_find_name(&p->section_labels, token.text, hash))
        kr__ptx_error(p, token.line, "Duplicate definition of label '%.*s'", (int)token.text.bytes,
                      token.text.at);
    else if (!kr__ptx_add_name(&p->module->arena, &p->section_labels, token.text, hash, PTX_NAME_LABEL))
        kr__ptx_no_memory(p);
    kr__ptx_advance(p);
    kr__ptx_expect(p, ':');
}

/* 1, -2, 0x3: numbers of a type. */
static void section_numbers(ptx_parser *p, ptx_type type)
{
    const int bits = 8 * (int)kr__ptx_type_bytes(type);
    do {
        const bool is_negative = kr__ptx_accept(p, '-');
        const ptx_token token = p->token;
        if (token.kind != PTX_TOKEN_INTEGER) {
            kr__ptx_syntax_error(p);
            return;
        }
        if (bits < 32 && (token.overflow || token.value > (1ull << bits) - 1 ||
                          (is_negative && token.value > 1ull << (bits - 1))))
            kr__ptx_error(p, token.line, "Value out of range for type .b%d %s%.*s", bits,
                          is_negative ? "-" : "", (int)token.text.bytes, token.text.at);
        kr__ptx_advance(p);
    } while (kr__ptx_accept(p, ','));
}

/* L, L + 4, L - M, .debug_info, .debug_info + 4 */
static void section_address(ptx_parser *p, ptx_type type)
{
    const bool is_section = p->token.kind == PTX_TOKEN_DOTTED;
    uint64_t offset;
    ptx_text ignored;
    if (type != PTX_B32 && type != PTX_B64)
        kr__ptx_error(p, p->token.line, "Illegal type for dwarf data");
    kr__ptx_advance(p);
    if (kr__ptx_accept(p, '+'))
        kr__ptx_number(p, UINT64_MAX, &offset);
    else if (!is_section && kr__ptx_accept(p, '-'))
        kr__ptx_expect_word(p, &ignored);
}

/* .b8 1, 2 */
static void section_values(ptx_parser *p)
{
    const ptx_type type = kr__ptx_type_named(p->token.text);
    if (!type) {
        kr__ptx_syntax_error(p);
        return;
    }
    if (type < PTX_B8 || type > PTX_B64)
        kr__ptx_error(p, p->token.line, "Illegal type for dwarf data");
    kr__ptx_advance(p);
    if (p->token.kind == PTX_TOKEN_WORD || p->token.kind == PTX_TOKEN_DOTTED)
        section_address(p, type);
    else
        section_numbers(p, type);
}

/* .section .debug_str { L: .b8 1, 2 }: what debuggers read */
static void section(ptx_parser *p)
{
    const char *begin = p->token.text.at;
    kr__ptx_advance(p);
    if (p->token.kind != PTX_TOKEN_DOTTED) {
        kr__ptx_syntax_error(p);
        return;
    }
    kr__ptx_advance(p);
    if (!kr__ptx_expect(p, '{'))
        return;
    while (!p->stopped && !kr__ptx_accept(p, '}'))
        if (p->token.kind == PTX_TOKEN_WORD)
            section_label(p);
        else
            section_values(p);
    p->last_mark = kr__ptx_mark(p, begin, p->last_mark);
}

static void file_or_section(ptx_parser *p)
{
    if (kr__ptx_at_dotted(p, ".file"))
        file(p);
    else if (kr__ptx_at_dotted(p, ".section"))
        section(p);
}

/* ---- the header ---- */

/* One digit or more, as a number of 32 bits, from which they may run over. */
static bool decimal_digits(ptx_text *rest, uint32_t *ret)
{
    const size_t before = rest->bytes;
    for (*ret = 0; rest->bytes && *rest->at >= '0' && *rest->at <= '9'; rest->at++, rest->bytes--)
        *ret = *ret * 10 + (uint32_t)(*rest->at - '0');
    return rest->bytes < before;
}

static bool version(ptx_parser *p, int newest)
{
    if (!kr__ptx_accept_dotted(p, ".version")) {
        kr__ptx_fatal_of(p, PTX_PROBLEM_SYNTAX, p->token.line,
                         "Missing .version directive at start of file 'application ptx input'");
        return false;
    }
    const ptx_token token = p->token;
    ptx_text rest = token.text;
    uint32_t major, minor;
    if (token.kind != PTX_TOKEN_FLOAT || !decimal_digits(&rest, &major) || !rest.bytes || *rest.at != '.' ||
        (rest.at++, rest.bytes--, !decimal_digits(&rest, &minor)) || rest.bytes) {
        kr__ptx_syntax_error(p);
        return false;
    }
    const int isa = major < 100 && minor < 10 ? (int)(major * 10 + minor) : 0;
    if (!kr__ptx_version_known(isa) || isa > newest) {
        kr__ptx_fatal_of(p, PTX_PROBLEM_VERSION, token.line,
                         "Unsupported .version %.*s; current version is '%d.%d'", (int)token.text.bytes,
                         token.text.at, newest / 10, newest % 10);
        return false;
    }
    p->module->isa = isa;
    kr__ptx_advance(p);
    return true;
}

static bool target(ptx_parser *p)
{
    if (!kr__ptx_accept_dotted(p, ".target")) {
        kr__ptx_fatal_of(p, PTX_PROBLEM_SYNTAX, p->token.line,
                         "Missing .target directive at start of file 'application ptx input'");
        return false;
    }
    const struct {
        const char *text;
        bool *to;
    } others[] = {{"debug", &p->module->debug},
                  {"texmode_unified", &p->module->texmode_unified},
                  {"texmode_independent", &p->module->texmode_independent},
                  {"map_f64_to_f32", &p->module->map_f64_to_f32}};
    int isa = 0, needs = 0;
    unsigned line;
    do {
        ptx_text text;
        line = p->token.line;
        if (!kr__ptx_expect_word(p, &text))
            return false;
        int sm;
        char suffix;
        const uint64_t named = kr__ptx_target_named(text, &sm, &suffix, &isa, &needs);
        bool known = named != 0;
        if (known) {
            p->target = named;
            p->module->sm = sm;
            p->module->suffix = suffix;
            kr__format(p->module->target, sizeof p->module->target, "%.*s", (int)text.bytes, text.at);
        }
        for (size_t i = 0; !known && i < KR_COUNT(others); i++)
            if (text.bytes == strlen(others[i].text) && !memcmp(text.at, others[i].text, text.bytes))
                known = *others[i].to = true;
        if (!known) {
            kr__ptx_fatal_of(p, PTX_PROBLEM_TARGET, line, "Unsupported .target '%.*s'", (int)text.bytes,
                             text.at);
            return false;
        }
    } while (kr__ptx_accept(p, ','));
    if (!p->module->sm) {
        kr__ptx_fatal_of(p, PTX_PROBLEM_TARGET, line,
                         "Target architecture not defined at start of file 'application ptx input'");
        return false;
    }
    if (p->module->isa < isa) {
        kr__ptx_fatal_of(p, PTX_PROBLEM_TARGET, line, "PTX .version %d.%d does not support .target %s",
                         p->module->isa / 10, p->module->isa % 10, p->module->target);
        return false;
    }
    if (!p->module->needs.isa)
        kr__ptx_begin_needs(p, needs, line);
    return true;
}

static bool address_size(ptx_parser *p)
{
    p->module->address_bits = 64;
    if (!kr__ptx_accept_dotted(p, ".address_size"))
        return true;
    const unsigned line = p->token.line;
    int64_t bits;
    kr__ptx_has(p, line, ".address_size directive", 23, 0);
    if (!kr__ptx_integer(p, &bits))
        return false;
    if (bits == 32)
        kr__ptx_fatal_of(p, PTX_PROBLEM_SYNTAX, line, "32-Bit compilation is no longer supported");
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
    const unsigned line = p->token.line;
    for (size_t i = 0; i < KR_COUNT(words); i++)
        if (kr__ptx_accept_dotted(p, words[i].text)) {
            if (words[i].linkage == PTX_LINK_COMMON)
                kr__ptx_has(p, line, ".common directive", 50, 20);
            return words[i].linkage;
        }
    return PTX_LINK_NONE;
}

/* Files, places and labels of debug sections are a text's own. */
static void end_text(ptx_parser *p)
{
    check_function_names(p);
    p->function_names = NULL;
    p->files = p->places = p->section_labels = (ptx_names){0};
}

/* The header of a text after the first. The module is held to the newest of them. */
static bool next_header(ptx_parser *p, int newest)
{
    ptx_module *const module = p->module;
    const int isa = module->isa, sm = module->sm;
    const char suffix = module->suffix;
    const uint64_t named = p->target;
    char name[sizeof module->target];
    memcpy(name, module->target, sizeof name);
    module->sm = 0;
    end_text(p);
    if (!kr__ptx_begin_text(p) || !version(p, newest) || !target(p) || !address_size(p))
        return false;
    module->isa = isa > module->isa ? isa : module->isa;
    if (sm > module->sm) {
        module->sm = sm;
        module->suffix = suffix;
        p->target = named;
        memcpy(module->target, name, sizeof name);
    }
    return true;
}

static void statements(ptx_parser *p, int newest)
{
    while (!p->stopped && p->token.kind != PTX_TOKEN_END) {
        if (p->linked && kr__ptx_at_dotted(p, ".version")) {
            if (!next_header(p, newest))
                return;
            continue;
        }
        const ptx_linkage link = linkage(p);
        if (kr__ptx_at_dotted(p, ".entry") || kr__ptx_at_dotted(p, ".func"))
            kr__ptx_function(p, link);
        else if (kr__ptx_space_at(p) != PTX_SPACE_GENERIC)
            kr__ptx_variables(p, link);
        else if (!link && (kr__ptx_at_dotted(p, ".file") || kr__ptx_at_dotted(p, ".section")))
            file_or_section(p);
        else if (!link && kr__ptx_at_dotted(p, ".pragma"))
            p->last_mark = kr__ptx_pragma(p, p->last_mark);
        else if (!link && kr__ptx_at_dotted(p, ".alias"))
            kr__ptx_alias(p);
        else
            kr__ptx_syntax_error(p);
    }
}

/* Said when all is read: "fatal   : Unresolved extern function 'f'". */
static void function_error(ptx_parser *p, const ptx_function *function, const char *before, const char *after)
{
    ptx_problem *problem = p->problem;
    problem->n_errors++;
    if (!problem->kind) {
        problem->kind = PTX_PROBLEM_SYNTAX;
        problem->line = function->line;
    }
    kr__text_add(&problem->log, "ptxas %s '%s'%s\n", before, function->name, after);
}

/* What functions use of tensor memory, those use too that call them. False: nothing new. */
static bool spread_cta_groups(const ptx_module *module)
{
    bool any = false;
    for (ptx_function *f = module->functions; f; f = f->next)
        for (size_t i = 0; i < f->n_instrs; i++) {
            const ptx_function *callee = f->instrs[i].callee;
            if (callee && (callee->cta_groups & ~f->cta_groups)) {
                f->cta_groups |= callee->cta_groups;
                any = true;
            }
        }
    return any;
}

/* A kernel has tensor memory for its block or for its pair of blocks. */
static void check_cta_groups(ptx_parser *p)
{
    enum { BOTH = 1 << 1 | 1 << 2 };
    unsigned all = 0;
    for (const ptx_function *f = p->module->functions; f; f = f->next)
        all |= f->cta_groups;
    if ((all & BOTH) != BOTH)
        return;
    while (spread_cta_groups(p->module)) {
    }
    for (const ptx_function *f = p->module->functions; f; f = f->next)
        if ((f->cta_groups & BOTH) == BOTH)
            function_error(p, f, "error   : Function",
                           " uses single CTA(.cta_group::1) and CTA pair granularity(.cta_group::2) and that "
                           "is not allowed.");
}

/* All of a module's lies in one bank. */
static void check_constant_space(ptx_parser *p)
{
    enum { MOST_BYTES = 0x10000 };
    size_t bytes = 0;
    for (const ptx_variable *v = p->module->variables; v; v = v->next)
        if (v->space == PTX_SPACE_CONST)
            bytes = ((bytes + v->alignment - 1) & ~(size_t)(v->alignment - 1)) + v->bytes;
    if (bytes <= MOST_BYTES)
        return;
    p->problem->n_errors++;
    p->problem->kind = p->problem->kind ? p->problem->kind : PTX_PROBLEM_SYNTAX;
    kr__text_add(&p->problem->log,
                 "ptxas error   : File uses too much global constant data (0x%zx bytes, 0x%x max)\n", bytes,
                 MOST_BYTES);
}

/* Not even in comments and strings. */
static bool check_ascii(ptx_parser *p, const char *text)
{
    unsigned line = 1;
    for (const char *at = text; at < p->lexer.end; at++) {
        line += *at == '\n';
        if (*at & 0x80) {
            kr__ptx_fatal(p, line, "Unexpected non-ASCII character encountered on line %u", line);
            return false;
        }
    }
    return true;
}

static void parse(ptx_parser *p, const ptx_options *options)
{
    const int newest = options && options->max_isa ? options->max_isa : PTX_NEWEST_ISA;
    p->linked = options && options->linked;
    if (!(p->words = kr__ptx_words()) || !kr__ptx_push_block(p) || (p->linked && !kr__ptx_push_block(p))) {
        kr__ptx_no_memory(p);
        return;
    }
    p->last_variable = &p->module->variables;
    p->last_function = &p->module->functions;
    p->last_file = &p->module->files;
    p->last_mark = &p->module->marks;
    const char *text = p->lexer.at;
    kr__ptx_advance(p);
    if (version(p, newest) && target(p) && address_size(p) && check_ascii(p, text))
        statements(p, newest);
    end_text(p);
    check_constant_space(p);
    for (const ptx_function *f = p->module->functions; f && !p->stopped; f = f->next) {
        p->module->n_entries += f->is_entry;
        if (!f->has_body && !f->aliased && f->linkage != PTX_LINK_EXTERN)
            function_error(p, f, "fatal   : Unresolved extern function", "");
    }
    if (!p->stopped)
        check_cta_groups(p);
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
