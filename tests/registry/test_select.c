/* SPDX-License-Identifier: Apache-2.0 */

/* Choosing, as a table: a machine and what is shipped, to what is taken and why. The expectations come from
 * the CUDA programming guide's rules of compatibility and from reports of what went wrong elsewhere, not from
 * the code. */

#include <check.h>
#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "ptx/image/image.h"
#include "registry/select.h"

#define OP(variants)                                                                                      \
    "//! op t\n//! brief b\n//! source s\n//! compare exact\n//! types T = f32 f64\n//! arg n u64 size\n" \
    "//! arg x T[n] in\n" variants "//! launch elementwise n\n"

#define CUBIN(major, minor, suffix)                              \
    {                                                            \
        .kind = KR_IMAGE_CUBIN, .arch = { major, minor, suffix } \
    }
#define LTO(major, minor)                                   \
    {                                                       \
        .kind = KR_IMAGE_LTOIR, .arch = { major, minor, 0 } \
    }
#define PTX(major, minor, suffix, ptx_isa)                                     \
    {                                                                          \
        .kind = KR_IMAGE_PTX, .arch = {major, minor, suffix}, .isa = (ptx_isa) \
    }

static const char one[] = OP("//! variant v\n");
/* Later lines are preferred where their requirements hold. */
static const char levels[] =
    OP("//! variant v70 cc>=7.0\n//! variant v90 cc>=9.0\n//! variant v100 cc>=10.0\n"
       "//! variant v120 cc>=12.0\n");
static const char old_only[] = OP("//! variant plain\n//! variant old cc<8.0\n");
static const char big_shared[] = OP("//! variant plain\n//! variant big shared>=102400\n");
static const char aligned[] = OP("//! variant vec4 align=16\n");

static const char lettered[] = OP("//! variant plain\n//! variant wg cc=9.0a\n//! variant tc cc=10.0f\n");
static const char newer_driver[] = OP("//! variant plain\n//! variant tma driver>=12.4\n");

static const int nvrtc13[] = {75, 80, 86, 87, 88, 89, 90, 100, 103, 110, 120, 121};
static const int nvrtc11[] = {35, 37, 50, 52, 53, 60, 61, 62, 70, 72, 75, 80, 86, 87};

enum { NONE = 0, V13 = 13000, V11 = 11040 };

static const struct row {
    const char *what;
    const char *op;
    int major, minor;            /* the device */
    int driver;                  /* 0: the newest */
    int nvrtc;                   /* NONE, V13, V11 */
    int optin;                   /* 0: published */
    kr__image shipped[4];        /* all of variant 0 and type 0; ends at the first without a CC */
    const char *variant, *image; /* chosen; NULL: nothing can run */
    const char *reason;          /* of the one chosen, or of any refused */
} rows[] = {
    {"exactly made",
     one,
     9,
     0,
     0,
     V13,
     0,
     {CUBIN(8, 0, 0), CUBIN(9, 0, 0)},
     "v",
     "cubin sm_90",
     "exactly this device"},
    {"a before base",
     one,
     9,
     0,
     0,
     V13,
     0,
     {CUBIN(9, 0, 0), CUBIN(9, 0, 'a')},
     "v",
     "cubin sm_90a",
     "exactly"},
    {"a is for its own CC alone",
     one,
     10,
     3,
     0,
     NONE,
     0,
     {CUBIN(10, 0, 'a')},
     NULL,
     NULL,
     "does not run on 10.3"},
    {"base before family",
     one,
     10,
     0,
     0,
     NONE,
     0,
     {CUBIN(10, 0, 'f'), CUBIN(10, 0, 0)},
     "v",
     "cubin sm_100",
     "exactly"},
    {"family member", one, 10, 3, 0, NONE, 0, {CUBIN(10, 0, 'f')}, "v", "cubin sm_100f", "family of 10.0f"},
    {"family before compatible",
     one,
     10,
     3,
     0,
     NONE,
     0,
     {CUBIN(10, 0, 0), CUBIN(10, 0, 'f')},
     "v",
     "cubin sm_100f",
     ""},
    {"another family", one, 12, 0, 0, NONE, 0, {CUBIN(10, 0, 'f')}, NULL, NULL, "does not run on 12.0"},
    {"same major, lower minor", one, 8, 6, 0, NONE, 0, {CUBIN(8, 0, 0)}, "v", "cubin sm_80", "same major"},
    {"the highest of them",
     one,
     8,
     9,
     0,
     NONE,
     0,
     {CUBIN(8, 0, 0), CUBIN(8, 6, 0)},
     "v",
     "cubin sm_86",
     "same major"},
    {"compatible before NVRTC", one, 8, 6, 0, V13, 0, {CUBIN(8, 0, 0)}, "v", "cubin sm_80", ""},
    {"higher minor",
     one,
     8,
     0,
     0,
     NONE,
     0,
     {CUBIN(8, 6, 0)},
     NULL,
     NULL,
     "machine code for 8.6 does not run on 8.0"},
    {"other major",
     one,
     12,
     0,
     0,
     NONE,
     0,
     {CUBIN(8, 0, 0), CUBIN(9, 0, 'a')},
     NULL,
     NULL,
     "does not run on 12.0"},
    {"desktop code on Tegra", one, 8, 7, 0, NONE, 0, {CUBIN(8, 6, 0)}, NULL, NULL, "does not run on 8.7"},
    {"NVRTC before shipped PTX",
     one,
     9,
     0,
     0,
     V13,
     0,
     {PTX(7, 5, 0, 90)},
     "v",
     "nvrtc sm_90",
     "for exactly this device"},
    {"PTX without NVRTC",
     one,
     9,
     0,
     0,
     NONE,
     0,
     {PTX(7, 5, 0, 75), PTX(8, 0, 0, 75)},
     "v",
     "ptx compute_80",
     "the driver compiles PTX 7.5 for 8.0"},
    {"PTX for it alone first",
     one,
     9,
     0,
     0,
     NONE,
     0,
     {PTX(9, 0, 0, 80), PTX(9, 0, 'a', 80)},
     "v",
     "ptx compute_90a",
     ""},
    {"PTX for another alone",
     one,
     10,
     0,
     0,
     NONE,
     0,
     {PTX(9, 0, 'a', 80)},
     NULL,
     NULL,
     "for that device alone, not for 10.0"},
    {"PTX for its family", one, 12, 1, 0, NONE, 0, {PTX(12, 0, 'f', 88)}, "v", "ptx compute_120f", ""},
    {"PTX above the device",
     one,
     8,
     0,
     0,
     NONE,
     0,
     {PTX(9, 0, 0, 80)},
     NULL,
     NULL,
     "PTX for 9.0 is above the device's 8.0"},
    {"PTX newer than the driver",
     one,
     9,
     0,
     12040,
     NONE,
     0,
     {PTX(9, 0, 0, 90)},
     "v",
     "ptx compute_90",
     "PTX 9.0 for 9.0 is releveled to 8.4 for the driver (CUDA 12.4)"},
    {"the older PTX instead",
     one,
     9,
     0,
     12040,
     NONE,
     0,
     {PTX(9, 0, 0, 90), PTX(7, 5, 0, 84)},
     "v",
     "ptx compute_75",
     ""},
    {"NVRTC of a newer major than the driver",
     one,
     9,
     0,
     12040,
     V13,
     0,
     {{0}},
     "v",
     "nvrtc compute_90",
     "NVRTC's PTX 9.0 for 9.0 is releveled to 8.4 for the driver (CUDA 12.4)"},
    {"... shipped PTX first", one, 9, 0, 12040, V13, 0, {PTX(9, 0, 0, 90)}, "v", "ptx compute_90", ""},
    {"NVRTC of the driver's major", one, 9, 0, 13000, V13, 0, {PTX(9, 0, 0, 90)}, "v", "nvrtc sm_90", ""},
    {"device newer than NVRTC",
     one,
     13,
     0,
     0,
     V13,
     0,
     {{0}},
     "v",
     "nvrtc compute_121",
     "does not know 13.0; the driver compiles its PTX for 12.1"},
    {"... its shipped PTX first", one, 13, 0, 0, V13, 0, {PTX(7, 5, 0, 75)}, "v", "ptx compute_75", ""},
    {"... and an older driver",
     one,
     13,
     0,
     12080,
     V13,
     0,
     {{0}},
     "v",
     "nvrtc compute_121",
     "NVRTC's PTX 9.0 for 12.1 is releveled to 8.7 for the driver (CUDA 12.8)"},
    {"between two that NVRTC knows",
     one,
     8,
     9,
     0,
     V11,
     0,
     {{0}},
     "v",
     "nvrtc compute_87",
     "NVRTC 11.4 does not know 8.9"},
    {"device older than NVRTC",
     one,
     7,
     0,
     0,
     V13,
     0,
     {{0}},
     NULL,
     NULL,
     "the device is 7.0; NVRTC 13.0 begins at 7.5"},
    {"... with a shipped cubin", one, 7, 0, 0, V13, 0, {CUBIN(7, 0, 0)}, "v", "cubin sm_70", ""},
    {"no NVRTC and nothing shipped", one, 9, 0, 0, NONE, 0, {{0}}, NULL, NULL, "there is no NVRTC"},
    {"CCs are numbers: 8.6", levels, 8, 6, 0, V13, 0, {{0}}, "v70", "nvrtc sm_86", ""},
    {"CCs are numbers: 10.0", levels, 10, 0, 0, V13, 0, {{0}}, "v100", "nvrtc sm_100", ""},
    {"CCs are numbers: 12.0", levels, 12, 0, 0, V13, 0, {{0}}, "v120", "nvrtc sm_120", ""},
    {"requirement unmet", levels, 7, 5, 0, NONE, 0, {{0}}, NULL, NULL, "needs cc>=12.0; the device is 7.5"},
    {"too new for a variant", old_only, 8, 0, 0, V13, 0, {{0}}, "plain", "nvrtc sm_80", ""},
    {"old enough for a variant", old_only, 7, 5, 0, V13, 0, {{0}}, "old", "nvrtc sm_75", ""},
    {"published shared memory is enough", big_shared, 9, 0, 0, V13, 0, {{0}}, "big", "nvrtc sm_90", ""},
    {"published shared memory is not", big_shared, 8, 6, 0, V13, 0, {{0}}, "plain", "nvrtc sm_86", ""},
    {"the device's own word counts", big_shared, 9, 0, 0, V13, 49152, {{0}}, "plain", "nvrtc sm_90", ""},
    {"alignment is said",
     aligned,
     9,
     0,
     0,
     V13,
     0,
     {{0}},
     "vec4",
     "nvrtc sm_90",
     "where every buffer is aligned to 16 bytes"},
};

static kr_machine machine_of(const struct row *row)
{
    kr_machine machine = {.cc = {row->major, row->minor, 0},
                          .driver_version = row->driver,
                          .nvrtc_version = row->nvrtc,
                          .shared_bytes_per_block_optin = row->optin};
    machine.nvrtc_archs = row->nvrtc == V13 ? nvrtc13 : nvrtc11;
    machine.n_nvrtc_archs = row->nvrtc == V13 ? KR_COUNT(nvrtc13) : row->nvrtc == V11 ? KR_COUNT(nvrtc11) : 0;
    return machine;
}

static kr__op_def *parsed(const char *text)
{
    kr_error err;
    kr__op_def *def = NULL;
    ck_assert_msg(!kr__op_parse("t.cu", text, strlen(text), &def, &err), "%s", err.message);
    return def;
}

static const kr__candidate *chosen_of(const kr__selection *s)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->list[i].usable)
            return &s->list[i];
    return NULL;
}

static bool some_refusal_says(const kr__selection *s, const char *reason)
{
    for (size_t i = 0; i < s->n; i++)
        if (!s->list[i].usable && strstr(s->list[i].reason, reason))
            return true;
    return false;
}

/* What the selection's candidates point to lives until the next one. */
static kr__shipped *shipped;

static kr__selection *selected(const kr__op_def *def, const kr_machine *machine, const kr__policy *policy,
                               const kr__image *images, size_t n_images)
{
    static const kr__policy none;
    kr_error err;
    kr__selection *s = NULL;
    kr__question q = {.def = def, .machine = machine, .policy = policy ? policy : &none, .variant = SIZE_MAX};
    free(shipped);
    ck_assert_msg(!kr__shipped_list(images, n_images, &shipped, &q.n_images, &err), "%s", err.message);
    q.images = shipped;
    ck_assert_msg(!kr__select(&q, &s, &err), "%s", err.message);
    return s;
}

START_TEST(the_best_is_taken)
{
    const struct row *row = &rows[_i];
    kr__op_def *def = parsed(row->op);
    const kr_machine machine = machine_of(row);
    size_t n = 0;
    while (n < KR_COUNT(row->shipped) && row->shipped[n].arch.major)
        n++;
    kr__selection *s = selected(def, &machine, NULL, row->shipped, n);
    const kr__candidate *c = chosen_of(s);
    char image[64];
    if (!row->variant) {
        ck_assert_msg(!c, "%s: %s is taken", row->what, kr__candidate_image(c, image));
        ck_assert_msg(some_refusal_says(s, row->reason), "%s: no refusal says \"%s\"", row->what,
                      row->reason);
    } else {
        ck_assert_msg(c != NULL, "%s: nothing is taken", row->what);
        ck_assert_msg(!strcmp(def->op.variants[c->variant].name, row->variant), "%s: variant %s", row->what,
                      def->op.variants[c->variant].name);
        ck_assert_msg(!strcmp(kr__candidate_image(c, image), row->image), "%s: %s", row->what, image);
        ck_assert_msg(strstr(c->reason, row->reason), "%s: %s", row->what, c->reason);
    }
    for (size_t i = 0; i < s->n; i++) {
        ck_assert_msg(s->list[i].reason[0], "%s: a choice without a reason", row->what);
        ck_assert_int_eq(s->list[i].usable, strcmp(s->list[i].how, "none") != 0);
    }
    free(s);
    kr__op_free(&def);
}
END_TEST

/* ---- lettered targets, drivers, other kinds; what the environment takes away ---- */

#define FORCED .policy.jit_forced = "CUDA_FORCE_PTX_JIT"
#define DISABLED .policy.jit_disabled = "CUDA_DISABLE_JIT"
#define MOST(major, minor) .policy.max_cc = {major, minor, 0}

static const struct further {
    const char *what, *op;
    int major, minor, driver, nvrtc;
    kr__policy policy;
    size_t asked; /* variant + 1 */
    kr__image shipped[4];
    const char *variant, *image, *reason; /* as in the rows above */
    const char *refusal;                  /* which some refusal says, or NULL */
} further[] = {
    {"a lettered variant", lettered, 9, 0, .nvrtc = V13, .variant = "wg", .image = "nvrtc sm_90a",
     .reason = "NVRTC 13.0 compiles for 9.0a", .refusal = "needs cc=10.0f; the device is 9.0"},
    {"... is for its own alone", lettered, 8, 9, .nvrtc = V13, .variant = "plain", .image = "nvrtc sm_89",
     .refusal = "needs cc=9.0a; the device is 8.9"},
    {"a family's variant", lettered, 10, 3, .nvrtc = V13, .variant = "tc", .image = "nvrtc sm_100f"},
    {"... not in another family", lettered, 12, 0, .nvrtc = V13, .variant = "plain", .image = "nvrtc sm_120"},
    {"NVRTC before the letter", lettered, 9, 0, .nvrtc = 11080, .variant = "plain", .image = "nvrtc sm_90",
     .refusal = "NVRTC 11.8 does not know 9.0a"},
    {"NVRTC with 'a' alone", lettered, 10, 0, .nvrtc = 12080, .variant = "plain", .image = "nvrtc sm_100",
     .refusal = "NVRTC 12.8 does not know 10.0f"},
    {"a driver that is new enough", newer_driver, 9, 0, 12040, 12080, .variant = "tma",
     .image = "nvrtc sm_90"},
    {"... and one that is not", newer_driver, 9, 0, 12020, 12080, .variant = "plain", .image = "nvrtc sm_90",
     .refusal = "needs driver>=12.4; the driver is CUDA 12.2"},
    {"LTO-IR is refused by name", one, 9, 0, .shipped = {LTO(9, 0)}, .refusal = "LTO-IR is not loaded"},

    {"forced: PTX before machine code", one, 9, 0, .nvrtc = V13, FORCED,
     .shipped = {CUBIN(9, 0, 0), PTX(8, 0, 0, 75)}, .variant = "v", .image = "ptx compute_80",
     .refusal = "CUDA_FORCE_PTX_JIT is set: machine code is passed over"},
    {"forced: NVRTC's PTX", one, 9, 0, .nvrtc = V13, FORCED, .shipped = {CUBIN(9, 0, 0)}, .variant = "v",
     .image = "nvrtc compute_90",
     .reason = "CUDA_FORCE_PTX_JIT is set: the driver compiles NVRTC's PTX for 9.0"},
    {"forced: ... that the driver must read", one, 9, 0, 12040, V13, FORCED, .variant = "v",
     .image = "nvrtc compute_90", .reason = "NVRTC's PTX 9.0 for 9.0 is releveled to 8.4"},
    {"forced without PTX", one, 9, 0, FORCED, .shipped = {CUBIN(9, 0, 0)},
     .refusal = "CUDA_FORCE_PTX_JIT is set"},
    {"disabled: machine code alone", one, 8, 6, DISABLED, .shipped = {CUBIN(8, 0, 0), PTX(8, 6, 0, 75)},
     .variant = "v", .image = "cubin sm_80",
     .refusal = "CUDA_DISABLE_JIT is set: the driver compiles no PTX"},
    {"disabled: NVRTC's machine code", one, 9, 0, .nvrtc = V13, DISABLED, .shipped = {PTX(8, 0, 0, 75)},
     .variant = "v", .image = "nvrtc sm_90"},
    {"disabled: not NVRTC's PTX", one, 13, 0, .nvrtc = V13, DISABLED, .refusal = "CUDA_DISABLE_JIT is set"},
    {"both", one, 9, 0, .nvrtc = V13, FORCED, DISABLED, .shipped = {CUBIN(9, 0, 0), PTX(9, 0, 0, 75)},
     .refusal = "CUDA_DISABLE_JIT is set"},

    {"at most: variants", levels, 12, 0, .nvrtc = V13, MOST(9, 0), .variant = "v90",
     .image = "nvrtc compute_90",
     .reason = "KREGISTRY_MAX_CC is set: the driver compiles NVRTC's PTX for 9.0",
     .refusal = "needs 10.0; KREGISTRY_MAX_CC is 9.0"},
    {"at most: lettered variants", lettered, 9, 0, .nvrtc = V13, MOST(8, 9), .variant = "plain",
     .image = "nvrtc compute_89", .refusal = "needs 9.0a; KREGISTRY_MAX_CC is 8.9"},
    {"at most: images", one, 8, 9, MOST(8, 6), .shipped = {CUBIN(8, 9, 0), CUBIN(8, 6, 0), CUBIN(8, 0, 0)},
     .variant = "v", .image = "cubin sm_86", .refusal = "KREGISTRY_MAX_CC is 8.6"},
    {"at most: adds nothing", old_only, 8, 0, .nvrtc = V13, MOST(7, 5), .variant = "plain",
     .image = "nvrtc compute_75", .refusal = "needs cc<8.0; the device is 8.0"},
    {"at most: the device has less", one, 8, 0, .nvrtc = V13, MOST(9, 0), .variant = "v",
     .image = "nvrtc sm_80", .reason = "exactly this device"},
    {"at most: below NVRTC", one, 9, 0, .nvrtc = V13, MOST(7, 0),
     .refusal = "KREGISTRY_MAX_CC is 7.0; NVRTC 13.0 begins at 7.5"},
    {"a variant that is asked for", levels, 12, 0, .nvrtc = V13, .asked = 2, .variant = "v90",
     .image = "nvrtc sm_120", .refusal = "KREGISTRY_VARIANT asks for v90"},
};

START_TEST(the_rest_of_the_rule)
{
    const struct further *row = &further[_i];
    kr_error err;
    kr__op_def *def = parsed(row->op);
    kr_machine machine = {.cc = {row->major, row->minor, 0},
                          .driver_version = row->driver,
                          .nvrtc_archs = nvrtc13,
                          .n_nvrtc_archs = row->nvrtc ? KR_COUNT(nvrtc13) : 0,
                          .nvrtc_version = row->nvrtc};
    size_t n = 0;
    while (n < KR_COUNT(row->shipped) && row->shipped[n].arch.major)
        n++;
    kr__question q = {.def = def,
                      .machine = &machine,
                      .policy = &row->policy,
                      .variant = row->asked ? row->asked - 1 : SIZE_MAX};
    kr__shipped *images = NULL;
    kr__selection *s;
    ck_assert(!kr__shipped_list(row->shipped, n, &images, &q.n_images, &err));
    q.images = images;
    ck_assert(!kr__select(&q, &s, &err));
    const kr__candidate *c = chosen_of(s);
    char image[64];
    ck_assert_msg(!c == !row->variant, "%s: %s is taken", row->what,
                  c ? kr__candidate_image(c, image) : "nothing");
    if (c) {
        ck_assert_msg(!strcmp(def->op.variants[c->variant].name, row->variant), "%s: variant %s", row->what,
                      def->op.variants[c->variant].name);
        ck_assert_msg(!strcmp(kr__candidate_image(c, image), row->image), "%s: %s", row->what, image);
        ck_assert_msg(strstr(c->reason, row->reason ? row->reason : ""), "%s: %s", row->what, c->reason);
    }
    ck_assert_msg(!row->refusal || some_refusal_says(s, row->refusal), "%s: no refusal says \"%s\"",
                  row->what, row->refusal);
    for (size_t i = 0; i < s->n; i++)
        ck_assert_msg(!s->list[i].variable || strstr(s->list[i].reason, s->list[i].variable), "%s: %s",
                      row->what, s->list[i].reason);
    free(s);
    free(images);
    kr__op_free(&def);
}
END_TEST

/* A fatbin's entries are judged one by one; a damaged one is no list of images. */
START_TEST(fatbins_are_opened)
{
    char cubin[64] = "\x7f"
                     "ELF";
    const char ptx[] = ".version 7.5\n.target sm_80\n.address_size 64\n";
    const kr__fatbin_part parts[] = {{KR_IMAGE_CUBIN, {8, 0, 0}, 0, cubin, sizeof cubin},
                                     {KR_IMAGE_CUBIN, {9, 0, 'a'}, 0, cubin, sizeof cubin},
                                     {KR_IMAGE_PTX, {8, 0, 0}, 75, ptx, sizeof ptx}};
    static const struct {
        int major, minor;
        const char *image;
    } wanted[] = {{8, 6, "cubin sm_80"}, {9, 0, "cubin sm_90a"}, {10, 0, "ptx compute_80"}, {7, 5, NULL}};
    kr_error err;
    void *bytes;
    size_t n_bytes;
    ck_assert(!kr__fatbin_write(parts, KR_COUNT(parts), &bytes, &n_bytes, &err));
    kr__image image = {.kind = KR_IMAGE_FATBIN, .stored = {.bytes = bytes, .n_bytes = n_bytes}};
    kr__op_def *def = parsed(one);
    for (size_t i = 0; i < KR_COUNT(wanted); i++) {
        const kr_machine machine = {.cc = {wanted[i].major, wanted[i].minor, 0}};
        kr__selection *s = selected(def, &machine, NULL, &image, 1);
        const kr__candidate *c = chosen_of(s);
        char text[64];
        ck_assert_uint_eq(s->n, 4);
        ck_assert_msg(!c == !wanted[i].image &&
                          (!c || !strcmp(kr__candidate_image(c, text), wanted[i].image)),
                      "%d.%d: %s", wanted[i].major, wanted[i].minor, c ? text : "nothing");
        free(s);
    }
    kr__shipped *list = NULL;
    size_t n;
    image.stored.n_bytes -= 8;
    ck_assert_int_eq(kr__shipped_list(&image, 1, &list, &n, &err), KR_CORRUPT);
    ck_assert_ptr_null(list);
    free(bytes);
    kr__op_free(&def);
}
END_TEST

/* What NVRTC makes for a device that it knows carries its PTX too, so that it runs where no machine code
 * does. */
START_TEST(nvrtc_makes_both_for_a_device_it_knows)
{
    kr__op_def *def = parsed(one);
    const kr_machine machine = {.cc = {9, 0, 0}, .nvrtc_archs = nvrtc13, .n_nvrtc_archs = KR_COUNT(nvrtc13)};
    kr__selection *s = selected(def, &machine, NULL, NULL, 0);
    ck_assert_uint_eq(s->n, 1);
    ck_assert_int_eq(s->list[0].kind, KR_IMAGE_FATBIN);
    free(s);
    kr__op_free(&def);
}
END_TEST

START_TEST(images_of_other_types_and_variants_do_not_count)
{
    kr__op_def *def = parsed(levels);
    const kr_machine machine = {.cc = {9, 0, 0}};
    const kr__image images[] = {{.type = 1, .kind = KR_IMAGE_CUBIN, .arch = {9, 0, 0}},
                                {.variant = 3, .kind = KR_IMAGE_CUBIN, .arch = {9, 0, 0}},
                                {.kind = KR_IMAGE_CUBIN, .arch = {9, 0, 0}}};
    kr__selection *s = selected(def, &machine, NULL, images, KR_COUNT(images));
    const kr__candidate *c = chosen_of(s);
    ck_assert_ptr_nonnull(c);
    ck_assert_ptr_eq(c->shipped->image, &images[2]);
    free(s);
    kr__op_free(&def);
}
END_TEST

/* A cubin for sm_90 without kernels, made by the toolkit of that number. */
typedef struct empty_cubin {
    Elf64_Ehdr header;
    Elf64_Shdr sections[2];
} empty_cubin;

static kr__image cubin_of(unsigned toolkit, empty_cubin *cubin)
{
    *cubin = (empty_cubin){.header = {.e_ident = ELFMAG "\2\1\1\x33\7",
                                      .e_type = ET_EXEC,
                                      .e_machine = 190,
                                      .e_version = toolkit,
                                      .e_flags = 0x5a055a,
                                      .e_shoff = sizeof cubin->header,
                                      .e_shentsize = sizeof cubin->sections[0],
                                      .e_shnum = 2},
                           .sections[1] = {.sh_type = SHT_SYMTAB, .sh_link = 1}};
    return (kr__image){.kind = KR_IMAGE_CUBIN,
                       .arch = {9, 0, 0},
                       .stored = {.bytes = (const char *)cubin, .n_bytes = sizeof *cubin}};
}

/* Which drivers take which machine code: NVIDIA's CUDA compatibility guide, table 1 (from CUDA 11 on those of
 * the same major and later); that 470.182 (11.4) refuses what ptxas 12.3 made: triton-lang/triton#2971. */
static const struct age {
    unsigned toolkit; /* as a cubin says it */
    int driver;
    bool taken;
    const char *refusal;
} ages[] = {
    {130, 13000, true, NULL},
    {131, 13000, true, NULL},
    {123, 12000, true, NULL},
    {118, 11000, true, NULL},
    {118, 13000, true, NULL},
    {102, 10020, true, NULL},
    {130, 0, true, NULL},   /* any driver */
    {1, 12040, true, NULL}, /* it does not say */
    {131, 12090, false, "CUDA 13.1 is for drivers of CUDA 13.0 or later; this one is of 12.9"},
    {123, 11040, false, "CUDA 12.3 is for drivers of CUDA 12.0 or later; this one is of 11.4"},
    {102, 10010, false, "CUDA 10.2 is for drivers of CUDA 10.2 or later; this one is of 10.1"},
};

START_TEST(machine_code_is_not_for_drivers_of_an_older_major)
{
    const struct age *row = &ages[_i];
    kr__op_def *def = parsed(one);
    const kr_machine machine = {.cc = {9, 0, 0}, .driver_version = row->driver};
    empty_cubin cubin;
    char image[64];
    const kr__image images[] = {cubin_of(row->toolkit, &cubin), PTX(7, 5, 0, 63)};
    kr__selection *s = selected(def, &machine, NULL, images, 2);
    ck_assert_str_eq(kr__candidate_image(chosen_of(s), image), row->taken ? "cubin sm_90" : "ptx compute_75");
    ck_assert_msg(!row->refusal || some_refusal_says(s, row->refusal), "no refusal says \"%s\"",
                  row->refusal);
    free(s);
    s = selected(def, &machine, NULL, images, 1);
    ck_assert(!chosen_of(s) == !row->taken);
    for (size_t i = 0; i < s->n && !row->taken; i++)
        ck_assert_int_eq(s->list[i].needs_driver, !s->list[i].shipped  ? 0
                                                  : row->toolkit < 110 ? 10020
                                                                       : (int)row->toolkit / 10 * 1000);
    free(s);
    kr__op_free(&def);
}
END_TEST

/* Of one major the machine code comes first, and its PTX after it: what executes PTX alone reads no newer
 * one. */
START_TEST(an_older_driver_of_the_same_major_has_the_ptx_too)
{
    kr__op_def *def = parsed(one);
    const kr_machine machine = {.cc = {8, 0, 0},
                                .driver_version = 11040,
                                .nvrtc_archs = nvrtc11,
                                .n_nvrtc_archs = KR_COUNT(nvrtc11),
                                .nvrtc_version = 11080};
    char image[64];
    kr__selection *s = selected(def, &machine, NULL, NULL, 0);
    ck_assert_uint_eq(s->n, 2);
    ck_assert_str_eq(kr__candidate_image(&s->list[0], image), "nvrtc sm_80");
    ck_assert_str_eq(kr__candidate_image(&s->list[1], image), "nvrtc compute_80");
    ck_assert(s->list[1].usable && strstr(s->list[1].reason, "NVRTC's PTX 7.8 for 8.0 is releveled to 7.4"));
    free(s);
    kr__op_free(&def);
}
END_TEST

/* The text is asked, not its header: bulk copies are of 8.0, and nothing before says them. */
START_TEST(newer_ptx_is_asked_what_it_needs)
{
    static const char text[] = ".version 9.0\n.target sm_90\n.address_size 64\n.entry k()\n{\n"
                               "cp.async.bulk.commit_group;\nret;\n}\n";
    const kr__image image = {.kind = KR_IMAGE_PTX,
                             .arch = {9, 0, 0},
                             .isa = 90,
                             .stored = {.bytes = text, .n_bytes = sizeof text}};
    const int drivers[] = {12000, 11080};
    kr__op_def *def = parsed(one);
    for (size_t i = 0; i < KR_COUNT(drivers); i++) {
        const kr_machine machine = {.cc = {9, 0, 0}, .driver_version = drivers[i]};
        kr__selection *s = selected(def, &machine, NULL, &image, 1);
        ck_assert(s->list[0].usable); /* choosing does not read it */
        const kr__question question = {.def = def, .machine = &machine};
        kr__selection_look(&question, s);
        ck_assert_int_eq(s->list[0].usable, i == 0);
        ck_assert_msg(
            strstr(s->list[0].reason, i ? "line 6, \"cp.async.bulk.commit_group;\", cannot be said in PTX 7.8"
                                        : "releveled to 8.0"),
            "%s", s->list[0].reason);
        free(s);
    }
    kr__op_free(&def);
}
END_TEST

/* However many there are, each is told of. */
START_TEST(no_image_is_dropped)
{
    kr__op_def *def = parsed(levels);
    const kr_machine machine = {.cc = {13, 0, 0}};
    kr__image images[400];
    for (size_t i = 0; i < KR_COUNT(images); i++)
        images[i] =
            (kr__image){.variant = i % 4, .kind = KR_IMAGE_PTX, .arch = {5 + (int)i % 5, 0, 0}, .isa = 60};
    kr__selection *s = selected(def, &machine, NULL, images, KR_COUNT(images));
    ck_assert_uint_eq(s->n, KR_COUNT(images) + def->op.n_variants);
    free(s);
    kr__op_free(&def);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("select");
    TCase *c = tcase_create("select");
    tcase_add_loop_test(c, the_best_is_taken, 0, (int)KR_COUNT(rows));
    tcase_add_loop_test(c, the_rest_of_the_rule, 0, (int)KR_COUNT(further));
    tcase_add_test(c, fatbins_are_opened);
    tcase_add_test(c, nvrtc_makes_both_for_a_device_it_knows);
    tcase_add_test(c, images_of_other_types_and_variants_do_not_count);
    tcase_add_loop_test(c, machine_code_is_not_for_drivers_of_an_older_major, 0, (int)KR_COUNT(ages));
    tcase_add_test(c, an_older_driver_of_the_same_major_has_the_ptx_too);
    tcase_add_test(c, newer_ptx_is_asked_what_it_needs);
    tcase_add_test(c, no_image_is_dropped);
    suite_add_tcase(suite, c);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
