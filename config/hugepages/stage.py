# SPDX-License-Identifier: BSD-3-Clause
"""Stage hugepages: the counts now, per node, and a mount for each size."""

from __future__ import annotations

import re

from host.plan import SIZES, Pages, Plan
from host.report import Finding, Level, Refusal
from host.root import Root

from hugepages import doca, memory

NAME = "hugepages"
KB = {"K": 1, "M": 1024, "G": 1048576}
MOUNT_UNIT = """\
# Written by tokd-host; tokd-host revert removes it.
[Unit]
Description=Huge pages of {size} for dpdk-tokd
DefaultDependencies=no
Before=sysinit.target

[Mount]
What=hugetlbfs
Where={where}
Type=hugetlbfs
Options=pagesize={size},mode=0770

[Install]
WantedBy=sysinit.target
"""


def _folder(p: Pages) -> str:
    base = "/sys/kernel/mm" if p.node is None else f"/sys/devices/system/node/node{p.node}"
    return f"{base}/hugepages/hugepages-{p.size_kb}kB"


def _size(p: Pages) -> str:
    return p.show().partition("x")[2].partition("@")[0]


def where(size: str) -> str:
    return f"/dev/hugepages-{size}"


def unit(size: str) -> str:
    return f"/etc/systemd/system/dev-hugepages\\x2d{size}.mount"


def mounted(root: Root, size: str) -> bool:
    """Is this page size mounted anywhere? Compared as numbers: the kernel writes 1G as 1024M."""
    for line in root.read("/proc/mounts").splitlines():
        part = line.split()
        if len(part) > 3 and part[2] == "hugetlbfs":
            said = re.search(r"(?:^|,)pagesize=(\d+)([KMG])(?:,|$)", part[3])
            if said and int(said[1]) * KB[said[2]] == SIZES[size]:
                return True
    return False


def check(root: Root, plan: Plan) -> list[Finding]:
    found = []
    if said := memory.too_many(root, plan):
        found.append(
            Finding(
                NAME,
                Level.BAD,
                said,
                "a machine without ordinary memory does not come up",
                "ask for fewer",
            )
        )
    for p in plan.pages:
        text = root.read(f"{_folder(p)}/nr_hugepages").strip()
        place = "" if p.node is None else f" on node {p.node}"
        if not text.isdigit():
            found.append(
                Finding(
                    NAME,
                    Level.BAD,
                    f"no huge pages of {_size(p)}{place}: {_folder(p)} is missing",
                    "ordinary pages: TLB misses of 0.02 to 0.1 us on most lookups",
                    "a size that the machine has: ls /sys/kernel/mm/hugepages",
                )
            )
            continue
        enough = int(text) >= p.count
        found.append(
            Finding(
                NAME,
                Level.OK if enough else Level.BAD,
                f"{text} huge pages of {_size(p)}{place}"
                + ("" if enough else f", asked: {p.count}"),
                "" if enough else "dpdk-tokd does not start, or takes ordinary pages",
                ""
                if enough
                else "tokd-host apply; where memory is fragmented, reboot with it applied",
                reboot=not enough,
            )
        )
    for size in dict.fromkeys(_size(p) for p in plan.pages):
        if not mounted(root, size):
            found.append(
                Finding(
                    NAME,
                    Level.WARN,
                    f"no hugetlbfs mount with pages of {size}",
                    "EAL finds none of that size (dpdk-tokd's rings need no mount)",
                    "tokd-host apply",
                )
            )
    return found


def apply(root: Root, plan: Plan) -> None:
    if doca.is_here(root):
        doca.apply(root, plan)
    else:
        for p in plan.pages:
            _reserve(root, p)
    for size in dict.fromkeys(_size(p) for p in plan.pages):
        name = unit(size).rpartition("/")[2]
        if root.write(unit(size), MOUNT_UNIT.format(size=size, where=where(size))):
            root.run("systemctl", "daemon-reload")
        root.symlink(f"/etc/systemd/system/sysinit.target.wants/{name}", f"../{name}")
        if not mounted(root, size) and root.names("/run/systemd/system"):
            root.run("systemctl", "start", name)


def prove(root: Root, plan: Plan) -> list[Finding]:
    """Raises Refusal if the machine does not have such pages, or not so many. Not checked in
    another root."""
    if doca.is_here(root):
        doca.prove(plan)
    for p in plan.pages if not doca.is_here(root) else ():
        path = f"{_folder(p)}/nr_hugepages"
        if not root.read(path).strip().isdigit() and root.exists("/sys/kernel/mm/hugepages"):
            raise Refusal(
                f"{path}: the machine has no pages of {_size(p)}"
                f"{'' if p.node is None else f' on node {p.node}'}; it has "
                f"{', '.join(root.names('/sys/kernel/mm/hugepages')) or 'none at all'}"
            )
    if said := memory.too_many(root, plan):
        raise Refusal(said)
    return []


def _reserve(root: Root, p: Pages) -> None:
    """Reserves the plan's count, or more if others reserved more. Pages of an earlier plan that
    this one does not request are given back."""
    path = f"{_folder(p)}/nr_hugepages"
    text = root.read(path).strip()
    if not text.isdigit():
        return  # another root
    others = int(root.held(path) or 0) if root.is_as_written(path) else int(text)
    root.write(path, f"{max(others, p.count)}\n")
    now = root.read(path).strip()
    if not root.dry_run and int(now or 0) < p.count:
        print(
            f"note  {path}: {now} of {p.count}: memory is fragmented; they will be there after a reboot"
        )


def verify(root: Root, plan: Plan) -> list[Finding]:
    return check(root, plan)
