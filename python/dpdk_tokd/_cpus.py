# SPDX-License-Identifier: BSD-3-Clause
"""How many CPUs there are to use: more threads than that are no faster, and each has caches."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from functools import cache


def cpus() -> int:
    """Those of this process's affinity, at most as many as its control group has CPU time for."""
    return min(len(os.sched_getaffinity(0)), quota())


@cache
def quota() -> int:
    """As many CPUs as this process's control group has time for. The group is asked once."""
    group = "/"  # as a container sees its own
    with suppress(OSError), open("/proc/self/cgroup", errors="surrogateescape") as file:
        for line in file.read().splitlines():
            if line.startswith("0::"):  # of version 2
                group = line[3:]
    return quota_of(group)


def quota_of(group: str, root: str = "/sys/fs/cgroup") -> int:
    """CPUs by the time that a control group, and each one above it, may take; rounded up."""
    least = sys.maxsize
    folder = f"{root}/{group}".rstrip("/")
    while True:
        with suppress(OSError, ValueError), open(f"{folder}/cpu.max") as file:
            limit, period = map(int, file.read().split())  # no limit: "max"
            least = min(least, -(-limit // period))
        if folder == root:
            return least
        folder = os.path.dirname(folder)
