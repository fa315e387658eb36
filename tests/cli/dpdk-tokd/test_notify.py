# SPDX-License-Identifier: BSD-3-Clause
"""What systemd is told: ready, alive as long as the workers turn, stopping."""

import ctypes
import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

GPU_DEFAULTS = Path(__file__).parents[3] / "config/systemd/tokd-gpu.default"


@pytest.fixture
def systemd(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[socket.socket]:
    """systemd's end: one datagram a message."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
        s.bind(str(tmp_path / "notify"))
        s.settimeout(30)
        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
        yield s


def told(systemd: socket.socket) -> str:
    return systemd.recv(4096).decode()


def nothing_is_said(systemd: socket.socket) -> None:
    """From now on."""
    systemd.settimeout(0)
    with suppress(BlockingIOError):
        while told(systemd):  # as much as this process was late
            pass
    systemd.settimeout(1)
    with pytest.raises(TimeoutError):
        for _ in range(4):  # some may be on the way
            told(systemd)
    systemd.settimeout(30)


def test_a_service_says_ready_alive_and_stopping(start, gpt2_file, systemd, monkeypatch) -> None:
    monkeypatch.setenv("WATCHDOG_USEC", "600000")
    monkeypatch.delenv("WATCHDOG_PID", raising=False)
    appliance = start("--vocab", str(gpt2_file))
    heard = [told(systemd)]
    while "READY=1" not in heard:
        heard.append(told(systemd))
    assert [told(systemd) for _ in range(3)] == ["WATCHDOG=1"] * 3
    assert appliance.stop() == 0
    systemd.settimeout(1)
    while not heard[-1].startswith("STOPPING=1"):
        heard.append(told(systemd))


def test_a_worker_that_waits_for_readers_is_alive(start, gpt2_file, systemd, monkeypatch) -> None:
    monkeypatch.setenv("WATCHDOG_USEC", "600000")
    start("--vocab", str(gpt2_file), "--wait-readers", "1")
    while told(systemd) != "READY=1":
        pass
    assert [told(systemd) for _ in range(3)] == ["WATCHDOG=1"] * 3


def test_systemd_waits_as_long_as_the_drain(start, gpt2_file, systemd) -> None:
    """TimeoutStopSec would cut it."""
    appliance = start("--vocab", str(gpt2_file), "--drain", "60000")
    assert told(systemd) == "READY=1"
    assert appliance.stop() == 0
    assert "EXTEND_TIMEOUT_USEC=75000000" in told(systemd).splitlines()


def test_a_worker_that_does_not_turn_gives_no_sign_of_life(
    start, gpt2_file, systemd, monkeypatch
) -> None:
    monkeypatch.setenv("WATCHDOG_USEC", "300000")
    appliance = start("--vocab", str(gpt2_file))
    while told(systemd) != "WATCHDOG=1":
        pass
    # The main lcore is a worker: the thread that is the process. A tracer holds it as a hang would:
    # the others go on.
    with Held(appliance.pid):
        nothing_is_said(systemd)
    assert told(systemd) == "WATCHDOG=1"


@pytest.fixture
def agent(
    binary: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[subprocess.Popen]:
    """tokd-gpu as its unit starts it, by the environment file that is installed; on the CPU."""
    program = binary.parents[1] / "app/tokd-gpu"
    if not program.is_file():
        pytest.skip(f"{program} is not built")
    for line in GPU_DEFAULTS.read_text().splitlines():
        name, equals, value = line.partition("=")
        if equals and not line.startswith("#"):
            monkeypatch.setenv(name, value)
    monkeypatch.setenv("TOKD_GPU_DEVICE", "cpu")
    command = [
        program,
        "--listen",
        f"unix:{tmp_path}/gpu",
        "--subscribers-socket",
        str(tmp_path / "subscribers"),
    ]
    process = subprocess.Popen(command)
    yield process
    process.kill()
    process.wait()


def test_the_agent_says_ready_once_its_ring_is_there(systemd, agent, tmp_path: Path) -> None:
    assert told(systemd) == "READY=1"
    assert (tmp_path / "gpu").is_socket() and (tmp_path / "subscribers").is_socket()
    agent.terminate()
    assert agent.wait(30) == 0
    assert "EXTEND_TIMEOUT_USEC=17000000" in told(systemd).splitlines()  # 2 s, and 15 to close


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WATCHDOG_USEC", "600000")
    monkeypatch.delenv("WATCHDOG_PID", raising=False)


def test_the_agent_gives_signs_of_life(systemd, watched, agent) -> None:
    while told(systemd) != "READY=1":
        pass
    assert [told(systemd) for _ in range(3)] == ["WATCHDOG=1"] * 3
    # What a call of the driver that does not return looks like.
    with Held(agent.pid):
        nothing_is_said(systemd)
    assert told(systemd) == "WATCHDOG=1"


@pytest.mark.parametrize("where", ["/nowhere/at/all", "", "relative", "@"])
def test_a_socket_that_is_not_there_does_no_harm(start, gpt2_file, monkeypatch, where) -> None:
    monkeypatch.setenv("NOTIFY_SOCKET", where)
    appliance = start("--vocab", str(gpt2_file)).ready()
    assert appliance.stop(signal.SIGTERM) == 0


class Held:
    """A thread under ptrace, stopped."""

    def __init__(self, thread: int) -> None:
        self.libc = ctypes.CDLL(None, use_errno=True)
        self.thread = thread

    def _ptrace(self, request: int) -> int:
        return self.libc.ptrace(request, self.thread, ctypes.c_void_p(), ctypes.c_void_p())

    def __enter__(self) -> None:
        if self._ptrace(0x4206) != 0 or self._ptrace(0x4207) != 0:  # SEIZE, INTERRUPT
            pytest.skip("a thread cannot be stopped by ptrace here")
        os.waitpid(self.thread, 0x40000000)  # __WALL

    def __exit__(self, *why: object) -> None:
        self._ptrace(17)  # DETACH: it goes on
