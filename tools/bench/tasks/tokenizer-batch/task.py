# SPDX-License-Identifier: BSD-3-Clause
"""What a tokenizer takes for many texts by one call, or for one long text, in Python."""

import re
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.baseline import engines
from bench.lab.cpus import CPUS
from bench.process import json_of
from bench.task import Choice, Context, Missing, Number, Report, Value, WrongIds
from bench.texts import encode_texts, reference, slices

HELP = (
    "1,000 sentences by one call of encode_batch, or some MB of a corpus by one call of encode; "
    "native: ids as the library gives them (arrays, where it has a choice); lists: as Python's lists. "
    "All libraries in one process, with as many CPUs as threads, taking turns in random order. "
    "first: the first call; again: the median of the later ones."
)
ENGINES = {"libtok-python": "libtok"} | {n: n for n in engines.LOADERS if n != "libtok"}
SENTENCES = 1000
PARAMETERS = {
    "vocabulary": Choice(encode_texts.VOCABULARIES),
    "corpus": Choice(encode_texts.CORPORA, "of tools/fetch-corpus"),
    "what": Choice(("sentences", "document"), "1,000 texts, or one"),
    "megabytes": Number(0.01, 10, "of the document", whole=False),
    "form": Choice(("native", "lists"), "of ids"),
    "threads": Number(1, 64, "at most"),
    "rounds": Number(2, 1000, "calls of each engine in a trial"),
    "engine": Choice((*ENGINES,), "who encodes"),
}
METRICS = {
    "first": Value("ms"),
    "again": Value("ms"),
    "throughput": Value("MB/s", "higher", "again"),
}
COUNTS: dict[str, str] = {}
CHECKS_IDS = True
LIMIT_S = 1800.0
Group = tuple[Any, ...]  # all parameters but the engine


@dataclass
class State:
    vocabularies: dict[str, encode_texts.Vocabulary | str]  # or why it is not here
    texts: dict[tuple[str, str, str, float], tuple[Path, int]]  # file of slices, bytes
    engines: dict[Group, list[str]]
    repeat: int = 0
    found: dict[Group, dict[str, Any]] = field(default_factory=dict)


def _group(parameters: dict[str, Any]) -> Group:
    return tuple(value for name, value in parameters.items() if name != "engine")


def _texts_of(parameters: dict[str, Any]) -> tuple[str, str, str, float]:
    return tuple(parameters[name] for name in ("vocabulary", "corpus", "what", "megabytes"))  # type: ignore[return-value]


def sentences(text: str) -> list[str]:
    """1,000 from all over a text, no two equal; fewer where it has no more."""
    every = dict.fromkeys(re.split(r"(?<=[.!?。])\s+|\n+", text))
    good = [one for one in every if 20 <= len(one) <= 400]
    return good[:: max(1, len(good) // SENTENCES)][:SENTENCES]


def _cut(corpus: str, what: str, megabytes: float) -> list[str]:
    text = encode_texts.corpus(corpus)
    if what == "sentences":
        return sentences(text)
    return [text.encode()[: int(megabytes * 1e6)].decode("utf-8", "ignore")]


def prepare(context: Context) -> State:
    names = sorted({test["vocabulary"] for test in context.tests})
    state = State({name: encode_texts.try_load(name, context.folder) for name in names}, {}, {})
    for test in context.tests:
        engine, vocabulary = ENGINES[test["engine"]], state.vocabularies[test["vocabulary"]]
        if engines.obstacle(engine) is None:
            several = state.engines.setdefault(_group(test), [])
            several += [engine] * (engine not in several)
        key = _texts_of(test)
        if key in state.texts or isinstance(vocabulary, str):
            continue
        context.log(f"tokenizer-batch: ids of {' '.join(map(str, key))} MB")
        pieces = _cut(*key[1:])
        ids = [reference.ids(vocabulary.tokenizer, piece) for piece in pieces]
        path = context.folder / f"{len(state.texts)}.bin"
        slices.write(path, map(slices.Slice, pieces, pieces, pieces, map(slices.as_ids, ids)))
        state.texts[key] = path, sum(len(piece.encode()) for piece in pieces)
    return state


def _measure(state: State, parameters: dict[str, Any], repeat: int) -> dict[str, Any]:
    vocabulary = state.vocabularies[parameters["vocabulary"]]
    assert not isinstance(vocabulary, str)
    asked = {
        "engines": state.engines[_group(parameters)], "name": vocabulary.name,
        "file": str(vocabulary.file), "json": str(vocabulary.json),
        "texts": str(state.texts[_texts_of(parameters)][0]), "form": parameters["form"],
        "threads": parameters["threads"], "rounds": parameters["rounds"], "seed": repeat,
    }  # fmt: skip
    threads = parameters["threads"]
    several = {
        "RAYON_NUM_THREADS": str(threads),
        "TOKENIZERS_PARALLELISM": str(threads > 1).lower(),
    }
    command = [sys.executable, "-m", "bench.baseline.batch_times"]
    return json_of(command, CPUS[-threads:], LIMIT_S, asked, **several)


def run(state: State, parameters: dict[str, Any], repeat: int) -> dict[str, Any]:
    """The first test of a group in a repeat measures for all of it."""
    engine, group = ENGINES[parameters["engine"]], _group(parameters)
    vocabulary = state.vocabularies[parameters["vocabulary"]]
    if isinstance(vocabulary, str):
        raise Missing(vocabulary)
    if why := engines.obstacle(engine):
        raise Missing(why)
    if parameters["threads"] > len(CPUS):
        raise Missing(f"{parameters['threads']} threads want as many CPUs: {len(CPUS)} are here")
    if state.repeat != repeat:
        state.found.clear()
        state.repeat = repeat
    if group not in state.found:
        state.found[group] = _measure(state, parameters, repeat)
    found = state.found[group][engine]
    if "wrong" in found:
        raise WrongIds(found["wrong"])
    if "missing" in found:
        raise Missing(found["missing"])
    return found


def report(state: State, parameters: dict[str, Any], raw: dict[str, Any]) -> Report:
    first, *later = raw["ns"]
    again = sorted(later)[len(later) // 2]
    size = state.texts[_texts_of(parameters)][1]
    values = {"first": first / 1e6, "again": again / 1e6, "throughput": size * 1e3 / again}
    return Report(values=values, ids_checked=raw["ids"])
