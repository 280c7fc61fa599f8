/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FUZZ_H
#define FUZZ_H

/* What libFuzzer calls, by its own names. */

#include <stddef.h>
#include <stdint.h>

/* One input. Whatever the bytes: no crash, no leak, and a reason where they are refused. */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

/* An input made of another one, in place; the new size. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t n, size_t capacity, unsigned seed);
size_t LLVMFuzzerMutate(uint8_t *data, size_t n, size_t capacity); /* libFuzzer's own */

#endif
