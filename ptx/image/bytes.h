/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KR_IMAGE_BYTES_H
#define KR_IMAGE_BYTES_H

/* Little-endian reads that check their bounds. A read outside gives 0 and sets `failed`. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef struct kr__bytes {
    const uint8_t *data;
    size_t n;
    bool failed;
} kr__bytes;

static inline bool kr__bytes_hold(const kr__bytes *bytes, uint64_t offset, uint64_t n)
{
    return offset <= bytes->n && n <= bytes->n - offset;
}

/* Reads no further than the first byte that differs: a short text may end there. */
static inline bool kr__begins_with(const void *data, size_t bytes, const char *magic, size_t magic_bytes)
{
    const char *at = data;
    for (size_t i = 0; i < magic_bytes; i++)
        if (i >= bytes || at[i] != magic[i])
            return false;
    return true;
}

static inline uint64_t kr__bytes_get(kr__bytes *bytes, uint64_t offset, size_t n)
{
    uint64_t value = 0;
    if (kr__bytes_hold(bytes, offset, n))
        memcpy(&value, bytes->data + offset, n);
    else
        bytes->failed = true;
    return value;
}

static inline uint8_t kr__u8(kr__bytes *bytes, uint64_t offset)
{
    return (uint8_t)kr__bytes_get(bytes, offset, 1);
}

static inline uint16_t kr__u16(kr__bytes *bytes, uint64_t offset)
{
    return (uint16_t)kr__bytes_get(bytes, offset, 2);
}

static inline uint32_t kr__u32(kr__bytes *bytes, uint64_t offset)
{
    return (uint32_t)kr__bytes_get(bytes, offset, 4);
}

static inline uint64_t kr__u64(kr__bytes *bytes, uint64_t offset)
{
    return kr__bytes_get(bytes, offset, 8);
}

#endif
