/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KREGISTRY_EXPORT_H
#define KREGISTRY_EXPORT_H

/* The library is built with hidden visibility; only what KR_API marks is exported. */
#if defined(__GNUC__)
#define KR_API __attribute__((visibility("default")))
#else
#define KR_API
#endif

#endif
