# SPDX-License-Identifier: BSD-3-Clause
"""Sweeps: one parameter at a time, from one point: word f32, 2048 ids a slot, 768 wide.

Producers on the device post as fast as they may. Tokens a second are all rows over the time from
the first producer's beginning to the last one's end, by the device's clock; they post for about a
second.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..parts import part
from ..run import Run
from .a_times import KINDS, SERIES

DTYPES = {"f32": 1, "f16": 2, "bf16": 3}
BUSY = {"producers": 4, "slots": 16, "in_flight": 8}
SECONDS = 1
ENDLESS = 10_000_000  # posts of a producer: its time limit comes first
KEPT = 100_000


def some(run: Run, values: Sequence[int]) -> Sequence[int]:
    """All points on a GPU; only the first on the device cpu."""
    return values if run.on_gpu else values[:1]


def point(run: Run, title: str, **numbers: int) -> None:
    """One point of a sweep. If it fails, the sweep continues."""
    with run.apart(title):
        measured_at(run, title, **numbers)


def measured_at(run: Run, title: str, **numbers: int) -> None:
    ring = run.rings[0]
    base: dict[str, Any] = {"n": ENDLESS, "kept": KEPT, "tokens": 2048}
    if not run.on_gpu:
        base.update(n=30, n_ids=1000, tokens=64)
    said = run.measured("produce", ring, stop_after_s=SECONDS, **{**base, **numbers})
    note = (
        f"rows compared of {said['compared']:,} slots" if said["compared"] else "rows not compared"
    )
    rate = said["done"] * said["tokens_per_slot"] / said["ns"] * 1000
    run.figure(what=title, ring=said["ring"], value=rate, unit="M tokens/s", note=note)
    run.timed(said, {name: f"{text}, {title}" for name, text in SERIES.items()}, note)


@part("B", 10, "sweep: kind and type", 90)
def kinds(run: Run) -> None:
    for kind, number in KINDS.items():
        for dtype, code in DTYPES.items():
            check = {"check_every": 64} if kind == "word" else {}
            point(run, f"{kind} {dtype}", kind=number, dtype=code, **check, **BUSY)


@part("B", 20, "sweep: ids per slot", 90)
def sizes(run: Run) -> None:
    for tokens in some(run, (1, 8, 32, 128, 512, 2048, 4096)):
        point(run, f"{tokens} ids a slot, 1 in flight", tokens=tokens, check_every=16)
        point(run, f"{tokens} ids a slot, 4 x 8 in flight", tokens=tokens, check_every=64, **BUSY)


@part("B", 30, "sweep: slots in flight", 90)
def in_flight(run: Run) -> None:
    for slots in some(run, (1, 2, 4, 8, 16, 32, 64)):
        point(
            run,
            f"1 x {slots} in flight, 128 ids",
            tokens=128,
            slots=64,
            in_flight=slots,
            check_every=64,
        )


@part("B", 40, "sweep: rows per job", 90)
def rows(run: Run) -> None:
    # Of 2048 ids, 8 rows are the least: a record is 256 jobs at most.
    for n in some(run, (8, 16, 32, 64, 128)):
        point(run, f"{n} rows a job, 1 in flight", rows=n, check_every=16)
        point(run, f"{n} rows a job, 4 x 8 in flight", rows=n, check_every=64, **BUSY)


@part("B", 50, "sweep: workers", 90)
def workers(run: Run) -> None:
    for n in some(run, (1, 8, 32, 64, 100)):
        point(run, f"{n} workers, 4 x 8 in flight", workers=n, check_every=64, **BUSY)
    point(run, "workers as by default less 4, 4 x 8 in flight", check_every=64, **BUSY)


@part("B", 60, "sweep: all slots or heads", 90)
def heads(run: Run) -> None:
    for slots in some(run, (64, 1024, 4096)):
        for look in some(run, (0, 1)):
            title = f"{slots} slots, {'heads' if look else 'all'} looked at, 8 ids, 1 in flight"
            numbers = {"producers": 4, "slots": slots // 4, "heads": look, "tokens": 8}
            point(run, title, check_every=16, **numbers)


@part("B", 70, "sweep: records per batch", 90)
def batches(run: Run) -> None:
    for records in some(run, (1, 4, 16, 64)):
        for flight in some(run, (1, 8)):
            title = f"batch of {records} x 16 ids, {flight} in flight"
            numbers = {"tokens": 16, "batch": records, "slots": 16, "in_flight": flight}
            point(run, title, check_every=64, **numbers)
