# SPDX-License-Identifier: BSD-3-Clause
"""Prompts to answers of an engine that is attached: client, dpdk-tokd, tokd-gpu --engine external,
and back."""

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Self

import numpy as np
import pytest
from dpdk_tokd import AsyncClient, Client, Reason, TokdError
from dpdk_tokd.embeddings import Engine, LaneEnd
from gpu_agent import Agent
from netlab import SERVER_IP
from samples import documents

ROWS = 50257
LANES = 2
LAST = 50256  # what the model ends texts with


def next_id(ids: list[int]) -> int:
    """A model without weights, which may look at all that came before."""
    return sum((i + 1) * x for i, x in enumerate(ids)) % 50000 if len(ids) % 61 else LAST


def continued(prompt: list[int], limit: int) -> list[int]:
    """What it makes of a prompt."""
    ids = list(prompt)
    for _ in range(limit):
        ids.append(next_id(ids))
    return ids[len(prompt) :]


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

    def __enter__(self) -> Self:
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
    sizes = [1, 40, 299, 1500, 4000]  # the last one in several slots of the ring
    prompts = [documents()[1000 * i : 1000 * i + n] for i, n in enumerate(sizes)]
    ended = set()

    async def work() -> None:
        async def one(prompt: bytes, limit: int) -> None:
            answer = client.generate(prompt, limit, skip_special_tokens=False)
            made = [item async for item in answer]
            want = [*continued(gpt2.encode(prompt).tolist(), limit), LAST]
            want = want[: want.index(LAST)]
            assert [id for id, _ in made if id is not None] == want
            assert "".join(text for _, text in made) == gpt2.decode(np.array(want, np.uint32))
            assert answer.ended == ("length" if len(want) == limit else "stop")
            ended.add(answer.ended)

        async with AsyncClient(SERVER_IP, timeout=60) as client:
            await asyncio.gather(*(one(text, 20 * i + 1) for i, text in enumerate(prompts)))

    with Running(agent):
        lab.call(lambda: asyncio.run(work()))
    assert ended == {"length", "stop"}
    assert appliance.counters()["streams_failed"] == 0


def test_an_answer_fails_with_its_engine_and_the_next_one_answers_again(start, lab, agent, gpt2):
    start("--sink", f"gpu=shm:{agent.socket}")
    prompt = "for ever and ever"
    with lab.call(lambda: Client(SERVER_IP, timeout=60)) as client:
        answer = client.generate(prompt, 1 << 20, skip_special_tokens=False)
        with Running(agent) as running:
            running.engine.end = lambda *_: False  # type: ignore[method-assign]
            made = [next(answer) for _ in range(30)]
        with pytest.raises(TokdError) as failed:
            made.extend(answer)
        assert failed.value.reason is Reason.SINK and answer.ended is None
        ids = [id for id, _ in made]
        assert ids == continued(gpt2.encode(prompt).tolist(), len(ids))
        with Running(agent):
            after = client.generate(prompt, 5, skip_special_tokens=False)
            assert [id for id, _ in after if id is not None] == ids[:5]
