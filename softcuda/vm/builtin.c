/* SPDX-License-Identifier: Apache-2.0 */
/* The functions the compiler calls that no module defines: vprintf, __assertfail, malloc, free. */
#include "softcuda/vm/machine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EACH_LANE(lane, mask)                                                                \
    for (uint32_t left_ = (mask), lane; left_ && (lane = (uint32_t)__builtin_ctz(left_), 1); \
         left_ &= left_ - 1)

static uint64_t argument(const sc_warp *warp, const sc_call *call, unsigned lane, uint32_t index)
{
    uint64_t value = 0;
    if (index < call->n_arguments)
        memcpy(&value,
               warp->local + (size_t)lane * warp->stack_bytes + warp->frame->local_base +
                   call->argument[index],
               call->argument_bytes[index] < 8 ? call->argument_bytes[index] : 8);
    return value;
}

static void set_result(sc_warp *warp, const sc_call *call, unsigned lane, uint64_t value)
{
    if (call->n_returns)
        memcpy(warp->local + (size_t)lane * warp->stack_bytes + warp->frame->local_base + call->result[0],
               &value, call->result_bytes[0] < 8 ? call->result_bytes[0] : 8);
}

/* Reads bytes at a generic address; false: faulted. */
static bool read_bytes(sc_warp *warp, const sc_code *in, unsigned lane, uint64_t address, void *to,
                       unsigned bytes)
{
    const sc_access access = {
        .space = PTX_SPACE_GENERIC, .wide_address = true, .bytes = 1, .total_bytes = 1, .verb = "read"};
    for (unsigned i = 0; i < bytes; i++) {
        if (!sc__accesses()->translate_lane(warp, in, &access, lane, address + i, PTX_SPACE_GENERIC))
            return false;
        ((char *)to)[i] = *warp->pointers[lane];
    }
    return true;
}

static bool read_text(sc_warp *warp, const sc_code *in, unsigned lane, uint64_t address, kr__text *to)
{
    for (char c;; address++) {
        if (!read_bytes(warp, in, lane, address, &c, 1))
            return false;
        if (c == 0)
            return true;
        kr__text_add_bytes(to, &c, 1);
    }
}

/* ---- printf ---- */

/* A conversion copied from the device's format: "%-8.3" and the letter; its length modifiers say how many
 * bytes. */
typedef struct sc_conversion {
    char text[40];
    char letter;
    bool wide;
} sc_conversion;

static bool next_argument(sc_warp *warp, const sc_code *in, unsigned lane, uint64_t *at, unsigned bytes,
                          uint64_t *value)
{
    *value = 0;
    *at = (*at + bytes - 1) / bytes * bytes;
    bool ok = read_bytes(warp, in, lane, *at, value, bytes);
    *at += bytes;
    return ok;
}

/* Parses the conversion after '%'; gives where it ends, or NULL: faulted. Stars are replaced by their values.
 */
static const char *parse_conversion(sc_warp *warp, const sc_code *in, unsigned lane, const char *format,
                                    uint64_t *at, sc_conversion *to)
{
    size_t n = 0;
    to->text[n++] = '%';
    for (; *format && n + 16 < sizeof to->text; format++) {
        if (*format == '*') {
            uint64_t value;
            if (!next_argument(warp, in, lane, at, 4, &value))
                return NULL;
            n += (size_t)snprintf(to->text + n, 12, "%d", (int)(uint32_t)value);
        } else if (strchr("-+ #0123456789.", *format)) {
            to->text[n++] = *format;
        } else if (strchr("hlLzjt", *format)) {
            to->wide = to->wide || *format != 'h';
        } else {
            break;
        }
    }
    to->letter = *format;
    to->text[n] = 0;
    return *format ? format + 1 : format;
}

static bool add_conversion(sc_warp *warp, const sc_code *in, unsigned lane, sc_conversion *conversion,
                           uint64_t *at, kr__text *out)
{
    char piece[512];
    uint64_t value;
    size_t n = strlen(conversion->text);
    switch (conversion->letter) {
    case 'd':
    case 'i':
    case 'u':
    case 'o':
    case 'x':
    case 'X':
        if (!next_argument(warp, in, lane, at, conversion->wide ? 8 : 4, &value))
            return false;
        if (!conversion->wide && (conversion->letter == 'd' || conversion->letter == 'i'))
            value = (uint64_t)(int32_t)value;
        snprintf(conversion->text + n, 4, "ll%c", conversion->letter);
        break;
    case 'c':
        if (!next_argument(warp, in, lane, at, 4, &value))
            return false;
        snprintf(conversion->text + n, 4, "c");
        snprintf(piece, sizeof piece, conversion->text, (int)value);
        kr__text_add(out, "%s", piece);
        return true;
    case 'e':
    case 'E':
    case 'f':
    case 'F':
    case 'g':
    case 'G':
    case 'a':
    case 'A': {
        double number;
        if (!next_argument(warp, in, lane, at, 8, &value))
            return false;
        memcpy(&number, &value, sizeof number);
        snprintf(conversion->text + n, 4, "%c", conversion->letter);
        snprintf(piece, sizeof piece, conversion->text, number);
        kr__text_add(out, "%s", piece);
        return true;
    }
    case 'p':
        if (!next_argument(warp, in, lane, at, 8, &value))
            return false;
        snprintf(conversion->text + n, 4, "p");
        snprintf(piece, sizeof piece, conversion->text, (void *)(uintptr_t)value);
        kr__text_add(out, "%s", piece);
        return true;
    case 's': {
        kr__text text = {0};
        if (!next_argument(warp, in, lane, at, 8, &value))
            return false;
        bool ok = read_text(warp, in, lane, value, &text);
        snprintf(conversion->text + n, 4, "s");
        if (ok) {
            int bytes = snprintf(NULL, 0, conversion->text, text.data ? text.data : "");
            if (bytes < (int)sizeof piece) {
                snprintf(piece, sizeof piece, conversion->text, text.data ? text.data : "");
                kr__text_add(out, "%s", piece);
            } else {
                kr__text_add(out, "%s", text.data);
            }
        }
        kr__text_free(&text);
        return ok;
    }
    case '%':
        kr__text_add(out, "%%");
        return true;
    default: /* unknown: as written */
        kr__text_add(out, "%s%c", conversion->text, conversion->letter);
        return true;
    }
    snprintf(piece, sizeof piece, conversion->text, (long long)value);
    kr__text_add(out, "%s", piece);
    return true;
}

static bool format_lane(sc_warp *warp, const sc_code *in, unsigned lane, uint64_t format, uint64_t at,
                        kr__text *out, unsigned *ret_arguments)
{
    kr__text text = {0};
    bool ok = read_text(warp, in, lane, format, &text);
    for (const char *p = text.data; ok && p && *p;) {
        size_t plain = strcspn(p, "%");
        kr__text_add_bytes(out, p, plain);
        p += plain;
        if (*p == 0)
            break;
        const uint64_t before = at;
        sc_conversion conversion = {0};
        p = parse_conversion(warp, in, lane, p + 1, &at, &conversion);
        ok = p && add_conversion(warp, in, lane, &conversion, &at, out);
        *ret_arguments += at != before;
    }
    kr__text_free(&text);
    return ok;
}

/* A record of the ring: two words of its own, and one an argument (as an H200's driver seems to count). */
enum { SC_PRINT_WORDS = 2, SC_PRINT_WORD_BYTES = 8 };

static void drop_oldest(sc_job *job)
{
    sc_print *oldest = job->first_print;
    job->first_print = oldest->next;
    job->printed_bytes -= oldest->ring_bytes;
    free(oldest);
}

/* false: out of host memory. */
static bool add_print(sc_job *job, const kr__text *text, unsigned n_arguments)
{
    sc_print *print = malloc(sizeof *print + text->bytes);
    if (!print)
        return false;
    *print = (sc_print){.bytes = text->bytes,
                        .ring_bytes = (SC_PRINT_WORDS + n_arguments) * (size_t)SC_PRINT_WORD_BYTES};
    memcpy(print->text, text->data, text->bytes);
    pthread_mutex_lock(&job->mutex);
    *(job->first_print ? &job->last_print->next : &job->first_print) = print;
    job->last_print = print;
    job->printed_bytes += print->ring_bytes;
    while (job->first_print != print && job->printed_bytes > job->launch->printf_fifo_bytes)
        drop_oldest(job);
    pthread_mutex_unlock(&job->mutex);
    return true;
}

void sc__write_prints(sc_job *job)
{
    const bool any = job->first_print != NULL;
    for (; job->first_print; drop_oldest(job))
        fwrite(job->first_print->text, 1, job->first_print->bytes, stdout);
    if (any)
        fflush(stdout);
}

static const sc_code *run_vprintf(sc_warp *warp, const sc_code *in)
{
    const sc_call *call = in->more;
    EACH_LANE(lane, warp->mask)
    {
        kr__text line = {0};
        unsigned n_arguments = 0;
        const bool ok = format_lane(warp, in, lane, argument(warp, call, lane, 0),
                                    argument(warp, call, lane, 1), &line, &n_arguments);
        const bool kept = !ok || !line.bytes || add_print(warp->block->job, &line, n_arguments);
        kr__text_free(&line);
        if (!kept)
            return sc__fault(warp, in, SC_FAULT_NO_MEMORY, lane, 0, "printf: out of host memory");
        if (!ok)
            return NULL;
        set_result(warp, call, lane, n_arguments);
    }
    return in + 1;
}

/* ---- assert ---- */

static const sc_code *run_assertfail(sc_warp *warp, const sc_code *in)
{
    const sc_call *call = in->more;
    sc_job *job = warp->block->job;
    EACH_LANE(lane, warp->mask)
    {
        kr__text expression = {0}, file = {0}, function = {0};
        bool ok = read_text(warp, in, lane, argument(warp, call, lane, 0), &expression) &&
                  read_text(warp, in, lane, argument(warp, call, lane, 1), &file) &&
                  read_text(warp, in, lane, argument(warp, call, lane, 3), &function);
        unsigned thread[3];
        sc__thread_of(warp, lane, thread);
        if (ok) {
            pthread_mutex_lock(&job->mutex);
            kr__text_add(
                &job->errors, "%s:%u: %s: block: [%u,%u,%u], thread: [%u,%u,%u] Assertion `%s` failed.\n",
                file.data ? file.data : "", (unsigned)argument(warp, call, lane, 2),
                function.data ? function.data : "", warp->block->id[0], warp->block->id[1],
                warp->block->id[2], thread[0], thread[1], thread[2], expression.data ? expression.data : "");
            pthread_mutex_unlock(&job->mutex);
            sc__fault(warp, in, SC_FAULT_ASSERT, lane, 0, "assertion `%s` failed at %s:%u",
                      expression.data ? expression.data : "", file.data ? file.data : "",
                      (unsigned)argument(warp, call, lane, 2));
        }
        kr__text_free(&expression);
        kr__text_free(&file);
        kr__text_free(&function);
        if (!ok)
            break;
    }
    return NULL;
}

/* ---- the heap ---- */

static const sc_code *run_malloc(sc_warp *warp, const sc_code *in)
{
    const sc_call *call = in->more;
    const sc_job *job = warp->block->job;
    EACH_LANE(lane, warp->mask)
    {
        uint64_t bytes = argument(warp, call, lane, 0);
        set_result(warp, call, lane,
                   sc__heap_alloc(job->program->memory, bytes, job->launch->malloc_heap_bytes));
    }
    return in + 1;
}

static const sc_code *run_free(sc_warp *warp, const sc_code *in)
{
    EACH_LANE(lane, warp->mask)
    {
        uint64_t address = argument(warp, in->more, lane, 0);
        if (address && !sc__heap_free(warp->block->job->program->memory, address))
            return sc__fault(warp, in, SC_FAULT_TRAP, lane, address,
                             "free of 0x%llx, which malloc did not give", (unsigned long long)address);
    }
    memset(warp->sites, 0, warp->kernel->n_sites * sizeof *warp->sites); /* what is remembered may be gone */
    return in + 1;
}

bool sc_is_builtin(const char *name)
{
    return sc__find_builtin(name) != NULL;
}

sc_handler *sc__find_builtin(const char *name)
{
    static const struct {
        const char *name;
        sc_handler *handler;
    } builtins[] = {
        {"vprintf", run_vprintf},
        {"__assertfail", run_assertfail},
        {"malloc", run_malloc},
        {"free", run_free},
    };
    for (size_t i = 0; i < KR_COUNT(builtins); i++)
        if (strcmp(builtins[i].name, name) == 0)
            return builtins[i].handler;
    return NULL;
}
