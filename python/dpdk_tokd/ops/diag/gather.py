# SPDX-License-Identifier: BSD-3-Clause
"""From sysfs and proc to a Machine; on this machine also from its devices and libraries."""

from __future__ import annotations

import ctypes
import re
import socket
from ipaddress import IPv6Address

from . import gids, nvidia, pci, verbs
from .files import Files, clean, is_name
from .machine import Gid, Gpu, HugePages, Machine, Port, Rdma, System

IB = "/sys/class/infiniband"
PCI = "/sys/bus/pci/devices"
NODES = "/sys/devices/system/node"
RDMA_MOST = 32
PORTS_MOST = 16
GIDS_MOST = 256
GPUS_MOST = 32
HUGE_PAGES_MOST = 128
MOUNTS_MOST = 4
CAP_IPC_LOCK = 14
VENDOR_NVIDIA = 0x10DE
CLASS_DISPLAY = 0x03  # 0x030000 VGA, 0x030200 3D
RESOURCE_MEM = 0x200  # IORESOURCE_MEM
BARS = 6
# GRH, UDP, BTH, XRC, atomic, ICRC
ROCE_HEADERS = 40 + 8 + 12 + 4 + 28 + 4


def _number(text: str) -> int:
    found = re.match(r"[0-9]{1,9}", text)
    return int(found[0]) if found else 0


# ---- system


def loads(library: str) -> bool:
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True


def _find_modules(files: Files, s: System) -> None:
    modules = {line.split(" ", 1)[0] for line in files.text("/proc/modules").split("\n")}
    # "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.86.15 ..."
    s.nvidia_version = files.line("/proc/driver/nvidia/version")
    s.nvidia = "nvidia" in modules or s.nvidia_version is not None
    s.nvidia_open = "Open Kernel Module" in (s.nvidia_version or "")
    s.peer_memory = not modules.isdisjoint({"nvidia_peermem", "nv_peer_mem"})
    s.gdrdrv = "gdrdrv" in modules
    s.gdrdrv_node = files.exists("/dev/gdrdrv")
    s.mlx5_ib = "mlx5_ib" in modules or files.exists("/sys/bus/auxiliary/drivers/mlx5_ib.rdma")
    if files.live:
        s.gdrapi = loads("libgdrapi.so.2")


def _find_memlock(files: Files, s: System) -> None:
    """The limit of this process: run it as the user and with the limits of dpdk-tokd."""
    limits = files.text("/proc/self/limits", 4096)
    if found := re.search(r"^Max locked memory +(unlimited|[0-9]{1,20})", limits, re.MULTILINE):
        s.memlock = "unlimited" if found[1] == "unlimited" else int(found[1])
    status = files.text("/proc/self/status", 16384)
    if found := re.search(r"^CapEff:\s*([0-9a-fA-F]{1,16})", status, re.MULTILINE):
        s.memlock_free = bool(int(found[1], 16) >> CAP_IPC_LOCK & 1)


def _find_huge_pages(files: Files, s: System) -> None:
    for node in files.names(NODES):
        folder = f"{NODES}/{node}/hugepages"
        for size in files.names(folder) if node.startswith("node") else ():
            found = re.match(r"hugepages-([0-9]{1,15})kB", size)
            if found and len(s.huge_pages) < HUGE_PAGES_MOST:
                total = files.number(f"{folder}/{size}/nr_hugepages") or 0
                free = files.number(f"{folder}/{size}/free_hugepages") or 0
                s.huge_pages.append(HugePages(_number(node[4:]), int(found[1]), total, free))
    for line in files.text("/proc/mounts").split("\n"):
        words = line.split()
        if words[2:3] == ["hugetlbfs"] and len(s.hugetlbfs) < MOUNTS_MOST:
            s.hugetlbfs.append(clean(words[1][:127]))


def _find_system(files: Files) -> System:
    s = System(kernel=files.line("/proc/sys/kernel/osrelease"))
    _find_modules(files, s)
    _find_memlock(files, s)
    _find_huge_pages(files, s)
    s.iommu = bool(files.names("/sys/class/iommu"))
    options = [word for word in files.text("/proc/cmdline", 16384).split() if "iommu" in word]
    s.iommu_options = clean(" ".join(options)[:95]) or None
    return s


# ---- RDMA devices


def _mtu_of_netdev(mtu: int) -> int | None:
    """The greatest RDMA MTU that fits with RoCE's headers, as the kernel's iboe_get_mtu."""
    return next((n for n in (4096, 2048, 1024, 512, 256) if mtu >= n + ROCE_HEADERS), None)


def _gid_type(text: str | None, link: str | None) -> str:
    if text == "RoCE v2":
        return text
    if text == "IB/RoCE v1":
        return "RoCE v1" if link == "Ethernet" else "InfiniBand"
    return "not known"


def _find_gids(files: Files, port: Port, path: str) -> None:
    """An unused entry reads as zeros, and its type cannot be read."""
    for index in files.names(f"{path}/gids"):
        try:
            raw = socket.inet_pton(socket.AF_INET6, files.line(f"{path}/gids/{index}") or "")
        except OSError:
            continue
        if not any(raw) or len(port.gids) == GIDS_MOST:
            continue
        kind = _gid_type(files.line(f"{path}/gid_attrs/types/{index}"), port.link_layer)
        text, scope = socket.inet_ntop(socket.AF_INET6, raw), gids.scope(IPv6Address(raw))
        netdev = files.line(f"{path}/gid_attrs/ndevs/{index}")
        port.gids.append(Gid(_number(index), text, kind, scope, netdev))


def _find_port(files: Files, path: str, name: str) -> Port:
    def after_colon(text: str | None) -> str | None:  # 4: ACTIVE
        return re.sub(r"^.*?: *", "", text or "") or None

    port = Port(_number(name))
    port.state = after_colon(files.line(f"{path}/state"))
    port.phys_state = after_colon(files.line(f"{path}/phys_state"))
    port.link_layer = files.line(f"{path}/link_layer")
    port.rate = files.line(f"{path}/rate")
    lid = files.number(f"{path}/lid") or 0
    port.lid = lid if lid <= 0xFFFF else 0
    _find_gids(files, port, path)
    for gid in port.gids:  # overridden by verbs where available
        if gid.netdev and is_name(gid.netdev):
            mtu = files.number(f"/sys/class/net/{gid.netdev}/mtu")
            if mtu is not None:
                port.mtu, port.mtu_from = _mtu_of_netdev(mtu), "netdev"
                break
    return port


def _find_device(files: Files, name: str) -> Rdma:
    folder = f"{IB}/{name}"
    ports = files.names(f"{folder}/ports")
    return Rdma(
        name,
        firmware=files.line(f"{folder}/fw_ver"),
        board=files.line(f"{folder}/board_id"),
        model=files.line(f"{folder}/hca_type"),
        pci=pci.find(files, f"{folder}/device"),
        ports=[_find_port(files, f"{folder}/ports/{p}", p) for p in ports[:PORTS_MOST]],
        iwarp="RNIC" in (files.line(f"{folder}/node_type") or ""),
        ports_left_out=len(ports[PORTS_MOST:]),
    )


# ---- GPUs


def _bar1(files: Files, address: str) -> int | None:
    """The aperture for GPU memory: the largest of the six BARs. Its number differs, since a 64-bit
    BAR takes two."""
    sizes = []
    for line in files.text(f"{PCI}/{address}/resource", 2048).split("\n")[:BARS]:
        if re.fullmatch(r"(0x[0-9a-f]{1,16} ?){3}", line):
            begin, end, flags = (int(word, 16) for word in line.split())
            if flags & RESOURCE_MEM and end > begin:
                sizes.append(end - begin + 1)
    return max(sizes, default=None)


def _is_gpu(files: Files, address: str) -> bool:
    kind = files.number(f"{PCI}/{address}/class") or 0
    return files.number(f"{PCI}/{address}/vendor") == VENDOR_NVIDIA and kind >> 16 == CLASS_DISPLAY


def _find_gpus(files: Files, machine: Machine) -> None:
    for address in files.names(PCI):
        if not _is_gpu(files, address) or len(machine.gpus) == GPUS_MOST:
            continue
        function = pci.find(files, f"{PCI}/{address}")
        if function is None:
            continue
        # "Model: \t\t NVIDIA H100 PCIe", in the driver's own words
        text = files.text(f"/proc/driver/nvidia/gpus/{function.address}/information", 2048)
        model = re.search(r"Model:[ \t]*([^\n]+)", text)
        device = files.number(f"{PCI}/{address}/device") or 0
        gpu = Gpu(clean(model[1]) if model else f"NVIDIA 10de:{device & 0xFFFF:04x}", function)
        if model is None and files.live and (name := pci.name(machine, function)):
            gpu.name = f"NVIDIA {name}"
        gpu.bar1 = _bar1(files, address)
        gpu.acs_bridge = pci.redirecting_bridge(files, function)
        machine.gpus.append(gpu)


def gather(files: Files) -> Machine:
    names = files.names(IB)
    machine = Machine(system=_find_system(files), rdma_left_out=len(names[RDMA_MOST:]))
    machine.rdma = [_find_device(files, name) for name in names[:RDMA_MOST]]
    _find_gpus(files, machine)
    if files.live:
        for rdma in machine.rdma:
            rdma.model = rdma.model or pci.name(machine, rdma.pci)
        verbs.ask(machine)
        nvidia.ask(machine)
    return machine
