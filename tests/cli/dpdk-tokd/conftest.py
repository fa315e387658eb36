# SPDX-License-Identifier: BSD-3-Clause
"""dpdk-tokd as a user starts it, on net_null: no huge pages, no device."""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from appliance import Appliance
from bench.programs import DPDK_TOKD


@pytest.fixture(scope="session")
def binary() -> Path:
    if not DPDK_TOKD.is_file():
        pytest.skip(f"{DPDK_TOKD} is not built")
    return DPDK_TOKD


def last_cpu() -> int:
    return max(os.sched_getaffinity(0))


@pytest.fixture
def start(binary: Path, tmp_path: Path) -> Iterator[Callable[..., Appliance]]:
    """Start an appliance with the options given; those not given are for net_null."""
    with ExitStack() as stack:

        def make(
            *app: str,
            eal: list[str] | None = None,
            lcores: str | None = None,
            prefix: str | None = None,
            log: Path | None = None,
        ) -> Appliance:
            common = ["-l", lcores or str(last_cpu()), "--no-huge", "-m", "256"]
            device = ["--vdev=net_null0"] if eal is None else eal
            own = ["--ip", "10.0.0.1", "--streams", "64", *app]
            return stack.push(Appliance(tmp_path, common + device, own, prefix, log))

        yield make


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
            # A capture sends nothing again: no text may be refused because half of the streams
            # are open, as they are when the worker loses its CPU.
            "--streams",
            str(max(128, 2 * texts)),
            eal=[f"--vdev=net_pcap0,rx_pcap={capture},tx_pcap={tmp_path / 'replies.pcap'}"],
            prefix=prefix,
        )
        appliance.wait_for("ready:")
        return appliance

    return make
