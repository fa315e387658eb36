# SPDX-License-Identifier: BSD-3-Clause
"""Ids that come back: of the device's own engine, and of external ones that the host drives."""

from __future__ import annotations

from typing import Any

from ..agent import ROWS, Agent, ended
from ..engine import LANES, NO_IPC, OPTIONS, Engine, Generator
from ..parts import part
from ..run import NotRun, Run, Wrong
from ..subscriber import ids_of
from .a_times import started

MODES = (("workers", 0), ("graphs", 1))
STREAMS = {1: (1, 1), 16: (4, 4), 256: (16, 16)}  # producers, and lanes of each
MADE = 8  # ids of an answer
OWN, THREAD, PROCESS = 0, 1, 2
STOP, LENGTH = 1, 2  # enum tokd_lane_end
NOTES = {  # of external engines
    "posted to first id read": "with the copies of the prompts, one after the other",
    "posted to answered": "of answers that the engine did not end early",
}
TURNS = "its kernels and the consumer's take turns, without MPS"
ENGINES = {
    OWN: "the device's own engine",
    THREAD: "an engine that the host drives",
    PROCESS: "an engine that another process drives",
}


def answered(run: Run, how: str, engine: int, streams: int, **numbers: int) -> None:
    title = f"{ENGINES[engine]}, {how}, {streams} streams"
    with run.apart(title):
        said = generated(run, engine, streams, **numbers)
        figures_of(run, title, said, engine)


def generated(run: Run, engine: int, streams: int, **numbers: int) -> dict[str, Any]:
    """What gpu_measure said. Raises NotRun if the outputs cannot be shared."""
    producers, lanes = STREAMS[streams]
    numbers.update(producers=producers, lanes=lanes, made=MADE, tokens=8, external=engine)
    try:
        return run.measured("generate", "host", stop_after_s=2, **numbers)
    except Wrong as why:
        if engine == PROCESS and NO_IPC in str(why):
            raise NotRun(str(why)) from why
        raise


def figures_of(run: Run, title: str, said: dict[str, Any], engine: int) -> None:
    turns = [TURNS] if engine == PROCESS and run.on_gpu else []
    for name, of_external in NOTES.items():
        note = "; ".join([of_external, *turns]) if engine != OWN else ""
        run.timed(said, {name: f"{name}, {MADE} ids, {title}"}, note)
    rate = said["ids"] / said["ns"] * 1e9
    note = "; ".join(["as many workers beside each engine", *turns])
    run.figure(what=f"ids, {title}", ring=said["ring"], value=rate, unit="a second", note=note)
    started(run, said, title)
    ended = said["answers"] - said["whole"]
    by_it = f", {ended:,} of them ended by the engine" if ended else ""
    run.right(f"{title}: {said['answers']:,} answers{by_it}, {said['ids']:,} ids, each compared")


def all_streams(run: Run, *engines: int) -> None:
    """Workers first: whatever graphs do, all engines have figures with them."""
    if not run.on_gpu:
        for engine in engines:
            for streams in (1, 16):
                answered(run, "workers", engine, streams, n=40, n_ids=1000, dim=64)
        return
    for how, graphs in MODES:
        for engine in engines:
            for streams in STREAMS:
                answered(run, how, engine, streams, n=10_000, graphs=graphs)


@part("E", 50, "posted to answered, engines in the device's process", 75)
def in_process(run: Run) -> None:
    all_streams(run, OWN, THREAD)


def next_ids(prompt: list[int], n: int) -> list[int]:
    """By the rule of lib/gpu_sink/kernel/engine_rule.h."""
    made = [0, prompt[-1]]
    for _ in range(n):
        made.append((3 * made[-1] + 5 * made[-2] + len(prompt) + 1) % ROWS)
    return made[2:]


def one_batch(engine: Engine, generator: Generator, first: int) -> None:
    """A text on each lane. The engine ends every second one after half of its ids."""
    expected = {}
    for lane in range(LANES):
        prompt = ids_of(first + lane, ROWS)
        n, how = (MADE // 2, STOP) if lane % 2 else (MADE, LENGTH)
        expected[generator.prompt(prompt, MADE)] = (next_ids(prompt, n), how)
    for _ in range(LANES):
        engine.give({k: len(ids) if how == STOP else 0 for k, (ids, how) in expected.items()})
    answers = generator.answers(LANES)
    if answers != expected:
        raise Wrong(f"{answers}, must be {expected}")
    engine.release()


@part("E", 55, "an engine that attaches to tokd-gpu by its socket", 60)
def by_socket(run: Run) -> None:
    agent = engine = generator = None
    batches = 25 if run.on_gpu else 5
    try:
        agent = Agent(run, "tokd-gpu", OPTIONS)
        engine = Engine(run, agent)
        generator = Generator(run, agent)
        for batch in range(batches):
            one_batch(engine, generator, batch * LANES)
        if agent.stop() != 0:
            raise Wrong(f"tokd-gpu did not stop well:\n{agent.said()}")
    finally:
        ended(generator, engine, agent)
    text = f"{batches * LANES} answers, half of them ended by the engine, each id compared"
    run.right(f"{text}{f'; {TURNS}' if run.on_gpu else ''}")


@part("E", 60, "posted to answered, an engine in another process, by CUDA IPC", 80)
def by_ipc(run: Run) -> None:
    """Without MPS: its kernels and the consumer's take turns."""
    all_streams(run, PROCESS)
