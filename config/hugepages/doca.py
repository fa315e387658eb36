# SPDX-License-Identifier: BSD-3-Clause
"""BlueField images have doca-hugepages, which adds up the requests of all applications.

Counts that others write are overwritten or doubled at its next reload. So on these images we send
it our request and write no counts ourselves.
"""

from __future__ import annotations

import re

from host.journal import Entry
from host.plan import Pages, Plan
from host.report import Refusal
from host.root import Root

PROGRAM = "doca-hugepages"
APP = "dpdk-tokd"
KIND = "doca"  # in the journal


def is_here(root: Root) -> bool:
    return bool(root.program(PROGRAM))


def _has(said: str, p: Pages) -> bool:
    """A line of `show` has us, the size and the count. If the format is unknown we just request
    again."""
    return any(
        {APP, str(p.size_kb), str(p.count)} <= set(re.split(r"[^\w-]+", line))
        for line in said.splitlines()
    )


def _is_short(root: Root, p: Pages) -> bool:
    now = root.read(f"/sys/kernel/mm/hugepages/hugepages-{p.size_kb}kB/nr_hugepages").strip()
    return now.isdigit() and int(now) < p.count


def prove(plan: Plan) -> None:
    """Raises Refusal if it cannot be requested."""
    for p in plan.pages:
        if p.node is not None:
            raise Refusal(f"--hugepages {p.show()}: {PROGRAM} knows no nodes; leave @{p.node} out")


def apply(root: Root, plan: Plan) -> None:
    if not plan.pages:
        return
    said = root.ask(PROGRAM, "show")
    root.announce(PROGRAM, KIND)
    missing = [p for p in plan.pages if not _has(said, p)]
    for p in missing:
        # Without --force it asks for confirmation if the application is known.
        root.run(
            PROGRAM,
            "config",
            "--app",
            APP,
            "--size",
            str(p.size_kb),
            "--num",
            str(p.count),
            "--force",
        )
    if missing or any(_is_short(root, p) for p in plan.pages):
        root.run(PROGRAM, "reload")


def give_back(root: Root, _entry: Entry) -> None:
    """What is left was requested by others."""
    said = root.ask(PROGRAM, "show")
    if not is_here(root) or (said and APP not in said):
        return
    root.run(PROGRAM, "remove", "--app", APP)
    root.run(PROGRAM, "reload")
