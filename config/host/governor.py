# SPDX-License-Identifier: BSD-3-Clause
"""Stage governor: isolated cores run at full frequency."""

from __future__ import annotations

from host import cpus
from host.plan import Plan
from host.report import Finding, Level
from host.root import Root

NAME = "governor"


def _file(cpu: int) -> str:
    return f"/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor"


def _offers(root: Root, cpu: int) -> bool:
    return "performance" in root.read(_file(cpu).replace("governor", "available_governors")).split()


def _remedy(root: Root, cpu: int) -> str:
    if _offers(root, cpu):
        return "tokd-host apply"
    return "this driver offers no governor performance: modprobe cpufreq_performance, or set the clock in the firmware"


def check(root: Root, plan: Plan) -> list[Finding]:
    on: dict[tuple[str, str], set[int]] = {}  # CPUs by governor and remedy
    for cpu in sorted(plan.cores):
        now = root.read(_file(cpu)).strip()
        if now:  # no frequency scaling in most virtual machines
            remedy = "" if now == "performance" else _remedy(root, cpu)
            on.setdefault((now, remedy), set()).add(cpu)
    found = [
        Finding(
            NAME,
            Level.WARN if remedy else Level.OK,
            f"CPU {cpus.show(some)}: governor {now}",
            "10 to 500 us each time the clock changes, and a lower clock until then"
            if remedy
            else "",
            remedy,
        )
        for (now, remedy), some in on.items()
    ]
    if plan.cores and not found:
        found.append(Finding(NAME, Level.NOTE, "no frequency scaling is visible: nothing to set"))
    return found


def apply(root: Root, plan: Plan) -> None:
    for cpu in sorted(plan.cores):
        if root.exists(_file(cpu)) and _offers(root, cpu):
            root.write(_file(cpu), "performance\n")


def verify(root: Root, plan: Plan) -> list[Finding]:
    return check(root, plan)
