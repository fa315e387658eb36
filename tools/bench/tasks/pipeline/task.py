# SPDX-License-Identifier: BSD-3-Clause
"""From a packet to the rows of its text, by stage and pipeline: dpdk-tokd --sink gpu over a veth
pair, with tokd-gpu, by the time stamps that both leave."""

import subprocess
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from bench.appliance import Consumer, best_on_veth, ring_bytes
from bench.client import ask
from bench.lab import micro
from bench.lab.cpus import CLIENT_CPU, OTHER_CPUS, WORKER_CPU, need_two_cpus, on_cpus
from bench.lab.hugepages import hugepages
from bench.lab.machine import bluefield_here, gpu_here
from bench.lab.net import Veth, client_link
from bench.programs import DPDK_TOKD, TOKD_GPU, TOKD_MICRO
from bench.samples import Samples
from bench.task import Choice, Context, Distribution, Missing, Number, Report, WrongIds, need
from bench.tasks import sink_replay
from bench.tasks.embed_client import SEED
from bench.texts import encode_texts, slices
from bench.texts.encode_texts import CORPORA, UNITS, VOCABULARIES, Kind
from dpdk_tokd import RingReader
from dpdk_tokd.ops.telemetry import Histogram

HELP = (
    "One text in flight, never seen before, a fresh appliance for each trial. Of each text the last "
    "slot, whose stages follow one another: taken-to-published: the first packet taken from the "
    "queue, to the last ids in the token ring (it waits for the other packets); published-to-posted: "
    "to the slot in the GPU ring; posted-to-visible: until the consumer sees it; visible-to-written: "
    "until its rows are written; written-to-ready: until subscribers can read them; total: all of "
    "these. Beside them: tokenize: the tokenizer's part of the first; posted-to-done: each slot, until "
    "the worker reads that it is done. Medians do not add up. Every id and row is compared."
)
PARAMETERS = {
    "pipeline": Choice(
        ("dpu", "cpu", "gpu"),
        "where text becomes ids: a BlueField's ARM cores, this machine's, or the GPU",
    ),
    "vocabulary": Choice(VOCABULARIES, "gpt2: byte-level BPE; bert-base-uncased: WordPiece"),
    "corpus": Choice(CORPORA, "of tools/fetch-corpus; mixed: all, interleaved"),
    "unit": Choice(UNITS, "of length"),
    "length": Number(16, 8192, "of a text"),
    "requests": Number(20, 20_000, "of each trial"),
}
STAGES = (
    "taken-to-published", "tokenize", "published-to-posted", "posted-to-visible",
    "visible-to-written", "written-to-ready", "posted-to-done", "total",
)  # fmt: skip
METRICS = {name: Distribution("us") for name in STAGES}
COUNTS = {"came-again": "texts whose rows came again: the sink connected anew; no times"}
CHECKS_IDS = True
WARM_UP = 100  # texts, checked but not measured
DIM = 768
OUT_BYTES = "128M"  # the rows of several texts
CLOCK_MS = 5
LIMIT_S = 300.0
NO_GPU = "no GPU"


@dataclass(frozen=True)
class State:
    folder: Path
    vocabularies: dict[str, tuple[Path, int]]  # with the number of ids
    pieces: dict[Kind, list[slices.Slice]]
    link: Veth
    client: str
    huge: bool
    gpu: bool
    has_pipelines: bool  # dpdk-tokd --pipeline


@dataclass(frozen=True)
class Clock:
    """The worker's TSC as CLOCK_MONOTONIC, by what both said before and after."""

    before: dict[str, int]
    after: dict[str, int]

    @property
    def within_ns(self) -> int:
        return max(self.before["within_ns"], self.after["within_ns"])

    @property
    def ns_a_tick(self) -> float:
        ns = self.after["monotonic_ns"] - self.before["monotonic_ns"]
        return ns / (self.after["tsc"] - self.before["tsc"])

    def monotonic(self, tsc: int) -> float:
        return self.before["monotonic_ns"] + (tsc - self.before["tsc"]) * self.ns_a_tick


@dataclass(frozen=True)
class Raw:
    texts: list[dict[str, int]]  # of each its stamps: TSC or, from `visible` on, the consumer's ns
    histograms: dict[str, Histogram]
    clock: Clock
    ids: int
    notes: list[str]


def _kind(parameters: dict[str, Any]) -> Kind:
    return Kind(*(parameters[name] for name in ("vocabulary", "corpus", "unit", "length")))


def _texts(context: Context) -> tuple[dict[str, tuple[Path, int]], dict[Kind, list[slices.Slice]]]:
    wanted: dict[Kind, int] = {}
    for test in context.tests:
        wanted[_kind(test)] = max(test["requests"] + WARM_UP, wanted.get(_kind(test), 0))
    loaded = {
        name: encode_texts.load(name, context.folder)
        for name in sorted({kind.vocabulary for kind in wanted})
    }
    pieces = {}
    for kind, count in wanted.items():
        _, pieces[kind] = encode_texts.cut(kind, loaded[kind.vocabulary], count, context.corpora)
    files = {n: (v.file, v.tokenizer.get_vocab_size()) for n, v in loaded.items()}
    return files, pieces


def _has_pipelines() -> bool:
    command = [DPDK_TOKD, "--help"]
    said = subprocess.run(command, capture_output=True, text=True, check=False)
    return "--pipeline" in said.stdout


def prepare(context: Context) -> State:
    """Texts with ids, the network, huge pages."""
    need_two_cpus()
    need(DPDK_TOKD, TOKD_GPU, TOKD_MICRO)
    files, pieces = _texts(context)
    client, link = client_link(context.stack, "pipeline")
    huge = context.stack.enter_context(hugepages())
    return State(context.folder, files, pieces, link, client, huge, gpu_here(), _has_pipelines())


def _obstacle(state: State, pipeline: str) -> str | None:
    if pipeline == "dpu" and not bluefield_here():
        return "no BlueField"
    if pipeline == "gpu" and not state.has_pipelines:
        return "this dpdk-tokd has no --pipeline gpu"
    return None


def _consumer(state: State, parameters: dict[str, Any]) -> Consumer:
    vocabulary, rows = state.vocabularies[parameters["vocabulary"]]
    device = ["--device", "cuda:0", "--ring", "host"] if state.gpu else ["--device", "cpu"]
    text = ["--text-vocab", str(vocabulary)] if parameters["pipeline"] == "gpu" else []
    options = [*device, *text, "--producers", "1", "--out-bytes", OUT_BYTES]
    with on_cpus(OTHER_CPUS):
        return Consumer(state.folder, f"random:{rows}x{DIM}:{SEED}", *options)


def _published(reader: RingReader, pieces: list[slices.Slice]) -> dict[int, dict[str, int]]:
    """By serial: when the first packet was taken, and the last ids published; compares the ids."""
    found: dict[int, dict[str, int]] = {}
    at = [0] * len(pieces)
    while (given := reader.poll()) is not None:
        index = given.stream_id - 1
        right = pieces[index].ids[given.first : given.first + len(given)]
        if given.aborted or given.first != at[index] or not np.array_equal(given.tokens, right):
            raise WrongIds(f"text {index}: ids in the token ring are not the reference's")
        at[index] += len(given)
        text = found.setdefault(given.serial, {"taken": given.t_rx})
        text["published"] = given.t_publish
    if any(n != len(piece.ids) for n, piece in zip(at, pieces, strict=True)):
        raise WrongIds("not all ids are in the token ring")
    return found


def _ask(state: State, consumer: Consumer, telemetry: Path, sent: Path, rows: int) -> Any:
    """What the client prints. WrongIds: a row is not the reference's."""
    told = {
        "server": state.link.server, "port": state.link.port, "texts": str(sent), "dim": DIM,
        "subscribers": str(consumer.subscribers), "telemetry": str(telemetry), "rows": rows,
        "warm_up": WARM_UP,
    }  # fmt: skip
    return ask(state.client, "bench.tasks.embed_client", LIMIT_S, told)


def run(state: State, parameters: dict[str, Any]) -> Raw:
    pipeline = parameters["pipeline"]
    if why := _obstacle(state, pipeline):
        raise Missing(why)
    every, wanted = state.pieces[_kind(parameters)], parameters["requests"] + WARM_UP
    if len(every) < wanted:
        raise Missing(f"the corpus has only {len(every)} of {wanted} texts")
    pieces = every[:wanted]
    vocabulary, rows = state.vocabularies[parameters["vocabulary"]]
    sent = state.folder / "texts.bin"
    slices.write(sent, pieces)
    ring = ring_bytes(sum(4 * len(piece.ids) + 64 * 32 for piece in pieces))
    own = ["--ring-size", str(ring)] + (["--pipeline", pipeline] if state.has_pipelines else [])
    with ExitStack() as stack:
        consumer = stack.enter_context(_consumer(state, parameters))
        own += ["--sink", f"gpu=shm:{consumer.socket}"]
        appliance = stack.enter_context(
            best_on_veth(state.link, vocabulary, state.folder, WORKER_CPU, state.huge, own)
        )
        reader = stack.enter_context(RingReader(str(appliance.socket)))
        before = micro.run("tsc", CLOCK_MS)
        told = _ask(state, consumer, appliance.telemetry, sent, rows)
        clock = Clock(before, micro.run("tsc", CLOCK_MS))
        published = {} if pipeline == "gpu" else _published(reader, pieces)
    if told["as_bytes"] != (parameters["requests"] if pipeline == "gpu" else 0):
        raise OSError(f"{told['as_bytes']} texts went to the consumer as bytes")
    shared = ", which share the client's CPU" if OTHER_CPUS == [CLIENT_CPU] else ""
    device = "a GPU, its ring in host memory" if state.gpu else f"threads of the CPU{shared}"
    memory = "huge pages" if appliance.huge_pages else "no huge pages"
    return Raw(
        [text | published.get(text["serial"], {}) for text in told["texts"]],
        {
            name: Histogram(**(h | {"counts": tuple(h["counts"])}))
            for name, h in told["histograms"].items()
        },
        clock,
        sum(len(piece.ids) for piece in pieces[WARM_UP:]),
        [
            f"{pipeline}: {appliance.driver}, {memory}, one worker; tokd-gpu on {device}",
            f"TSC and CLOCK_MONOTONIC were read together within {clock.within_ns} ns",
        ],
    )


def _between(texts: list[dict[str, int]], begin: str, end: str, ns: float = 1.0) -> Samples:
    samples = Samples()
    for text in texts:
        samples.add(round((text[end] - text[begin]) * ns))
    return samples


def _crossed(raw: Raw, begin: str, end: str) -> Samples:
    """From a stamp of the TSC to one of CLOCK_MONOTONIC. OSError: it would be negative."""
    samples, clock = Samples(), raw.clock
    for text in raw.texts:
        ns = round(text[end] - clock.monotonic(text[begin]))
        if ns < -2 * clock.within_ns:
            raise OSError(f"{end} is {-ns} ns before {begin}: TSC and CLOCK_MONOTONIC disagree")
        samples.add(max(0, ns))
    return samples


def _device(state: State, raw: Raw) -> tuple[dict[str, Samples], dict[str, str]]:
    """The stages at the consumer's, and why others are not known."""
    found = {"visible-to-written": _between(raw.texts, "visible", "written")}
    if state.gpu:
        why = "the GPU's clock is not the host's"
        return found, dict.fromkeys(("posted-to-visible", "written-to-ready"), why)
    found["posted-to-visible"] = _crossed(raw, "posted", "visible")
    found["written-to-ready"] = _between(raw.texts, "written", "ready")
    return found, {}


def report(state: State, parameters: dict[str, Any], raw: Raw) -> Report:
    by_bytes = parameters["pipeline"] == "gpu"
    every, raw = raw, replace(raw, texts=[text for text in raw.texts if not text["again"]])
    times = {name: sink_replay.samples_of(h) for name, h in raw.histograms.items()}
    found = {"posted-to-done": times["posted_to_done"]}
    missing: dict[str, str] = {}
    if by_bytes:
        missing["tokenize"] = "not apart: in visible-to-written"
        # Readers of the token ring skip the record of a text's bytes, and with it its stamps.
        missing |= dict.fromkeys(("published-to-posted", "total"), "readers see no such stamp")
        found["taken-to-published"] = times["wire_to_ring"]
    else:
        tick = raw.clock.ns_a_tick
        found["tokenize"] = times["tokenizer"]
        found["taken-to-published"] = _between(raw.texts, "taken", "published", tick)
        found["published-to-posted"] = _between(raw.texts, "published", "posted", tick)
        found["total"] = _crossed(raw, "taken", "ready")
    if by_bytes and not state.gpu:  # threads of the CPU are no measurement of a GPU
        found.pop("posted-to-done")
        on_host = {"taken-to-published", "published-to-posted"}
        missing |= dict.fromkeys(set(STAGES) - on_host, NO_GPU)
    else:
        here, unknown = _device(state, raw)
        found, missing = found | here, missing | unknown
    return Report(
        samples=found,
        counts={"came-again": len(every.texts) - len(raw.texts)},
        ids_checked=raw.ids,
        notes=raw.notes,
        missing=missing,
        clocks=_clocks(state, by_bytes),
    )


def _clocks(state: State, by_bytes: bool) -> dict[str, str]:
    worker, buckets = "worker: TSC", "worker: TSC, in buckets of 6%"
    consumer = "GPU: its own, ns" if state.gpu else "consumer's CPU thread: CLOCK_MONOTONIC"
    agent = "tokd-gpu: CLOCK_MONOTONIC"
    return {
        "taken-to-published": f"{buckets}; from the last packet" if by_bytes else worker,
        "tokenize": buckets,
        "published-to-posted": worker,
        "posted-to-visible": f"{worker}; {consumer}",
        "visible-to-written": consumer,
        "written-to-ready": f"{consumer}; {agent}",
        "posted-to-done": buckets,
        "total": f"{worker}; {agent}",
    }
