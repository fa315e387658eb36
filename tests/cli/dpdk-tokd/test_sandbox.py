# SPDX-License-Identifier: BSD-3-Clause
"""What a started appliance may still do, as the kernel says."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from appliance import Appliance


@pytest.fixture
def ready(start: Callable[..., Appliance], gpt2_file: Path) -> Callable[..., Appliance]:
    def make(*own: str) -> Appliance:
        appliance = start("--vocab", str(gpt2_file), *own)
        appliance.wait_for("ready:")
        return appliance

    return make


def statuses(pid: int) -> list[dict[str, str]]:
    """Of each thread."""
    return [
        dict(line.split(":\t", 1) for line in path.read_text().splitlines())
        for path in Path(f"/proc/{pid}/task").glob("*/status")
    ]


def test_no_thread_keeps_a_capability(ready) -> None:
    appliance = ready()
    for status in statuses(appliance.pid):
        assert [int(status[name], 16) for name in ("CapEff", "CapPrm", "CapInh")] == [0, 0, 0]
        assert (status["NoNewPrivs"], status["Seccomp"]) == ("1", "2")
    info = appliance.telemetry("/tokd/info")
    assert (info["sandbox"], info["calls_denied"]) == ("yes", 0)
    assert appliance.stop() == 0


def test_texts_are_in_no_core_dump(ready) -> None:
    """Should the process be made dumpable again: rings and EAL's memory are left out."""
    appliance = ready()
    if os.geteuid() != 0:
        pytest.skip("the kernel shows the memory of what is not dumpable to root alone")
    left_out, written = 0, []
    for mapping in re.split(r"\n(?=[0-9a-f]+-)", Path(f"/proc/{appliance.pid}/smaps").read_text()):
        size = int(re.search(r"^Size: +(\d+) kB", mapping, re.MULTILINE)[1])
        if " dd" in re.search(r"^VmFlags:.*", mapping, re.MULTILINE)[0]:
            left_out += size
        elif size >= 16 << 10 and re.search(r"^Rss: +[1-9]", mapping, re.MULTILINE):
            written.append(mapping.splitlines()[0])
    assert written == []
    assert left_out >= 256 << 10  # -m 256
    assert appliance.stop() == 0


def test_without_it_nothing_is_dropped(ready) -> None:
    appliance = ready("--sandbox=no")
    assert {status["Seccomp"] for status in statuses(appliance.pid)} == {"0"}
    assert appliance.telemetry("/tokd/info")["sandbox"] == "no"
    assert appliance.stop() == 0
