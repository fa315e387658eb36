# SPDX-License-Identifier: BSD-3-Clause
"""Summaries of samples. Percentiles are by nearest rank: each is a measured sample."""

from __future__ import annotations

import array
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

LEAST_FOR_P99 = 1000  # samples; below them the report says no p99


def percentile(ordered: Sequence[float], share: float) -> float:
    """The nearest-rank percentile of samples in rising order."""
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def summary(samples: Sequence[float]) -> dict[str, Any]:
    """n, p50, p90, p99 (None below LEAST_FOR_P99 samples) and max."""
    ordered = sorted(samples)
    if not ordered:
        return {"n": 0}
    p99 = percentile(ordered, 0.99) if len(ordered) >= LEAST_FOR_P99 else None
    shares = {"p50": percentile(ordered, 0.5), "p90": percentile(ordered, 0.9), "p99": p99}
    return {"n": len(ordered), **shares, "max": ordered[-1]}


def microseconds(ticks: Sequence[int], ns_per_tick: float) -> dict[str, Any]:
    """The summary of ticks, in microseconds."""
    said = summary(ticks)
    scale = ns_per_tick / 1000
    return {k: v if k == "n" or v is None else round(v * scale, 3) for k, v in said.items()}


def series(path: Path, lengths: list[int]) -> list[array.array[int]]:
    """The output of gpu_measure: series of 64-bit words, one after the other."""
    found = []
    with path.open("rb") as samples:
        for n in lengths:
            words = array.array("Q")
            words.frombytes(samples.read(8 * n))
            if len(words) != n:
                raise ValueError(f"{path}: {len(words)} samples, {n} were announced")
            found.append(words)
    return found
