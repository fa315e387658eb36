# SPDX-License-Identifier: BSD-3-Clause
"""Texts of mixed lengths with the reference's ids, checked against tiktoken."""

import random
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from functools import cache, partial
from itertools import chain
from pathlib import Path

import numpy as np
from dpdk_tokd.fetch import vocabs
from dpdk_tokd.fetch.packages import data_home
from tokenizers import Tokenizer

from bench.texts import fetch_corpus, reference
from bench.texts.slices import Cursor, EndOfCorpus, Slice

# Tokens of a text, and its share of texts in percent: most are short.
MIX = {16: 40, 32: 20, 64: 15, 128: 12, 512: 8, 1024: 3, 2048: 2}
CHARACTERS_A_TOKEN = 5  # about the most, to space the texts
SEED = 7


def lengths(count: int, mix: dict[int, int]) -> list[int]:
    """Each length with its share, at least once, shuffled with a fixed seed."""
    share = sum(mix.values())
    found = [n for n, parts in mix.items() for _ in range(max(1, count * parts // share))]
    random.Random(SEED).shuffle(found)
    return found


@cache
def _tokenizer(ranks: Path) -> Tokenizer:
    """Cached, so that forked processes have it."""
    return reference.load_gpt2(ranks)


def _cut(ranks: Path, wanted: list[int], corpus: tuple[str, Path]) -> list[Slice]:
    name, path = corpus
    tokenizer = _tokenizer(ranks)
    text = path.read_text(encoding="utf-8")
    spare = len(text) - CHARACTERS_A_TOKEN * sum(wanted)
    cursor = Cursor(text, skip=max(0, spare // len(wanted)))
    found = []
    for count in wanted:
        try:
            piece = cursor.tokens(tokenizer, count)
        except EndOfCorpus:
            break
        right = np.array(reference.ids(tokenizer, piece), dtype=np.uint32)
        found.append(Slice(name, str(count), piece, right))
    return found


def cut(
    count: int, mix: dict[int, int], own: Mapping[str, Path] | None = None
) -> tuple[Path, list[Slice], int]:
    """The vocabulary; about `count` texts of all corpora, without overlaps; and the bytes of text
    on which the second reference agreed. `own`: the user's corpora."""
    vocab = vocabs.fetch("gpt2", data_home() / "vocab")
    corpora = own or fetch_corpus.fetch(data_home() / "corpus")
    wanted = lengths(count // len(corpora), mix)
    tokenizer = _tokenizer(vocab)
    with ProcessPoolExecutor(2) as pool:
        parts = list(pool.map(partial(_cut, vocab, wanted), corpora.items()))
    pieces = list(chain.from_iterable(parts))
    random.Random(SEED).shuffle(pieces)
    checked = (piece.text for piece in reference.some(pieces))
    agreed = reference.verify(tokenizer, vocab, checked)
    return vocab, pieces, agreed
