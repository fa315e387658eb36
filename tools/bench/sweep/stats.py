# SPDX-License-Identifier: BSD-3-Clause
"""The exact rank-sum test: are two sets of repeats different? It assumes no distribution."""

import math
from collections.abc import Sequence

from scipy.stats import PermutationMethod, mannwhitneyu

ALPHA = 0.01  # rate of false differences; needs 5 repeats of each
EXACT_MOST = 20_000  # permutations, above which the normal approximation is used


def p_value(a: Sequence[float], b: Sequence[float]) -> float:
    """Two-sided p-value: how often chance alone would separate them as far."""
    exact = math.comb(len(a) + len(b), len(a)) <= EXACT_MOST  # also where values are equal
    method = PermutationMethod(n_resamples=EXACT_MOST) if exact else "asymptotic"
    return float(mannwhitneyu(a, b, method=method).pvalue)


def can_tell(n: int, m: int) -> bool:
    """Are there enough repeats to show the clearest difference?"""
    return 2 / math.comb(n + m, n) <= ALPHA if n and m else False


def verdict(base: Sequence[float], other: Sequence[float], better: str) -> str:
    """`other` against `base`: better, worse, not distinguishable, or too few repeats; "neither" if
    neither more nor less is better."""
    if better == "neither":
        return "neither"
    if not can_tell(len(base), len(other)):
        return "too few repeats"
    if p_value(base, other) > ALPHA:
        return "not distinguishable"
    above = mannwhitneyu(base, other).statistic  # pairs in which the base's value is the larger
    lower = above > len(base) * len(other) / 2
    return "better" if lower == (better == "lower") else "worse"
