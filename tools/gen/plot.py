# SPDX-License-Identifier: BSD-3-Clause
"""How the figures of doc/results are written."""

import io
from pathlib import Path

from matplotlib.figure import Figure


def compact(svg: str) -> str:
    """A line for each group. matplotlib writes one for each point of a curve."""
    lines = [line.strip() for line in svg.splitlines()]
    return "".join(("\n" if x.startswith("<g id") else " ") + x for x in lines).strip() + "\n"


def save(figure: Figure, path: Path) -> None:
    out = io.StringIO()
    figure.savefig(out, format="svg", transparent=True, metadata={"Date": None})
    path.write_text(compact(out.getvalue()))
