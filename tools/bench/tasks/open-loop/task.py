# SPDX-License-Identifier: BSD-3-Clause
"""Time to all ids at an offered load that does not wait for answers."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench import load
from bench.lab.cpus import CLIENT_CPU
from bench.load import WARM_UP
from bench.samples import Samples
from bench.task import Choice, Context, Distribution, Number, Report, Value
from bench.tasks import systems
from bench.tasks.systems import Bench, Serving
from bench.texts import slices
from bench.texts.packages import write_json
from bench.texts.slices import Slice

HELP = (
    "Open loop: one spinning client starts requests by a fixed schedule that no stall moves. Each "
    "trial has a fresh server that has answered every text once, so that caches are equally warm at "
    "all loads. round-trip: from the intended start to the last id, so that a stall counts for all "
    "requests due in it; since-sent: from the sending; late: from the intended start to the sending, "
    "which is the generator's delay; rate: answers per second; achieved: the same as a share of the "
    "offered load; throughput: their ids. A request without an answer counts as longer than all "
    "others. Repeat n uses seed n for all systems. Capacity is measured once per system and kind of "
    f"text, on a server of its own. {systems.HELP}"
)
PER_SECOND, OF_CAPACITY = "requests/s", "% of capacity"
PARAMETERS = {
    "corpus": Choice(systems.CORPORA, "of tools/fetch-corpus"),
    "tokens": Number(16, 2048, "of a text"),
    "texts": Number(20, 20_000, "different ones, sent in turn"),
    "system": Choice(systems.NAMES, "that answers"),
    "arrivals": Choice(("poisson", "fixed"), "as from independent clients, or evenly spaced"),
    "scale": Choice((PER_SECOND, OF_CAPACITY), "the unit of load"),
    "load": Number(0.1, 10_000_000, "offered", whole=False),
    "seconds": Number(0.1, 240, "of each trial, after the warm-up", whole=False),
    "in-flight": Number(1, 16_384, "requests at once, at most"),
    "limit": Number(1, 60_000, "ms after the intended start without ids: no answer"),
}
METRICS = {
    "round-trip": Distribution("us"),
    "since-sent": Distribution("us"),
    "late": Distribution("us", of_answers=False),
    "rate": Value("1/s", better="higher"),
    "achieved": Value("%", better="higher"),
    "throughput": Value("M ids/s", better="higher"),
}
COUNTS = load.COUNTS | load.NOT_SENT
UNANSWERED = COUNTS.keys() & load.FAILED.values()
CHECKS_IDS = True
WARM_IN_FLIGHT = 16  # during the warm-up, which sends each text once
# Capacity: a closed loop with so many requests in flight, for about so long.
CAPACITY_IN_FLIGHT = 64
CAPACITY_S = 1.0
CAPACITY_FIRST = 500  # requests that estimate how many CAPACITY_S needs
CAPACITY_MOST = 200_000


@dataclass
class State:
    bench: Bench
    capacity: dict[str, float]  # requests/s, by system and kind of text
    kept: Path | None  # a file with them


@dataclass(frozen=True)
class Raw:
    rows: list[dict[str, str]]  # tokd-load's
    notes: list[str]


def prepare(context: Context) -> State:
    wanted: dict[int, int] = {}
    for test in context.tests:
        wanted[test["tokens"]] = max(test["texts"], wanted.get(test["tokens"], 0))
    kept = context.kept and context.kept / "capacity.json"
    capacity = json.loads(kept.read_text("utf-8")) if kept and kept.is_file() else {}
    return State(systems.prepare(context, wanted), capacity, kept)


def _texts(state: State, parameters: dict[str, Any]) -> list[Slice]:
    return state.bench.texts(parameters["corpus"], parameters["tokens"], parameters["texts"])


def _load(state: State, one: Serving, *options: object) -> list[dict[str, str]]:
    sent = state.bench.folder / "texts.bin"
    return load.load(one.link, state.bench.client, sent, CLIENT_CPU, one.mode, options)


def _warm(state: State, one: Serving, parameters: dict[str, Any]) -> None:
    count = parameters["texts"] + WARM_UP
    rows = _load(state, one, "--in-flight", WARM_IN_FLIGHT, "--requests", count)
    failures = [row["failure"] for row in rows if row["failure"]]
    if failures:
        raise OSError(f"{len(failures)} of {count} texts of the warm-up failed: {failures[0]}")


def _closed_rate(state: State, one: Serving, requests: int) -> float:
    rows = _load(state, one, "--in-flight", CAPACITY_IN_FLIGHT, "--requests", requests + WARM_UP)
    ends = [int(row["intended_ns"]) + int(row["ns"]) for row in rows if row["ok"] == "1"]
    if not ends:
        raise OSError("no request of the capacity measurement was answered")
    return 1e9 * len(ends) / (max(ends) - int(rows[0]["intended_ns"]))


def _capacity(state: State, parameters: dict[str, Any]) -> float:
    """Requests per second as seen by this client, from a server of its own; cached per sweep."""
    which = "{system}, {corpus}, {tokens} tokens, {texts} texts".format(**parameters)
    if which not in state.capacity:
        with systems.serving(state.bench, parameters["system"]) as one:
            _warm(state, one, parameters)
            first = _closed_rate(state, one, CAPACITY_FIRST)
            enough = min(CAPACITY_MOST, max(CAPACITY_FIRST, round(CAPACITY_S * first)))
            state.capacity[which] = _closed_rate(state, one, enough)
        if state.kept:
            write_json(state.kept, state.capacity)
    return state.capacity[which]


def run(state: State, parameters: dict[str, Any], repeat: int) -> Raw:
    slices.write(state.bench.folder / "texts.bin", _texts(state, parameters))
    rate = parameters["load"]
    notes = []
    if parameters["scale"] == OF_CAPACITY:
        capacity = _capacity(state, parameters)
        rate *= capacity / 100
        notes.append(
            f"{parameters['system']}, {parameters['corpus']}, {parameters['tokens']} tokens: "
            f"100% are {capacity:,.0f} requests/s (closed loop, {CAPACITY_IN_FLIGHT} in flight)"
        )
    rate = max(1, round(rate))
    with systems.serving(state.bench, parameters["system"]) as one:
        _warm(state, one, parameters)
        rows = _load(
            state, one,
            "--rate", rate, "--arrivals", parameters["arrivals"], "--seed", repeat,
            "--requests", WARM_UP + max(1, round(rate * parameters["seconds"])),
            "--in-flight", parameters["in-flight"], "--limit", parameters["limit"],
        )  # fmt: skip
    return Raw(rows, [one.note, *notes])


def report(state: State, parameters: dict[str, Any], raw: Raw) -> Report:
    pieces = _texts(state, parameters)
    counts = dict.fromkeys(COUNTS, 0)
    trips, since_sent, late = Samples(), Samples(), Samples()
    ids = 0
    begin, last = (int(raw.rows[at]["intended_ns"]) for at in (0, -1))
    # Includes the gap after the last request.
    window = (last - begin) * len(raw.rows) / max(1, len(raw.rows) - 1)
    end = begin + window
    for row in raw.rows:
        if row["sent_ns"]:
            late.add(int(row["sent_ns"]) - int(row["intended_ns"]))
    for row in load.right(raw.rows, counts):
        intended, ns = int(row["intended_ns"]), int(row["ns"])
        trips.add(ns)
        since_sent.add(intended + ns - int(row["sent_ns"]))
        ids += len(pieces[int(row["index"]) % len(pieces)].ids)
        end = max(end, intended + ns)
    if not len(trips):
        raise OSError(f"none of {len(raw.rows)} requests was answered: {counts}")
    took = end - begin
    return Report(
        values={
            "rate": 1e9 * len(trips) / took,
            "achieved": 100 * len(trips) / len(raw.rows) * window / took,
            "throughput": 1000 * ids / took,
        },
        samples={"round-trip": trips, "since-sent": since_sent, "late": late},
        counts=counts,
        ids_checked=ids,
        notes=raw.notes,
    )
