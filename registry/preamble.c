/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/preamble.h"

#include <stdlib.h>
#include <string.h>

const char *kr__c_type(kr_type type)
{
    switch (type) {
    case KR_TYPE_U8:
        return "uint8_t";
    case KR_TYPE_I8:
        return "int8_t";
    case KR_TYPE_U16:
        return "uint16_t";
    case KR_TYPE_I16:
        return "int16_t";
    case KR_TYPE_U32:
        return "uint32_t";
    case KR_TYPE_I32:
        return "int32_t";
    case KR_TYPE_U64:
        return "uint64_t";
    case KR_TYPE_I64:
        return "int64_t";
    case KR_TYPE_F32:
        return "float";
    case KR_TYPE_F64:
        return "double";
    }
    return "?";
}

void kr__preamble_instance(kr__text *to, const kr_op *op, size_t type_index)
{
    if (!op->n_types) {
        kr__text_add(to, "#define KR_LOCAL(name) kr_%s_##name\n", op->name);
        return;
    }
    const kr_type type = op->types[type_index];
    kr__text_add(to,
                 "#define KR_LOCAL(name) kr_%s_%s_##name\n"
                 "#define T %s\n"
                 "#define KR_TYPE_%s 1\n",
                 op->name, kr_type_name(type), kr__c_type(type), kr_type_name(type));
}

void kr__preamble_instance_end(kr__text *to, const kr_op *op, size_t type_index)
{
    kr__text_add(to, "#undef KR_LOCAL\n");
    if (op->n_types)
        kr__text_add(to, "#undef T\n#undef KR_TYPE_%s\n", kr_type_name(op->types[type_index]));
}

/* T is a typedef here: as a macro it would break the templates of every header that comes after. */
static void device_preamble(kr__text *to, const kr_op *op, size_t type_index, size_t variant)
{
    kr__text_add(to,
                 "#include <stddef.h>\n"
                 "#include <stdint.h>\n"
                 "#define KR_LOCAL(name) name\n"
                 "#define KR_VARIANT_%s 1\n",
                 op->variants[variant].name);
    if (op->n_types)
        kr__text_add(to, "typedef %s T;\n#define KR_TYPE_%s 1\n", kr__c_type(op->types[type_index]),
                     kr_type_name(op->types[type_index]));
}

/* A variant is the kernel of its name. NVRTC lists what it made, but of LTO-IR. */
static kr_status check_kernel(const kr_op *op, size_t variant, const kr_compiled *compiled, kr_error *err)
{
    const char *wanted = op->variants[variant].name;
    if (compiled->kind == KR_IMAGE_LTOIR)
        return KR_OK;
    kr__text names = {0};
    bool found = false;
    for (size_t i = 0; i < compiled->n_entries; i++) {
        found |= strcmp(compiled->entries[i], wanted) == 0;
        kr__text_add(&names, "%s%s", i ? ", " : "", compiled->entries[i]);
    }
    if (!found) {
        KR_FAIL(err, KR_NOT_FOUND, "%s has no kernel \"%s\"%s%.600s", op->file, wanted,
                names.data ? "; it has " : "", names.data ? names.data : "");
        kr__error_advice(
            err, "Write extern \"C\" __global__ void %s(...) in %s: a variant's name is its kernel's.",
            wanted, op->file);
    }
    kr__text_free(&names);
    return found ? KR_OK : KR_NOT_FOUND;
}

kr_status kr__op_compile(kr_nvrtc *nvrtc, const kr__job *job, kr_compiled **ret_compiled, kr_error *err)
{
    static const char *const option = "--pre-include=kr_preamble.h";
    const kr__op_def *def = job->def;
    const size_t type_index = job->type_index, variant = job->variant;
    const kr_op *op = &def->op;
    const size_t n = def->headers.n + 1;
    kr__text text = {0};
    device_preamble(&text, op, type_index, variant);
    const char **names = kr__alloc(2 * n, sizeof *names, err), **texts = names ? names + n : NULL;
    kr_status status = names ? KR_OK : KR_OUT_OF_HOST_MEMORY;
    if (!status && text.failed)
        status = KR_FAIL(err, KR_OUT_OF_HOST_MEMORY, "no host memory to compile %s", op->file);
    if (!status) {
        names[0] = "kr_preamble.h";
        texts[0] = text.data;
        for (size_t i = 1; i < n; i++) {
            names[i] = def->headers.names[i - 1];
            texts[i] = def->headers.texts[i - 1];
        }
        const kr_compile_options options = {.struct_size = sizeof options,
                                            .kind = job->kind,
                                            .options = &option,
                                            .n_options = 1,
                                            .header_names = names,
                                            .header_texts = texts,
                                            .n_headers = n,
                                            .cache = job->cache,
                                            .only_find = job->only_find};
        kr_compiled *compiled = NULL;
        status = kr_compile(nvrtc, op->file, def->text, job->arch, &options, &compiled, err);
        if (!status)
            status = check_kernel(op, variant, compiled, err);
        if (status)
            kr_compiled_destroy(&compiled);
        else
            *ret_compiled = compiled;
    }
    free(names);
    kr__text_free(&text);
    if (!status)
        return KR_OK;
    char name[KR__MAX_FULL_NAME];
    kr__op_full_name(op, type_index, name);
    kr__error_op(err, name);
    if (err && strstr(err->advice, "-I option")) /* an op has no options */
        kr__error_advice(err, "Put the file beside %s and include it with quotes.", op->file);
    return kr__while(err, status, "compiling variant %s of %s", op->variants[variant].name, name);
}
