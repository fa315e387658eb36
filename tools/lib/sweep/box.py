# SPDX-License-Identifier: BSD-3-Clause
"""A box: a JSON file that says which tests to run. What is wrong with it is said before any is."""

import difflib
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from . import knee, task
from .published import Figure, Published
from .task import Metric, Task

KEYS = {"name", "title", "repeats", "tests", "missing"}
REPEATS = {"full", "quick"}
ENTRY = {"task", "parameters", "quick", "metrics", "baseline", "published", "stages", "knee"}
PUBLISHED = {"who", "source", "remarks", "by", "names", "figures"}
FIGURE = {"parameters", "metrics", "times"}
MISSING = {"what", "why"}
REPEATS_MOST = 1000
TESTS_MOST = 10_000


class BoxError(Exception):
    """One line: where in which file, what is wrong, and the remedy."""


@dataclass(frozen=True)
class Test:
    """A task with a value for each of its parameters."""

    __test__ = False  # to pytest
    task: Task
    entry: int  # which of the box's
    parameters: dict[str, Any]

    @property
    def name(self) -> str:
        return " ".join([self.task.name, *(f"{k}={v}" for k, v in self.parameters.items())])

    @property
    def slug(self) -> str:
        """A file's name, of this test alone."""
        return re.sub(r"[^A-Za-z0-9.,=_-]", "_", self.name.replace(" ", ","))


@dataclass(frozen=True)
class Entry:
    """The tests of one task that are told in one table."""

    task: Task
    tests: list[Test]
    metrics: list[Metric]
    varied: list[str]  # parameters with several values
    baseline: dict[str, Any] | None
    published: Published | None
    stages: list[str]  # metrics that add up to a whole
    knee: knee.Knee | None

    def base_of(self, test: Test) -> Test | None:
        """The test that others are a ratio to: equal but for what the baseline says."""
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

    @property
    def tests(self) -> list[Test]:
        return [test for entry in self.entries for test in entry.tests]


def _no_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"key {key!r} stands there twice")
        found[key] = value
    return found


def _among(word: str, known: Iterable[str]) -> str:
    """The remedy for a word that is not known."""
    known = list(known)
    near = difflib.get_close_matches(word, known, 1)
    return f"did you mean {near[0]!r}?" if near else f"known are {', '.join(known) or 'none'}"


class _Reader:
    """Reads values at places of one file, which its errors name."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def error(self, where: str, what: str) -> BoxError:
        return BoxError(f"{self.path}: {where}: {what}")

    def object(self, where: str, given: Any) -> dict[str, Any]:
        if not isinstance(given, dict):
            raise self.error(where, f"{given!r} is not an object: write {{...}}")
        return given

    def keys(self, where: str, given: Any, known: set[str], needed: set[str]) -> dict[str, Any]:
        for key in self.object(where, given):
            if key not in known:
                raise self.error(where, f"unknown key {key!r}; {_among(key, sorted(known))}")
        for key in sorted(needed - set(given)):
            raise self.error(where, f"key {key!r} is missing")
        return given

    def text(self, where: str, given: Any) -> str:
        if not isinstance(given, str) or not given:
            raise self.error(where, f'{given!r} is not a text: write "..."')
        return given

    def several(self, where: str, given: Any) -> list[Any]:
        if not isinstance(given, list) or not given:
            raise self.error(where, f"{given!r}: write a list, [...], with one thing at least")
        return given

    def repeats(self, given: Any, quick: bool) -> int:
        self.keys("repeats", given, REPEATS, REPEATS)
        found = given["quick" if quick else "full"]
        if not isinstance(found, int) or isinstance(found, bool) or not 1 <= found <= REPEATS_MOST:
            raise self.error("repeats", f"{found!r}: give a number from 1 to {REPEATS_MOST}")
        return found

    def values(self, where: str, own: Task, given: Any) -> dict[str, list[Any]]:
        """Lists of values by parameter; each value one that the task takes."""
        if not isinstance(given, dict):
            raise self.error(where, f'{given!r} is not an object: write {{"NAME": [VALUE, ...]}}')
        for name, values in given.items():
            if name not in own.parameters:
                raise self.error(
                    where,
                    f"unknown parameter {name!r} of task {own.name}; "
                    f"{_among(name, own.parameters)}",
                )
            seen: list[Any] = []
            for value in self.several(f"{where}.{name}", values):
                if complaint := own.parameters[name].complaint(value):
                    raise self.error(f"{where}.{name}", f"{value!r}: {complaint}")
                if value in seen:
                    raise self.error(f"{where}.{name}", f"{value!r} stands there twice")
                seen.append(value)
        return given

    def baseline(self, where: str, given: Any, values: dict[str, list[Any]]) -> dict[str, Any]:
        self.keys(where, given, set(values), set())
        for name, value in given.items():
            if value not in values[name]:
                raise self.error(
                    f"{where}.{name}", f"{value!r} is none of the values of {name} that are tested"
                )
        return given

    def metrics(self, where: str, own: Task, given: Any) -> list[Metric]:
        found = []
        for text in self.several(where, given):
            metric = own.metric(self.text(where, text))
            if isinstance(metric, str):
                raise self.error(where, f"{text!r}: {metric}")
            found.append(metric)
        return found

    def stages(self, where: str, given: Any, metrics: list[Metric]) -> list[str]:
        """Percentiles do not add up to one of the whole, and so are none."""
        known = {m.name: m for m in metrics}
        units = set()
        for name in self.several(where, given):
            if self.text(where, name) not in known:
                raise self.error(where, f"{name!r} is none of the metrics; {_among(name, known)}")
            if " " in name:
                raise self.error(
                    where, f"{name!r} is of a distribution, and those do not add up: name values"
                )
            units.add(known[name].unit)
        if len(units) > 1:
            raise self.error(where, f"their units are {' and '.join(sorted(units))}: name one kind")
        return given

    def entry(self, at: int, given: Any, own: Task, quick: bool) -> Entry:
        where = f"tests[{at}]"
        values = dict(self.values(f"{where}.parameters", own, given["parameters"]))
        for name in own.parameters:
            if name not in values:
                raise self.error(
                    f"{where}.parameters", f"task {own.name} has the parameter {name!r} as well"
                )
        instead = self.values(f"{where}.quick", own, given.get("quick", {}))
        if quick:
            values |= instead
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
            path = self.path.parent / self.text(f"{where}.published", given["published"])
            published = load_published(path, own, baseline or {})
        stages = []
        if "stages" in given:
            stages = self.stages(f"{where}.stages", given["stages"], metrics)
        rule = None
        if "knee" in given:
            at = f"{where}.knee"
            rule = knee.read(self, at, given["knee"], values, metrics, own.counts)
        return Entry(own, tests, metrics, varied, baseline, published, stages, rule)


def task_folders(box: Path) -> list[Path]:
    """Where tasks lie: beside the box, then those of this repository."""
    return [box.parent / "tasks", Path(__file__).resolve().parents[3] / "boxes" / "tasks"]


def _read(path: Path) -> Any:
    try:
        return json.loads(path.read_text("utf-8"), object_pairs_hook=_no_doubles)
    except OSError as error:
        raise BoxError(f"{path}: {error.strerror}") from None
    except ValueError as error:
        raise BoxError(f"{path}: not JSON: {error}") from None


def _above_0(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value > 0


def load_published(path: Path, own: Task, baseline: dict[str, Any]) -> Published:
    """Others' figures for tests of a task; BoxError if they cannot be such."""
    reader = _Reader(path)
    given = reader.keys("the file", _read(path), PUBLISHED, PUBLISHED)
    by = reader.text("by", given["by"])
    if list(baseline) != [by]:
        raise reader.error("by", f"{by!r}: the box's baseline must be a value of it, and that alone")
    names = reader.object("names", given["names"])
    for name, called in names.items():
        reader.text(f"names.{name}", called)
    reader.values("names", own, {by: list(names)})
    if baseline[by] not in names:
        raise reader.error("names", f"what is {baseline[by]!r}, the baseline's, called there?")
    figures = []
    for at, one in enumerate(reader.several("figures", given["figures"])):
        where = f"figures[{at}]"
        reader.keys(where, one, FIGURE, {"parameters"})
        parameters = one["parameters"]
        values = reader.object(f"{where}.metrics", one.get("metrics", {}))
        times = reader.object(f"{where}.times", one.get("times", {}))
        reader.keys(f"{where}.parameters", parameters, set(own.parameters), {by})
        reader.values(f"{where}.parameters", own, {n: [v] for n, v in parameters.items()})
        if parameters[by] not in names:
            raise reader.error(f"{where}.parameters", f"{parameters[by]!r} is not in names")
        reader.metrics(f"{where}.metrics", own, [*values, *times])
        for name, value in values.items():
            if not _above_0(value):
                raise reader.error(f"{where}.metrics.{name}", f"{value!r}: give a number above 0")
        for name, value in times.items():
            both = isinstance(value, list) and len(value) == 2 and all(map(_above_0, value))
            if not both or value[0] > value[1]:
                raise reader.error(f"{where}.times.{name}", f"{value!r}: write [LEAST, MOST]")
        figures.append(Figure(parameters, values, {n: (v[0], v[1]) for n, v in times.items()}))
    remarks = [reader.text("remarks", one) for one in reader.several("remarks", given["remarks"])]
    who, source = (reader.text(key, given[key]) for key in ("who", "source"))
    return Published(who, source, remarks, by, names, figures)


def load(path: Path, quick: bool) -> Box:
    """BoxError or task.TaskError if it cannot be run as it is."""
    reader = _Reader(path)
    given = _read(path)
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
                    f"{_among(which, task.names(folders))}; what is still to be made stands in "
                    f'the box\'s list "missing"',
                )
            tasks[which] = task.load(which, file)
        entries.append(reader.entry(at, one, tasks[which], quick))
    missing = []
    for at, one in enumerate(given.get("missing", [])):
        where = f"missing[{at}]"
        reader.keys(where, one, MISSING, MISSING)
        missing.append((reader.text(where, one["what"]), reader.text(where, one["why"])))
    repeats = reader.repeats(given["repeats"], quick)
    box = Box(path, name, reader.text("title", given["title"]), repeats, entries, missing)
    slugs = [test.slug for test in box.tests]
    if len(slugs) > TESTS_MOST:
        raise reader.error("tests", f"{len(slugs):,} tests: {TESTS_MOST:,} at most")
    if doubled := next((s for s in slugs if slugs.count(s) > 1), None):
        raise reader.error("tests", f"{doubled} is asked for twice")
    return box
