# SPDX-License-Identifier: BSD-3-Clause
"""First times: posted to done, embedding, polling the ring."""

from __future__ import annotations

from typing import Any

from ..parts import part
from ..run import NotRun, Run

KINDS = {"word": 1, "word+position": 2, "bert": 3}
SERIES = {
    "first store to done read": "posted to done",
    "ticket's store to done read": "ticket to done",
    "seen to embedded": "embed",
}
GOALS = {"look": 3.0, "embed": 10.0, "requests": 20.0}  # p50, microseconds, set for an H100


def goal(run: Run, name: str) -> str:
    return f"goal {GOALS[name]:g} us (p50)" if run.on_gpu else ""


def produced(run: Run, ring: str, title: str, limit_s: int, **numbers: int) -> dict[str, Any]:
    """Producers on the device: times and rate. Returns what gpu_measure said."""
    said = run.measured("produce", ring, stop_after_s=limit_s, **numbers)
    names = {name: f"{text}, {title}" for name, text in SERIES.items()}
    note = f"rows compared of {said['compared']:,} of {said['done']:,} slots"
    if said["out_of_time"]:
        note += "; ended by its time limit"
    run.timed(said, names, note)
    rate = said["done"] / said["ns"] * 1e9
    run.figure(what=f"slots, {title}", ring=said["ring"], value=rate, unit="a second", note=note)
    if said["compared"]:
        run.right(f"ring {said['ring']}, {title}: {note}, none wrong")
    return said


def started(run: Run, said: dict[str, Any], title: str) -> None:
    """The consumer's start: with graphs it makes them, and has no heartbeat meanwhile."""
    value = said["start_ns"] / 1e6
    run.figure(what=f"start, {title}", ring=said["ring"], value=value, unit="ms")


@part("A", 30, "requests from this host, ring in host memory", 60)
def requests(run: Run) -> None:
    n, n_ids = (2000, 50_257) if run.on_gpu else (20, 1000)
    for kind, number in KINDS.items():
        with run.apart(kind):
            said = run.measured("requests", "host", kind=number, n=n, n_ids=n_ids)
            names = {"seen to embedded": f"embed 2048 x 768 f32, {kind}"}
            run.timed(said, names, goal(run, "embed"))
            names = {"posted to done read": f"posted to done read, 2048 ids, {kind}"}
            run.timed(said, names, goal(run, "requests"))
            if said["backward_stamps"]:
                what = f"{kind}: stamps of which the later is the smaller"
                run.fact(what, said["backward_stamps"])


def rounds(run: Run, ring: str) -> None:
    def one(title: str, limit_s: int, **numbers: int) -> None:
        with run.apart(title):
            produced(run, ring, title, limit_s, **numbers)

    if run.on_gpu:
        one("8 ids, 1 in flight", 4, n=100_000, tokens=8, check_every=1)
        one("2048 ids, 1 in flight", 4, n=10_000, tokens=2048, check_every=1)
        many = {"n": 1_000_000, "producers": 4, "in_flight": 16, "slots": 64}
        one("8 ids, 4 x 16 in flight", 12, tokens=8, check_every=1, kept=250_000, **many)
        for kind in ("word+position", "bert"):
            one(f"2048 ids of {kind}, 1 in flight", 2, n=5000, kind=KINDS[kind])
    else:
        one("8 ids, 1 in flight", 8, n=500, tokens=8, check_every=1, n_ids=1000)
        many = {"n": 300, "producers": 2, "in_flight": 4, "slots": 8, "n_ids": 1000}
        one("8 ids, 2 x 4 in flight", 8, tokens=8, check_every=1, **many)


@part("A", 40, "producers on the device, ring in GPU memory", 60)
def produced_gpu(run: Run) -> None:
    if not run.on_gpu:
        raise NotRun("needs a GPU")
    rounds(run, "gpu")


@part("A", 50, "producers on the device, ring in host memory", 60)
def produced_host(run: Run) -> None:
    rounds(run, "host")


def look(run: Run, ring: str, slots: int) -> None:
    title = f"a look at {slots} slots"
    with run.apart(f"{title}, ring {ring}"):
        said = run.measured("scan", ring, producers=4, slots=slots // 4, n_ids=1000)
        run.timed(said, {"look": title}, goal(run, "look") if slots == 4096 else "")


@part("A", 60, "polling an empty ring", 30)
def looks(run: Run) -> None:
    for ring in run.rings:
        with run.at_ring(ring):
            for slots in (4096, 256) if ring == "gpu" else (256,):
                look(run, ring, slots)
