# SPDX-License-Identifier: BSD-3-Clause
"""Host settings that can be changed and restored at run time. A setting that the machine does not
allow is Missing, with the reason."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dpdk_tokd.fetch.packages import write_atomically

from bench.lab.cpus import CLIENT_CPU, WORKER_CPU
from bench.task import Missing

MEASURES = ("affinity", "huge-pages", "irq-affinity", "governor", "polling")
CPU = Path("/sys/devices/system/cpu")
IRQ = Path("/proc/irq")
JOURNAL = Path("/run/tokd-sweep-host.json")


def enabled(measure: str, without: str) -> bool:
    """Is a setting applied in a test that leaves out `without`?"""
    return without not in (measure, "everything")


# ---- files of the kernel, and their old content ----


def _write(path: Path, value: str) -> bool:
    try:
        path.write_text(value)
    except OSError:
        return False
    return True


def restore_left_over() -> None:
    """Undo the changes of a sweep that was killed."""
    if not JOURNAL.is_file():
        return
    left = json.loads(JOURNAL.read_text())
    if Path("/proc", str(left["pid"])).exists() and left["pid"] != os.getpid():
        raise Missing(f"process {left['pid']} has changed settings of this host: {JOURNAL}")
    for name, value in left["files"].items():
        _write(Path(name), value)
    JOURNAL.unlink()


@contextmanager
def _changed(wanted: dict[Path, str]) -> Iterator[list[Path]]:
    """The files that took their new value; the old values are restored afterwards."""
    before = {str(path): path.read_text() for path in wanted}
    write_atomically(JOURNAL, json.dumps({"pid": os.getpid(), "files": before}).encode())
    try:
        yield [path for path, value in wanted.items() if _write(path, value)]
    finally:
        for name, value in before.items():
            _write(Path(name), value)
        JOURNAL.unlink()


def parse_cpus(text: str) -> set[int]:
    """A CPU list in the kernel's notation: 0-2,5."""
    found: set[int] = set()
    for part in filter(None, text.strip().split(",")):
        first, _, last = part.partition("-")
        found |= set(range(int(first), int(last or first) + 1))
    return found


def interrupts_off_worker(folder: Path = IRQ) -> dict[Path, str]:
    """Affinity lists that contain the worker's CPU, and their new values."""
    found = {}
    for path in sorted(folder.glob("[0-9]*/smp_affinity_list")):
        cpus = parse_cpus(path.read_text())
        if WORKER_CPU in cpus:
            rest = sorted(cpus - {WORKER_CPU}) or [CLIENT_CPU]
            found[path] = ",".join(map(str, rest))
    return found


def governors(best: bool, folder: Path = CPU) -> dict[Path, str]:
    """cpufreq's `performance` on the worker's and the client's CPU, or one that saves power. Empty
    if cpufreq does not offer both."""
    files = [folder / f"cpu{c}" / "cpufreq" / "scaling_governor" for c in (WORKER_CPU, CLIENT_CPU)]
    if not all(path.is_file() for path in files):
        return {}
    offered = files[0].with_name("scaling_available_governors").read_text().split()
    saving = next((g for g in ("schedutil", "ondemand", "powersave") if g in offered), None)
    if "performance" not in offered or saving is None:
        return {}
    return dict.fromkeys(files, "performance" if best else saving)


def obstacle(measure: str) -> str | None:
    """Why a setting cannot be changed on this machine; None: it can."""
    if measure == "irq-affinity":
        wanted = interrupts_off_worker()
        if not wanted:
            return f"no interrupt is routed to CPU {WORKER_CPU}: nothing to move"
        with _changed(wanted) as moved:
            if not moved:
                return (
                    f"the kernel manages all {len(wanted)} interrupts of CPU {WORKER_CPU} itself: "
                    "none can be moved"
                )
    if measure == "governor":
        wanted = governors(best=True)
        if not wanted:
            return (
                "cpufreq does not offer performance and another governor here "
                f"({CPU}/cpu{WORKER_CPU}/cpufreq): this system does not control the clock"
            )
        with _changed(wanted) as done:
            if len(done) < len(wanted):
                return f"{next(iter(wanted))} cannot be written"
    return None


def obstacles() -> dict[str, str]:
    """By setting; checked once, before anything is timed."""
    restore_left_over()
    return {m: why for m in MEASURES if (why := obstacle(m)) is not None}


@contextmanager
def settings(without: str) -> Iterator[list[str]]:
    """Sets interrupts and governors, except `without`; yields notes for the table."""
    interrupts = interrupts_off_worker() if enabled("irq-affinity", without) else {}
    with _changed(interrupts | governors(best=enabled("governor", without))) as done:
        notes = []
        if interrupts:
            moved = sum(path in done for path in interrupts)
            notes.append(
                f"irq-affinity: {moved} of {len(interrupts)} interrupts of CPU {WORKER_CPU} were "
                "moved; the kernel manages the others itself"
            )
        yield notes


def device_interrupts(cpu: int) -> int:
    """Device interrupts of a CPU since boot, without timers and inter-processor interrupts."""
    head, *lines = Path("/proc/interrupts").read_text().splitlines()
    column = 1 + head.split().index(f"CPU{cpu}")
    return sum(int(f[column]) for f in map(str.split, lines) if f[0].rstrip(":").isdigit())
