/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The names that libcuda.so.1 exports. Behind each one is a jump to the function, by way of sc_gate_enter where
 * a call may have to fail (unhelpful.c). In assembly, since nothing in C passes on arguments it does not know.
 *
 * sc_gates, in the order of abi/symbols.def: of each name the function (sc_do_NAME) and the entry itself.
 */
#define CU_SYMBOL(name, version, flag, symbol) GATE symbol

    .macro GATE name
    .text
    .p2align 4
    .globl \name
    .type \name, @function
\name:
.Lentry_\name:
    .cfi_startproc
    cmpb $0, sc_gates_are_watched(%rip)
    je sc_do_\name
    leaq .Lgate_\name(%rip), %r11
    jmp watched
    .cfi_endproc
    .size \name, . - \name

    .section .data.rel.ro, "aw"
    .hidden sc_do_\name
.Lgate_\name:
    .quad sc_do_\name, .Lentry_\name
    .endm

    .section .data.rel.ro, "aw"
    .p2align 4
    .globl sc_gates
    .hidden sc_gates
    .type sc_gates, @object
sc_gates:
#include "abi/symbols.def"
    .size sc_gates, . - sc_gates

/* With a gate's address in r11 and a call's arguments where they were. */
    .text
    .p2align 4
    .type watched, @function
watched:
    .cfi_startproc
    .irp register, r11, rdi, rsi, rdx, rcx, r8, r9
    pushq %\register
    .cfi_adjust_cfa_offset 8
    .endr
    subq $32, %rsp /* a call has at most two numbers in vector registers; and rsp is 16-aligned now */
    .cfi_adjust_cfa_offset 32
    movups %xmm0, (%rsp)
    movups %xmm1, 16(%rsp)
    movq %r11, %rdi
    call sc_gate_enter
    movups (%rsp), %xmm0
    movups 16(%rsp), %xmm1
    addq $32, %rsp
    .cfi_adjust_cfa_offset -32
    .irp register, r9, r8, rcx, rdx, rsi, rdi, r11
    popq %\register
    .cfi_adjust_cfa_offset -8
    .endr
    testl %eax, %eax
    jnz answered
    jmp *(%r11)
answered:
    ret
    .cfi_endproc
    .size watched, . - watched

    .section .note.GNU-stack, "", @progbits
