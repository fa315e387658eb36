# SPDX-License-Identifier: BSD-3-Clause
"""The two servers: dpdk-tokd on what this machine can do, and the baseline."""

import sys
from collections.abc import Sequence
from pathlib import Path

from bench.lab.net import Veth, inside
from bench.process import NotReady, Process
from bench.programs import DPDK_TOKD
from bench.say import say

BASELINE = Path(__file__).parent / "baseline" / "socket_server.py"
PORT = 9000
READY_S = 30.0
DRIVERS = ("net_af_xdp", "net_af_packet")  # the better one first
HUGE = ["--in-memory"]
NO_HUGE = ["--no-shconf", "--no-huge", "-m", "512"]
RING_LEAST = 16 << 20  # bytes of a token ring; dpdk-tokd's default


def ring_bytes(records: int) -> int:
    """For --ring-size: a token ring that has room for so many bytes of records, unread."""
    return max(RING_LEAST, 1 << (2 * records - 1).bit_length())


def _ways(
    link: Veth, huge_pages: bool, drivers: Sequence[str]
) -> list[tuple[str, bool, list[str]]]:
    """Driver, with huge pages or not, EAL options; the best way first."""
    ways = []
    for memory in (True, False) if huge_pages else (False,):
        for driver in drivers:
            # Neither leaves files behind, nor disturbs another DPDK process of this machine.
            device = f"--vdev={driver}0,iface={link.near}"
            options = ["--no-pci", device, *(HUGE if memory else NO_HUGE)]
            ways.append((driver, memory, options))
    return ways


class Appliance(Process):
    """dpdk-tokd serving on the near end of a veth pair, with its worker on `cpu`."""

    driver: str
    huge_pages: bool
    ready: str  # the line it said

    def __init__(
        self,
        eal: list[str],
        link: Veth,
        vocab: Path,
        folder: Path,
        cpu: int,
        more: Sequence[str],
        before: Sequence[str],
    ) -> None:
        self.socket = folder / "tokd.sock"
        self.telemetry = folder / "dpdk"  # its runtime folder, which else would stay in /run
        app = ["--ip", link.server, "--udp-port", str(PORT), "--vocab", str(vocab)]
        app += ["--socket", str(self.socket), *more]
        command = [*before, str(DPDK_TOKD), "-l", str(cpu), *eal, "--", *app]
        log = folder / "dpdk-tokd.log"
        super().__init__("dpdk-tokd", command, log, RUNTIME_DIRECTORY=str(folder))


def start_appliance(
    link: Veth,
    vocab: Path,
    folder: Path,
    cpu: int,
    huge_pages: bool,
    more: Sequence[str] = (),
    before: Sequence[str] = (),
    drivers: Sequence[str] = DRIVERS,
) -> Appliance:
    """By the best of the ways that work, with `more` options, by the command `before` it; says
    which do not."""
    for driver, memory, eal in _ways(link, huge_pages, drivers):
        appliance = Appliance(eal, link, vocab, folder, cpu, more, before)
        try:
            appliance.ready = appliance.wait_for("ready:", READY_S)
        except NotReady as error:
            appliance.stop()
            say(f"{driver}, {'huge pages' if memory else '--no-huge'}: {error}")
            continue
        except BaseException:
            appliance.stop()
            raise
        appliance.driver, appliance.huge_pages = driver, memory
        return appliance
    raise NotReady("dpdk-tokd starts in none of the ways above")


def start_baseline(
    link: Veth,
    namespace: str,
    ranks: Path,
    sample: Path,
    folder: Path,
    cpu: int,
    more: Sequence[str] = (),
    before: Sequence[str] = (),
) -> Process:
    """With `more` options, by the command `before` it."""
    command = [sys.executable, str(BASELINE), "--listen", f"{link.server}:{PORT}"]
    command += ["--ranks", str(ranks), "--sample", str(sample), "--cpu", str(cpu), *more]
    command = [*before, *inside(namespace, *command)]
    baseline = Process("socket_server", command, folder / "baseline.log")
    try:
        baseline.wait_for("ready:", READY_S)
    except BaseException:
        baseline.stop()
        raise
    return baseline
