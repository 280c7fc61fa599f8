/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SC_VIDEO_H
#define SC_VIDEO_H

/* What a video instruction does, as decoded. */

#include "softcuda/vm/machine.h"

typedef enum sc_video_operation {
    SC_VIDEO_NONE,
    SC_VIDEO_ADD,
    SC_VIDEO_SUB,
    SC_VIDEO_ABSDIFF,
    SC_VIDEO_MIN,
    SC_VIDEO_MAX,
    SC_VIDEO_AVERAGE,
    SC_VIDEO_SHL,
    SC_VIDEO_SHR,
    SC_VIDEO_SET,
    SC_VIDEO_MAD
} sc_video_operation;

/* Of a register: a byte, a half, or all of it. */
typedef struct sc_video_part {
    uint8_t shift, width;
    bool is_signed;
} sc_video_part;

typedef struct sc_video {
    sc_video_operation operation;
    ptx_compare compare;
    ptx_sub second; /* on the result and c */
    sc_video_part a, b;
    bool d_signed, saturates, wraps;
    /* vmad */
    bool negates_product, negates_addend, adds_one;
    /* on each part */
    uint8_t width;                    /* of a part; 0: there is one */
    uint8_t a_choice[4], b_choice[4]; /* which of b:a's parts go into each */
    uint8_t written;                  /* a bit a part of the result */
} sc_video;

sc_handler *sc__video_handler(const sc_video *video);

static inline uint32_t *sc_video_slot(const sc_warp *warp, sc_slot slot)
{
    return (uint32_t *)(warp->bank[slot & 1] + (slot & ~3u));
}

#endif
