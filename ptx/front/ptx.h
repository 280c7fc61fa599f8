/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KR_PTX_H
#define KR_PTX_H

/*
 * PTX as data. One parse gives a kr_ptx_module: header, variables, functions, instructions. The reader of
 * the library (entries, parameters, .version, .target), softcuda's VM, and later the printer and the
 * releveller all work on it. Everything a module points to lives in its arena.
 *
 * Messages are in the form of the driver's assembler, because the JIT log is what users see:
 *     ptxas application ptx input, line 4; error   : Unknown modifier '.instr'
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/base/base.h"

typedef enum ptx_type {
    PTX_NONE,
    PTX_B8, PTX_B16, PTX_B32, PTX_B64, PTX_B128,
    PTX_U8, PTX_U16, PTX_U32, PTX_U64,
    PTX_S8, PTX_S16, PTX_S32, PTX_S64,
    PTX_F16, PTX_F16X2, PTX_BF16, PTX_BF16X2, PTX_TF32, PTX_F32, PTX_F64,
    PTX_E4M3, PTX_E5M2, PTX_E4M3X2, PTX_E5M2X2,
    PTX_U16X2, PTX_S16X2, /* add/min/max on packed halves, sm_90 */
    PTX_PRED,
    PTX_F32X2, /* sm_100 */
    PTX_B1, PTX_U2, PTX_S2, PTX_U4, PTX_S4, /* of matrices and cvt.pack, in registers of 32 bits */
    PTX_E2M1, PTX_E2M3, PTX_E3M2, PTX_UE8M0, PTX_UE4M3, /* of matrices and their scales */
    PTX_E2M1X2, PTX_E2M3X2, PTX_E3M2X2, PTX_UE8M0X2, PTX_E2M1X4, PTX_E2M3X4, PTX_E3M2X4, PTX_E4M3X4, PTX_E5M2X4,
    PTX_TEXREF, PTX_SAMPLERREF, PTX_SURFREF, /* opaque: of variables only */
    PTX_TYPE_COUNT
} ptx_type;

size_t kr__ptx_type_bytes(ptx_type type); /* 0 for PTX_NONE and PTX_PRED */
const char *kr__ptx_type_name(ptx_type type); /* "f32" */

typedef enum ptx_space {
    PTX_SPACE_GENERIC, /* no state space was written */
    PTX_SPACE_REG, PTX_SPACE_CONST, PTX_SPACE_GLOBAL, PTX_SPACE_LOCAL, PTX_SPACE_PARAM, PTX_SPACE_SHARED,
    PTX_SPACE_SHARED_CLUSTER, /* .shared::cluster */
    PTX_SPACE_SHARED_CTA /* how .shared was written; in a ptx_instr it is PTX_SPACE_SHARED */
} ptx_space;

typedef enum ptx_round {
    PTX_ROUND_NONE,
    PTX_RN, PTX_RZ, PTX_RM, PTX_RP, PTX_RNA, PTX_RS,  /* to a floating-point result */
    PTX_RNI, PTX_RZI, PTX_RMI, PTX_RPI        /* to an integer */
} ptx_round;

typedef enum ptx_compare { /* setp, set, slct */
    PTX_CMP_NONE,
    PTX_EQ, PTX_NE, PTX_LT, PTX_LE, PTX_GT, PTX_GE,
    PTX_CMP_LO, PTX_CMP_LS, PTX_CMP_HI, PTX_CMP_HS, /* unsigned spellings */
    PTX_EQU, PTX_NEU, PTX_LTU, PTX_LEU, PTX_GTU, PTX_GEU, PTX_NUM, PTX_NAN
} ptx_compare;

/* setp.CMP.BOOL, bar.red */
typedef enum ptx_bool { PTX_BOOL_NONE, PTX_AND, PTX_OR, PTX_XOR, PTX_POPC } ptx_bool;

typedef enum ptx_order { PTX_ORDER_NONE, PTX_WEAK, PTX_VOLATILE, PTX_RELAXED, PTX_ACQUIRE, PTX_RELEASE,
                         PTX_ACQ_REL, PTX_SC, PTX_MMIO } ptx_order;
typedef enum ptx_scope { PTX_SCOPE_NONE, PTX_CTA, PTX_CLUSTER, PTX_GPU, PTX_SYS } ptx_scope;

/* The opcode proper ("add", "setp", "cp.async"); one row in opcodes.def, one enumerator PTX_OP_<NAME>. */
typedef enum ptx_op {
#define PTX_OPCODE(id, ...) PTX_OP_##id,
#include "ptx/front/opcodes.def"
#undef PTX_OPCODE
    PTX_OP_COUNT
} ptx_op;

/* Modifiers without a field of their own: bits 0 to 62 of ptx_instr.flags. Names as in PTX. */
typedef enum ptx_flag {
    PTX_FTZ = 1u << 0,
    PTX_SAT = 1u << 1,
    PTX_SATFINITE = 1u << 2,
    PTX_APPROX = 1u << 3,
    PTX_FULL = 1u << 4,
    PTX_HI = 1u << 5,       /* mul, mad */
    PTX_LO = 1u << 6,  /* .lo of mul, mad */
    PTX_WIDE = 1u << 7,
    PTX_CC = 1u << 8,       /* writes the carry */
    PTX_UNI = 1u << 9,
    PTX_SYNC = 1u << 10,
    PTX_ALIGNED = 1u << 11,
    PTX_NC = 1u << 12,
    PTX_NOINC = 1u << 13,
    PTX_NAN_FLAG = 1u << 14,   /* min.NaN */
    PTX_XORSIGN_ABS = 1u << 15,
    PTX_RELU = 1u << 16,
    PTX_CLAMP = 1u << 17,
    PTX_WRAP = 1u << 18,
    PTX_SHIFTAMT = 1u << 19,
    PTX_TRANS = 1u << 20,
    PTX_TO = 1u << 21,         /* cvta.to */
    PTX_ARRIVE = 1u << 22,     /* bar.arrive */
    PTX_RED = 1u << 23,        /* bar.red */
    PTX_WARP = 1u << 24,       /* bar.warp.sync */
    PTX_LEFT = 1u << 25, PTX_RIGHT = 1u << 26, /* shf.l, shf.r */
    PTX_ALL = 1u << 27, PTX_ANY = 1u << 28, PTX_UNI_MODE = 1u << 29, PTX_BALLOT = 1u << 30, /* vote, match */
    PTX_OOB = 1u << 31, /* fma.oob */
    PTX_PARITY = 1ull << 32, PTX_EXPECT_TX = 1ull << 33, PTX_NO_COMPLETE = 1ull << 34, /* mbarrier */
    PTX_COMPLETE_TX = 1ull << 35, PTX_BULK_GROUP = 1ull << 36, /* how a bulk copy says that it is complete */
    PTX_MULTICAST = 1ull << 37, PTX_CP_MASK = 1ull << 38,
    PTX_READ = 1ull << 39, /* cp.async.bulk.wait_group */
    PTX_MULTICAST_ALL = 1ull << 40, PTX_IS_CANCELED = 1ull << 41, /* clusterlaunchcontrol */
    PTX_B1024 = 1ull << 42, /* tensormap.replace */
    PTX_MBARRIER_INIT = 1ull << 43, /* fence */
    PTX_TENSORMAP = 1ull << 44, /* prefetch */
    PTX_BASE = 1ull << 45, PTX_LEVEL = 1ull << 46, PTX_GRAD = 1ull << 47, /* tex, txq */
    PTX_ABS = 1ull << 48, /* of min, max, redux; .xorsign.abs has both */
    PTX_SPARSE = 1ull << 49, /* mma.sp, mma.sp::ordered_metadata */
    PTX_BLOCK_SCALE = 1ull << 50,
    PTX_ASHIFT = 1ull << 51, PTX_PACK = 1ull << 52, PTX_UNPACK = 1ull << 53, PTX_ARRIVE_ONE = 1ull << 54 /* tcgen05 */
} ptx_flag;

typedef enum ptx_mma_kind { /* .kind:: */
    PTX_MMA_PLAIN, PTX_MMA_F16, PTX_MMA_TF32, PTX_MMA_I8, PTX_MMA_F8F6F4, PTX_MMA_MXF8F6F4, PTX_MMA_MXF4, PTX_MMA_MXF4NVF4
} ptx_mma_kind;
typedef enum ptx_scale { PTX_PLUS_ONE = 1, PTX_SHR7 = 2, PTX_SHR15 = 4 } ptx_scale;
typedef enum ptx_priority { PTX_EVICT_UNCHANGED, PTX_EVICT_FIRST, PTX_EVICT_LAST, PTX_EVICT_NORMAL } ptx_priority;

typedef enum ptx_sub { /* the operation inside atom, red, redux, shfl, prmt, cp.async */
    PTX_SUB_NONE,
    PTX_SUB_ADD, PTX_SUB_MIN, PTX_SUB_MAX, PTX_SUB_INC, PTX_SUB_DEC, PTX_SUB_AND, PTX_SUB_OR, PTX_SUB_XOR,
    PTX_SUB_EXCH, PTX_SUB_CAS,
    PTX_SUB_UP, PTX_SUB_DOWN, PTX_SUB_BFLY, PTX_SUB_IDX,
    PTX_SUB_F4E, PTX_SUB_B4E, PTX_SUB_RC8, PTX_SUB_ECL, PTX_SUB_ECR, PTX_SUB_RC16,
    PTX_SUB_CA, PTX_SUB_CG,
    PTX_TEST_FINITE, PTX_TEST_INFINITE, PTX_TEST_NUMBER, PTX_TEST_NOTANUMBER, PTX_TEST_NORMAL,
    PTX_TEST_SUBNORMAL /* testp */
} ptx_sub;

/* Special registers. X(enumerator, spelling, type): type as ld would give it. */
#define PTX_SPECIAL_LIST(X)                                                                        \
    X(PTX_TID_X, "%tid.x", PTX_U32) X(PTX_TID_Y, "%tid.y", PTX_U32) X(PTX_TID_Z, "%tid.z", PTX_U32) \
    X(PTX_NTID_X, "%ntid.x", PTX_U32) X(PTX_NTID_Y, "%ntid.y", PTX_U32) X(PTX_NTID_Z, "%ntid.z", PTX_U32) \
    X(PTX_CTAID_X, "%ctaid.x", PTX_U32) X(PTX_CTAID_Y, "%ctaid.y", PTX_U32) \
    X(PTX_CTAID_Z, "%ctaid.z", PTX_U32) \
    X(PTX_NCTAID_X, "%nctaid.x", PTX_U32) X(PTX_NCTAID_Y, "%nctaid.y", PTX_U32) \
    X(PTX_NCTAID_Z, "%nctaid.z", PTX_U32) \
    X(PTX_LANEID, "%laneid", PTX_U32) X(PTX_WARPID, "%warpid", PTX_U32) X(PTX_NWARPID, "%nwarpid", PTX_U32) \
    X(PTX_SMID, "%smid", PTX_U32) X(PTX_NSMID, "%nsmid", PTX_U32) X(PTX_GRIDID, "%gridid", PTX_U64) \
    X(PTX_LANEMASK_EQ, "%lanemask_eq", PTX_U32) X(PTX_LANEMASK_LE, "%lanemask_le", PTX_U32) \
    X(PTX_LANEMASK_LT, "%lanemask_lt", PTX_U32) X(PTX_LANEMASK_GE, "%lanemask_ge", PTX_U32) \
    X(PTX_LANEMASK_GT, "%lanemask_gt", PTX_U32) \
    X(PTX_CLOCK, "%clock", PTX_U32) X(PTX_CLOCK_HI, "%clock_hi", PTX_U32) \
    X(PTX_CLOCK64, "%clock64", PTX_U64) \
    X(PTX_GLOBALTIMER, "%globaltimer", PTX_U64) X(PTX_GLOBALTIMER_LO, "%globaltimer_lo", PTX_U32) \
    X(PTX_GLOBALTIMER_HI, "%globaltimer_hi", PTX_U32) \
    X(PTX_DYNAMIC_SMEM_SIZE, "%dynamic_smem_size", PTX_U32) \
    X(PTX_TOTAL_SMEM_SIZE, "%total_smem_size", PTX_U32) \
    X(PTX_ENVREG1, "%envreg1", PTX_B32) X(PTX_ENVREG2, "%envreg2", PTX_B32) \
    X(PTX_CLUSTERID_X, "%clusterid.x", PTX_U32) X(PTX_NCLUSTERID_X, "%nclusterid.x", PTX_U32) \
    X(PTX_CLUSTER_CTAID_X, "%cluster_ctaid.x", PTX_U32) \
    X(PTX_CLUSTER_NCTAID_X, "%cluster_nctaid.x", PTX_U32) \
    X(PTX_CLUSTER_CTARANK, "%cluster_ctarank", PTX_U32) \
    X(PTX_CLUSTER_NCTARANK, "%cluster_nctarank", PTX_U32) \
    X(PTX_CLUSTERID_Y, "%clusterid.y", PTX_U32) X(PTX_CLUSTERID_Z, "%clusterid.z", PTX_U32) \
    X(PTX_NCLUSTERID_Y, "%nclusterid.y", PTX_U32) X(PTX_NCLUSTERID_Z, "%nclusterid.z", PTX_U32) \
    X(PTX_CLUSTER_CTAID_Y, "%cluster_ctaid.y", PTX_U32) X(PTX_CLUSTER_CTAID_Z, "%cluster_ctaid.z", PTX_U32) \
    X(PTX_CLUSTER_NCTAID_Y, "%cluster_nctaid.y", PTX_U32) \
    X(PTX_CLUSTER_NCTAID_Z, "%cluster_nctaid.z", PTX_U32) \
    X(PTX_IS_EXPLICIT_CLUSTER, "%is_explicit_cluster", PTX_PRED) \
    X(PTX_AGGR_SMEM_SIZE, "%aggr_smem_size", PTX_U32) \
    X(PTX_CURRENT_GRAPH_EXEC, "%current_graph_exec", PTX_U64) \
    X(PTX_RESERVED_SMEM_OFFSET_BEGIN, "%reserved_smem_offset_begin", PTX_B32) \
    X(PTX_RESERVED_SMEM_OFFSET_END, "%reserved_smem_offset_end", PTX_B32) \
    X(PTX_RESERVED_SMEM_OFFSET_CAP, "%reserved_smem_offset_cap", PTX_B32) \
    X(PTX_RESERVED_SMEM_OFFSET_0, "%reserved_smem_offset_0", PTX_B32) \
    X(PTX_RESERVED_SMEM_OFFSET_1, "%reserved_smem_offset_1", PTX_B32) \
    X(PTX_ENVREG0, "%envreg0", PTX_B32) X(PTX_ENVREG3, "%envreg3", PTX_B32) \
    X(PTX_ENVREG4, "%envreg4", PTX_B32) X(PTX_ENVREG5, "%envreg5", PTX_B32) \
    X(PTX_ENVREG6, "%envreg6", PTX_B32) X(PTX_ENVREG7, "%envreg7", PTX_B32) \
    X(PTX_ENVREG8, "%envreg8", PTX_B32) X(PTX_ENVREG9, "%envreg9", PTX_B32) \
    X(PTX_ENVREG10, "%envreg10", PTX_B32) X(PTX_ENVREG11, "%envreg11", PTX_B32) \
    X(PTX_ENVREG12, "%envreg12", PTX_B32) X(PTX_ENVREG13, "%envreg13", PTX_B32) \
    X(PTX_ENVREG14, "%envreg14", PTX_B32) X(PTX_ENVREG15, "%envreg15", PTX_B32) \
    X(PTX_ENVREG16, "%envreg16", PTX_B32) X(PTX_ENVREG17, "%envreg17", PTX_B32) \
    X(PTX_ENVREG18, "%envreg18", PTX_B32) X(PTX_ENVREG19, "%envreg19", PTX_B32) \
    X(PTX_ENVREG20, "%envreg20", PTX_B32) X(PTX_ENVREG21, "%envreg21", PTX_B32) \
    X(PTX_ENVREG22, "%envreg22", PTX_B32) X(PTX_ENVREG23, "%envreg23", PTX_B32) \
    X(PTX_ENVREG24, "%envreg24", PTX_B32) X(PTX_ENVREG25, "%envreg25", PTX_B32) \
    X(PTX_ENVREG26, "%envreg26", PTX_B32) X(PTX_ENVREG27, "%envreg27", PTX_B32) \
    X(PTX_ENVREG28, "%envreg28", PTX_B32) X(PTX_ENVREG29, "%envreg29", PTX_B32) \
    X(PTX_ENVREG30, "%envreg30", PTX_B32) X(PTX_ENVREG31, "%envreg31", PTX_B32) \
    X(PTX_PM0, "%pm0", PTX_U32) X(PTX_PM1, "%pm1", PTX_U32) \
    X(PTX_PM2, "%pm2", PTX_U32) X(PTX_PM3, "%pm3", PTX_U32) \
    X(PTX_PM4, "%pm4", PTX_U32) X(PTX_PM5, "%pm5", PTX_U32) \
    X(PTX_PM6, "%pm6", PTX_U32) X(PTX_PM7, "%pm7", PTX_U32) \
    X(PTX_PM0_64, "%pm0_64", PTX_U64) X(PTX_PM1_64, "%pm1_64", PTX_U64) \
    X(PTX_PM2_64, "%pm2_64", PTX_U64) X(PTX_PM3_64, "%pm3_64", PTX_U64) \
    X(PTX_PM4_64, "%pm4_64", PTX_U64) X(PTX_PM5_64, "%pm5_64", PTX_U64) \
    X(PTX_PM6_64, "%pm6_64", PTX_U64) X(PTX_PM7_64, "%pm7_64", PTX_U64)

typedef enum ptx_special {
#define PTX_SPECIAL_ENUM(name, text, type) name,
    PTX_SPECIAL_LIST(PTX_SPECIAL_ENUM)
#undef PTX_SPECIAL_ENUM
    PTX_SPECIAL_COUNT
} ptx_special;

typedef struct ptx_variable ptx_variable;
typedef struct ptx_register ptx_register;
typedef struct ptx_function ptx_function;

/* An element of a variable's initial bytes that holds an address, or one byte of it. */
typedef struct ptx_relocation {
    size_t offset;                /* in the variable */
    uint8_t bytes;                /* of the element: 1, 4, 8; what the address has more is cut off */
    uint64_t mask;                /* 0xff00(sym): these bits, from the lowest of them on; 0: all */
    const ptx_variable *variable; /* or, for a function's address, NULL and: */
    const ptx_function *function;
    int64_t addend;
    bool generic; /* generic(sym): the address as a generic one */
    struct ptx_relocation *next;
} ptx_relocation;

typedef enum ptx_linkage {
    PTX_LINK_NONE,
    PTX_LINK_EXTERN,
    PTX_LINK_VISIBLE,
    PTX_LINK_WEAK,
    PTX_LINK_COMMON
} ptx_linkage;

/* A variable or parameter: module scope, function scope, or a formal parameter. */
struct ptx_variable {
    const char *name;
    ptx_space space;
    ptx_linkage linkage;
    ptx_type type; /* of an element */
    uint8_t vector; /* .v2, .v4: so many of them are an element of the array; 0: none */
    bool is_managed, is_unified; /* .attribute(.managed), .attribute(.unified(uuid[0], uuid[1])) */
    uint64_t uuid[2];
    bool is_pointer;          /* a parameter's .ptr: what it points to, */
    ptx_space pointer_space;  /* GENERIC: not said */
    unsigned pointer_alignment; /* 0: not said */
    unsigned alignment; /* bytes; the type's own where none was written */
    size_t bytes;       /* whole; 0: unsized (`.extern .shared .b8 s[];`) */
    bool is_array;
    bool is_parameter; /* formal: in a function's params or returns */
    const ptx_register *reg; /* of a parameter in the space REG: what the body knows it as, where there is one */
    const uint8_t *initial; /* `bytes` of them, or NULL: zero */
    const char *opaque;     /* of a texref, samplerref, surfref: its initial value as written, or NULL */
    ptx_relocation *relocations;
    size_t offset; /* of a parameter: in the parameter block (kernel parameters: as the driver packs them) */
    unsigned line;
    unsigned index; /* among its list */
    ptx_variable *next;
};

/* A virtual register. `.reg .f32 %f<100>;` makes 100 of them; only those mentioned get one. A vector register
 * is its components: `.reg .v2 .f32 v;` makes "v$x" and "v$y". */
struct ptx_register {
    const char *name;
    ptx_type type;
    bool is_of_range, is_parameter;
    unsigned index; /* in ptx_function.registers */
};

typedef struct ptx_label {
    const char *name;
    uint32_t target; /* index of the instruction it stands before; n_instrs at the end */
    unsigned line;
} ptx_label;

/* What no machine executes and yet means something: .loc, .pragma, as written. */
typedef struct ptx_mark {
    const char *text;
    uint32_t at;       /* it stands before this instruction of the function, */
    uint32_t n_labels; /* after so many labels */
    struct ptx_mark *next;
} ptx_mark;

typedef enum ptx_operand_kind {
    PTX_OPERAND_NONE,
    PTX_OPERAND_REGISTER,  /* reg; negated: !%p */
    PTX_OPERAND_IMMEDIATE, /* bits: an integer sign-extended to 64 bits, or a float's bits (is_float) */
    PTX_OPERAND_SPECIAL,   /* special */
    PTX_OPERAND_ADDRESS,   /* [reg + offset] or [variable + offset] or [offset]: memory; elements: what else
                              stands there, as in [tensor, {x, y}] */
    PTX_OPERAND_SYMBOL,    /* variable + offset, or function: an address as a value (mov, cvta) */
    PTX_OPERAND_VECTOR,    /* elements[0..n_elements): {a,b}, or the pair of setp p|q */
    PTX_OPERAND_LABEL,     /* label: bra */
    PTX_OPERAND_SINK       /* _ */
} ptx_operand_kind;

/* ".b3", ".h10": which bytes or halves of a video instruction's operand, the first digit's first. */
typedef struct ptx_selector {
    char unit; /* 'b', 'h'; 0: not written */
    uint8_t n, at[4];
} ptx_selector;

typedef struct ptx_operand {
    ptx_operand_kind kind;
    bool negated;    /* !%p; of vmad, -%r */
    ptx_selector selector;
    bool is_pair;    /* a vector that was written p|q */
    bool is_float;   /* the immediate was written as a float: 0f, 0d or decimal with a point; bits is a
                        double's unless float_bytes is 4 */
    uint8_t float_bytes; /* 4: 0fXXXXXXXX; 8: 0dX..., or a decimal */
    uint16_t n_elements;
    int64_t bits;
    int64_t offset;
    const ptx_register *reg;
    const ptx_variable *variable;
    const ptx_function *function;
    const struct ptx_operand *elements;
    uint32_t label; /* index into ptx_function.labels */
    ptx_special special;
} ptx_operand;

/* An instruction has at least the first number of operands: those that were not written are PTX_OPERAND_NONE. */
enum { PTX_LEAST_OPERANDS = 6, PTX_MAX_OPERANDS = 10 };

typedef struct ptx_instr {
    ptx_op op;
    const char *name; /* as written: "ld.global.nc.v2.f32" */
    uint64_t flags; /* ptx_flag */
    ptx_type type;  /* the first type: the operation's (cvt: the destination's; ld/st: the access's) */
    ptx_type type2; /* the second: cvt's and set's source, mul/mad/shfl none */
    ptx_type type3, type4; /* mma's a/b/c */
    ptx_round round;
    ptx_compare compare;
    ptx_bool boolean;
    ptx_space space, space2; /* cp.async and its like: to, from */
    ptx_order order;
    ptx_scope scope;
    ptx_sub sub;
    uint8_t vector;        /* 1, 2, 4, 8: ld/st .v2 ... */
    uint16_t shape[3];     /* mma m, n, k; ldmatrix: 8, 8, and count in shape[2] */
    uint8_t layout;        /* bits: 0 a is col, 1 b is col */
    uint8_t scale;         /* ptx_scale bits: vmad's */
    uint8_t kind;          /* ptx_mma_kind */
    uint8_t type5;         /* ptx_type: of mma's scales */
    uint8_t priority[2];   /* ptx_priority: of L2, createpolicy's first and second */
    const ptx_register *guard; /* @%p */
    bool guard_negated;
    uint8_t n_operands;
    ptx_operand *operands; /* destinations first, as written */
    /* call */
    const ptx_function *callee;       /* direct; NULL: indirect through operands[0], prototype below */
    const ptx_function *prototype;
    const ptx_operand *returns, *arguments;
    uint8_t n_returns, n_arguments;
    const uint32_t *targets; /* brx.idx: label indices */
    uint32_t n_targets;
    unsigned line;     /* in the PTX text */
    unsigned loc_file; /* .loc: 0 where there is none */
    unsigned loc_line;
} ptx_instr;

struct ptx_function {
    const char *name;
    bool is_entry;
    bool has_body;
    bool noreturn;
    bool is_unified; /* .attribute(.unified(uuid[0], uuid[1])) */
    uint64_t uuid[2];
    bool is_declared; /* its parameters are known */
    ptx_linkage linkage;
    size_t n_params, n_returns;
    ptx_variable **params;  /* entry: offsets set, block size below */
    ptx_variable **returns;
    size_t param_bytes;
    ptx_variable *variables; /* .shared, .local, .param, .const of the body, all scopes */
    size_t n_registers;
    ptx_register **registers;
    size_t n_labels;
    ptx_label *labels;
    size_t n_instrs;
    ptx_instr *instrs;
    ptx_mark *marks;                 /* of the body */
    ptx_mark *pragmas;               /* before it */
    unsigned maxntid[3], reqntid[3]; /* 0: not given */
    unsigned minnctapersm, maxnreg, maxclusterrank;
    unsigned reqnctapercluster[3];
    bool explicitcluster, blocksareclusters;
    const ptx_function *aliased;  /* .alias: the function whose other name this is */
    uint8_t cta_groups; /* of its tcgen05: bits 1 and 2 */
    const ptx_function **targets; /* a prototype that .calltargets gave: all of them have it */
    size_t n_targets;
    unsigned line;
    ptx_function *next;
};

typedef struct ptx_file {
    unsigned index;
    const char *name;
    struct ptx_file *next;
} ptx_file;

/* The least that a module could do with. Line 0: nothing asks for more. */
typedef struct ptx_needs {
    int isa;              /* the lowest .version, on the module's .target */
    unsigned isa_line;    /* of what asks for it, */
    const char *isa_form; /* which is this: an instruction, a feature, the target */
    const char *target;   /* the lowest .target, at the module's .version; NULL: no single one has it all */
    int sm;
    unsigned target_line;
    const char *target_form;
    uint64_t targets; /* all that would do: a bit each */
} ptx_needs;

typedef struct ptx_module {
    kr__arena arena;
    int isa;             /* .version 7.8 is 78; 9.0 is 90 */
    char target[24];     /* "sm_90a" */
    int sm;              /* 90 */
    char suffix;         /* 0, 'a', 'f' */
    int address_bits;    /* 64 */
    bool debug, texmode_unified, map_f64_to_f32;
    bool texmode_independent; /* samplers are named apart from textures */
    ptx_variable *variables; /* module scope, in order */
    ptx_function *functions; /* in order; declarations without body included, merged with their definition */
    ptx_file *files;
    ptx_mark *marks; /* .file, .section and .pragma of module scope */
    size_t n_entries;
    ptx_needs needs;
} ptx_module;

/* What went wrong, for a JIT log. */
typedef enum ptx_problem_kind {
    PTX_PROBLEM_NONE,
    PTX_PROBLEM_NOT_PTX,      /* does not begin as PTX: CUDA_ERROR_INVALID_IMAGE */
    PTX_PROBLEM_SYNTAX,       /* CUDA_ERROR_INVALID_PTX: syntax, types, undeclared names */
    PTX_PROBLEM_VERSION,      /* .version newer than max_isa: CUDA_ERROR_UNSUPPORTED_PTX_VERSION */
    PTX_PROBLEM_TARGET,       /* .target unknown, or too new for .version: CUDA_ERROR_INVALID_PTX */
    PTX_PROBLEM_UNSUPPORTED,  /* legal PTX this project does not do yet: named, never skipped */
    PTX_PROBLEM_MEMORY
} ptx_problem_kind;

typedef struct ptx_problem {
    ptx_problem_kind kind;
    unsigned line;
    kr__text log; /* one line an error, in the assembler's form; the caller frees it */
    unsigned n_errors;
} ptx_problem;

typedef struct ptx_options {
    int max_isa;   /* the newest .version to accept; 0: PTX_NEWEST_ISA */
    bool linked;   /* several texts, one after another, each with its header, become one module as a linker joins
                    * them: a name without linkage is its own text's alone, of other names the strongest counts */
} ptx_options;

enum { PTX_NEWEST_ISA = 90 };

/* Parses and verifies. `bytes` may or may not include a final NUL. On false *problem says why (its log
 * must be freed either way) and *ret_module is untouched. Never aborts, whatever the bytes are. */
bool kr__ptx_parse(const char *text, size_t bytes, const ptx_options *options, ptx_module **ret_module,
                   ptx_problem *problem);
void kr__ptx_module_free(ptx_module **module);

/* Does it begin as PTX text does (white space and comments, then .version)? */
bool kr__ptx_looks_like(const char *text, size_t bytes);

const ptx_function *kr__ptx_find_function(const ptx_module *module, const char *name);

/* The function that is called by this one's name. */
static inline const ptx_function *kr__ptx_called(const ptx_function *function)
{
    return function->aliased ? function->aliased : function;
}

int kr__ptx_target_isa(const char *target); /* "sm_90a": from which .version on all have it; 0: none */

/* The instruction as PTX text ("fma.rn.f32 %f4, %f1, %f2, %f3;"), for messages and traces. */
void kr__ptx_print_instr(const ptx_function *function, const ptx_instr *instr, kr__text *to);

/* The module as PTX text, which parses to the same module again: in one block a function, where names that would meet
 * get a letter ("t$a"). False: out of memory, or a value that no PTX text can have. */
bool kr__ptx_print_module(const ptx_module *module, kr__text *to);

#endif
