# SPDX-License-Identifier: BSD-3-Clause
"""A client's time to all ids, one text after the other."""

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

from bench import load
from bench.lab import neighbours
from bench.lab.cpus import CLIENT_CPU, CPUS, WORKER_CPU
from bench.load import WARM_UP
from bench.samples import Samples
from bench.task import Choice, Context, Distribution, Missing, Number, Report, Value
from bench.tasks import systems
from bench.tasks.systems import Bench
from bench.texts import slices
from bench.texts.slices import Slice

HELP = (
    "Closed loop: one request in flight, text never seen before, a fresh server for each trial. "
    "round-trip: from before the client sends to its last id; average: mean of the answered "
    "requests; throughput: ids of this one client per second of waiting, also for requests without "
    f"an answer. {systems.HELP}"
)
OTHERS = [cpu for cpu in CPUS if cpu not in (CLIENT_CPU, WORKER_CPU)]
PLACES = {"others": OTHERS, "client": [CLIENT_CPU], "server": [WORKER_CPU]}
PARAMETERS = {
    "corpus": Choice(systems.CORPORA, "of tools/fetch-corpus"),
    "tokens": Number(16, 2048, "of a text"),
    "system": Choice(systems.NAMES, "that answers"),
    "neighbour": Choice(tuple(neighbours.KINDS), neighbours.HELP),
    "place": Choice(tuple(PLACES), "the neighbour's CPUs: others, the client's, the server's"),
    "requests": Number(20, 20_000, "of each trial"),
}
METRICS = {
    "round-trip": Distribution("us"),
    "average": Value("us"),
    "throughput": Value("M ids/s", better="higher"),
}
COUNTS = load.COUNTS
UNANSWERED = COUNTS.keys() & load.FAILED.values()
CHECKS_IDS = True


@dataclass(frozen=True)
class Raw:
    rows: list[dict[str, str]]  # tokd-load's
    notes: list[str]


def prepare(context: Context) -> Bench:
    wanted: dict[int, int] = {}
    for test in context.tests:
        most = WARM_UP + test["requests"]
        wanted[test["tokens"]] = max(most, wanted.get(test["tokens"], 0))
    return systems.prepare(context, wanted)


def _sent(state: Bench, parameters: dict[str, Any]) -> list[Slice]:
    wanted = parameters["requests"] + WARM_UP
    return state.texts(parameters["corpus"], parameters["tokens"], wanted)


def _beside(state: Bench, parameters: dict[str, Any]) -> AbstractContextManager[None]:
    """A neighbour on each CPU of its place."""
    kind, cpus = parameters["neighbour"], PLACES[parameters["place"]]
    if kind == "none":
        return nullcontext()
    if not cpus:
        raise Missing(
            f"a neighbour on other CPUs needs three CPUs, this machine has {len(CPUS)}: server and "
            "client take one each"
        )
    return neighbours.neighbour(kind, cpus, len(cpus), state.folder)


def run(state: Bench, parameters: dict[str, Any]) -> Raw:
    sent = state.folder / "texts.bin"
    slices.write(sent, _sent(state, parameters))
    beside = _beside(state, parameters)
    with systems.serving(state, parameters["system"]) as one, beside:
        rows = load.load(one.link, state.client, sent, CLIENT_CPU, one.mode)
    return Raw(rows, [one.note])


def report(state: Bench, parameters: dict[str, Any], raw: Raw) -> Report:
    pieces = _sent(state, parameters)
    counts: dict[str, int] = {}
    trips = Samples()
    ids = whole = 0
    waited = sum(int(row["ns"]) for row in raw.rows)
    for index, ns, _ in load.answered(raw.rows, counts):
        trips.add(ns)
        whole += ns
        ids += len(pieces[index].ids)
    if not len(trips):
        raise OSError(f"none of {len(raw.rows)} requests was answered: {counts}")
    return Report(
        values={"average": whole / len(trips) / 1000, "throughput": 1000 * ids / waited},
        samples={"round-trip": trips},
        counts=counts,
        ids_checked=ids,
        notes=raw.notes,
    )
