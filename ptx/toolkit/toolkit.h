/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KR_TOOLKIT_H
#define KR_TOOLKIT_H

/* Opening a library of the CUDA toolkit at run time, wherever a toolkit or a Python package has put it. */

#include "runtime/base/base.h"

typedef struct kr__toolkit_library {
    const char *name;           /* "NVRTC", for messages */
    const char *file;           /* "libnvrtc.so": what the names of its files begin with */
    const char *const *sonames; /* for the dynamic linker; newest first, NULL at the end */
    const char *package;        /* the folder of its Python package below nvidia/, up to CUDA 12 */
    const char *wheel;          /* that package's name, to install it */
    const char *variable;       /* the environment's, that names a file or folder */
    const char *least;          /* the oldest that will do: "11.2" of CUDA */
    /* The version of CUDA that an opened library is of. false: it cannot tell. */
    bool (*version)(void *library, int *ret_major, int *ret_minor);
    /* Takes an opened library. KR_NOT_FOUND, and err as it was: it will not do, and `tried` has grown by a
     * line that says why. Any other failure is of the moment: it says nothing of what is installed. */
    kr_status (*take)(void *user, void *library, const char *file, kr__text *tried, kr_error *err);
} kr__toolkit_library;

/* Offers `take` one file after the other until it takes one. path: that file or folder alone, "none" none.
 * NULL: what the variable names alone ("none" too), else: already loaded, CUDA_HOME and CUDA_PATH, Python
 * packages, toolkits, system folders. driver_version: one of a newer major than 12040, whose machine code
 * that driver does not take, only where there is no other; 0: any. KR_NOT_ON_THIS_MACHINE: none will do; the
 * places tried are in err->log. */
kr_status kr__toolkit_open(const kr__toolkit_library *what, int driver_version, const char *path, void *user,
                           kr_error *err);

/* Is the errno one of the moment: no memory, no descriptor left? */
bool kr__toolkit_moment(int number);
/* The errno of the moment that dlerror's text ends with, or 0: glibc gives no number, but the number's text.
 */
int kr__toolkit_dlerror_moment(const char *why);
/* Fills err from it. */
kr_status kr__toolkit_fail_moment(kr_error *err, const kr__toolkit_library *what, int number,
                                  const char *place);

#endif
