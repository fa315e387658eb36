# SPDX-License-Identifier: BSD-3-Clause
"""tokd-micro for the tasks micro-*: one small thing, done for a while and checked by itself; and
how much memory fits which cache of this machine."""

import json
import re
import subprocess
from pathlib import Path
from typing import Any

from bench.lab.host_measures import CPU, ENDS_WITH_US, WORKER_CPU
from bench.programs import BUILD
from bench.task import Missing

MICRO = BUILD / "tools" / "tokd-micro"
LEVELS = ("l1", "l2", "llc", "dram")
DRAM_LEAST = 256 << 20
DRAM_CACHES = 4  # as many last caches are in what is to come from DRAM
LIMIT_S = 120.0  # beside the time that it is told to take
UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20}


def need_micro() -> None:
    if not MICRO.is_file():
        raise Missing(f"{MICRO} is not built: run tools/setup")


def command(mode: str, cpu: int, **options: str | int) -> list[str]:
    """That ends when this process does."""
    given = [word for name, value in options.items() for word in (f"--{name}", str(value))]
    return [*ENDS_WITH_US, str(MICRO), mode, "--cpu", str(cpu), *given]


def result(command_line: list[str], seconds: float) -> dict[str, Any]:
    """What it printed; OSError with its complaint where it did not come to its end."""
    done = subprocess.run(
        command_line, capture_output=True, text=True, check=False, timeout=seconds + LIMIT_S
    )
    if done.returncode != 0:
        raise OSError(f"tokd-micro ended with {done.returncode}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def run(mode: str, ms: int, **options: str | int) -> dict[str, Any]:
    """On the worker's CPU."""
    return result(command(mode, WORKER_CPU, ms=ms, **options), ms / 1000)


def caches(folder: Path = CPU / f"cpu{WORKER_CPU}" / "cache") -> dict[int, int]:
    """Bytes of the caches for data, by level."""
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
    """Half of a cache, for what else lies in it; of DRAM so much that caches are of no use."""
    last = max(sizes, default=0)
    if last < 2:
        raise Missing(f"the kernel does not tell the sizes of caches: {CPU}/cpu{WORKER_CPU}/cache")
    if level == "dram":
        wanted = max(DRAM_LEAST, DRAM_CACHES * sizes[last])
        if wanted > _available(meminfo) // 2:
            raise Missing(f"{wanted >> 20} MiB, beyond all caches, are not free here")
        return wanted
    number = {"l1": 1, "l2": 2, "llc": last}[level]
    if level == "llc" and last == 2:
        raise Missing("L2 is the last cache of this machine")
    if number not in sizes:
        raise Missing(f"the kernel tells of no L{number} cache: {CPU}/cpu{WORKER_CPU}/cache")
    return sizes[number] // 2 // 128 * 128


def size_note(level: str, raw: dict[str, Any]) -> str:
    huge = min(raw["huge_bytes"], raw["bytes"]) * 100 // raw["bytes"]
    return f"{level}: {raw['bytes'] >> 10:,} KiB, {huge}% of it in huge pages"
