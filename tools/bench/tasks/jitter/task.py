# SPDX-License-Identifier: BSD-3-Clause
"""Time taken from a loop that only reads the clock, without a host setting or beside a
neighbour."""

import json
import subprocess
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.lab import host_measures, neighbours
from bench.lab.cpus import CLIENT_CPU, WORKER_CPU
from bench.process import ENDS_WITH_US
from bench.task import Choice, Context, Missing, Number, Report, Value, need_tool

HELP = (
    "oslat of rt-tests on the worker's CPU: a loop that only reads the clock. A pass that takes long "
    "was interrupted. lost: share of time in passes above 1 us; gaps-…: passes longer than that; "
    "longest: the longest pass."
)
WITHOUT = ("nothing", "irq-affinity", "governor", "everything")
PARAMETERS = {
    "without": Choice(WITHOUT, "the host setting left out; oslat always pins its thread"),
    "neighbour": Choice(tuple(neighbours.KINDS), neighbours.HELP),
    "seconds": Number(1, 600, "of each trial"),
}
METRICS = {
    "lost": Value("%"),
    "gaps-10us": Value("1/s"),
    "gaps-100us": Value("1/s"),
    "gaps-1ms": Value("1/s"),
    "longest": Value("us"),
    "interrupts": Value("1/s", help="of devices, on the worker's CPU"),
}
COUNTS: dict[str, str] = {}
CHECKS_IDS = False
BUCKETS = 1024  # of 1 us, the last for everything longer; oslat's maximum
LIMIT_S = 60.0


@dataclass(frozen=True)
class State:
    folder: Path
    obstacles: dict[str, str]


@dataclass(frozen=True)
class Raw:
    oslat: dict[str, Any]  # its one thread's results
    interrupts: float  # a second
    notes: list[str]


def prepare(context: Context) -> State:
    need_tool("oslat", "rt-tests")
    return State(context.folder, host_measures.obstacles())


def run(state: State, parameters: dict[str, Any]) -> Raw:
    without, seconds = parameters["without"], parameters["seconds"]
    if why := state.obstacles.get(without):
        raise Missing(why)
    out = state.folder / "oslat.json"
    out.unlink(missing_ok=True)
    command = [*ENDS_WITH_US, "oslat", "--cpu-list", str(WORKER_CPU), "--quiet", "--json", str(out)]
    command += ["--cpu-main-thread", str(CLIENT_CPU), "--bucket-size", str(BUCKETS)]
    command += ["--duration", str(seconds)]
    with ExitStack() as stack:
        notes = stack.enter_context(host_measures.settings(without))
        confined = host_measures.enabled("affinity", without)
        beside = neighbours.beside_worker(parameters["neighbour"], confined, state.folder)
        stack.enter_context(beside)
        before = host_measures.device_interrupts(WORKER_CPU)
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=seconds + LIMIT_S
        )
        came = host_measures.device_interrupts(WORKER_CPU) - before
    if done.returncode != 0 or not out.is_file():
        raise OSError(f"oslat ended with {done.returncode}: {done.stderr.strip()[-300:]}")
    thread = json.loads(out.read_text())["thread"]["0"]
    return Raw(thread, came / thread["duration"], notes)


def report(_state: State, _parameters: dict[str, Any], raw: Raw) -> Report:
    """A pass counts as the end of its bucket; those beyond the last bucket by oslat's mean."""
    passes = {int(us): count for us, count in raw.oslat["histogram"].items()}
    seconds = raw.oslat["duration"]
    whole = raw.oslat["avg"] * sum(passes.values())

    def a_second(most_us: int) -> float:
        return sum(count for us, count in passes.items() if us > most_us) / seconds

    return Report(
        values={
            "lost": 100 * max(0.0, whole - passes.get(1, 0)) / 1e6 / seconds,
            "gaps-10us": a_second(10),
            "gaps-100us": a_second(100),
            "gaps-1ms": a_second(1000),
            "longest": raw.oslat["max"],
            "interrupts": raw.interrupts,
        },
        notes=raw.notes,
    )
