# SPDX-License-Identifier: BSD-3-Clause
"""Starts dpdk-tokd, on a veth pair, a memif or a capture, and tokd-gpu, its consumer."""

import re
import shutil
import signal
from collections.abc import Sequence
from pathlib import Path

from bench.lab.net import Veth
from bench.log import log
from bench.process import ENDS_WITH_US, NotReady, Process
from bench.programs import DPDK_TOKD, TOKD_GPU
from bench.task import Missing

READY_S = 60.0
DRIVERS = ("net_af_xdp", "net_af_packet")  # the better one first
HUGE = ["--in-memory"]
# MB without huge pages: of an appliance, and of each of its workers
MEMORY, MEMORY_EACH = 384, 128
RING_LEAST = 16 << 20  # bytes of a token ring; dpdk-tokd's default
DENIED = re.compile("system call .* denied")  # by the sandbox, in the log
NO_KERNEL = "built without CUDA"  # in tokd-gpu's error message
MEMIF_IP, CAPTURE_IP = "10.97.0.1", "10.0.0.1"


def ring_bytes(records: int) -> int:
    """--ring-size for a token ring that holds so many bytes of unread records."""
    return max(RING_LEAST, 1 << (2 * records - 1).bit_length())


# ---- devices: values of --vdev ----


def on_veth(driver: str, link: Veth, *more: str) -> str:
    return ",".join([f"{driver}0", f"iface={link.near}", *more])


def on_memif(folder: Path, role: str = "server") -> str:
    return f"net_memif0,role={role},socket={folder / 'memif.sock'},socket-abstract=no"


def on_captures(captures: Sequence[Path]) -> str:
    """One for each worker."""
    return ",".join(["net_pcap0", *(f"rx_pcap={path}" for path in captures)])


class DpdkTokd(Process):
    """A started dpdk-tokd, ready or not, with EAL and application options."""

    def __init__(
        self, log: Path, eal: Sequence[str], own: Sequence[str | Path], **env: str
    ) -> None:
        command = [*ENDS_WITH_US, str(DPDK_TOKD), "--no-pci", *eal, "--", *map(str, own)]
        super().__init__("dpdk-tokd", command, log, **env)

    def stop(self, number: int = signal.SIGTERM) -> int:
        code = super().stop(number)
        # What the sandbox keeps from it is missing in its list.
        said = self.said() if self.log.is_file() else ""
        if denied := DENIED.search(said):
            raise AssertionError(f"{self.log}: {denied[0]}")
        return code


class Appliance(DpdkTokd):
    """A ready dpdk-tokd with worker i on cpus[i]; its files are in `folder`."""

    driver: str
    ready: str  # the line it printed

    def __init__(
        self,
        device: str,
        ip: str,
        vocab: Path,
        folder: Path,
        cpus: Sequence[int | str],
        huge_pages: bool,
        *more: str,
    ) -> None:
        """`cpus`: a str is a set of CPUs in EAL's notation; `more`: application options."""
        self.driver = device.partition("0,")[0]
        self.huge_pages, self.workers = huge_pages, len(cpus)
        self.socket = folder / "tokd.sock"
        self.telemetry = folder / "dpdk"  # in a folder of its own, not in /run
        shutil.rmtree(self.telemetry, ignore_errors=True)
        memory = ["--no-shconf", "--no-huge", "-m", str(MEMORY + MEMORY_EACH * len(cpus))]
        eal = ["--lcores", ",".join(f"{i}@{cpu}" for i, cpu in enumerate(cpus))]
        eal += [f"--vdev={device}", *(HUGE if huge_pages else memory)]
        own: list[str | Path] = ["--ip", ip, "--vocab", vocab, "--socket", self.socket, *more]
        super().__init__(folder / "dpdk-tokd.log", eal, own, RUNTIME_DIRECTORY=str(folder))
        self.ready = self.wait_ready(READY_S)


def best_on_veth(
    link: Veth,
    vocab: Path,
    folder: Path,
    cpu: int,
    huge_pages: bool,
    more: Sequence[str] = (),
    drivers: Sequence[str] = DRIVERS,
) -> Appliance:
    """Start it with the first driver that works, with huge pages if possible. Logs failures."""
    for memory in (True, False) if huge_pages else (False,):
        for driver in drivers:
            device, port = on_veth(driver, link), ("--udp-port", str(link.port))
            try:
                return Appliance(device, link.server, vocab, folder, [cpu], memory, *port, *more)
            except NotReady as error:
                log(f"{driver}, {'huge pages' if memory else '--no-huge'}: {error}")
    raise NotReady("dpdk-tokd starts with none of the drivers above")


class Consumer(Process):
    """A ready tokd-gpu; its sockets are in `folder`. Missing: it was built without what --device
    needs."""

    def __init__(self, folder: Path, table: str, *more: str) -> None:
        self.socket, self.subscribers = folder / "gpu.sock", folder / "subscribers.sock"
        command = [*ENDS_WITH_US, str(TOKD_GPU), "--table", table]
        command += [
            "--listen",
            f"unix:{self.socket}",
            "--subscribers-socket",
            str(self.subscribers),
        ]
        super().__init__("tokd-gpu", [*command, *more], folder / "tokd-gpu.log")
        try:
            self.ready = self.wait_ready(READY_S)
        except NotReady as error:
            if NO_KERNEL in str(error):
                raise Missing(f"tokd-gpu: {NO_KERNEL}") from error
            raise
