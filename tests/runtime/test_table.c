/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of driver.def against NVIDIA's own header, where that is installed: every name is declared there
 * with the same parameters. That it compiles is the test. */
#define __CUDA_API_VERSION_INTERNAL /* the header's own names, no macro from one version to another */
#include <cuda.h>

#define KR_DRIVER_ROW(need, name, params) \
    _Static_assert(__builtin_types_compatible_p(__typeof__(&name), CUresult(*) params), #name);
#include "runtime/driver/driver.def"

int main(void)
{
    return 0;
}
