# SPDX-License-Identifier: BSD-3-Clause
"""An appliance that serves a memif, and the load generator at the other end of it."""

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any, Self

from bench.process import Process
from bench.programs import DPDK_TOKD, TOKD_LOAD_DPDK
from dpdk_tokd.ops.telemetry import runtime_dir

CPUS = sorted(os.sched_getaffinity(0))  # those this process may use
CLIENT_CPU, SERVER_CPU = CPUS[0], CPUS[-1]
SERVER, CLIENT = "10.97.0.1", "10.97.0.2"
PORT, FIRST_PORT = 9000, 20000
READY_S = 60.0
HUGE = ["--in-memory"]
NO_HUGE = ["--no-huge", "-m", "512"]
CLIENT_MEMORY = ["--no-huge", "-m", "128"]


class LoadFailed(Exception):
    """The generator did not come to an end; the message is what it said."""


class Pair(Process):
    """The appliance, as a Process, and what is needed to run generators against it."""

    def __init__(self, vocab: Path, folder: Path, huge: bool, *app: str) -> None:
        """`app`: further options of the appliance's own."""
        self.folder = folder
        self.prefix = f"tokd{os.getpid()}"
        self.socket = folder / "tokd.sock"
        self.huge = huge
        self._memif = f"socket={folder / 'memif.sock'},socket-abstract=no"
        eal = ["-l", str(SERVER_CPU), "--no-pci", *(HUGE if huge else NO_HUGE)]
        eal += ["--file-prefix", self.prefix, "--vdev", f"net_memif0,role=server,{self._memif}"]
        own = ["--ip", SERVER, "--udp-port", str(PORT), "--vocab", str(vocab)]
        own += ["--socket", str(self.socket), *app]
        super().__init__("dpdk-tokd", [str(DPDK_TOKD), *eal, "--", *own], folder / "tokd.log")

    def __enter__(self) -> Self:
        self.ready = self.wait_for("ready:", READY_S)
        return self

    def __exit__(self, *_: object) -> None:
        super().__exit__()
        shutil.rmtree(runtime_dir() / self.prefix, ignore_errors=True)

    def load(
        self, slices: Path, *options: str, timeout_s: float
    ) -> tuple[int, dict[str, Any], str]:
        """Run the generator, which also reads the token ring: exit code, report, complaints."""
        report = self.folder / "report.json"
        report.unlink(missing_ok=True)
        prefix = f"{self.prefix}load"
        command = [str(TOKD_LOAD_DPDK), "-l", str(CLIENT_CPU), "--no-pci", *CLIENT_MEMORY]
        command += ["--file-prefix", prefix, "--no-telemetry"]
        command += ["--vdev", f"net_memif0,role=client,{self._memif}", "--"]
        command += ["--connect", f"{SERVER}:{PORT}", "--source", f"{CLIENT}:{FIRST_PORT}"]
        command += ["--slices", str(slices), "--report", str(report), "--ring", str(self.socket)]
        try:
            run = subprocess.run(
                [*command, *options],
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                text=True, check=False, timeout=timeout_s,
            )  # fmt: skip
        finally:
            shutil.rmtree(runtime_dir() / prefix, ignore_errors=True)
        said = "\n".join(s for s in run.stderr.splitlines() if not s.startswith("EAL: "))
        if not report.is_file():
            raise LoadFailed(f"tokd-load-dpdk ended with {run.returncode}: {said}\n{self.tail()}")
        return run.returncode, json.loads(report.read_text()), said
