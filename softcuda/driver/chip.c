/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The chips that can be played, with their published limits (NVIDIA's data sheets and the compute capability
 * tables of the CUDA programming guide); the H200 as its driver answers.
 */
#include "softcuda/driver/driver.h"

#include <string.h>
#include <strings.h>

#define KIB(n) ((n)*1024)
#define MIB(n) ((n)*1024 * 1024)
#define GIB(n) ((size_t)(n) << 30)

/* key, alias, name, cc, SMs, clock, memory clock, bus, L2, persisting L2, threads/SM, blocks/SM, shared/SM,
 * opt-in, reserved, fp32:fp64, copy engines, integrated, memory */
static const sc_chip chips[] = {
    {"sm_75", "t4", "Tesla T4", 75, 40, 1590000, 5001000, 256, MIB(4), 0, 1024, 16, KIB(64), KIB(64), 0, 32,
     3, false, GIB(16)},
    {"sm_80", "a100", "NVIDIA A100-SXM4-80GB", 80, 108, 1410000, 1593000, 5120, MIB(40), MIB(30), 2048, 32,
     KIB(164), KIB(163), 1024, 2, 3, false, GIB(80)},
    {"sm_86", "rtx3090", "NVIDIA GeForce RTX 3090", 86, 82, 1695000, 9751000, 384, MIB(6), MIB(4), 1536, 16,
     KIB(100), KIB(99), 1024, 64, 2, false, GIB(24)},
    {"sm_87", "orin", "Orin", 87, 16, 1300000, 3199000, 256, MIB(4), MIB(3), 1536, 16, KIB(164), KIB(163),
     1024, 64, 2, true, GIB(64)},
    {"sm_89", "l4", "NVIDIA L4", 89, 58, 2040000, 6251000, 192, MIB(48), MIB(33), 1536, 24, KIB(100), KIB(99),
     1024, 64, 2, false, GIB(24)},
    {"sm_89", "rtx4090", "NVIDIA GeForce RTX 4090", 89, 128, 2520000, 10501000, 384, MIB(72), MIB(49), 1536,
     24, KIB(100), KIB(99), 1024, 64, 2, false, GIB(24)},
    {"sm_90", "h100", "NVIDIA H100 80GB HBM3", 90, 132, 1980000, 2619000, 5120, MIB(50), MIB(32), 2048, 32,
     KIB(228), KIB(227), 1024, 2, 3, false, GIB(80)},
    {"sm_90", "h200", "NVIDIA H200", 90, 132, 1980000, 3201000, 6016, MIB(60), 39321600, 2048, 32, KIB(228),
     KIB(227), 1024, 2, 3, false, 150109880320},
    {"sm_100", "b200", "NVIDIA B200", 100, 148, 1965000, 3996000, 8192, MIB(126), MIB(79), 2048, 32, KIB(228),
     KIB(227), 1024, 2, 4, false, GIB(180)},
    {"sm_103", "b300", "NVIDIA B300", 103, 148, 1920000, 3996000, 8192, MIB(126), MIB(79), 2048, 32, KIB(228),
     KIB(227), 1024, 64, 4, false, GIB(268)},
    {"sm_110", "thor", "NVIDIA Thor", 110, 20, 1575000, 4266000, 256, MIB(32), MIB(20), 1536, 24, KIB(228),
     KIB(227), 1024, 64, 2, true, GIB(128)},
    {"sm_120", "rtx5090", "NVIDIA GeForce RTX 5090", 120, 170, 2407000, 14001000, 512, MIB(96), MIB(60), 1536,
     24, KIB(100), KIB(99), 1024, 64, 2, false, GIB(32)},
    {"sm_121", "gb10", "NVIDIA GB10", 121, 48, 2418000, 8533000, 256, MIB(24), MIB(15), 1536, 24, KIB(100),
     KIB(99), 1024, 64, 2, true, GIB(128)},
};

static bool is_named(const char *key, const char *name, size_t bytes)
{
    return strlen(key) == bytes && strncasecmp(key, name, bytes) == 0;
}

const sc_chip *sc_chip_find(const char *name, size_t bytes)
{
    for (size_t i = 0; i < KR_COUNT(chips); i++)
        if (is_named(chips[i].key, name, bytes) || is_named(chips[i].alias, name, bytes))
            return &chips[i];
    return NULL;
}

/* Attributes that every chip here answers alike. */
static const struct {
    CUdevice_attribute attribute;
    int value;
} common[] = {
    {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1024},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, 1024},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, 1024},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, 64},
    {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, 2147483647},
    {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, 65535},
    {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, 65535},
    {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, KIB(48)},
    {CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY, KIB(64)},
    {CU_DEVICE_ATTRIBUTE_WARP_SIZE, 32},
    {CU_DEVICE_ATTRIBUTE_MAX_PITCH, 2147483647},
    {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK, 65536},
    {CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT, 512},
    {CU_DEVICE_ATTRIBUTE_GPU_OVERLAP, 1},
    {CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY, 1},
    {CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS, 1},
    {CU_DEVICE_ATTRIBUTE_SURFACE_ALIGNMENT, 512},
    {CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 1},
    {CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT, 32},
    {CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_GLOBAL_L1_CACHE_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_LOCAL_L1_CACHE_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, 65536},
    {CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, 1},
    {CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, 1},
    {CU_DEVICE_ATTRIBUTE_COMPUTE_PREEMPTION_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM, 1},
    {CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH, 1},
    {CU_DEVICE_ATTRIBUTE_COOPERATIVE_MULTI_DEVICE_LAUNCH, 1},
    {CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS, 1},
    {CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR, 1},
    {CU_DEVICE_ATTRIBUTE_UNIFIED_FUNCTION_POINTERS, 1},
    {CU_DEVICE_ATTRIBUTE_NUMA_ID, -1},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_WIDTH, 131072},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_WIDTH, 131072},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_HEIGHT, 65536},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_WIDTH, 16384},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_HEIGHT, 16384},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_DEPTH, 16384},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_WIDTH, 32768},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_HEIGHT, 32768},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_LAYERS, 2048},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LAYERED_WIDTH, 32768},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LAYERED_LAYERS, 2048},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_GATHER_WIDTH, 32768},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_GATHER_HEIGHT, 32768},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_WIDTH_ALTERNATE, 8192},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_HEIGHT_ALTERNATE, 8192},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_DEPTH_ALTERNATE, 32768},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_WIDTH, 32768},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_LAYERED_WIDTH, 32768},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_LAYERED_LAYERS, 2046},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE1D_WIDTH, 32768},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_WIDTH, 131072},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_HEIGHT, 65536},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE3D_WIDTH, 16384},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE3D_HEIGHT, 16384},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE3D_DEPTH, 16384},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE1D_LAYERED_WIDTH, 32768},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE1D_LAYERED_LAYERS, 2048},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_LAYERED_WIDTH, 32768},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_LAYERED_HEIGHT, 32768},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_LAYERED_LAYERS, 2048},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACECUBEMAP_WIDTH, 32768},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACECUBEMAP_LAYERED_WIDTH, 32768},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACECUBEMAP_LAYERED_LAYERS, 2046},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LINEAR_WIDTH, 268435456},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_WIDTH, 131072},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_HEIGHT, 65000},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_PITCH, 2097120},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_MIPMAPPED_WIDTH, 32768},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_MIPMAPPED_HEIGHT, 32768},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_MIPMAPPED_WIDTH, 32768},
};

bool sc_chip_attribute(const sc_chip *chip, int number, CUdevice_attribute attribute, int *ret_value)
{
    switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
        *ret_value = chip->cc / 10;
        return true;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
        *ret_value = chip->cc % 10;
        return true;
    case CU_DEVICE_ATTRIBUTE_CLOCK_RATE:
        *ret_value = chip->clock_khz;
        return true;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
        *ret_value = chip->multiprocessors;
        return true;
    case CU_DEVICE_ATTRIBUTE_INTEGRATED:
        *ret_value = chip->integrated;
        return true;
    case CU_DEVICE_ATTRIBUTE_PCI_BUS_ID:
        *ret_value = number + 1;
        return true;
    case CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE:
        *ret_value = chip->memory_clock_khz;
        return true;
    case CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH:
        *ret_value = chip->memory_bus_bits;
        return true;
    case CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE:
        *ret_value = chip->l2_bytes;
        return true;
    case CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE:
        *ret_value = chip->persisting_l2_bytes;
        return true;
    case CU_DEVICE_ATTRIBUTE_MAX_ACCESS_POLICY_WINDOW_SIZE:
        *ret_value = chip->persisting_l2_bytes ? MIB(128) : 0;
        return true;
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR:
        *ret_value = chip->threads_per_multiprocessor;
        return true;
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR:
        *ret_value = chip->blocks_per_multiprocessor;
        return true;
    case CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT:
        *ret_value = chip->async_engines;
        return true;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR:
        *ret_value = chip->shared_per_multiprocessor;
        return true;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
        *ret_value = chip->shared_optin;
        return true;
    case CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK:
        *ret_value = chip->shared_reserved;
        return true;
    case CU_DEVICE_ATTRIBUTE_SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO:
        *ret_value = chip->double_ratio;
        return true;
    case CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH:
        *ret_value = chip->cc >= 90;
        return true;
    case CU_DEVICE_ATTRIBUTE_MEM_SYNC_DOMAIN_COUNT:
        *ret_value = chip->cc >= 90 ? 4 : 1;
        return true;
    default:
        break;
    }
    for (size_t i = 0; i < KR_COUNT(common); i++) {
        if (common[i].attribute == attribute) {
            *ret_value = common[i].value;
            return true;
        }
    }
    *ret_value = 0; /* textures, interop and the rest of what softcuda does not have */
    return attribute >= CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK &&
           attribute <= CU_DEVICE_ATTRIBUTE_ONLY_PARTIAL_HOST_NATIVE_ATOMIC_SUPPORTED;
}
