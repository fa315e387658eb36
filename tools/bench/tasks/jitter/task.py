# SPDX-License-Identifier: BSD-3-Clause
"""What a loop that only reads the clock loses, with and without a measure and a neighbour."""

import json
import subprocess
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.lab import host_measures, neighbours
from bench.programs import BUILD
from bench.samples import Samples
from bench.task import Choice, Context, Distribution, Missing, Number, Report, Value

HELP = (
    "Passes of a loop on the worker's CPU that only reads the clock: whatever takes longer than "
    "the usual few ns was taken from it. lost: the share of time in passes of 1 us and more."
)
WITHOUT = ("nothing", "affinity", "irq-affinity", "governor", "everything")
PARAMETERS = {
    "without": Choice(WITHOUT, "the measure that is left out"),
    "neighbour": Choice(tuple(neighbours.KINDS), neighbours.HELP),
    "seconds": Number(0.05, 600, "of each trial", whole=False),
}
METRICS = {
    "pass": Distribution("us", help="one turn of the loop"),
    "lost": Value("%"),
    "gaps-10us": Value("1/s", help="passes of 10 us and more"),
    "gaps-100us": Value("1/s"),
    "gaps-1ms": Value("1/s"),
    "interrupts": Value("1/s", help="of devices, on the worker's CPU"),
}
COUNTS: dict[str, str] = {}
CHECKS_IDS = False
JITTER = BUILD / "tools" / "tokd-jitter"
US = 1000


@dataclass(frozen=True)
class State:
    folder: Path
    obstacles: dict[str, str]


def prepare(context: Context) -> State:
    if not JITTER.is_file():
        raise Missing(f"{JITTER} is not built: run tools/setup")
    return State(context.folder, host_measures.obstacles())


def run(state: State, parameters: dict[str, Any]) -> dict[str, Any]:
    without, seconds = parameters["without"], parameters["seconds"]
    if why := state.obstacles.get(without):
        raise Missing(why)
    pinned = host_measures.taken("affinity", without)
    command = [str(JITTER), "--seconds", str(seconds)]
    if pinned:
        command += ["--cpu", str(host_measures.WORKER_CPU)]
    with ExitStack() as stack:
        notes = stack.enter_context(host_measures.settings(without))
        beside = neighbours.beside_worker(parameters["neighbour"], pinned, state.folder)
        stack.enter_context(beside)
        before = host_measures.device_interrupts(host_measures.WORKER_CPU)
        done = subprocess.run(
            command, capture_output=True, text=True, check=True, timeout=seconds + 60
        )
        came = host_measures.device_interrupts(host_measures.WORKER_CPU) - before
    return json.loads(done.stdout) | {"interrupts": came / seconds, "notes": notes}


def report(_state: State, _parameters: dict[str, Any], raw: dict[str, Any]) -> Report:
    passes = Samples()
    ns = [(ticks * raw["ns_per_tick"], count) for ticks, count in raw["buckets"]]
    for one, count in ns:
        passes.add(round(one), count)
    whole = sum(one * count for one, count in ns)

    def a_second(least_us: int) -> float:
        return sum(count for one, count in ns if one >= least_us * US) / whole * 1e9

    return Report(
        values={
            "lost": 100 * sum(one * count for one, count in ns if one >= US) / whole,
            "gaps-10us": a_second(10),
            "gaps-100us": a_second(100),
            "gaps-1ms": a_second(1000),
            "interrupts": raw["interrupts"],
        },
        samples={"pass": passes},
        notes=raw["notes"],
    )


def clean(_state: State) -> None:
    """Nothing outlasts a trial."""
