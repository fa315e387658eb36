# SPDX-License-Identifier: BSD-3-Clause
"""The knee of a load-latency curve: the highest load that a system bears, by a rule of the box.

A row holds if its metric is at most `times` that of the lowest load, no metric in `least` is below
its value, and nothing in `none` is counted. If the generator's own delay is too large a share of
the metric, the generator is the limit, and the line says so. The knee is the highest load up to
which all rows hold. Medians of the repeats decide, and the counts of all repeats.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from bench.sweep import words
from bench.task import Metric

KEYS = {"along", "metric", "times", "least", "none", "generator"}
Row = dict[str, Any]


@dataclass(frozen=True)
class Knee:
    along: str  # the parameter that rises
    metric: str
    times: float
    least: dict[str, float]  # by metric
    none: list[str]  # counts
    generator: dict[str, float]  # its metrics, as the largest share of `metric`

    def rule(self) -> str:
        parts = [f"{self.metric} is at most {self.times:g} times that of the lowest {self.along}"]
        parts += [f"{name} is at least {value:g}" for name, value in self.least.items()]
        parts += [f"nothing is counted as {' or '.join(self.none)}"] if self.none else []
        parts += [
            f"the generator's own {name} is at most {most:g} times {self.metric}"
            for name, most in self.generator.items()
        ]
        return (
            f"The knee: the highest {self.along} up to which {', and '.join(parts)}. Medians of "
            "the repeats decide."
        )


def read(reader: Any, where: str, given: Any, parameters: Any, metrics: list[Metric], counts: Any
         ) -> Knee:  # fmt: skip
    """`reader`: the box's, for error messages."""
    reader.keys(where, given, KEYS, {"along", "metric", "times"})
    along, metric = (reader.text(f"{where}.{key}", given[key]) for key in ("along", "metric"))
    names = [m.name for m in metrics]
    least, generator = (
        reader.object(f"{where}.{key}", given.get(key, {})) for key in ("least", "generator")
    )
    none = given.get("none", [])
    values = parameters.get(along, [])
    if len(values) < 2 or not all(isinstance(v, int | float) for v in values):
        raise reader.error(f"{where}.along", f"{along!r} is no parameter of several numbers here")
    for name in (metric, *least, *generator):
        if name not in names:
            raise reader.error(where, f"{name!r} is none of the metrics: {', '.join(names)}")
    for key, value in {"times": given["times"], **least, **generator}.items():
        if not isinstance(value, int | float) or isinstance(value, bool) or value <= 0:
            raise reader.error(f"{where}.{key}", f"{value!r}: give a number above 0")
    for name in none:
        if name not in counts:
            raise reader.error(f"{where}.none", f"{name!r} is not counted: {', '.join(counts)}")
    return Knee(along, metric, given["times"], least, none, generator)


def _ended_by(rule: Knee, row: Row, base: float | None) -> str | None:
    """Why a row does not hold, or None."""
    if row["state"] != "done":
        return f"{row['state']}: {row['reason']}"
    for name in (rule.metric, *rule.least, *rule.generator):
        if "refused" in row["cells"][name]:
            return f"{name}: {row['cells'][name]['refused']}"
    cell = row["cells"][rule.metric]
    for name, most in rule.generator.items():
        own = row["cells"][name]["median"]
        if own > most * cell["median"]:
            return (
                f"the generator, not the system: {name} is {words.number(own)}, "
                f"{rule.metric} {words.number(cell['median'])}"
            )
    if base is not None and cell["median"] > rule.times * base:
        to = words.times({"median": cell["median"] / base}) if base else "above 0"
        return f"{rule.metric} is {to}"
    for name, least in rule.least.items():
        if row["cells"][name]["median"] < least:
            return f"{name} is {words.number(row['cells'][name]['median'])}"
    for name in rule.none:
        if row["counts"][name]:
            return f"{name}: {row['counts'][name]:,}"
    return None


def _line(rule: Knee, rows: list[Row]) -> Row:
    base, knee, ended = None, None, None
    for row in rows:
        if why := _ended_by(rule, row, base):
            ended = {"at": row["parameters"][rule.along], "why": why}
            break
        knee = row
        base = row["cells"][rule.metric]["median"] if base is None else base
    found: Row = {"knee": None, "cells": {}, "ended": ended}
    if knee is not None:
        found |= {"knee": knee["parameters"][rule.along], "cells": knee["cells"]}
    return found


def lines(rule: Knee, varied: list[str], rows: list[Row]) -> Iterator[Row]:
    """For each combination of the other parameters: the knee, its cells, and what ended it."""
    others = [name for name in varied if name != rule.along]
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in sorted(rows, key=lambda row: row["parameters"][rule.along]):
        groups.setdefault(tuple(row["parameters"][name] for name in others), []).append(row)
    order = dict.fromkeys(tuple(row["parameters"][name] for name in others) for row in rows)
    for which in order:
        parameters = dict(zip(others, which, strict=True))
        yield {"parameters": parameters} | _line(rule, groups[which])


def beside(rule: Knee, varied: list[str], rows: list[Row]) -> Row:
    """The knee in a table of the summary."""
    return {
        "rule": rule.rule(),
        "along": rule.along,
        "varied": [name for name in varied if name != rule.along],
        "lines": list(lines(rule, varied, rows)),
    }


def table_rows(given: Row, metrics: list[Row]) -> list[list[str]]:
    """Rows of a table, the head first."""
    head = [*given["varied"], f"knee, {given['along']}"]
    head += [f"{m['name']} there, {m['unit']}" for m in metrics] + ["beyond it"]
    found = [head]
    for line in given["lines"]:
        own = [str(line["parameters"][name]) for name in given["varied"]]
        ended = line["ended"]
        if line["knee"] is None:
            knee = f"below {words.number(ended['at'])}"
        else:
            knee = words.number(line["knee"]) if ended else f"{words.number(line['knee'])} or more"
        cells = [line["cells"].get(m["name"], {}) for m in metrics]
        shown = [words.spread(c) if "median" in c else "-" for c in cells]
        beyond = f"at {words.number(ended['at'])}: {ended['why']}" if ended else "not tried"
        found.append([*own, knee, *shown, beyond])
    return found
