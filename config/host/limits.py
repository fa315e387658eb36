# SPDX-License-Identifier: BSD-3-Clause
"""Stage limits: lets users lock memory, for RDMA and programs without root."""

from __future__ import annotations

import re

from host.plan import Plan
from host.report import Finding, Level
from host.root import Root

NAME = "limits"
FILE = "/etc/security/limits.d/dpdk-tokd.conf"
COST = "registering a ring with a NIC fails with ENOMEM: no RDMA at all"
NO_LOGIN = ("", "4294967295")  # the kernel's -1; "": the kernel keeps no record of logins
TEXT = """\
# Written by tokd-host; tokd-host revert removes it.
*    soft memlock unlimited
*    hard memlock unlimited
root soft memlock unlimited
root hard memlock unlimited
"""


def check(root: Root, plan: Plan) -> list[Finding]:
    good = root.read(FILE) == TEXT
    bad = "is not ours" if root.exists(FILE) else "is missing"
    found = [
        Finding(
            NAME,
            Level.OK if good else Level.WARN,
            f"{FILE}: {'lets logins lock memory' if good else bad}",
            "" if good else COST,
            "" if good else "tokd-host apply, then log in again; systemd units have LimitMEMLOCK",
        )
    ]
    return found + (_session(root) if good and root.is_this_machine else [])


def _session(root: Root) -> list[Finding]:
    """The limit of this process: that of its login. Only a login reads the file."""
    said = re.search(r"^Max locked memory +(\w+)", root.read("/proc/self/limits"), re.MULTILINE)
    if not said:
        return []
    if said[1] == "unlimited":
        return [Finding(NAME, Level.OK, "this session may lock all memory")]
    what = f"may lock {said[1]} bytes"
    if root.read("/proc/self/loginuid").strip() in NO_LOGIN:
        return [
            Finding(
                NAME,
                Level.NOTE,
                f"this process {what}; no login started it, so that {FILE} is not for it",
            )
        ]
    return [
        Finding(
            NAME,
            Level.WARN,
            f"this session {what}, despite {FILE}",
            COST,
            "log in again; if that does not help, check that /etc/pam.d uses pam_limits, and the "
            "other files in /etc/security/limits.d",
        )
    ]


def apply(root: Root, plan: Plan) -> None:
    root.write(FILE, TEXT)


def verify(root: Root, plan: Plan) -> list[Finding]:
    return check(root, plan)
