# SPDX-License-Identifier: BSD-3-Clause
"""The knee of a load-latency curve: where the box's rule ends, and what a box may not say."""

from typing import Any

import pytest

pytest.importorskip("hdrh.histogram", reason="run tools/setup")
from bench.sweep import box as boxes
from bench.sweep import knee, table
from bench.sweep.box import BoxError
from bench.sweep.knee import Knee
from bench.sweep.section import Section
from sweep_made import box_of

RULE = Knee("load", "p99", 5, {"achieved": 99}, ["no-answer"], {"late": 0.5})
METRICS = [{"name": "p99", "unit": "us", "better": "lower"},
           {"name": "achieved", "unit": "%", "better": "higher"},
           {"name": "late", "unit": "us", "better": "lower"}]  # fmt: skip


def row(
    load: int, p99: float, system: str = "a", achieved: float = 100.0, lost: int = 0,
    late: float = 0.5,
) -> Any:  # fmt: skip
    cells = {
        name: {"median": value, "min": value, "max": value}
        for name, value in (("p99", p99), ("achieved", achieved), ("late", late))
    }
    return {"parameters": {"system": system, "load": load}, "state": "done", "cells": cells,
            "counts": {"no-answer": lost}}  # fmt: skip


def found(*rows: Any) -> list[Any]:
    return list(knee.lines(RULE, ["system", "load"], list(rows)))


def test_it_is_the_highest_load_at_which_all_holds():
    (line,) = found(row(1000, 10), row(2000, 12), row(4000, 50), row(8000, 51))
    assert line["knee"] == 4000 and line["cells"]["p99"]["median"] == 50
    assert line["ended"] == {"at": 8000, "why": "p99 is x5.10"}


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        (row(2000, 10, achieved=98.9), "achieved is 98.9"),
        (row(2000, 10, lost=3), "no-answer: 3"),
        (row(2000, 10) | {"state": "failed", "reason": "it broke"}, "failed: it broke"),
        (row(2000, 10, late=5.1), "the generator, not the system: late is 5.1, p99 10"),
        # It is named also where all the rest is broken with it.
        (row(2000, 900, achieved=9, lost=3, late=800),
         "the generator, not the system: late is 800, p99 900"),
        (row(2000, 10) | {"cells": {"p99": {"refused": "5 of 1,000 samples"}}},
         "p99: 5 of 1,000 samples"),
        (row(2000, 10) | {"cells": {"p99": {"median": 10}, "achieved": {"refused": "1% had none"}}},
         "achieved: 1% had none"),
    ],
)  # fmt: skip
def test_what_does_not_hold_ends_it_whatever_comes_behind(bad, why):
    (line,) = found(row(1000, 10), bad, row(4000, 10))
    assert line["knee"] == 1000 and line["ended"] == {"at": 2000, "why": why}


def test_it_may_lie_beyond_what_was_tried_or_below():
    one, other = found(row(1000, 10), row(2000, 10), row(1000, 10, "b", lost=1), row(2000, 9, "b"))
    assert (one["knee"], one["ended"]) == (2000, None)
    assert (other["knee"], other["cells"]) == (None, {})
    given = {"along": "load", "varied": ["system"], "lines": [one, other]}
    head, *lines = knee.table_rows(given, METRICS)
    assert head == ["system", "knee, load", "p99 there, us", "achieved there, %",
                    "late there, us", "beyond it"]  # fmt: skip
    assert lines == [
        ["a", "2,000 or more", "10", "100", "0.5", "not tried"],
        ["b", "below 1,000", "-", "-", "-", "at 1,000: no-answer: 1"],
    ]


def test_nothing_is_so_many_times_0():
    (line,) = found(*(row(at, p99, late=0) for at, p99 in ((1000, 0), (2000, 0), (4000, 1))))
    assert line["knee"] == 2000 and line["ended"] == {"at": 4000, "why": "p99 is above 0"}


def test_loads_need_not_stand_in_order():
    (line,) = found(row(4000, 90), row(1000, 10), row(2000, 20))
    assert line["knee"] == 2000


TASK = """
from bench.samples import Samples
from bench.task import Number, Report, Value
HELP, COUNTS, CHECKS_IDS = "For tests.", {"no-answer": "timed out"}, False
PARAMETERS, METRICS = {"load": Number(1, 9)}, {"time": Value("us"), "speed": Value("1/s"),
                                               "late": Value("us")}
prepare = run = report = clean = lambda *_: None
"""
GIVEN = {"along": "load", "metric": "time", "times": 5, "none": ["no-answer"]}


@pytest.fixture
def made(tmp_path):
    def write(**change: Any) -> Any:
        entry = {"parameters": {"load": [1, 2]}, "metrics": ["time", "late"]}
        return box_of(tmp_path, TASK, 1, **entry, knee=GIVEN | change)

    return write


def test_a_box_states_the_rule(made):
    (entry,) = boxes.load(made(least={"time": 2}, generator={"late": 0.5}), quick=False).entries
    assert entry.knee == Knee("load", "time", 5, {"time": 2}, ["no-answer"], {"late": 0.5})
    assert entry.knee.rule() == (
        "The knee: the highest load up to which time is at most 5 times that of the lowest load, "
        "and time is at least 2, and nothing is counted as no-answer, and the generator's own late "
        "is at most 0.5 times time. Medians of the repeats decide."
    )


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"along": "size"}, "knee.along: 'size' is no parameter of several numbers here"),
        ({"metric": "speed"}, "knee: 'speed' is none of the metrics: time, late"),
        ({"least": {"speed": 1}}, "knee: 'speed' is none of the metrics: time"),
        ({"generator": {"speed": 1}}, "knee: 'speed' is none of the metrics: time"),
        ({"generator": {"late": 0}}, "knee.late: 0: give a number above 0"),
        ({"times": 0}, "knee.times: 0: give a number above 0"),
        ({"times": "5"}, "knee.times: '5': give a number above 0"),
        ({"none": ["lost"]}, "knee.none: 'lost' is not counted: no-answer"),
        ({"more": 1}, "unknown key 'more'"),
    ],
)
def test_what_a_box_may_not_say_is_named(made, change, complaint):
    with pytest.raises(BoxError) as error:
        boxes.load(made(**change), quick=False)
    assert complaint in str(error.value)


def test_it_stands_below_the_table_and_in_the_page(tmp_path):
    rows = [row(1000, 10) | {"test": "one"}, row(2000, 90) | {"test": "two"}]
    given = {
        "task": "made", "help": "", "constants": {}, "varied": ["load"], "baseline": None,
        "metrics": METRICS, "counts": {"no-answer": ""}, "checks_ids": False, "published": None,
        "rows": [r | {"reason": "", "is_baseline": False, "repeats": 1} for r in rows],
        "knee": knee.beside(RULE, ["load"], rows),
    }  # fmt: skip
    text = "\n".join(table._one(given))
    assert "### made: the knee" in text and "at 2,000: p99 is x9.00" in text
    page = Section(tmp_path, 0, given).html()
    assert "The knee</h3>" in page and "<td>at 2,000: p99 is x9.00</td>" in page
