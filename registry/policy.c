/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/policy.h"

#include <stdlib.h>
#include <string.h>

#include "registry/internal.h"

/* The CUDA programming guide, "CUDA Environment Variables": the older name overrides the newer one. */
static const char *switched_on(const char *name, const char *other)
{
    const char *which = getenv(name) ? name : other, *text = getenv(which);
    return text && atoi(text) != 0 ? which : NULL;
}

static kr_status read_max_cc(kr_cc *ret_cc, kr_error *err)
{
    const char *text = getenv("KREGISTRY_MAX_CC");
    kr_cc cc;
    if (!text || !*text)
        return KR_OK;
    if (kr_cc_parse(text, &cc, NULL) || cc.suffix) {
        KR_FAIL(err, KR_INVALID_ARGUMENT, "KREGISTRY_MAX_CC is \"%.40s\", which is no compute capability",
                text);
        kr__error_advice(err, "Set it to one like 8.6, or unset it.");
        return KR_INVALID_ARGUMENT;
    }
    *ret_cc = cc;
    return KR_OK;
}

const char *kr__policy_next_op(const char **at, size_t *ret_bytes)
{
    const char *op = *at;
    if (!op || !*op)
        return NULL;
    *ret_bytes = strcspn(op, "=");
    const size_t whole = strcspn(op, ",");
    *at = op + whole + (op[whole] == ',');
    return op;
}

static bool is_name(const char *text, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_", text[i]))
            return false;
    return bytes > 0;
}

static kr_status read_variants(kr__policy *policy, kr__arena *arena, kr_error *err)
{
    const char *text = getenv("KREGISTRY_VARIANT");
    if (!text || !*text)
        return KR_OK;
    for (const char *at = text;; at++) {
        const size_t whole = strcspn(at, ","), op = strcspn(at, "=");
        if (op >= whole || !is_name(at, op) || !is_name(at + op + 1, whole - op - 1)) {
            KR_FAIL(err, KR_INVALID_ARGUMENT, "KREGISTRY_VARIANT has \"%.*s\", which is not OP=VARIANT",
                    whole > 80 ? 80 : (int)whole, at);
            kr__error_advice(err, "Write it as saxpy=vec4,gemm=tiled: ops without their types.");
            return KR_INVALID_ARGUMENT;
        }
        at += whole;
        if (!*at)
            break;
    }
    policy->variants = kr__arena_text(arena, text, strlen(text));
    return policy->variants ? KR_OK : KR_FAIL(err, KR_OUT_OF_HOST_MEMORY, "no host memory for a registry");
}

kr_status kr__policy_read(kr__policy *ret_policy, kr__arena *arena, kr_error *err)
{
    kr__policy policy = {.jit_forced = switched_on("CUDA_FORCE_PTX_JIT", "CUDA_FORCE_JIT"),
                         .jit_disabled = switched_on("CUDA_DISABLE_PTX_JIT", "CUDA_DISABLE_JIT")};
    kr_status status = read_max_cc(&policy.max_cc, err);
    if (!status)
        status = read_variants(&policy, arena, err);
    if (!status)
        *ret_policy = policy;
    return status;
}

kr_status kr__policy_variant(const kr__policy *policy, const kr_op *op, size_t *ret_variant, kr_error *err)
{
    size_t bytes;
    const char *at = policy->variants, *name;
    *ret_variant = SIZE_MAX;
    while ((name = kr__policy_next_op(&at, &bytes))) {
        if (strlen(op->name) != bytes || memcmp(op->name, name, bytes) != 0)
            continue;
        char variant[64];
        name += bytes + 1;
        kr__format(variant, sizeof variant, "%.*s", (int)strcspn(name, ","), name);
        const kr_status status = kr__variant_find(op, variant, ret_variant, err);
        if (status && err)
            kr__format(err->message, sizeof err->message, "KREGISTRY_VARIANT: %s has no variant \"%s\"",
                       op->name, variant);
        if (status)
            return status;
    }
    return KR_OK;
}
