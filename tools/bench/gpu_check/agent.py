# SPDX-License-Identifier: BSD-3-Clause
"""tokd-gpu, a producer and holders as processes, for the parts of phase C."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

from .holder import ids_of
from .run import Run, Wrong, environment, python

ROWS, DIM = 1000, 256
READY_S = 40
HOLDER = Path(__file__).with_name("holder.py")


def group_env(run: Run, more: dict[str, str]) -> dict[str, str]:
    """As a user starts it: nothing of TOKD_, and code loaded when it is needed."""
    env = {k: v for k, v in environment(**more).items() if not k.startswith("TOKD_")}
    env.pop("CUDA_MODULE_LOADING", None)
    return env


class Process:
    """One helper: its output by lines. Of the part's process group, so that it ends with the part."""

    def __init__(
        self, run: Run, name: str, words: list[Any], env: dict[str, str], stdin: bool = False
    ) -> None:
        self.name, self.log = name, run.work / f"{name}.log"
        self._errors = self.log.open("ab")
        self.process = subprocess.Popen(
            [str(word) for word in words],
            stdin=subprocess.PIPE if stdin else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env=env,
            text=True,
            bufsize=1,
        )

    def hear(self) -> str:
        """Its next line. Wrong: it has ended."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise Wrong(f"{self.name} ended with {self.process.wait()}:\n{self.said()}")
        return line.strip()

    def said(self) -> str:
        return self.log.read_text(errors="replace")[-3000:]

    def kill(self) -> int:
        """By SIGKILL; how it ended."""
        if self.process.poll() is None:
            self.process.kill()
        return self.process.wait(20)


class Agent(Process):
    """tokd-gpu on the device, at the sockets of this part."""

    def __init__(self, run: Run, **env: str) -> None:
        self.ring, self.holders = run.work / "ring", run.work / "holders"
        words = [run.build.program("tokd-gpu"), "--table", f"random:{ROWS}x{DIM}:{run.seed}"]
        words += [
            "--listen",
            f"unix:{self.ring}",
            "--subscribers-socket",
            self.holders,
            "--device",
            run.device,
        ]
        words += ["--slots", "8", "--slot-bytes", "4k", "--producers", "4"]
        words += ["--ring", "host"] if run.on_gpu else []
        super().__init__(run, "tokd-gpu", words, group_env(run, env))
        until = time.monotonic() + READY_S
        had = self.said().count("ready: ")
        while self.said().count("ready: ") == had:
            if self.process.poll() is not None or time.monotonic() > until:
                self.kill()
                raise Wrong(f"tokd-gpu is not ready after {READY_S} s:\n{self.said()}")
            time.sleep(0.02)

    def stop(self) -> int:
        """By SIGTERM, as systemd does it."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(30)


class Poster(Process):
    """tests/unit/gpu/sink/poster.c."""

    def __init__(self, run: Run, agent: Agent, instance: int) -> None:
        words = [run.build.program("poster"), agent.ring, 0, instance]
        super().__init__(run, "poster", words, group_env(run, {}), stdin=True)
        granted = self.hear()
        if not granted.startswith("granted"):
            raise Wrong(f"poster: {granted}")

    def say(self, line: str) -> str:
        assert self.process.stdin is not None
        self.process.stdin.write(line + "\n")
        return self.hear()

    def post(self, first: int, count: int) -> None:
        """So many requests; all must be done well."""
        for request in range(first, first + count):
            ids = " ".join(map(str, ids_of(request, ROWS)))
            if self.say(f"post {request} 0 3 {ids}") != "posted":
                raise Wrong("poster: a request was not posted")
        statuses = self.say("wait").split()[1:]
        if set(statuses) != {"1"}:
            raise Wrong(f"poster: statuses {statuses}")


class Holder(Process):
    """holder.py, attached."""

    def __init__(self, run: Run, agent: Agent, count: int, **env: str) -> None:
        gpu = run.device[5:] if run.on_gpu else "0"
        words = [python(), "-B", HOLDER, agent.holders, f"{ROWS}x{DIM}:{run.seed}", count, gpu]
        super().__init__(run, "holder", words, {**os.environ, **group_env(run, env)})
        if self.hear() != "holding":
            raise Wrong(f"the holder does not hold:\n{self.said()}")

    def result(self) -> dict[str, Any]:
        said: dict[str, Any] = json.loads(self.hear())
        if said["wrong"]:
            raise Wrong(f"{said['wrong']} elements of the holder's rows are not the table's")
        return said


def ended(*processes: Process | None) -> None:
    for process in processes:
        if process is not None:
            process.kill()
