/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a shipped op: y = 2 x + y on the first device. */
#include <kregistry/kregistry.h>
#include <stdlib.h>

#include "driver.h"

enum { N = 1000 };

int main(void)
{
    kr_error err;
    kr_runtime *rt = NULL;
    kr_registry *reg = NULL;
    kr_buffer *x = NULL, *y = NULL;
    float host_x[N], host_y[N];

    for (int i = 0; i < N; i++) {
        host_x[i] = (float)i;
        host_y[i] = 1;
    }
    if (kr_runtime_create(&example_driver(), &rt, &err) || /* driver and devices; contexts when first used */
        kr_registry_create(rt, NULL, &reg, &err) ||        /* the shipped ops */
        kr_buffer_create(kr_runtime_device(rt, 0), sizeof host_x, NULL, &x, &err) ||
        kr_buffer_create(kr_runtime_device(rt, 0), sizeof host_y, NULL, &y, &err) ||
        kr_buffer_upload(x, 0, host_x, sizeof host_x, &err) ||
        kr_buffer_upload(y, 0, host_y, sizeof host_y, &err) ||
        kr_launch(reg, kr_default_stream(x), "saxpy.f32", KR_ARGS(KR_U64(N), KR_F32(2), KR_BUF(x), KR_BUF(y)),
                  NULL, &err) ||
        kr_buffer_download(y, 0, host_y, sizeof host_y, &err))
        return kr_error_print(&err, stderr); /* what, why, while what, what to do */

    printf("y[%d] = %g\n", N - 1, (double)host_y[N - 1]);
    kr_buffer_destroy(&x);
    kr_buffer_destroy(&y);
    kr_registry_destroy(&reg);
    kr_runtime_destroy(&rt);
    return host_y[N - 1] == 2 * (N - 1) + 1 ? EXIT_SUCCESS : EXIT_FAILURE;
}
