# SPDX-License-Identifier: BSD-3-Clause
"""The common options of tokd-top and tokd-exporter."""

from __future__ import annotations

import argparse
from importlib.metadata import version
from typing import NoReturn

from .telemetry import DEFAULT_PREFIX


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}; see --help\n")


def parser(name: str, description: str, more: str = "") -> argparse.ArgumentParser:
    """A parser with --file-prefix and --version."""
    made = _Parser(
        prog=name,
        description=description,
        epilog="Run it as the user of dpdk-tokd, with the same XDG_RUNTIME_DIR; root sees another "
        f"user's with that folder in RUNTIME_DIRECTORY.{more}",
    )
    made.add_argument(
        "--file-prefix",
        default=DEFAULT_PREFIX,
        metavar="PREFIX",
        help="the --file-prefix dpdk-tokd was started with (default %(default)s)",
    )
    made.add_argument("--version", action="version", version=f"{name} {version('dpdk-tokd')}")
    return made
