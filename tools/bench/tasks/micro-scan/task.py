# SPDX-License-Identifier: BSD-3-Clause
"""Speed of the pretoken scanner on one core, beside libc's memchr and a plain loop."""

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import regex
from bench.lab import micro
from bench.programs import TOKD_MICRO
from bench.task import Choice, Context, Missing, Number, Report, Value, WrongIds, need
from bench.texts import fetch_corpus
from bench.texts.reference import GPT2_PATTERN
from dpdk_tokd.fetch import vocabs
from dpdk_tokd.fetch.packages import data_home

HELP = (
    "One core scans the end of a corpus repeatedly. pretokens: starts of GPT-2's pretokens, by the "
    "tokenizer's scanner; loop: borders between letters, digits, white space and the rest, byte by "
    "byte; memchr-blanks: each blank, by libc; memchr-none: one search for an absent byte. Number "
    "and positions are compared with those of Python's regex and NumPy."
)
CORPORA = ("english", "code", "multi")
UTF8_MOST = 4  # bytes of a character: an incomplete first one is dropped
PARAMETERS = {
    "corpus": Choice(CORPORA, "of tools/fetch-corpus"),
    "how": Choice(("pretokens", "loop", "memchr-blanks", "memchr-none")),
    "kib": Number(1, 8192, "of text"),
    "ms": Number(1, 60_000, "of each trial, at least"),
}
METRICS = {"rate": Value("GB/s", better="higher"), "found": Value("M/s", better="higher")}
COUNTS: dict[str, str] = {}
CHECKS_IDS = False


@dataclass(frozen=True)
class State:
    vocab: Path
    files: dict[tuple[str, int], Path]
    right: dict[tuple[str, int, str], tuple[int, int]]  # number and sum of positions


def classes() -> np.ndarray:
    """Class of each byte: letters and non-ASCII, digits, white space, the rest."""
    kinds = np.zeros(256, np.uint8)
    kinds[0x80:] = 3
    for which, some in ((3, "az"), (3, "AZ"), (2, "09"), (1, "\t\r"), (1, "  ")):
        kinds[ord(some[0]) : ord(some[1]) + 1] = which
    return kinds


def places(how: str, text: bytes) -> np.ndarray:
    data = np.frombuffer(text, np.uint8)
    if how == "loop":
        kinds = classes()[data]
        return np.flatnonzero(np.diff(kinds, prepend=np.uint8(255)))
    if how == "pretokens":
        whole = text.decode()
        starts = [match.start() for match in regex.finditer(GPT2_PATTERN, whole)]
        lengths = [len(whole[a:b].encode()) for a, b in pairwise(starts)]
        return np.cumsum([0, *lengths])
    return np.flatnonzero(data == (ord(" ") if how == "memchr-blanks" else 0))


def prepare(context: Context) -> State:
    need(TOKD_MICRO)
    vocab = vocabs.fetch("gpt2", data_home() / "vocab")
    corpora = context.corpora or fetch_corpus.fetch(data_home() / "corpus")
    state = State(vocab, {}, {})
    for test in context.tests:
        corpus, kib, how = test["corpus"], test["kib"], test["how"]
        text = corpora[corpus].read_bytes()[-(kib << 10) :].decode("utf-8", "ignore").encode()
        path = state.files[corpus, kib] = context.folder / f"{corpus}-{kib}"
        path.write_bytes(text)
        found = places(how, text)
        state.right[corpus, kib, how] = len(found), int(found.sum())
    return state


def run(state: State, parameters: dict[str, Any]) -> dict[str, Any]:
    text = state.files[parameters["corpus"], parameters["kib"]]
    size, wanted = text.stat().st_size, parameters["kib"] << 10
    if size + UTF8_MOST <= wanted:
        raise Missing(f"the corpus has only {size:,} of {wanted:,} bytes")
    given = {"how": parameters["how"], "text": str(text), "vocab": str(state.vocab)}
    return micro.run("scan", parameters["ms"], **given)


def report(state: State, parameters: dict[str, Any], raw: dict[str, Any]) -> Report:
    right = state.right[parameters["corpus"], parameters["kib"], parameters["how"]]
    if (raw["found"], raw["sum"]) != right:
        raise WrongIds(f"{raw['found']:,} found, at other places than the {right[0]:,} there are")
    ns = raw["ns"] / raw["times"]
    return Report(values={"rate": raw["bytes"] / ns, "found": 1000 * raw["found"] / ns})
