# SPDX-License-Identifier: BSD-3-Clause
"""Durations in a HdrHistogram, and percentiles of them where there are samples enough."""

import io
import math
from pathlib import Path

from hdrh.histogram import HdrHistogram

MOST_NS = 3_600_000_000_000  # an hour
DIGITS = 3  # a value is kept to 0.1%
BEYOND = 10  # samples that must lie beyond a percentile for it to be one
SHOWN = (50.0, 90.0, 99.0, 99.9, 99.99, 99.999)
STEPS = 12  # points of a curve for each ten times less beyond it
CURVE = sorted({50.0, *(round(100 * (1 - 10 ** (-i / STEPS)), 9) for i in range(6 * STEPS + 1))})
UNITS = {"ns": 1, "us": 1_000, "ms": 1_000_000}  # in ns


def least_samples(percentile: float) -> int:
    """What p50 needs is 20, p99 1,000, p99.9 10,000, and so on: ten samples beyond it."""
    return math.ceil(round(BEYOND / (1 - percentile / 100), 6))


class Samples:
    """Durations in ns. Adding up those of several trials loses nothing."""

    def __init__(self) -> None:
        self._hdr = HdrHistogram(1, MOST_NS, DIGITS)

    def add(self, ns: int, count: int = 1) -> None:
        """ValueError for what is no duration, or longer than an hour: nothing is dropped."""
        if ns < 0 or not self._hdr.record_value(max(1, ns), count):
            raise ValueError(f"{ns} ns: a duration is from 0 to {MOST_NS} ns")

    def add_all(self, other: "Samples") -> None:
        self._hdr.add(other._hdr)

    def __len__(self) -> int:
        return self._hdr.get_total_count()

    def percentile(self, percentile: float) -> int | None:
        """In ns; None without samples enough."""
        if len(self) < least_samples(percentile):
            return None
        return self._hdr.get_value_at_percentile(percentile)

    def curve(self) -> dict[float, int]:
        """Percentiles to draw, in ns, as far as there are samples enough."""
        enough = [p for p in CURVE if least_samples(p) <= len(self)]
        return self._hdr.get_percentile_to_value_dict(enough) if enough else {}

    def max(self) -> int | None:
        return self._hdr.get_max_value() if len(self) else None

    def told(self, unit: str) -> dict[str, float]:
        """The percentiles that there are samples enough for, and the largest, for a person."""
        found = {f"p{p:g}": self.percentile(p) for p in SHOWN} | {"max": self.max()}
        return {name: ns / UNITS[unit] for name, ns in found.items() if ns is not None}

    def encode(self) -> str:
        """HdrHistogram's own V2 encoding, in base64: other implementations read it."""
        return self._hdr.encode().decode()

    @classmethod
    def decode(cls, text: str) -> "Samples":
        made = cls()
        made._hdr.decode_and_add(text.encode())
        return made

    def write_hgrm(self, path: Path, unit: str) -> None:
        """The percentile distribution that HdrHistogram's plotter takes."""
        out = io.BytesIO()
        self._hdr.output_percentile_distribution(out, UNITS[unit])
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(out.getvalue())
