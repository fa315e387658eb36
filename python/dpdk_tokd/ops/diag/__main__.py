# SPDX-License-Identifier: BSD-3-Clause
"""tokd-diag: gather, judge, show."""

from __future__ import annotations

import argparse
import os
import re
import sys
from importlib import metadata
from pathlib import Path
from typing import NoReturn

from . import show
from .files import Files
from .gather import gather
from .judge import judge
from .paths import Sizes

WORKS, DOES_NOT, USAGE = 0, 1, 2
UNITS = {"": 0, "k": 10, "M": 20, "G": 30}
SIZE_MOST = 1 << 40


def _version() -> str:
    try:
        return metadata.version("dpdk-tokd")
    except metadata.PackageNotFoundError:  # run from the repository by another Python
        project = Path(__file__).parent / "../../../../meson.build"
        text = project.read_text() if project.is_file() else ""
        found = re.search(r"^  version: '(.*)',$", text, re.MULTILINE)
        return found[1] if found else "not known"


def _size(text: str) -> int:
    found = re.fullmatch(r"([0-9]{1,13})([kMG]?)", text)
    size = int(found[1]) << UNITS[found[2]] if found else 0
    if not 1 <= size <= SIZE_MOST:
        raise argparse.ArgumentTypeError(f"{text}: give bytes, 1 to 1024G, as in 16M")
    return size


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.exit(USAGE, f"tokd-diag: {message}; see --help\n")


def _parser() -> argparse.ArgumentParser:
    p = _Parser(
        prog="tokd-diag",
        usage="tokd-diag [options]\n       tokd-diag --drivers [--json] FILE...",
        description="Shows which path token ids can take from this machine into a GPU's memory, "
        "and what prevents better ones: RDMA devices, GPUs, drivers, limits. "
        "Changes nothing.",
        epilog="Exit code: 0: the path of --want works, or without --want there is no "
        "PROBLEM; 1: otherwise; 2: a wrong option.",
    )
    p.add_argument(
        "--want",
        metavar="PATH",
        choices=("verbs", "cuda", "shm"),
        help="for scripts: exit with 0 if this path works, else with 1: verbs, cuda or shm",
    )
    p.add_argument(
        "--role",
        metavar="ROLE",
        choices=("producer", "agent"),
        help="producer: only dpdk-tokd runs here; agent: tokd-gpu runs here [agent if there is a "
        "GPU, else producer]",
    )
    p.add_argument(
        "--ring",
        metavar="BYTES",
        type=_size,
        default="16M",
        help="size of the token rings that dpdk-tokd registers, one per worker [16M]",
    )
    p.add_argument(
        "--region",
        metavar="BYTES",
        type=_size,
        default="64M",
        help="size of the GPU ring, in GPU memory or the agent's [64M]",
    )
    p.add_argument(
        "--drivers",
        action="store_true",
        help="list the DPDK drivers in each FILE, a program or a shared library, and the devices "
        "of this machine that they claim",
    )
    p.add_argument(
        "--root",
        metavar="DIR",
        default="/",
        help="read sys and proc in this folder, and ask no device or library [/]",
    )
    p.add_argument("--json", action="store_true", help="print one JSON object")
    p.add_argument("--version", action="version", version=f"tokd-diag {_version()}")
    p.add_argument("files", nargs="*", metavar="FILE", help=argparse.SUPPRESS)
    return p


def _parse(arguments: list[str] | None) -> tuple[argparse.Namespace, Files]:
    parser = _parser()
    o = parser.parse_args(arguments)
    if o.drivers and not o.files:
        parser.error("--drivers: name the programs or libraries after it")
    if o.drivers and o.want:
        parser.error("--drivers and --want: give one of them")
    if not o.drivers and o.files:
        parser.error(f"{o.files[0]}: not an option")
    try:
        return o, Files(o.root)
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        parser.error(f"--root {o.root}: {why}: give a folder with sys and proc in it")


def _report(o: argparse.Namespace, files: Files) -> tuple[str, int]:
    if o.drivers:
        try:
            from . import drivers
        except ImportError:
            remedy = "apt-get install python3-pyelftools"
            print(f"tokd-diag: --drivers needs pyelftools: {remedy}", file=sys.stderr)
            return "", DOES_NOT
        return drivers.report(o.files, files, o.json)
    machine = gather(files)
    verdict = judge(machine, Sizes(o.ring, o.region), o.role)
    code = WORKS if verdict.is_good(o.want) else DOES_NOT
    if o.json:
        return show.as_json(machine, verdict, o.want, _version()), code
    return show.as_text(machine, verdict), code


def main(arguments: list[str] | None = None) -> int:
    text, code = _report(*_parse(arguments))
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except OSError as error:
        print(f"tokd-diag: standard output: {error.strerror}", file=sys.stderr)
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for what is left in it
        return DOES_NOT
    return code


if __name__ == "__main__":
    sys.exit(main())
