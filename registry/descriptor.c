/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/descriptor.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * The lines are collected first and then read keyword by keyword in the order of the table at the end of
 * this file, so that a descriptor may have its lines in any order.
 */

enum { MAX_LINES = 64, MAX_WORDS = 24 };

typedef struct line {
    unsigned number;              /* in the file, from 1 */
    const char *rest;             /* after the keyword, trimmed */
    const char *words[MAX_WORDS]; /* words[0] is the keyword */
    size_t n_words;
} line;

typedef struct reader {
    kr__op_def *def;
    kr_error *err;
    const char *form; /* of the line being read, for the advice */
    const line *at;
    bool rule_for_all;                 /* a launch line without a variant was read */
    bool own_rule[KR_MAX_OP_VARIANTS]; /* one for that variant was */
    line lines[MAX_LINES];
    size_t n_lines;
} reader;

static void list_keywords(char *to, size_t bytes);

static kr_status wrong(reader *r, const char *format, ...) KR_PRINTF(2, 3);
static kr_status wrong(reader *r, const char *format, ...)
{
    char what[512], names[128];
    va_list args;
    va_start(args, format);
    kr__format_list(what, sizeof what, format, args);
    va_end(args);
    list_keywords(names, sizeof names);
    KR_FAIL(r->err, KR_INVALID_ARGUMENT, "%s:%u: %s", r->def->op.file, r->at ? r->at->number : 1, what);
    if (r->form)
        kr__error_advice(r->err, "The line's form is: //! %s", r->form);
    else
        kr__error_advice(r->err, "The lines of a descriptor are //! %s.", names);
    return KR_INVALID_ARGUMENT;
}

static kr_status no_memory(reader *r)
{
    return KR_FAIL(r->err, KR_OUT_OF_HOST_MEMORY, "no host memory to read the descriptor of %s",
                   r->def->op.file);
}

/* ---- words ---- */

static bool is_identifier(const char *text)
{
    if (!isalpha((unsigned char)*text) && *text != '_')
        return false;
    while (isalnum((unsigned char)*text) || *text == '_')
        text++;
    return !*text;
}

static kr_status check_name(reader *r, const char *what, const char *name)
{
    if (!is_identifier(name))
        return wrong(r, "the %s \"%s\" is not a C identifier", what, name);
    if (strlen(name) > KR__MAX_NAME)
        return wrong(r, "the %s \"%s\" has %zu characters; the most is %d", what, name, strlen(name),
                     KR__MAX_NAME);
    return KR_OK;
}

/* Whole decimal number from 1 to `most`; 0: not one. */
static uint64_t read_number(const char *text, uint64_t most)
{
    uint64_t value = 0;
    if (!*text)
        return 0;
    for (; *text; text++)
        if (!isdigit((unsigned char)*text) || __builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, (uint64_t)(*text - '0'), &value) || value > most)
            return 0;
    return value;
}

/* "32x8" into dims; the others become 1. Returns how many there were; 0: malformed. */
static size_t read_dims(const char *text, unsigned dims[3])
{
    dims[0] = dims[1] = dims[2] = 1;
    for (size_t n = 0; n < 3; n++) {
        char part[16];
        const size_t bytes = strcspn(text, "x");
        if (bytes >= sizeof part)
            return 0;
        memcpy(part, text, bytes);
        part[bytes] = '\0';
        if (!(dims[n] = (unsigned)read_number(part, 1u << 30)))
            return 0;
        if (!text[bytes])
            return n + 1;
        text += bytes + 1;
    }
    return 0;
}

/* The value of "key=value", or NULL where the word is another. */
static const char *value_of(const char *word, const char *key)
{
    const size_t bytes = strlen(key);
    return strncmp(word, key, bytes) ? NULL : word + bytes;
}

static bool find_type(const char *name, size_t bytes, kr_type *ret_type)
{
    static const struct {
        const char *name;
        kr_type type;
    } types[] = {
#define TYPE_ROW(type, text, size) {text, type},
        KR_TYPE_LIST(TYPE_ROW)
#undef TYPE_ROW
    };
    for (size_t i = 0; i < KR_COUNT(types); i++)
        if (strlen(types[i].name) == bytes && !memcmp(types[i].name, name, bytes)) {
            *ret_type = types[i].type;
            return true;
        }
    return false;
}

typedef enum allowed { PLAIN = 0, WITH_GRID = 1, WITH_SIZEOF = 2 } allowed;

static kr_status read_expression(reader *r, const char *text, size_t bytes, allowed may,
                                 const kr__expression **ret_expression)
{
    kr__problem problem;
    const kr__expression *e = kr__expression_parse(&r->def->arena, &r->def->op, text, bytes, problem);
    if (!e)
        return wrong(r, "%s", problem);
    if (e->uses_grid && !(may & WITH_GRID))
        return wrong(r, "\"%s\": only the shape of a work argument may use grid", e->text);
    if (e->uses_sizeof && !(may & WITH_SIZEOF))
        return wrong(r, "\"%s\": a shape counts elements, so sizeof(T) has no place in it", e->text);
    if (e->uses_sizeof && !r->def->op.n_types)
        return wrong(r, "\"%s\" names T, but the op has no types line", e->text);
    *ret_expression = e;
    return KR_OK;
}

/* ---- one function a keyword ---- */

static kr_status read_op(reader *r)
{
    if (r->at->n_words != 2)
        return wrong(r, "op takes one name, not %zu words", r->at->n_words - 1);
    r->def->op.name = r->at->words[1];
    return check_name(r, "op name", r->at->words[1]);
}

static kr_status read_text(reader *r, const char **to)
{
    if (!*r->at->rest)
        return wrong(r, "%s has no text", r->at->words[0]);
    *to = r->at->rest;
    return KR_OK;
}

static kr_status read_brief(reader *r)
{
    return read_text(r, &r->def->op.brief);
}

static kr_status read_source(reader *r)
{
    return read_text(r, &r->def->op.source);
}

static kr_status read_types(reader *r)
{
    kr_op *op = &r->def->op;
    const line *l = r->at;
    if (l->n_words < 4 || strcmp(l->words[1], "T") || strcmp(l->words[2], "="))
        return wrong(r, "\"%s\" is not a list of types", l->rest);
    for (size_t i = 3; i < l->n_words; i++) {
        kr_type type;
        if (!find_type(l->words[i], strlen(l->words[i]), &type))
            return wrong(r, "there is no type \"%s\"", l->words[i]);
        for (size_t j = 0; j < op->n_types; j++)
            if (op->types[j] == type)
                return wrong(r, "the type %s is listed twice", l->words[i]);
        if (op->n_types == KR_MAX_OP_TYPES)
            return wrong(r, "more than %d types", KR_MAX_OP_TYPES);
        op->types[op->n_types++] = type;
    }
    return KR_OK;
}

static kr_status read_arg_type(reader *r, size_t i, const char *word, const char *bracket)
{
    kr_op_arg *arg = &r->def->op.args[i];
    const size_t bytes = bracket ? (size_t)(bracket - word) : strlen(word);
    arg->type = kr__arena_text(&r->def->arena, word, bytes);
    if (!arg->type)
        return no_memory(r);
    if (!strcmp(arg->type, "T")) {
        r->def->arg_is_t[i] = true;
        return r->def->op.n_types ? KR_OK
                                  : wrong(r, "argument \"%s\" is T, but the op has no types line", arg->name);
    }
    if (!find_type(word, bytes, &r->def->arg_types[i]))
        return wrong(r, "there is no type \"%s\"", arg->type);
    return KR_OK;
}

static kr_status read_arg_shape(reader *r, size_t i, const char *bracket)
{
    const size_t bytes = strlen(bracket);
    if (bracket[bytes - 1] != ']')
        return wrong(r, "']' is missing after \"%s\" (a shape has no blanks)", bracket);
    const allowed may = r->def->op.args[i].role == KR_ROLE_WORK ? WITH_GRID : PLAIN;
    if (read_expression(r, bracket + 1, bytes - 2, may, &r->def->shapes[i]))
        return KR_INVALID_ARGUMENT;
    r->def->op.args[i].shape = r->def->shapes[i]->text;
    return KR_OK;
}

static kr_status read_role(reader *r, size_t i, const char *word)
{
    static const char *const names[] = {"size", "in", "out", "inout", "work"}; /* by kr_arg_role */
    kr_op_arg *arg = &r->def->op.args[i];
    const char *minimum = value_of(word, "size>=");
    if (minimum) {
        if (read_expression(r, minimum, strlen(minimum), PLAIN, &r->def->minimums[i]))
            return KR_INVALID_ARGUMENT;
        arg->minimum = r->def->minimums[i]->text;
        arg->role = KR_ROLE_SIZE;
        return KR_OK;
    }
    for (size_t role = 0; role < KR_COUNT(names); role++)
        if (!strcmp(word, names[role])) {
            arg->role = (kr_arg_role)role;
            return KR_OK;
        }
    return wrong(r, "there is no role \"%s\"", word);
}

static kr_status check_arg(reader *r, size_t i)
{
    const kr_op_arg *arg = &r->def->op.args[i];
    const kr_type type = r->def->arg_types[i];
    const bool is_unsigned = !r->def->arg_is_t[i] && (type == KR_TYPE_U8 || type == KR_TYPE_U16 ||
                                                      type == KR_TYPE_U32 || type == KR_TYPE_U64);
    if (arg->role == KR_ROLE_SIZE && (arg->shape || !is_unsigned))
        return wrong(r, "size \"%s\" is not an unsigned integer scalar", arg->name);
    if (arg->role != KR_ROLE_SIZE && arg->role != KR_ROLE_IN && !arg->shape)
        return wrong(r, "\"%s\" is written by the kernel but is a scalar", arg->name);
    return KR_OK;
}

static kr_status read_arg(reader *r)
{
    kr_op *op = &r->def->op;
    const line *l = r->at;
    const size_t i = op->n_args;
    if (l->n_words != 4)
        return wrong(r, "an argument has a name, a type and a role, not %zu words", l->n_words - 1);
    if (i == KR_MAX_OP_ARGS)
        return wrong(r, "more than %d arguments", KR_MAX_OP_ARGS);
    kr_op_arg *arg = &op->args[i];
    arg->name = l->words[1];
    if (check_name(r, "argument name", arg->name))
        return KR_INVALID_ARGUMENT;
    static const char *const reserved[] = {"T", "ceil", "grid", "sizeof"};
    for (size_t k = 0; k < KR_COUNT(reserved); k++)
        if (!strcmp(arg->name, reserved[k]))
            return wrong(r, "\"%s\" means something else in expressions", arg->name);
    for (size_t k = 0; k < i; k++)
        if (!strcmp(arg->name, op->args[k].name))
            return wrong(r, "there are two arguments \"%s\"", arg->name);
    const char *bracket = strchr(l->words[2], '[');
    kr_status status = KR_OK;
    if ((status = read_role(r, i, l->words[3])) || (status = read_arg_type(r, i, l->words[2], bracket)) ||
        (bracket && (status = read_arg_shape(r, i, bracket))) || (status = check_arg(r, i)))
        return status;
    op->n_args++;
    return KR_OK;
}

static kr_status read_cc(reader *r, const char *text, kr_cc *ret_cc)
{
    kr_cc cc;
    if (kr_cc_parse(text, &cc, NULL) || cc.suffix)
        return wrong(r, "\"%s\" is not a compute capability like 9.0", text);
    *ret_cc = cc;
    return KR_OK;
}

static kr_status read_target(reader *r, const char *text, kr_cc *ret_cc)
{
    kr_cc cc;
    if (kr_cc_parse(text, &cc, NULL) || !cc.suffix)
        return wrong(r, "cc=%s is no target with its letter, like cc=9.0a or cc=10.0f", text);
    *ret_cc = cc;
    return KR_OK;
}

static kr_status read_driver(reader *r, const char *text, int *ret_version)
{
    const char *dot = strchr(text, '.');
    char major[4] = "";
    if (dot && dot - text < (ptrdiff_t)sizeof major)
        memcpy(major, text, (size_t)(dot - text));
    const uint64_t whole = read_number(major, 999);
    if (!whole || strlen(dot) != 2 || dot[1] < '0' || dot[1] > '9')
        return wrong(r, "driver>=%s is not a CUDA version like 12.4", text);
    *ret_version = (int)whole * 1000 + (dot[1] - '0') * 10;
    return KR_OK;
}

static kr_status read_requirement(reader *r, const char *word, kr__variant *variant)
{
    const char *value;
    if ((value = value_of(word, "cc>=")))
        return read_cc(r, value, &variant->least_cc);
    if ((value = value_of(word, "cc<")))
        return read_cc(r, value, &variant->below_cc);
    if ((value = value_of(word, "cc=")))
        return read_target(r, value, &variant->target);
    if ((value = value_of(word, "driver>=")))
        return read_driver(r, value, &variant->least_driver);
    if ((value = value_of(word, "align="))) {
        const uint64_t bytes = variant->align_bytes = read_number(value, 4096);
        return bytes && !(bytes & (bytes - 1)) ? KR_OK
                                               : wrong(r, "align=%s is not a power of two up to 4096", value);
    }
    if ((value = value_of(word, "shared>=")))
        return (variant->shared_bytes = read_number(value, 1u << 30))
                   ? KR_OK
                   : wrong(r, "shared>=%s is not a number of bytes", value);
    return wrong(r, "there is no requirement \"%s\"", word);
}

static kr_status read_variant(reader *r)
{
    kr_op *op = &r->def->op;
    const line *l = r->at;
    if (l->n_words < 2)
        return wrong(r, "a variant has a name");
    if (op->n_variants == KR_MAX_OP_VARIANTS)
        return wrong(r, "more than %d variants", KR_MAX_OP_VARIANTS);
    kr_op_variant *variant = &op->variants[op->n_variants];
    variant->name = l->words[1];
    variant->requirements = l->rest + strlen(variant->name);
    variant->requirements += strspn(variant->requirements, " \t");
    if (check_name(r, "variant name", variant->name))
        return KR_INVALID_ARGUMENT;
    for (size_t k = 0; k < op->n_variants; k++)
        if (!strcmp(variant->name, op->variants[k].name))
            return wrong(r, "there are two variants \"%s\"", variant->name);
    for (size_t k = 2; k < l->n_words; k++)
        if (read_requirement(r, l->words[k], &r->def->variants[op->n_variants]))
            return KR_INVALID_ARGUMENT;
    op->n_variants++;
    return KR_OK;
}

static kr_status read_count(reader *r, const char *key, const char *value, uint64_t most, unsigned *to)
{
    *to = (unsigned)read_number(value, most);
    return *to ? KR_OK
               : wrong(r, "%s%s is not a number from 1 to %llu", key, value, (unsigned long long)most);
}

static kr_status read_rule_option(reader *r, const char *word, kr__launch_rule *rule)
{
    const bool tiles = rule->kind == KR__LAUNCH_TILES;
    const char *value;
    if ((value = value_of(word, "shared=")))
        return read_expression(r, value, strlen(value), WITH_SIZEOF, &rule->shared);
    if ((value = value_of(word, "block="))) {
        const size_t n = read_dims(value, rule->block);
        if (n != rule->n_extents)
            return wrong(r, "block=%s has not %zu dimension%s", value, rule->n_extents, tiles ? "s" : "");
        const uint64_t threads = (uint64_t)rule->block[0] * rule->block[1] * rule->block[2];
        return threads <= 1024 ? KR_OK : wrong(r, "block=%s is more than 1024 threads", value);
    }
    if (tiles && (value = value_of(word, "tile=")))
        return read_dims(value, rule->tile) == rule->n_extents
                   ? KR_OK
                   : wrong(r, "tile=%s has not %zu dimensions", value, rule->n_extents);
    if (!tiles && (value = value_of(word, "per_thread=")))
        return read_count(r, "per_thread=", value, 1024, &rule->per_thread);
    if (!tiles && (value = value_of(word, "waves=")))
        return read_count(r, "waves=", value, 1 << 20, &rule->waves);
    return wrong(r, "\"%s\" is no option of %s", word, tiles ? "tiles" : "elementwise");
}

/* words[from] is "elementwise" or "tiles". */
static kr_status read_rule(reader *r, size_t from, kr__launch_rule *rule)
{
    const line *l = r->at;
    const char *name = from < l->n_words ? l->words[from] : "";
    const bool tiles = !strcmp(name, "tiles");
    if (!tiles && strcmp(name, "elementwise"))
        return wrong(r, "there is no launch rule \"%s\"", name);
    *rule = (kr__launch_rule){
        .kind = tiles ? KR__LAUNCH_TILES : KR__LAUNCH_ELEMENTWISE, .per_thread = 1, .waves = 64};
    size_t i = from + 1;
    for (; i < l->n_words && !strchr(l->words[i], '='); i++) {
        if (rule->n_extents == (tiles ? 3 : 1))
            return wrong(r, "%s has too many extents", name);
        if (read_expression(r, l->words[i], strlen(l->words[i]), PLAIN, &rule->extents[rule->n_extents++]))
            return KR_INVALID_ARGUMENT;
    }
    if (rule->n_extents < (tiles ? 2 : 1))
        return wrong(r, "%s has too few extents", name);
    for (; i < l->n_words; i++)
        if (read_rule_option(r, l->words[i], rule))
            return KR_INVALID_ARGUMENT;
    if (tiles && (!rule->tile[0] || !rule->block[0]))
        return wrong(r, "tiles needs tile= and block=");
    return KR_OK;
}

static kr_status read_launch(reader *r)
{
    const kr_op *op = &r->def->op;
    const line *l = r->at;
    const char *colon = l->n_words > 1 ? strchr(l->words[1], ':') : NULL;
    kr__launch_rule rule;
    if (read_rule(r, colon ? 2 : 1, &rule))
        return KR_INVALID_ARGUMENT;
    if (!colon) {
        if (r->rule_for_all)
            return wrong(r, "there is a launch line for all variants already");
        r->rule_for_all = true;
        for (size_t i = 0; i < op->n_variants; i++)
            if (!r->own_rule[i])
                r->def->variants[i].launch = rule;
        return KR_OK;
    }
    const size_t bytes = (size_t)(colon - l->words[1]);
    for (size_t i = 0; i < op->n_variants; i++)
        if (strlen(op->variants[i].name) == bytes && !memcmp(op->variants[i].name, l->words[1], bytes)) {
            if (r->own_rule[i])
                return wrong(r, "there is a launch line for variant \"%s\" already", op->variants[i].name);
            r->own_rule[i] = true;
            r->def->variants[i].launch = rule;
            return KR_OK;
        }
    return wrong(r, "there is no variant \"%.*s\"", (int)bytes, l->words[1]);
}

static kr_status read_compare(reader *r)
{
    const line *l = r->at;
    const bool exact = l->n_words == 2 && !strcmp(l->words[1], "exact");
    const bool counted = l->n_words == 3 &&
                         (!strcmp(l->words[1], "ulp") || !strcmp(l->words[1], "condition")) &&
                         read_number(l->words[2], 1 << 20);
    if (!exact && !counted)
        return wrong(r, "\"%s\" is no promise", l->rest);
    r->def->op.compare = l->rest;
    return KR_OK;
}

static kr_status read_cost(reader *r)
{
    const line *l = r->at;
    kr__op_def *def = r->def;
    for (size_t i = 1; i < l->n_words; i++) {
        const char *bytes = value_of(l->words[i], "bytes="), *flops = value_of(l->words[i], "flops=");
        if (!bytes && !flops)
            return wrong(r, "\"%s\" is neither bytes= nor flops=", l->words[i]);
        const char *value = bytes ? bytes : flops;
        if (read_expression(r, value, strlen(value), WITH_SIZEOF,
                            bytes ? &def->cost_bytes : &def->cost_flops))
            return KR_INVALID_ARGUMENT;
    }
    return def->cost_bytes || def->cost_flops ? KR_OK : wrong(r, "cost names neither bytes= nor flops=");
}

/* Every buffer is either cut along the split size or the same for every device. */
static kr_status check_split(reader *r)
{
    const kr_op *op = &r->def->op;
    const kr__split *split = &r->def->split;
    for (size_t i = 0; i < op->n_args; i++) {
        const kr_op_arg *arg = &op->args[i];
        if (!arg->shape || arg->role == KR_ROLE_WORK ||
            kr__expression_is_cut_by(r->def->shapes[i], split->size_arg))
            continue;
        if (kr__expression_names(r->def->shapes[i], split->size_arg))
            return wrong(r, "%s[%s] cannot be cut by %s: its shape is not %s*...", arg->name, arg->shape,
                         op->split, op->split);
        if (arg->role != KR_ROLE_IN && !split->combine_add)
            return wrong(r, "%s[%s] is not cut by %s and is written: combine=add is missing", arg->name,
                         arg->shape, op->split);
    }
    return KR_OK;
}

static kr_status read_split(reader *r)
{
    kr_op *op = &r->def->op;
    const line *l = r->at;
    if (l->n_words < 2)
        return wrong(r, "split names a size");
    for (size_t i = 0; i < op->n_args && !op->split; i++)
        if (op->args[i].role == KR_ROLE_SIZE && !strcmp(op->args[i].name, l->words[1])) {
            op->split = op->args[i].name;
            r->def->split.size_arg = i;
        }
    if (!op->split)
        return wrong(r, "there is no size \"%s\"", l->words[1]);
    for (size_t i = 2; i < l->n_words; i++) {
        const char *halo = value_of(l->words[i], "halo=");
        if (halo && !(r->def->split.halo = read_number(halo, 1 << 20)))
            return wrong(r, "halo=%s is not a number of rows", halo);
        if (!strcmp(l->words[i], "combine=add"))
            r->def->split.combine_add = true;
        else if (!halo)
            return wrong(r, "\"%s\" is neither halo= nor combine=add", l->words[i]);
    }
    return check_split(r);
}

/* In reading order: what a row's lines name is read before them. */
static const struct keyword {
    const char *name, *form;
    size_t least, most;
    kr_status (*read)(reader *);
} keywords[] = {
    {"op", "op NAME", 1, 1, read_op},
    {"brief", "brief TEXT", 1, 1, read_brief},
    {"source", "source TEXT", 1, 1, read_source},
    {"types", "types T = f32 f64 ...", 0, 1, read_types},
    {"arg", "arg NAME TYPE ROLE (TYPE: T, u64, T[n]; ROLE: size, size>=EXPR, in, out, inout, work)", 1,
     KR_MAX_OP_ARGS, read_arg},
    {"variant", "variant NAME cc>=X.Y cc<X.Y cc=X.Ya driver>=X.Y align=BYTES shared>=BYTES", 1,
     KR_MAX_OP_VARIANTS, read_variant},
    {"launch",
     "launch [VARIANT:] elementwise EXPR [per_thread=K] [waves=W] [block=B] [shared=EXPR] or "
     "launch [VARIANT:] tiles X Y [Z] tile=TXxTY block=BXxBY [shared=EXPR]",
     1, KR_MAX_OP_VARIANTS + 1, read_launch},
    {"compare", "compare exact, compare ulp K or compare condition K", 1, 1, read_compare},
    {"cost", "cost [bytes=EXPR] [flops=EXPR]", 0, 1, read_cost},
    {"split", "split SIZE [halo=K] [combine=add]", 0, 1, read_split},
};

static void list_keywords(char *to, size_t bytes)
{
    to[0] = '\0';
    for (size_t i = 0; i < KR_COUNT(keywords); i++)
        kr__append(to, bytes, "%s%s", i ? ", " : "", keywords[i].name);
}

/* ---- the whole ---- */

static kr_status split_words(reader *r, line *l, const char *text, size_t bytes)
{
    char *copy = kr__arena_text(&r->def->arena, text, bytes);
    char *words = kr__arena_text(&r->def->arena, text, bytes);
    if (!copy || !words)
        return no_memory(r);
    char *place = NULL;
    for (char *word = strtok_r(words, " \t", &place); word; word = strtok_r(NULL, " \t", &place)) {
        if (l->n_words == MAX_WORDS)
            return wrong(r, "more than %d words", MAX_WORDS);
        l->words[l->n_words++] = word;
    }
    l->rest = copy + strspn(copy, " \t");
    if (l->n_words)
        l->rest += strlen(l->words[0]);
    l->rest += strspn(l->rest, " \t");
    return KR_OK;
}

static kr_status collect_lines(reader *r)
{
    unsigned number = 0;
    for (const char *at = r->def->text, *end; *at; at = end + (*end == '\n')) {
        number++;
        end = at + strcspn(at, "\n");
        if (strncmp(at, "//!", 3))
            continue;
        const char *stop = end;
        while (stop > at + 3 && isspace((unsigned char)stop[-1]))
            stop--;
        line *l = &r->lines[r->n_lines];
        r->at = &(line){.number = number};
        if (r->n_lines == MAX_LINES)
            return wrong(r, "more than %d lines of descriptor", MAX_LINES);
        *l = (line){.number = number};
        const kr_status status = split_words(r, l, at + 3, (size_t)(stop - at - 3));
        if (status)
            return status;
        if (!l->n_words)
            continue;
        bool known = false;
        for (size_t k = 0; k < KR_COUNT(keywords) && !known; k++)
            known = !strcmp(l->words[0], keywords[k].name);
        if (!known)
            return wrong(r, "there is no line \"%s\"", l->words[0]);
        r->n_lines++;
    }
    r->at = NULL;
    return r->n_lines ? KR_OK : wrong(r, "there is no descriptor: no line begins with //!");
}

static kr_status read_keyword(reader *r, const struct keyword *k)
{
    size_t n = 0;
    r->form = k->form;
    for (size_t i = 0; i < r->n_lines; i++) {
        if (strcmp(r->lines[i].words[0], k->name))
            continue;
        r->at = &r->lines[i];
        if (++n > k->most)
            return k->most == 1 ? wrong(r, "there is a second %s line", k->name)
                                : wrong(r, "more than %zu %s lines", k->most, k->name);
        const kr_status status = k->read(r);
        if (status)
            return status;
    }
    r->at = &r->lines[0];
    return n >= k->least ? KR_OK : wrong(r, "there is no %s line", k->name);
}

static kr_status read_all(reader *r)
{
    kr_status status = collect_lines(r);
    for (size_t k = 0; k < KR_COUNT(keywords) && !status; k++)
        status = read_keyword(r, &keywords[k]);
    if (status)
        return status;
    for (size_t i = 0; i < r->def->op.n_variants; i++)
        if (r->def->variants[i].launch.kind == KR__LAUNCH_NONE)
            return wrong(r, "variant \"%s\" has no launch rule", r->def->op.variants[i].name);
    return KR_OK;
}

static kr_status no_source(reader *r, const char *what, const char *advice)
{
    wrong(r, "%s", what);
    kr__error_advice(r->err, "%s", advice);
    return KR_INVALID_ARGUMENT;
}

/* NVRTC, the host compiler and the readers of messages must agree on what the bytes say. */
static kr_status check_text(reader *r, const char *text, size_t bytes)
{
    if (bytes >= 3 && !memcmp(text, "\xef\xbb\xbf", 3))
        return no_source(r, "the file begins with a byte-order mark (EF BB BF)",
                         "Save it as UTF-8 without the mark.");
    if (memchr(text, '\0', bytes))
        return no_source(r, "the file holds a zero byte; it is no source text",
                         "Give a .cu file; a pack goes to kr_registry_add_pack_file.");
    if (kr__is_like_a_path(text, bytes) && (bytes < 3 || memcmp(text, "//!", 3) != 0))
        return no_source(r, "the text looks like a file name",
                         "Name the file to kr_registry_add_file, or give its text.");
    const size_t good = kr__utf8_good(text, bytes);
    if (good == bytes)
        return KR_OK;
    line where = {.number = 1};
    for (size_t i = 0; i < good; i++)
        where.number += text[i] == '\n';
    r->at = &where;
    wrong(r, "the byte %02X is not UTF-8", (unsigned char)text[good]);
    kr__error_advice(r->err, "Save the file as UTF-8.");
    return KR_INVALID_ARGUMENT;
}

kr_status kr__op_parse(const char *file, const char *text, size_t text_bytes, kr__op_def **ret_def,
                       kr_error *err)
{
    kr__op_def *def = kr__alloc(1, sizeof *def, err);
    reader *r = def ? kr__alloc(1, sizeof *r, err) : NULL;
    if (!r) {
        free(def);
        return KR_OUT_OF_HOST_MEMORY;
    }
    *r = (reader){.def = def, .err = err};
    def->op.file = kr__arena_text(&def->arena, file, strlen(file));
    def->text = kr__arena_text(&def->arena, text, text_bytes);
    def->text_bytes = text_bytes;
    kr_status status = KR_OK;
    if (!def->op.file || !def->text)
        status =
            KR_FAIL(err, KR_OUT_OF_HOST_MEMORY, "no host memory for the %zu bytes of %s", text_bytes, file);
    else if (!(status = check_text(r, text, text_bytes)))
        status = read_all(r);
    free(r);
    if (status)
        kr__op_free(&def);
    else
        *ret_def = def;
    return status;
}

void kr__op_free(kr__op_def **def)
{
    if (!def || !*def)
        return;
    kr__arena_free(&(*def)->arena);
    free(*def);
    *def = NULL;
}

char *kr__op_full_name(const kr_op *op, size_t type_index, char name[KR__MAX_FULL_NAME])
{
    if (op->n_types)
        kr__format(name, KR__MAX_FULL_NAME, "%s.%s", op->name, kr_type_name(op->types[type_index]));
    else
        kr__format(name, KR__MAX_FULL_NAME, "%s", op->name);
    return name;
}

static const char **copy_texts(kr__op_def *def, const char *const *texts, size_t n)
{
    const char **copies = kr__arena_alloc(&def->arena, n * sizeof *copies);
    for (size_t i = 0; copies && i < n; i++)
        if (!(copies[i] = kr__arena_text(&def->arena, texts[i], strlen(texts[i]))))
            return NULL;
    return copies;
}

kr_status kr__op_set_headers(kr__op_def *def, const kr__headers *headers, kr_error *err)
{
    const char **names = copy_texts(def, headers->names, headers->n);
    const char **texts = copy_texts(def, headers->texts, headers->n);
    if (!names || !texts)
        return KR_FAIL(err, KR_OUT_OF_HOST_MEMORY, "no host memory for what %s includes", def->op.file);
    def->headers = (kr__headers){headers->n, names, texts};
    return KR_OK;
}
