# SPDX-License-Identifier: BSD-3-Clause
"""How long a client waits for ids, one text after the other."""

from dataclasses import dataclass
from typing import Any

import round_trips
import slices
import systems
from host_measures import CLIENT_CPU
from round_trips import WARM_UP
from slices import Slice
from sweep.samples import Samples
from sweep.task import Choice, Context, Distribution, Number, Report, Value
from systems import Bench

HELP = (
    "Closed loop: one request in flight, of text not seen before, each trial by a server started "
    "anew. round-trip: the client's, from before it sends to the last id; average: its mean; "
    f"throughput: ids by the time waited for them, so of one client. {systems.HELP}"
)
PARAMETERS = {
    "corpus": Choice(systems.CORPORA, "of tools/fetch-corpus"),
    "tokens": Number(16, 2048, "of a text"),
    "system": Choice(systems.NAMES, "who answers"),
    "requests": Number(20, 20_000, "of each trial"),
}
METRICS = {
    "round-trip": Distribution("us"),
    "average": Value("us"),
    "throughput": Value("M ids/s", better="higher"),
}
COUNTS = round_trips.COUNTS
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


def run(state: Bench, parameters: dict[str, Any]) -> Raw:
    sent = state.folder / "texts.bin"
    slices.write(sent, _sent(state, parameters))
    with systems.serving(state, parameters["system"]) as one:
        rows = round_trips.load(one.link, state.client, sent, CLIENT_CPU, one.mode)
    return Raw(rows, [one.note])


def report(state: Bench, parameters: dict[str, Any], raw: Raw) -> Report:
    pieces = _sent(state, parameters)
    counts: dict[str, int] = {}
    trips = Samples()
    ids = whole = 0
    for index, ns in round_trips.answered(raw.rows, counts):
        trips.add(ns)
        whole += ns
        ids += len(pieces[index].ids)
    if not len(trips):
        raise OSError(f"none of {len(raw.rows)} requests was answered: {counts}")
    return Report(
        values={"average": whole / len(trips) / 1000, "throughput": 1000 * ids / whole},
        samples={"round-trip": trips},
        counts=counts,
        ids_checked=ids,
        notes=raw.notes,
    )


def clean(state: Bench) -> None:
    state.stack.close()
