/* SPDX-License-Identifier: Apache-2.0 */
/* SHA-256, from FIPS 180-4. */
#include "runtime/base/base.h"

#include <endian.h>
#include <string.h>

enum { BLOCK_BYTES = 64 };

/* The first 32 bits of the fractions of the cube roots of the first 64 primes (4.2.2). */
static const uint32_t constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t rotate(uint32_t x, unsigned bits)
{
    return x >> bits | x << (32 - bits);
}

/* One block, 6.2.2. The schedule is a ring of the last 16 words. */
static void add_block(uint32_t state[8], const uint8_t *block)
{
    uint32_t words[16], a = state[0], b = state[1], c = state[2], d = state[3], e = state[4], f = state[5],
                        g = state[6], h = state[7];
    memcpy(words, block, sizeof words);
    for (size_t t = 0; t < 64; t++) {
        uint32_t *word = &words[t % 16];
        if (t < 16) {
            *word = be32toh(*word);
        } else {
            const uint32_t before2 = words[(t + 14) % 16], before15 = words[(t + 1) % 16];
            *word += (rotate(before2, 17) ^ rotate(before2, 19) ^ before2 >> 10) + words[(t + 9) % 16] +
                     (rotate(before15, 7) ^ rotate(before15, 18) ^ before15 >> 3);
        }
        const uint32_t one =
            h + (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)) + ((e & f) ^ (~e & g)) + constants[t] + *word;
        const uint32_t two = (rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
        h = g;
        g = f;
        f = e;
        e = d + one;
        d = c;
        c = b;
        b = a;
        a = one + two;
    }
    const uint32_t more[] = {a, b, c, d, e, f, g, h};
    for (size_t i = 0; i < 8; i++)
        state[i] += more[i];
}

void kr__sha256_begin(kr__sha256 *sha)
{
    /* The first 32 bits of the fractions of the square roots of the first 8 primes (5.3.3). */
    *sha = (kr__sha256){.state = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c,
                                  0x1f83d9ab, 0x5be0cd19}};
}

void kr__sha256_add(kr__sha256 *sha, const void *data, size_t bytes)
{
    const uint8_t *at = data;
    size_t held = sha->bytes % BLOCK_BYTES;
    sha->bytes += bytes;
    if (held) {
        const size_t n = bytes < BLOCK_BYTES - held ? bytes : BLOCK_BYTES - held;
        memcpy(sha->block + held, at, n);
        at += n;
        bytes -= n;
        if (held + n < BLOCK_BYTES)
            return;
        add_block(sha->state, sha->block);
    }
    for (; bytes >= BLOCK_BYTES; at += BLOCK_BYTES, bytes -= BLOCK_BYTES)
        add_block(sha->state, at);
    if (bytes)
        memcpy(sha->block, at, bytes);
}

/* A one bit, zeros, and the length in bits up to the end of a block (5.1.1). */
void kr__sha256_end(kr__sha256 *sha, uint8_t ret_digest[KR__SHA256_BYTES])
{
    static const uint8_t padding[BLOCK_BYTES] = {0x80};
    const uint64_t bits = htobe64(sha->bytes * 8);
    const size_t held = sha->bytes % BLOCK_BYTES, room = BLOCK_BYTES - sizeof bits;
    kr__sha256_add(sha, padding, (held < room ? room : room + BLOCK_BYTES) - held);
    kr__sha256_add(sha, &bits, sizeof bits);
    for (size_t i = 0; i < 8; i++) {
        const uint32_t word = htobe32(sha->state[i]);
        memcpy(ret_digest + 4 * i, &word, sizeof word);
    }
}

void kr__sha256_of(const void *data, size_t bytes, uint8_t ret_digest[KR__SHA256_BYTES])
{
    kr__sha256 sha;
    kr__sha256_begin(&sha);
    kr__sha256_add(&sha, data, bytes);
    kr__sha256_end(&sha, ret_digest);
}
