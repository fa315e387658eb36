# SPDX-License-Identifier: BSD-3-Clause
"""Summarizes the trials of a sweep: a row per test, a cell per metric, and what is missing."""

from pathlib import Path
from statistics import median
from typing import Any

from bench.samples import UNITS, Samples, least_samples
from bench.sweep import knee, published, stage_table, stats
from bench.sweep.box import Box, Entry, Test
from bench.sweep.store import Store, Trial
from bench.task import Metric, Task

Row = dict[str, Any]


def _spread(values: list[float]) -> dict[str, float]:
    return {"median": median(values), "min": min(values), "max": max(values)}


def _value(metric: Metric, samples: Samples, never: int) -> float | None:
    largest = metric.percentile is None
    ns = samples.max(never) if largest else samples.percentile(metric.percentile or 0, never)
    return None if ns is None else ns / UNITS[metric.unit]


def _refusal(metric: Metric, every: list[Samples], never: list[int]) -> str:
    """Why a trial has no such percentile: it lies among requests without an answer, or there are
    too few samples."""
    share = max(samples.endless(n) for samples, n in zip(every, never, strict=True))
    if share > 100 - (metric.percentile or 100):
        return f"{share:.3g}% had no answer"
    needs = least_samples(metric.percentile) if metric.percentile else 1
    return f"{min(map(len, every)):,} of {needs:,} samples"


def _cell(task: Task, metric: Metric, trials: list[Trial]) -> dict[str, Any]:
    if lacking := [t.missing[metric.of] for t in trials if metric.of in t.missing]:
        return {"refused": f"not run: {lacking[0]}"}
    if metric.of in trials[0].values:
        by_repeat = {trial.repeat: trial.values[metric.of] for trial in trials}
        return {"samples": [], "by_repeat": by_repeat} | _spread([*by_repeat.values()])
    every = [Samples.decode(trial.samples[metric.of]) for trial in trials]
    never = [task.never(metric.of, trial.counts) for trial in trials]
    found = [_value(metric, samples, n) for samples, n in zip(every, never, strict=True)]
    values = [value for value in found if value is not None]
    if len(values) < len(found):
        return {"refused": _refusal(metric, every, never)}
    by_repeat = {trial.repeat: v for trial, v in zip(trials, values, strict=True)}
    return {"samples": [*map(len, every)], "by_repeat": by_repeat} | _spread(values)


def _row(entry: Entry, test: Test, trials: list[Trial]) -> Row:
    row: Row = {"test": test.slug, "parameters": test.parameters, "cells": {}, "counts": {}}
    done = [trial for trial in trials if trial.state == "done"]
    for state in ("refused", "missing"):  # one such trial decides
        if bad := [trial for trial in trials if trial.state == state]:
            return row | {"state": state, "reason": bad[0].reason, "repeats": 0}
    if not done:
        if trials:
            return row | {"state": "failed", "reason": trials[-1].reason, "repeats": 0}
        return row | {"state": "not run", "reason": "the sweep is not finished", "repeats": 0}
    failed = [trial for trial in trials if trial.state == "failed"]
    return row | {
        "state": "done",
        "reason": f"{len(failed)} trials failed: {failed[0].reason}" if failed else "",
        "repeats": len(done),
        "counts": {n: sum(t.counts[n] for t in done) for n in entry.task.counts},
        "ids_checked": sum(trial.ids_checked for trial in done),
        "notes": sorted({note for trial in done for note in trial.notes}),
        "clocks": done[0].clocks,
        "cells": {metric.name: _cell(entry.task, metric, done) for metric in entry.metrics},
    }


def _compare(metric: Metric, base: dict[str, Any], cell: dict[str, Any]) -> None:
    """Add to a cell its ratio to the baseline's, repeat by repeat."""
    if "by_repeat" not in base or "by_repeat" not in cell:
        return
    both = [r for r in cell["by_repeat"] if r in base["by_repeat"]]
    ratios = [
        cell["by_repeat"][r] / base["by_repeat"][r] for r in both if base["by_repeat"][r] != 0
    ]
    if ratios:
        cell["ratio"] = _spread(ratios)
    before, after = ([*c["by_repeat"].values()] for c in (base, cell))
    cell["verdict"] = stats.verdict(before, after, metric.better)


def _table(entry: Entry, store: Store) -> dict[str, Any]:
    rows = {test.slug: _row(entry, test, store.trials(test)) for test in entry.tests}
    for test in entry.tests:
        base = entry.base_of(test)
        row = rows[test.slug]
        row["is_baseline"] = base == test
        if base is None or base == test:
            continue
        base_row = rows[base.slug]
        if row["state"] != "done" or base_row["state"] != "done":
            continue  # no ratio with wrong ids
        for metric in entry.metrics:
            _compare(metric, base_row["cells"][metric.name], row["cells"][metric.name])
    shown = [name for name in entry.tests[0].parameters if name in entry.varied]
    theirs = None
    if entry.published is not None and entry.baseline is not None:
        base = entry.baseline[entry.published.by]
        every, unanswered = list(rows.values()), entry.task.unanswered
        theirs = published.beside(entry.published, base, entry.metrics, every, unanswered)
    return {
        "task": entry.task.name,
        "help": entry.task.module.HELP,
        "constants": {k: v for k, v in entry.tests[0].parameters.items() if k not in shown},
        "varied": shown,
        "baseline": entry.baseline,
        "metrics": [
            {"name": m.name, "unit": m.unit, "better": m.better, "lacks": entry.task.lacks(m.of)}
            for m in entry.metrics
        ],
        "stages": entry.stages,
        "counts": entry.task.counts,
        "unanswered": entry.task.unanswered,
        "checks_ids": entry.task.module.CHECKS_IDS,
        "rows": list(rows.values()),
        "published": theirs,
        "stage_table": entry.stage_figures
        and stage_table.summarize(entry.stage_figures, shown, entry.metrics, list(rows.values())),
        "knee": knee.beside(entry.knee, shown, list(rows.values())) if entry.knee else None,
    }


def summarize(box: Box, store: Store, command: str) -> dict[str, Any]:
    run = store.run()
    tables = [_table(entry, store) for entry in box.entries]
    rows = [row for table in tables for row in table["rows"]]
    return {
        "box": box.name,
        "title": box.title,
        "command": command,
        "quick": run["quick"],
        "repeats": box.repeats,
        "finished": all(
            row["state"] in ("missing", "refused") or row["repeats"] == box.repeats for row in rows
        ),
        "ids_right": all(row["state"] != "refused" for row in rows),
        "machine": run["machine"],
        "corpora": run.get("corpora", []),
        "tables": tables,
        "missing": [{"what": what, "why": why} for what, why in box.missing],
    }


def write_hgrm(box: Box, store: Store) -> None:
    """Write each distribution of each test, all repeats added."""
    for entry in box.entries:
        wanted = {m.of: m.unit for m in entry.metrics}
        for test in entry.tests:
            done = [t for t in store.trials(test) if t.state == "done"]
            for of, unit in wanted.items():
                if any(of not in trial.samples for trial in done) or not done:
                    continue
                sum_of = Samples()
                for trial in done:
                    sum_of.add_all(Samples.decode(trial.samples[of]))
                path: Path = store.folder / "hgrm" / f"{test.slug}.{of}.hgrm"
                sum_of.write_hgrm(path, unit)
