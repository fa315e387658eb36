# SPDX-License-Identifier: BSD-3-Clause
"""The environment of a part: programs, a folder, a seed, a time limit, and its records."""

from __future__ import annotations

import contextlib
import json
import math
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn, Union

from . import figures
from .build import Build, with_driver

GRACE_S = 10
HUNG = 124  # exit code: timed out
OUTPUT_MOST = 6000  # characters of a program's output in the report: its end
NO_GPU = 77
# With these a launch or a copy would wait for the persistent kernel.
UNWANTED = ("CUDA_LAUNCH_BLOCKING", "CUDA_DEVICE_MAX_CONNECTIONS", "TOKD_GPU_WORKERS")
PHASE_OVER = "time: its phase is over"
NO_HOST_RING = "--ring host: it cannot"  # what a device says that can have no ring there

Word = Union[str, Path]


def no_host_ring(said: str) -> str | None:
    """Why the ring cannot be in host memory, in the words of a device."""
    return next((line.strip() for line in said.splitlines() if NO_HOST_RING in line), None)


def python() -> str:
    """This interpreter; without a PATH sys.executable is empty."""
    return sys.executable or os.readlink("/proc/self/exe")


def processes_below(pid: int) -> set[int]:
    """Its children, theirs, and so on, whatever their groups and sessions."""
    children: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, IndexError):  # it has ended meanwhile
            words = stat.read_text(errors="replace").rpartition(")")[2].split()
            children.setdefault(int(words[1]), []).append(int(stat.parent.name))
    found: set[int] = set()
    todo = [pid]
    while todo:
        new = children.get(todo.pop(), [])
        found.update(new)
        todo += new
    return found


def killed(pids: Iterable[int]) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)


class NotRun(Exception):
    """The part cannot run here, for the reason in the message."""


class PhaseOver(NotRun):
    """There is no time left."""

    def __init__(self) -> None:
        super().__init__(PHASE_OVER)


class Late(NotRun):
    """A program of the part hung and was killed."""


class Wrong(Exception):
    """A result is wrong, and the rest of the part is pointless."""


def environment(**more: str) -> dict[str, str]:
    """For measured programs. Loads all code at once: lazy loading would wait for the kernel."""
    env = with_driver({k: v for k, v in os.environ.items() if k not in UNWANTED})
    return {**env, "CUDA_MODULE_LOADING": "EAGER", **more}


class Run:
    """One check; its parts run one after the other."""

    def __init__(self, build: Build, device: str, seed: int, work: Path) -> None:
        self.build, self.device, self.seed, self.work = build, device, seed, work
        self.records = work / "records"
        self._until = 0.0
        self._short = False

    @property
    def on_gpu(self) -> bool:
        return self.device != "cpu"

    @property
    def rings(self) -> tuple[str, ...]:
        """Where the ring can be: with the device cpu in host memory only."""
        return ("gpu", "host") if self.on_gpu else ("host",)

    def begin(self, limit_s: float, short: bool = False) -> None:
        """Prepare for the next part, with its time limit. `short`: its phase leaves it less."""
        shutil.rmtree(self.work, ignore_errors=True)
        self.work.mkdir(parents=True)
        self._until = time.monotonic() + limit_s
        self._short = short

    def left_s(self) -> float:
        return self._until - time.monotonic()

    # Records, read by the parent process

    def record(self, kind: str, value: Any) -> None:
        with self.records.open("a") as to:
            to.write(json.dumps([kind, value]) + "\n")

    def fact(self, name: str, value: Any) -> None:
        self.record("fact", [name, value])

    def right(self, text: str) -> None:
        self.record("right", text)

    def skipped(self, text: str) -> None:
        self.record("skipped", text)

    def wrong(self, text: str) -> None:
        self.record("wrong", text)

    def figure(self, **figure: Any) -> None:
        """`what`, and either percentiles in microseconds, or `value` and `unit`."""
        self.record("figure", figure)

    @contextlib.contextmanager
    def apart(self, title: str) -> Iterator[None]:
        """One of several measurements: if it fails, that is recorded, and the next one is made."""
        try:
            yield
        except Late as why:
            self.record("late", f"{title}: {why}")
        except Wrong as why:
            self.wrong(f"{title}: {why}")

    @contextlib.contextmanager
    def at_ring(self, ring: str) -> Iterator[None]:
        """What is done with one of the rings: where it fails, the other one may do better."""
        try:
            yield
        except Late as why:
            self.record("late", f"ring {ring}: {why}")
        except PhaseOver:
            raise
        except NotRun as why:
            self.skipped(f"ring {ring}: {why}")
        except Wrong as why:
            self.wrong(f"ring {ring}: {why}")

    # Programs

    def call(
        self, command: Sequence[Word], limit_s: float | None = None, **env: str
    ) -> tuple[int, str, str]:
        """Exit code, stdout, stderr. HUNG: it timed out; 127: it cannot be started.

        Raises PhaseOver if it might have ended in time, and the end of the phase came first.
        """
        asked = limit_s or math.inf
        limit = max(1.0, min(asked, self.left_s() - 2))
        cut = self._short and limit < asked
        own_limit = max(1, int(limit))  # by its own alarm: no kernel stays on a GPU
        full = environment(TOKD_GPU_DEVICE=self.device, TOKD_GPU_LIMIT_S=str(own_limit), **env)
        began = time.monotonic()
        try:
            process = subprocess.Popen(
                [str(word) for word in command],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=full,
            )
        except OSError as wrong_start:
            return 127, "", f"{command[0]}: {wrong_start.strerror}"
        try:
            output, errors = process.communicate(timeout=limit + 1)
        except subprocess.TimeoutExpired as late:
            # A wrapper's program, too: one on the GPU would disturb what comes next.
            killed({process.pid, *processes_below(process.pid)})
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(GRACE_S)
            if cut:
                raise PhaseOver from late
            return (
                HUNG,
                _text(late.stdout),
                f"{_text(late.stderr)}\nnot finished after {limit:.0f} s",
            )
        status = process.returncode
        if status != 0 and time.monotonic() - began >= own_limit:
            if cut:
                raise PhaseOver
            status = HUNG  # by its own alarm, which a wrapper may report differently
        return status, _text(output), _text(errors)

    def failed(self, what: str, status: int, output: str, errors: str) -> NoReturn:
        why = no_host_ring(f"{output}\n{errors}")
        if why is not None:
            raise NotRun(why)
        if status == HUNG:
            raise Late(f"{what} timed out\n{errors.strip()[-OUTPUT_MOST:]}".strip())
        said = "\n".join(text.strip()[-OUTPUT_MOST:] for text in (output, errors) if text.strip())
        raise Wrong(f"{what} ended with {status}:\n{said}")

    def measured(
        self,
        mode: str,
        ring: str,
        program: str = "gpu_measure",
        /,
        *,
        stop_after_s: int = 20,
        **numbers: int | Word,
    ) -> dict[str, Any]:
        """The output of gpu_measure, each series with percentiles in microseconds. Raises Wrong.

        Producers stop after `stop_after_s` seconds with what they have.
        """
        samples = self.work / "samples"
        words: list[Word] = [self.build.program(program), mode, self.device, f"out={samples}"]
        words += [f"{name}={value}" for name, value in {"seed": self.seed, **numbers}.items()]
        words.append(f"limit_s={stop_after_s}")
        status, output, errors = self.call(words, stop_after_s + 40, TOKD_GPU_RING=ring)
        if status != 0:
            self.failed(" ".join(str(word) for word in words[1:]), status, output, errors)
        said: dict[str, Any] = json.loads(output)
        lengths = [each["n"] for each in said["series"]]
        for each, ticks in zip(said["series"], figures.series(samples, lengths)):
            each.update(figures.microseconds(ticks, each["ns_per_tick"]))
        return said

    def timed(self, said: dict[str, Any], names: dict[str, str], note: str = "") -> None:
        """Add series of gpu_measure to the report, under the given names."""
        for each in said["series"]:
            if each["name"] in names and each["n"] > 0:
                numbers = {name: each.get(name) for name in ("n", "p50", "p90", "p99", "max")}
                what = names[each["name"]] or each["name"]
                self.figure(what=what, ring=said["ring"], clock=each["clock"], **numbers, note=note)


def _text(said: bytes | None) -> str:
    return (said or b"").decode(errors="replace")
