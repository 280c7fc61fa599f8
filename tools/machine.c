/* SPDX-License-Identifier: Apache-2.0 */
/* Machines that are not here, by options. */

#include <stdio.h>
#include <string.h>

#include "cli.h"

kr_status read_driver_version(const invocation *cli, int *ret_version, kr_error *err)
{
    uint64_t parts[2] = {0};
    size_t n;
    kr_status status = cli_numbers(cli, OPT_DRIVER_VERSION, '.', parts, 2, &n, err);
    if (status)
        return status;
    if (parts[0] < 1 || parts[0] > 999 || parts[1] > 99)
        return tool_refuse(err, "Give one from 1.0 to 999.99, as 12.4.", "--driver-version %s is none",
                           cli_value(cli, OPT_DRIVER_VERSION));
    *ret_version = (int)(parts[0] * 1000 + parts[1] * 10);
    return KR_OK;
}

kr_status read_targets(const char *list, kr_cc ccs[MAX_CCS], size_t *ret_n, kr_error *err)
{
    size_t n = 0;
    for (const char *at = list;; at++) {
        char text[32];
        size_t length = strcspn(at, ",");
        snprintf(text, sizeof text, "%.*s", (int)length, at);
        if (n == MAX_CCS)
            return tool_refuse(err, "Ask in parts.", "%s: at most %d of them", list, MAX_CCS);
        kr_status status = kr_cc_parse(text, &ccs[n], err);
        if (status)
            return status;
        n++;
        at += length;
        if (!*at)
            break;
    }
    *ret_n = n;
    return KR_OK;
}

kr_status read_ccs(const char *list, kr_cc ccs[MAX_CCS], size_t *ret_n, kr_error *err)
{
    size_t n;
    kr_status status = read_targets(list, ccs, &n, err);
    for (size_t i = 0; !status && i < n; i++)
        if (ccs[i].suffix)
            status =
                tool_refuse(err, "Leave the letter out.",
                            "%s: %c belongs to an image's target; a device has none", list, ccs[i].suffix);
    if (!status)
        *ret_n = n;
    return status;
}

static kr_status read_archs(const invocation *cli, machine_facts *facts, kr_error *err)
{
    kr_cc ccs[MAX_CCS];
    size_t n = 0;
    kr_status status = KR_OK;
    if (strcmp(cli_value(cli, OPT_NVRTC_ARCHS), "none") != 0)
        status = read_ccs(cli_value(cli, OPT_NVRTC_ARCHS), ccs, &n, err);
    for (size_t i = 0; !status && i < n; i++)
        facts->archs[i] = ccs[i].major * 10 + ccs[i].minor;
    facts->machine.nvrtc_archs = facts->archs;
    facts->machine.n_nvrtc_archs = n;
    facts->machine.nvrtc_version = n ? 13000 : 0;
    return status;
}

kr_status find_nvrtc_archs(const invocation *cli, machine_facts *facts, kr_error *err)
{
    kr_nvrtc *nvrtc = NULL;
    int driver = 0;
    kr_status status = cli_has(cli, OPT_DRIVER_VERSION) ? read_driver_version(cli, &driver, err) : KR_OK;
    if (!status)
        status = open_nvrtc(cli, driver, &nvrtc, err);
    if (status)
        return status == KR_NOT_ON_THIS_MACHINE ? KR_OK : status;
    kr_nvrtc_info info = kr_nvrtc_get_info(nvrtc);
    facts->machine.nvrtc_version = info.major * 1000 + info.minor * 10;
    facts->machine.nvrtc_archs = facts->archs;
    for (size_t i = 0; i < info.n_archs && i < MAX_CCS; i++)
        facts->archs[facts->machine.n_nvrtc_archs++] = info.archs[i];
    kr_nvrtc_close(&nvrtc);
    return KR_OK;
}

kr_status read_facts(const invocation *cli, machine_facts *facts, kr_error *err)
{
    kr_status status = cli_has(cli, OPT_NVRTC_ARCHS) ? read_archs(cli, facts, err) : KR_OK;
    if (!status && cli_has(cli, OPT_DRIVER_VERSION))
        status = read_driver_version(cli, &facts->machine.driver_version, err);
    return status;
}
