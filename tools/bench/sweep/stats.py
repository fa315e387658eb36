# SPDX-License-Identifier: BSD-3-Clause
"""Are two sets of repeats different? The rank-sum test, exact, which assumes no distribution."""

import math
from collections.abc import Sequence
from itertools import combinations

ALPHA = 0.01  # so seldom two equal things are called different; 5 repeats of each can show it
EXACT_MOST = 20_000  # ways to deal the values, beyond which the normal approximation is used


def _ranks(values: Sequence[float]) -> list[float]:
    """From 1; equal values share the mean of theirs."""
    ordered = sorted(values)
    return [
        (2 * ordered.index(v) + ordered.count(v) + 1) / 2 for v in values
    ]  # few: square is nothing


def _approximate(n: int, m: int, ranks: list[float], far: float) -> float:
    total = n + m
    ties = sum(ranks.count(r) ** 3 - ranks.count(r) for r in set(ranks))
    variance = n * m / 12 * (total + 1 - ties / (total * (total - 1)))
    if variance == 0:
        return 1.0
    return math.erfc(max(0.0, far - 0.5) / math.sqrt(variance) / math.sqrt(2))


def p_value(a: Sequence[float], b: Sequence[float]) -> float:
    """How often chance alone would set them as far apart, in either direction."""
    n, m = len(a), len(b)
    ranks = _ranks([*a, *b])
    middle = n * (n + m + 1) / 2
    far = abs(sum(ranks[:n]) - middle)
    if math.comb(n + m, n) > EXACT_MOST:
        return _approximate(n, m, ranks, far)
    sums = [abs(sum(some) - middle) for some in combinations(ranks, n)]
    return sum(s >= far - 1e-9 for s in sums) / len(sums)


def can_tell(n: int, m: int) -> bool:
    """Are these repeats enough to tell the clearest difference?"""
    return 2 / math.comb(n + m, n) <= ALPHA if n and m else False


def verdict(base: Sequence[float], other: Sequence[float], better: str) -> str:
    """Of `other`, against `base`: better, worse, not distinguishable, or too few repeats; neither
    where neither more nor less is better."""
    if better == "neither":
        return "neither"
    if not can_tell(len(base), len(other)):
        return "too few repeats"
    if p_value(base, other) > ALPHA:
        return "not distinguishable"
    ranks = _ranks([*base, *other])
    lower = sum(ranks[len(base) :]) / len(other) < sum(ranks[: len(base)]) / len(base)
    return "better" if lower == (better == "lower") else "worse"
