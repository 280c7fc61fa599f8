/* SPDX-License-Identifier: Apache-2.0 */
#include <kregistry/cc.h>

#include <stdio.h>
#include <string.h>

#include "runtime/base/base.h"

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Digits as a number; more than `most` digits, or none, are refused. Moves *text past them. */
static bool read_number(const char **text, int most, int *ret)
{
    int n = 0, digits = 0;
    for (; is_digit((*text)[digits]); digits++) {
        if (digits == most)
            return false;
        n = n * 10 + ((*text)[digits] - '0');
    }
    if (digits == 0)
        return false;
    *text += digits;
    *ret = n;
    return true;
}

static bool read_cc(const char *text, kr_cc *ret)
{
    static const char *const prefixes[] = {"sm_", "compute_", "lto_"};
    bool prefixed = false;
    for (size_t i = 0; i < KR_COUNT(prefixes) && !prefixed; i++) {
        const size_t n = strlen(prefixes[i]);
        prefixed = strncmp(text, prefixes[i], n) == 0;
        text += prefixed ? n : 0;
    }
    kr_cc cc = {0};
    int number;
    if (*text == '0' || !read_number(&text, 3, &number))
        return false;
    if (!prefixed && *text == '.') {
        text++;
        cc.major = number;
        if (cc.major > 99 || !read_number(&text, 1, &cc.minor))
            return false;
    } else {
        cc.major = number / 10;
        cc.minor = number % 10;
    }
    if (*text == 'a' || *text == 'f')
        cc.suffix = *text++;
    if (*text != '\0' || cc.major == 0)
        return false; /* "9" is no CC: it would be 0.9 */
    *ret = cc;
    return true;
}

kr_status kr_cc_parse(const char *text, kr_cc *ret_cc, kr_error *err)
{
    KR_REQUIRE(err, text, ret_cc);
    if (read_cc(text, ret_cc))
        return KR_OK;
    KR_FAIL(err, KR_INVALID_ARGUMENT, "\"%.40s\" is not a compute capability", text);
    kr__error_advice(err, "Write it as sm_90a, compute_100f, 90 or 9.0.");
    return KR_INVALID_ARGUMENT;
}

char *kr_cc_format(kr_cc cc, char text[KR_CC_TEXT_BYTES])
{
    if (text)
        snprintf(text, KR_CC_TEXT_BYTES, "%d.%d%.1s", cc.major, cc.minor, cc.suffix ? &cc.suffix : "");
    return text;
}

int kr_cc_compare(kr_cc a, kr_cc b)
{
    return a.major != b.major ? a.major - b.major : a.minor - b.minor;
}

/* The families of 'f' targets: the target and the devices that run it (PTX ISA, .target). A pair that is not
 * here does not match. 10.1 is the name that 11.0 had before CUDA 13. */
static const struct {
    int target, device;
} families[] = {
    {100, 100}, {100, 103}, {103, 103}, {101, 101}, {101, 110},
    {110, 110}, {120, 120}, {120, 121}, {121, 121},
};

static int number_of(kr_cc cc)
{
    return cc.major * 10 + cc.minor;
}

static bool in_family(kr_cc target, kr_cc device)
{
    for (size_t i = 0; i < KR_COUNT(families); i++)
        if (families[i].target == number_of(target) && families[i].device == number_of(device))
            return true;
    return false;
}

/* Integrated parts share no machine code with others of their major (CUDA programming guide, binary
 * compatibility). */
static bool is_tegra(kr_cc cc)
{
    static const int tegra[] = {53, 62, 72, 87, 101, 110};
    for (size_t i = 0; i < KR_COUNT(tegra); i++)
        if (tegra[i] == number_of(cc))
            return true;
    return false;
}

bool kr_cc_cubin_runs_on(kr_cc target, kr_cc device)
{
    if (target.suffix == 'a' || (!target.suffix && (is_tegra(target) || is_tegra(device))))
        return kr_cc_compare(target, device) == 0;
    if (target.suffix == 'f')
        return target.major == device.major && in_family(target, device);
    return target.major == device.major && target.minor <= device.minor;
}

bool kr_cc_ptx_runs_on(kr_cc target, kr_cc device)
{
    const bool renamed = number_of(target) == 101 && number_of(device) == 110;
    if (target.suffix == 'a')
        return renamed || kr_cc_compare(target, device) == 0;
    if (target.suffix == 'f')
        return in_family(target, device);
    return kr_cc_compare(target, device) <= 0;
}
