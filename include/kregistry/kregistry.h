/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KREGISTRY_KREGISTRY_H
#define KREGISTRY_KREGISTRY_H

/* Everything. Each header also compiles alone. */
#include <kregistry/buffer.h>
#include <kregistry/cache.h>
#include <kregistry/cc.h>
#include <kregistry/compile.h>
#include <kregistry/error.h>
#include <kregistry/group.h>
#include <kregistry/image.h>
#include <kregistry/launch.h>
#include <kregistry/link.h>
#include <kregistry/module.h>
#include <kregistry/op.h>
#include <kregistry/pack.h>
#include <kregistry/registry.h>
#include <kregistry/relevel.h>
#include <kregistry/runtime.h>
#include <kregistry/stream.h>
#include <kregistry/version.h>

#endif
