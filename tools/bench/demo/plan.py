# SPDX-License-Identifier: BSD-3-Clause
"""The requests: slices cut from the corpora, in rounds between which the servers alternate."""

from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import chain, zip_longest
from pathlib import Path

from bench.texts.reference import load_gpt2
from bench.texts.slices import Slice, cut

WARM_UP = 8  # requests at the start of a round, checked but not measured: caches are cold
ROUND = 600  # requests; their ids fit the token ring while its reader is stopped


@dataclass(frozen=True)
class Round:
    slices: list[Slice]
    first_id: int  # stream id of the first
    again: bool  # all of it was sent before


def _cut(ranks: Path, per_size: int, corpus: tuple[str, Path]) -> list[Slice]:
    tokenizer = load_gpt2(ranks)
    name, path = corpus
    return cut(name, path.read_text(encoding="utf-8"), tokenizer, per_size)


def cut_all(corpora: dict[str, Path], ranks: Path, per_size: int) -> list[Slice]:
    """`per_size` slices of each corpus and size, interleaved."""
    with ProcessPoolExecutor(2) as pool:
        cuts = list(pool.map(partial(_cut, ranks, per_size), corpora.items()))
    by_turns = zip_longest(*cuts)
    return [piece for piece in chain.from_iterable(by_turns) if piece is not None]


def _split(slices: list[Slice]) -> Iterator[list[Slice]]:
    """At least two rounds of about equal length."""
    count = max(2, -(-len(slices) // ROUND))
    for i in range(count):
        yield slices[i * len(slices) // count : (i + 1) * len(slices) // count]


def rounds(slices: list[Slice]) -> list[Round]:
    """All slices once, then the last round again."""
    plan: list[Round] = []
    next_id = 1
    parts = list(_split(slices))
    for part in parts:
        plan.append(Round(part, next_id, again=False))
        next_id += len(part)
    plan.append(Round(parts[-1], next_id, again=True))
    return plan
