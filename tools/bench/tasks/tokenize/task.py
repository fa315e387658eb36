# SPDX-License-Identifier: BSD-3-Clause
"""What a tokenizer takes for a text in the process that has the text, on one CPU."""

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.baseline import encode_times, engines
from bench.lab.cpus import WORKER_CPU
from bench.process import ENDS_WITH_US
from bench.programs import TOK
from bench.samples import Samples
from bench.task import Choice, Context, Distribution, Missing, Number, Report, Value, WrongIds, need
from bench.texts import encode_texts, slices
from bench.texts.encode_texts import CORPORA, UNITS, VOCABULARIES, Kind, Vocabulary
from bench.texts.reference import ReferenceMismatch

PIECE = 1400  # bytes; about what a packet brings
HELP = (
    "From the bytes of a text (UTF-8) to its ids (32 bits each) in memory, in a process of the "
    "engine's own on one CPU: no network, no other thread. call: one text; ns-per-byte: all calls' "
    "time by all texts' bytes; clock: what reading the clock takes, which is in each call. seen "
    "first: no text was seen by the process before, but for 32 KB to warm up; again: all were, once. "
    f"libtok: by its C API; libtok-pieces: so, fed in pieces of {PIECE} bytes; libtok-greedy: the "
    "longest match instead of merges; libtok-python: by its Python package. The others are Python "
    "packages, each by its fastest call, with what turns bytes to its text and its ids to bytes."
)
C_ENGINES = {
    "libtok": [],
    "libtok-pieces": ["--split", str(PIECE)],
    "libtok-greedy": ["--algo", "greedy"],
}
PY_ENGINES = {"libtok-python": "libtok"} | {
    name: name for name in ("tokenizers", "tiktoken", "gigatoken", "python")
}
BPE_ONLY = {"libtok-greedy", "tiktoken", "gigatoken", "python"}
PARAMETERS = {
    "vocabulary": Choice(VOCABULARIES, "gpt2: byte-level BPE; bert-base-uncased: WordPiece"),
    "corpus": Choice(CORPORA, "of tools/fetch-corpus; mixed: its documents by turns"),
    "unit": Choice(UNITS, "of length"),
    "length": Number(4, 1 << 24, "of a text"),
    "engine": Choice((*C_ENGINES, *PY_ENGINES), "who encodes"),
    "seen": Choice(("first", "again"), "by the process before"),
    "calls": Number(1, 20_000, "of a trial, at most"),
    "megabytes": Number(0.001, 100, "of text of a trial, at most; one text at least", whole=False),
    "seconds": Number(0.1, 3600, "an engine that would take longer is missing", whole=False),
}
METRICS = {
    "call": Distribution("us"),
    "ns-per-byte": Value("ns"),
    "clock": Value("ns"),
}
COUNTS: dict[str, str] = {}
CHECKS_IDS = True
START_S = 60.0  # a process loads its vocabulary and warms up


@dataclass(frozen=True)
class Texts:
    warm_up: Path
    path: Path
    count: int
    bytes: int


@dataclass(frozen=True)
class State:
    vocabularies: dict[str, Vocabulary]
    texts: dict[tuple[Kind, int, bool], Texts]  # how many are asked for; True: with greedy ids


def _wanted(parameters: dict[str, Any]) -> tuple[Kind, int]:
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


def prepare(context: Context) -> State:
    """Texts and their ids, on which a second reference must agree where there is one."""
    wanted = dict.fromkeys(map(_wanted, context.tests))
    greedy = {_wanted(test) for test in context.tests if _is_greedy(test)}
    names = sorted({kind.vocabulary for kind, _ in wanted})
    loaded = {name: encode_texts.load(name, context.folder) for name in names}
    texts: dict[tuple[Kind, int, bool], Texts] = {}
    for at, (kind, count) in enumerate(wanted):
        context.say(
            f"tokenize: cutting {count:,} texts of {kind.length:,} {kind.unit}: "
            f"{kind.corpus}, {kind.vocabulary}"
        )
        try:
            found = encode_texts.cut(kind, loaded[kind.vocabulary], count, context.corpora)
        except ReferenceMismatch as error:
            raise WrongIds(str(error)) from error
        texts[kind, count, False] = _keep(context.folder / str(at), *found)
        if (kind, count) in greedy and (definition := loaded[kind.vocabulary].greedy):
            other = (encode_texts.greedy(part, definition) for part in found)
            texts[kind, count, True] = _keep(context.folder / f"{at}-greedy", *other)
    return State(loaded, texts)


def _command(state: State, parameters: dict[str, Any], texts: Texts) -> list[str]:
    engine, vocabulary = parameters["engine"], state.vocabularies[parameters["vocabulary"]]
    if engine in C_ENGINES:
        need(TOK)
        command = [str(TOK), "bench", "--vocab", str(vocabulary.file), *C_ENGINES[engine]]
        return [*command, "--warm-up", str(texts.warm_up), "--slices", str(texts.path), "--json"]
    if why := engines.obstacle(PY_ENGINES[engine]):
        raise Missing(why)
    command = [
        sys.executable,
        "-m",
        "bench.baseline.encode_times",
        PY_ENGINES[engine],
        str(vocabulary.file),
    ]
    command += [str(vocabulary.json), str(texts.warm_up), str(texts.path)]
    return [*command, parameters["seen"], str(parameters["seconds"])]


def run(state: State, parameters: dict[str, Any]) -> dict[str, Any]:
    if parameters["vocabulary"] != "gpt2" and parameters["engine"] in BPE_ONLY:
        raise Missing(f"{parameters['engine']} is run for BPE alone")
    kind, count = _wanted(parameters)
    texts = state.texts[kind, count, _is_greedy(parameters)]
    if texts.count < count:
        raise Missing(
            f"{texts.count} texts, of {count} asked for: the corpus {kind.corpus} has no more"
        )
    done = subprocess.run(
        [*ENDS_WITH_US, "taskset", "-c", str(WORKER_CPU), *_command(state, parameters, texts)],
        capture_output=True, text=True, check=False,
        timeout=START_S + 10 * parameters["seconds"],
    )  # fmt: skip
    said = done.stderr.strip().splitlines()[-1:] or ["it said nothing"]
    if done.returncode == encode_times.WRONG:
        raise WrongIds(said[0])
    if done.returncode == encode_times.LONG:
        raise Missing(said[0])
    if done.returncode != 0:
        raise OSError(f"it ended with {done.returncode}: {said[0]}")
    found = json.loads(done.stdout)
    if parameters["engine"] in C_ENGINES:  # which have both passes
        found |= {"ns": found[parameters["seen"]]["ns"]}
        found["ids"] *= 1 + (parameters["seen"] == "again")
    return found | {"bytes": texts.bytes}


def report(_state: State, parameters: dict[str, Any], raw: dict[str, Any]) -> Report:
    calls = Samples()
    for ns in raw["ns"]:
        calls.add(ns)
    engine = parameters["engine"]
    return Report(
        values={"ns-per-byte": sum(raw["ns"]) / raw["bytes"], "clock": raw["clock_ns"]},
        samples={"call": calls},
        ids_checked=raw["ids"],
        notes=[f"{engine}: by its {raw['how']}"] if engine in PY_ENGINES else [],
    )


def clean(_state: State) -> None:
    """Nothing outlasts a trial."""
