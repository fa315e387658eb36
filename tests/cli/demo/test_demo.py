# SPDX-License-Identifier: BSD-3-Clause
"""The main job, as README says it: tools/demo --quick."""

import json
import os
import re
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest
from ended import ended

ROOT = Path(__file__).resolve().parents[3]
SIZES = {"128", "512", "2048", "8KB"}


def said_by(*command: str) -> list[str]:
    return ended(*command).stdout.splitlines()


def surroundings() -> dict[str, object]:
    """What a demo must leave as it was, and what it must not leave behind."""
    pool = Path("/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages")
    return {
        "interfaces": [line for line in said_by("ip", "-br", "link") if re.match(r"tokd\d", line)],
        "namespaces": [line for line in said_by("ip", "netns") if line.startswith("tokd-demo-")],
        "huge pages": pool.read_text() if pool.is_file() else "",
        "folders": sorted(Path(tempfile.gettempdir()).glob("tokd-demo-*")),
        "servers": said_by("pgrep", "-af", "/tokd-demo-|socket_server"),
    }


needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: makes a network namespace")


@needs_root
@pytest.mark.parametrize("signals", [(signal.SIGINT,), (signal.SIGTERM,), (signal.SIGINT,) * 3])
def test_a_demo_that_is_interrupted_cleans_up(signals, tmp_path):
    before = surroundings()
    log = tmp_path / "log"
    with log.open("wb") as out:
        demo = subprocess.Popen(
            [ROOT / "tools/demo", "--quick"],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        deadline = time.monotonic() + 300
        while "round 1 of" not in log.read_text():
            assert demo.poll() is None and time.monotonic() < deadline, log.read_text()
            time.sleep(0.05)
        for number in signals:
            os.killpg(demo.pid, number)  # as a terminal does
            time.sleep(0.1)
        assert demo.wait(60) == 128 + signals[0], log.read_text()
    finally:
        if demo.poll() is None:
            os.killpg(demo.pid, signal.SIGKILL)
            demo.wait()
    assert surroundings() == before


@pytest.mark.parametrize("arguments", [["--help"], ["--fast"], ["--json"], ["--sink", "cpu"]])
def test_options_are_looked_at_before_anything_is_done(arguments):
    done = ended(ROOT / "tools/demo", *arguments, timeout=5)
    assert done.returncode == (0 if arguments == ["--help"] else 2)
    assert "setup" not in done.stderr
    assert arguments[0] in done.stderr or "--quick" in done.stdout


@needs_root
def test_a_file_that_cannot_be_written_is_noticed_at_once(tmp_path):
    done = ended(
        ROOT / "tools/demo", "--quick", "--json", tmp_path / "no" / "such.json", timeout=300
    )
    assert done.returncode == 2
    assert "such.json: No such file or directory" in done.stderr
    assert "round" not in done.stdout


def quick(folder: Path, *options: str) -> dict[str, Any]:
    """Its report; it must succeed."""
    result = folder / "demo.json"
    done = subprocess.run(
        [ROOT / "tools/demo", "--quick", *options, "--json", result],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return json.loads(result.read_text())


@needs_root
def test_the_quick_demo_finds_all_ids_equal_and_cleans_up(tmp_path):
    before = surroundings()
    report = quick(tmp_path)
    assert report["ids_equal"] is True
    assert report["text_bytes"] >= 1_000_000
    assert report["ring"]["wrong"] == 0
    assert report["ring"]["ids"] >= report["ids"]  # repeats included
    for name in ("rtt_us", "baseline_us", "echo_us", "tokenizer_us"):
        times = report[name]
        assert set(times) == SIZES
        for size in times.values():
            assert size["samples"] > 0
            assert 0 < size["p50"] <= size["p99"]
    assert surroundings() == before


@needs_root
def test_the_gpu_sink_finds_all_embeddings_equal_and_cleans_up(tmp_path):
    before = surroundings()
    report = quick(tmp_path, "--sink", "gpu")
    assert report["ids_equal"] is True and report["embeddings_equal"] is True
    assert report["rows"] >= 100_000
    assert set(report["whole_us"]) == SIZES
    posted = report["posted_to_embedded_us"]
    assert posted["samples"] >= report["requests"] and 0 < posted["p50"] <= posted["p99"]
    assert surroundings() == before
