/* SPDX-License-Identifier: Apache-2.0 */
/* replay FOLDER: stands for libFuzzer in ordinary builds, and gives a target the inputs that are kept. */
#include "fuzz.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

#include "runtime/base/base.h"

static bool replay(const char *folder, const char *name)
{
    char path[1000], *data;
    size_t bytes;
    kr_error err;
    kr__format(path, sizeof path, "%s/%s", folder, name);
    fprintf(stderr, "%s\n", name); /* the last one told is the one that ended it */
    if (kr__file_read(path, &data, &bytes, &err)) {
        fprintf(stderr, "%s\n", err.message);
        return false;
    }
    LLVMFuzzerTestOneInput((const uint8_t *)data, bytes);
    free(data);
    return true;
}

int main(int argc, char **argv)
{
    DIR *folder = argc == 2 ? opendir(argv[1]) : NULL;
    if (!folder) {
        fprintf(stderr, "usage: replay FOLDER\n");
        return 2;
    }
    bool ok = true;
    for (const struct dirent *entry; ok && (entry = readdir(folder));)
        ok = entry->d_name[0] == '.' || replay(argv[1], entry->d_name);
    closedir(folder);
    return !ok;
}
