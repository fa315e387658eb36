# SPDX-License-Identifier: BSD-3-Clause
"""Latency of dependent loads, by cache level."""

from typing import Any

from bench.lab import micro
from bench.programs import TOKD_MICRO
from bench.task import Choice, Context, Number, Report, Value, need

HELP = (
    "One core follows a random cycle through all 64-byte lines of a memory: each load waits for the "
    "one before. Sizes: half of each cache; dram: several times the last cache."
)
PARAMETERS = {
    "level": Choice(micro.LEVELS, "that the memory fits"),
    "ms": Number(1, 60_000, "of each trial, at least"),
}
METRICS = {"load": Value("ns", help="mean")}
COUNTS: dict[str, str] = {}
CHECKS_IDS = False


def prepare(_context: Context) -> dict[int, int]:
    need(TOKD_MICRO)
    return micro.caches()


def run(sizes: dict[int, int], parameters: dict[str, Any]) -> dict[str, Any]:
    size = micro.level_bytes(parameters["level"], sizes)
    return micro.run("chase", parameters["ms"], bytes=size)


def report(_sizes: dict[int, int], parameters: dict[str, Any], raw: dict[str, Any]) -> Report:
    note = micro.size_note(parameters["level"], raw)
    return Report(values={"load": raw["ns"] / raw["times"]}, notes=[note])
