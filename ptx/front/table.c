/* SPDX-License-Identifier: Apache-2.0 */
#include "ptx/front/front.h"

#include <string.h>

/* ---- types ---- */

static const struct {
    const char *name;
    uint8_t bytes;
} types[PTX_TYPE_COUNT] = {
    [PTX_NONE] = {"", 0},           [PTX_B8] = {"b8", 1},         [PTX_B16] = {"b16", 2},
    [PTX_B32] = {"b32", 4},         [PTX_B64] = {"b64", 8},       [PTX_B128] = {"b128", 16},
    [PTX_U8] = {"u8", 1},           [PTX_U16] = {"u16", 2},       [PTX_U32] = {"u32", 4},
    [PTX_U64] = {"u64", 8},         [PTX_S8] = {"s8", 1},         [PTX_S16] = {"s16", 2},
    [PTX_S32] = {"s32", 4},         [PTX_S64] = {"s64", 8},       [PTX_F16] = {"f16", 2},
    [PTX_F16X2] = {"f16x2", 4},     [PTX_BF16] = {"bf16", 2},     [PTX_BF16X2] = {"bf16x2", 4},
    [PTX_TF32] = {"tf32", 4},       [PTX_F32] = {"f32", 4},       [PTX_F64] = {"f64", 8},
    [PTX_E4M3] = {"e4m3", 1},       [PTX_E5M2] = {"e5m2", 1},     [PTX_E4M3X2] = {"e4m3x2", 2},
    [PTX_E5M2X2] = {"e5m2x2", 2},   [PTX_U16X2] = {"u16x2", 4},   [PTX_S16X2] = {"s16x2", 4},
    [PTX_PRED] = {"pred", 0},       [PTX_F32X2] = {"f32x2", 8},   [PTX_B1] = {"b1", 1},
    [PTX_U2] = {"u2", 1},           [PTX_S2] = {"s2", 1},         [PTX_U4] = {"u4", 1},
    [PTX_S4] = {"s4", 1},           [PTX_TEXREF] = {"texref", 8}, [PTX_SAMPLERREF] = {"samplerref", 8},
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

static const struct {
    const char *name;
    uint8_t isa;
} targets[] = {
    {"sm_10", 10},   {"sm_11", 10},   {"sm_12", 12},  {"sm_13", 12},   {"sm_20", 23},   {"sm_21", 23},
    {"sm_30", 30},   {"sm_32", 40},   {"sm_35", 31},  {"sm_37", 41},   {"sm_50", 40},   {"sm_52", 41},
    {"sm_53", 42},   {"sm_60", 50},   {"sm_61", 50},  {"sm_62", 50},   {"sm_70", 60},   {"sm_72", 61},
    {"sm_75", 63},   {"sm_80", 70},   {"sm_86", 71},  {"sm_87", 74},   {"sm_88", 73},   {"sm_89", 78},
    {"sm_90", 78},   {"sm_90a", 80},  {"sm_100", 86}, {"sm_100a", 86}, {"sm_100f", 88}, {"sm_101", 86},
    {"sm_101a", 86}, {"sm_101f", 88}, {"sm_103", 88}, {"sm_103a", 88}, {"sm_103f", 88}, {"sm_110", 90},
    {"sm_110a", 90}, {"sm_110f", 90}, {"sm_120", 87}, {"sm_120a", 87}, {"sm_120f", 88}, {"sm_121", 88},
    {"sm_121a", 88}, {"sm_121f", 88},
};

int kr__ptx_target_isa(ptx_text target, int *sm, char *suffix)
{
    for (size_t i = 0; i < KR_COUNT(targets); i++)
        if (equal(target, targets[i].name)) {
            const char *at = targets[i].name + 3;
            for (*sm = 0; *at >= '0' && *at <= '9'; at++)
                *sm = *sm * 10 + (*at - '0');
            *suffix = *at;
            return targets[i].isa;
        }
    return 0;
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
    const uint8_t of = kind == PTX_KIND_SPACES ? PTX_KIND_SPACE : kind;
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
