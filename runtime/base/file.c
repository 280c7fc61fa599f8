/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* Devices and pipes have no end, or keep one waiting: they are refused before anything is read. */
static kr_status open_regular(const char *path, int *ret_fd, size_t *ret_bytes, kr_error *err)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat facts;
    if (fd < 0 || fstat(fd, &facts)) {
        const int number = errno;
        if (fd >= 0)
            close(fd);
        return KR_FAIL_ERRNO(err, number == ENOENT ? KR_NOT_FOUND : KR_IO, number, "cannot open %s", path);
    }
    if (!S_ISREG(facts.st_mode)) {
        close(fd);
        return S_ISDIR(facts.st_mode) ? KR_FAIL_ERRNO(err, KR_IO, EISDIR, "cannot read %s", path)
                                      : KR_FAIL(err, KR_IO, "%s is not a regular file", path);
    }
    *ret_fd = fd;
    *ret_bytes = (size_t)facts.st_size;
    return KR_OK;
}

kr_status kr__file_read_most(const char *path, size_t most_bytes, char **ret_data, size_t *ret_bytes,
                             kr_error *err)
{
    int fd = -1;
    size_t bytes; /* may grow while it is read */
    const kr_status status = open_regular(path, &fd, &bytes, err);
    if (status)
        return status;
    kr__text text = {0};
    bool too_long = bytes > most_bytes;
    char chunk[8 << 10]; /* callers may have small stacks */
    ssize_t n = 0;
    while (!too_long && !text.failed &&
           ((n = read(fd, chunk, sizeof chunk)) > 0 || (n < 0 && errno == EINTR)))
        if (n > 0) {
            kr__text_add_bytes(&text, chunk, (size_t)n);
            too_long = text.bytes > most_bytes;
        }
    const int number = errno;
    close(fd);
    kr__text_add_bytes(&text, "", 0);
    if (n >= 0 && !text.failed && !too_long) {
        *ret_data = text.data;
        *ret_bytes = text.bytes;
        return KR_OK;
    }
    const bool failed = text.failed;
    kr__text_free(&text);
    if (n < 0)
        return KR_FAIL_ERRNO(err, KR_IO, number, "cannot read %s", path);
    return failed ? KR_FAIL(err, KR_OUT_OF_HOST_MEMORY, "%s does not fit into host memory", path)
                  : KR_FAIL_ERRNO(err, KR_IO, EFBIG, "%s has more than %zu bytes", path, most_bytes);
}

kr_status kr__file_read(const char *path, char **ret_data, size_t *ret_bytes, kr_error *err)
{
    return kr__file_read_most(path, SIZE_MAX, ret_data, ret_bytes, err);
}

bool kr__file_exists(const char *path)
{
    return access(path, F_OK) == 0;
}

bool kr__file_is_strange(const char *path)
{
    struct stat facts;
    return strchr(path, '/') && !stat(path, &facts) && !S_ISREG(facts.st_mode);
}

kr_status kr__file_map(const char *path, const void **ret_data, size_t *ret_bytes, kr_error *err)
{
    int fd = -1;
    size_t bytes;
    const kr_status status = open_regular(path, &fd, &bytes, err);
    if (status)
        return status;
    void *data = bytes ? mmap(NULL, bytes, PROT_READ, MAP_PRIVATE, fd, 0) : NULL;
    const int number = errno;
    close(fd);
    if (data == MAP_FAILED)
        return KR_FAIL_ERRNO(err, number == ENOMEM ? KR_OUT_OF_HOST_MEMORY : KR_IO, number, "cannot map %s",
                             path);
    *ret_data = data;
    *ret_bytes = bytes;
    return KR_OK;
}

void kr__file_unmap(const void *data, size_t bytes)
{
    if (data)
        munmap((void *)data, bytes);
}
