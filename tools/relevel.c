/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

/* "6.3" is 63. */
static kr_status read_isa(const invocation *cli, int *ret_isa, kr_error *err)
{
    uint64_t parts[2] = {0};
    size_t n = 0;
    kr_status status = cli_numbers(cli, OPT_ISA, '.', parts, 2, &n, err);
    if (status)
        return status;
    if (n != 2 || parts[0] < 1 || parts[0] > 99 || parts[1] > 9)
        return tool_refuse(err, "Give one as 6.3.", "--isa %s is no version of PTX", cli_value(cli, OPT_ISA));
    *ret_isa = (int)(parts[0] * 10 + parts[1]);
    return KR_OK;
}

static kr_status read_goal(const invocation *cli, kr_relevel_options *options, kr_error *err)
{
    const int n = cli_has(cli, OPT_ISA) + cli_has(cli, OPT_DRIVER_VERSION) + cli_has(cli, OPT_LOWEST);
    kr_status status = KR_OK;
    if (n > 1 || (n == 0 && !cli_has(cli, OPT_TARGET)))
        return tool_refuse(
            err, "Give --isa 6.3, --driver-version 11.8 or --lowest, with --target sm_60 or without.",
            "relevel needs one level to get to");
    if (cli_has(cli, OPT_ISA))
        status = read_isa(cli, &options->isa, err);
    if (!status && cli_has(cli, OPT_DRIVER_VERSION))
        status = read_driver_version(cli, &options->driver_version, err);
    if (!status && cli_has(cli, OPT_TARGET))
        status = kr_cc_parse(cli_value(cli, OPT_TARGET), &options->target, err);
    return status;
}

static kr_status relevel(const invocation *cli, kr_releveled **ret_releveled, kr_error *err)
{
    kr_relevel_options options = {.struct_size = sizeof options};
    char *ptx = NULL;
    size_t bytes;
    kr_status status = KR_OK;
    if (!cli_has(cli, OPT_OUTPUT))
        status = tool_refuse(err, "Give -o a file.", "relevel needs -o FILE");
    if (!status)
        status = read_goal(cli, &options, err);
    if (!status)
        status = tool_read_bytes(cli->operands[0], &ptx, &bytes, err);
    if (!status)
        status = kr_ptx_relevel(ptx, bytes, &options, ret_releveled, err);
    if (!status)
        status =
            tool_write_file(cli_value(cli, OPT_OUTPUT), (*ret_releveled)->ptx, (*ret_releveled)->bytes, err);
    free(ptx);
    return status;
}

static int print(const invocation *cli, const kr_releveled *r)
{
    char from_isa[16], to_isa[16], driver[16], from_target[24], to_target[24];
    isa_text(r->from_isa, from_isa);
    isa_text(r->to_isa, to_isa);
    version_text(r->min_driver, driver);
    arch_text(KR_IMAGE_CUBIN, r->from_target, from_target);
    arch_text(KR_IMAGE_CUBIN, r->to_target, to_target);
    if (cli->json)
        return cli_print(json_pack("{s:{s:s, s:s}, s:{s:s, s:s}, s:s, s:I, s:s?}", "isa", "from", from_isa,
                                   "to", to_isa, "target", "from", from_target, "to", to_target, "min_driver",
                                   driver, "rewritten", (json_int_t)r->n_rewritten, "caution", r->caution),
                         EXIT_DONE);
    if (r->caution)
        fprintf(stderr, "caution: %s\n", r->caution);
    printf("%s: PTX %s for %s, from %s for %s; %zu instruction%s rewritten; drivers of CUDA %s and later\n",
           cli_value(cli, OPT_OUTPUT), to_isa, to_target, from_isa, from_target, r->n_rewritten,
           r->n_rewritten == 1 ? "" : "s", driver);
    return EXIT_DONE;
}

int run_relevel(const invocation *cli)
{
    kr_releveled *releveled = NULL;
    kr_error err;
    const kr_status status = relevel(cli, &releveled, &err);
    const int code = status ? cli_fail(cli, &err) : print(cli, releveled);
    kr_releveled_destroy(&releveled);
    return code;
}
