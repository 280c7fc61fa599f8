/* SPDX-License-Identifier: Apache-2.0 */
/* PTX text: the reader, the verifier and the printer. */
#include "fuzz.h"

#include <stdlib.h>

#include "ptx/front/ptx.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    ptx_module *module = NULL;
    ptx_problem problem;
    if (kr__ptx_parse((const char *)bytes, n, NULL, &module, &problem)) {
        kr__text text = {0};
        for (const ptx_function *function = module->functions; function; function = function->next)
            for (size_t i = 0; i < function->n_instrs; i++)
                kr__ptx_print_instr(function, &function->instrs[i], &text);
        kr__text_free(&text);
    } else if (!problem.kind || !problem.log.bytes) {
        abort();
    }
    kr__text_free(&problem.log);
    kr__ptx_module_free(&module);
    return 0;
}
