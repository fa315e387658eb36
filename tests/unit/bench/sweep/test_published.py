# SPDX-License-Identifier: BSD-3-Clause
"""Others' own figures beside a sweep's: which cell stands beside which, and what is not known."""

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("hdrh.histogram", reason="run tools/setup")
from bench.sweep import box as boxes
from bench.sweep import published, table
from sweep_made import box_of, swept

ROOT = Path(__file__).resolve().parents[4]
TASK = """
from bench.samples import Samples
from bench.task import Choice, Distribution, Missing, Number, Report, Value, WrongIds
HELP = "For tests."
PARAMETERS = {"system": Choice(("fast", "slow", "wrong", "absent")), "size": Number(1, 9)}
METRICS = {"time": Distribution("us"), "speed": Value("1/s", better="higher")}
COUNTS, UNANSWERED = {"lost": "no ids", "again": "ids all the same"}, ("lost",)
CHECKS_IDS = True
LOST, AGAIN = 0, 3
US = {"fast": 10, "slow": 200}

def prepare(context):
    return None

def run(state, p):
    if p["system"] == "absent":
        raise Missing("not here")
    if p["system"] == "wrong":
        raise WrongIds("text 1")
    return US[p["system"]] * p["size"]

def report(state, p, us):
    samples = Samples()
    samples.add(1000 * us, 100)
    lost = LOST if p == {"system": "fast", "size": 2} else 0
    counts = {"lost": lost, "again": AGAIN}
    return Report({"speed": 1e6 / us}, {"time": samples}, counts, ids_checked=1)

def clean(state):
    pass
"""
FILE = {
    "who": "They",
    "source": "Their paper, table 1",
    "remarks": ["another machine"],
    "by": "system",
    "names": {"fast": "Theirs", "slow": "Their baseline", "wrong": "W", "absent": "A"},
    "figures": [
        {"parameters": {"system": "fast", "size": 1}, "metrics": {"time p50": 5}},
        {"parameters": {"system": "slow", "size": 1}, "metrics": {"time p50": 20, "speed": 3}},
        {"parameters": {"system": "fast", "size": 2}, "metrics": {"time p50": 7}},
        {"parameters": {"system": "fast"}, "metrics": {"speed": 12}},
    ],
}


pytestmark = pytest.mark.usefixtures("no_fsync")


@pytest.fixture
def made(tmp_path: Path):
    def write(systems: list[str], baseline: dict[str, Any] | None = None, **file: Any) -> Path:
        (tmp_path / "theirs.json").write_text(json.dumps(FILE | file))
        entry = {
            "parameters": {"system": systems, "size": [1, 2]},
            "metrics": ["time p50", "time p99", "speed"],
            "baseline": baseline or {"system": "slow"},
            "published": "theirs.json",
        }
        return box_of(tmp_path, TASK, 2, **entry)

    return write


def cells_of(summary_: dict[str, Any], system: str) -> dict[tuple[int, str], dict[str, Any]]:
    found = summary_["tables"][0]["published"]["systems"][system]
    return {(c["parameters"]["size"], c["metric"]): c for c in found}


def test_each_figure_stands_beside_its_cell(made, tmp_path):
    result = swept(made(["fast", "slow"]), tmp_path / "out")
    cells = cells_of(result, "fast")
    assert list(cells) == [(1, "time p50"), (1, "speed"), (2, "time p50"), (2, "speed")]
    first = cells[1, "time p50"]
    assert first["times"]["median"] == pytest.approx(20, rel=0.01)
    assert (first["theirs"], first["their_base"], first["their_times"]) == (5, 20, 4)
    assert cells[1, "speed"]["times"]["median"] == pytest.approx(20)  # more is better there
    assert cells[1, "speed"]["their_times"] == 4
    assert (cells[2, "time p50"]["theirs"], cells[2, "time p50"]["their_base"]) == (7, None)
    assert cells[2, "speed"]["theirs"] == 12  # told for every size
    text = table.markdown(result)
    assert "made, beside They's own figures" in text and "Their paper, table 1" in text
    assert "- another machine" in text
    row = next(line for line in text.splitlines() if "| 2 " in line and "not stated" in line)
    told = [c.strip() for c in row.split("|")][1:-1]
    assert told[:6] == ["2", "time p50, us", "20", "400", "2 x 100", "20"]
    assert told[6:] == ["7", "not stated", "-"]
    assert (
        "fast is better than slow in every repeat in 4 of 4 cells (0 not measured); the ratio's "
        "median is above They's own in 2 of the 2 cells where both are known."
    ) in text


def test_ratios_have_three_digits():
    shown = {7.0: "7", 19.71: "19.7", 99.52: "99.5", 123.4: "123", 1234.5: "1234"}
    for value, text in shown.items():
        cell = dict.fromkeys(("median", "min", "max"), value)
        assert published._told_times(cell) == text


def test_what_is_not_there_has_no_ratio_and_is_not_left_out(made, tmp_path):
    result = swept(made(["fast", "slow", "wrong", "absent"]), tmp_path / "out")
    for system, state in (("wrong", "refused"), ("absent", "missing")):
        cells = cells_of(result, system)
        assert len(cells) == 4
        assert {c["here"]["refused"] for c in cells.values()} == {state}
        assert {c["times"] for c in cells.values()} == {None}
    assert "0 of 4 cells (4 not measured)" in published.verdict(
        result["tables"][0]["published"], "wrong"
    )
    # And where it is the baseline that is wrong, nothing is a ratio to it.
    names = {"fast": "F", "wrong": "B"}
    figures = FILE["figures"][:1]
    path = made(["fast", "wrong"], {"system": "wrong"}, names=names, figures=figures)
    cells = cells_of(swept(path, tmp_path / "other"), "fast")
    assert [(c["times"], c["base"]) for c in cells.values()] == [(None, {"refused": "refused"})] * 2


def test_what_had_no_answer_is_not_left_out_of_a_value(made, tmp_path):
    path = made(["fast", "slow"])
    task = tmp_path / "tasks" / "made" / "task.py"
    task.write_text(TASK.replace("LOST, AGAIN = 0", "LOST, AGAIN = 4"))
    result = swept(path, tmp_path / "out")
    cells = cells_of(result, "fast")
    assert cells[2, "speed"]["here"] == {"refused": "8 had no answer"}  # of two repeats
    assert cells[2, "speed"]["times"] is None and cells[1, "speed"]["times"] is not None
    assert cells[2, "time p50"]["times"]["median"] == pytest.approx(20, rel=0.01)
    assert "| - (8 had no answer) |" in table.markdown(result)
    assert "in 3 of 4 cells (1 not measured)" in table.markdown(result)


def by_size(made: Any, *figures: dict[str, Any]) -> Path:
    names = {"1": "Their small", "2": "Their large"}
    return made(["fast"], {"size": 1}, by="size", names=names, figures=list(figures))


def test_what_tells_only_how_many_times_better_stands_beside_a_number(made, tmp_path):
    large = {"parameters": {"size": 2}, "times": {"speed": [0.25, 3], "time p50": 4}}
    result = swept(by_size(made, large), tmp_path / "out")
    found = result["tables"][0]["published"]
    assert found["baseline"] == "size 1" and found["names"]["size 2"] == "Their large"
    p50, speed = found["systems"]["size 2"]
    assert (p50["theirs"], p50["their_base"]) == (None, None)
    assert (p50["their_times_least"], p50["their_times"]) == (4, 4)
    assert (speed["their_times_least"], speed["their_times"]) == (0.25, 3)
    assert speed["times"]["median"] == pytest.approx(0.5)
    text = table.markdown(result)
    rows = [[c.strip() for c in line.split("|")] for line in text.splitlines()]
    (row,) = (r for r in rows if "speed, 1/s" in r and "not stated" in r)
    assert row[-4:-1] == ["not stated", "not stated", "0.25 to 3"]
    assert "above They's own in 0 of the 2 cells where both are known" in text


@pytest.mark.parametrize(
    ("figure", "complaint"),
    [
        ({}, "figures[0]: give its metrics, or its times"),
        ({"times": {"speed": [3, 2]}}, "figures[0].times.speed: [3, 2]: give the least first"),
        ({"times": {"speed": [1, 2, 3]}}, "[1, 2, 3]: give a number above 0"),
        ({"times": {"speed": [0, 3]}}, "figures[0].times.speed: 0: give a number above 0"),
        ({"times": {"sped": 3}}, "figures[0].times: 'sped'"),
    ],
)
def test_times_that_cannot_be_are_refused(made, figure, complaint):
    with pytest.raises(boxes.BoxError) as error:
        boxes.load(by_size(made, {"parameters": {"size": 2}} | figure), quick=False)
    assert complaint in str(error.value)


@pytest.mark.parametrize(
    ("file", "complaint"),
    [
        ({"by": "size"}, "by: 'size': the box's baseline must be one value of it"),
        ({"names": []}, "names: [] is not an object"),
        ({"names": {"fats": "x"}}, "names.system: 'fats': give one of fast"),
        ({"names": {"fast": "x"}}, "the baseline 'slow' has no name"),
        ({"remarks": "x"}, "remarks: 'x': write a list"),
        ({"figures": []}, "figures: []: write a list"),
        ({"extra": 1}, "unknown key 'extra'"),
        (
            {"figures": [{"parameters": {"size": 1}, "metrics": {}}]},
            "figures[0].parameters: key 'system' is missing",
        ),
        (
            {"figures": [{"parameters": {"system": "fast", "size": 99}, "metrics": {}}]},
            "figures[0].parameters.size: 99: give a whole number from 1 to 9",
        ),
        (
            {"figures": [{"parameters": {"system": "fast"}, "metrics": {"time p5o": 1}}]},
            "figures[0].metrics: 'time p5o': time is a distribution",
        ),
        (
            {"figures": [{"parameters": {"system": "fast"}, "metrics": {"speed": 0}}]},
            "figures[0].metrics.speed: 0: give a number above 0",
        ),
    ],
)
def test_a_file_that_cannot_stand_beside_a_box_is_refused(made, file, complaint):
    with pytest.raises(boxes.BoxError) as error:
        boxes.load(made(["fast", "slow"], **file), quick=False)
    assert complaint in str(error.value) and "theirs.json" in str(error.value)


# ---- the boxes that have such a file ----


@pytest.mark.parametrize("quick", [True, False])
@pytest.mark.parametrize("name", ["blink-fig4", "buddy", "nthu", "pintok"])
def test_figures_of_others_all_have_a_row(name, quick):
    beside = [e for e in boxes.load(ROOT / "boxes" / f"{name}.json", quick).entries if e.published]
    assert beside
    for entry in beside:
        names = {metric.name for metric in entry.metrics}
        for figure in entry.published.figures:
            assert {*figure.values, *figure.times} <= names
            assert any(figure.parameters.items() <= t.parameters.items() for t in entry.tests)


@pytest.mark.parametrize("quick", [True, False])
def test_pintoks_p99_is_that_of_1000_requests_at_least(quick):
    for entry in boxes.load(ROOT / "boxes" / "pintok.json", quick).entries:
        if any("p99" in metric.name for metric in entry.metrics):
            assert all(test.parameters["requests"] >= 1000 for test in entry.tests)
