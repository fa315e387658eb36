# SPDX-License-Identifier: BSD-3-Clause
"""The task request-latency: what a row leaves out, and what it does not."""

from pathlib import Path

import pytest

pytest.importorskip("hdrh.histogram", reason="run tools/setup")
from bench import task as tasks

TASK = (
    Path(__file__).resolve().parents[4]
    / "tools"
    / "bench"
    / "tasks"
    / "request-latency"
    / "task.py"
)


def test_an_idea_is_left_out_alone_or_with_all():
    module = tasks.load("request-latency", TASK).module
    whole = ["--payload", str(module.DATAGRAM)]
    asked = {
        "nothing": ["--stream"],
        "zero-copy": ["--stream"],
        "prompt-ids": [],
        "streaming": ["--stream", *whole],  # ids are as prompt as ever
        "everything": whole,
    }
    assert {without: module._asked(without) for without in asked} == asked
