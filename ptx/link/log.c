/* SPDX-License-Identifier: Apache-2.0 */
#include "ptx/link/linker.h"

#include <string.h>

static size_t line_bytes(const char *line)
{
    return strcspn(line, "\n");
}

/* "error   : Undefined reference to 'scale' in 'a.ptx'", "ptxas fatal   : Unresolved extern function
 * 'scale'": what follows the colon. NULL: no error. */
static const char *error_of(const char *line, size_t *ret_bytes)
{
    const char *error = memmem(line, line_bytes(line), "error", 5);
    if (!error)
        error = memmem(line, line_bytes(line), "fatal", 5);
    const char *colon = error ? memchr(error, ':', line_bytes(error)) : NULL;
    if (!colon)
        return NULL;
    colon += 1 + strspn(colon + 1, " ");
    *ret_bytes = line_bytes(colon);
    return colon;
}

/* Of a name: undefined, in LTO-IR too, or defined twice. */
static bool is_of_name(const char *error)
{
    static const char *const begins[] = {"Undefined reference", "Unresolved extern", "Multiple definition"};
    for (size_t i = 0; i < KR_COUNT(begins); i++)
        if (!strncmp(error, begins[i], strlen(begins[i])))
            return true;
    return false;
}

kr_status kr__link_failed(const char *linker, size_t n_parts, const char *target, const kr__text *log,
                          kr_error *err)
{
    const char *const text = log->data ? log->data : "";
    const char *first = text;
    size_t first_bytes = line_bytes(text), n = 0;
    kr__text names = {0};
    for (const char *line = text; *line; line += line_bytes(line), line += *line == '\n') {
        size_t bytes;
        const char *error = error_of(line, &bytes);
        if (!error)
            continue;
        if (is_of_name(error))
            kr__text_add(&names, "%s%.*s", n++ ? "; " : "", (int)bytes, error);
        else if (first == text) {
            first = error;
            first_bytes = bytes;
        }
    }
    KR_FAIL(err, KR_COMPILE_FAILED, "%zu image%s not link for %s: %.*s", n_parts,
            n_parts == 1 ? " does" : "s do", target, n && !names.failed ? (int)names.bytes : (int)first_bytes,
            n && !names.failed ? names.data : first);
    kr__error_log(err, text);
    if (n)
        kr__error_advice(err, "Link what defines each of these names, once.");
    else if (strstr(text, "Unsupported .version"))
        kr__error_advice(
            err, "Give the PTX to kr_ptx_relevel or `kregistry relevel` first, or use a newer linker.");
    else
        kr__error_advice(err, "Correct what the log of %s names.", linker);
    kr__text_free(&names);
    return KR_COMPILE_FAILED;
}
