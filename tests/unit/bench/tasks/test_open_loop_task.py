# SPDX-License-Identifier: BSD-3-Clause
"""The task open-loop over the loopback: what it sends, and what it makes of the answers."""

from pathlib import Path

import pytest

pytest.importorskip("hdrh.histogram", reason="run tools/setup")
from bench import load
from bench import task as tasks
from bench.sweep.store import Store
from bench.task import Context, WrongIds

WARM_UP = 3
PARAMETERS = {
    "corpus": "english", "tokens": 16, "texts": 20, "system": "libtok-udp-asyncio",
    "arrivals": "poisson", "scale": "requests/s", "load": 100, "seconds": 0.5, "in-flight": 64,
    "limit": 20_000,
}  # fmt: skip


@pytest.fixture(scope="module")
def module():
    return tasks.load("open-loop").module


@pytest.fixture
def state(module, bench, monkeypatch, tmp_path):
    for where in (module, load):
        monkeypatch.setattr(where, "WARM_UP", WARM_UP)
    made = bench(PARAMETERS["texts"])
    monkeypatch.setattr(module.systems, "prepare", lambda *_: made)
    return module.prepare(context(tmp_path))


def context(folder: Path) -> Context:
    return Context(folder, True, [PARAMETERS], print, kept=Store(folder / "out").kept("open-loop"))


@pytest.mark.parametrize("system", ["libtok-udp-asyncio", "libtok-tcp-asyncio", "rust-tcp"])
def test_a_server_is_asked_by_the_schedule_and_every_id_compared(module, state, system):
    parameters = PARAMETERS | {"system": system}
    raw = module.run(state, parameters, 1)
    found = module.report(state, parameters, raw)
    assert len(raw.rows) == len(found.samples["round-trip"]) == len(found.samples["late"]) == 50
    pieces = state.bench.pieces["english", 16]
    sent = [pieces[i % len(pieces)] for i in range(WARM_UP, WARM_UP + 50)]
    assert found.ids_checked == sum(len(piece.ids) for piece in sent)
    assert set(found.counts.values()) == {0}
    values = found.values
    assert values["throughput"] == pytest.approx(values["rate"] * found.ids_checked / 50 / 1e6)
    assert found.notes[0].startswith(f"{system}: ")
    assert tasks.load("x", Path(module.__file__)).error(found) is None


@pytest.mark.slow
def test_each_repeat_has_arrivals_of_its_own_and_all_systems_the_same(module, state, tmp_path):
    def schedule(repeat: int, **other: object) -> list[str]:
        given = PARAMETERS | {"load": 1000, "seconds": 0.02} | other
        rows = module.run(state, given, repeat).rows
        return [row["intended_ns"] for row in rows]

    first, second = schedule(1), schedule(2)
    assert first != second and len(first) == 20
    assert schedule(1, system="libtok-tcp-asyncio") == first
    state = module.prepare(context(tmp_path))  # as when a sweep goes on
    assert schedule(2) == second


@pytest.mark.slow
def test_a_share_of_the_capacity_is_of_what_the_system_does(module, state, monkeypatch, tmp_path):
    monkeypatch.setattr(module, "CAPACITY_S", 0.05)
    monkeypatch.setattr(module, "CAPACITY_FIRST", 50)
    parameters = PARAMETERS | {"scale": "% of capacity", "load": 5, "seconds": 0.1}
    raw = module.run(state, parameters, 1)
    ((_, capacity),) = state.capacity.items()
    assert len(raw.rows) == max(1, round(round(0.05 * capacity) * 0.1))
    assert f"100% are {capacity:,.0f} requests/s" in raw.notes[1]
    monkeypatch.setattr(module, "_closed_rate", None)  # it is not measured again
    again = module.prepare(context(tmp_path))  # as when a sweep goes on
    for one in (state, again):
        assert module.run(one, parameters, 1).notes[1] == raw.notes[1]  # the others may be late
        assert list(one.capacity.values()) == [capacity]


def test_a_server_has_answered_every_text_before_at_any_load(module, state, monkeypatch):
    asked = []
    original = load.load
    monkeypatch.setattr(
        load, "load", lambda *args: asked.append((args[0], original(*args))) or asked[-1][1]
    )
    for rate in (20, 500):
        asked.clear()
        raw = module.run(state, PARAMETERS | {"load": rate, "seconds": 0.1}, 1)
        (one, before), (other, measured) = asked
        assert one is other and measured is raw.rows
        assert {int(row["index"]) % PARAMETERS["texts"] for row in before} == set(range(20))
        assert len(before) == 20 and all(row["ok"] == "1" for row in before)


def test_a_server_of_its_own_tells_the_capacity(module, state, monkeypatch):
    started = []
    serving = module.systems.serving
    monkeypatch.setattr(
        module.systems, "serving", lambda *args: started.append(args) or serving(*args)
    )
    monkeypatch.setattr(module, "CAPACITY_S", 0.05)
    monkeypatch.setattr(module, "CAPACITY_FIRST", 50)
    parameters = PARAMETERS | {"scale": "% of capacity", "load": 5, "seconds": 0.1}
    for count in (2, 3, 4):  # the first trial starts two
        module.run(state, parameters, 1)
        assert len(started) == count


def test_one_wrong_id_refuses_all(module, state):
    state.bench.pieces["english", 16][4].ids[-1] += 1
    with pytest.raises(WrongIds, match="wrong ids"):
        module.report(state, PARAMETERS, module.run(state, PARAMETERS, 1))


def row(at_ms: float, ms: float, failure: str = "", late_ms: float | None = 0) -> dict[str, str]:
    sent = "" if late_ms is None else str(round((at_ms + late_ms) * 1e6))
    return {
        "index": "0", "ns": str(round(ms * 1e6)), "failure": failure, "retransmits": "0",
        "intended_ns": str(round(at_ms * 1e6)), "sent_ns": sent,
    }  # fmt: skip


def test_times_count_from_the_intended_start_and_the_rest_is_counted(module, state):
    rows = [row(0, 1), row(10, 5, late_ms=3), row(20, 1000, "no answer"), row(30, 0, "refused"),
            row(40, 0, "not sent", None)]  # fmt: skip
    found = module.report(state, PARAMETERS, module.Raw(rows, []))
    assert found.counts == {"no-answer": 1, "turned-away": 1, "not-sent": 1, "sent-again": 0}
    assert found.samples["round-trip"].max() == pytest.approx(5e6, rel=1e-3)
    assert found.samples["since-sent"].max() == pytest.approx(2e6, rel=1e-3)
    assert len(found.samples["late"]) == 4
    assert found.samples["late"].max() == pytest.approx(3e6, rel=1e-3)
    # Five in 50 ms were offered, and two of them were answered.
    assert found.values["rate"] == pytest.approx(40)
    assert found.values["achieved"] == pytest.approx(40)
    with pytest.raises(OSError, match="none of 1 requests was answered"):
        module.report(state, PARAMETERS, module.Raw(rows[2:3], []))


def test_what_is_answered_long_after_the_load_has_ended_was_not_achieved(module, state):
    rows = [row(at, 100 - at) for at in range(0, 50, 10)]  # all at 100 ms
    found = module.report(state, PARAMETERS, module.Raw(rows, []))
    assert found.values["rate"] == pytest.approx(50)
    assert found.values["achieved"] == pytest.approx(50)
