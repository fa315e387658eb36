# SPDX-License-Identifier: BSD-3-Clause
"""Runs tokd-micro, which repeats one small operation and checks it; and the sizes of the caches."""

import re
from pathlib import Path
from typing import Any

from bench.lab.cpus import CPUS, WORKER_CPU
from bench.lab.host_measures import CPU
from bench.process import json_of
from bench.programs import TOKD_MICRO
from bench.task import Missing

LEVELS = ("l1", "l2", "llc", "dram")
DRAM_LEAST = 256 << 20
DRAM_CACHES = 4  # memory for `dram`, in multiples of the last cache
LIMIT_S = 120.0  # beyond the requested time
UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20}


def run(mode: str, ms: int, **options: str | int) -> dict[str, Any]:
    """The output of tokd-micro on the worker's CPU. OSError: it failed; its message."""
    given = [word for name, value in options.items() for word in (f"--{name}", str(value))]
    command = [str(TOKD_MICRO), mode, "--cpu", str(WORKER_CPU), "--ms", str(ms), *given]
    return json_of(command, CPUS, ms / 1000 + LIMIT_S)


def caches(folder: Path = CPU / f"cpu{WORKER_CPU}" / "cache") -> dict[int, int]:
    """Sizes of the data caches in bytes, by level."""
    found = {}
    for index in folder.glob("index[0-9]*"):
        size = re.fullmatch(r"(\d+)([KM]?)", (index / "size").read_text().strip())
        if (index / "type").read_text().strip() != "Instruction" and size:
            found[int((index / "level").read_text())] = int(size[1]) * UNITS[size[2]]
    return found


def _available(meminfo: Path) -> int:
    kib = re.search(r"^MemAvailable:\s+(\d+) kB", meminfo.read_text(), re.MULTILINE)
    return int(kib[1]) << 10 if kib else 0


def level_bytes(level: str, sizes: dict[int, int], meminfo: Path = Path("/proc/meminfo")) -> int:
    """Half of a cache, since other data is in it too; for DRAM several times the last cache."""
    last = max(sizes, default=0)
    if last < 2:
        raise Missing(f"the kernel has no cache sizes: {CPU}/cpu{WORKER_CPU}/cache")
    if level == "dram":
        wanted = max(DRAM_LEAST, DRAM_CACHES * sizes[last])
        if wanted > _available(meminfo) // 2:
            raise Missing(f"{wanted >> 20} MiB, beyond all caches, are not free")
        return wanted
    number = {"l1": 1, "l2": 2, "llc": last}[level]
    if level == "llc" and last == 2:
        raise Missing("L2 is the last cache of this machine")
    if number not in sizes:
        raise Missing(f"the kernel lists no L{number} cache: {CPU}/cpu{WORKER_CPU}/cache")
    return sizes[number] // 2 // 128 * 128


def size_note(level: str, raw: dict[str, Any]) -> str:
    huge = min(raw["huge_bytes"], raw["bytes"]) * 100 // raw["bytes"]
    return f"{level}: {raw['bytes'] >> 10:,} KiB, {huge}% of it in huge pages"
