# SPDX-License-Identifier: BSD-3-Clause
"""An appliance and a load generator over shared memory, open loop, 256 addresses, at 0.8 to 2 times
what the appliance can serve: ids are right, and what gets none is known. Times depend on the
machine and are printed only, with the counters that explain them: if texts wait, wire_to_ring is
long (feed_deferred, drop_held); if packets or replies are lost, text_to_last_id alone, and the
client sends again (tx_full).

TESTS_OVERLOAD_S=N: so many seconds for each load, seven times over. Without it nothing is run."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from statistics import median
from typing import Any

import pytest
from bench.appliance import MEMIF_IP, Appliance, on_memif
from bench.lab.cpus import WORKER_CPU, on_client_cpu
from bench.lab.hugepages import hugepages
from bench.load import Rows, memif_command, read_rows
from bench.texts import mix, slices
from dpdk_tokd.ops.telemetry import Telemetry

SECONDS = float(os.environ.get("TESTS_OVERLOAD_S", "0"))
TEXTS, TOKENS = 500, 512
CLIENTS, IN_FLIGHT = 256, 64
CLOSED_REQUESTS = 20_000
LOADS = (0.8, 1.0, 1.25, 1.5, 2.0)  # of the capacity
ROUNDS = 7  # interleaved: how fast a shared machine is changes from minute to minute

pytestmark = [
    pytest.mark.skipif(SECONDS == 0, reason="measures: set TESTS_OVERLOAD_S, on a quiet machine"),
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root: huge pages"),
    pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="two that poll need two CPUs"),
]


STAGES = ("wire_to_ring", "text_to_last_id", "tokenizer", "ring_to_reply")
# Why packets were not fed at once, or not answered.
COUNTERS = (
    *("feed_deferred", "drop_backlog", "drop_held", "drop_validate", "drop_table_full"),
    *("streams_evicted", "rx_duplicate", "tx_full", "drop_repeat"),
)


class Outcome:
    """What became of the texts of one run, as generator and appliance counted it."""

    def __init__(
        self,
        report: dict[str, Any],
        rows: Rows,
        ms: dict[str, float],
        counters: dict[str, int],
        busy: float,
    ) -> None:
        self.report, self.rows, self.ms, self.counters = report, rows, ms, counters
        self.busy = busy  # the worker's share of time
        begun = [int(row["intended_ns"]) for row in rows]
        last = max(begun)
        # Served by the end, a second.
        self.good = sum(
            row["ok"] == "1" and at + int(row["ns"]) <= last
            for at, row in zip(begun, rows, strict=True)
        ) * (1e9 / max(last - min(begun), 1))

    @property
    def p99(self) -> float:
        """ms: first packet taken from the queue to last record published, plus from there to the
        reply."""
        return self.ms["text_to_last_id"] + self.ms["ring_to_reply"]

    def __str__(self) -> str:
        r = self.report
        again = sum(row["ok"] == "1" and row["retransmits"] != "0" for row in self.rows)
        stages = ", ".join(f"{name} {ms:.3f}" for name, ms in self.ms.items())
        counts = ", ".join(f"{name} {n}" for name, n in self.counters.items())
        return (
            f"{self.good:,.0f} served, p99 {self.p99:.3f} ms; of {r['requests']}: "
            f"{r['right']} right, {r['refused']} refused, {r['no_answer']} no answer; "
            f"{r['not_sent']} not sent\n"
            f"  p99 in ms: {stages}; worker busy {100 * self.busy:.0f}%\n"
            f"  appliance: {counts}\n"
            f"  client: {r['retransmits']} packets sent again, {r['asks']} questions, "
            f"{again} texts right after one"
        )


def run(vocab: Path, folder: Path, sent: Path, huge: bool, *options: object) -> Outcome:
    report, rows = folder / "report.json", folder / "rows.csv"
    command = memif_command(folder, sent, report, "--out", rows, *options)
    with (
        on_client_cpu(),
        Appliance(on_memif(folder), MEMIF_IP, vocab, folder, [WORKER_CPU], huge) as appliance,
        Telemetry(folder=appliance.telemetry) as telemetry,
    ):
        before = telemetry.counters()
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
        after = telemetry.counters()
        ms = {name: 1e3 * (telemetry.histogram(name).percentile(0.99) or 0) for name in STAGES}
    assert done.returncode in (0, 1), done.stderr
    assert "wrong" not in done.stderr
    took = {name: after[name] - before[name] for name in after}
    return Outcome(
        json.loads(report.read_text()),
        read_rows(rows),
        ms,
        {name: took[name] for name in COUNTERS},
        took["cycles_busy"] / (took["cycles_busy"] + took["cycles_idle"]),
    )


def test_goodput_and_time_at_twice_the_capacity(tmp_path: Path) -> None:
    vocab, pieces, _ = mix.cut(TEXTS, {TOKENS: 1})
    sent = tmp_path / "texts.bin"
    slices.write(sent, pieces)

    def offer(rate: float) -> Outcome:
        """Prints what became of the texts."""
        got = run(
            vocab, tmp_path, sent, huge,
            *("--requests", round(rate * SECONDS), "--rate", round(rate)),
            *("--clients", CLIENTS, "--addresses", CLIENTS, "--in-flight", IN_FLIGHT),
        )  # fmt: skip
        print(f"{rate:,.0f} texts/s offered, {got}")
        r = got.report
        assert r["right"] + r["refused"] + r["no_answer"] == r["requests"]
        assert r["right"] > 0
        return got

    with hugepages() as huge:
        closed = run(
            vocab, tmp_path, sent, huge,
            *("--requests", CLOSED_REQUESTS, "--clients", 64, "--in-flight", 16),
        ).report  # fmt: skip
        assert closed["right"] == closed["requests"]
        # A closed loop waits for its client, too.
        capacity = offer(2 * closed["right"] / closed["seconds"]).good
        print(f"capacity {capacity:,.0f} texts of {TOKENS} ids a second")
        at = {load: list[Outcome]() for load in LOADS}
        for _ in range(ROUNDS):
            for load, outcomes in at.items():
                outcomes.append(offer(load * capacity))
    good = {load: median(o.good for o in outcomes) for load, outcomes in at.items()}
    p99 = {load: median(o.p99 for o in outcomes) for load, outcomes in at.items()}
    for load, outcomes in at.items():
        served = sorted(round(o.good) for o in outcomes)
        print(
            f"load {load}: of {ROUNDS} runs the median {good[load]:,.0f} served "
            f"({served[0]:,} to {served[-1]:,}), p99 {p99[load]:.3f} ms"
        )
    print(
        f"at twice the capacity: p99 {p99[2.0] / p99[0.8]:.1f} times that at 0.8 (limit 3), "
        f"goodput {100 * good[2.0] / max(good.values()):.0f}% of the peak (limit 95)"
    )
