/* SPDX-License-Identifier: Apache-2.0 */
/* A prepared launch: everything is checked once, then each run costs what cuLaunchKernel costs. */
#include <kregistry/kregistry.h>
#include <stdlib.h>

#include "driver.h"

enum { N = 256, STEPS = 1000 };

int main(void)
{
    kr_error err;
    kr_runtime *rt = NULL;
    kr_registry *reg = NULL;
    kr_stream *stream = NULL;
    kr_buffer *x = NULL, *y = NULL;
    kr_launcher *step = NULL;
    double host[N], expected = 0;

    for (int i = 0; i < N; i++)
        host[i] = i;
    if (kr_runtime_create(&example_driver(), &rt, &err))
        return kr_error_print(&err, stderr);
    kr_device *device = kr_runtime_device(rt, 0);
    if (kr_registry_create(rt, NULL, &reg, &err) || kr_stream_create(device, NULL, &stream, &err) ||
        kr_buffer_create(device, sizeof host, NULL, &x, &err) ||
        kr_buffer_create(device, sizeof host, NULL, &y, &err) ||
        kr_buffer_upload(x, 0, host, sizeof host, &err) ||
        kr_buffer_set(y, 0, 0, sizeof host, stream, &err) ||
        kr_launcher_create(reg, stream, "saxpy.f64", KR_ARGS(KR_U64(N), KR_F64(0), KR_BUF(x), KR_BUF(y)),
                           NULL, &step, &err))
        return kr_error_print(&err, stderr);
    for (int i = 0; i < STEPS; i++) {
        if (kr_launcher_set(step, 1, KR_F64(i), &err) || kr_launcher_run(step, &err))
            return kr_error_print(&err, stderr);
        expected += (double)i * (N - 1);
    }
    if (kr_stream_synchronize(stream, &err) || kr_buffer_download(y, 0, host, sizeof host, &err))
        return kr_error_print(&err, stderr);

    printf("y[%d] = %g after %d steps\n", N - 1, host[N - 1], STEPS);
    kr_launcher_destroy(&step);
    kr_buffer_destroy(&x);
    kr_buffer_destroy(&y);
    kr_stream_destroy(&stream);
    kr_registry_destroy(&reg);
    kr_runtime_destroy(&rt);
    return host[N - 1] == expected ? EXIT_SUCCESS : EXIT_FAILURE;
}
