/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/select.h"

#include <string.h>

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
    const char suffix[2] = {c->arch.suffix, '\0'};
    text[0] = '\0';
    if (!c->variant_is_out && (c->shipped || c->arch.major))
        kr__format(text, 64, "%s %s_%d%s", c->shipped ? kr_image_kind_name(c->kind) : "nvrtc",
                   c->kind == KR_IMAGE_PTX ? "compute" : "sm", arch_of(c->arch), suffix);
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
    REFUSED
};

#define REASON(c, ...) kr__format((c)->reason, sizeof(c)->reason, __VA_ARGS__)

static int judge_cubin(kr__candidate *c, const kr_machine *machine)
{
    char own[KR_CC_TEXT_BYTES], device[KR_CC_TEXT_BYTES];
    kr_cc_format(c->arch, own);
    kr_cc_format(machine->cc, device);
    if (!kr_cc_cubin_runs_on(c->arch, machine->cc)) {
        REASON(c, "machine code for %s does not run on %s", own, device);
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

/* Can the driver read PTX of that ISA? */
static bool driver_reads(kr__candidate *c, const kr_machine *machine, int isa)
{
    const int newest = kr__driver_isa(machine->driver_version);
    if (!machine->driver_version || isa <= newest)
        return true;
    REASON(c, "PTX %d.%d is newer than the driver, which reads up to %d.%d (CUDA %d.%d)", isa / 10, isa % 10,
           newest / 10, newest % 10, machine->driver_version / 1000, machine->driver_version % 1000 / 10);
    return false;
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
    if (!driver_reads(c, machine, c->shipped->isa))
        return REFUSED;
    c->how = "ptx";
    REASON(c, "the driver compiles PTX %d.%d for %s", c->shipped->isa / 10, c->shipped->isa % 10, own);
    return c->arch.suffix == 'a' ? PTX_ALONE : c->arch.suffix ? PTX_FAMILY : PTX_BASE;
}

static int judge_nvrtc(kr__candidate *c, const kr_machine *machine)
{
    const int version = machine->nvrtc_version, device = arch_of(machine->cc);
    const int major = version / 1000, minor = version % 1000 / 10;
    char own[KR_CC_TEXT_BYTES];
    kr_cc_format(machine->cc, own);
    if (!machine->n_nvrtc_archs) {
        REASON(c, "there is no NVRTC to compile it");
        return REFUSED;
    }
    int lowest = machine->nvrtc_archs[0], best = 0;
    for (size_t i = 0; i < machine->n_nvrtc_archs; i++) {
        const int arch = machine->nvrtc_archs[i];
        lowest = arch < lowest ? arch : lowest;
        best = arch <= device && arch > best ? arch : best;
    }
    if (!best) {
        REASON(c, "the device is %s; NVRTC %d.%d begins at %d.%d", own, major, minor, lowest / 10,
               lowest % 10);
        return REFUSED;
    }
    c->arch = cc_of_arch(best);
    c->how = "nvrtc";
    if (best == device) {
        c->kind = KR_IMAGE_FATBIN;
        REASON(c, "NVRTC %d.%d compiles for exactly this device; not tried", major, minor);
        return NVRTC_EXACT;
    }
    c->kind = KR_IMAGE_PTX;
    if (!driver_reads(c, machine, kr__driver_isa(version)))
        return REFUSED;
    REASON(c, "NVRTC %d.%d does not know %s; the driver compiles its PTX for %d.%d; not tried", major, minor,
           own, best / 10, best % 10);
    return NVRTC_PTX;
}

/* Why the variant cannot be; false: nothing against it. */
static bool variant_is_out(const kr__variant *v, const kr_machine *machine, kr__candidate *c)
{
    char need[KR_CC_TEXT_BYTES], device[KR_CC_TEXT_BYTES];
    kr_cc_format(machine->cc, device);
    const int shared = machine->shared_bytes_per_block_optin ? machine->shared_bytes_per_block_optin
                                                             : published_shared_bytes(machine->cc);
    if (v->least_cc.major && kr_cc_compare(machine->cc, v->least_cc) < 0)
        REASON(c, "needs cc>=%s; the device is %s", kr_cc_format(v->least_cc, need), device);
    else if (v->below_cc.major && kr_cc_compare(machine->cc, v->below_cc) >= 0)
        REASON(c, "needs cc<%s; the device is %s", kr_cc_format(v->below_cc, need), device);
    else if (v->shared_bytes > (uint64_t)shared)
        REASON(c, "needs %llu bytes of shared memory a block; the device lets it have %d",
               (unsigned long long)v->shared_bytes, shared);
    else
        return false;
    return true;
}

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

static void consider(kr__selection *s, size_t first, int ranks[], kr__candidate c, const kr_machine *machine,
                     uint64_t align_bytes)
{
    if (s->n == KR_MAX_CANDIDATES)
        return;
    const int rank = !c.shipped                 ? judge_nvrtc(&c, machine)
                     : c.kind == KR_IMAGE_CUBIN ? judge_cubin(&c, machine)
                                                : judge_ptx(&c, machine);
    c.usable = rank != REFUSED;
    if (!c.usable)
        c.how = "none";
    else if (align_bytes) {
        const size_t used = strlen(c.reason);
        kr__format(c.reason + used, sizeof c.reason - used, "; where every buffer is aligned to %llu bytes",
                   (unsigned long long)align_bytes);
    }
    insert(s, first, ranks, &c, rank);
}

void kr__select(const kr__op_def *def, size_t type_index, const kr_machine *machine,
                const kr__embedded_image *images, size_t n_images, kr__selection *s)
{
    int ranks[KR_MAX_CANDIDATES];
    s->n = 0;
    for (size_t v = def->op.n_variants; v-- > 0 && s->n < KR_MAX_CANDIDATES;) {
        kr__candidate c = {.variant = v, .how = "none"};
        if ((c.variant_is_out = variant_is_out(&def->variants[v], machine, &c))) {
            s->list[s->n++] = c;
            continue;
        }
        const size_t first = s->n;
        consider(s, first, ranks, c, machine, def->variants[v].align_bytes);
        for (size_t i = 0; i < n_images; i++)
            if (images[i].variant == v && images[i].type == type_index) {
                c.shipped = &images[i];
                c.kind = images[i].kind;
                c.arch = images[i].arch;
                consider(s, first, ranks, c, machine, def->variants[v].align_bytes);
            }
    }
}
