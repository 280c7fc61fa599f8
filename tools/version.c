/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "cli.h"

/* A version, or why there is none. */
typedef struct answer {
    char version[16];
    const char *kind;
    kr_error why;
} answer;

/* What is not here is an answer, and so is a variable that names what does not do; an option that does so is
 * wrong. */
static kr_status ask_nvrtc(const invocation *cli, int driver_version, answer *a, kr_error *err)
{
    kr_nvrtc *nvrtc = NULL;
    kr_status status = open_nvrtc(cli, driver_version, &nvrtc, &a->why);
    if (status == KR_NOT_ON_THIS_MACHINE || (status == KR_INVALID_ARGUMENT && !cli_has(cli, OPT_NVRTC)))
        return KR_OK;
    if (status) {
        *err = a->why;
        return status;
    }
    kr_nvrtc_info info = kr_nvrtc_get_info(nvrtc);
    snprintf(a->version, sizeof a->version, "%d.%d", info.major, info.minor);
    kr_nvrtc_close(&nvrtc);
    return KR_OK;
}

static kr_status ask_driver(const invocation *cli, session *s, answer *a, kr_error *err)
{
    kr_status status = session_open_driver(s, cli, &a->why);
    if (status == KR_NOT_ON_THIS_MACHINE)
        return KR_OK;
    if (status) {
        *err = a->why;
        return status;
    }
    kr_driver_info info = kr_runtime_driver(s->runtime);
    version_text(info.version, a->version);
    a->kind = info.kind;
    return KR_OK;
}

static void print_answer(const char *what, const answer *a)
{
    if (*a->version)
        printf("%s %s%s%s\n", what, a->version, a->kind ? " " : "", a->kind ? a->kind : "");
    else
        printf("%s none: %s\n", what, a->why.message);
}

int run_version(const invocation *cli)
{
    session s = {0};
    kr_error err;
    answer nvrtc = {0}, driver = {0};
    kr_status status = ask_driver(cli, &s, &driver, &err);
    if (!status)
        status = ask_nvrtc(cli, s.runtime ? kr_runtime_driver(s.runtime).version : 0, &nvrtc, &err);
    int code = status ? cli_fail(cli, &err) : EXIT_DONE;
    if (!status && cli->json) {
        cli_print(json_pack("{s:s, s:s, s:o, s:o, s:o, s:o, s:o}", "kregistry", KR_VERSION, "library",
                            kr_version(), "nvrtc", json_text(nvrtc.version), "nvrtc_reason",
                            json_text(nvrtc.why.message), "driver", json_text(driver.version), "driver_kind",
                            json_text(driver.kind), "driver_reason", json_text(driver.why.message)),
                  0);
    } else if (!status) {
        printf("kregistry %s (library %s)\n", KR_VERSION, kr_version());
        print_answer("NVRTC", &nvrtc);
        print_answer("driver", &driver);
    }
    session_close(&s);
    return code;
}
