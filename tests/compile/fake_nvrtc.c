/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A libnvrtc that misbehaves on demand. What it does is said in the source text that it is given:
 *   "builtins"  the compile answers BUILTIN_OPERATION_FAILURE
 *   "internal"  ... INTERNAL_ERROR
 *   "memory"    ... COMPILATION, because its assembler had no memory
 *   "missing X" ... COMPILATION, because the header X is missing
 *   "locale"    the log is the code set of the calling thread's locale
 *   "append X"  a byte goes to the end of the file X meanwhile
 *   "options"   the log is the options, one a line
 *   "no cubin"  there is no cubin, whatever the arch
 *   "nothing"   there is no output at all
 * The lowered name of "alias" is empty. Every string it has given away is overwritten when its program is
 * destroyed. FAKE_NVRTC_VERSION is its version; when not set, what its file's name ends with (.so.12),
 * else 13.0.
 */

#include <dlfcn.h>
#include <langinfo.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "abi/nvrtc.h"

#define EXPORT __attribute__((visibility("default")))
#define FAKE_PROTOTYPE(name, parameters) EXPORT nvrtcResult name parameters;
NVRTC_REQUIRED_LIST(FAKE_PROTOTYPE)

static const char ptx[] = "// .entry in_a_comment(\n.version 8.3\n.target sm_80\n.address_size 64\n"
                          ".visible .entry first(\n)\n{ .pragma \".entry /* no\"; ret; }\n"
                          ".weak .entry/* */second$1()\n{ ret; }\n";
static const char cubin[] = "\177ELF and so on";

struct _nvrtcProgram {
    char *source;
    char log[4096];
    char lowered[64];
};

nvrtcResult nvrtcVersion(int *major, int *minor)
{
    static const char here;
    const char *version = getenv("FAKE_NVRTC_VERSION"), *end;
    Dl_info info;
    *major = 13;
    *minor = 0;
    if (!version && dladdr(&here, &info) && (end = strstr(info.dli_fname, ".so.")))
        version = end + strlen(".so.");
    return !version || sscanf(version, "%d.%d", major, minor) > 0 ? NVRTC_SUCCESS : NVRTC_ERROR_INVALID_INPUT;
}

nvrtcResult nvrtcGetNumSupportedArchs(int *count)
{
    *count = 3;
    return NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetSupportedArchs(int *archs)
{
    memcpy(archs, (int[]){75, 80, 120}, 3 * sizeof *archs);
    return NVRTC_SUCCESS;
}

nvrtcResult nvrtcCreateProgram(nvrtcProgram *program, const char *source, const char *name, int n_headers,
                               const char *const *header_texts, const char *const *header_names)
{
    (void)name, (void)n_headers, (void)header_texts, (void)header_names;
    *program = calloc(1, sizeof **program);
    (*program)->source = strdup(source);
    return NVRTC_SUCCESS;
}

nvrtcResult nvrtcDestroyProgram(nvrtcProgram *program)
{
    memset((*program)->log, 'X', sizeof(*program)->log);
    memset((*program)->lowered, 'X', sizeof(*program)->lowered);
    free((*program)->source);
    free(*program);
    *program = NULL;
    return NVRTC_SUCCESS;
}

nvrtcResult nvrtcCompileProgram(nvrtcProgram program, int n_options, const char *const *options)
{
    if (strstr(program->source, "options"))
        for (int i = 0; i < n_options; i++)
            strcat(strcat(program->log, options[i]), "\n");
    char path[200];
    if (sscanf(program->source, "append %199s", path) == 1) {
        FILE *file = fopen(path, "a");
        fputc(' ', file);
        fclose(file);
    }
    if (strstr(program->source, "locale"))
        snprintf(program->log, sizeof program->log, "%s", nl_langinfo(CODESET));
    if (strstr(program->source, "builtins")) {
        snprintf(program->log, sizeof program->log,
                 "nvrtc: error: failed to open libnvrtc-builtins.so.13.0.\n");
        return NVRTC_ERROR_BUILTIN_OPERATION_FAILURE;
    }
    if (strstr(program->source, "memory")) {
        snprintf(program->log, sizeof program->log, "ptxas fatal   : Memory allocation failure\n");
        return NVRTC_ERROR_COMPILATION;
    }
    if (strncmp(program->source, "missing ", 8) == 0) {
        snprintf(program->log, sizeof program->log,
                 "fake.cu(1): catastrophic error: cannot open source file \"%s\"\n", program->source + 8);
        return NVRTC_ERROR_COMPILATION;
    }
    return strstr(program->source, "internal") ? NVRTC_ERROR_INTERNAL_ERROR : NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetPTXSize(nvrtcProgram program, size_t *bytes)
{
    *bytes = strstr(program->source, "nothing") ? 0 : sizeof ptx;
    return NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetPTX(nvrtcProgram program, char *to)
{
    (void)program;
    memcpy(to, ptx, sizeof ptx);
    return NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetCUBINSize(nvrtcProgram program, size_t *bytes)
{
    *bytes = strstr(program->source, "no cubin") || strstr(program->source, "nothing") ? 0 : sizeof cubin;
    return NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetCUBIN(nvrtcProgram program, char *to)
{
    (void)program;
    memcpy(to, cubin, sizeof cubin);
    return NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetProgramLogSize(nvrtcProgram program, size_t *bytes)
{
    *bytes = strlen(program->log) + 1;
    return NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetProgramLog(nvrtcProgram program, char *log)
{
    strcpy(log, program->log);
    return NVRTC_SUCCESS;
}

nvrtcResult nvrtcAddNameExpression(nvrtcProgram program, const char *expression)
{
    (void)program, (void)expression;
    return NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetLoweredName(nvrtcProgram program, const char *expression, const char **lowered)
{
    if (strcmp(expression, "alias") != 0)
        snprintf(program->lowered, sizeof program->lowered, "_Z%s", expression);
    *lowered = program->lowered;
    return NVRTC_SUCCESS;
}
