# SPDX-License-Identifier: BSD-3-Clause
"""Lines: percentile curves, and a metric against a parameter."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, NullLocator

from bench.sweep.svg import (
    VARIABLES,
    apart,
    colour,
    dashes,
    is_log,
    new_axes,
    plain,
    round_ticks,
    svg,
)  # fmt: skip


@dataclass(frozen=True)
class Line:
    """Points with smallest, median and largest of the repeats; NaN makes a gap. `style` 0 is the
    baseline's."""

    label: str
    style: int
    points: Sequence[tuple[float, float, float, float]]  # x, least, median, most
    ours: bool | None = None  # True: bold, False: light; None: no line is ours


def _weight(style: int, ours: bool | None) -> tuple[float, float]:
    """Width and opacity."""
    if ours is None:
        return (1.5 if style else 2.0), 1.0
    return (2.8, 1.0) if ours else (1.0, 0.65)


def swatch(style: int, ours: bool | None = None) -> str:
    """A sample of a line for an HTML legend."""
    width, opacity = _weight(style, ours)
    return (
        '<svg class="swatch" viewBox="0 0 36 8" aria-hidden="true"><line x1="0" y1="4" x2="36" '
        f'y2="4" stroke="var({VARIABLES[colour(style)]})" stroke-width="{1.2 * width:.1f}" '
        f'stroke-opacity="{opacity}" stroke-dasharray="{dashes(style)}"/></svg>'
    )


def limits(lines: Sequence[Line]) -> tuple[float, float, bool]:
    """The axis that all figures of a metric share: smallest, largest, logarithmic?"""
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
    plain(axes.yaxis, round_ticks(least, most) if logarithmic else None)
    axes.grid(axis="y", linewidth=0.7)


def _draw(axes: Axes, lines: Sequence[Line], marker: str) -> None:
    for line in lines:
        if not line.points:
            continue
        x, least, middle, most = zip(*line.points, strict=True)
        shade, pattern = colour(line.style), dashes(line.style)
        width, opacity = _weight(line.style, line.ours)
        axes.fill_between(x, least, most, color=shade, alpha=0.13 * opacity, linewidth=0)
        drawn = axes.plot(x, middle, color=shade, linewidth=width, alpha=opacity)[0]
        drawn.set_marker(marker)
        drawn.set_markersize(3.5)
        if pattern:
            drawn.set_dashes([float(n) for n in pattern.split()])


def curves(
    ident: str, title: str, text: str, ylabel: str, lines: Sequence[Line], bounds: Any
) -> str:
    """Percentiles on HdrHistogram's scale: logarithmic in 1 / (1 - p)."""
    figure, axes = new_axes(4.9, 3.1)
    beyond = [
        replace(one, points=[(1 / (1 - p / 100), y, low, high) for p, y, low, high in one.points])
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
    return svg(figure, ident, title, text)


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
    """A metric against a numeric parameter."""
    figure, axes = new_axes(4.9, 3.1)
    _draw(axes, lines, "o")
    at = sorted({point[0] for line in lines for point in line.points})
    logarithmic = bool(at) and is_log(at)
    if logarithmic:
        axes.set_xscale("log")
    plain(axes.xaxis, apart(at, logarithmic) if at else None)
    _vertical(axes, bounds)
    axes.set_xlabel(labels[0])
    axes.set_ylabel(labels[1])
    return svg(figure, ident, title, text)
