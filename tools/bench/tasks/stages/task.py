# SPDX-License-Identifier: BSD-3-Clause
"""The time from a client to its ids by stage: dpdk-tokd over shared memory (net_memif), asked by
tokd-load-dpdk."""

from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from bench.appliance import MEMIF_IP, Appliance, on_memif
from bench.lab.cpus import WORKER_CPU, need_two_cpus
from bench.lab.hugepages import hugepages
from bench.load import Rows, load_memif, read_rows
from bench.programs import DPDK_TOKD, TOKD_LOAD_DPDK
from bench.samples import Samples
from bench.task import (
    Choice,
    Context,
    Distribution,
    Missing,
    Number,
    Report,
    Value,
    need,
)  # fmt: skip
from bench.texts import encode_texts, slices
from bench.texts.encode_texts import CORPORA, UNITS, VOCABULARIES, Kind
from dpdk_tokd.ops.telemetry import Telemetry

WARM_UP = 100  # requests of other texts, checked but not measured
HELP = (
    "One request in flight, text never seen before, a fresh appliance for each trial, over shared "
    "memory: no NIC, no kernel. Stages are means that add up to the mean round trip. tokenize: inside "
    "the tokenizer, all packets; in-and-publish: the rest of the time from the first packet taken "
    "from the queue to the last record published; reply: from there to the last reply handed to the "
    "driver; wire-and-client: the rest. inside: tokenize and in-and-publish of each request; share: "
    "inside as a share of the same request's round trip, median; record: from the receive burst to "
    "the record published, each record."
)
PARAMETERS = {
    "vocabulary": Choice(VOCABULARIES, "gpt2: byte-level BPE; bert-base-uncased: WordPiece"),
    "corpus": Choice(CORPORA, "of tools/fetch-corpus; mixed: all, interleaved"),
    "unit": Choice(UNITS, "of length"),
    "length": Number(16, 65_536, "of a text"),
    "requests": Number(20, 20_000, "of each trial"),
}
METRICS = {
    "tokenize": Value("us"),
    "in-and-publish": Value("us"),
    "reply": Value("us"),
    "wire-and-client": Value("us"),
    "inside": Distribution("us"),
    "share": Value("%"),
    "record": Distribution("us"),
    "round-trip": Distribution("us"),
}
COUNTS = {"sent-again": "packets sent again; times of their requests count"}
CHECKS_IDS = True
OF_TELEMETRY = ("tokenizer", "ring_to_reply")


@dataclass(frozen=True)
class State:
    folder: Path
    vocabularies: dict[str, Path]
    pieces: dict[Kind, list[slices.Slice]]
    huge: bool


@dataclass(frozen=True)
class Raw:
    rows: Rows  # tokd-load-dpdk's
    means: dict[str, float]  # us, of telemetry's stages
    ids: int
    note: str


def _kind(parameters: dict[str, Any]) -> Kind:
    return Kind(*(parameters[name] for name in ("vocabulary", "corpus", "unit", "length")))


def prepare(context: Context) -> State:
    """Texts with ids, and huge pages."""
    need_two_cpus()
    need(DPDK_TOKD, TOKD_LOAD_DPDK)
    wanted: dict[Kind, int] = {}
    for test in context.tests:
        wanted[_kind(test)] = max(test["requests"] + WARM_UP, wanted.get(_kind(test), 0))
    names = sorted({kind.vocabulary for kind in wanted})
    loaded = {name: encode_texts.load(name, context.folder) for name in names}
    pieces = {}
    for kind, count in wanted.items():
        vocabulary = loaded[kind.vocabulary]
        _, pieces[kind] = encode_texts.cut(kind, vocabulary, count, context.corpora)
    files = {name: vocabulary.file for name, vocabulary in loaded.items()}
    return State(context.folder, files, pieces, context.stack.enter_context(hugepages()))


def _load(appliance: Appliance, texts: list[slices.Slice], folder: Path) -> Rows:
    sent, out = folder / "texts.bin", folder / "out.csv"
    slices.write(sent, texts)
    load_memif(appliance, sent, f"--out={out}")
    return read_rows(out)


def run(state: State, parameters: dict[str, Any]) -> Raw:
    every, requests = state.pieces[_kind(parameters)], parameters["requests"]
    if len(every) < requests + WARM_UP:
        raise Missing(f"the corpus has only {len(every)} of {requests + WARM_UP} texts")
    warm_up, measured = every[:WARM_UP], every[WARM_UP : WARM_UP + requests]
    vocab = state.vocabularies[parameters["vocabulary"]]
    with (
        Appliance(
            on_memif(state.folder), MEMIF_IP, vocab, state.folder, [WORKER_CPU], state.huge
        ) as appliance,
        Telemetry(folder=appliance.telemetry) as telemetry,
    ):
        _load(appliance, warm_up, state.folder)
        before = {name: telemetry.histogram(name) for name in OF_TELEMETRY}
        rows = _load(appliance, measured, state.folder)
        since = {name: telemetry.histogram(name).since(before[name]) for name in OF_TELEMETRY}
    if counts := {name: h.count for name, h in since.items() if h.count != requests}:
        raise OSError(f"telemetry counted {counts}, of {requests} texts")
    memory = "huge pages of 2 MB" if state.huge else "no huge pages"
    return Raw(
        rows,
        {name: histogram.sum_s / requests * 1e6 for name, histogram in since.items()},
        sum(len(piece.ids) for piece in measured),
        f"net_memif, {memory}, one worker, on the last CPU",
    )


def report(_state: State, _parameters: dict[str, Any], raw: Raw) -> Report:
    inside, trips, records = Samples(), Samples(), Samples()
    whole = {"inside": 0, "trip": 0}
    again = 0
    shares = []
    for row in raw.rows:
        inside.add(int(row["text_to_last_id_ns"]))
        trips.add(int(row["ns"]))
        whole["inside"] += int(row["text_to_last_id_ns"])
        whole["trip"] += int(row["ns"])
        again += int(row["retransmits"])
        shares.append(int(row["text_to_last_id_ns"]) / int(row["ns"]))
        for ns in row["wire_to_ring_ns"].split():
            records.add(int(ns))
    mean = {name: ns / len(raw.rows) / 1000 for name, ns in whole.items()}
    tokenize, reply = raw.means["tokenizer"], raw.means["ring_to_reply"]
    return Report(
        values={
            "tokenize": tokenize,
            "in-and-publish": mean["inside"] - tokenize,
            "reply": reply,
            "wire-and-client": mean["trip"] - mean["inside"] - reply,
            "share": 100 * median(shares),
        },
        samples={"inside": inside, "round-trip": trips, "record": records},
        counts={"sent-again": again},
        ids_checked=raw.ids,
        notes=[raw.note],
    )
