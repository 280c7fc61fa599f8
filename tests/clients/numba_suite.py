#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs numba.cuda.tests, each of its modules in a process of its own, and holds what fails to a list.

usage: numba_suite.py LEFT_OUT JOBS [MODULE...]

LEFT_OUT has a line for each test that cannot pass: a pattern of test names and the reason; one that begins with '!' is
not even run. A test that fails and is not listed is a failure, and so is one that is listed and passes.
The last line is "N passed, N failed".
"""

import concurrent.futures
import fnmatch
import os
import pkgutil
import subprocess
import sys
import tempfile
import unittest

PACKAGE = "numba.cuda.tests"
LIMIT_S = 1200


def short(test):
    return test.id().removeprefix(PACKAGE + ".")


class LeftOut:
    def __init__(self, path):
        self.run, self.never = {}, {}
        with open(path, encoding="utf-8") as file:
            for line in file:
                if line.strip() and not line.startswith("#"):
                    pattern, reason = line.split(maxsplit=1)
                    (self.never if pattern[0] == "!" else self.run)[pattern.lstrip("!")] = reason.strip()

    def reason(self, test):
        return self._find(self.run, test)

    def reason_not_to_run(self, test):
        return self._find(self.never, test)

    @staticmethod
    def _find(patterns, test):
        return next((why for pattern, why in patterns.items() if fnmatch.fnmatchcase(test, pattern)), None)


def flatten(suite):
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from flatten(test)
        else:
            yield test


class Report(unittest.TestResult):
    """A line a test, written as soon as it is known, so that a process that dies has told what came before."""

    def __init__(self, file):
        super().__init__()
        self.file = file

    def tell(self, outcome, test, why=""):
        print(outcome, short(test), " ".join(str(why).split()), sep="\t", file=self.file, flush=True)

    def addSuccess(self, test):
        self.tell("passed", test)

    def addExpectedFailure(self, test, err):
        self.tell("passed", test)

    def addUnexpectedSuccess(self, test):
        self.tell("failed", test, "was expected to fail")

    def addSkip(self, test, reason):
        self.tell("skipped", test, reason)

    def addFailure(self, test, err):
        self.tell("failed", test, f"{err[0].__name__}: {err[1]}")

    addError = addFailure

    def addSubTest(self, test, subtest, err):
        if err is not None:
            self.addFailure(test, err)


def run_module(module, left_out, file):
    report, suite = Report(file), unittest.TestSuite()
    for test in flatten(unittest.defaultTestLoader.loadTestsFromName(module)):
        if why := left_out.reason_not_to_run(short(test)):
            report.tell("left out", test, why)
        else:
            report.tell("planned", test)
            suite.addTest(test)
    suite.run(report)


def modules():
    package = __import__(PACKAGE, fromlist=["__path__"])
    return sorted(m.name for m in pkgutil.walk_packages(package.__path__, PACKAGE + ".")
                  if m.name.rpartition(".")[2].startswith("test_"))


def last_line(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        return " ".join((file.read().splitlines() or ["nothing"])[-1].split())


def in_a_process(module, left_out):
    """{test: (outcome, why)}; a test that was planned and has no outcome failed with its process."""
    with tempfile.TemporaryDirectory() as folder:
        lines, noise = os.path.join(folder, "lines"), os.path.join(folder, "noise")
        with open(noise, "wb") as out:
            try:
                code = subprocess.run([sys.executable, __file__, "--module", left_out, module, lines], cwd=folder,
                                      stdin=subprocess.DEVNULL, stdout=out, stderr=out, timeout=LIMIT_S).returncode
                end = f"the process ended with {code}, last saying: {last_line(noise)}"
            except subprocess.TimeoutExpired:
                code, end = 1, f"the process had not ended after {LIMIT_S} s"
        found = {}
        with open(lines, encoding="utf-8") as file:
            for line in file:
                outcome, test, why = line.rstrip("\n").split("\t")
                found[test] = ("failed", end) if outcome == "planned" else (outcome, why)
        if code != 0 and not any(outcome == ("failed", end) for outcome in found.values()):
            found[module] = ("failed", end)
        return found


def judge(test, outcome, why, left_out):
    listed = left_out.reason(test)
    if listed and outcome == "failed":
        return "left out", listed
    if listed and outcome == "passed":
        return "failed", "passes now: strike it from the list of those left out"
    return outcome, why


def main():
    if sys.argv[1] == "--module":
        with open(sys.argv[4], "w", encoding="utf-8") as file:
            run_module(sys.argv[3], LeftOut(sys.argv[2]), file)
        return 0
    path = os.path.abspath(sys.argv[1])
    left_out = LeftOut(path)
    count = dict.fromkeys(("passed", "failed", "left out", "skipped"), 0)
    with concurrent.futures.ThreadPoolExecutor(int(sys.argv[2])) as pool:
        futures = [pool.submit(in_a_process, module, path) for module in sys.argv[3:] or modules()]
        for future in concurrent.futures.as_completed(futures):
            for test, found in future.result().items():
                outcome, why = judge(test, *found, left_out)
                count[outcome] += 1
                if outcome != "passed":
                    print(outcome, test, why, sep="\t", flush=True)
    print(f"{count['skipped']} skipped by the suite itself, {count['left out']} left out")
    print(f"{count['passed']} passed, {count['failed']} failed")
    return count["failed"] > 0


if __name__ == "__main__":
    sys.exit(main())
