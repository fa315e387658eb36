# SPDX-License-Identifier: BSD-3-Clause
"""Numbers as text."""

from typing import Any


def number(value: float) -> str:
    if value and abs(value) < 0.995:
        return f"{value:.2g}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def spread(cell: dict[str, Any]) -> str:
    if cell["min"] == cell["max"]:
        return number(cell["median"])
    return f"{number(cell['median'])} ({number(cell['min'])} to {number(cell['max'])})"


def repeats(count: int, samples: list[int]) -> str:
    """The number of repeats, and the fewest samples of any."""
    return f"{count} x {min(samples):,}" if samples else f"{count}"


def times(ratio: dict[str, float]) -> str:
    middle = ratio["median"]
    return f"x{middle:.2f}" if middle >= 0.1 else f"x{middle:.2g}"
