# SPDX-License-Identifier: BSD-3-Clause
"""Findings and errors, and how they are printed."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, dataclass
from enum import Enum
from itertools import groupby


class Level(str, Enum):  # noqa: UP042 - Python before 3.11, as in RHEL 9, has no StrEnum
    OK = "ok"
    NOTE = "note"  # information; nothing to do
    WARN = "warn"  # costs latency
    BAD = "bad"  # the plan is not applied, or cannot be


@dataclass(frozen=True)
class Finding:
    """One check. `cost`: its effect on latency, in words; `remedy`: what to do; `reboot`: it takes
    effect at the next boot."""

    stage: str
    level: Level
    what: str
    cost: str = ""
    remedy: str = ""
    reboot: bool = False


class Refusal(Exception):
    """Impossible: the thing, the value, the limit, the remedy."""


class Failed(Exception):
    """Failed at run time. `errno`: the system's, 0 if a program failed."""

    def __init__(self, said: str, errno: int = 0) -> None:
        super().__init__(said)
        self.errno = errno


class Partly(Failed):
    """Some steps failed, each was reported; the others are still useful."""


def tell(findings: list[Finding], as_json: bool) -> None:
    if as_json:
        json.dump([asdict(f) for f in findings], sys.stdout, indent=1)
        print()
        return
    for (stage, level, cost, remedy, reboot), group in groupby(findings, _alike):
        for f in group:
            print(f"{level.value:<5} {stage:<9} {f.what}")
        if cost:
            print(f"{'':15} costs: {cost}")
        if remedy:
            then = " (then reboot)" if reboot and "reboot" not in remedy else ""
            print(f"{'':15} do:    {remedy}{then}")


def _alike(f: Finding) -> tuple[str, Level, str, str, bool]:
    """Neighbours that have all of this in common are printed with it once."""
    return f.stage, f.level, f.cost, f.remedy, f.reboot


def is_good(findings: list[Finding]) -> bool:
    return all(f.level in (Level.OK, Level.NOTE) for f in findings)
