/* SPDX-License-Identifier: Apache-2.0 */
/* Whatever happens to its folder, the cache gives back what was kept, or nothing. */
#include <check.h>
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "ptx/cache/cache.h"
#include "ptx/compile/nvrtc.h"

static char folder[] = "/tmp/kr_cache_XXXXXX", place[64];
static _Thread_local char why[400];
static kr_cache *cache;
static kr_error err;

static void setup(void)
{
    strcpy(folder, "/tmp/kr_cache_XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(place, sizeof place, "%s/a/b", folder);
    ck_assert_int_eq(kr_cache_create(place, NULL, &cache, &err), KR_OK);
}

static void teardown(void)
{
    char command[64];
    kr_cache_destroy(&cache);
    ck_assert_ptr_null(cache);
    snprintf(command, sizeof command, "rm -rf %s", folder);
    ck_assert_int_eq(system(command), 0);
}

static void key_of(unsigned n, kr__cache_key key)
{
    kr__sha256_of(&n, sizeof n, key);
}

static bool keep(unsigned n, const char *text)
{
    kr__cache_key key;
    key_of(n, key);
    return kr__cache_keep(cache, key, text, strlen(text), why, sizeof why);
}

/* malloc'ed; NULL: not there */
static char *found(unsigned n)
{
    kr__cache_key key;
    char *data = NULL;
    size_t bytes;
    key_of(n, key);
    if (!kr__cache_find(cache, key, &data, &bytes, why, sizeof why))
        return NULL;
    data[bytes] = '\0';
    return data;
}

static void has(unsigned n, const char *text)
{
    char *data = found(n);
    ck_assert_msg(data != NULL, "%u is not there: %s", n, why);
    ck_assert_str_eq(data, text);
    free(data);
}

static void path_of(unsigned n, char path[200])
{
    kr__cache_key key;
    key_of(n, key);
    int at = sprintf(path, "%s/", place);
    for (size_t i = 0; i < sizeof key; i++)
        at += sprintf(path + at, "%02x", key[i]);
    strcpy(path + at, KR__CACHE_ENDING);
}

static size_t n_files(const char *ending)
{
    size_t n = 0;
    DIR *directory = opendir(place);
    for (struct dirent *file; directory && (file = readdir(directory));)
        n += strlen(file->d_name) > strlen(ending) &&
             !strcmp(file->d_name + strlen(file->d_name) - strlen(ending), ending);
    if (directory)
        closedir(directory);
    return n;
}

START_TEST(kept_and_found)
{
    ck_assert_ptr_null(found(1));
    ck_assert_str_eq(why, "");
    ck_assert(keep(1, "one"));
    ck_assert(keep(2, ""));
    has(1, "one");
    has(2, "");
    ck_assert(keep(1, "another"));
    has(1, "another");
    ck_assert_ptr_null(found(3));
    ck_assert_uint_eq(n_files(""), 2 + 2); /* . and .. */
    ck_assert_str_eq(kr_cache_folder(cache), place);
}
END_TEST

/* Every byte of an entry, and every length. */
START_TEST(damaged)
{
    char path[200], bytes[200];
    static const char text[] = "what was compiled";
    path_of(1, path);
    ck_assert(keep(1, text));
    int fd = open(path, O_RDONLY);
    const ssize_t n = read(fd, bytes, sizeof bytes);
    close(fd);
    ck_assert_int_gt(n, (int)sizeof text);
    for (ssize_t i = 0; i < 2 * n; i++) {
        fd = open(path, O_WRONLY | O_TRUNC);
        bytes[i % n] ^= i < n ? 1 : 0;
        ck_assert_int_ge(write(fd, bytes, i < n ? (size_t)n : (size_t)(i - n)), 0);
        bytes[i % n] ^= i < n ? 1 : 0;
        close(fd);
        ck_assert_msg(!found(1), "byte or length %zd", i);
        ck_assert_msg(strstr(why, "damaged") != NULL, "%s", why);
    }
    ck_assert(keep(1, text)); /* healed */
    has(1, text);
}
END_TEST

/* One entry under the name of another. */
START_TEST(another_entry)
{
    char one[200], two[200];
    path_of(1, one);
    path_of(2, two);
    ck_assert(keep(1, "one"));
    ck_assert_int_eq(rename(one, two), 0);
    ck_assert_ptr_null(found(2));
    ck_assert_int_eq(symlink(two, one), 0);
    ck_assert_ptr_null(found(1)); /* a link is not followed, */
    ck_assert(keep(1, "one"));    /* but replaced */
    has(1, "one");
    ck_assert_int_eq(unlink(one), 0);
    ck_assert_int_eq(mkfifo(one, 0600), 0);
    ck_assert_ptr_null(found(1));
    ck_assert_int_eq(unlink(one), 0);
    ck_assert_int_eq(mkdir(one, 0700), 0);
    ck_assert_ptr_null(found(1));
    ck_assert(!keep(1, "one"));
    ck_assert_msg(strstr(why, "not kept") != NULL, "%s", why);
    ck_assert_uint_eq(n_files(KR__CACHE_UNFINISHED), 0);
}
END_TEST

/* What others can write may hold anything, with right hashes. */
START_TEST(others_can_write)
{
    ck_assert(keep(1, "one"));
    ck_assert_int_eq(chmod(place, 0777), 0);
    ck_assert_ptr_null(found(1));
    ck_assert_msg(strstr(why, "others than this user") != NULL, "%s", why);
    ck_assert(!keep(2, "two"));
    ck_assert_int_eq(chmod(place, 0755), 0);
    has(1, "one");
    if (!geteuid()) {
        char path[200];
        path_of(1, path);
        ck_assert_int_eq(chown(path, 1, 1), 0);
        ck_assert_ptr_null(found(1));
        ck_assert_int_eq(chown(place, 1, 1), 0);
        ck_assert(!keep(2, "two"));
    }
}
END_TEST

START_TEST(no_folder_can_be_made)
{
    kr_cache *other = NULL;
    kr__cache_key key = {0};
    if (!access("/sys/kernel",
                F_OK)) { /* where nobody makes folders: why is told, not that it is not there */
        ck_assert_int_eq(kr_cache_create("/sys/kregistry", NULL, &other, &err), KR_OK);
        ck_assert(!kr__cache_keep(other, key, "", 0, why, sizeof why));
        ck_assert_msg(strstr(why, "cannot be used") && !strstr(why, "No such file"), "%s", why);
        kr_cache_destroy(&other);
    }
    char file[64];
    snprintf(file, sizeof file, "%s/a", folder);
    close(open(file, O_WRONLY | O_CREAT, 0600));
    ck_assert(!keep(1, "one"));
    ck_assert_msg(strstr(why, "Not a directory") != NULL, "%s", why);
    ck_assert_ptr_null(found(1));
}
END_TEST

/* The folder goes while it is used. */
START_TEST(folder_removed)
{
    char command[80];
    ck_assert(keep(1, "one"));
    snprintf(command, sizeof command, "rm -rf %s/a", folder);
    ck_assert_int_eq(system(command), 0);
    ck_assert_ptr_null(found(1));
    ck_assert(keep(1, "one"));
    has(1, "one");
}
END_TEST

/* A file that cannot grow plays the full disk. */
START_TEST(full_disk)
{
    struct rlimit before;
    char text[4000];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    ck_assert(keep(1, text));
    getrlimit(RLIMIT_FSIZE, &before);
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &(struct rlimit){2000, before.rlim_max});
    const bool kept = keep(1, text) || keep(2, text);
    setrlimit(RLIMIT_FSIZE, &before);
    ck_assert(!kept);
    ck_assert_msg(strstr(why, "too large") != NULL, "%s", why);
    has(1, text); /* what was there stays */
    ck_assert_ptr_null(found(2));
    ck_assert_uint_eq(n_files(KR__CACHE_UNFINISHED), 0);
}
END_TEST

static void *write_and_read(void *argument)
{
    for (unsigned i = 0; i < 200; i++) {
        char text[40];
        snprintf(text, sizeof text, "the text of %u", i % 10);
        if (!keep(i % 10, text))
            return "not kept";
        char *data = found(i % 10);
        if (!data || strcmp(data, text))
            return "not found";
        free(data);
    }
    return argument;
}

START_TEST(many_threads)
{
    pthread_t threads[4];
    void *result;
    for (size_t i = 0; i < KR_COUNT(threads); i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, write_and_read, NULL), 0);
    for (size_t i = 0; i < KR_COUNT(threads); i++) {
        pthread_join(threads[i], &result);
        ck_assert_msg(!result, "%s", (char *)result);
    }
}
END_TEST

/* By a process of the same number, as in a container: the first of them always has it. */
START_TEST(left_by_one_of_the_same_number)
{
    char path[200];
    ck_assert(keep(2, "makes the folder"));
    for (int serial = 0; serial < 100; serial++) {
        path_of(1, path);
        sprintf(strrchr(path, '.'), ".%ld.%d" KR__CACHE_UNFINISHED, (long)getpid(), serial);
        close(open(path, O_WRONLY | O_CREAT, 0600));
    }
    ck_assert_msg(keep(1, "one"), "%s", why);
    has(1, "one");
}
END_TEST

/* What a process that was killed left is no entry; the rest is whole. */
START_TEST(killed_while_writing)
{
    enum { ROUNDS = 40 };
    char *text = malloc(1 << 20);
    memset(text, 'k', (1 << 20) - 1);
    text[(1 << 20) - 1] = '\0';
    for (unsigned round = 0; round < ROUNDS; round++) {
        const pid_t child = fork();
        if (!child) {
            unsigned i = 0;
            while (keep(i++ % 4, text))
                ;
            _exit(1);
        }
        usleep(1000 + 211 * round);
        kill(child, SIGKILL);
        ck_assert_int_eq(waitpid(child, NULL, 0), child);
        for (unsigned i = 0; i < 4; i++) {
            char *data = found(i);
            ck_assert_msg(data || !why[0], "%s", why);
            ck_assert(!data || !strcmp(data, text));
            free(data);
        }
    }
    free(text);
}
END_TEST

/* A file of that name, last used then. */
static void old_file(const char *name, time_t seconds)
{
    char path[200];
    snprintf(path, sizeof path, "%s/%s", place, name);
    close(open(path, O_WRONLY | O_CREAT, 0600));
    ck_assert_int_eq(utimensat(AT_FDCWD, path, (struct timespec[]){{seconds, 0}, {seconds, 0}}, 0), 0);
}

START_TEST(bounded)
{
    const kr_cache_options options = {.struct_size = sizeof options, .limit_bytes = 100000};
    char text[2000], path[200];
    kr_cache_destroy(&cache);
    ck_assert_int_eq(kr_cache_create(place, &options, &cache, &err), KR_OK);
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    for (unsigned i = 0; i < 64; i++) {
        ck_assert(keep(i, text));
        path_of(i, path); /* as if long ago, in that order */
        ck_assert_int_eq(utimensat(AT_FDCWD, path, (struct timespec[]){{1000 + i, 0}, {1000 + i, 0}}, 0), 0);
    }
    has(0, text); /* used now */
    path_of(1, path);
    snprintf(strrchr(path, '.'), 20, ".1.2" KR__CACHE_UNFINISHED);
    old_file(strrchr(path, '/') + 1, 1000);
    path[strlen(path) - strlen("2" KR__CACHE_UNFINISHED)]++;
    old_file(strrchr(path, '/') + 1, time(NULL));
    static const char *const others[] = {"old" KR__CACHE_UNFINISHED, "old" KR__CACHE_ENDING, "another"};
    for (size_t i = 0; i < KR_COUNT(others); i++)
        old_file(others[i], 1);
    ck_assert(keep(64, text)); /* the 65th: a sweep */
    has(0, text);
    has(64, text);
    ck_assert_ptr_null(found(1));
    has(63, text);
    ck_assert_uint_eq(n_files(KR__CACHE_UNFINISHED), 2);
    for (size_t i = 0; i < KR_COUNT(others); i++)
        ck_assert_msg(n_files(others[i] + 1) == 1, "%s", others[i]);
    const size_t n = n_files(KR__CACHE_ENDING);
    ck_assert_msg(n * 2000 <= 75000 && n * 2100 >= 70000, "%zu", n);
    ck_assert_ptr_nonnull(strcpy(text, "")); /* more than a quarter of all is not kept */
    char *large = calloc(1, 30000);
    memset(large, 'l', 29999);
    ck_assert(!keep(100, large));
    free(large);
}
END_TEST

START_TEST(places)
{
    static const struct {
        const char *told, *xdg, *home, *folder;
    } rows[] = {
        {"/told", "/xdg", "/home/me", "/told"},
        {"rel", NULL, NULL, "rel"},
        {"", "/xdg", "/home/me", "/xdg/kregistry"},
        {NULL, "relative", "/home/me", "/home/me/.cache/kregistry"},
        {NULL, NULL, NULL, NULL},
        {"none", "/xdg", "/home/me", NULL},
    };
    for (size_t i = 0; i < KR_COUNT(rows); i++) {
        const char *const names[] = {"KREGISTRY_CACHE_DIR", "XDG_CACHE_HOME", "HOME"};
        const char *const values[] = {rows[i].told, rows[i].xdg, rows[i].home};
        for (size_t j = 0; j < 3; j++)
            values[j] ? setenv(names[j], values[j], 1) : unsetenv(names[j]);
        kr_cache *other = NULL;
        const kr_status status = kr_cache_create(NULL, NULL, &other, &err);
        ck_assert_int_eq(status, rows[i].folder ? KR_OK : KR_NOT_FOUND);
        if (other)
            ck_assert_str_eq(kr_cache_folder(other), rows[i].folder);
        else
            ck_assert_ptr_nonnull(strstr(err.advice, "et KREGISTRY_CACHE_DIR")); /* set it, or unset it */
        kr_cache_destroy(&other);
    }
    kr_cache *none = NULL;
    ck_assert_int_eq(kr_cache_create("none", NULL, &none, &err), KR_NOT_FOUND);
    ck_assert_int_eq(kr_cache_create("", NULL, NULL, &err), KR_INVALID_ARGUMENT);
    kr_cache_destroy(NULL);
}
END_TEST

/* ---- compiles ---- */

static kr_nvrtc *fake;

static void open_fake(void)
{
    char command[400];
    setup();
    snprintf(command, sizeof command, "cp %s %s/libnvrtc.so && cp %s %s/libnvrtc-builtins.so.13.0",
             FAKE_NVRTC, folder, FAKE_NVRTC, folder);
    ck_assert_int_eq(system(command), 0);
    snprintf(command, sizeof command, "%s/libnvrtc.so", folder);
    ck_assert_int_eq(kr_nvrtc_open(command, &fake, &err), KR_OK);
}

static void close_fake(void)
{
    kr_nvrtc_close(&fake);
    teardown();
}

typedef struct job {
    const char *name, *source;
    kr_cc arch;
    kr_image_kind kind;
    const char *options[4], *expressions[2], *header_names[2], *header_texts[2];
} job;

static size_t count(const char *const *list, size_t most)
{
    size_t n = 0;
    while (n < most && list[n])
        n++;
    return n;
}

static kr_compiled *compile(const job *j, bool only_find)
{
    kr_compiled *compiled = NULL;
    const kr_compile_options options = {.struct_size = sizeof options,
                                        .kind = j->kind,
                                        .options = j->options,
                                        .n_options = count(j->options, 4),
                                        .name_expressions = j->expressions,
                                        .n_name_expressions = count(j->expressions, 2),
                                        .header_names = j->header_names,
                                        .header_texts = j->header_texts,
                                        .n_headers = count(j->header_names, 2),
                                        .cache = cache,
                                        .only_find = only_find};
    const kr_status status = kr_compile(fake, j->name, j->source, j->arch, &options, &compiled, &err);
    ck_assert_msg(!status || (only_find && status == KR_NOT_FOUND), "%s", err.message);
    return compiled;
}

static bool is_found(const job *j)
{
    kr_compiled *c = compile(j, false);
    const bool found = c->is_found;
    kr_compiled_destroy(&c);
    return found;
}

static const job plain = {.name = "a.cu", .source = "text", .arch = {8, 0, 0}, .kind = KR_IMAGE_PTX};

START_TEST(the_same_comes_back)
{
    for (kr_image_kind kind = KR_IMAGE_PTX; kind <= KR_IMAGE_CUBIN; kind++) {
        job j = plain;
        j.kind = kind;
        j.expressions[0] = "f<int>";
        ck_assert_ptr_null(compile(&j, true));
        kr_compiled *first = compile(&j, false), *second = compile(&j, false), *third = compile(&j, true);
        ck_assert_str_eq(first->cache_note, "");
        ck_assert(!first->is_found && second->is_found && third->is_found);
        ck_assert_int_eq(first->kind, second->kind);
        ck_assert_int_eq(first->arch.major, second->arch.major);
        ck_assert_uint_eq(first->image_bytes, second->image_bytes);
        ck_assert_mem_eq(first->image, second->image, first->image_bytes);
        ck_assert_pstr_eq(first->ptx, second->ptx);
        ck_assert_str_eq(first->log, second->log);
        ck_assert_uint_eq(first->n_entries, second->n_entries);
        for (size_t i = 0; i < first->n_entries; i++)
            ck_assert_str_eq(first->entries[i], second->entries[i]);
        ck_assert_str_eq(first->lowered_names[0], second->lowered_names[0]);
        kr_compiled_destroy(&first);
        kr_compiled_destroy(&second);
        kr_compiled_destroy(&third);
    }
}
END_TEST

START_TEST(anything_else_is_another)
{
    job others[9];
    size_t n = 0;
    for (size_t i = 0; i < KR_COUNT(others); i++)
        others[i] = plain;
    others[n++].source = "text ";
    others[n++].name = "b.cu";
    others[n++].arch = (kr_cc){12, 0, 0};
    others[n++].kind = KR_IMAGE_CUBIN;
    others[n++].options[0] = "-DA=1";
    others[n].options[0] = "-DA", others[n++].options[1] = "=1";
    others[n++].expressions[0] = "f";
    others[n].header_names[0] = "h", others[n++].header_texts[0] = "x";
    others[n].header_names[0] = "h", others[n++].header_texts[0] = "y";
    ck_assert_uint_eq(n, KR_COUNT(others));
    ck_assert(!is_found(&plain));
    for (size_t i = 0; i < n; i++)
        ck_assert_msg(!is_found(&others[i]), "other %zu", i);
    for (size_t i = 0; i < n; i++)
        ck_assert_msg(is_found(&others[i]), "other %zu", i);
    ck_assert(is_found(&plain));
}
END_TEST

static void put(const char *name, const char *text)
{
    char path[100];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    fclose(file);
}

START_TEST(headers_in_folders)
{
    static const char *const sources[] = {
        "#include \"one.h\"\n",
        "#include <one.h>\n",
        "  #  include <one.h> // x\n",
        "#include_next <one.h>\n",
        "# \\\ninclude <one.h>\n",
        "#inc\\\n\\\nlude <one.h>\n",
        "#inc\\\r\nlude <one.h>\r\n",
        "#\finclude\v<one.h>\n",
        "#\rinclude <one.h>\n",
        "#if __has_include(<one.h>)\n#endif\n",
        "#if defined(__has_include) && __has_include \\\n ( <one.h>)\n#endif\n",
        "#define HAS(x) __has_include(x)\n#if HAS( <one.h>)\n#endif\n",
        ("#ifdef __has_include\n#define HAS(x) __has_include(x)\n#else\n#define HAS(x) 0\n#endif\n"
         "#define HAS2( x ) HAS( x )\n#define HAS3(x) HAS(x)\n#if HAS3(<one.h>)\n#endif\n"),
    };
    char include[100], other[100];
    snprintf(include, sizeof include, "-I%s", folder);
    snprintf(other, sizeof other, "-I%s/first", folder);
    job j = plain;
    j.source = sources[_i];
    j.options[0] = other;
    j.options[1] = include;
    snprintf(why, sizeof why, "%s/first", folder);
    ck_assert_int_eq(mkdir(why, 0700), 0);
    ck_assert(!is_found(&j)); /* there is none */
    put("one.h", "#include \"two.h\"\n");
    ck_assert(!is_found(&j));
    ck_assert(is_found(&j));
    put("two.h", "int a;\n");
    ck_assert(!is_found(&j));
    put("two.h", "int b;\n#include \"one.h\"\n");
    ck_assert(!is_found(&j));
    ck_assert(is_found(&j));
    put("first/one.h", "");
    ck_assert(!is_found(&j));
    put("three.h", "nobody includes it");
    ck_assert(is_found(&j));
}
END_TEST

/* However NVRTC is told of a folder. */
START_TEST(ways_to_name_a_folder)
{
    static const char *const ways[][2] = {{"-I%s/x"},
                                          {"-I=%s/x"},
                                          {"-I  %s/x"},
                                          {" \t-I%s/x\n"},
                                          {"--include-path=%s/x "},
                                          {"-I ", " %s/x"},
                                          {" --include-path", "%s/x"}};
    char options[2][100];
    job j = plain;
    j.source = "#include <one.h>\n";
    for (size_t i = 0; i < 2 && ways[_i][i]; i++) {
        snprintf(options[i], sizeof options[i], ways[_i][i], folder);
        j.options[i] = options[i];
    }
    snprintf(why, sizeof why, "%s/x", folder);
    ck_assert_int_eq(mkdir(why, 0700), 0);
    ck_assert(!is_found(&j));
    ck_assert(is_found(&j));
    put("x/one.h", "");
    ck_assert(!is_found(&j));
}
END_TEST

/* "name" is looked for beside the link that was included, not beside the file that it leads to. */
START_TEST(links)
{
    char include[100], path[100];
    snprintf(include, sizeof include, "-I%s", folder);
    job j = plain;
    j.source = "#include <x/one.h>\n";
    j.options[0] = include;
    snprintf(path, sizeof path, "%s/x", folder);
    ck_assert_int_eq(mkdir(path, 0700), 0);
    put("real.h", "#include \"two.h\"\n");
    snprintf(path, sizeof path, "%s/x/one.h", folder);
    ck_assert_int_eq(symlink("../real.h", path), 0);
    put("two.h", "");
    put("x/two.h", "");
    ck_assert(!is_found(&j));
    ck_assert(is_found(&j));
    put("x/two.h", "int a;\n");
    ck_assert(!is_found(&j));
}
END_TEST

/* "name" in a header that is given as text is looked for where the header's name says. */
START_TEST(beside_a_given_header)
{
    char name[100];
    snprintf(name, sizeof name, "%s/given.h", folder);
    job j = plain;
    j.name = "/nowhere/a.cu";
    j.source = "";
    j.header_names[0] = name;
    j.header_texts[0] = "#include \"two.h\"\n";
    ck_assert(!is_found(&j));
    ck_assert(is_found(&j));
    put("two.h", "");
    ck_assert(!is_found(&j));
}
END_TEST

/* Debug information names the folder that the compile ran in. */
START_TEST(where_it_ran)
{
    static const struct {
        const char *option;
        kr_image_kind kind;
        bool is_told;
    } rows[] = {
        {NULL, KR_IMAGE_PTX, false},
        {NULL, KR_IMAGE_CUBIN, false},
        {"-G", KR_IMAGE_PTX, true},
        {"-lineinfo", KR_IMAGE_PTX, true},
    };
    job j = plain;
    j.options[0] = rows[_i].option;
    j.kind = rows[_i].kind;
    ck_assert_int_eq(chdir(folder), 0);
    ck_assert(!is_found(&j));
    ck_assert(is_found(&j));
    ck_assert_int_eq(chdir("/"), 0);
    ck_assert(is_found(&j) != rows[_i].is_told);
}
END_TEST

START_TEST(environment)
{
    unsetenv("NVRTC_APPEND_FLAGS");
    ck_assert(!is_found(&plain));
    setenv("NVRTC_APPEND_FLAGS", "-nvvm-version=nvvm70", 1);
    ck_assert(!is_found(&plain));
    ck_assert(is_found(&plain));
}
END_TEST

/* An NVRTC that is replaced while it is open stays what it is; who opens it again may be given the old one,
 * whose file nobody can look at any more: nor those builtins. */
START_TEST(library_replaced)
{
    static const char *const names[] = {"libnvrtc.so", "libnvrtc-builtins.so.13.0"};
    char command[200];
    ck_assert(!is_found(&plain));
    snprintf(command, sizeof command, "cd %s && cp -p %s new && mv new %s", folder, names[_i], names[_i]);
    ck_assert_int_eq(system(command), 0);
    ck_assert(is_found(&plain));
    kr_nvrtc_close(&fake);
    snprintf(command, sizeof command, "%s/libnvrtc.so", folder);
    ck_assert_int_eq(kr_nvrtc_open(command, &fake, &err), KR_OK);
    ck_assert(!is_found(&plain));
    ck_assert(!is_found(&plain));
}
END_TEST

START_TEST(no_builtins)
{
    char path[200];
    kr_nvrtc_close(&fake);
    snprintf(path, sizeof path, "cd %s && cp libnvrtc.so libnvrtc.so.13", folder);
    ck_assert_int_eq(system(path), 0);
    snprintf(path, sizeof path, "%s/libnvrtc-builtins.so.13.0", folder);
    ck_assert_int_eq(unlink(path), 0);
    snprintf(path, sizeof path, "%s/libnvrtc.so.13", folder);
    ck_assert_int_eq(kr_nvrtc_open(path, &fake, &err), KR_OK);
    ck_assert(!is_found(&plain));
    ck_assert(!is_found(&plain));
}
END_TEST

/* A header that changes while it is compiled: the result may be of either. */
START_TEST(changed_meanwhile)
{
    char source[200], include[100];
    snprintf(include, sizeof include, "-I%s", folder);
    snprintf(source, sizeof source, "append %s/one.h\n#include <one.h>\n", folder);
    put("one.h", "");
    job j = plain;
    j.source = source;
    j.options[0] = include;
    kr_compiled *c = compile(&j, false);
    ck_assert_msg(strstr(c->cache_note, "changed meanwhile") != NULL, "%s", c->cache_note);
    kr_compiled_destroy(&c);
    put("one.h", "");
    ck_assert(!is_found(&j));
}
END_TEST

/* More headers than any stack holds, and headers that never end. */
START_TEST(deep_and_strange)
{
    char include[100], name[20], text[60], path[100];
    snprintf(include, sizeof include, "-I%s", folder);
    job j = plain;
    j.source = "#include <0.h>\n";
    j.options[0] = include;
    for (int i = 0; i < 2000; i++) {
        snprintf(name, sizeof name, "%d.h", i);
        snprintf(text, sizeof text, "#include \"%d.h\"\n", i + 1);
        put(name, text);
    }
    ck_assert(!is_found(&j));
    ck_assert(is_found(&j));
    snprintf(path, sizeof path, "%s/2000.h", folder);
    ck_assert_int_eq(mkdir(path, 0700), 0); /* NVRTC passes it over */
    ck_assert(!is_found(&j));
    ck_assert(is_found(&j));
    ck_assert_int_eq(rmdir(path), 0);
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    ck_assert(!is_found(&j));
    ck_assert(!is_found(&j));
}
END_TEST

/* What cannot be known is not kept, and that is told. */
START_TEST(not_kept)
{
    static const job rows[] = {
        {.source = "#define H <a.h>\n#include H\n"},
        {.source = "%:include <a.h>\n"},
        {.source = "#/**/include <a.h>\n"},
        {.source = "#/* x*/include <a.h>\n"},
        {.source = "#include/**/<a.h>\n"},
        {.source = "%\\\n:include <a.h>\n"},
        {.source = "#if __has_include(H)\n#endif\n"},
        {.source = "#if __has_include/**/( <a.h>)\n#endif\n"},
        {.source = "#define HAS(x) __has_include(x)\n#if HAS(H)\n#endif\n"},
        {.source = "#define HAS(x) __has_include(<x>)\n#if HAS(a.h)\n#endif\n"},
        {.source = "\xef\xbb\xbf#define HAS(x) __has_include(<x>)\n#if HAS(a.h)\n#endif\n"},
        {.source = "#define HAS(x) __has_include(H)\n#if HAS(<a.h>)\n#endif\n"},
        {.source = "#define HAS __has_include(H)\n#if HAS\n#endif\n"},
        {.source = "#define HAS __has_include\n#if HAS( <a.h>)\n#endif\n"},
        {.source = "#if HAS( <a.h>)\n#endif\n", .options = {"-DHAS=__has_include"}},
        {.source = "#define HAS(x) __has_include(x)\n#if HAS(<a.h >)\n#endif\n"},
        {.source = "#define HAS(x) __has_include(x)\n#define h\n#if HAS(<a.h>)\n#endif\n"},
        {.source = "#define HAS(x) __has_include(x)\n#if HAS(<a.h>)\n#endif\n", .options = {"-Dh=b"}},
        {.source = "#define HAS(x) __has_include(x)\n#if HAS(<a.h>)\n#endif\n", .options = {"-D", "h"}},
        {.source = "__TIME__"},
        {.source = "now", .options = {"-Dnow=__DATE__"}},
        {.source = "", .options = {"--pre-include=a.h"}},
        {.source = "", .options = {"-include", "a.h"}},
        {.source = "", .options = {"--use-pch=a.pch"}},
    };
    job j = rows[_i];
    j.name = plain.name;
    j.arch = plain.arch;
    for (int i = 0; i < 2; i++) {
        kr_compiled *c = compile(&j, false);
        ck_assert(!c->is_found);
        ck_assert_msg(strstr(c->cache_note, "cannot be read off") != NULL, "%s", c->cache_note);
        kr_compiled_destroy(&c);
    }
    ck_assert_ptr_null(compile(&j, true));
}
END_TEST

/* A compile works with any folder. */
START_TEST(no_cache_is_no_failure)
{
    put("a", "a file where the folder would be");
    kr_compiled *c = compile(&plain, false);
    ck_assert(!c->is_found);
    ck_assert_str_ne(c->cache_note, "");
    kr_compiled_destroy(&c);
    ck_assert_ptr_null(compile(&plain, true));
    ck_assert_int_eq(err.status, KR_NOT_FOUND);
    ck_assert_str_eq(err.advice, "Compile it without only_find.");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cache");
    TCase *entries = tcase_create("entries"), *compiles = tcase_create("compiles");
    tcase_add_checked_fixture(entries, setup, teardown);
    tcase_set_timeout(entries, 60);
    tcase_add_test(entries, kept_and_found);
    tcase_add_test(entries, damaged);
    tcase_add_test(entries, another_entry);
    tcase_add_test(entries, others_can_write);
    tcase_add_test(entries, no_folder_can_be_made);
    tcase_add_test(entries, folder_removed);
    tcase_add_test(entries, full_disk);
    tcase_add_test(entries, many_threads);
    tcase_add_test(entries, left_by_one_of_the_same_number);
    tcase_add_test(entries, killed_while_writing);
    tcase_add_test(entries, bounded);
    tcase_add_test(entries, places);
    suite_add_tcase(suite, entries);
    tcase_add_checked_fixture(compiles, open_fake, close_fake);
    tcase_set_timeout(compiles, 60);
    tcase_add_test(compiles, the_same_comes_back);
    tcase_add_test(compiles, anything_else_is_another);
    tcase_add_loop_test(compiles, headers_in_folders, 0, 12);
    tcase_add_loop_test(compiles, ways_to_name_a_folder, 0, 7);
    tcase_add_test(compiles, links);
    tcase_add_test(compiles, beside_a_given_header);
    tcase_add_loop_test(compiles, where_it_ran, 0, 4);
    tcase_add_test(compiles, environment);
    tcase_add_loop_test(compiles, library_replaced, 0, 2);
    tcase_add_test(compiles, no_builtins);
    tcase_add_test(compiles, changed_meanwhile);
    tcase_add_test(compiles, deep_and_strange);
    tcase_add_loop_test(compiles, not_kept, 0, 24);
    tcase_add_test(compiles, no_cache_is_no_failure);
    suite_add_tcase(suite, compiles);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
