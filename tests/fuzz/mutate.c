/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changes of PTX text that leave most of it PTX: statements come, go and move, words and numbers take the
 * place of others, and new instructions are made from the front end's own table of forms. Other inputs change
 * byte by byte.
 */
#include "fuzz.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "ptx/front/front.h"

typedef struct input {
    char *data;
    size_t n, capacity;
    uint64_t state;
} input;

static unsigned pick(input *in, size_t n)
{
    in->state = in->state * 6364136223846793005ull + 1442695040888963407ull;
    return n ? (unsigned)((in->state >> 33) % n) : 0;
}

static void replace(input *in, size_t at, size_t old_bytes, const char *text, size_t bytes)
{
    if (in->n - old_bytes + bytes > in->capacity)
        return;
    memmove(in->data + at + bytes, in->data + at + old_bytes, in->n - at - old_bytes);
    memcpy(in->data + at, text, bytes);
    in->n += bytes - old_bytes;
}

/* ---- places in the text ---- */

typedef struct piece {
    size_t at, bytes;
} piece;

static bool in_word(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '$' || c == '%';
}

/* A word or number; what begins with a dot counts with it. */
static piece some_word(input *in)
{
    size_t at = pick(in, in->n);
    while (at < in->n && !in_word(in->data[at]))
        at++;
    while (at > 0 && in_word(in->data[at - 1]))
        at--;
    size_t end = at;
    while (end < in->n && in_word(in->data[end]))
        end++;
    if (at > 0 && in->data[at - 1] == '.')
        at--;
    return (piece){at, end - at};
}

/* From after a semicolon or brace to past the next semicolon. */
static piece some_statement(input *in)
{
    size_t at = pick(in, in->n);
    while (at > 0 && !strchr(";{}", in->data[at - 1]))
        at--;
    size_t end = at;
    while (end < in->n && in->data[end] != ';' && in->data[end] != '}')
        end++;
    if (end < in->n && in->data[end] == ';')
        end++;
    return (piece){at, end - at};
}

static bool same_kind(char a, char b)
{
    if (a == '%' || a == '.' || b == '%' || b == '.')
        return a == b;
    return !isdigit((unsigned char)a) == !isdigit((unsigned char)b);
}

/* ---- instructions from the table ---- */

enum { LINE_BYTES = 300, REGISTERS = 12 };

typedef struct line {
    char text[LINE_BYTES];
    size_t n;
} line;

static void KR_PRINTF(2, 3) add(line *to, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = vsnprintf(to->text + to->n, LINE_BYTES - to->n, format, args);
    va_end(args);
    to->n = to->n + (size_t)n < LINE_BYTES ? to->n + (size_t)n : LINE_BYTES - 1;
}

static ptx_type some_type(input *in, uint64_t set)
{
    for (unsigned i = 0, from = pick(in, PTX_TYPE_COUNT); i < PTX_TYPE_COUNT; i++)
        if (set >> (from + i) % PTX_TYPE_COUNT & 1)
            return (ptx_type)((from + i) % PTX_TYPE_COUNT);
    return PTX_NONE;
}

static void add_modifier(input *in, line *to, ptx_set set)
{
    for (size_t i = 0, from = pick(in, kr__ptx_n_modifiers); i < kr__ptx_n_modifiers; i++) {
        const ptx_modifier *row = &kr__ptx_modifiers[(from + i) % kr__ptx_n_modifiers];
        if (set & (row->kind ? (ptx_set)1 << row->kind : row->value)) {
            add(to, ".%s", row->text);
            return;
        }
    }
}

/* Each of `required`, one of `one_of`, and now and then one of the others, in the table's order. */
static void add_modifiers(input *in, line *to, const ptx_form *form)
{
    for (unsigned bit = 0; bit < 8 * sizeof(ptx_set); bit++) {
        const ptx_set one = (ptx_set)1 << bit;
        if ((form->required & one) || ((form->allowed & ~form->one_of & one) && pick(in, 4) == 0))
            add_modifier(in, to, one);
    }
    if (form->one_of)
        add_modifier(in, to, form->one_of);
}

/* Registers by the names that nvcc gives them. */
static void add_register(input *in, line *to, size_t bytes)
{
    const char *name = bytes == 8 ? "rd" : bytes == 4 ? "r" : bytes == 0 ? "p" : "rs";
    add(to, "%%%s%u", name, 1 + pick(in, REGISTERS));
}

static void add_number(input *in, line *to)
{
    static const char *const numbers[] = {"0",
                                          "1",
                                          "-1",
                                          "2",
                                          "16",
                                          "31",
                                          "32",
                                          "33",
                                          "64",
                                          "255",
                                          "1024",
                                          "4096",
                                          "65536",
                                          "0x7fffffff",
                                          "0x80000000",
                                          "-2147483648",
                                          "0xffffffff",
                                          "4294967296",
                                          "0x7fffffffffffffff",
                                          "0xffffffffffffffff",
                                          "0f7fc00000",
                                          "0f3f800000",
                                          "0f00000001",
                                          "0d7ff8000000000000",
                                          "0d3ff0000000000000",
                                          "1.5"};
    add(to, "%s", numbers[pick(in, KR_COUNT(numbers))]);
}

static void add_source(input *in, line *to, size_t bytes)
{
    if (pick(in, 4) == 0)
        add_number(in, to);
    else if (pick(in, 16) == 0)
        add(to, "%s", kr__ptx_specials[pick(in, PTX_SPECIAL_COUNT)].text);
    else
        add_register(in, to, bytes);
}

static void add_operand(input *in, line *to, char letter, const ptx_type types[4])
{
    const size_t first = kr__ptx_type_bytes(types[0]);
    switch (letter) {
    case '1':
    case '2':
    case '3':
    case '4':
        add_source(in, to, kr__ptx_type_bytes(types[letter - '1']));
        return;
    case 'D':
    case 'd':
    case 'M':
        add_register(in, to, first);
        return;
    case 'v':
    case 'm':
        add_source(in, to, first);
        return;
    case 'w':
        add_source(in, to, kr__ptx_type_bytes(types[1]));
        return;
    case 'W':
    case 'x':
        add_register(in, to, 2 * first);
        return;
    case 'P':
    case 'Q':
    case 'p':
        add_register(in, to, 0);
        return;
    case 'R':
    case 'S':
    case 'r':
        add_source(in, to, 4);
        return;
    case 'q':
        add_register(in, to, 8);
        return;
    case 'i':
        add_number(in, to);
        return;
    case '@':
    case '&':
    case 'A':
        add(to, "[");
        add_register(in, to, pick(in, 3) ? 8 : 4);
        if (pick(in, 2)) {
            add(to, "+");
            add_number(in, to);
        }
        add(to, "]");
        return;
    case 'V':
        add(to, "{");
        for (unsigned i = 0, n = 1u << pick(in, 3); i < n; i++) {
            add(to, i ? ", " : "");
            add_register(in, to, pick(in, 2) ? 4 : first);
        }
        add(to, "}");
        return;
    default:
        add_source(in, to, 4);
        return;
    }
}

static void make_instruction(input *in, line *to)
{
    const ptx_opcode *opcode = &kr__ptx_opcodes[pick(in, PTX_OP_COUNT)];
    size_t n_forms = 0;
    while (opcode->forms[n_forms].operands)
        n_forms++;
    static const ptx_form none = {.operands = ""};
    const ptx_form *form = n_forms ? &opcode->forms[pick(in, n_forms)] : &none;
    if (pick(in, 8) == 0)
        add(to, "@%s%%p%u ", pick(in, 2) ? "!" : "", 1 + pick(in, 3));
    add(to, "%s", opcode->name);
    add_modifiers(in, to, form);
    ptx_type types[4];
    for (unsigned i = 0; i < 4; i++) {
        types[i] = some_type(in, form->types[i]);
        if (types[i])
            add(to, ".%s", kr__ptx_type_name(types[i]));
    }
    const char *separator = " ";
    for (const char *at = form->operands; *at; at++) {
        if (*at == '*' || (*at == '?' && pick(in, 2)))
            break;
        if (*at == '?')
            continue;
        add(to, "%s", separator);
        add_operand(in, to, *at, types);
        separator = ", ";
    }
    add(to, ";\n");
}

/* ---- one change ---- */

static void insert_instruction(input *in)
{
    line made = {.n = 0};
    piece place = some_statement(in);
    make_instruction(in, &made);
    replace(in, place.at, pick(in, 2) ? place.bytes : 0, made.text, made.n);
}

static void copy_statement(input *in)
{
    char text[LINE_BYTES];
    const piece from = some_statement(in), to = some_statement(in);
    const size_t n = from.bytes < LINE_BYTES ? from.bytes : LINE_BYTES;
    memcpy(text, in->data + from.at, n);
    replace(in, to.at, pick(in, 3) == 0 ? to.bytes : 0, text, n);
}

static void delete_statement(input *in)
{
    const piece place = some_statement(in);
    replace(in, place.at, place.bytes, "", 0);
}

static void copy_word(input *in)
{
    enum { TRIES = 20 };
    char text[LINE_BYTES];
    const piece to = some_word(in);
    for (int i = 0; i < TRIES && to.bytes; i++) {
        const piece from = some_word(in);
        if (!from.bytes || from.bytes > LINE_BYTES || !same_kind(in->data[from.at], in->data[to.at]))
            continue;
        memcpy(text, in->data + from.at, from.bytes);
        replace(in, to.at, to.bytes, text, from.bytes);
        return;
    }
}

static void change_word(input *in)
{
    line made = {.n = 0};
    const piece place = some_word(in);
    if (!place.bytes)
        return;
    if (in->data[place.at] == '.') {
        if (pick(in, 2))
            add(&made, ".%s", kr__ptx_modifiers[pick(in, kr__ptx_n_modifiers)].text);
        else
            add(&made, ".%s", kr__ptx_type_name((ptx_type)(1 + pick(in, PTX_TYPE_COUNT - 1))));
    } else if (in->data[place.at] == '%') {
        add_source(in, &made, (size_t)pick(in, 9));
    } else if (isdigit((unsigned char)in->data[place.at])) {
        add_number(in, &made);
    } else {
        add(&made, "%s", kr__ptx_opcodes[pick(in, PTX_OP_COUNT)].name);
    }
    replace(in, place.at, place.bytes, made.text, made.n);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t n, size_t capacity, unsigned seed)
{
    static void (*const changes[])(input *) = {insert_instruction, insert_instruction, copy_statement,
                                               delete_statement,   copy_word,          copy_word,
                                               change_word};
    enum { BYTES_TOO = 1, MOST_CHANGES = 3 };
    input in = {(char *)data, n, capacity, seed};
    if (!kr__ptx_looks_like((const char *)data, n))
        return LLVMFuzzerMutate(data, n, capacity);
    for (unsigned i = 0, times = 1 + pick(&in, MOST_CHANGES); i < times && in.n; i++) {
        const unsigned change = pick(&in, KR_COUNT(changes) + BYTES_TOO);
        if (change < KR_COUNT(changes))
            changes[change](&in);
        else
            in.n = LLVMFuzzerMutate(data, in.n, capacity);
    }
    return in.n;
}
