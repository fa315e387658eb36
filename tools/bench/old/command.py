# SPDX-License-Identifier: BSD-3-Clause
"""What tools/soak, tools/wire-to-ring and tools/workers have in common as commands."""

import argparse
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from bench.demo.report import machine
from bench.pair import CLIENT_CPU, CPUS, SERVER_CPU, LoadFailed
from bench.process import NotReady
from bench.replay import WrongReplay
from bench.say import say
from bench.texts.packages import FetchError
from bench.texts.reference import ReferenceMismatch
from dpdk_tokd.ops.telemetry import TelemetryError

BUSY = 1.0  # load average
Run = Callable[[argparse.Namespace, Path, ExitStack], dict[str, Any]]


def parser(name: str, description: str) -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog=f"tools/{name}",
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument("--json", type=Path, metavar="FILE", help="write all figures to FILE")
    return made


def number(least: int, most: int) -> Callable[[str], int]:
    """A type of argparse's: a number with limits, which its error names."""

    def parse(text: str) -> int:
        if not text.isdecimal() or not least <= int(text) <= most:
            raise argparse.ArgumentTypeError(f"{text}: give a number from {least} to {most}")
        return int(text)

    return parse


def share(text: str) -> str:
    """A type of argparse's: a share of the packets, as tokd-load-dpdk takes it."""
    if not re.fullmatch(r"\d{1,3}(\.\d+)?%", text) or float(text[:-1]) > 100:
        raise argparse.ArgumentTypeError(f"{text}: give a share from 0% to 100%, as in 2%")
    return text


def _leave(number: int, _frame: object) -> None:
    """Signals unwind like errors, so that both processes are ended."""
    sys.exit(128 + number)


def _run(args: argparse.Namespace, name: str, run: Run) -> dict[str, Any]:
    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, _leave)
    busy = os.getloadavg()[0]
    if busy > BUSY:
        say(f"this machine is busy (load average {busy:.1f}): times will be those of a busy one")
    with tempfile.TemporaryDirectory(prefix="tokd-memif-") as folder, ExitStack() as stack:
        result = run(args, Path(folder), stack)
    common = {
        "cpus": {"appliance": SERVER_CPU, "generator": CLIENT_CPU},
        "load_average_before": round(busy, 2),
        "command": shlex.join([f"tools/{name}", *sys.argv[1:]]),
        "machine": machine(),
    }
    return common | result


def main(args: argparse.Namespace, name: str, run: Run, table: Callable[..., str]) -> int:
    """0 if run() says `ok`; 1 if not, or if it could not be done; 2 for a bad option."""
    if len(CPUS) < 2:
        print(f"{name}: needs two CPUs: for dpdk-tokd and the generator", file=sys.stderr)
        return 1
    if args.json:
        try:
            args.json.open("a").close()  # not after minutes of work
        except OSError as error:
            print(f"{name}: --json {args.json}: {error.strerror}", file=sys.stderr)
            return 2
    try:
        result = _run(args, name, run)
    except (
        FetchError, LoadFailed, NotReady, OSError, ReferenceMismatch, TelemetryError,
        WrongReplay, subprocess.SubprocessError,
    ) as error:  # fmt: skip
        print(f"{name}: {error}", file=sys.stderr)
        return 1
    print(table(result))
    print("all is right: " + ("yes" if result["ok"] else "NO"))
    if args.json:
        args.json.write_text(json.dumps(result, indent=2) + "\n")
    return 0 if result["ok"] else 1
