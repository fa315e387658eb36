# SPDX-License-Identifier: BSD-3-Clause
"""RDMA round trips between two queue pairs of this machine's first device."""

import re
import shutil
import socket
import subprocess
import time
from pathlib import Path
from typing import Any

from bench.lab.cpus import CLIENT_CPU, CPUS, WORKER_CPU
from bench.lab.machine import RDMA, rdma_devices
from bench.process import ENDS_WITH_US, NotReady, Process
from bench.samples import Samples
from bench.task import Choice, Context, Distribution, Missing, Number, Report

HELP = (
    "perftest's ib_write_lat, ib_send_lat and ib_read_lat, every time they print, between two "
    "processes on CPUs of their own that use the same device: through the NIC and back, without a "
    "cable. With soft-RoCE these are times of the kernel. round-trip: write and send: twice "
    "perftest's figure, which is one way; read: perftest's figure."
)
VERBS = {"write": 2, "send": 2, "read": 1}  # factor from perftest's figure to a round trip
PARAMETERS = {
    "verb": Choice(tuple(VERBS)),
    "bytes": Number(2, 1 << 20, "of a message"),
    "requests": Number(20, 1_000_000, "of each trial"),
}
METRICS = {"round-trip": Distribution("us")}
COUNTS: dict[str, str] = {}
CHECKS_IDS = False
HEAD = "#, usec"
SAMPLE = re.compile(r"\s*\d+,\s*(\d+(?:\.\d+)?(?:e[+-]?\d+)?)\s*")
READY_S, LIMIT_S = 10.0, 120.0


def prepare(context: Context) -> Path:
    lacks = []
    if not rdma_devices():
        lacks.append(f"no RDMA device on this machine ({RDMA}): a NIC's, or rdma_rxe's")
    if shutil.which("ib_write_lat") is None:
        lacks.append("ib_write_lat is not installed: apt-get install perftest")
    if len(CPUS) < 2:
        lacks.append("needs two CPUs, one for each end")
    if lacks:
        raise Missing("; ".join(lacks))
    return context.folder


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def _command(parameters: dict[str, Any], port: int, cpu: int) -> list[str]:
    tool = [f"ib_{parameters['verb']}_lat", "-d", rdma_devices()[0], "-F", "-U"]
    tool += ["-p", str(port), "-s", str(parameters["bytes"]), "-n", str(parameters["requests"])]
    return [*ENDS_WITH_US, "taskset", "-c", str(cpu), *tool]


def _listens(server: Process, port: int) -> None:
    """Waits without connecting: the server would take that for its client."""
    deadline = time.monotonic() + READY_S
    wanted = f":{port:04X} "
    while not any(wanted in Path("/proc/net", name).read_text() for name in ("tcp", "tcp6")):
        if server.wait(0.02) is not None or time.monotonic() > deadline:
            raise NotReady(f"the server does not listen:\n{server.tail()}")


def parse_times(output: str) -> list[float]:
    """In us, from lines such as `17, 1.83`. Ignores the sorted list that may follow under a second
    head: it repeats the times and omits the largest."""
    _, _, rest = output.partition(HEAD)
    times, _, _ = rest.partition(HEAD)
    return [float(found[1]) for line in times.splitlines() if (found := SAMPLE.fullmatch(line))]


def run(folder: Path, parameters: dict[str, Any]) -> list[float]:
    port = _free_port()
    with Process(
        "perftest", _command(parameters, port, WORKER_CPU), folder / "server.log"
    ) as server:
        _listens(server, port)
        client = [*_command(parameters, port, CLIENT_CPU), "127.0.0.1"]
        done = subprocess.run(client, capture_output=True, text=True, check=False, timeout=LIMIT_S)
        if done.returncode != 0:
            raise OSError(
                f"{client[-1]}: ended with {done.returncode}: {done.stderr.strip()[-300:]}"
            )
    return parse_times(done.stdout)


def report(_folder: Path, parameters: dict[str, Any], raw: list[float]) -> Report:
    if not raw:
        raise OSError("perftest printed no times: another version?")
    trips = Samples()
    for us in raw:
        trips.add(round(us * 1000 * VERBS[parameters["verb"]]))
    return Report(samples={"round-trip": trips})
