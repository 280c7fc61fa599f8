/* SPDX-License-Identifier: Apache-2.0 */
/* What PTX says of itself before its first declaration. */
#include "ptx/image/image.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ptx/image/scan.h"

/* Past a directive that must come next, and blanks; NULL: it does not. */
static const char *directive(const char *at, const char *end, const char *name)
{
    const char *begin = kr__scan_blanks(at, end);
    at = kr__scan_token(begin, end);
    return kr__scan_is(begin, at, name) ? kr__scan_blanks(at, end) : NULL;
}

enum { WORD_BYTES = 24 };

static void copy(const char *at, const char *end, char word[WORD_BYTES])
{
    const size_t n = end - at < WORD_BYTES ? (size_t)(end - at) : WORD_BYTES - 1;
    memcpy(word, at, n);
    word[n] = '\0';
}

bool kr__ptx_head_read(const char *text, size_t bytes, kr__ptx_head *ret_head)
{
    const char *end = text + bytes, *at = directive(text, end, ".version");
    if (!at)
        return false;
    kr__ptx_head head = {.isa_at = (size_t)(at - text)};
    char word[WORD_BYTES], major[3], minor[2];
    int n = 0;
    copy(at, end, word);
    if (sscanf(word, "%2[0-9].%1[0-9]%n", major, minor, &n) == 2 && (word[n] < '0' || word[n] > '9'))
        head.isa = atoi(major) * 10 + *minor - '0';
    head.isa_end = head.isa_at + (size_t)n;
    at = directive(text + head.isa_end, end, ".target");
    if (at) {
        const char *target_end = kr__scan_token(at, end);
        copy(at, target_end, word);
        head.target_at = (size_t)(at - text);
        head.target_end = (size_t)(target_end - text);
        if (strncmp(word, "sm_", 3) != 0 || kr_cc_parse(word, &head.target, NULL) != KR_OK)
            head.target = (kr_cc){0};
    }
    *ret_head = head;
    return true;
}
