/* SPDX-License-Identifier: Apache-2.0 */

/*
 * embed [--ptx=auto|required] [--nvrtc=PATH] [--depfile=FILE] OUT.c FILE.cu...|FOLDER
 *
 * Writes the ops as C, for the build. A malformed descriptor ends it with "file:line: what". OUT.c is
 * compiled with the folder of the .cu files in the include path: it includes each of them once a type, for
 * the C reference.
 * --ptx: also compiles every (op, type, variant) to PTX for the lowest arch that it can be for, and embeds
 * that; auto: where there is NVRTC.
 * FOLDER: every .cu file of it. --depfile: for Ninja, which then notices a file that is added to the folder.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "ptx/compile/nvrtc.h"
#include "ptx/image/image.h"
#include "registry/descriptor.h"
#include "registry/preamble.h"
#include "registry/signature.h"
#include "registry/source.h"
#include "tools/tool.h"

/* A C string literal, one source line a line. */
static void add_literal(kr__text *out, const char *text, size_t bytes)
{
    bool open = false;
    for (size_t i = 0; i < bytes; i++) {
        if (!open)
            kr__text_add(out, "    \"");
        open = true;
        const unsigned char c = (unsigned char)text[i];
        if (c == '\n') {
            kr__text_add(out, "\\n\"\n");
            open = false;
        } else if (c == '"' || c == '\\' || c == '?') {
            kr__text_add(out, "\\%c", c);
        } else if (c < ' ' || c > '~') {
            kr__text_add(out, "\\%03o", c);
        } else {
            kr__text_add_bytes(out, text + i, 1);
        }
    }
    kr__text_add(out, open ? "\"" : "    \"\"");
}

/* What reference() must be, so that the compiler names the line where it is something else. */
static void add_prototype(kr__text *out, const kr__op_def *def)
{
    const kr_op *op = &def->op;
    kr__text_add(out, "static void reference(");
    for (size_t i = 0; i < op->n_args; i++) {
        const kr_op_arg *arg = &op->args[i];
        kr__text_add(out, "%s%s%s%s", i ? ", " : "", arg->shape && arg->role == KR_ROLE_IN ? "const " : "",
                     def->arg_is_t[i] ? "T" : kr__c_type(def->arg_types[i]), arg->shape ? " *" : "");
    }
    kr__text_add(out, ");\n");
}

/* reference() called with the arguments out of an array of pointers. */
static void add_reference(kr__text *out, const kr__op_def *def, size_t type_index)
{
    const kr_op *op = &def->op;
    kr__preamble_instance(out, op, type_index);
    kr__text_add(out, "#define reference KR_LOCAL(reference)\n");
    add_prototype(out, def);
    kr__text_add(out,
                 "#include \"%s\"\n"
                 "static void KR_LOCAL(unpack)(void *const args[])\n{\n    reference(",
                 op->file);
    for (size_t i = 0; i < op->n_args; i++) {
        const char *comma = i ? ", " : "";
        if (op->args[i].shape)
            kr__text_add(out, "%sargs[%zu]", comma, i);
        else
            kr__text_add(out, "%s*(const %s *)args[%zu]", comma,
                         def->arg_is_t[i] ? "T" : kr__c_type(def->arg_types[i]), i);
    }
    kr__text_add(out, ");\n}\n#undef reference\n");
    kr__preamble_instance_end(out, op, type_index);
}

/* What the op includes: OP_header_names, OP_header_texts. */
static void add_headers(kr__text *out, const kr__op_def *def)
{
    const kr__headers *h = &def->headers;
    const char *name = def->op.name;
    for (int texts = 0; texts < 2 && h->n; texts++) {
        kr__text_add(out, "static const char *const %s_header_%s[] = {\n", name, texts ? "texts" : "names");
        for (size_t i = 0; i < h->n; i++) {
            const char *value = texts ? h->texts[i] : h->names[i];
            add_literal(out, value, strlen(value));
            kr__text_add(out, ",\n");
        }
        kr__text_add(out, "};\n");
    }
}

static void add_op(kr__text *out, const kr__op_def *def)
{
    const kr_op *op = &def->op;
    kr__text_add(out, "\n/* ---- %s ---- */\n\n", op->name);
    for (size_t i = 0; i < kr__op_n_instances(op); i++)
        add_reference(out, def, i);
    kr__text_add(out, "static const kr_reference_fn %s_references[] = {", op->name);
    for (size_t i = 0; i < kr__op_n_instances(op); i++)
        kr__text_add(out, op->n_types ? "%skr_%s_%s_unpack" : "%skr_%s_unpack", i ? ", " : "", op->name,
                     op->n_types ? kr_type_name(op->types[i]) : "");
    kr__text_add(out, "};\nstatic const char %s_text[] =\n", op->name);
    add_literal(out, def->text, def->text_bytes);
    kr__text_add(out, ";\n");
    add_headers(out, def);
}

/* ---- PTX ---- */

/* The lowest arch that NVRTC knows and the variant can be for; false: none. */
static bool lowest_arch(kr_nvrtc *nvrtc, const kr__variant *variant, kr_cc *ret_arch)
{
    const kr_nvrtc_info info = kr_nvrtc_get_info(nvrtc);
    *ret_arch = variant->target;
    if (variant->target.major)
        return kr__nvrtc_knows(info.archs, info.n_archs, info.major * 1000 + info.minor * 10, *ret_arch);
    for (size_t i = 0; i < info.n_archs; i++) {
        *ret_arch = (kr_cc){info.archs[i] / 10, info.archs[i] % 10, 0};
        if (kr_cc_compare(*ret_arch, variant->least_cc) >= 0)
            return true;
    }
    return false;
}

/* Writes the text of one image, and its row of the table. */
static kr_status add_image(kr__text *out, kr__text *rows, const kr__op_def *def, size_t type_index,
                           size_t variant, kr_nvrtc *nvrtc, kr_error *err)
{
    kr_cc arch;
    kr_compiled *compiled = NULL;
    if (!lowest_arch(nvrtc, &def->variants[variant], &arch))
        return KR_OK;
    kr_status status = kr__op_compile(nvrtc, def, type_index, variant, arch, KR_IMAGE_PTX, &compiled, err);
    if (status)
        return status;
    status = kr__signature_check_ptx(def, type_index, variant, compiled->ptx, strlen(compiled->ptx), err);
    if (!status) {
        const size_t bytes = strlen(compiled->ptx);
        kr__ptx_head head = {0};
        kr__ptx_head_read(compiled->ptx, bytes, &head);
        char name[160];
        kr__format(name, sizeof name, "%s_%zu_%s_ptx", def->op.name, type_index,
                   def->op.variants[variant].name);
        kr__text_add(out, "static const char %s[] =\n", name);
        add_literal(out, compiled->ptx, bytes);
        kr__text_add(out, ";\n");
        kr__text_add(rows, "    {%zu, %zu, KR_IMAGE_PTX, {%d, %d, %d}, %d, %s, sizeof %s - 1},\n", type_index,
                     variant, arch.major, arch.minor, arch.suffix, head.isa, name, name);
    }
    kr_compiled_destroy(&compiled);
    return status;
}

static kr_status add_images(kr__text *out, const kr__op_def *def, kr_nvrtc *nvrtc, bool *ret_any,
                            kr_error *err)
{
    kr__text rows = {0};
    kr_status status = KR_OK;
    for (size_t t = 0; t < kr__op_n_instances(&def->op); t++)
        for (size_t v = 0; v < def->op.n_variants && nvrtc && !status; v++)
            status = add_image(out, &rows, def, t, v, nvrtc, err);
    if (rows.bytes)
        kr__text_add(out, "static const kr__embedded_image %s_images[] = {\n%s};\n", def->op.name, rows.data);
    *ret_any = rows.bytes > 0;
    out->failed |= rows.failed;
    kr__text_free(&rows);
    return status;
}

/* ---- the whole ---- */

static kr_status check_unique(kr__op_def *const *defs, size_t n, kr_error *err)
{
    for (size_t i = 0; i + 1 < n; i++)
        if (!strcmp(defs[i]->op.name, defs[n - 1]->op.name))
            return KR_FAIL(err, KR_INVALID_ARGUMENT, "%s:1: the op name \"%s\" is taken by %s",
                           defs[n - 1]->op.file, defs[i]->op.name, defs[i]->op.file);
    return KR_OK;
}

static kr_status check_reference(const kr__op_def *def, kr_error *err)
{
    if (strstr(def->text, "#ifdef KR_REFERENCE") && strstr(def->text, "void reference("))
        return KR_OK;
    KR_FAIL(err, KR_INVALID_ARGUMENT, "%s:1: there is no C reference, which op %s is verified against",
            def->op.file, def->op.name);
    kr__error_advice(err,
                     "Add #ifdef KR_REFERENCE, static void reference(...) with the op's arguments, #endif.");
    return KR_INVALID_ARGUMENT;
}

static kr_status add_all(kr__text *out, kr__op_def *const *defs, size_t n, kr_nvrtc *nvrtc, kr_error *err)
{
    kr__text table = {0};
    kr_status status = KR_OK;
    kr__text_add(out, "/* Made by tools/embed.c at build time. */\n"
                      "#include <float.h>\n#include <math.h>\n#include <stddef.h>\n#include <stdint.h>\n"
                      "#include <string.h>\n\n"
                      "#include \"registry/embedded.h\"\n\n"
                      "#define KR_REFERENCE 1\n");
    for (size_t i = 0; i < n && !status; i++) {
        const char *name = defs[i]->op.name;
        bool any = false;
        add_op(out, defs[i]);
        status = add_images(out, defs[i], nvrtc, &any, err);
        kr__text_add(&table, "    {\"%s\", %s_text, sizeof %s_text - 1, ", defs[i]->op.file, name, name);
        if (defs[i]->headers.n)
            kr__text_add(&table, "{%zu, %s_header_names, %s_header_texts}, ", defs[i]->headers.n, name, name);
        else
            kr__text_add(&table, "{0, NULL, NULL}, ");
        kr__text_add(&table, "%s_references, ", name);
        kr__text_add(&table, any ? "%s_images, sizeof %s_images / sizeof %s_images[0]},\n" : "NULL, 0},\n",
                     name, name, name);
    }
    kr__text_add(out,
                 "\nconst kr__embedded_op kr__embedded_ops[] = {\n%s    {NULL, NULL, 0, {0, NULL, NULL}, "
                 "NULL, NULL, 0}};\n"
                 "const size_t kr__n_embedded_ops = %zu;\n",
                 table.data ? table.data : "", n);
    out->failed |= table.failed;
    kr__text_free(&table);
    return status;
}

static kr_status embed(const char *to, char *const *paths, size_t n, kr__text *files, kr_nvrtc *nvrtc,
                       kr_error *err)
{
    kr__text out = {0};
    kr_status status = KR_OK;
    size_t n_read = 0;
    kr__op_def **defs = kr__alloc(n, sizeof *defs, err);
    if (!defs)
        return KR_OUT_OF_HOST_MEMORY;
    while (n_read < n && !status) {
        status = kr__op_read(paths[n_read], &defs[n_read], files, err);
        n_read += !status;
        if (!status)
            status = check_unique(defs, n_read, err);
        if (!status)
            status = check_reference(defs[n_read - 1], err);
    }
    if (!status)
        status = add_all(&out, defs, n, nvrtc, err);
    if (!status)
        status = out.failed ? KR_FAIL(err, KR_OUT_OF_HOST_MEMORY, "no host memory for %s", to)
                            : tool_write_file(to, out.data, out.bytes, err);
    while (n_read)
        kr__op_free(&defs[--n_read]);
    free(defs);
    kr__text_free(&out);
    return status;
}

/* A folder is one of the inputs: its time changes when a file comes or goes. */
static kr_status write_depfile(const char *depfile, const char *to, const char *folder, const kr__text *files,
                               kr_error *err)
{
    kr__text text = {0};
    kr__text_add(&text, "%s:%s%s%s\n", to, folder ? " " : "", folder ? folder : "",
                 files->data ? files->data : "");
    const kr_status status = text.failed || files->failed
                                 ? KR_FAIL(err, KR_OUT_OF_HOST_MEMORY, "no host memory for %s", depfile)
                                 : tool_write_file(depfile, text.data, text.bytes, err);
    kr__text_free(&text);
    return status;
}

typedef enum ptx_mode { PTX_NO, PTX_AUTO, PTX_REQUIRED } ptx_mode;

static kr_status open_nvrtc(ptx_mode mode, const char *path, kr_nvrtc **ret_nvrtc, kr_error *err)
{
    if (mode == PTX_NO)
        return KR_OK;
    const kr_status status = kr_nvrtc_open(path, ret_nvrtc, err);
    if (!status || mode == PTX_REQUIRED)
        return status;
    fprintf(stderr, "embed: no PTX is shipped, because there is no NVRTC: %s\n", err->message);
    return KR_OK;
}

int main(int argc, char **argv)
{
    ptx_mode mode = PTX_NO;
    const char *path = NULL, *depfile = NULL;
    int at = 1;
    for (; at < argc && argv[at][0] == '-'; at++) {
        if (!strcmp(argv[at], "--ptx=auto"))
            mode = PTX_AUTO;
        else if (!strcmp(argv[at], "--ptx=required"))
            mode = PTX_REQUIRED;
        else if (!strncmp(argv[at], "--nvrtc=", 8))
            path = argv[at] + 8;
        else if (!strncmp(argv[at], "--depfile=", 10))
            depfile = argv[at] + 10;
        else
            at = argc;
    }
    if (at + 1 >= argc) {
        fprintf(
            stderr,
            "usage: embed [--ptx=auto|required] [--nvrtc=PATH] [--depfile=FILE] OUT.c FILE.cu...|FOLDER\n");
        return 2;
    }
    kr_error err = {0};
    kr_nvrtc *nvrtc = NULL;
    kr_status status = open_nvrtc(mode, path, &nvrtc, &err);
    const char *to = argv[at];
    size_t n_paths = (size_t)(argc - at - 1);
    struct stat facts;
    char **found = NULL;
    if (!status && n_paths == 1 && !stat(argv[at + 1], &facts) && S_ISDIR(facts.st_mode))
        status = kr__source_list(argv[at + 1], &found, &n_paths, &err);
    char *const *paths = found ? found : argv + at + 1;
    kr__text files = {0};
    if (!status)
        status = embed(to, paths, n_paths, &files, nvrtc, &err);
    if (status == KR_NOT_ON_THIS_MACHINE && mode == PTX_AUTO) {
        fprintf(stderr, "embed: no PTX is shipped, because NVRTC does not work: %s\n", err.message);
        kr__text_free(&files);
        status = embed(to, paths, n_paths, &files, NULL, &err);
    }
    if (!status && depfile)
        status = write_depfile(depfile, to, found ? argv[at + 1] : NULL, &files, &err);
    kr__text_free(&files);
    kr_nvrtc_close(&nvrtc);
    free(found);
    if (!status)
        return 0;
    /* As a compiler says it, so that editors find the line. */
    fprintf(stderr, "%s\n%s%s%s\n", err.message, err.log, err.log[0] ? "\n" : "", err.advice);
    return 1;
}
