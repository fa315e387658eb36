# SPDX-License-Identifier: BSD-3-Clause
"""tuned, if its profile cpu-partitioning, or ours based on it, is active. It adds words to the
kernel's command line through a variable of GRUB, outside of GRUB's settings. Which ones depends
on its version; isolcpus only with no_balance_cores.
"""

from __future__ import annotations

import re

from host import cpus
from host.report import Finding, Level
from host.root import Root

VARIABLES = "/etc/tuned/cpu-partitioning-variables.conf"
PROFILES = {"cpu-partitioning", "dpdk-tokd"}
# Folders of profiles; the first one that has a profile counts.
FOLDERS = ("/etc/tuned", "/etc/tuned/profiles", "/usr/lib/tuned", "/usr/lib/tuned/profiles")


def profile(root: Root) -> list[str]:
    """The active profiles, if one of them partitions CPUs; else none."""
    active = root.read("/etc/tuned/active_profile").split()
    return active if PROFILES & set(active) else []


def gives(root: Root) -> set[str]:
    """Keys of the words that tuned sets for the isolated cores."""
    for folder in FOLDERS:
        text = root.read(f"{folder}/cpu-partitioning/tuned.conf")
        line = re.search(r"^cmdline_cpu_part\s*=(.*)$", text, re.MULTILINE)
        if line and profile(root):
            return {
                word.partition("=")[0]
                for word in line[1].split()
                if word.endswith("=${isolated_cores}")
            }
    return set()


def tell(root: Root) -> None:
    """Make tuned read its variables again and write its part of the command line."""
    if profile(root) and root.program("tuned-adm"):
        root.run("tuned-adm", "profile", *profile(root))


def apply(root: Root, cores: frozenset[int]) -> None:
    """Set our line of its variables."""
    line, is_there = f"isolated_cores={cpus.show(cores)}", False
    lines = []
    for old in root.read(VARIABLES).splitlines():
        if not re.match(r"\s*isolated_cores\s*=", old):
            lines.append(old)
        elif not is_there:
            lines.append(line)
            is_there = True
    text = "\n".join(lines if is_there else [*lines, line]) + "\n"
    if root.read(VARIABLES) != text:
        root.on_undo(
            "what tuned was told", lambda: tell(root)
        )  # after the file, which is restored first
    if root.write(VARIABLES, text):
        tell(root)


def check(root: Root, stage: str) -> list[Finding]:
    """A second isolcpus would be one too many."""
    other = re.search(r"^\s*no_balance_cores\s*=\s*(\d.*)$", root.read(VARIABLES), re.MULTILINE)
    if not other or not profile(root):
        return []
    return [
        Finding(
            stage,
            Level.WARN,
            f"{VARIABLES}: no_balance_cores={other[1]} has tuned give isolcpus a second time",
            "the kernel takes the first alone, and says so in dmesg",
            "leave no_balance_cores out: isolcpus=domain does the same; then tuned-adm profile "
            + " ".join(profile(root)),
            reboot=True,
        )
    ]
