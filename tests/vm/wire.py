# SPDX-License-Identifier: BSD-3-Clause
"""The client's end of a guest's network card: a tap in a namespace of its own.

namespace: client 10.99.0.2 [tap] ======= QEMU, virtio-net, an IOMMU, vfio-pci, dpdk-tokd 10.99.0.1
"""

import fcntl
import os
import struct

from netlab import CLIENT_IP, NetLab, run

TUNSETIFF = 0x400454CA
IFF_TAP, IFF_NO_PI, IFF_VNET_HDR = 0x0002, 0x1000, 0x4000


class Wire(NetLab):
    """A namespace with a tap, whose other end QEMU has by its descriptor. A context manager."""

    flags = IFF_TAP | IFF_NO_PI

    def _make(self) -> None:
        run("ip", "netns", "add", self.namespace)
        self.fd = self.call(self._open)
        inside = ("ip", "-n", self.namespace)
        run(
            "ip",
            "netns",
            "exec",
            self.namespace,
            "sysctl",
            "-qw",
            f"net.ipv6.conf.{self.client_if}.disable_ipv6=1",
        )
        run(*inside, "addr", "add", f"{CLIENT_IP}/24", "dev", self.client_if)
        run(*inside, "link", "set", self.client_if, "up")

    def _open(self) -> int:
        fd = os.open("/dev/net/tun", os.O_RDWR | os.O_CLOEXEC)
        fcntl.ioctl(fd, TUNSETIFF, struct.pack("16sH22x", self.client_if.encode(), self.flags))
        return fd

    def __exit__(self, *args: object) -> None:
        if hasattr(self, "fd"):
            os.close(self.fd)
        super().__exit__(*args)

    def options(self, extra: str) -> list[str]:
        """QEMU's, for the card, which is 0000:00:05.0 in the guest. What it does for an IOMMU is in
        `extra`."""
        card = f"virtio-net-pci,netdev=wire,romfile=,disable-legacy=on,iommu_platform=on,mac=52:54:00:00:00:01,addr=5{extra}"
        return ["-netdev", f"tap,id=wire,fd={self.fd}", "-device", card]
