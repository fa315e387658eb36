# SPDX-License-Identifier: BSD-3-Clause
"""Samples the appliance's memory while it works: does any of it grow?"""

from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from dpdk_tokd.ops.telemetry import Telemetry

from bench.lab.beside import Beside

MIB = 1 << 20
OF_STATUS = ("VmRSS", "RssAnon", "RssFile", "RssShmem", "HugetlbPages")  # proc(5)
OF_WORKER = ("open_streams", "streams", "held_mbufs", "mbufs_in_use", "side_used", "ring_held")


@dataclass(frozen=True)
class Figure:
    """One of the figures sampled. `slack`: by how much the mean of the last tenth of the run may
    exceed that of the first."""

    name: str
    unit: str
    slack: int


# Memory of the process hardly changes. Use of the tables follows the load, at most by what the
# requests in flight can hold.
IN_FLIGHT = 128
FIGURES = (
    Figure("VmRSS", "bytes", MIB),
    Figure("RssAnon", "bytes", MIB),
    Figure("HugetlbPages", "bytes", 0),
    Figure("heap", "bytes", 0),
    Figure("mbufs_in_use", "mbufs", IN_FLIGHT),
    Figure("held_mbufs", "mbufs", IN_FLIGHT),
    Figure("open_streams", "texts", IN_FLIGHT),
    Figure("streams", "texts", IN_FLIGHT),
    Figure("side_used", "bytes", IN_FLIGHT * 2048),
)


def sample(telemetry: Telemetry) -> dict[str, int]:
    found = {}
    for line in Path(f"/proc/{telemetry.pid}/status").read_text().splitlines():
        name, _, value = line.partition(":")
        if name in OF_STATUS:
            found[name] = int(value.split()[0]) * 1024
    worker = telemetry.workers()[0]
    found |= {name: worker[name] for name in OF_WORKER}
    found["heap"] = telemetry.command("/eal/heap_info", 0)["Alloc_size"]
    found["done"] = telemetry.counters()["streams_done"]
    return found


class Sampler(Beside):
    """Samples while the context is open."""

    def __init__(self, folder: Path, every_s: float) -> None:
        super().__init__()
        self.samples: list[dict[str, int]] = []
        self._folder, self._every_s = folder, every_s

    def _run(self) -> None:
        with Telemetry(folder=self._folder) as telemetry:
            while not self._stop.wait(self._every_s):
                self.samples.append(sample(telemetry))


def compare(samples: list[dict[str, int]]) -> dict[str, dict[str, Any]]:
    """Each figure over the first and the last tenth of the texts done."""
    begin, end = samples[0]["done"], samples[-1]["done"]
    first = [s for s in samples if s["done"] - begin <= (end - begin) / 10]
    last = [s for s in samples if end - s["done"] <= (end - begin) / 10]
    result = {}
    for figure in FIGURES:
        early, late = (fmean(s[figure.name] for s in part) for part in (first, last))
        result[figure.name] = {
            "unit": figure.unit,
            "first_tenth": round(early),
            "last_tenth": round(late),
            "most": max(s[figure.name] for s in samples),
            "slack": figure.slack,
            "flat": late <= early + figure.slack,
        }
    return result
