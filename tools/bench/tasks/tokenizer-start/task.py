# SPDX-License-Identifier: BSD-3-Clause
"""What a fresh process takes to load a vocabulary and for its first text; what a call takes at
least."""

import statistics
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from bench.baseline import engines
from bench.lab.cpus import WORKER_CPU
from bench.process import json_of
from bench.programs import TOK
from bench.task import Choice, Context, Missing, Report, Value, WrongIds, need
from bench.texts import encode_texts, slices

HELP = (
    "A fresh process on one CPU. load: the vocabulary, modules imported and files in the page cache; "
    "first: the first text, of 128 tokens; warm: the median of 200 texts, never seen, after as many "
    "others; empty, letter: calls with an empty text and with the text a, each many times. libtok: in "
    "C."
)
PY_ENGINES = {"libtok-python": "libtok"} | {n: n for n in engines.LOADERS if n != "libtok"}
PARAMETERS = {
    "vocabulary": Choice(encode_texts.VOCABULARIES),
    "file": Choice(("tokenizer.json", "tokv"), "tokenizer.json, or what the engine reads instead"),
    "engine": Choice(("libtok", *PY_ENGINES), "who encodes"),
}
METRICS = {
    "load": Value("ms"),
    "first": Value("us"),
    "warm": Value("us"),
    "first/warm": Value("times"),
    "empty": Value("ns"),
    "letter": Value("ns"),
}
COUNTS: dict[str, str] = {}
CHECKS_IDS = True
TOKENS, TEXTS, TINY = 128, 400, 1000
LIMIT_S = 120.0


@dataclass(frozen=True)
class Made:
    """Of a vocabulary."""

    vocabulary: encode_texts.Vocabulary
    texts: Path
    tiny: Path  # TINY times nothing, as often "a"
    tokv: Path


def _make(name: str, context: Context) -> Made | str:
    vocabulary = encode_texts.try_load(name, context.folder)
    if isinstance(vocabulary, str):
        return vocabulary
    kind = encode_texts.Kind(name, "english", "tokens", TOKENS)
    _, pieces = encode_texts.cut(kind, vocabulary, TEXTS, context.corpora)
    made = Made(vocabulary, *(context.folder / f"{name}.{end}" for end in ("bin", "tiny", "tokv")))
    slices.write(made.texts, pieces)
    none, letter = (slices.Slice("", "", t, slices.as_ids(
        vocabulary.tokenizer.encode(t, add_special_tokens=False).ids)) for t in ("", "a"))  # fmt: skip
    slices.write(made.tiny, [none] * TINY + [letter] * TINY)
    need(TOK)
    subprocess.run([TOK, "vocab", "compile", vocabulary.file, "-o", made.tokv], check=True)
    return made


def prepare(context: Context) -> dict[str, Made | str]:
    names = sorted({test["vocabulary"] for test in context.tests})
    return {name: _make(name, context) for name in names}


def _in_c(file: Path, made: Made) -> dict[str, Any]:
    bench: list[str | Path] = [TOK, "bench", "--json", "--vocab", file, "--slices"]
    found = json_of([*bench, made.texts], [WORKER_CPU], LIMIT_S)
    tiny = json_of([*bench, made.tiny], [WORKER_CPU], LIMIT_S)
    again = tiny["again"]["ns"]
    empty, letter = (statistics.median(part) for part in (again[:TINY], again[TINY:]))
    return {
        "ids": found["ids"], "load_ms": found["load_ms"], "ns": found["first"]["ns"],
        "empty": empty - tiny["clock_ns"], "letter": letter - tiny["clock_ns"],
    }  # fmt: skip


def run(state: dict[str, Made | str], parameters: dict[str, Any]) -> dict[str, Any]:
    engine, made = parameters["engine"], state[parameters["vocabulary"]]
    if isinstance(made, str):
        raise Missing(made)
    ours, is_tokv = engine.startswith("libtok"), parameters["file"] == "tokv"
    if is_tokv and not ours:
        raise Missing(f"{engine} does not read .tokv")
    file = made.tokv if is_tokv else made.vocabulary.json if ours else made.vocabulary.file
    if engine == "libtok":
        return _in_c(file, made)
    if why := engines.obstacle(PY_ENGINES[engine]):
        raise Missing(why)
    asked = {
        "engine": PY_ENGINES[engine], "name": made.vocabulary.name, "file": str(file),
        "json": str(made.vocabulary.json), "texts": str(made.texts),
    }  # fmt: skip
    command = [sys.executable, "-m", "bench.baseline.start_times"]
    found = json_of(command, [WORKER_CPU], LIMIT_S, asked)
    if "wrong" in found:
        raise WrongIds(found["wrong"])
    if "missing" in found:
        raise Missing(found["missing"])
    return found


def report(_state: Any, _parameters: dict[str, Any], raw: dict[str, Any]) -> Report:
    first, warm = raw["ns"][0] / 1e3, float(np.median(raw["ns"][TEXTS // 2 :])) / 1e3
    values = {"load": raw["load_ms"], "first": first, "warm": warm, "first/warm": first / warm}
    values |= {name: raw[name] for name in ("empty", "letter")}
    return Report(values=values, ids_checked=raw["ids"])
