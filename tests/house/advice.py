#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""advice.py ROOT: advice is a sentence: it begins with no small letter, and ends with a stop or with what was put in."""
import pathlib
import re
import sys

call = re.compile(r'(?:kr__error_advice|tool_advice|tool_refuse)\(&?\w+,\s*((?:"(?:[^"\\]|\\.)*"\s*)+)')
wrong = []
for room in ("runtime", "ptx", "registry", "tools"):
    for path in pathlib.Path(sys.argv[1], room).rglob("*.c"):
        for match in call.finditer(path.read_text()):
            advice = re.sub(r'"\s*"', "", match[1].strip())[1:-1]
            if advice[0].islower() or not advice.endswith((".", "?", "!", "%s")):
                wrong.append(f"{path}: {advice}")
print("\n".join(wrong))
sys.exit(bool(wrong))
