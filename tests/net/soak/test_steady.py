# SPDX-License-Identifier: BSD-3-Clause
"""An appliance and a load generator over shared memory, open loop, at 0.8 times what the appliance
can serve, with a reload in each period: ids are right, and memory is flat. Times depend on the
machine and are printed only.

TESTS_SOAK_S=N: for so many seconds, in periods of a minute."""

import csv
import json
import os
import statistics
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from appliance import until
from bench.appliance import MEMIF_IP, Appliance, on_memif
from bench.lab import memory
from bench.lab.cpus import WORKER_CPU, on_client_cpu
from bench.lab.hugepages import hugepages
from bench.load import memif_command
from bench.texts import mix, slices
from dpdk_tokd.ops.telemetry import Telemetry

LONG = "TESTS_SOAK_S" in os.environ
PERIOD_S = 60 if LONG else 1
PERIODS = round(float(os.environ["TESTS_SOAK_S"]) / PERIOD_S) if LONG else 3
LOAD = 0.8
TEXTS, TOKENS = 500, 512
CAPACITY_REQUESTS = 10_000
# Of the process. The allocators keep what a reload frees.
FIGURES, SLACK = ("VmRSS", "RssAnon", "HugetlbPages", "heap"), 4 * memory.MIB

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root: huge pages"),
    pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="two that poll need two CPUs"),
]


def loaded(
    folder: Path, sent: Path, *options: object, meanwhile: Callable[[], None] = lambda: None
) -> dict[str, Any]:
    """The generator's report, and the median in us of the texts that were answered."""
    report, rows = folder / "report.json", folder / "rows.csv"
    command = memif_command(folder, sent, report, "--out", rows, *options)
    with (folder / "load.log").open("w") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        meanwhile()
        code = process.wait(10 * PERIOD_S + 60)
    finally:
        process.kill()
    said = (folder / "load.log").read_text()
    assert code in (0, 1) and "wrong" not in said, said
    with rows.open() as file:
        answered = [int(row["ns"]) for row in csv.DictReader(file) if row["ok"] == "1"]
    return json.loads(report.read_text()) | {"p50": statistics.median(answered) / 1000}


def test_memory_and_times_are_flat_under_load_and_reloads(tmp_path: Path) -> None:
    vocab, pieces, _ = mix.cut(TEXTS, {TOKENS: 1})
    sent, config = tmp_path / "texts.bin", tmp_path / "tokd.conf"
    slices.write(sent, pieces)
    config.write_text("[tokd]\n")
    held, medians = [], []
    with (
        hugepages() as huge,
        on_client_cpu(),
        Appliance(
            on_memif(tmp_path), MEMIF_IP, vocab, tmp_path, [WORKER_CPU], huge, "--config", config
        ) as appliance,
        Telemetry(folder=appliance.telemetry) as telemetry,
    ):
        closed = loaded(
            tmp_path, sent, "--requests", CAPACITY_REQUESTS, "--clients", 64, "--in-flight", 16
        )
        rate = max(1, round(LOAD * closed["right"] / closed["seconds"]))
        print(f"\n{LOAD} of {closed['right'] / closed['seconds']:,.0f} texts/s")
        for period in range(PERIODS):
            before = telemetry.counters()["streams_done"]

            def reload(period: int = period, some: int = before + rate * PERIOD_S // 4) -> None:
                config.write_text(f"[tokd]\nmax-text = {16 + period % 2}M\n")
                until(lambda: telemetry.counters()["streams_done"] >= some, 2 * PERIOD_S + 60)
                telemetry.command("/tokd/reload")

            report = loaded(
                tmp_path, sent, "--requests", rate * PERIOD_S, "--rate", rate, "--clients", 256,
                "--in-flight", 64, meanwhile=reload,
            )  # fmt: skip
            want = {"reloads": period + 1, "reloads_failed": 0, "old_texts": 0}
            until(lambda want=want: want.items() <= telemetry.info().items())
            rest = [report[name] for name in ("refused", "no_answer", "not_sent")]
            # `requests` are those that were sent.
            assert report["right"] + rest[0] + rest[1] == report["requests"]
            medians.append(report["p50"])
            held.append({name: memory.sample(telemetry)[name] for name in FIGURES})
            print(
                f"{period + 1}: {report['right']} of {report['requests']} right, {rest[0]} refused, "
                f"{rest[1]} no answer, {rest[2]} not sent; p50 {medians[-1]:.1f} us; "
                + ", ".join(f"{name} {value / memory.MIB:.1f}" for name, value in held[-1].items())
            )
        assert appliance.stop() == 0
    for name in FIGURES:
        assert held[-1][name] <= held[PERIODS // 2][name] + SLACK, held
