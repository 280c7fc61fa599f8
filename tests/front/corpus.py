#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The front end over all PTX that compilers make of cuda/ and of the ops: hours on one core.

    corpus.py BUILD [WORD...]     only of the sources, makers and options with one of these words

Each is read, printed and read again as the same, and its print is assembled to the same code (test_front_corpus
does this); then `kregistry relevel --lowest` of it is assembled by the oldest ptxas that knows that .version,
and for each driver of DRIVERS what relevel gives is assembled by that toolkit's ptxas, and what it refuses refused, in that
line.
What ptxas itself refuses is left out.

The compilers are nvcc ($NVCC) for all that it knows, and each NVRTC in $NVRTCS: VERSION/nvidia/cuda_nvrtc, cuda_runtime,
cuda_cccl and cuda_nvcc, as the wheels of PyPI hold them. Assemblers: $PTXASES, VERSION/ptxas each.
"""
import ctypes
import glob
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
NVCC = os.environ.get("NVCC", "/usr/local/cuda/bin/nvcc")
ISA = {"11.8": 78, "12.0": 80, "12.1": 81, "12.2": 82, "12.3": 83, "12.4": 84, "12.5": 85, "12.6": 85, "12.8": 87,
       "12.9": 88, "13.0": 90}  # of a toolkit: its newest .version
DRIVERS = ["12.0", "12.4", "12.8", "12.9"]
ORDERED = sorted(ISA, key=lambda version: (ISA[version], version))


AN_OP = """#ifdef __CUDACC_RTC__
typedef unsigned char uint8_t;
typedef int int32_t;
typedef unsigned uint32_t;
typedef long long int64_t;
typedef unsigned long long uint64_t;
#else
#include <cmath>
#include <cstdint>
#endif
typedef float T;
"""


def sources():
    """(name, text)"""
    for path in sorted(glob.glob(HERE + "/cuda/*.cu") + glob.glob(HERE + "/../../kernels_src/*.cu")):
        text = open(path, encoding="utf-8").read()
        if "kernels_src" in path: # all its variants, for a float
            variants = sorted(set(re.findall(r"KR_VARIANT_[a-z0-9_]*", text)))
            text = AN_OP + "".join(f"#define {one}\n" for one in variants) + text
        yield os.path.basename(path)[:-3], text


def run(*command):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)


# ---- compilers: functions of a source, an architecture and options, to PTX or None ----

INCLUDES = ["-I" + os.path.normpath(HERE + "/../../kernels_src")]


def nvcc(text, architecture, options):
    with tempfile.TemporaryDirectory() as folder:
        source, ptx = folder + "/made.cu", folder + "/made.ptx"
        with open(source, "w", encoding="utf-8") as file:
            file.write(text)
        done = run(NVCC, "-ptx", "-std=c++17", "-rdc=true", "-w", "-arch=" + architecture, *INCLUDES, *options, source, "-o", ptx)
        return open(ptx, encoding="utf-8").read() if not done.returncode else None


def nvrtc(folder):
    for name in ("libnvrtc-builtins.so", "libnvrtc.so"):
        [library] = glob.glob(f"{folder}/nvidia/cuda_nvrtc/lib/{name}.*")
        lib = ctypes.CDLL(library)
    includes = INCLUDES + [f"-I{folder}/nvidia/{one}/include" for one in ("cuda_runtime", "cuda_cccl", "cuda_nvcc")]
    names = (ctypes.c_char_p * 4)(b"assert.h", b"cassert", b"stdio.h", b"cstdio") # NVRTC has none
    headers = (ctypes.c_char_p * 4)(*4 * [b"#define assert(true) ((true) ? (void)0 : __trap())\n"])

    def compiled(text, architecture, options):
        program, size = ctypes.c_void_p(), ctypes.c_size_t()
        given = ["-arch=" + architecture.replace("sm", "compute"), "-std=c++17", "-rdc=true", "-w", "--device-int128", *includes, *options]
        lib.nvrtcCreateProgram(ctypes.byref(program), text.encode(), b"made.cu", 4, headers, names)
        answer = None
        if not lib.nvrtcCompileProgram(program, len(given), (ctypes.c_char_p * len(given))(*[one.encode() for one in given])):
            lib.nvrtcGetPTXSize(program, ctypes.byref(size))
            ptx = ctypes.create_string_buffer(size.value)
            lib.nvrtcGetPTX(program, ptx)
            answer = ptx.value.decode()
        lib.nvrtcDestroyProgram(ctypes.byref(program))
        return answer
    return compiled, [f"sm_{n}" for n in architectures_of(lib)]


def architectures_of(lib):
    n = ctypes.c_int()
    lib.nvrtcGetNumSupportedArchs(ctypes.byref(n))
    list_of = (ctypes.c_int * n.value)()
    lib.nvrtcGetSupportedArchs(list_of)
    return list(list_of)


def makers():
    """(name, its toolkit's version, compile, architectures)"""
    if os.path.exists(NVCC):
        version = re.search(r"release (\d+\.\d+)", run(NVCC, "--version").stdout)[1]
        listed = run(NVCC, "--list-gpu-arch").stdout.split()
        own = [one + letter for one in listed for letter in "af"]
        known = [one for one in listed + own if not run(NVCC, "-arch=" + one, "--dryrun", "x.cu").returncode]
        yield "nvcc " + version, version, nvcc, [one.replace("compute", "sm") for one in known]
    for folder in sorted(glob.glob(os.environ.get("NVRTCS", "") + "/[0-9]*")):
        version = os.path.basename(folder)
        if glob.glob(folder + "/nvidia/cuda_nvrtc"):
            yield "NVRTC " + version, version, *nvrtc(folder)


# ---- what is proven of each ----

def ptxas(version):
    return f"{os.environ.get('PTXASES', '')}/{version}/ptxas"


def assembled(path, version):
    """None, or what ptxas says. It has code for nothing older than its own oldest target."""
    target = re.search(r"^\.target (sm_(\d+)\w*)", open(path, encoding="utf-8").read(), re.M)
    least = 35 if version == "11.8" else 50 if ISA[version] < 90 else 75
    architecture = target[1] if int(target[2]) >= least else f"sm_{least}"
    done = run(ptxas(version), "-arch=" + architecture, "-c", "-o", "/dev/null", path)
    return done.stdout if done.returncode else None


def lowered(build, path, out):
    """What is wrong with the lowest level, or None."""
    done = run(build + "/tools/kregistry", "relevel", path, "--lowest", "-o", out)
    if done.returncode:
        return done.stdout
    isa = int(re.search(r"^\.version (\d+\.\d)", open(out, encoding="utf-8").read(), re.M)[1].replace(".", ""))
    fits = next(version for version in ORDERED if ISA[version] >= isa and os.path.exists(ptxas(version)))
    said = assembled(out, fits)
    return f".version {isa}, ptxas {fits}: {said}" if said else None


def kernels(ptx):
    """Each alone, with all that stands around them, on the lines where it was."""
    spans = []
    for entry in re.finditer(r"^(?:\.visible |\.weak )?\.entry [^;{]*\{", ptx, re.M):
        depth = 1
        braces = re.compile("[{}]").finditer(ptx, entry.end())
        while depth:
            brace = next(braces)
            depth += 1 if brace[0] == "{" else -1
        spans.append((entry.start(), brace.end()))
    for kept in spans:
        text = ptx
        for start, end in spans:
            if (start, end) != kept:
                text = text[:start] + re.sub(r"[^\n]", " ", text[start:end]) + text[end:]
        yield text


def at_driver(build, folder, ptx, version):
    """(was it given, what is wrong with that or None)"""
    path, out = folder + "/whole.ptx", folder + "/older.ptx"
    with open(path, "w", encoding="utf-8") as file:
        file.write(ptx)
    done = run(build + "/tools/kregistry", "relevel", path, "--driver-version", version, "-o", out)
    if not done.returncode:
        said = assembled(out, version)
        return True, said and f"given for driver {version}: {said}"
    refused = re.search(r'line (\d+), ".*", cannot be said in PTX (\S+) for (\w+): .*', done.stdout)
    if not refused:
        return False, f"driver {version}: {done.stdout}"
    line, isa, target = refused.groups()
    with open(path, "w", encoding="utf-8") as file: # as it was, at that level
        file.write(re.sub(r"^(\.version )\S+(\s+\.target )\w+", rf"\g<1>{isa}\g<2>{target}", ptx, count=1, flags=re.M))
    said = assembled(path, version)
    agrees = said and (f"line {line};" in said or "fatal   : Parsing error" in said) # which hides what is after it
    return False, None if agrees else f"refused for driver {version}: {refused[0]}\nptxas: {said}"


def at_drivers(build, folder, ptx):
    """What is wrong at an older driver's level, or None. Where the whole is refused, each kernel alone is asked for."""
    for version in DRIVERS:
        given, said = at_driver(build, folder, ptx, version)
        wrong = [said] if given else [at_driver(build, folder, one, version)[1] for one in kernels(ptx)]
        if any(wrong):
            return "\n".join(filter(None, wrong))
    return None


def prove(build, folder, ptx, version):
    """(outcome, what was said)"""
    path, out = folder + "/made.ptx", folder + "/lowest.ptx"
    with open(path, "w", encoding="utf-8") as file:
        file.write(ptx)
    done = subprocess.run([build + "/tests/front/test_front_corpus", path], stdout=subprocess.PIPE, text=True, check=False,
                          env=dict(os.environ, PTXAS=ptxas(version)))
    if done.returncode:
        said = assembled(path, version)
        return ("refused by ptxas", said) if said else ("wrong", done.stdout)
    said = lowered(build, path, out) or at_drivers(build, folder, ptx)
    return ("not lowered", said) if said else ("right", "")


def outcomes(count):
    return ", ".join(f"{n} {outcome}" for outcome, n in sorted(count.items()))


def campaign(build, folder, words):
    """(maker and options, lines of PTX, {outcome: number}) of each source."""
    for maker, version, compiled, architectures in makers():
        for name, text in sources():
            for options in [], ["-G"], ["-lineinfo"]:
                label = " ".join([maker, name, *options])
                if (options and (compiled is not nvcc or AN_OP in text)) or (words and not any(word in label for word in words)):
                    continue
                lines, count = 0, {}
                for architecture in architectures:
                    ptx = compiled(text, architecture, options)
                    outcome, said = prove(build, folder, ptx, version) if ptx else ("not compiled", "")
                    if said:
                        print(label, architecture, outcome, said.strip()[:600])
                    lines += ptx.count("\n") if ptx else 0
                    count[outcome] = count.get(outcome, 0) + 1
                print(label, lines, outcomes(count), flush=True)
                yield " ".join([maker, *options]), lines, count


def main():
    table = {}
    with tempfile.TemporaryDirectory() as folder:
        for key, lines, count in campaign(sys.argv[1], folder, sys.argv[2:]):
            row = table.setdefault(key, [0, {}])
            row[0] += lines
            for outcome, n in count.items():
                row[1][outcome] = row[1].get(outcome, 0) + n
    print("compiler, lines of PTX: outcomes")
    for key, (lines, count) in table.items():
        print(key, lines, outcomes(count))


if __name__ == "__main__":
    main()
