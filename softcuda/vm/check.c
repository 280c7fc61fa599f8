/* SPDX-License-Identifier: Apache-2.0 */
/* Which checkers are on, and what they find: each finding once for a kernel and a line, so many of them, on
 * standard error. */
#include "softcuda/vm/check.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- which are on ---- */

static const struct {
    const char *name;
    unsigned checks;
} names[] = {
    {"memcheck", SC_CHECK_MEMORY},
    {"initcheck", SC_CHECK_INIT},
    {"racecheck", SC_CHECK_RACE},
    {"synccheck", SC_CHECK_SYNC},
    {"leakcheck", SC_CHECK_LEAK},
    {"all", SC_CHECK_MEMORY | SC_CHECK_INIT | SC_CHECK_RACE | SC_CHECK_SYNC | SC_CHECK_LEAK},
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static unsigned wanted;
static char unknown[64];

static void read_wanted(void)
{
    const char *text = getenv("KREGISTRY_SOFTCUDA_CHECK");
    while (text && *text) {
        size_t n = strcspn(text, ","), i = 0;
        while (i < KR_COUNT(names) && (strlen(names[i].name) != n || memcmp(names[i].name, text, n) != 0))
            i++;
        if (i < KR_COUNT(names))
            wanted |= names[i].checks;
        else
            kr__format(unknown, sizeof unknown, "%.*s", (int)n, text);
        text += n + (text[n] == ',');
    }
}

unsigned sc_checks(void)
{
    pthread_once(&once, read_wanted);
    return wanted;
}

const char *sc_checks_unknown(void)
{
    sc_checks();
    return *unknown ? unknown : NULL;
}

/* ---- findings ---- */

enum { SC_MOST_TOLD = 100, SC_MOST_KNOWN = 4096 };
static pthread_mutex_t found_mutex = PTHREAD_MUTEX_INITIALIZER;
static uint64_t known[SC_MOST_KNOWN], n_found;
static size_t n_known;

static uint64_t key_of(sc_check check, const char *kernel, uint32_t line)
{
    uint64_t hash = 0xcbf29ce484222325u ^ (uint64_t)check << 32 ^ line;
    for (const char *c = kernel; *c; c++)
        hash = (hash ^ (uint8_t)*c) * 0x100000001b3u;
    return hash | 1;
}

/* Beyond those that are known, nothing is new. */
static bool is_first(sc_check check, const char *kernel, uint32_t line)
{
    const uint64_t key = key_of(check, kernel, line);
    pthread_mutex_lock(&found_mutex);
    size_t i = 0;
    while (i < n_known && known[i] != key)
        i++;
    bool first = i == n_known && n_known < SC_MOST_KNOWN;
    if (first)
        known[n_known++] = key;
    pthread_mutex_unlock(&found_mutex);
    return first;
}

bool sc__is_first(sc_check check, const sc_kernel *kernel, uint32_t line)
{
    return is_first(check, kernel->facts.name, line);
}

static void tell(sc_check check, const char *text, const char *detail)
{
    const char *name = "";
    for (size_t i = 0; i < KR_COUNT(names); i++)
        if (names[i].checks == (unsigned)check)
            name = names[i].name;
    pthread_mutex_lock(&found_mutex);
    if (++n_found <= SC_MOST_TOLD)
        fprintf(stderr, detail ? "softcuda: %s: %s\nsoftcuda:     %s\n" : "softcuda: %s: %s\n", name, text,
                detail);
    if (n_found == SC_MOST_TOLD)
        fprintf(stderr, "softcuda: further findings are counted, not told\n");
    pthread_mutex_unlock(&found_mutex);
}

static void tell_at(sc_check check, const sc_kernel *kernel, const uint32_t block[3],
                    const unsigned thread[3], uint32_t line, const char *detail, const char *what)
{
    char source[300], text[1400];
    sc__source_of(kernel, line, source, sizeof source);
    kr__format(text, sizeof text, "%s, PTX line %u%s, block (%u,%u,%u), thread (%u,%u,%u): %s",
               kernel->facts.name, line, source, block[0], block[1], block[2], thread[0], thread[1],
               thread[2], what);
    tell(check, text, detail);
}

const ptx_instr *sc__instr_at(const sc_kernel *kernel, uint32_t line, ptx_op op)
{
    for (size_t i = 0; i < kernel->n_functions; i++) {
        const ptx_function *function = kernel->functions[i]->ptx;
        for (size_t k = 0; k < function->n_instrs; k++)
            if (function->instrs[k].line == line && (op == PTX_OP_COUNT || function->instrs[k].op == op))
                return &function->instrs[k];
    }
    return NULL;
}

void sc__source_of(const sc_kernel *kernel, uint32_t line, char *to, size_t to_bytes)
{
    const ptx_instr *instr = sc__instr_at(kernel, line, PTX_OP_COUNT);
    *to = 0;
    for (const ptx_file *file = kernel->files; instr && instr->loc_line && file; file = file->next)
        if (file->index == instr->loc_file)
            kr__format(to, to_bytes, " (%s:%u)", file->name, instr->loc_line);
}

void sc__tell(sc_check check, const sc_warp *warp, unsigned lane, uint32_t line, const char *detail,
              const char *format, ...)
{
    char what[600];
    unsigned thread[3];
    va_list args;
    va_start(args, format);
    kr__format_list(what, sizeof what, format, args);
    va_end(args);
    sc__thread_of(warp, lane, thread);
    tell_at(check, warp->kernel, warp->block->id, thread, line, detail, what);
}

void sc__report_fault(const sc_kernel *kernel, const sc_fault *fault)
{
    static const sc_check checks[] = {
        [SC_FAULT_OUT_OF_BOUNDS] = SC_CHECK_MEMORY,
        [SC_FAULT_MISALIGNED] = SC_CHECK_MEMORY,
        [SC_FAULT_ASSERT] = SC_CHECK_MEMORY,
        [SC_FAULT_TRAP] = SC_CHECK_MEMORY,
        [SC_FAULT_ADDRESS_SPACE] = SC_CHECK_MEMORY,
        [SC_FAULT_STACK] = SC_CHECK_MEMORY,
        [SC_FAULT_ILLEGAL_INSTRUCTION] = SC_CHECK_MEMORY,
        [SC_FAULT_DEADLOCK] = SC_CHECK_SYNC,
    };
    if (fault->kind < KR_COUNT(checks) && sc__checking(checks[fault->kind]) &&
        is_first(checks[fault->kind], kernel->facts.name, fault->line))
        tell_at(checks[fault->kind], kernel, fault->block, fault->thread, fault->line, NULL, fault->text);
}

void sc_finding(sc_check check, const char *format, ...)
{
    char text[600];
    va_list args;
    va_start(args, format);
    kr__format_list(text, sizeof text, format, args);
    va_end(args);
    tell(check, text, NULL);
}

uint64_t sc_findings(void)
{
    pthread_mutex_lock(&found_mutex);
    uint64_t n = n_found;
    pthread_mutex_unlock(&found_mutex);
    return n;
}

/* ---- a block's part ---- */

uint32_t sc__check_launch(uint64_t n_blocks)
{
    static _Atomic uint32_t next = 1;
    return atomic_fetch_add(&next, (uint32_t)n_blocks);
}

bool sc__check_block_create(sc_block *block)
{
    if (!sc_checks())
        return true;
    block->check = calloc(1, sizeof *block->check);
    if (!block->check)
        return false;
    if (sc__checking(SC_CHECK_INIT)) {
        block->check->shared_written = calloc(block->shared_bytes + 1, 1);
        if (!block->check->shared_written)
            return false;
    }
    return sc__arrivals_create(block) && (!sc__checking(SC_CHECK_RACE) || sc__clocks_create(block));
}

void sc__check_block_start(sc_block *block)
{
    sc_check_block *check = block->check;
    if (!check)
        return;
    check->serial = block->job->first_serial + (uint32_t)block->linear;
    if (check->shared_written)
        memset(check->shared_written, 0, block->shared_bytes);
    sc__arrivals_start(block);
    if (check->clocks)
        sc__clocks_start(block);
}

void sc__check_block_free(sc_block *block)
{
    if (!block->check)
        return;
    free(block->check->shared_written);
    sc__arrivals_free(block);
    sc__clocks_free(block);
    free(block->check);
}
