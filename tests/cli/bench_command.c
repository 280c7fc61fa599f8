/* SPDX-License-Identifier: Apache-2.0 */
/* bench_command COMMAND ARGUMENT...: the least that it takes of many times, from its start to its end and of
 * processor time, and the most memory. What it prints is thrown away. */
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

enum { TIMES = 7 };

extern char **environ;

typedef struct cost {
    double wall_ms, processor_ms, peak_mb;
} cost;

static double now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return 1e3 * (double)now.tv_sec + 1e-6 * (double)now.tv_nsec;
}

static double ms(struct timeval time)
{
    return 1e3 * (double)time.tv_sec + 1e-3 * (double)time.tv_usec;
}

static cost run(char **command)
{
    posix_spawn_file_actions_t actions;
    struct rusage used;
    pid_t child;
    int status = 1;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
    const double begin = now_ms();
    if (posix_spawnp(&child, command[0], &actions, NULL, command, environ) == 0)
        wait4(child, &status, 0, &used);
    const double wall_ms = now_ms() - begin;
    posix_spawn_file_actions_destroy(&actions);
    if (status) {
        fprintf(stderr, "%s failed\n", command[0]);
        exit(1);
    }
    return (cost){wall_ms, ms(used.ru_utime) + ms(used.ru_stime), 1e-3 * 1.024 * (double)used.ru_maxrss};
}

int main(int argc, char **argv)
{
    if (argc < 2)
        return 2;
    cost best = run(argv + 1);
    for (int i = 1; i < TIMES; i++) {
        const cost one = run(argv + 1);
        best.wall_ms = one.wall_ms < best.wall_ms ? one.wall_ms : best.wall_ms;
        best.processor_ms = one.processor_ms < best.processor_ms ? one.processor_ms : best.processor_ms;
        best.peak_mb = one.peak_mb > best.peak_mb ? one.peak_mb : best.peak_mb;
    }
    printf("%8.1f %8.1f %8.1f\n", best.wall_ms, best.processor_ms, best.peak_mb);
    return 0;
}
