/* SPDX-License-Identifier: Apache-2.0 */
#include "ptx/front/front.h"

#include <string.h>

/* An instruction's name: ".rn.ftz.f32" into the fields of a ptx_instr. */

#define K(kind) ((ptx_set)1 << PTX_KIND_##kind)

/* These the assembler lets pass wherever they say nothing. */
#define IGNORED (K(TEST) | K(ACC) | K(FIELD) | K(FORMAT))

static ptx_set bit_of(const ptx_modifier *modifier)
{
    return modifier->kind ? (ptx_set)1 << modifier->kind : modifier->value;
}

/* What modifiers of this kind are in a form's eyes: .rn is allowed by K(ROUND) and by K(RN). */
static ptx_set allowing(const ptx_modifier *modifier)
{
    if (modifier->kind != PTX_KIND_ROUND)
        return bit_of(modifier);
    switch (modifier->value) {
    case PTX_RN:
        return K(ROUND) | K(RN);
    case PTX_RZ:
        return K(ROUND) | K(RZ);
    case PTX_RNA:
        return K(RNA);
    case PTX_RS:
        return K(RS);
    default:
        return K(ROUND);
    }
}

/* The meaning of `word` for this instruction; NULL: reported. */
static const ptx_modifier *meaning(ptx_parser *p, ptx_op op, ptx_text word, unsigned line)
{
    const ptx_name *name = kr__ptx_find_name(&p->words->names, word, kr__ptx_hash(word));
    if (!name || name->kind != PTX_NAME_MODIFIER) {
        kr__ptx_error(p, line, "Unknown modifier '%.*s'", (int)word.bytes, word.at);
        return NULL;
    }
    const ptx_modifier *first = &kr__ptx_modifiers[name->index],
                       *end = kr__ptx_modifiers + kr__ptx_n_modifiers;
    for (const ptx_modifier *row = first; row < end && !strcmp(row->text, first->text); row++)
        if (p->words->allowed[op] & allowing(row))
            return row;
    static const ptx_modifier nothing = {.text = ""};
    if (bit_of(first) & IGNORED)
        return &nothing;
    if (first->kind == PTX_KIND_SPACE)
        kr__ptx_error(p, line, "No state space qualifier expected for instruction '%s'",
                      kr__ptx_opcodes[op].name);
    else if (first->kind == PTX_KIND_VECTOR)
        kr__ptx_error(p, line, "Vector qualifier is not allowed for instruction '%s'",
                      kr__ptx_opcodes[op].name);
    else
        kr__ptx_error(p, line, "%s '%.*s' for instruction '%s'",
                      first->kind == PTX_KIND_ROUND || first->kind == PTX_KIND_ROUND_INT
                          ? "Illegal rounding modifier"
                          : "Illegal modifier",
                      (int)word.bytes, word.at, kr__ptx_opcodes[op].name);
    return NULL;
}

/* ".m16n8k8": digits after m, n and k. */
static bool shape(ptx_text word, uint16_t to[3])
{
    static const char letters[] = "mnk";
    size_t at = 1, n = 0;
    for (; n < 3 && at < word.bytes && word.at[at] == letters[n]; n++) {
        unsigned value = 0;
        for (at++; at < word.bytes && word.at[at] >= '0' && word.at[at] <= '9' && value < 1000; at++)
            value = value * 10 + (unsigned)(word.at[at] - '0');
        if (!value)
            return false;
        to[n] = (uint16_t)value;
    }
    return n >= 2 && at == word.bytes;
}

static bool add_type(ptx_instr *instr, ptx_type type)
{
    ptx_type *const slots[] = {&instr->type, &instr->type2, &instr->type3, &instr->type4};
    for (size_t i = 0; i < KR_COUNT(slots); i++)
        if (!*slots[i]) {
            *slots[i] = type;
            return true;
        }
    if (instr->type5)
        return false;
    instr->type5 = (uint8_t)type;
    return true;
}

static ptx_space plain_space(ptx_space written)
{
    return written == PTX_SPACE_SHARED_CTA ? PTX_SPACE_SHARED : written;
}

static void apply(const ptx_modifier *modifier, ptx_set seen, ptx_instr *instr)
{
    switch (modifier->kind) {
    case 0:
        instr->flags |= modifier->value;
        break;
    case PTX_KIND_ROUND:
    case PTX_KIND_ROUND_INT:
        instr->round = (ptx_round)modifier->value;
        break;
    case PTX_KIND_COMPARE:
        instr->compare = (ptx_compare)modifier->value;
        break;
    case PTX_KIND_BOOL:
        instr->boolean = (ptx_bool)modifier->value;
        break;
    case PTX_KIND_SPACE:
        *(seen & K(SPACE) ? &instr->space2 : &instr->space) = plain_space((ptx_space)modifier->value);
        break;
    case PTX_KIND_ORDER:
        if (instr->order != PTX_MMIO)
            instr->order = (ptx_order)modifier->value;
        break;
    case PTX_KIND_MMIO:
        instr->order = PTX_MMIO;
        break;
    case PTX_KIND_SCOPE:
    case PTX_KIND_GL:
        instr->scope = (ptx_scope)modifier->value;
        break;
    case PTX_KIND_VECTOR:
        instr->vector = (uint8_t)modifier->value;
        break;
    case PTX_KIND_SCALE:
    case PTX_KIND_SHIFT:
        instr->scale |= (uint8_t)modifier->value;
        break;
    case PTX_KIND_HINT:
        instr->priority[seen & K(HINT) ? 1 : 0] = (uint8_t)modifier->value;
        break;
    case PTX_KIND_COUNT:
        instr->shape[2] = (uint16_t)modifier->value;
        break;
    case PTX_KIND_LAYOUT:
        instr->layout |= (uint8_t)(modifier->value << (seen & K(LAYOUT) ? 1 : 0));
        break;
    case PTX_KIND_SPARSITY:
        instr->flags |= PTX_SPARSE;
        break;
    case PTX_KIND_KIND:
        instr->kind = (uint8_t)modifier->value;
        break;
    case PTX_KIND_ATOMIC:
    case PTX_KIND_CAS:
    case PTX_KIND_SHUFFLE:
    case PTX_KIND_PERMUTE:
    case PTX_KIND_COPY:
    case PTX_KIND_TEST:
        instr->sub = (ptx_sub)modifier->value;
        break;
    default:
        break;
    }
}

/* What the assembler takes twice. Spaces are counted below. */
#define REPEATABLE                                                                                       \
    (K(SPACE) | PTX_APPROX | PTX_CC | PTX_NAN_FLAG | PTX_RELU | PTX_SAT | PTX_SATFINITE | PTX_SHIFTAMT | \
     PTX_SYNC | PTX_UNI | PTX_UNI_MODE)

/* To the assembler these are a part of the opcode, with nothing between: mul.lo, bar.cta. */
#define OF_OPCODE                                                                                   \
    (PTX_HI | PTX_LO | PTX_WIDE | PTX_LEFT | PTX_RIGHT | PTX_TO | PTX_WARP | PTX_BASE | PTX_LEVEL | \
     PTX_GRAD | PTX_FULL | PTX_PARITY | PTX_EXPECT_TX | PTX_RED | K(PROXY))

/* `so_far`: the modifiers before it. */
static bool is_misplaced(const ptx_modifier *modifier, ptx_op op, ptx_set so_far, bool is_first)
{
    const bool is_bar = op == PTX_OP_BAR || op == PTX_OP_BARRIER;
    if (bit_of(modifier) == K(POPC)) /* .xor.popc */
        return !(so_far & K(ATOMIC));
    if (bit_of(modifier) & OF_OPCODE || (bit_of(modifier) == K(SCOPE) && is_bar))
        return !is_first && !(bit_of(modifier) == PTX_RED && so_far == K(SCOPE));
    return false;
}

/* A second state space, layout, format or priority is of a kind of its own. */
static uint8_t kind_of(const ptx_modifier *modifier, ptx_set seen, ptx_set allowed)
{
    static const uint8_t seconds[PTX_KIND_END] = {[PTX_KIND_SPACE] = PTX_KIND_SPACES,
                                                  [PTX_KIND_LAYOUT] = PTX_KIND_LAYOUTS,
                                                  [PTX_KIND_FORMAT] = PTX_KIND_FORMATS,
                                                  [PTX_KIND_HINT] = PTX_KIND_HINTS};
    const uint8_t kind = modifier->kind, second = seconds[kind];
    return second && (seen & (ptx_set)1 << kind) && (allowed & (ptx_set)1 << second) ? second : kind;
}

/* Of each of these sets one. */
static const ptx_set alternatives[] = {
    PTX_ALL | PTX_ANY | PTX_UNI_MODE | PTX_BALLOT,
    PTX_APPROX | PTX_FULL | K(ROUND),
    PTX_WRAP | PTX_CLAMP,
    PTX_CC | PTX_SAT,
    K(CACHE) | K(CACHE_LOAD) | K(CACHE_STORE),
};

/* With which of those before it the modifier cannot stand; 0: with all. */
static ptx_set rivals(const ptx_modifier *modifier, ptx_set seen)
{
    const ptx_set bit = bit_of(modifier);
    for (size_t i = 0; i < KR_COUNT(alternatives); i++)
        if (alternatives[i] & bit)
            return seen & alternatives[i] & ~bit;
    return 0;
}

static bool repeated(ptx_parser *p, const ptx_modifier *modifier, ptx_set seen, ptx_op op, ptx_text word,
                     unsigned line)
{
    const uint8_t kind = kind_of(modifier, seen, p->words->allowed[op]);
    ptx_set bit = kind && kind != PTX_KIND_SPACES ? (ptx_set)1 << kind : bit_of(modifier);
    if (modifier->kind == PTX_KIND_ROUND || modifier->kind == PTX_KIND_ROUND_INT)
        bit = K(ROUND) | K(ROUND_INT);
    if (!(seen & bit) || (bit & REPEATABLE)) {
        if (modifier->kind == PTX_KIND_SPACE && (seen & bit) &&
            (!(p->words->allowed[op] & K(SPACES)) || (seen & K(SPACES)))) {
            kr__ptx_error(p, line, "Unexpected number of state spaces specified in instruction '%s'",
                          kr__ptx_opcodes[op].name);
            return true;
        }
        return false;
    }
    if (bit & K(ROUND))
        kr__ptx_error(p, line, "Multiple rounding modifiers specified");
    else
        kr__ptx_error(p, line, "Duplicate %.*s modifier", (int)word.bytes, word.at);
    return true;
}

/* ldmatrix and its like have no k, but a count in its place. */
static bool take_shape(ptx_parser *p, ptx_op op, const uint16_t shape[3], unsigned line, ptx_spelling *to)
{
    const bool is_first = !(to->modifiers & K(SHAPE)), is_counted = p->words->allowed[op] & K(COUNT);
    if (!is_first)
        kr__ptx_error(p, line, "Multiple matrix shape modifiers specified");
    else if (is_counted && shape[2])
        kr__ptx_error(p, line, "Illegal matrix shape '.m%un%uk%u' for instruction '%s'", shape[0], shape[1],
                      shape[2], kr__ptx_opcodes[op].name);
    to->modifiers |= K(SHAPE);
    memcpy(to->instr.shape, shape, (is_counted ? 2 : 3) * sizeof *shape);
    return is_first && !(is_counted && shape[2]);
}

/* Where .param may say whose parameters: "::entry", "::func". */
static bool may_say_whose(ptx_op op, const char *whose)
{
    const bool is_entry = !strcmp(whose, "::entry");
    return op == PTX_OP_LD || (is_entry ? op == PTX_OP_CVTA || op == PTX_OP_ISSPACEP : op == PTX_OP_ST);
}

static bool decode_word(ptx_parser *p, ptx_op op, ptx_text word, bool is_first, unsigned line,
                        ptx_spelling *to)
{
    ptx_instr *instr = &to->instr;
    const ptx_type type = kr__ptx_type_named(word);
    if (type) {
        if (add_type(instr, type))
            return true;
        kr__ptx_error(p, line, "Unexpected instruction types specified for '%s'", kr__ptx_opcodes[op].name);
        return false;
    }
    uint16_t written[3] = {0};
    if ((p->words->allowed[op] & K(SHAPE)) && shape(word, written))
        return take_shape(p, op, written, line, to);
    const ptx_modifier *modifier = meaning(p, op, word, line);
    if (!modifier || repeated(p, modifier, to->modifiers, op, word, line))
        return false;
    if (is_misplaced(modifier, op, to->modifiers, is_first)) {
        kr__ptx_error(p, line, "Unknown modifier '%.*s'", (int)word.bytes, word.at);
        return false;
    }
    const ptx_set others = rivals(modifier, to->modifiers);
    if (others) {
        kr__ptx_error(p, line, "Modifier '%.*s' cannot be combined with modifier '.%s'", (int)word.bytes,
                      word.at, kr__ptx_modifier_text(others));
        return false;
    }
    const bool is_param = modifier->kind == PTX_KIND_SPACE && modifier->value == PTX_SPACE_PARAM;
    if (is_param && modifier->feature && !may_say_whose(op, modifier->feature)) {
        kr__ptx_error(p, line, "Illegal modifier '%s' for instruction '%s'", modifier->feature,
                      kr__ptx_opcodes[op].name);
        return false;
    }
    apply(modifier, to->modifiers, instr);
    const uint8_t kind = kind_of(modifier, to->modifiers, p->words->allowed[op]);
    if (kind && kind < PTX_KIND_END && !(to->modifiers & (ptx_set)1 << kind)) /* gcc does not see the bound */
        to->values[kind] = (uint8_t)modifier->value;
    to->modifiers |= kind ? (ptx_set)1 << kind : modifier->value;
    if (op == PTX_OP_CP_ASYNC && modifier->kind == PTX_KIND_SPACE)
        return true; /* it had .shared::cta before the others did */
    return kr__ptx_has(p, line, modifier->feature, modifier->isa, modifier->sm);
}

/* ".rn.f32": its first word, and then the rest. */
static bool next_word(ptx_text *words, ptx_text *word)
{
    ptx_lexer lexer = {.at = words->at, .end = words->at + words->bytes, .word_end = words->at};
    ptx_token token;
    kr__ptx_next_token(&lexer, &token);
    *word = token.text;
    words->at = lexer.at;
    words->bytes = (size_t)(lexer.end - lexer.at);
    return token.kind == PTX_TOKEN_DOTTED;
}

void kr__ptx_decode_unknown(ptx_parser *p, ptx_text words, unsigned line)
{
    for (ptx_text word; next_word(&words, &word);) {
        const ptx_name *name = kr__ptx_find_name(&p->words->names, word, kr__ptx_hash(word));
        if (!name && !kr__ptx_type_named(word))
            kr__ptx_error(p, line, "Unknown modifier '%.*s'", (int)word.bytes, word.at);
    }
}

bool kr__ptx_decode(ptx_parser *p, ptx_op op, ptx_text words, unsigned line, ptx_spelling *to)
{
    to->row = to->instr.op = op;
    to->instr.vector = 1;
    bool ok = true, is_first = true;
    for (ptx_text word; next_word(&words, &word); is_first = false)
        ok &= decode_word(p, op, word, is_first, line, to);
    if (op == PTX_OP_BARRIER)
        to->instr.op = PTX_OP_BAR;
    else if (op == PTX_OP_BAR && !(to->instr.flags & PTX_WARP))
        to->instr.flags |= PTX_ALIGNED;
    return ok;
}
