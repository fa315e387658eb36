# SPDX-License-Identifier: BSD-3-Clause
"""A limit of the time that Python code takes which somebody else has written."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class TooLong(BaseException):
    """No Exception: the code shall not catch it."""


@contextmanager
def deadline(seconds: float) -> Iterator[None]:
    """After that time TooLong is raised in the block. What is one step for the interpreter, such as
    a multiplication, is not interrupted."""
    thread, lock, finished = threading.get_ident(), threading.Lock(), False

    def expire() -> None:
        with lock:
            if not finished:
                raised = ctypes.c_ulong(thread), ctypes.py_object(TooLong)
                ctypes.pythonapi.PyThreadState_SetAsyncExc(*raised)

    timer = threading.Timer(seconds, expire)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        with lock:
            finished = True
