/* SPDX-License-Identifier: Apache-2.0 */
/* Video instructions: vadd and its like on a part of a register, vadd2, vadd4 and theirs on each of its
 * parts. */
#include "softcuda/vm/video.h"
#include "softcuda/vm/alu.h"

#define EACH_LANE(lane, mask)                                                                \
    for (uint32_t left_ = (mask), lane; left_ && (lane = (uint32_t)__builtin_ctz(left_), 1); \
         left_ &= left_ - 1)

static int64_t extend(uint64_t bits, unsigned width, bool is_signed)
{
    return is_signed ? (int64_t)(bits << (64 - width)) >> (64 - width)
                     : (int64_t)(bits & (UINT64_MAX >> (64 - width)));
}

static int64_t clamp_to(int64_t x, unsigned width, bool is_signed)
{
    const int64_t low = is_signed ? -(1ll << (width - 1)) : 0;
    const int64_t high = is_signed ? (1ll << (width - 1)) - 1 : (1ll << width) - 1;
    return x < low ? low : x > high ? high : x;
}

static int64_t compare(ptx_compare how, int64_t a, int64_t b)
{
    switch (how) {
    case PTX_EQ:
        return a == b;
    case PTX_NE:
        return a != b;
    case PTX_LT:
        return a < b;
    case PTX_LE:
        return a <= b;
    case PTX_GT:
        return a > b;
    default:
        return a >= b;
    }
}

static int64_t operate(const sc_video *video, int64_t a, int64_t b)
{
    const uint64_t shift = video->wraps ? (uint64_t)b & 31 : (uint64_t)b > 32 ? 32 : (uint64_t)b;
    switch (video->operation) {
    case SC_VIDEO_ADD:
        return a + b;
    case SC_VIDEO_SUB:
        return a - b;
    case SC_VIDEO_ABSDIFF:
        return a < b ? b - a : a - b;
    case SC_VIDEO_MIN:
        return a < b ? a : b;
    case SC_VIDEO_MAX:
        return a > b ? a : b;
    case SC_VIDEO_AVERAGE:
        return (a + b + (a + b >= 0)) >> 1;
    case SC_VIDEO_SHL:
        return (int64_t)((uint64_t)a << shift);
    case SC_VIDEO_SHR:
        return a >> shift;
    default:
        return compare(video->compare, a, b);
    }
}

/* ---- one part ---- */

static int64_t part_of(uint32_t bits, const sc_video_part *part)
{
    return extend(bits >> part->shift, part->width, part->is_signed);
}

static uint32_t finish(const sc_video *video, int64_t x, uint32_t c)
{
    const uint32_t bits = (uint32_t)x;
    const bool less = video->d_signed ? (int32_t)bits < (int32_t)c : bits < c;
    switch (video->second) {
    case PTX_SUB_ADD:
        return bits + c;
    case PTX_SUB_MIN:
        return less ? bits : c;
    case PTX_SUB_MAX:
        return less ? c : bits;
    default:
        return bits;
    }
}

static const sc_code *run_one(sc_warp *warp, const sc_code *in)
{
    const sc_video *video = in->more;
    const uint32_t *a = sc_video_slot(warp, in->a), *b = sc_video_slot(warp, in->b),
                   *c = sc_video_slot(warp, in->c);
    uint32_t *d = sc_video_slot(warp, in->d);
    EACH_LANE(lane, warp->mask)
    {
        int64_t x = operate(video, part_of(a[lane], &video->a), part_of(b[lane], &video->b));
        if (video->saturates)
            x = clamp_to(x, 32, video->d_signed);
        d[lane] = finish(video, x, c[lane]);
    }
    return in + 1;
}

static const sc_code *run_mad(sc_warp *warp, const sc_code *in)
{
    const sc_video *video = in->more;
    const uint32_t *a = sc_video_slot(warp, in->a), *b = sc_video_slot(warp, in->b),
                   *c = sc_video_slot(warp, in->c);
    uint32_t *d = sc_video_slot(warp, in->d);
    EACH_LANE(lane, warp->mask)
    {
        const uint32_t product =
            (uint32_t)((uint64_t)part_of(a[lane], &video->a) * (uint64_t)part_of(b[lane], &video->b));
        d[lane] = (video->negates_product ? 0 - product : product) +
                  (video->negates_addend ? 0 - c[lane] : c[lane]) + video->adds_one;
    }
    return in + 1;
}

/* ---- each part ---- */

/* Parts are chosen from b:a. */
static int64_t chosen(const sc_video *video, const uint8_t *choice, unsigned i, uint64_t both, bool is_signed)
{
    return extend(both >> choice[i] * video->width, video->width, is_signed);
}

static const sc_code *run_each(sc_warp *warp, const sc_code *in)
{
    const sc_video *video = in->more;
    const uint32_t *a = sc_video_slot(warp, in->a), *b = sc_video_slot(warp, in->b),
                   *c = sc_video_slot(warp, in->c);
    uint32_t *d = sc_video_slot(warp, in->d);
    const uint32_t mask = (1u << video->width) - 1;
    EACH_LANE(lane, warp->mask)
    {
        const uint64_t both = (uint64_t)b[lane] << 32 | a[lane];
        uint32_t result = c[lane];
        for (unsigned i = 0; i < 32u / video->width; i++) {
            if (!(video->written >> i & 1))
                continue;
            int64_t x = operate(video, chosen(video, video->a_choice, i, both, video->a.is_signed),
                                chosen(video, video->b_choice, i, both, video->b.is_signed));
            if (video->saturates)
                x = clamp_to(x, video->width, video->d_signed);
            if (video->second == PTX_SUB_ADD)
                result += (uint32_t)x;
            else
                result = (result & ~(mask << i * video->width)) | ((uint32_t)x & mask) << i * video->width;
        }
        d[lane] = result;
    }
    return in + 1;
}

sc_handler *sc__video_handler(const sc_video *video)
{
    return video->width ? run_each : video->operation == SC_VIDEO_MAD ? run_mad : run_one;
}
