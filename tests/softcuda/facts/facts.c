/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/softcuda/facts/facts.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ANSWER_BYTES = 4096, CASE_SECONDS = 60 };

/* Answers are written as they come, so that those before a crash are kept. */
static int answers_fd = STDOUT_FILENO;

void say(const char *format, ...)
{
    char text[ANSWER_BYTES];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    for (char *c = text; *c; c++)
        if (*c == '\n' || *c == '\t')
            *c = '|';
    if (n > 0 && write(answers_fd, text, strlen(text)) < 0)
        _exit(1);
}

void must(CUresult result, const char *call)
{
    if (result == CUDA_SUCCESS)
        return;
    say(" could not: %.40s = %d", call, (int)result);
    _exit(0);
}

CUcontext begin(void)
{
    CUcontext context;
    MUST(cuInit(0));
    MUST(cuDevicePrimaryCtxRetain(&context, 0));
    MUST(cuCtxSetCurrent(context));
    return context;
}

/* Asks in a child: a fault, a crash or a hang ends that case alone. */
static void answers_of(const fact *f, char *text)
{
    int ends[2];
    if (pipe(ends)) {
        perror("pipe");
        exit(2);
    }
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        close(ends[0]);
        answers_fd = ends[1];
        alarm(CASE_SECONDS);
        f->ask();
        _exit(0);
    }
    close(ends[1]);
    size_t n = 0;
    for (ssize_t got; n < ANSWER_BYTES - 32 && (got = read(ends[0], text + n, ANSWER_BYTES - 32 - n)) > 0;)
        n += (size_t)got;
    close(ends[0]);
    int status;
    if (child < 0 || waitpid(child, &status, 0) < 0) {
        perror("fork");
        exit(2);
    }
    if (WIFSIGNALED(status))
        n += (size_t)sprintf(text + n, " signal %d", WTERMSIG(status));
    text[n] = 0;
}

/* The recorded answers of one case, or NULL. */
static const char *recorded(const char *file, const char *name, char *line, size_t size)
{
    FILE *in = fopen(file, "r");
    if (!in) {
        perror(file);
        exit(2);
    }
    size_t n = strlen(name);
    const char *found = NULL;
    while (!found && fgets(line, (int)size, in))
        if (!strncmp(line, name, n) && line[n] == '\t') {
            line[strcspn(line, "\n")] = 0;
            found = line + n + 1;
        }
    fclose(in);
    return found;
}

int facts_main(int argc, char **argv, const fact *facts, size_t n)
{
    const char *judge = argc == 3 && !strcmp(argv[1], "--judge") ? argv[2] : NULL;
    const char *only = argc == 2 ? argv[1] : NULL;
    static char answers[ANSWER_BYTES], line[2 * ANSWER_BYTES];
    size_t asked = 0, different = 0;
    for (size_t i = 0; i < n; i++) {
        if (only && strcmp(only, facts[i].name) != 0)
            continue;
        asked++;
        answers_of(&facts[i], answers);
        if (!judge) {
            printf("%s\t%s\n", facts[i].name, answers);
            continue;
        }
        const char *expected = recorded(judge, facts[i].name, line, sizeof line);
        if (expected && !strcmp(expected, answers))
            continue;
        different++;
        printf("%s\n  recorded:%s\n  here:    %s\n", facts[i].name, expected ? expected : " nothing",
               answers);
    }
    if (judge)
        printf("%zu of %zu cases answer as recorded\n", asked - different, asked);
    return !asked || different;
}
