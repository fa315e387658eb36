# SPDX-License-Identifier: BSD-3-Clause
"""What a part has to work with: the programs, a folder, a seed, time; and the words it says."""

from __future__ import annotations

import json
import math
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn, Union

from . import figures
from .build import Build

GRACE_S = 10
HUNG = 124  # exit status of what took too long
OUTPUT_MOST = 6000  # characters of a program's output in the report: its end
NO_GPU = 77
# With these a launch, or every copy, would wait for a kernel that stays.
UNWANTED = ("CUDA_LAUNCH_BLOCKING", "CUDA_DEVICE_MAX_CONNECTIONS", "TOKD_GPU_WORKERS")
DRIVER_FOLDER = Path("/usr/local/nvidia/lib64")  # where containers have it, not always on the path

Word = Union[str, Path]


def python() -> str:
    """This interpreter, which does not know where it is in an environment without a PATH."""
    return sys.executable or os.readlink("/proc/self/exe")


class NotRun(Exception):
    """The part cannot be run here, and why."""


class Late(NotRun):
    """A program of the part hung, and was ended."""


class Wrong(Exception):
    """Something is not right, and the rest of the part makes no sense."""


def environment(**more: str) -> dict[str, str]:
    """Of the programs that are measured. All code is loaded at once: what is loaded late would wait."""
    env = {k: v for k, v in os.environ.items() if k not in UNWANTED}
    env.setdefault("PATH", os.defpath)
    env["CUDA_MODULE_LOADING"] = "EAGER"
    if DRIVER_FOLDER.is_dir():
        env["LD_LIBRARY_PATH"] = f"{env.get('LD_LIBRARY_PATH', '')}:{DRIVER_FOLDER}".lstrip(":")
    return {**env, **more}


class Run:
    """Of all parts of one check, one after the other."""

    def __init__(self, build: Build, device: str, seed: int, work: Path) -> None:
        self.build, self.device, self.seed, self.work = build, device, seed, work
        self.words = work / "said"
        self._until = 0.0

    @property
    def on_gpu(self) -> bool:
        return self.device != "cpu"

    @property
    def rings(self) -> tuple[str, ...]:
        """Where a ring can be: threads have theirs in the host's memory alone."""
        return ("gpu", "host") if self.on_gpu else ("host",)

    def begin(self, limit_s: float) -> None:
        """Another part, with so much time."""
        shutil.rmtree(self.work, ignore_errors=True)
        self.work.mkdir(parents=True)
        self._until = time.monotonic() + limit_s

    def left_s(self) -> float:
        return self._until - time.monotonic()

    # What a part says

    def say(self, kind: str, value: Any) -> None:
        with self.words.open("a") as to:
            to.write(json.dumps([kind, value]) + "\n")

    def fact(self, name: str, value: Any) -> None:
        self.say("fact", [name, value])

    def right(self, text: str) -> None:
        self.say("right", text)

    def skipped(self, text: str) -> None:
        self.say("skipped", text)

    def wrong(self, text: str) -> None:
        self.say("wrong", text)

    def figure(self, **figure: Any) -> None:
        """`what`, and either p50 and its like in microseconds, or `value` and `unit`."""
        self.say("figure", figure)

    # What it runs

    def ran(
        self, command: Sequence[Word], limit_s: float | None = None, **env: str
    ) -> tuple[int, str, str]:
        """Exit status, output, errors. HUNG when it took too long, 127 when it cannot be started."""
        limit = max(1.0, min(limit_s or math.inf, self.left_s() - 2))
        own_limit = max(1, int(limit))  # by its own alarm: no kernel stays on a GPU
        full = environment(TOKD_GPU_DEVICE=self.device, TOKD_GPU_LIMIT_S=str(own_limit), **env)
        began = time.monotonic()
        try:
            end = subprocess.run(
                [str(word) for word in command],
                capture_output=True,
                stdin=subprocess.DEVNULL,
                env=full,
                timeout=limit + 1,
                check=False,
            )
        except subprocess.TimeoutExpired as late:
            return (
                HUNG,
                _text(late.stdout),
                f"{_text(late.stderr)}\nnot finished after {limit:.0f} s",
            )
        except OSError as wrong_start:
            return 127, "", f"{command[0]}: {wrong_start.strerror}"
        status = end.returncode
        if status != 0 and time.monotonic() - began >= own_limit:
            status = HUNG  # by its alarm, whatever a wrapper makes of that
        return status, _text(end.stdout), _text(end.stderr)

    def failed(self, what: str, status: int, output: str, errors: str) -> NoReturn:
        if status == HUNG:
            raise Late(f"{what} was ended after its limit\n{errors.strip()[-OUTPUT_MOST:]}".strip())
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
        **numbers: int,
    ) -> dict[str, Any]:
        """What gpu_measure said, each of its series with its summary in microseconds. Wrong.

        Producers stop after so many seconds, with what they did by then.
        """
        samples = self.work / "samples"
        words: list[Word] = [self.build.program(program), mode, self.device, f"out={samples}"]
        words += [f"{name}={value}" for name, value in {"seed": self.seed, **numbers}.items()]
        words.append(f"limit_s={stop_after_s}")
        status, output, errors = self.ran(words, stop_after_s + 40, TOKD_GPU_RING=ring)
        if status != 0 and "--ring host: it cannot" in errors:
            raise NotRun(errors.strip())
        if status != 0:
            self.failed(" ".join(str(word) for word in words[1:]), status, output, errors)
        said: dict[str, Any] = json.loads(output)
        lengths = [each["n"] for each in said["series"]]
        for each, ticks in zip(said["series"], figures.series(samples, lengths)):
            each.update(figures.microseconds(ticks, each["ns_per_tick"]))
        return said

    def timed(self, said: dict[str, Any], names: dict[str, str], note: str = "") -> None:
        """Figures of some series of gpu_measure, by what they are called in the report."""
        for each in said["series"]:
            if each["name"] in names and each["n"] > 0:
                numbers = {name: each.get(name) for name in ("n", "p50", "p90", "p99", "max")}
                what = names[each["name"]] or each["name"]
                self.figure(what=what, ring=said["ring"], clock=each["clock"], **numbers, note=note)


def _text(said: bytes | None) -> str:
    return (said or b"").decode(errors="replace")
