/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

static const struct {
    const char *name;
    int letter;
    const char *value;
    const char *help;
} option_rows[N_OPTIONS] = {
#define OPTION_ROW(id, name, letter, value, help) {name, letter, value, help},
    OPTION_LIST(OPTION_ROW)
#undef OPTION_ROW
};

static const cli_command commands[] = {
    {"list", "the ops: types, arguments, variants, shipped images", "[GLOB]", "kregistry list 's*' --resolve",
     BIT(RESOLVE), 0, 1, run_list},
    {"devices", "the driver and its devices", "", "kregistry devices --driver softcuda", 0, 0, 0,
     run_devices},
    {"explain", "why this variant and image run on a device", "OP",
     "kregistry explain saxpy.f32 --cc 8.6 --driver-version 13.0 --nvrtc-archs 75,80,90",
     BIT(TYPE) | BIT(VARIANT) | BIT(CC) | BIT(DRIVER_VERSION) | BIT(NVRTC_ARCHS), 1, 1, run_explain},
    {"check", "which op runs on which compute capability", "[GLOB]",
     "kregistry check --cc 7.5,9.0,12.0 --no-nvrtc --driver-version 12.4",
     BIT(CC) | BIT(DRIVER_VERSION) | BIT(NVRTC_ARCHS) | BIT(NO_NVRTC), 0, 1, run_check},
    {"run", "run an op on made data, check it, time it", "OP", "kregistry run saxpy --type f32 --n 1000000",
     BIT(N) | BIT(SHAPE) | BIT(TYPE) | BIT(VARIANT) | BIT(BLOCK) | BIT(SEED) | BIT(REPEAT) | BIT(SPLIT) |
         BIT(TRACE),
     1, 1, run_run},
    {"verify", "hold kernels to their references", "[GLOB]", "kregistry verify 'sum.*' --quick",
     BIT(VARIANT) | BIT(MAX_CC) | BIT(SEED) | BIT(QUICK) | BIT(SHAPE) | BIT(CLASS) | BIT(SHIFT) | BIT(LIMIT) |
         BIT(WORKER),
     0, 1, run_verify},
    {"compile", "compile a CUDA source with NVRTC", "FILE.cu",
     "kregistry compile blur.cu -o blur.cubin --arch sm_90",
     BIT(OUTPUT) | BIT(KIND) | BIT(ARCH) | BIT(INCLUDE) | BIT(DEFINE) | BIT(OPTION) | BIT(NAME), 1, 1,
     run_compile},
    {"link", "join PTX, cubins, fatbins and LTO-IR into one image", "FILE...",
     "kregistry link a.ptx b.cubin -o both.cubin --arch sm_90",
     BIT(OUTPUT) | BIT(ARCH) | BIT(OPTION) | BIT(NVJITLINK), 1, MAX_INPUTS, run_link},
    {"inspect", "what a file of device code holds", "FILE", "kregistry inspect libkernels.so --json", 0, 1, 1,
     run_inspect},
    {"pack", "make one file of ops and their images", "[GLOB]",
     "kregistry pack --ops kernels -o my_kernels.pack --arch 75,80,90a,120 --ptx 75",
     BIT(OUTPUT) | BIT(ARCH) | BIT(PTX) | BIT(NO_SOURCE) | BIT(DEPFILE), 0, 1, run_pack},
    {"embed", "make a pack part of a program", "PACK", "kregistry embed my_kernels.pack -o my_kernels.c",
     BIT(OUTPUT), 1, 1, run_embed},
    {"relevel", "the same PTX for older drivers and devices", "IN.ptx",
     "kregistry relevel new.ptx -o old.ptx --driver-version 11.8",
     BIT(OUTPUT) | BIT(ISA) | BIT(DRIVER_VERSION) | BIT(LOWEST) | BIT(TARGET), 1, 1, run_relevel},
    {"doctor", "find what is wrong on this machine", "", "kregistry doctor --json", 0, 0, 0, run_doctor},
    {"version", "of the command, library, NVRTC and driver", "", "kregistry version --json", 0, 0, 0,
     run_version},
    {"completion", "a completion script", "bash|zsh|fish", "eval \"$(kregistry completion bash)\"", 0, 1, 1,
     run_completion},
};
static const size_t n_commands = sizeof commands / sizeof *commands;

/* ---- values ---- */

const char *cli_value(const invocation *cli, option_id id)
{
    return cli->n_values[id] ? cli->values[id][cli->n_values[id] - 1] : NULL;
}

bool cli_has(const invocation *cli, option_id id)
{
    return cli->n_values[id] > 0;
}

static bool read_number(const char *text, size_t length, uint64_t *ret_value)
{
    char digits[32], *end;
    if (length == 0 || length >= sizeof digits || text[0] < '0' || text[0] > '9')
        return false;
    memcpy(digits, text, length);
    digits[length] = '\0';
    errno = 0;
    unsigned long long value = strtoull(digits, &end, 10);
    if (*end || errno)
        return false;
    *ret_value = value;
    return true;
}

static kr_status refuse_numbers(option_id id, const char *text, char separator, size_t max, kr_error *err)
{
    const char *name = option_rows[id].name;
    if (!separator)
        return tool_refuse(err, "Give a whole number, 0 to 2^64-1.", "--%s %s: not a number", name, text);
    tool_fail(err, KR_INVALID_ARGUMENT, "--%s %s: not numbers, or too many", name, text);
    tool_advice(err, "Give at most %zu whole numbers with %c between them, each 0 to 2^64-1.", max,
                separator);
    return err->status;
}

kr_status cli_numbers(const invocation *cli, option_id id, char separator, uint64_t *ret_values, size_t max,
                      size_t *ret_n, kr_error *err)
{
    const char *text = cli_value(cli, id);
    size_t n = 0;
    for (const char *at = text; text; n++) {
        size_t length = strcspn(at, (char[]){separator, '\0'});
        if (n == max || !read_number(at, length, &ret_values[n]))
            return refuse_numbers(id, text, separator, max, err);
        if (at[length] == '\0') {
            n++;
            break;
        }
        at += length + 1;
    }
    *ret_n = n;
    return KR_OK;
}

kr_status cli_number(const invocation *cli, option_id id, uint64_t *ret_value, kr_error *err)
{
    size_t n;
    return cli_numbers(cli, id, '\0', ret_value, 1, &n, err);
}

static size_t edit_distance(const char *a, const char *b)
{
    size_t row[64], n = strlen(b);
    if (n >= sizeof row / sizeof *row)
        return SIZE_MAX;
    for (size_t j = 0; j <= n; j++)
        row[j] = j;
    for (size_t i = 0; a[i]; i++) {
        size_t diagonal = row[0];
        row[0] = i + 1;
        for (size_t j = 1; j <= n; j++) {
            size_t best = diagonal + (a[i] != b[j - 1]);
            diagonal = row[j];
            best = row[j] + 1 < best ? row[j] + 1 : best;
            row[j] = row[j - 1] + 1 < best ? row[j - 1] + 1 : best;
        }
    }
    return row[n];
}

const char *nearest(const char *name, const char *const *names, size_t n)
{
    const char *best = NULL;
    size_t third = strlen(name) / 3, least = (third > 1 ? third : 1) + 1; /* farther is no suggestion */
    for (size_t i = 0; i < n; i++) {
        size_t distance = edit_distance(name, names[i]);
        if (distance < least) {
            least = distance;
            best = names[i];
        }
    }
    return best;
}

void list_all(kr_error *err, const char *const *names, size_t n)
{
    char all[sizeof err->advice - 16] = "";
    for (size_t i = 0; i < n; i++)
        snprintf(all + strlen(all), sizeof all - strlen(all), "%s%s", i ? ", " : "", names[i]);
    tool_advice(err, "There is %s", all);
}

void suggest(kr_error *err, const char *name, const char *const *names, size_t n)
{
    const char *near = nearest(name, names, n);
    if (near)
        tool_advice(err, "Did you mean \"%s\"?", near);
    else
        list_all(err, names, n);
}

/* ---- reading the command line ---- */

static kr_status unknown(kr_error *err, const char *what, const char *name, const char *const *names,
                         size_t n)
{
    tool_fail(err, KR_INVALID_ARGUMENT, "unknown %s \"%s\"", what, name);
    suggest(err, name, names, n);
    return err->status;
}

static kr_status unknown_command(kr_error *err, const char *name)
{
    const char *names[32];
    for (size_t i = 0; i < n_commands; i++)
        names[i] = commands[i].name;
    return unknown(err, "command", name, names, n_commands);
}

static uint64_t options_of(const cli_command *command)
{
    return GLOBAL_OPTIONS | (command ? command->options : 0);
}

static kr_status unknown_option(kr_error *err, const char *word, const cli_command *command)
{
    const char *names[N_OPTIONS];
    char name[64];
    size_t n = 0;
    snprintf(name, sizeof name, "%.*s", (int)strcspn(word, "="), word);
    for (size_t i = 0; i < N_OPTIONS; i++)
        if (options_of(command) >> i & 1 && option_rows[i].help)
            names[n++] = option_rows[i].name;
    const char *near = nearest(name + strspn(name, "-"), names, n);
    tool_fail(err, KR_INVALID_ARGUMENT, "unknown option %s", name);
    if (near)
        tool_advice(err, "Did you mean --%s?", near);
    else
        tool_advice(err, "`kregistry %s--help` lists the options.", command ? "COMMAND " : "");
    return err->status;
}

static void keep(invocation *cli, option_id id, const char *value)
{
    cli->values[id] = tool_realloc(cli->values[id], (cli->n_values[id] + 1) * sizeof *cli->values[id]);
    cli->values[id][cli->n_values[id]++] = value ? value : "";
}

/* Reads options from argv[optind] on. Before the command, stops at the first word that is none. */
static kr_status read_options(invocation *cli, int argc, char **argv, kr_error *err)
{
    struct option longs[N_OPTIONS + 1] = {0};
    char letters[2 * N_OPTIONS + 8];
    size_t n_longs = 0, n_letters = 0;
    if (!cli->command)
        letters[n_letters++] = '+';
    letters[n_letters++] = ':';
    for (int i = 0; i < N_OPTIONS; i++) {
        if (!(options_of(cli->command) >> i & 1))
            continue;
        longs[n_longs++] = (struct option){option_rows[i].name, option_rows[i].value != NULL, NULL, 256 + i};
        if (!option_rows[i].letter)
            continue;
        letters[n_letters++] = (char)option_rows[i].letter;
        if (option_rows[i].value)
            letters[n_letters++] = ':';
    }
    letters[n_letters] = '\0';
    opterr = 0;
    for (int got, row = -1; (got = getopt_long(argc, argv, letters, longs, &row)) != -1; row = -1) {
        const char *word = argv[optind - (optarg && optarg == argv[optind - 1] ? 2 : 1)];
        if (got == '?' && optopt >= 256)
            return tool_refuse(err, "Leave out the = and what follows it.", "option --%s takes no value",
                               option_rows[optopt - 256].name);
        if (got == '?' && optopt > 0)
            return unknown_option(err, (char[]){'-', (char)optopt, '\0'}, cli->command);
        /* getopt also takes an abbreviation; it may mean another option tomorrow */
        if (got == '?' || (row >= 0 && strcspn(word + 2, "=") != strlen(longs[row].name)))
            return unknown_option(err, word, cli->command);
        if (got == ':')
            return tool_refuse(err, "Give it after a blank.", "option %s needs a value", argv[optind - 1]);
        for (int i = 0; i < N_OPTIONS; i++)
            if (got == 256 + i || (got < 256 && got == option_rows[i].letter))
                keep(cli, (option_id)i, optarg);
    }
    return KR_OK;
}

static const cli_command *find_command(const char *name)
{
    for (size_t i = 0; i < n_commands; i++)
        if (strcmp(commands[i].name, name) == 0)
            return &commands[i];
    return NULL;
}

static kr_status read_color(const invocation *cli, kr_error *err)
{
    static const char *const names[] = {"auto", "always", "never"};
    const char *when = cli_value(cli, OPT_COLOR);
    for (size_t i = 0; when && i < 3; i++)
        if (strcmp(when, names[i]) == 0) {
            set_color(when);
            when = NULL;
        }
    return when ? unknown(err, "value for --color:", when, names, 3) : KR_OK;
}

static kr_status read_operands(invocation *cli, int argc, char **argv, kr_error *err)
{
    cli->operands = argv + optind;
    cli->n_operands = (size_t)(argc - optind);
    if (cli_has(cli, OPT_HELP))
        return KR_OK;
    if (cli->n_operands < cli->command->min_operands)
        tool_fail(err, KR_INVALID_ARGUMENT, "%s needs %s", cli->command->name, cli->command->operands);
    else if (cli->n_operands > cli->command->max_operands)
        tool_fail(err, KR_INVALID_ARGUMENT, "%s: one word too many: \"%s\"", cli->command->name,
                  cli->operands[cli->command->max_operands]);
    else
        return KR_OK;
    tool_advice(err, "For example: %s", cli->command->example);
    return err->status;
}

static kr_status read_command_line(invocation *cli, int argc, char **argv, kr_error *err)
{
    for (int i = 1; i < argc && argv[i][0] == '-'; i++)
        if (strcmp(argv[i], "--version") == 0) /* as other commands have it */
            argv[i] = "version";
    kr_status status = read_options(cli, argc, argv, err);
    if (status || optind == argc)
        return status;
    cli->command = find_command(argv[optind]);
    if (!cli->command)
        return unknown_command(err, argv[optind]);
    argv += optind;
    argc -= optind;
    optind = 0; /* getopt starts anew, and looks from argv[1] on */
    status = read_options(cli, argc, argv, err);
    if (!status)
        status = read_color(cli, err);
    return status ? status : read_operands(cli, argc, argv, err);
}

/* ---- help ---- */

static void print_options(uint64_t options)
{
    for (int i = 0; i < N_OPTIONS; i++) {
        char left[64];
        if (!(options >> i & 1) || !option_rows[i].help)
            continue;
        int n = option_rows[i].letter ? snprintf(left, sizeof left, "-%c, ", option_rows[i].letter)
                                      : snprintf(left, sizeof left, "    ");
        snprintf(left + n, sizeof left - (size_t)n, "--%s%s%s", option_rows[i].name,
                 option_rows[i].value ? " " : "", option_rows[i].value ? option_rows[i].value : "");
        printf("  %-28s %s\n", left, option_rows[i].help);
    }
}

static int help(const cli_command *command)
{
    if (command) {
        printf("kregistry %s%s%s: %s\n\n", command->name, *command->operands ? " " : "", command->operands,
               command->summary);
        print_options(command->options);
        printf("%sGlobal options:\n", command->options ? "\n" : "");
    } else {
        printf("kregistry COMMAND [OPTION...]: CUDA kernels from one registry\n\n");
        for (size_t i = 0; i < n_commands; i++)
            printf("  %-12s %s\n", commands[i].name, commands[i].summary);
        printf("\nOptions, before or after the command:\n");
    }
    print_options(GLOBAL_OPTIONS);
    printf("\nExample:\n  %s\n", command ? command->example : "kregistry run saxpy.f32 --n 1000000");
    if (!command)
        printf("\nExit codes: 0 done; 1 not so; 2 wrong usage or input; 3 no usable driver or device.\n");
    return EXIT_DONE;
}

/* ---- completion ---- */

static void write_words(FILE *to, const cli_command *command)
{
    uint64_t options = options_of(command);
    for (int i = 0; i < N_OPTIONS; i++)
        if (options >> i & 1 && option_rows[i].help)
            fprintf(to, " --%s", option_rows[i].name);
}

static void write_bash(FILE *to)
{
    fprintf(to, "_kregistry() {\n    local word=${COMP_WORDS[COMP_CWORD]} command= words= i\n"
                "    for ((i = 1; i < COMP_CWORD; i++)); do\n        case ${COMP_WORDS[i]} in\n");
    for (size_t i = 0; i < n_commands; i++)
        fprintf(to, "        %s) command=%s ;;\n", commands[i].name, commands[i].name);
    fprintf(to, "        esac\n    done\n    case $command in\n    '') words=\"");
    for (size_t i = 0; i < n_commands; i++)
        fprintf(to, "%s ", commands[i].name);
    write_words(to, NULL);
    fprintf(to, "\" ;;\n");
    for (size_t i = 0; i < n_commands; i++) {
        fprintf(to, "    %s) words=\"", commands[i].name);
        write_words(to, &commands[i]);
        fprintf(to, "\" ;;\n");
    }
    fprintf(to,
            "    esac\n    COMPREPLY=($(compgen -W \"$words\" -- \"$word\") $(compgen -f -- \"$word\"))\n}\n"
            "complete -F _kregistry kregistry\n");
}

static void write_fish(FILE *to)
{
    for (size_t i = 0; i < n_commands; i++)
        fprintf(to, "complete -c kregistry -n __fish_use_subcommand -a %s -d '%s'\n", commands[i].name,
                commands[i].summary);
    for (size_t i = 0; i <= n_commands; i++)
        for (int o = 0; o < N_OPTIONS; o++) {
            uint64_t options = i < n_commands ? commands[i].options : GLOBAL_OPTIONS;
            if (!(options >> o & 1) || !option_rows[o].help)
                continue;
            fprintf(to, "complete -c kregistry -l %s -d '%s'%s", option_rows[o].name, option_rows[o].help,
                    option_rows[o].value ? " -r" : "");
            if (i < n_commands)
                fprintf(to, " -n '__fish_seen_subcommand_from %s'", commands[i].name);
            fprintf(to, "\n");
        }
}

static void write_zsh(FILE *to)
{
    fprintf(to, "#compdef kregistry\nautoload -U +X bashcompinit && bashcompinit\n");
    write_bash(to);
}

int run_completion(const invocation *cli)
{
    static const char *const shells[] = {"bash", "zsh", "fish"};
    static void (*const writers[])(FILE * to) = {write_bash, write_zsh, write_fish};
    const char *shell = cli->operands[0];
    kr_error err;
    for (size_t i = 0; i < 3; i++) {
        char *script = NULL;
        size_t bytes;
        if (strcmp(shell, shells[i]) != 0)
            continue;
        FILE *to = tool_memory_file(&script, &bytes);
        writers[i](to);
        fclose(to);
        if (cli->json)
            cli_print(json_pack("{s:s, s:s}", "shell", shell, "script", script), 0);
        else
            fputs(script, stdout);
        free(script);
        return EXIT_DONE;
    }
    unknown(&err, "shell", shell, shells, 3);
    return cli_fail(cli, &err);
}

/* ---- main ---- */

static int no_command(const invocation *cli)
{
    kr_error err;
    if (!cli->json) {
        help(NULL);
        return EXIT_USAGE;
    }
    tool_fail(&err, KR_INVALID_ARGUMENT, "no command");
    tool_advice(&err, "`kregistry --help` lists them.");
    return cli_fail(cli, &err);
}

static void forget(invocation *cli)
{
    for (int i = 0; i < N_OPTIONS; i++)
        free(cli->values[i]);
}

int main(int argc, char **argv)
{
    signal(SIGCHLD, SIG_DFL); /* else a child whose starter ignored it cannot be waited for */
    signal(SIGXFSZ, SIG_IGN); /* a file at its limit is an error to tell */
    invocation cli = {0};
    kr_error err;
    int code;
    if (!open_standard_files())
        return EXIT_NOT_SO;
    for (int i = 1; i < argc; i++) /* known before anything can go wrong */
        cli.json = cli.json || strcmp(argv[i], "--json") == 0;
    start_output(cli.json);
    if (read_command_line(&cli, argc, argv, &err))
        code = cli_fail(&cli, &err);
    else if (cli_has(&cli, OPT_HELP))
        code = help(cli.command);
    else if (!cli.command)
        code = no_command(&cli);
    else
        code = cli.command->run(&cli);
    forget(&cli);
    return end_output(code);
}
