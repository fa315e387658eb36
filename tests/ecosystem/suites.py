# SPDX-License-Identifier: BSD-3-Clause
"""The test-suite of another package, from its public repository, run with its classes and with
ours."""

import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

HERE = Path(__file__).parent
TIMEOUT = 900  # seconds


def cloned(repository: str, tag: str, folder: Path) -> Path:
    """Skips the test where the repository cannot be reached."""
    command = ["git", "clone", "--quiet", "--depth=1", f"--branch={tag}", repository, str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT)
    if done.returncode != 0:
        pytest.skip(f"{repository} {tag}: {done.stderr.strip().splitlines()[-1]}")
    return folder


def failures(suite: Path, plugin: str, replaced_by: str) -> dict[str, bool]:
    """By a test's name: did it fail? `plugin`, a module of this folder, is told `replaced_by`."""
    report = suite / f"report-{replaced_by}.xml"
    options = [f"--junitxml={report}", "-pno:cacheprovider", "-q", f"-p{plugin}"]
    options += [f"--ignore={path}" for path in suite.glob("tests/test_benchmarks.py")]
    env = {"HF_HUB_OFFLINE": "1", "PYTHONPATH": str(HERE), "REPLACED_BY": replaced_by}
    subprocess.run(
        [sys.executable, "-m", "pytest", *options, "tests"],
        cwd=suite,
        env=os.environ | env,
        capture_output=True,
        timeout=TIMEOUT,
    )
    return {
        f"{case.get('classname')}.{case.get('name')}": any(
            case.find(bad) is not None for bad in ("failure", "error")
        )
        for case in ElementTree.parse(report).getroot().iter("testcase")
        if case.find("skipped") is None
    }


def compare(passing: list[str], failed: dict[str, bool], named: dict[str, set[str]]) -> str:
    """Of those that pass with the package itself: what fails here, by the reason, as Markdown. No
    other may fail."""
    bad = [name for name in passing if failed[name]]
    rows, left = [], set(bad)
    for why, names in named.items():
        found = [name for name in bad if short(name) in names]
        left -= set(found)
        spoken = ", ".join(f"`{name}`" for name in sorted(set(map(short, found))))
        if found:
            rows.append(f"| {why} | {len(found)} | {spoken} |")
    assert not left
    count = f"{len(passing) - len(bad)} of {len(passing)} pass, all of which pass with the package"
    head = "\n\n| what fails, and why | tests | |\n|---|---|---|\n" if rows else ""
    return count + head + "\n".join(rows)


def short(name: str) -> str:
    """Class and function; without a class, file and function."""
    return ".".join(name.partition("[")[0].split(".")[-2:])
