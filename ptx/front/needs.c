/* SPDX-License-Identifier: Apache-2.0 */
/* What a module needs of .version and .target. All that asks for more than the oldest comes by here. */
#include "ptx/front/front.h"

#include <string.h>

void kr__ptx_begin_needs(ptx_parser *p, int isa, unsigned line)
{
    ptx_needs *needs = &p->module->needs;
    *needs = (ptx_needs){.isa = isa, .isa_line = line, .isa_form = p->module->target};
    needs->targets = kr__ptx_targets_at(p->module->isa);
    needs->target = kr__ptx_lowest_target(needs->targets, &needs->sm);
    needs->target_form = "";
}

void kr__ptx_need(ptx_parser *p, unsigned line, const char *form, int isa, uint64_t targets)
{
    ptx_needs *needs = &p->module->needs;
    const uint64_t left = needs->targets & targets;
    int sm = 0;
    const char *target = kr__ptx_lowest_target(left, &sm);
    const bool newer = isa > needs->isa, larger = target != needs->target;
    const char *kept = newer || larger ? kr__arena_text(&p->module->arena, form, strlen(form)) : "";
    if (!kept) {
        kr__ptx_no_memory(p);
        return;
    }
    needs->targets = left;
    if (newer) {
        needs->isa = isa;
        needs->isa_line = line;
        needs->isa_form = kept;
    }
    if (larger) {
        needs->target = target;
        needs->sm = sm;
        needs->target_line = line;
        needs->target_form = kept;
    }
}

bool kr__ptx_has(ptx_parser *p, unsigned line, const char *feature, int isa, int sm)
{
    const uint64_t targets = kr__ptx_targets((unsigned)sm);
    const bool new_enough = p->module->isa >= isa, has_target = targets & p->target;
    if (!new_enough)
        kr__ptx_error(p, line, "Feature '%s' requires PTX ISA .version %d.%d or later", feature, isa / 10,
                      isa % 10);
    if (!has_target && sm < PTX_FIRST_SET)
        kr__ptx_error(p, line, "Feature '%s' requires .target sm_%d or higher", feature, sm);
    else if (!has_target)
        kr__ptx_error(p, line, "Feature '%s' not supported on .target '%s'", feature, p->module->target);
    else if (new_enough && (isa || sm))
        kr__ptx_need(p, line, feature, isa, targets);
    return new_enough && has_target;
}

int kr__ptx_target_isa(const char *target)
{
    int sm, isa, needs;
    char suffix;
    return kr__ptx_target_named((ptx_text){target, strlen(target)}, &sm, &suffix, &isa, &needs) ? needs : 0;
}
