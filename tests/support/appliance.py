# SPDX-License-Identifier: BSD-3-Clause
"""dpdk-tokd as tests start it, on whatever device, and what they ask of it while it runs."""

import json
import os
import shutil
import signal
import socket
import time
from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path
from typing import Any, Self

from bench.appliance import READY_S, DpdkTokd

_started = count(1)


def run_time_folder(prefix: str) -> Path:
    """Where EAL has the files of a --file-prefix."""
    return Path("/var/run" if os.geteuid() == 0 else os.environ["XDG_RUNTIME_DIR"], "dpdk", prefix)


def until(
    condition: Callable[[], bool], seconds: float = READY_S, said: Callable[[], Any] = str
) -> None:
    """Until `condition` holds; AssertionError with what was said if it does not come to."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, said()
        time.sleep(0.01)


class Appliance(DpdkTokd):
    """Started; ready where the context is entered, stopped where it is left. One whose end the test
    did not see must end well. Several may use one folder: each has a log of its own, and the same
    control socket."""

    seen_to_end = False  # a test was told its exit code

    def __init__(
        self,
        folder: Path,
        eal: Sequence[str],
        own: Sequence[str],
        prefix: str | None = None,
        log: Path | None = None,
    ) -> None:
        number = next(_started)
        self.prefix = prefix or f"tokd-test-{os.getpid()}-{number}"
        self.socket = str(folder / "socket")
        super().__init__(
            log or folder / f"dpdk-tokd-{number}.log",
            ["--file-prefix", self.prefix, *eal],
            ["--socket", self.socket, *own],
        )

    def __enter__(self) -> Self:
        return self.ready()

    def __exit__(self, *why: object) -> None:
        seen, code = self.seen_to_end, self.stop()
        shutil.rmtree(run_time_folder(self.prefix), ignore_errors=True)
        assert seen or any(why) or code == 0, self.said()

    def ready(self) -> Self:
        self.wait_ready(READY_S)
        return self

    def wait(self, timeout_s: float) -> int | None:
        code = super().wait(timeout_s)
        self.seen_to_end |= code is not None
        return code

    def stop(self, number: int = signal.SIGTERM) -> int:
        self.seen_to_end = True
        return super().stop(number)

    def wait_for(self, text: str, timeout_s: float = READY_S) -> str:
        return super().wait_for(text, timeout_s)

    def wait_until(self, condition: Callable[[], bool]) -> None:
        """Until `condition` holds."""
        until(condition, said=self.said)

    def wait_counters(
        self, condition: Callable[[dict[str, int]], bool], seconds: float = 5.0
    ) -> None:
        """Until counters are so; AssertionError with them if they do not become so."""
        deadline = time.monotonic() + seconds
        while not condition(counters := self.counters()):
            assert time.monotonic() < deadline, {k: v for k, v in counters.items() if v}
            time.sleep(0.02)

    def telemetry(self, command: str) -> Any:
        """The answer to one command, as dpdk-telemetry.py would show it."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
            s.settimeout(5)
            s.connect(str(run_time_folder(self.prefix) / "dpdk_telemetry.v2"))
            s.recv(1 << 14)  # its greeting
            s.send(command.encode())
            return json.loads(s.recv(1 << 20))[command.split(",")[0]]

    def counters(self) -> dict[str, int]:
        return self.telemetry("/tokd/counters")
