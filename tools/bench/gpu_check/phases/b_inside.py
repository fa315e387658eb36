# SPDX-License-Identifier: BSD-3-Clause
"""Inside the kernel: the end of each stage of a slot, and a profiler's counters."""

from __future__ import annotations

import csv
import io
import shutil
from pathlib import Path

from ..build import STAGES
from ..parts import part
from ..run import NotRun, Run
from .a_times import KINDS

TOOLS = ("/usr/local/cuda/bin", "/opt/cuda/bin", "/usr/local/cuda/compute-sanitizer")
NCU = Path("/opt/nvidia/nsight-compute")  # a folder for each version
METRICS = (
    *("gpu__time_duration.sum", "sm__cycles_elapsed.max", "smsp__inst_executed.sum"),
    *("dram__bytes_read.sum", "dram__bytes_write.sum", "lts__t_sectors_op_read.sum"),
    *("lts__t_sectors_op_write.sum", "sm__warps_active.avg.pct_of_peak_sustained_active"),
    *("l1tex__data_bank_conflicts_pipe_lsu.sum", "launch__registers_per_thread"),
)


def tool(name: str) -> str | None:
    """Path of one of CUDA's tools; None if missing."""
    places = [*TOOLS, *(str(folder) for folder in sorted(NCU.glob("*"), reverse=True))]
    return shutil.which(name) or shutil.which(name, path=":".join(places))


@part("B", 80, "stages inside the kernel", 60)
def stages(run: Run) -> None:
    """From a separate build: the product's kernel takes only the first and the last time stamp."""
    for kind in ("word", "bert"):
        for tokens in (8, 2048):
            more = {} if run.on_gpu else {"n_ids": 1000, "n": 20}
            said = run.measured(
                "requests", "host", STAGES, kind=KINDS[kind], tokens=tokens, **{"n": 2000, **more}
            )
            names = {
                each["name"]: f"{each['name']}, {kind}, {tokens} ids" for each in said["series"]
            }
            run.timed(said, names, "build with stamps of each stage")


def rows_of(output: str) -> list[list[str]]:
    """ncu's table without its other output."""
    lines = [line for line in output.splitlines() if line.startswith('"')]
    return list(csv.reader(io.StringIO("\n".join(lines))))


@part("B", 90, "a profiler's counters", 120)
def counters(run: Run) -> None:
    """A consumer that embeds 64 slots of 2048 ids and ends, alone under a profiler."""
    if not run.on_gpu:
        raise NotRun("needs a GPU")
    ncu = tool("ncu")
    if ncu is None:
        raise NotRun("needs ncu, which was not found")
    command = [ncu, "--csv", "--page", "raw", "--clock-control", "none", "--cache-control", "none"]
    command += ["--replay-mode", "application", "--kernel-name", "tokg_consume"]
    command += ["--metrics", ",".join(METRICS), str(run.build.program("gpu_measure"))]
    for kind in ("word", "bert"):
        more = ["drain", run.device, "slots=64", f"kind={KINDS[kind]}", f"seed={run.seed}"]
        status, output, errors = run.call([*command, *more], 55, TOKD_GPU_RING="host")
        table = rows_of(output)
        if status != 0 or len(table) < 3:
            raise NotRun(
                f"ncu ended with {status}: {output.strip()[-800:]} {errors.strip()[-400:]}"
            )
        for name, unit, value in zip(*table[:3]):
            if name in METRICS:
                run.fact(f"{kind}: {name}", f"{value} {unit}".strip())
