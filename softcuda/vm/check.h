/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SC_CHECK_H
#define SC_CHECK_H

/*
 * The checkers: they observe the machine. Where one is on, decoding puts observing handlers in the place of
 * the plain ones, which these then call; where none is, nothing of them runs with a kernel.
 *
 * check.c         which are on; findings
 * check_access.c  every access to memory, from sc__accesses(); initcheck
 * check_race.c    what comes before what; racecheck
 * check_sync.c    barriers and the warp's rendezvous; synccheck
 */

#include "softcuda/vm/machine.h"

static inline bool sc__checking(unsigned any_of)
{
    return (sc_checks() & any_of) != 0;
}

/* ---- check.c ---- */

/* Is this the first finding of its kind at the line of the kernel? From now on it is not. */
bool sc__is_first(sc_check check, const sc_kernel *kernel, uint32_t line);
/* Tells it. `detail`: a second line, or NULL. */
void sc__tell(sc_check check, const sc_warp *warp, unsigned lane, uint32_t line, const char *detail,
              const char *format, ...) KR_PRINTF(6, 7);
void sc__report_fault(const sc_kernel *kernel, const sc_fault *fault);
/* An instruction of the line, with this operation where it is not PTX_OP_COUNT. NULL: none. */
const ptx_instr *sc__instr_at(const sc_kernel *kernel, uint32_t line, ptx_op op);
/* " (file.cu:12)", where the PTX says it. */
void sc__source_of(const sc_kernel *kernel, uint32_t line, char *to, size_t to_bytes);

/* ---- what a block has for the checkers ---- */

typedef struct sc_arrivals sc_arrivals;
typedef struct sc_clocks sc_clocks;

struct sc_check_block {
    uint32_t serial;         /* counts blocks of the process from 1 */
    uint8_t *shared_written; /* initcheck: a byte a byte of shared memory */
    sc_arrivals *arrivals;   /* a barrier: who has come */
    sc_clocks *clocks;       /* racecheck */
    uint64_t frees;          /* those that the remembered allocations take into account */
};

/* All of it for a block just created. false: out of memory; what there is is freed with the block. */
bool sc__check_block_create(sc_block *block);
void sc__check_block_start(sc_block *block);
void sc__check_block_free(sc_block *block);
/* The serial of the launch's first block. */
uint32_t sc__check_launch(uint64_t n_blocks);

/* ---- check_access.c ---- */

typedef enum sc_touch { SC_TOUCH_READ = 1, SC_TOUCH_WRITE = 2, SC_TOUCH_BOTH = 3 } sc_touch;

/* The accesses that decoding uses: the plain ones, or those that observe them. */
const sc_accesses *sc__check_accesses(const sc_accesses *plain);
/* " , 12 bytes into the allocation of 64 bytes at 0x... (number 5)", for findings. */
void sc__where(const sc_warp *warp, const char *at, char *to, size_t to_bytes);
/* Memory began, or ceased, to be an allocation. */
void sc__check_allocated(uint64_t start, size_t bytes);
void sc__check_freed(uint64_t start, size_t bytes);

/* ---- check_race.c ---- */

/* An instruction's accesses, as racecheck sees them. */
typedef struct sc_seen {
    const sc_warp *warp;
    uint32_t line;
    sc_touch touch;
    unsigned bytes;
    bool strong;                 /* atomic, volatile, relaxed ...: two of these do not race */
    bool releases;               /* it publishes what came before it without a fence */
    const uint8_t (*values)[32]; /* a lane's bytes to be stored; NULL: not known */
} sc_seen;

bool sc__clocks_create(sc_block *block);
void sc__clocks_start(sc_block *block);
void sc__clocks_free(sc_block *block);
void sc__race_access(const sc_seen *seen, uint32_t lanes);
void sc__race_forget(uint64_t start, size_t bytes);
void sc__race_fence(sc_warp *warp);
void sc__race_sync_lanes(sc_warp *warp, uint32_t lanes);
/* A warp comes to a barrier; those that waited there, a bit a warp, go on. */
void sc__race_arrive(sc_warp *warp, unsigned barrier);
void sc__race_release(sc_block *block, unsigned barrier, uint32_t waiting);

/* ---- check_sync.c ---- */

/* Puts observing handlers in the place of the plain ones. */
void sc__check_code(sc_code *code, size_t n);
bool sc__arrivals_create(sc_block *block);
void sc__arrivals_start(sc_block *block);
void sc__arrivals_free(sc_block *block);

#endif
