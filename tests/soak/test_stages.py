# SPDX-License-Identifier: BSD-3-Clause
"""The task stages, cut down: a real appliance over shared memory, through tools/sweep."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
STAGES = ("tokenize", "in-and-publish", "reply", "wire-and-client")
REQUESTS = 100

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root: EAL's runtime folder, huge pages"),
    pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="two that poll need two CPUs"),
]


def test_stages_are_parts_of_the_round_trip(tmp_path):
    box = json.loads((ROOT / "boxes" / "nthu.json").read_text())
    (entry,) = (entry for entry in box["tests"] if entry["task"] == "stages")
    entry["parameters"] |= {"corpus": ["multi"], "requests": [REQUESTS]}
    del entry["quick"]
    box |= {"repeats": {"full": 1, "quick": 1}, "tests": [entry]}
    (tmp_path / "box.json").write_text(json.dumps(box))
    done = subprocess.run(
        [ROOT / "tools" / "sweep", tmp_path / "box.json", "--out", tmp_path / "out"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
    )
    if done.returncode != 0:
        pytest.fail(done.stdout + done.stderr)
    (table,) = json.loads((tmp_path / "out" / "results.json").read_text())["tables"]
    assert table["stages"] == list(STAGES) and len(table["rows"]) == 2
    for path in sorted((tmp_path / "out" / "trials").glob("*/1.json")):
        trial = json.loads(path.read_text())
        values, percentiles = trial["values"], trial["percentiles"]
        assert all(values[name] > 0 for name in STAGES)
        inside = values["tokenize"] + values["in-and-publish"]
        assert inside < sum(values[name] for name in STAGES)
        # Sums of means lie between the least and the largest of what they are means of.
        assert inside <= percentiles["inside"]["max"] * 1.001
        assert sum(values[n] for n in STAGES) <= percentiles["round-trip"]["max"] * 1.001
        assert trial["ids_checked"] > REQUESTS
