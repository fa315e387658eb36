# SPDX-License-Identifier: BSD-3-Clause
"""Ids one by one to text, as `tokenizers.decoders.DecodeStream` gives it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import index
from typing import Protocol

_UNFINISHED = "\ufffd"


class Decoding(Protocol):
    def decode(self, ids: Sequence[int], skip_special_tokens: bool) -> str: ...


@dataclass
class DecodeStream:
    """`ids`: those that came before, whose text is not given out.

    Some ids are decoded again with those that follow, as blanks depend on what stands before.
    """

    ids: list[int] | None = None
    skip_special_tokens: bool = False
    _given: str = field(default="", init=False)  # text of the first _n_given of _held
    _n_given: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self._held = [] if self.ids is None else list(self.ids)

    def step(self, tokenizer: Decoding, id: int | Sequence[int]) -> str | None:
        """The text that these ids add; None: it ends within a character, or there is none.

        ValueError: with these ids the text before would be another. What `tokenizer` cannot decode
        is its error, and not kept.
        """
        if not self._given and self._held:
            before = self._decoded(tokenizer, self._held)
            if not before.endswith(_UNFINISHED):
                self._given, self._n_given = before, len(self._held)
        try:
            new_ids: Sequence[int] = [index(id)]  # type: ignore[arg-type]  # also of numpy
        except TypeError:
            new_ids = id  # type: ignore[assignment]
        held = [*self._held, *new_ids]
        text = self._decoded(tokenizer, held)
        self._held = held  # another list: a copy of this stream keeps its own
        if text.endswith(_UNFINISHED) or len(text.encode()) <= len(self._given.encode()):
            return None
        if not text.startswith(self._given):
            raise ValueError(
                f"Invalid prefix encountered while decoding stream: id {self._held[-1]}: "
                f"expected a text that begins with {self._given!r}, got {text!r}"
            )
        new = text[len(self._given) :]
        self._held = self._held[self._n_given :]
        self._n_given = len(self._held)
        self._given = self._decoded(tokenizer, self._held)
        return new

    def _decoded(self, tokenizer: Decoding, ids: list[int]) -> str:
        return tokenizer.decode(ids, self.skip_special_tokens)
