# SPDX-License-Identifier: BSD-3-Clause
"""A tokd-gpu --device cpu, and producers of it, for as long as a test takes."""

import os
import select
import signal
import subprocess
import time
from pathlib import Path
from typing import Self

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("TOKD_BUILD", ROOT / "build"))
AGENT = BUILD / "app" / "tokd-gpu"
POSTER = BUILD / "tests/unit/gpu/sink/poster"
GENERATOR = BUILD / "tests/unit/gpu/sink/generator"


class Agent:
    """tokd-gpu with sockets of its own in `folder`."""

    def __init__(self, folder: Path, *options: str, table: str = "random:1000x64:7") -> None:
        if not AGENT.is_file() or not POSTER.is_file():
            pytest.skip(f"{AGENT} or {POSTER} is missing: ninja -C build")
        self.socket = folder / "ring"
        self.subscribers = folder / "subscribers"
        self.log = folder / "log"
        self.log.touch()
        command = [str(AGENT), "--table", table, "--listen", f"unix:{self.socket}"]
        command += [
            "--subscribers-socket",
            str(self.subscribers),
            "--slots",
            "8",
            "--slot-bytes",
            "4k",
        ]
        environment = {k: v for k, v in os.environ.items() if not k.startswith("TOKD_")}
        with self.log.open("w") as log:
            self.process = subprocess.Popen([*command, *options], stderr=log, env=environment)
        self.wait_for("ready: ")

    def wait_for(self, text: str, timeout: float = 10.0) -> str:
        """The log, once it has `text`."""
        deadline = time.monotonic() + timeout
        while text not in (log := self.log.read_text()):
            assert time.monotonic() < deadline, f"{text!r} is not in: {log}"
            assert self.process.poll() is None or text in self.log.read_text(), log
            time.sleep(0.005)
        return log

    def stop(self, how: signal.Signals = signal.SIGTERM, timeout: float = 10.0) -> int:
        self.process.send_signal(how)
        return self.process.wait(timeout)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()


class Poster:
    """A producer: tests/unit/gpu/sink/poster.c."""

    FIRST, LAST, ABORT = 1, 2, 8

    def __init__(self, agent: Agent, worker: int = 0, instance: int = 99) -> None:
        self.process = subprocess.Popen(
            [POSTER, agent.socket, str(worker), str(instance)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
        )
        self.greeting = self._hear()

    def _hear(self) -> list[str]:
        assert self.process.stdout is not None
        return self.process.stdout.readline().split()

    def send(self, line: str) -> list[str]:
        assert self.process.stdin is not None
        self.process.stdin.write(line + "\n")
        return self._hear()

    def post(self, request: int, ids: list[int], first: int = 0, flags: int = 3) -> None:
        words = " ".join(map(str, ids))
        assert self.send(f"post {request} {first} {flags} {words}") == ["posted"]

    def wait(self) -> list[int]:
        """Statuses of what was posted since the last time."""
        word, *statuses = self.send("wait")
        assert word == "done", [word, *statuses]
        return [int(s) for s in statuses]

    def released(self, n: int, ms: int) -> int:
        """How many are given back, once n are, or after so many milliseconds."""
        word, released = self.send(f"released {n} {ms}")
        assert word == "released"
        return int(released)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()


class Generator:
    """A producer of prompts: tests/unit/gpu/sink/generator.c."""

    def __init__(self, agent: Agent) -> None:
        self.process = subprocess.Popen(
            [GENERATOR, agent.socket], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self._rest = b""
        self._lines: list[list[str]] = []
        word, *self.granted = self._read("granted")
        assert word == "granted", self.granted

    def send(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{line}\n".encode())
        self.process.stdin.flush()

    def _take(self, seconds: float) -> None:
        """What has come, or comes in this time."""
        out = self.process.stdout
        assert out is not None
        if select.select([out], [], [], seconds)[0]:
            data = os.read(out.fileno(), 1 << 16)
            assert data, "the generator has ended"
            *lines, self._rest = (self._rest + data).split(b"\n")
            self._lines += [line.decode().split() for line in lines]

    def _read(self, *words: str) -> list[str]:
        """The next line that begins with one of these words, or with any."""
        deadline = time.monotonic() + 30
        while True:
            for i, line in enumerate(self._lines):
                if not words or line[0] in words:
                    return self._lines.pop(i)
            assert time.monotonic() < deadline, (words, self._lines)
            self._take(0.1)

    def hear(self) -> list[str]:
        """What happens next to a text."""
        return self._read()

    def heard(self) -> list[list[str]]:
        """What has happened. Does not wait."""
        self._take(0.001)
        lines, self._lines = self._lines, []
        return lines

    def prompt(self, ids: list[int], limit: int, grant: int) -> int:
        """Its serial."""
        self.send(f"prompt {limit} {grant} {' '.join(map(str, ids))}")
        word, *serial = self._read("serial", "busy")
        assert word == "serial", word
        return int(serial[0])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()
