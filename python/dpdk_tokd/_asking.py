# SPDX-License-Identifier: BSD-3-Clause
"""One request over a unix socket, and one answer with descriptors: how a process comes to memory
that is another's."""

from __future__ import annotations

import array
import errno
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from .ring.errors import RingError


@dataclass(frozen=True, slots=True)
class Program:
    """Who is asked, as errors name it."""

    name: str
    option: str  # which names its socket
    permission: str  # remedy where it may not be opened
    request: str
    header: str  # which says what the answer is
    other: str = ""  # remedy where a socket of another type answers


@contextmanager
def ask(
    path: str, program: Program, request: bytes, reply_bytes: int, fds_max: int, timeout: float
) -> Iterator[tuple[socket.socket, bytes, array.array[int]]]:
    """The connection, the answer (b"": closed without one) and its descriptors, which are closed
    at the end of the `with`. The connection is non-blocking then, and closed if that raised.

    OSError: no such socket, no permission, or no answer within `timeout` seconds; RingError.
    """
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        s.settimeout(timeout)
        _connect(s, path, program, timeout)
        try:
            s.send(request)
        except (BrokenPipeError, ConnectionResetError):
            pass  # it has closed already, and its answer says why
        reply, control, flags = _receive(s, path, program, reply_bytes, fds_max)
        fds = array.array("i")
        for level, kind, data in control:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                fds.frombytes(data[: len(data) - len(data) % fds.itemsize])
        try:
            if flags & (socket.MSG_TRUNC | socket.MSG_CTRUNC):
                raise RingError(
                    f"{path}: {program.request} reply is longer than {program.header} says"
                )
            yield s, reply, fds
        finally:
            for fd in fds:
                os.close(fd)  # mappings stay
        s.setblocking(False)
    except BaseException:
        s.close()
        raise


def _connect(s: socket.socket, path: str, program: Program, timeout: float) -> None:
    """A unix socket whose queue is full says so at once, whatever the time limit."""
    deadline = time.monotonic() + timeout
    while True:
        try:
            return s.connect(path)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                raise TimeoutError(f"{path}: too many connect at once") from None
            time.sleep(0.001)
        except OSError as e:
            raise _explained(e, path, program) from None


def _explained(error: OSError, path: str, program: Program) -> OSError:
    """The same error with the path and a remedy."""
    remedy = {
        errno.ENOENT: f"is {program.name} running, and its {program.option} this one?",
        errno.ECONNREFUSED: f"the {program.name} that made it is gone: start it again",
        errno.EACCES: f"{program.permission}",
        errno.EPROTOTYPE: program.other,
    }.get(error.errno or 0) or f"is it the {program.option} of a {program.name}?"
    if error.errno is None:
        return OSError(f"{path}: {error}: {remedy}")
    return OSError(error.errno, f"{path}: {os.strerror(error.errno)}: {remedy}")


def _receive(
    s: socket.socket, path: str, program: Program, reply_bytes: int, fds_max: int
) -> tuple[bytes, list[tuple[int, int, bytes]], int]:
    room = socket.CMSG_SPACE(fds_max * array.array("i").itemsize)
    for _ in range(2):
        try:
            return s.recvmsg(reply_bytes, room, socket.MSG_CMSG_CLOEXEC)[:3]
        except ConnectionResetError:
            pass  # it closed with the request unread: Linux says so once, before its answer
        except TimeoutError:
            raise TimeoutError(
                f"{path}: no answer to the {program.request} request within {s.gettimeout()} s: "
                f"is it the {program.option} of a {program.name}, and does that run?"
            ) from None
    return b"", [], 0
