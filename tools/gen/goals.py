# SPDX-License-Identifier: BSD-3-Clause
"""The goals of the tokenizer, and how far a sweep, a demo and the hostile page are from them."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Row = dict[str, Any]
Ratios = dict[tuple[Any, ...], dict[str, float]]  # of requests, by cell, then engine
BYTE_LEVEL = ("gpt2", "cl100k_base", "o200k_base", "llama3", "qwen3")
C, PYTHON = "libtok", "libtok-python"
CALLED = {C: "C call", PYTHON: "`Tokenizer.encode`"}
# Name; vocabularies; call, and text: times the fastest exact peer.
SPEEDS: dict[tuple[str, tuple[str, ...]], dict[tuple[str, str], float]] = {
    ("byte-level", BYTE_LEVEL): {
        (C, "first"): 2.5,
        (C, "again"): 2,
        (PYTHON, "first"): 2,
        (PYTHON, "again"): 1.5,
    },
    ("BERT", ("bert-base-uncased",)): {(C, "first"): 2.5, (C, "again"): 2},
    ("gemma3, t5, xlmr", ("gemma3", "t5", "xlmr")): {(C, "first"): 2, (C, "again"): 2},
}
# By the beginning of a section's title.
HOSTILE = {
    "ns a byte: the most": ("hostile text, whole or in packets, a byte", 100, "ns"),
    "ns a byte in single bytes": ("hostile text in single bytes, a byte", 1000, "ns"),
    "The longest call": ("hostile text, the longest call of 1,400 bytes", 150, "us"),
}


@dataclass(frozen=True)
class Goal:
    what: str
    limit: float
    unit: str
    found: dict[str, float]  # by cell
    at_least: bool = False


def speeds(ratios: Ratios) -> list[Goal]:
    goals = []
    for (title, names), wanted in SPEEDS.items():
        for (engine, seen), limit in wanted.items():
            found = {
                f"{name}, {corpus}, {length:,} {unit}": ratio[engine]
                for (name, corpus, unit, length, when), ratio in ratios.items()
                if name in names and when == seen and engine in ratio
            }
            what = f"{title}: {CALLED[engine]}, {seen}"
            goals.append(Goal(what, limit, "times", found, at_least=True))
    return goals


def starts(told: Callable[[str, str, str], dict[str, float]]) -> list[Goal]:
    """told(engine, file, metric) gives medians by vocabulary."""
    files = ("tokenizer.json", "tokv")

    def several(metric: str, engines: tuple[str, ...] = (C, PYTHON)) -> dict[str, float]:
        return {
            f"{name}, {file}, {engine}": value
            for engine in engines
            for file in files
            for name, value in told(engine, file, metric).items()
        }

    theirs = told("tokenizers", files[0], "load")
    loads = {
        f"{name}, {engine}": value / theirs[name]
        for engine in (C, PYTHON)
        for name, value in told(engine, files[0], "load").items()
        if name in theirs
    }
    tokv = {f"{n}, {e}": ms for e in (C, PYTHON) for n, ms in told(e, files[1], "load").items()}
    return [
        Goal('`encode("a")` in Python', 300, "ns", several("letter", (PYTHON,))),
        Goal("a fresh process's first request, by a warm one", 3, "times", several("first/warm")),
        Goal("loading a `.tokv`", 10, "ms", tokv),
        Goal("loading a `tokenizer.json`, by `tokenizers`", 0.5, "times", loads),
    ]


# By tools/demo; the last two: times the conventional server.
PATH = (
    ("client to ids, 128 tokens: beyond an echo and the tokenizer alone", 1, "us", False),
    ("2,048 tokens: beyond an echo and 1.2 times the tokenizer alone", 0, "us", False),
    ("2,048 tokens, p50: the conventional server's, by ours", 50, "times", True),
    ("2,048 tokens, p99: the conventional server's, by ours", 10, "times", True),
)
P99_LEAST = 1000  # requests


def path(demo: Row | None) -> list[Goal]:
    """Of the JSON of tools/demo; None: it was not run."""
    found: list[float | None] = [None] * len(PATH)
    if demo is not None:
        ours, wire, alone, theirs = (
            demo[f"{name}_us"] for name in ("rtt", "echo", "tokenizer", "baseline")
        )
        beyond = {s: ours[s]["p50"] - wire[s]["p50"] for s in ("128", "2048")}
        found = [
            beyond["128"] - alone["128"]["p50"],
            beyond["2048"] - 1.2 * alone["2048"]["p50"],
            theirs["2048"]["p50"] / ours["2048"]["p50"],
            theirs["2048"]["p99"] / ours["2048"]["p99"]
            if ours["2048"]["samples"] >= P99_LEAST
            else None,
        ]
    return [
        Goal(what, limit, unit, {} if value is None else {"tools/demo": value}, at_least)
        for (what, limit, unit, at_least), value in zip(PATH, found, strict=True)
    ]


def line(goal: Goal) -> list[str]:
    if not goal.found:
        return [goal.what, f"{goal.limit:g} {goal.unit}", "not measured", "", "", ""]
    sign = -1 if goal.at_least else 1
    worst = max(goal.found, key=lambda cell: sign * goal.found[cell])
    met = sum(sign * value <= sign * goal.limit for value in goal.found.values())
    by = sign * (goal.found[worst] - goal.limit)
    missed = "met" if by <= 0 else f"**by {by:.2g} {goal.unit}**"
    return [
        goal.what, f"{goal.limit:g} {goal.unit}", f"{met} of {len(goal.found)}",
        f"{goal.found[worst]:.3g}", worst, missed,
    ]  # fmt: skip


def hostile(page: Path) -> list[list[str]]:
    """From the page that tools/gen/hostile wrote."""
    rows = []
    for title, (what, limit, unit) in HOSTILE.items():
        found = re.search(
            rf"## {title}.*?Above it: (\d+) of (\d+) cases\. The most: ([\d,]+), (.*?)\.\n",
            page.read_text(), re.DOTALL,
        )  # fmt: skip
        if found is None:
            raise ValueError(f"{page}: no figures of {title!r}: run tools/gen/hostile")
        above, cases, most = int(found[1]), int(found[2]), float(found[3].replace(",", ""))
        missed = f"**by {most - limit:g} {unit}**" if above else "met"
        rows.append(
            [what, f"{limit:,} {unit}", f"{cases - above} of {cases}", found[3], found[4], missed]
        )
    return rows
