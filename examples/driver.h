/* SPDX-License-Identifier: Apache-2.0 */
/* The driver that the examples open: the file that KREGISTRY_EXAMPLE_DRIVER names (softcuda in the tests),
 * else NVIDIA's. */
#include <kregistry/runtime.h>
#include <stdlib.h>

#define example_driver()                                             \
    ((kr_runtime_options){.struct_size = sizeof(kr_runtime_options), \
                          .driver = getenv("KREGISTRY_EXAMPLE_DRIVER")})
