# SPDX-License-Identifier: BSD-3-Clause
"""Iteration over records that another process writes to shared memory, by polling."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Iterator
from typing import TypeVar

from ._closing import Closing

SPIN_POLLS = 200  # before going to sleep
SLEEP_FIRST_S = 50e-6
SLEEP_LAST_S = 1e-3

Item = TypeVar("Item")


class PollingReader(Closing, Iterator[Item]):
    """Iterates over what `poll` returns. It spins briefly, then sleeps 50 us to 1 ms between polls,
    and ends when the reader is `closed`."""

    _timeout: float | None

    @abstractmethod
    def poll(self) -> Item | None:
        """The next item, or None."""

    @abstractmethod
    def _next(self) -> Item | None:
        """The same without a system call, for spinning."""

    @property
    @abstractmethod
    def closed(self) -> bool:
        """No further item will come."""

    @abstractmethod
    def _timeout_message(self) -> str:
        """The text of the TimeoutError."""

    def __next__(self) -> Item:
        """Wait for the next item. TimeoutError after `timeout` seconds; other errors as `poll`."""
        item = self.poll()
        if item is not None:
            return item
        deadline = None if self._timeout is None else time.monotonic() + self._timeout
        polls, pause = 0, SLEEP_FIRST_S
        while not self.closed:
            item = self._next() if polls < SPIN_POLLS else self.poll()
            if item is not None:
                return item
            polls += 1
            if polls < SPIN_POLLS:
                continue
            if deadline is not None and time.monotonic() >= deadline:
                raise TimeoutError(self._timeout_message())
            time.sleep(pause)
            pause = min(2 * pause, SLEEP_LAST_S)
        raise StopIteration
