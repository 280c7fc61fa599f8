/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KR_SOURCE_H
#define KR_SOURCE_H

/* Ops from files. */

#include "registry/descriptor.h"

/*
 * An op from its .cu file, with the files of the same folder that it, and they, include with quotes: they go
 * to NVRTC by name, so an op is whole wherever it goes. What the folder does not have is left for NVRTC to
 * find. An include that a comment or the preprocessor hides costs a file more, nothing else. files: gets the
 * path of each file read, a space before each; or NULL.
 */
kr_status kr__op_read(const char *path, kr__op_def **ret_def, kr__text *files, kr_error *err);

/* The paths of a folder's .cu files, in name order: one allocation. KR_NOT_FOUND: there is no folder, or no
 * file. */
kr_status kr__source_list(const char *folder, char ***ret_paths, size_t *ret_n, kr_error *err);

#endif
