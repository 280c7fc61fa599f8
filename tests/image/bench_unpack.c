/* SPDX-License-Identifier: Apache-2.0 */
/* bench_unpack FATBIN: how many MB its entries unpack to, and the milliseconds of processor time that zstd
 * and LZ4 alone take for it: no reader of them all is faster. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "ptx/image/image.h"

static double now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return 1e3 * (double)now.tv_sec + 1e-6 * (double)now.tv_nsec;
}

static kr_status unpack(const kr__fatbin *fatbin, kr_error *err)
{
    size_t all = 0;
    double ms = 0;
    for (size_t i = 0; i < fatbin->n_entries; i++) {
        const kr__fatbin_entry *entry = &fatbin->entries[i];
        all += entry->bytes;
        if (entry->compression == KR_STORED)
            continue;
        char *data;
        size_t bytes;
        const double begin = now_ms();
        const kr_status status = kr__fatbin_unpack(entry, &data, &bytes, err);
        if (status)
            return status;
        free(data);
        ms += now_ms() - begin;
    }
    printf("%8.1f %8.1f\n", 1e-6 * (double)all, ms);
    return KR_OK;
}

int main(int argc, char **argv)
{
    kr_error err;
    const void *file;
    size_t bytes;
    kr__fatbin *fatbin = NULL;
    if (argc != 2)
        return 2;
    kr_status status = kr__file_map(argv[1], &file, &bytes, &err);
    if (!status)
        status = kr__fatbin_read(file, bytes, &fatbin, &err);
    if (!status)
        status = unpack(fatbin, &err);
    kr__fatbin_free(&fatbin);
    return status ? kr_error_print(&err, stderr) : 0;
}
