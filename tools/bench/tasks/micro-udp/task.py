# SPDX-License-Identifier: BSD-3-Clause
"""How long a UDP datagram takes there and back by the kernel, before anything is done with it."""

import socket
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.appliance import READY_S
from bench.lab import micro
from bench.lab.host_measures import CLIENT_CPU, CPUS, WORKER_CPU
from bench.lab.net import inside, namespace, veth
from bench.process import Process
from bench.samples import Samples
from bench.task import Choice, Context, Distribution, Missing, Number, Report

HELP = (
    "One datagram in flight between two sockets, a thread spinning on each, each on a CPU of its "
    "own; the bytes that come back are compared. The first 100 are not measured."
)
WIRES = ("loopback", "veth")
PARAMETERS = {
    "wire": Choice(WIRES, "veth: from one network namespace to another; needs root"),
    "bytes": Number(8, 65_504, "of a datagram, a multiple of 8"),
    "requests": Number(20, 1_000_000, "of each trial"),
}
METRICS = {"round-trip": Distribution("us")}
COUNTS = {"lost": "datagrams that did not come back within a second; they have no latency"}
UNANSWERED = ("lost",)
CHECKS_IDS = False
PORT = 9000


@dataclass(frozen=True)
class End:
    address: str
    server: list[str]  # what a command is to be run behind
    client: list[str]


@dataclass
class State:
    stack: ExitStack
    folder: Path
    ends: dict[str, End | str]  # by wire; or why there is none


def _veth(stack: ExitStack) -> End | str:
    try:
        client = stack.enter_context(namespace("client"))
        server = stack.enter_context(namespace("server"))
        link = stack.enter_context(veth(0, client, server))
    except OSError as error:
        return f"no veth pair can be made, which needs root: {error}"
    return End(f"{link.server}:{PORT}", inside(server), inside(client))


def _loopback() -> End:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        free.bind(("127.0.0.1", 0))
        return End(f"127.0.0.1:{free.getsockname()[1]}", [], [])


def prepare(context: Context) -> State:
    micro.need_micro()
    if len(CPUS) < 2:
        raise Missing("needs two CPUs: for both ends")
    with ExitStack() as stack:
        ends: dict[str, End | str] = {"loopback": _loopback()}
        if any(test["wire"] == "veth" for test in context.tests):
            ends["veth"] = _veth(stack)
        return State(stack.pop_all(), context.folder, ends)
    raise AssertionError


def run(state: State, parameters: dict[str, Any]) -> dict[str, Any]:
    end = state.ends[parameters["wire"]]
    if isinstance(end, str):
        raise Missing(end)
    echo = [*end.server, *micro.command("echo", WORKER_CPU, listen=end.address)]
    given = {"bytes": parameters["bytes"], "count": parameters["requests"]}
    ping = [*end.client, *micro.command("ping", CLIENT_CPU, connect=end.address, **given)]
    with Process("tokd-micro echo", echo, state.folder / "echo.log") as server:
        server.wait_for("ready:", READY_S)
        return micro.result(ping, parameters["requests"] / 1000)


def report(_state: State, parameters: dict[str, Any], raw: dict[str, Any]) -> Report:
    trips = Samples()
    for ns in raw["ns"]:
        trips.add(ns)
    if not len(trips):
        raise OSError(f"none of {parameters['requests']} datagrams came back")
    return Report(samples={"round-trip": trips}, counts={"lost": raw["lost"]})


def clean(state: State) -> None:
    state.stack.close()
