/* SPDX-License-Identifier: Apache-2.0 */

/* A libnvJitLink that can be found and links nothing. Its version is what its file's name ends with (.so.12).
 * FAKE_NVJITLINK_SIGNAL: the number of one that ends the process in a link, as damaged inputs may a real one.
 */

#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "abi/nvjitlink.h"

#define EXPORT __attribute__((visibility("default")))

#pragma GCC diagnostic ignored "-Wunused-parameter"
#define FAKE(name, parameters)                                \
    EXPORT nvJitLinkResult nvJitLink##name parameters;        \
    nvJitLinkResult nvJitLink##name parameters                \
    {                                                         \
        const char *number = getenv("FAKE_NVJITLINK_SIGNAL"); \
        if (number)                                           \
            raise(atoi(number));                              \
        return NVJITLINK_ERROR_INTERNAL;                      \
    }
NVJITLINK_FUNCTION_LIST(FAKE)

EXPORT nvJitLinkResult nvJitLinkVersion(unsigned *major, unsigned *minor);
nvJitLinkResult nvJitLinkVersion(unsigned *major, unsigned *minor)
{
    static const char here;
    Dl_info info;
    const char *end = dladdr(&here, &info) ? strstr(info.dli_fname, ".so.") : NULL;
    *minor = 0;
    return end && sscanf(end, ".so.%u", major) == 1 ? NVJITLINK_SUCCESS : NVJITLINK_ERROR_INTERNAL;
}
