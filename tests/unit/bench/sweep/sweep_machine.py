# SPDX-License-Identifier: BSD-3-Clause
"""A machine for sweeps whose tests do not look at it."""

from typing import Any

HERE: dict[str, Any] = {
    "cpu": {"model": "a CPU", "cpus": 2, "virtual": "no"},
    "kernel": "k #1",
    "revision": "r",
    "isolation": {"isolated": "none"},
    "power": {"governor": "none"},
    "nics": [],
    "gpus": [],
    "load_average": 0.0,
}
