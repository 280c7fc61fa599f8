/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FAKE_H
#define FAKE_H

/* The scripted libcuda of these tests (fake_cuda.c): what a test tells it, and what it tells a test. It keeps
 * the rules that matter here: contexts a thread, who owns what, and answers as a driver gives them. */

#include <stdatomic.h>

#include "abi/cuda.h"

typedef struct fake {
    /* told */
    int init;         /* what cuInit answers */
    int version;      /* 13000 */
    int n_devices;    /* 2 */
    int fail_at;      /* the call that fails, counted from 1 since calls was last 0; 0: none */
    int fail_with;    /* its answer */
    int fault;        /* a sticky fault that the next synchronising call notices, and every call after it */
    int context_busy; /* what getting a context answers */
    size_t free_bytes;
    int no_libraries; /* cuLibraryLoadData answers NOT_SUPPORTED */
    /* tells */
    atomic_int calls;
    const char *failed; /* the name of the call that failed by fail_at */
    atomic_int retained, own_contexts, allocations, streams, events, modules, libraries, launches,
        set_attributes;
    unsigned grid[3], block[3], shared;
    unsigned long long params[8]; /* of the last launch, each cut to its size */
    char launched[64];
    CUcontext context; /* it was launched in */
} fake;

/* Exported by the library. */
fake *fake_cuda(void);
typedef fake *(*fake_cuda_fn)(void);

#endif
