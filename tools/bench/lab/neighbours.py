# SPDX-License-Identifier: BSD-3-Clause
"""Noisy neighbours: other load on the machine while something is timed."""

import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path

from dpdk_tokd.fetch.packages import data_home

from bench.lab.cpus import CPUS, OTHER_CPUS
from bench.process import ENDS_WITH_US, Process
from bench.programs import ROOT
from bench.task import Missing
from bench.texts import fetch_corpus

SETTLE_S = 0.3  # for its processes to start and to touch their memory
STRESS_MOST_S = 600  # then stress-ng ends by itself
# Repeats a command in a process group that is killed as a whole: a compiler has children.
AGAIN = 'trap "kill -KILL 0" TERM; while :; do "$@" >/dev/null & wait $! || exit 1; done'


def _program(name: str) -> str:
    if shutil.which(name) is None:
        raise Missing(f"{name} is not installed: run tools/setup")
    return name


def _again(command: Sequence[str]) -> list[str]:
    return ["setsid", "sh", "-c", AGAIN, "neighbour", *command]


def _stress(option: str, count: int, folder: Path) -> list[list[str]]:
    command = [_program("stress-ng"), option, str(count), "--timeout", f"{STRESS_MOST_S}s"]
    return [[*command, "--temp-path", str(folder)]]


def _compress(count: int, _folder: Path) -> list[list[str]]:
    corpus = fetch_corpus.fetch(data_home() / "corpus")["english"]
    return [_again([_program("xz"), "-6", "--threads=1", "--stdout", str(corpus)])] * count


def _compile(count: int, folder: Path) -> list[list[str]]:
    """Compiles lib/tokenizer, one file after the other."""
    compiler = [_program("cc"), "-std=gnu11", "-O2", "-w", f"-I{ROOT / 'include'}"]
    source = ROOT / "lib" / "tokenizer"
    compiler += [f"-I{source}", "-c", *map(str, sorted(source.rglob("*.c")))]
    found = []
    for i in range(count):
        objects = folder / f"objects{i}"
        objects.mkdir(exist_ok=True)
        found.append(["env", "-C", str(objects), *_again(compiler)])
    return found


Commands = Callable[[int, Path], list[list[str]]]
KINDS: dict[str, Commands] = {
    "none": lambda _count, _folder: [],
    "cpu": lambda count, folder: _stress("--cpu", count, folder),
    "memory": lambda count, folder: _stress("--stream", count, folder),
    "compress": _compress,
    "compile": _compile,
}
HELP = (
    "other load: cpu, memory: stress-ng --cpu, --stream; compress: xz of a corpus; compile: cc of "
    "lib/tokenizer"
)


@contextmanager
def neighbour(kind: str, cpus: Sequence[int], count: int, folder: Path) -> Iterator[None]:
    """`count` neighbours on any of `cpus`."""
    place = [*ENDS_WITH_US, "taskset", "-c", ",".join(map(str, cpus))]
    with ExitStack() as stack:
        running = [
            stack.enter_context(Process(kind, [*place, *command], folder / f"neighbour{i}.log"))
            for i, command in enumerate(KINDS[kind](count, folder))
        ]
        if running:
            time.sleep(SETTLE_S)
        yield
        for process in running:
            if (ended := process.wait(0)) is not None:
                raise subprocess.SubprocessError(
                    f"the neighbour ({kind}) ended with {ended} before the trial did: "
                    f"{process.tail()}"
                )


def beside_worker(kind: str, confined: bool, folder: Path) -> AbstractContextManager[None]:
    """A neighbour for each CPU that is neither the worker's nor the client's, at least one; kept
    off the worker's CPU if `confined`, else placed by the kernel."""
    return neighbour(kind, OTHER_CPUS if confined else CPUS, len(OTHER_CPUS), folder)
