# SPDX-License-Identifier: BSD-3-Clause
"""Reads values of a hand-written JSON file. Each error is one line."""

import difflib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from bench.task import Metric, Task


class BoxError(Exception):
    """One line: where in which file, what is wrong, and the remedy."""


def _no_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"key {key!r} is given twice")
        found[key] = value
    return found


def among(word: str, known: Iterable[str]) -> str:
    """The remedy for an unknown word."""
    known = list(known)
    near = difflib.get_close_matches(word, known, 1)
    return f"did you mean {near[0]!r}?" if near else f"known are {', '.join(known) or 'none'}"


class Reader:
    """Reads values of one file; errors name the place in it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def error(self, where: str, what: str) -> BoxError:
        return BoxError(f"{self.path}: {where}: {what}")

    def object(self, where: str, given: Any) -> dict[str, Any]:
        if not isinstance(given, dict):
            raise self.error(where, f"{given!r} is not an object: write {{...}}")
        return given

    def keys(self, where: str, given: Any, known: set[str], needed: set[str]) -> dict[str, Any]:
        for key in self.object(where, given):
            if key not in known:
                raise self.error(where, f"unknown key {key!r}; {among(key, sorted(known))}")
        for key in sorted(needed - set(given)):
            raise self.error(where, f"key {key!r} is missing")
        return given

    def text(self, where: str, given: Any) -> str:
        if not isinstance(given, str) or not given:
            raise self.error(where, f'{given!r} is not a text: write "..."')
        return given

    def several(self, where: str, given: Any) -> list[Any]:
        if not isinstance(given, list) or not given:
            raise self.error(where, f"{given!r}: write a list, [...], with at least one entry")
        return given

    def values(self, where: str, own: Task, given: Any) -> dict[str, list[Any]]:
        """Lists of values by parameter, each accepted by the task."""
        if not isinstance(given, dict):
            raise self.error(where, f'{given!r} is not an object: write {{"NAME": [VALUE, ...]}}')
        for name, values in given.items():
            if name not in own.parameters:
                raise self.error(
                    where,
                    f"unknown parameter {name!r} of task {own.name}; {among(name, own.parameters)}",
                )
            seen: list[Any] = []
            for value in self.several(f"{where}.{name}", values):
                if problem := own.parameters[name].error(value):
                    raise self.error(f"{where}.{name}", f"{value!r}: {problem}")
                if value in seen:
                    raise self.error(f"{where}.{name}", f"{value!r} is given twice")
                seen.append(value)
        return given

    def metrics(self, where: str, own: Task, given: Any) -> list[Metric]:
        found = []
        for text in self.several(where, given):
            metric = own.metric(self.text(where, text))
            if isinstance(metric, str):
                raise self.error(where, f"{text!r}: {metric}")
            found.append(metric)
        return found


def read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_text("utf-8"), object_pairs_hook=_no_doubles)
    except OSError as error:
        raise BoxError(f"{path}: {error.strerror}") from None
    except ValueError as error:
        raise BoxError(f"{path}: not JSON: {error}") from None
