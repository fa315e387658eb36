# SPDX-License-Identifier: BSD-3-Clause
"""A veth pair with a network namespace at its end, and a dpdk-tokd at the other.

namespace: client 10.99.0.2 [pyt…c] ======= [pyt…s] dpdk-tokd 10.99.0.1, no address of Linux
"""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self, TypeVar

SERVER_IP = "10.99.0.1"
CLIENT_IP = "10.99.0.2"
SERVER_IP6 = "2001:db8:99::1"
CLIENT_IP6 = "2001:db8:99::2"
CLONE_NEWNET = 0x40000000  # linux/sched.h
READY_S = 60.0
STOP_S = 20.0
NO_HUGE = ["--no-huge", "-m", "512"]
HUGE_LEAST = 256 << 20  # bytes free

T = TypeVar("T")
_libc = ctypes.CDLL(None, use_errno=True)


def why_not() -> str | None:
    """Why these tests cannot run here, or None."""
    if os.geteuid() != 0:
        return "needs root for network namespaces"
    for program in ("ip", "ethtool"):
        if shutil.which(program) is None:
            return f"needs {program}: apt-get install iproute2 ethtool"
    if not binary().is_file():
        return f"{binary()} is not built (TOKD_BUILD names the build folder)"
    return None


def binary() -> Path:
    build = Path(os.environ.get("TOKD_BUILD", "build"))
    return Path(__file__).resolve().parents[2] / build / "app/dpdk-tokd"


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
        _run("mount", "-t", "hugetlbfs", "none", str(folder))
        try:
            yield ["--huge-dir", str(folder)]
        finally:
            _run("umount", str(folder))


def _run(*command: str) -> None:
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
        _run("ip", "netns", "add", ns)
        peer = ("peer", "name", client, "netns", ns)
        _run("ip", "link", "add", server, *self._queues, "type", "veth", *peer)
        inside = ("ip", "netns", "exec", ns)
        for where, name in (((), server), (inside, client)):
            # With IPv6 Linux sends of its own accord, which counters would show.
            off = "0" if self._ipv6 and (name == client or self._addresses) else "1"
            _run(*where, "sysctl", "-qw", f"net.ipv6.conf.{name}.disable_ipv6={off}")
            # Linux would leave checksums to a device that is none, and glue packets together.
            off = [w for o in ("tx", "rx", "gro", "gso", "tso") for w in (o, "off")]
            _run(*where, "ethtool", "-K", name, *off)
            _run(*where, "ip", "link", "set", name, "up")
        _run(*inside, "ip", "link", "set", "lo", "up")
        _run(*inside, "ip", "addr", "add", f"{CLIENT_IP}/24", "dev", client)
        for address in self._addresses:
            flags = ("nodad",) if ":" in address else ()
            _run("ip", "addr", "add", address, "dev", server, *flags)
        if self._ipv6:
            _run(*inside, "ip", "addr", "add", f"{CLIENT_IP6}/64", "dev", client, "nodad")

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
            except BaseException as e:  # noqa: BLE001 - handed to the caller
                error.append(e)

        thread = threading.Thread(target=work)  # a namespace is a thread's own
        thread.start()
        thread.join()
        if error:
            raise error[0]
        return result[0]

    def mac(self, interface: str) -> bytes:
        inside = ["ip", "netns", "exec", self.namespace] if interface == self.client_if else []
        out = subprocess.run(
            [*inside, "cat", f"/sys/class/net/{interface}/address"],
            capture_output=True,
            text=True,
            check=True,
        )
        return bytes.fromhex(out.stdout.strip().replace(":", ""))


class Appliance:
    """A running dpdk-tokd. A context manager: stopped at the end, killed if it does not stop."""

    _started = 0

    def __init__(
        self,
        lab: NetLab,
        vocab: Path,
        folder: Path,
        *,
        driver: str,
        memory: list[str],
        args: tuple,
        devargs: str | None = None,
        lcores: str | None = None,
        ip: str | None = SERVER_IP,
    ) -> None:
        """devargs: those of `driver`, if it is not to serve the end of the veth pair."""
        Appliance._started += 1
        self.prefix = f"pyt{os.getpid()}x{Appliance._started}"
        self.socket = str(folder / "tokd.sock")
        self.driver = driver
        self._log_path = folder / "dpdk-tokd.log"
        if devargs is None:
            devargs = f"iface={lab.server_if}"
        if lcores is None:
            lcores = "1" if (os.cpu_count() or 1) > 1 else "0"
        eal = ["--lcores", lcores, "--no-pci", *memory]
        eal += ["--file-prefix", self.prefix, "--vdev", f"{driver}0,{devargs}".rstrip(",")]
        app = ["--vocab", str(vocab), "--socket", self.socket, *args]
        if ip is not None:
            app = ["--ip", ip, *app]
        self.command = [str(binary()), *eal, "--", *app]

    def __enter__(self) -> Self:
        with open(self._log_path, "wb") as log:
            self._process = subprocess.Popen(self.command, stdout=log, stderr=subprocess.STDOUT)
        deadline = time.monotonic() + READY_S
        while "ready: " not in self.log():
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.__exit__()
                raise RuntimeError(f"{' '.join(self.command)} is not ready:\n{self.log()}")
            time.sleep(0.02)
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            try:
                self.stop()
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        shutil.rmtree(f"/var/run/dpdk/{self.prefix}", ignore_errors=True)

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    def log(self) -> str:
        return self._log_path.read_text("utf-8", "replace")

    def signal(self, number: int = signal.SIGTERM) -> None:
        self._process.send_signal(number)

    def stop(self) -> int:
        """SIGTERM; the exit status."""
        self.signal()
        return self._process.wait(STOP_S)

    def telemetry(self, command: str) -> dict:
        """Answer to one command of the DPDK telemetry socket."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
            s.settimeout(5)
            s.connect(f"/var/run/dpdk/{self.prefix}/dpdk_telemetry.v2")
            s.recv(1 << 14)  # its greeting
            s.send(command.encode())
            return json.loads(s.recv(1 << 20))[command.split(",")[0]]

    def counters(self) -> dict[str, int]:
        return self.telemetry("/tokd/counters")

    def wait_for(self, condition: Callable[[dict[str, int]], bool], seconds: float = 5.0) -> None:
        """Until counters are so; AssertionError with them if they do not become so."""
        deadline = time.monotonic() + seconds
        while not condition(counters := self.counters()):
            assert time.monotonic() < deadline, {k: v for k, v in counters.items() if v}
            time.sleep(0.02)
