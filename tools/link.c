/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli.h"

/* What a link takes and gives. */
typedef struct link_job {
    kr_linker *linker;
    session session; /* opened where the driver must link */
    kr_link_input *inputs;
    size_t n_inputs;
    kr_cc arch;
    kr_linked *linked;
} link_job;

static kr_status read_inputs(const invocation *cli, link_job *job, kr_error *err)
{
    for (; job->n_inputs < cli->n_operands; job->n_inputs++) {
        char *data;
        const char *path = cli->operands[job->n_inputs];
        kr_link_input *input = &job->inputs[job->n_inputs];
        kr_status status = tool_read_bytes(path, &data, &input->image_bytes, err);
        if (status)
            return status;
        input->name = path;
        input->image = data;
        if (tool_same_file(path, cli_value(cli, OPT_OUTPUT)))
            return tool_refuse(err, "Name another file.", "-o %s is one of the inputs",
                               cli_value(cli, OPT_OUTPUT));
    }
    return KR_OK;
}

/* nvJitLink, else the first device's driver. */
static kr_status open_linker(const invocation *cli, link_job *job, kr_error *err)
{
    const char *where = cli_value(cli, OPT_NVJITLINK);
    kr_linker_options options = {.struct_size = sizeof options, .nvjitlink = where};
    kr_error no_driver;
    kr_status status = kr_linker_create(&options, &job->linker, err);
    if (where && status == KR_NOT_ON_THIS_MACHINE && strcmp(where, "none") != 0)
        return err->status = KR_INVALID_ARGUMENT;
    if (status != KR_NOT_ON_THIS_MACHINE || session_open_driver(&job->session, cli, &no_driver) ||
        !job->session.n_devices)
        return status;
    options.device = job->session.devices[0];
    return kr_linker_create(&options, &job->linker, err);
}

static kr_status find_arch(const invocation *cli, link_job *job, kr_error *err)
{
    const char *text = cli_value(cli, OPT_ARCH);
    if (text)
        return kr_cc_parse(text, &job->arch, err);
    if (kr_linker_get_info(job->linker).is_driver)
        return KR_OK;
    return tool_refuse(err, "Give --arch sm_90, or another.", "nvJitLink must be told the arch");
}

static kr_status link_all(const invocation *cli, link_job *job, kr_error *err)
{
    const char *output = cli_value(cli, OPT_OUTPUT);
    if (!output)
        return tool_refuse(err, "Give -o a file that ends in .cubin or .ptx.", "link needs -o FILE");
    const char *dot = strrchr(output, '.');
    const kr_link_options options = {.struct_size = sizeof options,
                                     .ptx = dot && strcmp(dot, ".ptx") == 0,
                                     .options = cli->values[OPT_OPTION],
                                     .n_options = cli->n_values[OPT_OPTION]};
    if (!options.ptx && (!dot || strcmp(dot, ".cubin") != 0))
        return tool_refuse(err, "Give -o a file that ends in .cubin or .ptx.",
                           "the ending of \"%s\" names nothing that a link gives", output);
    kr_status status = read_inputs(cli, job, err);
    if (!status)
        status = open_linker(cli, job, err);
    if (!status)
        status = find_arch(cli, job, err);
    if (!status)
        status = kr_link(job->linker, job->inputs, job->n_inputs, job->arch, &options, &job->linked, err);
    return status ? status : tool_write_file(output, job->linked->image, job->linked->image_bytes, err);
}

static int print(const invocation *cli, const link_job *job)
{
    const kr_linked *linked = job->linked;
    const kr_linker_info info = kr_linker_get_info(job->linker);
    const char *by = info.is_driver ? "the driver" : "nvJitLink";
    char version[16];
    version_text(info.major * 1000 + info.minor * 10, version);
    if (cli->json)
        return cli_print(json_pack("{s:s, s:I, s:s, s:s, s:s, s:o}", "kind", kr_image_kind_name(linked->kind),
                                   "bytes", (json_int_t)linked->image_bytes, "linker", by, "version", version,
                                   "path", info.path, "log", json_any_text(linked->log)),
                         EXIT_DONE);
    put_text(stderr, linked->log);
    printf("%s: %s, %zu bytes, linked by %s %s\n", cli_value(cli, OPT_OUTPUT),
           kr_image_kind_name(linked->kind), linked->image_bytes, by, version);
    return EXIT_DONE;
}

static int link_here(const invocation *cli)
{
    link_job job = {.inputs = tool_alloc(cli->n_operands * sizeof *job.inputs)};
    kr_error err;
    const kr_status status = link_all(cli, &job, &err);
    const int code = status ? cli_fail(cli, &err) : print(cli, &job);
    kr_linked_destroy(&job.linked);
    kr_linker_destroy(&job.linker);
    session_close(&job.session);
    for (size_t i = 0; i < job.n_inputs; i++)
        free((void *)job.inputs[i].image);
    free(job.inputs);
    return code;
}

/* By somebody or for want of a reader, not by what the linker did. */
static bool is_ended(int number)
{
    static const int numbers[] = {SIGHUP, SIGINT, SIGKILL, SIGPIPE, SIGTERM};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (number == numbers[i])
            return true;
    return false;
}

/* In a child: the linkers are NVIDIA's, and may crash on what is damaged. */
int run_link(const invocation *cli)
{
    kr_error err;
    int how = 0;
    const pid_t parent = getpid(), child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        return getppid() == parent ? link_here(cli) : EXIT_NOT_SO;
    }
    pid_t ended = child;
    while (child > 0 && (ended = waitpid(child, &how, 0)) < 0 && errno == EINTR)
        ;
    if (child < 0 || ended < 0) {
        tool_fail_errno(&err, KR_IO, "a process to link in");
        return cli_fail(cli, &err);
    }
    if (WIFEXITED(how))
        return WEXITSTATUS(how);
    if (is_ended(WTERMSIG(how))) { /* as one process would end */
        signal(WTERMSIG(how), SIG_DFL);
        raise(WTERMSIG(how));
    }
    tool_fail(&err, KR_CORRUPT, "the linker crashed (%s) on these inputs", strsignal(WTERMSIG(how)));
    tool_advice(&err, "Make the inputs anew: one of them may be damaged.");
    return cli_fail(cli, &err);
}
