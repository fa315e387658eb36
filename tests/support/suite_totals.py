# SPDX-License-Identifier: BSD-3-Clause
"""Adds up meson's logs of some runs: why tests were skipped, which failed, a line of totals.

A run is named by what its logs are called before the dot (meson test --logbase). Its .junit.xml
knows each subtest; but of a program that crashed, hung or gave a bad exit code between its subtests
it says nothing (meson 1.0), so its .json is asked for that. --skipped names what had no run.
"""

import argparse
import json
import re
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree

GOOD = ("OK", "SKIP", "EXPECTEDFAIL")


@dataclass
class Totals:
    passed: int = 0
    failed: int = 0
    skipped: Counter[str] = field(default_factory=Counter)  # by reason
    failures: list[str] = field(default_factory=list)

    def fail(self, what: str) -> None:
        self.failed += 1
        self.failures.append(what)

    def line(self) -> str:
        return f"{self.passed} passed, {self.failed} failed, {self.skipped.total()} skipped"


def read_results(log: Path) -> dict[str, str]:
    """How each program ended, by test name."""
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    return {test["name"]: test["result"] for test in map(json.loads, lines)}


def reason_of(case: ElementTree.Element, whole: bool) -> str:
    """TAP's explanation of a skipped subtest, or of a program that was skipped as a whole; empty
    if there is none. What is not TAP at all is a skipped program to meson."""
    said = (case.findtext("system-out") or "").strip()
    if not whole:
        return said
    plan = re.search(r"^1\.\.0 # SKIP *(.*)$", said, re.MULTILINE | re.IGNORECASE)
    return plan.group(1) if plan else ""


def short(name: str) -> str:
    """Without "project:suite / ", which meson puts before a name when there are several suites."""
    return name.rpartition(" / ")[2]


def add_case(totals: Totals, test: str, case: ElementTree.Element, whole: bool) -> bool:
    """False if it failed."""
    if case.find("failure") is not None or case.find("error") is not None:
        totals.fail(f"{short(test)}: {case.get('name')}")
        return False
    if case.find("skipped") is None:
        totals.passed += 1
        return True
    reason = reason_of(case, whole)
    if not reason:
        totals.fail(f"{short(test)}: {case.get('name')}: skipped without a reason")
        return False
    totals.skipped[f"{short(test)}: {reason}"] += 1
    return True


def diagnoses(log: str) -> list[str]:
    """What TAP programs said of their failed subtests: lines of "# " behind each "not ok"."""
    found, behind = [], False
    for line in log.splitlines():
        if line.startswith("not ok ") and " # TODO" not in line:
            found.append(line)
            behind = True
        elif behind and line.startswith("#"):
            found.append(line)
        else:
            behind = False
    return found


def add(totals: Totals, run: str) -> None:
    """The logs of one run. Logs that are missing are a failure, not nothing."""
    try:
        results = read_results(Path(f"{run}.json"))
        root = ElementTree.parse(f"{run}.junit.xml").getroot()
    except (OSError, ValueError, KeyError, ElementTree.ParseError) as error:
        totals.fail(f"{run}: {error}")
        return
    failed_within = set()
    for suite in root.iter("testsuite"):
        # "project.test" with its subtests, or "project" with the programs that have none.
        _, _, test = suite.get("name", "").partition(".")
        for case in suite.iter("testcase"):
            name = test or case.get("name", "")
            if not test and results.get(name) not in GOOD:
                continue  # counted below
            if not add_case(totals, name, case, whole=not test):
                failed_within.add(name)
    for name, result in results.items():
        if result not in GOOD and name not in failed_within:
            totals.fail(f"{short(name)}: {result}, see {run}.txt")


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--skipped", action="append", default=[], metavar="WHAT: REASON")
    parser.add_argument("runs", nargs="+")
    args = parser.parse_args()
    totals = Totals(skipped=Counter(args.skipped))
    for run in args.runs:
        add(totals, run)
    for run in args.runs if totals.failed else ():
        log = Path(f"{run}.txt")
        if log.exists():
            print(*diagnoses(log.read_text(errors="replace")), sep="\n")
    for failure in totals.failures:
        print(f"failed: {failure}")
    for reason, count in sorted(totals.skipped.items()):
        print(f"skipped: {count} x {reason}")
    print(totals.line())
    return 0 if totals.failed == 0 and totals.passed > 0 else 1


if __name__ == "__main__":
    sys.exit(main())
