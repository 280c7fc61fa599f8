/* SPDX-License-Identifier: Apache-2.0 */
/* The descriptor of an op, as in a .cu file; and the values of its expressions. */
#include "fuzz.h"

#include <stdlib.h>

#include "registry/descriptor.h"

static void evaluate(const kr__op_def *def, const kr__expression *expression)
{
    static const uint64_t sizes[] = {0, 1, 7, 4096, UINT64_MAX};
    uint64_t of_args[KR_MAX_OP_ARGS], value;
    kr__problem problem = "";
    for (size_t i = 0; expression && i < KR_COUNT(sizes); i++) {
        for (size_t arg = 0; arg < KR_MAX_OP_ARGS; arg++)
            of_args[arg] = sizes[(i + arg) % KR_COUNT(sizes)];
        const kr__values values = {.sizes = of_args, .sizeof_t = 4, .grid = 100};
        if (!kr__expression_value(expression, &def->op, &values, &value, problem) && !problem[0])
            abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    kr__op_def *def;
    kr_error err;
    if (kr__op_parse("fuzz.cu", (const char *)bytes, n, &def, &err)) {
        if (err.status != KR_INVALID_ARGUMENT || !err.message[0])
            abort();
        return 0;
    }
    evaluate(def, def->cost_bytes);
    evaluate(def, def->cost_flops);
    for (size_t i = 0; i < def->op.n_args; i++)
        evaluate(def, def->minimums[i]);
    for (size_t i = 0; i < def->op.n_variants; i++) {
        const kr__launch_rule *rule = &def->variants[i].launch;
        evaluate(def, rule->shared);
        for (size_t k = 0; k < rule->n_extents; k++)
            evaluate(def, rule->extents[k]);
    }
    kr__op_free(&def);
    return 0;
}
