# SPDX-License-Identifier: BSD-3-Clause
"""The task client-to-ids over the loopback: what may have a time, and what may not."""

import pytest

pytest.importorskip("hdrh.histogram", reason="run tools/setup")
from bench import load
from bench import task as tasks
from bench.baseline import engines
from bench.task import Missing, WrongIds
from bench.tasks import systems

PARAMETERS = {
    "corpus": "english", "tokens": 16, "system": "rust-tcp-asyncio", "neighbour": "none",
    "place": "others", "requests": 20,
}  # fmt: skip
WARM_UP = 3


@pytest.fixture(scope="module")
def module():
    return tasks.load("client-to-ids").module


@pytest.fixture
def state(module, bench, monkeypatch):
    monkeypatch.setattr(module, "WARM_UP", WARM_UP)
    monkeypatch.setattr(load, "WARM_UP", WARM_UP)
    return bench(PARAMETERS["requests"] + WARM_UP)


@pytest.mark.parametrize("system", ["rust-tcp-asyncio", "python-udp-sleep", "libtok-tcp-asyncio"])
def test_a_server_is_asked_and_every_id_compared(module, state, system):
    parameters = PARAMETERS | {"system": system}
    found = module.report(state, parameters, module.run(state, parameters))
    measured = state.pieces["english", 16][WARM_UP:]
    assert found.ids_checked == sum(len(piece.ids) for piece in measured)
    assert len(found.samples["round-trip"]) == PARAMETERS["requests"]
    assert found.counts == {"no-answer": 0, "turned-away": 0, "sent-again": 0}
    average, throughput = found.values["average"], found.values["throughput"]
    whole = average * PARAMETERS["requests"]
    assert average > 0 and throughput == pytest.approx(found.ids_checked / whole)
    (note,) = found.notes
    assert note.startswith(f"{system}: ") and ("sleeps" if "sleep" in system else "asyncio") in note


@pytest.mark.parametrize("where", [0, WARM_UP + 5])  # also in the warm-up
def test_one_wrong_id_refuses_all(module, state, where):
    piece = state.pieces["english", 16][where]
    piece.ids[-1] += 1
    with pytest.raises(WrongIds, match="wrong ids"):
        module.report(state, PARAMETERS, module.run(state, PARAMETERS))


def test_too_few_texts_and_a_tokenizer_that_is_not_there_are_missing(module, state, monkeypatch):
    with pytest.raises(Missing, match="the corpus has only 23 of 24 texts"):
        module.run(state, PARAMETERS | {"requests": 21})
    monkeypatch.setitem(engines.NEEDS, "gigatoken", ("no_such_package", "pip install it"))
    with pytest.raises(Missing, match="no_such_package is not installed: pip install it"):
        module.run(state, PARAMETERS | {"system": "gigatoken-udp"})


def test_a_neighbour_needs_a_cpu(module, state, monkeypatch):
    monkeypatch.setitem(module.PLACES, "others", [])
    with pytest.raises(Missing, match="on other CPUs needs three CPUs"):
        module.run(state, PARAMETERS | {"neighbour": "cpu"})
    assert module.report(state, PARAMETERS, module.run(state, PARAMETERS)).ids_checked > 0


@pytest.mark.parametrize(("kind", "place"), [("memory", "client"), ("compile", "server")])
def test_a_server_answers_beside_a_neighbour(module, state, kind, place):
    given = PARAMETERS | {"system": "rust-udp", "neighbour": kind, "place": place}
    found = module.report(state, given, module.run(state, given))
    assert len(found.samples["round-trip"]) == PARAMETERS["requests"] and found.ids_checked > 0
    assert (state.folder / "neighbour0.log").is_file()


def row(index: int, ns: int, failure: str = "", retransmits: int = 0) -> dict[str, str]:
    times = {"ns": str(ns), "first_ns": str(ns)}
    return {"index": str(index), "failure": failure, "retransmits": str(retransmits)} | times


def test_what_has_no_answer_has_no_latency_and_is_counted(module, state):
    rows = [row(3, 1000), row(4, 9_999_999, "no answer", 20), row(5, 3000), row(6, 1, "refused")]
    found = module.report(state, PARAMETERS, module.Raw(rows, []))
    assert found.counts == {"no-answer": 1, "turned-away": 1, "sent-again": 20}
    assert found.values["average"] == 2 and len(found.samples["round-trip"]) == 2
    # Who waits for an answer that does not come has no ids meanwhile.
    waited = 1000 + 9_999_999 + 3000 + 1
    assert found.values["throughput"] == pytest.approx(1000 * found.ids_checked / waited)
    for failure in ("wrong number of ids", "CRC32C of the ids is wrong", "odd answer"):
        with pytest.raises(WrongIds, match=failure):
            module.report(state, PARAMETERS, module.Raw([row(3, 1), row(4, 1, failure)], []))
    with pytest.raises(OSError, match="none of 1 requests was answered"):
        module.report(state, PARAMETERS, module.Raw(rows[1:2], []))


@pytest.mark.parametrize("system", ["tokd", "tokd-af-packet"])
def test_the_appliance_runs_as_its_row_says_or_not_at_all(module, state, system, monkeypatch):
    with pytest.raises(Missing, match="huge pages of 2 MB could not be reserved"):
        module.run(state, PARAMETERS | {"system": system})
    state.huge = True
    monkeypatch.setattr(systems, "AF_XDP", 12_345)  # no kernel has that
    monkeypatch.setattr(systems, "Appliance", lambda *how: pytest.fail(str(how)))
    if system == "tokd":
        with pytest.raises(Missing, match="no AF_XDP sockets: Address family not supported"):
            module.run(state, PARAMETERS | {"system": system})
    else:
        with pytest.raises(pytest.fail.Exception, match="^.'net_af_packet0,iface=a', .* True, "):
            module.run(state, PARAMETERS | {"system": system})
