# SPDX-License-Identifier: BSD-3-Clause
"""dpdk-tokd as a user starts it, on net_null: no huge pages, no device."""

from __future__ import annotations

import json
import os
import selectors
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[3]
BINARY = Path(os.environ.get("TOKD_BUILD", REPOSITORY / "build")) / "app/dpdk-tokd"
READY_S = 30


class Appliance:
    """A running dpdk-tokd. Its log is `log`, read as far as somebody waited for a line of it."""

    def __init__(self, prefix: str, eal: list[str], app: list[str]) -> None:
        self.prefix = prefix
        self.log = ""
        self.process = subprocess.Popen(
            [BINARY, "--file-prefix", prefix, *eal, "--", *app],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )

    def wait_for(self, text: str) -> None:
        """Until the log has `text`."""
        assert self.process.stdout is not None
        end = time.monotonic() + READY_S
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stdout, selectors.EVENT_READ)
            while text not in self.log:
                assert selector.select(max(0, end - time.monotonic())), f"no {text!r}:\n{self.log}"
                piece = os.read(self.process.stdout.fileno(), 65536)
                assert piece, f"ended without {text!r}:\n{self.log}"
                self.log += piece.decode()

    def wait_until(self, condition: Callable[[], bool]) -> None:
        """Until `condition` holds."""
        end = time.monotonic() + READY_S
        while not condition():
            assert time.monotonic() < end, self.log
            time.sleep(0.01)

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Exit code after the signal."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        self.log += self.process.communicate(timeout=READY_S)[0].decode()
        return self.process.returncode

    def telemetry(self, command: str) -> object:
        """What dpdk-telemetry.py would show."""
        folder = "/var/run/dpdk" if os.geteuid() == 0 else f"{os.environ['XDG_RUNTIME_DIR']}/dpdk"
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
            s.connect(f"{folder}/{self.prefix}/dpdk_telemetry.v2")
            s.recv(1024)
            s.send(command.encode())
            return json.loads(s.recv(65536))[command.split(",")[0]]


@pytest.fixture(scope="session")
def binary() -> Path:
    if not BINARY.is_file():
        pytest.skip(f"{BINARY} is not built")
    return BINARY


def last_cpu() -> int:
    return max(os.sched_getaffinity(0))


@pytest.fixture
def start(binary: Path, tmp_path: Path) -> Iterator[Callable[..., Appliance]]:
    """Start an appliance with the options given; those not given are for net_null."""
    running: list[Appliance] = []

    def make(
        *app: str,
        eal: list[str] | None = None,
        lcores: str | None = None,
        prefix: str | None = None,
    ) -> Appliance:
        own = ["--ip", "10.0.0.1", "--socket", str(tmp_path / "socket"), "--streams", "64"]
        common = ["-l", lcores or str(last_cpu()), "--no-huge", "-m", "256", "--no-pci"]
        device = ["--vdev=net_null0"] if eal is None else eal
        prefix = prefix or f"tokd-cli-{os.getpid()}-{len(running)}"
        running.append(Appliance(prefix, common + device, own + list(app)))
        return running[-1]

    yield make
    for appliance in running:
        if appliance.process.poll() is None:
            appliance.process.kill()
            appliance.process.communicate()


@pytest.fixture
def start_replay(
    start: Callable[..., Appliance], gpt2_file: Path, tmp_path: Path
) -> Callable[..., Appliance]:
    """Start an appliance that is sent so many texts, from a file."""
    frames = pytest.importorskip("bench.texts.frames", reason="pip install ./python")

    def make(texts: int, prefix: str | None = None) -> Appliance:
        capture = tmp_path / "texts.pcap"
        text = b"The quick brown fox jumps over the lazy dog."
        frames.write_pcap(capture, [frames.text_frame(i, text) for i in range(texts)])
        appliance = start(
            "--vocab",
            str(gpt2_file),
            eal=[f"--vdev=net_pcap0,rx_pcap={capture},tx_pcap={tmp_path / 'replies.pcap'}"],
            prefix=prefix,
        )
        appliance.wait_for("ready:")
        return appliance

    return make
