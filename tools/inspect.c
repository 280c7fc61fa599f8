/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli.h"

/* ---- what both ways of saying it need ---- */

static unsigned product(const unsigned of[3])
{
    return of[0] * of[1] * of[2];
}

/* A block of the size that is required is the largest there is. 0: no bound is written. */
static unsigned max_threads(const kr_image_kernel *kernel)
{
    return product(kernel->required_threads) ? product(kernel->required_threads)
                                             : product(kernel->max_threads);
}

static const char *known_version(int version, char text[16])
{
    return version ? version_text(version, text) : "";
}

static const char *known_arch(kr_image_kind kind, kr_cc arch, char text[24])
{
    return arch.major ? arch_text(kind, arch, text) : "";
}

/* ---- JSON ---- */

static json_t *positive(uint64_t value)
{
    return value ? json_integer((json_int_t)value) : json_null();
}

/* Kernels and variables come by the hundred thousand: they are written, not made first. */

static void add_integer(FILE *to, const char *key, uint64_t value, bool is_known)
{
    if (is_known)
        fprintf(to, ", \"%s\": %" JSON_INTEGER_FORMAT, key, (json_int_t)value);
    else
        fprintf(to, ", \"%s\": null", key);
}

static void add_extent(FILE *to, const char *key, const unsigned of[3])
{
    fprintf(to, ", \"%s\": ", key);
    add_json(to, product(of) ? json_dim3(of) : json_null(), 0);
}

static void add_kernel(FILE *to, const kr_image_kernel *kernel, bool is_machine_code)
{
    fputs("{\"name\": ", to);
    add_json(to, json_any_text(kernel->name), 0);
    fputs(", \"params\": [", to);
    for (size_t i = 0; i < kernel->n_params; i++)
        fprintf(to, "%s{\"offset\": %" JSON_INTEGER_FORMAT ", \"size\": %" JSON_INTEGER_FORMAT "}",
                i ? ", " : "", (json_int_t)kernel->params[i].offset, (json_int_t)kernel->params[i].bytes);
    fputs("]", to);
    add_integer(to, "param_bytes", kernel->param_bytes, true);
    add_integer(to, "max_threads", max_threads(kernel), max_threads(kernel));
    add_extent(to, "required_threads", kernel->required_threads);
    add_extent(to, "cluster", kernel->cluster);
    add_integer(to, "max_cluster", kernel->max_cluster, kernel->max_cluster);
    add_integer(to, "max_registers", (unsigned)kernel->max_registers, kernel->max_registers);
    add_integer(to, "registers", (unsigned)kernel->registers, is_machine_code);
    add_integer(to, "shared_bytes", kernel->shared_bytes, is_machine_code);
    add_integer(to, "local_bytes", kernel->local_bytes, is_machine_code);
    add_integer(to, "barriers", (unsigned)kernel->barriers, is_machine_code);
    add_integer(to, "code_bytes", kernel->code_bytes, is_machine_code);
    fputs("}", to);
}

static void add_variable(FILE *to, const kr_image_variable *variable)
{
    fputs("{\"name\": ", to);
    add_json(to, json_any_text(variable->name), 0);
    add_integer(to, "bytes", variable->bytes, variable->bytes);
    fprintf(to, ", \"space\": \"%s\"}", variable->is_const ? "const" : "global");
}

/* Its members before those of what it holds. */
static json_t *place_json(const kr_image_info *info)
{
    char isa[16], arch[24];
    return json_pack("{s:s, s:o, s:o, s:I, s:b, s:s, s:I, s:I}", "kind", kr_image_kind_name(info->kind),
                     "arch", json_text(known_arch(info->kind, info->arch, arch)), "isa",
                     json_text(isa_text(info->isa, isa)), "bytes", (json_int_t)info->bytes, "compressed",
                     info->compression != KR_STORED, "compression", kr_compression_name(info->compression),
                     "stored_bytes", (json_int_t)info->stored_bytes, "offset", (json_int_t)info->offset);
}

/* Those after them. */
static json_t *needs_json(const kr_image_info *info, const kr_image_contents *c)
{
    char min_isa[16], driver[16], min_driver[16], toolkit[16], min_target[24];
    const bool is_cubin = info->kind == KR_IMAGE_CUBIN;
    json_t *needs = json_object();
    const struct {
        const char *key, *text;
    } texts[] = {{"min_isa", isa_text(c->min_isa, min_isa)},
                 {"min_target", known_arch(info->kind, c->min_target, min_target)},
                 {"min_driver", known_version(c->min_driver, min_driver)},
                 {"driver", known_version(c->driver, driver)},
                 {"toolkit", known_version(c->toolkit, toolkit)},
                 {"member", info->member},
                 {"section", info->section},
                 {"name", info->name},
                 {"options", info->options},
                 {"flags", info->flags}};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        json_object_set_new(needs, texts[i].key, json_text(texts[i].text));
    json_object_set_new(needs, "abi", positive((unsigned)c->abi));
    json_object_set_new(needs, "address_bits", positive((unsigned)c->address_bits));
    json_object_set_new(needs, "fatbin_kind", positive(info->fatbin_kind));
    json_object_set_new(needs, "relocatable", is_cubin ? json_boolean(c->is_relocatable) : json_null());
    return needs;
}

/* ---- text ---- */

static void print_kernel(const kr_image_kernel *kernel, bool is_machine_code)
{
    printf("    ");
    put_text(stdout, kernel->name);
    printf("(");
    for (size_t i = 0; i < kernel->n_params; i++)
        printf("%s%zu:%zu", i ? " " : "", kernel->params[i].offset, kernel->params[i].bytes);
    printf(")");
    if (is_machine_code)
        printf(", %d registers, %zu bytes shared, %zu local", kernel->registers, kernel->shared_bytes,
               kernel->local_bytes);
    const unsigned *required = kernel->required_threads, *cluster = kernel->cluster;
    if (product(required))
        printf(", %ux%ux%u threads", required[0], required[1], required[2]);
    else if (max_threads(kernel))
        printf(", at most %u threads", max_threads(kernel));
    if (product(cluster))
        printf(", clusters of %ux%ux%u", cluster[0], cluster[1], cluster[2]);
    if (kernel->max_cluster)
        printf(", clusters of at most %u", kernel->max_cluster);
    printf("\n");
}

static void print_said(const char *what, const char *text)
{
    if (!*text)
        return;
    printf(", %s", what);
    put_text(stdout, text);
}

static void print_image(const kr_image_info *info, const kr_image_contents *c, size_t index)
{
    char arch[24], text[24];
    const bool is_cubin = info->kind == KR_IMAGE_CUBIN;
    const char *target = known_arch(info->kind, info->arch, arch);
    printf("  %zu: %s%s%s, %zu bytes", index, kr_image_kind_name(info->kind), *target ? " " : "", target,
           info->bytes);
    if (info->compression != KR_STORED)
        printf(", %s of %zu", kr_compression_name(info->compression), info->stored_bytes);
    printf(", at 0x%zx", info->offset);
    print_said("of ", info->member);
    print_said("in ", info->section);
    print_said("ISA ", isa_text(info->isa, text));
    print_said("toolkit ", known_version(c->toolkit, text));
    print_said("driver ", known_version(c->driver, text));
    if (c->is_relocatable)
        printf(", relocatable");
    print_said("made of ", info->name);
    print_said("options ", info->options);
    if (c->address_bits == 32)
        printf(", 32-bit addresses");
    if (c->min_isa) {
        printf("; needs ISA %s", isa_text(c->min_isa, text));
        print_said("", known_arch(info->kind, c->min_target, text));
        print_said("driver ", known_version(c->min_driver, text));
    } else if (info->kind == KR_IMAGE_PTX) {
        printf("; what it needs is told by `kregistry relevel --lowest`");
    }
    printf("\n");
    for (size_t i = 0; i < c->n_kernels; i++)
        print_kernel(&c->kernels[i], is_cubin);
    for (size_t i = 0; i < c->n_variables; i++) {
        printf("    %s ", c->variables[i].is_const ? "const" : "global");
        put_text(stdout, c->variables[i].name);
        printf(", %zu bytes\n", c->variables[i].bytes);
    }
}

/* ---- the command ---- */

/* What a pack says of an image; "" where it lies in none. */
typedef struct image_origin {
    const char *op, *type, *variant;
} image_origin;

/* What has been said, and of what: a pack's images are inspected one by one. */
typedef struct report {
    FILE *to; /* the array of JSON; NULL: as text */
    size_t n; /* images so far */
    const kr_pack_image *of_pack;
    size_t base; /* where the inspected bytes begin in the file */
} report;

static void say_image_json(const report *r, const kr_image_info *info, const kr_image_contents *c,
                           const image_origin *of)
{
    FILE *to = r->to;
    json_t *needs = needs_json(info, c);
    json_object_set_new(needs, "op", json_text(of->op));
    json_object_set_new(needs, "type", json_text(of->type));
    json_object_set_new(needs, "variant", json_text(of->variant));
    fputs(r->n ? ",\n  {" : "\n  {", to);
    add_json(to, place_json(info), JSON_EMBED);
    fputs(", \"entries\": [", to);
    for (size_t i = 0; i < c->n_kernels; i++) {
        fputs(i ? ", " : "", to);
        add_kernel(to, &c->kernels[i], info->kind == KR_IMAGE_CUBIN);
    }
    fputs("], \"globals\": [", to);
    for (size_t i = 0; i < c->n_variables; i++) {
        fputs(i ? ", " : "", to);
        add_variable(to, &c->variables[i]);
    }
    fputs("], ", to);
    add_json(to, needs, JSON_EMBED);
    fputs("}", to);
}

static void say_image_text(const report *r, const kr_image_info *info, const kr_image_contents *c,
                           const image_origin *of)
{
    print_image(info, c, r->n);
    if (*of->op)
        printf("    of %s%s%s, variant %s\n", of->op, *of->type ? "." : "", of->type, of->variant);
}

static void say_image(report *r, const kr_image_info *info, const kr_image_contents *contents)
{
    kr_image_info in_file = *info;
    in_file.offset += r->base;
    const kr_op *op = r->of_pack ? r->of_pack->op : NULL;
    const image_origin of = {op ? op->name : "",
                             op && op->n_types ? kr_type_name(op->types[r->of_pack->type_index]) : "",
                             op ? op->variants[r->of_pack->variant].name : ""};
    (r->to ? say_image_json : say_image_text)(r, &in_file, contents, &of);
    r->n++;
}

/* One image after another, so that what is unpacked is one image's alone. */
static kr_status say_images(report *r, const kr_inspection *inspection, kr_error *err)
{
    for (size_t i = 0; i < kr_inspection_n_images(inspection); i++) {
        kr_image_contents *contents = NULL;
        const kr_status status = kr_inspection_read(inspection, i, &contents, err);
        if (status)
            return status;
        say_image(r, kr_inspection_image(inspection, i), contents);
        kr_image_contents_destroy(&contents);
    }
    return KR_OK;
}

/* The pack lies `at` bytes into the file. */
static kr_status say_pack(report *r, const kr_pack *pack, size_t at, const char *path, kr_error *err)
{
    const kr_pack_info info = kr_pack_get_info(pack);
    kr_status status = KR_OK;
    for (size_t i = 0; i < info.n_images && !status; i++) {
        kr_pack_image image;
        kr_inspection *inspection = NULL;
        status = kr_pack_get_image(pack, i, &image, err);
        if (status)
            return status;
        r->of_pack = &image;
        r->base = at + (size_t)((const char *)image.data - (const char *)info.data);
        status = kr_inspection_create(image.data, image.bytes, path, &inspection, err);
        if (!status)
            status = say_images(r, inspection, err);
        kr_inspection_destroy(&inspection);
    }
    return status;
}

/* A file that is open. */
typedef struct subject {
    const char *path;
    kr_inspection *inspection;
    kr_pack *pack;    /* NULL: it is none */
    const char *host; /* what may have packs in it, mapped: a program, object or archive; NULL: it is none */
    size_t host_bytes;
    size_t n;           /* images; a pack's may be fatbins of several */
    const char *reason; /* why there are none; NULL: there are */
} subject;

static kr_status map_host(subject *s, kr_error *err)
{
    struct stat info;
    const int file = open(s->path, O_RDONLY | O_CLOEXEC);
    void *data = file >= 0 && !fstat(file, &info)
                     ? mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, file, 0)
                     : MAP_FAILED;
    const kr_status status =
        data == MAP_FAILED ? tool_fail_errno(err, KR_IO, "cannot map %s", s->path) : KR_OK;
    if (file >= 0)
        close(file);
    if (!status) {
        s->host = data;
        s->host_bytes = (size_t)info.st_size;
    }
    return status;
}

/* The next that `kregistry embed` made part of the host, where *at then is; NULL: no more. */
static kr_status next_pack(const subject *s, size_t *at, kr_pack **ret_pack, kr_error *err)
{
    *ret_pack = NULL;
    const kr_status status = s->host ? kr_pack_find(s->host, s->host_bytes, at, ret_pack, err) : KR_OK;
    return status ? tool_while(err, status, "reading the pack at offset 0x%zx of %s", *at, s->path) : KR_OK;
}

/* Counts the images of all of them, or says them. */
static kr_status each_pack(const subject *s, report *r, size_t *n, kr_error *err)
{
    kr_pack *pack;
    size_t at = 0;
    kr_status status;
    while (!(status = next_pack(s, &at, &pack, err)) && pack) {
        const kr_pack_info info = kr_pack_get_info(pack);
        *n += info.n_images;
        status = r ? say_pack(r, pack, at, s->path, err) : KR_OK;
        at += info.bytes;
        kr_pack_close(&pack);
        if (status)
            break;
    }
    return status;
}

static kr_status open_subject(subject *s, const char *path, kr_error *err)
{
    s->path = path;
    kr_status status = kr_inspection_open(path, &s->inspection, err);
    const char *kind = status ? "" : kr_inspection_kind(s->inspection);
    if (strcmp(kind, "pack") == 0)
        status = kr_pack_open(path, &s->pack, err);
    else if (strcmp(kind, "elf") == 0 || strcmp(kind, "archive") == 0)
        status = map_host(s, err);
    if (!status) {
        s->n = s->pack ? kr_pack_get_info(s->pack).n_images : kr_inspection_n_images(s->inspection);
        status = each_pack(s, NULL, &s->n, err);
    }
    s->reason = s->n ? NULL : "no device code is in it";
    return status;
}

static kr_status say_all(report *r, const subject *s, kr_error *err)
{
    size_t n = 0;
    if (s->pack)
        return say_pack(r, s->pack, 0, s->path, err);
    const kr_status status = say_images(r, s->inspection, err);
    return status ? status : each_pack(s, r, &n, err);
}

/* Nothing is out before all of it could be read: it may yet be an error's document. */
static kr_status say_json(const subject *s, int code, kr_error *err)
{
    char *text = NULL;
    size_t bytes;
    report r = {.to = tool_memory_file(&text, &bytes)};
    fputs("{\"kind\": ", r.to);
    add_json(r.to, json_string(kr_inspection_kind(s->inspection)), 0);
    fputs(", \"reason\": ", r.to);
    add_json(r.to, json_text(s->reason), 0);
    fputs(", \"images\": [", r.to);
    const kr_status status = say_all(&r, s, err);
    fputs("]}", r.to);
    fclose(r.to);
    if (!status)
        cli_print_text(text, code);
    free(text);
    return status;
}

static kr_status say_text(const subject *s, kr_error *err)
{
    report r = {0};
    put_text(stdout, s->path);
    printf(": %s, %zu image%s%s%s\n", kr_inspection_kind(s->inspection), s->n, s->n == 1 ? "" : "s",
           s->reason ? ": " : "", s->reason ? s->reason : "");
    return say_all(&r, s, err);
}

int run_inspect(const invocation *cli)
{
    subject s = {0};
    kr_error err;
    kr_status status = open_subject(&s, cli->operands[0], &err);
    const int code = s.n ? EXIT_DONE : EXIT_NOT_SO; /* without images: an answer, not an error */
    if (!status)
        status = cli->json ? say_json(&s, code, &err) : say_text(&s, &err);
    if (s.host)
        munmap((void *)s.host, s.host_bytes);
    kr_pack_close(&s.pack);
    kr_inspection_destroy(&s.inspection);
    return status ? cli_fail(cli, &err) : code;
}
