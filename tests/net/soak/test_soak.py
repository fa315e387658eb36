# SPDX-License-Identifier: BSD-3-Clause
"""The tasks soak, stages and queues of tools/sweep, shortened: real appliances over shared memory
and over af_packet. boxes/soak.json has the whole run."""

import os
from pathlib import Path
from typing import Any

import pytest

tasks = pytest.importorskip("bench.task", reason="run tools/setup")

REQUESTS = 250_000  # a few seconds; the side store fills for the first 100,000
STAGES = ("tokenize", "in-and-publish", "reply", "wire-and-client")

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root: namespaces, huge pages"),
    pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="two that poll need two CPUs"),
]


def measured(name: str, folder: Path, **parameters: Any) -> tuple[Any, tasks.Report]:
    """A trial, as tools/sweep makes one: its raw result and its report."""
    task = tasks.load(name)
    module, given = task.module, {k.replace("_", "-"): v for k, v in parameters.items()}
    assert set(given) == set(module.PARAMETERS)
    context = tasks.Context(folder, True, [given], print)
    with context.stack:
        state = module.prepare(context)
        raw = task.run(state, given, 1)
        report = module.report(state, given, raw)
    assert task.error(report) is None and report.ids_checked > 0
    return raw, report


def test_faults_lose_no_text_double_none_and_leave_memory_flat(tmp_path):
    raw, report = measured(
        "soak", tmp_path, requests=REQUESTS, texts=2000, loss=2, reorder=2, duplicate=1
    )
    load, ring = raw.load, raw.load["ring"]
    assert load["requests"] == load["right"] == ring["texts"] == REQUESTS
    assert ring["lost"] == ring["wrong"] == ring["doubled"] == 0
    for way in (load["to_appliance"], load["from_appliance"]):
        assert way["lost"] / way["packets"] == pytest.approx(0.02, rel=0.2)
        assert way["reordered"] / way["packets"] == pytest.approx(0.02, rel=0.2)
        assert way["duplicated"] / way["packets"] == pytest.approx(0.01, rel=0.3)
    assert raw.samples >= 10 and report.counts["sent-again"] > 0
    assert all(one["flat"] for one in raw.held.values())  # and nothing is left when it is idle


@pytest.mark.parametrize(
    ("corpus", "unit", "length"), [("multi", "bytes", 8192), ("mixed", "tokens", 128)]
)
@pytest.mark.parametrize("vocabulary", ["gpt2", "bert-base-uncased"])
def test_stages_are_parts_of_the_round_trip(tmp_path, vocabulary, corpus, unit, length):
    _, report = measured(
        "stages", tmp_path, vocabulary=vocabulary, corpus=corpus, unit=unit, length=length,
        requests=100,
    )  # fmt: skip
    values, samples = report.values, report.samples
    assert all(values[name] > 0 for name in STAGES)
    inside = values["tokenize"] + values["in-and-publish"]
    assert inside < sum(values[name] for name in STAGES)
    # Sums of means lie between the least and the largest of what they are means of.
    assert inside * 1000 <= samples["inside"].max() * 1.001
    assert sum(values[n] for n in STAGES) * 1000 <= samples["round-trip"].max() * 1.001
    assert 0 < values["share"] < 100
    assert len(samples["record"]) >= len(samples["inside"]) == 100
    assert samples["record"].percentile(50) <= samples["inside"].max()
    assert report.ids_checked > 100


def test_a_second_worker_gets_streams_and_keeps_them(tmp_path):
    raw, report = measured("queues", tmp_path, workers=2, clients=8, characters=200_000)
    assert len(raw.streams) == 2 and min(raw.streams) > 0
    assert report.values["throughput"] > 0 and 0 < report.values["busy"] <= 100
