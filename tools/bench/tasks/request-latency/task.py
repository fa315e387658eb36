# SPDX-License-Identifier: BSD-3-Clause
"""A client's time to ids without a host setting or a feature of the appliance, or beside a
neighbour: dpdk-tokd over a veth pair as in tools/demo, asked by tokd-load, text never seen
before."""

import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench import load
from bench.appliance import Appliance, on_veth, ring_bytes
from bench.lab import host_measures, neighbours
from bench.lab.cpus import CLIENT_CPU, CPUS, WORKER_CPU, need_two_cpus
from bench.lab.host_measures import enabled
from bench.lab.hugepages import hugepages
from bench.lab.net import Veth, client_link
from bench.load import WARM_UP
from bench.programs import DPDK_TOKD, TOKD_LOAD
from bench.samples import Samples
from bench.task import (
    Choice,
    Context,
    Distribution,
    Missing,
    Number,
    Report,
    Value,
    WrongIds,
    need,
)  # fmt: skip
from bench.texts import mix as texts
from bench.texts import slices
from bench.texts.slices import Slice
from dpdk_tokd import RingReader

HELP = (
    "One request in flight, text never seen before, a fresh appliance for each trial. round-trip: "
    "from before the client sends to its last id; first-id: to its first ids; inside: the same "
    "requests in the appliance, from the first packet taken from the queue to the last id in the "
    "token ring; preempted: involuntary context switches of the appliance's threads; copied: share "
    "of the bytes of ids in replies that were copied out of the ring. Texts fit a datagram of 8 "
    "fragments."
)
# Without prompt-ids, ids wait until they fill a packet; without streaming, the text comes in one
# datagram, tokenized when its last fragment is there; without zero-copy, ids are copied into
# replies.
IDEAS = ("prompt-ids", "streaming", "zero-copy")
PARAMETERS = {
    "driver": Choice(("af_xdp", "af_packet"), "of the port"),
    "without": Choice(
        ("nothing", *host_measures.MEASURES, *IDEAS, "everything"),
        "the host setting or the feature left out",
    ),
    "neighbour": Choice(tuple(neighbours.KINDS), neighbours.HELP),
    "tokens": Number(16, 2048, "of a text"),
    "requests": Number(20, 20_000, "of each trial"),
}
METRICS = {
    "round-trip": Distribution("us"),
    "first-id": Distribution("us"),
    "inside": Distribution("us"),
    "preempted": Value("1/s"),
    "copied": Value("%"),
}
COUNTS = load.COUNTS
UNANSWERED = COUNTS.keys() & load.FAILED.values()
CHECKS_IDS = True

POLL = {True: 64, False: 0}  # net_af_xdp's busy_budget; 64 is its default
NO_POLL = "Failed to set SO_"  # net_af_xdp's message on a kernel without busy polling
# Bytes of text in the longest datagram that dpdk-tokd takes: 8 fragments of an MTU of 1500, less
# the headers of UDP and of DATA.
DATAGRAM = 8 * 1480 - 8 - 64
SPARE = 100  # texts, to replace those that exceed DATAGRAM


@dataclass
class State:
    folder: Path
    vocab: Path
    pieces: dict[int, list[Slice]]  # by tokens
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
    copied: float
    notes: list[str]


def prepare(context: Context) -> State:
    """Texts with ids, on which tiktoken must agree with tokenizers; the network; huge pages."""
    need_two_cpus()
    need(DPDK_TOKD, TOKD_LOAD)
    pieces: dict[int, list[Slice]] = {}
    agreed = 0
    for tokens in sorted({test["tokens"] for test in context.tests}):
        most = max(test["requests"] for test in context.tests if test["tokens"] == tokens)
        vocab, found, checked = texts.cut(most + WARM_UP + SPARE, {tokens: 1})
        found = [piece for piece in found if len(piece.text.encode()) <= DATAGRAM]
        if len(found) < most + WARM_UP:
            raise Missing(
                f"the corpora have only {len(found)} texts of {tokens} tokens: lower `requests`"
            )
        pieces[tokens] = found
        agreed += checked
    context.log(f"request-latency: tiktoken agrees with tokenizers on {agreed:,} bytes")
    obstacles = host_measures.obstacles()
    # Different from those of client-to-ids, which may be in the same box.
    client, link = client_link(context.stack, "latency", index=2)
    huge = context.stack.enter_context(hugepages())
    if not huge:
        obstacles["huge-pages"] = "huge pages of 2 MB could not be reserved"
    return State(context.folder, vocab, pieces, link, client, huge, obstacles)


def _obstacle(state: State, driver: str, without: str) -> str | None:
    """Why `without` cannot be left out here; None: it can."""
    if driver == "af_packet":
        if without == "polling":
            return "only net_af_xdp has busy_budget"
        if not enabled("streaming", without):
            return (
                "Linux reassembles fragments before net_af_packet, into a frame larger than framesz"
            )
    elif without == "zero-copy":
        return "net_af_xdp sends packets of one segment: ids are always copied"
    return state.obstacles.get(without)


def _start(state: State, driver: str, without: str, ring: int) -> Appliance:
    cpu = WORKER_CPU if enabled("affinity", without) else f"({','.join(map(str, CPUS))})"
    budget = [f"busy_budget={POLL[enabled('polling', without)]}"] if driver == "af_xdp" else []
    own = ["--udp-port", str(state.link.port), "--ring-size", str(ring)]
    if not enabled("zero-copy", without):
        own += ["--zero-copy", "0"]
    return Appliance(
        on_veth(f"net_{driver}", state.link, *budget), state.link.server, state.vocab,
        state.folder, [cpu], state.huge and enabled("huge-pages", without), *own,
    )  # fmt: skip


def _asked(without: str) -> list[str]:
    """Options of tokd-load."""
    prompt = ["--stream"] if enabled("prompt-ids", without) else []
    return prompt if enabled("streaming", without) else [*prompt, "--payload", str(DATAGRAM)]


def _copied(log: Path) -> float:
    """From the counters that dpdk-tokd prints at its end."""
    output = log.read_text()
    lines = (line.split() for line in output.splitlines())
    counters = {line[0]: int(line[1]) for line in lines if len(line) > 1 and line[1].isdigit()}
    copied = counters.get("reply_copied_bytes", 0)
    every = copied + counters.get("reply_zero_copy_bytes", 0)
    if every == 0:
        raise OSError(f"dpdk-tokd counted no ids in replies: {output[-500:]}")
    return 100 * copied / every


def _preempted(pid: int) -> int:
    """Involuntary context switches of all threads of a process."""
    total = 0
    for path in Path("/proc", str(pid), "task").glob("*/status"):
        for line in path.read_text().splitlines():
            if line.startswith("nonvoluntary_ctxt_switches"):
                total += int(line.split()[1])
    return total


def _read_ring(reader: RingReader, pieces: list[Slice]) -> dict[int, tuple[int, int]]:
    """First t_rx and last t_publish of each text; compares its ids again."""
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
    driver, without = parameters["driver"], parameters["without"]
    if why := _obstacle(state, driver, without):
        raise Missing(why)
    pieces = state.pieces[parameters["tokens"]][: parameters["requests"] + WARM_UP]
    pinned = enabled("affinity", without)
    sent = state.folder / "texts.bin"
    slices.write(sent, pieces)
    # The ring is read after timing, so it must have room for all texts.
    ring = ring_bytes(sum(4 * len(piece.ids) + 64 * 32 for piece in pieces))
    with ExitStack() as stack:
        notes = stack.enter_context(host_measures.settings(without))
        appliance = stack.enter_context(_start(state, driver, without, ring))
        if enabled("polling", without) and NO_POLL in appliance.log.read_text():
            state.obstacles["polling"] = "net_af_xdp cannot set SO_PREFER_BUSY_POLL here"
        if why := state.obstacles.get(without):
            raise Missing(why)
        reader = stack.enter_context(RingReader(str(appliance.socket)))
        beside = neighbours.beside_worker(parameters["neighbour"], pinned, state.folder)
        stack.enter_context(beside)
        cpu = CLIENT_CPU if pinned else None
        before, begin = _preempted(appliance.pid), time.monotonic()
        rows = load.load(state.link, state.client, sent, cpu, "tokd", _asked(without))
        seconds, preempted = time.monotonic() - begin, _preempted(appliance.pid) - before
        seen = _read_ring(reader, pieces)
    return Raw(rows, seen, seconds, preempted, _copied(appliance.log), notes)


def report(state: State, parameters: dict[str, Any], raw: Raw) -> Report:
    pieces = state.pieces[parameters["tokens"]]
    checked = 0
    trips, firsts, inside_times = Samples(), Samples(), Samples()
    counts: dict[str, int] = {}
    for index, ns, first_ns in load.answered(raw.rows, counts):
        if index not in raw.inside:
            raise WrongIds(f"text {index} is not in the token ring")
        begin, end = raw.inside[index]
        inside_times.add(end - begin)
        trips.add(ns)
        firsts.add(first_ns)
        checked += len(pieces[index].ids)
    return Report(
        values={"preempted": raw.preempted / raw.seconds, "copied": raw.copied},
        samples={"round-trip": trips, "first-id": firsts, "inside": inside_times},
        counts=counts,
        ids_checked=checked,
        notes=raw.notes,
    )
