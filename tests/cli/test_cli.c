/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The command's contract: exit codes, promised JSON keys, one clear message for each thing that goes wrong.
 * KREGISTRY_TEST_COMMAND names the command, KREGISTRY_TEST_OPS the folder of ops beside this file. Rows
 * marked SOFTCUDA run on it, rows marked NVRTC compile, rows marked IMAGES run the library's own ops; they
 * are left out where there is none.
 */

#include <check.h>
#include <errno.h>
#include <jansson.h>
#include <kregistry/compile.h>
#include <kregistry/registry.h>
#include <kregistry/runtime.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    SOFTCUDA = 1,
    NVRTC = 2,
    SHIPPED = 4,   /* images, in the library */
    IMAGES = 8,    /* of the library's ops: shipped, or by NVRTC */
    NVRTC_12 = 16, /* or later */
};

#define NO_DRIVER "--driver /no/such/libcuda.so.1 "
#define SOFT "--driver softcuda "
#define PACK "OPS/../../registry/packs/v1.pack" /* of scale.cu and invert.cu beside it */
#define HOSTS "OPS/../../fuzz/corpus/inspect/"

typedef struct row {
    const char *words; /* OPS stands for the folder, TMP for a folder to write to */
    int code;
    const char *says; /* a part of standard output, or of standard error where code is not 0 */
    int needs;
} row;

static const row rows[] = {
    /* help and usage */
    {"--help", 0, "kregistry COMMAND", 0},
    {"run --help", 0, "kregistry run OP", 0},
    {"", 2, NULL, 0},
    {"lst", 2, "Did you mean \"list\"?", 0},
    {"list --jsn", 2, "Did you mean --json?", 0},
    {"frob", 2, "There is list, devices, ", 0}, /* no suggestion where nothing is near */
    {"list --bogus", 2, "--help` lists the options.", 0},
    {"--json", 2, NULL, 0},
    {"list --js", 2, "unknown option --js", 0}, /* no abbreviations */
    {"list --json=x", 2, "--json takes no value", 0},
    {"list --color nevver", 2, "Did you mean \"never\"?", 0},
    {"list --color maybe", 2, "--color", 0},
    {"run", 2, "needs OP", 0},
    {"run a b", 2, "one word too many", 0},
    {"run saxpy --n", 2, "needs a value", 0},
    {"version", 0, "kregistry 0.1.0", 0},
    {"--version", 0, "kregistry 0.1.0", 0},
    {NO_DRIVER "version", 0, "driver none", 0},
    {"completion bash", 0, "complete -F _kregistry kregistry", 0},
    {"completion zsh", 0, "compdef kregistry", 0},
    {"completion fish", 0, "complete -c kregistry", 0},
    {"completion tcsh", 2, "unknown shell", 0},
    /* without a driver */
    {NO_DRIVER "list saxpy", 0, "y[i] = a * x[i] + y[i]", 0},
    {"list saxpi", 2, "Did you mean \"saxpy\"?", 0},
    {"list 'zz*'", 2, "no op matches", 0},
    {"list --ops OPS/../bad", 2, "bad.cu:4:", 0},
    {"list --ops OPS/none", 2, "OPS/none", 0},
    {NO_DRIVER "devices", 0, "0 devices:", 0},
    {NO_DRIVER "doctor", 1, "FAILED   driver", 0},
    {NO_DRIVER "run saxpy", 3, "/no/such/libcuda.so.1", 0},
    {NO_DRIVER "verify", 3, "/no/such/libcuda.so.1", 0},
    {NO_DRIVER "list --resolve", 3, "/no/such/libcuda.so.1", 0},
    {"explain saxpy.f32 --cc 9.0 --nvrtc-archs 75,80,90", 0, "chosen", 0},
    {"explain saxpy.f32 --cc 4.0 --nvrtc-archs none", 1, NULL, 0},
    {"explain invert --ops " PACK " --cc 7.0 --nvrtc none", 1,
     "PTX for compute_70 or lower, or let NVRTC be used.", 0},
    {"explain invert --ops " PACK " --cc 8.6 --variant late", 1, "Take variant plain", 0},
    {"check invert --ops " PACK " --cc 7.0 --no-nvrtc", 1,
     "PTX for compute_70 or lower, or let NVRTC be used.", 0},
    {"explain saxpy.f32 --cc 9.x", 2, "9.x", 0},
    {"explain saxpi.f32 --cc 9.0", 2, "saxpy.f32", 0},
    {"explain saxpy --type f23 --cc 9.0", 2, "There is f32, f64", 0},
    {"explain saxpy --variant vec5 --cc 9.0", 2, "Did you mean \"vec4\"?", 0},
    {"check --cc 7.5,9.0,12.0 --nvrtc-archs 75,80,90,120", 0, "0 missing", 0},
    {"check saxpy --cc 4.0 --no-nvrtc --driver-version 11.0", 1, NULL, 0},
    {"check saxpy", 2, "--cc", 0},
    {"check no_compile --ops OPS/no_compile.cu --cc 9.0 --nvrtc-archs 90", 0, "not compiled here", 0},
    {"check saxpi --cc 9.0", 2, "Did you mean \"saxpy\"?", 0},
    {"check --cc 9.0,x", 2, "x", 0},
    {"check --cc 9.0a", 2, "9.0a: a belongs to an image's target", 0},
    {"explain saxpy.f32 --cc 90a", 2, "90a: a belongs", 0},
    {"explain saxpy.f32 --cc 9.0,10.0", 2, "explain takes one", 0},
    {"explain saxpy.f32 --cc 9.0 --driver-version 99999999999999", 2, "999.99", 0},
    {"explain saxpy.f32 --cc 9.0 --nvrtc-archs 99999999999999", 2, "not a compute capability", 0},
    {"explain saxpy.f32 --cc 9.0 --nvrtc-archs 7", 2, "\"7\" is not a compute capability", 0},
    /* relevel */
    {"relevel OPS/new.ptx -o TMP/old.ptx --driver-version 11.8", 0,
     "PTX 7.8 for sm_90, from 9.0 for sm_90; 1 instruction rewritten; drivers of CUDA 11.8 and later", 0},
    {"relevel OPS/new.ptx -o TMP/old.ptx --driver-version 8.0", 2, "Name a driver of CUDA 9.0 or later", 0},
    {"relevel OPS/new.ptx -o TMP/old.ptx --isa 7.0 --target sm_75", 1,
     "line 17, \"tanh.approx.bf16 %h1, %h2;\", cannot be said in PTX 7.0 for sm_75: Feature 'tanh' requires",
     0},
    {"relevel OPS/new.ptx -o TMP/old.ptx --lowest", 0, "PTX 8.0 for sm_90", 0},
    {"relevel OPS/new.ptx -o TMP/old.ptx", 2, "--lowest", 0},
    {"relevel OPS/new.ptx -o TMP/old.ptx --lowest --isa 7.0", 2, "one level", 0},
    {"relevel OPS/new.ptx -o TMP/old.ptx --isa 7", 2, "no version of PTX", 0},
    {"relevel OPS/new.ptx -o TMP/old.ptx --lowest --target sm_91", 2, "no target sm_91", 0},
    {"relevel OPS/new.ptx --lowest", 2, "-o FILE", 0},
    {"relevel OPS/faults.cu -o TMP/old.ptx --lowest", 2, "the text is CUDA source", 0},
    {"relevel " PACK " -o TMP/old.ptx --lowest", 2, "a pack is no image", 0},
    {"relevel OPS/none.ptx -o TMP/old.ptx --lowest", 2, "none.ptx", 0},
    /* compile */
    {"compile OPS/faults.cu -o TMP/x.ptx --nvrtc none", 3, "NVRTC", 0},
    {"compile OPS/faults.cu -o TMP/x.ptx --nvrtc /no/such/file", 2, "/no/such/file", 0},
    {"compile OPS/faults.cu", 2, "-o FILE", 0},
    {"compile OPS/none.cu -o TMP/x.ptx", 2, "none.cu", NVRTC},
    {"compile OPS/faults.cu -o OPS/./faults.cu --kind cubin", 2, "is the source itself", NVRTC},
    {"compile /dev/zero -o TMP/x.ptx", 2, "not a regular file", NVRTC},
    {"compile OPS/faults.cu -o TMP/x.ptz", 2, "ptx", NVRTC},
    {"compile OPS/faults.cu -o TMP/x.ptx --arch sm_1x", 2, "sm_1x", NVRTC},
    {"compile OPS/faults.cu -o TMP/x.ptx --arch sm_999", 2, "does not know compute_999", NVRTC},
    {"compile OPS/faults.cu -o TMP/x.cubin --arch compute_90", 2, "Say sm_90", NVRTC},
    {"compile OPS/faults.cu -o TMP/x.ptx --arch sm_75 -D KR_VARIANT_wild -D uint64_t=size_t", 0, "wild",
     NVRTC},
    {"compile OPS/no_compile.cu -o TMP/x.ptx -D KR_VARIANT_wild -D uint64_t=size_t", 2, "nowhere", NVRTC},
    {"compile OPS/faults.cu -o TMP/none/x.ptx --arch sm_75", 2, "cannot write", NVRTC},
    /* link */
    {"link OPS/faults.cu", 2, "-o FILE", 0},
    {"link OPS/faults.cu -o TMP/x.fatbin", 2, "names nothing that a link gives", 0},
    {"link OPS/none.ptx -o TMP/x.cubin", 2, "none.ptx", 0},
    {"link OPS/faults.cu -o TMP/x.cubin --arch 90 --nvjitlink /no/such/file", 2, "/no/such/file", 0},
    {NO_DRIVER "link OPS/faults.cu -o TMP/x.cubin --nvjitlink none", 3, "nothing links", 0},
    {SOFT "link OPS/faults.cu -o TMP/x.cubin --nvjitlink none", 2, "linking ", SOFTCUDA},
    {SOFT "link OPS/../../front/data/k75.ptx -o TMP/x.cubin --nvjitlink none", 0, "linked by the driver",
     SOFTCUDA},
    {SOFT "link OPS/../../front/data/k75.ptx -o TMP/x.cubin --arch 80 --nvjitlink none", 2,
     "which links for any", SOFTCUDA},
    /* pack and embed */
    {"list scale --ops " PACK, 0, "variant  plain (3 images shipped)", 0},
    {"check scale --ops " PACK " --cc 7.5,8.6,9.0 --no-nvrtc", 0, "0 missing", 0},
    {"explain invert --ops " PACK " --cc 9.0 --nvrtc none", 0, "cubin sm_90a", 0},
    {"list --ops TMP/damaged.pack", 2, "the pack is damaged at byte 32", 0},
    {"list --ops TMP/newer.pack", 2, "version 255, newer than the version 1", 0},
    {"list --ops OPS/../test_cli.c", 2, "not a pack", 0},
    {"list --ops OPS/../../registry/packs/scale.cu --ops " PACK, 0, "scale", 0},
    {"list --ops TMP/scale.cu --ops " PACK, 2, "taken by scale.cu, which is another source", 0},
    {"pack saxpy", 2, "pack needs -o FILE", 0},
    {"pack -o TMP/x.pack --nvrtc none", 3, "NVRTC", 0},
    {"pack -o TMP/x.pack --nvrtc /no/such/file", 2, "/no/such/file", 0},
    {"pack -o TMP/x.pack saxpi", 2, "Did you mean \"saxpy\"?", NVRTC},
    {"pack -o TMP/x.pack 'zz*'", 2, "no op matches", NVRTC},
    {"pack -o TMP/x.pack saxpy --arch 90,x", 2, "\"x\"", NVRTC},
    {"pack -o TMP/x.pack saxpy --arch compute_90", 2, "machine code is for a real architecture", NVRTC},
    {"pack -o TMP/x.pack saxpy --arch 8.0,8.6+PTX", 2, "ask with --ptx", NVRTC},
    {"pack -o TMP/x.pack saxpy --arch 999", 2, "does not know 99.9; it knows", NVRTC},
    {"pack -o TMP/x.pack saxpy --ptx 10", 2, "does not know 1.0", NVRTC},
    {"pack -o TMP/none/x.pack fill.f32", 2, "cannot write", NVRTC},
    {"pack -o TMP/x.pack --ops OPS/no_compile.cu", 2, "nowhere", NVRTC},
    {"pack -o TMP/x.pack scale --ops " PACK " --arch sm_80 --ptx compute_75", 0, "1 ops, 2 images, ", NVRTC},
    {"pack -o TMP/x.pack --ops " PACK " --ptx 75 --no-source", 0, "2 ops, 3 images, ", NVRTC},
    {"embed " PACK, 2, "-o FILE", 0},
    {"embed " PACK " -o TMP/x.s", 2, "ends in .c or .o", 0},
    {"embed TMP/damaged.pack -o TMP/x.c", 2, "the pack is damaged at byte 32", 0},
    {"embed TMP/damaged_image.pack -o TMP/x.c", 2, "the pack is damaged: the SHA-256 of its", 0},
    {"embed TMP/same.c -o TMP/same.c", 2, "is the pack itself", 0},
    {"embed TMP/none.pack -o TMP/x.c", 2, "none.pack", 0},
    {"embed " PACK " -o TMP/x.c", 0, "v1_pack and v1_pack_bytes, 26368 bytes", 0},
    {"embed " PACK " -o TMP/x.o", 0, "v1_pack and v1_pack_bytes, 26368 bytes", 0},
    /* inspect */
    {"inspect " HOSTS "s.a", 0, "archive, 4 images", 0},
    {"inspect " HOSTS "s64.so", 0, "k(0:8 8:12), at most 128 threads, clusters of 2x1x1", 0},
    {NO_DRIVER "inspect " HOSTS "small.ptx", 0, "ISA 7.8, driver 11.8", 0},
    {"inspect TMP/narrow.ptx", 0,
     "driver 13.0, 32-bit addresses; what it needs is told by `kregistry relevel", 0},
    {"relevel TMP/narrow.ptx --lowest -o TMP/no.ptx", 2, "line 3 of the PTX is wrong: 32-Bit compilation", 0},
    {"inspect TMP/x.o", 0, "elf, 8 images", 0}, /* of embed, above */
    {"inspect TMP/damaged_pack.so", 2, "damaged at byte 32", 0},
    {"inspect TMP/damaged_pack.so", 2, "reading the pack at offset 0x888 of ", 0},
    {"inspect TMP/cut_pack.so", 2, "it is to have 26368 bytes; there are 26000", 0},
    {"inspect TMP/x.o", 0, "of scale.f32, variant plain", 0},
    {"inspect /bin/sh", 1, NULL, 0},
    {"inspect OPS/faults.cu", 2, "Compile it first.", 0},
    {"inspect OPS", 2, "Is a directory", 0},
    {"inspect OPS/none", 2, "OPS/none", 0},
    {"inspect", 2, "needs FILE", 0},
    /* an NVRTC that is asked for must do, wherever one is used */
    {"check saxpy --cc 9.0 --nvrtc /no/such/file", 2, "/no/such/file", 0},
    {"explain saxpy.f32 --cc 9.0 --nvrtc /no/such/file", 2, "/no/such/file", 0},
    {"version --nvrtc /no/such/file", 2, "/no/such/file", 0},
    {"version --nvrtc none", 0, "NVRTC none: NVRTC is switched off", 0},
    {NO_DRIVER "version", 0, "driver none: ", 0},
    {SOFT "run saxpy --n 10 --nvrtc /no/such/file", 2, "/no/such/file", SOFTCUDA},
    {SOFT "verify saxpy --nvrtc OPS", 2, "no libnvrtc.so there or below", SOFTCUDA},
    {SOFT "doctor --nvrtc /no/such/file", 1, "/no/such/file", SOFTCUDA},
    /* run and verify */
    {SOFT "run saxpy.f32 --n 1000", 0, "verified", SOFTCUDA | IMAGES},
    {SOFT "run saxpy --n 100 --repeat 3 --trace TMP/t.json", 0, "verified", SOFTCUDA | IMAGES},
    {SOFT "run saxpy --n 100 --repeat 3 --trace TMP/none/t.json", 2, "cannot write", SOFTCUDA | IMAGES},
    {SOFT "run saxpi.f32", 2, "saxpy.f32", SOFTCUDA},
    {SOFT "run saxpi", 2, "Did you mean \"saxpy\"?", SOFTCUDA},
    {SOFT "verify saxpi", 2, "Did you mean \"saxpy\"?", SOFTCUDA},
    {SOFT "run saxpy --type f16", 2, "no type \"f16\"", SOFTCUDA},
    {SOFT "run saxpy.f32 --type f64", 2, "not of type f64", SOFTCUDA},
    {SOFT "run saxpy.f64 --type f64 --n 10", 0, "verified", SOFTCUDA | IMAGES},
    {SOFT "run saxpy --n 10 --shape 20", 2, "only one of them", SOFTCUDA},
    {SOFT "run saxpy --split --n 10 --variant grid", 2, "leave out --variant", SOFTCUDA},
    {SOFT "run saxpy --split --n 10 --block 32", 2, "leave out --block", SOFTCUDA},
    {SOFT "run saxpy --split --n 10 --repeat 3", 2, "leave out --repeat", SOFTCUDA},
    {SOFT "run saxpy.f64 --n 2305843009213693952", 2, "2305843009213693952 elements of 8 bytes", SOFTCUDA},
    {SOFT "run saxpy.f32 --n 4611686018427387904", 2, "4611686018427387904 elements of 4 bytes", SOFTCUDA},
    {SOFT "run saxpy.f64 --n 2305843009213693952 --split", 2, "2305843009213693952 elements", SOFTCUDA},
    {SOFT "verify saxpy.f64 --shape 2305843009213693952", 2, "2305843009213693952 elements", SOFTCUDA},
    {SOFT "run saxpy.f32 --n 1152921504606846976", 1, "4611686018427396096 bytes asked for",
     SOFTCUDA | IMAGES},
    {SOFT "verify saxpy.f32 --shape 1152921504606846976 --class ordinary --variant grid", 1,
     "bytes asked for", SOFTCUDA | IMAGES},
    {SOFT "run at_least --ops OPS/at_least.cu --n 3", 2, "n is 3 but must be at least 50", SOFTCUDA},
    {SOFT "run at_least --ops OPS/at_least.cu --shape 3", 2, "n is 3 but must be at least 50", SOFTCUDA},
    {SOFT "run at_least --ops OPS/at_least.cu --n 60", 0, "at_least 60 on", SOFTCUDA | NVRTC},
    {SOFT "run rgb_to_gray --n 10", 0, "10x10x30x10 on", SOFTCUDA | NVRTC},
    {SOFT "run narrow --ops OPS/narrow.cu --n 300", 2, "n of narrow is a u8: 300", SOFTCUDA},
    {SOFT "verify narrow --ops OPS/narrow.cu --shape 300", 2, "n of narrow is a u8: 300", SOFTCUDA},
    {SOFT "run narrow --ops OPS/narrow.cu", 0, "narrow 255", SOFTCUDA | NVRTC},
    {SOFT "verify narrow --ops OPS/narrow.cu --quick", 1, "not verified: no reference", SOFTCUDA | NVRTC},
    {SOFT "run no_reference --ops OPS/no_reference.cu --n 10", 0, "not verified", SOFTCUDA | NVRTC},
    {SOFT "run no_reference --ops OPS/no_reference.cu --n 10 --split", 0, "not verified", SOFTCUDA | NVRTC},
    {SOFT "verify no_reference --ops OPS/no_reference.cu --quick", 1, "nothing was checked",
     SOFTCUDA | NVRTC},
    {SOFT "verify saxpy.f32 --shift 1", 2, "takes multiples of 4", SOFTCUDA},
    {SOFT "verify saxpy.f32 --shift 4 --quick", 2, "vec4 of saxpy.f32 takes multiples of 16", SOFTCUDA},
    {SOFT "verify saxpy.f32 --shift 18446744073709551615", 2, "--shift 18446744073709551615", SOFTCUDA},
    {SOFT "run saxpy --variant vec5", 2, "Did you mean \"vec4\"?", SOFTCUDA},
    {SOFT "run saxpy --n ten", 2, "not a number", SOFTCUDA},
    {SOFT "run saxpy --n -1", 2, "a whole number, 0 to 2^64-1", SOFTCUDA},
    {SOFT "run saxpy --n 18446744073709551616", 2, "a whole number, 0 to 2^64-1", SOFTCUDA},
    {SOFT "run saxpy --type i32", 2, "There is f32, f64", SOFTCUDA},
    {SOFT "run saxpy.", 2, "saxpy.: no type", SOFTCUDA},
    {SOFT "run saxpy --device all,0", 2, "all is no part of a list", SOFTCUDA},
    {SOFT "run saxpy --shape 10x10", 2, "--shape 10x10", SOFTCUDA},
    {SOFT "run saxpy --n 10 --block 2048", 2, "--block 2048", SOFTCUDA},
    {SOFT "run rgb_to_gray --shape 10x10x5x10", 2, "must be at least 3*width = 30", SOFTCUDA},
    {SOFT "run transpose --split", 2, "cannot be split", SOFTCUDA},
    {SOFT "run saxpy --device 7", 2, "no device \"7\"", SOFTCUDA},
    {SOFT "run saxpy --device -1", 2, "no device \"-1\"", SOFTCUDA},
    {SOFT "run saxpy --device 0x", 2, "no device \"0x\"", SOFTCUDA},
    {SOFT "run saxpy --device ''", 2, "no device \"\"", SOFTCUDA},
    {SOFT "run saxpy --device 0,0", 2, "device 0 is named twice", SOFTCUDA},
    {SOFT "run future --ops OPS/future.cu --n 10", 1, "99.0", SOFTCUDA},
    {SOFT "run future --ops OPS/future.cu --n 10 --variant wild", 1, "99.0", SOFTCUDA},
    {SOFT "run no_compile --ops OPS/no_compile.cu --n 10", 2, "nowhere", SOFTCUDA | NVRTC},
    {SOFT "run no_bounds --ops OPS/../../checkkern/broken/no_bounds.cu --n 10", 1,
     "wrong: red zone of y at 10", SOFTCUDA | NVRTC},
    {SOFT "run faults --ops OPS/faults.cu --n 10", 1, "CUDA", SOFTCUDA | NVRTC},
    {SOFT "verify fill.f32 --shape 100 --class ordinary", 0, "0 failed", SOFTCUDA | IMAGES},
    {SOFT "verify fill.f32 --class ordinari", 2, "Did you mean \"ordinary\"?", SOFTCUDA},
    {SOFT "verify fill.f32 --limit 0", 2, "--limit 0", SOFTCUDA},
    {SOFT "verify fill.f33", 2, "fill", SOFTCUDA},
    {SOFT "verify future --ops OPS/future.cu", 1, "nothing was checked", SOFTCUDA},
    {SOFT "verify fill.f32 --variant vec5", 2, "Did you mean \"vec4\"?", SOFTCUDA},
    {SOFT "verify fill --variant vec5", 2, "Did you mean \"vec4\"?", SOFTCUDA},
    {SOFT "list fill --resolve", 0, "occupancy", SOFTCUDA | IMAGES},
    {SOFT "doctor", 0, "is right", SOFTCUDA | NVRTC},
    {SOFT "devices", 0, "softcuda driver", SOFTCUDA},
};

/* ---- running the command ---- */

typedef struct answer {
    int code;
    char out[1 << 18];
    char err[1 << 16];
} answer;

static char temporary[] = "/tmp/kregistry-test-cli-XXXXXX";
static int available;

static void expand(const char *words, char *to, size_t bytes)
{
    size_t n = 0;
    for (const char *at = words; *at && n + 1 < bytes;) {
        const char *with = strncmp(at, "OPS", 3) == 0   ? getenv("KREGISTRY_TEST_OPS")
                           : strncmp(at, "TMP", 3) == 0 ? temporary
                                                        : NULL;
        if (with)
            n += (size_t)snprintf(to + n, bytes - n, "%s", with);
        else
            to[n++] = *at;
        at += with ? 3 : 1;
    }
    to[n] = '\0';
}

static void read_whole(const char *path, char *to, size_t bytes)
{
    FILE *file = fopen(path, "r");
    ck_assert_ptr_nonnull(file);
    to[fread(to, 1, bytes - 1, file)] = '\0';
    fclose(file);
}

static const answer *run(const char *words)
{
    static answer a;
    char line[4096], all[8192], out[64], err[64];
    expand(words, line, sizeof line);
    snprintf(out, sizeof out, "%s/out", temporary);
    snprintf(err, sizeof err, "%s/err", temporary);
    snprintf(all, sizeof all, "'%s' %s >%s 2>%s </dev/null", getenv("KREGISTRY_TEST_COMMAND"), line, out,
             err);
    int result = system(all);
    a.code = WIFEXITED(result) ? WEXITSTATUS(result) : -1;
    read_whole(out, a.out, sizeof a.out);
    read_whole(err, a.err, sizeof a.err);
    return &a;
}

START_TEST(text)
{
    const row *r = &rows[_i];
    if (r->needs & ~available)
        return;
    char says[256] = "";
    const answer *a = run(r->words);
    expand(r->says ? r->says : "", says, sizeof says);
    ck_assert_msg(a->code == r->code, "kregistry %s: exit code %d, not %d\n%s%s", r->words, a->code, r->code,
                  a->out, a->err);
    ck_assert_msg(strstr(r->code > 1 || (r->code == 1 && *a->err) ? a->err : a->out, says),
                  "kregistry %s: no \"%s\" in\n%s%s", r->words, says, a->out, a->err);
}
END_TEST

/* The same rows with --json: one document, an error in the promised shape, the same exit code. */
START_TEST(json)
{
    const row *r = &rows[_i];
    char words[2048];
    if (r->needs & ~available || strstr(r->words, "help") || !*r->words)
        return;
    snprintf(words, sizeof words, "--json %s", r->words);
    const answer *a = run(words);
    json_error_t at;
    json_t *document = json_loads(a->out, 0, &at);
    ck_assert_msg(document != NULL, "kregistry %s: %s\n%s", words, at.text, a->out);
    ck_assert_msg(a->code == r->code, "kregistry %s: exit code %d, not %d\n%s", words, a->code, r->code,
                  a->out);
    json_t *error = json_object_get(document, "error");
    bool answered = json_object_get(document, "considered") || json_object_get(document, "runs") ||
                    json_object_get(document, "missing") || json_object_get(document, "checks") ||
                    json_object_get(document, "images");
    ck_assert_int_eq(error != NULL, r->code > 1 || (r->code == 1 && !answered));
    static const char *const keys[] = {"status", "code", "api", "message", "advice", "op", "device"};
    for (size_t i = 0; error && i < sizeof keys / sizeof *keys; i++)
        ck_assert_msg(json_object_get(error, keys[i]) != NULL, "kregistry %s: no error.%s", words, keys[i]);
    ck_assert_msg(!error || json_is_string(json_object_get(error, "advice")), "kregistry %s: no advice\n%s",
                  words, a->out);
    json_decref(document);
}
END_TEST

/* ---- promised keys ---- */

static const struct {
    const char *words;
    const char *keys; /* with blanks between; "a/b": b in a, where an array stands for its first element */
    int needs;
} promises[] = {
    {"list saxpy",
     "ops/name ops/brief ops/types ops/args/name ops/args/type ops/args/shape ops/args/role "
     "ops/variants/name "
     "ops/variants/requires ops/variants/images ops/source",
     0},
    {SOFT "list saxpy --resolve",
     "ops/devices/device ops/devices/variant ops/devices/image/kind ops/devices/image/arch "
     "ops/devices/image/origin "
     "ops/devices/registers ops/devices/shared_bytes ops/devices/block ops/devices/grid "
     "ops/devices/occupancy "
     "ops/devices/limiter",
     SOFTCUDA | IMAGES},
    {NO_DRIVER "devices", "driver devices reason", 0},
    {SOFT "devices",
     "driver/path driver/version driver/kind devices/ordinal devices/name devices/cc devices/uuid "
     "devices/pci "
     "devices/multiprocessors devices/memory_bytes reason",
     SOFTCUDA},
    {"explain saxpy.f32 --cc 9.0 --nvrtc-archs 90",
     "op device chosen/variant chosen/image considered/variant considered/image considered/verdict "
     "considered/reason advice",
     0},
    {"check saxpy --cc 7.5,9.0 --nvrtc-archs 75,90",
     "ccs ops/name ops/cells/cc ops/cells/how ops/cells/reason ops/cells/advice missing", 0},
    {SOFT "run saxpy --n 1000",
     "op type runs/device runs/variant runs/image runs/block runs/grid runs/n runs/ms/median runs/ms/p90 "
     "runs/ms/p99 "
     "runs/gbps runs/verified runs/max_error",
     SOFTCUDA | IMAGES},
    {SOFT "run saxpy --n 1000 --split", "op type runs split/parts/device split/parts/first split/parts/count",
     SOFTCUDA | IMAGES},
    {SOFT "verify fill.f32 --shape 100 --class ordinary", "checks failed failures", SOFTCUDA},
    {SOFT "verify no_reference --ops OPS/no_reference.cu --quick",
     "checks failed failures skipped/name skipped/reason skipped/runs", SOFTCUDA | NVRTC},
    {SOFT "verify faults --ops OPS/faults.cu --shape 100 --class ordinary",
     "checks failed failures/op failures/type failures/variant failures/device failures/shape failures/class "
     "failures/seed failures/index failures/expected failures/got failures/repeat",
     SOFTCUDA | NVRTC},
    {"compile OPS/faults.cu -o TMP/x.cubin --arch sm_80 -D KR_VARIANT_wild -D uint64_t=size_t",
     "kind arch bytes entries cached log", NVRTC},
    {"pack fill -o TMP/x.pack", "ops images bytes", NVRTC},
    {"embed " PACK " -o TMP/x.c", "name bytes", 0},
    {"inspect " HOSTS "s64.o",
     "kind images/kind images/arch images/isa images/bytes images/compressed images/entries/name "
     "images/entries/params/offset images/entries/params/size images/entries/registers "
     "images/entries/shared_bytes images/entries/max_threads images/min_isa images/min_target "
     "images/min_driver",
     0},
    {NO_DRIVER "doctor", "checks/name checks/ok checks/detail checks/advice", 0},
    {"version", "kregistry nvrtc driver", 0},
    {"completion bash", "shell script", 0},
};

static json_t *find(json_t *in, const char *path, size_t length)
{
    while (in && length > 0) {
        char key[64];
        size_t n = strcspn(path, "/ ");
        n = n < length ? n : length;
        snprintf(key, sizeof key, "%.*s", (int)n, path);
        if (json_is_array(in))
            in = json_array_get(in, 0);
        in = json_object_get(in, key);
        n += n < length;
        path += n;
        length -= n;
    }
    return in;
}

START_TEST(keys)
{
    char words[2048];
    if (promises[_i].needs & ~available)
        return;
    snprintf(words, sizeof words, "%s --json", promises[_i].words);
    const answer *a = run(words);
    json_t *document = json_loads(a->out, 0, NULL);
    ck_assert_msg(document != NULL, "kregistry %s: no JSON\n%s%s", words, a->out, a->err);
    for (const char *key = promises[_i].keys; *key;) {
        size_t length = strcspn(key, " ");
        ck_assert_msg(find(document, key, length) != NULL, "kregistry %s: no %.*s in\n%s", words, (int)length,
                      key, a->out);
        key += length + (key[length] == ' ');
    }
    json_decref(document);
}
END_TEST

/* ---- single stories ---- */

/* A fault ends the checks of its own op alone, and is reported with its cause. */
START_TEST(a_fault_ends_one_op)
{
    if ((SOFTCUDA | NVRTC) & ~available)
        return;
    const answer *a = run(SOFT "verify 'f[ai]*' --ops OPS/faults.cu --shape 100 --class ordinary --json");
    json_t *document = json_loads(a->out, 0, NULL);
    ck_assert_int_eq(a->code, 1);
    ck_assert_int_eq(json_array_size(json_object_get(document, "failures")), 1);
    ck_assert_int_gt(json_integer_value(json_object_get(document, "checks")),
                     4); /* of fill, after the fault */
    json_t *failure = json_array_get(json_object_get(document, "failures"), 0);
    ck_assert_str_eq(json_string_value(json_object_get(failure, "what")), "fault");
    ck_assert_str_eq(json_string_value(json_object_get(failure, "op")), "faults");
    json_decref(document);
}
END_TEST

/* The repeat line makes the failing check again. */
START_TEST(repeat_repeats)
{
    if ((SOFTCUDA | NVRTC) & ~available)
        return;
    const answer *a = run(SOFT "verify faults --ops OPS/faults.cu --quick --json");
    json_t *document = json_loads(a->out, 0, NULL);
    json_t *failure = json_array_get(json_object_get(document, "failures"), 0);
    const char *line = json_string_value(json_object_get(failure, "repeat"));
    ck_assert_ptr_nonnull(line);
    ck_assert(strncmp(line, "kregistry ", 10) == 0);
    ck_assert_int_eq(run(line + 10)->code, 1);
    json_decref(document);
}
END_TEST

/* ---- verified means: held to something ---- */

START_TEST(no_reference_is_not_verified)
{
    static const char *const paths[] = {"runs/verified", "split/verified"};
    char words[256];
    if ((SOFTCUDA | NVRTC) & ~available)
        return;
    snprintf(words, sizeof words, SOFT "run no_reference --ops OPS/no_reference.cu --n 10 --json%s",
             _i ? " --split" : "");
    json_t *document = json_loads(run(words)->out, 0, NULL);
    ck_assert(json_is_null(find(document, paths[_i], strlen(paths[_i]))));
    json_decref(document);
}
END_TEST

/* What a kernel prints is neither the worker's word nor the document's. */
START_TEST(kernels_print_elsewhere)
{
    if ((SOFTCUDA | NVRTC) & ~available)
        return;
    const answer *a = run(SOFT "verify prints --ops OPS/prints.cu --shape 10 --class ordinary --json");
    json_t *document = json_loads(a->out, 0, NULL);
    ck_assert_msg(document != NULL, "%s", a->out);
    ck_assert_int_eq(json_integer_value(json_object_get(document, "checks")), 0);
    ck_assert_ptr_nonnull(strstr(a->err, "1000000"));
    json_decref(document);
    a = run(SOFT "run prints --ops OPS/prints.cu --n 10 --json");
    document = json_loads(a->out, 0, NULL);
    ck_assert_msg(document != NULL, "%s", a->out);
    ck_assert_ptr_nonnull(strstr(a->err, "1000000"));
    json_decref(document);
}
END_TEST

/* ---- text of any bytes ---- */

static const char *write_text(const char *name, const char *content, size_t bytes)
{
    static char path[256];
    snprintf(path, sizeof path, "%s/%s", temporary, name);
    FILE *file = fopen(path, "wb");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(content, 1, bytes, file), bytes);
    fclose(file);
    return path;
}

#define LONG_NAME "a_name_of_forty_characters_no_fewer_than"
#define LATIN_E "\xe9" /* in ISO 8859-1 */
#define BROKEN_OP(name)                                                                             \
    "//! op " name "\n//! brief y = 0\n//! types T = f32\n//! arg n u64 size\n//! arg y T[n] out\n" \
    "//! variant grid\n//! launch elementwise n\n//! compare exact\n//! source none\n"              \
    "#ifdef KR_VARIANT_grid\n#error not so\n#endif\n"

/* Bytes that are no UTF-8 are told, in a log as in a path, and take no failure with them. */
START_TEST(any_bytes_are_json)
{
    static const char op[] = BROKEN_OP("latin"), source[] = "#warning caf" LATIN_E "\n";
    write_text("caf" LATIN_E ".cu", op, strlen(op));
    write_text("log.cu", source, strlen(source));
    json_t *document = json_loads(run("list --ops TMP/" LATIN_E " --json")->out, 0, NULL);
    json_t *message = find(document, "error/message", strlen("error/message"));
    ck_assert(json_is_string(message) && strstr(json_string_value(message), "/\\xE9"));
    json_decref(document);
    if ((SOFTCUDA | NVRTC) & ~available)
        return;
    document = json_loads(run("compile TMP/log.cu -o TMP/log.ptx --json")->out, 0, NULL);
    json_t *log = json_object_get(document, "log");
    ck_assert(json_is_string(log) && strstr(json_string_value(log), "caf\\xE9"));
    json_decref(document);
    const answer *a = run(SOFT "verify latin --ops TMP/caf" LATIN_E ".cu --json");
    document = json_loads(a->out, 0, NULL);
    ck_assert_int_eq(a->code, 1);
    ck_assert_int_eq(json_integer_value(json_object_get(document, "failed")), 1);
    json_t *what = find(document, "failures/what", strlen("failures/what"));
    ck_assert_str_eq(json_string_value(what), "does not compile");
    json_decref(document);
}
END_TEST

/* A terminal obeys nobody but the command. */
START_TEST(no_byte_commands_the_terminal)
{
    static const char op[] = "//! op loud\n//! brief y = \033[2J0\n//! types T = f32\n//! arg n u64 size\n"
                             "//! arg y T[n] out\n//! variant grid\n//! launch elementwise n\n"
                             "//! compare exact\n//! source none\n#ifdef KR_VARIANT_grid\n#endif\n";
    write_text("loud.cu", op, strlen(op));
    const answer *a = run("list loud --ops TMP/loud.cu");
    if (a->code == 0)
        ck_assert_msg(strstr(a->out, "y = \\x1B[2J0") && !strchr(a->out, '\033'), "%s", a->out);
    a = run("list $(printf 'a\\033[2Jb')");
    ck_assert_msg(strstr(a->err, "a\\x1B[2Jb") && !strchr(a->err, '\033'), "%s", a->err);
    /* nor one of the other half of its commands, which no text has alone */
    a = run("list $(printf 'a\\233\\060\\303\\251b')");
    ck_assert_msg(strstr(a->err, "a\\x9B0\303\251b"), "%s", a->err);
}
END_TEST

/* The repeat line of a whole op, whatever its file is called. */
START_TEST(repeat_repeats_ops)
{
    static const char op[] = BROKEN_OP(LONG_NAME);
    if ((SOFTCUDA | NVRTC) & ~available)
        return;
    write_text("it's one.cu", op, strlen(op));
    const answer *a = run(SOFT "verify --ops \"TMP/it's one.cu\" '" LONG_NAME "' --json");
    for (int i = 0; i < 2; i++) {
        json_t *document = json_loads(a->out, 0, NULL);
        json_t *line = find(document, "failures/repeat", strlen("failures/repeat"));
        char words[4096];
        ck_assert_msg(a->code == 1 && json_is_string(line), "%s", a->out);
        ck_assert_int_eq(json_array_size(json_object_get(document, "failures")), 1);
        snprintf(words, sizeof words, "%s --json", json_string_value(line) + strlen("kregistry "));
        json_decref(document);
        a = run(words);
    }
}
END_TEST

START_TEST(a_nul_in_a_source)
{
    static const char source[] = "extern \"C\" __global__ void k() {}\n\0what follows";
    write_text("nul.cu", source, sizeof source);
    const answer *a = run("compile TMP/nul.cu -o TMP/nul.ptx");
    if (available & NVRTC)
        ck_assert_msg(a->code == 2 && strstr(a->err, "byte at 34 is a NUL"), "%d %s", a->code, a->err);
    a = run("list --ops TMP/nul.cu");
    ck_assert_msg(a->code == 2 && strstr(a->err, "nul.cu:1: the file holds a zero byte"), "%d %s", a->code,
                  a->err);
}
END_TEST

/* ---- files ---- */

static void shell(const char *words)
{
    char line[4096];
    expand(words, line, sizeof line);
    ck_assert_msg(system(line) == 0, "%s", line);
}

#define COMPILE "compile OPS/faults.cu -D KR_VARIANT_wild -D uint64_t=size_t --arch sm_75 -o "

START_TEST(kept_between_commands)
{
    if (!(available & NVRTC))
        return;
    for (int i = 0; i < 3; i++) {
        const answer *a = run(i < 2 ? COMPILE "TMP/kept.ptx --json --cache-dir TMP/cache"
                                    : COMPILE "TMP/kept.ptx --json --cache-dir TMP/cache --no-cache");
        ck_assert_msg(a->code == 0 && strstr(a->out, i == 1 ? "\"cached\": true" : "\"cached\": false"),
                      "%s%s", a->out, a->err);
        shell(i ? "cmp TMP/kept.ptx TMP/first.ptx" : "mv TMP/kept.ptx TMP/first.ptx");
    }
    shell("test $(ls TMP/cache | wc -l) = 1 && for f in TMP/cache/*; do echo >$f; done");
    const answer *a = run(COMPILE "TMP/kept.ptx --verbose --cache-dir TMP/cache");
    ck_assert_msg(a->code == 0 && strstr(a->err, "is damaged"), "%s%s", a->out, a->err);
    shell("cmp TMP/kept.ptx TMP/first.ptx");
    a = run(COMPILE "TMP/kept.ptx --verbose --cache-dir TMP/cache");
    ck_assert_msg(a->code == 0 && strstr(a->err, "nothing was compiled"), "%s%s", a->out, a->err);
    a = run(COMPILE "TMP/kept.ptx --verbose --cache-dir TMP/first.ptx");
    ck_assert_msg(a->code == 0 && strstr(a->err, "Not a directory"), "%s%s", a->out, a->err);
}
END_TEST

/* Links stay links, pipes pipes, and what lies beside stays as it is. */
START_TEST(outputs_are_written_as_they_are)
{
    if (!(available & NVRTC))
        return;
    shell(
        "cd TMP && mkdir o && ln -s o/to.ptx link.ptx && echo mine >link.ptx.tmp && echo mine >o/to.ptx.tmp");
    for (int i = 0; i < 2; i++) { /* dangling, then not */
        ck_assert_int_eq(run(COMPILE "TMP/link.ptx")->code, 0);
        shell("test -L TMP/link.ptx && grep -q wild TMP/o/to.ptx");
        shell("test \"$(cat TMP/link.ptx.tmp TMP/o/to.ptx.tmp)\" = \"$(printf 'mine\\nmine')\"");
        shell("test $(ls TMP/o | wc -l) = 2");
    }
    shell("mkfifo TMP/pipe.ptx && { cat TMP/pipe.ptx >TMP/read.ptx & }");
    ck_assert_int_eq(run(COMPILE "TMP/pipe.ptx")->code, 0);
    shell("test -p TMP/pipe.ptx && sleep 0.2 && cmp TMP/read.ptx TMP/o/to.ptx");
    shell("chmod 640 TMP/o/to.ptx");
    ck_assert_int_eq(run(COMPILE "TMP/o/to.ptx")->code, 0);
    shell("test $(stat -c %a TMP/o/to.ptx) = 640");
}
END_TEST

/* With --ops a pack has those ops, unless a glob names others. A file's ops are verified from a pack of them
 * as they are. */
START_TEST(packs_of_what)
{
    if (!(available & NVRTC))
        return;
    ck_assert_int_eq(run("pack -o TMP/own.pack --ops OPS/faults.cu --ops OPS/prints.cu")->code, 0);
    ck_assert_ptr_nonnull(strstr(run("list --ops TMP/own.pack")->out, "prints"));
    const answer *a = run("pack -o TMP/all.pack '*' --ops OPS/faults.cu --ptx 75 --json");
    json_t *document = json_loads(a->out, 0, NULL), *listed = json_loads(run("list --json")->out, 0, NULL);
    ck_assert_int_eq(json_integer_value(json_object_get(document, "ops")),
                     (json_int_t)json_array_size(json_object_get(listed, "ops")) + 1);
    json_decref(document);
    json_decref(listed);
    if (available & SOFTCUDA)
        ck_assert_ptr_nonnull(strstr(
            run(SOFT "verify fill.f32 --shape 100 --class ordinary --ops TMP/all.pack --nvrtc none")->out,
            "0 failed"));
    shell("cd TMP && rm -f own.pack all.pack");
}
END_TEST

/* inspect, check and run are of one mind on which drivers a cubin is for, and nobody is advised to compile
 * what has no source. */
START_TEST(machine_code_of_a_newer_cuda)
{
    char wanted[100], version[5];
    if (!(available & NVRTC_12))
        return;
    ck_assert_int_eq(run("pack -o TMP/code.pack --ops OPS/at_least.cu --arch 90 --no-source")->code, 0);
    const char *driver = strstr(run("inspect TMP/code.pack")->out, ", driver 1");
    ck_assert_ptr_nonnull(driver);
    snprintf(version, sizeof version, "%.4s", driver + strlen(", driver "));
    snprintf(wanted, sizeof wanted, "is for drivers of CUDA %s or later", version);
    const answer *a = run("check at_least --cc 9.0 --driver-version 11.4 --ops TMP/code.pack");
    ck_assert_int_eq(a->code, 1);
    ck_assert_msg(strstr(a->out, wanted), "%s", a->out);
    ck_assert_int_eq(run("check at_least --cc 9.0 --driver-version 13.0 --ops TMP/code.pack")->code, 0);
    if (available & SOFTCUDA) {
        setenv("KREGISTRY_SOFTCUDA_DRIVER", "11.4", 1);
        a = run(SOFT "run at_least --nvrtc none --ops TMP/code.pack");
        unsetenv("KREGISTRY_SOFTCUDA_DRIVER");
        ck_assert_int_eq(a->code, 1);
        ck_assert_msg(strstr(a->err, wanted), "%s", a->err);
        snprintf(wanted, sizeof wanted,
                 "Update the driver to one for CUDA %s, or add PTX for compute_90 or lower.", version);
        ck_assert_msg(strstr(a->err, wanted), "%s", a->err);
    }
    shell("rm TMP/code.pack");
}
END_TEST

/* The longest name that a file can have. */
START_TEST(a_name_as_long_as_can_be)
{
    char line[1024];
    snprintf(
        line, sizeof line,
        "cd %s && name=$(printf '%%0255d' 0) && echo '.version 7.0 .target sm_75 .address_size 64' >in.ptx "
        "&& '%s' relevel in.ptx --lowest -o $name && test -s $name && rm $name in.ptx && ! ls 000* 2>&1",
        temporary, getenv("KREGISTRY_TEST_COMMAND"));
    ck_assert_msg(system(line) == 0, "%s", line);
}
END_TEST

/* A file that has only its size is refused before it fills the memory. */
START_TEST(a_file_larger_than_any_image)
{
    char line[1024];
    snprintf(
        line, sizeof line,
        "cd %s && truncate -s 3G big.ptx && for way in 'relevel --lowest' link; do '%s' $way big.ptx -o "
        "big.cubin >told 2>&1; test $? = 2 && grep -q '3221225472 bytes' told || exit 1; done; rm big.ptx",
        temporary, getenv("KREGISTRY_TEST_COMMAND"));
    ck_assert_msg(system(line) == 0, "%s", line);
}
END_TEST

/* Neither a full disk nor a kill leaves a part of a pack where one is to be. */
START_TEST(a_pack_is_whole_or_not_there)
{
    char line[1024];
    const char *command = getenv("KREGISTRY_TEST_COMMAND");
    if (!(available & NVRTC))
        return;
    snprintf(line, sizeof line,
             "cd %s && trap '' XFSZ && ulimit -f 8 && { '%s' pack fill -o f.pack --arch 90 >told 2>&1; test "
             "$? = 1; } && "
             "test ! -e f.pack && ! ls f.pack* 2>/dev/null && grep -q 'cannot write' told",
             temporary, command);
    ck_assert_msg(system(line) == 0, "%s", line);
    snprintf(
        line, sizeof line,
        "cd %s && echo mine >f.pack && for s in 0.05 0.1 0.2 0.4; do '%s' pack fill -o f.pack --arch 90 "
        ">told 2>&1 & "
        "p=$!; sleep $s; kill -9 $p; wait $p; echo mine | cmp -s - f.pack || '%s' list --ops f.pack >told || "
        "exit 1; done",
        temporary, command, command);
    ck_assert_msg(system(line) == 0, "%s", line);
    shell("cd TMP && rm -f f.pack*");
}
END_TEST

/* A disk that is full in the middle leaves no half a file. */
START_TEST(a_trace_is_whole_or_not_there)
{
    char line[1024];
    if ((SOFTCUDA | IMAGES) & ~available)
        return;
    snprintf(line, sizeof line,
             "trap '' XFSZ; ulimit -f 8; '%s' " SOFT "run fill --n 10 --repeat 1000 --trace %s/whole.json "
             ">/dev/null 2>&1; test $? = 1 && test ! -e %s/whole.json && ! ls %s/whole.json* 2>/dev/null",
             getenv("KREGISTRY_TEST_COMMAND"), temporary, temporary, temporary);
    ck_assert_msg(system(line) == 0, "%s", line);
}
END_TEST

/* What could not be written is not done. */
START_TEST(output_that_goes_nowhere)
{
    static const char *const ways[] = {"list >/dev/full", "list >&-", "list --json >/dev/full",
                                       "version >&-"};
    char line[512], err[64], told[1024];
    snprintf(err, sizeof err, "%s/told", temporary);
    snprintf(line, sizeof line, "'%s' %s 2>%s", getenv("KREGISTRY_TEST_COMMAND"), ways[_i], err);
    int result = system(line);
    read_whole(err, told, sizeof told);
    ck_assert_int_eq(WEXITSTATUS(result), 1);
    ck_assert_msg(strstr(told, "cannot write to standard output") != NULL, "%s: %s", line, told);
}
END_TEST

/* Whichever allocation is refused, the document is whole and true, or an error's. */
START_TEST(json_without_memory)
{
    static const char *const commands[] = {"list saxpy --json",
                                           "check saxpy --cc 9.0 --nvrtc-archs 90 --json",
                                           SOFT "devices --json", SOFT "run saxpi --json"};
    static char whole[sizeof((answer *)0)->out];
    char number[16];
    const char *preload = getenv("KREGISTRY_TEST_NO_MEMORY");
    int at = 1;
    if (!preload || !*preload || (_i >= 2 && !(available & SOFTCUDA)))
        return;
    const answer *a = run(commands[_i]);
    const int code = a->code;
    memcpy(whole, a->out, sizeof whole);
    setenv("LD_PRELOAD", preload, 1);
    for (int same = 0; same < 3; at++) { /* past the last allocation, or those that have another way */
        snprintf(number, sizeof number, "%d", at);
        setenv("NO_MEMORY_AT", number, 1);
        a = run(commands[_i]);
        same = strcmp(a->out, whole) == 0 && a->code == code ? same + 1 : 0;
        json_t *document = json_loads(a->out, 0, NULL);
        const char *status = json_string_value(json_object_get(json_object_get(document, "error"), "status"));
        ck_assert_msg(same || (a->code == 1 && status && strcmp(status, "KR_OUT_OF_HOST_MEMORY") == 0),
                      "%s without memory at %d: exit code %d\n%s%s", commands[_i], at, a->code, a->out,
                      a->err);
        json_decref(document);
    }
    unsetenv("LD_PRELOAD");
    ck_assert_int_gt(at, 20);
}
END_TEST

/* Killed while it writes, it leaves what was there. */
START_TEST(killed_while_writing)
{
    static const row outputs[] = {
        {"embed " PACK " -o TMP/kept.c", 0, NULL, 0},
        {"embed " PACK " -o TMP/kept.o", 0, NULL, 0},
        {"relevel " HOSTS "small.ptx --lowest -o TMP/kept.ptx", 0, NULL, 0},
        {"pack --ops " PACK " --ptx 75 -o TMP/kept.pack", 0, NULL, NVRTC},
        {"compile OPS/at_least.cu --arch compute_80 -o TMP/kept.ptx", 0, NULL, NVRTC},
        {SOFT "link " HOSTS "small.ptx --nvjitlink none -o TMP/kept.cubin", 0, NULL, SOFTCUDA},
    };
    const char *preload = getenv("KREGISTRY_TEST_KILLED");
    for (size_t i = 0; preload && *preload && i < sizeof outputs / sizeof *outputs; i++) {
        char check[256];
        if (outputs[i].needs & ~available)
            continue;
        const char *kept = strstr(outputs[i].words, "TMP/kept");
        snprintf(check, sizeof check, "echo old >%s", kept);
        shell(check);
        setenv("LD_PRELOAD", preload, 1);
        const int code = run(outputs[i].words)->code;
        unsetenv("LD_PRELOAD");
        ck_assert_msg(code == -1 || code == 128 + SIGKILL, "%s: %d", outputs[i].words, code);
        snprintf(check, sizeof check, "test \"$(cat %s)\" = old && rm TMP/kept*", kept);
        shell(check);
    }
}
END_TEST

/* What does not fit is not written, nor is a part of it. */
START_TEST(embed_without_memory)
{
    static const char *const outputs[] = {"TMP/none.c", "TMP/none.o"};
    const char *preload = getenv("KREGISTRY_TEST_NO_MEMORY");
    if (!preload || !*preload)
        return;
    for (size_t i = 0; i < sizeof outputs / sizeof *outputs; i++) {
        char command[64];
        snprintf(command, sizeof command, "embed " PACK " -o %s", outputs[i]);
        setenv("LD_PRELOAD", preload, 1);
        setenv("NO_MEMORY_ABOVE", "25000", 1); /* the pack has more */
        const answer *a = run(command);
        unsetenv("NO_MEMORY_ABOVE");
        unsetenv("LD_PRELOAD");
        ck_assert_int_eq(a->code, 1);
        ck_assert_ptr_nonnull(strstr(a->err, "out of host memory"));
    }
    shell("test ! -e TMP/none.c && test ! -e TMP/none.o");
}
END_TEST

/* nvJitLink is not ours, and what is damaged may end it. */
START_TEST(a_crash_of_the_linker_is_told)
{
    shell("mkdir -p TMP/crash && cp $KREGISTRY_TEST_FAKE_NVJITLINK TMP/crash/libnvJitLink.so.12");
    setenv("FAKE_NVJITLINK_SIGNAL", "6", 1);
    const answer *a = run("link OPS/../../front/data/k75.ptx -o TMP/crash/k.cubin --arch 75 --nvjitlink TMP/crash");
    ck_assert_msg(a->code == 2 && strstr(a->err, "the linker crashed (Aborted)"), "%d %s", a->code, a->err);
    a = run("link OPS/../../front/data/k75.ptx -o TMP/crash/k.cubin --arch 75 --nvjitlink TMP/crash --json");
    json_t *document = json_loads(a->out, 0, NULL);
    ck_assert_msg(a->code == 2 && json_object_get(document, "error"), "%d %s", a->code, a->out);
    json_decref(document);
    setenv("FAKE_NVJITLINK_SIGNAL", "15", 1); /* that is no fault of the inputs */
    a = run("link OPS/../../front/data/k75.ptx -o TMP/crash/k.cubin --arch 75 --nvjitlink TMP/crash");
    ck_assert_msg(a->code == -1 || a->code == 128 + SIGTERM, "%d %s", a->code, a->err);
    unsetenv("FAKE_NVJITLINK_SIGNAL");
    shell("test ! -e TMP/crash/k.cubin");
    if (available & SOFTCUDA)
        shell("env --ignore-signal=CHLD $KREGISTRY_TEST_COMMAND link --driver softcuda --nvjitlink none OPS/../../front/data/k75.ptx -o TMP/crash/k.cubin");
}
END_TEST

START_TEST(doctor_looks_at_the_cache)
{
    if (!(available & SOFTCUDA) || !(available & NVRTC))
        return;
    for (int i = 0; i < 2; i++) {
        const answer *a = run(SOFT "doctor --cache-dir TMP/looked/at");
        ck_assert_msg(a->code == 0 && strstr(a->out, "ok       cache") && strstr(a->out, "/looked/at"), "%s",
                      a->out);
        ck_assert_msg(strstr(a->out, "(nvrtc)") != NULL, "%s", a->out); /* it really compiles */
    }
    const answer *a = run(SOFT "doctor --cache-dir /dev/null/x");
    ck_assert_msg(a->code == 0 && strstr(a->out, "warning  cache"), "%s", a->out);
    ck_assert_ptr_nonnull(strstr(a->out, "Not a directory"));
    ck_assert_ptr_nonnull(strstr(a->out, "or set KREGISTRY_CACHE_DIR to another, or to none."));
    ck_assert_ptr_null(strstr(run(SOFT "doctor --no-cache")->out, "cache"));
}
END_TEST

/* Advice is for what is wrong. */
START_TEST(doctor_advises_the_sick)
{
    size_t i;
    json_t *check;
    if (!(available & SOFTCUDA))
        return;
    json_t *document = json_loads(run(SOFT "doctor --json")->out, 0, NULL);
    json_array_foreach(json_object_get(document, "checks"), i,
                       check) if (json_is_true(json_object_get(check, "ok")))
        ck_assert(json_is_null(json_object_get(check, "advice")));
    ck_assert_uint_gt(i, 0);
    json_decref(document);
    shell(
        "mkdir -p TMP/root/lib64 TMP/root/include && cd TMP/root/include && touch cuda_fp16.h && "
        "echo '#define CUDA_VERSION 12010' >cuda.h && cp $KREGISTRY_TEST_FAKE_NVRTC ../lib64/libnvrtc.so.12");
    const answer *a = run(SOFT "doctor --nvrtc TMP/root");
    ck_assert_msg(strstr(a->out, "warning  headers          12.1 ("), "%s", a->out);
    ck_assert_ptr_nonnull(strstr(a->out, "Put headers of NVRTC's own version beside it"));
    shell("rm -r TMP/root");
}
END_TEST

/* ---- processes ---- */

static pid_t child_of(pid_t parent)
{
    char path[64], ids[64] = "";
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", parent, parent);
    FILE *file = fopen(path, "r");
    if (file) {
        ids[fread(ids, 1, sizeof ids - 1, file)] = '\0';
        fclose(file);
    }
    return (pid_t)atoi(ids);
}

/* Waits for up to ten seconds. */
static bool ends(pid_t child)
{
    for (int i = 0; i < 100; i++, usleep(100000))
        if (waitpid(child, NULL, WNOHANG) == child)
            return true;
    kill(child, SIGKILL);
    return false;
}

/* However the verification is ended, its worker does not compute on. */
START_TEST(workers_end_with_their_parent)
{
    static const int signals[] = {SIGKILL, SIGTERM};
    char ops[1024];
    pid_t parent, worker = 0;
    if ((SOFTCUDA | NVRTC) & ~available || access("/proc/thread-self/children", R_OK))
        return;
    expand("OPS/hangs.cu", ops, sizeof ops);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    parent = fork();
    if (!parent) {
        execl(getenv("KREGISTRY_TEST_COMMAND"), "kregistry", "verify", "hangs", "--ops", ops, "--shape",
              "100", "--driver", "softcuda", "-q", NULL);
        _exit(127);
    }
    for (int i = 0; i < 100 && !(worker = child_of(parent)); i++)
        usleep(100000);
    ck_assert_int_gt(worker, 0);
    usleep(500000); /* in the kernel, or nearly */
    kill(parent, signals[_i]);
    waitpid(parent, NULL, 0);
    ck_assert(ends(worker));
}
END_TEST

/* A softcuda that is named is the one to complain about. */
START_TEST(softcuda_by_the_variable)
{
    if (getenv("KREGISTRY_DRIVER") || !strstr(run("devices --driver nvidia")->out, "0 devices: "))
        return;
    setenv("KREGISTRY_SOFTCUDA", "/no/such/libcuda.so.1", 1);
    const answer *a = run("run fill --n 10");
    ck_assert_int_eq(a->code, 3);
    ck_assert_msg(strstr(a->err, "/no/such/libcuda.so.1") != NULL, "%s", a->err);
}
END_TEST

/* The variable binds as the option does. */
START_TEST(nvrtc_by_the_variable)
{
    setenv("KREGISTRY_NVRTC", "/no/such/file", 1);
    const answer *a = run("check saxpy --cc 9.0");
    ck_assert_int_eq(a->code, 2);
    ck_assert_ptr_nonnull(strstr(a->err, "KREGISTRY_NVRTC names"));
    ck_assert_ptr_null(strstr(strchr(a->err, '\n'), "/no/such/file")); /* once is enough */
    ck_assert_int_eq(run("check saxpy --cc 9.0 --nvrtc none --nvrtc-archs 90")->code, 0);
    ck_assert_int_eq(run("list saxpy")->code, 0);
    a = run("version");
    ck_assert_int_eq(a->code, 0);
    ck_assert_msg(strstr(a->out, "NVRTC none: what KREGISTRY_NVRTC names") != NULL, "%s%s", a->out, a->err);
    setenv("KREGISTRY_NVRTC", "none", 1);
    ck_assert_ptr_nonnull(strstr(run("version")->out, "NVRTC none"));
}
END_TEST

/* The wait for a kernel that never ends does, and the ops after it are checked. */
START_TEST(a_hang_ends_one_op)
{
    if ((SOFTCUDA | NVRTC) & ~available)
        return;
    const answer *a =
        run(SOFT "verify '[hi]*' --ops OPS/hangs.cu --variant waits --shape 100 --limit 2 --json");
    json_t *document = json_loads(a->out, 0, NULL);
    ck_assert_int_eq(a->code, 1);
    json_t *failure = json_array_get(json_object_get(document, "failures"), 0);
    ck_assert_str_eq(json_string_value(json_object_get(failure, "what")), "hang");
    ck_assert_str_eq(json_string_value(json_object_get(failure, "shape")), "100");
    ck_assert_ptr_nonnull(
        strstr(json_string_value(json_object_get(failure, "repeat")), "hangs --variant waits"));
    ck_assert_ptr_nonnull(strstr(json_string_value(json_object_get(failure, "got")), "2 seconds"));
    json_decref(document);
}
END_TEST

/* libcuda.so.1 is the driver's name, and libcuda.so what is left where only that is there. */
START_TEST(a_driver_on_the_path)
{
    static const char *const names[] = {"libcuda.so.1", "libcuda.so"};
    char command[4096], file[128];
    if (!(available & SOFTCUDA) ||
        strstr(run("devices --driver nvidia")->out, "0 devices: no NVIDIA driver") == NULL)
        return;
    snprintf(file, sizeof file, "%s/%s", temporary, names[_i]);
    snprintf(command, sizeof command, "cp '%s' %s", getenv("KREGISTRY_SOFTCUDA"), file);
    ck_assert_int_eq(system(command), 0);
    setenv("LD_LIBRARY_PATH", temporary, 1);
    const answer *a = run("devices --driver nvidia");
    remove(file);
    ck_assert_msg(strstr(a->out, file) != NULL, "%s%s", a->out, a->err);
}
END_TEST

/* A busy device is told, not left out: nothing of it was verified. On the scripted driver of tests/runtime.
 */
START_TEST(a_busy_device)
{
    char words[4096];
    setenv("FAKE_BUSY_DEVICE", "1", 1);
    snprintf(words, sizeof words, "verify fill.f32 --shape 0 --driver '%s' --device 1",
             getenv("KREGISTRY_TEST_FAKE"));
    const answer *a = run(words);
    ck_assert_int_eq(a->code, 3);
    ck_assert_msg(strstr(a->err, "device 1 (Fake 1): the device is busy") != NULL, "%s", a->err);
    snprintf(words, sizeof words, "devices --driver '%s'", getenv("KREGISTRY_TEST_FAKE"));
    ck_assert_int_eq(run(words)->code, 0);
}
END_TEST

/* The same device by its ordinal, UUID and PCI id. */
START_TEST(a_device_by_any_name)
{
    static const char *const names[] = {"ordinal", "uuid", "pci"};
    if ((SOFTCUDA | IMAGES) & ~available)
        return;
    setenv("KREGISTRY_SOFTCUDA_DEVICES", "sm_75,sm_90", 1);
    json_t *devices = json_loads(run(SOFT "devices --json")->out, 0, NULL);
    json_t *device = json_array_get(json_object_get(devices, "devices"), 1);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char words[256];
        const char *name = json_string_value(json_object_get(device, names[i]));
        snprintf(words, sizeof words, SOFT "run fill --n 10 --json --device %s", name ? name : "1");
        json_t *document = json_loads(run(words)->out, 0, NULL);
        json_t *used = find(document, "runs/device", strlen("runs/device"));
        ck_assert_msg(used && json_integer_value(used) == 1, "%s", words);
        json_decref(document);
    }
    json_decref(devices);
    unsetenv("KREGISTRY_SOFTCUDA_DEVICES");
}
END_TEST

/* Nothing to run on has three reasons, and each is told as what it is. */
START_TEST(why_there_are_no_devices)
{
    char words[4096];
    snprintf(words, sizeof words, "devices --driver '%s'", getenv("KREGISTRY_TEST_STUB"));
    ck_assert_ptr_nonnull(strstr(run(words)->out, "0 devices: "));
    ck_assert_ptr_nonnull(strstr(run(words)->out, "link stub"));
    ck_assert_ptr_nonnull(strstr(run(NO_DRIVER "devices")->out, "cannot be opened"));
    if (!(available & SOFTCUDA))
        return;
    setenv("KREGISTRY_SOFTCUDA_DEVICES", "", 1);
    const answer *a = run(SOFT "devices");
    ck_assert_int_eq(a->code, 0);
    ck_assert_ptr_nonnull(strstr(a->out, "CUDA_ERROR_NO_DEVICE"));
    ck_assert_ptr_nonnull(strstr(run(SOFT "run saxpy")->err, "KREGISTRY_SOFTCUDA_DEVICES is empty"));
    unsetenv("KREGISTRY_SOFTCUDA_DEVICES");
}
END_TEST

/* What is said depends on the simulated driver: no device that it knows, and a toolkit newer than itself. */
START_TEST(simulated_machines)
{
    if (!(available & SOFTCUDA))
        return;
    setenv("KREGISTRY_SOFTCUDA_DEVICES", "sm_11", 1);
    const answer *a = run(SOFT "run fill --n 10");
    ck_assert_int_eq(a->code, 3);
    ck_assert_msg(strstr(a->err, "variable that softcuda names"), "%s", a->err);
    char line[4096];
    setenv("KREGISTRY_SOFTCUDA_DEVICES", "sm_75", 1);
    setenv("KREGISTRY_SOFTCUDA_FAIL", "attribute:75=6", 1); /* a compute capability of 6.5 */
    snprintf(line, sizeof line, SOFT "run fill --n 10 --nvrtc %s", getenv("KREGISTRY_TEST_FAKE_NVRTC"));
    a = run(line);
    unsetenv("KREGISTRY_SOFTCUDA_FAIL");
    ck_assert_int_eq(a->code, 1);
    ck_assert_msg(strstr(a->err, "add machine code for sm_65, ") &&
                      strstr(a->err, "use an NVRTC of an earlier CUDA."),
                  "%s", a->err);
    setenv("KREGISTRY_SOFTCUDA_DRIVER", "11.4", 1);
    a = run(SOFT "run scale --n 10 --nvrtc none --ops " PACK); /* whose PTX is newer than this driver */
    ck_assert_int_eq(a->code, 0);
    ck_assert_msg(strstr(a->out, "releveled to 7.4 for the driver (CUDA 11.4)"), "%s", a->out);
    unsetenv("KREGISTRY_SOFTCUDA_DEVICES");
    if (available & SHIPPED)
        ck_assert_int_eq(run(SOFT "run fill --n 10 --nvrtc none")->code, 0); /* it is as old as it can be */
    if (available & NVRTC) {
        setenv("CUDA_FORCE_PTX_JIT", "1", 1);
        a = run(SOFT "run at_least --n 60 --ops OPS/at_least.cu");
        unsetenv("CUDA_FORCE_PTX_JIT");
        ck_assert_int_eq(a->code, 0);
        ck_assert_msg(strstr(a->out, "(nvrtc)") && strstr(a->out, "releveled to 7.4"), "%s", a->out);
    }
    if (available & NVRTC_12) {
        a = run(SOFT "run at_least --n 60 --ops OPS/at_least.cu"); /* no machine code of CUDA 12 or 13 */
        ck_assert_int_eq(a->code, 0);
        ck_assert_msg(strstr(a->out, "ptx compute_90 (nvrtc)"), "%s", a->out);
        a = run(SOFT "doctor");
        ck_assert_ptr_nonnull(strstr(a->out, "warning  versions"));
        ck_assert_ptr_nonnull(strstr(a->out, "newer than the driver (CUDA 11.4)"));
        ck_assert_ptr_nonnull(strstr(a->out, "Use an NVRTC that is not newer"));
    }
}
END_TEST

/* The foreign code comes with its name and function. */
START_TEST(json_of_a_fault)
{
    if ((SOFTCUDA | NVRTC) & ~available)
        return;
    json_t *document = json_loads(run(SOFT "run faults --ops OPS/faults.cu --n 10 --json")->out, 0, NULL);
    json_t *error = json_object_get(document, "error");
    ck_assert_int_eq(json_integer_value(json_object_get(error, "code")), 700);
    ck_assert_str_eq(json_string_value(json_object_get(error, "api")), "cuda");
    ck_assert_str_eq(json_string_value(json_object_get(error, "code_name")), "CUDA_ERROR_ILLEGAL_ADDRESS");
    ck_assert_ptr_nonnull(json_object_get(error, "function"));
    ck_assert_str_eq(json_string_value(json_object_get(error, "op")), "faults");
    json_decref(document);
    document = json_loads(run(SOFT "run saxpy.f32 --n ten --json")->out, 0, NULL);
    ck_assert_str_eq(json_string_value(find(document, "error/op", strlen("error/op"))), "saxpy.f32");
    json_decref(document);
}
END_TEST

/* A file's error comes with errno's number and name, whoever met it. */
START_TEST(json_of_a_file)
{
    static const char *const ways[] = {"compile OPS/none.cu -o TMP/x.ptx --json",
                                       "list --ops OPS/none --json",
                                       "compile OPS/faults.cu -o TMP/none/x.ptx --arch sm_75 --json"};
    if (_i != 1 && !(available & NVRTC))
        return;
    json_t *document = json_loads(run(ways[_i])->out, 0, NULL);
    json_t *error = json_object_get(document, "error");
    ck_assert_int_eq(json_integer_value(json_object_get(error, "code")), ENOENT);
    ck_assert_str_eq(json_string_value(json_object_get(error, "api")), "errno");
    ck_assert_str_eq(json_string_value(json_object_get(error, "code_name")), "ENOENT");
    json_decref(document);
}
END_TEST

/* Only the words, and only where that is wanted. */
START_TEST(colors)
{
    ck_assert_ptr_nonnull(strstr(run("list nothing --color always")->err, "\033[31merror\033[0m: "));
    ck_assert_ptr_null(strchr(run("list nothing --color auto")->err, '\033'));
    ck_assert_ptr_null(strchr(run("list nothing")->err, '\033'));
    const answer *a = run("explain saxpy.f32 --cc 9.0 --nvrtc-archs 90 --color always");
    ck_assert_ptr_nonnull(strstr(a->out, "\033[32mchosen  \033[0m"));
    if ((SOFTCUDA | IMAGES) & ~available)
        return;
    ck_assert_ptr_nonnull(strstr(run(SOFT "run fill --n 10 --color always")->out, "\033[32mverified\033[0m"));
    ck_assert_ptr_null(strchr(run(SOFT "run fill --n 10 --color always --json")->out, '\033'));
}
END_TEST

/* What the environment asks of choosing is obeyed, named in the reasons, and refused where it is nonsense. */
static const struct {
    const char *variable, *value, *words;
    int code;
    const char *says;
    int needs;
} environment[] = {
    {"KREGISTRY_MAX_CC", "8.x", "list saxpy", 2, "KREGISTRY_MAX_CC is \"8.x\"", 0},
    {"KREGISTRY_MAX_CC", "8.0", "explain saxpy.f32 --cc 9.0 --nvrtc-archs 75,80,90", 0, "nvrtc compute_80",
     0},
    {"KREGISTRY_MAX_CC", "4.0", "check saxpy.f32 --cc 9.0 --nvrtc-archs 75", 1, "KREGISTRY_MAX_CC is 4.0", 0},
    {"KREGISTRY_VARIANT", "saxpy=grid", "explain saxpy.f32 --cc 9.0 --nvrtc-archs 90", 0,
     "KREGISTRY_VARIANT asks for grid", 0},
    {"KREGISTRY_VARIANT", "invert=late", "explain invert --ops " PACK " --cc 8.6", 1,
     "Unset KREGISTRY_VARIANT.", 0},
    {"KREGISTRY_VARIANT", "saxpy=gird", "list saxpy", 2, "Its variants are grid, vec4", 0},
    {"KREGISTRY_VARIANT", "saxpi=grid", "check fill --cc 9.0", 2, "Did you mean \"saxpy\"?", 0},
    {"KREGISTRY_VARIANT", "saxpy=grid", SOFT "run saxpy.f32 --n 100", 0, "\n  grid, ", SOFTCUDA | NVRTC},
    {"CUDA_FORCE_PTX_JIT", "1", "explain saxpy.f32 --cc 9.0 --nvrtc-archs 90", 0, "CUDA_FORCE_PTX_JIT is set",
     0},
    {"CUDA_FORCE_JIT", "1", SOFT "run saxpy.f32 --n 100", 0, "ptx compute_", SOFTCUDA | NVRTC},
    {"CUDA_DISABLE_PTX_JIT", "1", "check saxpy --cc 9.0 --nvrtc-archs 90", 0, "0 missing", 0},
    {"CUDA_DISABLE_PTX_JIT", "1", "check --ops " PACK " --cc 9.0 --no-nvrtc", 0, "0 missing", 0},
    {"CUDA_DISABLE_PTX_JIT", "1", "check scale --ops " PACK " --cc 9.0,12.0 --no-nvrtc", 1,
     "Unset CUDA_DISABLE_PTX_JIT, or add machine code for sm_120.", 0},
    {"CUDA_DISABLE_JIT", "1", "check saxpy --cc 9.0 --nvrtc-archs 80", 1, "CUDA_DISABLE_JIT is set", 0},
    {"CUDA_DISABLE_JIT", "1", SOFT "run saxpy.f32 --n 100 --nvrtc none", 1, "there is no NVRTC", SOFTCUDA},
};

START_TEST(the_environment_counts)
{
    if (environment[_i].needs & ~available)
        return;
    setenv(environment[_i].variable, environment[_i].value, 1);
    const answer *a = run(environment[_i].words);
    unsetenv(environment[_i].variable);
    ck_assert_msg(a->code == environment[_i].code, "%s: exit code %d\n%s%s", environment[_i].words, a->code,
                  a->out, a->err);
    ck_assert_msg(strstr(a->out, environment[_i].says) || strstr(a->err, environment[_i].says),
                  "%s: no \"%s\" in\n%s%s", environment[_i].words, environment[_i].says, a->out, a->err);
}
END_TEST

/* Every refusal of an empty cell is in its reason, and each failure of a driver in the error. */
START_TEST(nothing_is_left_out)
{
    const answer *a = /* of an op that has no image */
        run("check axpy.f32 --ops OPS/../../registry/ops/axpy.cu --cc 6.0,9.0 --nvrtc-archs 90 --json");
    json_t *document = json_loads(a->out, 0, NULL);
    const json_t *cells = json_object_get(json_array_get(json_object_get(document, "ops"), 0), "cells");
    const char *reason = json_string_value(json_object_get(json_array_get(cells, 0), "reason"));
    ck_assert_int_eq(a->code, 1);
    ck_assert_msg(reason && strstr(reason, "vec nvrtc: ") && strstr(reason, "; plain nvrtc: "), "%s", a->out);
    ck_assert_int_eq(json_integer_value(json_object_get(document, "missing")), 1);
    json_decref(document);
    if (!(available & SOFTCUDA) || !(available & NVRTC))
        return;
    setenv("KREGISTRY_SOFTCUDA_FAIL", "cuLibraryLoadData=222,cuModuleLoadDataEx=222", 1);
    a = run(SOFT "run saxpy.f32 --n 100 --json");
    unsetenv("KREGISTRY_SOFTCUDA_FAIL");
    document = json_loads(a->out, 0, NULL);
    const json_t *error = json_object_get(document, "error");
    const char *message = json_string_value(json_object_get(error, "message"));
    ck_assert_int_eq(a->code, 1);
    ck_assert_int_eq(json_integer_value(json_object_get(error, "code")), 222);
    ck_assert_msg(message && strstr(message, "vec4 nvrtc sm_") && strstr(message, "grid nvrtc sm_"), "%s",
                  a->out);
    json_decref(document);
}
END_TEST

START_TEST(falls_back_aloud)
{
    if ((SOFTCUDA | IMAGES) & ~available || getenv("KREGISTRY_DRIVER"))
        return;
    const answer *a = run("run fill.f32 --n 100 --driver auto");
    ck_assert_int_eq(a->code, 0);
    if (strstr(a->err, "no NVIDIA driver: no libcuda.so.1 on ")) {
        ck_assert_ptr_nonnull(strstr(a->err, " known folders; running on softcuda\n"));
        ck_assert_int_lt(strlen(a->err), 120);
        ck_assert_ptr_nonnull(strstr(run("-v devices --driver auto")->err, "\n/usr/lib64/libcuda.so.1: "));
    } else {
        ck_assert(strstr(a->err, "; running on softcuda") || strstr(a->out, "NVIDIA"));
    }
}
END_TEST

static bool ships_images(void)
{
    const kr_op *op;
    kr_registry *registry = NULL;
    bool ships = kr_registry_create(NULL, NULL, &registry, NULL) == KR_OK &&
                 kr_registry_find(registry, "saxpy.f32", &op, NULL, NULL) == KR_OK &&
                 kr_registry_shipped(registry, op, 0, NULL, 0) > 0;
    kr_registry_destroy(&registry);
    return ships;
}

static void look_around(void)
{
    static const struct {
        int what;
        const char *name;
    } parts[] = {{SOFTCUDA, "softcuda"},
                 {NVRTC, "NVRTC"},
                 {NVRTC_12, "NVRTC 12 or later"},
                 {SHIPPED, "shipped images"}};
    kr_runtime *runtime = NULL;
    kr_nvrtc *nvrtc = NULL;
    kr_runtime_options to = {.struct_size = sizeof to, .driver = getenv("KREGISTRY_SOFTCUDA")};
    if (to.driver && kr_runtime_create(&to, &runtime, NULL) == KR_OK)
        available |= SOFTCUDA;
    if (ships_images())
        available |= SHIPPED | IMAGES;
    if (kr_nvrtc_open(NULL, &nvrtc, NULL) == KR_OK)
        available |= NVRTC | IMAGES | (kr_nvrtc_get_info(nvrtc).major >= 12 ? NVRTC_12 : 0);
    kr_runtime_destroy(&runtime);
    kr_nvrtc_close(&nvrtc);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        fprintf(stderr, "%s: %s\n", parts[i].name,
                available & parts[i].what ? "yes" : "no: what needs it is skipped");
}

/* Packs and a source that no longer are what v1.pack is. */
static bool make_damaged(void)
{
    char line[2048];
    expand("cd TMP && for f in damaged.pack newer.pack damaged_image.pack same.c; do cp " PACK " $f; done && "
           "w() { printf '\\377' | dd of=$1 bs=1 seek=$2 conv=notrunc 2>/dev/null; } && "
           "w damaged.pack 100 && w newer.pack 8 && w damaged_image.pack 6000 && "
           "printf '.version 9.0\\n.target sm_75\\n.address_size 32\\n' >narrow.ptx && "
           "cat " HOSTS "s64.so damaged.pack >damaged_pack.so && "
           "{ cat " HOSTS "s64.so && head -c 26000 " PACK "; } >cut_pack.so && "
           "sed 's/a \\* x/x[i] * a + 0 * x/' OPS/../../registry/packs/scale.cu >scale.cu",
           line, sizeof line);
    return system(line) == 0;
}

int main(void)
{
    char clean[64];
    look_around();
    if (!mkdtemp(temporary) || !make_damaged())
        return EXIT_FAILURE;
    Suite *suite = suite_create("cli");
    TCase *cases = tcase_create("command");
    tcase_add_loop_test(cases, text, 0, sizeof rows / sizeof *rows);
    tcase_add_loop_test(cases, json, 0, sizeof rows / sizeof *rows);
    tcase_add_loop_test(cases, keys, 0, sizeof promises / sizeof *promises);
    tcase_add_test(cases, a_fault_ends_one_op);
    tcase_add_test(cases, repeat_repeats);
    tcase_add_loop_test(cases, no_reference_is_not_verified, 0, 2);
    tcase_add_test(cases, kernels_print_elsewhere);
    tcase_add_test(cases, any_bytes_are_json);
    tcase_add_test(cases, no_byte_commands_the_terminal);
    tcase_add_test(cases, repeat_repeats_ops);
    tcase_add_test(cases, a_nul_in_a_source);
    tcase_add_test(cases, kept_between_commands);
    tcase_add_test(cases, outputs_are_written_as_they_are);
    tcase_add_test(cases, packs_of_what);
    tcase_add_test(cases, machine_code_of_a_newer_cuda);
    tcase_add_test(cases, a_name_as_long_as_can_be);
    tcase_add_test(cases, a_file_larger_than_any_image);
    tcase_add_test(cases, a_pack_is_whole_or_not_there);
    tcase_add_test(cases, a_trace_is_whole_or_not_there);
    tcase_add_loop_test(cases, output_that_goes_nowhere, 0, 4);
    tcase_add_loop_test(cases, json_without_memory, 0, 4);
    tcase_add_test(cases, killed_while_writing);
    tcase_add_test(cases, embed_without_memory);
    tcase_add_test(cases, a_crash_of_the_linker_is_told);
    tcase_add_test(cases, doctor_looks_at_the_cache);
    tcase_add_test(cases, doctor_advises_the_sick);
    tcase_add_loop_test(cases, workers_end_with_their_parent, 0, 2);
    tcase_add_test(cases, softcuda_by_the_variable);
    tcase_add_test(cases, nvrtc_by_the_variable);
    tcase_add_test(cases, a_hang_ends_one_op);
    tcase_add_loop_test(cases, a_driver_on_the_path, 0, 2);
    tcase_add_test(cases, a_busy_device);
    tcase_add_test(cases, a_device_by_any_name);
    tcase_add_test(cases, why_there_are_no_devices);
    tcase_add_test(cases, simulated_machines);
    tcase_add_test(cases, json_of_a_fault);
    tcase_add_loop_test(cases, json_of_a_file, 0, 3);
    tcase_add_test(cases, colors);
    tcase_add_loop_test(cases, the_environment_counts, 0, sizeof environment / sizeof *environment);
    tcase_add_test(cases, nothing_is_left_out);
    tcase_add_test(cases, falls_back_aloud);
    tcase_set_timeout(cases, 60);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    snprintf(clean, sizeof clean, "rm -r %s", temporary);
    return system(clean) || failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
