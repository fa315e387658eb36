# SPDX-License-Identifier: BSD-3-Clause
"""What tokd-diag knows of a machine, as plain data. None is "not known". Sizes are in bytes.

Fields have the names and the order of the JSON report; those in NOT_SHOWN are not in it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

NOT_SHOWN = {"iwarp", "ports_left_out", "acs_bridge"}


@dataclass
class Pci:
    """Where a PCI function stands."""

    address: str  # 0000:03:00.0
    path: str  # in /sys/devices
    driver: str | None = None  # of the kernel
    numa_node: int = -1
    iommu_group: str | None = None
    iommu_type: str | None = None  # identity, DMA, DMA-FQ, ...


@dataclass
class Gid:
    """An entry of a port's table of addresses."""

    index: int
    gid: str  # as an IPv6 address
    type: str  # one of gids.TYPES
    scope: str  # IPv4, link-local, global
    netdev: str | None = None


@dataclass
class Port:
    """A port of an RDMA device."""

    port: int
    state: str | None = None  # ACTIVE, DOWN, ...
    phys_state: str | None = None  # LinkUp, Disabled, ...
    link_layer: str | None = None  # InfiniBand, Ethernet
    rate: str | None = None
    lid: int = 0
    mtu: int | None = None  # of RDMA
    mtu_max: int | None = None
    mtu_from: str = "nothing"  # or verbs, netdev
    gids: list[Gid] = field(default_factory=list)


@dataclass
class Rdma:
    """An RDMA device."""

    name: str
    firmware: str | None = None
    board: str | None = None
    model: str | None = None
    pci: Pci | None = None  # None: not on PCI
    # by verbs
    opened: bool = False
    open_error: str | None = None
    max_qp_wr: int | None = None
    max_inline: int | None = None
    dmabuf: bool | None = None
    dmabuf_why: str = ""
    ports: list[Port] = field(default_factory=list)
    iwarp: bool = False  # it has no queue pairs of the kind that is needed
    ports_left_out: int = 0


@dataclass
class Gpu:
    """A GPU of NVIDIA."""

    name: str
    pci: Pci
    bar1: int | None = None
    bar1_free: int | None = None
    bar1_from: str = "sysfs"  # or nvml
    # by CUDA and NVML
    asked: bool = False
    major: int = 0  # compute capability; 0.0: not known
    minor: int = 0
    write_order: str = "not known"  # of RDMA's writes: none, owner, all devices
    gpudirect_rdma: bool | None = None
    dmabuf: bool | None = None
    acs_bridge: str | None = None  # above it, sends peer-to-peer traffic up to the root


@dataclass
class HugePages:
    """Huge pages of one size on one NUMA node."""

    node: int
    kb: int
    total: int
    free: int


@dataclass
class System:
    """Kernel, modules, limits, memory."""

    kernel: str | None = None
    nvidia_version: str | None = None
    nvidia: bool = False
    nvidia_open: bool = False
    peer_memory: bool = False
    gdrdrv: bool = False
    gdrdrv_node: bool = False  # /dev/gdrdrv
    mlx5_ib: bool = False
    gdrapi: bool | None = None  # libgdrapi.so.2 loads
    memlock: int | str | None = None  # or "unlimited"
    memlock_free: bool | None = None  # CAP_IPC_LOCK: the limit does not apply
    iommu: bool = False
    iommu_options: str | None = None  # of the kernel's command line
    huge_pages: list[HugePages] = field(default_factory=list)
    hugetlbfs: list[str] = field(default_factory=list)  # mount points


@dataclass
class Note:
    """Why something could not be asked, and the remedy."""

    value: str
    remedy: str = ""


@dataclass
class Machine:
    """All of it."""

    system: System = field(default_factory=System)
    rdma: list[Rdma] = field(default_factory=list)
    rdma_left_out: int = 0
    verbs_asked: bool = False  # what could not be opened cannot be used
    verbs_note: Note | None = None
    gpus: list[Gpu] = field(default_factory=list)
    cuda_version: int | None = None  # of the driver, 13030 for 13.3
    cuda_note: Note | None = None
    nvml_note: Note | None = None
    names_note: Note | None = None  # of PCI devices


def bytes_text(n: int) -> str:
    """16 MiB"""
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if n < 1024 or n % 1024:
            return f"{n} {unit}"
        n //= 1024
    return f"{n} TiB"
