# SPDX-License-Identifier: BSD-3-Clause
"""Runs the remaining trials of a sweep. Each repeat runs all tests, so that changes of the machine
affect all alike."""

import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench.sweep.box import Box, Test
from bench.sweep.progress import Progress
from bench.sweep.store import Store, Trial
from bench.task import Context, Missing, Report, Task, TaskError, WrongIds


def plan(box: Box) -> Iterator[tuple[int, Test]]:
    for repeat in range(1, box.repeats + 1):
        for test in box.tests:
            yield repeat, test


class Runner:
    def __init__(self, box: Box, store: Store, quick: bool, here: dict[str, Any]) -> None:
        self._box, self._store, self._quick, self._here = box, store, quick, here
        self._own = {corpus.name: corpus.path for corpus in box.corpora}
        self._states: dict[str, Any] = {}
        self._never: dict[str, tuple[str, str]] = {}  # by task: state and reason

    def _prepare(self, task: Task, folder: Path, stack: ExitStack, progress: Progress) -> None:
        tests = [t.parameters for t in self._box.tests if t.task is task]
        folder.mkdir()
        kept = self._store.kept(task.name)
        own = stack.enter_context(ExitStack())
        context = Context(folder, self._quick, tests, progress.log, self._own, kept, own)
        try:
            state = task.module.prepare(context)
        except (Missing, WrongIds) as error:
            own.close()
            why = "missing" if isinstance(error, Missing) else "refused"
            self._never[task.name] = (why, str(error))
            return
        if hasattr(task.module, "clean"):
            stack.callback(task.module.clean, state)
        self._states[task.name] = state

    def _measure(self, repeat: int, test: Test) -> Report:
        task, state = test.task, self._states[test.task.name]
        raw = task.run(state, dict(test.parameters), repeat)
        report = task.module.report(state, dict(test.parameters), raw)
        if problem := task.error(report):
            raise TaskError(f"task {task.name}: {problem}")
        if task.module.CHECKS_IDS and report.ids_checked <= 0:
            raise WrongIds("no ids were compared")
        return report

    def _trial(self, repeat: int, test: Test) -> Trial:
        common: dict[str, Any] = {
            "test": test.slug,
            "task": test.task.name,
            "parameters": test.parameters,
            "repeat": repeat,
            "began": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "machine": self._here,
        }
        if never := self._never.get(test.task.name):
            return Trial(state=never[0], reason=never[1], **common)
        begin = time.monotonic()
        try:
            report = self._measure(repeat, test)
        except Missing as error:
            return Trial(state="missing", reason=str(error), **common)
        except WrongIds as error:
            return Trial(state="refused", reason=str(error), **common)
        except TaskError:
            raise
        # A user's task can raise anything: the other tests continue.
        except Exception as error:
            why = f"{type(error).__name__}: {error}"
            return Trial(state="failed", reason=" ".join(why.split())[:500], **common)
        task, units = test.task, test.task.module.METRICS
        return Trial(
            state="done",
            values=report.values,
            samples={name: samples.encode() for name, samples in report.samples.items()},
            percentiles={
                n: s.percentiles(units[n].unit, task.never(n, report.counts))
                for n, s in report.samples.items()
            },
            counts=report.counts,
            ids_checked=report.ids_checked,
            notes=report.notes,
            missing=report.missing,
            clocks=report.clocks,
            seconds=round(time.monotonic() - begin, 3),
            **common,
        )

    def run(self) -> None:
        """Run all missing trials. Tasks are always cleaned up."""
        every = list(plan(self._box))
        left = [(r, t) for r, t in every if self._store.trial(t, r) is None]
        progress = Progress(
            dict(Counter(test.task.name for _, test in left)), len(every) - len(left)
        )
        if len(left) < len(every):
            progress.log(f"{len(every) - len(left)} of {len(every)} trials are there already")
        if not left:
            return
        with ExitStack() as stack:
            folder = Path(tempfile.mkdtemp(prefix="tokd-sweep-"))
            stack.callback(shutil.rmtree, folder, ignore_errors=True)
            for task in {test.task.name: test.task for _, test in left}.values():
                progress.show(f"{task.name} prepares")
                self._prepare(task, folder / task.name, stack, progress)
            for repeat, test in left:
                progress.show(f"repeat {repeat}: {test.name}")
                begin = time.monotonic()
                trial = self._trial(repeat, test)
                self._store.keep(trial)
                progress.ended(test.task.name, time.monotonic() - begin)
                if trial.state in ("refused", "failed"):
                    progress.log(f"{test.name}: {trial.state}: {trial.reason}")
        progress.log("all trials are done")
