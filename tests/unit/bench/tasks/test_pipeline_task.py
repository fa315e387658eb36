# SPDX-License-Identifier: BSD-3-Clause
"""The task pipeline: what it makes of time stamps, and what it never makes a figure of."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("hdrh.histogram", reason="run tools/setup")
from bench import client
from bench import task as tasks
from bench.process import Ended
from bench.task import Missing, WrongIds
from bench.tasks import embed_client
from dpdk_tokd import EmbeddingStatus
from dpdk_tokd.ops.telemetry import Histogram

HZ = 2  # ticks a ns
START = 5_000_000  # CLOCK_MONOTONIC at tick 1000
TEXT = {
    "serial": 7, "taken": 10_000, "published": 70_000, "posted": 74_000, "visible": START + 40_000,
    "written": START + 90_000, "ready": START + 95_000, "again": 0,
}  # fmt: skip
# In ns: tick 10,000 is 4,500 ns after START.
STAGES = {
    "taken-to-published": 30_000, "published-to-posted": 2_000, "posted-to-visible": 3_500,
    "visible-to-written": 50_000, "written-to-ready": 5_000, "total": 90_500,
}  # fmt: skip


@pytest.fixture(scope="module")
def module() -> Any:
    return tasks.load("pipeline").module


def report(module: Any, pipeline: str, gpu: bool, **stamps: int) -> tasks.Report:
    clock = module.Clock(
        {"tsc": 1000, "monotonic_ns": START, "within_ns": 20},
        {"tsc": 1_001_000, "monotonic_ns": START + 500_000, "within_ns": 10},
    )
    times = Histogram((0, 30), 1e-3, HZ * 10**9, 5, 4)
    histograms = dict.fromkeys(("tokenizer", "wire_to_ring", "posted_to_done"), times)
    raw = module.Raw([TEXT | stamps] * 30, histograms, clock, 1, [])
    return module.report(SimpleNamespace(gpu=gpu), {"pipeline": pipeline}, raw)


def medians(found: tasks.Report) -> dict[str, int]:
    return {name: samples.percentile(50) for name, samples in found.samples.items()}


def whole(module: Any, found: tasks.Report) -> bool:
    """As the runner has it, and no metric is both."""
    assert not set(found.samples) & set(found.missing)
    return tasks.Task("pipeline", module).error(found) is None


def test_stages_follow_one_another_and_add_up(module):
    found = report(module, "cpu", False)
    assert whole(module, found) and not found.missing
    here = medians(found)
    for name, ns in STAGES.items():
        assert here[name] == pytest.approx(ns, rel=0.002), name
    assert sum(STAGES.values()) == 2 * STAGES["total"]
    assert set(found.clocks) == set(module.METRICS)


def test_threads_of_the_cpu_are_never_a_gpus_time(module):
    found = report(module, "gpu", False)
    assert whole(module, found)
    assert set(found.samples) == {"taken-to-published"}
    device = {"posted-to-visible", "visible-to-written", "written-to-ready", "posted-to-done"}
    assert {found.missing[name] for name in device | {"tokenize", "total"}} == {"no GPU"}


@pytest.mark.parametrize("pipeline", ["cpu", "gpu"])
def test_a_gpus_clock_is_not_compared_with_the_hosts(module, pipeline):
    found = report(module, pipeline, True, visible=17, written=50_017)
    assert whole(module, found)
    assert medians(found)["visible-to-written"] == pytest.approx(50_000, rel=0.002)
    for name in ("posted-to-visible", "written-to-ready"):
        assert found.missing[name] == "the GPU's clock is not the host's"


def test_a_text_whose_rows_came_again_is_counted_and_has_no_times(module):
    found = report(module, "cpu", False, again=1)
    assert found.counts == {"came-again": 30} and len(found.samples["total"]) == 0


def test_clocks_that_disagree_are_no_figure(module):
    early = START + 36_500 - 30  # 30 ns before it was posted: within the error of both readings
    assert medians(report(module, "cpu", False, visible=early))["posted-to-visible"] <= 1
    with pytest.raises(OSError, match="visible is 60 ns before posted"):
        report(module, "cpu", False, visible=early - 30)


def test_what_is_not_here_is_named(module, monkeypatch):
    monkeypatch.setattr(module, "bluefield_here", lambda: False)
    for pipeline, why in (("dpu", "no BlueField"), ("gpu", "has no --pipeline gpu")):
        with pytest.raises(Missing, match=why):
            module.run(SimpleNamespace(has_pipelines=False), {"pipeline": pipeline})


# ---- the client ----

RIGHT = np.arange(12, dtype=np.float32).reshape(6, 2)


class Subscriber(list[Any]):
    """An EmbeddingReader that has slots of these rows."""

    cuda_device = None

    def __init__(self, *slots: slice, **change: Any) -> None:
        super().__init__(
            Slot(
                request=1, first=rows.start, last=rows.stop == len(RIGHT), aborted=False,
                status=EmbeddingStatus.OK, array=RIGHT[rows].copy(), t_post=1, visible_ns=2,
                embedded_ns=3, t_ready_ns=4,
            )
            for rows in slots
        )  # fmt: skip
        for name, value in change.items():
            setattr(self[-1], name, value)


class Slot(SimpleNamespace):
    def __len__(self) -> int:
        return len(self.array)


def test_the_last_slots_stamps_count():
    stamps = {"serial": 1, "posted": 1, "visible": 2, "written": 3, "ready": 4, "again": 0}
    assert embed_client._take(Subscriber(slice(0, 4), slice(4, 6)), RIGHT, 0) == stamps
    # After a new connection rows come again, from the text before on.
    again = Subscriber(slice(0, 4), slice(0, 4), slice(4, 6))
    again.insert(1, Slot(request=0))
    assert embed_client._take(again, RIGHT, 0) == stamps | {"again": 1}


@pytest.mark.parametrize(
    ("subscriber", "error"),
    [
        (Subscriber(slice(2, 6)), ValueError),
        (Subscriber(slice(0, 4)), ValueError),  # the agent has ended
        (Subscriber(slice(0, 6), aborted=True), ValueError),
        (Subscriber(slice(0, 4), last=True), ValueError),
        (Subscriber(slice(0, 6), array=RIGHT + 1), embed_client.WrongRows),
    ],
)
def test_rows_that_are_wrong_or_not_there_once_have_no_stamps(subscriber, error):
    with pytest.raises(error):
        embed_client._take(subscriber, RIGHT, 0)


@pytest.mark.parametrize(
    ("code", "error"), [(client.WRONG, WrongIds), (1, OSError)], ids=["wrong", "failed"]
)
def test_wrong_rows_refuse_the_test(module, monkeypatch, code, error):
    def ended(*_: Any) -> None:
        raise Ended(code, "rows are not the reference's")

    monkeypatch.setattr(client, "json_of", ended)
    link = SimpleNamespace(server="", port=0)
    state, consumer = SimpleNamespace(link=link, client=None), SimpleNamespace(subscribers="")
    with pytest.raises(error, match="rows are not the reference's"):
        module._ask(state, consumer, Path("t"), Path("s"), 1)
