/* SPDX-License-Identifier: Apache-2.0 */
#include <kregistry/version.h>

const char *kr_version(void)
{
    return KR_VERSION;
}
