/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "cli.h"

static json_t *driver_json(const session *s)
{
    char version[16];
    if (!s->runtime)
        return json_null();
    kr_driver_info info = kr_runtime_driver(s->runtime);
    return json_pack("{s:o, s:s, s:s}", "path", json_text(info.path), "version",
                     version_text(info.version, version), "kind", info.kind);
}

static json_t *device_json(const kr_device *device)
{
    char cc[KR_CC_TEXT_BYTES];
    const kr_device_info *i = kr_device_get_info(device);
    return json_pack("{s:i, s:o, s:s, s:s, s:s, s:i, s:I}", "ordinal", i->ordinal, "name",
                     json_any_text(i->name), "cc", kr_cc_format(i->cc, cc), "uuid", i->uuid, "pci", i->pci,
                     "multiprocessors", i->multiprocessors, "memory_bytes", (json_int_t)i->memory_bytes);
}

/* err: why there is no driver, or empty. */
static int print_json(const session *s, const kr_error *err)
{
    json_t *devices = json_array();
    for (size_t i = 0; i < s->n_devices; i++)
        json_array_append_new(devices, device_json(s->devices[i]));
    json_t *document = json_pack("{s:o, s:o, s:o}", "driver", driver_json(s), "devices", devices, "reason",
                                 json_text(err->message));
    if (*err->log)
        json_object_set_new(document, "log", json_text(err->log));
    return cli_print(document, EXIT_DONE);
}

static int print_text(const invocation *cli, const session *s, const kr_error *err)
{
    char version[16], text[300];
    if (!s->runtime) {
        printf("0 devices: %s\n", err->message);
        if (cli_has(cli, OPT_VERBOSE))
            fputs(err->log, stderr);
        return EXIT_DONE;
    }
    kr_driver_info driver = kr_runtime_driver(s->runtime);
    printf("%s driver %s (%s)\n", driver.kind, version_text(driver.version, version), driver.path);
    for (size_t i = 0; i < s->n_devices; i++) {
        const kr_device_info *info = kr_device_get_info(s->devices[i]);
        printf("%s: %zu MiB, %d multiprocessors, %s, %s\n", device_text(s->devices[i], text, sizeof text),
               info->memory_bytes >> 20, info->multiprocessors, info->pci, info->uuid);
    }
    return EXIT_DONE;
}

/* A machine without a driver is an answer, not an error. */
int run_devices(const invocation *cli)
{
    session s = {0};
    kr_error err = {0};
    kr_status status = session_open_driver(&s, cli, &err);
    int code = status && status != KR_NOT_ON_THIS_MACHINE ? cli_fail(cli, &err)
               : cli->json                                ? print_json(&s, &err)
                                                          : print_text(cli, &s, &err);
    session_close(&s);
    return code;
}
