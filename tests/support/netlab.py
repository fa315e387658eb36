# SPDX-License-Identifier: BSD-3-Clause
"""A veth pair with a network namespace at its end, and a dpdk-tokd at the other.

namespace: client 10.99.0.2 [pyt…c] ======= [pyt…s] dpdk-tokd 10.99.0.1, no address of Linux
"""

import ctypes
import os
import random
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Self, TypeVar

from appliance import Appliance
from bench.programs import DPDK_TOKD

SERVER_IP = "10.99.0.1"
CLIENT_IP = "10.99.0.2"
SERVER_IP6 = "2001:db8:99::1"
CLIENT_IP6 = "2001:db8:99::2"
CLONE_NEWNET = 0x40000000  # linux/sched.h
NO_HUGE = ["--no-huge", "-m", "768"]
HUGE_LEAST = 256 << 20  # bytes free
# With a sanitizer it is our code that is looked at, not a driver's: one will do.
SANITIZED = "TESTS_SANITIZED" in os.environ
DRIVERS = ("net_af_xdp",) if SANITIZED else ("net_af_xdp", "net_af_packet")

T = TypeVar("T")
_libc = ctypes.CDLL(None, use_errno=True)


def why_not() -> str | None:
    """Why these tests cannot run here, or None."""
    if os.geteuid() != 0:
        return "needs root for network namespaces"
    for program in ("ip", "ethtool"):
        if shutil.which(program) is None:
            return f"needs {program}: apt-get install iproute2 ethtool"
    if not DPDK_TOKD.is_file():
        return f"{DPDK_TOKD} is not built (TOKD_BUILD names the build folder)"
    return None


def free_huge_bytes() -> int:
    total = 0
    for pool in Path("/sys/kernel/mm/hugepages").glob("hugepages-*kB"):
        size = int(pool.name.removeprefix("hugepages-").removesuffix("kB")) * 1024
        total += size * int((pool / "free_hugepages").read_text())
    return total


@contextmanager
def huge_pages(folder: Path) -> Iterator[list[str] | None]:
    """EAL options for huge pages, or None without. Mounts a hugetlbfs at `folder` if none is."""
    if free_huge_bytes() < HUGE_LEAST:
        yield None
    elif " hugetlbfs " in Path("/proc/mounts").read_text():
        yield []
    else:
        run("mount", "-t", "hugetlbfs", "none", str(folder))
        try:
            yield ["--huge-dir", str(folder)]
        finally:
            run("umount", str(folder))


def run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()}")


class NetLab:
    """The veth pair and the namespace. A context manager: nothing of them stays behind."""

    _made = 0

    def __init__(
        self, *, ipv6: bool = False, rx_queues: int = 1, addresses: tuple[str, ...] = ()
    ) -> None:
        """rx_queues, addresses: of the server's end."""
        self._addresses = addresses
        NetLab._made += 1
        self._queues = ("numrxqueues", str(rx_queues)) if rx_queues > 1 else ()
        self._ipv6 = ipv6
        name = f"pyt{os.getpid() % 100000}{NetLab._made:x}"
        self.namespace = name
        self.server_if = f"{name}s"
        self.client_if = f"{name}c"

    def __enter__(self) -> Self:
        try:
            self._make()
        except BaseException:
            self.__exit__()
            raise
        return self

    def _make(self) -> None:
        ns, server, client = self.namespace, self.server_if, self.client_if
        run("ip", "netns", "add", ns)
        peer = ("peer", "name", client, "netns", ns)
        # The group of net_af_packet's PACKET_FANOUT is (pid ^ index) & 0xffff: with pids and
        # indices in a row those of tests at once may meet, and the later one does not start.
        index = ("index", str(random.randrange(1 << 16, 1 << 30)))
        run("ip", "link", "add", server, *index, *self._queues, "type", "veth", *peer)
        inside = ("ip", "netns", "exec", ns)
        for where, name in (((), server), (inside, client)):
            # With IPv6 Linux sends of its own accord, which counters would show.
            off = "0" if self._ipv6 and (name == client or self._addresses) else "1"
            run(*where, "sysctl", "-qw", f"net.ipv6.conf.{name}.disable_ipv6={off}")
            # Linux would leave checksums to a device that is none, and glue packets together.
            offloads = [w for o in ("tx", "rx", "gro", "gso", "tso") for w in (o, "off")]
            run(*where, "ethtool", "-K", name, *offloads)
            run(*where, "ip", "link", "set", name, "up")
        run(*inside, "ip", "link", "set", "lo", "up")
        run(*inside, "ip", "addr", "add", f"{CLIENT_IP}/24", "dev", client)
        for address in self._addresses:
            flags = ("nodad",) if ":" in address else ()
            run("ip", "addr", "add", address, "dev", server, *flags)
        if self._ipv6:
            run(*inside, "ip", "addr", "add", f"{CLIENT_IP6}/64", "dev", client, "nodad")

    def __exit__(self, *_: object) -> None:
        # The namespace goes when the last of its sockets does; the veth pair must go now.
        subprocess.run(["ip", "link", "del", self.server_if], capture_output=True, check=False)
        subprocess.run(["ip", "netns", "del", self.namespace], capture_output=True, check=False)

    def call(self, function: Callable[[], T]) -> T:
        """Call `function` inside the namespace. Sockets it makes stay there."""
        result: list[T] = []
        error: list[BaseException] = []

        def work() -> None:
            try:
                fd = os.open(f"/run/netns/{self.namespace}", os.O_RDONLY | os.O_CLOEXEC)
                try:
                    if _libc.setns(fd, CLONE_NEWNET) != 0:
                        raise OSError(ctypes.get_errno(), f"setns {self.namespace}")
                finally:
                    os.close(fd)
                result.append(function())
            except BaseException as e:  # handed to the caller
                error.append(e)

        thread = threading.Thread(target=work)  # a namespace is a thread's own
        thread.start()
        thread.join()
        if error:
            raise error[0]
        return result[0]

    def take(self, interface: str, address: str) -> None:
        """Puts an interface of the host into the namespace, and up."""
        run("ip", "link", "set", interface, "netns", self.namespace)
        inside = ("ip", "-n", self.namespace)
        run(*inside, "addr", "add", address, "dev", interface)
        run(*inside, "link", "set", interface, "up")

    def mac(self, interface: str) -> bytes:
        inside = ["ip", "netns", "exec", self.namespace] if interface == self.client_if else []
        out = subprocess.run(
            [*inside, "cat", f"/sys/class/net/{interface}/address"],
            capture_output=True,
            text=True,
            check=True,
        )
        return bytes.fromhex(out.stdout.strip().replace(":", ""))


class NetAppliance(Appliance):
    """On the lab's end of the veth pair, or on another device of `driver`."""

    def __init__(
        self,
        lab: NetLab | None,
        vocab: Path | None,
        folder: Path,
        *,
        driver: str,
        memory: list[str],
        args: Sequence[str],
        devargs: str | None = None,
        lcores: str | None = None,
        ip: str | None = SERVER_IP,
    ) -> None:
        """devargs: those of `driver`, if it is not to serve the end of the veth pair."""
        self.driver = driver
        if devargs is None:
            assert lab is not None
            devargs = f"iface={lab.server_if}"
        if lcores is None:
            lcores = "1" if (os.cpu_count() or 1) > 1 else "0"
        eal = ["--lcores", lcores, *memory, "--vdev", f"{driver}0,{devargs}".rstrip(",")]
        address = [] if ip is None else ["--ip", ip]
        vocabs = [] if vocab is None else ["--vocab", str(vocab)]
        # Texts that a test leaves open are not waited for. Of two --drain the last one counts.
        super().__init__(folder, eal, [*address, *vocabs, "--drain", "200", *args])
