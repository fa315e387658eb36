# SPDX-License-Identifier: BSD-3-Clause
"""Durations in a HdrHistogram, and their percentiles where there are enough samples."""

import io
import math
from pathlib import Path

from hdrh.histogram import HdrHistogram

MOST_NS = 3_600_000_000_000  # an hour
DIGITS = 3  # a value is kept to 0.1%
BEYOND = 10  # samples that must lie beyond a percentile
SHOWN = (50.0, 90.0, 99.0, 99.9, 99.99, 99.999)
STEPS = 12  # points of a curve per decade of 1 - p
CURVE = sorted({50.0, *(round(100 * (1 - 10 ** (-i / STEPS)), 9) for i in range(6 * STEPS + 1))})
UNITS = {"ns": 1, "us": 1_000, "ms": 1_000_000}  # in ns


def least_samples(percentile: float) -> int:
    """p50 needs 20 samples, p99 1,000, p99.9 10,000: ten beyond it."""
    return math.ceil(round(BEYOND / (1 - percentile / 100), 6))


class Samples:
    """Durations in ns. Those of several trials can be added without loss."""

    def __init__(self) -> None:
        self._hdr = HdrHistogram(1, MOST_NS, DIGITS)

    def add(self, ns: int, count: int = 1) -> None:
        """Raises ValueError below 0 or above an hour: nothing is dropped silently."""
        if ns < 0 or not self._hdr.record_value(max(1, ns), count):
            raise ValueError(f"{ns} ns: a duration is from 0 to {MOST_NS} ns")

    def add_all(self, other: "Samples") -> None:
        self._hdr.add(other._hdr)

    def __len__(self) -> int:
        return self._hdr.get_total_count()

    def endless(self, never: int) -> float:
        """The share in percent of the `never` requests that did not end."""
        return 100 * never / (len(self) + never) if never else 0.0

    def _at(self, percentile: float, never: int) -> float | None:
        """The percentile of these samples that is `percentile` of them and `never` longer ones
        together. None: it lies among those, or there are too few samples."""
        if len(self) < least_samples(percentile):
            return None
        at = percentile / (1 - self.endless(never) / 100)
        return min(at, 100.0) if round(at, 6) <= 100 else None

    def percentile(self, percentile: float, never: int = 0) -> int | None:
        """In ns; None with too few samples, or if it lies among those that never ended."""
        at = self._at(percentile, never)
        return None if at is None else self._hdr.get_value_at_percentile(at)

    def curve(self, never: int = 0) -> dict[float, int]:
        """Percentiles to draw, in ns, as far as percentile() has them."""
        at = {p: where for p in CURVE if (where := self._at(p, never)) is not None}
        found = self._hdr.get_percentile_to_value_dict(list(at.values())) if at else {}
        return {p: found[where] for p, where in at.items()}

    def max(self, never: int = 0) -> int | None:
        return self._hdr.get_max_value() if len(self) and not never else None

    def percentiles(self, unit: str, never: int = 0) -> dict[str, float]:
        """The usual percentiles that exist, and the maximum."""
        found = {f"p{p:g}": self.percentile(p, never) for p in SHOWN} | {"max": self.max(never)}
        return {name: ns / UNITS[unit] for name, ns in found.items() if ns is not None}

    def encode(self) -> str:
        """HdrHistogram's V2 encoding in base64, which other implementations read."""
        return self._hdr.encode().decode()

    @classmethod
    def decode(cls, text: str) -> "Samples":
        made = cls()
        made._hdr.decode_and_add(text.encode())
        return made

    def write_hgrm(self, path: Path, unit: str) -> None:
        """The percentile distribution for HdrHistogram's plotter."""
        out = io.BytesIO()
        self._hdr.output_percentile_distribution(out, UNITS[unit])
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(out.getvalue())
