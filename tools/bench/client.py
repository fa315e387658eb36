# SPDX-License-Identifier: BSD-3-Clause
"""Runs a client of this package in the client's namespace, on its CPU."""

import sys
from typing import Any

from bench.lab.cpus import CLIENT_CPU
from bench.lab.net import inside
from bench.process import Ended, json_of
from bench.task import WrongIds

WRONG = 3  # a client's exit code: what came is not what is right


def ask(namespace: str, module: str, seconds: float, told: object) -> Any:
    """What `python -m MODULE` prints, as JSON; `told` is its standard input, likewise. WrongIds: it
    ended with WRONG. Ended: it failed otherwise."""
    command = inside(namespace, sys.executable, "-m", module)
    try:
        return json_of(command, [CLIENT_CPU], seconds, told)
    except Ended as error:
        if error.code != WRONG:
            raise
        raise WrongIds(error.said) from error
