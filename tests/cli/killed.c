/* SPDX-License-Identifier: Apache-2.0 */

/* To be loaded before everything else: the first write to a file that the command opened itself ends the
 * process in its midst, as a kill or a loss of power does. */

#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

__attribute__((visibility("default"))) ssize_t write(int file, const void *data, size_t bytes)
{
    struct stat info;
    const int own = file > STDERR_FILENO && !fstat(file, &info) && S_ISREG(info.st_mode);
    const ssize_t n = syscall(SYS_write, file, data, own ? bytes / 2 : bytes);
    if (own)
        raise(SIGKILL);
    return n;
}
