/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

/* *ret_text stays NULL where there is none. */
static kr_status nvrtc_version(const invocation *cli, char text[16], const char **ret_text, kr_error *err)
{
    kr_nvrtc *nvrtc = NULL;
    kr_status status = open_nvrtc(cli, &nvrtc, err);
    if (status)
        return status == KR_NOT_ON_THIS_MACHINE ? KR_OK : status;
    kr_nvrtc_info info = kr_nvrtc_get_info(nvrtc);
    snprintf(text, 16, "%d.%d", info.major, info.minor);
    kr_nvrtc_close(&nvrtc);
    *ret_text = text;
    return KR_OK;
}

int run_version(const invocation *cli)
{
    session s = {0};
    kr_error err;
    char nvrtc_text[16], driver_text[16];
    const char *nvrtc = NULL, *driver = NULL, *kind = "";
    if (nvrtc_version(cli, nvrtc_text, &nvrtc, &err))
        return cli_fail(cli, &err);
    if (session_open_driver(&s, cli, &err) == KR_OK) {
        kr_driver_info info = kr_runtime_driver(s.runtime);
        driver = version_text(info.version, driver_text);
        kind = info.kind;
    }
    if (cli->json)
        cli_print(json_pack("{s:s, s:s, s:o, s:o, s:o}", "kregistry", KR_VERSION, "library", kr_version(), "nvrtc",
                            json_text(nvrtc), "driver", json_text(driver), "driver_kind", json_text(kind)),
                  0);
    else
        printf("kregistry %s (library %s)\nNVRTC %s\ndriver %s%s%s\n", KR_VERSION, kr_version(),
               nvrtc ? nvrtc : "none", driver ? driver : "none", driver ? " " : "", kind);
    session_close(&s);
    return EXIT_DONE;
}
