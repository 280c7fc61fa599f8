/* SPDX-License-Identifier: Apache-2.0 */
/* A kernel of one's own, compiled at run time for the device that is there, launched on a stream. */
#include <kregistry/kregistry.h>
#include <stdlib.h>

#include "driver.h"

enum { N = 1000 };

static const char source[] = "extern \"C\" __global__ void square(unsigned n, const int *x, int *y)\n"
                             "{\n"
                             "    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;\n"
                             "    if (i < n)\n"
                             "        y[i] = x[i] * x[i];\n"
                             "}\n";

int main(void)
{
    kr_error err;
    kr_runtime *rt = NULL;
    kr_nvrtc *nvrtc = NULL;
    kr_compiled *compiled = NULL;
    kr_module *module = NULL;
    kr_kernel *square = NULL;
    kr_stream *stream = NULL;
    kr_buffer *x = NULL, *y = NULL;
    kr_compile_options ptx = {.struct_size = sizeof ptx, .kind = KR_IMAGE_PTX};
    kr_launch_config config = {.grid = {(N + 255) / 256}, .block = {256}};
    int host[N];

    for (int i = 0; i < N; i++)
        host[i] = i;
    if (kr_runtime_create(&example_driver(), &rt, &err))
        return kr_error_print(&err, stderr);
    kr_device *device = kr_runtime_device(rt, 0);
    if (kr_nvrtc_open(NULL, &nvrtc, &err)) {
        kr_error_print(&err, stderr);
        kr_runtime_destroy(&rt);
        return 77; /* skipped, where there is no compiler */
    }
    if (kr_compile(nvrtc, "square.cu", source, kr_device_get_info(device)->cc, &ptx, &compiled, &err) ||
        kr_module_load(device, compiled->image, compiled->image_bytes, "square.cu", &module, &err) ||
        kr_module_kernel(module, "square", &square, &err) || kr_stream_create(device, NULL, &stream, &err) ||
        kr_buffer_create(device, sizeof host, NULL, &x, &err) ||
        kr_buffer_create(device, sizeof host, NULL, &y, &err) ||
        kr_buffer_upload_async(x, 0, host, sizeof host, stream, &err) ||
        kr_kernel_launch(square, stream, &config, KR_ARGS(KR_U32(N), KR_BUF(x), KR_BUF(y)), &err) ||
        kr_buffer_download_async(y, 0, host, sizeof host, stream, &err) ||
        kr_stream_synchronize(stream, &err))
        return kr_error_print(&err, stderr);

    /* and out again: kr_kernel_cufunction, kr_stream_custream and kr_buffer_cudeviceptr give the driver's
     * handles */
    printf("square(%d) = %d\n", N - 1, host[N - 1]);
    kr_buffer_destroy(&x);
    kr_buffer_destroy(&y);
    kr_stream_destroy(&stream);
    kr_module_destroy(&module);
    kr_compiled_destroy(&compiled);
    kr_nvrtc_close(&nvrtc);
    kr_runtime_destroy(&rt);
    return host[N - 1] == (N - 1) * (N - 1) ? EXIT_SUCCESS : EXIT_FAILURE;
}
