# SPDX-License-Identifier: BSD-3-Clause
"""Parts of the task soak: what counts as growth, and which texts are sent."""

import pytest
from bench.lab import memory
from bench.texts import mix as texts


def samples(name: str, values: list[int]) -> list[dict[str, int]]:
    """One figure so, all others constant; the i-th sample at i texts done."""
    others = {figure.name: 5 for figure in memory.FIGURES}
    return [others | {name: value, "done": i} for i, value in enumerate(values)]


@pytest.mark.parametrize("figure", memory.FIGURES, ids=lambda figure: figure.name)
def test_more_than_the_slack_is_growth(figure):
    steady = [7] * 90
    for late, flat in ((7, True), (7 + figure.slack, True), (8 + figure.slack, False), (0, True)):
        held = memory.compare(samples(figure.name, [*steady, *[late] * 11]))
        assert held[figure.name]["flat"] is flat
        assert held[figure.name]["first_tenth"] == 7
        assert held[figure.name]["last_tenth"] == late
        assert all(one["flat"] for name, one in held.items() if name != figure.name)


def test_a_peak_between_the_tenths_is_shown():
    held = memory.compare(samples("held_mbufs", [*[1] * 50, 99, *[1] * 50]))
    assert held["held_mbufs"]["most"] == 99
    assert held["held_mbufs"]["flat"]


def test_each_length_has_its_share():
    found = texts.lengths(1000, texts.MIX)
    assert {n: found.count(n) for n in texts.MIX} == {n: 10 * k for n, k in texts.MIX.items()}
    assert sum(texts.MIX.values()) == 100
    assert set(texts.lengths(10, texts.MIX)) == set(texts.MIX)
