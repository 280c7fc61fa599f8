/* SPDX-License-Identifier: Apache-2.0 */
/* PTX text to older levels: what comes out is right there, and needs no more. */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include <kregistry/relevel.h>

#include "ptx/front/ptx.h"

static void again(const kr_releveled *first, const kr_relevel_options *options)
{
    kr_releveled *second = NULL;
    ptx_module *module = NULL;
    ptx_problem problem;
    if (!kr__ptx_parse(first->ptx, first->bytes, NULL, &module, &problem))
        abort();
    kr__text_free(&problem.log);
    kr__ptx_module_free(&module);
    if (kr_ptx_relevel(first->ptx, first->bytes, options, &second, NULL) || second->n_rewritten ||
        strcmp(first->ptx, second->ptx))
        abort();
    kr_releveled_destroy(&second);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    static const struct {
        int isa;
        kr_cc target;
    } goals[] = {{0, {0}}, {78, {0}}, {70, {7, 5, 0}}, {50, {6, 0, 0}}};
    for (size_t i = 0; i < KR_COUNT(goals); i++) {
        const kr_relevel_options options = {
            .struct_size = sizeof options, .isa = goals[i].isa, .target = goals[i].target};
        kr_releveled *r = NULL;
        kr_error err;
        if (!kr_ptx_relevel((const char *)bytes, n, &options, &r, &err))
            again(r, &options);
        else if (!err.message[0])
            abort();
        kr_releveled_destroy(&r);
    }
    return 0;
}
