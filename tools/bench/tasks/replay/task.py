# SPDX-License-Identifier: BSD-3-Clause
"""Throughput of workers side by side, each on its own CPU with its own capture."""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench import captures
from bench.appliance import CAPTURE_IP, Appliance, on_captures
from bench.lab.cpus import CPUS
from bench.process import NotReady
from bench.programs import DPDK_TOKD
from bench.task import Context, Missing, Number, Report, Value, need
from bench.texts import fetch_corpus
from dpdk_tokd import RingReader
from dpdk_tokd.fetch import vocabs
from dpdk_tokd.fetch.packages import data_home
from dpdk_tokd.ops.telemetry import Telemetry

HELP = (
    "Without clients: each worker of one dpdk-tokd replays the same texts, one per packet, from a "
    "capture of its own (net_pcap); all start together, in a fresh appliance for each trial. each: "
    "text divided by the worker's busy time, mean of the workers; slowest: the least; throughput: "
    "the sum."
)
PARAMETERS = {
    "workers": Number(1, 64, "of one appliance, each on its own CPU"),
    "bytes": Number(10_000, 10_000_000, "of each of the three corpora, for each worker"),
}
METRICS = {
    "throughput": Value("MB/s", better="higher"),
    "each": Value("MB/s", better="higher"),
    "slowest": Value("MB/s", better="higher"),
}
COUNTS: dict[str, str] = {}
CHECKS_IDS = True
LIMIT_S = 120.0


@dataclass(frozen=True)
class State:
    folder: Path
    vocab: Path
    texts: dict[int, captures.Texts]  # by bytes
    captures: dict[int, list[Path]]


@dataclass(frozen=True)
class Raw:
    mb_per_s: list[float]  # of each worker: text by its busy time
    ids: int  # compared, of all


def prepare(context: Context) -> State:
    """Texts with ids, and captures of them; tiktoken must agree with tokenizers on a sample."""
    need(DPDK_TOKD)
    vocab = vocabs.fetch("gpt2", data_home() / "vocab")
    corpora = fetch_corpus.fetch(data_home() / "corpus")
    texts, paths = {}, {}
    for size in sorted({test["bytes"] for test in context.tests}):
        texts[size] = captures.first_of(vocab, corpora, size)
        context.log(f"replay: tiktoken agrees with tokenizers on {texts[size].agreed:,} bytes")
        most = max(test["workers"] for test in context.tests if test["bytes"] == size)
        # The same for each worker, in files of their own.
        paths[size] = [
            texts[size].write(context.folder / f"{size}-{worker}.pcap")
            for worker in range(min(most, len(CPUS)))
        ]
    return State(context.folder, vocab, texts, paths)


def run(state: State, parameters: dict[str, Any]) -> Raw:
    workers, size = parameters["workers"], parameters["bytes"]
    if workers > len(CPUS):
        raise Missing(f"{workers} workers need {workers} CPUs, this machine has {len(CPUS)}")
    given = state.texts[size]
    own = ["--streams", "1024", "--wait-readers", "1", "--ring-size", str(given.ring_bytes)]
    with (
        Appliance(
            on_captures(state.captures[size][:workers]), CAPTURE_IP, state.vocab, state.folder,
            CPUS[::-1][:workers], False, *own,
        ) as appliance,
        Telemetry(folder=appliance.telemetry) as t,
        RingReader(str(appliance.socket)) as reader,
    ):  # fmt: skip
        deadline = time.monotonic() + LIMIT_S
        texts = workers * len(given.texts)
        # Ids are compared after all workers are done, so that the check does not disturb them.
        while sum(t.counters(w)["streams_done"] for w in range(workers)) < texts:
            if time.monotonic() > deadline:
                raise NotReady(f"the captures were not finished after {LIMIT_S:.0f} s")
            time.sleep(0.05)
        hz = t.info()["tsc_hz"]
        counters = [t.counters(w) for w in range(workers)]
        compared = captures.check_ring(reader, given.ids, workers)
    return Raw([c["text_bytes"] / c["cycles_busy"] * hz / 1e6 for c in counters], compared)


def report(_state: State, parameters: dict[str, Any], raw: Raw) -> Report:
    whole = sum(raw.mb_per_s)
    return Report(
        values={
            "throughput": whole,
            "each": whole / parameters["workers"],
            "slowest": min(raw.mb_per_s),
        },
        ids_checked=raw.ids,
    )
