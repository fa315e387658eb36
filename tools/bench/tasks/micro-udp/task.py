# SPDX-License-Identifier: BSD-3-Clause
"""UDP round trips through the kernel, without any work on the data."""

import csv
import re
import subprocess
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.lab.cpus import CLIENT_CPU, WORKER_CPU, need_two_cpus
from bench.lab.net import inside, namespace, veth
from bench.process import ENDS_WITH_US, NotReady, Process
from bench.samples import Samples
from bench.task import Choice, Context, Distribution, Missing, Number, Report, need_tool

HELP = (
    "sockperf ping-pong: one datagram in flight between two polled sockets (--nonblocked), each in a "
    "process on its own CPU; all times after its warm-up."
)
WIRES = ("loopback", "veth")
PARAMETERS = {
    "wire": Choice(WIRES, "veth: from one network namespace to another; needs root"),
    "bytes": Number(14, 65_504, "of a datagram"),
    "seconds": Number(1, 600, "of each trial"),
}
METRICS = {"round-trip": Distribution("us")}
COUNTS = {"lost": "datagrams that did not come back; they have no latency"}
UNANSWERED = ("lost",)
CHECKS_IDS = False
PORT = 11111
READY_S, LIMIT_S = 10.0, 60.0


@dataclass(frozen=True)
class End:
    address: str
    server: str | None  # network namespaces
    client: str | None


@dataclass
class State:
    folder: Path
    ends: dict[str, End | str]  # by wire; or why there is none


def _veth(stack: ExitStack) -> End | str:
    try:
        client = stack.enter_context(namespace("client"))
        server = stack.enter_context(namespace("server"))
        link = stack.enter_context(veth(0, client, server))
    except OSError as error:
        return f"cannot make a veth pair (needs root): {error}"
    return End(link.server, server, client)


def prepare(context: Context) -> State:
    need_tool("sockperf", "sockperf")
    need_two_cpus()
    ends: dict[str, End | str] = {"loopback": End("127.0.0.1", None, None)}
    if any(test["wire"] == "veth" for test in context.tests):
        ends["veth"] = _veth(context.stack)
    return State(context.folder, ends)


def _command(namespace_: str | None, cpu: int, mode: str, address: str, *more: str) -> list[str]:
    tool = ["sockperf", mode, "-i", address, "-p", str(PORT), "--nonblocked", *more]
    return [*ENDS_WITH_US, *inside(namespace_, "taskset", "-c", str(cpu), *tool)]


def _listens(server: Process) -> None:
    deadline = time.monotonic() + READY_S
    while f":{PORT:04X} " not in Path(f"/proc/{server.pid}/net/udp").read_text():
        if server.wait(0.02) is not None or time.monotonic() > deadline:
            raise NotReady(f"sockperf does not listen:\n{server.tail()}")


def run(state: State, parameters: dict[str, Any]) -> tuple[list[float], int]:
    """us of each round trip, and the number of lost datagrams."""
    end, log = state.ends[parameters["wire"]], state.folder / "times.csv"
    if isinstance(end, str):
        raise Missing(end)
    log.unlink(missing_ok=True)
    echo = _command(end.server, WORKER_CPU, "server", end.address)
    more = ["-m", str(parameters["bytes"]), "-t", str(parameters["seconds"])]
    more += ["--full-rtt", "--full-log", str(log)]
    ping = _command(end.client, CLIENT_CPU, "ping-pong", end.address, *more)
    with Process("sockperf", echo, state.folder / "server.log") as server:
        _listens(server)
        done = subprocess.run(
            ping, capture_output=True, text=True, check=False,
            timeout=parameters["seconds"] + LIMIT_S,
        )  # fmt: skip
    if done.returncode != 0 or not log.is_file():
        raise OSError(f"sockperf ended with {done.returncode}: {done.stdout.strip()[-300:]}")
    return parse_times(log.read_text())


def parse_times(text: str) -> tuple[list[float], int]:
    """From a --full-log: the rows after `packet, txTime(sec), rxTime(sec), rtt(usec)`."""
    head, _, rows = text.partition("rtt(usec)\n")
    lost = re.search(r"dropped messages = (\d+)", head)
    return [float(row[3]) for row in csv.reader(rows.splitlines()) if len(row) == 4], int(
        lost[1]
    ) if lost else 0


def report(_state: State, _parameters: dict[str, Any], raw: tuple[list[float], int]) -> Report:
    times, lost = raw
    if not times:
        raise OSError("sockperf printed no times: no datagram came back, or another version")
    trips = Samples()
    for us in times:
        trips.add(round(us * 1000))
    return Report(samples={"round-trip": trips}, counts={"lost": lost})
