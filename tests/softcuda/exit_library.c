/* SPDX-License-Identifier: Apache-2.0 */
/* A library that is loaded before libcuda, and so ends after it. */
extern __attribute__((visibility("default"))) void (*exit_library_at_end)(void);
void (*exit_library_at_end)(void);

static __attribute__((destructor)) void end(void)
{
    if (exit_library_at_end)
        exit_library_at_end();
}
