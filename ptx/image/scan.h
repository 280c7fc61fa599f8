/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KR_PTX_SCAN_H
#define KR_PTX_SCAN_H

/*
 * PTX text of any version as what all versions have: blanks, comments, words, strings, marks, braces. Who
 * wants instructions and their meaning takes ptx/front.
 *
 * Each goes on from `at` and stops where PTX does: at the end, at a comment or string that is not closed, at
 * a byte that no PTX has.
 */

#include <stdbool.h>
#include <stddef.h>

/* Past a comment that begins at `at`; `at` where none does that is closed. */
const char *kr__scan_comment(const char *at, const char *end);

/* Past white space and comments. */
static inline const char *kr__scan_blanks(const char *at, const char *end)
{
    for (const char *after; at < end; at = after) {
        after = *at == ' ' || (*at >= '\t' && *at <= '\r') ? at + 1
                : *at == '/'                               ? kr__scan_comment(at, end)
                                                           : at;
        if (after == at)
            break;
    }
    return at;
}

/* Past a word ("%r1", "16", ".version", ".shared::cta"; "mov.u32" is two), a string or a mark. */
const char *kr__scan_token(const char *at, const char *end);

/* Past a brace that opens and all up to the one that closes it. false: none does, and *at is where PTX stops.
 */
bool kr__scan_block(const char **at, const char *end);

/* Is a byte part of words, besides their dot and colons? */
bool kr__scan_is_word(char c);

/* Is that the text from `at` to `end`? */
bool kr__scan_is(const char *at, const char *end, const char *text);

/* The number of a line, from 1. */
size_t kr__scan_line(const char *text, const char *at);

#endif
