# SPDX-License-Identifier: BSD-3-Clause
"""Engine on a real tokd-gpu --device cpu --engine external, with the sink that dpdk-tokd has."""

import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from dpdk_tokd import EmbeddingReader, RingDropped, RingError, RingRefused
from dpdk_tokd.embeddings import Engine, LaneEnd, Prompt
from gpu_agent import Agent, Generator, Poster

ROWS = 1000  # ids of the agent's table
LANES = 4


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[Agent]:
    with Agent(tmp_path, "--lanes", str(LANES), "--engine", "external") as a:
        yield a


def prompts_of(engine: Engine, n: int, timeout: float = 30.0) -> list[Prompt]:
    """The next n of them, with ids of their own."""
    deadline = time.monotonic() + timeout
    prompts: list[Prompt] = []
    while len(prompts) < n:
        prompts += [p._replace(ids=p.ids.copy()) for p in engine.poll()]
        assert time.monotonic() < deadline, prompts
        time.sleep(0.001)
    return prompts


def wait_for(engine: Engine, lane: int, **wanted: int) -> None:
    """Until the lane looks like that."""
    deadline = time.monotonic() + 30
    while True:
        look = engine.look([lane])
        found = {name: int(getattr(look, name)[0]) for name in wanted}
        if found == wanted:
            return
        assert time.monotonic() < deadline, (found, wanted)
        time.sleep(0.001)


def next_id(ids: list[int]) -> int:
    """A model without weights."""
    return sum((i + 1) * x for i, x in enumerate(ids)) % ROWS


def test_ids_come_back_as_the_engine_makes_them(agent: Agent) -> None:
    with Engine(agent.subscribers) as engine, Generator(agent) as generator:
        assert (engine.n_ids, engine.lanes_max) == (ROWS, 4 * LANES)
        serial = generator.prompt([3, 1, 4, 1, 5], limit=10, grant=10)
        [prompt] = prompts_of(engine, 1)
        assert prompt.in_place and prompt.ids.tolist() == [3, 1, 4, 1, 5]
        assert prompt.request == serial
        text = prompt.ids.tolist()
        wait_for(engine, prompt.lane, granted=10)
        for i in range(10):
            assert engine.put([prompt.lane], [next_id(text)]).tolist() == [True]
            assert generator.hear() == ["token", str(serial), str(i), str(next_id(text))]
            text.append(next_id(text))
        assert generator.hear() == ["ended", str(serial), str(int(LaneEnd.LENGTH))]
        wait_for(engine, prompt.lane, end=LaneEnd.LENGTH)
        assert engine.put([prompt.lane], [1]).tolist() == [False]


def test_ids_of_a_prompt_are_the_agents_memory_and_cannot_be_written(agent: Agent) -> None:
    with Engine(agent.subscribers) as engine, Generator(agent) as generator:
        generator.prompt([7, 8, 9], limit=1, grant=1)
        prompts: list[Prompt] = []
        while not prompts:
            prompts = engine.poll()
        assert prompts[0].ids.tolist() == [7, 8, 9] and not prompts[0].ids.flags.owndata
        with pytest.raises(ValueError, match="read-only"):
            prompts[0].ids[0] = 1


def test_a_prompt_of_several_slots_is_whole(agent: Agent) -> None:
    ids = np.random.default_rng(5).integers(0, ROWS, 3000).tolist()  # a slot has 1,024
    with Engine(agent.subscribers) as engine, Generator(agent) as generator:
        generator.prompt(ids, limit=1, grant=1)
        [prompt] = prompts_of(engine, 1)
        assert not prompt.in_place and prompt.ids.tolist() == ids


def test_many_lanes_in_a_batch_with_pauses(agent: Agent) -> None:
    """A client that takes two at a time holds up none of the others."""
    rng = np.random.default_rng(6)
    with Engine(agent.subscribers) as engine, Generator(agent) as generator:
        wanted: dict[int, list[int]] = {}
        got: dict[int, list[int]] = {}
        texts: dict[int, list[int]] = {}  # by lane
        ends: dict[int, int] = {}
        serials: list[int] = []
        deadline = time.monotonic() + 60
        while len(ends) < 20:
            assert time.monotonic() < deadline, ends
            if len(serials) - len(ends) < LANES and len(serials) < 20:
                ids = rng.integers(0, ROWS, rng.integers(1, 50)).tolist()
                serial = generator.prompt(ids, limit=8, grant=2)
                serials.append(serial)
                text = list(ids)
                for _ in range(8):
                    text.append(next_id(text))
                wanted[serial], got[serial] = text[len(ids) :], []
            texts |= {p.lane: p.ids.tolist() for p in engine.poll()}
            lanes = np.array(list(texts), np.uint64)
            look = engine.look(lanes)
            ready = lanes[look.ready]
            made = [next_id(texts[int(lane)]) for lane in ready]
            assert engine.put(ready, made).all()
            for lane, value in zip(ready, made, strict=True):
                texts[int(lane)].append(value)
            for lane in lanes[look.end != LaneEnd.OPEN]:
                del texts[int(lane)]
            for word, serial_text, *rest in generator.heard():
                serial = int(serial_text)
                if word == "ended":
                    ends[serial] = int(rest[0])
                else:
                    assert (word, int(rest[0])) == ("token", len(got[serial]))
                    got[serial].append(int(rest[1]))
                    if len(got[serial]) % 2 == 0:
                        generator.send(f"grant {serial} 2")
        assert got == wanted
        assert set(ends.values()) == {LaneEnd.LENGTH}


@pytest.mark.parametrize("how", [LaneEnd.STOP, LaneEnd.LENGTH, LaneEnd.CUT])
def test_the_engine_ends_a_text(agent: Agent, how: LaneEnd) -> None:
    with Engine(agent.subscribers) as engine, Generator(agent) as generator:
        serial = generator.prompt([1, 2], limit=9, grant=9)
        [prompt] = prompts_of(engine, 1)
        wait_for(engine, prompt.lane, granted=9)
        assert engine.put([prompt.lane] * 2, [5, 6]).all()
        assert engine.end(prompt.lane, how)
        assert generator.hear() == ["token", str(serial), "0", "5"]
        assert generator.hear() == ["token", str(serial), "1", "6"]
        assert generator.hear() == ["ended", str(serial), str(int(how))]
        wait_for(engine, prompt.lane, end=how)
        assert not engine.end(prompt.lane)


def test_a_client_cancels(agent: Agent) -> None:
    with Engine(agent.subscribers) as engine, Generator(agent) as generator:
        serial = generator.prompt([1, 2], limit=9, grant=9)
        [prompt] = prompts_of(engine, 1)
        generator.send(f"cancel {serial}")
        wait_for(engine, prompt.lane, end=LaneEnd.CANCELLED)


def test_an_engine_that_is_killed_cuts_its_texts_and_a_next_one_comes(agent: Agent) -> None:
    program = """
        import sys, time
        from dpdk_tokd.embeddings import Engine
        engine = Engine(sys.argv[1])
        print("attached", flush=True)
        while True:
            for prompt in engine.poll():
                while not engine.put([prompt.lane], [5])[0]:
                    time.sleep(0.001)
            time.sleep(0.001)
        """
    command = [sys.executable, "-c", textwrap.dedent(program), str(agent.subscribers)]
    with Generator(agent) as generator:
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            try:
                assert process.stdout is not None and process.stdout.readline() == "attached\n"
                serial = generator.prompt([1, 2], limit=9, grant=9)
                assert generator.hear() == ["token", str(serial), "0", "5"]
                with pytest.raises(RingRefused, match="is attached: there is one at a time"):
                    Engine(agent.subscribers)
            finally:
                process.kill()
        assert generator.hear() == ["ended", str(serial), str(int(LaneEnd.CUT))]
        agent.wait_for(f"engine of pid {process.pid} detached")
        with Engine(agent.subscribers) as engine:
            serial = generator.prompt([1], limit=1, grant=1)
            [prompt] = prompts_of(engine, 1)
            wait_for(engine, prompt.lane, granted=1)
            assert engine.put([prompt.lane], [6]).all()
            assert generator.hear() == ["token", str(serial), "0", "6"]


def test_a_child_of_an_engine_does_not_keep_it_attached(agent: Agent) -> None:
    program = """
        import os, sys
        from dpdk_tokd.embeddings import Engine
        engine = Engine(sys.argv[1])
        if os.fork() == 0:
            print(engine.closed, flush=True)
            sys.stdin.read()
        os._exit(0)
        """
    command = [sys.executable, "-c", textwrap.dedent(program), str(agent.subscribers)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin is not None and process.stdout is not None
    with process.stdin, process.stdout:  # the child lives until then
        assert process.stdout.readline() == "True\n"
        process.wait(timeout=30)
        agent.wait_for(f"engine of pid {process.pid} detached")


def test_texts_without_a_wish_for_ids_are_passed_over(agent: Agent) -> None:
    with Engine(agent.subscribers) as engine, Poster(agent) as poster:
        for i in range(20):
            poster.post(i, [1, 2, 3], flags=poster.FIRST if i % 2 else 3)
        poster.wait()
        assert poster.released(0, 0) <= 20
        deadline = time.monotonic() + 30
        while poster.released(20, 10) < 20:
            assert engine.poll() == []
            assert time.monotonic() < deadline
        assert engine._n_parts == 30
        poster.post(1, [], flags=poster.ABORT)
        while engine._n_parts == 30:
            assert engine.poll() == []
            assert time.monotonic() < deadline
        assert engine._n_parts == 27
        poster.post(50, [1, 2, 3, 4, ROWS], flags=poster.FIRST)  # not of the table: not kept
        poster.post(51, [1, 2], flags=poster.FIRST)
        while engine._n_parts == 27:
            assert engine.poll() == []
            assert time.monotonic() < deadline
        assert engine._n_parts == 29


def test_other_subscribers_read_rows_beside_it(agent: Agent) -> None:
    with (
        EmbeddingReader(agent.subscribers, timeout=10) as reader,
        Engine(agent.subscribers) as engine,
        Generator(agent) as generator,
    ):
        generator.prompt([1, 2, 3], limit=1, grant=0)
        e = next(reader)
        assert len(e) == 3 and e.last
        prompts_of(engine, 1)


def test_calls_with_memory_that_does_not_fit_are_refused(agent: Agent) -> None:
    with Engine(agent.subscribers) as engine:
        with pytest.raises(ValueError, match="8 bytes of lanes, 8 bytes with them"):
            engine.put([1], [1, 2])
        assert engine.put([2**64 - 1, 2**32 + 5], [1, 2]).tolist() == [False, False]
        assert engine.look([2**64 - 1]).end.tolist() == [LaneEnd.CUT]
    with pytest.raises(RingError, match="the engine is closed"):
        engine.look([1])
    assert engine.closed


def test_an_engine_that_does_not_poll_is_dropped(tmp_path: Path) -> None:
    options = ("--lanes", "1", "--engine", "external", "--subscriber-timeout", "200")
    with (
        Agent(tmp_path, *options) as agent,
        Engine(agent.subscribers) as engine,
        Poster(agent) as poster,
    ):
        for i in range(200):
            poster.post(i, [1] * 900)
        with pytest.raises(RingDropped, match="raise --out-bytes or --subscriber-timeout"):
            prompts_of(engine, 1)


def test_it_closes_when_the_agent_ends(agent: Agent) -> None:
    with Engine(agent.subscribers) as engine:
        assert not engine.closed
        agent.stop()
        assert engine.poll() == []
        assert engine.closed
