# SPDX-License-Identifier: BSD-3-Clause
"""The main job, as README says it: tools/demo --quick."""

import json
import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SIZES = {"128", "512", "2048", "8KB"}


def test_the_quick_demo_finds_all_ids_equal_and_cleans_up(tmp_path):
    if os.geteuid() != 0:
        pytest.skip("needs root: makes a network namespace")
    result = tmp_path / "demo.json"
    before = subprocess.run(["ip", "-br", "link"], check=True, capture_output=True).stdout
    done = subprocess.run(
        [ROOT / "tools/demo", "--quick", "--json", result],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout
    report = json.loads(result.read_text())
    assert report["ids_equal"] is True
    assert report["text_bytes"] >= 1_000_000
    assert report["ring"]["wrong"] == 0
    assert report["ring"]["ids"] >= report["ids"]  # repeats included
    for times in (report["rtt_us"], report["baseline_us"]):
        assert set(times) == SIZES
        for size in times.values():
            assert size["samples"] > 0
            assert 0 < size["p50"] <= size["p99"]
    after = subprocess.run(["ip", "-br", "link"], check=True, capture_output=True).stdout
    assert after == before
