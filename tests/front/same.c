/* SPDX-License-Identifier: Apache-2.0 */
#include "same.h"

#include <stdio.h>
#include <string.h>

#define SAME(condition)                            \
    do {                                           \
        if (!(condition)) {                        \
            printf("  differs: %s\n", #condition); \
            return false;                          \
        }                                          \
    } while (0)
#define EQUAL(field) SAME(a->field == b->field)

/* The name, or the name and a "$..." that printing put behind it. */
static bool same_name(const char *one, const char *other)
{
    const size_t n = one ? strlen(one) : 0;
    return one && other ? !strncmp(one, other, n) && (!other[n] || other[n] == '$') : one == other;
}

static bool same_text(const char *one, const char *other)
{
    return one && other ? !strcmp(one, other) : one == other;
}

static bool same_register(const ptx_register *a, const ptx_register *b)
{
    return a && b ? a->type == b->type && same_name(a->name, b->name) : a == b;
}

static bool same_variable_name(const ptx_variable *a, const ptx_variable *b)
{
    return a && b ? a->index == b->index && a->space == b->space && same_name(a->name, b->name) : a == b;
}

static bool same_function_name(const ptx_function *a, const ptx_function *b)
{
    return a && b ? same_name(a->name, b->name) : a == b;
}

static bool same_operand(const ptx_operand *a, const ptx_operand *b)
{
    EQUAL(kind);
    EQUAL(negated);
    EQUAL(is_pair);
    EQUAL(is_float);
    EQUAL(float_bytes);
    EQUAL(bits);
    EQUAL(offset);
    EQUAL(label);
    EQUAL(special);
    EQUAL(n_elements);
    SAME(!memcmp(&a->selector, &b->selector, sizeof a->selector));
    SAME(same_register(a->reg, b->reg));
    SAME(same_variable_name(a->variable, b->variable));
    SAME(same_function_name(a->function, b->function));
    for (size_t i = 0; i < a->n_elements; i++)
        SAME(same_operand(&a->elements[i], &b->elements[i]));
    return true;
}

static bool same_operands(const ptx_operand *a, const ptx_operand *b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        SAME(same_operand(&a[i], &b[i]));
    return true;
}

static bool same_variable(const ptx_variable *a, const ptx_variable *b)
{
    SAME(same_name(a->name, b->name));
    EQUAL(space);
    EQUAL(linkage);
    EQUAL(type);
    EQUAL(vector);
    EQUAL(is_managed);
    EQUAL(is_unified);
    EQUAL(uuid[0]);
    EQUAL(uuid[1]);
    EQUAL(is_pointer);
    EQUAL(pointer_space);
    EQUAL(pointer_alignment);
    EQUAL(alignment);
    EQUAL(bytes);
    EQUAL(is_array);
    EQUAL(is_parameter);
    EQUAL(offset);
    EQUAL(index);
    SAME(same_text(a->opaque, b->opaque));
    SAME(!a->initial == !b->initial);
    SAME(!a->initial || !memcmp(a->initial, b->initial, a->bytes));
    const ptx_relocation *r = a->relocations, *s = b->relocations;
    for (; r && s; r = r->next, s = s->next) {
        SAME(r->offset == s->offset && r->addend == s->addend && r->generic == s->generic);
        SAME(r->bytes == s->bytes && r->mask == s->mask);
        SAME(same_variable_name(r->variable, s->variable) && same_function_name(r->function, s->function));
    }
    SAME(!r && !s);
    return true;
}

static bool same_list(const ptx_variable *a, const ptx_variable *b)
{
    for (; a && b; a = a->next, b = b->next)
        SAME(same_variable(a, b));
    SAME(!a && !b);
    return true;
}

static bool same_prototype(const ptx_function *a, const ptx_function *b)
{
    if (!a || !b)
        return a == b;
    EQUAL(noreturn);
    EQUAL(n_params);
    EQUAL(n_returns);
    EQUAL(param_bytes);
    EQUAL(n_targets);
    for (size_t i = 0; i < a->n_params; i++)
        SAME(same_variable(a->params[i], b->params[i]));
    for (size_t i = 0; i < a->n_returns; i++)
        SAME(same_variable(a->returns[i], b->returns[i]));
    for (size_t i = 0; i < a->n_targets; i++)
        SAME(same_function_name(a->targets[i], b->targets[i]));
    return true;
}

static bool same_instr(const ptx_instr *a, const ptx_instr *b)
{
    SAME(same_text(a->name, b->name));
    EQUAL(op);
    EQUAL(flags);
    EQUAL(guard_negated);
    EQUAL(n_operands);
    EQUAL(n_returns);
    EQUAL(n_arguments);
    EQUAL(n_targets);
    EQUAL(loc_file);
    EQUAL(loc_line);
    SAME(same_register(a->guard, b->guard));
    SAME(same_function_name(a->callee, b->callee));
    SAME(same_prototype(a->prototype, b->prototype));
    SAME(same_operands(a->operands, b->operands, a->n_operands));
    SAME(same_operands(a->returns, b->returns, a->n_returns));
    SAME(same_operands(a->arguments, b->arguments, a->n_arguments));
    for (size_t i = 0; i < a->n_targets; i++)
        EQUAL(targets[i]);
    return true;
}

static bool same_marks(const ptx_mark *a, const ptx_mark *b)
{
    for (; a && b; a = a->next, b = b->next) {
        SAME(same_text(a->text, b->text));
        EQUAL(at);
        EQUAL(n_labels);
    }
    SAME(!a && !b);
    return true;
}

static bool same_function(const ptx_function *a, const ptx_function *b)
{
    SAME(same_name(a->name, b->name));
    EQUAL(is_entry);
    EQUAL(has_body);
    EQUAL(is_unified);
    EQUAL(uuid[0]);
    EQUAL(uuid[1]);
    EQUAL(linkage);
    SAME(same_function_name(a->aliased, b->aliased));
    SAME(same_prototype(a, b));
    SAME(!memcmp(a->maxntid, b->maxntid, sizeof a->maxntid));
    SAME(!memcmp(a->reqntid, b->reqntid, sizeof a->reqntid));
    SAME(!memcmp(a->reqnctapercluster, b->reqnctapercluster, sizeof a->reqnctapercluster));
    EQUAL(minnctapersm);
    EQUAL(maxnreg);
    EQUAL(maxclusterrank);
    EQUAL(explicitcluster);
    EQUAL(blocksareclusters);
    SAME(same_list(a->variables, b->variables));
    SAME(same_marks(a->marks, b->marks) && same_marks(a->pragmas, b->pragmas));
    EQUAL(n_labels);
    for (size_t i = 0; i < a->n_labels; i++)
        SAME(a->labels[i].target == b->labels[i].target && same_name(a->labels[i].name, b->labels[i].name));
    EQUAL(n_registers);
    EQUAL(n_instrs);
    for (size_t i = 0; i < a->n_instrs; i++)
        if (!same_instr(&a->instrs[i], &b->instrs[i])) {
            printf("  in %s, line %u\n", a->name, a->instrs[i].line);
            return false;
        }
    return true;
}

/* Functions stand where they are first declared, which printing may have had to do earlier. */
static bool same_functions(const ptx_module *a, const ptx_module *b)
{
    size_t n = 0, m = 0;
    for (const ptx_function *f = b->functions; f; f = f->next)
        m++;
    for (const ptx_function *f = a->functions; f; f = f->next, n++) {
        const ptx_function *g = b->functions;
        while (g && !(same_name(f->name, g->name) && same_text(f->name, g->name)))
            g = g->next;
        SAME(g && same_function(f, g));
    }
    SAME(n == m);
    return true;
}

bool same_module(const ptx_module *a, const ptx_module *b)
{
    EQUAL(isa);
    EQUAL(sm);
    EQUAL(suffix);
    EQUAL(address_bits);
    EQUAL(debug);
    EQUAL(texmode_unified);
    EQUAL(texmode_independent);
    EQUAL(map_f64_to_f32);
    EQUAL(n_entries);
    SAME(same_text(a->target, b->target));
    SAME(same_list(a->variables, b->variables));
    SAME(same_functions(a, b));
    return true;
}

bool survives_printing(const ptx_module *module, kr__text *ret_text)
{
    ptx_module *again = NULL;
    ptx_problem problem = {0};
    kr__text second = {0};
    bool ok = kr__ptx_print_module(module, ret_text);
    ok = ok && kr__ptx_parse(ret_text->data, ret_text->bytes, NULL, &again, &problem);
    if (!ok)
        printf("  the print is not read: %s\n", problem.log.data ? problem.log.data : "");
    ok = ok && same_module(module, again) && kr__ptx_print_module(again, &second);
    if (ok && strcmp(ret_text->data, second.data)) {
        printf("  a second print is not the first\n");
        ok = false;
    }
    kr__text_free(&second);
    kr__text_free(&problem.log);
    kr__ptx_module_free(&again);
    return ok;
}
