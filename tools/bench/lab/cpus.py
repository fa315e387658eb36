# SPDX-License-Identifier: BSD-3-Clause
"""CPUs: the client's is the first that this process may use, the worker's the last."""

import os
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager

from bench.task import Missing

CPUS = sorted(os.sched_getaffinity(0))
CLIENT_CPU, WORKER_CPU = CPUS[0], CPUS[-1]
# For everything else; with two CPUs only, the client's.
OTHER_CPUS = [cpu for cpu in CPUS if cpu not in (CLIENT_CPU, WORKER_CPU)] or [CLIENT_CPU]


def need_two_cpus() -> None:
    if len(CPUS) < 2:
        raise Missing("needs two CPUs: for the server and the client")


@contextmanager
def on_cpus(cpus: Iterable[int]) -> Iterator[None]:
    """Keep this process, and what it starts, on these."""
    os.sched_setaffinity(0, cpus)
    try:
        yield
    finally:
        os.sched_setaffinity(0, CPUS)


def on_client_cpu() -> AbstractContextManager[None]:
    """Keep this process off the worker's CPU."""
    return on_cpus([CLIENT_CPU])
