# SPDX-License-Identifier: BSD-3-Clause
"""Graphs that the GPU launches, instead of workers that stay: tokd-gpu --launch graph."""

from __future__ import annotations

from ..parts import part
from ..run import NotRun, Run
from .a_tests import TESTS, tests_run
from .a_times import KINDS, produced, started
from .e_engines import MODES

LAUNCHES = 1_000_000
# Median times of a launch that Blink's authors give, microseconds.
BLINK = {
    "fire and forget to begun": "Blink: 2 us",
    "tail to begun": "Blink: 5.5 us",
    "host to ended": "Blink: 11 to 17 us for a launch by the host",
}


def gpu_needed(run: Run) -> None:
    if not run.on_gpu:
        raise NotRun("needs a GPU")


@part("E", 10, "times of launches", 30)
def launch_times(run: Run) -> None:
    gpu_needed(run)
    said = run.measured("times", "gpu", "gpu_launch_times")
    run.fact(f"memory of {said['graphs']} graphs of a kernel, bytes", f"{said['graphs_bytes']:,}")
    steps = f"globaltimer steps by {said['globaltimer_step_ns']} ns"
    for each in said["series"]:
        notes = [BLINK.get(each["name"], ""), steps if each["clock"] == "globaltimer" else ""]
        note = "; ".join(filter(None, notes))
        run.timed(said, {each["name"]: f"launch: {each['name']}"}, note)


@part("E", 20, "tests in C on the device, as graphs", 90)
def tests_as_graphs(run: Run) -> None:
    gpu_needed(run)
    for ring in reversed(run.rings):
        with run.at_ring(ring):
            for name in TESTS:
                tests_run(run, name, ring, TOKD_GPU_LAUNCH="graph")


def from_this_host(run: Run, how: str, graphs: int) -> None:
    for kind, number in KINDS.items():
        with run.apart(f"{kind}, {how}"):
            said = run.measured("requests", "host", kind=number, n=2000, graphs=graphs)
            started(run, said, f"{kind}, {how}")
            for name in ("posted to done read", "seen to embedded"):
                run.timed(said, {name: f"{name}, 2048 ids, {kind}, {how}"})


@part("E", 40, "posted to done, graphs beside persistent workers", 90)
def beside_workers(run: Run) -> None:
    gpu_needed(run)
    for how, graphs in MODES:
        with run.at_ring("host"):
            from_this_host(run, how, graphs)
        for tokens in (8, 2048):
            title = f"{tokens} ids, 1 in flight, {how}"
            numbers = {"n": 10_000, "tokens": tokens, "graphs": graphs, "check_every": 1}
            with run.apart(title):
                produced(run, "gpu", title, 4, **numbers)


@part("E", 70, "a million launches without the host", 60)
def without_the_host(run: Run) -> None:
    gpu_needed(run)
    numbers = {"n": LAUNCHES, "tokens": 8, "check_every": 1, "graphs": 1}
    said = produced(run, "gpu", "8 ids, 1 in flight, as graphs", 40, **numbers)
    text = (
        f"{said['launches']:,} launches in {said['executions']:,} executions of the scheduler;"
        f" calls of the host meanwhile: {said['host_operations']}"
    )
    if said["host_operations"] != 0 or said["launches"] < said["done"]:
        run.wrong(text)
    elif said["launches"] < LAUNCHES:
        run.skipped(f"{text}: fewer than {LAUNCHES:,} in its time")
    else:
        run.right(text)
