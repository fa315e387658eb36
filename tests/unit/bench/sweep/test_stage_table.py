# SPDX-License-Identifier: BSD-3-Clause
"""A box's stages, a row each, beside others' own: which figure stands where, and what has none."""

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("hdrh.histogram", reason="run tools/setup")
from bench.sweep import box as boxes
from bench.sweep import report, table
from sweep_made import box_of, swept

TASK = """
from bench.samples import Samples
from bench.task import Choice, Distribution, Missing, Report
HELP = "For tests."
PARAMETERS = {"way": Choice(("near", "far"))}
METRICS = {"read": Distribution("us"), "send": Distribution("us")}
COUNTS, CHECKS_IDS = {}, False

def run(state, p):
    if p["way"] == "far":
        raise Missing("no road")

def report(state, p, raw):
    samples = Samples()
    samples.add(5000, 20)
    return Report(samples={"read": samples}, missing={"send": "no wire"}, clocks={"read": "ours"})

prepare = clean = lambda *_: None
"""
FILE = {
    "who": "They",
    "source": "Their paper",
    "remarks": ["another machine"],
    "figures": [
        {"parameters": {"way": "far"}, "metrics": {"read": [1011, "by ship"]}},
        {"parameters": {}, "metrics": {"send": [46, "by rail"]}},
    ],
}

pytestmark = pytest.mark.usefixtures("no_fsync")


@pytest.fixture
def made(tmp_path: Path):
    def write(task: str = TASK, **file: Any) -> Path:
        (tmp_path / "theirs.json").write_text(json.dumps(FILE | file))
        entry = {
            "parameters": {"way": ["near", "far"]},
            "metrics": ["read p50", "read p99", "send p50"],
            "stage-figures": "theirs.json",
        }
        return box_of(tmp_path, task, 1, **entry)

    return write


def test_each_stage_has_its_clock_its_samples_and_theirs(made, tmp_path):
    result = swept(made(), tmp_path / "out")
    text = table.markdown(result)
    rows = [[c.strip() for c in line.split("|")][1:-1] for line in text.splitlines()]
    head = ["way", "stage", "p50", "p99", "repeats x samples", "whose, by which clock", "They's"]
    assert head in rows
    assert ["near", "read, us", "5", "20 of 1,000 samples", "1 x 20", "ours", "-"] in rows
    # What a trial could not measure, and what a test could not, is not left out or filled.
    assert ["near", "send, us", "not run: no wire", "", "-", "-", "46 (by rail)"] in rows
    assert ["far", "read, us", "not run: no road", "-", "-", "-", "1,011 (by ship)"] in rows
    assert ["far", "send, us", "not run: no road", "", "-", "-", "46 (by rail)"] in rows
    assert "- They's: Their paper" in text and "- another machine" in text
    page = str(report.page(tmp_path / "out"))
    assert "1,011 (by ship)" in page and "not run: no wire" in page


@pytest.mark.parametrize(
    ("metrics", "complaint"),
    [
        ({"read": 1011}, "figures[0].metrics.read: 1011: give a number and what it is of"),
        ({"read": [0, "a"]}, "figures[0].metrics.read: 0: give a number above 0"),
        ({"read": [1, ""]}, "figures[0].metrics.read: '' is not a text"),
        ({"read p50": [1, "a"]}, "figures[0].metrics: unknown key 'read p50'"),
    ],
)
def test_figures_that_cannot_be_are_refused(made, metrics, complaint):
    with pytest.raises(boxes.BoxError) as error:
        boxes.load(made(figures=[{"parameters": {}, "metrics": metrics}]), quick=False)
    assert complaint in str(error.value)


def test_a_metric_that_is_missing_and_measured_is_a_fault_of_the_task(made, tmp_path):
    path = made(TASK.replace('{"send": "no wire"}', '{"read": "no wire"}'))
    with pytest.raises(Exception, match="its report has samples"):
        swept(path, tmp_path / "out")
