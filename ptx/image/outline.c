/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The declarations of PTX text: kernels with their parameters and bounds, variables. What is inside of bodies
 * is passed over unread, so that this takes PTX of any version, new instructions and all, and takes it
 * quickly.
 */
#include "ptx/image/image.h"

#include <stdlib.h>
#include <string.h>

#include "ptx/image/scan.h"

typedef struct word {
    const char *at;
    size_t n; /* 0: the end of the text */
} word;

typedef struct scanner {
    const char *begin, *at, *end;
    word next; /* the current word */
    bool is_extern;
    kr__ptx_outline *outline;
    kr_status status; /* once it is an error nothing moves any more: `next` is the end */
    kr_error *err;
} scanner;

/* ---- words ---- */

/* The first thing that is wrong ends the reading. */
static void fail(scanner *s, const char *at, const char *expected)
{
    char found[40] = "the end of the text";
    if (at < s->end && (unsigned char)*at > ' ' && (unsigned char)*at < 0x7f)
        kr__format(found, sizeof found, "\"%.*s\"", at == s->next.at && s->next.n ? (int)s->next.n : 1, at);
    else if (at < s->end)
        kr__format(found, sizeof found, "the byte 0x%02x", (unsigned char)*at);
    if (!s->status)
        s->status = KR_FAIL(s->err, KR_CORRUPT, "PTX: %s was expected at offset %zu (line %zu), not %s",
                            expected, (size_t)(at - s->begin), kr__scan_line(s->begin, at), found);
    s->at = s->end;
    s->next = (word){s->end, 0};
}

static void fail_memory(scanner *s, const char *what)
{
    if (!s->status)
        s->status = KR_FAIL(s->err, KR_OUT_OF_HOST_MEMORY, "no memory for %s of PTX", what);
    s->at = s->end;
    s->next = (word){s->end, 0};
}

/* At what is no PTX: a byte, or the beginning of what is not closed. */
static void fail_text(scanner *s, const char *at)
{
    if (*at == '"')
        fail(s, s->end, "the \" of a string");
    else if (*at == '/')
        fail(s, s->end, "the */ of a comment");
    else
        fail(s, at, "a word");
}

static void advance(scanner *s)
{
    const char *at = kr__scan_blanks(s->at, s->end);
    s->at = kr__scan_token(at, s->end);
    s->next = (word){at, (size_t)(s->at - at)};
    if (s->at == at && at < s->end)
        fail_text(s, at);
}

static bool is(const scanner *s, const char *text)
{
    return kr__scan_is(s->next.at, s->next.at + s->next.n, text);
}

static bool is_end(const scanner *s)
{
    return s->next.n == 0;
}

static bool take(scanner *s, const char *text)
{
    const bool found = is(s, text);
    if (found)
        advance(s);
    return found;
}

static void expect(scanner *s, const char *text)
{
    if (!take(s, text))
        fail(s, s->next.at, text);
}

static bool is_name(const scanner *s)
{
    return s->next.n && kr__scan_is_word(*s->next.at) && (*s->next.at < '0' || *s->next.at > '9');
}

static const char *take_name(scanner *s)
{
    const char *name = is_name(s) ? kr__arena_text(&s->outline->arena, s->next.at, s->next.n) : NULL;
    if (!is_name(s))
        fail(s, s->next.at, "a name");
    else if (!name)
        fail_memory(s, "a name");
    else
        advance(s);
    return name;
}

static uint64_t take_number(scanner *s)
{
    char digits[32], *end = digits;
    uint64_t value = 0;
    if (s->next.n && s->next.n < sizeof digits && *s->next.at >= '0' && *s->next.at <= '9') {
        memcpy(digits, s->next.at, s->next.n);
        digits[s->next.n] = '\0';
        value = strtoull(digits, &end, 0);
        end += *end == 'U';
    }
    if (end == digits || *end)
        fail(s, s->next.at, "a number");
    else
        advance(s);
    return value;
}

/* Past a `{` that is the current word, and all up to its `}`. */
static void skip_block(scanner *s)
{
    const char *open = s->next.at, *at = open;
    char what[60];
    kr__format(what, sizeof what, "the } of the { at offset %zu", (size_t)(open - s->begin));
    if (kr__scan_block(&at, s->end)) {
        s->at = at;
        advance(s);
    } else if (at < s->end) {
        fail_text(s, at);
    } else {
        fail(s, at, what);
    }
}

/* Up to one of the marks outside of brackets and braces. */
static void skip_to(scanner *s, const char *marks)
{
    size_t depth = 0;
    while (!is_end(s) && (depth || !strchr(marks, *s->next.at))) {
        depth += strchr("([", *s->next.at) != NULL;
        depth -= depth && strchr(")]", *s->next.at);
        if (is(s, "{"))
            skip_block(s);
        else
            advance(s);
    }
    if (is_end(s))
        fail(s, s->end, strchr(marks, ';') ? "a semicolon" : "a bracket");
}

/* ---- declarations ---- */

typedef struct declaration {
    const char *name;
    uint64_t alignment, element, bytes; /* bytes 0: of a length that is not written */
} declaration;

/* The bytes of an element of a type; 0: it is none. */
static unsigned type_bytes(word type)
{
    static const struct {
        const char *name;
        unsigned bytes;
    } types[] = {{".b8", 1},     {".u8", 1},    {".s8", 1},    {".b16", 2},    {".u16", 2},
                 {".s16", 2},    {".f16", 2},   {".bf16", 2},  {".e4m3x2", 2}, {".e5m2x2", 2},
                 {".b32", 4},    {".u32", 4},   {".s32", 4},   {".f32", 4},    {".f16x2", 4},
                 {".bf16x2", 4}, {".tf32", 4},  {".b64", 8},   {".u64", 8},    {".s64", 8},
                 {".f64", 8},    {".f32x2", 8}, {".b128", 16}, {".texref", 8}, {".samplerref", 8},
                 {".surfref", 8}};
    for (size_t i = 0; i < KR_COUNT(types); i++)
        if (kr__scan_is(type.at, type.at + type.n, types[i].name))
            return types[i].bytes;
    return 0;
}

static void take_dimensions(scanner *s, uint64_t *bytes)
{
    while (take(s, "[")) {
        const char *at = s->next.at;
        const uint64_t n = is(s, "]") ? 0 : take_number(s);
        if (__builtin_mul_overflow(*bytes, n, bytes))
            fail(s, at, "a length below 2^64 bytes");
        expect(s, "]");
    }
}

/* `.align 8 .attribute(.managed) .v2 .f32 name[2][3]`, in any order before the name. What belongs to the type
 * of a pointer (`.ptr .global .align 4`) says nothing of the pointer. */
static declaration take_declaration(scanner *s)
{
    declaration d = {0};
    unsigned type = 0, lanes = 1;
    bool is_pointer = false;
    while (!is_end(s) && *s->next.at == '.') {
        const unsigned bytes = type_bytes(s->next);
        type = bytes ? bytes : type;
        lanes = is(s, ".v2") ? 2 : is(s, ".v4") ? 4 : lanes;
        is_pointer = is_pointer || is(s, ".ptr");
        const bool is_align = is(s, ".align"), has_list = is(s, ".attribute");
        advance(s);
        const uint64_t alignment = is_align ? take_number(s) : 0;
        d.alignment = alignment && !is_pointer ? alignment : d.alignment;
        if (has_list) {
            expect(s, "(");
            skip_to(s, ")");
            expect(s, ")");
        }
    }
    if (!type)
        fail(s, s->next.at, "a type");
    d.bytes = d.element = (uint64_t)type * lanes;
    d.alignment = d.alignment ? d.alignment : d.element;
    d.name = take_name(s);
    take_dimensions(s, &d.bytes);
    return d;
}

static void read_params(scanner *s, kr_image_kernel *kernel)
{
    kr_image_param *params = NULL;
    uint64_t end = 0;
    while (take(s, ".param")) {
        const char *at = s->next.at;
        const declaration d = take_declaration(s);
        kr_image_param *grown = kr__grow(params, kernel->n_params, sizeof *grown);
        const uint64_t padding = d.alignment ? (d.alignment - end % d.alignment) % d.alignment : 0;
        params = grown ? grown : params;
        if (!grown)
            fail_memory(s, "the parameters");
        else if (__builtin_add_overflow(end, padding, &end))
            fail(s, at, "parameters of less than 2^64 bytes");
        else
            params[kernel->n_params++] = (kr_image_param){end, d.bytes};
        if (__builtin_add_overflow(end, d.bytes, &end))
            fail(s, at, "parameters of less than 2^64 bytes");
        if (!take(s, ","))
            break;
    }
    expect(s, ")");
    kr_image_param *kept = kr__arena_alloc(&s->outline->arena, (kernel->n_params + 1) * sizeof *kept);
    if (kept && kernel->n_params)
        memcpy(kept, params, kernel->n_params * sizeof *kept);
    if (!kept)
        fail_memory(s, "the parameters");
    free(params);
    kernel->params = kept;
    kernel->param_bytes = end;
}

/* One to three numbers; those that are not there are 1. */
static void take_three(scanner *s, unsigned ret[3])
{
    ret[0] = ret[1] = ret[2] = 1;
    for (size_t i = 0; i < 3 && !is_end(s); i++) {
        ret[i] = (unsigned)take_number(s);
        if (!take(s, ","))
            return;
    }
}

/* Between a kernel's parameters and its body; what is not known there is passed over. */
static void read_bounds(scanner *s, kr_image_kernel *kernel)
{
    while (!is_end(s) && !is(s, "{") && !is(s, ";")) {
        if (take(s, ".maxntid"))
            take_three(s, kernel->max_threads);
        else if (take(s, ".reqntid"))
            take_three(s, kernel->required_threads);
        else if (take(s, ".reqnctapercluster"))
            take_three(s, kernel->cluster);
        else if (take(s, ".maxclusterrank"))
            kernel->max_cluster = (unsigned)take_number(s);
        else if (take(s, ".maxnreg"))
            kernel->max_registers = (int)take_number(s);
        else if (take(s, ".pragma"))
            skip_to(s, ";"), expect(s, ";");
        else
            advance(s);
    }
}

static void read_kernel(scanner *s)
{
    kr_image_kernel kernel = {.name = take_name(s)};
    if (take(s, "("))
        read_params(s, &kernel);
    read_bounds(s, &kernel);
    if (take(s, ";")) /* a declaration alone */
        return;
    if (!is(s, "{")) {
        fail(s, s->next.at, "the body of a kernel");
        return;
    }
    skip_block(s);
    kr_image_kernel *grown = kr__grow(s->outline->kernels, s->outline->n_kernels, sizeof *grown);
    if (!grown) {
        fail_memory(s, "the kernels");
        return;
    }
    s->outline->kernels = grown;
    grown[s->outline->n_kernels++] = kernel;
}

static void add_variable(scanner *s, const declaration *d, bool is_const)
{
    kr_image_variable *grown = kr__grow(s->outline->variables, s->outline->n_variables, sizeof *grown);
    if (!grown) {
        fail_memory(s, "the variables");
        return;
    }
    s->outline->variables = grown;
    grown[s->outline->n_variables++] = (kr_image_variable){d->name, d->bytes, is_const};
}

static void read_variables(scanner *s, bool is_const)
{
    const bool is_extern = s->is_extern;
    declaration d = take_declaration(s);
    for (;;) {
        if (!is_extern && !s->status)
            add_variable(s, &d, is_const);
        skip_to(s, ",;");
        if (!take(s, ","))
            break;
        d.name = take_name(s);
        d.bytes = d.element;
        take_dimensions(s, &d.bytes);
    }
    expect(s, ";");
}

static void read_module(scanner *s)
{
    while (!is_end(s)) {
        if (take(s, ".entry"))
            read_kernel(s);
        else if (take(s, ".global"))
            read_variables(s, false);
        else if (take(s, ".const"))
            read_variables(s, true);
        else if (take(s, ".address_size"))
            s->outline->address_bits = (int)take_number(s);
        else if (take(s, ".version") && !s->outline->head.isa)
            fail(s, s->next.at, "a version as 8.7");
        else if (take(s, ".target") && !s->outline->head.target.major)
            fail(s, s->next.at, "a target as sm_90");
        else if (is(s, "{"))
            skip_block(s);
        else if (is(s, "}"))
            fail(s, s->next.at, "a declaration");
        else {
            s->is_extern = is(s, ".extern");
            advance(s);
            continue;
        }
        s->is_extern = false;
    }
}

kr_status kr__ptx_outline_read(const char *text, size_t bytes, kr__ptx_outline **ret_outline, kr_error *err)
{
    kr__ptx_outline *outline = kr__alloc(1, sizeof *outline, err);
    if (!outline)
        return KR_OUT_OF_HOST_MEMORY;
    scanner s = {.begin = text, .at = text, .end = text + bytes, .outline = outline, .err = err};
    outline->address_bits = 32; /* where nothing is written */
    advance(&s);
    if (!kr__ptx_head_read(text, bytes, &outline->head))
        fail(&s, s.next.at, ".version");
    read_module(&s);
    if (s.status)
        kr__ptx_outline_free(&outline);
    else
        *ret_outline = outline;
    return s.status;
}

void kr__ptx_outline_free(kr__ptx_outline **outline)
{
    if (!outline || !*outline)
        return;
    kr__arena_free(&(*outline)->arena);
    free((*outline)->kernels);
    free((*outline)->variables);
    free(*outline);
    *outline = NULL;
}
