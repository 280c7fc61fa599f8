/* SPDX-License-Identifier: Apache-2.0 */
#include <ctype.h>
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

/* ---- its name in the program ---- */

/* my_kernels.pack as my_kernels_pack: what is no part of a C name becomes an underscore. */
static char *name_of(const char *path)
{
    const char *slash = strrchr(path, '/'), *file = slash ? slash + 1 : path;
    char *name = tool_alloc(strlen(file) + 2);
    sprintf(name, "%s%s", isdigit((unsigned char)*file) ? "_" : "", file);
    for (char *at = name; *at; at++)
        if (!isascii((unsigned char)*at) || !isalnum((unsigned char)*at))
            *at = '_';
    return name;
}

/* ---- an object ---- */

/* Data alone, so there is nothing to relocate; the machine is that of this program. */
#if defined(__x86_64__)
enum { MACHINE = EM_X86_64 };
#elif defined(__aarch64__)
enum { MACHINE = EM_AARCH64 };
#else
enum { MACHINE = EM_NONE };
#endif

/* The sections, in their order in the file. */
enum { NO_SECTION, DATA, SYMBOLS, NAMES, NO_EXECUTABLE_STACK, N_SECTIONS };

/* Writes zeros up to a place. */
static void fill_to(FILE *to, size_t place)
{
    while ((size_t)ftell(to) < place)
        fputc(0, to);
}

static size_t rounded_up(size_t bytes, size_t align)
{
    return (bytes + align - 1) / align * align;
}

static void write_object(FILE *to, const char *name, const void *data, size_t bytes)
{
    static const char section_names[] = "\0.rodata\0.symtab\0.strtab\0.note.GNU-stack";
    const uint64_t count = bytes;
    size_t count_at = rounded_up(bytes, sizeof count), name_at = sizeof section_names,
           length = strlen(name) + 1;
    const unsigned char global = ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT);
    const Elf64_Sym symbols[] = {
        {0},
        {.st_name = (Elf64_Word)name_at, .st_info = global, .st_shndx = DATA, .st_size = bytes},
        {.st_name = (Elf64_Word)(name_at + length),
         .st_info = global,
         .st_shndx = DATA,
         .st_value = count_at,
         .st_size = sizeof count}};
    Elf64_Shdr sections[N_SECTIONS] = {
        [DATA] = {.sh_name = 1,
                  .sh_type = SHT_PROGBITS,
                  .sh_flags = SHF_ALLOC,
                  .sh_size = count_at + sizeof count,
                  .sh_addralign = 64},
        [SYMBOLS] = {.sh_name = 9,
                     .sh_type = SHT_SYMTAB,
                     .sh_size = sizeof symbols,
                     .sh_link = NAMES,
                     .sh_info = 1, /* the first that is global */
                     .sh_addralign = 8,
                     .sh_entsize = sizeof *symbols},
        [NAMES] = {.sh_name = 17,
                   .sh_type = SHT_STRTAB,
                   .sh_size = name_at + 2 * length + strlen("_bytes"),
                   .sh_addralign = 1},
        [NO_EXECUTABLE_STACK] = {.sh_name = 25, .sh_type = SHT_PROGBITS, .sh_addralign = 1}};
    size_t end = sizeof(Elf64_Ehdr);
    for (size_t i = DATA; i < N_SECTIONS; i++) {
        sections[i].sh_offset = rounded_up(end, sections[i].sh_addralign);
        end = sections[i].sh_offset + sections[i].sh_size;
    }
    const Elf64_Ehdr header = {
        .e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
        .e_type = ET_REL,
        .e_machine = MACHINE,
        .e_version = EV_CURRENT,
        .e_shoff = rounded_up(end, 8),
        .e_ehsize = sizeof header,
        .e_shentsize = sizeof *sections,
        .e_shnum = N_SECTIONS,
        .e_shstrndx = NAMES};
    fwrite(&header, sizeof header, 1, to);
    fill_to(to, sections[DATA].sh_offset);
    fwrite(data, 1, bytes, to);
    fill_to(to, sections[DATA].sh_offset + count_at);
    fwrite(&count, sizeof count, 1, to);
    fill_to(to, sections[SYMBOLS].sh_offset);
    fwrite(symbols, sizeof symbols, 1, to);
    fwrite(section_names, sizeof section_names, 1, to);
    fprintf(to, "%s%c%s_bytes%c", name, '\0', name, '\0');
    fill_to(to, header.e_shoff);
    fwrite(sections, sizeof sections, 1, to);
}

/* ---- the command ---- */

typedef void write_fn(FILE *to, const char *name, const void *data, size_t bytes);

static kr_status find_writer(const char *output, write_fn **ret_writer, kr_error *err)
{
    const char *dot = strrchr(output, '.');
    if (dot && strcmp(dot, ".c") == 0) {
        *ret_writer = tool_print_bytes;
        return KR_OK;
    }
    if (!dot || strcmp(dot, ".o") != 0)
        return tool_refuse(err, "Give -o a file that ends in .c or .o.", "the ending of \"%s\" is neither",
                           output);
    if (MACHINE == EM_NONE)
        return tool_refuse(err, "Give -o a file that ends in .c.", "objects of this machine are not written");
    *ret_writer = write_object;
    return KR_OK;
}

/* A damaged image is found here, not in the program. */
static kr_status check_images(const kr_pack *pack, kr_error *err)
{
    kr_status status = KR_OK;
    kr_pack_image image;
    for (size_t i = 0; i < kr_pack_get_info(pack).n_images && !status; i++)
        status = kr_pack_get_image(pack, i, &image, err);
    return status;
}

static kr_status embed(const char *output, const char *path, const char *name, size_t *ret_bytes,
                       kr_error *err)
{
    kr_pack *pack = NULL;
    write_fn *write = NULL;
    char *text = NULL;
    size_t bytes = 0;
    kr_status status = find_writer(output, &write, err);
    if (!status && tool_same_file(path, output))
        status = tool_refuse(err, "Name another file.", "-o %s is the pack itself", output);
    if (!status)
        status = kr_pack_open(path, &pack, err);
    if (!status)
        status = check_images(pack, err);
    if (!status) {
        kr_pack_info info = kr_pack_get_info(pack);
        FILE *to = tool_memory_file(&text, &bytes);
        write(to, name, info.data, info.bytes);
        fclose(to);
        *ret_bytes = info.bytes;
        status = tool_write_file(output, text, bytes, err);
    }
    free(text);
    kr_pack_close(&pack);
    return status;
}

int run_embed(const invocation *cli)
{
    kr_error err;
    size_t bytes = 0;
    const char *output = cli_value(cli, OPT_OUTPUT), *path = cli->operands[0];
    char *name = name_of(path);
    kr_status status =
        output ? embed(output, path, name, &bytes, &err)
               : tool_refuse(&err, "Give -o a file that ends in .c or .o.", "embed needs -o FILE");
    int code =
        status ? cli_fail(cli, &err)
        : cli->json
            ? cli_print(json_pack("{s:o, s:I}", "name", json_any_text(name), "bytes", (json_int_t)bytes),
                        EXIT_DONE)
            : EXIT_DONE;
    if (!status && !cli->json)
        printf("%s: %s and %s_bytes, %zu bytes\n", output, name, name, bytes);
    free(name);
    return code;
}
