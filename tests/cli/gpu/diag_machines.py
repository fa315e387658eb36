# SPDX-License-Identifier: BSD-3-Clause
"""Machines for tokd-diag to look at: folders with the sys and proc that it reads."""

import os
import struct
from pathlib import Path

LINK_LOCAL = "fe80:0000:0000:0000:0ac0:ebff:fe12:3456"
IPV4 = "0000:0000:0000:0000:0000:ffff:c000:0201"  # 192.0.2.1
IPV6 = "2001:0db8:0000:0000:0000:0000:0000:0001"
ZERO = ":".join(["0000"] * 8)
V1, V2 = "IB/RoCE v1", "RoCE v2"
OPEN = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.86.15  Release Build"
CLOSED = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.183.01  Sun May 12 19:39:15 UTC 2024"
GIB = 1 << 30


class Machine:
    """A machine; each method adds a thing to it."""

    def __init__(self, root: Path, kernel: str = "6.1.0-28-amd64") -> None:
        self.root = root
        self.write("/proc/sys/kernel/osrelease", kernel)
        self.write("/proc/modules", "")
        self.locked("unlimited", capable=False)
        self.write("/proc/mounts", "none /dev/hugepages hugetlbfs rw 0 0\n")
        self.huge_pages(0, 512)
        (root / "sys/class").mkdir(parents=True)

    def write(self, path: str, text: str | bytes) -> None:
        file = self.root / path.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text if isinstance(text, bytes) else text.encode() + b"\n")

    def link(self, path: str, to: str) -> None:
        file = self.root / path.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.symlink_to(os.path.relpath(self.root / to.lstrip("/"), file.parent))

    def modules(self, *names: str) -> None:
        self.write("/proc/modules", "".join(f"{n} 16384 0 - Live 0x0\n" for n in names))

    def locked(self, limit: str, capable: bool) -> None:
        """RLIMIT_MEMLOCK in bytes, and CAP_IPC_LOCK."""
        row = f"{'Max locked memory':<26}{limit:<21}{limit:<21}bytes"
        self.write("/proc/self/limits", f"Limit  Soft Limit  Hard Limit  Units\n{row}")
        self.write("/proc/self/status", f"Name:\ttokd-diag\nCapEff:\t{int(capable) << 14:016x}")

    def huge_pages(self, node: int, total: int) -> None:
        folder = f"/sys/devices/system/node/node{node}/hugepages/hugepages-2048kB"
        self.write(f"{folder}/nr_hugepages", str(total))
        self.write(f"{folder}/free_hugepages", str(total))

    def pci(self, path: str, ids: tuple[int, int], kind: int, driver: str, node: int = 0) -> str:
        """A PCI function at a path like pci0000:00/0000:00:01.0/0000:01:00.0; its folder."""
        folder, address = f"/sys/devices/{path}", path.rsplit("/", 1)[-1]
        self.write(f"{folder}/vendor", f"0x{ids[0]:04x}")
        self.write(f"{folder}/device", f"0x{ids[1]:04x}")
        self.write(f"{folder}/subsystem_vendor", "0x15b3")
        self.write(f"{folder}/subsystem_device", "0x0001")
        self.write(f"{folder}/class", f"0x{kind:06x}")
        self.write(f"{folder}/numa_node", str(node))
        self.link(f"/sys/bus/pci/devices/{address}", folder)
        (self.root / f"sys/bus/pci/drivers/{driver}").mkdir(parents=True, exist_ok=True)
        self.link(f"{folder}/driver", f"/sys/bus/pci/drivers/{driver}")
        return folder

    def nic(
        self,
        name: str,
        path: str,
        netdev: str,
        gids: list[tuple[str, str]],
        *,
        device: int = 0x101D,
        state: str = "4: ACTIVE",
        link: str = "Ethernet",
        mtu: int = 1500,
        node: int = 0,
        lid: int = 0,
    ) -> None:
        """A ConnectX or BlueField with one port; gids: (address, type) from index 0 on."""
        self.link(
            f"/sys/class/infiniband/{name}/device",
            self.pci(path, (0x15B3, device), 0x020000, "mlx5_core", node),
        )
        folder = f"/sys/class/infiniband/{name}"
        self.write(f"{folder}/fw_ver", "32.39.1002")
        self.write(f"{folder}/hca_type", "MT41692")
        self.write(f"{folder}/board_id", "MT_0000000884")
        self.write(f"{folder}/node_type", "1: CA")
        port = f"{folder}/ports/1"
        self.write(f"{port}/state", state)
        self.write(f"{port}/phys_state", "5: LinkUp" if "ACTIVE" in state else "3: Disabled")
        self.write(f"{port}/link_layer", link)
        self.write(f"{port}/rate", "200 Gb/sec (2X NDR)")
        self.write(f"{port}/lid", f"0x{lid:x}")
        for index, (gid, kind) in enumerate(gids):
            self.write(f"{port}/gids/{index}", gid)
            if gid != ZERO:
                self.write(f"{port}/gid_attrs/types/{index}", kind)
                self.write(f"{port}/gid_attrs/ndevs/{index}", netdev)
        self.write(f"/sys/class/net/{netdev}/mtu", str(mtu))

    def gpu(
        self, path: str, bar1: int = 128 * GIB, version: str = OPEN, model: str = "NVIDIA H100 PCIe"
    ) -> None:
        """A GPU with its driver loaded."""
        folder = self.pci(path, (0x10DE, 0x2331), 0x030200, "nvidia")
        bars = [(0xC8000000, 0x1000000, 0x40200), (0x38000000000, bar1, 0x14220C)]
        rows = [f"0x{at:016x} 0x{at + n - 1:016x} 0x{flags:016x}" for at, n, flags in bars]
        rows += [f"0x{0:016x} 0x{0:016x} 0x{0:016x}"] * 11
        self.write(f"{folder}/resource", "\n".join(rows))
        address = path.rsplit("/", 1)[-1]
        self.write(f"/proc/driver/nvidia/gpus/{address}/information", f"Model: \t\t {model}")
        self.write("/proc/driver/nvidia/version", version)

    def bridge(self, path: str, acs_control: int) -> None:
        """A PCIe bridge's configuration space, with access control services."""
        config = bytearray(4096)
        struct.pack_into("<I", config, 0x100, 0x148 << 20 | 1 << 16 | 0x0001)  # AER, then:
        struct.pack_into("<IHH", config, 0x148, 1 << 16 | 0x000D, 0x5F, acs_control)
        self.write(f"/sys/devices/{path}/config", bytes(config))


SWITCH = "pci0000:15/0000:15:01.0/0000:16:00.0/0000:17:00.0"


def bluefield(root: Path) -> Machine:
    """The ARM side: two ports' functions, one of them with an address; no GPU."""
    m = Machine(root, "5.15.0-1055-bluefield")
    m.modules("mlx5_ib", "mlx5_core")
    gids = [(LINK_LOCAL, V1), (LINK_LOCAL, V2), (IPV4, V1), (IPV4, V2), (ZERO, "")]
    m.nic("mlx5_0", "pci0000:00/0000:03:00.0", "p0", gids, device=0xA2DC, mtu=9216)
    m.nic("mlx5_1", "pci0000:00/0000:03:00.1", "p1", gids[:2], device=0xA2DC, state="1: DOWN")
    return m


def host(root: Path, **gpu: object) -> Machine:
    """Two ConnectX and an H100 that is under the second one's switch."""
    m = Machine(root)
    m.modules("mlx5_ib", "mlx5_core", "nvidia", "nvidia_peermem")
    gids = [(LINK_LOCAL, V1), (LINK_LOCAL, V2), (IPV4, V1), (IPV4, V2)]
    m.nic("mlx5_0", "pci0000:97/0000:97:01.0/0000:98:00.0", "eth0", gids, node=1, mtu=4200)
    m.nic("mlx5_1", f"{SWITCH}/0000:18:00.0", "eth1", gids, mtu=4200)
    m.gpu("pci0000:15/0000:15:01.0/0000:16:00.0/0000:17:01.0/0000:19:00.0", **gpu)
    return m
