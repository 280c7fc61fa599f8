/* SPDX-License-Identifier: Apache-2.0 */
#include "ptx/compile/nvrtc.h"

#include <stdlib.h>
#include <string.h>

enum { LINES_AROUND = 2, LONGEST_LINE = 160 };

static void add_source_lines(kr__text *to, const char *source, unsigned long wanted)
{
    const char *line = source;
    for (unsigned long number = 1; number <= wanted + LINES_AROUND; number++) {
        const size_t bytes = strcspn(line, "\n");
        const int shown = (int)(bytes < LONGEST_LINE ? bytes : LONGEST_LINE);
        if (number + LINES_AROUND >= wanted)
            kr__text_add(to, "  %c %5lu | %.*s%s\n", number == wanted ? '>' : ' ', number, shown, line,
                         (size_t)shown < bytes ? "..." : "");
        line += bytes + (line[bytes] != '\0');
        if (!*line)
            return;
    }
}

/* The line number of "NAME(LINE): error: ...", or 0 where the log's line is not the head of an error in NAME.
 */
static unsigned long error_line(const char *line, size_t bytes, const char *name)
{
    const size_t n = strlen(name);
    if (bytes <= n || memcmp(line, name, n) != 0 || line[n] != '(')
        return 0;
    char *end;
    const unsigned long number = strtoul(line + n + 1, &end, 10);
    const char *error = strstr(end, "error");
    return strncmp(end, "):", 2) == 0 && error && error < line + bytes ? number : 0;
}

void kr__log_with_source(kr__text *to, const char *log, const char *name, const char *source)
{
    /* An error goes on for some lines (the compiler's own quote and a caret) up to an empty one. */
    unsigned long pending = 0;
    while (*log) {
        const size_t bytes = strcspn(log, "\n");
        const unsigned long number = error_line(log, bytes, name);
        if (pending && (number || !bytes)) {
            add_source_lines(to, source, pending);
            pending = 0;
        }
        kr__text_add(to, "%.*s\n", (int)bytes, log);
        if (number)
            pending = number;
        log += bytes + (log[bytes] == '\n');
    }
    if (pending)
        add_source_lines(to, source, pending);
}
