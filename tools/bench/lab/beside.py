# SPDX-License-Identifier: BSD-3-Clause
"""A thread beside what a context does."""

import threading
from typing import Self


class Beside:
    """Its _run() runs in a thread of its own while the context is open, and returns soon after
    _stop is set."""

    def __init__(self) -> None:
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        raise NotImplementedError

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()
