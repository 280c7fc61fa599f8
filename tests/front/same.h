/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KR_TEST_FRONT_SAME_H
#define KR_TEST_FRONT_SAME_H

#include "ptx/front/ptx.h"

/* Is the second module the first one printed and read again? Lines aside, everything is held: registers by
 * name and type (their order is that of their first mention), and names where the text had to choose others
 * by their place. Says what differs. */
bool same_module(const ptx_module *one, const ptx_module *other);

/* Prints, reads again and compares; a second print must be the first. The text is the caller's to free. */
bool survives_printing(const ptx_module *module, kr__text *ret_text);

#endif
