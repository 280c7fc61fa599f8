/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The names that libcuda.so.1 exports. Behind each one is a call of the function, between sc_gate_enter and
 * sc_gate_leave (gate.c). In assembly, since nothing in C passes on arguments it does not know.
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
    leaq .Lgate_\name(%rip), %r11
    jmp pass
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
    .type pass, @function
pass:
    .cfi_startproc
    pushq %rbp
    .cfi_def_cfa_offset 16
    .cfi_offset %rbp, -16
    movq %rsp, %rbp
    .cfi_def_cfa_register %rbp
    .irp register, r11, rdi, rsi, rdx, rcx, r8, r9
    pushq %\register
    .endr
    subq $40, %rsp /* a call has at most two numbers in vector registers; and rsp is 16-aligned now */
    movups %xmm0, (%rsp)
    movups %xmm1, 16(%rsp)
    movq %r11, %rdi
    call sc_gate_enter /* an sc_pass: the answer below the epoch */
    testl %eax, %eax
    jnz answered
    movups (%rsp), %xmm0
    movups 16(%rsp), %xmm1
    addq $40, %rsp
    .irp register, r9, r8, rcx, rdx, rsi, rdi, r11
    popq %\register
    .endr
    shrq $32, %rax
    pushq %rax
    pushq %rax
    /* The arguments that lie on the stack, and more than any function here has: a CUipcMemHandle takes 8 words. */
    .irp word, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1
    pushq 8 + 8 * \word(%rbp)
    .endr
    call *(%r11)
    movq -8(%rbp), %rdi
    movl %eax, -16(%rbp)
    call sc_gate_leave
    movl -16(%rbp), %eax
answered:
    leave
    .cfi_def_cfa %rsp, 8
    ret
    .cfi_endproc
    .size pass, . - pass

    .section .note.GNU-stack, "", @progbits
