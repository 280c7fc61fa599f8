/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

static const char *const kinds[] = {"ptx", "cubin", "fatbin", "ltoir"};
static const kr_image_kind kind_values[] = {KR_IMAGE_PTX, KR_IMAGE_CUBIN, KR_IMAGE_FATBIN, KR_IMAGE_LTOIR};

static kr_status find_kind(const invocation *cli, kr_image_kind *ret_kind, kr_error *err)
{
    const char *output = cli_value(cli, OPT_OUTPUT), *name = cli_value(cli, OPT_KIND);
    const char *dot = output ? strrchr(output, '.') : NULL;
    const char *word = name ? name : dot ? dot + 1 : "";
    for (size_t i = 0; i < 4; i++)
        if (strcmp(word, kinds[i]) == 0) {
            *ret_kind = kind_values[i];
            return KR_OK;
        }
    if (name)
        tool_fail(err, KR_INVALID_ARGUMENT, "unknown kind \"%s\"", name);
    else
        tool_fail(err, KR_INVALID_ARGUMENT, "the ending of \"%s\" names no kind of image", output);
    suggest(err, word, kinds, 4);
    return err->status;
}

/* -I and -D become NVRTC's options, one element each. */
static size_t collect_options(const invocation *cli, char **options)
{
    static const struct {
        option_id id;
        const char *prefix;
    } sources[] = {{OPT_INCLUDE, "-I"}, {OPT_DEFINE, "-D"}, {OPT_OPTION, ""}};
    size_t n = 0;
    for (size_t s = 0; s < 3; s++)
        for (size_t i = 0; i < cli->n_values[sources[s].id]; i++) {
            const char *value = cli->values[sources[s].id][i];
            options[n] = tool_alloc(strlen(value) + 3);
            sprintf(options[n++], "%s%s", sources[s].prefix, value);
        }
    return n;
}

/* Without --arch: the highest that this NVRTC knows for cubins would run on few devices, so the lowest. */
static kr_status find_arch(const invocation *cli, const kr_nvrtc *nvrtc, kr_image_kind kind, kr_cc *ret_arch,
                           kr_error *err)
{
    const char *text = cli_value(cli, OPT_ARCH);
    kr_nvrtc_info info = kr_nvrtc_get_info(nvrtc);
    if (text && strncmp(text, "compute_", 8) == 0 && (kind == KR_IMAGE_CUBIN || kind == KR_IMAGE_FATBIN)) {
        tool_fail(err, KR_INVALID_ARGUMENT, "--arch %s: the code of a %s is for a real architecture", text,
                  kr_image_kind_name(kind));
        tool_advice(err, "Say sm_%s, or make PTX of it.", text + 8);
        return err->status;
    }
    if (text)
        return kr_cc_parse(text, ret_arch, err);
    *ret_arch = (kr_cc){info.archs[0] / 10, info.archs[0] % 10, 0};
    return KR_OK;
}

bool nvrtc_knows(const kr_nvrtc *nvrtc, kr_cc arch)
{
    kr_nvrtc_info info = kr_nvrtc_get_info(nvrtc);
    for (size_t i = 0; i < info.n_archs; i++)
        if (info.archs[i] == arch.major * 10 + arch.minor)
            return true;
    return false;
}

static kr_status compile(const invocation *cli, kr_nvrtc *nvrtc, kr_compiled **ret_compiled, kr_error *err)
{
    char *source = NULL;
    size_t bytes;
    kr_cc arch;
    const char *path = cli->operands[0];
    char **words = tool_alloc(
        (cli->n_values[OPT_INCLUDE] + cli->n_values[OPT_DEFINE] + cli->n_values[OPT_OPTION]) * sizeof *words);
    kr_compile_options options = {.struct_size = sizeof options,
                                  .options = (const char *const *)words,
                                  .name_expressions = cli->values[OPT_NAME],
                                  .n_name_expressions = cli->n_values[OPT_NAME]};
    options.n_options = collect_options(cli, words);
    kr_status status = find_kind(cli, &options.kind, err);
    if (!status)
        status = find_arch(cli, nvrtc, options.kind, &arch, err);
    if (!status && tool_same_file(path, cli_value(cli, OPT_OUTPUT)))
        status =
            tool_refuse(err, "Name another file.", "-o %s is the source itself", cli_value(cli, OPT_OUTPUT));
    if (!status)
        status = tool_read_file(path, &source, &bytes, err);
    if (!status)
        status = open_cache(cli, &options.cache, err);
    if (!status)
        status = kr_compile(nvrtc, path, source, arch, &options, ret_compiled, err);
    if (status == KR_NOT_ON_THIS_MACHINE && !nvrtc_knows(nvrtc, arch)) /* --arch is wrong, the NVRTC is not */
        status = err->status = KR_INVALID_ARGUMENT;
    if (!status)
        status = tool_write_file(cli_value(cli, OPT_OUTPUT), (*ret_compiled)->image,
                                 (*ret_compiled)->image_bytes, err);
    for (size_t i = 0; i < options.n_options; i++)
        free(words[i]);
    kr_cache_destroy(&options.cache);
    free(words);
    free(source);
    return status;
}

static void set_text(json_t *object, const char *key, const char *text)
{
    json_t *valid = json_any_text(key);
    json_object_set_new(object, json_string_value(valid), json_text(text));
    json_decref(valid);
}

static int print(const invocation *cli, const kr_compiled *c)
{
    char arch[24];
    if (cli_has(cli, OPT_VERBOSE) && *c->cache_note)
        put_text(stderr, c->cache_note), fputc('\n', stderr);
    if (cli_has(cli, OPT_VERBOSE) && c->is_found)
        fputs("it was in the cache: nothing was compiled\n", stderr);
    if (!cli->json) {
        put_text(stderr, c->log);
        printf("%s: %s %s, %zu bytes\n", cli_value(cli, OPT_OUTPUT), kr_image_kind_name(c->kind),
               arch_text(c->kind, c->arch, arch), c->image_bytes);
        for (size_t i = 0; i < c->n_entries; i++)
            printf("  %s\n", c->entries[i]);
        return EXIT_DONE;
    }
    json_t *entries = json_array(), *lowered = json_object();
    for (size_t i = 0; i < c->n_entries; i++)
        json_array_append_new(entries, json_text(c->entries[i]));
    for (size_t i = 0; i < cli->n_values[OPT_NAME]; i++)
        set_text(lowered, cli->values[OPT_NAME][i], c->lowered_names[i]);
    return cli_print(json_pack("{s:s, s:o, s:I, s:o, s:o, s:b, s:o}", "kind", kr_image_kind_name(c->kind),
                               "arch", json_arch(c->kind, c->arch), "bytes", (json_int_t)c->image_bytes,
                               "entries", entries, "lowered_names", lowered, "cached", c->is_found, "log",
                               json_any_text(c->log)),
                     EXIT_DONE);
}

int run_compile(const invocation *cli)
{
    kr_nvrtc *nvrtc = NULL;
    kr_compiled *compiled = NULL;
    kr_error err;
    kr_status status = KR_OK;
    if (!cli_has(cli, OPT_OUTPUT))
        status = tool_refuse(&err, "Give -o a file that ends in .ptx, .cubin, .fatbin or .ltoir.",
                             "compile needs -o FILE");
    if (!status)
        status = open_nvrtc(cli, 0, &nvrtc, &err);
    if (!status)
        status = compile(cli, nvrtc, &compiled, &err);
    int code = status ? cli_fail(cli, &err) : print(cli, compiled);
    kr_compiled_destroy(&compiled);
    kr_nvrtc_close(&nvrtc);
    return code;
}
