# SPDX-License-Identifier: BSD-3-Clause
"""Ids that come back, each compared: of the device's own engine, and of external ones, in the
process of the device and in another. As threads; with TOKD_GPU_DEVICE=cuda:0 on a GPU."""

import json
import os
import subprocess
from pathlib import Path

import pytest

DEVICE = os.environ.get("TOKD_GPU_DEVICE", "cpu")
MEASURE = Path(os.environ["TOKD_BUILD"]) / "tools/bench/native/gpu/gpu_measure"
ANSWERS, MADE = 40, 8


@pytest.mark.parametrize("streams", [1, 4])
@pytest.mark.parametrize(("external", "ended"), [(0, 0), (1, ANSWERS // 4), (2, ANSWERS // 4)])
def test_an_external_engine_ends_every_fourth_answer_at_its_half(external, ended, streams):
    numbers = {"producers": 1, "lanes": streams, "n": ANSWERS, "made": MADE, "external": external}
    numbers |= {"tokens": 8, "n_ids": 1000, "dim": 64}
    words = [str(MEASURE), "generate", DEVICE, *(f"{k}={v}" for k, v in numbers.items())]
    env = {**os.environ, "TOKD_GPU_RING": "host", "TOKD_GPU_LIMIT_S": "110"}
    end = subprocess.run(words, env=env, capture_output=True, text=True, timeout=120, check=False)
    assert end.returncode == 0, end.stderr
    said = json.loads(end.stdout)
    assert (said["answers"], said["whole"]) == (ANSWERS, ANSWERS - ended)
    assert said["ids"] == ANSWERS * MADE - ended * MADE // 2
    assert [each["n"] for each in said["series"]] == [ANSWERS, ANSWERS - ended]
