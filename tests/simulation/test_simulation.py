# SPDX-License-Identifier: BSD-3-Clause
"""Worlds of many seeds hold; a seed replays exactly; a broken rule is noticed."""

import os
import re
import subprocess
from pathlib import Path

import pytest

PROGRAM = Path(os.environ.get("TOKD_BUILD", "build")) / "tests/simulation/simulation"
SEEDS = 60  # some seconds on an idle CPU


def simulated(*options: str) -> subprocess.CompletedProcess[str]:
    command = [str(PROGRAM.resolve()), *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)


def test_nothing_is_lost_wrong_or_twice() -> None:
    done = simulated("--seeds", f"1-{SEEDS}")
    assert done.returncode == 0, done.stdout + done.stderr
    found = re.search(r"(\d+) requests: (\d+) with their ids", done.stdout)
    assert found is not None, done.stdout
    asked, answered = map(int, found.groups())
    assert asked > 300 * SEEDS
    assert answered > 0.9 * asked
    # A fault that never happens proves nothing.
    happened = re.search(r"^faults: (.*)\ncounters: (.*)$", done.stdout, re.MULTILINE)
    assert happened is not None, done.stdout
    words = " ".join(happened.groups()).split()
    counts = dict(zip(words[::2], map(int, words[1::2]), strict=True))
    assert not [name for name, n in counts.items() if n == 0]


@pytest.mark.parametrize("table", ["--attacks", "--overload"])
def test_limits_are_kept_beside_attackers_and_in_overload(table: str) -> None:
    done = simulated(table, "--check")
    assert done.returncode == 0, done.stdout + done.stderr


def test_on_a_narrow_link_ids_are_right_and_clients_share_it() -> None:
    done = simulated("--bottleneck", "--seeds", "8-9")
    assert done.returncode == 0, done.stdout + done.stderr
    rows = [row.split("|") for row in done.stdout.splitlines()[2:] if row.startswith("|")]
    assert [int(row[13]) for row in rows] == 8 * [8, 9]
    of_both = re.findall(r"least/most: ([\d.]+) .* ([\d.]+); p99", done.stdout)
    shares = [sorted(row[12].strip() for row in rows[i : i + 2]) for i in range(0, 16, 2)]
    assert [list(found) for found in of_both] == shares
    for row in rows:
        assert float(row[7]) > 0.6 * float(row[1])  # goodput of the link's bits
        assert float(row[8]) < 25  # percent sent again
        assert float(row[12]) > 0.5  # of the client that got least, by that which got most


def test_a_seed_replays_exactly() -> None:
    first, second = (simulated("--seeds", "7-7", "--trace") for _ in range(2))
    assert first.returncode == 0, first.stdout[-2000:]
    assert re.search(r"seed 7: \d+ events, hash [0-9a-f]{16}", first.stdout)
    assert first.stdout == second.stdout


@pytest.mark.parametrize(
    ("rule", "noticed"),
    [
        ("crc", "wrong ids (in the ring|at client)"),
        ("once", "twice in the ring"),
        ("cursor", "lost to a reader that was not dropped"),
        ("feed", "wrong ids in the ring"),
        ("skip", "wrong text of"),
        ("id", "wrong answer in the ring|of an answer at client"),
        # Without time-outs ids are asked for when they are gone, or never.
        ("timer", r"no end after|never ended|more than \d+ restarts|reason EXPIRED"),
    ],
)
def test_a_broken_rule_is_noticed(rule: str, noticed: str) -> None:
    done = simulated("--break", rule, "--seeds", "1-60")
    assert done.returncode == 1, done.stdout
    failed = re.search(r"seed (\d+) FAILED .*", done.stdout)
    assert failed is not None
    assert re.search(noticed, failed[0])
    again = re.search(r"again: simulation (.*) --trace (.*)", done.stdout)
    assert again is not None
    replayed = simulated(*f"{again[1]} {again[2]}".split())
    assert failed[0] in replayed.stdout
