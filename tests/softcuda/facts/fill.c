/* SPDX-License-Identifier: Apache-2.0 */
/* Fills of every width. Those past the end of the address space are not asked for: the driver takes them, and
 * the context does not survive it. */
#include "tests/softcuda/facts/memory.h"

enum { BYTES = 1000 };

/* The 6 functions as one. `async`: in the default stream. */
static CUresult fill(int bits, bool async, CUdeviceptr to, size_t n)
{
    if (bits == 8)
        return async ? cuMemsetD8Async(to, 0xab, n, NULL) : cuMemsetD8_v2(to, 0xab, n);
    if (bits == 16)
        return async ? cuMemsetD16Async(to, 0xabcd, n, NULL) : cuMemsetD16_v2(to, 0xabcd, n);
    return async ? cuMemsetD32Async(to, 0xabcdef12, n, NULL) : cuMemsetD32_v2(to, 0xabcdef12, n);
}

static void ask_fills(int bits, bool async)
{
    begin();
    CUdeviceptr p = device(BYTES);
    size_t element = (size_t)bits / 8, n = BYTES / element;
    say(" sizes");
    ASK(fill(bits, async, p, n));
    ASK(fill(bits, async, p, n + 1));
    ASK(fill(bits, async, p, 1024 / element));
    ASK(fill(bits, async, p, 1024 / element + 1));
    ASK(fill(bits, async, p, 4 * MIB));
    ASK(fill(bits, async, p, 0));
    ASK(fill(bits, async, 0, 0));
    ASK(fill(bits, async, 0, 1));
    ASK(fill(bits, async, p + 1, 0));
    ASK(fill(bits, async, GARBAGE, 0));
    ASK(fill(bits, async, GARBAGE, 1));
    say(" alignment");
    for (CUdeviceptr offset = 1; offset <= 4; offset++)
        ASK(fill(bits, async, p + offset, 4));
}

#define WIDTHS(X) X(8) X(16) X(32)
#define ASKS(bits)                        \
    static void fill_##bits(void)         \
    {                                     \
        ask_fills(bits, false);           \
    }                                     \
    static void fill_##bits##_async(void) \
    {                                     \
        ask_fills(bits, true);            \
    }
WIDTHS(ASKS)

static void fills_arrive(void)
{
    unsigned char out[256];
    begin();
    CUdeviceptr p = device(256);
    MUST(cuMemsetD8_v2(p, 1, 256));
    MUST(cuMemsetD16_v2(p + 2, 0x1234, 3));
    MUST(cuMemsetD32_v2(p + 16, 0x89abcdef, 3));
    MUST(cuMemsetD2D8_v2(p + 64, 16, 7, 3, 4));
    MUST(cuMemsetD2D16_v2(p + 130, 32, 0x4321, 2, 3));
    MUST(cuMemcpyDtoH_v2(out, p, 256));
    unsigned sum = 0;
    for (int i = 0; i < 256; i++)
        sum = sum * 31 + out[i];
    say(" %u", sum);
}

#define CASE(name) {#name, name},
#define CASES(bits) CASE(fill_##bits) CASE(fill_##bits##_async)
static const fact facts[] = {WIDTHS(CASES) CASE(fills_arrive)};

FACTS_MAIN(facts)
