# SPDX-License-Identifier: BSD-3-Clause
"""Stage limits: memory may be locked, for RDMA registrations and for programs that are not root's."""

from __future__ import annotations

from host.plan import Plan
from host.report import Finding, Level
from host.root import Root

NAME = "limits"
FILE = "/etc/security/limits.d/dpdk-tokd.conf"
TEXT = """\
# Written by tokd-host; tokd-host revert removes it.
*    soft memlock unlimited
*    hard memlock unlimited
root soft memlock unlimited
root hard memlock unlimited
"""


def check(root: Root, plan: Plan) -> list[Finding]:
    good = root.read(FILE) == TEXT
    return [
        Finding(NAME, Level.OK if good else Level.WARN,
            f"{FILE}: {'memory may be locked' if good else 'is not ours'}",
            "" if good else "registering a ring with a NIC fails with ENOMEM: no RDMA at all",
            "" if good else "tokd-host apply, then log in again; systemd units have LimitMEMLOCK")
    ]


def apply(root: Root, plan: Plan) -> None:
    root.write(FILE, TEXT)


def verify(root: Root, plan: Plan) -> list[Finding]:
    return check(root, plan)
