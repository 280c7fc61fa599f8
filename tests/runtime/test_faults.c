/* SPDX-License-Identifier: Apache-2.0 */
/* What happens when things go wrong: every driver call failed once at every position, sticky faults, forks,
 * foreign contexts, many threads. */
#include "common.h"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

static const char ptx[] =
    ".version 7.5\n.target sm_75\n.address_size 64\n"
    ".visible .entry saxpy(.param .u64 n, .param .f32 a, .param .u64 x, .param .u64 y)\n{\nret;\n}\n"
    ".visible .entry heavy(.param .u64 p)\n{\nret;\n}\n";

/* Everything once. Ends at the first failure; whatever was made is destroyed on every path. */
typedef struct things {
    kr_runtime *runtime;
    kr_buffer *a, *b, *pitched;
    kr_stream *stream;
    kr_event *start, *end;
    kr_module *module;
} things;

static kr_status use_all(things *t, const kr_runtime_options *options, kr_error *e)
{
    kr_status s;
    float host[16] = {0}, back[16];
    size_t pitch, free_bytes, total, n;
    uint64_t address;
    int can, blocks, threads, grid;
    double ms;
    bool done;
    kr_kernel *kernel;
#define TRY(call)              \
    if ((s = (call)) != KR_OK) \
    return s
    TRY(kr_runtime_create(options, &t->runtime, e));
    kr_device *d0 = kr_runtime_device(t->runtime, 0);
    kr_device *d1 = kr_runtime_device(t->runtime, kr_runtime_n_devices(t->runtime) - 1);
    TRY(kr_buffer_create(d0, sizeof host, NULL, &t->a, e));
    TRY(kr_buffer_create(d1, sizeof host, NULL, &t->b, e));
    TRY(kr_buffer_create_pitched(d0, 100, 3, &t->pitched, &pitch, e));
    TRY(kr_device_memory(d0, &free_bytes, &total, e));
    TRY(kr_device_can_access_peer(d0, d1, &can, e));
    TRY(kr_device_enable_peer(d0, d1, e));
    TRY(kr_stream_create(d0, NULL, &t->stream, e));
    TRY(kr_event_create(d0, true, &t->start, e));
    TRY(kr_event_create(d0, true, &t->end, e));
    TRY(kr_event_record(t->start, t->stream, e));
    TRY(kr_buffer_upload(t->a, 0, host, sizeof host, e));
    TRY(kr_buffer_upload_async(t->a, 0, host, sizeof host, t->stream, e));
    TRY(kr_buffer_set(t->a, 0, 1, 4, t->stream, e));
    TRY(kr_buffer_copy(t->b, 0, t->a, 0, sizeof host, t->stream, e));
    TRY(kr_buffer_copy(t->a, 32, t->a, 0, 32, t->stream, e));
    TRY(kr_module_load(d0, ptx, sizeof ptx, "test", &t->module, e));
    TRY(kr_module_kernel(t->module, "heavy", &kernel, e));
    TRY(kr_module_global(t->module, "table", &address, &n, e));
    TRY(kr_kernel_occupancy(kernel, 128, 0, &blocks, e));
    TRY(kr_kernel_suggest(kernel, 0, 0, &threads, &grid, e));
    TRY(kr_kernel_launch(kernel, t->stream, &(kr_launch_config){{1}, {128}, 64 << 10}, KR_ARGS(KR_BUF(t->a)),
                         e));
    TRY(kr_event_record(t->end, t->stream, e));
    TRY(kr_stream_wait(kr_device_default_stream(d1), t->end, e));
    TRY(kr_stream_query(t->stream, &done, e));
    TRY(kr_buffer_download_async(t->a, 0, back, sizeof back, t->stream, e));
    TRY(kr_event_synchronize(t->end, e));
    TRY(kr_stream_synchronize(t->stream, e));
    TRY(kr_event_elapsed(t->start, t->end, &ms, e));
    TRY(kr_buffer_download(t->a, 0, back, sizeof back, e));
    TRY(kr_device_synchronize(d0, e));
    return KR_OK;
}

static void destroy_all(things *t)
{
    kr_module_destroy(&t->module);
    kr_event_destroy(&t->start);
    kr_event_destroy(&t->end);
    kr_stream_destroy(&t->stream);
    kr_buffer_destroy(&t->a);
    kr_buffer_destroy(&t->b);
    kr_buffer_destroy(&t->pitched);
    kr_runtime_destroy(&t->runtime);
}

/* ret_used: how many driver calls there had been before the destroying began; or NULL. */
static kr_status once(const kr_runtime_options *options, int *ret_used, kr_error *e)
{
    things t = {0};
    const kr_status status = use_all(&t, options, e);
    if (ret_used)
        *ret_used = fake_of(FAKE)->calls;
    destroy_all(&t);
    return status;
}

static void nothing_left(fake *f, int position)
{
    ck_assert_msg(
        !f->retained && !f->allocations && !f->streams && !f->events && !f->modules && !f->libraries,
        "call %d (%s): left %d contexts, %d allocations, %d streams, %d events, %d modules, %d libraries",
        position, f->failed, f->retained, f->allocations, f->streams, f->events, f->modules, f->libraries);
}

/* The calls whose failure nobody needs to hear of: they give something back, leave a capture unprotected, or
 * are followed by the load of one device alone. */
static bool is_quiet(const char *name)
{
    static const char *const quiet[] = {"cuMemFree_v2",       "cuStreamDestroy_v2",
                                        "cuEventDestroy_v2",  "cuModuleUnload",
                                        "cuCtxDestroy_v2",    "cuDevicePrimaryCtxRelease_v2",
                                        "cuCtxPopCurrent_v2", "cuThreadExchangeStreamCaptureMode",
                                        "cuLibraryLoadData",  "cuLibraryGetModule",
                                        "cuLibraryUnload"};
    for (size_t i = 0; i < KR_COUNT(quiet); i++)
        if (strcmp(name, quiet[i]) == 0)
            return true;
    return false;
}

/* The caller: with no context, with the primary one, with a foreign one; and the library in each mode. */
static const struct {
    bool foreign, own, adopt;
} callers[] = {{0, 0, 0}, {1, 0, 0}, {0, 1, 0}, {1, 1, 0}, {1, 0, 1}};

START_TEST(every_call_fails_once)
{
    fake *f = fake_of(FAKE);
    kr__driver *driver;
    ck_ok(kr__driver_open(FAKE, NULL, &driver, &err));
    CUcontext mine = NULL, current;
    if (callers[_i].foreign)
        driver->cuCtxCreate_v2(&mine, 0, 0);
    const int own_before = f->own_contexts;
    kr_runtime_options o = {.struct_size = sizeof o, .driver = FAKE};
    o.contexts = callers[_i].own ? KR_CONTEXT_OWN : KR_CONTEXT_PRIMARY;
    o.context = callers[_i].adopt ? mine : NULL;
    f->calls = 0;
    int used;
    ck_ok(once(&o, &used, &err));
    const int n = f->calls;
    ck_assert_int_gt(n, 100);
    int heard = 0;
    for (int i = 1; i <= n; i++) {
        f->calls = 0;
        f->fail_at = i;
        f->fail_with = CUDA_ERROR_OPERATING_SYSTEM;
        memset(&err, 0, sizeof err);
        const kr_status status = once(&o, NULL, &err);
        f->fail_at = 0;
        if (status == KR_OK) {
            /* Destroying asks for the current context too, and has nobody to tell. */
            ck_assert_msg(is_quiet(f->failed) || i > used, "call %d (%s) was swallowed", i, f->failed);
        } else {
            heard++;
            ck_assert_msg(err.code == CUDA_ERROR_OPERATING_SYSTEM && err.api == KR_API_CUDA &&
                              status == KR_FOREIGN,
                          "call %d (%s): %s", i, f->failed, err.message);
            ck_assert_str_eq(err.code_name, "CUDA_ERROR_OPERATING_SYSTEM");
            ck_assert(err.message[0] && err.function);
        }
        driver->cuCtxGetCurrent(&current);
        ck_assert_msg(current == mine, "call %d (%s): the caller's context is not current", i, f->failed);
        /* A destroy that cannot enter its context leaves what it was to free to the driver. */
        if (status != KR_OK || is_quiet(f->failed)) {
            nothing_left(f, i);
            ck_assert_int_eq(f->own_contexts, own_before);
        } else {
            f->retained = f->allocations = f->streams = f->events = f->modules = f->libraries = 0;
            f->own_contexts = own_before;
        }
    }
    ck_assert_int_gt(heard, 60);
    if (mine)
        driver->cuCtxDestroy_v2(mine);
}
END_TEST

START_TEST(a_fault_ends_it)
{
    fake *f = fake_of(FAKE);
    things t = {0};
    const kr_runtime_options o = {.struct_size = sizeof o, .driver = FAKE};
    ck_ok(use_all(&t, &o, &err));
    f->fault = 700;
    ck_assert_int_eq(kr_stream_synchronize(t.stream, &err), KR_PROCESS_LOST);
    ck_contains(err.message, "address");
    ck_contains(err.message, "cuStreamSynchronize");
    ck_contains(err.message, "heavy");
    ck_assert_int_eq(err.code, 700);
    ck_assert_int_eq(err.device, 0);
    f->fault = 719; /* later answers do not hide the first */
    f->calls = 0;
    kr_buffer *buffer = NULL;
    kr_runtime *second = NULL;
    bool done;
    ck_assert_int_eq(kr_buffer_create(kr_runtime_device(t.runtime, 1), 8, NULL, &buffer, &err),
                     KR_PROCESS_LOST);
    ck_assert_int_eq(err.code, 700);
    ck_assert_str_eq(err.function, "cuStreamSynchronize");
    ck_assert_int_eq(kr_stream_query(t.stream, &done, NULL), KR_PROCESS_LOST);
    ck_assert_int_eq(kr_device_synchronize(kr_runtime_device(t.runtime, 1), &err), KR_PROCESS_LOST);
    ck_assert_int_eq(kr_runtime_create(&o, &second, &err), KR_PROCESS_LOST);
    ck_contains(err.advice, "End the process");
    ck_assert_int_eq(f->calls, 0); /* told at once */
    destroy_all(&t);
    CUcontext current = (CUcontext)1;
    kr__driver *driver = NULL;
    ck_ok(kr__driver_open(FAKE, NULL, &driver, &err));
    driver->cuCtxGetCurrent(&current);
    ck_assert_ptr_null(current);
}
END_TEST

/* A fault may show at any call. Each position is a process of its own: there is no going on after one. */
START_TEST(a_fault_shows_anywhere)
{
    enum { DONE = 100 };
    const kr_runtime_options o = {.struct_size = sizeof o, .driver = FAKE};
    int status = 0, position = 0;
    while (WEXITSTATUS(status) != DONE) {
        position++;
        const pid_t child = fork();
        if (child == 0) {
            fake *f = fake_of(FAKE);
            f->fail_at = position;
            f->fail_with = CUDA_ERROR_LAUNCH_FAILED;
            const kr_status answer = once(&o, NULL, &err);
            const bool told = answer == KR_PROCESS_LOST && err.code == CUDA_ERROR_LAUNCH_FAILED;
            _exit(!f->failed ? DONE : answer == KR_OK || told ? 0 : 1);
        }
        ck_assert_int_eq(waitpid(child, &status, 0), child);
        ck_assert_msg(WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == DONE),
                      "call %d", position);
    }
    ck_assert_int_gt(position, 100);
}
END_TEST

START_TEST(a_driver_that_has_shut_down)
{
    fake *f = fake_of(FAKE);
    things t = {0};
    const kr_runtime_options o = {.struct_size = sizeof o, .driver = FAKE};
    ck_ok(use_all(&t, &o, &err));
    f->calls = 0;
    f->fail_at = 1;
    f->fail_with = CUDA_ERROR_DEINITIALIZED;
    destroy_all(&t); /* at exit, say: silent, and nothing of the host leaks */
    ck_assert_ptr_null(t.runtime);
}
END_TEST

START_TEST(a_forked_child)
{
    fake *f = fake_of(FAKE);
    things t = {0};
    const kr_runtime_options o = {.struct_size = sizeof o, .driver = FAKE};
    ck_ok(use_all(&t, &o, &err));
    const pid_t child = fork();
    if (child == 0) {
        kr_buffer *buffer = NULL;
        kr_runtime *second = NULL;
        f->calls = 0;
        int bad =
            kr_buffer_create(kr_runtime_device(t.runtime, 0), 8, NULL, &buffer, &err) != KR_INVALID_ARGUMENT;
        bad |= !strstr(err.message, "forked") || !strstr(err.advice, "exec");
        bad |= kr_runtime_create(&o, &second, &err) != KR_INVALID_ARGUMENT;
        destroy_all(&t);
        bad |= f->calls != 0;
        _exit(bad);
    }
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    ck_ok(kr_device_synchronize(kr_runtime_device(t.runtime, 0), &err)); /* the parent goes on */
    destroy_all(&t);
    nothing_left(f, 0);
}
END_TEST

enum { N_THREADS = 8, ROUNDS = 400 };

static void *whole_api(void *ret_status)
{
    const kr_runtime_options o = {.struct_size = sizeof o, .driver = FAKE};
    kr_error e;
    kr_status *status = ret_status;
    for (int i = 0; i < 20 && *status == KR_OK; i++)
        *status = once(&o, NULL, &e);
    return NULL;
}

START_TEST(threads_of_their_own)
{
    pthread_t threads[N_THREADS];
    kr_status status[N_THREADS] = {KR_OK};
    for (int i = 0; i < N_THREADS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, whole_api, &status[i]), 0);
    for (int i = 0; i < N_THREADS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < N_THREADS; i++)
        ck_assert_int_eq(status[i], KR_OK);
    nothing_left(fake_of(FAKE), 0);
}
END_TEST

static kr_module *shared_module;
static pthread_barrier_t all_there;

/* Small and large launches of one kernel: the large ones must never meet a lowered limit. */
static void *small_and_large(void *ret_status)
{
    kr_status *status = ret_status;
    kr_kernel *kernel;
    kr_error e;
    pthread_barrier_wait(&all_there);
    for (int i = 0; i < ROUNDS && *status == KR_OK; i++) {
        *status = kr_module_kernel(shared_module, "heavy", &kernel, &e);
        const kr_launch_config c = {{1}, {32}, i % 2 ? 4 << 10 : (64 + i % 136) << 10};
        if (*status == KR_OK)
            *status = kr_kernel_launch(kernel, kr_device_default_stream(kr_kernel_device(kernel)), &c,
                                       KR_ARGS(KR_PTR(8)), &e);
    }
    return NULL;
}

START_TEST(threads_on_one_kernel)
{
    kr_runtime *runtime = create();
    ck_ok(kr_module_load(kr_runtime_device(runtime, 0), ptx, sizeof ptx, "test", &shared_module, &err));
    pthread_t threads[N_THREADS];
    kr_status status[N_THREADS] = {KR_OK};
    pthread_barrier_init(&all_there, NULL, N_THREADS);
    for (int i = 0; i < N_THREADS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, small_and_large, &status[i]), 0);
    for (int i = 0; i < N_THREADS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < N_THREADS; i++)
        ck_assert_int_eq(status[i], KR_OK);
    fake *f = fake_of(FAKE);
    ck_assert_int_le(f->set_attributes, 68); /* once for each size that is larger than all before it */
    ck_assert_int_eq(f->launches, N_THREADS * ROUNDS);
    ck_assert_int_eq(f->retained, 1);
    kr_module_destroy(&shared_module);
    kr_runtime_destroy(&runtime);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("faults");
    TCase *tc = tcase_create("faults");
    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, every_call_fails_once, 0, KR_COUNT(callers));
    tcase_add_test(tc, a_fault_ends_it);
    tcase_add_test(tc, a_fault_shows_anywhere);
    tcase_add_test(tc, a_driver_that_has_shut_down);
    tcase_add_test(tc, a_forked_child);
    tcase_add_test(tc, threads_of_their_own);
    tcase_add_test(tc, threads_on_one_kernel);
    suite_add_tcase(suite, tc);
    return run(suite);
}
