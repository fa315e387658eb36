# SPDX-License-Identifier: BSD-3-Clause
"""How long a client waits for ids, with and without a measure and a neighbour: dpdk-tokd on AF_XDP
over a veth pair, as tools/demo has it, asked by tokd-load for texts it has not seen."""

import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import host_measures
import neighbours
import reference
import round_trips
import slices
from demo.hugepages import hugepages
from demo.net import Veth, namespace, veth
from demo.process import Process
from demo.servers import HUGE, NO_HUGE, PORT, READY_S
from dpdk_tokd import RingReader
from host_measures import CLIENT_CPU, CPUS, ENDS_WITH_US, WORKER_CPU
from memif import texts
from memif.pair import DPDK_TOKD
from round_trips import WARM_UP
from slices import Slice
from sweep.samples import Samples
from sweep.task import Choice, Context, Distribution, Missing, Number, Report, Value, WrongIds

HELP = (
    "One request in flight, of text not seen before, each trial by an appliance started anew. "
    "round-trip: the client's, from before it sends to the last id; inside: the same requests in "
    "the appliance, from the first packet taken from the queue to the last id in the token ring. "
    "preempted: how often the kernel took the CPU from a thread of the appliance."
)
PARAMETERS = {
    "without": Choice(
        ("nothing", *host_measures.MEASURES, "everything"), "the measure that is left out"
    ),
    "neighbour": Choice(tuple(neighbours.KINDS), neighbours.HELP),
    "tokens": Number(16, 2048, "of a text"),
    "requests": Number(20, 20_000, "of each trial"),
}
METRICS = {
    "round-trip": Distribution("us"),
    "inside": Distribution("us"),
    "preempted": Value("1/s"),
}
COUNTS = round_trips.COUNTS
CHECKS_IDS = True

RING_LEAST = 16 << 20
POLL = {True: 64, False: 0}  # net_af_xdp's busy_budget; 64 is its default
NO_POLL = "Failed to set SO_"  # what net_af_xdp says of a kernel without busy polling


@dataclass
class State:
    stack: ExitStack
    folder: Path
    vocab: Path
    pieces: dict[int, list[Slice]]  # by tokens, as many as the largest test of them sends
    link: Veth
    client: str
    huge: bool
    obstacles: dict[str, str]


@dataclass(frozen=True)
class Raw:
    rows: list[dict[str, str]]  # tokd-load's
    inside: dict[int, tuple[int, int]]  # by index: first t_rx, last t_publish, in ns
    seconds: float
    preempted: int
    notes: list[str]


def prepare(context: Context) -> State:
    """Texts and their ids, on which tiktoken must agree with tokenizers; the wire; huge pages."""
    if len(CPUS) < 2:
        raise Missing("needs two CPUs: for dpdk-tokd and the client")
    round_trips.need_tokd_load()
    pieces: dict[int, list[Slice]] = {}
    agreed = 0
    for tokens in sorted({test["tokens"] for test in context.tests}):
        most = max(test["requests"] for test in context.tests if test["tokens"] == tokens)
        try:
            vocab, found, checked = texts.cut(most + WARM_UP + 2, {tokens: 1})
        except reference.ReferenceMismatch as error:
            raise WrongIds(str(error)) from error
        if len(found) < most + WARM_UP:
            raise Missing(f"the corpora have {len(found)} texts of {tokens} tokens: ask for fewer")
        pieces[tokens] = found
        agreed += checked
    context.say(f"request-latency: tiktoken agrees with tokenizers on {agreed:,} bytes")
    with ExitStack() as stack:
        obstacles = host_measures.obstacles()
        try:
            client = stack.enter_context(namespace("client"))
            link = stack.enter_context(veth(0, client, None))
        except OSError as error:
            raise Missing(f"no veth pair can be made, which needs root: {error}") from error
        huge = stack.enter_context(hugepages())
        if not huge:
            obstacles["huge-pages"] = "huge pages of 2 MB could not be reserved"
        return State(stack.pop_all(), context.folder, vocab, pieces, link, client, huge, obstacles)
    raise AssertionError


def _start(state: State, without: str, ring: int) -> Process:
    pinned = host_measures.taken("affinity", without)
    polls = host_measures.taken("polling", without)
    cpus = str(WORKER_CPU) if pinned else f"({','.join(map(str, CPUS))})"
    memory = HUGE if state.huge and host_measures.taken("huge-pages", without) else NO_HUGE
    device = f"net_af_xdp0,iface={state.link.near},busy_budget={POLL[polls]}"
    eal = ["--lcores", f"0@{cpus}", "--no-pci", f"--vdev={device}", *memory]
    own = ["--ip", state.link.server, "--udp-port", str(PORT), "--vocab", str(state.vocab)]
    own += ["--socket", str(state.folder / "tokd.sock"), "--ring-size", str(ring)]
    log = state.folder / "dpdk-tokd.log"
    return Process("dpdk-tokd", [*ENDS_WITH_US, str(DPDK_TOKD), *eal, "--", *own], log)


def _preempted(pid: int) -> int:
    """Of all threads of a process, how often another took the CPU."""
    total = 0
    for path in Path("/proc", str(pid), "task").glob("*/status"):
        for line in path.read_text().splitlines():
            if line.startswith("nonvoluntary_ctxt_switches"):
                total += int(line.split()[1])
    return total


def _read_ring(reader: RingReader, pieces: list[Slice]) -> dict[int, tuple[int, int]]:
    """When each text came in and was done; its ids compared once more."""
    found: dict[int, tuple[int, int]] = {}
    at = [0] * len(pieces)
    while (given := reader.poll()) is not None:
        index = given.stream_id - 1
        right = pieces[index].ids[given.first : given.first + len(given)]
        if given.aborted:
            continue
        if given.first != at[index] or list(given.tokens) != list(right):
            raise WrongIds(f"text {index}: ids in the token ring are not the reference's")
        at[index] += len(given)
        begin = found.get(index, (given.t_rx_ns, 0))[0]
        found[index] = (begin, given.t_publish_ns)
    return {index: times for index, times in found.items() if at[index] == len(pieces[index].ids)}


def run(state: State, parameters: dict[str, Any]) -> Raw:
    without = parameters["without"]
    if why := state.obstacles.get(without):
        raise Missing(why)
    pinned = host_measures.taken("affinity", without)
    pieces = state.pieces[parameters["tokens"]][: parameters["requests"] + WARM_UP]
    sent = state.folder / "texts.bin"
    slices.write(sent, pieces)
    # The reader of the ring stands still while times are taken: all of them must have room.
    needed = sum(4 * len(piece.ids) + 64 * 32 for piece in pieces)
    ring = max(RING_LEAST, 1 << (2 * needed - 1).bit_length())
    with ExitStack() as stack:
        notes = stack.enter_context(host_measures.settings(without))
        appliance = stack.enter_context(_start(state, without, ring))
        appliance.wait_for("ready:", READY_S)
        if host_measures.taken("polling", without) and NO_POLL in appliance.log.read_text():
            state.obstacles["polling"] = "net_af_xdp cannot set SO_PREFER_BUSY_POLL here"
        if why := state.obstacles.get(without):
            raise Missing(why)
        reader = stack.enter_context(RingReader(str(state.folder / "tokd.sock")))
        beside = neighbours.beside_worker(parameters["neighbour"], pinned, state.folder)
        stack.enter_context(beside)
        cpu = CLIENT_CPU if pinned else None
        before, begin = _preempted(appliance.pid), time.monotonic()
        rows = round_trips.load(state.link, state.client, sent, cpu, "tokd")
        seconds, preempted = time.monotonic() - begin, _preempted(appliance.pid) - before
        seen = _read_ring(reader, pieces)
    return Raw(rows, seen, seconds, preempted, notes)


def report(state: State, parameters: dict[str, Any], raw: Raw) -> Report:
    pieces = state.pieces[parameters["tokens"]]
    checked = 0
    trips, inside_times = Samples(), Samples()
    counts: dict[str, int] = {}
    for index, ns in round_trips.answered(raw.rows, counts):
        if index not in raw.inside:
            raise WrongIds(f"text {index} is not in the token ring")
        begin, end = raw.inside[index]
        inside_times.add(end - begin)
        trips.add(ns)
        checked += len(pieces[index].ids)
    return Report(
        values={"preempted": raw.preempted / raw.seconds},
        samples={"round-trip": trips, "inside": inside_times},
        counts=counts,
        ids_checked=checked,
        notes=raw.notes,
    )


def clean(state: State) -> None:
    state.stack.close()
