# SPDX-License-Identifier: BSD-3-Clause
"""Published figures of others, from a file beside a box, next to ours.

Their machine is a different one, so only ratios between systems compare.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from bench.sweep import words
from bench.task import Metric

NOT_STATED = "not stated"


@dataclass(frozen=True)
class Figure:
    parameters: dict[str, Any]  # of a test, as far as the source states them
    values: dict[str, float]  # by metric
    times: dict[str, tuple[float, float]]  # ratio to the baseline, least and most, if only that is
    # stated


@dataclass(frozen=True)
class StageFigure:
    parameters: dict[str, Any]  # as in Figure
    values: dict[str, tuple[float, str]]  # by stage: a time, and what it is of


@dataclass(frozen=True)
class StageFigures:
    """Their times by stage; a stage is one of our distributions."""

    who: str
    source: str
    remarks: list[str]
    figures: list[StageFigure]

    def value(self, parameters: dict[str, Any], stage: str) -> tuple[float, str] | None:
        for figure in self.figures:
            if stage in figure.values and figure.parameters.items() <= parameters.items():
                return figure.values[stage]
        return None


@dataclass(frozen=True)
class Published:
    """`names`: their systems' names, by our value of the parameter `by`, which may be a number."""

    who: str
    source: str
    remarks: list[str]
    by: str
    names: dict[Any, str]
    figures: list[Figure]

    def value(self, parameters: dict[str, Any], metric: str) -> float | None:
        for figure in self.figures:
            if metric in figure.values and figure.parameters.items() <= parameters.items():
                return figure.values[metric]
        return None

    def times(self, parameters: dict[str, Any], metric: str) -> tuple[float, float] | None:
        for figure in self.figures:
            if metric in figure.times and figure.parameters.items() <= parameters.items():
                return figure.times[metric]
        return None

    def system(self, value: Any) -> str:
        """The name in tables of a value of `by`."""
        return value if isinstance(value, str) else f"{self.by} {value}"


def _here(row: dict[str, Any], metric: Metric, unanswered: Iterable[str]) -> dict[str, Any]:
    """A cell, or why there is none. Percentiles count requests without an answer; a value such as a
    mean may leave them out, which theirs does not."""
    if row["state"] != "done":
        return {"refused": row["state"]}
    lost = sum(row["counts"][name] for name in unanswered)
    if lost and metric.name == metric.of:
        return {"refused": f"{lost:,} had no answer"}
    return row["cells"][metric.name]


def _times(base: dict[str, Any], cell: dict[str, Any], metric: Metric) -> dict[str, float] | None:
    """Ratio to the baseline, above 1 is better, repeat by repeat."""
    if "ratio" not in cell or "by_repeat" not in base or metric.better == "neither":
        return None
    if metric.better == "higher":
        return dict(cell["ratio"])
    found = {"median": 1 / cell["ratio"]["median"]}
    return found | {"min": 1 / cell["ratio"]["max"], "max": 1 / cell["ratio"]["min"]}


def _one(
    published: Published,
    metric: Metric,
    base: dict[str, Any],
    row: dict[str, Any],
    unanswered: Iterable[str],
) -> dict[str, Any]:
    cell, base_cell = (_here(one, metric, unanswered) for one in (row, base))
    theirs = published.value(row["parameters"], metric.name)
    their_base = published.value(base["parameters"], metric.name)
    their_times = published.times(row["parameters"], metric.name)
    if theirs is not None and their_base is not None:
        lower = metric.better == "lower"
        their_times = (their_base / theirs if lower else theirs / their_base,) * 2
    return {
        "parameters": {k: v for k, v in row["parameters"].items() if k != published.by},
        "metric": metric.name,
        "unit": metric.unit,
        "here": cell,
        "base": base_cell,
        "repeats": min(row["repeats"], base["repeats"]),
        "samples": [*cell.get("samples", []), *base_cell.get("samples", [])],
        "times": _times(base_cell, cell, metric),
        "theirs": theirs,
        "their_base": their_base,
        "their_times_least": their_times and their_times[0],
        "their_times": their_times and their_times[1],
    }


def beside(
    published: Published,
    baseline: Any,
    metrics: Iterable[Metric],
    rows: list[dict[str, Any]],
    unanswered: Iterable[str] = (),
) -> dict[str, Any]:
    """For each of their systems except `baseline`, a value of `by`: each metric that they state, in
    each row here. `unanswered`: counts of requests without an answer."""
    told = {name for figure in published.figures for name in (*figure.values, *figure.times)}

    def compared(system: Any) -> Iterator[dict[str, Any]]:
        for row in rows:
            if row["parameters"][published.by] != system:
                continue
            wanted = row["parameters"] | {published.by: baseline}
            base = next(r for r in rows if r["parameters"] == wanted)
            for metric in metrics:
                if metric.name in told:
                    yield _one(published, metric, base, row, unanswered)

    systems = [s for s in published.names if s != baseline]
    return {
        "who": published.who,
        "source": published.source,
        "remarks": published.remarks,
        "names": {published.system(s): name for s, name in published.names.items()},
        "baseline": published.system(baseline),
        "systems": {published.system(system): list(compared(system)) for system in systems},
    }


# ---- text ----


def _number(value: float | None) -> str:
    return NOT_STATED if value is None else f"{value:,g}"


def _ratio(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def _their_times(cell: dict[str, Any]) -> str:
    most, least = cell["their_times"], cell["their_times_least"]
    if most is None:
        return "-"
    return _ratio(most) if least == most else f"{_ratio(least)} to {_ratio(most)}"


def _told_times(times: dict[str, float] | None) -> str:
    if times is None:
        return "-"
    if times["min"] == times["max"]:
        return _ratio(times["median"])
    return f"{_ratio(times['median'])} ({_ratio(times['min'])} to {_ratio(times['max'])})"


def _cell(cell: dict[str, Any]) -> str:
    if "refused" in cell:
        return f"- ({cell['refused']})"
    value = cell["median"]
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def verdict(found: dict[str, Any], system: str) -> str:
    """In how many cells it is better than the baseline in every repeat, and better than theirs."""
    cells = found["systems"][system]
    measured = [c for c in cells if c["times"] is not None]
    better = sum(c["times"]["min"] > 1 for c in measured)
    both = [c for c in measured if c["their_times"] is not None]
    more = sum(c["times"]["median"] > c["their_times"] for c in both)
    return (
        f"{system} is better than {found['baseline']} in every repeat in {better} of {len(cells)} "
        f"cells ({len(cells) - len(measured)} not measured); the ratio's median is above "
        f"{found['who']}'s own in {more} of the {len(both)} cells where both are known."
    )


def tables(found: dict[str, Any], varied: list[str]) -> list[tuple[str, list[list[str]]]]:
    """For each system a sentence and the rows of its table, the head first."""
    made = []
    for system, cells in found["systems"].items():
        if not cells:
            continue
        names, base = found["names"], found["baseline"]
        shown = [name for name in varied if name in cells[0]["parameters"]]
        head = [*shown, "metric", system, base, "repeats x samples", "times better here"]
        head += [names[system], names[base], "times better there"]
        rows = [head]
        for c in cells:
            rows.append(
                [
                    *(str(c["parameters"][name]) for name in shown),
                    f"{c['metric']}, {c['unit']}",
                    _cell(c["here"]),
                    _cell(c["base"]),
                    words.repeats(c["repeats"], c["samples"]),
                    _told_times(c["times"]),
                    _number(c["theirs"]),
                    _number(c["their_base"]),
                    _their_times(c),
                ]
            )
        made.append((verdict(found, system), rows))
    return made
