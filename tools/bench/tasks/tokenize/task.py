# SPDX-License-Identifier: BSD-3-Clause
"""Time of a tokenizer's call, in the process that has the text, on one CPU."""

import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.baseline import encode_times, engines
from bench.lab.cpus import WORKER_CPU
from bench.process import Ended, json_of
from bench.programs import TOK
from bench.samples import Samples
from bench.task import Choice, Context, Distribution, Missing, Number, Report, Value, WrongIds, need
from bench.texts import encode_texts, slices
from bench.texts.encode_texts import CORPORA, UNITS, VOCABULARIES, Kind, Vocabulary

PIECE = 1400  # bytes; about what a packet brings
HELP = (
    "From a text in memory to its ids in memory, by one call on one CPU: no network, no other thread. "
    "ns-per-byte: all calls' time by all texts' bytes; clock: the time to read the clock, which is in "
    "each call. seen first: no text was seen by the process before, but for 32 KB to warm up; again: "
    "all were, once. libtok: by its C API (tok bench), a process of its own; libtok-pieces: the same, "
    f"fed in pieces of {PIECE} bytes; libtok-greedy: the longest match instead of merges. The others "
    "are Python packages, libtok-python ours: in one process, taking turns in random order, each "
    "by its fastest call, with texts and ids as it takes and gives them."
)
C_ENGINES = {
    "libtok": [],
    "libtok-pieces": ["--split", str(PIECE)],
    "libtok-greedy": ["--algo", "greedy"],
}
PY_ENGINES = {"libtok-python": "libtok"} | {
    name: name for name in engines.LOADERS if name != "libtok"
}
PARAMETERS = {
    "vocabulary": Choice(VOCABULARIES, "of tools/fetch-vocab, or as encode_texts.py says"),
    "corpus": Choice(CORPORA, "of tools/fetch-corpus; mixed: its documents interleaved"),
    "unit": Choice(UNITS, "of length"),
    "length": Number(4, 1 << 24, "of a text"),
    "engine": Choice((*C_ENGINES, *PY_ENGINES), "that encodes"),
    "seen": Choice(("first", "again"), "text new to the process, or seen once"),
    "calls": Number(1, 20_000, "of a trial, at most"),
    "megabytes": Number(0.001, 100, "of text per trial, at most; at least one text", whole=False),
    "seconds": Number(0.1, 3600, "an engine that would take longer is skipped", whole=False),
}
METRICS = {
    "call": Distribution("us"),
    "ns-per-byte": Value("ns"),
    "clock": Value("ns"),
}
COUNTS: dict[str, str] = {}
CHECKS_IDS = True
START_S = 60.0  # a process loads its vocabulary and warms up
WRONG = 3  # tok bench's exit code


@dataclass(frozen=True)
class Texts:
    warm_up: Path
    path: Path
    count: int
    bytes: int


Group = tuple[Kind, int]  # texts, and how many of them are asked for


@dataclass
class State:
    vocabularies: dict[str, Vocabulary | str]  # or why it is not here
    texts: dict[tuple[Kind, int, bool], Texts]  # of a group; True: with greedy ids
    engines: dict[Group, list[str]]  # those of PY_ENGINES, which are timed together
    repeat: int = 0
    # Of this repeat, by group, seconds, and the engine in C or "" for all in Python: what came of
    # it.
    found: dict[tuple[Group, float, str], dict[str, Any]] = field(default_factory=dict)


def _group(parameters: dict[str, Any]) -> Group:
    kind = Kind(*(parameters[name] for name in ("vocabulary", "corpus", "unit", "length")))
    return kind, encode_texts.how_many(kind, parameters["calls"], parameters["megabytes"])


def _is_greedy(parameters: dict[str, Any]) -> bool:
    return parameters["engine"] == "libtok-greedy" and parameters["vocabulary"] == "gpt2"


def _keep(folder: Path, warm_up: list[slices.Slice], pieces: list[slices.Slice]) -> Texts:
    folder.mkdir()
    found = Texts(
        folder / "warm-up.bin", folder / "texts.bin", len(pieces),
        sum(len(piece.text.encode()) for piece in pieces),
    )  # fmt: skip
    slices.write(found.warm_up, warm_up)
    slices.write(found.path, pieces)
    return found


def _together(tests: list[dict[str, Any]]) -> dict[Group, list[str]]:
    """Of each group the engines in Python that are here."""
    found: dict[Group, dict[str, None]] = {}
    for test in tests:
        engine = PY_ENGINES.get(test["engine"])
        if engine is not None and engines.obstacle(engine) is None:
            found.setdefault(_group(test), {})[engine] = None
    return {group: list(several) for group, several in found.items()}


def prepare(context: Context) -> State:
    """Texts and their ids, on which a second reference must agree where there is one."""
    wanted = dict.fromkeys(map(_group, context.tests))
    greedy = {_group(test) for test in context.tests if _is_greedy(test)}
    names = sorted({kind.vocabulary for kind, _ in wanted})
    loaded = {name: encode_texts.try_load(name, context.folder) for name in names}
    texts: dict[tuple[Kind, int, bool], Texts] = {}
    for at, (kind, count) in enumerate(wanted):
        vocabulary = loaded[kind.vocabulary]
        if isinstance(vocabulary, str):
            continue
        context.log(
            f"tokenize: cutting {count:,} texts of {kind.length:,} {kind.unit}: "
            f"{kind.corpus}, {kind.vocabulary}"
        )
        found = encode_texts.cut(kind, vocabulary, count, context.corpora)
        texts[kind, count, False] = _keep(context.folder / str(at), *found)
        if (kind, count) in greedy and (definition := vocabulary.greedy):
            other = (encode_texts.greedy(part, definition) for part in found)
            texts[kind, count, True] = _keep(context.folder / f"{at}-greedy", *other)
    return State(loaded, texts, _together(context.tests))


def _in_c(engine: str, vocabulary: Vocabulary, texts: Texts, seconds: float) -> dict[str, Any]:
    need(TOK)
    command = [str(TOK), "bench", "--json", "--vocab", str(vocabulary.file), *C_ENGINES[engine]]
    command += ["--warm-up", str(texts.warm_up), "--slices", str(texts.path)]
    try:
        found = json_of(command, [WORKER_CPU], START_S + 10 * seconds)
    except Ended as error:
        if error.code != WRONG:
            raise
        return {engine: {"wrong": error.said}}
    found["ids"] *= len(encode_times.PASSES)
    return {engine: found}


def _in_python(
    several: list[str], vocabulary: Vocabulary, texts: Texts, seconds: float, repeat: int
) -> dict[str, Any]:
    asked = {
        "engines": several, "name": vocabulary.name, "file": str(vocabulary.file),
        "json": str(vocabulary.json), "warm_up": str(texts.warm_up), "texts": str(texts.path),
        "seconds": seconds, "seed": repeat,
    }  # fmt: skip
    command = [sys.executable, "-m", "bench.baseline.encode_times"]
    return json_of(command, [WORKER_CPU], (START_S + 10 * seconds) * len(several), asked)


def run(state: State, parameters: dict[str, Any], repeat: int = 1) -> dict[str, Any]:
    """The first test of a group in a repeat measures for all of it."""
    engine, group, greedy = parameters["engine"], _group(parameters), _is_greedy(parameters)
    (kind, count), seconds = group, parameters["seconds"]
    vocabulary = state.vocabularies[kind.vocabulary]
    if isinstance(vocabulary, str):
        raise Missing(vocabulary)
    if engine == "libtok-greedy" and not greedy:
        raise Missing(f"{engine} is run for BPE alone")
    if engine in PY_ENGINES and (why := engines.obstacle(PY_ENGINES[engine])):
        raise Missing(why)
    texts = state.texts[kind, count, greedy]
    if texts.count < count:
        raise Missing(f"the corpus {kind.corpus} has only {texts.count} of {count} texts")
    if state.repeat != repeat:
        state.found.clear()
        state.repeat = repeat
    key = group, seconds, engine if engine in C_ENGINES else ""
    if key not in state.found:
        if engine in C_ENGINES:
            state.found[key] = _in_c(engine, vocabulary, texts, seconds)
        else:
            several = state.engines[group]
            state.found[key] = _in_python(several, vocabulary, texts, seconds, repeat)
    found = state.found[key][PY_ENGINES.get(engine, engine)]
    if "wrong" in found:
        raise WrongIds(found["wrong"])
    if "missing" in found:
        raise Missing(found["missing"])
    return found | {"bytes": texts.bytes}


def report(_state: State, parameters: dict[str, Any], raw: dict[str, Any]) -> Report:
    calls, took = Samples(), raw[parameters["seen"]]["ns"]
    for ns in took:
        calls.add(ns)
    engine = parameters["engine"]
    return Report(
        values={"ns-per-byte": sum(took) / raw["bytes"], "clock": raw["clock_ns"]},
        samples={"call": calls},
        ids_checked=raw["ids"],
        notes=[f"{engine}: by its {raw['how']}"] if engine in PY_ENGINES else [],
    )
