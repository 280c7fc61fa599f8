#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What ptxas says of instructions: rows of data/judged.tsv.

    judge.py [FAMILY...]     rows for what data/templates.txt has of these families, or of all
    judge.py --asm FILE...   rows for all inline PTX of these C++ headers, at the targets that headers tell apart
    judge.py --change SECONDS SEED   rows for those of judged.tsv, each changed by a word
    judge.py --survey        the lowest target and .version that ptxas takes each instruction of standard input for

A line of templates.txt is "VERSION TARGET;VERSION TARGET...<tab>PTX"; <a|b|> in the PTX stands for each of its
parts. After "M " it is a module without its header, of which all rows are kept. ptxas is $PTXAS, or the one that is installed. It reports every error with its line, so that one module
judges thousands of instructions.
"""
import os
import re
import subprocess
import sys
import tempfile
import time
from random import Random

HERE = os.path.dirname(os.path.abspath(__file__))
PTXAS = os.environ.get("PTXAS", "/usr/local/cuda/bin/ptxas")


def frame(version, target):
    """What an instruction stands in; test_front.c has the same."""
    sm, isa = int(re.match(r"sm_(\d+)", target)[1]), int(version.replace(".", ""))
    text = (f".version {version}\n.target {target}\n.address_size 64\n"
            ".global .align 16 .b8 gv[64];\n.const .align 16 .b8 cv[64];\n"
            ".global .texref gt; .global .surfref gs;\n"
            + (".global .samplerref gm;\n" if "independent" in target else "") +
            ".extern .func (.param .b32 r) ff (.param .b32 a, .param .b64 b);\n"
            ".visible .entry k(.param .u64 kp, .param .align 8 .b8 kq[16])\n{\n"
            ".reg .b8 %b<9>; .reg .b16 %h<9>; .reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .f32 %f<9>;"
            ".reg .f64 %fd<9>; .reg .pred %p<9>; .reg .u32 %u<9>; .reg .s32 %s<9>; .reg .u16 %uh<9>;"
            ".reg .s64 %sd<9>; .reg .u64 %ud<9>; .shared .align 16 .b8 sv[64]; .local .align 16 .b8 lv[64];"
            ".param .b32 pa; .param .b64 pb; .param .b32 pr;")
    if sm >= 53 and isa >= 42:
        text += ".reg .f16 %fh<9>; .reg .f16x2 %fhh<9>;"
    if sm >= 70 and isa >= 83:
        text += ".reg .b128 %q<9>;"
    return text + "\nL0:\n"


def run(ptxas, text, target):
    arch = re.match(r"sm_(\d+)([af]?)", target)
    name = arch[0].replace("101", "110") if arch[2] or int(arch[1]) > 90 else "sm_90" # sm_110 was called sm_101
    with tempfile.NamedTemporaryFile("w", suffix=".ptx") as file:
        file.write(text)
        file.flush()
        done = subprocess.run([ptxas, "-arch=" + name, "-O0", "-c", "-o", "/dev/null", file.name],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    return done.returncode, done.stdout


def ask(ptxas, version, target, instructions):
    """For each instruction None (accepted) or ptxas's messages; None for all: it knows no such header."""
    instructions = list(instructions)
    answers = [None] * len(instructions)
    before = frame(version, target)
    first = before.count("\n") + 1
    body = "".join("{ " + one.replace("\n", " ") + " }\n" for one in instructions)
    code, said = run(ptxas, before + body + "L1: ret;\n}\n", target)
    for match in re.finditer(r"ptxas /\S+, line (\d+); (?:error|fatal) +: (.*)", said): # <builtin> has lines of its own
        at = int(match[1]) - first
        if at < 0:
            return None
        if at < len(answers) and "aborted due to errors" not in match[2]:
            answers[at] = match[2] if answers[at] is None else answers[at] + " | " + match[2]
    if code and all(answer is None for answer in answers): # not about a line: find it by halves
        if len(instructions) == 1:
            return [re.sub(r"ptxas \S+, ", "", said).strip().replace("\n", " | ")]
        half = len(instructions) // 2
        return ask(ptxas, version, target, instructions[:half]) + ask(ptxas, version, target, instructions[half:])
    left = [i for i, answer in enumerate(answers) if answer is None]
    if code and left: # the parser likes these: does what comes after it?
        for i, answer in zip(left, ask(ptxas, version, target, [instructions[i] for i in left])):
            answers[i] = answer
    return answers


def ask_module(version, target, text):
    """What ptxas says of what follows a module's header, the same way."""
    code, said = run(PTXAS, f".version {version}\n.target {target}\n.address_size 64\n{text}", target)
    lines = [re.sub(r"^ptxas \S+, line \d+; (error +: )?|^ptxas error +: ", "", line) for line in said.strip().split("\n")]
    kept = [line for line in lines if "aborted due to errors" not in line and "ptxas warning" not in line]
    if "(-c)" in said: # asked of it, not of the driver
        return ""
    return None if code == 0 else " | ".join(kept)


def expand(text):
    match = re.search(r"<([^<>]*\|[^<>]*)>", text)
    if not match:
        return [text]
    return [one for part in match[1].split("|") for one in expand(text[:match.start()] + part + text[match.end():])]


def templates(families):
    """(kind, version, target, template) of templates.txt; a family is the lines after "# NAME"."""
    family, rows = "", []
    for line in open(os.path.join(HERE, "data", "templates.txt"), encoding="utf-8"):
        line = line.rstrip("\n")
        if line.startswith("# "):
            family = line[2:]
        elif line and not line.startswith("//") and (not families or family in families):
            where, text = line.split("\t")
            kind = "M" if where.startswith("M ") else "I"
            rows += [(kind, *pair.split(), text) for pair in where.removeprefix("M ").split(";")]
    return rows


MOST = {True: 4, False: 2}  # of a template's instructions that ptxas accepts, refuses


def chosen(answers):
    """Of a template's (instruction, answer) so many, spread over them; none that ptxas crashes on."""
    for accepted, most in MOST.items():
        these = [one for one in answers if (one[1] is None) == accepted and one[1] != ""]
        step = max(1, len(these) / most)
        yield from (these[int(i * step)] for i in range(min(most, len(these))))


VERSIONS = [f"{isa // 10}.{isa % 10}" for low, high in ((14, 15), (20, 23), (30, 32), (40, 43), (50, 50), (60, 65), (70, 78),
                                                       (80, 88), (90, 90)) for isa in range(low, high + 1)]
TARGETS = ("sm_10 sm_11 sm_12 sm_13 sm_20 sm_21 sm_30 sm_32 sm_35 sm_37 sm_50 sm_52 sm_53 sm_60 sm_61 sm_62 sm_70 sm_72 sm_75 "
           "sm_80 sm_86 sm_87 sm_88 sm_89 sm_90 sm_90a sm_100 sm_100a sm_100f sm_103 sm_103a sm_103f sm_110 "
           "sm_110a sm_110f sm_120 sm_120a sm_120f sm_121 sm_121a sm_121f").split()


def survey(instructions, mode=""):
    """Prints each instruction's targets at the newest version, and its lowest version on the lowest of them."""
    newest, takes, said = VERSIONS[-1], {}, {}
    for target in TARGETS:
        for one, answer in zip(instructions, ask(PTXAS, newest, target + mode, instructions) or []):
            if answer is None:
                takes.setdefault(one, []).append(target)
            else:
                said[one] = answer
    lowest = {}
    for target in sorted({targets[0] for targets in takes.values()}):
        left = [one for one in instructions if takes.get(one, [""])[0] == target]
        for version in VERSIONS:
            answers = ask(PTXAS, version, target + mode, left) if left else None
            for one, answer in list(zip(left, answers or [])):
                if answer is None:
                    lowest[one] = version
                    left.remove(one)
    for one in instructions:
        targets = takes.get(one)
        if not targets:
            print(f"{one}\t-\t{said.get(one)}")
            continue
        after = TARGETS[TARGETS.index(targets[0]):]
        missing = [target for target in after if target not in targets]
        note = ""
        if missing:
            note = "only " + " ".join(targets) if len(targets) < len(missing) else "not " + " ".join(missing)
        print(f"{one}\t{lowest.get(one)} {targets[0]}\t{note}")


# ---- changed by a word: what ptxas refuses is to be refused, and the other way round ----

WORD = re.compile(r"(\.\w+(?:::\w+)*|0[fd][0-9a-f]{8,16}|[%$\w]+|\S)", re.I)


def accepted():
    """(version, target, instruction) of judged.tsv, by opcode."""
    found = {}
    with open(os.path.join(HERE, "data", "judged.tsv"), encoding="utf-8") as file:
        for line in file:
            kind, version, target, verdict, _, text = line.rstrip("\n").split("\t") if line[0] != "#" else "#" * 6
            if kind == "I" and verdict == "+" and '"' not in text:
                found.setdefault(WORD.search(text)[0], []).append((version, target, text))
    return found


def change(text, others, random):
    """One word left out, said twice, in another's place, or another instruction's of its kind."""
    parts = WORD.split(text) # blanks at even places
    at, to = (random.randrange(1, len(parts) - 2, 2) for _ in "12")
    how = random.randrange(6)
    if how == 0:
        parts[at] = ""
    elif how == 1:
        parts[at] *= 2
    elif how == 2:
        parts[at], parts[to] = parts[to], parts[at]
    else:
        parts[at] = random.choice(others[parts[at][0]])
    return "".join(parts)


def judge_changed(seconds, seed):
    rows, random, until = accepted(), Random(seed), time.monotonic() + seconds
    others = {}
    for word in sorted({word for of in rows.values() for _, _, text in of for word in WORD.findall(text)}):
        others.setdefault(word[0], []).append(word)
    while time.monotonic() < until:
        version, target, text = random.choice(rows[random.choice(sorted(rows))])
        one = change(text, others, random)
        code, said = run(PTXAS, frame(version, target) + one + "\nL1: ret;\n}\n", target)
        if code in (0, 255): # else it crashed
            said = " ".join(re.sub(r"ptxas \S+, ", "", said).split())
            print("I", version, target, "~" if code else "+", said, one, sep="\t", flush=True)


# ---- inline PTX: each statement becomes a block with registers of its own ----

A_MODULE = 200 # of them: more are too much for ptxas
LITERAL = r'"(?:[^"\\\n]|\\.)*"'
LETTERS = {"h": "b16", "r": "b32", "l": "b64", "f": "f32", "d": "f64", "q": "b128"}


def statements(text):
    """(the PTX with %0 to %n in it, constraints) of each asm that is written out, without macros."""
    text = re.sub(r"//[^\n\"]*$|/\*.*?\*/|^\s*#.*?$", "", text, flags=re.M | re.S)
    text = re.sub(r"\b(__LDG_PTR|__PTR)\b", '"l"', text) # of the toolkit's headers
    for match in re.finditer(rf"\basm\b\s*(?:volatile|__volatile__)?\s*\(\s*((?:{LITERAL}\s*)+)", text):
        template = "".join(one[1:-1] for one in re.findall(LITERAL, match[1]))
        rest = re.match(rf'(?:{LITERAL}|[^";])*', text[match.end():])[0]
        if text[match.end()] in ":)":
            template = template.replace("\\n", "\n").replace("\\t", " ").replace('\\"', '"')
            yield re.sub(r"//.*", "", template), [
                one[1:-1].lstrip("=+&") for one in re.findall(LITERAL + r"(?=\s*\()", rest)]


def inline(text):
    for template, letters in statements(text):
        names = ["4" if letter == "n" else f"a{letter}{i}" for i, letter in enumerate(letters)]
        if all(letter in LETTERS or letter == "n" for letter in letters):
            registers = "".join(f".reg .{LETTERS[letter]} a{letter}<{len(letters)}>; " for letter in sorted(set(letters) - {"n"}))
            body = re.sub(r"%(%|\d+)", lambda m: "%" if m[1] == "%" else names[int(m[1])] if int(m[1]) < len(names) else m[0], template)
            yield registers + " ".join(body.split())


def judge_inline(paths):
    found = {}
    for path in paths:
        for one in inline(open(path, encoding="utf-8", errors="replace").read()):
            found.setdefault(one)
    found = list(found)
    for target in TARGETS[TARGETS.index("sm_75"):]:
        for i in range(0, len(found), A_MODULE):
            these = found[i:i + A_MODULE]
            for one, answer in zip(these, ask(PTXAS, VERSIONS[-1], target, these)):
                print("I", VERSIONS[-1], target, "+" if answer is None else "~", answer or "", one, sep="\t", flush=True)


def main():
    arguments = sys.argv[1:]
    if arguments[:1] == ["--asm"]:
        judge_inline(arguments[1:])
        return
    if arguments[:1] == ["--change"]:
        judge_changed(float(arguments[1]), int(arguments[2]))
        return
    if arguments[:1] == ["--survey"]:
        survey(list(dict.fromkeys(one for line in sys.stdin for one in expand(line.rstrip("\n")) if one)),
               arguments[1] if arguments[1:] else "")
        return
    for kind, version, target, text in templates(arguments):
        target = target.replace("+", ", texmode_")
        instructions = list(dict.fromkeys(expand(text)))
        if kind == "M":
            for one in instructions:
                answer = ask_module(version, target, one.replace("\\n", "\n"))
                if answer != "":
                    print("M", version, target, "+" if answer is None else "~", answer or "", one, sep="\t")
            continue
        instructions = instructions[::-(-len(instructions) // 200)]
        answers = ask(PTXAS, version, target, instructions)
        if answers is None:
            sys.exit(f"{PTXAS} does not know .version {version} with .target {target}")
        for one, answer in chosen(list(zip(instructions, answers))):
            print("I", version, target, "+" if answer is None else "~", answer or "", one, sep="\t")


if __name__ == "__main__":
    main()
