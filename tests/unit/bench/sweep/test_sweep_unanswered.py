# SPDX-License-Identifier: BSD-3-Clause
"""What had no answer has no latency, and may not be forgotten: not in a percentile, a ratio, a
figure, nor where two sweeps are compared."""

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("hdrh.histogram", reason="run tools/setup")
import sweep_made
from bench import task as tasks
from bench.samples import Samples
from bench.sweep import compare, table

TASK = """
from bench.samples import Samples
from bench.task import Distribution, Number, Report, Value
HELP = "For tests."
PARAMETERS = {"load": Number(1, 9), "lost": Number(0, 100_000)}
METRICS = {"time": Distribution("us"), "late": Distribution("us", of_answers=False),
           "speed": Value("1/s", better="higher")}
COUNTS = {"no-answer": "timed out", "sent-again": "answered all the same"}
UNANSWERED = ("no-answer",)
CHECKS_IDS = False

def run(state, p):
    return p

def report(state, p, raw):
    samples = Samples()
    for ns in range(2000, 12_000):  # 10,000 of them
        samples.add(ns)
    lost = p["lost"] if p["load"] > 1 else 0
    return Report({"speed": 5.0}, {"time": samples, "late": samples},
                  {"no-answer": lost, "sent-again": 3})

prepare = clean = lambda *_: None
"""


pytestmark = pytest.mark.usefixtures("no_fsync")


@pytest.fixture
def swept(tmp_path: Path):
    """A sweep of two loads, at the higher of which so many are lost."""

    def swept(lost: int, out: str = "out", repeats: int = 1, task: str = TASK) -> dict[str, Any]:
        entry = {
            "parameters": {"load": [1, 2], "lost": [lost]},
            "metrics": ["time p50", "time p99", "time max", "late p99", "speed"],
            "baseline": {"load": 1},
        }
        path = sweep_made.box_of(tmp_path, task, repeats, **entry)
        return sweep_made.swept(path, tmp_path / out)

    return swept


def test_what_never_ended_took_longer_than_all_that_did():
    samples = Samples()
    for ns in range(1, 1001):
        samples.add(ns)
    assert (samples.percentile(50), samples.percentile(50, never=500)) == (500, 750)
    assert samples.percentile(50, never=1000) == 1000
    assert samples.percentile(50, never=1001) is None
    assert samples.percentile(99, never=10) == 1000
    assert samples.percentile(99, never=11) is None
    assert samples.max() == 1000 and samples.max(never=1) is None
    assert set(samples.percentiles("ns", never=600)) == {"p50"}
    # Never is not a sample: too few stay too few.
    assert Samples().percentile(50, never=100) is None


@pytest.mark.parametrize("never", [0, 10, 300, 2000])
def test_a_curve_ends_where_the_percentiles_do(never):
    samples = Samples()
    for ns in range(1, 1001):
        samples.add(ns)
    curve = samples.curve(never)
    share = 100 * 1000 / (1000 + never)
    assert max(curve) <= min(99, share) and max(curve) > min(99, share) - 10
    assert all(ns == samples.percentile(p, never) for p, ns in curve.items() if p)


def test_a_percentile_among_what_had_no_answer_is_none_and_has_no_ratio(swept, tmp_path):
    result = swept(2500)
    base, row = result["tables"][0]["rows"]
    cells = row["cells"]
    # Of 12,500 half took 6,250 or less of the 10,000.
    assert cells["time p50"]["median"] == pytest.approx(8.25, rel=0.002)
    assert cells["time p50"]["ratio"]["median"] == pytest.approx(8.25 / 7, rel=0.002)
    assert cells["time p99"] == cells["time max"] == {"refused": "20% had no answer"}
    # What is not of answers is as it was, and what stands without any loss too.
    assert cells["late p99"]["median"] == base["cells"]["late p99"]["median"]
    assert base["cells"]["time p99"]["median"] == pytest.approx(11.9, rel=0.002)
    assert row["counts"] == {"no-answer": 2500, "sent-again": 3}
    assert "- (20% had no answer)" in table.markdown(result)
    (trial,) = (tmp_path / "out" / "trials" / row["test"]).glob("*.json")
    assert set(json.loads(trial.read_text())["percentiles"]["time"]) == {"p50"}


def test_one_in_a_hundred_is_the_most_a_p99_bears(swept):
    at, beyond = (swept(lost, f"{lost}")["tables"][0]["rows"][1]["cells"] for lost in (101, 102))
    assert at["time p99"]["median"] == pytest.approx(12, rel=0.002)
    assert beyond["time p99"] == {"refused": "1.01% had no answer"}


def test_two_sweeps_that_lost_unlike_are_not_called_better(swept):
    one, other = (json.loads(json.dumps(swept(lost, f"{lost}", 5))) for lost in (0, 2500))
    for row in other["tables"][0]["rows"]:  # the parameter that makes them so is none of the test
        row["test"] = row["test"].replace("lost=2500", "lost=0")
    other |= {"quick": True, "finished": False}
    rows = {}
    shown = compare.compare(one, other).splitlines()
    for line in shown:
        cells = [cell.strip() for cell in line.split("|")[1:-1]]
        if cells and cells[0].startswith("made,load=2"):
            rows[cells[1]] = cells[2:]
    for metric in ("time p50, us", "late p99, us", "speed, 1/s"):
        assert rows[metric][2:] == ["-", "counts differ: no-answer 0/12,500"], metric
    assert rows["time p99, us"][-1] == "B has none: 20% had no answer"
    assert rows["no-answer, counted"] == ["0", "12,500", "-", "counts differ"]
    assert "sent-again, counted" not in rows
    assert shown[:2] == ["A: 5 repeats, finished", "B: 5 repeats, --quick, NOT FINISHED"]
    assert any("4 counts differ" in line for line in shown)
    # Where as many were lost nothing keeps from comparing.
    alike = compare.compare(one, one)
    assert "counts differ" not in alike and "10 not distinguishable" in alike


def test_a_page_draws_no_more_than_the_table_tells(swept, tmp_path):
    pytest.importorskip("matplotlib", reason="run tools/setup")
    from bench.sweep import report

    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "results.json").write_text(json.dumps(swept(2500)))
    page = report.page(tmp_path / "out")
    assert "load 1: p50 7, p90 11, p99 11.9, p99.9 12. load 2: p50 8.26." in page


def test_a_task_names_only_what_it_counts(swept):
    task = TASK.replace('UNANSWERED = ("no-answer",)', 'UNANSWERED = ("lost",)')
    with pytest.raises(tasks.TaskError, match=r"UNANSWERED: lost: none of COUNTS"):
        swept(0, task=task)
