/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KR_SOURCE_H
#define KR_SOURCE_H

/* An op's file as one text. */

#include "runtime/base/base.h"

/*
 * Reads a .cu file and puts the files of its own folder that it includes with quotes in their place, so that
 * an op's text is whole wherever it goes: into a program, to NVRTC, to another machine. Each is put in once,
 * whoever asks for it again; #line keeps the compiler's messages right. What the folder does not have is left
 * for NVRTC to find. *ret_text is malloc'ed. files: gets the path of each file read, a space before each; or
 * NULL.
 */
kr_status kr__source_read(const char *path, char **ret_text, size_t *ret_bytes, kr__text *files,
                          kr_error *err);

/* The paths of a folder's .cu files, in name order: one allocation. KR_NOT_FOUND: there is no folder, or no
 * file. */
kr_status kr__source_list(const char *folder, char ***ret_paths, size_t *ret_n, kr_error *err);

#endif
