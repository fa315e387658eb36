# SPDX-License-Identifier: BSD-3-Clause
"""Ids to text in pieces, where nothing is kept between the pieces but what the client carries.

What is carried is a window of the last tokens, as vLLM carries it: `tokens` are spelled as the
vocabulary does; the text of those before `read` is given out, those before `prefix` are gone. Text
is given out once it does not end within a character.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeGuard

from .models import Model

UNFINISHED_MAX = 64  # tokens that wait for the rest of a character, which has 4 at most
BEFORE = 5  # tokens of a prompt that its answer is decoded with
UNFINISHED = "\ufffd"


@dataclass(slots=True)
class Window:
    tokens: list[str]
    prefix: int = 0
    read: int = 0

    def feed(self, model: Model, ids: list[int], skip_special: bool) -> str:
        """The text that they add; ids that are not in the vocabulary have none."""
        decode = model.hf.decode_tokens
        found = []
        before = decode(self.tokens[self.prefix : self.read])
        for id in ids:
            self.tokens += model.spelled([id], skip_special)
            text = decode(self.tokens[self.prefix :])
            finished = len(text) > len(before) and not text.endswith(UNFINISHED)
            if finished or len(self.tokens) - self.read > UNFINISHED_MAX:
                found.append(text[len(before) :])
                self.prefix, self.read = self.read, len(self.tokens)
                before = decode(self.tokens[self.prefix : self.read])
            self.tokens = self.tokens[self.prefix :]
            self.read -= self.prefix
            self.prefix = 0
        return "".join(found)


def fits(text: str | None) -> TypeGuard[str]:
    """Is the text of ids' bytes what a Window gives? It has no parts of characters."""
    return text is not None and UNFINISHED not in text


@dataclass(slots=True)
class Said:
    """All ids of an answer to a prompt."""

    model: Model
    prompt: list[int] | None
    ids: list[int]
    skip_special: bool

    def joined(self) -> list[int]:
        """The ids whose bytes are the text, if that fits. None of them where the text depends on
        what stands before (the vocabulary is of such a kind, or the prompt ends in a character),
        or where an id is not in the vocabulary."""
        model, before = self.model, self._before()
        prompt = model.hf.decode_tokens(before.tokens[before.prefix :])
        joins = model.hf.joins_bytes and not prompt.endswith(UNFINISHED)
        ids = model.without_special(self.ids, self.skip_special) if joins else []
        return ids if model.knows(ids) else []

    def text(self) -> str:
        ids = self.joined()
        text = self.model.hf.decode(ids, False) if ids else None
        return text if fits(text) else self.by_window()

    def by_window(self) -> str:
        return self._before().feed(self.model, self.ids, self.skip_special)

    def _before(self) -> Window:
        return after_prompt(self.model, self.prompt, self.skip_special)


def after_prompt(model: Model, prompt: list[int] | None, skip_special: bool) -> Window:
    if not prompt:
        return Window([])
    tokens = model.spelled(prompt[-BEFORE - 2 :], skip_special)
    return Window(tokens, max(len(tokens) - BEFORE, 0), len(tokens))
