/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KREGISTRY_VERSION_H
#define KREGISTRY_VERSION_H

#include <kregistry/export.h>

#define KR_VERSION "0.1.0"

#ifdef __cplusplus
extern "C" {
#endif

/* KR_VERSION of the library that is loaded. */
KR_API const char *kr_version(void);

#ifdef __cplusplus
}
#endif
#endif
