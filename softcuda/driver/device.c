/* SPDX-License-Identifier: Apache-2.0 */
/* cuInit, the driver version played, and the devices. */
#include "softcuda/driver/driver.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/resource.h>

sc_device sc_devices[SC_MAX_DEVICES];
int sc_n_devices;

static _Atomic enum { FRESH, READY, FORKED } state;
static pthread_mutex_t init_lock = PTHREAD_MUTEX_INITIALIZER;

void sc_say(const char *format, ...)
{
    char text[1024];
    va_list args;
    va_start(args, format);
    kr__format_list(text, sizeof text, format, args);
    va_end(args);
    fprintf(stderr, "softcuda: %s\n", text);
}

/* ---- the version played ---- */

enum { NEWEST_VERSION = 13000 };

static bool is_digit(char c)
{
    return isdigit((unsigned char)c);
}

/* "12.4" is 12040. 0: not a version. */
static int read_version(const char *text)
{
    char *end;
    unsigned long major = is_digit(*text) ? strtoul(text, &end, 10) : 0;
    if (major < 5 || major > 13 || end[0] != '.' || !is_digit(end[1]) || end[2])
        return 0;
    int version = (int)major * 1000 + (end[1] - '0') * 10;
    return version <= NEWEST_VERSION ? version : 0;
}

static int version_played = NEWEST_VERSION;

/* What is no version is told of by cuInit. */
void sc_driver_version_read(void)
{
    const char *text = getenv("KREGISTRY_SOFTCUDA_DRIVER");
    int version = text && *text ? read_version(text) : 0;
    version_played = version ? version : NEWEST_VERSION;
}

static bool version_is_known(void)
{
    const char *text = getenv("KREGISTRY_SOFTCUDA_DRIVER");
    if (!text || !*text || read_version(text))
        return true;
    sc_say("KREGISTRY_SOFTCUDA_DRIVER: no CUDA version up to 13.0 as \"%s\"", text);
    return false;
}

int sc_driver_version(void)
{
    return version_played;
}

/* The PTX ISA that came with each CUDA version, newest first (NVIDIA's PTX release history). */
int sc_driver_isa(void)
{
    static const struct {
        int version, isa;
    } history[] = {{13000, 90}, {12090, 88}, {12080, 87}, {12070, 86}, {12050, 85}, {12040, 84}, {12030, 83},
                   {12020, 82}, {12010, 81}, {12000, 80}, {11080, 78}, {11070, 77}, {11060, 76}, {11050, 75},
                   {11040, 74}, {11030, 73}, {11020, 72}, {11010, 71}, {11000, 70}, {10020, 65}, {10010, 64},
                   {10000, 63}, {9020, 62},  {9010, 61},  {9000, 60}};
    for (size_t i = 0; i < KR_COUNT(history); i++)
        if (sc_driver_version() >= history[i].version)
            return history[i].isa;
    return 50;
}

/* ---- what the environment asks for ---- */

static bool settings_are_good(void)
{
    bool good = version_is_known();
    good = sc_unhelpful_is_good() && good;
    for (const sc_setting *setting = sc_settings; setting->name; setting++) {
        uint64_t value;
        if (!sc_setting_read(setting, &value)) {
            sc_say("%s: no whole number from %" PRIu64 " to %" PRIu64 " as \"%s\"", setting->name,
                   setting->least, setting->most, getenv(setting->name));
            good = false;
        }
    }
    if (!sc_isa_is_known()) {
        sc_say("KREGISTRY_SOFTCUDA_ISA: only \"baseline\" can be asked for, not \"%s\"",
               getenv("KREGISTRY_SOFTCUDA_ISA"));
        good = false;
    }
    if (sc_checks_unknown()) {
        sc_say("KREGISTRY_SOFTCUDA_CHECK: no checker as \"%s\"", sc_checks_unknown());
        good = false;
    }
    return good;
}

/* ---- the devices ---- */

static void make_uuid(sc_device *device)
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (int i = 0; i < 16; i++) {
        for (const char *c = device->chip->name; *c; c++)
            hash = (hash ^ (uint8_t)*c) * 0x100000001b3u;
        hash = (hash ^ (uint64_t)(device->number * 16 + i)) * 0x100000001b3u;
        device->uuid.bytes[i] = (char)(hash >> 32);
    }
}

/* "sm_75,h200": false names what is unknown. */
static bool read_devices(const char *text)
{
    sc_n_devices = 0;
    while (*text) {
        size_t n = strcspn(text, ",");
        const sc_chip *chip = sc_chip_find(text, n);
        if (!chip || sc_n_devices == SC_MAX_DEVICES) {
            sc_say("KREGISTRY_SOFTCUDA_DEVICES: %s \"%.*s\"",
                   chip ? "too many devices at" : "no such chip as", (int)n, text);
            sc_n_devices = 0;
            return false;
        }
        sc_devices[sc_n_devices] = (sc_device){.chip = chip, .number = sc_n_devices};
        make_uuid(&sc_devices[sc_n_devices]);
        sc_n_devices++;
        text += n + (text[n] == ',');
    }
    return true;
}

/* Do `n` bytes begin the UUID as tools write it, GPU-2c6a7136-9169-66ca-633f-28677b8d51e2? */
static bool is_uuid(const sc_device *device, const char *text, size_t n)
{
    enum { GPU = 4, WHOLE = GPU + 36 };
    char uuid[WHOLE + 1] = "GPU-";
    size_t at = GPU;
    for (int i = 0; i < 16; i++) {
        const char *dash = i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "";
        at += (size_t)snprintf(uuid + at, sizeof uuid - at, "%s%02x", dash, (uint8_t)device->uuid.bytes[i]);
    }
    n = n < WHOLE ? n : WHOLE;
    return n > GPU && memcmp(text, "GPU-", GPU) == 0 && strncasecmp(text, uuid, n) == 0;
}

/* The device that an entry of CUDA_VISIBLE_DEVICES names, or NULL: a number, whatever follows it, or the
 * beginning of one UUID. */
static const sc_device *named(const sc_device *all, int n, const char *text, size_t bytes, bool by_uuid)
{
    const sc_device *found = NULL;
    if (by_uuid) {
        for (int i = 0; i < n; i++)
            if (is_uuid(&all[i], text, bytes)) {
                if (found)
                    return NULL;
                found = &all[i];
            }
        return found;
    }
    char *end;
    long number = strtol(text, &end, 10);
    return end == text || number < 0 || number >= n ? NULL : &all[number];
}

/* CUDA_VISIBLE_DEVICES, as the driver takes it: up to the first entry that names none, all of the kind of the
 * first one; a device named twice is an error. */
static CUresult choose_devices(const char *text)
{
    static sc_device all[SC_MAX_DEVICES];
    int n_all = sc_n_devices;
    bool by_uuid = strncmp(text, "GPU-", 4) == 0, taken[SC_MAX_DEVICES] = {false};
    memcpy(all, sc_devices, sizeof all);
    for (sc_n_devices = 0;; text++) {
        size_t bytes = strcspn(text, ",");
        const sc_device *device = named(all, n_all, text, bytes, by_uuid);
        if (!device)
            return CUDA_SUCCESS;
        if (taken[device->number])
            return CUDA_ERROR_INVALID_DEVICE;
        taken[device->number] = true;
        sc_devices[sc_n_devices++] = *device;
        text += bytes;
        if (!*text)
            return CUDA_SUCCESS;
    }
}

/* Half of what the process may have is for the devices. */
static size_t most_memory(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_AS, &limit) || limit.rlim_cur == RLIM_INFINITY)
        return SIZE_MAX;
    return limit.rlim_cur / 2 / SC_RESERVED_FOR_A_BYTE / (unsigned)sc_n_devices;
}

/* As much of the chip's memory as there is address space for. */
static bool make_memory(sc_device *device, size_t most)
{
    const size_t whole = device->chip->memory_bytes, least = 16 << 20;
    const double gib = 1 << 30;
    device->memory_bytes = whole < most ? whole : most;
    do {
        device->usable_bytes =
            device->memory_bytes < sc_asked.memory_bytes ? device->memory_bytes : sc_asked.memory_bytes;
        device->memory = sc_memory_create((unsigned)device->ordinal, device->usable_bytes);
    } while (!device->memory && (device->memory_bytes /= 2) >= least);
    device->default_pool = sc_pool_create(device, true, 0);
    device->pool = device->default_pool;
    if (!device->memory)
        sc_say(
            "device %d wants %.0f GiB of address space, and not even %.2f GiB can be reserved (ulimit -v?)",
            device->ordinal, (double)whole * SC_RESERVED_FOR_A_BYTE / gib,
            (double)least * SC_RESERVED_FOR_A_BYTE / gib);
    else if (device->memory_bytes < whole)
        sc_say("device %d has %.2f GiB of memory, not %.0f: %.0f GiB of address space cannot be reserved "
               "(ulimit -v?)",
               device->ordinal, (double)device->memory_bytes / gib, (double)whole / gib,
               (double)whole * SC_RESERVED_FOR_A_BYTE / gib);
    return device->memory && device->pool;
}

static CUresult make_devices(void)
{
    const char *devices = getenv("KREGISTRY_SOFTCUDA_DEVICES"), *visible = getenv("CUDA_VISIBLE_DEVICES");
    if (!settings_are_good() || !read_devices(devices ? devices : "sm_90"))
        return CUDA_ERROR_NO_DEVICE;
    if (visible)
        TRY(choose_devices(visible));
    if (sc_n_devices == 0)
        return CUDA_ERROR_NO_DEVICE;
    size_t most = most_memory();
    for (int i = 0; i < sc_n_devices; i++) {
        sc_devices[i].ordinal = i;
        if (!make_memory(&sc_devices[i], most))
            return CUDA_ERROR_OUT_OF_MEMORY;
    }
    return CUDA_SUCCESS;
}

/* A driver does not survive a fork; the child is told so instead of waiting for threads that are not there.
 */
static void in_child(void)
{
    if (state == READY)
        state = FORKED;
    sc_objects_in_child();
}

API(cuInit, unsigned flags)
{
    if (flags)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = CUDA_SUCCESS;
    pthread_mutex_lock(&init_lock);
    if (state == FORKED) {
        result = CUDA_ERROR_NOT_INITIALIZED;
    } else if (state == FRESH) {
        result = make_devices();
        if (!result && (pthread_atfork(NULL, NULL, in_child) || !sc_gates_close_at_end()))
            result = CUDA_ERROR_OUT_OF_MEMORY;
        if (!result)
            state = READY;
        if (!result && sc_checks())
            sc_leaks_begin();
    }
    pthread_mutex_unlock(&init_lock);
    return result;
}

CUresult sc_initialized(void)
{
    if (sc_in_callback)
        return CUDA_ERROR_NOT_PERMITTED;
    return state == READY ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED;
}

CUresult sc_device_find(CUdevice ordinal, sc_device **ret_device)
{
    TRY(sc_initialized());
    if (ordinal < 0 || ordinal >= sc_n_devices)
        return CUDA_ERROR_INVALID_DEVICE;
    *ret_device = &sc_devices[ordinal];
    return CUDA_SUCCESS;
}

API(cuDriverGetVersion, int *version)
{
    if (!version)
        return CUDA_ERROR_INVALID_VALUE;
    *version = sc_driver_version();
    return CUDA_SUCCESS;
}

API(cuDeviceGetCount, int *count)
{
    TRY(sc_initialized());
    if (!count)
        return CUDA_ERROR_INVALID_VALUE;
    *count = sc_n_devices;
    return CUDA_SUCCESS;
}

API(cuDeviceGet, CUdevice *device, int ordinal)
{
    TRY(sc_initialized());
    if (!device)
        return CUDA_ERROR_INVALID_VALUE;
    sc_device *found;
    TRY(sc_device_find(ordinal, &found));
    *device = ordinal;
    return CUDA_SUCCESS;
}

/* Finds `device` for a function that has one result to write. */
#define FIND(result)                     \
    sc_device *device;                   \
    TRY(sc_initialized());               \
    if (!(result))                       \
        return CUDA_ERROR_INVALID_VALUE; \
    TRY(sc_device_find(ordinal, &device))

API(cuDeviceGetName, char *name, int bytes, CUdevice ordinal)
{
    FIND(name);
    if (bytes <= 0)
        return CUDA_ERROR_INVALID_VALUE;
    snprintf(name, (size_t)bytes, "%s", device->chip->name);
    return CUDA_SUCCESS;
}

API(cuDeviceGetAttribute, int *value, CUdevice_attribute attribute, CUdevice ordinal)
{
    FIND(value);
    int found;
    if (!sc_chip_attribute(device->chip, device->number, attribute, &found))
        return CUDA_ERROR_INVALID_VALUE;
    sc_attribute_asked(attribute, &found);
    *value = found;
    return CUDA_SUCCESS;
}

API(cuDeviceGetUuid, CUuuid *uuid, CUdevice ordinal)
{
    FIND(uuid);
    *uuid = device->uuid;
    return CUDA_SUCCESS;
}

API(cuDeviceGetUuid_v2, CUuuid *uuid, CUdevice ordinal)
{
    return cuDeviceGetUuid(uuid, ordinal);
}

API(cuDeviceTotalMem_v2, size_t *bytes, CUdevice ordinal)
{
    FIND(bytes);
    *bytes = device->memory_bytes;
    return CUDA_SUCCESS;
}

API(cuDeviceComputeCapability, int *major, int *minor, CUdevice ordinal)
{
    FIND(major && minor);
    *major = device->chip->cc / 10;
    *minor = device->chip->cc % 10;
    return CUDA_SUCCESS;
}

API(cuDeviceGetProperties, CUdevprop *properties, CUdevice ordinal)
{
    FIND(properties);
    *properties = (CUdevprop){.maxThreadsPerBlock = 1024,
                              .maxThreadsDim = {1024, 1024, 64},
                              .maxGridSize = {2147483647, 65535, 65535},
                              .sharedMemPerBlock = 48 * 1024,
                              .totalConstantMemory = 64 * 1024,
                              .SIMDWidth = 32,
                              .memPitch = 2147483647,
                              .regsPerBlock = 65536,
                              .clockRate = device->chip->clock_khz,
                              .textureAlign = 512};
    return CUDA_SUCCESS;
}

API(cuDeviceGetPCIBusId, char *id, int bytes, CUdevice ordinal)
{
    FIND(id);
    char text[16];
    int n = snprintf(text, sizeof text, "0000:%02X:00.0", (unsigned)(device->number + 1) & 0xff);
    if (bytes <= n)
        return CUDA_ERROR_INVALID_VALUE;
    memcpy(id, text, (size_t)n + 1);
    return CUDA_SUCCESS;
}

API(cuDeviceGetByPCIBusId, CUdevice *ret_device, const char *id)
{
    TRY(sc_initialized());
    if (!ret_device || !id)
        return CUDA_ERROR_INVALID_VALUE;
    unsigned domain = 0, bus = 0, slot = 0, function = 0;
    if (sscanf(id, "%x:%x:%x.%x", &domain, &bus, &slot, &function) < 3)
        domain = 0;
    if (domain == 0 && bus == 0 && sscanf(id, "%x:%x.%x", &bus, &slot, &function) < 2)
        return CUDA_ERROR_INVALID_VALUE;
    if (domain || slot || function)
        return CUDA_ERROR_INVALID_DEVICE;
    for (int i = 0; i < sc_n_devices; i++)
        if ((unsigned)sc_devices[i].number + 1 == bus) {
            *ret_device = i;
            return CUDA_SUCCESS;
        }
    return CUDA_ERROR_INVALID_DEVICE;
}

API(cuDeviceGetLuid, char *luid, unsigned *mask, CUdevice ordinal)
{
    FIND(luid && mask);
    (void)device;
    return CUDA_ERROR_NOT_SUPPORTED; /* Windows alone has them */
}

API(cuDeviceGetExecAffinitySupport, int *value, int type, CUdevice ordinal)
{
    (void)type;
    FIND(value);
    *value = 0;
    (void)device;
    return CUDA_SUCCESS;
}

API(cuDeviceCanAccessPeer, int *can, CUdevice ordinal, CUdevice peer)
{
    FIND(can);
    sc_device *other;
    TRY(sc_device_find(peer, &other));
    *can = device != other && !sc_asked.peers_refused;
    return CUDA_SUCCESS;
}

API(cuDeviceGetP2PAttribute, int *value, int attribute, CUdevice ordinal, CUdevice peer)
{
    FIND(value);
    sc_device *other;
    TRY(sc_device_find(peer, &other));
    if (attribute < CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK ||
        attribute > CU_DEVICE_P2P_ATTRIBUTE_ONLY_PARTIAL_NATIVE_ATOMIC_SUPPORTED)
        return CUDA_ERROR_INVALID_VALUE;
    if (device == other)
        return CUDA_ERROR_INVALID_DEVICE;
    *value = !sc_asked.peers_refused && attribute != CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK &&
             attribute != CU_DEVICE_P2P_ATTRIBUTE_ONLY_PARTIAL_NATIVE_ATOMIC_SUPPORTED;
    return CUDA_SUCCESS;
}

/* Elements of a linear texture: 2^30, and 4 GiB in all. */
API(cuDeviceGetTexture1DLinearMaxWidth, size_t *width, int format, unsigned n_channels, CUdevice ordinal)
{
    static const struct {
        int format;
        unsigned bytes;
    } formats[] = {{0x01, 1}, {0x02, 2}, {0x03, 4}, {0x08, 1}, {0x09, 2}, {0x0a, 4}, {0x10, 2}, {0x20, 4}};
    FIND(width);
    (void)device;
    for (size_t i = 0; i < KR_COUNT(formats); i++)
        if (formats[i].format == format && (n_channels == 1 || n_channels == 2 || n_channels == 4)) {
            size_t most = ((size_t)1 << 32) / (formats[i].bytes * n_channels), elements = (size_t)1 << 30;
            *width = most < elements ? most : elements;
            return CUDA_SUCCESS;
        }
    return CUDA_ERROR_INVALID_VALUE;
}
