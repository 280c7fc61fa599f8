/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unhelpfulness on request: calls that fail, launches that fault, little memory, and what else a program
 * meets on other people's machines. KREGISTRY_SOFTCUDA_FAIL asks for it; docs/softcuda-failures.md lists the
 * words.
 */
#include "softcuda/driver/driver.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define VARIABLE "KREGISTRY_SOFTCUDA_FAIL"

enum { MOST_ITEMS = 64, MOST_NAME = 256 };

/* The n-th call or launch, from `first` to `last`, is answered with the code. */
typedef struct failure {
    char name[MOST_NAME]; /* of a call, or a pattern for kernels */
    bool is_launch;
    uint64_t first, last;
    CUresult code;
    _Atomic uint64_t n;
} failure;

/* A device attribute that has another value. */
typedef struct attribute {
    CUdevice_attribute which;
    int value;
} attribute;

static failure failures[MOST_ITEMS];
static size_t n_failures;
static attribute attributes[MOST_ITEMS];
static size_t n_attributes;
static bool missing[SC_N_SYMBOLS];
static char problem[1024]; /* what is not understood; "": nothing */

sc_unhelpful sc_asked;
/* Until the first call, and for good where calls are to fail. */
static atomic_bool calls_are_watched = true;

/* Always false. The first problem is told. */
static bool KR_PRINTF(1, 2) bad(const char *format, ...)
{
    if (!*problem) {
        va_list args;
        va_start(args, format);
        kr__format_list(problem, sizeof problem, format, args);
        va_end(args);
    }
    return false;
}

/* ---- numbers and names ---- */

static bool read_number(const char **text, uint64_t *ret_number)
{
    uint64_t number = 0;
    const char *at = *text;
    for (; *at >= '0' && *at <= '9'; at++)
        if (__builtin_mul_overflow(number, 10, &number) ||
            __builtin_add_overflow(number, (uint64_t)(*at - '0'), &number))
            return false;
    bool any = at != *text;
    *text = at;
    *ret_number = number;
    return any;
}

typedef struct unit {
    const char *name;
    uint64_t factor;
} unit;

/* "64M": a number and a unit, and nothing else. */
static bool read_quantity(const char *text, const unit *units, size_t n, uint64_t *ret_value)
{
    uint64_t number;
    if (!read_number(&text, &number))
        return false;
    for (size_t i = 0; i < n; i++)
        if (strcmp(text, units[i].name) == 0)
            return !__builtin_mul_overflow(number, units[i].factor, ret_value);
    return false;
}

static bool read_bytes(const char *text, uint64_t *ret_bytes)
{
    static const unit units[] = {{"", 1}, {"K", 1 << 10}, {"M", 1 << 20}, {"G", 1 << 30}, {"T", 1ull << 40}};
    return read_quantity(text, units, KR_COUNT(units), ret_bytes);
}

static bool read_time(const char *text, uint64_t *ret_ns)
{
    static const unit units[] = {{"us", 1000}, {"ms", 1000000}, {"s", 1000000000}};
    return read_quantity(text, units, KR_COUNT(units), ret_ns);
}

/* 2, OUT_OF_MEMORY or CUDA_ERROR_OUT_OF_MEMORY. */
static bool read_code(const char *text, CUresult *ret_code)
{
    char name[MOST_NAME + 16];
    const char *rest = text;
    uint64_t number;
    if (!read_number(&rest, &number)) {
        kr__format(name, sizeof name, "CUDA_ERROR_%s", text);
        return sc_result_named(name, ret_code) || (sc_result_named(text, ret_code) && *ret_code);
    }
    *ret_code = (CUresult)number;
    return !*rest && number && number <= CUDA_ERROR_UNKNOWN && sc_result_name(*ret_code);
}

/* ---- calls and launches ---- */

static bool is_call(const char *name)
{
    const char *best = NULL;
    size_t distance = SIZE_MAX;
    for (size_t i = 0; i < SC_N_SYMBOLS; i++) {
        if (sc_symbol_is(&sc_symbols[i], name))
            return true;
        if (kr__nearer(name, sc_symbols[i].exported, &distance))
            best = sc_symbols[i].exported;
    }
    if (best)
        return bad("libcuda has no %s; did you mean %s?", name, best);
    return bad("libcuda has no %s", name);
}

/* "3": the third; "3+": that and all later ones. */
static bool read_when(const char *text, failure *to)
{
    const char *rest = text;
    if (!read_number(&rest, &to->first) || !to->first || (*rest && strcmp(rest, "+") != 0))
        return bad("\"#%s\" does not count: #3 is the third, #3+ that and all later ones", text);
    to->last = *rest ? UINT64_MAX : to->first;
    return true;
}

/* The codes that a kernel can end with: those of which CUDA's reference says that the process cannot go on.
 */
static bool is_fault(CUresult code)
{
    static const CUresult faults[] = {
        CUDA_ERROR_ECC_UNCORRECTABLE,     CUDA_ERROR_NVLINK_UNCORRECTABLE, CUDA_ERROR_CONTAINED,
        CUDA_ERROR_ILLEGAL_ADDRESS,       CUDA_ERROR_LAUNCH_TIMEOUT,       CUDA_ERROR_ASSERT,
        CUDA_ERROR_HARDWARE_STACK_ERROR,  CUDA_ERROR_ILLEGAL_INSTRUCTION,  CUDA_ERROR_MISALIGNED_ADDRESS,
        CUDA_ERROR_INVALID_ADDRESS_SPACE, CUDA_ERROR_INVALID_PC,           CUDA_ERROR_LAUNCH_FAILED,
        CUDA_ERROR_TENSOR_MEMORY_LEAK,
    };
    for (size_t i = 0; i < KR_COUNT(faults); i++)
        if (faults[i] == code)
            return true;
    return false;
}

/* attribute:NAME=VALUE, by the names that matter here, or the number that CUDA gives them. */
static bool read_attribute(const char *name, const char *value)
{
    static const struct {
        const char *name;
        CUdevice_attribute which;
    } known[] = {
        {"COMPUTE_MODE", CU_DEVICE_ATTRIBUTE_COMPUTE_MODE},
        {"MANAGED_MEMORY", CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY},
        {"CONCURRENT_MANAGED_ACCESS", CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS},
        {"COOPERATIVE_LAUNCH", CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH},
    };
    enum { LAST = CU_DEVICE_ATTRIBUTE_ONLY_PARTIAL_HOST_NATIVE_ATOMIC_SUPPORTED };
    uint64_t which = 0, number;
    const char *rest = name;
    for (size_t i = 0; i < KR_COUNT(known); i++)
        which = strcmp(known[i].name, name) == 0 ? known[i].which : which;
    if (!which && (!read_number(&rest, &which) || *rest || !which || which > LAST))
        return bad("no attribute is called %s; its number does too", name);
    if (!read_number(&value, &number) || *value || number > INT32_MAX)
        return bad("an attribute is a number");
    if (n_attributes == MOST_ITEMS)
        return bad("there are more than %d attributes", MOST_ITEMS);
    attributes[n_attributes++] = (attribute){(CUdevice_attribute)which, (int)number};
    return true;
}

/* CALL[#WHEN]=CODE, launch[:KERNEL][#WHEN]=CODE. Takes the key apart. */
static bool read_failure(char *key, const char *value)
{
    if (n_failures == MOST_ITEMS)
        return bad("there are more than %d failures", MOST_ITEMS);
    failure *f = &failures[n_failures];
    *f = (failure){.first = 1, .last = UINT64_MAX};
    char *when = strchr(key, '#'), *kernel = strchr(key, ':');
    if (when) {
        *when = '\0';
        if (!read_when(when + 1, f))
            return false;
    }
    if (kernel)
        *kernel = '\0';
    f->is_launch = strcmp(key, "launch") == 0;
    if (kernel && !kernel[1])
        return bad("launch: is to name a kernel");
    if (!f->is_launch && (kernel || strncmp(key, "cu", 2) != 0))
        return bad("there is no \"%s\" to fail: name a call such as cuMemAlloc, or launch", key);
    if (!f->is_launch && !is_call(key))
        return false;
    kr__format(f->name, sizeof f->name, "%s", !f->is_launch ? key : kernel ? kernel + 1 : "*");
    if (!read_code(value, &f->code))
        return bad("\"%s\" is no error of CUDA's: write 2, or OUT_OF_MEMORY", value);
    if (f->is_launch && !is_fault(f->code))
        return bad("no kernel ends with %s; name a call for one that is refused", sc_result_name(f->code));
    n_failures++;
    return true;
}

/* ---- the other words ---- */

static bool read_memory(const char *value)
{
    return read_bytes(value, &sc_asked.memory_bytes) || bad("write a size such as 64M");
}

static bool read_pinned(const char *value)
{
    return read_bytes(value, &sc_asked.pinned_bytes) || bad("write a size such as 64M");
}

static bool read_slow(const char *value)
{
    return read_time(value, &sc_asked.delay_ns) || bad("write a time such as 20ms");
}

static bool read_jit(const char *value)
{
    sc_asked.jit_is_missing = strcmp(value, "missing") == 0;
    return sc_asked.jit_is_missing || bad("it can be missing; CUDA_DISABLE_PTX_JIT=1 disables it");
}

static bool read_peer(const char *value)
{
    sc_asked.peers_refused = strcmp(value, "refused") == 0;
    return sc_asked.peers_refused || bad("it can be refused");
}

static bool read_symbol(const char *value)
{
    for (size_t i = 0; i < SC_N_SYMBOLS; i++)
        missing[i] |= sc_symbol_is(&sc_symbols[i], value);
    return is_call(value);
}

static bool read_items(const char *text);

/* What the field knows, in the words above. */
static bool read_preset(const char *value)
{
    static const struct {
        const char *name, *items;
    } presets[] = {
        {"wsl", "pinned=512M,attribute:CONCURRENT_MANAGED_ACCESS=0"},
        {"full-gpu", "memory=64M"},
        {"exclusive-gpu", "attribute:COMPUTE_MODE=3,cuDevicePrimaryCtxRetain=DEVICE_UNAVAILABLE,"
                          "cuCtxCreate=DEVICE_UNAVAILABLE"},
        {"mps-full", "cuDevicePrimaryCtxRetain=MPS_MAX_CLIENTS_REACHED,cuCtxCreate=MPS_MAX_CLIENTS_REACHED"},
        {"vgpu", "peer=refused,attribute:MANAGED_MEMORY=0,cuMemAllocManaged=NOT_SUPPORTED"},
        {"container-no-jit", "jit=missing"},
        {"after-suspend", "cuInit=UNKNOWN"},
    };
    char names[256] = "";
    for (size_t i = 0; i < KR_COUNT(presets); i++) {
        if (strcmp(presets[i].name, value) == 0)
            return read_items(presets[i].items);
        size_t n = strlen(names);
        kr__format(names + n, sizeof names - n, "%s%s", n ? ", " : "", presets[i].name);
    }
    return bad("there is %s", names);
}

static const struct {
    const char *key;
    bool (*read)(const char *value);
} words[] = {
    {"memory", read_memory}, {"pinned", read_pinned}, {"slow", read_slow},     {"jit", read_jit},
    {"peer", read_peer},     {"symbol", read_symbol}, {"preset", read_preset},
};

static bool read_item(char *item)
{
    char *value = strchr(item, '=');
    if (!value)
        return bad("it has no \"=\"");
    *value++ = '\0';
    for (size_t i = 0; i < KR_COUNT(words); i++)
        if (strcmp(words[i].key, item) == 0)
            return words[i].read(value);
    if (strncmp(item, "attribute:", 10) == 0)
        return read_attribute(item + 10, value);
    return read_failure(item, value);
}

static bool read_items(const char *text)
{
    for (size_t n; *text; text += n + (text[n] == ',')) {
        char item[MOST_NAME];
        n = strcspn(text, ",");
        if (n >= sizeof item)
            return bad("\"%.40s...\" is too long", text);
        memcpy(item, text, n);
        item[n] = '\0';
        if (read_item(item))
            continue;
        char why[sizeof problem];
        memcpy(why, problem, sizeof why);
        kr__format(problem, sizeof problem, "\"%.*s\": %s", (int)n, text, why);
        return false;
    }
    return true;
}

static void be_helpful(void)
{
    n_failures = n_attributes = 0;
    memset(missing, 0, sizeof missing);
    sc_asked = (sc_unhelpful){.memory_bytes = SIZE_MAX, .pinned_bytes = SIZE_MAX};
}

static void read_failures(void)
{
    const char *text = getenv(VARIABLE);
    *problem = '\0';
    be_helpful();
    if (text && !read_items(text))
        be_helpful(); /* so that cuInit says what is wrong, and nothing else goes wrong before */
}

void sc_environment_read(void)
{
    sc_driver_version_read();
    read_failures();
}

bool sc_unhelpful_is_good(void)
{
    if (*problem)
        sc_say(VARIABLE ": %s", problem);
    return !*problem;
}

/* ---- what then happens ---- */

static void first_call(void)
{
    sc_environment_read();
    bool any = false;
    for (size_t i = 0; i < n_failures; i++)
        any |= !failures[i].is_launch;
    atomic_store(&calls_are_watched, any);
}

/* Counts one more of what the failure is about. 0, or the code where it is among those that fail. */
static CUresult strike(failure *f, const char *what)
{
    uint64_t n = atomic_fetch_add(&f->n, 1) + 1;
    if (n < f->first || n > f->last)
        return CUDA_SUCCESS;
    if (sc_logging())
        sc_say("%s, number %" PRIu64 ", answers %s as " VARIABLE " asks", what, n, sc_result_name(f->code));
    return f->code;
}

/* Of a call, or of a launch of the kernel; the other is NULL. The first failure that strikes answers. */
static CUresult answer_to(const sc_symbol *call, const char *kernel)
{
    CUresult answer = CUDA_SUCCESS;
    for (size_t i = 0; i < n_failures; i++) {
        failure *f = &failures[i];
        bool fits = f->is_launch ? kernel && kr__glob(f->name, kernel) : call && sc_symbol_is(call, f->name);
        CUresult code = fits ? strike(f, call ? call->exported : kernel) : CUDA_SUCCESS;
        answer = answer ? answer : code;
    }
    return answer;
}

CUresult sc_answer_asked(const sc_symbol *call)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    if (!atomic_load_explicit(&calls_are_watched, memory_order_relaxed))
        return CUDA_SUCCESS;
    pthread_once(&once, first_call);
    return answer_to(call, NULL);
}

CUresult sc_launch_fault(const char *kernel)
{
    return answer_to(NULL, kernel);
}

void sc_attribute_asked(CUdevice_attribute which, int *value)
{
    for (size_t i = 0; i < n_attributes; i++)
        if (attributes[i].which == which)
            *value = attributes[i].value;
}

bool sc_is_missing(const sc_symbol *symbol)
{
    return missing[symbol - sc_symbols];
}

/* The CUDA programming guide, "CUDA Environment Variables": the older name overrides the newer one. */
static bool is_on(const char *variable, const char *newer)
{
    const char *text = getenv(variable);
    text = text ? text : getenv(newer);
    return text && atoi(text) != 0;
}

CUresult sc_jit_refused(void)
{
    if (sc_asked.jit_is_missing)
        return CUDA_ERROR_JIT_COMPILER_NOT_FOUND;
    return is_on("CUDA_DISABLE_PTX_JIT", "CUDA_DISABLE_JIT") ? CUDA_ERROR_JIT_COMPILATION_DISABLED
                                                             : CUDA_SUCCESS;
}

bool sc_jit_is_forced(void)
{
    return is_on("CUDA_FORCE_PTX_JIT", "CUDA_FORCE_JIT");
}
