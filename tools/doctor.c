/* SPDX-License-Identifier: Apache-2.0 */
/* What is wrong with this machine? Each probe does the real thing; a failed one comes with one thing to do.
 */

#include <stdio.h>
#include <string.h>

#include "checkkern.h"
#include "cli.h"

typedef struct doctor {
    const invocation *cli;
    session session;
    json_t *checks;
    size_t failed;
} doctor;

/* advice: NULL where there is nothing to do. */
static void note(doctor *d, const char *name, bool ok, const char *detail, const char *advice)
{
    const char *word = !ok ? "FAILED" : advice ? "warning" : "ok";
    d->failed += !ok;
    json_array_append_new(d->checks, json_pack("{s:s, s:b, s:o, s:o}", "name", name, "ok", ok, "detail",
                                               json_text(detail), "advice", json_text(advice)));
    if (d->cli->json)
        return;
    printf("%s%-8s%s %-16s %s\n", color(stdout, ok), word, plain(stdout), name, detail);
    if (advice && *advice)
        printf("%-25s %s\n", "", advice);
}

static void note_error(doctor *d, const char *name, const kr_error *err)
{
    note(d, name, false, err->message, err->advice);
    if (d->cli->json && *err->log)
        json_object_set_new(json_array_get(d->checks, json_array_size(d->checks) - 1), "log",
                            json_text(err->log));
    else if (cli_has(d->cli, OPT_VERBOSE))
        printf("%s", err->log);
}

static bool probe_driver(doctor *d)
{
    char text[4200], version[16];
    kr_error err;
    if (session_open_driver(&d->session, d->cli, &err)) {
        note_error(d, "driver", &err);
        return false;
    }
    kr_driver_info info = kr_runtime_driver(d->session.runtime);
    snprintf(text, sizeof text, "%s %s (%s)", info.kind, version_text(info.version, version), info.path);
    note(d, "driver", true, text, NULL);
    snprintf(text, sizeof text, "%zu", d->session.n_devices);
    const bool any = d->session.n_devices > 0;
    note(d, "devices", any, text,
         any ? NULL : "Check that the devices are visible to this process (CUDA_VISIBLE_DEVICES).");
    return true;
}

/* A toolkit newer than the driver is the usual reason why PTX is refused. */
static void compare_versions(doctor *d, const kr_nvrtc_info *info)
{
    char nvrtc[16], driver[16], text[160];
    int made = info->major * 1000 + info->minor * 10, taken = kr_runtime_driver(d->session.runtime).version;
    version_text(made, nvrtc);
    version_text(taken, driver);
    if (made > taken)
        snprintf(text, sizeof text,
                 "NVRTC %s is newer than the driver (CUDA %s): PTX of ops is releveled for it", nvrtc,
                 driver);
    else
        snprintf(text, sizeof text, "the driver (CUDA %s) takes what NVRTC %s makes", driver, nvrtc);
    note(d, "versions", true, text,
         made > taken
             ? "Use an NVRTC that is not newer than the driver, or `kregistry relevel`, where PTX is "
               "loaded without the registry."
             : NULL);
}

/* Kernels that include cuda_fp16.h and the like need the toolkit's headers, those of their NVRTC. */
static void probe_headers(doctor *d, const kr_nvrtc_info *info)
{
    char text[4200], theirs[16];
    const int version = info->include_version, nvrtc = info->major * 1000 + info->minor * 10;
    if (!info->include) {
        note(d, "headers", true,
             "none of the toolkit's lie beside NVRTC: kernels do without, or name their folder", NULL);
        return;
    }
    snprintf(text, sizeof text, "%s (%s)", version ? version_text(version, theirs) : "of an unknown version",
             info->include);
    note(d, "headers", true, text,
         !version || version == nvrtc
             ? NULL
             : "Put headers of NVRTC's own version beside it: these may not compile.");
}

/* Is what is compiled once found the next time? */
static void probe_cache(doctor *d, kr_nvrtc *nvrtc)
{
    static const char source[] = "extern \"C\" __global__ void probe() {}";
    const kr_nvrtc_info info = kr_nvrtc_get_info(nvrtc);
    const kr_cc arch = {info.archs[0] / 10, info.archs[0] % 10, 0};
    kr_compile_options options = {.struct_size = sizeof options};
    kr_compiled *compiled = NULL;
    kr_error err;
    kr_status status = open_cache(d->cli, &options.cache, &err);
    for (int i = 0; i < 2 && !status && options.cache; i++) {
        kr_compiled_destroy(&compiled);
        status = kr_compile(nvrtc, NULL, source, arch, &options, &compiled, &err);
    }
    if (status)
        note_error(d, "cache", &err);
    else if (options.cache && compiled->is_found)
        note(d, "cache", true, kr_cache_folder(options.cache), NULL);
    else if (options.cache)
        note(d, "cache", true, compiled->cache_note,
             "Repair that folder, or set KREGISTRY_CACHE_DIR to another, or to none.");
    kr_compiled_destroy(&compiled);
    kr_cache_destroy(&options.cache);
}

/* KR_INVALID_ARGUMENT: the NVRTC that was asked for does not do, so there is no registry to probe with. */
static kr_status probe_nvrtc(doctor *d)
{
    char text[4200];
    kr_error err;
    kr_nvrtc *nvrtc = NULL;
    if (wants_no_nvrtc(d->cli))
        return KR_OK;
    const int driver = d->session.runtime ? kr_runtime_driver(d->session.runtime).version : 0;
    if (open_nvrtc(d->cli, driver, &nvrtc, &err)) {
        note_error(d, "nvrtc", &err);
        return err.status;
    }
    kr_nvrtc_info info = kr_nvrtc_get_info(nvrtc);
    snprintf(text, sizeof text, "%d.%d (%s)", info.major, info.minor, info.path);
    note(d, "nvrtc", true, text, NULL);
    probe_headers(d, &info);
    if (d->session.runtime)
        compare_versions(d, &info);
    probe_cache(d, nvrtc);
    kr_nvrtc_close(&nvrtc);
    return KR_OK;
}

/* Compiles anew or takes what is shipped, loads, launches, and looks at every element. */
static void probe_device(doctor *d, kr_device *device, const kr_op *op)
{
    char name[32], text[512], device_name[300], arch[24];
    kr_error err;
    kr_resolution r;
    ck_result result;
    ck_case one = {
        .registry = d->session.registry, .device = device, .op = op, .type = KR_TYPE_F32, .seed = 1};
    snprintf(name, sizeof name, "device %d", kr_device_get_info(device)->ordinal);
    one.sizes[0] = 1000;
    if (kr_registry_resolve(d->session.registry, "saxpy.f32", device, one.sizes, NULL, &r, &err) ||
        ck_check(&one, &result, &err)) {
        note_error(d, name, &err);
        return;
    }
    snprintf(text, sizeof text, "%s: saxpy.f32 %s from %s %s (%s) is %s",
             device_text(device, device_name, sizeof device_name), r.variant,
             kr_image_kind_name(r.image_kind), arch_text(r.image_kind, r.image_arch, arch), r.image_origin,
             result.ok ? "right" : "wrong");
    note(d, name, result.ok, text,
         result.ok ? NULL : "Run kregistry verify saxpy.f32 --device with its ordinal.");
}

static void probe_devices(doctor *d)
{
    kr_error err;
    const kr_op *op;
    kr_status status = session_open_registry(&d->session, d->cli, &err);
    if (!status)
        status = kr_registry_find(d->session.registry, "saxpy.f32", &op, NULL, &err);
    if (status)
        note_error(d, "registry", &err);
    for (size_t i = 0; !status && i < d->session.n_devices; i++)
        probe_device(d, d->session.devices[i], op);
}

int run_doctor(const invocation *cli)
{
    doctor d = {.cli = cli, .checks = json_array(), .session.compiles_anew = true};
    bool driver = probe_driver(&d);
    kr_status nvrtc = probe_nvrtc(&d);
    if (driver && nvrtc != KR_INVALID_ARGUMENT)
        probe_devices(&d);
    session_close(&d.session);
    if (cli->json)
        return cli_print(json_pack("{s:o}", "checks", d.checks), d.failed ? EXIT_NOT_SO : EXIT_DONE);
    json_decref(d.checks);
    return d.failed ? EXIT_NOT_SO : EXIT_DONE;
}
