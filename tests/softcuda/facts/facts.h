/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a driver answers, case by case, each in a process of its own. The same program records a real driver
 * and judges softcuda.
 *
 *     facts_FAMILY               print "case<TAB>answers" for every case
 *     facts_FAMILY CASE          for that one
 *     facts_FAMILY --judge FILE  compare with the recorded FILE; exit 1 and both answers where they differ
 */
#ifndef SOFTCUDA_FACTS_H
#define SOFTCUDA_FACTS_H

#include <stddef.h>

#include "tests/softcuda/calls.h"

typedef struct fact {
    const char *name;
    void (*ask)(void);
} fact;

/* Appends to this case's answers; a number begins with a space. */
__attribute__((format(printf, 1, 2))) void say(const char *format, ...);

#define ASK(call) say(" %d", (int)(call))

/* What must go well before there is anything to ask; ends the case otherwise. */
#define MUST(call) must((call), #call)
void must(CUresult result, const char *call);

/* cuInit, and the first device's primary context made current. */
CUcontext begin(void);

int facts_main(int argc, char **argv, const fact *facts, size_t n);

#define FACTS_MAIN(facts)                                                        \
    int main(int argc, char **argv)                                              \
    {                                                                            \
        return facts_main(argc, argv, (facts), sizeof(facts) / sizeof *(facts)); \
    }

#endif
