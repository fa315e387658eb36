# SPDX-License-Identifier: BSD-3-Clause
"""Figures of a sweep's page, each an <svg> to stand in HTML. Colours are the page's CSS variables,
so that dark mode and print choose them; lines differ by dashes too, bars by hatching.
"""

import io
import math
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from bench.programs import ROOT

# Its cache of fonts: not in the home folder.
os.environ.setdefault("MPLCONFIGDIR", str(ROOT / "build/matplotlib"))
import matplotlib as mpl
from bench.sweep.table import MARKS
from bench.sweep.words import number, times
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

INK, SOFT, GRID = "#1b1b1a", "#6b6b68", "#dcdcd8"
# Okabe and Ito's, which colour-blind people tell apart; the first is the baseline's.
COLOURS = (INK, "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#b07f00", "#56b4e9", "#7a5195")
DASHES = ("", "7 2", "3 2", "7 2 2 2", "12 3 3 3")  # as SVG and CSS write them
HATCHES = ("", "///", "---", "\\\\\\", "xxx", "|||", "+++")  # of strokes: dots are long paths
VARIABLES = {INK: "--ink", SOFT: "--soft", GRID: "--grid"} | {
    colour: f"--line-{at}" for at, colour in enumerate(COLOURS) if at
}
VERDICTS = {  # face, hatch, edge
    "better": (COLOURS[3], "", "-"),
    "worse": (COLOURS[2], "////", "-"),
    "not distinguishable": ("none", "", "-"),
    "too few repeats": ("none", "", ":"),
    "neither": (GRID, "", "-"),
}
SPAN_LOG = 20.0  # from so many times the least an axis is logarithmic
REASON_MOST = 60  # letters in a figure; the table has all
mpl.rcParams |= {
    "svg.fonttype": "none",  # text stays text: it can be searched, and read aloud
    "svg.hashsalt": "sweep",  # the same results make the same file
    "text.parse_math": False,  # a $ in a parameter is a $
    "font.size": 9,
    "font.family": "sans-serif",
    "hatch.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.facecolor": "none",
    "figure.facecolor": "none",
    "figure.edgecolor": "none",
    "axes.unicode_minus": False,
    **{f"{which}.color": INK for which in ("text", "xtick", "ytick", "hatch")},
    "axes.labelcolor": INK,
    "axes.edgecolor": SOFT,
    "grid.color": GRID,
    "legend.frameon": False,
}


@dataclass(frozen=True)
class Line:
    """Points with the least, the median, and the most of the repeats, or NaN, where the line has a
    gap. `style` counts from 0, the baseline's."""

    label: str
    style: int
    points: Sequence[tuple[float, float, float, float]]  # x, least, median, most


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


def colour(style: int) -> str:
    return COLOURS[style % len(COLOURS)]


def dashes(style: int) -> str:
    """Other than those of its neighbours, and of the next line of the same colour."""
    return DASHES[(style + style // len(COLOURS)) % len(DASHES)]


def swatch(style: int) -> str:
    """A piece of a line, for a legend in HTML."""
    return (
        '<svg class="swatch" viewBox="0 0 36 8" aria-hidden="true"><line x1="0" y1="4" x2="36" '
        f'y2="4" stroke="var({VARIABLES[colour(style)]})" stroke-width="{1.8 if style else 2.4}" '
        f'stroke-dasharray="{dashes(style)}"/></svg>'
    )


def _svg(figure: Figure, ident: str, title: str, text: str) -> str:
    """As a part of a page: ids of its own, no name spaces (HTML has them), the page's colours."""
    out = io.StringIO()
    no_metadata = dict.fromkeys(("Date", "Creator", "Format", "Type"))
    FigureCanvasSVG(figure).print_svg(out, metadata=no_metadata)  # savefig() draws twice
    found = re.search(r"<svg[^>]*(viewBox=\"[^\"]*\")[^>]*>(.*)</svg>", out.getvalue(), re.DOTALL)
    assert found is not None
    inside = re.sub(r"<style.*?</style>", "", found[2], flags=re.DOTALL)
    inside = re.sub(r' id="(?!m|p|h)[^"]*"', "", inside)  # kept: markers, clips, hatches
    inside = re.sub(r'( id="|href="#|url\(#)', rf"\g<1>{ident}-", inside)
    inside = re.sub(r"font: ([\d.]+px)[^;\"]*|; font-family: [^;\"]*", _font, inside)
    inside = re.sub(r"\s*\n\s*", " ", inside)
    for hexadecimal, name in VARIABLES.items():
        inside = inside.replace(hexadecimal, f"var({name})")
    width = round(figure.get_figwidth() * 96)
    return (
        f'<svg {found[1]} role="img" aria-labelledby="{ident}-t {ident}-d" '
        f'style="max-width: {width}px"><title id="{ident}-t">{escape(title)}</title>'
        f'<desc id="{ident}-d">{escape(text)}</desc>{inside}</svg>'
    )


def _font(match: re.Match[str]) -> str:
    """The page's font, in the size that was laid out."""
    return f"font-size: {match[1]}" if match[1] else ""


def _axes(width: float, height: float) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.add_subplot()


def _plain(axis: Any, ticks: Sequence[float] | None = None) -> None:
    """Numbers as the tables write them, not as powers."""
    if ticks is not None:
        axis.set_major_locator(FixedLocator(ticks))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _at: number(value)))


def _round_ticks(least: float, most: float, subs: tuple[int, ...] = (1, 2, 5)) -> list[float]:
    """1, 2, 5, 10 ... as far as they lie between, no more than a dozen."""
    powers = range(math.floor(math.log10(least)) - 1, math.ceil(math.log10(most)) + 1)
    found = [s * 10.0**p for p in powers for s in subs if least <= s * 10.0**p <= most]
    if len(found) > 8 and len(subs) > 1:
        return _round_ticks(least, most, (1,))
    return found[:: len(found) // 12 + 1]


def _apart(values: Sequence[float], logarithmic: bool) -> list[float]:
    """Those of the values that leave room for their numbers beneath an axis; the last always."""
    at = [math.log(v) if logarithmic else v for v in values]
    least = (at[-1] - at[0]) / 7
    kept = [len(at) - 1]
    for i in reversed(range(len(at) - 1)):
        if at[kept[-1]] - at[i] >= least:
            kept.append(i)
    return [values[i] for i in reversed(kept)]


def is_log(values: Sequence[float]) -> bool:
    return min(values) > 0 and max(values) / min(values) >= SPAN_LOG


def limits(lines: Sequence[Line]) -> tuple[float, float, bool]:
    """What all figures of a metric share, to be compared: least, most, and is it logarithmic?"""
    every = (v for line in lines for point in line.points for v in point[1:])
    values = [v for v in every if not math.isnan(v)]
    if not values:
        return 0.0, 1.0, False
    if is_log([v for v in values if v > 0] or values):
        return min(v for v in values if v > 0) / 1.2, max(values) * 1.2, True
    return min(0.0, *values), max(values) * 1.05 or 1.0, False


def _vertical(axes: Axes, bounds: tuple[float, float, bool]) -> None:
    least, most, logarithmic = bounds
    if logarithmic:
        axes.set_yscale("log")
    axes.set_ylim(least, most)
    _plain(axes.yaxis, _round_ticks(least, most) if logarithmic else None)
    axes.grid(axis="y", linewidth=0.7)


def _draw(axes: Axes, lines: Sequence[Line], marker: str) -> None:
    for line in lines:
        if not line.points:
            continue
        x, least, middle, most = zip(*line.points, strict=True)
        shade, pattern = colour(line.style), dashes(line.style)
        axes.fill_between(x, least, most, color=shade, alpha=0.13, linewidth=0)
        drawn = axes.plot(x, middle, color=shade, linewidth=1.5 if line.style else 2.0)[0]
        drawn.set_marker(marker)
        drawn.set_markersize(3.5)
        if pattern:
            drawn.set_dashes([float(n) for n in pattern.split()])


def curves(
    ident: str, title: str, text: str, ylabel: str, lines: Sequence[Line], bounds: Any
) -> str:
    """Percentiles on HdrHistogram's scale: as far to the next nine as from there to one more."""
    figure, axes = _axes(4.9, 3.1)
    beyond = [
        Line(one.label, one.style, [(1 / (1 - p / 100), *rest) for p, *rest in one.points])
        for one in lines
    ]
    _draw(axes, beyond, "")
    axes.set_xscale("log")
    last = max((point[0] for line in beyond for point in line.points), default=10.0)
    ticks = [p for p in (0.0, 50.0, 90.0, 99.0, 99.9, 99.99, 99.999, 99.9999, 99.99999)
             if 1 / (1 - p / 100) <= last * 1.01]  # fmt: skip
    axes.xaxis.set_major_locator(FixedLocator([1 / (1 - p / 100) for p in ticks]))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xticklabels([percentile(p) for p in ticks])
    axes.set_xlim(1, last * 1.05)
    _vertical(axes, bounds)
    axes.grid(axis="x", linewidth=0.7)
    axes.set_ylabel(ylabel)
    return _svg(figure, ident, title, text)


def percentile(p: float) -> str:
    return f"p{p:.5f}".rstrip("0").rstrip(".") if p else "least"


def against(
    ident: str,
    title: str,
    text: str,
    labels: tuple[str, str],
    lines: Sequence[Line],
    bounds: Any,
) -> str:
    """A metric against a parameter that is a number."""
    figure, axes = _axes(4.9, 3.1)
    _draw(axes, lines, "o")
    at = sorted({point[0] for line in lines for point in line.points})
    logarithmic = bool(at) and is_log(at)
    if logarithmic:
        axes.set_xscale("log")
    _plain(axes.xaxis, _apart(at, logarithmic) if at else None)
    _vertical(axes, bounds)
    axes.set_xlabel(labels[0])
    axes.set_ylabel(labels[1])
    return _svg(figure, ident, title, text)


def _rows(axes: Axes, labels: Sequence[tuple[float, str, bool]]) -> None:
    """Names of bars, from above; of groups, bold."""
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
    """Round about 1; what is 0 lies beyond."""
    values = [v for bar in bars if bar.ratio for v in bar.ratio.values() if v > 0]
    return min([0.9, *(v / 1.1 for v in values)]), max([1.1, *(v * 1.1 for v in values)])


def ratios(ident: str, title: str, text: str, xlabel: str, bars: Sequence[Bar]) -> str:
    """Bars from 1 to the median ratio, with a whisker from the least to the most; that of one at
    least."""
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
    figure, axes = _axes(7.2, 0.75 + 0.21 * len(labels))
    least, most = _ratio_range(bars)
    axes.set_xscale("log")
    axes.set_xlim(least, most)
    wide = most / least > 4
    _plain(axes.xaxis, _round_ticks(least, most) if wide else
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
    return _svg(figure, ident, title, text)


def stacks(
    ident: str, title: str, text: str, xlabel: str, parts: Sequence[str], bars: Sequence[Stack]
) -> str:
    """What a whole is made of, a bar a test."""
    figure, axes = _axes(7.2, 1.15 + 0.26 * len(bars))
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
    _plain(axes.xaxis)
    axes.grid(axis="x", linewidth=0.7)
    axes.margins(x=0.1)
    axes.set_xlim(left=0)
    axes.set_xlabel(xlabel)
    handles, _ = axes.get_legend_handles_labels()
    figure.legend(handles, parts, loc="outside upper left", ncols=min(len(parts), 5))
    return _svg(figure, ident, title, text)
