# SPDX-License-Identifier: BSD-3-Clause
"""Waiting for what another process publishes in shared memory, which wakes nobody."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Iterator
from typing import TypeVar

from ._closing import Closing

SPIN_POLLS = 200  # before going to sleep
SLEEP_FIRST_S = 50e-6
SLEEP_LAST_S = 1e-3

Given = TypeVar("Given")


class Waiting(Closing, Iterator[Given]):
    """Iteration over what `poll` gives: for a moment without pause, then with pauses from 50 us to
    1 ms. It ends when the reader is `closed`."""

    _timeout: float | None

    @abstractmethod
    def poll(self) -> Given | None:
        """The next, or None."""

    @abstractmethod
    def _next(self) -> Given | None:
        """The same without a system call: between two polls, often."""

    @property
    @abstractmethod
    def closed(self) -> bool:
        """Nothing new will come."""

    @abstractmethod
    def _nothing_came(self) -> str:
        """What there was none of within the time limit."""

    def __next__(self) -> Given:
        """Wait for the next. TimeoutError after `timeout` seconds; other errors as in `poll`."""
        given = self.poll()
        if given is not None:
            return given
        deadline = None if self._timeout is None else time.monotonic() + self._timeout
        polls, pause = 0, SLEEP_FIRST_S
        while not self.closed:
            given = self._next() if polls < SPIN_POLLS else self.poll()
            if given is not None:
                return given
            polls += 1
            if polls < SPIN_POLLS:
                continue
            if deadline is not None and time.monotonic() >= deadline:
                raise TimeoutError(self._nothing_came())
            time.sleep(pause)
            pause = min(2 * pause, SLEEP_LAST_S)
        raise StopIteration
