# SPDX-License-Identifier: BSD-3-Clause
"""Properties of GPU, driver and machine, and which of them work."""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path

from ..build import driver_program
from ..parts import part
from ..run import NotRun, Run

SMI = "name,driver_version,pstate,clocks.sm,clocks.mem,clocks.max.sm,clocks.max.mem,power.limit"
SMI_MORE = (
    "compute_mode,mig.mode.current,persistence_mode,pcie.link.gen.current,pcie.link.width.current"
)


def smi(run: Run) -> None:
    status, output, errors = run.call(
        [
            driver_program("nvidia-smi") or "nvidia-smi",
            f"--query-gpu={SMI},{SMI_MORE}",
            "--format=csv,noheader",
        ],
        30,
    )
    if status != 0:
        run.skipped(f"nvidia-smi ended with {status}: {errors.strip()}")
        return
    lines = output.strip().splitlines()
    values = lines[min(int(run.device[5:]), len(lines) - 1)].split(", ")
    for name, value in zip(f"{SMI},{SMI_MORE}".split(","), values):
        run.fact(f"nvidia-smi {name}", value)


def mps() -> str:
    """Does an MPS server answer where a client would look for it?"""
    if driver_program("nvidia-cuda-mps-control") is None:
        return "nvidia-cuda-mps-control is not installed"
    pipe = Path(os.environ.get("CUDA_MPS_PIPE_DIRECTORY", "/tmp/nvidia-mps")) / "control"
    if not pipe.exists():
        return "installed, not running"
    why = ""
    for kind in (socket.SOCK_SEQPACKET, socket.SOCK_STREAM):
        with socket.socket(socket.AF_UNIX, kind) as s:
            try:
                s.connect(str(pipe))
            except OSError as refused:
                why = f"installed, {pipe}: {refused.strerror}"
            else:
                return "running"
    return why


@part("A", 10, "properties of GPU and driver", 40)
def promises(run: Run) -> None:
    if not run.on_gpu:
        raise NotRun("needs a GPU")
    smi(run)
    run.fact("MPS", mps())
    run.fact("operating system", f"{os.uname().sysname} {os.uname().release}")
    module = Path("/proc/driver/nvidia/version")
    run.fact(
        "NVIDIA module", module.read_text().splitlines()[0] if module.exists() else "not to be seen"
    )
    status, output, errors = run.call([run.build.program("gpu_promises"), run.device[5:]], 30)
    if status != 0:
        run.failed("gpu_promises", status, output, errors)
    for name, value in json.loads(output).items():
        run.fact(name, value)
