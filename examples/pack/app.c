/* SPDX-License-Identifier: Apache-2.0 */
/* An application with kernels of its own inside it: no file is looked for at run time, and no compiler is needed. */
#include <kregistry/kregistry.h>
#include <stdlib.h>

/* Made of kernels/ by the build, see CMakeLists.txt and meson.build. */
extern const unsigned char my_kernels_pack[];
extern const size_t my_kernels_pack_bytes;

enum { N = 1000 };

int main(void)
{
    kr_error err;
    kr_runtime *rt = NULL;
    kr_registry *reg = NULL;
    kr_buffer *a = NULL, *b = NULL, *y = NULL;
    /* NVIDIA's driver, but in the tests */
    kr_runtime_options driver = {.struct_size = sizeof driver, .driver = getenv("KREGISTRY_EXAMPLE_DRIVER")};
    kr_registry_options own = {.struct_size = sizeof own, .no_builtin_ops = true};
    float host_a[N], host_b[N], host_y[N];

    for (int i = 0; i < N; i++) {
        host_a[i] = (float)i;
        host_b[i] = (float)(N - i);
    }
    if (kr_runtime_create(&driver, &rt, &err) || kr_registry_create(rt, &own, &reg, &err) ||
        kr_registry_add_pack(reg, my_kernels_pack, my_kernels_pack_bytes, &err) ||
        kr_buffer_create(kr_runtime_device(rt, 0), sizeof host_a, NULL, &a, &err) ||
        kr_buffer_create(kr_runtime_device(rt, 0), sizeof host_b, NULL, &b, &err) ||
        kr_buffer_create(kr_runtime_device(rt, 0), sizeof host_y, NULL, &y, &err) ||
        kr_buffer_upload(a, 0, host_a, sizeof host_a, &err) ||
        kr_buffer_upload(b, 0, host_b, sizeof host_b, &err) ||
        kr_launch(reg, kr_default_stream(y), "mix.f32",
                  KR_ARGS(KR_U64(N), KR_F32(0.5f), KR_BUF(a), KR_BUF(b), KR_BUF(y)), NULL, &err) ||
        kr_buffer_download(y, 0, host_y, sizeof host_y, &err))
        return kr_error_print(&err, stderr);

    printf("%zu ops, y[1] = %g\n", kr_registry_n_ops(reg), (double)host_y[1]);
    kr_buffer_destroy(&a);
    kr_buffer_destroy(&b);
    kr_buffer_destroy(&y);
    kr_registry_destroy(&reg);
    kr_runtime_destroy(&rt);
    return host_y[1] == N / 2 ? EXIT_SUCCESS : EXIT_FAILURE;
}
