# SPDX-License-Identifier: BSD-3-Clause
"""tools/soak, tools/wire-to-ring and tools/workers, shortened. Whole runs: doc/results/."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
REQUESTS = 250_000  # a few seconds; the side store fills for the first 100,000

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root: EAL's runtime folder, huge pages"),
    pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="two that poll need two CPUs"),
]


def run(tool: str, path: Path, *options: str) -> dict:
    done = subprocess.run(
        [ROOT / "tools" / tool, *options, "--json", path],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
    )
    if done.returncode != 0:
        pytest.fail(done.stdout)
    assert "all is right: yes" in done.stdout
    return json.loads(path.read_text())


def test_faults_lose_no_text_double_none_and_leave_memory_flat(tmp_path):
    result = run("soak", tmp_path / "json", "--requests", str(REQUESTS), "--texts", "2000")
    load = result["load"]
    assert load["requests"] == load["right"] == load["ring"]["texts"] == REQUESTS
    assert load["ring"]["lost"] == load["ring"]["wrong"] == load["ring"]["doubled"] == 0
    for way in (load["to_appliance"], load["from_appliance"]):
        assert way["lost"] / way["packets"] == pytest.approx(0.02, rel=0.2)
        assert way["reordered"] / way["packets"] == pytest.approx(0.02, rel=0.2)
        assert way["duplicated"] / way["packets"] == pytest.approx(0.01, rel=0.3)
    assert result["samples"] >= 10
    assert all(one["flat"] for one in result["memory"].values())
    assert not any(result["left_when_idle"].values())


def test_the_time_inside_is_a_share_of_the_round_trip(tmp_path):
    result = run("wire-to-ring", tmp_path / "json", "--requests", "100")
    records = 0
    for size in ("128", "2048"):
        found = result["sizes"][size]
        assert 0 < found["inside"] < 1
        assert found["whole_text_us"]["p50"] < found["round_trip_us"]["p50"]
        assert found["whole_text_us"]["samples"] <= found["wire_to_ring_us"]["samples"]
        records += found["wire_to_ring_us"]["samples"]
    # Those of the warm-up are in the appliance's own, and of what was sent again.
    assert records < result["histogram"]["records"] <= result["load"]["ring"]["records"]


def test_a_second_worker_gets_streams_and_keeps_them(tmp_path):
    result = run("workers", tmp_path / "json", "--rounds", "1", "--characters", "200000")
    served = result["af_packet"]
    assert served["ids_equal"] and served["streams_stayed"]
    assert len(served["streams"]) == 2 and min(served["streams"]) > 0 and served["all_served"]
    for way in (result["replay"], served):
        assert way["ratio"]["rounds"] == 1 and way["ratio"]["p50"] > 0


@pytest.mark.parametrize(
    ("tool", "options", "complaint"),
    [
        ("soak", ["--requests", "10"], "10: give a number from 20000"),
        ("soak", ["--json", "no/such/file"], "no/such/file: No such file"),
        ("soak", ["--loss", "2"], "2: give a share from 0% to 100%"),
        ("wire-to-ring", ["--requests", "1e6"], "1e6: give a number from 100 to 2500"),
        ("workers", ["--rounds", "0"], "0: give a number from 1 to 1000"),
    ],
)
def test_bad_options_are_named(tool, options, complaint):
    done = subprocess.run(
        [ROOT / "tools" / tool, *options], capture_output=True, text=True, timeout=30
    )
    assert done.returncode == 2
    assert complaint in done.stderr
