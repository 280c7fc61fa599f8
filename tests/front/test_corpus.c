/* SPDX-License-Identifier: Apache-2.0 */
/* All PTX that nvcc makes of the files in cuda/ is read, for three targets and with debug information.
 * Skipped without nvcc. */
#include "ptx/front/ptx.h"

#include <stdio.h>
#include <stdlib.h>

enum { SKIPPED = 77 };

static bool read_whole(const char *path)
{
    char *text;
    size_t bytes;
    if (kr__file_read(path, &text, &bytes, NULL) != KR_OK)
        return false;
    ptx_module *module = NULL;
    ptx_problem problem;
    const bool ok = kr__ptx_parse(text, bytes, NULL, &module, &problem);
    size_t n = 0;
    for (const ptx_function *function = ok ? module->functions : NULL; function; function = function->next)
        n += function->n_instrs;
    printf("%s: %zu instructions\n%s", path, n, problem.log.data ? problem.log.data : "");
    kr__text_free(&problem.log);
    kr__ptx_module_free(&module);
    free(text);
    return ok && n;
}

int main(void)
{
    static const char *const files[] = {"calls", "half", "math", "memory"};
    static const char *const options[] = {"-arch=sm_75", "-arch=sm_90", "-arch=sm_120", "-arch=sm_90 -G",
                                          "-arch=sm_80 -lineinfo"};
    const char *nvcc = getenv("NVCC") ? getenv("NVCC") : "/usr/local/cuda/bin/nvcc";
    if (!kr__file_exists(nvcc)) {
        printf("no nvcc: skipped\n");
        return SKIPPED;
    }
    unsetenv("MALLOC_PERTURB_"); /* meson sets it, and nvcc's parts may fall over it */
    char folder[] = "/tmp/front_XXXXXX";
    if (!mkdtemp(folder))
        return EXIT_FAILURE;
    bool ok = true;
    for (size_t i = 0; i < KR_COUNT(files); i++)
        for (size_t k = 0; k < KR_COUNT(options); k++) {
            char path[1024], command[4096];
            kr__format(path, sizeof path, "%s/%s.%zu.ptx", folder, files[i], k);
            kr__format(command, sizeof command, "'%s' -ptx -rdc=true %s '%s/%s.cu' -o '%s'", nvcc, options[k],
                       KR_TEST_CUDA, files[i], path);
            ok &= system(command) == 0 && read_whole(path);
            remove(path);
        }
    remove(folder);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
