# SPDX-License-Identifier: BSD-3-Clause
"""Whether huge pages leave enough memory. What the command line reserves is missing in every boot
entry, also the rescue one.
"""

from __future__ import annotations

import re

from host.plan import Pages, Plan
from host.report import Refusal
from host.root import Root

LEAST_KB = (
    1 << 20
)  # left as ordinary memory: 1 GiB or a sixteenth, the larger; per node a sixteenth
KB = {"M": 1 << 10, "G": 1 << 20, "T": 1 << 30}


def parse(text: str) -> int:
    """ "64G" in KiB; of "" 0. Raises Refusal."""
    match = re.fullmatch(r"([1-9]\d{0,6})([MGT])", text)
    if text and not match:
        raise Refusal(f"--memory {text}: expected a size like 64G, of M, G or T")
    return int(match[1]) * KB[match[2]] if match else 0


def _total(root: Root, file: str) -> int:
    """In KiB; 0 if unknown."""
    match = re.search(r"^.*\bMemTotal:\s+(\d+) kB", root.read(file), re.MULTILINE)
    return int(match[1]) if match else 0


def _sum(pages: list[Pages]) -> int:
    return sum(p.count * p.size_kb for p in pages)


def _gb(kb: int) -> str:
    return f"{kb / (1 << 20):.1f} GiB"


def propose(root: Root, workers: int) -> tuple[Pages, ...]:
    """1 GiB for each worker and one more, at most a quarter of the memory; of the largest pages up
    to 1G. None if nothing is known."""
    kb = min((workers + 1) << 20, _total(root, "/proc/meminfo") // 4)
    for size_kb in (1 << 20, 2048):
        if kb >= size_kb and root.exists(f"/sys/kernel/mm/hugepages/hugepages-{size_kb}kB"):
            return (Pages(kb // size_kb, size_kb),)
    return ()


def too_many(root: Root, plan: Plan) -> str:
    """Why these are too many; "" if they are not."""
    if not _sum(list(plan.pages)):
        return ""
    asked = f"--hugepages {','.join(p.show() for p in plan.pages)}"
    total = _total(root, "/proc/meminfo") or root.memory_kb
    if not total:
        return (
            f"{asked}: /proc/meminfo does not say how much memory is there, so what they leave is not known; for a "
            "root that is not running, an image, say how much the machine will have: --memory SIZE, as 64G"
        )
    places = [("the machine", total, max(LEAST_KB, total // 16), list(plan.pages))]
    for node in sorted({p.node for p in plan.pages if p.node is not None}):
        if has := _total(root, f"/sys/devices/system/node/node{node}/meminfo"):
            places.append(
                (f"node {node}", has, has // 16, [p for p in plan.pages if p.node == node])
            )
    for place, has, reserve, pages in places:
        if _sum(pages) > has - reserve:
            return (
                f"{asked}: {_gb(_sum(pages))} of huge pages; {place} has {_gb(has)}, of which {_gb(reserve)} stay "
                "ordinary memory, or it would not boot or soon kill programs: ask for at most "
                f"{_gb(max(0, has - reserve))}"
            )
    return ""
