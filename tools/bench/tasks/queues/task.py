# SPDX-License-Identifier: BSD-3-Clause
"""Throughput with one worker per queue: clients on sockets of their own, over af_packet."""

import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.appliance import Appliance, on_veth
from bench.lab.cpus import CPUS, need_two_cpus
from bench.lab.net import Veth, client_link, inside
from bench.programs import DPDK_TOKD, TOKD_CLIENT
from bench.task import Context, Missing, Number, Report, Value, WrongIds, need
from bench.texts import fetch_corpus, reference
from dpdk_tokd.fetch import vocabs
from dpdk_tokd.fetch.packages import data_home
from dpdk_tokd.ops.telemetry import Telemetry

IN_FLIGHT = 32
LINE_BYTES = 4096
RUN_S = 120.0
# The kernel's hash may put all flows on one of two queues: with 8 clients in 2 * (1/2)^8, 0.8% of
# the runs.
TRIES = 3
HELP = (
    "dpdk-tokd on net_af_packet with a queue per worker. Clients send the corpora, each from its own "
    f"socket, {IN_FLIGHT} texts at once. Every id is compared with Hugging Face tokenizers, and each "
    "stream must stay on one worker. throughput: text divided by the time until all clients have "
    "their ids; busy: mean share of the workers' time. A run in which a worker got no flow is "
    f"repeated, up to {TRIES} runs. Workers poll; the kernel places the clients, on the workers' CPUs "
    "if there are no others."
)
PARAMETERS = {
    "workers": Number(1, 64, "each with its own queue and CPU"),
    "clients": Number(2, 64, "each with its own socket"),
    "characters": Number(100_000, 10_000_000, "of each corpus, at most"),
}
METRICS = {"throughput": Value("MB/s", better="higher"), "busy": Value("%", better="neither")}
COUNTS: dict[str, str] = {}
CHECKS_IDS = True


@dataclass(frozen=True)
class Share:
    """What one client sends, one text per line, and what it must print."""

    texts: Path
    ids: bytes
    count: int  # of ids


@dataclass(frozen=True)
class State:
    folder: Path
    vocab: Path
    shares: dict[tuple[int, int], list[Share]]  # by clients and characters
    client: str
    link: Veth


@dataclass(frozen=True)
class Raw:
    seconds: float
    streams: list[int]  # of each worker
    busy: list[float]  # of each worker's time


def lines_of(text: str) -> list[str]:
    """A corpus as texts of LINE_BYTES characters, without line ends."""
    flat = " ".join(text.splitlines())
    return [flat[i : i + LINE_BYTES] for i in range(0, len(flat), LINE_BYTES)]


def _shares(folder: Path, clients: int, most: int, vocab: Path) -> list[Share]:
    """The corpora, dealt to the clients."""
    tokenizer = reference.load_gpt2(vocab)
    corpora = fetch_corpus.fetch(data_home() / "corpus").values()
    texts = [line for c in corpora for line in lines_of(c.read_text("utf-8")[:most])]
    found = []
    for i in range(clients):
        own = texts[i::clients]
        path = folder / f"texts-{clients}-{most}-{i}"
        path.write_text("".join(f"{line}\n" for line in own), encoding="utf-8")
        ids = [reference.ids(tokenizer, line) for line in own]
        told = "".join(" ".join(map(str, one)) + "\n" for one in ids)
        found.append(Share(path, told.encode(), sum(map(len, ids))))
    return found


def prepare(context: Context) -> State:
    need_two_cpus()
    need(DPDK_TOKD, TOKD_CLIENT)
    vocab = vocabs.fetch("gpt2", data_home() / "vocab")
    kinds = {(test["clients"], test["characters"]) for test in context.tests}
    context.log("queues: the reference's ids")
    shares = {kind: _shares(context.folder, *kind, vocab) for kind in kinds}
    client, link = client_link(context.stack, "queues")
    return State(context.folder, vocab, shares, client, link)


def _clients(state: State, shares: list[Share]) -> float:
    """Run all clients at once; returns seconds. Raises WrongIds unless each prints its ids."""
    command = inside(
        state.client, str(TOKD_CLIENT), "--lines", "--in-flight", str(IN_FLIGHT), state.link.server
    )
    outputs = [state.folder / f"ids{i}" for i in range(len(shares))]
    begun = time.monotonic()
    running: list[subprocess.Popen[bytes]] = []
    try:
        for share, output in zip(shares, outputs, strict=True):
            with share.texts.open("rb") as texts, output.open("wb") as ids:
                running.append(subprocess.Popen(command, stdin=texts, stdout=ids))
        codes = [one.wait(RUN_S) for one in running]
    finally:
        for one in running:
            one.kill()  # no effect if it has ended
            one.wait()
    seconds = time.monotonic() - begun
    if any(codes):
        raise OSError(f"clients ended with {codes}")
    for i, (share, output) in enumerate(zip(shares, outputs, strict=True)):
        if output.read_bytes() != share.ids:
            raise WrongIds(f"client {i}: not the reference's ids")
    return seconds


def once(state: State, workers: int, shares: list[Share]) -> Raw:
    # A full queue would pass packets to the other one: room for everything in flight.
    device = on_veth("net_af_packet", state.link, f"qpairs={workers}", "framecnt=8192")
    cpus = CPUS[::-1][:workers]
    with (
        Appliance(device, state.link.server, state.vocab, state.folder, cpus, False) as appliance,
        Telemetry(folder=appliance.telemetry) as telemetry,
    ):
        seconds = _clients(state, shares)
        counters = [telemetry.counters(w) for w in range(workers)]
    for worker, c in enumerate(counters):
        if c["streams_opened"] != c["streams_done"]:
            raise WrongIds(f"worker {worker} got packets of another's streams: {c}")
    cycles = [[c[f"cycles_{k}"] for k in ("busy", "backpressured", "idle")] for c in counters]
    return Raw(seconds, [c["streams_done"] for c in counters], [c[0] / sum(c) for c in cycles])


def run(state: State, parameters: dict[str, Any]) -> Raw:
    workers = parameters["workers"]
    if workers > len(CPUS):
        raise Missing(f"{workers} workers need {workers} CPUs, this machine has {len(CPUS)}")
    shares = state.shares[parameters["clients"], parameters["characters"]]
    for _ in range(TRIES):
        raw = once(state, workers, shares)
        if all(raw.streams):
            return raw
    raise OSError(f"a worker got no flow in {TRIES} runs: streams of each {raw.streams}")


def report(state: State, parameters: dict[str, Any], raw: Raw) -> Report:
    shares = state.shares[parameters["clients"], parameters["characters"]]
    size = sum(share.texts.stat().st_size for share in shares)
    return Report(
        values={
            "throughput": size / 1e6 / raw.seconds,
            "busy": 100 * sum(raw.busy) / len(raw.busy),
        },
        ids_checked=sum(share.count for share in shares),
        notes=[f"{parameters['workers']} workers, streams of each: {raw.streams}"],
    )
