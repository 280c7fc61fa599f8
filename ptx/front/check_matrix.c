/* SPDX-License-Identifier: Apache-2.0 */
#include "ptx/front/front.h"

/* What the forms of the matrix instructions do not say: shapes, and how many registers hold what of them. */

#define SET(type) (1ull << (type))

static const uint64_t floats8 = SET(PTX_E4M3) | SET(PTX_E5M2);
static const uint64_t floats864 =
    SET(PTX_E4M3) | SET(PTX_E5M2) | SET(PTX_E3M2) | SET(PTX_E2M3) | SET(PTX_E2M1);

/* The shapes of A's and B's types, and since when. */
typedef struct matrix_shape {
    uint64_t types;
    uint16_t m, n, k;
    uint8_t isa, sm;
    bool any_layout;
} matrix_shape;

static const matrix_shape mma_shapes[] = {
    {SET(PTX_F16), 8, 8, 4, 64, 70, true},
    {SET(PTX_F16), 16, 8, 8, 65, 75, false},
    {SET(PTX_F16), 16, 8, 16, 70, 80, false},
    {SET(PTX_BF16), 16, 8, 8, 70, 80, false},
    {SET(PTX_BF16), 16, 8, 16, 70, 80, false},
    {SET(PTX_TF32), 16, 8, 4, 70, 80, false},
    {SET(PTX_TF32), 16, 8, 8, 70, 80, false},
    {SET(PTX_F64), 8, 8, 4, 70, 80, false},
    {SET(PTX_F64), 16, 8, 4, 78, 90, false},
    {SET(PTX_F64), 16, 8, 8, 78, 90, false},
    {SET(PTX_F64), 16, 8, 16, 78, 90, false},
    {SET(PTX_U8) | SET(PTX_S8), 8, 8, 16, 65, 75, false},
    {SET(PTX_U8) | SET(PTX_S8), 16, 8, 16, 70, 80, false},
    {SET(PTX_U8) | SET(PTX_S8), 16, 8, 32, 70, 80, false},
    {SET(PTX_U4) | SET(PTX_S4), 8, 8, 32, 65, 75, false},
    {SET(PTX_U4) | SET(PTX_S4), 16, 8, 32, 70, 80, false},
    {SET(PTX_U4) | SET(PTX_S4), 16, 8, 64, 70, 80, false},
    {SET(PTX_B1), 8, 8, 128, 70, 75, false},
    {SET(PTX_B1), 16, 8, 128, 70, 80, false},
    {SET(PTX_B1), 16, 8, 256, 70, 80, false},
    {floats8, 16, 8, 32, 84, 89, false},
    {floats8, 16, 8, 16, 87, 89, false},
};
static const matrix_shape wmma_shapes[] = {
    {SET(PTX_F16) | SET(PTX_F32) | SET(PTX_U8) | SET(PTX_S8) | SET(PTX_S32), 16, 16, 16, 60, 70, true},
    {SET(PTX_F16) | SET(PTX_F32) | SET(PTX_U8) | SET(PTX_S8) | SET(PTX_S32), 8, 32, 16, 61, 70, true},
    {SET(PTX_F16) | SET(PTX_F32) | SET(PTX_U8) | SET(PTX_S8) | SET(PTX_S32), 32, 8, 16, 61, 70, true},
    {SET(PTX_BF16), 16, 16, 16, 70, 80, true},
    {SET(PTX_BF16), 8, 32, 16, 70, 80, true},
    {SET(PTX_BF16), 32, 8, 16, 70, 80, true},
    {SET(PTX_TF32) | SET(PTX_F32), 16, 16, 8, 70, 80, true},
    {SET(PTX_F64), 8, 8, 4, 70, 80, true},
    {SET(PTX_U4) | SET(PTX_S4), 8, 8, 32, 63, 75, false},
    {SET(PTX_B1), 8, 8, 128, 63, 75, false},
    {SET(PTX_S32), 8, 8, 32, 63, 75, true},
    {SET(PTX_S32), 8, 8, 128, 63, 75, true},
};
static const matrix_shape sparse_shapes[] = {
    {SET(PTX_F16) | SET(PTX_BF16), 16, 8, 16, 71, 80, false},
    {SET(PTX_F16) | SET(PTX_BF16), 16, 8, 32, 71, 80, false},
    {SET(PTX_TF32), 16, 8, 8, 71, 80, false},
    {SET(PTX_TF32), 16, 8, 16, 71, 80, false},
    {SET(PTX_U8) | SET(PTX_S8), 16, 8, 32, 71, 80, false},
    {SET(PTX_U8) | SET(PTX_S8), 16, 8, 64, 71, 80, false},
    {SET(PTX_U4) | SET(PTX_S4), 16, 8, 64, 71, 80, false},
    {SET(PTX_U4) | SET(PTX_S4), 16, 8, 128, 71, 80, false},
    {floats8, 16, 8, 64, 84, 89, false},
};
static const matrix_shape f8f6f4_shapes[] = {
    {floats864, 16, 8, 32, 0, 0, false},
    {floats8, 16, 8, 16, 87, 0, false},
};
static const matrix_shape mxf8f6f4_shapes[] = {{floats864, 16, 8, 32, 0, 0, false}};
static const matrix_shape mxf4_shapes[] = {{SET(PTX_E2M1), 16, 8, 64, 0, 0, false}};
static const matrix_shape sparse_f8f6f4_shapes[] = {{floats864, 16, 8, 64, 0, 0, false}};
static const matrix_shape sparse_mxf4_shapes[] = {{SET(PTX_E2M1), 16, 8, 128, 0, 0, false}};

typedef struct matrix_shapes {
    const matrix_shape *rows;
    size_t n;
} matrix_shapes;

#define SHAPES(table)          \
    {                          \
        table, KR_COUNT(table) \
    }

/* mma's by .kind, dense and sparse */
static const matrix_shapes shapes_of_kinds[][2] = {
    [PTX_MMA_PLAIN] = {SHAPES(mma_shapes), SHAPES(sparse_shapes)},
    [PTX_MMA_F8F6F4] = {SHAPES(f8f6f4_shapes), SHAPES(sparse_f8f6f4_shapes)},
    [PTX_MMA_MXF8F6F4] = {SHAPES(mxf8f6f4_shapes), SHAPES(sparse_f8f6f4_shapes)},
    [PTX_MMA_MXF4] = {SHAPES(mxf4_shapes), SHAPES(sparse_mxf4_shapes)},
    [PTX_MMA_MXF4NVF4] = {SHAPES(mxf4_shapes), SHAPES(sparse_mxf4_shapes)},
};

static const matrix_shapes shapes_of_wmma = SHAPES(wmma_shapes);

static bool is_sparse(const ptx_instr *instr)
{
    return instr->flags & PTX_SPARSE;
}

/* NULL: reported. */
static const matrix_shape *check_shape(ptx_parser *p, const ptx_instr *instr, ptx_type a, ptx_type b,
                                       const char *name)
{
    const uint16_t *shape = instr->shape;
    const matrix_shapes *shapes =
        instr->op == PTX_OP_MMA ? &shapes_of_kinds[instr->kind][is_sparse(instr)] : &shapes_of_wmma;
    const uint64_t types = SET(a) | SET(b);
    for (size_t i = 0; i < shapes->n; i++) {
        const matrix_shape *row = &shapes->rows[i];
        if ((types & ~row->types) || row->m != shape[0] || row->n != shape[1] || row->k != shape[2])
            continue;
        char text[24];
        kr__format(text, sizeof text, ".m%un%uk%u", shape[0], shape[1], shape[2]);
        return kr__ptx_has(p, instr->line, text, row->isa, row->sm) ? row : NULL;
    }
    kr__ptx_error(p, instr->line, "Illegal modifier '.m%un%uk%u' for instruction '%s'", shape[0], shape[1],
                  shape[2], name);
    return NULL;
}

/* ---- registers ---- */

/* Floats of six and four bits take a byte each, but where all are of four. */
static size_t bits_of(const ptx_instr *instr, ptx_type type)
{
    const bool is_packed = instr->kind == PTX_MMA_MXF4 || instr->kind == PTX_MMA_MXF4NVF4;
    if (type == PTX_U4 || type == PTX_S4 || (type == PTX_E2M1 && is_packed))
        return 4;
    return type == PTX_B1 ? 1 : 8 * kr__ptx_type_bytes(type);
}

/* Registers a lane that hold rows x columns of a type. A quarter of the warp shares m8n8k4's in halves;
 * wmma's factors in halves are in as many registers whatever the shape. */
static size_t fragment_size(const ptx_instr *instr, ptx_type type, size_t rows, size_t columns,
                            bool is_factor)
{
    const bool is_wmma = instr->op != PTX_OP_MMA;
    const size_t lanes = !is_wmma && instr->type2 == PTX_F16 && instr->shape[2] == 4 ? 8 : 32;
    const size_t bits = bits_of(instr, type), reg = bits == 64 ? 64 : 32;
    if (is_wmma && is_factor && type == PTX_F16)
        return 8;
    return rows * columns * bits / (lanes * reg);
}

/* false: reported. */
static bool check_size(ptx_parser *p, const ptx_instr *instr, const char *name, size_t argument, size_t size)
{
    const ptx_operand *at = &instr->operands[argument];
    if (at->kind == PTX_OPERAND_VECTOR && at->n_elements == size)
        return true;
    kr__ptx_error(p, instr->line, "Vector of size %zu is expected for argument %zu of instruction '%s'", size,
                  argument, name);
    return false;
}

static bool is_bits(ptx_type type)
{
    return type >= PTX_B8 && type <= PTX_B128;
}

/* Where one register is of bits the others may be of any type, but of one. */
static bool elements_agree(const ptx_operand *vector, ptx_type type)
{
    const bool is_float = type == PTX_F32 || type == PTX_F64;
    const ptx_type want = is_float ? type : PTX_B32;
    bool has_bits = false, has_constants_alone = true;
    ptx_type one = PTX_NONE;
    for (size_t i = 0; i < vector->n_elements; i++) {
        const ptx_operand *at = &vector->elements[i];
        const bool is_constant = at->kind == PTX_OPERAND_IMMEDIATE;
        if (at->kind == PTX_OPERAND_SINK)
            continue;
        const ptx_type of = !is_constant ? at->reg->type : is_float ? type : PTX_U32;
        if (is_constant ? !kr__ptx_constant_agrees(at, of)
                        : kr__ptx_type_bytes(of) != kr__ptx_type_bytes(want))
            return false;
        has_constants_alone &= is_constant;
        if (is_bits(of))
            has_bits = true;
        else if (one && one != of && (of == PTX_F32 || !kr__ptx_agrees(of, one)))
            return false;
        else
            one = of;
    }
    if (has_constants_alone)
        return one && (type == PTX_S32 || type == PTX_F64);
    return has_bits || (kr__ptx_agrees(one, want) && (is_float || one != PTX_F32));
}

/* A vector of as many registers as the fragment has. false: of a wrong type, reported. */
static bool check_fragment(ptx_parser *p, const ptx_instr *instr, const char *name, size_t argument,
                           ptx_type type, size_t size)
{
    const ptx_operand *at = &instr->operands[argument];
    if (!check_size(p, instr, name, argument, size))
        return true;
    if (elements_agree(at, type))
        return true;
    kr__ptx_error(p, instr->line, "Arguments mismatch for instruction '%s'", name);
    return false;
}

/* ---- mma ---- */

/* A constant that says which lanes or bytes: one below `end`, and a multiple of `step`. */
static void check_selector(ptx_parser *p, const ptx_instr *instr, const char *name, size_t argument,
                           const ptx_operand *at, int64_t end, int64_t step)
{
    if (at->kind == PTX_OPERAND_IMMEDIATE && (at->bits < 0 || at->bits >= end || at->bits % step))
        kr__ptx_error(p, instr->line,
                      "Argument %zu of instruction '%s': value '%lld' out of range, expected to be in range "
                      "[0..%lld]",
                      argument, name, (long long)at->bits, (long long)(end - step));
}

/* Whose metadata it is: that of pairs of lanes, or of all four where A has many registers. The assembler lets
 * any of four be said of f16. */
static void check_metadata(ptx_parser *p, const ptx_instr *instr, const char *name, size_t a_registers)
{
    const size_t parts = bits_of(instr, instr->type2) >= 16 ? 8 : 4;
    check_selector(p, instr, name, 5, &instr->operands[5],
                   instr->type2 == PTX_F16 ? 4 : (int64_t)(parts / a_registers), 1);
}

/* {byte, lane} after each of the scales: those of A are in two lanes of four, those of B in all; as many
 * bytes as there are scales in a row. */
static void check_scales(ptx_parser *p, const ptx_spelling *spelling, const ptx_instr *instr,
                         const char *name)
{
    const uint8_t scales = spelling->values[PTX_KIND_SCALE_VEC];
    const int64_t step = scales ? scales : instr->kind == PTX_MMA_MXF8F6F4 ? 1 : 2;
    const size_t first = is_sparse(instr) ? 7 : 5;
    for (size_t i = 0; i < 2; i++) {
        const size_t argument = first + 2 * i;
        const ptx_operand *at = instr->operands[argument].elements;
        check_selector(p, instr, name, argument, &at[0], 4, step);
        check_selector(p, instr, name, argument, &at[1], i ? 4 : 2, 1);
    }
}

static void check_mma(ptx_parser *p, const ptx_spelling *spelling, const ptx_instr *instr, const char *name)
{
    const bool is_wmma = instr->op == PTX_OP_WMMA_MMA, is_short = instr->type3 == PTX_NONE;
    const ptx_type types[] = {instr->type, is_short ? PTX_F16 : instr->type2,
                              is_short ? PTX_F16 : instr->type3, is_short ? instr->type2 : instr->type4};
    const matrix_shape *shape = check_shape(p, instr, types[1], types[2], name);
    if (!shape)
        return;
    if (!shape->any_layout && instr->layout != 2) {
        kr__ptx_error(p, instr->line, "Illegal %s for instruction '%s'",
                      instr->layout & 1 ? "alayout '.col'" : "blayout '.row'", name);
        return;
    }
    if (!is_wmma && instr->type == PTX_F16 && types[3] == PTX_F32)
        kr__ptx_error(
            p, instr->line,
            ".dtype must be '.f32' when .ctype is '.f32' for '%s' instruction with shape '.m%un%uk%u'", name,
            shape->m, shape->n, shape->k);
    if (types[1] == PTX_B1 && instr->sub == PTX_SUB_AND &&
        !kr__ptx_has(p, instr->line, "mma with .and operation", 71, 80))
        return;
    const size_t a_columns = is_sparse(instr) ? shape->k / 2 : shape->k;
    const size_t sizes[] = {fragment_size(instr, types[0], shape->m, shape->n, false),
                            fragment_size(instr, types[1], shape->m, a_columns, true),
                            fragment_size(instr, types[2], shape->k, shape->n, true),
                            fragment_size(instr, types[3], shape->m, shape->n, false)};
    for (size_t k = 0; k < KR_COUNT(sizes); k++)
        if (!check_fragment(p, instr, name, k, types[k], sizes[k]))
            return;
    if (is_sparse(instr))
        check_metadata(p, instr, name, sizes[1]);
    if (instr->type5)
        check_scales(p, spelling, instr, name);
}

/* wmma.load and wmma.store */
static void check_tiles(ptx_parser *p, const ptx_instr *instr, const char *name)
{
    const bool is_a = instr->op == PTX_OP_WMMA_LOAD_A, is_b = instr->op == PTX_OP_WMMA_LOAD_B;
    const matrix_shape *shape = check_shape(p, instr, instr->type, instr->type, name);
    if (!shape)
        return;
    if (!shape->any_layout && instr->layout != is_b)
        kr__ptx_error(p, instr->line, "Illegal layout for instruction '%s'", name);
    else
        check_fragment(p, instr, name, instr->op == PTX_OP_WMMA_STORE, instr->type,
                       fragment_size(instr, instr->type, is_b ? shape->k : shape->m,
                                     is_a ? shape->k : shape->n, is_a || is_b));
}

/* wgmma: m64nNkK, of so many bits of K; a sparse A stands for twice as many. */
static void check_wgmma(ptx_parser *p, const ptx_instr *instr, const char *name)
{
    const bool sparse = is_sparse(instr), is_integer_mma = instr->type == PTX_S32;
    const uint16_t *shape = instr->shape;
    const size_t k = 256 / bits_of(instr, instr->type2) * (sparse ? 2 : 1);
    const bool is_odd = is_integer_mma && shape[1] > 24 && shape[1] % 16;
    if (shape[0] != 64 || shape[2] != k || !shape[1] || shape[1] % 8 || shape[1] > 256 || is_odd) {
        kr__ptx_error(p, instr->line, "Illegal matrix shape '.m%un%uk%u' for instruction '%s'", shape[0],
                      shape[1], shape[2], name);
        return;
    }
    if (is_integer_mma && instr->type2 != instr->type3)
        kr__ptx_has(p, instr->line, "wgmma with mixed integer types", 84, PTX_SM90A);
    if (!check_fragment(p, instr, name, 0, instr->type, shape[1] / 2u / (instr->type == PTX_F16 ? 2 : 1)))
        return;
    if (instr->operands[1].kind == PTX_OPERAND_VECTOR && !check_fragment(p, instr, name, 1, PTX_B32, 4))
        return;
    const size_t scale_d = sparse ? 5 : 3;
    for (size_t i = scale_d - (sparse ? 1 : 0); i < instr->n_operands; i++) {
        const ptx_operand *at = &instr->operands[i];
        const bool is_scale = i == scale_d + 1 || i == scale_d + 2;
        const bool one_only = sparse && i == 4 && (bits_of(instr, instr->type2) == 8);
        const bool ok =
            is_scale ? at->bits == 1 || at->bits == -1 : at->bits == 0 || (at->bits == 1 && !one_only);
        if (at->kind == PTX_OPERAND_IMMEDIATE && !ok)
            kr__ptx_error(p, instr->line,
                          "Argument %zu of instruction '%s': unexpected value '%lld', expected to be %s", i,
                          name, (long long)at->bits,
                          is_scale   ? "-1 or 1"
                          : one_only ? "0"
                                     : "0 or 1");
    }
}

/* ---- ldmatrix and its like ---- */

/* How many registers each of .x1, .x2, .x4 matrices takes, and whether it must be transposed, may be, or not.
 */
static const struct moved_shape {
    ptx_op op;
    ptx_type type; /* PTX_NONE: formats instead */
    uint8_t m, n, registers, most;
    enum { PLAIN = 1, TRANSPOSED = 2 } layouts;
} moved_shapes[] = {
    {PTX_OP_LDMATRIX, PTX_B16, 8, 8, 1, 4, PLAIN | TRANSPOSED},
    {PTX_OP_LDMATRIX, PTX_B8, 16, 16, 2, 2, TRANSPOSED},
    {PTX_OP_LDMATRIX, PTX_NONE, 16, 16, 2, 2, TRANSPOSED},
    {PTX_OP_LDMATRIX, PTX_NONE, 8, 16, 1, 4, PLAIN},
    {PTX_OP_STMATRIX, PTX_B16, 8, 8, 1, 4, PLAIN | TRANSPOSED},
    {PTX_OP_STMATRIX, PTX_B8, 16, 8, 1, 4, TRANSPOSED},
    {PTX_OP_MOVMATRIX, PTX_B16, 8, 8, 0, 0, TRANSPOSED},
};

static void check_moved(ptx_parser *p, const ptx_instr *instr, const char *name)
{
    const uint16_t *shape = instr->shape;
    const unsigned layout = instr->flags & PTX_TRANS ? TRANSPOSED : PLAIN;
    for (size_t i = 0; i < KR_COUNT(moved_shapes); i++) {
        const struct moved_shape *row = &moved_shapes[i];
        if (row->op != instr->op || row->type != instr->type || row->m != shape[0] || row->n != shape[1] ||
            shape[2] > row->most || !(row->layouts & layout))
            continue;
        if (row->registers)
            check_size(p, instr, name, instr->op == PTX_OP_STMATRIX, (size_t)row->registers * shape[2]);
        return;
    }
    kr__ptx_error(p, instr->line, "Illegal matrix shape '.m%un%u' for instruction '%s'", shape[0], shape[1],
                  name);
}

/* ---- tcgen05 ---- */

/* Registers that each of .x1, .x2 ... pieces of so many lanes and bits takes; of all of them 128 at most. */
static void check_lanes(ptx_parser *p, const ptx_spelling *spelling, const ptx_instr *instr, const char *name)
{
    enum { MOST = 128 };
    static const uint8_t registers[] = {[PTX_EXTENT_16X64B] = 1,
                                        [PTX_EXTENT_16X128B] = 2,
                                        [PTX_EXTENT_16X256B] = 4,
                                        [PTX_EXTENT_32X32B] = 1,
                                        [PTX_EXTENT_16X32BX2] = 1};
    const size_t n = registers[spelling->values[PTX_KIND_EXTENT]] * (size_t)instr->shape[2];
    if (n > MOST || (n < 2 && instr->op == PTX_OP_TCGEN05_LD_RED))
        kr__ptx_error(p, instr->line, "Illegal modifier '.x%u' for instruction '%s'", instr->shape[2], name);
    else
        check_size(p, instr, name, instr->op == PTX_OP_TCGEN05_ST ? instr->n_operands - 1u : 0, n);
}

/* A constant number of columns. */
static void check_columns(ptx_parser *p, const ptx_instr *instr, const char *name)
{
    const ptx_operand *at = &instr->operands[1];
    if (at->kind == PTX_OPERAND_IMMEDIATE && (at->bits < 32 || at->bits > 512 || (at->bits & (at->bits - 1))))
        kr__ptx_error(
            p, instr->line,
            "Argument 1 of instruction '%s': unexpected value '%lld', expected to be a power of 2 in "
            "range [32..512]",
            name, (long long)at->bits);
}

/* Rows of A are shifted where they are in tensor memory and not kept; D is scaled by 2 to minus so much. */
static void check_tensor_mma(ptx_parser *p, const ptx_spelling *spelling, const ptx_instr *instr,
                             const char *name)
{
    const uint8_t collector = spelling->values[PTX_KIND_COLLECTOR];
    const size_t input = is_sparse(instr) ? 5 : 4,
                 has_lanes = instr->operands[input].kind == PTX_OPERAND_VECTOR;
    const size_t scale = input + has_lanes + 1;
    if ((instr->flags & PTX_ASHIFT) && (collector == PTX_COLLECTOR_FILL || collector == PTX_COLLECTOR_USE))
        kr__ptx_error(p, instr->line, "Modifier '.%s' cannot be combined with modifier '.ashift'",
                      kr__ptx_value_text(PTX_KIND_COLLECTOR, collector));
    else if ((instr->flags & PTX_ASHIFT) && instr->operands[1].kind != PTX_OPERAND_ADDRESS)
        kr__ptx_error(p, instr->line, "Illegal modifier '.ashift' for instruction '%s'", name);
    else if (instr->n_operands == scale + 1 && instr->kind != PTX_MMA_I8)
        check_selector(p, instr, name, scale, &instr->operands[scale], 16, 1);
}

void kr__ptx_check_matrix(ptx_parser *p, const ptx_spelling *spelling, const ptx_instr *instr,
                          const char *title)
{
    if (instr->op >= PTX_OP_TCGEN05_ALLOC && instr->op <= PTX_OP_TCGEN05_COMMIT)
        p->function->cta_groups |= (uint8_t)(1u << spelling->values[PTX_KIND_CTA_GROUP]);
    switch (instr->op) {
    case PTX_OP_MMA:
    case PTX_OP_WMMA_MMA:
        check_mma(p, spelling, instr, title);
        break;
    case PTX_OP_WMMA_LOAD_A:
    case PTX_OP_WMMA_LOAD_B:
    case PTX_OP_WMMA_LOAD_C:
    case PTX_OP_WMMA_STORE:
        check_tiles(p, instr, title);
        break;
    case PTX_OP_WGMMA_MMA_ASYNC:
        check_wgmma(p, instr, title);
        break;
    case PTX_OP_LDMATRIX:
    case PTX_OP_STMATRIX:
    case PTX_OP_MOVMATRIX:
        check_moved(p, instr, title);
        break;
    case PTX_OP_TCGEN05_LD:
    case PTX_OP_TCGEN05_LD_RED:
    case PTX_OP_TCGEN05_ST:
        check_lanes(p, spelling, instr, title);
        break;
    case PTX_OP_TCGEN05_ALLOC:
        check_columns(p, instr, title);
        break;
    case PTX_OP_TCGEN05_MMA:
        check_tensor_mma(p, spelling, instr, title);
        break;
    default:
        break;
    }
}
