/* SPDX-License-Identifier: Apache-2.0 */
#include "ptx/front/front.h"

#include <string.h>

/* ---- types ---- */

static const struct {
    const char *name;
    uint8_t bytes;
} types[PTX_TYPE_COUNT] = {
    [PTX_NONE] = {"", 0},           [PTX_B8] = {"b8", 1},
    [PTX_B16] = {"b16", 2},         [PTX_B32] = {"b32", 4},
    [PTX_B64] = {"b64", 8},         [PTX_B128] = {"b128", 16},
    [PTX_U8] = {"u8", 1},           [PTX_U16] = {"u16", 2},
    [PTX_U32] = {"u32", 4},         [PTX_U64] = {"u64", 8},
    [PTX_S8] = {"s8", 1},           [PTX_S16] = {"s16", 2},
    [PTX_S32] = {"s32", 4},         [PTX_S64] = {"s64", 8},
    [PTX_F16] = {"f16", 2},         [PTX_F16X2] = {"f16x2", 4},
    [PTX_BF16] = {"bf16", 2},       [PTX_BF16X2] = {"bf16x2", 4},
    [PTX_TF32] = {"tf32", 4},       [PTX_F32] = {"f32", 4},
    [PTX_F64] = {"f64", 8},         [PTX_E4M3] = {"e4m3", 1},
    [PTX_E5M2] = {"e5m2", 1},       [PTX_E4M3X2] = {"e4m3x2", 2},
    [PTX_E5M2X2] = {"e5m2x2", 2},   [PTX_U16X2] = {"u16x2", 4},
    [PTX_S16X2] = {"s16x2", 4},     [PTX_PRED] = {"pred", 0},
    [PTX_F32X2] = {"f32x2", 8},     [PTX_B1] = {"b1", 1},
    [PTX_U2] = {"u2", 1},           [PTX_S2] = {"s2", 1},
    [PTX_U4] = {"u4", 1},           [PTX_S4] = {"s4", 1},
    [PTX_E2M1] = {"e2m1", 1},       [PTX_E2M3] = {"e2m3", 1},
    [PTX_E3M2] = {"e3m2", 1},       [PTX_UE8M0] = {"ue8m0", 1},
    [PTX_UE4M3] = {"ue4m3", 1},     [PTX_E2M1X2] = {"e2m1x2", 1},
    [PTX_E2M3X2] = {"e2m3x2", 2},   [PTX_E3M2X2] = {"e3m2x2", 2},
    [PTX_UE8M0X2] = {"ue8m0x2", 2}, [PTX_E2M1X4] = {"e2m1x4", 2},
    [PTX_E2M3X4] = {"e2m3x4", 4},   [PTX_E3M2X4] = {"e3m2x4", 4},
    [PTX_E4M3X4] = {"e4m3x4", 4},   [PTX_E5M2X4] = {"e5m2x4", 4},
    [PTX_TEXREF] = {"texref", 8},   [PTX_SAMPLERREF] = {"samplerref", 8},
    [PTX_SURFREF] = {"surfref", 8},
};

size_t kr__ptx_type_bytes(ptx_type type)
{
    return (unsigned)type < PTX_TYPE_COUNT ? types[type].bytes : 0;
}

const char *kr__ptx_type_name(ptx_type type)
{
    return (unsigned)type < PTX_TYPE_COUNT ? types[type].name : "";
}

static bool equal(ptx_text text, const char *word)
{
    return strlen(word) == text.bytes && !memcmp(word, text.at, text.bytes);
}

ptx_type kr__ptx_type_named(ptx_text word)
{
    const ptx_text name = {word.at + 1, word.bytes - 1};
    for (int type = PTX_B8; word.bytes > 1 && type < PTX_TYPE_COUNT; type++)
        if (equal(name, types[type].name))
            return (ptx_type)type;
    return PTX_NONE;
}

/* ---- special registers ---- */

const struct ptx_special_row kr__ptx_specials[PTX_SPECIAL_COUNT] = {
#define PTX_SPECIAL_ROW(name, text, type) [name] = {text, type},
    PTX_SPECIAL_LIST(PTX_SPECIAL_ROW)
#undef PTX_SPECIAL_ROW
};

#define SPECIAL(name)                                  \
    {                                                  \
        .kind = PTX_OPERAND_SPECIAL, .special = (name) \
    }
#define SPECIAL_VECTOR(text, name)                                                         \
    {                                                                                      \
        text,                                                                              \
        {                                                                                  \
            .kind = PTX_OPERAND_VECTOR, .n_elements = 4, .elements = (const ptx_operand[]) \
            {                                                                              \
                SPECIAL(name##_X), SPECIAL(name##_Y), SPECIAL(name##_Z),                   \
                {                                                                          \
                    .kind = PTX_OPERAND_IMMEDIATE                                          \
                }                                                                          \
            }                                                                              \
        }                                                                                  \
    }
const ptx_special_vector kr__ptx_special_vectors[PTX_SPECIAL_VECTORS] = {
    SPECIAL_VECTOR("%tid", PTX_TID),
    SPECIAL_VECTOR("%ntid", PTX_NTID),
    SPECIAL_VECTOR("%ctaid", PTX_CTAID),
    SPECIAL_VECTOR("%nctaid", PTX_NCTAID),
    SPECIAL_VECTOR("%clusterid", PTX_CLUSTERID),
    SPECIAL_VECTOR("%nclusterid", PTX_NCLUSTERID),
    SPECIAL_VECTOR("%cluster_ctaid", PTX_CLUSTER_CTAID),
    SPECIAL_VECTOR("%cluster_nctaid", PTX_CLUSTER_NCTAID),
};

const char *kr__ptx_special_vector_name(const ptx_operand *operand)
{
    for (size_t i = 0; i < PTX_SPECIAL_VECTORS && operand->elements; i++)
        if (operand->elements == kr__ptx_special_vectors[i].operand.elements)
            return kr__ptx_special_vectors[i].text;
    return NULL;
}

/* ---- versions and targets: what ptxas 13.0 accepts ---- */

bool kr__ptx_version_known(int isa)
{
    static const struct {
        uint8_t first, last;
    } ranges[] = {{10, 15}, {20, 23}, {30, 32}, {40, 43}, {50, 50}, {60, 65}, {70, 78}, {80, 88}, {90, 90}};
    for (size_t i = 0; i < KR_COUNT(ranges); i++)
        if (isa >= ranges[i].first && isa <= ranges[i].last)
            return true;
    return false;
}

/* In order: what a target with more has, those before it may lack. LATE: those before the assembler of 13.0
 * have it from the second .version on. */
#define TARGETS(X)                                                                                      \
    X(10, , 10)                                                                                         \
    X(11, , 10)                                                                                         \
    X(12, , 12)                                                                                         \
    X(13, , 12)                                                                                         \
    X(20, , 23)                                                                                         \
    X(21, , 23) X(30, , 30) X(32, , 40) X(35, , 31) X(37, , 41) X(50, , 40) X(52, , 41) X(53, , 42)     \
        X(60, , 50) X(61, , 50) X(62, , 50) X(70, , 60) X(72, , 61) X(75, , 63) X(80, , 70) X(86, , 71) \
            X(87, , 74) X(88, , LATE(73, 90)) X(89, , 78) X(90, , 78) X(90, a, 80) X(100, , 86)         \
                X(100, f, 88) X(100, a, 86) X(101, , 86) X(101, f, 88) X(101, a, 86) X(103, , 88)       \
                    X(103, f, 88) X(103, a, 88) X(110, , 90) X(110, f, 90) X(110, a, 90) X(120, , 87)   \
                        X(120, f, 88) X(120, a, 87) X(121, , 88) X(121, f, 88) X(121, a, 88)

enum {
#define TARGET(sm, suffix, isa) SM_##sm##suffix,
    TARGETS(TARGET)
#undef TARGET
        N_TARGETS
};

static const struct {
    const char *name;
    uint8_t sm, isa, late;
    char suffix;
} targets[] = {
#define TARGET(sm, suffix, isa) {"sm_" #sm #suffix, sm, (uint8_t)(isa), (isa) >> 8, (#suffix)[0]},
    TARGETS(TARGET)
#undef TARGET
};

uint64_t kr__ptx_target_named(ptx_text name, int *sm, char *suffix, int *isa, int *needs)
{
    for (size_t i = 0; i < KR_COUNT(targets); i++)
        if (equal(name, targets[i].name)) {
            *sm = targets[i].sm;
            *suffix = targets[i].suffix;
            *isa = targets[i].isa;
            *needs = targets[i].late ? targets[i].late : targets[i].isa;
            return 1ull << i;
        }
    return 0;
}

#define BIT(target) (1ull << SM_##target)

#define FAMILY(sm) (BIT(sm##f) | BIT(sm##a))
#define FAMILY100 (FAMILY(100) | FAMILY(101) | FAMILY(103) | FAMILY(110))
#define OWN100 (FAMILY100 | FAMILY(120) | FAMILY(121))

uint64_t kr__ptx_targets(unsigned sm)
{
    static const uint64_t sets[] = {
        [PTX_SM90A - PTX_FIRST_SET] = BIT(90a),
        [PTX_SM103A - PTX_FIRST_SET] = BIT(103a),
        [PTX_SM100_103F - PTX_FIRST_SET] = FAMILY(100) | FAMILY(103),
        [PTX_SM100A_103A - PTX_FIRST_SET] = BIT(100a) | BIT(103a),
        [PTX_OWN90 - PTX_FIRST_SET] = BIT(90a) | OWN100,
        [PTX_OWN100 - PTX_FIRST_SET] = OWN100,
        [PTX_SM100F - PTX_FIRST_SET] = FAMILY100,
        [PTX_SM100A_110A - PTX_FIRST_SET] = BIT(100a) | BIT(101a) | BIT(110a),
        [PTX_SM100A_103A_110A - PTX_FIRST_SET] = BIT(100a) | BIT(101a) | BIT(103a) | BIT(110a),
        [PTX_SM103F_110F - PTX_FIRST_SET] = FAMILY(101) | FAMILY(103) | FAMILY(110),
        [PTX_SM120F - PTX_FIRST_SET] = FAMILY(120) | FAMILY(121),
        [PTX_SM120A - PTX_FIRST_SET] = BIT(120a) | BIT(121a),
        [PTX_SM100F_120A - PTX_FIRST_SET] = FAMILY100 | BIT(120a) | BIT(121a),
    };
    if (sm >= PTX_FIRST_SET)
        return sets[sm - PTX_FIRST_SET];
    uint64_t set = 0;
    for (size_t i = 0; i < KR_COUNT(targets); i++)
        if (targets[i].sm >= sm)
            set |= 1ull << i;
    return set;
}

uint64_t kr__ptx_targets_at(int isa)
{
    uint64_t set = 0;
    for (size_t i = 0; i < KR_COUNT(targets); i++)
        if (targets[i].isa <= isa)
            set |= 1ull << i;
    return set;
}

const char *kr__ptx_lowest_target(uint64_t set, int *sm)
{
    for (size_t i = 0; i < KR_COUNT(targets); i++)
        if (set >> i & 1) {
            *sm = targets[i].sm;
            return targets[i].name;
        }
    return NULL;
}

/* ---- modifiers and instructions ---- */

const ptx_modifier kr__ptx_modifiers[] = {
#define PTX_MODIFIER_SINCE(text, kind, value, isa, sm, feature) \
    {text, PTX_KIND_##kind, isa, sm, value, feature},
#define PTX_MODIFIER(text, kind, value) PTX_MODIFIER_SINCE(text, kind, value, 0, 0, NULL)
#define PTX_FLAG_MODIFIER(text, flag) {text, 0, 0, 0, flag, NULL},
#include "ptx/front/modifiers.def"
#undef PTX_MODIFIER
#undef PTX_MODIFIER_SINCE
#undef PTX_FLAG_MODIFIER
};
const size_t kr__ptx_n_modifiers = KR_COUNT(kr__ptx_modifiers);

const char *kr__ptx_modifier_text(ptx_set set)
{
    for (size_t i = 0; i < kr__ptx_n_modifiers; i++) {
        const ptx_modifier *row = &kr__ptx_modifiers[i];
        if (set & (row->kind ? (ptx_set)1 << row->kind : row->value))
            return row->text;
    }
    return "";
}

const char *kr__ptx_value_text(uint8_t kind, uint8_t value)
{
    const uint8_t of = kind == PTX_KIND_SPACES    ? PTX_KIND_SPACE
                       : kind == PTX_KIND_FORMATS ? PTX_KIND_FORMAT
                                                  : kind;
    for (size_t i = 0; i < kr__ptx_n_modifiers; i++)
        if (kr__ptx_modifiers[i].kind == of && kr__ptx_modifiers[i].value == value)
            return kr__ptx_modifiers[i].text;
    return "";
}

const char *kr__ptx_order_name(ptx_order order)
{
    static const char *const names[] = {"",        "weak",    "volatile", "relaxed", "acquire",
                                        "release", "acq_rel", "sc",       "mmio"};
    return (unsigned)order < KR_COUNT(names) ? names[order] : "";
}
