# SPDX-License-Identifier: BSD-3-Clause
"""Starts the conventional server."""

import sys
from pathlib import Path

from bench.lab.net import Veth, inside
from bench.process import ENDS_WITH_US, Process

PROGRAM = Path(__file__).with_name("socket_server.py")
READY_S = 30.0


def start(
    link: Veth, namespace: str | None, ranks: Path, sample: Path, folder: Path, cpu: int, *more: str
) -> Process:
    """Ready, with `more` options."""
    command = [sys.executable, str(PROGRAM), "--listen", link.address]
    command += ["--ranks", str(ranks), "--sample", str(sample), "--cpu", str(cpu), *more]
    server = Process(
        "socket_server", [*ENDS_WITH_US, *inside(namespace, *command)], folder / "baseline.log"
    )
    server.wait_ready(READY_S)
    return server
