# SPDX-License-Identifier: BSD-3-Clause
"""How long a client waits for ids, one text after the other."""

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
    "Closed loop: one request in flight, of text not seen before, each trial by a server started "
    "anew. round-trip: the client's, from before it sends to the last id; average: its mean, of "
    "what was answered; throughput: ids by all the time waited, also for what had no answer, so of "
    f"one client. {systems.HELP}"
)
OTHERS = [cpu for cpu in CPUS if cpu not in (CLIENT_CPU, WORKER_CPU)]
PLACES = {"others": OTHERS, "client": [CLIENT_CPU], "server": [WORKER_CPU]}
PARAMETERS = {
    "corpus": Choice(systems.CORPORA, "of tools/fetch-corpus"),
    "tokens": Number(16, 2048, "of a text"),
    "system": Choice(systems.NAMES, "who answers"),
    "neighbour": Choice(tuple(neighbours.KINDS), neighbours.HELP),
    "place": Choice(tuple(PLACES), "the neighbour's: neither's CPUs, the client's, the server's"),
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
    """The neighbour, one for each CPU it has."""
    kind, cpus = parameters["neighbour"], PLACES[parameters["place"]]
    if kind == "none":
        return nullcontext()
    if not cpus:
        raise Missing(
            f"a neighbour on CPUs of its own needs three, and there are {len(CPUS)}: the server "
            "and the client have one each"
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


def clean(state: Bench) -> None:
    state.stack.close()
