# SPDX-License-Identifier: BSD-3-Clause
"""tools/gpu-check: exactness, memory errors and times of the kernel, on a GPU.

    tools/gpu-check [--device cuda:0] [--requests 2000] [--no-sanitizer] [--json FILE]

Builds, then: the suite tests/gpu on the device (rows against PyTorch, else against NumPy);
compute-sanitizer's memcheck and racecheck over one embedding; medians and 99th percentiles of an
embedding of 2048 x 768 fp32, from posting to reading done, and of windows of 256 looks at 4,096 slots.

Exit status: 0 all that was run is right, 1 something is not, 77 no GPU: nothing was run.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("TOKD_BUILD", ROOT / "build"))
NO_GPU = 77
GOALS = {"embed_2048x768_fp32": 10.0}  # microseconds, median, on a GPU like the H100
FEW_LATE = ["--maxfail=3"]  # each may take 130 s, tests/gpu's limit: pytest ends before its own, 540 s
INT_GRACE_S = 10  # for pytest to end its helpers when it is told to
SANITIZED_WORKERS = "8"  # hundreds of blocks that wait are hours under a sanitizer
SINGLE_SCANS = "p99 of single looks at 4,096 slots: of means over windows of 256 alone"
MAPPED_RING = "posted_to_done_read: the ring is in GPU memory and not mapped: the driver posts"
NOT_HERE = "a NIC's writes into GPU memory: this posts from the host"


def ended(process: subprocess.Popen[str]) -> str:
    """All output of a process that took too long, after it and its group are gone."""
    for with_what, grace_s in ((signal.SIGINT, INT_GRACE_S), (signal.SIGKILL, 20)):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, with_what)
        with contextlib.suppress(subprocess.TimeoutExpired):
            return process.communicate(timeout=grace_s)[0]
    return ""


def ran(command: list[str | Path], limit_s: float = 540, **env: str) -> tuple[int, str]:
    """Exit status and all output; 124 when it took too long, 127 when it cannot be started."""
    try:
        process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            env=os.environ | env,
            start_new_session=True,
        )
    except OSError as wrong_start:
        return 127, f"{command[0]}: {wrong_start.strerror}"
    try:
        output, _ = process.communicate(timeout=limit_s)
    except subprocess.TimeoutExpired:
        return 124, f"{ended(process)}\nnot finished after {limit_s} s"
    except KeyboardInterrupt:
        ended(process)
        raise
    return process.returncode, output


def probe(device: str) -> tuple[bool | None, str]:
    """Is there such a GPU? Not without a reason given by the program; None: it cannot be told."""
    program = BUILD / "tests/gpu_device/gpu_measure"
    status, output = ran([program, device, "1"], 140, TOKD_GPU_LIMIT_S="120")
    output = output.strip()
    if status == NO_GPU and output.startswith("no GPU: "):
        return False, output.removeprefix("no GPU: ")
    return (True, "") if status == 0 else (None, f"{output}\n{program} ended with {status}")


def exactness(device: str) -> dict[str, Any]:
    """The suite tests/gpu with its helper on the device."""
    python = ROOT / "build/venv/bin/python"
    with_torch, _ = ran([python, "-c", "import torch"])
    command = [python, "-m", "pytest", "-q", "-rs", *FEW_LATE, "-p", "no:cacheprovider"]
    command.append(ROOT / "tests/gpu")
    status, output = ran(command, TOKD_GPU_DEVICE=device, TOKD_BUILD=str(BUILD))
    reference = "PyTorch and NumPy" if with_torch == 0 else "NumPy (PyTorch is not in build/venv)"
    return {"right": status == 0, "compared_with": reference, "output": output.strip()}


def sanitized(device: str, tool: str) -> dict[str, Any]:
    """One of compute-sanitizer's tools over embeddings of several slots, of all kinds."""
    program = shutil.which("compute-sanitizer", path=f"{os.environ['PATH']}:/usr/local/cuda/bin")
    if program is None:
        return {"not_run": "compute-sanitizer is not on the PATH"}
    python = ROOT / "build/venv/bin/python"
    command = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "several_slots"]
    wrapper = f"{program} --tool {tool} --error-exitcode 9"
    env = {"TOKD_GPU_DEVICE": device, "TOKD_BUILD": str(BUILD), "TOKD_GPU_WRAPPER": wrapper}
    env["TOKD_GPU_WORKERS"] = SANITIZED_WORKERS
    status, output = ran([*command, ROOT / "tests/gpu"], **env)
    return {"right": status == 0, "output": output.strip()}


def times(device: str, requests: int) -> dict[str, Any]:
    """What gpu_measure prints, with the goals that there are."""
    limit_s = 120 + requests // 10
    command = [BUILD / "tests/gpu_device/gpu_measure", device, str(requests)]
    status, output = ran(command, limit_s + 20, TOKD_GPU_LIMIT_S=str(limit_s))
    if status != 0:
        return {"right": False, "output": f"{output.strip()}\ngpu_measure ended with {status}"}
    return {"right": True, "goals_us": GOALS} | json.loads(output)


def gpu_name() -> str:
    """Name and driver of the machine's GPUs, as nvidia-smi has them."""
    status, output = ran(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"], 60)
    return output.strip() if status == 0 else f"a GPU of unknown name ({output.strip()})"


def checked(device: str, requests: int, with_sanitizer: bool) -> dict[str, Any]:
    """Everything, as one report; `not_run` says what was not, and why."""
    report: dict[str, Any] = {"device": device, "not_run": [NOT_HERE]}
    report["gpu"], why = probe(device)
    if report["gpu"] is False:
        return report | {"not_run": [f"everything: {why}", NOT_HERE]}
    if report["gpu"] is None:
        failed = {"right": False, "output": why}
        return report | {"probe": failed, "not_run": ["everything: the probe failed", NOT_HERE]}
    report |= {"name": gpu_name(), "exactness": exactness(device)}
    for tool in ("memcheck", "racecheck"):
        if with_sanitizer:
            report[tool] = sanitized(device, tool)
        else:
            report[tool] = {"not_run": "--no-sanitizer"}
        if "not_run" in report[tool]:
            report["not_run"].append(f"{tool}: {report[tool]['not_run']}")
    report["times"] = times(device, requests)
    report["not_run"].append(SINGLE_SCANS)
    if "posted_to_done_read" not in report["times"]:
        report["not_run"].append(MAPPED_RING)
    return report


def wrong(report: dict[str, Any]) -> list[str]:
    """Names of what was run and is not right."""
    names = ("probe", "exactness", "memcheck", "racecheck", "times")
    parts = ((name, report.get(name, {})) for name in names)
    return [name for name, part in parts if part.get("right") is False]


def say(report: dict[str, Any]) -> None:
    """The report for a person."""
    print(f"gpu-check: {report.get('name', 'a GPU that cannot be told')}")
    if "exactness" in report:
        print(f"rows compared with {report['exactness']['compared_with']}")
    for name in wrong(report):
        print(f"\n{name} is WRONG:\n{report[name]['output']}")
    for name, numbers in report.get("times", {}).items():
        if isinstance(numbers, dict) and name != "goals_us":
            goal = f"  (goal {GOALS[name]} us)" if name in GOALS else ""
            line = ", ".join(f"{key} {n}" for key, n in numbers.items())
            print(f"{name:24} us: {line}{goal}")
    for text in report["not_run"]:
        print(f"not run: {text}")


def options(arguments: list[str]) -> argparse.Namespace:
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser("gpu-check", description=__doc__, formatter_class=form)
    parser.add_argument("--device", default="cuda:0", metavar="cuda:N")
    parser.add_argument("--requests", type=int, default=2000, metavar="N", help="1000 or more")
    parser.add_argument("--no-sanitizer", action="store_true", help="leave compute-sanitizer out")
    parser.add_argument("--json", type=Path, metavar="FILE", help="the report for a program")
    chosen = parser.parse_args(arguments)
    if chosen.requests < 1000:
        parser.error(f"--requests {chosen.requests}: at least 1000, or a p99 means nothing")
    return chosen


def main(arguments: list[str]) -> int:
    chosen = options(arguments)
    status, output = ran(["ninja", "-C", BUILD], 3000)
    if status != 0:
        print(f"{output}\ngpu-check: the build failed: run tools/setup", file=sys.stderr)
        return 1
    report = checked(chosen.device, chosen.requests, not chosen.no_sanitizer)
    if chosen.json:
        chosen.json.write_text(json.dumps(report, indent=1) + "\n")
    if report["gpu"] is False:
        print(f"gpu-check: no GPU: not run: {report['not_run'][0].removeprefix('everything: ')}")
        return NO_GPU
    say(report)
    return 1 if wrong(report) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
