/* SPDX-License-Identifier: Apache-2.0 */
#include "ptx/front/front.h"

#include <stdlib.h>
#include <string.h>

/* Function bodies: blocks, labels, instructions and their operands. */

/* Room for one more; NULL: stopped. */
static void *grow(ptx_parser *p, void *items, size_t n, size_t *capacity, size_t bytes)
{
    if (n < *capacity)
        return items;
    const size_t more = *capacity ? *capacity * 2 : 256;
    void *memory = realloc(items, more * bytes);
    if (!memory) {
        kr__ptx_no_memory(p);
        return NULL;
    }
    *capacity = more;
    return memory;
}

static ptx_register *new_register(ptx_parser *p, ptx_text name, ptx_type type)
{
    if (!p->function) {
        kr__ptx_unsupported(p, p->token.line, "Registers outside a function are not supported");
        return NULL;
    }
    ptx_register **list = grow(p, p->registers, p->n_registers, &p->register_capacity, sizeof *list);
    if (!list)
        return NULL;
    p->registers = list;
    ptx_register *reg = kr__ptx_new(p, sizeof *reg);
    char *copy = reg ? kr__arena_text(&p->module->arena, name.at, name.bytes) : NULL;
    if (!copy)
        return NULL;
    *reg = (ptx_register){.name = copy, .type = type, .index = (unsigned)p->n_registers};
    list[p->n_registers++] = reg;
    return reg;
}

static ptx_operand *new_vector(ptx_parser *p, ptx_text name, ptx_type type, unsigned n)
{
    ptx_operand *vector = kr__ptx_new(p, (1 + n) * sizeof *vector), *elements = vector + 1;
    char *text = vector ? kr__ptx_new(p, name.bytes + 2) : NULL;
    if (!text)
        return NULL;
    memcpy(text, name.at, name.bytes);
    text[name.bytes] = '$';
    for (unsigned i = 0; i < n; i++) {
        text[name.bytes + 1] = "xyzw"[i];
        elements[i] = (ptx_operand){.kind = PTX_OPERAND_REGISTER,
                                    .reg = new_register(p, (ptx_text){text, name.bytes + 2}, type)};
        if (!elements[i].reg)
            return NULL;
    }
    *vector = (ptx_operand){.kind = PTX_OPERAND_VECTOR, .elements = elements, .n_elements = (uint16_t)n};
    return vector;
}

void kr__ptx_make_register(ptx_parser *p, ptx_name *name, ptx_type type, unsigned vector)
{
    name->kind = vector ? PTX_NAME_VECTOR : PTX_NAME_REGISTER;
    if (vector)
        name->thing = new_vector(p, name->text, type, vector);
    else
        name->thing = new_register(p, name->text, type);
}

/* ---- labels ---- */

static void label(ptx_parser *p, ptx_text text, unsigned line)
{
    ptx_name *name = kr__ptx_declare(p, text, line, PTX_NAME_LABEL);
    ptx_label *list = name ? grow(p, p->labels, p->n_labels, &p->label_capacity, sizeof *list) : NULL;
    if (!list)
        return;
    p->labels = list;
    name->index = (uint32_t)p->n_labels;
    char *copy = kr__arena_text(&p->module->arena, text.at, text.bytes);
    if (!copy)
        kr__ptx_no_memory(p);
    list[p->n_labels++] = (ptx_label){.name = copy, .target = (uint32_t)p->n_instrs, .line = line};
}

static void refer(ptx_parser *p, const ptx_pending *to)
{
    ptx_pending *pending = kr__ptx_new(p, sizeof *pending);
    if (!pending)
        return;
    *pending = *to;
    pending->next = p->block->pending;
    p->block->pending = pending;
}

static int by_place(const void *left, const void *right)
{
    const ptx_pending *a = *(ptx_pending *const *)left, *b = *(ptx_pending *const *)right;
    return a->name.at < b->name.at ? -1 : a->name.at > b->name.at;
}

static void report_unknown(ptx_parser *p, ptx_pending *list)
{
    size_t n = 0;
    for (const ptx_pending *pending = list; pending; pending = pending->next)
        n++;
    ptx_pending **sorted = n ? kr__ptx_new(p, n * sizeof *sorted) : NULL;
    if (!sorted)
        return;
    n = 0;
    for (ptx_pending *pending = list; pending; pending = pending->next)
        sorted[n++] = pending;
    qsort(sorted, n, sizeof *sorted, by_place);
    for (size_t i = 0; i < n; i++)
        kr__ptx_error(p, sorted[i]->line, "Unknown symbol '%.*s'", (int)sorted[i]->name.bytes,
                      sorted[i]->name.at);
}

/* An instruction that was wrong is not there; another may stand in its place. */
static void set_label(ptx_parser *p, const ptx_pending *pending, uint32_t label)
{
    if (pending->target)
        *pending->target = label;
    else if (pending->instr < p->n_instrs && pending->operand < p->instrs[pending->instr].n_operands)
        p->instrs[pending->instr].operands[pending->operand].label = label;
}

/* Labels that this block declares are found now; the other names are for the block around it. The last block
 * is the function's own, which function() leaves. */
static void pop_block(ptx_parser *p, bool is_last)
{
    ptx_block *block = p->block, *outer = block->outer;
    ptx_pending *left = is_last ? NULL : outer->pending;
    for (ptx_pending *pending = block->pending, *next; pending; pending = next) {
        next = pending->next;
        const ptx_name *name =
            pending->is_label ? kr__ptx_find_name(&block->names, pending->name, kr__ptx_hash(pending->name))
                              : NULL;
        if (name && name->kind == PTX_NAME_LABEL) {
            set_label(p, pending, name->index);
        } else {
            pending->next = left;
            left = pending;
        }
    }
    if (is_last) {
        report_unknown(p, left);
        return;
    }
    outer->pending = left;
    p->block = outer;
    p->depth--;
}

/* ---- operands ---- */

static bool operand(ptx_parser *p, ptx_instr *instr, uint32_t index, ptx_operand *to);

static bool constant(ptx_parser *p, ptx_operand *to)
{
    ptx_constant value;
    if (!kr__ptx_constant(p, &value))
        return false;
    to->kind = PTX_OPERAND_IMMEDIATE;
    to->bits = value.bits;
    to->is_float = value.is_float;
    to->float_bytes = value.float_bytes;
    return true;
}

/* `+ 4` after a name. [%rd1+-4] and [%rd1+4] are written; [%rd1-4] is not PTX. */
static bool offset(ptx_parser *p, int64_t *ret)
{
    *ret = 0;
    return !kr__ptx_accept(p, '+') || kr__ptx_integer(p, ret);
}

/* Said at the end of the function, as the assembler does. */
static void unknown_symbol(ptx_parser *p, ptx_text text, unsigned line)
{
    refer(p, &(ptx_pending){.name = text, .line = line});
    p->unknown = true;
}

static bool is_between(ptx_text text, const char *begins, const char *ends)
{
    const size_t n = strlen(begins), m = strlen(ends);
    return text.bytes >= n + m && !memcmp(text.at, begins, n) && !memcmp(text.at + text.bytes - m, ends, m);
}

/* Since when there are the younger special registers. */
static void check_special(ptx_parser *p, ptx_text text, unsigned line)
{
    static const struct {
        const char *begins, *ends;
        uint8_t isa, sm;
    } rows[] = {{"%cluster", "", 78, 90},
                {"%ncluster", "", 78, 90},
                {"%is_explicit_cluster", "", 78, 90},
                {"%aggr_smem_size", "", 81, 90},
                {"%current_graph", "", 80, 50},
                {"%reserved_smem", "", 76, 80},
                {"%clock_hi", "", 50, 20},
                {"%pm", "", 13, 10},
                {"%pm", "4", 30, 20},
                {"%pm", "5", 30, 20},
                {"%pm", "6", 30, 20},
                {"%pm", "7", 30, 20},
                {"%pm", "_64", 40, 50}};
    for (size_t i = 0; i < KR_COUNT(rows); i++)
        if (is_between(text, rows[i].begins, rows[i].ends)) {
            char name[40];
            kr__format(name, sizeof name, "%.*s", (int)text.bytes, text.at);
            kr__ptx_has(p, line, name, rows[i].isa, rows[i].sm);
        }
}

static bool is_video(ptx_op op)
{
    return op >= PTX_OP_VADD && op <= PTX_OP_VSET4;
}

/* The current token, right after a register: ".h1". */
static bool selector(ptx_parser *p, ptx_selector *to)
{
    const ptx_text text = p->token.text;
    to->unit = text.at[1];
    for (size_t i = 2; i < text.bytes && to->n < KR_COUNT(to->at); i++)
        to->at[to->n++] = (uint8_t)(text.at[i] - '0');
    const unsigned most = to->unit == 'b' ? 8 : 4;
    bool ok = (to->unit == 'b' || to->unit == 'h') && to->n && to->n + 2u == text.bytes;
    for (size_t i = 0; i < to->n; i++)
        ok = ok && to->at[i] < most;
    if (!ok)
        kr__ptx_syntax_error(p);
    kr__ptx_advance(p);
    return ok;
}

/* A name as an operand. */
static bool named(ptx_parser *p, const ptx_instr *instr, uint32_t index, ptx_operand *to)
{
    const unsigned line = p->token.line;
    const ptx_text text = p->token.text;
    const ptx_name *name = kr__ptx_lookup(p, text);
    kr__ptx_advance(p);
    if (!name)
        name = kr__ptx_find_name(&p->words->names, text, kr__ptx_hash(text));
    switch (name ? name->kind : PTX_NAME_FREE) {
    case PTX_NAME_REGISTER:
        to->kind = PTX_OPERAND_REGISTER;
        to->reg = name->thing;
        if (to->reg && is_video(instr->op) && p->token.kind == PTX_TOKEN_DOTTED)
            return selector(p, &to->selector);
        return to->reg;
    case PTX_NAME_VECTOR:
        if (name->thing)
            *to = *(const ptx_operand *)name->thing;
        if (name->thing && to->elements->kind == PTX_OPERAND_SPECIAL)
            check_special(p, text, line);
        return name->thing;
    case PTX_NAME_SPECIAL:
        to->kind = PTX_OPERAND_SPECIAL;
        to->special = (ptx_special)name->index;
        check_special(p, text, line);
        return true;
    case PTX_NAME_VARIABLE:
        to->kind = PTX_OPERAND_SYMBOL;
        to->variable = name->thing;
        return offset(p, &to->offset);
    case PTX_NAME_FUNCTION:
        to->kind = PTX_OPERAND_SYMBOL;
        to->function = name->thing;
        return offset(p, &to->offset);
    case PTX_NAME_LABEL:
        to->kind = PTX_OPERAND_LABEL;
        to->label = name->index;
        return true;
    case PTX_NAME_TARGETS:
    case PTX_NAME_PROTOTYPE:
        return true; /* an operand of no kind: wrong everywhere but in brx.idx and call */
    default:
        break;
    }
    if (instr->op == PTX_OP_BRA) {
        to->kind = PTX_OPERAND_LABEL;
        refer(p, &(ptx_pending){.name = text,
                                .line = line,
                                .is_label = true,
                                .instr = (uint32_t)p->n_instrs,
                                .operand = index});
        return !p->stopped;
    }
    unknown_symbol(p, text, line);
    return true;
}

/* The current token, after a vector register: ".y", or ".g" as of a colour. */
static bool component(ptx_parser *p, ptx_operand *to)
{
    static const char letters[] = "xyzwrgba";
    const ptx_text text = p->token.text;
    const char *at = text.bytes > 1 ? strchr(letters, text.at[1]) : NULL;
    const size_t i = at ? (size_t)(at - letters) % 4 : 0;
    if (!at)
        kr__ptx_error(p, p->token.line, "Unknown vector selector: '%.*s'", (int)text.bytes - 1, text.at + 1);
    else if (text.bytes > 2)
        kr__ptx_error(p, p->token.line, "Unimplemented feature: vector swizzle");
    else if (i >= to->n_elements)
        kr__ptx_unsupported(p, p->token.line, "Component '%.*s' of a vector of %u is not supported",
                            (int)text.bytes, text.at, to->n_elements);
    const ptx_operand chosen = to->elements[i < to->n_elements ? i : 0];
    *to = chosen;
    kr__ptx_advance(p);
    return !p->stopped;
}

/* What stands in an address after its base: [texture, sampler, {x, y}] */
static bool more_of_address(ptx_parser *p, ptx_instr *instr, ptx_operand *to)
{
    enum { MOST = 2 };
    ptx_operand *more = kr__ptx_new(p, MOST * sizeof *more);
    if (!more)
        return false;
    to->elements = more;
    while (kr__ptx_accept(p, ',')) {
        ptx_operand excess = {0};
        const bool fits = to->n_elements < MOST;
        p->too_many |= !fits;
        if (!operand(p, instr, 0, fits ? &more[to->n_elements] : &excess))
            return false;
        to->n_elements += fits;
    }
    return true;
}

/* [reg+4], [variable+4], [16] */
static bool address(ptx_parser *p, ptx_instr *instr, ptx_operand *to)
{
    ptx_operand base = {0};
    if (!kr__ptx_enter(p))
        return false;
    if (p->token.kind == PTX_TOKEN_WORD) {
        const bool before = p->unknown;
        p->unknown = false;
        if (!named(p, instr, 0, &base))
            return false;
        p->unknown_address |= p->unknown;
        p->unknown = before;
        if (base.kind == PTX_OPERAND_REGISTER && !offset(p, &base.offset))
            return false;
    } else {
        if (!kr__ptx_integer(p, &base.offset))
            return false;
        base.kind = PTX_OPERAND_ADDRESS;
    }
    if (kr__ptx_is_mark(&p->token, ',')) {
        if (base.offset) {
            kr__ptx_syntax_error(p);
            return false;
        }
        if (!more_of_address(p, instr, &base))
            return false;
    }
    p->depth--;
    *to = base;
    const bool is_base = base.kind == PTX_OPERAND_REGISTER || base.kind == PTX_OPERAND_SYMBOL;
    to->kind = is_base || base.kind == PTX_OPERAND_ADDRESS ? PTX_OPERAND_ADDRESS : PTX_OPERAND_NONE;
    return kr__ptx_expect(p, ']');
}

static bool list_of(ptx_parser *p, ptx_instr *instr, int end, ptx_operand *to)
{
    enum { MOST = 256 };
    ptx_operand *elements = NULL;
    size_t n = 0, capacity = 0;
    bool ok = kr__ptx_enter(p);
    if (ok && (end == '}' || !kr__ptx_is_mark(&p->token, end)))
        do {
            if (n == capacity) {
                const size_t more = capacity ? capacity * 4 : 4;
                ptx_operand *copy = n < MOST ? kr__ptx_new(p, more * sizeof *copy) : NULL;
                if (!copy) {
                    kr__ptx_syntax_error(p);
                    return false;
                }
                if (n)
                    memcpy(copy, elements, n * sizeof *copy);
                elements = copy;
                capacity = more;
            }
            ok = operand(p, instr, 0, &elements[n++]);
        } while (ok && kr__ptx_accept(p, ','));
    p->depth--;
    to->kind = PTX_OPERAND_VECTOR;
    to->elements = elements;
    to->n_elements = (uint16_t)n;
    return ok && kr__ptx_expect(p, end);
}

/* p|q: makes a vector of the two */
static bool pair(ptx_parser *p, ptx_instr *instr, ptx_operand *to)
{
    ptx_operand *both = kr__ptx_new(p, 2 * sizeof *both);
    if (!both || !kr__ptx_enter(p))
        return false;
    both[0] = *to;
    if (!operand(p, instr, 0, &both[1]))
        return false;
    p->depth--;
    *to = (ptx_operand){.kind = PTX_OPERAND_VECTOR, .is_pair = true, .elements = both, .n_elements = 2};
    return true;
}

static bool operand(ptx_parser *p, ptx_instr *instr, uint32_t index, ptx_operand *to)
{
    if (kr__ptx_accept(p, '['))
        return address(p, instr, to);
    if (kr__ptx_accept(p, '{'))
        return list_of(p, instr, '}', to) && (!kr__ptx_accept(p, '|') || pair(p, instr, to));
    if (kr__ptx_is_mark(&p->token, '!')) { /* !%p, or the constant !5 */
        ptx_lexer ahead = p->lexer;
        ptx_token after;
        kr__ptx_next_token(&ahead, &after);
        if (after.kind == PTX_TOKEN_WORD) {
            kr__ptx_advance(p);
            to->negated = true;
        }
    }
    if (instr->op == PTX_OP_VMAD && kr__ptx_is_mark(&p->token, '-')) {
        ptx_lexer ahead = p->lexer;
        ptx_token after;
        kr__ptx_next_token(&ahead, &after);
        if (after.kind == PTX_TOKEN_WORD) {
            kr__ptx_advance(p);
            to->negated = true;
        }
    }
    if (p->token.kind != PTX_TOKEN_WORD || kr__ptx_is_word(&p->token, PTX_TEXT("WARP_SZ")))
        return constant(p, to);
    if (kr__ptx_is_word(&p->token, PTX_TEXT("_"))) {
        to->kind = PTX_OPERAND_SINK;
        kr__ptx_advance(p);
    } else if (!named(p, instr, index, to)) {
        return false;
    }
    if (to->kind == PTX_OPERAND_VECTOR && p->token.kind == PTX_TOKEN_DOTTED && !component(p, to))
        return false;
    return !kr__ptx_accept(p, '|') || pair(p, instr, to);
}

static bool operands(ptx_parser *p, ptx_instr *instr)
{
    if (kr__ptx_is_mark(&p->token, ';'))
        return true;
    do {
        ptx_operand excess = {0};
        const bool fits = instr->n_operands < PTX_MAX_OPERANDS;
        p->too_many |= !fits;
        if (!operand(p, instr, instr->n_operands, fits ? &instr->operands[instr->n_operands] : &excess))
            return false;
        instr->n_operands += fits;
    } while (kr__ptx_accept(p, ','));
    return true;
}

/* ---- call ---- */

static bool argument_list(ptx_parser *p, ptx_instr *instr, const ptx_operand **ret_list, uint8_t *ret_n)
{
    ptx_operand list = {0};
    if (!list_of(p, instr, ')', &list))
        return false;
    *ret_list = list.elements;
    *ret_n = (uint8_t)list.n_elements;
    return list.n_elements <= UINT8_MAX;
}

static bool callee(ptx_parser *p, ptx_instr *instr)
{
    const unsigned line = p->token.line;
    ptx_text text;
    if (!kr__ptx_expect_word(p, &text))
        return false;
    const ptx_name *name = kr__ptx_lookup(p, text);
    if (name && name->kind == PTX_NAME_FUNCTION) {
        instr->callee = name->thing;
        if (instr->callee->is_entry)
            kr__ptx_error(p, line, "Illegal call target, device function expected");
    } else if (name && name->kind == PTX_NAME_REGISTER) {
        const ptx_register *reg = name->thing;
        instr->operands[0] = (ptx_operand){.kind = PTX_OPERAND_REGISTER, .reg = reg};
        instr->n_operands = 1;
        if (reg && !kr__ptx_agrees(reg->type, PTX_U32) && !kr__ptx_agrees(reg->type, PTX_U64))
            kr__ptx_error(p, line, "Illegal target for instruction 'call'");
    } else {
        kr__ptx_error(p, line, "Call to '%.*s' requires call prototype", (int)text.bytes, text.at);
        unknown_symbol(p, text, line);
    }
    return true;
}

static bool prototype(ptx_parser *p, ptx_instr *instr)
{
    const unsigned line = p->token.line;
    ptx_text text;
    if (!kr__ptx_expect_word(p, &text))
        return false;
    const ptx_name *name = kr__ptx_lookup(p, text);
    if (name && name->kind == PTX_NAME_PROTOTYPE)
        instr->prototype = name->thing;
    else
        unknown_symbol(p, text, line);
    return true;
}

static bool matches(const ptx_operand *actual, const ptx_variable *formal, bool is_return)
{
    const bool is_float = formal->type >= PTX_F16 && formal->type <= PTX_F64;
    const bool is_bits = formal->type >= PTX_B8 && formal->type <= PTX_B128;
    if (actual->kind == PTX_OPERAND_SINK)
        return is_return;
    if (actual->kind == PTX_OPERAND_IMMEDIATE)
        return !formal->is_array && !is_return && (is_bits || actual->is_float == is_float);
    if (actual->kind == PTX_OPERAND_REGISTER)
        return !formal->is_array && kr__ptx_type_bytes(actual->reg->type) == formal->bytes;
    return actual->kind == PTX_OPERAND_SYMBOL && actual->variable &&
           (actual->variable->bytes == formal->bytes || !formal->bytes);
}

static bool check_list(ptx_parser *p, const ptx_instr *instr, const ptx_operand *actual, size_t n_actual,
                       ptx_variable *const *formal, size_t n_formal)
{
    const bool is_open = n_formal && !formal[n_formal - 1]->bytes;
    if (n_actual != n_formal && !(is_open && n_actual + 1 == n_formal)) {
        kr__ptx_error(p, instr->line, "Call has wrong number of parameters");
        return false;
    }
    for (size_t i = 0; i < n_actual; i++)
        if (!matches(&actual[i], formal[i], actual == instr->returns))
            kr__ptx_error(p, instr->line, "Type of argument does not match formal parameter '%s'",
                          formal[i]->name);
        else if (actual[i].kind == PTX_OPERAND_IMMEDIATE && !actual[i].is_float && formal[i]->bytes < 4 &&
                 formal[i]->type > PTX_B128)
            kr__ptx_error(
                p, instr->line,
                "In ABI compilation, passing predicate, 8-bit and 16-bit parameters to device functions "
                "is not supported");
    return true;
}

static bool call(ptx_parser *p, ptx_instr *instr)
{
    if (kr__ptx_accept(p, '(') &&
        (!argument_list(p, instr, &instr->returns, &instr->n_returns) || !kr__ptx_expect(p, ',')))
        return false;
    if (!callee(p, instr))
        return false;
    if (kr__ptx_accept(p, ',')) {
        if (kr__ptx_accept(p, '(')) {
            if (!argument_list(p, instr, &instr->arguments, &instr->n_arguments))
                return false;
            if (kr__ptx_accept(p, ',') && !prototype(p, instr))
                return false;
        } else if (!prototype(p, instr)) {
            return false;
        }
    }
    const ptx_function *function = instr->callee ? instr->callee : instr->prototype;
    if (!function && !p->unknown)
        kr__ptx_error(p, instr->line, "Call to '%s' requires call prototype",
                      instr->n_operands ? instr->operands[0].reg->name : "");
    if (function && !p->unknown &&
        check_list(p, instr, instr->returns, instr->n_returns, function->returns, function->n_returns))
        check_list(p, instr, instr->arguments, instr->n_arguments, function->params, function->n_params);
    return true;
}

/* ---- instructions ---- */

/* The longest opcode that `word` and the dotted words after it make: "cp.async.wait_group" before "cp.async".
 */
static const ptx_name *opcode(ptx_parser *p, ptx_text name)
{
    enum { LONGEST = 80 }; /* of opcodes: what is behind it is looked at no further */
    name.bytes = name.bytes < LONGEST ? name.bytes : LONGEST;
    for (;;) {
        const ptx_name *found = kr__ptx_find_name(&p->words->names, name, kr__ptx_hash(name));
        if (found && found->kind == PTX_NAME_OPCODE)
            return found;
        size_t n = name.bytes;
        while (n && name.at[n - 1] != '.')
            n--;
        if (!n)
            return NULL;
        name.bytes = n - 1;
    }
}

/* `add .s32` as if nothing stood between, not even a comment. NULL: out of memory, said. */
static const char *closed_up(ptx_parser *p, ptx_text *all)
{
    ptx_lexer lexer = {.at = all->at, .end = all->at + all->bytes};
    ptx_token token;
    char *text = kr__ptx_new(p, all->bytes + 1);
    size_t n = 0;
    for (kr__ptx_next_token(&lexer, &token); text && token.kind != PTX_TOKEN_END;
         kr__ptx_next_token(&lexer, &token)) {
        memcpy(text + n, token.text.at, token.text.bytes);
        n += token.text.bytes;
    }
    *all = (ptx_text){text, n};
    return text;
}

/* The current word and the dotted ones after it. NULL: reported; instr is then not to be checked. */
static ptx_spelling *spelling(ptx_parser *p)
{
    const unsigned line = p->token.line;
    const ptx_text word = p->token.text;
    ptx_text all = word;
    bool is_open = false;
    for (kr__ptx_advance(p); p->token.kind == PTX_TOKEN_DOTTED; kr__ptx_advance(p)) {
        is_open |= all.at + all.bytes != p->token.text.at;
        all.bytes = (size_t)(p->token.text.at + p->token.text.bytes - all.at);
    }
    if (is_open && !closed_up(p, &all))
        return NULL;
    const uint32_t hash = kr__ptx_hash(all);
    const ptx_name *known = kr__ptx_find_name(&p->spellings, all, hash);
    if (known)
        return known->thing;
    ptx_spelling decoded = {0}, *kept;
    const ptx_name *found = opcode(p, all);
    if (!found) {
        const ptx_text words = {all.at + word.bytes, all.bytes - word.bytes};
        kr__ptx_decode_unknown(p, words, line);
        kr__ptx_error(p, line, "Not a name of any known instruction: '%.*s'", (int)word.bytes, word.at);
        return NULL;
    }
    const ptx_text words = {all.at + found->text.bytes, all.bytes - found->text.bytes};
    if (!kr__ptx_decode(p, (ptx_op)found->index, words, line, &decoded))
        return NULL;
    kept = kr__ptx_new(p, sizeof *kept);
    ptx_name *name =
        kept ? kr__ptx_add_name(&p->module->arena, &p->spellings, all, hash, PTX_NAME_SPELLING) : NULL;
    if (!name)
        return NULL;
    *kept = decoded;
    kept->instr.name = kr__arena_text(&p->module->arena, all.at, all.bytes);
    name->thing = kept;
    return kept;
}

static bool guard(ptx_parser *p, const ptx_register **ret, bool *ret_negated)
{
    *ret_negated = kr__ptx_accept(p, '!');
    const unsigned line = p->token.line;
    ptx_text text;
    if (!kr__ptx_expect_word(p, &text))
        return false;
    const ptx_name *name = kr__ptx_lookup(p, text);
    const ptx_register *reg = name && name->kind == PTX_NAME_REGISTER ? name->thing : NULL;
    if (!reg || reg->type != PTX_PRED)
        kr__ptx_error(p, line, "Predicate expression expected");
    if (!name)
        unknown_symbol(p, text, line);
    *ret = reg;
    return true;
}

static void targets_of(ptx_parser *p, ptx_instr *instr)
{
    const unsigned line = p->token.line;
    ptx_text text;
    if (!kr__ptx_expect(p, ',') || !kr__ptx_expect_word(p, &text))
        return;
    const ptx_name *name = kr__ptx_lookup(p, text);
    if (!name || name->kind != PTX_NAME_TARGETS) {
        kr__ptx_error(p, line, "Arguments mismatch for instruction 'brx.idx'");
        unknown_symbol(p, text, line);
        return;
    }
    const ptx_targets *targets = name->thing;
    instr->targets = targets->labels;
    instr->n_targets = targets->n_labels;
}

/* From the parser's into the module. */
static bool keep_operands(ptx_parser *p, ptx_instr *instr)
{
    const size_t n = instr->n_operands > PTX_LEAST_OPERANDS ? instr->n_operands : PTX_LEAST_OPERANDS;
    instr->operands = kr__ptx_new(p, n * sizeof *instr->operands);
    if (instr->operands)
        memcpy(instr->operands, p->operands, instr->n_operands * sizeof *instr->operands);
    return instr->operands;
}

/* @%p opcode operands ; */
static void instruction(ptx_parser *p)
{
    ptx_instr *list = grow(p, p->instrs, p->n_instrs, &p->instr_capacity, sizeof *list);
    if (!list)
        return;
    p->instrs = list;
    ptx_instr *instr = &list[p->n_instrs];
    const ptx_register *predicate = NULL;
    bool negated = false;
    if (kr__ptx_accept(p, '@') && !guard(p, &predicate, &negated))
        return;
    if (p->token.kind != PTX_TOKEN_WORD) {
        kr__ptx_syntax_error(p);
        return;
    }
    const unsigned line = p->token.line;
    const ptx_spelling *name = spelling(p);
    *instr = name ? name->instr : (ptx_instr){0};
    instr->line = line;
    instr->guard = predicate;
    instr->guard_negated = negated;
    instr->loc_file = p->loc_file;
    instr->loc_line = p->loc_line;
    instr->operands = memset(p->operands, 0, sizeof p->operands);
    p->unknown = p->unknown_address = p->too_many = false;
    if (name && instr->op == PTX_OP_CALL) {
        if (!call(p, instr))
            return;
    } else if (name && instr->op == PTX_OP_BRX_IDX) {
        if (!operand(p, instr, 0, &instr->operands[instr->n_operands++]))
            return;
        targets_of(p, instr);
    } else if (!operands(p, instr)) {
        return;
    }
    if (!kr__ptx_expect(p, ';') || !keep_operands(p, instr))
        return;
    p->n_instrs++;
    if (!name)
        return;
    const char *opcode_name = kr__ptx_opcodes[name->row].name;
    if (!p->unknown && !p->unknown_address && !p->too_many)
        kr__ptx_check_instr(p, name, instr);
    else if (!p->unknown && !p->too_many)
        kr__ptx_error(p, line, "Illegal operand type to instruction '%s'", opcode_name);
    else if (instr->op != PTX_OP_CALL && instr->op != PTX_OP_BRX_IDX)
        kr__ptx_error(p, line, "Arguments mismatch for instruction '%s'", opcode_name);
}

/* ---- what may follow a label and is no instruction ---- */

static void branch_targets(ptx_parser *p, ptx_text label_text, unsigned line)
{
    size_t n = 0;
    ptx_lexer lexer = p->lexer;
    ptx_token token = p->token;
    for (; token.kind != PTX_TOKEN_END && !kr__ptx_is_mark(&token, ';'); kr__ptx_next_token(&lexer, &token))
        n += token.kind == PTX_TOKEN_WORD;
    ptx_name *name = kr__ptx_declare(p, label_text, line, PTX_NAME_TARGETS);
    ptx_targets *targets = kr__ptx_new(p, sizeof *targets);
    uint32_t *labels = kr__ptx_new(p, (n ? n : 1) * sizeof *labels);
    if (!targets || !labels)
        return;
    *targets = (ptx_targets){.labels = labels};
    if (name)
        name->thing = targets;
    do {
        const unsigned at = p->token.line;
        ptx_text text;
        if (!kr__ptx_expect_word(p, &text))
            return;
        refer(p, &(ptx_pending){
                     .name = text, .line = at, .is_label = true, .target = &labels[targets->n_labels++]});
    } while (targets->n_labels < n && kr__ptx_accept(p, ','));
    kr__ptx_expect(p, ';');
}

static bool expect_this(ptx_parser *p, const char *word)
{
    const bool is_this = kr__ptx_is_word(&p->token, (ptx_text){word, strlen(word)});
    if (is_this)
        kr__ptx_advance(p);
    else
        kr__ptx_syntax_error(p);
    return is_this;
}

/* .callprototype (.param .b32 _) _ (.param .b64 _) */
static void call_prototype(ptx_parser *p, ptx_text label_text, unsigned line)
{
    ptx_name *name = kr__ptx_declare(p, label_text, line, PTX_NAME_PROTOTYPE);
    ptx_function *function = kr__ptx_new(p, sizeof *function);
    if (!function)
        return;
    function->name = "_";
    function->line = line;
    if (name)
        name->thing = function;
    if (kr__ptx_is_mark(&p->token, '(') && !kr__ptx_parameters(p, function, true, false))
        return;
    if (!expect_this(p, "_"))
        return;
    if (kr__ptx_is_mark(&p->token, '(') && !kr__ptx_parameters(p, function, false, false))
        return;
    kr__ptx_noreturn(p, function);
    kr__ptx_expect(p, ';');
}

/* .calltargets f, g: all have one prototype */
static void call_targets(ptx_parser *p, ptx_text label_text, unsigned line)
{
    ptx_name *name = kr__ptx_declare(p, label_text, line, PTX_NAME_PROTOTYPE);
    size_t n = 0, capacity = 0;
    const ptx_function **targets = NULL;
    do {
        const unsigned at = p->token.line;
        ptx_text text;
        if (!kr__ptx_expect_word(p, &text))
            return;
        const ptx_name *target = kr__ptx_lookup(p, text);
        if (!target || target->kind != PTX_NAME_FUNCTION) {
            unknown_symbol(p, text, at);
            continue;
        }
        if (n == capacity) {
            capacity = capacity ? 4 * capacity : 4;
            const ptx_function **more = kr__ptx_new(p, capacity * sizeof *more);
            if (!more)
                return;
            if (n)
                memcpy(more, targets, n * sizeof *more);
            targets = more;
        }
        targets[n++] = target->thing;
    } while (kr__ptx_accept(p, ','));
    ptx_function *prototype = n ? kr__ptx_new(p, sizeof *prototype) : NULL;
    if (prototype) {
        *prototype = *targets[0];
        prototype->targets = targets;
        prototype->n_targets = n;
    }
    if (name)
        name->thing = prototype;
    if (name && !prototype)
        name->kind = PTX_NAME_LABEL;
    kr__ptx_expect(p, ';');
}

static void labelled(ptx_parser *p)
{
    const ptx_text text = p->token.text;
    const unsigned line = p->token.line;
    kr__ptx_advance(p);
    kr__ptx_advance(p); /* the colon */
    if (kr__ptx_is_word(&p->token, PTX_TEXT(".branchtargets"))) {
        kr__ptx_advance(p);
        branch_targets(p, text, line);
    } else if (kr__ptx_is_word(&p->token, PTX_TEXT(".callprototype"))) {
        kr__ptx_advance(p);
        call_prototype(p, text, line);
    } else if (kr__ptx_is_word(&p->token, PTX_TEXT(".calltargets"))) {
        kr__ptx_advance(p);
        call_targets(p, text, line);
    } else {
        label(p, text, line);
    }
}

static bool place(ptx_parser *p, ptx_place *to)
{
    uint64_t numbers[3];
    for (size_t i = 0; i < KR_COUNT(numbers); i++)
        if (!kr__ptx_number(p, UINT32_MAX, &numbers[i]))
            return false;
    *to = (ptx_place){(uint32_t)numbers[0], (uint32_t)numbers[1], (uint32_t)numbers[2]};
    return true;
}

static ptx_name *find_place(const ptx_parser *p, const ptx_place *at)
{
    const ptx_text key = {(const char *)at, sizeof *at};
    return kr__ptx_find_name(&p->places, key, kr__ptx_hash(key));
}

static void note_place(ptx_parser *p, const ptx_place *at)
{
    ptx_place *copy = find_place(p, at) ? NULL : kr__ptx_new(p, sizeof *copy);
    if (!copy)
        return;
    *copy = *at;
    const ptx_text key = {(const char *)copy, sizeof *copy};
    if (!kr__ptx_add_name(&p->module->arena, &p->places, key, kr__ptx_hash(key), PTX_NAME_LABEL))
        kr__ptx_no_memory(p);
}

/* function_name L + 4, inlined_at 1 2 3: from the first word on; L is a label of a debug section. */
static void inlined_location(ptx_parser *p)
{
    ptx_pending *pending = kr__ptx_new(p, sizeof *pending);
    uint64_t offset;
    ptx_place at;
    if (!pending || !expect_this(p, "function_name"))
        return;
    *pending = (ptx_pending){.line = p->token.line, .next = p->function_names};
    if (!kr__ptx_expect_word(p, &pending->name))
        return;
    p->function_names = pending;
    if (kr__ptx_accept(p, '+') && !kr__ptx_number(p, UINT32_MAX, &offset))
        return;
    if (!kr__ptx_expect(p, ',') || !expect_this(p, "inlined_at"))
        return;
    const unsigned line = p->token.line;
    if (place(p, &at) && !find_place(p, &at))
        kr__ptx_error(
            p, line,
            "Source location %u %u %u used in inlined_at directive must be used in a preceding .loc "
            "directive",
            at.file, at.line, at.column);
}

/* .loc file line column [, function_name ...] */
static void location(ptx_parser *p)
{
    const char *begin = p->token.text.at;
    ptx_place at;
    kr__ptx_advance(p);
    if (!place(p, &at))
        return;
    p->loc_file = at.file;
    p->loc_line = at.line;
    if (kr__ptx_is_mark(&p->token, ',')) {
        kr__ptx_has(p, p->token.line, "Line information of inline functions", 70, 0);
        kr__ptx_advance(p);
        inlined_location(p);
    }
    note_place(p, &at);
    p->last_mark_of_body = kr__ptx_mark(p, begin, p->last_mark_of_body);
}

static bool begins_label(const ptx_parser *p)
{
    ptx_lexer lexer = p->lexer;
    ptx_token token;
    if (p->token.kind != PTX_TOKEN_WORD)
        return false;
    kr__ptx_next_token(&lexer, &token);
    return kr__ptx_is_mark(&token, ':');
}

static void directive(ptx_parser *p)
{
    static const char *const spaces[] = {".reg", ".const", ".global", ".local", ".param", ".shared"};
    if (kr__ptx_is_word(&p->token, PTX_TEXT(".loc"))) {
        location(p);
        return;
    }
    if (kr__ptx_is_word(&p->token, PTX_TEXT(".pragma"))) {
        p->last_mark_of_body = kr__ptx_pragma(p, p->last_mark_of_body);
        return;
    }
    if (kr__ptx_at_dotted(p, ".alias")) {
        kr__ptx_alias(p);
        return;
    }
    for (size_t i = 0; i < KR_COUNT(spaces); i++)
        if (kr__ptx_is_word(&p->token, (ptx_text){spaces[i], strlen(spaces[i])})) {
            kr__ptx_variables(p, PTX_LINK_NONE);
            return;
        }
    kr__ptx_syntax_error(p);
}

/* What a kernel's parameters take; as ptxas, said at the kernel's end. */
static void check_parameter_space(ptx_parser *p, const ptx_function *function)
{
    enum { ALWAYS = 0x1100, LARGE = 0x7ffc, LARGE_ISA = 81, LARGE_SM = 70 };
    const size_t most = p->module->isa >= LARGE_ISA ? LARGE : ALWAYS;
    const unsigned line = p->token.line;
    if (!function->is_entry || function->param_bytes <= ALWAYS)
        return;
    if (function->param_bytes > most)
        kr__ptx_error(p, line, "Entry function '%s' uses too much parameter space (0x%zx bytes, 0x%zx max).",
                      function->name, function->param_bytes, most);
    kr__ptx_has(p, line, "Kernel parameter size larger than 4352 bytes", LARGE_ISA, LARGE_SM);
}

/* From the token after '{' to past the '}' that closes it. Blocks nest without recursion. */
static void statements(ptx_parser *p)
{
    const ptx_block *outermost = p->block;
    while (!p->stopped) {
        if (kr__ptx_is_mark(&p->token, '{')) {
            if (!kr__ptx_push_block(p))
                return;
            kr__ptx_advance(p);
        } else if (kr__ptx_is_mark(&p->token, '}')) {
            const bool is_last = p->block == outermost;
            pop_block(p, is_last);
            if (is_last)
                check_parameter_space(p, p->function);
            kr__ptx_advance(p);
            if (is_last)
                return;
        } else if (begins_label(p)) {
            labelled(p);
        } else if (p->token.kind == PTX_TOKEN_DOTTED) {
            directive(p);
        } else {
            instruction(p);
        }
    }
}

static void *keep(ptx_parser *p, const void *items, size_t n, size_t bytes)
{
    void *copy = kr__ptx_new(p, n ? n * bytes : 1);
    if (copy && n)
        memcpy(copy, items, n * bytes);
    return copy;
}

/* What the names of such parameters stand for in the body. */
static void parameters_in_registers(ptx_parser *p, ptx_variable *const *list, size_t n)
{
    for (size_t i = 0; i < n && !p->stopped; i++) {
        const ptx_text text = {list[i]->name, strlen(list[i]->name)};
        ptx_name *name = list[i]->space == PTX_SPACE_REG ? kr__ptx_lookup(p, text) : NULL;
        if (!name || name->thing != list[i])
            continue;
        kr__ptx_make_register(p, name, list[i]->type, 0);
        list[i]->reg = name->thing;
        if (name->thing)
            ((ptx_register *)name->thing)->is_parameter = true;
    }
}

void kr__ptx_body(ptx_parser *p, ptx_function *function)
{
    p->function = function;
    p->n_instrs = p->n_labels = p->n_registers = 0;
    p->loc_file = p->loc_line = 0;
    p->last_variable = &function->variables;
    p->last_mark_of_body = &function->marks;
    p->n_variables = 0;
    parameters_in_registers(p, function->returns, function->n_returns);
    parameters_in_registers(p, function->params, function->n_params);
    statements(p); /* in the block of the parameters: their names cannot be declared again */
    p->function = NULL;
    if (p->stopped)
        return;
    function->has_body = true;
    function->instrs = keep(p, p->instrs, p->n_instrs, sizeof *p->instrs);
    function->n_instrs = p->n_instrs;
    function->labels = keep(p, p->labels, p->n_labels, sizeof *p->labels);
    function->n_labels = p->n_labels;
    function->registers = keep(p, p->registers, p->n_registers, sizeof *p->registers);
    function->n_registers = p->n_registers;
}
