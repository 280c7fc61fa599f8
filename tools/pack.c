/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cli.h"

/* ---- what is asked for ---- */

typedef struct targets {
    kr_cc list[MAX_CCS];
    size_t n;
} targets;

/* One list with commas, as it was given last. */
static kr_status read_option(const invocation *cli, option_id id, targets *to, kr_error *err)
{
    const char *text = cli_value(cli, id);
    if (!text)
        return KR_OK;
    if (id == OPT_ARCH && (strstr(text, "compute_") || strstr(text, "+PTX")))
        return tool_refuse(err, "Say sm_90 for it, or ask with --ptx for what a driver compiles.",
                           "--arch %s: machine code is for a real architecture", text);
    return read_targets(text, to->list, &to->n, err);
}

/* Before anything is compiled. */
static kr_status check_known(const kr_nvrtc *nvrtc, const targets *asked, kr_error *err)
{
    kr_nvrtc_info info = kr_nvrtc_get_info(nvrtc);
    for (size_t i = 0; i < asked->n; i++) {
        char text[KR_CC_TEXT_BYTES];
        if (nvrtc_knows(nvrtc, asked->list[i]))
            continue;
        tool_fail(err, KR_INVALID_ARGUMENT, "NVRTC %d.%d (%s) does not know %s; it knows %d.%d to %d.%d",
                  info.major, info.minor, info.path, kr_cc_format(asked->list[i], text), info.archs[0] / 10,
                  info.archs[0] % 10, info.archs[info.n_archs - 1] / 10, info.archs[info.n_archs - 1] % 10);
        tool_advice(err, "Leave it out, or name another NVRTC with --nvrtc.");
        return err->status;
    }
    return KR_OK;
}

static kr_status check_nvrtc(const invocation *cli, const targets *cubins, const targets *ptx, kr_error *err)
{
    kr_nvrtc *nvrtc = NULL;
    kr_status status = open_nvrtc(cli, 0, &nvrtc, err);
    if (!status)
        status = check_known(nvrtc, cubins, err);
    if (!status)
        status = check_known(nvrtc, ptx, err);
    kr_nvrtc_close(&nvrtc);
    return status;
}

/* ---- progress ---- */

/* On a terminal, once a second has passed. */
static void show(void *user, size_t done, size_t total, const char *full_name)
{
    const time_t *begin = user;
    if (time(NULL) > *begin + 1)
        fprintf(stderr, done < total ? "\r%zu of %zu images, %s\033[K" : "\r\033[K", done, total, full_name);
}

/* ---- what it is made from ---- */

static void write_name(FILE *to, const char *folder, const char *name)
{
    fputc(' ', to);
    for (int part = 0; part < 2; part++)
        for (const char *at = part ? name : folder; *at; at++) {
            if (strchr(" #\\", *at))
                fputc('\\', to);
            fprintf(to, *at == '$' ? "$$" : "%c", *at);
        }
}

/* Up to and with its last slash. */
static char *folder_of(const char *path, bool is_folder)
{
    const char *slash = strrchr(path, '/');
    size_t n = is_folder ? strlen(path) : slash ? (size_t)(slash - path) : 0;
    char *folder = tool_alloc(n + 2);
    memcpy(folder, path, n);
    if (is_folder || slash)
        folder[n] = '/';
    return folder;
}

/* A folder's time changes when a file comes or goes; an op can include any file beside it. */
static kr_status write_files_of(FILE *to, const char *path, kr_error *err)
{
    struct stat info;
    char *folder = folder_of(path, stat(path, &info) == 0 && S_ISDIR(info.st_mode));
    DIR *dir = opendir(*folder ? folder : ".");
    kr_status status = dir ? KR_OK : tool_fail_errno(err, KR_IO, "cannot read the folder of %s", path);
    write_name(to, "", path);
    for (struct dirent *file; dir && (file = readdir(dir));)
        if (file->d_type != DT_DIR) /* links to files, and what a file system does not tell */
            write_name(to, folder, file->d_name);
    if (dir)
        closedir(dir);
    free(folder);
    return status;
}

static kr_status write_depfile(const invocation *cli, kr_error *err)
{
    char *text = NULL;
    size_t bytes;
    kr_status status = KR_OK;
    FILE *to = tool_memory_file(&text, &bytes);
    write_name(to, "", cli_value(cli, OPT_OUTPUT));
    fputc(':', to);
    for (size_t i = 0; i < cli->n_values[OPT_OPS] && !status; i++)
        status = write_files_of(to, cli->values[OPT_OPS][i], err);
    fputc('\n', to);
    fclose(to);
    if (!status)
        status = tool_write_file(cli_value(cli, OPT_DEPFILE), text + 1, bytes - 1, err);
    free(text);
    return status;
}

/* ---- the command ---- */

static kr_status build(const invocation *cli, session *s, kr_pack **ret_pack, kr_error *err)
{
    time_t begin = time(NULL);
    targets cubins = {0}, ptx = {0};
    bool shows = isatty(STDERR_FILENO) && !cli_has(cli, OPT_QUIET);
    const char *glob = cli->n_operands ? cli->operands[0] : NULL;
    kr_status status = read_option(cli, OPT_ARCH, &cubins, err);
    if (!status)
        status = read_option(cli, OPT_PTX, &ptx, err);
    if (!status)
        status = check_nvrtc(cli, &cubins, &ptx, err);
    if (!status)
        status = session_open_shipped(s, cli, err);
    if (status)
        return status;
    const kr_pack_options options = {.struct_size = sizeof options,
                                     .cubins = cubins.list,
                                     .n_cubins = cubins.n,
                                     .ptx = ptx.list,
                                     .n_ptx = ptx.n,
                                     .no_source = cli_has(cli, OPT_NO_SOURCE),
                                     .progress = shows ? show : NULL,
                                     .progress_user = &begin};
    status = kr_pack_build(s->registry, glob, &options, ret_pack, err);
    return status == KR_NOT_FOUND && glob ? none_matches(s->registry, glob, err) : status;
}

static kr_status write_pack(const invocation *cli, kr_pack_info info, kr_error *err)
{
    kr_status status = tool_write_file(cli_value(cli, OPT_OUTPUT), info.data, info.bytes, err);
    return status || !cli_has(cli, OPT_DEPFILE) ? status : write_depfile(cli, err);
}

int run_pack(const invocation *cli)
{
    session s = {0};
    kr_pack *pack = NULL;
    kr_pack_info info = {0};
    kr_error err;
    kr_status status = KR_OK;
    if (!cli_has(cli, OPT_OUTPUT))
        status = tool_refuse(&err, "Give -o a file, as my_kernels.pack.", "pack needs -o FILE");
    if (!status)
        status = build(cli, &s, &pack, &err);
    if (!status) {
        info = kr_pack_get_info(pack);
        status = write_pack(cli, info, &err);
    }
    kr_pack_close(&pack);
    session_close(&s);
    if (status)
        return cli_fail(cli, &err);
    if (!cli->json) {
        printf("%s: %zu ops, %zu images, %zu bytes\n", cli_value(cli, OPT_OUTPUT), info.n_ops, info.n_images,
               info.bytes);
        return EXIT_DONE;
    }
    return cli_print(json_pack("{s:I, s:I, s:I}", "ops", (json_int_t)info.n_ops, "images",
                               (json_int_t)info.n_images, "bytes", (json_int_t)info.bytes),
                     EXIT_DONE);
}
