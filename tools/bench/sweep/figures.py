# SPDX-License-Identifier: BSD-3-Clause
"""Which figures a table of a sweep has: what is drawn, from which trials, and what they lack."""

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from bench.samples import UNITS, Samples
from bench.sweep import bars, headline, plots, words
from bench.sweep.bars import Bar, Stack
from bench.sweep.markup import Html, el, join
from bench.sweep.plots import Line
from bench.sweep.store import Trial, read_trial

DESCRIBED = (50.0, 90.0, 99.0, 99.9, 99.99, 99.999)  # percentiles in a figure's text description
AGAINST_LEAST = 3  # values of a parameter that make an axis
CURVES = (
    "Line: median of the repeats at each percentile; shade: smallest to largest. A curve ends where a "
    "repeat has fewer than ten samples beyond it, or requests without an answer."
)
RATIOS = (
    "Bars: median of the ratios, repeat by repeat; whiskers: smallest to largest. Green: better; "
    "hatched: worse; empty (~): not distinguishable; dotted edge (?): too few repeats to decide; "
    "grey: neither more nor less is better."
)

Row = dict[str, Any]


def named(parameters: Row, names: list[str] | None = None) -> str:
    shown = parameters if names is None else names
    return ", ".join(f"{name} {parameters[name]}" for name in shown)


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def row_name(given: dict[str, Any], row: Row) -> str:
    return ", ".join(str(row["parameters"][n]) for n in given["varied"]) or "it"


def state(row: Row) -> str:
    return f"{row['state']}: {row['reason']}"


class Figures:
    """Figures of one table. Parameters that the baseline fixes are lines, the others panels."""

    def __init__(self, folder: Path, ident: str, given: dict[str, Any]) -> None:
        self._folder, self._prefix, self._table = folder, ident, given
        self._rows: list[Row] = given["rows"]
        self._metrics: list[Row] = given["metrics"]
        fixed = given["baseline"] or {}
        varied: list[str] = given["varied"]
        self._series = [n for n in varied if n in fixed] or varied[:1]
        self._beside = [n for n in varied if n not in self._series]
        self._figures = 0

    def _ident(self) -> str:
        self._figures += 1
        return f"{self._prefix}-f{self._figures}"

    def _styles(self, names: list[str]) -> dict[str, int]:
        """Style by series, in the table's order; the baseline's is 0."""
        fixed = self._table["baseline"] or {}
        base = named(fixed, names) if names == [n for n in self._series if n in fixed] else None
        every = dict.fromkeys(named(row["parameters"], names) for row in self._rows)
        others = [name for name in every if name != base]
        return ({} if base is None else {base: 0}) | {n: i + 1 for i, n in enumerate(others)}

    def _ours(self, names: list[str]) -> dict[str, bool]:
        """By series: is it our line? Empty if none is, or no other exists."""
        found = {
            named(row["parameters"], names): headline.is_ours(self._table, row)
            for row in self._rows
        }
        return found if len(found) > 1 and any(found.values()) else {}

    def _legend(self, names: list[str], panels: dict[str, list[Line]]) -> Html:
        """A legend of the lines that are drawn."""
        styles, ours = self._styles(names), self._ours(names)
        drawn = {line.label for lines in panels.values() for line in lines if line.points}
        marks = [
            el(
                "li",
                Html(plots.swatch(style, ours.get(name))),
                name,
                "" if style else " (baseline)",
            )
            for name, style in styles.items()
            if name in drawn
        ]
        return el("ul", *marks, class_="legend") if len(styles) > 1 else Html("")

    def _panels(self, names: list[str]) -> Iterator[tuple[str, list[Row]]]:
        found: dict[str, list[Row]] = {}
        for row in self._rows:
            found.setdefault(named(row["parameters"], names), []).append(row)
        yield from found.items()

    @staticmethod
    def _above(what: str, lines: list[Line]) -> Html:
        """A figure's caption, with what it lacks."""
        lacks = [line.label or "it" for line in lines if not line.points]
        return join(what, el("small", f" no figure: {'; '.join(lacks)}") if lacks else "")

    def _grid(self, drawn: Sequence[tuple[str, str]], broad: bool = False) -> Html:
        """Figures with their captions."""
        figures = [el("figure", el("figcaption", above) if above else "", Html(svg))
                   for above, svg in drawn]  # fmt: skip
        return el("div", *figures, class_="figures broad" if broad else "figures")

    def _trials(self, row: Row) -> list[Trial]:
        paths = (self._folder / "trials" / row["test"]).glob("*.json")
        found = [read_trial(path) for path in sorted(paths, key=lambda path: int(path.stem))]
        return [trial for trial in found if trial.state == "done"]

    @staticmethod
    def _curve(
        trials: list[Trial], of: str, unit: str, lacks: list[str]
    ) -> list[tuple[float, float, float, float]]:
        """`lacks`: names of the counts of requests without an answer."""
        never = [sum(trial.counts[name] for name in lacks) for trial in trials]
        if any(of in trial.missing for trial in trials):
            return []
        every = [Samples.decode(t.samples[of]).curve(n) for t, n in zip(trials, never, strict=True)]
        points = []
        for p in every[0] if every else []:
            if all(p in one for one in every):
                values = [one[p] / UNITS[unit] for one in every]
                points.append((p, min(values), median(values), max(values)))
        return points

    def _curves(self) -> Html:
        kinds = {m["name"].split(" ")[0]: m for m in self._metrics if " " in m["name"]}
        rows = [row for row in self._rows if row["state"] == "done"]
        trials = {row["test"]: self._trials(row) for row in rows} if kinds else {}
        styles, ours = self._styles(self._series), self._ours(self._series)
        parts: list[str] = []
        for of, one in kinds.items():
            unit, lacks = one["unit"], one.get("lacks", [])
            parts.append(el("h3", f"{of}: percentiles"))
            points = {test: self._curve(some, of, unit, lacks) for test, some in trials.items()}
            if not any(points.values()):
                parts.append(el("p", "Not drawn: no trial has enough samples.", class_="soft"))
                continue
            panels = {
                panel: [
                    Line(name := named(row["parameters"], self._series), styles[name],
                         points.get(row["test"], []), ours.get(name))
                    for row in some
                ]
                for panel, some in self._panels(self._beside)
            }  # fmt: skip
            bounds = plots.limits([line for lines in panels.values() for line in lines])
            drawn = []
            for panel, lines in panels.items():
                text = f"Percentiles of {of} in {unit}, medians of the repeats. " + " ".join(
                    f"{line.label or 'it'}: {_percentiles(line)}." for line in lines
                )
                title = f"{of}, percentiles{f': {panel}' if panel else ''}"
                svg = plots.curves(self._ident(), title, text, f"{of}, {unit}", lines, bounds)
                drawn.append((self._above(panel, lines), svg))
            parts += [
                el("p", CURVES, class_="soft"),
                self._legend(self._series, panels),
                self._grid(drawn),
            ]
        return join(*parts)

    def _bar(self, row: Row, metric: Row) -> Bar:
        names = (named(row["parameters"], self._beside),
                 ", ".join(str(row["parameters"][n]) for n in self._series))  # fmt: skip
        if row["state"] != "done":
            return Bar(*names, None, "", state(row))
        cell = row["cells"][metric["name"]]
        if "refused" in cell:
            return Bar(*names, None, "", cell["refused"])
        if "verdict" not in cell:
            return Bar(*names, None, "", "no ratio: the baseline has no figure")
        if "ratio" not in cell:
            return Bar(*names, None, "", "no ratio: the baseline is 0")
        return Bar(*names, cell["ratio"], cell["verdict"])

    def _ratios(self) -> Html:
        fixed = self._table["baseline"]
        rows = [
            row for _, some in self._panels(self._beside) for row in some if not row["is_baseline"]
        ]
        if not fixed or not rows:
            return Html("")
        drawn: list[tuple[str, str]] = []
        lacking: list[Html] = []
        for metric in self._metrics:
            drawable = [self._bar(row, metric) for row in rows]
            if not any(bar.ratio for bar in drawable):
                why = "; ".join(dict.fromkeys(bar.reason for bar in drawable))
                lacking.append(el("p", f"Not drawn: {metric['name']}: {why}.", class_="soft"))
                continue
            text = (
                f"{bar.group} {bar.label}: " +
                (f"{bar.ratio['median']:.2f} ({bar.ratio['min']:.2f} to "
                f"{bar.ratio['max']:.2f}), {bar.verdict}" if bar.ratio else bar.reason)
                for bar in drawable
            )  # fmt: skip
            title = f"{metric['name']}: ratio to {named(fixed)}"
            xlabel = f"times the baseline's, {metric['better']} is better"
            svg = bars.ratios(self._ident(), title, "; ".join(text) + ".", xlabel, drawable)
            drawn.append((f"{metric['name']}, {metric['unit']}", svg))
        return join(
            el("h3", f"Ratio to the baseline, {named(fixed)}"),
            el("p", RATIOS, class_="soft"),
            self._grid(drawn, broad=True),
            *lacking,
        )

    def _axis(self) -> str | None:
        """A numeric parameter with enough values: load, length, workers."""
        values = {
            name: {row["parameters"][name] for row in self._rows} for name in self._table["varied"]
        }
        able = [name for name, some in values.items()
                if len(some) >= AGAINST_LEAST and all(map(_is_number, some))]  # fmt: skip
        return max(able, key=lambda name: len(values[name]), default=None)

    def _lines(self, axis: str, metric: str, names: list[str], rows: list[Row]) -> list[Line]:
        """A line per series, with gaps where there is no figure."""
        styles, ours = self._styles(names), self._ours(names)
        found: dict[str, list[Any]] = {}
        for row in sorted(rows, key=lambda row: row["parameters"][axis]):
            points = found.setdefault(named(row["parameters"], names), [])
            cell = row["cells"].get(metric, {})
            spread = (cell.get(which, math.nan) for which in ("min", "median", "max"))
            points.append((row["parameters"][axis], *spread))
        return [
            Line(
                name,
                styles[name],
                [] if all(math.isnan(y) for _, _, y, _ in points) else points,
                ours.get(name),
            )
            for name, points in found.items()
        ]

    def _against(self) -> Html:
        axis = self._axis()
        if axis is None:
            return Html("")
        others = [n for n in self._table["varied"] if n != axis]
        series = [n for n in self._series if n != axis] or others[:1]
        beside = [n for n in others if n not in series]
        parts: list[str] = [el("h3", f"Against {axis}")]
        legend = Html("")
        for metric in self._metrics:
            ylabel = f"{metric['name']}, {metric['unit']}"
            panels = {panel: self._lines(axis, metric["name"], series, rows)
                      for panel, rows in self._panels(beside)}  # fmt: skip
            if not any(line.points for lines in panels.values() for line in lines):
                parts.append(el("p", f"Not drawn: no test has a figure for {metric['name']}.",
                                class_="soft"))  # fmt: skip
                continue
            if not legend:
                parts.append(legend := self._legend(series, panels))
            bounds = plots.limits([line for lines in panels.values() for line in lines])
            drawn = []
            for panel, lines in panels.items():
                above = f"{metric['name']}{f': {panel}' if panel else ''}"
                svg = plots.against(self._ident(), f"{above}, against {axis}", _points(lines),
                                    (axis, ylabel), lines, bounds)  # fmt: skip
                drawn.append((self._above(above, lines), svg))
            parts.append(self._grid(drawn))
        return join(*parts)

    def _stages(self) -> Html:
        names = self._table.get("stages") or []
        if not names:
            return Html("")
        unit = next(m["unit"] for m in self._metrics if m["name"] == names[0])
        stacked = []
        for row in self._rows:
            cells = [row["cells"].get(name, {}) for name in names]
            parts = [cell["median"] for cell in cells if "median" in cell]
            whole = len(parts) == len(names)
            name = row_name(self._table, row)
            stacked.append(Stack(name, parts) if whole else Stack(name, [], state(row)))
        text = (
            f"{bar.label}: "
            + (", ".join(f"{n} {words.number(v)}" for n, v in zip(names, bar.parts, strict=True))
               if bar.parts else bar.reason)
            for bar in stacked
        )  # fmt: skip
        title = f"{self._table['task']}: stages"
        xlabel = f"{unit}, medians of the repeats"
        svg = bars.stacks(self._ident(), title, "; ".join(text) + ".", xlabel, names, stacked)
        return join(el("h3", "Stages"), self._grid([("", svg)], broad=True))

    def html(self) -> Html:
        return join(self._against(), self._ratios(), self._stages(), self._curves())


def _points(lines: list[Line]) -> str:
    found = [
        f"{line.label or 'it'}: "
        + (", ".join(f"{'no figure' if math.isnan(y) else words.number(y)} at {x:,g}"
                     for x, _, y, _ in line.points) or "no figure")
        for line in lines
    ]  # fmt: skip
    return "; ".join(found) + "."


def _percentiles(line: Line) -> str:
    found = [f"{plots.percentile(p)} {words.number(middle)}"
             for p, _, middle, _ in line.points if p in DESCRIBED]  # fmt: skip
    return ", ".join(found) or "no figure"
