# SPDX-License-Identifier: BSD-3-Clause
"""Bytes that wait for their ids, after each byte of a text that is fed byte by byte."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dpdk_tokd
import numpy as np
from bench.task import Choice, Context, Missing, Number, Report, Value
from bench.tasks import waiting_texts
from bench.texts.encode_texts import NOT_FETCHED, NoVocabulary, own_json
from dpdk_tokd.fetch.packages import data_home

HELP = (
    "A libtok stream is fed a text byte by byte; after each byte it reports how many bytes wait for "
    "their ids: median, 99th percentile, maximum. If more would wait than a stream can hold, the "
    "text ends there. gpt2-greedy: longest match instead of merges. Vocabularies are found as "
    "dpdk-tokd finds them."
)
FAMILIES = (
    *("gpt2", "cl100k_base", "llama3", "qwen3", "o200k_base", "tekken", "deepseek"),
    *("bert-base-uncased", "mistral", "gemma3", "t5", "umt5", "xlmr", "gpt2-greedy"),
)
PARAMETERS = {
    "text": Choice(waiting_texts.NAMES, "of the corpora, or made so that bytes wait"),
    "vocabulary": Choice(FAMILIES),
    "bytes": Number(1000, waiting_texts.REAL, "of a text, at most"),
}
METRICS = {"p50": Value("bytes"), "p99": Value("bytes"), "most": Value("bytes")}
COUNTS = {"ended": "texts that ended because too many bytes would have waited"}
CHECKS_IDS = False


def load(name: str, to: Path) -> dpdk_tokd.Tokenizer | str:
    """The vocabulary, or why it cannot be loaded."""
    plain = name.removesuffix("-greedy")
    try:
        found = own_json(plain, to) if plain in NOT_FETCHED else plain
        return dpdk_tokd.Tokenizer.load(found, algo="greedy" if plain != name else None)
    except (NoVocabulary, ValueError) as wrong:
        return str(wrong)


def waiting(tokenizer: dpdk_tokd.Tokenizer, text: bytes) -> np.ndarray:
    """Bytes that wait after each byte of `text`, up to where the stream ends."""
    stream = tokenizer.stream(tokens_in_text="not-special")
    counts = np.empty(len(text), dtype=np.uint32)
    for i in range(len(text)):
        try:
            stream.feed(text[i : i + 1])
        except ValueError:
            return counts[:i]
        counts[i] = stream.waiting
    return counts


@dataclass(frozen=True)
class State:
    texts: dict[str, bytes]
    vocabularies: dict[str, dpdk_tokd.Tokenizer | str]


def prepare(context: Context) -> State:
    if not (corpus := data_home() / "corpus").is_dir():
        raise Missing(f"{corpus} is missing: run tools/fetch-corpus")
    names = dict.fromkeys(test["vocabulary"] for test in context.tests)
    return State(
        dict(waiting_texts.every(corpus)), {name: load(name, context.folder) for name in names}
    )


def run(state: State, parameters: dict[str, Any]) -> tuple[np.ndarray, bool]:
    tokenizer, name = state.vocabularies[parameters["vocabulary"]], parameters["text"]
    if isinstance(tokenizer, str):
        raise Missing(tokenizer)
    if name in waiting_texts.BEGUN:
        text = dict(waiting_texts.begun(tokenizer))[name]
    else:
        text = state.texts[name]
    some = text[: parameters["bytes"]]
    counts = waiting(tokenizer, some)
    return counts, len(counts) < len(some)


def report(_state: State, _parameters: dict[str, Any], raw: tuple[np.ndarray, bool]) -> Report:
    counts, ended = raw
    p50, p99 = np.percentile(counts, [50, 99])
    return Report(
        values={"p50": float(p50), "p99": float(p99), "most": int(counts.max())},
        counts={"ended": int(ended)},
    )
