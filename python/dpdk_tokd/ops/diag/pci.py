# SPDX-License-Identifier: BSD-3-Clause
"""PCI functions in sysfs, the distance between two of them, and their names by lspci."""

from __future__ import annotations

import os.path
import re
import subprocess
from enum import IntEnum

from .files import Files, clean
from .machine import Machine, Note, Pci

ADDRESS = re.compile(r"[0-9a-fA-F]{4}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-9a-fA-F]")
CONFIG_BYTES = 4096
EXTENDED = 256  # where the list of extended capabilities begins
ACS_ID = 0x0D  # access control services
ACS_P2P = 0x000C  # request redirect, completion redirect


class Between(IntEnum):
    """Near to far."""

    NOT_KNOWN = 0
    SWITCH = 1  # a bridge below the root port has both under it
    ROOT = 2  # one host bridge, by its root ports
    NODE = 3  # two host bridges of one NUMA node
    NODES = 4

    @property
    def text(self) -> str:
        return (
            "not known",
            "the same PCIe switch",
            "the same PCIe root",
            "two PCIe roots of one NUMA node",
            "two NUMA nodes",
        )[self]


def between(a: Pci | None, b: Pci | None) -> Between:
    if a is None or b is None:
        return Between.NOT_KNOWN
    # "", sys, devices, pci0000:00, 0000:00:01.0 (the root port), 0000:01:00.0 (a switch), ...
    common = len(os.path.commonprefix([a.path.split("/"), b.path.split("/")]))  # noqa: RUF071 - of lists
    if common > 5:
        return Between.SWITCH
    if common > 3:
        return Between.ROOT
    if a.numa_node < 0 or b.numa_node < 0:
        return Between.NOT_KNOWN
    return Between.NODE if a.numa_node == b.numa_node else Between.NODES


def find(files: Files, link: str) -> Pci | None:
    """From a link to a device's folder, as /sys/class/infiniband/mlx5_0/device.

    The last address in the path counts: a virtual function's, the parent's of an auxiliary device.
    """
    parts = (files.real(link) or "").split("/")
    last = max((i for i, part in enumerate(parts) if ADDRESS.fullmatch(part)), default=None)
    if last is None:
        return None
    path = "/".join(parts[: last + 1])
    node = files.number(f"{path}/numa_node")
    found = Pci(parts[last], path, numa_node=-1 if node is None else node)
    found.driver = os.path.basename(files.real(f"{path}/driver") or "") or None
    found.iommu_group = os.path.basename(files.real(f"{path}/iommu_group") or "") or None
    if found.iommu_group:
        found.iommu_type = files.line(f"{path}/iommu_group/type")
    return found


def _redirects(config: bytes) -> bool:
    """Do access control services redirect peer-to-peer writes to the root?

    P2P Request or Completion Redirect: PCIe 4.0, 7.7.8. Only root can read that part. A list of
    capabilities can be circular: each is read once.
    """
    at, seen = EXTENDED, set[int]()
    while at >= EXTENDED and at + 8 <= len(config) and at not in seen:
        seen.add(at)
        header = int.from_bytes(config[at : at + 4], "little")
        if header & 0xFFFF == ACS_ID:
            return int.from_bytes(config[at + 6 : at + 8], "little") & ACS_P2P != 0
        at = header >> 20 & ~3
    return False


def redirecting_bridge(files: Files, pci: Pci) -> str | None:
    """The address of the first bridge above that redirects."""
    path = os.path.dirname(pci.path)
    while ADDRESS.fullmatch(os.path.basename(path)):
        if _redirects(files.data(f"{path}/config", CONFIG_BYTES)):
            return os.path.basename(path)
        path = os.path.dirname(path)
    return None


def name(machine: Machine, pci: Pci | None) -> str | None:
    """Its name by lspci, on this machine."""
    if pci is None:
        return None
    try:
        command = ["lspci", "-vmm", "-s", pci.address]
        done = subprocess.run(command, capture_output=True, timeout=10, check=False)
    except FileNotFoundError:
        machine.names_note = Note("lspci is not installed", "apt-get install pciutils")
        return None
    except (OSError, subprocess.TimeoutExpired) as error:
        machine.names_note = Note(f"lspci: {error}")
        return None
    found = re.search(r"^Device:\t(.+)$", done.stdout.decode("latin-1"), re.MULTILINE)
    return clean(found[1]) if found else None
