# SPDX-License-Identifier: BSD-3-Clause
"""A sweep's result folder. Trials are written atomically, so an interrupted sweep resumes after the
last one.

    run.json                        the box, the machine, when it began
    trials/TEST/REPEAT.json         each trial, with the machine it ran on
    kept/TASK/                      data that a task needs when resumed
    hgrm/TEST.METRIC.hgrm           all repeats of a test together
    results.json, results.csv, table.md
    report.html                     by tools/sweep report
"""

import fcntl
import json
import shutil
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, Any

from dpdk_tokd.fetch.packages import write_atomically

from bench.lab import machine
from bench.sweep.box import Box, Test
from bench.texts.packages import write_json

OWN = (
    *("run.json", "trials", "kept", "hgrm"),
    *("results.json", "results.csv", "table.md", "report.html"),
)


class StoreError(Exception):
    """The folder cannot be used; the message has the reason and the remedy."""


@dataclass(frozen=True)
class Trial:
    """The result of one trial. `samples`: HdrHistogram's encoding, by metric."""

    test: str
    task: str
    parameters: dict[str, Any]
    repeat: int
    state: str  # done, missing, refused, failed
    reason: str = ""
    values: dict[str, float] = field(default_factory=dict)
    samples: dict[str, str] = field(default_factory=dict)
    percentiles: dict[str, dict[str, float]] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    ids_checked: int = 0
    notes: list[str] = field(default_factory=list)
    missing: dict[str, str] = field(default_factory=dict)
    clocks: dict[str, str] = field(default_factory=dict)
    began: str = ""
    seconds: float = 0.0
    machine: dict[str, Any] = field(default_factory=dict)


def read_trial(path: Path) -> Trial:
    try:
        return Trial(**json.loads(path.read_text("utf-8")))
    except (OSError, ValueError, TypeError) as error:
        raise StoreError(f"{path}: not a trial: {error}; remove it") from None


class Store:
    """The result folder of a sweep; one process at a time writes it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._lock: IO[str] | None = None

    def begin(self, box: Box, quick: bool, here: dict[str, Any], fresh: bool) -> None:
        """Make the folder, or resume in it. Raises StoreError if it holds a different sweep."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self._lock = (self.folder / ".lock").open("w")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise StoreError(f"{self.folder}: another sweep writes there; wait for it") from None
        if fresh:
            self._clear()
        run = {
            "box": box.name,
            "quick": quick,
            "repeats": box.repeats,
            "tests": [test.slug for test in box.tests],
            "corpora": [corpus.recorded() for corpus in box.corpora],
            "machine": here,
        }
        path = self.folder / "run.json"
        if not path.exists():
            write_json(path, run)
            return
        before = self.run()
        changed = [
            key for key in ("box", "quick", "repeats", "tests") if before.get(key) != run[key]
        ]
        changed += machine.differences(before, run, ("corpora",))
        changed += machine.differences(before.get("machine", {}), here)
        if changed:
            raise StoreError(
                f"{self.folder} holds a sweep that is not this one ({'; '.join(changed)}): "
                "--fresh removes it, --out DIR leaves it"
            )

    def _clear(self) -> None:
        for name in OWN:
            path = self.folder / name
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)

    def run(self) -> dict[str, Any]:
        path = self.folder / "run.json"
        try:
            return json.loads(path.read_text("utf-8"))
        except (OSError, ValueError) as error:
            raise StoreError(f"{path}: {error}: is this a result folder of tools/sweep?") from None

    def kept(self, task: str) -> Path:
        return self.folder / "kept" / task

    def _path(self, test: str, repeat: int) -> Path:
        return self.folder / "trials" / test / f"{repeat}.json"

    def trial(self, test: Test, repeat: int) -> Trial | None:
        """A finished trial. None if it has not run, or failed: then it runs again."""
        path = self._path(test.slug, repeat)
        if not path.is_file():
            return None
        found = read_trial(path)
        return found if found.state != "failed" else None

    def keep(self, trial: Trial) -> None:
        write_json(self._path(trial.test, trial.repeat), asdict(trial))

    def trials(self, test: Test) -> list[Trial]:
        """All repeats so far, including failed ones, in order."""
        paths = (self.folder / "trials" / test.slug).glob("*.json")
        return [read_trial(path) for path in sorted(paths, key=lambda path: int(path.stem))]

    def write_text(self, name: str, text: str) -> None:
        write_atomically(self.folder / name, text.encode())
