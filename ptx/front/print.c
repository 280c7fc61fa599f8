/* SPDX-License-Identifier: Apache-2.0 */
#include "ptx/front/front.h"

#include <inttypes.h>

static void print_operand(const ptx_printer *p, const ptx_operand *operand, kr__text *to);

static void print_list(const ptx_printer *p, const ptx_operand *list, size_t n, const char *between,
                       kr__text *to)
{
    for (size_t i = 0; i < n; i++) {
        kr__text_add(to, "%s", i ? between : "");
        print_operand(p, &list[i], to);
    }
}

const char *kr__ptx_printed_name(const ptx_printer *p, const void *thing, const char *name)
{
    const ptx_text key = {(const char *)&thing, sizeof thing};
    const ptx_name *other = p->names ? kr__ptx_find_name(p->names, key, kr__ptx_hash(key)) : NULL;
    return other ? other->thing : name;
}

static const char *name_of(const ptx_printer *p, const ptx_operand *operand)
{
    if (operand->reg)
        return kr__ptx_printed_name(p, operand->reg, operand->reg->name);
    if (operand->variable)
        return kr__ptx_printed_name(p, operand->variable, operand->variable->name);
    return operand->function ? kr__ptx_printed_name(p, operand->function, operand->function->name) : NULL;
}

static const char *label_name(const ptx_printer *p, uint32_t label)
{
    const ptx_label *labels = p->function->labels;
    return label < p->function->n_labels ? kr__ptx_printed_name(p, &labels[label], labels[label].name) : "";
}

static void print_immediate(const ptx_operand *operand, kr__text *to)
{
    if (!operand->is_float)
        kr__text_add(to, "%" PRId64, operand->bits);
    else if (operand->float_bytes == 4)
        kr__text_add(to, "0f%08" PRIX32, (uint32_t)operand->bits);
    else
        kr__text_add(to, "0d%016" PRIX64, (uint64_t)operand->bits);
}

static void print_base(const ptx_printer *p, const ptx_operand *operand, kr__text *to)
{
    const char *name = name_of(p, operand);
    if (name)
        kr__text_add(to, "%s", name);
    if (!name || operand->offset)
        kr__text_add(to, "%s%" PRId64, name ? "+" : "", operand->offset);
}

static void print_vector(const ptx_printer *p, const ptx_operand *operand, kr__text *to)
{
    const char *special = kr__ptx_special_vector_name(operand);
    if (special) {
        kr__text_add(to, "%s", special);
        return;
    }
    kr__text_add(to, "%s", operand->is_pair ? "" : "{");
    print_list(p, operand->elements, operand->n_elements, operand->is_pair ? "|" : ", ", to);
    kr__text_add(to, "%s", operand->is_pair ? "" : "}");
}

static void print_operand(const ptx_printer *p, const ptx_operand *operand, kr__text *to)
{
    if (operand->negated)
        kr__text_add(to, operand->kind == PTX_OPERAND_REGISTER && operand->reg->type != PTX_PRED ? "-" : "!");
    switch (operand->kind) {
    case PTX_OPERAND_NONE:
        break;
    case PTX_OPERAND_REGISTER:
        kr__text_add(to, "%s", name_of(p, operand));
        if (operand->selector.unit)
            kr__text_add(to, ".%c", operand->selector.unit);
        for (unsigned i = 0; i < operand->selector.n; i++)
            kr__text_add(to, "%u", operand->selector.at[i]);
        break;
    case PTX_OPERAND_IMMEDIATE:
        print_immediate(operand, to);
        break;
    case PTX_OPERAND_SPECIAL:
        kr__text_add(to, "%s", kr__ptx_specials[operand->special].text);
        break;
    case PTX_OPERAND_ADDRESS:
        kr__text_add(to, "[");
        print_base(p, operand, to);
        kr__text_add(to, "%s", operand->n_elements ? ", " : "");
        print_list(p, operand->elements, operand->n_elements, ", ", to);
        kr__text_add(to, "]");
        break;
    case PTX_OPERAND_SYMBOL:
        print_base(p, operand, to);
        break;
    case PTX_OPERAND_VECTOR:
        print_vector(p, operand, to);
        break;
    case PTX_OPERAND_LABEL:
        kr__text_add(to, "%s", label_name(p, operand->label));
        break;
    case PTX_OPERAND_SINK:
        kr__text_add(to, "_");
        break;
    }
}

static void print_call(const ptx_printer *p, const ptx_instr *instr, kr__text *to)
{
    if (instr->n_returns) {
        kr__text_add(to, "(");
        print_list(p, instr->returns, instr->n_returns, ", ", to);
        kr__text_add(to, "), ");
    }
    if (instr->callee)
        kr__text_add(to, "%s", kr__ptx_printed_name(p, instr->callee, instr->callee->name));
    else
        print_list(p, instr->operands, instr->n_operands, ", ", to);
    const char *prototype = instr->prototype ? kr__ptx_printed_name(p, instr->prototype, NULL) : NULL;
    if (instr->n_arguments || prototype) {
        kr__text_add(to, ", (");
        print_list(p, instr->arguments, instr->n_arguments, ", ", to);
        kr__text_add(to, ")");
    }
    if (prototype)
        kr__text_add(to, ", %s", prototype);
}

static void print_targets(const ptx_printer *p, const ptx_instr *instr, kr__text *to)
{
    const char *list = kr__ptx_printed_name(p, instr->targets, NULL);
    kr__text_add(to, ", ");
    for (size_t i = 0; i < instr->n_targets && !list; i++)
        kr__text_add(to, "%s%s", i ? " " : "", label_name(p, instr->targets[i]));
    kr__text_add(to, "%s", list ? list : "");
}

void kr__ptx_print_named(const ptx_printer *p, const ptx_instr *instr, kr__text *to)
{
    if (instr->guard)
        kr__text_add(to, "@%s%s ", instr->guard_negated ? "!" : "",
                     kr__ptx_printed_name(p, instr->guard, instr->guard->name));
    kr__text_add(to, "%s", instr->name);
    if (instr->op == PTX_OP_CALL || instr->n_operands)
        kr__text_add(to, " ");
    if (instr->op == PTX_OP_CALL)
        print_call(p, instr, to);
    else
        print_list(p, instr->operands, instr->n_operands, ", ", to);
    if (instr->targets)
        print_targets(p, instr, to);
    kr__text_add(to, ";");
}

void kr__ptx_print_instr(const ptx_function *function, const ptx_instr *instr, kr__text *to)
{
    kr__ptx_print_named(&(ptx_printer){.function = function}, instr, to);
}
