# SPDX-License-Identifier: BSD-3-Clause
"""GPT-2's tokenizer in Python alone, the way OpenAI's encoder.py and Hugging Face's GPT2Tokenizer
go: words by a regular expression, bytes spelled as characters, merges by rank, and a dictionary of
the words already merged. Without those two's checks and wrappers, which only take more time.
"""

import json
from itertools import pairwise
from pathlib import Path

import regex

from bench.texts.reference import byte_alphabet

# As they write it; the possessive one of tiktoken is faster and means the same.
PATTERN = regex.compile(
    r"""'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"""
)


class Encoder:
    def __init__(self, vocab: dict[str, int], merges: list[tuple[str, str]]) -> None:
        self._vocab = vocab
        self._ranks = {pair: rank for rank, pair in enumerate(merges)}
        self._alphabet = byte_alphabet()
        self._known: dict[str, list[int]] = {}  # ids of words; unbounded, as in the original

    @classmethod
    def load(cls, tokenizer_json: Path) -> "Encoder":
        """From Hugging Face's tokenizer.json of a byte-level BPE."""
        model = json.loads(tokenizer_json.read_text("utf-8"))["model"]
        pairs = (tuple(m.split(" ")) if isinstance(m, str) else tuple(m) for m in model["merges"])
        return cls(model["vocab"], [(left, right) for left, right in pairs])

    def _merge(self, word: str) -> list[str]:
        """Merge all pairs of the lowest rank, until no pair has one."""
        parts = list(word)
        never = len(self._ranks)
        while len(parts) > 1:
            best = min(pairwise(parts), key=lambda pair: self._ranks.get(pair, never))
            if best not in self._ranks:
                break
            merged, at = [], 0
            while at < len(parts):
                if parts[at] == best[0] and parts[at + 1 : at + 2] == [best[1]]:
                    merged.append(best[0] + best[1])
                    at += 2
                else:
                    merged.append(parts[at])
                    at += 1
            parts = merged
        return parts

    def encode(self, text: str) -> list[int]:
        ids: list[int] = []
        known, alphabet = self._known, self._alphabet
        for piece in PATTERN.findall(text):
            word = "".join([alphabet[b] for b in piece.encode()])
            found = known.get(word)
            if found is None:
                found = known[word] = [self._vocab[part] for part in self._merge(word)]
            ids += found
        return ids
