# SPDX-License-Identifier: BSD-3-Clause
"""Offsets in text that form C changes, as `tokenizers` counts them.

It takes the characters of the text in order: one that is composed stands for the first of those it
is made of, and each later one is past all of these. What libtok says, all of them, is right; this
is equal.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from functools import lru_cache

Offset = tuple[int, int]


def offsets(text: str, tokens: Sequence[bytes], begin: int) -> list[Offset] | None:
    """Of each token the characters of `text`, which begins at `begin`. None: the tokens' bytes in a
    row are not as many as its form C has in this Python, whose Unicode may be newer."""
    form = b"".join(tokens)
    if form == text.encode():
        places = [i for i, char in enumerate(text) for _ in char.encode()]
    elif len(places := _places(text)) != len(form):
        return None
    found, at = [], 0
    for token in tokens:
        end = at + len(token)
        found.append((begin + places[at], begin + places[end - 1] + 1))
        at = end
    return found


def _places(text: str) -> list[int]:
    """For each byte of its form C, the index of a character of `text`."""
    places: list[int] = []
    at = 0
    for char, n in _composed(_decomposed(text)):
        place = at if n > 0 else max(at - 1, 0)  # one more of the last character
        at += n
        places += [place] * len(char.encode())
    return places


@lru_cache(maxsize=4096)
def _form_d(char: str) -> str:
    return unicodedata.normalize("NFD", char)


def _decomposed(text: str) -> Iterator[tuple[str, int]]:
    """Characters of form D, each with how many of `text` it stands for: the first of those that one
    decomposes to counts for it."""
    marks: list[tuple[str, int]] = []
    for whole in text:
        for i, char in enumerate(_form_d(whole)):
            if unicodedata.combining(char):
                marks.append((char, int(i == 0)))
                continue
            yield from sorted(marks, key=lambda mark: unicodedata.combining(mark[0]))
            marks.clear()
            yield char, int(i == 0)
    yield from sorted(marks, key=lambda mark: unicodedata.combining(mark[0]))


def _composed(decomposed: Iterator[tuple[str, int]]) -> Iterator[tuple[str, int]]:
    """Characters of form C (Unicode Standard, D117), each with how many it stands for."""
    starter, n = "", 0
    behind: list[tuple[str, int]] = []  # marks that are not composed with it
    for char, count in decomposed:
        order = unicodedata.combining(char)
        blocked = bool(behind) and unicodedata.combining(behind[-1][0]) >= order
        whole = unicodedata.normalize("NFC", starter + char) if starter and not blocked else ""
        if len(whole) == 1:
            starter, n = whole, n + count
        elif order == 0:
            if starter:
                yield starter, n
            yield from behind
            starter, n, behind = char, count, []
        else:
            behind.append((char, count))
    if starter:
        yield starter, n
    yield from behind
