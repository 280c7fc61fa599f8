#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: abi.py SOURCE_ROOT CC

Compares every enumerator, struct size and field offset of abi/cuda.h, and every row of abi/symbols.def, with
CUDA's own headers. Skips (77) where they are not installed."""
import os
import re
import subprocess
import sys
import tempfile

root, cc = sys.argv[1], sys.argv[2:]
cuda = os.path.join(os.environ.get("CUDA_HOME", "/usr/local/cuda"), "include")
if not os.path.exists(os.path.join(cuda, "cuda.h")):
    print("skipped: no cuda.h in " + cuda)
    sys.exit(77)
text = re.sub(r"/\*.*?\*/", "", open(os.path.join(root, "abi/cuda.h")).read(), flags=re.S)


def probes():
    """C expressions that must have the same value under both headers."""
    for name in re.findall(r"\bX\((CUDA_\w+), \d+\)", text):
        yield name
    for body in re.findall(r"typedef enum \w+ \{([^#]*?)\} \w+;", text, re.S):
        for name in re.findall(r"^\s*(\w+) =", body, re.M):
            yield name
    for name in re.findall(r"^#define (CU(?:DA)?_\w+) (?:\(|0x)", text, re.M):
        yield f"(unsigned long long){name}"
    for body, name in re.findall(r"typedef (?:struct|union) \w+ \{(.*?)\n\} (\w+);", text, re.S):
        yield f"sizeof({name})"
        flat = re.sub(r"(struct|union) \{[^{}]*\}", "int", body)
        for line in re.findall(r"^\s*(?:const )?[\w ]+?[\s*]+((?:\*?\w+(?:\[[^\]]*\])?(?:, )?)+);", flat, re.M):
            for field in re.findall(r"(\w+)(?:\[[^\]]*\])?(?:,|$)", line):
                if field != "pad":
                    yield f"offsetof({name}, {field})"


def values(include, header, expressions):
    with tempfile.TemporaryDirectory() as work:
        source = os.path.join(work, "probe.c")
        with open(source, "w") as out:
            out.write(f'#include <stddef.h>\n#include <stdio.h>\n#include "{header}"\nint main(void)\n{{\n')
            for e in expressions:
                out.write(f'printf("%lld\\n", (long long)({e}));\n')
            out.write("return 0;\n}\n")
        program = os.path.join(work, "probe")
        subprocess.run([*cc, "-w", "-I", include, source, "-o", program], check=True)
        return subprocess.run([program], check=True, capture_output=True, text=True).stdout.split()


expressions = list(dict.fromkeys(probes()))
ours, theirs = values(root, "abi/cuda.h", expressions), values(cuda, "cuda.h", expressions)
wrong = [f"{e}: {a}, in CUDA's header {b}" for e, a, b in zip(expressions, ours, theirs) if a != b]

# Each PFN_name_vVERSION[_ptsz|_ptds] type of cudaTypedefs.h is a row; `name` there has its _v2 cut off.
types = set()
for header in ("cudaTypedefs.h", "cudaProfilerTypedefs.h"):
    types |= set(re.findall(r"\bPFN_(cu\w+?)_v(\d+)(_ptsz|_ptds)?\)", open(os.path.join(cuda, header)).read()))
rows = re.findall(r"^CU_SYMBOL\((\w+), (\d+), (\d), (\w+)\)", open(os.path.join(root, "abi/symbols.def")).read(), re.M)
for name, version, flag, symbol in rows:
    if not any((name, version, suffix) in types for suffix in (("",) if flag == "0" else ("_ptsz", "_ptds"))):
        wrong.append(f"{symbol}: no PFN_{name}_v{version} with flag {flag} in cudaTypedefs.h")
stub = os.path.join(cuda, "../lib64/stubs/libcuda.so")
if os.path.exists(stub):
    listing = subprocess.run(["nm", "-D", "--defined-only", stub], capture_output=True, text=True).stdout
    exported = {line.split()[-1] for line in listing.splitlines()}
    wrong += [f"{s}: not exported by CUDA's stub" for s in {r[3] for r in rows} - exported]
    wrong += [f"{s}: exported by CUDA's stub, not listed" for s in exported - {r[3] for r in rows} if s.startswith("cu")]

print("\n".join(wrong) if wrong else f"{len(expressions)} values and {len(rows)} symbols agree")
sys.exit(bool(wrong) or len(expressions) < 400)
