/* SPDX-License-Identifier: Apache-2.0 */
/* Functions: parameters, directives, prototypes, definitions. */
#include "ptx/front/front.h"

#include <string.h>

static void check_parameter(ptx_parser *p, const ptx_function *function, const ptx_variable *variable,
                            bool is_open, bool is_prototype)
{
    const unsigned line = variable->line;
    const bool is_register = variable->space == PTX_SPACE_REG, is_opaque = variable->type >= PTX_TEXREF;
    if (variable->is_pointer && !function->is_entry && !is_prototype)
        kr__ptx_error(p, line, "Illegal placement of kernel parameter attribute");
    if (is_opaque && !is_register && !function->is_entry)
        kr__ptx_error(p, line, "Variable '%s' cannot be allocated in .param state space", variable->name);
    if (is_register && function->is_entry)
        kr__ptx_error(p, line, "Entry parameter '%s' must have .param state space", variable->name);
    else if (is_register && variable->is_array)
        kr__ptx_error(p, line, "Variable '%s' cannot be allocated into a register", variable->name);
    else if (is_register && (variable->vector || variable->type == PTX_PRED))
        kr__ptx_unsupported(p, line, "Parameter '%s' in a vector register or a predicate is not supported",
                            variable->name);
    else if (!is_register && !function->is_entry && p->module->sm < 20)
        kr__ptx_error(p, line, "Function parameter '%s' has illegal state space", variable->name);
    if (is_open)
        kr__ptx_has(p, line, "Unsized Array Parameter", 60, 30);
    if (is_open && function->is_entry)
        kr__ptx_error(p, line, "Parameter to entry function cannot be an incomplete array.");
}

static bool parameter(ptx_parser *p, ptx_function *function, bool is_last_open, bool declare,
                      ptx_variable **ret)
{
    ptx_declaration of = {.space = kr__ptx_space_at(p)};
    const unsigned line = p->token.line;
    if (is_last_open)
        kr__ptx_error(p, line, "Only the last input parameter can be an incomplete array.");
    if (of.space != PTX_SPACE_PARAM && of.space != PTX_SPACE_REG) {
        kr__ptx_syntax_error(p);
        return false;
    }
    kr__ptx_advance(p);
    ptx_text text;
    ptx_shape array;
    if (!kr__ptx_qualifiers(p, &of) || !kr__ptx_pointer(p, &of) || !kr__ptx_expect_word(p, &text))
        return false;
    ptx_variable *variable = kr__ptx_new_variable(p, &of, text, line);
    if (!variable || !kr__ptx_dimensions(p, variable, &array))
        return false;
    variable->is_parameter = true;
    if (array.is_open)
        variable->bytes = 0;
    kr__ptx_check_type(p, &of, text, line);
    check_parameter(p, function, variable, array.is_open || (variable->is_array && !variable->bytes),
                    !declare);
    const bool is_nameless = !strcmp(variable->name, "_");
    if (declare && is_nameless && !function->is_entry)
        kr__ptx_error(p, line, "Illegal parameter name '_'");
    if (declare && !is_nameless) {
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
    for (i = 0; returns && n > 1 && i < n; i++)
        if (list[i]->space == PTX_SPACE_PARAM) {
            kr__ptx_error(p, list[i]->line, "Multiple return parameters require .register state space");
            break;
        }
    if (returns && n > 1)
        kr__ptx_unsupported(p, p->token.line, "Multiple return parameters are not supported");
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

/* One to `most` numbers, those left out 1. */
static bool numbers(ptx_parser *p, const char *name, unsigned to[3], size_t most)
{
    to[0] = to[1] = to[2] = 1;
    for (size_t i = 0; i < most; i++) {
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

/* .noreturn, if it stands here. */
bool kr__ptx_noreturn(ptx_parser *p, ptx_function *function)
{
    const unsigned line = p->token.line;
    if (!kr__ptx_accept_dotted(p, ".noreturn"))
        return false;
    function->noreturn = true;
    kr__ptx_has(p, line, ".noreturn", 64, 30);
    if (function->n_returns)
        kr__ptx_error(p, line, "Invalid directive '.noreturn' for function '%s'", function->name);
    return true;
}

static bool directives(ptx_parser *p, ptx_function *function)
{
    unsigned minimum[3] = {0}, maxnreg[3] = {0}, rank[3] = {0};
    const struct {
        const char *text;
        unsigned *to;
        uint8_t most, isa, sm; /* numbers; since when */
    } words[] = {
        {".maxntid", function->maxntid, 3, 0, 0},
        {".reqntid", function->reqntid, 3, 0, 0},
        {".reqnctapercluster", function->reqnctapercluster, 3, 78, 90},
        {".minnctapersm", minimum, 1, 0, 0},
        {".maxnreg", maxnreg, 1, 0, 0},
        {".maxclusterrank", rank, 1, 78, 90},
        {".explicitcluster", NULL, 0, 78, 90},
        {".blocksareclusters", NULL, 0, 90, 90},
    };
    ptx_mark **last = &function->pragmas;
    while (p->token.kind == PTX_TOKEN_DOTTED) {
        size_t i = 0;
        while (i < KR_COUNT(words) && !kr__ptx_at_dotted(p, words[i].text))
            i++;
        if (i < KR_COUNT(words) && function->is_entry) {
            kr__ptx_has(p, p->token.line, words[i].text, words[i].isa, words[i].sm);
            kr__ptx_advance(p);
            if (words[i].to && !numbers(p, words[i].text, words[i].to, words[i].most))
                return false;
            function->explicitcluster |= !strcmp(words[i].text, ".explicitcluster");
            function->blocksareclusters |= !strcmp(words[i].text, ".blocksareclusters");
        } else if (kr__ptx_at_dotted(p, ".pragma")) {
            p->is_head = true;
            last = kr__ptx_pragma(p, last);
            p->is_head = false;
        } else if (function->is_entry || !kr__ptx_noreturn(p, function)) {
            break;
        }
    }
    function->minnctapersm = minimum[0];
    function->maxnreg = maxnreg[0];
    function->maxclusterrank = rank[0];
    if (function->maxntid[0] && function->reqntid[0])
        conflict(p, ".maxntid", ".reqntid");
    if (function->reqnctapercluster[0] && rank[0])
        conflict(p, ".reqnctapercluster", ".maxclusterrank");
    if (function->blocksareclusters && !(function->reqntid[0] && function->reqnctapercluster[0]))
        kr__ptx_error(
            p, p->token.line,
            ".reqntid and .reqnctapercluster directive(s) required for directive '.blocksareclusters'");
    return !p->stopped;
}

/* What differs between two parameters of two prototypes, or NULL. */
static const char *difference(const ptx_variable *one, const ptx_variable *other)
{
    const bool same = one->type == other->type && one->bytes == other->bytes;
    return one->space != other->space ? "state space differ" : same ? NULL : "types differ";
}

/* Of two prototypes: what differs in their parameters, a message each. */
static size_t differences(const ptx_function *one, const ptx_function *other, char texts[2][64])
{
    const struct {
        ptx_variable *const *one, *const *other;
        size_t n, m;
        const char *text;
    } lists[] = {{one->returns, other->returns, one->n_returns, other->n_returns, "return parameter"},
                 {one->params, other->params, one->n_params, other->n_params, "parameter"}};
    size_t n = 0;
    for (size_t i = 0; i < KR_COUNT(lists); i++) {
        const char *found = NULL;
        for (size_t k = 0; k < lists[i].n && lists[i].n == lists[i].m && !found; k++)
            found = difference(lists[i].one[k], lists[i].other[k]);
        if (lists[i].n != lists[i].m)
            kr__format(texts[n++], sizeof texts[0], "number of %ss differ", lists[i].text);
        else if (found)
            kr__format(texts[n++], sizeof texts[0], "%s %s", lists[i].text, found);
    }
    return n;
}

static void check_prototypes(ptx_parser *p, const ptx_function *known, const ptx_function *again)
{
    char texts[2][64];
    const size_t n = differences(known, again, texts);
    for (size_t i = 0; i < n; i++)
        kr__ptx_error(p, again->line, "Inconsistent prototypes of '%s', %s", known->name, texts[i]);
}

/* In one text a function's linkage is said once; at a definition it may be left out. */
static void check_linkage(ptx_parser *p, const ptx_function *known, const ptx_function *again)
{
    const bool is_same =
        known->linkage == again->linkage || (known->linkage != PTX_LINK_EXTERN && !again->linkage);
    if (!p->linked && !is_same)
        kr__ptx_error(p, again->line, "Inconsistent redefinition of variable '%s'", known->name);
    for (size_t i = 0; i < KR_COUNT(known->uuid) && known->is_unified; i++)
        if (known->uuid[i] != again->uuid[i])
            kr__ptx_error(
                p, again->line,
                "Mismatch between declaration and definition of function '%s', unified identifier-%zu "
                "differ",
                known->name, i + 1);
}

/* The function object of a name: a definition fills that of its declarations, which calls already point to.
 */
static ptx_function *function_named(ptx_parser *p, ptx_text text, unsigned line, const ptx_function *as)
{
    ptx_name *name = kr__ptx_module_name(p, text, as->linkage);
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
    if (!p->linked || !kr__ptx_may_meet(p, known->linkage, head->linkage)) {
        kr__ptx_error(p, head->line, "Duplicate definition of function '%s'", known->name);
        return known;
    }
    if (kr__ptx_strength(head->linkage) <= kr__ptx_strength(known->linkage))
        to = kr__ptx_new(p, sizeof *to);
    if (to)
        *to = *head;
    return to;
}

static void body_or_end(ptx_parser *p, ptx_function *function, const ptx_function *head, bool was_defined)
{
    if (kr__ptx_accept(p, ';')) {
        if (was_defined && !p->linked && !function->aliased)
            kr__ptx_error(p, head->line, "Duplicate definition of function '%s'", head->name);
        return;
    }
    if (!kr__ptx_expect(p, '{'))
        return;
    if (head->linkage == PTX_LINK_EXTERN)
        kr__ptx_error(p, head->line,
                      "Function definition conflicts with '.extern' declaration for function '%s'",
                      head->name);
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

/* .attribute(.unified(1, 2)), if it stands here. */
static bool unified(ptx_parser *p, ptx_function *function)
{
    ptx_declaration of = {0};
    if (!kr__ptx_accept_dotted(p, ".attribute"))
        return true;
    if (!kr__ptx_attributes(p, false, &of))
        return false;
    function->is_unified = of.is_unified;
    memcpy(function->uuid, of.uuid, sizeof function->uuid);
    return true;
}

void kr__ptx_function(ptx_parser *p, ptx_linkage linkage)
{
    ptx_function head = {.is_entry = kr__ptx_at_dotted(p, ".entry"), .linkage = linkage};
    if (head.is_entry && linkage == PTX_LINK_COMMON)
        kr__ptx_syntax_error(p);
    kr__ptx_advance(p);
    if (!head.is_entry && !unified(p, &head))
        return;
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
    head.name = known->name;
    if (!directives(p, &head))
        return;
    head.next = known->next;
    if (known->is_unified && !head.is_unified) {
        head.is_unified = true;
        memcpy(head.uuid, known->uuid, sizeof head.uuid);
    }
    if (known->is_declared) {
        check_linkage(p, known, &head);
        check_prototypes(p, known, &head);
    }
    head.is_declared = true;
    head.aliased = known->aliased;
    const bool was_defined = known->has_body || known->aliased;
    if (!was_defined)
        *known = head;
    body_or_end(p, known, &head, was_defined);
    p->block = module;
    p->depth--;
}

/* ---- .alias ---- */

/* A function that .alias names, or NULL: reported. */
static ptx_function *alias_part(ptx_parser *p, ptx_text text, unsigned line)
{
    const ptx_name *name = kr__ptx_lookup(p, text);
    ptx_function *function = name && name->kind == PTX_NAME_FUNCTION ? name->thing : NULL;
    if (!name)
        kr__ptx_error(p, line, "Unknown symbol '%.*s'", (int)text.bytes, text.at);
    else if (!function)
        kr__ptx_error(p, line, "Cannot define alias to variable object '%.*s'", (int)text.bytes, text.at);
    else if (function->is_entry)
        kr__ptx_error(p, line, "Cannot define alias to entry function '%s'", function->name);
    return function && !function->is_entry ? function : NULL;
}

/* May `function` be another name of `to`? */
static bool check_alias(ptx_parser *p, unsigned line, const ptx_function *function, const ptx_function *to)
{
    const bool is_extern = to->linkage == PTX_LINK_EXTERN;
    char texts[2][64];
    const size_t n = differences(function, to, texts);
    if (function == to)
        kr__ptx_error(p, line, "Cannot alias a function to itself");
    else if (function->aliased)
        kr__ptx_error(p, line, "'%s' is already aliased to '%s' and cannot be redefined", function->name,
                      function->aliased->name);
    else if (function->has_body)
        kr__ptx_error(p, line, "Illegal redefinition of function '%s' as alias", function->name);
    else if (is_extern || to->linkage == PTX_LINK_WEAK)
        kr__ptx_error(p, line, "Function '%s' with %s scope cannot be aliased", to->name,
                      is_extern ? ".extern" : ".weak");
    else if (to->aliased)
        kr__ptx_unsupported(p, line, "An alias of '%s', which is one itself, is not supported", to->name);
    else if (n || function->noreturn != to->noreturn)
        kr__ptx_error(p, line, "Mismatch in prototype of alias '%s' and aliasee '%s'. %s(s)", function->name,
                      to->name, n ? texts[0] : ".noreturn directive differ");
    else
        return true;
    return false;
}

/* .alias name, function; */
void kr__ptx_alias(ptx_parser *p)
{
    const unsigned line = p->token.line;
    ptx_text name, to;
    kr__ptx_advance(p);
    if (!kr__ptx_expect_word(p, &name) || !kr__ptx_expect(p, ',') || !kr__ptx_expect_word(p, &to) ||
        !kr__ptx_expect(p, ';'))
        return;
    kr__ptx_has(p, line, ".alias", 63, 30);
    ptx_function *function = alias_part(p, name, line), *aliased = alias_part(p, to, line);
    if (!function || !aliased || !check_alias(p, line, function, aliased))
        return;
    function->aliased = aliased;
}
