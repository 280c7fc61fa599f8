// SPDX-License-Identifier: Apache-2.0
//! op      rgb_to_gray
//! brief   gray = (77 * red + 150 * green + 29 * blue + 128) / 256
//! arg     width      u64                    size
//! arg     height     u64                    size
//! arg     src_pitch  u64                    size>=3*width
//! arg     dst_pitch  u64                    size>=width
//! arg     src        u8[height*src_pitch]   in
//! arg     dst        u8[height*dst_pitch]   inout
//! variant grid  cc>=5.0
//! launch  tiles width height tile=128x8 block=32x8
//! compare exact
//! cost    bytes=4*width*height flops=6*width*height
//! split   height
//! source  ITU-R BT.601, luma weights 0.299 0.587 0.114 in 1/256

// Interleaved 8-bit RGB; pitches in bytes. Integer arithmetic: the same bits everywhere; 255,255,255 gives
// 255. The bytes between the end of a row and its pitch are left as they are, which is why dst is inout.

#ifdef KR_REFERENCE
static void reference(uint64_t width, uint64_t height, uint64_t src_pitch, uint64_t dst_pitch,
                      const uint8_t *src, uint8_t *dst)
{
    for (uint64_t y = 0; y < height; y++)
        for (uint64_t x = 0; x < width; x++) {
            const uint8_t *rgb = src + y * src_pitch + 3 * x;
            dst[y * dst_pitch + x] = (uint8_t)((77 * rgb[0] + 150 * rgb[1] + 29 * rgb[2] + 128) / 256);
        }
}
#endif

#ifdef KR_VARIANT_grid
extern "C" __global__ void grid(uint64_t width, uint64_t height, uint64_t src_pitch, uint64_t dst_pitch,
                                const uint8_t *src, uint8_t *dst)
{
    uint64_t row_stride = (uint64_t)gridDim.y * blockDim.y, col_stride = (uint64_t)gridDim.x * blockDim.x;
    for (uint64_t y = (uint64_t)blockIdx.y * blockDim.y + threadIdx.y; y < height; y += row_stride)
        for (uint64_t x = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; x < width; x += col_stride) {
            const uint8_t *rgb = src + y * src_pitch + 3 * x;
            dst[y * dst_pitch + x] = (uint8_t)((77u * rgb[0] + 150u * rgb[1] + 29u * rgb[2] + 128u) / 256u);
        }
}
#endif
