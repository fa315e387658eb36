# SPDX-License-Identifier: BSD-3-Clause
"""Stage governor: isolated cores run at full clock and do not sleep deeply."""

from __future__ import annotations

from host.plan import Plan
from host.report import Finding, Level
from host.root import Root

NAME = "governor"


def _file(cpu: int) -> str:
    return f"/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor"


def check(root: Root, plan: Plan) -> list[Finding]:
    found = []
    for cpu in sorted(plan.cores):
        now = root.read(_file(cpu)).strip()
        if not now:
            continue  # no frequency scaling here, as in most virtual machines
        good = now == "performance"
        found.append(
            Finding(NAME, Level.OK if good else Level.WARN, f"CPU {cpu}: governor {now}",
                "" if good else "10 to 500 us each time the clock changes, and a lower clock until then",
                "" if good else "tokd-host apply")
        )
    if plan.cores and not found:
        found.append(Finding(NAME, Level.NOTE, "no frequency scaling is visible: nothing to set"))
    return found


def apply(root: Root, plan: Plan) -> None:
    for cpu in sorted(plan.cores):
        offered = root.read(_file(cpu).replace("governor", "available_governors")).split()
        if root.exists(_file(cpu)) and "performance" in offered:
            root.write(_file(cpu), "performance\n")


def verify(root: Root, plan: Plan) -> list[Finding]:
    return check(root, plan)
