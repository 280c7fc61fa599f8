/* SPDX-License-Identifier: Apache-2.0 */
/* One problem over every device, of mixed generations too: a blur, its rows divided, neighbours' rows shared.
 */
#include <kregistry/kregistry.h>
#include <stdlib.h>

#include "driver.h"

enum { ROWS = 240, COLS = 320 };

static float image[ROWS * COLS], blurred[ROWS * COLS];

int main(void)
{
    kr_error err;
    kr_runtime *rt = NULL;
    kr_registry *reg = NULL;
    kr_group *all = NULL;
    uint64_t rows = ROWS, cols = COLS;
    float k = 1;

    for (int i = 0; i < ROWS * COLS; i++)
        image[i] = 1;
    void *args[] = {&rows, &cols, &k, &k, &k, &k, &k, &k, &k, &k, &k, image, blurred};
    if (kr_runtime_create(&example_driver(), &rt, &err) || kr_registry_create(rt, NULL, &reg, &err) ||
        kr_group_create(rt, NULL, &all, &err))
        return kr_error_print(&err, stderr);
    size_t n = kr_group_n_devices(all);
    kr_group_part *parts = calloc(n, sizeof *parts);
    if (!parts)
        return EXIT_FAILURE;
    if (kr_group_run(all, reg, "conv3x3.f32", args, sizeof args / sizeof *args, parts, &err))
        return kr_error_print(&err, stderr);

    for (size_t i = 0; i < n; i++)
        printf("%s: %d rows\n", kr_device_get_info(parts[i].device)->name, (int)parts[i].count);
    free(parts);
    kr_group_destroy(&all);
    kr_registry_destroy(&reg);
    kr_runtime_destroy(&rt);
    /* nine ones inside, six at an edge, four in a corner */
    return blurred[COLS + 1] == 9 && blurred[COLS * (ROWS / 2)] == 6 && blurred[0] == 4 ? EXIT_SUCCESS
                                                                                        : EXIT_FAILURE;
}
