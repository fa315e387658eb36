# SPDX-License-Identifier: BSD-3-Clause
"""The task gpu-sink: a real run by the CPU consumer, cut short; and what it does not let pass."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

sink_replay = pytest.importorskip("bench.tasks.sink_replay", reason="run tools/setup")
from bench import task as tasks
from bench.sweep import box as boxes
from bench.task import Missing, WrongIds
from bench.texts import reference
from dpdk_tokd.embeddings.table import random_table

ROOT = Path(__file__).resolve().parents[4]
DIM = 4
SIZE = 300
PARAMETERS = {
    "sink": "cpu", "slot-kib": 4, "slots": 4, "workers": 1, "batch-us": 20, "text-bytes": SIZE,
    "text-kib": 16, "dim": DIM,
}  # fmt: skip


@pytest.fixture(scope="module")
def module():
    made = tasks.load("gpu-sink").module
    for program in (made.DPDK_TOKD, made.TOKD_GPU):
        if not program.is_file():
            pytest.skip(f"{program} is not built: run tools/setup")
    return made


@pytest.fixture(scope="module")
def texts(ranks_file, tmp_path_factory):
    """Of three corpora; the tokenizers that make their ids agree on them."""
    folder = tmp_path_factory.mktemp("corpora")
    paths = [folder / name for name in ("english", "code", "multi")]
    for path, line in zip(
        paths, ("A tale of {} words. ", "x[{}] += y\n", "Öl, 你好 {}! "), strict=True
    ):
        path.write_text("".join(line.format(n * n) for n in range(2000)), encoding="utf-8")
    return sink_replay.texts(ranks_file, paths, SIZE, 60)


@pytest.fixture
def state(module, texts, ranks_file, tmp_path):
    """As prepare() makes it, but for the corpora, and without huge pages."""
    plan = module._plan(tmp_path / "all" / "texts.pcap", texts, 60)
    first = module._plan(tmp_path / "first" / "texts.pcap", texts, 20)
    tables = {DIM: random_table(module.ROWS, DIM, 1)}
    return module.State(tmp_path, ranks_file, False, {(SIZE, 16): plan}, {SIZE: first}, tables)


@pytest.mark.slow
def test_texts_are_of_all_corpora_and_the_references(texts, ranks_file):
    assert len(texts.ids) == 60 and all(SIZE - 3 <= len(text) <= SIZE for text in texts.texts)
    tokenizer = reference.load_gpt2(ranks_file)
    for text, ids in zip(texts.texts[:3], texts.ids, strict=False):
        assert reference.ids(tokenizer, text.decode()) == ids.tolist()
    assert len({text[:2] for text in texts.texts[:3]}) == 3


@pytest.mark.slow
@pytest.mark.parametrize("change", [{}, {"slot-kib": 1, "slots": 2}, {"batch-us": 0}])
def test_rows_and_ids_are_compared_and_slots_counted(module, state, change):
    parameters = PARAMETERS | change
    raw = module.run(state, parameters)
    report = module.report(state, parameters, raw)
    all_ids = sum(map(len, state.plans[SIZE, 16].texts.ids))
    assert raw.embedded.ids_checked == all_ids
    assert raw.rows_checked == sum(map(len, state.first[SIZE].texts.ids))
    assert report.ids_checked == all_ids + raw.rows_checked
    slots = raw.embedded.counters["sink_slots"]
    assert len(report.samples["posted-to-embedded"]) == slots > 0
    assert set(report.values) | set(report.samples) == set(module.METRICS)
    assert 0 < report.values["payload"] <= parameters["slot-kib"]
    assert 0 < report.values["in-flight"] <= parameters["slots"] * 1.1  # buckets and clocks
    assert "workers on CPUs" in report.notes[0]


@pytest.mark.slow
@pytest.mark.parametrize("which", ["plans", "first"])
def test_one_wrong_id_refuses_all(module, state, which):
    plan = next(iter(getattr(state, which).values()))
    ids = plan.texts.ids
    ids[-1] = ids[-1].copy()
    ids[-1][-1] += 1
    with pytest.raises(WrongIds, match="not the reference's|not those of the reference's"):
        module.run(state, PARAMETERS)


@pytest.mark.slow
def test_a_wrong_row_refuses_all(module, state):
    id_ = state.first[SIZE].texts.ids[3][0]
    state.tables[DIM] = state.tables[DIM].copy()
    state.tables[DIM][id_, DIM - 1] += 1
    with pytest.raises(WrongIds, match="embeddings are not those"):
        module.run(state, PARAMETERS)


@pytest.mark.parametrize(
    ("takes", "complaint"),
    [
        ([(0, 0, 0, 2, False), (0, 1, 0, 2, True), (0, 0, 2, 1, True)], None),
        ([(0, 0, 0, 3, False), (0, 0, 3, 0, True)], None),  # the last record may be without ids
        ([(0, 0, 1, 2, True)], "text 0: 2 ids from 1 on"),
        ([(0, 0, 0, 4, True)], "4 ids from 0 on"),
        ([(0, 0, 0, 2, True)], "2 ids from 0 on, last=True"),
        ([(0, 0, 0, 3, True), (0, 0, 0, 3, True)], "text 0: more than was sent"),
        ([(0, 2, 0, 1, True)], "text 2: more than was sent"),
    ],
)
def test_what_comes_is_in_order_and_whole(takes, complaint):
    due = sink_replay.InOrder([np.array([1, 2, 3]), np.array([4, 5])], 2)
    if complaint is None:
        for take in takes:
            due.take(*take)
        assert due.left == 4 - sum(last for *_, last in takes)
        assert due.checked == sum(count for *_, count, _ in takes)
        return
    with pytest.raises(WrongIds, match=complaint):
        for take in takes:
            due.take(*take)


def test_what_failed_has_no_figure(module):
    embedded = SimpleNamespace(counters={"sink_failed": 1}, seconds=1.0)
    with pytest.raises(WrongIds, match="1 texts were not embedded"):
        module.report(None, PARAMETERS, SimpleNamespace(embedded=embedded))


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"sink": "cuda"}, "no NVIDIA GPU"),
        ({"sink": "cuda-host"}, "no NVIDIA GPU"),
        ({"sink": "verbs"}, "no RDMA device"),
        ({"workers": 64}, "64 workers need 64 CPUs"),
    ],
)
def test_what_the_machine_has_not_is_missing(module, monkeypatch, change, why):
    monkeypatch.setattr(module, "gpu_here", lambda: False)
    monkeypatch.setattr(module, "rdma_devices", list)
    monkeypatch.setattr(module, "CPUS", [0, 1])
    with pytest.raises(Missing, match=why):
        module.run(None, PARAMETERS | change)


def test_outputs_hold_the_rows_of_all_slots(module):
    def room(**change: Any) -> int:
        return module._out_bytes(PARAMETERS | {k.replace("_", "-"): v for k, v in change.items()})

    assert room() == module.OUT_LEAST
    assert room(slot_kib=64, slots=64, dim=16) == 128 << 20
    # Four full slots are what tokd-gpu asks for at least.
    assert room(slot_kib=1024, slots=64, dim=768) >= 4 * (1024 << 10) // 4 * 768 * 4


def test_workers_have_the_last_cpus_and_the_consumer_what_is_left(module, monkeypatch):
    monkeypatch.setattr(module, "CPUS", [0, 1, 2, 3])
    cpus, options, note = module._placed(PARAMETERS | {"workers": 1})
    assert cpus == [3] and options == ["--workers", "1", "--first-cpu", "0"]
    cpus, options, _ = module._placed(PARAMETERS | {"workers": 4})
    assert cpus == [3, 2, 1, 0] and options == ["--workers", "0"]
    assert "consumer: 2 thread(s), CPUs [0, 1, 2]" in note


@pytest.mark.parametrize("quick", [True, False])
def test_the_box_asks_for_all_sinks(module, quick):
    box = boxes.load(ROOT / "boxes" / "buddy.json", quick)
    assert {t.parameters["sink"] for t in box.tests} == set(module.SINKS)
