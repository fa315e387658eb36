# SPDX-License-Identifier: BSD-3-Clause
"""Slices of text with the ids they must give: cut from a corpus, written for tokd-load."""

import struct
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer

from bench.texts.reference import ids

SIZES = ("128", "512", "2048", "8KB")
BYTES_8KB = 8192


@dataclass(frozen=True)
class Slice:
    corpus: str
    size: str
    text: str
    ids: np.ndarray  # uint32


def as_ids(ids: Iterable[int]) -> np.ndarray:
    return np.array(list(ids), dtype=np.uint32)


class Cursor:
    """Cuts slices from a text, front to back, without overlaps."""

    def __init__(self, text: str, skip: int = 0) -> None:
        self.text = text
        self.at = 0
        self.skip = skip  # characters left out between two slices

    def tokens(self, tokenizer: Tokenizer, count: int) -> str:
        """About `count` tokens: as many of the window's encoding, cut between characters."""
        window = 4 * count + 64
        while True:
            text = self.text[self.at : self.at + window]
            encoding = tokenizer.encode(text, add_special_tokens=False)
            if len(encoding.ids) >= count:
                return self._take(encoding.offsets[count - 1][1])
            if self.at + window >= len(self.text):
                raise EndOfCorpus
            window *= 2

    def bytes(self, count: int) -> str:
        if self.at + count > len(self.text):
            raise EndOfCorpus
        data = self.text[self.at : self.at + count].encode()[:count]
        return self._take(len(data.decode("utf-8", "ignore")))

    def _take(self, length: int) -> str:
        start, self.at = self.at, self.at + length + self.skip
        return self.text[start : start + length]


class EndOfCorpus(Exception):
    pass


def cut(corpus: str, text: str, tokenizer: Tokenizer, per_size: int) -> list[Slice]:
    """`per_size` slices of each size, interleaved; fewer if the corpus ends.

    No two overlap and no two are equal, and they are spread over the whole corpus.
    """
    # About what a round of all sizes takes, so that few slices still come from everywhere.
    spare = len(text) - per_size * 24_000
    cursor = Cursor(text, skip=max(0, spare // (per_size * len(SIZES))))
    found: list[Slice] = []
    seen: set[str] = set()
    try:
        while len(found) < per_size * len(SIZES):
            size = SIZES[len(found) % len(SIZES)]
            if size == "8KB":
                piece = cursor.bytes(BYTES_8KB)
            else:
                piece = cursor.tokens(tokenizer, int(size))
            if piece not in seen:
                seen.add(piece)
                right = as_ids(ids(tokenizer, piece))
                found.append(Slice(corpus, size, piece, right))
    except EndOfCorpus:
        pass
    return found


def write(path: Path, slices: Iterable[Slice]) -> None:
    """The format of app/tokd-load/slices.h."""
    several = list(slices)
    with path.open("wb") as file:
        file.write(struct.pack("<I", len(several)))
        for item in several:
            text = item.text.encode()
            file.write(struct.pack("<II", len(text), len(item.ids)))
            file.write(text)
            file.write(item.ids.astype("<u4").tobytes())


def read(path: Path) -> list[tuple[bytes, np.ndarray]]:
    """Text and ids of each slice of a file."""
    data = path.read_bytes()
    (count,) = struct.unpack_from("<I", data)
    found = []
    at = 4
    for _ in range(count):
        text_len, n_ids = struct.unpack_from("<II", data, at)
        at += 8
        text = data[at : at + text_len]
        found.append((text, np.frombuffer(data, "<u4", n_ids, at + text_len)))
        at += text_len + 4 * n_ids
    return found
