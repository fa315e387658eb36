# SPDX-License-Identifier: BSD-3-Clause
"""How fast one core goes through memory in order, by which cache it fits."""

from typing import Any

from bench.lab import micro
from bench.task import Choice, Context, Number, Report, Value

HELP = (
    "One core reads (a sum, compared with what it must be) or writes memory in order, by the "
    "vectors that the build is for. Half of a cache, and several times the last one."
)
PARAMETERS = {
    "level": Choice(micro.LEVELS, "where it lies"),
    "work": Choice(("read", "write")),
    "ms": Number(1, 60_000, "of each trial, at least"),
}
METRICS = {"bandwidth": Value("GB/s", better="higher")}
COUNTS: dict[str, str] = {}
CHECKS_IDS = False


def prepare(_context: Context) -> dict[int, int]:
    micro.need_micro()
    return micro.caches()


def run(sizes: dict[int, int], parameters: dict[str, Any]) -> dict[str, Any]:
    size = micro.level_bytes(parameters["level"], sizes)
    return micro.run(parameters["work"], parameters["ms"], bytes=size)


def report(_sizes: dict[int, int], parameters: dict[str, Any], raw: dict[str, Any]) -> Report:
    return Report(
        values={"bandwidth": raw["bytes"] * raw["times"] / raw["ns"]},
        notes=[micro.size_note(parameters["level"], raw)],
    )


def clean(_sizes: dict[int, int]) -> None:
    """Nothing outlasts a trial."""
