# SPDX-License-Identifier: BSD-3-Clause
"""tools/sweep compare, the rank-sum test, and the machine block."""

import json

import pytest

pytest.importorskip("hdrh.histogram", reason="run tools/setup")
from bench.lab import machine
from bench.sweep import compare, stats
from bench.sweep.store import StoreError
from sweep_machine import HERE
from sweep_made import swept


def test_the_rank_sum_test_is_exact(monkeypatch):
    assert stats.p_value([1, 2, 3, 4, 5], [6, 7, 8, 9, 10]) == pytest.approx(2 / 252)
    assert stats.p_value([1, 4], [2, 3]) == 1
    assert stats.p_value([7] * 5, [7] * 5) == 1
    assert stats.p_value([1, 2, 3], [3, 4, 5]) == pytest.approx(4 / 20)
    # The approximation for many repeats is near the exact value.
    a, b = list(range(8)), [x + 3.5 for x in range(8)]
    exact = stats.p_value(a, b)
    monkeypatch.setattr(stats, "EXACT_MOST", 0)
    assert stats.p_value(a, b) == pytest.approx(exact, rel=0.2)


@pytest.mark.parametrize(
    ("other", "better", "verdict"),
    [
        ([6, 7, 8, 9, 10], "lower", "worse"),
        ([6, 7, 8, 9, 10], "higher", "better"),
        ([-6, -7, -8, -9, -10], "lower", "better"),
        ([1, 2, 3, 4, 6], "lower", "not distinguishable"),
        ([6, 7, 8], "lower", "too few repeats"),
        ([6, 7, 8, 9, 10], "neither", "neither"),
        ([6, 7, 8], "neither", "neither"),
    ],
)
def test_a_verdict_needs_repeats_that_are_apart(other, better, verdict):
    assert stats.verdict([1, 2, 3, 4, 5], other, better) == verdict


def test_two_sweeps_are_compared_cell_by_cell(made, tmp_path):
    repeats = {"repeats": {"full": 5, "quick": 1}}
    swept(made(repeats), tmp_path / "a")
    swept(made(repeats), tmp_path / "b", HERE | {"kernel": "k #2"})
    changed = json.loads((tmp_path / "b/results.json").read_text())
    rows = changed["tables"][0]["rows"]
    for which in ("time p99", "speed"):
        cell = rows[0]["cells"][which]
        cell["by_repeat"] = {r: 3 * v for r, v in cell["by_repeat"].items()}
        cell["median"] *= 3
    rows[1] |= {"state": "missing", "reason": "gone", "cells": {}}
    (tmp_path / "b/results.json").write_text(json.dumps(changed))
    shown = compare.compare(compare.read(tmp_path / "a"), compare.read(tmp_path / "b"))
    whole, lines = shown.splitlines()[:3], shown.splitlines()[3:]
    assert whole == ["A: 5 repeats, finished", "B: 5 repeats, finished", ""]
    assert lines[2].rstrip(" |").endswith("worse") and "3.000" in lines[2]
    assert lines[3].rstrip(" |").endswith("better")
    assert "B is missing: gone" in lines[4]
    assert "- kernel: k #1 / k #2" in shown
    with pytest.raises(StoreError, match="give a folder"):
        compare.read(tmp_path)


def test_the_machine_block_says_what_is_not_there():
    found = machine.describe()
    assert {"cpu", "kernel", "command_line", "isolation", "huge_pages", "nics", "gpus", "versions",
            "revision"} <= set(found)  # fmt: skip
    assert all(found[key] for key in ("nics", "gpus", "rdma", "kernel", "revision"))
    json.dumps(found)
