# SPDX-License-Identifier: BSD-3-Clause
"""tools/gpu-check: exactness, memory errors and times of the kernel, on a GPU.

    tools/gpu-check [--device cuda:0] [--requests 2000] [--no-sanitizer] [--json FILE]

Builds, then, with the ring in GPU memory and in the host's: the suite tests/gpu on the device (rows
against PyTorch, else against NumPy; tokd-gpu and its holders); the tests in C of the consumer, its
restarts, and slots that break the rules. Then compute-sanitizer's memcheck and racecheck over both
kinds, and medians and 99th percentiles of single looks at 4,096 slots, of an embedding of 2048 x 768
fp32, and, with the ring in host memory, from posting to reading done.

Exit status: 0 all that was run is right, 1 something is not (also: there is a GPU, and no kernel in the
build), 77 no GPU: nothing was run. A goal that is missed is said, and is no failure: goals are those of an H100.
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
BUILD = Path(os.environ.get("TOKD_BUILD", ROOT / "build")).resolve()
NO_GPU = 77
GOALS = {  # microseconds, median, on a GPU like the H100
    "scan_4096_slots": 3.0,
    "embed_2048x768_fp32": 10.0,
    "posted_to_done_read": 20.0,
}
RINGS = ("gpu", "host")
C_TESTS = ("consumer", "life", "hostile")
C_LIMIT_S = 500
FEW_LATE = ["--maxfail=3"]  # each may take 130 s, tests/gpu's limit: pytest ends before its own, 540 s
INT_GRACE_S = 10  # for pytest to end its helpers when it is told to
SANITIZED_WORKERS = "8"  # hundreds of blocks that wait are hours under a sanitizer
SANITIZED_ROUNDS = "200"  # of random slots, instead of thousands
RACECHECKED = ("consumer",)  # what is shared by threads of a block, every test has alike
NO_HOST_RING = "--ring host: it cannot"  # device cuda, of a GPU without that
NO_KERNEL = "built without CUDA"  # device_no_cuda.c
NOT_HERE = "a NIC's writes, and --sink cuda's stores, into GPU memory: this posts from the host"


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
            cwd=ROOT,
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


def gpu_here() -> bool:
    """Does the machine look as if it had a GPU of NVIDIA, whatever the build can do with it?"""
    return Path("/dev/nvidia0").exists() or shutil.which("nvidia-smi") is not None


def built() -> tuple[int, str]:
    """The build brought up to date. Where there is a GPU nvcc is looked for anew."""
    if gpu_here():
        status, output = ran(["meson", "setup", "--reconfigure", BUILD], 600)
        if status != 0:
            return status, output
    return ran(["ninja", "-C", BUILD], 3000)


def measured_once(device: str, ring: str) -> tuple[int, str]:
    program = BUILD / "tests/gpu_device/gpu_measure"
    status, output = ran([program, device, "1"], 140, TOKD_GPU_LIMIT_S="120", TOKD_GPU_RING=ring)
    return status, output.strip()


def probe(device: str) -> tuple[bool | None, str]:
    """Is there such a GPU? Not without a reason given by the program; None: it cannot be told."""
    status, output = measured_once(device, "gpu")
    if status == NO_GPU and NO_KERNEL in output and gpu_here():
        return None, "this machine has a GPU, and this build no kernel: put nvcc (CUDA 12 or 13) on the PATH"
    if status == NO_GPU and output.startswith("no GPU: "):
        return False, output.removeprefix("no GPU: ")
    return (True, "") if status == 0 else (None, f"{output}\ngpu_measure ended with {status}")


def no_host_ring(device: str) -> str | None:
    """Why this GPU cannot have its ring in the host's memory. None: it can, or something else is wrong,
    which its parts will say."""
    status, output = measured_once(device, "host")
    why = [line.strip() for line in output.splitlines() if NO_HOST_RING in line]
    return why[0] if status != 0 and why else None


def judged(status: int, output: str) -> dict[str, Any]:
    """A part of the report: right or not, and what the tests left out."""
    lines = (line.strip() for line in output.splitlines())
    marks = ("# skipped: ", "SKIPPED ")  # bench.c's, pytest's
    skipped = [line.lstrip("# ") for line in lines if line.startswith(marks)]
    return {"right": status == 0, "skipped": skipped, "output": output.strip()}


def suite(device: str, ring: str, *arguments: str, **env: str) -> dict[str, Any]:
    """The suite tests/gpu with its programs on the device."""
    command = [ROOT / "build/venv/bin/python", "-m", "pytest", "-q", "-rs", *FEW_LATE]
    command += ["-p", "no:cacheprovider", *arguments, ROOT / "tests/gpu"]
    env |= {"TOKD_GPU_DEVICE": device, "TOKD_GPU_RING": ring, "TOKD_BUILD": str(BUILD)}
    return judged(*ran(command, **env))


def has_torch() -> bool:
    return ran([ROOT / "build/venv/bin/python", "-c", "import torch"])[0] == 0


def c_test(device: str, ring: str, name: str, wrapper: tuple[str, ...] = (), **env: str) -> dict[str, Any]:
    """One of tests/gpu_device on the device."""
    command = [*wrapper, BUILD / f"tests/gpu_device/test_gpu_device_{name}"]
    env |= {"TOKD_GPU_DEVICE": device, "TOKD_GPU_RING": ring, "TOKD_GPU_LIMIT_S": str(C_LIMIT_S)}
    return judged(*ran(command, C_LIMIT_S + 20, **env))


def sanitized(device: str, tool: str, rings: tuple[str, ...] = RINGS) -> dict[str, dict[str, Any]]:
    """One of compute-sanitizer's tools over embeddings of several slots, and over the C tests."""
    program = shutil.which("compute-sanitizer", path=f"{os.environ['PATH']}:/usr/local/cuda/bin")
    if program is None:
        return {tool: {"not_run": "compute-sanitizer is not on the PATH"}}
    wrapper = (program, "--tool", tool, "--error-exitcode", "9")
    env = {"TOKD_GPU_WORKERS": SANITIZED_WORKERS, "TOKD_GPU_ROUNDS": SANITIZED_ROUNDS}
    parts = {tool: suite(device, "gpu", "-k", "several_slots", TOKD_GPU_WRAPPER=" ".join(wrapper), **env)}
    for name in C_TESTS if tool == "memcheck" else RACECHECKED:
        parts[f"{tool} {name}"] = c_test(device, "gpu", name, wrapper, **env)
    if "host" in rings:
        parts[f"{tool} consumer, ring host"] = c_test(device, "host", "consumer", wrapper, **env)
    return parts


def times(device: str, ring: str, requests: int) -> dict[str, Any]:
    """What gpu_measure prints."""
    limit_s = 120 + requests // 10
    command = [BUILD / "tests/gpu_device/gpu_measure", device, str(requests)]
    status, output = ran(command, limit_s + 20, TOKD_GPU_LIMIT_S=str(limit_s), TOKD_GPU_RING=ring)
    if status != 0:
        return judged(status, f"{output.strip()}\ngpu_measure ended with {status}")
    return {"right": True, "numbers": json.loads(output)}


def gpu_name() -> str:
    """Name and driver of the machine's GPUs, as nvidia-smi has them."""
    status, output = ran(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"], 60)
    return output.strip() if status == 0 else f"a GPU of unknown name ({output.strip()})"


def every_part(device: str, requests: int, with_sanitizer: bool) -> dict[str, dict[str, Any]]:
    """All that is run, by name."""
    parts: dict[str, dict[str, Any]] = {}
    rings, torch, why = RINGS, has_torch(), no_host_ring(device)
    reference = "PyTorch and NumPy" if torch else "NumPy"
    if why is not None:
        rings = ("gpu",)
        parts["everything with --ring host"] = {"not_run": why}
    if not torch:
        parts["exactness against PyTorch"] = {"not_run": "it is not in build/venv: compared with NumPy alone"}
    for ring in rings:
        parts[f"exactness, ring {ring}"] = suite(device, ring) | {"compared_with": reference}
        for name in C_TESTS:
            parts[f"{name}, ring {ring}"] = c_test(device, ring, name)
    for tool in ("memcheck", "racecheck"):
        parts |= sanitized(device, tool, rings) if with_sanitizer else {tool: {"not_run": "--no-sanitizer"}}
    for ring in rings:
        parts[f"times, ring {ring}"] = times(device, ring, requests)
    return parts


def not_run(parts: dict[str, dict[str, Any]]) -> list[str]:
    """What was not, each with its reason."""
    whole = [f"{name}: {part['not_run']}" for name, part in parts.items() if "not_run" in part]
    return whole + [f"{name}: {why}" for name, part in parts.items() for why in part.get("skipped", [])]


def checked(device: str, requests: int, with_sanitizer: bool) -> dict[str, Any]:
    """Everything, as one report; `not_run` says what was not, and why."""
    report: dict[str, Any] = {"device": device, "goals_us": GOALS, "parts": {}}
    report["gpu"], why = probe(device)
    if report["gpu"] is False:
        return report | {"not_run": [f"everything: {why}", NOT_HERE]}
    if report["gpu"] is None:
        failed = {"probe": {"right": False, "output": why}}
        return report | {"parts": failed, "not_run": ["everything: the probe failed", NOT_HERE]}
    parts = every_part(device, requests, with_sanitizer)
    return report | {"name": gpu_name(), "parts": parts, "not_run": [*not_run(parts), NOT_HERE]}


def wrong(report: dict[str, Any]) -> list[str]:
    """Names of what was run and is not right."""
    return [name for name, part in report["parts"].items() if part.get("right") is False]


def goal(name: str, median: float) -> str:
    if name not in GOALS:
        return ""
    return f"  (goal {GOALS[name]} us: {'met' if median <= GOALS[name] else 'MISSED'})"


def say(report: dict[str, Any]) -> None:
    """The report for a person."""
    print(f"gpu-check: {report.get('name', 'a GPU that cannot be told')}")
    for name, part in report["parts"].items():
        if part.get("right"):
            against = f", rows compared with {part['compared_with']}" if "compared_with" in part else ""
            print(f"{name}: right{against}")
    for name in wrong(report):
        print(f"\n{name} is WRONG:\n{report['parts'][name]['output']}")
    for part_name, part in report["parts"].items():
        for name, numbers in part.get("numbers", {}).items():
            if isinstance(numbers, dict):
                line = ", ".join(f"{key} {n}" for key, n in numbers.items())
                print(f"{part_name}: {name} us: {line}{goal(name, numbers['p50'])}")
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
    status, output = built()
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
