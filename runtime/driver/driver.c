/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/driver/driver.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static const char *const folders[] = {
    "/usr/lib/wsl/lib", /* WSL: a separate copy, often outside the linker's path */
    "/run/opengl-driver/lib",
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu/nvidia",
    "/usr/lib/aarch64-linux-gnu/tegra",
    "/usr/lib64",
    "/usr/local/nvidia/lib64", /* containers */
    NULL,
};

const char *const *kr__driver_folders = folders;
const char *kr__driver_dev = "/dev";

void kr__log_text(const kr__log *log, kr_log_level level, const char *format, ...)
{
    if (!log || !log->fn)
        return;
    char text[1024];
    va_list args;
    va_start(args, format);
    kr__format_list(text, sizeof text, format, args);
    va_end(args);
    log->fn(log->user, level, text);
}

/* How far the best candidate has come; the message is about that one. */
typedef enum stage { STAGE_NOTHING, STAGE_INCOMPLETE, STAGE_STUB, STAGE_REFUSED } stage;

typedef struct search {
    kr_error *err; /* the answer about the candidate that came the furthest */
    stage reached;
    kr__text log_text; /* a line for every place that did not do */
    char why[512];     /* the linker's last words */
    void *tried[16];
    size_t n_tried;
    bool named;       /* one file alone was asked for */
    const char *stub; /* its path: the link stub that was passed over */
} search;

static pthread_mutex_t opened_lock = PTHREAD_MUTEX_INITIALIZER;
static kr__driver *opened; /* never shrinks */

static kr__driver *find_opened(void *handle)
{
    for (kr__driver *d = opened; d; d = d->next)
        if (d->handle == handle)
            return d;
    return NULL;
}

static const char *path_of(void *handle)
{
    struct link_map *map = NULL;
    return dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && map ? map->l_name : "libcuda";
}

/* POSIX lets an object pointer of dlsym be copied into a function pointer. */
static void *symbol(void *handle, const char *name, void *to_function)
{
    void *address = dlsym(handle, name);
    memcpy(to_function, &address, sizeof address);
    return address;
}

/* Fills the table. Returns the names of the REQUIRED rows that are missing, in `missing`. */
static size_t fill_table(kr__driver *d, kr__text *missing)
{
    enum { OPTIONAL, REQUIRED };
    size_t n = 0;
#define KR_DRIVER_ROW(need, name, params)                        \
    if (!symbol(d->handle, #name, &d->name) && need == REQUIRED) \
        kr__text_add(missing, "%s%s", n++ ? ", " : "", #name);
#include "runtime/driver/driver.def"
#undef KR_DRIVER_ROW
    return n;
}

static bool dev_has(const char *node)
{
    char path[256];
    kr__format(path, sizeof path, "%s/%s", kr__driver_dev, node);
    return kr__file_exists(path);
}

static void advise_no_device(kr_error *err, const kr__driver *d)
{
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    if (visible)
        kr__error_advice(err, "CUDA_VISIBLE_DEVICES is \"%s\": unset it, or name a device that is here.",
                         visible);
    else if (strcmp(d->kind, "softcuda") == 0)
        kr__error_advice(err, "Mend or unset the KREGISTRY_SOFTCUDA_ variable that softcuda names; where it "
                              "names none, KREGISTRY_SOFTCUDA_DEVICES is empty.");
    else if (!dev_has("nvidiactl") && !dev_has("dxg") && !dev_has("nvhost-ctrl"))
        kr__error_advice(err,
                         "%s/nvidiactl is missing: pass the GPU into the container (--gpus all), or load the "
                         "nvidia kernel module.",
                         kr__driver_dev);
    else
        kr__error_advice(err, "Look whether nvidia-smi lists a GPU.");
}

/* Advice that the machine's state supports, or none. */
static void advise_refused(kr_error *err, CUresult result, const kr__driver *d)
{
    const char *path = d->path;
    const bool compat = strstr(path, "compat") != NULL;
    switch ((int)result) {
    case CUDA_ERROR_NO_DEVICE:
        advise_no_device(err, d);
        break;
    case CUDA_ERROR_UNKNOWN:
        if (dev_has("nvidiactl") && !dev_has("nvidia-uvm"))
            kr__error_advice(
                err,
                "%s/nvidia-uvm is missing: load the module with `nvidia-modprobe -u -c=0`, or pass "
                "the node into the container.",
                kr__driver_dev);
        else if (!dev_has("nvidiactl"))
            kr__error_advice(
                err,
                "%s/nvidiactl is missing: load the nvidia kernel module, or pass the GPU into the "
                "container.",
                kr__driver_dev);
        else
            kr__error_advice(
                err, "This is often so after suspend: reload the module with `rmmod nvidia_uvm && modprobe "
                     "nvidia_uvm`.");
        break;
    case CUDA_ERROR_SYSTEM_NOT_READY:
        kr__error_advice(
            err,
            "On machines with NVSwitch start the fabric manager: `systemctl start nvidia-fabricmanager`.");
        break;
    case CUDA_ERROR_SYSTEM_DRIVER_MISMATCH:
    case CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE:
        if (compat)
            kr__error_advice(
                err, "%s is of the forward-compatibility package: take its folder out of LD_LIBRARY_PATH.",
                path);
        else if (result == CUDA_ERROR_SYSTEM_DRIVER_MISMATCH)
            kr__error_advice(
                err,
                "%s is not of the kernel driver's version (/proc/driver/nvidia/version): reboot after "
                "a driver update, or mount the host's libcuda.",
                path);
        else
            kr__error_advice(err, "Use the libcuda that came with the kernel driver in place of %s.", path);
        break;
    }
}

static void note_better(search *s, stage reached)
{
    if (reached > s->reached)
        s->reached = reached;
}

static bool already_tried(search *s, void *handle)
{
    for (size_t i = 0; i < s->n_tried; i++)
        if (s->tried[i] == handle)
            return true;
    if (s->n_tried < KR_COUNT(s->tried))
        s->tried[s->n_tried++] = handle;
    return false;
}

static void add_place(search *s, const char *why)
{
    kr__text_add(&s->log_text, "%s\n", why); /* the linker's words begin with the name */
    kr__format(s->why, sizeof s->why, "%s", why);
}

static bool complete(search *s, kr__driver *d)
{
    kr__text missing = {0};
    const size_t n = fill_table(d, &missing);
    if (n) {
        int version = 0;
        if (d->cuDriverGetVersion)
            d->cuDriverGetVersion(&version);
        if (s->reached < STAGE_INCOMPLETE) {
            KR_FAIL(s->err, KR_NOT_ON_THIS_MACHINE, "%s (CUDA %d.%d) lacks %zu of the functions needed: %s",
                    d->path, version / 1000, version % 1000 / 10, n, missing.data ? missing.data : "");
            kr__error_advice(s->err, "Install an NVIDIA driver for CUDA 11.0 (450.36) or later.");
        }
        kr__text_add(&s->log_text, "%s: lacks %s\n", d->path, missing.data ? missing.data : "functions");
        note_better(s, STAGE_INCOMPLETE);
    }
    kr__text_free(&missing);
    return n == 0;
}

static void pass_over_stub(search *s, const kr__driver *d)
{
    if (s->reached < STAGE_STUB) {
        KR_FAIL(s->err, KR_NOT_ON_THIS_MACHINE, "%s is the toolkit's link stub (cuInit answers 34)%s",
                d->path, s->named ? "" : ", and no driver was found besides it");
        kr__error_code(s->err, KR_API_CUDA, CUDA_ERROR_STUB_LIBRARY, "CUDA_ERROR_STUB_LIBRARY", "cuInit");
        kr__error_advice(s->err,
                         "Take its folder out of LD_LIBRARY_PATH; the real libcuda.so.1 comes with the "
                         "NVIDIA driver.");
    }
    s->stub = d->path;
    kr__text_add(&s->log_text, "%s: the toolkit's link stub\n", d->path);
    note_better(s, STAGE_STUB);
}

/* Some drivers say so by cuInit, others by the count. */
static void refuse_empty(search *s, const kr__driver *d)
{
    KR_FAIL(s->err, KR_NOT_ON_THIS_MACHINE, "the driver %s (CUDA %d.%d) sees no CUDA device", d->path,
            d->version / 1000, d->version % 1000 / 10);
    kr__error_code(s->err, KR_API_CUDA, CUDA_ERROR_NO_DEVICE, "CUDA_ERROR_NO_DEVICE", "cuDeviceGetCount");
    advise_no_device(s->err, d);
}

/* Initialises a complete driver; false fills s->err where it has come the furthest. */
static bool initialise(search *s, kr__driver *d)
{
    const char *function = "cuInit";
    CUresult result = d->cuInit(0);
    if (result == CUDA_ERROR_STUB_LIBRARY) {
        pass_over_stub(s, d);
        return false;
    }
    note_better(s, STAGE_REFUSED);
    if (result == CUDA_SUCCESS) {
        function = "cuDriverGetVersion";
        result = d->cuDriverGetVersion(&d->version);
    }
    if (result == CUDA_SUCCESS) {
        function = "cuDeviceGetCount";
        result = d->cuDeviceGetCount(&d->n_devices);
    }
    if (result != CUDA_SUCCESS) {
        KR_CUDA_FAIL(s->err, d, result, function, -1, NULL, "the driver %s does not start", d->path);
        if (s->err->status == KR_FOREIGN) /* whatever its reason, there is no driver to use */
            s->err->status = KR_NOT_ON_THIS_MACHINE;
        advise_refused(s->err, result, d);
    } else if (d->n_devices == 0) {
        refuse_empty(s, d);
    }
    return result == CUDA_SUCCESS && d->n_devices > 0;
}

/* One place. Returns the driver, or NULL when it is not there or not usable. */
static kr__driver *try_place(search *s, const char *name)
{
    if (kr__file_is_strange(name)) {
        char why[sizeof s->why];
        kr__format(why, sizeof why, "%s: not a regular file", name);
        add_place(s, why);
        return NULL;
    }
    void *handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
        const char *why = dlerror();
        add_place(s, why ? why : "cannot be opened");
        return NULL;
    }
    kr__driver *d = find_opened(handle);
    if (d || already_tried(s, handle))
        return d;
    d = calloc(1, sizeof *d);
    if (!d) {
        KR_FAIL(s->err, KR_OUT_OF_HOST_MEMORY, "no host memory for the driver table");
        s->reached = STAGE_REFUSED;
        return NULL;
    }
    d->handle = handle;
    d->path = path_of(handle);
    d->kind = dlsym(handle, "kregistry_softcuda_version") ? "softcuda" : "nvidia";
    kr__driver_stamp(d);
    if (!complete(s, d) || !initialise(s, d)) {
        free(d);
        return NULL;
    }
    d->next = opened;
    opened = d;
    return d;
}

static size_t n_folders(void)
{
    size_t n = 0;
    while (kr__driver_folders[n])
        n++;
    return n;
}

/* In order; the first that works, or the first real driver that refuses: it is the machine's, and looking
 * further would hide its answer. By the first name the linker gives a libcuda that the process has mapped
 * already, from wherever that was: there must be only one. */
static kr__driver *look(search *s)
{
    kr__driver *d = try_place(s, "libcuda.so.1");
    for (const char *const *folder = kr__driver_folders; !d && s->reached < STAGE_REFUSED && *folder;
         folder++) {
        char path[512];
        kr__format(path, sizeof path, "%s/libcuda.so.1", *folder);
        d = try_place(s, path);
    }
    return d || s->reached == STAGE_REFUSED ? d : try_place(s, "libcuda.so");
}

kr_status kr__driver_open(const char *path, const kr__log *log, kr__driver **ret_driver, kr_error *err)
{
    kr_error found; /* the caller's is left alone where a later place is good */
    search s = {.err = &found, .named = path != NULL};
    pthread_mutex_lock(&opened_lock);
    kr__driver *d = path ? try_place(&s, path) : look(&s);
    pthread_mutex_unlock(&opened_lock);
    /* Not before: a log function may open a driver itself. */
    if (s.stub)
        kr__log_text(log, KR_LOG_WARNING, "%s is the toolkit's link stub; looking further", s.stub);
    if (d) {
        kr__log_text(log, KR_LOG_INFO, "driver %s (%s, CUDA %d.%d)", d->path, d->kind, d->version / 1000,
                     d->version % 1000 / 10);
        *ret_driver = d;
    } else if (s.reached == STAGE_NOTHING) {
        if (path)
            KR_FAIL(&found, KR_NOT_ON_THIS_MACHINE, "the driver cannot be opened: %s", s.why);
        else
            KR_FAIL(&found, KR_NOT_ON_THIS_MACHINE,
                    "no NVIDIA driver: no libcuda.so.1 on the loader's path or in %zu known folders",
                    n_folders());
        kr__error_advice(&found, path ? "Name a libcuda.so.1 (or softcuda's), with its folder."
                                      : "Install the NVIDIA driver, or run on softcuda's libcuda.so.1.");
    }
    if (!d)
        kr__error_log(&found, s.log_text.data);
    if (!d && err)
        *err = found;
    kr__text_free(&s.log_text);
    return d ? KR_OK : found.status;
}
