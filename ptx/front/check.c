/* SPDX-License-Identifier: Apache-2.0 */
#include "ptx/front/front.h"

#include <string.h>

/* An instruction against the forms that its opcode has. */

#define K(kind) ((ptx_set)1 << PTX_KIND_##kind)
#define SET(type) (1ull << (type))

static const uint64_t signed_types = SET(PTX_S8) | SET(PTX_S16) | SET(PTX_S32) | SET(PTX_S64);
static const uint64_t unsigned_types = SET(PTX_U8) | SET(PTX_U16) | SET(PTX_U32) | SET(PTX_U64);
static const uint64_t bit_types = SET(PTX_B8) | SET(PTX_B16) | SET(PTX_B32) | SET(PTX_B64) | SET(PTX_B128);
/* Those whose operands are in registers of as many bits, and no constants: fp8 pairs, tf32, packed halves. */
static const uint64_t packed_types = ((1ull << (PTX_UE8M0X2 + 1)) - SET(PTX_E2M1X2)) | SET(PTX_TF32) |
                                     SET(PTX_E4M3X2) | SET(PTX_E5M2X2) | SET(PTX_BF16) | SET(PTX_BF16X2) |
                                     SET(PTX_U16X2) | SET(PTX_S16X2) | SET(PTX_F32X2);

static bool is(uint64_t set, ptx_type type)
{
    return set >> type & 1;
}

static bool is_integer(ptx_type type)
{
    return is(signed_types | unsigned_types, type);
}

/* ---- may a register of this type stand where that type is wanted? ---- */

bool kr__ptx_agrees(ptx_type have, ptx_type want)
{
    if (have == want)
        return true;
    if (have == PTX_PRED || want == PTX_PRED || kr__ptx_type_bytes(have) != kr__ptx_type_bytes(want))
        return false;
    if (is(packed_types, want))
        return is(bit_types, have);
    return is(bit_types, have) || is(bit_types, want) || (is_integer(have) && is_integer(want));
}

/* ld, st, cvt: the register may be wider than the datum. */
static bool agrees_wider(ptx_type have, ptx_type want)
{
    if (have == PTX_PRED || kr__ptx_type_bytes(have) < kr__ptx_type_bytes(want))
        return false;
    if (kr__ptx_type_bytes(have) == kr__ptx_type_bytes(want) || is(packed_types, want))
        return kr__ptx_agrees(have, want);
    return is(bit_types, have) || is(bit_types, want) || (is_integer(have) && is_integer(want));
}

bool kr__ptx_constant_agrees(const ptx_operand *operand, ptx_type want)
{
    if (want == PTX_PRED || is_integer(want))
        return !operand->is_float;
    if (is(bit_types, want)) /* 0f... is of 32 bits, 0d... and decimals of 64 */
        return !operand->is_float || operand->float_bytes == kr__ptx_type_bytes(want);
    return operand->is_float && (want == PTX_F32 || want == PTX_F64);
}

static ptx_type wide(ptx_type type)
{
    switch (type) {
    case PTX_U16:
        return PTX_U32;
    case PTX_S16:
        return PTX_S32;
    case PTX_U32:
        return PTX_U64;
    case PTX_S32:
        return PTX_S64;
    default:
        return PTX_NONE;
    }
}

/* ---- a verdict ---- */

/* How far an instruction came with a form; the form it came farthest with says what is wrong. */
typedef enum stage { TYPES, MODIFIERS, MISSING, COUNT, OPERANDS, SPACES, VERSION, RIGHT } stage;

typedef struct verdict {
    ptx_parser *parser;
    const ptx_spelling *spelling;
    const ptx_instr *instr;
    const ptx_form *form;
    const char *title; /* the instruction in messages: "mul.wide" */
    bool narrow;       /* 32-bit registers are addresses in any space */
    bool wanted;       /* is the message? */
    char message[256];
} verdict;

static stage fail(verdict *v, stage at, const char *format, ...) KR_PRINTF(3, 4);
static stage fail(verdict *v, stage at, const char *format, ...)
{
    if (v->wanted) {
        va_list args;
        va_start(args, format);
        kr__format_list(v->message, sizeof v->message, format, args);
        va_end(args);
    }
    return at;
}

static stage mismatch(verdict *v)
{
    return fail(v, OPERANDS, "Arguments mismatch for instruction '%s'", v->title);
}

/* ---- operands ---- */

static stage source(verdict *v, const ptx_operand *operand, size_t argument, ptx_type want, bool wider)
{
    switch (operand->kind) {
    case PTX_OPERAND_REGISTER:
        if (operand->negated && want != PTX_PRED)
            return fail(v, OPERANDS, "Illegal argument to predicate negation");
        return (wider ? agrees_wider : kr__ptx_agrees)(operand->reg->type, want) ? RIGHT : mismatch(v);
    case PTX_OPERAND_IMMEDIATE:
        return kr__ptx_constant_agrees(operand, want) ? RIGHT : mismatch(v);
    case PTX_OPERAND_SPECIAL: {
        const ptx_type type = kr__ptx_specials[operand->special].type;
        if (v->instr->op != PTX_OP_MOV && (v->instr->op != PTX_OP_CVT || !is_integer(v->instr->type)))
            return fail(v, OPERANDS, "Special register argument not allowed for instruction '%s'", v->title);
        /* `mov.u16 %rs1, %tid.x;` and `mov.u32 %r1, %gridid;` are from when these were so wide */
        return kr__ptx_agrees(type, want) || (type == PTX_U32 && want == PTX_U16) ||
                       (operand->special == PTX_GRIDID && kr__ptx_type_bytes(want) == 4) ||
                       (wider && agrees_wider(type, want))
                   ? RIGHT
                   : mismatch(v);
    }
    case PTX_OPERAND_SYMBOL:
        return fail(v, OPERANDS, "Argument %zu of instruction '%s': must be register", argument, v->title);
    case PTX_OPERAND_VECTOR:
        return fail(v, OPERANDS, "Vector operand is not allowed for instruction '%s'", v->title);
    case PTX_OPERAND_SINK: /* of the 256 bits that are stored these are not */
        return v->instr->op == PTX_OP_ST && v->instr->vector * kr__ptx_type_bytes(v->instr->type) > 16
                   ? RIGHT
                   : mismatch(v);
    default:
        return mismatch(v);
    }
}

/* Where `_` may stand for a result. */
static bool may_discard(const ptx_instr *instr)
{
    switch (instr->op) {
    case PTX_OP_ATOM:
    case PTX_OP_SETP:
    case PTX_OP_ELECT:
        return true;
    case PTX_OP_MATCH:
        return true;
    case PTX_OP_LOP3:
        return instr->boolean;
    case PTX_OP_TEX:
    case PTX_OP_TLD4:
    case PTX_OP_LD:
    case PTX_OP_MOV:
    case PTX_OP_MULTIMEM_LD_REDUCE:
    case PTX_OP_CLUSTERLAUNCHCONTROL_QUERY_CANCEL:
        return instr->vector > 1;
    default:
        return false;
    }
}

static stage destination(verdict *v, const ptx_operand *operand, ptx_type want, bool wider)
{
    if (operand->kind == PTX_OPERAND_SINK)
        return may_discard(v->instr)
                   ? RIGHT
                   : fail(v, OPERANDS, "Result discard mode is not allowed for instruction '%s'", v->title);
    if (operand->kind == PTX_OPERAND_IMMEDIATE)
        return fail(v, OPERANDS, "Result register required for instruction '%s'", v->title);
    if (operand->kind == PTX_OPERAND_VECTOR)
        return fail(v, OPERANDS, "Vector operand is not allowed for instruction '%s'", v->title);
    if (operand->kind != PTX_OPERAND_REGISTER || operand->negated)
        return mismatch(v);
    return (wider ? agrees_wider : kr__ptx_agrees)(operand->reg->type, want) ? RIGHT : mismatch(v);
}

static bool is_multimem(ptx_op op)
{
    return op >= PTX_OP_MULTIMEM_LD_REDUCE && op <= PTX_OP_MULTIMEM_RED;
}

/* What registers of the first type are to be of: to multimem what is less than a float
 * is bits. */
static ptx_type datum_type(const ptx_instr *instr)
{
    static const uint64_t packed = SET(PTX_BF16X2) | SET(PTX_E4M3) | SET(PTX_E5M2) | SET(PTX_E4M3X2) |
                                   SET(PTX_E5M2X2) | SET(PTX_E4M3X4) | SET(PTX_E5M2X4);
    static const ptx_type bits[] = {[1] = PTX_B8, [2] = PTX_B16, [4] = PTX_B32};
    const size_t n = kr__ptx_type_bytes(instr->type);
    const bool is_bits = is(packed, instr->type) || (instr->vector > 1 && instr->type != PTX_F32);
    return is_multimem(instr->op) && is_bits && n < KR_COUNT(bits) ? bits[n] : instr->type;
}

/* PTX_NONE: of bits, which stand beside any others. */
static ptx_type element_type(const ptx_operand *element)
{
    if (element->kind == PTX_OPERAND_IMMEDIATE)
        return element->is_float ? PTX_F32 : PTX_U32;
    return element->reg && !is(bit_types, element->reg->type) ? element->reg->type : PTX_NONE;
}

/* No floats right beside integers. */
static stage alike(verdict *v, const ptx_operand *vector)
{
    for (size_t i = 1; i < vector->n_elements; i++) {
        const ptx_type one = element_type(&vector->elements[i - 1]),
                       other = element_type(&vector->elements[i]);
        if (one && other && one != other && !(is_integer(one) && is_integer(other)))
            return fail(v, OPERANDS,
                        "Vector with elements of different types are not allowed in %s instruction",
                        v->title);
    }
    return RIGHT;
}

/* `.v2`: as many elements, each as a plain operand would be. */
static stage elements(verdict *v, const ptx_operand *operand, size_t argument, ptx_type want, bool wider,
                      bool is_source)
{
    if (operand->kind != PTX_OPERAND_VECTOR || operand->is_pair || operand->n_elements != v->instr->vector)
        return fail(v, OPERANDS, "Argument vector size mismatch for instruction '%s'", v->title);
    size_t bytes = 0;
    for (size_t i = 0; i < operand->n_elements; i++) {
        const ptx_operand *element = &operand->elements[i];
        const size_t n = element->kind == PTX_OPERAND_REGISTER ? kr__ptx_type_bytes(element->reg->type) : 0;
        if (bytes && n && n != bytes)
            return fail(v, OPERANDS, "Incompatible elements of vector expression");
        bytes = n ? n : bytes;
        const stage got =
            is_source ? source(v, element, argument, want, wider) : destination(v, element, want, wider);
        if (got != RIGHT)
            return got;
    }
    return is_multimem(v->instr->op) ? alike(v, operand) : RIGHT;
}

static stage datum(verdict *v, const ptx_operand *operand, size_t argument, ptx_type want, bool wider,
                   bool is_source)
{
    if (v->instr->vector > 1 ||
        (operand->kind == PTX_OPERAND_VECTOR && operand->n_elements == 1 && v->instr->vector == 1 &&
         (v->instr->op == PTX_OP_LD || v->instr->op == PTX_OP_ST)))
        return elements(v, operand, argument, want, wider, is_source);
    return is_source ? source(v, operand, argument, want, wider) : destination(v, operand, want, wider);
}

/* Of surfaces and st.async: what is stored with .v2 or .v4 may be one register; where neither is written, a
 * vector with as many bits may stand for one. */
static stage loose_datum(verdict *v, const ptx_operand *operand, size_t argument, bool wider, bool is_source)
{
    const ptx_type type = v->instr->type;
    size_t bytes = 0;
    const bool is_vector = operand->kind == PTX_OPERAND_VECTOR && !operand->is_pair;
    if (!is_vector && is_source)
        return source(v, operand, argument, type, wider);
    if (!is_vector || v->instr->vector > 1)
        return datum(v, operand, argument, type, wider, is_source);
    for (size_t i = 0; i < operand->n_elements; i++) {
        const ptx_operand *element = &operand->elements[i];
        if (element->kind != PTX_OPERAND_REGISTER || element->reg->type == PTX_PRED)
            return mismatch(v);
        bytes += kr__ptx_type_bytes(element->reg->type);
    }
    const size_t whole = kr__ptx_type_bytes(type);
    return bytes == whole || (wider && bytes > whole) ? RIGHT : mismatch(v);
}

/* p or p|q */
static stage predicates(verdict *v, const ptx_operand *operand, ptx_type first)
{
    const bool is_pair = operand->kind == PTX_OPERAND_VECTOR && operand->is_pair;
    const bool is_needed = v->instr->op == PTX_OP_LOP3 || v->instr->op == PTX_OP_ELECT;
    if (is_needed && (!is_pair || operand->elements[1].kind == PTX_OPERAND_SINK))
        return fail(v, OPERANDS, "Predicate output expected for instruction '%s'", v->title);
    if (!is_pair)
        return destination(v, operand, first, false);
    const stage got = destination(v, &operand->elements[0], first, false);
    if (got != RIGHT || operand->elements[1].kind == PTX_OPERAND_SINK)
        return got;
    return destination(v, &operand->elements[1], PTX_PRED, false);
}

static bool space_agrees(ptx_space wanted, const ptx_variable *variable)
{
    if (wanted == PTX_SPACE_SHARED_CLUSTER)
        wanted = PTX_SPACE_SHARED;
    return wanted == PTX_SPACE_GENERIC || wanted == variable->space;
}

static stage address(verdict *v, const ptx_operand *operand, ptx_space space)
{
    if (operand->kind != PTX_OPERAND_ADDRESS || operand->function || operand->n_elements)
        return mismatch(v);
    if (operand->reg) {
        const ptx_type type = operand->reg->type;
        if (!is_integer(type) && !is(bit_types, type))
            return fail(v, OPERANDS,
                        "Illegal to use symbol '%s' of type .%s as address operand. Use integer or bit only.",
                        operand->reg->name, kr__ptx_type_name(type));
        if (v->narrow && space == PTX_SPACE_GENERIC && kr__ptx_type_bytes(type) < 4)
            return mismatch(v);
        if (type == PTX_B128)
            return fail(v, OPERANDS, "Illegal operand type for address/array-index");
        if (kr__ptx_type_bytes(type) < 8 && !v->narrow &&
            (space == PTX_SPACE_GENERIC || (space == PTX_SPACE_GLOBAL && !v->instr->space2)))
            return fail(v, OPERANDS, "32-bit address register '%s' with .address_size 64",
                        operand->reg->name);
        return RIGHT;
    }
    const ptx_space of = operand->variable ? operand->variable->space : PTX_SPACE_GENERIC;
    const bool is_unreachable = space == PTX_SPACE_GENERIC && v->instr->op != PTX_OP_FENCE &&
                                (of == PTX_SPACE_CONST || of == PTX_SPACE_PARAM);
    if (operand->variable && operand->variable->type >= PTX_TEXREF &&
        v->instr->op != PTX_OP_TENSORMAP_REPLACE)
        return fail(v, OPERANDS, "Illegal operand type to instruction '%s'", v->title);
    if (operand->variable && (!space_agrees(space, operand->variable) || is_unreachable))
        return fail(v, SPACES, "State space mismatch between instruction and address in instruction '%s'",
                    v->title);
    if (!operand->variable && space != PTX_SPACE_LOCAL)
        return fail(v, SPACES, "Immediate addresses allowed only for .local state space");
    return RIGHT;
}

/* {%r1, 2}: so many, each as a plain operand would be */
static stage list(verdict *v, const ptx_operand *operand, size_t argument, size_t n, ptx_type want)
{
    if (operand->kind != PTX_OPERAND_VECTOR || operand->is_pair)
        return mismatch(v);
    if (operand->n_elements != n)
        return fail(v, OPERANDS, "Argument %zu of instruction '%s': Argument vector size mismatch", argument,
                    v->title);
    for (size_t i = 0; i < n; i++) {
        const stage got = source(v, &operand->elements[i], argument, want, false);
        if (got != RIGHT)
            return got;
    }
    return RIGHT;
}

static bool is_im2col(uint8_t mode)
{
    return mode >= PTX_MODE_IM2COL && mode <= PTX_MODE_IM2COL_W_128;
}

/* ---- textures and surfaces ---- */

/* How many coordinates there are, as a vector of 1, 2 or 4; how many of them are no array's index. */
static const struct {
    uint8_t n_coordinates, n_dimensions;
    bool is_array;
} geometries[] = {
    [PTX_GEOMETRY_1D] = {1, 1, false},   [PTX_GEOMETRY_2D] = {2, 2, false},
    [PTX_GEOMETRY_3D] = {4, 4, false},   [PTX_GEOMETRY_A1D] = {2, 1, true},
    [PTX_GEOMETRY_A2D] = {4, 2, true},   [PTX_GEOMETRY_CUBE] = {4, 0, false},
    [PTX_GEOMETRY_ACUBE] = {4, 0, true}, [PTX_GEOMETRY_2DMS] = {4, 0, false},
    [PTX_GEOMETRY_A2DMS] = {4, 0, true},
};

/* As many as `least` or more; the first may be of another type. Where they are of one, the assembler also
 * takes a single one without braces. */
static stage coordinates(verdict *v, const ptx_operand *operand, size_t argument, size_t least,
                         ptx_type first, ptx_type want)
{
    if (operand->kind != PTX_OPERAND_VECTOR && first == want)
        return source(v, operand, argument, first, false);
    if (operand->kind != PTX_OPERAND_VECTOR || operand->is_pair)
        return mismatch(v);
    const size_t n = operand->n_elements;
    if (n != 1 && n != 2 && n != 4)
        return fail(v, OPERANDS, "Illegal vector size: %zu", n);
    if (n < least)
        return fail(v, OPERANDS, "Operand vector size doesn't match geometry for instruction '%s'", v->title);
    for (size_t i = 0; i < n; i++) {
        const stage got = source(v, &operand->elements[i], argument, i ? want : first, false);
        if (got != RIGHT)
            return got;
    }
    return RIGHT;
}

/* A variable of that type, or its address in a register: what [ ] begins with. */
static stage handle(verdict *v, const ptx_operand *operand, size_t argument, ptx_type type)
{
    const bool is_value = operand->kind == PTX_OPERAND_REGISTER || operand->kind == PTX_OPERAND_SYMBOL;
    const bool is_register = operand->reg && !operand->negated && kr__ptx_agrees(operand->reg->type, PTX_U64);
    const bool is_variable = operand->variable && operand->variable->type == type;
    if ((is_value || operand->kind == PTX_OPERAND_ADDRESS) && !operand->offset &&
        (is_register || is_variable))
        return RIGHT;
    return fail(v, OPERANDS, "Argument %zu of instruction '%s': .%s or .u64 register expected", argument,
                v->title, kr__ptx_type_name(type));
}

static stage query_handle(verdict *v, const ptx_operand *operand, size_t argument, ptx_type type)
{
    if (operand->kind != PTX_OPERAND_ADDRESS)
        return fail(v, OPERANDS, "Address expected for argument %zu of instruction '%s'", argument, v->title);
    return operand->n_elements ? mismatch(v) : handle(v, operand, argument, type);
}

/* Samplers are textures' own, but where the module says otherwise. */
static stage sampler_query(verdict *v, const ptx_operand *operand, size_t argument)
{
    const bool is_independent = v->parser->module->texmode_independent;
    if (!is_independent && v->spelling->values[PTX_KIND_QUERY] == PTX_QUERY_FORCE_UNNORMALIZED_COORDS)
        return fail(v, OPERANDS, "Argument %zu of instruction '%s': .samplerref expected", argument,
                    v->title);
    return query_handle(v, operand, argument, is_independent ? PTX_SAMPLERREF : PTX_TEXREF);
}

/* [texture, {coordinates}] or [texture, sampler, {coordinates}] */
static stage texture(verdict *v, const ptx_operand *operand, size_t argument)
{
    const ptx_geometry geometry = v->spelling->values[PTX_KIND_GEOMETRY];
    const ptx_type want = v->instr->type2;
    const bool is_independent = v->parser->module->texmode_independent;
    const size_t n = operand->n_elements;
    if (operand->kind != PTX_OPERAND_ADDRESS || !n)
        return mismatch(v);
    stage got = handle(v, operand, argument, PTX_TEXREF);
    if (got == RIGHT && (n == 2 || is_independent))
        got = handle(v, &operand->elements[0], argument + 1, is_independent ? PTX_SAMPLERREF : PTX_TEXREF);
    return got != RIGHT
               ? got
               : coordinates(v, &operand->elements[n - 1], argument + n, geometries[geometry].n_coordinates,
                             geometries[geometry].is_array ? PTX_U32 : want, want);
}

static stage surface(verdict *v, const ptx_operand *operand, size_t argument)
{
    const ptx_geometry geometry = v->spelling->values[PTX_KIND_GEOMETRY];
    if (operand->kind != PTX_OPERAND_ADDRESS || operand->n_elements != 1)
        return mismatch(v);
    const stage got = handle(v, operand, argument, PTX_SURFREF);
    return got != RIGHT ? got
                        : coordinates(v, operand->elements, argument + 1, geometries[geometry].n_coordinates,
                                      PTX_S32, PTX_S32);
}

static stage texture_offset(verdict *v, const ptx_operand *operand, size_t argument)
{
    const size_t least = geometries[v->spelling->values[PTX_KIND_GEOMETRY]].n_dimensions;
    if (!least || (least == 4 && operand->kind != PTX_OPERAND_VECTOR))
        return mismatch(v);
    return coordinates(v, operand, argument, least, PTX_S32, PTX_S32);
}

static stage gradient(verdict *v, const ptx_operand *operand, size_t argument)
{
    const size_t n = geometries[v->spelling->values[PTX_KIND_GEOMETRY]].n_dimensions;
    return n                                     ? list(v, operand, argument, n, PTX_F32)
           : operand->kind == PTX_OPERAND_VECTOR ? coordinates(v, operand, argument, 1, PTX_F32, PTX_F32)
                                                 : mismatch(v);
}

/* {r, g, b, a}, or with whether all of them are resident: {r, g, b, a}|p */
static stage colours(verdict *v, const ptx_operand *operand)
{
    if (operand->kind != PTX_OPERAND_VECTOR || !operand->is_pair)
        return elements(v, operand, 0, v->instr->type, false, false);
    const stage got = elements(v, &operand->elements[0], 0, v->instr->type, false, false);
    return got != RIGHT ? got : destination(v, &operand->elements[1], PTX_PRED, false);
}

/* ---- tensors ---- */

/* [tensor map, {coordinates}]: as many as the tensor has dimensions; rows to gather or scatter are four */
static stage tensor(verdict *v, const ptx_operand *operand, size_t argument)
{
    const uint8_t mode = v->spelling->values[PTX_KIND_MODE];
    const bool is_rows = mode == PTX_MODE_GATHER4 || mode == PTX_MODE_SCATTER4;
    if (operand->kind != PTX_OPERAND_ADDRESS || operand->n_elements != 1 ||
        v->spelling->values[PTX_KIND_GEOMETRY] > PTX_GEOMETRY_5D)
        return mismatch(v);
    ptx_operand map = *operand;
    map.n_elements = 0;
    const stage got = address(v, &map, PTX_SPACE_GENERIC);
    return got != RIGHT ? got
                        : list(v, operand->elements, argument + 1,
                               is_rows ? 5 : v->spelling->values[PTX_KIND_GEOMETRY], PTX_U32);
}

/* What im2col adds to the coordinates: the place in the filter, or where along W to begin and how far. */
static stage im2col_offsets(verdict *v, const ptx_operand *operand, size_t argument)
{
    const uint8_t *values = v->spelling->values;
    return list(v, operand, argument,
                values[PTX_KIND_MODE] == PTX_MODE_IM2COL ? values[PTX_KIND_GEOMETRY] - 2u : 2, PTX_U16);
}

/* Of a copy that completes there, or of the instruction's own state space; it lies in shared memory. */
static stage mbarrier(verdict *v, const ptx_operand *operand)
{
    const bool is_checked = v->instr->op != PTX_OP_CP_ASYNC_MBARRIER_ARRIVE || v->instr->space;
    if (is_checked && operand->kind == PTX_OPERAND_ADDRESS && operand->variable &&
        operand->variable->space != PTX_SPACE_SHARED)
        return fail(v, SPACES, "State space mismatch between instruction and address in instruction '%s'",
                    v->title);
    return address(v, operand, v->spelling->modifiers & PTX_COMPLETE_TX ? PTX_SPACE_SHARED : v->instr->space);
}

/* cvta and isspacep: an address as a value */
static stage address_value(verdict *v, const ptx_operand *operand)
{
    const ptx_type want = v->instr->type ? v->instr->type : PTX_U64;
    if (v->instr->op == PTX_OP_ISSPACEP && operand->kind == PTX_OPERAND_REGISTER && !operand->negated &&
        kr__ptx_agrees(operand->reg->type, PTX_U32))
        return RIGHT;
    if (operand->kind != PTX_OPERAND_SYMBOL)
        return source(v, operand, 1, want, false);
    if (v->spelling->modifiers & PTX_TO)
        return fail(v, OPERANDS, "Argument 1 of instruction '%s.to': must be register", v->title);
    if (v->instr->op != PTX_OP_CVTA && v->instr->op != PTX_OP_MAPA && v->instr->op != PTX_OP_GETCTARANK)
        return mismatch(v);
    const ptx_space space = v->instr->op == PTX_OP_CVTA ? v->instr->space : PTX_SPACE_SHARED;
    if (operand->function || !space_agrees(space, operand->variable))
        return fail(v, SPACES, "State space mismatch between instruction and address in instruction '%s'",
                    v->title);
    return RIGHT;
}

/* mov.b64 {a,b}, c and back: elements of one size that fill the type */
static stage pack(verdict *v, const ptx_operand *operand, bool is_source)
{
    const ptx_type type = v->instr->type;
    const size_t n_elements = operand->n_elements, whole = kr__ptx_type_bytes(type);
    size_t bytes = 0;
    if (!is(bit_types, type) || operand->is_pair)
        return mismatch(v);
    for (size_t i = 0; i < operand->n_elements; i++) {
        const ptx_operand *element = &operand->elements[i];
        const bool is_special = element->kind == PTX_OPERAND_SPECIAL && is_source;
        if (is_special ||
            (element->kind == PTX_OPERAND_REGISTER && !element->negated && element->reg->type != PTX_PRED)) {
            const size_t n =
                kr__ptx_type_bytes(is_special ? kr__ptx_specials[element->special].type : element->reg->type);
            if (bytes && bytes != n)
                return fail(v, OPERANDS, "Incompatible elements of vector expression");
            bytes = n;
        } else if (element->kind != PTX_OPERAND_SINK &&
                   (element->kind != PTX_OPERAND_IMMEDIATE || !is_source)) {
            return mismatch(v);
        }
    }
    if (!bytes && is_source)
        bytes = whole / n_elements;
    return bytes * n_elements == whole ? RIGHT : mismatch(v);
}

static bool has_special(const ptx_operand *vector)
{
    for (size_t i = 0; i < vector->n_elements; i++)
        if (vector->elements[i].kind == PTX_OPERAND_SPECIAL)
            return true;
    return false;
}

static stage move_source(verdict *v, const ptx_operand *operand)
{
    const ptx_type type = v->instr->type;
    const bool is_vector = operand->kind == PTX_OPERAND_VECTOR;
    if (is_vector && v->instr->vector > 1 && has_special(operand) && !kr__ptx_special_vector_name(operand))
        return fail(v, OPERANDS, "Argument 1 of instruction 'mov': must be register or constant");
    if (is_vector && v->instr->vector > 1)
        return elements(v, operand, 1, type, false, true);
    if (is_vector)
        return pack(v, operand, true);
    if (operand->kind != PTX_OPERAND_SYMBOL)
        return source(v, operand, 1, type, false);
    if (operand->variable && operand->variable->space == PTX_SPACE_PARAM && !operand->variable->is_parameter)
        return fail(v, OPERANDS, "Illegal to take address of parameter '%s'", operand->variable->name);
    if (operand->variable && operand->variable->type >= PTX_TEXREF && type != PTX_U64)
        return fail(v, OPERANDS, "Indirect access to texture requires .u64 type");
    if (operand->function && operand->offset)
        return mismatch(v);
    if (operand->variable && operand->variable->space == PTX_SPACE_GLOBAL && !operand->offset &&
        kr__ptx_type_bytes(type) == 4)
        return fail(v, OPERANDS, "32-bit address of '%s' with .address_size 64", operand->variable->name);
    return (is_integer(type) || is(bit_types, type)) && kr__ptx_type_bytes(type) >= 4 ? RIGHT : mismatch(v);
}

static stage move_destination(verdict *v, const ptx_operand *operand)
{
    if (v->instr->vector > 1)
        return v->instr->vector * kr__ptx_type_bytes(v->instr->type) > 16
                   ? fail(v, OPERANDS, "Vector type too large, exceeds 128 bit limit")
                   : elements(v, operand, 0, v->instr->type, false, false);
    if (operand->kind == PTX_OPERAND_VECTOR && v->instr->operands[1].kind == PTX_OPERAND_VECTOR)
        return fail(v, OPERANDS,
                    "Illegal vector-vector operands for vector-scalar or scalar-vector mov instruction");
    return operand->kind == PTX_OPERAND_VECTOR ? pack(v, operand, false)
                                               : destination(v, operand, v->instr->type, false);
}

/* Registers that hold a piece of a matrix; check_matrix.c knows how many. Those of products may be of other
 * types than .b32, and what is stored a constant. */
static stage fragment(verdict *v, const ptx_operand *operand, size_t argument)
{
    const ptx_op op = v->instr->op;
    const bool is_product = op == PTX_OP_MMA || (op >= PTX_OP_WMMA_LOAD_A && op <= PTX_OP_WMMA_MMA) ||
                            op == PTX_OP_WGMMA_MMA_ASYNC;
    if (is_product && op != PTX_OP_WGMMA_MMA_ASYNC && operand->kind == PTX_OPERAND_REGISTER)
        return RIGHT;
    if (operand->kind != PTX_OPERAND_VECTOR || operand->is_pair)
        return mismatch(v);
    const ptx_operand_kind other = argument ? PTX_OPERAND_IMMEDIATE : PTX_OPERAND_SINK;
    size_t n_registers = 0;
    for (size_t i = 0; i < operand->n_elements; i++) {
        const ptx_operand *element = &operand->elements[i];
        if (is_product && op != PTX_OP_WGMMA_MMA_ASYNC && element->kind == other)
            continue;
        if (op == PTX_OP_TCGEN05_ST && element->kind == PTX_OPERAND_IMMEDIATE && !element->is_float)
            continue;
        if (element->kind != PTX_OPERAND_REGISTER || element->reg->type == PTX_PRED ||
            (!is_product && !kr__ptx_agrees(element->reg->type, PTX_B32)))
            return mismatch(v);
        n_registers++;
    }
    if (is_product && op != PTX_OP_WGMMA_MMA_ASYNC)
        return RIGHT;
    if (!n_registers)
        return mismatch(v);
    return is_product ? RIGHT : alike(v, operand);
}

/* A register of so many bits, not a constant. */
static stage register_of(verdict *v, const ptx_operand *operand, ptx_type type)
{
    return operand->kind == PTX_OPERAND_REGISTER ? source(v, operand, 0, type, false) : mismatch(v);
}

/* A matrix's metadata, its scales: a register, in braces or not. */
static stage maybe_braced(verdict *v, const ptx_operand *operand)
{
    const bool is_braced = operand->kind == PTX_OPERAND_VECTOR && operand->n_elements == 1;
    return register_of(v, is_braced ? operand->elements : operand, PTX_B32);
}

/* An address in tensor memory. */
static stage tensor_memory(verdict *v, const ptx_operand *operand, bool is_bits)
{
    if (operand->kind != PTX_OPERAND_ADDRESS || !operand->reg || operand->n_elements)
        return mismatch(v);
    const ptx_type type = operand->reg->type;
    return (is_bits ? type == PTX_B32 : kr__ptx_agrees(type, PTX_U32)) ? RIGHT : mismatch(v);
}

static stage operand(verdict *v, char letter, size_t i)
{
    const ptx_instr *instr = v->instr;
    const ptx_operand *at = &instr->operands[i];
    switch (letter) {
    case 'D':
        return instr->vector > 1 ? datum(v, at, i, datum_type(instr), false, false)
                                 : destination(v, at, datum_type(instr), false);
    case 'd':
        return datum(v, at, i, instr->type, true, false);
    case 'W':
        return destination(v, at, wide(instr->type), false);
    case 'R':
        return destination(v, at, PTX_U32, false);
    case 'P':
        return destination(v, at, PTX_PRED, false);
    case 'Q':
        return predicates(v, at, PTX_PRED);
    case 'S':
        return predicates(v, at, PTX_B32);
    case 'I':
        return predicates(v, at, PTX_U32);
    case 'c':
        return destination(v, at, PTX_U64, false);
    case '1':
        return instr->vector > 1 ? datum(v, at, i, datum_type(instr), false, true)
                                 : source(v, at, i, datum_type(instr), false);
    case '2':
        return source(v, at, i, instr->type2, false);
    case 'v':
        return datum(v, at, i, instr->type, true, true);
    case 'w':
        return source(v, at, i, instr->type2, true);
    case 'y':
    case 'b':
        return loose_datum(v, at, i, letter == 'b', true);
    case 'o':
        return loose_datum(v, at, i, true, false);
    case 'x':
        return source(v, at, i, wide(instr->type), false);
    case 'r':
        return source(v, at, i, PTX_U32, false);
    case 'q':
        return source(v, at, i, PTX_U64, false);
    case 'n': {
        ptx_operand plain = *at;
        plain.negated = false;
        return source(v, &plain, i, PTX_U32, false);
    }
    case 'p':
        return source(v, at, i, PTX_PRED, false);
    case 'i':
        return at->kind == PTX_OPERAND_IMMEDIATE && !at->is_float ? RIGHT : mismatch(v);
    case 'f':
        return source(v, at, i, PTX_F32, false);
    case '@':
        return address(v, at, instr->space);
    case '&':
        return address(v, at, instr->space2);
    case '#':
        return mbarrier(v, at);
    case 'T':
        return tensor(v, at, i);
    case 'C':
        return colours(v, at);
    case 'X':
        return texture(v, at, i);
    case 'Y':
        return surface(v, at, i);
    case 'E':
        return texture_offset(v, at, i);
    case 'G':
        return gradient(v, at, i);
    case 'F':
        return instr->type2 == PTX_F32 && v->spelling->values[PTX_KIND_GEOMETRY] != PTX_GEOMETRY_3D
                   ? source(v, at, i, PTX_F32, false)
                   : mismatch(v);
    case 'Z':
        return query_handle(v, at, i, PTX_TEXREF);
    case 'z':
        return sampler_query(v, at, i);
    case 's':
        return query_handle(v, at, i, PTX_SURFREF);
    case 'O':
        return im2col_offsets(v, at, i);
    case 'H':
        return source(v, at, i, PTX_U64, false);
    case 'U':
        return source(v, at, i, PTX_B16, false);
    case 'J':
        return list(v, at, i, 4, instr->type2);
    case 'k':
        return at->kind == PTX_OPERAND_SINK ? RIGHT : destination(v, at, PTX_U64, false);
    case '_':
        return at->kind == PTX_OPERAND_SINK
                   ? RIGHT
                   : fail(v, OPERANDS, "Sink '_' is expected as a destination operand for instruction '%s'",
                          v->title);
    case 'A':
        return address_value(v, at);
    case 'l':
        return at->kind == PTX_OPERAND_LABEL
                   ? RIGHT
                   : fail(v, OPERANDS, "Label expected for argument %zu of instruction '%s'", i, v->title);
    case 'M':
        return move_destination(v, at);
    case 'm':
        return move_source(v, at);
    case 'V':
        return fragment(v, at, i);
    case 'B':
        return destination(v, at, PTX_B32, false);
    case 'e':
        return register_of(v, at, PTX_B32);
    case 'g':
        return register_of(v, at, PTX_U16);
    case 'j':
        return maybe_braced(v, at);
    case 'u':
        return list(v, at, i, 2, PTX_U16);
    case 'N':
        return source(v, at, i, PTX_U64, false);
    case 'L':
        return list(v, at, i, v->spelling->values[PTX_KIND_CTA_GROUP] == 2 ? 8 : 4, PTX_B32);
    case 't':
        return tensor_memory(v, at, false);
    case 'h':
        return tensor_memory(v, at, true);
    case 'a':
        return at->kind == PTX_OPERAND_ADDRESS ? tensor_memory(v, at, true)
                                               : source(v, at, i, PTX_U64, false);
    default:
        return mismatch(v);
    }
}

/* Is there an operand of this letter? Those that come with a modifier are there where it is written. */
static bool is_due(const verdict *v, char letter)
{
    const ptx_set written = v->spelling->modifiers;
    switch (letter) {
    case 'H':
        return written & K(CACHE_HINT);
    case 'U':
        return written & (PTX_MULTICAST | PTX_CP_MASK);
    case 'O':
        return is_im2col(v->spelling->values[PTX_KIND_MODE]);
    default:
        return true;
    }
}

static stage operands(verdict *v)
{
    size_t i = 0;
    bool optional = false;
    v->narrow = false;
    for (const char *letter = v->form->operands; *letter; letter++) {
        if (*letter == '*')
            return RIGHT;
        if (*letter == '?' || *letter == '~') {
            *(*letter == '?' ? &optional : &v->narrow) = true;
            continue;
        }
        if (!is_due(v, *letter))
            continue;
        if (i == v->instr->n_operands)
            return optional ? RIGHT : fail(v, COUNT, "Arguments mismatch for instruction '%s'", v->title);
        const stage got = operand(v, *letter, i++);
        if (got != RIGHT)
            return got;
    }
    return i == v->instr->n_operands ? RIGHT
                                     : fail(v, COUNT, "Arguments mismatch for instruction '%s'", v->title);
}

/* ---- modifiers ---- */

static bool types_agree(const ptx_form *form, const ptx_instr *instr)
{
    const ptx_type types[] = {instr->type, instr->type2, instr->type3, instr->type4, instr->type5};
    for (size_t i = 0; i < KR_COUNT(types); i++)
        if (form->types[i] ? !is(form->types[i], types[i]) : types[i] != PTX_NONE)
            return false;
    return true;
}

static bool round_allowed(ptx_set allowed, ptx_round round)
{
    switch (round) {
    case PTX_RN:
        return allowed & (K(ROUND) | K(RN));
    case PTX_RZ:
        return allowed & (K(ROUND) | K(RZ));
    case PTX_RM:
    case PTX_RP:
        return allowed & K(ROUND);
    case PTX_RNA:
        return allowed & K(RNA);
    case PTX_RS:
        return allowed & K(RS);
    default:
        return true;
    }
}

/* These make another instruction of it: with a wrong one the assembler finds none of such types. */
static const ptx_set names =
    PTX_HI | PTX_LO | PTX_WIDE | PTX_LEFT | PTX_RIGHT | PTX_TO | PTX_ARRIVE | PTX_RED;

static const struct {
    ptx_set any;
    const char *text; /* %s: the instruction */
} missing[] = {
    {PTX_APPROX | K(ROUND), "Rounding modifier or '.approx' modifier required for instruction '%s'"},
    {K(ROUND) | K(ROUND_INT), "Rounding modifier required for instruction '%s'"},
    {PTX_APPROX, ".approx modifier required for instruction '%s'"},
    {PTX_FTZ, "'.ftz' modifier required for instruction '%s'"},
    {PTX_SATFINITE, "'.satfinite' modifier required for instruction '%s'"},
    {K(COMPARE), "Comparison modifier required for instruction '%s'"},
    {K(NOFTZ), "'.noftz' modifier required for instruction '%s'"},
    {K(ATOMIC), "Reduction operation is required for instruction '%s'"},
    {K(LAYOUT), "layout modifier required for instruction '%s'"},
    {K(LAYOUTS), "'.blayout' modifier required for instruction '%s'"},
    {PTX_SYNC, ".sync modifier required for instruction '%s'"},
    {PTX_ALIGNED, ".aligned modifier required for instruction '%s'"},
    {K(SHUFFLE), "Shuffle modifier required for instruction '%s'"},
    {PTX_WRAP | PTX_CLAMP, "Clamp modifier required for instruction '%s'"},
    {PTX_HI | PTX_LO, "'.hi/.lo' modifier required for instruction '%s'"},
    {PTX_ALL | PTX_ANY, ".mode modifier required for instruction '%s'"},
    {K(SPACE), "State space modifier required for instruction '%s'"},
    {K(GL), "Membar level required for instruction '%s'"},
    {K(SCOPE), "Scope modifier required for instruction '%s'"},
    {K(LEVEL), "Cache level modifier required for instruction '%s'"},
    {K(COPY), "'.ca or .cg' modifier required for instruction '%s'"},
};

static stage lacks(verdict *v, ptx_set wanted)
{
    const ptx_op op = v->instr->op;
    if ((wanted & names) && op != PTX_OP_DP2A)
        return op == PTX_OP_MUL24 || op == PTX_OP_MAD24 || op == PTX_OP_SHF
                   ? fail(v, MISSING, "Not a name of any known instruction: '%s'", v->title)
                   : fail(v, TYPES, "Unexpected instruction types specified for '%s'", v->title);
    if (op == PTX_OP_BAR && (wanted & PTX_SYNC))
        return fail(v, MISSING, "Barrier modifier required for instruction '%s'", v->title);
    for (size_t i = 0; v->wanted && i < KR_COUNT(missing); i++) {
        const ptx_set any = missing[i].any;
        if (!(wanted & any) || ((any & PTX_APPROX) && (wanted & any) != any))
            continue;
        const char *hole = strstr(missing[i].text, "%s");
        kr__format(v->message, sizeof v->message, "%.*s%s%s", (int)(hole - missing[i].text), missing[i].text,
                   v->title, hole + 2);
        break;
    }
    return MISSING;
}

static bool may_be(const verdict *v, const ptx_only *only)
{
    return !(v->spelling->modifiers & (ptx_set)1 << only->kind) ||
           (only->values >> v->spelling->values[only->kind] & 1);
}

/* The kind's modifier is none of those that the form has. */
static stage only(verdict *v, uint8_t kind)
{
    if (kind == PTX_KIND_SPACE || kind == PTX_KIND_SPACES)
        return fail(v, MODIFIERS, "State space incorrect for instruction '%s'", v->title);
    return fail(v, MODIFIERS, "Illegal modifier '.%s' for instruction '%s'",
                kr__ptx_value_text(kind, v->spelling->values[kind]), v->title);
}

static stage modifiers(verdict *v, ptx_set written)
{
    const ptx_form *form = v->form;
    ptx_set allowed = form->allowed;
    if (!round_allowed(allowed, v->instr->round))
        return fail(v, MODIFIERS, "Illegal rounding modifier for instruction '%s'", v->title);
    if (allowed & (K(RN) | K(RZ) | K(RNA) | K(RS)))
        allowed |= K(ROUND);
    const ptx_set excess = written & ~allowed;
    if (excess & (K(ROUND) | K(ROUND_INT)))
        return fail(v, MODIFIERS, "Illegal rounding modifier for instruction '%s'", v->title);
    if (excess & names)
        return fail(v, TYPES, "Unexpected instruction types specified for '%s'", v->title);
    if ((excess & PTX_SAT) && is(unsigned_types, v->instr->type))
        return fail(v, MODIFIERS, "Modifier '.sat' does not apply to '.%s' type",
                    kr__ptx_type_name(v->instr->type));
    if (excess)
        return fail(v, MODIFIERS, "Illegal modifier '.%s' for instruction '%s'",
                    kr__ptx_modifier_text(excess), v->title);
    for (size_t i = 0; i < KR_COUNT(form->only) && form->only[i].kind; i++)
        if (!may_be(v, &form->only[i]))
            return only(v, form->only[i].kind);
    const ptx_set lacking = form->required & ~written;
    if (lacking)
        return lacks(v, lacking);
    return form->one_of && !(form->one_of & written) ? lacks(v, form->one_of) : RIGHT;
}

static stage version(verdict *v)
{
    const ptx_module *module = v->parser->module;
    const ptx_form *form = v->form;
    if (form->sm >= PTX_FIRST_SET && !(kr__ptx_targets(form->sm) & v->parser->target))
        return fail(v, VERSION, "Instruction '%s' not supported on .target '%s'", v->title, module->target);
    if (module->isa < form->isa)
        return fail(v, VERSION, "Feature '%s' requires PTX ISA .version %d.%d or later", v->title,
                    form->isa / 10, form->isa % 10);
    if (form->sm < PTX_FIRST_SET && module->sm < form->sm)
        return fail(v, VERSION, "Feature '%s' requires .target sm_%d or higher", v->title, form->sm);
    return RIGHT;
}

static bool is_unsigned_where_signed(const ptx_instr *instr)
{
    return (instr->op == PTX_OP_NEG || instr->op == PTX_OP_ABS)
               ? is(unsigned_types, instr->type)
               : instr->op == PTX_OP_SLCT && is(unsigned_types, instr->type2);
}

static stage judge(verdict *v, ptx_set written)
{
    if (!types_agree(v->form, v->instr))
        return is_unsigned_where_signed(v->instr)
                   ? fail(v, TYPES, "Instruction '%s' applies only to signed numeric types", v->title)
                   : fail(v, TYPES, "Unexpected instruction types specified for '%s'", v->title);
    stage got = modifiers(v, written);
    if (got == RIGHT)
        got = operands(v);
    return got == RIGHT ? version(v) : got;
}

/* ---- rules of single instructions ---- */

static bool compare_agrees(ptx_compare compare, ptx_type type)
{
    if (compare == PTX_EQ || compare == PTX_NE)
        return true;
    if (is(bit_types, type))
        return false;
    if (compare <= PTX_GE)
        return true;
    return compare <= PTX_CMP_HS ? is(unsigned_types, type) : !is_integer(type);
}

static const struct atomic_rule {
    ptx_sub sub;
    uint64_t types;
    const char *name, *text;
} atomic_rules[] = {
    {PTX_SUB_ADD,
     SET(PTX_U32) | SET(PTX_S32) | SET(PTX_U64) | SET(PTX_F64) | SET(PTX_F16) | SET(PTX_F16X2) |
         SET(PTX_F32) | SET(PTX_BF16) | SET(PTX_BF16X2),
     "add", ".u32 or .s32 or .u64 or .f64 or f16 or f16x2 or .f32 or .bf16 or .bf16x2"},
    {PTX_SUB_MIN,
     SET(PTX_U32) | SET(PTX_S32) | SET(PTX_U64) | SET(PTX_S64) | SET(PTX_F16) | SET(PTX_F16X2) |
         SET(PTX_BF16) | SET(PTX_BF16X2),
     "min", ".u32 or .s32 or .u64 or .s64 or .f16 or .f16x2 or .bf16 or .bf16x2"},
    {PTX_SUB_MAX,
     SET(PTX_U32) | SET(PTX_S32) | SET(PTX_U64) | SET(PTX_S64) | SET(PTX_F16) | SET(PTX_F16X2) |
         SET(PTX_BF16) | SET(PTX_BF16X2),
     "max", ".u32 or .s32 or .u64 or .s64 or .f16 or .f16x2 or .bf16 or .bf16x2"},
    {PTX_SUB_INC, SET(PTX_U32), "inc", ".u32"},
    {PTX_SUB_DEC, SET(PTX_U32), "dec", ".u32"},
    {PTX_SUB_AND, SET(PTX_B32) | SET(PTX_B64), "and", ".b32 or .b64"},
    {PTX_SUB_OR, SET(PTX_B32) | SET(PTX_B64), "or", ".b32 or .b64"},
    {PTX_SUB_XOR, SET(PTX_B32) | SET(PTX_B64), "xor", ".b32 or .b64"},
    {PTX_SUB_EXCH, SET(PTX_B32) | SET(PTX_B64) | SET(PTX_B128), "exch", ".b32 or .b64 or .b128"},
};

static const char *atomic_name(ptx_sub sub)
{
    for (size_t i = 0; i < KR_COUNT(atomic_rules); i++)
        if (atomic_rules[i].sub == sub)
            return atomic_rules[i].name;
    return "";
}

/* 128 bits at once came to the whole system later. */
static bool has_scope(ptx_parser *p, const ptx_instr *instr)
{
    return instr->type != PTX_B128 || instr->scope != PTX_SYS ||
           kr__ptx_has(p, instr->line, ".b128 with .sys", 84, 70);
}

/* For what many instructions ask: what the module is known to need is there. */
static bool has(ptx_parser *p, const ptx_instr *instr, const char *feature, int isa, int sm)
{
    const ptx_needs *needs = &p->module->needs;
    return (needs->isa >= isa && needs->sm >= sm) || kr__ptx_has(p, instr->line, feature, isa, sm);
}

static bool has_generic(ptx_parser *p, const ptx_instr *instr)
{
    return instr->space != PTX_SPACE_GENERIC || has(p, instr, "generic addressing", 20, 20);
}

static void check_atomic(ptx_parser *p, const ptx_instr *instr, const char *title)
{
    if (instr->scope && !kr__ptx_has(p, instr->line, "scopes on atomic operations", 50, 60))
        return;
    if (!has_scope(p, instr) || !has_generic(p, instr))
        return;
    if (instr->type == PTX_F64 && !kr__ptx_has(p, instr->line, "atom.add.f64", 50, 60))
        return;
    for (size_t i = 0; i < KR_COUNT(atomic_rules); i++) {
        const struct atomic_rule *rule = &atomic_rules[i];
        if (instr->sub != rule->sub)
            continue;
        if (instr->op == PTX_OP_RED && rule->sub == PTX_SUB_EXCH)
            kr__ptx_error(p, instr->line, "Illegal operation '.exch' for instruction 'red'");
        else if (!is(rule->types, instr->type))
            kr__ptx_error(p, instr->line, "Operation .%s requires %s type for instruction '%s'", rule->name,
                          rule->text, title);
        return;
    }
}

/* Of 256 bits: .v8 of 32, .v4 of 64. */
static bool is_wide(const ptx_instr *instr)
{
    return instr->vector * kr__ptx_type_bytes(instr->type) == 32 && instr->vector > 2;
}

static void check_width(ptx_parser *p, const ptx_instr *instr)
{
    const char *const feature = "256 bit wide load/store";
    if (!has_scope(p, instr))
        return;
    if (instr->vector * kr__ptx_type_bytes(instr->type) <= 16)
        return;
    if (!is_wide(instr))
        kr__ptx_error(p, instr->line, "Vector type too large, exceeds 128 bit limit");
    else if (instr->order == PTX_MMIO)
        kr__ptx_error(p, instr->line, "Modifier '.mmio' cannot be combined with modifier '.v%u'",
                      instr->vector);
    else if (kr__ptx_has(p, instr->line, feature, 88, 100) && instr->space != PTX_SPACE_GLOBAL &&
             instr->space != PTX_SPACE_GENERIC)
        kr__ptx_error(p, instr->line, "global state space expected for feature '%s'", feature);
}

/* What a load or store says about the caches: of global memory alone. */
static void check_caching(ptx_parser *p, const ptx_spelling *spelling, const ptx_instr *instr,
                          const char *title)
{
    const ptx_set hints = spelling->modifiers & (K(L1_HINT) | K(HINT) | K(AHEAD) | K(CACHE_HINT));
    const ptx_set others = spelling->modifiers & (K(CACHE) | K(CACHE_LOAD) | K(CACHE_STORE));
    const bool is_global = instr->space == PTX_SPACE_GLOBAL || instr->space == PTX_SPACE_GENERIC;
    if (hints && !is_global)
        kr__ptx_error(p, instr->line, "Modifier '.%s' cannot be applied to '.%s' space for instruction '%s'",
                      kr__ptx_modifier_text(hints),
                      kr__ptx_value_text(PTX_KIND_SPACE, spelling->values[PTX_KIND_SPACE]), title);
    else if (((hints & K(L1_HINT)) && others) ||
             ((hints & (K(L1_HINT) | K(CACHE_HINT))) && instr->order == PTX_VOLATILE) ||
             (hints && instr->order == PTX_MMIO))
        kr__ptx_error(p, instr->line, "Modifier '.%s' cannot be combined with modifier '.%s'",
                      kr__ptx_modifier_text(hints),
                      others ? kr__ptx_modifier_text(others) : kr__ptx_order_name(instr->order));
    else if ((hints & K(HINT)) && (!is_wide(instr) || spelling->values[PTX_KIND_HINT] == PTX_EVICT_UNCHANGED))
        kr__ptx_error(p, instr->line, "Instruction '%s' requires '.v8.b32/.v4.b64' type with '.%s' modifier.",
                      title, kr__ptx_value_text(PTX_KIND_HINT, spelling->values[PTX_KIND_HINT]));
}

/* false: reported */
static bool check_mmio(ptx_parser *p, const ptx_spelling *spelling, const ptx_instr *instr, const char *title)
{
    if (spelling->values[PTX_KIND_ORDER] != PTX_RELAXED)
        kr__ptx_error(p, instr->line, "Modifier '.mmio' requires modifier '.relaxed' for instruction '%s'",
                      title);
    else if (instr->scope != PTX_SYS)
        kr__ptx_error(p, instr->line, "Modifier '.mmio' cannot be combined with modifier '.%s'",
                      kr__ptx_value_text(PTX_KIND_SCOPE, (uint8_t)instr->scope));
    else if (instr->space != PTX_SPACE_GLOBAL && instr->space != PTX_SPACE_GENERIC)
        kr__ptx_error(p, instr->line, "Modifier '.mmio' cannot be applied to '.%s' space",
                      kr__ptx_value_text(PTX_KIND_SPACE, (uint8_t)instr->space));
    else
        return true;
    return false;
}

static void check_memory(ptx_parser *p, const ptx_spelling *spelling, const ptx_instr *instr)
{
    const char *title = kr__ptx_opcodes[instr->op].name;
    const bool is_load = instr->op != PTX_OP_ST;
    const bool ordered = instr->order >= PTX_RELAXED;
    if (instr->order > PTX_RELAXED && instr->order != PTX_MMIO &&
        instr->order != (is_load ? PTX_ACQUIRE : PTX_RELEASE)) {
        kr__ptx_error(p, instr->line, "Illegal modifier '.%s' for instruction '%s'",
                      kr__ptx_order_name(instr->order), title);
        return;
    }
    if (ordered && !instr->scope) {
        kr__ptx_error(p, instr->line, "Modifier '.%s' requires scope with '%s' instruction",
                      kr__ptx_order_name(instr->order), title);
        return;
    }
    if (instr->scope && !ordered) {
        static const char *const scopes[] = {"", "cta", "cluster", "gpu", "sys"};
        kr__ptx_error(p, instr->line, "Modifier '.%s' requires memory order with '%s' instruction",
                      scopes[instr->scope], title);
        return;
    }
    static const char *const spaces[] = {
        [PTX_SPACE_CONST] = "const", [PTX_SPACE_LOCAL] = "local", [PTX_SPACE_PARAM] = "param"};
    if (instr->order && instr->order != PTX_WEAK && instr->space < KR_COUNT(spaces) && spaces[instr->space]) {
        kr__ptx_error(p, instr->line, "Modifier '.%s' cannot be applied to '.%s' space",
                      kr__ptx_order_name(instr->order), spaces[instr->space]);
        return;
    }
    const ptx_set cached = spelling->modifiers & (K(CACHE) | K(CACHE_LOAD) | K(CACHE_STORE));
    if (instr->order && instr->order != PTX_WEAK && cached) {
        kr__ptx_error(p, instr->line, "Modifier '.%s' cannot be combined with modifier '.%s'",
                      kr__ptx_order_name(instr->order), kr__ptx_modifier_text(cached));
        return;
    }
    if (instr->order == PTX_MMIO && !check_mmio(p, spelling, instr, title))
        return;
    if ((instr->flags & PTX_NC) && instr->order) {
        kr__ptx_error(p, instr->line, "Modifier '.%s' cannot be combined with modifier '.nc'",
                      kr__ptx_order_name(instr->order));
        return;
    }
    if ((instr->flags & PTX_NC) && (cached & K(CACHE_LOAD)) &&
        spelling->values[PTX_KIND_CACHE_LOAD] != PTX_CACHE_CA) {
        kr__ptx_error(p, instr->line, "Illegal cache operation for instruction 'ld.nc'");
        return;
    }
    if ((instr->flags & PTX_NC) && instr->space != PTX_SPACE_GLOBAL) {
        kr__ptx_error(p, instr->line, "Modifier '.nc' requires .global space");
        return;
    }
    if (!is_load && instr->space == PTX_SPACE_CONST) {
        kr__ptx_error(p, instr->line, "State space incorrect for instruction '%s'", title);
        return;
    }
    const ptx_operand *to = &instr->operands[0];
    if (!is_load && to->kind == PTX_OPERAND_ADDRESS && to->variable && to->variable->is_parameter &&
        to->variable->space == PTX_SPACE_PARAM && p->function->is_entry) {
        kr__ptx_error(p, instr->line, "Illegal to write to function input parameter '%s'",
                      to->variable->name);
        return;
    }
    if (!has_generic(p, instr) || ((instr->flags & PTX_NC) && !has(p, instr, ".nc", 31, 32)))
        return;
    check_width(p, instr);
    check_caching(p, spelling, instr, title);
}

static void check_barrier(ptx_parser *p, const ptx_instr *instr, const char *title)
{
    const size_t at = instr->flags & PTX_RED ? 1 : 0;
    if (instr->flags & PTX_WARP || instr->n_operands <= at)
        return;
    const ptx_operand *barrier = &instr->operands[at], *threads = &instr->operands[at + 1];
    if (instr->flags & PTX_ARRIVE && threads->kind == PTX_OPERAND_IMMEDIATE && threads->bits == 0)
        kr__ptx_error(p, instr->line, "Instruction '%s.arrive' requires a non-zero thread count argument",
                      title);
    if (barrier->kind == PTX_OPERAND_IMMEDIATE && (uint64_t)barrier->bits > 15)
        kr__ptx_error(p, instr->line, "Barrier number '%llu' out of range, expected to be in range [0..15]",
                      (unsigned long long)barrier->bits);
    if (instr->n_operands > at + 1 && threads->kind == PTX_OPERAND_IMMEDIATE && threads->bits % 32)
        kr__ptx_error(p, instr->line,
                      "Number of threads participating in barrier must be in multiple of warp size");
    if (!(instr->flags & PTX_RED))
        return;
    if (instr->type == PTX_PRED && instr->boolean == PTX_POPC)
        kr__ptx_error(p, instr->line, "Operation requires .u32 type");
    else if (instr->type == PTX_U32 && instr->boolean != PTX_POPC)
        kr__ptx_error(p, instr->line, "Operation requires .pred type");
    else if (instr->boolean == PTX_XOR)
        kr__ptx_error(p, instr->line, "Illegal reduction operation for instruction 'bar.red.pred'");
}

static void check_copy(ptx_parser *p, const ptx_spelling *spelling, const ptx_instr *instr)
{
    const int64_t n = instr->operands[2].bits;
    if (instr->sub == PTX_SUB_CG ? n != 16 : n != 4 && n != 8 && n != 16)
        kr__ptx_error(p, instr->line,
                      "Argument 2 of instruction 'cp.async': unexpected value '%lld', expected to be %s",
                      (long long)n, instr->sub == PTX_SUB_CG ? "16" : "4 or 8 or 16");
    const ptx_operand *source_size = &instr->operands[3];
    const size_t n_without_policy = instr->n_operands - (spelling->modifiers & K(CACHE_HINT) ? 1 : 0);
    if (n_without_policy > 3 && source_size->kind == PTX_OPERAND_IMMEDIATE &&
        (source_size->bits < 0 || source_size->bits > n))
        kr__ptx_error(p, instr->line,
                      "Argument 3 of instruction 'cp.async': value '%lld' out of range, expected to be in "
                      "range [0..%lld]",
                      (long long)source_size->bits, (long long)n);
}

/* Constants that are not any: least, most, and what they are multiples of. */
typedef struct constant_rule {
    uint8_t argument;
    int64_t least, most;
    uint32_t step; /* 0: the end */
} constant_rule;

#define RULES(...) ((const constant_rule[]){__VA_ARGS__, {0}})
static const constant_rule *const constant_rules[PTX_OP_COUNT] = {
    [PTX_OP_BFE] = RULES({2, 0, 255, 1}, {3, 0, 255, 1}),
    [PTX_OP_BFI] = RULES({3, 0, 255, 1}, {4, 0, 255, 1}),
    [PTX_OP_WGMMA_WAIT_GROUP] = RULES({0, 0, INT64_MAX, 1}),
    [PTX_OP_CP_ASYNC_BULK] = RULES({2, 0, UINT32_MAX, 16}),
    [PTX_OP_CP_REDUCE_ASYNC_BULK] = RULES({2, 0, UINT32_MAX, 16}),
    [PTX_OP_CP_ASYNC_BULK_PREFETCH] = RULES({1, 0, UINT32_MAX, 16}),
    [PTX_OP_ST_BULK] = RULES({1, 0, INT64_MAX, 8}, {2, 0, 0, 1}),
    [PTX_OP_TCGEN05_DEALLOC] = RULES({1, INT64_MIN, INT64_MAX, 32}),
    [PTX_OP_SETMAXNREG_INC] = RULES({0, 24, 256, 8}),
    [PTX_OP_SETMAXNREG_DEC] = RULES({0, 24, 256, 8}),
    [PTX_OP_PMEVENT] = RULES({0, 0, 15, 1}),
    [PTX_OP_PMEVENT_MASK] = RULES({0, 0, 0xffff, 1}),
    [PTX_OP_FENCE] = RULES({1, 128, 128, 1}),
    [PTX_OP_APPLYPRIORITY] = RULES({1, 128, 128, 1}),
    [PTX_OP_DISCARD] = RULES({1, 128, 128, 1}),
    [PTX_OP_TENSORMAP_CP_FENCEPROXY] = RULES({2, 128, 128, 1}),
};

static void check_constants(ptx_parser *p, const ptx_instr *instr, const char *title)
{
    for (const constant_rule *rule = constant_rules[instr->op]; rule && rule->step; rule++) {
        const ptx_operand *at = &instr->operands[rule->argument];
        if (instr->n_operands <= rule->argument || at->kind != PTX_OPERAND_IMMEDIATE)
            continue;
        const long long value = at->bits, least = rule->least, most = rule->most;
        if (value % rule->step)
            kr__ptx_error(
                p, instr->line,
                "Argument %u of instruction '%s': unexpected value '%lld', expected to be multiple of %u",
                rule->argument, title, value, rule->step);
        else if (least == most && value != least)
            kr__ptx_error(p, instr->line,
                          "Argument %u of instruction '%s': unexpected value '%lld', expected to be %lld",
                          rule->argument, title, value, least);
        else if (value < least || value > most)
            kr__ptx_error(p, instr->line,
                          "Argument %u of instruction '%s': value '%lld' out of range, expected to be in "
                          "range [%lld..%lld]",
                          rule->argument, title, value, least, most);
    }
}

/* tensormap.replace: which of five dimensions, which of a field's values */
static void check_field(ptx_parser *p, const ptx_spelling *spelling, const ptx_instr *instr)
{
    static const uint8_t most[] = {
        [PTX_FIELD_BOX_DIM] = 4,        [PTX_FIELD_GLOBAL_DIM] = 4,        [PTX_FIELD_GLOBAL_STRIDE] = 4,
        [PTX_FIELD_ELEMENT_STRIDE] = 4, [PTX_FIELD_ELEMTYPE] = 15,         [PTX_FIELD_INTERLEAVE_LAYOUT] = 2,
        [PTX_FIELD_SWIZZLE_MODE] = 4,   [PTX_FIELD_SWIZZLE_ATOMICITY] = 3, [PTX_FIELD_FILL_MODE] = 1};
    const uint8_t field = spelling->values[PTX_KIND_FIELD];
    const ptx_operand *value = &instr->operands[1];
    if (most[field] && (value->bits < 0 || value->bits > most[field]))
        kr__ptx_error(
            p, instr->line,
            "Argument 1 of instruction 'tensormap.replace': value '%lld' expected to be in range [0..%u] "
            "when .%s modifier is used.",
            (long long)value->bits, most[field], kr__ptx_value_text(PTX_KIND_FIELD, field));
    else if (field == PTX_FIELD_ELEMTYPE && value->bits > 12)
        kr__ptx_has(p, instr->line, "tensormap.replace.elemtype of fewer than 8 bits", 87, PTX_OWN100);
    else if (field == PTX_FIELD_SWIZZLE_MODE && value->bits > 3)
        kr__ptx_has(p, instr->line, "tensormap.replace.swizzle_mode of 96 bytes", 88, PTX_SM103A);
}

static void check_policy(ptx_parser *p, const ptx_instr *instr, const char *title)
{
    const ptx_operand *operands = instr->operands;
    const bool is_range = instr->op == PTX_OP_CREATEPOLICY_RANGE;
    if (instr->priority[1] != PTX_EVICT_UNCHANGED && instr->priority[1] != PTX_EVICT_FIRST)
        kr__ptx_error(p, instr->line, "Unsupported modifier '.%s' as secondary_priority for instruction '%s'",
                      kr__ptx_value_text(PTX_KIND_HINT, instr->priority[1]), title);
    if (is_range && operands[2].kind == PTX_OPERAND_IMMEDIATE && operands[3].kind == PTX_OPERAND_IMMEDIATE &&
        operands[2].bits > operands[3].bits)
        kr__ptx_error(
            p, instr->line,
            "Argument 3 of instruction '%s': value '%lld' must be less than or equal to the value '%lld' of "
            "argument 4",
            title, (long long)operands[2].bits, (long long)operands[3].bits);
    if (!is_range && instr->n_operands > 1 && operands[1].kind == PTX_OPERAND_IMMEDIATE) {
        const ptx_constant constant = {true, operands[1].float_bytes, operands[1].bits};
        const uint32_t bits = (uint32_t)kr__ptx_float_as(&constant, PTX_F32), one = 0x3f800000;
        if (bits == 0 || bits > one) /* negative ones are large */
            kr__ptx_error(p, instr->line,
                          "Argument 2 of instruction '%s' out of range, expected to be in range (0.0 .. 1.0]",
                          title);
    }
}

/* What textures have had only for a while: all that follows the coordinates and their gradients. */
static void check_texture(ptx_parser *p, const ptx_spelling *spelling, const ptx_instr *instr)
{
    const ptx_geometry geometry = spelling->values[PTX_KIND_GEOMETRY];
    const bool is_cube = geometry == PTX_GEOMETRY_CUBE || geometry == PTX_GEOMETRY_ACUBE;
    const size_t usual = instr->flags & PTX_GRAD ? 4 : instr->flags & PTX_LEVEL ? 3 : 2;
    if (instr->operands[0].is_pair)
        kr__ptx_has(p, instr->line, "texture fetch with residency information", 71, 60);
    if (instr->n_operands > usual)
        kr__ptx_has(p, instr->line, "texture fetch with offset or depth comparison", 43, 30);
    if (instr->operands[1].n_elements > 1 && !p->module->texmode_independent)
        kr__ptx_has(p, instr->line, "sampler beside a texture that has its own", 43, 30);
    if (instr->op == PTX_OP_TLD4 && geometry != PTX_GEOMETRY_2D)
        kr__ptx_has(p, instr->line, "tld4 with .a2d, .cube or .acube", 43, 30);
    if (is_cube && (instr->flags & PTX_GRAD))
        kr__ptx_has(p, instr->line, "tex.grad with cube geometry", 43, 20);
}

/* What tensor copies do only of some dimensions: rows of two, im2col of three and more. */
static void check_tensor(ptx_parser *p, const ptx_spelling *spelling, const ptx_instr *instr)
{
    const uint8_t mode = spelling->values[PTX_KIND_MODE], n = spelling->values[PTX_KIND_GEOMETRY];
    const bool is_rows = mode == PTX_MODE_GATHER4 || mode == PTX_MODE_SCATTER4;
    if (is_rows ? n != 2 : mode != PTX_MODE_TILE && n < 3)
        kr__ptx_error(p, instr->line, "Modifier '.%s' cannot be combined with modifier '.%s'",
                      kr__ptx_value_text(PTX_KIND_GEOMETRY, n), kr__ptx_value_text(PTX_KIND_MODE, mode));
}

/* An order and a scope are written together. false: reported. */
static bool check_order(ptx_parser *p, const ptx_instr *instr, const char *title)
{
    const bool is_ordered = instr->order >= PTX_RELAXED;
    if (is_ordered && !instr->scope)
        kr__ptx_error(p, instr->line, "Modifier '.%s' requires scope with '%s' instruction",
                      kr__ptx_order_name(instr->order), title);
    else if (!is_ordered && instr->scope)
        kr__ptx_error(p, instr->line, "Modifier '.%s' requires order with '%s' instruction",
                      kr__ptx_value_text(PTX_KIND_SCOPE, (uint8_t)instr->scope), title);
    return is_ordered == !!instr->scope;
}

/* What its forms have had only for a while. */
static void check_mbarrier(ptx_parser *p, const ptx_spelling *spelling, const ptx_instr *instr,
                           const char *title)
{
    if (!check_order(p, instr, title))
        return;
    const bool is_arrival = instr->op == PTX_OP_MBARRIER_ARRIVE || instr->op == PTX_OP_MBARRIER_ARRIVE_DROP;
    if (instr->order == PTX_RELAXED && instr->op != PTX_OP_MBARRIER_EXPECT_TX &&
        instr->op != PTX_OP_MBARRIER_COMPLETE_TX)
        kr__ptx_has(p, instr->line, "mbarrier with .relaxed", 86, 90);
    else if (instr->order)
        kr__ptx_has(p, instr->line, "scopes on mbarrier operations", 80, 80);
    if (instr->op == PTX_OP_MBARRIER_ARRIVE && instr->operands[0].kind == PTX_OPERAND_SINK)
        kr__ptx_has(p, instr->line, "mbarrier.arrive with sink", 71, 80);
    const ptx_operand *phase = &instr->operands[2];
    if ((spelling->modifiers & PTX_PARITY) && phase->kind == PTX_OPERAND_IMMEDIATE && (phase->bits & ~1ll))
        kr__ptx_error(p, instr->line,
                      "Argument 2 of instruction '%s.parity': unexpected value '%lld', expected to be 0 or 1",
                      title, (long long)phase->bits);
    if (is_arrival && instr->n_operands > 2 && !(spelling->modifiers & PTX_NO_COMPLETE))
        kr__ptx_has(p, instr->line, "mbarrier.arrive with count argument and without '.noComplete' modifier",
                    78, 90);
}

/* Of vmad the product or what is added may be negated, and neither with .po. */
static void check_negation(ptx_parser *p, const ptx_instr *instr)
{
    const bool product = instr->operands[1].negated ^ instr->operands[2].negated,
               any = product || instr->operands[3].negated;
    if (any && (instr->scale & PTX_PLUS_ONE))
        kr__ptx_error(p, instr->line, "Conflicting use of '.po' modifier with operand negation");
    else if (product && instr->operands[3].negated)
        kr__ptx_error(p, instr->line,
                      "Operand negation limited to either (source A xor source B) or source C");
}

/* The result has one where it is a part of the third operand, which has none. */
static void check_selected(ptx_parser *p, const ptx_instr *instr, const char *name, unsigned n_parts)
{
    const bool is_selected = instr->operands[0].selector.unit;
    if (instr->operands[3].selector.unit)
        kr__ptx_error(p, instr->line, "Video selector is not allowed on 'source C' operand");
    if (is_selected && (instr->op == PTX_OP_VMAD || instr->n_operands < 4))
        kr__ptx_error(p, instr->line, "Video selector is not allowed on destination for instruction '%s'",
                      name);
    else if (is_selected && n_parts == 1 && instr->sub)
        kr__ptx_error(p, instr->line,
                      "Video instruction cannot have destination selector and secondary operation");
}

/* ".b3", ".h10" of a video instruction: on one part, on halves, on bytes. */
static void check_selectors(ptx_parser *p, const ptx_instr *instr, const char *name)
{
    const char last = name[strlen(name) - 1];
    const unsigned n_parts = last == '2' ? 2 : last == '4' ? 4 : 1;
    check_selected(p, instr, name, n_parts);
    if (instr->op == PTX_OP_VMAD)
        check_negation(p, instr);
    for (size_t i = 0; i < instr->n_operands; i++) {
        const ptx_selector *selector = &instr->operands[i].selector;
        const bool is_result = i == 0;
        const char unit = n_parts == 4 ? 'b' : n_parts == 2 ? 'h' : selector->unit;
        const unsigned n_of_unit = selector->unit == 'h' ? 2 : 4;
        const unsigned most = n_parts > 1 && !is_result ? 2 * n_parts : n_of_unit;
        bool ok = selector->unit == unit && (is_result ? selector->n <= n_parts : selector->n == n_parts);
        for (size_t k = 0; k < selector->n; k++)
            ok = ok && selector->at[k] < most;
        const bool is_whole = !selector->unit;
        if (is_whole ? n_parts > 1 && instr->operands[i].kind != PTX_OPERAND_REGISTER : !ok)
            kr__ptx_error(p, instr->line, "Incorrect video selector for operand %zu", i);
    }
}

/* Integers: every value of the second type is one of the first. */
static bool cannot_overflow(ptx_type to, ptx_type from)
{
    const size_t n = kr__ptx_type_bytes(to), m = kr__ptx_type_bytes(from);
    if (!is_integer(to) || !is_integer(from))
        return false;
    return is(signed_types, to) == is(signed_types, from) ? n >= m : is(signed_types, to) && n > m;
}

static bool in_space(const ptx_instr *instr, unsigned set)
{
    return (set | 1u << PTX_SPACE_GENERIC) >> instr->space & 1;
}

/* What the forms do not say. */
static void check_single(ptx_parser *p, const ptx_spelling *spelling, const ptx_instr *instr,
                         const char *title)
{
    switch (instr->op) {
    case PTX_OP_SETP:
    case PTX_OP_SET:
        if (!compare_agrees(instr->compare, instr->op == PTX_OP_SET ? instr->type2 : instr->type))
            kr__ptx_error(p, instr->line, "Mismatch between instruction type and comparison qualifier");
        else if (instr->boolean == PTX_POPC)
            kr__ptx_error(p, instr->line, "Illegal modifier '.popc' for instruction '%s'", title);
        break;
    case PTX_OP_ATOM:
    case PTX_OP_RED:
        if (!in_space(instr,
                      1u << PTX_SPACE_GLOBAL | 1u << PTX_SPACE_SHARED | 1u << PTX_SPACE_SHARED_CLUSTER))
            kr__ptx_error(p, instr->line, "State space incorrect for instruction '%s'", title);
        else if (instr->order == PTX_WEAK || instr->order == PTX_VOLATILE)
            kr__ptx_error(p, instr->line, "Illegal modifier '.%s' for instruction '%s'",
                          kr__ptx_order_name(instr->order), title);
        else if (instr->op == PTX_OP_RED && instr->order && instr->order != PTX_RELAXED &&
                 instr->order != PTX_RELEASE)
            kr__ptx_error(p, instr->line, "Illegal modifier '.%s' for instruction 'red'",
                          kr__ptx_order_name(instr->order));
        else
            check_atomic(p, instr, title);
        break;
    case PTX_OP_LD:
    case PTX_OP_ST:
        check_memory(p, spelling, instr);
        break;
    case PTX_OP_CVT:
        if ((instr->flags & PTX_SAT) && cannot_overflow(instr->type, instr->type2))
            kr__ptx_error(p, instr->line, "Illegal modifier '.sat' for instruction 'cvt'");
        break;
    case PTX_OP_CVTA:
    case PTX_OP_ISSPACEP:
        if (instr->space == PTX_SPACE_PARAM)
            kr__ptx_has(p, instr->line, "cvta/isspacep with .param state space", 77, 70);
        break;
    case PTX_OP_MEMBAR:
        if ((spelling->modifiers & K(SCOPE)) && instr->scope != PTX_CTA && instr->scope != PTX_SYS)
            kr__ptx_error(p, instr->line, "Illegal modifier '.%s' for instruction 'membar'",
                          instr->scope == PTX_GPU ? "gpu" : "cluster");
        break;
    case PTX_OP_REDUX:
        if ((instr->type == PTX_B32) != (instr->sub >= PTX_SUB_AND && instr->sub <= PTX_SUB_XOR))
            kr__ptx_error(p, instr->line, "Incorrect type '.%s' for operation '.%s' in instruction 'redux'",
                          kr__ptx_type_name(instr->type), atomic_name(instr->sub));
        break;
    case PTX_OP_BAR:
        check_barrier(p, instr, title);
        break;
    case PTX_OP_CP_ASYNC:
        check_copy(p, spelling, instr);
        break;
    case PTX_OP_MULTIMEM_LD_REDUCE:
    case PTX_OP_MULTIMEM_ST:
    case PTX_OP_MULTIMEM_RED:
        check_order(p, instr, title);
        break;
    case PTX_OP_RED_ASYNC:
        if (instr->order == PTX_MMIO && spelling->values[PTX_KIND_ORDER] != PTX_RELEASE)
            kr__ptx_error(p, instr->line,
                          "Modifier '.mmio' requires modifier '.release' for instruction '%s'", title);
        break;
    case PTX_OP_CREATEPOLICY_FRACTIONAL:
    case PTX_OP_CREATEPOLICY_RANGE:
        check_policy(p, instr, title);
        break;
    case PTX_OP_TEX:
    case PTX_OP_TLD4:
        check_texture(p, spelling, instr);
        break;
    case PTX_OP_PREFETCHU:
        if (instr->operands[0].variable && instr->operands[0].variable->space != PTX_SPACE_GLOBAL)
            kr__ptx_error(p, instr->line,
                          "Non-generic address is not supported as operand for prefetchu instruction");
        break;
    case PTX_OP_ALLOCA:
        if (instr->n_operands > 2 && (instr->operands[2].bits <= 0 || instr->operands[2].bits > UINT32_MAX ||
                                      (instr->operands[2].bits & (instr->operands[2].bits - 1))))
            kr__ptx_error(p, instr->line, "Alignment must be a power of two");
        break;
    case PTX_OP_TENSORMAP_REPLACE:
        check_field(p, spelling, instr);
        break;
    case PTX_OP_CP_ASYNC_BULK_TENSOR:
    case PTX_OP_CP_ASYNC_BULK_PREFETCH_TENSOR:
    case PTX_OP_CP_REDUCE_ASYNC_BULK_TENSOR:
        check_tensor(p, spelling, instr);
        break;
    case PTX_OP_MBARRIER_ARRIVE:
    case PTX_OP_MBARRIER_ARRIVE_DROP:
    case PTX_OP_MBARRIER_TEST_WAIT:
    case PTX_OP_MBARRIER_TRY_WAIT:
    case PTX_OP_MBARRIER_EXPECT_TX:
    case PTX_OP_MBARRIER_COMPLETE_TX:
        check_mbarrier(p, spelling, instr, title);
        break;
    case PTX_OP_SHFL:
    case PTX_OP_VOTE:
        if (!(spelling->modifiers & PTX_SYNC) && p->module->isa >= 64 && p->module->sm >= 70)
            kr__ptx_error(
                p, instr->line,
                "Instruction '%s' without '.sync' is not supported on .target sm_70 and higher from PTX ISA "
                "version 6.4",
                title);
        break;
    default:
        if (instr->op >= PTX_OP_VADD && instr->op <= PTX_OP_VSET4)
            check_selectors(p, instr, title);
        break;
    }
}

/* The name in messages: the opcode, with the modifiers that make it another instruction. */
static void title(const ptx_spelling *spelling, char *to, size_t bytes)
{
    static const struct {
        uint64_t flag;
        const char *text;
    } parts[] = {{PTX_HI, ".hi"},   {PTX_LO, ".lo"}, {PTX_WIDE, ".wide"},     {PTX_LEFT, ".l"},
                 {PTX_RIGHT, ".r"}, {PTX_TO, ".to"}, {PTX_ARRIVE, ".arrive"}, {PTX_RED, ".red"}};
    kr__format(to, bytes, "%s", kr__ptx_opcodes[spelling->row].name);
    for (size_t i = 0; i < KR_COUNT(parts); i++)
        if (spelling->modifiers & parts[i].flag)
            kr__format(to + strlen(to), bytes - strlen(to), "%s", parts[i].text);
}

static int needed_isa(const ptx_form *form)
{
    return form->late > form->isa ? form->late : form->isa;
}

/* The form fits; another that fits may do with an older .version or a lower target. */
static void note_needs(verdict v, ptx_set written)
{
    ptx_parser *p = v.parser;
    const ptx_needs *needs = &p->module->needs;
    int isa = needed_isa(v.form);
    if (isa <= needs->isa && v.form->sm <= needs->sm)
        return;
    uint64_t targets = kr__ptx_targets(v.form->sm);
    for (v.form++; v.form->operands; v.form++) {
        const int got = (int)judge(&v, written);
        const uint64_t these = got >= VERSION ? kr__ptx_targets(v.form->sm) : 0;
        if ((these & p->target) && needed_isa(v.form) < isa)
            isa = needed_isa(v.form);
        if (v.form->isa <= p->module->isa)
            targets |= these;
    }
    kr__ptx_need(p, v.instr->line, v.instr->name, isa, targets);
}

void kr__ptx_check_instr(ptx_parser *p, const ptx_spelling *spelling, ptx_instr *instr)
{
    const ptx_form *forms = kr__ptx_opcodes[spelling->row].forms;
    verdict v = {
        .parser = p, .spelling = spelling, .instr = instr, .title = kr__ptx_opcodes[spelling->row].name};
    for (v.form = forms; v.form->operands; v.form++)
        if (judge(&v, spelling->modifiers) == RIGHT) {
            note_needs(v, spelling->modifiers);
            check_constants(p, instr, v.title);
            check_single(p, spelling, instr, v.title);
            kr__ptx_check_matrix(p, spelling, instr, v.title);
            return;
        }
    char name[48], message[sizeof v.message] = "";
    title(spelling, name, sizeof name);
    v.title = name;
    v.wanted = true;
    int best = -1;
    for (v.form = forms; v.form->operands; v.form++) {
        const int got = (int)judge(&v, spelling->modifiers);
        if (got > best) {
            best = got;
            memcpy(message, v.message, sizeof message);
        }
    }
    kr__ptx_error(p, instr->line, "%s", message);
}
