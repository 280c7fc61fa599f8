/* SPDX-License-Identifier: Apache-2.0 */
#include "ptx/compile/nvrtc.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Types and spellings are those of libcu++ under NVRTC, so that a kernel may include both. */
#define STDINT_TEXT                                                     \
    "#pragma once\n"                                                    \
    "typedef signed char int8_t; typedef unsigned char uint8_t;\n"      \
    "typedef short int16_t; typedef unsigned short uint16_t;\n"         \
    "typedef int int32_t; typedef unsigned int uint32_t;\n"             \
    "typedef long long int64_t; typedef unsigned long long uint64_t;\n" \
    "typedef int8_t int_least8_t; typedef uint8_t uint_least8_t;\n"     \
    "typedef int16_t int_least16_t; typedef uint16_t uint_least16_t;\n" \
    "typedef int32_t int_least32_t; typedef uint32_t uint_least32_t;\n" \
    "typedef int64_t int_least64_t; typedef uint64_t uint_least64_t;\n" \
    "typedef int8_t int_fast8_t; typedef uint8_t uint_fast8_t;\n"       \
    "typedef int16_t int_fast16_t; typedef uint16_t uint_fast16_t;\n"   \
    "typedef int32_t int_fast32_t; typedef uint32_t uint_fast32_t;\n"   \
    "typedef int64_t int_fast64_t; typedef uint64_t uint_fast64_t;\n"   \
    "typedef int64_t intptr_t; typedef uint64_t uintptr_t;\n"           \
    "typedef int64_t intmax_t; typedef uint64_t uintmax_t;\n"           \
    "#include <kregistry/limits.h>\n"                                   \
    "#define INT8_MIN SCHAR_MIN\n"                                      \
    "#define INT8_MAX SCHAR_MAX\n"                                      \
    "#define UINT8_MAX UCHAR_MAX\n"                                     \
    "#define INT16_MIN SHRT_MIN\n"                                      \
    "#define INT16_MAX SHRT_MAX\n"                                      \
    "#define UINT16_MAX USHRT_MAX\n"                                    \
    "#define INT32_MIN INT_MIN\n"                                       \
    "#define INT32_MAX INT_MAX\n"                                       \
    "#define UINT32_MAX UINT_MAX\n"                                     \
    "#define INT64_MIN LLONG_MIN\n"                                     \
    "#define INT64_MAX LLONG_MAX\n"                                     \
    "#define UINT64_MAX ULLONG_MAX\n"                                   \
    "#define INTPTR_MIN INT64_MIN\n"                                    \
    "#define INTPTR_MAX INT64_MAX\n"                                    \
    "#define UINTPTR_MAX UINT64_MAX\n"                                  \
    "#define INTMAX_MIN INT64_MIN\n"                                    \
    "#define INTMAX_MAX INT64_MAX\n"                                    \
    "#define UINTMAX_MAX UINT64_MAX\n"                                  \
    "#define PTRDIFF_MIN INT64_MIN\n"                                   \
    "#define PTRDIFF_MAX INT64_MAX\n"                                   \
    "#define SIZE_MAX UINT64_MAX\n"

#define STD(names) "namespace std { " names " }\n"
#define USING(width)                                                                  \
    "using ::int" width "_t; using ::uint" width "_t; using ::int_least" width "_t; " \
    "using ::uint_least" width "_t; using ::int_fast" width "_t; using ::uint_fast" width "_t; "

#define LIMITS_TEXT                            \
    "#pragma once\n"                           \
    "#define CHAR_BIT 8\n"                     \
    "#define SCHAR_MIN (-128)\n"               \
    "#define SCHAR_MAX 127\n"                  \
    "#define UCHAR_MAX 255\n"                  \
    "#define CHAR_MIN SCHAR_MIN\n"             \
    "#define CHAR_MAX SCHAR_MAX\n"             \
    "#define SHRT_MIN (-SHRT_MAX - 1)\n"       \
    "#define SHRT_MAX 0x7fff\n"                \
    "#define USHRT_MAX 0xffff\n"               \
    "#define INT_MIN (-INT_MAX - 1)\n"         \
    "#define INT_MAX 0x7fffffff\n"             \
    "#define UINT_MAX 0xffffffff\n"            \
    "#define LONG_MIN (-LONG_MAX - 1)\n"       \
    "#define LONG_MAX LLONG_MAX\n"             \
    "#define ULONG_MAX ULLONG_MAX\n"           \
    "#define LLONG_MIN (-LLONG_MAX - 1)\n"     \
    "#define LLONG_MAX 0x7fffffffffffffffLL\n" \
    "#define ULLONG_MAX 0xffffffffffffffffUL\n"

#define FLOAT_TEXT                                 \
    "#pragma once\n"                               \
    "#define FLT_RADIX 2\n"                        \
    "#define FLT_EVAL_METHOD 0\n"                  \
    "#define FLT_MANT_DIG 24\n"                    \
    "#define FLT_DIG 6\n"                          \
    "#define FLT_DECIMAL_DIG 9\n"                  \
    "#define FLT_MIN_EXP (-125)\n"                 \
    "#define FLT_MAX_EXP 128\n"                    \
    "#define FLT_MIN_10_EXP (-37)\n"               \
    "#define FLT_MAX_10_EXP 38\n"                  \
    "#define FLT_MIN 1.17549435e-38f\n"            \
    "#define FLT_MAX 3.40282347e+38f\n"            \
    "#define FLT_EPSILON 1.19209290e-7f\n"         \
    "#define FLT_TRUE_MIN 1.40129846e-45f\n"       \
    "#define DBL_MANT_DIG 53\n"                    \
    "#define DBL_DIG 15\n"                         \
    "#define DBL_DECIMAL_DIG 17\n"                 \
    "#define DBL_MIN_EXP (-1021)\n"                \
    "#define DBL_MAX_EXP 1024\n"                   \
    "#define DBL_MIN_10_EXP (-307)\n"              \
    "#define DBL_MAX_10_EXP 308\n"                 \
    "#define DBL_MIN 2.2250738585072014e-308\n"    \
    "#define DBL_MAX 1.7976931348623157e+308\n"    \
    "#define DBL_EPSILON 2.2204460492503131e-16\n" \
    "#define DBL_TRUE_MIN 4.9406564584124654e-324\n"

#define STDDEF_TEXT                                                                \
    "#pragma once\n"                                                               \
    "typedef unsigned long size_t;\n"                                              \
    "typedef long ptrdiff_t;\n"                                                    \
    "#ifndef NULL\n"                                                               \
    "#define NULL 0\n"                                                             \
    "#endif\n"                                                                     \
    "#ifndef offsetof\n"                                                           \
    "#define offsetof(type, member) ((size_t)__INTADDR__(&((type *)0)->member))\n" \
    "#endif\n"

const kr__header kr__virtual_headers[] = {
    {"stdint.h", STDINT_TEXT},
    {"cstdint", "#pragma once\n#include <stdint.h>\n" STD(USING("8") USING("16") USING("32") USING(
                    "64") "using ::intptr_t; using ::uintptr_t; using ::intmax_t; using ::uintmax_t;")},
    {"stddef.h", STDDEF_TEXT},
    {"cstddef", "#pragma once\n#include <stddef.h>\n" STD(
                    "using ::size_t; using ::ptrdiff_t; typedef decltype(nullptr) nullptr_t;")},
    {"kregistry/limits.h", LIMITS_TEXT}, /* for stdint.h, whatever limits.h is */
    {"limits.h", "#pragma once\n#include <kregistry/limits.h>\n"},
    {"climits", "#pragma once\n#include <limits.h>\n"},
    {"float.h", FLOAT_TEXT},
    {"cfloat", "#pragma once\n#include <float.h>\n"},
    {"stdbool.h", "#pragma once\n"},
};
const size_t kr__n_virtual_headers = KR_COUNT(kr__virtual_headers);

/* From the folder of the library: a toolkit or a CUDA 13 wheel, wheels of CUDA 11 and 12, Debian's package.
 */
static const char *const includes[] = {"../include", "../../cuda_runtime/include", "../../include"};

bool kr__toolkit_include(const char *folder, kr__arena *arena, char **ret_include)
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
