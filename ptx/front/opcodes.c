/* SPDX-License-Identifier: Apache-2.0 */
#include "ptx/front/front.h"

/* The words of opcodes.def: sets of types ... */
#define TYPE(name) (1ull << PTX_##name)
#define B8 TYPE(B8)
#define B16 TYPE(B16)
#define B32 TYPE(B32)
#define B64 TYPE(B64)
#define B128 TYPE(B128)
#define U8 TYPE(U8)
#define U16 TYPE(U16)
#define U32 TYPE(U32)
#define U64 TYPE(U64)
#define S8 TYPE(S8)
#define S16 TYPE(S16)
#define S32 TYPE(S32)
#define S64 TYPE(S64)
#define F16 TYPE(F16)
#define F16X2 TYPE(F16X2)
#define BF16 TYPE(BF16)
#define BF16X2 TYPE(BF16X2)
#define TF32 TYPE(TF32)
#define F32 TYPE(F32)
#define F64 TYPE(F64)
#define E4M3 TYPE(E4M3)
#define E5M2 TYPE(E5M2)
#define E4M3X2 TYPE(E4M3X2)
#define E5M2X2 TYPE(E5M2X2)
#define U16X2 TYPE(U16X2)
#define S16X2 TYPE(S16X2)
#define B1 TYPE(B1)
#define U2 TYPE(U2)
#define S2 TYPE(S2)
#define U4 TYPE(U4)
#define S4 TYPE(S4)
#define PRED TYPE(PRED)
#define F32X2 TYPE(F32X2)
#define INT16 (U16 | S16)
#define INT32 (U32 | S32)
#define INT64 (U64 | S64)
#define INT (U8 | S8 | INT16 | INT32 | INT64)
#define BITS (PRED | B16 | B32 | B64)
#define SCALARS (B16 | B32 | B64 | INT16 | INT32 | INT64)
#define MEMORY (B8 | B16 | B32 | B64 | B128 | INT | F32 | F64)
#define T0         \
    {              \
        0, 0, 0, 0 \
    }
#define T1(a)        \
    {                \
        (a), 0, 0, 0 \
    }
#define T2(a, b)       \
    {                  \
        (a), (b), 0, 0 \
    }
#define T3(a, b, c)      \
    {                    \
        (a), (b), (c), 0 \
    }
#define T4(a, b, c, d)     \
    {                      \
        (a), (b), (c), (d) \
    }
/* ... and modifiers. */
#define K(kind) ((ptx_set)1 << PTX_KIND_##kind)
#define ACCESS (K(SPACE) | K(ORDER) | K(SCOPE) | K(VECTOR) | K(CACHE) | K(HINT))
#define ATOM (K(SPACE) | K(ORDER) | K(SCOPE))
#define MATRIX (PTX_SYNC | PTX_ALIGNED | K(SHAPE))
#define WMMA (MATRIX | K(LAYOUT))
/* A and B of wmma. */
#define WMMA_FACTOR                                                  \
    FORM(T1(F16), WMMA | K(SPACE), WMMA, 0, "V@?r", 60, 70)          \
    FORM(T1(U8 | S8), WMMA | K(SPACE), WMMA, 0, "V@?r", 63, 72)      \
    FORM(T1(U4 | S4 | B1), WMMA | K(SPACE), WMMA, 0, "V@?r", 63, 75) \
    FORM(T1(BF16 | TF32 | F64), WMMA | K(SPACE), WMMA, 0, "V@?r", 70, 80)
#define FORM(set, may, must, either, pattern, version, target) \
    {.types = set,                                             \
     .allowed = (may),                                         \
     .required = (must),                                       \
     .one_of = (either),                                       \
     .operands = pattern,                                      \
     .isa = version,                                           \
     .sm = target},
#define PTX_OPCODE(id, text, titles, ...) \
    [PTX_OP_##id] = {text, titles, (const ptx_form[]){__VA_ARGS__{.operands = NULL}}},

const ptx_opcode kr__ptx_opcodes[PTX_OP_COUNT] = {
#include "ptx/front/opcodes.def"
};
