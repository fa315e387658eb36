# SPDX-License-Identifier: BSD-3-Clause
"""Shared by all figures of the report. Each is an <svg> inside the HTML. Colours are the page's CSS
variables, so that dark mode and print select them; lines also differ by dashes, bars by hatching.
"""

import io
import math
import os
import re
from collections.abc import Sequence
from html import escape
from typing import Any

from bench.programs import ROOT

# matplotlib's font cache: not in the home folder.
os.environ.setdefault("MPLCONFIGDIR", str(ROOT / "build/matplotlib"))
import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from bench.sweep.words import number

INK, SOFT, GRID = "#1b1b1a", "#6b6b68", "#dcdcd8"
# Okabe and Ito's palette for colour-blind readers; the first is the baseline's.
COLOURS = (INK, "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#b07f00", "#56b4e9", "#7a5195")
DASHES = ("", "7 2", "3 2", "7 2 2 2", "12 3 3 3")  # as SVG and CSS write them
VARIABLES = {INK: "--ink", SOFT: "--soft", GRID: "--grid"} | {
    colour: f"--line-{at}" for at, colour in enumerate(COLOURS) if at
}
SPAN_LOG = 20.0  # ratio of largest to smallest above which an axis is logarithmic
mpl.rcParams |= {
    "svg.fonttype": "none",  # text can be searched and read aloud
    "svg.hashsalt": "sweep",  # reproducible files
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
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "hatch.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": SOFT,
    "grid.color": GRID,
    "legend.frameon": False,
}


def colour(style: int) -> str:
    return COLOURS[style % len(COLOURS)]


def dashes(style: int) -> str:
    """Different from those of neighbours, and of the next line of the same colour."""
    return DASHES[(style + style // len(COLOURS)) % len(DASHES)]


def svg(figure: Figure, ident: str, title: str, text: str) -> str:
    """The figure for embedding in HTML: unique ids, no name spaces, the page's colours."""
    out = io.StringIO()
    no_metadata = dict.fromkeys(("Date", "Creator", "Format", "Type"))
    # savefig() would draw twice.
    FigureCanvasSVG(figure).print_svg(out, metadata=no_metadata)  # type: ignore[no-untyped-call]
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
    """The page's font in the laid out size."""
    return f"font-size: {match[1]}" if match[1] else ""


def new_axes(width: float, height: float) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.add_subplot()


def plain(axis: Any, ticks: Sequence[float] | None = None) -> None:
    """Ticks as in the tables, not as powers."""
    if ticks is not None:
        axis.set_major_locator(FixedLocator(ticks))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _at: number(value)))


def round_ticks(least: float, most: float, subs: tuple[int, ...] = (1, 2, 5)) -> list[float]:
    """1, 2, 5, 10 ... within the range, at most a dozen."""
    powers = range(math.floor(math.log10(least)) - 1, math.ceil(math.log10(most)) + 1)
    found = [s * 10.0**p for p in powers for s in subs if least <= s * 10.0**p <= most]
    if len(found) > 8 and len(subs) > 1:
        return round_ticks(least, most, (1,))
    return found[:: len(found) // 12 + 1]


def apart(values: Sequence[float], logarithmic: bool) -> list[float]:
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
