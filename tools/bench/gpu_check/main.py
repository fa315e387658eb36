# SPDX-License-Identifier: BSD-3-Clause
"""Check on a GPU that the kernel of lib/gpu_sink is right, and measure how fast it is.

In this order, whichever are asked for:

  A  properties of GPU and driver; every kernel against a reference; first times: polling the ring,
     embedding, posted to done with the ring in host and in GPU memory (at most 4 minutes)
  E  graphs that the GPU launches; ids made by an engine on the device and by one that the host
     drives (at most 4.5 minutes)
  D  text to ids by a block of threads: ids against those of libtok; times (at most 8 minutes)
  C  with other processes: subscribers, PyTorch, MPS, kills; compute-sanitizer (at most 8 minutes)
  B  sweeps, stages inside the kernel, a profiler's counters (at most 8 minutes)

Needs nvcc, gcc, g++ and Python; NumPy to check exactness. Uses PyTorch, ncu, compute-sanitizer and
MPS where they are installed. Results: DIR/gpu-check.json and DIR/gpu-check.md, rewritten after each
part. Those of an earlier run are kept, with its time in their names.

Exit code: 0 everything that ran is right; 1 something is wrong or hung, or the build failed; 2 a
bad option; 77 no GPU, nothing ran (--build-only: 0, GPU or not).
"""

from __future__ import annotations

import argparse
import os
import re
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from . import parts, report
from .build import Build, BuildError, default_folder, programs_folder
from .run import NO_GPU, PHASE_OVER, Run, environment, python

STARTED = "%Y-%m-%d %H:%M:%S UTC"
# How long the answer to ASK is waited for, and what is said then.
ASK_S = ((5, "it is waited for, up to 60 s"), (55, "see nvidia-smi and dmesg; going on without"))
# Run before anything is built, in a process of its own: has the driver a GPU? A driver that fails
# is an error, not "no GPU".
ASK = """
import ctypes, sys
try:
    cuda = ctypes.CDLL("libcuda.so.1")
except OSError as why:
    sys.exit(f"77 no NVIDIA driver: {why}")
n = ctypes.c_int()
rc = cuda.cuInit(0) or cuda.cuDeviceGetCount(ctypes.byref(n))
if rc == 100 or (rc == 0 and n.value == 0):
    sys.exit("77 the driver has no GPU")
if rc == 34:
    sys.exit("77 libcuda is a stub: there is no driver")
sys.exit(f"the driver fails: cuInit: error {rc}: see nvidia-smi and dmesg" if rc else 0)
"""


def driver_said() -> str:
    """What ASK says. If the driver is slow, that is said; it may not even be killed."""
    process = subprocess.Popen(
        [python(), "-c", ASK],
        stderr=subprocess.PIPE,
        env=environment(),
        text=True,
        errors="replace",
    )
    waited = 0.0
    for limit_s, then in ASK_S:
        try:
            return process.communicate(timeout=limit_s)[1].strip()
        except subprocess.TimeoutExpired:
            waited += limit_s
            print(f"gpu-check: the driver has not answered for {waited:g} s: {then}", flush=True)
    process.kill()
    return ""


def no_gpu() -> str | None:
    """Why there is no GPU. None: there is one, or its driver fails, which the parts then report."""
    said = driver_said()
    if said.startswith("77 "):
        return said[3:]
    if said:
        print(f"gpu-check: {said}", file=sys.stderr)
    return None


def kept_awake(device: str) -> int | None:
    """The GPU's device file, kept open: otherwise the driver may restart the GPU for each
    program."""
    try:
        return os.open(f"/dev/nvidia{device[5:]}", os.O_RDWR)
    except OSError:
        return None


def options(arguments: list[str], phases: list[str]) -> argparse.Namespace:
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser("gpu-check", description=__doc__, formatter_class=form)
    parser.add_argument("phase", nargs="*", metavar="PHASE", help=f"{', '.join(phases)} [all]")
    parser.add_argument("--out", type=Path, metavar="DIR", help="result folder [build/gpu-check]")
    parser.add_argument("--build-only", action="store_true", help="build, run nothing")
    parser.add_argument("--seed", type=int, metavar="N", help="of tables and ids [random]")
    parser.add_argument(
        "--device",
        default="cuda:0",
        metavar="cuda:N",
        help="or cpu: threads run the same logic [cuda:0]",
    )
    chosen = parser.parse_args(arguments)
    unknown = [name for name in chosen.phase if name not in phases]
    if unknown:
        parser.error(f"phase {unknown[0]}: give {', '.join(phases)}")
    if not re.fullmatch("cpu|cuda:[0-9]{1,3}", chosen.device):
        parser.error(f"--device {chosen.device}: give cuda:N or cpu")
    if chosen.seed is not None and not 0 <= chosen.seed < 1 << 31:
        parser.error(f"--seed {chosen.seed}: give 0 to {(1 << 31) - 1}")
    return chosen


def show(result: dict[str, Any]) -> None:
    """Print the result of a part."""
    why = f": {result['why']}" if result["why"] else ""
    print(
        f"{result['phase']}: {result['title']}: {result['state']}{why} ({result['seconds']:.1f} s)"
    )
    for figure in result["figures"]:
        if "p50" in figure:
            numbers = ", ".join(f"{k} {figure[k]}" for k in ("n", "p50", "p90", "p99", "max"))
            print(f"    {figure['what']}, ring {figure['ring']}, us: {numbers} ({figure['clock']})")
        else:
            print(f"    {figure['what']}: {report.number(figure['value'])} {figure['unit']}")
    for text in result["skipped"]:
        print(f"    not run: {text}")
    for text in result["wrong"]:
        print(f"    WRONG: {text}")
    sys.stdout.flush()


def interrupted(*_: Any) -> None:
    raise KeyboardInterrupt


class Check:
    """The selected parts, and the report so far."""

    def __init__(
        self, chosen: argparse.Namespace, said: dict[str, Any], work: Path, build: Build
    ) -> None:
        self.out, self.report = chosen.out, said
        self.awake = kept_awake(chosen.device)
        self.run_of = Run(build, chosen.device, said["seed"], work)

    def write(self, state: str) -> None:
        self.report["state"] = state
        report.write(self.out, self.report)

    def one(self, each: parts.Part, left_s: float) -> None:
        """Runs a part. The report says that it is running."""
        at = len(self.report["parts"])
        self.report["parts"].append(parts.new_result(each, "running"))
        self.write(f"Running {each.phase}: {each.title}")
        if left_s < 1:
            result = parts.new_result(each, "not run")
            result["why"] = PHASE_OVER
        else:
            result = parts.run_part(each, self.run_of, min(each.limit_s, left_s))
        self.report["parts"][at] = result
        self.write("Between two parts")
        show(result)

    def all(self, chosen: list[parts.Part]) -> None:
        phase, until = "", 0.0
        for each in chosen:
            if each.phase != phase:
                phase, until = each.phase, time.monotonic() + parts.phase_limit_s(each.phase)
            self.one(each, until - time.monotonic())
        self.write("Complete")


def failed(said: dict[str, Any]) -> bool:
    return any(result["state"] == "WRONG" or result["hung"] for result in said["parts"])


def built(folder: Path, *, fall_back: bool) -> str | None:
    """What the build did; None: it failed, and an error was printed."""
    began = time.monotonic()
    try:
        done = Build(folder).make(fall_back=fall_back)
    except (BuildError, OSError) as wrong:
        print(f"gpu-check: the build failed: {wrong}", file=sys.stderr)
        return None
    print(f"build: {done} ({time.monotonic() - began:.1f} s)", flush=True)
    return done


def main(arguments: list[str]) -> int:
    all_parts = parts.load()
    chosen = options(arguments, sorted({each.phase for each in all_parts}))
    folder = default_folder()
    if not chosen.build_only and chosen.device != "cpu":
        why = no_gpu()
        if why is not None:
            print(f"gpu-check: no GPU: not run: {why}")
            return NO_GPU
    chosen.out = chosen.out or folder
    try:
        if not chosen.build_only:
            report.begin(chosen.out)
    except OSError as wrong:
        print(f"gpu-check: cannot write results: {wrong}: give another --out", file=sys.stderr)
        return 2
    programs = programs_folder(folder)
    done = built(programs, fall_back=not chosen.build_only)
    if done is None:
        return 1
    if chosen.build_only:
        return 0
    said = {
        "state": "Starting",
        "device": chosen.device,
        "started": time.strftime(STARTED, time.gmtime()),
        "seed": chosen.seed if chosen.seed is not None else secrets.randbits(31),
        "command": parts.command_line(arguments),
        "build": done,
        "parts": [],
    }
    work = Path(tempfile.mkdtemp(prefix="gpu-check."))
    check = Check(chosen, said, work / "part", Build(programs))
    signal.signal(signal.SIGTERM, interrupted)
    wanted = [each for each in all_parts if not chosen.phase or each.phase in chosen.phase]
    limits = {each.phase: parts.phase_limit_s(each.phase) for each in wanted}
    budget = ", ".join(f"{phase} {limit_s} s" for phase, limit_s in limits.items())
    print(f"seed {said['seed']}; results: {chosen.out}/gpu-check.md; at most {budget}", flush=True)
    if chosen.device == "cpu":
        print(report.CPU)
    try:
        check.all(wanted)
    except KeyboardInterrupt:
        check.write("Interrupted")
        return 1
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return 1 if failed(said) else 0
