/* SPDX-License-Identifier: Apache-2.0 */
#ifndef VM_FORMS_H
#define VM_FORMS_H

/*
 * One instruction, many operands: a kernel that applies it, the operands, and a hash of the results. The same
 * kernels and operands ran on hardware (record_forms.c), whose hashes are in forms.tsv.
 */

#include <stddef.h>
#include <stdint.h>

enum { FORM_THREADS = 2048, FORM_MAX_OPERANDS = 4 };

typedef struct form_line {
    char spelling[64];
    char types[FORM_MAX_OPERANDS + 1][12]; /* the result's, the operands' */
    unsigned n_types;
    uint64_t hash; /* on hardware; 0: not recorded */
} form_line;

/* Parses "add.rn.f32<TAB>f32 f32 f32<TAB>hash"; 0: no such line. */
int form_parse(const char *line, form_line *to);
/* PTX of kernel `form`: parameters are the results' address and four operands' addresses, 8 bytes an element.
 */
void form_ptx(const form_line *form, char *to, size_t bytes);
uint64_t form_operand(const form_line *form, unsigned operand, unsigned thread);
uint64_t form_hash(const form_line *form, const uint64_t results[FORM_THREADS]);

#endif
