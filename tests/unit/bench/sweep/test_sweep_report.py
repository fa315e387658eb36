# SPDX-License-Identifier: BSD-3-Clause
"""tools/sweep report: one page, of what the sweep's folder has, and of what it lacks."""

import json
import os
import re
import sys
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import unquote

import pytest

pytest.importorskip("hdrh.histogram", reason="run tools/setup")
pytest.importorskip("matplotlib", reason="run tools/setup")
from bench.samples import Samples
from bench.sweep import __main__ as command
from bench.sweep import box as boxes
from bench.sweep import headline, report, summary
from bench.sweep.runner import Runner
from bench.sweep.store import Store

ODD = "<b>$x$ & 'y'</b>"
HERE = {
    "cpu": {"model": 'a "CPU" <of ours>', "cpus": 2, "usable": [0, 1]},
    "kernel": "k </table><script>",
    "revision": "r",
}
TASK = """
from bench.samples import Samples
from bench.task import Choice, Distribution, Missing, Number, Report, Value
HELP = "For <tests>."
PARAMETERS = {"kind": Choice(("good", %r, "absent")), "ns": Number(1, 10_000)}
METRICS = {"time": Distribution("us"), "parse": Value("us"), "merge": Value("us"),
           "idle": Value("%%"), "size": Value("KiB", better="neither")}
COUNTS = {"no-answer": "timed <out>"}
CHECKS_IDS = False

def prepare(context):
    return None

def run(state, p):
    if p["kind"] == "absent":
        raise Missing("no such <device>")
    return p

def report(state, p, raw):
    samples = Samples()
    for step in range(10):
        samples.add(p["ns"] + 100 * step, 100)
    return Report({"parse": p["ns"], "merge": 2 * p["ns"], "idle": 0, "size": 8}, {"time": samples},
                  {"no-answer": 2}, notes=["a <note>"])

def clean(state):
    pass
"""
VOID = {"meta", "br"}


class Page(HTMLParser):
    """Elements in order, each with its attributes and the text directly in it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[SimpleNamespace] = []
        self._stack: list[SimpleNamespace] = []
        self.feed(text)
        assert not self._stack, "elements are left open"

    def handle_starttag(self, tag, attrs):
        one = SimpleNamespace(tag=tag, at=dict(attrs), text="")
        self.found.append(one)
        if tag not in VOID:
            self._stack.append(one)

    def handle_endtag(self, tag):
        assert self._stack.pop().tag == tag

    def handle_startendtag(self, tag, attrs):
        self.found.append(SimpleNamespace(tag=tag, at=dict(attrs), text=""))

    def handle_data(self, data):
        for one in self._stack:
            one.text += data

    def every(self, tag: str) -> list[SimpleNamespace]:
        return [one for one in self.found if one.tag == tag]


@pytest.fixture(scope="module")
def swept(tmp_path_factory) -> Path:
    """The folder of a small sweep, with its page."""
    folder = tmp_path_factory.mktemp("sweep")
    (folder / "tasks/made").mkdir(parents=True)
    (folder / "tasks/made/task.py").write_text(TASK % ODD)
    entry = {
        "task": "made",
        "parameters": {"kind": ["good", ODD, "absent"], "ns": [100, 200, 4000]},
        "metrics": ["time p99.9", "parse", "merge", "idle", "size"],
        "stages": ["parse", "merge"],
        "baseline": {"kind": "good"},
    }
    whole = {
        "name": "a-box",
        "title": "A <box>",
        "repeats": {"full": 2, "quick": 1},
        "tests": [entry],
        "missing": [{"what": "a GPU", "why": "none <here>"}],
    }
    (folder / "box.json").write_text(json.dumps(whole))
    box = boxes.load(folder / "box.json", quick=False)
    out = folder / "out"
    store = Store(out)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)
        store.begin(box, False, HERE, fresh=False)
        Runner(box, store, False, HERE).run()
        result = summary.summarize(box, store, "tools/sweep 'a <box>'")
        (out / "results.json").write_text(json.dumps(result))
        (out / "results.csv").write_text("")
        (out / "hgrm").mkdir()
        for row in result["tables"][0]["rows"]:
            if row["state"] == "done":  # as summary.write_hgrm() names them
                (out / f"hgrm/{row['test']}.time.hgrm").write_text("")
        assert report.write(out) == out / "report.html"
    return out


@pytest.fixture(scope="module")
def text(swept) -> str:
    return (swept / "report.html").read_text()


@pytest.fixture(scope="module")
def page(text) -> Page:
    return Page(text)


def test_each_test_has_a_row_with_links_to_what_it_measured(page, swept):
    results = json.loads((swept / "results.json").read_text())
    rows = results["tables"][0]["rows"]
    assert len(rows) == 9
    links = [unquote(one.at["href"]) for one in page.every("a") if "#" not in one.at["href"]]
    for row in rows:
        assert f"trials/{row['test']}/1.json" in links and f"trials/{row['test']}/2.json" in links
        assert (f"hgrm/{row['test']}.time.hgrm" in links) == (row["state"] == "done")
    assert {"results.json", "results.csv"} <= set(links) and "table.md" not in links  # not there
    assert all((swept / link).is_file() for link in links)
    heads = [one.text for one in page.every("th") if one.at.get("scope") == "row"]
    assert heads.count("good") == heads.count(ODD) == heads.count("absent") == 3


def test_the_page_opens_with_its_finding(page):
    assert next(one for one in page.found if one.tag in ("p", "h2")).at["class"] == "headline"
    (finding,) = [one.text for one in page.every("p") if one.at.get("class") == "headline"]
    assert finding == (
        "made: parse of the others is 1.00 times that of kind good in 3 tests (too few repeats to "
        "decide in 3)."
    )
    words = [one.text for one in page.every("small") if one.at.get("class") == "too few repeats"]
    assert set(words) == {"x1.00, too few repeats", "too few repeats"}  # 0 has no ratio


def _table(**more):
    def row(system: str, p50: float) -> dict:
        cell = {"median": p50, "min": p50, "max": p50}
        base = system == "rust-udp"
        own = {} if base else {"ratio": dict.fromkeys(("median", "min", "max"), p50 / 100),
                               "verdict": "better"}  # fmt: skip
        return {"parameters": {"system": system}, "state": "done", "is_baseline": base,
                "cells": {"p50": cell | own}, "test": system}  # fmt: skip

    return {
        "task": "asked", "varied": ["system"], "baseline": {"system": "rust-udp"}, "published": None,
        "metrics": [{"name": "p50", "unit": "us", "lacks": []}],
        "rows": [row("rust-udp", 100), row("tokd", 5), row("libtok-udp", 50)],
    } | more  # fmt: skip


def test_the_finding_is_about_our_line_or_else_the_extremes():
    asked = _table()
    assert headline.finding(asked) == (
        "asked: p50 of system tokd is 0.05 times that of system rust-udp (better)."
    )
    assert headline.finding(_table(baseline=None)) == (
        "asked: p50 is 5 us (system tokd) to 100 us (system rust-udp)."
    )
    for row in asked["rows"]:
        row |= {"state": "missing", "cells": {}}
    assert headline.finding(asked) == "asked: no test has a figure."


def test_the_page_needs_nothing_else(text):
    assert "http" not in text and "//" not in re.sub(
        r"<style>.*?</style>", "", text, flags=re.DOTALL
    )
    assert not re.search(r"<(script|link|img|iframe|object)|@import|src=|url\((?!#)", text)


def test_text_is_escaped(page, text):
    assert not page.every("script") and not page.every("device")
    for odd in ("A <box>", "For <tests>.", "timed <out>", "a <note>", 'a "CPU" <of ours>',
                "k </table><script>", "tools/sweep 'a <box>'"):  # fmt: skip
        assert any(one.text == odd for one in page.found), odd
    drawn = [one.text for one in page.every("text")]
    assert ODD in drawn  # a name beside a bar, neither markup nor mathematics
    assert ODD in unescape(text)


def test_what_is_missing_is_shown_with_the_reason(page):
    cells = [one.text for one in page.every("td")]
    assert cells.count("missing: no such <device>") == 3
    # A column without a figure is left out, and why stands below the table.
    assert "time p99.9" not in " ".join(one.text for one in page.every("th"))
    assert any(
        one.text == "time p99.9: no figure: 1,000 of 10,000 samples" for one in page.every("li")
    )
    assert any(one.text == "a GPU: missing: none <here>" for one in page.every("li"))
    drawn = [one.text.strip() for one in page.every("text")]
    # For each of the three tests a bar of each metric with ratios, and of stages.
    assert drawn.count("missing: no such <device>") == 3 * (3 + 1)
    captions = [one.text for one in page.every("figcaption")]
    assert "ns 100 no figure: kind absent" in captions
    absent = [one.text for one in page.every("p") if one.text.startswith("Not drawn")]
    assert absent == [
        "Not drawn: no test has a figure for time p99.9.",
        "Not drawn: time p99.9: 1,000 of 10,000 samples; missing: no such <device>.",
        "Not drawn: idle: no ratio: the baseline is 0; missing: no such <device>.",
    ]


def test_a_figure_can_be_read_aloud_and_ids_are_its_own(page, text):
    figures = [one for one in page.every("svg") if one.at.get("role") == "img"]
    assert len(figures) == len(page.every("figure")) == 4 + 3 + 1 + 3
    ids = [one.at["id"] for one in page.found if "id" in one.at]
    assert len(ids) == len(set(ids))
    named = {one.at["id"]: one.text for one in page.found if "id" in one.at}
    for figure in figures:
        assert all(named[which] for which in figure.at["aria-labelledby"].split())
    for used in re.findall(r'(?:href="|url\()#([^")]+)', text):
        assert used in named
    told = [one.text for one in page.every("desc") if one.text.startswith("Percentiles")][-1]
    assert "kind good: p50 4.4, p90 4.8, p99 4.9." in told and "kind absent: no figure" in told


def test_a_curve_is_of_the_percentiles_of_the_tables_and_ends_where_they_do():
    samples = Samples()
    for ns in range(1, 10_000):
        samples.add(ns)
    curve = samples.curve()
    assert max(curve) < 99.9 and min(curve) == 0
    for percentile in (50.0, 90.0, 99.0):
        assert curve[percentile] == samples.percentile(percentile)
    samples.add(10_000)
    assert max(samples.curve()) == 99.9
    assert Samples().curve() == {}


def test_what_has_no_better_has_a_ratio_and_no_mark(page, text):
    drawn = [one.text.strip() for one in page.every("text")]
    assert drawn.count("x1.00") == 3  # size; the two others with a ratio have "?" behind it
    assert drawn.count("x1.00 ?") == 6
    assert "times the baseline's, neither is better" in unescape(text)
    (figure,) = re.findall(r"<svg(?:(?!</svg>).)*size: ratio to(?:(?!</svg>).)*</svg>", text)
    bars = re.findall(r'style="fill: var\(--grid\)', figure)
    assert len(bars) == 3


def test_a_sweep_that_is_not_done_or_not_right_says_so(swept, tmp_path):
    """Also without trials: a page of the tables alone."""
    results = json.loads((swept / "results.json").read_text())
    results |= {"finished": False, "ids_right": False, "quick": True}
    results["tables"][0] |= {"baseline": None, "stages": [], "varied": ["kind"]}
    (tmp_path / "results.json").write_text(json.dumps(results))
    shown = report.page(tmp_path)
    warnings = [one.text for one in Page(shown).every("p") if one.at.get("class") == "warning"]
    assert [text.split()[0] for text in warnings] == ["NOT", "Ids", "A"]
    assert "Not drawn: no trial has enough samples." in shown and "<figure>" not in shown


def test_a_folder_without_a_sweep_is_refused_in_a_line(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["sweep", "report", str(tmp_path)])
    assert command.main() == 2
    said = capsys.readouterr()
    assert said.out == "" and said.err.count("\n") == 1
    assert "give a result folder of tools/sweep" in said.err


def test_the_command_writes_the_page(tmp_path, monkeypatch, capsys):
    results = {"box": "b", "title": "t", "command": "c", "quick": False, "repeats": 1, "tables": [],
               "finished": True, "ids_right": True, "machine": HERE, "missing": []}  # fmt: skip
    (tmp_path / "results.json").write_text(json.dumps(results))
    monkeypatch.setattr(sys, "argv", ["sweep", "report", str(tmp_path)])
    assert command.main() == 0
    assert capsys.readouterr().out == f"written: {tmp_path / 'report.html'}\n"
    assert Page((tmp_path / "report.html").read_text()).every("h1")[0].text == "t"
