/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KR_PTX_RELEVEL_H
#define KR_PTX_RELEVEL_H

/* What the files of this folder share. kregistry/relevel.h is what others see. */

#include "runtime/base/base.h"

/* ---- PTX text as statements (statement.c) ---- */

typedef struct ptx_slice {
    const char *at;
    size_t bytes;
} ptx_slice;

typedef enum ptx_statement_kind {
    PTX_STATEMENT_END,
    PTX_STATEMENT_LOCATION,   /* .loc; value: what may be cut off behind file, line and column */
    PTX_STATEMENT_PRAGMA,     /* value: its first string, with the quotes */
    PTX_STATEMENT_SECTION,    /* of debug data; value: from its brace on */
    PTX_STATEMENT_INSTRUCTION /* in a function's body */
} ptx_statement_kind;

/* Labels, braces and all other directives are passed over. */
typedef struct ptx_statement {
    ptx_statement_kind kind;
    ptx_slice whole; /* from its first byte to past its semicolon; an instruction's: from the guard on */
    ptx_slice value; /* see above; an instruction's: what stands behind the guard, without the semicolon */
    ptx_slice guard; /* "%p", or empty */
    bool is_negated; /* @!%p */
} ptx_statement;

typedef struct ptx_reader {
    const char *at, *end;
    unsigned depth; /* of braces: 0 outside of bodies */
} ptx_reader;

/* From behind the header on. Any bytes do: at what is no PTX the statements end. */
void kr__ptx_next_statement(ptx_reader *reader, ptx_statement *statement);

/* ---- rewriting one instruction (rewrite.c, rules.def) ---- */

typedef struct ptx_level {
    int isa; /* 78 */
    int sm;  /* 90 */
} ptx_level;

/* Those rules that are for a level; with older spellings also where it has the younger. */
typedef struct ptx_rules ptx_rules;
ptx_rules *kr__ptx_rules_create(ptx_level goal, bool spells_older); /* NULL: out of memory */
void kr__ptx_rules_destroy(ptx_rules **rules);

typedef struct ptx_made {
    const char *rule; /* the row's name; NULL: there is none, and nothing was added */
    ptx_level needs;  /* isa 0: what says the same was added; else nothing older says it, and this has it */
} ptx_made;

/* Is it a hint that the level does not know? */
bool kr__ptx_drops_pragma(const ptx_rules *rules, ptx_slice string);

/* Adds what says the same at that level, on as many lines. `serial` is for names that stand nowhere else, and
 * grows. */
ptx_made kr__ptx_rewrite(const ptx_rules *rules, const ptx_statement *statement, unsigned *serial,
                         kr__text *to);

#endif
