# SPDX-License-Identifier: BSD-3-Clause
"""tools/gpu-check: exactness, memory errors and times of the kernel, on a GPU.

    tools/gpu-check [--device cuda:0] [--requests 2000] [--no-sanitizer] [--json FILE]

Builds, then: the suite tests/gpu on the device (rows against PyTorch, else against NumPy);
compute-sanitizer's memcheck and racecheck over one embedding; medians and 99th percentiles of a look
at 4,096 slots, of an embedding of 2048 x 768 fp32, and from posting to reading done.

Exit status: 0 all that was run is right, 1 something is not, 77 no GPU: nothing was run.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("TOKD_BUILD", ROOT / "build"))
NO_GPU = 77
GOALS = {"embed_2048x768_fp32": 10.0}  # microseconds, median, on a GPU like the H100
NOT_HERE = "a NIC's writes into GPU memory: this posts from the host"


def ran(command: list[str | Path], limit_s: int = 540, **env: str) -> tuple[int, str]:
    """Exit status and all output; 124 when it took too long."""
    try:
        done = subprocess.run(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=limit_s,
            env=os.environ | env,
            check=False,
        )
    except subprocess.TimeoutExpired as late:
        return 124, f"{late.stdout or ''}\nnot finished after {limit_s} s"
    return done.returncode, done.stdout


def probe(device: str) -> str | None:
    """Why there is no such GPU; None: there is."""
    program = BUILD / "tests/gpu_device/gpu_measure"
    status, output = ran([program, device, "1"], 120)
    if status == 0:
        return None
    return output.strip().removeprefix("no GPU: ") or f"{program} ended with {status}"


def exactness(device: str) -> dict[str, Any]:
    """The suite tests/gpu with its helper on the device."""
    python = ROOT / "build/venv/bin/python"
    with_torch, _ = ran([python, "-c", "import torch"])
    command = [python, "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", ROOT / "tests/gpu"]
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
    status, output = ran([*command, ROOT / "tests/gpu"], **env)
    return {"right": status == 0, "output": output.strip()}


def times(device: str, requests: int) -> dict[str, Any]:
    """What gpu_measure prints, with the goals that there are."""
    status, output = ran([BUILD / "tests/gpu_device/gpu_measure", device, str(requests)])
    if status != 0:
        return {"right": False, "output": output.strip()}
    return {"right": True, "goals_us": GOALS} | json.loads(output)


def checked(device: str, requests: int, with_sanitizer: bool) -> dict[str, Any]:
    """Everything, as one report; `not_run` says what was not, and why."""
    report: dict[str, Any] = {"device": device, "not_run": [NOT_HERE]}
    why = probe(device)
    if why is not None:
        return report | {"gpu": False, "not_run": [f"everything: {why}", NOT_HERE]}
    _, name = ran(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"])
    report |= {"gpu": True, "name": name.strip(), "exactness": exactness(device)}
    for tool in ("memcheck", "racecheck"):
        if with_sanitizer:
            report[tool] = sanitized(device, tool)
        else:
            report[tool] = {"not_run": "--no-sanitizer"}
        if "not_run" in report[tool]:
            report["not_run"].append(f"{tool}: {report[tool]['not_run']}")
    return report | {"times": times(device, requests)}


def wrong(report: dict[str, Any]) -> list[str]:
    """Names of what was run and is not right."""
    parts = ((name, report.get(name, {})) for name in ("exactness", "memcheck", "racecheck", "times"))
    return [name for name, part in parts if part.get("right") is False]


def say(report: dict[str, Any]) -> None:
    """The report for a person."""
    print(f"gpu-check: {report['name']}")
    print(f"rows compared with {report['exactness']['compared_with']}")
    for name in wrong(report):
        print(f"\n{name} is WRONG:\n{report[name]['output']}")
    for name, numbers in report["times"].items():
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
    if not report["gpu"]:
        print(f"gpu-check: no GPU: not run: {report['not_run'][0].removeprefix('everything: ')}")
        return NO_GPU
    say(report)
    return 1 if wrong(report) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
