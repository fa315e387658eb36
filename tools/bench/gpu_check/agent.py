# SPDX-License-Identifier: BSD-3-Clause
"""tokd-gpu, a producer and subscribers as processes."""

from __future__ import annotations

import ctypes
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from .run import NotRun, Run, Wrong, environment, no_host_ring, python
from .subscriber import NO_IPC, ids_of

ROWS, DIM = 1000, 256
READY_S = 40
PR_CAPBSET_DROP = 24
CAPABILITIES_MOST = 64
SUBSCRIBER = Path(__file__).with_name("subscriber.py")


def group_env(run: Run, more: dict[str, str]) -> dict[str, str]:
    """As a user starts it: no TOKD_ variables, lazy loading of code."""
    env = {k: v for k, v in environment(**more).items() if not k.startswith("TOKD_")}
    env.pop("CUDA_MODULE_LOADING", None)
    return env


def without_capabilities() -> None:
    """In a child: the program that it becomes has none, also if its user is root."""
    libc = ctypes.CDLL(None)
    for number in range(CAPABILITIES_MOST):
        libc.prctl(PR_CAPBSET_DROP, number, 0, 0, 0)


class Process:
    """A helper process, read line by line. It is in the part's process group and ends with it."""

    def __init__(
        self,
        run: Run,
        name: str,
        words: list[Any],
        env: dict[str, str],
        stdin: int = subprocess.DEVNULL,
        first: Callable[[], None] | None = None,
        fds: Sequence[int] = (),
    ) -> None:
        self.name, self.log = name, run.work / f"{name}.log"
        self._errors = self.log.open("ab")
        self.process = subprocess.Popen(
            [str(word) for word in words],
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env=env,
            text=True,
            bufsize=1,
            preexec_fn=first,
            pass_fds=fds,
        )

    def read_line(self) -> str:
        """Its next line. Raises Wrong if it has ended."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise Wrong(f"{self.name} ended with {self.process.wait()}:\n{self.said()}")
        return line.strip()

    def said(self) -> str:
        return self.log.read_text(errors="replace")[-3000:]

    def capabilities(self) -> str:
        """Those that it can use, as the kernel writes them."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return next(line.split()[1] for line in status.splitlines() if line.startswith("CapEff"))

    def kill(self) -> int:
        """Kill by SIGKILL; its exit code."""
        if self.process.poll() is None:
            self.process.kill()
        return self.process.wait(20)


class Agent(Process):
    """tokd-gpu on the device, at the sockets of this part."""

    def __init__(
        self, run: Run, program: str = "tokd-gpu", options: Sequence[str] = (), /, **env: str
    ) -> None:
        self.ring, self.subscribers = run.work / "ring", run.work / "subscribers"
        words = [run.build.program(program), "--table", f"random:{ROWS}x{DIM}:{run.seed}"]
        words += ["--listen", f"unix:{self.ring}", "--subscribers-socket", self.subscribers]
        words += ["--device", run.device, "--slots", "8", "--slot-bytes", "4k", "--producers", "4"]
        words += [*options, *(["--ring", "host"] if run.on_gpu else [])]
        log = run.work / "tokd-gpu.log"  # of the agents before it, too
        had = log.read_text(errors="replace").count("ready: ") if log.exists() else 0
        super().__init__(run, "tokd-gpu", words, group_env(run, env))
        until = time.monotonic() + READY_S
        while self.log.read_text(errors="replace").count("ready: ") == had:
            if self.process.poll() is not None or time.monotonic() > until:
                self.kill()
                why = no_host_ring(self.said())
                if why is not None:
                    raise NotRun(why)
                raise Wrong(f"tokd-gpu is not ready after {READY_S} s:\n{self.said()}")
            time.sleep(0.02)

    def stop(self) -> int:
        """Stop by SIGTERM, as systemd does."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(30)


class Poster(Process):
    """tests/unit/gpu/sink/poster.c."""

    def __init__(self, run: Run, agent: Agent, instance: int) -> None:
        words = [run.build.program("poster"), agent.ring, 0, instance]
        super().__init__(run, "poster", words, group_env(run, {}), subprocess.PIPE)
        granted = self.read_line()
        if not granted.startswith("granted"):
            raise Wrong(f"poster: {granted}")

    def send(self, line: str) -> str:
        assert self.process.stdin is not None
        self.process.stdin.write(line + "\n")
        return self.read_line()

    def post(self, first: int, count: int) -> None:
        """Post `count` requests; all must succeed."""
        for request in range(first, first + count):
            ids = " ".join(map(str, ids_of(request, ROWS)))
            if self.send(f"post {request} 0 3 {ids}") != "posted":
                raise Wrong("poster: a request was not posted")
        statuses = self.send("wait").split()[1:]
        if set(statuses) != {"1"}:
            raise Wrong(f"poster: statuses {statuses}")


class Subscriber(Process):
    """subscriber.py, attached."""

    def __init__(
        self,
        run: Run,
        agent: Agent,
        count: int,
        first: Callable[[], None] | None = None,
        /,
        **env: str,
    ) -> None:
        gpu = run.device[5:] if run.on_gpu else "0"
        words = [python(), "-B", SUBSCRIBER, agent.subscribers]
        words += [f"{ROWS}x{DIM}:{run.seed}", count, gpu]
        full = {**os.environ, **group_env(run, env)}
        super().__init__(run, "subscriber", words, full, first=first)
        line = self.read_line()
        if line.startswith(NO_IPC):
            raise NotRun(line)
        if line != "attached":
            raise Wrong(f"the subscriber did not attach:\n{self.said()}")

    def result(self) -> dict[str, Any]:
        said: dict[str, Any] = json.loads(self.read_line())
        if said["wrong"]:
            raise Wrong(f"{said['wrong']} elements of the subscriber's rows are not the table's")
        return said


def ended(*processes: Process | None) -> None:
    for process in processes:
        if process is not None:
            process.kill()
