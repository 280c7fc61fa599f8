/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/internal.h"

#include <stdio.h>
#include <string.h>

static const struct {
    CUdevice_attribute attribute;
    size_t offset; /* of an int in kr_device_info */
} attributes[] = {
#define ROW(attribute, field)                                            \
    {                                                                    \
        CU_DEVICE_ATTRIBUTE_##attribute, offsetof(kr_device_info, field) \
    }
    ROW(COMPUTE_CAPABILITY_MAJOR, cc.major),
    ROW(COMPUTE_CAPABILITY_MINOR, cc.minor),
    ROW(MULTIPROCESSOR_COUNT, multiprocessors),
    ROW(MAX_THREADS_PER_BLOCK, max_threads_per_block),
    ROW(MAX_BLOCK_DIM_X, max_block[0]),
    ROW(MAX_BLOCK_DIM_Y, max_block[1]),
    ROW(MAX_BLOCK_DIM_Z, max_block[2]),
    ROW(MAX_GRID_DIM_X, max_grid[0]),
    ROW(MAX_GRID_DIM_Y, max_grid[1]),
    ROW(MAX_GRID_DIM_Z, max_grid[2]),
    ROW(MAX_THREADS_PER_MULTIPROCESSOR, max_threads_per_multiprocessor),
    ROW(MAX_BLOCKS_PER_MULTIPROCESSOR, max_blocks_per_multiprocessor),
    ROW(MAX_REGISTERS_PER_BLOCK, registers_per_block),
    ROW(MAX_REGISTERS_PER_MULTIPROCESSOR, registers_per_multiprocessor),
    ROW(MAX_SHARED_MEMORY_PER_BLOCK, shared_bytes_per_block),
    ROW(MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, shared_bytes_per_block_optin),
    ROW(MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, shared_bytes_per_multiprocessor),
    ROW(RESERVED_SHARED_MEMORY_PER_BLOCK, reserved_shared_bytes_per_block),
    ROW(WARP_SIZE, warp_size),
    ROW(COOPERATIVE_LAUNCH, cooperative_launch),
    ROW(MEMORY_POOLS_SUPPORTED, memory_pools),
    ROW(INTEGRATED, integrated),
#undef ROW
};

static void format_uuid(const CUuuid *uuid, char *to, size_t bytes)
{
    const unsigned char *b = (const unsigned char *)uuid->bytes;
    kr__format(to, bytes, "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0],
               b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13], b[14],
               b[15]);
}

static kr_status read_attributes(kr_device *device, kr_error *err)
{
    for (size_t i = 0; i < KR_COUNT(attributes); i++) {
        int *field = (int *)((char *)&device->info + attributes[i].offset);
        const CUresult result =
            device->driver->cuDeviceGetAttribute(field, attributes[i].attribute, device->cudevice);
        if (result == CUDA_ERROR_INVALID_VALUE) /* an attribute younger than the driver */
            *field = 0;
        else if (result != CUDA_SUCCESS)
            return KR_DEVICE_FAIL(err, device, result, "cuDeviceGetAttribute",
                                  "cannot read attribute %d of device %d", (int)attributes[i].attribute,
                                  device->info.ordinal);
    }
    return KR_OK;
}

kr_status kr__device_init(kr_device *device, kr_runtime *runtime, CUdevice cudevice, int ordinal,
                          kr_error *err)
{
    kr__driver *driver = runtime->driver;
    kr_device_info *info = &device->info;
    device->runtime = runtime;
    device->driver = driver;
    device->cudevice = cudevice;
    device->default_stream = (kr_stream){.device = device, .custream = CU_STREAM_LEGACY};
    info->ordinal = ordinal;
    info->simulated = strcmp(driver->kind, "softcuda") == 0;
    const char *function = "cuDeviceGetName";
    CUresult result = driver->cuDeviceGetName(info->name, sizeof info->name, cudevice);
    if (result == CUDA_SUCCESS) {
        function = "cuDeviceGetUuid";
        CUuuid uuid;
        result = (driver->cuDeviceGetUuid_v2 ? driver->cuDeviceGetUuid_v2
                                             : driver->cuDeviceGetUuid)(&uuid, cudevice);
        if (result == CUDA_SUCCESS)
            format_uuid(&uuid, info->uuid, sizeof info->uuid);
    }
    if (result == CUDA_SUCCESS) {
        function = "cuDeviceGetPCIBusId";
        result = driver->cuDeviceGetPCIBusId(info->pci, sizeof info->pci, cudevice);
    }
    if (result == CUDA_SUCCESS) {
        function = "cuDeviceTotalMem_v2";
        result = driver->cuDeviceTotalMem_v2(&info->memory_bytes, cudevice);
    }
    if (result != CUDA_SUCCESS)
        return KR_DEVICE_FAIL(err, device, result, function, "cannot read what device %d is", ordinal);
    return read_attributes(device, err);
}

const kr_device_info *kr_device_get_info(const kr_device *device)
{
    return device ? &device->info : NULL;
}

kr_status kr_device_cucontext(kr_device *device, void **ret_context, kr_error *err)
{
    KR_REQUIRE(err, device, ret_context);
    CUcontext context;
    kr_status status = kr__driver_alive(device->driver, err);
    if (status == KR_OK)
        status = kr__device_context(device, &context, err);
    if (status == KR_OK)
        *ret_context = context;
    return status;
}

kr_status kr_device_memory(kr_device *device, size_t *ret_free_bytes, size_t *ret_total_bytes, kr_error *err)
{
    KR_REQUIRE(err, device, ret_free_bytes, ret_total_bytes);
    size_t free_bytes, total_bytes;
    const kr_status status = KR_CALL(err, device, cuMemGetInfo_v2, (&free_bytes, &total_bytes),
                                     "cannot ask how much memory device %d has free", device->info.ordinal);
    if (status != KR_OK)
        return status;
    *ret_free_bytes = free_bytes;
    *ret_total_bytes = total_bytes;
    return KR_OK;
}

kr_status kr_device_synchronize(kr_device *device, kr_error *err)
{
    KR_REQUIRE(err, device);
    return KR_CALL(err, device, cuCtxSynchronize, (), "waiting for device %d failed", device->info.ordinal);
}

static kr_status same_runtime(const kr_device *device, const kr_device *peer, kr_error *err)
{
    return device->driver == peer->driver
               ? KR_OK
               : KR_FAIL(err, KR_INVALID_ARGUMENT, "the devices are of two drivers: %s and %s",
                         device->driver->path, peer->driver->path);
}

kr_status kr_device_can_access_peer(kr_device *device, kr_device *peer, int *ret_can, kr_error *err)
{
    KR_REQUIRE(err, device, peer, ret_can);
    kr_status status = kr__driver_alive(device->driver, err);
    if (status == KR_OK)
        status = same_runtime(device, peer, err);
    if (status != KR_OK)
        return status;
    int can = 1; /* its own memory; the driver answers 0 to that */
    if (device->cudevice != peer->cudevice) {
        const CUresult result = device->driver->cuDeviceCanAccessPeer(&can, device->cudevice, peer->cudevice);
        if (result != CUDA_SUCCESS)
            return KR_DEVICE_FAIL(err, device, result, "cuDeviceCanAccessPeer",
                                  "cannot ask whether device %d reaches device %d", device->info.ordinal,
                                  peer->info.ordinal);
    }
    *ret_can = can;
    return KR_OK;
}

kr_status kr_device_enable_peer(kr_device *device, kr_device *peer, kr_error *err)
{
    KR_REQUIRE(err, device, peer);
    int can;
    kr_status status = kr_device_can_access_peer(device, peer, &can, err);
    if (status != KR_OK || device->cudevice == peer->cudevice)
        return status;
    if (!can) {
        KR_FAIL(err, KR_NOT_ON_THIS_DEVICE,
                "the memory of device %d (%s) cannot be reached from device %d (%s)", peer->info.ordinal,
                peer->info.pci, device->info.ordinal, device->info.pci);
        kr__error_device(err, device->info.ordinal);
        kr__error_advice(
            err, "Copies between them work all the same; `nvidia-smi topo -p2p r` shows which pairs do.");
        return KR_NOT_ON_THIS_DEVICE;
    }
    CUcontext peer_context;
    status = kr__device_context(peer, &peer_context, err);
    kr__scope scope;
    if (status == KR_OK)
        status = kr__scope_begin(&scope, device, err);
    if (status != KR_OK)
        return status;
    const CUresult result = device->driver->cuCtxEnablePeerAccess(peer_context, 0);
    kr__scope_end(&scope);
    if (result == CUDA_SUCCESS || result == CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED)
        return KR_OK;
    return KR_DEVICE_FAIL(err, device, result, "cuCtxEnablePeerAccess",
                          "cannot let device %d (%s) reach device %d (%s)", device->info.ordinal,
                          device->info.pci, peer->info.ordinal, peer->info.pci);
}
