# SPDX-License-Identifier: BSD-3-Clause
"""A box: a JSON file that lists tests. All its errors are found before a test runs."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from bench import task
from bench.programs import ROOT
from bench.sweep import corpora, knee, published_file
from bench.sweep.corpora import Corpus
from bench.sweep.published import Published, StageFigures
from bench.sweep.reader import BoxError, Reader, among, read_json
from bench.task import Metric, Task

KEYS = {"name", "title", "repeats", "tests", "missing"}
REPEATS = {"full", "quick"}
ENTRY = {"task", "parameters", "quick", "metrics", "baseline", "published", "stages", "knee",
         "stage-figures"}  # fmt: skip
MISSING = {"what", "why"}
REPEATS_MOST = 1000
TESTS_MOST = 10_000
BENCH = ROOT / "tools" / "bench"  # has tasks and published figures that are not beside the box
__all__ = ["Box", "BoxError", "Entry", "Test", "load", "task_folders"]


@dataclass(frozen=True)
class Test:
    """A task with a value for each of its parameters."""

    __test__ = False  # for pytest
    task: Task
    entry: int  # which of the box's
    parameters: dict[str, Any]

    @property
    def name(self) -> str:
        return " ".join([self.task.name, *(f"{k}={v}" for k, v in self.parameters.items())])

    @property
    def slug(self) -> str:
        """A unique file name."""
        return re.sub(r"[^A-Za-z0-9.,=_-]", "_", self.name.replace(" ", ","))


@dataclass(frozen=True)
class Entry:
    """The tests of one task, shown in one table."""

    task: Task
    tests: list[Test]
    metrics: list[Metric]
    varied: list[str]  # parameters with several values
    baseline: dict[str, Any] | None
    published: Published | None
    stage_figures: StageFigures | None
    stages: list[str]  # metrics that add up to a whole
    knee: knee.Knee | None

    def base_of(self, test: Test) -> Test | None:
        """The test to compare with: the same parameters except those of the baseline."""
        if self.baseline is None:
            return None
        wanted = test.parameters | self.baseline
        return next(t for t in self.tests if t.parameters == wanted)


@dataclass(frozen=True)
class Box:
    path: Path
    name: str
    title: str
    repeats: int
    entries: list[Entry]
    missing: list[tuple[str, str]]  # what, why
    corpora: Sequence[Corpus]  # of one's own

    @property
    def tests(self) -> list[Test]:
        return [test for entry in self.entries for test in entry.tests]


class _BoxReader(Reader):
    def __init__(self, path: Path, own: Sequence[Corpus]) -> None:
        super().__init__(path)
        self.own = [one.name for one in own]

    def repeats(self, given: Any, quick: bool) -> int:
        self.keys("repeats", given, REPEATS, REPEATS)
        found = given["quick" if quick else "full"]
        if not isinstance(found, int) or isinstance(found, bool) or not 1 <= found <= REPEATS_MOST:
            raise self.error("repeats", f"{found!r}: give a number from 1 to {REPEATS_MOST}")
        return found

    def baseline(self, where: str, given: Any, values: dict[str, list[Any]]) -> dict[str, Any]:
        self.keys(where, given, set(values), set())
        for name, value in given.items():
            if value not in values[name]:
                raise self.error(
                    f"{where}.{name}", f"{value!r} is not one of the tested values of {name}"
                )
        return given

    def stages(self, where: str, given: Any, metrics: list[Metric]) -> list[str]:
        """Stages are values: percentiles do not add up."""
        known = {m.name: m for m in metrics}
        units = set()
        for name in self.several(where, given):
            if self.text(where, name) not in known:
                raise self.error(where, f"{name!r} is not one of the metrics; {among(name, known)}")
            if " " in name:
                raise self.error(
                    where, f"{name!r} is of a distribution, which does not add up: name values"
                )
            units.add(known[name].unit)
        if len(units) > 1:
            raise self.error(where, f"their units differ: {' and '.join(sorted(units))}")
        return given

    def beside(self, where: str, given: Any) -> Path:
        """A file beside the box, or else in tools/bench."""
        path = self.path.parent / self.text(where, given)
        return path if path.is_file() else BENCH / given

    def entry(self, at: int, given: Any, own: Task, quick: bool) -> Entry:
        where = f"tests[{at}]"
        values = dict(self.values(f"{where}.parameters", own, given["parameters"]))
        for name in own.parameters:
            if name not in values:
                raise self.error(
                    f"{where}.parameters", f"task {own.name} needs the parameter {name!r} too"
                )
        instead = self.values(f"{where}.quick", own, given.get("quick", {}))
        if quick:
            values |= instead
        if self.own and corpora.PARAMETER in values:
            values[corpora.PARAMETER] = self.own
        baseline = None
        if "baseline" in given:
            baseline = self.baseline(f"{where}.baseline", given["baseline"], values)
        tests = [
            Test(own, at, dict(zip(values, each, strict=True)))
            for each in product(*values.values())
        ]
        varied = [name for name, some in values.items() if len(some) > 1]
        metrics = self.metrics(f"{where}.metrics", own, given["metrics"])
        published = None
        if "published" in given:
            path = self.beside(f"{where}.published", given["published"])
            published = published_file.load(path, own, baseline or {})
        stage_figures = None
        if "stage-figures" in given:
            path = self.beside(f"{where}.stage-figures", given["stage-figures"])
            stage_figures = published_file.load_stages(path, own, metrics)
        stages = []
        if "stages" in given:
            stages = self.stages(f"{where}.stages", given["stages"], metrics)
        rule = None
        if "knee" in given:
            rule = knee.read(self, f"{where}.knee", given["knee"], values, metrics, own.counts)
        return Entry(own, tests, metrics, varied, baseline, published, stage_figures, stages, rule)


def task_folders(box: Path) -> list[Path]:
    """Folders with tasks: beside the box, then in this repository."""
    return [box.parent / "tasks", BENCH / "tasks"]


def load(path: Path, quick: bool, own: Sequence[Corpus] = ()) -> Box:
    """`own`: corpora that replace those it names. Raises BoxError or task.TaskError if it cannot be
    run."""
    reader = _BoxReader(path, own)
    given = read_json(path)
    reader.keys("the box", given, KEYS, KEYS - {"missing"})
    name = reader.text("name", given["name"])
    if not task.NAME.fullmatch(name):
        raise reader.error("name", f"{name!r}: write small letters, digits and -")
    folders = task_folders(path)
    tasks: dict[str, Task] = {}
    entries = []
    for at, one in enumerate(reader.several("tests", given["tests"])):
        where = f"tests[{at}]"
        reader.keys(where, one, ENTRY, {"task", "parameters", "metrics"})
        which = reader.text(f"{where}.task", one["task"])
        if which not in tasks:
            file = task.find(which, folders) if task.NAME.fullmatch(which) else None
            if file is None:
                raise reader.error(
                    f"{where}.task",
                    f"no task {which!r} in {' or '.join(map(str, folders))}; "
                    f"{among(which, task.names(folders))}; list what does not exist yet in the box's "
                    '"missing"',
                )
            tasks[which] = task.load(which, file)
        entries.append(reader.entry(at, one, tasks[which], quick))
    if own and not any(corpora.PARAMETER in entry.tests[0].parameters for entry in entries):
        raise reader.error("tests", "none has a parameter corpus: leave out --corpus")
    missing = []
    for at, one in enumerate(given.get("missing", [])):
        where = f"missing[{at}]"
        reader.keys(where, one, MISSING, MISSING)
        missing.append((reader.text(where, one["what"]), reader.text(where, one["why"])))
    repeats = reader.repeats(given["repeats"], quick)
    title = reader.text("title", given["title"])
    box = Box(path, name, title, repeats, entries, missing, own)
    slugs = [test.slug for test in box.tests]
    if len(slugs) > TESTS_MOST:
        raise reader.error("tests", f"{len(slugs):,} tests: {TESTS_MOST:,} at most")
    if doubled := next((s for s in slugs if slugs.count(s) > 1), None):
        raise reader.error("tests", f"{doubled} is given twice")
    return box
