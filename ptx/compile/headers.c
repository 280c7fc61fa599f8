/* SPDX-License-Identifier: Apache-2.0 */
#include "ptx/compile/nvrtc.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* From the folder of the library: a toolkit or a CUDA 13 wheel, wheels of CUDA 11 and 12, Debian's package.
 */
static const char *const includes[] = {"../include", "../../cuda_runtime/include", "../../include"};

bool kr__toolkit_include(const char *folder, kr__arena *arena, const char **ret_include)
{
    bool have_memory = true;
    *ret_include = NULL;
    for (size_t i = 0; i < KR_COUNT(includes) && have_memory && !*ret_include; i++) {
        kr__text header = {0};
        kr__text_add(&header, "%s/%s/cuda_fp16.h", folder, includes[i]);
        char *real = header.failed ? NULL : realpath(header.data, NULL);
        if (real)
            *ret_include = kr__arena_text(arena, real, (size_t)(strrchr(real, '/') - real));
        have_memory = real ? *ret_include != NULL : !header.failed && errno != ENOMEM;
        kr__text_free(&header);
        free(real);
    }
    return have_memory;
}

int kr__toolkit_headers_version(const char *folder)
{
    kr__text path = {0};
    char *text = NULL;
    size_t bytes;
    int version = 0;
    kr__text_add(&path, "%s/cuda.h", folder);
    if (!path.failed && kr__file_read(path.data, &text, &bytes, NULL) == KR_OK) {
        const char *line = strstr(text, "#define CUDA_VERSION ");
        if (line)
            sscanf(line, "#define CUDA_VERSION %d", &version);
    }
    free(text);
    kr__text_free(&path);
    return version;
}
