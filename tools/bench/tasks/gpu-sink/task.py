# SPDX-License-Identifier: BSD-3-Clause
"""Ids to embeddings: dpdk-tokd --sink gpu, whose workers replay captures, into tokd-gpu, by size
and number of slots."""

from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from bench.appliance import Consumer
from bench.captures import Texts
from bench.lab.cpus import CPUS
from bench.lab.hugepages import hugepages
from bench.lab.machine import RDMA, gpu_here, rdma_devices
from bench.process import NotReady
from bench.programs import DPDK_TOKD, TOKD_GPU
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
from bench.tasks import sink_replay
from bench.tasks.sink_replay import Embedded, Replay
from bench.texts import fetch_corpus
from dpdk_tokd import EmbeddingReader
from dpdk_tokd.embeddings.table import random_table
from dpdk_tokd.fetch import vocabs
from dpdk_tokd.fetch.packages import data_home

HELP = (
    "Each worker replays a capture as fast as it can, one text per packet: tokenize, post, embed. "
    "Checked before timing: the rows of the first texts, against NumPy's rows of the reference's ids; "
    "after timing: every id in the token ring. posted-to-embedded: time of a slot until the worker "
    "reads that it is done; in-flight: mean number of slots; payload: mean size of a slot."
)
SINKS = {  # options of tokd-gpu, and what dpdk-tokd's --sink is then
    "cpu": (["--device", "cpu"], "shm"),
    "cuda-host": (["--device", "cuda:0", "--ring", "host"], "shm"),
    "cuda": (["--device", "cuda:0"], "cuda"),
    "verbs": (["--device", "cpu", "--listen", "tcp:7472"], "verbs"),
}
PARAMETERS = {
    "sink": Choice(tuple(SINKS), "cpu: threads of this machine, through shared memory"),
    "slot-kib": Number(1, 1024, "size of a slot, a power of two"),
    "slots": Number(2, 4096, "per worker: the most in flight"),
    "workers": Number(1, 64, "of dpdk-tokd, each with its own CPU and ring"),
    "batch-us": Number(
        0,
        100_000,
        "how long a short record waits for others; 0: only records that wait anyway are batched",
    ),
    "text-bytes": Number(16, 1376, "of a text"),
    "text-kib": Number(16, 32_768, "of text for each worker"),
    "dim": Number(1, 4096, "of the table, float32"),
}
METRICS = {
    "posted-to-embedded": Distribution("us"),
    "slots-rate": Value("k/s", better="higher"),
    "ids-rate": Value("M/s", better="higher"),
    "payload": Value("KiB", better="neither"),
    "in-flight": Value("slots", better="neither"),
}
COUNTS = {"posted-again": "slots whose check word was wrong at first; their latencies count"}
CHECKS_IDS = True
ROWS = 50_257  # of GPT-2's table
CHECKED_BYTES = 1 << 20  # of text whose rows are compared, at most
OUT_LEAST, OUT_MOST = 16 << 20, 256 << 20
OUT_ALIGN = 4096  # a text's rows take a multiple of it


@dataclass(frozen=True)
class Plan:
    capture: Path
    texts: Texts


@dataclass
class State:
    folder: Path
    vocab: Path
    huge: bool
    plans: dict[tuple[int, int], Plan]  # by bytes of a text and KiB in all
    first: dict[int, Plan]  # by bytes of a text: whose rows are compared
    tables: dict[int, np.ndarray]


@dataclass(frozen=True)
class Raw:
    rows_checked: int
    embedded: Embedded
    notes: list[str]


def _plan(path: Path, texts: Texts, count: int) -> Plan:
    path.parent.mkdir()
    some = Texts(texts.texts[:count], texts.ids[:count])
    return Plan(some.write(path), some)


def prepare(context: Context) -> State:
    """Texts with the reference's ids, as captures; tables by NumPy; huge pages."""
    need(DPDK_TOKD, TOKD_GPU)
    vocab = vocabs.fetch("gpt2", data_home() / "vocab")
    corpora = list(fetch_corpus.fetch(data_home() / "corpus").values())
    plans: dict[tuple[int, int], Plan] = {}
    first: dict[int, Plan] = {}
    for size in sorted({test["text-bytes"] for test in context.tests}):
        amounts = sorted({t["text-kib"] for t in context.tests if t["text-bytes"] == size})
        texts = sink_replay.texts(vocab, corpora, size, (amounts[-1] << 10) // size)
        context.log(f"gpu-sink: {len(texts.ids):,} texts of {size} bytes with the reference's ids")
        for kib in amounts:
            path = context.folder / f"{size}-{kib}" / "texts.pcap"
            plans[size, kib] = _plan(path, texts, (kib << 10) // size)
        path = context.folder / f"{size}-first" / "texts.pcap"
        first[size] = _plan(path, texts, CHECKED_BYTES // size)
    tables = {dim: random_table(ROWS, dim, 1) for dim in {t["dim"] for t in context.tests}}
    huge = context.stack.enter_context(hugepages())
    return State(context.folder, vocab, huge, plans, first, tables)


def _obstacle(parameters: dict[str, Any]) -> str | None:
    sink, workers = parameters["sink"], parameters["workers"]
    if workers > len(CPUS):
        return f"{workers} workers need {workers} CPUs, this machine has {len(CPUS)}"
    if sink.startswith("cuda") and not gpu_here():
        return "no NVIDIA GPU on this machine"
    if sink == "verbs" and not rdma_devices():
        return f"no RDMA device on this machine ({RDMA}): a NIC's, or rdma_rxe's"
    return None


def _out_bytes(parameters: dict[str, Any]) -> int:
    """Room for the rows of all slots of a worker, at least of four full ones."""
    slot, row = parameters["slot-kib"] << 10, 4 * parameters["dim"]
    full = -(-slot // 4 * row // OUT_ALIGN) * OUT_ALIGN
    # Of short texts in a BATCH each takes OUT_ALIGN, and 128 bytes of the slot or more.
    wanted = parameters["slots"] * max(full, slot // 128 * OUT_ALIGN)
    room = max(OUT_LEAST, min(wanted, OUT_MOST), 4 * full)
    return 1 << (room - 1).bit_length()


def _placed(parameters: dict[str, Any]) -> tuple[list[int], list[str], str]:
    """The workers' CPUs, options for the consumer's threads on the remaining ones, and a note."""
    workers = CPUS[::-1][: parameters["workers"]]
    free = [cpu for cpu in CPUS if cpu not in workers]
    if parameters["sink"] not in ("cpu", "verbs"):
        return workers, [], f"workers on CPUs {workers}"
    # With one CPU left, which runs everything else too, one thread that scans and embeds is best.
    threads = max(0, len(free) - 2)
    options = ["--workers", str(threads)]
    in_a_row = free == list(range(free[0], free[0] + len(free))) if free else False
    if in_a_row:
        options += ["--first-cpu", str(free[0])]
    where = f"CPUs {free}" if in_a_row else "any CPU"
    return (
        workers,
        options,
        f"workers on CPUs {workers}; consumer: {1 + threads} thread(s), {where}",
    )


def _check(
    plan: Plan,
    state: State,
    parameters: dict[str, Any],
    sink: str,
    cpus: list[int],
    more: list[str],
) -> int:
    subscribers = state.folder / "subscribers.sock"
    with (
        EmbeddingReader(subscribers, timeout=sink_replay.LIMIT_S) as subscriber,
        Replay(plan.capture, plan.texts, state.vocab, sink, cpus, state.huge, *more) as replay,
    ):
        return sink_replay.check_rows(replay, subscriber, state.tables[parameters["dim"]])


def run(state: State, parameters: dict[str, Any]) -> Raw:
    if why := _obstacle(parameters):
        raise Missing(why)
    cpus, more, note = _placed(parameters)
    device, transport = SINKS[parameters["sink"]]
    where = "127.0.0.1:7472" if transport == "verbs" else state.folder / "gpu.sock"
    sink = f"gpu={transport}:{where}"
    more += ["--producers", str(len(cpus)), "--slots", str(parameters["slots"])]
    more += [
        "--slot-bytes",
        f"{parameters['slot-kib']}k",
        "--out-bytes",
        str(_out_bytes(parameters)),
    ]
    batch = ["--sink-batch", str(parameters["batch-us"])]
    plan = state.plans[parameters["text-bytes"], parameters["text-kib"]]
    with ExitStack() as stack:
        table = f"random:{ROWS}x{parameters['dim']}:1"
        agent = stack.enter_context(Consumer(state.folder, table, *device, *more))
        first = state.first[parameters["text-bytes"]]
        rows = _check(first, state, parameters, sink, cpus, batch)
        batch += ["--wait-readers", "1"]
        with Replay(
            plan.capture, plan.texts, state.vocab, sink, cpus, state.huge, *batch
        ) as replay:
            embedded = sink_replay.embed_all(replay)
        if agent.wait(0) is not None:
            raise NotReady(f"tokd-gpu ended before the trial did:\n{agent.tail()}")
    return Raw(rows, embedded, [note])


def report(_state: State, _parameters: dict[str, Any], raw: Raw) -> Report:
    of, seconds = raw.embedded.counters, raw.embedded.seconds
    if of["sink_failed"]:
        raise WrongIds(f"{of['sink_failed']} texts were not embedded")
    times = raw.embedded.posted_to_done
    return Report(
        values={
            "slots-rate": of["sink_slots"] / seconds / 1e3,
            "ids-rate": of["sink_tokens"] / seconds / 1e6,
            "payload": of["sink_bytes"] / of["sink_slots"] / 1024,
            "in-flight": times.sum_s / seconds,
        },
        samples={"posted-to-embedded": sink_replay.samples_of(times)},
        counts={"posted-again": of["sink_again"]},
        ids_checked=raw.rows_checked + raw.embedded.ids_checked,
        notes=raw.notes,
    )
