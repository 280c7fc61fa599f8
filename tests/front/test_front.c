/* SPDX-License-Identifier: Apache-2.0 */
/* The PTX front end against ptxas (data/judged.tsv holds its verdicts; where it is installed it is asked
 * again), against the text that it read, and against damage. */
#include "same.h"

#include <check.h>
#include <glob.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static ptx_module *module;
static ptx_problem problem;

static bool parse_bytes(const char *text, size_t bytes, int max_isa)
{
    kr__text_free(&problem.log);
    kr__ptx_module_free(&module);
    return kr__ptx_parse(text, bytes, &(ptx_options){.max_isa = max_isa}, &module, &problem);
}

static bool parse(const char *text)
{
    return parse_bytes(text, strlen(text), 0);
}

static const char *log_text(void)
{
    return problem.log.data ? problem.log.data : "";
}

static void done(void)
{
    kr__text_free(&problem.log);
    kr__ptx_module_free(&module);
}

/* $JUDGED may have other rows: what judge.py just said. */
static char *data_file(const char *name, size_t *ret_bytes)
{
    char path[1024], *text;
    kr__format(path, sizeof path, "%s/%s", KR_TEST_DATA, name);
    if (!strcmp(name, "judged.tsv") && getenv("JUDGED"))
        kr__format(path, sizeof path, "%s", getenv("JUDGED"));
    ck_assert_int_eq(kr__file_read(path, &text, ret_bytes, NULL), KR_OK);
    return text;
}

/* ---- ptxas's verdicts ---- */

/* What an instruction of judged.tsv stands in; judge.py has the same. */
static void frame_begin(kr__text *to, const char *version, const char *target)
{
    const int sm = atoi(target + 3), isa = (version[0] - '0') * 10 + (version[2] - '0');
    kr__text_add(to, ".version %s\n.target %s\n.address_size 64\n", version, target);
    kr__text_add(to, ".global .align 16 .b8 gv[64];\n.const .align 16 .b8 cv[64];\n"
                     ".global .texref gt; .global .surfref gs;\n");
    if (strstr(target, "independent"))
        kr__text_add(to, ".global .samplerref gm;\n");
    kr__text_add(
        to, ".extern .func (.param .b32 r) ff (.param .b32 a, .param .b64 b);\n"
            ".visible .entry k(.param .u64 kp, .param .align 8 .b8 kq[16])\n{\n"
            ".reg .b8 %%b<9>; .reg .b16 %%h<9>; .reg .b32 %%r<9>; .reg .b64 %%rd<9>; .reg .f32 %%f<9>;"
            ".reg .f64 %%fd<9>; .reg .pred %%p<9>; .reg .u32 %%u<9>; .reg .s32 %%s<9>; .reg .u16 %%uh<9>;"
            ".reg .s64 %%sd<9>; .reg .u64 %%ud<9>; .shared .align 16 .b8 sv[64]; .local .align 16 .b8 lv[64];"
            ".param .b32 pa; .param .b64 pb; .param .b32 pr;");
    if (sm >= 53 && isa >= 42)
        kr__text_add(to, ".reg .f16 %%fh<9>; .reg .f16x2 %%fhh<9>;");
    if (sm >= 70 && isa >= 83)
        kr__text_add(to, ".reg .b128 %%q<9>;");
    kr__text_add(to, "\nL0:\n");
}

static void frame_end(kr__text *to)
{
    kr__text_add(to, "\nL1: ret;\n}\n");
}

typedef struct judged {
    char kind, verdict;
    char *version, *target, *text, *ptx;
} judged;

static void unescape(char *text)
{
    char *to = text;
    for (const char *at = text; *at; at++)
        if (at[0] == '\\' && at[1])
            *to++ = *++at == 'n' ? '\n' : *at;
        else
            *to++ = *at;
    *to = '\0';
}

/* The rows of the table, in the file's own memory. */
static judged *judgements(char *file, size_t *ret_n)
{
    size_t n = 0, capacity = 1 << 18;
    judged *rows = calloc(capacity, sizeof *rows);
    for (char *line = file, *end; *line; line = end) {
        end = line + strcspn(line, "\n");
        if (*end)
            *end++ = '\0';
        if (*line == '#')
            continue;
        char *columns[6], *at = line;
        for (size_t i = 0; i < 6; i++)
            columns[i] = strsep(&at, "\t");
        ck_assert_msg(columns[5] && n < capacity, "%s", line);
        rows[n] = (judged){columns[0][0], columns[3][0], columns[1], columns[2], columns[4], columns[5]};
        if (rows[n].kind == 'M')
            unescape(rows[n].ptx);
        n++;
    }
    *ret_n = n;
    return rows;
}

/* The log without what it puts before each message, its last line left out: "one | two". */
static void plain_log(kr__text *to)
{
    for (const char *line = log_text(), *end; *line; line = end) {
        end = line + strcspn(line, "\n");
        const char *message = memmem(line, (size_t)(end - line), "; ", 2);
        message = message ? message + 2 : line;
        if (!strncmp(message, "error   : ", 10))
            message += 10;
        if (!memmem(line, (size_t)(end - line), "aborted due to errors", 21))
            kr__text_add(to, "%s%.*s", to->bytes ? " | " : "", (int)(end - message), message);
        end += *end == '\n';
    }
}

static void write_judged(const judged *row, kr__text *to)
{
    if (row->kind == 'I') {
        frame_begin(to, row->version, row->target);
        kr__text_add_bytes(to, row->ptx, strlen(row->ptx));
        frame_end(to);
    } else {
        kr__text_add(to, ".version %s\n.target %s\n.address_size 64\n%s", row->version, row->target,
                     row->ptx);
    }
}

START_TEST(verdicts_are_those_of_ptxas)
{
    size_t bytes, n, wrong = 0;
    char *file = data_file("judged.tsv", &bytes);
    judged *rows = judgements(file, &n);
    ck_assert(getenv("JUDGED") || n > 1500);
    for (size_t i = 0; i < n; i++) {
        kr__text ptx = {0}, said = {0};
        write_judged(&rows[i], &ptx);
        const bool accepted = parse(ptx.data);
        plain_log(&said);
        if (accepted != (rows[i].verdict == '+') ||
            (rows[i].verdict == '=' && strcmp(said.data ? said.data : "", rows[i].text))) {
            printf("%s %s: %s\n  ptxas: %c %s\n  here:  %s\n", rows[i].version, rows[i].target, rows[i].ptx,
                   rows[i].verdict, rows[i].text, said.data ? said.data : "accepted");
            wrong++;
        }
        kr__text_free(&ptx);
        kr__text_free(&said);
    }
    free(rows);
    free(file);
    done();
    ck_assert_uint_eq(wrong, 0);
}
END_TEST

static int by_target_and_ptx(const void *left, const void *right)
{
    const judged *a = left, *b = right;
    const int order = strcmp(a->target, b->target);
    return order ? order : strcmp(a->ptx, b->ptx);
}

static int isa_of(const judged *row)
{
    return (row->version[0] - '0') * 10 + (row->version[2] - '0');
}

/* What ptxas 13.0 takes earlier than those before it: needs_of_what_came_late. */
static bool came_late(const judged *row)
{
    static const char *const forms[] = {"fence.acquire.", "fence.release.", ".e2m1x2.f16x2 "};
    for (size_t i = 0; i < KR_COUNT(forms); i++)
        if (strstr(row->ptx, forms[i]))
            return true;
    return !strcmp(row->target, "sm_88");
}

/* What ptxas accepts from some .version on needs that .version. */
START_TEST(needs_are_those_of_ptxas)
{
    size_t bytes, n, n_compared = 0, wrong = 0;
    char *file = data_file("judged.tsv", &bytes);
    judged *rows = judgements(file, &n);
    qsort(rows, n, sizeof *rows, by_target_and_ptx);
    for (size_t i = 0, end; i < n; i = end) {
        const judged *accepted = NULL;
        for (end = i; end < n && !by_target_and_ptx(&rows[i], &rows[end]); end++)
            if (rows[end].verdict == '+' && (!accepted || isa_of(&rows[end]) < isa_of(accepted)))
                accepted = &rows[end];
        if (!accepted || end - i < 2 || came_late(accepted))
            continue;
        kr__text ptx = {0};
        write_judged(accepted, &ptx);
        ck_assert_msg(parse(ptx.data), "%s", log_text());
        for (const judged *row = &rows[i]; row < &rows[end]; row++) {
            const bool ok = (row->verdict == '+') == (isa_of(row) >= module->needs.isa);
            if (!ok)
                printf("%s %s: %s\n  ptxas: %c, needed: %d\n", row->version, row->target, row->ptx,
                       row->verdict, module->needs.isa);
            wrong += !ok;
            n_compared++;
        }
        kr__text_free(&ptx);
    }
    ck_assert_uint_gt(n_compared, 500);
    free(rows);
    free(file);
    done();
    ck_assert_uint_eq(wrong, 0);
}
END_TEST

/* The instructions of the module's kernel, a line each. */
static void print_kernel(kr__text *to)
{
    const ptx_function *kernel = kr__ptx_find_function(module, "k");
    ck_assert_ptr_nonnull(kernel);
    for (size_t i = 0; i + 1 < kernel->n_instrs; i++) { /* the frame's own is the last */
        kr__ptx_print_instr(kernel, &kernel->instrs[i], to);
        kr__text_add(to, "\n");
    }
}

/* Printed, what ptxas accepts is read as the same again. */
START_TEST(what_is_printed_is_read_again)
{
    size_t bytes, n, n_printed = 0;
    char *file = data_file("judged.tsv", &bytes);
    judged *rows = judgements(file, &n);
    for (size_t i = 0; i < n; i++) {
        /* a declaration, a label or a file is no instruction */
        if (rows[i].kind != 'I' || rows[i].verdict != '+' || rows[i].ptx[0] == '.' ||
            strstr(rows[i].ptx, ": ") || strstr(rows[i].ptx, " .") || strchr(rows[i].ptx, '"'))
            continue;
        kr__text ptx = {0}, once = {0}, twice = {0}, again = {0};
        frame_begin(&ptx, rows[i].version, rows[i].target);
        kr__text_add(&ptx, "%s", rows[i].ptx);
        frame_end(&ptx);
        ck_assert_msg(parse(ptx.data), "%s: %s", rows[i].ptx, log_text());
        print_kernel(&once);
        frame_begin(&again, rows[i].version, rows[i].target);
        kr__text_add(&again, "%s", once.data ? once.data : "");
        frame_end(&again);
        ck_assert_msg(parse(again.data), "%s: printed as %s: %s", rows[i].ptx, once.data, log_text());
        print_kernel(&twice);
        ck_assert_str_eq(once.data ? once.data : "", twice.data ? twice.data : "");
        n_printed += once.bytes > 0;
        kr__text_free(&ptx);
        kr__text_free(&again);
        kr__text_free(&once);
        kr__text_free(&twice);
    }
    ck_assert_uint_gt(n_printed, 1500);
    free(rows);
    free(file);
    done();
}
END_TEST

/* What ptxas says about a module; "" when it accepts it. */
static void ask(const char *ptxas, const char *target, const kr__text *ptx, char *answer, size_t bytes)
{
    char path[] = "/tmp/front_XXXXXX", command[2048];
    const int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    FILE *file = fdopen(fd, "w");
    ck_assert_uint_eq(fwrite(ptx->data, 1, ptx->bytes, file), ptx->bytes);
    fclose(file);
    kr__format(command, sizeof command, "'%s' -arch=%s -O0 -c -o /dev/null '%s' 2>&1", ptxas, target, path);
    unsetenv("MALLOC_PERTURB_"); /* meson sets it, and ptxas falls over it */
    FILE *pipe = popen(command, "r");
    ck_assert_ptr_nonnull(pipe);
    answer[fread(answer, 1, bytes - 1, pipe)] = '\0';
    if (pclose(pipe) == 0)
        answer[0] = '\0';
    else if (!answer[0])
        kr__format(answer, bytes, "ptxas failed without a word");
    remove(path);
}

/* Tensor memory is a block's or a pair's in a whole kernel; several wide accesses to it are too much for
 * ptxas. */
static bool goes_with(const char *ptx, bool of_pairs)
{
    return of_pairs == (strstr(ptx, "cta_group::2") != NULL) && !strstr(ptx, "tcgen05.ld") &&
           !strstr(ptx, "tcgen05.st") && !strstr(ptx, ".file");
}

/* What it accepted for a target, each in a block of its own. */
static void ask_again(const char *ptxas, const char *target, bool of_pairs, const judged *rows, size_t n)
{
    enum { A_MODULE = 64 }; /* a module of all is too much for ptxas */
    for (size_t i = 0; i < n;) {
        kr__text ptx = {0};
        char answer[4096];
        frame_begin(&ptx, "9.0", target);
        for (size_t k = 0; k < A_MODULE && i < n; i++)
            if (rows[i].kind == 'I' && rows[i].verdict == '+' && !strcmp(rows[i].version, "9.0") &&
                !strcmp(rows[i].target, target) && goes_with(rows[i].ptx, of_pairs)) {
                kr__text_add(&ptx, "{ %s\n}\n", rows[i].ptx);
                k++;
            }
        frame_end(&ptx);
        ck_assert_msg(parse(ptx.data), "%s", log_text());
        ask(ptxas, target, &ptx, answer, sizeof answer);
        ck_assert_str_eq(answer, "");
        kr__text_free(&ptx);
    }
}

/* The table itself, asked of the ptxas that is installed. */
START_TEST(installed_ptxas_still_says_so)
{
    const char *ptxas = getenv("PTXAS") ? getenv("PTXAS") : "/usr/local/cuda/bin/ptxas";
    if (!kr__file_exists(ptxas)) {
        printf("no ptxas: the table is not asked again\n");
        return;
    }
    static const char *const targets[] = {"sm_90", "sm_100a", "sm_110a", "sm_120a"};
    size_t bytes, n;
    char *file = data_file("judged.tsv", &bytes);
    judged *rows = judgements(file, &n);
    for (size_t i = 0; i < KR_COUNT(targets); i++)
        for (int of_pairs = 0; of_pairs < 2; of_pairs++)
            ask_again(ptxas, targets[i], of_pairs, rows, n);
    free(rows);
    free(file);
    done();
}
END_TEST

/* A million words behind one another are as many steps, not as many squared. */
START_TEST(an_endless_name)
{
    static const char begin[] = ".version 8.0 .target sm_90 .address_size 64 .entry k() { ld";
    const size_t words = 1000000, bytes = sizeof begin - 1 + 2 * words;
    char *text = malloc(bytes);
    memcpy(text, begin, sizeof begin - 1);
    for (size_t i = 0; i < words; i++)
        memcpy(text + sizeof begin - 1 + 2 * i, ".a", 2);
    ck_assert(!parse_bytes(text, bytes, 0));
    ck_assert_ptr_nonnull(strstr(problem.log.data, "Illegal modifier '.a' for instruction 'ld'"));
    free(text);
}
END_TEST

/* ---- the header: what the driver answered (driver facts) and ptxas's words ---- */

START_TEST(header)
{
    static const struct {
        const char *ptx;
        ptx_problem_kind kind;
        const char *log; /* a part of it */
    } cases[] = {
        {".version 7.0\n.target sm_75\n.address_size 64\n.visible .entry k(){ ret; }\n", PTX_PROBLEM_NONE,
         ""},
        {".version 7.0\r\n.target sm_75\r\n.address_size 64\r\n.visible .entry k(){\r\n ret;\r\n }\r\n",
         PTX_PROBLEM_NONE, ""},
        {"\n\n  /* c */ .version 7.0\n.target sm_75\n.address_size 64\n.visible .entry k(){ ret; }\n",
         PTX_PROBLEM_NONE, ""},
        {".version 7.0\n.target sm_75\n.visible .entry k(){ ret; }\n", PTX_PROBLEM_NONE, ""},
        {".version 7.0\n.target sm_75, texmode_independent\n", PTX_PROBLEM_NONE, ""},
        {"", PTX_PROBLEM_NOT_PTX, "Missing .version directive"},
        {"not ptx at all", PTX_PROBLEM_NOT_PTX, "Missing .version directive"},
        {"\xef\xbb\xbf.version 7.0\n.target sm_75\n", PTX_PROBLEM_NOT_PTX, ""},
        {".target sm_75\n.address_size 64\n.visible .entry k(){ ret; }\n", PTX_PROBLEM_NOT_PTX,
         "fatal   : Missing .version directive at start of file"},
        {"// comment\n.version 7.0\n.visible .entry k(){ ret; }\n", PTX_PROBLEM_SYNTAX,
         "Missing .target directive"},
        {".version 7.0\n.target sm_999\n", PTX_PROBLEM_TARGET,
         "line 2; fatal   : Unsupported .target 'sm_999'"},
        {".version 7.0\n.target sm_90\n", PTX_PROBLEM_TARGET,
         "PTX .version 7.0 does not support .target sm_90"},
        {".version 9.1\n.target sm_90\n", PTX_PROBLEM_VERSION,
         "line 1; fatal   : Unsupported .version 9.1; current version is '9.0'"},
        {".version 7.9\n.target sm_75\n", PTX_PROBLEM_VERSION, "Unsupported .version 7.9"},
        {".version 7\n.target sm_75\n", PTX_PROBLEM_SYNTAX, "Parsing error near '7': syntax error"},
        {".version 99999999999.9\n.target sm_75\n", PTX_PROBLEM_VERSION,
         "line 1; fatal   : Unsupported .version 99999999999.9; current version is '9.0'"},
        {".version 8.80\n.target sm_75\n", PTX_PROBLEM_VERSION, "Unsupported .version 8.80"},
        {".version 4294967303.00\n.target sm_75\n.visible .entry k(){ ret; }\n", PTX_PROBLEM_NONE, ""},
        {".version 7.0\n.target sm_75 // caf\xc3\xa9\n.visible .entry k(){ ret; }\n", PTX_PROBLEM_SYNTAX,
         "line 2; fatal   : Unexpected non-ASCII character encountered on line 2"},
        {".version 7.0\n.target sm_75\n.address_size 32\n", PTX_PROBLEM_SYNTAX,
         "32-Bit compilation is no longer supported"},
        {".version 7.0\n.target sm_75\n.address_size 48\n", PTX_PROBLEM_SYNTAX,
         "line 3; error   : Illegal value for .address_size directive (must be 32 or 64)"},
        {".version 7.0\n.target sm_75\n.address_size 64\n.visible .entry k(){ bogus.instr r1; ret; }\n",
         PTX_PROBLEM_SYNTAX,
         "ptxas application ptx input, line 4; error   : Unknown modifier '.instr'\n"
         "ptxas application ptx input, line 4; error   : Not a name of any known instruction: 'bogus'\n"
         "ptxas application ptx input, line 4; error   : Unknown symbol 'r1'\n"
         "ptxas fatal   : Ptx assembly aborted due to errors\n"},
    };
    for (size_t i = 0; i < KR_COUNT(cases); i++) {
        const bool accepted = parse(cases[i].ptx);
        ck_assert_msg(accepted == !cases[i].kind && problem.kind == cases[i].kind, "%s: %d\n%s", cases[i].ptx,
                      (int)problem.kind, log_text());
        ck_assert_msg(strstr(log_text(), cases[i].log) != NULL, "%s:\n%s", cases[i].ptx, log_text());
    }
    /* an older driver */
    const char *seven = ".version 7.8\n.target sm_75\n";
    ck_assert(!parse_bytes(seven, strlen(seven), 75));
    ck_assert_int_eq(problem.kind, PTX_PROBLEM_VERSION);
    ck_assert(strstr(log_text(), "Unsupported .version 7.8; current version is '7.5'"));
    ck_assert(parse_bytes(seven, strlen(seven), 78));
    /* 90a is a target of its own */
    ck_assert(parse(".version 8.0\n.target sm_90a\n"));
    ck_assert_int_eq(module->sm, 90);
    ck_assert_int_eq(module->suffix, 'a');
    ck_assert_str_eq(module->target, "sm_90a");
    done();
}
END_TEST

/* ---- what is read is what was written ---- */

/* Without blanks and without the +0 that nvcc writes behind parameters. */
static void squeeze(const char *from, size_t bytes, char *to)
{
    for (size_t i = 0; i < bytes; i++)
        if (bytes - i > 2 && !memcmp(from + i, "+0]", 3))
            i++;
        else if (!strchr(" \t\r", from[i]))
            *to++ = from[i];
    *to = '\0';
}

START_TEST(instructions_print_as_they_were_written)
{
    size_t bytes, n = 0;
    char *text = data_file("k75.ptx", &bytes);
    ck_assert_msg(parse_bytes(text, bytes, 0), "%s", log_text());
    for (const ptx_function *function = module->functions; function; function = function->next)
        for (size_t i = 0; i < function->n_instrs; i++) {
            const ptx_instr *instr = &function->instrs[i];
            if (instr->op == PTX_OP_CALL)
                continue; /* on several lines */
            const char *line = text;
            for (unsigned k = 1; k < instr->line; k++)
                line = strchr(line, '\n') + 1;
            char written[512], printed[512];
            kr__text print = {0};
            squeeze(line, strcspn(line, "\n"), written);
            kr__ptx_print_instr(function, instr, &print);
            squeeze(print.data, print.bytes, printed);
            ck_assert_str_eq(printed, written);
            kr__text_free(&print);
            n++;
        }
    ck_assert_uint_gt(n, 150);
    free(text);
    done();
}
END_TEST

static bool prints(const char *what)
{
    kr__text text = {0};
    const bool ok = survives_printing(module, &text);
    if (!ok)
        printf("%s\n%s\n", what, text.data ? text.data : "");
    kr__text_free(&text);
    return ok;
}

/* All that ptxas accepts in the table, and every PTX file of the tests. */
START_TEST(modules_print_as_they_were_read)
{
    size_t bytes, n, n_printed = 0, n_wrong = 0;
    char *file = data_file("judged.tsv", &bytes);
    judged *rows = judgements(file, &n);
    for (size_t i = 0; i < n; i++) {
        kr__text ptx = {0};
        write_judged(&rows[i], &ptx);
        if (parse(ptx.data)) {
            n_printed++;
            n_wrong += !prints(rows[i].ptx);
        }
        kr__text_free(&ptx);
    }
    ck_assert_uint_gt(n_printed, 700);
    free(rows);
    free(file);
    glob_t files = {0};
    const char *const folders[] = {"front/data", "vm", "fuzz/corpus/vm", "fuzz/corpus/ptx"};
    for (size_t i = 0; i < KR_COUNT(folders); i++) {
        char pattern[1024];
        kr__format(pattern, sizeof pattern, "%s/%s/*.ptx", KR_TESTS, folders[i]);
        glob(pattern, i ? GLOB_APPEND : 0, NULL, &files);
    }
    ck_assert_uint_gt(files.gl_pathc, 10);
    for (size_t i = 0; i < files.gl_pathc; i++) {
        char *text;
        ck_assert_int_eq(kr__file_read(files.gl_pathv[i], &text, &bytes, NULL), KR_OK);
        if (parse_bytes(text, bytes, 0))
            n_wrong += !prints(files.gl_pathv[i]);
        free(text);
    }
    globfree(&files);
    done();
    ck_assert_uint_eq(n_wrong, 0);
}
END_TEST

START_TEST(parameters_lie_where_the_driver_puts_them)
{
    /* offsets and sizes that a driver's cuFuncGetParamInfo gave (driver facts, fn_param_info) */
    static const unsigned args[][2] = {{0, 1}, {2, 2}, {4, 4}, {8, 8}, {16, 8}, {24, 8}},
                          sarg[][2] = {{0, 24}, {32, 16}, {48, 8}};
    size_t bytes;
    char *text = data_file("k75.ptx", &bytes);
    ck_assert(parse_bytes(text, bytes, 0));
    const ptx_function *function = kr__ptx_find_function(module, "args");
    ck_assert_ptr_nonnull(function);
    ck_assert_uint_eq(function->n_params, KR_COUNT(args));
    for (size_t i = 0; i < KR_COUNT(args); i++) {
        ck_assert_uint_eq(function->params[i]->offset, args[i][0]);
        ck_assert_uint_eq(function->params[i]->bytes, args[i][1]);
    }
    ck_assert_uint_eq(function->param_bytes, 32);
    function = kr__ptx_find_function(module, "sarg");
    for (size_t i = 0; i < KR_COUNT(sarg); i++) {
        ck_assert_uint_eq(function->params[i]->offset, sarg[i][0]);
        ck_assert_uint_eq(function->params[i]->bytes, sarg[i][1]);
    }
    ck_assert_uint_eq(kr__ptx_find_function(module, "lb256")->maxntid[0], 256);
    ck_assert_int_eq(module->isa, 90);
    free(text);
    done();
}
END_TEST

static const ptx_instr *only(const char *body)
{
    kr__text ptx = {0};
    frame_begin(&ptx, "9.0", "sm_90");
    kr__text_add(&ptx, "%s", body);
    frame_end(&ptx);
    ck_assert_msg(parse(ptx.data), "%s\n%s", body, log_text());
    kr__text_free(&ptx);
    return kr__ptx_find_function(module, "k")->instrs;
}

START_TEST(fields)
{
    const ptx_instr *instr = only("@!%p2 fma.rz.ftz.sat.f32 %f1, %f2, 0f3F800000, 1.5;");
    ck_assert_int_eq(instr->op, PTX_OP_FMA);
    ck_assert_uint_eq(instr->flags, PTX_FTZ | PTX_SAT);
    ck_assert_int_eq(instr->round, PTX_RZ);
    ck_assert_int_eq(instr->type, PTX_F32);
    ck_assert(instr->guard_negated && !strcmp(instr->guard->name, "%p2"));
    ck_assert_uint_eq(instr->n_operands, 4);
    ck_assert(instr->operands[2].is_float && instr->operands[2].float_bytes == 4 &&
              instr->operands[2].bits == 0x3f800000);
    ck_assert(instr->operands[3].is_float && instr->operands[3].bits == 0x3ff8000000000000);

    instr = only("ld.relaxed.gpu.global.v2.f64 {%fd1, _}, [%rd1+-16];");
    ck_assert(instr->order == PTX_RELAXED && instr->scope == PTX_GPU && instr->space == PTX_SPACE_GLOBAL &&
              instr->vector == 2);
    ck_assert(instr->operands[0].kind == PTX_OPERAND_VECTOR &&
              instr->operands[0].elements[1].kind == PTX_OPERAND_SINK);
    ck_assert(instr->operands[1].kind == PTX_OPERAND_ADDRESS && instr->operands[1].offset == -16);

    instr = only("setp.lo.and.u32 %p1|%p3, %r1, %r2, !%p2;");
    ck_assert(instr->compare == PTX_CMP_LO && instr->boolean == PTX_AND && instr->n_operands == 4);
    ck_assert(instr->operands[0].is_pair && instr->operands[0].n_elements == 2 && instr->operands[3].negated);

    instr = only("mul.lo.s32 %r1, %r2, -5;");
    ck_assert(instr->flags == PTX_LO && instr->operands[2].bits == -5);
    instr = only("cvt.rni.s32.f64 %r1, %fd1;");
    ck_assert(instr->type == PTX_S32 && instr->type2 == PTX_F64 && instr->round == PTX_RNI);
    instr = only("atom.acq_rel.cta.shared.cas.b32 %r1, [sv+4], %r2, %r3;");
    ck_assert(instr->sub == PTX_SUB_CAS && instr->space == PTX_SPACE_SHARED && instr->order == PTX_ACQ_REL &&
              instr->scope == PTX_CTA);
    ck_assert(!strcmp(instr->operands[1].variable->name, "sv") && instr->operands[1].offset == 4);
    instr = only("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
                 "{%f1,%f2,%f3,%f4},{%r1,%r2,%r3,%r4},{%r5,%r6},{%f1,%f2,%f3,%f4};");
    ck_assert(instr->shape[0] == 16 && instr->shape[1] == 8 && instr->shape[2] == 16 && instr->layout == 2);
    ck_assert(instr->type == PTX_F32 && instr->type2 == PTX_F16 && instr->type4 == PTX_F32);
    instr = only("bar.sync 1, 64;");
    ck_assert(instr->op == PTX_OP_BAR && instr->flags == (PTX_SYNC | PTX_ALIGNED));
    instr = only("barrier.sync 1, 64;");
    ck_assert(instr->op == PTX_OP_BAR && instr->flags == PTX_SYNC);
    instr = only("bar.warp.sync 3;");
    ck_assert(instr->op == PTX_OP_BAR && instr->flags == (PTX_SYNC | PTX_WARP));
    instr = only("vote.sync.uni.pred %p1, %p2, -1; bra.uni L1;");
    ck_assert(instr[0].flags == (PTX_SYNC | PTX_UNI_MODE) && instr[1].flags == PTX_UNI);
    instr =
        only("mov.u32 %r1, %tid.y; mov.u64 %rd1, gv+8; mov.u32 %r2, (3+4)*2-1; mov.b64 %rd1, {%r1, %r2};");
    ck_assert(instr[0].operands[1].special == PTX_TID_Y);
    ck_assert(instr[1].operands[1].kind == PTX_OPERAND_SYMBOL && instr[1].operands[1].offset == 8);
    ck_assert_int_eq(instr[2].operands[1].bits, 13);
    ck_assert(instr[3].operands[1].kind == PTX_OPERAND_VECTOR && !instr[3].operands[1].is_pair);
    instr = only("call (pr), ff, (pa, pb);");
    ck_assert(!strcmp(instr->callee->name, "ff") && instr->n_returns == 1 && instr->n_arguments == 2);
    instr = only("pt: .callprototype (.param .b32 _) _ (.param .b32 _, .param .b64 _); call (pr), %rd1, (pa, "
                 "pb), pt;");
    ck_assert(!instr->callee && instr->prototype->n_params == 2 &&
              !strcmp(instr->operands[0].reg->name, "%rd1"));
    done();
}
END_TEST

START_TEST(labels_and_blocks)
{
    const ptx_instr *instr = only("bra L1; { .reg .b32 %r1; L3: mov.u32 %r1, 1; bra L3; @%p1 bra L0; }"
                                  "ts: .branchtargets L1, L4; brx.idx %r2, ts; L4: mov.u32 %r1, 2;");
    const ptx_function *function = kr__ptx_find_function(module, "k");
    ck_assert_uint_eq(function->n_instrs, 7);
    ck_assert_uint_eq(function->labels[instr[0].operands[0].label].target, 6);
    ck_assert_uint_eq(function->labels[instr[2].operands[0].label].target, 1);
    ck_assert_uint_eq(function->labels[instr[3].operands[0].label].target, 0);
    ck_assert_uint_eq(instr[4].n_targets, 2);
    ck_assert_uint_eq(function->labels[instr[4].targets[0]].target, 6);
    ck_assert_uint_eq(function->labels[instr[4].targets[1]].target, 5);
    /* the block's own %r1 is another register than that of the function; ranges make only what is mentioned
     */
    ck_assert_ptr_ne(instr[1].operands[0].reg, instr[5].operands[0].reg);
    ck_assert_uint_eq(function->n_registers, 4);
    for (size_t i = 0; i < function->n_registers; i++)
        ck_assert_uint_eq(function->registers[i]->index, i);
    done();
}
END_TEST

START_TEST(initial_values)
{
    ck_assert_msg(
        parse(".version 7.0\n.target sm_75\n.address_size 64\n.global .align 8 .b8 a[6] = {1, 0xff, -1};\n"
              ".const .f32 f[2] = {1.5, 0fc0000000};\n.global .u16 h[2][2] = {{1}, {3, 515}};\n"
              ".func g() { ret; }\n.global .u64 p[3] = {a, generic(a)+4, g};\n.global .u32 n[] = {7, 8, 9};\n"
              ".global .f64 d = 0d3FF0000000000000;\n.extern .shared .align 16 .b8 s[];\n"),
        "%s", log_text());
    const ptx_variable *at = module->variables;
    ck_assert(at->bytes == 6 && at->alignment == 8 && !memcmp(at->initial, "\x01\xff\xff\0\0\0", 6));
    const ptx_variable *a = at;
    at = at->next;
    ck_assert(at->space == PTX_SPACE_CONST && !memcmp(at->initial, "\0\0\xc0\x3f\0\0\0\xc0", 8));
    at = at->next;
    ck_assert(at->bytes == 8 && !memcmp(at->initial, "\1\0\0\0\3\0\3\2", 8));
    at = at->next;
    const ptx_relocation *r = at->relocations;
    ck_assert(r->offset == 0 && r->variable == a && !r->generic && !r->addend);
    r = r->next;
    ck_assert(r->offset == 8 && r->variable == a && r->generic && r->addend == 4);
    r = r->next;
    ck_assert(r->offset == 16 && !r->variable && !strcmp(r->function->name, "g") && !r->next);
    at = at->next;
    ck_assert(at->bytes == 12 && at->initial[8] == 9);
    at = at->next;
    ck_assert(!memcmp(at->initial, "\0\0\0\0\0\0\xf0\x3f", 8));
    at = at->next;
    ck_assert(at->bytes == 0 && at->linkage == PTX_LINK_EXTERN && at->alignment == 16 && at->index == 6);
    done();
    /* As ptxas 13.0 writes them: what a value has no bits for is zero, below zero too. */
    ck_assert_msg(parse(".version 8.3\n.target sm_75\n.address_size 64\n.global .b128 q[2] = {5, -2};\n"),
                  "%s", log_text());
    ck_assert_mem_eq(module->variables->initial, ((uint64_t[]){5, 0, UINT64_MAX - 1, 0}), 32);
    done();
}
END_TEST

/* What ptxas 13.0 takes earlier than those before it did is accepted and needs what they said: the README's
 * table. */
START_TEST(needs_of_what_came_late)
{
    static const struct {
        const char *text;
        int isa;
    } cases[] = {
        {"fence.acquire.gpu;", 86},
        {"fence.release.cta;", 86},
        {"fence.acq_rel.gpu;", 78},
        {"ld.v8.b8 {%r1,%r2,%r3,%r4,%r5,%r6,%r7,%r8}, [%rd1];", 88},
        {"ld.v4.b8 {%r1,%r2,%r3,%r4}, [%rd1];", 78},
        {"st.async.shared::cta.mbarrier::complete_tx::bytes.b32 [%rd1], %r1, [%rd2];", 86},
        {"st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%rd1], %r1, [%rd2];", 81},
        {"red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.s64 [%rd1], %rd1, "
         "[%rd2];",
         86},
        {"red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u64 [%rd1], %rd1, "
         "[%rd2];",
         81},
        {"mapa.s32 %r1, %r2, %r3;", 85},
        {"getctarank.s32 %r1, %r2;", 85},
        {"mapa.u32 %r1, %r2, %r3;", 78},
        {"lop3.b32 _, %r1, %r2, %r3, 5;", 82},
        {"lop3.b32 %r4, %r1, %r2, %r3, 5;", 78},
    };
    for (size_t i = 0; i < KR_COUNT(cases); i++) {
        kr__text ptx = {0};
        frame_begin(&ptx, "8.2",
                    "sm_90"); /* where it is taken already; the newer need is noted all the same */
        kr__text_add(&ptx, "%s", cases[i].text);
        frame_end(&ptx);
        ck_assert_msg(parse(ptx.data), "%s: %s", cases[i].text, log_text());
        ck_assert_msg(module->needs.isa == cases[i].isa, "%s: %d", cases[i].text, module->needs.isa);
        kr__text_free(&ptx);
    }
    done();
    ck_assert(parse(".version 8.2\n.target sm_88\n.entry k() { ret; }") && module->needs.isa == 90);
    done();
}
END_TEST

START_TEST(numbers_do_not_ask_the_locale)
{
    const bool comma = setlocale(LC_ALL, "de_DE.UTF-8") != NULL;
    printf("locale with a decimal comma: %s\n", comma ? "set" : "not installed");
    const ptx_instr *instr =
        only("mov.f64 %fd1, 1.5; mov.f64 %fd1, 2.5e-3; mov.f64 %fd1, -.25; mov.u32 %r1, 0b101U;"
             "mov.u32 %r1, 017; mov.u64 %rd1, 0xFFFFFFFFFFFFFFFF; mov.u32 %r1, 7 & 12 | 1 << 4;"
             "mov.u32 %r1, 1 ? 2 : 3; mov.u32 %r1, -7 / 2; mov.u32 %r1, 2 + 3 * 4;");
    const double expected[] = {1.5, 2.5e-3, -.25};
    for (size_t i = 0; i < 3; i++)
        ck_assert(!memcmp(&instr[i].operands[1].bits, &expected[i], 8));
    const int64_t integers[] = {5, 15, -1, 20, 2, -3, 14};
    for (size_t i = 0; i < KR_COUNT(integers); i++)
        ck_assert_int_eq(instr[3 + i].operands[1].bits, integers[i]);
    setlocale(LC_ALL, "C");
    done();
}
END_TEST

/* ---- damage ---- */

static void survives(const char *text, size_t bytes)
{
    /* a copy of exactly so many bytes: reading past them is seen by the sanitizer */
    char *copy = malloc(bytes ? bytes : 1);
    memcpy(copy, text, bytes);
    if (!parse_bytes(copy, bytes, 0))
        ck_assert(problem.kind && problem.log.bytes);
    free(copy);
}

/* The exponent counts, however far behind it stands. */
START_TEST(a_million_digits)
{
    kr__text text = {0};
    kr__text_add(&text, "mov.f64 %%fd1, 1.");
    for (int i = 0; i < 1000000; i++)
        kr__text_add_bytes(&text, "3", 1);
    kr__text_add(&text, "e10;");
    const ptx_instr *instr = only(text.data);
    const double expected = 4e10 / 3;
    ck_assert(!memcmp(&instr[0].operands[1].bits, &expected, sizeof expected));
    kr__text_free(&text);
    done();
}
END_TEST

START_TEST(truncated_anywhere)
{
    size_t bytes;
    char *text = data_file("k75.ptx", &bytes);
    for (size_t n = 0; n < bytes; n++)
        survives(text, n);
    free(text);
    done();
}
END_TEST

START_TEST(bytes_changed)
{
    size_t bytes;
    char *text = data_file("k75.ptx", &bytes);
    uint32_t seed = 1;
    for (int i = 0; i < 4000; i++) {
        seed = seed * 1664525 + 1013904223;
        const size_t at = (seed >> 8) % bytes;
        const char before = text[at];
        text[at] = (char)(i % 3 ? before ^ 1 << i % 8 : "{}[]()<>;,.|@!\"%0f"[i % 18]);
        survives(text, bytes);
        text[at] = before;
    }
    free(text);
    done();
}
END_TEST

/* One thing so often that recursion or a product would fail. */
START_TEST(too_much_of_one_thing)
{
    static const char *const starts[] = {
        ".version 9.0\n.target sm_90\n.entry k() { .reg .b32 %r<9>; mov.u32 %r1, ",
        ".version 9.0\n.target sm_90\n.entry k() { ",
        ".version 9.0\n.target sm_90\n.global .u32 x[4] = ",
        ".version 9.0\n.target sm_90\n",
        ".version 9.0\n.target sm_90\n.global .b8 x",
        "",
    };
    static const char *const things[] = {"(",
                                         "{",
                                         "[",
                                         "!",
                                         "-",
                                         "~",
                                         "1?",
                                         "1+",
                                         "a|",
                                         "@",
                                         ".",
                                         ",",
                                         "[4294967296]",
                                         "9",
                                         "%",
                                         "add.s32 ",
                                         "add a;",
                                         "/*",
                                         "\"",
                                         ".func f();",
                                         "L:",
                                         "{a,",
                                         "(.s64)",
                                         "0f"};
    for (size_t i = 0; i < KR_COUNT(starts); i++)
        for (size_t k = 0; k < KR_COUNT(things); k++) {
            kr__text ptx = {0};
            kr__text_add(&ptx, "%s", starts[i]);
            for (int n = 0; n < 20000; n++)
                kr__text_add_bytes(&ptx, things[k], strlen(things[k]));
            survives(ptx.data, ptx.bytes);
            kr__text_free(&ptx);
        }
    done();
}
END_TEST

/* Files, places and labels of sections are a text's own where several are linked. */
START_TEST(linked_texts)
{
#define TEXT(name, label)                                                                    \
    ".version 9.0\n.target sm_90\n.address_size 64\n.file 1 \"a.cu\"\n.visible .entry " name \
    "() {\n.loc 1 5 6\n"                                                                     \
    ".loc 1 2 3, function_name " label ", inlined_at 1 5 6\nret; }\n.section .debug_str { L: .b8 0 }\n"
    static const char right[] = TEXT("a", "L") TEXT("b", "L"), wrong[] = TEXT("a", "M") TEXT("b", "L");
    const ptx_options linked = {.linked = true};
    done();
    ck_assert_msg(kr__ptx_parse(right, sizeof right, &linked, &module, &problem), "%s", log_text());
    done();
    ck_assert(!kr__ptx_parse(wrong, sizeof wrong, &linked, &module, &problem));
    ck_assert_ptr_nonnull(strstr(log_text(), "line 7; error   : Unresolved label 'M'"));
    done();
    ck_assert(!parse(right));
    done();
#undef TEXT
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("front");
    TCase *tests = tcase_create("front");
    tcase_set_timeout(tests, 100);
    tcase_add_test(tests, verdicts_are_those_of_ptxas);
    tcase_add_test(tests, needs_are_those_of_ptxas);
    tcase_add_test(tests, what_is_printed_is_read_again);
    tcase_add_test(tests, installed_ptxas_still_says_so);
    tcase_add_test(tests, an_endless_name);
    tcase_add_test(tests, header);
    tcase_add_test(tests, instructions_print_as_they_were_written);
    tcase_add_test(tests, modules_print_as_they_were_read);
    tcase_add_test(tests, parameters_lie_where_the_driver_puts_them);
    tcase_add_test(tests, fields);
    tcase_add_test(tests, labels_and_blocks);
    tcase_add_test(tests, initial_values);
    tcase_add_test(tests, needs_of_what_came_late);
    tcase_add_test(tests, numbers_do_not_ask_the_locale);
    tcase_add_test(tests, a_million_digits);
    tcase_add_test(tests, truncated_anywhere);
    tcase_add_test(tests, bytes_changed);
    tcase_add_test(tests, too_much_of_one_thing);
    tcase_add_test(tests, linked_texts);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
