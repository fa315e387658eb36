# SPDX-License-Identifier: BSD-3-Clause
"""Bars: ratios to the baseline, and stages that add up to a whole."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from bench.sweep.svg import COLOURS, GRID, INK, SOFT, colour, new_axes, plain, round_ticks, svg
from bench.sweep.table import MARKS
from bench.sweep.words import number, times

HATCHES = ("", "///", "---", "\\\\\\", "xxx", "|||", "+++")  # dots would be long SVG paths
VERDICTS = {  # face, hatch, edge
    "better": (COLOURS[3], "", "-"),
    "worse": (COLOURS[2], "////", "-"),
    "not distinguishable": ("none", "", "-"),
    "too few repeats": ("none", "", ":"),
    "neither": (GRID, "", "-"),
}
REASON_MOST = 60  # characters in a figure; the table has the whole text


@dataclass(frozen=True)
class Bar:
    """A ratio to the baseline, or why there is none."""

    group: str
    label: str
    ratio: dict[str, float] | None
    verdict: str
    reason: str = ""


@dataclass(frozen=True)
class Stack:
    """A bar of stages, or why there is none."""

    label: str
    parts: Sequence[float]
    reason: str = ""


def _rows(axes: Axes, labels: Sequence[tuple[float, str, bool]]) -> None:
    """Names of bars, from the top; groups are bold."""
    axes.set_yticks([y for y, _, _ in labels], [text for _, text, _ in labels])
    for tick, (_, _, bold) in zip(axes.get_yticklabels(), labels, strict=True):
        tick.set_fontweight("bold" if bold else "normal")
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    axes.set_ylim(max((y for y, _, _ in labels), default=0) + 0.6, -0.6)


def _beside(axes: Axes, x: float, y: float, text: str, **look: Any) -> None:
    axes.annotate(text, (x, y), (4, 0), textcoords="offset points", va="center", fontsize=8, **look)


def _why(axes: Axes, x: float, y: float, reason: str) -> None:
    short = reason if len(reason) <= REASON_MOST else reason[: REASON_MOST - 1] + "…"
    _beside(axes, x, y, short, color=SOFT, style="italic")


def _ratio_range(bars: Sequence[Bar]) -> tuple[float, float]:
    """A range around 1, without zeros."""
    values = [v for bar in bars if bar.ratio for v in bar.ratio.values() if v > 0]
    return min([0.9, *(v / 1.1 for v in values)]), max([1.1, *(v * 1.1 for v in values)])


def ratios(ident: str, title: str, text: str, xlabel: str, bars: Sequence[Bar]) -> str:
    """Bars from 1 to the median ratio, with whiskers from the smallest to the largest. At least one
    has a ratio."""
    labels: list[tuple[float, str, bool]] = []
    places = []
    y, group = -1.0, ""
    for bar in bars:
        if bar.group != group:
            group, y = bar.group, y + 1.0
            labels.append((y, group, True))
        y += 1.0
        labels.append((y, bar.label, False))
        places.append(y)
    figure, axes = new_axes(7.2, 0.75 + 0.21 * len(labels))
    least, most = _ratio_range(bars)
    axes.set_xscale("log")
    axes.set_xlim(least, most)
    wide = most / least > 4
    plain(axes.xaxis, round_ticks(least, most) if wide else
           [t for t in MaxNLocator(5).tick_values(least, most) if least <= t <= most])  # fmt: skip
    _rows(axes, labels)
    axes.grid(axis="x", linewidth=0.7)
    beside = axes.get_yaxis_transform()
    for place, bar in zip(places, bars, strict=True):
        if bar.ratio is None:
            _why(axes, least, place, bar.reason)
            continue
        axes.vlines(1, place - 0.5, place + 0.5, color=INK, linewidth=1)
        low, middle, high = (max(bar.ratio[k], least) for k in ("min", "median", "max"))
        face, hatch, edge = VERDICTS[bar.verdict]
        axes.barh(place, middle - 1, left=1, height=0.62, facecolor=face, hatch=hatch,
                  edgecolor=INK, linewidth=0.9, linestyle=edge)  # fmt: skip
        axes.plot([low, high], [place, place], color=INK, linewidth=1.1, marker="|", markersize=5)
        mark = MARKS[bar.verdict]
        told = f"{times(bar.ratio)} {mark}".rstrip()
        axes.text(1.01, place, told, transform=beside, va="center", fontsize=8)
    axes.set_xlabel(xlabel)
    return svg(figure, ident, title, text)


def stacks(
    ident: str, title: str, text: str, xlabel: str, parts: Sequence[str], bars: Sequence[Stack]
) -> str:
    """The parts of a whole, one bar per test."""
    figure, axes = new_axes(7.2, 1.15 + 0.26 * len(bars))
    _rows(axes, [(float(y), bar.label, False) for y, bar in enumerate(bars)])
    left = [0.0] * len(bars)
    for at, part in enumerate(parts):
        widths = [bar.parts[at] if bar.parts else 0.0 for bar in bars]
        axes.barh(range(len(bars)), widths, left=left, height=0.66, label=part, edgecolor=INK,
                  linewidth=0.5, facecolor=colour(at + 1), hatch=HATCHES[at % len(HATCHES)],
                  alpha=0.85)  # fmt: skip
        left = [a + b for a, b in zip(left, widths, strict=True)]
    for y, bar in enumerate(bars):
        if bar.parts:
            _beside(axes, left[y], y, number(left[y]))
        else:
            _why(axes, 0, y, bar.reason)
    plain(axes.xaxis)
    axes.grid(axis="x", linewidth=0.7)
    axes.margins(x=0.1)
    axes.set_xlim(left=0)
    axes.set_xlabel(xlabel)
    handles, _ = axes.get_legend_handles_labels()
    figure.legend(handles, parts, loc="outside upper left", ncols=min(len(parts), 5))
    return svg(figure, ident, title, text)
