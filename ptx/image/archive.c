/* SPDX-License-Identifier: Apache-2.0 */
/* Archives (ar): a magic, then members, each with a header of 60 bytes of text, at even offsets. */
#include "ptx/image/image.h"

#include <ar.h>
#include <stdlib.h>
#include <string.h>

#include "ptx/image/bytes.h"

typedef struct reader {
    kr__bytes bytes;
    kr__archive *archive;
    const char *names; /* the member with the names that are too long for a header; NULL: none yet */
    size_t names_bytes;
    kr_error *err;
} reader;

/* A decimal number with blanks behind it. */
static bool read_number(const char *text, size_t bytes, uint64_t *ret_value)
{
    uint64_t value = 0;
    size_t n = 0;
    for (; n < bytes && text[n] >= '0' && text[n] <= '9'; n++)
        value = value * 10 + (unsigned)(text[n] - '0');
    *ret_value = value;
    while (n < bytes && text[n] == ' ')
        n++;
    return n == bytes && text[0] != ' ';
}

/* In the words of GNU a name ends with a slash or is "/" and an offset in the names; in BSD's it is "#1/" and
 * its length, and stands before the contents. */
static const char *read_name(reader *r, const struct ar_hdr *header, size_t *at, size_t end)
{
    enum { LONGEST = 1024 }; /* a table's end may be far off, and members many */
    const char *text = header->ar_name;
    size_t n = sizeof header->ar_name;
    uint64_t number;
    if (strncmp(text, "#1/", 3) == 0 && read_number(text + 3, n - 3, &number) && number <= end - *at) {
        text = (const char *)r->bytes.data + *at;
        *at += number;
        n = strnlen(text, number);
    } else if (text[0] == '/' && read_number(text + 1, n - 1, &number) && number < r->names_bytes) {
        const size_t left = r->names_bytes - number, room = left < LONGEST ? left : LONGEST;
        text = r->names + number;
        const char *line_end = memchr(text, '\n', room);
        n = line_end ? (size_t)(line_end - text) : room;
    }
    while (n && (text[n - 1] == ' ' || (n > 1 && text[n - 1] == '/')))
        n--;
    return kr__arena_text(&r->archive->arena, text, n);
}

static bool is_table_of_names(const struct ar_hdr *header)
{
    return memcmp(header->ar_name, "// ", 3) == 0;
}

/* Is it the archive's own: the table of symbols, or of names? */
static bool is_table(reader *r, const struct ar_hdr *header, size_t at, size_t end)
{
    const char *name = header->ar_name;
    if (is_table_of_names(header)) {
        r->names = (const char *)r->bytes.data + at;
        r->names_bytes = end - at;
        return true;
    }
    return memcmp(name, "/ ", 2) == 0 || memcmp(name, "/SYM64/ ", 8) == 0 ||
           memcmp(name, "__.SYMDEF", 9) == 0;
}

static kr_status add_member(reader *r, const struct ar_hdr *header, size_t at, size_t end)
{
    kr__archive *archive = r->archive;
    kr__archive_member *grown = kr__grow(archive->members, archive->n_members, sizeof *grown);
    if (!grown)
        return KR_FAIL(r->err, KR_OUT_OF_HOST_MEMORY, "no memory for member %zu", archive->n_members);
    archive->members = grown;
    const char *name = read_name(r, header, &at, end);
    if (!name)
        return KR_FAIL(r->err, KR_OUT_OF_HOST_MEMORY, "no memory for the name of a member");
    if (strncmp(name, "__.SYMDEF", 9) != 0) /* BSD's table of symbols with its name before it */
        grown[archive->n_members++] = (kr__archive_member){name, at, end - at};
    return KR_OK;
}

static kr_status read_members(reader *r)
{
    const kr__bytes *bytes = &r->bytes;
    kr_status status = KR_OK;
    for (size_t at = SARMAG; at < bytes->n && !status;) {
        const struct ar_hdr *header = (const struct ar_hdr *)(bytes->data + at);
        uint64_t size = 0;
        if (!kr__bytes_hold(bytes, at, sizeof *header))
            return KR_FAIL(r->err, KR_CORRUPT,
                           "archive: a header of %zu bytes was expected at offset %zu, %zu are left",
                           sizeof *header, at, bytes->n - at);
        if (memcmp(header->ar_fmag, ARFMAG, 2) != 0 ||
            !read_number(header->ar_size, sizeof header->ar_size, &size))
            return KR_FAIL(r->err, KR_CORRUPT,
                           "archive: the header of a member, with its size, was expected at offset %zu", at);
        at += sizeof *header;
        if (!kr__bytes_hold(bytes, at, size))
            return KR_FAIL(r->err, KR_CORRUPT,
                           "archive: a member of %llu bytes was expected at offset %zu, %zu are left",
                           (unsigned long long)size, at, bytes->n - at);
        if (r->names && is_table_of_names(header))
            return KR_FAIL(r->err, KR_CORRUPT,
                           "archive: one table of names was expected; the member at offset %zu is another",
                           at);
        if (!is_table(r, header, at, at + size))
            status = add_member(r, header, at, at + size);
        at += size + size % 2;
    }
    return status;
}

kr_status kr__archive_read(const void *file, size_t bytes, kr__archive **ret_archive, kr_error *err)
{
    kr__archive *archive = kr__alloc(1, sizeof *archive, err);
    if (!archive)
        return KR_OUT_OF_HOST_MEMORY;
    reader r = {.bytes = {file, bytes, false}, .archive = archive, .err = err};
    const kr_status status = read_members(&r);
    if (status)
        kr__archive_free(&archive);
    else
        *ret_archive = archive;
    return status;
}

void kr__archive_free(kr__archive **archive)
{
    if (!archive || !*archive)
        return;
    kr__arena_free(&(*archive)->arena);
    free((*archive)->members);
    free(*archive);
    *archive = NULL;
}
