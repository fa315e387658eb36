# SPDX-License-Identifier: BSD-3-Clause
"""tokd-top: its frames, and how it sets and restores the terminal."""

import fcntl
import os
import pty
import re
import select
import signal
import socket
import struct
import subprocess
import termios
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from bench.programs import ROOT
from ended import ended
from test_start_stop import ATTACH

TOP = ROOT / "tools/tokd-top"
PREFIX = f"tokd-top-{os.getpid()}"
TEXTS = 40
WAIT_S = 20.0


def once(*arguments: str, prefix: str = PREFIX) -> subprocess.CompletedProcess[str]:
    return ended(TOP, "--once", "--interval", "0.2", "--file-prefix", prefix, *arguments)


def test_once_shows_workers_drops_and_readers(start, gpt2_file: Path, tmp_path: Path) -> None:
    appliance = start("--vocab", str(gpt2_file), prefix=PREFIX)  # net_null: all is dropped
    appliance.wait_for("ready:")
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
        s.connect(str(tmp_path / "socket"))
        s.send(ATTACH)
        _, fds, _, _ = socket.recv_fds(s, 4096, 64)
        done = once("--interval", "1")  # in 0.2 s the worker of a busy machine may not run
        for fd in fds:
            os.close(fd)
    assert done.returncode == 0, done.stderr
    assert "\x1b" not in done.stdout
    lines = done.stdout.splitlines()
    assert re.match(r"dpdk-tokd \d.* serving .* last 1\.\d s$", lines[0])
    assert lines[1].startswith("net_null0 (net_null), link up  ")
    assert re.search(r"^  0 +\d+ #[#!.]{7} ", done.stdout, re.MULTILINE)
    assert re.search(r"^  drop_ether +\d[\d.]*[kMG]?/s ", done.stdout, re.MULTILINE)
    assert "drop_arp" not in done.stdout  # does not rise
    assert re.search(rf"^ +0 reading +{os.getpid()} +0 +0$", done.stdout, re.MULTILINE)


def test_a_reader_that_takes_no_more_is_no_error(start, gpt2_file: Path) -> None:
    start("--vocab", str(gpt2_file), prefix=PREFIX).ready()
    command = [TOP, "--once", "--interval", "0.2", "--file-prefix", PREFIX]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as top:
        assert top.stdout is not None and top.stderr is not None
        top.stdout.close()
        assert top.stderr.read() == b""
    assert top.returncode == -signal.SIGPIPE


def test_nobody_there_is_one_line_and_exit_1() -> None:
    done = once(prefix="nobody-has-this-prefix")
    assert done.returncode == 1 and done.stdout == ""
    assert done.stderr.startswith("tokd-top: ") and done.stderr.count("\n") == 1
    assert "is dpdk-tokd running" in done.stderr


@pytest.mark.parametrize("bad", ["0", "-1", "x", "nan", "inf", "4000"])
def test_a_wrong_interval_is_told_with_its_limits(bad: str) -> None:
    done = once(f"--interval={bad}")
    assert done.returncode == 2 and "expected 0.1 to 3600 seconds" in done.stderr


def test_no_terminal_asks_for_once() -> None:
    done = ended(TOP)
    assert done.returncode == 2 and "--once" in done.stderr


class Terminal:
    """tokd-top in a terminal of its own."""

    def __init__(self) -> None:
        self.master, self.slave = pty.openpty()
        self.resize(40, 160)
        self.before = termios.tcgetattr(self.slave)
        self.shown = ""
        self.seen = 0
        self.process = subprocess.Popen(
            [TOP, "--interval", "0.2", "--file-prefix", PREFIX],
            stdin=self.slave,
            stdout=self.slave,
            stderr=self.slave,
            start_new_session=True,
        )

    def resize(self, rows: int, columns: int) -> None:
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("<4H", rows, columns, 0, 0))

    def read(self) -> None:
        while select.select([self.master], [], [], 0.05)[0]:
            self.shown += os.read(self.master, 65536).decode()

    def wait_for(self, text: str) -> str:
        """Until it shows `text`, after what was waited for before; returns what it showed."""
        end = time.monotonic() + WAIT_S
        while (found := self.shown.find(text, self.seen)) < 0:
            assert time.monotonic() < end, self.shown[-3000:]
            self.read()
        new = self.shown[self.seen : found + len(text)]
        self.seen = found + len(text)
        return new

    def ended_well(self) -> None:
        assert self.process.wait(WAIT_S) == 0
        self.read()
        assert self.shown.endswith("\x1b[?25h\x1b[?1049l"), self.shown[-300:]
        assert termios.tcgetattr(self.slave) == self.before
        assert "Traceback" not in self.shown


@pytest.fixture
def terminal() -> Iterator[Terminal]:
    one = Terminal()
    yield one
    if one.process.poll() is None:
        one.process.kill()
        one.process.wait()
    os.close(one.master)
    os.close(one.slave)


def test_it_lives_through_restarts_and_new_sizes(start_replay, terminal: Terminal) -> None:
    terminal.wait_for("no such socket")
    appliance = start_replay(TEXTS, prefix=PREFIX)
    terminal.wait_for("since its start")
    terminal.wait_for("last 0.")
    terminal.resize(5, 30)
    os.kill(terminal.process.pid, signal.SIGWINCH)
    small = terminal.wait_for("more lines: make")
    frame = small[small.rindex("\x1b[H") :]
    rows = re.sub(r"\x1b\[[HK]", "", frame).split("\r\n")
    assert len(rows) == 5 and max(map(len, rows)) == 30
    terminal.resize(40, 160)
    os.kill(terminal.process.pid, signal.SIGWINCH)
    terminal.wait_for("readers: none")
    appliance.stop(signal.SIGKILL)
    terminal.wait_for("no process listens")
    start_replay(TEXTS, prefix=PREFIX)
    terminal.wait_for("readers: none")
    os.write(terminal.master, b"q")
    terminal.ended_well()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_gives_the_terminal_back(terminal: Terminal, number: int) -> None:
    terminal.wait_for("tried again every 0.2 s")
    os.kill(terminal.process.pid, number)
    terminal.ended_well()


def test_suspended_it_gives_the_terminal_back_for_so_long(terminal: Terminal) -> None:
    terminal.wait_for("tried again every 0.2 s")
    os.kill(terminal.process.pid, signal.SIGTSTP)
    terminal.wait_for("\x1b[?25h\x1b[?1049l")
    assert termios.tcgetattr(terminal.slave) == terminal.before
    stat = Path(f"/proc/{terminal.process.pid}/stat")
    end = time.monotonic() + WAIT_S
    while stat.read_text().rpartition(")")[2].split()[0] != "T":
        assert time.monotonic() < end
        time.sleep(0.01)
    os.kill(terminal.process.pid, signal.SIGCONT)
    terminal.wait_for("\x1b[?1049h")
    terminal.wait_for("tried again every 0.2 s")
    os.write(terminal.master, b"Q")
    terminal.ended_well()
