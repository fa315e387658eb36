# SPDX-License-Identifier: BSD-3-Clause
"""Describes the machine that figures come from.

What is absent is stated as `none`, with what was looked for.
"""

import hashlib
import os
import platform
import re
import shutil
import subprocess
from importlib import metadata
from pathlib import Path
from typing import Any

from bench.programs import ROOT

CPU = Path("/sys/devices/system/cpu")
RDMA = Path("/sys/class/infiniband")
# A resumed sweep must find these unchanged.
LASTING = ("cpu", "kernel", "command_line", "revision", "versions", "isolation")
PACKAGES = (
    *("tokenizers", "tiktoken", "sentencepiece", "gigatoken", "fastokens", "nanotoken"),
    *("quicktok-v1", "bpe-openai", "regex", "uvloop", "numpy", "hdrhistogram", "dpdk_tokd"),
)
DEBIAN = ("dpdk", "gcc", "stress-ng")


def _read(path: Path | str, otherwise: str = "") -> str:
    try:
        return Path(path).read_text(errors="replace").strip()
    except OSError:
        return otherwise


def _output(*command: str) -> str:
    """Standard output of a program; empty if it is not installed or fails."""
    if shutil.which(command[0]) is None:
        return ""
    try:
        run = subprocess.run(command, capture_output=True, text=True, check=False, timeout=20)
    except subprocess.TimeoutExpired:
        return ""
    return run.stdout.strip() if run.returncode == 0 else ""


def cpu() -> dict[str, Any]:
    info: dict[str, str] = {}
    for line in _read("/proc/cpuinfo").splitlines():
        key, _, value = line.partition(":")
        info.setdefault(key.strip(), value.strip())
    flags = info.get("flags", "").split()
    return {
        "model": info.get("model name", platform.machine()),
        "microcode": info.get("microcode", "unknown"),
        "cpus": os.cpu_count(),
        "usable": sorted(os.sched_getaffinity(0)),
        "numa_nodes": len(list(Path("/sys/devices/system/node").glob("node[0-9]*"))) or 1,
        "smt": _read(CPU / "smt/control", "unknown"),
        "virtual": "yes (hypervisor flag)" if "hypervisor" in flags else "no hypervisor flag",
    }


def _power() -> dict[str, str]:
    governor = _read(CPU / "cpu0/cpufreq/scaling_governor", "none: no cpufreq")
    idle = _read(CPU / "cpuidle/current_driver", "none: no cpuidle")
    clock = _read("/sys/devices/system/clocksource/clocksource0/current_clocksource", "unknown")
    return {"governor": governor, "cpuidle_driver": idle, "clocksource": clock}


def _isolation() -> dict[str, str]:
    words = _read("/proc/cmdline").split()
    kept = [w for w in words if w.startswith(("rcu_nocbs", "irqaffinity", "mitigations", "idle="))]
    return {
        "isolated": _read(CPU / "isolated") or "none",
        "nohz_full": _read(CPU / "nohz_full", "none").replace("(null)", "none") or "none",
        "boot": " ".join(kept) or "none",
    }


def _huge_pages() -> dict[str, str]:
    sizes = sorted(Path("/sys/kernel/mm/hugepages").glob("hugepages-*"))
    found = {
        p.name.removeprefix("hugepages-"): f"{_read(p / 'nr_hugepages')}, "
        f"{_read(p / 'free_hugepages')} free"
        for p in sizes
    }
    transparent = _read("/sys/kernel/mm/transparent_hugepage/enabled", "none")
    if match := re.search(r"\[(\w+)\]", transparent):
        transparent = match[1]
    return found | {"transparent": transparent}


def _nics() -> list[str]:
    """Interfaces with a device; no veth pairs or bridges."""
    found = []
    for path in sorted(Path("/sys/class/net").glob("*")):
        if (path / "device").exists():
            driver = os.path.basename(os.path.realpath(path / "device" / "driver"))
            speed = _read(path / "speed", "?")
            found.append(f"{path.name}: {driver}, {speed} Mb/s")
    return found


def _gpus() -> list[str]:
    return [line.split(" (UUID")[0] for line in _output("nvidia-smi", "-L").splitlines()]


def _versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = "none: not installed"
    for name in DEBIAN:
        version = _output("dpkg-query", "-W", "-f", "${Version}", name)
        found[name] = version or "none: no such Debian package"
    return found


def _revision() -> str:
    """The commit, and a mark if files were changed."""
    head = _output("git", "-C", str(ROOT), "rev-parse", "--short=12", "HEAD")
    if not head:
        return "none: not a git checkout"
    changed = _output("git", "-C", str(ROOT), "status", "--porcelain", "--untracked-files=no")
    if not changed:
        return head
    diff = _output("git", "-C", str(ROOT), "diff", "HEAD")
    return f"{head} and changes {hashlib.sha256(diff.encode()).hexdigest()[:8]}"


def gpu_here() -> bool:
    """Does the machine seem to have an NVIDIA GPU, whatever the build supports?"""
    return Path("/dev/nvidia0").exists() or shutil.which("nvidia-smi") is not None


def bluefield_here() -> bool:
    """Is this the ARM side of a BlueField?"""
    return "BlueField" in _read("/sys/class/dmi/id/product_name")


def rdma_devices() -> list[str]:
    return sorted(p.name for p in RDMA.glob("*"))


def describe() -> dict[str, Any]:
    memory = re.search(r"MemTotal:\s+(\d+)", _read("/proc/meminfo"))
    return {
        "cpu": cpu(),
        "memory_mib": int(memory[1]) // 1024 if memory else 0,
        "kernel": f"{platform.system()} {platform.release()} {platform.version()}",
        "command_line": _read("/proc/cmdline"),
        "power": _power(),
        "isolation": _isolation(),
        "huge_pages": _huge_pages(),
        "nics": _nics() or ["none: no interface with a device behind it"],
        "rdma": rdma_devices() or [f"none: {RDMA}"],
        "gpus": _gpus() or ["none: nvidia-smi lists none"],
        "versions": _versions(),
        "revision": _revision(),
        "load_average": round(os.getloadavg()[0], 2),
    }


def words(here: dict[str, Any]) -> str:
    """What a page in doc/results says of the machine that its figures come from."""
    virtual = "virtual " if here["cpu"]["virtual"].startswith("yes") else ""
    return (
        f"Machine: {here['cpu']['model']}, {here['cpu']['cpus']} {virtual}CPUs "
        f"([more](machine.md)); load average at the start {here['load_average']}.\n"
        f"Revision {here['revision']}.\n"
    )


def differences(a: dict[str, Any], b: dict[str, Any], keys: tuple[str, ...] = LASTING) -> list[str]:
    """A line for each difference."""
    found = []
    for key in keys:
        if a.get(key) != b.get(key):
            one, other = a.get(key), b.get(key)
            if isinstance(one, dict) and isinstance(other, dict):
                names = sorted(n for n in {*one, *other} if one.get(n) != other.get(n))
                found += [f"{key}.{n}: {one.get(n)} / {other.get(n)}" for n in names]
            else:
                found.append(f"{key}: {one} / {other}")
    return found
