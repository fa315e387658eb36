# SPDX-License-Identifier: BSD-3-Clause
"""Answers of tokd-gpu's stand-in for a model."""


def by_rule(prompt: list[int], n: int, rows: int) -> list[int]:
    """The first `n` ids of its answer, with a table of `rows`
    (lib/gpu_sink/kernel/engine_rule.h)."""
    last, before, made = prompt[-1], 0, []
    for _ in range(n):
        last, before = (3 * last + 5 * before + len(prompt) + 1) % rows, last
        made.append(last)
    return made
