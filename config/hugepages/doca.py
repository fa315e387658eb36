# SPDX-License-Identifier: BSD-3-Clause
"""BlueField images bring doca-hugepages, which adds up what each application asks for.

Whoever writes the counts beside it has them overwritten, or doubled, at its next reload: there we ask it, and write no
count ourselves.
"""

from host.plan import Plan
from host.root import Root

PROGRAM = "doca-hugepages"


def is_here(root: Root) -> bool:
    return bool(root.program(PROGRAM))


def apply(root: Root, plan: Plan) -> None:
    for p in plan.pages:
        root.run(
            PROGRAM, "config", "--app", "dpdk-tokd", "--size", str(p.size_kb), "--num", str(p.count)
        )
    if plan.pages:
        root.run(PROGRAM, "reload")
