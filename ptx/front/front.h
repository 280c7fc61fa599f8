/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KR_PTX_FRONT_H
#define KR_PTX_FRONT_H

/* What the files of this folder share; nobody else includes it. */

#include "ptx/front/ptx.h"

/* ---- names (names.c): a hash table from texts (not NUL-terminated, not copied) to things ---- */

typedef struct ptx_text {
    const char *at;
    size_t bytes;
} ptx_text;

#define PTX_TEXT(literal) ((ptx_text){(literal), sizeof(literal) - 1})

typedef enum ptx_name_kind {
    PTX_NAME_FREE,
    PTX_NAME_OPCODE,    /* index: ptx_op */
    PTX_NAME_MODIFIER,  /* index: the first of its rows */
    PTX_NAME_SPECIAL,   /* index: ptx_special */
    PTX_NAME_SPELLING,  /* thing: ptx_spelling, a whole instruction name met before */
    PTX_NAME_VARIABLE,  /* thing: ptx_variable */
    PTX_NAME_FUNCTION,  /* thing: ptx_function */
    PTX_NAME_REGISTER,  /* thing: ptx_register */
    PTX_NAME_RANGE,     /* thing: ptx_range, `.reg .f32 %f<100>` under "%f" */
    PTX_NAME_VECTOR,    /* thing: ptx_operand, `.reg .v2 .f32 v`: the vector of its components */
    PTX_NAME_LABEL,     /* index: of ptx_function.labels */
    PTX_NAME_PROTOTYPE, /* thing: ptx_function, of .callprototype or .calltargets */
    PTX_NAME_TARGETS    /* thing: ptx_targets, of .branchtargets */
} ptx_name_kind;

typedef struct ptx_name {
    ptx_text text;
    uint32_t hash;
    ptx_name_kind kind;
    uint32_t index;
    void *thing;
} ptx_name;

typedef struct ptx_names {
    ptx_name *slots;
    uint32_t n_names, capacity; /* a power of two, or 0 */
} ptx_names;

uint32_t kr__ptx_hash(ptx_text text);
ptx_name *kr__ptx_find_name(const ptx_names *names, ptx_text text, uint32_t hash);
/* The slot of a new name, of the given kind; NULL when out of memory. The text must not be there yet. */
ptx_name *kr__ptx_add_name(kr__arena *arena, ptx_names *names, ptx_text text, uint32_t hash,
                           ptx_name_kind kind);

/* ---- tokens (lex.c) ---- */

typedef enum ptx_token_kind {
    PTX_TOKEN_END,
    PTX_TOKEN_WORD,   /* add, %r1, $L1, _ */
    PTX_TOKEN_DOTTED, /* .s32, .shared::cta: text begins with the dot */
    PTX_TOKEN_INTEGER,
    PTX_TOKEN_FLOAT,  /* value: a double's bits, or with float_bytes 4 a float's */
    PTX_TOKEN_STRING, /* text without the quotes */
    PTX_TOKEN_MARK,   /* punctuation: mark */
    PTX_TOKEN_WRONG   /* a byte that begins no token */
} ptx_token_kind;

#define PTX_MARK2(a, b) ((a) | (b) << 8)

typedef struct ptx_token {
    ptx_token_kind kind;
    uint8_t float_bytes;
    bool overflow; /* an integer of more than 64 bits, a decimal out of double's range */
    int mark;
    unsigned line;
    ptx_text text;
    uint64_t value;
} ptx_token;

typedef struct ptx_lexer {
    const char *at, *end;
    const char *word_end; /* end of the last word or dotted word: ".2d" right after one is no number */
    unsigned line;
} ptx_lexer;

void kr__ptx_next_token(ptx_lexer *lexer, ptx_token *token);
bool kr__ptx_is_mark(const ptx_token *token, int mark);
bool kr__ptx_is_word(const ptx_token *token, ptx_text text); /* a word or a dotted word */
bool kr__ptx_is_text(ptx_text text, const char *other);

/* ---- the instruction table (table.c, opcodes.def, modifiers.def) ---- */

/* A set of modifiers: ptx_flag bits, and above them kinds of modifiers. */
typedef unsigned __int128 ptx_set;

/* Kinds of modifiers beside those that are a ptx_flag. */
#define PTX_MODIFIER_KINDS(X)                                                                               \
    X(ROUND)                                                                                                \
    X(ROUND_INT)                                                                                            \
    X(COMPARE)                                                                                              \
    X(BOOL) X(SPACE) X(ORDER) X(SCOPE) X(GL) X(VECTOR) X(CACHE) X(CACHE_LOAD) X(CACHE_STORE) X(HINT)        \
        X(CACHE_HINT) X(ATOMIC) X(CAS) X(NOFTZ) X(SHUFFLE) X(PERMUTE) X(COPY) X(SHAPE) X(COUNT) X(LAYOUT)   \
            X(LEVEL) X(TEST) X(PROXY) X(POPC) X(SCALE) X(RN) X(RZ) X(RNA)                                   \
                X(RS) /* in a form: of ROUND only these */                                                  \
        X(SPACES)     /* a second state space */                                                            \
        X(GEOMETRY) X(MODE) X(CTA_GROUP) X(ACC) X(MMIO) X(PROXIES) X(RESTRICT) X(FIELD) X(CTAID) X(L1_HINT) \
            X(AHEAD) X(QUERY) X(COMPONENT) X(BOUNDARY) X(LAYOUTS) /* a second one */ X(HINTS) X(SHIFT) X(SPARSITY) X(KIND)    \
                X(SCALE_VEC) X(FORMAT) X(FORMATS) /* what is read becomes what is written */                \
        X(EXTENT) X(WARPS) X(COLLECTOR)

enum {
    PTX_FIRST_KIND = 63,
#define PTX_KIND_ENUM(name) PTX_KIND_##name,
    PTX_MODIFIER_KINDS(PTX_KIND_ENUM)
#undef PTX_KIND_ENUM
        PTX_KIND_END
};

/* How tensor copies find their elements. */
typedef enum ptx_mode {
    PTX_MODE_TILE,
    PTX_MODE_GATHER4,
    PTX_MODE_SCATTER4,
    PTX_MODE_IM2COL,
    PTX_MODE_IM2COL_W,
    PTX_MODE_IM2COL_W_128,
    PTX_MODE_IM2COL_NO_OFFS
} ptx_mode;

enum { PTX_CACHE_CA = 1, PTX_CACHE_LU }; /* of CACHE_LOAD */

/* Of textures, surfaces and tensors; the first are numbers of dimensions. */
typedef enum ptx_geometry {
    PTX_GEOMETRY_1D = 1,
    PTX_GEOMETRY_2D,
    PTX_GEOMETRY_3D,
    PTX_GEOMETRY_4D,
    PTX_GEOMETRY_5D,
    PTX_GEOMETRY_A1D,
    PTX_GEOMETRY_A2D,
    PTX_GEOMETRY_CUBE,
    PTX_GEOMETRY_ACUBE,
    PTX_GEOMETRY_2DMS,
    PTX_GEOMETRY_A2DMS
} ptx_geometry;

/* What txq and suq ask. */
typedef enum ptx_query {
    PTX_QUERY_WIDTH,
    PTX_QUERY_HEIGHT,
    PTX_QUERY_DEPTH,
    PTX_QUERY_CHANNEL_DATA_TYPE,
    PTX_QUERY_CHANNEL_ORDER,
    PTX_QUERY_ARRAY_SIZE,
    PTX_QUERY_MEMORY_LAYOUT, /* surfaces have those up to here */
    PTX_QUERY_NORMALIZED_COORDS,
    PTX_QUERY_NUM_MIPMAP_LEVELS,
    PTX_QUERY_NUM_SAMPLES,
    PTX_QUERY_FILTER_MODE, /* of samplers */
    PTX_QUERY_ADDR_MODE,
    PTX_QUERY_FORCE_UNNORMALIZED_COORDS
} ptx_query;

typedef enum ptx_proxy {
    PTX_PROXY_ALIAS,
    PTX_PROXY_ASYNC,
    PTX_PROXY_ASYNC_GENERIC,
    PTX_PROXY_TENSORMAP_GENERIC
} ptx_proxy;

/* Of a tensor map. */
typedef enum ptx_field {
    PTX_FIELD_GLOBAL_ADDRESS,
    PTX_FIELD_RANK,
    PTX_FIELD_BOX_DIM,
    PTX_FIELD_GLOBAL_DIM,
    PTX_FIELD_GLOBAL_STRIDE,
    PTX_FIELD_ELEMENT_STRIDE,
    PTX_FIELD_ELEMTYPE,
    PTX_FIELD_INTERLEAVE_LAYOUT,
    PTX_FIELD_SWIZZLE_MODE,
    PTX_FIELD_SWIZZLE_ATOMICITY,
    PTX_FIELD_FILL_MODE
} ptx_field;

/* Which two of four elements a sparse A has. */
typedef enum ptx_sparsity { PTX_METADATA_ANY, PTX_METADATA_ORDERED } ptx_sparsity;

/* How many scales there are for a row of A: .scale_vec::2X; or by how many elements there is one of them. */
typedef enum ptx_scale_vec {
    PTX_SCALE_VEC_1X = 1,
    PTX_SCALE_VEC_2X = 2,
    PTX_SCALE_VEC_4X = 4,
    PTX_SCALE_VEC_BLOCK16 = 16,
    PTX_SCALE_VEC_BLOCK32 = 32
} ptx_scale_vec;

/* Matrices' elements in memory: as they are, and as they become. */
typedef enum ptx_format { PTX_FORMAT_B8X16 = 1, PTX_FORMAT_B6X16_P32, PTX_FORMAT_B4X16_P64 } ptx_format;

/* What an instruction moves of tensor memory: lanes x bits. */
typedef enum ptx_extent {
    PTX_EXTENT_16X64B,
    PTX_EXTENT_16X128B,
    PTX_EXTENT_16X256B,
    PTX_EXTENT_32X32B,
    PTX_EXTENT_16X32BX2, /* those up to here are loaded and stored, the others copied */
    PTX_EXTENT_128X256B,
    PTX_EXTENT_4X256B,
    PTX_EXTENT_128X128B,
    PTX_EXTENT_64X128B,
    PTX_EXTENT_32X128B
} ptx_extent;

/* To which warps' lanes tcgen05.cp copies once more. */
typedef enum ptx_warps { PTX_WARPX2_02_13, PTX_WARPX2_01_23, PTX_WARPX4 } ptx_warps;

/* What becomes of a matrix in the collector buffer; of that of A, of those of B. */
typedef enum ptx_collector {
    PTX_COLLECTOR_FILL = 1,
    PTX_COLLECTOR_USE = 2,
    PTX_COLLECTOR_LASTUSE = 3,
    PTX_COLLECTOR_DISCARD = 4,
    PTX_COLLECTOR_B = 8 /* and more: 8 * (1 + which) */
} ptx_collector;

/* Of a kind of modifiers only some values. */
typedef struct ptx_only {
    uint8_t kind;
    uint64_t values; /* bits */
} ptx_only;

/* What a row may have for sm where not all targets above one have it: sets of targets, in table.c. */
enum {
    PTX_FIRST_SET = 200,
    PTX_SM90A = PTX_FIRST_SET,
    PTX_OWN90,  /* sm_90a and all later ones that are of an architecture or a family: sm_100a, sm_100f */
    PTX_OWN100, /* those from sm_100 on */
    PTX_SM100F, /* those of sm_100's family and its neighbours' */
    PTX_SM100F_120A,
    PTX_SM103A,
    PTX_SM100_103F,  /* redux of floats */
    PTX_SM100A_103A, /* cvt.rs */
    PTX_SM100A_110A, /* tcgen05.mma of integers */
    PTX_SM100A_103A_110A,
    PTX_SM103F_110F, /* tcgen05.ld.red */
    PTX_SM120F,
    PTX_SM120A
};

/* One way of writing an instruction. */
typedef struct ptx_form {
    uint64_t types[5];    /* sets of ptx_type; empty: no such type modifier */
    ptx_set allowed;      /* modifiers */
    ptx_set required;     /* of those */
    ptx_set one_of;       /* at least one of these; empty: no such rule */
    const char *operands; /* see opcodes.def */
    uint8_t isa, sm;      /* at least; 0: ever; sm: or a set of targets */
    uint8_t late;         /* the .version from which on older assemblers take it too; 0: isa */
    ptx_only only[5];     /* ended by kind 0 or the end */
} ptx_form;

typedef struct ptx_opcode {
    const char *name;
    const char *sections;  /* of PTX ISA 9.0 */
    const ptx_form *forms; /* ended by one without operands */
} ptx_opcode;

extern const ptx_opcode kr__ptx_opcodes[PTX_OP_COUNT];

typedef struct ptx_modifier {
    const char *text; /* without the dot */
    uint8_t kind;     /* PTX_KIND_..., or 0: a flag */
    uint8_t isa, sm;  /* as a form's */
    uint64_t value;
    const char *feature; /* what isa and sm are of */
} ptx_modifier;

extern const ptx_modifier kr__ptx_modifiers[];
extern const size_t kr__ptx_n_modifiers;

extern const struct ptx_special_row {
    const char *text;
    ptx_type type;
} kr__ptx_specials[PTX_SPECIAL_COUNT];

/* Those of three coordinates, as vectors of four: %tid. */
typedef struct ptx_special_vector {
    const char *text;
    ptx_operand operand;
} ptx_special_vector;

enum { PTX_SPECIAL_VECTORS = 8 };
extern const ptx_special_vector kr__ptx_special_vectors[PTX_SPECIAL_VECTORS];
/* "%tid" where the operand is that vector, or NULL. */
const char *kr__ptx_special_vector_name(const ptx_operand *operand);

/* One of the modifiers of a set, for a message. */
const char *kr__ptx_modifier_text(ptx_set set);
const char *kr__ptx_value_text(uint8_t kind, uint8_t value);
const char *kr__ptx_order_name(ptx_order order); /* "acq_rel" */

/* PTX_NONE where the word (".f32") is no type. */
ptx_type kr__ptx_type_named(ptx_text word);

/* What the assembler takes from isa on, and those before it from `others` on. */
#define LATE(isa, others) ((isa) | (others) << 8)

/* Sets of targets are bits, in the order of table.c. No such target: 0, and nothing is written. The assembler
 * takes it from isa on, those before it from needs on. */
uint64_t kr__ptx_target_named(ptx_text name, int *sm, char *suffix, int *isa, int *needs);
uint64_t kr__ptx_targets(unsigned sm);                    /* those of a row's column */
uint64_t kr__ptx_targets_at(int isa);                     /* those of a .version */
const char *kr__ptx_lowest_target(uint64_t set, int *sm); /* NULL: there is none */
bool kr__ptx_version_known(int isa);

/* ---- printing (print.c, print_module.c) ---- */

typedef struct ptx_printer {
    const ptx_function *function;
    const ptx_names *names; /* by a thing's address: what it is called in the text; NULL: as in the module */
} ptx_printer;

/* What to call a register, variable, function, label, prototype, list of targets. */
const char *kr__ptx_printed_name(const ptx_printer *p, const void *thing, const char *name);
void kr__ptx_print_named(const ptx_printer *p, const ptx_instr *instr, kr__text *to);

/* ---- the words of PTX (words.c) ---- */

typedef struct ptx_words {
    kr__arena arena;
    ptx_names names;
    ptx_set allowed[PTX_OP_COUNT]; /* modifiers of any form of an opcode */
} ptx_words;

/* The same for every text: made once, by whoever comes first. NULL: out of memory. */
const ptx_words *kr__ptx_words(void);

/* ---- the parser (parser.c: what all stand on; parse.c: module scope; variable.c, function.c: declarations;
 * body.c: function bodies; check.c: instructions) ---- */

typedef struct ptx_range {
    ptx_type type;
    unsigned vector;
    uint64_t n;
} ptx_range;

typedef struct ptx_targets {
    uint32_t *labels;
    uint32_t n_labels;
} ptx_targets;

/* An instruction's name as written ("fma.rn.f32"), decoded once however often it stands in the text. */
typedef struct ptx_spelling {
    ptx_op row;                   /* in opcodes.def: not instr.op for barrier.* */
    ptx_instr instr;              /* everything that the name says; no operands */
    ptx_set modifiers;            /* those written */
    uint8_t values[PTX_KIND_END]; /* of each kind's first */
} ptx_spelling;

/* A name that is not known yet: a label may still come. What never does is reported when the function ends.
 */
typedef struct ptx_pending {
    ptx_text name;
    unsigned line;
    bool is_label;
    uint32_t *target; /* of .branchtargets; NULL: operands[operand] of instruction `instr` */
    uint32_t instr, operand;
    struct ptx_pending *next;
} ptx_pending;

typedef struct ptx_block { /* a lexical scope */
    ptx_names names;
    ptx_pending *pending;
    struct ptx_block *outer;
} ptx_block;

typedef struct ptx_place { /* of a source */
    uint32_t file, line, column;
} ptx_place;

typedef struct ptx_parser {
    ptx_lexer lexer;
    ptx_token token; /* the current one */
    ptx_module *module;
    uint64_t target; /* of the module */
    ptx_problem *problem;
    bool stopped; /* after a fatal error: every further token is the end */
    const ptx_words *words;
    ptx_names spellings;
    ptx_block *block;
    unsigned depth; /* of nested blocks, braces and parentheses */
    bool is_head;   /* a function's directives, before its body */
    bool linked;    /* the module's block then has an outer one: names that all texts see */
    /* the function whose body is read */
    ptx_function *function;
    ptx_instr *instrs;                      /* malloc'ed, moved to the arena at the end */
    ptx_operand operands[PTX_MAX_OPERANDS]; /* of the instruction that is read */
    size_t n_instrs, instr_capacity;
    ptx_label *labels;
    size_t n_labels, label_capacity;
    ptx_register **registers;
    size_t n_registers, register_capacity;
    ptx_variable **last_variable; /* of the module, or of the function */
    unsigned n_variables;
    ptx_function **last_function;
    ptx_file **last_file;
    ptx_mark **last_mark; /* of the module */
    ptx_mark **last_mark_of_body;
    const char *last_end; /* of the token before the current one */
    unsigned loc_file, loc_line;
    ptx_names places;              /* ptx_place: that .loc named */
    ptx_names files;               /* indices that .file named */
    ptx_names section_labels;      /* of debug sections, which stand at the end */
    ptx_pending *function_names;   /* those that .loc names */
    bool unknown, unknown_address; /* an operand, an address names something unknown: not to be judged */
    bool too_many; /* operands, or parts of an address: more than any instruction that is checked has */
} ptx_parser;

/* Errors in the assembler's words. kr__ptx_fatal stops the parse. */
void kr__ptx_error(ptx_parser *p, unsigned line, const char *format, ...) KR_PRINTF(3, 4);
void kr__ptx_fatal(ptx_parser *p, unsigned line, const char *format, ...) KR_PRINTF(3, 4);
void kr__ptx_fatal_of(ptx_parser *p, ptx_problem_kind kind, unsigned line, const char *format, ...)
    KR_PRINTF(4, 5);
void kr__ptx_unsupported(ptx_parser *p, unsigned line, const char *format, ...) KR_PRINTF(3, 4);
void kr__ptx_syntax_error(ptx_parser *p);       /* near the current token */
void *kr__ptx_new(ptx_parser *p, size_t bytes); /* of the module; NULL: out of memory, said */
void kr__ptx_no_memory(ptx_parser *p);

void kr__ptx_advance(ptx_parser *p);
bool kr__ptx_accept(ptx_parser *p, int mark);
bool kr__ptx_expect(ptx_parser *p, int mark);
bool kr__ptx_expect_word(ptx_parser *p, ptx_text *ret_text); /* a name */
bool kr__ptx_enter(ptx_parser *p);                           /* one deeper, or fatal */
bool kr__ptx_at_dotted(const ptx_parser *p, const char *word);
bool kr__ptx_accept_dotted(ptx_parser *p, const char *word);

/* A constant expression (constant.c): 64-bit integers, or a float. */
typedef struct ptx_constant {
    bool is_float;
    uint8_t float_bytes;
    int64_t bits;
} ptx_constant;
bool kr__ptx_constant(ptx_parser *p, ptx_constant *ret);
bool kr__ptx_integer(ptx_parser *p, int64_t *ret);
/* A number that is no expression. */
bool kr__ptx_number(ptx_parser *p, uint64_t most, uint64_t *ret);
uint64_t kr__ptx_float_as(const ptx_constant *constant, ptx_type type); /* its bits in that type */
/* May a constant stand where that type is wanted? */
bool kr__ptx_constant_agrees(const ptx_operand *operand, ptx_type want);

ptx_name *kr__ptx_lookup(ptx_parser *p, ptx_text text); /* innermost block first; makes registers of ranges */
ptx_name *kr__ptx_declare(ptx_parser *p, ptx_text text, unsigned line, ptx_name_kind kind);

/* Names of the module; where several texts are linked, those that all of them see are the outer block's. */
ptx_name *kr__ptx_module_name(ptx_parser *p, ptx_text text, ptx_linkage linkage);
int kr__ptx_strength(ptx_linkage linkage);
bool kr__ptx_may_meet(const ptx_parser *p, ptx_linkage one, ptx_linkage other);
bool kr__ptx_begin_text(ptx_parser *p);

/* What a declaration says before its names. */
typedef struct ptx_declaration {
    ptx_space space;
    ptx_linkage linkage;
    ptx_type type;
    unsigned alignment; /* 0: the type's */
    unsigned vector;
    bool is_managed, is_unified, is_pointer;
    uint64_t uuid[2];
    ptx_space pointer_space;
    unsigned pointer_alignment;
} ptx_declaration;

/* An array's dimensions. */
typedef struct ptx_shape {
    bool is_open; /* the first is [] */
    size_t n;
    size_t n_levels; /* of braces round a value: a vector has one more */
    size_t bytes[8]; /* of the whole (open: of a row), of a row, ... of the last dimension's */
} ptx_shape;

ptx_space kr__ptx_space_at(const ptx_parser *p); /* GENERIC: at none */
bool kr__ptx_qualifiers(ptx_parser *p, ptx_declaration *to);
bool kr__ptx_pointer(ptx_parser *p, ptx_declaration *to); /* .ptr, if it stands here */
ptx_variable *kr__ptx_new_variable(ptx_parser *p, const ptx_declaration *of, ptx_text name, unsigned line);
bool kr__ptx_dimensions(ptx_parser *p, ptx_variable *variable, ptx_shape *ret);
bool kr__ptx_attributes(ptx_parser *p, bool of_variable, ptx_declaration *to); /* from the parenthesis on */
void kr__ptx_check_type(ptx_parser *p, const ptx_declaration *of, ptx_text name, unsigned line);
bool kr__ptx_skip_opaque(ptx_parser *p);
/* `.global .align 4 .b8 name[64] = {...}, more;` from the state space on. */
void kr__ptx_variables(ptx_parser *p, ptx_linkage linkage);
/* `(.param .b32 a, ...)`; names are declared when `declare`. */
bool kr__ptx_parameters(ptx_parser *p, ptx_function *function, bool returns, bool declare);
void kr__ptx_function(ptx_parser *p, ptx_linkage linkage); /* from .entry or .func on */
void kr__ptx_alias(ptx_parser *p);
bool kr__ptx_noreturn(ptx_parser *p, ptx_function *function);
ptx_mark **kr__ptx_pragma(ptx_parser *p, ptx_mark **last); /* returns where the next goes */
/* A mark of what stands from `begin` to before the current token. */
ptx_mark **kr__ptx_mark(ptx_parser *p, const char *begin, ptx_mark **last);
bool kr__ptx_push_block(ptx_parser *p);
/* A register's, or a vector's, for a name that has none yet. */
void kr__ptx_make_register(ptx_parser *p, ptx_name *name, ptx_type type, unsigned vector);

void kr__ptx_body(ptx_parser *p, ptx_function *function); /* from the token after '{' to past '}' */

/* Decodes the modifiers of `op` in `words` (".rn.f32"). */
bool kr__ptx_decode(ptx_parser *p, ptx_op op, ptx_text words, unsigned line, ptx_spelling *to);
/* ---- what .version and .target have (needs.c) ---- */

void kr__ptx_begin_needs(ptx_parser *p, int isa, unsigned line);
/* Notes that the module uses `form`: .version `isa` has it on the module's target, `targets` at its .version.
 */
void kr__ptx_need(ptx_parser *p, unsigned line, const char *form, int isa, uint64_t targets);
/* The same of a feature that a row has; where the module lacks it, reported. */
bool kr__ptx_has(ptx_parser *p, unsigned line, const char *feature, int isa, int sm);
/* Modifiers of an instruction that is none: reports those that no instruction has. */
void kr__ptx_decode_unknown(ptx_parser *p, ptx_text words, unsigned line);
void kr__ptx_check_instr(ptx_parser *p, const ptx_spelling *spelling, ptx_instr *instr);
/* What the forms do not say of matrices (check_matrix.c). */
void kr__ptx_check_matrix(ptx_parser *p, const ptx_spelling *spelling, const ptx_instr *instr,
                          const char *title);
/* May a register of that type stand where this one is wanted? */
bool kr__ptx_agrees(ptx_type have, ptx_type want);

#endif
