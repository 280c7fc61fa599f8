/* SPDX-License-Identifier: Apache-2.0 */
#ifndef VM_FORMS_H
#define VM_FORMS_H

/*
 * One instruction, many operands: a kernel that applies it, the operands, and a hash of the results. The same
 * kernels and operands ran on hardware (record_forms.c), whose hashes are in forms.tsv.
 *
 * A line is `instruction TAB types TAB hash`. "add.rn.f32" with "f32 f32 f32" is one instruction from one
 * result and two operands. Where the instruction has `$` or `%`, it is a piece of code, whose results' and
 * operands' types stand before and after `=`: $0, $1 ... are those registers, in that order, and $0-3 is
 * $0,$1,$2,$3. It may use
 *
 *   %m %s %n %w   this thread's 64 bytes of global (64-bit address) and of shared memory (32-bit), this
 * warp's 2048 bytes of global and of shared memory; the shared bytes begin as a copy of the global ones %t %i
 * the lane, the thread in its block %x0-7 %y0-7 %h0-7 %q0-3 %p0-3   registers of 32, 64, 16, 128 bits and
 * predicates call (r), twice, (a)            a function of the module, 2 * a + 1
 *
 * Instead of types, "fault": the hash is the error that the launch ends with.
 */

#include <stddef.h>
#include <stdint.h>

enum { FORM_THREADS = 2048, FORM_BLOCK = 256, FORM_REGISTERS = 40, FORM_MEMORY = 64, FORM_PTX_BYTES = 32768 };

typedef struct form_line {
    char spelling[512];
    char types[FORM_REGISTERS][12]; /* the results', the operands' */
    unsigned n_results, n_types;
    int faults;
    uint64_t hash; /* on hardware; 0: not recorded */
} form_line;

/* 0: no such line. */
int form_parse(const char *line, form_line *to);
/* May its results be others where it is said in another way? A policy is opaque, and a lane outside of the
 * mask gives anything. */
int form_may_differ(const form_line *form);
/* PTX of kernel `form`. Its parameters are addresses: of the results, of the operands (each FORM_THREADS
 * elements of 8 bytes) and of the memory (FORM_MEMORY bytes a thread). */
void form_ptx(const form_line *form, char *to, size_t bytes);
/* The operand with that type in form.types. */
uint64_t form_operand(const form_line *form, unsigned index, unsigned thread);
uint64_t form_memory(unsigned word); /* the initial memory, in 8 bytes */
/* What the second and the third parameter are the addresses of. */
void form_fill(const form_line *form, uint64_t *operands, uint64_t *words);
uint64_t form_hash(const form_line *form, const uint64_t *results);

#endif
