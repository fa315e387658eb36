# SPDX-License-Identifier: BSD-3-Clause
"""Prompts to answers of an engine that is attached: client, dpdk-tokd, tokd-gpu --engine external,
and back."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from dpdk_tokd import wire
from dpdk_tokd.embeddings import Engine, LaneEnd
from gpu_agent import Agent
from netlab import SERVER_IP
from samples import documents
from test_generate import LANES, LENGTH, ROWS, STOP, Answer, Asker

LAST = 50256  # what the model ends texts with


def next_id(ids: list[int]) -> int:
    """A model without weights, which may look at all that came before."""
    return sum((i + 1) * x for i, x in enumerate(ids)) % 50000 if len(ids) % 61 else LAST


def continued(prompt: list[int], limit: int) -> tuple[list[int], int]:
    """What it makes of a prompt, and how that ends."""
    ids = list(prompt)
    while (following := next_id(ids)) != LAST and len(ids) - len(prompt) < limit:
        ids.append(following)
    return ids[len(prompt) :], LENGTH if len(ids) - len(prompt) == limit else STOP


class Running:
    """An engine in a thread."""

    def __init__(self, agent: Agent) -> None:
        self.engine = Engine(agent.subscribers)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        texts: dict[int, list[int]] = {}
        while not self._over.wait(0.0002):
            texts |= {p.lane: p.ids.tolist() for p in self.engine.poll()}
            lanes = np.array(list(texts), np.uint64)
            for lane, ids in texts.items():
                if next_id(ids) == LAST:
                    self.engine.end(lane)
            look = self.engine.look(lanes)
            for lane in lanes[look.end != LaneEnd.OPEN]:
                del texts[int(lane)]
            ready = [int(lane) for lane in lanes[look.ready]]
            made = [next_id(texts[lane]) for lane in ready]
            for lane, value, taken in zip(ready, made, self.engine.put(ready, made), strict=True):
                if taken:
                    texts[lane].append(value)

    def __enter__(self) -> Running:
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        self.engine.close()


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[Agent]:
    folder = tmp_path / "agent"
    folder.mkdir()
    options = ("--lanes", str(LANES), "--engine", "external")
    with Agent(folder, *options, table=f"random:{ROWS}x64:3") as agent:
        yield agent


def test_answers_are_those_of_the_engine(start, lab, agent, gpt2):
    appliance = start("--sink", f"gpu=shm:{agent.socket}")
    text = documents()
    sizes = [1, 40, 299, 1500, 4000]  # the last one in several slots of the ring
    answers = [
        Answer(text[1000 * i : 1000 * i + n], 20 * i + 1, flags=wire.F_STREAM * (i % 2))
        for i, n in enumerate(sizes)
    ]
    with Running(agent), Asker(lab, (SERVER_IP, wire.PORT)) as asker:
        asker.finish(*answers)
    for a in answers:
        ids, said, end = a.items()
        assert (ids, end) == continued(gpt2.encode(a.text).tolist(), a.limit)
        assert said.decode(errors="replace") == gpt2.decode(np.array(ids, np.uint32))
    assert {a.items()[2] for a in answers} == {LENGTH, STOP}
    assert appliance.counters()["streams_failed"] == 0


def test_an_answer_fails_with_its_engine_and_the_next_one_answers_again(start, lab, agent, gpt2):
    start("--sink", f"gpu=shm:{agent.socket}")
    prompt = b"for ever and ever"
    with Asker(lab, (SERVER_IP, wire.PORT)) as asker:
        cut, after = Answer(prompt, 1 << 20, flags=wire.F_STREAM), Answer(prompt, 5)
        with Running(agent) as running:
            running.engine.end = lambda *_: False  # type: ignore[method-assign]
            while len(cut.bytes) < 300:
                asker.step(cut)
        asker.finish(cut)
        assert cut.last is not None and cut.last.reason == wire.Reason.SINK
        ids, _, end = cut.items()
        assert end == 0 and ids == continued(gpt2.encode(prompt).tolist(), len(ids))[0]
        with Running(agent):
            asker.finish(after)
        assert after.items()[0] == ids[:5]
