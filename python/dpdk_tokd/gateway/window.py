# SPDX-License-Identifier: BSD-3-Clause
"""Ids to text in pieces, where nothing is kept between the pieces but what the client carries.

What is carried is a window of the last tokens, as vLLM carries it: `tokens` are spelled as the
vocabulary does; the text of those before `read` is given out, those before `prefix` are gone. Text
is given out once it does not end within a character.
"""

from __future__ import annotations

from dataclasses import dataclass

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
        model.count(len(ids))
        decode = model.hf.decode_tokens
        found = []
        for id in ids:
            self.tokens += model.spelled([id], skip_special)
            before = decode(self.tokens[self.prefix : self.read])
            text = decode(self.tokens[self.prefix :])
            finished = len(text) > len(before) and not text.endswith(UNFINISHED)
            if finished or len(self.tokens) - self.read > UNFINISHED_MAX:
                found.append(text[len(before) :])
                self.prefix, self.read = self.read, len(self.tokens)
            self.tokens = self.tokens[self.prefix :]
            self.read -= self.prefix
            self.prefix = 0
        return "".join(found)


def after_prompt(model: Model, prompt: list[int] | None, skip_special: bool) -> Window:
    if not prompt:
        return Window([])
    tokens = model.spelled(prompt[-BEFORE - 2 :], skip_special)
    return Window(tokens, max(len(tokens) - BEFORE, 0), len(tokens))
