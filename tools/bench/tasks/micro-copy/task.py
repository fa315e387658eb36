# SPDX-License-Identifier: BSD-3-Clause
"""The cost of copying slots of the GPU ring by a core, which a NIC would save."""

from typing import Any

from bench.lab import micro
from bench.programs import TOKD_MICRO
from bench.task import Choice, Context, Number, Report, Value, need

HELP = (
    "One core copies a slot by memcpy into each of eight slots in turn; the last copies are compared. "
    "cache: always from the same slot; dram: from consecutive memory beyond all caches."
)
PARAMETERS = {
    "source": Choice(("cache", "dram")),
    "slot-kib": Number(1, 1024),
    "ms": Number(1, 60_000, "of each trial, at least"),
}
METRICS = {"copy": Value("us", help="of a slot, mean"), "bandwidth": Value("GB/s", better="higher")}
COUNTS: dict[str, str] = {}
CHECKS_IDS = False


def prepare(_context: Context) -> dict[int, int]:
    need(TOKD_MICRO)
    return micro.caches()


def run(sizes: dict[int, int], parameters: dict[str, Any]) -> dict[str, Any]:
    size = parameters["slot-kib"] << 10
    source = size if parameters["source"] == "cache" else micro.level_bytes("dram", sizes)
    return micro.run("copy", parameters["ms"], **{"bytes": size, "from": source})


def report(_sizes: dict[int, int], _parameters: dict[str, Any], raw: dict[str, Any]) -> Report:
    ns = raw["ns"] / raw["times"]
    return Report(values={"copy": ns / 1000, "bandwidth": raw["bytes"] / ns})
