/* SPDX-License-Identifier: Apache-2.0 */
/* A module as PTX text. Each function's nested blocks become one, so names that would meet get a number. */
#include "ptx/front/front.h"

#include <inttypes.h>
#include <string.h>

typedef struct writer {
    ptx_printer printer;
    const ptx_module *module;
    kr__arena arena;
    ptx_names names;        /* of printer */
    ptx_names taken, local; /* by text, in the module and in the function */
    ptx_names declared;     /* variables that the text has come past, by address */
    ptx_names numbers;      /* of functions, by address */
    uint32_t n_forward;     /* functions to declare before all that may name them */
    kr__text *to;
    bool failed;
} writer;

/* ---- names ---- */

static ptx_text address_of(writer *w, const void *thing)
{
    const void **kept = kr__arena_alloc(&w->arena, sizeof thing);
    if (kept)
        *kept = thing;
    return (ptx_text){(const char *)kept, kept ? sizeof thing : 0};
}

static ptx_name *note(writer *w, ptx_names *names, ptx_text text, ptx_name_kind kind, const void *value)
{
    ptx_name *name = text.at ? kr__ptx_add_name(&w->arena, names, text, kr__ptx_hash(text), kind) : NULL;
    if (name)
        name->thing = (void *)(uintptr_t)value;
    else
        w->failed = true;
    return name;
}

static bool is_noted(const ptx_names *names, ptx_text text)
{
    return kr__ptx_find_name(names, text, kr__ptx_hash(text));
}

static bool is_declared(const writer *w, const void *thing)
{
    return is_noted(&w->declared, (ptx_text){(const char *)&thing, sizeof thing});
}

static void declare(writer *w, const void *thing)
{
    if (!is_declared(w, thing))
        note(w, &w->declared, address_of(w, thing), PTX_NAME_VARIABLE, w);
}

static const char *named(const writer *w, const void *thing, const char *name)
{
    return kr__ptx_printed_name(&w->printer, thing, name);
}

/* "t$a", "t$b" ... for t. */
static ptx_text another(writer *w, const char *name, unsigned n)
{
    const size_t bytes = strlen(name);
    char *text = kr__arena_alloc(&w->arena, bytes + 9);
    if (!text)
        return (ptx_text){0};
    memcpy(text, name, bytes);
    text[bytes] = '$';
    size_t at = bytes + 1;
    for (; n; n = (n - 1) / 26)
        text[at++] = (char)('a' + (n - 1) % 26);
    return (ptx_text){text, at};
}

/* The thing's name in this function or, where `names` is the module's, in it; another where that is taken. */
static void claim(writer *w, ptx_names *names, ptx_name_kind kind, const void *thing, const char *name)
{
    ptx_text text = {name, strlen(name)};
    for (unsigned n = 1; text.at && (is_noted(&w->taken, text) || is_noted(&w->local, text)); n++)
        text = another(w, name, n);
    if (note(w, names, text, kind, w) && text.at != name)
        note(w, &w->names, address_of(w, thing), kind, text.at);
}

/* A name for what has none, or only one that calls do not see: a prototype, a list of targets. */
static bool claim_new(writer *w, const void *thing, const char *name)
{
    if (named(w, thing, NULL))
        return false;
    claim(w, &w->local, PTX_NAME_LABEL, thing, name);
    if (!named(w, thing, NULL))
        note(w, &w->names, address_of(w, thing), PTX_NAME_LABEL, name);
    return !w->failed;
}

/* Those whose name was taken no more. */
static bool is_of_range(const writer *w, const ptx_register *reg)
{
    return reg->is_of_range && !named(w, reg, NULL);
}

/* ---- variables ---- */

static const char *const spaces[] = {"",       ".reg",   ".const",  ".global",
                                     ".local", ".param", ".shared", ".shared"};
static const char *const linkages[] = {"", ".extern ", ".visible ", ".weak ", ".common "};

static void print_value(writer *w, const ptx_variable *variable, size_t at, const ptx_relocation **next)
{
    const ptx_relocation *relocation = *next;
    if (relocation && relocation->offset == at) {
        const char *name = relocation->variable ? named(w, relocation->variable, relocation->variable->name)
                                                : named(w, relocation->function, relocation->function->name);
        if (relocation->mask)
            kr__text_add(w->to, "0x%" PRIx64 "(", relocation->mask);
        kr__text_add(w->to, relocation->generic ? "generic(%s)" : "%s", name);
        if (relocation->addend)
            kr__text_add(w->to, "+%" PRId64, relocation->addend);
        kr__text_add(w->to, "%s", relocation->mask ? ")" : "");
        *next = relocation->next;
        return;
    }
    uint64_t value = 0;
    const size_t bytes = kr__ptx_type_bytes(variable->type);
    for (size_t i = 0; i < bytes && i < sizeof value; i++)
        value |= (uint64_t)variable->initial[at + i] << 8 * i;
    for (size_t i = sizeof value; i < bytes; i++)
        w->failed |= variable->initial[at + i] != 0;
    if (variable->type == PTX_F32)
        kr__text_add(w->to, "0f%08" PRIX64, value);
    else if (variable->type == PTX_F64)
        kr__text_add(w->to, "0d%016" PRIX64, value);
    else
        kr__text_add(w->to, "%" PRIu64, value);
}

/* The bytes up to the last that is not zero, or an address: what is left out is zero. */
static size_t initial_bytes(const ptx_variable *variable)
{
    size_t n = variable->bytes;
    while (n && !variable->initial[n - 1])
        n--;
    for (const ptx_relocation *r = variable->relocations; r; r = r->next)
        n = r->offset + 1 > n ? r->offset + 1 : n;
    return n ? n : 1;
}

static void print_initial(writer *w, const ptx_variable *variable)
{
    const size_t bytes = kr__ptx_type_bytes(variable->type), n = initial_bytes(variable);
    const size_t row = bytes * (variable->vector ? variable->vector : 1);
    const ptx_relocation *next = variable->relocations;
    kr__text_add(w->to, " = %s", variable->is_array ? "{" : "");
    for (size_t at = 0; at < n; at += bytes) {
        const bool begins = at % row == 0, ends = (at + bytes) % row == 0 || at + bytes >= n;
        kr__text_add(w->to, "%s%s", at ? ", " : "", variable->vector && begins ? "{" : "");
        print_value(w, variable, at, &next);
        kr__text_add(w->to, "%s", variable->vector && ends ? "}" : "");
    }
    kr__text_add(w->to, "%s", variable->is_array ? "}" : "");
}

static void print_unified(writer *w, const uint64_t uuid[2])
{
    kr__text_add(w->to, " .attribute(.unified(%" PRIu64 ", %" PRIu64 "))", uuid[0], uuid[1]);
}

/* From the state space to the name and its array. */
static void print_declaration(writer *w, const ptx_variable *variable)
{
    const size_t element = kr__ptx_type_bytes(variable->type) * (variable->vector ? variable->vector : 1);
    kr__text_add(w->to, "%s", spaces[variable->space]);
    if (variable->is_managed)
        kr__text_add(w->to, " .attribute(.managed)");
    if (variable->is_unified)
        print_unified(w, variable->uuid);
    if (variable->alignment != element)
        kr__text_add(w->to, " .align %u", variable->alignment);
    if (variable->vector)
        kr__text_add(w->to, " .v%u", variable->vector);
    kr__text_add(w->to, " .%s", kr__ptx_type_name(variable->type));
    if (variable->is_pointer) {
        kr__text_add(w->to, " .ptr%s%s", variable->pointer_space ? " " : "", spaces[variable->pointer_space]);
        if (variable->pointer_alignment)
            kr__text_add(w->to, " .align %u", variable->pointer_alignment);
    }
    kr__text_add(w->to, " %s", named(w, variable, variable->name));
    if (variable->is_array && variable->bytes)
        kr__text_add(w->to, "[%zu]", variable->bytes / element);
    else if (variable->is_array)
        kr__text_add(w->to, "[]");
}

static void print_variable(writer *w, const ptx_variable *variable)
{
    kr__text_add(w->to, "%s", linkages[variable->linkage]);
    print_declaration(w, variable);
    if (variable->opaque)
        kr__text_add(w->to, " = %s", variable->opaque);
    else if (variable->initial)
        print_initial(w, variable);
    kr__text_add(w->to, ";\n");
}

/* ---- functions ---- */

static void print_list(writer *w, ptx_variable *const *list, size_t n)
{
    kr__text_add(w->to, "(");
    for (size_t i = 0; i < n; i++) {
        kr__text_add(w->to, "%s", i ? ", " : "");
        print_declaration(w, list[i]);
    }
    kr__text_add(w->to, ")");
}

static void print_prototype(writer *w, const ptx_function *function, const char *name)
{
    if (function->n_returns) {
        print_list(w, function->returns, function->n_returns);
        kr__text_add(w->to, " ");
    }
    kr__text_add(w->to, "%s", name);
    print_list(w, function->params, function->n_params);
}

static void print_head(writer *w, const ptx_function *function)
{
    kr__text_add(w->to, "%s%s", linkages[function->linkage], function->is_entry ? ".entry" : ".func");
    if (function->is_unified)
        print_unified(w, function->uuid);
    kr__text_add(w->to, " ");
    print_prototype(w, function, named(w, function, function->name));
    if (function->noreturn)
        kr__text_add(w->to, " .noreturn");
}

static void print_directives(writer *w, const ptx_function *function)
{
    const struct {
        const char *text;
        const unsigned *value;
        size_t n;
    } rows[] = {{".maxntid", function->maxntid, 3},
                {".reqntid", function->reqntid, 3},
                {".minnctapersm", &function->minnctapersm, 1},
                {".maxnreg", &function->maxnreg, 1},
                {".reqnctapercluster", function->reqnctapercluster, 3},
                {".maxclusterrank", &function->maxclusterrank, 1}};
    for (size_t i = 0; i < KR_COUNT(rows); i++)
        for (size_t k = 0; k < rows[i].n && rows[i].value[0]; k++)
            kr__text_add(w->to, "%s%s %u", k ? "," : "\n", k ? "" : rows[i].text, rows[i].value[k]);
    kr__text_add(w->to, "%s%s", function->explicitcluster ? "\n.explicitcluster" : "",
                 function->blocksareclusters ? "\n.blocksareclusters" : "");
    for (const ptx_mark *pragma = function->pragmas; pragma; pragma = pragma->next)
        kr__text_add(w->to, "\n%s", pragma->text);
}

/* ---- which functions are named before the text comes to them ---- */

/* The function's number in the module. */
static uint32_t number_of(const writer *w, const ptx_function *function)
{
    const ptx_text key = {(const char *)&function, sizeof function};
    const ptx_name *name = kr__ptx_find_name(&w->numbers, key, kr__ptx_hash(key));
    return name ? name->index : 0;
}

/* All up to the last that is named too early are declared first, so that they keep their order. */
static void forward(writer *w, const ptx_function *function, uint32_t n_defined)
{
    const uint32_t number = function ? number_of(w, function) : 0;
    if (function && number >= n_defined && number >= w->n_forward)
        w->n_forward = number + 1;
}

static void forward_operands(writer *w, const ptx_operand *list, size_t n, uint32_t n_defined)
{
    for (size_t i = 0; i < n; i++) {
        forward(w, list[i].function, n_defined);
        forward_operands(w, list[i].elements, list[i].n_elements, n_defined);
    }
}

static void forward_initial(writer *w, const ptx_variable *variable, uint32_t n_defined)
{
    for (; variable; variable = variable->next)
        for (const ptx_relocation *r = variable->relocations; r; r = r->next)
            forward(w, r->function, n_defined);
}

static void forward_function(writer *w, const ptx_function *function, uint32_t n_defined)
{
    forward_initial(w, function->variables, n_defined);
    for (size_t i = 0; i < function->n_instrs; i++) {
        const ptx_instr *instr = &function->instrs[i];
        forward(w, instr->callee, n_defined);
        forward_operands(w, instr->operands, instr->n_operands, n_defined);
        forward_operands(w, instr->arguments, instr->n_arguments, n_defined);
        for (size_t k = 0; instr->prototype && k < instr->prototype->n_targets; k++)
            forward(w, instr->prototype->targets[k], n_defined);
    }
}

static void number_functions(writer *w)
{
    uint32_t n = 0;
    for (const ptx_function *function = w->module->functions; function; function = function->next) {
        ptx_name *name = note(w, &w->numbers, address_of(w, function), PTX_NAME_FUNCTION, function);
        if (name)
            name->index = n++;
    }
    n = 0;
    forward_initial(w, w->module->variables, n);
    for (const ptx_function *function = w->module->functions; function; function = function->next)
        forward_function(w, function, ++n);
}

/* ---- registers: those of ranges, where the name is free, are declared as a range again ---- */

typedef struct range {
    struct range *next;
    ptx_text prefix;
    ptx_type type;
    uint32_t n;
    bool is_mixed; /* it would declare what is another name's */
} range;

/* "%r" and 7 of "%r7"; false where no range has such a register. */
static bool split(ptx_text name, ptx_text *prefix, uint32_t *number)
{
    enum { MOST_DIGITS = 9 };
    size_t digits = 0;
    while (digits < name.bytes && digits <= MOST_DIGITS && name.at[name.bytes - 1 - digits] >= '0' &&
           name.at[name.bytes - 1 - digits] <= '9')
        digits++;
    *prefix = (ptx_text){name.at, name.bytes - digits};
    if (!digits || digits > MOST_DIGITS || !prefix->bytes || (digits > 1 && name.at[prefix->bytes] == '0'))
        return false;
    *number = 0;
    for (size_t i = prefix->bytes; i < name.bytes; i++)
        *number = *number * 10 + (uint32_t)(name.at[i] - '0');
    return true;
}

static int compare(ptx_text a, ptx_text b)
{
    const int order = memcmp(a.at, b.at, a.bytes < b.bytes ? a.bytes : b.bytes);
    return order ? order : a.bytes < b.bytes ? -1 : a.bytes > b.bytes;
}

static range *find_range(const ptx_names *ranges, ptx_text prefix)
{
    const ptx_name *name = kr__ptx_find_name(ranges, prefix, kr__ptx_hash(prefix));
    return name ? name->thing : NULL;
}

/* In a list by prefix: the text does not depend on which register is met first. */
static range *add_range(writer *w, ptx_names *ranges, range **first, ptx_text prefix, ptx_type type)
{
    range *made = kr__arena_alloc(&w->arena, sizeof *made);
    if (!made || !note(w, ranges, prefix, PTX_NAME_RANGE, made)) {
        w->failed = true;
        return NULL;
    }
    while (*first && compare((*first)->prefix, prefix) < 0)
        first = &(*first)->next;
    *made = (range){.next = *first, .prefix = prefix, .type = type};
    *first = made;
    return made;
}

/* A range declares its registers' names and its own. */
static void mix(const ptx_names *ranges, const ptx_names *others)
{
    ptx_text prefix;
    uint32_t number;
    for (uint32_t i = 0; i < others->capacity; i++) {
        const ptx_name *other = &others->slots[i];
        if (!other->kind || other->kind == PTX_NAME_RANGE)
            continue;
        range *of = find_range(ranges, other->text);
        if (of)
            of->is_mixed = true;
        of = split(other->text, &prefix, &number) ? find_range(ranges, prefix) : NULL;
        if (of)
            of->is_mixed |= number < of->n;
    }
}

static range *ranges_of(writer *w, const ptx_function *function, ptx_names *ranges)
{
    range *first = NULL;
    for (size_t i = 0; i < function->n_registers; i++) {
        const ptx_register *reg = function->registers[i];
        ptx_text prefix;
        uint32_t number;
        if (!is_of_range(w, reg) || !split((ptx_text){reg->name, strlen(reg->name)}, &prefix, &number))
            continue;
        range *of = find_range(ranges, prefix);
        if (!of && !(of = add_range(w, ranges, &first, prefix, reg->type)))
            return NULL;
        of->is_mixed |= of->type != reg->type;
        of->n = number >= of->n ? number + 1 : of->n;
    }
    mix(ranges, &w->local);
    mix(ranges, &w->taken);
    return first;
}

/* Is it of one of the ranges that are declared? */
static bool is_ranged(const writer *w, const ptx_names *ranges, const ptx_register *reg)
{
    ptx_text prefix;
    uint32_t number;
    if (!is_of_range(w, reg) || !split((ptx_text){reg->name, strlen(reg->name)}, &prefix, &number))
        return false;
    const range *of = find_range(ranges, prefix);
    return of && !of->is_mixed;
}

static void print_registers(writer *w, const ptx_function *function)
{
    ptx_names ranges = {0};
    for (const range *of = ranges_of(w, function, &ranges); of; of = of->next)
        if (!of->is_mixed)
            kr__text_add(w->to, ".reg .%s %.*s<%u>;\n", kr__ptx_type_name(of->type), (int)of->prefix.bytes,
                         of->prefix.at, of->n);
    const ptx_register *before = NULL; /* in the line that is not ended */
    for (size_t i = 0; i < function->n_registers; i++) {
        const ptx_register *reg = function->registers[i];
        if (reg->is_parameter || is_ranged(w, &ranges, reg))
            continue;
        if (!before || before->type != reg->type)
            kr__text_add(w->to, "%s.reg .%s ", before ? ";\n" : "", kr__ptx_type_name(reg->type));
        else
            kr__text_add(w->to, ", ");
        kr__text_add(w->to, "%s", named(w, reg, reg->name));
        before = reg;
    }
    kr__text_add(w->to, "%s", before ? ";\n" : "");
}

/* ---- bodies ---- */

static void claim_parameters(writer *w, ptx_variable *const *list, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        claim(w, &w->local, PTX_NAME_VARIABLE, list[i], list[i]->name);
        const char *other = named(w, list[i], NULL);
        if (list[i]->reg && other)
            note(w, &w->names, address_of(w, list[i]->reg), PTX_NAME_REGISTER, other);
    }
}

static void claim_names(writer *w, const ptx_function *function)
{
    claim_parameters(w, function->returns, function->n_returns);
    claim_parameters(w, function->params, function->n_params);
    for (const ptx_variable *variable = function->variables; variable; variable = variable->next)
        claim(w, &w->local, PTX_NAME_VARIABLE, variable, variable->name);
    for (size_t i = 0; i < function->n_labels; i++)
        claim(w, &w->local, PTX_NAME_LABEL, &function->labels[i], function->labels[i].name);
    for (size_t i = 0; i < function->n_registers; i++)
        if (!function->registers[i]->is_parameter)
            claim(w, &w->local, function->registers[i]->is_of_range ? PTX_NAME_RANGE : PTX_NAME_REGISTER,
                  function->registers[i], function->registers[i]->name);
}

static void print_list_of_targets(writer *w, const ptx_function *function, const ptx_instr *instr)
{
    kr__text_add(w->to, "%s: .branchtargets ", named(w, instr->targets, NULL));
    for (size_t i = 0; i < instr->n_targets; i++) {
        const ptx_label *label = &function->labels[instr->targets[i]];
        kr__text_add(w->to, "%s%s", i ? ", " : "", named(w, label, label->name));
    }
    kr__text_add(w->to, ";\n");
}

static void print_called(writer *w, const ptx_function *prototype)
{
    kr__text_add(w->to, "%s: ", named(w, prototype, NULL));
    for (size_t i = 0; i < prototype->n_targets; i++) {
        const ptx_function *target = prototype->targets[i];
        kr__text_add(w->to, "%s%s", i ? ", " : ".calltargets ", named(w, target, target->name));
    }
    if (!prototype->n_targets) {
        kr__text_add(w->to, ".callprototype ");
        print_prototype(w, prototype, "_");
        kr__text_add(w->to, "%s", prototype->noreturn ? " .noreturn" : "");
    }
    kr__text_add(w->to, ";\n");
}

static void print_instr(writer *w, const ptx_function *function, const ptx_instr *instr)
{
    if (instr->targets && claim_new(w, instr->targets, "$targets"))
        print_list_of_targets(w, function, instr);
    if (instr->prototype && claim_new(w, instr->prototype, "$prototype"))
        print_called(w, instr->prototype);
    kr__ptx_print_named(&w->printer, instr, w->to);
    kr__text_add(w->to, "\n");
}

static void print_body(writer *w, const ptx_function *function)
{
    uint32_t n_labels = 0;
    const ptx_mark *mark = function->marks;
    kr__text_add(w->to, "\n{\n");
    print_registers(w, function);
    for (const ptx_variable *variable = function->variables; variable; variable = variable->next)
        print_variable(w, variable);
    for (size_t i = 0; i <= function->n_instrs; i++) {
        for (;;) {
            if (mark && mark->at <= i && mark->n_labels <= n_labels) {
                kr__text_add(w->to, "%s\n", mark->text);
                mark = mark->next;
            } else if (n_labels < function->n_labels && function->labels[n_labels].target <= i) {
                const ptx_label *label = &function->labels[n_labels++];
                kr__text_add(w->to, "%s:\n", named(w, label, label->name));
            } else {
                break;
            }
        }
        if (i < function->n_instrs)
            print_instr(w, function, &function->instrs[i]);
    }
    kr__text_add(w->to, "}\n");
}

static void print_declared(writer *w, const ptx_function *function)
{
    print_head(w, function);
    kr__text_add(w->to, ";\n");
}

static void print_function(writer *w, const ptx_function *function)
{
    if (!function->has_body) {
        if (number_of(w, function) >= w->n_forward)
            print_declared(w, function);
        return;
    }
    w->local = (ptx_names){0};
    claim_names(w, function);
    w->printer.function = function;
    print_head(w, function);
    print_directives(w, function);
    print_body(w, function);
}

/* ---- the module ---- */

static void print_header(writer *w)
{
    const ptx_module *module = w->module;
    kr__text_add(w->to, ".version %d.%d\n.target %s%s%s%s%s\n.address_size %d\n", module->isa / 10,
                 module->isa % 10, module->target, module->texmode_unified ? ", texmode_unified" : "",
                 module->texmode_independent ? ", texmode_independent" : "",
                 module->map_f64_to_f32 ? ", map_f64_to_f32" : "", module->debug ? ", debug" : "",
                 module->address_bits);
}

static void print_marks(writer *w, bool sections)
{
    for (const ptx_mark *mark = w->module->marks; mark; mark = mark->next)
        if (!strncmp(mark->text, ".section", 8) == sections)
            kr__text_add(w->to, "%s\n", mark->text);
}

/* What an initial value names must stand before it: variables that come later, as .extern. */
static void print_module_variable(writer *w, const ptx_variable *variable)
{
    for (const ptx_relocation *r = variable->relocations; r; r = r->next)
        if (r->variable && r->variable != variable && !is_declared(w, r->variable)) {
            kr__text_add(w->to, ".extern ");
            print_declaration(w, r->variable);
            kr__text_add(w->to, ";\n");
            declare(w, r->variable);
        }
    print_variable(w, variable);
    declare(w, variable);
}

bool kr__ptx_print_module(const ptx_module *module, kr__text *to)
{
    writer w = {.module = module, .to = to};
    w.printer.names = &w.names;
    for (const ptx_variable *variable = module->variables; variable; variable = variable->next)
        claim(&w, &w.taken, PTX_NAME_VARIABLE, variable, variable->name);
    for (const ptx_function *function = module->functions; function; function = function->next)
        claim(&w, &w.taken, PTX_NAME_FUNCTION, function, function->name);
    print_header(&w);
    print_marks(&w, false);
    number_functions(&w);
    const ptx_function *declared = module->functions;
    for (uint32_t i = 0; i < w.n_forward && declared; i++, declared = declared->next)
        print_declared(&w, declared);
    for (const ptx_variable *variable = module->variables; variable; variable = variable->next)
        print_module_variable(&w, variable);
    for (const ptx_function *function = module->functions; function; function = function->next)
        print_function(&w, function);
    for (const ptx_function *function = module->functions; function; function = function->next)
        if (function->aliased)
            kr__text_add(to, ".alias %s, %s;\n", named(&w, function, function->name),
                         named(&w, function->aliased, function->aliased->name));
    print_marks(&w, true);
    kr__arena_free(&w.arena);
    return !w.failed && !to->failed;
}
