# SPDX-License-Identifier: BSD-3-Clause
"""Child processes that can be paused and that end with this one."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

POLL_S = 0.02
STOP_S = 20.0
# Before a command: it ends when this process ends, however that happens.
ENDS_WITH_US = ["setpriv", "--pdeathsig", "TERM"]


class Ended(OSError):
    """A command failed; `code` is its exit code."""

    def __init__(self, code: int, said: str) -> None:
        super().__init__(f"it ended with {code}: {said}")
        self.code, self.said = code, said


def json_of(
    command: Sequence[str | Path],
    cpus: Sequence[int],
    seconds: float,
    told: object = None,
    **env: str,
) -> Any:
    """What a command prints, as JSON, on these CPUs; `told` is its standard input, likewise.
    Ended: it failed."""
    done = subprocess.run(
        [*ENDS_WITH_US, "taskset", "-c", ",".join(map(str, cpus)), *command],
        input=json.dumps(told), env=os.environ | env,
        capture_output=True, text=True, check=False, timeout=seconds,
    )  # fmt: skip
    if done.returncode != 0:
        raise Ended(done.returncode, (done.stderr.strip().splitlines() or ["no output"])[-1])
    return json.loads(done.stdout)


class NotReady(Exception):
    """A program did not start; the message has the end of its output."""


class Process:
    """A child process whose output goes to a file. Leaving the context stops it."""

    def __init__(self, name: str, command: list[str], log: Path, **env: str) -> None:
        self.name = name
        self.log = log
        self._paused = False
        with log.open("wb") as out:
            self._child = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                env=os.environ | env,
            )

    @property
    def pid(self) -> int:
        return self._child.pid

    @property
    def running(self) -> bool:
        return self._child.poll() is None

    def said(self) -> str:
        """All that it printed."""
        return self.log.read_text(errors="replace")

    def wait_for(self, text: str, timeout_s: float) -> str:
        """Wait for a line of output that contains `text`."""
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            running = self.running  # asked before reading, so that the last line is seen
            for line in self.said().splitlines(keepends=True):
                if text in line:
                    return line.rstrip("\n")
            if not running:
                raise NotReady(f"{self.name} ended with {self._child.returncode}:\n{self.tail()}")
            time.sleep(POLL_S)
        raise NotReady(f"{self.name} was not ready after {timeout_s:.0f} s:\n{self.tail()}")

    def wait_ready(self, timeout_s: float) -> str:
        """As wait_for("ready:"); stops the process if the line does not come."""
        try:
            return self.wait_for("ready:", timeout_s)
        except BaseException:
            self.stop()
            raise

    def tail(self, lines: int = 12) -> str:
        return "\n".join(f"    {line}" for line in self.said().splitlines()[-lines:])

    def pause(self) -> None:
        """Stop it (SIGSTOP) until go_on()."""
        self.send_signal(signal.SIGSTOP)
        self._paused = True

    def go_on(self) -> None:
        self.send_signal(signal.SIGCONT)
        self._paused = False

    def wait(self, timeout_s: float) -> int | None:
        """Its exit code, or None if it is still running."""
        try:
            return self._child.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return None

    def send_signal(self, number: int) -> None:
        self._child.send_signal(number)

    def stop(self, number: int = signal.SIGTERM) -> int:
        """End it by signal `number`, by SIGKILL if needed. Returns its exit code."""
        if self.running:
            self.send_signal(number)
            if self._paused:
                self.go_on()
            try:
                self.wait(STOP_S)
            finally:
                if self.running:
                    self._child.kill()
        return self._child.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
