# SPDX-License-Identifier: BSD-3-Clause
"""Ids that come back: of the device's own engine, and of an external one that the host drives."""

from __future__ import annotations

from ..parts import part
from ..run import Run

STREAMS = {1: (1, 1), 16: (4, 4), 256: (16, 16)}  # producers, and lanes of each
MADE = 8  # ids of an answer
ENGINES = {"the device's own engine": 0, "an engine that the host drives": 1}


def answered(run: Run, how: str, engine: str, streams: int, **numbers: int) -> None:
    producers, lanes = STREAMS[streams]
    numbers.update(producers=producers, lanes=lanes, made=MADE, tokens=8, external=ENGINES[engine])
    said = run.measured("generate", "host", stop_after_s=3, **numbers)
    title = f"{engine}, {how}, {streams} streams"
    for name in ("posted to first id read", "posted to answered"):
        run.timed(said, {name: f"{name}, {MADE} ids, {title}"})
    rate = said["ids"] / said["ns"] * 1e9
    run.figure(what=f"ids, {title}", ring=said["ring"], value=rate, unit="a second")
    run.right(f"{title}: {said['answers']:,} answers, {said['ids']:,} ids, each compared")


@part("E", 50, "posted to answered, by engines on the device and on the host", 90)
def engines(run: Run) -> None:
    if not run.on_gpu:
        for engine in ENGINES:
            for streams in (1, 16):
                answered(run, "workers", engine, streams, n=40, n_ids=1000, dim=64)
        return
    for how, graphs in (("workers", 0), ("graphs", 1)):
        for engine in ENGINES:
            for streams in STREAMS:
                answered(run, how, engine, streams, n=10_000, graphs=graphs)
