# SPDX-License-Identifier: BSD-3-Clause
"""A task is a folder with a task.py that defines these names (doc/reference/sweeps.md).

HELP        printed above its table
PARAMETERS  name: Choice or Number
METRICS     name: Value or Distribution
COUNTS      name: what is counted, such as timeouts; always shown beside the metrics
CHECKS_IDS  True: a trial that compared no ids is refused; False: the task has no ids
UNANSWERED  optional: the COUNTS that are requests without an answer

prepare(context) -> state          once, before anything is timed
run(state, parameters) -> raw      one trial; or run(state, parameters, repeat), repeat from 1
report(state, parameters, raw) -> Report
clean(state)                       optional: once, also after a failure or a signal
"""

import importlib.util
import inspect
import re
import shutil
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

from bench.samples import UNITS, Samples

TASKS = Path(__file__).with_name("tasks")
NAME = re.compile(r"[a-z][a-z0-9-]*")
FUNCTIONS = ("prepare", "run", "report")
BETTER = ("lower", "higher", "neither")  # neither: no verdict
PERCENTILE = re.compile(r"p(\d{1,2}(?:\.\d{1,5})?)")


class Missing(Exception):
    """Raised by prepare() or run(): cannot be measured here, for the reason in the message."""


class WrongIds(Exception):
    """Raised by any of them: ids differ from the reference's. The test then has no figures."""


def need(*programs: Path) -> None:
    """Raises Missing unless the programs are built."""
    for program in programs:
        if not program.is_file():
            raise Missing(f"{program} is not built: run tools/setup")


def need_tool(name: str, package: str) -> None:
    """Raises Missing unless a program of a Debian package is installed."""
    if shutil.which(name) is None:
        raise Missing(f"{name} is not installed: apt-get install {package}")


class TaskError(Exception):
    """A task that breaks the protocol above."""


@dataclass(frozen=True)
class Choice:
    values: tuple[str, ...]
    help: str = ""

    def error(self, value: object) -> str | None:
        if value in self.values and isinstance(value, str):
            return None
        return f"give one of {', '.join(self.values)}"


@dataclass(frozen=True)
class Number:
    least: float
    most: float
    help: str = ""
    whole: bool = True

    def error(self, value: object) -> str | None:
        kinds = (int,) if self.whole else (int, float)
        right = isinstance(value, kinds) and not isinstance(value, bool)
        if right and self.least <= value <= self.most:  # type: ignore[operator]
            return None
        return f"give a {'whole ' if self.whole else ''}number from {self.least} to {self.most}"


Parameter = Choice | Number


@dataclass(frozen=True)
class Value:
    """A number for each trial."""

    unit: str
    better: str = "lower"  # of BETTER
    help: str = ""


@dataclass(frozen=True)
class Distribution:
    """Many durations for each trial; a box selects percentiles or the maximum."""

    unit: str = "us"
    better: str = "lower"
    help: str = ""
    of_answers: bool = True  # a request without an answer counts as longer than all others


@dataclass(frozen=True)
class Report:
    """The result of a trial: all metrics and all counts of the task. A metric that this machine
    cannot measure is in `missing`, with the reason."""

    values: dict[str, float] = field(default_factory=dict)
    samples: dict[str, Samples] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    ids_checked: int = 0
    notes: list[str] = field(default_factory=list)  # printed once below the table
    missing: dict[str, str] = field(default_factory=dict)
    clocks: dict[str, str] = field(default_factory=dict)  # by metric: whose times, by which clock


@dataclass(frozen=True)
class Context:
    """The argument of prepare()."""

    folder: Path  # for files, removed afterwards
    quick: bool
    tests: list[dict[str, Any]]  # parameters of each of this task's tests
    log: Callable[[str], None]
    # The user's own corpora, by value of the parameter `corpus`; empty: those of tools/fetch-corpus
    corpora: Mapping[str, Path] = field(default_factory=dict)
    kept: Path | None = None  # a folder for what a resumed sweep needs; may not exist yet
    stack: ExitStack = field(default_factory=ExitStack)  # closed at the end, as clean() is called


@dataclass(frozen=True)
class Metric:
    """As a box names it: `lost`, or `round_trip p99`, `round_trip max`."""

    name: str
    of: str
    percentile: float | None  # None: a value, or the largest of a distribution
    unit: str
    better: str


@dataclass(frozen=True)
class Task:
    name: str
    module: ModuleType

    @property
    def parameters(self) -> dict[str, Parameter]:
        return self.module.PARAMETERS

    @property
    def counts(self) -> dict[str, str]:
        return self.module.COUNTS

    @property
    def unanswered(self) -> list[str]:
        """The counts of requests without an answer, and so without a latency."""
        return sorted(getattr(self.module, "UNANSWERED", ()))

    def lacks(self, of: str) -> list[str]:
        """The counts of what a metric does not contain, because it never ended."""
        one = self.module.METRICS[of]
        return self.unanswered if isinstance(one, Distribution) and one.of_answers else []

    def never(self, of: str, counts: dict[str, int]) -> int:
        return sum(counts[name] for name in self.lacks(of))

    def metric(self, text: str) -> Metric | str:
        """The metric that a box names by `text`, or an error message."""
        of, _, which = text.partition(" ")
        known = self.module.METRICS
        if of not in known:
            return f"unknown metric; task {self.name} has {', '.join(known) or 'none'}"
        one = known[of]
        if isinstance(one, Value):
            if which:
                return f"{of} is one value a trial: write {of!r} alone"
            return Metric(text, of, None, one.unit, one.better)
        if which == "max":
            return Metric(text, of, None, one.unit, one.better)
        if match := PERCENTILE.fullmatch(which):
            percentile = float(match[1])
            if percentile > 0:
                return Metric(text, of, percentile, one.unit, one.better)
        return f"{of} is a distribution: write {of + ' p50'!r}, {of + ' p99'!r} or {of + ' max'!r}"

    def run(self, state: Any, parameters: dict[str, Any], repeat: int) -> Any:
        told = "repeat" in inspect.signature(self.module.run).parameters
        return self.module.run(state, parameters, **({"repeat": repeat} if told else {}))

    def error(self, report: Report) -> str | None:
        """Why a report has not exactly the task's metrics and counts; None: it has."""
        module, lacking = self.module, set(report.missing)
        values = {n for n, m in module.METRICS.items() if isinstance(m, Value)}
        samples = set(module.METRICS) - values
        for what, given, wanted in (
            ("values", set(report.values), values - lacking),
            ("samples", set(report.samples), samples - lacking),
            ("missing", lacking - values - samples, set()),
            ("counts", set(report.counts), set(module.COUNTS)),
        ):
            if given != wanted:
                return f"its report has {what} {sorted(given)}, expected {sorted(wanted)}"
        return None


def find(name: str, folders: Iterable[Path]) -> Path | None:
    return next((f for folder in folders if (f := folder / name / "task.py").is_file()), None)


def names(folders: Iterable[Path]) -> list[str]:
    return sorted({path.parent.name for folder in folders for path in folder.glob("*/task.py")})


def load(name: str, path: Path | None = None) -> Task:
    """Of its file; None: one of tools/bench/tasks. TaskError: it is not a task, or cannot be
    loaded."""
    path = path or TASKS / name / "task.py"
    spec = importlib.util.spec_from_file_location(f"sweep_task_{name.replace('-', '_')}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # a user's file can raise anything
        raise TaskError(f"{path}: {type(error).__name__}: {error}") from error
    lacks = [
        n
        for n in ("HELP", "PARAMETERS", "METRICS", "COUNTS", "CHECKS_IDS", *FUNCTIONS)
        if not hasattr(module, n)
    ]
    if lacks:
        raise TaskError(f"{path}: {', '.join(lacks)} missing: see doc/reference/sweeps.md")
    if odd := set(getattr(module, "UNANSWERED", ())) - set(module.COUNTS):
        raise TaskError(f"{path}: UNANSWERED: {', '.join(sorted(odd))}: none of COUNTS")
    for which, metric in module.METRICS.items():
        if metric.better not in BETTER:
            raise TaskError(f"{path}: {which}: better={metric.better!r}: {', '.join(BETTER)}")
        if isinstance(metric, Distribution) and metric.unit not in UNITS:
            raise TaskError(f"{path}: unit {metric.unit}: durations are in {', '.join(UNITS)}")
    return Task(name, module)
