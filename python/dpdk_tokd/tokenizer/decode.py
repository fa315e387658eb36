# SPDX-License-Identifier: BSD-3-Clause
"""Ids to text, also in pieces."""

from __future__ import annotations

import codecs
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from .._native import libtok
from .batch import ID_MAX, Ids, NDArray

IdsLike: TypeAlias = Sequence[int] | NDArray[np.integer]
Kept: TypeAlias = NDArray[np.bool_]


class IdRangeError(ValueError):
    """A number that is no unsigned 32-bit one."""


def ids_for(ids: IdsLike) -> Ids:
    """`ids` as libtok reads them. ValueError for what is not a flat list of ids."""
    array = np.asarray(ids)
    if array.size == 0:
        return np.empty(0, dtype=np.uint32)
    if array.ndim == 1 and array.dtype == object and all(isinstance(id, int) for id in array):
        if min(array) < 0 or max(array) > ID_MAX:
            raise IdRangeError(f"ids: {max(array, key=abs)} is not an unsigned 32-bit number")
        array = array.astype(np.uint32)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        got = f"shape {array.shape}, {array.dtype}" if array.shape else type(ids).__name__
        raise ValueError(f"ids: expected a flat sequence of integers, got {got}")
    if array.dtype != np.uint32:
        low, high = int(array.min()), int(array.max())
        if low < 0 or high > ID_MAX:
            raise IdRangeError(f"ids: {low if low < 0 else high} is not an unsigned 32-bit number")
    return np.require(array, np.uint32, ["C", "ALIGNED"])


def kept_but(special: Ids) -> Kept:
    """By id, whether `without` keeps it; the last one stands for all ids after it."""
    kept = np.ones(max(special.tolist(), default=-1) + 2, dtype=bool)
    kept[special] = False
    return kept


def without(ids: Ids, kept: Kept | None) -> Ids:
    """`ids` but the special ones; None: all of them."""
    return ids if kept is None else ids[kept.take(ids, mode="clip")]


class DecodeStream:
    """Ids on their way to text, never with part of a character. Made by
    `Tokenizer.decode_stream()`; one thread at a time."""

    def __init__(self, stream: libtok.DecodeStream, kept: Kept | None) -> None:
        self._stream = stream
        self._kept = kept
        self._text = codecs.getincrementaldecoder("utf-8")("replace")

    def feed(self, ids: IdsLike) -> str:
        """Text of `ids` up to the last whole character. ids, ValueError: as in
        `Tokenizer.decode`."""
        array = without(ids_for(ids), self._kept)
        return self._text.decode(self._stream.feed(array, False))

    def finish(self) -> str:
        """End the ids. Returns what is left: U+FFFD for part of a character."""
        left = self._stream.feed(np.empty(0, dtype=np.uint32), True)
        return self._text.decode(left, True)
