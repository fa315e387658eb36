# SPDX-License-Identifier: BSD-3-Clause
"""Checks of arguments. Their errors have one form: `name: value: expected …`."""

from __future__ import annotations

import operator
import os
from collections.abc import Iterable
from math import inf
from numbers import Real
from typing import Any

SIZE_MAX = 2**64 - 1  # as `tokenizers` counts


def check_type(argument: str, value: Any, kind: type | tuple[type, ...], expected: str) -> None:
    """TypeError: `value` is not of this type, which `expected` names."""
    if not isinstance(value, kind):
        raise TypeError(f"{argument}: expected {expected}, got {type(value).__name__}")


def check_several(argument: str, value: Any, things: str) -> None:
    """TypeError: `value` is one of these things, or no iterable."""
    if isinstance(value, (str, bytes, bytearray, memoryview)):
        raise TypeError(f"{argument}: expected a list of {things}, got one {things[:-1]}")
    if not (hasattr(value, "__iter__") or hasattr(value, "__getitem__")):
        raise TypeError(f"{argument}: expected a list of {things}, got {type(value).__name__}")


def check_path(argument: str, value: Any) -> str:
    """`value` as a str. TypeError: it is no path."""
    check_type(argument, value, (str, os.PathLike), "a path as str or os.PathLike")
    return os.fsdecode(value)


def check_word(argument: str, value: Any, words: Iterable[str]) -> None:
    """ValueError: `value` is none of these words."""
    *others, last = words
    if value != last and value not in others:
        known = ", ".join(f'"{word}"' for word in others)
        raise ValueError(f'{argument}: {value!r}: expected {known} or "{last}"')


def check_number(argument: str, value: Any, most: int, *, least: int = 0, words: str = "") -> int:
    """`value` as an int from `least` to `most`, or ValueError; `words` names other accepted
    values."""
    try:
        number = least - 1 if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = least - 1
    if not least <= number <= most:
        raise ValueError(f"{argument}: {value!r}: expected {words}a number from {least} to {most}")
    return number


def unsigned(argument: str, value: Any, most: int = SIZE_MAX) -> int:
    """`value` as an int. TypeError: it is none; OverflowError, as in `tokenizers` and `tiktoken`:
    it is negative or above `most`."""
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{argument}: expected a number, got {type(value).__name__}") from None
    if not 0 <= number <= most:
        raise OverflowError(f"{argument}: {number}: expected a number from 0 to {most}")
    return number


def check_seconds(argument: str, value: Any, most: float = inf, *, positive: bool = False) -> float:
    """`value` as a float. ValueError: it is no number from 0 (`positive`: above 0) to `most`."""
    number = isinstance(value, Real) and not isinstance(value, bool)
    if not (number and 0 <= value <= most) or (positive and value == 0):
        limit = "above 0" if positive else "from 0"
        limit += "" if most == inf else f", at most {most:g}"
        raise ValueError(f"{argument}: {value!r}: expected seconds {limit}")
    return float(value)
