# SPDX-License-Identifier: BSD-3-Clause
"""An appliance and a load generator over shared memory, open loop, at 0.8 and 2 times what the
appliance can serve: ids are right, and what gets none is known. Times depend on the machine and are
printed only.

TESTS_OVERLOAD_S=N: so many seconds each. Without it nothing is run."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from bench.appliance import MEMIF_IP, Appliance, on_memif
from bench.lab.cpus import WORKER_CPU, on_client_cpu
from bench.lab.hugepages import hugepages
from bench.load import memif_command, read_rows
from bench.texts import mix, slices
from dpdk_tokd.ops.telemetry import Telemetry

SECONDS = float(os.environ.get("TESTS_OVERLOAD_S", "0"))
TEXTS, TOKENS = 500, 512
CLIENTS, IN_FLIGHT = 256, 64
CAPACITY_REQUESTS = 20_000

pytestmark = [
    pytest.mark.skipif(SECONDS == 0, reason="measures: set TESTS_OVERLOAD_S, on a quiet machine"),
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root: huge pages"),
    pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="two that poll need two CPUs"),
]


def run(
    vocab: Path, folder: Path, sent: Path, huge: bool, *options: object
) -> tuple[dict[str, Any], float]:
    """The generator's report, and the appliance's p99 in ms: first packet taken from the queue to
    last record published, plus from there to the reply."""
    report, rows = folder / "report.json", folder / "rows.csv"
    command = memif_command(folder, sent, report, "--out", rows, *options)
    with (
        on_client_cpu(),
        Appliance(on_memif(folder), MEMIF_IP, vocab, folder, [WORKER_CPU], huge) as appliance,
        Telemetry(folder=appliance.telemetry) as telemetry,
    ):
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
        stages = [telemetry.histogram(name) for name in ("text_to_last_id", "ring_to_reply")]
    assert done.returncode in (0, 1), done.stderr
    assert "wrong" not in done.stderr
    return json.loads(report.read_text()) | {"rows": read_rows(rows)}, sum(
        1e3 * (s.percentile(0.99) or 0) for s in stages
    )


def test_goodput_and_time_at_twice_the_capacity(tmp_path: Path) -> None:
    vocab, pieces, _ = mix.cut(TEXTS, {TOKENS: 1})
    sent = tmp_path / "texts.bin"
    slices.write(sent, pieces)
    with hugepages() as huge:
        closed, _ = run(
            vocab, tmp_path, sent, huge,
            *("--requests", CAPACITY_REQUESTS, "--clients", 64, "--in-flight", 16),
        )  # fmt: skip
        assert closed["right"] == closed["requests"]
        capacity = closed["right"] / closed["seconds"]
        print(f"\ncapacity {capacity:,.0f} texts of {TOKENS} ids a second")
        for load in (0.8, 2.0):
            rate = max(1, round(load * capacity))
            report, p99 = run(
                vocab, tmp_path, sent, huge,
                *("--requests", round(rate * SECONDS), "--rate", rate),
                *("--clients", CLIENTS, "--in-flight", IN_FLIGHT),
            )  # fmt: skip
            rest = [report[name] for name in ("refused", "no_answer", "not_sent")]
            begun = [int(row["intended_ns"]) for row in report["rows"]]
            good = sum(
                row["ok"] == "1" and at + int(row["ns"]) <= max(begun)
                for at, row in zip(begun, report["rows"], strict=True)
            )
            print(
                f"load {load}: {good * 1e9 / (max(begun) - min(begun)):,.0f} texts/s, "
                f"p99 {p99:.3f} ms; of {report['requests']}: {report['right']} right, "
                f"{rest[0]} refused, {rest[1]} no answer, {rest[2]} not sent"
            )
            assert report["right"] + sum(rest) == report["requests"]
            assert report["right"] > 0
