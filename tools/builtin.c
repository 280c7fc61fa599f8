/* SPDX-License-Identifier: Apache-2.0 */

/*
 * builtin [--images=auto|required] [--cubins=80,90,...] [--nvrtc=PATH] [--depfile=FILE] OUT.c
 * FILE.cu...|FOLDER
 *
 * Writes the ops that are built into the library as C, for the build: a pack of them, and their C references.
 * A malformed descriptor ends it with "file:line: what". OUT.c is compiled with the folder of the .cu files
 * in the include path: it includes each of them once a type, for the C reference.
 * --images: the pack has images: PTX for the lowest arch that each (op, type, variant) can be for, and
 * machine code for each of --cubins; auto: where there is NVRTC. FOLDER: every .cu file of it. --depfile: for
 * Ninja, which then notices a file that is added to the folder.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "registry/pack.h"
#include "registry/preamble.h"
#include "registry/source.h"
#include "tools/tool.h"

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

/* The references of an op: OP_references. */
static void add_references(kr__text *out, const kr__op_def *def)
{
    const kr_op *op = &def->op;
    kr__text_add(out, "\n/* ---- %s ---- */\n\n", op->name);
    for (size_t i = 0; i < kr__op_n_instances(op); i++)
        add_reference(out, def, i);
    kr__text_add(out, "static const kr_reference_fn %s_references[] = {", op->name);
    for (size_t i = 0; i < kr__op_n_instances(op); i++)
        kr__text_add(out, op->n_types ? "%skr_%s_%s_unpack" : "%skr_%s_unpack", i ? ", " : "", op->name,
                     op->n_types ? kr_type_name(op->types[i]) : "");
    kr__text_add(out, "};\n");
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

/* In the order of the pack, which is that of the names. */
static void add_all(kr__text *out, const kr__op_def *const *defs, size_t n)
{
    kr__text_add(out, "/* Made by tools/builtin.c at build time. */\n"
                      "#include <float.h>\n#include <math.h>\n#include <stddef.h>\n#include <stdint.h>\n"
                      "#include <string.h>\n\n"
                      "#include \"registry/pack.h\"\n\n"
                      "#define KR_REFERENCE 1\n");
    for (size_t i = 0; i < n; i++)
        add_references(out, defs[i]);
    kr__text_add(out, "\nconst kr_reference_fn *const kr__builtin_references[] = {\n");
    for (size_t i = 0; i < n; i++)
        kr__text_add(out, "    %s_references,\n", defs[i]->op.name);
    kr__text_add(out, "};\n\n");
}

static kr_status write_c(const char *to, const kr__op_def *const *defs, size_t n, const char *pack,
                         size_t pack_bytes, kr_error *err)
{
    kr__text text = {0};
    char *c = NULL;
    size_t c_bytes;
    add_all(&text, defs, n);
    kr_status status = text.failed ? KR_FAIL(err, KR_OUT_OF_HOST_MEMORY, "no host memory for %s", to) : KR_OK;
    if (!status) {
        FILE *file = tool_memory_file(&c, &c_bytes);
        fwrite(text.data, 1, text.bytes, file);
        tool_print_bytes(file, "kr__builtin_pack", pack, pack_bytes);
        fclose(file);
        status = tool_write_file(to, c, c_bytes, err);
    }
    free(c);
    kr__text_free(&text);
    return status;
}

static kr_status embed(const char *to, const kr__op_def **defs, size_t n, kr_nvrtc *nvrtc,
                       const kr_pack_options *images, kr_error *err)
{
    char *pack = NULL;
    size_t pack_bytes;
    kr_status status = kr__pack_write(defs, n, nvrtc, NULL, images, &pack, &pack_bytes, err);
    if (!status)
        status = write_c(to, defs, n, pack, pack_bytes, err);
    free(pack);
    return status;
}

static kr_status read_ops(char *const *paths, size_t n, kr__op_def **defs, kr__text *files, kr_error *err)
{
    kr_status status = KR_OK;
    for (size_t i = 0; i < n && !status; i++) {
        status = kr__op_read(paths[i], &defs[i], files, err);
        if (!status)
            status = check_unique(defs, i + 1, err);
        if (!status)
            status = check_reference(defs[i], err);
    }
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

/* ---- the command line ---- */

enum { MOST_ARCHS = 32 };

typedef struct options {
    bool wants_images, needs_images; /* --images=auto, --images=required */
    kr_cc cubins[MOST_ARCHS];
    size_t n_cubins;
    const char *nvrtc, *depfile;
} options;

/* "80,90a" */
static kr_status read_cubins(const char *list, options *o, kr_error *err)
{
    for (size_t bytes; *list; list += bytes + (list[bytes] == ',')) {
        char word[KR_CC_TEXT_BYTES];
        bytes = strcspn(list, ",");
        kr__format(word, sizeof word, "%.*s", (int)bytes, list);
        if (o->n_cubins == MOST_ARCHS)
            return KR_FAIL(err, KR_INVALID_ARGUMENT, "--cubins: more than %d", MOST_ARCHS);
        const kr_status status = kr_cc_parse(word, &o->cubins[o->n_cubins++], err);
        if (status)
            return status;
    }
    return KR_OK;
}

/* Returns the index of the first word that is no option; 0: there is a wrong one. */
static int read_options(int argc, char **argv, options *o, kr_error *err)
{
    int at = 1;
    for (; at < argc && argv[at][0] == '-'; at++) {
        const char *equals = strchr(argv[at], '='), *value = equals ? equals + 1 : "";
        const size_t bytes = (size_t)(value - argv[at]);
        if (!strcmp(argv[at], "--images=auto"))
            o->wants_images = true;
        else if (!strcmp(argv[at], "--images=required"))
            o->wants_images = o->needs_images = true;
        else if (equals && !strncmp(argv[at], "--cubins=", bytes)) {
            if (read_cubins(value, o, err))
                return 0;
        } else if (equals && !strncmp(argv[at], "--nvrtc=", bytes))
            o->nvrtc = value;
        else if (equals && !strncmp(argv[at], "--depfile=", bytes))
            o->depfile = value;
        else
            return 0;
    }
    return at + 1 < argc ? at : 0;
}

static kr_status open_nvrtc(const options *o, kr_nvrtc **ret_nvrtc, kr_error *err)
{
    if (!o->wants_images)
        return KR_OK;
    const kr_status status = kr_nvrtc_open(o->nvrtc, ret_nvrtc, err);
    if (!status || o->needs_images)
        return status;
    fprintf(stderr, "builtin: no image is shipped, because there is no NVRTC: %s\n", err->message);
    return KR_OK;
}

static kr_status run(const options *o, const char *to, char *const *paths, size_t n, const char *folder,
                     kr_error *err)
{
    /* PTX for the lowest arch runs everywhere; what is asked for in machine code comes beside it. */
    const kr_cc lowest = {0};
    const kr_pack_options images = {.struct_size = sizeof images,
                                    .cubins = o->cubins,
                                    .n_cubins = o->n_cubins,
                                    .ptx = &lowest,
                                    .n_ptx = 1};
    kr_nvrtc *nvrtc = NULL;
    kr__text files = {0};
    kr__op_def **defs = kr__alloc(2 * n, sizeof *defs, err); /* as they are freed, and as they are sorted */
    if (!defs)
        return KR_OUT_OF_HOST_MEMORY;
    const kr__op_def **sorted = (const kr__op_def **)(defs + n);
    kr_status status = open_nvrtc(o, &nvrtc, err);
    if (!status)
        status = read_ops(paths, n, defs, &files, err);
    if (!status) {
        memcpy(sorted, defs, n * sizeof *defs);
        status = embed(to, sorted, n, nvrtc, &images, err);
    }
    if (status == KR_NOT_ON_THIS_MACHINE && nvrtc && !o->needs_images) {
        fprintf(stderr, "builtin: no image is shipped, because NVRTC does not do: %s\n", err->message);
        status = embed(to, sorted, n, NULL, &images, err);
    }
    if (!status && o->depfile)
        status = write_depfile(o->depfile, to, folder, &files, err);
    kr__text_free(&files);
    kr_nvrtc_close(&nvrtc);
    for (size_t i = 0; i < n; i++)
        kr__op_free(&defs[i]);
    free(defs);
    return status;
}

int main(int argc, char **argv)
{
    options o = {0};
    kr_error err = {0};
    const int at = read_options(argc, argv, &o, &err);
    if (!at) {
        fprintf(stderr,
                "%s%susage: builtin [--images=auto|required] [--cubins=LIST] [--nvrtc=PATH] [--depfile=FILE] "
                "OUT.c FILE.cu...|FOLDER\n",
                err.message, err.message[0] ? "\n" : "");
        return 2;
    }
    size_t n_paths = (size_t)(argc - at - 1);
    struct stat facts;
    char **found = NULL;
    kr_status status = KR_OK;
    if (n_paths == 1 && !stat(argv[at + 1], &facts) && S_ISDIR(facts.st_mode))
        status = kr__source_list(argv[at + 1], &found, &n_paths, &err);
    if (!status)
        status = run(&o, argv[at], found ? found : argv + at + 1, n_paths, found ? argv[at + 1] : NULL, &err);
    free(found);
    if (!status)
        return 0;
    /* As a compiler says it, so that editors find the line. */
    fprintf(stderr, "%s\n%s%s%s\n", err.message, err.log, err.log[0] ? "\n" : "", err.advice);
    return 1;
}
