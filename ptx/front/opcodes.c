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
#define E2M1 TYPE(E2M1)
#define E2M3 TYPE(E2M3)
#define E3M2 TYPE(E3M2)
#define UE8M0 TYPE(UE8M0)
#define UE4M3 TYPE(UE4M3)
#define E2M1X2 TYPE(E2M1X2)
#define E2M3X2 TYPE(E2M3X2)
#define E3M2X2 TYPE(E3M2X2)
#define UE8M0X2 TYPE(UE8M0X2)
#define E2M1X4 TYPE(E2M1X4)
#define FLOAT8X4 (TYPE(E2M3X4) | TYPE(E3M2X4) | TYPE(E4M3X4) | TYPE(E5M2X4))
#define FLOAT8 (E4M3 | E5M2)
#define FLOAT864 (FLOAT8 | E3M2 | E2M3 | E2M1)
#define PRED TYPE(PRED)
#define F32X2 TYPE(F32X2)
#define ROUNDS(set) ONLY(ROUND, set)
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
#define T5(a, b, c, d, e)       \
    {                           \
        (a), (b), (c), (d), (e) \
    }
/* ... and modifiers. */
#define K(kind) ((ptx_set)1 << PTX_KIND_##kind)
#define ACCESS (K(SPACE) | K(ORDER) | K(MMIO) | K(SCOPE) | K(VECTOR) | K(CACHE) | K(L1_HINT) | K(HINT))
#define ATOM (K(SPACE) | K(ORDER) | K(SCOPE))
#define MATRIX (PTX_SYNC | PTX_ALIGNED | K(SHAPE))
#define WMMA (MATRIX | K(LAYOUT))
#define PRODUCT (MATRIX | K(LAYOUT) | K(LAYOUTS))
/* A and B of wmma. */
#define WMMA_FACTOR                                                  \
    FORM(T1(F16), WMMA | K(SPACE), WMMA, 0, "~V@?r", 60, 70, MATRIX_SPACES)          \
    FORM(T1(U8 | S8), WMMA | K(SPACE), WMMA, 0, "~V@?r", 63, 72, MATRIX_SPACES)      \
    FORM(T1(U4 | S4 | B1), WMMA | K(SPACE), WMMA, 0, "~V@?r", 63, 75, MATRIX_SPACES) \
    FORM(T1(BF16 | TF32 | F64), WMMA | K(SPACE), WMMA, 0, "~V@?r", 70, 80, MATRIX_SPACES)
/* Of a kind only these. */
#define SPACE(name) (1ull << PTX_SPACE_##name)
#define INTO(set)             \
    {                         \
        PTX_KIND_SPACE, (set) \
    }
#define FROM(set)              \
    {                          \
        PTX_KIND_SPACES, (set) \
    }
#define ONLY(kind, set)        \
    {                          \
        PTX_KIND_##kind, (set) \
    }
#define OWN (SPACE(SHARED) | SPACE(SHARED_CTA)) /* shared memory of the block */
#define ORDERS(set) ONLY(ORDER, set)
#define SCOPES(set) ONLY(SCOPE, set)
#define OPERATIONS(set) ONLY(ATOMIC, set)
#define MODES(set) ONLY(MODE, set)
#define ORDER(name) (1ull << PTX_##name)
#define SUB(name) (1ull << PTX_SUB_##name)
#define MODE(name) (1ull << PTX_MODE_##name)
#define SIGNED ONLY(COMPARE, 2 * (1ull << PTX_GE) - (1ull << PTX_EQ)) /* not lo, ltu and their like */
#define LOGIC (SUB(AND) | SUB(OR) | SUB(XOR))
#define LEAST (SUB(MIN) | SUB(MAX))
#define ORDERED (K(SPACE) | K(ORDER) | K(SCOPE))
#define RESTRICTED (K(PROXY) | K(PROXIES) | K(ORDER) | K(RESTRICT) | K(SCOPE))
#define REMOTE (ORDERED | K(ATOMIC) | PTX_COMPLETE_TX)
#define BULK (K(SPACE) | K(SPACES))
#define TENSOR (BULK | K(GEOMETRY) | K(MODE))
#define MATRIX_SPACES INTO(SPACE(GLOBAL) | OWN)
#define VECTORS(n) (1ull << (n))
#define SHORT ONLY(VECTOR, VECTORS(2) | VECTORS(4))
#define LONG ONLY(VECTOR, VECTORS(8)) /* of 256 bits */
#define READING ORDERS(ORDER(WEAK) | ORDER(RELAXED) | ORDER(ACQUIRE))
#define WRITING ORDERS(ORDER(WEAK) | ORDER(RELAXED) | ORDER(RELEASE))
#define REDUCING ORDERS(ORDER(RELAXED) | ORDER(RELEASE))
#define PROXIES(set) ONLY(PROXIES, set)
#define PROXY(name) (1ull << PTX_PROXY_##name)
#define FIELDS(set) ONLY(FIELD, set)
#define FIELD(name) (1ull << PTX_FIELD_##name)
#define REPLACE (K(MODE) | K(FIELD) | K(SPACE) | PTX_B1024)
#define MAP (SPACE(GLOBAL) | SPACE(SHARED_CTA)) /* where a tensor map may lie */
#define EVICT(name) (1ull << PTX_EVICT_##name)
#define GEOMETRY(name) (1ull << PTX_GEOMETRY_##name)
#define QUERY(name) (1ull << PTX_QUERY_##name)
#define PLAIN (GEOMETRY(1D) | GEOMETRY(2D) | GEOMETRY(3D))
#define IMAGES (PLAIN | GEOMETRY(A1D) | GEOMETRY(A2D))
#define CUBES (GEOMETRY(CUBE) | GEOMETRY(ACUBE))
#define GATHERED (GEOMETRY(2D) | GEOMETRY(A2D) | CUBES)
#define SURFACE (K(GEOMETRY) | K(BOUNDARY))
/* A fetch: from level 0, from a level, from where the gradients say. */
#define TEXTURE(may, must, pattern)                                                                    \
    FORM(T2(F32 | INT32, F32), K(GEOMETRY) | K(VECTOR) | (may), K(GEOMETRY) | K(VECTOR) | (must), 0, pattern, 0, 0, \
         ONLY(GEOMETRY, IMAGES | CUBES), ONLY(VECTOR, VECTORS(4)))                                     \
    FORM(T2(F32 | INT32, S32), K(GEOMETRY) | K(VECTOR) | (may), K(GEOMETRY) | K(VECTOR) | (must), 0, pattern, 0, 0, \
         ONLY(GEOMETRY, IMAGES | GEOMETRY(2DMS) | GEOMETRY(A2DMS)), ONLY(VECTOR, VECTORS(4)))          \
    FORM(T2(F16, F32), K(GEOMETRY) | K(VECTOR) | (may), K(GEOMETRY) | K(VECTOR) | (must), 0, pattern, 42, 53, \
         ONLY(GEOMETRY, IMAGES | CUBES), ONLY(VECTOR, VECTORS(4)))                                     \
    FORM(T2(F16, S32), K(GEOMETRY) | K(VECTOR) | (may), K(GEOMETRY) | K(VECTOR) | (must), 0, pattern, 42, 53, \
         ONLY(GEOMETRY, IMAGES | GEOMETRY(2DMS) | GEOMETRY(A2DMS)), ONLY(VECTOR, VECTORS(4)))          \
    FORM(T2(F16X2, F32), K(GEOMETRY) | K(VECTOR) | (may), K(GEOMETRY) | K(VECTOR) | (must), 0, pattern, 42, 53, \
         ONLY(GEOMETRY, IMAGES | CUBES), ONLY(VECTOR, VECTORS(2)))                                     \
    FORM(T2(F16X2, S32), K(GEOMETRY) | K(VECTOR) | (may), K(GEOMETRY) | K(VECTOR) | (must), 0, pattern, 42, 53, \
         ONLY(GEOMETRY, IMAGES | GEOMETRY(2DMS) | GEOMETRY(A2DMS)), ONLY(VECTOR, VECTORS(2)))
#define LOADING (MODE(TILE) | MODE(GATHER4) | MODE(IM2COL) | MODE(IM2COL_W) | MODE(IM2COL_W_128))
#define ARRIVING ORDERS(ORDER(RELEASE) | ORDER(RELAXED)), SCOPES(ORDER(CTA) | ORDER(CLUSTER))
#define WAITING ORDERS(ORDER(ACQUIRE) | ORDER(RELAXED)), SCOPES(ORDER(CTA) | ORDER(CLUSTER))
/* mbarrier.arrive, mbarrier.arrive_drop: at another block's there is no state to return. */
#define ARRIVAL                                                                                          \
    FORM(T1(B64), ORDERED, 0, 0, "k#?r", 70, 80, INTO(OWN), ARRIVING)                                    \
    FORM(T1(B64), ORDERED, 0, 0, "_#?r", 80, 90, INTO(SPACE(SHARED_CLUSTER)), ARRIVING)                  \
    FORM(T1(B64), ORDERED | PTX_NO_COMPLETE, PTX_NO_COMPLETE, 0, "k#r", 70, 80, INTO(OWN),               \
         ORDERS(ORDER(RELEASE)), SCOPES(ORDER(CTA)))                                                     \
    FORM(T1(B64), ORDERED | PTX_EXPECT_TX, PTX_EXPECT_TX, 0, "k#r", 80, 90, INTO(OWN), ARRIVING)         \
    FORM(T1(B64), ORDERED | PTX_EXPECT_TX, PTX_EXPECT_TX, 0, "_#r", 80, 90, INTO(SPACE(SHARED_CLUSTER)), \
         ARRIVING)
/* A is described or in registers; transposing is for halves alone. `sparse`: its metadata and selector. */
#define WGMMA(of, sparse, isa)                                                                       \
    FORM(T3(F16 | F32, F16, F16), of, (of) & ~PTX_ALIGNED, 0, "VNN" sparse "piiii", isa, PTX_SM90A, ANY_METADATA)     \
    FORM(T3(F16 | F32, F16, F16), of, (of) & ~PTX_ALIGNED, 0, "VVN" sparse "piii", isa, PTX_SM90A, ANY_METADATA)      \
    FORM(T3(F32, BF16, BF16), of, (of) & ~PTX_ALIGNED, 0, "VNN" sparse "piiii", isa, PTX_SM90A, ANY_METADATA)         \
    FORM(T3(F32, BF16, BF16), of, (of) & ~PTX_ALIGNED, 0, "VVN" sparse "piii", isa, PTX_SM90A, ANY_METADATA)          \
    FORM(T3(F32, TF32, TF32), of, (of) & ~PTX_ALIGNED, 0, "VNN" sparse "pii", isa, PTX_SM90A, ANY_METADATA)           \
    FORM(T3(F32, TF32, TF32), of, (of) & ~PTX_ALIGNED, 0, "VVN" sparse "pii", isa, PTX_SM90A, ANY_METADATA)           \
    FORM(T3(F16 | F32, FLOAT8, FLOAT8), of, (of) & ~PTX_ALIGNED, 0, "VNN" sparse "pii", isa, PTX_SM90A, ANY_METADATA) \
    FORM(T3(F16 | F32, FLOAT8, FLOAT8), of, (of) & ~PTX_ALIGNED, 0, "VVN" sparse "pii", isa, PTX_SM90A, ANY_METADATA) \
    FORM(T3(S32, S8 | U8, S8 | U8), (of) | PTX_SATFINITE, (of) & ~PTX_ALIGNED, 0, "VNN" sparse "p", isa, PTX_SM90A, ANY_METADATA) \
    FORM(T3(S32, S8 | U8, S8 | U8), (of) | PTX_SATFINITE, (of) & ~PTX_ALIGNED, 0, "VVN" sparse "p", isa, PTX_SM90A, ANY_METADATA)
#define KIND(name) (1ull << PTX_MMA_##name)
#define FORMAT(name) (1ull << PTX_FORMAT_##name)
#define EXTENT(name) (1ull << PTX_EXTENT_##name)
#define METADATA(name) (1ull << PTX_METADATA_##name)
#define SCALE_VEC(name) (1ull << PTX_SCALE_VEC_##name)
/* ldmatrix, tcgen05.cp: elements of six and four bits become bytes. */
#define CONVERTED (K(FORMAT) | K(FORMATS))
#define CONVERSION ONLY(FORMAT, FORMAT(B8X16)), ONLY(FORMATS, FORMAT(B6X16_P32) | FORMAT(B4X16_P64))
/* mma with a .kind, and with one scale for each so many elements. */
#define MMA_KIND (PRODUCT | K(KIND))
#define MMA_SCALE (MMA_KIND | PTX_BLOCK_SCALE)
#define ANY_METADATA ONLY(SPARSITY, METADATA(ANY))
#define ORDERED_METADATA ONLY(SPARSITY, METADATA(ORDERED))
#define BITWISE (K(ATOMIC) | K(POPC))
/* `fours`: the targets that have those of four bits. */
#define MMA_SCALED(pattern, sparsity, fours, ...)                                                                  \
    FORM(T5(F32, FLOAT864, FLOAT864, F32, UE8M0), MMA_SCALE | K(SCALE_VEC) | (sparsity), MMA_SCALE | (sparsity), 0, \
         pattern "juju", 87, PTX_SM120F, ONLY(KIND, KIND(MXF8F6F4)), ONLY(SCALE_VEC, SCALE_VEC(1X)), __VA_ARGS__)   \
    FORM(T5(F32, E2M1, E2M1, F32, UE8M0), MMA_SCALE | K(SCALE_VEC) | (sparsity), MMA_SCALE | (sparsity), 0,         \
         pattern "juju", 87, fours, ONLY(KIND, KIND(MXF4)), ONLY(SCALE_VEC, SCALE_VEC(2X)), __VA_ARGS__)            \
    FORM(T5(F32, E2M1, E2M1, F32, UE8M0), MMA_SCALE | K(SCALE_VEC) | (sparsity),                                    \
         MMA_SCALE | K(SCALE_VEC) | (sparsity), 0, pattern "juju", 87, fours, ONLY(KIND, KIND(MXF4NVF4)),           \
         ONLY(SCALE_VEC, SCALE_VEC(2X)), __VA_ARGS__)                                                               \
    FORM(T5(F32, E2M1, E2M1, F32, UE4M3), MMA_SCALE | K(SCALE_VEC) | (sparsity),                                    \
         MMA_SCALE | K(SCALE_VEC) | (sparsity), 0, pattern "juju", 87, fours, ONLY(KIND, KIND(MXF4NVF4)),           \
         ONLY(SCALE_VEC, SCALE_VEC(4X)), __VA_ARGS__)
/* tcgen05 */
#define LANES (PTX_SYNC | PTX_ALIGNED | K(EXTENT) | K(COUNT))
#define SPLIT EXTENT(16X32BX2)
#define WHOLE (EXTENT(16X64B) | EXTENT(16X128B) | EXTENT(16X256B) | EXTENT(32X32B))
#define WARP(name) (1ull << PTX_##name)
#define TENSOR_COPY(warps, extents, which)                                                                         \
    FORM(T0, K(CTA_GROUP) | K(EXTENT) | (warps), K(CTA_GROUP) | K(EXTENT) | (warps), 0, "tN", 86, PTX_SM100F,       \
         ONLY(EXTENT, extents), ONLY(WARPS, which))                                                                \
    FORM(T0, K(CTA_GROUP) | K(EXTENT) | (warps) | CONVERTED, K(CTA_GROUP) | K(EXTENT) | (warps) | CONVERTED, 0,     \
         "tN", 86, PTX_SM100F, ONLY(EXTENT, extents), ONLY(WARPS, which), CONVERSION)
#define FLOAT_KINDS (KIND(F16) | KIND(TF32) | KIND(F8F6F4))
#define OF_A (2 * (1ull << PTX_COLLECTOR_DISCARD) - 1)
#define TENSOR_MMA_FORM(sparsity, pattern, target, kinds)                                                          \
    FORM(T0, K(CTA_GROUP) | K(KIND) | K(COLLECTOR) | PTX_ASHIFT | (sparsity), K(CTA_GROUP) | K(KIND) | (sparsity), \
         0, pattern, 86, target, ANY_METADATA, ONLY(COLLECTOR, OF_A), ONLY(KIND, kinds))
/* With lanes that are left out, and with a scale of what is in D. */
#define TENSOR_MMA(sparsity, pattern)                                                           \
    TENSOR_MMA_FORM(sparsity, pattern "p", PTX_SM100F, FLOAT_KINDS)                             \
    TENSOR_MMA_FORM(sparsity, pattern "Lp", PTX_SM100F, FLOAT_KINDS)                            \
    TENSOR_MMA_FORM(sparsity, pattern "pi", PTX_SM100_103F, KIND(F16) | KIND(TF32))             \
    TENSOR_MMA_FORM(sparsity, pattern "Lpi", PTX_SM100_103F, KIND(F16) | KIND(TF32))            \
    TENSOR_MMA_FORM(sparsity, pattern "p", PTX_SM100A_110A, KIND(I8))                           \
    TENSOR_MMA_FORM(sparsity, pattern "Lp", PTX_SM100A_110A, KIND(I8))                          \
    TENSOR_MMA_FORM(sparsity, pattern "pi", PTX_SM100A_110A, KIND(I8))
#define SCALED_TENSOR_MMA_FORM(sparsity, must, pattern, version, target, kinds, sizes)                             \
    FORM(T0, K(CTA_GROUP) | K(KIND) | K(COLLECTOR) | PTX_BLOCK_SCALE | K(SCALE_VEC) | (sparsity),                  \
         K(CTA_GROUP) | K(KIND) | PTX_BLOCK_SCALE | (must) | (sparsity), 0, pattern "ttp", version, target,        \
         ANY_METADATA, ONLY(COLLECTOR, OF_A), ONLY(KIND, kinds), ONLY(SCALE_VEC, sizes))
/* By how many elements there is a scale, which has been for families, or how many for a row. */
#define SCALED_TENSOR_MMA(sparsity, pattern, fours)                                                                \
    SCALED_TENSOR_MMA_FORM(sparsity, 0, pattern, 88, PTX_SM100F, KIND(MXF8F6F4), SCALE_VEC(BLOCK32))               \
    SCALED_TENSOR_MMA_FORM(sparsity, K(SCALE_VEC), pattern, 86, PTX_SM100A_103A_110A, KIND(MXF8F6F4), SCALE_VEC(1X)) \
    SCALED_TENSOR_MMA_FORM(sparsity, 0, pattern, 88, fours, KIND(MXF4), SCALE_VEC(BLOCK32))                        \
    SCALED_TENSOR_MMA_FORM(sparsity, K(SCALE_VEC), pattern, 86, PTX_SM100A_103A_110A, KIND(MXF4), SCALE_VEC(2X))   \
    SCALED_TENSOR_MMA_FORM(sparsity, K(SCALE_VEC), pattern, 88, fours, KIND(MXF4NVF4),                             \
                           SCALE_VEC(BLOCK16) | SCALE_VEC(BLOCK32))                                                \
    SCALED_TENSOR_MMA_FORM(sparsity, K(SCALE_VEC), pattern, 87, PTX_SM100A_103A_110A, KIND(MXF4NVF4),              \
                           SCALE_VEC(2X) | SCALE_VEC(4X))
#define STATIONARY_TENSOR_MMA(sparsity, pattern, target, kinds)                                                    \
    FORM(T0, K(CTA_GROUP) | K(KIND) | K(COLLECTOR) | (sparsity), K(CTA_GROUP) | K(KIND) | (sparsity), 0, pattern,  \
         86, target, ANY_METADATA, ONLY(COLLECTOR, ~OF_A), ONLY(KIND, kinds), ONLY(CTA_GROUP, 1u << 1))
#define FORM(set, may, must, either, pattern, version, target, ...) \
    {.types = set,                                                  \
     .allowed = (may),                                              \
     .required = (must),                                            \
     .one_of = (either),                                            \
     .operands = pattern,                                           \
     .isa = (version) & 0xff,                                       \
     .late = (version) >> 8,                                        \
     .sm = target,                                                  \
     .only = {__VA_ARGS__}},
#define PTX_OPCODE(id, text, titles, ...) \
    [PTX_OP_##id] = {text, titles, (const ptx_form[]){__VA_ARGS__{.operands = NULL}}},

const ptx_opcode kr__ptx_opcodes[PTX_OP_COUNT] = {
#include "ptx/front/opcodes.def"
};
