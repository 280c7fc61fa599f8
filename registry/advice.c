/* SPDX-License-Identifier: Apache-2.0 */
/* What to change where nothing of a selection can run. */
#include "registry/select.h"

/* "cubin sm_80, ptx compute_90": what is shipped, of any variant, each kind and arch once. */
static void list_shipped(const kr__question *q, kr__text *to)
{
    for (size_t i = 0; i < q->n_images; i++) {
        const kr__shipped *s = &q->images[i];
        const kr__candidate c = {.shipped = s, .kind = s->kind, .arch = s->arch};
        char name[64];
        bool told = s->image->type != q->type_index;
        for (size_t k = 0; k < i && !told; k++) {
            const kr__shipped *before = &q->images[k];
            told = before->image->type == q->type_index && before->kind == s->kind &&
                   before->arch.suffix == s->arch.suffix && !kr_cc_compare(before->arch, s->arch);
        }
        if (!told)
            kr__text_add(to, "%s%s", to->bytes ? ", " : "", kr__candidate_image(&c, name));
    }
}

/* How it could be compiled for the machine after all. */
static const char *way_to_compile(const kr__question *q)
{
    const kr_machine *m = q->machine;
    if (!q->def->text)
        return "the source";
    if (!m->n_nvrtc_archs)
        return "let NVRTC be used";
    const bool too_old = m->cc.major * 10 + m->cc.minor < m->nvrtc_archs[0];
    return too_old ? "use an NVRTC of an earlier CUDA" : "use an NVRTC that knows the device";
}

static void advise_to_ship(const kr__question *q, kr_error *err)
{
    const kr_cc cc = q->machine->cc;
    kr__text shipped = {0};
    list_shipped(q, &shipped);
    kr__error_advice(err, "%s%s: add machine code for sm_%d%d, PTX for compute_%d%d or lower, or %s.",
                     shipped.data ? "Shipped are " : "Nothing is shipped", shipped.data ? shipped.data : "",
                     cc.major, cc.minor, cc.major, cc.minor, way_to_compile(q));
    kr__text_free(&shipped);
}

/* To a driver that takes the candidate, or else. */
static void advise_driver(const kr__question *q, const kr__candidate *c, kr_error *err)
{
    const kr_cc cc = q->machine->cc;
    char other[64] = "";
    if (q->def->text && !q->machine->n_nvrtc_archs)
        kr__format(other, sizeof other, ", or let NVRTC be used");
    else if (c->kind == KR_IMAGE_CUBIN)
        kr__format(other, sizeof other, ", or add PTX for compute_%d%d or lower", cc.major, cc.minor);
    kr__error_advice(err, "Update the driver to one for CUDA %d.%d%s.", c->needs_driver / 1000,
                     c->needs_driver % 1000 / 10, other);
}

/* To unset what refuses the candidate, or to ship what it lets through. */
static void advise_variable(const kr__question *q, const kr__candidate *c, kr_error *err)
{
    const kr_cc cc = q->machine->cc;
    char other[64] = "";
    if (c->variable == q->policy->jit_disabled)
        kr__format(other, sizeof other, ", or add machine code for sm_%d%d", cc.major, cc.minor);
    else if (c->variable == q->policy->jit_forced)
        kr__format(other, sizeof other, ", or add PTX for compute_%d%d or lower", cc.major, cc.minor);
    kr__error_advice(err, "Unset %s%s.", c->variable, other);
}

bool kr__selection_advise(const kr__question *q, const kr__selection *selection, size_t only, kr_error *err)
{
    const char *other = NULL;
    const kr__candidate *of_environment = NULL; /* that a variable alone refuses */
    const kr__candidate *of_driver = NULL;      /* that the least one takes */
    bool all_out = true;
    for (size_t i = 0; i < selection->n; i++) {
        const kr__candidate *c = &selection->list[i];
        if (only != SIZE_MAX && c->variant != only) {
            other = other || !c->usable ? other : q->def->op.variants[c->variant].name;
            continue;
        }
        of_environment = of_environment || !c->variable ? of_environment : c;
        if (c->needs_driver && (!of_driver || c->needs_driver < of_driver->needs_driver))
            of_driver = c;
        all_out &= c->variant_is_out;
    }
    if (of_environment)
        advise_variable(q, of_environment, err);
    else if (other)
        kr__error_advice(err, "Take variant %s, or leave the choice open.", other);
    else if (all_out)
        kr__error_advice(err, "Add a variant that asks for less.");
    else if (of_driver)
        advise_driver(q, of_driver, err);
    else {
        advise_to_ship(q, err);
        return true;
    }
    return false;
}
