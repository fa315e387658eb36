# SPDX-License-Identifier: BSD-3-Clause
"""Sequential memory bandwidth of one core, by cache level."""

import re
import subprocess
from typing import Any

from bench.lab import micro
from bench.lab.cpus import WORKER_CPU
from bench.process import ENDS_WITH_US
from bench.task import Choice, Context, Number, Report, Value, need_tool

HELP = (
    "stress-ng --memrate on one core: reads or writes memory in order with instructions of several "
    "widths; the fastest counts. Sizes: half of each cache; dram: several times the last cache."
)
PARAMETERS = {
    "level": Choice(micro.LEVELS, "that the memory fits"),
    "work": Choice(("read", "write")),
    "seconds": Number(1, 600, "of each trial"),
}
METRICS = {"bandwidth": Value("GB/s", better="higher")}
COUNTS: dict[str, str] = {}
CHECKS_IDS = False
LIMIT_S = 60.0


def prepare(_context: Context) -> dict[int, int]:
    need_tool("stress-ng", "stress-ng")
    return micro.caches()


def rates(output: str, work: str) -> list[float]:
    """In GB/s, of lines such as `memrate  63124.93 read64 MB per sec (...)`: its MB are of 2^20."""
    found = re.findall(rf"memrate +([0-9.]+) {work}\w+ MB per sec", output)
    return [float(rate) * (1 << 20) / 1e9 for rate in found]


def run(sizes: dict[int, int], parameters: dict[str, Any]) -> list[float]:
    size, seconds = micro.level_bytes(parameters["level"], sizes), parameters["seconds"]
    command = [*ENDS_WITH_US, "stress-ng", "--memrate", "1", "--memrate-bytes", str(size)]
    command += ["--timeout", f"{seconds}s", "--taskset", str(WORKER_CPU), "--metrics"]
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, timeout=seconds + LIMIT_S
    )
    return rates(done.stdout + done.stderr, parameters["work"])


def report(_sizes: dict[int, int], _parameters: dict[str, Any], raw: list[float]) -> Report:
    if not raw:
        raise OSError("stress-ng printed no rates: give it more seconds, or another version")
    return Report(values={"bandwidth": max(raw)})
