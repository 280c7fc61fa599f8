/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/select.h"

#include <stdlib.h>
#include <string.h>

#include "ptx/compile/nvrtc.h"
#include "registry/pack.h"
#include "runtime/driver/driver.h"

/* CUDA C++ programming guide, "Technical Specifications per Compute Capability": the most shared memory that
 * a block may opt into. A CC that is not in the table gets what every device has. */
static int published_shared_bytes(kr_cc cc)
{
    static const struct {
        int cc, kib;
    } table[] = {{70, 96},  {72, 96},   {75, 64},   {80, 163},  {86, 99},  {87, 163}, {89, 99},
                 {90, 227}, {100, 227}, {103, 227}, {110, 227}, {120, 99}, {121, 99}};
    for (size_t i = 0; i < KR_COUNT(table); i++)
        if (table[i].cc == cc.major * 10 + cc.minor)
            return table[i].kib * 1024;
    return 48 * 1024;
}

static kr_cc cc_of_arch(int arch)
{
    return (kr_cc){arch / 10, arch % 10, 0};
}

static int arch_of(kr_cc cc)
{
    return cc.major * 10 + cc.minor;
}

char *kr__candidate_image(const kr__candidate *c, char text[64])
{
    static const char *const prefixes[] = {"compute", "sm", "sm", "lto"};
    const char suffix[2] = {c->arch.suffix, '\0'};
    text[0] = '\0';
    if (!c->variant_is_out && (c->shipped || c->arch.major))
        kr__format(text, 64, "%s %s_%d%s", c->shipped ? kr_image_kind_name(c->kind) : "nvrtc",
                   prefixes[c->kind], arch_of(c->arch), suffix);
    else if (!c->variant_is_out)
        kr__format(text, 64, "nvrtc");
    return text;
}

/* The rank of what may be used, best first. */
enum {
    CUBIN_ALONE,
    CUBIN_EXACT,
    CUBIN_FAMILY,
    CUBIN_COMPATIBLE,
    NVRTC_EXACT,
    PTX_ALONE,
    PTX_FAMILY,
    PTX_BASE,
    NVRTC_PTX,
    RELEVELED,
    NVRTC_RELEVELED,
    REFUSED
};

#define REASON(c, ...) kr__format((c)->reason, sizeof(c)->reason, __VA_ARGS__)

static bool is_older(const kr_machine *machine, int driver_version)
{
    return machine->driver_version && machine->driver_version < driver_version;
}

static int judge_cubin(kr__candidate *c, const kr_machine *machine)
{
    char own[KR_CC_TEXT_BYTES], device[KR_CC_TEXT_BYTES];
    kr_cc_format(c->arch, own);
    kr_cc_format(machine->cc, device);
    if (!kr_cc_cubin_runs_on(c->arch, machine->cc)) {
        REASON(c, "machine code for %s does not run on %s", own, device);
        return REFUSED;
    }
    const int toolkit = machine->driver_version ? kr__shipped_toolkit(c->shipped) : 0;
    const int driver = kr__toolkit_driver(toolkit);
    if (is_older(machine, driver)) {
        c->needs_driver = driver;
        REASON(c, "machine code of CUDA %d.%d is for drivers of CUDA %d.%d or later; this one is of %d.%d",
               toolkit / 1000, toolkit % 1000 / 10, driver / 1000, driver % 1000 / 10,
               machine->driver_version / 1000, machine->driver_version % 1000 / 10);
        return REFUSED;
    }
    if (c->arch.suffix == 'f') {
        c->how = "family";
        REASON(c, "machine code for the family of %s, which %s belongs to", own, device);
        return CUBIN_FAMILY;
    }
    if (kr_cc_compare(c->arch, machine->cc)) {
        c->how = "compatible";
        REASON(c, "machine code of the same major: %s runs on %s", own, device);
        return CUBIN_COMPATIBLE;
    }
    c->how = "cubin";
    REASON(c, "machine code for exactly this device");
    return c->arch.suffix ? CUBIN_ALONE : CUBIN_EXACT;
}

/* PTX that is newer than the driver is releveled when it is loaded, which its instructions may refuse. */
static bool is_newer(const kr_machine *machine, int isa)
{
    return machine->driver_version && isa > kr__driver_isa(machine->driver_version);
}

static int relevel(kr__candidate *c, const kr_machine *machine, int isa)
{
    const int newest = kr__driver_isa(machine->driver_version);
    char own[KR_CC_TEXT_BYTES];
    c->needs_driver = kr__isa_driver(isa);
    REASON(c, "%sPTX %d.%d for %s is releveled to %d.%d for the driver (CUDA %d.%d)",
           c->shipped ? "" : "NVRTC's ", isa / 10, isa % 10, kr_cc_format(c->arch, own), newest / 10,
           newest % 10, machine->driver_version / 1000, machine->driver_version % 1000 / 10);
    return c->shipped ? RELEVELED : NVRTC_RELEVELED;
}

static int judge_ptx(kr__candidate *c, const kr_machine *machine)
{
    char own[KR_CC_TEXT_BYTES], device[KR_CC_TEXT_BYTES];
    kr_cc_format(c->arch, own);
    kr_cc_format(machine->cc, device);
    if (!kr_cc_ptx_runs_on(c->arch, machine->cc)) {
        if (c->arch.suffix)
            REASON(c, "PTX for %s is for %s, not for %s", own,
                   c->arch.suffix == 'a' ? "that device alone" : "that family alone", device);
        else
            REASON(c, "PTX for %s is above the device's %s", own, device);
        return REFUSED;
    }
    c->how = "ptx";
    if (is_newer(machine, c->shipped->isa))
        return relevel(c, machine, c->shipped->isa);
    REASON(c, "the driver compiles PTX %d.%d for %s", c->shipped->isa / 10, c->shipped->isa % 10, own);
    return c->arch.suffix == 'a' ? PTX_ALONE : c->arch.suffix ? PTX_FAMILY : PTX_BASE;
}

/* The target that NVRTC is to compile for: the variant's own, or the highest that it knows up to `most`.
 * Major 0: none, with the reason. */
static kr_cc nvrtc_target(kr__candidate *c, const kr__question *q, kr_cc most)
{
    const kr_machine *machine = q->machine;
    const int major = machine->nvrtc_version / 1000, minor = machine->nvrtc_version % 1000 / 10;
    const kr_cc own = q->def->variants[c->variant].target;
    char text[KR_CC_TEXT_BYTES];
    if (own.major) {
        if (kr__nvrtc_knows(machine->nvrtc_archs, machine->n_nvrtc_archs, machine->nvrtc_version, own))
            return own;
        REASON(c, "NVRTC %d.%d does not know %s", major, minor, kr_cc_format(own, text));
        return (kr_cc){0};
    }
    int lowest = machine->nvrtc_archs[0], best = 0;
    for (size_t i = 0; i < machine->n_nvrtc_archs; i++) {
        const int arch = machine->nvrtc_archs[i];
        lowest = arch < lowest ? arch : lowest;
        best = arch <= arch_of(most) && arch > best ? arch : best;
    }
    if (best)
        return cc_of_arch(best);
    c->variable = lowest <= arch_of(machine->cc) ? "KREGISTRY_MAX_CC" : NULL;
    REASON(c, "%s %s; NVRTC %d.%d begins at %d.%d", c->variable ? "KREGISTRY_MAX_CC is" : "the device is",
           kr_cc_format(most, text), major, minor, lowest / 10, lowest % 10);
    return (kr_cc){0};
}

/* Machine code where it can be used, else PTX. */
static int judge_nvrtc(kr__candidate *c, const kr__question *q)
{
    const kr_machine *machine = q->machine;
    const kr__policy *policy = q->policy;
    const int major = machine->nvrtc_version / 1000, minor = machine->nvrtc_version % 1000 / 10;
    char own[KR_CC_TEXT_BYTES], device[KR_CC_TEXT_BYTES];
    if (!q->def->text) {
        REASON(c, "it came in a pack without its source");
        return REFUSED;
    }
    if (!machine->n_nvrtc_archs) {
        REASON(c, "there is no NVRTC to compile it");
        return REFUSED;
    }
    const bool capped = policy->max_cc.major && kr_cc_compare(policy->max_cc, machine->cc) < 0;
    c->arch = nvrtc_target(c, q, capped ? policy->max_cc : machine->cc);
    if (!c->arch.major)
        return REFUSED;
    kr_cc_format(c->arch, own);
    kr_cc_format(machine->cc, device);
    c->how = "nvrtc";
    const bool exact = c->arch.suffix || !kr_cc_compare(c->arch, machine->cc);
    const bool too_new = is_older(machine, kr__toolkit_driver(machine->nvrtc_version));
    if (exact && !policy->jit_forced && !too_new && !c->as_ptx) {
        c->kind = KR_IMAGE_FATBIN;
        if (c->arch.suffix)
            REASON(c, "NVRTC %d.%d compiles for %s", major, minor, own);
        else
            REASON(c, "NVRTC %d.%d compiles for exactly this device", major, minor);
        return NVRTC_EXACT;
    }
    c->kind = KR_IMAGE_PTX;
    if (is_newer(machine, kr__driver_isa(machine->nvrtc_version)))
        return relevel(c, machine, kr__driver_isa(machine->nvrtc_version));
    if (exact && policy->jit_forced)
        REASON(c, "%s is set: the driver compiles NVRTC's PTX for %s", policy->jit_forced, own);
    else if (exact)
        REASON(c, "the driver (CUDA %d.%d) takes no machine code of NVRTC %d.%d; it compiles its PTX for %s",
               machine->driver_version / 1000, machine->driver_version % 1000 / 10, major, minor, own);
    else if (capped)
        REASON(c, "KREGISTRY_MAX_CC is set: the driver compiles NVRTC's PTX for %s", own);
    else
        REASON(c, "NVRTC %d.%d does not know %s; the driver compiles its PTX for %s", major, minor, device,
               own);
    return NVRTC_PTX;
}

/* ---- what the environment takes away ---- */

static int refuse(kr__candidate *c, const char *variable, const char *why)
{
    c->variable = variable;
    REASON(c, "%s is set: %s", variable, why);
    return REFUSED;
}

static int obey(kr__candidate *c, const kr__policy *policy, int rank)
{
    char most[KR_CC_TEXT_BYTES];
    if (rank == REFUSED)
        return rank;
    if (c->kind == KR_IMAGE_CUBIN && policy->jit_forced)
        return refuse(c, policy->jit_forced, "machine code is passed over");
    if (c->kind == KR_IMAGE_PTX && policy->jit_disabled)
        return refuse(c, policy->jit_disabled, "the driver compiles no PTX");
    if (!policy->max_cc.major || kr_cc_compare(c->arch, policy->max_cc) <= 0)
        return rank;
    c->variable = "KREGISTRY_MAX_CC";
    REASON(c, "KREGISTRY_MAX_CC is %s", kr_cc_format(policy->max_cc, most));
    return REFUSED;
}

/* ---- variants ---- */

/* The least compute capability that the variant asks of the device, and of KREGISTRY_MAX_CC. */
static kr_cc asked_cc(const kr__variant *v)
{
    return kr_cc_compare(v->least_cc, v->target) < 0 ? v->target : v->least_cc;
}

/* Why the variant cannot be; false: nothing against it. */
static bool variant_is_out(const kr__question *q, kr__candidate *c)
{
    const kr_machine *machine = q->machine;
    const kr__variant *v = &q->def->variants[c->variant];
    const kr_cc most = q->policy->max_cc;
    char need[KR_CC_TEXT_BYTES], device[KR_CC_TEXT_BYTES];
    kr_cc_format(machine->cc, device);
    const int shared = machine->shared_bytes_per_block_optin ? machine->shared_bytes_per_block_optin
                                                             : published_shared_bytes(machine->cc);
    if (q->variant != SIZE_MAX && q->variant != c->variant) {
        c->variable = "KREGISTRY_VARIANT";
        REASON(c, "KREGISTRY_VARIANT asks for %s", q->def->op.variants[q->variant].name);
    } else if (v->target.major && !kr_cc_ptx_runs_on(v->target, machine->cc))
        REASON(c, "needs cc=%s; the device is %s", kr_cc_format(v->target, need), device);
    else if (v->least_cc.major && kr_cc_compare(machine->cc, v->least_cc) < 0)
        REASON(c, "needs cc>=%s; the device is %s", kr_cc_format(v->least_cc, need), device);
    else if (v->below_cc.major && kr_cc_compare(machine->cc, v->below_cc) >= 0)
        REASON(c, "needs cc<%s; the device is %s", kr_cc_format(v->below_cc, need), device);
    else if (machine->driver_version && machine->driver_version < v->least_driver)
        REASON(c, "needs driver>=%d.%d; the driver is CUDA %d.%d", v->least_driver / 1000,
               v->least_driver % 1000 / 10, machine->driver_version / 1000,
               machine->driver_version % 1000 / 10);
    else if (v->shared_bytes > (uint64_t)shared)
        REASON(c, "needs %llu bytes of shared memory a block; the device lets it have %d",
               (unsigned long long)v->shared_bytes, shared);
    else if (most.major && kr_cc_compare(most, asked_cc(v)) < 0) {
        c->variable = "KREGISTRY_MAX_CC";
        REASON(c, "needs %s; KREGISTRY_MAX_CC is %s", kr_cc_format(asked_cc(v), need),
               kr_cc_format(most, device));
    } else
        return false;
    return true;
}

/* ---- the order ---- */

/* Where a candidate of this rank goes: behind those of its variant that are as good. */
static void insert(kr__selection *s, size_t first, int ranks[], const kr__candidate *c, int rank)
{
    size_t at = s->n++;
    for (; at > first; at--) {
        const bool better = rank < ranks[at - 1] ||
                            (rank == ranks[at - 1] && kr_cc_compare(c->arch, s->list[at - 1].arch) > 0);
        if (!better)
            break;
        s->list[at] = s->list[at - 1];
        ranks[at] = ranks[at - 1];
    }
    s->list[at] = *c;
    ranks[at] = rank;
}

static int judge(kr__candidate *c, const kr__question *q)
{
    if (!c->shipped)
        return judge_nvrtc(c, q);
    switch (c->kind) {
    case KR_IMAGE_CUBIN:
        return judge_cubin(c, q->machine);
    case KR_IMAGE_PTX:
        return judge_ptx(c, q->machine);
    default:
        REASON(c, "LTO-IR is not loaded but linked, which the registry does not do");
        return REFUSED;
    }
}

static void consider(kr__selection *s, size_t first, int ranks[], kr__candidate c, const kr__question *q)
{
    const uint64_t align_bytes = q->def->variants[c.variant].align_bytes;
    const int rank = obey(&c, q->policy, judge(&c, q));
    c.usable = rank != REFUSED;
    if (!c.usable)
        c.how = "none";
    else if (align_bytes)
        kr__append(c.reason, sizeof c.reason, "; where every buffer is aligned to %llu bytes",
                   (unsigned long long)align_bytes);
    insert(s, first, ranks, &c, rank);
}

static void select_variant(const kr__question *q, size_t variant, kr__selection *s, int ranks[])
{
    kr__candidate c = {.variant = variant, .how = "none"};
    const size_t first = s->n;
    if ((c.variant_is_out = variant_is_out(q, &c))) {
        s->list[s->n++] = c;
        return;
    }
    consider(s, first, ranks, c, q);
    /* A driver that is older may still refuse the machine code of an NVRTC, or want the PTX beside it. */
    c.as_ptx = is_older(q->machine, q->machine->nvrtc_version);
    if (c.as_ptx && s->list[first].usable && s->list[first].kind == KR_IMAGE_FATBIN)
        consider(s, first, ranks, c, q);
    for (size_t i = 0; i < q->n_images; i++) {
        const kr__shipped *shipped = &q->images[i];
        if (shipped->image->variant != variant || shipped->image->type != q->type_index)
            continue;
        c.shipped = shipped;
        c.kind = shipped->kind;
        c.arch = shipped->arch;
        consider(s, first, ranks, c, q);
    }
}

kr_status kr__select(const kr__question *q, kr__selection **ret_selection, kr_error *err)
{
    const size_t most = 2 * q->def->op.n_variants + q->n_images;
    kr__selection *s = kr__alloc(1, sizeof *s + most * sizeof s->list[0], err);
    int *ranks = kr__alloc(most, sizeof *ranks, err);
    for (size_t v = q->def->op.n_variants; s && ranks && v-- > 0;)
        select_variant(q, v, s, ranks);
    if (!s || !ranks) {
        free(s);
        free(ranks);
        return KR_OUT_OF_HOST_MEMORY;
    }
    free(ranks);
    *ret_selection = s;
    return KR_OK;
}

void kr__selection_look(const kr__question *question, kr__selection *selection)
{
    const int driver = question->machine->driver_version;
    kr_error why;
    for (size_t i = 0; i < selection->n; i++) {
        kr__candidate *c = &selection->list[i];
        if (!c->usable || !c->shipped)
            continue;
        if (kr__stored_check(&c->shipped->image->stored, &why))
            REASON(c, "%s", why.message);
        else if (c->needs_driver && !kr__shipped_relevels(c->shipped, driver, &why))
            REASON(c, "PTX %d.%d is newer than the driver (CUDA %d.%d): %s", c->shipped->isa / 10,
                   c->shipped->isa % 10, driver / 1000, driver % 1000 / 10, why.message);
        else
            continue;
        c->usable = false;
        c->how = "none";
    }
}
