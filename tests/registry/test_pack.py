#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_pack.py DOC PACK SOURCES: the pack is as the format's page says, by a reader that was written from it alone, and
its images are what other tools know: the page's own program takes it apart, and ptxas, fatbinary and readelf, where they
are installed, take the parts."""

import hashlib
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile

doc, path, sources = sys.argv[1:]
pack = open(path, "rb").read()


def text(at):
    return pack[at:pack.index(b"\0", at)].decode()


def sha(data):
    return hashlib.sha256(data).digest()


assert pack[:8] == b"KRPACK\x1a\n"
version, n_ops, n_entries, index_bytes, total = struct.unpack_from("<IIIIQ", pack, 8)
assert version == 1 and total == len(pack) and index_bytes % 64 == 0
assert pack[32:64] == sha(pack[:32] + pack[64:index_bytes])

at, entry, names = index_bytes, 0, []
for op in range(n_ops):
    file, descriptor, descriptor_bytes, n, zeros, identity = struct.unpack_from("<IIII16s32s", pack, 64 + 64 * op)
    source = open(os.path.join(sources, text(file)), "rb").read()
    lines = [line for line in source.decode().splitlines(True) if line.startswith("//!")]
    assert pack[descriptor:descriptor + descriptor_bytes].decode() == "".join(lines)
    names.append(re.search(r"//! op +(\w+)", lines[0]).group(1))
    whole = b""
    for entry in range(entry, entry + n):
        place, size, kind, _, _, _, _, _, name, _, digest = struct.unpack_from("<QQBBBBHHI4s32s", pack,
                                                                               64 + 64 * (n_ops + entry))
        data = pack[place:place + size]
        assert place == at and digest == sha(data)
        at = (place + size + 64) // 64 * 64
        assert not any(pack[place + size:at])
        if kind == 1:
            assert data == source
            whole += data + b"\0"
        elif kind == 2:
            whole += text(name).encode() + b"\0" + data + b"\0"
            assert data == open(os.path.join(sources, text(name)), "rb").read()
    entry += 1
    assert identity == sha(whole) and not any(zeros)
assert at == len(pack) and entry == n_entries and names == sorted(names)

program = re.search(r"```python\n(.*?)```", open(doc).read(), re.S).group(1)
with tempfile.TemporaryDirectory() as work:
    subprocess.run([sys.executable, "-c", program, os.path.abspath(path)], cwd=work, check=True)
    files = sorted(os.listdir(work))
    assert len(files) == n_entries

    def tool(name, *words):
        found = shutil.which(name) or shutil.which(name, path="/usr/local/cuda/bin")
        if found:
            subprocess.run([found, *words], cwd=work, check=True, stdout=subprocess.DEVNULL)
        else:
            print(f"{name} is not installed")

    for name in files:
        if name.endswith(".ptx"):
            tool("ptxas", "-arch=sm_90", name, "-o", os.devnull)
        elif name.endswith(".cubin"):
            tool("readelf", "-h", name)
            sm = open(os.path.join(work, name), "rb").read(64)[0x31]
            tool("fatbinary", "-64", "--create=x.fatbin", f"--image3=kind=elf,sm={sm},file={name}")
