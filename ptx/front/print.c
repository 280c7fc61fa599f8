/* SPDX-License-Identifier: Apache-2.0 */
#include "ptx/front/front.h"

#include <inttypes.h>

static void print_operand(const ptx_function *function, const ptx_operand *operand, kr__text *to);

static void print_list(const ptx_function *function, const ptx_operand *list, size_t n, const char *between,
                       kr__text *to)
{
    for (size_t i = 0; i < n; i++) {
        kr__text_add(to, "%s", i ? between : "");
        print_operand(function, &list[i], to);
    }
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

static void print_base(const ptx_operand *operand, kr__text *to)
{
    const char *name = operand->reg        ? operand->reg->name
                       : operand->variable ? operand->variable->name
                       : operand->function ? operand->function->name
                                           : NULL;
    if (name)
        kr__text_add(to, "%s", name);
    if (!name || operand->offset)
        kr__text_add(to, "%s%" PRId64, name ? "+" : "", operand->offset);
}

static void print_operand(const ptx_function *function, const ptx_operand *operand, kr__text *to)
{
    if (operand->negated)
        kr__text_add(to, operand->kind == PTX_OPERAND_REGISTER && operand->reg->type != PTX_PRED ? "-" : "!");
    switch (operand->kind) {
    case PTX_OPERAND_NONE:
        break;
    case PTX_OPERAND_REGISTER:
        kr__text_add(to, "%s", operand->reg->name);
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
        print_base(operand, to);
        kr__text_add(to, "%s", operand->n_elements ? ", " : "");
        print_list(function, operand->elements, operand->n_elements, ", ", to);
        kr__text_add(to, "]");
        break;
    case PTX_OPERAND_SYMBOL:
        print_base(operand, to);
        break;
    case PTX_OPERAND_VECTOR:
        kr__text_add(to, "%s", operand->is_pair ? "" : "{");
        print_list(function, operand->elements, operand->n_elements, operand->is_pair ? "|" : ", ", to);
        kr__text_add(to, "%s", operand->is_pair ? "" : "}");
        break;
    case PTX_OPERAND_LABEL:
        if (operand->label < function->n_labels)
            kr__text_add(to, "%s", function->labels[operand->label].name);
        break;
    case PTX_OPERAND_SINK:
        kr__text_add(to, "_");
        break;
    }
}

static void print_call(const ptx_function *function, const ptx_instr *instr, kr__text *to)
{
    if (instr->n_returns) {
        kr__text_add(to, "(");
        print_list(function, instr->returns, instr->n_returns, ", ", to);
        kr__text_add(to, "), ");
    }
    kr__text_add(to, "%s",
                 instr->callee       ? instr->callee->name
                 : instr->n_operands ? instr->operands[0].reg->name
                                     : "?");
    if (instr->n_arguments) {
        kr__text_add(to, ", (");
        print_list(function, instr->arguments, instr->n_arguments, ", ", to);
        kr__text_add(to, ")");
    }
}

void kr__ptx_print_instr(const ptx_function *function, const ptx_instr *instr, kr__text *to)
{
    if (instr->guard)
        kr__text_add(to, "@%s%s ", instr->guard_negated ? "!" : "", instr->guard->name);
    kr__text_add(to, "%s", instr->name);
    if (instr->op == PTX_OP_CALL || instr->n_operands)
        kr__text_add(to, " ");
    if (instr->op == PTX_OP_CALL)
        print_call(function, instr, to);
    else
        print_list(function, instr->operands, instr->n_operands, ", ", to);
    for (size_t i = 0; i < instr->n_targets; i++)
        kr__text_add(to, "%s%s", i ? " " : ", ", function->labels[instr->targets[i]].name);
    kr__text_add(to, ";");
}
