# SPDX-License-Identifier: BSD-3-Clause
"""Reads and checks a file of published figures."""

from pathlib import Path
from typing import Any

from bench import task
from bench.sweep.published import Figure, Published, StageFigure, StageFigures
from bench.sweep.reader import Reader, read_json
from bench.task import Metric, Task

PUBLISHED = {"who", "source", "remarks", "by", "names", "figures"}
FIGURE = {"parameters", "metrics", "times"}
STAGE_FILE, STAGE_FIGURE = PUBLISHED - {"by", "names"}, {"parameters", "metrics"}


def _names(reader: Reader, by: str, own: Task, given: Any) -> dict[Any, str]:
    """Names by parameter value; JSON's keys are text, so numbers are converted."""
    numbers = isinstance(own.parameters.get(by), task.Number)
    names = {}
    for key, called in reader.object("names", given).items():
        value = int(key) if numbers and key.isdecimal() else key
        names[value] = reader.text(f"names.{key}", called)
    reader.values("names", own, {by: list(names)})
    return names


def _positive(reader: Reader, where: str, value: Any) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool) or value <= 0:
        raise reader.error(where, f"{value!r}: give a number above 0")
    return value


def _times(reader: Reader, where: str, given: Any) -> tuple[float, float]:
    """A number, or [least, most]."""
    least, most = given if isinstance(given, list) and len(given) == 2 else (given, given)
    found = _positive(reader, where, least), _positive(reader, where, most)
    if found[0] > found[1]:
        raise reader.error(where, f"{given!r}: give the least first")
    return found


def _figure(
    reader: Reader, where: str, own: Task, by: str, names: dict[Any, str], given: Any
) -> Figure:
    reader.keys(where, given, FIGURE, {"parameters"})
    parameters = given["parameters"]
    reader.keys(f"{where}.parameters", parameters, set(own.parameters), {by})
    reader.values(f"{where}.parameters", own, {n: [v] for n, v in parameters.items()})
    if parameters[by] not in names:
        raise reader.error(f"{where}.parameters", f"{parameters[by]!r} is not in names")
    if "metrics" not in given and "times" not in given:
        raise reader.error(where, "give its metrics, or its times if only these are stated")
    found: dict[str, dict[str, Any]] = {"metrics": {}, "times": {}}
    for kind, read in (("metrics", _positive), ("times", _times)):
        if kind in given:
            values = reader.object(f"{where}.{kind}", given[kind])
            for metric in reader.metrics(f"{where}.{kind}", own, list(values)):
                if metric.better == "neither":
                    raise reader.error(
                        f"{where}.{kind}", f"{metric.name!r}: neither more nor less of it is better"
                    )
            found[kind] = {n: read(reader, f"{where}.{kind}.{n}", v) for n, v in values.items()}
    return Figure(parameters, found["metrics"], found["times"])


def load(path: Path, own: Task, baseline: dict[str, Any]) -> Published:
    """Published figures for tests of a task. Raises BoxError."""
    reader = Reader(path)
    given = reader.keys("the file", read_json(path), PUBLISHED, PUBLISHED)
    by = reader.text("by", given["by"])
    if list(baseline) != [by]:
        raise reader.error(
            "by", f"{by!r}: the box's baseline must be one value of it and nothing else"
        )
    names = _names(reader, by, own, given["names"])
    if baseline[by] not in names:
        raise reader.error("names", f"the baseline {baseline[by]!r} has no name")
    figures = [
        _figure(reader, f"figures[{at}]", own, by, names, one)
        for at, one in enumerate(reader.several("figures", given["figures"]))
    ]
    return Published(*_head(reader, given), by, names, figures)


def _head(reader: Reader, given: dict[str, Any]) -> tuple[str, str, list[str]]:
    remarks = [reader.text("remarks", one) for one in reader.several("remarks", given["remarks"])]
    who, source = (reader.text(key, given[key]) for key in ("who", "source"))
    return who, source, remarks


def _stage_figure(
    reader: Reader, where: str, own: Task, stages: set[str], given: Any
) -> StageFigure:
    reader.keys(where, given, STAGE_FIGURE, STAGE_FIGURE)
    parameters = given["parameters"]
    reader.keys(f"{where}.parameters", parameters, set(own.parameters), set())
    reader.values(f"{where}.parameters", own, {n: [v] for n, v in parameters.items()})
    found = {}
    for stage, value in reader.keys(f"{where}.metrics", given["metrics"], stages, set()).items():
        at = f"{where}.metrics.{stage}"
        if not isinstance(value, list) or len(value) != 2:
            raise reader.error(at, f'{value!r}: give a number and what it is of: [46, "a GPU"]')
        found[stage] = _positive(reader, at, value[0]), reader.text(at, value[1])
    return StageFigure(parameters, found)


def load_stages(path: Path, own: Task, metrics: list[Metric]) -> StageFigures:
    """Published times of stages, which are distributions among `metrics`. Raises BoxError."""
    reader = Reader(path)
    given = reader.keys("the file", read_json(path), STAGE_FILE, STAGE_FILE)
    stages = {metric.of for metric in metrics if metric.percentile is not None}
    figures = [
        _stage_figure(reader, f"figures[{at}]", own, stages, one)
        for at, one in enumerate(reader.several("figures", given["figures"]))
    ]
    return StageFigures(*_head(reader, given), figures)
