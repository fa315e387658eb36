# SPDX-License-Identifier: BSD-3-Clause
"""Ids and offsets of a text as arrays, for programs that send them on: nothing is made a token."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from .encoding import blanks
from .tokenizer import HFTokenizer, in_characters

Ids = npt.NDArray[np.uint32]
Offsets = npt.NDArray[np.uint64]


class ArrayEncoder:
    """What `HFTokenizer.encode` gives in lists, for one that is not changed any more and neither
    truncates nor pads."""

    def __init__(self, hf: HFTokenizer) -> None:
        self._hf = hf
        self._tokenizer = hf._tokenizer
        self._prefix = None if hf._processor is None else hf._processor.trim
        if self._prefix is not None:
            ids = range(len(self._tokenizer))
            spelled = [hf.id_to_token(id) or "" for id in ids]
            self._leading = np.array([blanks(token) for token in spelled], np.uint64)
            self._trailing = np.array([blanks(reversed(token)) for token in spelled], np.uint64)
            # Tokens whose blanks are those of the text.
            self._as_text = np.isin(ids, [*hf._spelled_as_text - {None}])

    def encode(self, text: str, add_special_tokens: bool = True) -> tuple[Ids, Offsets]:
        """Offsets count characters, shape (n, 2). Errors are those of `Tokenizer.encode`."""
        ids, ranges = self._tokenizer.encode(
            text, add_special_tokens=add_special_tokens, return_offsets=True
        )
        offsets = in_characters(text, ranges)
        if self._prefix is None:
            return ids, offsets
        if self._as_text[ids].any():
            return self._of_lists(text, add_special_tokens)
        return ids, self._trimmed(ids, offsets, self._prefix)

    def _of_lists(self, text: str, add_special_tokens: bool) -> tuple[Ids, Offsets]:
        found = self._hf.encode(text, add_special_tokens=add_special_tokens)
        offsets = np.array(found.offsets, np.uint64).reshape(-1, 2)
        return np.array(found.ids, np.uint32), offsets

    def _trimmed(self, ids: Ids, offsets: Offsets, prefix: bool) -> Offsets:
        """As `encoding.trimmed` does with one."""
        begin, end = offsets[:, 0], offsets[:, 1]
        leading, trailing = self._leading[ids], self._trailing[ids]
        if prefix:
            leading[(begin == 0) & (leading == 1)] = 0
        begin = np.minimum(begin + leading, end)
        end = np.where(end >= trailing, np.maximum(end - trailing, begin), end)
        return np.stack((begin, end), axis=1)
